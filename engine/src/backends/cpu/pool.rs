//! Worker threads that claim tasks from a counter.
//!
//! A region of work is `tasks` calls of one closure. The calling thread takes part and never waits for a worker
//! that has not joined: a preempted worker costs the one task it holds. Idle workers spin for about 50 us, so
//! that the many small regions of a decode step cost no system call, and then park.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

const SPIN: Duration = Duration::from_micros(50);
const OPEN: u64 = 1 << 31;
const ACTIVE: u64 = OPEN - 1;
const EPOCH: u64 = 1 << 32;

#[derive(Clone, Copy)]
struct Job {
    /// The region's closure, its lifetime erased: it is only called while the region is open.
    work: *const (dyn Fn(usize, usize) + Sync),
    tasks: usize,
}

struct Shared {
    /// Epoch in the high half, the open flag, and how many workers have joined.
    gate: AtomicU64,
    job: UnsafeCell<Option<Job>>,
    next: AtomicUsize,
    failed: AtomicBool,
    parked: Vec<AtomicBool>,
    stop: AtomicBool,
}

// SAFETY: `job` is written only while the gate is closed and nobody has joined, and read only after joining.
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `job` is only used under the same rule.
unsafe impl Send for Shared {}

impl Shared {
    /// Takes tasks until none is left.
    fn work(&self, job: Job, worker: usize) {
        // SAFETY: the region is open (the caller joined or opened it), so the closure lives.
        let work = unsafe { &*job.work };
        loop {
            let task = self.next.fetch_add(1, Ordering::Relaxed);
            if task >= job.tasks {
                return;
            }
            work(task, worker);
        }
    }

    /// Joins the open region of an epoch other than `seen`.
    fn join(&self, seen: u64) -> Option<(Job, u64)> {
        let mut gate = self.gate.load(Ordering::Acquire);
        loop {
            if gate & OPEN == 0 || gate / EPOCH == seen {
                return None;
            }
            match self.gate.compare_exchange_weak(gate, gate + 1, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: joined while open.
                Ok(_) => return unsafe { *self.job.get() }.map(|job| (job, gate / EPOCH)),
                Err(now) => gate = now,
            }
        }
    }

    fn leave(&self) {
        self.gate.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A fixed set of threads.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    region: Mutex<()>,
    threads: Vec<JoinHandle<()>>,
    handles: Vec<Thread>,
}

impl Pool {
    /// A pool of `threads` threads in all, the caller's included; as many as the system gives.
    pub(crate) fn new(threads: usize) -> Self {
        let workers = threads.max(1) - 1;
        let shared = Arc::new(Shared {
            gate: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            parked: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            stop: AtomicBool::new(false),
        });
        let mut started = Vec::new();
        for i in 0..workers {
            let shared = shared.clone();
            let spawned = std::thread::Builder::new()
                .name(format!("repartee-compute-{i}"))
                .spawn(move || worker(&shared, i));
            match spawned {
                Ok(handle) => started.push(handle),
                Err(error) => {
                    tracing::warn!(%error, "only {} of {threads} compute threads could be started", i + 1);
                    break;
                }
            }
        }
        let handles = started.iter().map(|t| t.thread().clone()).collect();
        Self { shared, region: Mutex::new(()), threads: started, handles }
    }

    /// Threads in all.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len() + 1
    }

    /// Calls `work(task, worker)` once for each task; `worker` is below [`Self::threads`] and no two calls with
    /// the same worker run at once.
    ///
    /// # Panics
    /// When a task panicked on another thread.
    pub(crate) fn run(&self, tasks: usize, work: &(dyn Fn(usize, usize) + Sync)) {
        if tasks <= 1 || self.threads.is_empty() {
            for task in 0..tasks {
                work(task, 0);
            }
            return;
        }
        let _region = self.region.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: only the lifetime changes; the region is closed and empty before this function returns.
        let work: *const (dyn Fn(usize, usize) + Sync + 'static) = unsafe { std::mem::transmute(work) };
        let job = Job { work, tasks };
        // SAFETY: the gate is closed and nobody has joined.
        unsafe { *self.shared.job.get() = Some(job) };
        self.shared.next.store(0, Ordering::Relaxed);
        let epoch = self.shared.gate.load(Ordering::Relaxed) / EPOCH;
        let next = (epoch + 1) % (1 << 31);
        self.shared.gate.store((next * EPOCH) | OPEN, Ordering::SeqCst);
        for (parked, handle) in self.shared.parked.iter().zip(&self.handles) {
            if parked.swap(false, Ordering::SeqCst) {
                handle.unpark();
            }
        }
        let close = Close(&self.shared);
        self.shared.work(job, 0);
        drop(close);
        assert!(
            !self.shared.failed.swap(false, Ordering::AcqRel),
            "a compute task panicked on another thread"
        );
    }
}

/// Closes the region and waits for those inside, also when the caller's own task panics.
struct Close<'a>(&'a Shared);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.gate.fetch_and(!OPEN, Ordering::AcqRel);
        let mut spins = 0_u32;
        while self.0.gate.load(Ordering::Acquire) & ACTIVE != 0 {
            spins += 1;
            if spins > 2000 {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

fn worker(shared: &Shared, index: usize) {
    let mut seen = 0;
    let mut idle_since: Option<Instant> = None;
    loop {
        if shared.stop.load(Ordering::Acquire) {
            return;
        }
        if let Some((job, epoch)) = shared.join(seen) {
            seen = epoch;
            let run = std::panic::AssertUnwindSafe(|| shared.work(job, index + 1));
            if std::panic::catch_unwind(run).is_err() {
                shared.failed.store(true, Ordering::Release);
            }
            shared.leave();
            idle_since = None;
            continue;
        }
        let since = *idle_since.get_or_insert_with(Instant::now);
        if since.elapsed() < SPIN {
            for _ in 0..32 {
                std::hint::spin_loop();
            }
            continue;
        }
        shared.parked[index].store(true, Ordering::SeqCst);
        let gate = shared.gate.load(Ordering::SeqCst);
        let nothing_new = gate & OPEN == 0 || gate / EPOCH == seen;
        if nothing_new && !shared.stop.load(Ordering::SeqCst) {
            std::thread::park();
        }
        shared.parked[index].store(false, Ordering::SeqCst);
        idle_since = None;
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for handle in &self.handles {
            handle.unpark();
        }
        for thread in self.threads.drain(..) {
            // A worker catches panics of its tasks, so this cannot fail in a way worth reporting.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once_in_many_regions() {
        let pool = Pool::new(3);
        let counts: Vec<AtomicUsize> = (0..64).map(|_| AtomicUsize::new(0)).collect();
        for region in 0..2000 {
            let tasks = region % 64 + 1;
            pool.run(tasks, &|task, worker| {
                assert!(worker < pool.threads());
                counts[task].fetch_add(1, Ordering::Relaxed);
            });
        }
        for (task, count) in counts.iter().enumerate() {
            assert_eq!(count.load(Ordering::Relaxed), (0..2000).filter(|r| r % 64 + 1 > task).count());
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        let pool = Pool::new(2);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.run(8, &|task, _| assert!(task != 5, "on purpose"));
        }));
        assert!(caught.is_err());
        let sum = AtomicUsize::new(0);
        pool.run(10, &|task, _| {
            sum.fetch_add(task, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 45);
    }
}
