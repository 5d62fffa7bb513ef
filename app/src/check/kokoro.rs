//! Kokoro against the same network in f64.

use anyhow::{Context, Result};
use repartee_engine::backends::Backend;
use repartee_engine::models::kokoro::{Kokoro, SpeakOptions, Trace};
use serde_json::Value;

use super::clips::{Arrays, whole};
use super::{Row, largest_difference};
use crate::commands::setup;

const MODEL: &str = "kokoro-82m";
/// Columns of what tokens mean for prosody, for sound, and of the source.
const WIDTHS: [usize; 3] = [640, 512, 22];

pub(super) fn check(backend: &dyn Backend) -> Result<Vec<Row>> {
    let reference: Value = serde_json::from_str(include_str!("../../../tests/references/kokoro.json"))?;
    let bytes = include_bytes!("../../../tests/references/kokoro.bin");
    let arrays = Arrays { index: &reference["bin"]["arrays"], bytes };
    let mut kokoro = setup::kokoro(backend)?;
    let cases = reference["cases"].as_object().context("the reference has no cases")?;
    let mut rows = Vec::new();
    for (name, case) in cases {
        rows.extend(one(name, case, &arrays, &mut kokoro)?);
    }
    Ok(rows)
}

fn one(name: &str, case: &Value, arrays: &Arrays<'_>, kokoro: &mut Kokoro) -> Result<Vec<Row>> {
    let row =
        |what: &str, measured: f64, limit: f64| Row::new(MODEL, format!("{name}: {what}"), measured, limit);
    let get = |key: &str| arrays.get(&format!("{name}/{key}"));
    let voice = setup::voice(case["voice"].as_str().context("a case without a voice")?)?;
    let options = SpeakOptions {
        speed: case["speed"].as_f64().unwrap_or(1.0) as f32,
        seed: case["seed"].as_u64().unwrap_or(0),
        ..SpeakOptions::default()
    };
    let tokens = kokoro.tokens(case["phonemes"].as_str().unwrap_or_default());
    let ids: Vec<i32> = whole(&case["ids"]).iter().map(|&i| i as i32).collect();
    let wrong = if tokens == ids { 0.0 } else { f64::INFINITY };
    let mut rows = vec![row("tokens that differ", wrong, 0.0)];

    let style = voice.style(ids.len());
    let audio = kokoro.speak(&ids, style, &options)?.to_vec();
    let trace = kokoro.trace().clone();
    let picked = |from: &[f32], cols: usize, rows: &[usize]| -> Vec<f32> {
        rows.iter().flat_map(|r| from.iter().skip(r * cols).take(cols)).copied().collect()
    };
    let at = whole(&case["rows"]);
    rows.push(row("durations, frames", largest_difference(&trace.durations, &get("duration")?), 1e-3));
    let same_frames = if trace.frames == whole(&case["frames"]) { 0.0 } else { f64::INFINITY };
    rows.push(row("frames that differ", same_frames, 0.0));
    let prosody = picked(&trace.prosody, WIDTHS[0], &at);
    rows.push(row("prosody of tokens", largest_difference(&prosody, &get("prosody")?), 1e-4));
    let sound = picked(&trace.sound, WIDTHS[1], &at);
    rows.push(row("sound of tokens", largest_difference(&sound, &get("sound")?), 1e-4));
    let (pitch, energy) = (get("pitch")?, get("energy")?);
    rows.push(row("pitch, Hz", largest_difference(&trace.pitch, &pitch), 0.01));
    rows.push(row("energy", largest_difference(&trace.energy, &energy), 1e-3));

    // The rest on the reference's pitch, so that what differs is the part's own.
    let given = Trace { pitch, energy, source: Vec::new(), ..trace };
    let alone = kokoro.replay(&given, style, &options)?.to_vec();
    let source = picked(&kokoro.trace().source, WIDTHS[2], &whole(&case["source_rows"]));
    rows.push(row("source", source_difference(&source, &get("source")?), 1e-5));
    let expected = get("audio")?;
    rows.push(row("decoder and generator, dB of noise", noise_db(&alone, &expected), -60.0));
    let single = case["float32"]["whole_db"].as_f64().unwrap_or(0.0);
    let note = format!("{:.2} s; onnxruntime in f32 {single}", audio.len() as f64 / 24_000.0);
    rows.push(row("whole, dB of noise", noise_db(&audio, &expected), -60.0).note(note));
    Ok(rows)
}

/// Largest distance of magnitudes, and of phases around the circle; those of the two real bins are 0 or pi.
fn source_difference(ours: &[f32], theirs: &[f32]) -> f64 {
    let wrapped = |rows: &[f32]| -> Vec<f32> {
        let one = |row: &[f32]| -> Vec<f32> {
            let (size, phase) = row.split_at(row.len() / 2);
            let real = [phase[0], phase[phase.len() - 1]];
            real.iter().chain(size).copied().chain(phase.iter().flat_map(|p| [p.cos(), p.sin()])).collect()
        };
        rows.chunks(WIDTHS[2]).flat_map(one).collect()
    };
    largest_difference(&wrapped(ours), &wrapped(theirs))
}

/// Energy of the difference over that of the expected signal, in dB; infinite when lengths differ.
fn noise_db(ours: &[f32], expected: &[f32]) -> f64 {
    if ours.len() != expected.len() {
        return f64::INFINITY;
    }
    let energy = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let off = energy(&mut ours.iter().zip(expected).map(|(a, b)| f64::from(a - b)));
    10.0 * (off / energy(&mut expected.iter().map(|&x| f64::from(x)))).log10()
}
