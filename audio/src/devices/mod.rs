//! Microphones and speakers of the system: listed, chosen, opened, and opened again when they are lost.
//!
//! [`open`] starts a thread that keeps one microphone and one speaker open, whatever happens to them: a device
//! that vanishes gives way to the default, the chosen one is taken again when it comes back, a default that
//! changes is followed, a stream that stands still or runs at another rate than it says is rebuilt. What the
//! program holds ([`Microphone`], [`Speaker`]) stays the same all along; what happened is told as [`Notice`]s.
//!
//! ```no_run
//! use std::time::Duration;
//! use repartee_audio::devices::{self, SoundConfig};
//! let mut sound = devices::open(SoundConfig::default())?;
//! let mut heard = Vec::new();
//! while sound.microphone.wait(&mut heard, Duration::from_millis(100))? && heard.len() < 16_000 {}
//! sound.speaker.queue(1, vec![0.0; 240].into());
//! for notice in sound.keeper.notices() {
//!     eprintln!("{notice}");
//! }
//! # Ok::<(), repartee_audio::AudioError>(())
//! ```
//!
//! A microphone gives 10 ms at a time, a speaker takes 20. cpal's default would take what the driver likes, up to seconds. On Linux the
//! devices are ALSA's; its `default` leads to PipeWire or PulseAudio where they run, which then follow
//! the choice made in the system's settings. cpal's own hosts for those two lost samples when tried.

#[doc(hidden)]
pub mod callbacks;
mod calls;
mod keeper;
mod system;

use std::fmt;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::echo::EchoMode;
use crate::microphone::{self, Microphone};
use crate::output::{self, OutputConfig};
use crate::speaker::Speaker;
use crate::{AudioError, Direction};

/// A device of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Stays the same when the program or the machine is started again; for settings.
    pub id: String,
    /// For people.
    pub name: String,
}

/// Which device to use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// The system's default, also when that changes.
    #[default]
    Default,
    /// The one with this id; the default as long as that is not there.
    Device(String),
    /// None: nothing is recorded, or nothing is played.
    Off,
}

/// What to open.
#[derive(Debug, Clone, PartialEq)]
pub struct SoundConfig {
    /// The microphone.
    pub input: Choice,
    /// The speaker.
    pub output: Choice,
    /// Whether the speaker's sound is taken out of the microphone's.
    pub echo: EchoMode,
    /// Rate of the synthesiser and behaviour of the output.
    pub playback: OutputConfig,
}

impl Default for SoundConfig {
    /// The default devices with the echo canceller, for a synthesiser of 24 kHz.
    fn default() -> Self {
        Self {
            input: Choice::Default,
            output: Choice::Default,
            echo: EchoMode::default(),
            playback: OutputConfig::new(24_000),
        }
    }
}

/// Microphone and speaker, kept open. The parts may go to different threads.
pub struct Sound {
    /// What is heard: 16 kHz, mono, without echo.
    pub microphone: Microphone,
    /// Plays replies.
    pub speaker: Speaker,
    /// Looks after the devices; they close when it is dropped.
    pub keeper: Keeper,
}

/// Something that happened to a device. Its text is for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A device is open.
    Started {
        /// Which side.
        direction: Direction,
        /// Its name.
        device: String,
        /// Its rate, in Hz.
        rate_hz: u32,
    },
    /// The chosen device is not there; the default takes its place until it is.
    FellBack {
        /// Which side.
        direction: Direction,
        /// The id that was chosen.
        wanted: String,
    },
    /// A device is lost; another is being opened.
    Lost {
        /// Which side.
        direction: Direction,
        /// Its name.
        device: String,
        /// What was seen.
        reason: String,
    },
    /// No device can be opened. It is tried again until one can; this is told once.
    Missing {
        /// Which side.
        direction: Direction,
        /// Why, and what to do.
        reason: String,
    },
    /// A device runs at another rate than it says, or again at that which it says; the stream is rebuilt for the real one.
    WrongRate {
        /// Which side.
        direction: Direction,
        /// Its name.
        device: String,
        /// What it said, in Hz.
        said_hz: u32,
        /// What the clock says, in Hz.
        real_hz: u32,
    },
    /// Sound of the microphone was lost before it reached the program: the machine is too busy.
    SoundLost {
        /// How much in the last second, in milliseconds.
        lost_ms: u64,
    },
    /// For ten seconds the microphone gave nothing but exact zeros, which no room does.
    NoSignal {
        /// Its name.
        device: String,
    },
    /// There is a signal again.
    SignalBack,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { direction, device, rate_hz } => {
                write!(f, "the {direction} is \"{device}\" ({rate_hz} Hz)")
            }
            Self::FellBack { direction, wanted } => {
                write!(f, "the chosen {direction} ({wanted}) is not there; using the default until it is")
            }
            Self::Lost { direction, device, reason } => {
                write!(f, "the {direction} \"{device}\" was lost ({reason}); opening another")
            }
            Self::Missing { reason, .. } => f.write_str(reason),
            Self::WrongRate { direction, device, said_hz, real_hz } if said_hz == real_hz => {
                write!(f, "the {direction} \"{device}\" runs at its own rate again, {real_hz} Hz")
            }
            Self::WrongRate { direction, device, said_hz, real_hz } => write!(
                f,
                "the {direction} \"{device}\" says {said_hz} Hz and runs at {real_hz} Hz; going on with that"
            ),
            Self::SoundLost { lost_ms } => {
                write!(f, "{lost_ms} ms of the microphone's sound were lost; the machine is too busy")
            }
            Self::NoSignal { device } => {
                write!(f, "no signal from the microphone \"{device}\"; is it muted?")
            }
            Self::SignalBack => f.write_str("the microphone has a signal again"),
        }
    }
}

