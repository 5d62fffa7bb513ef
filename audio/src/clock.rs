//! What a stream's sample count says when it is held against the clock.
//!
//! Sound systems lose samples without telling, and some devices run at another rate than they say
//! (a headset that falls back to telephone quality still calls itself 48 kHz). Both show in the count
//! alone: [`LossMeter`] finds losses of a few milliseconds, [`RateMeter`] another rate. Both are
//! plain arithmetic without allocation, so that the device's callback feeds them where the time of
//! arrival is exact; a reader that looks from time to time would add its own delay to it.
//!
//! ```
//! use repartee_audio::clock::RateMeter;
//! let mut meter = RateMeter::new(48_000);
//! let found = (0..400).find_map(|block| meter.observe(block * 10_000_000, block * 240));
//! assert_eq!(found, Some(24_000));
//! ```

/// Finds lost samples by comparing counts with a clock.
///
/// Arrival is late by a jitter that is never negative; the earliest arrival in a window of a second shows
/// how far the stream has really come. Between two windows that moves by drift (a few hundred millionths), by a loss
/// at once and for good.
#[derive(Debug, Clone)]
pub struct LossMeter {
    rate_hz: u32,
    /// Of the window: where it began, and the smallest lag in it.
    window: Option<(u64, f64)>,
    /// Smallest lag of the window before, in samples.
    baseline: Option<f64>,
    /// The first window is over; in it, sound servers fill their buffers, and samples come early.
    has_settled: bool,
    /// By how much the window before was later than the baseline, if that may be a loss.
    suspected: Option<f64>,
    lost_samples: u64,
}

const WINDOW_NS: u64 = 1_000_000_000;
/// Smallest loss that is told. No drift reaches it in two seconds; sound servers that arrange their timers
/// anew deliver 3 ms later from then on.
const MIN_LOSS_MS: f64 = 4.5;
/// Part of a suspected loss that has to be there a window later; drift may take some of it.
const STAYS: f64 = 0.75;

impl LossMeter {
    /// A meter for a stream of `rate_hz`.
    pub fn new(rate_hz: u32) -> Self {
        Self {
            rate_hz: rate_hz.max(1),
            window: None,
            baseline: None,
            has_settled: false,
            suspected: None,
            lost_samples: 0,
        }
    }

    /// `taken` samples have come until `now_ns` on a monotonic clock. Call it at each delivery, or often.
    /// Gives the samples found lost just now, usually 0.
    pub fn observe(&mut self, now_ns: u64, taken: u64) -> u64 {
        let expected = now_ns as f64 * 1e-9 * f64::from(self.rate_hz);
        let lag = expected - taken as f64;
        let Some((since_ns, smallest)) = &mut self.window else {
            self.window = Some((now_ns, lag));
            return 0;
        };
        *smallest = smallest.min(lag);
        if now_ns.saturating_sub(*since_ns) < WINDOW_NS {
            return 0;
        }
        let smallest = *smallest;
        self.window = None;
        if !std::mem::replace(&mut self.has_settled, true) {
            return 0;
        }
        let threshold = MIN_LOSS_MS * f64::from(self.rate_hz) / 1000.0;
        let baseline = self.baseline.unwrap_or(smallest);
        let moved = smallest - baseline;
        let lost = match self.suspected {
            // It has stayed: a second in which everything came late is no loss.
            Some(before) if moved >= STAYS * before => before,
            _ => 0.0,
        };
        // What more there is, the next window has to confirm.
        let rest = moved - lost;
        (self.suspected, self.baseline) =
            if rest >= threshold { (Some(rest), Some(baseline + lost)) } else { (None, Some(smallest)) };
        self.lost_samples += lost.round() as u64;
        lost.round() as u64
    }

    /// All samples found lost so far.
    pub fn lost_samples(&self) -> u64 {
        self.lost_samples
    }

    /// The stream was rebuilt: its count starts anew, what was lost before stays counted.
    pub fn restart(&mut self) {
        self.window = None;
        self.baseline = None;
        self.has_settled = false;
        self.suspected = None;
    }
}

