//! Language models against llama.cpp with f32 weights.

use std::sync::Arc;

use anyhow::Result;
use repartee_engine::backends::Backend;
use repartee_engine::formats::gguf::Gguf;
use repartee_engine::models::llama::{Llama, LlamaOptions};

use super::Row;

/// The file of a language model in the cache.
pub(crate) fn load(model: &str, backend: &dyn Backend, context: usize) -> Result<Llama> {
    let file = match model {
        "qwen2.5-coder-0.5b" => "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        _ => "SmolLM2-135M-Instruct.Q4_1.gguf",
    };
    let path = repartee_models::resolve(model, file)?;
    Ok(Llama::load(&Arc::new(Gguf::open(path)?), backend, LlamaOptions { context })?)
}

pub(super) fn check(model: &str, backend: &dyn Backend) -> Result<Vec<Row>> {
    use repartee_engine::models::llama::Sampling;
    use repartee_engine::text::chat::{ChatOptions, Message, Role};
    let mut llama = load(model, backend, 1024)?;
    let messages = [
        Message::new(
            Role::System,
            "You are a friendly voice assistant. Answer in one or two short spoken sentences.",
        ),
        Message::new(Role::User, "What is the capital of France?"),
    ];
    let ids = llama.template().unwrap().encode(llama.tokenizer(), &messages, &ChatOptions::default())?;
    let stops = llama.tokenizer().end_of_generation().to_vec();
    let t = std::time::Instant::now();
    let mut out = vec![llama.begin(&ids, &Sampling::default(), &stops, None)?];
    let prefill = t.elapsed();
    let t = std::time::Instant::now();
    while out.len() < 64 {
        match llama.next(None)? {
            Some(id) => out.push(id),
            None => break,
        }
    }
    let note = format!(
        "{} | {} prompt tokens {prefill:?}, {} steps {:?}",
        llama.tokenizer().decode(&out)?,
        ids.len(),
        out.len(),
        t.elapsed()
    );
    Ok(vec![Row::new(model, "reply", 0.0, 0.0).note(note)])
}
