//! What fills the window while there is no conversation: models that are not here, another program that talks, a failure.

use eframe::egui::{CentralPanel, ProgressBar, RichText, ScrollArea, Ui};

use super::tokens::{GAP, PAGE, WIDE_GAP, palette};
use crate::commands::models::megabytes;
use crate::commands::setup::fetch_command;
use crate::missing::{End, Missing, Progress};

/// What a page says.
#[derive(Debug)]
pub(super) enum Page {
    /// Models are not here.
    Missing(MissingPage),
    /// Something else keeps the conversation from beginning.
    Stopped {
        /// In a few words.
        heading: &'static str,
        /// What it is, and what to do.
        text: String,
    },
}

/// Models that are not here, and how far their fetch is.
#[derive(Debug, Default)]
pub(super) struct MissingPage {
    /// All of them.
    pub(super) missing: Vec<Missing>,
    /// Of the fetch under way, or of the last one.
    pub(super) progress: Option<Progress>,
    /// Whether a conversation is possible without them.
    pub(super) can_do_without: bool,
}

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Look again whether the conversation can begin.
    TryAgain,
    /// Fetch what is missing.
    Fetch,
    /// Stop that.
    Cancel,
    /// Begin without.
    GoOn,
    /// Close the window.
    Quit,
}

impl Page {
    /// Paints it; what the user wants.
    pub(super) fn show(&self, ui: &mut Ui) -> Option<Wish> {
        let mut wish = None;
        CentralPanel::default().show(ui, |ui| {
            ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                ui.vertical_centered(|ui| {
                    ui.add_space(2.0 * WIDE_GAP);
                    ui.set_max_width(PAGE.min(ui.available_width()));
                    ui.vertical(|ui| {
                        wish = match self {
                            Self::Missing(page) => page.show(ui),
                            Self::Stopped { heading, text } => stopped(ui, heading, text),
                        };
                    });
                });
            });
        });
        wish
    }
}

fn stopped(ui: &mut Ui, heading: &str, text: &str) -> Option<Wish> {
    ui.heading(heading);
    ui.add_space(GAP);
    ui.label(text);
    ui.add_space(WIDE_GAP);
    ui.horizontal(|ui| {
        let again = ui.button("Try again").on_hover_text("Look whether the conversation can begin now");
        let close = ui.button("Close").on_hover_text("Close this window");
        again.clicked().then_some(Wish::TryAgain).or(close.clicked().then_some(Wish::Quit))
    })
    .inner
}

