//! From speech probabilities to where speech starts, pauses and ends.
//!
//! The VAD gives one probability per chunk of [`CHUNK`] samples. [`step`] is a pure function from the
//! state before a chunk to the state after it and what happened:
//!
//! ```text
//!  prob  ▁▁▁▇▇▇▇▇▇▇▁▁▁▁▁▁▇▇▇▇▇▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
//!           │ │  │      │  │      │              │
//!           │ │  │      │  │      MaybeEnd       End
//!           │ │  │      │  Resumed (onset voiced again)
//!           │ │  │      MaybeEnd (pause of quiet)
//!           │ │  Confirmed (min_speech voiced)
//!           │ Start (onset voiced; its `from` lies pre_roll before the first voiced sample)
//! ```
//!
//! ```
//! use repartee_engine::turn::endpoint::{EndpointConfig, EndpointState, SpeechEvent, step};
//! let config = EndpointConfig::default();
//! let mut state = EndpointState::default();
//! let mut started = None;
//! for probability in [0.1, 0.9, 0.9, 0.9] {
//!     let (next, events) = step(&config, &state, probability);
//!     state = next;
//!     started = started.or(events.into_iter().find(|e| matches!(e, SpeechEvent::Start { .. })));
//! }
//! assert!(started.is_some());
//! ```
//!
//! The thresholds work as in Silero's `VADIterator` and `get_speech_timestamps`: a chunk at or above
//! `on` is speech, one below `off` is quiet, one between leaves things as they are. Three things are
//! added for conversation: a click shorter than `onset` neither starts nor continues speech, speech
//! shorter than `min_speech` is taken back ([`SpeechEvent::Dropped`]), and a pause is told long before
//! the end, so that work can begin.

use super::Samples;

/// Samples per probability: Silero v5 and v6 take 512 at 16 kHz (32 ms).
pub const CHUNK: Samples = Samples(512);

/// Thresholds and times of [`step`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EndpointConfig {
    /// A chunk at or above this is speech. 0.5: Silero's default `threshold`.
    pub on: f32,
    /// A chunk below this is quiet. 0.35: Silero's `neg_threshold`, by default `threshold` - 0.15.
    pub off: f32,
    /// Voiced time before [`SpeechEvent::Start`] and [`SpeechEvent::Resumed`]. 64 ms, two chunks: one chunk (Silero's own
    /// behaviour) would duck a reply for every click.
    pub onset: Samples,
    /// Voiced time before [`SpeechEvent::Confirmed`]; what ends earlier is dropped. 160 ms: longer than an 80 ms bang touches
    /// (at most four chunks), shorter than a quick "stop" (0.2 s). Silero's
    /// `min_speech_duration_ms` of 250 is for cutting recordings, where nobody waits.
    pub min_speech: Samples,
    /// Quiet before [`SpeechEvent::MaybeEnd`]. 160 ms: longer than the closure of a stop consonant (50 to 100 ms), so that
    /// work begun then is rarely thrown away; Silero separates segments at 100 ms.
    pub pause: Samples,
    /// Quiet before [`SpeechEvent::End`]. 500 ms: most pauses inside a turn are shorter; the usual default of voice agents
    /// is 500 to 800 ms.
    pub hangover: Samples,
    /// How far [`SpeechEvent::Start`] reaches back before the first voiced chunk. 300 ms: soft first consonants score below
    /// `on`; Silero's `speech_pad_ms` of 30 would lose them.
    pub pre_roll: Samples,
    /// Speech longer than this is split at its longest pause so far. 28 s: what fits in Whisper's
    /// 30 s window with the pre-roll. Silero's `max_speech_duration_s` has no limit by default.
    pub max_speech: Samples,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            on: 0.5,
            off: 0.35,
            onset: Samples::from_ms(64),
            min_speech: Samples::from_ms(160),
            pause: Samples::from_ms(160),
            hangover: Samples::from_ms(500),
            pre_roll: Samples::from_ms(300),
            max_speech: Samples::from_ms(28_000),
        }
    }
}

/// Quiet that a word may hold without its voiced time starting over before it is confirmed.
const BRIDGED: Samples = Samples::from_ms(64);
/// Pauses at least this long are places to split at: Silero's `min_silence_at_max_speech` of 98 ms.
const SPLIT_PAUSE: Samples = Samples::from_ms(98);