/// Rates that devices have. A measured rate is taken for one of these or for nothing: a device that loses
/// a tenth of its samples has no new rate.
const DEVICE_RATES_HZ: [u32; 15] = [
    8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000, 176_400,
    192_000, 384_000,
];
/// How far a measured rate may be from the rate it is taken for. Arrivals jitter by 20 ms in a window of a
/// second; the nearest two rates are 8 % apart.
const RATE_TOLERANCE: f64 = 0.03;
/// Seconds that have to agree on another rate, and how far their mean may be from it: arrival jitters by 25 ms, however
/// long the count. One in three losses of a busy machine would look like a rate in a second alone.
const AGREEING_WINDOWS: u64 = 3;
const JITTER_NS: f64 = 25e6;
/// A machine that is too busy delivers in fits and starts. A second in which one wait was longer than this, and than so many
/// usual ones, says nothing about the rate.
const UNEVEN_NS: u64 = 60_000_000;
const UNEVEN_WAITS: u64 = 3;
/// Streams begin with a burst that fills or drains buffers.
const SETTLE_NS: u64 = 250_000_000;

/// Finds that a stream runs at another rate than its device says.
#[derive(Debug, Clone)]
pub struct RateMeter {
    rate_hz: u32,
    started_ns: Option<u64>,
    window: Option<Window>,
    candidate: Option<Candidate>,
}

/// A second that is being counted.
#[derive(Debug, Clone, Copy)]
struct Window {
    since_ns: u64,
    since: u64,
    /// The last observation, how many there were, and the longest wait between two.
    last_ns: u64,
    observations: u64,
    longest_ns: u64,
}

/// Another rate that seconds without a break have shown.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    rate_hz: u32,
    since_ns: u64,
    since: u64,
    windows: u64,
}

/// Samples in a second.
fn per_second(samples: u64, elapsed_ns: u64) -> f64 {
    samples as f64 * 1e9 / elapsed_ns.max(1) as f64
}

impl Window {
    fn new(now_ns: u64, count: u64) -> Self {
        Self { since_ns: now_ns, since: count, last_ns: now_ns, observations: 0, longest_ns: 0 }
    }

    fn observe(&mut self, now_ns: u64) {
        self.longest_ns = self.longest_ns.max(now_ns.saturating_sub(self.last_ns));
        self.last_ns = now_ns;
        self.observations += 1;
    }

    fn is_even(&self) -> bool {
        let usual_ns = self.last_ns.saturating_sub(self.since_ns) / self.observations.max(1);
        self.longest_ns <= UNEVEN_NS.max(UNEVEN_WAITS * usual_ns)
    }
}

impl RateMeter {
    /// A meter for a stream that is said to run at `rate_hz`.
    pub fn new(rate_hz: u32) -> Self {
        Self { rate_hz, started_ns: None, window: None, candidate: None }
    }

    /// `count` samples have come or gone until `now_ns` on a monotonic clock; call it at each delivery. Gives the real rate
    /// when three seconds in which deliveries came evenly agree that it is another one than was thought, once.
    pub fn observe(&mut self, now_ns: u64, count: u64) -> Option<u32> {
        let started_ns = *self.started_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(started_ns) < SETTLE_NS {
            return None;
        }
        let window = self.window.get_or_insert(Window::new(now_ns, count));
        window.observe(now_ns);
        let window = *window;
        let elapsed_ns = now_ns.saturating_sub(window.since_ns);
        if elapsed_ns < WINDOW_NS {
            return None;
        }
        self.window = Some(Window::new(now_ns, count));
        let measured_hz = per_second(count.saturating_sub(window.since), elapsed_ns);
        let near = |rate_hz: u32| (measured_hz / f64::from(rate_hz) - 1.0).abs() <= RATE_TOLERANCE;
        let other = if near(self.rate_hz) { None } else { DEVICE_RATES_HZ.into_iter().find(|hz| near(*hz)) };
        let Some(rate_hz) = other.filter(|_| window.is_even()) else {
            self.candidate = None;
            return None;
        };
        let fresh = Candidate { rate_hz, since_ns: window.since_ns, since: window.since, windows: 0 };
        let mut candidate = self.candidate.filter(|known| known.rate_hz == rate_hz).unwrap_or(fresh);
        candidate.windows += 1;
        self.candidate = Some(candidate);
        let elapsed_ns = now_ns.saturating_sub(candidate.since_ns);
        let mean_hz = per_second(count.saturating_sub(candidate.since), elapsed_ns);
        let is_near = (mean_hz / f64::from(rate_hz) - 1.0).abs() <= JITTER_NS / elapsed_ns as f64;
        if candidate.windows < AGREEING_WINDOWS || !is_near {
            return None;
        }
        self.candidate = None;
        self.rate_hz = rate_hz;
        Some(rate_hz)
    }

    /// Whether the last second spoke for another rate, which the next ones have to confirm.
    pub fn is_in_doubt(&self) -> bool {
        self.candidate.is_some()
    }

