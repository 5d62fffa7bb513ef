//! Kernels that work row by row or number by number.

use crate::backends::cpu::simd::{Kernel, LANES, Simd, erf, exp, sigmoid, sin, tanh};
use crate::graph::{BinaryOp, UnaryOp};

/// Runs a block for each vector of a row of `n` numbers, with its start and how many of its lanes are inside.
///
/// A macro, not a function of a closure: what the compiler does not inline is compiled without the instruction set,
/// and each instruction becomes a call (attention took 125 ms instead of 26 for it).
macro_rules! each {
    ($n:expr, |$i:ident, $lanes:ident| $body:expr) => {{
        let mut $i = 0;
        while $i < $n {
            let $lanes = ($n - $i).min(LANES);
            $body;
            $i += LANES;
        }
    }};
}

/// `y = f(x)` for `n` numbers; `x` and `y` may be the same.
pub(crate) struct Unary {
    pub(crate) x: *const f32,
    pub(crate) y: *mut f32,
    pub(crate) n: usize,
    pub(crate) op: UnaryOp,
}

impl Kernel for Unary {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: `n` numbers at both pointers, the caller's promise.
        unsafe {
            match self.op {
                UnaryOp::Gelu => self.map::<S>(|x| {
                    let half = S::mul(x, S::splat(0.5));
                    let e = erf::<S>(S::mul(x, S::splat(std::f32::consts::FRAC_1_SQRT_2)));
                    S::fma(half, e, half)
                }),
                UnaryOp::GeluTanh => self.map::<S>(|x| {
                    // (1 + tanh y) / 2 is the sigmoid of 2 y.
                    let cubic = S::fma(S::mul(x, x), S::splat(0.044_715), S::splat(1.0));
                    let twice = S::mul(S::mul(x, cubic), S::splat(1.595_769));
                    S::mul(x, sigmoid::<S>(twice))
                }),
                UnaryOp::Relu => self.map::<S>(|x| S::max(x, S::zero())),
                UnaryOp::LeakyRelu(slope) => self.map::<S>(|x| {
                    S::add(S::max(x, S::zero()), S::mul(S::min(x, S::zero()), S::splat(slope)))
                }),
                UnaryOp::Silu => self.map::<S>(|x| S::mul(x, sigmoid::<S>(x))),
                UnaryOp::Sigmoid => self.map::<S>(|x| sigmoid::<S>(x)),
                UnaryOp::Tanh => self.map::<S>(|x| tanh::<S>(x)),
                UnaryOp::Exp => self.map::<S>(|x| exp::<S>(x)),
                UnaryOp::Sqrt => self.map::<S>(|x| S::sqrt(S::max(x, S::zero()))),
                UnaryOp::Sin => self.map::<S>(|x| sin::<S>(x)),
                UnaryOp::Affine { scale, offset } => {
                    self.map::<S>(|x| S::fma(x, S::splat(scale), S::splat(offset)));
                }
            }
        }
    }
}

impl Unary {
    #[inline(always)]
    unsafe fn map<S: Simd>(&self, f: impl Fn(S::F) -> S::F) {
        // SAFETY: the caller's promise.
        unsafe {
            each!(self.n, |i, n| S::store_n(self.y.add(i), f(S::load_n(self.x.add(i), n)), n));
        }
    }
}

/// `y = a op b` for `n` numbers; with `splat`, `b` is one number for all.
pub(crate) struct Binary {
    pub(crate) a: *const f32,
    pub(crate) b: *const f32,
    pub(crate) y: *mut f32,
    pub(crate) n: usize,
    pub(crate) op: BinaryOp,
    pub(crate) splat: bool,
}

