//! Windows, STFT and mel spectrograms.

mod mel;

pub use mel::{LogMel, mel_filters};
