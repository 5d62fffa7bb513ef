//! Kokoro 82M v1.0 (hexgrad 2025; StyleTTS 2 of Li et al. 2023 with the generator of iSTFTNet): phonemes to speech at
//! 24 kHz, from the published ONNX files.
//!
//! ```text
//! tokens ─▶ text ─▶ durations ─▶ frames ─▶ prosody ─▶ pitch ─▶ source (plain Rust) ─▶ audio ─▶ samples
//!             └──────── what tokens mean ──────┴─────────────────────────────────────────┘
//! ```
//!
//! Three programs, because two things between them depend on data: the number of frames, and the harmonic source, whose
//! phase needs f64 (`source`). All norms and two-way LSTMs span the whole text, so a text is made in one piece; texts
//! of more than 510 tokens are cut at the best pause ([`Kokoro::synthesize`]).
//!
//! The weights are those of the file, 8-bit ones as such, with scale and zero point ([`weights`]).

mod graph;
mod source;
mod split;
mod voice;
pub mod weights;

pub use graph::{FRAME_SAMPLES, MAX_FRAMES, MAX_TOKENS, audio, prosody, text};
pub use split::split;
pub use voice::Voice;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::ModelError;
use crate::backends::{
    Backend, CancelToken, Input, MemoryTensors, NodeTime, Priority, Program, Run, RunError, Session,
    node_times,
};
use crate::formats::TensorSource;
use crate::formats::onnx::Onnx;
use graph::{HALF_STYLE, MAX_DURATION};
use source::{BINS, FFT, HOP, Merge};

/// Samples a second.
pub const RATE_HZ: u32 = source::RATE_HZ as u32;
/// Most tokens of one run, pads not counted.
pub const TEXT_TOKENS: usize = MAX_TOKENS - 2;
/// Slowest and fastest speed.
pub const SPEEDS: std::ops::RangeInclusive<f32> = 0.25..=4.0;

/// How to speak.
#[derive(Clone, Copy, Debug)]
pub struct SpeakOptions<'a> {
    /// 1 is the voice's own speed; held within [`SPEEDS`].
    pub speed: f32,
    /// Of the source's noise.
    pub seed: u64,
    /// Who goes first.
    pub priority: Priority,
    /// Looked at often.
    pub cancel: Option<&'a CancelToken>,
}

impl Default for SpeakOptions<'_> {
    fn default() -> Self {
        Self { speed: 1.0, seed: 0, priority: Priority::FirstSpeech, cancel: None }
    }
}

/// What was computed on the way, for comparisons.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Trace {
    /// Sums of each token's durations before rounding, in frames.
    pub durations: Vec<f32>,
    /// Frames of each token.
    pub frames: Vec<usize>,
    /// `[n, 640]`.
    pub prosody: Vec<f32>,
    /// `[n, 512]`.
    pub sound: Vec<f32>,
    /// Hz, two for each frame.
    pub pitch: Vec<f32>,
    /// Two for each frame.
    pub energy: Vec<f32>,
    /// `[120 T + 1, 22]`.
    pub source: Vec<f32>,
    /// What each node of each program took, when asked for.
    pub times: Vec<NodeTime>,
}

/// The model.
pub struct Kokoro {
    text: Box<dyn Program>,
    prosody: Box<dyn Program>,
    audio: Box<dyn Program>,
    session: Session,
    vocabulary: HashMap<char, i32>,
    merge: Merge,
    trace: Trace,
    duration: Vec<f32>,
    samples: Vec<f32>,
    profile: bool,
}

impl Kokoro {
    /// Loads an ONNX file, int8 or f32, and the vocabulary (`vocab.json`, or a `tokenizer.json`).
    ///
    /// # Errors
    /// Missing or damaged files, or a backend that can't run the model.
    pub fn load(
        weights: impl AsRef<Path>,
        vocabulary: impl AsRef<Path>,
        backend: &dyn Backend,
    ) -> Result<Self, ModelError> {
        let path = vocabulary.as_ref();
        let json = std::fs::read(path)
            .map_err(|source| ModelError::Io { path: path.display().to_string(), source })?;
        Self::new(weights::tensors(&Onnx::open(weights)?)?, &json, backend)
    }

