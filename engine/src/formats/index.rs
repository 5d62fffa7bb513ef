//! The table of tensors that every reader builds and checks once.

use std::fmt::Display;
use std::ops::Range;

use super::reader::{Budget, DIMS_LIMIT, NAME_LIMIT};
use super::tensor::near_names;
use super::{FormatError, FormatErrorKind, TensorType, TensorView};

/// The element type of a tensor in a file: one that the engine knows, or only its name and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    Known(TensorType),
    /// Readable as a file, refused as a tensor: the name in the format and the bytes of an element.
    Other(&'static str, usize),
}

impl Stored {
    fn row_bytes(self, cols: usize) -> Option<usize> {
        match self {
            Self::Known(ty) => ty.row_bytes(cols),
            Self::Other(_, size) => cols.checked_mul(size),
        }
    }

    fn block_len(self) -> usize {
        match self {
            Self::Known(ty) => ty.block_len(),
            Self::Other(..) => 1,
        }
    }
}

/// Where a tensor's bytes are.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    /// In file number `file` of the set.
    Span { file: usize, range: Range<usize> },
    /// Decoded by the reader, since the format does not store them as they are.
    Owned(Box<[u8]>),
}

/// One tensor as described by the file.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) stored: Stored,
    /// Outermost first.
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Data,
    /// Offset in the file of the tensor's description, for errors.
    pub(crate) offset: u64,
}

impl Entry {
    /// The view, with its bytes from the file of the number that `file` is asked for.
    pub(crate) fn view<'a>(
        &'a self,
        file: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> Result<TensorView<'a>, FormatError> {
        let field = format_args!("tensor `{}`", self.name);
        let ty = match self.stored {
            Stored::Known(ty) => ty,
            Stored::Other(name, _) => {
                let kind = FormatErrorKind::UnsupportedType { found: name.to_owned() };
                return Err(FormatError::at(kind, self.offset, field));
            }
        };
        // Only ONNX lets an empty tensor through to here: graphs use them for absent inputs.
        if self.shape.contains(&0) {
            let kind = FormatErrorKind::BadShape { shape: self.shape.iter().map(|&d| d as u64).collect() };
            return Err(FormatError::at(kind, self.offset, field));
        }
        let data = match &self.data {
            Data::Owned(bytes) => &bytes[..],
            // Checked when the file was read; a shorter file under the map would have ended the process.
            Data::Span { file: number, range } => {
                file(*number).and_then(|bytes| bytes.get(range.clone())).ok_or_else(|| {
                    let kind = FormatErrorKind::Truncated { needed: range.end as u64, left: 0 };
                    FormatError::at(kind, self.offset, field)
                })?
            }
        };
        Ok(TensorView { name: &self.name, ty, shape: self.shape.clone(), data, affine: None })
    }
}

/// Bytes of a tensor of `dims` (outermost first); refuses dimensions of zero, partial blocks and overflow.
pub(crate) fn tensor_bytes(
    stored: Stored,
    dims: &[u64],
    offset: u64,
    field: &dyn Display,
) -> Result<(Vec<usize>, usize), FormatError> {
    let bad = || FormatError::at(FormatErrorKind::BadShape { shape: dims.to_vec() }, offset, field);
    let mut shape = Vec::with_capacity(dims.len());
    for &dim in dims {
        shape.push(usize::try_from(dim).ok().filter(|&dim| dim > 0).ok_or_else(bad)?);
    }
    let cols = shape.last().copied().unwrap_or(1);
    if !cols.is_multiple_of(stored.block_len()) {
        let kind = FormatErrorKind::PartialBlock { cols: cols as u64, block_len: stored.block_len() };
        return Err(FormatError::at(kind, offset, field));
    }
    // The element count is checked too: of a block type it can overflow where the bytes do not.
    let rows =
        shape.iter().rev().skip(1).try_fold(1usize, |all, &dim| all.checked_mul(dim)).ok_or_else(bad)?;
    let elements = rows.checked_mul(cols).ok_or_else(bad)?;
    let bytes = stored.row_bytes(cols).and_then(|row| row.checked_mul(rows)).ok_or_else(bad)?;
    if elements > isize::MAX as usize || bytes > isize::MAX as usize {
        return Err(bad());
    }
    Ok((shape, bytes))
}

