//! The plain meaning of each op: short, slow, obviously right. Used by tests as the twin of every kernel.
//!
//! The interpreter implements [`Backend`], so a suite runs the same program here and on a device. Sums are in
//! f64; weights are dequantised in full; values hold exactly their real rows, so nothing past a length exists
//! that could be read by mistake.

mod attention;
mod products;
mod rows;
mod sample;

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use half::f16;

use crate::backends::weights::plain_rows;
use crate::backends::{
    Backend, CompileError, Input, KeptSteps, Placement, Program, Run, RunError, Session, SessionState,
    WeightSet, unite_states,
};
use crate::graph::work::weights_read;
use crate::graph::{ElementType, Graph, Node, Op, StateId, StateSpec, StateType, StepRow, Value, Weight};

#[cfg(test)]
pub(crate) use rows::erf;
pub(crate) use rows::pad_source;
pub use sample::draw;

/// The reference backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Backend for Reference {
    fn name(&self) -> String {
        "reference".into()
    }

    fn compile(&self, graph: &Graph, weights: &WeightSet) -> Result<Box<dyn Program>, CompileError> {
        let weights = graph
            .weights
            .iter()
            .map(|spec| weights.get_or_pack(&graph.name, spec, |view| Ok(Plain(plain_rows(spec, view)?))))
            .collect::<Result<_, _>>()?;
        Ok(Box::new(ReferenceProgram { graph: graph.clone(), weights }))
    }

    fn session(&self, graphs: &[&Graph]) -> Result<Session, CompileError> {
        let (specs, slots) = unite_states(graphs)?;
        Ok(Session::new(Box::new(ReferenceSession::new(specs, slots)), slots))
    }
}

/// A weight as plain rows.
struct Plain(Vec<f32>);

/// A value while it is alive: its real rows and nothing else.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    F(Vec<f32>),
    I(Vec<i32>),
}

impl Data {
    fn f(&self) -> &[f32] {
        match self {
            Self::F(v) => v,
            Self::I(_) => &[],
        }
    }

    fn i(&self) -> &[i32] {
        match self {
            Self::I(v) => v,
            Self::F(_) => &[],
        }
    }
}

struct ReferenceProgram {
    graph: Graph,
    weights: Vec<Arc<Plain>>,
}

/// What the meaning of an op may look at.
pub(crate) struct Context<'a> {
    graph: &'a Graph,
    weights: &'a [Arc<Plain>],
    rows: &'a [usize],
    lengths: &'a [usize],
    values: &'a [Data],
    steps: &'a mut [StepRow],
    states: &'a mut HashMap<String, Vec<f32>>,
}

impl Context<'_> {
    fn f(&self, v: Value) -> &[f32] {
        self.values[v.index()].f()
    }

    fn i(&self, v: Value) -> &[i32] {
        self.values[v.index()].i()
    }

    fn rows(&self, v: Value) -> usize {
        self.rows[v.index()]
    }

    fn cols(&self, v: Value) -> usize {
        self.graph.shape(v).cols
    }

    fn weight(&self, w: Weight) -> &[f32] {
        &self.weights[w.index()].0
    }

    fn bias(&self, w: Option<Weight>) -> Option<&[f32]> {
        w.map(|w| self.weight(w))
    }

    fn spec(&self, s: StateId) -> &StateSpec {
        &self.graph.states[s.index()]
    }

    fn state(&self, s: StateId) -> &[f32] {
        self.states.get(&self.spec(s).name).map_or(&[], Vec::as_slice)
    }

    /// Rows of a cache that belong to one slot.
    fn context_rows(&self, s: StateId) -> usize {
        self.spec(s).rows / self.graph.slots
    }

    /// First cache row of `slot` for a write or a query.
    fn position(&self, slot: usize) -> usize {
        self.steps[slot].position as usize
    }
}

impl Program for ReferenceProgram {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn placement(&self) -> Vec<Placement> {
        let place = |(node, n): (usize, &Node)| Placement {
            node,
            op: n.op.name(),
            device: "reference".into(),
            kernel: "plain".into(),
            weight_bytes: weights_read(&n.op)
                .into_iter()
                .map(|w| 4 * (self.graph.weights[w.index()].rows * self.graph.weights[w.index()].cols) as u64)
                .sum(),
        };
        self.graph.nodes.iter().enumerate().map(place).collect()
    }

