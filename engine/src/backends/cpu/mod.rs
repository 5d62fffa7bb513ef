//! The CPU backend: packed weights, vector kernels, one pool of threads.
//!
//! | module | what it holds |
//! |---|---|
//! | `simd` | one kernel text for many instruction sets, and the choice among them |
//! | `pack` | matrices in the order that kernels read |
//! | `kernels` | the kernels |
//! | `plan` | from a graph to steps and places in memory |
//! | `program` | running the steps |
//! | `pool` | worker threads |
//!
//! A result never depends on the number of threads or on how many rows run at once: each output is one chain of
//! additions in a fixed order.

mod exec;
mod exec_columns;
mod exec_products;
mod kernels;
mod measure;
mod memory;
mod pack;
mod plan;
mod pool;
mod program;
mod session;
mod simd;

use std::sync::Arc;

pub use simd::InstructionSet;

use super::executor::Turnstile;
use super::{Backend, CompileError, Floors, Program, Session, WeightSet, unite_states};
use crate::graph::{Graph, KeyValues, Op};
use pool::Pool;

/// How to set the CPU up.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuOptions {
    /// Threads in all; all processors when not given.
    pub threads: Option<usize>,
    /// Instruction set; the best of this machine when not given or not there.
    pub instruction_set: Option<InstructionSet>,
    /// Fills memory with NaN before every run, so that tests see what reads past a length.
    pub poison: bool,
}

/// What all programs of one backend share.
pub(crate) struct Device {
    pub(crate) set: InstructionSet,
    pub(crate) pool: Pool,
    pub(crate) turnstile: Turnstile,
    pub(crate) poison: bool,
}

/// The CPU backend. Clones share threads and turns.
#[derive(Clone)]
pub struct Cpu {
    device: Arc<Device>,
}

impl Cpu {
    /// Starts the worker threads.
    pub fn new(options: CpuOptions) -> Self {
        let available = InstructionSet::available();
        let wanted = options.instruction_set.filter(|set| available.contains(set));
        let set = wanted.unwrap_or_else(InstructionSet::best);
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        let pool = Pool::new(options.threads.unwrap_or(all));
        let device = Device { set, pool, turnstile: Turnstile::default(), poison: options.poison };
        let cpu = Self { device: Arc::new(device) };
        tracing::info!(backend = cpu.name(), "ready");
        cpu
    }

    /// The instruction set in use.
    pub fn instruction_set(&self) -> InstructionSet {
        self.device.set
    }

    /// GB/s of a plain read of memory and GFLOP/s of a plain multiplication of f32 matrices, with all threads: what
    /// the models' figures are held against. Takes about a second and 512 MB.
    pub fn measure(&self) -> (f64, f64) {
        (measure::read_gb_per_s(&self.device), measure::multiply_gflop_per_s(&self.device))
    }

    /// Threads in use, the caller's included.
    pub fn threads(&self) -> usize {
        self.device.pool.threads()
    }
}

impl Backend for Cpu {
    fn name(&self) -> String {
        let threads = self.threads();
        let plural = if threads == 1 { "" } else { "s" };
        format!("cpu ({}, {threads} thread{plural})", self.device.set.name())
    }

    fn floors(&self) -> Option<Floors> {
        let (read, multiply) = self.measure();
        let (read_per_sec, operations_per_sec) = (read * 1e9, multiply * 1e9);
        Some(Floors { read_per_sec, copy_per_sec: None, operations_per_sec, dispatch_secs: None })
    }

    fn compile(&self, graph: &Graph, weights: &WeightSet) -> Result<Box<dyn Program>, CompileError> {
        Ok(Box::new(program::CpuProgram::new(graph, weights, self.device.clone())?))
    }

    fn session(&self, graphs: &[&Graph]) -> Result<Session, CompileError> {
        let (specs, slots) = unite_states(graphs)?;
        let mut keys = Vec::new();
        for graph in graphs {
            for node in &graph.nodes {
                if let Op::Attention {
                    source: KeyValues::Cache { keys: k, .. } | KeyValues::CacheOfLength { keys: k, .. },
                    ..
                } = node.op
                {
                    keys.push(graph.states[k.index()].name.clone());
                }
            }
        }
        let name = graphs.first().map_or("session", |g| &g.name);
        let state = session::CpuSession::new(&specs, &keys, slots);
        let state = state.map_err(|kind| CompileError::in_graph(name, kind))?;
        Ok(Session::new(Box::new(state), slots))
    }
}
