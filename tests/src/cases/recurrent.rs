//! LSTM, and what recurrent states do under cancelling, snapshots and resets.

use repartee_engine::formats::TensorType;
use repartee_engine::graph::Direction;

use crate::case::{Case, Maker};
use crate::compare::Tolerance;

const LSTM: Tolerance =
    Tolerance::new(1e-5, 1e-5, "errors of f32 gates pass from row to row, damped by the gates");

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (cols, hidden) in [(1, 1), (3, 5), (64, 32), (33, 70), (128, 128)] {
        for (direction, state) in
            [(Direction::Forward, None), (Direction::Backward, None), (Direction::Forward, Some("h"))]
        {
            let types: &[TensorType] = match hidden {
                32 => &[TensorType::F32, TensorType::F16, TensorType::Q8_0],
                128 => &[TensorType::F32],
                _ => &[TensorType::F32, TensorType::BF16],
            };
            for &ty in types {
                let kind = if state.is_some() { "with state" } else { "whole" };
                let name = format!("lstm.{ty} {direction:?} {kind}, {cols} to {hidden}");
                let mut m = Maker::new(name, LSTM);
                let top = 2.0 / (cols + hidden) as f32;
                m.weight("w_ih", ty, &[4 * hidden, cols], 4.0 * top);
                m.weight("w_hh", ty, &[4 * hidden, hidden], 4.0 * top);
                m.weight("b_ih", TensorType::F32, &[4 * hidden], 0.5);
                m.weight("b_hh", TensorType::F32, &[4 * hidden], 0.5);
                let n = m.g.symbol("n", 11);
                let x = m.input(n, cols, cols == 33);
                let y = m.g.lstm(x, ["w_ih", "w_hh", "b_ih", "b_hh"], hidden, direction, state);
                m.output(y);
                let case = m.runs(&[&[5], &[1], &[0], &[11], &[2]]).cancelled(&[3]).run(&[1]).save(7);
                let case = case.run(&[4]).save(3).quiet(&[2]).restore(7, true).run(&[4]).restore(3, true);
                cases.push(case.run(&[2]).restore(5, false).reset().run(&[3]));
            }
        }
    }
    for (ty, by_row, direction) in
        [(TensorType::I8, false, Direction::Backward), (TensorType::U8, true, Direction::Forward)]
    {
        for hidden in [5, 48] {
            let mut m =
                Maker::new(format!("lstm.{ty} with scales, {by_row} {direction:?}, to {hidden}"), LSTM);
            m.affine("w_ih", ty, &[4 * hidden, 33], 0.2, by_row);
            m.affine("w_hh", ty, &[4 * hidden, hidden], 0.2, by_row);
            m.weight("b_ih", TensorType::F32, &[4 * hidden], 0.5);
            m.weight("b_hh", TensorType::F32, &[4 * hidden], 0.5);
            let n = m.g.symbol("n", 30);
            let x = m.input(n, 33, false);
            let y = m.g.lstm(x, ["w_ih", "w_hh", "b_ih", "b_hh"], hidden, direction, None);
            m.output(y);
            // Fewer rows than it pays to widen the weights for, and more.
            cases.push(m.runs(&[&[30], &[1], &[3], &[4], &[0]]));
        }
    }
    // Both directions of one input and two layers of one stream in one graph.
    let mut m = Maker::new("lstm.F32 two directions", LSTM);
    for part in ["f", "b", "2"] {
        let cols = if part == "2" { 16 } else { 6 };
        m.weight(&format!("{part}.ih"), TensorType::F32, &[32, cols], 0.5);
        m.weight(&format!("{part}.hh"), TensorType::F32, &[32, 8], 0.5);
        m.weight(&format!("{part}.bi"), TensorType::F32, &[32], 0.5);
        m.weight(&format!("{part}.bh"), TensorType::F32, &[32], 0.5);
    }
    let n = m.g.symbol("n", 11);
    let x = m.input(n, 6, false);
    let f = m.g.lstm(x, ["f.ih", "f.hh", "f.bi", "f.bh"], 8, Direction::Forward, None);
    let b = m.g.lstm(x, ["b.ih", "b.hh", "b.bi", "b.bh"], 8, Direction::Backward, None);
    let both = m.g.concat_columns(&[f, b]);
    let y = m.g.lstm(both, ["2.ih", "2.hh", "2.bi", "2.bh"], 8, Direction::Forward, Some("second"));
    m.output(y);
    cases.push(m.runs(&[&[11], &[1], &[0], &[6]]).cancelled(&[6]).run(&[2]));
    cases
}
