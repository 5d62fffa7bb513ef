//! What a front end shows and what it may ask for.

use std::sync::Arc;
use std::time::Duration;

use repartee_audio::Direction;
use repartee_engine::backends::Backend;
use repartee_engine::models::kokoro;
use repartee_engine::stages::speak::SpeechSettings;
use repartee_engine::turn::message::{Exchange, Stage};
use repartee_engine::turn::pipeline::{self, Key, Listening, Readiness};
use repartee_engine::turn::{Samples, Speculation, TurnConfig};

use crate::commands::setup::BackendName;

/// Everything a front end shows. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// Grows with every change of any part.
    pub(crate) revision: u64,
    /// The conversation: who speaks, words, latencies, notices, levels.
    pub(crate) conversation: Arc<pipeline::Snapshot>,
    /// Models, devices and settings in force.
    pub(crate) setup: Arc<Setup>,
}

/// What the conversation runs on.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Setup {
    /// Models of transcription, reply and speech, in this order.
    pub(crate) stages: Vec<StageInfo>,
    /// The microphone in use; `None` if there is none.
    pub(crate) input: Option<String>,
    /// The speaker in use; `None` if there is none.
    pub(crate) output: Option<String>,
    /// What was asked for.
    pub(crate) settings: Settings,
    /// What does or did not work, oldest first.
    pub(crate) troubles: Vec<Trouble>,
}

/// Something beside the conversation that does not work as it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trouble {
    /// Different for each, growing, and new when it happens again.
    pub(crate) number: u64,
    /// What it is about; the next one about the same takes its place.
    pub(crate) about: About,
    /// What happened and what to do, for people.
    pub(crate) text: Arc<str>,
    /// How often it happened in a row.
    pub(crate) times: u32,
    /// All is well again, or something newer is the matter.
    pub(crate) is_over: bool,
}

/// What a trouble is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// No device, or one that does not work.
    Device(Direction),
    /// Another device than the chosen one.
    Fallback(Direction),
    /// Sound was lost.
    Loss,
    /// The chosen voice.
    Voice,
    /// A device that computes was lost and opened again.
    Reopened,
    /// The processor computes in the place of another device.
    GivenUp,
    /// A stage's model has no room on its device.
    Room(Stage),
}

/// So many are remembered.
const KEPT_TROUBLES: usize = 100;

impl Setup {
    /// Nothing is loaded or open yet.
    pub(super) fn of(settings: &Settings) -> Self {
        let stages = [Stage::Transcribe, Stage::Reply, Stage::Speak].map(|stage| StageInfo {
            stage,
            model: settings.model(stage).into(),
            backend: String::new(),
            computes: String::new(),
            readiness: Readiness::Loading,
        });
        Self { stages: stages.into(), settings: settings.clone(), ..Self::default() }
    }

    /// What is the matter with something from now on; `None` if all is well with it.
    pub(super) fn set_trouble(&mut self, about: About, text: Option<Arc<str>>) {
        let number = self.troubles.last().map_or(1, |last| last.number + 1);
        let before = self.troubles.iter_mut().rev().find(|t| t.about == about && !t.is_over);
        let mut times = 1;
        if let Some(before) = before {
            before.is_over = true;
            if text.as_ref() == Some(&before.text) {
                times += before.times;
            }
        }
        if let Some(text) = text {
            self.troubles.push(Trouble { number, about, text, times, is_over: false });
            let surplus = self.troubles.len().saturating_sub(KEPT_TROUBLES);
            self.troubles.drain(..surplus);
        }
    }

    /// Whether a stage can be used from now on, and what computes it if so.
    pub(super) fn set_stage(&mut self, stage: Stage, backend: Option<&dyn Backend>, readiness: Readiness) {
        for info in self.stages.iter_mut().filter(|info| info.stage == stage) {
            info.backend = backend.map(Backend::name).unwrap_or_default();
            info.computes = backend.map(Backend::description).unwrap_or_default();
            info.readiness = readiness.clone();
        }
    }

    pub(super) fn set_settings(&mut self, settings: &Settings) {
        for info in &mut self.stages {
            info.model = settings.model(info.stage).into();
        }
        self.settings = settings.clone();
    }
}

/// A stage and what runs it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StageInfo {
    /// Which.
    pub(crate) stage: Stage,
    /// The model's name in the catalogue.
    pub(crate) model: String,
    /// What really computes, with its kernels; empty while it is loaded.
    pub(crate) backend: String,
    /// The same with all that is known of the device; empty while it is loaded.
    pub(crate) computes: String,
    /// Whether it can be used.
    pub(crate) readiness: Readiness,
}

/// Which device to use.
pub(crate) use repartee_audio::devices::Choice as DeviceChoice;