/// How one side is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SideStatus {
    /// The device that is open; `None` if there is none.
    pub device: Option<DeviceInfo>,
    /// The rate at which it runs, in Hz.
    pub rate_hz: u32,
    /// Whether it stands in for the chosen one.
    pub is_fallback: bool,
    /// Gaps that the system told of since the device was opened. It tells of few; for the microphone, see
    /// [`SoundStatus::lost_ms`].
    pub told_gaps: u64,
}

/// How microphone and speaker are doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SoundStatus {
    /// The microphone.
    pub input: SideStatus,
    /// The speaker.
    pub output: SideStatus,
    /// Sound of the microphone that was lost so far, by the clock or because the program did not read it, in milliseconds.
    pub lost_ms: u64,
}

/// What the thread is told.
enum Command {
    Choose(Direction, Choice),
    Stop,
}

/// Handle to the thread that looks after the devices. Dropping it closes them.
pub struct Keeper {
    commands: Sender<Command>,
    notices: Receiver<Notice>,
    status: Arc<Mutex<SoundStatus>>,
    microphone: microphone::MicrophonePort,
    has_ended: Receiver<()>,
}

/// The devices for one direction, by name. An empty list is no error.
///
/// # Errors
/// [`AudioError::DeviceFailed`] if the system's sound can't be asked.
pub fn list(direction: Direction) -> Result<Vec<DeviceInfo>, AudioError> {
    keeper::System::list(&calls::Patient::new(system::Cpal::new), direction)
}

/// Opens what `config` says and keeps it open. Returns at once; the first notices say what was opened or why
/// nothing could be.
///
/// # Errors
/// [`AudioError::UnsupportedRate`] for a synthesiser whose rate is not converted, [`AudioError::DeviceFailed`] if the
/// system gives no thread.
pub fn open(config: SoundConfig) -> Result<Sound, AudioError> {
    let (microphone, input) = microphone::new(config.echo);
    let (control, feeder, output) = output::new(config.playback)?;
    let speaker = Speaker::new(control, feeder)?;
    let (commands, orders) = mpsc::channel();
    let (told, notices) = mpsc::channel();
    let status = Arc::new(Mutex::new(SoundStatus::default()));
    let (port, shown) = (input.clone(), status.clone());
    let (ended, has_ended) = mpsc::channel();
    let run = move || {
        let ports = keeper::Ports { input, output };
        let system = calls::Patient::new(system::Cpal::new);
        let mut keeper = keeper::Sides::new(system, ports, told, [config.input, config.output]);
        let started = std::time::Instant::now();
        loop {
            match orders.recv_timeout(keeper::TICK) {
                Ok(Command::Choose(direction, choice)) => keeper.choose(direction, choice),
                Ok(Command::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            keeper.tick(started.elapsed());
            *shown.lock().unwrap_or_else(PoisonError::into_inner) = keeper.status();
        }
        keeper.close();
        let _ = ended.send(());
    };
    std::thread::Builder::new().name("sound".into()).spawn(run).map_err(|error| {
        AudioError::DeviceFailed {
            direction: Direction::Output,
            device: "any".into(),
            reason: format!("no thread: {error}"),
        }
    })?;
    let keeper = Keeper { commands, notices, status, microphone: port, has_ended };
    Ok(Sound { microphone, speaker, keeper })
}

impl Keeper {
    /// Uses another device from now on.
    pub fn choose(&self, direction: Direction, choice: Choice) {
        // The thread ends with this handle only.
        let _ = self.commands.send(Command::Choose(direction, choice));
    }

    /// Whether there are headphones.
    pub fn set_echo(&self, mode: EchoMode) {
        self.microphone.set_echo(mode);
    }

    /// How the devices are doing, as of 50 ms ago at most.
    pub fn status(&self) -> SoundStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What happened since the last call. Does not wait.
    pub fn notices(&self) -> impl Iterator<Item = Notice> + '_ {
        self.notices.try_iter()
    }

    /// The next notice, waiting for it at most `timeout`.
    pub fn next_notice(&self, timeout: Duration) -> Option<Notice> {
        self.notices.recv_timeout(timeout).ok()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Stop);
        // Whatever a device does, the program ends.
        let _ = self.has_ended.recv_timeout(Duration::from_secs(2));
    }
}
