//! The JSON header, read as a stream so that a hostile one is never held as a tree.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::*;
use crate::formats::index::{Stored, tensor_bytes};
use crate::formats::reader::DIMS_LIMIT;
use crate::formats::{FormatErrorKind, TensorType};

/// A tensor as the header describes it.
struct Description {
    dtype: Stored,
    dims: Vec<u64>,
    start: u64,
    end: u64,
}

type Metadata = BTreeMap<String, String>;

/// Reads the header of `file`, which is number `number` of its set.
pub(super) fn parse(
    file: &[u8],
    number: usize,
    budget: &mut Budget,
) -> Result<(Vec<Entry>, Metadata), FormatError> {
    let mut r = Reader::new(file);
    let len = limited(r.u64(&"header length")?, HEADER_LIMIT, 0, &"header length")?;
    let at = r.offset();
    let text = r.take(len, &"header")?;
    if text.first() != Some(&b'{') {
        return Err(FormatError::at(
            FormatErrorKind::WrongFormat { expected: "a safetensors file" },
            at,
            "header",
        ));
    }
    let data = r.offset()..file.len() as u64;

    let found = Found { tensors: Vec::new(), metadata: None, budget, error: None };
    let found = RefCell::new(found);
    let mut json = serde_json::Deserializer::from_slice(text);
    let done = HeaderSeed(&found).deserialize(&mut json).and_then(|()| json.end());
    let mut found = found.into_inner();
    if let Err(error) = done {
        return Err(found.error.take().unwrap_or_else(|| json_error(&error, text, at)));
    }

    // The ranges must follow each other through the whole data: no gaps, no overlap.
    let mut tensors = found.tensors;
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    order.sort_by_key(|&i| (tensors[i].1.start, tensors[i].1.end));
    let mut next = 0;
    for &i in &order {
        let (name, tensor) = &tensors[i];
        if tensor.start != next {
            let at = at + place_of(text, name);
            let text = format!("start at {} where {next} is the next free byte", tensor.start);
            return Err(FormatError::at(
                FormatErrorKind::Invalid(text),
                at,
                format_args!("data_offsets of tensor `{name}`"),
            ));
        }
        next = tensor.end;
    }
    if next != data.end - data.start {
        let kind =
            FormatErrorKind::SizeMismatch { expected: next, found: data.end - data.start, unit: "bytes" };
        return Err(FormatError::at(kind, data.start, "data after the header"));
    }

    let mut entries = Vec::with_capacity(tensors.len());
    for (name, tensor) in tensors.drain(..) {
        let (shape, bytes) =
            tensor_bytes(tensor.dtype, &tensor.dims, at, &format_args!("shape of tensor `{name}`"))
                .map_err(|error| FormatError { offset: Some(at + place_of(text, &name)), ..error })?;
        if bytes as u64 != tensor.end - tensor.start {
            let at = at + place_of(text, &name);
            let kind = FormatErrorKind::SizeMismatch {
                expected: bytes as u64,
                found: tensor.end - tensor.start,
                unit: "bytes",
            };
            return Err(FormatError::at(kind, at, format_args!("data_offsets of tensor `{name}`")));
        }
        // In bounds: the ranges end with the file.
        let range = (data.start + tensor.start) as usize..(data.start + tensor.end) as usize;
        let data = Data::Span { file: number, range };
        entries.push(Entry { name, stored: tensor.dtype, shape, data, offset: at });
    }
    Ok((entries, found.metadata.unwrap_or_default()))
}

/// Where the header names the tensor, for errors: serde tells no positions of what it accepts.
pub(super) fn place_of(text: &[u8], name: &str) -> u64 {
    let quoted = serde_json::Value::from(name).to_string();
    // Of linear cost whatever the text repeats; comparing at every byte would take minutes on a crafted one.
    memchr::memmem::find(text, quoted.as_bytes()).unwrap_or(0) as u64
}

/// A JSON error as ours; `text` starts at byte `base` of the file.
pub(super) fn json_error(error: &serde_json::Error, text: &[u8], base: u64) -> FormatError {
    // serde_json counts lines and columns from 1.
    let line_start = match error.line() {
        0 | 1 => 0,
        line => text
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .nth(line - 2)
            .map_or(text.len(), |(at, _)| at + 1),
    };
    let offset = line_start + error.column().saturating_sub(1);
    let kind = if error.is_eof() {
        FormatErrorKind::Truncated { needed: text.len() as u64 + 1, left: text.len() as u64 }
    } else {
        FormatErrorKind::Invalid(format!("is not what safetensors allows: {error}"))
    };
    FormatError::at(kind, base + offset.min(text.len()) as u64, "JSON header")
}

/// What the visitors gather; an error of ours travels here past serde's own.
struct Found<'b> {
    tensors: Vec<(String, Description)>,
    metadata: Option<Metadata>,
    budget: &'b mut Budget,
    error: Option<FormatError>,
}

struct HeaderSeed<'s, 'b>(&'s RefCell<Found<'b>>);

