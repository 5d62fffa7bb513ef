//! WAV files: read anything common as mono, write safely.
//!
//! Reading walks the RIFF chunks itself rather than through hound, which writes our files and checks
//! this reader in tests: hound refuses what recorders and pipes really leave behind (a data length of
//! 0xFFFFFFFF from a program that could not seek back, a file cut off by a crash, the pad byte of an
//! odd chunk). Every file is hostile here: no length in a header is believed before that many bytes
//! have been read, and memory grows only with what was.
//!
//! ```no_run
//! # fn main() -> Result<(), repartee_audio::AudioError> {
//! let audio = repartee_audio::wav::read_mono("question.wav".as_ref())?;
//! for warning in &audio.warnings {
//!     tracing::warn!("question.wav: {warning}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Source of the layout: "Multimedia Programming Interface and Data Specifications 1.0" (RIFF, PCM)
//! and "New Multimedia Data Types and Data Techniques" (float, extensible, A-law and mu-law).

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::AudioError;
use crate::resample::MAX_SAMPLES;

/// A mono sound in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Audio {
    /// Samples between -1 and 1 (float files may exceed that); the mean of all channels.
    pub samples: Vec<f32>,
    /// Samples per second; never 0.
    pub rate_hz: u32,
    /// What was wrong with the file and could be worked around.
    pub warnings: Vec<Warning>,
}

impl Audio {
    /// Length in seconds.
    pub fn duration_secs(&self) -> f64 {
        self.samples.len() as f64 / f64::from(self.rate_hz)
    }
}

/// A defect that did not keep a file from being read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The file ends before the length that its header gives; what is there was read.
    Truncated {
        /// Frames (samples per channel) that the header promises.
        promised_frames: u64,
        /// Frames found.
        found_frames: u64,
    },
    /// Samples that are no number were replaced by silence.
    NotANumber {
        /// How many.
        samples: u64,
    },
    /// Samples larger than any real level were clipped to full scale.
    TooLarge {
        /// How many.
        samples: u64,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Truncated { promised_frames, found_frames } => {
                write!(f, "the file is cut off: {found_frames} of {promised_frames} frames are there")
            }
            Self::NotANumber { samples } => write!(f, "{samples} samples were no numbers; silence instead"),
            Self::TooLarge { samples } => {
                write!(f, "{samples} samples were far beyond full scale, as in a damaged file; clipped")
            }
        }
    }
}

/// How samples are stored by [`write()`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// 16-bit integers: what every program reads. Samples outside -1 to 1 are clipped.
    #[default]
    Int16,
    /// 32-bit floats, unclipped.
    Float32,
}

/// A float sample beyond this (+96 dB over full scale) is damage, not sound.
const MAX_LEVEL: f32 = 65_536.0;
/// Writers that cannot seek back leave lengths at or near the largest value.
const UNKNOWN_LENGTH: u32 = 0x7FFF_0000;
/// Chunks before the data (tags, cue points, cover art) longer than this are not skipped.
const MAX_SKIPPED_BYTES: u64 = 1 << 30;

/// Reads the WAV file at `path` as mono: 8, 16, 24 or 32-bit integers, 32 or 64-bit floats, A-law,
/// mu-law, plain or extensible header, any channel count (the channels are averaged) and rate.
///
/// A file that is cut off is read as far as it goes, with a [`Warning`].
///
/// # Errors
/// [`AudioError::Read`] if the file cannot be opened or read, otherwise as [`decode`].
pub fn read_mono(path: &Path) -> Result<Audio, AudioError> {
    let read = |source| AudioError::Read { path: path.to_path_buf(), source };
    let file = File::open(path).map_err(read)?;
    if file.metadata().map_err(read)?.is_dir() {
        return Err(read(std::io::Error::from(std::io::ErrorKind::IsADirectory)));
    }
    decode_named(BufReader::with_capacity(1 << 16, file), path)
}

/// Reads a WAV from bytes, as [`read_mono`] does from a file.
///
/// # Errors
/// [`AudioError::NotWav`], [`AudioError::BrokenHeader`], [`AudioError::UnsupportedEncoding`],
/// [`AudioError::NoSamples`], or [`AudioError::TooLong`] above [`MAX_SAMPLES`] mono samples.
pub fn decode(bytes: &[u8]) -> Result<Audio, AudioError> {
    decode_named(bytes, Path::new("(memory)"))
}

fn decode_named(reader: impl Read, path: &Path) -> Result<Audio, AudioError> {
    let mut source = Source { reader, path, offset: 0 };
    let (layout, promised_bytes) = header(&mut source)?;
    data(&mut source, &layout, promised_bytes)
}

