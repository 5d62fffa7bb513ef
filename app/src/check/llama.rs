//! Language models against llama.cpp: with f32 weights as the truth, and with the quantised file as the measure of
//! how far off a good engine is.

use anyhow::{Context, Result};
use repartee_engine::backends::Backend;
use repartee_engine::models::llama::Llama;
use repartee_engine::text::chat::{ChatOptions, Message, Role};
use repartee_engine::text::tokenizer::Special;
use serde_json::Value;

use super::Row;
use super::clips::{Arrays, floats, whole};
use crate::commands::setup;

fn ids(value: &Value) -> Vec<u32> {
    whole(value).iter().map(|&i| i as u32).collect()
}

pub(super) fn check(model: &str, backend: &dyn Backend) -> Result<Vec<Row>> {
    let (json, bytes): (&str, &[u8]) = match model {
        "qwen2.5-coder-0.5b" => (
            include_str!("../../../tests/references/qwen2.5-coder-0.5b.json"),
            include_bytes!("../../../tests/references/qwen2.5-coder-0.5b.bin"),
        ),
        _ => (
            include_str!("../../../tests/references/smollm2-135m.json"),
            include_bytes!("../../../tests/references/smollm2-135m.bin"),
        ),
    };
    let reference: Value = serde_json::from_str(json)?;
    let arrays = Arrays { index: &reference["bin"]["arrays"], bytes };
    let mut llama = setup::llama(model, backend, 1024)?;
    let mut rows = vec![tokens(model, &reference, &llama), templates(model, &reference, &llama)?];
    rows.extend(forced(model, &reference, &arrays, &mut llama)?);
    rows.extend(replies(model, &reference, &mut llama)?);
    Ok(rows)
}

fn tokens(model: &str, reference: &Value, llama: &Llama) -> Row {
    let cases = reference["tokenizer"].as_array().map_or(&[][..], Vec::as_slice);
    let mut wrong = Vec::new();
    for case in cases {
        let text = case["text"].as_str().unwrap_or_default();
        let plain = llama.tokenizer().encode(text, Special::AsText);
        let special = llama.tokenizer().encode(text, Special::Parse);
        // llama.cpp makes a control token of Qwen's ordinary `</s>`, by its name; here it stays text.
        let renamed = text.contains("</s>") && model.starts_with("qwen");
        if plain != ids(&case["plain"]) || (special != ids(&case["special"]) && !renamed) {
            wrong.push(format!("{text:?}"));
        }
    }
    let note = format!("{} strings {}", cases.len(), wrong.join(" "));
    let misses = if cases.len() < 50 { f64::INFINITY } else { wrong.len() as f64 };
    Row::new(model, "tokenizer: strings that differ", misses, 0.0).note(note)
}

fn templates(model: &str, reference: &Value, llama: &Llama) -> Result<Row> {
    let template = llama.template().context("the file has no chat template")?;
    let cases = reference["chat"].as_object().context("the reference has no conversations")?;
    let mut wrong = Vec::new();
    for (name, case) in cases {
        let messages: Vec<Message> = case["messages"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|m| {
                let role = match m["role"].as_str() {
                    Some("system") => Role::System,
                    Some("assistant") => Role::Assistant,
                    _ => Role::User,
                };
                Message::new(role, m["content"].as_str().unwrap_or_default())
            })
            .collect();
        let options = ChatOptions::default();
        let text = template.render(&messages, &options)?;
        let encoded = template.encode(llama.tokenizer(), &messages, &options)?;
        if Some(text.as_str()) != case["prompt"].as_str() || encoded != ids(&case["plain_content_ids"]) {
            wrong.push(name.as_str());
        }
    }
    let note = format!("{} conversations {}", cases.len(), wrong.join(" "));
    Ok(Row::new(model, "chat template: conversations that differ", wrong.len() as f64, 0.0).note(note))
}

/// Index of the largest logit.
pub(super) fn best(logits: &[f32]) -> usize {
    logits.iter().enumerate().fold((0, f32::NEG_INFINITY), |b, (i, &x)| if x > b.1 { (i, x) } else { b }).0
}

