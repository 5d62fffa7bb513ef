//! The network, top to bottom (Touvron et al. 2023; Qwen2.5 and Qwen3 technical reports).

use super::config::{Architecture, LlamaConfig};
use crate::blocks::{CachedAttention, Dense, swiglu};
use crate::formats::{TensorSource, TensorType};
use crate::graph::{Graph, GraphBuilder, GraphError, Precision, StateType, Value};

/// Which program of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Tokens from the host into the caches, at most this many; no logits.
    Feed {
        /// Most tokens of one run.
        max: usize,
    },
    /// The same, and a token is drawn behind the last.
    Prompt {
        /// Most tokens of one run.
        max: usize,
    },
    /// One token from the step block; the next one is drawn.
    Step,
}

/// Arithmetic for a matrix of the file: quantised weights meet 8-bit activations.
fn dense(source: &dyn TensorSource, weight: String, bias: Option<String>) -> Dense {
    let float = [TensorType::F32, TensorType::F16, TensorType::BF16];
    let ty = source.tensor(&weight).map_or(TensorType::F32, |t| t.ty);
    let precision = if float.contains(&ty) { Precision::F32 } else { Precision::Int8 };
    Dense { weight, bias, precision }
}

/// Builds one program over `context` cached tokens for `slots` sequences.
///
/// # Errors
/// Sizes that do not go together.
pub fn graph(
    c: &LlamaConfig,
    source: &dyn TensorSource,
    part: Part,
    context: usize,
    slots: usize,
) -> Result<Graph, GraphError> {
    let name = match part {
        Part::Feed { .. } => "llama.feed",
        Part::Prompt { .. } => "llama.prompt",
        Part::Step => "llama.step",
    };
    let mut g = GraphBuilder::with_slots(name, slots);
    let ids = match part {
        Part::Feed { max } | Part::Prompt { max } => {
            let n = g.symbol("tokens", max);
            g.input_i32("ids", n, 1)
        }
        Part::Step => g.step_tokens(),
    };
    let mut x = g.embed(ids, "token_embd.weight", c.vocabulary, c.width);
    for layer in 0..c.layers {
        let last_feed = matches!(part, Part::Feed { .. }) && layer + 1 == c.layers;
        x = block(&mut g, c, source, layer, x, context, last_feed);
    }
    g.advance(ids);
    if !matches!(part, Part::Feed { .. }) {
        let last = g.last_rows(x);
        let normed = g.rms_norm(last, "output_norm.weight", c.eps, c.width);
        let head = dense(source, c.output.clone(), None);
        let logits = head.apply(&mut g, normed, c.vocabulary);
        g.output("logits", logits);
        g.sample(logits, None);
    }
    g.finish()
}

/// One transformer block: `x` `[n, width]` to the same. With `only_cache` the block ends once keys and values are
/// written, since nothing reads the rest.
fn block(
    g: &mut GraphBuilder,
    c: &LlamaConfig,
    source: &dyn TensorSource,
    layer: usize,
    x: Value,
    context: usize,
    only_cache: bool,
) -> Value {
    let name = |part: &str| format!("blk.{layer}.{part}");
    let bias = |part: &str| (c.architecture == Architecture::Qwen2).then(|| name(&format!("{part}.bias")));
    let qkv = |part: &str| dense(source, name(&format!("{part}.weight")), bias(part));
    let plain = |part: &str| dense(source, name(part), None);

    let h = g.rms_norm(x, &name("attn_norm.weight"), c.eps, c.width);
    let mut q = qkv("attn_q").apply(g, h, c.heads * c.head_dim);
    let mut k = qkv("attn_k").apply(g, h, c.kv_heads * c.head_dim);
    let v = qkv("attn_v").apply(g, h, c.kv_heads * c.head_dim);
    if c.architecture == Architecture::Qwen3 {
        q = g.rms_norm(q, &name("attn_q_norm.weight"), c.eps, c.head_dim);
        k = g.rms_norm(k, &name("attn_k_norm.weight"), c.eps, c.head_dim);
    }
    q = g.rope(q, c.head_dim, c.rope_style(), c.rope_base);
    k = g.rope(k, c.head_dim, c.rope_style(), c.rope_base);
    let attention = CachedAttention {
        heads: c.heads,
        kv_heads: c.kv_heads,
        head_dim: c.head_dim,
        context,
        ty: StateType::F16,
    };
    let a = attention.attend(g, &format!("blk.{layer}"), [q, k, v]);
    if only_cache {
        return x;
    }
    let o = plain("attn_output.weight").apply(g, a, c.width);
    let x = g.add(x, o);

    let h = g.rms_norm(x, &name("ffn_norm.weight"), c.eps, c.width);
    let (gate, up, down) = (plain("ffn_gate.weight"), plain("ffn_up.weight"), plain("ffn_down.weight"));
    let f = swiglu(g, h, [&gate, &up, &down], c.feed_forward, c.width);
    g.add(x, f)
}
