//! `repartee models`: what there is, what is here, and bringing it here.

use std::collections::HashSet;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use repartee_engine::formats::ctranslate2::Ct2;
use repartee_engine::formats::gguf::Gguf;
use repartee_engine::formats::onnx::Onnx;
use repartee_engine::formats::safetensors::SafeTensors;
use repartee_models::{
    CancelToken, Error, Event, FetchOptions, Fetcher, FileState, Format, HubPolicy, Model, ModelFile,
    ModelState, Store, Trust,
};

use crate::printing::{note, out};
use crate::terminal::{Visible, brief};
use crate::usage::WrongUsage;

/// What to do with the model files.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Show all models: role, size, whether they are here, licence.
    List,
    /// Bring models into the cache; without names, the default set. Goes on where an earlier fetch broke off.
    Fetch {
        /// Names as shown by `list`.
        names: Vec<String>,
        /// The default set, besides the named models.
        #[arg(long)]
        all_defaults: bool,
        /// Allow models that come only from a hub. Files whose hash is not known are trusted on first use:
        /// what arrives first is recorded and anything else is refused later.
        #[arg(long)]
        hub: bool,
    },
    /// Take files that you already have, recognised by their bytes; shares them on the same disk, copies them
    /// otherwise.
    Import {
        /// A file, or a folder that is looked through.
        path: PathBuf,
        /// Also take the files of this hub model whose hash is not known, by their names, and trust them.
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
    },
    /// Read and check every byte of models; without names, of all that are here.
    Verify {
        /// Names as shown by `list`.
        names: Vec<String>,
    },
    /// Delete the files of models, except those that another model here shares.
    Remove {
        /// Names as shown by `list`.
        #[arg(required = true)]
        names: Vec<String>,
        /// Also forget what files without a published hash were, so that others may take their places.
        #[arg(long)]
        forget: bool,
    },
}

/// Runs `repartee models COMMAND`.
///
/// # Errors
/// What the models crate reports; also if a file was found wrong or a model could not be fetched.
pub(crate) fn run(command: ModelsCommand) -> Result<()> {
    let store = Store::open()?;
    match command {
        ModelsCommand::List => list(&store),
        ModelsCommand::Fetch { mut names, all_defaults, hub } => {
            if names.is_empty() || all_defaults {
                let defaults = store
                    .catalogue()
                    .models()
                    .iter()
                    .filter(|model| model.default && !names.contains(&model.name));
                names.splice(0..0, defaults.map(|model| model.name.clone()).collect::<Vec<_>>());
            }
            fetch(&store, &names, if hub { HubPolicy::TrustOnFirstUse } else { HubPolicy::Refuse })
        }
        ModelsCommand::Import { path, model } => import(&store, &path, model.as_deref()),
        ModelsCommand::Verify { names } => verify(&store, &names),
        ModelsCommand::Remove { names, forget } => remove(&store, &names, forget),
    }
}

fn list(store: &Store) -> Result<()> {
    let models = store.catalogue().models();
    let name_width = models.iter().map(|model| model.name.len()).max().unwrap_or(0);
    out!(
        "{:name_width$}  {:7}  {:>10}  {:7}  {:12}  {:10}  FOR",
        "NAME",
        "ROLE",
        "SIZE",
        "SET",
        "STATE",
        "LICENCE"
    );
    let mut unchecked = false;
    for model in models {
        let state = match store.state(model) {
            ModelState::Present if store.is_trusted(model) => "present".into(),
            ModelState::Present => {
                unchecked = true;
                "unchecked".into()
            }
            ModelState::Absent => "absent".into(),
            ModelState::Partial { bytes } if model.is_size_known() => {
                format!("partial {:.0} %", percent(bytes, model.size_bytes()))
            }
            ModelState::Partial { .. } => "partial".into(),
        };
        let Model { name, role, licence, description, .. } = model;
        let description = super::report::plain(description);
        let (size, set) = (size_of(model), set_of(model));
        out!("{name:name_width$}  {role:7}  {size:>10}  {set:7}  {state:12}  {licence:10}  {description}");
    }
    out!("\nThe cache is {}.", store.cache().root().display());
    if unchecked {
        out!(
            "unchecked: a file of the right size that has changed since its bytes were checked, or never was; they are \
             checked at the next use, or now by `repartee models verify NAME`."
        );
    }
    out!(
        "`repartee models fetch` brings the default set; `repartee models fetch NAME --hub` brings a hub model."
    );
    Ok(())
}

