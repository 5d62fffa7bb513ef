//! The wgpu backend: Vulkan, Metal and Direct3D 12 through one set of plain WGSL kernels.
//!
//! A program's values lie in one buffer (the arena), its nodes are dispatches of one compute pass, and a run is
//! one submission: it happens whole or, when cancelled before, not at all. (Software in place of a GPU takes a few
//! dispatches at a time, for a run may last seconds there.) Row counts are numbers in a small
//! uniform buffer that is rewritten only when the lengths change, so that a decode step writes nothing. The step
//! block lives on the device; `Sample` and `Advance` change it there, and the next step reads the token without
//! the host, which is given a copy behind each step and reads it while the next one runs. The host keeps an upper bound of each position, so that a full context is refused without waiting.
//!
//! ```no_run
//! use repartee_engine::backends::{Backend, wgpu::{Wgpu, WgpuOptions}};
//! let gpu = Wgpu::new(WgpuOptions::default())?;
//! assert!(gpu.name().starts_with("wgpu"));
//! # Ok::<(), repartee_engine::backends::wgpu::WgpuError>(())
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `device` | the adapter that is chosen, buffers, pipelines made once |
//! | `fuse` | what several nodes do together |
//! | `plan` | where values lie in the arena |
//! | `kernel` | a dispatch: kernel, words that depend on lengths, bindings |
//! | `rows`, `products`, `attention`, `sample` | from an op to its dispatches; WGSL of the same name |
//! | `pipelines` | compiled pipelines on disk |
//! | `measure` | what the adapter can do at best |
//! | `program`, `session`, `weights`, `staging` | running, states, uploads, reading back |
//!
//! Linear layers of a few rows have 16 threads for an output; those of many, and convolutions, go through tiles in shared
//! memory. Other kernels are simple: one thread computes one number. Block weights are read as they stand in the file.
//! A matrix that no binding holds (128 MiB on the smallest devices) is cut into parts; anything else that large is
//! refused. The backend has every op of the table; a form that it lacks is refused with the reason. When the
//! device is lost or out of memory, runs end with an error; nothing panics.
//!
//! Functions that WGSL leaves loose (`exp`, `sin`, f16 conversion, NaN) are written out, so that results do not
//! hang on the driver.

mod attention;
mod device;
mod fuse;
mod kernel;
mod measure;
mod pipelines;
mod plan;
#[cfg(test)]
mod plan_tests;
mod products;
mod program;
mod repack;
mod rows;
mod sample;
mod session;
mod staging;
mod weights;

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::Arc;

use super::{Backend, CompileError, Floors, Program, Session, WeightSet, unite_states};
use crate::graph::Graph;

/// How to choose and set up a device.
#[derive(Clone, Debug, Default)]
pub struct WgpuOptions {
    /// Whether a software adapter will do: for tests without a GPU.
    pub allow_software: bool,
    /// Fills values with NaN before every run, so that tests see what reads past a length.
    pub poison: bool,
    /// Cuts matrices into parts of at most so many bytes; what a binding of the device holds when not given. For
    /// tests: parts are otherwise found only in matrices of more than 128 MiB.
    pub part_bytes: Option<u64>,
    /// Steps that may be under way beside the one whose token is waited for; when not given one on a GPU and none where
    /// software computes. For tests.
    pub steps_ahead: Option<usize>,
    /// Whether programs run once when they are compiled; when not given they do so on a GPU. For tests.
    pub warm_up: Option<bool>,
    /// Folder of this user's for compiled pipelines, made when there is something to keep; nothing is kept when not given,
    /// or where the adapter's API has no such cache (Vulkan has).
    pub pipelines: Option<PathBuf>,
    /// The most bytes of all buffers together, of those that are gone by now too; what the device has when not given. For
    /// tests: to fill a real device disturbs all else that is on it.
    pub memory_bytes: Option<u64>,
}

/// What a driver offers to compute with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapter {
    /// The device's name.
    pub name: String,
    /// The driver's name and version, as it gives them.
    pub driver: String,
    /// `Vulkan`, `Metal` or `Dx12`.
    pub api: String,
    /// The processor computes in place of a GPU.
    pub is_software: bool,
}

impl Adapter {
    fn of(info: &wgpu::AdapterInfo) -> Self {
        let driver = match (info.driver.trim(), info.driver_info.trim()) {
            ("", "") => "unknown".into(),
            (driver, "") | ("", driver) => driver.into(),
            (driver, version) => format!("{driver} {version}"),
        };
        Self {
            name: info.name.clone(),
            driver,
            api: format!("{:?}", info.backend),
            is_software: info.device_type == wgpu::DeviceType::Cpu,
        }
    }
}

impl Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; driver: {}; {}", self.name, self.driver, self.api)
    }
}

/// What all drivers offer, the best first: that is what [`Wgpu::new`] opens, if it is of an allowed kind. Takes a moment.
pub fn adapters() -> Vec<Adapter> {
    device::adapters().iter().map(|adapter| Adapter::of(&adapter.get_info())).collect()
}

/// Why there is no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WgpuError {
    /// No adapter of an allowed kind.
    #[error("no GPU was found{}: install its Vulkan, Metal or Direct3D driver, or choose the CPU",
        .software.as_ref().map_or(String::new(), |name| format!(" (only a software adapter, {name})")))]
    NoAdapter {
        /// A software adapter that was not allowed.
        software: Option<String>,
    },
    /// The adapter gave no device.
    #[error("{adapter} gave no device: {message}; choose another backend")]
    Device {
        /// The adapter.
        adapter: String,
        /// What it said.
        message: String,
    },
}

