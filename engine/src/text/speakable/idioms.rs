//! Fixed expressions whose characters do not say how they are read.

use super::scan::{Scan, Spoken};

#[rustfmt::skip]
const IDIOMS: &[(&str, &str)] = &[
    ("24/7/365", "twenty-four seven three sixty-five"), ("24/7", "twenty-four seven"), ("9/11", "nine eleven"),
    ("7-Eleven", "Seven Eleven"), ("1:1", "one to one"), ("C++", "C plus plus"), ("c++", "C plus plus"),
    ("g++", "G plus plus"), ("C#", "C sharp"), ("F#", "F sharp"), ("c#", "C sharp"), ("ASP.NET", "A S P dot net"),
    (".NET", "dot net"), (".net", "dot net"), ("A/B", "A B"), ("and/or", "and or"), ("either/or", "either or"), ("Either/or", "Either or"), ("w/o", "without"), ("w/in", "within"), ("w/", "with"),
    ("b/c", "because"), ("n/a", "not applicable"), ("N/A", "not applicable"), ("c/o", "care of"), ("a/c", "A C"),
    ("s/he", "she or he"), ("S/he", "She or he"), ("AT&T", "A T and T"), ("AC/DC", "A C D C"), ("OS/2", "O S two"),
    ("PS/2", "P S two"), ("401(k)", "four oh one K"), ("401k", "four oh one K"), ("403(b)", "four oh three B"),
    ("501(c)(3)", "five oh one C three"), ("rock 'n' roll", "rock and roll"), ("Rock 'n' roll", "Rock and roll"),
    ("R&B", "R and B"), ("No. 1", "number one"), ("WWI", "World War one"), ("WW1", "World War one"),
    ("WWII", "World War two"), ("WW2", "World War two"), ("C-3PO", "C three P O"), ("3D", "three D"), ("2D", "two D"),
    ("K-12", "K twelve"), ("Y2K", "Y two K"), ("MP3", "M P three"), ("MP4", "M P four"), ("et al.", "et al"),
    ("4x4", "four by four"), ("2x4", "two by four"), ("T-Mobile", "T-Mobile"), ("USB-C", "U S B C"), ("USB-A", "U S B A"),
    ("Ctrl", "Control"), ("Cmd", "Command"), ("Esc", "Escape"), ("Del", "Delete"), ("o.k.", "okay"), ("O.K.", "okay"),
    ("TL;DR", "T L D R"), ("tl;dr", "T L D R"), ("e-mail", "e-mail"), ("I/O", "I O"), ("client/server", "client server"),
    ("dy/dx", "D Y D X"), ("802.11ac", "eight oh two eleven A C"), ("802.11ax", "eight oh two eleven A X"),
    ("M.2", "M dot two"), ("802.11n", "eight oh two eleven N"), ("802.11", "eight oh two eleven"), ("input/output", "input output"), ("SpO2", "S P O two"), ("Y/N", "yes or no"), ("802.11be", "eight oh two eleven B E"), ("read/write", "read write"), ("pass/fail", "pass fail"), ("L'Oréal", "L'Oréal"),
];

/// Faces and hearts made of punctuation.
#[rustfmt::skip]
const FACES: &[&str] = &[
    ":-)", ":)", ";-)", ";)", ":-(", ":(", ":'(", ":D", ":-D", ":P", ":p", ":-P", ":o", ":O", ":/", ":|", "xD", "XD", "^_^",
    "^^", "-_-", "T_T", "</3", "=)", ":]", ":3", "<3", "\\o/",
];

/// A fixed expression or a face at token `i`.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    let rest = scan.rest(i);
    let bounded = |len: usize| {
        let next = rest[len..].chars().next();
        let last = rest[..len].chars().next_back();
        match last {
            Some(last) if last.is_alphanumeric() => next.is_none_or(|c| !c.is_alphanumeric()),
            Some('/') => next.is_none_or(|c| c == ' '),
            _ => next.is_none_or(|c| !c.is_alphanumeric() && !"+#".contains(c)),
        }
    };
    if scan.starts(i) || scan.is_mark(i.wrapping_sub(1), "-") {
        for (idiom, words) in IDIOMS {
            if rest.starts_with(idiom)
                && bounded(idiom.len())
                && let Some(next) = scan.after_bytes(i, idiom.len())
            {
                return Spoken::new(next, *words);
            }
        }
    }
    if scan.starts_run(i) {
        for face in FACES {
            let ends =
                || rest[face.len()..].starts_with([' ', '.', '!', '?', ',']) || rest.len() == face.len();
            if rest.starts_with(face)
                && ends()
                && let Some(next) = scan.after_bytes(i, face.len())
            {
                // "I <3 you" is a verb.
                let loved = *face == "<3" && subject(scan, i);
                return Spoken::new(next, if loved { "love" } else { "" });
            }
        }
    }
    if scan.is_mark(i, "❤♥💕💖") {
        return Spoken::new(i + 1, if subject(scan, i) { "love" } else { "" });
    }
    if let Some(label) = label(scan, i) {
        return Some(label);
    }
    // "item(s)"
    let plural = scan.is_mark(i, "(") && scan.is_word(i + 1, "s") && scan.is_mark(i + 2, ")");
    if plural && i > 0 && scan.word(i - 1).is_some_and(|w| !super::calls::is_function(w)) {
        return Spoken::new(i + 3, "");
    }
    None
}

/// `(a)`, `(iii)`: the label of an item inside a sentence.
fn label(scan: &Scan, i: usize) -> Option<Spoken> {
    let word = scan.word(i).filter(|_| scan.is_mark(i.wrapping_sub(1), "(") && scan.is_mark(i + 1, ")"))?;
    if i > 1 && !scan.is_space(i - 2) || !scan.ends(i + 2) {
        return None;
    }
    // "the (i) icon"
    if word == "i" && matches!(scan.word_after(i + 2), Some("icon" | "button" | "symbol")) {
        return Spoken::new(i + 1, "I");
    }
    let number = ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"].iter().position(|r| *r == word);
    match number {
        Some(n) => Spoken::new(i + 1, super::numbers::two_digits(n as u32 + 1)),
        None if word.len() == 1 && word.starts_with(|c: char| ('a'..='h').contains(&c)) => {
            Spoken::new(i + 1, word.to_uppercase())
        }
        None => None,
    }
}

/// Whether who loves stands before.
fn subject(scan: &Scan, i: usize) -> bool {
    scan.word_before(i).is_some_and(|w| matches!(w, "I" | "We" | "we" | "You" | "you" | "They" | "they"))
}
