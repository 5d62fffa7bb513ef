//! The harmonic source: from a pitch to the spectrum that the generator shapes into a voice.
//!
//! Nine sines at multiples of the pitch (Wang et al. 2019, "Neural source-filter waveform models"), merged by a learned
//! layer, with a little noise where the voice sounds and more where it does not; then a short-time Fourier transform as
//! magnitudes and phases (Kaneko et al. 2022, iSTFTNet). The phase of the ninth harmonic reaches 10^5 radians within a
//! sentence, where f32 has steps of 0.01: so this is plain Rust in f64 and no part of a program. A second of speech costs
//! some 5 ms of one processor: little beside the network's hundreds, but as much as the network on a large GPU, so it is
//! shared among up to eight threads.
//!
//! The published code adds a normal number to each of the nine sines and merges them. Nine independent normals through
//! one linear layer are one normal with the layer's length as deviation, so one is drawn; it comes from a seed, so that
//! equal texts sound equal. The exported ONNX files leave the noise out, which makes phases of silence a matter of
//! rounding.

use std::f64::consts::TAU;
use std::panic::resume_unwind;

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

/// Standard normals by the counter (Box and Muller 1958), two for each pair of uniforms; from number `first` on, which is even.
fn normals(seed: u64, first: usize) -> impl Iterator<Item = f64> {
    // The upper 24 bits, and a half so that it is never the logarithm of zero.
    let bits = move |i: usize| random_bits(seed as u32, (seed >> 32) as u32, i as u32) >> 8;
    let draw = move |i: usize| (f64::from(bits(i)) + 0.5) / 16_777_216.0;
    (first / 2..).flat_map(move |i| {
        let radius = (-2.0 * draw(2 * i).ln()).sqrt();
        let (sin, cos) = (TAU * draw(2 * i + 1)).sin_cos();
        [radius * cos, radius * sin]
    })
}

/// Asks whether to stop, in front of so many operations.
pub(super) type Stop<'a> = &'a (dyn Fn(usize) -> bool + Sync);

/// Threads that share the work, at most.
const MOST_THREADS: usize = 8;
/// Pieces that a thread is worth.
const PIECES: usize = 16;

/// Fills pieces of `size` numbers, told the number of each; whether it came to the end.
fn in_pieces<T: Send>(out: &mut [T], size: usize, fill: &(dyn Fn(usize, &mut [T]) -> bool + Sync)) -> bool {
    let pieces = out.len().div_ceil(size);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(MOST_THREADS).min(pieces.div_ceil(PIECES)).max(1);
    let each = pieces.div_ceil(threads).max(1);
    let run = |first: usize, part: &mut [T]| {
        part.chunks_mut(size).enumerate().all(|(i, piece)| fill(first + i, piece))
    };
    std::thread::scope(|scope| {
        let mut parts = out.chunks_mut(each * size).enumerate();
        let own = parts.next();
        let others: Vec<_> = parts.map(|(i, part)| scope.spawn(move || run(i * each, part))).collect();
        let is_done = own.is_none_or(|(_, part)| run(0, part));
        // A panic goes on in this thread.
        let rest = others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        rest.fold(is_done, |all, one| all && one)
    })
}

/// The turns of a harmonic within a piece: where it begins, and each sample's.
#[derive(Clone, Copy, Default)]
struct Turns {
    first: f64,
    each: f64,
}