/// 50 prompts, the last four positions of each: distance of the logits, and the choice where it is not a near-tie.
fn forced(model: &str, reference: &Value, arrays: &Arrays<'_>, llama: &mut Llama) -> Result<Vec<Row>> {
    let fixed = whole(&reference["fixed_ids"]);
    let forced = &reference["f32"]["forced"];
    let margins = floats(&forced["margin"]);
    let (top, at_fixed) = (arrays.get("f32/logits_top")?, arrays.get("f32/logits_fixed")?);
    let theirs = reference["f32"]["quantised_llama_cpp"]["total"]["rms"].as_f64().unwrap_or(0.0);
    let tolerance = (4.0 * theirs) as f32;
    let prompts = reference["prompts"].as_array().context("the reference has no prompts")?;
    let last = reference["last_positions"].as_u64().unwrap_or(4) as usize;
    let (mut squares, mut count, mut position) = (0.0, 0, 0);
    let (mut sure, mut wrong, mut same) = (0, 0_u32, 0);
    let mut logits = Vec::new();
    for prompt in prompts {
        let tokens = ids(&prompt["ids"]);
        for end in tokens.len() + 1 - last..=tokens.len() {
            llama.logits(&tokens[..end], &mut logits)?;
            let top_ids = whole(&forced["top_ids"][position]);
            let truth = top_ids.iter().copied().zip(&top[position * top_ids.len()..]);
            let truth = truth.chain(fixed.iter().copied().zip(&at_fixed[position * fixed.len()..]));
            for (id, &expected) in truth {
                squares += f64::from(logits[id] - expected).powi(2);
                count += 1;
            }
            let agrees = best(&logits) == top_ids[0];
            same += usize::from(agrees);
            if margins[position] > tolerance {
                sure += 1;
                wrong += u32::from(!agrees);
            }
            position += 1;
        }
    }
    let rms = (squares / f64::from(count)).sqrt();
    let their_same = reference["f32"]["quantised_llama_cpp"]["same_best"].as_u64().unwrap_or(0);
    let note = format!("root mean square; llama.cpp {theirs:.4}");
    let choices = format!(
        "{sure} positions with a margin above {tolerance:.2}; {same} of {position} agree in all, llama.cpp {their_same}"
    );
    Ok(vec![
        Row::new(model, "logits against f32 weights", rms, 1.5 * theirs).note(note),
        Row::new(model, "choices that differ", f64::from(wrong), 0.0).note(choices),
    ])
}

/// Greedy replies to the end, token by token behind the reference's own text.
fn replies(model: &str, reference: &Value, llama: &mut Llama) -> Result<Vec<Row>> {
    let theirs = reference["f32"]["quantised_llama_cpp"]["total"]["rms"].as_f64().unwrap_or(0.0);
    let tolerance = (4.0 * theirs) as f32;
    let replies = reference["f32"]["replies"].as_object().context("the reference has no replies")?;
    let mut rows = Vec::new();
    let mut logits = Vec::new();
    for (name, reply) in replies {
        let mut tokens = ids(&reply["prompt_ids"]);
        let expected = ids(&reply["ids"]);
        let margins = floats(&reply["margins"]);
        let (mut wrong, mut near_ties) = (0_u32, 0);
        for (&token, &margin) in expected.iter().zip(&margins) {
            llama.logits(&tokens, &mut logits)?;
            if best(&logits) != token as usize {
                if margin > tolerance {
                    wrong += 1;
                } else {
                    near_ties += 1;
                }
            }
            tokens.push(token);
        }
        let text = reply["text"].as_str().unwrap_or_default();
        let note = format!("{} tokens, {near_ties} other choices at near-ties: {text}", expected.len());
        rows.push(
            Row::new(model, format!("reply {name}: tokens that differ"), f64::from(wrong), 0.0).note(note),
        );
    }
    Ok(rows)
}
