//! Where sentences stop: a candidate opens at a terminator and is decided by what follows.

use super::abbreviations::{
    Abbreviation, classify, follows_time, is_book, is_measure, precedes_number, starts_sentences,
};
use super::lines;

/// What opened a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// A full stop: the one that can be a decimal point, an abbreviation or part of a name.
    Dot,
    /// `!`, `?` and what ends sentences in scripts that put a space after it.
    Strong,
    /// `...` or `…`: the sentence may go on.
    Ellipsis,
    /// A full stop of a script written without spaces.
    Wide,
    /// An emoji in place of a full stop.
    Emoji,
    /// The end of a line without any of these.
    Line,
}

/// White space seen after the stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    None,
    Space,
    Line,
    Paragraph,
}

/// The answer to "does the sentence end here?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Wait,
    Yes,
    No,
}

/// A place where the sentence may end.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) stop: Stop,
    /// Index of the terminator in the pending characters.
    pub(super) at: usize,
    /// One past the last terminator, closing quote or bracket.
    pub(super) end: usize,
    /// Index of the start of the terminator's line.
    line_start: usize,
    pub(super) gap: Gap,
    /// A quote was closed after the terminator.
    quoted: bool,
    /// Inside `[^1]` after the terminator: characters so far.
    footnote: Option<u8>,
    /// White space characters in the gap.
    blanks: u8,
    /// The word after the gap, as far as it is known.
    next: String,
}

/// Longest word that is waited for.
const MAX_NEXT: usize = 16;
/// White space after which a stop is an end whatever follows.
const MAX_BLANKS: u8 = 64;
/// A line at least this long that goes on in lower case was wrapped, not ended.
const WRAPPED_LINE: usize = 40;

impl Candidate {
    pub(super) fn new(stop: Stop, at: usize, line_start: usize) -> Self {
        let gap = if stop == Stop::Line { Gap::Line } else { Gap::None };
        let end = if stop == Stop::Line { at } else { at + 1 };
        Self {
            stop,
            at,
            end,
            line_start: line_start.min(at),
            gap,
            quoted: false,
            footnote: None,
            blanks: 0,
            next: String::new(),
        }
    }

    /// Takes the next character, at index `i` of the pending characters; `before` are those up to the terminator.
    pub(super) fn feed(&mut self, c: char, i: usize, before: &[char]) -> Verdict {
        if self.gap == Gap::None { self.feed_closers(c, i) } else { self.feed_gap(c, i, before) }
    }

    fn feed_closers(&mut self, c: char, i: usize) -> Verdict {
        if let Some(seen) = self.footnote {
            if c == ']' {
                self.footnote = None;
                self.end = i + 1;
            } else if seen >= 8 || !(c.is_ascii_alphanumeric() || "^, -".contains(c)) {
                return Verdict::No;
            } else {
                self.footnote = Some(seen + 1);
            }
            return Verdict::Wait;
        }
        if let Some(stop) = terminator(c) {
            self.stop = match (self.stop, stop) {
                (Stop::Dot | Stop::Ellipsis, Stop::Dot | Stop::Ellipsis) => Stop::Ellipsis,
                (Stop::Wide, _) | (_, Stop::Wide) => Stop::Wide,
                _ => Stop::Strong,
            };
            self.end = i + 1;
            return Verdict::Wait;
        }
        if is_closer(c) || is_emoji(c) {
            self.quoted |= matches!(c, '"' | '”' | '’' | '\'' | '»');
            self.end = i + 1;
            return Verdict::Wait;
        }
        match c {
            '[' if self.stop != Stop::Emoji => {
                self.footnote = Some(0);
                Verdict::Wait
            }
            '\n' => self.widen(Gap::Line),
            c if c.is_whitespace() => self.widen(Gap::Space),
            _ if self.stop == Stop::Wide => Verdict::Yes,
            _ => Verdict::No,
        }
    }

