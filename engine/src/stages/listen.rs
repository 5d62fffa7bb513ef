//! The VAD stage: a stream of samples in, speech events and the utterances' samples out.

use std::ops::Range;

use crate::models::ModelError;
use crate::models::silero::{CHUNK_SAMPLES, SileroVad};
use crate::turn::Samples;
use crate::turn::endpoint::{EndpointConfig, EndpointState, SpeechEvent, finish, step};

/// Listens to one stream at 16 kHz.
pub struct Listener {
    vad: SileroVad,
    config: EndpointConfig,
    state: EndpointState,
    /// Samples that do not fill a chunk yet.
    partial: Vec<f32>,
    received: usize,
}

impl Listener {
    /// Listens with the given thresholds.
    pub fn new(vad: SileroVad, config: EndpointConfig) -> Self {
        Self {
            vad,
            config,
            state: EndpointState::default(),
            partial: Vec::with_capacity(CHUNK_SAMPLES),
            received: 0,
        }
    }

    /// Takes the next samples, in pieces of any size, and tells what happened in them.
    ///
    /// # Errors
    /// Only what the device says.
    pub fn push(
        &mut self,
        mut samples: &[f32],
        on_event: &mut dyn FnMut(SpeechEvent),
    ) -> Result<(), ModelError> {
        self.received += samples.len();
        while !samples.is_empty() {
            let (now, later) = samples.split_at(samples.len().min(CHUNK_SAMPLES - self.partial.len()));
            self.partial.extend_from_slice(now);
            samples = later;
            if let Ok(chunk) = <&[f32; CHUNK_SAMPLES]>::try_from(self.partial.as_slice()) {
                let probability = self.vad.chunk(chunk)?;
                self.partial.clear();
                let (next, events) = step(&self.config, &self.state, probability);
                self.state = next;
                events.into_iter().for_each(&mut *on_event);
            }
        }
        Ok(())
    }

    /// Ends the stream: what fills no chunk is judged with silence behind it. The next samples start a new stream.
    ///
    /// # Errors
    /// Only what the device says.
    pub fn finish(&mut self, on_event: &mut dyn FnMut(SpeechEvent)) -> Result<(), ModelError> {
        let length = self.received;
        if !self.partial.is_empty() {
            let missing = CHUNK_SAMPLES - self.partial.len();
            self.push(&[0.0; CHUNK_SAMPLES][..missing], on_event)?;
        }
        let (state, event) = finish(&self.state, Samples(length as u64));
        event.into_iter().for_each(on_event);
        self.state = state;
        self.received = 0;
        self.vad.reset();
        Ok(())
    }
}

/// Pauses up to this long (3 s) lie inside one piece of audio.
const JOINED_PAUSE: usize = 48_000;
/// Most samples of one piece: 28 s, what the recogniser takes with silence behind it.
const LONGEST: usize = 448_000;

/// The piece that holds both utterances, when they are best understood together: a recogniser that hears the sentence
/// before knows the voice and the topic, and three words alone are often mistaken.
pub fn joined(earlier: &Range<usize>, later: &Range<usize>) -> Option<Range<usize>> {
    let near = later.start <= earlier.end + JOINED_PAUSE;
    let whole = earlier.start..later.end;
    (near && whole.len() <= LONGEST).then_some(whole)
}

/// Silence that stays behind the last voiced sample of an utterance: soft last consonants score low.
const TAIL: usize = 3_200;

/// The utterances of a whole recording as sample ranges, pre-roll and tail included, near ones [`joined`].
///
/// # Errors
/// Only what the device says.
pub fn utterances(listener: &mut Listener, samples: &[f32]) -> Result<Vec<Range<usize>>, ModelError> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut add = |next: Range<usize>| match found.last_mut() {
        Some(last) if joined(last, &next).is_some() => last.end = next.end,
        _ => found.push(next),
    };
    let mut from = None;
    let place = |at: Samples| usize::try_from(at.0).unwrap_or(0).min(samples.len());
    let mut on_event = |event: SpeechEvent| match event {
        SpeechEvent::Start { from: at, .. } => from = Some(place(at)),
        SpeechEvent::Dropped => from = None,
        SpeechEvent::Split { at } => {
            if let Some(start) = from.replace(place(at)) {
                add(start..place(at));
            }
        }
        SpeechEvent::End { voiced_end } => {
            if let Some(start) = from.take() {
                add(start..(place(voiced_end) + TAIL).min(samples.len()));
            }
        }
        SpeechEvent::Confirmed | SpeechEvent::MaybeEnd { .. } | SpeechEvent::Resumed => {}
    };
    listener.push(samples, &mut on_event)?;
    listener.finish(&mut on_event)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_utterances_are_one_piece() {
        assert_eq!(joined(&(1_000..20_000), &(40_000..60_000)), Some(1_000..60_000));
        assert_eq!(joined(&(0..20_000), &(20_000 + 48_000..80_000)), Some(0..80_000));
        assert_eq!(joined(&(0..20_000), &(20_001 + 48_000..80_000)), None, "the pause is too long");
        assert_eq!(joined(&(0..400_000), &(410_000..448_000)), Some(0..448_000));
        assert_eq!(joined(&(0..400_000), &(410_000..448_001)), None, "the piece would be too long");
    }
}
