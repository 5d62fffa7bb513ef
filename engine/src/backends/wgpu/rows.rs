//! Ops that work row by row, number by number, or move rows.

use super::kernel::{Call, Word, Work, plain, words};
use super::program::Compiler;
use super::weights::{Lanes, Part, kernel, table};
use crate::backends::{CompileError, CompileErrorKind};
use crate::graph::{BinaryOp, CacheStart, Dim, Node, Op, PadMode, RopeStyle, UnaryOp, Value, Weight};

/// Columns that a workgroup of instance norms has: those in the WGSL.
const NORM_COLUMNS: usize = 8;

impl Compiler<'_> {
    fn row_call(
        &self,
        entry: &'static str,
        x: Value,
        y: Value,
        own: &[Word],
        work: Work,
    ) -> Result<Call, CompileErrorKind> {
        let kernel = plain(self.device, "rows", entry)?;
        Ok(Call::new(kernel, words(self.place(x), self.place(y), own), work))
    }

    /// One thread for each number of `y`.
    fn each_number(
        &self,
        entry: &'static str,
        x: Value,
        y: Value,
        own: &[Word],
    ) -> Result<Call, CompileErrorKind> {
        let y_place = self.place(y);
        self.row_call(entry, x, y, own, Work::Threads(y_place.rows, y_place.cols))
    }

    pub(super) fn embed(&self, ids: Value, table: Weight, y: Value) -> Result<Vec<Call>, CompileError> {
        let spec = &self.graph.weights[table.index()];
        let packed = self.packed(table)?;
        let embed = kernel(self.device, packed.ty, Lanes::ANY, "embed").map_err(|e| self.error(e))?;
        let part = |part: &Part| {
            // Planes stand where a product has them.
            let own = [spec.rows, part.first, part.rows, 0, 0, 0, 0, 0, 0, part.planes[0], part.planes[1]];
            let own = own.map(Word::size);
            let work = Work::Threads(self.place(y).rows, spec.cols);
            let call = Call::new(embed.clone(), words(self.place(ids), self.place(y), &own), work);
            call.weights([Some(part.buffer.clone()), None, packed.factors.clone()])
        };
        Ok(packed.parts.iter().map(part).collect())
    }

    /// The ops of this family that need no weights.
    pub(super) fn row_op(&self, node: &Node, y: Value) -> Result<Vec<Call>, CompileErrorKind> {
        let x = node.inputs.first().copied().unwrap_or(y);
        let slots = self.graph.slots;
        let rows = self.place(x).rows;
        let one = |call: Result<Call, CompileErrorKind>| Ok(vec![call?]);
        match node.op {
            Op::StepTokens => one(self.each_number("step_tokens", y, y, &[])),
            Op::Gather => {
                let index = self.place(node.inputs[1]);
                one(self.each_number("gather", x, y, &[Word::size(index.offset), Word::size(index.stride)]))
            }
            Op::Softmax => one(self.row_call("softmax", x, y, &[], Work::Groups(rows, 1))),
            Op::Unary(op) => {
                let (code, a, b) = unary_code(op);
                one(self.each_number("unary", x, y, &[Word::Is(code), Word::float(a), Word::float(b)]))
            }
            Op::Binary(op) => {
                let b = self.place(node.inputs[1]);
                let row_stride = if b.rows == Dim::constant(1) { 0 } else { b.stride };
                let own = [
                    Word::Is(binary_code(op)),
                    Word::size(b.offset),
                    Word::size(row_stride),
                    Word::size(usize::from(b.cols > 1)),
                ];
                let Some(quantized) = self.quantized(y) else {
                    return one(self.each_number("binary", x, y, &own));
                };
                // Four numbers a thread, 256 threads a group.
                let (own, to) = ([&own[..], &quantized].concat(), self.place(y));
                one(self.row_call("binary_quantized", x, y, &own, Work::Threads(to.rows, to.cols / 16)))
            }
            Op::MeanRows => {
                let cols = self.place(y).cols;
                one(self.row_call("mean_rows", x, y, &[], Work::Threads(1.into(), cols)))
            }
            Op::Magnitude => one(self.each_number("magnitude", x, y, &[])),
            Op::PadRows { left, mode, .. } => {
                let mode = match mode {
                    PadMode::Zero => 0,
                    PadMode::Reflect => 1,
                    PadMode::Edge => 2,
                };
                one(self.each_number("pad_rows", x, y, &[Word::size(left), Word::Is(mode)]))
            }
            Op::SliceRows { start, .. } => one(self.each_number("copy_rows", x, y, &[Word::Rows(start)])),
            Op::ConcatColumns => {
                let mut column = 0;
                let mut part = |&x: &Value| {
                    let (from, mut to) = (self.place(x), self.place(y));
                    to.offset += column;
                    column += from.cols;
                    let kernel = plain(self.device, "rows", "copy_rows")?;
                    let work = Work::Threads(to.rows, from.cols);
                    Ok(Call::new(kernel, words(from, to, &[Word::Is(0)]), work))
                };
                node.inputs.iter().map(&mut part).collect()
            }
            Op::RepeatRows { times } => one(self.each_number("repeat_rows", x, y, &[Word::size(times)])),
            Op::InstanceNorm { eps } => {
                let [gain, bias] = [1, 2].map(|i| Word::size(self.place(node.inputs[i]).offset));
                let work = Work::Groups(1.into(), self.place(x).cols.div_ceil(NORM_COLUMNS));
                let wide = self.device.has_wide_groups();
                let family = if wide { "instance_norm.1024" } else { "instance_norm" };
                let kernel = plain(self.device, family, "instance_norm")?;
                let words = words(self.place(x), self.place(y), &[gain, bias, Word::float(eps)]);
                Ok(vec![Call::new(kernel, words, work)])
            }
            Op::LastRows => one(self.each_number("last_rows", x, y, &[Word::PerSlot(rows, slots)])),
            Op::Advance => {
                let own = [Word::PerSlot(rows, slots), Word::size(slots)];
                one(self.row_call("advance", x, x, &own, Work::Threads(1.into(), slots)))
            }
            Op::Rope { head_dim, style, base } => {
                let own =
                    [Word::size(head_dim), Word::PerSlot(rows, slots), Word::flag(style == RopeStyle::Pairs)];
                let work = Work::Threads(rows, self.place(x).cols / 2);
                let call = self.row_call("rope", x, y, &own, work)?;
                let turns = table(self.device, &rope_turns(head_dim, base))?;
                one(Ok(call.weights([Some(turns)])))
            }
            ref other => Err(self.unsupported(other, "is no op of rows")),
        }
    }

    pub(super) fn norm(&self, node: &Node, y: Value) -> Result<Call, CompileError> {
        let x = node.inputs[0];
        let place = self.place(x);
        let (entry, own, work, gain, bias) = match node.op {
            Op::RmsNorm { gain, eps, group } => {
                let mut own = vec![Word::size(group), Word::float(eps)];
                if let Some(quantized) = self.quantized(y) {
                    own.push(Word::flag(true));
                    own.extend(quantized);
                }
                ("rms_norm", own, Work::Groups(place.rows, place.cols / group.max(1)), gain, None)
            }
            Op::LayerNorm { gain, bias, eps } => {
                let own = vec![Word::flag(bias.is_some()), Word::float(eps)];
                ("layer_norm", own, Work::Groups(place.rows, 1), gain, bias)
            }
            ref other => return Err(self.error(self.unsupported(other, "is no norm"))),
        };
        let call = self.row_call(entry, x, y, &own, work).map_err(|e| self.error(e))?;
        Ok(call.weights([Some(self.plain(gain)?), self.maybe_plain(bias)?]))
    }

    pub(super) fn snake(&self, x: Value, alpha: Weight, y: Value) -> Result<Call, CompileError> {
        let call = self.each_number("snake", x, y, &[]).map_err(|e| self.error(e))?;
        Ok(call.weights([Some(self.plain(alpha)?)]))
    }

    pub(super) fn add_positions(
        &self,
        x: Value,
        table: Weight,
        start: CacheStart,
        y: Value,
    ) -> Result<Call, CompileError> {
        let own = [
            Word::size(self.graph.weights[table.index()].rows),
            Word::PerSlot(self.place(x).rows, self.graph.slots),
            Word::flag(start == CacheStart::Position),
        ];
        let call = self.each_number("add_positions", x, y, &own).map_err(|e| self.error(e))?;
        Ok(call.weights([Some(self.plain(table)?)]))
    }
}

