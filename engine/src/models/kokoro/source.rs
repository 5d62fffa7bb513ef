//! The harmonic source: from a pitch to the spectrum that the generator shapes into a voice.
//!
//! Nine sines at multiples of the pitch (Wang et al. 2019, "Neural source-filter waveform models"), merged by a learned
//! layer, with a little noise where the voice sounds and more where it does not; then a short-time Fourier transform as
//! magnitudes and phases (Kaneko et al. 2022, iSTFTNet). The phase of the ninth harmonic reaches 10^5 radians within a
//! sentence, where f32 has steps of 0.01: so this is plain Rust in f64 and no part of a program. It costs a few
//! milliseconds, little beside the network's hundreds.
//!
//! The published code adds a normal number to each of the nine sines and merges them. Nine independent normals through
//! one linear layer are one normal with the layer's length as deviation, so one is drawn; it comes from a seed, so that
//! equal texts sound equal. The exported ONNX files leave the noise out, which makes phases of silence a matter of
//! rounding.

use std::f64::consts::TAU;

use crate::graph::step::random_bits;

/// Samples a second.
pub(super) const RATE_HZ: usize = 24_000;
/// Samples of one pitch value.
pub(super) const PITCH_SAMPLES: usize = 300;
/// Length of the Fourier transform.
pub(super) const FFT: usize = 20;
/// Samples from one transform to the next.
pub(super) const HOP: usize = 5;
/// Frequencies of a transform.
pub(super) const BINS: usize = FFT / 2 + 1;
const HARMONICS: usize = 9;
const SINE_LEVEL: f64 = 0.1;
const VOICED_HZ: f32 = 10.0;
const VOICED_NOISE: f64 = 0.003;

/// The layer that merges the harmonics.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Merge {
    pub(super) weight: [f32; HARMONICS],
    pub(super) bias: f32,
}

/// The periodic Hann window.
pub(super) fn window() -> [f64; FFT] {
    std::array::from_fn(|n| 0.5 - 0.5 * (TAU * n as f64 / FFT as f64).cos())
}

/// Standard normals by the counter (Box and Muller 1958), two for each pair of uniforms.
fn normals(seed: u64, count: usize) -> impl Iterator<Item = f64> {
    // The upper 24 bits, and a half so that it is never the logarithm of zero.
    let bits = move |i: usize| random_bits(seed as u32, (seed >> 32) as u32, i as u32) >> 8;
    let draw = move |i: usize| (f64::from(bits(i)) + 0.5) / 16_777_216.0;
    (0..count.div_ceil(2))
        .flat_map(move |i| {
            let radius = (-2.0 * draw(2 * i).ln()).sqrt();
            let (sin, cos) = (TAU * draw(2 * i + 1)).sin_cos();
            [radius * cos, radius * sin]
        })
        .take(count)
}

/// Asks whether to stop, in front of so many operations.
pub(super) type Stop<'a> = &'a dyn Fn(usize) -> bool;

/// The merged source: 300 samples for each pitch value (in Hz); none when it was stopped.
pub(super) fn waveform(pitch_hz: &[f32], merge: &Merge, seed: u64, stop: Stop<'_>) -> Option<Vec<f64>> {
    let samples = pitch_hz.len() * PITCH_SAMPLES;
    let mut out = vec![0.0; samples];
    for (h, &weight) in merge.weight.iter().enumerate() {
        let turns: Vec<f64> = pitch_hz
            .iter()
            .map(|&f| {
                let turn = f64::from(f) * (h + 1) as f64 / RATE_HZ as f64;
                turn - turn.floor()
            })
            .collect();
        // The phase in turns is known at the middle of each value's 300 samples and linear between them; in front of
        // the first and behind the last it stands still.
        let mut total = turns.first().copied().unwrap_or(0.0) * PITCH_SAMPLES as f64;
        let level = f64::from(weight) * SINE_LEVEL;
        let half = PITCH_SAMPLES / 2;
        let still = |turns: f64| (TAU * turns.fract()).sin();
        out.iter_mut().take(half).for_each(|s| *s += level * still(total));
        for (i, &turn) in turns.iter().enumerate().skip(1) {
            let (mut sin, mut cos) = (TAU * (total + turn / 2.0).fract()).sin_cos();
            let (step_sin, step_cos) = (TAU * turn).sin_cos();
            let from = i * PITCH_SAMPLES - half;
            if stop(8 * PITCH_SAMPLES) {
                return None;
            }
            for s in &mut out[from..from + PITCH_SAMPLES] {
                *s += level * sin;
                (sin, cos) = (sin * step_cos + cos * step_sin, cos * step_cos - sin * step_sin);
            }
            total += turn * PITCH_SAMPLES as f64;
        }
        let end = samples.saturating_sub(half);
        out[end..].iter_mut().for_each(|s| *s += level * still(total));
    }
    let length = merge.weight.iter().map(|&w| f64::from(w).powi(2)).sum::<f64>().sqrt();
    for (t, (s, normal)) in out.iter_mut().zip(normals(seed, samples)).enumerate() {
        // A sine, a logarithm and a tangent each.
        if t % PITCH_SAMPLES == 0 && stop(100 * PITCH_SAMPLES) {
            return None;
        }
        let voiced = pitch_hz[t / PITCH_SAMPLES] > VOICED_HZ;
        let (sines, noise) = if voiced { (*s, VOICED_NOISE) } else { (0.0, SINE_LEVEL / 3.0) };
        *s = (sines + noise * length * normal + f64::from(merge.bias)).tanh();
    }
    Some(out)
}

