//! Sound as Repartee handles it: WAV files, sample rates and, with devices present, streams.
//!
//! Inside the program all sound is mono `f32` between -1 and 1. This crate brings it there from
//! files and devices of any rate, format and channel count, and back:
//!
//! | module | what it holds |
//! |---|---|
//! | [`wav`] | reading WAV files as mono, writing them safely |
//! | `devices` | microphones and speakers of the system, kept open (feature `devices`, on by default) |
//! | [`microphone`] | what the program hears, whatever devices come and go |
//! | [`speaker`] | replies are queued, and what was heard of them is asked |
//! | [`input`] | from the device's callback to the program |
//! | [`output`] | from the synthesiser to the device's callback |
//! | [`echo`] | the loudspeaker's sound taken out of the microphone's |
//! | [`clock`] | what was lost, and the real rate, by the clock |
//! | [`resample`] | whole signals and streams from any rate to any rate |
//!
//! ```no_run
//! # fn main() -> Result<(), repartee_audio::AudioError> {
//! use repartee_audio::{resample, wav};
//! let question = wav::read_mono("question.wav".as_ref())?;
//! let at_16k = resample::resample(&question.samples, question.rate_hz, 16_000)?;
//! wav::write("question16.wav".as_ref(), &at_16k, 16_000, wav::Format::Int16)?;
//! # Ok(())
//! # }
//! ```

pub mod clock;
#[cfg(feature = "devices")]
pub mod devices;
pub mod echo;
mod error;
pub mod input;
pub mod microphone;
pub mod output;
pub mod resample;
pub mod speaker;
pub mod wav;

pub use error::{AudioError, Direction};
