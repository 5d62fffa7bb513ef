//! Tokenizers from Hugging Face's `tokenizer.json`.
//!
//! The format can describe far more than byte-level BPE. What a published byte-level tokenizer uses is
//! read exactly; any other model, normaliser or pre-tokeniser is refused by name rather than
//! approximated, for a tokenizer that is almost right makes a model that is almost right.
//!
//! Taken: `model` of type BPE; `normalizer` null or NFC; `pre_tokenizer` ByteLevel (GPT-2, Whisper),
//! Digits + ByteLevel (SmolLM), Split by the expression of Qwen2 or Llama 3 + ByteLevel; `added_tokens`,
//! special ones as control tokens. `post_processor` is left alone: prompts are built by chat templates
//! and by the models themselves.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::pretokenize::PreTokenizer;
use super::tokenizer::{BpeConfig, Tokenizer, TokenizerError};
use super::vocabulary::{MAX_TOKENS, TokenKind};

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// [`TokenizerError::Json`] for malformed files, [`TokenizerError::Unsupported`] for what is not
    /// byte-level BPE, and whatever [`Tokenizer::new`] refuses.
    pub fn from_tokenizer_json(json: &[u8]) -> Result<Self, TokenizerError> {
        Self::new(BpeConfig::from_tokenizer_json(json)?)
    }
}

impl BpeConfig {
    /// The configuration in a `tokenizer.json`; errors as [`Tokenizer::from_tokenizer_json`].
    pub fn from_tokenizer_json(json: &[u8]) -> Result<Self, TokenizerError> {
        let file: File = serde_json::from_slice(json)?;
        let model = file.model;
        require("model", &model.kind, model.kind == "BPE", "BPE")?;
        let absent = |text: &Option<String>| text.as_deref().is_none_or(str::is_empty);
        let suffixes = [&model.continuing_subword_prefix, &model.end_of_word_suffix];
        let plain =
            suffixes.into_iter().all(absent) && !model.byte_fallback && model.dropout.unwrap_or(0.0) == 0.0;
        require("the BPE model", "with affixes, byte fallback or dropout", plain, "plain byte-level BPE")?;

        // Ids may leave gaps, but a file cannot claim memory for what it does not hold.
        let most = (2 * (model.vocab.len() + file.added_tokens.len()) + 4096).min(MAX_TOKENS);
        let (mut tokens, mut kinds) = (Vec::new(), Vec::new());
        let mut put = |id: u32, text: String, kind: TokenKind| {
            let at = id as usize;
            if at >= most {
                return Err(TokenizerError::IdOutOfRange { what: "token", id, size: most });
            }
            if at >= tokens.len() {
                tokens.resize(at + 1, String::new());
                kinds.resize(at + 1, TokenKind::Unused);
            }
            if kind == TokenKind::Normal && kinds[at] == TokenKind::Normal {
                let (first, second) = (std::mem::take(&mut tokens[at]), text);
                return Err(TokenizerError::TwoTokens { id, first, second });
            }
            tokens[at] = text;
            kinds[at] = kind;
            Ok(())
        };
        for (text, id) in model.vocab {
            put(id, text, TokenKind::Normal)?;
        }
        for added in file.added_tokens {
            let kind = if added.special { TokenKind::Control } else { TokenKind::UserDefined };
            put(added.id, added.content, kind)?;
        }
        Ok(Self {
            kinds,
            merges: model.merges.into_iter().map(Merge::into_rule).collect(),
            whole_pieces_first: model.ignore_merges,
            normalize_nfc: nfc(file.normalizer.as_ref())?,
            ..Self::new(tokens, pre_tokenizer(&file.pre_tokenizer)?)
        })
    }
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    normalizer: Option<Value>,
    #[serde(default)]
    pre_tokenizer: Value,
    model: Model,
}

