//! Element types, views of tensors, and the trait that all readers share.

use std::fmt;
use std::sync::Arc;

use super::{FormatError, FormatErrorKind, blocks};

/// How the elements of a tensor are stored.
///
/// The block types are ggml's; the layout of each block is described in [`blocks`].
#[allow(non_camel_case_types)] // `Q4_0` is the type's name everywhere
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TensorType {
    /// 32-bit IEEE float.
    F32,
    /// 16-bit IEEE float.
    F16,
    /// The upper half of an [`TensorType::F32`].
    BF16,
    /// 8-bit signed integer.
    I8,
    /// 8-bit unsigned integer; also booleans, as 0 and 1.
    U8,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 32 elements: a scale and 4-bit values around 8.
    Q4_0,
    /// 32 elements: a scale, a minimum and 4-bit values.
    Q4_1,
    /// 32 elements: a scale and 5-bit values around 16.
    Q5_0,
    /// 32 elements: a scale, a minimum and 5-bit values.
    Q5_1,
    /// 32 elements: a scale and 8-bit signed values.
    Q8_0,
    /// 256 elements: eight groups of 32 4-bit values with 6-bit scales and minimums.
    Q4K,
    /// 256 elements: eight groups of 32 5-bit values with 6-bit scales and minimums.
    Q5K,
    /// 256 elements: sixteen groups of 16 6-bit values around 32 with 8-bit scales.
    Q6K,
}

impl TensorType {
    /// Every type, for tables and tests.
    pub const ALL: [Self; 15] = [
        Self::F32,
        Self::F16,
        Self::BF16,
        Self::I8,
        Self::U8,
        Self::I32,
        Self::I64,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
    ];

    /// Elements of a block; 1 for types that have none.
    pub const fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::BF16 | Self::I8 | Self::U8 | Self::I32 | Self::I64 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }

    /// Bytes of a block, or of one element for types without blocks.
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::F16 | Self::BF16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::I64 => 8,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q8_0 => 34,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
        }
    }

    /// Bytes of `cols` elements, or `None` if they are not whole blocks or the product overflows.
    pub const fn row_bytes(self, cols: usize) -> Option<usize> {
        if !cols.is_multiple_of(self.block_len()) {
            return None;
        }
        (cols / self.block_len()).checked_mul(self.block_bytes())
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::BF16 => "BF16",
            Self::I8 => "I8",
            Self::U8 => "U8",
            Self::I32 => "I32",
            Self::I64 => "I64",
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Q5_0 => "Q5_0",
            Self::Q5_1 => "Q5_1",
            Self::Q8_0 => "Q8_0",
            Self::Q4K => "Q4_K",
            Self::Q5K => "Q5_K",
            Self::Q6K => "Q6_K",
        })
    }
}

/// What 8-bit elements stand for: `(q - zero) * scale`, the difference exact and the product rounded once.
///
/// Both lists have one number for the whole tensor or one for each index of the outermost dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Affine<'a> {
    /// Scales.
    pub scales: &'a [f32],
    /// Zero points, whole numbers of the element's range.
    pub zeros: &'a [f32],
}

impl Affine<'_> {
    /// Scale and zero point of a row: an index of the outermost dimension.
    pub fn of(&self, row: usize) -> (f32, f32) {
        let of =
            |list: &[f32], none| list.get(if list.len() == 1 { 0 } else { row }).copied().unwrap_or(none);
        (of(self.scales, 1.0), of(self.zeros, 0.0))
    }

    /// Turns the integers of a row into what they stand for.
    pub fn apply(&self, row: usize, integers: &mut [f32]) {
        let (scale, zero) = self.of(row);
        integers.iter_mut().for_each(|q| *q = (*q - zero) * scale);
    }
}

/// One tensor of a weight file, as its bytes stand there.
///
/// A reader guarantees that `data` is exactly as long as `ty` and `shape` call for, that no dimension is
/// zero, and that the innermost dimension is a whole number of blocks. The bytes have **no alignment**.
#[derive(Debug, Clone)]
pub struct TensorView<'a> {
    /// The name in the file.
    pub name: &'a str,
    /// How the elements are stored.
    pub ty: TensorType,
    /// Outermost dimension first, innermost (contiguous) last; empty for a scalar.
    pub shape: Vec<usize>,
    /// The elements, row after row, little-endian.
    pub data: &'a [u8],
    /// What 8-bit elements stand for, where they are not plain numbers.
    pub affine: Option<Affine<'a>>,
}