impl<'de> DeserializeSeed<'de> for HeaderSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HeaderSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                if self.0.borrow().metadata.is_some() {
                    return self.fail(FormatErrorKind::Duplicate, &"`__metadata__`");
                }
                let texts: UniqueMap = map.next_value()?;
                let bytes =
                    texts.0.iter().map(|(k, v)| k.len() + v.len() + size_of::<(String, String)>()).sum();
                self.charge(bytes, &name)?;
                self.0.borrow_mut().metadata = Some(texts.0);
                continue;
            }
            if let Err(error) = check_name(name.len() as u64, 8, &"tensor name") {
                return self.fail(error.kind, &"tensor name");
            }
            if self.0.borrow().tensors.len() as u64 >= TENSORS_LIMIT {
                let kind = FormatErrorKind::TooLarge { value: TENSORS_LIMIT + 1, limit: TENSORS_LIMIT };
                return self.fail(kind, &"number of tensors");
            }
            let description = map.next_value_seed(TensorSeed)?;
            self.charge(Index::ENTRY_BYTES + name.len() + size_of_val(&description.dims[..]), &name)?;
            self.0.borrow_mut().tensors.push((name, description));
        }
        Ok(())
    }
}

impl HeaderSeed<'_, '_> {
    fn fail<E: serde::de::Error>(&self, kind: FormatErrorKind, field: &dyn fmt::Display) -> Result<(), E> {
        self.0.borrow_mut().error = Some(FormatError::at(kind, 8, field));
        Err(E::custom("refused"))
    }

    fn charge<E: serde::de::Error>(&self, bytes: usize, name: &str) -> Result<(), E> {
        let mut found = self.0.borrow_mut();
        let charged = found.budget.charge(bytes, 8, &format_args!("`{name}`"));
        charged.map_err(|error| {
            found.error = Some(error);
            E::custom("refused")
        })
    }
}

struct TensorSeed;

impl<'de> DeserializeSeed<'de> for TensorSeed {
    type Value = Description;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Description, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TensorSeed {
    type Value = Description;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tensor with dtype, shape and data_offsets")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Description, A::Error> {
        let (mut dtype, mut dims, mut offsets) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            let again = match key.as_str() {
                "dtype" => {
                    dtype.replace(dtype_of(&map.next_value::<String>()?).map_err(A::Error::custom)?).is_some()
                }
                "shape" => dims.replace(map.next_value::<Numbers<{ DIMS_LIMIT as usize }>>()?.0).is_some(),
                "data_offsets" => offsets.replace(map.next_value::<Numbers<2>>()?.0).is_some(),
                _ => map.next_value::<IgnoredAny>().map(|_| false)?,
            };
            if again {
                return Err(A::Error::custom(format_args!("`{key}` is there twice")));
            }
        }
        let dtype = dtype.ok_or_else(|| A::Error::missing_field("dtype"))?;
        let dims = dims.ok_or_else(|| A::Error::missing_field("shape"))?;
        match offsets.as_deref() {
            Some(&[start, end]) if start <= end => Ok(Description { dtype, dims, start, end }),
            Some(_) => Err(A::Error::custom("data_offsets are not a start and an end behind it")),
            None => Err(A::Error::missing_field("data_offsets")),
        }
    }
}

fn dtype_of(name: &str) -> Result<Stored, String> {
    Ok(match name {
        "F32" => Stored::Known(TensorType::F32),
        "F16" => Stored::Known(TensorType::F16),
        "BF16" => Stored::Known(TensorType::BF16),
        "I8" => Stored::Known(TensorType::I8),
        "U8" | "BOOL" => Stored::Known(TensorType::U8),
        "I32" => Stored::Known(TensorType::I32),
        "I64" => Stored::Known(TensorType::I64),
        "F64" => Stored::Other("F64", 8),
        "U64" => Stored::Other("U64", 8),
        "U32" => Stored::Other("U32", 4),
        "I16" => Stored::Other("I16", 2),
        "U16" => Stored::Other("U16", 2),
        "F8_E4M3" => Stored::Other("F8_E4M3", 1),
        "F8_E5M2" => Stored::Other("F8_E5M2", 1),
        "F8_E8M0" => Stored::Other("F8_E8M0", 1),
        "C64" => Stored::Other("C64", 8),
        other => return Err(format!("dtype `{}` is not known", other.chars().take(32).collect::<String>())),
    })
}

/// At most `N` unsigned integers.
struct Numbers<const N: usize>(Vec<u64>);

impl<'de, const N: usize> Deserialize<'de> for Numbers<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<const N: usize>;

        impl<'de, const N: usize> Visitor<'de> for List<N> {
            type Value = Numbers<N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {N} whole numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut numbers = Vec::new();
                while let Some(number) = seq.next_element()? {
                    if numbers.len() == N {
                        return Err(A::Error::invalid_length(N + 1, &self));
                    }
                    numbers.push(number);
                }
                Ok(Numbers(numbers))
            }
        }

        deserializer.deserialize_seq(List)
    }
}

/// A map of texts that refuses a key that stands twice.
pub(super) struct UniqueMap(pub(super) BTreeMap<String, String>);

impl<'de> Deserialize<'de> for UniqueMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;

        impl<'de> Visitor<'de> for Texts {
            type Value = UniqueMap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from text to text")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut texts = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    if texts.len() as u64 >= TENSORS_LIMIT {
                        return Err(A::Error::invalid_length(texts.len() + 1, &self));
                    }
                    if texts.contains_key(&key) {
                        return Err(A::Error::custom(format_args!("`{key}` is there twice")));
                    }
                    texts.insert(key, value);
                }
                Ok(UniqueMap(texts))
            }
        }

        deserializer.deserialize_map(Texts)
    }
}
