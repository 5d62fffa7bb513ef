//! Ops that a backend may do together: sums behind products, products of the same rows, rows that are quantised where they
//! are made, and what looks like these and is none of them.

use repartee_engine::formats::TensorType;
use repartee_engine::graph::{BinaryOp, CacheStart, Direction, KeyValues, Precision, StateType, Value};

use crate::case::{Case, Maker};
use crate::compare::Tolerance;

/// On either side of where few rows become many, and of a tile's edge.
const LENGTHS: &[&[usize]] = &[&[40], &[1], &[0], &[4], &[5], &[33]];
const MOST: usize = 40;

const SUM: Tolerance = Tolerance::new(3e-5, 1e-5, "sums of up to 256 products in f32, and one more");
const ROUNDED: Tolerance =
    Tolerance::new(3e-2, 1e-3, "a number of the rows before may be rounded to the next of 255 integers");

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    sums(&mut cases);
    no_sums(&mut cases);
    makers(&mut cases);
    cached_makers(&mut cases);
    cases.push(wide_recurrence());
    cases
}

fn sums(cases: &mut Vec<Case>) {
    let kinds = [
        (TensorType::F16, Precision::F32, 99, 70),
        (TensorType::I8, Precision::Int8, 96, 33),
        (TensorType::Q8_0, Precision::F32, 96, 70),
        (TensorType::Q8_0, Precision::Int8, 96, 33),
        (TensorType::Q4K, Precision::Int8, 256, 5),
    ];
    for (i, (ty, precision, k, out)) in kinds.into_iter().enumerate() {
        for is_first in [false, true] {
            let name = format!("together.sum of {ty} in {precision:?}, product first {is_first}");
            let mut m = Maker::new(name, SUM);
            m.weight("w", ty, &[out, k], 0.3);
            m.weight("b", TensorType::F32, &[out], 1.0);
            let n = m.g.symbol("n", MOST);
            let x = m.input(n, k, false);
            let other = m.input(n, out, is_first);
            let product = m.g.linear(x, "w", (i != 1).then_some("b"), out, precision);
            let sum = if is_first { m.g.add(product, other) } else { m.g.add(other, product) };
            m.output(sum);
            // Both are still there.
            let after = m.g.binary(other, sum, BinaryOp::Sub);
            m.output(after);
            cases.push(m.runs(LENGTHS));
        }
    }
}

/// Sums that need the product elsewhere too, or more than it.
fn no_sums(cases: &mut Vec<Case>) {
    let mut one = |name: &str, sum: &dyn Fn(&mut Maker, Value, Value) -> Vec<Value>| {
        let mut m = Maker::new(format!("together.{name}"), SUM);
        m.weight("w", TensorType::Q8_0, &[64, 64], 0.3);
        let n = m.g.symbol("n", MOST);
        let x = m.input(n, 64, false);
        let product = m.g.linear(x, "w", None, 64, Precision::Int8);
        for output in sum(&mut m, product, x) {
            m.output(output);
        }
        cases.push(m.runs(LENGTHS));
    };
    one("product and sum", &|m, product, x| vec![m.g.add(product, x), product]);
    one("product seen in part", &|m, product, x| {
        let part = m.g.columns(product, 3, 7);
        vec![m.g.add(product, x), part]
    });
    one("product twice", &|m, product, _| vec![m.g.add(product, product)]);
    one("product and a row", &|m, product, _| {
        let row = m.input(1, 64, false);
        vec![m.g.add(product, row)]
    });
    one("product and what comes after it", &|m, product, x| {
        let later = m.g.binary(x, x, BinaryOp::Mul);
        vec![m.g.add(product, later)]
    });
    one("product of a sum", &|m, product, x| {
        let sum = m.g.add(product, x);
        let again = m.g.linear(sum, "w", None, 64, Precision::Int8);
        vec![m.g.add(again, sum)]
    });
}

