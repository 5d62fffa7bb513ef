//! Arrays that the compiler turns into whatever vectors its target has.

use half::{bf16, f16};

use super::{LANES, Simd};

/// No instructions beyond the compiler's target.
#[derive(Clone, Copy)]
pub(crate) struct Generic;

type F = [f32; LANES];
type I = [i32; LANES];
type B = [u8; 64];

#[inline(always)]
fn map2(a: F, b: F, f: impl Fn(f32, f32) -> f32) -> F {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Simd for Generic {
    type F = F;
    type I = I;
    type B = B;
    const ROWS: usize = 4;
    const SIGNED_OFFSET: i32 = 0;

    #[inline(always)]
    unsafe fn splat(x: f32) -> F {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> F {
        // SAFETY: 16 floats, the caller's promise.
        unsafe { p.cast::<F>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn load_n(p: *const f32, n: usize) -> F {
        // SAFETY: `n` floats, the caller's promise.
        std::array::from_fn(|i| if i < n { unsafe { p.add(i).read_unaligned() } } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, x: F) {
        // SAFETY: 16 floats, the caller's promise.
        unsafe { p.cast::<F>().write_unaligned(x) }
    }
    #[inline(always)]
    unsafe fn store_n(p: *mut f32, x: F, n: usize) {
        for (i, x) in x.into_iter().enumerate().take(n) {
            // SAFETY: `n` floats, the caller's promise.
            unsafe { p.add(i).write_unaligned(x) }
        }
    }
    #[inline(always)]
    unsafe fn load_f16(p: *const u16) -> F {
        // SAFETY: 16 halves, the caller's promise.
        let bits = unsafe { p.cast::<[u16; LANES]>().read_unaligned() };
        bits.map(|b| f16::from_bits(b).to_f32())
    }
    #[inline(always)]
    unsafe fn load_bf16(p: *const u16) -> F {
        // SAFETY: 16 halves, the caller's promise.
        let bits = unsafe { p.cast::<[u16; LANES]>().read_unaligned() };
        bits.map(|b| bf16::from_bits(b).to_f32())
    }
    #[inline(always)]
    unsafe fn add(a: F, b: F) -> F {
        map2(a, b, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(a: F, b: F) -> F {
        map2(a, b, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(a: F, b: F) -> F {
        map2(a, b, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn div(a: F, b: F) -> F {
        map2(a, b, |a, b| a / b)
    }
    #[inline(always)]
    unsafe fn fma(a: F, b: F, c: F) -> F {
        // Not `mul_add`: without the instruction that is a library call.
        std::array::from_fn(|i| {
            if cfg!(target_arch = "aarch64") { a[i].mul_add(b[i], c[i]) } else { a[i] * b[i] + c[i] }
        })
    }
    #[inline(always)]
    unsafe fn max(a: F, b: F) -> F {
        map2(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn min(a: F, b: F) -> F {
        map2(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    unsafe fn sqrt(a: F) -> F {
        a.map(f32::sqrt)
    }
    #[inline(always)]
    unsafe fn round(a: F) -> F {
        // Adding and taking away 1.5 * 2^23 rounds small numbers to even; larger ones are integral already.
        const BIG: f32 = 12_582_912.0;
        a.map(|x| if x.abs() < 4_194_304.0 { (x + BIG) - BIG } else { x })
    }
    #[inline(always)]
    unsafe fn pow2(n: F) -> F {
        n.map(|n| f32::from_bits(((n as i32 + 127) << 23) as u32))
    }
    #[inline(always)]
    unsafe fn copysign(a: F, b: F) -> F {
        map2(a, b, f32::copysign)
    }
    #[inline(always)]
    unsafe fn to_array(a: F) -> [f32; LANES] {
        a
    }
    #[inline(always)]
    unsafe fn store_i8(p: *mut i8, a: F) {
        // SAFETY: 16 bytes, the caller's promise.
        unsafe { p.cast::<[i8; LANES]>().write_unaligned(Self::round(a).map(|x| x as i8)) }
    }
    #[inline(always)]
    unsafe fn splat_i(x: i32) -> I {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn add_i(a: I, b: I) -> I {
        std::array::from_fn(|i| a[i].wrapping_add(b[i]))
    }
    #[inline(always)]
    unsafe fn mul_i(a: I, b: I) -> I {
        std::array::from_fn(|i| a[i].wrapping_mul(b[i]))
    }
    #[inline(always)]
    unsafe fn load_u8(p: *const u8) -> I {
        // SAFETY: 16 bytes, the caller's promise.
        unsafe { p.cast::<[u8; LANES]>().read_unaligned() }.map(i32::from)
    }
    #[inline(always)]
    unsafe fn load_i8(p: *const u8) -> I {
        // SAFETY: 16 bytes, the caller's promise.
        unsafe { p.cast::<[i8; LANES]>().read_unaligned() }.map(i32::from)
    }
    #[inline(always)]
    unsafe fn to_f(a: I) -> F {
        a.map(|x| x as f32)
    }
    #[inline(always)]
    unsafe fn load_b(p: *const u8) -> B {
        // SAFETY: 64 bytes, the caller's promise.
        unsafe { p.cast::<B>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn splat_4(p: *const i8) -> B {
        // SAFETY: 4 bytes, the caller's promise.
        let four = unsafe { p.cast::<[u8; 4]>().read_unaligned() };
        std::array::from_fn(|i| four[i % 4])
    }
    #[inline(always)]
    unsafe fn low_nibbles(a: B) -> B {
        a.map(|x| x & 15)
    }
    #[inline(always)]
    unsafe fn high_nibbles(a: B) -> B {
        a.map(|x| x >> 4)
    }
    #[inline(always)]
    unsafe fn or_bits<const SHIFT: u32, const LEFT: u32>(a: B, bits: B, mask: u8) -> B {
        std::array::from_fn(|i| a[i] | (((bits[i] >> SHIFT) & mask) << LEFT))
    }
    #[inline(always)]
    unsafe fn dot(acc: I, u: B, s: B) -> I {
        std::array::from_fn(|i| {
            (0..4).fold(acc[i], |sum, j| sum + i32::from(u[4 * i + j]) * i32::from(s[4 * i + j] as i8))
        })
    }
    #[inline(always)]
    unsafe fn dot_signed(acc: I, w: B, a: B) -> I {
        std::array::from_fn(|i| {
            (0..4).fold(acc[i], |sum, j| sum + i32::from(w[4 * i + j] as i8) * i32::from(a[4 * i + j] as i8))
        })
    }
}
