//! A compiled graph: dispatches, bindings and buffers made once; a run is one submission.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::device::{Device, STATES};
use super::fuse::{Fused, fuse};
use super::kernel::{Call, FEW_ROWS, WORDS, Word, Work, plain};
use super::plan::{Place, Plan, is_view, plan};
use super::products::scratch_words;
use super::session::WgpuSession;
use super::weights::{self, Packed};
use crate::backends::{
    CancelToken, CompileError, CompileErrorKind, Input, Placement, Priority, Program, Run, RunError, Session,
    WeightSet,
};
use crate::graph::{ElementType, Graph, Node, Op, StateId, Value, Weight};

/// What turns nodes into calls.
pub(super) struct Compiler<'a> {
    pub(super) device: &'a Device,
    pub(super) graph: &'a Graph,
    set: &'a WeightSet,
    pub(super) plan: &'a Plan,
    pub(super) fused: &'a Fused,
    /// The node being compiled.
    pub(super) node: usize,
}

impl Compiler<'_> {
    pub(super) fn place(&self, v: Value) -> Place {
        self.plan.places[v.index()]
    }

    /// Where the sum behind the node's product goes, if there is one, and what is added.
    pub(super) fn sum(&self) -> Option<(Place, Place)> {
        self.fused.sum[self.node].map(|sum| (self.place(sum.output), self.place(sum.other)))
    }

    /// Whether an earlier node has filled the scratch memory.
    pub(super) fn shares_scratch(&self) -> bool {
        self.fused.owner[self.node] != self.node || self.fused.quantizer[self.node].is_some()
    }

    /// Where the node has to put its output as 8-bit integers and their scales too, if it has to.
    pub(super) fn quantized(&self, y: Value) -> Option<[Word; 2]> {
        let product = self.fused.quantizes[self.node]?;
        let integers = self.plan.scratch[product];
        Some([integers, integers + self.graph.max_rows(y) * (self.place(y).cols / 4)].map(Word::size))
    }

    /// First word of the node's scratch memory.
    pub(super) fn scratch(&self) -> usize {
        self.plan.scratch[self.node]
    }

    pub(super) fn error(&self, kind: CompileErrorKind) -> CompileError {
        CompileError::in_graph(&self.graph.name, kind)
    }

    pub(super) fn unsupported(&self, op: &Op, reason: &str) -> CompileErrorKind {
        CompileErrorKind::Unsupported { op: op.name(), node: self.node, reason: reason.into() }
    }

    pub(super) fn packed(&self, w: Weight) -> Result<Arc<Packed>, CompileError> {
        weights::packed(self.device, self.set, &self.graph.name, &self.graph.weights[w.index()])
    }

    pub(super) fn plain(&self, w: Weight) -> Result<wgpu::Buffer, CompileError> {
        weights::plain(self.device, self.set, &self.graph.name, &self.graph.weights[w.index()])
    }

    pub(super) fn columns(&self, w: Weight) -> Result<wgpu::Buffer, CompileError> {
        weights::columns(self.device, self.set, &self.graph.name, &self.graph.weights[w.index()])
    }

    pub(super) fn maybe_plain(&self, w: Option<Weight>) -> Result<Option<wgpu::Buffer>, CompileError> {
        w.map(|w| self.plain(w)).transpose()
    }

    fn calls(&self, node: &Node) -> Result<Vec<Call>, CompileError> {
        let one = |call: Result<Call, CompileErrorKind>| Ok(vec![call.map_err(|e| self.error(e))?]);
        // Ops without an output name their input instead, which is not written.
        let y = node.output.or(node.inputs.first().copied());
        let Some(y) = y else { return Err(self.error(self.unsupported(&node.op, "has no value"))) };
        let x = node.inputs.first().copied().unwrap_or(y);
        match &node.op {
            op if is_view(op) => Ok(Vec::new()),
            _ if self.fused.elsewhere(self.node).is_some() => Ok(Vec::new()),
            Op::Embed { table } => self.embed(x, *table, y),
            Op::Linear { weight, bias, precision } => self.linear(x, *weight, *bias, *precision, y),
            Op::Conv1d { weight, bias, shape } => self.conv(x, *weight, *bias, shape, None, y),
            Op::Conv1dCarry { weight, bias, shape, state } => {
                self.conv(x, *weight, *bias, shape, Some(*state), y)
            }
            Op::ConvTranspose1d { weight, bias, shape } => self.conv_transpose(x, *weight, *bias, shape, y),
            Op::Snake { alpha } => Ok(vec![self.snake(x, *alpha, y)?]),
            Op::LayerNorm { .. } | Op::RmsNorm { .. } => Ok(vec![self.norm(node, y)?]),
            Op::AddPositions { table, start } => Ok(vec![self.add_positions(x, *table, *start, y)?]),
            Op::CacheWrite { state, start } => one(self.cache_write(x, *state, *start)),
            Op::Attention { .. } => one(self.attention(node, y)),
            Op::Lstm { .. } => self.lstm(node, y),
            Op::Sample => one(self.sample(node, y)),
            _ => self.row_op(node, y).map_err(|e| self.error(e)),
        }
    }
}

