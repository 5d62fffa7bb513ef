//! Text to token ids and back: byte-level BPE with control tokens kept apart from text.
//!
//! Every model here was trained on byte-level BPE: control tokens are cut out first, a
//! [`PreTokenizer`] cuts the rest into pieces, and merges (module `bpe`) join the bytes of each.
//! There is one implementation for all; a model's file only gives [`BpeConfig`].
//!
//! A user's text must not become control tokens: someone who says or pastes `<|im_end|>` would end their
//! own turn and write the model's next one. So [`Tokenizer::encode`] has to be told which it is:
//!
//! * [`Special::AsText`]: nothing in the text is a control token. Not a matter of matching alone: merge
//!   rules that make a control token are left out (Qwen2.5 has one for `</s>`, which ends replies).
//! * [`Special::Parse`]: control tokens are recognised, for what a chat template wrote itself.
//!
//! ```
//! # use repartee_engine::text::{pretokenize::PreTokenizer, tokenizer::*};
//! let tokens = ["h", "i", "hi", "<|end|>"].map(String::from).to_vec();
//! let kinds = vec![TokenKind::Normal, TokenKind::Normal, TokenKind::Normal, TokenKind::Control];
//! let config = BpeConfig { kinds, merges: vec!["h i".into()], ..BpeConfig::new(tokens, PreTokenizer::Gpt2) };
//! let tokenizer = Tokenizer::new(config)?;
//! assert_eq!(tokenizer.encode("hi<|end|>", Special::Parse), [2, 3]);
//! assert!(!tokenizer.encode("hi<|end|>", Special::AsText).contains(&3));
//! assert_eq!(tokenizer.decode(&[2, 3])?, "hi");
//! # Ok::<(), TokenizerError>(())
//! ```
//!
//! Equality with the reference (llama.cpp for GGUF files, Hugging Face `tokenizers` for Whisper) is held
//! by tests on the published vocabularies.

use aho_corasick::{AhoCorasick, MatchKind};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::bpe::{Merges, Scratch};
use super::detokenize::Detokenizer;
use super::pretokenize::PreTokenizer;
use super::vocabulary::Vocabulary;
use crate::formats::FormatError;

pub use super::vocabulary::TokenKind;

/// What a tokenizer is made of, as plain data.
#[derive(Debug, Clone)]
pub struct BpeConfig {
    /// Each token's published text, by id: GPT-2's byte alphabet for [`TokenKind::Normal`], literal for
    /// the other kinds.
    pub tokens: Vec<String>,
    /// Each token's kind, by id.
    pub kinds: Vec<TokenKind>,
    /// Merge rules `left right` in the order of their rank.
    pub merges: Vec<String>,
    /// How text is cut before merging.
    pub pre: PreTokenizer,
    /// A piece that is a token as a whole is that token, whatever the merge rules say (Llama 3).
    pub whole_pieces_first: bool,
    /// Text is brought to Unicode NFC first (Qwen2's `tokenizer.json` asks for it, its GGUF does not).
    pub normalize_nfc: bool,
    /// Begin-of-sequence token.
    pub bos: Option<u32>,
    /// A sequence starts with [`bos`](Self::bos) even if the chat template does not write it.
    pub add_bos: bool,
    /// End-of-sequence token.
    pub eos: Option<u32>,
    /// Further tokens that end a reply, beside `eos` and the control tokens with well-known names.
    pub end_of_generation: Vec<u32>,
}

impl BpeConfig {
    /// A configuration of normal tokens alone, with no merges and no special ids.
    pub fn new(tokens: Vec<String>, pre: PreTokenizer) -> Self {
        Self {
            kinds: vec![TokenKind::Normal; tokens.len()],
            tokens,
            merges: Vec::new(),
            pre,
            whole_pieces_first: false,
            normalize_nfc: false,
            bos: None,
            add_bos: false,
            eos: None,
            end_of_generation: Vec::new(),
        }
    }
}

/// Names of control tokens that end a reply in published models; the list is llama.cpp's
/// (`llama-vocab.cpp`, `special_eog_ids`). The last eight belong to code completion: in a reply they mean
/// that it is over.
pub(super) const END_OF_GENERATION: [&str; 29] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "<|fim_pad|>",
    "<fim_pad>",
    "<fim-pad>",
    "<|repo_name|>",
    "<reponame>",
    "<|fim_repo|>",
    "<fim-repo>",
    "<|file_sep|>",
];

