//! Silero VAD v6 at 16 kHz: the probability that a chunk of 512 samples is speech.
//!
//! Source: snakers4/silero-vad, `silero_vad_16k.safetensors` and the module that goes with it. Each chunk stands
//! behind the 64 samples before it; without them the scores are wrong, so [`SileroVad::chunk`] keeps them itself.
//!
//! ```text
//! [64 + 512 samples] -> reflect 64 behind -> STFT as a convolution (256, hop 128) -> magnitude [4, 129]
//!   -> 4 convolutions of 3 taps with ReLU (128, 64 stride 2, 64 stride 2, 128) -> LSTM 128 -> ReLU -> 1 -> sigmoid
//! ```

use std::sync::Arc;

use super::ModelError;
use crate::backends::{Backend, Input, Program, Run, Session};
use crate::formats::TensorSource;
use crate::graph::{ConvShape, Direction, Graph, GraphBuilder, GraphError, PadMode, Precision, UnaryOp};

/// Sample rate the model was trained at.
pub const RATE_HZ: u32 = 16_000;
/// New samples of each chunk (32 ms).
pub const CHUNK_SAMPLES: usize = 512;
/// Samples of the past in front of them.
pub const CONTEXT_SAMPLES: usize = 64;

/// The network for one chunk.
///
/// # Errors
/// Never for these sizes; the builder reports mistakes that way.
pub fn graph() -> Result<Graph, GraphError> {
    let mut g = GraphBuilder::new("silero");
    let samples = g.input_f32("samples", CONTEXT_SAMPLES + CHUNK_SAMPLES, 1);
    let padded = g.pad_rows(samples, 0, 64, PadMode::Reflect);
    let stft = ConvShape { stride: 128, ..ConvShape::new(256) };
    let spectrum = g.conv1d(padded, "stft_conv.weight", None, 258, stft); // [4, 258]: real and imaginary parts
    let mut x = g.magnitude(spectrum); // [4, 129]
    for (layer, out, stride) in [(1, 128, 1), (2, 64, 2), (3, 64, 2), (4, 128, 1)] {
        let shape = ConvShape { stride, pad_left: 1, pad_right: 1, ..ConvShape::new(3) };
        let bias = format!("conv{layer}.bias");
        x = g.conv1d(x, &format!("conv{layer}.weight"), Some(&bias), out, shape);
        x = g.unary(x, UnaryOp::Relu);
    }
    let names = ["lstm_cell.weight_ih", "lstm_cell.weight_hh", "lstm_cell.bias_ih", "lstm_cell.bias_hh"];
    let h = g.lstm(x, names, 128, Direction::Forward, Some("lstm")); // [1, 128]
    let h = g.unary(h, UnaryOp::Relu);
    let y = g.linear(h, "final_conv.weight", Some("final_conv.bias"), 1, Precision::F32);
    let p = g.unary(y, UnaryOp::Sigmoid);
    let p = g.mean_rows(p);
    g.output("probability", p);
    g.finish()
}

/// The detector with its memory of the stream.
pub struct SileroVad {
    program: Box<dyn Program>,
    session: Session,
    samples: [f32; CONTEXT_SAMPLES + CHUNK_SAMPLES],
    probability: Vec<f32>,
}

impl SileroVad {
    /// Compiles the network.
    ///
    /// # Errors
    /// Weights of another model, or a backend that can't run it.
    pub fn load(source: Arc<dyn TensorSource>, backend: &dyn Backend) -> Result<Self, ModelError> {
        let graph = graph()?;
        let program = backend.compile(&graph, &backend.weight_set(source))?;
        let session = backend.session(&[&graph])?;
        let samples = [0.0; CONTEXT_SAMPLES + CHUNK_SAMPLES];
        Ok(Self { program, session, samples, probability: Vec::with_capacity(1) })
    }

    /// The probability, 0 to 1, that the next 512 samples of the stream are speech. Allocates nothing.
    ///
    /// # Errors
    /// Only what the device says; a CPU never fails here.
    pub fn chunk(&mut self, chunk: &[f32; CHUNK_SAMPLES]) -> Result<f32, ModelError> {
        self.samples.copy_within(CHUNK_SAMPLES.., 0);
        self.samples[CONTEXT_SAMPLES..].copy_from_slice(chunk);
        let run = Run {
            inputs: &[Input::F32(&self.samples)],
            outputs: &mut [(0, &mut self.probability)],
            ..Run::default()
        };
        self.program.run(&mut self.session, run)?;
        let probability = self.probability.first().copied().unwrap_or(0.0);
        if probability.is_finite() {
            Ok(probability)
        } else {
            Err(ModelError::NotFinite { model: "the voice detector" })
        }
    }

    /// Forgets the stream: the next chunk is the first.
    pub fn reset(&mut self) {
        self.samples.fill(0.0);
        self.session.state().reset();
    }
}