    /// From tensors under the checkpoint's names, and a vocabulary in JSON.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn new(
        mut tensors: MemoryTensors,
        vocabulary: &[u8],
        backend: &dyn Backend,
    ) -> Result<Self, ModelError> {
        let vocabulary = read_vocabulary(vocabulary)?;
        let merge = derive(&mut tensors)?;
        let graphs = [text()?, prosody()?, audio()?];
        let [text, prosody, audio] = &graphs;
        // Two sets, one after the other: the decoder's tensors, the larger part, go as soon as they are packed.
        let decoder = |name: &str| name.starts_with("decoder.") || name == graph::INVERSE;
        let [decoder, others] = tensors.partition(decoder);
        let compiled = backend.compile(audio, &backend.weight_set(Arc::new(decoder)))?;
        let set = backend.weight_set(Arc::new(others));
        Ok(Self {
            session: backend.session(&[text, prosody, audio])?,
            text: backend.compile(text, &set)?,
            prosody: backend.compile(prosody, &set)?,
            audio: compiled,
            vocabulary,
            merge,
            trace: Trace::default(),
            duration: Vec::new(),
            samples: Vec::new(),
            profile: false,
        })
    }

    /// Tokens of phonemes; symbols that the model does not know are left out.
    pub fn tokens(&self, phonemes: &str) -> Vec<i32> {
        phonemes.chars().filter_map(|c| self.vocabulary.get(&c).copied()).collect()
    }

    /// Speech for phonemes of any length: at most 510 tokens at once, cut at pauses.
    ///
    /// # Errors
    /// Cancelled, or what the device says.
    pub fn synthesize(
        &mut self,
        phonemes: &str,
        voice: &Voice,
        options: &SpeakOptions<'_>,
    ) -> Result<Vec<f32>, ModelError> {
        let known: Vec<char> = phonemes.chars().filter(|c| self.vocabulary.contains_key(c)).collect();
        let mut waiting: Vec<&[char]> = split(&known, TEXT_TOKENS).into_iter().rev().collect();
        let mut out = Vec::new();
        while let Some(piece) = waiting.pop() {
            let tokens: Vec<i32> = piece.iter().filter_map(|c| self.vocabulary.get(c).copied()).collect();
            match self.speak(&tokens, voice.style(tokens.len()), options) {
                Ok(samples) => out.extend_from_slice(samples),
                // Slow speech of a long text: in two halves.
                Err(ModelError::Run(RunError::Length { .. })) if piece.len() > 1 => {
                    waiting.extend(split(piece, piece.len().div_ceil(2)).into_iter().rev());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(out)
    }

    /// Speech for at most 510 tokens in the style of a voice's row.
    ///
    /// # Errors
    /// Too many tokens or frames, cancelled, or what the device says.
    pub fn speak(
        &mut self,
        tokens: &[i32],
        style: &[f32],
        options: &SpeakOptions<'_>,
    ) -> Result<&[f32], ModelError> {
        self.plan(tokens, style, options)?;
        self.find_prosody(style, options)?;
        self.find_source(options)?;
        self.sound(style, options)
    }

    /// The harmonic source of the trace's pitch.
    fn find_source(&mut self, options: &SpeakOptions<'_>) -> Result<(), ModelError> {
        let stop = |work: usize| options.cancel.is_some_and(|cancel| cancel.is_cancelled_before(work));
        let wave = source::waveform(&self.trace.pitch, &self.merge, options.seed, &stop);
        let spectrum = wave.and_then(|wave| source::spectrum(&wave, &stop));
        self.trace.source = spectrum.ok_or(RunError::Cancelled)?;
        Ok(())
    }

    /// The first program: what tokens mean and how many frames each sounds.
    fn plan(&mut self, tokens: &[i32], style: &[f32], options: &SpeakOptions<'_>) -> Result<(), ModelError> {
        if style.len() != 2 * HALF_STYLE {
            let problem = "a row of a voice has 256 numbers";
            return Err(ModelError::config("style", style.len(), problem));
        }
        let padded: Vec<i32> = [&[0], tokens, &[0]].concat();
        let first = vec![0; padded.len()];
        let inputs = [Input::I32(&padded), Input::F32(&style[HALF_STYLE..]), Input::I32(&first)];
        let trace = &mut self.trace;
        trace.times.clear();
        let mut outputs = [(0, &mut self.duration), (1, &mut trace.prosody), (2, &mut trace.sound)];
        let lengths = [padded.len()];
        let mut times = self.profile.then(Vec::new);
        let run = Run {
            lengths: &lengths,
            inputs: &inputs,
            outputs: &mut outputs,
            priority: options.priority,
            cancel: options.cancel,
            node_ns: times.as_mut(),
            ..Run::default()
        };
        self.text.run(&mut self.session, run)?;
        note(&mut trace.times, self.text.as_ref(), &lengths, times);
        let speed = if options.speed.is_nan() { 1.0 } else { options.speed };
        let speed = speed.clamp(*SPEEDS.start(), *SPEEDS.end());
        trace.durations = self.duration.chunks_exact(MAX_DURATION).map(|row| row.iter().sum()).collect();
        require_finite(&trace.durations)?;
        let frames = |d: &f32| (d / speed).round_ties_even().max(1.0) as usize;
        trace.frames = trace.durations.iter().map(frames).collect();
        Ok(())
    }

    /// The token that each frame belongs to.
    fn expansion(&self) -> Vec<i32> {
        let frames = self.trace.frames.iter().enumerate();
        frames.flat_map(|(token, &n)| std::iter::repeat_n(token as i32, n)).collect()
    }

    fn find_prosody(&mut self, style: &[f32], options: &SpeakOptions<'_>) -> Result<(), ModelError> {
        let token = self.expansion();
        let trace = &mut self.trace;
        let inputs = [Input::F32(&trace.prosody), Input::I32(&token), Input::F32(&style[HALF_STYLE..])];
        let mut outputs = [(0, &mut trace.pitch), (1, &mut trace.energy)];
        let mut times = self.profile.then(Vec::new);
        let lengths = [trace.frames.len(), token.len()];
        let run = Run {
            lengths: &lengths,
            inputs: &inputs,
            outputs: &mut outputs,
            priority: options.priority,
            cancel: options.cancel,
            node_ns: times.as_mut(),
            ..Run::default()
        };
        self.prosody.run(&mut self.session, run)?;
        note(&mut trace.times, self.prosody.as_ref(), &lengths, times);
        Ok(())
    }

    fn sound(&mut self, style: &[f32], options: &SpeakOptions<'_>) -> Result<&[f32], ModelError> {
        let token = self.expansion();
        let trace = &mut self.trace;
        let inputs = [
            Input::F32(&trace.sound),
            Input::I32(&token),
            Input::F32(&trace.pitch),
            Input::F32(&trace.energy),
            Input::F32(&trace.source),
            Input::F32(&style[..HALF_STYLE]),
        ];
        let mut times = self.profile.then(Vec::new);
        let lengths = [trace.frames.len(), token.len()];
        let run = Run {
            lengths: &lengths,
            inputs: &inputs,
            outputs: &mut [(0, &mut self.samples)],
            priority: options.priority,
            cancel: options.cancel,
            node_ns: times.as_mut(),
            ..Run::default()
        };
        self.audio.run(&mut self.session, run)?;
        note(&mut trace.times, self.audio.as_ref(), &lengths, times);
        require_finite(&self.samples)?;
        trim(&mut self.samples);
        Ok(&self.samples)
    }

    /// What was computed on the way to the last speech.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Runs the later programs again on a trace that the caller gives: a comparison feeds each part what the reference
    /// fed it. Parts that are empty are computed.
    ///
    /// # Errors
    /// As [`Self::speak`].
    pub fn replay(
        &mut self,
        trace: &Trace,
        style: &[f32],
        options: &SpeakOptions<'_>,
    ) -> Result<&[f32], ModelError> {
        self.trace = trace.clone();
        if trace.pitch.is_empty() {
            self.find_prosody(style, options)?;
        }
        if trace.source.is_empty() {
            self.find_source(options)?;
        }
        self.sound(style, options)
    }

    /// Whether [`Trace::times`] is filled.
    pub fn set_profiling(&mut self, profile: bool) {
        self.profile = profile;
    }
}

fn require_finite(numbers: &[f32]) -> Result<(), ModelError> {
    let is_finite = numbers.iter().all(|x| x.is_finite());
    if is_finite { Ok(()) } else { Err(ModelError::NotFinite { model: "the speech model" }) }
}

/// Adds a run's times to a list.
fn note(list: &mut Vec<NodeTime>, program: &dyn Program, lengths: &[usize], times: Option<Vec<u64>>) {
    list.extend(times.iter().flat_map(|times| node_times(program, lengths, times)));
}

/// `{"vocab": {symbol: number}}`, at the top or within `model`.
fn read_vocabulary(json: &[u8]) -> Result<HashMap<char, i32>, ModelError> {
    let wrong = |problem: String| ModelError::config("vocab", "unusable", problem);
    let json: serde_json::Value = serde_json::from_slice(json).map_err(|e| wrong(e.to_string()))?;
    let list = [&json["vocab"], &json["model"]["vocab"]].into_iter().find_map(|v| v.as_object());
    let list = list.ok_or_else(|| wrong("the file has no table `vocab`".into()))?;
    let mut out = HashMap::new();
    for (symbol, id) in list {
        let mut chars = symbol.chars();
        let id =
            id.as_u64().and_then(|id| i32::try_from(id).ok()).filter(|&id| id < graph::VOCABULARY as i32);
        match (chars.next(), chars.next(), id) {
            (Some(c), None, Some(id)) => {
                out.insert(c, id);
            }
            _ => return Err(wrong(format!("{symbol:?} should be one symbol with a number below 178"))),
        }
    }
    Ok(out)
}

/// Adds the weights that are made of others, and takes out the layer that merges harmonics.
fn derive(tensors: &mut MemoryTensors) -> Result<Merge, ModelError> {
    let numbers = |tensors: &MemoryTensors, name: &str, count: usize| -> Result<Vec<f32>, ModelError> {
        let data = tensors.tensor(name)?.to_f32_vec()?;
        if data.len() == count {
            return Ok(data);
        }
        Err(ModelError::config(name, format!("{} numbers", data.len()), format!("Kokoro has {count}")))
    };
    let mut positions = numbers(tensors, "bert.embeddings.position_embeddings.weight", MAX_TOKENS * 128)?;
    let sentence = numbers(tensors, "bert.embeddings.token_type_embeddings.weight", 2 * 128)?;
    for row in positions.chunks_exact_mut(128) {
        row.iter_mut().zip(&sentence).for_each(|(p, s)| *p += s);
    }
    tensors.insert_f32(graph::POSITIONS, &[MAX_TOKENS, 128], &positions)?;
    tensors.insert_f32(graph::ONES, &[512], &[1.0; 512])?;
    tensors.insert_f32(graph::INVERSE, &[2 * BINS, 1, FFT], &inverse_transform())?;
    let name = "decoder.generator.m_source.l_linear";
    let weight = numbers(tensors, &format!("{name}.weight"), 9)?;
    let mut merge = Merge { weight: [0.0; 9], bias: numbers(tensors, &format!("{name}.bias"), 1)?[0] };
    merge.weight.copy_from_slice(&weight);
    Ok(merge)
}

/// Sum of the squared windows that lie over a sample far from the ends.
fn window_sum() -> f64 {
    source::window().iter().map(|w| w * w).sum::<f64>() / HOP as f64
}

/// Rows of the inverse transform: real parts, then imaginary ones; windowed and divided by the windows' sum.
fn inverse_transform() -> Vec<f32> {
    let (window, sum) = (source::window(), window_sum());
    let mut out = Vec::with_capacity(2 * BINS * FFT);
    for row in 0..2 * BINS {
        let k = row % BINS;
        let both = if k == 0 || k == FFT / 2 { 1.0 } else { 2.0 };
        for (n, w) in window.iter().enumerate() {
            let (sin, cos) = (std::f64::consts::TAU * (k * n % FFT) as f64 / FFT as f64).sin_cos();
            let part = if row < BINS { cos } else { -sin };
            out.push((part * both * w / (FFT as f64 * sum)) as f32);
        }
    }
    out
}

/// Cuts off the half windows at both ends, and makes up for the windows that are missing there.
fn trim(samples: &mut Vec<f32>) {
    let half = FFT / 2;
    if samples.len() <= 2 * half {
        samples.clear();
        return;
    }
    let window = source::window();
    let frames = (samples.len() - FFT) / HOP + 1;
    let n = samples.len();
    for at in (half..FFT.min(n)).chain(n.saturating_sub(FFT).max(FFT)..n - half) {
        let over = (0..frames).filter_map(|f| at.checked_sub(f * HOP)).filter(|&i| i < FFT);
        let sum: f64 = over.map(|i| window[i] * window[i]).sum();
        samples[at] = (f64::from(samples[at]) * window_sum() / sum) as f32;
    }
    samples.truncate(n - half);
    samples.drain(..half);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transforms_invert_each_other() {
        let signal: Vec<f64> = (0..600).map(|t| (f64::from(t) * 0.37).sin() * 0.5 + 0.1).collect();
        let spectrum = source::spectrum(&signal, &|_| false).unwrap();
        let inverse = inverse_transform();
        let mut samples = vec![0.0_f32; 600 + FFT];
        for (frame, row) in spectrum.chunks_exact(2 * BINS).enumerate() {
            for (k, (&size, &phase)) in row[..BINS].iter().zip(&row[BINS..]).enumerate() {
                for n in 0..FFT {
                    samples[frame * HOP + n] += size * phase.cos() * inverse[k * FFT + n]
                        + size * phase.sin() * inverse[(BINS + k) * FFT + n];
                }
            }
        }
        trim(&mut samples);
        assert_eq!(samples.len(), 600);
        let off = signal.iter().zip(&samples).map(|(a, b)| (a - f64::from(*b)).abs()).fold(0.0, f64::max);
        assert!(off < 1e-5, "{off}");
    }

    #[test]
    fn vocabularies_of_both_kinds_are_read() {
        let plain = read_vocabulary(r#"{"vocab": {"a": 43, " ": 16}}"#.as_bytes()).unwrap();
        assert_eq!(plain, read_vocabulary(r#"{"model": {"vocab": {"a": 43, " ": 16}}}"#.as_bytes()).unwrap());
        assert_eq!(plain[&'a'], 43);
        for bad in
            ["", "{}", r#"{"vocab": {"ab": 1}}"#, r#"{"vocab": {"a": 178}}"#, r#"{"vocab": {"a": -1}}"#]
        {
            assert!(read_vocabulary(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
