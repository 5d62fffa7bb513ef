//! The thread that decides: takes messages in order, runs the conductor, and shows what became of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::super::Samples;
use super::super::conductor::Conductor;
use super::super::history::{History, Trimmed};
use super::super::message::{Event, Exchange, Stage, TurnNumber};
use super::command::{Command, Key, Listening, Model, Signal};
use super::dispatch::Dispatch;
use super::hearing::Chunk;
use super::mail::Inbox;
use super::partial::Partial;
use super::snapshot::{Entry, Level, MicrophoneState, Notice, NoticeKind, Readiness, ReplyText, Snapshot};
use super::stages::CHUNK_SAMPLES;
use super::workers::{Order, WriteJob};
use crate::latency::{Clock, Metric, Reading};
use crate::text::clauses::Clause;

/// What the core is told.
pub(super) enum Message {
    Chunk(Box<Chunk>),
    /// The microphone's stream is over after so many samples.
    EndOfStream(Samples),
    MicrophoneFailed(String),
    Event(Event),
    Clause {
        turn: TurnNumber,
        clause: Clause,
    },
    Sound {
        turn: TurnNumber,
        clause: usize,
        samples: Arc<[f32]>,
        spoken_bytes: usize,
    },
    /// Words for display while the user speaks.
    Partial {
        turn: TurnNumber,
        text: Arc<str>,
    },
    Trimmed(Trimmed),
    /// A stage's model is gone with its device; which one it was of those that were installed.
    Lost {
        stage: Stage,
        model: u64,
        reason: Arc<str>,
    },
    Command(Command),
    /// Time has passed.
    Tick,
    Quit,
}

/// Where the snapshot is shown.
pub(super) struct Shown {
    snapshot: Mutex<Arc<Snapshot>>,
    revision: AtomicU64,
    on_change: Box<dyn Fn() + Send + Sync>,
}

impl Shown {
    pub(super) fn new(on_change: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { snapshot: Mutex::default(), revision: AtomicU64::new(0), on_change }
    }

    pub(super) fn get(&self) -> Arc<Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    fn set(&self, snapshot: Snapshot) {
        let revision = snapshot.revision;
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
        self.revision.store(revision, Ordering::Release);
        (self.on_change)();
    }
}

/// While something is played: how often the loudspeaker is asked how far it is.
const POLL: Duration = Duration::from_millis(10);
/// Between two changes of the levels.
const LEVEL_NS: u64 = 60_000_000;
/// Samples of the synthesiser's sound that make a level.
const LEVEL_SAMPLES: usize = 768;
/// Notices that are kept.
const KEPT_NOTICES: usize = 100;
/// A key is often let go with the last word still on its way: so many chunks (160 ms) are heard behind it.
const CHUNKS_BEHIND_KEY: u32 = 5;
/// Recognition that takes longer than the speech, and longer than this, is told.
const SLOW_NS: u64 = 3_000_000_000;

pub(super) struct Core {
    conductor: Conductor<Dispatch>,
    clock: Arc<dyn Clock>,
    shown: Arc<Shown>,
    snapshot: Snapshot,
    listening: Listening,
    key: Key,
    /// Chunks that are still listened to.
    behind_key: u32,
    signal: Signal,
    /// What was heard of the loudspeaker, and of which turn.
    heard: (TurnNumber, u64),
    levels_at_ns: u64,
    partial: Partial,
    wants_partials: bool,
    is_slow: bool,
    notices: u64,
    /// Models that were installed for each stage.
    installed: [u64; 3],
    /// How many records there were, and the last one's number.
    records: (usize, Option<u64>),
}

/// What a core begins with.
pub(super) struct Beginning {
    pub(super) conductor: Conductor<Dispatch>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) shown: Arc<Shown>,
    pub(super) listening: Listening,
    pub(super) entries: Vec<Arc<Entry>>,
    pub(super) wants_partials: bool,
}

impl Core {
    pub(super) fn new(beginning: Beginning) -> Self {
        let Beginning { conductor, clock, shown, listening, entries, wants_partials } = beginning;
        let snapshot = Snapshot { entries: Arc::new(entries), ..Snapshot::default() };
        let mut core = Self {
            conductor,
            clock,
            shown,
            snapshot,
            listening,
            key: Key::Up,
            behind_key: 0,
            signal: Signal::Present,
            heard: Default::default(),
            levels_at_ns: 0,
            partial: Partial::default(),
            wants_partials,
            is_slow: false,
            notices: 0,
            installed: [0; 3],
            records: (0, None),
        };
        core.show();
        core
    }

