//! The top of the window: what is going on, how loud it is, and the buttons for the rest.

use eframe::egui::{self, Button, Color32, Response, Role, Sense, Ui, WidgetInfo};
use repartee_engine::turn::pipeline::Level;

use super::action::Action;
use super::status::Status;
use super::tokens::{GAP, LAMP, LONG_METERS, METER, NAMED_METERS, SHORT_METER, WIDE_GAP, palette};
use super::view::View;
use crate::live::Snapshot;

impl View {
    pub(super) fn header(&mut self, ui: &mut Ui, snapshot: &Snapshot) {
        let conversation = &snapshot.conversation;
        let status = Status::of(conversation);
        // Nothing comes or goes in here: its buttons stay where they are.
        ui.horizontal(|ui| {
            lamp(ui, status).on_hover_text(status.meaning());
            ui.heading(status.label()).on_hover_text(status.meaning());
            let colours = palette(ui.theme());
            let width = ui.max_rect().width();
            ui.add_space(if width >= LONG_METERS { WIDE_GAP } else { 0.0 });
            let meters = [
                ("Microphone", conversation.input_level, colours.hearing),
                ("Speaker", conversation.output_level, colours.speaking),
            ];
            for (name, level, colour) in meters {
                if width >= NAMED_METERS {
                    ui.weak(name);
                }
                meter(ui, name, level, colour, if width >= LONG_METERS { METER } else { SHORT_METER });
            }
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                self.toggle(ui, Action::ToggleSettings, self.shows_settings);
                self.toggle(ui, Action::ToggleLatency, self.shows_latency);
                self.toggle(ui, Action::ToggleEarlier, self.earlier.is_shown);
                self.button(ui, Action::NewConversation);
            });
        });
    }

    pub(super) fn button(&mut self, ui: &mut Ui, action: Action) {
        let response = ui.button(action.label()).on_hover_text(hint(ui, action));
        if response.clicked() {
            self.actions.push(action);
        }
    }

    pub(super) fn toggle(&mut self, ui: &mut Ui, action: Action, is_on: bool) {
        let response = ui.add(Button::new(action.label()).selected(is_on)).on_hover_text(hint(ui, action));
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

fn lamp(ui: &mut Ui, status: Status) -> Response {
    let (rect, response) = ui.allocate_exact_size([LAMP, LAMP].into(), Sense::hover());
    ui.painter().circle_filled(rect.center(), LAMP / 2.0, status.colour(ui.theme()));
    response
}

fn meter(ui: &mut Ui, name: &str, level: Level, colour: Color32, size: [f32; 2]) {
    let (rect, response) = ui.allocate_exact_size(size.into(), Sense::hover());
    let groove = palette(ui.theme()).groove;
    let round = size[1] / 2.0;
    ui.painter().rect_filled(rect, round, groove);
    let mut bar = rect;
    bar.set_width(rect.width() * level.fraction());
    ui.painter().rect_filled(bar, round, colour);
    let text = format!("{name}: {:.0} dB", level.dbfs());
    response.widget_info(|| WidgetInfo::labeled(Role::Meter, true, &text));
    response.on_hover_text(text);
    ui.add_space(GAP);
}