    fn widen(&mut self, gap: Gap) -> Verdict {
        self.blanks = self.blanks.saturating_add(1);
        self.gap = match (self.gap, gap) {
            (Gap::Line | Gap::Paragraph, Gap::Line) => Gap::Paragraph,
            (old, new) => old.max(new),
        };
        if self.gap == Gap::Paragraph || self.blanks >= MAX_BLANKS { Verdict::Yes } else { Verdict::Wait }
    }

    fn feed_gap(&mut self, c: char, i: usize, before: &[char]) -> Verdict {
        if c.is_whitespace() && self.next.is_empty() {
            return self.widen(if c == '\n' { Gap::Line } else { Gap::Space });
        }
        if is_emoji(c) && self.gap == Gap::Space && self.next.is_empty() {
            // "Great! 🎉 Next": the picture belongs to what it cheers.
            self.end = i + 1;
            self.gap = Gap::None;
            return Verdict::Wait;
        }
        let in_word = c.is_alphanumeric() || (!self.next.is_empty() && matches!(c, '\'' | '’'));
        if !in_word && self.next.is_empty() {
            if self.gap >= Gap::Line {
                return Verdict::Yes;
            }
            return if is_opener(c) { Verdict::Wait } else { self.decide(c, before, true) };
        }
        if in_word && self.next.len() < MAX_NEXT {
            self.next.push(if c == '’' { '\'' } else { c });
            let first = self.next.chars().next().unwrap_or(c);
            return self.decide(first, before, false);
        }
        let first = self.next.chars().next().unwrap_or(c);
        self.decide(first, before, true)
    }

    /// `first`: first character after the gap that is not an opening quote or bracket.
    /// `complete`: whether the word that it starts is known whole.
    fn decide(&self, first: char, before: &[char], complete: bool) -> Verdict {
        let yes_if = |yes: bool| if yes { Verdict::Yes } else { Verdict::No };
        let lower = first.is_lowercase();
        match self.stop {
            Stop::Wide => Verdict::Yes,
            Stop::Emoji => yes_if(first.is_uppercase()),
            Stop::Line => {
                let line = &before[self.line_start..];
                yes_if(!(lower && line.len() >= WRAPPED_LINE && !is_heading(line)))
            }
            // "5! = 120"
            Stop::Strong if "=/×*÷".contains(first) && before.last().is_some_and(|c| c.is_alphanumeric()) => {
                Verdict::No
            }
            Stop::Strong => yes_if(!(lower && self.quoted && self.gap == Gap::Space)),
            Stop::Ellipsis => yes_if(!lower && first != '=' || self.gap >= Gap::Line),
            Stop::Dot => self.decide_dot(first, before, complete),
        }
    }

