//! Matrices in the order that kernels read them: 16 output rows side by side, so that one vector holds the same
//! column of 16 rows and a product needs no sums across a vector. The same layout serves one row of activations
//! (writing a reply) and many (prompts, encoders).
//!
//! A **float** tile is `[column][16 rows]`; one of 8-bit numbers with scale and zero point is so, too, and what its 16
//! rows stand for lies apart, as 16 scales and 16 zero points. An **integer** tile has two streams, so that the quants stay aligned:
//! first the scales of all blocks, then for each block of 32 columns its quants. A block's quants are eight
//! groups of 64 bytes, group `g` holding columns `4 g .. 4 g + 4` of row 0, then of row 1, ...; that is what an
//! integer dot product instruction takes. 4-bit types keep group `g` in the low and group `g + 4` in the high
//! nibbles of 64 bytes; 5- and 6-bit types add their upper bits as planes behind that.

use half::f16;

use super::memory::{ALIGN, Memory};
use crate::backends::CompileErrorKind;
use crate::backends::weights::{file_index, plain_rows};
use crate::formats::blocks::k_scale_min;
use crate::formats::{TensorType, TensorView};
use crate::graph::{WeightLayout, WeightSpec};

/// Output rows of a tile.
pub(crate) const TILE: usize = 16;
/// Columns of an integer block.
pub(crate) const BLOCK: usize = 32;

/// Element type of a float tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FloatType {
    F32,
    F16,
    BF16,
    /// Signed bytes that stand for `(q - zero) * scale`.
    Affine,
}

impl FloatType {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::Affine => 1,
        }
    }
}

/// Where the tiles of a float matrix lie, as a product reads them.
#[derive(Clone, Copy)]
pub(crate) struct Tiles {
    /// First element of the first tile.
    pub(crate) data: *const u8,
    pub(crate) ty: FloatType,
    /// Elements from one column to the next.
    pub(crate) column: usize,
    /// Elements from one tile to the next.
    pub(crate) tile: usize,
    /// For [`FloatType::Affine`] 16 scales and 16 zero points of each tile; null for others.
    pub(crate) factors: *const f32,
}

impl Tiles {
    /// Tiles of f32 that lie one behind the other, `columns` each.
    pub(crate) fn plain(data: *const f32, columns: usize) -> Self {
        let (column, tile) = (TILE, columns * TILE);
        Self { data: data.cast(), ty: FloatType::F32, column, tile, factors: std::ptr::null() }
    }

    /// The tiles from number `n` on.
    #[inline(always)]
    pub(crate) fn skip_tiles(self, n: usize) -> Self {
        let data = self.data.wrapping_add(n * self.tile * self.ty.bytes());
        let factors =
            if self.factors.is_null() { self.factors } else { self.factors.wrapping_add(2 * TILE * n) };
        Self { data, factors, ..self }
    }

    /// The columns from number `n` on.
    #[inline(always)]
    pub(crate) fn skip_columns(self, n: usize) -> Self {
        Self { data: self.data.wrapping_add(n * self.column * self.ty.bytes()), ..self }
    }
}

/// A matrix of floats in tiles.
pub(crate) struct FloatMatrix {
    pub(crate) ty: FloatType,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    data: Memory,
    /// As [`Tiles::factors`]; empty but for [`FloatType::Affine`].
    factors: Vec<f32>,
}

impl FloatMatrix {
    /// What products read.
    pub(crate) fn tiles(&self) -> Tiles {
        let factors = if self.factors.is_empty() { std::ptr::null() } else { self.factors.as_ptr() };
        let (column, tile) = (TILE, self.cols * TILE);
        Tiles { data: self.data.as_ptr().cast_const(), ty: self.ty, column, tile, factors }
    }

    /// Floats that the whole matrix has in f32, the last tile's missing rows included.
    pub(crate) fn floats(&self) -> usize {
        self.rows.div_ceil(TILE) * TILE * self.cols
    }

