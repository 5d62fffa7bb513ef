//! The vocabulary of a byte-level tokenizer: each token's bytes and kind, and the way back.
//!
//! Byte-level tokenizers publish their tokens as text in which each byte is one printable character
//! (GPT-2's `bytes_to_unicode`: a space is `Ġ`, a newline `Ċ`). Tokens are turned into bytes once, here,
//! so that nothing behind this module knows of that alphabet. All tokens share one buffer: a vocabulary
//! of 152,000 tokens is three allocations, and its index is a table of ids.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use super::tokenizer::TokenizerError;

/// What a token is for, with GGUF's numbering in `tokenizer.ggml.token_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A piece of text.
    Normal,
    /// Stands for text that no token covers.
    Unknown,
    /// Steers the model (`<|im_end|>`): never made from a user's text, never shown.
    Control,
    /// Literal text that is one token wherever it stands (`<tool_call>`).
    UserDefined,
    /// A row of the embedding that no text leads to.
    Unused,
}

impl TokenKind {
    /// The kind of a GGUF token type; numbers that the format does not define are [`TokenKind::Unused`].
    pub fn from_gguf(token_type: i32) -> Self {
        match token_type {
            1 | 6 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            _ => Self::Unused,
        }
    }

    /// Whether the token's published text is its text as it stands, not in the byte alphabet.
    fn is_literal(self) -> bool {
        !matches!(self, Self::Normal)
    }
}

/// Most tokens of a vocabulary: a bound for hostile files, sixteen times what any model has.
pub(crate) const MAX_TOKENS: usize = 1 << 22;

/// Tokens by id and by their bytes.
#[derive(Debug, Clone)]
pub(crate) struct Vocabulary {
    bytes: Vec<u8>,
    /// Where the bytes of token `id` end; they begin where those of `id - 1` end.
    ends: Vec<u32>,
    kinds: Vec<TokenKind>,
    index: Index,
}

impl Vocabulary {
    /// Takes each token's published text and its kind. A text stands once; empty ones may repeat and are
    /// never found.
    pub(crate) fn new(tokens: &[String], kinds: Vec<TokenKind>) -> Result<Self, TokenizerError> {
        if tokens.is_empty() {
            return Err(TokenizerError::EmptyVocabulary);
        }
        if kinds.len() != tokens.len() {
            return Err(TokenizerError::KindCount { kinds: kinds.len(), tokens: tokens.len() });
        }
        let total = tokens.iter().try_fold(0usize, |sum, token| sum.checked_add(token.len()));
        let total = total.filter(|&sum| tokens.len() <= MAX_TOKENS && u32::try_from(sum).is_ok());
        let Some(total) = total else { return Err(TokenizerError::TooLarge { tokens: tokens.len() }) };
        let mut vocabulary = Self {
            bytes: Vec::with_capacity(total),
            ends: Vec::with_capacity(tokens.len()),
            kinds,
            index: Index::with_capacity(tokens.len()),
        };
        for (id, token) in (0u32..).zip(tokens) {
            if vocabulary.kinds[id as usize].is_literal() {
                vocabulary.bytes.extend_from_slice(token.as_bytes());
            } else {
                for c in token.chars() {
                    let byte = byte_of(c).ok_or_else(|| TokenizerError::NotByteLevel {
                        id,
                        token: token.clone(),
                        character: c,
                    })?;
                    vocabulary.bytes.push(byte);
                }
            }
            vocabulary.ends.push(vocabulary.bytes.len() as u32); // bounded by `total` above
        }
        // A literal text and a byte-level one may spell the same bytes (`[PAD]` and a reserved row): the
        // byte-level one is what text leads to, so these go into the index first.
        for literal in [false, true] {
            for id in 0..tokens.len() as u32 {
                let kind = vocabulary.kinds[id as usize];
                if kind.is_literal() != literal || vocabulary.bytes_of(id).is_empty() {
                    continue;
                }
                if let Some(first) = vocabulary.find_or_insert(id)
                    && vocabulary.kinds[first as usize].is_literal() == literal
                {
                    let token = tokens[id as usize].clone();
                    return Err(TokenizerError::DuplicateToken { token, first, second: id });
                }
            }
        }
        Ok(vocabulary)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, id: u32) -> Option<&[u8]> {
        ((id as usize) < self.len()).then(|| self.bytes_of(id))
    }

    pub(crate) fn kind(&self, id: u32) -> Option<TokenKind> {
        self.kinds.get(id as usize).copied()
    }

    /// The token whose bytes are `bytes`.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<u32> {
        self.index.find(bytes, |id| self.bytes_of(id))
    }

    /// Makes a token control, whatever its file called it.
    pub(crate) fn mark_control(&mut self, id: u32) {
        self.kinds[id as usize] = TokenKind::Control;
    }

    /// Every token's id, kind and bytes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, TokenKind, &[u8])> {
        (0u32..).zip(&self.kinds).map(|(id, &kind)| (id, kind, self.bytes_of(id)))
    }

    /// `id` is known to be in range.
    fn bytes_of(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        &self.bytes[start..self.ends[id] as usize]
    }

    /// Puts a token into the index, or tells which one has its bytes already.
    fn find_or_insert(&mut self, id: u32) -> Option<u32> {
        if let Some(first) = self.find(self.bytes_of(id)) {
            return Some(first);
        }
        let hash = self.index.hasher.hash_one(self.bytes_of(id));
        self.index.insert(hash, id);
        None
    }
}

