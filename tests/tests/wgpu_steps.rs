//! Steps under way before the last one's token is read: the text, its end, and what comes after are as without.
#![cfg(feature = "wgpu")]

use std::sync::Arc;

use repartee_engine::backends::cpu::{Cpu, CpuOptions};
use repartee_engine::backends::wgpu::{Wgpu, WgpuOptions};
use repartee_engine::backends::{Backend, CancelToken, MemoryTensors, Run, RunError};
use repartee_engine::formats::gguf::Gguf;
use repartee_engine::graph::GraphBuilder;
use repartee_engine::models::ModelError;
use repartee_engine::models::llama::{Llama, LlamaOptions, Sampling};
use repartee_engine::reference::Reference;
use repartee_tests::random_model::{SMALL, write};

const CONTEXT: usize = 48;

fn gpu(steps_ahead: usize) -> Option<Wgpu> {
    let ahead = Some(steps_ahead);
    // The run that warms a program leaves nothing that another one sees.
    let warm_up = Some(steps_ahead > 0);
    let options = WgpuOptions { allow_software: true, steps_ahead: ahead, warm_up, ..WgpuOptions::default() };
    repartee_tests::subjects::wgpu(options)
}

fn model(backend: &dyn Backend) -> Llama {
    let mut bytes = Vec::new();
    write(&SMALL, 0, &mut bytes).unwrap();
    let file = Arc::new(Gguf::from_bytes(bytes).unwrap());
    Llama::load(&file, backend, LlamaOptions { context: CONTEXT }).unwrap()
}

const PROMPT: [u32; 6] = [72, 101, 108, 108, 111, 33];

/// A reply of at most `most` tokens; the stop token is not part of it.
fn reply(llama: &mut Llama, prompt: &[u32], stops: &[u32], most: usize) -> Vec<u32> {
    let mut tokens = vec![llama.begin(prompt, &Sampling::default(), stops, None).unwrap()];
    while tokens.len() < most {
        match llama.next(None).unwrap() {
            Some(token) => tokens.push(token),
            None => break,
        }
    }
    tokens
}

/// The same device without steps ahead is the truth: other devices sum in another order.
#[test]
fn text_its_end_and_what_follows_are_the_same() {
    let Some(plain) = gpu(0) else { return };
    let mut expected = model(&plain);
    let whole = reply(&mut expected, &PROMPT, &[], 12);
    // The first of a token is where a text that it stops ends.
    let (at, &stop) = whole.iter().enumerate().rfind(|(at, token)| !whole[..*at].contains(token)).unwrap();
    assert!(at > 2, "{whole:?}");
    let longer: Vec<u32> = PROMPT.iter().chain(&whole[..at]).chain(&[10, 11, 12]).copied().collect();
    let second = reply(&mut expected, &longer, &[], 9);
    for steps_ahead in [1, 3] {
        let Some(backend) = gpu(steps_ahead) else { return };
        assert_eq!(backend.steps_ahead(), steps_ahead);
        let mut llama = model(&backend);
        assert_eq!(reply(&mut llama, &PROMPT, &[], 12), whole);
        // What was drawn last is not yet in the caches, nor is what was drawn in vain.
        let cached: Vec<u32> = PROMPT.iter().chain(&whole[..11]).copied().collect();
        assert_eq!(llama.cached(), cached);
        assert_eq!(reply(&mut llama, &PROMPT, &[stop], 12), whole[..at]);
        assert!(llama.is_done());
        assert_eq!(llama.next(None).unwrap(), None);
        assert_eq!(llama.cached(), [&PROMPT[..], &whole[..at]].concat());
        // The conversation goes on from the caches, and so it does behind a text that was left in the middle.
        assert_eq!(reply(&mut llama, &longer, &[], 9), second);
        assert_eq!(reply(&mut llama, &PROMPT, &[], 3), whole[..3]);
        assert_eq!(reply(&mut llama, &longer, &[], 9), second);
        // Nothing is drawn before a prompt.
        llama.forget();
        assert_eq!(llama.next(None).unwrap(), None);
    }
}

#[test]
fn a_cancelled_text_goes_on_where_it_was() {
    let Some(plain) = gpu(0) else { return };
    let expected = reply(&mut model(&plain), &PROMPT, &[], 8);
    let Some(backend) = gpu(2) else { return };
    let mut llama = model(&backend);
    let mut tokens = reply(&mut llama, &PROMPT, &[], 4);
    let cancel = CancelToken::new();
    cancel.cancel();
    for _ in 0..2 {
        assert!(llama.next(Some(&cancel)).is_err_and(|e| e.is_cancelled()));
    }
    while tokens.len() < 8 {
        tokens.push(llama.next(None).unwrap().unwrap());
    }
    assert_eq!(tokens, expected);
}

/// The last token that fits is given out, and only then is the context full.
#[test]
fn a_full_context_is_told_where_it_is_full() {
    let fill = |backend: &dyn Backend| {
        let mut llama = model(backend);
        let mut tokens = vec![llama.begin(&PROMPT, &Sampling::default(), &[], None).unwrap()];
        loop {
            match llama.next(None) {
                Ok(token) => tokens.push(token.unwrap()),
                Err(ModelError::Run(RunError::ContextFull { .. })) => return (tokens, llama.cached().len()),
                Err(error) => panic!("{error}"),
            }
        }
    };
    let (Some(plain), Some(ahead)) = (gpu(0), gpu(3)) else { return };
    let expected = fill(&plain);
    assert_eq!((expected.0.len(), expected.1), (CONTEXT - PROMPT.len() + 1, CONTEXT));
    assert_eq!(fill(&ahead), expected);
}

/// Blocks come in order, one for each run that keeps one, and a changed row makes those of the past void.
#[test]
fn kept_step_blocks_are_collected_in_order() {
    let mut g = GraphBuilder::with_slots("count", 2);
    let ids = g.step_tokens();
    g.advance(ids);
    let graph = g.finish().unwrap();
    let cpu = Cpu::new(CpuOptions::default());
    let Some(gpu) = gpu(1) else { return };
    for backend in [&Reference as &dyn Backend, &cpu, &gpu] {
        let name = backend.name();
        let program = backend.compile(&graph, &backend.weight_set(Arc::new(MemoryTensors::new()))).unwrap();
        let mut session = backend.session(&[&graph]).unwrap();
        let run = |session: &mut _, keep_step| program.run(session, Run { keep_step, ..Run::default() });
        assert_eq!(session.collect(), Ok(None), "{name}");
        for keep_step in [true, false, true, true] {
            run(&mut session, keep_step).unwrap();
        }
        let mut positions = Vec::new();
        while let Some(rows) = session.collect().unwrap() {
            positions.push(rows.iter().map(|row| row.position).collect::<Vec<_>>());
        }
        assert_eq!(positions, [[1, 1], [3, 3], [4, 4]], "{name}");
        for _ in 0..3 {
            run(&mut session, true).unwrap();
        }
        session.update_step(1, |row| (row.position, row.done) = (2, 1));
        assert_eq!(session.collect(), Ok(None), "{name}");
        run(&mut session, true).unwrap();
        session.state().save(0);
        let rows = session.collect().unwrap().map(|rows| [rows[0].position, rows[1].position]);
        assert_eq!(rows, Some([8, 2]), "{name}");
        run(&mut session, true).unwrap();
        assert!(session.state().restore(0));
        assert_eq!(session.collect(), Ok(None), "{name}");
        run(&mut session, true).unwrap();
        session.state().reset();
        assert_eq!(session.collect(), Ok(None), "{name}");
    }
}
