//! Metadata values: what the file has, and what a caller makes of it.

use std::fmt::{self, Display};
use std::ops::Range;

use crate::formats::reader::{Budget, Reader};
use crate::formats::{FormatError, FormatErrorKind};

/// Arrays within arrays that are accepted; published files have none.
const DEPTH_LIMIT: usize = 4;

/// The type of a metadata value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it all
pub enum ValueType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
}

impl ValueType {
    fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::U16,
            3 => Self::I16,
            4 => Self::U32,
            5 => Self::I32,
            6 => Self::F32,
            7 => Self::Bool,
            8 => Self::String,
            9 => Self::Array,
            10 => Self::U64,
            11 => Self::I64,
            12 => Self::F64,
            _ => return None,
        })
    }

    /// Bytes of a value: all of them, or the least that a string or array has.
    fn least_bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::String => 8,
            Self::Array => 12,
        }
    }
}

impl Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Array => "array",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        })
    }
}

/// A metadata value.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // the names say it all
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(String),
    /// The elements stay in the file; ask for them with [`Gguf::get`](super::Gguf::get).
    Array(Array),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// A metadata array, checked and left in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    element: ValueType,
    len: usize,
    /// Where the elements stand.
    range: Range<usize>,
}

impl Array {
    /// The type of all elements.
    pub fn element(&self) -> ValueType {
        self.element
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Value {
    /// Reads a type and a value of it.
    pub(super) fn parse(r: &mut Reader<'_>, budget: &mut Budget, key: &str) -> Result<Self, FormatError> {
        let field = format_args!("metadata `{key}`");
        let ty = value_type(r, &format_args!("type of metadata `{key}`"))?;
        Self::parse_as(ty, r, budget, &field)
    }

    fn parse_as(
        ty: ValueType,
        r: &mut Reader<'_>,
        budget: &mut Budget,
        field: &dyn Display,
    ) -> Result<Self, FormatError> {
        Ok(match ty {
            ValueType::U8 => Self::U8(r.u8(field)?),
            ValueType::I8 => Self::I8(r.i8(field)?),
            ValueType::U16 => Self::U16(r.u16(field)?),
            ValueType::I16 => Self::I16(r.i16(field)?),
            ValueType::U32 => Self::U32(r.u32(field)?),
            ValueType::I32 => Self::I32(r.i32(field)?),
            ValueType::F32 => Self::F32(r.f32(field)?),
            ValueType::Bool => Self::Bool(boolean(r, field)?),
            ValueType::U64 => Self::U64(r.u64(field)?),
            ValueType::I64 => Self::I64(r.i64(field)?),
            ValueType::F64 => Self::F64(r.f64(field)?),
            ValueType::String => {
                let at = r.offset();
                let len = r.u64(field)?;
                r.expect_items(len, 1, field)?;
                budget.charge(len as usize, at, field)?;
                Self::String(r.text(len, field)?.to_owned())
            }
            ValueType::Array => Self::Array(skip_array(r, field, DEPTH_LIMIT)?),
        })
    }

    /// The type of the value, of an array also length and element type: "array of 3 string".
    pub(super) fn describe(&self) -> String {
        let ty = match self {
            Self::U8(_) => ValueType::U8,
            Self::I8(_) => ValueType::I8,
            Self::U16(_) => ValueType::U16,
            Self::I16(_) => ValueType::I16,
            Self::U32(_) => ValueType::U32,
            Self::I32(_) => ValueType::I32,
            Self::F32(_) => ValueType::F32,
            Self::Bool(_) => ValueType::Bool,
            Self::String(_) => ValueType::String,
            Self::U64(_) => ValueType::U64,
            Self::I64(_) => ValueType::I64,
            Self::F64(_) => ValueType::F64,
            Self::Array(array) => return format!("an array of {} {}", array.len, array.element),
        };
        format!("of type {ty}")
    }

    /// The integer, whatever its width.
    fn integer(&self) -> Option<i128> {
        Some(match *self {
            Self::U8(x) => x.into(),
            Self::I8(x) => x.into(),
            Self::U16(x) => x.into(),
            Self::I16(x) => x.into(),
            Self::U32(x) => x.into(),
            Self::I32(x) => x.into(),
            Self::U64(x) => x.into(),
            Self::I64(x) => x.into(),
            _ => return None,
        })
    }
}

fn value_type(r: &mut Reader<'_>, field: &dyn Display) -> Result<ValueType, FormatError> {
    let at = r.offset();
    let code = r.u32(field)?;
    ValueType::from_code(code).ok_or_else(|| {
        FormatError::at(FormatErrorKind::Invalid(format!("is {code}, which is no metadata type")), at, field)
    })
}

fn boolean(r: &mut Reader<'_>, field: &dyn Display) -> Result<bool, FormatError> {
    let at = r.offset();
    match r.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(FormatError::at(FormatErrorKind::Invalid(format!("is {other}, not 0 or 1")), at, field)),
    }
}

/// Checks an array's structure and leaves it where it is.
fn skip_array(r: &mut Reader<'_>, field: &dyn Display, depth: usize) -> Result<Array, FormatError> {
    let at = r.offset();
    let Some(depth) = depth.checked_sub(1) else {
        return Err(FormatError::at(FormatErrorKind::TooDeep { limit: DEPTH_LIMIT }, at, field));
    };
    let element = value_type(r, &format_args!("element type of {field}"))?;
    let len = r.u64(&format_args!("length of {field}"))?;
    r.expect_items(len, element.least_bytes(), field)?;
    let start = r.offset() as usize;
    match element {
        ValueType::String => {
            for _ in 0..len {
                let bytes = r.u64(field)?;
                r.span(bytes, field)?;
            }
        }
        ValueType::Array => {
            for _ in 0..len {
                skip_array(r, field, depth)?;
            }
        }
        ValueType::Bool => {
            for _ in 0..len {
                boolean(r, field)?;
            }
        }
        fixed => {
            r.span(len * fixed.least_bytes(), field)?;
        }
    }
    Ok(Array { element, len: len as usize, range: start..r.offset() as usize })
}

/// A type that a metadata value can be asked for as; implemented here only.
///
/// `u32`, `i32`, `u64`, `i64` take integers of any width that fit; `f32` takes f64 too; then `bool`, `&str`, and a
/// `Vec` of each of these; `Vec<&[u8]>` takes texts that are not UTF-8.
pub trait FromValue<'a>: Sized + private::Sealed {
    #[doc(hidden)]
    fn from_value(value: &'a Value, file: &'a [u8], field: &dyn Display) -> Result<Self, FormatError>;
}

