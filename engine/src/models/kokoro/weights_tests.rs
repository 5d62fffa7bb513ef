//! One small network in both layouts: as quantised exports write it, and with the same weights in f32.

use super::*;
use crate::formats::testing::{OnnxWriter, Proto};

const HIDDEN: usize = 3;

/// Bytes of quantised values, and what they stand for.
struct Quantised {
    shape: Vec<usize>,
    q: Vec<u8>,
    signed: bool,
    scales: Vec<f32>,
    zeros: Vec<u8>,
}

impl Quantised {
    fn new(shape: &[usize], signed: bool, channels: usize) -> Self {
        let count = shape.iter().product::<usize>();
        let q = (0..count).map(|i| (i * 89 + 7) as u8).collect();
        let scales = (0..channels).map(|c| 0.013 + 0.001 * c as f32).collect();
        let zeros = (0..channels).map(|c| (c * 5 + 60) as u8).collect();
        Self { shape: shape.to_vec(), q, signed, scales, zeros }
    }

    fn number(&self, byte: u8) -> f32 {
        if self.signed { f32::from(byte as i8) } else { f32::from(byte) }
    }

    /// In the file's layout; the channel of element `i` is `channel(i)`.
    fn plain(&self, channel: impl Fn(usize) -> usize) -> Vec<f32> {
        let one = |(i, &q): (usize, &u8)| {
            let c = channel(i) % self.scales.len();
            (self.number(q) - self.number(self.zeros[c])) * self.scales[c]
        };
        self.q.iter().enumerate().map(one).collect()
    }

    fn write(&self, w: &mut OnnxWriter, name: &str) {
        let ty = if self.signed { TensorType::I8 } else { TensorType::U8 };
        w.tensor(&format!("{name}_quantized"), ty, &self.shape, &self.q);
        let dims: &[usize] = if self.scales.len() == 1 { &[] } else { &[self.scales.len()] };
        w.tensor_f32(&format!("{name}_scale"), TensorType::F32, dims, &self.scales);
        w.tensor(&format!("{name}_zero_point"), ty, dims, &self.zeros);
    }
}

fn turned(rows: usize, cols: usize, data: &[f32]) -> Vec<f32> {
    (0..cols).flat_map(|c| (0..rows).map(move |r| data[r * cols + c])).collect()
}

/// The integer product of a dynamically quantised graph and what stands behind it.
fn product(w: &mut OnnxWriter, op: &str, node: &str, weight: &str, bias: bool) {
    let name = |part: &str| format!("{weight}.{part}");
    let [q, s, z] = ["quantized", "scale", "zero_point"].map(|p| format!("{weight}_{p}"));
    w.node("DynamicQuantizeLinear", "", &["x"], &[&name("xq"), &name("xs"), &name("xz")], &[]);
    w.node(op, node, &[&name("xq"), &q, &name("xz"), &z], &[&name("y")], &[]);
    let mut at = name("y");
    if bias {
        w.node("Add", "", &[&name("integers"), &at], &[&name("b")], &[]);
        at = name("b");
    }
    w.node("Cast", "", &[&at], &[&name("f")], &[]);
    w.node("Mul", "", &[&name("xs"), &s], &[&name("s")], &[]);
    w.node("Mul", "", &[&name("f"), &name("s")], &[&name("out")], &[]);
}