/// A compiled graph.
pub(super) struct WgpuProgram {
    graph: Graph,
    device: Arc<Device>,
    plan: Plan,
    arena: wgpu::Buffer,
    params: wgpu::Buffer,
    /// Bytes from one call's parameters to the next one's.
    stride: usize,
    calls: Vec<Call>,
    /// The node of each.
    nodes: Vec<usize>,
    /// Calls before the first that changes what the next run begins with: between these a run can be given up.
    tentative: usize,
    /// Arena, parameters and weights of each call.
    groups: Vec<wgpu::BindGroup>,
    /// Every choice of states that calls have, and which of them each has.
    state_sets: Vec<[Option<StateId>; STATES]>,
    state_set: Vec<usize>,
    /// Fills the arena, for tests: the call after the last one.
    poison: Option<Call>,
    kernels: Vec<String>,
    /// What each node reads of weights.
    weight_bytes: Vec<u64>,
    /// Tells programs apart in a session.
    id: u64,
    state: Mutex<RunState>,
}

/// What a run leaves for the next one.
#[derive(Default)]
struct RunState {
    /// The lengths that the parameters on the device are for.
    lengths: Option<Vec<usize>>,
    words: Vec<u32>,
    rows: Vec<usize>,
    staging: Option<wgpu::Buffer>,
}

/// Calls that are handed over at once while there are more: some hundred microseconds of the host's time.
const AHEAD: usize = 96;

