//! Writing systems that the voice has no sounds for: announced once, in place of the letters.

use super::scan::{Kind, Scan, Spoken};

/// A writing system, as far as it is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Greek,
    Cyrillic,
    Hebrew,
    Arabic,
    Devanagari,
    Thai,
    Han,
    Kana,
    Hangul,
    /// The letters of the International Phonetic Alphabet that are no others.
    Phonetic,
    Other,
}

/// The script of a letter (or a mark or digit of that script); `None` for Latin and for all symbols.
pub(super) fn script(c: char) -> Option<Script> {
    let script = match c as u32 {
        0x0370..=0x03FF | 0x1F00..=0x1FFF => Script::Greek,
        0x0400..=0x052F | 0x1C80..=0x1C8F | 0x2DE0..=0x2DFF | 0xA640..=0xA69F => Script::Cyrillic,
        0x0591..=0x05FF | 0xFB1D..=0xFB4F => Script::Hebrew,
        0x0600..=0x06FF | 0x0750..=0x077F | 0x08A0..=0x08FF | 0xFB50..=0xFDFF | 0xFE70..=0xFEFE => {
            Script::Arabic
        }
        0x0900..=0x097F | 0xA8E0..=0xA8FF => Script::Devanagari,
        0x0E00..=0x0E7F => Script::Thai,
        0x2E80..=0x2FDF
        | 0x3005..=0x3007
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF => Script::Han,
        0x3040..=0x30FF | 0x31F0..=0x31FF | 0x1B000..=0x1B16F => Script::Kana,
        0x1100..=0x11FF | 0x3130..=0x318F | 0xA960..=0xA97F | 0xAC00..=0xD7FF => Script::Hangul,
        0x0250..=0x02AF | 0x02B0..=0x02B8 | 0x02C8 | 0x02CC | 0x02D0..=0x02D1 => Script::Phonetic,
        // Letters in form, signs in use: an exponent, and marks over others.
        0x2071 | 0x207F | 0x0345 | 0x0363..=0x036F => return None,
        _ if c.is_alphabetic() && !super::scan::is_latin(c) => Script::Other,
        _ => return None,
    };
    Some(script)
}

impl Script {
    fn name(self) -> &'static str {
        match self {
            Script::Greek => "Greek",
            Script::Cyrillic => "Cyrillic",
            Script::Hebrew => "Hebrew",
            Script::Arabic => "Arabic",
            Script::Devanagari => "Hindi",
            Script::Thai => "Thai",
            Script::Han => "Chinese",
            Script::Kana => "Japanese",
            Script::Hangul => "Korean",
            Script::Phonetic => "phonetic",
            Script::Other => "foreign",
        }
    }

    /// What a run of both is written in: Chinese characters among kana are Japanese.
    fn with(self, other: Script) -> Option<Script> {
        match (self, other) {
            (a, b) if a == b => Some(a),
            (Script::Han, b @ (Script::Kana | Script::Hangul))
            | (b @ (Script::Kana | Script::Hangul), Script::Han) => Some(b),
            _ => None,
        }
    }
}

/// Letters of another script, with the spaces, digits and punctuation between them.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    if let Some(end) = transcription(scan, i) {
        return Spoken::new(end, "");
    }
    let Some(Kind::Foreign(mut script)) = scan.kind(i) else { return None };
    // Greek letters that stand alone are symbols: "μ ± σ".
    let other = (i + 1..i + 5).find(|&k| matches!(scan.kind(k), Some(Kind::Foreign(_))));
    if script == Script::Greek
        && other.is_none_or(|k| k > i + 1 && scan.text(k).chars().nth(1).is_none())
        && let Some(words) = greek(scan.text(i))
    {
        return Spoken::new(i + 1, words);
    }
    let mut next = i + 1;
    let mut j = next;
    while let Some(kind) = scan.kind(j) {
        match kind {
            Kind::Foreign(other) => match script.with(other) {
                Some(both) => {
                    script = both;
                    next = j + 1;
                }
                None => break,
            },
            Kind::Word => break,
            Kind::Mark('(' | '"' | '$' | '€') if script == Script::Greek => break,
            _ if j - next > 6 => break,
            _ => {}
        }
        j += 1;
    }
    // Marks without a letter (a stray vowel sign) say nothing.
    if !scan.span(i, next).chars().any(char::is_alphabetic) {
        return Spoken::new(next, "");
    }
    let some = if scan.word_before(i) == Some("some") { "" } else { "some " };
    Spoken::new(next, format!("{some}{} text", script.name()))
}

/// The index after how a word is said, in phonetic letters: "/ˈwɔːtə/", "[həˈloʊ]", or without a frame.
fn transcription(scan: &Scan, i: usize) -> Option<usize> {
    const LONGEST: usize = 24;
    let framed = scan.starts(i) && (scan.is_mark(i, "/[") || scan.word(i).is_some());
    let phonetic = |k: usize| scan.kind(k) == Some(Kind::Foreign(Script::Phonetic));
    if !framed && !phonetic(i) {
        return None;
    }
    let inside = |k: usize| !matches!(scan.kind(k), None | Some(Kind::Space)) && !scan.is_mark(k, "/],;)\"");
    let end = (i + 1..i + LONGEST).find(|&k| !inside(k))?;
    let close = usize::from(scan.is_mark(i, "/[") && scan.is_mark(end, "/]"));
    (i..end).any(phonetic).then_some(end + close)
}

/// A Greek letter that stands by itself is a symbol.
fn greek(letter: &str) -> Option<&'static str> {
    const NAMES: [&str; 25] = [
        "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda",
        "mu", "nu", "xi", "omicron", "pi", "rho", "sigma", "sigma", "tau", "upsilon", "phi", "chi", "psi",
        "omega",
    ];
    let mut chars = letter.chars();
    let (c, None) = (chars.next()?, chars.next()) else { return None };
    let index = match c as u32 {
        code @ 0x391..=0x3A9 => code - 0x391,
        code @ 0x3B1..=0x3C9 => code - 0x3B1,
        0x3D1 => 7,
        0x3D5 => 21,
        0x3F5 => 4,
        _ => return None,
    };
    NAMES.get(index as usize).copied()
}
