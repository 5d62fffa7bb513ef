//! A writer of GGUF files.

use super::{bytes, check, quantize};
use crate::formats::TensorType;

/// Writes a GGUF file in memory: metadata, then tensors in the order they were added.
#[derive(Debug, Clone)]
pub struct GgufWriter {
    version: u32,
    alignment: u64,
    entries: u64,
    metadata: Vec<u8>,
    tensors: u64,
    descriptions: Vec<u8>,
    data: Vec<u8>,
    /// Bytes of the data section that the caller writes.
    announced: u64,
}

impl GgufWriter {
    /// An empty file of format version `version` (2 or 3; others to test their refusal).
    pub fn new(version: u32) -> Self {
        Self {
            version,
            alignment: 32,
            entries: 0,
            metadata: Vec::new(),
            tensors: 0,
            descriptions: Vec::new(),
            data: Vec::new(),
            announced: 0,
        }
    }

    /// Sets and writes `general.alignment`; before the first tensor.
    pub fn alignment(&mut self, bytes: u32) -> &mut Self {
        assert_eq!(self.tensors, 0, "alignment after tensors");
        self.alignment = bytes.into();
        self.u32("general.alignment", bytes)
    }

    /// Any value: `code` is the format's type code, `value` its bytes.
    pub fn raw_value(&mut self, key: &str, code: u32, value: &[u8]) -> &mut Self {
        push_string(&mut self.metadata, key.as_bytes());
        self.metadata.extend(code.to_le_bytes());
        self.metadata.extend(value);
        self.entries += 1;
        self
    }

    /// An array: `code` is the type code of its elements, `elements` their bytes.
    pub fn raw_array(&mut self, key: &str, code: u32, len: u64, elements: &[u8]) -> &mut Self {
        let value = [&code.to_le_bytes()[..], &len.to_le_bytes(), elements].concat();
        self.raw_value(key, 9, &value)
    }

    /// A u32.
    pub fn u32(&mut self, key: &str, value: u32) -> &mut Self {
        self.raw_value(key, 4, &value.to_le_bytes())
    }

    /// An i32.
    pub fn i32(&mut self, key: &str, value: i32) -> &mut Self {
        self.raw_value(key, 5, &value.to_le_bytes())
    }

    /// A u64.
    pub fn u64(&mut self, key: &str, value: u64) -> &mut Self {
        self.raw_value(key, 10, &value.to_le_bytes())
    }

    /// An f32.
    pub fn f32(&mut self, key: &str, value: f32) -> &mut Self {
        self.raw_value(key, 6, &value.to_le_bytes())
    }

    /// A boolean.
    pub fn bool(&mut self, key: &str, value: bool) -> &mut Self {
        self.raw_value(key, 7, &[value.into()])
    }

    /// A text.
    pub fn string(&mut self, key: &str, value: &str) -> &mut Self {
        let mut bytes = Vec::new();
        push_string(&mut bytes, value.as_bytes());
        self.raw_value(key, 8, &bytes)
    }

    /// An array of texts.
    pub fn strings<S: AsRef<str>>(&mut self, key: &str, values: &[S]) -> &mut Self {
        let mut bytes = Vec::new();
        for value in values {
            push_string(&mut bytes, value.as_ref().as_bytes());
        }
        self.raw_array(key, 8, values.len() as u64, &bytes)
    }

    /// An array of i32.
    pub fn i32s(&mut self, key: &str, values: &[i32]) -> &mut Self {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.raw_array(key, 5, values.len() as u64, &bytes)
    }

    /// An array of f32.
    pub fn f32s(&mut self, key: &str, values: &[f32]) -> &mut Self {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.raw_array(key, 6, values.len() as u64, &bytes)
    }