/// Everything that can be set, with the defaults of the program.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    /// Recogniser.
    pub(crate) stt: String,
    /// Language model.
    pub(crate) llm: String,
    /// Voice, or a blend of voices.
    pub(crate) voice: String,
    /// 1 is the voice's own speed.
    pub(crate) speed: f32,
    /// Code of the language spoken.
    pub(crate) language: String,
    /// What the assistant is told about itself; `None` for the usual words and the time of day.
    pub(crate) instructions: Option<String>,
    /// Tokens of memory for the conversation.
    pub(crate) context: usize,
    /// Most tokens of a reply.
    pub(crate) max_tokens: usize,
    /// 0 always takes the most likely token.
    pub(crate) temperature: f32,
    /// Equal seeds give equal replies.
    pub(crate) seed: u64,
    /// What computes transcription, reply and speech.
    pub(crate) backends: [BackendName; 3],
    /// Silence after which a turn ends.
    pub(crate) end_of_turn: Duration,
    /// What is made before the user has finished.
    pub(crate) speculation: Speculation,
    /// When the microphone is listened to.
    pub(crate) listening: Listening,
    /// The microphone.
    pub(crate) input: DeviceChoice,
    /// The speaker.
    pub(crate) output: DeviceChoice,
    /// There is no echo: the canceller is off.
    pub(crate) headphones: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stt: "whisper-base".into(),
            llm: "qwen2.5-coder-0.5b".into(),
            voice: crate::commands::setup::VOICE.into(),
            speed: 1.0,
            language: "en".into(),
            instructions: None,
            context: 4096,
            max_tokens: 200,
            temperature: 0.0,
            seed: 0,
            backends: [BackendName::Auto; 3],
            end_of_turn: Duration::from_millis(500),
            speculation: Speculation::default(),
            listening: Listening::default(),
            input: DeviceChoice::default(),
            output: DeviceChoice::default(),
            headphones: false,
        }
    }
}

/// Silences after which a turn may be set to end: less cuts people off, more is no conversation.
pub(crate) const END_OF_TURN: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(200)..=Duration::from_millis(3_000);

impl Settings {
    /// With what lies outside its range brought into it.
    pub(super) fn within_limits(mut self) -> Self {
        self.end_of_turn = self.end_of_turn.clamp(*END_OF_TURN.start(), *END_OF_TURN.end());
        let speed = if self.speed.is_finite() { self.speed } else { 1.0 };
        self.speed = speed.clamp(*kokoro::SPEEDS.start(), *kokoro::SPEEDS.end());
        self.context = self.context.clamp(256, 1 << 20);
        self.max_tokens = self.max_tokens.clamp(1, self.context);
        self
    }

    /// The model of a stage.
    pub(crate) fn model(&self, stage: Stage) -> &str {
        match stage {
            Stage::Transcribe => &self.stt,
            Stage::Reply => &self.llm,
            Stage::Speak => "kokoro-82m",
        }
    }

    /// How turns are taken.
    pub(crate) fn turns(&self) -> TurnConfig {
        let mut turns = TurnConfig { speculation: self.speculation, ..TurnConfig::default() };
        let ms = u64::try_from(self.end_of_turn.as_millis()).unwrap_or(u64::MAX);
        turns.endpoint.hangover = Samples::from_ms(ms);
        turns
    }

    /// How the voice speaks.
    pub(super) fn speech(&self) -> SpeechSettings {
        SpeechSettings { speed: self.speed, seed: self.seed }
    }

    /// What the assistant is told about itself.
    pub(super) fn system_prompt(&self) -> String {
        match &self.instructions {
            Some(text) => text.clone(),
            None => crate::commands::talk::instructions(&jiff::ZonedDateTime::now()),
        }
    }
}

/// What a front end may ask for. None of it waits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// Answer a text as if it had been spoken.
    Type(String),
    /// Be silent.
    Stop,
    /// The push-to-talk key or button.
    TalkKey(Key),
    /// Put these settings in force: only what differs is changed, and only models that differ are loaded anew.
    Set(Box<Settings>),
    /// Begin a new conversation.
    Clear,
    /// Go on with a conversation in which this was said.
    GoOn(Vec<Exchange>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_counts_ends_and_makes_room_for_the_next() {
        let mut setup = Setup::default();
        let speaker = About::Device(Direction::Output);
        let open = |setup: &Setup| -> Vec<(u64, u32, String)> {
            let open = setup.troubles.iter().filter(|t| !t.is_over);
            open.map(|t| (t.number, t.times, t.text.to_string())).collect()
        };
        setup.set_trouble(About::Loss, Some("lost".into()));
        setup.set_trouble(speaker, Some("gone".into()));
        setup.set_trouble(speaker, Some("gone".into()));
        assert_eq!(open(&setup), [(1, 1, "lost".into()), (3, 2, "gone".into())]);
        setup.set_trouble(speaker, Some("none is there".into()));
        assert_eq!(open(&setup), [(1, 1, "lost".into()), (4, 1, "none is there".into())]);
        setup.set_trouble(About::Loss, None);
        setup.set_trouble(speaker, None);
        assert_eq!(open(&setup), []);
        assert_eq!(setup.troubles.len(), 4, "the terminal tells of all");
        for i in 0..300 {
            setup.set_trouble(About::Loss, Some(format!("{i}").into()));
        }
        assert_eq!((setup.troubles.len(), open(&setup).len()), (KEPT_TROUBLES, 1));
        assert_eq!(setup.troubles[KEPT_TROUBLES - 1].number, 304);
    }
}
