//! Loads models, one at a time, while the conversation goes on.
//!
//! Where a device fails or has no room, the models on it move: to the same device, opened again, or to the processor. What a
//! stage was asked for waits in the pipeline meanwhile.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;
use repartee_engine::backends::{Backend, CancelToken};
use repartee_engine::models::Remedy;
use repartee_engine::models::kokoro::Voice as Style;
use repartee_engine::models::llama::Sampling;
use repartee_engine::stages::narrate::Narrator;
use repartee_engine::stages::reply::Replier;
use repartee_engine::stages::speak::SpeechSettings;
use repartee_engine::text::clauses::{Clause, ClauseSplitter};
use repartee_engine::text::phonemes::Phonemizer;
use repartee_engine::text::speakable::Locale;
use repartee_engine::turn::message::Stage;
use repartee_engine::turn::pipeline::{Command, CommandSender, Model, Readiness, StageError, Voice};

use super::backends::{Backends, Device, Fate, Open};
use super::{About, Settings, Shared};
use crate::commands::setup::{self, BackendName};

/// What the loader is told.
pub(super) enum Request {
    /// Load this. Of several requests for a stage, the last one counts.
    Load(What, Settings),
    /// A stage's model is gone with its device: which one it was of those that were installed, and what happened.
    Lost { stage: Stage, model: u64, reason: Arc<str> },
}

/// In the order in which it is loaded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Recogniser,
    Writer,
    Speech,
    /// The speech model stays; who speaks, and how, changes.
    Style,
}

impl What {
    fn stage(self) -> Stage {
        match self {
            Self::Recogniser => Stage::Transcribe,
            Self::Writer => Stage::Reply,
            Self::Speech | Self::Style => Stage::Speak,
        }
    }
}

/// How the voice shall sound from its next reply on.
struct Wish {
    style: Style,
    settings: SpeechSettings,
    phonemizer: Phonemizer,
    locale: Locale,
}

/// What the loader wishes of the voice that speaks.
type Wishes = Arc<Mutex<Option<Wish>>>;

/// A voice that can be changed without its model being loaded again.
struct Changeable {
    narrator: Narrator,
    wishes: Wishes,
}

impl Voice for Changeable {
    fn begin(&mut self) {
        let wish = self.wishes.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Wish { style, settings, phonemizer, locale }) = wish {
            self.narrator.speaker().set_voice(style);
            self.narrator.speaker().set_settings(settings);
            self.narrator.set_language(phonemizer, locale);
        }
        self.narrator.begin();
    }

    fn speak(
        &mut self,
        clause: &Clause,
        on_sound: &mut dyn FnMut(&[f32], usize),
        cancel: &CancelToken,
    ) -> Result<(), StageError> {
        Voice::speak(&mut self.narrator, clause, on_sound, cancel)
    }
}

/// What the loader knows of a stage.
#[derive(Default)]
struct Placed {
    /// What was asked for last.
    settings: Option<Settings>,
    /// The device that its model is on, unless another model is to come.
    on: Option<u64>,
    /// Models that were installed.
    installed: u64,
}

/// The loader's thread.
pub(super) struct Loader {
    conversation: CommandSender,
    shared: Arc<Shared>,
    backends: Backends,
    /// What is still to be loaded.
    wanted: BTreeMap<What, Settings>,
    placed: [Placed; 3],
    wishes: Wishes,
}

impl Loader {
    pub(super) fn new(conversation: CommandSender, shared: Arc<Shared>, open: Open) -> Self {
        Self {
            conversation,
            shared,
            backends: Backends::new(open),
            wanted: BTreeMap::new(),
            placed: Default::default(),
            wishes: Wishes::default(),
        }
    }

