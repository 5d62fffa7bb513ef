//! Token ids to text as they are sampled, in whole characters.
//!
//! A token of a byte-level tokenizer may be part of a character: an emoji is often three tokens. The
//! window and the speech stage get text as soon as it is certain, so incomplete bytes wait here for the
//! next token, and bytes that cannot become a character turn into U+FFFD, exactly as
//! [`String::from_utf8_lossy`] does on the whole.
//!
//! ```
//! # use repartee_engine::text::detokenize::Detokenizer;
//! let mut detokenizer = Detokenizer::new();
//! let mut text = String::new();
//! detokenizer.push_bytes(b"ol\xc3", &mut text);
//! assert_eq!(text, "ol");
//! detokenizer.push_bytes(b"\xa9!", &mut text);
//! assert_eq!(text, "olé!");
//! ```

use super::tokenizer::{Tokenizer, TokenizerError};

/// The bytes of a character that is not complete yet.
#[derive(Debug, Clone, Default)]
pub struct Detokenizer {
    pending: Vec<u8>,
}

impl Detokenizer {
    /// A detokenizer at the start of a text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends to `text` what is certain with this token. Control tokens have no text.
    ///
    /// # Errors
    /// [`TokenizerError::IdOutOfRange`] for an id outside the vocabulary; the state is unchanged.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32, text: &mut String) -> Result<(), TokenizerError> {
        self.push_bytes(tokenizer.text_bytes(id)?, text);
        Ok(())
    }

    /// Appends to `text` what is certain with these bytes.
    pub fn push_bytes(&mut self, bytes: &[u8], text: &mut String) {
        self.pending.extend_from_slice(bytes);
        let mut rest = self.pending.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, behind) = rest.split_at(error.valid_up_to());
                    text.push_str(std::str::from_utf8(valid).unwrap_or_default());
                    rest = behind;
                    let Some(invalid) = error.error_len() else { break }; // incomplete: more may come
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &rest[invalid..];
                }
            }
        }
        let done = self.pending.len() - rest.len();
        self.pending.drain(..done);
    }

    /// Ends the text: a character that stayed incomplete becomes U+FFFD.
    pub fn finish(&mut self, text: &mut String) {
        if !self.pending.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            self.pending.clear();
        }
    }

    /// Whether bytes wait for the rest of their character.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text after each byte.
    fn by_byte(bytes: &[u8]) -> Vec<String> {
        let mut detokenizer = Detokenizer::new();
        let mut text = String::new();
        let mut states = Vec::new();
        for &byte in bytes {
            detokenizer.push_bytes(&[byte], &mut text);
            states.push(text.clone());
        }
        detokenizer.finish(&mut text);
        states.push(text);
        states
    }

    #[test]
    fn characters_come_whole() {
        assert_eq!(by_byte("é🙂".as_bytes()), ["", "é", "é", "é", "é", "é🙂", "é🙂"]);
    }

    #[test]
    fn broken_characters_become_replacement_characters() {
        assert_eq!(by_byte(b"\xf0\x9fa"), ["", "", "\u{fffd}a", "\u{fffd}a"]);
        assert_eq!(by_byte(b"\xff\x80"), ["\u{fffd}", "\u{fffd}\u{fffd}", "\u{fffd}\u{fffd}"]);
        assert_eq!(by_byte(b"a\xe2\x82"), ["a", "a", "a", "a\u{fffd}"]);
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_lossy_text(
            chunks in prop::collection::vec(prop::collection::vec(prop_oneof![
                any::<u8>(), Just(0xf0), Just(0x9f), Just(0x98), Just(0xe2), Just(0x82), Just(0xac), Just(b'a'),
            ], 0..5), 0..20),
        ) {
            let mut detokenizer = Detokenizer::new();
            let mut text = String::new();
            for chunk in &chunks {
                detokenizer.push_bytes(chunk, &mut text);
                prop_assert!(detokenizer.pending.len() <= 3);
            }
            detokenizer.finish(&mut text);
            prop_assert_eq!(text, String::from_utf8_lossy(&chunks.concat()).into_owned());
        }
    }
}
