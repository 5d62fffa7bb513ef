//! The catalogue: `assets/models.toml`, parsed and checked.
//!
//! The catalogue is part of the program, but a user may give another one (`REPARTEE_CATALOGUE`, a path); it
//! is read as hostile input: names become parts of paths and arguments of commands, so only harmless
//! characters pass.

use std::collections::HashSet;
use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::Deserialize;

use crate::{Error, Result, Sha256Digest};

/// Environment variable with the path of a catalogue that replaces the embedded one.
pub const CATALOGUE_ENV: &str = "REPARTEE_CATALOGUE";

const EMBEDDED: &str = include_str!("../../assets/models.toml");
/// The version of the catalogue's own layout.
const SCHEMA: u32 = 1;
/// No file of a model is larger: a bound for what a download may write.
const MAX_FILE_BYTES: u64 = 64 << 30;

/// All models that the program knows.
#[derive(Clone, Debug)]
pub struct Catalogue {
    models: Vec<Model>,
}

/// One model: files that are loaded together.
#[derive(Clone, Debug)]
pub struct Model {
    /// Short unique name, as in `repartee models fetch NAME`.
    pub name: String,
    /// What the model does.
    pub role: Role,
    /// The loader that reads it, e.g. `whisper` or `llama`.
    pub family: String,
    /// The format of its weight files.
    pub format: Format,
    /// Whether it belongs to the set that is fetched without naming it.
    pub default: bool,
    /// Whether it comes only from a hub, on explicit request.
    pub hub: bool,
    /// Whether only tests use it.
    pub tests_only: bool,
    /// Licence of the weights (SPDX where there is an identifier).
    pub licence: String,
    /// Page that describes the model.
    pub home: Option<String>,
    /// One sentence for people.
    pub description: String,
    /// The files; the first one holds the weights.
    pub files: Vec<ModelFile>,
}

/// What a model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Voice activity detection.
    Vad,
    /// Speech to text.
    Stt,
    /// Language model: text to reply.
    Llm,
    /// Text to speech, its voices included.
    Tts,
    /// Pronunciation lexicon.
    Lexicon,
    /// Recorded speech.
    Speech,
}

/// The format of a model's weight files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// GGUF, with tokenizer and chat template inside.
    Gguf,
    /// Safetensors, with JSON files beside it.
    Safetensors,
    /// ONNX.
    Onnx,
    /// CTranslate2 `model.bin` with its JSON and vocabulary files.
    Ctranslate2,
    /// Raw little-endian f32 style rows.
    Voice,
    /// JSON.
    Json,
    /// WAV.
    Wav,
}

/// One file of a model.
#[derive(Clone, Debug)]
pub struct ModelFile {
    /// Name within the model's folder; may have `/` between parts.
    pub name: String,
    /// What its bytes must be; `None` only for hub files, which are trusted on first use.
    pub content: Option<Content>,
    /// Where to get it, in the order to try.
    pub sources: Vec<Source>,
}

/// What the bytes of a file must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Content {
    /// Length in bytes.
    pub size_bytes: u64,
    /// Hash of the bytes.
    pub sha256: Sha256Digest,
}

/// A place to get a file from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A public address of the same bytes.
    Url(String),
    /// Members of packages of a registry, joined in order.
    Packages(Vec<Part>),
}

/// A file inside a package, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The package.
    pub package: Package,
    /// Path of the file inside it; `*` stands for any characters within one part of the path.
    pub member: String,
}

/// A package of a registry at one version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Package {
    /// The registry.
    pub registry: Registry,
    /// Name in the registry.
    pub name: String,
    /// Exact version.
    pub version: String,
}

/// A kind of package registry, reached with the user's own client only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registry {
    /// Python wheels, by `pip download`.
    Pypi,
    /// JavaScript packages, by `npm pack`.
    Npm,
}

/// No catalogue is larger: ten thousand files take less.
const MAX_BYTES: u64 = 4 << 20;

