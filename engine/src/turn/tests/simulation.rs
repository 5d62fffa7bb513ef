//! A conversation in simulated time: a script speaks, scripted stages answer after a fixed latency, an
//! output plays at the pace of the clock. Nothing waits, nothing is random.
//!
//! The stages are as unkind as real ones: they deliver cancelled work late all the same.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::conductor::{ChunkTimes, Conductor, Output, Stages};
use super::super::endpoint::CHUNK;
use super::super::message::{Event, Exchange, Stage, TurnNumber};
use super::super::{Samples, TurnConfig};
use crate::latency::{Clock, ManualClock, Mark, Marks};

/// One step of the clock.
pub(in crate::turn) const TICK_MS: u64 = 10;
/// Samples of the synthesiser in a tick, at 24 kHz.
const TICK_OUT: u64 = 240;
/// Length of a spoken word, of user and synthesiser alike.
pub(in crate::turn) const WORD_MS: u64 = 300;
/// From the output's queue to the loudspeaker.
const DEVICE_LATENCY_MS: u64 = 20;
/// The output's fade when it is silenced.
pub(in crate::turn) const FADE_MS: u64 = 20;

/// What the user says and what makes noise, at times in milliseconds.
#[derive(Clone, Default)]
pub(in crate::turn) struct Script {
    /// `(word, start, end)`.
    words: Vec<(String, u64, u64)>,
    /// Noises that the VAD takes for speech: `(start, end)`.
    noises: Vec<(u64, u64)>,
}

impl Script {
    /// Speaks `words` from `at_ms` on without gaps, 300 ms each.
    pub(in crate::turn) fn say(mut self, at_ms: u64, words: &str) -> Self {
        for (i, word) in (0..).zip(words.split_whitespace()) {
            let start = at_ms + i * WORD_MS;
            self.words.push((word.to_owned(), start, start + WORD_MS));
        }
        self
    }

    /// Speaks one word of the given length.
    pub(in crate::turn) fn word(mut self, at_ms: u64, word: &str, length_ms: u64) -> Self {
        self.words.push((word.to_owned(), at_ms, at_ms + length_ms));
        self
    }

    pub(in crate::turn) fn noise(mut self, at_ms: u64, length_ms: u64) -> Self {
        self.noises.push((at_ms, at_ms + length_ms));
        self
    }

    /// When the last word or noise ends.
    pub(in crate::turn) fn end_ms(&self) -> u64 {
        let words = self.words.iter().map(|word| word.2);
        words.chain(self.noises.iter().map(|noise| noise.1)).max().unwrap_or(0)
    }

    pub(in crate::turn) fn all_words(&self) -> Vec<String> {
        self.words.iter().map(|word| word.0.clone()).collect()
    }

    /// A VAD's score: how much of `from..to` is voiced.
    pub(in crate::turn) fn score(&self, from: Samples, to: Samples) -> f32 {
        let spans = self.words.iter().map(|word| (word.1, word.2)).chain(self.noises.iter().copied());
        let voiced: u64 = spans.map(|(a, b)| overlap((from, to), a, b)).sum();
        0.95 * voiced as f32 / (to - from).0 as f32
    }

    /// A recogniser's text: the words that lie in `from..to` for the most part.
    pub(in crate::turn) fn transcript(&self, from: Samples, to: Samples) -> String {
        let heard =
            self.words.iter().filter(|(_, a, b)| 2 * overlap((from, to), *a, *b) > Samples::from_ms(b - a).0);
        heard.map(|word| word.0.as_str()).collect::<Vec<_>>().join(" ")
    }
}

fn overlap((from, to): (Samples, Samples), a_ms: u64, b_ms: u64) -> u64 {
    (to.min(Samples::from_ms(b_ms)) - from.max(Samples::from_ms(a_ms))).0
}

/// A job that a stage works on, or an answer under way.
struct Due {
    at_ms: u64,
    event: Event,
}

struct ReplyJob {
    turn: TurnNumber,
    clauses: VecDeque<String>,
    /// Until the next clause, while not resting.
    left_ms: u64,
    resting: bool,
    marks: Option<Marks>,
}

struct SpeakJob {
    turn: TurnNumber,
    clause: usize,
    text: String,
}

