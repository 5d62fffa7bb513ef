//! The input path, without a device: callback, ring, reader.
//!
//! ```text
//! device ─▶ InputCallback ─▶ ring (2 s) ─▶ InputReader ─▶ echo canceller, VAD, recogniser
//!            to mono, counts                resamples to 16 kHz
//! ```
//!
//! The callback also holds its counts against the clock ([`crate::clock`]): sound systems lose samples
//! without telling, and some devices run at another rate than they say. The reader follows
//! the real rate by itself; [`InputWatch`] tells whoever looks after the device.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ringbuf::traits::{Consumer, Observer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use crate::AudioError;
use crate::clock::{LossMeter, RateMeter};
use crate::resample::StreamResampler;

/// Seconds of sound the ring holds: what the program may be away for before it misses words.
const RING_SECS: usize = 2;

#[derive(Default)]
struct Shared {
    taken: AtomicU64,
    overflowed: AtomicU64,
    lost: AtomicU64,
    real_hz: AtomicU32,
    zeros: AtomicU64,
    /// When sample 0 was at the microphone, in nanoseconds after the start; [`UNKNOWN`] before the first delivery.
    origin_ns: AtomicI64,
}

const UNKNOWN: i64 = i64::MIN;
/// A device that tells a longer latency than this is not believed.
const MAX_LATENCY: Duration = Duration::from_secs(1);
/// What arrives late is late by the machine's doing: the earliest arrival shows when sound was at the microphone. After a
/// loss it moves for good, and is followed at a hundredth of the time.
const ORIGIN_DRIFT: i64 = 100;

/// What the device calls with sound. Copies and counts only.
pub struct InputCallback {
    shared: Arc<Shared>,
    producer: HeapProd<f32>,
    rate: RateMeter,
    loss: LossMeter,
    /// Lost by the clock, if the rate is what it is thought to be.
    suspected: u64,
    taken: u64,
    zeros: u64,
    started: Instant,
    latency: Duration,
    /// When sample 0 was at the microphone, and when that was found, in nanoseconds after the start.
    origin: Option<(i64, i64)>,
}

/// Gives the sound to the program, mono at its own rate.
pub struct InputReader {
    shared: Arc<Shared>,
    consumer: HeapCons<f32>,
    resampler: StreamResampler,
    device_hz: u32,
    target_hz: u32,
    started: Instant,
    /// Samples at the program's rate.
    given: u64,
    /// Samples at the device's rate that never came out of the ring.
    overflowed: u64,
    /// Pieces on their way from the ring to the resampler.
    block: Vec<f32>,
}

/// Tells how a stream fares; for whoever looks after the device. Clones look at the same stream.
#[derive(Clone)]
pub struct InputWatch {
    shared: Arc<Shared>,
}

/// Counts of a stream since it was made, in samples at the device's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InputCounters {
    /// Given to the callback.
    pub taken_samples: u64,
    /// Of these, found the ring full: the program was away for more than two seconds.
    pub overflowed_samples: u64,
    /// Never given to the callback, by the clock.
    pub lost_samples: u64,
    /// The last so many were exactly zero in all channels: a muted or dead microphone; the others have noise.
    pub zero_samples: u64,
}

/// Makes an input for a device at `device_hz` and a program that works at `target_hz`.
///
/// # Errors
/// [`AudioError::UnsupportedRate`] for a rate that is not converted.
pub fn new(device_hz: u32, target_hz: u32) -> Result<(InputCallback, InputReader), AudioError> {
    let resampler = StreamResampler::new(device_hz, target_hz)?;
    let shared = Arc::new(Shared {
        real_hz: AtomicU32::new(device_hz),
        origin_ns: AtomicI64::new(UNKNOWN),
        ..Shared::default()
    });
    let started = Instant::now();
    let (producer, consumer) = HeapRb::new(device_hz as usize * RING_SECS).split();
    let callback = InputCallback {
        shared: shared.clone(),
        producer,
        rate: RateMeter::new(device_hz),
        loss: LossMeter::new(device_hz),
        suspected: 0,
        taken: 0,
        zeros: 0,
        started,
        latency: Duration::ZERO,
        origin: None,
    };
    let block = vec![0.0; 1024];
    let reader = InputReader {
        shared,
        consumer,
        resampler,
        device_hz,
        target_hz,
        started,
        given: 0,
        overflowed: 0,
        block,
    };
    Ok((callback, reader))
}

