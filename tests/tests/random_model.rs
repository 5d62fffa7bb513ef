//! Language models of random weights: every block type in one model, on each backend.

use std::sync::Arc;

use repartee_engine::backends::Backend;
use repartee_engine::backends::cpu::{Cpu, CpuOptions};
use repartee_engine::formats::gguf::Gguf;
use repartee_engine::formats::{TensorSource, TensorType};
use repartee_engine::models::llama::{Architecture, Llama, LlamaConfig, LlamaOptions, Sampling};
use repartee_engine::text::chat::{ChatOptions, Message, Role};
use repartee_tests::random_model::{QWEN2_5_0_5B, SMALL, write};

fn small(seed: u64) -> Arc<Gguf> {
    let mut bytes = Vec::new();
    write(&SMALL, seed, &mut bytes).unwrap();
    Arc::new(Gguf::from_bytes(bytes).unwrap())
}

fn load(file: &Arc<Gguf>, backend: &dyn Backend) -> Llama {
    Llama::load(file, backend, LlamaOptions { context: 128 }).unwrap()
}

fn prompt(llama: &Llama) -> Vec<u32> {
    let messages = [Message::new(Role::User, "Say something.")];
    llama.template().unwrap().encode(llama.tokenizer(), &messages, &ChatOptions::default()).unwrap()
}

#[test]
fn a_seed_gives_one_file_with_every_block_type() {
    let mut files = [0, 0, 1].map(|seed| {
        let mut bytes = Vec::new();
        write(&SMALL, seed, &mut bytes).unwrap();
        bytes
    });
    assert!(files[0] == files[1] && files[0] != files[2]);
    let file = Gguf::from_bytes(std::mem::take(&mut files[0])).unwrap();
    let config = LlamaConfig::from_gguf(&file).unwrap();
    assert_eq!((config.architecture, config.layers, config.head_dim), (Architecture::Qwen2, 4, 64));
    for ty in TensorType::ALL.into_iter().filter(|ty| ty.block_len() > 1) {
        let has = |name: &String| name.starts_with("blk.") && file.tensor(name).unwrap().ty == ty;
        assert!(file.names().iter().any(has), "{ty}");
    }
}

/// As in the published `q4_k_m` file.
#[test]
fn the_large_shape_has_the_published_types() {
    let count = |matrix: &str, ty: TensorType| {
        let of = |layer: &usize| (QWEN2_5_0_5B.types)(matrix, *layer, &QWEN2_5_0_5B) == ty;
        (0..QWEN2_5_0_5B.layers).filter(of).count()
    };
    assert_eq!((count("attn_v", TensorType::Q8_0), count("attn_v", TensorType::Q5_0)), (12, 12));
    assert_eq!((count("ffn_down", TensorType::Q6K), count("ffn_down", TensorType::Q4K)), (12, 12));
    for matrix in ["attn_q", "attn_k", "attn_output", "ffn_gate", "ffn_up"] {
        assert_eq!(count(matrix, TensorType::Q5_0), 24, "{matrix}");
    }
}

/// Activations keep their size: the logits spread as they were meant to, and each token has its own.
#[test]
fn activations_stay_sane() {
    let file = small(0);
    let mut llama = load(&file, &Cpu::new(CpuOptions::default()));
    let tokens = prompt(&llama);
    let mut logits = Vec::new();
    for end in [1, tokens.len()] {
        llama.logits(&tokens[..end], &mut logits).unwrap();
        let n = logits.len() as f32;
        let mean = logits.iter().sum::<f32>() / n;
        let spread = (logits.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / n).sqrt();
        assert!(mean.abs() < 1.0 && (3.0..5.0).contains(&spread), "{mean} and {spread}");
    }
}

#[cfg(feature = "wgpu")]
#[test]
fn every_block_type_writes_what_it_writes_on_the_cpu() {
    use repartee_engine::backends::wgpu::WgpuOptions;
    let options = WgpuOptions { allow_software: true, ..WgpuOptions::default() };
    let Some(gpu) = repartee_tests::subjects::wgpu(options) else { return };
    let file = small(SEED);
    let (mut expected, mut ours) = (load(&file, &Cpu::new(CpuOptions::default())), load(&file, &gpu));
    let mut tokens = prompt(&expected);
    let write = |llama: &mut Llama| {
        let mut reply = vec![llama.begin(&tokens, &Sampling::default(), &[], None).unwrap()];
        while reply.len() < 24 {
            reply.push(llama.next(None).unwrap().unwrap());
        }
        reply
    };
    let reply = write(&mut expected);
    assert_eq!(write(&mut ours), reply);
    let [mut a, mut b] = [Vec::new(), Vec::new()];
    for &token in &reply {
        expected.logits(&tokens, &mut a).unwrap();
        ours.logits(&tokens, &mut b).unwrap();
        let largest = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(a.len() == b.len() && largest <= LIMIT, "{largest}");
        let mut sorted = a.clone();
        sorted.sort_by(f32::total_cmp);
        let margin = sorted[a.len() - 1] - sorted[a.len() - 2];
        assert!(margin > 2.0 * LIMIT, "a near-tie decides nothing: {margin}");
        tokens.push(token);
    }
    let different = reply.iter().collect::<std::collections::BTreeSet<_>>().len();
    assert!(different > 4, "{reply:?}");
}

/// A seed whose reply has no near-ties; most have.
#[cfg(feature = "wgpu")]
const SEED: u64 = 20;

/// Of logits that spread by 4. Sums in another order move an activation over the border of an 8-bit integer now and then,
/// by a 127th of the largest of its block: the CPU's instruction sets are 0.12 apart here, and the GPU's kernels as much.
#[cfg(feature = "wgpu")]
const LIMIT: f32 = 0.2;
