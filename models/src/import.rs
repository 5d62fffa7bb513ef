//! Files that the user already has: recognised by their bytes, linked or copied into the cache.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::cache::hash_file;
use crate::owned::again_if_gone;
use crate::part::{CopyError, PartFile};
use crate::store::part_key;
use crate::{CancelToken, Content, Error, Model, ModelFile, Result, Store};

/// Folders are looked through to this depth.
const MAX_DEPTH: usize = 8;

/// What an import found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ImportReport {
    /// Files that belong to models, now in the cache.
    pub imported: Vec<Imported>,
    /// Number of files looked at that belong to no model.
    pub unknown: usize,
    /// Why files that have the name of one of the trusted model were not taken: [`Error::Unfit`], or
    /// [`Error::WrongHash`] beside what is listed or was taken first.
    pub refused: Vec<Error>,
}

/// One file that was recognised.
#[derive(Debug)]
pub struct Imported {
    /// The user's file.
    pub path: PathBuf,
    /// The model.
    pub model: String,
    /// The file's name in the model.
    pub file: String,
}

/// A hub model whose files are taken by their names where no hash is known.
#[derive(Clone, Copy)]
pub struct Trust<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Says why a file cannot be the model's, as one that is cut off: what is taken once is what counts from then on.
    pub fits: &'a dyn Fn(&Model, &ModelFile, &Path) -> Result<(), String>,
}

impl Store {
    /// Takes a file, or all files below a folder, that belong to models: recognised by size and hash,
    /// whatever their names.
    ///
    /// On the same file system the bytes are shared (a hard link) and not copied; the cache notices if they
    /// are changed later. With `trust` the hub files of a model whose hash is not known are also taken, by their
    /// name, and their hash is recorded as on a first fetch.
    ///
    /// # Errors
    /// [`Error::UnknownModel`]; [`Error::Io`] if `path` can't be read; the errors of writing into the cache;
    /// [`Error::Interrupted`].
    pub fn import(
        &self,
        path: &Path,
        trust: Option<Trust<'_>>,
        cancel: &CancelToken,
    ) -> Result<ImportReport> {
        let trusted = match &trust {
            Some(trust) => Some((self.catalogue().model(trust.model)?, trust.fits)),
            None => None,
        };
        let mut by_size = HashMap::<u64, Vec<(&Model, &ModelFile, Content)>>::new();
        for model in self.catalogue().models() {
            for file in &model.files {
                if let Some(content) = self.content(model, file) {
                    by_size.entry(content.size_bytes).or_default().push((model, file, content));
                }
            }
        }
        let mut report = ImportReport::default();
        for found in files_below(path)? {
            let size_bytes = fs::metadata(&found).map_err(|e| Error::reading("look at", &found, e))?.len();
            let mut known = false;
            if let Some(candidates) = by_size.get(&size_bytes) {
                let sha256 = hash_file(&found, cancel)?;
                for (model, file, content) in
                    candidates.iter().filter(|(_, _, content)| content.sha256 == sha256)
                {
                    self.take(&found, model, file, content, cancel)?;
                    report.imported.push(Imported {
                        path: found.clone(),
                        model: model.name.clone(),
                        file: file.name.clone(),
                    });
                    known = true;
                }
            }
            let named = |file: &&ModelFile| found.ends_with(&file.name);
            let first_use = trusted.and_then(|(model, fits)| {
                Some((model, model.files.iter().filter(named).max_by_key(|file| file.name.len())?, fits))
            });
            if let Some((model, file, fits)) = first_use.filter(|_| !known) {
                let content = Content { size_bytes, sha256: hash_file(&found, cancel)? };
                if let Some(expected) = self.content(model, file) {
                    let (what, found) = (found.display().to_string(), content.sha256);
                    report.refused.push(Error::WrongHash { what, expected: expected.sha256, found });
                    continue;
                }
                if let Err(reason) = fits(model, file, &found) {
                    let (model, file) = (model.name.clone(), file.name.clone());
                    report.refused.push(Error::Unfit { path: found, model, file, reason });
                    continue;
                }
                self.take(&found, model, file, &content, cancel)?;
                self.pin(model, file, &content, &found.display().to_string())?;
                report.imported.push(Imported {
                    path: found.clone(),
                    model: model.name.clone(),
                    file: file.name.clone(),
                });
                known = true;
            }
            report.unknown += usize::from(!known);
        }
        Ok(report)
    }

    /// Brings the bytes at `path`, which hashed to `content`, into the cache.
    fn take(
        &self,
        path: &Path,
        model: &Model,
        file: &ModelFile,
        content: &Content,
        cancel: &CancelToken,
    ) -> Result<()> {
        again_if_gone(|| self.take_once(path, model, file, content, cancel))
    }

    fn take_once(
        &self,
        path: &Path,
        model: &Model,
        file: &ModelFile,
        content: &Content,
        cancel: &CancelToken,
    ) -> Result<()> {
        let cache = self.cache();
        let key = part_key(model, file, Some(*content));
        let _lock = cache.lock(&key, cancel, || ())?;
        if !cache.check_blob(content, cancel).unwrap_or(false) {
            cache.remove_blob(&content.sha256)?;
            let blob = cache.blob_path(&content.sha256);
            cache.make_folder_of(&blob)?;
            // The target of a link, not the link: it would break when the user moves his file.
            let original = path.canonicalize().map_err(|e| Error::reading("open", path, e))?;
            if fs::hard_link(&original, &blob).is_ok() {
                // Between the hash and the link the file may have changed: only what the blob is now counts.
                match cache.rehash_blob(content, cancel) {
                    Ok(true) => {}
                    // It is gone, or no file at all.
                    Ok(false) => {
                        cache.remove_blob(&content.sha256)?;
                        self.copy_in(&original, &key, content, cancel)?;
                    }
                    Err(error) => {
                        cache.remove_blob(&content.sha256)?;
                        return Err(error);
                    }
                }
            } else {
                self.copy_in(&original, &key, content, cancel)?;
            }
        }
        cache.link_view(&model.name, &file.name, content).map(|_| ())
    }

    fn copy_in(&self, path: &Path, key: &str, content: &Content, cancel: &CancelToken) -> Result<()> {
        let mut part = PartFile::open(self.cache(), key, Some(*content), path.display().to_string(), cancel)?;
        part.restart()?;
        part.ensure_room(content.size_bytes)?;
        let mut file = File::open(path).map_err(|e| Error::reading("open", path, e))?;
        match part.append_all(&mut file, cancel, |_| ()) {
            Ok(_) => part.commit().map(|_| ()),
            Err(CopyError::Read(error)) => Err(Error::reading("read", path, error)),
            Err(CopyError::Write(error)) => Err(error),
        }
    }
}

/// `path` if it is a file, or the files below it, sorted so that reports are the same each time.
fn files_below(path: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    collect(path, MAX_DEPTH, &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    let meta = fs::metadata(path).map_err(|e| Error::reading("open", path, e))?;
    if meta.is_file() {
        files.push(path.into());
    } else if meta.is_dir() && depth > 0 {
        for entry in fs::read_dir(path).map_err(|e| Error::reading("list", path, e))? {
            let entry = entry.map_err(|e| Error::reading("list", path, e))?.path();
            // Links to files are what hub caches are made of; links to folders could lead round in circles.
            let is_linked_folder = entry.is_symlink() && entry.is_dir();
            if !is_linked_folder && entry.exists() {
                collect(&entry, depth - 1, files)?;
            }
        }
    }
    Ok(())
}