fn makers(cases: &mut Vec<Case>) {
    let mut one = |name: String, cols: usize, make: &dyn Fn(&mut Maker, [Value; 3]) -> Value| {
        let mut m = Maker::new(format!("together.{name}"), ROUNDED);
        for name in ["a", "b"] {
            m.weight(name, TensorType::Q8_0, &[17, cols], 0.2);
        }
        m.weight("c", TensorType::F16, &[9, cols], 0.2);
        m.weight("gain", TensorType::F32, &[cols], 1.0);
        let n = m.g.symbol("n", MOST);
        let inputs = [(); 3].map(|()| m.input(n, cols, false));
        let rows = make(&mut m, inputs);
        let a = m.g.linear(rows, "a", None, 17, Precision::Int8);
        // Memory that is used meanwhile.
        let between = m.g.binary(inputs[0], inputs[1], BinaryOp::Mul);
        let c = m.g.linear(rows, "c", None, 9, Precision::F32);
        let b = m.g.linear(rows, "b", None, 17, Precision::Int8);
        for output in [a, b, c, between] {
            m.output(output);
        }
        cases.push(m.runs(LENGTHS));
    };
    for cols in [32, 96] {
        one(format!("norm of {cols}"), cols, &|m, [x, ..]| m.g.rms_norm(x, "gain", 1e-5, cols));
        for op in [BinaryOp::MulSilu, BinaryOp::Mul, BinaryOp::Sub] {
            one(format!("{op:?} of {cols}"), cols, &|m, [x, y, _]| m.g.binary(x, y, op));
        }
        one(format!("product with a row of {cols}"), cols, &|m, [x, ..]| {
            let row = m.input(1, cols, false);
            m.g.binary(x, row, BinaryOp::Mul)
        });
    }
    for (heads, causal) in [(3, true), (1, false), (2, true)] {
        one(format!("attention of {heads} heads, causal {causal}"), 96, &|m, inputs| {
            m.g.attention_rows(inputs, heads, heads, 0.2, causal)
        });
    }
}

/// Attention over caches, as in a language model's step: the rows of several slots, at positions of their own.
fn cached_makers(cases: &mut Vec<Case>) {
    for (slots, heads, kv_heads, head_dim) in [(1, 4, 2, 32), (2, 2, 1, 64), (3, 3, 3, 32)] {
        let name = format!("together.attention over caches of {slots} slots, {heads} over {kv_heads} heads");
        let mut m = Maker::with_slots(name, slots, ROUNDED);
        let cols = heads * head_dim;
        for name in ["a", "b"] {
            m.weight(name, TensorType::Q8_0, &[17, cols], 0.2);
        }
        let [keys, values] = ["k", "v"].map(|name| m.g.cache(name, 24, kv_heads, head_dim, StateType::F16));
        let rows = m.slot_rows(slots, 6);
        let q = m.input(rows, cols, false);
        let [k, v] = [(); 2].map(|()| m.input(rows, kv_heads * head_dim, false));
        m.g.cache_write(k, keys, CacheStart::Position);
        m.g.cache_write(v, values, CacheStart::Position);
        let y = m.g.attention_cached(q, heads, kv_heads, 0.2, KeyValues::Cache { keys, values });
        for weight in ["a", "b"] {
            let product = m.g.linear(y, weight, None, 17, Precision::Int8);
            m.output(product);
        }
        m.g.advance(q);
        let case = m.runs(&[&[6], &[1], &[0], &[2]]).truncate(slots - 1, 3).run(&[1]);
        cases.push(case.cancelled(&[3]).run(&[5]));
    }
}

/// More hidden columns than a group of threads.
fn wide_recurrence() -> Case {
    let mut m = Maker::new("together.lstm of 300", SUM);
    m.weight("ih", TensorType::F32, &[1200, 7], 0.3);
    m.weight("hh", TensorType::F32, &[1200, 300], 0.06);
    m.weight("bi", TensorType::F32, &[1200], 0.3);
    m.weight("bh", TensorType::F32, &[1200], 0.3);
    let n = m.g.symbol("n", MOST);
    let x = m.input(n, 7, false);
    let y = m.g.lstm(x, ["ih", "hh", "bi", "bh"], 300, Direction::Forward, Some("h"));
    m.output(y);
    m.runs(LENGTHS)
}
