//! From a graph to steps: weights packed, memory planned, products of one input joined.

use std::sync::Arc;

use super::exec_products::{ROWS, wide_floats};
use super::kernels::attention::MAX_ROWS;
use super::kernels::columns::{CHUNK_ROWS, Then};
use super::kernels::int_product::IntRows;
use super::pack::{FloatMatrix, IntMatrix, Phases, TILE, Vector};
use crate::backends::weights::plain_rows;
use crate::backends::{CompileError, CompileErrorKind, WeightSet};
use crate::formats::{TensorSource, TensorType, blocks};
use crate::graph::{
    ConvShape, Graph, KeyValues, Op, Precision, TransposedShape, UnaryOp, Value, Weight, WeightSpec,
};

/// A product's matrix.
#[derive(Clone)]
pub(super) enum Matrix {
    Float(Arc<FloatMatrix>),
    Int(Arc<IntMatrix>),
}

impl Matrix {
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Float(m) => m.rows,
            Self::Int(m) => m.rows,
        }
    }
}

/// One product of a joined step.
pub(super) struct Member {
    pub(super) matrix: Matrix,
    pub(super) bias: Option<Arc<Vector>>,
    pub(super) out: Value,
}

/// A table whose rows are read from the file as they are needed: only rows that are used ever enter memory.
pub(super) struct FileRows {
    /// Keeps the mapping alive.
    _source: Arc<dyn TensorSource>,
    data: *const u8,
    row_bytes: usize,
    ty: TensorType,
    rows: usize,
    /// Scale and zero point of the table, or of each row; empty for plain numbers.
    factors: Vec<(f32, f32)>,
}

// SAFETY: read-only memory that `_source` keeps alive and unchanged.
unsafe impl Send for FileRows {}
// SAFETY: as above.
unsafe impl Sync for FileRows {}

impl FileRows {
    fn new(source: Arc<dyn TensorSource>, spec: &WeightSpec) -> Result<Self, CompileErrorKind> {
        let view = source.tensor(&spec.name)?;
        let count =
            view.affine.map_or(0, |a| if a.scales.len() + a.zeros.len() == 2 { 1 } else { spec.rows });
        let factors = (0..count).filter_map(|row| view.affine.map(|a| a.of(row))).collect();
        let (data, ty, row_bytes) = (view.data.as_ptr(), view.ty, view.data.len() / spec.rows.max(1));
        Ok(Self { _source: source, data, row_bytes, ty, rows: spec.rows, factors })
    }

    /// Row `id` into `out`; zeros for an id outside.
    pub(super) fn read(&self, id: i32, out: &mut [f32]) {
        let row = usize::try_from(id).ok().filter(|&r| r < self.rows);
        let read = row.is_some_and(|r| {
            // SAFETY: `rows * row_bytes` bytes were checked when this was made.
            let bytes =
                unsafe { std::slice::from_raw_parts(self.data.add(r * self.row_bytes), self.row_bytes) };
            let known = blocks::dequantize(self.ty, bytes, out).is_ok();
            if let Some((scale, zero)) = self.factors.get(if self.factors.len() == 1 { 0 } else { r }) {
                out.iter_mut().for_each(|q| *q = (*q - zero) * scale);
            }
            known
        });
        if !read {
            out.fill(0.0);
        }
    }
}

/// An activation's factors for each column.
pub(super) struct SnakeFactors {
    alpha: Arc<Vector>,
    inverse: Vector,
}

impl SnakeFactors {
    fn new(alpha: Arc<Vector>) -> Self {
        let inverse = Vector(alpha.0.iter().map(|a| a.recip()).collect());
        Self { alpha, inverse }
    }

    pub(super) fn then(&self) -> Then {
        Then::Snake { alpha: self.alpha.0.as_ptr(), inverse: self.inverse.0.as_ptr() }
    }
}

/// What is done to a norm's result before it is stored.
pub(super) enum Activation {
    None,
    Leaky(f32),
    Snake(SnakeFactors),
}