/// Bounds on the tokens that are searched for as literal text, for hostile files: the largest published
/// vocabularies have some thousands of short ones.
const MAX_LITERALS: usize = 1 << 16;
const MAX_LITERAL_BYTES: usize = 1 << 20;

/// Why a vocabulary was refused, or ids could not be decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// There are no tokens.
    #[error("the vocabulary is empty: the file holds no tokenizer")]
    EmptyVocabulary,
    /// More tokens or longer texts than any model has.
    #[error("the vocabulary is too large ({tokens} tokens): the file is damaged")]
    TooLarge {
        /// Tokens in the file.
        tokens: usize,
    },
    /// The list of kinds does not belong to the list of tokens.
    #[error("{kinds} token types for {tokens} tokens: the file is damaged")]
    KindCount {
        /// Length of the list of kinds.
        kinds: usize,
        /// Length of the list of tokens.
        tokens: usize,
    },
    /// A text stands for two ids.
    #[error("tokens {first} and {second} are both {token:?}")]
    DuplicateToken {
        /// The text.
        token: String,
        /// The lower id.
        first: u32,
        /// The higher id.
        second: u32,
    },
    /// An id stands for two texts.
    #[error("token {id} is both {first:?} and {second:?}")]
    TwoTokens {
        /// The id.
        id: u32,
        /// One text.
        first: String,
        /// The other.
        second: String,
    },
    /// A normal token is not written in the byte alphabet, so this is another kind of tokenizer.
    #[error("token {id} ({token:?}) has {character:?}, which no byte-level tokenizer has")]
    NotByteLevel {
        /// The token's id.
        id: u32,
        /// Its published text.
        token: String,
        /// The character outside the alphabet.
        character: char,
    },
    /// A merge rule is not two texts with a space between.
    #[error("merge rule {rank} ({rule:?}) is not two tokens with a space between")]
    MalformedMerge {
        /// The rule's position in the file.
        rank: usize,
        /// The rule.
        rule: String,
    },
    /// A part or the product of a merge rule is no token.
    #[error("merge rule {rank} needs the token {token:?}, which is not in the vocabulary")]
    UnknownMergeToken {
        /// The rule's position in the file.
        rank: usize,
        /// The text that is no token.
        token: String,
    },
    /// An id outside the vocabulary.
    #[error("{what} {id} is outside the vocabulary of {size} tokens")]
    IdOutOfRange {
        /// What has this id: a role in the configuration, or a token to decode.
        what: &'static str,
        /// The id.
        id: u32,
        /// Tokens in the vocabulary.
        size: usize,
    },
    /// More literal tokens than can be searched for.
    #[error("{count} control and user-defined tokens of {bytes} bytes: more than any model has")]
    TooManyLiterals {
        /// How many there are.
        count: usize,
        /// Their texts' length together.
        bytes: usize,
    },
    /// The file asks for a kind of tokenizer, or a step of one, that is not implemented.
    #[error("{what} {value:?} is not supported; supported: {supported}")]
    Unsupported {
        /// The field.
        what: &'static str,
        /// Its value in the file.
        value: String,
        /// What it may be.
        supported: &'static str,
    },
    /// `tokenizer.json` could not be read.
    #[error("tokenizer.json is malformed: {0}")]
    Json(#[from] serde_json::Error),
    /// The model file lacks a field, or has it with another type.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// How control tokens in a text are to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// They are text: for everything that a user or another model wrote.
    AsText,
    /// They are control tokens: for what a chat template wrote.
    Parse,
}

/// A byte-level BPE tokenizer.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    vocabulary: Vocabulary,
    merges: Merges,
    pre: PreTokenizer,
    whole_pieces_first: bool,
    normalize_nfc: bool,
    user_defined: Option<Literals>,
    all_literals: Option<Literals>,
    bos: Option<u32>,
    add_bos: bool,
    eos: Option<u32>,
    end_of_generation: Vec<u32>,
}