/// Calls between two looks at the cancel token where software computes, which takes seconds for a prompt. A GPU is through with the whole run by then, and waiting for it would cost more than it saves.
const PIECE: usize = 8;

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl WgpuProgram {
    pub(super) fn new(graph: &Graph, set: &WeightSet, device: Arc<Device>) -> Result<Self, CompileError> {
        let error = |kind| CompileError::in_graph(&graph.name, kind);
        let too_large =
            || error(CompileErrorKind::OutOfMemory { bytes: usize::MAX, device: device.adapter.clone() });
        let scratch = graph.nodes.iter().map(|n| {
            let x = n.inputs.first().copied();
            let (rows, cols) = x.map_or((0, 0), |x| (graph.max_rows(x), graph.shape(x).cols));
            scratch_words(&n.op, rows, cols, graph.slots)
        });
        let scratch = scratch.collect::<Option<Vec<_>>>().ok_or_else(too_large)?;
        let fused = fuse(graph);
        let plan = plan(graph, &scratch, &fused).ok_or_else(too_large)?;
        let arena = device.buffer(plan.words.saturating_mul(4)).map_err(error)?;

        let (mut calls, mut nodes, mut tentative) = (Vec::new(), Vec::new(), None);
        let mut kernels = Vec::with_capacity(graph.nodes.len());
        for (node, n) in graph.nodes.iter().enumerate() {
            let compiler = Compiler { device: &device, graph, set, plan: &plan, fused: &fused, node };
            let made = compiler.calls(n)?;
            let names: Vec<_> = made.iter().map(|call| call.kernel.entry).collect();
            // What a cache holds behind its position is nobody's.
            if matches!(n.op, Op::Conv1dCarry { .. } | Op::Lstm { .. } | Op::Sample | Op::Advance) {
                tentative.get_or_insert(calls.len());
            }
            kernels.push(match fused.elsewhere(node) {
                Some(other) => format!("(in node {other})"),
                None if names.is_empty() => "(view)".into(),
                None => names.join(", "),
            });
            nodes.extend(made.iter().map(|_| node));
            calls.extend(made);
        }
        let poison = if device.poison {
            let pipeline = plain(&device, "rows", "poison").map_err(error)?;
            let mut words = vec![Word::Is(0); 7];
            words.push(Word::size(plan.words));
            Some(Call::new(pipeline, words, Work::Groups(1.into(), 64)))
        } else {
            None
        };
        let stride = (WORDS * 4).next_multiple_of(device.limits.min_uniform_buffer_offset_alignment as usize);
        let count = calls.len() + usize::from(poison.is_some());
        let params = device.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("parameters"),
            size: (stride * count.max(1)) as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let groups = calls
            .iter()
            .chain(&poison)
            .enumerate()
            .map(|(i, call)| group0(&device, &arena, &params, i * stride, call))
            .collect();
        let mut state_sets = Vec::new();
        let state_set = calls.iter().chain(&poison).map(|call| {
            state_sets.iter().position(|set| *set == call.states).unwrap_or_else(|| {
                state_sets.push(call.states);
                state_sets.len() - 1
            })
        });
        let state_set = state_set.collect();
        Ok(Self {
            graph: graph.clone(),
            plan,
            arena,
            params,
            stride,
            tentative: tentative.unwrap_or(calls.len()),
            calls,
            nodes,
            groups,
            state_sets,
            state_set,
            poison,
            kernels,
            weight_bytes: graph.nodes.iter().map(|node| set.bytes_read(graph, node)).collect(),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            state: Mutex::default(),
            device,
        })
    }

    /// Runs with few rows and with some more, over a session of its own, before there is a run that somebody waits for:
    /// buffers are cleared, and the driver does what it had put off. What stands in the way will be said by that run.
    pub(super) fn warm_up(&self) {
        let state = WgpuSession::new(self.device.clone(), self.graph.states.clone(), self.graph.slots);
        let Ok(state) = state else { return };
        let mut session = Session::new(Box::new(state), self.graph.slots);
        for rows in [1, FEW_ROWS + 1] {
            let lengths: Vec<usize> = self.graph.symbols.iter().map(|s| s.max.min(rows)).collect();
            let (floats, integers) = (self.zeros(&lengths), self.zeros(&lengths));
            let inputs = self.graph.inputs.iter().zip(floats.iter().zip(&integers));
            let inputs: Vec<Input<'_>> = inputs
                .map(|((_, v), (floats, integers))| match self.graph.values[v.index()].ty {
                    ElementType::F32 => Input::F32(floats),
                    ElementType::I32 => Input::I32(integers),
                })
                .collect();
            let priority = Priority::Background;
            let run = Run { lengths: &lengths, inputs: &inputs, priority, ..Run::default() };
            if let Err(error) = self.run(&mut session, run).and_then(|()| self.device.finish()) {
                tracing::debug!(graph = self.graph.name, %error, "not warmed");
                return;
            }
        }
    }

    /// Zeros for each input.
    fn zeros<T: bytemuck::Zeroable + Clone>(&self, lengths: &[usize]) -> Vec<Vec<T>> {
        let numbers = |v: &Value| {
            let shape = self.graph.shape(*v);
            shape.rows.eval(lengths).unwrap_or(0) * shape.cols
        };
        self.graph.inputs.iter().map(|(_, v)| vec![T::zeroed(); numbers(v)]).collect()
    }

    /// Writes the words that kernels are given, when the lengths are others than before.
    fn write_params(&self, state: &mut RunState, lengths: &[usize]) {
        if state.lengths.as_deref() == Some(lengths) {
            return;
        }
        state.words.clear();
        state.words.resize(self.stride / 4 * self.groups.len(), 0);
        let slots = state.words.chunks_exact_mut(self.stride / 4);
        for (slot, call) in slots.zip(self.calls.iter().chain(&self.poison)) {
            for (place, word) in slot.iter_mut().zip(&call.words) {
                *place = word.eval(lengths);
            }
        }
        self.device.queue.write_buffer(&self.params, 0, bytemuck::cast_slice(&state.words));
        state.lengths = Some(lengths.to_vec());
    }

    /// A call by its place; what poisons comes behind all others.
    fn call(&self, at: usize) -> Option<&Call> {
        self.calls.get(at).or(self.poison.as_ref())
    }

    /// How many groups a call needs; `None` when it has nothing to do.
    fn work(&self, at: usize, lengths: &[usize]) -> Option<(u32, u32)> {
        self.call(at)?.work.groups(lengths, self.device.limits.max_compute_workgroups_per_dimension)
    }

    fn encode(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        calls: Range<usize>,
        states: &[wgpu::BindGroup],
        lengths: &[usize],
    ) {
        let mut pass = Pass::new(self, encoder, states);
        for at in calls {
            if let Some(groups) = self.work(at, lengths) {
                pass.dispatch(at, groups);
            }
        }
    }

    /// Hands over the calls that can be given up in pieces, so that a GPU begins while the others are encoded, and returns
    /// how many these were; the last piece is left, for its submission costs nothing beside the rest's.
    ///
    /// # Errors
    /// [`RunError::Cancelled`] in front of any piece.
    fn begin(
        &self,
        states: &[wgpu::BindGroup],
        lengths: &[usize],
        cancel: Option<&CancelToken>,
    ) -> Result<usize, RunError> {
        let mut from = 0;
        while from + AHEAD <= self.tentative {
            if cancel.is_some_and(CancelToken::is_cancelled) {
                return Err(RunError::Cancelled);
            }
            let mut encoder = self.new_encoder();
            self.encode(&mut encoder, from..from + AHEAD, states, lengths);
            self.device.queue.submit([encoder.finish()]);
            from += AHEAD;
        }
        Ok(from)
    }

    /// Runs the calls that can be given up, a few at a time, and returns where the rest begins.
    ///
    /// # Errors
    /// [`RunError::Cancelled`] in front of any piece; a lost device.
    fn run_in_pieces(
        &self,
        states: &[wgpu::BindGroup],
        lengths: &[usize],
        cancel: &CancelToken,
    ) -> Result<usize, RunError> {
        for first in (0..self.tentative).step_by(PIECE) {
            let piece = first..(first + PIECE).min(self.tentative);
            let groups = piece.clone().filter_map(|at| self.work(at, lengths));
            let groups: usize = groups.map(|(x, y)| x as usize * y as usize).sum();
            if cancel.is_cancelled_before(groups) {
                return Err(RunError::Cancelled);
            }
            let mut encoder = self.new_encoder();
            self.encode(&mut encoder, piece, states, lengths);
            self.device.queue.submit([encoder.finish()]);
            self.device.finish()?;
        }
        Ok(self.tentative)
    }

    /// Runs the calls and adds to `node_ns` what each took.
    ///
    /// # Errors
    /// A lost device.
    fn run_timed(
        &self,
        states: &[wgpu::BindGroup],
        lengths: &[usize],
        node_ns: &mut Vec<u64>,
    ) -> Result<(), RunError> {
        node_ns.resize(self.graph.nodes.len(), 0);
        let period = f64::from(self.device.queue.get_timestamp_period());
        let piece = wgpu::QUERY_SET_MAX_QUERIES as usize - 1;
        let calls: Vec<_> =
            (0..self.calls.len()).filter_map(|at| Some((at, self.work(at, lengths)?))).collect();
        for calls in calls.chunks(piece) {
            let moments = self.device.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count: calls.len() as u32 + 1,
            });
            let mut encoder = self.new_encoder();
            let mut pass = Pass::new(self, &mut encoder, states);
            pass.inner.write_timestamp(&moments, 0);
            for (i, (at, groups)) in calls.iter().enumerate() {
                pass.dispatch(*at, *groups);
                pass.inner.write_timestamp(&moments, i as u32 + 1);
            }
            drop(pass);
            let ticks = self.device.ticks(encoder, &moments, calls.len() as u32 + 1)?;
            for ((at, _), pair) in calls.iter().zip(ticks.windows(2)) {
                node_ns[self.nodes[*at]] += (pair[1].saturating_sub(pair[0]) as f64 * period) as u64;
            }
        }
        Ok(())
    }

    fn new_encoder(&self) -> wgpu::CommandEncoder {
        self.device.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }

    /// Words of an output that the run reads back: all from its first to its last number.
    fn span(&self, v: Value, rows: &[usize]) -> usize {
        let place = self.plan.places[v.index()];
        rows[v.index()].checked_sub(1).map_or(0, |last| last * place.stride + place.cols)
    }
}

