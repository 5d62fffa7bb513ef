//! From the synthesiser to the queue, across devices that come and go.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use ringbuf::HeapProd;
use ringbuf::traits::{Observer, Producer};

use super::{Link, Shared, Tagged};
use crate::AudioError;
use crate::resample::StreamResampler;

/// Converts the synthesiser's sound and fills the queue; for a thread that may wait, not for the callback.
pub struct OutputFeeder {
    shared: Arc<Shared>,
    /// `None` before the first device.
    producer: Option<HeapProd<Tagged>>,
    resampler: StreamResampler,
    source_hz: u32,
    turn: Option<u64>,
    /// What was offered of the turn and may not have been played, from its sample `kept_from` on.
    kept: Vec<f32>,
    kept_from: u64,
    /// At the device's rate, from `next` on not queued yet.
    converted: Vec<f32>,
    next: usize,
    /// Samples of the resampler's delay that are still to be left out at the start of a turn.
    skip: usize,
    /// The resampler has given out its last; the next sample starts a new stream.
    flushed: bool,
}

impl OutputFeeder {
    pub(super) fn new(shared: Arc<Shared>, resampler: StreamResampler, source_hz: u32) -> Self {
        Self {
            shared,
            producer: None,
            resampler,
            source_hz,
            turn: None,
            kept: Vec::new(),
            kept_from: 0,
            converted: Vec::new(),
            next: 0,
            skip: 0,
            flushed: false,
        }
    }

    /// Offers sound of `turn`; gives back how many samples were taken, 0 when the queue is full or there is no
    /// device. Offer the rest again when the device has played some. Sound of another turn than before starts
    /// anew, and what the queue had no room for yet of the former turn is forgotten. What is no number
    /// counts as silence.
    ///
    /// # Errors
    /// [`AudioError::Resample`], a defect.
    pub fn offer(&mut self, turn: u64, samples: &[f32]) -> Result<usize, AudioError> {
        self.start(turn)?;
        self.flush();
        if self.producer.is_none() || !self.converted.is_empty() || samples.is_empty() {
            return Ok(0);
        }
        if self.flushed {
            self.begin_stream();
        }
        // In pieces, so that an interruption finds little converted in vain.
        let taken = samples.len().min(960);
        self.forget_played(turn);
        let fresh = self.kept.len();
        self.kept.extend(samples[..taken].iter().map(|s| if s.is_finite() { *s } else { 0.0 }));
        self.resampler.push(&self.kept[fresh..], &mut self.converted)?;
        self.leave_out_delay();
        self.flush();
        Ok(taken)
    }

    /// The sound of `turn` is complete; `true` once all of it is queued. Call it until
    /// [`OutputControl::played`](super::OutputControl::played) has reached the end: when a device is lost with the last sounds in its queue,
    /// they go to the next one from here.
    ///
    /// # Errors
    /// [`AudioError::Resample`], a defect.
    pub fn finish(&mut self, turn: u64) -> Result<bool, AudioError> {
        self.start(turn)?;
        if !self.flushed {
            self.flushed = true;
            self.resampler.finish(&mut self.converted)?;
            self.leave_out_delay();
        }
        self.flush();
        let done = self.converted.is_empty();
        self.shared.feeding.store(!done, Ordering::Relaxed);
        Ok(done)
    }

    fn start(&mut self, turn: u64) -> Result<(), AudioError> {
        if self.turn != Some(turn) {
            self.turn = Some(turn);
            self.kept.clear();
            self.kept_from = 0;
            self.converted.clear();
            self.next = 0;
            self.resampler.reset();
            self.begin_stream();
        }
        self.shared.feeding.store(true, Ordering::Relaxed);
        if self.shared.has_link.swap(false, Ordering::AcqRel) {
            let link = self.shared.link.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(link) = link {
                self.go_on_with(turn, link)?;
            }
        }
        Ok(())
    }

    /// Takes up a new device: what the former one had not played is converted again for this one.
    fn go_on_with(&mut self, turn: u64, link: Link) -> Result<(), AudioError> {
        self.producer = Some(link.producer);
        self.resampler = link.resampler;
        self.converted.clear();
        self.next = 0;
        self.begin_stream();
        self.forget_played(turn);
        let from = (self.shared.played_of(turn).saturating_sub(self.kept_from) as usize).min(self.kept.len());
        self.resampler.push(&self.kept[from..], &mut self.converted)?;
        self.leave_out_delay();
        Ok(())
    }

    fn forget_played(&mut self, turn: u64) {
        let played = self.shared.played_of(turn).saturating_sub(self.kept_from) as usize;
        // Of a turn that is silenced, nothing is played any more: keep two seconds and no more.
        let too_old = self.kept.len().saturating_sub(2 * self.source_hz as usize);
        let forget = played.max(too_old).min(self.kept.len());
        // Rarely, for what stays moves.
        if forget >= 4_096 {
            self.kept.drain(..forget);
            self.kept_from += forget as u64;
        }
    }

    fn begin_stream(&mut self) {
        self.skip = self.resampler.delay_samples();
        self.flushed = false;
    }

    fn leave_out_delay(&mut self) {
        let left_out = self.skip.min(self.converted.len() - self.next);
        self.skip -= left_out;
        self.next += left_out;
    }

    fn flush(&mut self) {
        let Some(producer) = &mut self.producer else { return };
        let turn = self.turn.unwrap_or(0);
        let tagged = self.converted[self.next..].iter().map(|sample| Tagged { turn, sample: *sample });
        self.next += producer.push_iter(tagged);
        if self.next == self.converted.len() {
            self.converted.clear();
            self.next = 0;
        }
    }

    /// Whether less than half of the queue is left to play.
    pub fn is_low(&self) -> bool {
        self.producer.as_ref().is_none_or(|queue| 2 * queue.occupied_len() < queue.capacity().get())
    }

    /// Whether the device has taken all that was queued.
    pub fn is_empty(&self) -> bool {
        self.producer.as_ref().is_some_and(Observer::is_empty)
    }

    /// Whether the queue has no room, or there is no device.
    pub fn is_full(&self) -> bool {
        self.producer.as_ref().is_none_or(Observer::is_full)
    }
}