impl Tokenizer {
    /// Checks and prepares a configuration.
    ///
    /// # Errors
    /// Anything that does not hold together; see [`TokenizerError`].
    pub fn new(config: BpeConfig) -> Result<Self, TokenizerError> {
        let mut vocabulary = Vocabulary::new(&config.tokens, config.kinds)?;
        let size = vocabulary.len();
        let mut end_of_generation = config.end_of_generation;
        for (what, ids) in [
            ("begin-of-sequence token", config.bos.as_slice()),
            ("end-of-sequence token", config.eos.as_slice()),
            ("end-of-generation token", &end_of_generation),
        ] {
            for &id in ids {
                if id as usize >= size {
                    return Err(TokenizerError::IdOutOfRange { what, id, size });
                }
                vocabulary.mark_control(id);
            }
        }
        end_of_generation.extend(config.eos);
        for (id, kind, bytes) in vocabulary.iter() {
            if kind == TokenKind::Control && END_OF_GENERATION.iter().any(|name| name.as_bytes() == bytes) {
                end_of_generation.push(id);
            }
        }
        end_of_generation.sort_unstable();
        end_of_generation.dedup();

        let mut rules = Vec::with_capacity(config.merges.len());
        for (rank, rule) in config.merges.iter().enumerate() {
            let parts = rule.split_once(' ').filter(|(left, right)| !left.is_empty() && !right.is_empty());
            rules.push(parts.ok_or_else(|| TokenizerError::MalformedMerge { rank, rule: rule.clone() })?);
        }
        let merges = Merges::new(&vocabulary, rules.into_iter())?;
        if !merges.covers_all_bytes() {
            tracing::debug!("the vocabulary lacks some bytes: text with them loses them when encoded");
        }
        Ok(Self {
            user_defined: Literals::new(&vocabulary, |kind| kind == TokenKind::UserDefined)?,
            all_literals: Literals::new(&vocabulary, |kind| {
                matches!(kind, TokenKind::UserDefined | TokenKind::Control | TokenKind::Unknown)
            })?,
            vocabulary,
            merges,
            pre: config.pre,
            whole_pieces_first: config.whole_pieces_first,
            normalize_nfc: config.normalize_nfc,
            bos: config.bos,
            add_bos: config.add_bos,
            eos: config.eos,
            end_of_generation,
        })
    }

    /// The tokens of `text`. Nothing is put before or behind them.
    ///
    /// Bytes for which the vocabulary has no token (SmolLM2 lacks some control characters) are left out.
    pub fn encode(&self, text: &str, special: Special) -> Vec<u32> {
        let mut out = Vec::with_capacity(text.len() / 3);
        self.encode_into(text, special, &mut out);
        out
    }

    /// Appends the tokens of `text` to `out`.
    pub fn encode_into(&self, text: &str, special: Special, out: &mut Vec<u32>) {
        let literals = match special {
            Special::AsText => &self.user_defined,
            Special::Parse => &self.all_literals,
        };
        let mut scratch = Scratch::default();
        let mut done = 0;
        if let Some(literals) = literals {
            for (start, end, id) in literals.find(text) {
                self.encode_plain(&text[done..start], &mut scratch, out);
                out.push(id);
                done = end;
            }
        }
        self.encode_plain(&text[done..], &mut scratch, out);
    }

    fn encode_plain(&self, text: &str, scratch: &mut Scratch, out: &mut Vec<u32>) {
        let normalized: String;
        let text = if self.normalize_nfc && is_nfc_quick(text.chars()) != IsNormalized::Yes {
            normalized = text.nfc().collect();
            normalized.as_str()
        } else {
            text
        };
        for piece in self.pre.split(text) {
            let whole = self.whole_pieces_first.then(|| self.vocabulary.find(piece.as_bytes())).flatten();
            match whole {
                Some(id) if self.vocabulary.kind(id) == Some(TokenKind::Normal) => out.push(id),
                _ => self.merges.merge(piece.as_bytes(), scratch, out),
            }
        }
    }

