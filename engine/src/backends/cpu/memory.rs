//! Memory for packed weights and values: aligned, zeroed, and on huge pages where the system has them.

use std::ptr::NonNull;

/// Cache-line and vector alignment of every block.
pub(crate) const ALIGN: usize = 64;

/// A block of zeroed memory, aligned to [`ALIGN`]; large blocks are advised onto huge pages, which raises the
/// rate at which weights can be read by a third.
pub(crate) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: plain memory owned by this value; access goes through the borrow rules of its methods, or through raw
// pointers whose users say why they do not overlap.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// `bytes` zeroed bytes, or `None` when the system refuses.
    pub(crate) fn zeroed(bytes: usize) -> Option<Self> {
        let start = map(bytes.max(1))?;
        Some(Self { start, bytes })
    }

    /// The first byte.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// All bytes.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: owned, initialised to zero, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: owned, initialised to zero.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        unmap(self.start, self.bytes.max(1));
    }
}

#[cfg(target_os = "linux")]
const HUGE: usize = 2 << 20;

#[cfg(target_os = "linux")]
fn map(bytes: usize) -> Option<NonNull<u8>> {
    if bytes < HUGE {
        return allocate(bytes);
    }
    // Room to start on a huge page boundary.
    let padded = bytes.checked_add(HUGE)?;
    // SAFETY: a fresh anonymous mapping.
    let raw = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(std::ptr::null_mut(), padded, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if raw == libc::MAP_FAILED {
        return None;
    }
    let address = raw as usize;
    let aligned = address.next_multiple_of(HUGE);
    // SAFETY: trims the parts of our own mapping that lie outside, page-aligned; advice can't hurt.
    unsafe {
        if aligned > address {
            libc::munmap(raw, aligned - address);
        }
        let end = (aligned + bytes).next_multiple_of(4096);
        if address + padded > end {
            libc::munmap(end as *mut _, address + padded - end);
        }
        libc::madvise(aligned as *mut _, bytes, libc::MADV_HUGEPAGE);
    }
    NonNull::new(aligned as *mut u8)
}

#[cfg(target_os = "linux")]
fn unmap(start: NonNull<u8>, bytes: usize) {
    if bytes < HUGE {
        free(start, bytes);
    } else {
        // SAFETY: the mapping that `map` left, to the end of its last page.
        unsafe { libc::munmap(start.as_ptr().cast(), bytes.next_multiple_of(4096)) };
    }
}

#[cfg(not(target_os = "linux"))]
fn map(bytes: usize) -> Option<NonNull<u8>> {
    allocate(bytes)
}

#[cfg(not(target_os = "linux"))]
fn unmap(start: NonNull<u8>, bytes: usize) {
    free(start, bytes);
}

fn allocate(bytes: usize) -> Option<NonNull<u8>> {
    let layout = std::alloc::Layout::from_size_align(bytes, ALIGN).ok()?;
    // SAFETY: the size is not zero.
    NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })
}

fn free(start: NonNull<u8>, bytes: usize) {
    if let Ok(layout) = std::alloc::Layout::from_size_align(bytes, ALIGN) {
        // SAFETY: allocated by `allocate` with the same layout.
        unsafe { std::alloc::dealloc(start.as_ptr(), layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_zeroed_aligned_and_writable() {
        for bytes in [1, 100, (2 << 20) - 1, (2 << 20) + 4097, 5 << 20] {
            let mut m = Memory::zeroed(bytes).unwrap();
            assert_eq!(m.as_ptr() as usize % ALIGN, 0);
            assert!(m.bytes().iter().all(|&b| b == 0));
            m.bytes_mut()[bytes - 1] = 7;
            assert_eq!(m.bytes().len(), bytes);
        }
    }
}
