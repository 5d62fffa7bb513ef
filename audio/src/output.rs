//! The output path, without a device: feeder, ring, callback. Devices may come and go under it.
//!
//! ```text
//! synthesiser ─▶ OutputFeeder ─▶ ring (≤ 40 ms) ─▶ OutputCallback ─▶ device
//!   24 kHz        resamples        tagged           gain, stale turns │
//!                                                                     └▶ tap (echo canceller)
//! ```
//!
//! Each sample in the ring carries the number of its turn. The callback plays samples of the current
//! turn only: when a turn is silenced, what is queued of it fades out over 20 ms and the rest is dropped,
//! without asking anybody. It copies, counts, ramps and drops; it never allocates, locks, waits or
//! logs (a test counts allocations).
//!
//! Control and feeder outlive the device. When it is lost, the [`OutputPort`] is connected to another, maybe
//! of another rate; the feeder, which keeps what was not played yet, offers that again, and counts go on.
//!
//! ```
//! use repartee_audio::output::{self, OutputConfig};
//! let (control, mut feeder, port) = output::new(OutputConfig::new(24_000))?;
//! let (mut callback, _tap) = port.connect(48_000)?;
//! control.play(1);
//! feeder.offer(1, &[0.5; 480])?;
//! let mut frames = [0.0f32; 2 * 480];
//! callback.fill(&mut frames, 2, |sample| sample);
//! assert!(control.played(1) > 0);
//! # Ok::<(), repartee_audio::AudioError>(())
//! ```

mod feeder;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use crate::AudioError;
use crate::clock::RateMeter;
use crate::resample::StreamResampler;

pub use feeder::OutputFeeder;

/// Rate and sizes of an output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputConfig {
    /// Rate of the synthesiser, in Hz.
    pub source_hz: u32,
    /// What may be queued, in milliseconds. 40: more would be heard after an interruption or delay the
    /// first sound; the device's own buffer comes on top.
    pub queue_ms: u32,
    /// Gain while ducked. 0.18: 15 dB down, quiet enough to talk over.
    pub duck_gain: f32,
    /// From full gain to silence. 20 ms: no click, and far below the 100 ms in which a reply must stop.
    pub fall_ms: u32,
    /// From silence to full gain. 5 ms: no click, and no first consonant lost.
    pub rise_ms: u32,
}

impl OutputConfig {
    /// The usual sizes for a synthesiser of this rate.
    pub fn new(source_hz: u32) -> Self {
        Self { source_hz, queue_ms: 40, duck_gain: 0.18, fall_ms: 20, rise_ms: 5 }
    }
}

