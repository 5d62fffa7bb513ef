//! GGUF, versions 2 and 3: one file with metadata, tensor descriptions and aligned data.
//!
//! Layout, all little-endian (<https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>): `GGUF`, u32 version,
//! u64 tensor count, u64 metadata count; per metadata entry a key, a u32 type and a value; per tensor a name,
//! u32 rank, u64 dimensions **innermost first**, u32 type and u64 offset into the data section, which starts at
//! the next multiple of `general.alignment` (32 unless given). Strings are a u64 length and UTF-8 bytes.
//!
//! ```
//! use repartee_engine::formats::{TensorSource, TensorType, gguf::Gguf, testing};
//!
//! # fn main() -> Result<(), repartee_engine::formats::FormatError> {
//! let mut writer = testing::GgufWriter::new(3);
//! writer.u32("llama.block_count", 1).strings("tokenizer.ggml.tokens", &["a", "b"]);
//! writer.tensor_f32("output.weight", TensorType::Q8_0, &[2, 32], &[0.5; 64]);
//! let gguf = Gguf::from_bytes(writer.finish())?;
//!
//! assert_eq!(gguf.u32("llama.block_count")?, 1);
//! assert_eq!(gguf.strings("tokenizer.ggml.tokens")?, ["a", "b"]);
//! assert_eq!(gguf.optional::<f32>("llama.rope.freq_base")?, None);
//! assert_eq!(gguf.tensor("output.weight")?.shape, [2, 32]); // outermost first
//! # Ok(())
//! # }
//! ```
//!
//! Arrays stay in the map and are decoded when asked for: a vocabulary of 150,000 pieces is kept once, by the
//! tokenizer that needs it.

mod value;

use std::collections::BTreeMap;
use std::path::Path;

pub use value::{Array, FromValue, Value, ValueType};

use super::index::{Data, Entry, Index, Stored, check_name, check_rank, tensor_bytes};
use super::reader::{Budget, Reader, TENSORS_LIMIT, limited};
use super::tensor::near_names;
use super::{FormatError, FormatErrorKind, Mapped, TensorSource, TensorType, TensorView};

/// Metadata entries of one file. Published files have some tens.
const METADATA_LIMIT: u64 = 1 << 16;

/// Bytes of alignment that are accepted; files have 32, rarely a page.
const ALIGNMENT_LIMIT: u64 = 1 << 20;

/// The key with the alignment of the data section.
const ALIGNMENT: &str = "general.alignment";

/// The key with the number of files that a model was split into.
const SPLIT_COUNT: &str = "split.count";

/// An open GGUF file.
#[derive(Debug)]
pub struct Gguf {
    file: Mapped,
    version: u32,
    metadata: BTreeMap<String, Meta>,
    index: Index,
}

#[derive(Debug)]
struct Meta {
    /// Offset in the file of the value's type, which the value follows.
    offset: u64,
    value: Value,
}

