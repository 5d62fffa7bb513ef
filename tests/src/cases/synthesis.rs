//! What speech synthesis adds: transposed convolutions, norms over the rows, snakes, repeated rows.

use repartee_engine::formats::TensorType;
use repartee_engine::graph::{TransposedShape, UnaryOp};

use crate::case::{Case, Maker};
use crate::compare::Tolerance;

const MOVED: Tolerance = Tolerance::EXACT;
const SNAKE: Tolerance = Tolerance::new(4e-6, 4e-6, "a sine in f32, squared, over an alpha of at least 1/2");
const NORM: Tolerance = Tolerance::new(1e-5, 2e-5, "means over up to 300 rows and a division in f32");

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    conv_transpose(&mut cases);
    affine(&mut cases);
    instance_norm(&mut cases);
    snake(&mut cases);
    repeat_rows(&mut cases);
    cases
}

fn conv_transpose(cases: &mut Vec<Case>) {
    let geometries = [
        ("plain", TransposedShape::new(4, 2)),
        ("one tap", TransposedShape::new(1, 1)),
        ("gaps", TransposedShape::new(2, 5)),
        ("stride 1", TransposedShape { trim_left: 1, trim_right: 1, ..TransposedShape::new(3, 1) }),
        ("times 10", TransposedShape { trim_left: 5, trim_right: 5, ..TransposedShape::new(20, 10) }),
        ("odd phases", TransposedShape { trim_left: 2, ..TransposedShape::new(7, 3) }),
        ("output padding", TransposedShape { trim_left: 1, ..TransposedShape::new(3, 2) }),
        ("wide trim", TransposedShape { trim_left: 9, trim_right: 4, ..TransposedShape::new(16, 4) }),
    ];
    let types = [TensorType::F32, TensorType::F16, TensorType::BF16];
    for (i, (name, shape)) in geometries.into_iter().enumerate() {
        for (channels, out, groups) in [(1, 5, 1), (8, 3, 1), (33, 18, 1), (16, 1, 1), (6, 6, 6)] {
            let ty = types[(i + channels) % 3];
            let shape = TransposedShape { groups, ..shape };
            let k = (channels / groups * shape.taps.div_ceil(shape.stride)).max(4);
            let absolute = 4e-7 * (k as f32).sqrt();
            let tolerance = Tolerance::new(absolute, 4e-6, "rounding of a sum of products in f32");
            let name = format!("conv_transpose1d.{ty} {name} {channels} to {out} in {groups}");
            let mut m = Maker::new(name, tolerance);
            m.weight("w", ty, &[channels, out / groups, shape.taps], 1.0);
            m.weight("b", TensorType::F32, &[out], 1.0);
            let n = m.g.symbol("n", 40);
            let x = m.input(n, channels, channels == 8);
            let y = m.g.conv_transpose1d(x, "w", (channels % 2 == 1).then_some("b"), out, shape);
            m.output(y);
            let least = (1..).find(|&n| shape.out_rows(n.into()).and_then(|d| d.as_constant()).is_some());
            let least = least.unwrap_or(1);
            cases.push(m.runs(&[&[40], &[13], &[least], &[least + 1], &[22]]));
        }
    }
}

/// 8-bit weights whose first dimension, which scales belong to, is that of the inputs.
fn affine(cases: &mut Vec<Case>) {
    for (ty, by_row, groups) in
        [(TensorType::I8, true, 1), (TensorType::U8, false, 1), (TensorType::U8, true, 6)]
    {
        let shape = TransposedShape { trim_left: 1, trim_right: 1, groups, ..TransposedShape::new(6, 3) };
        let name = format!("conv_transpose1d.{ty} with scales, {by_row}, in {groups}");
        let mut m = Maker::new(name, Tolerance::new(2e-6, 4e-6, "rounding of a sum of products in f32"));
        m.affine("w", ty, &[6, 6 / groups, 6], 1.0, by_row);
        m.weight("b", TensorType::F32, &[6], 1.0);
        let n = m.g.symbol("n", 40);
        let x = m.input(n, 6, false);
        let y = m.g.conv_transpose1d(x, "w", Some("b"), 6, shape);
        m.output(y);
        cases.push(m.runs(&[&[40], &[1], &[7]]));
    }
}

fn instance_norm(cases: &mut Vec<Case>) {
    let lengths: &[&[usize]] = &[&[300], &[5], &[128], &[2], &[0], &[129], &[257]];
    for (i, cols) in [1, 7, 64, 97].into_iter().enumerate() {
        for then in ["alone", "leaky", "snake", "both"] {
            let mut m = Maker::new(format!("instance_norm {cols} {then}"), NORM);
            m.bytes("a", TensorType::F32, &[1, cols, 1], alphas(cols));
            let n = m.g.symbol("n", 300);
            let x = m.input(n, cols, i % 2 == 1);
            let gain = m.input(1, cols, false);
            let bias = m.input(1, 2 * cols, false);
            let bias = m.g.columns(bias, cols, cols);
            let y = m.g.instance_norm(x, gain, bias, 1e-5);
            match then {
                "leaky" => {
                    let y = m.g.unary(y, UnaryOp::LeakyRelu(0.2));
                    m.output(y);
                }
                "snake" => {
                    let y = m.g.snake(y, "a");
                    m.output(y);
                }
                "both" => {
                    // Two that use the norm's result: nothing may be joined.
                    let z = m.g.snake(y, "a");
                    let y = m.g.add(y, z);
                    m.output(y);
                }
                _ => m.output(y),
            }
            cases.push(m.runs(lengths));
        }
    }
    // Far from zero the variance must keep its digits.
    let mut m = Maker::new("instance_norm far from zero", Tolerance::new(2e-3, 2e-3, "64 less 64 in f32"));
    let n = m.g.symbol("n", 300);
    let x = m.input(n, 5, false);
    let x = m.g.unary(x, UnaryOp::Affine { scale: 0.25, offset: 64.0 });
    let gain = m.input(1, 5, false);
    let bias = m.input(1, 5, false);
    let y = m.g.instance_norm(x, gain, bias, 1e-5);
    m.output(y);
    cases.push(m.runs(&[&[300], &[140], &[3]]));
}

/// Numbers from 1/2 to 2 1/2.
fn alphas(n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| (0.5 + (i * 7 % 17) as f32 / 8.0).to_le_bytes()).collect()
}

fn snake(cases: &mut Vec<Case>) {
    for cols in [1, 9, 64] {
        let mut m = Maker::new(format!("snake {cols}"), SNAKE);
        m.top = 6.0;
        m.bytes("a", TensorType::F32, &[cols], alphas(cols));
        let n = m.g.symbol("n", 9);
        let x = m.input(n, cols, cols == 9);
        let y = m.g.snake(x, "a");
        m.output(y);
        cases.push(m.runs(&[&[5], &[1], &[0], &[9]]));
    }
}

fn repeat_rows(cases: &mut Vec<Case>) {
    for times in [1, 2, 5] {
        let mut m = Maker::new(format!("repeat_rows {times}"), MOVED);
        let n = m.g.symbol("n", 9);
        let x = m.input(n, 4, times == 2);
        let y = m.g.repeat_rows(x, times);
        m.output(y);
        cases.push(m.runs(&[&[5], &[1], &[0], &[9]]));
    }
}
