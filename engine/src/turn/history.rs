//! The conversation as the model sees it: what was said and heard, within the context's length.
//!
//! A full context is not trimmed a message at a time, for then every turn would change the beginning
//! of the prompt and lose the whole cache. It is cut down to half, at message boundaries, so that many
//! turns follow before the next cut. The system prompt always stays, and the user's last words are always answered:
//! if they alone are too long, their beginning is left out.
//!
//! ```
//! use repartee_engine::turn::history::{ContextLimits, History};
//! let mut history = History::new("Be brief.");
//! let words = |messages: &[_]| messages.iter().map(|m: &repartee_engine::text::chat::Message| m.content.len() / 4).sum();
//! let limits = ContextLimits { context_tokens: 256, reply_tokens: 64 };
//! let prompt = history.prompt("What time is it?", limits, words)?;
//! assert_eq!(prompt.messages.len(), 2);
//! assert!(prompt.trimmed.is_none());
//! # Ok::<(), repartee_engine::turn::history::ContextTooSmall>(())
//! ```

use super::message::Exchange;
use crate::text::chat::{Message, Role};

/// What there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextLimits {
    /// Tokens that the model's context holds.
    pub context_tokens: usize,
    /// Tokens kept free for the reply.
    pub reply_tokens: usize,
}

/// What had to be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trimmed {
    /// Messages of the history that are forgotten.
    pub messages: usize,
    /// Words left out at the beginning of the user's last text.
    pub words: usize,
}

/// A conversation that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// System prompt, history, the user's words.
    pub messages: Vec<Message>,
    /// What was left out to make it fit, for the user to know.
    pub trimmed: Option<Trimmed>,
}

/// Not even the system prompt and one word fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the system prompt takes {tokens} of {context_tokens} tokens, which leaves no room for an answer; shorten it or use a longer context"
)]
pub struct ContextTooSmall {
    /// Tokens of the system prompt with the shortest question.
    pub tokens: usize,
    /// The limit.
    pub context_tokens: usize,
}

/// Stands for a reply that was stopped before anything of it was heard.
const UNHEARD: &str = "…";

/// What was said and heard so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    system: Message,
    messages: Vec<Message>,
    /// Of each message, whether it is a reply that the user stopped.
    interrupted: Vec<bool>,
}

impl History {
    /// A conversation that has not begun, under the given system prompt (may be empty: then none is sent).
    pub fn new(system: &str) -> Self {
        Self { system: Message::new(Role::System, system), messages: Vec::new(), interrupted: Vec::new() }
    }

    /// Changes the system prompt.
    pub fn set_system(&mut self, system: &str) {
        self.system = Message::new(Role::System, system);
    }

    /// What was said and heard, without the system prompt.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The start that every next prompt shares: system prompt and history.
    pub fn known(&self) -> Vec<Message> {
        let system = (!self.system.content.is_empty()).then(|| self.system.clone());
        system.into_iter().chain(self.messages.iter().cloned()).collect()
    }

