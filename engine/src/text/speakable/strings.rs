//! Letters and digits without a space that are no word: keys, hashes, encoded data, a cat on the keyboard.

use super::scan::{Kind, Scan, Spoken};

/// The longest run that is still read. (The longest place name has 58 letters.)
const LONGEST: usize = 60;

/// Marks that encoded data has between its letters.
const JOINTS: &str = "+/=_";

/// What is said for a longer run; a clause that says only this is not repeated.
pub(super) const ANNOUNCEMENT: &str = "a long string of characters";

/// A longer run is announced, as nobody would read it out; but one that is long only because a letter was held down
/// ("noooo") is said with that letter three times.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    let part = |k: usize| matches!(scan.kind(k), Some(Kind::Word | Kind::Digits));
    // Only a run's first token looks ahead, so that time stays linear.
    let within = i > 0 && (part(i - 1) || (i > 1 && scan.is_mark(i - 1, JOINTS) && part(i - 2)));
    if !part(i) || within {
        return None;
    }
    let mut next = i + 1;
    while part(next) || (scan.is_mark(next, JOINTS) && part(next + 1)) {
        next += 1;
    }
    let text = scan.span(i, next);
    if text.chars().nth(LONGEST).is_none() || !text.chars().any(char::is_alphabetic) {
        return None;
    }
    let short = squeezed(text);
    if short.chars().nth(LONGEST).is_none() && short.chars().all(char::is_alphabetic) {
        return Spoken::new(next, short);
    }
    Spoken::new(next, ANNOUNCEMENT)
}

/// At most three of a letter in a row.
fn squeezed(text: &str) -> String {
    let mut out = String::new();
    let mut run = (' ', 0);
    for c in text.chars() {
        run = if c == run.0 { (c, run.1 + 1) } else { (c, 1) };
        if run.1 <= 3 {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::text::speakable::{Locale, speak};

    fn said(text: &str) -> String {
        speak(text, Locale::EnUs).join(" ")
    }

    #[test]
    fn what_is_no_word_is_announced() {
        let key = "q8Zr1xPv".repeat(12);
        assert_eq!(
            said(&format!("The key is {key}, keep it.")),
            "The key is a long string of characters, keep it."
        );
        let base64 =
            format!("{}/{}+{}==", "aGVsbG8gd29y".repeat(3), "bGQhIGhv".repeat(3), "dyBhcmUg".repeat(2));
        assert_eq!(said(&base64), "a long string of characters");
        // Once, though the splitter cuts it.
        assert_eq!(said(&"abcdefghij".repeat(300)), "a long string of characters");
    }

    #[test]
    fn long_words_and_held_letters_are_said() {
        let place = "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogoch";
        assert_eq!(said(&format!("We went to {place}.")), format!("We went to {place}."));
        assert_eq!(said(&format!("No{} way!", "o".repeat(200))), "Nooo way!");
        let held = said(&"x".repeat(3000));
        assert!(held.split(' ').count() < 10 && held.split(' ').all(|w| w == "xxx"), "{held}");
    }
}
