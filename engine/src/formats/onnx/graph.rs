//! The facts of a graph: nodes in order, attributes, inputs and outputs.

use std::fmt::Display;

use super::tensor::{self, OnnxTensor};
use super::wire::{Field, Message};
use crate::formats::index::Index;
use crate::formats::reader::{Budget, TENSORS_LIMIT, limited};
use crate::formats::{FormatError, FormatErrorKind};

/// Graphs within nodes within graphs that are accepted; published models have two or three.
const DEPTH_LIMIT: usize = 8;

/// A graph: that of the model, or one within a node (`If`, `Loop`).
#[derive(Debug, Default)]
pub struct Graph {
    /// The name, often empty.
    pub name: String,
    /// All nodes, in the file's (topological) order.
    pub nodes: Vec<Node>,
    /// The inputs; up to IR version 3 these include the initializers.
    pub inputs: Vec<ValueInfo>,
    /// The outputs.
    pub outputs: Vec<ValueInfo>,
    pub(super) initializers: Index,
}

/// An operation of a graph.
#[derive(Debug, Default)]
pub struct Node {
    /// The operator, as in `MatMulInteger`.
    pub op_type: String,
    /// The operator's set; empty for ONNX's own.
    pub domain: String,
    /// The name, which exporters make from module names.
    pub name: String,
    /// Names of the inputs; empty for an optional one that is absent.
    pub inputs: Vec<String>,
    /// Names of the outputs; empty for one that is not wanted.
    pub outputs: Vec<String>,
    /// Sorted by name.
    attributes: Vec<(String, Attribute)>,
}

/// An attribute of a node.
#[derive(Debug)]
pub enum Attribute {
    /// A float.
    Float(f32),
    /// An integer.
    Int(i64),
    /// A text, which ONNX stores as bytes.
    String(Vec<u8>),
    /// A tensor.
    Tensor(Box<OnnxTensor>),
    /// A graph.
    Graph(Box<Graph>),
    /// Floats.
    Floats(Vec<f32>),
    /// Integers.
    Ints(Vec<i64>),
    /// Texts.
    Strings(Vec<Vec<u8>>),
    /// Tensors.
    Tensors(Vec<OnnxTensor>),
    /// Graphs.
    Graphs(Vec<Graph>),
    /// A type that is not read (sparse tensors, types), by its code.
    Other(i64),
}

/// A named input or output of a graph.
#[derive(Debug)]
pub struct ValueInfo {
    /// The name.
    pub name: String,
    /// ONNX's element type code (1 is FLOAT, 7 is INT64), 0 if it is not a tensor.
    pub element_type: i64,
    /// The dimensions, outermost first; `None` if even their number is open.
    pub dims: Option<Vec<Dim>>,
}

/// A dimension of an input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dim {
    /// A number.
    Fixed(i64),
    /// A name that stands for a run-time number; empty for an open dimension.
    Named(String),
}

impl Graph {
    /// Names of the initializers, in the file's order.
    pub fn initializers(&self) -> impl Iterator<Item = &str> {
        self.initializers.entries().iter().map(|entry| entry.name.as_str())
    }

    /// Nodes of `op_type`, in order.
    pub fn nodes_of<'a>(&'a self, op_type: &'a str) -> impl Iterator<Item = &'a Node> {
        self.nodes.iter().filter(move |node| node.op_type == op_type)
    }

    /// The node that makes `value`, if a node does. A walk over all nodes.
    pub fn producer(&self, value: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.outputs.iter().any(|output| output == value))
    }
}

