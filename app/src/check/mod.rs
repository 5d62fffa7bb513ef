//! `repartee check`: every model against numbers that another engine computed from the same weights.
//!
//! The references are made by the scripts in `tests/references/`, which also say how each engine was run. Weights
//! are the verified files of the cache, so a row that misses its limit means that this engine is wrong. A file of one's own has no
//! reference: there another backend is compared with the processor.

mod beside;
mod clips;
mod kokoro;
mod llama;
mod silero;
mod whisper;
mod words;

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use repartee_engine::backends::Backend;

/// One comparison.
pub(crate) struct Row {
    model: String,
    what: String,
    /// How far off, in the unit that `what` names.
    measured: f64,
    limit: f64,
    note: String,
}

impl Row {
    fn new(model: &str, what: impl Into<String>, measured: f64, limit: f64) -> Self {
        Self { model: model.into(), what: what.into(), measured, limit, note: String::new() }
    }

    fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Written so that NaN is a miss.
    pub(crate) fn passes(&self) -> bool {
        self.measured <= self.limit
    }
}

/// Names of the models that have references.
pub(crate) const MODELS: [&str; 6] =
    ["silero-vad-v6", "whisper-base", "whisper-tiny.en", "qwen2.5-coder-0.5b", "smollm2-135m", "kokoro-82m"];

/// Compares one model.
pub(crate) fn check(model: &str, backend: &dyn Backend) -> Result<Vec<Row>> {
    match model {
        "silero-vad-v6" => silero::check(backend),
        "whisper-base" | "whisper-tiny.en" => whisper::check(model, backend),
        "qwen2.5-coder-0.5b" | "smollm2-135m" => llama::check(model, backend),
        "kokoro-82m" => kokoro::check(backend),
        other => anyhow::bail!("there is no reference for {other}; known: {}", MODELS.join(", ")),
    }
}

/// Compares what `backend` makes of a language model in a file with what the processor does.
pub(crate) fn check_file(path: &Path, backend: &dyn Backend) -> Result<Vec<Row>> {
    beside::check(path, backend)
}

/// The rows as an aligned table.
pub(crate) fn table(rows: &[Row]) -> String {
    let width = |f: fn(&Row) -> usize| rows.iter().map(f).max().unwrap_or(0);
    let (model, what) = (width(|r| r.model.len()), width(|r| r.what.len()));
    let mut out = String::new();
    for row in rows {
        let verdict = if row.passes() { "ok  " } else { "MISS" };
        let _ = writeln!(
            out,
            "{verdict}  {:model$}  {:what$}  {:>10.3e} of {:>9.1e}  {}",
            row.model, row.what, row.measured, row.limit, row.note
        );
    }
    out
}

/// Largest distance between two lists; infinite when their lengths differ.
fn largest_difference(a: &[f32], b: &[f32]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    // A distance that is not a number must not vanish in a maximum.
    a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs())).fold(0.0, |m, d| if d <= m { m } else { d })
}