/// Magnitudes and phases `[samples / 5 + 1, 22]` of a signal mirrored at its ends; none when it was stopped.
pub(super) fn spectrum(signal: &[f64], stop: Stop<'_>) -> Option<Vec<f32>> {
    let n = signal.len() as i64;
    if n <= (FFT / 2) as i64 {
        return Some(Vec::new());
    }
    let window = window();
    let turn: [(f64, f64); FFT] = std::array::from_fn(|i| (TAU * i as f64 / FFT as f64).sin_cos());
    let frames = signal.len() / HOP + 1;
    let mut out = Vec::with_capacity(frames * 2 * BINS);
    for frame in 0..frames {
        if frame % 16 == 0 && stop(16 * BINS * (2 * FFT + 60)) {
            return None;
        }
        let first = (frame * HOP) as i64 - (FFT / 2) as i64;
        let x: [f64; FFT] = std::array::from_fn(|i| {
            let at = (first + i as i64).abs();
            let at = if at < n { at } else { 2 * (n - 1) - at };
            signal[at as usize] * window[i]
        });
        let mut phases = [0.0; BINS];
        for (k, phase) in phases.iter_mut().enumerate() {
            let (mut re, mut im) = (0.0, 0.0);
            for (i, &v) in x.iter().enumerate() {
                let (sin, cos) = turn[i * k % FFT];
                re += v * cos;
                im -= v * sin;
            }
            // The first and the last bin are real: a rounding error would turn their phase from pi to -pi at random.
            if k == 0 || k == BINS - 1 {
                im = 0.0;
            }
            out.push(re.hypot(im) as f32);
            *phase = im.atan2(re) as f32;
        }
        out.extend(phases);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waveform(pitch_hz: &[f32], merge: &Merge, seed: u64) -> Vec<f64> {
        super::waveform(pitch_hz, merge, seed, &|_| false).unwrap()
    }

    fn spectrum(signal: &[f64]) -> Vec<f32> {
        super::spectrum(signal, &|_| false).unwrap()
    }

    #[test]
    fn both_parts_can_be_stopped() {
        let merge = Merge { weight: [1.0; HARMONICS], bias: 0.0 };
        assert!(super::waveform(&[200.0; 40], &merge, 0, &|_| true).is_none());
        assert!(super::spectrum(&[0.5; 600], &|_| true).is_none());
    }

    #[test]
    fn a_steady_pitch_is_a_steady_sine() {
        // One harmonic of 240 Hz, its phase at sample 150 that of 300 samples.
        let mut weight = [0.0; HARMONICS];
        weight[0] = 1.0;
        let wave = waveform(&[240.0; 8], &Merge { weight, bias: 0.0 }, 1);
        let expected = |t: f64| (0.1 * (TAU * 240.0 / 24_000.0 * (t + 150.5)).sin()).tanh();
        let off: f64 = (150..2250).map(|t| (wave[t] - expected(t as f64)).powi(2)).sum::<f64>() / 2100.0;
        // What is left is the noise of a voiced sample.
        assert!((off.sqrt() - VOICED_NOISE).abs() < 2e-4, "{}", off.sqrt());
    }

    #[test]
    fn silence_is_noise_of_the_right_level_and_seeded() {
        let merge = Merge { weight: [1.0 / 3.0; HARMONICS], bias: 0.0 };
        let wave = waveform(&[0.0; 40], &merge, 7);
        let rms = (wave.iter().map(|x| x * x).sum::<f64>() / wave.len() as f64).sqrt();
        assert!((rms - SINE_LEVEL / 3.0).abs() < 1e-3, "{rms}");
        assert_eq!(wave, waveform(&[0.0; 40], &merge, 7));
        assert_ne!(wave, waveform(&[0.0; 40], &merge, 8));
    }

    #[test]
    fn the_spectrum_of_a_cosine_stands_in_its_bin() {
        let signal: Vec<f64> = (0..600).map(|t| (TAU * 3.0 * t as f64 / FFT as f64).cos()).collect();
        let spectrum = spectrum(&signal);
        assert_eq!(spectrum.len(), 121 * 2 * BINS);
        let frame = &spectrum[60 * 2 * BINS..61 * 2 * BINS];
        // Half the window's sum in the bin, a quarter in its neighbours; the frame starts at sample 290.
        assert!((frame[3] - 5.0).abs() < 1e-5 && (frame[2] - 2.5).abs() < 1e-5 && frame[6] < 1e-5);
        let phase = (TAU * 3.0 * 290.0 / FFT as f64).sin_cos();
        assert!((f64::from(frame[BINS + 3]) - phase.0.atan2(phase.1)).abs() < 1e-5);
    }

    #[test]
    fn real_bins_have_the_phase_nought_or_pi() {
        let signal: Vec<f64> = (0..600).map(|t| (f64::from(t) * 0.7).sin() - 0.2).collect();
        for frame in spectrum(&signal).chunks_exact(2 * BINS) {
            for k in [0, BINS - 1] {
                assert!([0.0, std::f32::consts::PI].contains(&frame[BINS + k]), "{}", frame[BINS + k]);
            }
        }
    }

    #[test]
    fn nothing_comes_of_nothing() {
        let merge = Merge { weight: [1.0; HARMONICS], bias: 0.0 };
        assert!(waveform(&[], &merge, 0).is_empty());
        assert!(spectrum(&[]).is_empty());
    }
}