fn samples_of(rate_hz: u32, ms: u32) -> usize {
    (u64::from(rate_hz) * u64::from(ms) / 1000).max(1) as usize
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Mode {
    Normal = 0,
    Ducked = 1,
    Held = 2,
    Silenced = 3,
}

/// Turn and mode in one word, so that the callback never sees one without the other.
#[derive(Clone, Copy, PartialEq)]
struct Command(u64);

impl Command {
    fn new(turn: u64, mode: Mode) -> Self {
        Self(turn << 2 | mode as u64)
    }

    fn turn(self) -> u64 {
        self.0 >> 2
    }

    fn mode(self) -> Mode {
        match self.0 & 3 {
            0 => Mode::Normal,
            1 => Mode::Ducked,
            2 => Mode::Held,
            _ => Mode::Silenced,
        }
    }
}

/// Bits of a sample count beside the low bits of its turn's number: 2^40 samples are 66 days at 192 kHz.
const COUNT_BITS: u32 = 40;

const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const TURN_MASK: u64 = (1 << (64 - COUNT_BITS)) - 1;

/// What the feeder needs for a device.
struct Link {
    producer: HeapProd<Tagged>,
    resampler: StreamResampler,
}

#[derive(Default)]
struct Shared {
    command: AtomicU64,
    /// Low bits of the turn, and samples of it, at the synthesiser's rate, that devices took.
    played: AtomicU64,
    /// Of the callback that is connected; a former one that still runs counts nothing and is silent.
    connection: AtomicU64,
    /// All that the device asked for.
    asked: AtomicU64,
    /// Rate of the device by the clock.
    real_hz: AtomicU32,
    latency_us: AtomicU64,
    /// From the port to the feeder; the callback knows nothing of it.
    link: Mutex<Option<Link>>,
    has_link: AtomicBool,
    dropped: AtomicU64,
    starved: AtomicU64,
    tap_lost: AtomicU64,
    /// The feeder has more to come for the current turn.
    feeding: AtomicBool,
}

impl Shared {
    fn played_of(&self, turn: u64) -> u64 {
        let played = self.played.load(Ordering::Acquire);
        if played >> COUNT_BITS == turn & TURN_MASK { played & COUNT_MASK } else { 0 }
    }
}

/// Turn numbers are below this.
pub const MAX_TURN: u64 = 1 << 62;

/// Says which turn may be heard and how loud; for the thread that runs the turn machine. Clones control the same output.
#[derive(Clone)]
pub struct OutputControl {
    shared: Arc<Shared>,
}

impl OutputControl {
    /// Turn `turn` may be heard from now on, at full gain; every other one is stale.
    pub fn play(&self, turn: u64) {
        self.shared.command.store(Command::new(turn, Mode::Normal).0, Ordering::Release);
    }

    /// Lowers the gain of `turn`, if it is the current one.
    pub fn duck(&self, turn: u64) {
        self.change(turn, Mode::Ducked);
    }

    /// Takes nothing more of `turn` from the queue, if it is the current one; meant for before its first
    /// sound.
    pub fn hold(&self, turn: u64) {
        self.change(turn, Mode::Held);
    }

    /// Back to full gain, if `turn` is the current one.
    pub fn resume(&self, turn: u64) {
        self.change(turn, Mode::Normal);
    }

    /// Fades `turn` out and drops the rest of it, if it is the current one.
    pub fn silence(&self, turn: u64) {
        self.change(turn, Mode::Silenced);
    }

    fn change(&self, turn: u64, mode: Mode) {
        let to = |now: u64| {
            let now = Command(now);
            // A silenced turn does not come back.
            (now.turn() == turn && now.mode() != Mode::Silenced).then(|| Command::new(turn, mode).0)
        };
        let _ = self.shared.command.fetch_update(Ordering::AcqRel, Ordering::Acquire, to);
    }

    /// Whether `turn` is the current one and not silenced.
    pub fn may_sound(&self, turn: u64) -> bool {
        let command = Command(self.shared.command.load(Ordering::Acquire));
        command.turn() == turn && command.mode() != Mode::Silenced
    }

    /// Samples of `turn`, at the synthesiser's rate, that the device has taken. They are heard
    /// [`latency`](Self::latency) later.
    pub fn played(&self, turn: u64) -> u64 {
        self.shared.played_of(turn)
    }

    /// From the callback to the loudspeaker, as far as the device tells.
    pub fn latency(&self) -> Duration {
        Duration::from_micros(self.shared.latency_us.load(Ordering::Relaxed))
    }

    /// Counts since the output was made.
    pub fn counters(&self) -> OutputCounters {
        OutputCounters {
            dropped_samples: self.shared.dropped.load(Ordering::Relaxed),
            starved_samples: self.shared.starved.load(Ordering::Relaxed),
            tap_lost_samples: self.shared.tap_lost.load(Ordering::Relaxed),
        }
    }
}

/// What did not go as planned, in device samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputCounters {
    /// Samples of stale turns that were not played.
    pub dropped_samples: u64,
    /// Silence played while a turn had more to come: the synthesiser or the feeder was late.
    pub starved_samples: u64,
    /// Samples that found the tap full.
    pub tap_lost_samples: u64,
}

#[derive(Clone, Copy)]
struct Tagged {
    turn: u64,
    sample: f32,
}

/// Makes an output: its control, its feeder, and the port for devices. Nothing is taken from the feeder
/// before a device is connected.
///
/// # Errors
/// [`AudioError::UnsupportedRate`] for a rate that is not converted.
pub fn new(config: OutputConfig) -> Result<(OutputControl, OutputFeeder, OutputPort), AudioError> {
    let resampler = StreamResampler::new(config.source_hz, config.source_hz)?;
    let shared = Arc::new(Shared::default());
    // Nothing may be heard before the first `play`.
    shared.command.store(Command::new(0, Mode::Silenced).0, Ordering::Release);
    let feeder = OutputFeeder::new(shared.clone(), resampler, config.source_hz);
    Ok((OutputControl { shared: shared.clone() }, feeder, OutputPort { shared, config }))
}

