//! What the files of a Whisper model say: sizes from the weights, ids from a JSON file and the vocabulary.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::formats::TensorSource;
use crate::models::ModelError;
use crate::text::tokenizer::Tokenizer;

/// Sizes of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WhisperConfig {
    /// Mel filters.
    pub mels: usize,
    /// Columns of both halves.
    pub width: usize,
    /// Heads of 64 columns.
    pub heads: usize,
    /// Encoder layers.
    pub encoder_layers: usize,
    /// Decoder layers.
    pub decoder_layers: usize,
    /// Columns inside the feed-forward layers.
    pub feed_forward: usize,
    /// Rows of the encoder's positions (1500: 30 s).
    pub audio_positions: usize,
    /// Rows of the decoder's positions (448).
    pub text_positions: usize,
    /// Tokens.
    pub vocabulary: usize,
}

impl WhisperConfig {
    /// Sizes by the shapes of a CTranslate2 file.
    ///
    /// # Errors
    /// Tensors missing, or sizes that do not go together.
    pub fn from_weights(file: &dyn TensorSource) -> Result<Self, ModelError> {
        let dims = |name: &str, rank: usize| -> Result<Vec<usize>, ModelError> {
            let shape = file.tensor(name)?.shape;
            if shape.len() == rank && shape.iter().all(|&d| d > 0 && d <= 1 << 20) {
                return Ok(shape);
            }
            Err(ModelError::config(name, format!("{shape:?}"), format!("needs {rank} sensible dimensions")))
        };
        let names = file.names();
        let layers = |half: &str| {
            let has = |n: &usize| names.iter().any(|name| name.starts_with(&format!("{half}/layer_{n}/")));
            (0..256).take_while(has).count()
        };
        let conv = dims("encoder/conv1/weight", 3)?;
        let width = conv[0];
        if !width.is_multiple_of(64) {
            return Err(ModelError::config("width", width, "Whisper's heads have 64 columns"));
        }
        Ok(Self {
            mels: conv[1],
            width,
            heads: width / 64,
            encoder_layers: layers("encoder"),
            decoder_layers: layers("decoder"),
            feed_forward: dims("encoder/layer_0/ffn/linear_0/weight", 2)?[0],
            audio_positions: dims("encoder/position_encodings/encodings", 2)?[0],
            text_positions: dims("decoder/position_encodings/encodings", 2)?[0],
            vocabulary: dims("decoder/embeddings/weight", 2)?[0],
        })
    }
}

/// CTranslate2's `config.json`, or the hub's `generation_config.json` with its own names for the same lists.
#[derive(Deserialize)]
struct ConfigFile {
    #[serde(default, alias = "suppress_tokens")]
    suppress_ids: Vec<u32>,
    #[serde(default, alias = "begin_suppress_tokens")]
    suppress_ids_begin: Vec<u32>,
    #[serde(default)]
    lang_ids: Vec<u32>,
    #[serde(default)]
    lang_to_id: BTreeMap<String, u32>,
}

/// Ids with a meaning of their own.
#[derive(Clone, Debug)]
pub struct SpecialIds {
    /// Start of a transcript.
    pub start: u32,
    /// End of the text.
    pub end: u32,
    /// "Nobody speaks": its probability at the start token is the no-speech test.
    pub no_speech: u32,
    /// No timestamps.
    pub no_timestamps: u32,
    /// Transcribe, do not translate; none in English-only models.
    pub transcribe: Option<u32>,
    /// Language code and its token; empty in English-only models.
    pub languages: Vec<(String, u32)>,
    /// Never drawn: sounds, music, control tokens.
    pub suppress: Vec<u32>,
    /// Not drawn as the first token.
    pub suppress_first: Vec<u32>,
}

impl SpecialIds {
    /// From CTranslate2's `config.json` or the hub's `generation_config.json`, and the vocabulary.
    ///
    /// # Errors
    /// Malformed JSON or a vocabulary without Whisper's tokens.
    pub fn new(config_json: &[u8], tokenizer: &Tokenizer) -> Result<Self, ModelError> {
        let file: ConfigFile = serde_json::from_slice(config_json)
            .map_err(|e| ModelError::config("config.json", e, "fetch the model again"))?;
        let id = |token: &str| {
            tokenizer.token_id(token.as_bytes()).ok_or_else(|| {
                ModelError::config("tokenizer.json", token, "the token is missing; fetch the model again")
            })
        };
        let size = tokenizer.vocabulary_size() as u32;
        let valid = |ids: Vec<u32>| ids.into_iter().filter(|&i| i < size).collect::<Vec<_>>();
        let language = |id: u32| {
            let bytes = tokenizer.token_bytes(id)?;
            let code = std::str::from_utf8(bytes).ok()?.strip_prefix("<|")?.strip_suffix("|>")?;
            Some((code.to_owned(), id))
        };
        let no_timestamps = id("<|notimestamps|>")?;
        // English-only vocabularies hold the language tokens too, but the models were not trained on them; they are
        // told by the end of text standing at 50256, one below the multilingual one.
        let end = id("<|endoftext|>")?;
        let multilingual = end != 50_256;
        let languages = if multilingual {
            let ids = if file.lang_ids.is_empty() {
                file.lang_to_id.into_values().collect()
            } else {
                file.lang_ids
            };
            valid(ids).into_iter().filter_map(language).collect()
        } else {
            Vec::new()
        };
        Ok(Self {
            start: id("<|startoftranscript|>")?,
            end,
            no_speech: id("<|nospeech|>").or_else(|_| id("<|nocaptions|>")).unwrap_or(no_timestamps - 1),
            no_timestamps,
            transcribe: if multilingual { Some(id("<|transcribe|>")?) } else { None },
            languages,
            suppress: valid(file.suppress_ids),
            suppress_first: valid(file.suppress_ids_begin),
        })
    }

    /// The prompt for a language (ignored by English-only models): `None` when the model does not know it.
    pub fn prompt(&self, language: &str) -> Option<Vec<u32>> {
        let mut ids = vec![self.start];
        if let Some(transcribe) = self.transcribe {
            let (_, id) = self.languages.iter().find(|(code, _)| code == language)?;
            ids.extend([*id, transcribe]);
        }
        ids.push(self.no_timestamps);
        Some(ids)
    }
}
