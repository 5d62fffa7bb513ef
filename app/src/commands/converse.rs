//! `repartee talk` without recordings: a live conversation in the terminal.
//!
//! What was heard and the reply's words as they are spoken are written line by line. On a terminal, a last line shows what
//! happens meanwhile, and what is typed is answered too; an empty line stops the reply. Lines that come from a pipe are
//! questions, each asked when the one before is answered.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use anyhow::{Context, Result};
use repartee_audio::devices::{self, DeviceInfo};
use repartee_audio::{AudioError, Direction};
use repartee_engine::latency::{Config, Machine, Report, StageConfig};
use repartee_engine::turn::machine::Activity;
use repartee_engine::turn::message::Stage;
use repartee_engine::turn::pipeline::{MicrophoneState, Readiness, ReplyText};

use super::lines::{self, Questions};
use super::setup;
use super::talk::LiveArgs;
use crate::live::{Command, DeviceChoice, Live, Settings, Snapshot};
use crate::output;
use crate::printing::{self, note, out};
use crate::saved::{Claim, Front, Home, Instance, taken};
use crate::terminal::Visible;
use crate::usage::WrongUsage;

/// Talks until Ctrl-C, until so many turns were answered, or until all lines of a pipe are answered and there is no
/// microphone.
pub(crate) fn run(mut settings: Settings, args: &LiveArgs, report: Option<&Path>) -> Result<()> {
    let input = chosen(Direction::Input, args.microphone.as_deref());
    settings.output = chosen(Direction::Output, args.speaker.as_deref())?;
    let _instance = match &input {
        // Who does not listen may talk beside another.
        Ok(DeviceChoice::Off) => None,
        Err(error) if !error.is::<NoMicrophone>() => None,
        _ => claim()?,
    };
    let (events, inbox) = sync_channel(64);
    let is_piped = !io::stdin().is_terminal();
    let mut questions = Questions::default();
    let (asks, ends) = (events.clone(), events.clone());
    let read = move || {
        lines::read(io::stdin().lock(), |line| asks.send(Happened::Line(line)).is_ok());
        let _ = ends.send(Happened::EndOfLines);
    };
    // It waits for a line even when the program ends.
    std::thread::Builder::new().name("lines".into()).spawn(read)?;
    settings.input = match input {
        Err(error) if is_piped && error.is::<NoMicrophone>() => {
            note!("no microphone was found: the lines of the standard input are answered");
            // Nothing is loaded for nobody.
            match inbox.recv() {
                Ok(Happened::Line(line)) => questions.add(line),
                _ => return Err(error),
            }
            DeviceChoice::Off
        }
        input => input?,
    };
    let (nudge, is_over) = (events.clone(), Arc::new(AtomicBool::new(false)));
    let over = is_over.clone();
    let end = move || {
        over.store(true, Ordering::Release);
        drop(nudge.try_send(Happened::Change));
    };
    ctrlc::set_handler(end).context("Ctrl-C cannot be caught")?;
    // A full channel has changes enough in it.
    let wake = Box::new(move || drop(events.try_send(Happened::Change)));
    let has_microphone = settings.input != DeviceChoice::Off;
    let live = Live::start(settings, &[], wake)?;
    let is_terminal = io::stdout().is_terminal();
    let (mut printer, mut shown) = (Printer::new(is_terminal), u64::MAX);
    while let Ok(event) = inbox.recv() {
        if is_over.load(Ordering::Acquire) {
            break;
        }
        match event {
            Happened::Change => {}
            Happened::EndOfLines => questions.end(),
            Happened::Line(line) if is_piped => questions.add(line),
            Happened::Line(line) if line.is_empty() => live.send(Command::Stop),
            Happened::Line(line) => live.send(Command::Type(line)),
        }
        let snapshot = live.snapshot();
        if let Some(question) = questions.next(&snapshot.conversation) {
            live.send(Command::Type(question));
        }
        if std::mem::replace(&mut shown, snapshot.revision) != snapshot.revision {
            let text = printer.update(&snapshot);
            if !text.is_empty() && !printing::part(&text) {
                // Nobody sees it any more: a conversation in a closed terminal goes on with nobody.
                break;
            }
        }
        let answered = snapshot.conversation.records.iter().filter(|record| !record.cancelled).count();
        let is_deaf = !has_microphone
            || questions.were_asked() && snapshot.conversation.microphone == MicrophoneState::Missing;
        let has_all = is_deaf && questions.are_answered();
        if has_all || args.turns.is_some_and(|turns| answered >= turns) {
            break;
        }
    }
    printing::part(&printer.end());
    let report_of = report_of(&live.snapshot());
    drop(live);
    if !report_of.turns.is_empty() {
        out!("\n{}", super::report::show(&report_of).trim_end());
    }
    if let Some(path) = report {
        output::write(path, &report_of.to_json()?)?;
        out!("report: {}", path.display());
    }
    Ok(())
}

