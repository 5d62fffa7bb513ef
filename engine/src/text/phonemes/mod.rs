//! English text to phonemes, without espeak-ng.
//!
//! A word is looked up in misaki's lexicon (hand-checked "gold" before "silver"); what it lacks is taken apart by
//! rule (possessives, endings, prefixes, compounds), spelled out (initialisms, digits), or read by a small
//! letter-to-sound model trained from the same lexicon. The user's own words come before all of these. Words with
//! several readings are decided by the words around them, and weak words ("the", "to", "that") by the next sound.
//!
//! ```text
//! text ─ tokens ─▶ words and marks ─ tagger ─▶ uses ─ words, right to left ─▶ phonemes
//!                                                      │ user · lexicon · inflect · letters
//! ```
//!
//! The output is misaki's alphabet; [`Phonemes::to_kokoro_string`] writes the two letters that Kokoro v1.0 knows by
//! another name. Numbers, dates and symbols should have become words before (speakable text); digits that are left
//! are read one by one.
//!
//! ```
//! use repartee_engine::text::phonemes::{Accent, Lexicon, Phonemizer};
//!
//! let gold = r#"{"hello": "həlˈO", "world": "wˈɜɹld"}"#;
//! let lexicon = Lexicon::from_json(Accent::American, gold.as_bytes(), b"{}")?;
//! let phonemizer = Phonemizer::new(lexicon)?;
//! assert_eq!(phonemizer.phonemize("Hello, worlds!").to_kokoro_string(), "həlˈO, wˈɜɹldz!");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alphabet;
mod classes;
mod homographs;
mod inflect;
mod letters;
mod lexicon;
mod tagger;
mod tokens;
mod user;
mod words;

use std::ops::Range;

pub use alphabet::{Accent, kokoro_letter};
pub use letters::{LetterModel, LetterModelError};
pub use lexicon::{Entry, Lexicon, LexiconError, Tag};
pub use user::{UserWordError, UserWordProblem, UserWords, check_phonemes};

pub(in crate::text) use tokens::digit;

use alphabet::{is_consonant, is_vowel};
use classes::Classes;
use tagger::{Break, View, Word};
use tokens::{Kind, Piece};
use words::{Sound, Use, Words};

/// Where a token's phonemes are from, most trusted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The user's own words.
    User,
    /// The hand-checked lexicon.
    Gold,
    /// The unchecked lexicon.
    Silver,
    /// Known parts put together by rule.
    Rule,
    /// Letters or digits by their names.
    Spelled,
    /// The letter-to-sound model's guess.
    LetterToSound,
    /// A punctuation mark.
    Mark,
    /// A word in another script: no phonemes.
    Skipped,
}

impl Source {
    fn trust(self) -> u8 {
        self as u8
    }
}

/// A word or mark with its phonemes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhonemeToken {
    /// Bytes of the text.
    pub text: Range<usize>,
    /// In misaki's alphabet; empty for skipped words.
    pub phonemes: String,
    /// Where they are from.
    pub source: Source,
    /// Whether a space follows in speech.
    pub space_after: bool,
}

/// A text's phonemes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phonemes {
    /// In text order.
    pub tokens: Vec<PhonemeToken>,
}

impl Phonemes {
    /// One string with Kokoro's letters, one model token a character, no white space at the ends.
    pub fn to_kokoro_string(&self) -> String {
        self.to_misaki_string().chars().map(kokoro_letter).collect()
    }

    /// One string in misaki's alphabet.
    pub fn to_misaki_string(&self) -> String {
        let mut out = String::new();
        for token in &self.tokens {
            out += &token.phonemes;
            if token.space_after && !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
        }
        out.truncate(out.trim_end().len());
        out
    }
}

/// What is heard after a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Pause,
    Vowel,
    Consonant,
}

/// One accent's text to phonemes.
#[derive(Debug)]
pub struct Phonemizer {
    lexicon: Lexicon,
    letters: LetterModel,
    user: UserWords,
}

