//! The VAD stage: a stream of samples in, speech events and the utterances' samples out.

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

/// Silence that stays behind the last voiced sample of an utterance: soft last consonants score low.
const TAIL: usize = 3_200;

/// The utterances of a whole recording as sample ranges, pre-roll and tail included.
///
/// # Errors
/// Only what the device says.
pub fn utterances(
    listener: &mut Listener,
    samples: &[f32],
) -> Result<Vec<std::ops::Range<usize>>, ModelError> {
    let mut found = Vec::new();
    let mut from = None;
    let place = |at: Samples| usize::try_from(at.0).unwrap_or(0).min(samples.len());
    let mut on_event = |event: SpeechEvent| match event {
        SpeechEvent::Start { from: at, .. } => from = Some(place(at)),
        SpeechEvent::Dropped => from = None,
        SpeechEvent::Split { at } => {
            if let Some(start) = from.replace(place(at)) {
                found.push(start..place(at));
            }
        }
        SpeechEvent::End { voiced_end } => {
            if let Some(start) = from.take() {
                found.push(start..(place(voiced_end) + TAIL).min(samples.len()));
            }
        }
        SpeechEvent::Confirmed | SpeechEvent::MaybeEnd { .. } | SpeechEvent::Resumed => {}
    };
    listener.push(samples, &mut on_event)?;
    listener.finish(&mut on_event)?;
    Ok(found)
}