impl TensorView<'_> {
    /// The number of elements: the product of the shape.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// All elements as f32, in a new vector.
    ///
    /// # Errors
    /// Only for a view that was not made by a reader and has the wrong number of bytes.
    pub fn to_f32_vec(&self) -> Result<Vec<f32>, FormatError> {
        let mut out = vec![0.0; self.elements()];
        blocks::dequantize(self.ty, self.data, &mut out).map_err(|mut error| {
            error.field = format!("tensor `{}`", self.name);
            error
        })?;
        if let Some(affine) = &self.affine {
            let row = (out.len() / self.shape.first().copied().unwrap_or(1).max(1)).max(1);
            out.chunks_mut(row).enumerate().for_each(|(i, integers)| affine.apply(i, integers));
        }
        Ok(out)
    }

    /// The same view, if its shape is `shape`.
    ///
    /// # Errors
    /// [`FormatErrorKind::Invalid`] naming both shapes.
    pub fn expect_shape(self, shape: &[usize]) -> Result<Self, FormatError> {
        if self.shape == shape {
            return Ok(self);
        }
        let kind =
            FormatErrorKind::Invalid(format!("has shape {:?} where the model needs {shape:?}", self.shape));
        Err(FormatError::about(kind, format_args!("tensor `{}`", self.name)))
    }
}

/// A set of named tensors: what model code loads from, whatever the file.
pub trait TensorSource: Send + Sync {
    /// The names of all tensors, in the file's order.
    fn names(&self) -> Vec<String>;

    /// The tensor called `name`.
    ///
    /// # Errors
    /// [`FormatErrorKind::NotFound`] with similar names, or [`FormatErrorKind::UnsupportedType`] for element
    /// types that [`TensorType`] lacks.
    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError>;

    /// Gives the file pages of `name` back to the system once they have been packed. Advice only.
    fn release(&self, _name: &str) {}

    /// A source of `name` and nothing else, for who goes on reading one tensor: it keeps the others of a source in
    /// memory from staying there. None where the tensors are a mapped file's anyway.
    fn only(&self, _name: &str) -> Option<Arc<dyn TensorSource>> {
        None
    }
}

/// The names that resemble `name` most, best first, at most three.
///
/// Resemblance is what `name` shares at its start and at its end: linear, as a hostile file may hold many
/// long names, and right for what goes wrong in practice (a prefix, a layer number, `weight` for `bias`).
pub(crate) fn near_names<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut best: Vec<(usize, &str)> = names
        .filter_map(|candidate| {
            let shared = |a: &mut dyn Iterator<Item = (u8, u8)>| a.take_while(|(a, b)| a == b).count();
            let start = shared(&mut name.bytes().zip(candidate.bytes()));
            let end = shared(&mut name.bytes().rev().zip(candidate.bytes().rev()));
            let score = (start + end).min(name.len()).min(candidate.len());
            (2 * score >= name.len().max(1)).then_some((score, candidate))
        })
        .collect();
    best.sort_by_key(|&(score, candidate)| {
        (std::cmp::Reverse(score), candidate.len().abs_diff(name.len()), candidate)
    });
    best.into_iter().take(3).map(|(_, candidate)| candidate.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_bytes_refuses_partial_blocks_and_overflow() {
        for ty in TensorType::ALL {
            let len = ty.block_len();
            assert_eq!(ty.row_bytes(3 * len), Some(3 * ty.block_bytes()), "{ty}");
            assert_eq!(ty.row_bytes(0), Some(0));
            if len > 1 {
                assert_eq!(ty.row_bytes(len + 1), None, "{ty}");
            }
        }
        assert_eq!(TensorType::I64.row_bytes(usize::MAX), None);
        assert_eq!(TensorType::Q8_0.row_bytes(usize::MAX - 31), None);
    }

    #[test]
    fn near_names_finds_the_usual_slips() {
        let names = ["blk.0.attn_q.weight", "blk.0.attn_q.bias", "blk.1.attn_q.weight", "output.weight"];
        let near = |name: &str| near_names(name, names.into_iter());
        assert_eq!(near("model.blk.0.attn_q.weight")[0], "blk.0.attn_q.weight");
        assert_eq!(near("blk.0.attn_q.wight")[0], "blk.0.attn_q.weight");
        assert!(near("encoder/conv1/zzz").is_empty());
        assert!(near("").is_empty() || near("").len() <= 3);
    }
}
