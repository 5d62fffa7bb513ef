//! The reply stage on a real model in a context that is far too short for the conversation.

use std::sync::Arc;

use repartee_engine::backends::cpu::{Cpu, CpuOptions};
use repartee_engine::formats::gguf::Gguf;
use repartee_engine::models::llama::{Llama, LlamaOptions, Sampling};
use repartee_engine::stages::reply::Replier;
use repartee_engine::turn::history::History;
use repartee_engine::turn::message::Exchange;

/// B22: 256 tokens, 40 turns of 30 words, then one turn of far more than 256 tokens: always an answer, the system prompt
/// kept, the cuts reported.
#[test]
fn a_full_context_always_leaves_room_for_an_answer() {
    let file = repartee_models::resolve("smollm2-135m", "SmolLM2-135M-Instruct.Q4_1.gguf").unwrap();
    let file = Arc::new(Gguf::open(file).unwrap());
    let backend = Cpu::new(CpuOptions::default());
    let llama = Llama::load(&file, &backend, LlamaOptions { context: 256 }).unwrap();
    let mut replier = Replier::new(llama, Sampling::default(), 12);
    let mut history = History::new("You are a friendly voice assistant.");
    let mut cuts = 0;
    for turn in 0..40 {
        let user = format!("Turn {turn}: {}", "please tell me more of that ".repeat(5));
        let reply = replier.reply(&mut history, &user, &mut |_| {}, None).unwrap();
        assert!(reply.tokens > 0 && !reply.text.trim().is_empty(), "turn {turn}: {reply:?}");
        assert!(replier.llama().cached().len() <= 256);
        assert!(history.known()[0].content.starts_with("You are"), "turn {turn}");
        cuts += usize::from(reply.trimmed.is_some());
        let heard = reply.text.as_str().into();
        history.remember(&Exchange { user: user.as_str().into(), heard, interrupted: false });
    }
    // Each cut goes to half, so that several turns follow before the next.
    assert!((4..=14).contains(&cuts), "{cuts} cuts");

    let long = "and then we went on along the river ".repeat(50);
    let reply = replier.reply(&mut history, &long, &mut |_| {}, None).unwrap();
    assert!(reply.tokens > 0, "{reply:?}");
    assert!(reply.trimmed.is_some_and(|t| t.words > 0), "{reply:?}");
}
