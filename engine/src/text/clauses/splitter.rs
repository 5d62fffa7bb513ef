//! The splitter's state machine: one character in, at most a few clauses out.

use super::conjunctions::{CLINGING, CONJUNCTIONS, starts_clause};
use super::lines::{self, Opener};
use super::spans::Span;
use super::stops::{Candidate, Gap, Stop, Verdict, is_emoji, is_heart, terminator};
use super::{Clause, ClauseEnd, ClauseKind, SplitterConfig};

/// Cuts a reply into clauses while it is written. See the [module](super).
///
/// One splitter serves one reply; [`flush`](Self::flush) at its end, or where the rest may not be waited
/// for. Memory is bounded by a few times [`SplitterConfig::max_chars`], but for a displayed formula.
#[derive(Debug, Clone)]
pub struct ClauseSplitter {
    config: SplitterConfig,
    /// Characters not handed out yet; never starts with white space.
    pending: Vec<char>,
    /// Position of `pending[0]` in the reply.
    offset_chars: usize,
    offset_bytes: usize,
    block: Block,
    /// Index in `pending` of the first visible character of the line.
    line_start: usize,
    /// What the line opens, as far as it is known.
    opener: Opener,
    /// Whether `pending[0]` is the first visible character of its line.
    starts_line: bool,
    /// Characters of `pending` already looked at as prose.
    scanned: usize,
    candidate: Option<Candidate>,
    breaks: Vec<Break>,
    span: Span,
    /// Words begun in `pending`, and whether the current token has a letter or digit.
    words: usize,
    in_word: bool,
    words_out: usize,
    /// Index of a break at which the eager first clause ends unless the next word forbids it.
    eager: Option<usize>,
}

/// What the text belongs to beyond the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Prose,
    /// `spoken`: the clause was handed out. `run`: marks at the start of this line, while it has no others.
    Fence {
        mark: char,
        len: usize,
        spoken: bool,
        run: Option<usize>,
    },
    /// `fresh`: nothing seen on this line yet.
    Table {
        spoken: bool,
        fresh: bool,
    },
    /// `close` ends it, of which `matched` bytes were seen; `last` is the character before.
    Math {
        close: &'static str,
        kind: ClauseKind,
        matched: usize,
        last: char,
        spoken: bool,
    },
}

/// Longest displayed formula that is kept.
const MAX_MATH: usize = 4000;

/// A place where an over-long sentence may be cut: the index of the first character after it.
#[derive(Debug, Clone, Copy)]
struct Break {
    at: usize,
    /// Words before it.
    words: usize,
    rank: Rank,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Space,
    Conjunction,
    Comma,
    Strong,
}

impl Default for ClauseSplitter {
    fn default() -> Self {
        Self::new(SplitterConfig::default())
    }
}

impl ClauseSplitter {
    /// A splitter at the start of a reply.
    pub fn new(config: SplitterConfig) -> Self {
        let config = SplitterConfig { max_chars: config.max_chars.max(40), ..config };
        Self {
            config,
            pending: Vec::new(),
            offset_chars: 0,
            offset_bytes: 0,
            block: Block::Prose,
            line_start: 0,
            opener: Opener::Unknown,
            starts_line: true,
            scanned: 0,
            candidate: None,
            breaks: Vec::new(),
            span: Span::None,
            words: 0,
            in_word: false,
            words_out: 0,
            eager: None,
        }
    }

    /// Takes the next fragment of the reply, of any size, and gives the clauses that it completed.
    pub fn push(&mut self, fragment: &str) -> Vec<Clause> {
        let mut out = Vec::new();
        for c in fragment.chars() {
            self.step(c, &mut out);
        }
        out
    }

    /// Gives out what is pending, if it has a letter or digit. The reply may go on after it.
    pub fn flush(&mut self) -> Option<Clause> {
        let kind = match self.block {
            Block::Prose => match self.opener {
                Opener::Fence if lines::fence(&self.pending[self.line_start..]).is_some() => ClauseKind::Code,
                Opener::Bar if lines::is_row(&self.pending[self.line_start..]) => ClauseKind::Table,
                _ => ClauseKind::Text,
            },
            Block::Fence { .. } => ClauseKind::Code,
            Block::Table { .. } => ClauseKind::Table,
            Block::Math { kind, .. } => kind,
        };
        let complete = self.candidate.as_ref().is_some_and(|c| c.stop != Stop::Emoji);
        let end = if complete { ClauseEnd::Sentence } else { ClauseEnd::Phrase };
        let mut out = Vec::new();
        self.cut(self.pending.len(), kind, end, &mut out);
        if kind != ClauseKind::Text {
            self.mark_spoken();
        }
        out.pop()
    }

