//! One small, whole file of each format, with most of what the format can say: for table tests and as fuzz seeds.

use super::{Ct2Writer, GgufWriter, OnnxWriter, Proto, SafeTensorsWriter, quantize};
use crate::formats::TensorType;

/// Values of a gentle wave, `len` of them.
fn wave(len: usize) -> Vec<f32> {
    (0..len).map(|i| (i as f32 * 0.7).sin()).collect()
}

/// A GGUF file with every metadata type and every tensor type that GGUF has.
pub fn gguf() -> Vec<u8> {
    let mut w = GgufWriter::new(3);
    w.string("general.architecture", "llama").alignment(64).u32("llama.block_count", 1);
    w.i32("test.i32", -5).u64("test.u64", 1 << 40).f32("llama.rope.freq_base", 1e5).bool("test.bool", true);
    w.raw_value("test.u8", 0, &[7]).raw_value("test.i8", 1, &[0xff]).raw_value("test.u16", 2, &[1, 2]);
    w.raw_value("test.i16", 3, &[1, 0x80]).raw_value("test.i64", 11, &(-9i64).to_le_bytes());
    w.raw_value("test.f64", 12, &0.25f64.to_le_bytes());
    w.strings("tokenizer.ggml.tokens", &["<s>", "Ġhello", "世"])
        .i32s("tokenizer.ggml.token_type", &[3, 1, 1]);
    w.f32s("tokenizer.ggml.scores", &[0.0, -1.0, -2.0]).raw_array("test.bools", 7, 3, &[1, 0, 1]);
    // An array of two arrays: [1, 2] as u8 and ["x"].
    let inner =
        [&0u32.to_le_bytes()[..], &2u64.to_le_bytes(), &[1, 2], &8u32.to_le_bytes(), &1u64.to_le_bytes()];
    w.raw_array("test.nested", 9, 2, &[&inner.concat()[..], &1u64.to_le_bytes(), b"x"].concat());
    for ty in TensorType::ALL.into_iter().filter(|&ty| ty != TensorType::U8) {
        let cols = ty.block_len();
        w.tensor_f32(&format!("blk.0.{ty}.weight"), ty, &[2, cols], &wave(2 * cols));
    }
    w.finish()
}

/// A safetensors file with every type that both it and [`TensorType`] have, and one that only it has.
pub fn safetensors() -> Vec<u8> {
    let mut w = SafeTensorsWriter::new();
    w.metadata("format", "pt");
    for ty in TensorType::ALL.into_iter().filter(|ty| ty.block_len() == 1) {
        w.tensor_f32(&format!("layer.{ty}.weight"), ty, &[2, 3], &wave(6));
    }
    w.tensor_f32("layer.scale", TensorType::F32, &[], &[0.5]);
    w.finish()
}

/// An ONNX file with raw and typed initializers, every kind of attribute, and a graph within a node.
pub fn onnx() -> Vec<u8> {
    let mut w = OnnxWriter::new();
    w.metadata("author", "test");
    w.graph.bytes(2, "main");
    w.graph.message(11, &Proto::value_info("x", 1, &[Err("n"), Ok(3)]));
    w.graph.message(12, &Proto::value_info("y", 1, &[Err("n"), Ok(2)]));
    for ty in TensorType::ALL.into_iter().filter(|ty| ty.block_len() == 1) {
        w.tensor_f32(&format!("{ty}.weight"), ty, &[2, 3], &wave(6));
    }
    let floats = quantize(TensorType::F32, &wave(3));
    let mut typed = Proto::tensor_head("float_data", 1, &[3]);
    w.initializer(typed.bytes(4, &floats));
    let mut typed = Proto::tensor_head("float_data_unpacked", 1, &[2]);
    w.initializer(typed.float(4, 0.5).float(4, -2.0));
    let mut typed = Proto::tensor_head("int32_data_as_i8", 3, &[3]);
    w.initializer(typed.packed(5, &[-128, 0, 127]));
    let mut typed = Proto::tensor_head("int32_data_as_f16", 10, &[2]);
    w.initializer(typed.packed(5, &[0x3c00, 0xc000]));
    let mut typed = Proto::tensor_head("int64_data", 7, &[2]);
    w.initializer(typed.int(7, -1).int(7, 1 << 40));

    let mut strides = Proto::attribute("strides", 7);
    strides.packed(8, &[1, -2]);
    let mut alpha = Proto::attribute("alpha", 1);
    alpha.float(2, 0.1);
    let mut axis = Proto::attribute("axis", 2);
    axis.int(3, -1);
    let mut mode = Proto::attribute("mode", 3);
    mode.bytes(4, "linear");
    let mut scales = Proto::attribute("scales", 6);
    scales.float(7, 1.0).float(7, 2.0);
    let mut names = Proto::attribute("names", 8);
    names.bytes(9, "a").bytes(9, "b");
    w.node("Conv", "/conv", &["x", "F32.weight", ""], &["c"], &[strides, alpha, axis, mode, scales, names]);

    let mut value = Proto::tensor_head("", 1, &[]);
    value.bytes(9, 2.0f32.to_le_bytes());
    let mut constant = Proto::attribute("value", 4);
    constant.message(5, &value);
    let mut branch = Proto::new();
    branch.message(1, &Proto::node("Constant", "/two", &[], &["two"], &[constant]));
    branch.message(12, &Proto::value_info("two", 1, &[]));
    let mut then = Proto::attribute("then_branch", 5);
    then.message(6, &branch);
    w.node("If", "/if", &["c"], &["y"], &[then]);
    w.finish()
}

/// A CTranslate2 model with every type, scalars, an int8 weight with its scale, and an alias of it.
pub fn ctranslate2() -> Vec<u8> {
    let mut w = Ct2Writer::new(6, "WhisperSpec", 3);
    w.tensor_f32("decoder/embeddings/weight", TensorType::I8, &[2, 3], &[127.0, -127.0, 0.0, 1.0, 2.0, 3.0]);
    w.tensor_f32("decoder/embeddings/weight_scale", TensorType::F32, &[2], &[127.0, 63.5]);
    w.tensor_f32("encoder/conv1/weight", TensorType::F16, &[2, 3, 1], &wave(6));
    w.tensor_f32("encoder/conv1/bias", TensorType::BF16, &[2], &wave(2));
    w.tensor_f32("encoder/ids", TensorType::I32, &[2], &[-1.0, 50_257.0]);
    w.scalar_i16("encoder/num_heads", 8).raw("encoder/pre_norm", &[], 1, 1, &[1]);
    w.tensor_f32("encoder/scale", TensorType::F32, &[], &[0.125]);
    w.alias("decoder/projection/weight", "decoder/embeddings/weight");
    w.finish()
}