/// Sound as it was heard: `samples` of `turn` in the tick at `at_ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Heard {
    pub(super) at_ms: u64,
    pub(super) turn: TurnNumber,
    pub(super) samples: u64,
    pub(super) ducked: bool,
    /// The tail of a turn that was just silenced.
    pub(super) fading: bool,
}

/// The scripted stages and the output.
pub(super) struct Scripted {
    pub(super) script: Script,
    latency_ms: u64,
    clock: Arc<ManualClock>,
    answer: fn(&str) -> Vec<String>,
    due: Vec<Due>,
    reply: Option<ReplyJob>,
    speak: VecDeque<SpeakJob>,
    /// When the synthesiser is done with the first of `speak`.
    speak_ready_ms: u64,
    /// Chunks of each turn by number: their lengths.
    chunks: Vec<(TurnNumber, u64)>,
    queue: VecDeque<(TurnNumber, u64)>,
    output: Output,
    fade: Option<(TurnNumber, u64)>,
    consumed: (TurnNumber, u64),
    pub(super) heard: Vec<Heard>,
    pub(super) history: Vec<Exchange>,
    pub(super) notices: Vec<(Stage, String)>,
    pub(super) asked: Vec<String>,
    /// Words in clauses with this mark have no sound.
    pub(super) mute_clause: &'static str,
    pub(super) silenced_at_ms: Vec<u64>,
}

impl Scripted {
    fn now_ms(&self) -> u64 {
        self.clock.now_ns() / 1_000_000
    }

    /// The next answer that is due now.
    fn next_event(&mut self) -> Option<Event> {
        let now = self.now_ms();
        if let Some(index) = self.due.iter().position(|due| due.at_ms <= now) {
            return Some(self.due.remove(index).event);
        }
        if let Some(job) = self.reply.as_mut().filter(|job| !job.resting && job.left_ms == 0) {
            if let Some(marks) = &job.marks {
                for mark in [Mark::PrefillEnd, Mark::FirstToken] {
                    marks.mark(mark);
                }
            }
            let turn = job.turn;
            // Later clauses come at a tenth of the latency.
            job.left_ms = self.latency_ms / 10;
            let Some(text) = job.clauses.pop_front() else {
                self.reply = None;
                return Some(Event::ReplyDone { turn });
            };
            return Some(Event::Clause { turn, text: text.into() });
        }
        if !self.speak.is_empty() && self.speak_ready_ms <= now {
            let job = self.speak.pop_front()?;
            self.speak_ready_ms = now + self.latency_ms;
            self.synthesise(&job);
            return self.next_event();
        }
        None
    }

    /// A chunk per word, then the end of the clause.
    fn synthesise(&mut self, job: &SpeakJob) {
        let now = self.now_ms();
        let SpeakJob { turn, clause, text } = job;
        if self.mute_clause.is_empty() || !text.contains(self.mute_clause) {
            let mut spoken_bytes = 0;
            for word in text.split_inclusive(' ') {
                spoken_bytes += word.len();
                let event = Event::Chunk {
                    turn: *turn,
                    clause: *clause,
                    samples: WORD_MS * TICK_OUT / TICK_MS,
                    spoken_bytes,
                };
                self.due.push(Due { at_ms: now, event });
            }
        }
        self.due.push(Due { at_ms: now, event: Event::ClauseSpoken { turn: *turn, clause: *clause } });
    }

    /// Plays one tick of sound.
    fn play_tick(&mut self) {
        let at_ms = self.now_ms();
        if let Some((turn, left_ms)) = self.fade {
            self.heard.push(Heard { at_ms, turn, samples: TICK_OUT, ducked: false, fading: true });
            self.fade = (left_ms > TICK_MS).then(|| (turn, left_ms - TICK_MS));
            return;
        }
        let mut room = if self.output == Output::Held { 0 } else { TICK_OUT };
        while let Some((turn, left)) = self.queue.front_mut().filter(|_| room > 0) {
            let (turn, samples) = (*turn, room.min(*left));
            *left -= samples;
            room -= samples;
            if *left == 0 {
                self.queue.pop_front();
            }
            if self.consumed.0 != turn {
                self.consumed = (turn, 0);
            }
            self.consumed.1 += samples;
            let ducked = self.output == Output::Ducked;
            self.heard.push(Heard { at_ms, turn, samples, ducked, fading: false });
            let event = Event::Played { turn, samples: self.consumed.1 };
            self.due.push(Due { at_ms: at_ms + DEVICE_LATENCY_MS, event });
        }
    }

