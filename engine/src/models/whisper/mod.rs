//! Whisper (Radford et al. 2022) from CTranslate2's files or the hub's: speech of up to 30 s to tokens.
//!
//! The encoder hears only as much as is asked of it: the attention's cost falls with the context, and the network
//! bears a short context when two seconds of silence stand behind the speech and the whole is at least ten. What may
//! go wrong then (repetition) is for [`crate::stages::transcribe`] to notice and to retry at the full 30 s.

mod config;
mod graph;
mod hub;

pub use config::{SpecialIds, WhisperConfig};
pub use graph::{decoder, encoder};

use std::path::Path;
use std::sync::Arc;

use self::hub::HubWeights;
use super::ModelError;
use super::ahead::Ahead;
use crate::backends::{Backend, CancelToken, Input, NodeTime, Priority, Program, Run, Session, node_times};
use crate::formats::TensorSource;
use crate::formats::ctranslate2::Ct2;
use crate::signal::LogMel;
use crate::text::tokenizer::Tokenizer;

/// Sample rate of all Whisper models.
pub const RATE_HZ: usize = 16_000;
/// Samples of the full context: 30 s.
pub const FULL_SAMPLES: usize = 30 * RATE_HZ;

/// The shortest context that works for a clip of `samples`: 2 s of silence behind it, at least 10 s.
pub fn short_context(samples: usize) -> usize {
    (samples + 2 * RATE_HZ).clamp(10 * RATE_HZ, FULL_SAMPLES)
}

/// How to decode.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DecodeOptions<'a> {
    /// Code of the language, for multilingual models.
    pub language: &'a str,
    /// 0 is greedy.
    pub temperature: f32,
    /// For temperatures above 0.
    pub seed: u64,
    /// Most tokens of the text.
    pub max_tokens: usize,
    /// Whether the tokens that stand for sounds and control may be drawn: only for comparisons.
    pub unsuppressed: bool,
}

impl Default for DecodeOptions<'_> {
    fn default() -> Self {
        Self { language: "en", temperature: 0.0, seed: 0, max_tokens: 224, unsuppressed: false }
    }
}

/// A decoded text.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Decoded {
    /// Tokens of the text.
    pub ids: Vec<u32>,
    /// Sum of the tokens' log-probabilities, the end token's with it, over the number of tokens.
    pub mean_logprob: f32,
    /// Probability that nobody speaks.
    pub no_speech: f32,
    /// Whether the end token was drawn within the limit.
    pub ended: bool,
}

/// A Whisper model with its caches.
pub struct Whisper {
    config: WhisperConfig,
    special: SpecialIds,
    tokenizer: Tokenizer,
    mel: LogMel,
    encoder: Box<dyn Program>,
    prompt: Box<dyn Program>,
    step: Box<dyn Program>,
    session: Session,
    ahead: Ahead,
    /// Added to logits: nothing, at the first token, at later ones.
    biases: [Vec<f32>; 3],
    encoded_rows: usize,
    logits: Vec<f32>,
}

fn read(path: &Path) -> Result<Vec<u8>, ModelError> {
    std::fs::read(path).map_err(|source| ModelError::Io { path: path.display().to_string(), source })
}

impl Whisper {
    /// Loads CTranslate2's `model.bin`, `tokenizer.json` and `config.json`, or the hub's `model.safetensors`,
    /// `tokenizer.json` and `generation_config.json`.
    ///
    /// # Errors
    /// Missing or damaged files, or a backend that can't run the model.
    pub fn load(
        weights: impl AsRef<Path>,
        tokenizer: impl AsRef<Path>,
        config: impl AsRef<Path>,
        backend: &dyn Backend,
    ) -> Result<Self, ModelError> {
        let weights = weights.as_ref();
        let source: Arc<dyn TensorSource> = if weights.extension().is_some_and(|e| e == "safetensors") {
            Arc::new(HubWeights::open(weights)?)
        } else {
            Arc::new(Ct2::open(weights)?)
        };
        let tokenizer = Tokenizer::from_tokenizer_json(&read(tokenizer.as_ref())?)?;
        let special = SpecialIds::new(&read(config.as_ref())?, &tokenizer)?;
        let config = WhisperConfig::from_weights(source.as_ref())?;
        let graphs = [encoder(&config)?, decoder(&config, false)?, decoder(&config, true)?];
        let set = backend.weight_set(source);
        let [encoder, prompt, step] = &graphs;
        let bias = |lists: &[&[u32]]| {
            let mut bias = vec![0.0; config.vocabulary];
            for &id in lists.iter().copied().flatten() {
                if let Some(b) = bias.get_mut(id as usize) {
                    *b = f32::NEG_INFINITY;
                }
            }
            bias
        };
        let suppressed = special.suppress.len().max(special.suppress_first.len());
        if suppressed > config.vocabulary / 2 {
            let problem = "most of the vocabulary: the configuration is damaged or of another model";
            return Err(ModelError::config("suppressed tokens", suppressed, problem));
        }
        let biases =
            [bias(&[]), bias(&[&special.suppress, &special.suppress_first]), bias(&[&special.suppress])];
        Ok(Self {
            session: backend.session(&[encoder, prompt, step])?,
            ahead: Ahead::new(backend),
            encoder: backend.compile(encoder, &set)?,
            prompt: backend.compile(prompt, &set)?,
            step: backend.compile(step, &set)?,
            mel: LogMel::new(config.mels),
            config,
            special,
            tokenizer,
            biases,
            encoded_rows: 0,
            logits: Vec::new(),
        })
    }

