//! The reply stage: a conversation in, the answer out as it is written.

use std::cell::RefCell;

use crate::backends::{CancelToken, Priority};
use crate::models::ModelError;
use crate::models::llama::{Llama, Sampling};
use crate::text::chat::{ChatOptions, Message};
use crate::text::detokenize::Detokenizer;
use crate::text::tokenizer::Special;
use crate::turn::history::{ContextLimits, History, Trimmed};

/// What a small model needs to be told so that its answers can be spoken.
pub const SYSTEM_PROMPT: &str = "You are a friendly voice assistant. Your answers are spoken aloud. Answer in one or two \
    short, plain sentences. Never use lists, code, markup or emoji. If you do not know something, say so briefly.";

/// Moments and pieces of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyEvent<'a> {
    /// The prompt is about to be computed; so many of its tokens are known already.
    PrefillStart {
        /// Tokens of the prompt.
        prompt: usize,
        /// Of these, tokens in the caches.
        cached: usize,
    },
    /// The prompt is computed and the first token drawn.
    FirstToken,
    /// Further text, whole characters.
    Text(&'a str),
}

/// A finished answer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reply {
    /// The text.
    pub text: String,
    /// Tokens drawn.
    pub tokens: usize,
    /// Whether the model came to an end by itself.
    pub ended: bool,
    /// What was left out because the context was full.
    pub trimmed: Option<Trimmed>,
}

/// Writes replies.
pub struct Replier {
    llama: Llama,
    sampling: Sampling,
    max_tokens: usize,
}

impl Replier {
    /// Replies of at most `max_tokens` tokens.
    pub fn new(llama: Llama, sampling: Sampling, max_tokens: usize) -> Self {
        Self { llama, sampling, max_tokens }
    }

    /// The model.
    pub fn llama(&self) -> &Llama {
        &self.llama
    }

    /// Forgets what the caches hold; the next reply computes its whole prompt.
    pub fn forget(&mut self) {
        self.llama.forget();
    }

    fn encode(&self, messages: &[Message], options: &ChatOptions) -> Result<Vec<u32>, ModelError> {
        // Qwen3 would think aloud otherwise; other templates do not know the variable.
        let options = options.clone().with("enable_thinking", false);
        match self.llama.template() {
            Some(template) => Ok(template.encode(self.llama.tokenizer(), messages, &options)?),
            None => Err(ModelError::config("tokenizer.chat_template", "missing", "choose an instruct model")),
        }
    }

    /// Tokens of the conversation that ends in `user`, cut by [`History::prompt`] so that a reply fits behind it.
    fn fit(&self, history: &mut History, user: &str) -> Result<(Vec<u32>, Option<Trimmed>), ModelError> {
        let context_tokens = self.llama.context();
        let limits = ContextLimits { context_tokens, reply_tokens: self.max_tokens.min(context_tokens / 2) };
        // Counting encodes; why that failed is more to the point than that the count came out too large.
        let failed = RefCell::new(None);
        let count = |messages: &[Message]| match self.encode(messages, &ChatOptions::default()) {
            Ok(ids) => ids.len(),
            Err(error) => {
                failed.borrow_mut().get_or_insert(error);
                usize::MAX
            }
        };
        let prompt = history.prompt(user, limits, count);
        if let Some(error) = failed.into_inner() {
            return Err(error);
        }
        let prompt = prompt?;
        Ok((self.encode(&prompt.messages, &ChatOptions::default())?, prompt.trimmed))
    }

    /// Puts what is known of the next prompt into the caches: work done while the user still speaks.
    ///
    /// # Errors
    /// As [`Self::reply`].
    pub fn prepare(&mut self, history: &History, cancel: Option<&CancelToken>) -> Result<(), ModelError> {
        let options = ChatOptions { add_generation_prompt: false, ..ChatOptions::default() };
        let known = history.known();
        if known.is_empty() {
            return Ok(());
        }
        let ids = self.encode(&known, &options)?;
        if ids.len() <= self.llama.context() / 2 {
            self.llama.prefill(&ids, Priority::Background, cancel)?;
        }
        Ok(())
    }

    /// Answers `user`. What the context has no room for is forgotten from `history`; the exchange itself is for the
    /// caller to remember, who knows what was heard.
    ///
    /// # Errors
    /// A conversation that cannot be made to fit, a template that fails, or cancelled.
    pub fn reply(
        &mut self,
        history: &mut History,
        user: &str,
        on_event: &mut dyn FnMut(ReplyEvent<'_>),
        cancel: Option<&CancelToken>,
    ) -> Result<Reply, ModelError> {
        self.go_on(history, user, "", on_event, cancel)
    }

    /// As [`Self::reply`], behind what is `written` of the answer already: another model was lost in its midst. The events
    /// tell of what comes behind it; the reply has the whole text.
    ///
    /// # Errors
    /// As [`Self::reply`].
    pub fn go_on(
        &mut self,
        history: &mut History,
        user: &str,
        written: &str,
        on_event: &mut dyn FnMut(ReplyEvent<'_>),
        cancel: Option<&CancelToken>,
    ) -> Result<Reply, ModelError> {
        let (mut ids, trimmed) = self.fit(history, user)?;
        let most = self.max_tokens.min(self.llama.context() - ids.len());
        let before = self.llama.tokenizer().encode(written, Special::AsText);
        let mut reply = Reply { trimmed, text: written.to_owned(), tokens: before.len(), ended: false };
        if !before.is_empty() && before.len() >= most {
            return Ok(reply);
        }
        ids.extend(before);
        let cached = self.llama.cached().iter().zip(&ids).take_while(|(a, b)| a == b).count();
        on_event(ReplyEvent::PrefillStart { prompt: ids.len(), cached });
        let stops = self.llama.tokenizer().end_of_generation().to_vec();
        let mut next = Some(self.llama.begin(&ids, &self.sampling, &stops, cancel)?);
        on_event(ReplyEvent::FirstToken);
        let mut detokenizer = Detokenizer::new();
        while let Some(id) = next {
            if stops.contains(&id) {
                reply.ended = true;
                break;
            }
            reply.tokens += 1;
            let from = reply.text.len();
            detokenizer.push(self.llama.tokenizer(), id, &mut reply.text)?;
            if reply.text.len() > from {
                on_event(ReplyEvent::Text(&reply.text[from..]));
            }
            if reply.tokens >= most {
                break;
            }
            next = self.llama.next(cancel)?;
            reply.ended = next.is_none();
        }
        let from = reply.text.len();
        detokenizer.finish(&mut reply.text);
        if reply.text.len() > from {
            on_event(ReplyEvent::Text(&reply.text[from..]));
        }
        Ok(reply)
    }
}
