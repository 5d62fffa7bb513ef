//! The speaker as the program sees it: replies are queued, and what was heard of them is asked.
//!
//! [`Speaker`] stays the same while devices come and go. A thread of its own hands the sound to the output ([`crate::output`]) as
//! the device plays; no method waits.
//!
//! ```
//! use repartee_audio::output::{self, OutputConfig};
//! use repartee_audio::speaker::Speaker;
//! let (control, feeder, _port) = output::new(OutputConfig::new(24_000))?;
//! let mut speaker = Speaker::new(control, feeder)?;
//! speaker.queue(1, vec![0.1; 2_400].into());
//! speaker.silence(1);
//! assert_eq!(speaker.heard(1), 0);
//! # Ok::<(), repartee_audio::AudioError>(())
//! ```

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::output::{OutputControl, OutputFeeder};
use crate::{AudioError, Direction};

/// How often the output is fed while it plays: the queue holds eight times as much.
const FEED: Duration = Duration::from_millis(5);
/// A device that tells a longer latency than this is not believed.
const MAX_LATENCY: Duration = Duration::from_secs(1);

enum Order {
    Queue(u64, Arc<[f32]>),
    /// Drop what is queued of this turn.
    Drop(u64),
}

/// Plays replies, and knows what was heard of them. Turns are numbers below [`crate::output::MAX_TURN`].
pub struct Speaker {
    control: OutputControl,
    orders: Sender<Order>,
    turn: Option<u64>,
    ended: Arc<Mutex<Ended>>,
    heard: Heard,
}

/// The turn whose sound the device has taken to the last sample, and how many at the synthesiser's rate these were:
/// counted in the device's, they may seem to be one less.
#[derive(Clone, Copy, Default)]
struct Ended {
    turn: u64,
    samples: u64,
}

impl Speaker {
    /// A speaker on this output; its thread ends when it is dropped.
    ///
    /// # Errors
    /// [`AudioError::DeviceFailed`] if the system gives no thread.
    pub fn new(control: OutputControl, feeder: OutputFeeder) -> Result<Self, AudioError> {
        let (orders, queue) = mpsc::channel();
        let ended = Arc::<Mutex<Ended>>::default();
        let (watched, told) = (control.clone(), ended.clone());
        let run = move || feed(feeder, &watched, &queue, &told);
        std::thread::Builder::new().name("speaker".into()).spawn(run).map_err(|error| {
            AudioError::DeviceFailed {
                direction: Direction::Output,
                device: "any".into(),
                reason: format!("no thread: {error}"),
            }
        })?;
        Ok(Self { control, orders, turn: None, ended, heard: Heard::default() })
    }

    /// Plays `sound`, mono at the synthesiser's rate, behind what is queued. A turn that is not the one before begins at
    /// full gain, and all others are stale: nothing of them is heard any more.
    pub fn queue(&mut self, turn: u64, sound: Arc<[f32]>) {
        if self.turn != Some(turn) {
            self.turn = Some(turn);
            self.control.play(turn);
        }
        // The thread ends with this handle only.
        let _ = self.orders.send(Order::Queue(turn, sound));
    }

    /// Lowers the gain of `turn`, if it is the current one.
    pub fn duck(&self, turn: u64) {
        self.control.duck(turn);
    }

    /// Lets `turn` wait, if it is the current one; meant for before its first sound.
    pub fn hold(&self, turn: u64) {
        self.control.hold(turn);
    }

    /// Back to full gain, if `turn` is the current one.
    pub fn resume(&self, turn: u64) {
        self.control.resume(turn);
    }

    /// Fades `turn` out and drops what is queued of it. It does not come back.
    pub fn silence(&self, turn: u64) {
        self.control.silence(turn);
        let _ = self.orders.send(Order::Drop(turn));
    }

    /// Samples of `turn`, at the synthesiser's rate, that have come out of the loudspeaker: what the device took, by the latency that it
    /// tells later. Exact to how often this is called; ask every 20 ms or so.
    pub fn heard(&mut self, turn: u64) -> u64 {
        let latency = self.control.latency().min(MAX_LATENCY);
        let ended = *self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = if ended.turn == turn { ended.samples } else { 0 };
        self.heard.at(Instant::now(), latency, turn, self.control.played(turn).max(taken))
    }

    /// The output behind it, for its counters.
    pub fn control(&self) -> &OutputControl {
        &self.control
    }
}

/// What the device took and when, as far as it is still on its way to the ear.
#[derive(Default)]
struct Heard {
    turn: u64,
    taken: VecDeque<(Instant, u64)>,
    last_taken: u64,
    heard: u64,
}

impl Heard {
    fn at(&mut self, now: Instant, latency: Duration, turn: u64, taken: u64) -> u64 {
        if self.turn != turn {
            *self = Self { turn, ..Self::default() };
        }
        if taken > self.last_taken {
            self.last_taken = taken;
            self.taken.push_back((now, taken));
        }
        while let Some(&(at, taken)) = self.taken.front()
            && now.saturating_duration_since(at) >= latency
        {
            self.heard = taken;
            self.taken.pop_front();
        }
        self.heard
    }
}

