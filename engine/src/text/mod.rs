//! Tokenizers, chat templates, speakable text, clauses and phonemes.
pub mod clauses;
