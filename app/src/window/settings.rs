//! The settings: what listens, answers and speaks, on what, and how.

use std::time::Duration;

use eframe::egui::{self, ComboBox, ScrollArea, Slider, Ui};
use repartee_engine::models::kokoro::SPEEDS;
use repartee_engine::turn::message::Stage;
use repartee_engine::turn::pipeline::{Listening, Readiness};

use super::choices::Choice;
use super::status::stage_name;
use super::tokens::{GAP, WIDE_GAP, palette};
use super::view::View;
use crate::commands::setup::BackendName;
use crate::live::{Command, DeviceChoice, Settings, Snapshot};

/// The shortest and longest silences that may end a turn.
const END_OF_TURN_MS: std::ops::RangeInclusive<u64> = 200..=2_000;

impl View {
    pub(super) fn settings(&mut self, ui: &mut Ui, snapshot: &Snapshot) {
        let mut settings = self.draft_settings.clone().unwrap_or_else(|| snapshot.setup.settings.clone());
        let before = settings.clone();
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            ui.add_space(GAP);
            self.sound(ui, &mut settings);
            self.models(ui, snapshot, &mut settings);
            self.voice(ui, &mut settings);
            turns(ui, &mut settings);
            ui.add_space(WIDE_GAP);
            ui.strong("Window");
            let mut theme = ui.ctx().options(|options| options.theme_preference);
            let themes = [
                (egui::ThemePreference::System, "As the system"),
                (egui::ThemePreference::Light, "Light"),
                (egui::ThemePreference::Dark, "Dark"),
            ];
            for (possible, name) in themes {
                ui.radio_value(&mut theme, possible, name);
            }
            ui.ctx().set_theme(theme);
        });
        // A slider or a text under way is sent when it is let go, everything else at once.
        if settings != before {
            self.draft_settings = Some(settings);
        }
        let is_under_way = ui.ctx().egui_is_using_pointer() || ui.ctx().text_edit_focused();
        if !is_under_way && let Some(settings) = self.draft_settings.take() {
            self.tell(Command::Set(Box::new(settings)));
        }
    }

    fn sound(&self, ui: &mut Ui, settings: &mut Settings) {
        ui.strong("Sound");
        device(ui, "Microphone", &mut settings.input, &self.choices.inputs);
        device(ui, "Speaker", &mut settings.output, &self.choices.outputs);
        ui.checkbox(&mut settings.headphones, "Headphones")
            .on_hover_text("The microphone does not hear the speaker: the echo canceller is switched off.");
        ui.add_space(WIDE_GAP);
    }

    fn models(&self, ui: &mut Ui, snapshot: &Snapshot, settings: &mut Settings) {
        ui.strong("Models");
        choice(ui, "Speech recognition", &mut settings.stt, &self.choices.stt);
        runs_on(ui, snapshot, Stage::Transcribe, &mut settings.backends[0]);
        choice(ui, "Language model", &mut settings.llm, &self.choices.llm);
        runs_on(ui, snapshot, Stage::Reply, &mut settings.backends[1]);
        ui.add(Slider::new(&mut settings.temperature, 0.0..=2.0).text("Temperature"))
            .on_hover_text("0 always takes the most likely word; more is livelier and less reliable.");
        let mut words = settings.instructions.clone().unwrap_or_default();
        let label = ui.label("Instructions");
        let field = egui::TextEdit::multiline(&mut words).desired_rows(2).hint_text("The usual ones");
        if ui.add(field).labelled_by(label.id).changed() {
            settings.instructions = (!words.trim().is_empty()).then_some(words);
        }
        ui.add_space(WIDE_GAP);
    }

    fn voice(&self, ui: &mut Ui, settings: &mut Settings) {
        ui.strong("Voice");
        choice(ui, "Voice", &mut settings.voice, &self.choices.voices);
        ui.add(Slider::new(&mut settings.speed, SPEEDS).logarithmic(true).text("Speed"));
        ui.add_space(WIDE_GAP);
    }
}

/// Where a stage computes: what was asked for, and what really runs and why.
fn runs_on(ui: &mut Ui, snapshot: &Snapshot, stage: Stage, backend: &mut BackendName) {
    let name = stage_name(stage);
    ui.horizontal(|ui| {
        let shown = backend_name(*backend);
        let combo = ComboBox::from_id_salt(("backend", name)).selected_text(shown).show_ui(ui, |ui| {
            for possible in <BackendName as clap::ValueEnum>::value_variants() {
                ui.selectable_value(backend, *possible, backend_name(*possible));
            }
        });
        let label = format!("{name} runs on");
        combo.response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::ComboBox, true, &label));
        let Some(info) = snapshot.setup.stages.iter().find(|info| info.stage == stage) else { return };
        match &info.readiness {
            Readiness::Loading => ui.weak("is being loaded"),
            Readiness::Ready => ui.weak(&info.backend),
            Readiness::Failed(reason) => ui.colored_label(palette(ui.theme()).error, &**reason),
        };
    });
}

/// A backend's name for people.
fn backend_name(backend: BackendName) -> &'static str {
    match backend {
        BackendName::Auto => "Auto",
        BackendName::Cpu => "Processor",
        #[cfg(feature = "wgpu")]
        BackendName::Wgpu => "GPU (wgpu)",
    }
}

fn turns(ui: &mut Ui, settings: &mut Settings) {
    ui.strong("Turns");
    let choices = [
        (Listening::Always, "Always listen"),
        (Listening::WhileKeyDown, "Push to talk"),
        (Listening::Never, "Muted"),
    ];
    for (listening, name) in choices {
        ui.radio_value(&mut settings.listening, listening, name);
    }
    let mut ms = settings.end_of_turn.as_millis() as u64;
    let slider =
        Slider::new(&mut ms, END_OF_TURN_MS).step_by(50.0).suffix(" ms").text("Silence that ends a turn");
    ui.add(slider).on_hover_text("Longer after words that are clearly unfinished.");
    settings.end_of_turn = Duration::from_millis(ms);
}

fn choice(ui: &mut Ui, label: &str, value: &mut String, choices: &[Choice]) {
    let shown =
        choices.iter().find(|c| c.id == *value).map_or(value.as_str(), |c| c.name.as_str()).to_owned();
    let combo = ComboBox::from_label(label).selected_text(shown).show_ui(ui, |ui| {
        for choice in choices {
            let possible = ui.add_enabled_ui(choice.problem.is_none(), |ui| {
                ui.selectable_value(value, choice.id.clone(), &choice.name)
            });
            if let Some(problem) = &choice.problem {
                possible.inner.on_disabled_hover_text(problem);
            }
        }
    });
    combo.response.on_hover_text(label);
}

fn device(ui: &mut Ui, label: &str, value: &mut DeviceChoice, choices: &[Choice]) {
    const DEFAULT: &str = "The system's default";
    const OFF: &str = "None";
    let shown = match &*value {
        DeviceChoice::Default => DEFAULT,
        DeviceChoice::Off => OFF,
        DeviceChoice::Device(id) => {
            choices.iter().find(|c| c.id == *id).map_or(id.as_str(), |c| c.name.as_str())
        }
    };
    ComboBox::from_label(label).selected_text(shown.to_owned()).show_ui(ui, |ui| {
        ui.selectable_value(value, DeviceChoice::Default, DEFAULT);
        ui.selectable_value(value, DeviceChoice::Off, OFF);
        for choice in choices {
            ui.selectable_value(value, DeviceChoice::Device(choice.id.clone()), &choice.name);
        }
    });
}
