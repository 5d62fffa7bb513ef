//! Tokenizers from GGUF metadata (`tokenizer.ggml.*`), with llama.cpp's defaults for what a file leaves out.

use super::pretokenize::PreTokenizer;
use super::tokenizer::{BpeConfig, END_OF_GENERATION, TokenKind, Tokenizer, TokenizerError};
use crate::formats::gguf::Gguf;

/// Names in `tokenizer.ggml.pre` whose vocabularies take a piece that is a token as it is, before any
/// merge.
const WHOLE_PIECES_FIRST: [&str; 10] = [
    "llama-bpe",
    "llama3",
    "llama-v3",
    "lfm2",
    "falcon3",
    "falcon-h1",
    "pixtral",
    "midm-2.0",
    "glm4",
    "glm5",
];

/// Names whose sequences start with the begin-of-sequence token unless the file says otherwise.
const ADD_BOS: [&str; 8] =
    ["llama-bpe", "llama3", "llama-v3", "lfm2", "falcon3", "falcon-h1", "pixtral", "midm-2.0"];

impl Tokenizer {
    /// Reads the tokenizer of a GGUF file.
    ///
    /// # Errors
    /// [`TokenizerError::Format`] for missing keys or other types, [`TokenizerError::Unsupported`] for what
    /// is not byte-level BPE with a known pre-tokeniser, and whatever [`Tokenizer::new`] refuses.
    pub fn from_gguf(file: &Gguf) -> Result<Self, TokenizerError> {
        Self::new(BpeConfig::from_gguf(file)?)
    }
}

impl BpeConfig {
    /// The configuration in a GGUF file; errors as [`Tokenizer::from_gguf`].
    pub fn from_gguf(file: &Gguf) -> Result<Self, TokenizerError> {
        let model = file.str("tokenizer.ggml.model")?;
        if model != "gpt2" {
            return Err(TokenizerError::Unsupported {
                what: "tokenizer.ggml.model",
                value: model.to_owned(),
                supported: "gpt2 (byte-level BPE)",
            });
        }
        let name = file.str("tokenizer.ggml.pre")?;
        let pre = PreTokenizer::from_gguf_name(name).ok_or_else(|| TokenizerError::Unsupported {
            what: "tokenizer.ggml.pre",
            value: name.to_owned(),
            supported: "those of GPT-2, SmolLM, Qwen2 and Llama 3",
        })?;
        let strings = |key: &str| -> Result<Vec<String>, TokenizerError> {
            Ok(file.strings(key)?.into_iter().map(str::to_owned).collect())
        };
        let tokens = strings("tokenizer.ggml.tokens")?;
        let mut kinds: Vec<TokenKind> = match file.optional::<Vec<i32>>("tokenizer.ggml.token_type")? {
            Some(types) => types.into_iter().map(TokenKind::from_gguf).collect(),
            // Early files have no types; their control tokens look alike.
            None => tokens.iter().map(|token| kind_by_shape(token)).collect(),
        };
        // Some files call them normal; to a reply they are its end all the same (as in llama.cpp).
        for (token, kind) in tokens.iter().zip(&mut kinds) {
            if END_OF_GENERATION.contains(&token.as_str()) {
                *kind = TokenKind::Control;
            }
        }
        let add_bos = file.optional::<bool>("tokenizer.ggml.add_bos_token")?;
        let bos = file.optional::<u32>("tokenizer.ggml.bos_token_id")?;
        let mut end_of_generation = Vec::new();
        for key in ["tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"] {
            end_of_generation.extend(file.optional::<u32>(key)?);
        }
        Ok(Self {
            kinds,
            merges: strings("tokenizer.ggml.merges")?,
            whole_pieces_first: WHOLE_PIECES_FIRST.contains(&name),
            bos,
            add_bos: add_bos.unwrap_or(ADD_BOS.contains(&name)) && bos.is_some(),
            eos: file.optional("tokenizer.ggml.eos_token_id")?,
            end_of_generation,
            ..Self::new(tokens, pre)
        })
    }
}

/// The kind of a token in a file without types.
fn kind_by_shape(token: &str) -> TokenKind {
    if token.starts_with("<|") && token.ends_with("|>") { TokenKind::Control } else { TokenKind::Normal }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::GgufWriter;
    use crate::text::tokenizer::Special;

    const TOKENS: [&str; 6] = ["a", "b", "ab", "</s>", "<|x|>", "<call>"];

    fn writer(pre: &str) -> GgufWriter {
        let mut writer = GgufWriter::new(3);
        writer.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", pre);
        writer.strings("tokenizer.ggml.tokens", &TOKENS).strings("tokenizer.ggml.merges", &["a b"]);
        writer
    }

    fn read(writer: GgufWriter) -> Result<BpeConfig, TokenizerError> {
        BpeConfig::from_gguf(&Gguf::from_bytes(writer.finish()).unwrap())
    }

    #[test]
    fn a_file_is_read() {
        let mut writer = writer("qwen2");
        writer.i32s("tokenizer.ggml.token_type", &[1, 1, 1, 1, 3, 4]);
        writer.u32("tokenizer.ggml.eos_token_id", 4).u32("tokenizer.ggml.bos_token_id", 4);
        let config = read(writer).unwrap();
        assert_eq!(config.pre, PreTokenizer::Qwen2);
        assert!(!config.add_bos && !config.whole_pieces_first);
        let tokenizer = Tokenizer::new(config).unwrap();
        assert_eq!(tokenizer.encode("ab<|x|></s><call>", Special::Parse), [2, 4, 3, 5]);
        assert_eq!(tokenizer.end_of_generation(), [3, 4]);
    }

    #[test]
    fn defaults_are_those_of_the_family() {
        let config = read(writer("llama-bpe")).unwrap();
        assert!(config.whole_pieces_first);
        assert!(!config.add_bos, "there is no such token");
        assert_eq!(config.kinds[4], TokenKind::Control);
        assert_eq!(config.kinds[5], TokenKind::Normal);
        let mut with_bos = writer("llama-bpe");
        with_bos.u32("tokenizer.ggml.bos_token_id", 4);
        assert!(read(with_bos).unwrap().add_bos);
    }

    #[test]
    fn other_tokenizers_and_types_are_refused() {
        assert!(matches!(read(GgufWriter::new(3)), Err(TokenizerError::Format(_))));
        assert!(matches!(
            read(writer("mystery")),
            Err(TokenizerError::Unsupported { what: "tokenizer.ggml.pre", .. })
        ));
        let mut unigram = GgufWriter::new(3);
        unigram.string("tokenizer.ggml.model", "llama");
        assert!(matches!(
            read(unigram),
            Err(TokenizerError::Unsupported { what: "tokenizer.ggml.model", .. })
        ));
        let mut types = writer("qwen2");
        types.strings("tokenizer.ggml.token_type", &["1"]);
        assert!(matches!(read(types), Err(TokenizerError::Format(_))));
        let mut few = writer("qwen2");
        few.i32s("tokenizer.ggml.token_type", &[1]);
        let error = read(few).and_then(Tokenizer::new).unwrap_err();
        assert!(matches!(error, TokenizerError::KindCount { kinds: 1, tokens: 6 }));
        let mut range = writer("qwen2");
        range.u32("tokenizer.ggml.eos_token_id", 6);
        let error = read(range).and_then(Tokenizer::new).unwrap_err();
        assert!(matches!(error, TokenizerError::IdOutOfRange { id: 6, .. }));
    }
}
