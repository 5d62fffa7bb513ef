//! Ops that work row by row, number by number, or move rows.

use super::{Context, Data};
use crate::graph::{BinaryOp, CacheStart, PadMode, RopeStyle, UnaryOp, Value, Weight};

pub(super) fn embed(c: &Context<'_>, ids: Value, table: Weight) -> Data {
    let spec = &c.graph.weights[table.index()];
    pick(c.weight(table), spec.rows, spec.cols, c.i(ids))
}

pub(super) fn gather(c: &Context<'_>, x: Value, index: Value) -> Data {
    pick(c.f(x), c.rows(x), c.cols(x), c.i(index))
}

fn pick(table: &[f32], rows: usize, cols: usize, ids: &[i32]) -> Data {
    let mut out = vec![0.0; ids.len() * cols];
    for (row, &id) in out.chunks_exact_mut(cols).zip(ids) {
        if let Some(at) = usize::try_from(id).ok().filter(|&at| at < rows) {
            row.copy_from_slice(&table[at * cols..(at + 1) * cols]);
        }
    }
    Data::F(out)
}

pub(super) fn layer_norm(c: &Context<'_>, x: Value, gain: Weight, bias: Option<Weight>, eps: f32) -> Data {
    let cols = c.cols(x);
    let (gain, bias) = (c.weight(gain), c.bias(bias));
    let mut out = Vec::with_capacity(c.f(x).len());
    for row in c.f(x).chunks_exact(cols) {
        let mean = row.iter().map(|&v| f64::from(v)).sum::<f64>() / cols as f64;
        let var = row.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / cols as f64;
        let inv = 1.0 / (var + f64::from(eps)).sqrt();
        out.extend(row.iter().enumerate().map(|(j, &v)| {
            ((f64::from(v) - mean) * inv * f64::from(gain[j]) + bias.map_or(0.0, |b| f64::from(b[j]))) as f32
        }));
    }
    Data::F(out)
}

pub(super) fn rms_norm(c: &Context<'_>, x: Value, gain: Weight, eps: f32, group: usize) -> Data {
    let gain = c.weight(gain);
    let mut out = Vec::with_capacity(c.f(x).len());
    for part in c.f(x).chunks_exact(group) {
        let mean = part.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / group as f64;
        let inv = 1.0 / (mean + f64::from(eps)).sqrt();
        out.extend(part.iter().zip(gain).map(|(&v, &g)| (f64::from(v) * inv * f64::from(g)) as f32));
    }
    Data::F(out)
}

pub(super) fn instance_norm(c: &Context<'_>, x: Value, gain: Value, bias: Value, eps: f32) -> Data {
    let (rows, cols) = (c.rows(x), c.cols(x));
    let (gain, bias) = (c.f(gain), c.f(bias));
    let mut out = vec![0.0; rows * cols];
    for j in 0..cols {
        let column: Vec<f64> = c.f(x).iter().skip(j).step_by(cols).map(|&v| f64::from(v)).collect();
        let mean = column.iter().sum::<f64>() / rows as f64;
        let var = column.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / rows as f64;
        let inv = 1.0 / (var + f64::from(eps)).sqrt();
        for (i, v) in column.iter().enumerate() {
            out[i * cols + j] = ((v - mean) * inv * f64::from(gain[j]) + f64::from(bias[j])) as f32;
        }
    }
    Data::F(out)
}

pub(super) fn snake(c: &Context<'_>, x: Value, alpha: Weight) -> Data {
    let (cols, alpha) = (c.cols(x), c.weight(alpha));
    let one = |(i, &v): (usize, &f32)| {
        let (v, a) = (f64::from(v), f64::from(alpha[i % cols]));
        (v + (a * v).sin().powi(2) / a) as f32
    };
    Data::F(c.f(x).iter().enumerate().map(one).collect())
}

pub(super) fn repeat(c: &Context<'_>, x: Value, times: usize) -> Data {
    Data::F(c.f(x).chunks_exact(c.cols(x)).flat_map(|row| row.repeat(times)).collect())
}

