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
mod conversation;
mod dispatch;
mod gate;
mod hearing;
mod mail;
mod partial;
mod snapshot;
mod stages;
#[cfg(test)]
mod tests;
mod workers;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::TurnConfig;
use super::conductor::Conductor;
use super::history::History;
use crate::latency::Clock;
use conversation::{Beginning, Core, Message, Shown};
use dispatch::Dispatch;
use mail::{Post, Underway, mail};
use workers::{Ahead, Speaking, Transcribing, Writing, serve};

pub use command::{Command, Key, Listening, Model, Signal};
pub use snapshot::{Entry, Level, MicrophoneState, Notice, NoticeKind, Readiness, ReplyText, Snapshot};
pub use stages::{
    CHUNK_SAMPLES, Detector, Heard, Loudspeaker, Microphone, Recogniser, StageError, Voice, Writer,
};

/// How a conversation begins.
#[derive(Debug, Clone)]
pub struct PipelineConfig {
    /// How turns are taken.
    pub turns: TurnConfig,
    /// When the microphone is listened to.
    pub listening: Listening,
    /// System prompt, and what was said before.
    pub history: History,
    /// Whether words are recognised for display while the user speaks. Costs up to a third of the recogniser's time, never
    /// when it is needed.
    pub shows_words_early: bool,
}

/// Sound in and out.
pub struct Ends {
    /// What the user is heard with; without one, texts are answered.
    pub microphone: Option<(Box<dyn Microphone>, Box<dyn Detector>)>,
    /// What the replies are played with.
    pub loudspeaker: Box<dyn Loudspeaker>,
}

/// How long the threads may take to end; what a model is in the midst of ends within milliseconds.
const END: Duration = Duration::from_secs(2);

/// A conversation under way; it ends when this is dropped.
pub struct Pipeline {
    post: Post<Message>,
    shown: Arc<Shown>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Pipeline {
    /// Starts a conversation without models, which are to be installed. `on_change` is called after each change of the
    /// [`Snapshot`], from another thread, and must not wait.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn start(
        config: PipelineConfig,
        ends: Ends,
        clock: Arc<dyn Clock>,
        on_change: Box<dyn Fn() + Send + Sync>,
    ) -> io::Result<Self> {
        Self::start_with(config, ends, clock, on_change, Time::Passes, &Underway::default())
    }

    fn start_with(
        config: PipelineConfig,
        ends: Ends,
        clock: Arc<dyn Clock>,
        on_change: Box<dyn Fn() + Send + Sync>,
        time: Time,
        underway: &Underway,
    ) -> io::Result<Self> {
        let PipelineConfig { turns, listening, history, shows_words_early } = config;
        let (post, inbox) = mail(underway);
        let shown = Arc::new(Shown::new(on_change));
        let mut pipeline =
            Self { post: post.clone(), shown: shown.clone(), stop: Arc::default(), threads: Vec::new() };
        let entries = conversation::entries_of(&history);
        let ahead = Arc::new(Ahead::default());
        let (recogniser, recogniser_inbox) = mail(underway);
        let (writer, writer_inbox) = mail(underway);
        let (voice, voice_inbox) = mail(underway);
        let (transcribing, speaking) = (Transcribing::new(post.clone()), Speaking::new(post.clone()));
        let writing = Writing::new(post.clone(), history, ahead.clone());
        let back = || post.clone();
        let (to, answers) = (back(), back());
        pipeline.spawn("transcribe", move || serve(transcribing, &recogniser_inbox, &to))?;
        pipeline.spawn("reply", move || serve(writing, &writer_inbox, &answers))?;
        let to = back();
        pipeline.spawn("speak", move || serve(speaking, &voice_inbox, &to))?;
        let dispatch = Dispatch::new((recogniser, writer, voice), ahead, ends.loudspeaker, clock.clone());
        let conductor = Conductor::new(turns, clock.clone(), dispatch);
        let beginning = Beginning {
            conductor,
            clock: clock.clone(),
            shown,
            listening,
            entries,
            wants_partials: shows_words_early,
        };
        let core = Core::new(beginning);
        pipeline.spawn("conversation", move || core.run(&inbox, time == Time::Passes))?;
        if let Some((microphone, detector)) = ends.microphone {
            let (to, stop) = (back(), pipeline.stop.clone());
            pipeline.spawn("hearing", move || hearing::listen(microphone, detector, &clock, &to, &stop))?;
        }
        Ok(pipeline)
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(Builder::new().name(name.into()).spawn(run)?);
        Ok(())
    }

    /// The conversation as it is now. Cheap.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shown.get()
    }

    /// The number of the present [`Snapshot`]. One atomic load.
    pub fn revision(&self) -> u64 {
        self.shown.revision()
    }

    /// Tells the conversation something. Does not wait.
    pub fn send(&self, command: Command) {
        if !self.post.send(Message::Command(command)) {
            tracing::error!("the conversation's thread has ended");
        }
    }

    /// For other threads that have something to tell.
    pub fn sender(&self) -> CommandSender {
        CommandSender(self.post.clone())
    }
}

/// Sends commands to a conversation. Clones lead to the same one.
#[derive(Clone)]
pub struct CommandSender(Post<Message>);

impl CommandSender {
    /// As [`Pipeline::send`]; says whether the conversation is still there.
    pub fn send(&self, command: Command) -> bool {
        self.0.send(Message::Command(command))
    }
}

/// How the core learns that time has passed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    /// It looks at the clock.
    Passes,
    /// It is told: the clock is simulated.
    #[cfg(test)]
    IsTold,
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.post.send(Message::Quit);
        let begun = Instant::now();
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && begun.elapsed() < END {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            if thread.is_finished() {
                // A stage's panic was caught; one of the core's is no reason for another.
                let _ = thread.join();
            } else {
                tracing::warn!(name = thread.thread().name(), "a thread does not end; going on without");
            }
        }
    }
}
