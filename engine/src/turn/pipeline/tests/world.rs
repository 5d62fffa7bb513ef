//! A pipeline with its threads, in a world whose time passes only when nobody is at work.
//!
//! The stages' work takes simulated time, in which their threads wait for the clock. The driver moves the clock by ten
//! milliseconds whenever every message that was posted is dealt with, but for those whose stage waits for the clock. Nothing
//! waits for real time.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::super::super::conductor::{ChunkTimes, Output};
use super::super::super::endpoint::CHUNK;
use super::super::super::history::{History, Trimmed};
use super::super::super::message::{Stage, TurnNumber};
use super::super::super::tests::simulation::{FADE_MS, Script, TICK_MS, WORD_MS};
use super::super::super::{Samples, TurnConfig};
use super::super::conversation::Message;
use super::super::hearing::Chunk;
use super::super::mail::Underway;
use super::super::stages::CHUNK_SAMPLES;
use super::super::{
    Command, Ends, Listening, Loudspeaker, Model, Pipeline, PipelineConfig, Recogniser, Snapshot, StageError,
    Time, Voice, Writer,
};
use crate::backends::CancelToken;
use crate::latency::{Clock, ManualClock};
use crate::stages::reply::{Reply, ReplyEvent};
use crate::stages::transcribe::TranscribeEvent;
use crate::text::clauses::Clause;

/// Samples of the synthesiser in a tick, at 24 kHz.
const TICK_OUT: u64 = 240;
/// From the output's queue to the loudspeaker.
const DEVICE_LATENCY_MS: u64 = 20;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Sleeper {
    id: u64,
    until_ns: u64,
    cancel: CancelToken,
}

#[derive(Default)]
struct Sleepers {
    list: Vec<Sleeper>,
    next: u64,
    is_over: bool,
}

/// The clock, and who waits for it.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) clock: Arc<ManualClock>,
    pub(super) underway: Underway,
    sleepers: Mutex<Sleepers>,
    woken: Condvar,
}

impl Watch {
    /// Lets `ms` pass; `Err` if the work was cancelled meanwhile.
    fn work(&self, ms: u64, cancel: &CancelToken) -> Result<(), StageError> {
        let until_ns = self.clock.now_ns() + ms * 1_000_000;
        let mut sleepers = locked(&self.sleepers);
        let id = sleepers.next;
        sleepers.next += 1;
        if ms > 0 && !sleepers.is_over {
            sleepers.list.push(Sleeper { id, until_ns, cancel: cancel.clone() });
            drop(sleepers);
            self.underway.changed();
            sleepers = locked(&self.sleepers);
        }
        while sleepers.list.iter().any(|sleeper| sleeper.id == id) {
            sleepers = self.woken.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
        }
        if cancel.is_cancelled() { Err(StageError::Cancelled) } else { Ok(()) }
    }

    fn wake(&self) -> usize {
        let mut sleepers = locked(&self.sleepers);
        let (now_ns, is_over) = (self.clock.now_ns(), sleepers.is_over);
        sleepers
            .list
            .retain(|sleeper| !is_over && sleeper.until_ns > now_ns && !sleeper.cancel.is_cancelled());
        self.woken.notify_all();
        sleepers.list.len()
    }

    /// Waits until all that can be done at this moment is done.
    fn settle(&self) {
        self.underway.wait_until(|count| self.wake() == count);
    }
}

/// What the stages do. Shared by all of them and changed by tests.
pub(super) struct Play {
    pub(super) script: Script,
    pub(super) latency_ms: u64,
    pub(super) answer: fn(&str) -> Vec<String>,
    /// What the writer was asked, and the conversation that it saw.
    pub(super) asked: Vec<String>,
    pub(super) seen: Vec<String>,
    pub(super) prepared: usize,
    /// What goes wrong the next time: a stage says so, or panics.
    pub(super) fails: Option<&'static str>,
    pub(super) panics: Option<&'static str>,
    /// The stage whose device is lost in the midst of its next work.
    pub(super) loses: Option<&'static str>,
    pub(super) trimmed: Option<Trimmed>,
}

