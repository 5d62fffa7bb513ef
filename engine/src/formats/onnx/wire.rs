//! protobuf's wire format, as little of it as ONNX needs (<https://protobuf.dev/programming-guides/encoding/>).

use std::fmt::Display;
use std::ops::Range;

use crate::formats::reader::Reader;
use crate::formats::{FormatError, FormatErrorKind};

/// A message: fields one after the other.
#[derive(Debug, Clone)]
pub(super) struct Message<'a> {
    r: Reader<'a>,
}

/// One field of a message.
#[derive(Debug, Clone)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    /// Offset of the field's tag in the file.
    pub(super) offset: u64,
    value: Wire,
    /// For parts of the same file.
    file: Reader<'a>,
}

#[derive(Debug, Clone)]
enum Wire {
    Varint(u64),
    Fixed64,
    Fixed32(u32),
    Bytes(Range<usize>),
}

impl Wire {
    fn name(&self) -> &'static str {
        match self {
            Self::Varint(_) => "an integer",
            Self::Fixed64 => "a 64-bit value",
            Self::Fixed32(_) => "a 32-bit value",
            Self::Bytes(_) => "bytes",
        }
    }
}

impl<'a> Message<'a> {
    pub(super) fn new(r: Reader<'a>) -> Self {
        Self { r }
    }

    pub(super) fn offset(&self) -> u64 {
        self.r.offset()
    }

    /// Bytes from here to the end of the message.
    pub(super) fn left(&self) -> usize {
        self.r.left()
    }

    /// The next field, or `None` at the end; `what` names the message.
    pub(super) fn next(&mut self, what: &dyn Display) -> Result<Option<Field<'a>>, FormatError> {
        if self.r.is_empty() {
            return Ok(None);
        }
        let offset = self.r.offset();
        let what = format_args!("field of {what}");
        let tag = varint(&mut self.r, &what)?;
        let value = match tag & 7 {
            0 => Wire::Varint(varint(&mut self.r, &what)?),
            1 => {
                self.r.span(8, &what)?;
                Wire::Fixed64
            }
            2 => {
                let len = varint(&mut self.r, &what)?;
                Wire::Bytes(self.r.span(len, &what)?)
            }
            5 => Wire::Fixed32(self.r.u32(&what)?),
            wire => {
                let kind = FormatErrorKind::Invalid(format!("has wire type {wire}, which ONNX does not use"));
                return Err(FormatError::at(kind, offset, what));
            }
        };
        let number = tag >> 3;
        if number == 0 || number >= 1 << 29 {
            let kind = FormatErrorKind::Invalid(format!("has the impossible number {number}"));
            return Err(FormatError::at(kind, offset, what));
        }
        Ok(Some(Field { number, offset, value, file: self.r.clone() }))
    }
}

impl<'a> Field<'a> {
    fn wrong<T>(&self, expected: &'static str, what: &dyn Display) -> Result<T, FormatError> {
        let kind = FormatErrorKind::WrongType { expected, found: self.value.name().to_owned() };
        Err(FormatError::at(kind, self.offset, what))
    }

    pub(super) fn int(&self, what: &dyn Display) -> Result<i64, FormatError> {
        if let Wire::Varint(value) = self.value { Ok(value as i64) } else { self.wrong("an integer", what) }
    }

    pub(super) fn float(&self, what: &dyn Display) -> Result<f32, FormatError> {
        if let Wire::Fixed32(bits) = self.value {
            Ok(f32::from_bits(bits))
        } else {
            self.wrong("a float", what)
        }
    }

    /// Where the field's bytes stand in the file.
    pub(super) fn span(&self, what: &dyn Display) -> Result<Range<usize>, FormatError> {
        if let Wire::Bytes(range) = &self.value { Ok(range.clone()) } else { self.wrong("bytes", what) }
    }

    pub(super) fn message(&self, what: &dyn Display) -> Result<Message<'a>, FormatError> {
        Ok(Message::new(self.file.part(self.span(what)?)))
    }

    pub(super) fn bytes(&self, what: &dyn Display) -> Result<&'a [u8], FormatError> {
        let mut r = self.message(what)?.r;
        r.take(r.left() as u64, what)
    }

    pub(super) fn text(&self, what: &dyn Display) -> Result<&'a str, FormatError> {
        let mut r = self.message(what)?.r;
        r.text(r.left() as u64, what)
    }

    /// Gives each integer of a repeated field to `each`: one, or many if packed.
    pub(super) fn ints(
        &self,
        what: &dyn Display,
        mut each: impl FnMut(i64) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        if let Wire::Varint(value) = self.value {
            return each(value as i64);
        }
        let mut r = self.message(what)?.r;
        while !r.is_empty() {
            each(varint(&mut r, what)? as i64)?;
        }
        Ok(())
    }

    /// Gives each float of a repeated field to `each`: one, or many if packed.
    pub(super) fn floats(
        &self,
        what: &dyn Display,
        mut each: impl FnMut(f32) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        if let Wire::Fixed32(bits) = self.value {
            return each(f32::from_bits(bits));
        }
        let mut r = self.message(what)?.r;
        while !r.is_empty() {
            each(r.f32(what)?)?;
        }
        Ok(())
    }
}

/// Seven bits a byte, lowest first; at most ten bytes.
fn varint(r: &mut Reader<'_>, what: &dyn Display) -> Result<u64, FormatError> {
    let offset = r.offset();
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let byte = u64::from(r.u8(what)?);
        if shift == 63 && byte > 1 {
            break;
        }
        value |= (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    let kind = FormatErrorKind::Invalid("is an integer of more than 64 bits".to_owned());
    Err(FormatError::at(kind, offset, what))
}