impl MissingPage {
    fn is_under_way(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| progress.end.is_none())
    }

    fn show(&self, ui: &mut Ui) -> Option<Wish> {
        ui.heading("Some models are not on this computer yet");
        ui.add_space(GAP);
        ui.label(
            "Repartee listens, answers and speaks with models that run on your own computer. They are fetched once, \
             when you press the button. Nothing else uses the network, and nothing that you say leaves this computer.",
        );
        ui.add_space(WIDE_GAP);
        self.list(ui);
        ui.add_space(WIDE_GAP);
        let problems = self.progress.iter().flat_map(|progress| &progress.problems);
        for problem in problems {
            ui.label(RichText::new(problem).color(palette(ui.theme()).error));
            ui.add_space(GAP);
        }
        let wish = self.buttons(ui);
        ui.add_space(WIDE_GAP);
        let names: Vec<&str> = self.missing.iter().map(|model| model.name.as_str()).collect();
        let has_hub = self.missing.iter().any(|model| model.is_hub);
        ui.weak(format!("The same from a terminal: {}", fetch_command(&names, has_hub)));
        if has_hub {
            ui.weak("What comes from a hub was not checked when this program was made: what arrives first is trusted.");
        }
        wish
    }

    /// A model: its name, what it does, its size; below that where it comes from, or how much of it is here.
    fn list(&self, ui: &mut Ui) {
        for model in &self.missing {
            // Wrapped: a narrow window cuts nothing off.
            ui.horizontal_wrapped(|ui| {
                ui.strong(&model.name);
                ui.label(model.what);
                ui.label(&model.size);
            });
            let here_bytes = self.progress.as_ref().and_then(|p| p.here_bytes.get(&model.name));
            match here_bytes {
                Some(here_bytes) => {
                    let fraction = *here_bytes as f32 / model.size_bytes.max(1) as f32;
                    let bar = ProgressBar::new(fraction.min(1.0)).show_percentage();
                    ui.add(bar);
                }
                None => drop(ui.weak(format!("from {}", model.from))),
            }
            ui.add_space(GAP);
        }
    }

    fn buttons(&self, ui: &mut Ui) -> Option<Wish> {
        if self.is_under_way() {
            let now = self.progress.as_ref().map_or("", |progress| progress.now.as_str());
            let cancel = ui.button("Cancel").on_hover_text("Stop; what has arrived is kept");
            ui.weak(if now.is_empty() { "beginning" } else { now });
            return cancel.clicked().then_some(Wish::Cancel);
        }
        let to_come = |model: &Missing| model.size_bytes.saturating_sub(model.here_bytes);
        let sum_bytes: u64 = self.missing.iter().map(to_come).sum();
        let end = self.progress.as_ref().and_then(|progress| progress.end);
        if end == Some(End::Cancelled) {
            ui.weak("Stopped. What has arrived is kept: the next fetch goes on from there.");
        }
        ui.horizontal(|ui| {
            let label = match end {
                Some(End::Failed | End::Cancelled) => format!("Fetch again ({})", megabytes(sum_bytes)),
                _ => format!("Fetch ({})", megabytes(sum_bytes)),
            };
            let fetch = ui.button(label).on_hover_text("Bring them all, then begin");
            let mut wish = fetch.clicked().then_some(Wish::Fetch);
            if self.can_do_without {
                let go_on = ui
                    .button("Go on without")
                    .on_hover_text("Begin with what is here; what needs the others does not work");
                wish = wish.or(go_on.clicked().then_some(Wish::GoOn));
            }
            wish
        })
        .inner
    }
}

#[cfg(test)]
mod tests {
    use eframe::egui::{Key, Role, Theme, Vec2};
    use egui_kittest::Harness;
    use egui_kittest::kittest::Queryable;

    use super::super::tokens;
    use super::*;
    use crate::saved::{Front, taken};

    struct Shown {
        page: Page,
        wishes: Vec<Wish>,
    }

