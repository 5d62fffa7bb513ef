//! Room on the disk, asked before bytes are written rather than found out after half of them.

use std::path::Path;

use crate::{Error, Result};

/// Bytes that stay free for others: a disk filled to the last block harms more than this program.
const RESERVE_BYTES: u64 = 16 * 1024;

/// Bytes that this user may still write in the file system of `folder`; `None` where the system does not
/// tell.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let path = std::ffi::CString::new(folder.as_os_str().as_bytes()).ok()?;
        let mut stats = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
        // SAFETY: `path` is a C string that outlives the call, and `stats` is a writable `statvfs`.
        if unsafe { libc::statvfs(path.as_ptr(), stats.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: the call succeeded, so it has filled the structure (which is plain numbers, zeroed before).
        let stats = unsafe { stats.assume_init() };
        #[allow(clippy::unnecessary_cast, reason = "the fields are 32 bits wide on some systems")]
        (stats.f_bavail as u64).checked_mul(stats.f_frsize as u64)
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}

/// Fails with [`Error::DiskFull`] unless `needed_bytes` more fit into the file system of `folder`.
pub(crate) fn ensure_room(folder: &Path, needed_bytes: u64) -> Result<()> {
    match free_bytes(folder) {
        Some(free) if free < needed_bytes.saturating_add(RESERVE_BYTES) => Err(Error::DiskFull {
            path: folder.into(),
            needed_bytes: Some(needed_bytes),
            free_bytes: Some(free),
        }),
        _ => Ok(()),
    }
}
