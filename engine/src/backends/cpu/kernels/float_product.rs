//! Product of rows of floats with a matrix in tiles of 16 columns.
//!
//! Linear layers, convolutions (whose rows overlap in memory) and both halves of attention are this one kernel.
//! Each output is a chain of multiply-adds for each panel of columns, the chains' ends added up in order, whatever the
//! number of rows or threads: results never depend on how work was cut. (One chain over all columns would lose twice the
//! digits, as rounding errors grow with the running sum.)

use std::mem::MaybeUninit;

use crate::backends::cpu::pack::{FloatType, TILE, Tiles};
use crate::backends::cpu::simd::{Kernel, LANES, Simd};

/// Columns that are worked on before the next rows: two tiles of that length stay in the first-level cache.
const PANEL: usize = 256;

/// Rows from which it pays to widen narrow weights first.
const WIDEN_ROWS: usize = 16;

/// Where sums start.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    /// At zero.
    Zero,
    /// At a bias: one number for each output column.
    Bias(*const f32),
    /// At zero, and the sum is added to what the output holds.
    Output,
}

/// `c[i][j] = start + sum over l of a[i][l] * b[l][j]`.
///
/// Pointers: `a` is good for `rows` rows of `k` floats, `lda` apart; `w` for `k` times 16 elements in each of
/// `cols.div_ceil(16)` tiles; `c` for `rows` rows of `cols` floats, `ldc` apart, not overlapping the others.
#[derive(Clone, Copy)]
pub(crate) struct FloatProduct {
    pub(crate) a: *const f32,
    pub(crate) lda: usize,
    pub(crate) rows: usize,
    pub(crate) k: usize,
    /// The matrix `b`.
    pub(crate) w: Tiles,
    pub(crate) c: *mut f32,
    pub(crate) ldc: usize,
    pub(crate) cols: usize,
    pub(crate) start: Start,
}

impl FloatProduct {
    /// The part with `cols` columns from tile `n` on.
    #[inline(always)]
    pub(crate) fn skip_tiles(self, n: usize, cols: usize) -> Self {
        let column = n * TILE;
        Self {
            w: self.w.skip_tiles(n),
            c: self.c.wrapping_add(column),
            cols: cols.min(self.cols - column),
            start: match self.start {
                Start::Bias(bias) => Start::Bias(bias.wrapping_add(column)),
                other => other,
            },
            ..self
        }
    }
}

trait Element {
    const BYTES: usize;
    /// What the 16 rows of a tile have in common.
    type Factors<S: Simd>: Copy;
    unsafe fn factors<S: Simd>(p: *const f32) -> Self::Factors<S>;
    unsafe fn load<S: Simd>(p: *const u8, factors: Self::Factors<S>) -> S::F;
}

struct F32;
struct F16;
struct BF16;
/// Signed bytes with scale and zero point.
struct Affine;

impl Element for F32 {
    const BYTES: usize = 4;
    type Factors<S: Simd> = ();
    #[inline(always)]
    unsafe fn factors<S: Simd>(_: *const f32) {}
    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const u8, (): ()) -> S::F {
        // SAFETY: 16 elements, the caller's promise.
        unsafe { S::load(p.cast()) }
    }
}

impl Element for F16 {
    const BYTES: usize = 2;
    type Factors<S: Simd> = ();
    #[inline(always)]
    unsafe fn factors<S: Simd>(_: *const f32) {}
    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const u8, (): ()) -> S::F {
        // SAFETY: 16 elements, the caller's promise.
        unsafe { S::load_f16(p.cast()) }
    }
}

impl Element for BF16 {
    const BYTES: usize = 2;
    type Factors<S: Simd> = ();
    #[inline(always)]
    unsafe fn factors<S: Simd>(_: *const f32) {}
    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const u8, (): ()) -> S::F {
        // SAFETY: 16 elements, the caller's promise.
        unsafe { S::load_bf16(p.cast()) }
    }
}

impl Element for Affine {
    const BYTES: usize = 1;
    type Factors<S: Simd> = (S::F, S::F);
    #[inline(always)]
    unsafe fn factors<S: Simd>(p: *const f32) -> (S::F, S::F) {
        // SAFETY: a tile's factors, the caller's promise.
        unsafe { (S::load(p), S::load(p.wrapping_add(TILE))) }
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const u8, (scale, zero): (S::F, S::F)) -> S::F {
        // SAFETY: 16 elements, the caller's promise. The difference is exact, the product is rounded once: the weight's
        // definition.
        unsafe { S::mul(S::sub(S::to_f(S::load_i8(p)), zero), scale) }
    }
}

impl Kernel for FloatProduct {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.w.ty {
                FloatType::F32 => all::<S, F32>(self),
                FloatType::F16 => all::<S, F16>(self),
                FloatType::BF16 => all::<S, BF16>(self),
                FloatType::Affine => all::<S, Affine>(self),
            }
        }
    }
}