    fn step(&mut self, c: char, out: &mut Vec<Clause>) {
        match self.block {
            Block::Prose => self.in_prose(c, out),
            Block::Fence { .. } => self.in_fence(c, out),
            Block::Table { .. } => self.in_table(c, out),
            Block::Math { .. } => self.in_math(c, out),
        }
    }

    fn in_prose(&mut self, c: char, out: &mut Vec<Clause>) {
        if self.pending.is_empty() && c.is_whitespace() {
            self.skip(c);
            if c == '\n' {
                self.begin_line();
            }
            return;
        }
        self.pending.push(c);
        let last = self.pending.len() - 1;
        if self.opener == Opener::Unknown {
            if c.is_whitespace() && (self.scanned == last || c == '\n') {
                // White space before the line's first mark, or a line of marks only.
                self.scan_pending(out);
                if c == '\n' {
                    self.begin_line();
                } else {
                    self.line_start = self.pending.len();
                    self.starts_line |= self.pending.is_empty();
                }
                return;
            }
            self.opener = lines::opener(&self.pending[self.line_start..]);
            if matches!(self.opener, Opener::Fence | Opener::Bar | Opener::Math) {
                self.cut_before_line(out);
                if self.opener == Opener::Math {
                    let (close, kind) = lines::closing(&self.pending[self.line_start..]);
                    self.block = Block::Math { close, kind, matched: 0, last: '\0', spoken: false };
                }
            }
        }
        match self.opener {
            Opener::Prose => self.scan_pending(out),
            Opener::Fence | Opener::Bar => self.in_block_line(c, out),
            Opener::Unknown | Opener::Math => {}
        }
        if c == '\n' && self.block == Block::Prose {
            self.begin_line();
        }
    }

    /// A line that may be a fence or a row is not looked at as prose before it ends.
    fn in_block_line(&mut self, c: char, out: &mut Vec<Clause>) {
        let line = &self.pending[self.line_start..];
        // A backtick closes inline code that began like a fence.
        let inline = c == '`' && self.opener == Opener::Fence && lines::fence(line).is_none();
        if c != '\n' && !inline && self.pending.len() < 4 * self.config.max_chars {
            return;
        }
        match (self.opener, lines::fence(line)) {
            (Opener::Fence, Some((mark, len))) => {
                let ended = c == '\n';
                self.block = Block::Fence { mark, len, spoken: false, run: ended.then_some(0) };
                self.speak_block(ClauseKind::Code, out);
            }
            (Opener::Bar, _) if lines::is_row(line) => {
                self.block = Block::Table { spoken: false, fresh: c == '\n' };
                self.speak_block(ClauseKind::Table, out);
            }
            _ => {
                self.opener = Opener::Prose;
                self.scan_pending(out);
            }
        }
    }

    fn in_fence(&mut self, c: char, out: &mut Vec<Clause>) {
        let Block::Fence { mark, len, spoken, run } = self.block else { return };
        if !spoken {
            self.pending.push(c);
            if c == '\n' || self.pending.len() > 4 * self.config.max_chars {
                self.speak_block(ClauseKind::Code, out);
            }
        } else {
            self.skip(c);
        }
        let Block::Fence { spoken, .. } = self.block else { return };
        let run = match (c, run) {
            ('\n', Some(run)) if run >= len => {
                self.leave_block();
                return;
            }
            ('\n', _) => Some(0),
            (c, Some(run)) if c == mark => Some(run + 1),
            (' ' | '\t' | '\r' | '>', run) => run,
            _ => None,
        };
        self.block = Block::Fence { mark, len, spoken, run };
    }

    fn in_table(&mut self, c: char, out: &mut Vec<Clause>) {
        let Block::Table { spoken, fresh } = self.block else { return };
        if fresh && !c.is_whitespace() && !matches!(c, '|' | '>') || fresh && c == '\n' {
            self.leave_block();
            self.step(c, out);
            return;
        }
        if spoken {
            self.skip(c);
        } else {
            self.pending.push(c);
            if c == '\n' {
                self.speak_block(ClauseKind::Table, out);
            }
        }
        if let Block::Table { spoken, .. } = self.block {
            let fresh = c == '\n' || fresh && c.is_whitespace();
            self.block = Block::Table { spoken, fresh };
        }
    }