impl Phonemizer {
    /// A phonemizer over a lexicon, with the built-in letter-to-sound model.
    ///
    /// # Errors
    /// Only if the built-in model is damaged.
    pub fn new(lexicon: Lexicon) -> Result<Self, LetterModelError> {
        Ok(Self { lexicon, letters: LetterModel::built_in()?, user: UserWords::default() })
    }

    /// Replaces the user's own words; they must have been read for this phonemizer's accent.
    pub fn set_user_words(&mut self, words: UserWords) {
        self.user = words;
    }

    /// The accent that is spoken.
    pub fn accent(&self) -> Accent {
        self.lexicon.accent()
    }

    /// The phonemes of a text. Never fails: unknown words are guessed, other scripts skipped.
    pub fn phonemize(&self, text: &str) -> Phonemes {
        self.speak(text, &self.user)
    }

    fn speak(&self, text: &str, user: &UserWords) -> Phonemes {
        let pieces = tokens::split(text);
        let sentence = Sentence::new(&pieces);
        let words = Words { lexicon: &self.lexicon, letters: &self.letters, user };
        let mut next = Next::Pause;
        let mut tokens: Vec<PhonemeToken> = Vec::with_capacity(pieces.len());
        // From the end, since a weak word's sound hangs on the sound after it.
        for (i, piece) in pieces.iter().enumerate().rev() {
            let Sound { phonemes, source } = match (&piece.kind, sentence.place[i]) {
                (Kind::Mark(mark), _) => Sound { phonemes: mark.to_string(), source: Source::Mark },
                (Kind::Word(word), Some(at)) => {
                    let view = View { words: &sentence.words, at };
                    self.word(word, view, sentence.shouted, next, &words)
                }
                _ => Sound { phonemes: String::new(), source: Source::Skipped },
            };
            next = after(&phonemes, next);
            let space_after = piece.space_after;
            tokens.push(PhonemeToken { text: piece.range.clone(), phonemes, source, space_after });
        }
        tokens.reverse();
        Phonemes { tokens }
    }

    fn word(&self, spelling: &str, view: View, shouted: bool, next: Next, words: &Words) -> Sound {
        match words.user.get(spelling) {
            Some(user::UserWord::Phonemes(p)) => return Sound { phonemes: p.clone(), source: Source::User },
            Some(user::UserWord::SoundsLike(like)) => {
                // Without the user's words, so that "a: a" can't go round in circles.
                let phonemes = self.speak(like, &UserWords::default()).to_misaki_string();
                return Sound { phonemes, source: Source::User };
            }
            None => {}
        }
        if let Some((stem, ending)) = spelling.rsplit_once('\'') {
            // The possessive of a user's word.
            if words.user.get(stem).is_some() && ending.eq_ignore_ascii_case("s") {
                let stem = self.word(stem, view, shouted, next, words);
                return Sound { phonemes: inflect::s(&stem.phonemes, self.accent()), source: Source::User };
            }
        }
        if let Some(phonemes) = self.weak(spelling, view, next) {
            return Sound { phonemes, source: Source::Gold };
        }
        let mut asked = Use { tag: Tag::Default, shouted, lower: false };
        if spelling.starts_with(char::is_uppercase) {
            asked.lower = homographs::prefers_lower(view);
        }
        let shouting_name = spelling.len() > 1 && spelling.chars().all(char::is_uppercase) && !shouted;
        if !shouting_name && let Some(phonemes) = homographs::second_meaning(view, self.accent()) {
            return Sound { phonemes, source: Source::Gold };
        }
        let lower = spelling.to_lowercase();
        if let Some(entry) = self.lexicon.get(&lower).filter(Entry::is_homograph) {
            asked.tag = if next == Next::Pause && entry.has(Tag::Final) {
                Tag::Final
            } else if entry.has(Tag::Determiner) {
                if homographs::that_points(view) { Tag::Determiner } else { Tag::Default }
            } else {
                tagger::tag(view, &entry)
            };
        }
        words.say(spelling, asked)
    }

