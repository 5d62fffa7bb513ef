//! Stored references of other engines, and the model files that they were made from.
//!
//! A reference that was made by another script or from other weights than those at hand proves nothing,
//! so loading one checks its stamp; the panic names the command that renews it.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// A reference file of `tests/references`.
#[derive(Debug)]
pub struct Reference {
    /// The file's content.
    pub content: Value,
    name: String,
}

impl Reference {
    /// Reads `tests/references/NAME`.
    ///
    /// # Panics
    /// If it cannot be read, or a script that its stamp names has changed since.
    pub fn load(name: &str) -> Self {
        let folder = folder();
        let text = std::fs::read(folder.join(name))
            .unwrap_or_else(|error| panic!("tests/references/{name}: {error}"));
        let content: Value =
            serde_json::from_slice(&text).unwrap_or_else(|error| panic!("tests/references/{name}: {error}"));
        let reference = Self { content, name: name.to_owned() };
        let scripts = reference.content["stamp"]["scripts"].as_object();
        let scripts = scripts.unwrap_or_else(|| panic!("tests/references/{name} has no stamp"));
        for (script, hash) in scripts {
            let bytes = std::fs::read(folder.join(script)).unwrap_or_default();
            let found: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            if *hash != found {
                reference.stale(&format!("was made with another {script}"));
            }
        }
        reference
    }

    /// A file of a model in the cache, of which the reference knows the hash as `weight`.
    ///
    /// # Panics
    /// If the cache lacks the file (the text names the command that fetches it), or the reference was made
    /// from another.
    pub fn model_file(&self, weight: &str, model: &str, file: &str) -> PathBuf {
        let path = model_file(model, file);
        let catalogue = repartee_models::Catalogue::open().expect("the catalogue");
        let entry =
            catalogue.model(model).and_then(|model| model.file(file)).expect("the file is in the catalogue");
        let hash = entry.content.map(|content| content.sha256.to_string());
        if self.content["stamp"]["weights"][weight].as_str() != hash.as_deref() {
            self.stale(&format!("was made from another {weight} than {model} has"));
        }
        path
    }

    fn stale(&self, why: &str) -> ! {
        let renew = self.content["stamp"]["renew"].as_str().unwrap_or("its script");
        panic!("tests/references/{} {why}; renew it with: {renew}", self.name)
    }
}

/// A file of a model in the cache.
///
/// # Panics
/// If the cache lacks the file: the text names the command that fetches it.
pub fn model_file(model: &str, file: &str) -> PathBuf {
    repartee_models::resolve(model, file).unwrap_or_else(|error| panic!("{error}"))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("references")
}
