//! Why a weight file could not be read, and where.

use std::fmt;
use std::path::Path;

/// What is wrong with a weight file, without the place.
///
/// The text of each kind says what to do where anything can be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatErrorKind {
    /// The operating system refused to open, read or map the file.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// The path leads to a folder, pipe, socket or device.
    #[error("is not a regular file; give the path of the weight file itself")]
    NotAFile,
    /// The first bytes are not those of the format.
    #[error("is not {expected}; check that the right file was given and fully downloaded")]
    WrongFormat {
        /// The format that was expected, with its article.
        expected: &'static str,
    },
    /// The file is of the format, but of a version that this reader does not know.
    #[error("version {found} is not supported (supported: {supported}); convert the model again")]
    UnsupportedVersion {
        /// The version in the file.
        found: u64,
        /// The versions that can be read.
        supported: &'static str,
    },
    /// The file ends, or an enclosing record ends, before the field does.
    #[error("needs {needed} bytes but {left} are left; the file is cut short or damaged: fetch it again")]
    Truncated {
        /// Bytes that the field needs (`u64::MAX` when the size itself overflows).
        needed: u64,
        /// Bytes that are left.
        left: u64,
    },
    /// A count or length is above what any sensible model has.
    #[error("{value} is above the limit of {limit}; the file is damaged or not a model")]
    TooLarge {
        /// The value in the file.
        value: u64,
        /// The largest accepted value.
        limit: u64,
    },
    /// Lists or messages are nested deeper than any sensible model has them.
    #[error("is nested deeper than {limit} levels; the file is damaged or not a model")]
    TooDeep {
        /// The deepest accepted nesting.
        limit: usize,
    },
    /// A dimension is zero, or the product of the dimensions does not fit in memory.
    #[error("has an impossible shape {shape:?}; the file is damaged")]
    BadShape {
        /// The shape in the file, in the file's order.
        shape: Vec<u64>,
    },
    /// The innermost dimension is not a whole number of blocks.
    #[error("has rows of {cols} elements, which is not a whole number of blocks of {block_len}")]
    PartialBlock {
        /// Elements of a row.
        cols: u64,
        /// Elements of a block.
        block_len: usize,
    },
    /// The number of bytes or elements is not what type and shape call for.
    #[error("has {found} {unit} where its type and shape call for {expected}")]
    SizeMismatch {
        /// What type and shape call for.
        expected: u64,
        /// What is there.
        found: u64,
        /// What is counted.
        unit: &'static str,
    },
    /// Data starts at an offset that is not a multiple of the file's alignment.
    #[error("starts at {start}, which is not a multiple of the file's alignment of {alignment}")]
    Misaligned {
        /// Start of the data within the data section.
        start: u64,
        /// The file's alignment in bytes.
        alignment: u64,
    },
    /// Two tensors claim the same bytes.
    #[error("shares bytes with `{other}`; the file is damaged")]
    Overlap {
        /// The other tensor.
        other: String,
    },
    /// The same name stands twice.
    #[error("is there twice; the file is damaged")]
    Duplicate,
    /// A name or key is empty.
    #[error("is empty")]
    EmptyName,
    /// A text is not UTF-8.
    #[error("is not UTF-8 text")]
    NotUtf8,
    /// The element type exists in the format, but the engine has no use for it.
    #[error("has type {found}, which is not supported; take the same model in another type")]
    UnsupportedType {
        /// The type's name in the format.
        found: String,
    },
    /// A value is there, but of another type than the caller needs.
    #[error("is {found}, expected {expected}")]
    WrongType {
        /// What the caller asked for.
        expected: &'static str,
        /// What the file has.
        found: String,
    },
    /// No tensor or key has this name.
    #[error("is not in the file{}", near_text(near))]
    NotFound {
        /// Names in the file that resemble it, best first.
        near: Vec<String>,
    },
    /// The tensor's bytes are in another file, which this reader never opens.
    #[error("keeps its data in the external file `{location}`; take the model as one file")]
    ExternalData {
        /// The location as written in the file.
        location: String,
    },
    /// Anything else that breaks the rules of the format.
    #[error("{0}")]
    Invalid(String),
}

fn near_text(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; similar: {}", near.join(", ")) }
}

/// Why a weight file could not be read: what, in which file, at which byte, in which field.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.text())]
pub struct FormatError {
    /// What is wrong.
    pub kind: FormatErrorKind,
    /// The file, or `None` for bytes in memory.
    pub file: Option<Box<Path>>,
    /// Byte offset from the start of the file where the offending field starts, where one is known.
    pub offset: Option<u64>,
    /// The field, as in "tensor `blk.0.attn_q.weight` offset"; empty when the whole file is meant.
    pub field: String,
}

impl FormatError {
    /// An error about `field` at byte `offset` of the file.
    pub fn at(kind: FormatErrorKind, offset: u64, field: impl fmt::Display) -> Self {
        Self { kind, file: None, offset: Some(offset), field: field.to_string() }
    }

    /// An error about `field` with no single place in the file.
    pub fn about(kind: FormatErrorKind, field: impl fmt::Display) -> Self {
        Self { kind, file: None, offset: None, field: field.to_string() }
    }

    /// The same error, naming the file unless it already names one.
    #[must_use]
    pub fn in_file(mut self, file: Option<&Path>) -> Self {
        if self.file.is_none() {
            self.file = file.map(Into::into);
        }
        self
    }

    /// Whether the error only says that a tensor or key is absent, so that a default may be used.
    pub fn is_not_found(&self) -> bool {
        matches!(self.kind, FormatErrorKind::NotFound { .. })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if let Some(file) = &self.file {
            text.push_str(&format!("{}: ", file.display()));
        }
        if !self.field.is_empty() {
            push_clipped(&mut text, &self.field, 300);
            text.push(' ');
        }
        if let Some(offset) = self.offset {
            text.push_str(&format!("(at byte {offset}) "));
        }
        push_clipped(&mut text, &self.kind.to_string(), 500);
        text
    }
}

/// Adds at most about `limit` bytes of `part`, which may hold a name of a hostile file: begin and end.
fn push_clipped(text: &mut String, part: &str, limit: usize) {
    if part.len() <= limit {
        return text.push_str(part);
    }
    let end = part.floor_char_boundary(limit / 2);
    let start = part.ceil_char_boundary(part.len() - limit / 2);
    text.push_str(&part[..end]);
    text.push('…');
    text.push_str(&part[start..]);
}
