//! Products with weights: linear layers, convolutions, recurrences.

use super::kernel::{Call, FEW_ROWS, MANY_ROWS, Word, Work, plain, words};
use super::plan::Place;
use super::program::Compiler;
use super::weights::{FEW_THREADS, Lanes, kernel};
use crate::backends::CompileError;
use crate::graph::{ConvShape, Dim, Direction, Node, Op, Precision, StateId, TransposedShape, Value, Weight};

/// Rows and outputs of a tile and of a large one: those in the WGSL.
const TILE: usize = 32;
const LARGE: usize = 64;
/// From so many outputs on, that is enough to keep a device busy.
const MANY_OUTPUTS: usize = 16_384;
/// The same of steps of all outputs.
const MANY_STEPS: usize = 8192;
/// Hidden columns that the recurrence's kernel holds.
const MOST_HIDDEN: usize = 512;

/// How products of few rows with so many outputs are divided. `step` columns are read at once. Threads work together
/// until each has at most two steps; where there are outputs enough, they make several with the same activations.
fn lanes(cols: usize, step: usize, outs: usize, most_each: usize) -> Lanes {
    let mut threads = Lanes::ANY.threads;
    while outs < MANY_OUTPUTS && threads < FEW_THREADS && cols > 2 * step * threads {
        threads *= 2;
    }
    let is_enough = outs * (cols / step) >= MANY_STEPS * most_each;
    Lanes { threads, each: if is_enough { most_each } else { 1 } }
}

/// The work of kernels for few rows, for more, and for many where there is one: one of them runs.
fn by_rows(rows: Dim, outs: usize, few: usize, has_large: bool) -> [Work; 3] {
    let large_from = if has_large && outs > TILE { MANY_ROWS } else { usize::MAX };
    let work = |tile, each, only| Work::Tiles { rows, tile, each, only };
    [
        work(1, few, [0, FEW_ROWS]),
        work(TILE, outs.div_ceil(TILE), [FEW_ROWS + 1, large_from - 1]),
        work(LARGE, outs.div_ceil(LARGE), [large_from, usize::MAX]),
    ]
}

/// Words of scratch memory that a node needs beside its output, at its largest.
pub(super) fn scratch_words(op: &Op, max_rows: usize, cols: usize, slots: usize) -> Option<usize> {
    match *op {
        // A word for four integers and one for each block's scale.
        Op::Linear { precision: Precision::Int8, .. } => max_rows.checked_mul(cols / 4 + cols / 32),
        // What the input gives to the gates of each row.
        Op::Lstm { hidden, .. } => max_rows.checked_mul(4)?.checked_mul(hidden),
        // A key and a weight for each token.
        Op::Sample => slots.checked_mul(cols)?.checked_mul(2),
        _ => Some(0),
    }
}