enum Happened {
    Change,
    Line(String),
    EndOfLines,
}

/// The right to listen. Without folders of its own the program can't know of others.
fn claim() -> Result<Option<Instance>> {
    let home = match Home::open() {
        Ok(home) => home,
        Err(error) => {
            tracing::warn!("{error:#}");
            return Ok(None);
        }
    };
    match Instance::claim(&home, Front::Terminal) {
        Claim::Granted(instance) => Ok(Some(instance)),
        Claim::Taken(by) => Err(anyhow::Error::msg(taken(by))),
    }
}

/// In place of a device's name: none is to be used.
const OFF: &str = "off";

/// There is no microphone, and none was asked for.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0}; plug one in, give recorded questions with `--input`, or pipe typed ones in, with `--microphone off` where there \
     may be one"
)]
struct NoMicrophone(AudioError);

/// The device that is meant; there has to be a microphone, or the word that there is to be none.
fn chosen(direction: Direction, wanted: Option<&str>) -> Result<DeviceChoice> {
    if wanted == Some(OFF) {
        return Ok(DeviceChoice::Off);
    }
    let list = devices::list(direction)?;
    let Some(wanted) = wanted else {
        if direction == Direction::Input && list.is_empty() {
            return Err(NoMicrophone(AudioError::NoDevice { direction }).into());
        }
        return Ok(DeviceChoice::Default);
    };
    find(&list, wanted).map(|device| DeviceChoice::Device(device.id.clone())).ok_or_else(|| {
        let names: Vec<&str> = list.iter().map(|device| device.name.as_str()).collect();
        let there = if names.is_empty() { "there is none".into() } else { names.join(", ") };
        WrongUsage::error(format!("there is no {direction} {wanted:?}; choose one of: {there}, {OFF}"))
    })
}

/// By id, by name, or by a part of a name that no other has.
fn find<'a>(list: &'a [DeviceInfo], wanted: &str) -> Option<&'a DeviceInfo> {
    let exact = list.iter().find(|device| device.id == wanted || device.name == wanted);
    exact.or_else(|| {
        let wanted = wanted.to_lowercase();
        let mut parts = list.iter().filter(|device| device.name.to_lowercase().contains(&wanted));
        let first = parts.next()?;
        parts.next().is_none().then_some(first)
    })
}

/// What was measured.
pub(crate) fn report_of(snapshot: &Snapshot) -> Report {
    let settings = &snapshot.setup.settings;
    let mut stages = BTreeMap::new();
    let vad = setup::vad_backend();
    let of = |model: &str, backend: String| StageConfig { model: model.into(), backend };
    stages.insert("vad".into(), of("silero-vad-v6", repartee_engine::backends::Backend::name(&vad)));
    for info in &snapshot.setup.stages {
        let name = match info.stage {
            Stage::Transcribe => "transcribe",
            Stage::Reply => "reply",
            Stage::Speak => "speak",
        };
        stages.insert(name.into(), of(&info.model, info.backend.clone()));
    }
    let echo = if settings.headphones { "off" } else { "on" };
    let settings = BTreeMap::from([
        ("end_of_turn_silence_ms".into(), settings.end_of_turn.as_millis().to_string()),
        ("speculation".into(), format!("{:?}", settings.speculation).to_lowercase()),
        ("temperature".into(), settings.temperature.to_string()),
        ("echo_canceller".into(), echo.into()),
        ("voice".into(), settings.voice.clone()),
    ]);
    let config = Config { version: env!("CARGO_PKG_VERSION").into(), stages, settings };
    let turns = snapshot.conversation.records.iter().map(|record| record.as_ref().clone()).collect();
    Report::new(Machine::detect(), config, turns)
}

/// Clears the line that shows what happens.
const CLEAR: &str = "\r\x1b[K";

/// Turns snapshots into lines.
struct Printer {
    is_terminal: bool,
    /// Exchanges and notices that are printed.
    entries: usize,
    notice: u64,
    trouble: u64,
    is_ready: bool,
    is_deaf: bool,
    /// The exchange whose reply is being printed: how much of it is.
    open: Option<usize>,
    status: String,
}

impl Printer {
    fn new(is_terminal: bool) -> Self {
        Self {
            is_terminal,
            entries: 0,
            notice: 0,
            trouble: 0,
            is_ready: false,
            is_deaf: false,
            open: None,
            status: String::new(),
        }
    }