impl Activation {
    pub(super) fn then(&self) -> Then {
        match self {
            Self::None => Then::Nothing,
            Self::Leaky(slope) => Then::Leaky(*slope),
            Self::Snake(factors) => factors.then(),
        }
    }
}

/// What the program does for one node or several joined ones.
pub(super) enum Work {
    /// Products of one input.
    Linear {
        members: Vec<Member>,
        precision: Precision,
    },
    Embed {
        table: FileRows,
    },
    Conv {
        matrix: Arc<FloatMatrix>,
        bias: Option<Arc<Vector>>,
        shape: ConvShape,
    },
    ConvCarry {
        matrix: Arc<FloatMatrix>,
        bias: Option<Arc<Vector>>,
        shape: ConvShape,
    },
    /// Weights `[taps][channels]`.
    Depthwise {
        weights: Arc<Vector>,
        bias: Option<Arc<Vector>>,
        shape: ConvShape,
    },
    DepthwiseCarry {
        weights: Arc<Vector>,
        bias: Option<Arc<Vector>>,
        shape: ConvShape,
    },
    /// The bias once for each phase.
    ConvTransposed {
        phases: Arc<Phases>,
        bias: Option<Vector>,
        shape: TransposedShape,
    },
    /// Weights `[phase][window][channels]`, taps of a phase from the last to the first.
    DepthwiseTransposed {
        weights: Vector,
        bias: Option<Arc<Vector>>,
        shape: TransposedShape,
    },
    /// Over columns, with the activation behind it that writes `out`.
    InstanceNorm {
        then: Activation,
        out: Value,
    },
    Snake {
        factors: SnakeFactors,
    },
    Norm {
        gain: Arc<Vector>,
        bias: Option<Arc<Vector>>,
    },
    AddPositions {
        table: Arc<Vector>,
    },
    Rope {
        frequencies: Vec<f32>,
    },
    Lstm {
        w_ih: Arc<FloatMatrix>,
        w_hh: Arc<FloatMatrix>,
        bias: Vector,
    },
    /// Everything that needs only the node.
    Plain,
    /// Nothing: a view, or joined with an earlier step.
    Nothing,
}

/// One step: a node and its work.
pub(super) struct Step {
    pub(super) node: usize,
    pub(super) work: Work,
}

/// Where a value lies, in floats.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub(super) offset: usize,
    pub(super) stride: usize,
}

/// A compiled graph.
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) places: Vec<Place>,
    /// Floats of the values.
    pub(super) arena: usize,
    /// Bytes that the largest step needs beside the values.
    pub(super) scratch: usize,
    /// Floats for each worker.
    pub(super) worker_scratch: usize,
}

/// Packs a product's matrix for a precision.
fn matrix(
    graph: &Graph,
    weights: &WeightSet,
    w: Weight,
    precision: Precision,
) -> Result<Matrix, CompileError> {
    let spec = &graph.weights[w.index()];
    let ty = weights.view(spec).map_err(|kind| CompileError::in_graph(&graph.name, kind))?.ty;
    if precision == Precision::Int8 && IntMatrix::kinds(ty).is_some() {
        return Ok(Matrix::Int(weights.get_or_pack(&graph.name, spec, |v| IntMatrix::pack(spec, v))?));
    }
    float_matrix(graph, weights, w).map(Matrix::Float)
}

fn float_matrix(graph: &Graph, weights: &WeightSet, w: Weight) -> Result<Arc<FloatMatrix>, CompileError> {
    let spec = &graph.weights[w.index()];
    weights.get_or_pack(&graph.name, spec, |v| FloatMatrix::pack(spec, v))
}

fn vector(graph: &Graph, weights: &WeightSet, w: Weight) -> Result<Arc<Vector>, CompileError> {
    let spec = &graph.weights[w.index()];
    weights.get_or_pack(&graph.name, spec, Vector::pack)
}

