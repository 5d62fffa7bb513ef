//! The recogniser stage: an utterance in, its text out, with the guards that keep Whisper from inventing things.
//!
//! The encoder first hears only as much as was spoken. If the text then repeats itself, is unlikely, or does not
//! end, the utterance is heard again with the full 30 s, and after that with rising temperature, as openai/whisper
//! does (`transcribe.py`: thresholds -1.0 for the mean log-probability and 0.6 for no-speech).

use crate::backends::CancelToken;
use crate::models::ModelError;
use crate::models::whisper::{DecodeOptions, Decoded, FULL_SAMPLES, RATE_HZ, Whisper, short_context};

/// Mean log-probability below which a text is not believed.
const UNLIKELY: f32 = -1.0;
/// Probability of no speech above which an unlikely text is dropped.
const NO_SPEECH: f32 = 0.6;
/// How often a phrase may follow itself.
const MOST_REPEATS: usize = 3;
/// Utterances shorter than this hold no word.
const SHORTEST: usize = RATE_HZ / 10;

/// What was understood.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Transcript {
    /// The text, without space at its ends; empty when nobody spoke.
    pub text: String,
    /// Mean log-probability of its tokens.
    pub mean_logprob: f32,
    /// Probability that nobody spoke.
    pub no_speech: f32,
    /// How often it had to be decoded again.
    pub retries: usize,
}

/// Moments of a transcription, for the latency record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TranscribeEvent {
    /// The encoder starts.
    EncoderStart,
    /// The encoder is done for the first time.
    EncoderEnd,
}

/// Turns utterances into text.
pub struct Transcriber {
    whisper: Whisper,
    language: String,
}

impl Transcriber {
    /// Listens for one language (ignored by English-only models).
    pub fn new(whisper: Whisper, language: impl Into<String>) -> Self {
        Self { whisper, language: language.into() }
    }

    /// The model.
    pub fn whisper(&mut self) -> &mut Whisper {
        &mut self.whisper
    }

    /// The text of one utterance of up to 30 s at 16 kHz; what is longer is cut.
    ///
    /// # Errors
    /// An unknown language, or cancelled.
    pub fn transcribe(
        &mut self,
        utterance: &[f32],
        on_event: &mut dyn FnMut(TranscribeEvent),
        cancel: Option<&CancelToken>,
    ) -> Result<Transcript, ModelError> {
        let utterance = &utterance[..utterance.len().min(FULL_SAMPLES)];
        on_event(TranscribeEvent::EncoderStart);
        if utterance.len() < SHORTEST || utterance.iter().all(|x| x.abs() < 1e-4) {
            on_event(TranscribeEvent::EncoderEnd);
            return Ok(Transcript::default());
        }
        let mut contexts = vec![short_context(utterance.len()), FULL_SAMPLES];
        contexts.dedup();
        let language = self.language.clone();
        let mut best: Option<Decoded> = None;
        let mut tries = 0;
        for (i, &context) in contexts.iter().enumerate() {
            let mel = self.whisper.log_mel(utterance, context);
            self.whisper.encode(&mel, None, cancel)?;
            if i == 0 {
                on_event(TranscribeEvent::EncoderEnd);
            }
            let last = i + 1 == contexts.len();
            let temperatures: &[f32] = if last { &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0] } else { &[0.0] };
            for &temperature in temperatures {
                // More than ten tokens a second is no speech: a bound on how long a loop can run.
                let max_tokens = 16 + utterance.len() / (RATE_HZ / 10);
                let options = DecodeOptions {
                    language: &language,
                    temperature,
                    seed: tries as u64,
                    max_tokens,
                    unsuppressed: false,
                };
                let decoded = self.whisper.decode(&options, cancel)?;
                tries += 1;
                if decoded.no_speech > NO_SPEECH && decoded.mean_logprob < UNLIKELY {
                    return Ok(Transcript {
                        no_speech: decoded.no_speech,
                        retries: tries - 1,
                        ..Transcript::default()
                    });
                }
                if is_sound(&decoded) {
                    return self.finish(&decoded, tries - 1);
                }
                if best.as_ref().is_none_or(|b| penalty(&decoded) < penalty(b)) {
                    best = Some(decoded);
                }
            }
        }
        // Nothing was convincing: the least bad text, its repetitions cut.
        let mut decoded = best.unwrap_or_default();
        let keep = without_repeats(&decoded.ids);
        decoded.ids.truncate(keep);
        self.finish(&decoded, tries.saturating_sub(1))
    }

    fn finish(&self, decoded: &Decoded, retries: usize) -> Result<Transcript, ModelError> {
        let text = self.whisper.tokenizer().decode(&decoded.ids)?.trim().to_owned();
        let (mean_logprob, no_speech) = (decoded.mean_logprob, decoded.no_speech);
        Ok(Transcript { text, mean_logprob, no_speech, retries })
    }
}

fn is_sound(d: &Decoded) -> bool {
    d.ended && d.mean_logprob >= UNLIKELY && without_repeats(&d.ids) == d.ids.len()
}

fn penalty(d: &Decoded) -> f32 {
    let cut = d.ids.len() - without_repeats(&d.ids);
    cut as f32 - d.mean_logprob
}

/// How many tokens stand before a phrase follows itself for the fourth time.
fn without_repeats(ids: &[u32]) -> usize {
    for period in 1..=ids.len() / (MOST_REPEATS + 1) {
        let mut run = 0;
        for at in period..ids.len() {
            run = if ids[at] == ids[at - period] { run + 1 } else { 0 };
            if run >= period * MOST_REPEATS {
                return at + 1 - run;
            }
        }
    }
    ids.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_cut_and_ordinary_speech_is_not() {
        assert_eq!(without_repeats(&[1, 2, 3, 4, 5, 6, 7, 8]), 8);
        assert_eq!(without_repeats(&[9, 9, 9, 1]), 4);
        assert_eq!(without_repeats(&[7, 9, 9, 9, 9, 9, 1]), 2);
        assert_eq!(without_repeats(&[5, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2]), 3);
        // Three times in a row is something people say.
        assert_eq!(without_repeats(&[1, 2, 1, 2, 1, 2, 3, 4]), 8);
        assert_eq!(without_repeats(&[]), 0);
    }

    #[test]
    fn what_does_not_end_or_is_unlikely_is_tried_again() {
        let good = Decoded { ids: vec![1, 2, 3], mean_logprob: -0.2, no_speech: 0.0, ended: true };
        assert!(is_sound(&good));
        assert!(!is_sound(&Decoded { ended: false, ..good.clone() }));
        assert!(!is_sound(&Decoded { mean_logprob: -1.5, ..good.clone() }));
        assert!(!is_sound(&Decoded { mean_logprob: f32::NAN, ..good.clone() }));
        assert!(!is_sound(&Decoded { ids: vec![4; 12], ..good }));
    }
}
