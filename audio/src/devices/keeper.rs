//! Decides when a device is opened, given up and looked for again. The system behind it and the time are
//! passed in, so that tests play both.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use super::callbacks::Alarm;
use super::{Choice, DeviceInfo, Notice, SideStatus, SoundStatus};
use crate::input::InputCallback;
use crate::microphone::MicrophonePort;
use crate::output::{OutputCallback, OutputPort};
use crate::{AudioError, Direction};

/// How often the streams are looked at: a lost device is replaced in far less than a second.
pub(super) const TICK: Duration = Duration::from_millis(50);
/// A stream that delivers nothing for so long stands still; a new one may take longer to begin.
const STALL: Duration = Duration::from_millis(700);
const FIRST_STALL: Duration = Duration::from_secs(4);
/// A new stream that reports errors may have so long to get over them.
const FIRST_FAULTS: Duration = Duration::from_secs(2);
/// Between two tries when no device can be opened.
const RETRY: Duration = Duration::from_millis(500);
/// Between two looks at what the default is and whether the chosen device is back.
const LOOK: Duration = Duration::from_secs(1);
/// How often a stream is rebuilt because its device is wrong about its rate; a device that changes its mind more often
/// is followed without.
const MOST_RATE_CHANGES: u32 = 3;
/// Closing a device takes a few milliseconds, or for ever (see [`super::calls`]). After this long the stream is left to
/// itself.
const CLOSE: Duration = Duration::from_millis(500);
/// Exact zeros for so long are no room.
const SILENT_SECS: u64 = 10;

/// A device that was found, and what it says about itself.
#[derive(Clone)]
pub(super) struct Found<D> {
    pub(super) device: D,
    pub(super) info: DeviceInfo,
    pub(super) rate_hz: u32,
}

/// Gives a callback for a stream, a new one each time that it is called: a stream that can't be built takes its
/// callback with it.
pub(super) type Make<C> = Box<dyn FnMut() -> Result<C, AudioError> + Send>;

/// Finds and opens devices. A stream closes when it is dropped.
pub(super) trait System {
    type Device: Clone + Send + 'static;
    type Stream: Send + 'static;

    fn list(&self, direction: Direction) -> Result<Vec<DeviceInfo>, AudioError>;
    fn default_id(&self, direction: Direction) -> Option<String>;
    /// `choice` is not `Off`.
    fn find(&self, direction: Direction, choice: &Choice) -> Result<Found<Self::Device>, AudioError>;
    fn open_input(
        &self,
        found: &Found<Self::Device>,
        make: Make<InputCallback>,
        alarm: &Arc<Alarm>,
    ) -> Result<Self::Stream, AudioError>;
    fn open_output(
        &self,
        found: &Found<Self::Device>,
        make: Make<OutputCallback>,
        alarm: &Arc<Alarm>,
    ) -> Result<Self::Stream, AudioError>;
}

/// Where the program's ends are.
pub(super) struct Ports {
    pub(super) input: MicrophonePort,
    pub(super) output: OutputPort,
}

impl Ports {
    /// Samples that went through the stream, and the rate by the clock.
    fn progress(&self, direction: Direction) -> (u64, u32) {
        match direction {
            Direction::Input => {
                self.input.watch().map_or((0, 0), |watch| (watch.counters().taken_samples, watch.real_hz()))
            }
            Direction::Output => (self.output.asked_samples(), self.output.real_hz()),
        }
    }
}

struct Open<S> {
    stream: S,
    info: DeviceInfo,
    alarm: Arc<Alarm>,
    /// What the device says, and what it was connected with.
    said_hz: u32,
    rate_hz: u32,
    is_fallback: bool,
    default_id: Option<String>,
    count: u64,
    /// When the count grew last, and the errors until then.
    moved_at: Duration,
    faults: u64,
    looked_at: Duration,
}

struct Side<S> {
    direction: Direction,
    choice: Choice,
    open: Option<Open<S>>,
    retry_at: Duration,
    has_told_missing: bool,
    /// The fallback that was told of, so that it is told once.
    told_fallback: Option<String>,
    /// By device: the rate at which it really ran, and how often that was found.
    real_rates: HashMap<String, (u32, u32)>,
}

/// Both sides, and what is told about the microphone's sound.
pub(super) struct Sides<S: System> {
    system: S,
    ports: Ports,
    told: Sender<Notice>,
    input: Side<S::Stream>,
    output: Side<S::Stream>,
    lost: Losses,
}

/// What the microphone lost, over all its streams.
#[derive(Default)]
struct Losses {
    before_ms: u64,
    stream_ms: u64,
    told_ms: u64,
    told_at: Duration,
    is_silent: bool,
}

