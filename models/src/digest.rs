//! SHA-256 of a file's bytes, the name of its blob.

use std::fmt;
use std::io::Read;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::CancelToken;

/// A SHA-256 digest; its text form is 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(crate) fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Sha256Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.as_bytes();
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let wrong = || format!("`{text}` is not a sha256 (64 lower-case hexadecimal digits)");
        if digits.len() != 64 {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte =
                value(pair[0]).zip(value(pair[1])).map(|(high, low)| high << 4 | low).ok_or_else(wrong)?;
        }
        Ok(Self(bytes))
    }
}

/// Bytes read at a time: large enough that the hash, not the calls, is the cost, and a cancel is seen within
/// a millisecond.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;

/// Feeds all of `reader` into `hasher` and returns the number of bytes, or `None` if cancelled before the
/// end.
pub(crate) fn absorb(
    reader: &mut impl Read,
    hasher: &mut Sha256,
    cancel: &CancelToken,
) -> std::io::Result<Option<u64>> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut total = 0;
    loop {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(Some(total)),
            Ok(count) => {
                hasher.update(&chunk[..count]);
                total += count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        // The digest of "abc" is the first example of FIPS 180-4.
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Sha256Digest::of(b"abc").to_string(), text);
        assert_eq!(text.parse(), Ok(Sha256Digest::of(b"abc")));
    }

    #[test]
    fn other_texts_are_refused() {
        let upper = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
        for text in ["", "ba78", upper, &"g".repeat(64), &"0".repeat(65), &"é".repeat(32)] {
            assert!(text.parse::<Sha256Digest>().is_err(), "{text}");
        }
    }
}
