//! A writer of safetensors files.

use serde_json::json;

use super::{check, quantize};
use crate::formats::TensorType;

/// Writes a safetensors file in memory.
#[derive(Debug, Clone, Default)]
pub struct SafeTensorsWriter {
    metadata: Vec<(String, String)>,
    /// Name and description, in the order of the data.
    tensors: Vec<(String, serde_json::Value)>,
    data: Vec<u8>,
}

impl SafeTensorsWriter {
    /// An empty file.
    pub fn new() -> Self {
        Self::default()
    }

    /// An entry of `__metadata__`.
    pub fn metadata(&mut self, key: &str, value: &str) -> &mut Self {
        self.metadata.push((key.to_owned(), value.to_owned()));
        self
    }

    /// A tensor; `shape` is outermost first, `bytes` are its rows.
    pub fn tensor(&mut self, name: &str, ty: TensorType, shape: &[usize], bytes: &[u8]) -> &mut Self {
        check(name, ty, shape, bytes);
        assert_eq!(ty.block_len(), 1, "safetensors has no {ty}");
        let start = self.data.len();
        self.data.extend(bytes);
        let description =
            json!({"dtype": ty.to_string(), "shape": shape, "data_offsets": [start, self.data.len()]});
        self.tensors.push((name.to_owned(), description));
        self
    }

    /// A tensor from f32 values.
    pub fn tensor_f32(&mut self, name: &str, ty: TensorType, shape: &[usize], values: &[f32]) -> &mut Self {
        self.tensor(name, ty, shape, &quantize(ty, values))
    }

    /// The file.
    pub fn finish(&self) -> Vec<u8> {
        let mut members: Vec<String> = Vec::new();
        if !self.metadata.is_empty() {
            let pairs: serde_json::Map<_, _> =
                self.metadata.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
            members.push(format!("\"__metadata__\":{}", serde_json::Value::Object(pairs)));
        }
        members.extend(self.tensors.iter().map(|(name, tensor)| format!("{}:{tensor}", json!(name))));
        let mut header = format!("{{{}}}", members.join(","));
        while !header.len().is_multiple_of(8) {
            header.push(' ');
        }
        Self::raw(&header, &self.data)
    }

    /// A file with any header text and any data.
    pub fn raw(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }
}
