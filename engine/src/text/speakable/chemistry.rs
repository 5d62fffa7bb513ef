//! Formulas of substances without digits: "NaCl", "HCl", "Na+". (Those with digits are names of letters and digits.)

use super::acronyms::spell;
use super::scan::{Scan, Spoken};

#[rustfmt::skip]
const ELEMENTS: &[&str] = &[
    "H", "He", "Li", "Be", "B", "C", "N", "O", "F", "Ne", "Na", "Mg", "Al", "Si", "P", "S", "Cl", "Ar", "K", "Ca", "Sc", "Ti", "V",
    "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga", "Ge", "As", "Se", "Br", "Kr", "Rb", "Sr", "Zr", "Ag", "Cd", "Sn", "Sb", "I",
    "Xe", "Cs", "Ba", "Pt", "Au", "Hg", "Pb", "Bi", "U",
];

/// Of two letters, and met with a charge.
const IONS: &[&str] = &["Na", "Li", "Mg", "Ca", "Al", "Cl", "Br", "Fe", "Cu", "Zn", "Ag"];

/// A compound, or an ion of a two-letter element with its charge.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    let word = scan.word(i)?;
    if is_compound(word) {
        return Spoken::new(i + 1, spell(word, ""));
    }
    // "Ca(OH)2"
    let group = scan.word(i + 2).filter(|_| scan.is_mark(i + 1, "(") && scan.is_mark(i + 3, ")"));
    let digits = scan.digits(i + 4).filter(|d| d.len() == 1);
    if let (Some(group), Some(digits)) = (group, digits)
        && scan.starts(i)
        && is_formula(word)
        && is_formula(group)
    {
        let count = super::numbers::cardinal(digits, scan.locale);
        return Spoken::new(i + 5, format!("{} {} {count}", spell(word, ""), spell(group, "")));
    }
    if !IONS.contains(&word) || !scan.starts(i) {
        return None;
    }
    // "Fe³⁺": what is raised has its own rule.
    let raised = (i + 1..i + 4).take_while(|&k| scan.is_mark(k, "¹²³⁴⁺⁻")).last();
    if raised.is_some_and(|last| last > i + 1 && scan.is_mark(last, "⁺⁻")) {
        return Spoken::new(i + 1, spell(word, ""));
    }
    let charge = match scan.mark(i + 1).filter(|_| scan.ends(i + 2) && !scan.is_mark(i + 2, "-+"))? {
        '+' | '⁺' => "plus",
        '-' | '−' | '⁻' => "minus",
        _ => return None,
    };
    Spoken::new(i + 2, format!("{} {charge}", spell(word, "")))
}

/// Whether a word is made of elements only.
fn is_formula(word: &str) -> bool {
    elements(word).is_some()
}

/// Whether a word is made of two elements or more, one of them with a small letter, and is no word or acronym.
pub(super) fn is_compound(word: &str) -> bool {
    // Not a number.
    if word == "NaN" || word.len() > 12 || !word.is_ascii() {
        return false;
    }
    word.chars().any(char::is_lowercase) && elements(word).is_some_and(|count| count >= 2)
}

/// Of how many elements a word is made.
fn elements(word: &str) -> Option<usize> {
    if word.len() > 12 || !word.is_ascii() {
        return None;
    }
    let (mut rest, mut count) = (word, 0);
    while !rest.is_empty() {
        let len = 1 + rest.chars().skip(1).take_while(char::is_ascii_lowercase).count();
        ELEMENTS.contains(&&rest[..len]).then_some(())?;
        rest = &rest[len..];
        count += 1;
    }
    Some(count)
}
