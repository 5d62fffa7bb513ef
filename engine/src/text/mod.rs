//! Tokenizers, chat templates, speakable text, clauses and phonemes.
