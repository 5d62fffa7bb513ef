//! What the user is told beside the conversation: once, however often it happens, and only while it is so.

use std::collections::{BTreeMap, BTreeSet};

use eframe::egui::{self, Align, Label, Layout, Panel, Rect, Ui};
use repartee_engine::latency::{Metric, TurnRecord};
use repartee_engine::turn::message::Stage;
use repartee_engine::turn::pipeline::{Notice, NoticeKind, Readiness};

use super::action::Action;
use super::status::Status;
use super::tokens;
use super::transcript;
use super::view::View;
use crate::live::Snapshot;
use crate::saved::Kept;

/// So many at once; more would hide the conversation.
const MOST_NOTICES: usize = 3;

/// What the window remembers of them.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// What went wrong behind the window.
    said: Vec<Said>,
    dismissed: BTreeSet<Source>,
    /// When a notice of the conversation was first seen.
    seen: BTreeMap<u64, Seen>,
}

#[derive(Debug)]
struct Said {
    about: Option<Kept>,
    text: String,
    times: u32,
}

/// What was so when a notice was first seen.
#[derive(Debug)]
struct Seen {
    last_turn: u64,
    recogniser: String,
}

/// Where a line comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Trouble(u64),
    Notice(u64),
}

/// A line to show.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    text: String,
    times: u32,
    sources: Vec<Source>,
}

impl Notices {
    /// Tells the user that something failed.
    pub(super) fn say(&mut self, text: String) {
        self.say_about(None, text);
    }

    /// Tells the user that something is not kept, until [`take_back`](Self::take_back).
    pub(super) fn not_kept(&mut self, about: Kept, text: String) {
        self.said.retain(|said| said.about != Some(about) || said.text == text);
        self.say_about(Some(about), text);
    }

    fn say_about(&mut self, about: Option<Kept>, text: String) {
        match self.said.iter_mut().find(|said| said.text == text) {
            Some(said) => said.times += 1,
            None => self.said.push(Said { about, text, times: 1 }),
        }
    }

    /// It is kept again.
    pub(super) fn take_back(&mut self, about: Kept) {
        self.said.retain(|said| said.about != Some(about));
    }

    /// What is so now, the newest last.
    fn lines(&mut self, snapshot: &Snapshot) -> Vec<Line> {
        let said = self.said.iter().map(|said| (said.text.clone(), said.times, None));
        let mut all: Vec<_> = said.collect();
        for trouble in snapshot.setup.troubles.iter().filter(|trouble| !trouble.is_over) {
            all.push((trouble.text.to_string(), trouble.times, Some(Source::Trouble(trouble.number))));
        }
        for notice in snapshot.conversation.notices.iter() {
            if self.is_so(notice, snapshot) && !is_on_page(notice, snapshot) {
                all.push((notice.text.to_string(), 1, Some(Source::Notice(notice.number))));
            }
        }
        let mut lines: Vec<Line> = Vec::new();
        for (text, times, source) in all {
            if source.is_some_and(|source| self.dismissed.contains(&source)) {
                continue;
            }
            match lines.iter_mut().find(|line| line.text == text) {
                Some(line) => {
                    line.times += times;
                    line.sources.extend(source);
                }
                None => lines.push(Line { text, times, sources: Vec::from_iter(source) }),
            }
        }
        lines
    }

    /// Whether what a notice of the conversation tells is still so.
    fn is_so(&mut self, notice: &Notice, snapshot: &Snapshot) -> bool {
        let records = &snapshot.conversation.records;
        let last_turn = || records.last().map_or(0, |record| record.id);
        let recogniser = || snapshot.setup.settings.stt.clone();
        let seen = self
            .seen
            .entry(notice.number)
            .or_insert_with(|| Seen { last_turn: last_turn(), recogniser: recogniser() });
        match notice.kind {
            NoticeKind::Model => {
                let is_reason = |readiness: &Readiness| matches!(readiness, Readiness::Failed(reason) if *reason == notice.text);
                snapshot.conversation.readiness.iter().any(is_reason)
            }
            // The first record after it is that of the turn in which it failed.
            NoticeKind::Failed(stage) => {
                let later = records.iter().filter(|record| record.id > seen.last_turn).skip(1);
                !later.into_iter().any(|record| worked(record, stage))
            }
            NoticeKind::Slow => seen.recogniser == snapshot.setup.settings.stt,
            NoticeKind::Forgotten | NoticeKind::Sound => true,
        }
    }