/// Hands the queued sound to the output, as it has room.
fn feed(mut feeder: OutputFeeder, control: &OutputControl, orders: &Receiver<Order>, ended: &Mutex<Ended>) {
    let mut queue = Queue::default();
    loop {
        let order = if queue.given == 0 && queue.pieces.is_empty() {
            orders.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            orders.recv_timeout(FEED)
        };
        match order {
            Ok(order) => {
                queue.take(order);
                orders.try_iter().for_each(|order| queue.take(order));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        match queue.feed(&mut feeder) {
            Ok(None) => {}
            // What is silenced was dropped, not heard.
            Ok(Some(end)) if !control.may_sound(end.turn) => {}
            Ok(Some(end)) => *ended.lock().unwrap_or_else(PoisonError::into_inner) = end,
            Err(error) => {
                tracing::error!(%error, "the reply can't be played");
                queue.drop_rest();
            }
        }
    }
}

/// What is queued of the current turn.
#[derive(Default)]
struct Queue {
    turn: u64,
    pieces: VecDeque<Arc<[f32]>>,
    /// Of the first piece, what was handed over.
    offset: usize,
    /// Samples of the turn that were handed over, and of these, those of which it is not known that the device has taken
    /// them all: they may have to go to another one.
    total: u64,
    given: u64,
}

impl Queue {
    fn take(&mut self, order: Order) {
        match order {
            Order::Queue(turn, sound) => {
                if turn != self.turn {
                    self.drop_rest();
                    (self.turn, self.total) = (turn, 0);
                }
                if !sound.is_empty() {
                    self.pieces.push_back(sound);
                }
            }
            Order::Drop(turn) if turn == self.turn => self.drop_rest(),
            Order::Drop(_) => {}
        }
    }

    /// Nothing more of this turn is waited for.
    fn drop_rest(&mut self) {
        self.pieces.clear();
        (self.offset, self.given) = (0, 0);
    }

    /// Hands over what there is room for; says when the device has taken all of it.
    fn feed(&mut self, feeder: &mut OutputFeeder) -> Result<Option<Ended>, AudioError> {
        while let Some(piece) = self.pieces.front() {
            let taken = feeder.offer(self.turn, &piece[self.offset..])?;
            if taken == 0 {
                return Ok(None);
            }
            self.offset += taken;
            self.given += taken as u64;
            self.total += taken as u64;
            if self.offset == piece.len() {
                self.offset = 0;
                self.pieces.pop_front();
            }
        }
        // Nothing more has come: what the resampler keeps back may be the end of it, so it has to go out before the
        // device runs dry. If more comes later, there is a gap anyway.
        if self.given > 0 && feeder.is_low() && feeder.finish(self.turn)? && feeder.is_empty() {
            self.given = 0;
            return Ok(Some(Ended { turn: self.turn, samples: self.total }));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{self, OutputCallback, OutputConfig};

    fn block(callback: &mut OutputCallback, frames: usize) -> Vec<f32> {
        let mut block = vec![0.0; frames];
        callback.fill(&mut block, 1, |sample| sample);
        block
    }

    /// Runs the device until `is_done`; what the device got. It waits for the other thread as no device does, so that
    /// on a busy machine, too, only the end finds it empty.
    fn run(callback: &mut OutputCallback, mut is_done: impl FnMut(&[f32]) -> bool) -> Vec<f32> {
        let (begun, mut got, mut asked_at) = (Instant::now(), Vec::new(), Instant::now());
        while !is_done(&got) {
            assert!(begun.elapsed() < Duration::from_secs(20), "it stands still after {} samples", got.len());
            if callback.queued_samples() >= 240 || asked_at.elapsed() > Duration::from_millis(100) {
                got.extend(block(callback, 240));
                asked_at = Instant::now();
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        got
    }

    #[test]
    fn what_is_queued_is_played_to_its_last_sample_and_heard() {
        let (control, feeder, port) = output::new(OutputConfig::new(24_000)).unwrap();
        let (mut callback, _tap) = port.connect(44_100).unwrap();
        let mut speaker = Speaker::new(control, feeder).unwrap();
        for piece in 0..10 {
            speaker.queue(7, vec![0.1 + piece as f32 * 0.01; 1_000].into());
        }
        let got = run(&mut callback, |_| speaker.heard(7) == 10_000);
        let sounding = got.iter().filter(|sample| **sample > 0.05).count();
        assert!(sounding.abs_diff(18_375) < 100, "{sounding}");
        // A clause that comes later goes on in the same turn.
        speaker.queue(7, vec![0.3; 2_400].into());
        run(&mut callback, |_| speaker.heard(7) == 12_400);
        assert_eq!(speaker.heard(8), 0);
    }

    #[test]
    fn a_silenced_turn_is_dropped_and_the_next_one_begins_at_full_gain() {
        let (control, feeder, port) = output::new(OutputConfig::new(24_000)).unwrap();
        let (mut callback, _tap) = port.connect(48_000).unwrap();
        let mut speaker = Speaker::new(control, feeder).unwrap();
        speaker.queue(1, vec![0.5; 240_000].into());
        run(&mut callback, |got| got.contains(&0.5));
        speaker.duck(1);
        speaker.silence(1);
        block(&mut callback, 2_400);
        speaker.queue(1, vec![0.5; 240].into());
        let got = run(&mut callback, |got| got.len() > 2_400);
        assert!(got.iter().all(|sample| *sample == 0.0), "it does not come back");
        speaker.queue(2, vec![0.25; 24_000].into());
        run(&mut callback, |got| got.contains(&0.25));
        assert!(speaker.heard(2) > 0 && speaker.heard(1) == 0);
    }

    #[test]
    fn what_was_taken_is_heard_by_the_latency_later() {
        let (mut heard, start) = (Heard::default(), Instant::now());
        let mut at = |ms, turn, taken| {
            heard.at(start + Duration::from_millis(ms), Duration::from_millis(50), turn, taken)
        };
        assert_eq!([at(0, 1, 240), at(20, 1, 720), at(49, 1, 720)], [0, 0, 0]);
        assert_eq!([at(50, 1, 960), at(71, 1, 960), at(110, 1, 960)], [240, 720, 960]);
        assert_eq!([at(120, 2, 240), at(180, 2, 240)], [0, 240]);
    }
}
