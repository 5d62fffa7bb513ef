//! Sample rate conversion: whole signals without delay, streams with a known one.
//!
//! Both use rubato's synchronous FFT resampler, which is exact for rational ratios: frequency
//! cannot drift, and the delay is half a block. [`resample`] takes long blocks (a steep filter) and
//! removes the delay, so that a click at time t stays at time t. [`StreamResampler`] takes short
//! blocks and tells its delay. Rates without a useful common divisor would need blocks of seconds
//! there, so a stream falls back to windowed-sinc interpolation for those.
//!
//! ```
//! use repartee_audio::resample::resample;
//! let second = vec![0.0f32; 44_100];
//! assert_eq!(resample(&second, 44_100, 16_000)?.len(), 16_000);
//! # Ok::<(), repartee_audio::AudioError>(())
//! ```
//!
//! Rejected: sinc interpolation for whole signals, whose delay is a fraction of an output sample,
//! so that the click would move.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{
    Async, Fft, FixedAsync, FixedSync, Indexing, Resampler, SincInterpolationParameters,
    SincInterpolationType, WindowFunction,
};

use crate::AudioError;

/// The lowest rate converted: below it there is no speech left to hear.
pub const MIN_RATE_HZ: u32 = 1_000;
/// The highest rate converted: the highest that sound cards offer.
pub const MAX_RATE_HZ: u32 = 768_000;
/// The most samples that one call gives back (1 GiB of `f32`).
pub const MAX_SAMPLES: usize = 1 << 28;

/// Taps on the lower-rate side of a whole-signal filter: with a squared Blackman-Harris window the
/// passband then reaches about 98 % of the lower Nyquist frequency.
const WHOLE_SIGNAL_TAPS: usize = 1024;
/// Taps on the lower-rate side of a stream's filter: 8 ms at 16 kHz, passband to about 90 %.
const STREAM_TAPS: usize = 128;
/// Longest input block a stream may wait for; above it, sinc interpolation is used.
const MAX_STREAM_BLOCK_MS: u64 = 40;

/// `value` multiplied by `to` / `from`, rounded to nearest; saturates.
fn scaled(value: usize, from_hz: u32, to_hz: u32) -> usize {
    let from = u128::from(from_hz.max(1));
    let scaled = (value as u128 * u128::from(to_hz) + from / 2) / from;
    usize::try_from(scaled).unwrap_or(usize::MAX)
}

