//! Percentiles and the rank test behind "is this difference noise?".

use serde::{Deserialize, Serialize};

/// Count and percentiles of some durations, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// How many values.
    pub count: usize,
    /// 50th percentile.
    pub median_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile; below 100 values it leans on the largest one.
    pub p99_ms: f64,
}

impl Stats {
    /// Statistics of `values`; `None` if there are none or one is no number.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            count: sorted.len(),
            median_ms: percentile(&sorted, 50.0)?,
            p95_ms: percentile(&sorted, 95.0)?,
            p99_ms: percentile(&sorted, 99.0)?,
        })
    }
}

/// The `percent`th percentile of values sorted in ascending order, by linear interpolation between
/// the two closest ranks: position (n - 1) * percent / 100, counted from 0 (type 7 of Hyndman and
/// Fan 1996, the default of NumPy and R).
///
/// `None` if there are no values, one is no number, or `percent` is outside 0 to 100.
pub fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    if sorted.is_empty() || !(0.0..=100.0).contains(&percent) || sorted.iter().any(|v| v.is_nan()) {
        return None;
    }
    let position = (sorted.len() - 1) as f64 * percent / 100.0;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    // Written so that equal neighbours, infinite ones too, give exactly themselves.
    Some(if below == above { below } else { below + (above - below) * position.fract() })
}

/// Two-sided p-value of the Mann-Whitney rank test: how often two samples of one distribution would
/// differ in rank at least as much as `a` and `b` do. 1 if either is empty.
///
/// Ranks, since latencies are skewed and one outlier must not decide. Exact where there are no ties and
/// at most 20 values a side, else by the normal approximation with corrections for ties and continuity.
pub fn rank_test(a: &[f64], b: &[f64]) -> f64 {
    let (na, nb) = (a.len(), b.len());
    if na == 0 || nb == 0 {
        return 1.0;
    }
    // U: pairs in which `a` is larger; ties count half.
    let mut pooled: Vec<(f64, bool)> =
        a.iter().map(|v| (*v, true)).chain(b.iter().map(|v| (*v, false))).collect();
    pooled.sort_by(|x, y| x.0.total_cmp(&y.0));
    let (mut rank_sum_a, mut tie_term, mut start) = (0.0, 0.0, 0);
    while start < pooled.len() {
        let len = pooled[start..].iter().take_while(|v| v.0 == pooled[start].0).count().max(1);
        let rank = start as f64 + (len + 1) as f64 / 2.0;
        let from_a = pooled[start..start + len].iter().filter(|v| v.1).count();
        rank_sum_a += rank * from_a as f64;
        tie_term += (len as f64).powi(3) - len as f64;
        start += len;
    }
    let (fa, fb) = (na as f64, nb as f64);
    let u = rank_sum_a - fa * (fa + 1.0) / 2.0;
    let u = u.min(fa * fb - u);
    if tie_term == 0.0 && na <= 20 && nb <= 20 {
        return exact_p(na, nb, u as usize);
    }
    let n = fa + fb;
    let variance = fa * fb / 12.0 * ((n + 1.0) - tie_term / (n * (n - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((fa * fb / 2.0 - u - 0.5).max(0.0)) / variance.sqrt();
    (2.0 * normal_tail(z)).min(1.0)
}

/// P(U <= u) * 2 over all equally likely orders of `na` and `nb` values.
fn exact_p(na: usize, nb: usize, u: usize) -> f64 {
    // counts[i][s]: ways to choose i of the values seen so far with rank surplus s.
    let max = na * nb;
    let mut counts = vec![vec![0.0f64; max + 1]; na + 1];
    counts[0][0] = 1.0;
    for value in 0..na + nb {
        for chosen in (1..=na.min(value + 1)).rev() {
            // Chosen as the `chosen`th smallest of `a`, it lies above value - (chosen - 1) of `b`.
            let surplus = value + 1 - chosen;
            if surplus > nb {
                continue;
            }
            for sum in (surplus..=max).rev() {
                counts[chosen][sum] += counts[chosen - 1][sum - surplus];
            }
        }
    }
    let total: f64 = counts[na].iter().sum();
    (2.0 * counts[na][..=u.min(max)].iter().sum::<f64>() / total).min(1.0)
}

/// P(Z > z) of the standard normal for z >= 0: Abramowitz and Stegun 7.1.26, error below 1.5e-7.
fn normal_tail(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = ((((1.061_405_429 * t - 1.453_152_027) * t + 1.421_413_741) * t - 0.284_496_736) * t
        + 0.254_829_592)
        * t;
    0.5 * poly * (-x * x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_interpolate_between_ranks() {
        // Values of numpy.percentile.
        let sorted = [1.0, 2.0, 4.0, 8.0];
        for (percent, expected) in [(0.0, 1.0), (50.0, 3.0), (95.0, 7.4), (99.0, 7.88), (100.0, 8.0)] {
            assert!((percentile(&sorted, percent).unwrap() - expected).abs() < 1e-12);
        }
        assert_eq!(percentile(&[5.0], 99.0), Some(5.0));
        assert_eq!(percentile(&[], 50.0), None);
        assert_eq!(percentile(&[1.0], 101.0), None);
        assert_eq!(percentile(&[1.0, f64::NAN], 50.0), None);
        let stats = Stats::of(&[8.0, 1.0, 4.0, 2.0]).unwrap();
        assert_eq!((stats.count, stats.median_ms), (4, 3.0));
    }

    #[test]
    fn rank_test_agrees_with_published_values() {
        // scipy.stats.mannwhitneyu(..., method="exact").
        let a = [19.0, 22.0, 16.0, 29.0, 24.0];
        let b = [20.0, 11.0, 17.0, 12.0];
        assert!((rank_test(&a, &b) - 0.111_111_11).abs() < 1e-6);
        assert_eq!(rank_test(&a, &b), rank_test(&b, &a));
        // Fully apart, five a side: 2 of C(10, 5).
        let high: Vec<f64> = a.iter().map(|v| v + 100.0).collect();
        assert!((rank_test(&a, &high) - 2.0 / 252.0).abs() < 1e-12);
        // Ties, normal approximation: mannwhitneyu([1,2,2,3,4],[2,4,5,6,6]) asymptotic.
        let p = rank_test(&[1.0, 2.0, 2.0, 3.0, 4.0], &[2.0, 4.0, 5.0, 6.0, 6.0]);
        assert!((p - 0.070_484_63).abs() < 1e-6, "{p}");
        // Equal samples are noise.
        assert_eq!(rank_test(&[1.0; 8], &[1.0; 8]), 1.0);
        assert_eq!(rank_test(&[], &[1.0]), 1.0);
    }

    #[test]
    fn exact_counts_stay_right_for_twenty_a_side() {
        let a: Vec<f64> = (0..20).map(f64::from).collect();
        let b: Vec<f64> = (0..20).map(|i| f64::from(i) + 5.5).collect();
        assert!((rank_test(&a, &b) - 0.009_483_607_191_205).abs() < 1e-12);
        // One more value takes the approximation; scipy's for 20 a side is 0.01058.
        let mut longer = b.clone();
        longer.push(15.25);
        assert!((rank_test(&a, &longer) - 0.0105).abs() < 0.002);
    }
}
