//! Where a reply rests between two tokens, so that speech has the processor.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::mail::{Load, Weight};
use crate::backends::CancelToken;

#[derive(Default)]
struct State {
    is_closed: bool,
    /// How often it was opened: who waited when it was goes on, closed again or not.
    openings: u64,
    /// Whose thread waits.
    waits: Option<Arc<Load>>,
    /// From whoever opened it, for the one that waited.
    weight: Option<Weight>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Closed while the reply shall rest. Clones are the same gate.
#[derive(Clone, Default)]
pub(super) struct Gate(Arc<Shared>);

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
    }

    pub(super) fn open(&self) {
        let mut state = self.lock();
        state.is_closed = false;
        state.openings += 1;
        if let Some(load) = state.waits.take() {
            state.weight = Some(load.add());
        }
        drop(state);
        self.0.changed.notify_all();
    }

    /// Waits while it is closed. Who waits does not count as being at work. A cancelled turn is let through: [`Gate::open`] has
    /// to follow the token's being set.
    pub(super) fn pass(&self, weight: &mut Option<Weight>, cancel: &CancelToken) {
        let mut state = self.lock();
        if !state.is_closed || cancel.is_cancelled() {
            return;
        }
        state.waits = weight.as_ref().map(Weight::load);
        *weight = None;
        let openings = state.openings;
        while state.openings == openings {
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        *weight = state.weight.take();
    }
}

#[cfg(test)]
mod tests {
    use super::super::mail::{Underway, mail};
    use super::*;

    #[test]
    fn a_closed_gate_holds_until_it_opens_and_the_count_follows() {
        let (gate, underway, cancel) = (Gate::default(), Underway::default(), CancelToken::new());
        let (post, inbox) = mail(&underway);
        assert!(post.send(()) && post.send(()));
        assert_eq!(underway.count(), 1, "one receiver");
        let mut weight = inbox.receive().map(|(_, weight)| weight);
        gate.pass(&mut weight, &cancel);
        drop(inbox.receive());
        assert_eq!(underway.count(), 1, "open");
        gate.close();
        let thread = {
            let (gate, cancel) = (gate.clone(), cancel.clone());
            std::thread::spawn(move || {
                gate.pass(&mut weight, &cancel);
                weight
            })
        };
        underway.wait_until(|count| count == 0);
        gate.open();
        // Closed again before the one that waits has noticed.
        gate.close();
        let weight = thread.join().unwrap();
        assert!(weight.is_some() && underway.count() == 1);
        drop(weight);
        cancel.cancel();
        gate.pass(&mut None, &cancel);
        assert_eq!(underway.count(), 0);
    }
}
