//! Vocabularies from GGUF metadata (`tokenizer.ggml.*`).

use super::pretokenize::PreTokenizer;
use super::tokenizer::{BpeConfig, TokenKind, Tokenizer, TokenizerError};
use crate::formats::gguf::Gguf;

impl Tokenizer {
    /// The vocabulary of a GGUF file.
    ///
    /// # Errors
    /// A kind of vocabulary other than byte-level BPE, or damaged lists.
    pub fn from_gguf(file: &Gguf) -> Result<Self, TokenizerError> {
        let unsupported = |value: String| TokenizerError::Unsupported {
            what: "tokenizer",
            value,
            supported: "byte-level BPE",
        };
        let model = file.str("tokenizer.ggml.model").map_err(|e| unsupported(e.to_string()))?;
        if model != "gpt2" {
            return Err(unsupported(format!("vocabularies of kind `{model}` (byte-level BPE is `gpt2`)")));
        }
        let pre_name = file.optional::<&str>("tokenizer.ggml.pre").ok().flatten().unwrap_or("default");
        let pre = PreTokenizer::from_gguf_name(pre_name)
            .ok_or_else(|| unsupported(format!("the pre-tokenizer `{pre_name}`")))?;
        let strings = |key: &str| -> Result<Vec<String>, TokenizerError> {
            let list = file.strings(key).map_err(|e| unsupported(e.to_string()))?;
            Ok(list.into_iter().map(str::to_owned).collect())
        };
        let id = |key: &str| file.optional::<u32>(key).ok().flatten();
        let mut config = BpeConfig::new(strings("tokenizer.ggml.tokens")?, pre);
        if let Ok(types) = file.i32s("tokenizer.ggml.token_type") {
            config.kinds = types.into_iter().map(TokenKind::from_gguf).collect();
        }
        config.merges = strings("tokenizer.ggml.merges")?;
        config.whole_pieces_first = pre_name == "llama-bpe";
        config.bos = id("tokenizer.ggml.bos_token_id");
        config.add_bos =
            file.optional::<bool>("tokenizer.ggml.add_bos_token").ok().flatten().unwrap_or(false);
        config.eos = id("tokenizer.ggml.eos_token_id");
        config.end_of_generation =
            ["eot", "eom"].iter().filter_map(|name| id(&format!("tokenizer.ggml.{name}_token_id"))).collect();
        Self::new(config)
    }
}
