//! Loads models, one at a time, while the conversation goes on.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, RecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;
use repartee_engine::backends::{Backend, CancelToken};
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

use super::{About, Settings, Shared};
use crate::commands::setup::{self, BackendName};

/// What the loader is asked for. Of several requests for a stage, the last one counts.
pub(super) struct Load {
    pub(super) what: What,
    pub(super) settings: Settings,
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

/// The loader's thread.
pub(super) struct Loader {
    conversation: CommandSender,
    shared: Arc<Shared>,
    backends: HashMap<BackendName, Box<dyn Backend>>,
    wishes: Wishes,
}

impl Loader {
    pub(super) fn new(conversation: CommandSender, shared: Arc<Shared>) -> Self {
        Self { conversation, shared, backends: HashMap::new(), wishes: Wishes::default() }
    }

    /// Loads until nobody can ask any more.
    pub(super) fn run(mut self, requests: &Receiver<Load>) -> Result<(), RecvError> {
        let mut wanted: BTreeMap<What, Settings> = BTreeMap::new();
        loop {
            if wanted.is_empty() {
                let Load { what, settings } = requests.recv()?;
                wanted.insert(what, settings);
            }
            for Load { what, settings } in requests.try_iter() {
                wanted.insert(what, settings);
            }
            if let Some((what, settings)) = wanted.pop_first() {
                self.load(what, &settings);
            }
        }
    }

    fn load(&mut self, what: What, settings: &Settings) {
        let (stage, begun) = (what.stage(), Instant::now());
        let result = match what {
            What::Recogniser => self.recogniser(settings).map(Some),
            What::Writer => self.writer(settings).map(Some),
            What::Speech => self.speech(settings).map(Some),
            What::Style => self.style(settings).map(|()| None),
        };
        if stage == Stage::Speak && result.is_ok() {
            self.shared.change(|setup| setup.set_trouble(About::Voice, None));
        }
        match result {
            Ok(None) => {}
            Ok(Some((model, backend))) => {
                let took = begun.elapsed();
                tracing::info!(?stage, backend, ?took, "loaded");
                self.conversation.send(Command::Install(model));
                self.shared.change(|setup| setup.set_stage(stage, backend, Readiness::Ready));
            }
            // The one that speaks now goes on speaking.
            Err(error) if what == What::Style => {
                let text = format!("the voice stays as it was: {error:#}");
                self.shared.change(|setup| setup.set_trouble(About::Voice, Some(text.into())));
            }
            Err(error) => {
                let reason: Arc<str> = format!("{error:#}").into();
                self.conversation.send(Command::Refuse(stage, reason.clone()));
                self.shared.change(|setup| setup.set_stage(stage, String::new(), Readiness::Failed(reason)));
            }
        }
    }

    fn backend(&mut self, name: BackendName) -> Result<&dyn Backend> {
        Ok(match self.backends.entry(name) {
            Entry::Occupied(entry) => &**entry.into_mut(),
            Entry::Vacant(entry) => &**entry.insert(setup::backend(name)?),
        })
    }

    fn recogniser(&mut self, settings: &Settings) -> Result<(Model, String)> {
        let backend = self.backend(settings.backends[0])?;
        let mut transcriber = setup::transcriber(&settings.stt, &settings.language, backend)?;
        // The first run is the slowest: tables are made and pages are read.
        let noise: Vec<f32> = (0..16_000).map(|i| ((i * 7919 % 1013) as f32 / 506.0 - 1.0) * 1e-3).collect();
        transcriber.transcribe(&noise, &mut |_| {}, None)?;
        Ok((Model::Recogniser(Box::new(transcriber)), backend.name()))
    }

    fn writer(&mut self, settings: &Settings) -> Result<(Model, String)> {
        let backend = self.backend(settings.backends[1])?;
        let sampling =
            Sampling { temperature: settings.temperature, seed: settings.seed, ..Sampling::default() };
        let llama = setup::llama(&settings.llm, backend, settings.context)?;
        // The pipeline warms it with the conversation's beginning.
        Ok((Model::Writer(Box::new(Replier::new(llama, sampling, settings.max_tokens))), backend.name()))
    }

    fn speech(&mut self, settings: &Settings) -> Result<(Model, String)> {
        *self.wishes.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let wishes = self.wishes.clone();
        let backend = self.backend(settings.backends[2])?;
        let mut narrator = setup::narrator(&settings.voice, settings.speech(), backend)?;
        let mut splitter = ClauseSplitter::default();
        let clauses = splitter.push("Hello there, my friend.").into_iter().chain(splitter.flush());
        for clause in clauses {
            narrator.clause(&clause, &mut |_| {}, None)?;
        }
        narrator.stop();
        Ok((Model::Voice(Box::new(Changeable { narrator, wishes })), backend.name()))
    }

    fn style(&mut self, settings: &Settings) -> Result<()> {
        let (phonemizer, locale) = setup::phonemizer(&settings.voice)?;
        let wish =
            Wish { style: setup::voice(&settings.voice)?, settings: settings.speech(), phonemizer, locale };
        *self.wishes.lock().unwrap_or_else(PoisonError::into_inner) = Some(wish);
        Ok(())
    }
}