/// Refuses more than [`DIMS_LIMIT`] dimensions.
pub(crate) fn check_rank(rank: u64, offset: u64, field: &dyn Display) -> Result<usize, FormatError> {
    super::reader::limited(rank, DIMS_LIMIT, offset, field).map(|rank| rank as usize)
}

/// Refuses an empty or overlong name.
pub(crate) fn check_name(len: u64, offset: u64, field: &dyn Display) -> Result<(), FormatError> {
    if len == 0 {
        return Err(FormatError::at(FormatErrorKind::EmptyName, offset, field));
    }
    super::reader::limited(len, NAME_LIMIT, offset, field).map(drop)
}

/// All tensors of a file, in its order, found by name.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: Vec<Entry>,
    /// Positions in `entries`, sorted by name.
    sorted: Vec<u32>,
}

impl Index {
    /// What an entry costs, beside its name and shape.
    pub(crate) const ENTRY_BYTES: usize = size_of::<Entry>() + size_of::<u32>();

    /// Charges an entry to the budget before it is made.
    pub(crate) fn charge(
        budget: &mut Budget,
        name: &str,
        rank: usize,
        offset: u64,
    ) -> Result<(), FormatError> {
        let bytes = Self::ENTRY_BYTES + name.len() + rank * size_of::<usize>();
        budget.charge(bytes, offset, &format_args!("tensor `{name}`"))
    }

    /// Sorts the names and refuses one that stands twice.
    pub(crate) fn new(entries: Vec<Entry>) -> Result<Self, FormatError> {
        let mut sorted: Vec<u32> = (0..entries.len() as u32).collect();
        sorted.sort_by(|&a, &b| entries[a as usize].name.cmp(&entries[b as usize].name).then(a.cmp(&b)));
        for pair in sorted.windows(2) {
            let (first, second) = (&entries[pair[0] as usize], &entries[pair[1] as usize]);
            if first.name == second.name {
                let field = format_args!("tensor `{}`", second.name);
                return Err(FormatError::at(FormatErrorKind::Duplicate, second.offset, field));
            }
        }
        Ok(Self { entries, sorted })
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.entries.iter().map(|entry| entry.name.clone()).collect()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Entry> {
        let at = self.sorted.binary_search_by(|&i| self.entries[i as usize].name.as_str().cmp(name)).ok()?;
        Some(&self.entries[self.sorted[at] as usize])
    }

    /// The entry, or an error that names what resembles it.
    pub(crate) fn get(&self, name: &str) -> Result<&Entry, FormatError> {
        self.find(name).ok_or_else(|| {
            let near = near_names(name, self.entries.iter().map(|entry| entry.name.as_str()));
            FormatError::about(FormatErrorKind::NotFound { near }, format_args!("tensor `{name}`"))
        })
    }

    /// Refuses two tensors of one file that share bytes.
    pub(crate) fn refuse_overlap(&self) -> Result<(), FormatError> {
        let mut spans: Vec<(&Entry, usize, &Range<usize>)> = self
            .entries
            .iter()
            .filter_map(|entry| match &entry.data {
                Data::Span { file, range } => Some((entry, *file, range)),
                Data::Owned(_) => None,
            })
            .collect();
        spans.sort_by_key(|(_, file, range)| (*file, range.start, range.end));
        for pair in spans.windows(2) {
            let ((first, first_file, before), (second, file, range)) = (&pair[0], &pair[1]);
            if first_file == file && range.start < before.end {
                let kind = FormatErrorKind::Overlap { other: first.name.clone() };
                return Err(FormatError::at(kind, second.offset, format_args!("tensor `{}`", second.name)));
            }
        }
        Ok(())
    }
}
