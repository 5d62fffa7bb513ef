//! The echo canceller: takes what the loudspeaker plays out of what the microphone hears.
//!
//! ```text
//! output tap ─▶ resample ─▶ FarEnd (level held by the clock) ─▶┐
//! microphone, 16 kHz ───────────────────────────────────────▶ EchoPath ─▶ VAD, recogniser
//! ```
//!
//! The canceller is `sonora`, a port of WebRTC's AEC3: 16 kHz, frames of 10 ms, and for each frame of the
//! microphone exactly one of the loudspeaker. It finds the delay between the two by itself, and a
//! change of the delay costs it up to a second, so [`EchoPath`] keeps the pairing even: it never skips silence,
//! and where the two devices' clocks drift apart it stretches the far end by a sample in a frame at most.
//! What gets through all the same, for a microphone loses samples now and then, is known by its likeness to what is
//! played, and silenced. Noise suppression and gain control stay off, for they lower what a recogniser makes of speech.
//!
//! It runs beside the reader of the microphone, never in a callback. A panic in it, or a sample that is no number,
//! costs the frame and starts it anew.
//!
//! ```
//! use repartee_audio::echo::{EchoCanceller, FRAME_SAMPLES};
//! let mut canceller = EchoCanceller::new();
//! let (played, mut heard) = ([0.1; FRAME_SAMPLES], [0.05; FRAME_SAMPLES]);
//! canceller.process(&played, &mut heard);
//! ```
//!
//! Rejected: `aec3` (not `Send`), speexdsp (leaves 5 dB where this leaves 30, never finds a changed delay again),
//! telling it the delay (a wrong hint is worse than none), 48 kHz (no gain, three times the work).

mod absence;
mod leak;

use std::panic::{AssertUnwindSafe, catch_unwind};

use sonora::config::EchoCanceller as Aec3;
use sonora::{AudioProcessing, Config, StreamConfig};

use crate::AudioError;
use crate::output::OutputTap;
use crate::resample::StreamResampler;
use absence::Absence;
use leak::{Found, Leak};

/// The rate at which it works, in Hz.
pub const RATE_HZ: u32 = 16_000;
/// Samples of a frame: 10 ms.
pub const FRAME_SAMPLES: usize = 160;

/// How the sound of the loudspeaker is kept out of the microphone's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EchoMode {
    /// The canceller takes it out.
    #[default]
    Cancel,
    /// There is none: headphones. The microphone's sound stays as it is.
    Headphones,
}

/// The canceller itself, for frames that are already paired.
pub struct EchoCanceller {
    processing: AudioProcessing,
    noise: u32,
    restarts: u64,
}

impl Default for EchoCanceller {
    fn default() -> Self {
        Self::new()
    }
}

impl EchoCanceller {
    /// A canceller that has heard nothing yet; it needs about a second of sound to adapt.
    pub fn new() -> Self {
        Self { processing: processing(), noise: 1, restarts: 0 }
    }

    /// Takes the echo of `far`, which is sent to the loudspeaker, out of `near`, which the microphone hears.
    pub fn process(&mut self, far: &[f32; FRAME_SAMPLES], near: &mut [f32; FRAME_SAMPLES]) {
        let far = far.map(|sample| self.dithered(sample));
        let input = near.map(|sample| self.dithered(sample));
        let mut ignored = [0.0; FRAME_SAMPLES];
        // What a panic leaves behind is thrown away.
        let result = catch_unwind(AssertUnwindSafe(|| {
            self.processing.process_render_f32(&[&far], &mut [&mut ignored])?;
            self.processing.process_capture_f32(&[&input], &mut [near])
        }));
        if !matches!(result, Ok(Ok(()))) || near.iter().any(|sample| !sample.is_finite()) {
            tracing::warn!(?result, "the echo canceller failed and starts anew");
            *near = [0.0; FRAME_SAMPLES];
            self.restart();
        }
    }

    /// Forgets what it learned: after another device, another delay and another room.
    pub fn restart(&mut self) {
        self.processing = processing();
        self.restarts += 1;
    }