    /// Loads until nobody can ask any more.
    pub(super) fn run(mut self, requests: &Receiver<Request>) -> Result<(), RecvError> {
        loop {
            if self.wanted.is_empty() {
                let request = requests.recv()?;
                self.take(request);
            }
            for request in requests.try_iter() {
                self.take(request);
            }
            if let Some((what, settings)) = self.wanted.pop_first() {
                self.load(what, settings);
            }
        }
    }

    fn take(&mut self, request: Request) {
        match request {
            Request::Load(what, settings) => drop(self.wanted.insert(what, settings)),
            Request::Lost { stage, model, reason } => {
                let placed = &self.placed[stage as usize];
                // Another model may have taken its place meanwhile.
                if let Some(device) = placed.on.filter(|_| placed.installed == model) {
                    self.lose(device, &reason);
                }
            }
        }
    }

    /// Device `number` is lost: all models on it are to be loaded anew.
    fn lose(&mut self, number: u64, reason: &str) {
        let Some(fate) = self.backends.lose(number, Instant::now()) else { return };
        tracing::warn!(reason, ?fate, "a device is lost");
        for what in [What::Recogniser, What::Writer, What::Speech] {
            let stage = what.stage();
            let placed = &mut self.placed[stage as usize];
            if let Some(settings) = placed.settings.clone().filter(|_| placed.on == Some(number)) {
                placed.on = None;
                self.conversation.send(Command::Await(stage));
                self.shared.change(|setup| setup.set_stage(stage, None, Readiness::Loading));
                // The user may want another one by now.
                self.wanted.entry(what).or_insert(settings);
            }
        }
        let (reopened, given_up) = match fate {
            Fate::OpenedAgain => (
                Some(format!(
                    "{reason}. It is opened again, and the conversation goes on; if this happens often, update the GPU's \
                     driver or choose the processor in the settings"
                )),
                None,
            ),
            Fate::GivenUp => (
                None,
                Some(format!(
                    "{reason}, and not for the first time: the processor computes in its place. To try the GPU again, choose \
                     it anew in the settings or restart the program; a newer driver may help"
                )),
            ),
        };
        self.shared.change(|setup| {
            setup.set_trouble(About::Reopened, reopened.map(Into::into));
            setup.set_trouble(About::GivenUp, given_up.map(Into::into));
        });
    }

    fn load(&mut self, what: What, settings: Settings) {
        let (stage, begun) = (what.stage(), Instant::now());
        let name = settings.backends[stage as usize];
        let placed = &mut self.placed[stage as usize];
        let before = placed.settings.replace(settings.clone());
        if before.is_some_and(|before| before.backends[stage as usize] != name) {
            self.backends.choose(name);
        }
        let result = match what {
            What::Style => self.style(&settings).map(|()| None),
            _ => {
                placed.on = None;
                self.shared.change(|setup| setup.set_trouble(About::Room(stage), None));
                self.make(what, &settings, name).map(Some)
            }
        };
        if stage == Stage::Speak && result.is_ok() {
            self.shared.change(|setup| setup.set_trouble(About::Voice, None));
        }
        match result {
            Ok(None) => {}
            Ok(Some((model, device))) => {
                let (took, backend) = (begun.elapsed(), device.backend.name());
                tracing::info!(?stage, backend, ?took, "loaded");
                let placed = &mut self.placed[stage as usize];
                (placed.on, placed.installed) = (Some(device.number), placed.installed + 1);
                self.conversation.send(Command::Install(model));
                self.shared
                    .change(|setup| setup.set_stage(stage, Some(device.backend.as_ref()), Readiness::Ready));
            }
            // The one that speaks now goes on speaking.
            Err(error) if what == What::Style => {
                let text = format!("the voice stays as it was: {error:#}");
                self.shared.change(|setup| setup.set_trouble(About::Voice, Some(text.into())));
            }
            Err(error) => {
                let reason: Arc<str> = format!("{error:#}").into();
                self.conversation.send(Command::Refuse(stage, reason.clone()));
                self.shared.change(|setup| setup.set_stage(stage, None, Readiness::Failed(reason)));
            }
        }
        let mut asked =
            self.placed.iter().zip(0..).filter_map(|(p, i)| Some(p.settings.as_ref()?.backends[i]));
        if !asked.any(|name| self.backends.is_given_up(name)) {
            self.shared.change(|setup| setup.set_trouble(About::GivenUp, None));
        }
    }

