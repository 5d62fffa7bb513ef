//! What a measured run spent on each node, beside the work that it was.

use super::Program;
use crate::graph::work::operations;

/// A node of a measured run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeTime {
    /// The op's name.
    pub op: &'static str,
    /// What computed it, as [`Placement::kernel`](super::Placement::kernel).
    pub kernel: String,
    /// What it took, in nanoseconds.
    pub ns: u64,
    /// Floating-point operations ([`operations`]).
    pub operations: u64,
    /// Bytes that it reads and writes at least: weights as they are in the file, and 4 for each number of its inputs and
    /// its output.
    pub bytes: u64,
}

/// What a device can do at best.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Floors {
    /// Bytes that it reads in a second.
    pub read_per_sec: f64,
    /// Bytes that it reads and writes in a second when it copies.
    pub copy_per_sec: Option<f64>,
    /// Floating-point operations in a second, in multiply-adds.
    pub operations_per_sec: f64,
    /// What a kernel that does nothing takes behind another, in seconds.
    pub dispatch_secs: Option<f64>,
}

/// Puts the `times` of a run ([`Run::node_ns`](super::Run::node_ns)) with these `lengths` beside its work. Empty where the
/// backend could not tell.
pub fn node_times(program: &dyn Program, lengths: &[usize], times: &[u64]) -> Vec<NodeTime> {
    let graph = program.graph();
    let rows: Vec<usize> =
        graph.values.iter().map(|value| value.shape.rows.eval(lengths).unwrap_or(0)).collect();
    let nodes = graph.nodes.iter().zip(program.placement()).zip(times);
    nodes
        .map(|((node, place), &ns)| {
            let values = node.inputs.iter().chain(&node.output);
            let numbers: usize = values.map(|v| rows[v.index()] * graph.shape(*v).cols).sum();
            NodeTime {
                op: place.op,
                kernel: place.kernel,
                ns,
                operations: operations(graph, node, &rows),
                bytes: place.weight_bytes + 4 * numbers as u64,
            }
        })
        .collect()
}
