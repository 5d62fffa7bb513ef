//! Earlier conversations: the list of them by date, and one of them to read.

use eframe::egui::{self, Modal, Rect, ScrollArea, Ui};
use repartee_engine::turn::message::Exchange;

use super::tokens::{GAP, WIDE_GAP};
use super::transcript;
use super::view::{Request, View};
use crate::saved::Earlier;

/// What the window remembers of them.
#[derive(Debug, Default)]
pub(super) struct EarlierView {
    /// Whether the list is there.
    pub(super) is_shown: bool,
    /// All, the newest first; `None` until the disk has answered.
    pub(super) list: Option<Vec<Earlier>>,
    /// The one that is read, in place of the conversation under way.
    pub(super) open: Option<Open>,
    /// The question stands whether to delete it.
    pub(super) asks_to_delete: bool,
}

/// An earlier conversation to read.
#[derive(Debug)]
pub(super) struct Open {
    /// Which.
    pub(super) which: Earlier,
    /// What was said.
    pub(super) exchanges: Vec<Exchange>,
}

/// So much of what was said first stands in the list.
const FIRST_CHARS: usize = 60;

impl EarlierView {
    /// Takes the list away, and what was read.
    pub(super) fn hide(&mut self) {
        (self.is_shown, self.open, self.asks_to_delete) = (false, None, false);
    }
}

impl View {
    pub(super) fn toggle_earlier(&mut self) {
        let earlier = &mut self.earlier;
        earlier.is_shown = !earlier.is_shown;
        if earlier.is_shown {
            self.requests.push(Request::ListEarlier);
        } else {
            earlier.hide();
        }
    }

    pub(super) fn earlier_list(&mut self, ui: &mut Ui) {
        let open = self.earlier.open.as_ref().map(|open| &open.which.path);
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            ui.add_space(GAP);
            if self.earlier.list.as_ref().is_some_and(Vec::is_empty) {
                ui.weak("There are no earlier conversations.");
            }
            let mut day = "";
            for earlier in self.earlier.list.iter().flatten() {
                if day != earlier.day {
                    day = &earlier.day;
                    ui.strong(day);
                }
                let words = format!("{}  {}", earlier.time, start(&earlier.first));
                let button = egui::Button::selectable(open == Some(&earlier.path), words).wrap();
                if ui.add(button).on_hover_text("Read this conversation").clicked() {
                    self.requests.push(Request::ReadEarlier(earlier.clone()));
                }
            }
        });
    }

    /// Shows `open` and keeps it open unless the user wants otherwise.
    pub(super) fn earlier_one(&mut self, ui: &mut Ui, open: Open) -> Vec<Rect> {
        let mut stays = true;
        ui.heading(format!("{}, {}", open.which.day, open.which.time));
        ui.horizontal_wrapped(|ui| {
            let go_on = ui.button("Continue").on_hover_text("Go on with this conversation from here");
            if go_on.clicked() {
                self.requests.push(Request::GoOn(open.which.clone()));
                stays = false;
            }
            let back = ui.button("Back to now").on_hover_text("Show the conversation under way again");
            stays &= !back.clicked();
            let delete = ui.button("Delete").on_hover_text("Delete this conversation, after a question");
            self.earlier.asks_to_delete |= delete.clicked();
        });
        ui.add_space(GAP);
        let scroll = ScrollArea::vertical().id_salt(&open.which.path).auto_shrink(false);
        let shown = scroll.show(ui, |ui| {
            for Exchange { user, heard, interrupted } in &open.exchanges {
                transcript::exchange(ui, user, (heard, ""), *interrupted);
            }
        });
        if self.earlier.asks_to_delete {
            stays &= !self.ask_to_delete(ui, &open.which);
        }
        self.earlier.asks_to_delete &= stays;
        self.earlier.open = stays.then_some(open);
        vec![shown.inner_rect]
    }

    /// Whether the user has said yes.
    fn ask_to_delete(&mut self, ui: &Ui, which: &Earlier) -> bool {
        let modal = Modal::new(egui::Id::unique("delete")).show(ui.ctx(), |ui| {
            ui.heading("Delete this conversation?");
            ui.label("What was said in it is gone for good.");
            ui.add_space(WIDE_GAP);
            ui.horizontal(|ui| {
                let (yes, no) = (ui.button("Delete it").clicked(), ui.button("Keep it").clicked());
                if yes {
                    self.requests.push(Request::DeleteEarlier(which.clone()));
                }
                (yes, no)
            })
            .inner
        });
        let (yes, no) = modal.inner;
        if no || modal.should_close() {
            self.earlier.asks_to_delete = false;
        }
        yes
    }
}

/// The start of a text, for a list.
fn start(text: &str) -> String {
    match text.char_indices().nth(FIRST_CHARS) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_owned(),
    }
}