impl Gguf {
    /// Maps the file at `path` and checks its whole structure.
    ///
    /// # Errors
    /// Any [`FormatErrorKind`], with the offset and the field; a part of a split model is refused.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FormatError> {
        Self::read(Mapped::open(path)?)
    }

    /// The same for a file that is already in memory.
    ///
    /// # Errors
    /// As [`Gguf::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, FormatError> {
        Self::read(Mapped::from_bytes(bytes))
    }

    fn read(file: Mapped) -> Result<Self, FormatError> {
        match parse(&file) {
            Ok((version, metadata, index)) => Ok(Self { file, version, metadata, index }),
            Err(error) => Err(error.in_file(file.path())),
        }
    }

    /// The version of the format: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// All metadata keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.metadata.keys().map(String::as_str)
    }

    /// The metadata value of `key`.
    pub fn metadata(&self, key: &str) -> Option<&Value> {
        self.metadata.get(key).map(|meta| &meta.value)
    }

    /// The value of `key` as any type that has [`FromValue`]; integers of any width are taken if they fit.
    ///
    /// # Errors
    /// [`FormatErrorKind::NotFound`] with similar keys, or [`FormatErrorKind::WrongType`] with the type found.
    pub fn get<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<T, FormatError> {
        let field = format_args!("metadata `{key}`");
        let path = self.file.path();
        let Some(meta) = self.metadata.get(key) else {
            let near = near_names(key, self.keys());
            return Err(FormatError::about(FormatErrorKind::NotFound { near }, field).in_file(path));
        };
        T::from_value(&meta.value, &self.file, &field).map_err(|mut error| {
            error.offset.get_or_insert(meta.offset);
            error.in_file(path)
        })
    }

    /// As [`Gguf::get`], but `None` for a key that the file lacks.
    ///
    /// # Errors
    /// [`FormatErrorKind::WrongType`]: a value that is there but of another type is never taken for absent.
    pub fn optional<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Option<T>, FormatError> {
        if self.metadata.contains_key(key) { self.get(key).map(Some) } else { Ok(None) }
    }

    /// The integer of `key`; errors as [`Gguf::get`].
    pub fn u32(&self, key: &str) -> Result<u32, FormatError> {
        self.get(key)
    }

    /// The float of `key`; errors as [`Gguf::get`].
    pub fn f32(&self, key: &str) -> Result<f32, FormatError> {
        self.get(key)
    }

    /// The boolean of `key`; errors as [`Gguf::get`].
    pub fn bool(&self, key: &str) -> Result<bool, FormatError> {
        self.get(key)
    }

    /// The text of `key`; errors as [`Gguf::get`].
    pub fn str(&self, key: &str) -> Result<&str, FormatError> {
        self.get(key)
    }

    /// The array of texts of `key`; errors as [`Gguf::get`]. Allocates one slice per text.
    pub fn strings(&self, key: &str) -> Result<Vec<&str>, FormatError> {
        self.get(key)
    }

    /// The array of byte strings of `key`, for vocabularies that are not UTF-8; errors as [`Gguf::get`].
    pub fn byte_strings(&self, key: &str) -> Result<Vec<&[u8]>, FormatError> {
        self.get(key)
    }

    /// The array of integers of `key`; errors as [`Gguf::get`].
    pub fn i32s(&self, key: &str) -> Result<Vec<i32>, FormatError> {
        self.get(key)
    }

    /// The array of floats of `key`; errors as [`Gguf::get`].
    pub fn f32s(&self, key: &str) -> Result<Vec<f32>, FormatError> {
        self.get(key)
    }
}