    /// Packs any tensor; types without a float kernel are widened to f32.
    pub(crate) fn pack(spec: &WeightSpec, view: &TensorView<'_>) -> Result<Self, CompileErrorKind> {
        let outermost = view.shape.first().copied().unwrap_or(1);
        let ty = match view.ty {
            TensorType::F16 => FloatType::F16,
            TensorType::BF16 => FloatType::BF16,
            // A scale belongs to a row of the matrix, or to all of it.
            TensorType::I8 | TensorType::U8 if outermost == spec.rows => FloatType::Affine,
            TensorType::I8 | TensorType::U8
                if view.affine.is_none_or(|a| a.scales.len() == 1 && a.zeros.len() == 1) =>
            {
                FloatType::Affine
            }
            _ => FloatType::F32,
        };
        let (rows, cols) = (spec.rows, spec.cols);
        let tiles = rows.div_ceil(TILE);
        let bytes = checked(&[tiles, TILE, cols, ty.bytes()])?;
        let mut data = reserve(bytes)?;
        let tile_bytes = cols * TILE * ty.bytes();
        if ty == FloatType::F32 {
            let plain = plain_rows(spec, view)?;
            each_tile(data.bytes_mut(), tile_bytes, |tile, out| {
                place(bytemuck::cast_slice_mut(out), tile, rows, cols, |r, c| plain[r * cols + c]);
            });
        } else if ty == FloatType::Affine {
            // Unsigned numbers become signed ones, their zero points with them.
            let flip = if view.ty == TensorType::U8 { 0x80 } else { 0 };
            each_tile(data.bytes_mut(), tile_bytes, |tile, out| {
                place(out, tile, rows, cols, |r, c| view.data[file_index(spec, r, c)] ^ flip);
            });
        } else {
            // 16-bit numbers are moved as they are; file bytes have no alignment.
            each_tile(data.bytes_mut(), tile_bytes, |tile, out| {
                place(bytemuck::cast_slice_mut(out), tile, rows, cols, |r, c| {
                    let at = 2 * file_index(spec, r, c);
                    u16::from_le_bytes([view.data[at], view.data[at + 1]])
                });
            });
        }
        let factors = if ty == FloatType::Affine { factors(rows, view) } else { Vec::new() };
        Ok(Self { ty, rows, cols, data, factors })
    }
}

/// Scales and zero points by tiles, for bytes made signed; rows past the last stand for zeros.
fn factors(rows: usize, view: &TensorView<'_>) -> Vec<f32> {
    let mut out = vec![0.0; rows.div_ceil(TILE) * 2 * TILE];
    let shift = if view.ty == TensorType::U8 { 128.0 } else { 0.0 };
    for row in 0..rows {
        let (scale, zero) = view.affine.map_or((1.0, 0.0), |affine| affine.of(row));
        let at = row / TILE * 2 * TILE + row % TILE;
        (out[at], out[at + TILE]) = (scale, zero - shift);
    }
    out
}

/// A transposed convolution as a plain one: row `phase * out + o` of the matrix gives output channel `o` of every
/// output row whose number, before trimming, is `phase` modulo the stride; its columns are the `taps / stride` newest
/// input rows, oldest first.
pub(crate) struct Phases {
    pub(crate) matrix: FloatMatrix,
    /// Input rows that each output row sees.
    pub(crate) window: usize,
}

