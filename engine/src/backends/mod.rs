//! The implementations of the op table, behind one interface.
//!
//! [`Backend::compile`] turns a [`Graph`] and a [`WeightSet`] into a [`Program`]; a [`Session`] holds the state
//! that outlives a run (caches, recurrences, the step block) and is shared by the programs that name the same
//! states. [`Program::placement`] says where each op runs: a backend never hands single ops to another device.
//!
//! | module | what it holds |
//! |---|---|
//! | [`weights`] | weights packed once, shared by programs |
//! | [`cpu`] | vectorised and threaded kernels |
//! | `wgpu` | plain kernels on a GPU (feature `wgpu`) |
//! | [`executor`] | one run at a time for each device, by priority; cancelling |
//!
//! The plain meaning of each op is [`crate::reference`], which implements the same interface.

pub mod cpu;
pub mod executor;
mod kept;
mod run;
mod times;
pub mod weights;
#[cfg(feature = "wgpu")]
pub mod wgpu;

pub use executor::{CancelToken, Priority};
pub(crate) use kept::KeptSteps;
pub use run::{Input, Run, RunError};
pub(crate) use run::{check, check_context};
pub use times::{Floors, NodeTime, node_times};
pub use weights::{MemoryTensors, WeightSet};

use std::any::Any;
use std::sync::Arc;

use crate::formats::{FormatError, TensorSource};
use crate::graph::{Graph, StateSpec, StepRow};

/// Makes programs and sessions for one device.
pub trait Backend: Send + Sync {
    /// Short name for logs and reports, with what was chosen: `cpu (avx512-vnni, 2 threads)`.
    fn name(&self) -> String;

    /// For people who want to know what computes: device, driver and kernels. One line.
    fn description(&self) -> String {
        self.name()
    }

    /// What the device can do at best, measured now: takes up to a second, software some more. `None` where it can't be measured.
    fn floors(&self) -> Option<Floors> {
        None
    }

    /// Waits until all that was asked of the device is done: a run that reads nothing back returns before. For measuring.
    fn finish(&self) {}

    /// How many runs that draw a token may well be under way beside the one that is waited for: 0 where a run ends before
    /// it returns, for there they only come in the way of what is next.
    fn steps_ahead(&self) -> usize {
        0
    }

    /// Wraps a weight file for this backend; its packed tensors are shared by all programs compiled from it.
    fn weight_set(&self, source: Arc<dyn TensorSource>) -> WeightSet {
        WeightSet::new(source)
    }

    /// Compiles a graph.
    ///
    /// # Errors
    /// An op, type or size that this backend can't run (it never falls back), or weights that do not fit.
    fn compile(&self, graph: &Graph, weights: &WeightSet) -> Result<Box<dyn Program>, CompileError>;

    /// Makes the states of `graphs` (united by name), zeroed, with one default step row for each slot.
    ///
    /// # Errors
    /// Graphs that disagree about a state or about the slots, or memory that can't be had.
    fn session(&self, graphs: &[&Graph]) -> Result<Session, CompileError>;
}

/// A compiled graph.
pub trait Program: Send + Sync {
    /// The graph it was compiled from.
    fn graph(&self) -> &Graph;

    /// Where each node runs, in the graph's order.
    fn placement(&self) -> Vec<Placement>;

    /// Runs once. On an error or when cancelled no state changes. A device may still be at it when this returns, unless
    /// outputs are read back.
    ///
    /// # Errors
    /// [`RunError`].
    fn run(&self, session: &mut Session, run: Run<'_, '_>) -> Result<(), RunError>;
}

/// Where one node runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Position among the graph's nodes.
    pub node: usize,
    /// The op's name.
    pub op: &'static str,
    /// The device, as the first word of [`Backend::name`].
    pub device: String,
    /// The kernel that was chosen.
    pub kernel: String,
    /// Bytes of the weights that a run reads whole, as they are in the file.
    pub weight_bytes: u64,
}

/// What a session can do on every device. Positions, settings and tokens are rows of the step block.
pub trait SessionState: Send {
    /// Reads a slot's step row, waiting for runs in flight.
    fn step(&mut self, slot: usize) -> StepRow;

    /// The step block as the oldest run with [`Run::keep_step`] left it whose block was not collected yet, one row for each
    /// slot; waits for that run and not for those behind it. `None` when there is none.
    ///
    /// # Errors
    /// A lost device.
    fn collect(&mut self) -> Result<Option<&[StepRow]>, RunError>;

    /// Replaces a slot's step row. What was kept and not collected is dropped, as by [`Self::restore`] and
    /// [`Self::reset`]: it is of a past that no longer counts.
    fn set_step(&mut self, slot: usize, row: &StepRow);

    /// Copies the recurrent states and the step block aside, under `mark`. Caches need no copy: they are cut
    /// by position.
    fn save(&mut self, mark: usize);

    /// Brings the recurrent states and the step block of `mark` back; false when there is none.
    fn restore(&mut self, mark: usize) -> bool;

    /// Zeroes the recurrent states and puts default rows into the step block.
    fn reset(&mut self);

    /// A state as plain rows `[rows * cols]`, for tests and for moving to another device.
    fn read_state(&mut self, name: &str) -> Option<Vec<f32>>;

