//! Models on the wgpu backend, beside the CPU: whole programs with states and run-time lengths on one device.
#![cfg(feature = "wgpu")]

use std::sync::Arc;

use repartee_engine::backends::cpu::{Cpu, CpuOptions};
use repartee_engine::backends::wgpu::{Wgpu, WgpuOptions};
use repartee_engine::backends::{Backend, CancelToken, CompileErrorKind, Input, MemoryTensors, Run};
use repartee_engine::formats::gguf::Gguf;
use repartee_engine::formats::safetensors::SafeTensors;
use repartee_engine::graph::{GraphBuilder, UnaryOp};
use repartee_engine::models::ModelError;
use repartee_engine::models::llama::{self, Llama, LlamaConfig, LlamaOptions, Part, Sampling};
use repartee_engine::models::silero::{CHUNK_SAMPLES, SileroVad};
use repartee_engine::text::chat::{ChatOptions, Message, Role};
use repartee_engine::text::tokenizer::Special;
use repartee_tests::compare::{Tolerance, compare};
use repartee_tests::random_model;
use repartee_tests::subjects::wgpu;

const SOFTWARE: WgpuOptions = WgpuOptions {
    allow_software: true,
    poison: false,
    part_bytes: None,
    steps_ahead: None,
    warm_up: None,
    pipelines: None,
    memory_bytes: None,
};

/// The tokens of a question, prefilled in two pieces, and a reply that is drawn on the device.
fn reply(backend: &dyn Backend, sampling: &Sampling, steps: usize) -> (String, Vec<u32>) {
    let file = repartee_models::resolve("smollm2-135m", "SmolLM2-135M-Instruct.Q4_1.gguf").unwrap();
    let file = Arc::new(Gguf::open(file).unwrap());
    let mut llama = Llama::load(&file, backend, LlamaOptions { context: 256 }).unwrap();
    let messages = [Message::new(Role::System, "Be brief."), Message::new(Role::User, "Capital of France?")];
    let template = llama.template().unwrap();
    let prompt = template.encode(llama.tokenizer(), &messages, &ChatOptions::default()).unwrap();
    llama.prefill(&prompt[..9], Default::default(), None).unwrap();
    let mut tokens = vec![llama.begin(&prompt, sampling, &[], None).unwrap()];
    while tokens.len() < steps {
        tokens.push(llama.next(None).unwrap().unwrap());
    }
    (llama.tokenizer().decode(&tokens).unwrap(), tokens)
}

#[test]
fn a_language_model_writes_what_it_writes_on_the_cpu() {
    let Some(gpu) = wgpu(SOFTWARE) else { return };
    let cpu = Cpu::new(CpuOptions::default());
    let greedy = Sampling::default();
    let (text, expected) = reply(&cpu, &greedy, 17);
    assert_eq!(reply(&gpu, &greedy, 17), (text.clone(), expected));
    assert!(text.contains("Paris"), "{text}");
}

/// Where software computes, a prompt takes seconds: it is given up in the middle, and nothing of it remains.
#[test]
fn a_prompt_is_cancelled_under_way() {
    // A GPU is through with it before anybody could stop it.
    let Some(gpu) = wgpu(SOFTWARE).filter(Wgpu::is_software) else { return };
    let file = repartee_models::resolve("smollm2-135m", "SmolLM2-135M-Instruct.Q4_1.gguf").unwrap();
    let file = Arc::new(Gguf::open(file).unwrap());
    let mut llama = Llama::load(&file, &gpu, LlamaOptions { context: 256 }).unwrap();
    let prompt =
        llama.tokenizer().encode("The capital of France is Paris, and that of Italy is", Special::AsText);
    let long: Vec<u32> = prompt.iter().copied().cycle().take(200).collect();
    let greedy = Sampling::default();
    let expected = llama.begin(&prompt, &greedy, &[], None).unwrap();
    llama.forget();
    let cancel = CancelToken::new();
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while cancel.largest_work() == 0 {
                std::thread::yield_now();
            }
            cancel.cancel();
        });
        llama.prefill(&long, Default::default(), Some(&cancel))
    });
    assert!(result.as_ref().is_err_and(ModelError::is_cancelled), "{result:?}");
    llama.forget();
    assert_eq!(llama.begin(&prompt, &greedy, &[], None).unwrap(), expected);
}

/// Each chunk runs behind the state that the last one left.
#[test]
fn the_voice_detector_scores_as_on_the_cpu() {
    let Some(gpu) = wgpu(SOFTWARE) else { return };
    let cpu = Cpu::new(CpuOptions::default());
    let file = repartee_models::resolve("silero-vad-v6", "silero_vad_16k.safetensors").unwrap();
    let file = Arc::new(SafeTensors::open(file).unwrap());
    let question = include_bytes!("../../assets/questions/capital.wav");
    // 16-bit mono behind a header of 44 bytes.
    let samples: Vec<f32> =
        question[44..].as_chunks().0.iter().map(|&b| f32::from(i16::from_le_bytes(b)) / 32768.0).collect();
    let scores = |backend: &dyn Backend| {
        let mut vad = SileroVad::load(file.clone(), backend).unwrap();
        let chunks = samples.as_chunks::<CHUNK_SAMPLES>().0;
        chunks.iter().map(|chunk| vad.chunk(chunk).unwrap()).collect::<Vec<f32>>()
    };
    let expected = scores(&cpu);
    assert!(expected.len() > 40 && expected.iter().any(|&p| p > 0.9) && expected.iter().any(|&p| p < 0.1));
    let tolerance =
        Tolerance::new(1e-4, 0.0, "some 60 chunks of a recurrence in f32, summed in another order");
    compare(&expected, &scores(&gpu), 1, tolerance).unwrap();
}

