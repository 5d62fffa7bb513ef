//! Integer products must be equal bit for bit.
//!
//! Every scale is exactly one (the weights' by their bytes, the activations' by a largest magnitude of 127 in
//! each block), so each result is an integer below 2^24: any order of f32 sums gives it exactly, and a kernel
//! that loses one bit of one product is caught.

use half::f16;
use repartee_engine::formats::TensorType;
use repartee_engine::graph::Precision;

use crate::case::{Case, Data, Maker};
use crate::compare::Tolerance;
use crate::random::Random;

const EXACT: Tolerance = Tolerance::new(0.0, 0.0, "integers below 2^24 are exact in f32");

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let types = [
        TensorType::Q4_0,
        TensorType::Q4_1,
        TensorType::Q5_0,
        TensorType::Q5_1,
        TensorType::Q8_0,
        TensorType::Q4K,
        TensorType::Q5K,
        TensorType::Q6K,
        TensorType::I8,
    ];
    let mut cases = Vec::new();
    for ty in types {
        for (k, out, rows) in [(256, 1, 1), (512, 37, 1), (512, 19, 7), (256, 70, 33)] {
            cases.push(one(ty, k, out, rows));
        }
    }
    for ty in [TensorType::Q4_0, TensorType::Q4_1, TensorType::Q5_0, TensorType::Q5_1, TensorType::Q8_0] {
        for (k, out, rows) in [(32, 3, 1), (96, 5, 2), (608, 9, 4)] {
            cases.push(one(ty, k, out, rows));
        }
    }
    cases
}

fn one(ty: TensorType, k: usize, out: usize, rows: usize) -> Case {
    let mut m = Maker::new(format!("exact.{ty} {k} to {out}, {rows} rows"), EXACT);
    let blocks = out * k / ty.block_len();
    let bytes = (0..blocks).flat_map(|_| unit_block(ty, &mut m.r)).collect();
    m.bytes("w", ty, &[out, k], bytes);
    let n = m.g.symbol("n", rows + 2);
    let x = m.input(n, k, rows == 7);
    let y = m.g.linear(x, "w", None, out, Precision::Int8);
    m.output(y);
    let stride = k + if rows == 7 { 5 } else { 0 };
    let skip = if rows == 7 { 3 } else { 0 };
    let mut x = vec![f32::NAN; rows * stride];
    for row in x.chunks_exact_mut(stride) {
        for block in row[skip..skip + k].chunks_exact_mut(32) {
            block.iter_mut().for_each(|v| *v = m.r.between(-127, 127) as f32);
            let at = m.r.below(32);
            block[at] = if m.r.below(2) == 0 { 127.0 } else { -127.0 };
        }
    }
    m.build().run_on(&[rows], vec![Data::F32(x)])
}

/// A random block whose elements are integers: scales are one (or small integers, within K blocks).
fn unit_block(ty: TensorType, r: &mut Random) -> Vec<u8> {
    let mut block = r.bytes(ty.block_bytes());
    let number = |x: f32| f16::from_f32(x).to_le_bytes();
    let mut small = || 1 + r.below(7) as u8;
    match ty {
        TensorType::Q4_0 | TensorType::Q5_0 => block[..2].copy_from_slice(&number(1.0)),
        TensorType::Q8_0 => {
            block[..2].copy_from_slice(&number(1.0));
            // -128 stands in no file, and kernels may rely on that.
            block[2..].iter_mut().filter(|b| **b == 0x80).for_each(|b| *b = 0x81);
        }
        TensorType::I8 => block.iter_mut().filter(|b| **b == 0x80).for_each(|b| *b = 0x81),
        TensorType::Q4_1 | TensorType::Q5_1 => {
            block[..2].copy_from_slice(&number(1.0));
            let minimum = -f32::from(small());
            block[2..4].copy_from_slice(&number(minimum));
        }
        TensorType::Q4K | TensorType::Q5K => {
            block[..2].copy_from_slice(&number(1.0));
            block[2..4].copy_from_slice(&number(1.0));
            for group in 0..4 {
                block[4 + group] = small();
                block[8 + group] = small();
                // Groups 4 to 7: the scale in the low half, the minimum in the high one.
                block[12 + group] = small() | small() << 4;
            }
        }
        TensorType::Q6K => {
            block[208..].copy_from_slice(&number(1.0));
            block[192..208].iter_mut().for_each(|s| {
                *s = {
                    let scale = small() as i8;
                    (if scale > 4 { -scale } else { scale }) as u8
                }
            });
        }
        _ => {}
    }
    block
}

/// The largest sum of magnitudes that a row of `k` such elements can reach.
#[cfg(test)]
fn bound(ty: TensorType, k: usize) -> f64 {
    let mut r = Random::for_name("bound");
    let mut top = 0.0_f32;
    for _ in 0..50 {
        let mut out = vec![0.0; ty.block_len().max(1)];
        if repartee_engine::formats::blocks::dequantize(ty, &unit_block(ty, &mut r), &mut out).is_ok() {
            top = out.iter().fold(top, |t, v| t.max(v.abs()));
        }
    }
    f64::from(top) * 127.0 * k as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use repartee_engine::formats::TensorSource;

    #[test]
    fn elements_are_integers_and_sums_stay_exact() {
        for case in cases() {
            let view = case.weights.tensor("w").unwrap();
            let values = view.to_f32_vec().unwrap();
            assert!(values.iter().all(|v| v.fract() == 0.0), "{}", case.name);
            assert!(bound(view.ty, view.shape[1]) < 16_777_216.0, "{}", case.name);
        }
    }
}
