//! A cursor over hostile bytes: every read is checked against what is left and names its field.

use std::fmt::Display;
use std::ops::Range;

use super::{FormatError, FormatErrorKind};

/// Bytes that a reader may keep beside the mapped file: names, shapes, metadata, graph nodes. The largest
/// published models that we know need a tenth of it. (Arrays and element values stay in the map.)
pub(crate) const FACTS_LIMIT: usize = 12 << 20;

/// Tensors of one file. Models with experts stored apart have some thousands.
pub(crate) const TENSORS_LIMIT: u64 = 1 << 16;

/// Dimensions of one tensor. Published weights have at most four, graphs at most six.
pub(crate) const DIMS_LIMIT: u64 = 8;

/// Bytes of one name or key.
pub(crate) const NAME_LIMIT: u64 = 1 << 16;

/// What is left of [`FACTS_LIMIT`].
#[derive(Debug)]
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { left: FACTS_LIMIT }
    }

    /// Takes `bytes` before they are allocated.
    pub(crate) fn charge(
        &mut self,
        bytes: usize,
        offset: u64,
        field: &dyn Display,
    ) -> Result<(), FormatError> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                let used = (FACTS_LIMIT - self.left) as u64;
                let kind = FormatErrorKind::TooLarge {
                    value: used.saturating_add(bytes as u64),
                    limit: FACTS_LIMIT as u64,
                };
                Err(FormatError::at(kind, offset, format_args!("bytes of names and metadata up to {field}")))
            }
        }
    }
}

/// A position in a range of a file.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    /// The whole file, so that offsets are the file's.
    file: &'a [u8],
    pos: usize,
    end: usize,
}

macro_rules! numbers {
    ($($name:ident)*) => {$(
        pub(crate) fn $name(&mut self, field: &dyn Display) -> Result<$name, FormatError> {
            Ok(<$name>::from_le_bytes(self.array(field)?))
        }
    )*};
}

impl<'a> Reader<'a> {
    pub(crate) fn new(file: &'a [u8]) -> Self {
        Self { file, pos: 0, end: file.len() }
    }

    /// A reader of a part of the same file; `range` must have come from this file's length checks.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        let end = range.end.min(self.file.len());
        Self { file: self.file, pos: range.start.min(end), end }
    }

    /// Offset of the next byte from the start of the file.
    pub(crate) fn offset(&self) -> u64 {
        self.pos as u64
    }

    pub(crate) fn left(&self) -> usize {
        self.end - self.pos
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left() == 0
    }

    /// The range of the next `len` bytes, skipped.
    pub(crate) fn span(&mut self, len: u64, field: &dyn Display) -> Result<Range<usize>, FormatError> {
        match usize::try_from(len).ok().filter(|&len| len <= self.left()) {
            Some(len) => {
                let start = self.pos;
                self.pos += len;
                Ok(start..self.pos)
            }
            None => Err(self.truncated(len, field)),
        }
    }

    pub(crate) fn take(&mut self, len: u64, field: &dyn Display) -> Result<&'a [u8], FormatError> {
        let span = self.span(len, field)?;
        Ok(&self.file[span])
    }

    fn array<const N: usize>(&mut self, field: &dyn Display) -> Result<[u8; N], FormatError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N as u64, field)?);
        Ok(bytes)
    }

    numbers! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

    /// The next `len` bytes as text.
    pub(crate) fn text(&mut self, len: u64, field: &dyn Display) -> Result<&'a str, FormatError> {
        let offset = self.offset();
        std::str::from_utf8(self.take(len, field)?)
            .map_err(|_| FormatError::at(FormatErrorKind::NotUtf8, offset, field))
    }

    /// Refuses `count` items of at least `item_bytes` bytes each that cannot be in what is left.
    pub(crate) fn expect_items(
        &self,
        count: u64,
        item_bytes: u64,
        field: &dyn Display,
    ) -> Result<(), FormatError> {
        let needed = count.saturating_mul(item_bytes);
        if needed <= self.left() as u64 { Ok(()) } else { Err(self.truncated(needed, field)) }
    }

    fn truncated(&self, needed: u64, field: &dyn Display) -> FormatError {
        FormatError::at(FormatErrorKind::Truncated { needed, left: self.left() as u64 }, self.offset(), field)
    }
}

/// Refuses `value` above `limit`.
pub(crate) fn limited(value: u64, limit: u64, offset: u64, field: &dyn Display) -> Result<u64, FormatError> {
    if value <= limit {
        Ok(value)
    } else {
        Err(FormatError::at(FormatErrorKind::TooLarge { value, limit }, offset, field))
    }
}