    /// Sizes.
    pub fn config(&self) -> &WhisperConfig {
        &self.config
    }

    /// The vocabulary.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Ids with a meaning.
    pub fn special(&self) -> &SpecialIds {
        &self.special
    }

    /// Log-mel frames of a clip with silence up to `context_samples`; an even number, at most the model's.
    pub fn log_mel(&self, clip: &[f32], context_samples: usize) -> Vec<f32> {
        let most = 2 * self.config.audio_positions;
        let clip = &clip[..clip.len().min(most * 160)];
        let mut mel = self.mel.compute(clip, context_samples.min(most * 160));
        let frames = (mel.len() / self.config.mels).min(most) / 2 * 2;
        mel.truncate(frames * self.config.mels);
        mel
    }

    /// Runs the encoder over log-mel frames; `encoded` receives `[frames / 2, width]` if asked for.
    ///
    /// # Errors
    /// Too many frames, or cancelled.
    pub fn encode(
        &mut self,
        mel: &[f32],
        encoded: Option<&mut Vec<f32>>,
        cancel: Option<&CancelToken>,
    ) -> Result<(), ModelError> {
        let frames = mel.len() / self.config.mels;
        let (lengths, inputs, priority) = ([frames], [Input::F32(mel)], Priority::Transcribe);
        let mut run = Run { lengths: &lengths, inputs: &inputs, priority, cancel, ..Run::default() };
        let mut outputs;
        if let Some(out) = encoded {
            outputs = [(0, out)];
            run.outputs = &mut outputs;
        }
        self.encoder.run(&mut self.session, run)?;
        self.encoded_rows = frames / 2;
        Ok(())
    }

    /// Writes down what the encoder heard last.
    ///
    /// # Errors
    /// An unknown language, or cancelled.
    pub fn decode(
        &mut self,
        options: &DecodeOptions<'_>,
        cancel: Option<&CancelToken>,
    ) -> Result<Decoded, ModelError> {
        let Some(prompt) = self.special.prompt(options.language) else {
            return Err(ModelError::config("language", options.language, "this model does not know it"));
        };
        let end = self.special.end;
        self.session.update_step(0, |row| {
            *row = crate::graph::StepRow::default();
            (row.temperature, row.seed_low) = (options.temperature, options.seed as u32);
            row.seed_high = (options.seed >> 32) as u32;
            row.set_stops(&[end as i32]);
        });
        let [none, first, later] = &self.biases;
        let (first, later) = if options.unsuppressed { (none, none) } else { (first, later) };
        let ids: Vec<i32> = prompt.iter().map(|&t| t as i32).collect();
        let run = Run {
            lengths: &[self.encoded_rows, ids.len()],
            inputs: &[Input::I32(&ids), Input::F32(first)],
            outputs: &mut [(0, &mut self.logits)],
            priority: Priority::Transcribe,
            cancel,
            keep_step: true,
            ..Run::default()
        };
        self.prompt.run(&mut self.session, run)?;
        // The no-speech test reads the distribution behind the start token.
        let start = &self.logits[..self.config.vocabulary];
        let mut decoded =
            Decoded { no_speech: probability(start, self.special.no_speech as usize), ..Decoded::default() };
        let room = self.config.text_positions.saturating_sub(prompt.len() + 1);
        let mut sum = 0.0;
        let mut row = self.ahead.first(&mut self.session)?;
        loop {
            sum += row.logprob;
            if row.done != 0 {
                decoded.ended = true;
                break;
            }
            decoded.ids.push(row.token as u32);
            if decoded.ids.len() >= options.max_tokens.min(room) {
                break;
            }
            let (step, lengths, inputs) = (&self.step, [self.encoded_rows], [Input::F32(later)]);
            row = self.ahead.next(&mut self.session, |session| {
                let run = Run {
                    lengths: &lengths,
                    inputs: &inputs,
                    priority: Priority::Transcribe,
                    cancel,
                    keep_step: true,
                    ..Run::default()
                };
                step.run(session, run)
            })?;
        }
        decoded.mean_logprob = sum / decoded.ids.len().max(1) as f32;
        Ok(decoded)
    }

