//! The turn machine: who may speak, and what is worked on.
//!
//! A pure function: [`step`] takes a state, the time on the microphone's sample clock and an event, and
//! gives the state after it and what to do. It owns the life of every attempt at a turn:
//!
//! ```text
//! Start ─▶ Confirmed ─▶ MaybeEnd ─▶ transcribe ─▶ reply ─▶ speak first clause ┐  (speculation)
//!                          │ ▲ Resumed: all of it is thrown away              │
//!                          ▼ │                                                ▼
//!                        end of turn ───────────────────────────────────▶ play ─▶ heard ─▶ history
//! ```
//!
//! - **Speculation.** Work starts at the first pause; nothing of it is played before the end of turn.
//! - **Merging.** Speech before the first sound withdraws the reply; both parts become one turn.
//! - **Barge-in.** Speech during the reply ducks it; when it is sure, the reply stops, and history keeps
//!   the words that were heard.
//! - **The wait** before a turn ends depends on the words so far ([`completeness`]).
//! - **Late messages** carry an old [`TurnNumber`] and change nothing.
//! - **No deadlock.** The reply rests only while a clause that it has handed over is being synthesised and
//!   nothing is audible yet; the end of that clause, even without sound, lets it go on.
//!
//! Rejected: one enum of phases. Ear, unanswered speech and reply overlap in almost every combination
//! (the user pauses while the reply is made; a noise ducks what plays), and the product of the three is
//! a long list of states with the same code.

use std::sync::Arc;

use super::Samples;
use super::config::{Processors, Speculation, TurnConfig};
use super::endpoint::{EndpointConfig, SpeechEvent};
use super::message::{Effect, Event, Exchange, Outcome, Stage, TurnNumber};
use super::reply::Reply;
use super::unfinished::{Completeness, asks_for_silence, completeness};
use super::utterance::{Piece, Utterance};

/// What the user is doing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Ear {
    #[default]
    Quiet,
    /// Probably speaking, from there on.
    Starting(Samples),
    Speaking,
    /// Quiet since there; the turn may be over.
    Pausing(Samples),
}

/// What a display shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Nothing happens.
    Idle,
    /// The user speaks or pauses.
    Listening,
    /// The user has finished; nothing is audible yet.
    Thinking,
    /// The reply is audible.
    Speaking,
}

/// The piece of the user's speech that may still grow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growing {
    /// Its first sample.
    pub from: Samples,
    /// Its words, if they are recognised up to here.
    pub text: Option<Arc<str>>,
    /// They are being recognised, or are.
    pub is_attempted: bool,
}

/// Everything the turn machine remembers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnState {
    config: TurnConfig,
    next_turn: u64,
    ear: Ear,
    utterance: Option<Utterance>,
    reply: Option<Reply>,
    /// The user says when the turn ends: no silence ends it.
    is_held: bool,
    /// The attempt that was begun and not closed.
    begun: Option<TurnNumber>,
}

/// Takes one event at time `now` of the microphone's sample clock. Effects are to be carried out in order.
pub fn step(state: &TurnState, now: Samples, event: Event) -> (TurnState, Vec<Effect>) {
    let mut run = Run { state: state.clone(), now, effects: Vec::new() };
    run.take(event);
    run.advance_reply();
    (run.state, run.effects)
}

