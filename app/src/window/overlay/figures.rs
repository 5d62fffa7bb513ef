//! What the overlay shows, as numbers: from the records that reports are made of.

use std::sync::Arc;

use repartee_engine::latency::{Metric, Reading, Stats, TurnRecord};
use repartee_engine::turn::pipeline::Snapshot;

/// Turns in the chart.
pub(super) const LAST: usize = 20;

/// A row of the waterfall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bar {
    /// The stage.
    pub(super) metric: Metric,
    /// From the turn's zero, in milliseconds.
    pub(super) start_ms: f64,
    /// As `start_ms`, never before it.
    pub(super) end_ms: f64,
}

/// The stages of a turn in order, those that were measured.
pub(super) fn waterfall(record: &TurnRecord) -> Vec<Bar> {
    Metric::stages()
        .filter_map(|metric| {
            let span = record.stages.get(&metric)?;
            Some(Bar { metric, start_ms: span.start_ms, end_ms: span.end_ms.max(span.start_ms) })
        })
        .collect()
}

/// From the first start to the last end, at least a millisecond, so that it can be divided by.
pub(super) fn extent(bars: &[Bar]) -> (f64, f64) {
    let first = bars.iter().map(|bar| bar.start_ms).fold(f64::INFINITY, f64::min);
    let last = bars.iter().map(|bar| bar.end_ms).fold(f64::NEG_INFINITY, f64::max);
    if first > last { (0.0, 1.0) } else { (first, last.max(first + 1.0)) }
}

/// The last turns that were measured from voice to voice, with their place in the conversation from 1.
pub(super) fn last_turns(records: &[Arc<TurnRecord>]) -> Vec<(usize, &TurnRecord)> {
    let measured = records.iter().enumerate().filter(|(_, record)| record.voice_to_voice_ms.is_some());
    let all: Vec<_> = measured.map(|(i, record)| (i + 1, &**record)).collect();
    all[all.len().saturating_sub(LAST)..].to_vec()
}

/// Statistics of a metric over the turns that count: not cancelled, and warm as soon as one is.
pub(super) fn statistics(records: &[Arc<TurnRecord>], metric: Metric) -> Option<Stats> {
    let of = |only_warm: bool| {
        let counts = |record: &&Arc<TurnRecord>| !record.cancelled && (!only_warm || record.is_warm());
        let values: Vec<f64> = records.iter().filter(counts).filter_map(|r| r.duration_ms(metric)).collect();
        Stats::of(&values)
    };
    of(true).or_else(|| of(false))
}

/// The places of the first and the last turn that the chart has room for: always [`LAST`], so that one bar is not as wide
/// as twenty.
pub(super) fn slots(turns: &[(usize, &TurnRecord)]) -> (f64, f64) {
    let last = turns.last().map_or(1, |(place, _)| *place).max(LAST);
    let first = turns.first().map_or(1, |(place, _)| *place).min(last + 1 - LAST);
    (first as f64, last as f64)
}

/// A round distance between the lines of a scale from 0 to `highest`, with two to four of them.
pub(super) fn round_step(highest: f64) -> f64 {
    let rough = (highest / 3.0).max(1.0);
    let power = 10.0_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough)
}

/// What belongs only to turns that are spoken.
fn is_of_speech(metric: Metric) -> bool {
    use Metric::{Capture, Encoder, EndOfTurnWait, TextDecoder, TranscriptWait, Vad, VoiceToVoice};
    matches!(metric, Capture | Vad | EndOfTurnWait | Encoder | TextDecoder | TranscriptWait | VoiceToVoice)
}

/// What to show for a metric: in a typed turn, nothing of speech runs.
pub(super) fn reading(conversation: &Snapshot, metric: Metric) -> Reading {
    let reading = conversation.reading(metric);
    // Speech is waited for since its last sound, and that wait has ended when the words are worked on.
    let is_spoken =
        matches!(conversation.reading(Metric::EndOfTurnWait), Reading::Live { .. } | Reading::Final { .. });
    if !matches!(reading, Reading::Live { .. }) || !is_of_speech(metric) || is_spoken {
        return reading;
    }
    let earlier = conversation.records.iter().rev().filter(|record| !record.cancelled);
    earlier
        .filter_map(|record| Some(Reading::Stale { ms: record.duration_ms(metric)?, turn: record.id }))
        .next()
        .unwrap_or(Reading::Unknown)
}

#[cfg(test)]
pub(in crate::window) mod tests {
    use std::collections::BTreeMap;

    use repartee_engine::latency::Span;

    use super::*;

