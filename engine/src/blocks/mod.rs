//! Pieces of graph that models share: attention over a cache, feed-forward layers, recurrent layers.
//!
//! A block takes the builder and names of weights in the file's own words, so that a model file reads like the
//! paper and two models never paste the same attention twice.

use crate::graph::{
    BinaryOp, CacheStart, Direction, GraphBuilder, KeyValues, Precision, StateType, UnaryOp, Value,
};

/// A layer's weights: matrix, bias, and the arithmetic that fits the matrix's type.
#[derive(Clone, Debug)]
pub struct Dense {
    /// Name of the matrix in the file.
    pub weight: String,
    /// Name of the bias.
    pub bias: Option<String>,
    /// Arithmetic of the activations.
    pub precision: Precision,
}

impl Dense {
    /// `x W^T + b` with `out` columns.
    pub fn apply(&self, g: &mut GraphBuilder, x: Value, out: usize) -> Value {
        g.linear(x, &self.weight, self.bias.as_deref(), out, self.precision)
    }
}

/// Size of a cached attention.
#[derive(Clone, Copy, Debug)]
pub struct CachedAttention {
    /// Query heads.
    pub heads: usize,
    /// Key-value heads.
    pub kv_heads: usize,
    /// Columns of one head.
    pub head_dim: usize,
    /// Rows of the cache.
    pub context: usize,
    /// Type of the cache.
    pub ty: StateType,
}

impl CachedAttention {
    /// Causal self-attention: writes `k` and `v` behind what the caches `name.k` and `name.v` hold, and attends to
    /// all of it.
    pub fn attend(&self, g: &mut GraphBuilder, name: &str, [q, k, v]: [Value; 3]) -> Value {
        let [keys, values] = ["k", "v"].map(|part| {
            g.cache(&format!("{name}.{part}"), self.context, self.kv_heads, self.head_dim, self.ty)
        });
        g.cache_write(k, keys, CacheStart::Position);
        g.cache_write(v, values, CacheStart::Position);
        let scale = (self.head_dim as f32).sqrt().recip();
        g.attention_cached(q, self.heads, self.kv_heads, scale, KeyValues::Cache { keys, values })
    }
}

/// `down(up(x) * silu(gate(x)))` (Shazeer 2020, "GLU variants improve transformer").
pub fn swiglu(
    g: &mut GraphBuilder,
    x: Value,
    [gate, up, down]: [&Dense; 3],
    inner: usize,
    out: usize,
) -> Value {
    let gate = gate.apply(g, x, inner);
    let up = up.apply(g, x, inner);
    let gated = g.binary(up, gate, BinaryOp::MulSilu);
    down.apply(g, gated, out)
}

/// `down(gelu(up(x)))` (Vaswani et al. 2017 with the activation of Hendrycks and Gimpel).
pub fn gelu_mlp(g: &mut GraphBuilder, x: Value, [up, down]: [&Dense; 2], inner: usize, out: usize) -> Value {
    let up = up.apply(g, x, inner);
    let act = g.unary(up, UnaryOp::Gelu);
    down.apply(g, act, out)
}

/// A layer of PyTorch's two-way LSTM: `[n, 2 hidden]`, the forward direction first.
pub fn bidirectional_lstm(g: &mut GraphBuilder, x: Value, name: &str, hidden: usize) -> Value {
    let both = [("", Direction::Forward), ("_reverse", Direction::Backward)].map(|(suffix, direction)| {
        let names =
            ["weight_ih", "weight_hh", "bias_ih", "bias_hh"].map(|p| format!("{name}.{p}_l0{suffix}"));
        g.lstm(x, names.each_ref().map(String::as_str), hidden, direction, None)
    });
    g.concat_columns(&both)
}
