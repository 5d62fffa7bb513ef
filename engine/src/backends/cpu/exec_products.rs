//! Steps that multiply with weights: linear layers, convolutions, recurrences.

use super::exec::{Exec, Mat, Shared};
use super::kernels::float_product::{FloatProduct, Start, WidenTile};
use super::kernels::int_product::{IntProduct, IntRows, Quantize};
use super::kernels::lstm::LstmCell;
use super::kernels::rows::Depthwise;
use super::pack::{BLOCK, FloatMatrix, FloatType, TILE, Tiles, Vector};
use super::plan::{Matrix, Member, edge_rows};
use super::session::State;
use crate::graph::{ConvShape, Direction, Node, Op, Precision, StateId};

/// Multiply-adds that are worth a task of their own.
const TASK: usize = 64 * 1024;

/// Most rows of one task: what it reads of them stays in the second-level cache while it goes through the panels.
pub(super) const ROWS: usize = 256;

/// Most multiply-adds of one task of some tiles, when a tile has less: a millisecond or less, for cancelling.
const LARGEST: usize = 1 << 24;

/// Most floats of a matrix that is widened as a whole: they stay in a cache.
const WIDE: usize = 1 << 20;

/// Floats of scratch for [`Exec::widened`] when a matrix is read `uses` times.
pub(super) fn wide_floats(w: &FloatMatrix, uses: usize) -> usize {
    if w.ty == FloatType::Affine && uses >= 2 && w.floats() <= WIDE { w.floats() } else { 0 }
}

pub(super) fn bias_pointer(bias: Option<&Vector>) -> *const f32 {
    bias.map_or(std::ptr::null(), |b| b.0.as_ptr())
}