impl Compiler<'_> {
    pub(super) fn linear(
        &self,
        x: Value,
        weight: Weight,
        bias: Option<Weight>,
        precision: Precision,
        y: Value,
    ) -> Result<Vec<Call>, CompileError> {
        let packed = self.packed(weight)?;
        let (to, other) = self.sum().map_or((self.place(y), None), |(to, other)| (to, Some(other)));
        let from = self.place(x);
        let integers = self.scratch();
        let scales = integers + self.graph.max_rows(x) * (from.cols / 4);
        let own = [Word::flag(bias.is_some()), Word::size(integers), Word::size(scales)];
        let is_int8 = precision == Precision::Int8;
        let is_block = packed.ty.block_len() > 1;
        let kernels = match (is_block, is_int8) {
            (false, false) => [Some("few"), Some("tile"), Some("large")],
            (false, true) => [Some("few"), Some("tile"), None],
            (true, true) => [Some("few_int8"), Some("tile_int8"), None],
            (true, false) => [Some("few_f32"), Some("tile_f32"), None],
        };
        let (step, most_each) = if is_block { (32, if is_int8 { 4 } else { 1 }) } else { (4, 1) };
        let lanes = lanes(from.cols, step, to.cols, most_each);
        let mut calls = Vec::new();
        if is_int8 && !self.shares_scratch() {
            let quantize = plain(self.device, "products", "quantize").map_err(|e| self.error(e))?;
            // Sixteen numbers for a 64th of its group.
            let work = Work::Threads(from.rows, from.cols / 16);
            calls.push(Call::new(quantize, words(from, to, &own[1..]), work));
        }
        let bias = self.maybe_plain(bias)?;
        for part in &packed.parts {
            let mut own = own.to_vec();
            own.extend([Word::size(part.first), Word::size(part.rows), Word::flag(is_int8)]);
            own.push(Word::flag(other.is_some()));
            own.extend(other.map_or([0; 2], |other| [other.offset, other.stride]).map(Word::size));
            own.extend(part.planes.map(Word::size));
            let works =
                by_rows(to.rows, part.rows, part.rows.div_ceil(lanes.outputs()), kernels[2].is_some());
            for (entry, work) in kernels.into_iter().zip(works) {
                let Some(entry) = entry.filter(|_| work.is_possible(self.graph.max_rows(x))) else {
                    continue;
                };
                let kernel = kernel(self.device, packed.ty, lanes, entry).map_err(|e| self.error(e))?;
                let call = Call::new(kernel, words(from, to, &own), work);
                calls.push(call.weights([Some(part.buffer.clone()), bias.clone(), packed.factors.clone()]));
            }
        }
        Ok(calls)
    }

    pub(super) fn conv(
        &self,
        x: Value,
        weight: Weight,
        bias: Option<Weight>,
        shape: &ConvShape,
        state: Option<StateId>,
        y: Value,
    ) -> Result<Vec<Call>, CompileError> {
        let (from, to) = (self.place(x), self.place(y));
        let carried = if state.is_some() { shape.span() - 1 } else { 0 };
        let own = [
            Word::flag(bias.is_some()),
            Word::size(shape.taps),
            Word::size(shape.stride),
            Word::size(shape.dilation),
            Word::size(if state.is_some() { carried } else { shape.pad_left }),
            Word::size(shape.groups),
            Word::size(carried),
        ];
        let made = |entry| plain(self.device, "products", entry).map_err(|e| self.error(e));
        let weights = [Some(self.plain(weight)?), self.maybe_plain(bias)?];
        if state.is_none() && shape.groups == 1 {
            return self.conv_calls(from, to, &own, &weights);
        }
        let call = Call::new(made("conv1d")?, words(from, to, &own), Work::Threads(to.rows, to.cols))
            .weights(weights)
            .states([state, None]);
        if carried == 0 {
            return Ok(vec![call]);
        }
        let kernel = plain(self.device, "products", "carry").map_err(|e| self.error(e))?;
        let carry = Call::new(kernel, words(from, to, &own), Work::Groups(1.into(), 1)).states([state, None]);
        Ok(vec![call, carry])
    }

    pub(super) fn conv_transpose(
        &self,
        x: Value,
        weight: Weight,
        bias: Option<Weight>,
        shape: &TransposedShape,
        y: Value,
    ) -> Result<Vec<Call>, CompileError> {
        let (from, to) = (self.place(x), self.place(y));
        let own = [
            Word::flag(bias.is_some()),
            Word::size(shape.taps),
            Word::size(shape.stride),
            Word::size(shape.trim_left),
            Word::size(shape.groups),
        ];
        let call = |entry, work| {
            let kernel = plain(self.device, "products", entry).map_err(|e| self.error(e))?;
            let weights = [Some(self.plain(weight)?), self.maybe_plain(bias)?];
            Ok(Call::new(kernel, words(from, to, &own), work).weights(weights))
        };
        if shape.groups > 1 || to.cols <= TILE {
            return Ok(vec![call("conv_transpose1d", Work::Threads(to.rows, to.cols))?]);
        }
        // A tile's rows are of one phase: as many as there are input rows, and what the last ones reach behind them.
        let more = (shape.taps - 1) / shape.stride;
        let each = shape.stride * to.cols.div_ceil(LARGE);
        let work = Work::MoreTiles { rows: from.rows, more, tile: LARGE, each };
        Ok(vec![call("conv_transpose1d_large", work)?])
    }

    /// A convolution without groups and carry.
    fn conv_calls(
        &self,
        from: Place,
        to: Place,
        own: &[Word],
        weights: &[Option<wgpu::Buffer>; 2],
    ) -> Result<Vec<Call>, CompileError> {
        let works = by_rows(to.rows, to.cols, to.cols.div_ceil(64), true);
        let call = |(entry, work)| {
            let kernel = plain(self.device, "products", entry).map_err(|e| self.error(e))?;
            Ok(Call::new(kernel, words(from, to, own), work).weights(weights.clone()))
        };
        ["conv1d", "conv1d_tile", "conv1d_large"].into_iter().zip(works).map(call).collect()
    }

    /// Two products: the input's part of all gates at once, then row by row the hidden row's, of both directions of a
    /// sequence side by side.
    pub(super) fn lstm(&self, node: &Node, y: Value) -> Result<Vec<Call>, CompileError> {
        let Op::Lstm { hidden, state, .. } = node.op else {
            return Err(self.error(self.unsupported(&node.op, "is no recurrence")));
        };
        if hidden > MOST_HIDDEN {
            let reason = format!("more than {MOST_HIDDEN} hidden columns");
            return Err(self.error(self.unsupported(&node.op, &reason)));
        }
        let x = self.place(node.inputs[0]);
        let first = self.fused.first_direction[self.node];
        let mut calls = Vec::new();
        let mut own = vec![Word::size(hidden), Word::flag(state.is_some())];
        let mut weights = [const { None }; 4];
        for (i, at) in first.into_iter().chain([self.node]).enumerate() {
            let Node { op: Op::Lstm { w_ih, w_hh, b_ih, b_hh, direction, .. }, output, .. } =
                &self.graph.nodes[at]
            else {
                continue;
            };
            let gates = 4 * hidden;
            let inputs = Place { offset: self.plan.scratch[at], stride: gates, cols: gates, rows: x.rows };
            // A convolution of one tap.
            let one = [Word::flag(b_ih.is_some())].into_iter().chain([1, 1, 1, 0, 1, 0].map(Word::Is));
            let own_weights = [Some(self.plain(*w_ih)?), self.maybe_plain(*b_ih)?];
            calls.extend(self.conv_calls(x, inputs, &one.collect::<Vec<_>>(), &own_weights)?);
            let y = self.place(output.unwrap_or(y));
            own.extend([Word::size(y.offset), Word::size(y.stride)]);
            own.extend([*direction == Direction::Backward, b_hh.is_some()].map(Word::flag));
            own.push(Word::size(inputs.offset));
            weights[2 * i] = Some(self.columns(*w_hh)?);
            weights[2 * i + 1] = self.maybe_plain(*b_hh)?;
        }
        let family = if self.device.has_wide_groups() { "lstm.1024" } else { "lstm" };
        let kernel = plain(self.device, family, "lstm").map_err(|e| self.error(e))?;
        let directions = 1 + usize::from(first.is_some());
        let walk = Call::new(kernel, words(x, self.place(y), &own), Work::Groups(1.into(), directions));
        calls.push(walk.weights(weights).states([state, None]));
        Ok(calls)
    }
}
