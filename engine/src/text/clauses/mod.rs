//! Clauses: a reply is cut into pieces that can be spoken, while it is still being written.
//!
//! A language model hands over a token at a time, and the voice should start before the reply is
//! complete. [`ClauseSplitter`] takes fragments of any size and gives back each clause at the first
//! character that proves its end, which is usually the first letter of the next sentence.
//!
//! - **Sentences** end at `.`, `!`, `?`, `…` and their kin in other scripts. A full stop is only an end
//!   where what surrounds it says so: not in `3.14`, `v2.0.1`, `example.com`, `J. R. Hall`, `Dr. Lee` or
//!   `e.g. this`; but in `at 9 a.m. Then`. Abbreviations that can end a sentence wait for the next word.
//! - **The first clause** decides how long the user waits, so it may end at a comma, semicolon, colon or
//!   dash once it has [`SplitterConfig::first_min_words`] words; and before a word that begins a clause of
//!   its own ("because", "which", "and then") if after [`SplitterConfig::first_max_words`] there was neither.
//! - **Over-long sentences** are cut at the best comma or conjunction.
//! - **Markdown**: headings, list items and paragraphs end clauses; code fences, tables and displayed
//!   formulas become one clause each, given out at their start, and their bodies are swallowed.
//!
//! Every decision looks at characters only, never at how they were cut into fragments: the same text
//! gives the same clauses however it arrives. (Deciding at the end of a fragment would be a token
//! earlier at times, and wrong as soon as a tokenizer cuts `3.` from `14`.)
//!
//! ```
//! use repartee_engine::text::clauses::{ClauseEnd, ClauseSplitter};
//!
//! let mut splitter = ClauseSplitter::default();
//! let mut clauses = Vec::new();
//! for token in ["It cost", " $3.", "14 at", " 9 a.", "m. Then", " we left", "."] {
//!     clauses.extend(splitter.push(token));
//! }
//! clauses.extend(splitter.flush());
//! let texts: Vec<&str> = clauses.iter().map(|c| c.text.as_str()).collect();
//! assert_eq!(texts, ["It cost $3.14 at 9 a.m.", "Then we left."]);
//! assert_eq!(clauses[0].end, ClauseEnd::Sentence);
//! assert_eq!(clauses[1].chars, 24..37);
//! ```

mod abbreviations;
mod conjunctions;
pub(in crate::text) mod lines;
mod spans;
mod splitter;
mod stops;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use splitter::ClauseSplitter;

/// How eagerly a [`ClauseSplitter`] cuts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitterConfig {
    /// Words after which the reply's first clause may end at a comma, semicolon, colon or dash.
    /// Clauses stay this eager until so many words were handed out ("Sure!" alone buys little time).
    /// `usize::MAX` turns it off.
    pub first_min_words: usize,
    /// Words after which the reply's first clause, if it has no such mark and its sentence goes on, ends
    /// before the last conjunction. `usize::MAX` turns it off.
    pub first_max_words: usize,
    /// Characters after which a sentence is cut at its best comma or conjunction (at least 40).
    pub max_chars: usize,
}

impl Default for SplitterConfig {
    fn default() -> Self {
        // Four words are about 1.3 s of speech: time enough to make the next clause. 220 characters
        // are about 15 s of speech and 240 phonemes, less than half of what Kokoro takes at once.
        // Sentences of ten words are spoken whole: a listener hears them as one breath.
        Self { first_min_words: 4, first_max_words: 10, max_chars: 220 }
    }
}

/// What a clause is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClauseKind {
    /// Prose, with its inline markdown.
    Text,
    /// A fenced code block: its opening line and the first line of its body. The rest is swallowed.
    Code,
    /// A table: its first row. The rest is swallowed.
    Table,
    /// A displayed formula with its delimiters (`$$…$$` or `\[…\]`).
    Math,
}

/// How a clause ends, for the pause after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClauseEnd {
    /// Inside a sentence: at a comma, at a conjunction, or where a flush cut it.
    Phrase,
    /// At the end of a sentence, heading, list item or line.
    Sentence,
    /// At the end of a paragraph.
    Paragraph,
}

/// A piece of a reply that can be spoken by itself.
///
/// A clause of kind [`ClauseKind::Text`] has a letter or a digit in it, always; the others too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// The text as it stands in the reply, without white space around it.
    pub text: String,
    /// Where [`text`](Self::text) stands in the reply, in characters (Unicode scalar values).
    pub chars: Range<usize>,
    /// The same range in UTF-8 bytes, to slice the reply with.
    pub bytes: Range<usize>,
    /// What the clause is made of.
    pub kind: ClauseKind,
    /// How it ends.
    pub end: ClauseEnd,
    /// Whether it stands at the start of a line, where `#`, `-` and `1.` are markdown.
    pub starts_line: bool,
}