    fn harness(page: Page, theme: Theme) -> Harness<'static, Shown> {
        let mut is_set_up = false;
        Harness::builder().with_size(Vec2::new(900.0, 640.0)).with_theme(theme).build_ui_state(
            move |ui, shown: &mut Shown| {
                if !std::mem::replace(&mut is_set_up, true) {
                    tokens::apply(ui.ctx());
                }
                let wish = shown.page.show(ui);
                shown.wishes.extend(wish);
            },
            Shown { page, wishes: Vec::new() },
        )
    }

    fn page(progress: Option<Progress>) -> Page {
        let model = |name: &str, what, size: &str, size_bytes| Missing {
            name: name.into(),
            what,
            size: size.into(),
            size_bytes,
            here_bytes: 0,
            from: "models.example; else PyPI, by pip".into(),
            is_hub: false,
        };
        let missing = vec![
            model("silero-vad-v6", "hears when you speak", "1.2 MB", 1_239_748),
            model("qwen2.5-coder-0.5b", "writes the answers", "491.4 MB", 491_400_000),
        ];
        Page::Missing(MissingPage { missing, progress, can_do_without: false })
    }

    #[test]
    fn all_that_is_missing_is_listed_and_fetched_only_when_asked_for() {
        let mut harness = harness(page(None), Theme::Dark);
        harness.run();
        for label in ["silero-vad-v6", "qwen2.5-coder-0.5b", "491.4 MB", "writes the answers"] {
            harness.get_by_label(label);
        }
        harness.get_by_label_contains("repartee models fetch silero-vad-v6 qwen2.5-coder-0.5b");
        assert!(harness.query_by_label("Go on without").is_none(), "nobody would be heard");
        harness.snapshot("missing");
        assert!(harness.state().wishes.is_empty());
        harness.get_by_role_and_label(Role::Button, "Fetch (492.6 MB)").click();
        harness.run();
        assert_eq!(harness.state().wishes, [Wish::Fetch]);
        // From the keyboard too.
        harness.key_press(Key::Tab);
        harness.run();
        harness.get_by_role_and_label(Role::Button, "Fetch (492.6 MB)").focus();
        harness.run();
        harness.key_press(Key::Enter);
        harness.run();
        assert_eq!(harness.state().wishes, [Wish::Fetch; 2]);
        let Page::Missing(missing) = &mut harness.state_mut().page else { panic!("the same page") };
        missing.can_do_without = true;
        harness.run();
        harness.get_by_label("Go on without").click();
        harness.run();
        assert_eq!(harness.state().wishes[2], Wish::GoOn);
    }

    #[test]
    fn a_fetch_shows_how_far_it_is_and_what_went_wrong() {
        let mut progress = Progress { now: "model.gguf: 12.3 MB/s".into(), ..Progress::default() };
        progress.here_bytes.insert("qwen2.5-coder-0.5b".into(), 245_700_000);
        let mut harness = harness(page(Some(progress.clone())), Theme::Light);
        harness.run();
        harness.get_by_label("model.gguf: 12.3 MB/s");
        assert!(harness.query_by_label_contains("Fetch (").is_none());
        harness.snapshot("fetching");
        harness.get_by_label("Cancel").click();
        harness.run();
        assert_eq!(harness.state().wishes, [Wish::Cancel]);
        let problem = "no source gave `model.gguf`:\nThere seems to be no network.";
        let failed =
            Progress { problems: vec![problem.into()], end: Some(End::Failed), ..Progress::default() };
        harness.state_mut().page = page(Some(failed));
        harness.run();
        harness.get_by_label(problem);
        harness.get_by_label("Fetch again (492.6 MB)").click();
        harness.run();
        assert_eq!(harness.state().wishes, [Wish::Cancel, Wish::Fetch]);
        harness.state_mut().page = page(Some(Progress { end: Some(End::Cancelled), ..progress }));
        harness.run();
        harness.get_by_label_contains("What has arrived is kept");
        // What is here is not to come.
        let Page::Missing(missing) = &mut harness.state_mut().page else { panic!("the same page") };
        missing.missing[1].here_bytes = 400_000_000;
        harness.run();
        harness.get_by_label("Fetch again (92.6 MB)");
    }

    #[test]
    fn nothing_is_cut_off_in_the_smallest_window() {
        let mut harness = harness(page(None), Theme::Dark);
        harness.set_size(tokens::SMALLEST_WINDOW.into());
        harness.run();
        let labels = ["Some models are not on this computer yet", "qwen2.5-coder-0.5b", "Fetch (492.6 MB)"];
        let mut rects: Vec<_> = labels.map(|label| harness.get_by_label(label).rect()).into();
        rects.extend(harness.get_all_by_label_contains("from models.example").map(|from| from.rect()));
        assert_eq!(rects.len(), 5);
        for rect in rects {
            assert!(rect.left() >= 0.0 && rect.right() <= tokens::SMALLEST_WINDOW[0], "{rect:?}");
        }
    }

    #[test]
    fn a_second_window_says_so() {
        let text = taken(Some(Front::Window));
        let mut harness =
            harness(Page::Stopped { heading: "Repartee is already open", text: text.clone() }, Theme::Dark);
        harness.run();
        harness.get_by_label(&text);
        harness.snapshot("second");
        harness.get_by_role_and_label(Role::Button, "Try again").click();
        harness.run();
        harness.get_by_role_and_label(Role::Button, "Close").click();
        harness.run();
        assert_eq!(harness.state().wishes, [Wish::TryAgain, Wish::Quit]);
    }
}
