//! Product of 8-bit activations with quantised weights, straight from the packed blocks.
//!
//! Within a block of 32 columns everything is exact integers; blocks add up in f32 in order, so results do not
//! depend on the number of rows or threads. A block's quants are unpacked once for all rows of a group.

use crate::backends::cpu::pack::{BLOCK, IntMatrix, Quants, Scales, TILE};
use crate::backends::cpu::simd::{Kernel, LANES, Simd};

/// Rows of activations as integers: `q` `[rows, cols]`, `scales` `[rows, blocks]`, and for the parts that weights
/// take from each quant, `sums` `[rows, 2 blocks]` of each 16 integers.
#[derive(Clone, Copy)]
pub(crate) struct IntRows {
    pub(crate) q: *mut i8,
    pub(crate) scales: *mut f32,
    pub(crate) sums: *mut i32,
    pub(crate) cols: usize,
}

impl IntRows {
    /// Bytes that `rows` rows of `cols` need, and the parts laid out from `start` (64-byte aligned).
    pub(crate) fn bytes(rows: usize, cols: usize) -> usize {
        let blocks = cols / BLOCK;
        (rows * cols).next_multiple_of(64) + (rows * blocks * 4).next_multiple_of(64) + rows * blocks * 8
    }

    pub(crate) fn at(start: *mut u8, rows: usize, cols: usize) -> Self {
        let blocks = cols / BLOCK;
        let scales = start.wrapping_add((rows * cols).next_multiple_of(64));
        let sums = scales.wrapping_add((rows * blocks * 4).next_multiple_of(64));
        Self { q: start.cast(), scales: scales.cast(), sums: sums.cast(), cols }
    }
}

/// Quantises rows `first .. first + rows` of `x` (rows `stride` floats apart) into `out`.
pub(crate) struct Quantize {
    pub(crate) x: *const f32,
    pub(crate) stride: usize,
    pub(crate) first: usize,
    pub(crate) rows: usize,
    pub(crate) out: IntRows,
}

impl Kernel for Quantize {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (cols, blocks) = (self.out.cols, self.out.cols / BLOCK);
        for row in self.first..self.first + self.rows {
            // SAFETY: the rows are inside `x` and `out`, the caller's promise.
            unsafe {
                let x = self.x.add(row * self.stride);
                let q = self.out.q.add(row * cols);
                for b in 0..blocks {
                    let (lo, hi) = (S::load(x.add(b * BLOCK)), S::load(x.add(b * BLOCK + LANES)));
                    let top = S::max_lane(S::max(S::abs(lo), S::abs(hi)));
                    let factor = S::splat(if top > 0.0 { 127.0 / top } else { 0.0 });
                    let q = q.add(b * BLOCK);
                    // A number that is not finite makes the block's scale so, and with it the result.
                    let limit = S::splat(127.0);
                    for (half, v) in [lo, hi].into_iter().enumerate() {
                        let v = S::max(S::min(S::mul(v, factor), limit), S::sub(S::zero(), limit));
                        S::store_i8(q.add(half * LANES), v);
                        let sum: i32 = (0..LANES).map(|i| i32::from(*q.add(half * LANES + i))).sum();
                        *self.out.sums.add(row * 2 * blocks + 2 * b + half) = sum;
                    }
                    *self.out.scales.add(row * blocks + b) = top / 127.0;
                }
            }
        }
    }
}

/// `c[i][j] = bias[j] + activations[i] . weights[j]` for tiles `first .. first + tiles`.
///
/// Pointers: `rows` rows of activations as [`IntRows`] says; `bias` null or one float for each row of the matrix;
/// `c` good for `rows` rows of the matrix's rows, `ldc` apart.
#[derive(Clone, Copy)]
pub(crate) struct IntProduct<'a> {
    pub(crate) x: IntRows,
    pub(crate) rows: usize,
    pub(crate) w: &'a IntMatrix,
    pub(crate) first: usize,
    pub(crate) tiles: usize,
    pub(crate) bias: *const f32,
    pub(crate) c: *mut f32,
    pub(crate) ldc: usize,
}