impl Node {
    /// The attribute called `name`.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        let at = self.attributes.binary_search_by(|(n, _)| n.as_str().cmp(name)).ok()?;
        Some(&self.attributes[at].1)
    }

    /// All attributes, sorted by name.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        self.attributes.iter().map(|(name, attribute)| (name.as_str(), attribute))
    }

    /// The integer attribute `name`, or `None` if the node relies on the operator's default.
    ///
    /// # Errors
    /// [`FormatErrorKind::WrongType`] naming node and attribute. The same holds for the getters below.
    pub fn int(&self, name: &str) -> Result<Option<i64>, FormatError> {
        self.typed(name, "an integer", |a| if let Attribute::Int(x) = a { Some(*x) } else { None })
    }

    /// The float attribute `name`.
    pub fn float(&self, name: &str) -> Result<Option<f32>, FormatError> {
        self.typed(name, "a float", |a| if let Attribute::Float(x) = a { Some(*x) } else { None })
    }

    /// The text attribute `name`.
    pub fn text(&self, name: &str) -> Result<Option<&str>, FormatError> {
        self.typed(name, "a text", |a| {
            if let Attribute::String(bytes) = a { std::str::from_utf8(bytes).ok() } else { None }
        })
    }

    /// The attribute `name`, a list of integers.
    pub fn ints(&self, name: &str) -> Result<Option<&[i64]>, FormatError> {
        self.typed(name, "integers", |a| if let Attribute::Ints(x) = a { Some(&x[..]) } else { None })
    }

    /// The attribute `name`, a list of floats.
    pub fn floats(&self, name: &str) -> Result<Option<&[f32]>, FormatError> {
        self.typed(name, "floats", |a| if let Attribute::Floats(x) = a { Some(&x[..]) } else { None })
    }

    /// The tensor attribute `name`, as in `Constant`'s `value`.
    pub fn tensor(&self, name: &str) -> Result<Option<&OnnxTensor>, FormatError> {
        self.typed(name, "a tensor", |a| if let Attribute::Tensor(x) = a { Some(&**x) } else { None })
    }

    /// The graph attribute `name`, as in `If`'s `then_branch`.
    pub fn graph(&self, name: &str) -> Result<Option<&Graph>, FormatError> {
        self.typed(name, "a graph", |a| if let Attribute::Graph(x) = a { Some(&**x) } else { None })
    }

    fn typed<'a, T>(
        &'a self,
        name: &str,
        expected: &'static str,
        take: impl Fn(&'a Attribute) -> Option<T>,
    ) -> Result<Option<T>, FormatError> {
        let Some(attribute) = self.attribute(name) else { return Ok(None) };
        take(attribute).map(Some).ok_or_else(|| {
            let kind = FormatErrorKind::WrongType { expected, found: attribute.kind().to_owned() };
            FormatError::about(kind, format_args!("attribute `{name}` of node `{}`", self.name))
        })
    }
}

impl Attribute {
    fn kind(&self) -> &'static str {
        match self {
            Self::Float(_) => "a float",
            Self::Int(_) => "an integer",
            Self::String(_) => "bytes",
            Self::Tensor(_) => "a tensor",
            Self::Graph(_) => "a graph",
            Self::Floats(_) => "floats",
            Self::Ints(_) => "integers",
            Self::Strings(_) => "texts",
            Self::Tensors(_) => "tensors",
            Self::Graphs(_) => "graphs",
            Self::Other(_) => "of a type that is not read",
        }
    }
}

/// Reads a `GraphProto`; `depth` is how many more graphs may be nested.
pub(super) fn parse(message: Message<'_>, budget: &mut Budget, depth: usize) -> Result<Graph, FormatError> {
    let mut graph = Graph::default();
    let mut initializers = Vec::new();
    let mut fields = message;
    let what = "graph";
    while let Some(field) = fields.next(&what)? {
        match field.number {
            1 => {
                let node = format_args!("node {}", graph.nodes.len());
                budget.charge(size_of::<Node>(), field.offset, &node)?;
                let node = parse_node(field.message(&node)?, budget, depth, &node)?;
                graph.nodes.push(node);
            }
            2 => graph.name = string(&field, budget, &"name of the graph")?,
            5 => {
                limited(
                    initializers.len() as u64 + 1,
                    TENSORS_LIMIT,
                    field.offset,
                    &"number of initializers",
                )?;
                let place = format_args!("initializer {}", initializers.len());
                let entry = tensor::parse(&field.message(&place)?, budget, &place)?;
                if entry.name.is_empty() {
                    return Err(FormatError::at(
                        FormatErrorKind::EmptyName,
                        field.offset,
                        format_args!("name of {place}"),
                    ));
                }
                initializers.push(entry);
            }
            11 | 12 => {
                let what = if field.number == 11 { "input of the graph" } else { "output of the graph" };
                budget.charge(size_of::<ValueInfo>(), field.offset, &what)?;
                let info = parse_value_info(field.message(&what)?, budget, &what)?;
                if field.number == 11 { graph.inputs.push(info) } else { graph.outputs.push(info) }
            }
            15 => {
                let kind = FormatErrorKind::UnsupportedType { found: "sparse tensor".to_owned() };
                return Err(FormatError::at(kind, field.offset, "initializer"));
            }
            _ => {}
        }
    }
    graph.initializers = Index::new(initializers)?;
    Ok(graph)
}

