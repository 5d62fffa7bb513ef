//! The catalogue and the cache together: which files are there, where, and whether they are right.

use std::fs;
use std::path::PathBuf;

use crate::cache::write_file;
use crate::{Cache, CancelToken, Catalogue, Content, Error, Model, ModelFile, Result, Sha256Digest};

/// The models of a catalogue in a cache.
#[derive(Clone, Debug)]
pub struct Store {
    catalogue: Catalogue,
    cache: Cache,
}

/// How much of a model is in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelState {
    /// Every file.
    Present,
    /// Some files, or parts of some; what `fetch` starts from.
    Partial {
        /// Bytes that are there.
        bytes: u64,
    },
    /// Nothing.
    Absent,
}

/// What `verify` found out about a file.
#[derive(Debug)]
pub struct FileCheck {
    /// The model.
    pub model: String,
    /// The file.
    pub file: String,
    /// What it found.
    pub state: FileState,
}

/// The state of a file after all its bytes were read.
#[derive(Debug)]
pub enum FileState {
    /// There, and every byte is right.
    Right,
    /// Not in the cache.
    Absent,
    /// There and wrong, or unreadable; `fetch` replaces it.
    Wrong(Error),
}

impl Store {
    /// The program's catalogue and the user's cache, or those that the environment names
    /// ([`CATALOGUE_ENV`](crate::CATALOGUE_ENV), [`CACHE_ENV`](crate::CACHE_ENV)). Nothing is created.
    ///
    /// # Errors
    /// [`Error::Catalogue`], [`Error::NoCacheFolder`].
    pub fn open() -> Result<Self> {
        Ok(Self::new(Catalogue::open()?, Cache::open()?))
    }

    /// The models of `catalogue` in `cache`.
    pub fn new(catalogue: Catalogue, cache: Cache) -> Self {
        Self { catalogue, cache }
    }

    /// The catalogue.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The cache.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Path of a checked file of a model, e.g. `("whisper-base", "model.bin")`.
    ///
    /// A file that has not changed since it was verified is found without reading it; otherwise its hash is
    /// computed first.
    ///
    /// # Errors
    /// [`Error::UnknownModel`], [`Error::UnknownFile`], [`Error::NotInCache`], or [`Error::Damaged`] if it was
    /// changed since.
    pub fn resolve(&self, model: &str, file: &str) -> Result<PathBuf> {
        let model = self.catalogue.model(model)?;
        self.resolve_file(model, model.file(file)?)
    }

    /// Folder of a model with all its files checked and under their names, for loaders that take a folder.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve) for each of its files; [`Error::ReadOnly`] if the folder lacks a link
    /// that can't be made.
    pub fn resolve_folder(&self, model: &str) -> Result<PathBuf> {
        let model = self.catalogue.model(model)?;
        for file in &model.files {
            self.resolve_file(model, file)?;
            let content = self.content(model, file).ok_or_else(|| not_in_cache(model, file))?;
            self.cache.link_view(&model.name, &file.name, &content)?;
        }
        Ok(self.cache.model_folder(&model.name))
    }

    fn resolve_file(&self, model: &Model, file: &ModelFile) -> Result<PathBuf> {
        let content = self.content(model, file).ok_or_else(|| not_in_cache(model, file))?;
        match self.cache.check_blob(&content, &CancelToken::new()) {
            Ok(true) => {}
            Ok(false) => return Err(not_in_cache(model, file)),
            Err(source @ (Error::WrongHash { .. } | Error::WrongSize { .. })) => {
                let (file, source) = (file.name.clone(), Box::new(source));
                return Err(Error::Damaged { model: model.name.clone(), file, hub: model.hub, source });
            }
            Err(error) => return Err(error),
        }
        // In a cache that can't be written the blob itself serves, under its hash.
        Ok(self
            .cache
            .link_view(&model.name, &file.name, &content)
            .unwrap_or_else(|_| self.cache.blob_path(&content.sha256)))
    }

    /// What the bytes of a file must be: from the catalogue, or as recorded on first use.
    pub fn content(&self, model: &Model, file: &ModelFile) -> Option<Content> {
        file.content.or_else(|| self.pinned(model, file))
    }

    fn pinned(&self, model: &Model, file: &ModelFile) -> Option<Content> {
        let text = self.cache.read_record(&self.cache.pin_path(&model.name, &file.name))?;
        let (size, sha256) = text.lines().next()?.split_once(' ')?;
        Some(Content { size_bytes: size.parse().ok()?, sha256: sha256.parse().ok()? })
    }

    /// Records what a hub file without a known hash was on first use.
    pub(crate) fn pin(&self, model: &Model, file: &ModelFile, content: &Content, origin: &str) -> Result<()> {
        let path = self.cache.pin_path(&model.name, &file.name);
        self.cache.make_folder_of(&path)?;
        write_file(&path, &format!("{} {}\nfirst from {origin}\n", content.size_bytes, content.sha256))
    }

    /// How much of `model` is there, judged by sizes only.
    pub fn state(&self, model: &Model) -> ModelState {
        let (mut bytes, mut present) = (0, 0);
        for file in &model.files {
            let content = self.content(model, file);
            if let Some(content) = content.filter(|content| self.cache.has_blob(content)) {
                bytes += content.size_bytes;
                present += 1;
            } else {
                let part = self.cache.part_path(&part_key(model, file, content));
                bytes += self.cache.len_bytes(&part);
            }
        }
        match (present == model.files.len(), bytes) {
            (true, _) => ModelState::Present,
            (false, 0) => ModelState::Absent,
            (false, bytes) => ModelState::Partial { bytes },
        }
    }

