//! What the turn machine is told and what it tells the pipeline to do.

use std::sync::Arc;

use super::Samples;
use super::endpoint::SpeechEvent;

/// The number of one attempt at answering: of its transcription, its reply and its sound.
///
/// When speech goes on after a pause, or the user speaks before the first sound, the next attempt gets
/// the next number. Whatever still arrives with the old one is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TurnNumber(pub u64);

/// A stage of the pipeline that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Speech to text.
    Transcribe,
    /// Text to answer.
    Reply,
    /// Answer to speech.
    Speak,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The user started, paused, ended.
    Speech(SpeechEvent),
    /// The user sent a text instead of speaking.
    Typed(Arc<str>),
    /// The user asked for silence with a key or a button.
    Stop,
    /// The recogniser's answer to [`Effect::Transcribe`]; empty if it heard no words.
    Transcript {
        /// Which attempt.
        turn: TurnNumber,
        /// The words.
        text: Arc<str>,
    },
    /// The reply has another clause.
    Clause {
        /// Which attempt.
        turn: TurnNumber,
        /// The clause as it is to be spoken.
        text: Arc<str>,
    },
    /// The reply has no more clauses.
    ReplyDone {
        /// Which attempt.
        turn: TurnNumber,
    },
    /// The synthesiser has the next piece of sound of a clause.
    Chunk {
        /// Which attempt.
        turn: TurnNumber,
        /// Which clause, counted from 0 in its turn.
        clause: usize,
        /// Length in samples of the synthesiser's rate.
        samples: u64,
        /// How much of the clause's text is spoken by the end of this chunk, in bytes. The
        /// synthesiser knows it from its durations.
        spoken_bytes: usize,
    },
    /// The synthesiser has no more sound of a clause (perhaps it never had any).
    ClauseSpoken {
        /// Which attempt.
        turn: TurnNumber,
        /// Which clause.
        clause: usize,
    },
    /// So much of the turn's sound has been at the loudspeaker: samples taken by the device minus its latency.
    Played {
        /// Which attempt.
        turn: TurnNumber,
        /// Samples of the synthesiser's rate since the turn's first one.
        samples: u64,
    },
    /// A stage gave up. The turn goes on with what is there.
    Failed {
        /// Which attempt.
        turn: TurnNumber,
        /// Which stage.
        stage: Stage,
        /// What it said.
        reason: Arc<str>,
    },
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The whole reply was heard.
    Answered,
    /// The user or a key stopped it after its first sound.
    Interrupted,
    /// It was thrown away before its first sound: speech went on, or there was nothing to answer.
    Discarded,
}

/// What was said and heard: what the conversation's history keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The user's words.
    pub user: Arc<str>,
    /// The words of the reply that were heard to their end.
    pub heard: Arc<str>,
    /// The reply was longer than what was heard.
    pub interrupted: bool,
}

/// Something to do, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start the latency record of an attempt. Exactly one [`Closed`](Self::Closed) follows, before the next one.
    Begin {
        /// Which attempt.
        turn: TurnNumber,
        /// The sample after the last voiced one; `None` for typed text.
        voiced_end: Option<Samples>,
    },
    /// Recognise the microphone's samples `from..to`.
    Transcribe {
        /// Which attempt.
        turn: TurnNumber,
        /// First sample.
        from: Samples,
        /// The sample after the last.
        to: Samples,
    },
    /// The user has finished; what was made ahead may be heard from now on.
    EndOfTurn {
        /// Which attempt.
        turn: TurnNumber,
        /// Silence that was waited for after the last voiced sample.
        waited: Samples,
    },
    /// Answer `text`, in clauses.
    Reply {
        /// Which attempt.
        turn: TurnNumber,
        /// The user's words.
        text: Arc<str>,
    },
    /// The reply shall rest: the processor is needed for the first sound.
    PauseReply {
        /// Which attempt.
        turn: TurnNumber,
    },
    /// The reply may go on.
    ContinueReply {
        /// Which attempt.
        turn: TurnNumber,
    },
    /// Speak a clause.
    Speak {
        /// Which attempt.
        turn: TurnNumber,
        /// Number of the clause in its turn.
        clause: usize,
        /// The clause.
        text: Arc<str>,
    },
    /// Hand a chunk to the output.
    Play {
        /// Which attempt.
        turn: TurnNumber,
        /// Number of the chunk in its turn, counted from 0 in the order of arrival.
        chunk: usize,
    },
    /// Lower the output's gain while it is not sure that the user speaks.
    Duck {
        /// Which attempt.
        turn: TurnNumber,
    },
    /// Let the output wait with what it has: the first sound is not out and the user may be speaking.
    Hold {
        /// Which attempt.
        turn: TurnNumber,
    },
    /// Full gain, no wait: it was not the user.
    Resume {
        /// Which attempt.
        turn: TurnNumber,
    },
    /// Fade out and drop everything queued of this turn; its number is stale from now on.
    Silence {
        /// Which attempt.
        turn: TurnNumber,
    },
    /// All stages shall give up this turn.
    Cancel {
        /// Which attempt.
        turn: TurnNumber,
    },
    /// Add to the conversation's history.
    Remember(Exchange),
    /// The attempt is over.
    Closed {
        /// Which attempt.
        turn: TurnNumber,
        /// How it ended.
        outcome: Outcome,
    },
    /// Tell the user that a stage failed.
    Notice {
        /// Which attempt.
        turn: TurnNumber,
        /// Which stage.
        stage: Stage,
        /// What it said.
        reason: Arc<str>,
    },
}
