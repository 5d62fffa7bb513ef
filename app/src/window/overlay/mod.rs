//! Where the time goes: floats over the conversation, beside it where there is room.

mod figures;
#[cfg(test)]
pub(super) use figures::tests;

use std::sync::Arc;

use eframe::egui::{
    self, Align2, AreaState, Grid, Id, LayerId, Order, Pos2, Rect, RichText, Role, ScrollArea, Sense, Ui,
    Vec2, WidgetInfo, pos2, vec2,
};
use egui_plot::{Bar, BarChart, GridMark, Plot};
use repartee_engine::latency::{Metric, Reading, TurnRecord};

use self::figures::{extent, last_turns, reading, round_step, slots, statistics, waterfall};
use super::action::Action;
use super::status::stage_name;
use super::tokens::{self, palette};
use super::view::View;
use crate::live::{Snapshot, StageInfo};

/// The overlay's area in the memory of egui.
fn area() -> Id {
    Id::unique("latency")
}

/// The field for the report's name.
pub(super) fn report_field() -> Id {
    Id::unique("report")
}

impl View {
    /// How much of the conversation's width is left to the overlay: all that it takes, where both have room and the user
    /// has not put it elsewhere.
    pub(super) fn room_for_overlay(&self, conversation: Rect) -> f32 {
        let is_there = self.shows_latency && self.latency_at.is_none();
        let takes = tokens::OVERLAY + 3.0 * tokens::OVERLAY_GAP;
        if is_there && conversation.width() - takes >= tokens::NARROW { takes } else { 0.0 }
    }

    /// Paints the overlay at the right of `conversation`. It leaves alone what stands above and below that in `window`, and
    /// the notices, if they are of the whole width; they shorten it from below, so that it stays where it is. Gives its
    /// place.
    pub(super) fn latency(
        &mut self,
        context: &egui::Context,
        snapshot: &Snapshot,
        conversation: Rect,
        window: Rect,
        notices_height: f32,
    ) -> Vec<Rect> {
        let room = Rect::from_x_y_ranges(window.x_range(), conversation.y_range());
        let mut is_open = true;
        let corner = match self.latency_at {
            Some([x, y]) => pos2(x as f32, y as f32),
            None => conversation.right_top() + vec2(-tokens::OVERLAY_GAP, tokens::OVERLAY_GAP),
        };
        // Where the user has not put it, it follows the window's size; else egui keeps it where it is.
        if self.latency_at.is_none()
            && let Some(state) = AreaState::load(context, area()).filter(|s| s.pivot_pos != Some(corner))
        {
            let state = AreaState { pivot_pos: Some(corner), ..state };
            context.memory_mut(|memory| {
                memory.areas_mut().set_state(LayerId::new(Order::Middle, area()), state);
            });
        }
        let shown = egui::Window::new("Latency")
            .id(area())
            .open(&mut is_open)
            .pivot(Align2::RIGHT_TOP)
            .default_pos(corner)
            .constrain_to(room)
            .resizable(false)
            .show(context, |ui| {
                ui.set_width(tokens::OVERLAY);
                let is_beside = self.room_for_overlay(conversation) > 0.0 || self.latency_at.is_some();
                let notices = if is_beside { 0.0 } else { notices_height };
                let others = tokens::OVERLAY_TITLE + self.recording_height + notices;
                let height = (conversation.height() - others).max(3.0 * tokens::ROW);
                let scroll = ScrollArea::vertical().max_height(height).min_scrolled_height(height);
                let figures = scroll.show(ui, |ui| {
                    let records = &*snapshot.conversation.records;
                    if records.is_empty() {
                        ui.weak("No turn was measured yet.");
                    }
                    waterfall_and_statistics(ui, snapshot);
                    devices(ui, &snapshot.setup.stages);
                    chart(ui, records);
                });
                // Always in sight.
                let recording = ui.scope(|ui| self.recording(ui, snapshot.conversation.records.len()));
                let recording = recording.response.rect;
                self.recording_height = recording.height() + ui.spacing().item_spacing.y;
                [figures.inner_rect, recording]
            });
        let mut places = Vec::new();
        let title = context.read_response(area().with("__title_click"));
        if let Some(shown) = &shown {
            places.push(shown.response.rect);
            places.extend(shown.inner.into_iter().flatten());
        }
        if let Some(shown) = shown
            && (shown.response.dragged() || title.is_some_and(|title| title.dragged()))
            && context.input(|input| input.pointer.delta() != Vec2::ZERO)
        {
            let corner = shown.response.rect.right_top().round();
            self.latency_at = Some([corner.x as i32, corner.y as i32]);
        }
        self.shows_latency = is_open;
        places
    }

