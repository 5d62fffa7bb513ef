//! The reply stage: a conversation in, the answer out as it is written.

use crate::backends::{CancelToken, Priority};
use crate::models::ModelError;
use crate::models::llama::{Llama, Sampling};
use crate::text::chat::{ChatOptions, Message, Role};
use crate::text::detokenize::Detokenizer;

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
    /// Messages that were left out because the context was full.
    pub trimmed: usize,
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

    fn encode(&self, messages: &[Message], options: &ChatOptions) -> Result<Vec<u32>, ModelError> {
        // Qwen3 would think aloud otherwise; other templates do not know the variable.
        let options = options.clone().with("enable_thinking", false);
        match self.llama.template() {
            Some(template) => Ok(template.encode(self.llama.tokenizer(), messages, &options)?),
            None => Err(ModelError::config("tokenizer.chat_template", "missing", "choose an instruct model")),
        }
    }

    /// Tokens of the conversation, trimmed so that a reply fits behind it: to half of the context at message
    /// boundaries, the system prompt kept; a single message that is too long loses its middle.
    fn fit(&self, messages: &[Message]) -> Result<(Vec<u32>, usize), ModelError> {
        let options = ChatOptions::default();
        let room = self.llama.context().saturating_sub(self.max_tokens.min(self.llama.context() / 2));
        let ids = self.encode(messages, &options)?;
        if ids.len() <= room {
            return Ok((ids, 0));
        }
        let goal = room.min(self.llama.context() / 2);
        let system = usize::from(messages.first().is_some_and(|m| m.role == Role::System));
        let mut kept = messages.to_vec();
        let mut trimmed = 0;
        let mut ids = ids;
        // Whole exchanges go, the oldest first; templates want the first message to be the user's.
        while ids.len() > goal && kept.len() > system + 1 {
            kept.remove(system);
            trimmed += 1;
            while kept.len() > system + 1 && kept[system].role != Role::User {
                kept.remove(system);
                trimmed += 1;
            }
            ids = self.encode(&kept, &options)?;
        }
        while ids.len() > room {
            let Some(last) = kept.last_mut() else { break };
            let chars: Vec<char> = last.content.chars().collect();
            if chars.len() < 16 {
                return Err(TooLong { tokens: ids.len(), room }.into());
            }
            // What was said first and last matters most.
            let third = chars.len() / 3;
            let (head, tail) = (&chars[..third], &chars[chars.len() - third..]);
            last.content = head.iter().chain(" … ".chars().collect::<Vec<_>>().iter()).chain(tail).collect();
            ids = self.encode(&kept, &options)?;
        }
        Ok((ids, trimmed))
    }

    /// Puts what is known of the next prompt into the caches: work done while the user still speaks.
    ///
    /// # Errors
    /// As [`Self::reply`].
    pub fn prepare(&mut self, messages: &[Message], cancel: Option<&CancelToken>) -> Result<(), ModelError> {
        let options = ChatOptions { add_generation_prompt: false, ..ChatOptions::default() };
        let ids = self.encode(messages, &options)?;
        if ids.len() <= self.llama.context() / 2 {
            self.llama.prefill(&ids, Priority::Background, cancel)?;
        }
        Ok(())
    }

    /// Answers the last message.
    ///
    /// # Errors
    /// A conversation that cannot be made to fit, a template that fails, or cancelled.
    pub fn reply(
        &mut self,
        messages: &[Message],
        on_event: &mut dyn FnMut(ReplyEvent<'_>),
        cancel: Option<&CancelToken>,
    ) -> Result<Reply, ModelError> {
        let (ids, trimmed) = self.fit(messages)?;
        let cached = self.llama.cached().iter().zip(&ids).take_while(|(a, b)| a == b).count();
        on_event(ReplyEvent::PrefillStart { prompt: ids.len(), cached });
        let stops = self.llama.tokenizer().end_of_generation().to_vec();
        let mut next = Some(self.llama.begin(&ids, &self.sampling, &stops, cancel)?);
        on_event(ReplyEvent::FirstToken);
        let mut reply = Reply { trimmed, ..Reply::default() };
        let mut detokenizer = Detokenizer::new();
        let room = self.llama.context() - ids.len();
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
            if reply.tokens >= self.max_tokens.min(room) {
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

/// A system prompt and one word that do not fit.
struct TooLong {
    tokens: usize,
    room: usize,
}

impl From<TooLong> for ModelError {
    fn from(e: TooLong) -> Self {
        let problem =
            format!("only {} fit beside a reply; shorten the system prompt or raise the context", e.room);
        Self::config("prompt", format!("{} tokens", e.tokens), problem)
    }
}
