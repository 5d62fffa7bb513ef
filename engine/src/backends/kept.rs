//! Step blocks that runs have left, in line for who collects them, where a run ends before it returns.

use std::collections::VecDeque;

use crate::graph::StepRow;

/// Blocks of one session; allocates nothing once it has held as many as it ever will.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptSteps {
    line: VecDeque<StepRow>,
    collected: Vec<StepRow>,
}

impl KeptSteps {
    /// Puts a block, one row for each slot, behind the others.
    pub(crate) fn push(&mut self, block: &[StepRow]) {
        self.line.extend(block);
    }

    /// The oldest block of `slots` rows.
    pub(crate) fn collect(&mut self, slots: usize) -> Option<&[StepRow]> {
        if self.line.is_empty() {
            return None;
        }
        self.collected.clear();
        self.collected.extend(self.line.drain(..slots.min(self.line.len())));
        Some(&self.collected)
    }

    /// Drops all.
    pub(crate) fn clear(&mut self) {
        self.line.clear();
    }
}
