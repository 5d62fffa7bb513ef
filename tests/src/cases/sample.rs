//! Drawing tokens: every setting, equal draws.
//!
//! Draws compare sums of probabilities with a random number, so two ways to sum may differ once in some million
//! draws. The seeds are fixed and the logits are multiples of 1/64 (equal logits stand for ties).

use repartee_engine::formats::TensorType;
use repartee_engine::graph::StepRow;

use crate::case::{Case, Data, Maker};
use crate::compare::Tolerance;
use crate::random::Random;

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let settings: [(&str, fn(&mut StepRow)); 13] = [
        ("greedy", |_| {}),
        ("temperature", |s| s.temperature = 0.8),
        ("high temperature", |s| s.temperature = 3.0),
        ("top_k 1", |s| (s.temperature, s.top_k) = (1.0, 1)),
        ("top_k 5", |s| (s.temperature, s.top_k) = (1.5, 5)),
        ("top_k more than all", |s| (s.temperature, s.top_k) = (1.5, 1_000_000)),
        ("top_p", |s| (s.temperature, s.top_p) = (1.0, 0.7)),
        ("top_p 0", |s| (s.temperature, s.top_p) = (1.0, 0.0)),
        ("min_p", |s| (s.temperature, s.min_p) = (1.2, 0.2)),
        ("min_p 1", |s| (s.temperature, s.min_p) = (1.2, 1.0)),
        ("penalty", |s| (s.temperature, s.repetition_penalty, s.penalty_window) = (0.9, 1.8, 6)),
        ("greedy penalty", |s| (s.repetition_penalty, s.penalty_window) = (1.5, 300)),
        ("all", |s| {
            (s.temperature, s.top_k, s.top_p, s.min_p) = (1.1, 40, 0.9, 0.02);
            (s.repetition_penalty, s.penalty_window) = (0.8, 64);
        }),
    ];
    let mut cases = Vec::new();
    for (name, set) in settings {
        for vocabulary in [1, 2, 7, 300, 1000] {
            for bias in [false, true] {
                cases.push(draws(name, set, vocabulary, bias));
            }
        }
    }
    cases.push(whole_vocabulary());
    cases.push(odd_logits());
    cases.push(stops());
    cases.push(long_history());
    cases
}

fn logits(r: &mut Random, n: usize) -> Vec<f32> {
    (0..n).map(|_| r.between(-320, 320) as f32 / 64.0).collect()
}

fn tolerance() -> Tolerance {
    Tolerance::EXACT // only tokens come out
}

fn draws(name: &str, set: fn(&mut StepRow), vocabulary: usize, bias: bool) -> Case {
    let slots = if vocabulary == 300 { 3 } else { 1 };
    let mut m = Maker::with_slots(format!("sample.{name} of {vocabulary}, bias {bias}"), slots, tolerance());
    let x = m.input(slots, vocabulary, vocabulary == 7);
    let b = bias.then(|| m.g.input_f32("bias", 1, vocabulary));
    let y = m.g.sample(x, b);
    m.output(y);
    let width = vocabulary + if vocabulary == 7 { 5 } else { 0 };
    let inputs: Vec<Vec<Data>> = (0..6)
        .map(|_| {
            let mut all = vec![Data::F32(logits(&mut m.r, slots * width))];
            if bias {
                // Some tokens are forbidden; at least one is left.
                let mut b = logits(&mut m.r, vocabulary);
                b.iter_mut().skip(1).step_by(3).for_each(|v| *v = f32::NEG_INFINITY);
                all.push(Data::F32(b));
            }
            all
        })
        .collect();
    let mut case = m.build();
    for slot in 0..slots {
        case = case.change(slot, move |s| {
            set(s);
            (s.seed_low, s.seed_high) = (77 + slot as u32, 0x8000_0003);
        });
    }
    for (i, data) in inputs.into_iter().enumerate() {
        case = case.run_on(&[], data);
        // A snapshot replays the same draw; a row that takes no part keeps its token.
        case = match i {
            1 => case.save(0),
            2 => case.restore(0, true),
            3 if slots > 1 => case.change(1, |s| s.active = 0),
            4 if slots > 1 => case.change(2, |s| s.done = 1).change(1, |s| s.active = 1),
            _ => case,
        };
    }
    case
}

