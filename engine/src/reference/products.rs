//! Products with weights: linear layers, convolutions, recurrences.

use super::{Context, Data};
use crate::graph::{ConvShape, Direction, Node, Op, Precision, StateId, TransposedShape, Value, Weight};

/// The activations that a product really uses.
fn activations(x: &[f32], cols: usize, precision: Precision) -> Vec<f64> {
    match precision {
        Precision::F32 => x.iter().map(|&v| f64::from(v)).collect(),
        Precision::Int8 => x.chunks_exact(cols).flat_map(|row| row.chunks(32).flat_map(quantized)).collect(),
    }
}

/// One block of activations as 8-bit integers times their scale.
fn quantized(block: &[f32]) -> Vec<f64> {
    let (q, scale) = quantize_block(block);
    q.iter().map(|&q| f64::from(q) * f64::from(scale)).collect()
}

/// The integers and the scale of a block, as [`Precision::Int8`] defines them.
pub(crate) fn quantize_block(block: &[f32]) -> (Vec<i8>, f32) {
    let top = block.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
    let factor = if top > 0.0 { 127.0 / top } else { 0.0 };
    (block.iter().map(|v| (v * factor).round_ties_even() as i8).collect(), top / 127.0)
}

fn dot(a: &[f64], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, &b)| a * f64::from(b)).sum()
}

pub(super) fn linear(
    c: &Context<'_>,
    x: Value,
    weight: Weight,
    bias: Option<Weight>,
    precision: Precision,
) -> Data {
    let cols = c.cols(x);
    let (w, bias) = (c.weight(weight), c.bias(bias));
    let a = activations(c.f(x), cols, precision);
    let mut out = Vec::new();
    for row in a.chunks_exact(cols) {
        out.extend(
            w.chunks_exact(cols)
                .enumerate()
                .map(|(m, w)| (dot(row, w) + bias.map_or(0.0, |b| f64::from(b[m]))) as f32),
        );
    }
    Data::F(out)
}

/// Cross-correlation over `x` whose row `i` stands at `first + i`; rows outside are zero.
fn correlate(
    x: &[f32],
    channels: usize,
    first: i64,
    w: &[f32],
    bias: Option<&[f32]>,
    shape: &ConvShape,
    out_rows: usize,
) -> Vec<f32> {
    let rows = x.len() / channels;
    let per_group = channels / shape.groups;
    let span = per_group * shape.taps;
    let out_channels = w.len() / span;
    let mut out = Vec::with_capacity(out_rows * out_channels);
    for t in 0..out_rows {
        for m in 0..out_channels {
            let group = m * shape.groups / out_channels;
            let mut sum = bias.map_or(0.0, |b| f64::from(b[m]));
            for tap in 0..shape.taps {
                let at = (t * shape.stride + tap * shape.dilation) as i64 - first;
                let Some(at) = usize::try_from(at).ok().filter(|&at| at < rows) else { continue };
                for ch in 0..per_group {
                    let v = x[at * channels + group * per_group + ch];
                    sum += f64::from(v) * f64::from(w[m * span + tap * per_group + ch]);
                }
            }
            out.push(sum as f32);
        }
    }
    out
}

pub(super) fn conv1d(
    c: &Context<'_>,
    x: Value,
    weight: Weight,
    bias: Option<Weight>,
    shape: &ConvShape,
    out_rows: usize,
) -> Data {
    let first = shape.pad_left as i64;
    Data::F(correlate(c.f(x), c.cols(x), first, c.weight(weight), c.bias(bias), shape, out_rows))
}

pub(super) fn conv_transpose1d(
    c: &Context<'_>,
    x: Value,
    weight: Weight,
    bias: Option<Weight>,
    shape: &TransposedShape,
    out_rows: usize,
) -> Data {
    let (rows, channels) = (c.rows(x), c.cols(x));
    let (x, w) = (c.f(x), c.weight(weight));
    // One row of weights for each output: tap by tap, all channels or the output's own.
    let per_group = channels / shape.groups;
    let span = per_group * shape.taps;
    let mut out = Vec::new();
    for at in 0..out_rows {
        for (m, w) in w.chunks_exact(span).enumerate() {
            let mut sum = c.bias(bias).map_or(0.0, |b| f64::from(b[m]));
            for t in 0..rows {
                let Some(tap) = (at + shape.trim_left).checked_sub(t * shape.stride) else { break };
                if tap < shape.taps {
                    let first = if shape.groups == 1 { 0 } else { m };
                    let x = &x[t * channels + first..][..per_group];
                    let w = &w[tap * per_group..][..per_group];
                    sum += x.iter().zip(w).map(|(&x, &w)| f64::from(x) * f64::from(w)).sum::<f64>();
                }
            }
            out.push(sum as f32);
        }
    }
    Data::F(out)
}

pub(super) fn conv1d_carry(
    c: &mut Context<'_>,
    x: Value,
    weight: Weight,
    bias: Option<Weight>,
    shape: &ConvShape,
    state: StateId,
) -> Data {
    let (cols, rows) = (c.cols(x), c.rows(x));
    let joined = [c.state(state), c.f(x)].concat();
    let out = correlate(&joined, cols, 0, c.weight(weight), c.bias(bias), shape, rows);
    let name = c.spec(state).name.clone();
    let keep = (shape.span() - 1) * cols;
    c.states.insert(name, joined[joined.len() - keep..].to_vec());
    Data::F(out)
}

pub(super) fn lstm(c: &mut Context<'_>, node: &Node) -> Data {
    let Op::Lstm { w_ih, w_hh, b_ih, b_hh, hidden, direction, state } = node.op else {
        return Data::F(Vec::new());
    };
    let x = node.inputs[0];
    let (cols, rows) = (c.cols(x), c.rows(x));
    let held = state.map_or_else(|| vec![0.0; 2 * hidden], |s| c.state(s).to_vec());
    let mut h: Vec<f64> = held[..hidden].iter().map(|&v| f64::from(v)).collect();
    let mut cell: Vec<f64> = held[hidden..].iter().map(|&v| f64::from(v)).collect();
    let mut out = vec![0.0; rows * hidden];
    let sigmoid = |v: f64| 1.0 / (1.0 + (-v).exp());
    for i in 0..rows {
        let t = if direction == Direction::Forward { i } else { rows - 1 - i };
        let row: Vec<f64> = c.f(x)[t * cols..(t + 1) * cols].iter().map(|&v| f64::from(v)).collect();
        let gates: Vec<f64> = (0..4 * hidden)
            .map(|g| {
                dot(&row, &c.weight(w_ih)[g * cols..(g + 1) * cols])
                    + dot(&h, &c.weight(w_hh)[g * hidden..(g + 1) * hidden])
                    + c.bias(b_ih).map_or(0.0, |b| f64::from(b[g]))
                    + c.bias(b_hh).map_or(0.0, |b| f64::from(b[g]))
            })
            .collect();
        for j in 0..hidden {
            let [i, f, g, o] = [0, 1, 2, 3].map(|k| gates[k * hidden + j]);
            cell[j] = sigmoid(f) * cell[j] + sigmoid(i) * g.tanh();
            h[j] = sigmoid(o) * cell[j].tanh();
            out[t * hidden + j] = h[j] as f32;
        }
    }
    if let Some(s) = state {
        let name = c.spec(s).name.clone();
        c.states.insert(name, h.iter().chain(&cell).map(|&v| v as f32).collect());
    }
    Data::F(out)
}
