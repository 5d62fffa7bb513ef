//! Lines that somebody types, and questions that come from a pipe.

use std::collections::VecDeque;
use std::io::{BufRead, Read};

use repartee_engine::turn::machine::Activity;
use repartee_engine::turn::pipeline::{NoticeKind, Snapshot};

/// A line is no longer; what is, becomes several.
const MOST_BYTES: u64 = 64 << 10;

/// Gives each line of `input` to `take`, without the white space around it, until there are no more or nobody takes them.
pub(super) fn read(mut input: impl BufRead, mut take: impl FnMut(String) -> bool) {
    loop {
        let mut bytes = Vec::new();
        match input.by_ref().take(MOST_BYTES).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if !take(String::from_utf8_lossy(&bytes).trim().to_owned()) {
            return;
        }
    }
}

/// Questions, asked one after the other.
#[derive(Debug, Default)]
pub(super) struct Questions {
    waiting: VecDeque<String>,
    /// How far the conversation was when the one that is being answered was asked.
    asked_at: Option<Mark>,
    were_asked: bool,
    has_ended: bool,
}

/// How far a conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    last_turn: u64,
    last_record: u64,
    last_failure: u64,
}

impl Mark {
    fn of(conversation: &Snapshot) -> Self {
        let failures = conversation.notices.iter().rev();
        let failure = failures.clone().find(|notice| matches!(notice.kind, NoticeKind::Failed(_)));
        Self {
            last_turn: conversation.entries.last().map_or(0, |entry| entry.turn.0),
            last_record: conversation.records.last().map_or(0, |record| record.id),
            last_failure: failure.map_or(0, |notice| notice.number),
        }
    }
}

impl Questions {
    /// Asks this one too. An empty line is no question.
    pub(super) fn add(&mut self, question: String) {
        if !question.is_empty() {
            self.waiting.push_back(question);
        }
    }

    /// No more will come.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Whether there was any.
    pub(super) fn were_asked(&self) -> bool {
        self.were_asked
    }

    /// Whether no more will come, and all are answered.
    pub(super) fn are_answered(&self) -> bool {
        self.has_ended && self.waiting.is_empty() && self.asked_at.is_none()
    }

    /// The question to ask now: the next one, if the one before is answered, or has failed.
    pub(super) fn next(&mut self, conversation: &Snapshot) -> Option<String> {
        let is_busy = matches!(conversation.activity, Activity::Thinking | Activity::Speaking);
        let now = Mark::of(conversation);
        self.asked_at.take_if(|asked_at| !is_busy && *asked_at != now);
        // Nobody is interrupted either.
        if self.asked_at.is_some() || conversation.activity != Activity::Idle {
            return None;
        }
        let question = self.waiting.pop_front()?;
        (self.asked_at, self.were_asked) = (Some(now), true);
        Some(question)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use repartee_engine::turn::message::{Stage, TurnNumber};
    use repartee_engine::turn::pipeline::{Entry, Notice, ReplyText};

    use super::*;

    #[test]
    fn lines_come_as_they_are_with_a_bound() {
        let long = "x".repeat(MOST_BYTES as usize + 10);
        let text = format!("  One. \r\n\n\u{fffd}Two\n{long}\nlast");
        let mut lines = Vec::new();
        read(text.as_bytes(), |line| {
            lines.push(line);
            true
        });
        assert_eq!(lines[..3], ["One.", "", "\u{fffd}Two"]);
        assert_eq!((lines[3].len(), lines[4].len(), lines[5].as_str()), (64 << 10, 10, "last"));
        let mut lines = Vec::new();
        read(&b"caf\xe9 \xff?\nb\nc\n"[..], |line| {
            lines.push(line);
            lines.len() < 2
        });
        assert_eq!(lines, ["caf\u{fffd} \u{fffd}?", "b"], "read on, until nobody takes more");
    }

    #[test]
    fn each_question_waits_for_the_answer_before() {
        let mut questions = Questions::default();
        let mut conversation = Snapshot::default();
        let entry = |turn| {
            let reply = ReplyText { text: "Yes.".into(), heard_bytes: 4 };
            let turn = TurnNumber(turn);
            Arc::new(Entry { turn, user: "a".into(), reply, is_interrupted: false })
        };
        assert_eq!(questions.next(&conversation), None);
        assert!(!questions.were_asked());
        for question in ["a", "", "b", "c"] {
            questions.add(question.into());
        }
        assert_eq!(questions.next(&conversation).as_deref(), Some("a"));
        questions.end();
        assert_eq!(questions.next(&conversation), None, "it was not taken up yet");
        conversation.activity = Activity::Thinking;
        assert_eq!(questions.next(&conversation), None);
        conversation.activity = Activity::Speaking;
        assert_eq!(questions.next(&conversation), None);
        conversation.activity = Activity::Idle;
        conversation.entries = Arc::new(vec![entry(1)]);
        assert_eq!(questions.next(&conversation).as_deref(), Some("b"));
        // What fails is over too, and whoever speaks is let finish.
        let text = "no model".into();
        let failed = Notice { number: 1, kind: NoticeKind::Failed(Stage::Reply), text };
        conversation.notices = Arc::new(vec![failed]);
        conversation.activity = Activity::Listening;
        assert_eq!(questions.next(&conversation), None);
        conversation.activity = Activity::Idle;
        assert_eq!(questions.next(&conversation).as_deref(), Some("c"));
        assert!(questions.were_asked() && !questions.are_answered());
        conversation.entries = Arc::new(vec![entry(1), entry(9)]);
        assert_eq!(questions.next(&conversation), None);
        assert!(questions.are_answered());
    }
}