/// A real vocabulary's size, with temperature alone: all of it is sorted.
fn whole_vocabulary() -> Case {
    let n = 49_152;
    let mut m = Maker::new("sample.whole vocabulary", tolerance());
    let x = m.g.input_f32("logits", 1, n);
    let y = m.g.sample(x, None);
    m.output(y);
    let inputs: Vec<_> = (0..3).map(|_| Data::F32(m.r.floats(n, 6.0))).collect();
    let mut case = m.build().change(0, |s| (s.temperature, s.seed_low) = (1.0, 5));
    for (i, data) in inputs.into_iter().enumerate() {
        case = case.run_on(&[], vec![data]);
        case = match i {
            0 => case.change(0, |s| s.top_p = 0.9),
            _ => case.change(0, |s| (s.top_k, s.min_p, s.repetition_penalty) = (500, 0.01, 1.2)),
        };
    }
    case
}

/// What is not a number never wins, and when nothing finite is left token 0 is drawn.
fn odd_logits() -> Case {
    let mut m = Maker::new("sample.odd logits", tolerance());
    let x = m.g.input_f32("logits", 1, 6);
    let y = m.g.sample(x, None);
    m.output(y);
    let (nan, low) = (f32::NAN, f32::NEG_INFINITY);
    let rows: [[f32; 6]; 6] = [
        [nan, 1.0, nan, 2.0, 0.5, nan],
        [nan; 6],
        [low; 6],
        [low, low, -3.0, low, nan, low],
        [-nan, -1e30, nan, -1e30, low, nan],
        [1e30, 2e30, -2e30, 2e30, 0.0, 1.0],
    ];
    let mut case = m.build().change(0, |s| s.seed_low = 3);
    for temperature in [0.0, 0.7] {
        case = case.change(0, move |s| s.temperature = temperature);
        for row in rows {
            case = case.run_on(&[], vec![Data::F32(row.to_vec())]);
        }
    }
    case
}

/// A stop token ends its row for good; the others go on.
fn stops() -> Case {
    let mut m = Maker::with_slots("sample.stops", 3, tolerance());
    m.ids = 5;
    m.weight("t", TensorType::F32, &[5, 4], 1.0);
    let ids = m.g.step_tokens();
    m.g.embed(ids, "t", 5, 4);
    let l = m.g.input_f32("logits", 3, 9);
    let y = m.g.sample(l, None);
    m.g.advance(y);
    m.output(y);
    let row = |top: [usize; 3]| {
        let mut d = vec![0.0; 27];
        for (slot, t) in top.into_iter().enumerate() {
            d[slot * 9 + t] = 1.0;
        }
        vec![Data::F32(d)]
    };
    let case =
        m.build().change(0, |s| s.set_stops(&[7, 3])).change(1, |s| s.set_stops(&[1, 2, 3, 4, 5, 6, 7, 8]));
    let case = case.run_on(&[], row([2, 0, 8])).run_on(&[], row([3, 0, 3])).run_on(&[], row([4, 4, 4]));
    let case = case.run_on(&[], row([5, 5, 5])).change(0, |s| (s.done, s.stop_count) = (0, 0));
    case.run_on(&[], row([7, 7, 7]))
}

/// The ring of newest tokens wraps, and a penalty sees only its window.
fn long_history() -> Case {
    let mut m = Maker::new("sample.long history", tolerance());
    let x = m.g.input_f32("logits", 1, 12);
    let y = m.g.sample(x, None);
    m.output(y);
    let inputs: Vec<_> = (0..8).map(|_| Data::F32(logits(&mut m.r, 12))).collect();
    let mut case = m.build().change(0, |s| {
        (0..253).for_each(|t| s.remember(t % 12));
        (s.repetition_penalty, s.penalty_window, s.seed_low, s.offset) = (2.0, 5, 9, u32::MAX - 2);
    });
    for (i, data) in inputs.into_iter().enumerate() {
        case = case.run_on(&[], vec![data]);
        if i == 3 {
            case = case.change(0, |s| (s.temperature, s.penalty_window) = (1.0, 256));
        }
    }
    case
}
