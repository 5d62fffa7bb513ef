//! The backends that this machine offers to the op suite.

use repartee_engine::backends::Backend;
use repartee_engine::backends::cpu::{Cpu, CpuOptions, InstructionSet};
#[cfg(feature = "wgpu")]
use repartee_engine::backends::wgpu::{Wgpu, WgpuOptions};

use crate::case::Case;

/// A backend under test.
pub struct Subject {
    /// The backend.
    pub backend: Box<dyn Backend>,
    /// What each placement must name.
    pub device: &'static str,
    /// What this backend does not claim to run.
    pub skips: &'static [Skip],
}

/// Something that a backend does not run. The suite checks that compiling it is refused.
#[derive(Clone, Copy, Debug)]
pub struct Skip {
    /// A part of the cases' names.
    pub case: &'static str,
    /// Why it is missing.
    pub reason: &'static str,
}

impl Subject {
    /// The entry of the skip list that covers a case.
    pub fn skip(&self, case: &Case) -> Option<&Skip> {
        self.skips.iter().find(|s| case.name.contains(s.case))
    }
}

/// Every backend of this machine, each instruction set of the CPU on its own.
pub fn subjects() -> Vec<Subject> {
    let all = InstructionSet::available().into_iter().map(cpu);
    #[cfg(feature = "wgpu")]
    let all = all.chain(wgpu_subject(None));
    all.collect()
}

/// The wgpu backend as a subject; with `part_bytes` its matrices are cut, as those of large models are.
#[cfg(feature = "wgpu")]
pub fn wgpu_subject(part_bytes: Option<u64>) -> Option<Subject> {
    let backend =
        wgpu(WgpuOptions { allow_software: true, poison: true, part_bytes, ..WgpuOptions::default() })?;
    Some(Subject { backend: Box::new(backend), device: "wgpu", skips: WGPU_SKIPS })
}

/// The wgpu backend, on a software adapter where there is no GPU. Without either this says so and gives none;
/// where `CI=true` it fails, since a suite that leaves a backend out proves nothing about it.
///
/// # Panics
/// Without an adapter and with `CI=true`.
#[cfg(feature = "wgpu")]
pub fn wgpu(options: WgpuOptions) -> Option<Wgpu> {
    use std::io::Write;
    let problem = match Wgpu::new(options) {
        Ok(backend) => return Some(backend),
        Err(e) => format!("not tested, the wgpu backend: {e}; `cargo xtask test` installs a software driver"),
    };
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{problem}");
    // Written past the test runner, which keeps what passing tests print to itself.
    let _ = writeln!(std::io::stderr(), "{problem}");
    None
}

/// What the wgpu backend does not claim: nothing; it has every op of the table.
#[cfg(feature = "wgpu")]
const WGPU_SKIPS: &[Skip] = &[];

fn cpu(set: InstructionSet) -> Subject {
    let options = CpuOptions { threads: Some(2), instruction_set: Some(set), poison: true };
    Subject { backend: Box::new(Cpu::new(options)), device: "cpu", skips: CPU_SKIPS }
}

/// What the CPU does not claim.
const CPU_SKIPS: &[Skip] = &[
    // No model has it; a depth-wise kernel gives each channel one output.
    Skip { case: " to 10 in 5", reason: "depth-wise convolution with several outputs for each channel" },
];
