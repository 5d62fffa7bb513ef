//! Whether the machine keeps time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Failures on a machine that keeps time, after which a test has failed.
const FAILURES: usize = 3;
/// All tries, those on a machine that stalls included.
const TRIES: usize = 8;
/// A stall that long empties half of the speaker's buffer; at rest, machines stay below 2 ms.
const STALL: Duration = Duration::from_millis(10);

/// Runs `once`, a test in real time, until it succeeds. What is wrong is wrong each time: the test fails when `once`
/// has failed three times while the machine kept time. Where the machine never does, it is said that `name` was not
/// judged.
///
/// # Panics
/// If the test fails.
pub fn judge(name: &str, mut once: impl FnMut() -> Result<(), String>) {
    judge_watched(name, || {
        let watch = Watch::start();
        let result = once();
        (result, watch.stop())
    });
}

/// `once` also gives the longest stall meanwhile.
fn judge_watched(name: &str, mut once: impl FnMut() -> (Result<(), String>, Duration)) {
    let (mut failures, mut worst) = (Vec::new(), Duration::ZERO);
    for _ in 0..TRIES {
        let (result, stall) = once();
        let Err(text) = result else { return };
        if stall < STALL {
            failures.push(text);
            assert!(failures.len() < FAILURES, "{}", failures.join("\n"));
        } else {
            eprintln!("{name} is tried again: the machine stood still for {} ms. {text}", stall.as_millis());
            worst = worst.max(stall);
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    eprintln!("{name} was not judged: the machine stands still for up to {} ms", worst.as_millis());
}

/// Threads that sleep, one for each processor, and note how much too long.
struct Watch {
    is_over: Arc<AtomicBool>,
    worst_ns: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    const NAP: Duration = Duration::from_millis(2);

    fn start() -> Self {
        let (is_over, worst_ns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (0..count).map(|_| {
            let (is_over, worst_ns) = (is_over.clone(), worst_ns.clone());
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    std::thread::park_timeout(Self::NAP);
                    let late = begun.elapsed().saturating_sub(Self::NAP);
                    worst_ns.fetch_max(late.as_nanos() as u64, Ordering::Relaxed);
                }
            })
        });
        let threads = threads.collect();
        Self { is_over, worst_ns, threads }
    }

    /// The longest stall.
    fn stop(self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            let _ = thread.join();
        }
        Duration::from_nanos(self.worst_ns.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many tries there are, of which the first `failing` ones fail, and whether the test passes.
    fn tries(failing: usize, stalls: &[Duration]) -> (usize, bool) {
        let mut count = 0;
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            judge_watched("a test", || {
                count += 1;
                let result = if count > failing { Ok(()) } else { Err("wrong".into()) };
                (result, stalls[(count - 1) % stalls.len()])
            });
        }));
        (count, result.is_ok())
    }

    #[test]
    fn a_test_fails_when_it_is_wrong_on_a_machine_that_keeps_time() {
        let (steady, stalled) = (Duration::ZERO, Duration::from_millis(10));
        assert_eq!(tries(0, &[steady]), (1, true));
        assert_eq!(tries(2, &[steady]), (3, true));
        assert_eq!(tries(9, &[steady]), (3, false));
        assert_eq!(tries(9, &[stalled, steady]), (6, false));
        assert_eq!(tries(7, &[stalled]), (8, true));
        // Not judged.
        assert_eq!(tries(9, &[stalled]), (8, true));
        assert_eq!(
            tries(9, &[stalled, stalled, stalled, stalled, stalled, stalled, steady, stalled]),
            (8, false)
        );
    }

    #[test]
    fn a_stall_is_seen() {
        let watch = Watch::start();
        crate::pause(Duration::from_millis(20));
        let stall = watch.stop();
        assert!(stall > Duration::ZERO);
    }
}