#[derive(Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct Model {
    /// Older files leave it out; they are all BPE if they have merges, which is required below.
    #[serde(rename = "type", default = "bpe")]
    kind: String,
    vocab: BTreeMap<String, u32>,
    merges: Vec<Merge>,
    dropout: Option<f32>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
}

fn bpe() -> String {
    "BPE".into()
}

/// A merge rule as one text (older files) or as a pair.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Text(String),
    Pair(String, String),
}

impl Merge {
    fn into_rule(self) -> String {
        match self {
            Self::Text(rule) => rule,
            Self::Pair(left, right) => format!("{left} {right}"),
        }
    }
}

fn require(
    what: &'static str,
    value: &str,
    met: bool,
    supported: &'static str,
) -> Result<(), TokenizerError> {
    if met { Ok(()) } else { Err(TokenizerError::Unsupported { what, value: value.to_owned(), supported }) }
}

/// Whether the normaliser is NFC; the only other one taken is none.
fn nfc(normalizer: Option<&Value>) -> Result<bool, TokenizerError> {
    let Some(normalizer) = normalizer else { return Ok(false) };
    let kind = normalizer["type"].as_str().unwrap_or_default();
    let empty_chain = kind == "Sequence" && normalizer["normalizers"].as_array().is_some_and(Vec::is_empty);
    require("normalizer", kind, kind == "NFC" || empty_chain, "none, NFC")?;
    Ok(kind == "NFC")
}

