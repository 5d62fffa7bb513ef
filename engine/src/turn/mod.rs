//! Turns: when the user has finished, what is answered when, and who may speak.
//!
//! | module | what it holds |
//! |---|---|
//! | [`endpoint`] | speech probabilities to start, pause and end of speech |

pub mod endpoint;
mod samples;

pub use samples::{LISTEN_RATE_HZ, Samples};
