//! A reply on its way: its clauses, their sound, and how much of it was heard.

use std::sync::Arc;

use super::message::TurnNumber;

#[derive(Debug, Clone, PartialEq)]
struct Clause {
    text: Arc<str>,
    asked: bool,
    spoken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Chunk {
    clause: usize,
    samples: u64,
    spoken_bytes: usize,
}

/// Everything the turn machine knows about the reply of one turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    pub(super) turn: TurnNumber,
    /// The user's words.
    pub(super) user: Arc<str>,
    /// The user has finished: it may be heard.
    pub(super) released: bool,
    /// No more clauses will come.
    pub(super) complete: bool,
    /// The reply stage was told to rest.
    pub(super) resting: bool,
    clauses: Vec<Clause>,
    chunks: Vec<Chunk>,
    /// Chunks handed to the output.
    sent: usize,
    played: u64,
}

impl Reply {
    pub(super) fn new(turn: TurnNumber, user: Arc<str>) -> Self {
        Self {
            turn,
            user,
            released: false,
            complete: false,
            resting: false,
            clauses: Vec::new(),
            chunks: Vec::new(),
            sent: 0,
            played: 0,
        }
    }

    pub(super) fn push_clause(&mut self, text: Arc<str>) {
        self.clauses.push(Clause { text, asked: false, spoken: false });
    }

    /// `false` for a clause that was never asked for.
    pub(super) fn push_chunk(&mut self, clause: usize, samples: u64, spoken_bytes: usize) -> bool {
        let asked = self.clauses.get(clause).is_some_and(|clause| clause.asked);
        if asked {
            self.chunks.push(Chunk { clause, samples, spoken_bytes });
        }
        asked
    }

    pub(super) fn clause_spoken(&mut self, clause: usize) {
        if let Some(clause) = self.clauses.get_mut(clause) {
            clause.spoken = clause.asked;
        }
    }

    /// What was asked for will not come.
    pub(super) fn give_up_speaking(&mut self) {
        for clause in &mut self.clauses {
            clause.spoken = clause.asked;
        }
    }

    pub(super) fn set_played(&mut self, samples: u64) {
        self.played = self.played.max(samples);
    }

    /// Some of it has been heard.
    pub(super) fn is_audible(&self) -> bool {
        self.played > 0
    }

    /// Some of it is at the output.
    pub(super) fn is_sent(&self) -> bool {
        self.sent > 0
    }

    /// Clauses that the synthesiser is working on.
    pub(super) fn outstanding(&self) -> usize {
        self.clauses.iter().filter(|clause| clause.asked && !clause.spoken).count()
    }

    fn produced(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.samples).sum()
    }

    /// The next chunk that the output does not have yet; from now on it has.
    pub(super) fn send_next(&mut self) -> Option<usize> {
        let chunk = self.sent;
        (chunk < self.chunks.len()).then(|| {
            self.sent += 1;
            chunk
        })
    }

    /// The next clause to ask the synthesiser for, if its time has come: before the end of turn only the
    /// first (the rest would be thrown away too often), then two at a time, so that
    /// there is no gap, but not more than `ahead` samples ahead of what was heard.
    pub(super) fn ask_next(&mut self, ahead: u64) -> Option<(usize, Arc<str>)> {
        let next = self.clauses.iter().position(|clause| !clause.asked)?;
        let allowed = if self.released {
            self.outstanding() < 2 && self.produced() - self.played.min(self.produced()) < ahead
        } else {
            next == 0
        };
        allowed.then(|| {
            self.clauses[next].asked = true;
            (next, self.clauses[next].text.clone())
        })
    }

    /// Nothing more will be heard.
    pub(super) fn is_over(&self) -> bool {
        self.released
            && self.complete
            && self.clauses.iter().all(|clause| clause.spoken)
            && self.sent == self.chunks.len()
            && self.played >= self.produced()
    }

    /// The whole reply.
    pub(super) fn text(&self) -> Arc<str> {
        joined(self.clauses.iter().map(|clause| &*clause.text))
    }

    /// The words that were heard to their end.
    pub(super) fn heard(&self) -> Arc<str> {
        let mut heard_bytes = vec![0usize; self.clauses.len()];
        let mut left = self.played;
        for chunk in &self.chunks {
            let bytes = &mut heard_bytes[chunk.clause];
            if left < chunk.samples {
                let span = chunk.spoken_bytes.saturating_sub(*bytes) as u128;
                *bytes += (span * u128::from(left) / u128::from(chunk.samples)) as usize;
                break;
            }
            *bytes = chunk.spoken_bytes.max(*bytes);
            left -= chunk.samples;
        }
        joined(self.clauses.iter().zip(heard_bytes).map(|(clause, bytes)| whole_words(&clause.text, bytes)))
    }
}

fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> Arc<str> {
    let texts: Vec<_> = texts.map(str::trim).filter(|text| !text.is_empty()).collect();
    texts.join(" ").into()
}

/// The whole words in the first `bytes` bytes of `text`. Scripts without spaces are cut between characters.
fn whole_words(text: &str, bytes: usize) -> &str {
    let mut cut = text.floor_char_boundary(bytes.min(text.len()));
    let joins =
        |c: Option<char>| c.is_some_and(|c| (c.is_alphanumeric() || c == '\'' || c == '’') && c < '\u{2E80}');
    while cut > 0 && joins(text[..cut].chars().next_back()) && joins(text[cut..].chars().next()) {
        cut = text.floor_char_boundary(cut - 1);
    }
    &text[..cut]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two clauses, each in two chunks of 100 samples that end after "Hello " and after all.
    fn reply() -> Reply {
        let mut reply = Reply::new(TurnNumber(1), "hi".into());
        reply.released = true;
        for text in ["Hello there.", "Nice day!"] {
            reply.push_clause(text.into());
        }
        while reply.ask_next(u64::MAX).is_some() {}
        for (clause, bytes) in [(0, 6), (0, 12), (1, 5), (1, 9)] {
            assert!(reply.push_chunk(clause, 100, bytes));
        }
        reply
    }

    #[test]
    fn heard_words_follow_what_was_played() {
        let mut reply = reply();
        for (played, heard) in [
            (0, ""),
            (50, ""),
            (99, "Hello"),
            (100, "Hello"),
            (150, "Hello"),
            (199, "Hello there"),
            (200, "Hello there."),
            (300, "Hello there. Nice"),
            (400, "Hello there. Nice day!"),
            (999, "Hello there. Nice day!"),
        ] {
            reply.set_played(played);
            assert_eq!(&*reply.heard(), heard, "{played}");
        }
    }

    #[test]
    fn words_are_cut_at_their_ends() {
        assert_eq!(whole_words("don't go", 4), "");
        assert_eq!(whole_words("don't go", 5), "don't");
        assert_eq!(whole_words("héllo wörld", 8), "héllo ");
        assert_eq!(whole_words("明天天气", 7), "明天");
        assert_eq!(whole_words("abc", 99), "abc");
    }

    #[test]
    fn clauses_are_asked_for_in_time_and_not_too_early() {
        let mut reply = Reply::new(TurnNumber(1), "hi".into());
        for text in ["a", "b", "c", "d"] {
            reply.push_clause(text.into());
        }
        let asked = |reply: &mut Reply| {
            std::iter::from_fn(|| reply.ask_next(1_000).map(|(clause, _)| clause)).collect::<Vec<_>>()
        };
        assert_eq!(asked(&mut reply), [0], "before the end of turn");
        reply.released = true;
        assert_eq!(asked(&mut reply), [1], "two at a time");
        reply.push_chunk(0, 1_000, 1);
        reply.clause_spoken(0);
        assert_eq!(asked(&mut reply), [0usize; 0], "far enough ahead");
        reply.set_played(500);
        assert_eq!(asked(&mut reply), [2]);
    }

    #[test]
    fn over_is_when_all_was_played() {
        let mut reply = reply();
        reply.complete = true;
        while reply.send_next().is_some() {}
        reply.clause_spoken(0);
        reply.set_played(400);
        assert!(!reply.is_over(), "the second clause may have more");
        reply.clause_spoken(1);
        assert!(reply.is_over());
        assert!(!reply.push_chunk(7, 1, 1), "a clause nobody asked for");
    }
}
