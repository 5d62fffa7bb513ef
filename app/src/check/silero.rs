//! Silero VAD against onnxruntime.

use anyhow::Result;
use repartee_engine::backends::Backend;
use repartee_engine::models::silero::CHUNK_SAMPLES;
use serde_json::Value;

use super::clips::{clip, floats};
use super::{Row, largest_difference};
use crate::commands::setup;

const MODEL: &str = "silero-vad-v6";
/// Probabilities: what a threshold of 0.5 does not feel.
const LIMIT: f64 = 1e-3;

pub(super) fn check(backend: &dyn Backend) -> Result<Vec<Row>> {
    let reference: Value = serde_json::from_str(include_str!("../../../tests/references/silero.json"))?;
    let reference = &reference["silero_vad_16k.safetensors"];
    let mut vad = setup::silero(backend)?;
    let mut rows = Vec::new();
    for name in ["two_cities", "beckett", "capital", "egg", "zeros"] {
        vad.reset();
        let samples = clip(name)?;
        let mut scores = Vec::new();
        for chunk in samples.as_chunks::<CHUNK_SAMPLES>().0 {
            scores.push(vad.chunk(chunk)?);
        }
        let off = largest_difference(&scores, &floats(&reference[name]["probs"]));
        rows.push(Row::new(MODEL, format!("{name}: probability"), off, LIMIT));
        if name == "two_cities" {
            // The reference without the 64 samples in front must be out of reach, or this check sees nothing.
            let wrong = largest_difference(&scores, &floats(&reference[name]["no_context"]));
            let note = format!("distance to scores without context: {wrong:.2}");
            rows.push(Row::new(MODEL, "context matters", 0.1 / wrong, 1.0).note(note));
        }
    }
    Ok(rows)
}