    /// What was said and heard, the user's words with what was heard of each reply.
    pub fn exchanges(&self) -> impl Iterator<Item = Exchange> + '_ {
        let mut user = "";
        self.messages.iter().zip(&self.interrupted).filter_map(move |(message, &interrupted)| {
            if message.role == Role::User {
                user = &message.content;
                return None;
            }
            let heard = if interrupted && message.content == UNHEARD { "" } else { message.content.as_str() };
            Some(Exchange { user: std::mem::take(&mut user).into(), heard: heard.into(), interrupted })
        })
    }

    /// Adds what was said and heard. An interrupted reply simply ends where it was stopped: a small model takes any mark
    /// there for a way to end replies. If nothing was heard an ellipsis stands for it, as what was stopped is not to be
    /// answered with the next words. Without a reply and an interruption (it failed) the user's words join those that follow.
    pub fn remember(&mut self, exchange: &Exchange) {
        self.push_user(&exchange.user);
        if !exchange.heard.is_empty() || exchange.interrupted {
            let heard = if exchange.heard.is_empty() { UNHEARD } else { &exchange.heard };
            self.messages.push(Message::new(Role::Assistant, heard));
            self.interrupted.push(exchange.interrupted);
        }
    }

    /// Roles alternate, as templates demand.
    fn push_user(&mut self, text: &str) {
        match self.messages.last_mut() {
            Some(last) if last.role == Role::User => last.content = format!("{} {text}", last.content),
            _ => {
                self.messages.push(Message::new(Role::User, text));
                self.interrupted.push(false);
            }
        }
    }

    /// Forgets the first `count` messages.
    fn drop_first(&mut self, count: usize) {
        self.messages.drain(..count);
        self.interrupted.drain(..count);
    }

    /// The messages to answer `user` with, at most `context_tokens - reply_tokens` as counted by
    /// `count_tokens` on whole conversations. What has to be left out of the history is forgotten for good.
    ///
    /// # Errors
    /// [`ContextTooSmall`] if nothing but the system prompt would fit.
    pub fn prompt(
        &mut self,
        user: &str,
        limits: ContextLimits,
        count_tokens: impl Fn(&[Message]) -> usize,
    ) -> Result<Prompt, ContextTooSmall> {
        let room = limits.context_tokens.saturating_sub(limits.reply_tokens);
        let end = longest_end(user, limits.context_tokens);
        if end.len() < user.len() {
            let before = user[..user.len() - end.len()].split_whitespace().count();
            let messages = self.messages.len();
            self.drop_first(messages);
            let (prompt, words) = self.cut_user(end, room, limits, count_tokens)?;
            let trimmed = Some(Trimmed { messages, words: words + before });
            return Ok(Prompt { messages: prompt, trimmed });
        }
        let whole = self.with(user, 0);
        if count_tokens(&whole) <= room {
            return Ok(Prompt { messages: whole, trimmed: None });
        }
        // The fewest messages whose loss brings the prompt under half; a reply never comes first.
        let target = room.min(limits.context_tokens / 2);
        let starts = (1..=self.messages.len())
            .filter(|start| self.messages.get(*start).is_none_or(|message| message.role == Role::User));
        let mut dropped = self.messages.len();
        for start in starts {
            if count_tokens(&self.with(user, start)) <= target {
                dropped = start;
                break;
            }
        }
        self.drop_first(dropped);
        let kept = self.with(user, 0);
        if count_tokens(&kept) <= room {
            return Ok(Prompt { messages: kept, trimmed: Some(Trimmed { messages: dropped, words: 0 }) });
        }
        let (messages, words) = self.cut_user(user, room, limits, count_tokens)?;
        Ok(Prompt { messages, trimmed: Some(Trimmed { messages: dropped, words }) })
    }

    /// System prompt, history from message `start` on, `user`.
    fn with(&self, user: &str, start: usize) -> Vec<Message> {
        let mut history = Self {
            system: self.system.clone(),
            messages: self.messages[start..].to_vec(),
            interrupted: self.interrupted[start..].to_vec(),
        };
        history.push_user(user);
        if !history.system.content.is_empty() {
            history.messages.insert(0, history.system);
        }
        history.messages
    }

    /// Leaves out as few words as possible at the beginning of `user`.
    fn cut_user(
        &self,
        user: &str,
        room: usize,
        limits: ContextLimits,
        count_tokens: impl Fn(&[Message]) -> usize,
    ) -> Result<(Vec<Message>, usize), ContextTooSmall> {
        let words: Vec<&str> = user.split_whitespace().collect();
        let without = |count: usize| self.with(&words[count..].join(" "), 0);
        let (mut fits_not, mut fits) = (0, words.len().saturating_sub(1));
        let tokens = count_tokens(&without(fits));
        if tokens > room {
            return Err(ContextTooSmall { tokens, context_tokens: limits.context_tokens });
        }
        while fits - fits_not > 1 {
            let middle = fits_not + (fits - fits_not) / 2;
            if count_tokens(&without(middle)) <= room { fits = middle } else { fits_not = middle }
        }
        Ok((without(fits), fits))
    }
}