    fn dismiss(&mut self, line: &Line) {
        self.dismissed.extend(&line.sources);
        self.said.retain(|said| said.text != line.text);
    }
}

/// Whether it is said already where the conversation is to be.
fn is_on_page(notice: &Notice, snapshot: &Snapshot) -> bool {
    let says =
        |readiness: &Readiness| matches!(readiness, Readiness::Failed(reason) if *reason == notice.text);
    transcript::is_empty(snapshot) && snapshot.setup.stages.iter().any(|info| says(&info.readiness))
}

/// Whether a stage did its work in a turn.
fn worked(record: &TurnRecord, stage: Stage) -> bool {
    let end = match stage {
        Stage::Transcribe => Metric::TextDecoder,
        Stage::Reply => Metric::FirstToken,
        Stage::Speak => Metric::FirstChunk,
    };
    record.stages.contains_key(&end)
}

impl View {
    /// What the user is told, at the lower end of `ui`: what comes in stands above what is there already, so that no button
    /// moves away from the pointer. Gives its place.
    pub(super) fn notices(&mut self, ui: &mut Ui, snapshot: &Snapshot) -> Rect {
        let status = Status::of(&snapshot.conversation);
        // In an empty conversation that is said large.
        let is_said =
            status == Status::CannotAnswer && transcript::is_empty(snapshot) && self.earlier.open.is_none();
        let hint = status.hint().filter(|_| !is_said);
        let lines = self.notices.lines(snapshot);
        if hint.is_none() && lines.is_empty() {
            return Rect::ZERO;
        }
        let hidden = lines.len().saturating_sub(MOST_NOTICES);
        let panel = Panel::bottom("notices").show_separator_line(false).frame(egui::Frame::NONE);
        let shown = panel.show(ui, |ui| {
            ui.add_space(tokens::GAP);
            if let Some(hint) = hint {
                ui.horizontal_wrapped(|ui| {
                    ui.weak(hint);
                    if status == Status::CannotAnswer {
                        self.button(ui, Action::Fetch);
                    }
                });
            }
            if hidden > 0 {
                ui.weak(format!("and {hidden} more"));
            }
            for (i, line) in lines[hidden..].iter().enumerate().rev() {
                let words = match line.times {
                    1 => line.text.clone(),
                    times => format!("{} ({times} times)", line.text),
                };
                let has_all = i == 0 && lines.len() > 1;
                let all = has_all.then_some(Action::DismissNotices);
                if self.notice(ui, &words, all) {
                    self.notices.dismiss(line);
                }
            }
        });
        shown.response.rect
    }

    /// A line with a button to dismiss it; whether it was pressed. `action` has a button beside it.
    fn notice(&mut self, ui: &mut Ui, words: &str, action: Option<Action>) -> bool {
        let frame = egui::Frame::new().fill(tokens::palette(ui.theme()).notice).corner_radius(tokens::ROUND);
        let shown = frame.inner_margin(egui::Margin::same(tokens::BUBBLE_MARGIN)).show(ui, |ui| {
            let row = Layout::right_to_left(Align::Center);
            let size = [ui.available_width(), ui.spacing().interact_size.y].into();
            let row = ui.allocate_ui_with_layout(size, row, |ui| {
                let button = ui.button("Dismiss").on_hover_text("Take this line away");
                if let Some(action) = action {
                    self.button(ui, action);
                }
                let text = Layout::top_down(Align::Min);
                ui.with_layout(text, |ui| ui.add(Label::new(words).wrap()));
                button.clicked()
            });
            row.inner
        });
        shown.inner
    }

