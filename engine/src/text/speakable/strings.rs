//! Runs without a space that nobody reads out: numbers of a page, keys, hashes, encoded data, a cat on the keyboard.

use super::numbers::Numeral;
use super::scan::{Kind, Scan, Spoken};
use super::web;

/// The longest run of letters and digits that is still read. (The longest place name has 58 letters.)
const LONGEST: usize = 60;

/// The longest run of anything but an address or a number that is still read, marks included.
const LONGEST_MIXED: usize = 80;

/// A letter more often in a row was held down; so many of it are said.
const MOST_HELD: usize = 8;
const HELD: usize = 3;

/// Marks that encoded data has between its letters.
const JOINTS: &str = "+/=_";

/// Beginnings of addresses, of which the host is said however long the rest is.
const SCHEMES: &[&str] = &["http", "https", "ftp", "www", "mailto", "file", "ssh", "git", "ws", "wss", "s3"];

/// What is said for a longer run; a clause that says only this is not repeated.
pub(super) const ANNOUNCEMENT: &str = "a long string of characters";

/// A run of letters and digits that is too long is announced, as nobody would read it out; but one that is long only
/// because a letter was held down ("noooo") is said with that letter three times.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    let part = |k: usize| matches!(scan.kind(k), Some(Kind::Word | Kind::Digits));
    // Only a run's first token looks ahead, so that time stays linear.
    let within = i > 0 && (part(i - 1) || (i > 1 && scan.is_mark(i - 1, JOINTS) && part(i - 2)));
    if part(i) && !within {
        let mut next = i + 1;
        while part(next) || (scan.is_mark(next, JOINTS) && part(next + 1)) {
            next += 1;
        }
        let text = scan.span(i, next);
        if text.chars().any(char::is_alphabetic) && text.chars().nth(LONGEST).is_some() {
            let short = squeezed(text);
            let word = short.chars().nth(LONGEST).is_none() && short.chars().all(char::is_alphabetic);
            return Spoken::new(next, if word { short } else { ANNOUNCEMENT.to_string() });
        }
    }
    let word = scan.word(i)?;
    let short = squeezed(word);
    (short.len() < word.len()).then(|| Spoken { next: i + 1, words: short })
}

/// A run of letters, digits and marks that is neither an address nor a number: a signed token, data, code.
pub(super) fn unbroken(scan: &Scan, i: usize) -> Option<Spoken> {
    if !scan.starts_run(i) || SCHEMES.iter().any(|scheme| scan.text(i).eq_ignore_ascii_case(scheme)) {
        return None;
    }
    let inside = |k: usize| {
        let ends = |c| "—–…\"".contains(c);
        !matches!(scan.kind(k), None | Some(Kind::Space | Kind::Foreign(_)))
            && !scan.mark(k).is_some_and(ends)
    };
    let (mut next, mut chars, mut said) = (i, 0, 0);
    while inside(next) && chars <= LONGEST_MIXED {
        let len = scan.text(next).chars().count();
        chars += len;
        said += if scan.ends(next) { 0 } else { len };
        next += 1;
    }
    // A rule across the page is nothing to be announced.
    if chars <= LONGEST_MIXED || said < chars / 4 {
        return None;
    }
    while inside(next) {
        next += 1;
    }
    while scan.is_mark(next - 1, ".,;:!?)") {
        next -= 1;
    }
    // A word, a number or an address alone has its own rule.
    let own =
        Numeral::read(scan, i).is_some_and(|number| number.next >= next) || web::is_address(scan, i, next);
    if own || next == i + 1 { None } else { Spoken::new(next, ANNOUNCEMENT) }
}

/// Whether `text` ends with a run that is announced, which may go on in the next clause.
pub(super) fn ends_in_run(text: &str) -> bool {
    let run = text.chars().rev().take_while(|c| !c.is_whitespace());
    run.take(LONGEST_MIXED + 1).count() > LONGEST_MIXED
}

/// A letter that is held down three times, the others as they are.
fn squeezed(text: &str) -> String {
    let mut out = String::new();
    let chars: Vec<char> = text.chars().collect();
    for run in chars.chunk_by(|a, b| a == b) {
        let most = if run.len() > MOST_HELD { HELD } else { run.len() };
        out.extend(&run[..most]);
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
        let token = format!("eyJh{0}.eyJz{0}.{0}-{0}", "bGciOiJIUzI1NiIs".repeat(3));
        assert_eq!(said(&format!("Send {token}. Done.")), "Send a long string of characters. Done.");
    }

    #[test]
    fn long_words_and_held_letters_are_said() {
        let place = "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogoch";
        assert_eq!(said(&format!("We went to {place}.")), format!("We went to {place}."));
        assert_eq!(said("Noooooo way!"), "Noooooo way!");
        assert_eq!(said(&format!("No{} way!", "o".repeat(20))), "Nooo way!");
        assert_eq!(said(&format!("No{} way!", "o".repeat(200))), "Nooo way!");
        assert_eq!(said(&"x".repeat(3000)), "xxx");
    }

    #[test]
    fn long_numbers_are_counted_or_cut_short() {
        assert_eq!(said(&format!("It is {}.", "7".repeat(61))), "It is a number of sixty-one digits.");
        assert_eq!(said(&format!("It is 1{}.", ",000".repeat(30))), "It is a number of ninety-one digits.");
        assert_eq!(said(&"01".repeat(32)), "a number of sixty-four digits");
        let decimals = said(&format!("Pi is 3.{}.", "14159".repeat(10)));
        assert_eq!(decimals.split(' ').count(), 2 + 2 + 50, "{decimals}");
        let decimals = said(&format!("Pi is 3.{} or so.", "1".repeat(500)));
        assert_eq!(decimals, format!("Pi is three point{}, and so on or so.", " one".repeat(20)));
    }

    #[test]
    fn a_page_without_a_space_takes_a_moment_and_a_few_words() {
        let blocks = [
            "7", "a", "xyz", "q8Zr1xPv", "1,", "a.", "a-", "a/", "-1", "{a:1}", "1.5", "é", "a@b.c", "%20",
            "0x1F",
        ];
        for block in blocks {
            let page = block.repeat(100_000 / block.len());
            for text in [page.clone(), format!("Here it is: {page} and so on.")] {
                let start = std::time::Instant::now();
                let words = said(&text);
                assert!(words.split(' ').count() < 60, "{block:?} gave {} words", words.split(' ').count());
                assert!(start.elapsed().as_secs() < 20, "{block:?} took {:?}", start.elapsed());
            }
        }
        let said = said(&format!("Here: {} Then this.", "9".repeat(100_000)));
        assert_eq!(said, "Here: a very long number Then this.");
    }
}