impl InputCallback {
    /// Takes interleaved `frames` of `channels` channels; `convert` makes a float between -1 and 1 of the
    /// device's sample. The mean of the channels is kept; what finds the ring full is counted and lost.
    pub fn take<T: Copy>(&mut self, frames: &[T], channels: usize, convert: impl Fn(T) -> f32) {
        let channels = channels.max(1);
        let scale = 1.0 / channels as f32;
        let count = frames.len() / channels;
        let mut zeros = self.zeros;
        let mono = frames.chunks_exact(channels).map(|frame| {
            let (mut sum, mut is_zero) = (0.0f32, true);
            for sample in frame {
                let sample = convert(*sample);
                sum += sample;
                is_zero &= sample == 0.0;
            }
            zeros = if is_zero { zeros + 1 } else { 0 };
            // What is no number would stay in filters for ever.
            if sum.is_finite() { sum * scale } else { 0.0 }
        });
        let stored = self.producer.push_iter(mono);
        self.zeros = zeros;
        self.taken += count as u64;
        self.shared.zeros.store(zeros, Ordering::Relaxed);
        self.shared.taken.store(self.taken, Ordering::Relaxed);
        if stored < count {
            self.shared.overflowed.fetch_add((count - stored) as u64, Ordering::Relaxed);
        }
    }

    /// The moment from which [`deliver`](Self::deliver) counts.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The device says how long before the callback its first sample was at the microphone.
    pub fn set_latency(&mut self, latency: Duration) {
        self.latency = latency.min(MAX_LATENCY);
    }

    /// [`take`](Self::take) for a stream that runs: `now_ns` after [`started`](Self::started) is when the frames came,
    /// and shows what was lost before them, at which rate they really come and when they were at the microphone.
    pub fn deliver<T: Copy>(
        &mut self,
        now_ns: u64,
        frames: &[T],
        channels: usize,
        convert: impl Fn(T) -> f32,
    ) {
        let before = self.taken;
        self.take(frames, channels, convert);
        if let Some(real_hz) = self.rate.observe(now_ns, self.taken) {
            // What seemed lost was the difference of the rates.
            self.suspected = 0;
            self.loss = LossMeter::new(real_hz);
            self.shared.real_hz.store(real_hz, Ordering::Release);
            self.origin = None;
        }
        self.trace_back(now_ns, before);
        self.suspected += self.loss.observe(now_ns, self.taken);
        if self.suspected > 0 && !self.rate.is_in_doubt() {
            self.shared.lost.fetch_add(self.suspected, Ordering::Relaxed);
            self.suspected = 0;
        }
    }

    /// When the samples from `before` on, which came at `now_ns`, were at the microphone.
    fn trace_back(&mut self, now_ns: u64, before: u64) {
        let span_ns = |samples: u64| nanoseconds(samples, self.rate.rate_hz());
        // The first of a block is at least as old as the block is long.
        let age_ns = (self.latency.as_nanos() as i64).max(span_ns(self.taken - before));
        let now_ns = i64::try_from(now_ns).unwrap_or(i64::MAX);
        let origin = now_ns.saturating_sub(age_ns).saturating_sub(span_ns(before));
        let origin = match self.origin {
            Some((former, at)) => origin.min(former + now_ns.saturating_sub(at) / ORIGIN_DRIFT),
            None => origin,
        };
        self.origin = Some((origin, now_ns));
        self.shared.origin_ns.store(origin, Ordering::Relaxed);
    }
}

fn nanoseconds(samples: u64, rate_hz: u32) -> i64 {
    let ns = u128::from(samples) * 1_000_000_000 / u128::from(rate_hz.max(1));
    i64::try_from(ns).unwrap_or(i64::MAX)
}