fn check_rate(rate_hz: u32) -> Result<(), AudioError> {
    if (MIN_RATE_HZ..=MAX_RATE_HZ).contains(&rate_hz) {
        Ok(())
    } else {
        Err(AudioError::UnsupportedRate { rate_hz })
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The resampler's own block length: the input side of a [`FixedSync::Both`] resampler whose shorter
/// side has at least `taps` samples.
fn block_in(from_hz: u32, to_hz: u32, taps: usize) -> usize {
    let divisor = gcd(from_hz, to_hz);
    let (step_in, step_out) = ((from_hz / divisor) as usize, (to_hz / divisor) as usize);
    // An even multiple keeps half a block, the delay, a whole number of samples on both sides.
    let steps = taps.div_ceil(step_in.min(step_out)).next_multiple_of(2);
    steps * step_in
}

fn fft(from_hz: u32, to_hz: u32, block_in: usize) -> Result<Fft<f32>, AudioError> {
    Fft::new_custom(
        from_hz as usize,
        to_hz as usize,
        block_in,
        1,
        1,
        WindowFunction::BlackmanHarris2,
        FixedSync::Both,
    )
    .map_err(|e| refused(from_hz, to_hz, e))
}

fn refused(from_hz: u32, to_hz: u32, reason: impl std::fmt::Display) -> AudioError {
    AudioError::Resample { from_hz, to_hz, reason: reason.to_string() }
}

/// Converts a whole mono signal from `from_hz` to `to_hz`.
///
/// The output has round(n * `to_hz` / `from_hz`) samples and no delay: what happens at t seconds in
/// the input happens at t seconds in the output. Outside the signal is silence.
///
/// # Errors
/// [`AudioError::UnsupportedRate`] for a rate outside [`MIN_RATE_HZ`]..=[`MAX_RATE_HZ`],
/// [`AudioError::TooLong`] if the output would have more than [`MAX_SAMPLES`].
pub fn resample(samples: &[f32], from_hz: u32, to_hz: u32) -> Result<Vec<f32>, AudioError> {
    check_rate(from_hz)?;
    check_rate(to_hz)?;
    let wanted = scaled(samples.len(), from_hz, to_hz);
    if wanted > MAX_SAMPLES {
        return Err(AudioError::TooLong { limit_samples: MAX_SAMPLES });
    }
    if from_hz == to_hz || samples.is_empty() {
        return Ok(samples.to_vec());
    }
    let mut resampler = fft(from_hz, to_hz, block_in(from_hz, to_hz, WHOLE_SIGNAL_TAPS))?;
    let (len_in, len_out) = (resampler.input_frames_next(), resampler.output_frames_next());
    let delay = resampler.output_delay();
    let blocks = (wanted + delay).div_ceil(len_out);
    let mut out = vec![0.0f32; blocks * len_out];
    for (block, out) in out.chunks_exact_mut(len_out).enumerate() {
        let start = (block * len_in).min(samples.len());
        let input = &samples[start..(start + len_in).min(samples.len())];
        run(&mut resampler, input, out).map_err(|e| refused(from_hz, to_hz, e))?;
    }
    out.drain(..delay);
    out.truncate(wanted);
    Ok(out)
}

/// One block: `input` may be shorter than the resampler wants, the rest counts as silence.
fn run(resampler: &mut dyn Resampler<f32>, input: &[f32], out: &mut [f32]) -> Result<usize, String> {
    let (len_in, len_out) = (input.len(), out.len());
    let indexing = Indexing::new().partial_len(len_in);
    let input = SequentialSlice::new(input, 1, len_in).map_err(|e| e.to_string())?;
    let mut out = SequentialSlice::new_mut(out, 1, len_out).map_err(|e| e.to_string())?;
    let (_, written) =
        resampler.process_into_buffer(&input, &mut out, Some(&indexing)).map_err(|e| e.to_string())?;
    Ok(written)
}

/// Converts a mono stream a piece at a time, with a fixed delay.
///
/// Pieces may have any length; their lengths do not change the output. After the first
/// [`delay_samples`](Self::delay_samples) samples of (near) silence the output is the signal. A piece waits until a block
/// of [`block_samples`](Self::block_samples) is full, at most 40 ms. [`push`](Self::push) does not allocate as long as
/// the output vector has room.
pub struct StreamResampler {
    from_hz: u32,
    to_hz: u32,
    /// `None` for equal rates.
    resampler: Option<Box<dyn Resampler<f32>>>,
    /// Input that does not fill a block yet; never longer than one block.
    pending: Vec<f32>,
    samples_in: usize,
    samples_out: usize,
}

impl StreamResampler {
    /// A stream from `from_hz` to `to_hz`.
    ///
    /// # Errors
    /// [`AudioError::UnsupportedRate`] for a rate outside [`MIN_RATE_HZ`]..=[`MAX_RATE_HZ`].
    pub fn new(from_hz: u32, to_hz: u32) -> Result<Self, AudioError> {
        check_rate(from_hz)?;
        check_rate(to_hz)?;
        let resampler: Option<Box<dyn Resampler<f32>>> = if from_hz == to_hz {
            None
        } else {
            let block = block_in(from_hz, to_hz, STREAM_TAPS);
            if block as u64 * 1000 <= MAX_STREAM_BLOCK_MS * u64::from(from_hz) {
                Some(Box::new(fft(from_hz, to_hz, block)?))
            } else {
                Some(Box::new(sinc(from_hz, to_hz)?))
            }
        };
        let block = resampler.as_ref().map_or(0, |r| r.input_frames_max());
        let pending = Vec::with_capacity(block);
        Ok(Self { from_hz, to_hz, resampler, pending, samples_in: 0, samples_out: 0 })
    }

    /// How much later, in output samples, an event stands in the output than in the input. Exact for
    /// the usual rates; within one sample for rates without a useful common divisor.
    pub fn delay_samples(&self) -> usize {
        self.resampler.as_ref().map_or(0, |r| r.output_delay())
    }

    /// Input samples that are collected before output appears (0 for equal rates).
    pub fn block_samples(&self) -> usize {
        self.resampler.as_ref().map_or(0, |r| r.input_frames_max())
    }

    /// Takes `input` at the input rate, appends what is ready to `out` at the output rate.
    ///
    /// # Errors
    /// [`AudioError::Resample`] if the resampler refuses, which would be a defect here.
    pub fn push(&mut self, mut input: &[f32], out: &mut Vec<f32>) -> Result<(), AudioError> {
        self.samples_in += input.len();
        let Some(resampler) = self.resampler.as_mut() else {
            out.extend_from_slice(input);
            self.samples_out += input.len();
            return Ok(());
        };
        while !input.is_empty() {
            let wanted = resampler.input_frames_next();
            let (taken, rest) = input.split_at((wanted - self.pending.len()).min(input.len()));
            self.pending.extend_from_slice(taken);
            input = rest;
            if self.pending.len() == wanted {
                let written = append(resampler.as_mut(), &self.pending, out)
                    .map_err(|e| refused(self.from_hz, self.to_hz, e))?;
                self.samples_out += written;
                self.pending.clear();
            }
        }
        Ok(())
    }

    /// Ends the stream: appends what is still inside, so that all output together has
    /// round(n * `to_hz` / `from_hz`) + [`delay_samples`](Self::delay_samples) samples, then starts anew.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(&mut self, out: &mut Vec<f32>) -> Result<(), AudioError> {
        let wanted = scaled(self.samples_in, self.from_hz, self.to_hz) + self.delay_samples();
        if let Some(resampler) = self.resampler.as_mut() {
            while self.samples_out < wanted {
                let written = append(resampler.as_mut(), &self.pending, out)
                    .map_err(|e| refused(self.from_hz, self.to_hz, e))?;
                self.samples_out += written;
                self.pending.clear();
            }
            out.truncate(out.len() - (self.samples_out - wanted).min(out.len()));
        }
        self.reset();
        Ok(())
    }

    /// Forgets everything heard so far: the next sample starts a new stream.
    pub fn reset(&mut self) {
        if let Some(resampler) = self.resampler.as_mut() {
            resampler.reset();
        }
        self.pending.clear();
        (self.samples_in, self.samples_out) = (0, 0);
    }
}

fn append(resampler: &mut dyn Resampler<f32>, input: &[f32], out: &mut Vec<f32>) -> Result<usize, String> {
    let start = out.len();
    out.resize(start + resampler.output_frames_next(), 0.0);
    let written = run(resampler, input, &mut out[start..])?;
    out.truncate(start + written);
    Ok(written)
}

fn sinc(from_hz: u32, to_hz: u32) -> Result<Async<f32>, AudioError> {
    // When the rate goes down, the filter spans as many output samples as it does input samples
    // when it goes up.
    let shrink = from_hz.div_ceil(to_hz).clamp(1, 64) as usize;
    let parameters = SincInterpolationParameters {
        sinc_len: STREAM_TAPS * shrink,
        f_cutoff: None,
        oversampling_factor: 256,
        interpolation: SincInterpolationType::Cubic,
        window: WindowFunction::BlackmanHarris2,
    };
    let ratio = f64::from(to_hz) / f64::from(from_hz);
    let chunk = (from_hz / 100) as usize;
    Async::new_sinc(ratio, 1.0, &parameters, chunk, 1, FixedAsync::Input)
        .map_err(|e| refused(from_hz, to_hz, e))
}

#[cfg(test)]
#[path = "resample_tests.rs"]
mod tests;