    fn recording(&mut self, ui: &mut Ui, turns: usize) {
        ui.separator();
        ui.horizontal(|ui| {
            self.toggle(ui, Action::ToggleRecording, self.recording_from.is_some());
            let recorded = match self.recording_from {
                Some(from) => format!("{} recorded", plural(turns.saturating_sub(from), "turn")),
                None => format!("{} in all", plural(turns, "turn")),
            };
            ui.weak(recorded);
        });
        if !self.report_said.is_empty() {
            ui.add(egui::Label::new(&self.report_said).wrap());
        }
        ui.horizontal(|ui| {
            ui.add_enabled_ui(turns > self.recording_from.unwrap_or(0), |ui| {
                self.button(ui, Action::SaveReport)
            });
            let field = egui::TextEdit::singleline(&mut self.report_path)
                .id(report_field())
                .desired_width(f32::INFINITY);
            let field = ui.add(field).on_hover_text("The name's end says the layout: .json, .csv or .html");
            field.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Report file"));
        });
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Milliseconds in whole numbers; what was short was not nothing.
fn whole(ms: f64) -> String {
    if ms > 0.0 && ms < 0.5 { "<1".into() } else { format!("{ms:.0}") }
}

/// What a metric contains, for its tooltip.
fn explanation(metric: Metric) -> String {
    let info = metric.info();
    format!("{}\nContains: {}\nLeaves out: {}", info.label, info.contains, info.excludes)
}

/// What stands above the columns, and what it means.
const HEADS: [(&str, &str); 5] = [
    ("ms", "All times are in milliseconds"),
    ("last turn", "When each stage ran in the last turn, side by side"),
    ("now", "The turn under way, or the last one: amber while it runs, - for what it has not (yet)"),
    ("median", "Half of all turns took no longer"),
    ("p95", "19 of 20 turns took no longer"),
];

/// A row a metric: the last turn's bar on a common scale, its time, then median and 95th percentile of all turns.
fn waterfall_and_statistics(ui: &mut Ui, snapshot: &Snapshot) {
    let records = &*snapshot.conversation.records;
    let last = records.iter().rev().find(|record| !record.stages.is_empty());
    let bars = last.map(|record| waterfall(record)).unwrap_or_default();
    let scale = extent(&bars);
    let grid = Grid::new("stages").num_columns(HEADS.len()).striped(true);
    grid.spacing(tokens::ROW_GAPS).min_row_height(tokens::ROW).show(ui, |ui| {
        for (head, meaning) in HEADS {
            ui.weak(head).on_hover_text(meaning);
        }
        ui.end_row();
        for metric in Metric::ALL {
            let stats = statistics(records, metric);
            let reading = reading(&snapshot.conversation, metric);
            if stats.is_none() && reading == Reading::Unknown {
                continue;
            }
            ui.label(metric.info().label).on_hover_text(explanation(metric));
            bar(ui, metric, bars.iter().find(|bar| bar.metric == metric), scale);
            match reading {
                Reading::Unknown => drop(ui.weak("-")),
                Reading::Live { ms } => {
                    let running = ui.colored_label(palette(ui.theme()).thinking, format!("{} …", whole(ms)));
                    running.on_hover_text("It runs");
                }
                Reading::Final { ms } => drop(ui.label(whole(ms)).on_hover_text("Of the newest turn")),
                Reading::Stale { ms, turn } => {
                    ui.weak("-").on_hover_text(format!("It was {} in turn {turn}", whole(ms)));
                }
            }
            let number = |value: Option<f64>| value.map_or("-".into(), whole);
            ui.label(number(stats.map(|s| s.median_ms)));
            ui.label(number(stats.map(|s| s.p95_ms)));
            ui.end_row();
        }
    });
}

/// What really computes: a line for each device, with its stages.
fn devices(ui: &mut Ui, stages: &[StageInfo]) {
    let mut lines: Vec<(&str, String)> = Vec::new();
    for info in stages.iter().filter(|info| !info.computes.is_empty()) {
        let name = stage_name(info.stage);
        match lines.iter_mut().find(|(device, _)| *device == info.computes) {
            Some((_, names)) => *names += &format!(", {name}"),
            None => lines.push((&info.computes, name.to_owned())),
        }
    }
    for (device, names) in lines {
        ui.add(egui::Label::new(RichText::new(format!("{names}: {device}")).weak()).wrap());
    }
}

/// When a stage ran in the last turn; nothing where it was not measured.
fn bar(ui: &mut Ui, metric: Metric, bar: Option<&figures::Bar>, (first, last): (f64, f64)) {
    let size = [tokens::BARS, tokens::ROW / 2.0];
    let (rect, response) = ui.allocate_exact_size(size.into(), Sense::hover());
    let Some(bar) = bar else { return };
    let x = |at: f64| rect.left() + rect.width() * ((at - first) / (last - first)) as f32;
    let start = x(bar.start_ms);
    // A stage of no length is still to be seen.
    let end = x(bar.end_ms).max(start + 1.0);
    let drawn = Rect::from_min_max(Pos2::new(start, rect.top()), Pos2::new(end, rect.bottom()));
    ui.painter().rect_filled(drawn, 2.0, tokens::stage(metric, ui.theme()));
    let text = format!("{}: {:.0} ms", metric.info().label, bar.end_ms - bar.start_ms);
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &text));
    response.on_hover_text(format!("{text}\n{}", explanation(metric)));
}

