//! Shapes for which a backend may have other kernels: many rows and outputs, long sums, many keys, long rows.

use repartee_engine::formats::TensorType;
use repartee_engine::graph::{
    CacheStart, ConvShape, Direction, KeyValues, Precision, StateType, TransposedShape,
};

use crate::case::{Case, Maker};
use crate::compare::Tolerance;

/// On either side of where rows become many, and of the edge of a large tile.
const LENGTHS: &[&[usize]] = &[&[193], &[47], &[48], &[49], &[5]];
const MOST: usize = 193;

/// A sum of `k` products of activations to 2 and weights to 1.
fn sum(k: usize) -> Tolerance {
    Tolerance::new(
        1e-6 * (k as f32).sqrt(),
        4e-6,
        "rounding of a sum of k products in f32, the worst of 50 000",
    )
}

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    linear(&mut cases);
    few_rows(&mut cases);
    conv(&mut cases);
    conv_transpose(&mut cases);
    attention(&mut cases);
    cases.extend([long_rows(), wide_directions()]);
    cases
}

fn linear(cases: &mut Vec<Case>) {
    for (ty, k, out) in [
        (TensorType::F32, 530, 65),
        (TensorType::F16, 16, 130),
        (TensorType::BF16, 99, 64),
        (TensorType::I8, 33, 70),
    ] {
        let tolerance =
            if ty == TensorType::I8 { Tolerance::new(6e-5, 1e-5, "integers to 20") } else { sum(k) };
        let mut m = Maker::new(format!("large.linear {ty} {k} to {out}"), tolerance);
        m.weight("w", ty, &[out, k], 1.0);
        m.weight("b", TensorType::F32, &[out], 1.0);
        let n = m.g.symbol("n", MOST);
        let x = m.input(n, k, k == 99);
        let other = m.input(n, out, false);
        let product = m.g.linear(x, "w", (k != 16).then_some("b"), out, Precision::F32);
        let y = if k == 530 { m.g.add(product, other) } else { product };
        m.output(y);
        cases.push(m.runs(LENGTHS));
    }
}

/// Outputs enough for several to be made with the same activations.
fn few_rows(cases: &mut Vec<Case>) {
    let types = TensorType::ALL.into_iter().filter(|ty| ty.block_len() > 1);
    for (i, ty) in types.enumerate() {
        let (k, out) = if i % 2 == 0 { (1024, 1061) } else { (5120, 210) };
        let tolerance = Tolerance::new(2e-3, 1e-4, "sums of up to 5120 products of terms that cancel");
        let mut m = Maker::new(format!("large.few rows of {ty}"), tolerance);
        m.weight("w", ty, &[out, k], 0.3);
        m.weight("b", TensorType::F32, &[out], 1.0);
        let n = m.g.symbol("n", 5);
        let x = m.input(n, k, false);
        let y = m.g.linear(x, "w", Some("b"), out, Precision::Int8);
        m.output(y);
        cases.push(m.runs(&[&[1], &[3], &[5]]));
    }
}

fn conv(cases: &mut Vec<Case>) {
    let geometries = [
        ("same", ConvShape { pad_left: 2, pad_right: 2, ..ConvShape::new(5) }, 20, 65),
        ("stride 2", ConvShape { stride: 2, pad_left: 1, pad_right: 1, ..ConvShape::new(3) }, 64, 33),
        ("dilation 3", ConvShape { dilation: 3, pad_left: 9, pad_right: 9, ..ConvShape::new(7) }, 48, 128),
    ];
    for (name, shape, channels, out) in geometries {
        let k = channels * shape.taps;
        let mut m = Maker::new(format!("large.conv1d {name}, {channels} to {out}"), sum(k));
        m.weight("w", TensorType::F32, &[out, channels, shape.taps], 1.0);
        m.weight("b", TensorType::F32, &[out], 1.0);
        let n = m.g.symbol("n", 2 * MOST);
        let x = m.input(n, channels, channels == 48);
        let y = m.g.conv1d(x, "w", Some("b"), out, shape);
        m.output(y);
        cases.push(m.runs(&[&[2 * MOST], &[95], &[96], &[48], &[40]]));
    }
}

