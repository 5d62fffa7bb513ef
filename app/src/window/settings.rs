//! The settings: what listens, answers and speaks, on what, and how.

use std::time::Duration;

use eframe::egui::{self, ComboBox, Response, ScrollArea, Slider, Ui};
use repartee_engine::models::kokoro::SPEEDS;
use repartee_engine::turn::message::Stage;
use repartee_engine::turn::pipeline::{Listening, Readiness};

use super::choices::Choice;
use super::overlay::report_field;
use super::status::stage_name;
use super::tokens::{GAP, WIDE_GAP, palette};
use super::view::{View, is_busy, message_field};
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
            // The scroll bar stands beside, not upon.
            ui.set_max_width(ui.available_width() - WIDE_GAP);
            self.sound(ui, &mut settings);
            self.models(ui, snapshot, &mut settings);
            self.voice(ui, snapshot, &mut settings);
            turns(ui, &mut settings);
            ui.add_space(WIDE_GAP);
            ui.heading("Window");
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
        // A slider or a text under way is sent when it is let go, everything else at once. What is typed elsewhere is no
        // change of a setting.
        if settings != before {
            self.draft_settings = Some(settings);
        }
        let focus = ui.ctx().memory(|memory| memory.focused());
        let types_elsewhere = focus.is_some_and(|id| id == message_field() || id == report_field());
        let is_typed = ui.ctx().text_edit_focused() && !types_elsewhere;
        let is_under_way = ui.ctx().egui_is_using_pointer() || is_typed;
        if !is_under_way && let Some(settings) = self.draft_settings.take() {
            self.tell(Command::Set(Box::new(settings)));
        }
    }

    fn sound(&self, ui: &mut Ui, settings: &mut Settings) {
        ui.heading("Sound");
        device(ui, "Microphone", &mut settings.input, &self.choices.inputs);
        device(ui, "Speaker", &mut settings.output, &self.choices.outputs);
        ui.checkbox(&mut settings.headphones, "Headphones")
            .on_hover_text("The microphone does not hear the speaker: the echo canceller is switched off.");
        ui.add_space(WIDE_GAP);
    }

    fn models(&self, ui: &mut Ui, snapshot: &Snapshot, settings: &mut Settings) {
        ui.heading("Models");
        choice(ui, "Speech recognition", &mut settings.stt, &self.choices.stt);
        self.runs_on(ui, snapshot, Stage::Transcribe, &mut settings.backends[0]);
        choice(ui, "Language model", &mut settings.llm, &self.choices.llm);
        self.runs_on(ui, snapshot, Stage::Reply, &mut settings.backends[1]);
        let temperature = Slider::new(&mut settings.temperature, 0.0..=2.0);
        slider(ui, "Temperature", temperature)
            .on_hover_text("0 always takes the most likely word; more is livelier and less reliable.");
        let mut words = settings.instructions.clone().unwrap_or_default();
        let label = ui.label("Instructions");
        let field = egui::TextEdit::multiline(&mut words)
            .desired_rows(2)
            .desired_width(f32::INFINITY)
            .hint_text("The usual ones");
        let field = ui.add(field).labelled_by(label.id);
        let field = field.on_hover_ui(|ui| {
            ui.label("What the assistant is told about itself and how to answer");
            if settings.instructions.is_none() {
                let usual = crate::commands::talk::instructions(&jiff::ZonedDateTime::now());
                ui.weak(format!("The usual ones: {usual}"));
            }
        });
        if field.changed() {
            settings.instructions = (!words.trim().is_empty()).then_some(words);
        }
        ui.add_space(WIDE_GAP);
    }

    fn voice(&self, ui: &mut Ui, snapshot: &Snapshot, settings: &mut Settings) {
        ui.heading("Voice");
        choice(ui, "Who speaks", &mut settings.voice, &self.choices.voices);
        if is_busy(snapshot) && settings.voice != self.reply_voice {
            ui.weak("From the next reply on.");
        }
        self.runs_on(ui, snapshot, Stage::Speak, &mut settings.backends[2]);
        slider(ui, "Speed", Slider::new(&mut settings.speed, SPEEDS).logarithmic(true))
            .on_hover_text("1 is the voice's own speed.");
        ui.add_space(WIDE_GAP);
    }

    /// Where a stage computes: what was asked for, and what really runs and why.
    fn runs_on(&self, ui: &mut Ui, snapshot: &Snapshot, stage: Stage, backend: &mut BackendName) {
        let name = stage_name(stage);
        ui.horizontal_wrapped(|ui| {
            ui.weak("runs on");
            let shown = backend_name(*backend);
            let combo = ComboBox::from_id_salt(("backend", name)).selected_text(shown).show_ui(ui, |ui| {
                for possible in <BackendName as clap::ValueEnum>::value_variants() {
                    let problem = self.choices.gpu_problem.as_deref().filter(|_| is_gpu(*possible));
                    let shown = ui.add_enabled_ui(problem.is_none(), |ui| {
                        ui.selectable_value(backend, *possible, backend_name(*possible))
                    });
                    let problem = problem.unwrap_or_default();
                    shown.inner.on_disabled_hover_text(problem);
                    if !problem.is_empty() {
                        ui.weak(problem);
                    }
                }
            });
            let label = format!("{name} runs on");
            combo.response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::ComboBox, true, &label));
            combo.response.on_hover_text("What computes. Auto takes the fastest that can.");
            let Some(info) = snapshot.setup.stages.iter().find(|info| info.stage == stage) else { return };
            match &info.readiness {
                Readiness::Loading | Readiness::Lost { .. } => ui.weak("is being loaded"),
                Readiness::Ready => ui.weak(&info.backend),
                Readiness::Failed(reason) => ui.colored_label(palette(ui.theme()).error, &**reason),
            };
        });
    }
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