/// For each pair the turns of one position as a 64-bit fraction (high word, low word): `base^(-2 i / d) / 2 pi`.
fn rope_turns(head_dim: usize, base: f32) -> Vec<u32> {
    let turns = |pair: usize| {
        let angle = f64::from(base).powf(-2.0 * pair as f64 / head_dim as f64);
        // f64 holds 53 bits: at position 2^20 the angle is good to 2^-33 turns.
        let fraction = (angle / std::f64::consts::TAU).fract();
        let high = (fraction * 4_294_967_296.0).floor();
        let low = ((fraction * 4_294_967_296.0 - high) * 4_294_967_296.0).floor();
        [high as u32, low as u32]
    };
    (0..head_dim / 2).flat_map(turns).collect()
}

fn unary_code(op: UnaryOp) -> (u32, f32, f32) {
    match op {
        UnaryOp::Gelu => (0, 0.0, 0.0),
        UnaryOp::Relu => (1, 0.0, 0.0),
        UnaryOp::LeakyRelu(slope) => (2, slope, 0.0),
        UnaryOp::Silu => (3, 0.0, 0.0),
        UnaryOp::Sigmoid => (4, 0.0, 0.0),
        UnaryOp::Tanh => (5, 0.0, 0.0),
        UnaryOp::Exp => (6, 0.0, 0.0),
        UnaryOp::Sqrt => (7, 0.0, 0.0),
        UnaryOp::Sin => (8, 0.0, 0.0),
        UnaryOp::Affine { scale, offset } => (9, scale, offset),
        UnaryOp::GeluTanh => (10, 0.0, 0.0),
    }
}

fn binary_code(op: BinaryOp) -> u32 {
    match op {
        BinaryOp::Add => 0,
        BinaryOp::Sub => 1,
        BinaryOp::Mul => 2,
        BinaryOp::Div => 3,
        BinaryOp::MulSilu => 4,
    }
}
