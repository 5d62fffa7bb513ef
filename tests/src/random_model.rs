//! Language models of random weights, in GGUF files.
//!
//! What a model computes hangs on its weights; how fast it does, and whether two backends agree, hangs on its shapes and
//! types alone. So a file of random numbers stands in for a published one where that can't be had. Weights are drawn so
//! that activations keep their size from layer to layer. A file is the same for a seed on every machine, and is written a
//! few rows at a time.

use std::io::{self, Write};

use repartee_engine::formats::TensorType;
use repartee_engine::formats::testing::{GgufWriter, quantize};

use crate::random::Random;

/// Sizes and types of a model of the Qwen2 family.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// `general.name`.
    pub name: &'static str,
    /// Transformer blocks.
    pub layers: usize,
    /// Columns of an activation.
    pub width: usize,
    /// Columns between the two halves of a feed-forward part.
    pub feed_forward: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and of values.
    pub kv_heads: usize,
    /// Tokens: at least the 259 that the tokenizer needs.
    pub vocabulary: usize,
    /// `context_length`.
    pub context: usize,
    /// The type of a matrix by the last part of its name and its layer (0 outside of layers).
    pub types: fn(&str, usize, &Self) -> TensorType,
}

/// Qwen2.5-0.5B-Instruct as its publisher quantised it (`q4_k_m`): 494 million weights, 398 MB.
pub const QWEN2_5_0_5B: Shape = Shape {
    name: "random weights in the shape of Qwen2.5 0.5B",
    layers: 24,
    width: 896,
    feed_forward: 4864,
    heads: 14,
    kv_heads: 2,
    vocabulary: 151_936,
    context: 32_768,
    types: |matrix, layer, shape| {
        // llama.cpp keeps more bits in the first and the last eighth of the layers, and in every third between.
        let (eighth, last) = (shape.layers / 8, 7 * shape.layers / 8);
        let more = layer < eighth || layer >= last || (layer - eighth) % 3 == 2;
        match matrix {
            "output" => TensorType::Q8_0,
            "attn_v" if more => TensorType::Q8_0,
            "ffn_down" if more => TensorType::Q6K,
            "ffn_down" => TensorType::Q4K,
            // Rows of 896 are no whole blocks of 256.
            _ => TensorType::Q5_0,
        }
    },
};

/// Small enough for tests; every block type stands in some layer.
pub const SMALL: Shape = Shape {
    name: "small random weights",
    layers: 4,
    width: 256,
    feed_forward: 512,
    heads: 4,
    kv_heads: 2,
    vocabulary: 512,
    context: 256,
    types: |matrix, layer, _| {
        let blocks = TensorType::ALL.into_iter().filter(|ty| ty.block_len() > 1);
        let blocks: Vec<TensorType> = blocks.collect();
        let at = MATRICES.iter().position(|m| *m == matrix);
        at.map_or(TensorType::Q8_0, |at| blocks[(at + layer * MATRICES.len()) % blocks.len()])
    },
};

const MATRICES: [&str; 7] = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"];

/// Numbers that are drawn and written at a time.
const PIECE: usize = 1 << 16;

/// Logits spread so far that the likeliest token stands out as in a trained model.
const LOGITS: f32 = 4.0;

/// One tensor: name, type, shape with the outermost first, and the numbers: around `middle`, up to `top` away.
struct Tensor {
    name: String,
    ty: TensorType,
    shape: Vec<usize>,
    middle: f32,
    top: f32,
}

impl Tensor {
    /// A vector.
    fn vector(name: String, len: usize, middle: f32) -> Self {
        Self { name, ty: TensorType::F32, shape: vec![len], middle, top: 0.1 }
    }

    /// A matrix whose products with rows of the size 1 have the size `gain`.
    fn matrix(name: String, ty: TensorType, shape: [usize; 2], gain: f32) -> Self {
        // A uniform number's variance is a third of its bound's square.
        let top = gain * (3.0 / shape[1] as f32).sqrt();
        Self { name: format!("{name}.weight"), ty, shape: shape.into(), middle: 0.0, top }
    }
}

