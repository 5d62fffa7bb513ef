//! The thread that puts settings in force and watches the devices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use anyhow::Result;
use repartee_audio::Direction;
use repartee_audio::devices::{Keeper, Notice, SoundStatus};
use repartee_engine::turn::machine::Activity;
use repartee_engine::turn::message::{Exchange, Stage};
use repartee_engine::turn::pipeline::{Command, Pipeline, Readiness, Signal};

use super::backends::Open;
use super::models::{Loader, Request, What};
use super::{About, DeviceChoice, Settings, Shared, sound};

/// What the front end wants.
pub(super) enum Order {
    Set(Box<Settings>),
    /// A conversation in which this was said.
    Begin(Vec<Exchange>),
}

/// How often the devices are looked at: what happens to them is told in less than two blinks.
const LOOK: Duration = Duration::from_millis(200);

pub(super) struct Caretaker {
    keeper: Keeper,
    has_speaker: Arc<AtomicBool>,
    pipeline: Arc<Pipeline>,
    shared: Arc<Shared>,
    loader: Sender<Request>,
    settings: Settings,
    /// As the model has it.
    system_prompt: String,
    /// Since when another device than the chosen one is used, for microphone and speaker.
    fallback_since: [Option<Instant>; 2],
    /// How much sound was lost, in milliseconds, and when last.
    loss: Option<(u64, Instant)>,
    /// The lost model of each stage that the loader knows of.
    lost: [u64; 3],
    lost_at: Option<Instant>,
}

/// A loss is told for so long.
const LOSS_TOLD: Duration = Duration::from_secs(60);
/// Less than this in all takes no word away: it stands in the log only.
const HEARD_LOSS_MS: u64 = 100;

/// A text in which what the system said stands last, in brackets, behind what that means.
fn plain(text: String) -> String {
    // As the keeper tells of it: `the speaker "x" does not work: ALSA function 'f' failed with error 'e'; choose another`.
    let Some((before, rest)) = text.split_once("ALSA function") else { return text };
    if before.contains("was lost") {
        // What the system said is in brackets already.
        return text;
    }
    let (system, advice) = rest.rsplit_once("; ").unwrap_or((rest, ""));
    let what = before.trim_end_matches([' ', ':', '(']).trim_end_matches("does not work").trim_end();
    let system = system.trim_end_matches(')').trim();
    let what = if what.is_empty() { "the device" } else { what };
    let advice = if advice.is_empty() { String::new() } else { format!("; {advice}") };
    format!("{what} cannot be opened just now{advice} (ALSA function {system})")
}

impl Caretaker {
    /// Asks for all models; they are loaded in a thread of their own. The conversation has begun with `system_prompt`.
    pub(super) fn new(
        keeper: Keeper,
        has_speaker: Arc<AtomicBool>,
        pipeline: Arc<Pipeline>,
        shared: Arc<Shared>,
        settings: Settings,
        system_prompt: String,
        open: Open,
    ) -> Result<Self> {
        let (loader, requests) = channel();
        let worker = Loader::new(pipeline.sender(), shared.clone(), open);
        // It ends with the caretaker; nobody waits for a model that is being loaded.
        Builder::new().name("loader".into()).spawn(move || worker.run(&requests))?;
        let caretaker = Self {
            keeper,
            has_speaker,
            pipeline,
            shared,
            loader,
            settings,
            system_prompt,
            fallback_since: [None; 2],
            loss: None,
            lost: [0; 3],
            lost_at: None,
        };
        for direction in [Direction::Input, Direction::Output] {
            caretaker.note_off(direction);
        }
        for what in [What::Recogniser, What::Writer, What::Speech] {
            caretaker.load(what);
        }
        Ok(caretaker)
    }

    fn load(&self, what: What) {
        // The loader ends with this thread only.
        let _ = self.loader.send(Request::Load(what, self.settings.clone()));
    }

    /// Looks after everything until nobody can give orders any more.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        loop {
            match orders.recv_timeout(LOOK) {
                Ok(Order::Set(settings)) => self.set(settings.within_limits()),
                Ok(Order::Begin(past)) => {
                    self.system_prompt = self.settings.system_prompt();
                    self.pipeline.send(Command::SetHistory(super::history(&self.system_prompt, &past)));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.look_for_losses();
            // The time in it runs on. The model reads the whole conversation anew behind it: while nobody waits for it.
            if self.pipeline.snapshot().activity == Activity::Idle {
                self.instruct();
            }
            let notices: Vec<Notice> = self.keeper.notices().collect();
            notices.iter().for_each(|notice| self.tell(notice));
            let status = self.keeper.status();
            self.look_for_recovery(&status);
            let name = |side: &repartee_audio::devices::SideStatus| {
                side.device.as_ref().map(|device| device.name.clone())
            };
            let (input, output) = (name(&status.input), name(&status.output));
            self.shared.change(|setup| (setup.input, setup.output) = (input, output));
        }
    }

