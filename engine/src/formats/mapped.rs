//! A whole weight file as bytes, mapped and not read.

use std::fs::{self, File, OpenOptions};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::{FormatError, FormatErrorKind};

/// A read-only file mapped into memory, or bytes that stand in for one.
///
/// # A file that changes under the map
///
/// The operating system gives no way to keep others from writing to a mapped file. If it is changed while it
/// is mapped, values read later may differ from those that were checked; if it is made shorter, touching the
/// lost pages ends the process (SIGBUS). Readers therefore copy the structure that they check (names, shapes,
/// offsets) and take only element values from the map afterwards, so that a change can spoil numbers but
/// never turn a checked size into an unchecked one. Catalogue files are renamed into place complete and are
/// never written again; a file that a user gives by path is theirs to leave alone while it is in use.
#[derive(Debug)]
pub struct Mapped {
    bytes: Bytes,
    path: Option<PathBuf>,
}

#[derive(Debug)]
enum Bytes {
    Map(Mmap),
    Owned(Vec<u8>),
}

impl Mapped {
    /// Maps the regular file at `path` (links are followed).
    ///
    /// # Errors
    /// [`FormatErrorKind::NotAFile`] for folders, pipes, sockets and devices, [`FormatErrorKind::Io`] when
    /// the file cannot be opened or mapped, [`FormatErrorKind::TooLarge`] when it exceeds the address space.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FormatError> {
        let path = path.as_ref();
        Self::map(path).map_err(|kind| FormatError {
            kind,
            file: Some(path.into()),
            offset: None,
            field: String::new(),
        })
    }

    fn map(path: &Path) -> Result<Self, FormatErrorKind> {
        // Asked before opening too: opening a device can have effects, opening a pipe can wait for ever.
        if !fs::metadata(path)?.is_file() {
            return Err(FormatErrorKind::NotAFile);
        }
        let file = open_without_waiting(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(FormatErrorKind::NotAFile);
        }
        let limit = isize::MAX as u64;
        let len = usize::try_from(meta.len()).ok().filter(|&len| len as u64 <= limit);
        let Some(len) = len else {
            return Err(FormatErrorKind::TooLarge { value: meta.len(), limit });
        };
        let bytes = if len == 0 {
            Bytes::Owned(Vec::new())
        } else {
            // SAFETY: the map is read-only and private to this value. That the file may be changed by others
            // while it is mapped is the documented risk of this type.
            Bytes::Map(unsafe { memmap2::MmapOptions::new().len(len).map(&file) }?)
        };
        Ok(Self { bytes, path: Some(path.to_owned()) })
    }

    /// Bytes in memory in place of a file, for tests and fuzzing.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes: Bytes::Owned(bytes), path: None }
    }

    /// The file, or `None` for bytes in memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Gives the resident pages of `range` back to the system; they are read from the file again if touched.
    ///
    /// Advice only: nothing happens for bytes in memory, for ranges outside the file, or outside Unix.
    pub fn release(&self, range: Range<usize>) {
        #[cfg(unix)]
        if let Bytes::Map(map) = &self.bytes
            && range.start < range.end
            && range.end <= map.len()
        {
            // SAFETY: the map is of a file and never written to, so a dropped page comes back with the file's
            // bytes; views of it stay valid and unchanged.
            let dropped = unsafe {
                map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, range.start, range.len())
            };
            if let Err(error) = dropped {
                tracing::debug!(%error, "file pages stay resident");
            }
        }
        #[cfg(not(unix))]
        let _ = range;
    }
}

#[cfg(unix)]
fn open_without_waiting(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path)
}

#[cfg(not(unix))]
fn open_without_waiting(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Map(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_files_bytes_also_after_release() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("weights");
        let bytes: Vec<u8> = (0..20_000u32).map(|i| (i % 251) as u8).collect();
        fs::write(&path, &bytes).unwrap();
        let mapped = Mapped::open(&path).unwrap();
        assert_eq!(&*mapped, &bytes[..]);
        mapped.release(5000..17_000);
        mapped.release(0..usize::MAX); // out of range: ignored
        assert_eq!(&*mapped, &bytes[..]);
        assert_eq!(mapped.path(), Some(path.as_path()));
    }

    #[test]
    fn an_empty_file_is_empty() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Mapped::open(file.path()).unwrap().is_empty());
    }

    #[test]
    fn refuses_what_is_not_a_regular_file() {
        let dir = tempfile::tempdir().unwrap();
        let error = Mapped::open(dir.path()).unwrap_err();
        assert!(matches!(error.kind, FormatErrorKind::NotAFile), "{error}");
        assert!(error.to_string().contains(dir.path().to_str().unwrap()));
        let error = Mapped::open(dir.path().join("absent")).unwrap_err();
        assert!(matches!(error.kind, FormatErrorKind::Io(_)), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn refuses_a_pipe_without_waiting_for_a_writer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        let c_path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: `c_path` is a NUL-terminated string that lives through the call.
        assert_eq!(unsafe { libc::mkfifo(c_path.as_ptr(), 0o600) }, 0);
        let error = Mapped::open(&path).unwrap_err();
        assert!(matches!(error.kind, FormatErrorKind::NotAFile), "{error}");
    }
}