impl Play {
    fn mishap(&mut self, stage: &str) -> Result<(), StageError> {
        assert!(self.panics.take_if(|panics| *panics == stage).is_none(), "{stage} is broken");
        match self.fails.take_if(|fails| *fails == stage) {
            Some(stage) => Err(StageError::Failed(format!("{stage} says no"))),
            None => Ok(()),
        }
    }

    fn loss(&mut self, stage: &str) -> Result<(), StageError> {
        match self.loses.take_if(|loses| *loses == stage) {
            Some(stage) => Err(StageError::Lost(format!("the device of {stage} is gone"))),
            None => Ok(()),
        }
    }
}

#[derive(Clone)]
struct Actor {
    watch: Arc<Watch>,
    play: Arc<Mutex<Play>>,
}

impl Actor {
    fn latency_ms(&self) -> u64 {
        locked(&self.play).latency_ms
    }
}

impl Recogniser for Actor {
    fn recognise(
        &mut self,
        samples: &[f32],
        on_event: &mut dyn FnMut(TranscribeEvent),
        cancel: &CancelToken,
    ) -> Result<String, StageError> {
        on_event(TranscribeEvent::EncoderStart);
        self.watch.work(self.latency_ms() / 2, cancel)?;
        on_event(TranscribeEvent::EncoderEnd);
        self.watch.work(self.latency_ms() - self.latency_ms() / 2, cancel)?;
        locked(&self.play).mishap("transcribe")?;
        locked(&self.play).loss("transcribe")?;
        // Each sample is its own position, but for what was muted.
        let heard: Vec<u64> = samples.iter().filter(|sample| **sample > 0.0).map(|s| *s as u64).collect();
        let (Some(from), Some(to)) = (heard.first(), heard.last()) else { return Ok(String::new()) };
        assert_eq!(heard.len() as u64, to - from + 1, "samples are missing");
        Ok(locked(&self.play).script.transcript(Samples(*from), Samples(to + 1)))
    }
}

impl Writer for Actor {
    fn prepare(&mut self, _: &History, _: &CancelToken) -> Result<(), StageError> {
        locked(&self.play).prepared += 1;
        Ok(())
    }

    fn write(
        &mut self,
        history: &mut History,
        user: &str,
        written: &str,
        on_event: &mut dyn FnMut(ReplyEvent<'_>),
        cancel: &CancelToken,
    ) -> Result<Reply, StageError> {
        let sentences = {
            let mut play = locked(&self.play);
            play.asked.push(user.to_owned());
            play.seen = history.messages().iter().map(|message| message.content.clone()).collect();
            (play.answer)(user)
        };
        on_event(ReplyEvent::PrefillStart { prompt: 1, cached: 0 });
        self.watch.work(self.latency_ms(), cancel)?;
        on_event(ReplyEvent::FirstToken);
        let mut known = written.len();
        for sentence in sentences {
            // Each letter alone, as a model may draw them: it is lost in the midst of a word.
            for letter in sentence.split_inclusive(|_: char| true).chain([" "]) {
                if known > 0 {
                    known -= letter.len();
                    continue;
                }
                on_event(ReplyEvent::Text(letter));
                if letter == "w" {
                    locked(&self.play).mishap("reply")?;
                    locked(&self.play).loss("reply")?;
                }
            }
            self.watch.work(self.latency_ms() / 10, cancel)?;
        }
        let trimmed = locked(&self.play).trimmed.take();
        Ok(Reply { trimmed, ..Reply::default() })
    }

    fn restart(&mut self) {}
}

impl Voice for Actor {
    fn begin(&mut self) {}

    fn speak(
        &mut self,
        clause: &Clause,
        on_sound: &mut dyn FnMut(&[f32], usize),
        cancel: &CancelToken,
    ) -> Result<(), StageError> {
        self.watch.work(self.latency_ms(), cancel)?;
        locked(&self.play).mishap("speak")?;
        if clause.text.contains("Hush") {
            return Ok(());
        }
        let mut spoken_bytes = 0;
        for word in clause.text.split_inclusive(' ') {
            spoken_bytes += word.len();
            on_sound(&[0.1; (WORD_MS * TICK_OUT / TICK_MS) as usize], spoken_bytes);
            locked(&self.play).loss("speak")?;
        }
        Ok(())
    }
}

/// Sound as it was played: so much of `turn` in the tick at `at_ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Played {
    pub(super) at_ms: u64,
    pub(super) turn: TurnNumber,
    pub(super) is_ducked: bool,
    /// The tail of a turn that was just silenced.
    pub(super) is_fading: bool,
}