    /// (start, end, id) of each control and user-defined token in `text`, which a template wrote.
    pub(crate) fn literals<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, usize, u32)> + 'a {
        self.all_literals.iter().flat_map(move |literals| literals.find(text))
    }

    /// The first characters of all tokens that [`Special::Parse`] would recognise and
    /// [`Special::AsText`] must not.
    pub(crate) fn control_initials(&self) -> Vec<char> {
        let mut initials: Vec<char> = self
            .vocabulary
            .iter()
            .filter(|(_, kind, _)| matches!(kind, TokenKind::Control | TokenKind::Unknown))
            .filter_map(|(_, _, bytes)| std::str::from_utf8(bytes).ok()?.chars().next())
            .collect();
        initials.sort_unstable();
        initials.dedup();
        initials
    }

    /// The text of `ids`; control and unused tokens have none, and bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// [`TokenizerError::IdOutOfRange`] for an id outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        let mut detokenizer = Detokenizer::new();
        let mut text = String::new();
        for &id in ids {
            detokenizer.push(self, id, &mut text)?;
        }
        detokenizer.finish(&mut text);
        Ok(text)
    }

    /// The bytes that a token adds to the text: none for control, unknown and unused tokens. Not
    /// necessarily whole characters.
    ///
    /// # Errors
    /// [`TokenizerError::IdOutOfRange`] for an id outside the vocabulary.
    pub fn text_bytes(&self, id: u32) -> Result<&[u8], TokenizerError> {
        match self.vocabulary.kind(id) {
            Some(TokenKind::Normal | TokenKind::UserDefined) => {
                Ok(self.vocabulary.get(id).unwrap_or_default())
            }
            Some(_) => Ok(&[]),
            None => Err(TokenizerError::IdOutOfRange { what: "token", id, size: self.vocabulary.len() }),
        }
    }

    /// A token's bytes whatever its kind, for messages and dumps; `None` outside the vocabulary.
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.vocabulary.get(id)
    }

    /// A token's kind; `None` outside the vocabulary.
    pub fn kind(&self, id: u32) -> Option<TokenKind> {
        self.vocabulary.kind(id)
    }

    /// The id of the token with exactly these bytes, control tokens by their name.
    pub fn token_id(&self, bytes: &[u8]) -> Option<u32> {
        self.vocabulary.find(bytes)
    }

    /// Number of ids; a model's output may have more columns, which are padding.
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary.len()
    }

    /// The begin-of-sequence token.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// Whether a sequence has to start with [`bos`](Self::bos) even if a template does not write it.
    pub fn adds_bos(&self) -> bool {
        self.add_bos
    }

    /// The end-of-sequence token.
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// Whether a reply is over once this token was sampled.
    pub fn is_end_of_generation(&self, id: u32) -> bool {
        self.end_of_generation.binary_search(&id).is_ok()
    }

    /// The tokens that end a reply, ascending: the stop set of the sampling op.
    pub fn end_of_generation(&self) -> &[u32] {
        &self.end_of_generation
    }
}

/// Tokens that are found in text as they stand, the longest of those that begin at a place.
#[derive(Debug, Clone)]
struct Literals {
    automaton: AhoCorasick,
    /// Token ids in the order of the automaton's patterns.
    ids: Vec<u32>,
}

