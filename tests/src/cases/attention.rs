//! Caches, rotary embedding, attention.

use repartee_engine::graph::{CacheStart, KeyValues, RopeStyle, StateType};

use crate::case::{Case, Maker};
use crate::compare::Tolerance;

const ATTENTION: Tolerance = Tolerance::new(4e-6, 1e-5, "a weighted mean with exp in f32");
const ROTATION: Tolerance =
    Tolerance::new(4e-6, 4e-6, "two products of f32; the angle itself must be good to an f32's last bits");
const EXACT: Tolerance = Tolerance::EXACT;

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    rope(&mut cases);
    rope_far(&mut cases);
    cache_write(&mut cases);
    over_rows(&mut cases);
    over_cache(&mut cases);
    over_length(&mut cases);
    cases
}

fn rope(cases: &mut Vec<Case>) {
    for (heads, head_dim) in [(1, 2), (3, 32), (2, 64), (1, 80), (2, 128)] {
        for style in [RopeStyle::Halves, RopeStyle::Pairs] {
            for (slots, base) in [(1, 10_000.0), (2, 1_000_000.0)] {
                let name = format!("rope.{style:?} {heads} heads of {head_dim}, {slots} slots");
                let mut m = Maker::with_slots(name, slots, ROTATION);
                m.top = 1.0;
                let rows = m.slot_rows(slots, 6);
                let x = m.input(rows, heads * head_dim, head_dim == 64);
                let y = m.g.rope(x, head_dim, style, base);
                m.g.advance(x);
                m.output(y);
                let case = m.runs(&[&[4], &[1], &[0], &[6]]).change(0, |s| s.done = 1);
                cases.push(case.run(&[2]).run(&[2]));
            }
        }
    }
}

/// Far from the start an angle formed in f32, as the models were trained with, is off by its last bits.
fn rope_far(cases: &mut Vec<Case>) {
    for (position, absolute) in [(1021, 1.5e-4), (32_760, 5e-3)] {
        for style in [RopeStyle::Halves, RopeStyle::Pairs] {
            let tolerance =
                Tolerance::new(absolute, 4e-6, "position x 2^-23 radians: the last bits of an f32 angle");
            let mut m = Maker::with_slots(format!("rope.{style:?} from {position}"), 2, tolerance);
            m.top = 1.0;
            let rows = m.slot_rows(2, 6);
            let x = m.input(rows, 160, false);
            let y = m.g.rope(x, 80, style, 10_000.0);
            m.g.advance(x);
            m.output(y);
            cases.push(m.build().change(1, move |s| s.position = position).run(&[6]).run(&[1]));
        }
    }
}

fn cache_write(cases: &mut Vec<Case>) {
    for slots in [1, 3] {
        for ty in [StateType::F32, StateType::F16] {
            for start in [CacheStart::Position, CacheStart::Zero] {
                // The numbers pass unchanged, so f16 has to be rounded to the nearest, ties to even.
                let mut m = Maker::with_slots(format!("cache_write {slots} {ty:?} {start:?}"), slots, EXACT);
                let cache = m.g.cache("k", 16, 2, 4, ty);
                let rows = m.slot_rows(slots, 5);
                let x = m.input(rows, 8, slots == 3);
                m.g.cache_write(x, cache, start);
                m.g.advance(x);
                m.output(x);
                let case = m.runs(&[&[3], &[1], &[0], &[5]]).cancelled(&[4]).truncate(0, 2).run(&[2]);
                let last = slots - 1;
                let case = case.change(last, |s| s.active = 0).run(&[1]).change(last, |s| s.active = 1);
                let case = case.change(0, |s| s.done = 1).quiet(&[1]).change(0, |s| s.done = 0).run(&[1]);
                // Full: nothing may change.
                let case = case.change(last, |s| s.position = 14);
                cases.push(if start == CacheStart::Position {
                    let case = case.refused(&[3]).run(&[2]);
                    // A full slot that takes no part does not stop the others.
                    let case = if slots == 3 { case.truncate(1, 3) } else { case };
                    case.change(last, |s| s.active = 0).run(&[2]).change(last, |s| s.active = 1).refused(&[1])
                } else {
                    case.run(&[5])
                });
            }
        }
    }
    let mut m = Maker::new("cache_write rounding", EXACT);
    let cache = m.g.cache("k", 4, 1, 16, StateType::F16);
    let x = m.input(2, 16, false);
    m.g.cache_write(x, cache, CacheStart::Position);
    m.g.advance(x);
    m.output(x);
    // Ties on both sides, the smallest normal, subnormals and their ties, a number that rounds up a binade.
    let tie = 2.0_f32.powi(-11);
    let tiny = 2.0_f32.powi(-24);
    let mut edges =
        vec![1.0 + tie, 1.0 + 3.0 * tie, 1.0 + tie * 1.001, -1.0 - tie, 2.0_f32.powi(-14), 2.0_f32.powi(-15)];
    edges.extend([
        tiny,
        1.5 * tiny,
        0.5 * tiny,
        0.51 * tiny,
        2.5 * tiny,
        65504.0,
        -65504.0,
        1.9999,
        0.0,
        -3.25,
    ]);
    edges.extend(m.r.floats(16, 1e-5));
    cases.push(m.build().run_on(&[], vec![crate::case::Data::F32(edges)]));
}

