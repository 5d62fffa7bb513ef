//! `TensorProto`: an initializer or a tensor within an attribute.

use std::fmt::Display;

use half::bf16;

use super::Onnx;
use super::wire::Message;
use crate::formats::index::{Data, Entry, Index, Stored, check_rank, tensor_bytes};
use crate::formats::reader::Budget;
use crate::formats::{FormatError, FormatErrorKind, TensorType, TensorView};

// Field numbers of TensorProto.
const DIMS: u64 = 1;
const DATA_TYPE: u64 = 2;
const SEGMENT: u64 = 3;
const FLOAT_DATA: u64 = 4;
const INT32_DATA: u64 = 5;
const STRING_DATA: u64 = 6;
const INT64_DATA: u64 = 7;
const NAME: u64 = 8;
const RAW_DATA: u64 = 9;
const DOUBLE_DATA: u64 = 10;
const UINT64_DATA: u64 = 11;
const EXTERNAL_DATA: u64 = 13;
const DATA_LOCATION: u64 = 14;

/// A tensor of an ONNX graph; ask for its bytes with [`OnnxTensor::view`].
#[derive(Debug, Clone)]
pub struct OnnxTensor(pub(super) Entry);

impl OnnxTensor {
    /// The name; tensors within attributes mostly have none.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Outermost dimension first. ONNX allows a dimension of zero, for absent lists.
    pub fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    /// Whether a dimension is zero, so that there is nothing to view.
    pub fn is_empty(&self) -> bool {
        self.0.shape.contains(&0)
    }

    /// The tensor with its bytes, which `file` (the model that this is part of) holds.
    ///
    /// # Errors
    /// [`FormatErrorKind::UnsupportedType`], or [`FormatErrorKind::BadShape`] for an empty tensor.
    pub fn view<'a>(&'a self, file: &'a Onnx) -> Result<TensorView<'a>, FormatError> {
        self.0.view(|_| Some(&file.file)).map_err(|error| error.in_file(file.file.path()))
    }
}

/// Reads a `TensorProto`.
pub(super) fn parse(
    message: &Message<'_>,
    budget: &mut Budget,
    place: &dyn Display,
) -> Result<Entry, FormatError> {
    let offset = message.offset();
    let mut name = "";
    let (mut dims, mut data_type, mut raw, mut typed) = (Vec::new(), 0, None, None);
    let (mut dims_at, mut type_at, mut external, mut location) = (offset, offset, false, String::new());

    let what = format_args!("tensor of {place}");
    let mut fields = message.clone();
    while let Some(field) = fields.next(&what)? {
        match field.number {
            DIMS => {
                if dims.is_empty() {
                    dims_at = field.offset;
                }
                let what = format_args!("dimensions of {what}");
                field.ints(&what, |dim| {
                    check_rank(dims.len() as u64 + 1, field.offset, &what)?;
                    dims.push(u64::try_from(dim).map_err(|_| {
                        FormatError::at(FormatErrorKind::Invalid(format!("has {dim}")), field.offset, what)
                    })?);
                    Ok(())
                })?;
            }
            DATA_TYPE => (data_type, type_at) = (field.int(&what)?, field.offset),
            NAME => name = field.text(&format_args!("name of {what}"))?,
            RAW_DATA => raw = Some(field.span(&what)?),
            FLOAT_DATA | INT32_DATA | STRING_DATA | INT64_DATA | DOUBLE_DATA | UINT64_DATA => {
                let before = typed.replace(field.number);
                if before.is_some_and(|before| before != field.number) {
                    let kind = FormatErrorKind::Invalid("has data of two types".to_owned());
                    return Err(FormatError::at(kind, field.offset, what));
                }
            }
            SEGMENT => {
                let kind = FormatErrorKind::UnsupportedType { found: "segment of a tensor".to_owned() };
                return Err(FormatError::at(kind, field.offset, what));
            }
            EXTERNAL_DATA => location = external_location(&field.message(&what)?, location)?,
            DATA_LOCATION => external = field.int(&what)? == 1,
            _ => {}
        }
    }

    let described = Described { name, place };
    Index::charge(budget, name, dims.len(), offset)?;
    if external || !location.is_empty() {
        return Err(FormatError::at(FormatErrorKind::ExternalData { location }, offset, described));
    }
    let stored = stored(data_type).map_err(|kind| FormatError::at(kind, type_at, &described))?;
    if raw.as_ref().is_some_and(|raw| !raw.is_empty()) && typed.is_some() {
        let kind = FormatErrorKind::Invalid("has both raw and typed data".to_owned());
        return Err(FormatError::at(kind, offset, described));
    }

    let empty = dims.contains(&0);
    let (shape, bytes) = if empty {
        (dims.iter().map(|&dim| dim as usize).collect(), 0)
    } else {
        tensor_bytes(stored, &dims, dims_at, &described)?
    };
    let data = match (raw, typed, stored) {
        (Some(raw), None, _) => {
            // Strings are never raw; other sizes are known also for types that cannot be used.
            if raw.len() != bytes {
                let kind = FormatErrorKind::SizeMismatch {
                    expected: bytes as u64,
                    found: raw.len() as u64,
                    unit: "bytes",
                };
                return Err(FormatError::at(kind, raw.start as u64, described));
            }
            Data::Span { file: 0, range: raw }
        }
        (_, Some(field), Stored::Known(ty)) => decode(message, field, ty, bytes, &described)?,
        (_, None, Stored::Known(_)) if bytes > 0 => {
            let kind = FormatErrorKind::SizeMismatch { expected: bytes as u64, found: 0, unit: "bytes" };
            return Err(FormatError::at(kind, offset, described));
        }
        _ => Data::Owned(Box::default()),
    };
    Ok(Entry { name: name.to_owned(), stored, shape, data, offset })
}

