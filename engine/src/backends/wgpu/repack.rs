//! How block weights lie on the device. In a file a block of 34 or 210 bytes begins anywhere, and a GPU reads 16 aligned
//! bytes of neighbours at once or is slow: the integers of all blocks come first, 16 bytes aligned, then the scales, then
//! the fifth bits. Nothing is computed: each byte of the file is there once.

use std::ops::Range;

use crate::formats::TensorType;

/// Where a block's fields are in a file, and with it where they go.
pub(super) struct Fields {
    /// Bytes of a block that stay together in front: whole words of 16 bytes.
    main: Range<usize>,
    /// Bytes of a scale, or a scale and a minimum: words of two or four bytes.
    scales: Range<usize>,
    /// Bytes of the fifth bits: a word.
    fifths: Range<usize>,
}

/// The first words of scales and fifth bits, and the bytes in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Planes {
    pub(super) scales: usize,
    pub(super) fifths: usize,
    pub(super) bytes: usize,
}

/// The fields of a block type; `None` for types of single numbers.
pub(super) fn fields(ty: TensorType) -> Option<Fields> {
    let (main, scales, fifths) = match ty {
        TensorType::Q4_0 => (2..18, 0..2, 0..0),
        TensorType::Q4_1 => (4..20, 0..4, 0..0),
        TensorType::Q5_0 => (6..22, 0..2, 2..6),
        TensorType::Q5_1 => (8..24, 0..4, 4..8),
        TensorType::Q8_0 => (2..34, 0..2, 0..0),
        TensorType::Q4K => (0..144, 0..0, 0..0),
        TensorType::Q5K => (0..176, 0..0, 0..0),
        TensorType::Q6K => (0..208, 208..210, 0..0),
        _ => return None,
    };
    Some(Fields { main, scales, fifths })
}

impl Fields {
    /// Words of four that a block has in front.
    pub(super) fn main_vectors(&self) -> usize {
        self.main.len() / 16
    }

    /// Where the planes of so many blocks are; `None` when there are more than can be.
    pub(super) fn planes(&self, blocks: usize) -> Option<Planes> {
        let scales = blocks.checked_mul(4 * self.main_vectors())?;
        let fifths = scales.checked_add(blocks.checked_mul(self.scales.len())?.div_ceil(4))?;
        let words = fifths.checked_add(blocks.checked_mul(self.fifths.len())? / 4)?;
        Some(Planes { scales, fifths, bytes: words.checked_mul(4)? })
    }

    /// Blocks of a file, `size` bytes each, as they lie on the device: the bytes of each plane, and of a block in it.
    pub(super) fn split(&self, size: usize, data: &[u8]) -> [(Vec<u8>, usize); 3] {
        let blocks = data.len() / size;
        let widths = [self.main.len(), self.scales.len(), self.fifths.len()];
        let mut planes = widths.map(|each| Vec::with_capacity(each * blocks + 4));
        for block in data.chunks_exact(size) {
            for (plane, range) in planes.iter_mut().zip([&self.main, &self.scales, &self.fifths]) {
                plane.extend_from_slice(&block[range.clone()]);
            }
        }
        // Planes begin at whole words.
        let whole = planes[1].len().next_multiple_of(4);
        planes[1].resize(whole, 0);
        let mut widths = widths.into_iter();
        planes.map(|plane| (plane, widths.next().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_there_once_and_planes_begin_at_whole_words() {
        for ty in TensorType::ALL {
            let Some(fields) = fields(ty) else {
                assert_eq!(ty.block_len(), 1, "{ty}");
                continue;
            };
            let (size, blocks) = (ty.block_bytes(), 3);
            let data: Vec<u8> = (0..blocks * size).map(|i| (i * 7 + i / size) as u8).collect();
            let planes = fields.planes(blocks).unwrap();
            let [(main, of_main), (scales, of_scales), (fifths, of_fifths)] = fields.split(size, &data);
            assert_eq!(of_main + of_scales + of_fifths, size, "{ty}");
            assert_eq!(of_main, 16 * fields.main_vectors(), "{ty}");
            assert_eq!(planes.scales * 4, main.len(), "{ty}");
            assert_eq!(planes.fifths * 4, main.len() + scales.len(), "{ty}");
            assert_eq!(planes.bytes, main.len() + scales.len() + fifths.len(), "{ty}");
            let mut sorted: Vec<u8> = [&main, &scales[..blocks * of_scales], &fifths].concat();
            let mut expected = data.clone();
            sorted.sort_unstable();
            expected.sort_unstable();
            assert_eq!(sorted, expected, "{ty}");
        }
    }

    #[test]
    fn fields_go_where_they_belong() {
        let block: Vec<u8> = (0..22).collect();
        let [main, scales, fifths] = fields(TensorType::Q5_0)
            .unwrap()
            .split(22, &[&block[..], &block].concat())
            .map(|(plane, _)| plane);
        assert_eq!(main, [&block[6..], &block[6..]].concat());
        assert_eq!(scales, [0, 1, 0, 1]);
        assert_eq!(fifths, [2, 3, 4, 5, 2, 3, 4, 5]);
    }
}
