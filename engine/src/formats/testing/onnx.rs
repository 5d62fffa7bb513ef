//! A writer of ONNX files: protobuf messages put together by hand.

use super::{check, quantize};
use crate::formats::TensorType;

/// A protobuf message being written; field numbers are those of `onnx.proto`.
#[derive(Debug, Clone, Default)]
pub struct Proto(pub Vec<u8>);

impl Proto {
    /// An empty message.
    pub fn new() -> Self {
        Self::default()
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A tag of any wire type.
    pub fn tag(&mut self, field: u32, wire: u8) -> &mut Self {
        self.raw_varint(u64::from(field) << 3 | u64::from(wire));
        self
    }

    /// An integer.
    pub fn int(&mut self, field: u32, value: i64) -> &mut Self {
        self.tag(field, 0).raw_varint(value as u64);
        self
    }

    /// A float.
    pub fn float(&mut self, field: u32, value: f32) -> &mut Self {
        self.tag(field, 5).0.extend(value.to_le_bytes());
        self
    }

    /// Bytes or text.
    pub fn bytes(&mut self, field: u32, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.tag(field, 2).raw_varint(bytes.as_ref().len() as u64);
        self.0.extend(bytes.as_ref());
        self
    }

    /// A message within this one.
    pub fn message(&mut self, field: u32, message: &Self) -> &mut Self {
        self.bytes(field, &message.0)
    }

    /// Integers, packed.
    pub fn packed(&mut self, field: u32, values: &[i64]) -> &mut Self {
        let mut packed = Self::new();
        for &value in values {
            packed.raw_varint(value as u64);
        }
        self.message(field, &packed)
    }

    /// A `TensorProto` without data.
    pub fn tensor_head(name: &str, data_type: i64, dims: &[i64]) -> Self {
        let mut tensor = Self::new();
        for &dim in dims {
            tensor.int(1, dim);
        }
        tensor.int(2, data_type);
        if !name.is_empty() {
            tensor.bytes(8, name);
        }
        tensor
    }

    /// An `AttributeProto` head: name and type code.
    pub fn attribute(name: &str, code: i64) -> Self {
        let mut attribute = Self::new();
        attribute.bytes(1, name).int(20, code);
        attribute
    }

    /// A `NodeProto`.
    pub fn node(op_type: &str, name: &str, inputs: &[&str], outputs: &[&str], attributes: &[Self]) -> Self {
        let mut node = Self::new();
        for input in inputs {
            node.bytes(1, input);
        }
        for output in outputs {
            node.bytes(2, output);
        }
        node.bytes(3, name).bytes(4, op_type);
        for attribute in attributes {
            node.message(5, attribute);
        }
        node
    }

    /// A `ValueInfoProto` of a tensor; a dimension is a number or a name.
    pub fn value_info(name: &str, element: i64, dims: &[Result<i64, &str>]) -> Self {
        let (mut shape, mut tensor, mut ty, mut info) = (Self::new(), Self::new(), Self::new(), Self::new());
        for dim in dims {
            let mut message = Self::new();
            match dim {
                Ok(value) => message.int(1, *value),
                Err(name) => message.bytes(2, name),
            };
            shape.message(1, &message);
        }
        tensor.int(1, element).message(2, &shape);
        ty.message(1, &tensor);
        info.bytes(1, name).message(2, &ty);
        info
    }
}

/// Writes an ONNX model in memory.
#[derive(Debug, Clone, Default)]
pub struct OnnxWriter {
    /// The `GraphProto`, for fields that have no method here.
    pub graph: Proto,
    metadata: Vec<(String, String)>,
}

impl OnnxWriter {
    /// A model with an empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// An initializer with its bytes as `raw_data`; `shape` is outermost first.
    pub fn tensor(&mut self, name: &str, ty: TensorType, shape: &[usize], bytes: &[u8]) -> &mut Self {
        check(name, ty, shape, bytes);
        let dims: Vec<i64> = shape.iter().map(|&dim| dim as i64).collect();
        let mut tensor = Proto::tensor_head(name, Self::data_type(ty), &dims);
        tensor.bytes(9, bytes);
        self.initializer(&tensor)
    }

    /// An initializer from f32 values.
    pub fn tensor_f32(&mut self, name: &str, ty: TensorType, shape: &[usize], values: &[f32]) -> &mut Self {
        self.tensor(name, ty, shape, &quantize(ty, values))
    }

    /// Any `TensorProto` as an initializer.
    pub fn initializer(&mut self, tensor: &Proto) -> &mut Self {
        self.graph.message(5, tensor);
        self
    }

    /// A node.
    pub fn node(
        &mut self,
        op_type: &str,
        name: &str,
        inputs: &[&str],
        outputs: &[&str],
        attributes: &[Proto],
    ) -> &mut Self {
        self.graph.message(1, &Proto::node(op_type, name, inputs, outputs, attributes));
        self
    }

    /// An entry of `metadata_props`.
    pub fn metadata(&mut self, key: &str, value: &str) -> &mut Self {
        self.metadata.push((key.to_owned(), value.to_owned()));
        self
    }

    /// The file. The operator sets, which every model must have, come last, so that every shorter prefix is
    /// damaged.
    pub fn finish(&self) -> Vec<u8> {
        let (mut model, mut opset) = (Proto::new(), Proto::new());
        model.int(1, 8).bytes(2, "test").message(7, &self.graph);
        for (key, value) in &self.metadata {
            let mut pair = Proto::new();
            pair.bytes(1, key).bytes(2, value);
            model.message(14, &pair);
        }
        opset.int(2, 17);
        model.message(8, &opset);
        model.0
    }

    /// ONNX's code of a type.
    pub fn data_type(ty: TensorType) -> i64 {
        match ty {
            TensorType::F32 => 1,
            TensorType::U8 => 2,
            TensorType::I8 => 3,
            TensorType::I32 => 6,
            TensorType::I64 => 7,
            TensorType::F16 => 10,
            TensorType::BF16 => 16,
            other => panic!("ONNX has no {other}"),
        }
    }
}