/// A compute pass that sets only what differs from the call before: each command costs the host some time.
struct Pass<'a> {
    inner: wgpu::ComputePass<'a>,
    program: &'a WgpuProgram,
    states: &'a [wgpu::BindGroup],
    before: Option<usize>,
}

impl<'a> Pass<'a> {
    fn new(
        program: &'a WgpuProgram,
        encoder: &'a mut wgpu::CommandEncoder,
        states: &'a [wgpu::BindGroup],
    ) -> Self {
        let inner = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        Self { inner, program, states, before: None }
    }

    fn dispatch(&mut self, at: usize, (x, y): (u32, u32)) {
        let Some(call) = self.program.call(at) else { return };
        let pipeline = &call.kernel.pipeline;
        let before = self.before.and_then(|before| self.program.call(before));
        if before.is_none_or(|before| before.kernel.pipeline != *pipeline) {
            self.inner.set_pipeline(pipeline);
        }
        self.inner.set_bind_group(0, &self.program.groups[at], &[]);
        let set = self.program.state_set[at];
        if self.before.is_none_or(|before| self.program.state_set[before] != set) {
            self.inner.set_bind_group(1, &self.states[set], &[]);
        }
        self.inner.dispatch_workgroups(x, y, 1);
        self.before = Some(at);
    }
}