impl InputReader {
    /// Appends everything that has come to `out`, at the program's rate. Does not wait. When the device was
    /// found to run at another rate than it said, the conversion changes with it.
    ///
    /// # Errors
    /// [`AudioError::Resample`], a defect.
    pub fn read(&mut self, out: &mut Vec<f32>) -> Result<(), AudioError> {
        let real_hz = self.shared.real_hz.load(Ordering::Acquire);
        if real_hz != self.device_hz {
            self.resampler = StreamResampler::new(real_hz, self.target_hz)?;
            self.device_hz = real_hz;
        }
        self.overflowed = self.shared.overflowed.load(Ordering::Relaxed);
        let before = out.len();
        loop {
            let count = self.consumer.pop_slice(&mut self.block);
            if count == 0 {
                self.given += (out.len() - before) as u64;
                return Ok(());
            }
            self.resampler.push(&self.block[..count], out)?;
        }
    }

    /// When the last sample that [`read`](Self::read) gave was at the microphone, as far as the device tells its latency;
    /// `None` before the first.
    pub fn heard_at(&self) -> Option<Instant> {
        let origin_ns = self.shared.origin_ns.load(Ordering::Relaxed);
        if origin_ns == UNKNOWN || self.given == 0 {
            return None;
        }
        let given = self.given.saturating_sub(self.resampler.delay_samples() as u64);
        let since_ns = nanoseconds(given, self.target_hz) + nanoseconds(self.overflowed, self.device_hz);
        let heard_ns = origin_ns.saturating_add(since_ns);
        let offset = Duration::from_nanos(heard_ns.unsigned_abs());
        if heard_ns < 0 { self.started.checked_sub(offset) } else { self.started.checked_add(offset) }
    }

    /// Looks after the same stream.
    pub fn watch(&self) -> InputWatch {
        InputWatch { shared: self.shared.clone() }
    }

    /// Samples at the device's rate that wait in the ring.
    pub fn waiting_samples(&self) -> usize {
        self.consumer.occupied_len()
    }

    /// Delay of the resampler, in samples at the program's rate.
    pub fn delay_samples(&self) -> usize {
        self.resampler.delay_samples()
    }
}

impl InputWatch {
    /// The counts so far.
    pub fn counters(&self) -> InputCounters {
        InputCounters {
            taken_samples: self.shared.taken.load(Ordering::Relaxed),
            overflowed_samples: self.shared.overflowed.load(Ordering::Relaxed),
            lost_samples: self.shared.lost.load(Ordering::Relaxed),
            zero_samples: self.shared.zeros.load(Ordering::Relaxed),
        }
    }

    /// The rate at which samples come, in Hz: what the device said until the clock shows another.
    pub fn real_hz(&self) -> u32 {
        self.shared.real_hz.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::f32::consts::TAU;

    use super::*;

    #[test]
    fn channels_become_their_mean_at_the_programs_rate() {
        for channels in [1usize, 2, 6] {
            let (mut callback, mut reader) = new(48_000, 16_000).unwrap();
            let mut out = Vec::new();
            for _ in 0..10 {
                let frames: Vec<i16> =
                    (0..480 * channels).map(|i| if i % channels == 0 { 12_000 } else { 0 }).collect();
                callback.take(&frames, channels, |sample| f32::from(sample) / 32_768.0);
                reader.read(&mut out).unwrap();
            }
            assert!(out.len() >= 1_400 && out.len() <= 1_600, "{}", out.len());
            let expected = 12_000.0 / 32_768.0 / channels as f32;
            assert!((out[1_000] - expected).abs() < 1e-3, "{channels}: {}", out[1_000]);
            let counters = reader.watch().counters();
            assert_eq!((counters.taken_samples, counters.overflowed_samples), (4_800, 0));
        }
    }

    #[test]
    fn a_full_ring_loses_and_counts() {
        let (mut callback, mut reader) = new(16_000, 16_000).unwrap();
        for _ in 0..210 {
            callback.take(&[0.25f32; 160], 1, |sample| sample);
        }
        assert_eq!(reader.watch().counters().overflowed_samples, 1_600);
        assert_eq!(reader.waiting_samples(), 32_000);
        let mut out = Vec::new();
        reader.read(&mut out).unwrap();
        assert_eq!(out.len(), 32_000);
        callback.take(&[f32::NAN, 1.0], 1, |sample| sample);
        out.clear();
        reader.read(&mut out).unwrap();
        assert_eq!(out, [0.0, 1.0]);
    }

    /// Real time passes at `real_hz` under a device that says `said_hz`; gives what was read in the last second.
    fn last_second_of(said_hz: u32, real_hz: u32, secs: u64) -> (Vec<f32>, InputWatch) {
        let (mut callback, mut reader) = new(said_hz, 16_000).unwrap();
        let mut out = Vec::new();
        let mut phase = 0u64;
        for block in 0..secs * 100 {
            if block + 100 == secs * 100 {
                out.clear();
            }
            let frames: Vec<f32> = (0..u64::from(real_hz) / 100)
                .map(|i| (TAU * 440.0 * (phase + i) as f32 / real_hz as f32).sin())
                .collect();
            phase += u64::from(real_hz) / 100;
            callback.deliver(block * 10_000_000, &frames, 1, |sample| sample);
            reader.read(&mut out).unwrap();
        }
        (out, reader.watch())
    }

    #[test]
    fn b33_a_tone_keeps_its_pitch_when_the_device_is_wrong_about_its_rate() {
        for (said_hz, real_hz) in [(48_000, 48_000), (48_000, 24_000), (48_000, 16_000), (44_100, 48_000)] {
            let (out, watch) = last_second_of(said_hz, real_hz, 5);
            assert!(out.len().abs_diff(16_000) <= 400, "{said_hz} {real_hz}: {} samples", out.len());
            let crossings = out.windows(2).filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0).count();
            let hz = crossings as f32 * 16_000.0 / out.len() as f32;
            assert!((hz - 440.0).abs() < 4.4, "said {said_hz}, is {real_hz}: {hz} Hz");
            assert_eq!(watch.real_hz(), real_hz);
            assert_eq!(watch.counters().lost_samples, 0, "another rate is no loss");
        }
    }

