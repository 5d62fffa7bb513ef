//! Text to words and marks.
//!
//! A word keeps its inner apostrophes and hyphens, and the dots of an initialism ("U.S."). Marks are folded to the
//! ones that Kokoro knows. Words in other scripts become [`Kind::Skipped`], symbols without a reading vanish: the
//! speakable-text pass has given both their words before, and what it leaves must not break speech.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A longer run of letters is no word; it is cut, which bounds the depth and the time of every rule about words.
const MAX_WORD_CHARS: usize = 64;

/// What a stretch of text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word, in compatibility form, with `'` for every apostrophe and `-` for every hyphen.
    Word(String),
    /// One of `;:,.!?—…()“”`.
    Mark(char),
    /// A word in a script that has no letters of ours.
    Skipped,
}

/// A stretch of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Bytes of the text.
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
    /// Whether white space, or a symbol without a reading, follows.
    pub(super) space_after: bool,
}

/// Words that keep a dot: those before a name, and those anywhere.
const DOTTED: &[&str] = &["mr", "mrs", "ms", "dr", "esq", "vs"];
const DOTTED_INSIDE: &[&str] = &["etc", "jr", "sr"];

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’' | '‘' | 'ʼ' | '`' | '´')
}

fn is_hyphen(c: char) -> bool {
    matches!(c, '-' | '‐' | '‑')
}

/// Letters whose base is one of ours, and digits.
fn is_ours(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || (c.is_alphanumeric()
            && (c < '\u{250}'
                || matches!(c, '\u{1e00}'..='\u{1eff}' | '\u{2070}'..='\u{218f}' | '\u{2460}'..='\u{24ff}' | '\u{fb00}'..='\u{fb06}' | '\u{ff10}'..='\u{ff5a}')))
        || digit(c).is_some()
        || (is_combining_mark(c) && c < '\u{370}')
        || c == '\u{ad}'
}

/// A decimal digit of any script as one of ours.
pub(in crate::text) fn digit(c: char) -> Option<char> {
    const ZEROS: [u32; 18] = [
        0x30, 0x660, 0x6f0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50, 0xed0,
        0xf20, 0x1040, 0x17e0, 0x1810,
    ];
    let value = ZEROS.iter().find_map(|&zero| (c as u32).checked_sub(zero).filter(|&v| v < 10))?;
    char::from_digit(value, 10)
}

fn mark(c: char) -> Option<char> {
    Some(match c {
        ';' | ':' | ',' | '.' | '!' | '?' | '—' | '…' | '(' | ')' | '“' | '”' => c,
        '–' | '―' => '—',
        '。' | '．' | '॥' | '।' | '۔' => '.',
        '，' | '、' | '،' | '､' => ',',
        '！' => '!',
        '？' | '؟' => '?',
        '：' => ':',
        '；' | '؛' => ';',
        '[' | '{' | '（' | '【' | '［' => '(',
        ']' | '}' | '）' | '】' | '］' => ')',
        '«' | '„' | '‟' | '‹' | '「' | '『' | '《' => '“',
        '»' | '›' | '」' | '』' | '》' => '”',
        _ => return None,
    })
}

/// Symbols that are words wherever they stand.
fn symbol(c: char) -> Option<&'static str> {
    Some(match c {
        '&' => "and",
        '%' => "percent",
        '+' => "plus",
        '@' => "at",
        '=' => "equals",
        _ => return None,
    })
}

/// Cuts a text into pieces, in order, none overlapping.
pub(super) fn split(text: &str) -> Vec<Piece> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let at = |i: usize| chars.get(i).map(|&(_, c)| c);
    let offset = |i: usize| chars.get(i).map_or(text.len(), |&(o, _)| o);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut i = 0;
    while let Some(c) = at(i) {
        let start = i;
        let before = i.checked_sub(1).and_then(at);
        let opens = before.is_none_or(|b| b.is_whitespace() || "([{—“".contains(b));
        let kind = if is_ours(c) && !is_combining_mark(c)
            || is_apostrophe(c) && opens && at(i + 1).is_some_and(is_ours)
        {
            i = word_end(&chars, i);
            let mut word: String = text[offset(start)..offset(i)].to_owned();
            if at(i) == Some('.') && keeps_dot(&word, &chars, i) {
                word.push('.');
                i += 1;
            }
            let word = normal(&word);
            if word.chars().any(|c| c.is_alphanumeric()) { Some(Kind::Word(word)) } else { None }
        } else if c.is_alphanumeric() {
            while at(i).is_some_and(|c| (c.is_alphanumeric() || is_combining_mark(c)) && !is_ours(c)) {
                i += 1;
            }
            Some(Kind::Skipped)
        } else if c == '.' && at(i + 1) == Some('.') {
            while at(i) == Some('.') {
                i += 1;
            }
            Some(Kind::Mark('…'))
        } else if is_hyphen(c) {
            while at(i).is_some_and(is_hyphen) {
                i += 1;
            }
            let spaced =
                opens && at(i).is_none_or(char::is_whitespace) && before.is_some() && at(i).is_some();
            (spaced || i > start + 1).then_some(Kind::Mark('—'))
        } else {
            i += 1;
            match c {
                '"' | '＂' => Some(Kind::Mark(if opens { '“' } else { '”' })),
                _ => mark(c).map(Kind::Mark).or_else(|| symbol(c).map(|w| Kind::Word(w.to_owned()))),
            }
        };
        let range = offset(start)..offset(i);
        match (kind, pieces.last_mut()) {
            // "!!!" is one mark.
            (Some(Kind::Mark(m)), Some(last)) if last.kind == Kind::Mark(m) && !last.space_after => {
                last.range.end = range.end;
            }
            (Some(kind), last) => {
                // A symbol's word is never glued to its neighbours.
                if let Some(last) = last.filter(|last| symbol(c).is_some() || glued(last, &kind)) {
                    last.space_after = true;
                }
                pieces.push(Piece { range, kind, space_after: symbol(c).is_some() });
            }
            (None, Some(last)) if !is_apostrophe(c) && c != '\u{200d}' && c != '\u{200b}' => {
                last.space_after = true
            }
            (None, _) => {}
        }
    }
    pieces
}

/// Two words side by side are spoken apart.
fn glued(last: &Piece, kind: &Kind) -> bool {
    !matches!(last.kind, Kind::Mark(_)) && !matches!(kind, Kind::Mark(_))
}

/// The index after a word that begins at `start`.
fn word_end(chars: &[(usize, char)], start: usize) -> usize {
    let at = |i: usize| chars.get(i).map(|&(_, c)| c);
    let letters_from = |from: usize| (from..).take_while(|&k| at(k).is_some_and(char::is_alphabetic)).count();
    let mut i = start + 1;
    let mut segment = start; // where the part since the last dot begins
    while let Some(c) = at(i) {
        let before = at(i - 1).unwrap_or(' ');
        let next = at(i + 1);
        let next_is_ours = next.is_some_and(|n| is_ours(n) && !is_combining_mark(n));
        let inside = if is_ours(c) {
            true
        } else if is_apostrophe(c) {
            next_is_ours || (before == 'n' && at(i.wrapping_sub(2)) == Some('i'))
        } else if is_hyphen(c) {
            next_is_ours
        } else if c == '.' {
            let digits = digit(before).is_some() && next.and_then(digit).is_some();
            // "U.S", "a.m", "Ph.D": short parts only, so that "end.Next" stays two words.
            let part = i - segment;
            let short = part <= 2
                && (segment..i).all(|k| at(k).is_some_and(char::is_alphabetic))
                && (1..=2).contains(&letters_from(i + 1))
                && (part == 1 || letters_from(i + 1) == 1);
            segment = i + 1;
            digits || short
        } else if c == ',' {
            digit(before).is_some() && (1..=3).all(|k| at(i + k).and_then(digit).is_some())
        } else {
            false
        };
        if !inside || i - start >= MAX_WORD_CHARS {
            break;
        }
        i += 1;
    }
    i
}

/// Whether the dot at `i` belongs to the word before it rather than ending the sentence.
fn keeps_dot(word: &str, chars: &[(usize, char)], i: usize) -> bool {
    let lower = word.to_lowercase();
    if DOTTED.contains(&lower.as_str()) {
        return true;
    }
    let rest = chars[i + 1..].iter().map(|&(_, c)| c);
    let inside = match rest.clone().find(|c| !c.is_whitespace()) {
        Some(c) => !c.is_uppercase() && !"“\"'([".contains(c),
        None => false,
    };
    let dotted = word.contains('.') && !word.contains(|c: char| c.is_ascii_digit());
    inside && (dotted || DOTTED_INSIDE.contains(&lower.as_str()))
}

/// Compatibility form with plain apostrophes, hyphens and digits, without soft hyphens.
fn normal(word: &str) -> String {
    word.nfkc()
        .filter(|&c| c != '\u{ad}')
        .map(|c| match c {
            _ if is_apostrophe(c) => '\'',
            _ if is_hyphen(c) => '-',
            _ => digit(c).unwrap_or(c),
        })
        .filter(|&c| c.is_alphanumeric() || is_combining_mark(c) || "'-.,".contains(c))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces in short: words as they are, `_` for a space, `#` for a skipped word.
    fn short(text: &str) -> String {
        let mut out = String::new();
        let mut end = 0;
        for piece in split(text) {
            assert!(piece.range.start >= end && piece.range.end <= text.len(), "{text}");
            end = piece.range.end;
            match piece.kind {
                Kind::Word(w) => out += &format!("[{w}]"),
                Kind::Mark(m) => out.push(m),
                Kind::Skipped => out.push('#'),
            }
            if piece.space_after {
                out.push('_');
            }
        }
        out
    }

    #[test]
    fn words_and_marks() {
        for (text, want) in [
            ("", ""),
            ("Hello, world!", "[Hello],_[world]!"),
            ("It’s a well-known dogs' trick", "[It's]_[a]_[well-known]_[dogs]_[trick]"),
            ("goin' 'cause 'tis", "[goin']_['cause]_['tis]"),
            ("the U.S. team, in the U.S. Now", "[the]_[U.S.]_[team],_[in]_[the]_[U.S]._[Now]"),
            ("9 a.m. or Ph.D.", "[9]_[a.m.]_[or]_[Ph.D]."),
            ("Dr. Lee vs. Mr. Ray, etc. and etc.", "[Dr.]_[Lee]_[vs.]_[Mr.]_[Ray],_[etc.]_[and]_[etc]."),
            ("end.Next one", "[end].[Next]_[one]"),
            ("3.5 and 1,000, 2", "[3.5]_[and]_[1,000],_[2]"),
            ("wait... what?!! -- no - yes – ok", "[wait]…_[what]?!_—_[no]_—_[yes]_—_[ok]"),
            ("He said \"hi\" (twice) [x]", "[He]_[said]_“[hi]”_([twice])_([x])"),
            ("and/or snake_case a&b 5%", "[and]_[or]_[snake]_[case]_[a]_[and]_[b]_[5]_[percent]_"),
            ("你好 мир hi🙂there", "#_#_[hi]_[there]"),
            ("ﬁne １２ ٣ ½ co\u{ad}op e\u{301}", "[fine]_[12]_[3]_[12]_[coop]_[é]"),
            ("-5 --- ' '' *bold*", "[5]_—_[bold]_"),
            ("。，！", ".,!"),
        ] {
            assert_eq!(short(text), want, "{text}");
        }
    }

    #[test]
    fn ranges_cover_the_words() {
        let text = "Él vino, “José’s”.";
        let words: Vec<_> = split(text).into_iter().map(|p| &text[p.range]).collect();
        assert_eq!(words, ["Él", "vino", ",", "“", "José’s", "”", "."]);
    }
}
