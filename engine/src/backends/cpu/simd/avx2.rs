//! AVX2 with FMA and F16C: two registers for each logical vector.
//!
//! Written out pair by pair: an instruction inside a closure that the compiler does not inline is compiled without
//! the instruction set, as a call.

use std::arch::x86_64::*;

use super::{LANES, Simd};

/// AVX2, FMA, F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

type F = [__m256; 2];
type I = [__m256i; 2];

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// Lane masks for the first `n` of 8.
#[inline(always)]
unsafe fn first(n: usize) -> __m256i {
    // SAFETY: AVX2 is there, the caller's promise.
    unsafe { _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)) }
}

// SAFETY (all blocks of this file): the instruction set is there and pointers are good for what is read or
// written; both are the caller's promise, as the trait says.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Simd for Avx2 {
    type F = F;
    type I = I;
    type B = I;
    const ROWS: usize = 4;
    const SIGNED_OFFSET: i32 = 0;

    #[inline(always)]
    unsafe fn splat(x: f32) -> F {
        unsafe { [_mm256_set1_ps(x); 2] }
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> F {
        unsafe { [_mm256_loadu_ps(p), _mm256_loadu_ps(p.add(8))] }
    }
    #[inline(always)]
    unsafe fn load_n(p: *const f32, n: usize) -> F {
        unsafe {
            [
                _mm256_maskload_ps(p, first(n)),
                _mm256_maskload_ps(p.wrapping_add(8), first(n.saturating_sub(8))),
            ]
        }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, x: F) {
        unsafe {
            _mm256_storeu_ps(p, x[0]);
            _mm256_storeu_ps(p.add(8), x[1]);
        }
    }
    #[inline(always)]
    unsafe fn store_n(p: *mut f32, x: F, n: usize) {
        unsafe {
            _mm256_maskstore_ps(p, first(n), x[0]);
            _mm256_maskstore_ps(p.wrapping_add(8), first(n.saturating_sub(8)), x[1]);
        }
    }
    #[inline(always)]
    unsafe fn load_f16(p: *const u16) -> F {
        unsafe {
            [_mm256_cvtph_ps(_mm_loadu_si128(p.cast())), _mm256_cvtph_ps(_mm_loadu_si128(p.add(8).cast()))]
        }
    }
    #[inline(always)]
    unsafe fn load_bf16(p: *const u16) -> F {
        unsafe {
            let wide = [
                _mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast())),
                _mm256_cvtepu16_epi32(_mm_loadu_si128(p.add(8).cast())),
            ];
            let [a, b] = wide;
            [_mm256_castsi256_ps(_mm256_slli_epi32::<16>(a)), _mm256_castsi256_ps(_mm256_slli_epi32::<16>(b))]
        }
    }
    #[inline(always)]
    unsafe fn add(a: F, b: F) -> F {
        unsafe { [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])] }
    }
    #[inline(always)]
    unsafe fn sub(a: F, b: F) -> F {
        unsafe { [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])] }
    }
    #[inline(always)]
    unsafe fn mul(a: F, b: F) -> F {
        unsafe { [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])] }
    }
    #[inline(always)]
    unsafe fn div(a: F, b: F) -> F {
        unsafe { [_mm256_div_ps(a[0], b[0]), _mm256_div_ps(a[1], b[1])] }
    }
    #[inline(always)]
    unsafe fn fma(a: F, b: F, c: F) -> F {
        unsafe { [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])] }
    }
    #[inline(always)]
    unsafe fn max(a: F, b: F) -> F {
        unsafe { [_mm256_max_ps(a[0], b[0]), _mm256_max_ps(a[1], b[1])] }
    }
    #[inline(always)]
    unsafe fn min(a: F, b: F) -> F {
        unsafe { [_mm256_min_ps(a[0], b[0]), _mm256_min_ps(a[1], b[1])] }
    }
    #[inline(always)]
    unsafe fn sqrt(a: F) -> F {
        unsafe { [_mm256_sqrt_ps(a[0]), _mm256_sqrt_ps(a[1])] }
    }
    #[inline(always)]
    unsafe fn round(a: F) -> F {
        unsafe { [_mm256_round_ps::<NEAREST>(a[0]), _mm256_round_ps::<NEAREST>(a[1])] }
    }
    #[inline(always)]
    unsafe fn pow2(n: F) -> F {
        unsafe {
            let bias = _mm256_set1_epi32(127);
            let a = _mm256_add_epi32(_mm256_cvtps_epi32(n[0]), bias);
            let b = _mm256_add_epi32(_mm256_cvtps_epi32(n[1]), bias);
            [_mm256_castsi256_ps(_mm256_slli_epi32::<23>(a)), _mm256_castsi256_ps(_mm256_slli_epi32::<23>(b))]
        }
    }
    #[inline(always)]
    unsafe fn copysign(a: F, b: F) -> F {
        unsafe {
            let sign = _mm256_set1_ps(-0.0);
            let one = |a, b| _mm256_or_ps(_mm256_andnot_ps(sign, a), _mm256_and_ps(sign, b));
            [one(a[0], b[0]), one(a[1], b[1])]
        }
    }
    #[inline(always)]
    unsafe fn to_array(a: F) -> [f32; LANES] {
        unsafe { std::mem::transmute(a) }
    }
    #[inline(always)]
    unsafe fn store_i8(p: *mut i8, a: F) {
        unsafe {
            let words = _mm256_packs_epi32(_mm256_cvtps_epi32(a[0]), _mm256_cvtps_epi32(a[1]));
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(words);
            let bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(p.cast(), bytes);
        }
    }
    #[inline(always)]
    unsafe fn splat_i(x: i32) -> I {
        unsafe { [_mm256_set1_epi32(x); 2] }
    }
    #[inline(always)]
    unsafe fn add_i(a: I, b: I) -> I {
        unsafe { [_mm256_add_epi32(a[0], b[0]), _mm256_add_epi32(a[1], b[1])] }
    }
    #[inline(always)]
    unsafe fn mul_i(a: I, b: I) -> I {
        unsafe { [_mm256_mullo_epi32(a[0], b[0]), _mm256_mullo_epi32(a[1], b[1])] }
    }
    #[inline(always)]
    unsafe fn load_u8(p: *const u8) -> I {
        unsafe {
            [
                _mm256_cvtepu8_epi32(_mm_loadl_epi64(p.cast())),
                _mm256_cvtepu8_epi32(_mm_loadl_epi64(p.add(8).cast())),
            ]
        }
    }
    #[inline(always)]
    unsafe fn load_i8(p: *const u8) -> I {
        unsafe {
            [
                _mm256_cvtepi8_epi32(_mm_loadl_epi64(p.cast())),
                _mm256_cvtepi8_epi32(_mm_loadl_epi64(p.add(8).cast())),
            ]
        }
    }
    #[inline(always)]
    unsafe fn to_f(a: I) -> F {
        unsafe { [_mm256_cvtepi32_ps(a[0]), _mm256_cvtepi32_ps(a[1])] }
    }
    #[inline(always)]
    unsafe fn load_b(p: *const u8) -> I {
        unsafe { [_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(32).cast())] }
    }
    #[inline(always)]
    unsafe fn splat_4(p: *const i8) -> I {
        unsafe { [_mm256_set1_epi32(p.cast::<i32>().read_unaligned()); 2] }
    }
    #[inline(always)]
    unsafe fn low_nibbles(a: I) -> I {
        unsafe {
            let mask = _mm256_set1_epi8(15);
            [_mm256_and_si256(a[0], mask), _mm256_and_si256(a[1], mask)]
        }
    }
    #[inline(always)]
    unsafe fn high_nibbles(a: I) -> I {
        unsafe {
            let mask = _mm256_set1_epi8(15);
            let [a, b] = [_mm256_srli_epi16::<4>(a[0]), _mm256_srli_epi16::<4>(a[1])];
            [_mm256_and_si256(a, mask), _mm256_and_si256(b, mask)]
        }
    }
    #[inline(always)]
    unsafe fn or_bits<const SHIFT: u32, const LEFT: u32>(a: I, bits: I, mask: u8) -> I {
        unsafe {
            let mask = _mm256_set1_epi8((mask << LEFT) as i8);
            let one = |a, bits| {
                let shifted = if SHIFT >= LEFT {
                    _mm256_srl_epi16(bits, _mm_cvtsi32_si128((SHIFT - LEFT) as i32))
                } else {
                    _mm256_sll_epi16(bits, _mm_cvtsi32_si128((LEFT - SHIFT) as i32))
                };
                _mm256_or_si256(a, _mm256_and_si256(shifted, mask))
            };
            [one(a[0], bits[0]), one(a[1], bits[1])]
        }
    }
    #[inline(always)]
    unsafe fn dot(acc: I, u: I, s: I) -> I {
        unsafe {
            // Below 64 * 128 * 2 nothing saturates in 16 bits.
            let one = |acc, u, s| {
                let pairs = _mm256_maddubs_epi16(u, s);
                _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
            };
            [one(acc[0], u[0], s[0]), one(acc[1], u[1], s[1])]
        }
    }
    #[inline(always)]
    unsafe fn dot_signed(acc: I, w: I, a: I) -> I {
        unsafe {
            // |w| times a with w's sign; activations never hold -128, so 128 * 127 * 2 does not saturate.
            let one = |acc, w, a| {
                let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
                _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
            };
            [one(acc[0], w[0], a[0]), one(acc[1], w[1], a[1])]
        }
    }
}
