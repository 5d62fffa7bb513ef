//! Options of commands and steps of counters: "-m", "--release", "i++".

use super::scan::{Scan, Spoken};
use super::{acronyms, calls, identifiers};

/// Endings of words, which are written with a hyphen when they are talked about: "add -ing".
#[rustfmt::skip]
const SUFFIXES: &[&str] = &[
    "able", "al", "ed", "en", "er", "es", "est", "ful", "ible", "ic", "ied", "ies", "ing", "ion", "ish", "ism", "ist", "ity",
    "ive", "ize", "less", "ly", "ment", "ness", "or", "ous", "sion", "tion", "ward",
];

/// Words that go on after a dash that was written as two hyphens.
#[rustfmt::skip]
const GOING_ON: &[&str] = &[
    "a", "an", "and", "as", "because", "but", "he", "i", "if", "it", "or", "she", "so", "that", "the", "they", "this", "we",
    "which", "who", "you",
];

/// An option, a negative letter, or a counter's step.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    let c = scan.mark(i)?;
    if scan.mark(i + 1) == Some(c) && "+-".contains(c) {
        return step(scan, i, c).or_else(|| long(scan, i));
    }
    if c != '-' || !scan.starts_run(i) {
        return None;
    }
    let word = scan.word(i + 1)?;
    if word.chars().count() <= 2 && is_negative(scan, i) {
        return Spoken::new(i + 1, "minus");
    }
    if SUFFIXES.contains(&word) || word.contains('\'') {
        return None;
    }
    let mut next = i + 2;
    let mut words = match word.chars().count() {
        1 => word.to_uppercase(),
        2 => acronyms::spell(word, ""),
        _ => identifiers::words(word, scan.locale),
    };
    // "-j8", "-std-lib"
    while scan.digits(next).is_some() || scan.is_mark(next, "-_") && scan.word(next + 1).is_some() {
        let part = if scan.digits(next).is_some() { next } else { next + 1 };
        words.push(' ');
        words.push_str(&identifiers::words(scan.text(part), scan.locale));
        next = part + 1;
    }
    Spoken::new(next, format!("dash {words}"))
}

/// `--release`, `--no-verify`
fn long(scan: &Scan, i: usize) -> Option<Spoken> {
    if !scan.is_mark(i, "-") || !scan.starts_run(i) {
        return None;
    }
    let word = scan.word(i + 2)?;
    if GOING_ON.contains(&word.to_lowercase().as_str()) {
        return None;
    }
    let mut next = i + 3;
    while scan.digits(next).is_some()
        || scan.word(next).is_some()
        || scan.is_mark(next, "-_") && !scan.ends(next + 1)
    {
        next += 1;
    }
    Spoken::new(next, format!("dash dash {}", identifiers::words(scan.span(i + 2, next), scan.locale)))
}

/// `i++`, `--j`
fn step(scan: &Scan, i: usize, c: char) -> Option<Spoken> {
    let said = if c == '+' { "plus plus" } else { "minus minus" };
    let more = scan.mark(i + 2) == Some(c) || i > 0 && scan.mark(i - 1) == Some(c);
    if more {
        return None;
    }
    let short =
        |k: usize| scan.word(k).is_some_and(|w| w.chars().count() <= 2 && !matches!(w, "I" | "a" | "A"));
    // "word--" is a dash, whatever follows.
    let after = i > 0 && (c == '+' && !scan.ends(i - 1) || short(i - 1)) && scan.ends(i + 2);
    let before = scan.starts_run(i) && short(i + 2) && scan.ends(i + 3) && !scan.is_mark(i + 3, "-=");
    if after || before { Spoken::new(i + 2, said) } else { None }
}

/// Whether the hyphen at `i` is the sign of the letter behind it: "y = -x", "f(-x)", "-b + 2".
fn is_negative(scan: &Scan, i: usize) -> bool {
    let space = usize::from(i > 0 && scan.is_space(i - 1));
    let before = i.checked_sub(1 + space);
    before.is_some_and(|k| {
        scan.is_mark(k, "=+−*×÷<>≤≥≈≠^")
            || scan.is_mark(k, "(") && (scan.equation || calls::opens_call(scan, k))
    }) || scan.is_mark(scan.skip_space(i + 2), "+^²³×")
        || scan.is_mark(i + 2, "*/")
}
