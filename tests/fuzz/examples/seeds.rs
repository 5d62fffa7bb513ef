//! Writes the seed corpora: whole files of each format, from the writers that the tests use.

use std::path::Path;
use std::{fs, io};

use repartee_engine::formats::TensorType;
use repartee_engine::formats::testing::{
    Ct2Writer, GgufWriter, OnnxWriter, Proto, SafeTensorsWriter, samples,
};

fn main() -> io::Result<()> {
    let values = [0.5; 32];
    let mut gguf = GgufWriter::new(2);
    gguf.strings("k", &["a", "b"]).tensor_f32("t", TensorType::Q4_0, &[32], &values);
    let mut safetensors = SafeTensorsWriter::new();
    safetensors.tensor_f32("t", TensorType::I8, &[2, 1], &values[..2]);
    let mut typed = Proto::tensor_head("t", 6, &[2]);
    typed.packed(5, &[1, -1]);
    let mut onnx = OnnxWriter::new();
    onnx.initializer(&typed);
    let mut ctranslate2 = Ct2Writer::new(3, "S", 1);
    ctranslate2.tensor_f32("t", TensorType::F32, &[1, 2], &values[..2]).alias("a", "t");

    let corpora = [
        ("gguf", [samples::gguf(), gguf.finish()]),
        ("safetensors", [samples::safetensors(), safetensors.finish()]),
        ("onnx", [samples::onnx(), onnx.finish()]),
        ("ctranslate2", [samples::ctranslate2(), ctranslate2.finish()]),
    ];
    for (target, files) in corpora {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in ["sample", "small"].into_iter().zip(files) {
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}