fn set_of(model: &Model) -> &'static str {
    match model {
        Model { default: true, .. } => "default",
        Model { hub: true, .. } => "hub",
        Model { tests_only: true, .. } => "tests",
        _ => "",
    }
}

/// A model's size, for people.
pub(crate) fn size_of(model: &Model) -> String {
    match (model.size_bytes(), model.is_size_known()) {
        (bytes, true) => megabytes(bytes),
        (0, false) => "?".into(),
        (bytes, false) => format!("> {}", megabytes(bytes)),
    }
}

fn fetch(store: &Store, names: &[String], hub: HubPolicy) -> Result<()> {
    // A wrong name is said before anything is fetched.
    names.iter().try_for_each(|name| store.catalogue().model(name).map(|_| ()))?;
    let mut report = Report::new();
    let mut failed = Vec::new();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    fetch_each(store, &names, hub, &CancelToken::new(), &mut |told| match told {
        Told::Event(event) => report.event(event),
        Told::Complete { model, folder } => {
            report.line(&format!("{model}: complete in {}", folder.display()));
        }
        Told::Failed { model, error } => {
            report.line(&format!("error: {}", brief(&error.to_string())));
            failed.push(model.to_owned());
        }
    });
    if !failed.is_empty() {
        bail!("could not fetch {}", failed.join(", "));
    }
    Ok(())
}

/// What is told while models are fetched.
pub(crate) enum Told<'a> {
    /// Something about a file.
    Event(&'a Event<'a>),
    /// A model is here.
    Complete {
        /// Its name.
        model: &'a str,
        /// Where its files are.
        folder: &'a Path,
    },
    /// A model is not here.
    Failed {
        /// Its name.
        model: &'a str,
        /// Why.
        error: &'a Error,
    },
}

