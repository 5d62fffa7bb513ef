//! A conversation in the window: shows it, does what the view asks for, and has kept what is said.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result};
use eframe::egui::{Context, ThemePreference, Ui, ViewportCommand};
use repartee_engine::latency::{Metric, Reading, Report};
use repartee_engine::turn::machine::Activity;
use repartee_engine::turn::message::Exchange;

use super::choices::Choices;
use super::earlier::Open;
use super::view::{Request, View};
use crate::commands::converse::report_of;
use crate::live::{Command, Live, Snapshot};
use crate::output::{self, Output};
use crate::saved::{Clerk, Conversation, Home, Look, News, Saved};

/// A change is shown this soon: 30 frames a second are smooth enough for words and meters.
const SOON: Duration = Duration::from_millis(33);
/// A figure that runs on.
const TICK: Duration = Duration::from_millis(100);
/// While nobody can see it.
const HIDDEN: Duration = Duration::from_secs(1);

/// Wakes the window from the conversation's threads.
#[derive(Default)]
struct Waker {
    context: OnceLock<Context>,
    is_hidden: AtomicBool,
}

impl Waker {
    fn wake(&self) {
        if let Some(context) = self.context.get() {
            let delay = if self.is_hidden.load(Ordering::Relaxed) { HIDDEN } else { SOON };
            context.request_repaint_after(delay);
        }
    }
}

pub(super) struct Talk {
    live: Live,
    view: View,
    waker: Arc<Waker>,
    clerk: Clerk,
    /// As last handed to the clerk.
    saved: Saved,
    /// The last turn that the clerk has.
    stored: u64,
    /// The user's words that the clerk has without a reply.
    begun: Arc<str>,
    /// Revision of the snapshot that was looked at for what is to be stored.
    seen: u64,
    choices: Option<Receiver<Choices>>,
    /// The user wants to fetch what is missing.
    pub(super) wants_models: bool,
}

/// Shows the window as the user likes it.
pub(super) fn set_look(context: &Context, look: Look) {
    context.set_theme(match look {
        Look::System => ThemePreference::System,
        Look::Light => ThemePreference::Light,
        Look::Dark => ThemePreference::Dark,
    });
}

impl Talk {
    /// Begins to listen, where the last conversation was left. `said` is to be told to the user.
    pub(super) fn new(context: &Context, home: Home, saved: Saved, said: Option<String>) -> Result<Self> {
        let mut view = View::default();
        said.into_iter().for_each(|said| view.notices.say(said));
        let (conversation, past) = match Conversation::last(&home) {
            Ok(last) => last,
            Err(error) => {
                view.notices.say(format!("The last conversation is not shown: {error:#}"));
                (Conversation::new(&home), Vec::new())
            }
        };
        let waker = Arc::new(Waker::default());
        let _ = waker.context.set(context.clone());
        let woken = waker.clone();
        let live = Live::start(saved.settings.clone(), &past, Box::new(move || woken.wake()))?;
        let stamp = jiff::ZonedDateTime::now().strftime("%Y-%m-%d").to_string();
        let folder = directories::UserDirs::new();
        let documents = folder.as_ref().and_then(|user| user.document_dir()).map(Path::to_path_buf);
        let folder = documents.or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        view.report_path = folder.join(format!("repartee-latency-{stamp}.html")).display().to_string();
        (view.shows_latency, view.latency_at) = (saved.shows_latency, saved.latency_at);
        let written = context.clone();
        let clerk = Clerk::start(home, conversation, move || written.request_repaint())?;
        let (choices, wants_models) = (None, false);
        let mut talk = Self {
            live,
            view,
            waker,
            clerk,
            saved,
            stored: 0,
            begun: "".into(),
            seen: 0,
            choices,
            wants_models,
        };
        talk.look_for_choices(context);
        Ok(talk)
    }

    /// Asks disk and devices for what there is to choose from, on a thread of its own.
    fn look_for_choices(&mut self, context: &Context) {
        let (sender, receiver) = channel();
        let context = context.clone();
        // The drivers are asked only when somebody wants to choose.
        let asks_gpu = self.view.shows_settings;
        let look = move || {
            let _ = sender.send(Choices::look_up(asks_gpu));
            context.request_repaint();
        };
        match std::thread::Builder::new().name("choices".into()).spawn(look) {
            Ok(_) => self.choices = Some(receiver),
            Err(error) => tracing::warn!(%error, "no thread to look for models and devices"),
        }
    }

    fn perform(&mut self, request: Request, snapshot: &Snapshot, context: &Context) {
        match request {
            Request::Tell(command) => {
                if command == Command::Clear {
                    self.end_conversation(snapshot);
                    self.clerk.begin_anew();
                    self.begun = "".into();
                }
                self.live.send(command);
            }
            Request::SaveReport { from, path } => {
                let snapshot = snapshot.clone();
                self.clerk.errand(move || {
                    News::Report(match save_report(&snapshot, from, &path) {
                        Ok(turns) => {
                            let path = std::path::absolute(&path).unwrap_or(path);
                            format!("Saved: {turns} turns in {}", path.display())
                        }
                        Err(error) => format!("{error:#}"),
                    })
                });
            }
            Request::ListEarlier => self.clerk.list(),
            Request::ReadEarlier(earlier) => self.clerk.read(earlier),
            Request::GoOn(earlier) => {
                self.end_conversation(snapshot);
                self.clerk.go_on(earlier);
                self.begun = "".into();
            }
            Request::DeleteEarlier(earlier) => self.clerk.delete(earlier),
            Request::Fetch => self.wants_models = true,
            Request::Quit => context.send_viewport_cmd(ViewportCommand::Close),
        }
    }

