//! What a running conversation is told.

use std::sync::Arc;

use super::super::TurnConfig;
use super::super::history::History;
use super::super::message::Stage;
use super::snapshot::NoticeKind;
use super::stages::{Recogniser, Voice, Writer};

/// What the user, or who looks after models and devices, wants from a conversation under way.
pub enum Command {
    /// Answer a text as if it had been spoken.
    Type(Arc<str>),
    /// Be silent: the reply stops, or what is worked on is dropped.
    Stop,
    /// When the microphone is listened to.
    Listen(Listening),
    /// The key of [`Listening::WhileKeyDown`] went down or up. When it goes up, the user has finished.
    TalkKey(Key),
    /// How turns are taken; what is under way goes on under it.
    SetTurns(TurnConfig),
    /// Go on with another conversation: what is under way is dropped, and the entries are those of `history`.
    SetHistory(History),
    /// What the assistant is told about itself, from the next reply on.
    SetInstructions(Arc<str>),
    /// A model is there, or in place of another; it is used from the next piece of work on.
    Install(Model),
    /// A model is being loaded. Work for its stage waits from now on.
    Await(Stage),
    /// A model is not there and will not come, for a reason that people can read. Work for its stage fails.
    Refuse(Stage, Arc<str>),
    /// What is known of the microphone.
    Signal(Signal),
    /// Tell the user something.
    Tell(NoticeKind, Arc<str>),
}

/// A model for a stage.
pub enum Model {
    /// For [`Stage::Transcribe`].
    Recogniser(Box<dyn Recogniser>),
    /// For [`Stage::Reply`].
    Writer(Box<dyn Writer>),
    /// For [`Stage::Speak`].
    Voice(Box<dyn Voice>),
}

/// When the microphone is listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listening {
    /// Always.
    #[default]
    Always,
    /// While a key is down.
    WhileKeyDown,
    /// Never: muted.
    Never,
}

/// A key or a button that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// It is down.
    Down,
    /// It is up.
    Up,
}

/// What is known of the microphone's signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Signal {
    /// There is one.
    #[default]
    Present,
    /// Exact zeros for long.
    Zeros,
    /// There is no microphone.
    NoDevice,
}