    fn run(&self, session: &mut Session, run: Run<'_, '_>) -> Result<(), RunError> {
        let graph = &self.graph;
        let mut rows = Vec::new();
        crate::backends::check(graph, &run, &mut rows)?;
        let wrong_session =
            |state: &str| RunError::Session { graph: graph.name.clone(), state: state.into() };
        let Some(session) = session.state().as_any().downcast_mut::<ReferenceSession>() else {
            return Err(wrong_session("(another backend's)"));
        };
        if let Some(spec) = graph.states.iter().find(|s| !session.specs.contains(s)) {
            return Err(wrong_session(&spec.name));
        }
        crate::backends::check_context(graph, &rows, &session.current.steps)?;

        // Everything happens on copies, so a cancelled run leaves nothing behind.
        let mut after = session.current.clone();
        let mut values: Vec<Data> = graph
            .values
            .iter()
            .map(|v| if v.ty == ElementType::F32 { Data::F(Vec::new()) } else { Data::I(Vec::new()) })
            .collect();
        for ((_, v), input) in graph.inputs.iter().zip(run.inputs) {
            values[v.index()] = match input {
                Input::F32(d) => Data::F(d.to_vec()),
                Input::I32(d) => Data::I(d.to_vec()),
            };
        }
        for node in &graph.nodes {
            if run.cancel.is_some_and(crate::backends::CancelToken::is_cancelled) {
                return Err(RunError::Cancelled);
            }
            let mut context = Context {
                graph,
                weights: &self.weights,
                rows: &rows,
                lengths: run.lengths,
                values: &values,
                steps: &mut after.steps,
                states: &mut after.states,
            };
            let result = evaluate(node, &mut context);
            if let (Some(out), Some(data)) = (node.output, result) {
                values[out.index()] = data;
            }
        }
        session.current = after;
        if run.keep_step {
            session.kept.push(&session.current.steps);
        }
        for (index, out) in run.outputs.iter_mut() {
            out.clear();
            if let Some((_, v)) = graph.outputs.get(*index) {
                match &values[v.index()] {
                    Data::F(d) => out.extend_from_slice(d),
                    Data::I(d) => out.extend(d.iter().map(|&x| x as f32)),
                }
            }
        }
        Ok(())
    }
}

