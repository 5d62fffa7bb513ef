//! The backends that this machine offers to the op suite.

use repartee_engine::backends::Backend;
use repartee_engine::backends::cpu::{Cpu, CpuOptions, InstructionSet};

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
    InstructionSet::available().into_iter().map(cpu).collect()
}

fn cpu(set: InstructionSet) -> Subject {
    let options = CpuOptions { threads: Some(2), instruction_set: Some(set), poison: true };
    Subject { backend: Box::new(Cpu::new(options)), device: "cpu", skips: CPU_SKIPS }
}

/// What the CPU does not claim.
const CPU_SKIPS: &[Skip] = &[
    // No model has it; a depth-wise kernel gives each channel one output.
    Skip { case: " to 10 in 5", reason: "depth-wise convolution with several outputs for each channel" },
];
