//! Language models of the Llama family from GGUF files: Qwen2.5, Qwen3, SmolLM2, Llama.
//!
//! Three programs share one session: `feed` puts tokens into the caches, `prompt` does so and draws the first token
//! of the answer, `step` feeds the drawn token and draws the next without the host in between. [`Llama`] keeps the
//! tokens that the caches hold, so a conversation only ever computes what is new: [`Llama::prefill`] finds
//! the common start and goes on from there.

mod config;
mod graph;

pub use config::{Architecture, LlamaConfig};
pub use graph::{Part, graph};

use std::sync::Arc;

use super::ModelError;
use super::ahead::Ahead;
use crate::backends::{
    Backend, CancelToken, Input, NodeTime, Priority, Program, Run, RunError, Session, node_times,
};
use crate::formats::TensorSource;
use crate::formats::gguf::Gguf;
use crate::text::chat::ChatTemplate;
use crate::text::tokenizer::Tokenizer;

/// Most tokens of one prompt run; longer prompts take several.
const PROMPT_ROWS: usize = 256;

/// How to set the model up.
#[derive(Clone, Copy, Debug)]
pub struct LlamaOptions {
    /// Tokens that the caches hold, at most what the model was trained for.
    pub context: usize,
}

impl Default for LlamaOptions {
    /// 4096 tokens: half an hour of talk, 50 MB of caches for a model of half a billion weights.
    fn default() -> Self {
        Self { context: 4096 }
    }
}

/// How tokens are drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sampling {
    /// 0 is greedy.
    pub temperature: f32,
    /// Keep the k most likely tokens; 0 keeps all.
    pub top_k: u32,
    /// Keep the smallest set whose probability reaches this; 1 keeps all.
    pub top_p: f32,
    /// Drop tokens less likely than this fraction of the most likely; 0 keeps all.
    pub min_p: f32,
    /// 1 does nothing.
    pub repetition_penalty: f32,
    /// Equal seeds give equal replies.
    pub seed: u64,
}

impl Default for Sampling {
    /// Greedy: what small models answer best with.
    fn default() -> Self {
        Self { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, repetition_penalty: 1.0, seed: 0 }
    }
}

/// A model with its caches.
pub struct Llama {
    config: LlamaConfig,
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    feed: Box<dyn Program>,
    prompt: Box<dyn Program>,
    step: Box<dyn Program>,
    session: Session,
    context: usize,
    step_bytes: usize,
    /// Tokens in the caches; steps that are under way may have put more there, which nobody will read.
    cached: Vec<u32>,
    ahead: Ahead,
    /// The newest token that was given out; it is in the caches once the next one is.
    newest: u32,
    /// Whether there is nothing to go on from: that ended the answer, or the caches were changed since.
    done: bool,
    ids: Vec<i32>,
}

impl Llama {
    /// Reads configuration, vocabulary and template and compiles the programs.
    ///
    /// # Errors
    /// A file of another family, damaged parts, or a backend that can't run it.
    pub fn load(file: &Arc<Gguf>, backend: &dyn Backend, options: LlamaOptions) -> Result<Self, ModelError> {
        let config = LlamaConfig::from_gguf(file)?;
        let tokenizer = Tokenizer::from_gguf(file)?;
        if tokenizer.vocabulary_size() > config.vocabulary {
            let problem = format!("the embedding table has only {} rows", config.vocabulary);
            return Err(ModelError::config("tokenizer.ggml.tokens", tokenizer.vocabulary_size(), problem));
        }
        let template = file
            .optional::<&str>("tokenizer.chat_template")?
            .map(|source| ChatTemplate::new(source, &tokenizer))
            .transpose()?;
        let context = options.context.clamp(16, config.context.max(16));
        let source: Arc<dyn TensorSource> = file.clone();
        let rows = PROMPT_ROWS.min(context);
        let parts = [Part::Feed { max: rows }, Part::Prompt { max: rows }, Part::Step];
        let [feed, prompt, step] = parts.map(|part| graph(&config, source.as_ref(), part, context, 1));
        let (feed, prompt, step) = (feed?, prompt?, step?);
        // Tied tables count once, as the output matrix that they are.
        let read = |w: &crate::graph::WeightSpec| w.name != "token_embd.weight" || config.output == w.name;
        let step_bytes = step
            .weights
            .iter()
            .filter(|w| read(w))
            .filter_map(|w| source.tensor(&w.name).ok().map(|t| t.data.len()))
            .sum();
        let weights = backend.weight_set(source);
        let session = backend.session(&[&step, &prompt, &feed])?;
        Ok(Self {
            feed: backend.compile(&feed, &weights)?,
            prompt: backend.compile(&prompt, &weights)?,
            step: backend.compile(&step, &weights)?,
            config,
            tokenizer,
            template,
            session,
            context,
            step_bytes,
            cached: Vec::new(),
            ahead: Ahead::new(backend),
            newest: 0,
            done: true,
            ids: Vec::with_capacity(rows),
        })
    }

