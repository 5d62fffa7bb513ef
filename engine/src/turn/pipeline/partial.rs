//! Words shown while the user speaks: the growing piece of speech is recognised again and again, while nobody else needs the
//! recogniser. They are for the eye only; the turn machine waits for a pause.

use std::sync::Arc;

use super::super::machine::Growing;
use super::super::message::TurnNumber;
use super::super::{LISTEN_RATE_HZ, Samples};

/// Speech before the first words are shown, and at least between two looks.
const EVERY: Samples = Samples::from_ms(1_200);

/// What is known of the growing piece.
#[derive(Default)]
pub(super) struct Partial {
    text: Arc<str>,
    /// The piece's start.
    from: Option<Samples>,
    /// Under which number words were asked for, and when; counted from the end, so that none is a turn's.
    asked: Option<(TurnNumber, u64)>,
    number: u64,
    /// Position from which words may be asked for.
    next: Samples,
}

impl Partial {
    /// The words to show behind those that are sure.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Takes a look at the piece that grows, at `position`; says whether to recognise it now, and as which number.
    pub(super) fn look(
        &mut self,
        growing: Option<&Growing>,
        position: Samples,
        now_ns: u64,
    ) -> Option<(TurnNumber, Samples)> {
        let Some(growing) = growing else {
            *self = Self { number: self.number, ..Self::default() };
            return None;
        };
        if self.from != Some(growing.from) {
            let next = growing.from + EVERY;
            *self = Self { number: self.number, from: self.from, next, ..Self::default() };
            self.from = Some(growing.from);
        }
        if let Some(text) = &growing.text {
            self.text = text.clone();
        }
        if growing.is_attempted {
            // The recogniser has better to do, and drops this.
            self.asked = None;
            self.next = position + EVERY;
            return None;
        }
        if self.asked.is_some() || position < self.next {
            return None;
        }
        self.number += 1;
        let turn = TurnNumber(u64::MAX - self.number);
        self.asked = Some((turn, now_ns));
        Some((turn, growing.from))
    }

    /// Words have come.
    pub(super) fn recognised(&mut self, turn: TurnNumber, text: Arc<str>, position: Samples, now_ns: u64) {
        let Some((_, asked_ns)) = self.asked.take_if(|(asked, _)| *asked == turn) else { return };
        if !text.is_empty() {
            self.text = text;
        }
        // At most a third of the time.
        let took = Samples(now_ns.saturating_sub(asked_ns) / (1_000_000_000 / LISTEN_RATE_HZ));
        self.next = position + EVERY.max(Samples(2 * took.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_asked_for_while_speech_grows_and_forgotten_with_it() {
        let mut partial = Partial::default();
        let ms = Samples::from_ms;
        let growing = |is_attempted, text: Option<&str>| Growing {
            from: ms(1_000),
            text: text.map(Arc::from),
            is_attempted,
        };
        assert_eq!(partial.look(Some(&growing(false, None)), ms(1_500), 0), None, "too early");
        let (turn, from) = partial.look(Some(&growing(false, None)), ms(2_300), 0).unwrap();
        assert_eq!(from, ms(1_000));
        assert_eq!(partial.look(Some(&growing(false, None)), ms(2_400), 0), None, "one at a time");
        // It took a second, so it rests for two.
        partial.recognised(turn, "so far".into(), ms(3_300), 1_000_000_000);
        assert_eq!(partial.text(), "so far");
        assert_eq!(partial.look(Some(&growing(false, None)), ms(5_200), 0), None);
        let (late, _) = partial.look(Some(&growing(false, None)), ms(5_300), 0).unwrap();
        // A pause: the real transcript counts, and what comes late does not.
        assert_eq!(partial.look(Some(&growing(true, Some("so far so good"))), ms(5_400), 0), None);
        partial.recognised(late, "so".into(), ms(5_500), 0);
        assert_eq!(partial.text(), "so far so good");
        // Speech goes on: its words stay until there are more.
        assert_eq!(partial.look(Some(&growing(false, None)), ms(5_600), 0), None);
        assert_eq!(partial.text(), "so far so good");
        assert_eq!(partial.look(None, ms(9_000), 0), None);
        assert_eq!(partial.text(), "");
    }
}
