//! Audio devices, streams, resampling and WAV files.
