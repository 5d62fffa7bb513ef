//! The model families: configuration, graph and the little state around it. No model knows a backend.
//!
//! | module | published as | used for |
//! |---|---|---|
//! | [`silero`] | Silero VAD v6, safetensors | where speech is |
//! | [`whisper`] | Whisper, CTranslate2 | speech to text |
//! | [`kokoro`] | Kokoro 82M, ONNX | speech |
//! | [`llama`] | Qwen2.5, Qwen3, SmolLM2, Llama; GGUF | writing the reply |

mod ahead;
pub mod kokoro;
pub mod llama;
pub mod silero;
pub mod whisper;

use crate::backends::{CompileError, CompileErrorKind, RunError};
use crate::formats::FormatError;
use crate::graph::GraphError;
use crate::text::chat::ChatError;
use crate::text::tokenizer::TokenizerError;

/// What can be done about a device that does not do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Open the device again and load every model on it anew: nothing that was made with it works any more.
    Reopen,
    /// Load this model on another device: it has no room here.
    Elsewhere,
}

/// Why a model could not be loaded or run.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The weight file.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The vocabulary.
    #[error("the model's vocabulary cannot be used: {0}")]
    Tokenizer(#[from] TokenizerError),
    /// The chat template.
    #[error("the model's chat template cannot be used: {0}")]
    Chat(#[from] ChatError),
    /// A configuration that this family does not have.
    #[error("{field} is {value}: {problem}")]
    Config {
        /// Key in the file.
        field: String,
        /// What stands there.
        value: String,
        /// Why that can't be.
        problem: String,
    },
    /// A mistake in a model's own code for this configuration.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The backend can't run it.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// What was computed is no number.
    #[error(
        "{model} computes what is no number: its file is damaged; `repartee models verify` says so, and `models fetch` mends it"
    )]
    NotFinite {
        /// Whose weights.
        model: &'static str,
    },
    /// The system prompt fills the context.
    #[error(transparent)]
    Context(#[from] crate::turn::history::ContextTooSmall),
    /// A file beside the weights can't be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl ModelError {
    /// A configuration error.
    pub fn config(field: impl Into<String>, value: impl ToString, problem: impl Into<String>) -> Self {
        Self::Config { field: field.into(), value: value.to_string(), problem: problem.into() }
    }

    /// What a caller that has other devices can do about it; `None` if nothing but what the text says.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Run(RunError::DeviceLost { .. }) => Some(Remedy::Reopen),
            Self::Compile(error) => match error.kind {
                CompileErrorKind::Device { .. } => Some(Remedy::Reopen),
                CompileErrorKind::OutOfMemory { .. } => Some(Remedy::Elsewhere),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the run was cancelled by its caller.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Run(RunError::Cancelled))
    }
}