/// What happened in a chunk. Positions are samples since the stream began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpeechEvent {
    /// Someone probably speaks.
    Start {
        /// Where to start listening: the pre-roll before `voiced`, but not in earlier speech.
        from: Samples,
        /// First voiced sample.
        voiced: Samples,
    },
    /// The speech since [`Start`](Self::Start) is long enough to be sure.
    Confirmed,
    /// The speech since [`Start`](Self::Start) was too short; it was a noise.
    Dropped,
    /// Quiet for `pause`; the speech may be over.
    MaybeEnd {
        /// The sample after the last voiced one.
        voiced_end: Samples,
    },
    /// The speech goes on after [`MaybeEnd`](Self::MaybeEnd).
    Resumed,
    /// Speech has become too long for one piece and goes on.
    Split {
        /// End of the piece and start of the next: inside the longest pause, or here and now.
        at: Samples,
    },
    /// Quiet for `hangover`, or the stream is over.
    End {
        /// The sample after the last voiced one.
        voiced_end: Samples,
    },
}

/// Up to two events of one chunk, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpeechEvents([Option<SpeechEvent>; 2]);

impl SpeechEvents {
    fn push(&mut self, event: SpeechEvent) {
        let slot = usize::from(self.0[0].is_some());
        self.0[slot] = Some(event);
    }
}

impl IntoIterator for SpeechEvents {
    type Item = SpeechEvent;
    type IntoIter = std::iter::Flatten<std::array::IntoIter<Option<SpeechEvent>, 2>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().flatten()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// Nobody speaks, or not for long enough yet.
    #[default]
    Quiet,
    /// [`SpeechEvent::Start`] was told.
    Started,
    /// [`SpeechEvent::Confirmed`] was told.
    Speaking,
    /// [`SpeechEvent::MaybeEnd`] was told.
    Pausing,
}

/// Everything that [`step`] remembers between chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointState {
    /// Samples seen.
    position: Samples,
    phase: Phase,
    /// First voiced sample of the speech, or of what may become speech.
    voiced_start: Samples,
    /// Voiced time of the present run: towards onset, confirmation or resumption.
    run: Samples,
    /// First sample of the present quiet, if it is quiet.
    quiet_since: Option<Samples>,
    /// Start of the present piece of speech.
    piece_start: Samples,
    /// Longest pause of the present piece: middle and length.
    longest_pause: Option<(Samples, Samples)>,
    /// The sample after all earlier speech; a pre-roll does not reach behind it.
    floor: Samples,
}

impl EndpointState {
    /// Samples seen so far.
    pub fn position(&self) -> Samples {
        self.position
    }
}

/// Takes the probability of the next chunk. A probability that is no number counts as quiet.
pub fn step(
    config: &EndpointConfig,
    state: &EndpointState,
    probability: f32,
) -> (EndpointState, SpeechEvents) {
    let mut next = *state;
    let mut events = SpeechEvents::default();
    let chunk_start = state.position;
    next.position += CHUNK;
    if probability >= config.on {
        next.voiced(config, chunk_start, &mut events);
    } else if probability < config.off || probability.is_nan() {
        next.quiet(config, chunk_start, &mut events);
    } else {
        next.between(config, chunk_start, &mut events);
    }
    next.split_if_long(config, &mut events);
    (next, events)
}

/// The stream is over after `length` samples (the last chunk may have been filled up): ends the speech
/// that is still open. The state can take a new stream afterwards.
pub fn finish(state: &EndpointState, length: Samples) -> (EndpointState, Option<SpeechEvent>) {
    let voiced_end = state.quiet_since.unwrap_or(state.position).min(length);
    let event = match state.phase {
        Phase::Quiet => None,
        Phase::Started => Some(SpeechEvent::Dropped),
        Phase::Speaking | Phase::Pausing => Some(SpeechEvent::End { voiced_end }),
    };
    (EndpointState::default(), event)
}

/// Ends the speech that is open, here and now; the stream goes on.
pub fn end_speech(state: &EndpointState) -> (EndpointState, Option<SpeechEvent>) {
    let (_, event) = finish(state, state.position);
    let floor = if event.is_some() { state.position } else { state.floor };
    (EndpointState { position: state.position, floor, ..EndpointState::default() }, event)
}

