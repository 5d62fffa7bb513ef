//! Drawing tokens one after the other with some steps under way before the last one's token is read.
//!
//! A step's token stays on the device, where the next step finds it, so the host may hand over steps in advance and read
//! tokens while they run. What runs behind a stop token changes nothing ([`crate::graph::StepRow::done`]), and what was
//! handed over and never collected is cut off with [`Session::truncate`], as the model's own list of tokens says.

use crate::backends::{Backend, RunError, Session};
use crate::graph::StepRow;

/// Counts the steps of one session (of a single slot) that are under way.
pub(super) struct Ahead {
    /// Steps beside the one that is waited for.
    most: usize,
    under_way: usize,
}

impl Ahead {
    /// As many as the backend takes.
    pub(super) fn new(backend: &dyn Backend) -> Self {
        Self { most: backend.steps_ahead(), under_way: 0 }
    }

    /// Waits for the prompt, which ran with [`crate::backends::Run::keep_step`] behind a changed step row: that has made
    /// what was under way before invalid.
    ///
    /// # Errors
    /// A lost device.
    pub(super) fn first(&mut self, session: &mut Session) -> Result<StepRow, RunError> {
        self.under_way = 1;
        self.collect(session)
    }

    /// Hands over steps by `run`, which keeps the step row, until enough are under way, and waits for the oldest.
    ///
    /// # Errors
    /// What `run` says of a step that is needed now; the steps under way stay so. A lost device.
    pub(super) fn next(
        &mut self,
        session: &mut Session,
        mut run: impl FnMut(&mut Session) -> Result<(), RunError>,
    ) -> Result<StepRow, RunError> {
        while self.under_way <= self.most {
            match run(session) {
                Ok(()) => self.under_way += 1,
                // The text may end before the context does.
                Err(RunError::ContextFull { .. }) if self.under_way > 0 => break,
                Err(error) => return Err(error),
            }
        }
        self.collect(session)
    }

    /// Forgets what is under way: the step row was changed.
    pub(super) fn cut(&mut self) {
        self.under_way = 0;
    }

    fn collect(&mut self, session: &mut Session) -> Result<StepRow, RunError> {
        self.under_way -= 1;
        let row = session.collect()?.and_then(|rows| rows.first().copied());
        // A row is in line for each run that was counted, unless somebody changed the step block between.
        row.map_or_else(|| session.drawn(0), Ok)
    }
}
