//! Repartee's inference engine.
//!
//! A model is a few programs plus plain Rust: model code adds ops to a [`graph::Graph`], a backend
//! compiles the graph into a program. No model knows a backend and no backend knows a model.
//!
//! | module | what it holds |
//! |---|---|
//! | [`formats`] | readers of published weight files; every file is treated as hostile |
//! | [`text`] | tokenizers, chat templates, speakable text, clauses, phonemes |
//! | [`signal`] | windows, STFT, mel |
//! | [`graph`] | the op table, dimensions, the builder |
//! | [`mod@reference`] | the plain f32 meaning of each op |
//! | [`backends`] | implementations of the op table |
//! | [`blocks`] | pieces of graph that models share |
//! | [`models`] | Silero, Whisper, the Llama family |
//! | [`stages`] | what the pipeline calls, whichever model is behind |
//! | [`turn`] | the turn machine |
//! | [`latency`] | spans, per-turn records, reports |

pub mod backends;
pub mod blocks;
pub mod formats;
pub mod graph;
pub mod latency;
pub mod models;
pub mod reference;
pub mod signal;
pub mod stages;
pub mod text;
pub mod turn;