    /// Replaces a state from plain rows; false for an unknown name or a wrong length.
    fn write_state(&mut self, name: &str, data: &[f32]) -> bool;

    /// For the backend to find its own type again.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// State that outlives a run: caches, recurrences and the step block.
pub struct Session {
    inner: Box<dyn SessionState>,
    slots: usize,
    health: Box<dyn Fn() -> Result<(), RunError> + Send>,
}

impl Session {
    /// Wraps a backend's state for `slots` sequences.
    pub fn new(inner: Box<dyn SessionState>, slots: usize) -> Self {
        Self { inner, slots, health: Box::new(|| Ok(())) }
    }

    /// With what says whether the device still works: the states of a lost one are not to be believed.
    #[must_use]
    pub fn with_health(self, health: impl Fn() -> Result<(), RunError> + Send + 'static) -> Self {
        Self { health: Box::new(health), ..self }
    }

    /// Sequences that run side by side.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The backend's state.
    pub fn state(&mut self) -> &mut dyn SessionState {
        self.inner.as_mut()
    }

    /// Reads a slot's step row, waiting for runs in flight.
    pub fn step(&mut self, slot: usize) -> StepRow {
        self.inner.step(slot)
    }

    /// The step block that the oldest run with [`Run::keep_step`] left, as [`SessionState::collect`].
    ///
    /// # Errors
    /// A lost device.
    pub fn collect(&mut self) -> Result<Option<&[StepRow]>, RunError> {
        self.inner.collect()
    }

    /// As [`Self::step`], for what the device has drawn.
    ///
    /// # Errors
    /// [`RunError::DeviceLost`]: the row is not what the runs in flight made of it.
    pub fn drawn(&mut self, slot: usize) -> Result<StepRow, RunError> {
        let row = self.inner.step(slot);
        (self.health)()?;
        Ok(row)
    }

    /// Changes a slot's step row on the host and writes it back.
    pub fn update_step(&mut self, slot: usize, change: impl FnOnce(&mut StepRow)) {
        let mut row = self.inner.step(slot);
        change(&mut row);
        self.inner.set_step(slot, &row);
    }

    /// Forgets all cache rows of a slot from `position` on.
    pub fn truncate(&mut self, slot: usize, position: usize) {
        self.update_step(slot, |row| row.position = row.position.min(position as u32));
    }
}

/// The states of several graphs united by name, as a session needs them.
///
/// # Errors
/// Two graphs that declare a name differently, or that have different slots.
pub fn unite_states(graphs: &[&Graph]) -> Result<(Vec<StateSpec>, usize), CompileError> {
    let slots = graphs.first().map_or(1, |g| g.slots);
    let mut states: Vec<StateSpec> = Vec::new();
    for graph in graphs {
        if graph.slots != slots {
            return Err(CompileError::in_graph(
                &graph.name,
                CompileErrorKind::StatesDisagree(format!("{} slots beside {slots}", graph.slots)),
            ));
        }
        for spec in &graph.states {
            match states.iter().find(|s| s.name == spec.name) {
                None => states.push(spec.clone()),
                Some(known) if known == spec => {}
                Some(known) => {
                    return Err(CompileError::in_graph(
                        &graph.name,
                        CompileErrorKind::StatesDisagree(format!("{spec:?} beside {known:?}")),
                    ));
                }
            }
        }
    }
    Ok((states, slots))
}

/// Why a graph could not be compiled.
#[derive(Debug, thiserror::Error)]
#[error("cannot compile {graph}: {kind}")]
pub struct CompileError {
    /// Name of the graph.
    pub graph: String,
    /// What stands in the way.
    #[source]
    pub kind: CompileErrorKind,
}

impl CompileError {
    /// An error about the graph called `graph`.
    pub fn in_graph(graph: &str, kind: CompileErrorKind) -> Self {
        Self { graph: graph.into(), kind }
    }
}

/// What stands in the way of compiling.
#[derive(Debug, thiserror::Error)]
pub enum CompileErrorKind {
    /// The backend lacks this op, or this form of it.
    #[error("{op} (node {node}) is not supported here: {reason}; choose another backend")]
    Unsupported {
        /// The op's name.
        op: &'static str,
        /// Its place.
        node: usize,
        /// What is missing.
        reason: String,
    },
    /// A weight is missing or damaged.
    #[error("{0}")]
    Weight(#[from] FormatError),
    /// A weight's shape is not what the graph needs.
    #[error("weight {name} has shape {found:?} but {expected} is needed: the file belongs to another model")]
    WeightShape {
        /// Name in the file.
        name: String,
        /// Shape in the file.
        found: Vec<usize>,
        /// Shape that the graph needs.
        expected: String,
    },
    /// Programs of one session declare a state differently.
    #[error("programs of one session disagree: {0}")]
    StatesDisagree(String),
    /// Memory can't be had.
    #[error(
        "needs another {} of memory on {device}, which can't be had: choose a smaller model or another backend, or close \
         other programs that use it",
        megabytes(*.bytes)
    )]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
        /// The device.
        device: String,
    },
    /// The device failed.
    #[error("{device} failed: {message}")]
    Device {
        /// The device.
        device: String,
        /// What it said.
        message: String,
    },
}

/// For people. What overflows is more than any device has.
fn megabytes(bytes: usize) -> String {
    match bytes {
        usize::MAX => "great many MB".into(),
        bytes => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