    fn in_math(&mut self, c: char, out: &mut Vec<Clause>) {
        let Block::Math { close, kind, matched, last, spoken } = self.block else { return };
        if spoken {
            self.skip(c);
        } else {
            self.pending.push(c);
        }
        let blank = kind == ClauseKind::Math && c == '\n' && last == '\n';
        // The closing marks start with a character that they have once, or twice in a row.
        let first = close.starts_with(c);
        let matched = match close.as_bytes().get(matched) {
            Some(next) if char::from(*next) == c => matched + 1,
            _ if matches!(c, ' ' | '\r') => matched,
            _ => usize::from(first),
        };
        if matched == close.len() || blank {
            // Without its closing mark it was something else ("$$$ is a price class").
            let kind = if blank && close.len() == 2 { ClauseKind::Text } else { kind };
            self.cut(self.pending.len(), kind, ClauseEnd::Sentence, out);
            self.leave_block();
            if !blank {
                // What follows on the line is prose, not another block.
                self.opener = Opener::Prose;
                self.starts_line = false;
            }
            return;
        }
        // White space and carriage returns do not hide a blank line.
        let last = if c == ' ' || c == '\r' { last } else { c };
        self.block = Block::Math { close, kind, matched, last, spoken };
        if self.pending.len() >= MAX_MATH {
            self.speak_block(kind, out);
        }
    }

    /// An environment that opens within a line: what stands before it is a clause, and the rest its block.
    fn open_environment(&mut self, out: &mut Vec<Clause>) {
        let Some(((_, close, kind), len)) = lines::environment(&self.pending) else { return };
        let start = self.pending.len() - len;
        if start > 0 {
            self.cut(start, ClauseKind::Text, ClauseEnd::Phrase, out);
        }
        self.candidate = None;
        self.span = Span::None;
        self.block = Block::Math { close, kind, matched: 0, last: '\0', spoken: false };
    }

    fn scan_pending(&mut self, out: &mut Vec<Clause>) {
        while self.scanned < self.pending.len() {
            let i = self.scanned;
            self.scanned += 1;
            self.scan(i, out);
        }
    }

    fn scan(&mut self, mut i: usize, out: &mut Vec<Clause>) {
        let c = self.pending[i];
        if let Some(candidate) = &mut self.candidate {
            match candidate.feed(c, i, &self.pending[..candidate.at]) {
                Verdict::Wait if candidate.gap == Gap::None => return,
                Verdict::Wait => {}
                Verdict::No => self.candidate = None,
                Verdict::Yes => {
                    let (end, gap) = (candidate.end, candidate.gap);
                    self.candidate = None;
                    if gap >= Gap::Line || has_word(&self.pending[..end]) {
                        let kind =
                            if gap == Gap::Paragraph { ClauseEnd::Paragraph } else { ClauseEnd::Sentence };
                        self.cut(end, ClauseKind::Text, kind, out);
                        if self.pending.is_empty() {
                            return;
                        }
                        i = self.scanned - 1;
                        // This character is counted below.
                        self.words = count_words(&self.pending[..i]);
                    }
                }
            }
        }
        if c == '}' && i + 1 == self.pending.len() && self.span == Span::None {
            self.open_environment(out);
            if self.block != Block::Prose {
                return;
            }
        }
        self.span.track(c, i);
        self.track_words(c, i);
        if self.candidate.is_none() && self.span == Span::None {
            self.candidate = match terminator(c) {
                Some(stop) => Some(Candidate::new(stop, i, self.line_start)),
                None if c == '\n' => Some(Candidate::new(Stop::Line, i, self.line_start)),
                None if is_emoji(c) && !is_heart(c) && self.words >= 3 => {
                    Some(Candidate::new(Stop::Emoji, i, self.line_start))
                }
                None => None,
            };
        }
        if self.eager.is_none() && self.is_first_long(i) {
            self.cut_first(out);
        }
        if let Some(at) = self.eager
            && self.eager_ends(at, i)
        {
            self.eager = None;
            self.cut(at, ClauseKind::Text, ClauseEnd::Phrase, out);
        }
        self.limit_length(out);
    }