    /// The rate that is thought right, in Hz.
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of 10 ms blocks whose clock runs fast by `drift`, delivered up to 9 ms late.
    fn lost_of(drift: f64, losses: &[(u64, u64)], jitter_ms: u64) -> u64 {
        let mut meter = LossMeter::new(48_000);
        let (mut taken, mut noise) = (0u64, 1u64);
        for block in 1..6_000u64 {
            let lost = losses.iter().filter(|(at, _)| *at == block).map(|(_, samples)| samples).sum::<u64>();
            taken += 480 - lost.min(480);
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let late_ns = (noise >> 33) % (jitter_ms * 1_000_000 + 1);
            let now_ns = (block as f64 * 10_000_000.0 / (1.0 + drift)) as u64 + late_ns;
            meter.observe(now_ns, taken);
        }
        meter.lost_samples()
    }

    #[test]
    fn losses_are_found_and_jitter_and_drift_are_none() {
        for drift in [0.0, 200e-6, -200e-6] {
            assert_eq!(lost_of(drift, &[], 9), 0, "{drift}");
            let lost = lost_of(drift, &[(1_000, 256), (3_333, 480), (5_000, 240)], 9);
            // Each of the three is measured to a fraction of the jitter.
            assert!(lost.abs_diff(976) <= 3 * 20, "{drift}: {lost}");
        }
        assert_eq!(lost_of(0.0, &[(1_000, 300)], 0), 300);
    }

    #[test]
    fn a_rebuilt_stream_starts_anew() {
        let mut meter = LossMeter::new(48_000);
        for second in 0..10u64 {
            meter.observe(second * 500_000_000, second * 24_000);
        }
        meter.restart();
        for second in 0..10u64 {
            assert_eq!(meter.observe((100 + second) * 500_000_000, second * 24_000), 0);
        }
    }

    /// What a meter for `said_hz` finds in a stream of `real_hz`, in blocks of 20 ms up to 15 ms late.
    fn found(said_hz: u32, real_hz: u32, kept_percent: u64) -> Vec<u32> {
        let mut meter = RateMeter::new(said_hz);
        let (mut count, mut noise, mut found) = (0, 1u64, Vec::new());
        for block in 0..1_000u64 {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let now_ns = block * 20_000_000 + (noise >> 33) % 15_000_000;
            found.extend(meter.observe(now_ns, count));
            count += u64::from(real_hz) / 50 * kept_percent / 100;
        }
        assert_eq!(meter.rate_hz(), found.last().copied().unwrap_or(said_hz));
        found
    }

    #[test]
    fn b33_another_rate_is_found_once_and_the_right_one_never() {
        for real_hz in [8_000, 16_000, 24_000, 44_100, 48_000, 96_000, 192_000] {
            assert_eq!(found(real_hz, real_hz, 100), []);
            for said_hz in [16_000, 44_100, 48_000] {
                if said_hz != real_hz {
                    assert_eq!(found(said_hz, real_hz, 100), [real_hz], "said {said_hz}");
                }
            }
        }
    }

    #[test]
    fn losing_much_is_not_another_rate() {
        for kept_percent in [95, 85, 77, 60, 10, 0] {
            assert_eq!(found(48_000, 48_000, kept_percent), [], "{kept_percent} %");
        }
    }

    /// A machine so busy that a twelfth of all samples is lost, as many as 48 kHz has more than 44.1, but in fits and starts.
    #[test]
    fn losses_that_add_up_to_another_rate_are_none() {
        for stall_blocks in [8, 16, 32] {
            let mut meter = RateMeter::new(48_000);
            let (mut count, mut noise) = (0, 1u64);
            for block in 0..6_000u64 {
                // What falls into a stall is lost, and comes never.
                if block % (stall_blocks * 12) < stall_blocks {
                    continue;
                }
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let now_ns = block * 10_000_000 + (noise >> 33) % 9_000_000;
                count += 480;
                assert_eq!(
                    meter.observe(now_ns, count),
                    None,
                    "{stall_blocks} blocks at a time, block {block}"
                );
            }
        }
    }

    #[test]
    fn a_burst_at_the_start_and_one_bad_second_change_nothing() {
        let mut meter = RateMeter::new(48_000);
        let mut count = 0;
        for block in 0..1_000u64 {
            count += match block {
                0..10 => 4_800,
                300..400 => 240,
                _ => 480,
            };
            assert_eq!(meter.observe(block * 10_000_000, count), None, "{block}");
        }
    }
}
