//! A flag by which one thread asks another to stop, and on which that one may wait.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Asks a fetch, import or verification to stop. Clones share the flag.
///
/// What was downloaded stays as a partial file; the next fetch goes on from there.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<(Mutex<bool>, Condvar)>);

impl CancelToken {
    /// A token that nobody has cancelled yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks to stop and wakes whoever waits.
    pub fn cancel(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Whether a stop was asked for.
    pub fn is_cancelled(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits at most `duration`, less if a stop is asked for; says whether it was.
    pub(crate) fn wait(&self, duration: Duration) -> bool {
        let guard = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (guard, _) = self
            .0
            .1
            .wait_timeout_while(guard, duration, |cancelled| !*cancelled)
            .unwrap_or_else(PoisonError::into_inner);
        *guard
    }
}