/// The meaning of each unary op.
pub(crate) fn unary(op: UnaryOp, x: f32) -> f32 {
    let d = f64::from(x);
    let y = match op {
        UnaryOp::Gelu => d / 2.0 * (1.0 + erf(d / std::f64::consts::SQRT_2)),
        UnaryOp::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (d + 0.044_715 * d.powi(3));
            d / 2.0 * (1.0 + inner.tanh())
        }
        UnaryOp::Relu => d.max(0.0),
        UnaryOp::LeakyRelu(slope) => {
            if d < 0.0 {
                d * f64::from(slope)
            } else {
                d
            }
        }
        UnaryOp::Silu => d / (1.0 + (-d).exp()),
        UnaryOp::Sigmoid => 1.0 / (1.0 + (-d).exp()),
        UnaryOp::Tanh => d.tanh(),
        UnaryOp::Exp => d.exp(),
        UnaryOp::Sqrt => d.max(0.0).sqrt(),
        UnaryOp::Sin => d.sin(),
        UnaryOp::Affine { scale, offset } => f64::from(scale) * d + f64::from(offset),
    };
    y as f32
}

/// The error function: its Taylor series near zero, its continued fraction (Lentz) in the tails
/// (Abramowitz and Stegun 7.1.5 and 7.1.14). Good to about 1e-15.
pub(crate) fn erf(x: f64) -> f64 {
    let a = x.abs();
    let two_over_sqrt_pi = 2.0 / std::f64::consts::PI.sqrt();
    if a < 2.5 {
        let (mut term, mut sum) = (a, a);
        for n in 1..80 {
            term *= -a * a / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return (two_over_sqrt_pi * sum).copysign(x);
    }
    let mut f = 0.0;
    for n in (1..60).rev() {
        f = f64::from(n) / 2.0 / (a + f);
    }
    (1.0 - (-a * a).exp() / std::f64::consts::PI.sqrt() / (a + f)).copysign(x)
}

pub(super) fn binary(c: &Context<'_>, a: Value, b: Value, op: BinaryOp) -> Data {
    let (cols, b_cols, b_rows) = (c.cols(a), c.cols(b), c.rows(b));
    let one_row = c.graph.shape(b).rows.as_constant() == Some(1);
    debug_assert!(one_row || b_rows == c.rows(a));
    let (xa, xb) = (c.f(a), c.f(b));
    let apply = |(i, &x): (usize, &f32)| {
        let (row, col) = (i / cols, i % cols);
        let at = if one_row { 0 } else { row } * b_cols + if b_cols == 1 { 0 } else { col };
        let (x, y) = (f64::from(x), f64::from(xb[at]));
        (match op {
            BinaryOp::Add => x + y,
            BinaryOp::Sub => x - y,
            BinaryOp::Mul => x * y,
            BinaryOp::Div => x / y,
            BinaryOp::MulSilu => x * (y / (1.0 + (-y).exp())),
        }) as f32
    };
    Data::F(xa.iter().enumerate().map(apply).collect())
}

pub(super) fn add_positions(c: &Context<'_>, x: Value, table: Weight, start: CacheStart) -> Data {
    let spec = &c.graph.weights[table.index()];
    let cols = spec.cols;
    let q = c.rows(x) / c.graph.slots;
    let mut out = c.f(x).to_vec();
    for (i, row) in out.chunks_exact_mut(cols).enumerate() {
        let (slot, j) = (i / q, i % q);
        let at = match start {
            CacheStart::Position => c.position(slot) + j,
            CacheStart::Zero => j,
        };
        if at < spec.rows {
            for (v, t) in row.iter_mut().zip(&c.weight(table)[at * cols..]) {
                *v += t;
            }
        }
    }
    Data::F(out)
}

pub(super) fn rope(c: &Context<'_>, x: Value, head_dim: usize, style: RopeStyle, base: f32) -> Data {
    let cols = c.cols(x);
    let q = c.rows(x) / c.graph.slots;
    let half = head_dim / 2;
    let mut out = c.f(x).to_vec();
    for (i, row) in out.chunks_exact_mut(cols).enumerate() {
        let position = (c.position(i / q) + i % q) as f64;
        for head in row.chunks_exact_mut(head_dim) {
            for p in 0..half {
                let angle = position * f64::from(base).powf(-2.0 * p as f64 / head_dim as f64);
                let (sin, cos) = angle.sin_cos();
                let (ia, ib) = match style {
                    RopeStyle::Halves => (p, p + half),
                    RopeStyle::Pairs => (2 * p, 2 * p + 1),
                };
                let (a, b) = (f64::from(head[ia]), f64::from(head[ib]));
                head[ia] = (a * cos - b * sin) as f32;
                head[ib] = (a * sin + b * cos) as f32;
            }
        }
    }
    Data::F(out)
}

pub(super) fn mean_rows(c: &Context<'_>, x: Value) -> Data {
    let (cols, rows) = (c.cols(x), c.rows(x));
    let mean = |j: usize| {
        let sum: f64 = c.f(x).iter().skip(j).step_by(cols).map(|&v| f64::from(v)).sum();
        if rows == 0 { 0.0 } else { (sum / rows as f64) as f32 }
    };
    Data::F((0..cols).map(mean).collect())
}

/// Softmax of one row of numbers, in f64.
pub(super) fn softmax(row: &[f64]) -> Vec<f64> {
    let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let e: Vec<f64> = row.iter().map(|v| (v - top).exp()).collect();
    let sum: f64 = e.iter().sum();
    e.iter().map(|v| v / sum).collect()
}

pub(super) fn softmax_rows(c: &Context<'_>, x: Value) -> Data {
    let one = |row: &[f32]| softmax(&row.iter().map(|&v| f64::from(v)).collect::<Vec<_>>());
    Data::F(c.f(x).chunks_exact(c.cols(x)).flat_map(one).map(|v| v as f32).collect())
}

pub(super) fn magnitude(c: &Context<'_>, x: Value) -> Data {
    let half = c.cols(x) / 2;
    let one =
        |row: &[f32]| (0..half).map(|j| f64::from(row[j]).hypot(f64::from(row[half + j])) as f32).collect();
    Data::F(c.f(x).chunks_exact(2 * half).flat_map(|row| -> Vec<f32> { one(row) }).collect())
}

pub(super) fn pad(c: &Context<'_>, x: Value, left: usize, right: usize, mode: PadMode) -> Data {
    let (rows, cols) = (c.rows(x), c.cols(x));
    let mut out = vec![0.0; (left + rows + right) * cols];
    for (i, row) in out.chunks_exact_mut(cols).enumerate() {
        if let Some(from) = pad_source(i, left, rows, mode) {
            row.copy_from_slice(&c.f(x)[from * cols..(from + 1) * cols]);
        }
    }
    Data::F(out)
}

/// The input row that padded row `i` shows, or none for zeros.
pub(crate) fn pad_source(i: usize, left: usize, rows: usize, mode: PadMode) -> Option<usize> {
    let at = i as i64 - left as i64;
    let n = rows as i64;
    if n == 0 {
        return None;
    }
    let from = match mode {
        _ if (0..n).contains(&at) => at,
        PadMode::Zero => return None,
        PadMode::Edge => at.clamp(0, n - 1),
        PadMode::Reflect if n == 1 => 0,
        PadMode::Reflect => {
            let period = 2 * (n - 1);
            let m = at.rem_euclid(period);
            m.min(period - m)
        }
    };
    usize::try_from(from).ok()
}

pub(super) fn columns(c: &Context<'_>, x: Value, start: usize, cols: usize) -> Data {
    Data::F(c.f(x).chunks_exact(c.cols(x)).flat_map(|row| row[start..start + cols].to_vec()).collect())
}

pub(super) fn concat(c: &Context<'_>, parts: &[Value]) -> Data {
    let rows = c.rows(parts[0]);
    let mut out = Vec::new();
    for i in 0..rows {
        for &p in parts {
            let cols = c.cols(p);
            out.extend_from_slice(&c.f(p)[i * cols..(i + 1) * cols]);
        }
    }
    Data::F(out)
}

pub(super) fn last_rows(c: &Context<'_>, x: Value) -> Data {
    let (cols, slots) = (c.cols(x), c.graph.slots);
    let q = c.rows(x) / slots;
    let mut out = vec![0.0; slots * cols];
    if q > 0 {
        for (slot, row) in out.chunks_exact_mut(cols).enumerate() {
            let at = (slot * q + q - 1) * cols;
            row.copy_from_slice(&c.f(x)[at..at + cols]);
        }
    }
    Data::F(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_equals_published_values() {
        // Abramowitz and Stegun, table 7.1.
        for (x, y) in [(0.0, 0.0), (0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (2.0, 0.995_322_265_0)] {
            assert!((erf(x) - y).abs() < 1e-9 && (erf(-x) + y).abs() < 1e-9, "{x}");
        }
        assert!((erf(2.499_999) - erf(2.500_001)).abs() < 1e-7);
        assert!((erf(3.0) - 0.999_977_909_503).abs() < 1e-11);
    }

    #[test]
    fn reflection_repeats_on_short_signals() {
        let seen: Vec<_> = (0..9).map(|i| pad_source(i, 3, 3, PadMode::Reflect).unwrap()).collect();
        assert_eq!(seen, [1, 2, 1, 0, 1, 2, 1, 0, 1]);
    }
}