fn pre_tokenizer(pre: &Value) -> Result<PreTokenizer, TokenizerError> {
    let unsupported = || TokenizerError::Unsupported {
        what: "pre_tokenizer",
        value: pre.to_string().chars().take(200).collect(),
        supported: "those of GPT-2, SmolLM, Qwen2 and Llama 3",
    };
    let kind = |step: &Value| step["type"].as_str().unwrap_or_default().to_owned();
    let is_byte_level = |step: &Value, splits: bool| {
        kind(step) == "ByteLevel"
            && step["add_prefix_space"] != Value::Bool(true)
            && step["use_regex"].as_bool().unwrap_or(true) == splits
    };
    if is_byte_level(pre, true) {
        return Ok(PreTokenizer::Gpt2);
    }
    let steps =
        pre["pretokenizers"].as_array().filter(|_| kind(pre) == "Sequence").ok_or_else(unsupported)?;
    let [first, second] = steps.as_slice() else { return Err(unsupported()) };
    if kind(first) == "Digits"
        && first["individual_digits"] == Value::Bool(true)
        && is_byte_level(second, true)
    {
        return Ok(PreTokenizer::SmolLm);
    }
    let isolated = first["behavior"] == "Isolated" && first["invert"] != Value::Bool(true);
    if kind(first) != "Split" || !isolated || !is_byte_level(second, false) {
        return Err(unsupported());
    }
    // As published, with the contractions' case left to a flag.
    const HEAD: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|";
    const TAIL: &str = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    let regex = first["pattern"]["Regex"].as_str().ok_or_else(unsupported)?;
    match regex.strip_prefix(HEAD).and_then(|rest| rest.strip_suffix(TAIL)) {
        Some(r"\p{N}") => Ok(PreTokenizer::Qwen2),
        Some(r"\p{N}{1,3}") => Ok(PreTokenizer::Llama3),
        _ => Err(unsupported()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::tokenizer::Special;

    fn file() -> Value {
        json!({
            "added_tokens": [
                {"id": 3, "content": "<|end|>", "special": true},
                {"id": 5, "content": "<call>", "special": false},
            ],
            "normalizer": null,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
            "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<|end|>": 3}, "merges": ["a b"]},
        })
    }

    fn read(file: &Value) -> Result<Tokenizer, TokenizerError> {
        Tokenizer::from_tokenizer_json(file.to_string().as_bytes())
    }

    #[test]
    fn a_byte_level_file_is_read() {
        let tokenizer = read(&file()).unwrap();
        assert_eq!(tokenizer.vocabulary_size(), 6);
        assert_eq!(tokenizer.encode("ab<|end|><call>", Special::Parse), [2, 3, 5]);
        assert_eq!(tokenizer.kind(4), Some(TokenKind::Unused));
        assert!(tokenizer.is_end_of_generation(3));
        let mut pairs = file();
        pairs["model"]["merges"] = json!([["a", "b"]]);
        assert_eq!(read(&pairs).unwrap().encode("ab", Special::AsText), [2]);
    }

    #[test]
    fn published_pre_tokenizers_are_known_and_others_refused() {
        let split = |regex: &str| {
            json!({"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false},
                {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
            ]})
        };
        let qwen2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
        assert_eq!(pre_tokenizer(&split(qwen2)).unwrap(), PreTokenizer::Qwen2);
        let llama3 = qwen2.replace(r"|\p{N}|", r"|\p{N}{1,3}|");
        assert_eq!(pre_tokenizer(&split(&llama3)).unwrap(), PreTokenizer::Llama3);
        let smollm = json!({"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": true}, {"type": "ByteLevel", "use_regex": true},
        ]});
        assert_eq!(pre_tokenizer(&smollm).unwrap(), PreTokenizer::SmolLm);
        for other in [
            Value::Null,
            json!({"type": "Metaspace"}),
            json!({"type": "ByteLevel", "add_prefix_space": true}),
            split(r"\w+"),
            json!({"type": "Sequence", "pretokenizers": []}),
        ] {
            assert!(matches!(pre_tokenizer(&other), Err(TokenizerError::Unsupported { .. })), "{other}");
        }
    }

    #[test]
    fn nfc_is_taken_and_other_normalizers_are_refused() {
        let mut nfc = file();
        nfc["normalizer"] = json!({"type": "NFC"});
        assert!(BpeConfig::from_tokenizer_json(nfc.to_string().as_bytes()).unwrap().normalize_nfc);
        nfc["normalizer"] = json!({"type": "Lowercase"});
        assert!(matches!(read(&nfc), Err(TokenizerError::Unsupported { what: "normalizer", .. })));
    }

    #[test]
    fn hostile_files_are_refused() {
        let with = |change: &dyn Fn(&mut Value)| {
            let mut changed = file();
            change(&mut changed);
            read(&changed).unwrap_err()
        };
        let error = with(&|file| file["model"]["vocab"]["x"] = json!(u32::MAX));
        assert!(matches!(error, TokenizerError::IdOutOfRange { id: u32::MAX, .. }));
        let error = with(&|file| file["model"]["vocab"]["x"] = json!(0));
        assert!(matches!(error, TokenizerError::TwoTokens { id: 0, .. }));
        let error = with(&|file| file["model"]["vocab"]["x"] = json!(-1));
        assert!(matches!(error, TokenizerError::Json(_)));
        let error = with(&|file| file["added_tokens"][0]["id"] = json!(1 << 30));
        assert!(matches!(error, TokenizerError::IdOutOfRange { .. }));
        let error = with(&|file| file["model"]["vocab"] = json!({}));
        assert!(matches!(error, TokenizerError::UnknownMergeToken { .. }));
        let error = with(&|file| file["model"]["type"] = json!("Unigram"));
        assert!(matches!(error, TokenizerError::Unsupported { what: "model", .. }));
        let error = with(&|file| file["model"]["byte_fallback"] = json!(true));
        assert!(matches!(error, TokenizerError::Unsupported { .. }));
        for bytes in [&b""[..], b"{", b"[]", b"\xff", b"{\"model\": 3}"] {
            assert!(matches!(Tokenizer::from_tokenizer_json(bytes), Err(TokenizerError::Json(_))));
        }
        let deep = "[".repeat(1 << 20);
        assert!(Tokenizer::from_tokenizer_json(deep.as_bytes()).is_err());
    }
}
