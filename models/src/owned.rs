//! What in the cache folder is the cache's own: a link that stands in the place of one of its folders or files leads to
//! somebody else's, and is neither followed nor written through.
//!
//! The cache folder itself may be a link, as may `blobs` and `partial` in it: users keep large files on another disk,
//! and everything in these two is named by hashes. A link anywhere else is removed, as a link, when its place is needed.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::{Cache, Error, Result};

/// Folders in the cache folder that may be links.
const MAY_BE_LINKS: [&str; 2] = ["blobs", "partial"];

/// Records are a line or two.
const RECORD_BYTES: u64 = 64 << 10;

/// How often what another process undoes meanwhile is tried.
const TRIES: usize = 50;

/// Calls `step` again if it fails because something was removed under its hands, as by a `remove` that runs beside.
pub(crate) fn again_if_gone<T>(mut step: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..TRIES {
        match step() {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            done => return done,
        }
    }
    step()
}

impl Cache {
    /// The first of the folders that `path` stands in, from the root down, that is a link and may not be one.
    fn stray_link(&self, path: &Path) -> Option<PathBuf> {
        let mut at = self.root().to_path_buf();
        let folder = path.strip_prefix(self.root()).ok()?.parent()?;
        folder.components().find_map(|part| {
            at.push(part);
            self.is_stray_link(&at).then(|| at.clone())
        })
    }

    fn is_stray_link(&self, folder: &Path) -> bool {
        folder.is_symlink() && !MAY_BE_LINKS.iter().any(|name| folder == self.root().join(name))
    }

    /// Makes `folder`, which is in the cache, and those above it; in the place of a link to elsewhere too.
    pub(crate) fn make_folder(&self, folder: &Path) -> Result<()> {
        let failed = |error| Error::writing("create the folder", folder, error);
        fs::create_dir_all(self.root()).map_err(failed)?;
        let mut at = self.root().to_path_buf();
        for part in folder.strip_prefix(self.root()).unwrap_or(Path::new("")).components() {
            at.push(part);
            if self.is_stray_link(&at) {
                tracing::warn!(path = %at.display(), "a link in the place of a folder of the cache is removed");
                remove_link(&at).map_err(failed)?;
            }
            if !at.is_dir() {
                match fs::create_dir(&at) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists && at.is_dir() => {}
                    made => made.map_err(failed)?,
                }
            }
        }
        Ok(())
    }

    /// Makes the folder of `path` and those above it.
    pub(crate) fn make_folder_of(&self, path: &Path) -> Result<()> {
        self.make_folder(path.parent().unwrap_or(self.root()))
    }

    /// What is at `path`: `None` if nothing is, or a link, or if a link leads there.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn metadata(&self, path: &Path) -> io::Result<Option<Metadata>> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() || self.stray_link(path).is_some() => Ok(None),
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Length of the file at `path`, 0 if it is not there.
    pub(crate) fn len_bytes(&self, path: &Path) -> u64 {
        self.metadata(path).ok().flatten().map_or(0, |found| found.len())
    }

    /// Removes a file; fine if it is not there. A link goes as a link, as does one in the place of a folder above: what
    /// it leads to is not the cache's.
    pub(crate) fn remove_file(&self, path: &Path) -> Result<()> {
        let removed = match self.stray_link(path) {
            Some(link) => remove_link(&link),
            None => fs::remove_file(path),
        };
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::writing("remove", path, error)),
            _ => Ok(()),
        }
    }

    /// Removes a folder that is empty.
    pub(crate) fn remove_empty_folder(&self, path: &Path) {
        if self.stray_link(path).is_none() {
            let _ = fs::remove_dir(path);
        }
    }

    /// Opens a file to read and write with what is in it, and makes it and its folder if need be. What is there and is
    /// no plain file, or is also another's, leaves its place.
    pub(crate) fn open_file(&self, path: &Path) -> Result<File> {
        self.make_folder_of(path)?;
        let open = || -> io::Result<File> {
            match fs::symlink_metadata(path) {
                Ok(found) if !found.is_dir() && (!found.is_file() || is_shared(&found)) => {
                    fs::remove_file(path)?;
                }
                _ => {}
            }
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            // Nor one that was put there just now.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW);
            options.open(path)
        };
        open().map_err(|error| Error::writing("open", path, error))
    }

    /// The text of a record, if there is one.
    pub(crate) fn read_record(&self, path: &Path) -> Option<String> {
        self.metadata(path).ok().flatten().filter(Metadata::is_file)?;
        let mut text = String::new();
        File::open(path).ok()?.take(RECORD_BYTES).read_to_string(&mut text).ok()?;
        Some(text)
    }
}

/// Whether the file has another name.
#[cfg(unix)]
fn is_shared(file: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(file) > 1
}

#[cfg(not(unix))]
fn is_shared(_file: &Metadata) -> bool {
    false
}

fn remove_link(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        // Windows has links to folders, which are folders to it.
        Err(_) if cfg!(windows) => fs::remove_dir(path),
        removed => removed,
    }
}