/// Plans a graph.
pub(super) fn plan(graph: &Graph, weights: &WeightSet) -> Result<Plan, CompileError> {
    let mut steps = Vec::with_capacity(graph.nodes.len());
    // The node whose step does a node's work, when that is an earlier one.
    let mut joined = vec![None; graph.nodes.len()];
    for node in 0..graph.nodes.len() {
        let work =
            if joined[node].is_some() { Work::Nothing } else { work(graph, weights, node, &mut joined)? };
        steps.push(Step { node, work });
    }
    let (places, arena) = place_values(graph, &joined);
    let (scratch, worker_scratch) = scratch(graph, &steps);
    Ok(Plan { steps, places, arena, scratch, worker_scratch })
}

/// The node behind `node` when it alone uses what `node` computes.
fn only_user(graph: &Graph, node: usize) -> Option<(usize, &Op)> {
    let out = graph.nodes[node].output?;
    let users = graph.nodes.iter().filter(|n| n.inputs.contains(&out)).count();
    let next = graph.nodes.get(node + 1).filter(|n| n.inputs == [out])?;
    let kept = graph.outputs.iter().any(|(_, v)| *v == out);
    (users == 1 && !kept).then_some((node + 1, &next.op))
}

fn work(
    graph: &Graph,
    weights: &WeightSet,
    node: usize,
    joined: &mut [Option<usize>],
) -> Result<Work, CompileError> {
    let opt = |w: Option<Weight>| w.map(|w| vector(graph, weights, w)).transpose();
    let n = &graph.nodes[node];
    Ok(match n.op {
        Op::Linear { precision, .. } => {
            // Neighbours with the same input share one quantisation and one parallel region.
            let mut members = Vec::new();
            for (other, m) in graph.nodes.iter().enumerate().skip(node) {
                let (Op::Linear { weight, bias, precision: p }, Some(out)) = (&m.op, m.output) else { break };
                if m.inputs != n.inputs || *p != precision {
                    break;
                }
                members.push(Member {
                    matrix: matrix(graph, weights, *weight, precision)?,
                    bias: opt(*bias)?,
                    out,
                });
                joined[other] = Some(node);
            }
            Work::Linear { members, precision }
        }
        Op::Embed { table } => {
            let spec = &graph.weights[table.index()];
            let failed = |kind| CompileError::in_graph(&graph.name, kind);
            weights.view(spec).map_err(failed)?;
            let source = weights.source().only(&spec.name).unwrap_or_else(|| weights.source().clone());
            Work::Embed { table: FileRows::new(source, spec).map_err(failed)? }
        }
        Op::Conv1d { weight, bias, shape } | Op::Conv1dCarry { weight, bias, shape, .. } => {
            let bias = opt(bias)?;
            let carry = matches!(n.op, Op::Conv1dCarry { .. });
            if shape.groups == 1 {
                let matrix = float_matrix(graph, weights, weight)?;
                if carry {
                    Work::ConvCarry { matrix, bias, shape }
                } else {
                    Work::Conv { matrix, bias, shape }
                }
            } else {
                let spec = &graph.weights[weight.index()];
                let channels = graph.shape(n.inputs[0]).cols;
                if spec.rows != channels {
                    let reason = format!("{} outputs of {channels} channels in groups", spec.rows);
                    let kind = CompileErrorKind::Unsupported { op: n.op.name(), node, reason };
                    return Err(CompileError::in_graph(&graph.name, kind));
                }
                let weights = weights.get_or_pack(&graph.name, spec, |view| {
                    let plain = plain_rows(spec, view)?;
                    let at = |i: usize| plain[i % channels * shape.taps + i / channels];
                    Ok(Vector((0..plain.len()).map(at).collect()))
                })?;
                if carry {
                    Work::DepthwiseCarry { weights, bias, shape }
                } else {
                    Work::Depthwise { weights, bias, shape }
                }
            }
        }
        Op::ConvTranspose1d { weight, bias, shape } => {
            let spec = &graph.weights[weight.index()];
            let bias = opt(bias)?;
            if shape.groups == 1 {
                let phases = weights.get_or_pack(&graph.name, spec, |view| Phases::pack(spec, view))?;
                let bias = bias.map(|b| Vector(b.0.repeat(shape.stride)));
                Work::ConvTransposed { phases, bias, shape }
            } else {
                let plain = vector(graph, weights, weight)?;
                let weights = phase_taps(&plain.0, spec.rows, &shape);
                Work::DepthwiseTransposed { weights, bias, shape }
            }
        }
        Op::InstanceNorm { .. } => {
            let then = match only_user(graph, node) {
                Some((user, Op::Unary(UnaryOp::LeakyRelu(slope)))) => Some((user, Activation::Leaky(*slope))),
                Some((user, Op::Snake { alpha })) => {
                    let factors = SnakeFactors::new(vector(graph, weights, *alpha)?);
                    Some((user, Activation::Snake(factors)))
                }
                _ => None,
            };
            let (at, then) = then.unwrap_or((node, Activation::None));
            if at != node {
                joined[at] = Some(node);
            }
            // The builder gives both ops an output.
            Work::InstanceNorm { then, out: graph.nodes[at].output.unwrap_or(n.inputs[0]) }
        }
        Op::Snake { alpha } => Work::Snake { factors: SnakeFactors::new(vector(graph, weights, alpha)?) },
        Op::LayerNorm { gain, bias, .. } => {
            Work::Norm { gain: vector(graph, weights, gain)?, bias: opt(bias)? }
        }
        Op::RmsNorm { gain, .. } => Work::Norm { gain: vector(graph, weights, gain)?, bias: None },
        Op::AddPositions { table, .. } => {
            let spec = &graph.weights[table.index()];
            Work::AddPositions { table: weights.get_or_pack(&graph.name, spec, Vector::pack)? }
        }
        Op::Rope { head_dim, base, .. } => {
            let turn = |p| f64::from(base).powf(-2.0 * p as f64 / head_dim as f64) as f32;
            Work::Rope { frequencies: (0..head_dim / 2).map(turn).collect() }
        }
        Op::Lstm { w_ih, w_hh, b_ih, b_hh, hidden, .. } => {
            let mut bias = vec![0.0; 4 * hidden];
            for b in [opt(b_ih)?, opt(b_hh)?].into_iter().flatten() {
                bias.iter_mut().zip(&b.0).for_each(|(sum, b)| *sum += b);
            }
            Work::Lstm {
                w_ih: float_matrix(graph, weights, w_ih)?,
                w_hh: float_matrix(graph, weights, w_hh)?,
                bias: Vector(bias),
            }
        }
        Op::Columns { .. } => Work::Nothing,
        _ => Work::Plain,
    })
}