impl EndpointState {
    fn voiced(&mut self, config: &EndpointConfig, chunk_start: Samples, events: &mut SpeechEvents) {
        if self.phase == Phase::Quiet && self.run == Samples::ZERO {
            self.voiced_start = chunk_start;
        }
        self.run += CHUNK;
        if self.phase == Phase::Quiet {
            if self.run < config.onset {
                return;
            }
            self.phase = Phase::Started;
            self.quiet_since = None;
            self.piece_start = self.voiced_start;
            self.longest_pause = None;
            let from = (self.voiced_start - config.pre_roll).max(self.floor);
            events.push(SpeechEvent::Start { from, voiced: self.voiced_start });
        }
        match self.phase {
            Phase::Started => {
                self.quiet_since = None;
                if self.run >= config.min_speech {
                    self.phase = Phase::Speaking;
                    events.push(SpeechEvent::Confirmed);
                }
            }
            Phase::Speaking => self.speech_after_quiet(chunk_start),
            Phase::Pausing if self.run >= config.onset => {
                self.speech_after_quiet(self.position - self.run);
                self.phase = Phase::Speaking;
                events.push(SpeechEvent::Resumed);
            }
            // Perhaps a click in the pause; the quiet counts on if so.
            Phase::Pausing | Phase::Quiet => {}
        }
    }

    /// Forgets the quiet that speech at `start` has ended, but remembers it as a place to split at.
    fn speech_after_quiet(&mut self, start: Samples) {
        if let Some(since) = self.quiet_since.take() {
            let length = start - since;
            if length >= SPLIT_PAUSE && self.longest_pause.is_none_or(|(_, longest)| length >= longest) {
                self.longest_pause = Some((Samples(since.0 + length.0 / 2), length));
            }
        }
    }

    fn quiet(&mut self, config: &EndpointConfig, chunk_start: Samples, events: &mut SpeechEvents) {
        match self.phase {
            Phase::Quiet => self.run = Samples::ZERO,
            Phase::Started => {
                let since = *self.quiet_since.get_or_insert(chunk_start);
                if self.position - since >= BRIDGED {
                    self.run = Samples::ZERO;
                }
                if self.position - since >= config.pause {
                    // The noise may have been the first consonant of what follows.
                    self.become_quiet(self.floor);
                    events.push(SpeechEvent::Dropped);
                }
            }
            Phase::Speaking | Phase::Pausing => {
                let since = *self.quiet_since.get_or_insert(chunk_start);
                self.run = Samples::ZERO;
                self.pause_or_end(config, since, events);
            }
        }
    }

    /// Neither speech nor quiet: once speech is sure, both go on as they were. Before, and for the
    /// question whether speech resumes, only chunks at or above `on` count.
    fn between(&mut self, config: &EndpointConfig, chunk_start: Samples, events: &mut SpeechEvents) {
        match (self.phase, self.quiet_since) {
            (Phase::Speaking, None) => {}
            _ => self.quiet(config, chunk_start, events),
        }
    }

    fn pause_or_end(&mut self, config: &EndpointConfig, since: Samples, events: &mut SpeechEvents) {
        let quiet = self.position - since;
        if self.phase == Phase::Speaking && quiet >= config.pause {
            self.phase = Phase::Pausing;
            events.push(SpeechEvent::MaybeEnd { voiced_end: since });
        }
        if self.phase == Phase::Pausing && quiet >= config.hangover {
            self.become_quiet(since);
            events.push(SpeechEvent::End { voiced_end: since });
        }
    }

    fn become_quiet(&mut self, floor: Samples) {
        *self = Self { position: self.position, floor, ..Self::default() };
    }

    fn split_if_long(&mut self, config: &EndpointConfig, events: &mut SpeechEvents) {
        // Not in quiet, which may become the end.
        let speaks = self.phase == Phase::Speaking && self.quiet_since.is_none();
        if !speaks || self.position - self.piece_start < config.max_speech {
            return;
        }
        let at = self.longest_pause.take().map_or(self.position, |(middle, _)| middle);
        self.piece_start = at;
        events.push(SpeechEvent::Split { at });
    }
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