/// The text of a catalogue. A device or a pipe is none: it may have no end.
fn text_of(path: &Path) -> std::io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is no file"));
    }
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(std::io::Error::other(format!("it has more than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(text)
}

impl Catalogue {
    /// The catalogue of this program, or the one that [`CATALOGUE_ENV`] names.
    ///
    /// # Errors
    /// [`Error::Catalogue`] if the named file cannot be read or is wrong.
    pub fn open() -> Result<Self> {
        match std::env::var_os(CATALOGUE_ENV) {
            Some(path) if !path.is_empty() => {
                let path = Path::new(&path);
                Self::read(path, &format!("{} (named by {CATALOGUE_ENV})", path.display()))
            }
            _ => Self::parse(EMBEDDED, "of the program"),
        }
    }

    /// The catalogue of this program.
    ///
    /// # Errors
    /// None in a program whose tests pass; [`Error::Catalogue`] otherwise.
    pub fn embedded() -> Result<Self> {
        Self::parse(EMBEDDED, "of the program")
    }

    /// The catalogue in the file `path`.
    ///
    /// # Errors
    /// [`Error::Catalogue`] if it cannot be read or is wrong.
    pub fn load(path: &Path) -> Result<Self> {
        Self::read(path, &path.display().to_string())
    }

    fn read(path: &Path, origin: &str) -> Result<Self> {
        let fail = |reason: String| Error::Catalogue { origin: origin.into(), reason };
        let text = text_of(path).map_err(|e| match e.kind() {
            ErrorKind::InvalidData => fail("it is no text in UTF-8".into()),
            _ => fail(e.to_string()),
        })?;
        Self::parse(&text, origin)
    }

    /// The catalogue in `text`; `origin` says in errors where it comes from.
    ///
    /// # Errors
    /// [`Error::Catalogue`] with the model and file that are wrong.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let fail = |reason: String| Error::Catalogue { origin: origin.into(), reason };
        if text.trim().is_empty() {
            return Err(fail("it is empty".into()));
        }
        // The types of this program tell a writer of catalogues nothing.
        let plain = |e: toml::de::Error| {
            let said = e.to_string().trim_end().replace("expected u64", "expected a number of bytes");
            said.replace("expected u32", "expected a whole number")
        };
        let raw: RawCatalogue = toml::from_str(text).map_err(|e| fail(plain(e)))?;
        if raw.schema != SCHEMA {
            return Err(fail(format!("schema {} is not the one this program knows ({SCHEMA})", raw.schema)));
        }
        if raw.models.is_empty() {
            return Err(fail("it lists no model (`[[model]]`)".into()));
        }
        let models =
            raw.models.into_iter().map(RawModel::check).collect::<Result<Vec<_>, _>>().map_err(fail)?;
        let mut names = HashSet::new();
        if let Some(twice) = models.iter().find(|model| !names.insert(&model.name)) {
            return Err(fail(format!("model `{}` is listed twice", twice.name)));
        }
        Ok(Self { models })
    }

    /// All models, in the order of the catalogue.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// The model called `name`.
    ///
    /// # Errors
    /// [`Error::UnknownModel`].
    pub fn model(&self, name: &str) -> Result<&Model> {
        self.models.iter().find(|model| model.name == name).ok_or_else(|| Error::UnknownModel {
            name: name.into(),
            known: self.models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }
}

impl Model {
    /// The file called `name`.
    ///
    /// # Errors
    /// [`Error::UnknownFile`].
    pub fn file(&self, name: &str) -> Result<&ModelFile> {
        self.files.iter().find(|file| file.name == name).ok_or_else(|| Error::UnknownFile {
            model: self.name.clone(),
            file: name.into(),
            known: self.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    /// Sum of the files' sizes in bytes, those without a known size left out.
    pub fn size_bytes(&self) -> u64 {
        self.files.iter().filter_map(|file| file.content).map(|content| content.size_bytes).sum()
    }

    /// Whether the size of every file is known.
    pub fn is_size_known(&self) -> bool {
        self.files.iter().all(|file| file.content.is_some())
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Vad => "vad",
            Self::Stt => "stt",
            Self::Llm => "llm",
            Self::Tts => "tts",
            Self::Lexicon => "lexicon",
            Self::Speech => "speech",
        })
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pypi => "PyPI",
            Self::Npm => "npm",
        })
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.name, self.version, self.registry)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::Packages(parts) => {
                f.write_str(if parts.len() == 1 { "package " } else { "packages " })?;
                parts.iter().enumerate().try_for_each(|(i, part)| {
                    write!(f, "{}{}", if i == 0 { "" } else { " + " }, part.package)
                })
            }
        }
    }
}