/// Fetches models, one after the other; one that fails does not keep the others from coming, unless they would fail alike.
pub(crate) fn fetch_each(
    store: &Store,
    names: &[&str],
    hub: HubPolicy,
    cancel: &CancelToken,
    tell: &mut dyn FnMut(Told<'_>),
) {
    let fetcher = Fetcher::new(store, FetchOptions { hub, ..FetchOptions::default() });
    for model in names {
        match fetcher.fetch(model, cancel, &mut |event| tell(Told::Event(&event))) {
            Ok(folder) => tell(Told::Complete { model, folder: &folder }),
            Err(error) => {
                tell(Told::Failed { model, error: &error });
                // What is wrong with this disk or was asked to stop is so for the next model too.
                if matches!(
                    error,
                    Error::DiskFull { .. } | Error::ReadOnly { .. } | Error::Interrupted { .. }
                ) {
                    break;
                }
            }
        }
    }
}

fn import(store: &Store, path: &Path, model: Option<&str>) -> Result<()> {
    if let Some(name) = model
        && !store.catalogue().model(name)?.hub
    {
        return Err(WrongUsage::error(format!(
            "the files of {name} are known by their bytes: leave --model out, it is for hub models"
        )));
    }
    let trust = model.map(|model| Trust { model, fits: &fits });
    let report = store
        .import(path, trust, &CancelToken::new())
        .with_context(|| format!("importing {}", path.display()))?;
    for error in &report.refused {
        note!("error: {}", brief(&error.to_string()));
    }
    for found in &report.imported {
        out!("{} is {} of {}", found.path.display(), found.file, found.model);
    }
    if !report.refused.is_empty() {
        bail!(
            "{} file(s) were not taken; if an earlier one was wrong, `repartee models remove {} --forget` makes room",
            report.refused.len(),
            model.unwrap_or_default()
        );
    }
    if report.imported.is_empty() {
        bail!("none of the {} file(s) at {} belongs to a known model", report.unknown, path.display());
    }
    out!("{} file(s) imported, {} not known", report.imported.len(), report.unknown);
    Ok(())
}

/// Whether a file can be what it is named: weights whose table points past the end were cut off.
fn fits(model: &Model, file: &ModelFile, path: &Path) -> Result<(), String> {
    let opened = match (model.format, file.name.rsplit('.').next()) {
        (Format::Gguf, _) => Gguf::open(path).map(drop),
        (Format::Safetensors, Some("safetensors")) => SafeTensors::open(path).map(drop),
        (Format::Onnx, Some("onnx")) => Onnx::open(path).map(drop),
        (Format::Ctranslate2, Some("bin")) => Ct2::open(path).map(drop),
        _ => Ok(()),
    };
    opened.map_err(|error| error.to_string())?;
    if file.name.ends_with(".json") {
        // Not as a whole: it may be of any size.
        let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
        serde_json::from_reader::<_, serde::de::IgnoredAny>(std::io::BufReader::new(file))
            .map_err(|error| format!("no JSON: {error}"))?;
    }
    Ok(())
}

fn verify(store: &Store, names: &[String]) -> Result<()> {
    let here = |model: &&Model| store.state(model) != ModelState::Absent;
    let names: Vec<&str> = match names {
        [] => store.catalogue().models().iter().filter(here).map(|model| model.name.as_str()).collect(),
        names => names.iter().map(String::as_str).collect(),
    };
    let mut wrong = 0;
    let checks = store.verify(&names, &CancelToken::new(), &mut |check| {
        let state = match &check.state {
            FileState::Right => "right".into(),
            FileState::Absent => "not in the cache".into(),
            FileState::Wrong(error) => format!("WRONG: {error}"),
        };
        out!("{}/{}: {state}", check.model, check.file);
        wrong += usize::from(matches!(check.state, FileState::Wrong(_)));
    })?;
    let right = checks.iter().filter(|check| matches!(check.state, FileState::Right)).count();
    out!("{right} of {} file(s) right", checks.len());
    if wrong > 0 {
        bail!("{wrong} file(s) are wrong: `repartee models fetch NAME` replaces them");
    }
    Ok(())
}

fn remove(store: &Store, names: &[String], forget: bool) -> Result<()> {
    names.iter().try_for_each(|name| store.catalogue().model(name).map(|_| ()))?;
    for name in names {
        out!("{name}: {} freed", megabytes(store.remove(name)?));
        if forget {
            store.forget(name)?;
        }
    }
    Ok(())
}

/// Shows a fetch: one line that changes on a terminal, plain lines elsewhere.
struct Report {
    is_terminal: bool,
    /// Whether the changing line is shown.
    is_line_open: bool,
    last_plain: Instant,
    /// Hosts and registries already said to be unreachable.
    unreachable: HashSet<String>,
}

/// A log gets a line of progress no more often than this.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// From this size on a fetched file gets a line that stays.
const LARGE_BYTES: u64 = 1_000_000;

impl Report {
    fn new() -> Self {
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            is_line_open: false,
            last_plain: Instant::now(),
            unreachable: HashSet::new(),
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Waiting { file, .. } => {
                self.line(&format!("{file}: waiting for another process that fetches it"))
            }
            Event::Package { file, package, .. } => {
                self.status(&format!("{file}: the package {package} is being downloaded"))
            }
            Event::Progress { file, done_bytes, total_bytes, rate_bytes_per_sec, .. } => {
                let total = total_bytes.map_or_else(String::new, |total| {
                    format!(" of {} ({:.0} %)", megabytes(total), percent(*done_bytes, total))
                });
                let text = format!(
                    "{file}: {}{total}, {}/s",
                    megabytes(*done_bytes),
                    megabytes(*rate_bytes_per_sec as u64)
                );
                if self.is_terminal {
                    self.status(&text);
                } else if self.last_plain.elapsed() >= PLAIN_INTERVAL {
                    self.line(&text);
                }
            }
            Event::SourceFailed { file, source, error, .. } => {
                let is_news = match error {
                    Error::Unreachable { host, .. } => self.unreachable.insert(host.clone()),
                    _ => true,
                };
                if is_news {
                    self.line(&format!("{file}: {source} failed: {}", brief(&error.to_string())));
                }
            }
            Event::Fetched { file, size_bytes, .. } => {
                let text = format!("{file}: fetched, {}", megabytes(*size_bytes));
                // Fifty voices of half a megabyte need no line each.
                if *size_bytes >= LARGE_BYTES {
                    self.line(&text);
                } else if self.is_terminal {
                    self.status(&text);
                }
            }
            _ => {}
        }
    }

    /// Shows what is going on: on a terminal in place of what was shown before.
    fn status(&mut self, text: &str) {
        if self.is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[2K{}", Visible(text));
            self.is_line_open = true;
        } else {
            self.line(text);
        }
    }

    /// Shows a line that stays.
    fn line(&mut self, text: &str) {
        if std::mem::take(&mut self.is_line_open) {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
        note!("{text}");
        self.last_plain = Instant::now();
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// A number of bytes, for people.
pub(crate) fn megabytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}