fn both(recurrent_scales: usize) -> [Vec<u8>; 2] {
    let conv = Quantised::new(&[4, 2, 3], false, 1);
    let linear = Quantised::new(&[2, 5], true, 5);
    let table = Quantised::new(&[6, 2], true, 1);
    let [input, recurrent] =
        [4, HIDDEN].map(|rows| Quantised::new(&[2, rows, 4 * HIDDEN], true, recurrent_scales));
    let bias: Vec<f32> = (0..2 * 8 * HIDDEN).map(|i| i as f32).collect();
    let up: Vec<f32> = (0..12).map(|i| i as f32 - 3.0).collect();
    [true, false].map(|quantised| {
        let mut w = OnnxWriter::new();
        w.tensor_f32("decoder.decoder.encode.conv1.bias", TensorType::F32, &[4], &[1.0, 2.0, 3.0, 4.0]);
        w.tensor_f32(
            "decoder.decoder.generator.resblocks.0.alpha1.0",
            TensorType::F32,
            &[1, 4, 1],
            &[0.5; 4],
        );
        w.tensor_f32("up", TensorType::F32, &[2, 2, 3], &up);
        w.node("ConvTranspose", "/decoder/decoder/generator/ups.0/ConvTranspose", &["x", "up"], &["u"], &[]);
        w.tensor_f32("lstm_bias", TensorType::F32, &[2, 8 * HIDDEN], &bias);
        let nodes = [
            "/decoder/decoder/encode/conv1/Conv",
            "/encoder/bert/encoder/albert_layer_groups.0/albert_layers.0/ffn_3/MatMul",
            "/encoder/text_encoder/embedding/Gather",
            "/encoder/shared/LSTM",
        ];
        if quantised {
            conv.write(&mut w, "conv");
            product(&mut w, "ConvInteger", nodes[0], "conv", true);
            linear.write(&mut w, "linear");
            product(&mut w, "MatMulInteger", nodes[1], "linear", false);
            table.write(&mut w, "table");
            w.node("Gather", nodes[2], &["table_quantized", "tokens"], &["e"], &[]);
            let inputs = ["e", "table_scale", "table_zero_point"];
            w.node("DequantizeLinear", "", &inputs, &["ef"], &[]);
            input.write(&mut w, "wi");
            recurrent.write(&mut w, "wr");
            let inputs = ["x", "wi_quantized", "wr_quantized", "lstm_bias", "", "h", "c", ""];
            let scales = ["wi_scale", "wi_zero_point", "wr_scale", "wr_zero_point"];
            w.node("DynamicQuantizeLSTM", nodes[3], &[&inputs[..], &scales[..]].concat(), &["l"], &[]);
        } else {
            w.tensor_f32("conv", TensorType::F32, &conv.shape, &conv.plain(|_| 0));
            w.node("Conv", nodes[0], &["x", "conv", "decoder.decoder.encode.conv1.bias"], &["c"], &[]);
            // One export has a plain product, another a Gemm with its matrix the other way round.
            let matrix = turned(2, 5, &linear.plain(|i| i % 5));
            w.tensor_f32("linear", TensorType::F32, &[5, 2], &matrix);
            let mut transposed = Proto::attribute("transB", 2);
            transposed.int(3, 1);
            w.node("Gemm", nodes[1], &["x", "linear"], &["g"], &[transposed]);
            w.tensor_f32("table", TensorType::F32, &table.shape, &table.plain(|_| 0));
            w.node("Gather", nodes[2], &["table", "tokens"], &["e"], &[]);
            for (name, q, rows) in [("wi", &input, 4), ("wr", &recurrent, HIDDEN)] {
                let per_gate = q.scales.len() > 2;
                let direction = |i| i / (rows * 4 * HIDDEN);
                let plain = q.plain(|i| {
                    if per_gate { direction(i) * 4 * HIDDEN + i % (4 * HIDDEN) } else { direction(i) }
                });
                let data: Vec<f32> =
                    plain.chunks(rows * 4 * HIDDEN).flat_map(|d| turned(rows, 4 * HIDDEN, d)).collect();
                w.tensor_f32(name, TensorType::F32, &[2, 4 * HIDDEN, rows], &data);
            }
            w.node("LSTM", nodes[3], &["x", "wi", "wr", "lstm_bias", "", "h", "c", ""], &["l"], &[]);
        }
        w.finish()
    })
}

#[test]
fn quantised_and_plain_exports_give_equal_tensors() {
    for scales in [2, 2 * 4 * HIDDEN] {
        equal(both(scales));
    }
}