/// The graph of the model itself.
pub(super) fn parse_main(message: Message<'_>, budget: &mut Budget) -> Result<Graph, FormatError> {
    parse(message, budget, DEPTH_LIMIT)
}

fn string(field: &Field<'_>, budget: &mut Budget, what: &dyn Display) -> Result<String, FormatError> {
    let text = field.text(what)?;
    budget.charge(text.len() + size_of::<String>(), field.offset, what)?;
    Ok(text.to_owned())
}

fn bytes(field: &Field<'_>, budget: &mut Budget, what: &dyn Display) -> Result<Vec<u8>, FormatError> {
    let bytes = field.bytes(what)?;
    budget.charge(bytes.len() + size_of::<Vec<u8>>(), field.offset, what)?;
    Ok(bytes.to_vec())
}

fn parse_node(
    message: Message<'_>,
    budget: &mut Budget,
    depth: usize,
    what: &dyn Display,
) -> Result<Node, FormatError> {
    let mut node = Node::default();
    let mut fields = message;
    while let Some(field) = fields.next(what)? {
        match field.number {
            1 => node.inputs.push(string(&field, budget, &format_args!("input of {what}"))?),
            2 => node.outputs.push(string(&field, budget, &format_args!("output of {what}"))?),
            3 => node.name = string(&field, budget, &format_args!("name of {what}"))?,
            4 => node.op_type = string(&field, budget, &format_args!("op_type of {what}"))?,
            5 => {
                let what = format_args!("attribute of {what}");
                budget.charge(size_of::<(String, Attribute)>(), field.offset, &what)?;
                node.attributes.push(parse_attribute(field.message(&what)?, budget, depth, &what)?);
            }
            7 => node.domain = string(&field, budget, &format_args!("domain of {what}"))?,
            _ => {}
        }
    }
    node.attributes.sort_by(|a, b| a.0.cmp(&b.0));
    if let Some(pair) = node.attributes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let field = format_args!("attribute `{}` of {what}", pair[0].0);
        return Err(FormatError::at(FormatErrorKind::Duplicate, fields.offset(), field));
    }
    Ok(node)
}

/// Everything that an `AttributeProto` may hold; its type says which of it counts.
#[derive(Default)]
struct Held {
    float: f32,
    int: i64,
    string: Vec<u8>,
    tensor: Option<OnnxTensor>,
    graph: Option<Graph>,
    floats: Vec<f32>,
    ints: Vec<i64>,
    strings: Vec<Vec<u8>>,
    tensors: Vec<OnnxTensor>,
    graphs: Vec<Graph>,
    /// The type code of the field seen last, for files older than the type field.
    seen: i64,
}

