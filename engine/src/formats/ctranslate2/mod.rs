//! CTranslate2's `model.bin`, binary versions 1 to 6: variables by name, as Whisper models are published.
//!
//! Layout, all little-endian (CTranslate2 `src/models/model.cc` and `python/ctranslate2/specs/model_spec.py`): u32 binary
//! version; from version 2 the specification's name and u32 revision; u32 count, then the variables: name, u8 rank,
//! u32 dimensions, u8 type, u32 bytes, data (before version 4 the item's size and the number of items instead of
//! type and bytes); from version 3 u32 count, then the aliases: alias and variable. A string is a u16 length that counts the
//! closing NUL, and its bytes. Data is not aligned.
//!
//! A quantized matrix `x/weight` is I8 with one F32 scale a row in `x/weight_scale`; its elements stand for
//! **q / scale**. Sizes and flags of the specification are variables without dimensions; ask for them with
//! [`Ct2::integer`].
//!
//! ```
//! use repartee_engine::formats::{TensorSource, ctranslate2::Ct2, testing};
//!
//! let model = Ct2::from_bytes(testing::samples::ctranslate2()).unwrap();
//! assert_eq!((model.spec(), model.revision()), ("WhisperSpec", 3));
//! assert_eq!(model.integer("encoder/num_heads").unwrap(), 8);
//! // An alias, and its scale, is the variable that it stands for.
//! assert_eq!(model.tensor("decoder/projection/weight").unwrap().name, "decoder/embeddings/weight");
//! assert_eq!(model.scale("decoder/projection/weight").unwrap().unwrap().shape, [2]);
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use super::index::{Data, Entry, Index, Stored, check_name, check_rank, tensor_bytes};
use super::reader::{Budget, Reader, TENSORS_LIMIT, limited};
use super::{FormatError, FormatErrorKind, Mapped, TensorSource, TensorType, TensorView};

/// The newest binary version that this reader knows.
const VERSION: u32 = 6;

/// An open `model.bin`.
#[derive(Debug)]
pub struct Ct2 {
    file: Mapped,
    header: Header,
    index: Index,
    aliases: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Header {
    version: u32,
    spec: String,
    revision: u32,
}

impl Ct2 {
    /// Maps the file at `path` and checks its whole structure.
    ///
    /// # Errors
    /// Any [`FormatErrorKind`], with the offset and the field.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FormatError> {
        Self::read(Mapped::open(path)?)
    }

    /// The same for a file that is already in memory.
    ///
    /// # Errors
    /// As [`Ct2::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, FormatError> {
        Self::read(Mapped::from_bytes(bytes))
    }

    fn read(file: Mapped) -> Result<Self, FormatError> {
        match parse(&file) {
            Ok((header, index, aliases)) => Ok(Self { file, header, index, aliases }),
            Err(error) => Err(error.in_file(file.path())),
        }
    }

    /// The version of the layout: 1 to 6.
    pub fn binary_version(&self) -> u32 {
        self.header.version
    }

    /// The specification that says what the variables are, as in `WhisperSpec`; empty in version 1.
    pub fn spec(&self) -> &str {
        &self.header.spec
    }

    /// The revision of the specification.
    pub fn revision(&self) -> u32 {
        self.header.revision
    }

    /// All aliases: (alias, variable).
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.aliases.iter().map(|(alias, variable)| (alias.as_str(), variable.as_str()))
    }

    /// The scales of a quantized variable (F32, one a row), or `None` if it has none.
    ///
    /// # Errors
    /// As [`TensorSource::tensor`], for the scales.
    pub fn scale(&self, name: &str) -> Result<Option<TensorView<'_>>, FormatError> {
        let name = format!("{}_scale", self.resolve(name));
        if self.index.find(self.resolve(&name)).is_some() { self.tensor(&name).map(Some) } else { Ok(None) }
    }

    /// The value of an integer variable without dimensions: a size or flag of the specification.
    ///
    /// # Errors
    /// [`FormatErrorKind::NotFound`], or [`FormatErrorKind::WrongType`] for floats and for tensors.
    pub fn integer(&self, name: &str) -> Result<i64, FormatError> {
        let path = self.file.path();
        let entry = self.index.get(self.resolve(name)).map_err(|error| error.in_file(path))?;
        let Data::Span { range, .. } = &entry.data else { return Err(wrong_integer(entry).in_file(path)) };
        let mut r = Reader::new(&self.file).part(range.clone());
        let field = &entry.name;
        match entry.stored {
            _ if !entry.shape.is_empty() => Err(wrong_integer(entry)),
            Stored::Known(TensorType::I8) => r.i8(field).map(i64::from),
            Stored::Known(TensorType::I32) => r.i32(field).map(i64::from),
            Stored::Other("int16", _) => r.i16(field).map(i64::from),
            _ => Err(wrong_integer(entry)),
        }
        .map_err(|error| error.in_file(path))
    }

    /// The variable that `name` is or stands for.
    fn resolve<'a>(&'a self, name: &'a str) -> &'a str {
        self.aliases.get(name).map_or(name, String::as_str)
    }
}

