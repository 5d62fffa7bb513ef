//! Test support: writers of small files in the published layouts, and plain quantizers.
//!
//! For tests, benches and fuzz seeds only; nothing in the product calls this. Mistakes in a test's own use
//! (a type that the format lacks, bytes that do not fit the shape) panic, unless the method is called `raw`:
//! those write what they are told, to make damaged files. The quantizers choose scales simply (from the
//! extremes of a group), so they are valid and close, not the best that a type can do.
//!
//! ```
//! use repartee_engine::formats::{TensorSource, TensorType, ctranslate2::Ct2, testing::Ct2Writer};
//!
//! let mut writer = Ct2Writer::new(6, "WhisperSpec", 3);
//! writer.tensor_f32("encoder/conv1/bias", TensorType::F16, &[2], &[0.5, -1.0]);
//! let model = Ct2::from_bytes(writer.finish()).unwrap();
//! assert_eq!(model.tensor("encoder/conv1/bias").unwrap().to_f32_vec().unwrap(), [0.5, -1.0]);
//! ```

mod ctranslate2;
mod gguf;
mod onnx;
mod quantize;
mod safetensors;
pub mod samples;

pub use ctranslate2::Ct2Writer;
pub use gguf::GgufWriter;
pub use onnx::{OnnxWriter, Proto};
pub use quantize::quantize;
pub use safetensors::SafeTensorsWriter;

use crate::formats::{TensorSource, TensorType, blocks};

/// Checks that `bytes` is what `ty` and `shape` (outermost first) call for.
fn check(name: &str, ty: TensorType, shape: &[usize], data: &[u8]) {
    assert_eq!(bytes(name, ty, shape), data.len(), "{name}: {ty} {shape:?}");
}

/// Bytes that `ty` and `shape` (outermost first) call for.
fn bytes(name: &str, ty: TensorType, shape: &[usize]) -> usize {
    let (cols, rows) =
        shape.split_last().map_or((1, 1), |(cols, rows)| (*cols, rows.iter().product::<usize>()));
    let row = ty.row_bytes(cols);
    row.unwrap_or_else(|| panic!("{name}: {cols} columns are no whole blocks of {ty}")) * rows
}

/// Asks `source` for every tensor that it names, reads all bytes of each and dequantizes the first row; returns
/// the number of tensors that it gave. What a fuzz target does with a file that opened.
///
/// # Panics
/// When a view breaks the promises of [`TensorView`](crate::formats::TensorView).
pub fn touch(source: &dyn TensorSource) -> usize {
    let mut given = 0;
    for name in source.names() {
        let Ok(tensor) = source.tensor(&name) else { continue };
        given += 1;
        check(&name, tensor.ty, &tensor.shape, tensor.data);
        let cols = tensor.shape.last().copied().unwrap_or(1);
        assert!(tensor.elements() > 0 && cols <= tensor.elements(), "{name}: {:?}", tensor.shape);
        std::hint::black_box(tensor.data.iter().fold(0, |all: u8, byte| all ^ byte));
        let row_bytes = tensor.ty.row_bytes(cols).unwrap_or(0);
        let mut row = vec![0.0; cols];
        blocks::dequantize(tensor.ty, &tensor.data[..row_bytes], &mut row).expect("a row of a checked view");
        std::hint::black_box(row);
        source.release(&name);
    }
    given
}
