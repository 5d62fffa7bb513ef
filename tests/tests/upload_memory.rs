//! What the host's memory holds at most while a model goes to the GPU. A process of its own: its peak is measured.
#![cfg(all(feature = "wgpu", target_os = "linux"))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::BufWriter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use repartee_engine::backends::wgpu::WgpuOptions;
use repartee_engine::formats::gguf::Gguf;
use repartee_engine::formats::{TensorSource, TensorType};
use repartee_engine::models::llama::{Llama, LlamaOptions};
use repartee_tests::random_model::{Shape, write};

/// Bytes of the heap now and at most.
static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: passes everything on; the counts change nothing of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const MIB: usize = 1 << 20;

/// 190 MB in matrices of at most 18; every kernel that the large one needs is in the small one.
const LARGE: Shape = Shape {
    name: "for memory",
    layers: 12,
    width: 1024,
    feed_forward: 4096,
    heads: 16,
    kv_heads: 4,
    vocabulary: 16_384,
    context: 256,
    types: |_, _, _| TensorType::Q8_0,
};
const SMALL: Shape = Shape { layers: 1, feed_forward: 256, vocabulary: 512, ..LARGE };

/// A line of this process's `status`, in bytes.
fn status(key: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
fn weights_pass_through_little_memory() {
    let options = WgpuOptions { allow_software: true, ..WgpuOptions::default() };
    let Some(gpu) = repartee_tests::subjects::wgpu(options) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = |shape: &Shape| {
        let path = folder.path().join(shape.layers.to_string());
        write(shape, 0, &mut BufWriter::new(std::fs::File::create(&path).unwrap())).unwrap();
        Arc::new(Gguf::open(path).unwrap())
    };
    let load = |file: &Arc<Gguf>| Llama::load(file, &gpu, LlamaOptions { context: 64 }).unwrap();
    // Compiles the kernels, which takes more memory than the weights.
    let small = load(&file(&SMALL));
    let large = file(&LARGE);
    let sizes = large.names().into_iter().map(|name| large.tensor(&name).unwrap().data.len());
    let (total, largest) = sizes.fold((0, 0), |(total, largest), n| (total + n, largest.max(n)));
    assert!(total > 150 * MIB && largest < 20 * MIB, "{total} and {largest}");

    let (heap, resident) = (NOW.load(Ordering::Relaxed), status("VmRSS:"));
    PEAK.store(heap, Ordering::Relaxed);
    // Forgets the peak so far.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let model = load(&large);
    let heap = PEAK.load(Ordering::Relaxed) - heap;
    let resident = status("VmHWM:").saturating_sub(resident);
    // Software has the device's memory in the host's.
    let device = if gpu.is_software() { total } else { 0 };
    assert!(heap < 32 * MIB, "{} MiB of heap", heap / MIB);
    assert!(
        resident < device + largest + 64 * MIB,
        "{} MiB for {} MiB of weights, the largest of {}",
        resident / MIB,
        device / MIB,
        largest / MIB
    );
    drop((small, model));
}