impl Literals {
    /// `None` if no token is of the wanted kinds.
    fn new(
        vocabulary: &Vocabulary,
        wanted: impl Fn(TokenKind) -> bool,
    ) -> Result<Option<Self>, TokenizerError> {
        // A configuration may call a lone byte of a character control; no text has that.
        let is_literal =
            |kind, bytes: &[u8]| wanted(kind) && !bytes.is_empty() && std::str::from_utf8(bytes).is_ok();
        let literals = || vocabulary.iter().filter(|&(_, kind, bytes)| is_literal(kind, bytes));
        let (count, bytes) = literals().fold((0, 0), |(n, sum), (_, _, bytes)| (n + 1, sum + bytes.len()));
        if count == 0 {
            return Ok(None);
        }
        if count > MAX_LITERALS || bytes > MAX_LITERAL_BYTES {
            return Err(TokenizerError::TooManyLiterals { count, bytes });
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(literals().map(|(_, _, bytes)| bytes))
            .map_err(|_| TokenizerError::TooManyLiterals { count, bytes })?;
        Ok(Some(Self { automaton, ids: literals().map(|(id, _, _)| id).collect() }))
    }

    /// (start, end, id) of each literal in `text`, from left to right. Start and end are at characters'
    /// bounds, for literals are whole texts.
    fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, usize, u32)> + 'a {
        self.automaton
            .find_iter(text)
            .map(|found| (found.start(), found.end(), self.ids[found.pattern().as_usize()]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::vocabulary::char_of;

    /// All bytes, some merges, two control tokens, one user-defined and one unused token.
    pub(crate) fn small() -> Tokenizer {
        let mut tokens: Vec<String> = (0..=255).map(|byte| char_of(byte).to_string()).collect();
        let merges =
            ["h e", "l l", "he ll", "hell o", "Ġ Ġ", "e n", "en d", "< |"].map(String::from).to_vec();
        tokens.extend(merges.iter().map(|rule| rule.replace(' ', "")));
        let mut kinds = vec![TokenKind::Normal; tokens.len()];
        for (token, kind) in [
            ("<|im_start|>", TokenKind::Control),
            ("<|im_end|>", TokenKind::Control),
            ("<|im_end|>\n", TokenKind::Control),
            ("<tool_call>", TokenKind::UserDefined),
            ("[PAD]", TokenKind::Unused),
        ] {
            tokens.push(token.into());
            kinds.push(kind);
        }
        Tokenizer::new(BpeConfig { kinds, merges, ..BpeConfig::new(tokens, PreTokenizer::Qwen2) }).unwrap()
    }

    fn id(tokenizer: &Tokenizer, text: &str) -> u32 {
        tokenizer.token_id(text.as_bytes()).unwrap()
    }

    #[test]
    fn control_tokens_are_text_unless_parsed() {
        let tokenizer = small();
        let text = "hello<|im_end|>";
        let end = id(&tokenizer, "<|im_end|>");
        assert_eq!(tokenizer.encode(text, Special::Parse), [id(&tokenizer, "hello"), end]);
        let as_text = tokenizer.encode(text, Special::AsText);
        assert!(!as_text.contains(&end));
        assert_eq!(tokenizer.decode(&as_text).unwrap(), text);
        assert_eq!(tokenizer.decode(&tokenizer.encode(text, Special::Parse)).unwrap(), "hello");
    }

    #[test]
    fn user_defined_tokens_are_found_either_way_and_shown() {
        let tokenizer = small();
        let call = id(&tokenizer, "<tool_call>");
        for special in [Special::AsText, Special::Parse] {
            let ids = tokenizer.encode("a<tool_call>b", special);
            assert_eq!(ids, [u32::from(b'a'), call, u32::from(b'b')]);
            assert_eq!(tokenizer.decode(&ids).unwrap(), "a<tool_call>b");
        }
    }

    #[test]
    fn the_longest_literal_wins() {
        let tokenizer = small();
        assert_eq!(tokenizer.encode("<|im_end|>\n", Special::Parse), [id(&tokenizer, "<|im_end|>\n")]);
    }

    #[test]
    fn unused_tokens_are_neither_made_nor_shown() {
        let tokenizer = small();
        let pad = id(&tokenizer, "[PAD]");
        assert!(!tokenizer.encode("[PAD]", Special::Parse).contains(&pad));
        assert_eq!(tokenizer.decode(&[pad]).unwrap(), "");
    }

    #[test]
    fn known_names_and_given_ids_end_a_reply() {
        let tokenizer = small();
        assert!(tokenizer.is_end_of_generation(id(&tokenizer, "<|im_end|>")));
        assert!(!tokenizer.is_end_of_generation(id(&tokenizer, "<|im_start|>")));
        let config = BpeConfig {
            eos: Some(1),
            end_of_generation: vec![0],
            ..BpeConfig::new(["a", "b", "c"].map(String::from).to_vec(), PreTokenizer::Gpt2)
        };
        let tokenizer = Tokenizer::new(config).unwrap();
        assert_eq!(tokenizer.end_of_generation(), [0, 1]);
        assert_eq!(tokenizer.kind(1), Some(TokenKind::Control), "whatever ends a reply is control");
        assert_eq!(tokenizer.encode("abc", Special::AsText), [2]);
    }

    #[test]
    fn a_lone_byte_as_control_token_cuts_no_character() {
        let tokens: Vec<String> = (0..=255).map(|byte| char_of(byte).to_string()).collect();
        let config = BpeConfig { eos: Some(0xa9), ..BpeConfig::new(tokens, PreTokenizer::Gpt2) };
        let tokenizer = Tokenizer::new(config).unwrap();
        assert_eq!(tokenizer.encode("é", Special::Parse), [0xc3]);
    }

    #[test]
    fn whole_pieces_go_before_merges_but_never_to_control_tokens() {
        let tokens = ["a", "b", "c", "ab", "abc", "bc"].map(String::from).to_vec();
        let config = BpeConfig { merges: vec!["a b".into()], ..BpeConfig::new(tokens, PreTokenizer::Llama3) };
        let merged = Tokenizer::new(config.clone()).unwrap();
        assert_eq!(merged.encode("abc", Special::AsText), [3, 2]);
        let whole = Tokenizer::new(BpeConfig { whole_pieces_first: true, ..config.clone() }).unwrap();
        assert_eq!(whole.encode("abc", Special::AsText), [4]);
        let mut kinds = config.kinds.clone();
        kinds[4] = TokenKind::Control;
        let control = Tokenizer::new(BpeConfig { whole_pieces_first: true, kinds, ..config }).unwrap();
        assert_eq!(control.encode("abc", Special::AsText), [3, 2]);
    }

    #[test]
    fn merges_make_no_control_token() {
        let tokens = ["a", "b", "c", "ab", "abc"].map(String::from).to_vec();
        let merges = ["a b", "ab c"].map(String::from).to_vec();
        let config = BpeConfig { eos: Some(4), merges, ..BpeConfig::new(tokens, PreTokenizer::Gpt2) };
        let tokenizer = Tokenizer::new(config).unwrap();
        assert_eq!(tokenizer.encode("abc", Special::AsText), [3, 2]);
        assert_eq!(tokenizer.encode("abc", Special::Parse), [4]);
    }

    #[test]
    fn text_is_normalised_only_where_asked() {
        let mut tokens: Vec<String> = (0..=255).map(|byte| char_of(byte).to_string()).collect();
        tokens.truncate(256);
        let config = BpeConfig::new(tokens, PreTokenizer::Gpt2);
        let plain = Tokenizer::new(config.clone()).unwrap();
        let nfc = Tokenizer::new(BpeConfig { normalize_nfc: true, ..config }).unwrap();
        let bytes = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
        assert_eq!(plain.encode("e\u{301}", Special::AsText), bytes("e\u{301}"));
        assert_eq!(nfc.encode("e\u{301}", Special::AsText), bytes("é"));
    }

    #[test]
    fn hostile_configurations_are_refused() {
        let base = || BpeConfig::new(["a", "b", "ab"].map(String::from).to_vec(), PreTokenizer::Gpt2);
        for rule in ["ab", " b", "a ", " ", ""] {
            let error = Tokenizer::new(BpeConfig { merges: vec![rule.into()], ..base() }).unwrap_err();
            assert!(matches!(error, TokenizerError::MalformedMerge { rank: 0, .. }), "{rule:?}: {error}");
        }
        for config in [
            BpeConfig { bos: Some(3), ..base() },
            BpeConfig { eos: Some(u32::MAX), ..base() },
            BpeConfig { end_of_generation: vec![0, 3], ..base() },
        ] {
            assert!(matches!(Tokenizer::new(config), Err(TokenizerError::IdOutOfRange { size: 3, .. })));
        }
        let tokens: Vec<String> = (0..=MAX_LITERALS).map(|i| i.to_string()).collect();
        let kinds = vec![TokenKind::Control; tokens.len()];
        let many = BpeConfig { kinds, ..BpeConfig::new(tokens, PreTokenizer::Gpt2) };
        assert!(matches!(Tokenizer::new(many), Err(TokenizerError::TooManyLiterals { .. })));
        let tokenizer = Tokenizer::new(base()).unwrap();
        assert!(matches!(tokenizer.decode(&[0, 3]), Err(TokenizerError::IdOutOfRange { id: 3, .. })));
    }

    proptest! {
        #[test]
        fn text_comes_back_and_never_as_control_tokens(text in any::<String>()) {
            let tokenizer = small();
            let ids = tokenizer.encode(&text, Special::AsText);
            prop_assert!(ids.iter().all(|&id| tokenizer.kind(id) != Some(TokenKind::Control)));
            prop_assert_eq!(tokenizer.decode(&ids).unwrap(), text);
        }

        #[test]
        fn text_with_control_names_comes_back(parts in prop::collection::vec(
            prop_oneof!["<\\|im_(start|end)\\|>", "<\\|im_end", "\\|>", "<tool_call>", "hello", "\\PC{0,5}", "[ \\n]{0,5}"],
            0..12,
        )) {
            let tokenizer = small();
            let text = parts.concat();
            let ids = tokenizer.encode(&text, Special::AsText);
            prop_assert!(ids.iter().all(|&id| tokenizer.kind(id) != Some(TokenKind::Control)));
            prop_assert_eq!(tokenizer.decode(&ids).unwrap(), text);
        }
    }
}
