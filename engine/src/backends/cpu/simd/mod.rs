//! One kernel text for many instruction sets.
//!
//! Kernels are written once over [`Simd`], whose logical vectors have 16 floats, 16 integers or 64 bytes on every
//! machine: one register on AVX-512, two on AVX2, an array that the compiler vectorises elsewhere. All of them
//! add in the same order, so a result does not depend on how many rows or threads take part.
//!
//! A [`Kernel`] is such a text; [`dispatch`] enters it compiled for an [`InstructionSet`], whose values beyond
//! generic come from [`InstructionSet::available`]. Methods are `unsafe` because they read through pointers and because the
//! instructions must exist: both are the caller's promise at the one place that dispatches.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod generic;
mod math;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
pub(crate) use generic::Generic;
pub(crate) use math::{erf, exp, sigmoid, sin, tanh};

/// Floats in a logical vector.
pub(crate) const LANES: usize = 16;

/// The instruction sets that kernels are compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InstructionSet {
    /// Whatever the compiler's target has (NEON on 64-bit Arm, SSE2 on x86-64).
    Generic,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, VL, DQ and VNNI.
    Avx512Vnni,
}

impl InstructionSet {
    /// What this machine has, best last.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut)] // other architectures have one entry
        let mut found = vec![Self::Generic];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vnni");
            if avx2 {
                found.push(Self::Avx2);
            }
            if avx512 {
                found.push(Self::Avx512Vnni);
            }
        }
        found
    }

    /// The best that this machine has.
    pub fn best() -> Self {
        Self::available().last().copied().unwrap_or(Self::Generic)
    }

    /// For logs: `avx512-vnni`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Avx2 => "avx2",
            Self::Avx512Vnni => "avx512-vnni",
        }
    }
}

/// The operations that kernels are made of.
///
/// # Safety
/// Every method needs the instruction set that the type stands for, and pointers must be good for the number
/// of elements that the method names (16 floats, 16 halves, 64 bytes, or `n`). No alignment is needed.
pub(crate) trait Simd: Copy + 'static {
    /// 16 floats.
    type F: Copy;
    /// 16 integers.
    type I: Copy;
    /// 64 bytes.
    type B: Copy;
    /// Rows of activations that a product keeps in registers.
    const ROWS: usize;
    /// What [`Self::dot_signed`] adds for each unit of the second operand's sum: 128 where it works on
    /// `a + 128`, otherwise 0.
    const SIGNED_OFFSET: i32;

    unsafe fn splat(x: f32) -> Self::F;
    unsafe fn load(p: *const f32) -> Self::F;
    /// The first `n` floats, zeros behind.
    unsafe fn load_n(p: *const f32, n: usize) -> Self::F;
    unsafe fn store(p: *mut f32, x: Self::F);
    unsafe fn store_n(p: *mut f32, x: Self::F, n: usize);
    unsafe fn load_f16(p: *const u16) -> Self::F;
    unsafe fn load_bf16(p: *const u16) -> Self::F;
    unsafe fn add(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn div(a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`.
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn min(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn sqrt(a: Self::F) -> Self::F;
    /// Nearest integer, halves to even.
    unsafe fn round(a: Self::F) -> Self::F;
    /// `2^n` for integral `n` in -126 ..= 127.
    unsafe fn pow2(n: Self::F) -> Self::F;
    /// Magnitude of `a` with the sign of `b`.
    unsafe fn copysign(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn to_array(a: Self::F) -> [f32; LANES];
    /// Nearest integers of `a`, which must lie in -128 ..= 127, as 16 bytes.
    unsafe fn store_i8(p: *mut i8, a: Self::F);

    unsafe fn splat_i(x: i32) -> Self::I;
    unsafe fn add_i(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn mul_i(a: Self::I, b: Self::I) -> Self::I;
    /// 16 unsigned bytes as integers.
    unsafe fn load_u8(p: *const u8) -> Self::I;
    /// 16 signed bytes as integers.
    unsafe fn load_i8(p: *const u8) -> Self::I;
    unsafe fn to_f(a: Self::I) -> Self::F;

    unsafe fn load_b(p: *const u8) -> Self::B;
    /// The four bytes at `p` repeated.
    unsafe fn splat_4(p: *const i8) -> Self::B;
    /// `a & 0x0f`.
    unsafe fn low_nibbles(a: Self::B) -> Self::B;
    /// `a >> 4`.
    unsafe fn high_nibbles(a: Self::B) -> Self::B;
    /// `a | (((bits >> SHIFT) & mask) << LEFT)` for each byte: adds the bit planes of 5- and 6-bit types.
    unsafe fn or_bits<const SHIFT: u32, const LEFT: u32>(a: Self::B, bits: Self::B, mask: u8) -> Self::B;
    /// `acc + sum of four products u * s` in each lane, `u` unsigned below 64 and `s` signed.
    unsafe fn dot(acc: Self::I, u: Self::B, s: Self::B) -> Self::I;
    /// `acc + sum of four products w * a` in each lane, both signed, plus [`Self::SIGNED_OFFSET`] times the sum of the
    /// lane's four bytes of `a`.
    unsafe fn dot_signed(acc: Self::I, w: Self::B, a: Self::B) -> Self::I;

    /// Sum of all lanes: pairs at distance 8, 4, 2, 1.
    #[inline(always)]
    unsafe fn sum(a: Self::F) -> f32 {
        // SAFETY: the caller's promise.
        let mut v = unsafe { Self::to_array(a) };
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                v[i] += v[i + half];
            }
        }
        v[0]
    }

    /// Largest lane.
    #[inline(always)]
    unsafe fn max_lane(a: Self::F) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { Self::to_array(a) }.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }

    #[inline(always)]
    unsafe fn zero() -> Self::F {
        // SAFETY: the caller's promise.
        unsafe { Self::splat(0.0) }
    }

    #[inline(always)]
    unsafe fn abs(a: Self::F) -> Self::F {
        // SAFETY: the caller's promise.
        unsafe { Self::copysign(a, Self::splat(1.0)) }
    }
}

/// Code written once over [`Simd`]: the arguments are the fields, [`dispatch`] compiles it for each set.
pub(crate) trait Kernel {
    /// What it gives.
    type Out;

    /// The code; implementations are `#[inline(always)]` so that it takes on the features of [`dispatch`].
    ///
    /// # Safety
    /// The instruction set of `S` is there, and the pointers among the fields are good for what the kernel's
    /// comment says.
    unsafe fn run<S: Simd>(self) -> Self::Out;
}

/// Runs a kernel compiled for `set`.
///
/// # Safety
/// The kernel's pointers are good for what its comment says. (The instructions are there: an [`InstructionSet`]
/// beyond generic is only made by detection.)
#[inline]
pub(crate) unsafe fn dispatch<K: Kernel>(set: InstructionSet, kernel: K) -> K::Out {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
    unsafe fn avx512<K: Kernel>(kernel: K) -> K::Out {
        // SAFETY: the caller's promise.
        unsafe { kernel.run::<Avx512>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn avx2<K: Kernel>(kernel: K) -> K::Out {
        // SAFETY: the caller's promise.
        unsafe { kernel.run::<Avx2>() }
    }
    // SAFETY: the caller's promise.
    unsafe {
        match set {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512Vnni => avx512(kernel),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => avx2(kernel),
            _ => kernel.run::<Generic>(),
        }
    }
}