/// Query heads, key-value heads, columns of a head.
const HEADS: [(usize, usize, usize); 6] =
    [(1, 1, 2), (2, 2, 64), (4, 2, 32), (3, 1, 80), (9, 3, 64), (2, 1, 128)];

fn over_rows(cases: &mut Vec<Case>) {
    for (heads, kv_heads, head_dim) in HEADS {
        for causal in [false, true] {
            let name = format!("attention.rows {heads} over {kv_heads} of {head_dim}, causal {causal}");
            let mut m = Maker::new(name, ATTENTION);
            let n = m.g.symbol("n", 37);
            let view = head_dim == 64;
            let q = m.input(n, heads * head_dim, view);
            let k = m.input(n, kv_heads * head_dim, view);
            let v = m.input(n, kv_heads * head_dim, !view);
            let scale = 1.0 / (head_dim as f32).sqrt();
            let y = m.g.attention_rows([q, k, v], heads, kv_heads, scale, causal);
            m.output(y);
            cases.push(m.runs(&[&[37], &[1], &[0], &[16], &[33]]));
        }
    }
    for causal in [false, true] {
        let mut m = Maker::new(format!("attention.rows of another length, causal {causal}"), ATTENTION);
        let (n, k) = (m.g.symbol("n", 20), m.g.symbol("k", 35));
        let q = m.input(n, 64, false);
        let keys = m.input(k, 64, true);
        let values = m.input(k, 64, true);
        let y = m.g.attention_rows([q, keys, values], 2, 2, 0.2, causal);
        m.output(y);
        cases.push(m.runs(&[&[20, 35], &[7, 3], &[3, 7], &[4, 0], &[0, 4]]));
    }
    // One projection, cut into queries, keys and values.
    let mut m = Maker::new("attention.rows of one projection", ATTENTION);
    let n = m.g.symbol("n", 19);
    let qkv = m.g.input_f32("qkv", n, 3 * 96);
    let parts = [0, 96, 192].map(|start| m.g.columns(qkv, start, 96));
    let y = m.g.attention_rows(parts, 3, 3, 0.2, true);
    m.output(y);
    cases.push(m.runs(&[&[19], &[2], &[17]]));
}