// The layout of the file, before its checks.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCatalogue {
    schema: u32,
    #[serde(rename = "model", default)]
    models: Vec<RawModel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModel {
    name: String,
    role: Role,
    family: String,
    format: Format,
    #[serde(default)]
    default: bool,
    #[serde(default)]
    hub: bool,
    #[serde(default)]
    tests_only: bool,
    licence: String,
    home: Option<String>,
    description: String,
    #[serde(default)]
    sources: Vec<RawSource>,
    #[serde(alias = "file")]
    files: Vec<RawFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    name: String,
    size: Option<u64>,
    sha256: Option<String>,
    sources: Option<Vec<RawSource>>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct RawSource {
    url: Option<String>,
    registry: Option<Registry>,
    name: Option<String>,
    version: Option<String>,
    member: Option<String>,
    parts: Option<Vec<RawPart>>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct RawPart {
    name: String,
    version: String,
    member: String,
}

impl RawModel {
    fn check(self) -> Result<Model, String> {
        let Self {
            name,
            role,
            family,
            format,
            default,
            hub,
            tests_only,
            licence,
            home,
            description,
            sources,
            files,
        } = self;
        let fail = |reason: String| format!("model `{name}`: {reason}");
        if !is_path_part(&name) {
            return Err(fail(format!("the name may have {NAME_RULE}")));
        }
        if files.is_empty() {
            return Err(fail("it has no files".into()));
        }
        if default && (hub || tests_only) {
            return Err(fail("a default model must be neither `hub` nor `tests_only`".into()));
        }
        if licence.trim().is_empty() || family.trim().is_empty() {
            return Err(fail("licence and family must not be empty".into()));
        }
        let files = files
            .into_iter()
            .map(|file| file.check(&sources, hub))
            .collect::<Result<Vec<_>, _>>()
            .map_err(fail)?;
        let mut names = HashSet::new();
        // Compared without case: the views of two such files would be one file on some systems.
        if let Some(twice) = files.iter().find(|file| !names.insert(file.name.to_ascii_lowercase())) {
            return Err(fail(format!("file `{}` is listed twice", twice.name)));
        }
        Ok(Model { name, role, family, format, default, hub, tests_only, licence, home, description, files })
    }
}

impl RawFile {
    fn check(self, inherited: &[RawSource], hub: bool) -> Result<ModelFile, String> {
        let Self { name, size, sha256, sources } = self;
        let fail = |reason: String| format!("file `{name}`: {reason}");
        if !name.split('/').all(is_path_part) {
            return Err(fail(format!("each part of the name may have {NAME_RULE}")));
        }
        let content = match (size, sha256) {
            (Some(size), Some(sha256)) if (1..=MAX_FILE_BYTES).contains(&size) => {
                Some(Content { size_bytes: size, sha256: sha256.parse().map_err(fail)? })
            }
            (Some(size), Some(_)) => {
                return Err(fail(format!("a size of {size} bytes is outside 1 ..= {MAX_FILE_BYTES}")));
            }
            (None, None) if hub => None,
            _ => {
                return Err(fail(
                    "size and sha256 are needed (only files of hub models may lack both)".into(),
                ));
            }
        };
        let sources = sources.as_deref().unwrap_or(inherited);
        if sources.is_empty() {
            return Err(fail("it has no sources".into()));
        }
        let sources =
            sources.iter().map(|source| source.check(&name)).collect::<Result<Vec<_>, _>>().map_err(fail)?;
        if content.is_none() && sources.iter().any(|source| matches!(source, Source::Packages(_))) {
            return Err(fail("a file from a package needs size and sha256".into()));
        }
        Ok(ModelFile { name, content, sources })
    }
}

impl RawSource {
    fn check(&self, file: &str) -> Result<Source, String> {
        let Self { url, registry, name, version, member, parts } = self.clone();
        match (url, registry, (name, version, member), parts) {
            (Some(url), None, (None, None, None), None) => check_url(url.replace("{file}", file)),
            (None, Some(registry), (Some(name), Some(version), Some(member)), None) => {
                Ok(Source::Packages(vec![RawPart { name, version, member }.check(registry, file)?]))
            }
            (None, Some(registry), (None, None, None), Some(parts)) if !parts.is_empty() => {
                let parts = parts.into_iter().map(|part| part.check(registry, file));
                Ok(Source::Packages(parts.collect::<Result<_, _>>()?))
            }
            _ => Err("a source has either `url`, or `registry` with `name`, `version` and `member`, \
                      or `registry` with `parts`"
                .into()),
        }
    }
}

/// Only HTTPS, except for a server on this machine itself.
fn check_url(url: String) -> Result<Source, String> {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://127.0.0.1:"));
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    match host {
        Some(rest) if is_plain && !rest.is_empty() && !rest.starts_with('/') => Ok(Source::Url(url)),
        _ => Err(format!("`{url}` is not an https address")),
    }
}

impl RawPart {
    fn check(self, registry: Registry, file: &str) -> Result<Part, String> {
        let bare = match (registry, self.name.strip_prefix('@')) {
            (Registry::Npm, Some(scoped)) => scoped,
            _ => &self.name,
        };
        let scopes = usize::from(bare.len() != self.name.len());
        if bare.split('/').count() != scopes + 1 || !bare.split('/').all(is_path_part) {
            return Err(format!("`{}` is not a package name", self.name));
        }
        let is_version = |version: &str| {
            version.starts_with(|c: char| c.is_ascii_alphanumeric())
                && version.bytes().all(|byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+' | b'!' | b'_')
                })
        };
        if !is_version(&self.version) {
            return Err(format!("`{}` is not an exact version", self.version));
        }
        let member = self.member.replace("{file}", file);
        if member.split('/').any(|part| matches!(part, "" | "." | "..")) || member.contains('\\') {
            return Err(format!("`{member}` is not a path inside a package"));
        }
        Ok(Part { package: Package { registry, name: self.name, version: self.version }, member })
    }
}

/// What [`is_path_part`] wants, in words.
const NAME_RULE: &str = "letters, digits, `.`, `_`, `-` and must not start with `.` or `-`";

/// Whether `part` is harmless as a part of a path on every system and as an argument of a command.
pub(crate) fn is_path_part(part: &str) -> bool {
    !part.is_empty()
        && part.len() <= 128
        && !part.starts_with(['.', '-'])
        && !part.ends_with('.')
        && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}
