//! Turns: when the user has finished, what is answered when, and who may speak.
//!
//! | module | what it holds |
//! |---|---|
//! | [`conductor`] | runs endpoint and machine on real or scripted stages |
//! | [`endpoint`] | speech probabilities to start, pause and end of speech |
//! | [`history`] | the conversation within the model's context |
//! | [`machine`] | the turn machine: events in, effects out |
//! | [`message`] | those events and effects |
//! | [`pipeline`] | runs the conductor on models, microphone and loudspeaker |
//! | [`unfinished`] | whether words sound as if more were to come |
//!
//! Endpoint and machine are pure functions of state, time and event, so that their cases are tables.

pub mod conductor;
mod config;
pub mod endpoint;
pub mod history;
pub mod machine;
pub mod message;
pub mod pipeline;
mod reply;
mod samples;
#[cfg(test)]
mod tests;
pub mod unfinished;
mod utterance;

pub use config::{Processors, Speculation, TurnConfig};
pub use samples::{LISTEN_RATE_HZ, Samples};
