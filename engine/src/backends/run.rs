//! One run of a program: lengths, inputs, outputs, and the checks that every backend makes first.

use super::{CancelToken, Priority};
use crate::graph::{CacheStart, ElementType, Graph, Op, Shape, StateKind, StepRow};

/// The data of one input, row after row.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Floats.
    F32(&'a [f32]),
    /// Integers.
    I32(&'a [i32]),
}

/// What a run needs and gives. `'o` is how long the outputs live; it is apart from `'a`, so that who wraps a program
/// (a queue, a second try after a lost device) can pass the same run on more than once: [`Self::reborrow`].
#[derive(Default)]
pub struct Run<'a, 'o> {
    /// One row count for each of the graph's symbols.
    pub lengths: &'a [usize],
    /// One entry for each of the graph's inputs, in order.
    pub inputs: &'a [Input<'a>],
    /// Outputs to read back: position among the graph's outputs, and where to put the rows. The vector is
    /// resized; with enough capacity nothing is allocated. Reading waits for the device.
    pub outputs: &'a mut [(usize, &'o mut Vec<f32>)],
    /// Who goes first when several wait for the device.
    pub priority: Priority,
    /// Looked at often; a cancelled run changes no state.
    pub cancel: Option<&'a CancelToken>,
    /// Keeps the step block that this run leaves, for [`Session::collect`](super::Session::collect).
    pub keep_step: bool,
    /// Nanoseconds that each node took are added here, where the backend can tell; only for measuring.
    pub node_ns: Option<&'a mut Vec<u64>>,
}

impl<'o> Run<'_, 'o> {
    /// The same run, for a while.
    pub fn reborrow(&mut self) -> Run<'_, 'o> {
        Run {
            lengths: self.lengths,
            inputs: self.inputs,
            outputs: self.outputs,
            priority: self.priority,
            cancel: self.cancel,
            keep_step: self.keep_step,
            node_ns: self.node_ns.as_deref_mut(),
        }
    }
}

/// Why a run gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The cancel token was set.
    #[error("the run was cancelled")]
    Cancelled,
    /// A row count is missing or above its maximum.
    #[error("{graph}: {got:?} rows for `{symbol}`, at most {max}")]
    Length {
        /// Name of the graph.
        graph: String,
        /// Name of the symbol.
        symbol: String,
        /// Its maximum.
        max: usize,
        /// What was given.
        got: Option<usize>,
    },
    /// An input is missing or has the wrong type or length.
    #[error("{graph}: input `{input}` needs {expected}")]
    Input {
        /// Name of the graph.
        graph: String,
        /// Name of the input.
        input: String,
        /// Type and length that it should have.
        expected: String,
    },
    /// An output that the graph does not have.
    #[error("{graph}: there is no output {index}, only {count}")]
    Output {
        /// Name of the graph.
        graph: String,
        /// What was asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// The lengths make a dimension negative.
    #[error("{graph}: too few rows for {op} (node {node})")]
    TooShort {
        /// Name of the graph.
        graph: String,
        /// The op.
        op: &'static str,
        /// Its place.
        node: usize,
    },
    /// The caches are full: trim the conversation.
    #[error("slot {slot} holds {position} tokens and {new} more do not fit into a context of {context}")]
    ContextFull {
        /// Slot.
        slot: usize,
        /// Tokens in the cache.
        position: usize,
        /// Tokens of this run.
        new: usize,
        /// Rows of the cache.
        context: usize,
    },
    /// The session was made by another backend or for other programs.
    #[error("{graph}: the session does not hold state `{state}` of this program")]
    Session {
        /// Name of the graph.
        graph: String,
        /// The missing state.
        state: String,
    },
    /// The device is gone: rebuild programs and sessions.
    #[error("{device} was lost: {message}")]
    DeviceLost {
        /// The device.
        device: String,
        /// What it said.
        message: String,
    },
}

/// Checks lengths, inputs and every derived dimension, and gives all values' row counts.
pub(crate) fn check(graph: &Graph, run: &Run<'_, '_>, rows: &mut Vec<usize>) -> Result<(), RunError> {
    for (i, symbol) in graph.symbols.iter().enumerate() {
        let got = run.lengths.get(i).copied();
        if got.is_none_or(|n| n > symbol.max) {
            let (graph, symbol, max) = (graph.name.clone(), symbol.name.clone(), symbol.max);
            return Err(RunError::Length { graph, symbol, max, got });
        }
    }
    rows.clear();
    for (index, value) in graph.values.iter().enumerate() {
        let Some(n) = value.shape.rows.eval(run.lengths) else {
            let node = graph.nodes.iter().position(|n| n.output.is_some_and(|v| v.index() == index));
            let node = node.unwrap_or_default();
            let op = graph.nodes.get(node).map_or("input", |n| n.op.name());
            return Err(RunError::TooShort { graph: graph.name.clone(), op, node });
        };
        rows.push(n);
    }
    for (i, (name, v)) in graph.inputs.iter().enumerate() {
        let Shape { cols, .. } = graph.shape(*v);
        let expected = rows[v.index()] * cols;
        let fits = match (run.inputs.get(i), graph.values[v.index()].ty) {
            (Some(Input::F32(d)), ElementType::F32) => d.len() == expected,
            (Some(Input::I32(d)), ElementType::I32) => d.len() == expected,
            _ => false,
        };
        if !fits {
            return Err(RunError::Input {
                graph: graph.name.clone(),
                input: name.clone(),
                expected: format!("{expected} numbers of type {:?}", graph.values[v.index()].ty),
            });
        }
    }
    let count = graph.outputs.len();
    if let Some(&(index, _)) = run.outputs.iter().find(|(index, _)| *index >= count) {
        return Err(RunError::Output { graph: graph.name.clone(), index, count });
    }
    for (node, n) in graph.nodes.iter().enumerate() {
        if let Op::SliceRows { start, rows: want } = n.op {
            let end = start.eval(run.lengths).zip(want.eval(run.lengths)).and_then(|(a, b)| a.checked_add(b));
            if end.is_none_or(|end| end > rows[n.inputs[0].index()]) {
                return Err(RunError::TooShort { graph: graph.name.clone(), op: n.op.name(), node });
            }
        }
    }
    Ok(())
}

/// Checks that the session has the graph's slots and that every cache write of the run fits, given the slots'
/// step rows.
pub(crate) fn check_context(graph: &Graph, rows: &[usize], steps: &[StepRow]) -> Result<(), RunError> {
    if steps.len() != graph.slots {
        let state = format!("(a step block of {} slots)", graph.slots);
        return Err(RunError::Session { graph: graph.name.clone(), state });
    }
    for node in &graph.nodes {
        let Op::CacheWrite { state, start } = node.op else { continue };
        let spec = &graph.states[state.index()];
        debug_assert!(matches!(spec.kind, StateKind::Cache { .. }));
        let context = spec.rows / graph.slots;
        let new = rows[node.inputs[0].index()] / graph.slots;
        for (slot, step) in steps.iter().enumerate() {
            let position = match start {
                CacheStart::Zero => 0,
                CacheStart::Position if step.is_live() => step.position as usize,
                // Nothing is written for a row that is not live, so a full one does not stop the others.
                CacheStart::Position => continue,
            };
            if position.saturating_add(new) > context {
                return Err(RunError::ContextFull { slot, position, new, context });
            }
        }
    }
    Ok(())
}
