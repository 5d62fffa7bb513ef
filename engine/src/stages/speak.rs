//! The speak stage: phonemes of a clause in, its sound out, in order, at 24 kHz.
//!
//! The model surrounds each clause with silence of its own making, as long as it likes, and its level varies with the
//! text. So the silence is cut off, a pause follows that fits how the clause ends, and the level is brought to the same
//! loudness everywhere: clauses sound like one speaker who reads on.
//!
//! ```text
//! phonemes ─▶ model ─▶ cut silence ─▶ even the level ─▶ fade the ends ─▶ sound, pause
//! ```

use crate::backends::CancelToken;
use crate::models::ModelError;
use crate::models::kokoro::{self, Kokoro, SpeakOptions, Voice};
use crate::text::clauses::ClauseEnd;

/// Samples a second of everything that comes out.
pub const RATE_HZ: u32 = kokoro::RATE_HZ;
/// Samples of one measurement of loudness: 10 ms.
const WINDOW: usize = RATE_HZ as usize / 100;
/// Loudness of spoken parts, root mean square: -23 dB of full scale, as broadcasts have it.
const LEVEL: f32 = 0.07;
/// Most that a clause is made louder or softer.
const GAIN: f32 = 2.0;
/// No sample is larger.
const PEAK: f32 = 0.95;
/// A window this far below the loudest is silence: 50 dB. What is softer nobody hears beside speech.
const SILENCE: f32 = 0.003;
/// Quiet windows that are kept before and behind speech, for soft onsets and ends.
const KEPT_WINDOWS: usize = 3;
/// Samples over which a clause's ends are faded: 5 ms.
const FADE: usize = RATE_HZ as usize / 200;

/// Seconds of silence behind a clause. With the soft ends that are kept, gaps stay below the 0.3 s at which a listener
/// thinks that the speaker is done.
pub fn pause_secs(end: ClauseEnd) -> f32 {
    match end {
        ClauseEnd::Phrase => 0.09,
        ClauseEnd::Sentence => 0.18,
        ClauseEnd::Paragraph => 0.22,
    }
}

/// How to speak.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SpeechSettings {
    /// 1 is the voice's own speed.
    pub speed: f32,
    /// Equal seeds give equal sound.
    pub seed: u64,
}

impl Default for SpeechSettings {
    fn default() -> Self {
        Self { speed: 1.0, seed: 0 }
    }
}

/// Speaks clauses.
pub struct Speaker {
    kokoro: Kokoro,
    voice: Voice,
    settings: SpeechSettings,
}

impl Speaker {
    /// A speaker with a voice.
    pub fn new(kokoro: Kokoro, voice: Voice, settings: SpeechSettings) -> Self {
        Self { kokoro, voice, settings }
    }

    /// The model.
    pub fn model(&mut self) -> &mut Kokoro {
        &mut self.kokoro
    }

    /// Speaks with another voice from the next clause on.
    pub fn set_voice(&mut self, voice: Voice) {
        self.voice = voice;
    }

    /// Speaks otherwise from the next clause on.
    pub fn set_settings(&mut self, settings: SpeechSettings) {
        self.settings = settings;
    }

    /// The sound of a clause and the pause behind it (none where a sentence was cut without a mark); nothing for phonemes that the model does not know at all.
    ///
    /// # Errors
    /// Cancelled, or what the device says.
    pub fn clause(
        &mut self,
        phonemes: &str,
        end: ClauseEnd,
        cancel: Option<&CancelToken>,
    ) -> Result<Vec<f32>, ModelError> {
        if !phonemes.chars().any(char::is_alphabetic) {
            return Ok(Vec::new());
        }
        let SpeechSettings { speed, seed } = self.settings;
        let options = SpeakOptions { speed, seed, cancel, ..SpeakOptions::default() };
        let mut samples = self.kokoro.synthesize(phonemes, &self.voice, &options)?;
        finish(&mut samples);
        if !samples.is_empty() {
            let cut = end == ClauseEnd::Phrase && phonemes.trim_end().ends_with(char::is_alphabetic);
            let pause = if cut { 0 } else { (pause_secs(end) * RATE_HZ as f32) as usize };
            samples.resize(samples.len() + pause, 0.0);
        }
        Ok(samples)
    }
}