impl Phases {
    /// Packs a weight of layout [`WeightLayout::ConvTransposed`].
    pub(crate) fn pack(spec: &WeightSpec, view: &TensorView<'_>) -> Result<Self, CompileErrorKind> {
        let WeightLayout::ConvTransposed { taps, stride } = spec.layout else {
            return Err(CompileErrorKind::WeightShape {
                name: spec.name.clone(),
                found: view.shape.clone(),
                expected: "a transposed convolution".into(),
            });
        };
        let plain = plain_rows(spec, view)?;
        let (out, channels, window) = (spec.rows, spec.cols / taps, taps.div_ceil(stride));
        let (rows, cols) = (stride * out, window * channels);
        let mut data = reserve(checked(&[rows.div_ceil(TILE), TILE, cols, 4])?)?;
        let weight = |r: usize, c: usize| {
            let (phase, o) = (r / out, r % out);
            let tap = phase + (window - 1 - c / channels) * stride;
            if tap < taps { plain[o * spec.cols + tap * channels + c % channels] } else { 0.0_f32 }
        };
        each_tile(data.bytes_mut(), cols * TILE * 4, |tile, bytes| {
            place(bytemuck::cast_slice_mut(bytes), tile, rows, cols, weight);
        });
        let matrix = FloatMatrix { ty: FloatType::F32, rows, cols, data, factors: Vec::new() };
        Ok(Self { matrix, window })
    }
}

/// Fills tile number `tile`: its columns one after the other, rows past the last left as they are.
fn place<T>(out: &mut [T], tile: usize, rows: usize, cols: usize, at: impl Fn(usize, usize) -> T) {
    let valid = (rows - tile * TILE).min(TILE);
    for c in 0..cols {
        for r in 0..valid {
            out[c * TILE + r] = at(tile * TILE + r, c);
        }
    }
}

/// Bytes that are worth a thread of their own.
const THREAD_BYTES: usize = 1 << 20;

/// Calls `pack` for each tile, with its number and its bytes, on as many threads as there are cores: weights are packed
/// while nothing else runs.
fn each_tile(data: &mut [u8], tile_bytes: usize, pack: impl Fn(usize, &mut [u8]) + Sync) {
    if tile_bytes == 0 || data.is_empty() {
        return;
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = (data.len() / THREAD_BYTES).clamp(1, cores);
    let tiles = (data.len() / tile_bytes).div_ceil(threads);
    let part = |(part, bytes): (usize, &mut [u8])| {
        for (i, tile) in bytes.chunks_exact_mut(tile_bytes).enumerate() {
            pack(part * tiles + i, tile);
        }
    };
    let mut parts = data.chunks_mut(tiles * tile_bytes).enumerate();
    let first = parts.next();
    std::thread::scope(|scope| {
        for other in parts {
            scope.spawn(|| part(other));
        }
        first.map(&part);
    });
}

fn checked(factors: &[usize]) -> Result<usize, CompileErrorKind> {
    let product = factors.iter().try_fold(1_usize, |n, &f| n.checked_mul(f));
    product.ok_or_else(|| out_of_memory(usize::MAX))
}

fn reserve(bytes: usize) -> Result<Memory, CompileErrorKind> {
    Memory::zeroed(bytes).ok_or_else(|| out_of_memory(bytes))
}

pub(crate) fn out_of_memory(bytes: usize) -> CompileErrorKind {
    CompileErrorKind::OutOfMemory { bytes, device: "cpu".into() }
}

/// How an integer tile stores its quants.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Quants {
    /// 4 bits.
    Four,
    /// 4 bits and one plane.
    Five,
    /// 4 bits and two planes of 2 bits.
    Six,
    /// Signed bytes.
    Eight,
}

impl Quants {
    /// Bytes of one block of 32 columns of 16 rows.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Four => 256,
            Self::Five => 320,
            Self::Six => 384,
            Self::Eight => 512,
        }
    }
}

/// How an integer tile scales its blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Scales {
    /// A scale (f16) for each block; quants stand around the type's middle.
    Plain,
    /// A scale and a minimum (f16) for each block.
    Minimum,
    /// For each 8 blocks a scale and a minimum (f16); for each block their factors (u8).
    Super,
    /// For each 8 blocks a scale (f16); for each half block a factor (i8).
    SuperHalves,
}

impl Scales {
    /// Bytes in front of each eight blocks, and bytes of each block.
    pub(crate) const fn bytes(self) -> (usize, usize) {
        match self {
            Self::Plain => (0, 32),
            Self::Minimum => (0, 64),
            Self::Super => (64, 32),
            Self::SuperHalves => (32, 32),
        }
    }
}

