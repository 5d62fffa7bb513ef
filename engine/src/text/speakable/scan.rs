//! Plain text cut into tokens, and the questions that the rules ask about them.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use super::scripts::{Script, script};
use super::{Locale, grouping};
use crate::text::phonemes::digit;

/// What a token is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Latin letters, with apostrophes between them.
    Word,
    /// ASCII digits.
    Digits,
    Space,
    /// One character that is none of the others.
    Mark(char),
    /// Letters of another script.
    Foreign(Script),
}

/// A token, and where it starts in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: Kind,
    start: usize,
    end: usize,
}

/// A clause of plain text as tokens. Indices past the end are answered with "nothing there".
#[derive(Debug)]
pub(super) struct Scan {
    text: String,
    tokens: Vec<Token>,
    pub(super) locale: Locale,
    /// Whether the clause is written in capitals throughout.
    pub(super) shouting: bool,
    /// Whether an equals sign makes hyphens between numbers minus signs.
    pub(super) equation: bool,
}

/// What a rule made of the tokens from one index on: the words, and the index after them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Spoken {
    pub(super) next: usize,
    pub(super) words: String,
}

impl Spoken {
    pub(super) fn new(next: usize, words: impl Into<String>) -> Option<Self> {
        Some(Self { next, words: words.into() })
    }
}

impl Scan {
    pub(super) fn new(text: &str, locale: Locale) -> Self {
        let text = clean(text);
        let mut tokens: Vec<Token> = Vec::new();
        let mut chars = text.char_indices().peekable();
        while let Some((start, c)) = chars.next() {
            let end = start + c.len_utf8();
            let mut kind = classify(c);
            if c == '\'' && tokens.last().is_some_and(|t| t.kind == Kind::Word && t.end == start) {
                // "don't" is one word, "dogs'" and "'90s" are not.
                if chars.peek().is_some_and(|&(_, next)| is_latin(next)) {
                    kind = Kind::Word;
                }
            }
            match tokens.last_mut() {
                Some(last) if last.kind == kind && !matches!(kind, Kind::Mark(_)) => last.end = end,
                _ => tokens.push(Token { kind, start, end }),
            }
        }
        let mut scan = Self { text, tokens, locale, shouting: false, equation: false };
        scan.equation = scan.tokens.iter().any(|t| t.kind == Kind::Mark('='));
        scan.shouting = scan.is_shouting();
        scan
    }

