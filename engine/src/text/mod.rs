//! Tokenizers, chat templates, speakable text, clauses and phonemes.

mod bpe;
pub mod chat;
pub mod clauses;
pub mod detokenize;
pub mod phonemes;
pub mod pretokenize;
pub mod speakable;
pub mod tokenizer;
mod tokenizer_gguf;
mod tokenizer_json;
mod vocabulary;
