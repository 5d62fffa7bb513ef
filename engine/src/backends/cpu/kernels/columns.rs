//! Statistics of columns, and the norm and activations that use one number for each column.

use crate::backends::cpu::simd::{Kernel, LANES, Simd, sin};

/// Rows whose statistics are taken together: they stay in the cache between the two passes, and their number does not
/// depend on how many threads there are.
pub(crate) const CHUNK_ROWS: usize = 128;

/// Mean and sum of squared distances from it for each of `n` columns over `rows` rows, at least one.
///
/// Pointers: `x` is good for `rows` rows of `n` numbers, `stride` apart; `mean` and `squares` for `n` numbers.
pub(crate) struct ColumnStats {
    pub(crate) x: *const f32,
    pub(crate) stride: usize,
    pub(crate) rows: usize,
    pub(crate) n: usize,
    pub(crate) mean: *mut f32,
    pub(crate) squares: *mut f32,
}

impl Kernel for ColumnStats {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: the caller's promise.
        unsafe {
            let share = S::splat(1.0 / self.rows as f32);
            let mut at = 0;
            while at < self.n {
                let n = (self.n - at).min(LANES);
                let x = self.x.add(at);
                let mut sum = S::zero();
                for i in 0..self.rows {
                    sum = S::add(sum, S::load_n(x.add(i * self.stride), n));
                }
                let mean = S::mul(sum, share);
                let mut squares = S::zero();
                for i in 0..self.rows {
                    let d = S::sub(S::load_n(x.add(i * self.stride), n), mean);
                    squares = S::fma(d, d, squares);
                }
                S::store_n(self.mean.add(at), mean, n);
                S::store_n(self.squares.add(at), squares, n);
                at += LANES;
            }
        }
    }
}

/// What happens to a number before it is stored; pointers are good for one number a column.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    Nothing,
    /// Times the slope below zero.
    Leaky(f32),
    /// `x + sin(alpha x)^2 * inverse`.
    Snake {
        alpha: *const f32,
        inverse: *const f32,
    },
}

// SAFETY: the pointers lead to weights that are only read.
unsafe impl Send for Then {}
// SAFETY: as above.
unsafe impl Sync for Then {}

/// `y = then((x - mean) * scale + bias)` for one row of `n` numbers; without `mean`, `y = then(x)`.
///
/// Pointers: all are good for `n` numbers; with a null `mean`, `scale` and `bias` are not read.
pub(crate) struct NormColumns {
    pub(crate) x: *const f32,
    pub(crate) y: *mut f32,
    pub(crate) n: usize,
    pub(crate) mean: *const f32,
    pub(crate) scale: *const f32,
    pub(crate) bias: *const f32,
    pub(crate) then: Then,
}

impl Kernel for NormColumns {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut at = 0;
            while at < self.n {
                let n = (self.n - at).min(LANES);
                let mut x = S::load_n(self.x.add(at), n);
                if !self.mean.is_null() {
                    let centred = S::sub(x, S::load_n(self.mean.add(at), n));
                    x = S::fma(centred, S::load_n(self.scale.add(at), n), S::load_n(self.bias.add(at), n));
                }
                let y = match self.then {
                    Then::Nothing => x,
                    Then::Leaky(slope) => S::fma(S::min(x, S::zero()), S::splat(slope), S::max(x, S::zero())),
                    Then::Snake { alpha, inverse } => {
                        let s = sin::<S>(S::mul(x, S::load_n(alpha.add(at), n)));
                        S::fma(S::mul(s, s), S::load_n(inverse.add(at), n), x)
                    }
                };
                S::store_n(self.y.add(at), y, n);
                at += LANES;
            }
        }
    }
}
