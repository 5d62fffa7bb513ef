//! The top of the window: what is going on, how loud it is, and the buttons for the rest.

use eframe::egui::{self, Color32, Role, Sense, Ui, WidgetInfo};
use repartee_engine::turn::pipeline::Level;

use super::action::Action;
use super::status::Status;
use super::tokens::{GAP, LAMP, METER, WIDE_GAP, palette};
use super::view::View;
use crate::live::Snapshot;

impl View {
    pub(super) fn header(&mut self, ui: &mut Ui, snapshot: &Snapshot) {
        let conversation = &snapshot.conversation;
        let status = Status::of(conversation);
        ui.horizontal(|ui| {
            lamp(ui, status);
            let label = ui.heading(status.label());
            if let Some(hint) = status.hint() {
                label.on_hover_text(hint);
            }
            ui.add_space(WIDE_GAP);
            let colours = palette(ui.theme());
            meter(ui, "Microphone", conversation.input_level, colours.hearing);
            meter(ui, "Speaker", conversation.output_level, colours.speaking);
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                self.toggle(ui, Action::ToggleSettings, self.shows_settings);
                self.toggle(ui, Action::ToggleLatency, self.shows_latency);
                self.toggle(ui, Action::ToggleEarlier, self.earlier.is_shown);
                self.button(ui, Action::NewConversation);
            });
        });
        if let Some(hint) = status.hint() {
            ui.weak(hint);
        }
    }

    pub(super) fn button(&mut self, ui: &mut Ui, action: Action) {
        let response = ui.button(action.label()).on_hover_text(hint(ui, action));
        if response.clicked() {
            self.actions.push(action);
        }
    }

    pub(super) fn toggle(&mut self, ui: &mut Ui, action: Action, is_on: bool) {
        let response = ui.selectable_label(is_on, action.label()).on_hover_text(hint(ui, action));
        if response.clicked() {
            self.actions.push(action);
        }
    }
}

/// What an action does, and its key.
pub(super) fn hint(ui: &Ui, action: Action) -> String {
    match action.shortcut() {
        Some(key) => format!("{} ({})", action.hint(), ui.ctx().format_shortcut(&key)),
        None => action.hint().into(),
    }
}

fn lamp(ui: &mut Ui, status: Status) {
    let (rect, _) = ui.allocate_exact_size([LAMP, LAMP].into(), Sense::hover());
    ui.painter().circle_filled(rect.center(), LAMP / 2.0, status.colour(ui.theme()));
}

fn meter(ui: &mut Ui, name: &str, level: Level, colour: Color32) {
    let (rect, response) = ui.allocate_exact_size(METER.into(), Sense::hover());
    let groove = palette(ui.theme()).groove;
    let round = METER[1] / 2.0;
    ui.painter().rect_filled(rect, round, groove);
    let mut bar = rect;
    bar.set_width(rect.width() * level.fraction());
    ui.painter().rect_filled(bar, round, colour);
    let text = format!("{name}: {:.0} dB", level.dbfs());
    response.widget_info(|| WidgetInfo::labeled(Role::Meter, true, &text));
    response.on_hover_text(text);
    ui.add_space(GAP);
}
