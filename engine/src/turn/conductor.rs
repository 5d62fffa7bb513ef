//! Drives endpoint and turn machine with chunks and messages, carries out what they decide, and keeps
//! the latency record.
//!
//! The real pipeline and the simulation run the same conductor; they differ in the [`Stages`] behind it
//! and in the clock. It is owned by one thread, which takes chunks and messages in the order they come;
//! the stages run elsewhere and answer with [`Event`]s.

use std::collections::VecDeque;
use std::sync::Arc;

use super::endpoint::{self, CHUNK, EndpointState};
use super::machine::{self, TurnState};
use super::message::{Effect, Event, Exchange, Outcome, Stage, TurnNumber};
use super::{LISTEN_RATE_HZ, Samples, TurnConfig};
use crate::latency::{Clock, Mark, Marks, Recorder, TurnRecord};

/// What carries out the machine's decisions. No method may wait; work is handed over and answered by an
/// [`Event`] with the same number.
pub trait Stages {
    /// Recognise the microphone's samples `from..to`; answers [`Event::Transcript`]. Marks
    /// [`Mark::EncoderStart`] and [`Mark::EncoderEnd`].
    fn transcribe(&mut self, turn: TurnNumber, from: Samples, to: Samples, marks: Option<&Marks>);
    /// Answer the user's words; answers [`Event::Clause`]s and [`Event::ReplyDone`]. Marks
    /// [`Mark::PrefillStart`], [`Mark::PrefillEnd`] and [`Mark::FirstToken`].
    fn reply(&mut self, turn: TurnNumber, text: &str, marks: Option<&Marks>);
    /// Let the reply rest, after giving out every clause that is complete.
    fn pause_reply(&mut self, turn: TurnNumber);
    /// Let the reply go on.
    fn continue_reply(&mut self, turn: TurnNumber);
    /// Speak a clause, after those asked for before; answers [`Event::Chunk`]s and [`Event::ClauseSpoken`].
    fn speak(&mut self, turn: TurnNumber, clause: usize, text: &str);
    /// Hand chunk number `chunk` of the turn to the output; answers [`Event::Played`] as it is heard. The first
    /// chunk of a turn is played at full gain, whatever an earlier turn was.
    fn play(&mut self, turn: TurnNumber, chunk: usize);
    /// Lower the gain, wait, or go back to normal.
    fn set_output(&mut self, turn: TurnNumber, output: Output);
    /// Fade out and drop all sound of the turn.
    fn silence(&mut self, turn: TurnNumber);
    /// Give up all work on the turn.
    fn cancel(&mut self, turn: TurnNumber);
    /// Add to the conversation's history.
    fn remember(&mut self, exchange: &Exchange);
    /// Tell the user that a stage failed.
    fn notice(&mut self, turn: TurnNumber, stage: Stage, reason: &str);
}

/// How the output treats the current turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Full gain.
    Normal,
    /// Lower gain: the user may be speaking.
    Ducked,
    /// Nothing is taken from the queue: the user may be speaking and nothing was heard yet.
    Held,
}

/// When a chunk of the microphone was where, in nanoseconds of the recorder's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkTimes {
    /// Its last sample was at the microphone.
    pub heard_ns: u64,
    /// It left ring, resampler and echo canceller.
    pub captured_ns: u64,
    /// Its score was there.
    pub scored_ns: u64,
}

/// Chunks whose times are kept: 4 s, longer than any wait for the end of a turn.
const KEPT_CHUNKS: usize = 128;

/// Endpoint, turn machine, record and stages, put together.
pub struct Conductor<S> {
    state: TurnState,
    endpoint: EndpointState,
    recorder: Recorder,
    marks: Option<(TurnNumber, Marks)>,
    /// Position after the chunk, and its times.
    chunks: VecDeque<(Samples, ChunkTimes)>,
    /// Of the turn under way, for its record.
    user: Arc<str>,
    heard: Arc<str>,
    waits: Vec<Samples>,
    /// What carries out the decisions.
    pub stages: S,
}

impl<S: Stages> Conductor<S> {
    /// A conversation that has not begun.
    pub fn new(config: TurnConfig, clock: Arc<dyn Clock>, stages: S) -> Self {
        Self {
            state: TurnState::new(config),
            endpoint: EndpointState::default(),
            recorder: Recorder::new(clock),
            marks: None,
            chunks: VecDeque::with_capacity(KEPT_CHUNKS),
            user: "".into(),
            heard: "".into(),
            waits: Vec::new(),
            stages,
        }
    }

    /// The turn machine's state, for display.
    pub fn state(&self) -> &TurnState {
        &self.state
    }

