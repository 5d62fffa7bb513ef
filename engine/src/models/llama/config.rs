//! What a GGUF file says of a Llama-like model.

use crate::formats::TensorSource;
use crate::formats::gguf::Gguf;
use crate::graph::RopeStyle;
use crate::models::ModelError;

/// The family's members differ in a few switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Architecture {
    /// Llama, SmolLM2: rotary pairs side by side in GGUF files.
    Llama,
    /// Qwen2, Qwen2.5: biases on q, k and v.
    Qwen2,
    /// Qwen3: a norm on each head of q and k, no biases.
    Qwen3,
}

/// Sizes and switches, named as in the file.
#[derive(Clone, PartialEq, Debug)]
pub struct LlamaConfig {
    /// `general.architecture`.
    pub architecture: Architecture,
    /// `general.name`, for messages.
    pub name: String,
    /// `block_count`.
    pub layers: usize,
    /// `embedding_length`.
    pub width: usize,
    /// `feed_forward_length`.
    pub feed_forward: usize,
    /// `attention.head_count`.
    pub heads: usize,
    /// `attention.head_count_kv`.
    pub kv_heads: usize,
    /// `attention.key_length`, or `width / heads`.
    pub head_dim: usize,
    /// `context_length`: tokens the model was trained for.
    pub context: usize,
    /// `rope.freq_base`.
    pub rope_base: f32,
    /// `attention.layer_norm_rms_epsilon`.
    pub eps: f32,
    /// Rows of the embedding table.
    pub vocabulary: usize,
    /// Name of the output matrix: its own, or the embedding table when they are tied.
    pub output: String,
}

impl LlamaConfig {
    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// Another architecture, a missing key, or sizes that do not go together.
    pub fn from_gguf(file: &Gguf) -> Result<Self, ModelError> {
        let arch = file.str("general.architecture")?;
        let architecture = match arch {
            "llama" => Architecture::Llama,
            "qwen2" => Architecture::Qwen2,
            "qwen3" => Architecture::Qwen3,
            other => {
                let problem = "this engine runs llama, qwen2 and qwen3 files; choose one of those";
                return Err(ModelError::config("general.architecture", other, problem));
            }
        };
        let size = |key: &str, most: u32| -> Result<usize, ModelError> {
            let key = format!("{arch}.{key}");
            let value = file.u32(&key)?;
            if value == 0 || value > most {
                return Err(ModelError::config(key, value, format!("must lie between 1 and {most}")));
            }
            Ok(value as usize)
        };
        let width = size("embedding_length", 1 << 16)?;
        let heads = size("attention.head_count", 1024)?;
        let kv_heads = size("attention.head_count_kv", 1024).or_else(|e| match e {
            ModelError::Format(e) if e.is_not_found() => Ok(heads),
            other => Err(other),
        })?;
        let head_dim = size("attention.key_length", 1024).or_else(|e| match e {
            ModelError::Format(e) if e.is_not_found() => Ok(width / heads),
            other => Err(other),
        })?;
        if !heads.is_multiple_of(kv_heads) {
            let problem = format!("does not divide the {heads} query heads");
            return Err(ModelError::config(format!("{arch}.attention.head_count_kv"), kv_heads, problem));
        }
        if head_dim == 0 || !head_dim.is_multiple_of(2) {
            return Err(ModelError::config("head width", head_dim, "must be even for rotary embeddings"));
        }
        if let Some(dim) = file.optional::<u32>(&format!("{arch}.rope.dimension_count"))?
            && dim as usize != head_dim
        {
            let problem = format!("rotating part of a head of {head_dim} is not supported");
            return Err(ModelError::config(format!("{arch}.rope.dimension_count"), dim, problem));
        }
        if let Some(kind) = file.optional::<&str>(&format!("{arch}.rope.scaling.type"))?
            && kind != "none"
        {
            let problem = "scaled rotary embeddings are not supported; choose a model without";
            return Err(ModelError::config(format!("{arch}.rope.scaling.type"), kind, problem));
        }
        let base_key = format!("{arch}.rope.freq_base");
        let rope_base = file.optional::<f32>(&base_key)?.unwrap_or(10_000.0);
        if !(rope_base.is_finite() && rope_base > 1.0) {
            return Err(ModelError::config(base_key, rope_base, "must be a number above 1"));
        }
        let eps_key = format!("{arch}.attention.layer_norm_rms_epsilon");
        let eps = file.f32(&eps_key)?;
        if !(eps > 0.0 && eps < 1.0) {
            return Err(ModelError::config(eps_key, eps, "must be a number between 0 and 1"));
        }
        let vocabulary = file.tensor("token_embd.weight")?.shape.first().copied().unwrap_or(0);
        let own_output = file.tensor("output.weight").is_ok();
        Ok(Self {
            architecture,
            name: file.optional::<&str>("general.name")?.unwrap_or(arch).to_owned(),
            layers: size("block_count", 1024)?,
            width,
            feed_forward: size("feed_forward_length", 1 << 20)?,
            heads,
            kv_heads,
            head_dim,
            context: size("context_length", 1 << 26)?,
            rope_base,
            eps,
            vocabulary,
            output: if own_output { "output.weight" } else { "token_embd.weight" }.to_owned(),
        })
    }

    /// How rotary embeddings pair columns.
    pub fn rope_style(&self) -> RopeStyle {
        match self.architecture {
            Architecture::Llama => RopeStyle::Pairs,
            Architecture::Qwen2 | Architecture::Qwen3 => RopeStyle::Halves,
        }
    }
}
