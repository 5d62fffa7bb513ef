//! The conversation: what was said, what is being said, and the reply's words lighting up as they are heard.

use eframe::egui::text::{LayoutJob, TextFormat};
use eframe::egui::{self, Align, Color32, Frame, Layout, Margin, Rect, ScrollArea, TextStyle, Ui};
use repartee_engine::turn::machine::Activity;
use repartee_engine::turn::message::Stage;
use repartee_engine::turn::pipeline::{self, Readiness, ReplyText};

use super::status::{Status, stage_name};
use super::tokens::{BUBBLE_FREE, BUBBLE_MARGIN, ROUND, WIDE_GAP, palette};
use crate::live::Snapshot;

/// Who said something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    User,
    Agent,
}

/// The words heard and the words to come of a reply. `heard_bytes` out of place cuts at the character before.
pub(super) fn heard_and_not(reply: &ReplyText) -> (&str, &str) {
    let mut at = reply.heard_bytes.min(reply.text.len());
    while !reply.text.is_char_boundary(at) {
        at -= 1;
    }
    reply.text.split_at(at)
}

/// The reply under way, if it is to be shown: not one that is made ahead and may be thrown away.
pub(super) fn visible_reply(conversation: &pipeline::Snapshot) -> Option<&ReplyText> {
    let reply = conversation.reply.as_ref().filter(|reply| !reply.text.is_empty())?;
    let is_sure = matches!(conversation.activity, Activity::Thinking | Activity::Speaking);
    (is_sure || reply.heard_bytes > 0).then_some(reply)
}

/// Whether nothing was said yet.
pub(super) fn is_empty(snapshot: &Snapshot) -> bool {
    let conversation = &snapshot.conversation;
    conversation.entries.is_empty() && conversation.user.is_empty() && visible_reply(conversation).is_none()
}

/// Paints the conversation, held at its end while that is in sight. Gives the place for it and its size.
pub(super) fn show(ui: &mut Ui, snapshot: &Snapshot) -> Vec<Rect> {
    let conversation = &snapshot.conversation;
    let (user, reply) = (&*conversation.user, visible_reply(conversation));
    let scroll = ScrollArea::vertical().id_salt("conversation").auto_shrink(false).stick_to_bottom(true);
    let shown = scroll.show(ui, |ui| {
        for entry in conversation.entries.iter() {
            exchange(ui, &entry.user, heard_and_not(&entry.reply), entry.is_interrupted);
        }
        bubble(ui, Who::User, user, "");
        if let Some(reply) = reply {
            let (heard, unheard) = heard_and_not(reply);
            bubble(ui, Who::Agent, heard, unheard);
        }
    });
    vec![shown.inner_rect, Rect::from_min_size(egui::Pos2::ZERO, shown.content_size)]
}

/// What was said and heard, and what was written and not heard.
pub(super) fn exchange(ui: &mut Ui, user: &str, (heard, unheard): (&str, &str), is_interrupted: bool) {
    bubble(ui, Who::User, user, "");
    bubble(ui, Who::Agent, heard, unheard);
    if is_interrupted {
        ui.weak(match heard.trim().is_empty() {
            true => "Stopped before it spoke.",
            false => "You interrupted here.",
        });
    }
    ui.add_space(WIDE_GAP);
}

fn bubble(ui: &mut Ui, who: Who, text: &str, weak: &str) {
    if text.is_empty() && weak.is_empty() {
        return;
    }
    let palette = palette(ui.theme());
    let (layout, fill) = match who {
        Who::User => (Layout::right_to_left(Align::Min), palette.user_bubble),
        Who::Agent => (Layout::left_to_right(Align::Min), palette.reply_bubble),
    };
    let margin = f32::from(2 * BUBBLE_MARGIN);
    let width = ui.available_width() * (1.0 - BUBBLE_FREE) - margin;
    // Laid out first, for the bubble to be no wider than its words.
    let galley = ui.painter().layout_job(words(ui, width, &[(text, palette.text), (weak, palette.weak)]));
    ui.with_layout(layout, |ui| {
        let frame = Frame::new().fill(fill).corner_radius(ROUND).inner_margin(Margin::same(BUBBLE_MARGIN));
        frame.show(ui, |ui| ui.label(galley));
    });
}

fn words(ui: &Ui, width: f32, parts: &[(&str, Color32)]) -> LayoutJob {
    let font = TextStyle::Body.resolve(ui.style());
    let mut job = LayoutJob::default();
    for (text, colour) in parts {
        job.append(text, 0.0, TextFormat::simple(font.clone(), *colour));
    }
    job.wrap.max_width = width;
    job
}

/// Before the first word: what is being made ready, then what to do.
pub(super) fn welcome(ui: &mut Ui, snapshot: &Snapshot) {
    let status = Status::of(&snapshot.conversation);
    let line = match status {
        Status::CannotAnswer => "It cannot answer until the language model is here.",
        Status::Loading => "Getting ready. You can speak already.",
        Status::Listening | Status::Hearing => "Say something.",
        Status::KeyUp => "Hold the button and say something.",
        Status::NoMicrophone => "Type something below.",
        _ => "Type below, or let me hear you.",
    };
    ui.heading(line);
    for info in &snapshot.setup.stages {
        let name = stage_name(info.stage);
        match &info.readiness {
            Readiness::Loading | Readiness::Lost { .. } => {
                ui.weak(format!("{name}: {} is being loaded", info.model));
            }
            Readiness::Failed(reason) => {
                ui.colored_label(palette(ui.theme()).error, format!("{name}: {reason}"));
                if info.stage == Stage::Speak && status != Status::CannotAnswer {
                    ui.weak("Answers come in writing.");
                }
            }
            Readiness::Ready => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str, heard_bytes: usize) -> ReplyText {
        ReplyText { text: text.into(), heard_bytes }
    }

    #[test]
    fn words_are_split_between_characters_wherever_the_mark_is() {
        assert_eq!(heard_and_not(&reply("Hello there.", 5)), ("Hello", " there."));
        assert_eq!(heard_and_not(&reply("äöü", 3)), ("ä", "öü"));
        assert_eq!(heard_and_not(&reply("Hi", 99)), ("Hi", ""));
    }

    #[test]
    fn what_may_still_be_thrown_away_is_not_shown() {
        let mut conversation = pipeline::Snapshot { reply: Some(reply("Paris.", 0)), ..Default::default() };
        conversation.activity = Activity::Listening;
        assert!(visible_reply(&conversation).is_none());
        conversation.activity = Activity::Thinking;
        assert!(visible_reply(&conversation).is_some());
        conversation.activity = Activity::Idle;
        conversation.reply = Some(reply("Paris.", 3));
        assert!(visible_reply(&conversation).is_some());
        conversation.reply = Some(reply("", 0));
        assert!(visible_reply(&conversation).is_none());
    }
}
