//! A file on its way into the cache: written beside the blobs, hashed on the way, renamed when it is whole
//! and right.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::cache::Cache;
use crate::digest::absorb;
use crate::{CancelToken, Content, Error, Result, Sha256Digest};

/// The largest file that is taken when its size is not known beforehand.
pub(crate) const MAX_UNKNOWN_BYTES: u64 = 16 << 30;

/// A partial file. The caller holds the lock of its key.
pub(crate) struct PartFile<'a> {
    cache: &'a Cache,
    path: PathBuf,
    file: File,
    hasher: Sha256,
    len_bytes: u64,
    expected: Option<Content>,
    /// The file, for messages.
    what: String,
}

impl<'a> PartFile<'a> {
    /// Opens the partial file of `key`, going on after what an earlier run left there.
    pub(crate) fn open(
        cache: &'a Cache,
        key: &str,
        expected: Option<Content>,
        what: String,
        cancel: &CancelToken,
    ) -> Result<Self> {
        let path = cache.part_path(key);
        let file = cache.open_file(&path)?;
        let mut part = Self { cache, path, file, hasher: Sha256::new(), len_bytes: 0, expected, what };
        match absorb(&mut part.file, &mut part.hasher, cancel) {
            Ok(Some(len)) => part.len_bytes = len,
            Ok(None) => return Err(Error::Interrupted { what: part.what }),
            Err(error) => return Err(Error::reading("read", &part.path, error)),
        }
        if part.len_bytes > part.limit_bytes() {
            part.restart()?;
        }
        Ok(part)
    }

    /// Bytes that are there.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// What the whole file must be, if known.
    pub(crate) fn expected(&self) -> Option<Content> {
        self.expected
    }

    fn limit_bytes(&self) -> u64 {
        self.expected.map_or(MAX_UNKNOWN_BYTES, |content| content.size_bytes)
    }

    /// Whether all bytes are there (their hash is checked by [`commit`](Self::commit)).
    pub(crate) fn is_complete(&self) -> bool {
        self.expected.is_some_and(|content| content.size_bytes == self.len_bytes)
    }

    /// Throws away what is there.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .map_err(|e| Error::writing("empty", &self.path, e))?;
        self.hasher = Sha256::new();
        self.len_bytes = 0;
        Ok(())
    }

    /// Fails with [`Error::DiskFull`] unless `more_bytes` fit on the disk.
    pub(crate) fn ensure_room(&self, more_bytes: u64) -> Result<()> {
        crate::disk::ensure_room(self.path.parent().unwrap_or(&self.path), more_bytes)
    }

    /// Appends bytes; more than the whole file may have are refused before they are written.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let len = self.len_bytes + bytes.len() as u64;
        if len > self.limit_bytes() {
            return Err(Error::WrongSize {
                what: self.what.clone(),
                expected_bytes: self.limit_bytes(),
                found_bytes: len,
            });
        }
        self.file.write_all(bytes).map_err(|error| self.write_failed(error))?;
        self.hasher.update(bytes);
        self.len_bytes = len;
        Ok(())
    }

    /// Appends all of `reader`; `seen` is told the length after each chunk. Returns the number of bytes
    /// appended.
    pub(crate) fn append_all(
        &mut self,
        reader: &mut dyn Read,
        cancel: &CancelToken,
        mut seen: impl FnMut(u64),
    ) -> Result<u64, CopyError> {
        let mut chunk = vec![0; crate::digest::CHUNK_BYTES];
        let start = self.len_bytes;
        loop {
            if cancel.is_cancelled() {
                return Err(CopyError::Write(Error::Interrupted { what: self.what.clone() }));
            }
            match reader.read(&mut chunk) {
                Ok(0) => return Ok(self.len_bytes - start),
                Ok(count) => self.append(&chunk[..count]).map_err(CopyError::Write)?,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(CopyError::Read(error)),
            }
            seen(self.len_bytes);
        }
    }

    /// A failed write may have written some bytes that the hash has not seen: they are cut off, so that a
    /// later run can go on.
    fn write_failed(&mut self, error: std::io::Error) -> Error {
        let _ =
            self.file.set_len(self.len_bytes).and_then(|()| self.file.seek(SeekFrom::Start(self.len_bytes)));
        Error::writing("write", &self.path, error)
    }

    /// As [`commit`](Self::commit), but with a wrong hash the emptied partial file comes back, to be filled
    /// anew.
    pub(crate) fn commit_or_restart(mut self) -> Result<Result<Content, Self>> {
        let found = self.found();
        if self.expected.is_some_and(|expected| expected.sha256 != found.sha256) {
            self.restart()?;
            return Ok(Err(self));
        }
        self.commit().map(Ok)
    }

    fn found(&self) -> Content {
        Content { size_bytes: self.len_bytes, sha256: Sha256Digest::finish(self.hasher.clone()) }
    }

    /// Checks length and hash, flushes to the disk and renames the file to its blob.
    ///
    /// A wrong hash empties the partial file: it must not be gone on from.
    pub(crate) fn commit(mut self) -> Result<Content> {
        let found = self.found();
        if let Some(expected) = self.expected {
            if found.size_bytes != expected.size_bytes {
                let (expected_bytes, found_bytes) = (expected.size_bytes, found.size_bytes);
                return Err(Error::WrongSize { what: self.what, expected_bytes, found_bytes });
            }
            if found.sha256 != expected.sha256 {
                self.restart()?;
                return Err(Error::WrongHash {
                    what: self.what,
                    expected: expected.sha256,
                    found: found.sha256,
                });
            }
        }
        self.file.sync_all().map_err(|error| Error::writing("flush", &self.path, error))?;
        let blob = self.cache.blob_path(&found.sha256);
        self.cache.make_folder_of(&blob)?;
        make_read_only(&self.file);
        drop(self.file);
        fs::rename(&self.path, &blob).map_err(|e| Error::writing("rename to", &blob, e))?;
        sync_folder_of(&blob);
        self.cache.trust_blob(&found)?;
        Ok(found)
    }
}

/// Where a copy failed: at its source or here.
pub(crate) enum CopyError {
    Read(std::io::Error),
    Write(Error),
}

/// Blobs are shared and trusted by size and time: nobody should write into one by accident.
fn make_read_only(file: &File) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = file.set_permissions(fs::Permissions::from_mode(0o444));
    }
    #[cfg(not(unix))]
    let _ = file;
}

/// Makes a rename last through a power cut; where folders can't be flushed the file is fetched again at
/// worst.
fn sync_folder_of(path: &std::path::Path) {
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    #[cfg(not(unix))]
    let _ = path;
}