    /// Tells the loader of models that are gone with their device.
    fn look_for_losses(&mut self) {
        let snapshot = self.pipeline.snapshot();
        for stage in [Stage::Transcribe, Stage::Reply, Stage::Speak] {
            if let Readiness::Lost { model, reason } = snapshot.readiness(stage)
                && std::mem::replace(&mut self.lost[stage as usize], *model) != *model
            {
                self.lost_at = Some(Instant::now());
                let _ = self.loader.send(Request::Lost { stage, model: *model, reason: reason.clone() });
            }
        }
    }

    /// Gives the model its instructions, if they are others than it has.
    fn instruct(&mut self) {
        let system_prompt = self.settings.system_prompt();
        if system_prompt != self.system_prompt {
            self.pipeline.send(Command::SetInstructions(system_prompt.as_str().into()));
            self.system_prompt = system_prompt;
        }
    }

    fn tell(&mut self, notice: &Notice) {
        tracing::info!(%notice, "sound");
        let signal = match notice {
            Notice::Started { direction: Direction::Input, .. } | Notice::SignalBack => Some(Signal::Present),
            Notice::Missing { direction: Direction::Input, .. } => Some(Signal::NoDevice),
            Notice::NoSignal { .. } => Some(Signal::Zeros),
            Notice::Started { direction: Direction::Output, .. } => {
                self.has_speaker.store(true, Ordering::Release);
                None
            }
            Notice::Missing { direction: Direction::Output, .. } => {
                self.has_speaker.store(false, Ordering::Release);
                None
            }
            _ => None,
        };
        if let Some(signal) = signal {
            self.pipeline.send(Command::Signal(signal));
        }
        let (about, text) = match notice {
            Notice::Started { direction, .. } => (About::Device(*direction), None),
            Notice::Lost { direction, .. }
            | Notice::Missing { direction, .. }
            | Notice::WrongRate { direction, .. } => (About::Device(*direction), Some(notice.to_string())),
            Notice::FellBack { direction, .. } => {
                self.fallback_since[*direction as usize] = Some(Instant::now());
                (About::Fallback(*direction), Some(notice.to_string()))
            }
            Notice::SoundLost { lost_ms } => {
                let sum_ms = self.loss.map_or(0, |(sum_ms, _)| sum_ms) + lost_ms;
                self.loss = Some((sum_ms, Instant::now()));
                let text = Notice::SoundLost { lost_ms: sum_ms }.to_string();
                (About::Loss, (sum_ms >= HEARD_LOSS_MS).then_some(text))
            }
            // Whether there is a signal stands in the snapshot, as long as it is so.
            Notice::NoSignal { .. } | Notice::SignalBack => return,
        };
        self.shared.change(|setup| setup.set_trouble(about, text.map(|text| plain(text).into())));
    }

    /// Takes back what was told of a device that is there again, and of a loss that is long ago.
    fn look_for_recovery(&mut self, status: &SoundStatus) {
        for (direction, side) in [(Direction::Input, &status.input), (Direction::Output, &status.output)] {
            let since = &mut self.fallback_since[direction as usize];
            // The status may be older than the notice.
            if since.is_some_and(|since| since.elapsed() > LOOK) && side.device.is_some() && !side.is_fallback
            {
                *since = None;
                self.shared.change(|setup| setup.set_trouble(About::Fallback(direction), None));
            }
        }
        if self.lost_at.is_some_and(|at| at.elapsed() > LOSS_TOLD) {
            self.lost_at = None;
            self.shared.change(|setup| setup.set_trouble(About::Reopened, None));
        }
        if self.loss.is_some_and(|(_, last)| last.elapsed() > LOSS_TOLD) {
            self.loss = None;
            self.shared.change(|setup| setup.set_trouble(About::Loss, None));
        }
    }