    /// Counts words and notes where the clause could be cut.
    fn track_words(&mut self, c: char, i: usize) {
        if c.is_whitespace() {
            self.in_word = false;
            if let [.., before, last] = &mut self.breaks[..]
                && last.rank == Rank::Space
                && i - last.at <= 10
            {
                let token: String = self.pending[last.at..i].iter().collect();
                // "and then" belongs together.
                let doubled = before.rank == Rank::Conjunction && before.words + 1 == last.words;
                if CONJUNCTIONS.contains(&token.as_str()) && !doubled {
                    last.rank = Rank::Conjunction;
                }
            }
            return;
        }
        if i > 0 && self.span == Span::None {
            self.note_break(c, i);
        }
        if c.is_alphanumeric() && !self.in_word {
            self.in_word = true;
            self.words += 1;
        }
    }

    fn note_break(&mut self, c: char, i: usize) {
        let previous = self.pending[i - 1];
        let rank = if previous.is_whitespace() {
            let before = self.pending[..i].iter().rposition(|c| !c.is_whitespace()).unwrap_or(0);
            let spaced = before > 0 && self.pending[before - 1].is_whitespace();
            match self.pending[before] {
                ',' if c.is_numeric() && before > 0 && self.pending[before - 1].is_numeric() => return,
                ',' => Rank::Comma,
                ';' | ':' | '—' => Rank::Strong,
                // "July 26 – August 11" and "1 - 10" stay whole.
                '-' | '–' if spaced && before > 1 && self.pending[before - 2].is_numeric() => return,
                '-' | '–' if spaced => Rank::Strong,
                _ if matches!(c, '-' | '–' | '—' | ')' | '&' | '+' | '=' | '/' | '%') => return,
                _ => Rank::Space,
            }
        } else {
            match previous {
                '—' if c.is_alphanumeric() => Rank::Strong,
                '，' | '、' => Rank::Comma,
                '；' | '：' => Rank::Strong,
                _ => return,
            }
        };
        self.breaks.push(Break { at: i, words: self.words, rank });
        let min = self.config.first_min_words;
        if self.eager.is_none() && rank >= Rank::Comma && self.words_out < min && self.words >= min {
            self.eager = Some(i);
        }
    }

    /// Whether the reply's first clause ends at the break `at`, now that `pending[..=i]` is known.
    fn eager_ends(&mut self, at: usize, i: usize) -> bool {
        let c = self.pending[i];
        let complete = !(c.is_alphanumeric() || c == '.' || c == '\'');
        let word: String = self.pending[at..if complete { i } else { i + 1 }].iter().collect();
        // "Pasadena, CA, USA"
        if word.len() <= 3 && word.chars().all(|c| c.is_ascii_uppercase()) && self.follows_name(at) {
            if complete && word.len() > 1 {
                self.eager = None;
            }
            return complete && word.len() == 1;
        }
        let word = word.trim_end_matches('.').to_lowercase();
        let clings = |known: &&str| if complete { **known == word } else { known.starts_with(&word) };
        if !CLINGING.iter().any(clings) {
            return true;
        }
        if complete {
            self.eager = None;
        }
        false
    }

    /// Whether the word before the break at `at` has a capital.
    fn follows_name(&self, at: usize) -> bool {
        let before: String = self.pending[at.saturating_sub(32)..at].iter().collect();
        before.split_whitespace().next_back().is_some_and(|w| w.starts_with(char::is_uppercase))
    }

    /// Whether the reply's first clause has its most words, all complete, and no end in sight.
    fn is_first_long(&self, i: usize) -> bool {
        self.words_out < self.config.first_min_words
            && self.words > self.config.first_max_words
            && self.span == Span::None
            && self.candidate.is_none()
            && self.pending[i].is_whitespace()
    }

    /// Ends the reply's first clause before a conjunction, if there is one that starts a clause.
    fn cut_first(&mut self, out: &mut Vec<Clause>) {
        let min = self.config.first_min_words;
        let fits = |b: &&Break| b.rank == Rank::Conjunction && b.words >= min;
        let open = |text: &[char]| {
            let count = |c| text.iter().filter(|t| **t == c).count();
            count('(') > count(')') || !count('"').is_multiple_of(2) || count('“') > count('”')
        };
        let best = self.breaks.iter().filter(fits).find(|b| {
            starts_clause(&self.pending[..b.at], &self.pending[b.at..self.scanned])
                && !open(&self.pending[..b.at])
        });
        if let Some(&Break { at, .. }) = best {
            self.cut(at, ClauseKind::Text, ClauseEnd::Phrase, out);
        }
    }