fn is_gpu(backend: BackendName) -> bool {
    match backend {
        BackendName::Auto | BackendName::Cpu => false,
        #[cfg(feature = "wgpu")]
        BackendName::Wgpu => true,
    }
}

fn turns(ui: &mut Ui, settings: &mut Settings) {
    ui.heading("Turns");
    let choices = [
        (Listening::Always, "Always listen", "You are heard whenever you speak."),
        (Listening::WhileKeyDown, "Push to talk", "You are heard while you hold a button or the space bar."),
        (Listening::Never, "Muted", "You are not heard; type instead."),
    ];
    for (listening, name, meaning) in choices {
        ui.radio_value(&mut settings.listening, listening, name).on_hover_text(meaning);
    }
    let mut ms = settings.end_of_turn.as_millis() as u64;
    let silence = Slider::new(&mut ms, END_OF_TURN_MS).step_by(50.0).suffix(" ms");
    slider(ui, "Silence that ends a turn", silence).on_hover_text(
        "After so much silence you have finished; later after words that are clearly unfinished.",
    );
    settings.end_of_turn = Duration::from_millis(ms);
}

/// A slider under its name.
fn slider(ui: &mut Ui, label: &str, slider: Slider<'_>) -> Response {
    let label = ui.label(label);
    ui.add(slider).labelled_by(label.id)
}

/// A list to choose from, under its name. As wide as there is room: names of devices are long.
fn list(ui: &mut Ui, label: &str, shown: &str, add: impl FnOnce(&mut Ui)) {
    ui.label(label);
    let combo = ComboBox::from_id_salt(label).width(ui.available_width()).truncate().selected_text(shown);
    let combo = combo.show_ui(ui, add);
    combo.response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::ComboBox, true, label));
    combo.response.on_hover_text(format!("{label}: {shown}"));
}

fn choice(ui: &mut Ui, label: &str, value: &mut String, choices: &[Choice]) {
    let shown =
        choices.iter().find(|c| c.id == *value).map_or(value.as_str(), |c| c.name.as_str()).to_owned();
    list(ui, label, &shown, |ui| {
        for choice in choices {
            let possible = ui.add_enabled_ui(choice.problem.is_none(), |ui| {
                ui.selectable_value(value, choice.id.clone(), &choice.name)
            });
            if let Some(problem) = &choice.problem {
                possible.inner.on_disabled_hover_text(problem);
            }
        }
    });
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
    let shown = shown.to_owned();
    list(ui, label, &shown, |ui| {
        ui.selectable_value(value, DeviceChoice::Default, DEFAULT);
        ui.selectable_value(value, DeviceChoice::Off, OFF);
        for choice in choices {
            ui.selectable_value(value, DeviceChoice::Device(choice.id.clone()), &choice.name);
        }
    });
}
