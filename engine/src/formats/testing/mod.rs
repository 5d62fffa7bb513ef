//! Test support: writers of small files in the published layouts, and plain quantizers.
//!
//! For tests, benches and fuzz seeds only; nothing in the product calls this. The quantizers choose scales
//! simply (from the extremes of a group), so they are valid and close, not the best that a type can do.

mod quantize;

pub use quantize::quantize;
