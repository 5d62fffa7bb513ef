//! Marks of a running turn, the record of a finished one, and who keeps them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::{Clock, Mark, Metric};

const UNSET: u64 = u64::MAX;

/// The moments of one attempt at a turn. Cheap to clone; clones share the moments.
///
/// The first time a moment is marked counts. Marking is one atomic instruction.
#[derive(Clone)]
pub struct Marks {
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
}

struct Shared {
    ns: [AtomicU64; Mark::COUNT],
    cold: AtomicU32,
}

impl Marks {
    fn new(clock: Arc<dyn Clock>) -> Self {
        let ns = std::array::from_fn(|_| AtomicU64::new(UNSET));
        Self { clock, shared: Arc::new(Shared { ns, cold: AtomicU32::new(0) }) }
    }

    /// The clock's present moment, for [`Self::mark_at`].
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// `mark` is now. Does not allocate, lock or wait.
    pub fn mark(&self, mark: Mark) {
        self.mark_at(mark, self.clock.now_ns());
    }

    /// `mark` was at `ns` on the recorder's clock, for moments known from a sample count. The
    /// earliest time given counts. Does not allocate, lock or wait.
    pub fn mark_at(&self, mark: Mark, ns: u64) {
        self.shared.ns[mark as usize].fetch_min(ns, Ordering::Relaxed);
    }

    /// The stage behind `metric` ran for the first time since it was loaded. Does not allocate.
    pub fn mark_cold(&self, metric: Metric) {
        self.shared.cold.fetch_or(1 << metric as u32, Ordering::Relaxed);
    }

    /// When `mark` was, in nanoseconds of the recorder's clock.
    pub fn at(&self, mark: Mark) -> Option<u64> {
        let ns = self.shared.ns[mark as usize].load(Ordering::Relaxed);
        (ns != UNSET).then_some(ns)
    }

    fn span_ns(&self, metric: Metric) -> Option<(u64, u64)> {
        let (start, end) = (self.at(metric.info().start)?, self.at(metric.info().end)?);
        Some((start, end.max(start)))
    }

    fn record(&self, id: u64) -> TurnRecord {
        let origin = self.at(Mark::SpeechEnd).or_else(|| {
            self.shared.ns.iter().map(|ns| ns.load(Ordering::Relaxed)).min().filter(|ns| *ns != UNSET)
        });
        let ms = |ns: u64| (ns as f64 - origin.unwrap_or(0) as f64) / 1e6;
        let stages = Metric::stages()
            .filter_map(|metric| {
                let (start, end) = self.span_ns(metric)?;
                Some((metric, Span { start_ms: ms(start), end_ms: ms(end) }))
            })
            .collect();
        let voice_to_voice_ms = self.span_ns(Metric::VoiceToVoice).map(|(a, b)| (b - a) as f64 / 1e6);
        let cold_bits = self.shared.cold.load(Ordering::Relaxed);
        let cold = Metric::stages().filter(|metric| cold_bits & (1 << *metric as u32) != 0).collect();
        TurnRecord {
            id,
            cancelled: false,
            cold,
            transcript: String::new(),
            reply: String::new(),
            stages,
            voice_to_voice_ms,
        }
    }
}

/// A stage on the time line of its turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "the start and end of a stage")]
pub struct Span {
    /// Milliseconds after the last voiced sample of the user's speech (negative: before it).
    pub start_ms: f64,
    /// Likewise; never before `start_ms`.
    pub end_ms: f64,
}

impl Span {
    /// Length in milliseconds.
    pub fn duration_ms(&self) -> f64 {
        self.end_ms - self.start_ms
    }
}

/// One turn of a conversation and where its time went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "a turn")]
pub struct TurnRecord {
    /// Number of the turn in its conversation.
    pub id: u64,
    /// The reply was stopped or thrown away; such turns count in no statistics.
    pub cancelled: bool,
    /// Stages that ran for the first time since they were loaded.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub cold: BTreeSet<Metric>,
    /// What the user said.
    pub transcript: String,
    /// What was answered (as far as it was heard, when cancelled).
    pub reply: String,
    /// The stages whose two moments were both marked.
    pub stages: BTreeMap<Metric, Span>,
    /// The whole, if speech was heard and a reply was played.
    pub voice_to_voice_ms: Option<f64>,
}