impl TurnState {
    /// A machine that has heard nothing.
    pub fn new(config: TurnConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// The settings.
    pub fn config(&self) -> &TurnConfig {
        &self.config
    }

    /// Changes the settings; what is under way goes on under them.
    pub fn set_config(&mut self, config: TurnConfig) {
        self.config = config;
    }

    /// While `is_held`, as by a key that is down, the turn goes on through every silence; work still begins at a pause.
    pub fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// The endpoint's settings for the next chunk: its hangover follows the words so far.
    pub fn endpoint_config(&self) -> EndpointConfig {
        EndpointConfig { hangover: self.silence(), ..self.config.endpoint }
    }

    /// Silence after which the turn ends.
    fn silence(&self) -> Samples {
        if self.is_held {
            return Samples(u64::MAX);
        }
        let base = self.config.endpoint.hangover;
        let growing = |utterance: &&Utterance| !utterance.ended && utterance.attempt.is_some();
        let Some(utterance) = self.utterance.as_ref().filter(growing) else {
            return base;
        };
        base.max(match utterance.text().map(|text| completeness(&text)) {
            Some(Completeness::Finished) => base,
            Some(Completeness::Unfinished) => self.config.unfinished_silence,
            // Without the transcript there is no reply that could be late.
            Some(Completeness::Spelling) | None => self.config.spelling_silence,
        })
    }

    /// What to show.
    pub fn activity(&self) -> Activity {
        match (&self.reply, &self.utterance) {
            (Some(reply), _) if reply.is_audible() => Activity::Speaking,
            (_, Some(utterance)) if utterance.ended => Activity::Thinking,
            _ if self.ear != Ear::Quiet => Activity::Listening,
            (Some(_), _) => Activity::Thinking,
            _ => Activity::Idle,
        }
    }

    /// The first microphone sample that may still be asked for; `None` if only the pre-roll.
    pub fn keep_from(&self) -> Option<Samples> {
        let starting = if let Ear::Starting(from) = self.ear { Some(from) } else { None };
        let open = self.utterance.as_ref().and_then(|utterance| utterance.from);
        open.into_iter().chain(starting).min()
    }

    /// The user's words that were not answered to the end, without those of [`growing`](Self::growing).
    pub fn user_text(&self) -> Arc<str> {
        if let Some(reply) = self.reply.as_ref().filter(|reply| reply.is_audible()) {
            return reply.user.clone();
        }
        let closed = self.utterance.iter().flat_map(|utterance| &utterance.closed);
        let texts: Vec<&str> = closed.filter_map(|piece| piece.text.as_deref().map(str::trim)).collect();
        texts.join(" ").into()
    }

    /// The piece of the user's speech that may still grow; `None` once the reply is audible.
    pub fn growing(&self) -> Option<Growing> {
        let utterance = self.utterance.as_ref()?;
        let attempt = utterance.attempt.as_ref();
        Some(Growing {
            from: utterance.from?,
            text: attempt.and_then(|piece| piece.text.clone()),
            is_attempted: attempt.is_some(),
        })
    }

    /// The words of the reply under way that were heard to their end; `None` without a reply.
    pub fn heard_text(&self) -> Option<Arc<str>> {
        self.reply.as_ref().map(Reply::heard)
    }

    /// The attempt whose sound may be heard now or later.
    pub fn current_turn(&self) -> Option<TurnNumber> {
        self.reply.as_ref().map(|reply| reply.turn)
    }
}

/// How speech is recognised that goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Join {
    /// With what was said before, where that is not too long.
    Whole,
    /// On its own.
    Apart,
}

/// One step under way.
struct Run {
    state: TurnState,
    now: Samples,
    effects: Vec<Effect>,
}

impl Run {
    fn tell(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn new_turn(&mut self) -> TurnNumber {
        self.state.next_turn += 1;
        TurnNumber(self.state.next_turn)
    }

    /// Starts the record of `turn`; one that is still open was for nothing.
    fn begin(&mut self, turn: TurnNumber, voiced_end: Option<Samples>) {
        if let Some(turn) = self.state.begun {
            self.close(turn, Outcome::Discarded);
        }
        self.state.begun = Some(turn);
        self.tell(Effect::Begin { turn, voiced_end });
    }

    /// Ends the record of `turn`, once.
    fn close(&mut self, turn: TurnNumber, outcome: Outcome) {
        if self.state.begun == Some(turn) {
            self.state.begun = None;
            self.tell(Effect::Closed { turn, outcome });
        }
    }

    /// The reply, if the message is meant for it.
    fn reply_of(&mut self, turn: TurnNumber) -> Option<&mut Reply> {
        self.state.reply.as_mut().filter(|reply| reply.turn == turn)
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Speech(event) => self.speech(event),
            Event::Typed(text) => self.typed(text),
            Event::Stop => self.stop(),
            Event::Transcript { turn, text } => self.transcript(turn, text),
            Event::Clause { turn, text } => {
                if let Some(reply) = self.reply_of(turn).filter(|reply| !reply.complete) {
                    reply.push_clause(text);
                }
            }
            Event::ReplyDone { turn } => {
                if let Some(reply) = self.reply_of(turn) {
                    reply.complete = true;
                }
            }
            Event::Chunk { turn, clause, samples, spoken_bytes } => {
                if let Some(reply) = self.reply_of(turn) {
                    reply.push_chunk(clause, samples, spoken_bytes);
                }
            }
            Event::ClauseSpoken { turn, clause } => {
                if let Some(reply) = self.reply_of(turn) {
                    reply.clause_spoken(clause);
                }
            }
            Event::Played { turn, samples } => self.played(turn, samples),
            Event::Failed { turn, stage, reason } => self.failed(turn, stage, reason),
        }
    }