mod private {
    pub trait Sealed {}
}

fn wrong<T>(value: &Value, expected: &'static str, field: &dyn Display) -> Result<T, FormatError> {
    Err(FormatError::about(FormatErrorKind::WrongType { expected, found: value.describe() }, field))
}

/// Decodes the array in `value`, if `accepts` takes its element type.
fn elements<'a, T>(
    value: &Value,
    file: &'a [u8],
    field: &dyn Display,
    expected: &'static str,
    accepts: fn(ValueType) -> bool,
    one: impl Fn(&mut Reader<'a>, ValueType) -> Result<T, FormatError>,
) -> Result<Vec<T>, FormatError> {
    let array = match value {
        // An empty array serves any type: writers choose its element type freely.
        Value::Array(array) if array.is_empty() || accepts(array.element) => array,
        other => return wrong(other, expected, field),
    };
    let mut r = Reader::new(file).part(array.range.clone());
    let mut out = Vec::with_capacity(array.len);
    for _ in 0..array.len {
        out.push(one(&mut r, array.element)?);
    }
    Ok(out)
}

fn is_integer(ty: ValueType) -> bool {
    use ValueType::{Array, Bool, F32, F64, String};
    !matches!(ty, F32 | F64 | Bool | String | Array)
}

fn integer(r: &mut Reader<'_>, ty: ValueType, field: &dyn Display) -> Result<i128, FormatError> {
    Ok(match ty {
        ValueType::U8 => r.u8(field)?.into(),
        ValueType::I8 => r.i8(field)?.into(),
        ValueType::U16 => r.u16(field)?.into(),
        ValueType::I16 => r.i16(field)?.into(),
        ValueType::U32 => r.u32(field)?.into(),
        ValueType::I32 => r.i32(field)?.into(),
        ValueType::U64 => r.u64(field)?.into(),
        _ => r.i64(field)?.into(),
    })
}

