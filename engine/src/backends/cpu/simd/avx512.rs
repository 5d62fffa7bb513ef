//! AVX-512 with VNNI: one register for each logical vector.

use std::arch::x86_64::*;

use super::{LANES, Simd};

/// AVX-512 F, BW, VL, DQ, VNNI.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

#[inline(always)]
fn first(n: usize) -> __mmask16 {
    if n >= LANES { !0 } else { (1_u16 << n) - 1 }
}

// SAFETY (all blocks of this file): the instruction set is there and pointers are good for what is read or
// written; both are the caller's promise, as the trait says.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Simd for Avx512 {
    type F = __m512;
    type I = __m512i;
    type B = __m512i;
    const ROWS: usize = 8;
    const SIGNED_OFFSET: i32 = 128;

    #[inline(always)]
    unsafe fn splat(x: f32) -> __m512 {
        unsafe { _mm512_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> __m512 {
        unsafe { _mm512_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn load_n(p: *const f32, n: usize) -> __m512 {
        unsafe { _mm512_maskz_loadu_ps(first(n), p) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, x: __m512) {
        unsafe { _mm512_storeu_ps(p, x) }
    }
    #[inline(always)]
    unsafe fn store_n(p: *mut f32, x: __m512, n: usize) {
        unsafe { _mm512_mask_storeu_ps(p, first(n), x) }
    }
    #[inline(always)]
    unsafe fn load_f16(p: *const u16) -> __m512 {
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(p.cast())) }
    }
    #[inline(always)]
    unsafe fn load_bf16(p: *const u16) -> __m512 {
        unsafe {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        }
    }
    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn div(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn max(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_max_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn min(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_min_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn sqrt(a: __m512) -> __m512 {
        unsafe { _mm512_sqrt_ps(a) }
    }
    #[inline(always)]
    unsafe fn round(a: __m512) -> __m512 {
        unsafe { _mm512_roundscale_ps::<NEAREST>(a) }
    }
    #[inline(always)]
    unsafe fn pow2(n: __m512) -> __m512 {
        unsafe { _mm512_scalef_ps(_mm512_set1_ps(1.0), n) }
    }
    #[inline(always)]
    unsafe fn copysign(a: __m512, b: __m512) -> __m512 {
        unsafe {
            let sign = _mm512_set1_ps(-0.0);
            _mm512_or_ps(_mm512_andnot_ps(sign, a), _mm512_and_ps(sign, b))
        }
    }
    #[inline(always)]
    unsafe fn to_array(a: __m512) -> [f32; LANES] {
        unsafe { std::mem::transmute(a) }
    }
    #[inline(always)]
    unsafe fn store_i8(p: *mut i8, a: __m512) {
        unsafe { _mm_storeu_si128(p.cast(), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a))) }
    }
    #[inline(always)]
    unsafe fn splat_i(x: i32) -> __m512i {
        unsafe { _mm512_set1_epi32(x) }
    }
    #[inline(always)]
    unsafe fn add_i(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_add_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn mul_i(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_mullo_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn load_u8(p: *const u8) -> __m512i {
        unsafe { _mm512_cvtepu8_epi32(_mm_loadu_si128(p.cast())) }
    }
    #[inline(always)]
    unsafe fn load_i8(p: *const u8) -> __m512i {
        unsafe { _mm512_cvtepi8_epi32(_mm_loadu_si128(p.cast())) }
    }
    #[inline(always)]
    unsafe fn to_f(a: __m512i) -> __m512 {
        unsafe { _mm512_cvtepi32_ps(a) }
    }
    #[inline(always)]
    unsafe fn load_b(p: *const u8) -> __m512i {
        unsafe { _mm512_loadu_si512(p.cast()) }
    }
    #[inline(always)]
    unsafe fn splat_4(p: *const i8) -> __m512i {
        unsafe { _mm512_set1_epi32(p.cast::<i32>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn low_nibbles(a: __m512i) -> __m512i {
        unsafe { _mm512_and_si512(a, _mm512_set1_epi8(15)) }
    }
    #[inline(always)]
    unsafe fn high_nibbles(a: __m512i) -> __m512i {
        unsafe { _mm512_and_si512(_mm512_srli_epi16::<4>(a), _mm512_set1_epi8(15)) }
    }
    #[inline(always)]
    unsafe fn or_bits<const SHIFT: u32, const LEFT: u32>(a: __m512i, bits: __m512i, mask: u8) -> __m512i {
        unsafe {
            // One shift to the final place, then `a | (shifted & mask)` in one instruction.
            let shifted = if SHIFT >= LEFT {
                _mm512_srl_epi16(bits, _mm_cvtsi32_si128((SHIFT - LEFT) as i32))
            } else {
                _mm512_sll_epi16(bits, _mm_cvtsi32_si128((LEFT - SHIFT) as i32))
            };
            let mask = _mm512_set1_epi8((mask << LEFT) as i8);
            _mm512_ternarylogic_epi32::<0xf8>(a, shifted, mask)
        }
    }
    #[inline(always)]
    unsafe fn dot(acc: __m512i, u: __m512i, s: __m512i) -> __m512i {
        unsafe { _mm512_dpbusd_epi32(acc, u, s) }
    }
    #[inline(always)]
    unsafe fn dot_signed(acc: __m512i, w: __m512i, a: __m512i) -> __m512i {
        unsafe { _mm512_dpbusd_epi32(acc, _mm512_xor_si512(w, _mm512_set1_epi8(-128)), a) }
    }
    #[inline(always)]
    unsafe fn max_lane(a: __m512) -> f32 {
        unsafe { _mm512_reduce_max_ps(a) }
    }
}