    /// Makes a stage's model on the device that is asked for or, where that does not work, on the processor, and says so.
    fn make(&mut self, what: What, settings: &Settings, name: BackendName) -> Result<(Model, Device)> {
        let mut name = name;
        loop {
            let device = match self.backends.get(name) {
                Err(error) if name != BackendName::Cpu => {
                    let text = format!("{}; the processor computes in its place", error.root_cause());
                    self.backends.give_up(name);
                    self.shared.change(|setup| {
                        setup.set_trouble(About::Reopened, None);
                        setup.set_trouble(About::GivenUp, Some(text.into()));
                    });
                    continue;
                }
                device => device?,
            };
            let backend = device.backend.as_ref();
            let made = match what {
                What::Recogniser => Self::recogniser(settings, backend),
                What::Writer => Self::writer(settings, backend),
                What::Speech | What::Style => self.speech(settings, backend),
            };
            let error = match made {
                Ok(model) => return Ok((model, device)),
                Err(error) => error,
            };
            match setup::remedy(&error).filter(|_| device.name != BackendName::Cpu) {
                None => return Err(error),
                Some(Remedy::Reopen) => self.lose(device.number, &crate::message(&error)),
                Some(Remedy::Elsewhere) => {
                    let text = setup::no_room(settings.model(what.stage()), &error);
                    tracing::warn!("{text}");
                    self.shared
                        .change(|setup| setup.set_trouble(About::Room(what.stage()), Some(text.into())));
                    name = BackendName::Cpu;
                }
            }
        }
    }

    fn recogniser(settings: &Settings, backend: &dyn Backend) -> Result<Model> {
        let mut transcriber = setup::transcriber(&settings.stt, &settings.language, backend)?;
        // The first run is the slowest: tables are made and pages are read.
        let noise: Vec<f32> = (0..16_000).map(|i| ((i * 7919 % 1013) as f32 / 506.0 - 1.0) * 1e-3).collect();
        transcriber.transcribe(&noise, &mut |_| {}, None)?;
        Ok(Model::Recogniser(Box::new(transcriber)))
    }

    fn writer(settings: &Settings, backend: &dyn Backend) -> Result<Model> {
        let sampling =
            Sampling { temperature: settings.temperature, seed: settings.seed, ..Sampling::default() };
        let llama = setup::llama(&settings.llm, backend, settings.context)?;
        // The pipeline warms it with the conversation's beginning.
        Ok(Model::Writer(Box::new(Replier::new(llama, sampling, settings.max_tokens))))
    }

    fn speech(&self, settings: &Settings, backend: &dyn Backend) -> Result<Model> {
        *self.wishes.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let wishes = self.wishes.clone();
        let mut narrator = setup::narrator(&settings.voice, settings.speech(), backend)?;
        let mut splitter = ClauseSplitter::default();
        let clauses = splitter.push("Hello there, my friend.").into_iter().chain(splitter.flush());
        for clause in clauses {
            narrator.clause(&clause, &mut |_| {}, None)?;
        }
        narrator.stop();
        Ok(Model::Voice(Box::new(Changeable { narrator, wishes })))
    }

    fn style(&self, settings: &Settings) -> Result<()> {
        let (phonemizer, locale) = setup::phonemizer(&settings.voice)?;
        let wish =
            Wish { style: setup::voice(&settings.voice)?, settings: settings.speech(), phonemizer, locale };
        *self.wishes.lock().unwrap_or_else(PoisonError::into_inner) = Some(wish);
        Ok(())
    }
}