    /// What was heard of a reply under way still belongs to the conversation that ends.
    fn end_conversation(&mut self, snapshot: &Snapshot) {
        if matches!(snapshot.conversation.activity, Activity::Thinking | Activity::Speaking) {
            self.finish();
        }
    }

    /// Stops the reply, and hands over what was heard of it.
    pub(super) fn finish(&mut self) {
        let snapshot = self.live.finish();
        self.keep_entries(&snapshot);
    }

    /// Hands over what was said since the last look. Entries of earlier sessions have no turn.
    fn keep_entries(&mut self, snapshot: &Snapshot) {
        let entries = &snapshot.conversation.entries;
        let fresh = entries.iter().rev().take_while(|entry| entry.turn.0 > self.stored).count();
        for entry in &entries[entries.len() - fresh..] {
            let heard = &entry.reply.text[..entry.reply.text.floor_char_boundary(entry.reply.heard_bytes)];
            let (user, interrupted) = (entry.user.clone(), entry.is_interrupted);
            self.clerk.keep(Exchange { user, heard: heard.into(), interrupted });
            self.stored = entry.turn.0;
            self.begun = "".into();
        }
        // Merging is over with the first sound: these are the turn's words.
        let Snapshot { conversation, .. } = snapshot;
        let is_spoken = conversation.activity == Activity::Speaking && !conversation.user.is_empty();
        if is_spoken && self.begun != conversation.user {
            self.begun = conversation.user.clone();
            self.clerk.begin(self.begun.clone());
        }
    }

    /// Hands over settings and look when they have changed.
    fn keep_settings(&mut self, snapshot: &Snapshot, context: &Context) {
        let look = match context.options(|options| options.theme_preference) {
            ThemePreference::System => Look::System,
            ThemePreference::Light => Look::Light,
            ThemePreference::Dark => Look::Dark,
        };
        let (shows_latency, latency_at) = (self.view.shows_latency, self.view.latency_at);
        let saved = &mut self.saved;
        let window = (look, shows_latency, latency_at);
        // A place under way is kept when it is let go.
        if (&snapshot.setup.settings, window)
            != (&saved.settings, (saved.look, saved.shows_latency, saved.latency_at))
            && !context.egui_is_using_pointer()
        {
            *saved = Saved { settings: snapshot.setup.settings.clone(), look, shows_latency, latency_at };
            self.clerk.keep_settings(saved.clone());
        }
    }

    fn take_news(&mut self) {
        let (view, live) = (&mut self.view, &self.live);
        for news in self.clerk.news() {
            match news {
                News::Failed(words) => view.notices.say(words),
                News::NotKept(what, words) => view.notices.not_kept(what, words),
                News::KeptAgain(what) => view.notices.take_back(what),
                News::Report(words) => view.report_said = words,
                News::Earlier(list) => view.earlier.list = Some(list),
                News::Read(which, exchanges) => view.earlier.open = Some(Open { which, exchanges }),
                News::GoesOn(past) => {
                    live.send(Command::GoOn(past));
                    self.clerk.list();
                }
            }
        }
    }

    /// Runs before each frame, and while the window is hidden and there are none.
    pub(super) fn logic(&mut self, context: &Context) {
        let is_hidden = context.input(|input| {
            input.viewport().minimized.unwrap_or(false) || input.viewport().occluded.unwrap_or(false)
        });
        self.waker.is_hidden.store(is_hidden, Ordering::Relaxed);
        let snapshot = self.live.snapshot();
        if std::mem::replace(&mut self.seen, snapshot.revision) != snapshot.revision {
            self.keep_entries(&snapshot);
        }
        self.take_news();
    }

    pub(super) fn ui(&mut self, ui: &mut Ui) {
        let context = ui.ctx().clone();
        if let Some(choices) = self.choices.as_ref().and_then(|choices| choices.try_recv().ok()) {
            self.view.choices = choices;
            self.choices = None;
        }
        let snapshot = self.live.snapshot();
        let had_settings = self.view.shows_settings;
        for request in self.view.show(ui, &snapshot) {
            self.perform(request, &snapshot, &context);
        }
        if self.view.shows_settings && !had_settings {
            self.look_for_choices(&context);
        }
        self.keep_settings(&snapshot, &context);
        let runs_on =
            Metric::ALL.iter().any(|m| matches!(snapshot.conversation.reading(*m), Reading::Live { .. }));
        if runs_on && self.view.shows_latency {
            context.request_repaint_after(TICK);
        }
    }
}

/// Writes the turns from `from` on; the end of the name says the layout. Returns how many.
fn save_report(snapshot: &Snapshot, from: usize, path: &Path) -> Result<usize> {
    output::check(&[], &[Output { option: "report", path }])?;
    let all = report_of(snapshot);
    let turns: Vec<_> = all.turns.into_iter().skip(from).collect();
    let count = turns.len();
    let report = Report::new(all.machine, all.config, turns);
    let text = match path.extension().and_then(|end| end.to_str()) {
        Some("json") => report.to_json().context("the report can't be written")?,
        Some("csv") => report.to_csv(),
        Some("html") => report.to_html(),
        _ => anyhow::bail!("{}: the name must end in .html, .json or .csv", path.display()),
    };
    output::write(path, &text)?;
    Ok(count)
}
