//! The table of cases, state over clauses, and the laws that hold for any text.

use proptest::prelude::*;

use super::*;
use crate::text::clauses::SplitterConfig;

const CASES: &str = include_str!("cases.tsv");

/// The rows of the table: line number, input, words, locale.
fn cases() -> impl Iterator<Item = (usize, String, &'static str, Locale)> {
    CASES.lines().enumerate().filter(|(_, line)| line.contains('\t')).map(|(n, line)| {
        let columns: Vec<&'static str> = line.split('\t').collect();
        let column = |k: usize| columns.get(k).copied().unwrap_or_default();
        let (input, words, locale) = (column(0), column(1), column(2));
        let locale = if locale == "gb" { Locale::EnGb } else { Locale::EnUs };
        (n + 1, input.replace("\\n", "\n"), words, locale)
    })
}

#[test]
fn every_row_of_the_table() {
    let mut misses = Vec::new();
    let mut rows = 0;
    for (line, input, words, locale) in cases() {
        rows += 1;
        let said = speak(&input, locale).join(" ");
        if said != words {
            misses.push(format!("line {line}: {input:?}\n   right: {words}\n   wrong: {said}"));
        }
    }
    assert!(rows >= 850, "the table has shrunk to {rows} rows");
    assert!(misses.is_empty(), "{} of {rows} rows missed:\n{}", misses.len(), misses.join("\n"));
}

/// The same through the splitter, a character at a time.
fn streamed(text: &str, locale: Locale) -> Vec<String> {
    let mut splitter = ClauseSplitter::default();
    let mut speakable = Speakable::new(locale);
    let mut pieces = Vec::new();
    let mut buffer = [0; 4];
    for c in text.chars() {
        for clause in splitter.push(c.encode_utf8(&mut buffer)) {
            pieces.extend(speakable.push(&clause));
        }
    }
    if let Some(clause) = splitter.flush() {
        pieces.extend(speakable.push(&clause));
    }
    pieces
}

#[test]
fn streaming_changes_nothing() {
    for (line, input, words, locale) in cases() {
        assert_eq!(streamed(&input, locale).join(" "), words, "line {line}");
    }
}

#[test]
fn words_stay_as_they_are() {
    for (line, _, words, locale) in cases() {
        assert_eq!(speak(words, locale).join(" "), words, "line {line}");
    }
}

#[test]
fn markup_may_span_clauses() {
    let said = |text: &str| speak(text, Locale::EnUs);
    assert_eq!(said("**Bold starts. It goes on.** End."), ["Bold starts.", "It goes on.", "End."]);
    assert_eq!(said("Keep ~~this one. And that~~ these. Done."), ["Keep", "these.", "Done."]);
    assert_eq!(said("Keep ~~this.\n\nA new start."), ["Keep", "A new start."]);
    assert_eq!(said("A <!-- one. Two. --> bee. See."), ["A", "bee.", "See."]);
    assert_eq!(said("<table><tr><td>A. B.</td></tr></table> Then this."), ["table omitted", "Then this."]);
    assert_eq!(said("See [the long. Way](https://a.example) now. Ok."), ["See the long. Way now.", "Okay."]);
    assert_eq!(said("1. First item\n2. Second one\n\nEnd"), ["one, First item.", "two, Second one.", "End"]);
    assert_eq!(said("[^1]: A note. With more. And more.\n\nText."), ["Text."]);
}

#[test]
fn blocks_are_announced_once() {
    let text =
        "Look:\n\n```py\na = 1\n\nb. C. D\n```\n\nThen.\n\n```\nx\n```\n| a | b |\n|---|---|\n| 1 | 2 |\n";
    let said = ["Look:", "Python code omitted.", "Then.", "Code omitted.", "Table omitted."];
    assert_eq!(speak(text, Locale::EnUs), said);
    assert_eq!(speak("```\n```\n", Locale::EnUs), Vec::<String>::new());
}

#[test]
fn other_scripts_are_announced_once_in_a_row() {
    assert_eq!(
        speak("你好。再见。Fine. 你好。", Locale::EnUs),
        ["some Chinese text.", "Fine.", "some Chinese text."]
    );
}

#[test]
fn long_results_come_in_pieces() {
    let clause = |text: &str| Clause {
        text: text.into(),
        chars: 0..text.chars().count(),
        bytes: 0..text.len(),
        kind: ClauseKind::Text,
        end: ClauseEnd::Sentence,
        starts_line: true,
    };
    let pieces = Speakable::new(Locale::EnUs).push(&clause(&"7 ".repeat(300)));
    assert!(pieces.len() > 3);
    assert!(pieces.iter().all(|p| p.chars().count() <= MAX_PIECE));
    assert_eq!(pieces.join(" ").split(' ').filter(|w| *w == "seven").count(), 300);
}

fn allowed(c: char) -> bool {
    scan::is_latin(c) && c.is_alphabetic() || " .,;:!?—…\"()'-".contains(c)
}