    /// Whether every file of `model` is there and unchanged since its hash was found right, judged by size and time of
    /// change only. What is not is hashed at its next use.
    pub fn is_trusted(&self, model: &Model) -> bool {
        model
            .files
            .iter()
            .all(|file| self.content(model, file).is_some_and(|content| self.cache.is_trusted(&content)))
    }

    /// Reads and hashes every file of the models `names`, whatever was recorded; `seen` is told each result
    /// at once.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] before anything is read; [`Error::Interrupted`].
    pub fn verify(
        &self,
        names: &[&str],
        cancel: &CancelToken,
        seen: &mut dyn FnMut(&FileCheck),
    ) -> Result<Vec<FileCheck>> {
        let models = names.iter().map(|name| self.catalogue.model(name)).collect::<Result<Vec<_>>>()?;
        let mut checks = Vec::new();
        for (model, file) in
            models.into_iter().flat_map(|model| model.files.iter().map(move |file| (model, file)))
        {
            let state =
                match self.content(model, file).map(|content| self.cache.rehash_blob(&content, cancel)) {
                    Some(Ok(true)) => FileState::Right,
                    Some(Ok(false)) | None => FileState::Absent,
                    Some(Err(error @ Error::Interrupted { .. })) => return Err(error),
                    Some(Err(error)) => FileState::Wrong(error),
                };
            let check = FileCheck { model: model.name.clone(), file: file.name.clone(), state };
            seen(&check);
            checks.push(check);
        }
        Ok(checks)
    }

    /// Forgets what is recorded of the hub files of a model, so that the next ones to come are trusted again.
    ///
    /// # Errors
    /// [`Error::UnknownModel`]; [`Error::ReadOnly`] and [`Error::Io`] if a record can't be removed.
    pub fn forget(&self, name: &str) -> Result<()> {
        let model = self.catalogue.model(name)?;
        let mut pins = model.files.iter().map(|file| self.cache.pin_path(&model.name, &file.name));
        pins.try_for_each(|pin| self.cache.remove_file(&pin))
    }

    /// Removes the files of a model, except bytes that another model in the cache shares, and those that are being
    /// fetched. Returns the bytes freed.
    ///
    /// What is recorded of hub files stays, so that another file under the same name is still refused, until
    /// [`forget`](Self::forget).
    ///
    /// # Errors
    /// [`Error::UnknownModel`]; [`Error::ReadOnly`] and [`Error::Io`] if a file can't be removed.
    pub fn remove(&self, name: &str) -> Result<u64> {
        let model = self.catalogue.model(name)?;
        let mut freed_bytes = 0;
        for file in &model.files {
            let content = self.content(model, file);
            let key = part_key(model, file, content);
            let part = self.cache.part_path(&key);
            let blob = content.map(|content| self.cache.blob_path(&content.sha256));
            let is_there = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
            let view = self.cache.view_path(&model.name, &file.name);
            if !is_there(&part) && !blob.as_ref().is_some_and(is_there) {
                self.cache.remove_file(&view)?;
                continue;
            }
            // Nobody pulls a file from under a fetch, which would fail in its last step.
            let Some(_lock) = self.cache.try_lock(&key)? else {
                tracing::warn!(model = model.name, file = file.name, "left where it is: it is being fetched");
                continue;
            };
            self.cache.remove_file(&view)?;
            freed_bytes += self.cache.len_bytes(&part);
            self.cache.remove_file(&part)?;
            if let Some(content) = content.filter(|content| !self.is_claimed(&content.sha256)) {
                freed_bytes += self.cache.len_bytes(&self.cache.blob_path(&content.sha256));
                self.cache.remove_blob(&content.sha256)?;
            }
        }
        self.remove_empty_folders(model);
        Ok(freed_bytes)
    }

    /// Whether a model whose view is in the cache has a file with this hash.
    fn is_claimed(&self, sha256: &Sha256Digest) -> bool {
        self.catalogue
            .models()
            .iter()
            .flat_map(|model| model.files.iter().map(move |file| (model, file)))
            .any(|(model, file)| {
                self.content(model, file).is_some_and(|content| content.sha256 == *sha256)
                    && fs::symlink_metadata(self.cache.view_path(&model.name, &file.name)).is_ok()
            })
    }

    /// Deepest first; a folder that is not empty stays.
    fn remove_empty_folders(&self, model: &Model) {
        for folder in
            model.files.iter().filter_map(|file| file.name.rsplit_once('/')).map(|(folder, _)| folder)
        {
            self.cache.remove_empty_folder(&self.cache.view_path(&model.name, folder));
        }
        self.cache.remove_empty_folder(&self.cache.model_folder(&model.name));
    }
}

/// The name of a file's partial file and lock: its hash if that is known.
pub(crate) fn part_key(model: &Model, file: &ModelFile, content: Option<Content>) -> String {
    match content {
        Some(content) => content.sha256.to_string(),
        None => format!("first-{}", Sha256Digest::of(format!("{}/{}", model.name, file.name).as_bytes())),
    }
}

fn not_in_cache(model: &Model, file: &ModelFile) -> Error {
    Error::NotInCache { model: model.name.clone(), file: file.name.clone(), hub: model.hub }
}