    fn decide_dot(&self, first: char, before: &[char], complete: bool) -> Verdict {
        let yes_if = |yes: bool| if yes { Verdict::Yes } else { Verdict::No };
        // "10 a.m. - 4 p.m." and "Sat. & Sun." go on as before a small letter.
        let lower = first.is_lowercase() || "-–—&+=/§≈×→<>≤≥".contains(first);
        let starter = |complete: bool| match complete {
            true => yes_if(starts_sentences(&self.next)),
            false => Verdict::Wait,
        };
        let (token, start) = last_token(before);
        if is_label(&token) && self.at_start(before, start) {
            return Verdict::No;
        }
        if first.is_numeric() && self.gap == Gap::Space && is_book(&token) {
            return Verdict::No;
        }
        // "1. e4 e5 2. Nf3"
        if token.len() <= 3
            && token.bytes().all(|b| b.is_ascii_digit())
            && is_move(&previous_word(before, start))
        {
            return Verdict::No;
        }
        match classify(&token) {
            Some(Abbreviation::Inner) => return Verdict::No,
            Some(Abbreviation::TitleOrStreet) => {
                let named = previous_word(before, start).starts_with(|c: char| c.is_uppercase());
                return if named && !lower { starter(complete) } else { Verdict::No };
            }
            Some(Abbreviation::BeforeNumber) => {
                // "vol. II" and "fig. A", but "No. I won't."
                let numeral = |c: char| "IVXLC".contains(c);
                let letter = self.next.len() == 1 && token.to_lowercase() != "no";
                let numbered = letter || self.next.len() > 1 && self.next.chars().all(numeral);
                return match first.is_uppercase() {
                    true if complete => yes_if(!numbered),
                    true if numeral(first) || letter => Verdict::Wait,
                    // "Apt. #4"
                    _ => yes_if(!lower && !first.is_numeric() && first != '#'),
                };
            }
            Some(Abbreviation::EndsAtCapital) => return yes_if(!lower),
            Some(Abbreviation::DayHalf) if first.is_uppercase() => {
                return if complete { yes_if(!follows_time(&self.next)) } else { Verdict::Wait };
            }
            Some(Abbreviation::DayHalf) => return yes_if(!lower),
            // "Jane Doe, Ph.D." on a line of its own.
            Some(Abbreviation::MayEnd)
                if self.gap >= Gap::Line
                    && first.is_uppercase()
                    && before.len() < self.line_start + WRAPPED_LINE =>
            {
                return Verdict::Yes;
            }
            Some(Abbreviation::Calendar | Abbreviation::MayEnd) if first.is_uppercase() => {
                return starter(complete);
            }
            Some(Abbreviation::Calendar) => return Verdict::No,
            // "5 ft. 11 in." is one length.
            Some(Abbreviation::MayEnd)
                if first.is_numeric() && self.gap == Gap::Space && is_measure(&token) =>
            {
                return yes_if(!previous_word(before, start).ends_with(char::is_numeric));
            }
            Some(Abbreviation::MayEnd) if first.is_numeric() && precedes_number(&token) => {
                return Verdict::No;
            }
            Some(Abbreviation::MayEnd) => return yes_if(!lower && !first.is_alphabetic()),
            None => {}
        }
        // "(of which sat. 5 g)": a bracket that is open holds on to its number. "42 W. 5th St."
        let open = |c: char| before.iter().filter(|b| **b == c).count();
        let street = matches!(token.as_str(), "N" | "S" | "E" | "W")
            && previous_word(before, start).ends_with(char::is_numeric);
        if first.is_numeric() && self.gap == Gap::Space && (street || open('(') > open(')'))
            || "+=&".contains(first)
        {
            return Verdict::No;
        }
        if is_initials(&token) && token != "I" {
            // "H.R. 3684" and "593 U.S. 1", but "vitamin C. 5 grams" and "in the U.S. 20 years later"
            let place = matches!(token.as_str(), "U.S" | "U.K" | "U.N" | "E.U" | "D.C" | "L.A" | "U.S.A");
            let cited = !place || previous_word(before, start).ends_with(char::is_numeric);
            let numbered = first.is_numeric() && token.contains('.') && self.gap == Gap::Space && cited;
            return if first.is_uppercase() { starter(complete) } else { yes_if(!lower && !numbered) };
        }
        if first.is_lowercase() && self.gap == Gap::Space {
            // A sentence does not start small, unless this writer's sentences do.
            let small = before.iter().find(|c| c.is_alphanumeric()).is_some_and(|c| c.is_lowercase());
            return yes_if(small && !self.quoted);
        }
        Verdict::Yes
    }

    /// Whether the token at `start` is the first of its line or clause.
    fn at_start(&self, before: &[char], start: usize) -> bool {
        let from = if start >= self.line_start { self.line_start } else { 0 };
        before[from..start].iter().all(|c| !c.is_alphanumeric())
    }
}

/// The word before the full stop without opening marks, and its index.
fn last_token(clause: &[char]) -> (String, usize) {
    const MAX: usize = 24;
    let from = clause.len().saturating_sub(MAX);
    let start =
        clause[from..].iter().rposition(|c| c.is_whitespace() || is_opener(*c) || "—–-/".contains(*c));
    let start = start.map_or(from, |p| from + p + 1);
    (clause[start..].iter().collect(), start)
}

