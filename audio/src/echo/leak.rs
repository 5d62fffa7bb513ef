//! Tells when the canceller lets the loudspeaker through.
//!
//! A few milliseconds that a microphone loses move the echo, and the canceller, which was sure of the old place, lets it pass
//! for half a second or more: enough for the program to hear itself and stop. What is left is therefore compared with the
//! loudspeaker at every delay up to 400 ms (not before it: a loudspeaker that is known too late is not seen). Speech is not
//! like it; an echo is, in a room with some reverberation too. What a canceller at work leaves is an echo as well, but far
//! below what came in: only more than that, found twice at one delay, speaks against the canceller.

use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

use super::FRAME_SAMPLES;

/// What is compared: 100 ms, long enough to tell one sound from another.
const WINDOW: usize = 1_600;
/// The longest delay, Bluetooth's included: 400 ms.
const LATEST: usize = 6_400;
const TRANSFORM: usize = 8_192;
/// Between two looks: 30 ms.
const LOOK_FRAMES: usize = 3;
/// What is left below -70 dB is no matter. (Speech loses 10 to 20 dB of its -60 by the emphasis.)
const FLOOR: f32 = 1e-7;
/// Part of what is left that the loudspeaker has to explain by one tap.
const EXPLAINED: f32 = 0.25;
/// The same before the canceller is at fault: an echo under somebody's speech is not.
const PLAIN: f32 = 0.3;
/// No echo is over 12 dB louder than what is played: in power, of the tap.
const MOST_GAIN: f32 = 16.0;
/// The canceller is at fault only for leaving over -10 dB of what came in.
const LEFT: f32 = 0.1;
/// Two looks mean the same delay when they are so near: 1 ms.
const SAME_DELAY: usize = 16;
/// What was found holds until the next look has been, and for the rest of the sound.
const HOLD_FRAMES: usize = 5;
/// Speech falls by 6 to 12 dB an octave, and slow waves are alike at any delay.
const EMPHASIS: f32 = 0.9;

/// What a look finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// No echo.
    Nothing,
    /// An echo is left.
    Echo,
    /// An echo is left, most of it, and again at the same delay: the canceller does not know where it is.
    Moved,
}

/// What went out, what came in and what was left of it, lately.
pub(super) struct Leak {
    far: Track,
    near: Track,
    left: Track,
    /// Delay of the echo that the last look found.
    last_delay: Option<usize>,
    frames: usize,
    hold_frames: usize,
    forward: Arc<dyn RealToComplex<f32>>,
    backward: Arc<dyn ComplexToReal<f32>>,
    /// One for each transform, and one that the library works in.
    spectra: [Vec<Complex<f32>>; 2],
    scratch: Vec<Complex<f32>>,
    padded: Vec<f32>,
}

/// The last samples of a signal, high frequencies raised.
struct Track {
    samples: Vec<f32>,
    last: f32,
}

impl Track {
    fn new(length: usize) -> Self {
        Self { samples: vec![0.0; length], last: 0.0 }
    }

    fn push(&mut self, frame: &[f32; FRAME_SAMPLES]) {
        self.samples.copy_within(FRAME_SAMPLES.., 0);
        let from = self.samples.len() - FRAME_SAMPLES;
        for (place, sample) in self.samples[from..].iter_mut().zip(frame) {
            let sample = if sample.is_finite() { *sample } else { 0.0 };
            *place = sample - EMPHASIS * self.last;
            self.last = sample;
        }
    }

    fn power(&self) -> f32 {
        self.samples.iter().map(|sample| sample * sample).sum::<f32>() / self.samples.len() as f32
    }
}