impl Losses {
    fn total_ms(&self) -> u64 {
        self.before_ms + self.stream_ms
    }
}

impl<S: System> Sides<S> {
    pub(super) fn new(system: S, ports: Ports, told: Sender<Notice>, choices: [Choice; 2]) -> Self {
        let side = |direction, choice| Side {
            direction,
            choice,
            open: None,
            retry_at: Duration::ZERO,
            has_told_missing: false,
            told_fallback: None,
            real_rates: HashMap::new(),
        };
        let [input, output] = choices;
        let (input, output) = (side(Direction::Input, input), side(Direction::Output, output));
        Self { system, ports, told, input, output, lost: Losses::default() }
    }

    /// Another device from the next tick on.
    pub(super) fn choose(&mut self, direction: Direction, choice: Choice) {
        let side = match direction {
            Direction::Input => &mut self.input,
            Direction::Output => &mut self.output,
        };
        if side.choice == choice {
            return;
        }
        side.choice = choice;
        side.close();
        side.retry_at = Duration::ZERO;
        side.told_fallback = None;
    }

    /// Closes both.
    pub(super) fn close(&mut self) {
        self.input.close();
        self.output.close();
    }

    /// Looks after both sides; `now` is the time since the start.
    pub(super) fn tick(&mut self, now: Duration) {
        // The receiver may be gone; the devices are looked after all the same.
        let tell = |notice: Notice| {
            tracing::info!(%notice, "sound");
            let _ = self.told.send(notice);
        };
        for side in [&mut self.input, &mut self.output] {
            side.check(&self.system, &self.ports, now, &tell);
            if side.open.is_none() && side.choice != Choice::Off && now >= side.retry_at {
                if side.direction == Direction::Input {
                    self.lost.before_ms = self.lost.total_ms();
                    self.lost.stream_ms = 0;
                }
                side.try_open(&self.system, &self.ports, now, &tell);
            }
        }
        self.lost.look(&self.input, &self.ports, now, &tell);
    }

    pub(super) fn status(&self) -> SoundStatus {
        SoundStatus {
            input: self.input.status(&self.ports),
            output: self.output.status(&self.ports),
            lost_ms: self.lost.total_ms(),
        }
    }
}

impl Losses {
    fn look<T>(&mut self, side: &Side<T>, ports: &Ports, now: Duration, tell: &impl Fn(Notice)) {
        let (Some(open), Some(watch)) = (&side.open, ports.input.watch()) else { return };
        let (counters, rate_hz) = (watch.counters(), u64::from(watch.real_hz().max(1)));
        self.stream_ms = (counters.lost_samples + counters.overflowed_samples) * 1000 / rate_hz;
        let lost_ms = self.total_ms() - self.told_ms;
        if lost_ms > 0 && now.saturating_sub(self.told_at) >= LOOK {
            self.told_ms += lost_ms;
            self.told_at = now;
            tell(Notice::SoundLost { lost_ms });
        }
        let is_silent = counters.zero_samples >= SILENT_SECS * rate_hz;
        if is_silent != self.is_silent && (is_silent || counters.taken_samples > counters.zero_samples) {
            self.is_silent = is_silent;
            tell(match is_silent {
                true => Notice::NoSignal { device: open.info.name.clone() },
                false => Notice::SignalBack,
            });
        }
    }
}

