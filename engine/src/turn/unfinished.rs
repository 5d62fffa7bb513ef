//! Whether words sound as if more were to come.
//!
//! The silence after which a user counts as finished is a compromise; the words tell when it is wrong.
//! "My number is" wants longer, "What time is it?" does not. The rules are for English and look at
//! the last words only; in other languages punctuation alone decides. A wrong guess costs a longer
//! wait, never a lost word, so they stay few and sure.

/// How complete the words so far are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    /// Nothing says that more will come.
    Finished,
    /// A number is being said or spelled, which people do in groups.
    Spelling,
    /// The sentence cannot end here.
    Unfinished,
}

/// Words that a sentence does not end with. Left out on purpose: on, in, off, up, over, down ("turn it
/// on"), so ("I think so"), that, which, for and about ("what for", "what about").
const OPEN_WORDS: [&str; 40] = [
    "and", "or", "but", "nor", "because", "although", "unless", "whether", "if", "than", "as", "the", "a",
    "an", "my", "your", "his", "our", "their", "its", "of", "to", "from", "with", "into", "between", "i'm",
    "i'll", "we're", "um", "uh", "er", "erm", "uhm", "hmm", "very", "every", "i'd", "let's", "what's",
];

/// Forms of "to be": open after a noun ("my number is"), not after a pronoun ("what it is").
const BEING: [&str; 4] = ["is", "are", "was", "were"];
const PRONOUNS: [&str; 14] =
    ["it", "this", "that", "he", "she", "they", "you", "we", "there", "these", "those", "who", "i", "what"];

const NUMBER_WORDS: [&str; 31] = [
    "zero",
    "oh",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
    "double",
    "triple",
];

/// Nouns whose value is said in groups.
const SPELLED_NOUNS: [&str; 11] = [
    "number",
    "code",
    "pin",
    "zip",
    "postcode",
    "phone",
    "extension",
    "account",
    "serial",
    "password",
    "digits",
];

/// Judges the words said so far.
pub fn completeness(text: &str) -> Completeness {
    let text = text.trim();
    if text.ends_with(['?', '!', '？', '！']) {
        return Completeness::Finished;
    }
    if text.ends_with("...") || text.ends_with(['…', ',', '-', '–', '—', ':', '，', '、']) {
        return Completeness::Unfinished;
    }
    let words: Vec<String> = text
        .split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '’'))
        .filter(|word| !word.is_empty())
        .map(|word| word.to_lowercase().replace('’', "'"))
        .collect();
    let Some(last) = words.last() else {
        return Completeness::Finished;
    };
    if OPEN_WORDS.contains(&last.as_str()) {
        return Completeness::Unfinished;
    }
    let before = words.len().checked_sub(2).map(|i| words[i].as_str());
    if BEING.contains(&last.as_str()) && before.is_some_and(|word| !PRONOUNS.contains(&word)) {
        return Completeness::Unfinished;
    }
    let numbers = words.iter().rev().take_while(|word| is_number(word)).count();
    let spelled_noun = words.iter().any(|word| SPELLED_NOUNS.contains(&word.as_str()));
    if numbers > 0 && (numbers == words.len() || spelled_noun) {
        return Completeness::Spelling;
    }
    Completeness::Finished
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit()) || NUMBER_WORDS.contains(&word)
}

/// Whether the words only ask for silence: after them, no answer is wanted.
pub fn asks_for_silence(text: &str) -> bool {
    const ASKS: [&str; 14] = [
        "stop",
        "stop it",
        "stop please",
        "please stop",
        "stop talking",
        "stop stop",
        "stop stop stop",
        "okay stop",
        "ok stop",
        "be quiet",
        "quiet",
        "shut up",
        "silence",
        "enough",
    ];
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    ASKS.contains(&words.join(" ").as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_what_they_leave_open() {
        use Completeness::{Finished, Spelling, Unfinished};
        for (text, expected) in [
            ("My number is", Unfinished),
            ("My number is.", Unfinished),
            ("My number is five five", Spelling),
            ("My number is 55.", Spelling),
            ("One, two, three.", Spelling),
            ("7", Spelling),
            ("What is five plus five?", Finished),
            ("I was born in nineteen eighty", Finished),
            ("I want to", Unfinished),
            ("Milk, eggs and", Unfinished),
            ("Well, um", Unfinished),
            ("Tell me about the", Unfinished),
            ("First we go home,", Unfinished),
            ("And then...", Unfinished),
            ("I don’t know what it is.", Finished),
            ("Turn the light on.", Finished),
            ("I think so.", Finished),
            ("What are you looking at?", Finished),
            ("What time is it", Finished),
            ("Tell me what’s", Unfinished),
            ("", Finished),
            ("...", Unfinished),
            ("明天天气怎么样", Finished),
            ("Das ist gut.", Finished),
        ] {
            assert_eq!(completeness(text), expected, "{text:?}");
        }
    }

    #[test]
    fn bare_commands_ask_for_silence() {
        for text in ["Stop.", "stop!", "Okay, stop.", "Shut up!", "Stop, stop, stop!"] {
            assert!(asks_for_silence(text), "{text}");
        }
        for text in ["", "Stop the timer.", "Don't stop.", "When does the bus stop?"] {
            assert!(!asks_for_silence(text), "{text}");
        }
    }
}
