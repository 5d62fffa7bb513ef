//! What the pipeline runs, as it sees it: models behind four traits, sound behind two. Tests script them.

use std::sync::Arc;
use std::time::Duration;

use super::super::conductor::Output;
use super::super::endpoint::CHUNK;
use super::super::history::History;
use super::super::message::TurnNumber;
use crate::backends::CancelToken;
use crate::models::silero::SileroVad;
use crate::models::{ModelError, Remedy};
use crate::stages::narrate::{NarrateEvent, Narrator};
use crate::stages::reply::{Replier, Reply, ReplyEvent};
use crate::stages::transcribe::{TranscribeEvent, Transcriber};
use crate::text::clauses::Clause;

/// Samples of one chunk of the microphone.
pub const CHUNK_SAMPLES: usize = CHUNK.0 as usize;

/// Why a stage did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// Its token was set.
    #[error("cancelled")]
    Cancelled,
    /// It can't, for a reason that people can read.
    #[error("{0}")]
    Failed(String),
    /// The device that its model is on is gone, for a reason that people can read: the work can be done again by another
    /// model.
    #[error("{0}")]
    Lost(String),
}

impl From<ModelError> for StageError {
    fn from(error: ModelError) -> Self {
        match error.remedy() {
            Some(Remedy::Reopen) => Self::Lost(error.to_string()),
            _ if error.is_cancelled() => Self::Cancelled,
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// Tells speech from other sound.
pub trait Detector: Send {
    /// The probability, 0 to 1, that the stream's next chunk is speech.
    ///
    /// # Errors
    /// What the device says.
    fn score(&mut self, chunk: &[f32; CHUNK_SAMPLES]) -> Result<f32, StageError>;
    /// The next chunk is the first of another stream.
    fn restart(&mut self);
}

/// Turns sound into words.
pub trait Recogniser: Send {
    /// The words in `samples` (16 kHz, mono, at most 30 s); empty if there are none.
    ///
    /// # Errors
    /// Cancelled, or what the model says.
    fn recognise(
        &mut self,
        samples: &[f32],
        on_event: &mut dyn FnMut(TranscribeEvent),
        cancel: &CancelToken,
    ) -> Result<String, StageError>;
}

/// Writes replies.
pub trait Writer: Send {
    /// Does work ahead that the next reply needs in any case.
    ///
    /// # Errors
    /// Cancelled, or what the model says.
    fn prepare(&mut self, history: &History, cancel: &CancelToken) -> Result<(), StageError>;
    /// Answers `user`, going on behind what is `written` of the answer: empty but where another model was lost in its midst.
    /// May forget the oldest of `history`, and says so; does not add to it.
    ///
    /// # Errors
    /// Cancelled, or what the model says.
    fn write(
        &mut self,
        history: &mut History,
        user: &str,
        written: &str,
        on_event: &mut dyn FnMut(ReplyEvent<'_>),
        cancel: &CancelToken,
    ) -> Result<Reply, StageError>;
    /// It was torn out of its work (a panic): nothing that it keeps is to be relied on.
    fn restart(&mut self);
}

/// Speaks.
pub trait Voice: Send {
    /// The next clause is the first of another reply.
    fn begin(&mut self);
    /// Speaks a clause: gives its sound (24 kHz, mono) in pieces, each with how much of the clause's text is spoken by
    /// its end, in bytes.
    ///
    /// # Errors
    /// Cancelled, or what the model says.
    fn speak(
        &mut self,
        clause: &Clause,
        on_sound: &mut dyn FnMut(&[f32], usize),
        cancel: &CancelToken,
    ) -> Result<(), StageError>;
}

/// What came from a microphone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// More sound.
    Sound,
    /// Nothing in the time given.
    Nothing,
    /// The stream is over: a recording has ended.
    End,
}

/// Gives what the user's microphone hears: 16 kHz, mono, without echo.
pub trait Microphone: Send {
    /// Appends what has come to `out`, waiting for it at most `timeout`.
    ///
    /// # Errors
    /// What the sound system says, for people. The stream is then over.
    fn wait(&mut self, out: &mut Vec<f32>, timeout: Duration) -> Result<Heard, String>;

    /// How long ago the last sample given was at the microphone, if the device tells. Otherwise it is estimated from when
    /// samples come, which leaves out what all of them are late by.
    fn age(&self) -> Option<Duration> {
        None
    }
}

/// Plays replies. No method may wait.
pub trait Loudspeaker: Send {
    /// Plays `sound` (24 kHz, mono) behind what is queued. Another turn than before starts at full gain, and the former one
    /// is stale.
    fn queue(&mut self, turn: TurnNumber, sound: Arc<[f32]>);
    /// Changes the gain, if `turn` is the current one.
    fn set_output(&mut self, turn: TurnNumber, output: Output);
    /// Fades `turn` out and drops what is queued of it.
    fn silence(&mut self, turn: TurnNumber);
    /// Samples of `turn` that have been heard: taken by the device, its latency later. All that was queued counts as heard
    /// when it was.
    fn heard(&mut self, turn: TurnNumber) -> u64;
}

impl Detector for SileroVad {
    fn score(&mut self, chunk: &[f32; CHUNK_SAMPLES]) -> Result<f32, StageError> {
        Ok(self.chunk(chunk)?)
    }

    fn restart(&mut self) {
        self.reset();
    }
}

impl Recogniser for Transcriber {
    fn recognise(
        &mut self,
        samples: &[f32],
        on_event: &mut dyn FnMut(TranscribeEvent),
        cancel: &CancelToken,
    ) -> Result<String, StageError> {
        Ok(self.transcribe(samples, on_event, Some(cancel))?.text)
    }
}

impl Writer for Replier {
    fn prepare(&mut self, history: &History, cancel: &CancelToken) -> Result<(), StageError> {
        Ok(Self::prepare(self, history, Some(cancel))?)
    }

    fn write(
        &mut self,
        history: &mut History,
        user: &str,
        written: &str,
        on_event: &mut dyn FnMut(ReplyEvent<'_>),
        cancel: &CancelToken,
    ) -> Result<Reply, StageError> {
        Ok(self.go_on(history, user, written, on_event, Some(cancel))?)
    }

    fn restart(&mut self) {
        self.forget();
    }
}

impl Voice for Narrator {
    fn begin(&mut self) {
        self.stop();
    }

    fn speak(
        &mut self,
        clause: &Clause,
        on_sound: &mut dyn FnMut(&[f32], usize),
        cancel: &CancelToken,
    ) -> Result<(), StageError> {
        let mut spoken_bytes = 0;
        let mut on_event = |event: NarrateEvent<'_>| match event {
            NarrateEvent::Clause { until, .. } => {
                spoken_bytes = (clause.text.len() as f32 * until).round() as usize;
            }
            NarrateEvent::Sound(samples) => {
                // Nothing is spoken in the pause behind it: its words count as heard before that.
                let end = samples.iter().rposition(|sample| *sample != 0.0).map_or(0, |last| last + 1);
                let (words, pause) = samples.split_at(end);
                on_sound(words, spoken_bytes);
                on_sound(pause, spoken_bytes);
            }
        };
        Ok(self.clause(clause, &mut on_event, Some(cancel))?)
    }
}
