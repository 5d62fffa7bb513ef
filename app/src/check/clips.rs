//! The clips that references were made from, sample by sample as `tests/references/README.md` says.

use anyhow::{Context, Result};
use serde_json::Value;

/// Samples at 16 kHz, mono.
pub(super) fn clip(name: &str) -> Result<Vec<f32>> {
    let cut = |samples: Vec<f32>, n: usize| samples[..n.min(samples.len())].to_vec();
    match name {
        "capital" => decode(include_bytes!("../../../assets/questions/capital.wav")),
        "egg" => decode(include_bytes!("../../../assets/questions/egg.wav")),
        "beckett" => decode(&speech("beckett.wav")?),
        "two_cities_6s" => Ok(cut(clip("two_cities")?, 96_000)),
        "two_cities" => {
            let at_48k = decode(&speech("two_cities.wav")?)?;
            // Sums of three 16-bit samples are exact in f32.
            let third = |s: &[f32]| (s[0] + s[1] + s[2]) / 3.0;
            Ok(at_48k.chunks_exact(3).map(third).collect())
        }
        "zeros" => Ok(vec![0.0; 16_384]),
        "zeros_3s" => Ok(vec![0.0; 48_000]),
        other => anyhow::bail!("there is no clip {other}"),
    }
}

fn speech(file: &str) -> Result<Vec<u8>> {
    let path = repartee_models::resolve("test-speech", file)?;
    std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}

fn decode(bytes: &[u8]) -> Result<Vec<f32>> {
    Ok(repartee_audio::wav::decode(bytes)?.samples)
}

/// A list of numbers in a reference.
pub(super) fn floats(value: &Value) -> Vec<f32> {
    value.as_array().into_iter().flatten().filter_map(Value::as_f64).map(|x| x as f32).collect()
}

/// A list of whole numbers in a reference.
pub(super) fn whole(value: &Value) -> Vec<usize> {
    value.as_array().into_iter().flatten().filter_map(Value::as_u64).map(|x| x as usize).collect()
}

/// Arrays of floats that a reference keeps in a file beside it.
pub(super) struct Arrays<'a> {
    pub(super) index: &'a Value,
    pub(super) bytes: &'a [u8],
}

impl Arrays<'_> {
    /// The array called `key`.
    pub(super) fn get(&self, key: &str) -> Result<Vec<f32>> {
        let entry = &self.index[key];
        let count: usize = whole(&entry["shape"]).iter().product();
        let start = entry["offset"].as_u64().with_context(|| format!("the reference lacks {key}"))? as usize;
        let bytes = self.bytes.get(4 * start..4 * (start + count));
        let bytes = bytes.with_context(|| format!("the reference's numbers end before {key}"))?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
    }
}
