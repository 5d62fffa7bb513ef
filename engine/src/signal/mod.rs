//! Windows, STFT and mel spectrograms.
