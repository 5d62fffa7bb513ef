//! Qwen3 on a small file in its published layout, against llama.cpp in float32 (`tests/references/qwen3.py`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use repartee_engine::backends::cpu::{Cpu, CpuOptions};
use repartee_engine::formats::gguf::Gguf;
use repartee_engine::models::llama::{Llama, LlamaOptions, Sampling};
use repartee_engine::text::chat::{ChatOptions, Message, Role};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Keys and values are kept in f16 here and in f32 there: eleven bits of mantissa, summed over some tens of products.
const LIMIT: f32 = 2e-2;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("references")
}

fn hash(path: &Path) -> String {
    let digest = Sha256::digest(std::fs::read(path).expect("a file of the references"));
    digest.iter().map(|b| format!("{b:02x}")).collect()
}

fn reference() -> Value {
    let text = std::fs::read_to_string(folder().join("qwen3-small.json")).expect("the reference");
    let json: Value = serde_json::from_str(&text).expect("valid JSON");
    let renew = json["stamp"]["renew"].as_str().expect("a command");
    let script = hash(&folder().join("qwen3.py"));
    assert_eq!(json["stamp"]["scripts"]["qwen3.py"], script.as_str(), "stale; run `{renew}`");
    let file = hash(&folder().join("qwen3-small.gguf"));
    assert_eq!(json["sha256"], file.as_str(), "stale; run `{renew}`");
    json
}

fn model() -> Llama {
    let file = Gguf::open(folder().join("qwen3-small.gguf")).expect("a GGUF file");
    Llama::load(&Arc::new(file), &Cpu::new(CpuOptions::default()), LlamaOptions::default()).expect("a model")
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().into_iter().flatten().filter_map(Value::as_u64).map(|id| id as u32).collect()
}

#[test]
fn prompts_do_not_think_aloud() {
    let (reference, llama) = (reference(), model());
    let messages: Vec<Message> = (reference["messages"].as_array().expect("messages").iter())
        .map(|m| {
            let role = match m["role"].as_str() {
                Some("system") => Role::System,
                Some("assistant") => Role::Assistant,
                _ => Role::User,
            };
            Message::new(role, m["content"].as_str().expect("a text"))
        })
        .collect();
    let template = llama.template().expect("a template");
    let options = ChatOptions::default().with("enable_thinking", false);
    assert_eq!(
        template.render(&messages, &options).expect("a prompt"),
        reference["prompt"].as_str().expect("a text")
    );
    let encoded = template.encode(llama.tokenizer(), &messages, &options).expect("ids");
    assert_eq!(encoded, ids(&reference["ids"]));
}

#[test]
fn logits_equal_the_reference() {
    let (reference, mut llama) = (reference(), model());
    let tokens = ids(&reference["ids"]);
    let positions = reference["positions"].as_object().expect("positions");
    assert!(positions.len() >= 5);
    let mut logits = Vec::new();
    for (position, expected) in positions {
        let end = position.parse::<usize>().expect("a number") + 1;
        llama.logits(&tokens[..end], &mut logits).expect("logits");
        let expected = expected.as_array().expect("numbers");
        assert_eq!(logits.len(), expected.len());
        for (id, (got, want)) in logits.iter().zip(expected).enumerate() {
            let want = want.as_f64().expect("a number") as f32;
            assert!((got - want).abs() <= LIMIT, "position {position}, token {id}: {got}, not {want}");
        }
    }
}

#[test]
fn replies_equal_the_reference() {
    let (reference, mut llama) = (reference(), model());
    let (prompt, expected) = (ids(&reference["ids"]), ids(&reference["reply"]));
    let margins = reference["margins"].as_array().expect("margins");
    assert!(margins.iter().all(|m| m.as_f64() > Some(f64::from(2.0 * LIMIT))), "a near-tie decides nothing");
    let mut reply = vec![llama.begin(&prompt, &Sampling::default(), &[], None).expect("a token")];
    while reply.len() < expected.len() {
        reply.push(llama.next(None).expect("a token").expect("no stop tokens were given"));
    }
    assert_eq!(reply, expected);
}