impl Default for Leak {
    fn default() -> Self {
        let mut planner = RealFftPlanner::new();
        let forward = planner.plan_fft_forward(TRANSFORM);
        let backward = planner.plan_fft_inverse(TRANSFORM);
        let scratch = forward.get_scratch_len().max(backward.get_scratch_len());
        Self {
            far: Track::new(LATEST + WINDOW),
            near: Track::new(WINDOW),
            left: Track::new(WINDOW),
            last_delay: None,
            frames: 0,
            hold_frames: 0,
            spectra: [forward.make_output_vec(), forward.make_output_vec()],
            forward,
            backward,
            scratch: vec![Complex::default(); scratch],
            padded: vec![0.0; TRANSFORM],
        }
    }
}

impl Leak {
    /// Looks whether what is `left` of `near`, the microphone's sound, is an echo of `far`, which the loudspeaker plays or
    /// played.
    pub(super) fn look(
        &mut self,
        far: &[f32; FRAME_SAMPLES],
        near: &[f32; FRAME_SAMPLES],
        left: &[f32; FRAME_SAMPLES],
    ) -> Found {
        self.far.push(far);
        self.near.push(near);
        self.left.push(left);
        self.frames += 1;
        self.hold_frames = self.hold_frames.saturating_sub(1);
        let mut found = if self.hold_frames > 0 { Found::Echo } else { Found::Nothing };
        if self.frames.is_multiple_of(LOOK_FRAMES) {
            let left = self.left.power();
            let is_heard = left > FLOOR && self.far.power() > FLOOR;
            let echo = if is_heard { self.echo() } else { None };
            if let Some((delay, explained)) = echo {
                self.hold_frames = HOLD_FRAMES;
                let is_same = self.last_delay.is_some_and(|last| last.abs_diff(delay) <= SAME_DELAY);
                let is_most = explained > PLAIN && left > LEFT * self.near.power();
                found = if is_same && is_most { Found::Moved } else { Found::Echo };
            }
            self.last_delay = echo.map(|(delay, _)| delay);
        }
        found
    }

    /// The delay at which the loudspeaker explains the most of what is left, and how much, if that is enough.
    fn echo(&mut self) -> Option<(usize, f32)> {
        let [far, left] = &mut self.spectra;
        for (track, spectrum) in [(&self.far, &mut *far), (&self.left, &mut *left)] {
            self.padded[..track.samples.len()].copy_from_slice(&track.samples);
            self.padded[track.samples.len()..].fill(0.0);
            if self.forward.process_with_scratch(&mut self.padded, spectrum, &mut self.scratch).is_err() {
                return None;
            }
        }
        far.iter_mut().zip(left.iter()).for_each(|(far, left)| *far *= left.conj());
        // Both are real by nature, and have to be to the last bit.
        far[0].im = 0.0;
        far[TRANSFORM / 2].im = 0.0;
        if self.backward.process_with_scratch(far, &mut self.padded, &mut self.scratch).is_err() {
            return None;
        }
        let energy = |samples: &[f32]| samples.iter().map(|s| f64::from(s * s)).sum::<f64>();
        let floor = WINDOW as f64 * f64::from(FLOOR);
        let left = energy(&self.left.samples) + 0.01 * floor;
        let mut far = energy(&self.far.samples[..WINDOW]);
        let mut most = (f64::from(EXPLAINED), None);
        for delay in 0..=LATEST {
            let product = f64::from(self.padded[delay]) / TRANSFORM as f64;
            let played = far.max(floor);
            let explained = product * product / (left * played);
            if explained > most.0 && product * product < f64::from(MOST_GAIN) * played * played {
                // How far behind the end of what was played the microphone's window ends.
                most = (explained, Some((LATEST - delay, explained as f32)));
            }
            if let Some(next) = self.far.samples.get(delay + WINDOW) {
                far += f64::from(next * next) - f64::from(self.far.samples[delay].powi(2));
            }
        }
        most.1
    }
}

/// Whether a frame is loud enough to adapt to: -50 dB.
pub(super) fn is_sound(frame: &[f32; FRAME_SAMPLES]) -> bool {
    frame.iter().map(|sample| sample * sample).sum::<f32>() > 1e-5 * FRAME_SAMPLES as f32
}