    pub(super) fn dismiss_notices(&mut self, snapshot: &Snapshot) {
        for line in self.notices.lines(snapshot) {
            self.notices.dismiss(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use repartee_audio::Direction;
    use repartee_engine::turn::pipeline;

    use super::super::overlay::tests::record;
    use super::*;
    use crate::live::{About, Setup, Trouble};

    fn notice(number: u64, kind: NoticeKind, text: &str) -> Notice {
        Notice { number, kind, text: text.into() }
    }

    fn snapshot(notices: Vec<Notice>, troubles: Vec<Trouble>) -> Snapshot {
        let conversation = pipeline::Snapshot { notices: Arc::new(notices), ..Default::default() };
        let setup = Setup { troubles, ..Setup::default() };
        Snapshot { revision: 0, conversation: Arc::new(conversation), setup: Arc::new(setup) }
    }

    fn shown(notices: &mut Notices, snapshot: &Snapshot) -> Vec<(String, u32)> {
        notices.lines(snapshot).into_iter().map(|line| (line.text, line.times)).collect()
    }

    #[test]
    fn the_same_is_told_once_with_a_count() {
        let mut notices = Notices::default();
        let full = |number| notice(number, NoticeKind::Forgotten, "the memory was full");
        let lost = |number, times, is_over| Trouble {
            number,
            about: About::Device(Direction::Input),
            text: "lost".into(),
            times,
            is_over,
        };
        notices.say("no disk".into());
        notices.say("no disk".into());
        let told = snapshot(vec![full(1), full(4)], vec![lost(1, 1, true), lost(2, 2, false)]);
        let expected = [("no disk".into(), 2), ("lost".into(), 2), ("the memory was full".into(), 2)];
        assert_eq!(shown(&mut notices, &told), expected);
        // What was dismissed comes back when it happens again.
        for line in notices.lines(&told) {
            notices.dismiss(&line);
        }
        assert_eq!(shown(&mut notices, &told), []);
        let again = snapshot(vec![full(1), full(4), full(5)], vec![lost(2, 2, false)]);
        assert_eq!(shown(&mut notices, &again), [("the memory was full".into(), 1)]);
    }

    #[test]
    fn what_has_recovered_is_taken_back() {
        let mut notices = Notices::default();
        notices.not_kept(Kept::Words, "not kept: no disk".into());
        notices.not_kept(Kept::Words, "not kept: read-only".into());
        let failed = notice(2, NoticeKind::Failed(Stage::Speak), "the voice failed");
        let all = vec![
            notice(1, NoticeKind::Model, "no such model"),
            failed,
            notice(3, NoticeKind::Slow, "too slow"),
        ];
        let mut told = snapshot(all, Vec::new());
        let change = |told: &mut Snapshot, change: fn(&mut pipeline::Snapshot)| {
            change(Arc::make_mut(&mut told.conversation));
        };
        change(&mut told, |c| {
            c.readiness[1] = Readiness::Failed("no such model".into());
            c.records = Arc::new(vec![record(7, 700.0)]);
        });
        let texts = |notices: &mut Notices, told: &Snapshot| -> Vec<String> {
            notices.lines(told).into_iter().map(|line| line.text).collect()
        };
        let four = ["not kept: read-only", "no such model", "the voice failed", "too slow"];
        assert_eq!(texts(&mut notices, &told), four);
        notices.take_back(Kept::Settings);
        assert_eq!(texts(&mut notices, &told).len(), 4);
        notices.take_back(Kept::Words);
        change(&mut told, |c| c.readiness[1] = Readiness::Ready);
        // The record of the turn in which it failed says nothing.
        change(&mut told, |c| c.records = Arc::new(vec![record(7, 700.0), record(8, 700.0)]));
        assert_eq!(texts(&mut notices, &told), ["the voice failed", "too slow"]);
        change(&mut told, |c| {
            let mut typed = TurnRecord::clone(&record(9, 700.0));
            typed.stages.remove(&Metric::FirstChunk);
            c.records = Arc::new(vec![record(7, 700.0), record(8, 700.0), Arc::new(typed)]);
        });
        assert_eq!(texts(&mut notices, &told).len(), 2, "nothing was spoken in it");
        change(&mut told, |c| {
            c.records = Arc::new(vec![record(8, 700.0), record(9, 700.0), record(10, 700.0)]);
        });
        Arc::make_mut(&mut told.setup).settings.stt = "whisper-tiny.en".into();
        assert_eq!(texts(&mut notices, &told), Vec::<String>::new());
    }
}