impl<T: Send + 'static> Side<T> {
    /// Gives the open device up if it has to be.
    fn check<S: System<Stream = T>>(
        &mut self,
        system: &S,
        ports: &Ports,
        now: Duration,
        tell: &impl Fn(Notice),
    ) {
        let direction = self.direction;
        let Some(open) = &mut self.open else { return };
        let (count, real_hz) = ports.progress(direction);
        let has_begun = open.count > 0;
        if count != open.count {
            (open.count, open.moved_at, open.faults) = (count, now, open.alarm.faults());
        }
        let device = open.info.name.clone();
        let has_faults = open.alarm.faults() > open.faults;
        let (limit, stands) = match (has_begun, has_faults) {
            (true, false) => (STALL, "it stands still"),
            (true, true) => (STALL, "the driver reports an error"),
            (false, false) => (FIRST_STALL, "it does not begin"),
            (false, true) => (FIRST_FAULTS, "the driver reports an error"),
        };
        let stalled = now.saturating_sub(open.moved_at) >= limit;
        let reason = open.alarm.reason().or(stalled.then_some(stands));
        if let Some(reason) = reason {
            self.close();
            // What never ran is not tried again at once.
            self.retry_at = if has_begun { now } else { now + RETRY };
            return tell(Notice::Lost { direction, device, reason: reason.into() });
        }
        if real_hz != open.rate_hz && real_hz > 0 {
            let said_hz = open.said_hz;
            open.rate_hz = real_hz;
            let known = self.real_rates.entry(open.info.id.clone()).or_insert((real_hz, 0));
            *known = (real_hz, known.1 + 1);
            if known.1 <= MOST_RATE_CHANGES {
                self.close();
                self.retry_at = now;
                tell(Notice::WrongRate { direction, device, said_hz, real_hz });
            }
            return;
        }
        if now.saturating_sub(open.looked_at) < LOOK {
            return;
        }
        open.looked_at = now;
        let is_over = match &self.choice {
            Choice::Device(id) if open.is_fallback => {
                system.list(direction).is_ok_and(|list| list.iter().any(|info| info.id == *id))
            }
            Choice::Default => {
                let default_id = system.default_id(direction);
                default_id.is_some() && default_id != open.default_id
            }
            _ => false,
        };
        if is_over {
            self.close();
            self.retry_at = now;
        }
    }

    fn close(&mut self) {
        self.has_told_missing = false;
        let Some(Open { stream, info, .. }) = self.open.take() else { return };
        let (closed, is_closed) = mpsc::channel();
        let close = move || {
            drop(stream);
            // Nobody waits any more if it took long.
            let _ = closed.send(());
        };
        // Without a thread, the stream was dropped with the closure.
        let thread = std::thread::Builder::new().name("sound-close".into()).spawn(close);
        if thread.is_ok() && is_closed.recv_timeout(CLOSE).is_err() {
            tracing::warn!(device = info.name, "the system does not close the device; going on without");
        }
    }

    fn try_open<S: System<Stream = T>>(
        &mut self,
        system: &S,
        ports: &Ports,
        now: Duration,
        tell: &impl Fn(Notice),
    ) {
        let direction = self.direction;
        let opened = match self.open_one(system, ports, now, &self.choice) {
            Err(error) if matches!(self.choice, Choice::Device(_)) => {
                tracing::debug!(%error, "the chosen device can't be opened");
                self.open_one(system, ports, now, &Choice::Default).map(|mut open| {
                    open.is_fallback = true;
                    open
                })
            }
            opened => opened,
        };
        match opened {
            Ok(open) => {
                if let (true, Choice::Device(wanted)) = (open.is_fallback, &self.choice) {
                    if self.told_fallback.as_ref() != Some(wanted) {
                        tell(Notice::FellBack { direction, wanted: wanted.clone() });
                        self.told_fallback = Some(wanted.clone());
                    }
                } else {
                    self.told_fallback = None;
                }
                let (device, rate_hz) = (open.info.name.clone(), open.rate_hz);
                self.open = Some(open);
                self.has_told_missing = false;
                tell(Notice::Started { direction, device, rate_hz });
            }
            Err(error) => {
                self.retry_at = now + RETRY;
                if !self.has_told_missing {
                    self.has_told_missing = true;
                    tell(Notice::Missing { direction, reason: error.to_string() });
                }
            }
        }
    }

    fn open_one<S: System<Stream = T>>(
        &self,
        system: &S,
        ports: &Ports,
        now: Duration,
        choice: &Choice,
    ) -> Result<Open<T>, AudioError> {
        let found = system.find(self.direction, choice)?;
        let known = self.real_rates.get(&found.info.id);
        let rate_hz = known.map_or(found.rate_hz, |(real_hz, _)| *real_hz);
        let alarm = Arc::new(Alarm::default());
        let (input, output) = (ports.input.clone(), ports.output.clone());
        let stream = match self.direction {
            Direction::Input => {
                system.open_input(&found, Box::new(move || input.connect(rate_hz)), &alarm)?
            }
            Direction::Output => {
                let make = move || {
                    let (callback, tap) = output.connect(rate_hz)?;
                    input.set_far_end(Some(tap));
                    Ok(callback)
                };
                system.open_output(&found, Box::new(make), &alarm)?
            }
        };
        Ok(Open {
            stream,
            info: found.info,
            alarm,
            said_hz: found.rate_hz,
            rate_hz,
            is_fallback: false,
            default_id: system.default_id(self.direction),
            count: 0,
            moved_at: now,
            faults: 0,
            looked_at: now,
        })
    }

    fn status(&self, ports: &Ports) -> SideStatus {
        self.open.as_ref().map_or_else(SideStatus::default, |open| SideStatus {
            device: Some(open.info.clone()),
            rate_hz: ports.progress(self.direction).1,
            is_fallback: open.is_fallback,
            told_gaps: open.alarm.gaps(),
        })
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