    fn is_shouting(&self) -> bool {
        let mut loud = 0;
        for i in 0..self.len() {
            if let Some(word) = self.word(i)
                && word.len() > 1
            {
                if word.chars().any(char::is_lowercase) {
                    return false;
                }
                loud += usize::from(super::acronyms::is_stressed(word));
            }
        }
        loud >= 2
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn kind(&self, i: usize) -> Option<Kind> {
        self.tokens.get(i).map(|t| t.kind)
    }

    /// The text of token `i`, or "".
    pub(super) fn text(&self, i: usize) -> &str {
        self.tokens.get(i).map_or("", |t| &self.text[t.start..t.end])
    }

    /// The text of the tokens `from..to`.
    pub(super) fn span(&self, from: usize, to: usize) -> &str {
        match (self.tokens.get(from), to.checked_sub(1).and_then(|last| self.tokens.get(last))) {
            (Some(first), Some(last)) if first.start < last.end => &self.text[first.start..last.end],
            _ => "",
        }
    }

    /// The text from token `i` to the end.
    pub(super) fn rest(&self, i: usize) -> &str {
        self.tokens.get(i).map_or("", |t| &self.text[t.start..])
    }

    /// The index of the token that ends `len` bytes after the start of token `i`, plus one; `None` inside a token.
    pub(super) fn after_bytes(&self, i: usize, len: usize) -> Option<usize> {
        let end = self.tokens.get(i)?.start + len;
        let next = i + self.tokens[i..].partition_point(|t| t.end <= end);
        (self.tokens[next - 1..].first()?.end == end).then_some(next)
    }

    pub(super) fn word(&self, i: usize) -> Option<&str> {
        (self.kind(i)? == Kind::Word).then(|| self.text(i))
    }

    pub(super) fn digits(&self, i: usize) -> Option<&str> {
        (self.kind(i)? == Kind::Digits).then(|| self.text(i))
    }

    pub(super) fn mark(&self, i: usize) -> Option<char> {
        match self.kind(i)? {
            Kind::Mark(c) => Some(c),
            _ => None,
        }
    }

    pub(super) fn is_mark(&self, i: usize, set: &str) -> bool {
        self.mark(i).is_some_and(|c| set.contains(c))
    }

    pub(super) fn is_word(&self, i: usize, word: &str) -> bool {
        self.word(i) == Some(word)
    }

    pub(super) fn is_space(&self, i: usize) -> bool {
        self.kind(i) == Some(Kind::Space)
    }

    /// `i`, or the index after a space there.
    pub(super) fn skip_space(&self, i: usize) -> usize {
        i + usize::from(self.is_space(i))
    }

    /// Whether nothing is glued to the front of token `i`: a letter, digit, or a mark that joins.
    pub(super) fn starts(&self, i: usize) -> bool {
        match i.checked_sub(1).and_then(|p| self.kind(p)) {
            None | Some(Kind::Space) => true,
            Some(Kind::Mark(c)) => "([{<\"'*~=≈,;:!?—–+&|>≤≥→…§".contains(c),
            Some(_) => false,
        }
    }

    /// Whether the run of tokens without spaces begins at `i`, but for opening quotes and brackets.
    pub(super) fn starts_run(&self, i: usize) -> bool {
        match i.checked_sub(1).and_then(|p| self.kind(p)) {
            None | Some(Kind::Space) => true,
            Some(Kind::Mark(c)) => "([{<\"'—*".contains(c),
            Some(_) => false,
        }
    }

    /// Whether no letter or digit is glued to what ends before index `i`.
    pub(super) fn ends(&self, i: usize) -> bool {
        !matches!(self.kind(i), Some(Kind::Word | Kind::Digits | Kind::Foreign(_)))
    }

    /// Whether only punctuation is left from index `i` on.
    pub(super) fn is_last(&self, i: usize) -> bool {
        // Closing marks are few; a flood of them need not be understood.
        (i..self.len().min(i + 8)).all(|j| self.is_space(j) || self.is_mark(j, ".\"')]}!?*_"))
    }

    /// The word before index `i`, if nothing but a space, or a full stop and a space, stands between.
    pub(super) fn word_before(&self, i: usize) -> Option<&str> {
        let mut j = i.checked_sub(1)?;
        if !self.is_space(j) {
            return None;
        }
        j = j.checked_sub(1)?;
        if self.is_mark(j, ".") {
            j = j.checked_sub(1)?;
        }
        self.word(j)
    }

    /// The word that stands one space after the tokens before index `i`.
    pub(super) fn word_after(&self, i: usize) -> Option<&str> {
        if self.is_space(i) { self.word(i + 1) } else { None }
    }
}

fn classify(c: char) -> Kind {
    if c.is_ascii_digit() {
        Kind::Digits
    } else if c == ' ' {
        Kind::Space
    } else if is_latin(c) {
        Kind::Word
    } else {
        script(c).map_or(Kind::Mark(c), Kind::Foreign)
    }
}

/// Latin letters with and without accents, and the two signs that units are written with.
pub(super) fn is_latin(c: char) -> bool {
    c.is_ascii_alphabetic()
        || matches!(c, '\u{C0}'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}' if c.is_alphabetic())
        || matches!(c, MICRO | OHM)
}

/// The micro sign, kept apart from the Greek letter.
pub(super) const MICRO: char = '\u{B5}';
/// The ohm sign, kept apart from the Greek letter.
pub(super) const OHM: char = '\u{2126}';

/// Brings typography to one form: compatibility letters, quotes, dashes, spaces, invisible characters.
fn clean(text: &str) -> String {
    let mut chars: Vec<char> = text.nfc().map(|c| digit(c).unwrap_or(c)).collect();
    grouping::join(&mut chars);
    let mut out = String::with_capacity(text.len());
    for (i, &c) in chars.iter().enumerate() {
        let previous = i.checked_sub(1).and_then(|p| chars.get(p)).copied();
        let next = chars.get(i + 1).copied();
        let after = chars.get(i + 2).copied();
        match c {
            '\u{B5}' | '\u{3BC}' if next.is_some_and(|n| n.is_ascii_alphabetic()) => out.push(MICRO),
            '\u{3A9}' | '\u{2126}' if previous.is_some_and(|p| p.is_ascii_digit() || "kM ".contains(p)) => {
                out.push(OHM);
            }
            '½' | '¼' | '¾' | '⅐'..='⅞' | '↉' | '²' | '³' | '¹' | '⁰'..='⁻' | 'ⁿ' | '…' => {
                out.push(c)
            }
            '‘' | '’' | '‚' | '‛' | '`' | '´' | 'ʼ' | 'ʻ' => out.push('\''),
            '“' | '”' | '„' | '‟' | '«' | '»' => out.push('"'),
            '‐' | '‑' | '﹣' | '－' => out.push('-'),
            '‒' | '–' => out.push('–'),
            '—' | '―' => out.push('—'),
            '−' => out.push('−'),
            '。' | '｡' | '।' | '॥' | '۔' => out.push('.'),
            '٫' => out.push('.'),
            '、' | '،' | '٬' => out.push(','),
            '٪' => out.push('%'),
            '؟' => out.push('?'),
            '؛' => out.push(';'),
            '№' => out.push(c),
            '′' | '″' => out.push(c),
            '™'
            | '®'
            | '©'
            | '℠'
            | '\u{200B}'..='\u{200F}'
            | '\u{2060}'..='\u{2064}'
            | '\u{FEFF}'
            | '\u{AD}' => {}
            c if c.is_whitespace() => push_space(&mut out),
            c if c.is_control() => {}
            c if c.is_ascii() => out.push(c),
            // A letter under a heap of marks was never an accented one.
            c if is_latin(c)
                && next.is_some_and(is_combining_mark)
                && after.is_some_and(is_combining_mark) =>
            {
                out.extend(std::iter::once(c).nfd().next());
            }
            c => {
                for k in std::iter::once(c).nfkc() {
                    if k.is_whitespace() {
                        push_space(&mut out);
                    } else if !is_combining_mark(k) || marks_letter(&out, k) {
                        out.push(k);
                    }
                }
            }
        }
    }
    out
}

/// Whether the mark `k` belongs to a letter of its script at the end of `out`: not a heap of them on a Latin letter.
fn marks_letter(out: &str, k: char) -> bool {
    script(k).is_some() && out.chars().next_back().is_some_and(|last| script(last).is_some())
}

fn push_space(out: &mut String) {
    if !out.ends_with(' ') {
        out.push(' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_typography() {
        let scan = Scan::new("Don’t  pay\u{A0}12\u{A0}500 “µg” ﬁx ２", Locale::EnUs);
        assert_eq!(scan.text, "Don't pay 12,500 \"µg\" fix 2");
        assert_eq!(scan.word(0), Some("Don't"));
        assert_eq!(scan.word_after(1), Some("pay"));
        assert_eq!(scan.word_before(4), Some("pay"));
        assert_eq!(scan.span(4, 7), "12,500");
        assert_eq!(scan.text(99), "");
    }

    #[test]
    fn capitals_throughout_are_shouting() {
        assert!(Scan::new("DO NOT OPEN THIS", Locale::EnUs).shouting);
        assert!(!Scan::new("NASA, FBI, NATO", Locale::EnUs).shouting);
        assert!(!Scan::new("Do NOT OPEN THIS", Locale::EnUs).shouting);
    }
}
