//! English text to phonemes.
mod alphabet;
mod letters;
mod lexicon;
pub use alphabet::{Accent, kokoro_letter};
pub use letters::{LetterModel, LetterModelError};
pub use lexicon::{Entry, Lexicon, LexiconError, Tag};
