//! Linear layers and convolutions, with every weight type and both precisions.

use repartee_engine::formats::TensorType;
use repartee_engine::graph::{ConvShape, Precision};

use crate::case::{Case, Maker};
use crate::compare::Tolerance;

const LENGTHS: &[&[usize]] = &[&[5], &[1], &[0], &[9], &[3]];

/// Activations to 2 and weights to 1 (integers to 20): a sum of `k` products in f32, in any order. K blocks have
/// larger terms that cancel: a kernel may take the minimums' part off at the end.
fn sum(k: usize, ty: TensorType) -> Tolerance {
    let top = match ty {
        _ if integer(ty) => 20.0,
        TensorType::Q4K | TensorType::Q5K | TensorType::Q6K => 4.0,
        _ => 1.0,
    };
    let absolute = 4e-7 * (k.max(4) as f32).sqrt() * top;
    Tolerance::new(absolute, 4e-6, "rounding of a sum of k products in f32 grows as the square root of k")
}

fn integer(ty: TensorType) -> bool {
    matches!(ty, TensorType::I8 | TensorType::U8 | TensorType::I32 | TensorType::I64)
}

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    linear(&mut cases);
    conv(&mut cases);
    conv_carry(&mut cases);
    affine(&mut cases);
    cases
}

/// 8-bit weights with scales and zero points: in products of few and of many rows, in convolutions near and apart.
fn affine(cases: &mut Vec<Case>) {
    let kinds =
        [(TensorType::I8, true), (TensorType::U8, false), (TensorType::I8, false), (TensorType::U8, true)];
    let kind = |ty, by_row| format!("{ty} with a scale {}", if by_row { "a row" } else { "in all" });
    for (ty, by_row) in kinds {
        for precision in [Precision::F32, Precision::Int8] {
            for (k, out) in [(33, 1), (64, 17), (288, 70)] {
                if precision == Precision::Int8 && k % 32 != 0 {
                    continue;
                }
                let name = format!("linear.{precision:?}.{} {k} to {out}", kind(ty, by_row));
                let mut m = Maker::new(name, sum(k, TensorType::F32));
                m.affine("w", ty, &[out, k], 0.5, by_row);
                m.weight("b", TensorType::F32, &[out], 1.0);
                let n = m.g.symbol("n", 40);
                let x = m.input(n, k, out == 17);
                let y = m.g.linear(x, "w", (out > 1).then_some("b"), out, precision);
                m.output(y);
                cases.push(m.runs(&[&[40], &[1], &[0], &[9], &[16], &[3]]));
            }
        }
        let geometries = [
            ConvShape { pad_left: 1, pad_right: 1, ..ConvShape::new(3) },
            ConvShape { dilation: 3, pad_left: 3, pad_right: 3, ..ConvShape::new(3) },
            ConvShape { stride: 2, pad_left: 1, pad_right: 1, ..ConvShape::new(3) },
        ];
        for (i, shape) in geometries.into_iter().enumerate() {
            for (channels, out, groups) in [(33, 18, 1), (97, 40, 1), (6, 6, 6)] {
                let shape = ConvShape { groups, ..shape };
                let name = format!("conv1d.{} {i}: {channels} to {out} in {groups}", kind(ty, by_row));
                let mut m = Maker::new(name, sum(channels / groups * 3, TensorType::F32));
                m.affine("w", ty, &[out, channels / groups, 3], 0.5, by_row);
                m.weight("b", TensorType::F32, &[out], 1.0);
                let n = m.g.symbol("n", 70);
                let x = m.input(n, channels, i == 1);
                let y = m.g.conv1d(x, "w", Some("b"), out, shape);
                m.output(y);
                cases.push(m.runs(&[&[70], &[9], &[2]]));
            }
        }
        let shape = ConvShape::new(4);
        let mut m = Maker::new(format!("conv1d_carry.{}", kind(ty, by_row)), sum(24, TensorType::F32));
        m.affine("w", ty, &[9, 6, 4], 0.5, by_row);
        m.weight("b", TensorType::F32, &[9], 1.0);
        let n = m.g.symbol("n", 20);
        let x = m.input(n, 6, false);
        let y = m.g.conv1d_carry(x, "w", Some("b"), 9, shape);
        m.output(y);
        cases.push(m.runs(&[&[20], &[1], &[0], &[17]]));
    }
}