impl TurnRecord {
    /// How long `metric` took, in milliseconds; `None` if it was not measured.
    pub fn duration_ms(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::VoiceToVoice => self.voice_to_voice_ms,
            stage => self.stages.get(&stage).map(Span::duration_ms),
        }
    }

    /// Whether no stage ran for the first time.
    pub fn is_warm(&self) -> bool {
        self.cold.is_empty()
    }
}

/// What a display shows for a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// Not measured in this conversation yet.
    Unknown,
    /// Running since that many milliseconds.
    Live {
        /// Milliseconds so far.
        ms: f64,
    },
    /// Measured in the current turn.
    Final {
        /// Milliseconds.
        ms: f64,
    },
    /// The value of an earlier turn; the current one has not got there.
    Stale {
        /// Milliseconds.
        ms: f64,
        /// The turn it comes from.
        turn: u64,
    },
}

/// Finished turns kept in memory: about a day of talking.
const MAX_TURNS: usize = 10_000;

/// Starts, finishes and keeps turns. One owner; only [`Marks`] goes to other threads.
pub struct Recorder {
    clock: Arc<dyn Clock>,
    current: Option<(u64, Marks)>,
    finished: VecDeque<TurnRecord>,
}

impl Recorder {
    /// A recorder without turns on `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, current: None, finished: VecDeque::new() }
    }

    /// Starts turn `id`, or a new attempt at it: what was marked before is forgotten. A running turn
    /// with another number is kept as cancelled.
    pub fn begin(&mut self, id: u64) -> Marks {
        if self.current.as_ref().is_some_and(|(running, _)| *running != id) {
            self.cancel("", "");
        }
        let marks = Marks::new(self.clock.clone());
        self.current = Some((id, marks.clone()));
        marks
    }

    /// Ends the running turn; `None` if there is none.
    pub fn finish(&mut self, transcript: &str, reply: &str) -> Option<&TurnRecord> {
        self.close(transcript, reply, Outcome::Answered)
    }

    /// Ends the running attempt without a record: speech went on and another attempt follows.
    pub fn discard(&mut self) {
        self.current = None;
    }

    /// Ends the running turn as cancelled: counted, but in no statistics.
    pub fn cancel(&mut self, transcript: &str, heard: &str) -> Option<&TurnRecord> {
        self.close(transcript, heard, Outcome::Cancelled)
    }

    fn close(&mut self, transcript: &str, reply: &str, outcome: Outcome) -> Option<&TurnRecord> {
        let (id, marks) = self.current.take()?;
        let mut record = marks.record(id);
        record.cancelled = outcome == Outcome::Cancelled;
        record.transcript = transcript.to_owned();
        record.reply = reply.to_owned();
        if self.finished.len() == MAX_TURNS {
            self.finished.pop_front();
        }
        self.finished.push_back(record);
        self.finished.back()
    }

    /// Finished turns, oldest first.
    pub fn turns(&self) -> impl DoubleEndedIterator<Item = &TurnRecord> + ExactSizeIterator {
        self.finished.iter()
    }

    /// What to show for `metric` now.
    pub fn reading(&self, metric: Metric) -> Reading {
        if let Some((_, marks)) = &self.current {
            if let Some((start, end)) = marks.span_ns(metric) {
                return Reading::Final { ms: (end - start) as f64 / 1e6 };
            }
            if let Some(start) = marks.at(metric.info().start) {
                return Reading::Live { ms: self.clock.now_ns().saturating_sub(start) as f64 / 1e6 };
            }
        }
        let mut earlier = self.finished.iter().rev();
        // Between turns, the last one is still the current one on display.
        if self.current.is_none()
            && let Some(ms) = earlier.next().and_then(|last| last.duration_ms(metric))
        {
            return Reading::Final { ms };
        }
        earlier
            .filter(|turn| !turn.cancelled)
            .find_map(|turn| Some(Reading::Stale { ms: turn.duration_ms(metric)?, turn: turn.id }))
            .unwrap_or(Reading::Unknown)
    }
}

#[derive(PartialEq)]
enum Outcome {
    Answered,
    Cancelled,
}

#[cfg(test)]
mod tests {
    use super::super::ManualClock;
    use super::*;

    fn recorder() -> (Arc<ManualClock>, Recorder) {
        let clock = Arc::new(ManualClock::default());
        clock.advance_ms(5_000.0);
        (clock.clone(), Recorder::new(clock))
    }