/// Writes the file.
///
/// # Errors
/// What `to` says.
///
/// # Panics
/// For sizes and types that do not go together.
pub fn write(shape: &Shape, seed: u64, to: &mut impl Write) -> io::Result<()> {
    let mut head = GgufWriter::new(3);
    settings(shape, &mut head);
    let tensors = tensors(shape);
    let starts: Vec<u64> = tensors.iter().map(|t| head.announce(&t.name, t.ty, &t.shape)).collect();
    to.write_all(&head.finish())?;
    let mut written = 0;
    for (tensor, start) in tensors.iter().zip(starts) {
        let gap = usize::try_from(start - written).unwrap_or(usize::MAX);
        to.write_all(&vec![0; gap])?;
        written = start;
        let mut random = Random::for_name(&format!("{seed} {}", tensor.name));
        let mut left: usize = tensor.shape.iter().product();
        while left > 0 {
            let values = random.floats(left.min(PIECE), tensor.top);
            left -= values.len();
            let values: Vec<f32> = values.into_iter().map(|x| tensor.middle + x).collect();
            let bytes = quantize(tensor.ty, &values);
            to.write_all(&bytes)?;
            written += bytes.len() as u64;
        }
    }
    to.flush()
}

fn settings(shape: &Shape, head: &mut GgufWriter) {
    head.string("general.architecture", "qwen2").string("general.name", shape.name);
    let sizes = [
        ("block_count", shape.layers),
        ("embedding_length", shape.width),
        ("feed_forward_length", shape.feed_forward),
        ("attention.head_count", shape.heads),
        ("attention.head_count_kv", shape.kv_heads),
        ("context_length", shape.context),
    ];
    for (key, size) in sizes {
        head.u32(&format!("qwen2.{key}"), u32::try_from(size).expect("a size of a model"));
    }
    head.f32("qwen2.rope.freq_base", 1e6).f32("qwen2.attention.layer_norm_rms_epsilon", 1e-6);

    // A token for each byte, three that a conversation needs, and names for the rest.
    let control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
    let bytes = (0..=255).map(|byte| byte_character(byte).to_string());
    let mut tokens: Vec<String> = bytes.chain(control.map(String::from)).collect();
    assert!(shape.vocabulary >= tokens.len(), "a vocabulary of {}", shape.vocabulary);
    tokens.extend((tokens.len()..shape.vocabulary).map(|id| format!("Ġt{id}")));
    let kinds: Vec<i32> =
        tokens.iter().map(|token| if control.contains(&token.as_str()) { 3 } else { 1 }).collect();
    head.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", "qwen2");
    head.strings("tokenizer.ggml.tokens", &tokens).i32s("tokenizer.ggml.token_type", &kinds);
    head.strings::<&str>("tokenizer.ggml.merges", &[]);
    head.u32("tokenizer.ggml.eos_token_id", 258).bool("tokenizer.ggml.add_bos_token", false);
    head.string(
        "tokenizer.chat_template",
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}\
         {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    );
}

/// The printable character that stands for a byte in published vocabularies (GPT-2's `bytes_to_unicode`).
fn byte_character(byte: u8) -> char {
    let stands_for_itself = |b: u8| matches!(b, 33..=126 | 161..=172 | 174..=255);
    if stands_for_itself(byte) {
        return char::from(byte);
    }
    let others_before = (0..byte).filter(|&b| !stands_for_itself(b)).count() as u32;
    char::from_u32(256 + others_before).expect("a letter behind Latin-1")
}

fn tensors(shape: &Shape) -> Vec<Tensor> {
    let Shape { width, feed_forward, vocabulary, .. } = *shape;
    let ty = |matrix: &str, layer| (shape.types)(matrix, layer, shape);
    let head_dim = width / shape.heads;
    let kv_width = shape.kv_heads * head_dim;
    // Each layer adds two rows to what goes past it.
    let added = 1.0 / (2.0 * shape.layers as f32).sqrt();
    let mut all = vec![Tensor {
        top: 3.0_f32.sqrt(),
        ..Tensor::matrix("token_embd".into(), ty("token_embd", 0), [vocabulary, width], 1.0)
    }];
    for layer in 0..shape.layers {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let matrix = |part: &str, dims, gain| Tensor::matrix(name(part), ty(part, layer), dims, gain);
        all.push(Tensor::vector(name("attn_norm.weight"), width, 1.0));
        for (part, rows) in [("attn_q", width), ("attn_k", kv_width), ("attn_v", kv_width)] {
            all.push(matrix(part, [rows, width], 1.0));
            all.push(Tensor::vector(name(&format!("{part}.bias")), rows, 0.0));
        }
        all.push(matrix("attn_output", [width, width], added));
        all.push(Tensor::vector(name("ffn_norm.weight"), width, 1.0));
        all.push(matrix("ffn_gate", [feed_forward, width], 1.0));
        all.push(matrix("ffn_up", [feed_forward, width], 1.0));
        // A gated product of two rows of the size 1 has about the size of a half.
        all.push(matrix("ffn_down", [width, feed_forward], 2.0 * added));
    }
    all.push(Tensor::vector("output_norm.weight".into(), width, 1.0));
    all.push(Tensor::matrix("output".into(), ty("output", 0), [vocabulary, width], LOGITS));
    all
}
