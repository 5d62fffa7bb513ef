//! The log-mel spectrogram that Whisper listens to.
//!
//! Radford et al. 2022 and openai/whisper `audio.py`: 16 kHz, Hann window of 400 samples, hop 160, the signal
//! reflected by 200 samples at both ends, power, mel filters of Slaney's kind (as librosa makes them), `log10`
//! clamped at 8 below the maximum, then `(x + 4) / 4`.

use std::sync::Arc;

use realfft::{RealFftPlanner, RealToComplex};

/// Samples of the window.
const WINDOW: usize = 400;
/// Samples between frames.
pub(crate) const HOP: usize = 160;
const BINS: usize = WINDOW / 2 + 1;
const RATE_HZ: f64 = 16_000.0;

/// Triangular filters `[mels][201]` on Slaney's mel scale, each of unit area (Slaney 1998, "Auditory Toolbox").
pub fn mel_filters(mels: usize) -> Vec<f32> {
    // Linear below 1 kHz, logarithmic above.
    let (step, knee) = (200.0 / 3.0, 1000.0_f64);
    let log_step = 6.4_f64.ln() / 27.0;
    let to_mel = |hz: f64| if hz < knee { hz / step } else { knee / step + (hz / knee).ln() / log_step };
    let to_hz = |mel: f64| {
        let at = knee / step;
        if mel < at { mel * step } else { knee * ((mel - at) * log_step).exp() }
    };
    let top = to_mel(RATE_HZ / 2.0);
    let edge = |i: usize| to_hz(top * i as f64 / (mels + 1) as f64);
    let mut filters = vec![0.0; mels * BINS];
    for m in 0..mels {
        let (low, mid, high) = (edge(m), edge(m + 1), edge(m + 2));
        for (bin, f) in filters[m * BINS..(m + 1) * BINS].iter_mut().enumerate() {
            let hz = bin as f64 * RATE_HZ / WINDOW as f64;
            let rise = (hz - low) / (mid - low);
            let fall = (high - hz) / (high - mid);
            *f = (rise.min(fall).max(0.0) * 2.0 / (high - low)) as f32;
        }
    }
    filters
}

/// Computes log-mel spectrograms.
pub struct LogMel {
    mels: usize,
    /// For each filter its first bin and its weights.
    filters: Vec<(usize, Vec<f32>)>,
    window: Vec<f32>,
    fft: Arc<dyn RealToComplex<f32>>,
}

impl LogMel {
    /// For `mels` filters (80 for all Whisper models up to large-v2, 128 after).
    pub fn new(mels: usize) -> Self {
        let dense = mel_filters(mels);
        let sparse = |row: &[f32]| {
            let first = row.iter().position(|&w| w > 0.0).unwrap_or(0);
            let last = row.iter().rposition(|&w| w > 0.0).map_or(first, |l| l + 1);
            (first, row[first..last].to_vec())
        };
        let turn = |i: usize| 2.0 * std::f64::consts::PI * i as f64 / WINDOW as f64;
        Self {
            mels,
            filters: dense.chunks_exact(BINS).map(sparse).collect(),
            window: (0..WINDOW).map(|i| (0.5 - 0.5 * turn(i).cos()) as f32).collect(),
            fft: RealFftPlanner::new().plan_fft_forward(WINDOW),
        }
    }

    /// Frames `[samples / 160, mels]` of the clip with silence behind it up to `total` samples (at least the clip's).
    pub fn compute(&self, clip: &[f32], total: usize) -> Vec<f32> {
        let total = total.max(clip.len());
        let frames = total / HOP;
        let floor = 1e-10_f32.log10();
        let mut out = vec![floor; frames * self.mels];
        let mut input = self.fft.make_input_vec();
        let mut spectrum = self.fft.make_output_vec();
        let mut scratch = self.fft.make_scratch_vec();
        let mut top = f32::NEG_INFINITY;
        for (frame, mel) in out.chunks_exact_mut(self.mels).enumerate() {
            let start = (frame * HOP) as i64 - WINDOW as i64 / 2;
            let mut silent = true;
            for (i, (x, w)) in input.iter_mut().zip(&self.window).enumerate() {
                let sample =
                    reflected(start + i as i64, total).and_then(|at| clip.get(at)).copied().unwrap_or(0.0);
                silent &= sample == 0.0;
                *x = sample * w;
            }
            // Frames of exact silence are at the floor already; lengths are right by construction.
            if !silent && self.fft.process_with_scratch(&mut input, &mut spectrum, &mut scratch).is_ok() {
                for (m, (first, weights)) in mel.iter_mut().zip(&self.filters) {
                    let power = spectrum[*first..].iter().zip(weights).map(|(c, w)| c.norm_sqr() * w);
                    *m = power.sum::<f32>().max(1e-10).log10();
                }
            }
            top = mel.iter().copied().fold(top, f32::max);
        }
        let least = top - 8.0;
        out.iter_mut().for_each(|x| *x = (x.max(least) + 4.0) / 4.0);
        out
    }
}

/// Position `at` of a signal of `n` samples mirrored at both ends.
fn reflected(at: i64, n: usize) -> Option<usize> {
    let n = n as i64;
    let at = if at < 0 { -at } else { at };
    let at = if at >= n { 2 * (n - 1) - at } else { at };
    usize::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_have_unit_area_and_cover_the_band() {
        let filters = mel_filters(80);
        for row in filters.chunks_exact(BINS) {
            let area: f32 = row.iter().sum::<f32>() * 40.0;
            assert!((0.4..1.6).contains(&area), "{area}");
        }
    }

    #[test]
    fn a_tone_is_loudest_in_its_band_and_silence_sits_at_the_floor() {
        let tone: Vec<f32> =
            (0..16_000).map(|i| (i as f32 * 440.0 * std::f32::consts::TAU / 16_000.0).sin()).collect();
        let mel = LogMel::new(80).compute(&tone, 32_000);
        assert_eq!(mel.len(), 200 * 80);
        let row = &mel[50 * 80..51 * 80];
        let loudest = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(i, _)| i);
        // 440 Hz is mel 6.6 of 45.245; band i is centred at (i + 1) * 45.245 / 81.
        assert_eq!(loudest, Some(11));
        let top = mel.iter().copied().fold(f32::MIN, f32::max);
        assert!(mel[150 * 80..].iter().all(|&x| x == top - 2.0));
        assert!(LogMel::new(80).compute(&[], 0).is_empty());
    }
}