/// A reader that knows how far it is.
struct Source<'a, R> {
    reader: R,
    path: &'a Path,
    offset: u64,
}

impl<R: Read> Source<'_, R> {
    /// Fills `buffer` as far as the input goes and returns how far.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, AudioError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(AudioError::Read { path: self.path.to_path_buf(), source }),
            }
        }
        self.offset += filled as u64;
        Ok(filled)
    }

    /// Skips `count` bytes; `false` if the input ends before.
    fn skip(&mut self, count: u64) -> Result<bool, AudioError> {
        let mut buffer = [0; 4096];
        let mut left = count;
        while left > 0 {
            let part = left.min(buffer.len() as u64) as usize;
            if self.fill(&mut buffer[..part])? < part {
                return Ok(false);
            }
            left -= part as u64;
        }
        Ok(true)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Unsigned8,
    Signed16,
    Signed24,
    Signed32,
    Float32,
    Float64,
    ALaw,
    MuLaw,
}

impl Encoding {
    fn bytes(self) -> usize {
        match self {
            Self::Unsigned8 | Self::ALaw | Self::MuLaw => 1,
            Self::Signed16 => 2,
            Self::Signed24 => 3,
            Self::Signed32 | Self::Float32 => 4,
            Self::Float64 => 8,
        }
    }

    /// One sample from its [`bytes`](Self::bytes) little-endian bytes, full scale at 1.
    fn decode(self, b: &[u8]) -> f32 {
        match (self, b) {
            (Self::Unsigned8, &[a]) => (f32::from(a) - 128.0) / 128.0,
            (Self::Signed16, &[a, b]) => f32::from(i16::from_le_bytes([a, b])) / 32_768.0,
            (Self::Signed24, &[a, b, c]) => (i32::from_le_bytes([0, a, b, c]) >> 8) as f32 / 8_388_608.0,
            (Self::Signed32, &[a, b, c, d]) => i32::from_le_bytes([a, b, c, d]) as f32 / 2_147_483_648.0,
            (Self::Float32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
            (Self::Float64, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]) as f32,
            (Self::ALaw, &[a]) => a_law(a),
            (Self::MuLaw, &[a]) => mu_law(a),
            _ => 0.0,
        }
    }
}

/// ITU-T G.711 A-law: 13-bit magnitude in sign, 3-bit segment, 4-bit step; even bits inverted.
fn a_law(code: u8) -> f32 {
    let code = code ^ 0x55;
    let (segment, step) = ((code >> 4) & 7, i32::from(code & 15));
    let magnitude = match segment {
        0 => (step << 4) + 8,
        s => ((step << 4) + 0x108) << (s - 1),
    };
    let value = if code & 0x80 != 0 { magnitude } else { -magnitude };
    value as f32 / 32_768.0
}

/// ITU-T G.711 mu-law: 14-bit magnitude in sign, 3-bit segment, 4-bit step; all bits inverted.
fn mu_law(code: u8) -> f32 {
    let code = !code;
    let magnitude = ((i32::from(code & 15) << 3) + 0x84) << ((code >> 4) & 7);
    let value = magnitude - 0x84;
    (if code & 0x80 != 0 { -value } else { value }) as f32 / 32_768.0
}

#[derive(Debug)]
struct Layout {
    channels: usize,
    rate_hz: u32,
    encoding: Encoding,
    /// Bytes from one sample to the next: 24 bits may stand in 4 bytes.
    stride_bytes: usize,
}

impl Layout {
    fn frame_bytes(&self) -> usize {
        self.stride_bytes * self.channels
    }
}

