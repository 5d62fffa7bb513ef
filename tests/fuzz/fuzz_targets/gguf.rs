//! GGUF: every key as every type, every tensor.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use repartee_engine::formats::gguf::Gguf;
use repartee_engine::formats::{TensorSource, testing};

fuzz_target!(|bytes: &[u8]| {
    let Ok(gguf) = Gguf::from_bytes(bytes.to_vec()) else { return };
    for key in gguf.keys() {
        let _ =
            black_box((gguf.u32(key), gguf.get::<i64>(key), gguf.f32(key), gguf.bool(key), gguf.str(key)));
        let _ = black_box((gguf.strings(key), gguf.byte_strings(key), gguf.i32s(key), gguf.f32s(key)));
        let _ = black_box((gguf.get::<Vec<u64>>(key), gguf.get::<Vec<bool>>(key)));
    }
    let _ = black_box((gguf.tensor("blk.0.weight"), gguf.u32("llama.block_count")));
    // Every type of tensor is known, or the file would not have opened.
    assert_eq!(testing::touch(&gguf), gguf.names().len());
});
