//! Several ops together: how long values live, what views share, run-time lengths with a carry, and small
//! copies of the models' programs.

use repartee_engine::formats::TensorType;
use repartee_engine::graph::{
    BinaryOp, CacheStart, ConvShape, Dim, Direction, KeyValues, PadMode, Precision, StateType, UnaryOp, Value,
};

use crate::case::{Case, Data, Maker};
use crate::compare::Tolerance;

const SEVERAL: Tolerance = Tolerance::new(5e-5, 5e-5, "several ops of f32 in a row");

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = (0..12).map(random_graph).collect();
    cases.push(input_as_output());
    cases.push(voice_detector());
    cases.push(encoder_decoder());
    cases.push(vocoder());
    cases.push(refusals());
    cases
}

/// A random graph of cheap ops over values that are used again much later: what a planner of memory gets wrong.
fn random_graph(number: u32) -> Case {
    let mut m = Maker::new(format!("programs.random graph {number}"), SEVERAL);
    m.top = 1.0;
    m.weight("w", TensorType::F32, &[8, 8], 0.4);
    m.weight("g", TensorType::F32, &[8], 1.0);
    let n = m.g.symbol("n", 9);
    let mut values = vec![m.input(n, 8, number.is_multiple_of(2)), m.input(n, 8, false)];
    let row = m.input(1, 8, false);
    for _ in 0..30 {
        // Old values as often as new ones.
        let a = values[m.r.below(values.len())];
        let b = values[m.r.below(values.len())];
        let y = match m.r.below(9) {
            0 => m.g.binary(a, b, BinaryOp::Sub),
            1 => {
                let product = m.g.binary(a, b, BinaryOp::Mul);
                m.g.unary(product, UnaryOp::Tanh)
            }
            2 => m.g.binary(a, row, BinaryOp::Add),
            3 => m.g.unary(a, UnaryOp::Sigmoid),
            4 => m.g.rms_norm(a, "g", 1e-2, 8),
            5 => m.g.linear(a, "w", None, 8, Precision::F32),
            6 => {
                let both = m.g.concat_columns(&[a, b]);
                m.g.columns(both, 3, 8)
            }
            7 => {
                let wide = m.g.pad_rows(a, 2, 1, PadMode::Edge);
                m.g.slice_rows(wide, 1, n)
            }
            _ => {
                let mean = m.g.mean_rows(b);
                m.g.binary(a, mean, BinaryOp::Sub)
            }
        };
        // Keeps numbers near one, so that errors do not grow.
        values.push(m.g.unary(y, UnaryOp::Tanh));
    }
    for at in [0, 5, 17, values.len() - 2, values.len() - 1] {
        m.output(values[at]);
    }
    m.runs(&[&[5], &[9], &[1], &[0], &[2]])
}

/// Inputs, views of inputs and one value twice as outputs.
fn input_as_output() -> Case {
    let mut m = Maker::new("programs.input as output", Tolerance::EXACT);
    let n = m.g.symbol("n", 9);
    let x = m.g.input_f32("x", n, 6);
    let i = m.g.input_i32("i", n, 1);
    let view = m.g.columns(x, 1, 3);
    let y = m.g.unary(x, UnaryOp::Relu);
    for v in [x, i, view, y, y, x] {
        m.output(v);
    }
    m.runs(&[&[9], &[1], &[0], &[4]])
}

