//! The input path, without a device: callback, ring, reader, and the check for lost samples.
//!
//! ```text
//! device ─▶ InputCallback ─▶ ring (2 s) ─▶ InputReader ─▶ echo canceller, VAD, recogniser
//!            to mono, counts                resamples to 16 kHz
//! ```
//!
//! Sound systems lose samples without telling. [`LossMeter`] compares what came with the clock: a
//! stream may jitter and its clock may drift, but when samples go missing, everything after them
//! comes too early for its number.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ringbuf::traits::{Consumer, Observer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use crate::AudioError;
use crate::resample::StreamResampler;

/// Seconds of sound the ring holds: what the program may be away for before it misses words.
const RING_SECS: usize = 2;

#[derive(Default)]
struct Shared {
    taken: AtomicU64,
    overflowed: AtomicU64,
}

/// What the device calls with sound. Copies and counts only.
pub struct InputCallback {
    shared: Arc<Shared>,
    producer: HeapProd<f32>,
}

/// Gives the sound to the program, mono at its own rate.
pub struct InputReader {
    shared: Arc<Shared>,
    consumer: HeapCons<f32>,
    resampler: StreamResampler,
    /// Pieces on their way from the ring to the resampler.
    block: Vec<f32>,
}

/// Makes an input for a device at `device_hz` and a program that works at `target_hz`.
///
/// # Errors
/// [`AudioError::UnsupportedRate`] for a rate that is not converted.
pub fn new(device_hz: u32, target_hz: u32) -> Result<(InputCallback, InputReader), AudioError> {
    let resampler = StreamResampler::new(device_hz, target_hz)?;
    let shared = Arc::new(Shared::default());
    let (producer, consumer) = HeapRb::new(device_hz as usize * RING_SECS).split();
    let callback = InputCallback { shared: shared.clone(), producer };
    Ok((callback, InputReader { shared, consumer, resampler, block: vec![0.0; 1024] }))
}

impl InputCallback {
    /// Takes interleaved `frames` of `channels` channels; `convert` makes a float between -1 and 1 of the
    /// device's sample. The mean of the channels is kept; what finds the ring full is counted and lost.
    pub fn take<T: Copy>(&mut self, frames: &[T], channels: usize, convert: impl Fn(T) -> f32) {
        let channels = channels.max(1);
        let scale = 1.0 / channels as f32;
        let mono = frames.chunks_exact(channels).map(|frame| {
            // What is no number would stay in filters for ever.
            let sum: f32 = frame.iter().map(|sample| convert(*sample)).sum();
            if sum.is_finite() { sum * scale } else { 0.0 }
        });
        let count = frames.len() / channels;
        let stored = self.producer.push_iter(mono);
        self.shared.taken.fetch_add(count as u64, Ordering::Relaxed);
        self.shared.overflowed.fetch_add((count - stored) as u64, Ordering::Relaxed);
    }
}

impl InputReader {
    /// Appends everything that has come to `out`, at the program's rate. Does not wait.
    ///
    /// # Errors
    /// [`AudioError::Resample`], a defect.
    pub fn read(&mut self, out: &mut Vec<f32>) -> Result<(), AudioError> {
        loop {
            let count = self.consumer.pop_slice(&mut self.block);
            if count == 0 {
                return Ok(());
            }
            self.resampler.push(&self.block[..count], out)?;
        }
    }

    /// Samples at the device's rate that the callback was given.
    pub fn taken_samples(&self) -> u64 {
        self.shared.taken.load(Ordering::Relaxed)
    }

