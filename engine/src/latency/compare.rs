//! Two reports side by side, with a hint whether a difference is more than noise.

use super::{Metric, Report, percentile, rank_test};

/// What the difference of a metric is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Fewer than five values on a side: the rank test could never tell.
    TooFew,
    /// Equal runs would differ as much in more than 1 of 100 cases.
    Noise,
    /// The second report is faster.
    Faster,
    /// The second report is slower.
    Slower,
}

impl Verdict {
    /// A word for tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::TooFew => "too few",
            Self::Noise => "noise",
            Self::Faster => "faster",
            Self::Slower => "slower",
        }
    }
}

/// One metric in both reports; warm turns that were not cancelled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparisonRow {
    /// Which metric.
    pub metric: Metric,
    /// Values in the first and the second report.
    pub counts: (usize, usize),
    /// Median of the first report, in milliseconds.
    pub a_ms: f64,
    /// Median of the second report, in milliseconds.
    pub b_ms: f64,
    /// Two-sided p-value of the rank test.
    pub p: f64,
    /// What that means.
    pub verdict: Verdict,
}

impl ComparisonRow {
    /// Second minus first median, in milliseconds.
    pub fn difference_ms(&self) -> f64 {
        self.b_ms - self.a_ms
    }

    /// Second over first median; `None` if the first is 0.
    pub fn ratio(&self) -> Option<f64> {
        (self.a_ms != 0.0).then(|| self.b_ms / self.a_ms)
    }
}

/// Two reports compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Metrics that both reports measured, in the order of a turn.
    pub rows: Vec<ComparisonRow>,
    /// Metrics that only one of them measured.
    pub unmatched: Vec<Metric>,
    /// The machines differ, so that a difference need not be the program's.
    pub other_machine: bool,
}

/// Level below which a difference counts; a table has twelve rows, so 0.05 would cry wolf in half of
/// all tables of equal runs.
const SIGNIFICANT_P: f64 = 0.01;
const MIN_VALUES: usize = 5;

/// Compares report `b` with report `a`, metric by metric, by the medians of warm turns.
pub fn compare(a: &Report, b: &Report) -> Comparison {
    let mut rows = Vec::new();
    let mut unmatched = Vec::new();
    for metric in Metric::ALL {
        let (mut values_a, mut values_b) = (a.warm_values(metric), b.warm_values(metric));
        values_a.sort_by(f64::total_cmp);
        values_b.sort_by(f64::total_cmp);
        let counts = (values_a.len(), values_b.len());
        let (Some(a_ms), Some(b_ms)) = (percentile(&values_a, 50.0), percentile(&values_b, 50.0)) else {
            if counts != (0, 0) {
                unmatched.push(metric);
            }
            continue;
        };
        let p = rank_test(&values_a, &values_b);
        let verdict = if counts.0.min(counts.1) < MIN_VALUES {
            Verdict::TooFew
        } else if p >= SIGNIFICANT_P || a_ms == b_ms {
            Verdict::Noise
        } else if b_ms < a_ms {
            Verdict::Faster
        } else {
            Verdict::Slower
        };
        rows.push(ComparisonRow { metric, counts, a_ms, b_ms, p, verdict });
    }
    Comparison { rows, unmatched, other_machine: a.machine != b.machine }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report_with;
    use super::*;

    /// Twenty warm turns around `base_ms`, spread by 10 ms, plus cold and cancelled ones far away.
    fn report(base_ms: f64, turns: usize) -> Report {
        report_with((0..turns).map(|i| base_ms + (i * 7 % 11) as f64), &[base_ms * 50.0])
    }

    fn verdict(a: &Report, b: &Report) -> (Verdict, f64) {
        let row = compare(a, b).rows.into_iter().find(|row| row.metric == Metric::VoiceToVoice).unwrap();
        (row.verdict, row.difference_ms())
    }

    #[test]
    fn differences_are_told_from_noise() {
        let base = report(700.0, 20);
        assert_eq!(verdict(&base, &report(700.0, 20)), (Verdict::Noise, 0.0));
        assert_eq!(verdict(&base, &report(700.5, 20)).0, Verdict::Noise);
        assert_eq!(verdict(&base, &report(720.0, 20)), (Verdict::Slower, 20.0));
        assert_eq!(verdict(&base, &report(650.0, 20)), (Verdict::Faster, -50.0));
        assert_eq!(verdict(&base, &report(650.0, 4)).0, Verdict::TooFew);
    }

    #[test]
    fn what_only_one_report_has_is_named() {
        let base = report(700.0, 6);
        let mut silent = base.clone();
        for turn in &mut silent.turns {
            turn.voice_to_voice_ms = None;
        }
        let comparison = compare(&base, &silent);
        assert_eq!(comparison.unmatched, [Metric::VoiceToVoice]);
        assert!(!comparison.other_machine);
        silent.machine.cores += 1;
        assert!(compare(&base, &silent).other_machine);
    }

    #[test]
    fn a_ratio_over_nothing_is_none() {
        let row = ComparisonRow {
            metric: Metric::TranscriptWait,
            counts: (9, 9),
            a_ms: 0.0,
            b_ms: 3.0,
            p: 0.001,
            verdict: Verdict::Slower,
        };
        assert_eq!((row.difference_ms(), row.ratio()), (3.0, None));
    }
}
