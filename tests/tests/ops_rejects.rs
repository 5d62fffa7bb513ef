//! The op suite fails on backends that are wrong: each fault is caught by every case in which it can show, or
//! by most cases of the op whose meaning was changed.

use std::sync::Arc;

use repartee_engine::graph::{
    BinaryOp, CacheStart, ConvShape, Direction, KeyValues, Node, Op, PadMode, Precision, RopeStyle, UnaryOp,
};
use repartee_engine::reference::Reference;
use repartee_tests::broken::{Broken, Fault};
use repartee_tests::case::{Case, hold};
use repartee_tests::cases;

/// How many cases could show the fault, and those that did not notice.
fn unnoticed(cases: &[Case], fault: &Fault) -> (usize, Vec<String>) {
    let concerned: Vec<_> = cases.iter().filter(|c| fault.applies(&c.graph)).collect();
    let broken = Broken(fault.clone());
    let quiet = concerned.iter().filter(|c| hold(c, &broken, "reference").is_ok()).map(|c| c.name.clone());
    (concerned.len(), quiet.collect())
}

#[test]
fn the_reference_holds_to_itself() {
    let failures: Vec<_> =
        cases::all().iter().filter_map(|c| hold(c, &Reference, "reference").err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn faults_of_outputs_are_caught_in_every_case() {
    let cases = cases::all();
    for fault in [Fault::LastElement, Fault::NotANumber, Fault::LastRow] {
        let (concerned, quiet) = unnoticed(&cases, &fault);
        assert!(concerned > 300 && quiet.is_empty(), "{quiet:?}");
    }
    // A single row does not move, nor do rows that are all alike: a mean of one column is taken off.
    let alike = ["layer_norm 1 None", "layer_norm 1 Some(\"b\")", "softmax 1"];
    let (concerned, quiet) = unnoticed(&cases, &Fault::RowsMoved);
    let single = |name: &String| {
        let case = cases.iter().find(|c| c.name == *name);
        case.is_some_and(|c| c.graph.outputs.iter().all(|(_, v)| c.graph.max_rows(*v) <= c.graph.slots))
    };
    let moved: Vec<_> = quiet
        .iter()
        .filter(|n| !single(n) && !n.ends_with(" 1 rows") && !alike.contains(&n.as_str()))
        .collect();
    assert!(concerned > 300 && moved.is_empty(), "{moved:?}");
}

#[test]
fn faults_of_placement_are_caught_in_every_case() {
    for fault in [Fault::OtherDevice, Fault::NodeMissing] {
        let (_, quiet) = unnoticed(&cases::all(), &fault);
        assert!(quiet.is_empty(), "{quiet:?}");
    }
}

#[test]
fn faults_of_state_are_caught() {
    let cases = [cases::recurrent::cases(), cases::products::cases(), cases::attention::cases()].concat();
    let (concerned, quiet) = unnoticed(&cases, &Fault::ForgetsState);
    assert!(concerned > 10 && quiet.is_empty(), "{quiet:?}");
    for fault in [Fault::IgnoresCancel, Fault::RefusedRunCounts] {
        let (concerned, quiet) = unnoticed(&cases, &fault);
        assert!(concerned - quiet.len() > 10, "caught by {} of {concerned}", concerned - quiet.len());
    }
}

#[test]
fn one_wrong_weight_is_caught() {
    let cases = [cases::products::cases(), cases::exact::cases(), cases::recurrent::cases()].concat();
    for name in ["w", "b", "w_ih", "w_hh", "b_ih", "b_hh"] {
        let (concerned, quiet) = unnoticed(&cases, &Fault::Weight(name.into()));
        assert!(concerned > 5 && quiet.is_empty(), "{name}: {} of {concerned}: {quiet:?}", quiet.len());
    }
    for name in ["t", "g"] {
        let (concerned, mut quiet) = unnoticed(&cases::rows::cases(), &Fault::Weight(name.into()));
        // Counted from row 0 no run reaches the table's last row; a gain of zeros shows nothing.
        let reached = |n: &str| !(n.starts_with("add_positions") && n.contains("Zero"));
        let zeros = |n: &str| n.starts_with("layer_norm 1 ") || n == "rms_norm of zeros";
        quiet.retain(|n| reached(n) && !zeros(n));
        assert!(concerned > 15 && quiet.is_empty(), "{name}: {quiet:?}");
    }
}

/// A change of an op's meaning; says whether it applied.
type Change = fn(&mut Op) -> bool;

fn set<T: PartialEq>(place: &mut T, value: T) -> bool {
    let differs = *place != value;
    *place = value;
    differs
}

/// `on!(pattern => change)`: a change of the ops that the pattern matches.
macro_rules! on {
    ($pattern:pat => $change:expr) => {
        |op| if let $pattern = op { $change } else { false }
    };
}

const CHANGES: &[(&str, Change)] = &[
    ("linear", on!(Op::Linear { bias, .. } => bias.take().is_some())),
    ("linear", on!(Op::Linear { precision, .. } => set(precision, Precision::F32))),
    ("conv1d", on!(Op::Conv1d { bias, .. } => bias.take().is_some())),
    ("conv1d", on!(Op::Conv1d { shape, .. } => shape.taps > 1 && set(&mut shape.dilation, 1))),
    // The window one row late.
    (
        "conv1d",
        on!(Op::Conv1d { shape: ConvShape { pad_left, .. }, .. } => set(pad_left, pad_left.saturating_sub(1))),
    ),
    ("conv1d_carry", on!(Op::Conv1dCarry { bias, .. } => bias.take().is_some())),
    ("layer_norm", on!(Op::LayerNorm { eps, .. } => set(eps, 1e-3))),
    ("layer_norm", on!(Op::LayerNorm { bias, .. } => bias.take().is_some())),
    ("rms_norm", on!(Op::RmsNorm { eps, .. } => set(eps, 1e-3))),
    ("rms_norm", on!(Op::RmsNorm { group, .. } => *group == 32 && set(group, 16))),
    ("unary", on!(Op::Unary(u) => *u == UnaryOp::Gelu && set(u, UnaryOp::Silu))),
    ("unary", on!(Op::Unary(UnaryOp::LeakyRelu(slope)) => set(slope, 0.1))),
    ("unary", on!(Op::Unary(UnaryOp::Affine { offset, .. }) => set(offset, 0.51))),
    ("binary", on!(Op::Binary(b) => *b == BinaryOp::Sub && set(b, BinaryOp::Add))),
    ("binary", on!(Op::Binary(b) => *b == BinaryOp::MulSilu && set(b, BinaryOp::Mul))),
    ("add_positions", on!(Op::AddPositions { start, .. } => set(start, CacheStart::Zero))),
    ("rope", on!(Op::Rope { style, head_dim: 3.., .. } => set(style, RopeStyle::Pairs))),
    ("rope", on!(Op::Rope { base, head_dim: 3.., .. } => set(base, *base * 1.01))),
    ("cache_write", on!(Op::CacheWrite { start, .. } => set(start, CacheStart::Zero))),
    ("attention", on!(Op::Attention { scale, .. } => set(scale, *scale * 1.001))),
    ("attention", on!(Op::Attention { source: KeyValues::Rows { causal }, .. } => set(causal, false))),
    (
        "attention.cache",
        on!(Op::Attention { source: KeyValues::Cache { keys, values }, .. } => {
            std::mem::swap(keys, values);
            true
        }),
    ),
    ("lstm", on!(Op::Lstm { direction, .. } => set(direction, Direction::Forward))),
    ("lstm", on!(Op::Lstm { b_hh, .. } => b_hh.take().is_some())),
    (
        "pad_rows",
        on!(Op::PadRows { mode, left: 1.., .. } => *mode == PadMode::Reflect && set(mode, PadMode::Edge)),
    ),
    (
        "pad_rows",
        on!(Op::PadRows { mode, left: 1.., .. } => *mode == PadMode::Edge && set(mode, PadMode::Zero)),
    ),
    ("slice_rows", on!(Op::SliceRows { start, .. } => *start == 1.into() && set(start, 0.into()))),
    ("conv_transpose1d", on!(Op::ConvTranspose1d { bias, .. } => bias.take().is_some())),
    (
        "conv_transpose1d",
        on!(Op::ConvTranspose1d { shape, .. } => shape.trim_left > 0 && {
            shape.trim_left -= 1;
            shape.trim_right += 1;
            true
        }),
    ),
    ("instance_norm", on!(Op::InstanceNorm { eps } => set(eps, 0.1))),
    ("columns", on!(Op::Columns { start, .. } => *start > 0 && set(start, *start - 1))),
];

#[test]
fn a_changed_meaning_of_an_op_is_caught() {
    let cases = cases::all();
    for (i, &(name, change)) in CHANGES.iter().enumerate() {
        let own: Vec<Case> = cases.iter().filter(|c| c.name.starts_with(name)).cloned().collect();
        let op = name.split('.').next().unwrap_or(name);
        let fault =
            Fault::Graph(Arc::new(move |node: &mut Node| node.op.name() == op && change(&mut node.op)));
        let (concerned, quiet) = unnoticed(&own, &fault);
        assert!(concerned > 0, "change {i} of {name} touches no case");
        assert!(
            2 * quiet.len() < concerned,
            "change {i} of {name}: {} of {concerned} see nothing: {quiet:?}",
            quiet.len()
        );
    }
}

#[test]
fn a_swap_of_inputs_is_caught() {
    let fault = Fault::Graph(Arc::new(|node: &mut Node| {
        let n = node.inputs.len();
        let matters = matches!(node.op, Op::Attention { source: KeyValues::Rows { .. }, .. }) && n == 3;
        if matters {
            node.inputs.swap(1, 2);
        }
        matters
    }));
    let (concerned, quiet) = unnoticed(&cases::attention::cases(), &fault);
    assert!(concerned > 10 && quiet.is_empty(), "{quiet:?}");
}