/// The merged source: 300 samples for each pitch value (in Hz); none when it was stopped.
pub(super) fn waveform(pitch_hz: &[f32], merge: &Merge, seed: u64, stop: Stop<'_>) -> Option<Vec<f64>> {
    let samples = pitch_hz.len() * PITCH_SAMPLES;
    let mut out = vec![0.0; samples];
    if samples == 0 {
        return Some(out);
    }
    // The phase in turns is known at the middle of each value's 300 samples and linear between them; in front of the first
    // and behind the last it stands still.
    let half = PITCH_SAMPLES / 2;
    let mut pieces = vec![[Turns::default(); HARMONICS]; pitch_hz.len() + 1];
    for h in 0..HARMONICS {
        let turn = |f: f32| {
            let turn = f64::from(f) * (h + 1) as f64 / RATE_HZ as f64;
            turn - turn.floor()
        };
        let mut total = turn(pitch_hz[0]) * PITCH_SAMPLES as f64;
        pieces[0][h] = Turns { first: total, each: 0.0 };
        for (piece, &f) in pieces[1..].iter_mut().zip(&pitch_hz[1..]) {
            let each = turn(f);
            piece[h] = Turns { first: total + each / 2.0, each };
            total += each * PITCH_SAMPLES as f64;
        }
        pieces[pitch_hz.len()][h] = Turns { first: total, each: 0.0 };
    }
    let length = merge.weight.iter().map(|&w| f64::from(w).powi(2)).sum::<f64>().sqrt();
    let fill = |first: usize, turns: &[Turns; HARMONICS], out: &mut [f64]| {
        // Sines, and for each number a sine, a logarithm and a tangent.
        if stop((8 * HARMONICS + 100) * out.len()) {
            return false;
        }
        for (turns, &weight) in turns.iter().zip(&merge.weight) {
            let level = f64::from(weight) * SINE_LEVEL;
            let (mut sin, mut cos) = (TAU * turns.first.fract()).sin_cos();
            let (step_sin, step_cos) = (TAU * turns.each).sin_cos();
            for s in &mut *out {
                *s += level * sin;
                (sin, cos) = (sin * step_cos + cos * step_sin, cos * step_cos - sin * step_sin);
            }
        }
        for (t, (s, normal)) in (first..).zip(out.iter_mut().zip(normals(seed, first))) {
            let voiced = pitch_hz[t / PITCH_SAMPLES] > VOICED_HZ;
            let (sines, noise) = if voiced { (*s, VOICED_NOISE) } else { (0.0, SINE_LEVEL / 3.0) };
            *s = (sines + noise * length * normal + f64::from(merge.bias)).tanh();
        }
        true
    };
    let (head, rest) = out.split_at_mut(half);
    let (middle, tail) = rest.split_at_mut(samples - 2 * half);
    let is_done = fill(0, &pieces[0], head)
        && in_pieces(middle, PITCH_SAMPLES, &|i, out| fill(half + i * PITCH_SAMPLES, &pieces[i + 1], out))
        && fill(samples - half, &pieces[pitch_hz.len()], tail);
    is_done.then_some(out)
}

/// Frames that are transformed between two looks at whether to stop.
const FRAMES: usize = 16;

/// Magnitudes and phases `[samples / 5 + 1, 22]` of a signal mirrored at its ends; none when it was stopped.
pub(super) fn spectrum(signal: &[f64], stop: Stop<'_>) -> Option<Vec<f32>> {
    let n = signal.len() as i64;
    if n <= (FFT / 2) as i64 {
        return Some(Vec::new());
    }
    let window = window();
    let turn: [(f64, f64); FFT] = std::array::from_fn(|i| (TAU * i as f64 / FFT as f64).sin_cos());
    let turns: [[(f64, f64); FFT]; BINS] =
        std::array::from_fn(|k| std::array::from_fn(|i| turn[i * k % FFT]));
    let transform = |frame: usize, out: &mut [f32]| {
        let first = (frame * HOP) as i64 - (FFT / 2) as i64;
        let x: [f64; FFT] = std::array::from_fn(|i| {
            let at = (first + i as i64).abs();
            let at = if at < n { at } else { 2 * (n - 1) - at };
            signal[at as usize] * window[i]
        });
        for (k, turns) in turns.iter().enumerate() {
            let (mut re, mut im) = (0.0, 0.0);
            for (&v, &(sin, cos)) in x.iter().zip(turns) {
                re += v * cos;
                im -= v * sin;
            }
            // The first and the last bin are real: a rounding error would turn their phase from pi to -pi at random.
            if k == 0 || k == BINS - 1 {
                im = 0.0;
            }
            out[k] = re.hypot(im) as f32;
            out[BINS + k] = im.atan2(re) as f32;
        }
    };
    let frames = signal.len() / HOP + 1;
    let mut out = vec![0.0; frames * 2 * BINS];
    let is_done = in_pieces(&mut out, FRAMES * 2 * BINS, &|piece, out| {
        if stop(FRAMES * BINS * (2 * FFT + 60)) {
            return false;
        }
        for (i, out) in out.chunks_exact_mut(2 * BINS).enumerate() {
            transform(piece * FRAMES + i, out);
        }
        true
    });
    is_done.then_some(out)
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
