//! What can go wrong, each with what the user can do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::Sha256Digest;

/// Result with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// One source that was tried for a file, and why it did not give the file.
#[derive(Debug)]
pub struct Attempt {
    /// The address or the packages.
    pub source: String,
    /// Why it failed.
    pub error: Error,
}

/// Why a model file cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The catalogue has no model of this name.
    #[error("there is no model `{name}`; there are: {known}")]
    UnknownModel {
        /// The name asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The model has no file of this name.
    #[error("model `{model}` has no file `{file}`; it has: {known}")]
    UnknownFile {
        /// The model.
        model: String,
        /// The name asked for.
        file: String,
        /// The names that there are.
        known: String,
    },
    /// The file in the cache is not what it was when it came.
    #[error("{source}; run `repartee models fetch {model}{flag}`, which brings `{file}` anew", flag = if *hub { " --hub" } else { "" })]
    Damaged {
        /// The model.
        model: String,
        /// The file.
        file: String,
        /// Whether the model needs the flag for hub models.
        hub: bool,
        /// [`Error::WrongHash`] or [`Error::WrongSize`].
        source: Box<Error>,
    },
    /// The file has not been fetched yet.
    #[error("`{file}` of model `{model}` is not in the cache: run `repartee models fetch {model}{flag}`", flag = if *hub { " --hub" } else { "" })]
    NotInCache {
        /// The model.
        model: String,
        /// The file.
        file: String,
        /// Whether the model needs the flag for hub models.
        hub: bool,
    },
    /// The model is one of the hub's, and the caller did not say that fetching it from there is wanted.
    #[error(
        "model `{model}` comes from a hub that was not checked when this program was made: run `repartee models fetch {model} --hub` if you trust it"
    )]
    HubNotAllowed {
        /// The model.
        model: String,
    },
    /// The catalogue cannot be read or contradicts itself.
    #[error("catalogue {origin}: {reason}")]
    Catalogue {
        /// Where it was read.
        origin: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The system names no folder for caches.
    #[error("found no folder for the cache: set {} to one", crate::CACHE_ENV)]
    NoCacheFolder,
    /// A file or a device stands where the cache's folder is to be.
    #[error("the cache {} is no folder: set {} to another one", path.display(), crate::CACHE_ENV)]
    CacheIsNoFolder {
        /// What stands there.
        path: PathBuf,
    },
    /// A file without a published hash that cannot be what its name says.
    #[error("{} was not taken as `{file}` of model `{model}`: {reason}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// The model.
        model: String,
        /// The name in the model.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The bytes are not those of the catalogue.
    #[error(
        "{what} has another hash than listed (sha256 {found} instead of {expected}): it was changed, or it is another version"
    )]
    WrongHash {
        /// The file or address.
        what: String,
        /// The hash of the catalogue, or of the first use.
        expected: Sha256Digest,
        /// The hash of the bytes.
        found: Sha256Digest,
    },
    /// The number of bytes is not that of the catalogue.
    #[error("{what} has {found_bytes} bytes instead of {expected_bytes}")]
    WrongSize {
        /// The file or address.
        what: String,
        /// Bytes in the catalogue, or announced by the server.
        expected_bytes: u64,
        /// Bytes there are.
        found_bytes: u64,
    },
    /// The file system has no room for the file.
    #[error("the disk is full at {}{}: make room, or set {} to a folder on another disk", path.display(), room(*needed_bytes, *free_bytes), crate::CACHE_ENV)]
    DiskFull {
        /// The folder or file that was to be written.
        path: PathBuf,
        /// Bytes that were to be written, if known.
        needed_bytes: Option<u64>,
        /// Bytes that there is room for, if known.
        free_bytes: Option<u64>,
    },
    /// The cache folder cannot be written.
    #[error("{} cannot be written ({reason}): make it writable, or set {} to another folder", path.display(), crate::CACHE_ENV)]
    ReadOnly {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The caller asked to stop.
    #[error(
        "interrupted while working on {what}; what has arrived is kept, the next fetch goes on from there"
    )]
    Interrupted {
        /// The file.
        what: String,
    },
    /// The client of a package registry is not installed.
    #[error("`{client}` was not found: {install}")]
    ClientMissing {
        /// The program.
        client: &'static str,
        /// How to install it.
        install: &'static str,
    },
    /// The client of a package registry ended with an error.
    #[error("`{command}` failed: {reason}")]
    ClientFailed {
        /// The command line.
        command: String,
        /// The last lines that it wrote.
        reason: String,
    },
    /// A host or registry cannot be reached; this is not tried again by the same [`Fetcher`](crate::Fetcher).
    #[error("{host} cannot be reached: {reason}")]
    Unreachable {
        /// The host with its port, or the registry.
        host: String,
        /// What the system said.
        reason: String,
    },
    /// The server answered with another status than success.
    #[error("{url}: the server answered {status}")]
    HttpStatus {
        /// The address.
        url: String,
        /// The HTTP status code.
        status: u16,
    },
    /// The transfer broke or broke the protocol.
    #[error("{url}: {reason}")]
    Http {
        /// The address.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// Nothing arrived for too long.
    #[error("{what}: nothing arrived for {secs} s")]
    Stalled {
        /// The address or command.
        what: String,
        /// The wait in seconds.
        secs: u64,
    },
    /// A package is damaged, hostile, or lacks the file.
    #[error("package {package}: {reason}")]
    Archive {
        /// Name and version.
        package: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Every source of the file failed.
    #[error("no source gave `{file}` of model `{model}`:{}\n{}", list(attempts), advice(attempts))]
    SourcesExhausted {
        /// The model.
        model: String,
        /// The file.
        file: String,
        /// What was tried, in order.
        attempts: Vec<Attempt>,
    },
    /// Any other failure of the file system.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// A failed read: `action` is a verb such as "read".
    pub(crate) fn reading(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }

    /// A failed write; a full disk and a read-only folder get their own kinds.
    pub(crate) fn writing(action: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull {
                path: path.into(),
                needed_bytes: None,
                free_bytes: path.parent().and_then(crate::disk::free_bytes),
            },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                Self::ReadOnly { path: path.into(), reason: source.to_string() }
            }
            _ => Self::Io { action, path: path.into(), source },
        }
    }

    /// Whether the fault is this machine's, so that another source would fail alike.
    pub(crate) fn is_local(&self) -> bool {
        matches!(
            self,
            Self::DiskFull { .. } | Self::ReadOnly { .. } | Self::Interrupted { .. } | Self::Io { .. }
        )
    }

    /// Whether the source could not be reached at all, as without a network.
    pub fn is_offline(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::SourcesExhausted { attempts, .. } => {
                !attempts.is_empty() && attempts.iter().all(|attempt| attempt.error.is_offline())
            }
            _ => false,
        }
    }
}

