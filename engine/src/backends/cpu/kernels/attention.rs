//! Attention of a group of query rows over one key-value head.
//!
//! Keys lie in tiles of 16 positions, `[position / 16][column][16]`, so that scores are a product like any other;
//! values lie in rows. The softmax spans the whole row of scores: exact, and the same for every number of rows.

use super::float_product::{FloatProduct, Start};
use super::rows::softmax;
use crate::backends::cpu::pack::{FloatType, Tiles};
use crate::backends::cpu::simd::{Kernel, LANES, Simd};

/// Most query rows of one call: scores stay in the cache.
pub(crate) const MAX_ROWS: usize = 8;

/// `out = softmax(scale * q k^T) v` for `rows` query rows, row `i` seeing positions `0 .. seen[i]`.
///
/// Pointers: `q` and `out` are good for `rows` rows of `head_dim`, `q_row` and `out_row` apart; `keys` for the tiles
/// of `max(seen)` positions; `values` for as many rows, `value_row` elements apart; `scores` for `rows` rows of
/// `max(seen)` rounded up to 16.
#[derive(Clone, Copy)]
pub(crate) struct Attend<'a> {
    pub(crate) q: *const f32,
    pub(crate) q_row: usize,
    pub(crate) rows: usize,
    pub(crate) seen: &'a [usize],
    pub(crate) keys: *const u8,
    pub(crate) values: *const u8,
    pub(crate) ty: FloatType,
    pub(crate) value_row: usize,
    pub(crate) head_dim: usize,
    pub(crate) scale: f32,
    pub(crate) scores: *mut f32,
    pub(crate) out: *mut f32,
    pub(crate) out_row: usize,
}

impl Kernel for Attend<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let most = self.seen.iter().copied().max().unwrap_or(0);
        let width = most.next_multiple_of(LANES);
        let tiles = |data, column, tile| Tiles { data, ty: self.ty, column, tile, factors: std::ptr::null() };
        // SAFETY: the caller's promise.
        unsafe {
            FloatProduct {
                a: self.q,
                lda: self.q_row,
                rows: self.rows,
                k: self.head_dim,
                w: tiles(self.keys, LANES, self.head_dim * LANES),
                c: self.scores,
                ldc: width,
                cols: most,
                start: Start::Zero,
            }
            .run::<S>();
            for (i, &seen) in self.seen.iter().enumerate() {
                softmax::<S>(self.scores.add(i * width), seen, width, self.scale);
            }
            FloatProduct {
                a: self.scores,
                lda: width,
                rows: self.rows,
                k: most,
                w: tiles(self.values, self.value_row, LANES),
                c: self.out,
                ldc: self.out_row,
                cols: self.head_dim,
                start: Start::Zero,
            }
            .run::<S>();
        }
    }
}

/// Puts `n` rows of `head_dim` floats, `x_row` apart, into key tiles of floats from position 0 on; the lanes behind
/// the last row are zeroed.
pub(crate) struct PackKeys {
    pub(crate) x: *const f32,
    pub(crate) x_row: usize,
    pub(crate) n: usize,
    pub(crate) head_dim: usize,
    pub(crate) out: *mut f32,
}

impl Kernel for PackKeys {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        for tile in 0..self.n.div_ceil(LANES) {
            for d in 0..self.head_dim {
                // SAFETY: `n` rows at `x`, whole tiles at `out`, the caller's promise.
                unsafe {
                    let out = self.out.add((tile * self.head_dim + d) * LANES);
                    for i in 0..LANES {
                        let at = tile * LANES + i;
                        *out.add(i) = if at < self.n { *self.x.add(at * self.x_row + d) } else { 0.0 };
                    }
                }
            }
        }
    }
}

/// Puts `n` rows of `head_dim` floats, `x_row` apart, one behind the other.
///
/// Rows of all heads lie a power of two or so apart, which maps a head's values onto a few sets of the cache: every
/// read would miss. Packed, they stay in it for all queries.
pub(crate) struct PackValues {
    pub(crate) x: *const f32,
    pub(crate) x_row: usize,
    pub(crate) n: usize,
    pub(crate) head_dim: usize,
    pub(crate) out: *mut f32,
}

impl Kernel for PackValues {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        for i in 0..self.n {
            // SAFETY: `n` rows at `x`, `n * head_dim` numbers at `out`, not overlapping: the caller's promise.
            unsafe {
                let (from, to) = (self.x.add(i * self.x_row), self.out.add(i * self.head_dim));
                std::ptr::copy_nonoverlapping(from, to, self.head_dim);
            }
        }
    }
}
