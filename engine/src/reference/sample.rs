//! Drawing a token. Every backend draws the same one from the same logits, so this is also the CPU's kernel.

use super::{Context, Data};
use crate::graph::Value;
use crate::graph::step::{StepRow, random_bits};

pub(super) fn sample(c: &mut Context<'_>, logits: Value, bias: Option<Value>) -> Data {
    let cols = c.cols(logits);
    let bias = bias.map(|b| c.f(b).to_vec());
    let logits = c.f(logits).to_vec();
    let mut work = Vec::new();
    for (step, row) in c.steps.iter_mut().zip(logits.chunks_exact(cols)) {
        draw(step, row, bias.as_deref(), &mut work);
    }
    Data::I(c.steps.iter().map(|s| s.token).collect())
}

/// Draws one token for a live row and writes it, its log-probability, the history and `done` to the row.
///
/// `work` is scratch that keeps its memory between calls. A logit that is not a number never wins; when no
/// finite logit is left, token 0 is drawn.
pub fn draw(step: &mut StepRow, logits: &[f32], bias: Option<&[f32]>, work: &mut Vec<(f32, u32)>) {
    if !step.is_live() {
        return;
    }
    let biased = |i: usize| {
        let x = logits[i] + bias.map_or(0.0, |b| b[i]);
        if x.is_nan() { f32::NEG_INFINITY } else { x }
    };
    let mut top = f32::NEG_INFINITY;
    for i in 0..logits.len() {
        top = top.max(biased(i));
    }
    let mass: f64 = if top.is_finite() {
        (0..logits.len()).map(|i| f64::from((biased(i) - top).exp())).sum()
    } else {
        0.0
    };
    let token = if step.temperature > 0.0 {
        choose(step, &biased, logits.len(), work)
    } else {
        greedy(step, &biased, logits.len())
    };
    step.logprob =
        if mass > 0.0 { (f64::from(biased(token) - top) - mass.ln()) as f32 } else { f32::NEG_INFINITY };
    step.token = token as i32;
    step.offset = step.offset.wrapping_add(1);
    step.remember(token as i32);
    if step.is_stop(token as i32) {
        step.done = 1;
    }
}

fn penalized(step: &StepRow, token: usize, x: f32) -> f32 {
    let seen = step.repetition_penalty != 1.0
        && step.recent(step.penalty_window as usize).any(|t| t == token as i32);
    match (seen, x > 0.0) {
        (false, _) => x,
        (true, true) => x / step.repetition_penalty,
        (true, false) => x * step.repetition_penalty,
    }
}

fn greedy(step: &StepRow, biased: &impl Fn(usize) -> f32, n: usize) -> usize {
    // Only tokens of the window can change rank, so the others are compared as they are.
    let (mut best, mut best_x) = (0, f32::NEG_INFINITY);
    for i in 0..n {
        let raw = biased(i);
        if raw > best_x || step.repetition_penalty < 1.0 {
            let x = penalized(step, i, raw);
            if x > best_x {
                (best, best_x) = (i, x);
            }
        }
    }
    best
}

fn choose(step: &StepRow, biased: &impl Fn(usize) -> f32, n: usize, work: &mut Vec<(f32, u32)>) -> usize {
    work.clear();
    work.extend((0..n).map(|i| (penalized(step, i, biased(i)) / step.temperature, i as u32)));
    let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    let k = step.top_k as usize;
    if k > 0 && k < work.len() {
        work.select_nth_unstable_by(k - 1, order);
        work.truncate(k);
    }
    work.sort_unstable_by(order);
    let Some(top) = work.first().map(|w| w.0).filter(|t| t.is_finite()) else { return 0 };
    let mut total = 0;
    for w in work.iter_mut() {
        // A whole number of 24 significant bits, so it stays one in an f32.
        w.0 = ((w.0 - top).exp() * ONE).floor();
        total += w.0 as u64;
    }
    // The smallest set that reaches top-p, then min-p relative to the most likely token.
    let mut kept = work.len();
    if step.top_p < 1.0 {
        kept = reaching(work, share(total, (step.top_p * 4_294_967_296.0) as u32).max(1));
    }
    while kept > 1 && work[kept - 1].0 < step.min_p * ONE {
        kept -= 1;
    }
    let mass = work[..kept].iter().map(|w| w.0 as u64).sum();
    let drawn = share(mass, random_bits(step.seed_low, step.seed_high, step.offset));
    work[reaching(&work[..kept], drawn + 1) - 1].1 as usize
}

/// Weight of the most likely token; others have `floor(exp(x - top) * ONE)`.
const ONE: f32 = 2_147_483_648.0;

/// `floor(total * fraction / 2^32)`.
fn share(total: u64, fraction: u32) -> u64 {
    ((u128::from(total) * u128::from(fraction)) >> 32) as u64
}

/// How many of the first weights together reach `goal`, which is not above their sum.
fn reaching(weights: &[(f32, u32)], goal: u64) -> usize {
    let mut sum = 0;
    let reached = weights.iter().position(|w| {
        sum += w.0 as u64;
        sum >= goal
    });
    reached.map_or(weights.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(temperature: f32) -> StepRow {
        StepRow { temperature, seed_low: 7, ..StepRow::default() }
    }

    #[test]
    fn greedy_takes_the_first_of_equals_and_skips_nan() {
        let mut r = row(0.0);
        draw(&mut r, &[1.0, f32::NAN, 3.0, 3.0], None, &mut Vec::new());
        assert_eq!((r.token, r.offset, r.history_len), (2, 1, 1));
        let expected = -(2.0_f64 + (-2.0_f64).exp()).ln();
        assert!((f64::from(r.logprob) - expected).abs() < 1e-6);
    }

    #[test]
    fn penalty_and_bias_move_the_choice() {
        let mut r = row(0.0);
        r.remember(2);
        r.repetition_penalty = 2.0;
        draw(&mut r, &[1.0, 2.0, 3.0], None, &mut Vec::new());
        assert_eq!(r.token, 1);
        let mut r = row(0.0);
        draw(&mut r, &[1.0, 2.0, 3.0], Some(&[0.0, 0.0, f32::NEG_INFINITY]), &mut Vec::new());
        assert_eq!(r.token, 1);
    }

    #[test]
    fn draws_follow_the_distribution_and_the_filters() {
        let logits = [0.0_f32, 2.0_f32.ln(), 5.0_f32.ln()];
        let mut counts = [0; 3];
        let mut r = row(1.0);
        for _ in 0..8000 {
            draw(&mut r, &logits, None, &mut Vec::new());
            counts[r.token as usize] += 1;
        }
        for (count, share) in counts.iter().zip([0.125, 0.25, 0.625]) {
            assert!((f64::from(*count) / 8000.0 - share).abs() < 0.02, "{counts:?}");
        }
        for settings in [
            StepRow { top_k: 1, ..row(1.0) },
            StepRow { top_p: 0.6, ..row(1.0) },
            StepRow { min_p: 0.5, ..row(1.0) },
        ] {
            let mut r = settings;
            for _ in 0..50 {
                draw(&mut r, &logits, None, &mut Vec::new());
                assert_eq!(r.token, 2);
            }
        }
    }

    #[test]
    fn a_stop_token_ends_the_row_for_good() {
        let mut r = row(0.0);
        r.set_stops(&[1]);
        draw(&mut r, &[0.0, 1.0], None, &mut Vec::new());
        assert_eq!((r.token, r.done), (1, 1));
        draw(&mut r, &[1.0, 0.0], None, &mut Vec::new());
        assert_eq!((r.token, r.offset), (1, 1));
    }
}
