//! Readers of published weight files; every file is treated as hostile.
//!
//! A reader maps one file (or one set of shards), checks all of its structure once, and then hands out
//! [`TensorView`]s: a name, a type, a shape and the bytes as they stand in the file. Nothing is copied,
//! converted or dequantized here; packing weights for a backend is the backend's work, and
//! [`blocks::dequantize`] is the plain meaning of each type.
//!
//! | module | file |
//! |---|---|
//! | [`gguf`] | GGUF 2 and 3: Qwen, SmolLM2, every llama.cpp model |
//! | [`safetensors`] | safetensors, whole or in shards |
//! | [`onnx`] | ONNX initializers and the facts of the graph |
//! | [`ctranslate2`] | CTranslate2 `model.bin`: Whisper as faster-whisper publishes it |
//! | [`blocks`] | what the bytes of each [`TensorType`] mean |
//! | [`testing`] | writers and quantizers for tests, benches and fuzz seeds |
//!
//! ```
//! use repartee_engine::formats::{TensorType, blocks};
//!
//! assert_eq!(TensorType::Q4K.row_bytes(512), Some(288));
//! assert_eq!(TensorType::Q4K.row_bytes(500), None); // not a whole number of blocks
//! let mut row = [0.0; 2];
//! blocks::dequantize(TensorType::BF16, &[0x80, 0x3f, 0x00, 0xc0], &mut row).unwrap();
//! assert_eq!(row, [1.0, -2.0]);
//! ```
//!
//! What every reader holds to: sizes are multiplied with checks, a count is compared with the bytes that are
//! left before anything is allocated for it, what is kept beside the mapped file has a fixed budget, nesting
//! has a fixed depth, and an error says the file, the byte offset and the field.
//!
//! Rejected: the `safetensors`, `prost` and `onnx` crates. Their errors name no offset, a generated ONNX
//! reader copies all weights, and three of the four formats need a reader of our own in any case.

pub mod blocks;
pub mod ctranslate2;
mod error;
pub mod gguf;
mod index;
mod mapped;
pub mod onnx;
mod reader;
pub mod safetensors;
mod tensor;
pub mod testing;

pub use error::{FormatError, FormatErrorKind};
pub use mapped::Mapped;
pub use tensor::{Affine, TensorSource, TensorType, TensorView};

#[cfg(target_endian = "big")]
compile_error!("weight files are little-endian and are used in place: big-endian machines are not supported");