fn over_cache(cases: &mut Vec<Case>) {
    for (i, (heads, kv_heads, head_dim)) in HEADS.into_iter().enumerate() {
        for ty in [StateType::F32, StateType::F16] {
            let slots = if i % 3 == 2 { 3 } else { 1 };
            let name =
                format!("attention.cache {heads} over {kv_heads} of {head_dim}, {ty:?}, {slots} slots");
            let mut m = Maker::with_slots(name, slots, ATTENTION);
            let keys = m.g.cache("k", 37, kv_heads, head_dim, ty);
            let values = m.g.cache("v", 37, kv_heads, head_dim, ty);
            let rows = m.slot_rows(slots, 21);
            let q = m.input(rows, heads * head_dim, i % 2 == 0);
            let k = m.input(rows, kv_heads * head_dim, i % 2 == 1);
            let v = m.input(rows, kv_heads * head_dim, i % 2 == 0);
            m.g.cache_write(k, keys, CacheStart::Position);
            m.g.cache_write(v, values, CacheStart::Position);
            let source = KeyValues::Cache { keys, values };
            let y = m.g.attention_cached(q, heads, kv_heads, 1.0 / (head_dim as f32).sqrt(), source);
            m.g.advance(q);
            m.output(y);
            // A prompt, single steps, an empty run; then back to an earlier point, to the very end, and too far.
            let case = m.runs(&[&[17], &[1], &[1], &[0], &[3]]).cancelled(&[2]).truncate(0, 5).run(&[4]);
            let case = case.quiet(&[1]).run(&[1]);
            let case = if slots == 3 {
                case.truncate(1, 0).run(&[2]).truncate(2, 16).run(&[1])
            } else {
                case.run(&[21]).run(&[5]).refused(&[1]).truncate(0, 0).run(&[1])
            };
            cases.push(case);
        }
    }
    // A slot that takes no part keeps its rows while the others go on; its outputs have no meaning, so only the
    // caches and the other slots' last rows are looked at, through a run in which all take part again.
    let mut m = Maker::with_slots("attention.cache with slots that pause", 3, ATTENTION);
    let keys = m.g.cache("k", 24, 1, 32, StateType::F16);
    let values = m.g.cache("v", 24, 1, 32, StateType::F16);
    let rows = m.slot_rows(3, 5);
    let q = m.input(rows, 64, false);
    let k = m.input(rows, 32, false);
    let v = m.input(rows, 32, false);
    m.g.cache_write(k, keys, CacheStart::Position);
    m.g.cache_write(v, values, CacheStart::Position);
    let y = m.g.attention_cached(q, 2, 1, 0.18, KeyValues::Cache { keys, values });
    m.g.advance(q);
    m.output(y);
    let case = m.runs(&[&[5]]).change(1, |s| s.done = 1).quiet(&[3]).change(0, |s| s.active = 0).quiet(&[1]);
    cases.push(case.change(1, |s| s.done = 0).change(0, |s| s.active = 1).run(&[1]).run(&[4]));
}

fn over_length(cases: &mut Vec<Case>) {
    for (i, (heads, kv_heads, head_dim)) in HEADS.into_iter().enumerate() {
        for ty in [StateType::F32, StateType::F16] {
            let slots = if i % 3 == 1 { 2 } else { 1 };
            let name =
                format!("attention.length {heads} over {kv_heads} of {head_dim}, {ty:?}, {slots} slots");
            let mut m = Maker::with_slots(name, slots, ATTENTION);
            let keys = m.g.cache("k", 29, kv_heads, head_dim, ty);
            let values = m.g.cache("v", 29, kv_heads, head_dim, ty);
            let rows = m.slot_rows(slots, 5);
            let m_rows = m.g.symbol("m", 29);
            let seen = m_rows.affine(slots as i64, 0, 1).unwrap_or(m_rows);
            let q = m.input(rows, heads * head_dim, i % 2 == 0);
            let k = m.input(seen, kv_heads * head_dim, i % 2 == 1);
            m.g.cache_write(k, keys, CacheStart::Zero);
            m.g.cache_write(k, values, CacheStart::Zero);
            let source = KeyValues::CacheOfLength { keys, values, length: m_rows };
            let y = m.g.attention_cached(q, heads, kv_heads, 1.0 / (head_dim as f32).sqrt(), source);
            m.output(y);
            // A shorter encoding after a longer one leaves rows that must not be seen.
            cases.push(m.runs(&[&[3, 29], &[1, 17], &[5, 1], &[2, 0], &[0, 16]]));
        }
    }
}
