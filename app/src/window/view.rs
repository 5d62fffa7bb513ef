//! The window's own state, and what its buttons and keys mean: a snapshot in, [`Request`]s out.

use std::path::PathBuf;
use std::sync::Arc;

use eframe::egui::{self, CentralPanel, Context, Id, Key as KeyName, Panel, Rect, Ui, UiBuilder};
use repartee_engine::turn::machine::Activity;
use repartee_engine::turn::pipeline::{Key, Listening, MicrophoneState};

use super::action::Action;
use super::choices::Choices;
use super::earlier::EarlierView;
use super::notices::Notices;
use super::status::Status;
use super::tokens;
use super::transcript;
use crate::live::{Command, Settings, Snapshot};
use crate::saved::Earlier;

/// What the window wants from what stands behind it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request {
    /// For the conversation.
    Tell(Command),
    /// Write the turns from this one on as a report, in the layout that the name's end says.
    SaveReport {
        /// The first turn.
        from: usize,
        /// Where to.
        path: PathBuf,
    },
    /// Say which conversations there were.
    ListEarlier,
    /// Read one of them.
    ReadEarlier(Earlier),
    /// Go on with one of them.
    GoOn(Earlier),
    /// Delete one of them.
    DeleteEarlier(Earlier),
    /// Show which models are not here, and fetch them.
    Fetch,
    /// Close the window.
    Quit,
}

/// What the window remembers between two frames.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The text being typed.
    pub(super) draft: String,
    /// Whether the latency overlay is there.
    pub(super) shows_latency: bool,
    /// Where the user has put its upper right corner.
    pub(super) latency_at: Option<[i32; 2]>,
    /// Whether the settings are there.
    pub(super) shows_settings: bool,
    /// Earlier conversations.
    pub(super) earlier: EarlierView,
    /// The first turn of the recording under way.
    pub(super) recording_from: Option<usize>,
    /// Where the report goes.
    pub(super) report_path: String,
    /// What came of the last report.
    pub(super) report_said: String,
    /// What there is to choose from.
    pub(super) choices: Choices,
    /// Settings being changed; sent when the change is complete.
    pub(super) draft_settings: Option<Settings>,
    /// What the user is told beside the conversation.
    pub(super) notices: Notices,
    /// What was clicked or pressed in this frame.
    pub(super) actions: Vec<Action>,
    /// Height of what stands below the overlay's figures.
    pub(super) recording_height: f32,
    /// The voice with which the reply under way began.
    pub(super) reply_voice: String,
    /// The user's words as last seen.
    words: Option<Arc<str>>,
    /// Where everything was when it was last laid out.
    layout: Vec<Rect>,
    talk_key: bool,
    /// The button of push to talk was pressed, and the pointer is still down.
    talk_button: bool,
    pub(super) requests: Vec<Request>,
}

impl View {
    /// Paints everything and gives what the user asked for.
    pub(super) fn show(&mut self, ui: &mut Ui, snapshot: &Snapshot) -> Vec<Request> {
        let window = ui.max_rect();
        self.make_room(None, window.width());
        self.follow(snapshot);
        self.keys(ui);
        let mut layout = Vec::new();
        let header = Panel::top("header").show(ui, |ui| {
            ui.add_space(tokens::GAP);
            self.header(ui, snapshot);
            ui.add_space(tokens::GAP);
        });
        layout.push(header.response.rect);
        let composer = Panel::bottom("composer").show(ui, |ui| {
            ui.add_space(tokens::GAP);
            self.composer(ui, snapshot);
            ui.add_space(tokens::GAP);
        });
        layout.push(composer.response.rect);
        if self.shows_settings {
            let panel = Panel::right("settings").default_size(tokens::SETTINGS);
            layout.push(panel.show(ui, |ui| self.settings(ui, snapshot)).response.rect);
        }
        if self.earlier.is_shown {
            let panel = Panel::left("earlier").default_size(tokens::EARLIER);
            layout.push(panel.show(ui, |ui| self.earlier_list(ui)).response.rect);
        }
        let central = CentralPanel::default().show(ui, |ui| {
            let mut room = ui.available_rect_before_wrap();
            *room.right_mut() -= self.room_for_overlay(room);
            let column = UiBuilder::new().max_rect(room);
            ui.scope_builder(column, |ui| {
                let notices = self.notices(ui, snapshot);
                let shown = match self.earlier.open.take() {
                    Some(open) => self.earlier_one(ui, open),
                    None => self.conversation(ui, snapshot),
                };
                layout.extend(shown);
                layout.push(notices);
                notices.height()
            })
            .inner
        });
        let conversation = central.response.rect;
        layout.push(conversation);
        if self.shows_latency {
            layout.extend(self.latency(ui.ctx(), snapshot, conversation, window, central.inner));
        }
        self.settle(ui.ctx(), layout);
        for action in std::mem::take(&mut self.actions) {
            self.perform(action, snapshot);
            self.make_room(Some(action), window.width());
        }
        std::mem::take(&mut self.requests)
    }

