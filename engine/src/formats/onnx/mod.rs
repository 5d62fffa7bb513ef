//! ONNX: initializers as tensors, and the facts of the graph that are needed to name them.
//!
//! An ONNX file is one protobuf `ModelProto`
//! (<https://github.com/onnx/onnx/blob/main/onnx/onnx.proto>). Exporters keep module names for most weights but
//! call matrices after nodes (`onnx::MatMul_6116_quantized`); the order and names of the nodes that use them say
//! which they are. Nothing here runs a graph.
//!
//! ```
//! use repartee_engine::formats::{TensorSource, onnx::Onnx, testing};
//!
//! let onnx = Onnx::from_bytes(testing::samples::onnx()).unwrap();
//! let conv = onnx.graph().nodes_of("Conv").next().unwrap();
//! assert_eq!(conv.ints("strides").unwrap(), Some(&[1, -2][..]));
//! assert_eq!(onnx.tensor(&conv.inputs[1]).unwrap().shape, [2, 3]);
//! ```
//!
//! Bytes that the file stores as they are (`raw_data`, packed floats) stay in the map; other typed data is
//! decoded once. Data in other files, sparse tensors and segments are refused.

mod graph;
mod tensor;
mod wire;

use std::collections::BTreeMap;
use std::path::Path;

pub use graph::{Attribute, Dim, Graph, Node, ValueInfo};
pub use tensor::OnnxTensor;

use super::index::{Data, Entry};
use super::reader::{Budget, Reader};
use super::{FormatError, FormatErrorKind, Mapped, TensorSource, TensorView};
use wire::Message;

/// An open ONNX model. As a [`TensorSource`] it offers the initializers of the main graph.
#[derive(Debug)]
pub struct Onnx {
    file: Mapped,
    model: Model,
}

#[derive(Debug, Default)]
struct Model {
    ir_version: i64,
    producer: String,
    metadata: BTreeMap<String, String>,
    /// Domain (empty for ONNX's own) and version of each operator set.
    opsets: Vec<(String, i64)>,
    graph: Graph,
}

impl Onnx {
    /// Maps the file at `path` and reads all of its graph.
    ///
    /// # Errors
    /// Any [`FormatErrorKind`], with the offset and the field.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FormatError> {
        Self::read(Mapped::open(path)?)
    }

    /// The same for a file that is already in memory.
    ///
    /// # Errors
    /// As [`Onnx::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, FormatError> {
        Self::read(Mapped::from_bytes(bytes))
    }

    fn read(file: Mapped) -> Result<Self, FormatError> {
        match parse(&file) {
            Ok(model) => Ok(Self { file, model }),
            Err(error) => Err(error.in_file(file.path())),
        }
    }

    /// The version of the format itself.
    pub fn ir_version(&self) -> i64 {
        self.model.ir_version
    }

    /// The program that wrote the file.
    pub fn producer(&self) -> &str {
        &self.model.producer
    }

    /// The version of the operator set `domain`; ONNX's own has the empty name.
    pub fn opset(&self, domain: &str) -> Option<i64> {
        self.model.opsets.iter().find(|(name, _)| name == domain).map(|(_, version)| *version)
    }

    /// The text that the model's metadata has for `key`.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.model.metadata.get(key).map(String::as_str)
    }

    /// The main graph.
    pub fn graph(&self) -> &Graph {
        &self.model.graph
    }

    /// The initializer `name` of `graph`, which may be one within a node.
    ///
    /// # Errors
    /// As [`TensorSource::tensor`].
    pub fn tensor_in<'a>(&'a self, graph: &'a Graph, name: &str) -> Result<TensorView<'a>, FormatError> {
        graph
            .initializers
            .get(name)
            .and_then(|entry| entry.view(|_| Some(&self.file)))
            .map_err(|error| error.in_file(self.file.path()))
    }
}

impl TensorSource for Onnx {
    fn names(&self) -> Vec<String> {
        self.model.graph.initializers.names()
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError> {
        self.tensor_in(&self.model.graph, name)
    }

    fn release(&self, name: &str) {
        if let Some(Entry { data: Data::Span { range, .. }, .. }) = self.model.graph.initializers.find(name) {
            self.file.release(range.clone());
        }
    }
}

/// Reads a `ModelProto`.
fn parse(file: &[u8]) -> Result<Model, FormatError> {
    let mut budget = Budget::new();
    let mut model = Model::default();
    let mut graph = None;
    let what = "model";
    let mut fields = Message::new(Reader::new(file));
    while let Some(field) = fields.next(&what)? {
        match field.number {
            1 => model.ir_version = field.int(&"ir_version")?,
            2 => {
                let producer = field.text(&"producer_name")?;
                budget.charge(producer.len(), field.offset, &"producer_name")?;
                model.producer = producer.to_owned();
            }
            7 => {
                let main = graph::parse_main(field.message(&"graph")?, &mut budget)?;
                if graph.replace(main).is_some() {
                    return Err(FormatError::at(FormatErrorKind::Duplicate, field.offset, "graph"));
                }
            }
            8 => {
                // OperatorSetIdProto: domain(1), version(2).
                let (domain, version) = pair(field.message(&"opset_import")?, "opset_import", |f| {
                    f.int(&"opset_import version")
                })?;
                budget.charge(domain.len() + size_of::<(String, i64)>(), field.offset, &"opset_import")?;
                model.opsets.push((domain.to_owned(), version.unwrap_or(0)));
            }
            14 => {
                // StringStringEntryProto: key(1), value(2).
                let (key, value) = pair(field.message(&"metadata_props")?, "metadata_props", |f| {
                    f.text(&"metadata_props value")
                })?;
                let value = value.unwrap_or("");
                let bytes = key.len() + value.len() + size_of::<(String, String)>();
                budget.charge(bytes, field.offset, &"metadata_props")?;
                if model.metadata.insert(key.to_owned(), value.to_owned()).is_some() {
                    return Err(FormatError::at(
                        FormatErrorKind::Duplicate,
                        field.offset,
                        format_args!("metadata `{key}`"),
                    ));
                }
            }
            _ => {}
        }
    }
    let end = file.len() as u64;
    model.graph = graph.ok_or_else(|| {
        FormatError::at(FormatErrorKind::WrongFormat { expected: "an ONNX model" }, end, "graph")
    })?;
    if model.opsets.is_empty() {
        let kind =
            FormatErrorKind::Invalid("is missing; the file is cut short or not an ONNX model".to_owned());
        return Err(FormatError::at(kind, end, "opset_import"));
    }
    Ok(model)
}

/// A message of a text (1) and something else (2).
fn pair<'a, T>(
    message: Message<'a>,
    what: &'static str,
    second: impl Fn(&wire::Field<'a>) -> Result<T, FormatError>,
) -> Result<(&'a str, Option<T>), FormatError> {
    let (mut first, mut other) = ("", None);
    let mut fields = message;
    while let Some(field) = fields.next(&what)? {
        match field.number {
            1 => first = field.text(&what)?,
            2 => other = Some(second(&field)?),
            _ => {}
        }
    }
    Ok((first, other))
}

#[cfg(test)]
mod tests;