/// A loudspeaker that plays at the clock's pace.
#[derive(Default)]
pub(super) struct Player {
    turn: TurnNumber,
    queue: VecDeque<u64>,
    output: Option<Output>,
    fade_ms: u64,
    taken: u64,
    /// What was taken when.
    history: VecDeque<(u64, TurnNumber, u64)>,
    heard: (TurnNumber, u64),
    pub(super) played: Vec<Played>,
}

#[derive(Clone, Default)]
struct SharedPlayer(Arc<Mutex<Player>>);

impl Loudspeaker for SharedPlayer {
    fn queue(&mut self, turn: TurnNumber, sound: Arc<[f32]>) {
        let mut player = locked(&self.0);
        if player.turn != turn {
            (player.turn, player.taken, player.output) = (turn, 0, None);
            player.queue.clear();
        }
        player.queue.push_back(sound.len() as u64);
    }

    fn set_output(&mut self, turn: TurnNumber, output: Output) {
        let mut player = locked(&self.0);
        if player.turn == turn {
            player.output = Some(output);
        }
    }

    fn silence(&mut self, turn: TurnNumber) {
        let mut player = locked(&self.0);
        if player.turn == turn && !player.queue.is_empty() {
            player.fade_ms = if player.output == Some(Output::Held) { 0 } else { FADE_MS };
            player.queue.clear();
        }
    }

    fn heard(&mut self, turn: TurnNumber) -> u64 {
        let player = locked(&self.0);
        if player.heard.0 == turn { player.heard.1 } else { 0 }
    }
}

impl Player {
    fn tick(&mut self, at_ms: u64) {
        while let Some((_, turn, taken)) =
            self.history.pop_front_if(|(taken_ms, ..)| *taken_ms + DEVICE_LATENCY_MS <= at_ms)
        {
            self.heard = (turn, taken);
        }
        let (turn, is_ducked) = (self.turn, self.output == Some(Output::Ducked));
        if self.fade_ms > 0 {
            self.fade_ms -= TICK_MS;
            self.played.push(Played { at_ms, turn, is_ducked, is_fading: true });
            return;
        }
        if self.output == Some(Output::Held) {
            return;
        }
        let mut room = TICK_OUT;
        while let Some(left) = self.queue.front_mut().filter(|_| room > 0) {
            let samples = room.min(*left);
            (*left, room) = (*left - samples, room - samples);
            if *left == 0 {
                self.queue.pop_front();
            }
            self.taken += samples;
        }
        if room < TICK_OUT {
            self.played.push(Played { at_ms, turn, is_ducked, is_fading: false });
            self.history.push_back((at_ms, turn, self.taken));
        }
    }
}

/// A conversation in its world.
pub(super) struct World {
    pub(super) pipeline: Pipeline,
    watch: Arc<Watch>,
    play: Arc<Mutex<Play>>,
    player: SharedPlayer,
    actor: Actor,
    chunks: u64,
}

pub(super) fn one_sentence(text: &str) -> Vec<String> {
    vec![format!("You said {} words.", text.split_whitespace().count())]
}

pub(super) fn five_sentences(_: &str) -> Vec<String> {
    let sentence = "This is one of five quite long sentences for everybody to hear";
    (1..=5).map(|i| format!("{sentence} {i}.")).collect()
}

impl World {
    /// With its models in place.
    pub(super) fn new(latency_ms: u64, script: Script, answer: fn(&str) -> Vec<String>) -> Self {
        let mut world = Self::without_models(latency_ms, script, answer);
        world.install();
        world
    }