    fn is_idle(&self) -> bool {
        self.due.is_empty() && self.reply.is_none() && self.speak.is_empty() && self.queue.is_empty()
    }
}

impl Stages for Scripted {
    fn transcribe(&mut self, turn: TurnNumber, from: Samples, to: Samples, marks: Option<&Marks>) {
        let text = self.script.transcript(from, to);
        let at_ms = self.now_ms() + self.latency_ms;
        if let Some(marks) = marks {
            marks.mark(Mark::EncoderStart);
            marks.mark_at(Mark::EncoderEnd, (at_ms - self.latency_ms / 2) * 1_000_000);
        }
        self.due.push(Due { at_ms, event: Event::Transcript { turn, text: text.into() } });
    }

    fn reply(&mut self, turn: TurnNumber, text: &str, marks: Option<&Marks>) {
        self.asked.push(text.to_owned());
        if let Some(marks) = marks {
            marks.mark(Mark::PrefillStart);
        }
        let clauses = (self.answer)(text).into();
        let (left_ms, marks) = (self.latency_ms, marks.cloned());
        self.reply = Some(ReplyJob { turn, clauses, left_ms, resting: false, marks });
    }

    fn pause_reply(&mut self, turn: TurnNumber) {
        if let Some(job) = self.reply.as_mut().filter(|job| job.turn == turn) {
            job.resting = true;
        }
    }

    fn continue_reply(&mut self, turn: TurnNumber) {
        if let Some(job) = self.reply.as_mut().filter(|job| job.turn == turn) {
            job.resting = false;
        }
    }

    fn speak(&mut self, turn: TurnNumber, clause: usize, text: &str) {
        if self.speak.is_empty() {
            self.speak_ready_ms = self.now_ms() + self.latency_ms;
        }
        self.speak.push_back(SpeakJob { turn, clause, text: text.to_owned() });
    }

    fn play(&mut self, turn: TurnNumber, chunk: usize) {
        let of_turn = self.chunks.iter().filter(|(number, _)| *number == turn);
        let (_, samples) = *of_turn.clone().nth(chunk).expect("only chunks that were made are played");
        if self.queue.is_empty() && chunk == 0 {
            self.output = Output::Normal;
        }
        self.queue.push_back((turn, samples));
    }

    fn set_output(&mut self, _: TurnNumber, output: Output) {
        self.output = output;
    }

    fn silence(&mut self, turn: TurnNumber) {
        self.silenced_at_ms.push(self.now_ms());
        if self.queue.iter().any(|(queued, _)| *queued == turn) && self.output != Output::Held {
            self.fade = (self.consumed.0 == turn).then_some((turn, FADE_MS));
        }
        self.queue.retain(|(queued, _)| *queued != turn);
        self.output = Output::Normal;
    }

    fn cancel(&mut self, turn: TurnNumber) {
        let now = self.now_ms();
        if let Some(job) = self.reply.take_if(|job| job.turn == turn) {
            // What it had under way arrives all the same, and late.
            for text in job.clauses {
                let event = Event::Clause { turn, text: text.into() };
                self.due.push(Due { at_ms: now + 50, event });
            }
            self.due.push(Due { at_ms: now + 60, event: Event::ReplyDone { turn } });
        }
        let (cancelled, kept): (VecDeque<_>, _) = self.speak.drain(..).partition(|job| job.turn == turn);
        self.speak = kept;
        for job in cancelled {
            self.synthesise(&job);
        }
    }

    fn remember(&mut self, exchange: &Exchange) {
        self.history.push(exchange.clone());
    }

    fn notice(&mut self, _: TurnNumber, stage: Stage, reason: &str) {
        self.notices.push((stage, reason.to_owned()));
    }
}

/// A conversation under way.
pub(super) struct Simulation {
    pub(super) conductor: Conductor<Scripted>,
    clock: Arc<ManualClock>,
}

/// Answers a question with one sentence.
fn short_answer(text: &str) -> Vec<String> {
    vec![format!("You said {} words.", text.split_whitespace().count())]
}

impl Simulation {
    /// `script` spoken to stages that each answer after `latency_ms`.
    pub(super) fn new(latency_ms: u64, script: Script) -> Self {
        Self::with(TurnConfig::default(), latency_ms, script, short_answer)
    }

