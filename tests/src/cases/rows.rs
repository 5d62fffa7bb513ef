//! Ops that work row by row, number by number, or move rows.

use std::f32::consts::PI;

use repartee_engine::formats::TensorType;
use repartee_engine::graph::{BinaryOp, CacheStart, Dim, PadMode, UnaryOp};

use crate::case::{Case, Data, Maker};
use crate::compare::Tolerance;

const FUNCTION: Tolerance = Tolerance::new(2e-6, 2e-6, "a function of one number in f32, some ulp");
const NORM: Tolerance = Tolerance::new(5e-6, 1e-5, "a mean over the columns in f32");
const MOVED: Tolerance = Tolerance::EXACT;

/// Row counts below, at and far below a maximum of 9.
const LENGTHS: &[&[usize]] = &[&[5], &[1], &[0], &[9], &[3]];

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    unary(&mut cases);
    binary(&mut cases);
    norms(&mut cases);
    reductions(&mut cases);
    lookups(&mut cases);
    moves(&mut cases);
    positions(&mut cases);
    cases
}

fn unary(cases: &mut Vec<Case>) {
    let ops = [
        ("gelu", UnaryOp::Gelu, 6.0),
        ("gelu_tanh", UnaryOp::GeluTanh, 6.0),
        ("relu", UnaryOp::Relu, 2.0),
        ("leaky_relu", UnaryOp::LeakyRelu(0.125), 2.0),
        ("silu", UnaryOp::Silu, 20.0),
        ("sigmoid", UnaryOp::Sigmoid, 100.0),
        ("tanh", UnaryOp::Tanh, 3.0),
        ("tanh far", UnaryOp::Tanh, 300.0),
        ("exp", UnaryOp::Exp, 10.0),
        ("sqrt", UnaryOp::Sqrt, 50.0),
        ("sin", UnaryOp::Sin, 4.0),
        // A harmonic source turns by up to some hundred radians within a clause.
        ("sin far", UnaryOp::Sin, 700.0),
        ("affine", UnaryOp::Affine { scale: -1.75, offset: 0.5 }, 4.0),
    ];
    for (i, (name, op, top)) in ops.into_iter().enumerate() {
        for cols in [1, 7, 64] {
            let mut m = Maker::new(format!("unary.{name} {cols}"), FUNCTION);
            m.top = top;
            let n = m.g.symbol("n", 9);
            let x = m.input(n, cols, (i + cols) % 2 == 0);
            let y = m.g.unary(x, op);
            m.output(y);
            cases.push(m.runs(LENGTHS));
        }
        // The ends of the range and zero, where a formula may overflow on the way.
        let mut m = Maker::new(format!("unary.{name} edges"), FUNCTION);
        let x = m.input(1, 8, false);
        let y = m.g.unary(x, op);
        m.output(y);
        let edges = match op {
            UnaryOp::Exp => vec![0.0, -0.0, 88.0, -80.0, -200.0, 1e-30, 1.0, -1.0],
            UnaryOp::Sin => vec![0.0, -0.0, 1e-30, PI, -PI / 2.0, 100.0, -100.0, 1e-4],
            _ => vec![0.0, -0.0, 1e4, -1e4, 1e-30, -1e-30, 1e-3, 0.6],
        };
        cases.push(m.build().run_on(&[], vec![Data::F32(edges)]));
    }
}