fn linear(cases: &mut Vec<Case>) {
    for precision in [Precision::F32, Precision::Int8] {
        for ty in TensorType::ALL {
            let block = ty.block_len().max(if precision == Precision::Int8 { 32 } else { 1 });
            let few = if block == 1 { 33 } else { block };
            for (i, (k, out)) in
                [(few, 1), (3 * block.max(20), 17), (2 * block.max(48), 70)].into_iter().enumerate()
            {
                let name = format!("linear.{precision:?}.{ty} {k} to {out}");
                let mut m = Maker::new(name, sum(k, ty));
                m.weight("w", ty, &[out, k], 1.0);
                m.weight("b", TensorType::F32, &[out], 1.0);
                let n = m.g.symbol("n", 9);
                let x = m.input(n, k, i == 1);
                let y = m.g.linear(x, "w", (i > 0).then_some("b"), out, precision);
                m.output(y);
                cases.push(m.runs(LENGTHS));
            }
        }
    }
    // Many rows at once take another path through most kernels than a few.
    for precision in [Precision::F32, Precision::Int8] {
        for ty in [
            TensorType::F32,
            TensorType::F16,
            TensorType::Q8_0,
            TensorType::Q4_1,
            TensorType::Q4K,
            TensorType::Q6K,
        ] {
            let k = if ty.block_len() == 256 { 256 } else { 96 };
            let mut m = Maker::new(format!("linear.{precision:?}.{ty} many rows"), sum(k, ty));
            m.weight("w", ty, &[67, k], 1.0);
            let n = m.g.symbol("n", 150);
            let x = m.input(n, k, true);
            let y = m.g.linear(x, "w", None, 67, precision);
            m.output(y);
            cases.push(m.runs(&[&[150], &[16], &[65], &[2]]));
        }
    }
    // A block of zeros has no scale; a bias in another type; one weight for two products.
    let mut m = Maker::new("linear.Int8.Q8_0 zeros", sum(64, TensorType::Q8_0));
    m.weight("w", TensorType::Q8_0, &[5, 64], 1.0);
    m.weight("b", TensorType::F16, &[5], 1.0);
    let x = m.input(2, 64, false);
    let y = m.g.linear(x, "w", Some("b"), 5, Precision::Int8);
    let z = m.g.linear(x, "w", None, 5, Precision::F32);
    m.output(y);
    m.output(z);
    let mut half = m.r.floats(128, 1.0);
    half[32..64].fill(0.0);
    half[64..96].fill(0.0);
    cases.push(m.build().run_on(&[], vec![crate::case::Data::F32(half)]));
}

fn conv(cases: &mut Vec<Case>) {
    let geometries = [
        ("plain", ConvShape::new(3)),
        ("one tap", ConvShape::new(1)),
        ("same", ConvShape { pad_left: 2, pad_right: 2, ..ConvShape::new(5) }),
        ("stride 2", ConvShape { stride: 2, pad_left: 1, pad_right: 1, ..ConvShape::new(3) }),
        ("stride 4 of 3", ConvShape { stride: 4, ..ConvShape::new(3) }),
        ("dilation 3", ConvShape { dilation: 3, pad_left: 3, pad_right: 3, ..ConvShape::new(3) }),
        ("all of it", ConvShape { dilation: 2, stride: 3, pad_left: 5, pad_right: 1, ..ConvShape::new(4) }),
        ("wide padding", ConvShape { pad_left: 9, pad_right: 7, ..ConvShape::new(2) }),
    ];
    let types = [TensorType::F32, TensorType::F16, TensorType::BF16];
    for (i, (name, shape)) in geometries.into_iter().enumerate() {
        for (channels, out, groups) in [(1, 5, 1), (8, 3, 1), (33, 18, 1), (6, 6, 6), (5, 10, 5)] {
            let ty = types[(i + channels) % 3];
            let shape = ConvShape { groups, ..shape };
            let k = channels / groups * shape.taps;
            let mut m = Maker::new(format!("conv1d.{ty} {name} {channels} to {out} in {groups}"), sum(k, ty));
            m.weight("w", ty, &[out, channels / groups, shape.taps], 1.0);
            m.weight("b", TensorType::F32, &[out], 1.0);
            let n = m.g.symbol("n", 40);
            let x = m.input(n, channels, channels == 8);
            let y = m.g.conv1d(x, "w", (channels % 2 == 1).then_some("b"), out, shape);
            m.output(y);
            let least = shape.span().saturating_sub(shape.pad_left + shape.pad_right);
            let case = m.runs(&[&[40], &[13], &[22], &[least], &[least + 1]]);
            cases.push(if least > shape.stride { case.refused(&[0]) } else { case });
        }
    }
    // The short-time transform of the voice detector is a convolution with long kernels.
    let shape = ConvShape { stride: 16, ..ConvShape::new(64) };
    let mut m = Maker::new("conv1d.F32 frames", sum(64, TensorType::F32));
    m.weight("w", TensorType::F32, &[66, 1, 64], 1.0);
    let n = m.g.symbol("n", 200);
    let x = m.input(n, 1, false);
    let y = m.g.conv1d(x, "w", None, 66, shape);
    m.output(y);
    cases.push(m.runs(&[&[200], &[64], &[79], &[80]]));
}

fn conv_carry(cases: &mut Vec<Case>) {
    for (taps, dilation, groups) in [(1, 1, 1), (2, 1, 1), (3, 1, 6), (4, 1, 1), (3, 4, 1), (7, 2, 6)] {
        for ty in [TensorType::F32, TensorType::F16] {
            let shape = ConvShape { dilation, groups, ..ConvShape::new(taps) };
            let (channels, out) = (6, if groups == 6 { 6 } else { 9 });
            let k = channels / groups * taps;
            let mut m = Maker::new(format!("conv1d_carry.{ty} {taps} by {dilation} in {groups}"), sum(k, ty));
            m.weight("w", ty, &[out, channels / groups, taps], 1.0);
            m.weight("b", TensorType::F32, &[out], 1.0);
            let n = m.g.symbol("n", 16);
            let x = m.input(n, channels, groups == 6);
            let y = m.g.conv1d_carry(x, "w", Some("b"), out, shape);
            m.output(y);
            // Runs shorter and longer than the carry, and empty ones; a cancelled run leaves the carry.
            let case = m.runs(&[&[1], &[16], &[0], &[2], &[1], &[1]]).cancelled(&[5]).run(&[7]).save(1);
            let case = case.run(&[3]).quiet(&[2]).run(&[1]).restore(1, true).run(&[3]).restore(2, false);
            cases.push(case.run(&[4]).reset().run(&[3]));
        }
    }
}