fn wrong_integer(entry: &Entry) -> FormatError {
    let found = match entry.stored {
        Stored::Known(ty) => format!("{ty} {:?}", entry.shape),
        Stored::Other(name, _) => format!("{name} {:?}", entry.shape),
    };
    let kind = FormatErrorKind::WrongType { expected: "an integer without dimensions", found };
    FormatError::at(kind, entry.offset, format_args!("variable `{}`", entry.name))
}

impl TensorSource for Ct2 {
    /// The names of all variables, without aliases.
    fn names(&self) -> Vec<String> {
        self.index.names()
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError> {
        self.index
            .get(self.resolve(name))
            .and_then(|entry| entry.view(|_| Some(&self.file)))
            .map_err(|error| error.in_file(self.file.path()))
    }

    fn release(&self, name: &str) {
        if let Some(Entry { data: Data::Span { range, .. }, .. }) = self.index.find(self.resolve(name)) {
            self.file.release(range.clone());
        }
    }
}

type Parsed = (Header, Index, BTreeMap<String, String>);

fn parse(file: &[u8]) -> Result<Parsed, FormatError> {
    let mut r = Reader::new(file);
    let mut budget = Budget::new();
    let version = r.u32(&"binary version")?;
    if !(1..=VERSION).contains(&version) {
        let kind = FormatErrorKind::UnsupportedVersion { found: version.into(), supported: "1 to 6" };
        return Err(FormatError::at(kind, 0, "binary version"));
    }
    let mut header = Header { version, spec: String::new(), revision: 1 };
    if version >= 2 {
        header.spec = string(&mut r, &"specification")?.to_owned();
        header.revision = r.u32(&"revision")?;
    }

    // The smallest variable has a name of one byte, no dimensions, and one byte of data.
    let count = count(&mut r, 2 + 2 + 1 + 1 + 4 + 1, &"variable count")?;
    let mut entries = Vec::with_capacity(count as usize);
    for i in 0..count {
        entries.push(variable(&mut r, &mut budget, version, i)?);
    }
    let index = Index::new(entries)?;
    let aliases = if version >= 3 { aliases(&mut r, &mut budget, &index)? } else { BTreeMap::new() };
    if !r.is_empty() {
        let kind = FormatErrorKind::Invalid(format!("has {} bytes behind its end", r.left()));
        return Err(FormatError::at(kind, r.offset(), "model"));
    }
    Ok((header, index, aliases))
}

fn count(r: &mut Reader<'_>, item_bytes: u64, field: &dyn std::fmt::Display) -> Result<u64, FormatError> {
    let at = r.offset();
    let count = limited(r.u32(field)?.into(), TENSORS_LIMIT, at, field)?;
    r.expect_items(count, item_bytes, field)?;
    Ok(count)
}

fn string<'a>(r: &mut Reader<'a>, field: &dyn std::fmt::Display) -> Result<&'a str, FormatError> {
    let at = r.offset();
    let len = u64::from(r.u16(field)?);
    check_name(len.saturating_sub(1), at, field)?;
    let text = r.text(len - 1, field)?;
    let end = r.offset();
    if r.u8(field)? != 0 || text.contains('\0') {
        let kind = FormatErrorKind::Invalid("does not end with its only NUL".to_owned());
        return Err(FormatError::at(kind, end, field));
    }
    Ok(text)
}

