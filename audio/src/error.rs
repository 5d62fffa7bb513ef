//! The one error type of this crate: what went wrong, where, and what the caller can do.

use std::fmt;
use std::path::PathBuf;

/// Where sound goes, as the program sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From a microphone.
    Input,
    /// To a loudspeaker or headphones.
    Output,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "microphone",
            Self::Output => "speaker",
        })
    }
}

/// Why a sound could not be read, written, converted, recorded or played.
///
/// Every variant says what to do next: choose another file, convert it, report a full disk, or plug a device in.
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
    /// There is no such device. Plug one in; nothing has to be restarted.
    #[error("no {direction} was found; plug one in or switch it on in the system's sound settings")]
    NoDevice {
        /// What was looked for.
        direction: Direction,
    },
    /// The device that was chosen is not there. Plug it in again, or choose another.
    #[error("the {direction} \"{device}\" is not there; plug it in again or choose another")]
    DeviceGone {
        /// What it was.
        direction: Direction,
        /// Its name, or its id if it has not been seen yet.
        device: String,
    },
    /// Another program has the device for itself. Close that one, or choose another device.
    #[error("the {direction} \"{device}\" is in use by another program; close that or choose another device")]
    DeviceBusy {
        /// What it is.
        direction: Direction,
        /// Its name.
        device: String,
    },
    /// The system does not let this program have the device. Allow it in the system's settings.
    #[error(
        "the system denies access to the {direction} \"{device}\"; allow it in the settings for privacy or sound"
    )]
    DeviceDenied {
        /// What it is.
        direction: Direction,
        /// Its name.
        device: String,
    },
    /// The device offers nothing that can be used, or its driver failed. Choose another.
    #[error("the {direction} \"{device}\" does not work: {reason}; choose another")]
    DeviceFailed {
        /// What it is.
        direction: Direction,
        /// Its name.
        device: String,
        /// What the system said.
        reason: String,
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
