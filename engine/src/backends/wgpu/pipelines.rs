//! Compiled pipelines, kept on disk from one start of the program to the next: a driver takes seconds for those of a model.
//!
//! One file for each kind of adapter, in a folder that the program names. What is trusted: the driver gets the bytes behind
//! wgpu's header as they are, and no driver promises to survive wrong ones. So a file is read only if nobody but this user
//! can have written it (its owner, its mode, and it is no link), if it is not too large, and if its sum is right, which
//! finds a file that was cut or damaged. wgpu then compares adapter and driver with its own header, and begins with
//! nothing when they are others. Whoever can write as this user can replace the program itself, and needs no cache for it.
//!
//! A file that cannot be read or written costs time and nothing else: it is logged.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Most bytes of a file: the pipelines of all models take one or two MiB. Drivers never drop what is no longer used; where
/// that has come so far, the next start begins anew.
const MOST: u64 = 32 << 20;

/// Version of the layout: these bytes, the sum of the rest, the rest.
const MAGIC: [u8; 8] = *b"RPIPES01";
const HEAD: usize = MAGIC.len() + size_of::<u64>();

/// The driver's cache and its file.
pub(super) struct Pipelines {
    cache: wgpu::PipelineCache,
    file: PathBuf,
    /// Sum of what the file holds.
    stored: Mutex<Option<u64>>,
}

impl Pipelines {
    /// The cache for an adapter in `folder`, which need not be there; `device` has the feature. `None` where the adapter's
    /// API has no cache.
    pub(super) fn open(device: &wgpu::Device, adapter: &wgpu::AdapterInfo, folder: &Path) -> Option<Self> {
        let file = folder.join(wgpu::util::pipeline_cache_key(adapter)?);
        let found = match read(&file) {
            Ok(data) => Some(data),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(file = %file.display(), %error, "pipelines are compiled anew");
                None
            }
        };
        let descriptor = wgpu::PipelineCacheDescriptor {
            label: Some("repartee pipelines"),
            data: found.as_deref(),
            fallback: true,
        };
        // SAFETY: the data is what `get_data` gave to a process of this user, as the module's head says; wgpu refuses that
        // of another adapter or driver.
        let cache = unsafe { device.create_pipeline_cache(&descriptor) };
        Some(Self { cache, file, stored: Mutex::new(found.map(|data| sum(&data))) })
    }

    /// For making pipelines.
    pub(super) fn cache(&self) -> &wgpu::PipelineCache {
        &self.cache
    }

    /// Writes the file if there is anything new.
    pub(super) fn save(&self) {
        let Some(data) = self.cache.get_data() else { return };
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Some(sum(&data));
        if *stored == now {
            return;
        }
        let done = if (HEAD + data.len()) as u64 > MOST {
            fs::remove_file(&self.file)
                .or_else(|e| if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(e) })
        } else {
            write(&self.file, &data)
        };
        match done {
            Ok(()) => *stored = now,
            Err(error) => tracing::warn!(file = %self.file.display(), %error, "pipelines are not kept"),
        }
    }
}

/// FNV-1a over words of eight bytes.
fn sum(data: &[u8]) -> u64 {
    let (words, rest) = data.as_chunks();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).map(|&word| u64::from_le_bytes(word));
    let step = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(29);
    words.chain([data.len() as u64]).fold(0xcbf2_9ce4_8422_2325, step)
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// The data of a file, if it can be trusted.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(wrong("is no regular file"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // SAFETY: asks for a number and cannot fail.
        let me = unsafe { libc::geteuid() };
        if metadata.uid() != me || metadata.mode() & 0o022 != 0 {
            return Err(wrong("others may have written it"));
        }
    }
    if metadata.len() > MOST {
        return Err(wrong("is too large"));
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(MOST).read_to_end(&mut bytes)?;
    let Some((head, data)) = bytes.split_at_checked(HEAD) else { return Err(wrong("is too short")) };
    let (magic, expected) = head.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(wrong("is of another version, or something else"));
    }
    if expected != sum(data).to_le_bytes() {
        return Err(wrong("is damaged"));
    }
    Ok(data.to_vec())
}

/// Opens without following a link, and without waiting for who writes into a pipe.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    }
    options.open(path)
}

/// Replaces a file at once, so that who reads or is stopped in the middle finds the old one or the new one.
fn write(path: &Path, data: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| wrong("has no folder"))?;
    let mut maker = fs::DirBuilder::new();
    maker.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        maker.mode(0o700);
    }
    maker.create(folder)?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    // What a process of the same number left behind, or a link that was put there.
    fs::remove_file(&temporary).or_else(|e| if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(e) })?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let written = options.open(&temporary).and_then(|mut file| {
        file.write_all(&MAGIC)?;
        file.write_all(&sum(data).to_le_bytes())?;
        file.write_all(data)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&temporary, path)).inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_only_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/cache");
        for data in [&b"first"[..], b"", b"sixteen bytes...", b"the third one"] {
            write(&path, data).unwrap();
            assert_eq!(read(&path).unwrap(), data);
        }
        assert_eq!(fs::read_dir(folder.path().join("new")).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, PermissionsExt};
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
            assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
            assert!(read(&path).unwrap_err().to_string().contains("others"));
        }
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        write(&path, b"compiled pipelines").unwrap();
        let whole = fs::read(&path).unwrap();
        let put = |bytes: &[u8]| {
            // Written over, so that the mode stays.
            fs::write(&path, bytes).unwrap();
            read(&path)
        };
        assert!(put(&whole).is_ok());
        for len in 0..whole.len() {
            assert!(put(&whole[..len]).is_err(), "{len} bytes");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            assert!(put(&bytes).is_err(), "byte {at}");
        }
        assert!(put(&[&whole[..], &[0]].concat()).is_err());
        OpenOptions::new().write(true).open(&path).unwrap().set_len(MOST + 1).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("large"));
    }

    #[cfg(unix)]
    #[test]
    fn links_and_folders_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("cache"), folder.path().join("other"));
        write(&other, b"data").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(read(&path).is_err());
        write(&path, b"own").unwrap();
        assert_eq!((read(&path).unwrap(), read(&other).unwrap()), (b"own".to_vec(), b"data".to_vec()));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(read(&path).is_err());
        assert!(write(&path, b"own").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left behind");
    }
}
