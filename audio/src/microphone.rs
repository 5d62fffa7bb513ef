//! The microphone as the program sees it: one stream of 16 kHz without echo, whatever devices are behind it.
//!
//! [`Microphone`] stays the same while devices come and go; whoever looks after the devices plugs their streams in at the
//! [`MicrophonePort`]. Without a device nothing comes, and [`Microphone::read`] appends nothing.
//!
//! ```
//! use repartee_audio::{echo::EchoMode, microphone};
//! let (mut microphone, port) = microphone::new(EchoMode::Cancel);
//! let mut callback = port.connect(48_000)?;
//! callback.take(&[0i16; 2 * 4_800], 2, |sample| f32::from(sample) / 32_768.0);
//! let mut sound = Vec::new();
//! microphone.read(&mut sound)?;
//! assert!(sound.len() > 1_000);
//! # Ok::<(), repartee_audio::AudioError>(())
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::AudioError;
use crate::echo::{EchoMode, EchoPath, RATE_HZ};
use crate::input::{self, InputCallback, InputReader, InputWatch};
use crate::output::OutputTap;

/// What was plugged in since the last read.
#[derive(Default)]
struct Changes {
    input: Option<InputReader>,
    /// `Some(None)`: unplugged.
    far: Option<Option<OutputTap>>,
    mode: Option<EchoMode>,
}

#[derive(Default)]
struct Shared {
    changes: Mutex<Changes>,
    has_changes: AtomicBool,
    watch: Mutex<Option<InputWatch>>,
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Changes)) {
        change(&mut locked(&self.changes));
        self.has_changes.store(true, Ordering::Release);
    }
}

/// Nothing panics while it holds a lock here; a poisoned one would be as good as any.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives what the microphone hears; for the thread that detects speech.
pub struct Microphone {
    shared: Arc<Shared>,
    reader: Option<InputReader>,
    pub(crate) echo: EchoPath,
    /// At 16 kHz, with the echo.
    raw: Vec<f32>,
    position: u64,
}

/// Where devices are plugged in. Clones lead to the same microphone.
#[derive(Clone)]
pub struct MicrophonePort {
    shared: Arc<Shared>,
}

/// A microphone without a device, and its port.
pub fn new(mode: EchoMode) -> (Microphone, MicrophonePort) {
    let shared = Arc::new(Shared::default());
    let mut echo = EchoPath::new();
    echo.set_mode(mode);
    let microphone = Microphone { shared: shared.clone(), reader: None, echo, raw: Vec::new(), position: 0 };
    (microphone, MicrophonePort { shared })
}

/// How often [`Microphone::wait`] looks: half of the shortest usual period of a device.
const LOOK: Duration = Duration::from_millis(5);

impl Microphone {
    /// Appends what has come to `out`: mono, 16 kHz, without echo, in frames of 10 ms. Does not wait. Call
    /// it every 10 to 30 ms; the ring holds two seconds.
    ///
    /// # Errors
    /// [`AudioError::Resample`], a defect.
    pub fn read(&mut self, out: &mut Vec<f32>) -> Result<(), AudioError> {
        if self.shared.has_changes.swap(false, Ordering::AcqRel) {
            let changes = std::mem::take(&mut *locked(&self.shared.changes));
            if let Some(reader) = changes.input {
                self.reader = Some(reader);
                self.echo.restart();
            }
            if let Some(far) = changes.far {
                self.echo.set_far_end(far)?;
            }
            if let Some(mode) = changes.mode {
                self.echo.set_mode(mode);
            }
        }
        let Some(reader) = &mut self.reader else { return Ok(()) };
        self.raw.clear();
        reader.read(&mut self.raw)?;
        let before = out.len();
        let result = self.echo.process(&self.raw, out);
        self.position += (out.len() - before) as u64;
        result
    }

    /// Samples given since the beginning, whatever devices they came from.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// When the last sample given was at the microphone, as far as the device tells its latency (to a few
    /// milliseconds; the canceller itself delays by 4 at most). `None` before the first of a device.
    pub fn heard_at(&self) -> Option<Instant> {
        let pending = self.echo.pending_samples() as f64 / f64::from(RATE_HZ);
        self.reader.as_ref()?.heard_at()?.checked_sub(Duration::from_secs_f64(pending))
    }

    /// [`read`](Self::read) that waits until there is something, at most `timeout`; says whether there was.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn wait(&mut self, out: &mut Vec<f32>, timeout: Duration) -> Result<bool, AudioError> {
        let (before, deadline) = (out.len(), Instant::now() + timeout);
        loop {
            self.read(out)?;
            let left = deadline.saturating_duration_since(Instant::now());
            if out.len() > before || left.is_zero() {
                return Ok(out.len() > before);
            }
            // The callback may not wake anybody: that can block it.
            std::thread::park_timeout(LOOK.min(left));
        }
    }
}

impl MicrophonePort {
    /// A callback for a device of `device_hz`, in place of the former one.
    ///
    /// # Errors
    /// [`AudioError::UnsupportedRate`] for a rate that is not converted.
    pub fn connect(&self, device_hz: u32) -> Result<InputCallback, AudioError> {
        let (callback, reader) = input::new(device_hz, RATE_HZ)?;
        *locked(&self.shared.watch) = Some(reader.watch());
        self.shared.change(|changes| changes.input = Some(reader));
        Ok(callback)
    }

    /// The loudspeaker whose sound the microphone hears; `None` if there is none any more.
    pub fn set_far_end(&self, tap: Option<OutputTap>) {
        self.shared.change(|changes| changes.far = Some(tap));
    }

    /// Whether there are headphones.
    pub fn set_echo(&self, mode: EchoMode) {
        self.shared.change(|changes| changes.mode = Some(mode));
    }

    /// Looks after the stream that is connected; `None` before the first.
    pub fn watch(&self) -> Option<InputWatch> {
        locked(&self.shared.watch).clone()
    }
}
