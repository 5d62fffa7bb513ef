//! Carries out the machine's decisions: hands work to the stages' threads and sound to the loudspeaker.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::super::Samples;
use super::super::conductor::{Output, Stages};
use super::super::message::{Exchange, Stage, TurnNumber};
use super::gate::Gate;
use super::mail::Post;
use super::snapshot::{Entry, NoticeKind, ReplyText};
use super::stages::{Loudspeaker, Recogniser, Voice, Writer};
use super::workers::{Ahead, Order, SpeakJob, TranscribeJob, WriteJob};
use crate::backends::CancelToken;
use crate::latency::{Clock, Marks};
use crate::text::clauses::Clause;

pub(super) type RecogniserPost = Post<Order<dyn Recogniser, TranscribeJob>>;
pub(super) type WriterPost = Post<Order<dyn Writer, WriteJob>>;
pub(super) type VoicePost = Post<Order<dyn Voice, SpeakJob>>;

/// What is kept of the microphone when nobody speaks: more than any pre-roll.
const KEPT: Samples = Samples::from_ms(2_000);
/// Most that is ever kept: a piece of speech, which the machine splits at 28 s, and the waits around it.
const MOST_KEPT: Samples = Samples::from_ms(60_000);
/// Tokens kept: attempts that could still have work under way.
const KEPT_TOKENS: usize = 64;

/// The microphone's latest samples, by position.
#[derive(Default)]
pub(super) struct Past {
    samples: VecDeque<f32>,
    end: u64,
}

impl Past {
    /// Appends a chunk and forgets what lies before `from` and before what is always kept.
    pub(super) fn push(&mut self, chunk: &[f32], from: Option<Samples>) {
        self.samples.extend(chunk);
        self.end += chunk.len() as u64;
        let kept = Samples(self.end) - KEPT;
        let from = from.unwrap_or(kept).min(kept).max(Samples(self.end) - MOST_KEPT);
        let start = self.end - self.samples.len() as u64;
        self.samples.drain(..(from.0.saturating_sub(start) as usize).min(self.samples.len()));
    }

    /// The samples `from..to`, as far as they are there.
    pub(super) fn piece(&self, from: Samples, to: Samples) -> Vec<f32> {
        let start = self.end - self.samples.len() as u64;
        let place = |at: Samples| (at.0.max(start) - start).min(self.samples.len() as u64) as usize;
        let (from, to) = (place(from), place(to));
        self.samples.range(from..to.max(from)).copied().collect()
    }
}

/// The reply under way: what the machine knows by numbers.
#[derive(Default)]
pub(super) struct Reply {
    pub(super) turn: TurnNumber,
    pub(super) clauses: Vec<Clause>,
    pub(super) sounds: Vec<Arc<[f32]>>,
    gate: Gate,
}

impl Reply {
    /// All clauses, as the machine joins them, of which the words in `heard` were heard.
    pub(super) fn text(&self, heard: &str) -> ReplyText {
        let (mut text, mut rest) = (String::new(), heard);
        let mut heard_bytes = 0;
        for clause in self.clauses.iter().map(|clause| clause.text.trim()).filter(|text| !text.is_empty()) {
            if !text.is_empty() {
                text.push(' ');
            }
            let start = text.len();
            text.push_str(clause);
            if rest.is_empty() {
                continue;
            }
            // A clause without sound stands in the text, and not in what was heard.
            if let Some(behind) = rest.strip_prefix(clause) {
                (heard_bytes, rest) = (text.len(), behind.trim_start());
            } else if clause.starts_with(rest) {
                (heard_bytes, rest) = (start + rest.len(), "");
            }
        }
        ReplyText { text: text.into(), heard_bytes }
    }
}

