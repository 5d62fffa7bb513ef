//! The output path, without a device: feeder, ring, callback.
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
//! ```
//! use repartee_audio::output::{self, OutputConfig};
//! let (control, mut feeder, mut callback, _tap) = output::new(OutputConfig::new(24_000, 48_000))?;
//! control.play(1);
//! feeder.offer(1, &[0.5; 480])?;
//! let mut frames = [0.0f32; 2 * 480];
//! callback.fill(&mut frames, 2, |sample| sample);
//! assert!(control.played(1) > 0);
//! # Ok::<(), repartee_audio::AudioError>(())
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ringbuf::traits::{Consumer, Observer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use crate::AudioError;
use crate::resample::StreamResampler;

/// Rates and sizes of an output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputConfig {
    /// Rate of the synthesiser, in Hz.
    pub source_hz: u32,
    /// Rate of the device, in Hz.
    pub device_hz: u32,
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
    /// The usual sizes for these rates.
    pub fn new(source_hz: u32, device_hz: u32) -> Self {
        Self { source_hz, device_hz, queue_ms: 40, duck_gain: 0.18, fall_ms: 20, rise_ms: 5 }
    }

    fn device_samples(&self, ms: u32) -> usize {
        (u64::from(self.device_hz) * u64::from(ms) / 1000).max(1) as usize
    }
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

#[derive(Default)]
struct Shared {
    command: AtomicU64,
    /// Low bits of the turn, and device samples of it that were taken.
    played: AtomicU64,
    dropped: AtomicU64,
    starved: AtomicU64,
    tap_lost: AtomicU64,
    /// The feeder has more to come for the current turn.
    feeding: AtomicBool,
}

/// Turn numbers are below this.
pub const MAX_TURN: u64 = 1 << 62;

/// Says which turn may be heard and how loud; for the thread that runs the turn machine. Clones control the same output.
#[derive(Clone)]
pub struct OutputControl {
    shared: Arc<Shared>,
    source_hz: u32,
    device_hz: u32,
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

    /// Samples of `turn`, at the synthesiser's rate, that the device has taken.
    pub fn played(&self, turn: u64) -> u64 {
        let played = self.shared.played.load(Ordering::Acquire);
        if played >> COUNT_BITS != turn & ((1 << (64 - COUNT_BITS)) - 1) {
            return 0;
        }
        let count = u128::from(played & ((1 << COUNT_BITS) - 1));
        (count * u128::from(self.source_hz) / u128::from(self.device_hz)) as u64
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

/// Makes an output: its control, its feeder, its callback, and the tap that gives every sample sent to
/// the device (after gain, silence included, at the device's rate; it holds a second).
///
/// # Errors
/// [`AudioError::UnsupportedRate`] for a rate that is not converted.
pub fn new(
    config: OutputConfig,
) -> Result<(OutputControl, OutputFeeder, OutputCallback, HeapCons<f32>), AudioError> {
    let resampler = StreamResampler::new(config.source_hz, config.device_hz)?;
    let shared = Arc::new(Shared::default());
    // Nothing may be heard before the first `play`.
    shared.command.store(Command::new(0, Mode::Silenced).0, Ordering::Release);
    let (producer, consumer) = HeapRb::new(config.device_samples(config.queue_ms)).split();
    let (tap, tap_consumer) = HeapRb::new(config.device_samples(1000)).split();
    let control =
        OutputControl { shared: shared.clone(), source_hz: config.source_hz, device_hz: config.device_hz };
    let feeder = OutputFeeder {
        shared: shared.clone(),
        producer,
        skip: resampler.delay_samples(),
        resampler,
        turn: None,
        converted: Vec::new(),
        next: 0,
        flushed: false,
    };
    let callback = OutputCallback {
        shared,
        consumer,
        tap,
        duck_gain: config.duck_gain.clamp(0.0, 1.0),
        fall: 1.0 / config.device_samples(config.fall_ms) as f32,
        rise: 1.0 / config.device_samples(config.rise_ms) as f32,
        gain: 0.0,
        last: 0.0,
        sounding: 0,
        played: 0,
    };
    Ok((control, feeder, callback, tap_consumer))
}

/// Converts the synthesiser's sound and fills the queue; for a thread that may wait, not for the callback.
pub struct OutputFeeder {
    shared: Arc<Shared>,
    producer: HeapProd<Tagged>,
    resampler: StreamResampler,
    turn: Option<u64>,
    /// At the device's rate, from `next` on not queued yet.
    converted: Vec<f32>,
    next: usize,
    /// Samples of the resampler's delay that are still to be left out at the start of a turn.
    skip: usize,
    /// The resampler has given out its last; the next sample starts a new stream.
    flushed: bool,
}

impl OutputFeeder {
    /// Offers sound of `turn`; gives back how many samples were taken, 0 when the queue is full. Offer the rest
    /// again when the device has played some. Sound of another turn than before starts anew, and what
    /// the queue had no room for yet of the former turn is forgotten.
    ///
    /// # Errors
    /// [`AudioError::Resample`], a defect.
    pub fn offer(&mut self, turn: u64, samples: &[f32]) -> Result<usize, AudioError> {
        self.start(turn);
        self.flush();
        if !self.converted.is_empty() || samples.is_empty() {
            return Ok(0);
        }
        if self.flushed {
            self.begin_stream();
        }
        // In pieces, so that an interruption finds little converted in vain.
        let taken = samples.len().min(960);
        self.resampler.push(&samples[..taken], &mut self.converted)?;
        self.leave_out_delay();
        self.flush();
        Ok(taken)
    }

    /// The sound of `turn` is complete; `true` once all of it is queued. Call again until then.
    ///
    /// # Errors
    /// [`AudioError::Resample`], a defect.
    pub fn finish(&mut self, turn: u64) -> Result<bool, AudioError> {
        self.start(turn);
        if !self.flushed {
            self.flushed = true;
            self.resampler.finish(&mut self.converted)?;
            self.leave_out_delay();
        }
        self.flush();
        let done = self.converted.is_empty();
        self.shared.feeding.store(!done, Ordering::Relaxed);
        Ok(done)
    }

    fn start(&mut self, turn: u64) {
        if self.turn != Some(turn) {
            self.turn = Some(turn);
            self.converted.clear();
            self.next = 0;
            self.resampler.reset();
            self.begin_stream();
        }
        self.shared.feeding.store(true, Ordering::Relaxed);
    }

    fn begin_stream(&mut self) {
        self.skip = self.resampler.delay_samples();
        self.flushed = false;
    }

    fn leave_out_delay(&mut self) {
        let left_out = self.skip.min(self.converted.len() - self.next);
        self.skip -= left_out;
        self.next += left_out;
    }

    fn flush(&mut self) {
        let turn = self.turn.unwrap_or(0);
        let tagged = self.converted[self.next..].iter().map(|sample| Tagged { turn, sample: *sample });
        self.next += self.producer.push_iter(tagged);
        if self.next == self.converted.len() {
            self.converted.clear();
            self.next = 0;
        }
    }

    /// Whether the queue has no room.
    pub fn is_full(&self) -> bool {
        self.producer.is_full()
    }
}

/// What the device calls for sound.
pub struct OutputCallback {
    shared: Arc<Shared>,
    consumer: HeapCons<Tagged>,
    tap: HeapProd<f32>,
    duck_gain: f32,
    /// Largest change of gain from one sample to the next, down and up.
    fall: f32,
    rise: f32,
    gain: f32,
    /// The last sample sent; without new ones it dies away instead of breaking off.
    last: f32,
    /// The turn that sounds, and device samples of it that were taken.
    sounding: u64,
    played: u64,
}

/// How fast the last sample dies away in a gap: to a thousandth within 5 ms at 48 kHz.
const DECAY: f32 = 0.97;

impl OutputCallback {
    /// Fills `frames`, interleaved in `channels` channels, with the same sound in each; `convert` makes the
    /// device's sample of a float between -1 and 1 (already limited). Copies and counts only.
    pub fn fill<T: Copy>(&mut self, frames: &mut [T], channels: usize, convert: impl Fn(f32) -> T) {
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
                (self.sounding, self.played) = (turn, 0);
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
        let played = self.sounding << COUNT_BITS | (self.played & ((1 << COUNT_BITS) - 1));
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