/// A matrix of quantised weights in tiles.
pub(crate) struct IntMatrix {
    pub(crate) quants: Quants,
    pub(crate) scales: Scales,
    /// What is taken from each quant; 0 where a minimum does it.
    pub(crate) offset: i32,
    pub(crate) rows: usize,
    pub(crate) blocks: usize,
    pub(crate) data: Memory,
}

impl IntMatrix {
    /// The kinds for a tensor type, when it has an integer kernel.
    pub(crate) fn kinds(ty: TensorType) -> Option<(Quants, Scales, i32)> {
        Some(match ty {
            TensorType::Q4_0 => (Quants::Four, Scales::Plain, 8),
            TensorType::Q4_1 => (Quants::Four, Scales::Minimum, 0),
            TensorType::Q5_0 => (Quants::Five, Scales::Plain, 16),
            TensorType::Q5_1 => (Quants::Five, Scales::Minimum, 0),
            TensorType::Q8_0 => (Quants::Eight, Scales::Plain, 0),
            TensorType::Q4K => (Quants::Four, Scales::Super, 0),
            TensorType::Q5K => (Quants::Five, Scales::Super, 0),
            TensorType::Q6K => (Quants::Six, Scales::SuperHalves, 32),
            _ => return None,
        })
    }

    /// Bytes of a tile's scales, padded so that the quants behind them are aligned.
    pub(crate) fn scale_bytes(&self) -> usize {
        let (front, each) = self.scales.bytes();
        (self.blocks.div_ceil(8) * front + self.blocks * each).next_multiple_of(ALIGN)
    }

    /// Bytes of one tile.
    pub(crate) fn tile_bytes(&self) -> usize {
        self.scale_bytes() + self.blocks * self.quants.bytes()
    }

    /// Packs a quantised matrix.
    pub(crate) fn pack(spec: &WeightSpec, view: &TensorView<'_>) -> Result<Self, CompileErrorKind> {
        let Some((quants, scales, offset)) = Self::kinds(view.ty) else {
            return Err(CompileErrorKind::WeightShape {
                name: spec.name.clone(),
                found: view.shape.clone(),
                expected: format!("a block type, not {}", view.ty),
            });
        };
        let blocks = spec.cols / BLOCK;
        let mut packed = Self { quants, scales, offset, rows: spec.rows, blocks, data: reserve(0)? };
        let tiles = spec.rows.div_ceil(TILE);
        packed.data = reserve(checked(&[tiles, packed.tile_bytes()])?)?;
        let (tile_bytes, scale_bytes) = (packed.tile_bytes(), packed.scale_bytes());
        let row_bytes = view.data.len() / spec.rows.max(1);
        each_tile(packed.data.bytes_mut(), tile_bytes, |tile, bytes| {
            let (scale_area, quant_area) = bytes.split_at_mut(scale_bytes);
            let rows = tile * TILE..spec.rows.min((tile + 1) * TILE);
            for block in 0..blocks {
                let mut q = [[0; BLOCK]; TILE];
                for (row, q) in rows.clone().zip(&mut q) {
                    let file = &view.data[row * row_bytes..(row + 1) * row_bytes];
                    let source = FileBlock::new(view.ty, file, block);
                    source.place_scales(scales, scale_area, block, row % TILE);
                    *q = source.quants();
                }
                place_quants(quants, &mut quant_area[block * quants.bytes()..][..quants.bytes()], &q);
            }
        });
        Ok(packed)
    }
}

/// 32 columns of one row in the file.
struct FileBlock<'a> {
    ty: TensorType,
    bytes: &'a [u8],
    /// Which 32 of the block's 256 columns, for the K types.
    part: usize,
}

impl<'a> FileBlock<'a> {
    fn new(ty: TensorType, row: &'a [u8], block: usize) -> Self {
        let parts = ty.block_len() / BLOCK;
        let at = block / parts * ty.block_bytes();
        Self { ty, bytes: &row[at..at + ty.block_bytes()], part: block % parts }
    }