    #[test]
    fn a_sample_is_traced_back_to_when_it_was_at_the_microphone() {
        for device_hz in [48_000u32, 44_100, 16_000] {
            let (mut callback, mut reader) = new(device_hz, 16_000).unwrap();
            let (started, mut out) = (callback.started(), Vec::new());
            assert_eq!(reader.heard_at(), None);
            callback.set_latency(Duration::from_millis(30));
            let frames = device_hz as usize / 100;
            // A click in block 200, whose first sample was at the microphone 30 ms before the block came.
            for block in 0..400u64 {
                let mut sound = vec![0.0f32; frames];
                if block == 200 {
                    sound[0] = 1.0;
                }
                // Every third block is late, which is not the microphone's doing.
                let late_ns = if block % 3 == 0 { 9_000_000 } else { 0 };
                callback.deliver(block * 10_000_000 + late_ns, &sound, 1, |sample| sample);
                let before = out.len();
                reader.read(&mut out).unwrap();
                let Some(loudest) = (before..out.len()).find(|at| out[*at] > 0.1) else { continue };
                let at = (loudest..out.len()).max_by(|a, b| out[*a].total_cmp(&out[*b])).unwrap();
                let after = (out.len() - 1 - at) as f64 / 16_000.0;
                let heard = (reader.heard_at().unwrap() - started).as_secs_f64() - after;
                assert!((heard - 1.97).abs() < 0.000_5, "{device_hz}: {heard}");
            }
            assert!(out.iter().any(|sample| *sample > 0.1));
        }
    }

    #[test]
    fn what_never_came_is_counted_by_the_clock() {
        let (mut callback, reader) = new(48_000, 16_000).unwrap();
        for block in 0..1_000u64 {
            if !(500..510).contains(&block) {
                callback.deliver(block * 10_000_000, &[0.1f32; 480], 1, |sample| sample);
            }
        }
        assert_eq!(reader.watch().counters().lost_samples, 4_800);
    }

    #[test]
    fn b03_exact_zeros_are_counted_until_the_first_sound() {
        let (mut callback, reader) = new(48_000, 16_000).unwrap();
        let zeros = |frames: &[f32], callback: &mut InputCallback| {
            callback.take(frames, 2, |sample| sample);
            reader.watch().counters().zero_samples
        };
        assert_eq!(zeros(&[0.0; 960], &mut callback), 480);
        assert_eq!(zeros(&[0.0; 960], &mut callback), 960);
        // Two channels that cancel are sound all the same.
        assert_eq!(zeros(&[1e-6, -1e-6, 0.0, 0.0], &mut callback), 1);
    }
}