    /// Takes messages until it is told to quit. Without `polls`, time passes by [`Message::Tick`] alone.
    pub(super) fn run(mut self, inbox: &Inbox<Message>, polls: bool) {
        loop {
            let received = if polls && self.plays() {
                match inbox.receive_within(POLL) {
                    Err(RecvTimeoutError::Timeout) => {
                        self.take(Message::Tick);
                        continue;
                    }
                    received => received.ok(),
                }
            } else {
                inbox.receive()
            };
            let Some((message, weight)) = received else { break };
            if matches!(message, Message::Quit) {
                break;
            }
            self.take(message);
            drop(weight);
        }
        self.conductor.stages.give_up();
    }

    /// Something is or will be at the loudspeaker.
    fn plays(&self) -> bool {
        self.conductor.state().current_turn().is_some() && !self.conductor.stages.reply.sounds.is_empty()
    }

    fn is_current(&self, turn: TurnNumber) -> bool {
        self.conductor.state().current_turn() == Some(turn) && self.conductor.stages.reply.turn == turn
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Chunk(chunk) => self.chunk(&chunk),
            Message::EndOfStream(length) => self.conductor.finish(length),
            Message::MicrophoneFailed(reason) => {
                self.signal = Signal::NoDevice;
                self.tell(NoticeKind::Sound, reason.into());
            }
            Message::Event(event) => self.event(event),
            Message::Clause { turn, clause } => {
                if self.is_current(turn) {
                    let text = clause.text.as_str().into();
                    // Kept before it is told of, for it is asked for at once.
                    self.conductor.stages.reply.clauses.push(clause);
                    self.conductor.event(Event::Clause { turn, text });
                }
            }
            Message::Sound { turn, clause, samples, spoken_bytes } => {
                if self.is_current(turn) {
                    let length = samples.len() as u64;
                    self.conductor.stages.reply.sounds.push(samples);
                    self.conductor.event(Event::Chunk { turn, clause, samples: length, spoken_bytes });
                }
            }
            Message::Partial { turn, text } => {
                let (position, now_ns) = (self.conductor.position(), self.clock.now_ns());
                self.partial.recognised(turn, text, position, now_ns);
            }
            Message::Trimmed(trimmed) => {
                tracing::info!(?trimmed, "the context was full");
                let what = match trimmed.words {
                    0 => "the oldest part of the conversation",
                    _ => "the beginning of what you said",
                };
                let text = format!("the model's memory was full: {what} was left out");
                self.tell(NoticeKind::Forgotten, text.into());
            }
            Message::Lost { stage, model, reason } => {
                tracing::warn!(?stage, model, %reason, "a model is lost with its device");
                let readiness = &mut self.snapshot.readiness[stage as usize];
                // Whoever has ordered another one knows.
                if *readiness == Readiness::Ready && self.installed[stage as usize] == model {
                    *readiness = Readiness::Lost { model, reason };
                }
            }
            Message::Command(command) => self.command(command),
            Message::Tick | Message::Quit => {}
        }
        self.look_at_loudspeaker();
        self.show();
    }

    fn is_listening(&self) -> bool {
        match self.listening {
            Listening::Always => true,
            Listening::WhileKeyDown => self.key == Key::Down || self.behind_key > 0,
            Listening::Never => false,
        }
    }

    /// Who holds a key to talk ends the turn by letting it go.
    fn hold(&mut self) {
        let is_held = self.listening == Listening::WhileKeyDown && self.is_listening();
        self.conductor.hold(is_held);
    }

    fn chunk(&mut self, chunk: &Chunk) {
        let is_listening = self.is_listening();
        let samples = if is_listening { chunk.samples } else { [0.0; CHUNK_SAMPLES] };
        let keep_from = self.conductor.state().keep_from();
        self.conductor.stages.past.push(&samples, keep_from);
        self.conductor.chunk(if is_listening { chunk.probability } else { 0.0 }, chunk.times);
        if self.key == Key::Up && self.behind_key > 0 {
            self.behind_key -= 1;
            if self.behind_key == 0 {
                self.hold();
                self.conductor.end_speech();
            }
        }
        let now_ns = self.clock.now_ns();
        let growing = self.conductor.state().growing();
        let position = self.conductor.position();
        if let Some((turn, from)) = self.partial.look(growing.as_ref(), position, now_ns)
            && self.wants_partials
        {
            self.conductor.stages.transcribe_partly(turn, from, position);
        }
        if now_ns.saturating_sub(self.levels_at_ns) >= LEVEL_NS {
            self.levels_at_ns = now_ns;
            self.snapshot.input_level = Level::of(&samples);
            self.snapshot.output_level = self.output_level();
        }
    }

    fn event(&mut self, event: Event) {
        if let Event::Transcript { turn, .. } = &event
            && let Some(asked) = self.conductor.stages.asked.take_if(|asked| asked.turn == *turn)
        {
            let took_ns = self.clock.now_ns().saturating_sub(asked.at_ns);
            let length_ns = (asked.length.as_ms() * 1e6) as u64;
            let is_slow = took_ns > length_ns.max(SLOW_NS);
            if is_slow && !self.is_slow {
                let text =
                    "understanding speech takes longer than speaking here; choose a smaller recogniser";
                self.tell(NoticeKind::Slow, text.into());
            }
            self.is_slow = is_slow;
        }
        self.conductor.event(event);
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Type(text) => self.conductor.event(Event::Typed(text)),
            Command::Stop => self.conductor.event(Event::Stop),
            Command::Listen(listening) => {
                self.listening = listening;
                self.behind_key = 0;
                self.hold();
            }
            Command::TalkKey(key) => {
                if (self.key, key) == (Key::Down, Key::Up) && self.listening == Listening::WhileKeyDown {
                    self.behind_key = CHUNKS_BEHIND_KEY;
                }
                self.key = key;
                self.hold();
            }
            Command::SetTurns(config) => self.conductor.set_config(config),
            Command::SetHistory(history) => {
                self.conductor.event(Event::Stop);
                self.collect();
                self.snapshot.entries = Arc::new(entries_of(&history));
                self.conductor.stages.write(WriteJob::SetHistory(history));
            }
            Command::SetInstructions(text) => {
                self.conductor.stages.write(WriteJob::SetInstructions(text));
            }
            Command::Install(model) => self.install(model),
            Command::Await(stage) => {
                self.snapshot.readiness[stage as usize] = Readiness::Loading;
                let stages = &self.conductor.stages;
                match stage {
                    Stage::Transcribe => stages.recogniser.send(Order::Await),
                    Stage::Reply => stages.order_writer(Order::Await),
                    Stage::Speak => stages.voice.send(Order::Await),
                };
            }
            Command::Refuse(stage, reason) => {
                self.snapshot.readiness[stage as usize] = Readiness::Failed(reason.clone());
                self.tell(NoticeKind::Model, reason.clone());
                let stages = &self.conductor.stages;
                match stage {
                    Stage::Transcribe => stages.recogniser.send(Order::Refuse(reason)),
                    Stage::Reply => stages.order_writer(Order::Refuse(reason)),
                    Stage::Speak => stages.voice.send(Order::Refuse(reason)),
                };
            }
            Command::Signal(signal) => self.signal = signal,
            Command::Tell(kind, text) => self.tell(kind, text),
        }
    }

    fn install(&mut self, model: Model) {
        // Waiting for a model is not slow.
        self.conductor.stages.asked = None;
        let stage = match &model {
            Model::Recogniser(_) => Stage::Transcribe,
            Model::Writer(_) => Stage::Reply,
            Model::Voice(_) => Stage::Speak,
        };
        let number = &mut self.installed[stage as usize];
        *number += 1;
        let stages = &self.conductor.stages;
        match model {
            Model::Recogniser(model) => stages.recogniser.send(Order::Install(model, *number)),
            Model::Writer(model) => stages.order_writer(Order::Install(model, *number)),
            Model::Voice(model) => stages.voice.send(Order::Install(model, *number)),
        };
        self.snapshot.readiness[stage as usize] = Readiness::Ready;
    }

    /// Tells the machine how much of the reply was heard.
    fn look_at_loudspeaker(&mut self) {
        let Some(turn) = self.conductor.state().current_turn().filter(|_| self.plays()) else { return };
        let samples = self.conductor.stages.loudspeaker.heard(turn);
        if (turn, samples) != self.heard {
            self.heard = (turn, samples);
            self.conductor.event(Event::Played { turn, samples });
        }
    }

    /// Of what is at the loudspeaker now.
    fn output_level(&self) -> Level {
        let (turn, mut at) = (self.heard.0, self.heard.1 as usize);
        if !self.is_current(turn) {
            return Level::SILENCE;
        }
        for sound in &self.conductor.stages.reply.sounds {
            if at < sound.len() {
                return Level::of(
                    &sound[at.saturating_sub(LEVEL_SAMPLES)..(at + LEVEL_SAMPLES).min(sound.len())],
                );
            }
            at -= sound.len();
        }
        Level::SILENCE
    }

    fn tell(&mut self, kind: NoticeKind, text: Arc<str>) {
        tracing::info!(?kind, %text, "told the user");
        let notices = Arc::make_mut(&mut self.snapshot.notices);
        if notices.len() == KEPT_NOTICES {
            notices.remove(0);
        }
        self.notices += 1;
        notices.push(Notice { number: self.notices, kind, text });
    }

    fn microphone(&self) -> MicrophoneState {
        match (self.signal, self.listening) {
            (Signal::NoDevice, _) => MicrophoneState::Missing,
            (_, Listening::Never) => MicrophoneState::Muted,
            (Signal::Zeros, _) => MicrophoneState::NoSignal,
            (Signal::Present, _) if self.is_listening() => MicrophoneState::Open,
            (Signal::Present, _) => MicrophoneState::KeyUp,
        }
    }

    /// Takes what the machine's effects have left behind.
    fn collect(&mut self) {
        for (kind, text) in std::mem::take(&mut self.conductor.stages.told) {
            self.tell(kind, text);
        }
        let finished = std::mem::take(&mut self.conductor.stages.finished);
        if !finished.is_empty() {
            Arc::make_mut(&mut self.snapshot.entries).extend(finished.into_iter().map(Arc::new));
        }
        let records = self.conductor.records();
        let now = (records.len(), self.conductor.records().next_back().map(|record| record.id));
        if now != self.records {
            self.records = now;
            let list = Arc::make_mut(&mut self.snapshot.records);
            // A full list loses its oldest.
            let gone = (list.len() + 1).saturating_sub(now.0).min(list.len());
            list.drain(..gone);
            let fresh = now.0 - list.len();
            list.extend(
                records.rev().take(fresh).cloned().map(Arc::new).collect::<Vec<_>>().into_iter().rev(),
            );
        }
    }

    /// Shows the present state, if anything in it has changed.
    fn show(&mut self) {
        self.collect();
        let state = self.conductor.state();
        let stages = &self.conductor.stages;
        self.snapshot.activity = state.activity();
        self.snapshot.microphone = self.microphone();
        let user = state.user_text();
        // What was recognised while the words grew is part of the reply's question once they do no longer.
        let growing = state.growing();
        let grows = growing.as_ref().map_or("", |g| g.text.as_deref().unwrap_or(self.partial.text()));
        let words = match (user.is_empty(), grows) {
            (_, "") => user.trim().to_owned(),
            (true, grows) => grows.to_owned(),
            (false, grows) => format!("{user} {grows}"),
        };
        if *words != *self.snapshot.user {
            self.snapshot.user = words.into();
        }
        let reply = state.heard_text().filter(|_| state.current_turn() == Some(stages.reply.turn));
        self.snapshot.reply = reply.map(|heard| stages.reply.text(&heard));
        self.snapshot.readings = Metric::ALL.map(|metric| self.conductor.recorder().reading(metric));
        let old = self.shown.get();
        if old.revision == 0 || differ(&old, &self.snapshot) {
            self.snapshot.revision = old.revision + 1;
            self.shown.set(self.snapshot.clone());
        }
    }
}

/// Whether a display would look different. Lists and texts are replaced when they change.
fn differ(old: &Snapshot, new: &Snapshot) -> bool {
    let is_same = |(a, b): (&Reading, &Reading)| match (a, b) {
        // It runs on by itself.
        (Reading::Live { .. }, Reading::Live { .. }) => true,
        (a, b) => a == b,
    };
    old.activity != new.activity
        || old.microphone != new.microphone
        || !Arc::ptr_eq(&old.entries, &new.entries)
        || !Arc::ptr_eq(&old.records, &new.records)
        || !Arc::ptr_eq(&old.notices, &new.notices)
        || old.user != new.user
        || old.reply != new.reply
        || old.readiness != new.readiness
        || (old.input_level, old.output_level) != (new.input_level, new.output_level)
        || !old.readings.iter().zip(&new.readings).all(is_same)
}

/// What a history looks like.
pub(super) fn entries_of(history: &History) -> Vec<Arc<Entry>> {
    let entry = |Exchange { user, heard, interrupted }: Exchange| {
        let reply = ReplyText { heard_bytes: heard.len(), text: heard };
        Arc::new(Entry { turn: TurnNumber(0), user, reply, is_interrupted: interrupted })
    };
    history.exchanges().map(entry).collect()
}
