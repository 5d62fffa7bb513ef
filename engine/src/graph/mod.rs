//! The graph: what a model computes, without saying where.
//!
//! Model code calls [`GraphBuilder`], one method for each op, reading like the paper; a backend compiles the
//! finished [`Graph`] into a program. Mistakes in shapes are collected and reported by
//! [`GraphBuilder::finish`], so that model code stays free of error handling.
//!
//! ```
//! use repartee_engine::graph::{GraphBuilder, UnaryOp, Precision};
//! let mut g = GraphBuilder::new("mlp");
//! let n = g.symbol("tokens", 512);
//! let x = g.input_f32("x", n, 64);
//! let up = g.linear(x, "up.weight", Some("up.bias"), 256, Precision::F32);
//! let act = g.unary(up, UnaryOp::Gelu);
//! let down = g.linear(act, "down.weight", None, 64, Precision::F32);
//! g.output("y", down);
//! let graph = g.finish().unwrap();
//! assert_eq!(graph.nodes.len(), 3);
//! ```
//!
//! Rejected: general tensors of any rank. Everything the models need is a matrix of rows (time, tokens) and
//! columns (channels) once heads are a property of the attention op; with one layout no kernel needs
//! transposes, and a convolution is a product whose rows overlap.

mod builder;
mod dim;
pub mod op;
pub mod step;
pub mod work;

pub use builder::GraphBuilder;
pub use dim::{Dim, Symbol};
pub use op::{
    BinaryOp, CacheStart, ConvShape, Direction, KeyValues, Op, PadMode, Precision, RopeStyle,
    TransposedShape, UnaryOp,
};
pub use step::StepRow;

/// A value of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Value(pub(crate) u32);

impl Value {
    /// Position in [`Graph::values`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A weight of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Weight(pub(crate) u32);

impl Weight {
    /// Position in [`Graph::weights`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A state of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StateId(pub(crate) u32);

impl StateId {
    /// Position in [`Graph::states`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Type of a value's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ElementType {
    /// 32-bit floats.
    F32,
    /// 32-bit signed integers: token ids and indices.
    I32,
}

/// Rows and columns of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// Number of rows, perhaps known only at run time.
    pub rows: Dim,
    /// Number of columns.
    pub cols: usize,
}

/// What is known of a value.
#[derive(Clone, PartialEq, Debug)]
pub struct ValueInfo {
    /// Rows and columns.
    pub shape: Shape,
    /// Element type.
    pub ty: ElementType,
}

/// How a weight's file layout becomes rows and columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WeightLayout {
    /// File shape `[rows, cols]`; a product's or a table's matrix.
    Matrix,
    /// File shape `[rows, channels, taps]` read as a matrix with columns ordered tap by tap:
    /// `cols = taps * channels`.
    Conv {
        /// Kernel length.
        taps: usize,
    },
    /// File shape `[channels, rows, taps]` read as a matrix with columns ordered tap by tap:
    /// `cols = taps * channels`.
    ConvTransposed {
        /// Kernel length.
        taps: usize,
        /// Stride it is used with: backends pack by phase.
        stride: usize,
    },
    /// `cols` numbers, whatever their file shape; one row.
    Vector,
}

/// A weight that a graph needs: the tensor's name in the file and its expected size.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WeightSpec {
    /// Name in the file.
    pub name: String,
    /// How the file's numbers are arranged.
    pub layout: WeightLayout,
    /// Output rows.
    pub rows: usize,
    /// Columns of each row.
    pub cols: usize,
}

/// Type of a state's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StateType {
    /// 32-bit floats.
    F32,
    /// 16-bit floats: halves a key-value cache.
    F16,
}

/// How a state behaves when a run is cancelled or a conversation goes back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StateKind {
    /// Rows behind the position do not exist: truncating is setting the position, and a cancelled run leaves
    /// nothing to undo.
    Cache {
        /// Columns of one head, so that a backend may choose a layout for attention.
        head_dim: usize,
    },
    /// Every run replaces it; a run's new value counts only when the run ends.
    Recurrent,
}

/// A state: memory that outlives a run. Programs that name the same state share it in a session.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StateSpec {
    /// Name within the session.
    pub name: String,
    /// Rows; for caches `slots * context`.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Element type.
    pub ty: StateType,
    /// Behaviour.
    pub kind: StateKind,
}

/// An op with its inputs and its output.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// Inputs in the order that [`Op`] documents.
    pub inputs: Vec<Value>,
    /// The output; for ops without one, the first input.
    pub output: Option<Value>,
}

/// A run-time row count: name and maximum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SymbolInfo {
    /// For messages.
    pub name: String,
    /// Memory is planned for this many.
    pub max: usize,
}

/// A finished graph. Nodes stand in an order in which they can run; side effects happen in that order.
#[derive(Clone, PartialEq, Debug)]
pub struct Graph {
    /// For logs and errors.
    pub name: String,
    /// Sequences that run side by side (rows of the step block).
    pub slots: usize,
    /// Run-time row counts.
    pub symbols: Vec<SymbolInfo>,
    /// Values.
    pub values: Vec<ValueInfo>,
    /// Weights.
    pub weights: Vec<WeightSpec>,
    /// States.
    pub states: Vec<StateSpec>,
    /// Ops in running order.
    pub nodes: Vec<Node>,
    /// Inputs by name.
    pub inputs: Vec<(String, Value)>,
    /// Outputs by name.
    pub outputs: Vec<(String, Value)>,
}

impl Graph {
    /// The value's shape.
    pub fn shape(&self, v: Value) -> Shape {
        self.values[v.index()].shape
    }

    /// The most rows that `v` can have: what memory is planned for.
    pub fn max_rows(&self, v: Value) -> usize {
        let maxima: Vec<usize> = self.symbols.iter().map(|s| s.max).collect();
        self.shape(v).rows.most(&maxima)
    }

    /// The value that holds `v`'s memory and the column where `v` starts in it: views are followed.
    pub fn base_of(&self, v: Value) -> (Value, usize) {
        let mut at = (v, 0);
        while let Some(node) = self.nodes.iter().find(|n| n.output == Some(at.0)) {
            match node.op {
                Op::Columns { start, .. } => at = (node.inputs[0], at.1 + start),
                _ => break,
            }
        }
        at
    }
}

/// What is wrong with a graph: the first mistake, with the op that made it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("graph {graph}: {op}: {problem}")]
pub struct GraphError {
    /// Name of the graph.
    pub graph: String,
    /// Op and its place.
    pub op: String,
    /// What does not fit.
    pub problem: String,
}