/// The taps of a depth-wise transposed convolution `[channels][taps]` as [`Work::DepthwiseTransposed`] has them.
fn phase_taps(plain: &[f32], channels: usize, shape: &TransposedShape) -> Vector {
    let window = shape.taps.div_ceil(shape.stride);
    let mut out = Vec::with_capacity(shape.stride * window * channels);
    for phase in 0..shape.stride {
        for j in 0..window {
            let tap = phase + (window - 1 - j) * shape.stride;
            let one = |c| if tap < shape.taps { plain[c * shape.taps + tap] } else { 0.0 };
            out.extend((0..channels).map(one));
        }
    }
    Vector(out)
}

/// Gives every value a place: values that are never alive together share memory.
fn place_values(graph: &Graph, joined: &[Option<usize>]) -> (Vec<Place>, usize) {
    let bases: Vec<(usize, usize)> = (0..graph.values.len())
        .map(|i| {
            let (base, column) = graph.base_of(Value(i as u32));
            (base.index(), column)
        })
        .collect();
    // First and last node that touch each base; inputs live from the start, outputs to the end.
    let end = graph.nodes.len();
    let mut first = vec![usize::MAX; graph.values.len()];
    let mut last = vec![0; graph.values.len()];
    for (_, v) in &graph.inputs {
        first[bases[v.index()].0] = 0;
    }
    // What is joined is written at the leading node's step, so it lives from there.
    for (i, node) in graph.nodes.iter().enumerate() {
        let start = joined[i].unwrap_or(i);
        for v in node.inputs.iter().chain(&node.output) {
            let base = bases[v.index()].0;
            first[base] = first[base].min(start);
            last[base] = last[base].max(i);
        }
    }
    for (_, v) in &graph.outputs {
        last[bases[v.index()].0] = end;
    }
    let mut order: Vec<usize> =
        (0..graph.values.len()).filter(|&i| bases[i].0 == i && first[i] != usize::MAX).collect();
    order.sort_by_key(|&i| first[i]);
    let mut offsets = vec![0; graph.values.len()];
    let mut live: Vec<(usize, usize, usize)> = Vec::new(); // offset, size, last
    let mut arena = 0;
    for i in order {
        let v = Value(i as u32);
        // A vector may read past a row's end.
        let size = (graph.max_rows(v) * graph.shape(v).cols + TILE).next_multiple_of(TILE);
        live.retain(|&(_, _, until)| until >= first[i]);
        live.sort_unstable();
        let mut at = 0;
        for &(offset, taken, _) in &live {
            if at + size <= offset {
                break;
            }
            at = at.max(offset + taken);
        }
        live.push((at, size, last[i]));
        offsets[i] = at;
        arena = arena.max(at + size);
    }
    let place = |&(base, column): &(usize, usize)| Place {
        offset: offsets[base] + column,
        stride: graph.values[base].shape.cols,
    };
    (bases.iter().map(place).collect(), arena)
}

