//! Functions of 16 numbers at once, each with its error against f64 (tested below for every instruction set).

use super::Simd;

/// `e^x` within 2 units in the last place; 0 below -87.3, clamped at 88.3 (about 2.3e38).
#[inline(always)]
pub(crate) unsafe fn exp<S: Simd>(x: S::F) -> S::F {
    // SAFETY: the caller's promise.
    unsafe {
        // Cody and Waite: x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts; then a polynomial for e^r.
        let x = S::min(S::max(x, S::splat(-87.336_54)), S::splat(88.376_26));
        let n = S::round(S::mul(x, S::splat(std::f32::consts::LOG2_E)));
        let r = S::fma(n, S::splat(-0.693_359_4), x);
        let r = S::fma(n, S::splat(2.121_944_4e-4), r);
        let mut p = S::splat(1.0 / 5040.0);
        for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
            p = S::fma(p, r, S::splat(c));
        }
        S::mul(p, S::pow2(n))
    }
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(crate) unsafe fn sigmoid<S: Simd>(x: S::F) -> S::F {
    // SAFETY: the caller's promise.
    unsafe {
        let one = S::splat(1.0);
        S::div(one, S::add(one, exp::<S>(S::sub(S::zero(), x))))
    }
}

/// Hyperbolic tangent.
#[inline(always)]
pub(crate) unsafe fn tanh<S: Simd>(x: S::F) -> S::F {
    // SAFETY: the caller's promise.
    unsafe {
        // (1 - e) / (1 + e) with e = exp(-2 |x|) loses digits near zero, where the odd series takes over.
        let a = S::abs(x);
        let e = exp::<S>(S::mul(a, S::splat(-2.0)));
        let one = S::splat(1.0);
        let far = S::div(S::sub(one, e), S::add(one, e));
        // Clamped, so that the side that is not chosen stays small and drops out without a trace.
        let small = S::min(a, S::splat(0.15));
        let x2 = S::mul(small, small);
        let mut p = S::splat(62.0 / 2835.0);
        for c in [-17.0 / 315.0, 2.0 / 15.0, -1.0 / 3.0, 1.0] {
            p = S::fma(p, x2, S::splat(c));
        }
        let near = S::mul(small, p);
        // Selecting without masks: below 0.15 the series is used, chosen by a step of 0 or 1.
        let step = S::min(S::max(S::mul(S::sub(a, S::splat(0.15)), S::splat(1e30)), S::zero()), one);
        let y = S::fma(step, S::sub(far, near), near);
        S::copysign(y, x)
    }
}

/// The error function within 4e-7 (Abramowitz and Stegun 7.1.26).
#[inline(always)]
pub(crate) unsafe fn erf<S: Simd>(x: S::F) -> S::F {
    // SAFETY: the caller's promise.
    unsafe {
        let a = S::abs(x);
        let one = S::splat(1.0);
        let t = S::div(one, S::fma(a, S::splat(0.327_591_1), one));
        let mut p = S::splat(1.061_405_4);
        for c in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
            p = S::fma(p, t, S::splat(c));
        }
        let e = exp::<S>(S::sub(S::zero(), S::mul(a, a)));
        let far = S::sub(one, S::mul(S::mul(p, t), e));
        // Below 0.6 that loses digits against 1; the Taylor series takes over there, chosen as in `tanh`.
        let small = S::min(a, S::splat(0.6));
        let x2 = S::mul(small, small);
        let mut p = S::splat(1.0 / 9360.0);
        for c in [-1.0 / 1320.0, 1.0 / 216.0, -1.0 / 42.0, 0.1, -1.0 / 3.0, 1.0] {
            p = S::fma(p, x2, S::splat(c));
        }
        let near = S::mul(S::mul(small, p), S::splat(std::f32::consts::FRAC_2_SQRT_PI));
        let step = S::min(S::max(S::mul(S::sub(a, S::splat(0.6)), S::splat(1e30)), S::zero()), one);
        S::copysign(S::fma(step, S::sub(far, near), near), x)
    }
}

/// Sine, good to 2e-7 for |x| up to about 1e5 (larger arguments lose digits with their own rounding).
#[inline(always)]
pub(crate) unsafe fn sin<S: Simd>(x: S::F) -> S::F {
    // SAFETY: the caller's promise.
    unsafe {
        // x = n pi + r, |r| <= pi / 2, pi in three parts; sin x = (-1)^n sin r.
        let n = S::round(S::mul(x, S::splat(std::f32::consts::FRAC_1_PI)));
        let r = S::fma(n, S::splat(-3.140_625), x);
        let r = S::fma(n, S::splat(-9.675_026e-4), r);
        let r = S::fma(n, S::splat(-1.509_957_9e-7), r);
        let r2 = S::mul(r, r);
        let mut p = S::splat(-2.505_210_8e-8);
        for c in [2.755_731_9e-6, -1.984_127e-4, 8.333_333e-3, -1.666_666_7e-1, 1.0] {
            p = S::fma(p, r2, S::splat(c));
        }
        let s = S::mul(r, p);
        // (-1)^n = 1 - 2 (n mod 2), n mod 2 = |n - 2 round(n / 2)|.
        let half = S::round(S::mul(n, S::splat(0.5)));
        let odd = S::abs(S::fma(half, S::splat(-2.0), n));
        S::mul(s, S::fma(odd, S::splat(-2.0), S::splat(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{InstructionSet, Kernel, LANES, dispatch};
    use super::*;

    type Function = (&'static str, fn(f64) -> f64, f64, f64, f64);

    struct All<'a>(&'a str, &'a [f32; LANES]);

    impl Kernel for All<'_> {
        type Out = [f32; LANES];
        #[inline(always)]
        unsafe fn run<S: Simd>(self) -> [f32; LANES] {
            // SAFETY: 16 floats; the set was detected.
            unsafe {
                let v = S::load(self.1.as_ptr());
                S::to_array(match self.0 {
                    "exp" => exp::<S>(v),
                    "sigmoid" => sigmoid::<S>(v),
                    "tanh" => tanh::<S>(v),
                    "erf" => erf::<S>(v),
                    _ => sin::<S>(v),
                })
            }
        }
    }

    #[test]
    fn functions_are_close_to_f64_on_every_instruction_set() {
        // Name, truth, range, absolute and relative tolerance.
        let table: [Function; 5] = [
            ("exp", f64::exp, 85.0, 1e-37, 3e-7),
            ("sigmoid", |x| 1.0 / (1.0 + (-x).exp()), 80.0, 1e-30, 4e-7),
            ("tanh", f64::tanh, 20.0, 1e-30, 6e-7),
            ("erf", crate::reference::erf, 5.0, 4e-7, 0.0),
            ("sin", f64::sin, 3000.0, 3e-7, 0.0),
        ];
        for set in InstructionSet::available() {
            for (name, truth, range, absolute, relative) in table {
                for step in 0..4000 {
                    let x: [f32; LANES] =
                        std::array::from_fn(|i| (((step * LANES + i) as f64 / 32000.0 - 1.0) * range) as f32);
                    // SAFETY: the arrays hold 16 floats.
                    let y = unsafe { dispatch(set, All(name, &x)) };
                    for (x, y) in x.into_iter().zip(y) {
                        let t = truth(f64::from(x));
                        let within = (f64::from(y) - t).abs() <= absolute + relative * t.abs();
                        assert!(within, "{} {name}({x}) = {y}, not {t}", set.name());
                    }
                }
            }
        }
    }
}