    /// What is to be printed now.
    fn update(&mut self, snapshot: &Snapshot) -> String {
        let mut out = String::new();
        let conversation = &snapshot.conversation;
        self.entries = self.entries.min(conversation.entries.len());
        for entry in &conversation.entries[self.entries..] {
            self.reply(&entry.user, &entry.reply, &mut out);
            out += if entry.is_interrupted { " …\n" } else { "\n" };
            self.open = None;
        }
        self.entries = conversation.entries.len();
        if let Some(reply) = conversation.reply.as_ref().filter(|reply| reply.heard_bytes > 0) {
            self.reply(&conversation.user, reply, &mut out);
        }
        // Between two exchanges only: not into the words of a reply.
        if self.open.is_none() {
            for notice in conversation.notices.iter().filter(|notice| notice.number > self.notice) {
                out += &format!("note: {}\n", notice.text);
            }
            self.notice = conversation.notices.last().map_or(0, |notice| notice.number);
            let troubles = &snapshot.setup.troubles;
            // Also what is over: a terminal tells what happened.
            for trouble in troubles.iter().filter(|trouble| trouble.number > self.trouble) {
                out += &format!("note: {}\n", trouble.text);
            }
            self.trouble = troubles.last().map_or(0, |trouble| trouble.number);
            let is_deaf = conversation.microphone == MicrophoneState::NoSignal;
            if !std::mem::replace(&mut self.is_deaf, is_deaf) && is_deaf {
                out += "note: the microphone gives no signal; is it muted?\n";
            }
            let is_ready = !conversation.readiness.contains(&Readiness::Loading);
            if is_ready && !std::mem::replace(&mut self.is_ready, is_ready) {
                let microphone = snapshot.setup.input.as_deref().unwrap_or("no microphone");
                let backend = snapshot.setup.stages.first().map_or("", |stage| stage.backend.as_str());
                out += &format!("ready: {microphone}, {backend}; Ctrl-C ends\n");
            }
        }
        self.with_status(out, self.status_of(snapshot))
    }

    /// The user's words, if they are not printed, and what is new of the reply.
    fn reply(&mut self, user: &str, reply: &ReplyText, out: &mut String) {
        let printed = self.open.unwrap_or_else(|| {
            *out += &format!("  you: {user}\nreply: ");
            0
        });
        *out += reply.text.get(printed..reply.heard_bytes).unwrap_or_default();
        self.open = Some(printed.max(reply.heard_bytes));
    }

    /// What happens, when no reply is being printed.
    fn status_of(&self, snapshot: &Snapshot) -> String {
        if !self.is_terminal || self.open.is_some() {
            return String::new();
        }
        let conversation = &snapshot.conversation;
        let what = match (conversation.microphone, conversation.activity) {
            (MicrophoneState::Missing, _) => "no microphone",
            (MicrophoneState::NoSignal, _) => "no signal",
            (MicrophoneState::Muted, _) => "muted",
            (_, Activity::Thinking) => "thinking",
            (_, Activity::Listening) => "hearing",
            _ if !self.is_ready => "listening, while the models are loaded",
            _ => "listening",
        };
        let words: String = conversation.user.chars().take(100).collect();
        format!("[{what}] {words}")
    }

    /// Puts the status line behind what is printed, if either is new.
    fn with_status(&mut self, out: String, status: String) -> String {
        if out.is_empty() && status == self.status {
            return out;
        }
        let clear = if self.status.is_empty() { "" } else { CLEAR };
        let text = format!("{clear}{}{}", Visible(out), Visible(&status));
        self.status = status;
        text
    }

