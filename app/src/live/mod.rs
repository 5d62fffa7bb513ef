//! The live conversation: devices, models and pipeline behind one handle, for the window and for the terminal.
//!
//! A front end holds a [`Live`]: it shows [`Live::snapshot`] when the wake callback says that something changed, and
//! sends [`Command`]s. Everything else happens behind it, in three threads of its own beside the pipeline's:
//!
//! | thread | what it does |
//! |---|---|
//! | caretaker | puts settings in force, watches the devices and tells of them |
//! | loader | loads models, one at a time: transcription, reply, speech |
//! | sound (of `repartee-audio`) | keeps microphone and speaker open |
//!
//! Microphone and voice detector come first, so that the user sees "listening" while the rest is loaded; what is said
//! meanwhile is answered when the models are there.

mod backends;
mod caretaker;
mod models;
mod sound;
mod state;
#[cfg(all(test, feature = "wgpu"))]
pub(crate) mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use repartee_audio::devices;
use repartee_engine::latency::MonotonicClock;
use repartee_engine::turn::history::History;
use repartee_engine::turn::machine::Activity;
use repartee_engine::turn::message::Exchange;
use repartee_engine::turn::pipeline::{self, Ends, Pipeline, PipelineConfig};

use crate::commands::setup;
use caretaker::{Caretaker, Order};
pub(crate) use state::StageInfo;
#[cfg(test)]
pub(crate) use state::Trouble;
pub(crate) use state::{About, Command, DeviceChoice, Settings, Setup, Snapshot};

/// What the front end sees of the caretaker, and how it learns of changes.
struct Shared {
    setup: Mutex<Arc<Setup>>,
    revision: AtomicU64,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Shared {
    fn changed(&self) {
        self.revision.fetch_add(1, Ordering::AcqRel);
        (self.wake)();
    }

    fn setup(&self) -> Arc<Setup> {
        self.setup.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the setup; tells of it only if it is another afterwards.
    fn change(&self, change: impl FnOnce(&mut Setup)) {
        let mut setup = self.setup.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Setup::clone(&setup);
        change(&mut next);
        if next != **setup {
            *setup = Arc::new(next);
            drop(setup);
            self.changed();
        }
    }
}

/// What the model knows of a conversation in which `past` was said. It takes as much of its end as its memory holds.
fn history(system_prompt: &str, past: &[Exchange]) -> History {
    let mut history = History::new(system_prompt);
    past.iter().for_each(|exchange| history.remember(exchange));
    history
}

/// A reply is stopped in less; if not, the program ends without.
const FINISH: Duration = Duration::from_millis(500);

/// A live conversation. It ends, and the devices close, when this is dropped.
pub(crate) struct Live {
    pipeline: Arc<Pipeline>,
    orders: Option<Sender<Order>>,
    caretaker: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl Live {
    /// Opens the devices, begins to listen, and goes on with `past`. Returns before the models are loaded. `wake` is called
    /// from other threads whenever the snapshot has changed; it must not wait.
    ///
    /// # Errors
    /// The voice detector is missing, or the system gives no threads. Devices and other models that are missing are told in
    /// the snapshot.
    pub(crate) fn start(
        settings: Settings,
        past: &[Exchange],
        wake: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Self> {
        Self::start_on(settings, past, wake, backends::open())
    }

    /// As [`Self::start`], on the devices that `open` gives.
    fn start_on(
        settings: Settings,
        past: &[Exchange],
        wake: Box<dyn Fn() + Send + Sync>,
        open: backends::Open,
    ) -> Result<Self> {
        let settings = settings.within_limits();
        let detector = setup::silero(&setup::vad_backend())?;
        let sound = devices::open(sound::config(&settings))?;
        let setup = Setup::of(&settings);
        let shared =
            Arc::new(Shared { setup: Mutex::new(Arc::new(setup)), revision: AtomicU64::new(0), wake });
        let system_prompt = settings.system_prompt();
        let history = history(&system_prompt, past);
        let config = PipelineConfig {
            turns: settings.turns(),
            listening: settings.listening,
            history,
            shows_words_early: true,
        };
        let (mouth, has_speaker) = sound::Mouth::new(sound.speaker);
        let ends = Ends {
            microphone: Some((Box::new(sound::Ear(sound.microphone)), Box::new(detector))),
            loudspeaker: Box::new(mouth),
        };
        let told = shared.clone();
        let on_change = Box::new(move || told.changed());
        let pipeline = Pipeline::start(config, ends, Arc::new(MonotonicClock::new()), on_change)
            .context("the system gives no threads")?;
        let pipeline = Arc::new(pipeline);
        let (orders, inbox) = channel();
        let caretaker = Caretaker::new(
            sound.keeper,
            has_speaker,
            pipeline.clone(),
            shared.clone(),
            settings,
            system_prompt,
            open,
        )?;
        let run = move || caretaker.run(&inbox);
        let thread = Builder::new().name("caretaker".into()).spawn(run)?;
        Ok(Self { pipeline, orders: Some(orders), caretaker: Some(thread), shared })
    }

    /// Everything there is to show. Cheap.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let revision = self.shared.revision.load(Ordering::Acquire);
        Snapshot { revision, conversation: self.pipeline.snapshot(), setup: self.shared.setup() }
    }

    /// Does what the user wants. Does not wait.
    pub(crate) fn send(&self, command: Command) {
        match command {
            Command::Type(text) => self.pipeline.send(pipeline::Command::Type(text.into())),
            Command::Stop => self.pipeline.send(pipeline::Command::Stop),
            Command::TalkKey(key) => self.pipeline.send(pipeline::Command::TalkKey(key)),
            Command::Set(settings) => self.order(Order::Set(settings)),
            Command::Clear => self.order(Order::Begin(Vec::new())),
            Command::GoOn(past) => self.order(Order::Begin(past)),
        }
    }

    /// Stops the reply and gives the last snapshot, with what was heard of it. Waits for it, a moment at most.
    pub(crate) fn finish(&self) -> Snapshot {
        self.send(Command::Stop);
        let begun = Instant::now();
        loop {
            let snapshot = self.snapshot();
            let is_over = !matches!(snapshot.conversation.activity, Activity::Thinking | Activity::Speaking);
            if is_over || begun.elapsed() > FINISH {
                return snapshot;
            }
            std::thread::park_timeout(FINISH / 100);
        }
    }

    fn order(&self, order: Order) {
        let sent = self.orders.as_ref().is_some_and(|orders| orders.send(order).is_ok());
        if !sent {
            tracing::error!("the caretaker's thread has ended");
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Fades out while the devices are still there.
        self.pipeline.send(pipeline::Command::Stop);
        self.orders = None;
        if let Some(caretaker) = self.caretaker.take() {
            // It closes the devices. A panic in it was told when it happened.
            let _ = caretaker.join();
        }
    }
}
