//! What a display shows of a conversation: one value, made anew when something changes.

use std::sync::Arc;

use super::super::machine::Activity;
use super::super::message::{Stage, TurnNumber};
use crate::latency::{Metric, Reading, TurnRecord};

/// A conversation at one moment. Texts and lists are shared: a clone copies a few pointers.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Grows with every change.
    pub revision: u64,
    /// Who does what. [`Activity::Idle`] with [`MicrophoneState::Open`] means that the program listens for speech.
    pub activity: Activity,
    /// Whether the user can be heard.
    pub microphone: MicrophoneState,
    /// What was said and heard, oldest first; what is under way follows in `user` and `reply`.
    pub entries: Arc<Vec<Arc<Entry>>>,
    /// The user's words that have no entry yet, as far as they are recognised. They grow while the user speaks and
    /// may change.
    pub user: Arc<str>,
    /// The reply under way. Until the turn's end is sure it may be thrown away; show it once `heard_bytes` is more than 0
    /// or `activity` is [`Activity::Thinking`] or [`Activity::Speaking`].
    pub reply: Option<ReplyText>,
    /// Finished turns with their latencies, oldest first.
    pub records: Arc<Vec<Arc<TurnRecord>>>,
    /// What to show for each metric, in the order of [`Metric::ALL`]. A [`Reading::Live`] was true when the snapshot was
    /// made and runs on.
    pub readings: [Reading; Metric::ALL.len()],
    /// What the user was told, newest last.
    pub notices: Arc<Vec<Notice>>,
    /// Whether the models of transcription, reply and speech are there.
    pub readiness: [Readiness; 3],
    /// Loudness at the microphone, behind the echo canceller.
    pub input_level: Level,
    /// Loudness of what is played.
    pub output_level: Level,
}

impl Default for Snapshot {
    /// A conversation that has not begun, and no models yet.
    fn default() -> Self {
        Self {
            revision: 0,
            activity: Activity::Idle,
            microphone: MicrophoneState::Open,
            entries: Arc::default(),
            user: "".into(),
            reply: None,
            records: Arc::default(),
            readings: [Reading::Unknown; Metric::ALL.len()],
            notices: Arc::default(),
            readiness: [const { Readiness::Loading }; 3],
            input_level: Level::SILENCE,
            output_level: Level::SILENCE,
        }
    }
}

impl Snapshot {
    /// What to show for `metric`.
    pub fn reading(&self, metric: Metric) -> Reading {
        self.readings[metric as usize]
    }

    /// Whether the model of `stage` is there.
    pub fn readiness(&self, stage: Stage) -> &Readiness {
        &self.readiness[stage as usize]
    }
}

/// Whether the user can be heard, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MicrophoneState {
    /// It is listened to.
    #[default]
    Open,
    /// The user has switched it off.
    Muted,
    /// It is listened to while a key is down, and the key is up.
    KeyUp,
    /// It gives exact zeros only, which no room does: a switch, a wrong device.
    NoSignal,
    /// There is none.
    Missing,
}

/// What was said and what was heard of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The attempt that was heard; [`TurnRecord::id`] is the same number.
    pub turn: TurnNumber,
    /// The user's words.
    pub user: Arc<str>,
    /// The answer as far as it was written.
    pub reply: ReplyText,
    /// It was stopped before its end.
    pub is_interrupted: bool,
}

/// The words of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplyText {
    /// As far as it is written.
    pub text: Arc<str>,
    /// So much of it was heard, in bytes from its start; between two words.
    pub heard_bytes: usize,
}

/// Something the user should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Different for each notice, growing.
    pub number: u64,
    /// What it is about.
    pub kind: NoticeKind,
    /// What happened and what to do, for people.
    pub text: Arc<str>,
}

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// A stage failed in a turn; the conversation goes on.
    Failed(Stage),
    /// Recognition takes longer than speech.
    Slow,
    /// The model's memory was full: the oldest messages were left out.
    Forgotten,
    /// A device came, went or does not work.
    Sound,
    /// A model could not be loaded, or another one is used.
    Model,
}

/// Whether a stage has its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It is being loaded; what is asked meanwhile is done later.
    Loading,
    /// It is there.
    Ready,
    /// It could not be loaded, for this reason.
    Failed(Arc<str>),
    /// The device that it was on is gone. What is asked waits for another model, which whoever installs models has to bring.
    Lost {
        /// Which of the models that were installed for this stage, from 1 on.
        model: u64,
        /// What happened, for people.
        reason: Arc<str>,
    },
}

/// Loudness as root mean square in decibels of full scale, in steps of 3 from -45 on: the noise of a quiet room, which
/// never stands still, changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(i8);

impl Level {
    /// The lowest: -45 dB and below.
    pub const SILENCE: Self = Self(-45);

    /// The level of `samples`.
    pub fn of(samples: &[f32]) -> Self {
        let power = samples.iter().map(|s| s * s).sum::<f32>() / samples.len().max(1) as f32;
        let db = 10.0 * power.max(1e-12).log10();
        // Saturating, and what is no number is 0 dB: too loud rather than silent.
        Self(((db / 3.0).round() * 3.0).clamp(-45.0, 0.0) as i8)
    }

    /// Decibels of full scale, -45 to 0.
    pub fn dbfs(self) -> f32 {
        f32::from(self.0)
    }

    /// 0 for silence, 1 for full scale.
    pub fn fraction(self) -> f32 {
        1.0 + f32::from(self.0) / 45.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_decibels_in_steps() {
        assert_eq!(Level::of(&[]), Level::SILENCE);
        assert_eq!(Level::of(&[0.0; 100]), Level::SILENCE);
        assert_eq!(Level::of(&[1.0; 100]).dbfs(), 0.0);
        assert_eq!(Level::of(&[0.1; 100]).dbfs(), -21.0);
        assert_eq!(Level::of(&[7.0; 100]).fraction(), 1.0);
        // Noise of a room at -50 dB.
        assert_eq!(Level::of(&[0.0032; 100]), Level::SILENCE);
    }
}