    pub(super) fn with(
        config: TurnConfig,
        latency_ms: u64,
        script: Script,
        answer: fn(&str) -> Vec<String>,
    ) -> Self {
        let clock = Arc::new(ManualClock::default());
        let stages = Scripted {
            script,
            latency_ms,
            clock: clock.clone(),
            answer,
            due: Vec::new(),
            reply: None,
            speak: VecDeque::new(),
            speak_ready_ms: 0,
            chunks: Vec::new(),
            queue: VecDeque::new(),
            output: Output::Normal,
            fade: None,
            consumed: (TurnNumber(0), 0),
            heard: Vec::new(),
            history: Vec::new(),
            notices: Vec::new(),
            asked: Vec::new(),
            mute_clause: "",
            silenced_at_ms: Vec::new(),
        };
        Self { conductor: Conductor::new(config, clock.clone(), stages), clock }
    }

    pub(super) fn stages(&self) -> &Scripted {
        &self.conductor.stages
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.clock.now_ns() / 1_000_000
    }

    /// One message to the conductor, as a stage or a key sends it.
    pub(super) fn send(&mut self, event: Event) {
        // The pipeline stores a chunk before it tells of it.
        if let Event::Chunk { turn, samples, .. } = event {
            self.conductor.stages.chunks.push((turn, samples));
        }
        self.conductor.event(event);
    }

    fn deliver(&mut self) {
        while let Some(event) = self.conductor.stages.next_event() {
            self.send(event);
        }
    }

    /// Ten milliseconds.
    pub(super) fn tick(&mut self) {
        self.deliver();
        let before = Samples::from_ms(self.now_ms());
        self.clock.advance_ms(TICK_MS as f64);
        let now = Samples::from_ms(self.now_ms());
        if let Some(job) = self.conductor.stages.reply.as_mut().filter(|job| !job.resting) {
            job.left_ms = job.left_ms.saturating_sub(TICK_MS);
        }
        let chunk = now.0 / CHUNK.0;
        if before.0 / CHUNK.0 < chunk {
            let (from, to) = (Samples((chunk - 1) * CHUNK.0), Samples(chunk * CHUNK.0));
            let score = self.stages().script.score(from, to);
            let now_ns = self.clock.now_ns();
            let heard_ns = to.0 * 62_500;
            self.conductor.chunk(score, ChunkTimes { heard_ns, captured_ns: now_ns, scored_ns: now_ns });
        }
        self.deliver();
        self.conductor.stages.play_tick();
        let (current, played) = (self.conductor.state().current_turn(), self.stages().heard.last());
        if let Some(heard) = played.filter(|heard| heard.at_ms == self.now_ms() && !heard.fading) {
            assert_eq!(current, Some(heard.turn), "a sample of a stale turn at {} ms", heard.at_ms);
        }
    }

    pub(super) fn run_to(&mut self, ms: u64) -> &mut Self {
        while self.now_ms() < ms {
            self.tick();
        }
        self
    }

    /// Runs until sound was heard in so many ticks. Panics if that takes more than two minutes.
    pub(super) fn run_until_heard(&mut self, ticks: usize) {
        while self.stages().heard.len() < ticks {
            self.tick();
            assert!(self.now_ms() < 120_000, "silent: {:?}", self.conductor.state());
        }
    }

    /// Runs until the script is over and nothing happens any more.
    ///
    /// Panics if that takes more than two minutes after the script: something waits for ever.
    pub(super) fn run(&mut self) -> &mut Self {
        self.run_to(self.stages().script.end_ms() + 2_000);
        let limit = self.now_ms() + 120_000;
        while !self.stages().is_idle() || self.conductor.state().current_turn().is_some() {
            self.tick();
            assert!(self.now_ms() < limit, "stuck: {:?}", self.conductor.state());
        }
        self
    }

    /// What the user said, turn by turn.
    pub(super) fn turns(&self) -> Vec<&str> {
        self.stages().history.iter().map(|exchange| &*exchange.user).collect()
    }

    /// Pauses of sound, in milliseconds, between the first and the last sound.
    pub(super) fn longest_gap_ms(&self) -> u64 {
        self.stages().heard.windows(2).map(|pair| pair[1].at_ms - pair[0].at_ms).max().unwrap_or(0)
    }
}