impl Kernel for Binary {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: `n` numbers at the pointers (one at `b` with `splat`), the caller's promise.
        unsafe {
            each!(self.n, |i, n| {
                let a = S::load_n(self.a.add(i), n);
                let b = if self.splat { S::splat(*self.b) } else { S::load_n(self.b.add(i), n) };
                let y = match self.op {
                    BinaryOp::Add => S::add(a, b),
                    BinaryOp::Sub => S::sub(a, b),
                    BinaryOp::Mul => S::mul(a, b),
                    BinaryOp::Div => S::div(a, b),
                    BinaryOp::MulSilu => S::mul(a, S::mul(b, sigmoid::<S>(b))),
                };
                S::store_n(self.y.add(i), y, n);
            });
        }
    }
}

/// Sum of `f(x)` over `n` numbers, lanes first.
#[inline(always)]
unsafe fn total<S: Simd>(x: *const f32, n: usize, f: impl Fn(S::F, usize) -> S::F) -> f32 {
    // SAFETY: `n` numbers, the caller's promise.
    unsafe {
        let mut sum = S::zero();
        each!(n, |i, n| sum = S::add(sum, f(S::load_n(x.add(i), n), n)));
        S::sum(sum)
    }
}

/// Layer norm of one row of `n` numbers; `bias` may be null.
pub(crate) struct LayerNorm {
    pub(crate) x: *const f32,
    pub(crate) y: *mut f32,
    pub(crate) n: usize,
    pub(crate) gain: *const f32,
    pub(crate) bias: *const f32,
    pub(crate) eps: f32,
}

impl Kernel for LayerNorm {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: `n` numbers at the pointers, the caller's promise.
        unsafe {
            let n = self.n as f32;
            let mean = total::<S>(self.x, self.n, |x, _| x) / n;
            let m = S::splat(mean);
            // Two passes: the variance of numbers far from zero keeps its digits.
            let var = total::<S>(self.x, self.n, |x, left| {
                let d = S::sub(x, m);
                let d = if left < LANES { first::<S>(d, left) } else { d };
                S::mul(d, d)
            }) / n;
            let inv = S::splat(1.0 / (var + self.eps).sqrt());
            each!(self.n, |i, n| {
                let x = S::mul(S::sub(S::load_n(self.x.add(i), n), m), inv);
                let gain = S::load_n(self.gain.add(i), n);
                let y = if self.bias.is_null() {
                    S::mul(x, gain)
                } else {
                    S::fma(x, gain, S::load_n(self.bias.add(i), n))
                };
                S::store_n(self.y.add(i), y, n);
            });
        }
    }
}

/// The first `n` lanes, zeros behind.
#[inline(always)]
unsafe fn first<S: Simd>(x: S::F, n: usize) -> S::F {
    // SAFETY: the caller's promise.
    unsafe {
        let a = S::to_array(x);
        S::load_n(a.as_ptr(), n)
    }
}

/// Root-mean-square norm of one group of `n` numbers.
pub(crate) struct RmsNorm {
    pub(crate) x: *const f32,
    pub(crate) y: *mut f32,
    pub(crate) n: usize,
    pub(crate) gain: *const f32,
    pub(crate) eps: f32,
}

impl Kernel for RmsNorm {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: `n` numbers at the pointers, the caller's promise.
        unsafe {
            let mean = total::<S>(self.x, self.n, |x, _| S::mul(x, x)) / self.n as f32;
            let inv = S::splat(1.0 / (mean + self.eps).sqrt());
            each!(self.n, |i, n| {
                let x = S::mul(S::load_n(self.x.add(i), n), inv);
                S::store_n(self.y.add(i), S::mul(x, S::load_n(self.gain.add(i), n)), n);
            });
        }
    }
}

/// `p = softmax(scale * x)` in place over the first `seen` of a row; zeros from there to `width`.
pub(crate) struct Softmax {
    pub(crate) x: *mut f32,
    pub(crate) seen: usize,
    pub(crate) width: usize,
    pub(crate) scale: f32,
}

impl Kernel for Softmax {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: `width` numbers, `seen <= width`, the caller's promise.
        unsafe { softmax::<S>(self.x, self.seen, self.width, self.scale) }
    }
}

