//! One run at a time for each device, by priority, and cancelling.
//!
//! Models own no threads and no queue: a program takes a [`Turn`] at its device's [`Turnstile`] and offers it
//! back between ops ([`Turn::yield_to_higher`]), so that a first clause of speech waits for at most one op of a reply.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Who goes first when several runs wait for one device. Later variants go first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Priority {
    /// Work nobody waits for.
    Background,
    /// Writing the reply.
    #[default]
    Reply,
    /// Understanding the user.
    Transcribe,
    /// The first sound of the answer.
    FirstSpeech,
}

const LEVELS: usize = 4;

/// Asks a run to stop; clones share the flag.
///
/// A run asks [`Self::is_cancelled_before`] in front of each piece of work, on every thread. The largest piece bounds what
/// a cancelled run still does; a token remembers it, so that a test can hold a bound without a clock.
#[derive(Clone, Default, Debug)]
pub struct CancelToken(Arc<Cancel>);

#[derive(Default, Debug)]
struct Cancel {
    cancelled: AtomicBool,
    largest: AtomicUsize,
}

impl CancelToken {
    /// A token that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the runs that hold this token to stop.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
    }

    /// Whether [`Self::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// The same, in front of `work` operations (multiply-adds, or numbers times the operations that each takes) that will
    /// not ask again.
    pub fn is_cancelled_before(&self, work: usize) -> bool {
        if work > self.0.largest.load(Ordering::Relaxed) {
            self.0.largest.fetch_max(work, Ordering::Relaxed);
        }
        self.is_cancelled()
    }

    /// The most operations that any run with this token did on one thread between two questions.
    pub fn largest_work(&self) -> usize {
        self.0.largest.load(Ordering::Relaxed)
    }
}

/// Lets one run at a time onto a device.
#[derive(Default, Debug)]
pub struct Turnstile {
    busy: Mutex<bool>,
    changed: Condvar,
    waiting: [AtomicUsize; LEVELS],
}

impl Turnstile {
    /// Waits until the device is free and nobody with a higher priority waits.
    pub fn enter(&self, priority: Priority) -> Turn<'_> {
        self.wait(priority);
        Turn { stile: self, priority }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn higher_waits(&self, priority: Priority) -> bool {
        self.waiting[priority as usize + 1..].iter().any(|n| n.load(Ordering::Acquire) > 0)
    }

    fn wait(&self, priority: Priority) {
        let mut busy = self.lock();
        self.waiting[priority as usize].fetch_add(1, Ordering::AcqRel);
        while *busy || self.higher_waits(priority) {
            busy = self.changed.wait(busy).unwrap_or_else(PoisonError::into_inner);
        }
        self.waiting[priority as usize].fetch_sub(1, Ordering::AcqRel);
        *busy = true;
    }

    fn leave(&self) {
        *self.lock() = false;
        self.changed.notify_all();
    }
}

/// The right to use the device, given back when dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    stile: &'a Turnstile,
    priority: Priority,
}

impl Turn<'_> {
    /// Lets waiting runs of a higher priority go first. One atomic load when there are none.
    pub fn yield_to_higher(&mut self) {
        if self.stile.higher_waits(self.priority) {
            self.stile.leave();
            self.stile.wait(self.priority);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.stile.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn higher_priority_goes_between_two_ops() {
        let stile = Arc::new(Turnstile::default());
        let (log, seen) = mpsc::channel();
        let mut reply = stile.enter(Priority::Reply);
        let other = {
            let (stile, log) = (stile.clone(), log.clone());
            std::thread::spawn(move || {
                let _turn = stile.enter(Priority::FirstSpeech);
                log.send("speech").unwrap();
            })
        };
        while !stile.higher_waits(Priority::Reply) {
            std::thread::yield_now();
        }
        log.send("reply 1").unwrap();
        reply.yield_to_higher();
        log.send("reply 2").unwrap();
        drop(reply);
        other.join().unwrap();
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), ["reply 1", "speech", "reply 2"]);
    }

    #[test]
    fn lower_priority_waits_its_turn() {
        let stile = Turnstile::default();
        let mut first = stile.enter(Priority::FirstSpeech);
        first.yield_to_higher();
        assert!(*stile.lock());
        drop(first);
        drop(stile.enter(Priority::Background));
        assert!(!*stile.lock());
    }
}