    /// Ends the last line.
    fn end(&mut self) -> String {
        let end = if self.open.take().is_some() { "\n".into() } else { String::new() };
        self.with_status(end, String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{About, Trouble};
    use repartee_engine::turn::message::TurnNumber;
    use repartee_engine::turn::pipeline::{self, Entry, Notice, NoticeKind};

    fn shown(change: impl FnOnce(&mut pipeline::Snapshot)) -> Snapshot {
        let readiness = [const { Readiness::Ready }; 3];
        let mut conversation = pipeline::Snapshot { readiness, ..pipeline::Snapshot::default() };
        change(&mut conversation);
        Snapshot { revision: 1, conversation: Arc::new(conversation), setup: Arc::default() }
    }

    fn reply(text: &str, heard_bytes: usize) -> ReplyText {
        ReplyText { text: text.into(), heard_bytes }
    }

    #[test]
    fn what_is_said_does_not_steer_the_terminal() {
        for is_terminal in [false, true] {
            let mut printer = Printer::new(is_terminal);
            let hostile = "\x1b]0;x\x07 \u{9b}2J";
            let entry = |turn| {
                let (turn, reply) = (TurnNumber(turn), reply(hostile, hostile.len()));
                Arc::new(Entry { turn, user: hostile.into(), reply, is_interrupted: false })
            };
            let notice = Notice { number: 1, kind: NoticeKind::Failed(Stage::Reply), text: hostile.into() };
            let text = printer.update(&shown(|conversation| {
                conversation.entries = Arc::new(vec![entry(1)]);
                conversation.notices = Arc::new(vec![notice]);
                conversation.user = hostile.into();
            }));
            let own = if is_terminal { text.replace(CLEAR, "") } else { text.clone() };
            assert!(own.chars().all(|c| c == '\n' || !c.is_control()), "{own:?}");
            let seen = own.matches(r"\u{1b}]0;x\u{7} \u{9b}2J").count();
            assert_eq!(seen, 3 + usize::from(is_terminal), "{own}");
        }
    }

    #[test]
    fn a_conversation_is_printed_as_it_is_heard() {
        let mut printer = Printer::new(false);
        assert_eq!(printer.update(&shown(|_| {})), "ready: no microphone, ; Ctrl-C ends\n");
        let speculative = shown(|s| {
            s.user = "hi".into();
            s.reply = Some(reply("Hello there.", 0));
        });
        assert_eq!(printer.update(&speculative), "");
        let speaking = |heard| {
            shown(move |s| {
                s.user = "hi".into();
                s.reply = Some(reply("Hello there. Bye.", heard));
            })
        };
        assert_eq!(printer.update(&speaking(5)), "  you: hi\nreply: Hello");
        assert_eq!(printer.update(&speaking(5)), "");
        assert_eq!(printer.update(&speaking(12)), " there.");
        let entry = Arc::new(Entry {
            turn: TurnNumber(1),
            user: "hi".into(),
            reply: reply("Hello there. Bye.", 12),
            is_interrupted: true,
        });
        let notice = Notice { number: 1, kind: NoticeKind::Sound, text: "gone".into() };
        let mut after = shown(|s| {
            s.entries = Arc::new(vec![entry]);
            s.notices = Arc::new(vec![notice]);
        });
        assert_eq!(printer.update(&after), " …\nnote: gone\n");
        assert_eq!(printer.update(&after), "");
        let about = About::Device(Direction::Input);
        let lost = Trouble { number: 1, about, text: "lost".into(), times: 1, is_over: true };
        Arc::make_mut(&mut after.setup).troubles.push(lost);
        assert_eq!(printer.update(&after), "note: lost\n", "though it is back already");
        assert_eq!(printer.update(&after), "");
        assert_eq!(printer.end(), "");
    }

    #[test]
    fn a_deaf_microphone_is_told_once_until_it_hears_again() {
        let mut printer = Printer::new(false);
        printer.update(&shown(|_| {}));
        let deaf = shown(|s| s.microphone = MicrophoneState::NoSignal);
        let told = "note: the microphone gives no signal; is it muted?\n";
        assert_eq!((printer.update(&deaf).as_str(), printer.update(&deaf).as_str()), (told, ""));
        assert_eq!(printer.update(&shown(|_| {})), "");
        assert_eq!(printer.update(&deaf), told);
    }

    #[test]
    fn a_terminal_shows_what_happens_meanwhile() {
        let mut printer = Printer::new(true);
        let text = printer.update(&shown(|_| {}));
        assert!(text.ends_with("Ctrl-C ends\n[listening] "), "{text:?}");
        let text = printer.update(&shown(|s| {
            s.activity = Activity::Listening;
            s.user = "what time".into();
        }));
        assert_eq!(text, format!("{CLEAR}[hearing] what time"));
        let text = printer.update(&shown(|s| {
            s.activity = Activity::Speaking;
            s.user = "what time is it".into();
            s.reply = Some(reply("Noon.", 5));
        }));
        assert_eq!(text, format!("{CLEAR}  you: what time is it\nreply: Noon."));
        assert_eq!(printer.end(), "\n");
    }

    #[test]
    fn devices_are_found_by_id_name_and_part() {
        let device = |id: &str, name: &str| DeviceInfo { id: id.into(), name: name.into() };
        let list = [device("a", "USB Microphone"), device("b", "Built-in Audio"), device("c", "USB Headset")];
        let found = |wanted| find(&list, wanted).map(|device| device.id.as_str());
        assert_eq!((found("b"), found("USB Headset"), found("built")), (Some("b"), Some("c"), Some("b")));
        assert_eq!((found("usb"), found("none")), (None, None));
    }
}