    /// How often it started anew.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Exact zeros make it compute with denormals, ten times as slow; noise at -120 dB does not.
    fn dithered(&mut self, sample: f32) -> f32 {
        self.noise = self.noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = (self.noise >> 8) as f32 / (1 << 23) as f32 - 1.0;
        let sample = if sample.is_finite() { sample } else { 0.0 };
        sample + noise * 1e-6
    }
}

fn processing() -> AudioProcessing {
    let stream = StreamConfig::new(RATE_HZ, 1);
    AudioProcessing::builder()
        .config(Config { echo_canceller: Some(Aec3::default()), ..Config::default() })
        .capture_config(stream)
        .render_config(stream)
        .build()
}

/// What the loudspeaker plays, as a stream that gives one frame for each frame of the microphone.
struct FarEnd {
    tap: OutputTap,
    resampler: StreamResampler,
    block: Vec<f32>,
    /// At 16 kHz, not used yet.
    waiting: Vec<f32>,
    /// Smallest number of samples that stayed over in this window, and the frames of it.
    least: usize,
    frames: usize,
    /// Frames in which one sample more (or less) is used than given out.
    stretch: i32,
    /// Frames given, and of these, frames that found too little.
    given: usize,
    late: usize,
}

/// How much may stay over at the tightest moment: enough against the jitter of callbacks, and not so much that
/// the loudspeaker seems later than it is. Between the two nothing is done, for each sample more or less is a change
/// of the delay that the canceller has to follow.
const SPARE_SAMPLES: std::ops::Range<usize> = 16..400;
/// What stays over when a loudspeaker is new: 10 ms.
const FIRST_SPARE_SAMPLES: usize = 160;
/// Frames after which the level is looked at: five seconds.
const WINDOW_FRAMES: usize = 500;
/// One frame in so many is stretched, which is 520 millionths; two clocks are apart by 200 at most.
const STRETCH_EVERY: usize = 12;
/// More than this over is no drift: the program was away.
const MOST_SPARE_SAMPLES: usize = 3_200;

impl FarEnd {
    fn new(tap: OutputTap) -> Result<Self, AudioError> {
        let resampler = StreamResampler::new(tap.device_hz(), RATE_HZ)?;
        Ok(Self {
            tap,
            resampler,
            block: vec![0.0; 1024],
            waiting: vec![0.0; FIRST_SPARE_SAMPLES],
            least: usize::MAX,
            frames: 0,
            stretch: 0,
            given: 0,
            late: 0,
        })
    }

    fn pull(&mut self) -> Result<(), AudioError> {
        loop {
            let count = self.tap.read(&mut self.block);
            if count == 0 {
                return Ok(());
            }
            self.resampler.push(&self.block[..count], &mut self.waiting)?;
        }
    }

    /// The next `frames` frames are about to be taken: sees to it that in the long run enough stays over and
    /// no more.
    fn hold_level(&mut self, frames: usize) {
        let over = self.waiting.len().saturating_sub(frames * FRAME_SAMPLES);
        self.least = self.least.min(over);
        self.frames += frames;
        if self.frames < WINDOW_FRAMES {
            return;
        }
        let least = self.least;
        (self.least, self.frames) = (usize::MAX, 0);
        let most = (WINDOW_FRAMES / STRETCH_EVERY) as i32;
        self.stretch = if least > MOST_SPARE_SAMPLES {
            self.waiting.drain(..least - SPARE_SAMPLES.start);
            0
        } else if least < SPARE_SAMPLES.start {
            -most
        } else if least > SPARE_SAMPLES.end {
            most
        } else {
            0
        };
        tracing::trace!(least, self.stretch, self.late, "level of the far end");
    }

    fn frame(&mut self) -> [f32; FRAME_SAMPLES] {
        let mut frame = [0.0; FRAME_SAMPLES];
        self.given += 1;
        let step = if self.given.is_multiple_of(STRETCH_EVERY) { self.stretch.signum() } else { 0 };
        let used = (FRAME_SAMPLES as i32 + step) as usize;
        if self.waiting.len() <= used {
            // Late; what is missing counts as silence, and what comes stays that much longer.
            self.late += 1;
            let count = self.waiting.len().min(FRAME_SAMPLES);
            frame[..count].copy_from_slice(&self.waiting[..count]);
            self.waiting.drain(..count);
            return frame;
        }
        if step == 0 {
            frame.copy_from_slice(&self.waiting[..FRAME_SAMPLES]);
        } else {
            let ratio = used as f32 / FRAME_SAMPLES as f32;
            for (i, sample) in frame.iter_mut().enumerate() {
                let at = i as f32 * ratio;
                let (whole, part) = (at as usize, at.fract());
                *sample = self.waiting[whole] * (1.0 - part) + self.waiting[whole + 1] * part;
            }
        }
        self.stretch -= step;
        self.waiting.drain(..used);
        frame
    }
}