    fn speech(&mut self, event: SpeechEvent) {
        match event {
            SpeechEvent::Start { from, .. } => {
                self.state.ear = Ear::Starting(from);
                if let Some(reply) = &self.state.reply {
                    let turn = reply.turn;
                    if reply.is_audible() {
                        self.tell(Effect::Duck { turn });
                    } else if reply.is_sent() {
                        self.tell(Effect::Hold { turn });
                    }
                }
            }
            SpeechEvent::Confirmed => {
                let from = match self.state.ear {
                    Ear::Starting(from) => from,
                    _ => self.now,
                };
                self.state.ear = Ear::Speaking;
                self.user_speaks(from, Join::Whole);
            }
            SpeechEvent::Dropped => {
                self.state.ear = Ear::Quiet;
                if let Some(reply) = self.state.reply.as_ref().filter(|reply| reply.is_sent()) {
                    let turn = reply.turn;
                    self.tell(Effect::Resume { turn });
                }
            }
            SpeechEvent::MaybeEnd { voiced_end } => {
                self.state.ear = Ear::Pausing(voiced_end);
                if self.state.config.speculation != Speculation::Off {
                    self.recognise(voiced_end);
                }
            }
            SpeechEvent::Resumed => {
                let from = match self.state.ear {
                    Ear::Pausing(voiced_end) => voiced_end,
                    _ => self.now,
                };
                self.state.ear = Ear::Speaking;
                if self.now - from > self.state.config.longest_pause {
                    // A recogniser takes a long pause for the end, and leaves out what comes behind it.
                    self.recognise(from);
                    let first =
                        self.now - (self.state.config.endpoint.onset + self.state.config.endpoint.pre_roll);
                    self.user_speaks(from.max(first), Join::Apart);
                } else {
                    self.user_speaks(from, Join::Whole);
                }
            }
            SpeechEvent::Split { at } => self.split(at),
            SpeechEvent::End { voiced_end } => {
                self.state.ear = Ear::Quiet;
                self.recognise(voiced_end);
                self.end_turn(voiced_end);
            }
        }
    }

    /// It is sure that the user speaks, since `from`.
    fn user_speaks(&mut self, from: Samples, join: Join) {
        if self.state.reply.as_ref().is_some_and(Reply::is_audible) {
            self.interrupt();
            let mut utterance = Utterance::new(Some(from));
            utterance.interrupts = true;
            self.state.utterance = Some(utterance);
            return;
        }
        let max_piece = self.state.config.max_piece;
        let too_long =
            |utterance: &Utterance, now: Samples| utterance.from.is_some_and(|from| now - from > max_piece);
        let now = self.now;
        match &self.state.utterance {
            None => self.state.utterance = Some(Utterance::new(Some(from))),
            // Its transcript stays as it is; the new speech is recognised on its own.
            Some(utterance)
                if join == Join::Apart || too_long(utterance, now) || utterance.from.is_none() =>
            {
                self.withdraw_reply();
                if let Some(utterance) = &mut self.state.utterance {
                    utterance.closed.extend(utterance.attempt.take());
                    utterance.from = Some(from);
                    utterance.ended = false;
                }
            }
            Some(_) => self.withdraw_attempt(),
        }
    }

    /// Stops the audible reply; history keeps what was heard.
    fn interrupt(&mut self) {
        if let Some(reply) = self.state.reply.take() {
            let turn = reply.turn;
            self.tell(Effect::Silence { turn });
            self.tell(Effect::Cancel { turn });
            let heard = reply.heard();
            let interrupted = !reply.complete || heard != reply.text();
            self.tell(Effect::Remember(Exchange { user: reply.user, heard, interrupted }));
            self.close(turn, Outcome::Interrupted);
        }
    }

    /// Takes back the inaudible reply; the words it answers stay.
    fn withdraw_reply(&mut self) {
        if let Some(reply) = self.state.reply.take() {
            let turn = reply.turn;
            if reply.is_sent() {
                self.tell(Effect::Silence { turn });
            }
            self.tell(Effect::Cancel { turn });
            self.close(turn, Outcome::Discarded);
        }
    }

