//! Backends that are wrong on purpose: the suite must fail on each, or it proves nothing.
//!
//! A [`Broken`] backend is the reference with one [`Fault`]. Faults in outputs and states are made after the
//! run; faults in an op's meaning are made by changing the graph before it is compiled.

use std::sync::Arc;

use repartee_engine::backends::{
    Backend, CompileError, MemoryTensors, Placement, Program, Run, RunError, Session, WeightSet,
};
use repartee_engine::graph::{Graph, Node, StateKind};
use repartee_engine::reference::Reference;

/// One way to be wrong.
#[derive(Clone)]
pub enum Fault {
    /// The last element of an output is off by a little more than any tolerance.
    LastElement,
    /// The last element of an output is not a number.
    NotANumber,
    /// An output lacks its last row.
    LastRow,
    /// An output's rows stand one row late.
    RowsMoved,
    /// Recurrent states start from zero in each run.
    ForgetsState,
    /// A cancelled run counts.
    IgnoresCancel,
    /// A refused run moves the position.
    RefusedRunCounts,
    /// Placement names another device.
    OtherDevice,
    /// Placement leaves a node out.
    NodeMissing,
    /// One element of the weight called so is another.
    Weight(String),
    /// The graph is changed; the function says whether it changed anything.
    Graph(Arc<dyn Fn(&mut Node) -> bool + Send + Sync>),
}

/// The reference with a fault.
pub struct Broken(pub Fault);

impl Fault {
    /// Whether the fault can show in this graph.
    pub fn applies(&self, graph: &Graph) -> bool {
        match self {
            Self::ForgetsState => graph.states.iter().any(|s| s.kind == StateKind::Recurrent && s.rows > 0),
            Self::Weight(name) => graph.weights.iter().any(|w| w.name == *name),
            Self::Graph(change) => change_nodes(&mut graph.clone(), &**change),
            _ => true,
        }
    }
}

impl Fault {
    fn spoil(&self, mut out: Vec<f32>, cols: usize) -> Vec<f32> {
        if out.len() < cols.max(1) {
            return out;
        }
        let last = out.len() - 1;
        match self {
            Self::LastElement => out[last] += 0.02 + out[last].abs() * 0.01,
            Self::NotANumber => out[last] = f32::NAN,
            Self::LastRow => out.truncate(last + 1 - cols),
            Self::RowsMoved => out.rotate_right(cols),
            _ => {}
        }
        out
    }
}

fn change_nodes(graph: &mut Graph, change: &dyn Fn(&mut Node) -> bool) -> bool {
    graph.nodes.iter_mut().fold(false, |changed, node| change(node) | changed)
}

impl Backend for Broken {
    fn name(&self) -> String {
        "reference (broken)".into()
    }

    fn compile(&self, graph: &Graph, weights: &WeightSet) -> Result<Box<dyn Program>, CompileError> {
        let mut changed = graph.clone();
        let inner = match &self.0 {
            Fault::Weight(name) => {
                Reference.compile(graph, &WeightSet::new(Arc::new(damaged(weights, name))))?
            }
            Fault::Graph(change) => {
                change_nodes(&mut changed, &**change);
                Reference.compile(&changed, weights)?
            }
            _ => Reference.compile(graph, weights)?,
        };
        Ok(Box::new(BrokenProgram { inner, fault: self.0.clone() }))
    }

    fn session(&self, graphs: &[&Graph]) -> Result<Session, CompileError> {
        Reference.session(graphs)
    }
}

/// A copy of the tensors in which the last block of `name` has its bits turned.
fn damaged(weights: &WeightSet, name: &str) -> MemoryTensors {
    let mut copy = MemoryTensors::new();
    let source = weights.source();
    for key in source.names() {
        let Ok(view) = source.tensor(&key) else { continue };
        let mut bytes = view.data.to_vec();
        if key == name {
            // A byte that is part of the last element in every type (not a scale's exponent, which might
            // become a NaN that would be caught too easily).
            let at = bytes.len() - if view.ty.block_len() == 256 { 3 } else { 1 };
            bytes[at] ^= 0x30;
        }
        let _ = match view.affine {
            Some(affine) => copy.insert_affine(&key, view.ty, &view.shape, bytes, affine),
            None => copy.insert(&key, view.ty, &view.shape, bytes),
        };
    }
    copy
}

struct BrokenProgram {
    inner: Box<dyn Program>,
    fault: Fault,
}

impl Program for BrokenProgram {
    fn graph(&self) -> &Graph {
        self.inner.graph()
    }

    fn placement(&self) -> Vec<Placement> {
        let mut placed = self.inner.placement();
        match self.fault {
            Fault::OtherDevice => placed.iter_mut().last().into_iter().for_each(|p| p.device = "cpu".into()),
            Fault::NodeMissing => drop(placed.pop()),
            _ => {}
        }
        placed
    }

    fn run(&self, session: &mut Session, mut run: Run<'_, '_>) -> Result<(), RunError> {
        if matches!(self.fault, Fault::ForgetsState) {
            for spec in &self.graph().states {
                if spec.kind == StateKind::Recurrent {
                    session.state().write_state(&spec.name, &vec![0.0; spec.rows * spec.cols]);
                }
            }
        }
        if matches!(self.fault, Fault::IgnoresCancel) && run.cancel.is_some() {
            run.cancel = None;
            self.inner.run(session, run)?;
            return Err(RunError::Cancelled);
        }
        let graph = self.graph();
        let result = self.inner.run(session, run.reborrow());
        if result.is_err() && matches!(self.fault, Fault::RefusedRunCounts) && run.cancel.is_none() {
            session.update_step(0, |s| s.position += 1);
        }
        result?;
        for (at, place) in run.outputs.iter_mut() {
            let cols = graph.outputs.get(*at).map_or(1, |(_, v)| graph.shape(*v).cols);
            **place = self.fault.spoil(std::mem::take(*place), cols);
        }
        Ok(())
    }
}
