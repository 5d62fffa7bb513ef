//! The one error type of this crate: what went wrong, where, and what the caller can do.

use std::path::PathBuf;

/// Why a sound could not be read, written or converted.
///
/// Every variant says what to do next: choose another file, convert it, or report a full disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AudioError {
    /// The file could not be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file could not be written; nothing stands at `path` that was not there before.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The bytes are not a WAV file. Convert the sound to WAV first.
    #[error("not a WAV file: {reason}")]
    NotWav {
        /// What was found in place of a WAV header.
        reason: String,
    },
    /// A WAV file whose header contradicts itself.
    #[error("broken WAV header at byte {offset}: {reason}")]
    BrokenHeader {
        /// Byte offset of the field from the start of the file.
        offset: u64,
        /// Which field, what it holds and what it may hold.
        reason: String,
    },
    /// A WAV file in an encoding that is not read. Convert it to 16-bit PCM.
    #[error("unsupported WAV encoding: {encoding}; convert the file to 16-bit PCM")]
    UnsupportedEncoding {
        /// Format tag and bits as the file gives them.
        encoding: String,
    },
    /// The file has a valid header and no sound in it.
    #[error("the WAV file holds no samples")]
    NoSamples,
    /// More sound than this program will hold in memory. Cut the file into parts.
    #[error("too long: more than {limit_samples} samples; cut it into shorter parts")]
    TooLong {
        /// The limit, in mono samples.
        limit_samples: usize,
    },
    /// A sample rate outside what is converted.
    #[error(
        "sample rate {rate_hz} Hz is outside {} to {} Hz",
        crate::resample::MIN_RATE_HZ,
        crate::resample::MAX_RATE_HZ
    )]
    UnsupportedRate {
        /// The rate asked for, in Hz.
        rate_hz: u32,
    },
    /// The resampler refused; a defect of this program rather than of the input.
    #[error("cannot resample from {from_hz} Hz to {to_hz} Hz: {reason}")]
    Resample {
        /// Input rate in Hz.
        from_hz: u32,
        /// Output rate in Hz.
        to_hz: u32,
        /// What the resampler said.
        reason: String,
    },
}