macro_rules! integers {
    ($($ty:ident $one:literal $many:literal)*) => {$(
        impl private::Sealed for $ty {}
        impl<'a> FromValue<'a> for $ty {
            fn from_value(value: &'a Value, _: &'a [u8], field: &dyn Display) -> Result<Self, FormatError> {
                let Some(integer) = value.integer() else { return wrong(value, $one, field) };
                integer.try_into().map_err(|_| {
                    let found = integer.to_string();
                    FormatError::about(FormatErrorKind::WrongType { expected: $one, found }, field)
                })
            }
        }
        impl private::Sealed for Vec<$ty> {}
        impl<'a> FromValue<'a> for Vec<$ty> {
            fn from_value(value: &'a Value, file: &'a [u8], field: &dyn Display) -> Result<Self, FormatError> {
                elements(value, file, field, $many, is_integer, |r, ty| {
                    let at = r.offset();
                    let integer = integer(r, ty, field)?;
                    integer.try_into().map_err(|_| {
                        let found = format!("an array with {integer}");
                        FormatError::at(FormatErrorKind::WrongType { expected: $many, found }, at, field)
                    })
                })
            }
        }
    )*};
}

integers! {
    u32 "a u32" "an array of u32"
    i32 "an i32" "an array of i32"
    u64 "a u64" "an array of u64"
    i64 "an i64" "an array of i64"
}

impl private::Sealed for f32 {}
impl<'a> FromValue<'a> for f32 {
    fn from_value(value: &'a Value, _: &'a [u8], field: &dyn Display) -> Result<Self, FormatError> {
        match value {
            Value::F32(x) => Ok(*x),
            Value::F64(x) => Ok(*x as f32),
            other => wrong(other, "an f32", field),
        }
    }
}

impl private::Sealed for Vec<f32> {}
impl<'a> FromValue<'a> for Vec<f32> {
    fn from_value(value: &'a Value, file: &'a [u8], field: &dyn Display) -> Result<Self, FormatError> {
        let accepts = |ty| matches!(ty, ValueType::F32 | ValueType::F64);
        elements(value, file, field, "an array of f32", accepts, |r, ty| {
            if ty == ValueType::F64 { Ok(r.f64(field)? as f32) } else { r.f32(field) }
        })
    }
}

impl private::Sealed for bool {}
impl<'a> FromValue<'a> for bool {
    fn from_value(value: &'a Value, _: &'a [u8], field: &dyn Display) -> Result<Self, FormatError> {
        if let Value::Bool(x) = value { Ok(*x) } else { wrong(value, "a bool", field) }
    }
}

impl private::Sealed for Vec<bool> {}
impl<'a> FromValue<'a> for Vec<bool> {
    fn from_value(value: &'a Value, file: &'a [u8], field: &dyn Display) -> Result<Self, FormatError> {
        elements(value, file, field, "an array of bool", |ty| ty == ValueType::Bool, |r, _| boolean(r, field))
    }
}

impl private::Sealed for &str {}
impl<'a> FromValue<'a> for &'a str {
    fn from_value(value: &'a Value, _: &'a [u8], field: &dyn Display) -> Result<Self, FormatError> {
        if let Value::String(text) = value { Ok(text) } else { wrong(value, "a string", field) }
    }
}

impl private::Sealed for Vec<&str> {}
impl<'a> FromValue<'a> for Vec<&'a str> {
    fn from_value(value: &'a Value, file: &'a [u8], field: &dyn Display) -> Result<Self, FormatError> {
        elements(
            value,
            file,
            field,
            "an array of string",
            |ty| ty == ValueType::String,
            |r, _| {
                let len = r.u64(field)?;
                r.text(len, field)
            },
        )
    }
}

impl private::Sealed for Vec<&[u8]> {}
impl<'a> FromValue<'a> for Vec<&'a [u8]> {
    fn from_value(value: &'a Value, file: &'a [u8], field: &dyn Display) -> Result<Self, FormatError> {
        elements(
            value,
            file,
            field,
            "an array of string",
            |ty| ty == ValueType::String,
            |r, _| {
                let len = r.u64(field)?;
                r.take(len, field)
            },
        )
    }
}