/// Voice to voice of the last turns: cold ones and cancelled ones stand out.
fn chart(ui: &mut Ui, records: &[Arc<TurnRecord>]) {
    let turns = last_turns(records);
    if turns.is_empty() {
        return;
    }
    ui.separator();
    ui.weak("Voice to voice, ms, by turn").on_hover_text("Amber: a first turn, cold. Grey: cancelled.");
    let theme = ui.theme();
    let colour = |record: &TurnRecord| match record {
        record if record.cancelled => palette(theme).deaf,
        record if record.is_warm() => tokens::stage(Metric::VoiceToVoice, theme),
        _ => palette(theme).thinking,
    };
    let bars: Vec<Bar> = turns
        .iter()
        .map(|(place, record)| {
            let ms = record.voice_to_voice_ms.unwrap_or_default();
            let state = if record.cancelled {
                ", cancelled"
            } else if record.is_warm() {
                ""
            } else {
                ", cold"
            };
            Bar::new(*place as f64, ms)
                .width(tokens::CHART_BAR)
                .fill(colour(record))
                .name(format!("Turn {place}: {ms:.0} ms{state}"))
        })
        .collect();
    let (first, last) = slots(&turns);
    let highest = turns.iter().filter_map(|(_, record)| record.voice_to_voice_ms).fold(1.0, f64::max);
    let step = round_step(highest);
    let marks = move |step: f64| {
        move |input: egui_plot::GridInput| -> Vec<GridMark> {
            let (from, to) = input.bounds;
            let multiples = (from / step).ceil() as i64..=(to / step).floor() as i64;
            multiples.map(|i| GridMark { value: i as f64 * step, step_size: step }).collect()
        }
    };
    let formatter = |bar: &Bar, _: &BarChart| bar.name.clone();
    Plot::new("turns")
        .height(tokens::CHART)
        .include_x(first - 0.5)
        .include_x(last + 0.5)
        .include_y(0.0)
        .include_y((highest / step).ceil() * step)
        .x_grid_spacer(marks(5.0))
        .y_grid_spacer(marks(step))
        .x_axis_formatter(
            |mark, _| if mark.value > 0.0 { format!("{:.0}", mark.value) } else { String::new() },
        )
        .y_axis_formatter(|mark, _| format!("{:.0}", mark.value))
        .allow_drag(false)
        .allow_zoom(false)
        .allow_scroll(false)
        .allow_boxed_zoom(false)
        .show_x(false)
        .show_y(false)
        .show(ui, |plot| {
            plot.bar_chart(BarChart::new("voice to voice", bars).element_formatter(Box::new(formatter)))
        });
}
