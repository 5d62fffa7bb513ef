//! What a front end shows and what it may ask for.

use std::sync::Arc;
use std::time::Duration;

use repartee_engine::models::kokoro;
use repartee_engine::stages::speak::SpeechSettings;
use repartee_engine::turn::message::Stage;
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
}

impl Setup {
    /// Nothing is loaded or open yet.
    pub(super) fn of(settings: &Settings) -> Self {
        let stages = [Stage::Transcribe, Stage::Reply, Stage::Speak].map(|stage| StageInfo {
            stage,
            model: settings.model(stage).into(),
            backend: String::new(),
            readiness: Readiness::Loading,
        });
        Self { stages: stages.into(), input: None, output: None, settings: settings.clone() }
    }

    pub(super) fn set_stage(&mut self, stage: Stage, backend: String, readiness: Readiness) {
        for info in self.stages.iter_mut().filter(|info| info.stage == stage) {
            info.backend = backend.clone();
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
}