    /// Words whose sound hangs on what is heard next.
    fn weak(&self, spelling: &str, view: View, next: Next) -> Option<String> {
        let british = self.accent() == Accent::British;
        let lower = spelling.to_lowercase();
        let shouted = spelling.chars().count() > 1 && spelling.chars().all(char::is_uppercase);
        let phonemes = match lower.as_str() {
            "the" => match next {
                Next::Vowel => "ði",
                _ => "ðə",
            },
            "a" if article(spelling, view) => "ɐ",
            "a" => "ˈA",
            "an" if !shouted => "ɐn",
            "i" if spelling == "I" => "ˌI",
            "to" => match (next, british) {
                (Next::Consonant, _) => "tə",
                (Next::Vowel, _) => "tʊ",
                (Next::Pause, false) => "tu",
                (Next::Pause, true) => "tuː",
            },
            "am" if next != Next::Pause && spelling == "am" => "ɐm",
            // "come in.", "in and out": no noun follows.
            "in" if next == Next::Pause || view.right_is(&["and", "or", "but"]) => "ˈɪn",
            "in" if !shouted => "ɪn",
            "used" => match (homographs::used_is_habit(view), british) {
                (true, false) => "jˈust",
                (true, true) => "jˈuːst",
                (false, false) => "jˈuzd",
                (false, true) => "jˈuːzd",
            },
            "vs" | "vs." => match british {
                false => "vˈɜɹsəs",
                true => "vˈɜːsəs",
            },
            _ => return None,
        };
        Some(phonemes.to_owned())
    }
}

/// Whether "a" is the article and not the letter's name.
fn article(spelling: &str, view: View) -> bool {
    if view.right().is_none() {
        return false;
    }
    if view.left_is(&[
        "letter",
        "vitamin",
        "grade",
        "plan",
        "option",
        "hepatitis",
        "group",
        "type",
        "section",
        "an",
        "class",
    ]) {
        return spelling == "a" && !view.left_is(&["letter", "vitamin", "an"]);
    }
    let begins = view.left().is_none();
    let title = view.right().is_some_and(|w| w.text.starts_with(char::is_uppercase));
    spelling == "a" || begins || title
}

/// The sound that the words before will meet.
fn after(phonemes: &str, next: Next) -> Next {
    for c in phonemes.chars() {
        if is_vowel(c) {
            return Next::Vowel;
        }
        if is_consonant(c) {
            return Next::Consonant;
        }
        if ";:,.!?—…".contains(c) {
            return Next::Pause;
        }
    }
    next
}

/// The words of a text with what parts them.
struct Sentence {
    words: Vec<Word>,
    /// For each piece that is a word, its place in `words`.
    place: Vec<Option<usize>>,
    /// Whether small letters are missing altogether.
    shouted: bool,
}

impl Sentence {
    fn new(pieces: &[Piece]) -> Self {
        let mut words: Vec<Word> = Vec::new();
        let mut place = vec![None; pieces.len()];
        let mut gap = Break::Sentence;
        for (i, piece) in pieces.iter().enumerate() {
            match &piece.kind {
                Kind::Word(text) => {
                    if let Some(last) = words.last_mut() {
                        last.after = gap;
                    }
                    let mut word = Word::new(text);
                    word.before = gap;
                    place[i] = Some(words.len());
                    words.push(word);
                    gap = Break::None;
                }
                Kind::Mark('.' | '!' | '?') => gap = Break::Sentence,
                Kind::Mark(',') => gap = gap.max(Break::Comma),
                Kind::Mark(_) => gap = gap.max(Break::Clause),
                Kind::Skipped => {}
            }
        }
        let is_large = |w: &&Word| w.text.chars().filter(|c| c.is_alphabetic()).count() > 1;
        let large = words.iter().filter(is_large);
        let upper = large.clone().filter(|w| !w.text.chars().any(char::is_lowercase)).count();
        // Two initialisms are no shout; a sentence without one small word is.
        let shouted =
            upper >= 3 && upper == large.count() && words.iter().any(|w| w.classes != Classes::default());
        Self { words, place, shouted }
    }
}

#[cfg(test)]
mod tests;