#[track_caller]
fn check_laws(text: &str) {
    for piece in speak(text, Locale::EnUs).iter().chain(&speak(text, Locale::EnGb)) {
        assert!(piece.chars().all(allowed), "{text:?} gave {piece:?}");
        assert!(piece.chars().any(char::is_alphabetic), "{text:?} gave {piece:?}");
        assert_eq!(piece.trim(), piece, "{text:?}");
        assert!(!piece.contains("  "), "{text:?} gave {piece:?}");
        for name in ["asterisk", "backtick", "hash sign", "tilde", "ampersand", "bracket"] {
            assert!(text.contains(name) || !piece.contains(name), "{text:?} gave {piece:?}");
        }
    }
}

/// Texts full of what the rules look for.
fn replies() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "a", "The", "I", "X", "Dr", "St", "Main", "Jan", "May", "NASA", "km", "in", "am", "PM", "v", "e",
        "s", "st", "x", "Henry", "IV", "0", "1", "3", "12", "007", "1999", "555", "1234", "2024", ".", ".",
        ",", "!", "?", "…", ":", ";", " ", " ", " ", "\n", "\n\n", "\"", "'", "’", "(", ")", "[", "](", "]",
        "`", "```", "|", "$", "$$", "\\", "\\(", "{", "}", "*", "**", "_", "~~", "~", "#", "@", "/", "//",
        "://", "-", "–", "—", "+", "=", "^", "<", ">", "<b>", "</", "<!--", "-->", "&", "&amp;", "%", "°",
        "°C", "£", "€", "½", "²", "⁻", "±", "≤", "→", "🙂", "❤️", "。", "你", "あ", "ب", "π", "µ", "Ω", "é",
        "\u{301}", "\u{200d}", "http", "www.", ".com", "\\frac", "{a}", "_", "^",
    ];
    prop_oneof![
        prop::collection::vec(prop::sample::select(PIECES), 0..40).prop_map(|v| v.concat()),
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn any_text_gives_letters_and_basic_punctuation(text in replies()) {
        check_laws(&text);
    }

    #[test]
    fn the_result_of_any_text_is_plain(text in replies()) {
        // Said again, nothing is left to be normalised into characters that are not allowed.
        for piece in speak(&text, Locale::EnUs) {
            check_laws(&piece);
        }
    }

    #[test]
    fn plain_words_pass_unchanged(words in prop::collection::vec(prop::sample::select(VOCABULARY), 1..12)) {
        let text = format!("{}.", words.join(" "));
        let patient = SplitterConfig { first_min_words: usize::MAX, ..SplitterConfig::default() };
        let mut splitter = ClauseSplitter::new(patient);
        let mut clauses = splitter.push(&text);
        clauses.extend(splitter.flush());
        let mut speakable = Speakable::new(Locale::EnUs);
        let said: Vec<String> = clauses.iter().flat_map(|c| speakable.push(c)).collect();
        prop_assert_eq!(said.join(" "), text);
    }
}

#[rustfmt::skip]
const VOCABULARY: &[&str] = &[
    "the", "a", "I", "and", "or", "may", "march", "in", "at", "no", "oz", "second", "half", "point", "minus", "cats", "dogs",
    "don't", "it's", "well-known", "mother-in-law", "Paris", "August", "café", "naïve", "sun", "sat", "mon", "us", "it", "is",
    "am", "who", "rhythm", "hmm", "e-mail", "T-shirt", "x", "b", "percent", "dollars", "nineteen", "twenty-four",
];

#[test]
fn hostile_floods_take_linear_time() {
    let units = [
        "*", "_", "[", "]", "(", ")", "`", "1", "1,", "1.", "1/", "1-", "a.", "a/", "a-", "a@", "@", "#",
        "<", "<a ", "<!--", "&", "&a", "$", "$x", "\\", "\\(", "{", "^", "~~", "://", "http://", "www.",
        "\"", "'", "²", "½", "π", "你", "a1", "A", "A.", "Dr. ", "St. ", "I ", "](", "[a](", "``` ", "°",
        "\u{301}", "-", "–", "Jan 1 - ", "1 x ", "1:", "+1 ",
    ];
    let seconds = |text: &str| {
        let clause = Clause {
            text: text.into(),
            chars: 0..text.chars().count(),
            bytes: 0..text.len(),
            kind: ClauseKind::Text,
            end: ClauseEnd::Sentence,
            starts_line: true,
        };
        let start = std::time::Instant::now();
        // One endless clause, and the same through the splitter.
        Speakable::new(Locale::EnUs).push(&clause);
        speak(text, Locale::EnUs);
        start.elapsed().as_secs_f64()
    };
    for unit in units {
        let (small, large) = (unit.repeat(10_000 / unit.len()), unit.repeat(40_000 / unit.len()));
        // Four times the text may take four times as long; quadratic time would be sixteen times, from a
        // second up. A busy machine may spoil a try, not three.
        let linear = || seconds(&large) < 8.0 * seconds(&small) + 0.3;
        assert!((0..3).any(|_| linear()), "{unit:?} takes more than linear time");
    }
}