const FOUR: u8 = 4;
const FIVE: u8 = 5;
const SIX: u8 = 6;
const EIGHT: u8 = 8;
const PLAIN: u8 = 0;
const MINIMUM: u8 = 1;
const SUPER: u8 = 2;
const HALVES: u8 = 3;

impl Kernel for IntProduct<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: the caller's promise.
        unsafe {
            match (self.w.quants, self.w.scales) {
                (Quants::Four, Scales::Plain) => all::<S, FOUR, PLAIN>(self),
                (Quants::Four, Scales::Minimum) => all::<S, FOUR, MINIMUM>(self),
                (Quants::Four, _) => all::<S, FOUR, SUPER>(self),
                (Quants::Five, Scales::Plain) => all::<S, FIVE, PLAIN>(self),
                (Quants::Five, Scales::Minimum) => all::<S, FIVE, MINIMUM>(self),
                (Quants::Five, _) => all::<S, FIVE, SUPER>(self),
                (Quants::Six, _) => all::<S, SIX, HALVES>(self),
                (Quants::Eight, _) => all::<S, EIGHT, PLAIN>(self),
            }
        }
    }
}

#[inline(always)]
unsafe fn all<S: Simd, const Q: u8, const C: u8>(p: IntProduct<'_>) {
    for tile in p.first..p.first + p.tiles {
        let mut row = 0;
        while row < p.rows {
            let left = p.rows - row;
            // SAFETY: rows and tiles are inside, the caller's promise.
            row += unsafe {
                if left >= 8 && S::ROWS >= 8 {
                    micro::<S, Q, C, 8>(p, row, tile)
                } else if left >= 4 {
                    micro::<S, Q, C, 4>(p, row, tile)
                } else if left >= 2 {
                    micro::<S, Q, C, 2>(p, row, tile)
                } else {
                    micro::<S, Q, C, 1>(p, row, tile)
                }
            };
        }
    }
}

/// The eight groups of a block as bytes that a dot product takes.
#[inline(always)]
unsafe fn unpack<S: Simd, const Q: u8>(p: *const u8) -> [S::B; 8] {
    // SAFETY: one block of quants, the caller's promise.
    unsafe {
        if Q == EIGHT {
            let mut bytes = [S::load_b(p); 8];
            for (g, bytes) in bytes.iter_mut().enumerate().skip(1) {
                *bytes = S::load_b(p.add(64 * g));
            }
            return bytes;
        }
        let mut low = [S::low_nibbles(S::load_b(p)); 4];
        let mut high = low;
        for j in 0..4 {
            let packed = S::load_b(p.add(64 * j));
            low[j] = S::low_nibbles(packed);
            high[j] = S::high_nibbles(packed);
        }
        if Q == FIVE {
            let bits = S::load_b(p.add(256));
            return [
                S::or_bits::<0, 4>(low[0], bits, 1),
                S::or_bits::<1, 4>(low[1], bits, 1),
                S::or_bits::<2, 4>(low[2], bits, 1),
                S::or_bits::<3, 4>(low[3], bits, 1),
                S::or_bits::<4, 4>(high[0], bits, 1),
                S::or_bits::<5, 4>(high[1], bits, 1),
                S::or_bits::<6, 4>(high[2], bits, 1),
                S::or_bits::<7, 4>(high[3], bits, 1),
            ];
        }
        if Q == SIX {
            let (a, b) = (S::load_b(p.add(256)), S::load_b(p.add(320)));
            return [
                S::or_bits::<0, 4>(low[0], a, 3),
                S::or_bits::<2, 4>(low[1], a, 3),
                S::or_bits::<4, 4>(low[2], a, 3),
                S::or_bits::<6, 4>(low[3], a, 3),
                S::or_bits::<0, 4>(high[0], b, 3),
                S::or_bits::<2, 4>(high[1], b, 3),
                S::or_bits::<4, 4>(high[2], b, 3),
                S::or_bits::<6, 4>(high[3], b, 3),
            ];
        }
        [low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]]
    }
}

#[inline(always)]
unsafe fn dot<S: Simd, const Q: u8>(acc: S::I, w: S::B, a: S::B) -> S::I {
    // SAFETY: the caller's promise.
    unsafe { if Q == EIGHT { S::dot_signed(acc, w, a) } else { S::dot(acc, w, a) } }
}