/// Timestamps between kernels change nothing of what they compute, and each node that does something has a time.
#[test]
fn a_timed_run_computes_what_any_run_does() {
    let Some(gpu) = wgpu(SOFTWARE) else { return };
    let mut bytes = Vec::new();
    random_model::write(&random_model::SMALL, 3, &mut bytes).unwrap();
    let file = Arc::new(Gguf::from_bytes(bytes).unwrap());
    let config = LlamaConfig::from_gguf(&file).unwrap();
    let graph = llama::graph(&config, file.as_ref(), Part::Prompt { max: 8 }, 32, 1).unwrap();
    let program = gpu.compile(&graph, &gpu.weight_set(file)).unwrap();
    let run = |node_ns: Option<&mut Vec<u64>>| {
        let (mut session, mut logits) = (gpu.session(&[&graph]).unwrap(), Vec::new());
        let inputs = [Input::I32(&[5, 6, 7, 8, 9])];
        let outputs = &mut [(0, &mut logits)];
        let run = Run { lengths: &[5], inputs: &inputs, outputs, node_ns, ..Run::default() };
        program.run(&mut session, run).unwrap();
        let states = graph.states.iter().map(|state| session.state().read_state(&state.name).unwrap());
        (logits, states.collect::<Vec<_>>(), session.step(0))
    };
    let plain = run(None);
    assert!(plain.0.len() == config.vocabulary && plain.0.iter().all(|x| x.is_finite()));
    assert!(plain.1.iter().all(|state| state.iter().any(|&x| x != 0.0)));
    let mut times = Vec::new();
    for runs in 1..3 {
        assert!(run(Some(&mut times)) == plain, "run {runs}");
    }
    if times.is_empty() {
        return; // The adapter has no timestamps.
    }
    assert_eq!(times.len(), graph.nodes.len());
    for (place, &ns) in program.placement().iter().zip(&times) {
        // Others do the work of those in brackets.
        assert_eq!(ns > 0, !place.kernel.starts_with('('), "{place:?}: {ns}");
    }
}

/// A second start makes of the file what the first made of the source, and a file that is wrong costs only time.
#[test]
fn compiled_pipelines_are_kept_and_a_wrong_file_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let pipelines = Some(folder.path().join("pipelines"));
    let relu = || {
        let gpu = wgpu(WgpuOptions { pipelines: pipelines.clone(), ..SOFTWARE })?;
        let mut g = GraphBuilder::new("relu");
        let n = g.symbol("n", 4);
        let x = g.input_f32("x", n, 1);
        let y = g.unary(x, UnaryOp::Relu);
        g.output("y", y);
        let graph = g.finish().unwrap();
        let program = gpu.compile(&graph, &gpu.weight_set(Arc::new(MemoryTensors::new()))).unwrap();
        let (mut session, mut out) = (gpu.session(&[&graph]).unwrap(), Vec::new());
        let (inputs, outputs) = ([Input::F32(&[-1.0, 2.0, -3.0])], &mut [(0, &mut out)]);
        program.run(&mut session, Run { lengths: &[3], inputs: &inputs, outputs, ..Run::default() }).unwrap();
        assert_eq!(out, [0.0, 2.0, 0.0]);
        Some(gpu.name())
    };
    let Some(name) = relu() else { return };
    if !name.contains("Vulkan") {
        return;
    }
    let files = || -> Vec<_> {
        let all = std::fs::read_dir(folder.path().join("pipelines")).unwrap();
        all.map(|entry| entry.unwrap().path()).collect()
    };
    let [file] = &files()[..] else { panic!("{:?}", files()) };
    let kept = std::fs::read(file).unwrap();
    relu();
    assert_eq!(files().len(), 1);
    let wrong = [Vec::new(), vec![0xa5; 1 << 20], kept[..kept.len() / 2].to_vec()];
    for bytes in wrong {
        std::fs::write(file, &bytes).unwrap();
        relu();
        assert!(std::fs::read(file).unwrap() != bytes, "it was replaced");
    }
    // What can't be written is not missed.
    std::fs::remove_file(file).unwrap();
    std::fs::create_dir(file).unwrap();
    relu();
}

/// What does not fit is refused with its size when it is compiled: nothing panics, and the device goes on working.
#[test]
fn a_graph_that_no_device_holds_is_refused() {
    let Some(gpu) = wgpu(SOFTWARE) else { return };
    let build = |most: usize| {
        let mut g = GraphBuilder::new("large");
        let n = g.symbol("n", most);
        let x = g.input_f32("x", n, 1024);
        let y = g.unary(x, UnaryOp::Relu);
        g.output("y", y);
        g.finish().unwrap()
    };
    let weights = gpu.weight_set(Arc::new(MemoryTensors::new()));
    for most in [1 << 30, usize::MAX / 2] {
        let error = gpu.compile(&build(most), &weights).map(|_| ()).unwrap_err();
        assert!(matches!(error.kind, CompileErrorKind::OutOfMemory { .. }), "{error}");
    }
    gpu.compile(&build(16), &weights).unwrap();
}