    /// Puts settings in force, as far as they differ.
    fn set(&mut self, new: Settings) {
        let old = std::mem::replace(&mut self.settings, new);
        let new = self.settings.clone();
        if (new.turns(), new.listening) != (old.turns(), old.listening) {
            self.pipeline.send(Command::SetTurns(new.turns()));
            self.pipeline.send(Command::Listen(new.listening));
        }
        self.instruct();
        if new.input != old.input {
            self.choose(Direction::Input, new.input.clone());
        }
        if new.output != old.output {
            self.choose(Direction::Output, new.output.clone());
        }
        if new.headphones != old.headphones {
            self.keeper.set_echo(sound::echo(&new));
        }
        for (what, stage) in new.reloads(&old) {
            if what != What::Style {
                self.pipeline.send(Command::Await(stage));
                self.shared.change(|setup| setup.set_stage(stage, None, Readiness::Loading));
            }
            self.load(what);
        }
        self.shared.change(|setup| setup.set_settings(&new));
    }
}

impl Caretaker {
    /// A device that is not to be there is told of by nobody.
    fn note_off(&self, direction: Direction) {
        match direction {
            Direction::Input if self.settings.input == DeviceChoice::Off => {
                self.pipeline.send(Command::Signal(Signal::NoDevice));
            }
            Direction::Output if self.settings.output == DeviceChoice::Off => {
                self.has_speaker.store(false, Ordering::Release);
            }
            _ => {}
        }
    }

    /// What was told of another choice is of no matter any more.
    fn choose(&mut self, direction: Direction, choice: DeviceChoice) {
        self.keeper.choose(direction, choice);
        self.note_off(direction);
        self.fallback_since[direction as usize] = None;
        self.shared.change(|setup| {
            setup.set_trouble(About::Device(direction), None);
            setup.set_trouble(About::Fallback(direction), None);
        });
    }
}

impl Settings {
    /// What has to be loaded anew when these come after `old`.
    fn reloads(&self, old: &Self) -> Vec<(What, Stage)> {
        let recogniser =
            (&self.stt, &self.language, self.backends[0]) != (&old.stt, &old.language, old.backends[0]);
        let writer = |s: &Self| {
            (s.llm.clone(), s.context, s.max_tokens, s.temperature.to_bits(), s.seed, s.backends[1])
        };
        let style = |s: &Self| (s.voice.clone(), s.speed.to_bits());
        let speech = match (self.backends[2] == old.backends[2], style(self) == style(old)) {
            (false, _) => Some(What::Speech),
            (true, false) => Some(What::Style),
            (true, true) => None,
        };
        let recogniser = recogniser.then_some((What::Recogniser, Stage::Transcribe));
        let writer = (writer(self) != writer(old)).then_some((What::Writer, Stage::Reply));
        recogniser.into_iter().chain(writer).chain(speech.map(|what| (what, Stage::Speak))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::setup::BackendName;

    #[test]
    fn what_a_sound_system_says_stands_behind_what_it_means() {
        let alsa = "ALSA function 'snd_pcm_hw_params' failed with error 'Device or resource busy (16)'";
        let whole = format!("the speaker \"Analog\" does not work: {alsa}; choose another");
        let told = plain(whole);
        assert_eq!(
            told,
            format!("the speaker \"Analog\" cannot be opened just now; choose another ({alsa})")
        );
        assert_eq!(plain(alsa.into()), format!("the device cannot be opened just now ({alsa})"));
        for text in
            ["no microphone was found", &format!("the speaker \"x\" was lost ({alsa}); opening another")]
        {
            assert_eq!(plain(text.into()), text);
        }
    }

    #[test]
    fn only_what_differs_is_loaded_anew() {
        let old = Settings::default();
        let reloads = |change: fn(&mut Settings)| {
            let mut new = old.clone();
            change(&mut new);
            new.reloads(&old).into_iter().map(|(_, stage)| stage).collect::<Vec<_>>()
        };
        assert_eq!(reloads(|_| {}), []);
        assert_eq!(reloads(|s| s.headphones = true), []);
        assert_eq!(reloads(|s| s.stt = "whisper-tiny.en".into()), [Stage::Transcribe]);
        assert_eq!(reloads(|s| s.temperature = 0.5), [Stage::Reply]);
        assert_eq!(
            reloads(|s| s.backends = [BackendName::Cpu; 3]),
            [Stage::Transcribe, Stage::Reply, Stage::Speak]
        );
        let mut faster = old.clone();
        faster.speed = 1.2;
        assert!(faster.reloads(&old)[..] == [(What::Style, Stage::Speak)], "the model stays");
    }
}