fn conv_transpose(cases: &mut Vec<Case>) {
    let geometries = [
        ("times 10", TransposedShape { trim_left: 5, trim_right: 5, ..TransposedShape::new(20, 10) }),
        ("gaps", TransposedShape { trim_left: 1, ..TransposedShape::new(2, 5) }),
        ("odd phases", TransposedShape { trim_left: 2, ..TransposedShape::new(7, 3) }),
        ("wide trim", TransposedShape { trim_left: 9, trim_right: 4, ..TransposedShape::new(16, 4) }),
    ];
    for (i, (name, shape)) in geometries.into_iter().enumerate() {
        let (channels, out) = if i % 2 == 0 { (24, 70) } else { (37, 33) };
        let k = channels * shape.taps.div_ceil(shape.stride);
        let mut m = Maker::new(format!("large.conv_transpose1d {name}, {channels} to {out}"), sum(k));
        m.weight("w", TensorType::F32, &[channels, out, shape.taps], 1.0);
        m.weight("b", TensorType::F32, &[out], 1.0);
        let n = m.g.symbol("n", 130);
        let x = m.input(n, channels, i == 1);
        let y = m.g.conv_transpose1d(x, "w", (i > 0).then_some("b"), out, shape);
        m.output(y);
        cases.push(m.runs(&[&[130], &[64], &[63], &[65], &[5]]));
    }
}

/// More keys than a group takes at once.
fn attention(cases: &mut Vec<Case>) {
    const ATTENTION: Tolerance = Tolerance::new(2e-5, 1e-5, "sums over up to 700 keys in f32");
    for (heads, kv_heads, head_dim) in [(4, 2, 64), (2, 1, 96), (3, 3, 20), (2, 2, 8)] {
        for ty in [StateType::F32, StateType::F16] {
            let name = format!("large.attention {heads} over {kv_heads} of {head_dim}, {ty:?}");
            let mut m = Maker::new(name, ATTENTION);
            let keys = m.g.cache("k", 700, kv_heads, head_dim, ty);
            let values = m.g.cache("v", 700, kv_heads, head_dim, ty);
            let rows = m.slot_rows(1, 300);
            let q = m.input(rows, heads * head_dim, false);
            let k = m.input(rows, kv_heads * head_dim, false);
            let v = m.input(rows, kv_heads * head_dim, false);
            m.g.cache_write(k, keys, CacheStart::Position);
            m.g.cache_write(v, values, CacheStart::Position);
            let source = KeyValues::Cache { keys, values };
            let y = m.g.attention_cached(q, heads, kv_heads, 1.0 / (head_dim as f32).sqrt(), source);
            m.g.advance(q);
            m.output(y);
            cases.push(m.runs(&[&[255], &[1], &[1], &[300], &[3]]));
        }
    }
}

/// A norm of more columns than a group's threads take at once, quantised where it is made.
fn long_rows() -> Case {
    let rounded =
        Tolerance::new(8e-3, 1e-3, "a number of the rows may be rounded to the next of 255 integers");
    let mut m = Maker::new("large.norm of 2080 columns", rounded);
    m.weight("gain", TensorType::F32, &[2080], 1.0);
    m.weight("w", TensorType::Q8_0, &[33, 2080], 0.1);
    let n = m.g.symbol("n", 3);
    let x = m.input(n, 2080, false);
    let normed = m.g.rms_norm(x, "gain", 1e-5, 2080);
    let y = m.g.linear(normed, "w", None, 33, Precision::Int8);
    m.output(y);
    m.runs(&[&[3], &[1], &[0]])
}

/// Both directions of a sequence at once, with more hidden columns than a group's threads.
fn wide_directions() -> Case {
    let mut m = Maker::new("large.lstm of 300, both directions", Tolerance::new(3e-5, 1e-5, "gates in f32"));
    for part in ["f", "b"] {
        m.weight(&format!("{part}.ih"), TensorType::F32, &[1200, 7], 0.3);
        m.weight(&format!("{part}.hh"), TensorType::F32, &[1200, 300], 0.06);
        m.weight(&format!("{part}.bi"), TensorType::F32, &[1200], 0.3);
        m.weight(&format!("{part}.bh"), TensorType::F32, &[1200], 0.3);
    }
    let n = m.g.symbol("n", 140);
    let x = m.input(n, 7, false);
    let f = m.g.lstm(x, ["f.ih", "f.hh", "f.bi", "f.bh"], 300, Direction::Forward, None);
    let b = m.g.lstm(x, ["b.ih", "b.hh", "b.bi", "b.bh"], 300, Direction::Backward, None);
    let both = m.g.concat_columns(&[f, b]);
    m.output(both);
    m.runs(&[&[140], &[1], &[0], &[5]])
}
