//! Crafted and damaged weight files: an error that names offset and field, little memory, no panic.
//!
//! Every case of the table is one lie that a file can tell. What the fuzz targets (`tests/fuzz`) find is added here.

#[path = "ctranslate2.rs"]
mod ctranslate2_lies;
#[path = "gguf.rs"]
mod gguf_lies;
#[path = "onnx.rs"]
mod onnx_lies;
#[path = "safetensors.rs"]
mod safetensors_lies;
#[path = "shards.rs"]
mod shards_lies;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use repartee_engine::formats::ctranslate2::Ct2;
use repartee_engine::formats::gguf::Gguf;
use repartee_engine::formats::onnx::Onnx;
use repartee_engine::formats::safetensors::SafeTensors;
use repartee_engine::formats::testing::{samples, touch};
use repartee_engine::formats::{FormatError, TensorSource};

/// What a reader may allocate for a hostile file, whatever the file says.
const MEMORY_LIMIT: usize = 50 << 20;

struct Counting;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn count(old: usize, new: usize) {
    // Memory freed by another thread than the one that took it makes the difference wrap below zero.
    let now = NOW.get().saturating_sub(old) + new;
    NOW.set(now);
    PEAK.set(PEAK.get().max(now));
}

// SAFETY: every call is passed on to the system's allocator; the counters are thread-local cells without
// destructors, which never allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(0, layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new may exist together while the bytes move.
        count(0, size);
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that `run` holds at once beyond those held before.
fn peak<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let result = run();
    (result, PEAK.get() - before)
}

type Open = fn(Vec<u8>) -> Result<Box<dyn TensorSource>, FormatError>;

fn gguf(bytes: Vec<u8>) -> Result<Box<dyn TensorSource>, FormatError> {
    Ok(Box::new(Gguf::from_bytes(bytes)?))
}

fn safetensors(bytes: Vec<u8>) -> Result<Box<dyn TensorSource>, FormatError> {
    Ok(Box::new(SafeTensors::from_bytes(bytes)?))
}

fn onnx(bytes: Vec<u8>) -> Result<Box<dyn TensorSource>, FormatError> {
    Ok(Box::new(Onnx::from_bytes(bytes)?))
}

fn ctranslate2(bytes: Vec<u8>) -> Result<Box<dyn TensorSource>, FormatError> {
    Ok(Box::new(Ct2::from_bytes(bytes)?))
}

/// Opens each file (name, bytes, part of the error), which must fail within the limits and say where.
fn all_refused<'a>(open: Open, cases: impl IntoIterator<Item = (&'a str, Vec<u8>, &'a str)>) {
    let mut wrong = Vec::new();
    for (what, file, part) in cases {
        let (result, bytes) = peak(|| open(file));
        let Err(error) = result else {
            wrong.push(format!("{what}: opened"));
            continue;
        };
        let text = error.to_string();
        if !text.contains(part) {
            wrong.push(format!("{what}: not `{part}` but: {text:.300}"));
        }
        if error.offset.is_none() || error.field.is_empty() || text.len() > 1000 {
            wrong.push(format!("{what}: no place, or too long: {text:.300}"));
        }
        if bytes >= MEMORY_LIMIT {
            wrong.push(format!("{what}: {bytes} bytes"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn formats() -> [(&'static str, Open, Vec<u8>); 4] {
    [
        ("gguf", gguf, samples::gguf()),
        ("safetensors", safetensors, samples::safetensors()),
        ("onnx", onnx, samples::onnx()),
        ("ctranslate2", ctranslate2, samples::ctranslate2()),
    ]
}

#[test]
fn whole_files_open_and_give_all_tensors() {
    for (what, open, file) in formats() {
        let source = open(file).unwrap();
        let given = touch(&*source);
        // CTranslate2's one int16 scalar is a number, not a tensor.
        let numbers = usize::from(what == "ctranslate2");
        assert_eq!(given + numbers, source.names().len(), "{what}");
    }
}

#[test]
fn cut_at_every_byte() {
    for (what, open, file) in formats() {
        for len in 0..file.len() {
            let (result, bytes) = peak(|| open(file[..len].to_vec()));
            let Err(error) = result else {
                panic!("{what}: opened when cut to {len} of {} bytes", file.len())
            };
            assert!(error.offset.is_some_and(|at| at <= len as u64), "{what} cut to {len}: {error}");
            assert!(!error.field.is_empty(), "{what} cut to {len}: {error}");
            assert!(bytes < 1 << 20, "{what} cut to {len}: {bytes} bytes");
        }
    }
}

#[test]
fn any_byte_changed() {
    for (what, open, file) in formats() {
        for at in 0..file.len() {
            for change in [0x01, 0x80, 0xff, file[at]] {
                let mut damaged = file.clone();
                damaged[at] ^= change;
                let ((), bytes) = peak(|| {
                    if let Ok(source) = open(damaged) {
                        touch(&*source);
                    }
                });
                assert!(bytes < 1 << 20, "{what} with {change:#x} at {at}: {bytes} bytes");
            }
        }
    }
}