    /// Records of the finished turns, oldest first.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = &TurnRecord> + ExactSizeIterator {
        self.recorder.turns()
    }

    /// The recorder, for live readings.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Silence that each turn's end was waited for, oldest first.
    pub fn waits(&self) -> &[Samples] {
        &self.waits
    }

    /// Changes the settings; what is under way goes on under them.
    pub fn set_config(&mut self, config: TurnConfig) {
        self.state.set_config(config);
    }

    /// Takes the VAD's score of the microphone's next [`CHUNK`] samples.
    pub fn chunk(&mut self, probability: f32, times: ChunkTimes) {
        let (endpoint, events) = endpoint::step(&self.state.endpoint_config(), &self.endpoint, probability);
        self.endpoint = endpoint;
        if self.chunks.len() == KEPT_CHUNKS {
            self.chunks.pop_front();
        }
        self.chunks.push_back((endpoint.position(), times));
        for event in events {
            self.event(Event::Speech(event));
        }
    }

    /// The microphone's stream is over after `length` samples: ends the speech that is open.
    pub fn finish(&mut self, length: Samples) {
        let position = self.endpoint.position();
        let (endpoint, event) = endpoint::finish(&self.endpoint, length);
        if let Some(event) = event {
            self.step(position, Event::Speech(event));
        }
        self.endpoint = endpoint;
    }

    /// Whether only [`end_speech`](Self::end_speech) ends the turn, as while a key is held: see [`TurnState::hold`].
    pub fn hold(&mut self, is_held: bool) {
        self.state.hold(is_held);
    }

    /// The user says that he has finished speaking: the silence is not waited for. What comes is new speech.
    pub fn end_speech(&mut self) {
        let (endpoint, event) = endpoint::end_speech(&self.endpoint);
        if let Some(event) = event {
            self.event(Event::Speech(event));
        }
        self.endpoint = endpoint;
    }

    /// Samples of the microphone's stream so far.
    pub fn position(&self) -> Samples {
        self.endpoint.position()
    }

    /// Takes a message of a stage, a key or a text.
    pub fn event(&mut self, event: Event) {
        self.step(self.endpoint.position(), event);
    }

    fn step(&mut self, now: Samples, event: Event) {
        self.mark_event(&event);
        let (state, effects) = machine::step(&self.state, now, event);
        self.state = state;
        for effect in effects {
            self.carry_out(effect);
        }
    }

    fn mark(&self, turn: TurnNumber, mark: Mark) {
        if let Some(marks) = self.marks_of(turn) {
            marks.mark(mark);
        }
    }

    fn marks_of(&self, turn: TurnNumber) -> Option<&Marks> {
        self.marks.as_ref().filter(|(current, _)| *current == turn).map(|(_, marks)| marks)
    }

    fn mark_event(&self, event: &Event) {
        match event {
            Event::Transcript { turn, .. } => self.mark(*turn, Mark::TranscriptReady),
            Event::Clause { turn, .. } => self.mark(*turn, Mark::FirstClause),
            Event::Chunk { turn, .. } => self.mark(*turn, Mark::FirstChunk),
            Event::Played { turn, samples: 1.. } => self.mark(*turn, Mark::FirstSample),
            _ => {}
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Begin { turn, voiced_end } => self.begin(turn, voiced_end),
            Effect::Transcribe { turn, from, to } => {
                let marks = self.marks_of(turn).cloned();
                self.stages.transcribe(turn, from, to, marks.as_ref());
            }
            Effect::EndOfTurn { turn, waited } => {
                self.mark(turn, Mark::EndOfTurn);
                self.waits.push(waited);
            }
            Effect::Reply { turn, text } => {
                let marks = self.marks_of(turn).cloned();
                self.stages.reply(turn, &text, marks.as_ref());
                self.user = text;
            }
            Effect::PauseReply { turn } => self.stages.pause_reply(turn),
            Effect::ContinueReply { turn } => self.stages.continue_reply(turn),
            Effect::Speak { turn, clause, text } => self.stages.speak(turn, clause, &text),
            Effect::Play { turn, chunk } => {
                self.mark(turn, Mark::Released);
                self.stages.play(turn, chunk);
            }
            Effect::Duck { turn } => self.stages.set_output(turn, Output::Ducked),
            Effect::Hold { turn } => self.stages.set_output(turn, Output::Held),
            Effect::Resume { turn } => self.stages.set_output(turn, Output::Normal),
            Effect::Silence { turn } => self.stages.silence(turn),
            Effect::Cancel { turn } => self.stages.cancel(turn),
            Effect::Remember(exchange) => {
                self.stages.remember(&exchange);
                (self.user, self.heard) = (exchange.user, exchange.heard);
            }
            Effect::Closed { outcome, .. } => {
                match outcome {
                    Outcome::Answered => drop(self.recorder.finish(&self.user, &self.heard)),
                    Outcome::Interrupted => drop(self.recorder.cancel(&self.user, &self.heard)),
                    Outcome::Discarded => self.recorder.discard(),
                }
                self.marks = None;
            }
            Effect::Notice { turn, stage, reason } => self.stages.notice(turn, stage, &reason),
        }
    }

    fn begin(&mut self, turn: TurnNumber, voiced_end: Option<Samples>) {
        let marks = self.recorder.begin(turn.0);
        // Typed text has no voice, and so no voice to voice.
        if let Some(voiced_end) = voiced_end {
            // The chunk that holds the last voiced sample.
            let chunk = self.chunks.iter().find(|(end, _)| *end >= voiced_end && *end < voiced_end + CHUNK);
            if let Some((end, times)) = chunk {
                let after = (*end - voiced_end).0 * 1_000_000_000 / LISTEN_RATE_HZ;
                marks.mark_at(Mark::SpeechEnd, times.heard_ns.saturating_sub(after));
                marks.mark_at(Mark::SpeechEndCaptured, times.captured_ns);
                marks.mark_at(Mark::SpeechEndScored, times.scored_ns);
            }
        }
        self.marks = Some((turn, marks));
    }
}