/// Reads up to the first byte of sound. Returns the layout and the promised data length, `None` if
/// the writer did not know it.
fn header(source: &mut Source<impl Read>) -> Result<(Layout, Option<u64>), AudioError> {
    let mut riff = [0; 12];
    let got = source.fill(&mut riff)?;
    if got == 0 {
        return Err(AudioError::NotWav { reason: "the file is empty".into() });
    }
    let tag = &riff[..4];
    if got < 12 || !matches!(tag, b"RIFF" | b"RF64" | b"BW64") || &riff[8..12] != b"WAVE" {
        return Err(AudioError::NotWav {
            reason: format!("it starts with \"{}\"", riff[..got.min(4)].escape_ascii()),
        });
    }
    let mut layout = None;
    loop {
        let at = source.offset;
        let mut chunk = [0; 8];
        if source.fill(&mut chunk)? < 8 {
            return Err(AudioError::BrokenHeader {
                offset: at,
                reason: "the file ends before its data chunk".into(),
            });
        }
        let len = u32::from_le_bytes([chunk[4], chunk[5], chunk[6], chunk[7]]);
        match &chunk[..4] {
            b"fmt " => layout = Some(format_chunk(source, at, len)?),
            b"data" => {
                let layout = layout.ok_or_else(|| AudioError::BrokenHeader {
                    offset: at,
                    reason: "the data chunk comes before a format chunk".into(),
                })?;
                // 64-bit files keep 0xFFFFFFFF here too; their sound runs to the end of the file or
                // to a following chunk, which no recorder writes when it needed 64 bits.
                let promised = (len < UNKNOWN_LENGTH).then_some(u64::from(len));
                return Ok((layout, promised));
            }
            _ => {
                // Chunks start at even offsets.
                let skipped = u64::from(len) + u64::from(len & 1);
                if skipped > MAX_SKIPPED_BYTES || !source.skip(skipped)? {
                    return Err(AudioError::BrokenHeader {
                        offset: at,
                        reason: format!(
                            "chunk \"{}\" of {len} bytes reaches past the end of the file",
                            chunk[..4].escape_ascii()
                        ),
                    });
                }
            }
        }
    }
}

fn format_chunk(source: &mut Source<impl Read>, at: u64, len: u32) -> Result<Layout, AudioError> {
    let broken = |field_offset: u64, reason: String| {
        Err(AudioError::BrokenHeader { offset: at + 8 + field_offset, reason })
    };
    // 16 bytes of WAVEFORMAT, 2 of extension length, 22 of WAVEFORMATEXTENSIBLE.
    let mut bytes = [0u8; 40];
    let known = (len as usize).min(bytes.len());
    if len < 16 {
        return broken(0, format!("the format chunk has {len} bytes, at least 16 are needed"));
    }
    let rest = u64::from(len) - known as u64 + u64::from(len & 1);
    if source.fill(&mut bytes[..known])? < known || rest > MAX_SKIPPED_BYTES || !source.skip(rest)? {
        return broken(0, format!("the format chunk of {len} bytes reaches past the end of the file"));
    }
    let u16_at = |i: usize| u16::from_le_bytes([bytes[i], bytes[i + 1]]);
    let mut tag = u16_at(0);
    let channels = usize::from(u16_at(2));
    let rate_hz = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    let frame_bytes = usize::from(u16_at(12));
    let bits = u16_at(14);
    if tag == 0xFFFE {
        if known < 40 {
            return broken(0, format!("an extensible format chunk has 40 bytes, this one has {len}"));
        }
        tag = u16_at(24);
    }
    let encoding = match (tag, bits) {
        (1, 8) => Encoding::Unsigned8,
        (1, 16) => Encoding::Signed16,
        (1, 24) => Encoding::Signed24,
        (1, 32) => Encoding::Signed32,
        (3, 32) => Encoding::Float32,
        (3, 64) => Encoding::Float64,
        (6, 8) => Encoding::ALaw,
        (7, 8) => Encoding::MuLaw,
        _ => {
            return Err(AudioError::UnsupportedEncoding {
                encoding: format!("format tag {tag} with {bits} bits per sample"),
            });
        }
    };
    if channels == 0 {
        return broken(2, "0 channels".into());
    }
    if rate_hz == 0 {
        return broken(4, "a sample rate of 0 Hz".into());
    }
    let stride_bytes = frame_bytes / channels;
    if frame_bytes % channels != 0 || !(encoding.bytes()..=8).contains(&stride_bytes) {
        return broken(
            12,
            format!("{frame_bytes} bytes per frame do not hold {channels} samples of {bits} bits"),
        );
    }
    Ok(Layout { channels, rate_hz, encoding, stride_bytes })
}

