//! What the machine can do at best: a plain read of memory and a plain multiplication.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::Device;
use super::memory::Memory;
use super::simd::{Kernel, LANES, Simd, dispatch};

/// Larger than the caches of most machines, smaller than what a laptop has to spare.
const BYTES: usize = 512 << 20;
const CHUNK: usize = 1 << 20;

/// Largest of `n` vectors of 16 floats: reads each once and does next to nothing with it.
struct Read {
    p: *const f32,
    n: usize,
}

impl Kernel for Read {
    type Out = f32;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f32 {
        // SAFETY: `n` vectors, the caller's promise.
        unsafe {
            let mut sums = [S::zero(); 4];
            for i in (0..self.n).step_by(4) {
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum = S::max(*sum, S::load(self.p.add((i + j) * LANES)));
                }
            }
            let [a, b, c, d] = sums;
            S::sum(S::add(S::add(a, b), S::add(c, d)))
        }
    }
}

/// Multiply-adds on eight independent accumulators, registers only.
struct Multiply {
    rounds: usize,
    x: f32,
}

impl Kernel for Multiply {
    type Out = f32;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f32 {
        // SAFETY: registers only.
        unsafe {
            let (x, y) = (S::splat(self.x), S::splat(self.x * 0.5));
            let mut acc = [S::zero(); 12];
            for _ in 0..self.rounds {
                for a in &mut acc {
                    *a = S::fma(*a, x, y);
                }
            }
            acc.into_iter().map(|a| S::sum(a)).sum()
        }
    }
}

fn best_secs(device: &Device, tasks: usize, work: impl Fn(usize) -> f32 + Sync) -> f64 {
    let sink = AtomicU64::new(0);
    let once = || {
        let start = Instant::now();
        device.pool.run(tasks, &|task, _| {
            sink.fetch_add(u64::from(work(task).to_bits()), Ordering::Relaxed);
        });
        start.elapsed().as_secs_f64()
    };
    once();
    let best = (0..4).map(|_| once()).fold(f64::INFINITY, f64::min);
    std::hint::black_box(sink.into_inner());
    best
}

/// GB/s of reading memory with all threads, huge pages where the system has them.
pub(super) fn read_gb_per_s(device: &Device) -> f64 {
    let Some(mut memory) = Memory::zeroed(BYTES) else { return 0.0 };
    memory.bytes_mut().fill(1);
    let start = memory.as_ptr() as usize;
    let secs = best_secs(device, BYTES / CHUNK, |task| {
        let p = (start + task * CHUNK) as *const f32;
        // SAFETY: the chunk is inside the memory.
        unsafe { dispatch(device.set, Read { p, n: CHUNK / 4 / LANES }) }
    });
    BYTES as f64 / secs / 1e9
}

/// GFLOP/s of multiply-adds with all threads.
pub(super) fn multiply_gflop_per_s(device: &Device) -> f64 {
    const ROUNDS: usize = 200_000;
    let tasks = 4 * device.pool.threads();
    // SAFETY: no pointers.
    let secs =
        best_secs(device, tasks, |_| unsafe { dispatch(device.set, Multiply { rounds: ROUNDS, x: 0.999 }) });
    (tasks * ROUNDS * 12 * LANES * 2) as f64 / secs / 1e9
}