fn room(needed: Option<u64>, free: Option<u64>) -> String {
    match (needed, free) {
        (Some(needed), Some(free)) => format!(" ({} needed, {} free)", mebibytes(needed), mebibytes(free)),
        _ => String::new(),
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0))
}

fn list(attempts: &[Attempt]) -> String {
    attempts
        .iter()
        .enumerate()
        .map(|(i, attempt)| format!("\n  {}. {}: {}", i + 1, attempt.source, attempt.error))
        .collect()
}

fn advice(attempts: &[Attempt]) -> &'static str {
    let any = |test: fn(&Error) -> bool| attempts.iter().any(|attempt| test(&attempt.error));
    if attempts.iter().all(|attempt| attempt.error.is_offline()) {
        "There seems to be no network. Try again when there is, or run `repartee models import PATH` on files that you have."
    } else if any(|error| matches!(error, Error::ClientMissing { .. })) {
        "Install the missing client as said above and fetch again, or run `repartee models import PATH` on files that you have."
    } else if any(|error| matches!(error, Error::WrongHash { .. } | Error::WrongSize { .. })) {
        "The bytes found are not the ones this program knows and were not kept. If you have the right file, run `repartee models import PATH`."
    } else {
        "Fetch again later (what has arrived is kept), or run `repartee models import PATH` on files that you have."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_a_read_only_folder_get_their_own_kinds() {
        let path = Path::new("cache/file");
        let map = |kind: io::ErrorKind| Error::writing("write", path, kind.into());
        assert!(matches!(map(io::ErrorKind::StorageFull), Error::DiskFull { .. }));
        assert!(matches!(map(io::ErrorKind::ReadOnlyFilesystem), Error::ReadOnly { .. }));
        assert!(matches!(map(io::ErrorKind::PermissionDenied), Error::ReadOnly { .. }));
        assert!(matches!(map(io::ErrorKind::NotFound), Error::Io { .. }));
    }

    #[test]
    fn the_last_error_names_all_that_was_tried() {
        let offline = |host: &str| Attempt {
            source: format!("https://{host}/x"),
            error: Error::Unreachable { host: host.into(), reason: "no such host".into() },
        };
        let error = Error::SourcesExhausted {
            model: "m".into(),
            file: "f".into(),
            attempts: vec![offline("a"), offline("b")],
        };
        let text = error.to_string();
        assert!(
            text.contains("1. https://a/x") && text.contains("2. https://b/x") && text.contains("no network"),
            "{text}"
        );
        assert!(error.is_offline());
    }
}