    /// The most likely languages of what the encoder heard last, best first; empty for English-only models.
    ///
    /// # Errors
    /// Only what the device says.
    pub fn languages(&mut self) -> Result<Vec<(String, f32)>, ModelError> {
        let codes = self.special.languages.clone();
        if codes.is_empty() {
            return Ok(Vec::new());
        }
        self.session.update_step(0, |row| *row = crate::graph::StepRow::default());
        let run = Run {
            lengths: &[self.encoded_rows, 1],
            inputs: &[Input::I32(&[self.special.start as i32]), Input::F32(&self.biases[0])],
            outputs: &mut [(0, &mut self.logits)],
            priority: Priority::Transcribe,
            ..Run::default()
        };
        self.prompt.run(&mut self.session, run)?;
        let logits: Vec<f32> = codes.iter().map(|&(_, id)| self.logits[id as usize]).collect();
        let mut found: Vec<(String, f32)> =
            codes.iter().enumerate().map(|(i, (code, _))| (code.clone(), probability(&logits, i))).collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        Ok(found)
    }

    /// Logits behind each token of `prompt` and `ids`, for comparisons: `[ids + 1, vocabulary]` from the last prompt
    /// token on.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn forced_logits(&mut self, language: &str, ids: &[u32]) -> Result<Vec<f32>, ModelError> {
        let Some(prompt) = self.special.prompt(language) else {
            return Err(ModelError::config("language", language, "this model does not know it"));
        };
        self.session.update_step(0, |row| *row = crate::graph::StepRow::default());
        let tokens: Vec<i32> = prompt.iter().map(|&t| t as i32).collect();
        let mut out = Vec::new();
        let run = Run {
            lengths: &[self.encoded_rows, tokens.len()],
            inputs: &[Input::I32(&tokens), Input::F32(&self.biases[0])],
            outputs: &mut [(0, &mut self.logits)],
            ..Run::default()
        };
        self.prompt.run(&mut self.session, run)?;
        out.extend_from_slice(&self.logits[(tokens.len() - 1) * self.config.vocabulary..]);
        for &id in ids {
            self.session.update_step(0, |row| (row.token, row.done) = (id as i32, 0));
            let run = Run {
                lengths: &[self.encoded_rows],
                inputs: &[Input::F32(&self.biases[0])],
                outputs: &mut [(0, &mut self.logits)],
                ..Run::default()
            };
            self.step.run(&mut self.session, run)?;
            out.extend_from_slice(&self.logits);
        }
        Ok(out)
    }

    /// What each node takes: the encoder over a clip in its short context, then one decoder step.
    ///
    /// # Errors
    /// As [`Self::encode`] and [`Self::decode`].
    pub fn profile(&mut self, clip: &[f32]) -> Result<Vec<NodeTime>, ModelError> {
        let mel = self.log_mel(clip, short_context(clip.len()));
        self.encode(&mel, None, None)?;
        let mut times = Vec::new();
        let lengths = [mel.len() / self.config.mels];
        let inputs = [Input::F32(&mel)];
        let run = Run { lengths: &lengths, inputs: &inputs, node_ns: Some(&mut times), ..Run::default() };
        self.encoder.run(&mut self.session, run)?;
        let mut all = node_times(self.encoder.as_ref(), &lengths, &times);
        self.decode(&DecodeOptions { max_tokens: 1, ..DecodeOptions::default() }, None)?;
        let mut times = Vec::new();
        let lengths = [self.encoded_rows];
        let inputs = [Input::F32(&self.biases[2])];
        let run = Run { lengths: &lengths, inputs: &inputs, node_ns: Some(&mut times), ..Run::default() };
        self.step.run(&mut self.session, run)?;
        all.extend(node_times(self.step.as_ref(), &lengths, &times));
        Ok(all)
    }
}

/// Softmax probability of one entry.
fn probability(logits: &[f32], at: usize) -> f32 {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mass: f64 = logits.iter().map(|&x| f64::from(x - top).exp()).sum();
    logits.get(at).map_or(0.0, |&x| (f64::from(x - top).exp() / mass) as f32)
}
