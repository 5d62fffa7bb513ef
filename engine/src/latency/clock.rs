//! The clock behind all marks, passed in so that tests and simulations turn it by hand.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A monotonic clock in nanoseconds since an origin of its own.
pub trait Clock: Send + Sync {
    /// Nanoseconds since the clock's origin; never goes back, never reaches `u64::MAX`.
    fn now_ns(&self) -> u64;
}

/// The system's monotonic clock; its origin is the moment it was made.
#[derive(Debug, Clone, Copy)]
pub struct MonotonicClock {
    origin: Instant,
}

impl MonotonicClock {
    /// A clock that starts at 0 now.
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    fn now_ns(&self) -> u64 {
        // 584 years fit.
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX - 1)
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ns: AtomicU64,
}

impl ManualClock {
    /// Moves the clock forward by `ms` milliseconds (rounded to nanoseconds, negative counts as 0).
    pub fn advance_ms(&self, ms: f64) {
        self.now_ns.fetch_add((ms * 1e6).round() as u64, Ordering::Relaxed);
    }

    /// Moves the clock to `now_ns`, unless it is already later.
    pub fn set_ns(&self, now_ns: u64) {
        self.now_ns.fetch_max(now_ns, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }
}
