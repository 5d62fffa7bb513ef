//! The user's own words: names and jargon that they want said their way.
//!
//! One word a line, with its phonemes or with plain words that sound like it; the latter need no alphabet:
//!
//! ```text
//! # comment
//! Siobhan: shiv awn
//! Xochitl = sˈOʧil
//! ```
//!
//! A word written in lower case stands for every case; one with capitals only for itself and, at a sentence's
//! start or in capitals, for nothing else. Endings ("Siobhan's") are added by rule.

use std::collections::HashMap;

use super::alphabet::{Accent, PRIMARY, SECONDARY, is_consonant, is_stressable, is_vowel};

const MAX_WORDS: usize = 10_000;
const MAX_WORD_CHARS: usize = 64;
const MAX_PHONEMES: usize = 200;

/// Why a line of the user's words was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line}: {problem}")]
pub struct UserWordError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what to write instead.
    pub problem: UserWordProblem,
}

/// What is wrong with a line of the user's words.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UserWordProblem {
    /// Neither form was found.
    #[error("write `word = phonemes` or `word: sounds like`")]
    Form,
    /// The left side is not one word.
    #[error("{0:?} is not one word of at most {MAX_WORD_CHARS} characters; give each word a line of its own")]
    Word(String),
    /// A character is not in the accent's alphabet.
    #[error("{phoneme:?} is no phoneme of the {accent} accent; use {}", .accent.alphabet())]
    Phoneme {
        /// The character.
        phoneme: char,
        /// The accent.
        accent: Accent,
    },
    /// A stress mark stands elsewhere.
    #[error("a stress mark goes directly before its vowel")]
    Stress,
    /// The right side has no sound.
    #[error("the right side has no sound in it")]
    Empty,
    /// The right side is too long.
    #[error("the right side has more than {MAX_PHONEMES} characters")]
    Long,
    /// Too many words.
    #[error("more than {MAX_WORDS} words; split or shorten the list")]
    Count,
}

/// How the user wants a word said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UserWord {
    Phonemes(String),
    SoundsLike(String),
}

/// The user's own words.
#[derive(Clone, Debug, Default)]
pub struct UserWords {
    words: HashMap<String, UserWord>,
}

/// Checks a phoneme string against an accent's alphabet.
///
/// # Errors
/// The first problem found.
pub fn check_phonemes(phonemes: &str, accent: Accent) -> Result<(), UserWordProblem> {
    if phonemes.chars().count() > MAX_PHONEMES {
        return Err(UserWordProblem::Long);
    }
    if let Some(phoneme) = phonemes.chars().find(|&c| c != ' ' && !accent.has(c)) {
        return Err(UserWordProblem::Phoneme { phoneme, accent });
    }
    let chars: Vec<char> = phonemes.chars().collect();
    let stray = |(i, c): (usize, &char)| {
        matches!(*c, PRIMARY | SECONDARY) && !chars.get(i + 1).is_some_and(|&v| is_stressable(v))
    };
    if chars.iter().enumerate().any(stray) {
        return Err(UserWordProblem::Stress);
    }
    if !chars.iter().any(|&c| is_vowel(c) || is_consonant(c)) {
        return Err(UserWordProblem::Empty);
    }
    Ok(())
}

impl UserWords {
    /// Reads a list of words for one accent. A later line replaces an earlier one for the same word.
    ///
    /// # Errors
    /// The first line that is neither form, or whose phonemes the accent does not have.
    pub fn parse(text: &str, accent: Accent) -> Result<Self, UserWordError> {
        let mut words = Self::default();
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                words.add(line, accent).map_err(|problem| UserWordError { line: i + 1, problem })?;
            }
        }
        Ok(words)
    }

    fn add(&mut self, line: &str, accent: Accent) -> Result<(), UserWordProblem> {
        let at = line.find([':', '=']).ok_or(UserWordProblem::Form)?;
        let (word, said) = (line[..at].trim(), line[at + 1..].trim());
        let word = word.replace(['’', '‘', 'ʼ'], "'");
        let is_word = word.chars().any(char::is_alphanumeric)
            && word.chars().count() <= MAX_WORD_CHARS
            && !word.contains(char::is_whitespace);
        if !is_word {
            return Err(UserWordProblem::Word(word));
        }
        let entry = if line[at..].starts_with('=') {
            let phonemes = said.trim_matches('/');
            check_phonemes(phonemes, accent)?;
            UserWord::Phonemes(phonemes.to_owned())
        } else {
            if said.chars().count() > MAX_PHONEMES {
                return Err(UserWordProblem::Long);
            }
            if !said.chars().any(char::is_alphanumeric) {
                return Err(UserWordProblem::Empty);
            }
            UserWord::SoundsLike(said.to_owned())
        };
        if self.words.len() >= MAX_WORDS && !self.words.contains_key(&word) {
            return Err(UserWordProblem::Count);
        }
        self.words.insert(word, entry);
        Ok(())
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The entry for a word as written, or for its lower-case form.
    pub(super) fn get(&self, word: &str) -> Option<&UserWord> {
        if self.words.is_empty() {
            return None;
        }
        self.words.get(word).or_else(|| self.words.get(&word.to_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> UserWordProblem {
        UserWords::parse(text, Accent::American).unwrap_err().problem
    }

    #[test]
    fn both_forms_are_read() {
        let words =
            UserWords::parse("# mine\n\nSiobhan: shiv awn\nxochitl = /sˈOʧil/\n", Accent::American).unwrap();
        assert_eq!(words.len(), 2);
        assert_eq!(words.get("Siobhan"), Some(&UserWord::SoundsLike("shiv awn".into())));
        assert_eq!(words.get("siobhan"), None);
        assert_eq!(words.get("XOCHITL"), Some(&UserWord::Phonemes("sˈOʧil".into())));
    }

    #[test]
    fn bad_lines_say_what_to_write() {
        assert_eq!(problem("hello"), UserWordProblem::Form);
        assert_eq!(problem("New York = nˈu"), UserWordProblem::Word("New York".into()));
        assert_eq!(problem("x = "), UserWordProblem::Empty);
        assert_eq!(problem("x = ˈ"), UserWordProblem::Stress);
        assert_eq!(problem("x = ˈnu"), UserWordProblem::Stress);
        assert_eq!(problem("x: ..."), UserWordProblem::Empty);
        assert_eq!(problem(&format!("x = {}", "t".repeat(201))), UserWordProblem::Long);
        let error = UserWords::parse("a: b\ncat = kˈat", Accent::American).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("line 2: 'a' is no phoneme of the American accent; use "), "{message}");
        assert!(UserWords::parse("cat = kˈat", Accent::British).is_ok());
    }
}