fn binary(cases: &mut Vec<Case>) {
    let ops = [
        ("add", BinaryOp::Add),
        ("sub", BinaryOp::Sub),
        ("mul", BinaryOp::Mul),
        ("div", BinaryOp::Div),
        ("mul_silu", BinaryOp::MulSilu),
    ];
    for (name, op) in ops {
        for (shape, cols) in [("whole", 7), ("row", 7), ("column", 7), ("number", 33), ("whole", 1)] {
            for view in [false, true] {
                let mut m = Maker::new(format!("binary.{name} {shape} {cols} {view}"), FUNCTION);
                let n = m.g.symbol("n", 9);
                let a = m.input(n, cols, view);
                let b = match shape {
                    "whole" => m.input(n, cols, !view),
                    "row" => m.input(1, cols, view),
                    "column" => m.input(n, 1, view),
                    // One row and one column; only for one row of a.
                    _ => m.input(1, 1, view),
                };
                let (a, b) = if shape == "number" { (m.input(1, cols, view), b) } else { (a, b) };
                // A divisor away from zero, so that the tolerance stays one of the division.
                let b = if op == BinaryOp::Div {
                    m.g.unary(b, UnaryOp::Affine { scale: 0.25, offset: 1.0 })
                } else {
                    b
                };
                let y = m.g.binary(a, b, op);
                m.output(y);
                cases.push(m.runs(LENGTHS));
            }
        }
        let mut m = Maker::new(format!("binary.{name} with itself"), FUNCTION);
        let n = m.g.symbol("n", 9);
        let x = m.input(n, 5, false);
        let x = m.g.unary(x, UnaryOp::Affine { scale: 0.25, offset: 1.0 });
        let y = m.g.binary(x, x, op);
        m.output(y);
        m.output(x);
        cases.push(m.runs(LENGTHS));
    }
}

fn norms(cases: &mut Vec<Case>) {
    for (i, cols) in [1, 5, 64, 97, 576].into_iter().enumerate() {
        for bias in [None, Some("b")] {
            let mut m = Maker::new(format!("layer_norm {cols} {bias:?}"), NORM);
            let n = m.g.symbol("n", 9);
            let ty = [TensorType::F32, TensorType::F16, TensorType::BF16][i % 3];
            m.weight("g", ty, &[cols], 1.5);
            m.weight("b", ty, &[cols], 1.0);
            let x = m.input(n, cols, bias.is_some());
            let y = m.g.layer_norm(x, "g", bias, 1e-5);
            m.output(y);
            cases.push(m.runs(LENGTHS));
        }
    }
    // Far from zero a variance from the mean square minus the squared mean has no correct digit left.
    let tolerance = Tolerance::new(3e-3, 1e-3, "numbers of 1000 +- 1 have 6e-5 of rounding themselves");
    let mut m = Maker::new("layer_norm far from zero", tolerance);
    m.weight("g", TensorType::F32, &[64], 1.5);
    let x = m.input(2, 64, false);
    let far = m.g.unary(x, UnaryOp::Affine { scale: 1.0, offset: 1000.0 });
    let y = m.g.layer_norm(far, "g", None, 1e-5);
    m.output(y);
    cases.push(m.runs(&[&[]]));

    for (cols, group) in [(1, 1), (5, 5), (96, 96), (128, 32), (60, 20), (576, 576), (128, 64)] {
        for view in [false, true] {
            let mut m = Maker::new(format!("rms_norm {cols} by {group} {view}"), NORM);
            let n = m.g.symbol("n", 9);
            m.weight("g", if view { TensorType::F16 } else { TensorType::F32 }, &[group], 1.5);
            let x = m.input(n, cols, view);
            let y = m.g.rms_norm(x, "g", 1e-6, group);
            m.output(y);
            cases.push(m.runs(LENGTHS));
        }
    }
    let mut m = Maker::new("rms_norm of zeros", NORM);
    m.weight("g", TensorType::F32, &[32], 1.5);
    let x = m.input(1, 32, false);
    let y = m.g.rms_norm(x, "g", 1e-6, 32);
    m.output(y);
    cases.push(m.build().run_on(&[], vec![Data::F32(vec![0.0; 32])]));
}

