//! Running a plan: one step after the other, each spread over the pool.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use super::Device;
use super::exec::Exec;
use super::memory::Memory;
use super::pack::out_of_memory;
use super::plan::{Plan, Work, plan};
use super::session::CpuSession;
use crate::backends::{
    CompileError, Input, Placement, Program, Run, RunError, Session, WeightSet, check, check_context,
};
use crate::graph::{Graph, Node, Op};

/// Memory of one run at a time.
struct Workspace {
    /// Values, then shared scratch, then each worker's scratch.
    memory: Memory,
    rows: Vec<usize>,
    /// The session's state for each of the graph's.
    states: Vec<usize>,
    /// For the sampler.
    candidates: Vec<(f32, u32)>,
}

/// A program of the CPU backend.
pub(super) struct CpuProgram {
    graph: Graph,
    plan: Plan,
    device: Arc<Device>,
    workspace: Mutex<Workspace>,
    /// States that a run replaces.
    recurrent: Vec<usize>,
    /// What each node reads of weights.
    weight_bytes: Vec<u64>,
}

impl CpuProgram {
    pub(super) fn new(graph: &Graph, weights: &WeightSet, device: Arc<Device>) -> Result<Self, CompileError> {
        let plan = plan(graph, weights)?;
        let scratch_floats = plan.scratch.div_ceil(4) + plan.worker_scratch * device.pool.threads();
        let bytes = 4 * (plan.arena + 32 + scratch_floats);
        let memory =
            Memory::zeroed(bytes).ok_or_else(|| CompileError::in_graph(&graph.name, out_of_memory(bytes)))?;
        let mut recurrent: Vec<usize> = graph
            .nodes
            .iter()
            .filter_map(|n| match n.op {
                Op::Conv1dCarry { state, .. } | Op::Lstm { state: Some(state), .. } => Some(state.index()),
                _ => None,
            })
            .collect();
        recurrent.sort_unstable();
        recurrent.dedup();
        let workspace = Workspace {
            memory,
            rows: Vec::with_capacity(graph.values.len()),
            states: Vec::with_capacity(graph.states.len()),
            candidates: Vec::new(),
        };
        let weight_bytes = graph.nodes.iter().map(|node| weights.bytes_read(graph, node)).collect();
        let graph = graph.clone();
        Ok(Self { graph, plan, device, workspace: Mutex::new(workspace), recurrent, weight_bytes })
    }

    /// Finds the session's states for the graph's; allocates nothing.
    fn bind(&self, session: &CpuSession, states: &mut Vec<usize>) -> Result<(), RunError> {
        states.clear();
        for (i, spec) in self.graph.states.iter().enumerate() {
            // Sessions list states in the order of the first graph, so the same place is the likely one.
            let here = session.states.get(i).filter(|s| s.spec == *spec).map(|_| i);
            let found = here.or_else(|| session.states.iter().position(|s| s.spec == *spec));
            let Some(at) = found else {
                return Err(RunError::Session { graph: self.graph.name.clone(), state: spec.name.clone() });
            };
            states.push(at);
        }
        Ok(())
    }
}

impl Program for CpuProgram {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn placement(&self) -> Vec<Placement> {
        let kernel = self.device.set.name();
        let place = |(node, n): (usize, &Node)| {
            let kernel = match self.plan.steps[node].work {
                Work::Nothing => "(joined)".into(),
                _ => kernel.into(),
            };
            let weight_bytes = self.weight_bytes[node];
            Placement { node, op: n.op.name(), device: "cpu".into(), kernel, weight_bytes }
        };
        self.graph.nodes.iter().enumerate().map(place).collect()
    }

    fn run(&self, session: &mut Session, mut run: Run<'_, '_>) -> Result<(), RunError> {
        let graph = &self.graph;
        let mut workspace = self.workspace.lock().unwrap_or_else(PoisonError::into_inner);
        let Workspace { memory, rows, states, candidates } = &mut *workspace;
        check(graph, &run, rows)?;
        let Some(session) = session.state().as_any().downcast_mut::<CpuSession>() else {
            let state = "(another backend's)".into();
            return Err(RunError::Session { graph: graph.name.clone(), state });
        };
        self.bind(session, states)?;
        check_context(graph, rows, &session.steps)?;

        if self.device.poison {
            bytemuck::cast_slice_mut::<u8, f32>(&mut memory.bytes_mut()[..4 * self.plan.arena])
                .fill(f32::NAN);
        }
        for ((_, v), input) in graph.inputs.iter().zip(run.inputs) {
            let at = 4 * self.plan.places[v.index()].offset;
            let bytes: &[u8] = match input {
                Input::F32(d) => bytemuck::cast_slice(d),
                Input::I32(d) => bytemuck::cast_slice(d),
            };
            memory.bytes_mut()[at..at + bytes.len()].copy_from_slice(bytes);
        }
        session.staged.copy_from_slice(&session.steps);

        let mut turn = self.device.turnstile.enter(run.priority);
        let values = memory.as_ptr().cast::<f32>();
        let scratch = values.wrapping_add(self.plan.arena.next_multiple_of(16));
        let mut exec = Exec {
            graph,
            plan: &self.plan,
            device: &self.device,
            rows,
            lengths: run.lengths,
            values,
            scratch: scratch.cast(),
            worker_scratch: scratch.wrapping_add(self.plan.scratch.div_ceil(4)),
            states: &session.states,
            bound: states,
            steps: &mut session.staged,
            candidates,
            cancel: run.cancel,
        };
        for step in &self.plan.steps {
            if exec.cancelled(0) {
                return Err(RunError::Cancelled);
            }
            turn.yield_to_higher();
            let started = run.node_ns.is_some().then(std::time::Instant::now);
            // SAFETY: places, scratch and states were planned for these shapes; rows are within the maxima.
            unsafe { exec.step(step) };
            if let (Some(times), Some(started)) = (run.node_ns.as_mut(), started) {
                times.resize(graph.nodes.len(), 0);
                times[step.node] += started.elapsed().as_nanos() as u64;
            }
        }
        if exec.cancelled(0) {
            return Err(RunError::Cancelled);
        }
        drop(turn);

        session.steps.copy_from_slice(&session.staged);
        if run.keep_step {
            session.kept.push(&session.steps);
        }
        for &r in &self.recurrent {
            let state = &mut session.states[states[r]];
            if let Some(next) = state.next.as_mut() {
                std::mem::swap(&mut state.data, next);
            }
        }
        // The other threads' writes were seen when their regions closed.
        std::sync::atomic::fence(Ordering::Acquire);
        for (index, out) in run.outputs.iter_mut() {
            out.clear();
            let Some((_, v)) = graph.outputs.get(*index) else { continue };
            let place = self.plan.places[v.index()];
            let cols = graph.shape(*v).cols;
            let floats: &[f32] = bytemuck::cast_slice(memory.bytes());
            for row in 0..rows[v.index()] {
                let from = place.offset + row * place.stride;
                let numbers = &floats[from..from + cols];
                match graph.values[v.index()].ty {
                    crate::graph::ElementType::F32 => out.extend_from_slice(numbers),
                    crate::graph::ElementType::I32 => {
                        out.extend(bytemuck::cast_slice::<f32, i32>(numbers).iter().map(|&x| x as f32));
                    }
                }
            }
        }
        Ok(())
    }
}
