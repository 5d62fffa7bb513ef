//! The conversation under way: the turn machine on real stages, in threads.
//!
//! ```text
//! microphone ─▶ hearing (VAD) ─┐                       ┌─▶ recogniser ─┐
//! commands ────────────────────┼─▶ core (conductor) ───┼─▶ writer ─────┼─▶ back to the core
//! loudspeaker: what was heard ─┘   owns all decisions  └─▶ voice ──────┘
//!                                        └─▶ Snapshot ─▶ display
//! ```
//!
//! The core takes one message at a time and never waits for a stage; a stage takes one piece of work at a time and never
//! decides. Each piece carries its turn's number and token: cancelling sets the token, and what arrives all the same is
//! late and changes nothing. Models come and go under a running conversation ([`Command::Install`]); what is asked before
//! they are there waits.
//!
//! A stage that fails, or panics, costs its piece of work and is told as a [`Notice`]; the conversation goes on.

mod command;
mod snapshot;
mod stages;

pub use command::{Command, Key, Listening, Model, Signal};
pub use snapshot::{Entry, Level, MicrophoneState, Notice, NoticeKind, Readiness, ReplyText, Snapshot};
pub use stages::{
    CHUNK_SAMPLES, Detector, Heard, Loudspeaker, Microphone, Recogniser, StageError, Voice, Writer,
};