fn parse_attribute(
    message: Message<'_>,
    budget: &mut Budget,
    depth: usize,
    what: &dyn Display,
) -> Result<(String, Attribute), FormatError> {
    let (mut name, mut code, mut held) = (String::new(), 0, Held::default());
    let offset = message.offset();
    let mut fields = message;
    while let Some(field) = fields.next(what)? {
        held.seen = match field.number {
            1 => {
                name = string(&field, budget, what)?;
                held.seen
            }
            20 => {
                code = field.int(what)?;
                held.seen
            }
            2 => {
                held.float = field.float(what)?;
                1
            }
            3 => {
                held.int = field.int(what)?;
                2
            }
            4 => {
                held.string = bytes(&field, budget, what)?;
                3
            }
            5 => {
                held.tensor = Some(OnnxTensor(tensor::parse(&field.message(what)?, budget, what)?));
                4
            }
            6 => {
                held.graph = Some(nested(&field, budget, depth, what)?);
                5
            }
            7 => {
                field.floats(what, |x| {
                    budget.charge(size_of::<f32>(), field.offset, what)?;
                    held.floats.push(x);
                    Ok(())
                })?;
                6
            }
            8 => {
                field.ints(what, |x| {
                    budget.charge(size_of::<i64>(), field.offset, what)?;
                    held.ints.push(x);
                    Ok(())
                })?;
                7
            }
            9 => {
                held.strings.push(bytes(&field, budget, what)?);
                8
            }
            10 => {
                held.tensors.push(OnnxTensor(tensor::parse(&field.message(what)?, budget, what)?));
                9
            }
            11 => {
                held.graphs.push(nested(&field, budget, depth, what)?);
                10
            }
            _ => held.seen,
        };
    }
    let code = if code == 0 { held.seen } else { code };
    let missing = || {
        let kind = FormatErrorKind::Invalid(format!("`{name}` has type code {code} but no such value"));
        FormatError::at(kind, offset, what)
    };
    let attribute = match code {
        1 => Attribute::Float(held.float),
        2 => Attribute::Int(held.int),
        3 => Attribute::String(held.string),
        4 => Attribute::Tensor(Box::new(held.tensor.ok_or_else(missing)?)),
        5 => Attribute::Graph(Box::new(held.graph.ok_or_else(missing)?)),
        6 => Attribute::Floats(held.floats),
        7 => Attribute::Ints(held.ints),
        8 => Attribute::Strings(held.strings),
        9 => Attribute::Tensors(held.tensors),
        10 => Attribute::Graphs(held.graphs),
        other => Attribute::Other(other),
    };
    Ok((name, attribute))
}

fn nested(
    field: &Field<'_>,
    budget: &mut Budget,
    depth: usize,
    what: &dyn Display,
) -> Result<Graph, FormatError> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(FormatError::at(FormatErrorKind::TooDeep { limit: DEPTH_LIMIT }, field.offset, what));
    };
    budget.charge(size_of::<Graph>(), field.offset, what)?;
    parse(field.message(what)?, budget, depth)
}

/// Reads a `ValueInfoProto`: name(1), type(2) { tensor_type(1) { elem_type(1), shape(2) { dim(1) } } }.
fn parse_value_info(
    message: Message<'_>,
    budget: &mut Budget,
    what: &dyn Display,
) -> Result<ValueInfo, FormatError> {
    let mut info = ValueInfo { name: String::new(), element_type: 0, dims: None };
    let mut fields = message;
    while let Some(field) = fields.next(what)? {
        match field.number {
            1 => info.name = string(&field, budget, what)?,
            2 => {
                let mut types = field.message(what)?;
                while let Some(ty) = types.next(what)? {
                    if ty.number == 1 {
                        parse_tensor_type(ty.message(what)?, budget, what, &mut info)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(info)
}

fn parse_tensor_type(
    message: Message<'_>,
    budget: &mut Budget,
    what: &dyn Display,
    info: &mut ValueInfo,
) -> Result<(), FormatError> {
    let mut fields = message;
    while let Some(field) = fields.next(what)? {
        match field.number {
            1 => info.element_type = field.int(what)?,
            2 => {
                let dims = info.dims.get_or_insert_default();
                let mut shape = field.message(what)?;
                while let Some(dim) = shape.next(what)? {
                    if dim.number == 1 {
                        budget.charge(size_of::<Dim>(), dim.offset, what)?;
                        dims.push(parse_dim(dim.message(what)?, budget, what)?);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn parse_dim(message: Message<'_>, budget: &mut Budget, what: &dyn Display) -> Result<Dim, FormatError> {
    let mut dim = Dim::Named(String::new());
    let mut fields = message;
    while let Some(field) = fields.next(what)? {
        match field.number {
            1 => dim = Dim::Fixed(field.int(what)?),
            2 => dim = Dim::Named(string(&field, budget, what)?),
            _ => {}
        }
    }
    Ok(dim)
}