fn previous_word(clause: &[char], start: usize) -> String {
    let head = &clause[start.saturating_sub(32)..start];
    let end = head.iter().rposition(|c| !c.is_whitespace()).map_or(0, |p| p + 1);
    let begin = head[..end].iter().rposition(|c| c.is_whitespace()).map_or(0, |p| p + 1);
    head[begin..end].iter().collect()
}

/// `12` or `b`: a list label, if it is the first word of its line.
fn is_label(token: &str) -> bool {
    let digits = token.len() <= 3 && token.bytes().all(|b| b.is_ascii_digit());
    !token.is_empty()
        && (digits
            || lines::roman(token).is_some()
            || token.len() > 1
                && token.bytes().all(|b| b.is_ascii_lowercase())
                && lines::roman(&token.to_uppercase()).is_some()
            || token.len() == 1 && token.as_bytes()[0].is_ascii_alphabetic() && token != "I")
}

/// `e5`, `Nf3`, `exd5`, `O-O`: a move of chess.
fn is_move(word: &str) -> bool {
    let word = word.trim_end_matches(['+', '#', '!', '?']);
    let file = |c: char| ('a'..='h').contains(&c);
    let Some(head) = word.strip_suffix(|c| ('1'..='8').contains(&c)) else { return word == "O-O" };
    let squares = head.trim_start_matches(['K', 'Q', 'R', 'B', 'N']);
    squares.ends_with(file) && squares.len() <= 3 && squares.chars().all(|c| file(c) || c == 'x')
}

/// `J`, `U.S` or `J.R.R`: single letters joined by full stops.
fn is_initials(token: &str) -> bool {
    !token.is_empty()
        && token.split('.').all(|part| {
            let mut letters = part.chars();
            letters.next().is_some_and(char::is_alphabetic) && letters.next().is_none()
        })
        && (token.contains('.') || token.starts_with(char::is_uppercase))
}

fn is_heading(line: &[char]) -> bool {
    let text: String = line.iter().take(12).collect();
    lines::marks(&text).heading
}

/// The kind of stop that `c` is.
pub(super) fn terminator(c: char) -> Option<Stop> {
    match c {
        '.' => Some(Stop::Dot),
        '!' | '?' | '‽' | '‼' | '⁇' | '⁈' | '⁉' | '؟' | '۔' | '।' | '॥' | '։' | '።' | '፧' => {
            Some(Stop::Strong)
        }
        '…' => Some(Stop::Ellipsis),
        '。' | '！' | '？' | '｡' | '．' | '︒' => Some(Stop::Wide),
        _ => None,
    }
}

fn is_closer(c: char) -> bool {
    matches!(
        c,
        '"' | '\'' | '”' | '’' | '»' | ')' | ']' | '}' | '」' | '』' | '）' | '】' | '》' | '*' | '_' | '~'
    )
}

/// Opening marks before the first word of a sentence, which tell nothing.
fn is_opener(c: char) -> bool {
    matches!(
        c,
        '"' | '\'' | '“' | '‘' | '«' | '(' | '[' | '{' | '「' | '『' | '（' | '【' | '*' | '_' | '¿' | '¡'
    )
}

/// Pictures, and the joiners and selectors between their parts.
pub(super) fn is_emoji(c: char) -> bool {
    matches!(
        c as u32,
        0x200D | 0x20E3 | 0x231A..=0x231B | 0x23E9..=0x23FA | 0x2600..=0x27BF | 0x2B05..=0x2B07 | 0x2B1B..=0x2B1C
            | 0x2B50 | 0x2B55 | 0xFE0E..=0xFE0F | 0x1F000..=0x1FAFF | 0xE0020..=0xE007F
    )
}

/// An emoji that stands for a word: "I ❤️ New York".
pub(super) fn is_heart(c: char) -> bool {
    matches!(c as u32, 0x2661 | 0x2665 | 0x2763..=0x2764 | 0x1F493..=0x1F49F | 0x1F5A4 | 0x1F90D..=0x1F90E | 0x1F9E1)
}