/// Where a device is plugged in. Clones lead to the same output.
#[derive(Clone)]
pub struct OutputPort {
    shared: Arc<Shared>,
    config: OutputConfig,
}

impl OutputPort {
    /// A callback for a device of `device_hz`, in place of the former one, which is silent from then on; and the tap that
    /// gives every sample sent to the device (after gain, silence included).
    ///
    /// # Errors
    /// [`AudioError::UnsupportedRate`] for a rate that is not converted.
    pub fn connect(&self, device_hz: u32) -> Result<(OutputCallback, OutputTap), AudioError> {
        let config = &self.config;
        let resampler = StreamResampler::new(config.source_hz, device_hz)?;
        let (producer, consumer) = HeapRb::new(samples_of(device_hz, config.queue_ms)).split();
        let (tap, tap_consumer) = HeapRb::new(samples_of(device_hz, TAP_MS)).split();
        let turn = Command(self.shared.command.load(Ordering::Acquire)).turn();
        let connection = self.shared.connection.fetch_add(1, Ordering::AcqRel) + 1;
        let callback = OutputCallback {
            shared: self.shared.clone(),
            connection,
            consumer,
            tap,
            source_hz: u64::from(config.source_hz),
            device_hz: u64::from(device_hz),
            duck_gain: config.duck_gain.clamp(0.0, 1.0),
            fall: 1.0 / samples_of(device_hz, config.fall_ms) as f32,
            rise: 1.0 / samples_of(device_hz, config.rise_ms) as f32,
            rate: RateMeter::new(device_hz),
            asked: 0,
            gain: 0.0,
            last: 0.0,
            sounding: turn,
            played_before: self.shared.played_of(turn),
            played: 0,
        };
        self.shared.asked.store(0, Ordering::Relaxed);
        self.shared.real_hz.store(device_hz, Ordering::Release);
        self.shared.latency_us.store(0, Ordering::Relaxed);
        *self.shared.link.lock().unwrap_or_else(PoisonError::into_inner) = Some(Link { producer, resampler });
        self.shared.has_link.store(true, Ordering::Release);
        Ok((callback, OutputTap { consumer: tap_consumer, device_hz }))
    }

    /// Samples per channel that the device asked for since it was connected.
    pub fn asked_samples(&self) -> u64 {
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// The rate at which the device takes samples, in Hz: what it said until the clock shows another. Connect it
    /// again with this one; until then it plays too slowly or too fast.
    pub fn real_hz(&self) -> u32 {
        self.shared.real_hz.load(Ordering::Acquire)
    }
}

/// Milliseconds that a tap holds: as long as the ring of an input.
const TAP_MS: u32 = 2_000;

/// Every sample that was sent to the device.
pub struct OutputTap {
    consumer: HeapCons<f32>,
    device_hz: u32,
}

impl OutputTap {
    /// Takes what was sent since the last call, as much as `out` holds, and says how much.
    pub fn read(&mut self, out: &mut [f32]) -> usize {
        self.consumer.pop_slice(out)
    }

