//! The window on the screen: holds the conversation, or a page that says why there is none.

use std::time::{Duration, Instant};

use anyhow::Result;
use eframe::egui::{Context, Ui, ViewportBuilder, ViewportCommand};
use repartee_models::Store;

use super::page::{MissingPage, Page, Wish};
use super::talk::Talk;
use super::tokens;
use crate::commands::setup::DETECTOR;
use crate::missing::{End, Fetch, missing};
use crate::saved::{Claim, Front, Home, Instance, Saved, taken};

/// Opens the window and holds the conversation until it is closed.
///
/// # Errors
/// There is no display.
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
        Ok(Box::new(Program::new(&context.egui_ctx, home)))
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

/// How often it is looked whether models have come.
const LOOK: Duration = Duration::from_secs(2);

/// What fills the window.
enum Phase {
    Page(Page),
    Talk(Box<Talk>),
}

struct Program {
    home: Home,
    phase: Phase,
    fetch: Option<Fetch>,
    /// When it was last looked whether the models have come by another way.
    looked_at: Instant,
    /// The settings are read once, and only by the one that talks.
    saved: Option<(Saved, Option<String>)>,
    /// Given back last.
    instance: Option<Instance>,
}

impl Program {
    fn new(context: &Context, home: Home) -> Self {
        tokens::apply(context);
        close_on_signal(context);
        let nothing = Phase::Page(Page::Missing(MissingPage::default()));
        let looked_at = Instant::now();
        let mut program = Self { home, phase: nothing, fetch: None, looked_at, saved: None, instance: None };
        program.begin(context, Lack::Shown);
        program
    }

    /// Begins the conversation, or says why there is none.
    fn begin(&mut self, context: &Context, lack: Lack) {
        if self.instance.is_none() {
            match Instance::claim(&self.home, Front::Window) {
                Claim::Granted(instance) => self.instance = Some(instance),
                Claim::Taken(by) => {
                    tracing::warn!(?by, "another Repartee talks already");
                    super::talk::set_look(context, Saved::look(&self.home));
                    self.stop("Repartee is already open", taken(by));
                    return;
                }
            }
        }
        let (saved, said) = self.saved.get_or_insert_with(|| Saved::load(&self.home)).clone();
        super::talk::set_look(context, saved.look);
        if lack == Lack::Shown {
            match self.lacks(&saved) {
                Ok(None) => {}
                Ok(Some(page)) => {
                    self.phase = Phase::Page(Page::Missing(page));
                    return;
                }
                Err(error) => return self.stop("The models can't be looked up", format!("{error:#}")),
            }
        }
        match Talk::new(context, self.home.clone(), saved, said) {
            Ok(talk) => self.phase = Phase::Talk(Box::new(talk)),
            Err(error) => self.stop("The conversation can't begin", format!("{error:#}")),
        }
    }

    fn stop(&mut self, heading: &'static str, text: String) {
        tracing::error!("{heading}: {text}");
        self.phase = Phase::Page(Page::Stopped { heading, text });
    }

    /// What is missing, if anything is.
    fn lacks(&self, saved: &Saved) -> Result<Option<MissingPage>> {
        let missing = missing(&Store::open()?, &saved.settings);
        if missing.is_empty() {
            return Ok(None);
        }
        let names: Vec<&str> = missing.iter().map(|model| model.name.as_str()).collect();
        tracing::warn!(?names, "models are not here");
        // Without the detector nobody can be heard; everything else may be missing.
        let can_do_without = !names.contains(&DETECTOR);
        Ok(Some(MissingPage { missing, progress: None, can_do_without }))
    }

    fn fulfil(&mut self, wish: Wish, context: &Context) {
        match wish {
            Wish::TryAgain => self.begin(context, Lack::Shown),
            Wish::GoOn => self.begin(context, Lack::Borne),
            Wish::Quit => context.send_viewport_cmd(ViewportCommand::Close),
            Wish::Cancel => {
                if let Some(fetch) = &self.fetch {
                    fetch.cancel();
                }
            }
            Wish::Fetch => {
                let Phase::Page(Page::Missing(page)) = &mut self.phase else { return };
                let woken = context.clone();
                let wake = move || woken.request_repaint();
                let fetch = Store::open()
                    .map_err(Into::into)
                    .and_then(|store| Fetch::start(store, &page.missing, wake));
                match fetch {
                    Ok(fetch) => {
                        page.progress = Some(fetch.progress());
                        self.fetch = Some(fetch);
                    }
                    Err(error) => self.stop("The models can't be fetched", format!("{error:#}")),
                }
            }
        }
    }

    /// Somebody may fetch the models from a terminal, as the page says.
    fn look_for_models(&mut self, context: &Context) {
        let Phase::Page(Page::Missing(page)) = &self.phase else { return };
        if self.fetch.is_some() {
            return;
        }
        if self.looked_at.elapsed() >= LOOK {
            self.looked_at = Instant::now();
            let saved = self.saved.as_ref().map(|(saved, _)| saved.clone()).unwrap_or_default();
            let now = Store::open().map(|store| missing(&store, &saved.settings)).unwrap_or_default();
            if now != page.missing && self.saved.is_some() {
                return self.begin(context, Lack::Shown);
            }
        }
        context.request_repaint_after(LOOK);
    }

    /// Shows how far a fetch is, and goes on when all is here.
    fn look_at_fetch(&mut self, context: &Context) {
        let Some(fetch) = &self.fetch else { return };
        let Phase::Page(Page::Missing(page)) = &mut self.phase else { return };
        let progress = fetch.progress();
        let end = progress.end;
        page.progress = Some(progress);
        if end.is_none() {
            return;
        }
        self.fetch = None;
        let progress = page.progress.take();
        self.begin(context, Lack::Shown);
        // What is still missing stands beside the reasons.
        if let (Phase::Page(Page::Missing(page)), Some(mut progress)) = (&mut self.phase, progress) {
            progress.here_bytes.clear();
            page.progress = (end != Some(End::Complete)).then_some(progress);
        }
    }
}

/// What to do where models are missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// Say which.
    Shown,
    /// Begin without.
    Borne,
}

impl eframe::App for Program {
    /// Runs before each frame, and while the window is hidden and there are none.
    fn logic(&mut self, context: &Context, _frame: &mut eframe::Frame) {
        self.look_at_fetch(context);
        self.look_for_models(context);
        if let Phase::Talk(talk) = &mut self.phase {
            talk.logic(context);
        }
    }

    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        tracing::trace!("painted");
        match &mut self.phase {
            Phase::Talk(talk) => {
                talk.ui(ui);
                if talk.wants_models {
                    talk.finish();
                    let context = ui.ctx().clone();
                    // The conversation ends first, and lets go of the devices.
                    self.phase = Phase::Page(Page::Missing(MissingPage::default()));
                    self.saved = None;
                    self.begin(&context, Lack::Shown);
                    context.request_repaint();
                }
            }
            Phase::Page(page) => {
                if let Some(wish) = page.show(ui) {
                    let context = ui.ctx().clone();
                    self.fulfil(wish, &context);
                    context.request_repaint();
                }
            }
        }
    }

    fn on_exit(&mut self, _gl: Option<&eframe::glow::Context>) {
        if let Phase::Talk(talk) = &mut self.phase {
            talk.finish();
        }
    }

    fn persist_egui_memory(&self) -> bool {
        false
    }
}
