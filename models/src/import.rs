//! Files that the user already has: recognised by their bytes, linked or copied into the cache.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::cache::hash_file;
use crate::part::{CopyError, PartFile};
use crate::store::part_key;
use crate::{CancelToken, Content, Error, Model, ModelFile, Result, Store};

/// Folders are looked through to this depth.
const MAX_DEPTH: usize = 8;

/// What an import found.
#[derive(Debug, Default)]
pub struct ImportReport {
    /// Files that belong to models, now in the cache.
    pub imported: Vec<Imported>,
    /// Number of files looked at that belong to no model.
    pub unknown: usize,
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

impl Store {
    /// Takes a file, or all files below a folder, that belong to models: recognised by size and hash,
    /// whatever their names.
    ///
    /// On the same file system the bytes are shared (a hard link) and not copied; the cache notices if they
    /// are changed later. With `trusted_model` the hub files of that model whose hash is not known are also
    /// taken, by their name, and their hash is recorded as on a first fetch.
    ///
    /// # Errors
    /// [`Error::UnknownModel`]; [`Error::Io`] if `path` can't be read; the errors of writing into the cache;
    /// [`Error::Interrupted`].
    pub fn import(
        &self,
        path: &Path,
        trusted_model: Option<&str>,
        cancel: &CancelToken,
    ) -> Result<ImportReport> {
        let trusted = trusted_model.map(|name| self.catalogue().model(name)).transpose()?;
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
            let first_use = trusted.and_then(|model| {
                Some((model, model.files.iter().filter(named).max_by_key(|file| file.name.len())?))
            });
            if let Some((model, file)) =
                first_use.filter(|(model, file)| !known && self.content(model, file).is_none())
            {
                let content = Content { size_bytes, sha256: hash_file(&found, cancel)? };
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
                if let Err(error) = cache.rehash_blob(content, cancel) {
                    cache.remove_blob(&content.sha256)?;
                    return Err(error);
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