    pub(super) fn without_models(latency_ms: u64, script: Script, answer: fn(&str) -> Vec<String>) -> Self {
        let watch = Arc::new(Watch::default());
        let play = Play {
            script,
            latency_ms,
            answer,
            asked: Vec::new(),
            seen: Vec::new(),
            prepared: 0,
            fails: None,
            panics: None,
            loses: None,
            trimmed: None,
        };
        let play = Arc::new(Mutex::new(play));
        let player = SharedPlayer::default();
        let config = PipelineConfig {
            turns: TurnConfig::default(),
            listening: Listening::Always,
            history: History::new("Be brief."),
            shows_words_early: true,
        };
        let ends = Ends { microphone: None, loudspeaker: Box::new(player.clone()) };
        let clock: Arc<dyn Clock> = watch.clock.clone();
        let pipeline =
            Pipeline::start_with(config, ends, clock, Box::new(|| {}), Time::IsTold, &watch.underway)
                .unwrap();
        let actor = Actor { watch: watch.clone(), play: play.clone() };
        Self { pipeline, watch, play, player, actor, chunks: 0 }
    }

    pub(super) fn install(&mut self) -> &mut Self {
        for stage in [Stage::Transcribe, Stage::Reply, Stage::Speak] {
            self.install_one(stage);
        }
        self
    }

    pub(super) fn install_one(&mut self, stage: Stage) -> &mut Self {
        let actor = Box::new(self.actor.clone());
        self.send(Command::Install(match stage {
            Stage::Transcribe => Model::Recogniser(actor),
            Stage::Reply => Model::Writer(actor),
            Stage::Speak => Model::Voice(actor),
        }))
    }

    pub(super) fn send(&mut self, command: Command) -> &mut Self {
        self.pipeline.send(command);
        self.watch.settle();
        self
    }

    pub(super) fn play(&self) -> MutexGuard<'_, Play> {
        locked(&self.play)
    }

    /// Adds to what the user says.
    pub(super) fn say(&mut self, add: impl FnOnce(Script, u64) -> Script) -> &mut Self {
        let now_ms = self.now_ms();
        let mut play = self.play();
        play.script = add(std::mem::take(&mut play.script), now_ms);
        drop(play);
        self
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.pipeline.snapshot()
    }

    pub(super) fn played(&self) -> Vec<Played> {
        locked(&self.player.0).played.clone()
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.watch.clock.now_ns() / 1_000_000
    }

    /// Ten milliseconds.
    pub(super) fn tick(&mut self) {
        self.watch.clock.advance_ms(TICK_MS as f64);
        self.watch.settle();
        let now_ms = self.now_ms();
        while (self.chunks + 1) * CHUNK.0 <= Samples::from_ms(now_ms).0 {
            let (from, to) = (Samples(self.chunks * CHUNK.0), Samples((self.chunks + 1) * CHUNK.0));
            self.chunks += 1;
            let probability = self.play().script.score(from, to);
            let samples: [f32; CHUNK_SAMPLES] = std::array::from_fn(|i| (from.0 + i as u64) as f32);
            let now_ns = self.watch.clock.now_ns();
            let times = ChunkTimes { heard_ns: to.0 * 62_500, captured_ns: now_ns, scored_ns: now_ns };
            self.pipeline.post.send(Message::Chunk(Box::new(Chunk { samples, probability, times })));
            self.watch.settle();
        }
        locked(&self.player.0).tick(now_ms);
        self.pipeline.post.send(Message::Tick);
        self.watch.settle();
    }

    pub(super) fn run_to(&mut self, ms: u64) -> &mut Self {
        while self.now_ms() < ms {
            self.tick();
        }
        self
    }

    /// Runs until `done`; fails after two minutes.
    pub(super) fn run_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> &mut Self {
        let limit_ms = self.now_ms() + 120_000;
        while !done(self) {
            self.tick();
            assert!(self.now_ms() < limit_ms, "waited in vain for {what}: {:?}", self.snapshot());
        }
        self
    }

    /// Runs until the script is over and so many exchanges are finished, and a while longer.
    pub(super) fn run_until_entries(&mut self, count: usize) -> &mut Self {
        let end_ms = self.play().script.end_ms();
        self.run_to(end_ms);
        self.run_until("entries", |world| world.snapshot().entries.len() >= count);
        let end_ms = self.now_ms() + 1_000;
        self.run_to(end_ms)
    }

    /// What the user said, turn by turn.
    pub(super) fn turns(&self) -> Vec<String> {
        self.snapshot().entries.iter().map(|entry| entry.user.to_string()).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        locked(&self.watch.sleepers).is_over = true;
        self.watch.wake();
    }
}