/// Input rows that a convolution copies at one edge, zeros included, at most.
pub(super) fn edge_rows(shape: &ConvShape) -> usize {
    shape.pad_left.max(shape.pad_right) + shape.span() + shape.stride
}

/// Bytes of shared scratch and floats of each worker's.
fn scratch(graph: &Graph, steps: &[Step]) -> (usize, usize) {
    let (mut shared, mut worker) = (0, 0);
    for step in steps {
        let node = &graph.nodes[step.node];
        let input = node.inputs.first().copied();
        let (rows, cols) = input.map_or((0, 0), |v| (graph.max_rows(v), graph.shape(v).cols));
        let floats = |n: usize| 4 * (n + TILE);
        let needed = match (&step.work, &node.op) {
            (Work::Linear { precision: Precision::Int8, .. }, _) => {
                IntRows::bytes(rows, cols) + floats(rows * cols)
            }
            (Work::Conv { matrix, shape, .. }, _) => {
                let uses = node.output.map_or(0, |out| graph.max_rows(out)).div_ceil(ROWS);
                floats(edge_rows(shape) * cols) + floats(wide_floats(matrix, uses))
            }
            (Work::Depthwise { shape, .. }, _) => floats(edge_rows(shape) * cols),
            (Work::ConvTransposed { phases, shape, .. }, _) => {
                // Rows at the edges of the input, and super-rows of which only a part is kept.
                let trimmed = (shape.trim_left + shape.trim_right).div_ceil(shape.stride);
                let partial = trimmed + phases.window + 2;
                floats(4 * phases.window * cols) + floats(partial * phases.matrix.rows)
            }
            (Work::InstanceNorm { .. }, _) => floats((2 * rows.div_ceil(CHUNK_ROWS) + 2) * cols),
            (Work::ConvCarry { shape, .. } | Work::DepthwiseCarry { shape, .. }, _) => {
                floats((rows + shape.span()) * cols)
            }
            (Work::Lstm { w_hh, .. }, Op::Lstm { hidden, .. }) => {
                floats(rows * 4 * hidden) + floats(4 * hidden) + floats(wide_floats(w_hh, rows))
            }
            (_, Op::Attention { source, kv_heads, head_dim, .. }) => {
                let most = match source {
                    KeyValues::Rows { .. } => graph.max_rows(node.inputs[1]),
                    KeyValues::Cache { keys, .. } | KeyValues::CacheOfLength { keys, .. } => {
                        graph.states[keys.index()].rows / graph.slots
                    }
                };
                let width = most.next_multiple_of(TILE);
                worker = worker.max(MAX_ROWS * width + TILE);
                if matches!(source, KeyValues::Rows { .. }) {
                    floats(2 * width * kv_heads * head_dim)
                } else {
                    0
                }
            }
            _ => 0,
        };
        shared = shared.max(needed);
    }
    (shared, worker)
}