    /// Of these, samples that found the ring full: the program was too slow.
    pub fn overflowed_samples(&self) -> u64 {
        self.shared.overflowed.load(Ordering::Relaxed)
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

/// Finds lost samples by comparing counts with a clock.
///
/// Arrival is late by a jitter that is never negative; the earliest arrival in a window of a second shows
/// how far the stream has really come. Between two windows that moves by drift (a few hundred millionths), by a loss
/// at once and for good.
#[derive(Debug, Clone)]
pub struct LossMeter {
    rate_hz: u32,
    /// Of the window: where it began, and the smallest lag in it.
    window: Option<(u64, f64)>,
    /// Smallest lag of the window before, in samples.
    baseline: Option<f64>,
    lost_samples: u64,
}

const WINDOW_NS: u64 = 1_000_000_000;
/// Smallest loss that is told: above it no drift or scheduling noise reaches in a second (3 ms are 3000
/// millionths).
const MIN_LOSS_MS: f64 = 3.0;

impl LossMeter {
    /// A meter for a stream of `rate_hz`.
    pub fn new(rate_hz: u32) -> Self {
        Self { rate_hz: rate_hz.max(1), window: None, baseline: None, lost_samples: 0 }
    }

    /// `taken` samples have come until `now_ns` on a monotonic clock. Call it at each delivery, or often.
    /// Gives the samples found lost just now, usually 0.
    pub fn observe(&mut self, now_ns: u64, taken: u64) -> u64 {
        let expected = now_ns as f64 * 1e-9 * f64::from(self.rate_hz);
        let lag = expected - taken as f64;
        let Some((since_ns, smallest)) = &mut self.window else {
            self.window = Some((now_ns, lag));
            return 0;
        };
        *smallest = smallest.min(lag);
        if now_ns.saturating_sub(*since_ns) < WINDOW_NS {
            return 0;
        }
        let smallest = *smallest;
        self.window = None;
        let moved = self.baseline.map_or(0.0, |baseline| smallest - baseline);
        self.baseline = Some(smallest);
        let lost =
            if moved * 1000.0 >= MIN_LOSS_MS * f64::from(self.rate_hz) { moved.round() as u64 } else { 0 };
        self.lost_samples += lost;
        lost
    }

    /// All samples found lost so far.
    pub fn lost_samples(&self) -> u64 {
        self.lost_samples
    }

    /// The stream was rebuilt: its count starts anew, what was lost before stays counted.
    pub fn restart(&mut self) {
        self.window = None;
        self.baseline = None;
    }
}

#[cfg(test)]
mod tests {
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
            assert_eq!((reader.taken_samples(), reader.overflowed_samples()), (4_800, 0));
        }
    }

    #[test]
    fn a_full_ring_loses_and_counts() {
        let (mut callback, mut reader) = new(16_000, 16_000).unwrap();
        for _ in 0..210 {
            callback.take(&[0.25f32; 160], 1, |sample| sample);
        }
        assert_eq!(reader.overflowed_samples(), 1_600);
        assert_eq!(reader.waiting_samples(), 32_000);
        let mut out = Vec::new();
        reader.read(&mut out).unwrap();
        assert_eq!(out.len(), 32_000);
        callback.take(&[f32::NAN, 1.0], 1, |sample| sample);
        out.clear();
        reader.read(&mut out).unwrap();
        assert_eq!(out, [0.0, 1.0]);
    }

    /// A stream of 10 ms blocks whose clock runs fast by `drift`, delivered up to 9 ms late.
    fn lost_of(drift: f64, losses: &[(u64, u64)], jitter_ms: u64) -> u64 {
        let mut meter = LossMeter::new(48_000);
        let (mut taken, mut noise) = (0u64, 1u64);
        for block in 1..6_000u64 {
            let lost = losses.iter().filter(|(at, _)| *at == block).map(|(_, samples)| samples).sum::<u64>();
            taken += 480 - lost.min(480);
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let late_ns = (noise >> 33) % (jitter_ms * 1_000_000 + 1);
            let now_ns = (block as f64 * 10_000_000.0 / (1.0 + drift)) as u64 + late_ns;
            meter.observe(now_ns, taken);
        }
        meter.lost_samples()
    }

    #[test]
    fn losses_are_found_and_jitter_and_drift_are_none() {
        for drift in [0.0, 200e-6, -200e-6] {
            assert_eq!(lost_of(drift, &[], 9), 0, "{drift}");
            let lost = lost_of(drift, &[(1_000, 256), (3_333, 480), (5_000, 240)], 9);
            // Each of the three is measured to a fraction of the jitter.
            assert!(lost.abs_diff(976) <= 3 * 20, "{drift}: {lost}");
        }
        assert_eq!(lost_of(0.0, &[(1_000, 300)], 0), 300);
    }

    #[test]
    fn a_rebuilt_stream_starts_anew() {
        let mut meter = LossMeter::new(48_000);
        for second in 0..10u64 {
            meter.observe(second * 500_000_000, second * 24_000);
        }
        meter.restart();
        for second in 0..10u64 {
            assert_eq!(meter.observe((100 + second) * 500_000_000, second * 24_000), 0);
        }
    }
}