#[inline(always)]
unsafe fn micro<S: Simd, const Q: u8, const C: u8, const M: usize>(
    p: IntProduct<'_>,
    row: usize,
    tile: usize,
) -> usize {
    // SAFETY: M rows and the tile are inside, the caller's promise; the tile's streams are as `pack` laid them.
    unsafe {
        let blocks = p.w.blocks;
        let scales = p.w.data.as_ptr().add(tile * p.w.tile_bytes()).cast_const();
        let quants = scales.add(p.w.scale_bytes());
        let (front, each) = p.w.scales.bytes();
        let offset = if Q == EIGHT { S::SIGNED_OFFSET } else { p.w.offset };
        let x_q: [*const i8; M] = std::array::from_fn(|m| p.x.q.add((row + m) * p.x.cols).cast_const());
        let x_d: [*const f32; M] = std::array::from_fn(|m| p.x.scales.add((row + m) * blocks).cast_const());
        let x_s: [*const i32; M] = std::array::from_fn(|m| p.x.sums.add((row + m) * 2 * blocks).cast_const());
        let mut y = [S::zero(); M];
        let (mut super_d, mut super_m) = (S::zero(), S::zero());
        for b in 0..blocks {
            let group = scales.add(b / 8 * (front + 8 * each));
            let here = group.add(front + b % 8 * each);
            let (mut d, mut minimum) = (S::zero(), S::zero());
            if C == PLAIN || C == MINIMUM {
                d = S::load_f16(here.cast());
            }
            if C == MINIMUM {
                minimum = S::load_f16(here.add(32).cast());
            }
            if (C == SUPER || C == HALVES) && b.is_multiple_of(8) {
                super_d = S::load_f16(group.cast());
                if C == SUPER {
                    super_m = S::load_f16(group.add(32).cast());
                }
            }
            if C == SUPER {
                d = S::mul(super_d, S::to_f(S::load_u8(here)));
                minimum = S::sub(S::zero(), S::mul(super_m, S::to_f(S::load_u8(here.add(16)))));
            }
            let w = unpack::<S, Q>(quants.add(b * p.w.quants.bytes()));
            for m in 0..M {
                let q = x_q[m].add(b * BLOCK);
                let (s0, s1) = (*x_s[m].add(2 * b), *x_s[m].add(2 * b + 1));
                let (start0, start1) = if C == HALVES {
                    (-offset * s0, -offset * s1)
                } else if C == PLAIN {
                    (-offset * (s0 + s1), 0)
                } else {
                    (0, 0)
                };
                let (mut acc0, mut acc1) = (S::splat_i(start0), S::splat_i(start1));
                for g in 0..4 {
                    acc0 = dot::<S, Q>(acc0, w[g], S::splat_4(q.add(4 * g)));
                    acc1 = dot::<S, Q>(acc1, w[g + 4], S::splat_4(q.add(16 + 4 * g)));
                }
                let x_scale = S::splat(*x_d[m].add(b));
                if C == HALVES {
                    let (f0, f1) = (S::load_i8(here), S::load_i8(here.add(16)));
                    let sum = S::add_i(S::mul_i(acc0, f0), S::mul_i(acc1, f1));
                    y[m] = S::fma(S::to_f(sum), S::mul(super_d, x_scale), y[m]);
                } else {
                    let sum = S::to_f(S::add_i(acc0, acc1));
                    y[m] = S::fma(sum, S::mul(d, x_scale), y[m]);
                    if C != PLAIN {
                        let part = S::splat((s0 + s1) as f32 * *x_d[m].add(b));
                        y[m] = S::fma(minimum, part, y[m]);
                    }
                }
            }
        }
        let valid = (p.w.rows - tile * TILE).min(LANES);
        for (m, &y) in y.iter().enumerate() {
            let y = if p.bias.is_null() { y } else { S::add(y, S::load_n(p.bias.add(tile * TILE), valid)) };
            S::store_n(p.c.add((row + m) * p.ldc + tile * TILE), y, valid);
        }
    }
    M
}
