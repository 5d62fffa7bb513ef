//! safetensors: metadata, every tensor.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use repartee_engine::formats::safetensors::SafeTensors;
use repartee_engine::formats::{TensorSource, testing};

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = SafeTensors::from_bytes(bytes.to_vec()) else { return };
    black_box(file.metadata("format"));
    let _ = black_box(file.tensor("layer.weight"));
    black_box(testing::touch(&file));
});
