//! How block weights lie on the device. In a file a block of 34 or 210 bytes begins anywhere, and a GPU reads 16 aligned
//! bytes of neighbours at once or is slow: the integers of all blocks come first, 16 bytes aligned, then the scales, then
//! the fifth bits. Nothing is computed: each byte of the file is there once.

use crate::formats::TensorType;

/// Where a block's fields are in a file, and with it where they go.
pub(super) struct Fields {
    /// Bytes of a block that stay together in front: whole words of 16 bytes.
    main: &'static [std::ops::Range<usize>],
    /// Bytes of a scale, or a scale and a minimum: words of two or four bytes.
    scales: std::ops::Range<usize>,
    /// Bytes of the fifth bits: a word.
    fifths: std::ops::Range<usize>,
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
    let (main, scales, fifths): (&'static [std::ops::Range<usize>], _, _) = match ty {
        TensorType::Q4_0 => (&[2..18], 0..2, 0..0),
        TensorType::Q4_1 => (&[4..20], 0..4, 0..0),
        TensorType::Q5_0 => (&[6..22], 0..2, 2..6),
        TensorType::Q5_1 => (&[8..24], 0..4, 4..8),
        TensorType::Q8_0 => (&[2..34], 0..2, 0..0),
        TensorType::Q4K => (&[0..144], 0..0, 0..0),
        TensorType::Q5K => (&[0..176], 0..0, 0..0),
        TensorType::Q6K => (&[0..208], 208..210, 0..0),
        _ => return None,
    };
    Some(Fields { main, scales, fifths })
}

impl Fields {
    /// Words of four that a block has in front.
    pub(super) fn main_vectors(&self) -> usize {
        self.main.iter().map(|range| range.len()).sum::<usize>() / 16
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
        let main: usize = self.main.iter().map(|range| range.len()).sum();
        let widths = [main, self.scales.len(), self.fifths.len()];
        let mut planes = widths.map(|each| Vec::with_capacity(each * blocks + 4));
        for block in data.chunks_exact(size) {
            self.main.iter().for_each(|range| planes[0].extend_from_slice(&block[range.clone()]));
            planes[1].extend_from_slice(&block[self.scales.clone()]);
            planes[2].extend_from_slice(&block[self.fifths.clone()]);
        }
        // Planes begin at whole words.
        let whole = planes[1].len().next_multiple_of(4);
        planes[1].resize(whole, 0);
        let mut widths = widths.into_iter();
        planes.map(|plane| (plane, widths.next().unwrap_or_default()))
    }
}