fn variable(r: &mut Reader<'_>, budget: &mut Budget, version: u32, i: u64) -> Result<Entry, FormatError> {
    let offset = r.offset();
    let name = string(r, &format_args!("name of variable {i}"))?;
    let field = |what: &str| format!("variable `{name}` {what}");

    let at = r.offset();
    let rank = check_rank(r.u8(&field("rank"))?.into(), at, &field("rank"))?;
    Index::charge(budget, name, rank, offset)?;
    let dims_at = r.offset();
    let mut dims = Vec::with_capacity(rank);
    for _ in 0..rank {
        dims.push(u64::from(r.u32(&field("dimensions"))?));
    }

    let at = r.offset();
    let code = r.u8(&field("type"))?;
    let stored = if version >= 4 { type_of_code(code) } else { type_of_size(code) };
    let stored = stored.ok_or_else(|| {
        FormatError::at(
            FormatErrorKind::UnsupportedType { found: format!("number {code}") },
            at,
            field("type"),
        )
    })?;
    let size_at = r.offset();
    let size = u64::from(r.u32(&field("size"))?);
    let found = if version >= 4 { size } else { size * u64::from(code) };
    let (shape, bytes) = tensor_bytes(stored, &dims, dims_at, &field("dimensions"))?;
    if found != bytes as u64 {
        let kind = FormatErrorKind::SizeMismatch { expected: bytes as u64, found, unit: "bytes" };
        return Err(FormatError::at(kind, size_at, field("size")));
    }
    let range = r.span(found, &field("data"))?;
    Ok(Entry { name: name.to_owned(), stored, shape, data: Data::Span { file: 0, range }, offset })
}

/// The aliases, each also for the scales of its variable.
fn aliases(
    r: &mut Reader<'_>,
    budget: &mut Budget,
    index: &Index,
) -> Result<BTreeMap<String, String>, FormatError> {
    let count = count(r, 4 + 4, &"alias count")?;
    let mut aliases: BTreeMap<String, String> = BTreeMap::new();
    for i in 0..count {
        let at = r.offset();
        let alias = string(r, &format_args!("name of alias {i}"))?;
        let field = format_args!("alias `{alias}`");
        let named = string(r, &format_args!("variable of {field}"))?;
        let variable = aliases.get(named).map_or(named, String::as_str);
        if index.find(variable).is_none() {
            let kind = FormatErrorKind::Invalid(format!("stands for `{named}`, which is not in the file"));
            return Err(FormatError::at(kind, at, field));
        }
        // Twice: the scales' alias below costs as much.
        budget.charge(2 * (alias.len() + variable.len() + size_of::<(String, String)>()), at, &field)?;
        if index.find(alias).is_some() || aliases.contains_key(alias) {
            return Err(FormatError::at(FormatErrorKind::Duplicate, at, field));
        }
        aliases.insert(alias.to_owned(), variable.to_owned());
    }
    let scales: Vec<(String, String)> = aliases
        .iter()
        .map(|(alias, variable)| (format!("{alias}_scale"), format!("{variable}_scale")))
        .filter(|(alias, scale)| index.find(scale).is_some() && index.find(alias).is_none())
        .collect();
    for (alias, scale) in scales {
        aliases.entry(alias).or_insert(scale);
    }
    Ok(aliases)
}

/// `ctranslate2::DataType`.
fn type_of_code(code: u8) -> Option<Stored> {
    Some(match code {
        0 => Stored::Known(TensorType::F32),
        1 => Stored::Known(TensorType::I8),
        2 => Stored::Other("int16", 2),
        3 => Stored::Known(TensorType::I32),
        4 => Stored::Known(TensorType::F16),
        5 => Stored::Known(TensorType::BF16),
        _ => return None,
    })
}

/// Before version 4 only the size of an item was stored, and CTranslate2 takes it for these types.
fn type_of_size(size: u8) -> Option<Stored> {
    type_of_code(match size {
        4 => 0,
        2 => 2,
        1 => 1,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