/// Frames by a strided convolution, magnitudes, an encoder, a recurrence: the shape of a voice detector, on a
/// run-time number of samples, with two streams' worth of state.
fn voice_detector() -> Case {
    let mut m = Maker::new("programs.voice detector", SEVERAL);
    m.top = 0.5;
    m.weight("stft", TensorType::F32, &[34, 1, 32], 0.5);
    m.weight("conv", TensorType::F32, &[24, 17, 3], 0.3);
    m.weight("conv.bias", TensorType::F32, &[24], 0.3);
    for (name, shape) in [("ih", vec![64, 24]), ("hh", vec![64, 16]), ("bi", vec![64]), ("bh", vec![64])] {
        m.weight(name, TensorType::F32, &shape, 0.3);
    }
    m.weight("out", TensorType::F32, &[1, 16, 1], 1.0);
    let n = m.g.symbol("samples", 256);
    let x = m.g.input_f32("samples", n, 1);
    let padded = m.g.pad_rows(x, 0, 16, PadMode::Reflect);
    let frames = m.g.conv1d(padded, "stft", None, 34, ConvShape { stride: 16, ..ConvShape::new(32) });
    let power = m.g.magnitude(frames);
    let shape = ConvShape { pad_left: 1, pad_right: 1, stride: 2, ..ConvShape::new(3) };
    let encoded = m.g.conv1d(power, "conv", Some("conv.bias"), 24, shape);
    let encoded = m.g.unary(encoded, UnaryOp::Relu);
    let h = m.g.lstm(encoded, ["ih", "hh", "bi", "bh"], 16, Direction::Forward, Some("lstm"));
    let h = m.g.unary(h, UnaryOp::Relu);
    let y = m.g.conv1d(h, "out", None, 1, ConvShape::new(1));
    let y = m.g.unary(y, UnaryOp::Sigmoid);
    let mean = m.g.mean_rows(y);
    m.output(y);
    m.output(mean);
    m.runs(&[&[256], &[64], &[17], &[100]]).cancelled(&[64]).save(0).run(&[64]).restore(0, true).run(&[64])
}

/// An encoder fills the cross caches; a decoder reads them by length and draws tokens that stay on the device.
fn encoder_decoder() -> Case {
    let mut m = Maker::with_slots("programs.encoder and decoder", 2, SEVERAL);
    let width = 32;
    m.ids = 50;
    for name in ["q", "k", "v", "o", "xq", "xk", "xv", "xo"] {
        m.weight(name, TensorType::F16, &[width, width], 0.25);
    }
    for name in ["n1", "n2"] {
        m.weight(name, TensorType::F32, &[width], 1.0);
    }
    m.weight("table", TensorType::Q8_0, &[50, width], 1.0);
    m.weight("positions", TensorType::F32, &[12, width], 0.5);
    let audio_rows = m.g.symbol("m", 21);
    let q = m.g.symbol("q", 4);
    let rows = q.affine(2, 0, 1).unwrap_or(q);
    let audio = m.input(audio_rows.affine(2, 0, 1).unwrap_or(audio_rows), width, false);
    let caches = ["sk", "sv", "ck", "cv"]
        .map(|name| m.g.cache(name, if name.starts_with('s') { 12 } else { 21 }, 2, 16, StateType::F16));
    for (weight, cache) in [("xk", caches[2]), ("xv", caches[3])] {
        let rows = m.g.linear(audio, weight, None, width, Precision::F32);
        m.g.cache_write(rows, cache, CacheStart::Zero);
    }
    let ids = m.g.input_i32("ids", rows, 1);
    let x = m.g.embed(ids, "table", 50, width);
    let x = m.g.add_positions(x, "positions", 12, CacheStart::Position);
    let normed = m.g.layer_norm(x, "n1", None, 1e-5);
    let [queries, keys, values] = ["q", "k", "v"].map(|w| m.g.linear(normed, w, None, width, Precision::F32));
    m.g.cache_write(keys, caches[0], CacheStart::Position);
    m.g.cache_write(values, caches[1], CacheStart::Position);
    let own = KeyValues::Cache { keys: caches[0], values: caches[1] };
    let seen = m.g.attention_cached(queries, 2, 2, 0.25, own);
    let seen = m.g.linear(seen, "o", None, width, Precision::F32);
    let x = m.g.add(x, seen);
    let normed = m.g.layer_norm(x, "n2", None, 1e-5);
    let queries = m.g.linear(normed, "xq", None, width, Precision::F32);
    let cross = KeyValues::CacheOfLength { keys: caches[2], values: caches[3], length: audio_rows };
    let seen = m.g.attention_cached(queries, 2, 2, 0.25, cross);
    let seen = m.g.linear(seen, "xo", None, width, Precision::F32);
    let x = m.g.add(x, seen);
    let last = m.g.last_rows(x);
    let logits = m.g.linear(last, "table", None, 50, Precision::F32);
    let token = m.g.sample(logits, None);
    m.g.advance(x);
    m.output(logits);
    m.output(token);
    let case = m.build().change(1, |s| (s.temperature, s.seed_low) = (0.8, 4));
    case.run(&[21, 4]).run(&[21, 1]).run(&[9, 1]).truncate(0, 3).run(&[9, 2]).cancelled(&[9, 1]).run(&[1, 1])
}