fn reductions(cases: &mut Vec<Case>) {
    for cols in [1, 7, 70] {
        let mut m = Maker::new(format!("mean_rows {cols}"), NORM);
        let n = m.g.symbol("n", 300);
        let x = m.input(n, cols, cols == 7);
        let y = m.g.mean_rows(x);
        m.output(y);
        cases.push(m.runs(&[&[5], &[1], &[0], &[300], &[131]]));
    }
    for cols in [1, 7, 64, 1500] {
        let mut m = Maker::new(format!("softmax {cols}"), FUNCTION);
        m.top = 8.0;
        let n = m.g.symbol("n", 9);
        let x = m.input(n, cols, cols == 7);
        let y = m.g.softmax(x);
        m.output(y);
        cases.push(m.runs(LENGTHS));
    }
    // Without taking the largest off first these overflow.
    let mut m = Maker::new("softmax of large numbers", FUNCTION);
    let x = m.input(2, 4, false);
    let y = m.g.softmax(x);
    m.output(y);
    let large = vec![300.0, 301.0, 299.5, -300.0, -1000.0, -1001.0, -1002.0, -1003.0];
    cases.push(m.build().run_on(&[], vec![Data::F32(large)]));

    for cols in [1, 9, 129] {
        let mut m = Maker::new(format!("magnitude {cols}"), FUNCTION);
        let n = m.g.symbol("n", 9);
        let x = m.input(n, 2 * cols, cols == 9);
        let y = m.g.magnitude(x);
        m.output(y);
        cases.push(m.runs(LENGTHS));
    }
}

fn lookups(cases: &mut Vec<Case>) {
    for ty in TensorType::ALL {
        let mut m = Maker::new(format!("embed {ty}"), FUNCTION);
        let cols = if ty.block_len() == 1 { 48 } else { 2 * ty.block_len() };
        m.ids = 37;
        m.weight("t", ty, &[37, cols], 1.0);
        let n = m.g.symbol("n", 9);
        let ids = m.g.input_i32("ids", n, 1);
        let y = m.g.embed(ids, "t", 37, cols);
        m.output(y);
        let ends = vec![Data::I32(vec![0, 36, 37, -1, i32::MAX, i32::MIN, 35])];
        cases.push(m.runs(LENGTHS).run_on(&[7], ends));
    }
    for (ty, by_row) in [(TensorType::I8, false), (TensorType::U8, true)] {
        let mut m = Maker::new(format!("embed {ty} with scales, {by_row}"), FUNCTION);
        m.ids = 37;
        m.affine("t", ty, &[37, 48], 1.0, by_row);
        let n = m.g.symbol("n", 9);
        let ids = m.g.input_i32("ids", n, 1);
        let y = m.g.embed(ids, "t", 37, 48);
        m.output(y);
        cases.push(m.runs(LENGTHS).run_on(&[3], vec![Data::I32(vec![36, 37, -1])]));
    }
    for view in [false, true] {
        let mut m = Maker::new(format!("gather {view}"), MOVED);
        m.ids = 11;
        let (n, k) = (m.g.symbol("n", 11), m.g.symbol("k", 20));
        let x = m.input(n, 6, view);
        let ids = m.g.input_i32("index", k, 1);
        let y = m.g.gather(x, ids);
        m.output(y);
        // Indices past the actual rows, though within the maximum, give zeros.
        cases.push(m.runs(&[&[11, 20], &[4, 13], &[0, 5], &[3, 0], &[1, 1]]));
    }
    let mut m = Maker::with_slots("step_tokens", 3, MOVED);
    m.weight("t", TensorType::F32, &[9, 4], 1.0);
    let ids = m.g.step_tokens();
    let y = m.g.embed(ids, "t", 9, 4);
    m.output(y);
    m.output(ids);
    let case = m.build().run(&[]).change(0, |s| s.token = 8).change(1, |s| s.token = 3);
    cases.push(case.change(2, |s| (s.token, s.active) = (9, 0)).run(&[]).change(1, |s| s.done = 1).run(&[]));
}