    /// Speech goes on: takes back the reply and the transcript of the piece that grows.
    fn withdraw_attempt(&mut self) {
        let had_reply = self.state.reply.is_some();
        self.withdraw_reply();
        let Some(utterance) = &mut self.state.utterance else { return };
        utterance.ended = false;
        if let Some(attempt) = utterance.attempt.take()
            && !had_reply
        {
            self.tell(Effect::Cancel { turn: attempt.turn });
            self.close(attempt.turn, Outcome::Discarded);
        }
    }

    /// Recognises what was said up to `voiced_end` and the quiet so far, unless that is under way.
    fn recognise(&mut self, voiced_end: Samples) {
        // Soft last consonants lie after the last voiced chunk.
        let to = self.now.min(voiced_end + self.state.config.endpoint.pause).max(voiced_end);
        let turn = TurnNumber(self.state.next_turn + 1);
        let Some(utterance) = &mut self.state.utterance else { return };
        let (Some(from), None) = (utterance.from, &utterance.attempt) else { return };
        let to = to.max(from);
        utterance.attempt = Some(Piece { turn, text: None });
        self.state.next_turn = turn.0;
        self.begin(turn, Some(voiced_end));
        self.tell(Effect::Transcribe { turn, from, to });
    }

    /// The piece that grows is long enough; it ends at `at` and another begins.
    fn split(&mut self, at: Samples) {
        let Some(from) = self.state.utterance.as_ref().and_then(|utterance| utterance.from) else { return };
        if at <= from {
            return;
        }
        let turn = self.new_turn();
        if let Some(utterance) = &mut self.state.utterance {
            utterance.closed.push(Piece { turn, text: None });
            utterance.from = Some(at);
        }
        self.tell(Effect::Transcribe { turn, from, to: at });
    }

    fn typed(&mut self, text: Arc<str>) {
        if text.trim().is_empty() {
            return;
        }
        if self.state.reply.as_ref().is_some_and(Reply::is_audible) {
            self.interrupt();
        } else {
            self.withdraw_reply();
        }
        let still_speaking = matches!(self.state.ear, Ear::Speaking | Ear::Pausing(_));
        let turn = self.new_turn();
        let typed = Piece { turn, text: Some(text) };
        if still_speaking && self.state.utterance.as_ref().is_some_and(|utterance| utterance.from.is_some()) {
            // It comes first, for the spoken piece is still open; what was made of that is taken back.
            self.withdraw_attempt();
            if let Some(utterance) = &mut self.state.utterance {
                utterance.closed.push(typed);
            }
            return;
        }
        let utterance = self.state.utterance.get_or_insert_with(|| Utterance::new(None));
        utterance.closed.extend(utterance.attempt.take());
        utterance.closed.push(typed);
        utterance.from = None;
        utterance.ended = false;
        self.begin(turn, None);
        self.end_turn(self.now);
    }

    fn stop(&mut self) {
        if self.state.reply.as_ref().is_some_and(Reply::is_audible) {
            self.interrupt();
            return;
        }
        // The user has seen the words; they were said, though nothing is answered.
        let asked = self.state.reply.as_ref().filter(|reply| reply.released).map(|reply| reply.user.clone());
        self.drop_utterance();
        if let Some(user) = asked {
            self.tell(Effect::Remember(Exchange { user, heard: "".into(), interrupted: true }));
        }
    }

    /// Forgets the unanswered words and all work on them.
    fn drop_utterance(&mut self) {
        self.withdraw_reply();
        let Some(utterance) = self.state.utterance.take() else { return };
        for piece in utterance.pieces().filter(|piece| piece.text.is_none()) {
            self.tell(Effect::Cancel { turn: piece.turn });
        }
        if let Some(turn) = self.state.begun {
            self.close(turn, Outcome::Discarded);
        }
    }

    fn transcript(&mut self, turn: TurnNumber, text: Arc<str>) {
        let Some(utterance) = &mut self.state.utterance else { return };
        let mut pieces = utterance.closed.iter_mut().chain(&mut utterance.attempt);
        let Some(piece) = pieces.find(|piece| piece.turn == turn && piece.text.is_none()) else { return };
        piece.text = Some(text);
        if utterance.ended {
            self.answer();
            return;
        }
        self.speculate();
        // The silence may have been long enough for these words already.
        if let Ear::Pausing(voiced_end) = self.state.ear
            && self.now - voiced_end >= self.state.silence()
        {
            self.end_turn(voiced_end);
        }
    }