/// What may fit of the end of `text`: no token has more bytes than this on average, and counting the tokens of a pasted
/// book takes minutes.
fn longest_end(text: &str, tokens: usize) -> &str {
    const BYTES_PER_TOKEN: usize = 16;
    let from = text.len().saturating_sub(tokens.saturating_mul(BYTES_PER_TOKEN));
    let end = &text[text.ceil_char_boundary(from)..];
    let is_within = !text[..text.len() - end.len()].ends_with(char::is_whitespace);
    // From the next whole word on, if there is one.
    match end.find(char::is_whitespace) {
        Some(space) if is_within && end.len() < text.len() => &end[space..],
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token a word and three around each message, as chat templates have them.
    fn count(messages: &[Message]) -> usize {
        messages.iter().map(|message| message.content.split_whitespace().count() + 3).sum()
    }

    fn exchange(user: &str, heard: &str) -> Exchange {
        Exchange { user: user.into(), heard: heard.into(), interrupted: false }
    }

    const LIMITS: ContextLimits = ContextLimits { context_tokens: 256, reply_tokens: 64 };

    #[test]
    fn forty_turns_in_a_short_context() {
        // B22: 256 tokens, 40 turns of 30 words.
        let mut history = History::new("You are a test.");
        let mut cuts = 0;
        for turn in 0..40 {
            let user = format!("turn{turn} {}", "word ".repeat(29));
            let prompt = history.prompt(&user, LIMITS, count).unwrap();
            assert!(count(&prompt.messages) <= 192);
            assert_eq!(prompt.messages[0], Message::new(Role::System, "You are a test."));
            assert!(prompt.messages.last().unwrap().content.starts_with(&format!("turn{turn} ")));
            assert_eq!(prompt.messages[1].role, Role::User);
            if let Some(trimmed) = prompt.trimmed {
                cuts += 1;
                assert!(trimmed.messages > 0 && trimmed.words == 0);
                assert!(count(&prompt.messages) <= 128, "cut to half, so that it lasts");
            }
            history.remember(&exchange(&user, &"reply ".repeat(20)));
        }
        // 56 words a turn: each cut lasts two turns and more.
        assert!((10..=20).contains(&cuts), "{cuts}");
    }

    #[test]
    fn a_question_longer_than_the_context_loses_its_beginning() {
        let mut history = History::new("You are a test.");
        history.remember(&exchange("hi", "hello"));
        let words: Vec<String> = (0..400).map(|i| format!("w{i}")).collect();
        let prompt = history.prompt(&words.join(" "), LIMITS, count).unwrap();
        assert_eq!(count(&prompt.messages), 192);
        assert_eq!(prompt.messages.len(), 2);
        let trimmed = prompt.trimmed.unwrap();
        assert_eq!((trimmed.messages, trimmed.words), (2, 400 - (192 - 7 - 3)));
        assert!(prompt.messages[1].content.ends_with("w399"));
        assert!(history.messages().is_empty());
    }

    #[test]
    fn a_pasted_book_is_not_counted_word_by_word() {
        let mut history = History::new("You are a test.");
        history.remember(&exchange("hi", "hello"));
        let words: Vec<String> = (0..100_000).map(|i| format!("w{i}")).collect();
        let counted = std::cell::Cell::new(0);
        let counting = |messages: &[Message]| {
            counted.set(counted.get() + messages.iter().map(|m| m.content.len()).sum::<usize>());
            count(messages)
        };
        let prompt = history.prompt(&words.join(" "), LIMITS, counting).unwrap();
        assert_eq!(count(&prompt.messages), 192);
        let trimmed = prompt.trimmed.unwrap();
        assert_eq!((trimmed.messages, trimmed.words), (2, 100_000 - (192 - 7 - 3)));
        assert!(prompt.messages[1].content.ends_with("w99999"));
        assert!(counted.get() < 100_000, "{} bytes counted", counted.get());
    }

    #[test]
    fn a_system_prompt_that_leaves_no_room_is_an_error() {
        let mut history = History::new(&"rule ".repeat(300));
        let error = history.prompt("hi", LIMITS, count).unwrap_err();
        assert_eq!(error, ContextTooSmall { tokens: 307, context_tokens: 256 });
        let mut empty = History::new("");
        assert_eq!(empty.prompt("hi", LIMITS, count).unwrap().messages.len(), 1);
    }

    #[test]
    fn roles_alternate_and_interruptions_show() {
        let mut history = History::new("");
        history.remember(&exchange("one", ""));
        history.remember(&Exchange { user: "two".into(), heard: "I was".into(), interrupted: true });
        let texts: Vec<_> = history.messages().iter().map(|m| (m.role, m.content.as_str())).collect();
        assert_eq!(texts, [(Role::User, "one two"), (Role::Assistant, "I was")]);
        history.remember(&Exchange { user: "stopped".into(), heard: "".into(), interrupted: true });
        assert_eq!(history.messages().last().unwrap().content, "…");
        // A reply may end in an ellipsis of its own.
        history.remember(&exchange("wait", "Well…"));
        let stopped = |user: &str, heard: &str| Exchange { interrupted: true, ..exchange(user, heard) };
        let said: Vec<_> = history.exchanges().collect();
        assert_eq!(said, [stopped("one two", "I was"), stopped("stopped", ""), exchange("wait", "Well…")]);
        history.remember(&exchange("three", ""));
        let prompt = history.prompt("four", LIMITS, count).unwrap();
        assert_eq!(prompt.messages.last().unwrap().content, "three four");
    }
}
