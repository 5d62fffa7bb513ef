//! The network, top to bottom (Radford et al. 2022), with the names of CTranslate2's files.

use super::config::WhisperConfig;
use crate::blocks::{CachedAttention, Dense, gelu_mlp};
use crate::graph::{
    CacheStart, ConvShape, Dim, Graph, GraphBuilder, GraphError, KeyValues, Precision, StateId, StateType,
    UnaryOp, Value,
};

/// PyTorch's default for layer norms.
const EPS: f32 = 1e-5;
/// Most tokens of a decoder prompt.
pub(super) const PROMPT_ROWS: usize = 8;

fn dense(name: &str) -> Dense {
    Dense { weight: format!("{name}/weight"), bias: Some(format!("{name}/bias")), precision: Precision::F32 }
}

fn layer_norm(g: &mut GraphBuilder, x: Value, name: &str) -> Value {
    g.layer_norm(x, &format!("{name}/gamma"), Some(&format!("{name}/beta")), EPS)
}

/// The caches of the encoder's keys and values that decoder layer `layer` attends to.
fn cross_caches(g: &mut GraphBuilder, c: &WhisperConfig, layer: usize) -> [StateId; 2] {
    let name = |part: &str| format!("cross.{layer}.{part}");
    ["k", "v"].map(|part| g.cache(&name(part), c.audio_positions, c.heads, 64, StateType::F32))
}

/// Encoder: mel `[frames, mels]` to `[frames / 2, width]`; also writes what the decoder attends to.
///
/// # Errors
/// Sizes that do not go together.
pub fn encoder(c: &WhisperConfig) -> Result<Graph, GraphError> {
    let mut g = GraphBuilder::new("whisper.encoder");
    let frames = g.symbol("frames", 2 * c.audio_positions);
    let mel = g.input_f32("mel", frames, c.mels);
    let shape = ConvShape { pad_left: 1, pad_right: 1, ..ConvShape::new(3) };
    let x = g.conv1d(mel, "encoder/conv1/weight", Some("encoder/conv1/bias"), c.width, shape);
    let x = g.unary(x, UnaryOp::Gelu);
    let halve = ConvShape { stride: 2, ..shape };
    let x = g.conv1d(x, "encoder/conv2/weight", Some("encoder/conv2/bias"), c.width, halve);
    let x = g.unary(x, UnaryOp::Gelu);
    let mut x =
        g.add_positions(x, "encoder/position_encodings/encodings", c.audio_positions, CacheStart::Zero);
    for layer in 0..c.encoder_layers {
        let name = |part: &str| format!("encoder/layer_{layer}/{part}");
        let h = layer_norm(&mut g, x, &name("self_attention/layer_norm"));
        let qkv = dense(&name("self_attention/linear_0")).apply(&mut g, h, 3 * c.width);
        let parts = [0, 1, 2].map(|i| g.columns(qkv, i * c.width, c.width));
        let a = g.attention_rows(parts, c.heads, c.heads, 0.125, false);
        let o = dense(&name("self_attention/linear_1")).apply(&mut g, a, c.width);
        x = g.add(x, o);
        let h = layer_norm(&mut g, x, &name("ffn/layer_norm"));
        let (up, down) = (dense(&name("ffn/linear_0")), dense(&name("ffn/linear_1")));
        let f = gelu_mlp(&mut g, h, [&up, &down], c.feed_forward, c.width);
        x = g.add(x, f);
    }
    let encoded = layer_norm(&mut g, x, "encoder/layer_norm");
    g.output("encoded", encoded);
    for layer in 0..c.decoder_layers {
        let name = format!("decoder/layer_{layer}/attention/linear_1");
        let kv = dense(&name).apply(&mut g, encoded, 2 * c.width);
        for (i, cache) in cross_caches(&mut g, c, layer).into_iter().enumerate() {
            let part = g.columns(kv, i * c.width, c.width);
            g.cache_write(part, cache, CacheStart::Zero);
        }
    }
    g.finish()
}

/// Decoder: some prompt tokens from the host, or with `step` the step block's token; draws the next token. Logits of
/// all rows are an output.
///
/// # Errors
/// Sizes that do not go together.
pub fn decoder(c: &WhisperConfig, step: bool) -> Result<Graph, GraphError> {
    let mut g = GraphBuilder::new(if step { "whisper.step" } else { "whisper.prompt" });
    let encoded_rows = g.symbol("encoded", c.audio_positions);
    let ids = if step {
        g.step_tokens()
    } else {
        let n = g.symbol("tokens", PROMPT_ROWS);
        g.input_i32("ids", n, 1)
    };
    let bias = g.input_f32("bias", Dim::constant(1), c.vocabulary);
    let x = g.embed(ids, "decoder/embeddings/weight", c.vocabulary, c.width);
    let mut x =
        g.add_positions(x, "decoder/position_encodings/encodings", c.text_positions, CacheStart::Position);
    for layer in 0..c.decoder_layers {
        let name = |part: &str| format!("decoder/layer_{layer}/{part}");
        let h = layer_norm(&mut g, x, &name("self_attention/layer_norm"));
        let qkv = dense(&name("self_attention/linear_0")).apply(&mut g, h, 3 * c.width);
        let parts = [0, 1, 2].map(|i| g.columns(qkv, i * c.width, c.width));
        let attention = CachedAttention {
            heads: c.heads,
            kv_heads: c.heads,
            head_dim: 64,
            context: c.text_positions,
            ty: StateType::F32,
        };
        let a = attention.attend(&mut g, &format!("self.{layer}"), parts);
        let o = dense(&name("self_attention/linear_1")).apply(&mut g, a, c.width);
        x = g.add(x, o);

        let h = layer_norm(&mut g, x, &name("attention/layer_norm"));
        let q = dense(&name("attention/linear_0")).apply(&mut g, h, c.width);
        let [keys, values] = cross_caches(&mut g, c, layer);
        let source = KeyValues::CacheOfLength { keys, values, length: encoded_rows };
        let a = g.attention_cached(q, c.heads, c.heads, 0.125, source);
        let o = dense(&name("attention/linear_2")).apply(&mut g, a, c.width);
        x = g.add(x, o);

        let h = layer_norm(&mut g, x, &name("ffn/layer_norm"));
        let (up, down) = (dense(&name("ffn/linear_0")), dense(&name("ffn/linear_1")));
        let f = gelu_mlp(&mut g, h, [&up, &down], c.feed_forward, c.width);
        x = g.add(x, f);
    }
    let x = layer_norm(&mut g, x, "decoder/layer_norm");
    // The output matrix is the embedding table.
    let logits = g.linear(x, "decoder/embeddings/weight", None, c.vocabulary, Precision::F32);
    g.output("logits", logits);
    g.advance(ids);
    let last = g.last_rows(logits);
    g.sample(last, Some(bias));
    g.finish()
}