fn moves(cases: &mut Vec<Case>) {
    for (left, right) in [(0, 0), (1, 0), (2, 3), (7, 7)] {
        for mode in [PadMode::Zero, PadMode::Reflect, PadMode::Edge] {
            let mut m = Maker::new(format!("pad_rows {left} {right} {mode:?}"), MOVED);
            let n = m.g.symbol("n", 9);
            let x = m.input(n, 3, left == 2);
            let y = m.g.pad_rows(x, left, right, mode);
            m.output(y);
            cases.push(m.runs(&[&[5], &[1], &[0], &[9], &[2], &[3]]));
        }
    }
    for view in [false, true] {
        let mut m = Maker::new(format!("slice_rows {view}"), MOVED);
        let n = m.g.symbol("n", 12);
        let x = m.input(n, 3, view);
        let first = m.g.slice_rows(x, 0, 2);
        let tail = m.g.slice_rows(x, n.affine(1, -2, 1).unwrap_or(n), 2);
        let middle = m.g.slice_rows(x, 1, n.affine(1, -1, 2).unwrap_or(n));
        let none = m.g.slice_rows(x, 2, Dim::constant(0));
        for y in [first, tail, middle, none] {
            m.output(y);
        }
        cases.push(m.runs(&[&[12], &[2], &[7], &[3]]).refused(&[1]).refused(&[0]));
    }
    // The longer the head, the shorter the tail: memory is needed for the shortest head.
    let mut m = Maker::new("slice_rows that shrinks", MOVED);
    let n = m.g.symbol("n", 12);
    let x = m.input(12, 3, false);
    let tail = m.g.slice_rows(x, n, n.affine(-1, 12, 1).unwrap_or(n));
    let doubled = m.g.unary(tail, UnaryOp::Affine { scale: 2.0, offset: 0.0 });
    let kept = m.g.slice_rows(x, 0, n);
    for y in [tail, doubled, kept] {
        m.output(y);
    }
    cases.push(m.runs(&[&[12], &[0], &[5], &[1]]));
    let mut m = Maker::new("columns", FUNCTION);
    let n = m.g.symbol("n", 9);
    let x = m.g.input_f32("x", n, 24);
    let a = m.g.columns(x, 8, 16);
    let b = m.g.columns(a, 4, 7);
    let c = m.g.columns(x, 0, 24);
    let sum = m.g.columns(c, 17, 7);
    let sum = m.g.binary(b, sum, BinaryOp::Sub);
    for y in [a, b, c, sum] {
        m.output(y);
    }
    cases.push(m.runs(LENGTHS));

    for parts in [&[4][..], &[3, 1], &[1, 5, 2], &[8, 8, 8, 8]] {
        let mut m = Maker::new(format!("concat_columns {parts:?}"), MOVED);
        let n = m.g.symbol("n", 9);
        let mut values: Vec<_> = parts.iter().enumerate().map(|(i, &c)| m.input(n, c, i % 2 == 1)).collect();
        let once = m.g.concat_columns(&values);
        values.push(values[0]);
        let twice = m.g.concat_columns(&values);
        m.output(once);
        m.output(twice);
        cases.push(m.runs(LENGTHS));
    }
    for slots in [1, 3] {
        let mut m = Maker::with_slots(format!("last_rows {slots}"), slots, MOVED);
        let rows = m.slot_rows(slots, 7);
        let x = m.input(rows, 5, slots == 3);
        let y = m.g.last_rows(x);
        m.output(y);
        cases.push(m.runs(&[&[7], &[1], &[0], &[4]]));
    }
}

fn positions(cases: &mut Vec<Case>) {
    for slots in [1, 2] {
        for start in [CacheStart::Position, CacheStart::Zero] {
            for ty in [TensorType::F32, TensorType::F16] {
                let mut m =
                    Maker::with_slots(format!("add_positions {slots} {start:?} {ty}"), slots, FUNCTION);
                m.weight("t", ty, &[13, 6], 1.0);
                let rows = m.slot_rows(slots, 5);
                let x = m.input(rows, 6, slots == 2);
                let y = m.g.add_positions(x, "t", 13, start);
                m.g.advance(x);
                m.output(y);
                let case = m.build().change(slots - 1, |s| s.position = 6);
                // The last runs reach past the table's end.
                cases.push(case.run(&[3]).run(&[1]).run(&[0]).run(&[5]).run(&[2]).run(&[5]));
            }
        }
    }
    let mut m = Maker::with_slots("advance", 3, MOVED);
    let rows = m.slot_rows(3, 5);
    let x = m.input(rows, 1, false);
    m.g.advance(x);
    m.output(x);
    let case = m.build().run(&[2]).change(1, |s| s.active = 0).run(&[5]).change(2, |s| s.done = 1).run(&[3]);
    let case = case.quiet(&[1]).run(&[0]).cancelled(&[4]).truncate(0, 5).change(1, |s| s.active = 1);
    cases.push(case.run(&[2]));
}