    fn limit_length(&mut self, out: &mut Vec<Clause>) {
        let (len, max) = (self.scanned, self.config.max_chars);
        if len < max || self.candidate.as_ref().is_some_and(|c| c.stop != Stop::Emoji) && len < max + 40 {
            return;
        }
        // `max_by_key` gives the last of equals.
        let best = self.breaks.iter().filter(|b| b.at >= max / 3).max_by_key(|b| (b.rank, b.at));
        if let Some(&Break { at, .. }) = best {
            self.cut(at, ClauseKind::Text, ClauseEnd::Phrase, out);
        } else if len >= 4 * max || !has_word(&self.pending) {
            self.cut(len, ClauseKind::Text, ClauseEnd::Phrase, out);
        }
    }

    /// Hands out `pending[..n]`, or drops it if it has no letter or digit, and moves everything up.
    fn cut(&mut self, n: usize, kind: ClauseKind, end: ClauseEnd, out: &mut Vec<Clause>) {
        let blank = self.pending[n..].iter().take_while(|c| c.is_whitespace()).count();
        let len = self.pending[..n].iter().rposition(|c| !c.is_whitespace()).map_or(0, |p| p + 1);
        let text: String = self.pending[..len].iter().collect();
        let newline = self.pending[len..n + blank].contains(&'\n');
        let bytes: usize = self.pending[..n + blank].iter().map(|c| c.len_utf8()).sum();

        let words_gone = count_words(&self.pending[..len]);
        let spoken = has_word(&self.pending[..len]);
        if spoken {
            out.push(Clause {
                chars: self.offset_chars..self.offset_chars + len,
                bytes: self.offset_bytes..self.offset_bytes + text.len(),
                text,
                kind,
                end,
                starts_line: self.starts_line,
            });
        }
        let gone = n + blank;
        self.pending.drain(..gone);
        self.offset_chars += gone;
        self.offset_bytes += bytes;
        self.scanned = self.scanned.saturating_sub(gone);
        self.line_start = self.line_start.saturating_sub(gone);
        self.starts_line = newline || (gone == 0 && self.starts_line);
        self.candidate = None;
        self.eager = None;
        self.words = count_words(&self.pending[..self.scanned]);
        if spoken && kind == ClauseKind::Text {
            self.words_out = self.words_out.saturating_add(words_gone);
        }
        self.breaks.retain_mut(|b| {
            b.words = b.words.saturating_sub(words_gone);
            let kept = b.at > gone;
            b.at = b.at.saturating_sub(gone);
            kept
        });
        self.span.shift(gone);
    }

    /// Ends the prose that stands before the line just found to open a block.
    fn cut_before_line(&mut self, out: &mut Vec<Clause>) {
        if self.line_start > 0 {
            self.cut(self.line_start, ClauseKind::Text, ClauseEnd::Sentence, out);
        }
        self.candidate = None;
        self.starts_line = true;
    }

    /// Hands out what is known of a block, if it has a word, and remembers that it was announced.
    fn speak_block(&mut self, kind: ClauseKind, out: &mut Vec<Clause>) {
        let known = out.len();
        self.cut(self.pending.len(), kind, ClauseEnd::Sentence, out);
        if out.len() > known {
            self.mark_spoken();
        }
    }

    fn mark_spoken(&mut self) {
        match &mut self.block {
            Block::Fence { spoken, .. } | Block::Table { spoken, .. } | Block::Math { spoken, .. } => {
                *spoken = true
            }
            // Flushed before the line's end told it: the rest of the block is still to be swallowed.
            Block::Prose if self.opener == Opener::Bar => {
                self.block = Block::Table { spoken: true, fresh: false }
            }
            Block::Prose => self.block = Block::Fence { mark: '`', len: 3, spoken: true, run: None },
        }
    }

    fn leave_block(&mut self) {
        self.block = Block::Prose;
        let left: usize = self.pending.iter().map(|c| c.len_utf8()).sum();
        self.offset_chars += self.pending.len();
        self.offset_bytes += left;
        self.pending.clear();
        self.scanned = 0;
        self.begin_line();
    }

    fn begin_line(&mut self) {
        self.opener = Opener::Unknown;
        self.line_start = self.pending.len();
        self.starts_line |= self.pending.is_empty();
    }

    /// Passes a character that belongs to no clause.
    fn skip(&mut self, c: char) {
        self.offset_chars += 1;
        self.offset_bytes += c.len_utf8();
    }
}

fn has_word(text: &[char]) -> bool {
    text.iter().any(|c| c.is_alphanumeric())
}

fn count_words(text: &[char]) -> usize {
    text.split(|c| c.is_whitespace()).filter(|token| has_word(token)).count()
}