    /// The quants as unsigned numbers (signed bytes for Q8_0), in column order. Each type has its own loop, which the
    /// compiler turns into vectors.
    fn quants(&self) -> [u8; BLOCK] {
        let b = self.bytes;
        let nibbles = |qs: &[u8]| -> [u8; BLOCK] {
            std::array::from_fn(|i| if i < 16 { qs[i] & 15 } else { qs[i - 16] >> 4 })
        };
        let part_nibbles = |qs: &[u8]| -> [u8; BLOCK] {
            let (qs, shift) = (&qs[self.part / 2 * 32..][..32], 4 * (self.part % 2));
            std::array::from_fn(|i| qs[i] >> shift & 15)
        };
        let fifths = |q: [u8; BLOCK], qh: &[u8]| -> [u8; BLOCK] {
            std::array::from_fn(|i| q[i] | (qh[i / 8] >> (i % 8) & 1) << 4)
        };
        match self.ty {
            TensorType::Q4_0 => nibbles(&b[2..18]),
            TensorType::Q4_1 => nibbles(&b[4..20]),
            TensorType::Q5_0 => fifths(nibbles(&b[6..22]), &b[2..6]),
            TensorType::Q5_1 => fifths(nibbles(&b[8..24]), &b[4..8]),
            TensorType::Q8_0 => {
                let qs = &b[2..34];
                std::array::from_fn(|i| qs[i])
            }
            TensorType::Q4K => part_nibbles(&b[16..144]),
            TensorType::Q5K => {
                let (q, qh) = (part_nibbles(&b[48..176]), &b[16..48]);
                std::array::from_fn(|i| q[i] | (qh[i] >> self.part & 1) << 4)
            }
            _ => {
                // Q6_K: four quarters share 32 bytes of upper bits and pairwise 32 bytes of nibbles.
                let (half, quarter) = (self.part / 4, self.part % 4);
                let low = &b[half * 64 + quarter % 2 * 32..][..32];
                let high = &b[128 + half * 32..][..32];
                let (low_shift, high_shift) = (4 * (quarter / 2), 2 * quarter);
                std::array::from_fn(|i| low[i] >> low_shift & 15 | (high[i] >> high_shift & 3) << 4)
            }
        }
    }

    fn place_scales(&self, scales: Scales, area: &mut [u8], block: usize, row: usize) {
        let b = self.bytes;
        let (front, each) = scales.bytes();
        let group = block / 8 * (front + 8 * each);
        let here = group + front + block % 8 * each;
        let mut half = |at: usize, from: &[u8]| area[at + 2 * row..at + 2 * row + 2].copy_from_slice(from);
        match scales {
            Scales::Plain => half(here, &b[..2]),
            Scales::Minimum => {
                half(here, &b[..2]);
                half(here + 32, &b[2..4]);
            }
            Scales::Super => {
                half(group, &b[..2]);
                half(group + 32, &b[2..4]);
                let mut packed = [0; 12];
                packed.copy_from_slice(&b[4..16]);
                let (scale, minimum) = k_scale_min(&packed, self.part);
                area[here + row] = scale;
                area[here + 16 + row] = minimum;
            }
            Scales::SuperHalves => {
                half(group, &b[208..210]);
                area[here + row] = b[192 + 2 * self.part];
                area[here + 16 + row] = b[192 + 2 * self.part + 1];
            }
        }
    }
}

