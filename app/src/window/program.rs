//! The window on the screen: holds the live conversation, shows it, and does what the view asks for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result};
use eframe::egui::{Context, ThemePreference, Ui, ViewportBuilder, ViewportCommand};
use repartee_engine::latency::{Metric, Reading, Report};
use repartee_engine::turn::message::Exchange;

use super::choices::Choices;
use super::earlier::Open;
use super::tokens;
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

/// Opens the window and holds the conversation until it is closed.
///
/// # Errors
/// There is no display, or the voice detector is missing.
pub(crate) fn run(home: Home) -> Result<()> {
    let is_set = |key| std::env::var_os(key).is_some_and(|value| !value.is_empty());
    if cfg!(target_os = "linux") && !["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"].into_iter().any(is_set)
    {
        anyhow::bail!("there is no display to open the window on; `repartee talk` converses in the terminal");
    }
    let options = eframe::NativeOptions {
        viewport: ViewportBuilder::default()
            .with_title("Repartee")
            .with_app_id("repartee")
            .with_inner_size(tokens::WINDOW)
            .with_min_inner_size(tokens::SMALLEST_WINDOW),
        ..Default::default()
    };
    let create = |context: &eframe::CreationContext<'_>| -> Result<Box<dyn eframe::App>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Box::new(Program::new(&context.egui_ctx, home)?))
    };
    eframe::run_native("repartee", options, Box::new(create)).map_err(|error| {
        anyhow::anyhow!(
            "the window could not be opened ({error}); without a display, `repartee talk` converses in the terminal"
        )
    })
}

/// Ctrl-C in the terminal that the window was started from, the end of the user's session, `kill`: all close the window,
/// and what was said is kept.
fn close_on_signal(context: &Context) {
    let context = context.clone();
    let close = move || {
        context.send_viewport_cmd(ViewportCommand::Close);
        context.request_repaint();
    };
    if let Err(error) = ctrlc::set_handler(close) {
        tracing::warn!(%error, "a signal will end the program at once");
    }
}

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

struct Program {
    live: Live,
    view: View,
    waker: Arc<Waker>,
    clerk: Clerk,
    /// As last handed to the clerk.
    saved: Saved,
    /// Entries of the snapshot that the clerk has.
    stored: usize,
    /// Revision of the snapshot that was looked at for what is to be stored.
    seen: u64,
    choices: Option<Receiver<Choices>>,
}

impl Program {
    fn new(context: &Context, home: Home) -> Result<Self> {
        tokens::apply(context);
        let (saved, mut said) = {
            let (saved, said) = Saved::load(&home);
            (saved, Vec::from_iter(said))
        };
        context.set_theme(match saved.look {
            Look::System => ThemePreference::System,
            Look::Light => ThemePreference::Light,
            Look::Dark => ThemePreference::Dark,
        });
        let (conversation, past) = match Conversation::last(&home) {
            Ok(last) => last,
            Err(error) => {
                said.push(format!("The last conversation is not shown: {error:#}"));
                (Conversation::new(&home), Vec::new())
            }
        };
        let waker = Arc::new(Waker::default());
        let _ = waker.context.set(context.clone());
        let woken = waker.clone();
        let live = Live::start(saved.settings.clone(), &past, Box::new(move || woken.wake()))?;
        let stamp = jiff::ZonedDateTime::now().strftime("%Y-%m-%d").to_string();
        let folder = directories::UserDirs::new();
        let documents =
            folder.as_ref().and_then(|user| user.document_dir()).map(std::path::Path::to_path_buf);
        let folder = documents.or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        let mut view = View::default();
        view.report_path = folder.join(format!("repartee-latency-{stamp}.html")).display().to_string();
        view.shows_latency = saved.shows_latency;
        view.said = said;
        let stored = live.snapshot().conversation.entries.len();
        close_on_signal(context);
        let written = context.clone();
        let clerk = Clerk::start(home, conversation, move || written.request_repaint())?;
        let mut program = Self { live, view, waker, clerk, saved, stored, seen: 0, choices: None };
        program.look_for_choices(context);
        Ok(program)
    }

    /// Asks disk and devices for what there is to choose from, on a thread of its own.
    fn look_for_choices(&mut self, context: &Context) {
        let (sender, receiver) = channel();
        let context = context.clone();
        let look = move || {
            let _ = sender.send(Choices::look_up());
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
                    self.clerk.begin_anew();
                }
                self.live.send(command);
            }
            Request::SaveReport { from, path } => {
                let snapshot = snapshot.clone();
                self.clerk.errand(move || {
                    News::Report(match save_report(&snapshot, from, &path) {
                        Ok(turns) => format!("{turns} turns in {}", path.display()),
                        Err(error) => format!("{error:#}"),
                    })
                });
            }
            Request::ListEarlier => self.clerk.list(),
            Request::ReadEarlier(earlier) => self.clerk.read(earlier),
            Request::DeleteEarlier(earlier) => self.clerk.delete(earlier),
            Request::Quit => context.send_viewport_cmd(ViewportCommand::Close),
        }
    }

    /// Hands over what was said since the last look.
    fn keep_entries(&mut self, snapshot: &Snapshot) {
        let entries = &snapshot.conversation.entries;
        // A new conversation begins with none.
        self.stored = self.stored.min(entries.len());
        for entry in &entries[self.stored..] {
            let heard = &entry.reply.text[..entry.reply.text.floor_char_boundary(entry.reply.heard_bytes)];
            let (user, interrupted) = (entry.user.clone(), entry.is_interrupted);
            self.clerk.keep(Exchange { user, heard: heard.into(), interrupted });
        }
        self.stored = entries.len();
    }

    /// Hands over settings and look when they have changed.
    fn keep_settings(&mut self, snapshot: &Snapshot, context: &Context) {
        let look = match context.options(|options| options.theme_preference) {
            ThemePreference::System => Look::System,
            ThemePreference::Light => Look::Light,
            ThemePreference::Dark => Look::Dark,
        };
        let (settings, shows_latency) = (&snapshot.setup.settings, self.view.shows_latency);
        let saved = &mut self.saved;
        if (settings, look, shows_latency) != (&saved.settings, saved.look, saved.shows_latency) {
            *saved = Saved { settings: settings.clone(), look, shows_latency };
            self.clerk.keep_settings(saved.clone());
        }
    }

    fn take_news(&mut self) {
        for news in self.clerk.news() {
            match news {
                News::Failed(words) => self.view.said.push(words),
                News::Report(words) => self.view.report_said = words,
                News::Earlier(list) => self.view.earlier.list = Some(list),
                News::Read(which, exchanges) => self.view.earlier.open = Some(Open { which, exchanges }),
            }
        }
    }
}

impl eframe::App for Program {
    /// Runs before each frame, and while the window is hidden and there are none.
    fn logic(&mut self, context: &Context, _frame: &mut eframe::Frame) {
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

    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        tracing::trace!("painted");
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

    fn on_exit(&mut self, _gl: Option<&eframe::glow::Context>) {
        // What was heard of a reply under way is kept too.
        let snapshot = self.live.finish();
        self.keep_entries(&snapshot);
    }

    fn persist_egui_memory(&self) -> bool {
        false
    }
}

/// Writes the turns from `from` on; the end of the name says the layout. Returns how many.
fn save_report(snapshot: &Snapshot, from: usize, path: &std::path::Path) -> Result<usize> {
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