impl TensorSource for Gguf {
    fn names(&self) -> Vec<String> {
        self.index.names()
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError> {
        self.index
            .get(name)
            .and_then(|entry| entry.view(|_| Some(&self.file)))
            .map_err(|error| error.in_file(self.file.path()))
    }

    fn release(&self, name: &str) {
        if let Some(Entry { data: Data::Span { range, .. }, .. }) = self.index.find(name) {
            self.file.release(range.clone());
        }
    }
}

type Parsed = (u32, BTreeMap<String, Meta>, Index);

fn parse(file: &[u8]) -> Result<Parsed, FormatError> {
    let mut r = Reader::new(file);
    if r.take(4, &"magic").ok() != Some(b"GGUF") {
        return Err(FormatError::at(FormatErrorKind::WrongFormat { expected: "a GGUF file" }, 0, "magic"));
    }
    let at = r.offset();
    let version = r.u32(&"version")?;
    if !matches!(version, 2 | 3) {
        let kind = if matches!(version.swap_bytes(), 1..=3) {
            FormatErrorKind::Invalid("is that of a big-endian file; take the little-endian one".into())
        } else {
            FormatErrorKind::UnsupportedVersion { found: version.into(), supported: "2 and 3" }
        };
        return Err(FormatError::at(kind, at, "version"));
    }
    // The smallest tensor is a name of one byte without dimensions, the smallest entry a key of one byte and a u8.
    let tensors = count(&mut r, TENSORS_LIMIT, 8 + 1 + 4 + 4 + 8, &"tensor count")?;
    let entries = count(&mut r, METADATA_LIMIT, 8 + 1 + 4 + 1, &"metadata count")?;

    let mut budget = Budget::new();
    let mut metadata = BTreeMap::new();
    for i in 0..entries {
        let at = r.offset();
        let key = name(&mut r, &format_args!("metadata key {i}"))?;
        budget.charge(key.len() + size_of::<(String, Meta)>(), at, &format_args!("metadata `{key}`"))?;
        let meta = Meta { offset: r.offset(), value: Value::parse(&mut r, &mut budget, key)? };
        if metadata.insert(key.to_owned(), meta).is_some() {
            return Err(FormatError::at(FormatErrorKind::Duplicate, at, format_args!("metadata `{key}`")));
        }
    }
    let alignment = alignment(&metadata)?;
    refuse_split(&metadata)?;

    let mut list = Vec::with_capacity(tensors as usize);
    for i in 0..tensors {
        list.push(description(&mut r, &mut budget, i)?);
    }
    let base = r.offset().next_multiple_of(alignment);
    for tensor in &mut list {
        place(tensor, base, alignment, file.len() as u64)?;
    }
    let index = Index::new(list)?;
    index.refuse_overlap()?;
    Ok((version, metadata, index))
}

fn count(
    r: &mut Reader<'_>,
    limit: u64,
    item_bytes: u64,
    field: &dyn std::fmt::Display,
) -> Result<u64, FormatError> {
    let at = r.offset();
    let count = limited(r.u64(field)?, limit, at, field)?;
    r.expect_items(count, item_bytes, field)?;
    Ok(count)
}

fn name<'a>(r: &mut Reader<'a>, field: &dyn std::fmt::Display) -> Result<&'a str, FormatError> {
    let at = r.offset();
    let len = r.u64(field)?;
    check_name(len, at, field)?;
    r.text(len, field)
}

fn alignment(metadata: &BTreeMap<String, Meta>) -> Result<u64, FormatError> {
    let Some(meta) = metadata.get(ALIGNMENT) else { return Ok(32) };
    let field = format_args!("metadata `{ALIGNMENT}`");
    match meta.value {
        Value::U32(n) if n.is_power_of_two() && u64::from(n) <= ALIGNMENT_LIMIT => Ok(n.into()),
        Value::U32(n) => {
            let kind =
                FormatErrorKind::Invalid(format!("is {n}, not a power of two up to {ALIGNMENT_LIMIT}"));
            Err(FormatError::at(kind, meta.offset, field))
        }
        ref other => {
            let kind = FormatErrorKind::WrongType { expected: "a u32", found: other.describe() };
            Err(FormatError::at(kind, meta.offset, field))
        }
    }
}

fn refuse_split(metadata: &BTreeMap<String, Meta>) -> Result<(), FormatError> {
    match metadata.get(SPLIT_COUNT) {
        Some(Meta { value: Value::U16(parts), offset }) if *parts > 1 => {
            let text =
                format!("says that this is one of {parts} parts; join them (`llama-gguf-split --merge`)");
            Err(FormatError::at(
                FormatErrorKind::Invalid(text),
                *offset,
                format_args!("metadata `{SPLIT_COUNT}`"),
            ))
        }
        _ => Ok(()),
    }
}

