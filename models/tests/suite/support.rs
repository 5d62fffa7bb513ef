//! A store in a temporary folder, with a catalogue made for the test.

use std::path::PathBuf;

use repartee_models::{
    Cache, CancelToken, Catalogue, Error, Event, FetchOptions, Fetcher, Result, Sha256Digest, Store,
};
use tempfile::TempDir;

/// Bytes that don't repeat, the same each time.
pub(crate) fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// One file of the test's model: name, bytes, and its sources as TOML.
pub(crate) struct TestFile<'a> {
    pub(crate) name: &'a str,
    pub(crate) bytes: &'a [u8],
    pub(crate) sources: String,
}

/// `{ url = ".." }`, for the sources of a file.
pub(crate) fn url_source(url: &str) -> String {
    format!("{{ url = \"{url}\" }}")
}

/// A catalogue with one model, called `m`.
pub(crate) fn catalogue(files: &[TestFile<'_>]) -> Catalogue {
    Catalogue::parse(&format!("schema = 1\n{}", model("m", files)), "test")
        .expect("the test's catalogue is right")
}

/// One model as TOML.
pub(crate) fn model(name: &str, files: &[TestFile<'_>]) -> String {
    let mut text = format!(
        "[[model]]\nname = \"{name}\"\nrole = \"llm\"\nfamily = \"llama\"\nformat = \"gguf\"\nlicence = \"MIT\"\ndescription = \"d\"\n"
    );
    for TestFile { name, bytes, sources } in files {
        let (size, sha256) = (bytes.len(), Sha256Digest::of(bytes));
        text += &format!(
            "[[model.file]]\nname = \"{name}\"\nsize = {size}\nsha256 = \"{sha256}\"\nsources = [{sources}]\n"
        );
    }
    text
}

/// A store in its own folder.
pub(crate) struct TestStore {
    pub(crate) store: Store,
    pub(crate) folder: TempDir,
}

impl TestStore {
    pub(crate) fn new(catalogue: Catalogue) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        Self { store: Store::new(catalogue, Cache::at(folder.path().join("cache"))), folder }
    }

    /// A store of one model `m` with one file `f.bin`.
    pub(crate) fn of_one(bytes: &[u8], sources: String) -> Self {
        Self::new(catalogue(&[TestFile { name: "f.bin", bytes, sources }]))
    }

    pub(crate) fn fetch(&self) -> Result<PathBuf> {
        self.fetch_with(FetchOptions::default(), &CancelToken::new(), &mut |_| ())
    }

    pub(crate) fn fetch_with(
        &self,
        options: FetchOptions,
        cancel: &CancelToken,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<PathBuf> {
        Fetcher::new(&self.store, options).fetch("m", cancel, on_event)
    }

    /// The partial file of `bytes`.
    pub(crate) fn part(&self, bytes: &[u8]) -> PathBuf {
        self.store.cache().root().join("partial").join(format!("{}.part", Sha256Digest::of(bytes)))
    }

    /// Lays down what an earlier, interrupted fetch of `bytes` would have left.
    pub(crate) fn leave_part(&self, bytes: &[u8], content: &[u8]) {
        let part = self.part(bytes);
        std::fs::create_dir_all(part.parent().unwrap()).unwrap();
        std::fs::write(part, content).unwrap();
    }

    /// Asserts that `f.bin` is there and right.
    pub(crate) fn assert_holds(&self, bytes: &[u8]) {
        let path = self.store.resolve("m", "f.bin").expect("the file is in the cache");
        assert!(std::fs::read(path).unwrap() == bytes, "the file has the right bytes");
    }

    /// Asserts that nothing stands where a loader would find it.
    pub(crate) fn assert_empty(&self) {
        let blobs = self.store.cache().root().join("blobs/sha256");
        let count = std::fs::read_dir(blobs).map_or(0, Iterator::count);
        assert_eq!(count, 0, "no blob");
        assert!(matches!(self.store.resolve("m", "f.bin"), Err(Error::NotInCache { .. })));
    }
}

/// The error of the only or last source that was tried.
pub(crate) fn last_attempt(result: Result<PathBuf>) -> Error {
    match result {
        Err(Error::SourcesExhausted { mut attempts, .. }) => {
            attempts.pop().expect("a source was tried").error
        }
        other => panic!("expected that every source fails, got {other:?}"),
    }
}