/// The machine's hands.
pub(super) struct Dispatch {
    pub(super) recogniser: RecogniserPost,
    pub(super) writer: WriterPost,
    pub(super) voice: VoicePost,
    pub(super) ahead: Arc<Ahead>,
    pub(super) loudspeaker: Box<dyn Loudspeaker>,
    pub(super) past: Past,
    pub(super) reply: Reply,
    tokens: BTreeMap<TurnNumber, CancelToken>,
    marks: Option<Marks>,
    /// The transcription for display that is under way.
    partial: Option<CancelToken>,
    /// Finished exchanges and notices, for the core to take.
    pub(super) finished: Vec<Entry>,
    pub(super) told: Vec<(NoticeKind, Arc<str>)>,
    clock: Arc<dyn Clock>,
    /// The transcription that was asked for last.
    pub(super) asked: Option<Asked>,
}

/// A transcription that was asked for.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) turn: TurnNumber,
    pub(super) at_ns: u64,
    pub(super) length: Samples,
}

impl Dispatch {
    pub(super) fn new(
        (recogniser, writer, voice): (RecogniserPost, WriterPost, VoicePost),
        ahead: Arc<Ahead>,
        loudspeaker: Box<dyn Loudspeaker>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            recogniser,
            writer,
            voice,
            ahead,
            loudspeaker,
            past: Past::default(),
            reply: Reply::default(),
            tokens: BTreeMap::new(),
            marks: None,
            partial: None,
            finished: Vec::new(),
            told: Vec::new(),
            clock,
            asked: None,
        }
    }

    fn token(&mut self, turn: TurnNumber) -> CancelToken {
        while self.tokens.len() >= KEPT_TOKENS {
            self.tokens.pop_first();
        }
        self.tokens.entry(turn).or_default().clone()
    }

    pub(super) fn order_writer(&self, order: Order<dyn Writer, WriteJob>) -> bool {
        self.ahead.interrupt();
        self.writer.send(order)
    }

    pub(super) fn write(&self, job: WriteJob) {
        self.order_writer(Order::Do(job));
    }

    /// Recognises what was said so far, for display. `turn` comes back with the words.
    pub(super) fn transcribe_partly(&mut self, turn: TurnNumber, from: Samples, to: Samples) {
        let cancel = CancelToken::new();
        self.partial = Some(cancel.clone());
        let samples = self.past.piece(from, to);
        let job = TranscribeJob { turn, is_partial: true, samples, cancel, marks: None };
        self.recogniser.send(Order::Do(job));
    }

    /// Gives everything up, for the end of the program.
    pub(super) fn give_up(&mut self) {
        self.tokens.values().for_each(CancelToken::cancel);
        self.partial.iter().for_each(CancelToken::cancel);
        self.ahead.interrupt();
        self.loudspeaker.silence(self.reply.turn);
        self.reply.gate.open();
    }
}

impl Stages for Dispatch {
    fn transcribe(&mut self, turn: TurnNumber, from: Samples, to: Samples, marks: Option<&Marks>) {
        if let Some(partial) = self.partial.take() {
            partial.cancel();
        }
        let (samples, cancel) = (self.past.piece(from, to), self.token(turn));
        self.asked = Some(Asked { turn, at_ns: self.clock.now_ns(), length: Samples(samples.len() as u64) });
        let job = TranscribeJob { turn, is_partial: false, samples, cancel, marks: marks.cloned() };
        self.recogniser.send(Order::Do(job));
    }

    fn reply(&mut self, turn: TurnNumber, text: &str, marks: Option<&Marks>) {
        self.marks = marks.cloned();
        self.reply = Reply { turn, ..Reply::default() };
        let cancel = self.token(turn);
        let (gate, marks) = (self.reply.gate.clone(), marks.cloned());
        self.write(WriteJob::Reply { turn, user: text.into(), cancel, gate, marks, draft: Box::default() });
    }

    fn pause_reply(&mut self, turn: TurnNumber) {
        if self.reply.turn == turn {
            self.reply.gate.close();
        }
    }

    fn continue_reply(&mut self, turn: TurnNumber) {
        if self.reply.turn == turn {
            self.reply.gate.open();
        }
    }