/// Rows repeated by an index, norms over time, a two-way recurrence, dilated convolutions with a residual: the
/// shape of a vocoder, where anything that leaks from past the end changes every row.
fn vocoder() -> Case {
    let mut m = Maker::new("programs.vocoder", SEVERAL);
    m.top = 1.0;
    m.ids = 6;
    let c = 12;
    for (name, shape) in [("ih", vec![24, c]), ("hh", vec![24, 6]), ("bi", vec![24]), ("bh", vec![24])] {
        m.weight(name, TensorType::F32, &shape, 0.4);
    }
    m.weight("c1", TensorType::F32, &[c, c, 3], 0.2);
    m.weight("c2", TensorType::F32, &[c, c, 3], 0.2);
    m.weight("up", TensorType::F32, &[c, 1, 3], 0.5);
    let (tokens, frames) = (m.g.symbol("tokens", 6), m.g.symbol("frames", 40));
    let x = m.input(tokens, c, false);
    let index = m.g.input_i32("index", frames, 1);
    let names = ["ih", "hh", "bi", "bh"];
    let f = m.g.lstm(x, names, 6, Direction::Forward, None);
    let b = m.g.lstm(x, names, 6, Direction::Backward, None);
    let x = m.g.concat_columns(&[f, b]);
    let x = m.g.gather(x, index);
    // Instance norm over time, from its parts.
    let mean = m.g.mean_rows(x);
    let centred = m.g.binary(x, mean, BinaryOp::Sub);
    let square = m.g.binary(centred, centred, BinaryOp::Mul);
    let variance = m.g.mean_rows(square);
    let variance = m.g.unary(variance, UnaryOp::Affine { scale: 1.0, offset: 1e-2 });
    let deviation = m.g.unary(variance, UnaryOp::Sqrt);
    let x = m.g.binary(centred, deviation, BinaryOp::Div);
    let dilated = ConvShape { dilation: 3, pad_left: 3, pad_right: 3, ..ConvShape::new(3) };
    let y = m.g.conv1d(x, "c1", None, c, dilated);
    let y = m.g.unary(y, UnaryOp::LeakyRelu(0.1));
    let y = m.g.conv1d(y, "c2", None, c, ConvShape { pad_left: 1, pad_right: 1, ..ConvShape::new(3) });
    let x: Value = m.g.add(x, y);
    let y = m.g.conv1d_carry(x, "up", None, c, ConvShape { groups: c, ..ConvShape::new(3) });
    let y = m.g.unary(y, UnaryOp::Sin);
    m.output(y);
    m.runs(&[&[6, 40], &[3, 11], &[1, 1], &[2, 0], &[4, 33]])
}

/// Wrong lengths and inputs are refused with the same words everywhere, and change nothing.
fn refusals() -> Case {
    let mut m = Maker::new("programs.refusals", SEVERAL);
    m.weight("w", TensorType::F32, &[4, 4, 3], 0.5);
    let n = m.g.symbol("n", 8);
    let x = m.input(n, 4, false);
    let i = m.g.input_i32("i", Dim::constant(2), 1);
    let y = m.g.conv1d_carry(x, "w", None, 4, ConvShape::new(3));
    let z = m.g.gather(y, i);
    let t = m.g.slice_rows(y, 2, n.affine(1, -2, 1).unwrap_or(n));
    m.output(z);
    m.output(t);
    let (f, i) = (|n| Data::F32(vec![0.5; n]), |n| Data::I32(vec![0; n]));
    let case = m.runs(&[&[8], &[5]]);
    let case = case.refused(&[9]).refused(&[]).refused(&[1]).refused_on(&[3], vec![f(12)]);
    let case = case.refused_on(&[3], vec![f(11), i(2)]).refused_on(&[3], vec![i(12), i(2)]);
    let case = case.refused_on(&[3], vec![f(12), f(2)]).refused_on(&[3], vec![f(16), i(2)]);
    case.run(&[3]).run(&[2])
}