/// A tensor's description; its data range still counts from the start of the data section.
fn description(r: &mut Reader<'_>, budget: &mut Budget, i: u64) -> Result<Entry, FormatError> {
    let offset = r.offset();
    let name = name(r, &format_args!("name of tensor {i}"))?;
    let field = |what: &str| format!("tensor `{name}` {what}");

    let at = r.offset();
    let rank = r.u32(&field("rank"))?;
    let rank = check_rank(rank.into(), at, &field("rank"))?;
    Index::charge(budget, name, rank, offset)?;

    let dims_at = r.offset();
    let mut dims = Vec::with_capacity(rank);
    for _ in 0..rank {
        dims.push(r.u64(&field("dimensions"))?);
    }
    dims.reverse();

    let at = r.offset();
    let code = r.u32(&field("type"))?;
    let ty = tensor_type(code).map_err(|kind| FormatError::at(kind, at, field("type")))?;
    let (shape, bytes) = tensor_bytes(Stored::Known(ty), &dims, dims_at, &field("dimensions"))?;

    let at = r.offset();
    let start = r.u64(&field("offset"))?;
    let end = start.checked_add(bytes as u64);
    match (usize::try_from(start), end.and_then(|end| usize::try_from(end).ok())) {
        (Ok(start), Some(end)) => {
            let data = Data::Span { file: 0, range: start..end };
            Ok(Entry { name: name.to_owned(), stored: Stored::Known(ty), shape, data, offset: at })
        }
        _ => {
            let kind = FormatErrorKind::Truncated { needed: u64::MAX, left: r.left() as u64 };
            Err(FormatError::at(kind, at, field("offset")))
        }
    }
}

/// Moves a tensor's range to file offsets, after checking it against alignment and file.
fn place(tensor: &mut Entry, base: u64, alignment: u64, file_len: u64) -> Result<(), FormatError> {
    let Data::Span { range, .. } = &mut tensor.data else { return Ok(()) };
    let (start, end) = (range.start as u64, range.end as u64);
    let error =
        |kind| Err(FormatError::at(kind, tensor.offset, format_args!("tensor `{}` offset", tensor.name)));
    if !start.is_multiple_of(alignment) {
        return error(FormatErrorKind::Misaligned { start, alignment });
    }
    let section = file_len.saturating_sub(base);
    if end > section {
        return error(FormatErrorKind::Truncated { needed: end, left: section });
    }
    // Both fit: they are within a file whose length is a usize.
    *range = (base + start) as usize..(base + end) as usize;
    Ok(())
}

/// ggml's type codes.
fn tensor_type(code: u32) -> Result<TensorType, FormatErrorKind> {
    let unsupported = |name: &str| Err(FormatErrorKind::UnsupportedType { found: name.to_owned() });
    Ok(match code {
        0 => TensorType::F32,
        1 => TensorType::F16,
        2 => TensorType::Q4_0,
        3 => TensorType::Q4_1,
        6 => TensorType::Q5_0,
        7 => TensorType::Q5_1,
        8 => TensorType::Q8_0,
        12 => TensorType::Q4K,
        13 => TensorType::Q5K,
        14 => TensorType::Q6K,
        24 => TensorType::I8,
        26 => TensorType::I32,
        27 => TensorType::I64,
        30 => TensorType::BF16,
        9 => return unsupported("Q8_1"),
        10 => return unsupported("Q2_K"),
        11 => return unsupported("Q3_K"),
        15 => return unsupported("Q8_K"),
        16 => return unsupported("IQ2_XXS"),
        17 => return unsupported("IQ2_XS"),
        18 => return unsupported("IQ3_XXS"),
        19 => return unsupported("IQ1_S"),
        20 => return unsupported("IQ4_NL"),
        21 => return unsupported("IQ3_S"),
        22 => return unsupported("IQ2_S"),
        23 => return unsupported("IQ4_XS"),
        25 => return unsupported("I16"),
        28 => return unsupported("F64"),
        29 => return unsupported("IQ1_M"),
        34 => return unsupported("TQ1_0"),
        35 => return unsupported("TQ2_0"),
        39 => return unsupported("MXFP4"),
        other => return unsupported(&format!("number {other}")),
    })
}

#[cfg(test)]
mod tests;