    /// A turn with every mark 10 ms after the one before.
    fn mark_all(clock: &ManualClock, marks: &Marks) {
        use Mark::*;
        for mark in [
            SpeechEnd,
            SpeechEndCaptured,
            SpeechEndScored,
            EncoderStart,
            EncoderEnd,
            TranscriptReady,
            PrefillStart,
            PrefillEnd,
            FirstToken,
            FirstClause,
            FirstChunk,
            EndOfTurn,
            Released,
            FirstSample,
        ] {
            marks.mark(mark);
            clock.advance_ms(10.0);
        }
    }

    #[test]
    fn spans_start_at_the_last_voiced_sample() {
        let (clock, mut recorder) = recorder();
        let marks = recorder.begin(7);
        mark_all(&clock, &marks);
        let turn = recorder.finish("hello", "hi").unwrap().clone();
        assert_eq!((turn.id, turn.cancelled, turn.voice_to_voice_ms), (7, false, Some(130.0)));
        assert_eq!(turn.stages.len(), 11);
        assert_eq!(turn.stages[&Metric::Capture], Span { start_ms: 0.0, end_ms: 10.0 });
        assert_eq!(turn.stages[&Metric::OutputBuffer], Span { start_ms: 120.0, end_ms: 130.0 });
        assert_eq!(turn.duration_ms(Metric::EndOfTurnWait), Some(90.0));
        // The transcript was there before the end of turn: no wait.
        assert_eq!(turn.stages[&Metric::TranscriptWait], Span { start_ms: 110.0, end_ms: 110.0 });
    }

    #[test]
    fn the_first_time_counts_and_a_new_attempt_forgets() {
        let (clock, mut recorder) = recorder();
        let thrown_away = recorder.begin(1);
        thrown_away.mark(Mark::EncoderStart);
        clock.advance_ms(100.0);
        let marks = recorder.begin(1);
        thrown_away.mark(Mark::EncoderEnd);
        marks.mark(Mark::EncoderStart);
        clock.advance_ms(20.0);
        marks.mark(Mark::EncoderStart);
        marks.mark(Mark::EncoderEnd);
        let turn = recorder.finish("", "").unwrap();
        assert_eq!(turn.stages[&Metric::Encoder], Span { start_ms: 0.0, end_ms: 20.0 });
        assert_eq!(turn.voice_to_voice_ms, None);
        assert_eq!(recorder.turns().len(), 1);
    }

    #[test]
    fn another_turn_cancels_the_running_one() {
        let (clock, mut recorder) = recorder();
        let marks = recorder.begin(1);
        mark_all(&clock, &marks);
        recorder.begin(2);
        recorder.finish("a", "b");
        assert!(recorder.finish("a", "b").is_none(), "no turn runs");
        let ended: Vec<_> = recorder.turns().map(|t| (t.id, t.cancelled)).collect();
        assert_eq!(ended, [(1, true), (2, false)]);
    }

    #[test]
    fn readings_go_from_unknown_over_live_to_final_and_stale() {
        let (clock, mut recorder) = recorder();
        let metric = Metric::Prefill;
        assert_eq!(recorder.reading(metric), Reading::Unknown);
        let marks = recorder.begin(1);
        assert_eq!(recorder.reading(metric), Reading::Unknown);
        marks.mark(Mark::PrefillStart);
        clock.advance_ms(3.0);
        assert_eq!(recorder.reading(metric), Reading::Live { ms: 3.0 });
        marks.mark(Mark::PrefillEnd);
        clock.advance_ms(3.0);
        assert_eq!(recorder.reading(metric), Reading::Final { ms: 3.0 });
        recorder.finish("", "");
        assert_eq!(recorder.reading(metric), Reading::Final { ms: 3.0 });
        recorder.begin(2);
        assert_eq!(recorder.reading(metric), Reading::Stale { ms: 3.0, turn: 1 });
    }

    #[test]
    fn marks_come_from_many_threads() {
        let (_, mut recorder) = recorder();
        let marks = recorder.begin(1);
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let marks = marks.clone();
                scope.spawn(move || {
                    for i in (0..1_000).rev() {
                        marks.mark_at(Mark::FirstToken, 1_000_000 + 4 * i + thread);
                        marks.mark_cold(if thread % 2 == 0 { Metric::Prefill } else { Metric::Encoder });
                    }
                });
            }
        });
        assert_eq!(marks.at(Mark::FirstToken), Some(1_000_000));
        let turn = recorder.finish("", "").unwrap();
        assert_eq!(turn.cold, BTreeSet::from([Metric::Encoder, Metric::Prefill]));
        assert!(!turn.is_warm());
    }
}