/// An open-addressing table of ids, at most half full, keyed by bytes that stand elsewhere. The hash has
/// a random seed, so a file cannot be made to collide.
#[derive(Debug, Clone)]
struct Index {
    slots: Vec<u32>,
    hasher: RandomState,
}

impl Index {
    const EMPTY: u32 = u32::MAX;

    fn with_capacity(tokens: usize) -> Self {
        let slots = (2 * tokens).next_power_of_two();
        Self { slots: vec![Self::EMPTY; slots], hasher: RandomState::new() }
    }

    fn find<'a>(&self, bytes: &[u8], bytes_of: impl Fn(u32) -> &'a [u8]) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = self.hasher.hash_one(bytes) as usize & mask;
        while self.slots[at] != Self::EMPTY {
            if bytes_of(self.slots[at]) == bytes {
                return Some(self.slots[at]);
            }
            at = (at + 1) & mask;
        }
        None
    }

    fn insert(&mut self, hash: u64, id: u32) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != Self::EMPTY {
            at = (at + 1) & mask;
        }
        self.slots[at] = id;
    }
}

/// Bytes that GPT-2's alphabet shows as themselves: the printable ones of Latin-1.
fn is_shown_as_itself(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)
}

/// The byte that a character of GPT-2's alphabet stands for: printable Latin-1 for itself, and the other
/// 68 bytes in order from U+0100.
fn byte_of(c: char) -> Option<u8> {
    if let Ok(byte) = u8::try_from(c) {
        return is_shown_as_itself(byte).then_some(byte);
    }
    match u8::try_from((c as u32).checked_sub(0x100)?).ok()? {
        n @ 0..=0x20 => Some(n),
        n @ 0x21..=0x42 => Some(n + (0x7f - 0x21)),
        0x43 => Some(0xad),
        _ => None,
    }
}

/// The bytes that a text in GPT-2's alphabet stands for; `None` if a character is not of it.
pub(crate) fn bytes_of_text(text: &str) -> Option<Vec<u8>> {
    text.chars().map(byte_of).collect()
}

/// The character that stands for `byte`: the other direction of GPT-2's alphabet.
#[cfg(test)]
pub(crate) fn char_of(byte: u8) -> char {
    if is_shown_as_itself(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !is_shown_as_itself(other)).count() as u32;
    char::from_u32(0x100 + before).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(tokens: &[&str]) -> Vec<String> {
        tokens.iter().map(|&token| token.to_owned()).collect()
    }

    #[test]
    fn the_byte_alphabet_is_one_to_one() {
        let mut seen = std::collections::HashSet::new();
        for byte in 0..=u8::MAX {
            assert_eq!(byte_of(char_of(byte)), Some(byte));
            assert!(seen.insert(char_of(byte)));
        }
        assert_eq!(char_of(b' '), 'Ġ');
        assert_eq!(char_of(b'\n'), 'Ċ');
        assert_eq!(char_of(0xad), '\u{143}');
        for c in [' ', '\u{7f}', '\u{ad}', '\u{144}', '▁', '日', '🙂'] {
            assert_eq!(byte_of(c), None, "{c:?} is outside the alphabet");
        }
    }

    #[test]
    fn tokens_are_found_by_their_bytes() {
        let kinds = vec![TokenKind::Normal, TokenKind::Normal, TokenKind::Control, TokenKind::Unused];
        let vocabulary = Vocabulary::new(&texts(&["a", "Ġa", "<|x y|>", ""]), kinds).unwrap();
        assert_eq!(vocabulary.find(b"a"), Some(0));
        assert_eq!(vocabulary.find(b" a"), Some(1));
        assert_eq!(vocabulary.find("Ġa".as_bytes()), None);
        assert_eq!(vocabulary.find(b"<|x y|>"), Some(2));
        assert_eq!(vocabulary.find(b""), None);
        assert_eq!(vocabulary.get(1), Some(&b" a"[..]));
        assert_eq!(vocabulary.get(4), None);
        assert_eq!(vocabulary.kind(2), Some(TokenKind::Control));
    }

    #[test]
    fn a_literal_gives_way_to_a_byte_level_token() {
        let kinds = vec![TokenKind::Control, TokenKind::Normal];
        let vocabulary = Vocabulary::new(&texts(&["ab", "ab"]), kinds).unwrap();
        assert_eq!(vocabulary.find(b"ab"), Some(1));
    }

    #[test]
    fn hostile_vocabularies_are_refused() {
        let normal = |n: usize| vec![TokenKind::Normal; n];
        assert!(matches!(Vocabulary::new(&[], normal(0)), Err(TokenizerError::EmptyVocabulary)));
        assert!(matches!(
            Vocabulary::new(&texts(&["a", "b"]), normal(1)),
            Err(TokenizerError::KindCount { kinds: 1, tokens: 2 })
        ));
        assert!(matches!(
            Vocabulary::new(&texts(&["a", "b", "a"]), normal(3)),
            Err(TokenizerError::DuplicateToken { first: 0, second: 2, .. })
        ));
        assert!(matches!(
            Vocabulary::new(&texts(&["a", "▁b"]), normal(2)),
            Err(TokenizerError::NotByteLevel { id: 1, character: '▁', .. })
        ));
        let many = vec![String::new(); MAX_TOKENS + 1];
        assert!(matches!(Vocabulary::new(&many, normal(many.len())), Err(TokenizerError::TooLarge { .. })));
    }
}
