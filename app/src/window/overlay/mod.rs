//! Where the time goes: floats over the conversation.

mod figures;
#[cfg(test)]
pub(super) use figures::tests;

use std::sync::Arc;

use eframe::egui::{self, Align2, Grid, Pos2, Rect, Role, Sense, Ui, WidgetInfo};
use egui_plot::{Bar, BarChart, Plot};
use repartee_engine::latency::{Metric, Reading, TurnRecord};

use self::figures::{LAST, extent, last_turns, statistics, waterfall};
use super::action::Action;
use super::tokens::{self, palette};
use super::view::View;
use crate::live::Snapshot;

impl View {
    pub(super) fn latency(&mut self, context: &egui::Context, snapshot: &Snapshot) {
        let mut is_open = true;
        egui::Window::new("Latency")
            .open(&mut is_open)
            .anchor(Align2::RIGHT_BOTTOM, tokens::OVERLAY_OFFSET)
            .resizable(false)
            .show(context, |ui| {
                let records = &*snapshot.conversation.records;
                if records.is_empty() {
                    ui.weak("No turn was measured yet.");
                }
                waterfall_and_statistics(ui, snapshot);
                chart(ui, records);
                self.recording(ui, records.len());
            });
        self.shows_latency = is_open;
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
        ui.horizontal(|ui| {
            ui.add_enabled_ui(turns > self.recording_from.unwrap_or(0), |ui| {
                self.button(ui, Action::SaveReport)
            });
            let field = egui::TextEdit::singleline(&mut self.report_path).desired_width(f32::INFINITY);
            let field = ui.add(field).on_hover_text("The name's end says the layout: .json, .csv or .html");
            field.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Report file"));
        });
        if !self.report_said.is_empty() {
            ui.weak(&self.report_said);
        }
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// What a metric contains, for its tooltip.
fn explanation(metric: Metric) -> String {
    let info = metric.info();
    format!("{}\nContains: {}\nLeaves out: {}", info.label, info.contains, info.excludes)
}

/// A row a metric: the last turn's bar on a common scale, its time, then median and 95th percentile of all turns.
fn waterfall_and_statistics(ui: &mut Ui, snapshot: &Snapshot) {
    let records = &*snapshot.conversation.records;
    let last = records.iter().rev().find(|record| !record.stages.is_empty());
    let bars = last.map(|record| waterfall(record)).unwrap_or_default();
    let scale = extent(&bars);
    Grid::new("stages").num_columns(5).min_row_height(tokens::ROW).striped(true).show(ui, |ui| {
        for head in ["ms", "last turn", "now", "median", "p95"] {
            ui.weak(head);
        }
        ui.end_row();
        for metric in Metric::ALL {
            let stats = statistics(records, metric);
            let reading = snapshot.conversation.reading(metric);
            if stats.is_none() && reading == Reading::Unknown {
                continue;
            }
            ui.label(metric.info().label).on_hover_text(explanation(metric));
            bar(ui, metric, bars.iter().find(|bar| bar.metric == metric), scale);
            match reading {
                Reading::Unknown => drop(ui.weak("-")),
                Reading::Live { ms } => {
                    drop(ui.colored_label(palette(ui.theme()).thinking, format!("{ms:.0} …")))
                }
                Reading::Final { ms } => drop(ui.label(format!("{ms:.0}"))),
                Reading::Stale { ms, turn } => {
                    ui.weak(format!("{ms:.0}")).on_hover_text(format!("of turn {turn}"));
                }
            }
            let number = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.0}"));
            ui.label(number(stats.map(|s| s.median_ms)));
            ui.label(number(stats.map(|s| s.p95_ms)));
            ui.end_row();
        }
    });
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
    ui.weak(format!("Voice to voice of the last {LAST} turns, ms"));
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
            Bar::new(*place as f64, ms).fill(colour(record)).name(format!("Turn {place}: {ms:.0} ms{state}"))
        })
        .collect();
    let formatter = |bar: &Bar, _: &BarChart| bar.name.clone();
    Plot::new("turns")
        .height(tokens::CHART)
        .include_y(0.0)
        .allow_drag(false)
        .allow_zoom(false)
        .allow_scroll(false)
        .show_x(false)
        .show(ui, |plot| {
            plot.bar_chart(BarChart::new("voice to voice", bars).element_formatter(Box::new(formatter)))
        });
}