    /// A tensor; `shape` is outermost first, `bytes` are its rows.
    pub fn tensor(&mut self, name: &str, ty: TensorType, shape: &[usize], bytes: &[u8]) -> &mut Self {
        assert_eq!(self.announced, 0, "{name}: behind tensors that the caller writes");
        check(name, ty, shape, bytes);
        while !(self.data.len() as u64).is_multiple_of(self.alignment) {
            self.data.push(0);
        }
        let dims: Vec<u64> = shape.iter().rev().map(|&dim| dim as u64).collect();
        let offset = self.data.len() as u64;
        self.data.extend(bytes);
        self.raw_tensor(name, &dims, code(ty), offset)
    }

    /// A tensor from f32 values, quantized simply.
    pub fn tensor_f32(&mut self, name: &str, ty: TensorType, shape: &[usize], values: &[f32]) -> &mut Self {
        self.tensor(name, ty, shape, &quantize(ty, values))
    }

    /// A tensor whose bytes the caller writes behind the file's, for files that memory should not hold: one after the
    /// other in the order of these calls, each from a multiple of the alignment on. Gives where they begin, counted from
    /// the end of [`Self::finish`]'s bytes. Not beside [`Self::tensor`].
    pub fn announce(&mut self, name: &str, ty: TensorType, shape: &[usize]) -> u64 {
        assert!(self.data.is_empty(), "{name}: behind tensors in memory");
        let offset = self.announced.next_multiple_of(self.alignment);
        self.announced = offset + bytes(name, ty, shape) as u64;
        let dims: Vec<u64> = shape.iter().rev().map(|&dim| dim as u64).collect();
        self.raw_tensor(name, &dims, code(ty), offset);
        offset
    }

    /// A tensor's description alone, as it stands in the file: innermost dimension first, type code, and
    /// offset into the data section.
    pub fn raw_tensor(&mut self, name: &str, dims: &[u64], code: u32, offset: u64) -> &mut Self {
        push_string(&mut self.descriptions, name.as_bytes());
        self.descriptions.extend((dims.len() as u32).to_le_bytes());
        self.descriptions.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
        self.descriptions.extend(code.to_le_bytes());
        self.descriptions.extend(offset.to_le_bytes());
        self.tensors += 1;
        self
    }

    /// The file. There is no padding behind the last tensor, so that every shorter prefix is damaged.
    pub fn finish(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(self.version.to_le_bytes());
        file.extend(self.tensors.to_le_bytes());
        file.extend(self.entries.to_le_bytes());
        file.extend(&self.metadata);
        file.extend(&self.descriptions);
        if !self.data.is_empty() || self.announced > 0 {
            file.resize(file.len().next_multiple_of(self.alignment as usize), 0);
        }
        file.extend(&self.data);
        file
    }
}

fn push_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}

fn code(ty: TensorType) -> u32 {
    match ty {
        TensorType::F32 => 0,
        TensorType::F16 => 1,
        TensorType::Q4_0 => 2,
        TensorType::Q4_1 => 3,
        TensorType::Q5_0 => 6,
        TensorType::Q5_1 => 7,
        TensorType::Q8_0 => 8,
        TensorType::Q4K => 12,
        TensorType::Q5K => 13,
        TensorType::Q6K => 14,
        TensorType::I8 => 24,
        TensorType::I32 => 26,
        TensorType::I64 => 27,
        TensorType::BF16 => 30,
        TensorType::U8 => panic!("GGUF has no U8 tensors"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_tensors_make_the_same_file() {
        let (a, b) = (quantize(TensorType::F16, &[1.0, 2.0, 3.0]), quantize(TensorType::Q8_0, &[0.5; 64]));
        let mut whole = GgufWriter::new(3);
        whole.u32("n", 1).tensor("a", TensorType::F16, &[3], &a).tensor("b", TensorType::Q8_0, &[2, 32], &b);
        let mut head = GgufWriter::new(3);
        head.u32("n", 1);
        assert_eq!(head.announce("a", TensorType::F16, &[3]), 0);
        let at = head.announce("b", TensorType::Q8_0, &[2, 32]) as usize;
        let mut file = head.finish();
        let start = file.len();
        file.extend(a);
        file.resize(start + at, 0);
        file.extend(b);
        assert_eq!(file, whole.finish());
    }
}