/// How errors call a tensor.
struct Described<'a> {
    name: &'a str,
    place: &'a dyn Display,
}

impl Display for Described<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.name.is_empty() {
            write!(f, "tensor of {}", self.place)
        } else {
            write!(f, "tensor `{}`", self.name)
        }
    }
}

/// Decodes the typed data in field number `number` to the `bytes` bytes that the tensor must have.
fn decode(
    message: &Message<'_>,
    number: u64,
    ty: TensorType,
    bytes: usize,
    described: &dyn Display,
) -> Result<Data, FormatError> {
    let offset = message.offset();
    let right = match ty {
        TensorType::F32 => FLOAT_DATA,
        TensorType::I64 => INT64_DATA,
        _ => INT32_DATA,
    };
    if number != right {
        let kind = FormatErrorKind::Invalid(format!("has type {ty} but its data in field {number}"));
        return Err(FormatError::at(kind, offset, described));
    }
    let count = bytes / ty.block_bytes();
    let least_bytes = if ty == TensorType::F32 { 4 } else { 1 };
    let mismatch = |found: usize| {
        let kind =
            FormatErrorKind::SizeMismatch { expected: count as u64, found: found as u64, unit: "elements" };
        FormatError::at(kind, offset, described)
    };
    if count.saturating_mul(least_bytes) > message.left() {
        return Err(mismatch(message.left() / least_bytes));
    }

    let mut out: Vec<u8> = Vec::new();
    let mut fields = message.clone();
    while let Some(field) = fields.next(described)? {
        if field.number != number {
            continue;
        }
        if ty == TensorType::F32 {
            // One packed list is the tensor's bytes as they are.
            if let Ok(range) = field.span(described)
                && range.len() == bytes
                && out.is_empty()
            {
                return Ok(Data::Span { file: 0, range });
            }
            field.floats(described, |x| {
                out.extend(x.to_le_bytes());
                if out.len() <= bytes { Ok(()) } else { Err(mismatch(count + 1)) }
            })?;
        } else {
            field.ints(described, |x| {
                push_integer(ty, x, &mut out).ok_or_else(|| {
                    let kind = FormatErrorKind::Invalid(format!("has {x}, which is no {ty}"));
                    FormatError::at(kind, field.offset, described)
                })?;
                if out.len() <= bytes { Ok(()) } else { Err(mismatch(count + 1)) }
            })?;
        }
    }
    if out.len() != bytes {
        return Err(mismatch(out.len() / ty.block_bytes()));
    }
    Ok(Data::Owned(out.into()))
}

/// Appends `x` as `ty`, half floats by their bits; `None` if it does not fit.
fn push_integer(ty: TensorType, x: i64, out: &mut Vec<u8>) -> Option<()> {
    match ty {
        TensorType::I8 => out.extend(i8::try_from(x).ok()?.to_le_bytes()),
        TensorType::U8 => out.push(u8::try_from(x).ok()?),
        TensorType::I32 => out.extend(i32::try_from(x).ok()?.to_le_bytes()),
        TensorType::I64 => out.extend(x.to_le_bytes()),
        TensorType::F16 | TensorType::BF16 => {
            out.extend(bf16::from_bits(u16::try_from(x).ok()?).to_le_bytes())
        }
        _ => return None,
    }
    Some(())
}

/// A `StringStringEntryProto` of `external_data`: the location, if it is that.
fn external_location(message: &Message<'_>, before: String) -> Result<String, FormatError> {
    let what = "external data of a tensor";
    let (mut key, mut value) = ("", "");
    let mut fields = message.clone();
    while let Some(field) = fields.next(&what)? {
        match field.number {
            1 => key = field.text(&what)?,
            2 => value = field.text(&what)?,
            _ => {}
        }
    }
    Ok(if key == "location" { value.chars().take(256).collect() } else { before })
}

/// `TensorProto.DataType`.
fn stored(data_type: i64) -> Result<Stored, FormatErrorKind> {
    Ok(match data_type {
        1 => Stored::Known(TensorType::F32),
        2 | 9 => Stored::Known(TensorType::U8), // 9: booleans, one byte each
        3 => Stored::Known(TensorType::I8),
        6 => Stored::Known(TensorType::I32),
        7 => Stored::Known(TensorType::I64),
        10 => Stored::Known(TensorType::F16),
        16 => Stored::Known(TensorType::BF16),
        4 => Stored::Other("UINT16", 2),
        5 => Stored::Other("INT16", 2),
        8 => Stored::Other("STRING", 0),
        11 => Stored::Other("DOUBLE", 8),
        12 => Stored::Other("UINT32", 4),
        13 => Stored::Other("UINT64", 8),
        14 => Stored::Other("COMPLEX64", 8),
        15 => Stored::Other("COMPLEX128", 16),
        17..=20 => Stored::Other("FLOAT8", 1),
        other => return Err(FormatErrorKind::UnsupportedType { found: format!("number {other}") }),
    })
}