    /// The device's rate, in Hz.
    pub fn device_hz(&self) -> u32 {
        self.device_hz
    }
}

/// What the device calls for sound.
pub struct OutputCallback {
    shared: Arc<Shared>,
    connection: u64,
    consumer: HeapCons<Tagged>,
    tap: HeapProd<f32>,
    source_hz: u64,
    device_hz: u64,
    duck_gain: f32,
    /// Largest change of gain from one sample to the next, down and up.
    fall: f32,
    rise: f32,
    rate: RateMeter,
    asked: u64,
    gain: f32,
    /// The last sample sent; without new ones it dies away instead of breaking off.
    last: f32,
    /// The turn that sounds, what earlier devices took of it at the synthesiser's rate, and what this one
    /// took at its own.
    sounding: u64,
    played_before: u64,
    played: u64,
}

/// How fast the last sample dies away in a gap: to a thousandth within 5 ms at 48 kHz.
const DECAY: f32 = 0.97;

impl OutputCallback {
    /// Fills `frames`, interleaved in `channels` channels, with the same sound in each; `convert` makes the
    /// device's sample of a float between -1 and 1 (already limited). Copies and counts only.
    pub fn fill<T: Copy>(&mut self, frames: &mut [T], channels: usize, convert: impl Fn(f32) -> T) {
        if self.is_replaced() {
            return frames.fill(convert(0.0));
        }
        let command = Command(self.shared.command.load(Ordering::Acquire));
        let (mut starved, mut dropped, mut tap_lost) = (0, 0, 0);
        for frame in frames.chunks_mut(channels.max(1)) {
            let sample = match self.next(command, &mut dropped) {
                Some(sample) => sample,
                None => {
                    starved += u64::from(command.mode() != Mode::Held);
                    self.gain = 0.0;
                    if self.last.abs() < 1e-4 { 0.0 } else { self.last * DECAY }
                }
            };
            self.last = sample;
            let limited = sample.clamp(-1.0, 1.0);
            frame.fill(convert(limited));
            tap_lost += u64::from(self.tap.try_push(limited).is_err());
        }
        self.publish(command, starved, dropped, tap_lost);
    }

    /// [`fill`](Self::fill) for a stream that runs: `now_ns` on a monotonic clock is when the device asked, and
    /// shows at which rate it really plays.
    pub fn supply<T: Copy>(
        &mut self,
        now_ns: u64,
        frames: &mut [T],
        channels: usize,
        convert: impl Fn(f32) -> T,
    ) {
        self.fill(frames, channels, convert);
        if self.is_replaced() {
            return;
        }
        self.asked += (frames.len() / channels.max(1)) as u64;
        self.shared.asked.store(self.asked, Ordering::Relaxed);
        if let Some(real_hz) = self.rate.observe(now_ns, self.asked) {
            self.shared.real_hz.store(real_hz, Ordering::Release);
        }
    }

    #[cfg(test)]
    pub(crate) fn queued_samples(&self) -> usize {
        ringbuf::traits::Observer::occupied_len(&self.consumer)
    }

    /// Whether another device has taken the place of this one: one that locked up may run again later.
    fn is_replaced(&self) -> bool {
        self.shared.connection.load(Ordering::Acquire) != self.connection
    }

    /// The device says how long after the callback its sound is heard.
    pub fn set_latency(&mut self, latency: Duration) {
        let latency_us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.shared.latency_us.store(latency_us, Ordering::Relaxed);
    }

    /// The next sample with its gain; `None` if there is nothing to play. Drops what is stale.
    fn next(&mut self, command: Command, dropped: &mut u64) -> Option<f32> {
        while let Some(&Tagged { turn, sample }) = self.consumer.try_peek() {
            let mode = if turn == command.turn() { command.mode() } else { Mode::Silenced };
            let target = match mode {
                Mode::Normal => 1.0,
                Mode::Ducked => self.duck_gain,
                Mode::Held => return None,
                Mode::Silenced => 0.0,
            };
            self.consumer.try_pop();
            if turn != self.sounding && mode != Mode::Silenced {
                (self.sounding, self.played_before, self.played) = (turn, 0, 0);
                self.gain = 0.0;
            }
            self.gain = if self.gain < target {
                (self.gain + self.rise).min(target)
            } else {
                (self.gain - self.fall).max(target)
            };
            if mode == Mode::Silenced {
                if turn == self.sounding && self.gain > 0.0 {
                    return Some(sample * self.gain);
                }
                *dropped += 1;
                continue;
            }
            self.played += 1;
            return Some(sample * self.gain);
        }
        None
    }

    fn publish(&mut self, command: Command, starved: u64, dropped: u64, tap_lost: u64) {
        let shared = &self.shared;
        let played = self.played_before + self.played * self.source_hz / self.device_hz;
        let played = self.sounding << COUNT_BITS | (played & COUNT_MASK);
        shared.played.store(played, Ordering::Release);
        shared.dropped.fetch_add(dropped, Ordering::Relaxed);
        shared.tap_lost.fetch_add(tap_lost, Ordering::Relaxed);
        let sounds = self.played > 0 && self.sounding == command.turn() && command.mode() != Mode::Silenced;
        if sounds && shared.feeding.load(Ordering::Relaxed) {
            shared.starved.fetch_add(starved, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
