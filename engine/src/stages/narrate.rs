//! Reading aloud: a reply in as it is written, its sound out clause by clause.
//!
//! ```text
//! text ─▶ clauses ─▶ speakable words ─▶ phonemes ─▶ speaker ─▶ sound
//! ```
//!
//! Everything is cut by characters only, so a reply sounds the same however it arrives.

use super::speak::Speaker;
use crate::backends::CancelToken;
use crate::models::ModelError;
use crate::text::clauses::{Clause, ClauseEnd, ClauseSplitter};
use crate::text::phonemes::Phonemizer;
use crate::text::speakable::{Locale, Speakable};

/// Moments of a narration.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum NarrateEvent<'a> {
    /// A clause, or a piece of a long one, is about to be spoken.
    Clause {
        /// Its words as they are said.
        words: &'a str,
        /// Share of the whole clause that is spoken when its sound ends, 0 to 1.
        until: f32,
    },
    /// The sound of the clause and the pause behind it, at [`super::speak::RATE_HZ`].
    Sound(&'a [f32]),
}

/// Speaks replies.
pub struct Narrator {
    speaker: Speaker,
    phonemizer: Phonemizer,
    locale: Locale,
    splitter: ClauseSplitter,
    speakable: Speakable,
}

impl Narrator {
    /// A narrator between two replies. The phonemizer's accent should be the voice's.
    pub fn new(speaker: Speaker, phonemizer: Phonemizer, locale: Locale) -> Self {
        let (splitter, speakable) = (ClauseSplitter::default(), Speakable::new(locale));
        Self { speaker, phonemizer, locale, splitter, speakable }
    }

    /// The speaker.
    pub fn speaker(&mut self) -> &mut Speaker {
        &mut self.speaker
    }

    /// Speaks in another accent from the next reply on.
    pub fn set_language(&mut self, phonemizer: Phonemizer, locale: Locale) {
        (self.phonemizer, self.locale) = (phonemizer, locale);
        self.stop();
    }

    /// Takes up further text and speaks the clauses that it completes.
    ///
    /// # Errors
    /// Cancelled, or what the device says; then [`Self::stop`] before the next reply.
    pub fn push(
        &mut self,
        text: &str,
        on_event: &mut dyn FnMut(NarrateEvent<'_>),
        cancel: Option<&CancelToken>,
    ) -> Result<(), ModelError> {
        let clauses = self.splitter.push(text);
        clauses.iter().try_for_each(|clause| self.clause(clause, on_event, cancel))
    }

    /// Speaks what is left of the reply, and is ready for the next.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn finish(
        &mut self,
        on_event: &mut dyn FnMut(NarrateEvent<'_>),
        cancel: Option<&CancelToken>,
    ) -> Result<(), ModelError> {
        let last = self.splitter.flush();
        let spoken = last.map_or(Ok(()), |clause| self.clause(&clause, on_event, cancel));
        self.stop();
        spoken
    }

    /// Forgets the rest of the reply.
    pub fn stop(&mut self) {
        self.splitter = ClauseSplitter::default();
        self.speakable = Speakable::new(self.locale);
    }

    /// Speaks one clause of the reply, for callers that split it themselves.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn clause(
        &mut self,
        clause: &Clause,
        on_event: &mut dyn FnMut(NarrateEvent<'_>),
        cancel: Option<&CancelToken>,
    ) -> Result<(), ModelError> {
        let pieces = self.speakable.push(clause);
        let length = pieces.iter().map(String::len).sum::<usize>().max(1) as f32;
        let mut said = 0;
        for (i, words) in pieces.iter().enumerate() {
            let end = if i + 1 == pieces.len() { clause.end } else { ClauseEnd::Phrase };
            said += words.len();
            on_event(NarrateEvent::Clause { words, until: said as f32 / length });
            let phonemes = self.phonemizer.phonemize(words).to_kokoro_string();
            let sound = self.speaker.clause(&phonemes, end, cancel)?;
            if !sound.is_empty() {
                on_event(NarrateEvent::Sound(&sound));
            }
        }
        Ok(())
    }
}