/// Root mean square of each window.
fn loudness(samples: &[f32]) -> Vec<f32> {
    let rms = |w: &[f32]| (w.iter().map(|x| x * x).sum::<f32>() / w.len() as f32).sqrt();
    samples.chunks(WINDOW).map(rms).collect()
}

/// Cuts silence off both ends, brings the spoken parts to [`LEVEL`] and fades the ends.
fn finish(samples: &mut Vec<f32>) {
    samples.iter_mut().filter(|s| !s.is_finite()).for_each(|s| *s = 0.0);
    let windows = loudness(samples);
    let top = windows.iter().copied().fold(0.0, f32::max);
    let loud = |&w: &f32| w > SILENCE * top;
    let (Some(first), Some(last)) = (windows.iter().position(loud), windows.iter().rposition(loud)) else {
        samples.clear();
        return;
    };
    // Only what is spoken counts: a clause with long pauses is not a soft one.
    let spoken: Vec<f32> = windows.iter().copied().filter(|&w| w > 0.1 * top).collect();
    let level = (spoken.iter().map(|w| w * w).sum::<f32>() / spoken.len().max(1) as f32).sqrt();
    let peak = samples.iter().fold(0.0_f32, |m, s| m.max(s.abs()));
    let gain = (LEVEL / level).clamp(1.0 / GAIN, GAIN).min(PEAK / peak);
    samples.truncate(((last + 1 + KEPT_WINDOWS) * WINDOW).min(samples.len()));
    samples.drain(..first.saturating_sub(KEPT_WINDOWS) * WINDOW);
    samples.iter_mut().for_each(|s| *s *= gain);
    let n = samples.len();
    for i in 0..FADE.min(n / 2) {
        let share = i as f32 / FADE as f32;
        samples[i] *= share;
        samples[n - 1 - i] *= share;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(secs: f32, level: f32) -> Vec<f32> {
        (0..(secs * RATE_HZ as f32) as usize).map(|t| level * (t as f32 * 0.05).sin()).collect()
    }

    fn clause(before: f32, level: f32, behind: f32) -> Vec<f32> {
        let silence = |secs| tone(secs, 1e-6);
        [silence(before), tone(0.5, level), silence(behind)].concat()
    }

    fn rms(samples: &[f32]) -> f32 {
        (samples.iter().map(|x| x * x).sum::<f32>() / samples.len() as f32).sqrt()
    }

    #[test]
    fn silence_goes_and_levels_meet() {
        let (mut soft, mut loud) = (clause(0.4, 0.06, 0.7), clause(0.0, 0.18, 0.01));
        finish(&mut soft);
        finish(&mut loud);
        // Half a second of sound and at most four windows at each end.
        assert!((12_000..=12_000 + 8 * WINDOW).contains(&soft.len()), "{}", soft.len());
        let middle = |s: &[f32]| rms(&s[s.len() / 3..s.len() / 2]);
        assert!((20.0 * (middle(&soft) / middle(&loud)).log10()).abs() < 0.5);
        assert!((20.0 * (middle(&soft) / LEVEL).log10()).abs() < 0.5);
    }

    #[test]
    fn ends_do_not_click_and_nothing_clips() {
        let mut spiky = clause(0.1, 0.02, 0.1);
        spiky[5000] = 0.9;
        finish(&mut spiky);
        assert!(spiky[0] == 0.0 && *spiky.last().unwrap() == 0.0);
        assert!(spiky.iter().all(|s| s.abs() <= PEAK + 1e-6));
        let mut abrupt = tone(0.5, 0.2);
        finish(&mut abrupt);
        assert!(abrupt.windows(2).all(|w| (w[1] - w[0]).abs() < 0.02));
    }

    #[test]
    fn nothing_stays_nothing() {
        for mut samples in [vec![], vec![0.0; 5000], vec![f32::NAN; 100]] {
            finish(&mut samples);
            assert!(samples.is_empty());
        }
    }

    #[test]
    fn gaps_stay_short() {
        let kept = (2 * KEPT_WINDOWS * WINDOW) as f32 / RATE_HZ as f32;
        for end in [ClauseEnd::Phrase, ClauseEnd::Sentence, ClauseEnd::Paragraph] {
            assert!(pause_secs(end) + kept < 0.3);
        }
    }
}
