//! Whisper against CTranslate2 in f32.

use anyhow::Result;
use repartee_engine::backends::Backend;
use repartee_engine::models::whisper::{DecodeOptions, FULL_SAMPLES, Whisper};
use serde_json::Value;

use super::clips::{Arrays, clip, whole};
use super::{Row, largest_difference, words};
use crate::commands::setup;

pub(super) fn check(model: &str, backend: &dyn Backend) -> Result<Vec<Row>> {
    let (json, bytes): (&str, &[u8]) = match model {
        "whisper-base" => (
            include_str!("../../../tests/references/whisper-base.json"),
            include_bytes!("../../../tests/references/whisper-base.bin"),
        ),
        _ => (
            include_str!("../../../tests/references/whisper-tiny.en.json"),
            include_bytes!("../../../tests/references/whisper-tiny.en.bin"),
        ),
    };
    let reference: Value = serde_json::from_str(json)?;
    let arrays = Arrays { index: &reference["bin"]["arrays"], bytes };
    let fixed = whole(&reference["fixed_ids"]);
    let mut whisper = setup::whisper(model, backend)?;
    let (mels, width, vocabulary) = {
        let c = whisper.config();
        (c.mels, c.width, c.vocabulary)
    };
    let pick = |from: &[f32], columns: usize, rows: &[usize]| -> Vec<f32> {
        rows.iter().flat_map(|&r| from[r * columns..(r + 1) * columns].to_vec()).collect()
    };
    let mut rows = Vec::new();
    for name in ["two_cities_6s", "beckett", "capital", "egg", "zeros_3s"] {
        let samples = clip(name)?;
        for context in ["full", "short"] {
            let expected = &reference["clips"][name][context];
            let key = format!("{name}/{context}");
            let row =
                |what: &str, measured, limit| Row::new(model, format!("{key}: {what}"), measured, limit);

            let total = expected["samples"].as_u64().unwrap_or(0) as usize;
            let mel = whisper.log_mel(&samples, total);
            let mel_rows = pick(&mel, mels, &whole(&expected["mel_frames"]));
            // Two f32 transforms of the same signal differ by some 1e-5 near the floor.
            let off = largest_difference(&mel_rows, &arrays.get(&format!("mel/{key}"))?);
            rows.push(row("log-mel", off, 1e-4));

            let mut encoded = Vec::new();
            whisper.encode(&mel, Some(&mut encoded), None)?;
            let encoder_rows = pick(&encoded, width, &whole(&expected["encoder_rows"]));
            let truth = arrays.get(&format!("encoder/{key}"))?;
            // An absolute and a relative part. The network enlarges rounding where its numbers are large: half a
            // millionth of noise in the mel moves large values in CTranslate2 itself by up to 3.2e-3.
            let limits: Vec<f32> = truth.iter().map(|x| 1.0 + x.abs()).collect();
            let scaled = |v: &[f32]| v.iter().zip(&limits).map(|(x, l)| x / l).collect::<Vec<_>>();
            let same_size = encoder_rows.len() == truth.len();
            let off = if same_size {
                largest_difference(&scaled(&encoder_rows), &scaled(&truth))
            } else {
                f64::INFINITY
            };
            rows.push(row("encoder", off, 1e-3));

            let unsuppressed = &expected["unsuppressed"];
            let ids: Vec<u32> = whole(&unsuppressed["ids"]).iter().map(|&i| i as u32).collect();
            let steps = unsuppressed["top_ids"].as_array().map_or(0, Vec::len);
            let logits = whisper.forced_logits("en", &ids[..steps.saturating_sub(1).min(ids.len())])?;
            let mut picked = Vec::new();
            for step in logits.chunks_exact(vocabulary) {
                picked.extend(fixed.iter().map(|&i| step[i]));
            }
            let off = largest_difference(&picked, &arrays.get(&format!("logits_fixed/{key}"))?);
            // Logits are some tens: four digits of them.
            rows.push(row("decoder logits", off, 5e-3));

            let decoded = whisper.decode(&DecodeOptions::default(), None)?;
            let greedy = &expected["greedy"];
            let same = whole(&greedy["ids"]).iter().map(|&i| i as u32).eq(decoded.ids.iter().copied());
            let text = whisper.tokenizer().decode(&decoded.ids)?;
            rows.push(row("tokens", if same { 0.0 } else { 1.0 }, 0.0).note(text.trim().to_owned()));
            let numbers = [decoded.mean_logprob, decoded.no_speech];
            let truth =
                [&greedy["score"], &greedy["no_speech_prob"]].map(|v| v.as_f64().unwrap_or(f64::NAN) as f32);
            rows.push(row("score and no-speech", largest_difference(&numbers, &truth), 2e-3));
        }
    }
    rows.push(language(model, &reference["clips"]["capital"], &mut whisper)?);
    rows.extend(words::check(model, &reference["files"], whisper)?);
    Ok(rows)
}

/// The language of a spoken question, which the reference took from the full context.
fn language(model: &str, reference: &Value, whisper: &mut Whisper) -> Result<Row> {
    let mel = whisper.log_mel(&clip("capital")?, FULL_SAMPLES);
    whisper.encode(&mel, None, None)?;
    let found = whisper.languages()?;
    let expected = &reference["languages"][0];
    let (Some(token), Some(p)) = (expected[0].as_str(), expected[1].as_f64()) else {
        return Ok(Row::new(model, "English only: languages", found.len() as f64, 0.0));
    };
    let off = match found.first() {
        Some((code, ours)) if format!("<|{code}|>") == token => (f64::from(*ours) - p).abs(),
        _ => f64::INFINITY,
    };
    Ok(Row::new(model, "capital/full: language", off, 2e-3).note(token))
}