impl Exec<'_> {
    /// `members` of one input.
    ///
    /// # Safety
    /// As [`Exec::step`].
    pub(super) unsafe fn linear(&self, node: &Node, members: &[Member], precision: Precision) {
        let x = self.mat(node.inputs[0]);
        let ints = members.iter().any(|m| matches!(m.matrix, Matrix::Int(_)));
        let floats = members.iter().any(|m| matches!(m.matrix, Matrix::Float(_)));
        let max_rows = self.graph.max_rows(node.inputs[0]);
        let quantized = IntRows::at(self.scratch, max_rows.max(x.rows), x.cols);
        let mut plain = x;
        if precision == Precision::Int8 {
            let shared = Shared(self.scratch);
            self.each_row(x.rows, 4 * x.cols, |i| {
                let out = IntRows::at(shared.add(0), max_rows.max(x.rows), x.cols);
                // SAFETY: row `i` is inside; the scratch was planned for all rows.
                unsafe { self.kernel(Quantize { x: x.row(0), stride: x.stride, first: i, rows: 1, out }) };
            });
            if floats {
                // Float weights with integer activations: the integers times their scales.
                let p =
                    self.scratch.wrapping_add(IntRows::bytes(max_rows, x.cols).next_multiple_of(64)).cast();
                plain = Mat { p, stride: x.cols, ..x };
                // SAFETY: inside the scratch.
                unsafe { widen(&quantized, &plain) };
            }
        }
        debug_assert!(ints || floats || members.is_empty());
        // All members' tiles are one list of tasks.
        let tiles: usize = members.iter().map(|m| m.matrix.rows().div_ceil(TILE)).sum();
        let threads = self.device.pool.threads();
        let per_tile = TILE * x.cols * x.rows.max(1);
        let chunk =
            tiles.div_ceil(threads * 8).max(TASK.div_ceil(per_tile.max(1))).max(1).next_multiple_of(2);
        let chunk = chunk.min((LARGEST / per_tile.max(1)).max(1).next_multiple_of(2));
        let tasks: usize = members.iter().map(|m| m.matrix.rows().div_ceil(TILE).div_ceil(chunk)).sum();
        let quantized = SharedRows(quantized);
        let work = |task: usize, _: usize| {
            if self.cancelled(chunk * per_tile) {
                return;
            }
            let mut task = task;
            for member in members {
                let tiles = member.matrix.rows().div_ceil(TILE);
                let own = tiles.div_ceil(chunk);
                if task >= own {
                    task -= own;
                    continue;
                }
                let first = task * chunk;
                let tiles = chunk.min(tiles - first);
                // SAFETY: tiles are inside the matrix; each task has its own columns of the output.
                unsafe { self.member(member, &quantized, &plain, first, tiles) };
                return;
            }
        };
        if tiles * per_tile <= TASK {
            (0..tasks).for_each(|task| work(task, 0));
        } else {
            self.device.pool.run(tasks, &work);
        }
    }

    unsafe fn member(&self, member: &Member, quantized: &SharedRows, x: &Mat, first: usize, tiles: usize) {
        let out = self.mat(member.out);
        let bias = bias_pointer(member.bias.as_deref());
        // SAFETY: the caller's promise.
        unsafe {
            match &member.matrix {
                Matrix::Int(w) => self.kernel(IntProduct {
                    x: quantized.0,
                    rows: x.rows,
                    w,
                    first,
                    tiles,
                    bias,
                    c: out.p,
                    ldc: out.stride,
                }),
                Matrix::Float(w) => {
                    let columns = first * TILE;
                    let start = if bias.is_null() { Start::Zero } else { Start::Bias(bias.add(columns)) };
                    self.kernel(FloatProduct {
                        a: x.p,
                        lda: x.stride,
                        rows: x.rows,
                        k: x.cols,
                        w: w.tiles().skip_tiles(first),
                        c: out.p.add(columns),
                        ldc: out.stride,
                        cols: (tiles * TILE).min(w.rows - columns),
                        start,
                    });
                }
            }
        }
    }

    /// A product cut into tasks of some tiles and some rows.
    ///
    /// # Safety
    /// The product's pointers are good and its output overlaps nothing else.
    unsafe fn product(&self, p: FloatProduct) {
        let tiles = p.cols.div_ceil(TILE);
        let threads = self.device.pool.threads();
        if tiles * TILE * p.k * p.rows <= 2 * TASK {
            // SAFETY: the caller's promise.
            unsafe { self.kernel(p) };
            return;
        }
        let columns = 2;
        let column_tasks = tiles.div_ceil(columns);
        let row_chunks = (threads * 4).div_ceil(column_tasks).min(p.rows.div_ceil(8)).max(1);
        let rows = p.rows.div_ceil(row_chunks).next_multiple_of(8).min(ROWS);
        let row_chunks = p.rows.div_ceil(rows);
        let (shared, work) = (SharedProduct(p), columns * TILE * rows * p.k);
        self.device.pool.run(column_tasks * row_chunks, &|task, _| {
            if self.cancelled(work) {
                return;
            }
            let p = shared.get();
            let (tile, row) = (task / row_chunks * columns, task % row_chunks * rows);
            // SAFETY: a part of the whole; parts do not overlap.
            unsafe {
                self.kernel(
                    FloatProduct {
                        a: p.a.add(row * p.lda),
                        rows: rows.min(p.rows - row),
                        c: p.c.add(row * p.ldc),
                        ..p
                    }
                    .skip_tiles(tile, columns * TILE),
                );
            }
        });
    }

    /// A convolution over rows that all exist: row `t * stride + tap * dilation` of `x` is inside.
    unsafe fn conv_inside(&self, x: Mat, out: Mat, w: Tiles, bias: Option<&Vector>, shape: &ConvShape) {
        let bias = bias_pointer(bias);
        let start = if bias.is_null() { Start::Zero } else { Start::Bias(bias) };
        let whole = FloatProduct {
            a: x.p,
            lda: shape.stride * x.stride,
            rows: out.rows,
            k: shape.taps * x.cols,
            w,
            c: out.p,
            ldc: out.stride,
            cols: out.cols,
            start,
        };
        // SAFETY: the caller's promise.
        unsafe {
            if shape.dilation == 1 && x.stride == x.cols {
                // Neighbouring rows are neighbours in memory: one product whose rows overlap.
                self.product(whole);
                return;
            }
            for tap in 0..shape.taps {
                self.product(FloatProduct {
                    a: x.row(tap * shape.dilation),
                    k: x.cols,
                    w: w.skip_columns(tap * x.cols),
                    start: if tap == 0 { start } else { Start::Output },
                    ..whole
                });
            }
        }
    }

    /// # Safety
    /// As [`Exec::step`].
    pub(super) unsafe fn conv(&self, node: &Node, w: &FloatMatrix, bias: Option<&Vector>, shape: &ConvShape) {
        let (x, out) = (self.mat(node.inputs[0]), self.out(node));
        let wide =
            self.scratch.cast::<f32>().wrapping_add((edge_rows(shape) * x.cols).next_multiple_of(TILE));
        // SAFETY: as `step`; the scratch was planned for edges and weights.
        unsafe {
            let w = self.widened(w, out.rows.div_ceil(ROWS), Shared(wide));
            self.conv_rows(x, out, 0, w, bias, shape);
        }
    }

    /// Rows `first ..` of a convolution with padding into the rows of `out`. Rows that see no padding read `x` where it
    /// lies; for the few at the edges what they see is copied, with zeros, into scratch.
    ///
    /// # Safety
    /// The rows exist; the scratch is good for the input rows of an edge.
    pub(super) unsafe fn conv_rows(
        &self,
        x: Mat,
        out: Mat,
        first: usize,
        w: Tiles,
        bias: Option<&Vector>,
        shape: &ConvShape,
    ) {
        let end = first + out.rows;
        let inside = shape.pad_left.div_ceil(shape.stride);
        let beyond = (x.rows + shape.pad_left + shape.stride).saturating_sub(shape.span()) / shape.stride;
        let inside = inside.clamp(first, end);
        let beyond = beyond.clamp(inside, end);
        let rows_of = |from: usize, to: usize| Mat { p: out.row(from - first), rows: to - from, ..out };
        // SAFETY: the caller's promise.
        unsafe {
            if beyond > inside {
                let skip = inside * shape.stride - shape.pad_left;
                let seen = Mat { p: x.row(skip), rows: x.rows - skip, ..x };
                self.conv_inside(seen, rows_of(inside, beyond), w, bias, shape);
            }
            for (from, to) in [(first, inside), (beyond, end)] {
                if from == to {
                    continue;
                }
                let rows = (to - 1 - from) * shape.stride + shape.span();
                let padded = Mat { p: self.scratch.cast(), rows, cols: x.cols, stride: x.cols };
                for i in 0..rows {
                    let at = (from * shape.stride + i).checked_sub(shape.pad_left);
                    match at.filter(|&at| at < x.rows) {
                        Some(at) => padded.slice_mut(i).copy_from_slice(x.slice(at)),
                        None => padded.slice_mut(i).fill(0.0),
                    }
                }
                self.conv_inside(padded, rows_of(from, to), w, bias, shape);
            }
        }
    }

    /// The held rows and the new ones, one after the other in scratch; the last of them become the state's next value.
    ///
    /// # Safety
    /// As [`Exec::step`].
    pub(super) unsafe fn joined_with_carry(&self, node: &Node, shape: &ConvShape) -> Mat {
        let Op::Conv1dCarry { state, .. } = node.op else { return self.mat(node.inputs[0]) };
        let x = self.mat(node.inputs[0]);
        let held = shape.span() - 1;
        let joined = Mat { p: self.scratch.cast(), rows: held + x.rows, cols: x.cols, stride: x.cols };
        // SAFETY: as `step`; the scratch was planned for both parts.
        unsafe {
            let state = self.state(state);
            std::ptr::copy_nonoverlapping(state.data.as_ptr().cast(), joined.p, held * x.cols);
            for i in 0..x.rows {
                joined.slice_mut(held + i).copy_from_slice(x.slice(i));
            }
            if let Some(next) = &state.next {
                std::ptr::copy_nonoverlapping(joined.row(x.rows), next.as_ptr().cast(), held * x.cols);
            }
        }
        joined
    }

    /// # Safety
    /// As [`Exec::step`].
    pub(super) unsafe fn conv_carry(
        &self,
        node: &Node,
        w: &FloatMatrix,
        bias: Option<&Vector>,
        shape: &ConvShape,
    ) {
        // SAFETY: as `step`.
        unsafe {
            let joined = self.joined_with_carry(node, shape);
            self.conv_inside(joined, self.out(node), w.tiles(), bias, shape);
        }
    }

    /// # Safety
    /// As [`Exec::step`].
    pub(super) unsafe fn depthwise(
        &self,
        x: Mat,
        out: Mat,
        pad_left: usize,
        weights: &Vector,
        bias: Option<&Vector>,
        shape: &ConvShape,
    ) {
        let w = Shared(weights.0.as_ptr().cast_mut());
        let bias = Shared(bias_pointer(bias).cast_mut());
        self.each_row(out.rows, 2 * shape.taps * x.cols, |t| {
            // Taps whose row is inside: t * stride + tap * dilation - pad_left in 0 .. rows.
            let first = t * shape.stride;
            let from = pad_left.saturating_sub(first).div_ceil(shape.dilation).min(shape.taps);
            let end = (x.rows + pad_left).saturating_sub(first).div_ceil(shape.dilation).min(shape.taps);
            let start = x.row(0).wrapping_offset((first as isize - pad_left as isize) * x.stride as isize);
            // SAFETY: only taps inside are read; each row of the output has one task.
            unsafe {
                self.kernel(Depthwise {
                    x: start,
                    x_row: shape.dilation * x.stride,
                    from,
                    to: end.max(from),
                    w: w.add(0),
                    bias: bias.add(0),
                    y: out.row(t),
                    n: x.cols,
                });
            }
        });
    }

    /// The tiles of a matrix that is read `uses` times. 8-bit ones are widened into `wide` first: a conversion on each use
    /// takes the ports of multiply-adds, a third of the time where a use is one row.
    ///
    /// # Safety
    /// `wide` is good for [`wide_floats`].
    unsafe fn widened(&self, w: &FloatMatrix, uses: usize, wide: Shared<f32>) -> Tiles {
        if wide_floats(w, uses) == 0 {
            return w.tiles();
        }
        let tile = w.cols * TILE;
        self.each_row(w.rows.div_ceil(TILE), tile, |i| {
            let (w, out) = (w.tiles().skip_tiles(i), wide.add(i * tile));
            // SAFETY: tile `i` is inside both.
            unsafe { self.kernel(WidenTile { w, columns: tile / TILE, out }) };
        });
        Tiles::plain(wide.add(0), w.cols)
    }

    /// # Safety
    /// As [`Exec::step`].
    pub(super) unsafe fn lstm(&self, node: &Node, w_ih: &FloatMatrix, w_hh: &FloatMatrix, bias: &[f32]) {
        let Op::Lstm { hidden, direction, state, .. } = node.op else { return };
        let (x, out) = (self.mat(node.inputs[0]), self.out(node));
        let gates = self.scratch.cast::<f32>();
        let rows = gates.wrapping_add((x.rows * 4 * hidden).next_multiple_of(TILE));
        let (h, cell) = (rows, rows.wrapping_add(hidden));
        let wide = rows.wrapping_add((4 * hidden + TILE).next_multiple_of(TILE));
        let held = state.map(|s: StateId| self.state(s));
        // SAFETY: as `step`; the scratch was planned for the gates and both rows.
        unsafe {
            match held {
                Some(State { data, .. }) => {
                    std::ptr::copy_nonoverlapping(data.as_ptr().cast(), h, 2 * hidden);
                }
                None => std::slice::from_raw_parts_mut(h, 2 * hidden).fill(0.0),
            }
            // The input's share of all rows at once, then row by row the recurrence.
            let product = |a, lda, rows, k, w: Tiles, c, start| FloatProduct {
                a,
                lda,
                rows,
                k,
                w,
                c,
                ldc: 4 * hidden,
                cols: 4 * hidden,
                start,
            };
            let bias = Start::Bias(bias.as_ptr());
            self.product(product(x.p.cast_const(), x.stride, x.rows, x.cols, w_ih.tiles(), gates, bias));
            let w_hh = self.widened(w_hh, x.rows, Shared(wide));
            for i in 0..x.rows {
                if self.cancelled(2 * TASK + 16 * hidden) {
                    return;
                }
                let t = if direction == Direction::Forward { i } else { x.rows - 1 - i };
                let own = gates.add(t * 4 * hidden);
                self.product(product(h.cast_const(), hidden, 1, hidden, w_hh, own, Start::Output));
                self.kernel(LstmCell { gates: own, cell, hidden_row: h, out: out.row(t), hidden });
            }
            if let Some(next) = held.and_then(|s| s.next.as_ref()) {
                std::ptr::copy_nonoverlapping(h, next.as_ptr().cast(), 2 * hidden);
            }
        }
    }
}

/// Integers times their scales.
unsafe fn widen(x: &IntRows, out: &Mat) {
    let blocks = x.cols / BLOCK;
    for i in 0..out.rows {
        // SAFETY: `out.rows` rows are inside both, the caller's promise.
        unsafe {
            for (c, v) in out.slice_mut(i).iter_mut().enumerate() {
                let scale = *x.scales.add(i * blocks + c / BLOCK);
                *v = f32::from(*x.q.add(i * x.cols + c)) * scale;
            }
        }
    }
}

/// Quantised rows that tasks read.
struct SharedRows(IntRows);

// SAFETY: written before the region starts, only read in it.
unsafe impl Sync for SharedRows {}

/// A product that tasks take parts of.
struct SharedProduct(FloatProduct);

// SAFETY: tasks write disjoint parts of its output.
unsafe impl Sync for SharedProduct {}

impl SharedProduct {
    fn get(&self) -> FloatProduct {
        self.0
    }
}
