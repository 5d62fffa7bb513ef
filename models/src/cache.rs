//! The cache folder: where things stand in it, the locks, and which blobs are trusted without hashing them
//! again.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use crate::digest::absorb;
use crate::owned::again_if_gone;
use crate::{CancelToken, Content, Error, Result, Sha256Digest};

/// Environment variable with the path of the cache folder, in place of the system's folder for caches.
pub const CACHE_ENV: &str = "REPARTEE_CACHE";

/// How often a lock that another process holds is asked for again.
const LOCK_POLL: Duration = Duration::from_millis(100);

/// The cache folder.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// A lock on one blob, free again when dropped (or when the process ends, however it ends).
pub(crate) struct BlobLock(#[expect(dead_code, reason = "the open file is the lock")] File);

impl Cache {
    /// The cache that [`CACHE_ENV`] names, or else `repartee` in the system's folder for caches. Nothing is
    /// created yet.
    ///
    /// # Errors
    /// [`Error::NoCacheFolder`] if neither is there, [`Error::CacheIsNoFolder`] if it is something else.
    pub fn open() -> Result<Self> {
        let cache = match std::env::var_os(CACHE_ENV) {
            Some(path) if !path.is_empty() => Self::at(path),
            _ => directories::ProjectDirs::from("", "", "repartee")
                .map(|dirs| Self::at(dirs.cache_dir()))
                .ok_or(Error::NoCacheFolder)?,
        };
        match fs::metadata(&cache.root) {
            Ok(found) if !found.is_dir() => Err(Error::CacheIsNoFolder { path: cache.root }),
            _ => Ok(cache),
        }
    }

    /// The cache in the folder `root`, which need not be there yet.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The cache folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the checked bytes with this hash stand, if they are there.
    pub fn blob_path(&self, sha256: &Sha256Digest) -> PathBuf {
        self.root.join("blobs").join("sha256").join(sha256.to_string())
    }

    /// The folder of a model, with its files under their own names.
    pub fn model_folder(&self, model: &str) -> PathBuf {
        self.root.join("models").join(model)
    }

    pub(crate) fn view_path(&self, model: &str, file: &str) -> PathBuf {
        self.model_folder(model).join(file)
    }

    pub(crate) fn part_path(&self, key: &str) -> PathBuf {
        self.root.join("partial").join(format!("{key}.part"))
    }

    pub(crate) fn pin_path(&self, model: &str, file: &str) -> PathBuf {
        self.root.join("pins").join(model).join(file)
    }

    pub(crate) fn tmp_folder(&self) -> PathBuf {
        self.root.join("tmp")
    }

    fn verified_path(&self, sha256: &Sha256Digest) -> PathBuf {
        self.root.join("verified").join(sha256.to_string())
    }

    /// Takes the lock for `key`, waiting while another process or thread has it; `waiting` is called once if
    /// it comes to that.
    pub(crate) fn lock(&self, key: &str, cancel: &CancelToken, waiting: impl FnOnce()) -> Result<BlobLock> {
        let path = self.root.join("locks").join(format!("{key}.lock"));
        let file = self.open_file(&path)?;
        let mut waiting = Some(waiting);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(BlobLock(file)),
                Err(TryLockError::WouldBlock) => {
                    if let Some(waiting) = waiting.take() {
                        waiting();
                    }
                    if cancel.wait(LOCK_POLL) {
                        return Err(Error::Interrupted { what: path.display().to_string() });
                    }
                }
                // Some network file systems have no locks. Two processes may then fetch the same file; each
                // result is still checked.
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                    tracing::warn!(path = %path.display(), "the file system has no locks");
                    return Ok(BlobLock(file));
                }
                Err(TryLockError::Error(error)) => return Err(Error::writing("lock", &path, error)),
            }
        }
    }

    /// Takes the lock for `key` if nobody has it.
    pub(crate) fn try_lock(&self, key: &str) -> Result<Option<BlobLock>> {
        let cancel = CancelToken::new();
        match self.lock(key, &cancel, || cancel.cancel()) {
            Ok(lock) => Ok(Some(lock)),
            Err(Error::Interrupted { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a blob of the right size is there; its hash may not have been checked since it changed.
    pub(crate) fn has_blob(&self, content: &Content) -> bool {
        let found = self.metadata(&self.blob_path(&content.sha256));
        found.is_ok_and(|meta| meta.is_some_and(|meta| meta.is_file() && meta.len() == content.size_bytes))
    }

    /// Checks the blob: `Ok(true)` if it is there and right, `Ok(false)` if it is not there.
    ///
    /// A blob that has not changed since its hash was found right (same size and modification time) is
    /// trusted.
    ///
    /// # Errors
    /// [`Error::WrongSize`] or [`Error::WrongHash`] if it is there and wrong, [`Error::Interrupted`],
    /// [`Error::Io`].
    pub(crate) fn check_blob(&self, content: &Content, cancel: &CancelToken) -> Result<bool> {
        let path = self.blob_path(&content.sha256);
        let Some(stamp) = self.stamp(&path, content)? else { return Ok(false) };
        if self.is_recorded(&content.sha256, &stamp) {
            return Ok(true);
        }
        self.rehash_blob(content, cancel)
    }

    /// Whether the blob is there and has not changed since its hash was found right, as far as can be known without
    /// reading it.
    pub(crate) fn is_trusted(&self, content: &Content) -> bool {
        let stamp = self.stamp(&self.blob_path(&content.sha256), content).ok().flatten();
        stamp.is_some_and(|stamp| self.is_recorded(&content.sha256, &stamp))
    }

    fn is_recorded(&self, sha256: &Sha256Digest, stamp: &str) -> bool {
        self.read_record(&self.verified_path(sha256)).is_some_and(|recorded| recorded == stamp)
    }

    /// As [`check_blob`](Self::check_blob), but trusts nothing: reads and hashes the whole blob.
    pub(crate) fn rehash_blob(&self, content: &Content, cancel: &CancelToken) -> Result<bool> {
        let path = self.blob_path(&content.sha256);
        self.forget_verified(&content.sha256);
        let Some(stamp) = self.stamp(&path, content)? else { return Ok(false) };
        let found = hash_file(&path, cancel)?;
        if found != content.sha256 {
            return Err(Error::WrongHash {
                what: path.display().to_string(),
                expected: content.sha256,
                found,
            });
        }
        self.record_verified(&content.sha256, &stamp);
        Ok(true)
    }

    /// Records that the blob, just written and hashed by us, is right.
    pub(crate) fn trust_blob(&self, content: &Content) -> Result<()> {
        if let Some(stamp) = self.stamp(&self.blob_path(&content.sha256), content)? {
            self.record_verified(&content.sha256, &stamp);
        }
        Ok(())
    }

    /// Removes a blob and what is recorded of it; fine if it is not there.
    pub(crate) fn remove_blob(&self, sha256: &Sha256Digest) -> Result<()> {
        self.forget_verified(sha256);
        self.remove_file(&self.blob_path(sha256))
    }

    /// Size and modification time of the blob as recorded text; `None` if it is not there. A link is no blob: what it
    /// leads to may change unseen.
    fn stamp(&self, path: &Path, content: &Content) -> Result<Option<String>> {
        let found = self.metadata(path).map_err(|error| Error::reading("look at", path, error))?;
        let Some(meta) = found else { return Ok(None) };
        if meta.len() != content.size_bytes {
            let what = path.display().to_string();
            return Err(Error::WrongSize {
                what,
                expected_bytes: content.size_bytes,
                found_bytes: meta.len(),
            });
        }
        // A system without modification times gives a stamp that matches no record: each use hashes.
        let modified = meta
            .modified()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .map_or(0, |age| age.as_nanos());
        Ok(Some(format!("{} {modified}\n", meta.len())))
    }

    /// A record that can't be written costs time at the next use, nothing else.
    fn record_verified(&self, sha256: &Sha256Digest, stamp: &str) {
        let path = self.verified_path(sha256);
        if let Err(error) = self.make_folder_of(&path).and_then(|()| write_file(&path, stamp)) {
            tracing::debug!(%error, "cannot record that a blob was verified");
        }
    }

    fn forget_verified(&self, sha256: &Sha256Digest) {
        let _ = self.remove_file(&self.verified_path(sha256));
    }

    /// Makes `models/<model>/<file>` stand for the blob and returns its path.
    pub(crate) fn link_view(&self, model: &str, file: &str, content: &Content) -> Result<PathBuf> {
        again_if_gone(|| self.link_view_once(model, file, content))
    }

    fn link_view_once(&self, model: &str, file: &str, content: &Content) -> Result<PathBuf> {
        let view = self.view_path(model, file);
        let blob = self.blob_path(&content.sha256);
        self.make_folder_of(&view)?;
        if is_view_of(&view, &blob, model, file, &content.sha256) {
            return Ok(view);
        }
        static LINKS: AtomicU64 = AtomicU64::new(0);
        let number = LINKS.fetch_add(1, Ordering::Relaxed);
        let name =
            format!(".{}.{}-{number}.tmp", file.rsplit('/').next().unwrap_or(file), std::process::id());
        let temporary = view.with_file_name(name);
        let _ = fs::remove_file(&temporary);
        make_link(&blob, &temporary, model, file, &content.sha256)
            .map_err(|e| Error::writing("link", &view, e))?;
        fs::rename(&temporary, &view).map_err(|e| Error::writing("link", &view, e))?;
        Ok(view)
    }
}

/// The target of a view's link, relative so that the cache folder may be moved.
#[cfg(unix)]
fn relative_target(file: &str, sha256: &Sha256Digest) -> PathBuf {
    let up = "../".repeat(2 + file.matches('/').count());
    PathBuf::from(format!("{up}blobs/sha256/{sha256}"))
}

#[cfg(unix)]
fn is_view_of(view: &Path, _blob: &Path, _model: &str, file: &str, sha256: &Sha256Digest) -> bool {
    fs::read_link(view).is_ok_and(|target| target == relative_target(file, sha256))
}

#[cfg(unix)]
fn make_link(
    _blob: &Path,
    view: &Path,
    _model: &str,
    file: &str,
    sha256: &Sha256Digest,
) -> std::io::Result<()> {
    std::os::unix::fs::symlink(relative_target(file, sha256), view)
}

/// Without symbolic links for everybody: a hard link, or a copy where there are none. Both keep size and
/// modification time.
#[cfg(not(unix))]
fn is_view_of(view: &Path, blob: &Path, _model: &str, _file: &str, _sha256: &Sha256Digest) -> bool {
    match (fs::symlink_metadata(view), fs::metadata(blob)) {
        (Ok(view), Ok(blob)) => {
            view.is_file() && view.len() == blob.len() && view.modified().ok() == blob.modified().ok()
        }
        _ => false,
    }
}

#[cfg(not(unix))]
fn make_link(
    blob: &Path,
    view: &Path,
    _model: &str,
    _file: &str,
    _sha256: &Sha256Digest,
) -> std::io::Result<()> {
    fs::hard_link(blob, view).or_else(|_| fs::copy(blob, view).map(|_| ()))
}

/// Hash of all bytes of the file at `path`.
pub(crate) fn hash_file(path: &Path, cancel: &CancelToken) -> Result<Sha256Digest> {
    let mut file = File::open(path).map_err(|e| Error::reading("open", path, e))?;
    let mut hasher = Sha256::new();
    match absorb(&mut file, &mut hasher, cancel) {
        Ok(Some(_)) => Ok(Sha256Digest::finish(hasher)),
        Ok(None) => Err(Error::Interrupted { what: path.display().to_string() }),
        Err(error) => Err(Error::reading("read", path, error)),
    }
}

/// Writes a small file whole or not at all.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        std::io::Write::write_all(&mut file, text.as_bytes())?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|e| Error::writing("write", path, e))
}