fn equal(files: [Vec<u8>; 2]) {
    let [quantised, plain] = files.map(|bytes| tensors(&Onnx::from_bytes(bytes).unwrap()).unwrap());
    let (mut a, mut b) = (quantised.names(), plain.names());
    a.sort();
    b.sort();
    assert_eq!(a, b);
    for name in [
        "decoder.encode.conv1.weight",
        "decoder.encode.conv1.bias",
        "decoder.generator.resblocks.0.alpha1.0",
        "decoder.generator.ups.0.weight",
        "bert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight",
        "text_encoder.embedding.weight",
        "predictor.shared.weight_ih_l0",
        "predictor.shared.weight_hh_l0_reverse",
        "predictor.shared.bias_hh_l0_reverse",
    ] {
        let (x, y) = (quantised.tensor(name).unwrap(), plain.tensor(name).unwrap());
        assert_eq!(
            (x.shape.clone(), x.to_f32_vec().unwrap()),
            (y.shape.clone(), y.to_f32_vec().unwrap()),
            "{name}"
        );
    }
    // Bytes stay bytes.
    for (name, ty) in [
        ("decoder.encode.conv1.weight", TensorType::U8),
        ("decoder.generator.ups.0.weight", TensorType::F32),
        ("text_encoder.embedding.weight", TensorType::I8),
        ("predictor.shared.weight_hh_l0_reverse", TensorType::I8),
    ] {
        assert_eq!(quantised.tensor(name).unwrap().ty, ty, "{name}");
    }
    let shape = |name: &str| quantised.tensor(name).unwrap().shape;
    assert_eq!(shape("bert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight"), [5, 2]);
    assert_eq!(shape("predictor.shared.weight_ih_l0"), [4 * HIDDEN, 4]);
    // Gates i, o, f, g of the second direction's recurrent bias become i, f, g, o.
    let bias = quantised.tensor("predictor.shared.bias_hh_l0_reverse").unwrap().to_f32_vec().unwrap();
    let first = 3 * 4 * HIDDEN; // direction 1, second half
    assert_eq!(bias[HIDDEN], (first + 2 * HIDDEN) as f32);
}

#[test]
fn damaged_weights_are_errors() {
    // A product whose scale nothing leads to, and scales that do not fit the channels.
    let conv = Quantised::new(&[4, 2, 3], false, 1);
    let mut w = OnnxWriter::new();
    conv.write(&mut w, "conv");
    w.node("ConvInteger", "/decoder/decoder/encode/conv1/Conv", &["x", "conv_quantized", "z"], &["y"], &[]);
    assert!(tensors(&Onnx::from_bytes(w.finish()).unwrap()).is_err());
    let conv = Quantised::new(&[4, 2, 3], false, 3);
    let mut w = OnnxWriter::new();
    conv.write(&mut w, "conv");
    product(&mut w, "ConvInteger", "/decoder/decoder/encode/conv1/Conv", "conv", false);
    assert!(tensors(&Onnx::from_bytes(w.finish()).unwrap()).is_err());
    assert!(tensors(&Onnx::from_bytes(both(3)[0].clone()).unwrap()).is_err());
    let mut w = OnnxWriter::new();
    w.tensor_f32("w", TensorType::F32, &[2, 4], &[0.0; 8]);
    w.node("LSTM", "/encoder/shared/LSTM", &["x", "w", "w", "w"], &["y"], &[]);
    assert!(tensors(&Onnx::from_bytes(w.finish()).unwrap()).is_err());
}

#[test]
fn nodes_name_their_modules() {
    for (node, name) in [
        ("/decoder/decoder/decode.0/conv1x1/Conv_quant", "decoder.decode.0.conv1x1"),
        ("/encoder/text_encoder/cnn.0/cnn.0.0/Conv", "text_encoder.cnn.0.0"),
        ("/encoder/F0.1/norm2/fc/Gemm_MatMul_quant", "predictor.F0.1.norm2.fc"),
        ("/encoder/shared/LSTM_quant", "predictor.shared"),
        ("/decoder/decoder/F0_conv/Conv", "decoder.F0_conv"),
        ("/encoder/predictor/text_encoder/lstms.0/LSTM", "predictor.text_encoder.lstms.0"),
        (
            "/encoder/bert/encoder/albert_layer_groups.0/albert_layers.0/ffn_output_11/MatMul",
            "bert.encoder.albert_layer_groups.0.albert_layers.0.ffn_output",
        ),
        ("/encoder/bert_encoder/MatMul_quant", "bert_encoder"),
    ] {
        assert_eq!(module(node).as_deref(), Some(name));
    }
    for node in ["", "/", "/encoder", "/encoder/MatMul_1", "Transpose_token_36", "/other/a/Conv"] {
        assert_eq!(module(node), None, "{node}");
    }
}

#[test]
fn transposing_swaps_the_last_two() {
    let plain = Plain { shape: vec![2, 2, 3], data: Numbers::Floats((0..12).map(|i| i as f32).collect()) };
    let t = plain.transposed();
    assert_eq!(t.shape, [2, 3, 2]);
    let Numbers::Floats(data) = t.data else { panic!("floats stay floats") };
    assert_eq!(data, [0., 3., 1., 4., 2., 5., 6., 9., 7., 10., 8., 11.]);
}

#[test]
fn gates_move() {
    assert_eq!(in_torch_order(&[0., 1., 2., 3.]), [0., 2., 3., 1.]);
}