#[inline(always)]
unsafe fn all<S: Simd, E: Element>(p: FloatProduct) {
    let tiles = p.cols.div_ceil(LANES);
    let mut at = 0;
    // An empty sum still has to start somewhere.
    while at == 0 || at < p.k {
        let panel = FloatProduct {
            a: p.a.wrapping_add(at),
            w: p.w.skip_columns(at),
            k: (p.k - at).min(PANEL),
            start: if at == 0 { p.start } else { Start::Output },
            ..p
        };
        let mut tile = 0;
        while tile < tiles {
            let left = tiles - tile;
            // SAFETY: tiles `tile ..` are inside, the caller's promise.
            tile += unsafe {
                if E::BYTES < 4 && panel.rows >= WIDEN_ROWS {
                    widened::<S, E>(panel, tile, left)
                } else if panel.rows <= 2 && left >= 4 && S::ROWS >= 8 {
                    tile_group::<S, E, 4>(panel, tile)
                } else if left >= 2 && (S::ROWS >= 8 || panel.rows <= 2) {
                    tile_group::<S, E, 2>(panel, tile)
                } else {
                    tile_group::<S, E, 1>(panel, tile)
                }
            };
        }
        at += PANEL;
    }
}

/// Widens up to two tiles of a panel once for all rows: conversions share the ports of multiply-adds.
#[inline(always)]
unsafe fn widened<S: Simd, E: Element>(p: FloatProduct, tile: usize, left: usize) -> usize {
    let tiles = left.min(2);
    // Filling it with zeros would cost as much as widening.
    let mut wide = MaybeUninit::<[f32; 2 * PANEL * LANES]>::uninit();
    let wide = wide.as_mut_ptr().cast::<f32>();
    // SAFETY: the tiles are inside the matrix, and fit into `wide`, of which only what was written is read.
    unsafe {
        for t in 0..tiles {
            let from = p.w.skip_tiles(tile + t);
            widen::<S, E>(from, p.k, wide.add(t * p.k * LANES));
        }
        let part = FloatProduct { w: Tiles::plain(wide, p.k), ..p.skip_tiles(tile, tiles * LANES) };
        if tiles == 2 && S::ROWS >= 8 {
            tile_group::<S, F32, 2>(part, 0);
        } else {
            for t in 0..tiles {
                tile_group::<S, F32, 1>(part, t);
            }
        }
    }
    tiles
}

/// The first `k` columns of one tile as f32.
#[inline(always)]
unsafe fn widen<S: Simd, E: Element>(w: Tiles, k: usize, out: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe {
        let factors = E::factors::<S>(w.factors);
        for l in 0..k {
            let v = E::load::<S>(w.data.add(l * w.column * E::BYTES), factors);
            S::store(out.add(l * LANES), v);
        }
    }
}

/// Writes a tile of 8-bit weights as f32: for a matrix that many products read.
pub(crate) struct WidenTile {
    /// Its first tile is read.
    pub(crate) w: Tiles,
    pub(crate) columns: usize,
    /// 16 numbers for each column.
    pub(crate) out: *mut f32,
}

impl Kernel for WidenTile {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        debug_assert!(self.w.ty == FloatType::Affine);
        // SAFETY: the caller's promise.
        unsafe { widen::<S, Affine>(self.w, self.columns, self.out) };
    }
}

#[inline(always)]
unsafe fn tile_group<S: Simd, E: Element, const N: usize>(p: FloatProduct, tile: usize) -> usize {
    let mut row = 0;
    while row < p.rows {
        let left = p.rows - row;
        // SAFETY: rows `row ..` and tiles `tile .. tile + N` are inside, the caller's promise.
        row += unsafe {
            if left >= 8 && S::ROWS >= 8 && N <= 2 {
                micro::<S, E, 8, N>(p, row, tile)
            } else if left >= 4 && N <= 2 {
                micro::<S, E, 4, N>(p, row, tile)
            } else if left >= 2 {
                micro::<S, E, 2, N>(p, row, tile)
            } else {
                micro::<S, E, 1, N>(p, row, tile)
            }
        };
    }
    N
}

#[inline(always)]
unsafe fn micro<S: Simd, E: Element, const M: usize, const N: usize>(
    p: FloatProduct,
    row: usize,
    tile: usize,
) -> usize {
    // SAFETY: M rows and N tiles are inside, the caller's promise.
    unsafe {
        let c = p.c.add(row * p.ldc + tile * LANES);
        let valid = |n: usize| (p.cols - (tile + n) * LANES).min(LANES);
        let mut acc = [[S::zero(); N]; M];
        match p.start {
            Start::Zero | Start::Output => {}
            Start::Bias(bias) => {
                for n in 0..N {
                    let b = S::load_n(bias.add((tile + n) * LANES), valid(n));
                    for row in &mut acc {
                        row[n] = b;
                    }
                }
            }
        }
        let a = p.a.add(row * p.lda);
        let b = p.w.skip_tiles(tile);
        let mut factors = [E::factors::<S>(b.factors); N];
        for (n, factors) in factors.iter_mut().enumerate().skip(1) {
            *factors = E::factors::<S>(b.skip_tiles(n).factors);
        }
        for l in 0..p.k {
            let mut w = [S::zero(); N];
            for (n, w) in w.iter_mut().enumerate() {
                *w = E::load::<S>(b.data.add((l * b.column + n * b.tile) * E::BYTES), factors[n]);
            }
            for m in 0..M {
                let x = S::splat(*a.add(m * p.lda + l));
                for n in 0..N {
                    acc[m][n] = S::fma(x, w[n], acc[m][n]);
                }
            }
        }
        let onto_output = matches!(p.start, Start::Output);
        for (m, row) in acc.iter().enumerate() {
            for (n, &v) in row.iter().enumerate() {
                let out = c.add(m * p.ldc + n * LANES);
                let v = if onto_output { S::add(S::load_n(out, valid(n)), v) } else { v };
                if valid(n) == LANES { S::store(out, v) } else { S::store_n(out, v, valid(n)) }
            }
        }
    }
    M
}
