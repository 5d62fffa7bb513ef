//! The kernels, written once over [`Simd`](super::simd::Simd). Each has a plain twin in `reference/`.

pub(crate) mod attention;
pub(crate) mod columns;
pub(crate) mod float_product;
pub(crate) mod int_product;
pub(crate) mod lstm;
pub(crate) mod rows;