    /// Panels take their size, and what is held at its end its place, from the pass before: where anything is not where it
    /// was, there is another pass at once. Nobody sees the one between, and no event is needed to put it right.
    fn settle(&mut self, context: &Context, layout: Vec<Rect>) {
        if std::mem::replace(&mut self.layout, layout) != self.layout {
            context.request_discard("the layout has changed");
            if !context.will_discard() {
                context.request_repaint();
            }
        }
    }

    /// What the user says now belongs to the conversation under way: it is shown.
    fn follow(&mut self, snapshot: &Snapshot) {
        let words = &snapshot.conversation.user;
        let before = self.words.replace(words.clone());
        if before.is_some_and(|before| before != *words) && !words.is_empty() {
            self.leave_earlier();
        }
        if !is_busy(snapshot) {
            self.reply_voice.clone_from(&snapshot.setup.settings.voice);
        }
    }

    fn leave_earlier(&mut self) {
        // A question is answered first.
        if !self.earlier.asks_to_delete {
            self.earlier.open = None;
        }
    }

    fn keys(&mut self, ui: &Ui) {
        // A question is answered first.
        if self.earlier.asks_to_delete {
            return;
        }
        // A list that is open is closed by the same key.
        let closes_list = egui::Popup::is_any_open(ui.ctx());
        for action in Action::ALL {
            let is_for_list = closes_list && action == Action::Stop;
            let pressed = |key| ui.ctx().input_mut(|input| input.consume_shortcut(&key));
            if !is_for_list && action.shortcut().is_some_and(pressed) {
                self.actions.push(action);
            }
        }
    }

    /// The key or button of push to talk is up or down.
    pub(super) fn talk(&mut self, is_down: bool) {
        if std::mem::replace(&mut self.talk_key, is_down) != is_down {
            self.tell(Command::TalkKey(if is_down { Key::Down } else { Key::Up }));
        }
    }

    pub(super) fn tell(&mut self, command: Command) {
        self.requests.push(Request::Tell(command));
    }

    /// In a narrow window, settings and earlier conversations take turns: the one that was opened last is there.
    fn make_room(&mut self, opened: Option<Action>, width: f32) {
        let both = self.shows_settings && self.earlier.is_shown;
        if both && width < tokens::SETTINGS + tokens::EARLIER + tokens::NARROW {
            match opened {
                Some(Action::ToggleEarlier) => self.hide_settings(),
                _ => self.earlier.hide(),
            }
        }
    }