/// A canceller needs half a second of sound before it can be at fault for what comes through.
const ADAPTED_FRAMES: usize = 50;

/// The canceller in the path of a microphone: pairs its sound with the loudspeaker's, whatever pieces they come in.
#[derive(Default)]
pub struct EchoPath {
    canceller: EchoCanceller,
    mode: EchoMode,
    absence: Absence,
    leak: Leak,
    /// Frames in which the canceller had something to adapt to, since it was new.
    age_frames: usize,
    far: Option<FarEnd>,
    /// Of the microphone, what does not fill a frame yet.
    pending: Vec<f32>,
}

impl EchoPath {
    /// A path without a loudspeaker.
    pub fn new() -> Self {
        Self::default()
    }

    /// Samples that wait for the rest of their frame.
    pub fn pending_samples(&self) -> usize {
        self.pending.len()
    }

    /// The loudspeaker is another now.
    ///
    /// # Errors
    /// [`AudioError::UnsupportedRate`] for a rate that is not converted.
    pub fn set_far_end(&mut self, tap: Option<OutputTap>) -> Result<(), AudioError> {
        self.far = tap.map(FarEnd::new).transpose()?;
        self.forget();
        Ok(())
    }

    /// The microphone is another now.
    pub fn restart(&mut self) {
        self.pending.clear();
        self.forget();
    }

    fn forget(&mut self) {
        self.canceller.restart();
        self.age_frames = 0;
        self.absence = Absence::default();
        self.leak = Leak::default();
    }

    /// Whether there are headphones.
    pub fn set_mode(&mut self, mode: EchoMode) {
        if self.mode != mode {
            self.mode = mode;
            self.forget();
        }
    }

    /// Takes `near`, of the microphone at 16 kHz, and appends whole frames without echo to `out`.
    ///
    /// # Errors
    /// [`AudioError::Resample`], a defect.
    pub fn process(&mut self, near: &[f32], out: &mut Vec<f32>) -> Result<(), AudioError> {
        self.pending.extend_from_slice(near);
        let frames = self.pending.len() / FRAME_SAMPLES;
        if let Some(far) = &mut self.far {
            far.pull()?;
            far.hold_level(frames);
        }
        for frame in self.pending.chunks_exact(FRAME_SAMPLES) {
            let far = self.far.as_mut().map_or([0.0; FRAME_SAMPLES], FarEnd::frame);
            let mut near = [0.0; FRAME_SAMPLES];
            near.copy_from_slice(frame);
            if self.mode == EchoMode::Cancel {
                let heard = near;
                self.canceller.process(&far, &mut near);
                let is_raw = self.absence.is_no_echo(&far, &heard);
                if is_raw {
                    near = heard;
                }
                self.age_frames += usize::from(leak::is_sound(&far));
                match self.leak.look(&far, &heard, &near) {
                    Found::Nothing => {}
                    Found::Echo => near = [0.0; FRAME_SAMPLES],
                    Found::Moved => {
                        near = [0.0; FRAME_SAMPLES];
                        if is_raw {
                            // The canceller had no say: the headphones are off.
                            self.absence = Absence::default();
                        } else if self.age_frames > ADAPTED_FRAMES {
                            // One that is new holds back more than one that is sure of the wrong place.
                            tracing::debug!("the echo has moved; the canceller starts anew");
                            self.canceller.restart();
                            self.age_frames = 0;
                        }
                    }
                }
            }
            out.extend_from_slice(&near);
        }
        self.pending.drain(..frames * FRAME_SAMPLES);
        Ok(())
    }
}

#[cfg(test)]
#[path = "echo_tests.rs"]
mod tests;