    /// Sizes.
    pub fn config(&self) -> &LlamaConfig {
        &self.config
    }

    /// The vocabulary.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The file's chat template.
    pub fn template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }

    /// Tokens that fit into the caches.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Tokens in the caches.
    pub fn cached(&self) -> &[u32] {
        &self.cached
    }

    /// Keeps the common start of the caches and `tokens`; gives its length.
    fn keep_common(&mut self, tokens: &[u32], most: usize) -> usize {
        let common = self.cached.iter().zip(tokens).take_while(|(a, b)| a == b).count().min(most);
        self.cached.truncate(common);
        self.session.truncate(0, common);
        self.ahead.cut();
        self.done = true;
        common
    }

    fn load_ids(&mut self, tokens: &[u32]) {
        self.ids.clear();
        self.ids.extend(tokens.iter().map(|&t| t as i32));
    }

    /// Puts `tokens` into the caches without drawing: work done ahead, while the user still speaks. What the caches
    /// already hold is kept up to the first difference.
    ///
    /// # Errors
    /// Too many tokens for the context, or cancelled; the caches then hold a shorter start.
    pub fn prefill(
        &mut self,
        tokens: &[u32],
        priority: Priority,
        cancel: Option<&CancelToken>,
    ) -> Result<(), ModelError> {
        self.keep_common(tokens, tokens.len());
        self.feed_to(tokens, tokens.len(), priority, cancel)
    }

    fn feed_to(
        &mut self,
        tokens: &[u32],
        end: usize,
        priority: Priority,
        cancel: Option<&CancelToken>,
    ) -> Result<(), ModelError> {
        while self.cached.len() < end {
            let from = self.cached.len();
            let to = end.min(from + PROMPT_ROWS.min(self.context));
            self.load_ids(&tokens[from..to]);
            self.session.update_step(0, |row| (row.active, row.done) = (1, 0));
            let run = Run {
                lengths: &[to - from],
                inputs: &[Input::I32(&self.ids)],
                priority,
                cancel,
                ..Run::default()
            };
            self.feed.run(&mut self.session, run)?;
            self.cached.extend_from_slice(&tokens[from..to]);
        }
        Ok(())
    }

    /// Brings the caches to `tokens` and draws the first token of the answer. At least the last token is computed
    /// again, since its logits are needed.
    ///
    /// # Errors
    /// As [`Self::prefill`].
    pub fn begin(
        &mut self,
        tokens: &[u32],
        sampling: &Sampling,
        stops: &[u32],
        cancel: Option<&CancelToken>,
    ) -> Result<u32, ModelError> {
        let Some(most) = tokens.len().checked_sub(1) else {
            return Err(ModelError::config("prompt", "empty", "there is nothing to answer"));
        };
        self.keep_common(tokens, most);
        let priority = Priority::Reply;
        // All but the last run only feed.
        let rows = PROMPT_ROWS.min(self.context);
        while tokens.len() - self.cached.len() > rows {
            let end = self.cached.len() + rows;
            self.feed_to(tokens, end, priority, cancel)?;
        }
        self.session.update_step(0, |row| {
            (row.active, row.done, row.offset, row.history_len) = (1, 0, 0, 0);
            (row.seed_low, row.seed_high) = (sampling.seed as u32, (sampling.seed >> 32) as u32);
            (row.temperature, row.top_k, row.top_p) = (sampling.temperature, sampling.top_k, sampling.top_p);
            (row.min_p, row.repetition_penalty) = (sampling.min_p, sampling.repetition_penalty);
            let mut held = [0; crate::graph::step::MAX_STOPS];
            let n = stops.len().min(held.len());
            held.iter_mut().zip(stops).for_each(|(h, &s)| *h = s as i32);
            row.set_stops(&held[..n]);
        });
        let from = self.cached.len();
        self.load_ids(&tokens[from..]);
        let run = Run {
            lengths: &[self.ids.len()],
            inputs: &[Input::I32(&self.ids)],
            priority,
            cancel,
            keep_step: true,
            ..Run::default()
        };
        self.prompt.run(&mut self.session, run)?;
        self.cached.extend_from_slice(&tokens[from..]);
        let row = self.ahead.first(&mut self.session)?;
        (self.newest, self.done) = (row.token as u32, row.done != 0);
        Ok(self.newest)
    }

    /// Feeds the newest token and draws the next; `None` once a stop token was drawn. A device that can computes the
    /// token after that meanwhile.
    ///
    /// # Errors
    /// A full context, or cancelled; a call without the token set goes on where it was.
    pub fn next(&mut self, cancel: Option<&CancelToken>) -> Result<Option<u32>, ModelError> {
        if self.done {
            return Ok(None);
        }
        if cancel.is_some_and(CancelToken::is_cancelled) {
            return Err(RunError::Cancelled.into());
        }
        let Self { step, session, ahead, .. } = self;
        let row = ahead
            .next(session, |session| step.run(session, Run { cancel, keep_step: true, ..Run::default() }))?;
        self.cached.push(self.newest);
        (self.newest, self.done) = (row.token as u32, row.done != 0);
        Ok((!self.done).then_some(self.newest))
    }

    /// Whether the newest drawn token ended the answer.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Logits behind the last of `tokens`, the caches kept as far as they agree: for checks against references.
    ///
    /// # Errors
    /// As [`Self::prefill`].
    pub fn logits(&mut self, tokens: &[u32], out: &mut Vec<f32>) -> Result<(), ModelError> {
        let Some(end) = tokens.len().checked_sub(1) else {
            return Err(ModelError::config("prompt", "empty", "there are no logits without a token"));
        };
        self.keep_common(tokens, end);
        self.feed_to(tokens, end, Priority::Background, None)?;
        self.load_ids(&tokens[end..]);
        self.session.update_step(0, |row| (row.active, row.done, row.temperature) = (1, 0, 0.0));
        let run = Run {
            lengths: &[1],
            inputs: &[Input::I32(&self.ids)],
            outputs: &mut [(0, out)],
            ..Run::default()
        };
        self.prompt.run(&mut self.session, run)?;
        self.cached.push(tokens[end]);
        let row = self.session.step(0);
        (self.newest, self.done) = (row.token as u32, row.done != 0);
        Ok(())
    }

    /// Forgets everything in the caches.
    pub fn forget(&mut self) {
        self.keep_common(&[], 0);
    }

    /// Bytes of weights that one step reads: every matrix and vector, and one row of the embedding table.
    pub fn step_bytes(&self) -> usize {
        self.step_bytes
    }

    /// What each node of one step takes.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub fn profile(&mut self) -> Result<Vec<NodeTime>, ModelError> {
        let mut times = Vec::new();
        let run = Run { node_ns: Some(&mut times), ..Run::default() };
        self.step.run(&mut self.session, run)?;
        self.forget();
        Ok(node_times(self.step.as_ref(), &[], &times))
    }
}