    /// Begins the reply in the silence wait, if the words sound finished.
    fn speculate(&mut self) {
        let pausing = matches!(self.state.ear, Ear::Pausing(_));
        let text = self.state.utterance.as_ref().and_then(Utterance::text);
        if let Some(text) = text
            && pausing
            && self.state.config.speculation == Speculation::Reply
            && !text.is_empty()
            && completeness(&text) == Completeness::Finished
            && !self.is_command(&text)
        {
            self.start_reply(text);
        }
    }

    fn is_command(&self, text: &str) -> bool {
        self.state.utterance.as_ref().is_some_and(|utterance| utterance.interrupts) && asks_for_silence(text)
    }

    fn start_reply(&mut self, text: Arc<str>) {
        if self.state.reply.is_some() {
            return;
        }
        let Some(turn) = self.state.utterance.as_ref().and_then(Utterance::turn) else { return };
        self.state.reply = Some(Reply::new(turn, text.clone()));
        self.tell(Effect::Reply { turn, text });
    }

    /// The user has finished.
    fn end_turn(&mut self, voiced_end: Samples) {
        let waited = self.now - voiced_end;
        let Some(utterance) = self.state.utterance.as_mut().filter(|utterance| !utterance.ended) else {
            return;
        };
        utterance.ended = true;
        if let Some(turn) = utterance.turn() {
            self.tell(Effect::EndOfTurn { turn, waited });
        }
        self.answer();
    }

    /// Answers the finished words, once they are known.
    fn answer(&mut self) {
        let Some(text) = self.state.utterance.as_ref().and_then(Utterance::text) else { return };
        if text.is_empty() || self.is_command(&text) {
            self.drop_utterance();
            return;
        }
        self.start_reply(text);
        if let Some(reply) = &mut self.state.reply {
            reply.released = true;
        }
    }

    fn played(&mut self, turn: TurnNumber, samples: u64) {
        let Some(reply) = self.reply_of(turn) else { return };
        reply.set_played(samples);
        if reply.is_audible() {
            // Answered: what is said from now on is a new turn.
            self.state.utterance = None;
        }
    }

    fn failed(&mut self, turn: TurnNumber, stage: Stage, reason: Arc<str>) {
        match stage {
            Stage::Transcribe => {
                let waits = |utterance: &Utterance| {
                    utterance.pieces().any(|piece| piece.turn == turn && piece.text.is_none())
                };
                if self.state.utterance.as_ref().is_some_and(waits) {
                    self.tell(Effect::Notice { turn, stage, reason });
                    self.transcript(turn, "".into());
                }
            }
            Stage::Reply | Stage::Speak => {
                if let Some(reply) = self.reply_of(turn) {
                    match stage {
                        Stage::Speak => reply.give_up_speaking(),
                        _ => reply.complete = true,
                    }
                    self.tell(Effect::Notice { turn, stage, reason });
                }
            }
        }
    }

    /// Everything that follows from the state of the reply: sound to the output, clauses to the
    /// synthesiser, rest and work of the reply stage, its end.
    fn advance_reply(&mut self) {
        let config = self.state.config;
        let undecided = matches!(self.state.ear, Ear::Starting(_));
        let Some(reply) = &mut self.state.reply else { return };
        let turn = reply.turn;
        // Until it is decided whether the user speaks, nothing begins to be audible.
        if reply.released && (reply.is_audible() || !undecided) {
            while let Some(chunk) = reply.send_next() {
                self.effects.push(Effect::Play { turn, chunk });
            }
        }
        while let Some((clause, text)) = reply.ask_next(config.ahead_samples) {
            self.effects.push(Effect::Speak { turn, clause, text });
        }
        let rest = config.processors == Processors::Shared
            && !reply.is_audible()
            && !reply.complete
            && reply.outstanding() > 0;
        if rest != reply.resting {
            reply.resting = rest;
            self.effects.push(if rest {
                Effect::PauseReply { turn }
            } else {
                Effect::ContinueReply { turn }
            });
        }
        if reply.is_over() {
            let exchange = Exchange { user: reply.user.clone(), heard: reply.text(), interrupted: false };
            self.state.reply = None;
            self.state.utterance = self.state.utterance.take().filter(|utterance| !utterance.ended);
            self.tell(Effect::Remember(exchange));
            self.close(turn, Outcome::Answered);
        }
    }
}