    fn speak(&mut self, turn: TurnNumber, index: usize, _: &str) {
        let clause = self.reply.clauses.get(index).filter(|_| self.reply.turn == turn);
        // The machine asks for clauses that it was told of, and it was told of those that are kept.
        let Some(clause) = clause.cloned() else { return };
        let (cancel, marks) = (self.token(turn), self.marks.clone());
        self.voice.send(Order::Do(SpeakJob { turn, index, clause, cancel, marks, spoken: 0 }));
    }

    fn play(&mut self, turn: TurnNumber, chunk: usize) {
        let sound = self.reply.sounds.get(chunk).filter(|_| self.reply.turn == turn);
        if let Some(sound) = sound {
            self.loudspeaker.queue(turn, sound.clone());
        }
    }

    fn set_output(&mut self, turn: TurnNumber, output: Output) {
        self.loudspeaker.set_output(turn, output);
    }

    fn silence(&mut self, turn: TurnNumber) {
        self.loudspeaker.silence(turn);
    }

    fn cancel(&mut self, turn: TurnNumber) {
        if let Some(token) = self.tokens.remove(&turn) {
            token.cancel();
        }
        if self.reply.turn == turn {
            self.reply.gate.open();
        }
    }

    fn remember(&mut self, exchange: &Exchange) {
        let mut reply = self.reply.text(&exchange.heard);
        if !exchange.interrupted {
            reply.heard_bytes = reply.text.len();
        }
        self.finished.push(Entry {
            turn: self.reply.turn,
            user: exchange.user.clone(),
            reply,
            is_interrupted: exchange.interrupted,
        });
        self.write(WriteJob::Remember(exchange.clone()));
    }

    fn notice(&mut self, _: TurnNumber, stage: Stage, reason: &str) {
        let what = match stage {
            Stage::Transcribe => "what you said could not be understood",
            Stage::Reply => "the answer could not be written",
            Stage::Speak => "the answer could not be spoken",
        };
        self.told.push((NoticeKind::Failed(stage), format!("{what}: {reason}").into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::clauses::ClauseSplitter;

    #[test]
    fn the_past_keeps_what_may_be_asked_for_and_no_more() {
        let mut past = Past::default();
        let second = |at: u64| Samples(at * 16_000);
        for chunk in 0..3_000u64 {
            // From second 10 on something is open.
            let open = (chunk >= 320).then(|| second(10));
            past.push(&vec![chunk as f32; 512], open);
            assert!(past.samples.len() as u64 <= MOST_KEPT.0);
            if chunk == 1_000 {
                let piece = past.piece(second(10), second(12));
                assert_eq!((piece.len(), piece[0], piece[31_999]), (32_000, 312.0, 374.0));
            }
        }
        // 96 s: the beginning is gone, and what is asked for beyond both ends is left out.
        let piece = past.piece(second(10), second(200));
        assert_eq!(piece.len() as u64, MOST_KEPT.0);
        assert_eq!(piece.last(), Some(&2_999.0));
        past.push(&[0.0; 512], None);
        assert_eq!(past.samples.len() as u64, KEPT.0);
        assert!(past.piece(second(3), second(2)).is_empty());
    }

    #[test]
    fn heard_words_are_found_in_the_whole_text() {
        let mut splitter = ClauseSplitter::default();
        let mut clauses = splitter.push("Hello there, my friend. ```x\ny\n```\n*Nice* day! Bye.");
        clauses.extend(splitter.flush());
        let reply = Reply { clauses, ..Reply::default() };
        let heard = |heard: &str| {
            let text = reply.text(heard);
            text.text[..text.heard_bytes].to_owned()
        };
        assert_eq!(heard(""), "");
        assert_eq!(heard("Hello there, my"), "Hello there, my");
        // The code had no sound.
        assert!(heard("Hello there, my friend. *Nice*").ends_with("*Nice*"));
        let all = reply.text("Hello there, my friend. *Nice* day! Bye.");
        assert_eq!(all.heard_bytes, all.text.len());
    }
}
