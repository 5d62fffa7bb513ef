//! safetensors: a JSON header and raw data, in one file or in shards with an index.
//!
//! Layout (<https://github.com/huggingface/safetensors>): u64 header length, the header
//! `{"name": {"dtype", "shape", "data_offsets": [start, end]}, "__metadata__": {text: text}}`, then the data that the
//! offsets count from. The ranges fill the data without gaps or overlap. `model.safetensors.index.json` holds
//! `{"weight_map": {"name": "file beside it"}}`.
//!
//! ```
//! use repartee_engine::formats::{TensorSource, TensorType, safetensors::SafeTensors, testing};
//!
//! let mut writer = testing::SafeTensorsWriter::new();
//! writer.metadata("format", "pt").tensor_f32("norm.weight", TensorType::BF16, &[3], &[1.0, 2.0, 0.5]);
//! let file = SafeTensors::from_bytes(writer.finish()).unwrap();
//! assert_eq!(file.metadata("format"), Some("pt"));
//! assert_eq!(file.tensor("norm.weight").unwrap().to_f32_vec().unwrap(), [1.0, 2.0, 0.5]);
//! ```

mod header;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path};

use serde::Deserialize;

use super::index::{Data, Entry, Index, check_name};
use super::reader::{Budget, Reader, TENSORS_LIMIT, limited};
use super::{FormatError, FormatErrorKind, Mapped, TensorSource, TensorView};

/// Bytes of a header or an index. The largest published ones have some megabytes.
const HEADER_LIMIT: u64 = 16 << 20;

/// Files of one sharded model; each is a mapping.
const SHARDS_LIMIT: u64 = 1024;

/// An open safetensors file, or all shards of one model.
#[derive(Debug)]
pub struct SafeTensors {
    files: Vec<Mapped>,
    metadata: BTreeMap<String, String>,
    index: Index,
}

impl SafeTensors {
    /// Maps the file at `path`, or for a name that ends in `.index.json` all the shards that it lists.
    ///
    /// # Errors
    /// Any [`FormatErrorKind`], with the offset and the field. A shard that is not a plain file name beside
    /// the index is refused, as is a tensor that its shard lacks.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FormatError> {
        let path = path.as_ref();
        if path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.ends_with(".index.json")) {
            return Self::open_shards(path);
        }
        Self::read(Mapped::open(path)?)
    }

    /// One file that is already in memory.
    ///
    /// # Errors
    /// As [`SafeTensors::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, FormatError> {
        Self::read(Mapped::from_bytes(bytes))
    }

    fn read(file: Mapped) -> Result<Self, FormatError> {
        let mut budget = Budget::new();
        let parsed = header::parse(&file, 0, &mut budget).and_then(|(entries, metadata)| {
            let index = Index::new(entries)?;
            Ok((index, metadata))
        });
        match parsed {
            Ok((index, metadata)) => Ok(Self { files: vec![file], metadata, index }),
            Err(error) => Err(error.in_file(file.path())),
        }
    }

    fn open_shards(path: &Path) -> Result<Self, FormatError> {
        let (weight_map, text) = read_weight_map(path).map_err(|error| error.in_file(Some(path)))?;
        let mut shards: BTreeMap<&str, usize> = BTreeMap::new();
        for shard in weight_map.values() {
            let next = shards.len();
            shards.entry(shard).or_insert(next);
        }
        limited(shards.len() as u64, SHARDS_LIMIT, 0, &"number of shards")
            .map_err(|error| error.in_file(Some(path)))?;

        let mut budget = Budget::new();
        let (mut files, mut entries, mut metadata) = (Vec::new(), Vec::new(), BTreeMap::new());
        // In order of their numbers; the map is ordered by name.
        let mut by_number: Vec<(usize, &str)> =
            shards.iter().map(|(&name, &number)| (number, name)).collect();
        by_number.sort_unstable();
        for (number, name) in by_number {
            let shard_path = path.with_file_name(name);
            let file = Mapped::open(&shard_path)?;
            let (shard_entries, shard_metadata) = header::parse(&file, number, &mut budget)
                .map_err(|error| error.in_file(Some(&shard_path)))?;
            // Only what the index says is in this shard; a tensor left over from a conversion is not offered.
            entries.extend(
                shard_entries
                    .into_iter()
                    .filter(|entry| weight_map.get(&entry.name).is_some_and(|shard| shard == name)),
            );
            metadata.extend(shard_metadata);
            files.push(file);
        }
        let index = Index::new(entries).map_err(|error| error.in_file(Some(path)))?;
        for (name, shard) in &weight_map {
            if index.find(name).is_none() {
                let kind = FormatErrorKind::Invalid(format!("is not in `{shard}`, where the index has it"));
                let at = header::place_of(&text, name);
                return Err(FormatError::at(kind, at, format_args!("tensor `{name}`")).in_file(Some(path)));
            }
        }
        Ok(Self { files, metadata, index })
    }

    /// The text that `__metadata__` has for `key`.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }

    fn path_of(&self, entry: &Entry) -> Option<&Path> {
        match entry.data {
            Data::Span { file, .. } => self.files.get(file).and_then(Mapped::path),
            Data::Owned(_) => None,
        }
    }
}

impl TensorSource for SafeTensors {
    fn names(&self) -> Vec<String> {
        self.index.names()
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError> {
        let first = self.files.first().and_then(Mapped::path);
        let entry = self.index.get(name).map_err(|error| error.in_file(first))?;
        entry
            .view(|file| self.files.get(file).map(|file| &**file))
            .map_err(|e| e.in_file(self.path_of(entry)))
    }

    fn release(&self, name: &str) {
        if let Some(Entry { data: Data::Span { file, range }, .. }) = self.index.find(name)
            && let Some(file) = self.files.get(*file)
        {
            file.release(range.clone());
        }
    }
}

#[derive(Deserialize)]
struct ShardIndex {
    weight_map: header::UniqueMap,
}

/// Which shard each tensor is in, and the text of the index, for the offsets of errors.
fn read_weight_map(path: &Path) -> Result<(BTreeMap<String, String>, Vec<u8>), FormatError> {
    let whole = |kind| FormatError::about(kind, "index");
    // Through `Mapped` for its checks only: it refuses what is not a regular file.
    let len = Mapped::open(path)?.len() as u64;
    limited(len, HEADER_LIMIT, 0, &"length of the index")?;
    let text = fs::read(path).map_err(|error| whole(error.into()))?;
    let index: ShardIndex =
        serde_json::from_slice(&text).map_err(|error| header::json_error(&error, &text, 0))?;
    let weight_map = index.weight_map.0;
    limited(weight_map.len() as u64, TENSORS_LIMIT, 0, &"number of tensors")?;
    for (name, shard) in &weight_map {
        let at = || header::place_of(&text, name);
        check_name(name.len() as u64, 0, &"tensor name")
            .map_err(|error| FormatError { offset: Some(at()), ..error })?;
        let mut parts = Path::new(shard).components();
        let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == OsStr::new(shard));
        if !plain || shard.contains(['/', '\\', ':', '\0']) {
            let shard: String = shard.chars().take(64).collect();
            let kind =
                FormatErrorKind::Invalid(format!("is in `{shard}`, which is not a file beside the index"));
            return Err(FormatError::at(kind, at(), format_args!("tensor `{name}`")));
        }
    }
    Ok((weight_map, text))
}

#[cfg(test)]
mod tests;
