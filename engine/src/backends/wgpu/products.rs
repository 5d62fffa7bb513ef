//! Products with weights: linear layers, convolutions, recurrences.

use super::kernel::{Call, FEW_ROWS, Word, Work, plain, words};
use super::plan::Place;
use super::program::Compiler;
use super::weights::kernel;
use crate::backends::CompileError;
use crate::graph::{ConvShape, Direction, Node, Op, Precision, StateId, TransposedShape, Value, Weight};

/// Outputs that a workgroup makes of one row, and of a tile's rows: those in the WGSL.
const FEW_OUTPUTS: usize = 4;
const TILE_COLUMNS: usize = 32;

/// Words of scratch memory that a node needs beside its output, at its largest.
pub(super) fn scratch_words(op: &Op, max_rows: usize, cols: usize, slots: usize) -> Option<usize> {
    match *op {
        // A word for four integers and one for each block's scale.
        Op::Linear { precision: Precision::Int8, .. } => max_rows.checked_mul(cols / 4 + cols / 32),
        // Hidden row, cell row and gates, and the gates of each row.
        Op::Lstm { hidden, .. } => max_rows.checked_mul(4)?.checked_add(6)?.checked_mul(hidden),
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
        let [few, tile] = match (packed.ty.block_len(), is_int8) {
            (1, _) => ["few", "tile"],
            (_, true) => ["few_int8", "tile_int8"],
            (_, false) => ["few_f32", "tile_f32"],
        };
        let made = |entry| kernel(self.device, packed.ty, entry).map_err(|e| self.error(e));
        let few = made(few)?;
        let tile = if self.graph.max_rows(x) > FEW_ROWS { Some(made(tile)?) } else { None };
        let mut calls = Vec::new();
        if is_int8 && !self.shares_scratch() {
            let quantize = plain(self.device, "products", "quantize").map_err(|e| self.error(e))?;
            let work = Work::Threads(from.rows, from.cols / 32);
            calls.push(Call::new(quantize, words(from, to, &own[1..]), work));
        }
        let bias = self.maybe_plain(bias)?;
        for part in &packed.parts {
            let mut own = own.to_vec();
            own.extend([Word::size(part.first), Word::size(part.rows), Word::flag(is_int8)]);
            own.push(Word::flag(other.is_some()));
            own.extend(other.iter().flat_map(|other| [other.offset, other.stride].map(Word::size)));
            let few = (&few, Work::Few(to.rows, part.rows.div_ceil(FEW_OUTPUTS)));
            let tile =
                tile.as_ref().map(|tile| (tile, Work::Tiles(to.rows, part.rows.div_ceil(TILE_COLUMNS))));
            for (kernel, work) in std::iter::once(few).chain(tile) {
                let call = Call::new(kernel.clone(), words(from, to, &own), work);
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
            let few = (made("conv1d")?, Work::Few(to.rows, to.cols.div_ceil(64)));
            let tile = (made("conv1d_tile")?, Work::Tiles(to.rows, to.cols.div_ceil(TILE_COLUMNS)));
            let call =
                |(kernel, work)| Call::new(kernel, words(from, to, &own), work).weights(weights.clone());
            return Ok([few, tile].map(call).into());
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
    ) -> Result<Call, CompileError> {
        let (from, to) = (self.place(x), self.place(y));
        let own = [
            Word::flag(bias.is_some()),
            Word::size(shape.taps),
            Word::size(shape.stride),
            Word::size(shape.trim_left),
            Word::size(shape.groups),
        ];
        let kernel = plain(self.device, "products", "conv_transpose1d").map_err(|e| self.error(e))?;
        let call = Call::new(kernel, words(from, to, &own), Work::Threads(to.rows, to.cols));
        Ok(call.weights([Some(self.plain(weight)?), self.maybe_plain(bias)?]))
    }

    /// Two products: the input's part of all gates at once, then row by row the hidden row's.
    pub(super) fn lstm(&self, node: &Node, y: Value) -> Result<Vec<Call>, CompileError> {
        let Op::Lstm { w_ih, w_hh, b_ih, b_hh, hidden, direction, state } = node.op else {
            return Err(self.error(self.unsupported(&node.op, "is no recurrence")));
        };
        let made = |entry| plain(self.device, "products", entry).map_err(|e| self.error(e));
        let (x, gates) = (self.place(node.inputs[0]), 4 * hidden);
        let inputs = Place { offset: self.scratch() + 6 * hidden, stride: gates, cols: gates, rows: x.rows };
        // A convolution of one tap.
        let one = [1, 1, 1, 0, 1, 0].map(Word::Is);
        let own = [&[Word::flag(b_ih.is_some())], &one[..]].concat();
        let weights = [Some(self.plain(w_ih)?), self.maybe_plain(b_ih)?];
        let product = |(entry, work)| -> Result<Call, CompileError> {
            Ok(Call::new(made(entry)?, words(x, inputs, &own), work).weights(weights.clone()))
        };
        let few = product(("conv1d", Work::Few(x.rows, gates.div_ceil(64))))?;
        let tile = product(("conv1d_tile", Work::Tiles(x.rows, gates.div_ceil(TILE_COLUMNS))))?;
        let bits = u32::from(b_hh.is_some()) << 1 | u32::from(state.is_some()) << 2;
        let own = [
            Word::size(hidden),
            Word::flag(direction == Direction::Backward),
            Word::Is(bits),
            Word::size(self.scratch()),
        ];
        let walk = Call::new(made("lstm")?, words(x, self.place(y), &own), Work::Groups(1.into(), 1))
            .weights([Some(self.columns(w_hh)?), self.maybe_plain(b_hh)?])
            .states([state, None]);
        Ok(vec![few, tile, walk])
    }
}