/// The wgpu backend. Clones share the device.
#[derive(Clone)]
pub struct Wgpu {
    device: Arc<device::Device>,
}

impl Wgpu {
    /// Opens the best adapter: a discrete GPU before an integrated one, software only when allowed.
    ///
    /// # Errors
    /// [`WgpuError`].
    pub fn new(options: WgpuOptions) -> Result<Self, WgpuError> {
        let wgpu = Self { device: Arc::new(device::Device::open(options)?) };
        tracing::info!(backend = wgpu.name(), "ready");
        Ok(wgpu)
    }

    /// Loses the device, as a driver that fails does: all that was made with it ends with
    /// [`RunError::DeviceLost`](super::RunError::DeviceLost). For tests of what happens then.
    #[doc(hidden)]
    pub fn lose(&self) {
        self.device.device.destroy();
    }

    /// Which kernels are used, in words.
    pub fn kernels(&self) -> &'static str {
        "plain f32, and packed 8-bit integers for block weights"
    }

    /// Whether the processor computes in place of a GPU.
    pub fn is_software(&self) -> bool {
        self.device.is_software
    }
}

impl Backend for Wgpu {
    fn name(&self) -> String {
        format!("wgpu ({})", self.device.adapter)
    }

    fn description(&self) -> String {
        format!("{}; kernels: {}", self.device.about, self.kernels())
    }

    fn floors(&self) -> Option<Floors> {
        self.floors_now().inspect_err(|error| tracing::warn!(%error, "nothing was measured")).ok()
    }

    fn finish(&self) {
        // A lost device is told by the next run.
        let _ = self.device.finish();
    }

    fn steps_ahead(&self) -> usize {
        self.device.steps_ahead
    }

    fn compile(&self, graph: &Graph, weights: &WeightSet) -> Result<Box<dyn Program>, CompileError> {
        let program = program::WgpuProgram::new(graph, weights, self.device.clone())?;
        let made = self.device.finish_uploads().and_then(|()| self.device.check_made());
        made.map_err(|kind| CompileError::in_graph(&graph.name, kind))?;
        self.device.save_pipelines();
        // Where software computes there is nothing to warm that takes less than the run.
        if self.device.warms_up {
            program.warm_up();
        }
        Ok(Box::new(program))
    }

    fn session(&self, graphs: &[&Graph]) -> Result<Session, CompileError> {
        let (specs, slots) = unite_states(graphs)?;
        let name = graphs.first().map_or("session", |g| &g.name);
        let state = session::WgpuSession::new(self.device.clone(), specs, slots)
            .and_then(|state| self.device.check_made().map(|()| state))
            .map_err(|kind| CompileError::in_graph(name, kind))?;
        let device = self.device.clone();
        Ok(Session::new(Box::new(state), slots).with_health(move || device.check()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::backends::{Input, MemoryTensors, Run, RunError};
    use crate::graph::{Direction, GraphBuilder};

    #[test]
    fn a_lost_device_is_an_error_and_no_panic() {
        let options = WgpuOptions { allow_software: true, ..WgpuOptions::default() };
        let gpu = match Wgpu::new(options) {
            Ok(gpu) => gpu,
            Err(e) => {
                assert!(std::env::var("CI").as_deref() != Ok("true"), "not tested: {e}");
                let _ = writeln!(std::io::stderr(), "not tested: {e}");
                return;
            }
        };
        let mut tensors = MemoryTensors::new();
        for (name, shape) in [("ih", &[8, 2][..]), ("hh", &[8, 2]), ("b", &[8])] {
            tensors.insert_f32(name, shape, &vec![0.5; shape.iter().product()]).unwrap();
        }
        let mut g = GraphBuilder::new("lstm");
        let n = g.symbol("n", 4);
        let x = g.input_f32("x", n, 2);
        let y = g.lstm(x, ["ih", "hh", "b", "b"], 2, Direction::Forward, Some("h"));
        g.output("y", y);
        let ids = g.input_i32("ids", n, 1);
        g.advance(ids);
        let graph = g.finish().unwrap();
        let weights = gpu.weight_set(Arc::new(tensors));
        let program = gpu.compile(&graph, &weights).unwrap();
        let mut session = gpu.session(&[&graph]).unwrap();
        let mut out = Vec::new();
        let mut run = |session: &mut Session| {
            let inputs = [Input::F32(&[1.0; 6]), Input::I32(&[1; 3])];
            let mut outputs = [(0, &mut out)];
            program
                .run(session, Run { lengths: &[3], inputs: &inputs, outputs: &mut outputs, ..Run::default() })
        };
        run(&mut session).unwrap();
        assert_eq!(session.drawn(0).unwrap().position, 3);

        run(&mut session).unwrap();
        gpu.lose();
        assert!(matches!(session.drawn(0), Err(RunError::DeviceLost { .. })), "no row that nobody made");
        for _ in 0..2 {
            assert!(matches!(run(&mut session), Err(RunError::DeviceLost { .. })));
        }
        // Nothing else panics either: the session is only good for being dropped.
        session.update_step(0, |row| row.position = 1);
        session.state().save(0);
        session.state().restore(0);
        session.state().reset();
        session.state().write_state("h", &[0.0; 4]);
        assert_eq!(session.state().read_state("h"), None);
        assert!(gpu.compile(&graph, &weights).is_err());
        assert!(gpu.session(&[&graph]).is_err());
    }
}