fn data(
    source: &mut Source<impl Read>,
    layout: &Layout,
    promised_bytes: Option<u64>,
) -> Result<Audio, AudioError> {
    let frame_bytes = layout.frame_bytes();
    let sample_bytes = layout.encoding.bytes();
    let mut block = vec![0u8; frame_bytes * (65_536 / frame_bytes).max(1)];
    let mut left = promised_bytes.unwrap_or(u64::MAX);
    let mut samples = Vec::new();
    let (mut not_numbers, mut too_large) = (0u64, 0u64);
    while left > 0 {
        let wanted = left.min(block.len() as u64) as usize;
        let got = source.fill(&mut block[..wanted])?;
        for frame in block[..got].chunks_exact(frame_bytes) {
            let mut sum = 0.0f32;
            for sample in frame.chunks_exact(layout.stride_bytes) {
                // In a wider container the sample stands in the upper bytes (left-justified).
                let value = layout.encoding.decode(&sample[layout.stride_bytes - sample_bytes..]);
                if value.abs() <= MAX_LEVEL {
                    sum += value;
                } else if value.is_nan() {
                    not_numbers += 1;
                } else {
                    sum += value.signum();
                    too_large += 1;
                }
            }
            samples.push(sum / layout.channels as f32);
        }
        if samples.len() > MAX_SAMPLES {
            return Err(AudioError::TooLong { limit_samples: MAX_SAMPLES });
        }
        if got < wanted {
            break;
        }
        left -= got as u64;
    }
    if samples.is_empty() {
        return Err(AudioError::NoSamples);
    }
    let mut warnings = Vec::new();
    let promised_frames = promised_bytes.map(|bytes| bytes / frame_bytes as u64);
    let found_frames = samples.len() as u64;
    if let Some(promised_frames) = promised_frames.filter(|promised| *promised > found_frames) {
        warnings.push(Warning::Truncated { promised_frames, found_frames });
    }
    if not_numbers > 0 {
        warnings.push(Warning::NotANumber { samples: not_numbers });
    }
    if too_large > 0 {
        warnings.push(Warning::TooLarge { samples: too_large });
    }
    Ok(Audio { samples, rate_hz: layout.rate_hz, warnings })
}

/// Writes mono `samples` at `rate_hz` to `path`.
///
/// The file is written under a temporary name in the same folder and renamed at the end: at `path`
/// stands the old file or the whole new one, never a part. A symbolic link stays and the file it names is replaced.
/// Samples that are no number are written as 0.
///
/// # Errors
/// [`AudioError::Write`] with the system's reason (full disk, read-only folder), or when a folder, a pipe or a
/// device stands at `path`,
/// [`AudioError::TooLong`] above [`MAX_SAMPLES`].
pub fn write(path: &Path, samples: &[f32], rate_hz: u32, format: Format) -> Result<(), AudioError> {
    let failed = |source| AudioError::Write { path: path.to_path_buf(), source };
    if samples.len() > MAX_SAMPLES {
        return Err(AudioError::TooLong { limit_samples: MAX_SAMPLES });
    }
    let target = replaceable(path).map_err(failed)?;
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    // Without this, the file would be private to the user even after the rename.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.prefix(".wav-").tempfile_in(folder).map_err(failed)?;
    encode(BufWriter::new(file.as_file_mut()), samples, rate_hz, format).map_err(failed)?;
    // Who may read the old file may read the new one, and nobody else.
    if let Ok(old) = std::fs::metadata(&target) {
        file.as_file().set_permissions(old.permissions()).map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&target).map_err(|e| failed(e.error))?;
    Ok(())
}

/// The file that a rename may replace: what a link names, or a new one. A rename would put a file in the place of a
/// device or a pipe, for the whole system if root does it.
fn replaceable(path: &Path) -> Result<PathBuf, std::io::Error> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => std::fs::canonicalize(path),
        Ok(_) => Err(std::io::Error::other("a folder or a device stands there; choose another name")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(match std::fs::read_link(path) {
            // A link to what is not there yet means that.
            Ok(target) => path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => path.to_path_buf(),
        }),
        Err(error) => Err(error),
    }
}

fn encode(
    writer: impl Write + Seek,
    samples: &[f32],
    rate_hz: u32,
    format: Format,
) -> Result<(), std::io::Error> {
    let (bits_per_sample, sample_format) = match format {
        Format::Int16 => (16, hound::SampleFormat::Int),
        Format::Float32 => (32, hound::SampleFormat::Float),
    };
    let spec = hound::WavSpec { channels: 1, sample_rate: rate_hz, bits_per_sample, sample_format };
    let io = |e| match e {
        hound::Error::IoError(e) => e,
        other => std::io::Error::other(other),
    };
    let mut writer = hound::WavWriter::new(writer, spec).map_err(io)?;
    for &sample in samples {
        let sample = if sample.is_nan() { 0.0 } else { sample };
        match format {
            // Full scale is 32768, as when reading, so that reading and writing is lossless.
            Format::Int16 => {
                writer.write_sample((sample * 32_768.0).round().clamp(-32_768.0, 32_767.0) as i16)
            }
            Format::Float32 => writer.write_sample(sample),
        }
        .map_err(io)?;
    }
    writer.finalize().map_err(io)
}

#[cfg(test)]
#[path = "wav_tests.rs"]
mod tests;