fn group0(
    device: &Device,
    arena: &wgpu::Buffer,
    params: &wgpu::Buffer,
    offset: usize,
    call: &Call,
) -> wgpu::BindGroup {
    let words = wgpu::BufferBinding {
        buffer: params,
        offset: offset as u64,
        size: wgpu::BufferSize::new((WORDS * 4) as u64),
    };
    let weights = call.weights.iter().map(|w| w.as_ref().unwrap_or(&device.no_weight).as_entire_binding());
    let resources =
        [arena.as_entire_binding(), wgpu::BindingResource::Buffer(words)].into_iter().chain(weights);
    let entries: Vec<_> = resources
        .enumerate()
        .map(|(i, resource)| wgpu::BindGroupEntry { binding: i as u32, resource })
        .collect();
    device.device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &device.group0,
        entries: &entries,
    })
}

impl Program for WgpuProgram {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn placement(&self) -> Vec<Placement> {
        let place = |(node, (n, kernel)): (usize, (&Node, &String))| Placement {
            node,
            op: n.op.name(),
            device: "wgpu".into(),
            kernel: kernel.clone(),
            weight_bytes: self.weight_bytes[node],
        };
        self.graph.nodes.iter().zip(&self.kernels).enumerate().map(place).collect()
    }

    fn run(&self, session: &mut Session, run: Run<'_, '_>) -> Result<(), RunError> {
        let graph = &self.graph;
        let _turn = self.device.turnstile.enter(run.priority);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        crate::backends::check(graph, &run, &mut state.rows)?;
        let wrong = |state: &str| RunError::Session { graph: graph.name.clone(), state: state.into() };
        let Some(session) = session.state().as_any().downcast_mut::<WgpuSession>() else {
            return Err(wrong("(another backend's)"));
        };
        if let Some(spec) = session.missing(graph) {
            return Err(wrong(&spec.name));
        }
        session.check_context(graph, &state.rows)?;
        self.device.check()?;

        let groups = session.groups(self.id, graph, &self.state_sets);
        self.write_params(state, run.lengths);
        if self.poison.is_some() {
            let mut encoder = self.new_encoder();
            let at = self.calls.len();
            self.encode(&mut encoder, at..at + 1, groups, run.lengths);
            self.device.queue.submit([encoder.finish()]);
        }
        for ((_, v), input) in graph.inputs.iter().zip(run.inputs) {
            let bytes: &[u8] = match input {
                Input::F32(d) => bytemuck::cast_slice(d),
                Input::I32(d) => bytemuck::cast_slice(d),
            };
            if !bytes.is_empty() {
                let at = self.plan.places[v.index()].offset as u64 * 4;
                self.device.queue.write_buffer(&self.arena, at, bytes);
            }
        }
        // What is timed is submitted at once, and can't be taken back.
        let (timed, cancel) = match run.node_ns.filter(|_| self.device.has_timestamps) {
            Some(node_ns) if run.cancel.is_some_and(CancelToken::is_cancelled) => {
                node_ns.clear();
                return Err(RunError::Cancelled);
            }
            Some(node_ns) => (Some(node_ns), None),
            None => (None, run.cancel),
        };
        let first = match (timed, cancel.filter(|_| self.device.is_software)) {
            (Some(node_ns), _) => {
                self.run_timed(groups, run.lengths, node_ns)?;
                self.calls.len()
            }
            (None, Some(cancel)) => self.run_in_pieces(groups, run.lengths, cancel)?,
            (None, None) => self.begin(groups, run.lengths, run.cancel)?,
        };
        let mut encoder = self.new_encoder();
        self.encode(&mut encoder, first..self.calls.len(), groups, run.lengths);

        let wanted = |at: usize| graph.outputs.get(at).map(|(_, v)| *v);
        let values = run.outputs.iter().filter_map(|(at, _)| wanted(*at));
        let bytes: u64 = values.map(|v| self.span(v, &state.rows) as u64 * 4).sum();
        if state.staging.as_ref().is_none_or(|b| b.size() < bytes) {
            state.staging = Some(self.device.staging(bytes));
        }
        if let Some(staging) = &state.staging {
            let mut to = 0;
            for v in run.outputs.iter().filter_map(|(at, _)| wanted(*at)) {
                let size = self.span(v, &state.rows) as u64 * 4;
                let from = self.plan.places[v.index()].offset as u64 * 4;
                if size > 0 {
                    encoder.copy_buffer_to_buffer(&self.arena, from, staging, to, Some(size));
                }
                to += size;
            }
        }
        // The last moment: a submission cannot be taken back.
        if cancel.is_some_and(CancelToken::is_cancelled) {
            return Err(RunError::Cancelled);
        }
        let copy = run.keep_step.then(|| session.copy_steps(&mut encoder));
        let submission = self.device.queue.submit([encoder.finish()]);
        session.ran(graph, &state.rows);
        if let Some(copy) = copy {
            session.keep(copy, submission);
        }

        run.outputs.iter_mut().for_each(|(_, out)| out.clear());
        if let Some(staging) = state.staging.as_ref().filter(|_| bytes > 0) {
            self.device.read(staging, bytes, |data| {
                let words: Vec<u32> = bytemuck::pod_collect_to_vec(data);
                let mut rest = words.as_slice();
                for (at, out) in run.outputs.iter_mut() {
                    let Some(v) = wanted(*at) else { continue };
                    let (span, after) = rest.split_at(self.span(v, &state.rows));
                    rest = after;
                    let place = self.plan.places[v.index()];
                    let whole = graph.values[v.index()].ty == ElementType::I32;
                    let number = |&w: &u32| if whole { w as i32 as f32 } else { f32::from_bits(w) };
                    for row in span.chunks(place.stride.max(1)) {
                        out.extend(row.iter().take(place.cols).map(number));
                    }
                }
            })?;
        }
        self.device.check()
    }
}