    fn perform(&mut self, action: Action, snapshot: &Snapshot) {
        match action {
            Action::ToggleMute => {
                let mut settings = snapshot.setup.settings.clone();
                settings.listening = match settings.listening {
                    Listening::Never => Listening::Always,
                    Listening::Always | Listening::WhileKeyDown => Listening::Never,
                };
                self.tell(Command::Set(Box::new(settings)));
            }
            Action::Stop => self.tell(Command::Stop),
            Action::Send => {
                let text = std::mem::take(&mut self.draft);
                if !text.trim().is_empty() {
                    self.earlier.open = None;
                    self.tell(Command::Type(text.trim().into()));
                }
            }
            Action::NewConversation => {
                self.earlier.open = None;
                self.tell(Command::Clear);
                if self.earlier.is_shown {
                    self.requests.push(Request::ListEarlier);
                }
            }
            Action::ToggleEarlier => self.toggle_earlier(),
            Action::ToggleLatency => self.shows_latency = !self.shows_latency,
            Action::ToggleSettings => {
                if self.shows_settings {
                    self.hide_settings();
                } else {
                    self.shows_settings = true;
                }
            }
            Action::ToggleRecording => {
                self.report_said.clear();
                self.recording_from = match self.recording_from {
                    Some(_) => None,
                    None => Some(snapshot.conversation.records.len()),
                };
            }
            Action::SaveReport => {
                let from = self.recording_from.unwrap_or(0);
                self.requests.push(Request::SaveReport { from, path: self.report_path.trim().into() });
            }
            Action::Fetch => self.requests.push(Request::Fetch),
            Action::DismissNotices => self.dismiss_notices(snapshot),
            Action::Quit => self.requests.push(Request::Quit),
        }
    }

    /// What was changed and not sent yet is sent.
    fn hide_settings(&mut self) {
        self.shows_settings = false;
        if let Some(settings) = self.draft_settings.take() {
            self.tell(Command::Set(Box::new(settings)));
        }
    }

    fn conversation(&mut self, ui: &mut Ui, snapshot: &Snapshot) -> Vec<Rect> {
        if !transcript::is_empty(snapshot) {
            return transcript::show(ui, snapshot);
        }
        let cannot_answer = Status::of(&snapshot.conversation) == Status::CannotAnswer;
        egui::ScrollArea::vertical().id_salt("welcome").auto_shrink(false).show(ui, |ui| {
            ui.vertical_centered(|ui| {
                // By the window: a notice moves no button.
                ui.add_space(ui.ctx().content_rect().height() * tokens::WELCOME);
                transcript::welcome(ui, snapshot);
                if cannot_answer {
                    ui.add_space(tokens::GAP);
                    self.button(ui, Action::Fetch);
                }
            });
        });
        Vec::new()
    }

    fn composer(&mut self, ui: &mut Ui, snapshot: &Snapshot) {
        let settings = &snapshot.setup.settings;
        ui.horizontal(|ui| {
            if snapshot.conversation.microphone != MicrophoneState::Missing {
                self.toggle(ui, Action::ToggleMute, settings.listening == Listening::Never);
            }
            if settings.listening == Listening::WhileKeyDown {
                let talk = ui
                    .button("Hold to talk")
                    .on_hover_text("You are heard while you hold this button, or the space bar");
                // Once it is down, it is up when the pointer is, wherever that has gone meanwhile.
                let is_down = ui.input(|input| input.pointer.any_down());
                self.talk_button = is_down && (self.talk_button || talk.is_pointer_button_down_on());
                // The space bar talks where no text is typed.
                let space = ui.input(|input| input.key_down(KeyName::Space));
                let space = space && ui.memory(|m| m.focused().is_none_or(|id| id == talk.id));
                self.talk(self.talk_button || space);
            } else {
                self.talk(false);
            }
            let is_busy = is_busy(snapshot);
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                ui.add_enabled_ui(is_busy, |ui| self.button(ui, Action::Stop));
                ui.add_enabled_ui(!self.draft.trim().is_empty(), |ui| self.button(ui, Action::Send));
                // A button that comes or goes beside it takes the focus from nobody.
                let field = egui::TextEdit::singleline(&mut self.draft)
                    .id(message_field())
                    .hint_text("Type a message")
                    .desired_width(f32::INFINITY);
                let field = ui.add(field);
                field.widget_info(|| egui::WidgetInfo::labeled(egui::Role::TextInput, true, "Message"));
                if field.changed() {
                    self.leave_earlier();
                }
                if field.lost_focus() && ui.input(|input| input.key_pressed(KeyName::Enter)) {
                    self.actions.push(Action::Send);
                    field.request_focus();
                }
            });
        });
    }
}

/// The field for messages.
pub(super) fn message_field() -> Id {
    Id::unique("message")
}

/// Whether a reply is under way.
pub(super) fn is_busy(snapshot: &Snapshot) -> bool {
    matches!(snapshot.conversation.activity, Activity::Thinking | Activity::Speaking)
}