/// Places the quants of 16 rows; those of rows past the last are 0.
fn place_quants(quants: Quants, area: &mut [u8], q: &[[u8; BLOCK]; TILE]) {
    for (row, q) in q.iter().enumerate() {
        let at = |group: usize| 64 * group + 4 * row;
        if quants == Quants::Eight {
            for group in 0..8 {
                area[at(group)..at(group) + 4].copy_from_slice(&q[4 * group..4 * group + 4]);
            }
            continue;
        }
        for group in 0..4 {
            for i in 0..4 {
                area[at(group) + i] = q[4 * group + i] & 15 | q[16 + 4 * group + i] << 4;
            }
        }
        for i in 0..4 {
            let upper = |group: usize| q[4 * group + i] >> 4;
            match quants {
                Quants::Five => {
                    area[at(4) + i] = (0..8).fold(0, |plane, group| plane | upper(group) << group)
                }
                Quants::Six => {
                    for half in 0..2 {
                        let plane =
                            (0..4).fold(0, |plane, group| plane | upper(4 * half + group) << (2 * group));
                        area[at(4 + half) + i] = plane;
                    }
                }
                Quants::Four | Quants::Eight => {}
            }
        }
    }
}

/// A vector of weights as f32.
pub(crate) struct Vector(pub(crate) Vec<f32>);

impl Vector {
    pub(crate) fn pack(view: &TensorView<'_>) -> Result<Self, CompileErrorKind> {
        Ok(Self(view.to_f32_vec()?))
    }
}

/// A number as f16 bits.
pub(crate) fn to_f16(x: f32) -> u16 {
    f16::from_f32(x).to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::quantize;

    /// Reads one weight back from a tile, by the module comment's words.
    fn weight(m: &IntMatrix, row: usize, col: usize) -> f32 {
        let tile = &m.data.bytes()[row / TILE * m.tile_bytes()..][..m.tile_bytes()];
        let (scales, quants) = tile.split_at(m.scale_bytes());
        let (block, r, i) = (col / BLOCK, row % TILE, col % BLOCK);
        let area = &quants[block * m.quants.bytes()..];
        let (group, byte) = (i / 4, 4 * r + i % 4);
        let low = area[64 * (group % 4) + byte] >> (4 * (group / 4)) & 15;
        let q = match m.quants {
            Quants::Four => i32::from(low),
            Quants::Five => i32::from(low | (area[256 + byte] >> group & 1) << 4),
            Quants::Six => {
                i32::from(low | (area[256 + 64 * (group / 4) + byte] >> (2 * (group % 4)) & 3) << 4)
            }
            Quants::Eight => i32::from(area[64 * group + byte] as i8),
        } - m.offset;
        let half = |at: usize| f16::from_le_bytes([scales[at + 2 * r], scales[at + 2 * r + 1]]).to_f32();
        let (front, each) = m.scales.bytes();
        let start = block / 8 * (front + 8 * each);
        let here = start + front + block % 8 * each;
        match m.scales {
            Scales::Plain => half(here) * q as f32,
            Scales::Minimum => half(here) * q as f32 + half(here + 32),
            Scales::Super => {
                half(start) * f32::from(scales[here + r]) * q as f32
                    - half(start + 32) * f32::from(scales[here + 16 + r])
            }
            Scales::SuperHalves => {
                let factor = scales[here + 16 * (i / 16) + r] as i8;
                half(start) * f32::from(factor) * q as f32
            }
        }
    }

    #[test]
    fn every_block_type_keeps_its_weights() {
        for ty in TensorType::ALL.into_iter().filter(|&t| IntMatrix::kinds(t).is_some()) {
            let (rows, cols) = (19, 512);
            let values: Vec<f32> =
                (0..rows * cols).map(|i| ((i * 7919 % 1013) as f32 - 500.0) / 300.0).collect();
            let data = quantize(ty, &values);
            let view = TensorView { name: "w", ty, shape: vec![rows, cols], data: &data, affine: None };
            let plain = view.to_f32_vec().unwrap();
            let spec = WeightSpec { name: "w".into(), layout: WeightLayout::Matrix, rows, cols };
            let packed = IntMatrix::pack(&spec, &view).unwrap();
            for row in 0..rows {
                for col in 0..cols {
                    let (got, want) = (weight(&packed, row, col), plain[row * cols + col]);
                    assert!(
                        (got - want).abs() <= 1e-6 * want.abs().max(1.0),
                        "{ty} {row},{col}: {got} {want}"
                    );
                }
            }
        }
    }
}