/// One op.
fn evaluate(node: &Node, c: &mut Context<'_>) -> Option<Data> {
    let arg = |i: usize| node.inputs[i];
    Some(match &node.op {
        Op::Embed { table } => rows::embed(c, arg(0), *table),
        Op::StepTokens => Data::I(c.steps.iter().map(|s| s.token).collect()),
        Op::Gather => rows::gather(c, arg(0), arg(1)),
        Op::Linear { weight, bias, precision } => products::linear(c, arg(0), *weight, *bias, *precision),
        Op::Conv1d { weight, bias, shape } => {
            let out_rows = c.rows(node.output?);
            products::conv1d(c, arg(0), *weight, *bias, shape, out_rows)
        }
        Op::Conv1dCarry { weight, bias, shape, state } => {
            products::conv1d_carry(c, arg(0), *weight, *bias, shape, *state)
        }
        Op::ConvTranspose1d { weight, bias, shape } => {
            let out_rows = c.rows(node.output?);
            products::conv_transpose1d(c, arg(0), *weight, *bias, shape, out_rows)
        }
        Op::InstanceNorm { eps } => rows::instance_norm(c, arg(0), arg(1), arg(2), *eps),
        Op::LayerNorm { gain, bias, eps } => rows::layer_norm(c, arg(0), *gain, *bias, *eps),
        Op::RmsNorm { gain, eps, group } => rows::rms_norm(c, arg(0), *gain, *eps, *group),
        Op::Unary(op) => Data::F(c.f(arg(0)).iter().map(|&x| rows::unary(*op, x)).collect()),
        Op::Snake { alpha } => rows::snake(c, arg(0), *alpha),
        Op::Binary(op) => rows::binary(c, arg(0), arg(1), *op),
        Op::AddPositions { table, start } => rows::add_positions(c, arg(0), *table, *start),
        Op::Rope { head_dim, style, base } => rows::rope(c, arg(0), *head_dim, *style, *base),
        Op::CacheWrite { state, start } => {
            attention::cache_write(c, arg(0), *state, *start);
            return None;
        }
        Op::Attention { .. } => attention::attention(c, node),
        Op::Lstm { .. } => products::lstm(c, node),
        Op::MeanRows => rows::mean_rows(c, arg(0)),
        Op::Softmax => rows::softmax_rows(c, arg(0)),
        Op::Magnitude => rows::magnitude(c, arg(0)),
        Op::PadRows { left, right, mode } => rows::pad(c, arg(0), *left, *right, *mode),
        Op::SliceRows { start, rows } => {
            let cols = c.cols(arg(0));
            let (start, rows) = (start.eval(c.lengths)?, rows.eval(c.lengths)?);
            Data::F(c.f(arg(0))[start * cols..(start + rows) * cols].to_vec())
        }
        Op::RepeatRows { times } => rows::repeat(c, arg(0), *times),
        Op::Columns { start, cols } => rows::columns(c, arg(0), *start, *cols),
        Op::ConcatColumns => rows::concat(c, &node.inputs),
        Op::LastRows => rows::last_rows(c, arg(0)),
        Op::Sample => sample::sample(c, arg(0), node.inputs.get(1).copied()),
        Op::Advance => {
            let q = c.rows(arg(0)) / c.graph.slots;
            for step in c.steps.iter_mut().filter(|s| s.is_live()) {
                step.position = step.position.wrapping_add(q as u32);
            }
            return None;
        }
    })
}

#[derive(Clone)]
struct Held {
    steps: Vec<StepRow>,
    states: HashMap<String, Vec<f32>>,
}

struct ReferenceSession {
    specs: Vec<StateSpec>,
    current: Held,
    kept: KeptSteps,
    saved: HashMap<usize, Held>,
}

impl ReferenceSession {
    fn new(specs: Vec<StateSpec>, slots: usize) -> Self {
        let states = specs.iter().map(|s| (s.name.clone(), vec![0.0; s.rows * s.cols])).collect();
        let current = Held { steps: vec![StepRow::default(); slots], states };
        Self { specs, current, kept: KeptSteps::default(), saved: HashMap::new() }
    }
}

impl SessionState for ReferenceSession {
    fn step(&mut self, slot: usize) -> StepRow {
        self.current.steps[slot]
    }

    fn collect(&mut self) -> Result<Option<&[StepRow]>, RunError> {
        Ok(self.kept.collect(self.current.steps.len()))
    }

    fn set_step(&mut self, slot: usize, row: &StepRow) {
        self.kept.clear();
        self.current.steps[slot] = *row;
    }

    fn save(&mut self, mark: usize) {
        self.saved.insert(mark, self.current.clone());
    }

    fn restore(&mut self, mark: usize) -> bool {
        let Some(saved) = self.saved.get(&mark) else { return false };
        self.current = saved.clone();
        self.kept.clear();
        true
    }

    fn reset(&mut self) {
        self.kept.clear();
        self.current.steps.fill(StepRow::default());
        for state in self.current.states.values_mut() {
            state.fill(0.0);
        }
    }

    fn read_state(&mut self, name: &str) -> Option<Vec<f32>> {
        self.current.states.get(name).cloned()
    }

    fn write_state(&mut self, name: &str, data: &[f32]) -> bool {
        let ty = self.specs.iter().find(|s| s.name == name).map(|s| s.ty);
        match (self.current.states.get_mut(name), ty) {
            (Some(state), Some(ty)) if state.len() == data.len() => {
                for (s, &x) in state.iter_mut().zip(data) {
                    *s = stored(ty, x);
                }
                true
            }
            _ => false,
        }
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// A number as a state of type `ty` keeps it.
fn stored(ty: StateType, x: f32) -> f32 {
    match ty {
        StateType::F32 => x,
        StateType::F16 => f16::from_f32(x).to_f32(),
    }
}
