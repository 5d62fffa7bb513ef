//! Fetching: the sources of a file, one after the other, until one gives the listed bytes.
//!
//! ```no_run
//! use repartee_models::{CancelToken, Event, FetchOptions, Fetcher, Store};
//!
//! let store = Store::open()?;
//! let fetcher = Fetcher::new(&store, FetchOptions::default());
//! fetcher.fetch("whisper-base", &CancelToken::new(), &mut |event| {
//!     if let Event::Progress { file, done_bytes, .. } = event {
//!         tracing::info!(file, done_bytes);
//!     }
//! })?;
//! # Ok::<(), repartee_models::Error>(())
//! ```

mod archive;
mod client;
mod http;
mod packages;
mod progress;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::part::PartFile;
use crate::store::part_key;
use crate::{Attempt, CancelToken, Content, Error, Model, ModelFile, Result, Source, Store};

pub use progress::Event;
use progress::Watch;

/// How a [`Fetcher`] behaves.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// Whether hub models may be fetched, those without a known hash being trusted on first use.
    pub hub: HubPolicy,
    /// Longest wait for a connection, its name and its handshake.
    pub connect_timeout: Duration,
    /// Longest wait for a server to answer, or for more bytes of its answer.
    pub stall_timeout: Duration,
    /// Longest run of a registry's client for one package.
    pub client_timeout: Duration,
    /// Folders to find the registries' clients in, in the form of `PATH`; `None` for `PATH` itself.
    pub search_path: Option<OsString>,
}

/// Whether hub models may be fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HubPolicy {
    /// They are refused with [`Error::HubNotAllowed`].
    #[default]
    Refuse,
    /// They are fetched; the hash of a file that the catalogue does not know is recorded the first time and
    /// must be the same later.
    TrustOnFirstUse,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            hub: HubPolicy::Refuse,
            connect_timeout: Duration::from_secs(5),
            stall_timeout: Duration::from_secs(30),
            client_timeout: Duration::from_secs(60 * 60),
            search_path: None,
        }
    }
}

/// Brings model files into the cache of a [`Store`].
///
/// It remembers which hosts and registries could not be reached and does not try them again: ten files do not
/// wait ten times. A new attempt later takes a new fetcher.
pub struct Fetcher<'a> {
    store: &'a Store,
    options: FetchOptions,
    agent: ureq::Agent,
    unreachable: Unreachable,
}

/// Hosts and registries that could not be reached, with the reason.
#[derive(Default)]
struct Unreachable(Mutex<HashMap<String, String>>);

impl Unreachable {
    fn check(&self, host: &str) -> Result<()> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).get(host) {
            Some(reason) => {
                Err(Error::Unreachable { host: host.into(), reason: format!("{reason} (not tried again)") })
            }
            None => Ok(()),
        }
    }

    fn remember(&self, host: &str, reason: String) -> Error {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(host.into(), reason.clone());
        Error::Unreachable { host: host.into(), reason }
    }
}

impl<'a> Fetcher<'a> {
    /// A fetcher into the cache of `store`.
    pub fn new(store: &'a Store, options: FetchOptions) -> Self {
        let agent = http::agent(&options);
        Self { store, options, agent, unreachable: Unreachable::default() }
    }

    /// Brings all files of the model called `name` into the cache and returns its folder. Files that are
    /// there are only checked.
    ///
    /// # Errors
    /// [`Error::UnknownModel`]; [`Error::HubNotAllowed`]; [`Error::SourcesExhausted`] with what was tried for
    /// the first file that no source gave; [`Error::DiskFull`], [`Error::ReadOnly`], [`Error::Interrupted`]
    /// and [`Error::Io`] at once, since another source would not help.
    pub fn fetch(
        &self,
        name: &str,
        cancel: &CancelToken,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<PathBuf> {
        let store = self.store;
        let model = store.catalogue().model(name)?;
        // The packages stay until the model is done: several of its files may be in one.
        let mut packages = packages::Packages::new(store.cache(), &self.options, &self.unreachable);
        for file in &model.files {
            let mut watch = Watch::new(&model.name, &file.name, on_event);
            let content = self.fetch_file(model, file, &mut packages, cancel, &mut watch)?;
            store.cache().link_view(&model.name, &file.name, &content)?;
        }
        Ok(store.cache().model_folder(&model.name))
    }

    fn fetch_file(
        &self,
        model: &Model,
        file: &ModelFile,
        packages: &mut packages::Packages<'_>,
        cancel: &CancelToken,
        watch: &mut Watch<'_>,
    ) -> Result<Content> {
        let cache = self.store.cache();
        if let Some(content) = self.present(model, file, cancel)? {
            watch.emit(|model, file| Event::Present { model, file });
            return Ok(content);
        }
        if model.hub && self.options.hub == HubPolicy::Refuse {
            return Err(Error::HubNotAllowed { model: model.name.clone() });
        }
        let key = part_key(model, file, self.store.content(model, file));
        let _lock = cache.lock(&key, cancel, || watch.emit(|model, file| Event::Waiting { model, file }))?;
        // Whoever had the lock may have brought the file.
        if let Some(content) = self.present(model, file, cancel)? {
            watch.emit(|model, file| Event::Present { model, file });
            return Ok(content);
        }
        let expected = self.store.content(model, file);
        if let Some(content) = expected {
            // What is there under this hash is wrong (or nothing is there).
            cache.remove_blob(&content.sha256)?;
        }
        let mut attempts = Vec::new();
        for source in &file.sources {
            let name = source.to_string();
            watch.emit(|model, file| Event::Trying { model, file, source: &name });
            let what = match (file.content, expected) {
                (None, Some(_)) => {
                    let pin = cache.pin_path(&model.name, &file.name);
                    format!("`{}` from {name} (first use recorded in {})", file.name, pin.display())
                }
                _ => format!("`{}` from {name}", file.name),
            };
            let part = PartFile::open(cache, &key, expected, what, cancel)?;
            let fetched = match source {
                Source::Url(url) => http::Download {
                    agent: &self.agent,
                    unreachable: &self.unreachable,
                    options: &self.options,
                    url,
                }
                .run(part, cancel, watch),
                Source::Packages(parts) => packages.join(parts, part, cancel, watch),
            };
            match fetched {
                Ok(content) => {
                    if expected.is_none() {
                        self.store.pin(model, file, &content, &name)?;
                    }
                    watch.emit(|model, file| Event::Fetched { model, file, size_bytes: content.size_bytes });
                    return Ok(content);
                }
                Err(error) if error.is_local() => return Err(error),
                Err(error) => {
                    watch.emit(|model, file| Event::SourceFailed {
                        model,
                        file,
                        source: &name,
                        error: &error,
                    });
                    attempts.push(Attempt { source: name, error });
                }
            }
        }
        Err(Error::SourcesExhausted { model: model.name.clone(), file: file.name.clone(), attempts })
    }

    /// The content of the file if it is in the cache and right. A wrong blob counts as absent: it is fetched
    /// anew.
    fn present(&self, model: &Model, file: &ModelFile, cancel: &CancelToken) -> Result<Option<Content>> {
        let Some(content) = self.store.content(model, file) else { return Ok(None) };
        match self.store.cache().check_blob(&content, cancel) {
            Ok(there) => Ok(there.then_some(content)),
            Err(error @ (Error::WrongHash { .. } | Error::WrongSize { .. })) => {
                tracing::warn!(%error, "a file in the cache is wrong and is fetched anew");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