    /// A turn whose stages follow each other, `ms` from voice to voice.
    pub(in crate::window) fn record(id: u64, ms: f64) -> Arc<TurnRecord> {
        let stages: Vec<Metric> = Metric::stages().collect();
        let step = ms / stages.len() as f64;
        let span = |i: usize| Span { start_ms: step * i as f64, end_ms: step * (i + 1) as f64 };
        Arc::new(TurnRecord {
            id,
            cancelled: false,
            cold: Default::default(),
            transcript: "What is the capital of France?".into(),
            reply: "The capital of France is Paris.".into(),
            stages: stages
                .iter()
                .enumerate()
                .map(|(i, metric)| (*metric, span(i)))
                .collect::<BTreeMap<_, _>>(),
            voice_to_voice_ms: Some(ms),
        })
    }

    #[test]
    fn bars_never_run_backwards_and_fit_their_extent() {
        let mut turn = TurnRecord::clone(&record(1, 1100.0));
        turn.stages.insert(Metric::TranscriptWait, Span { start_ms: 900.0, end_ms: 400.0 });
        let bars = waterfall(&turn);
        assert_eq!(bars.len(), 11);
        let (first, last) = extent(&bars);
        assert!(
            bars.iter().all(|bar| first <= bar.start_ms && bar.start_ms <= bar.end_ms && bar.end_ms <= last)
        );
        assert_eq!((first, last), (0.0, 1100.0));
        assert_eq!(extent(&[]), (0.0, 1.0));
    }

    #[test]
    fn the_chart_holds_the_last_twenty_that_were_measured() {
        let mut records: Vec<_> = (0..30).map(|i| record(i, 500.0 + i as f64)).collect();
        let mut typed = TurnRecord::clone(&records[29]);
        typed.voice_to_voice_ms = None;
        records.push(Arc::new(typed));
        let last = last_turns(&records);
        assert_eq!((last.len(), last[0].0, last[19].0), (20, 11, 30));
        assert!(last_turns(&[]).is_empty());
    }

    #[test]
    fn cancelled_and_cold_turns_do_not_count_beside_warm_ones() {
        let mut cold = TurnRecord::clone(&record(1, 5000.0));
        cold.cold.insert(Metric::Encoder);
        let cold = Arc::new(cold);
        let mut cancelled = TurnRecord::clone(&record(2, 9000.0));
        cancelled.cancelled = true;
        let all = [cold.clone(), Arc::new(cancelled), record(3, 700.0), record(4, 900.0)];
        let stats = statistics(&all, Metric::VoiceToVoice).expect("two warm turns");
        assert_eq!((stats.count, stats.median_ms), (2, 800.0));
        assert_eq!(statistics(&[cold], Metric::VoiceToVoice).map(|s| s.count), Some(1));
        assert_eq!(statistics(&[], Metric::Vad), None);
    }

    #[test]
    fn the_chart_has_twenty_places_and_round_lines() {
        let places = |of: std::ops::RangeInclusive<usize>| {
            let turn = record(1, 700.0);
            let turns: Vec<_> = of.map(|place| (place, &*turn)).collect();
            slots(&turns)
        };
        assert_eq!(places(1..=1), (1.0, 20.0));
        assert_eq!(places(3..=7), (1.0, 20.0));
        assert_eq!(places(11..=30), (11.0, 30.0));
        // Turns that were typed between them.
        assert_eq!(places(30..=31), (12.0, 31.0));
        for highest in [1.0, 12.0, 99.0, 412.0, 768.0, 1_500.0, 23_456.0] {
            let lines = (highest / round_step(highest)).ceil();
            assert!((1.0..=4.0).contains(&lines), "{highest}: {lines}");
        }
        assert_eq!((round_step(768.0), round_step(0.0)), (500.0, 1.0));
    }

    #[test]
    fn nothing_of_speech_runs_in_a_typed_turn() {
        let mut typed = Snapshot::default();
        typed.readings[Metric::TranscriptWait as usize] = Reading::Live { ms: 900.0 };
        typed.readings[Metric::FirstToken as usize] = Reading::Live { ms: 90.0 };
        assert_eq!(reading(&typed, Metric::TranscriptWait), Reading::Unknown);
        assert_eq!(reading(&typed, Metric::FirstToken), Reading::Live { ms: 90.0 });
        // After spoken ones, the wait of the last of them stands there, in grey.
        typed.readings[Metric::EndOfTurnWait as usize] = Reading::Stale { ms: 500.0, turn: 3 };
        typed.records = Arc::new(vec![record(2, 1100.0), record(3, 2200.0)]);
        assert_eq!(reading(&typed, Metric::TranscriptWait), Reading::Stale { ms: 200.0, turn: 3 });
        let mut spoken = typed;
        spoken.readings[Metric::EndOfTurnWait as usize] = Reading::Final { ms: 500.0 };
        assert_eq!(reading(&spoken, Metric::TranscriptWait), Reading::Live { ms: 900.0 });
    }
}
