//! Products with weights: linear layers, convolutions, recurrences.

use super::kernel::{Call, Word, Work, plain, words};
use super::program::Compiler;
use super::weights::kernel;
use crate::backends::CompileError;
use crate::graph::{ConvShape, Direction, Node, Op, Precision, StateId, TransposedShape, Value, Weight};

/// Words of scratch memory that a node needs beside its output, at its largest.
pub(super) fn scratch_words(op: &Op, max_rows: usize, cols: usize, slots: usize) -> Option<usize> {
    match *op {
        // A word for four integers and one for each block's scale.
        Op::Linear { precision: Precision::Int8, .. } => max_rows.checked_mul(cols / 4 + cols / 32),
        Op::Lstm { hidden, .. } => hidden.checked_mul(6),
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
        let (from, to) = (self.place(x), self.place(y));
        let integers = self.scratch();
        let scales = integers + self.graph.max_rows(x) * (from.cols / 4);
        let own = [Word::flag(bias.is_some()), Word::size(integers), Word::size(scales)];
        let entry = if precision == Precision::Int8 { "linear_int8" } else { "linear_f32" };
        let linear = kernel(self.device, packed.ty, entry).map_err(|e| self.error(e))?;
        let mut calls = Vec::new();
        if precision == Precision::Int8 {
            let quantize = plain(self.device, "products", "quantize").map_err(|e| self.error(e))?;
            let work = Work::Threads(from.rows, from.cols / 32);
            calls.push(Call::new(quantize, words(from, to, &own[1..]), work));
        }
        let bias = self.maybe_plain(bias)?;
        for part in &packed.parts {
            let mut own = own.to_vec();
            own.extend([Word::size(part.first), Word::size(part.rows)]);
            let call = Call::new(linear.clone(), words(from, to, &own), Work::Threads(to.rows, part.rows));
            calls.push(call.weights([Some(part.buffer.clone()), bias.clone(), packed.factors.clone()]));
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
        let kernel = plain(self.device, "products", "conv1d").map_err(|e| self.error(e))?;
        let call = Call::new(kernel, words(from, to, &own), Work::Threads(to.rows, to.cols))
            .weights([Some(self.plain(weight)?), self.maybe_plain(bias)?])
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

    pub(super) fn lstm(&self, node: &Node, y: Value) -> Result<Call, CompileError> {
        let Op::Lstm { w_ih, w_hh, b_ih, b_hh, hidden, direction, state } = node.op else {
            return Err(self.error(self.unsupported(&node.op, "is no recurrence")));
        };
        let bits =
            u32::from(b_ih.is_some()) | u32::from(b_hh.is_some()) << 1 | u32::from(state.is_some()) << 2;
        let own = [
            Word::size(hidden),
            Word::flag(direction == Direction::Backward),
            Word::Is(bits),
            Word::size(self.scratch()),
        ];
        let kernel = plain(self.device, "products", "lstm").map_err(|e| self.error(e))?;
        let words = words(self.place(node.inputs[0]), self.place(y), &own);
        let weights = [
            Some(self.plain(w_ih)?),
            Some(self.plain(w_hh)?),
            self.maybe_plain(b_ih)?,
            self.maybe_plain(b_hh)?,
        ];
        Ok(Call::new(kernel, words, Work::Groups(1.into(), 1)).weights(weights).states([state, None]))
    }
}