/// See [`Softmax`].
#[inline(always)]
pub(crate) unsafe fn softmax<S: Simd>(x: *mut f32, seen: usize, width: usize, scale: f32) {
    // SAFETY: `width` numbers, `seen <= width`, the caller's promise.
    unsafe {
        let lowest = S::splat(f32::NEG_INFINITY);
        let mut top = lowest;
        each!(seen, |i, n| {
            let v = S::mul(S::load_n(x.add(i), n), S::splat(scale));
            S::store_n(x.add(i), v, n);
            if n == LANES {
                top = S::max(top, v);
            } else {
                // Lanes past the end are no candidates.
                let mut a = [f32::NEG_INFINITY; LANES];
                a[..n].copy_from_slice(&S::to_array(v)[..n]);
                top = S::max(top, S::load(a.as_ptr()));
            }
        });
        let top = S::splat(S::max_lane(top));
        let mut sum = S::zero();
        each!(seen, |i, n| {
            let e = exp::<S>(S::sub(S::load_n(x.add(i), n), top));
            let e = if n < LANES { first::<S>(e, n) } else { e };
            S::store_n(x.add(i), e, n);
            sum = S::add(sum, e);
        });
        let inv = S::splat(1.0 / S::sum(sum));
        each!(seen, |i, n| S::store_n(x.add(i), S::mul(S::load_n(x.add(i), n), inv), n));
        if seen < width {
            std::slice::from_raw_parts_mut(x.add(seen), width - seen).fill(0.0);
        }
    }
}

/// `y[j] = sqrt(x[j]^2 + x[n + j]^2)` for `n` numbers.
pub(crate) struct Magnitude {
    pub(crate) x: *const f32,
    pub(crate) y: *mut f32,
    pub(crate) n: usize,
}

impl Kernel for Magnitude {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: `2 n` numbers at `x`, `n` at `y`, the caller's promise.
        unsafe {
            each!(self.n, |i, n| {
                let (a, b) = (S::load_n(self.x.add(i), n), S::load_n(self.x.add(self.n + i), n));
                S::store_n(self.y.add(i), S::sqrt(S::fma(a, a, S::mul(b, b))), n);
            });
        }
    }
}

/// `y += x` for `n` numbers, times `factor` after: sums and means over rows.
pub(crate) struct Accumulate {
    pub(crate) x: *const f32,
    pub(crate) y: *mut f32,
    pub(crate) n: usize,
    pub(crate) factor: f32,
}

impl Kernel for Accumulate {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: `n` numbers at both pointers, the caller's promise.
        unsafe {
            each!(self.n, |i, n| {
                let sum = S::add(S::load_n(self.y.add(i), n), S::load_n(self.x.add(i), n));
                S::store_n(self.y.add(i), S::mul(sum, S::splat(self.factor)), n);
            });
        }
    }
}

/// One output row of a depth-wise convolution with one output for each channel: `w` is `[taps][channels]`.
/// `x` points at the row of the first tap (it may lie outside); taps `from .. to` are inside.
pub(crate) struct Depthwise {
    pub(crate) x: *const f32,
    pub(crate) x_row: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) w: *const f32,
    pub(crate) bias: *const f32,
    pub(crate) y: *mut f32,
    pub(crate) n: usize,
}

impl Kernel for Depthwise {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: `n` numbers for each tap inside, the caller's promise.
        unsafe {
            each!(self.n, |i, n| {
                let mut sum = if self.bias.is_null() { S::zero() } else { S::load_n(self.bias.add(i), n) };
                for tap in self.from..self.to {
                    let x = S::load_n(self.x.wrapping_add(tap * self.x_row + i), n);
                    sum = S::fma(x, S::load_n(self.w.add(tap * self.n + i), n), sum);
                }
                S::store_n(self.y.add(i), sum, n);
            });
        }
    }
}
