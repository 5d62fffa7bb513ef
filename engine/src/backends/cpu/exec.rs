//! What each step does: rows, moves, attention, recurrences, sampling. Products are in `exec_products`.

use super::Device;
use super::kernels::attention::{Attend, MAX_ROWS, PackKeys, PackValues};
use super::kernels::rows::{Accumulate, Binary, LayerNorm, Magnitude, RmsNorm, Softmax, Unary};
use super::pack::{FloatType, TILE};
use super::plan::{Plan, Step, Work};
use super::session::{Layout, State};
use super::simd::{Kernel, dispatch};
use crate::backends::CancelToken;
use crate::graph::{CacheStart, Graph, KeyValues, Node, Op, RopeStyle, StateId, StepRow, Value};
use crate::reference::{draw, pad_source};

/// Numbers below which a step is not worth waking the workers for.
const SMALL: usize = 16 * 1024;

/// Most operations of one task: less than a millisecond, so that a cancelled run stops soon.
const LARGE: usize = 1 << 22;

/// A value at run time.
#[derive(Clone, Copy)]
pub(super) struct Mat {
    pub(super) p: *mut f32,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) stride: usize,
}

// SAFETY: a pointer into the workspace; tasks write disjoint rows or columns of it.
unsafe impl Send for Mat {}
// SAFETY: as above.
unsafe impl Sync for Mat {}

impl Mat {
    #[inline]
    pub(super) fn row(&self, i: usize) -> *mut f32 {
        self.p.wrapping_add(i * self.stride)
    }

    /// Row `i` as a slice.
    ///
    /// # Safety
    /// The row is inside and nobody writes it meanwhile.
    pub(super) unsafe fn slice(&self, i: usize) -> &[f32] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.row(i), self.cols) }
    }

    /// Row `i` as a mutable slice.
    ///
    /// # Safety
    /// The row is inside and nobody else uses it meanwhile.
    #[allow(clippy::mut_from_ref)] // rows are disjoint; each task has its own
    pub(super) unsafe fn slice_mut(&self, i: usize) -> &mut [f32] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.row(i), self.cols) }
    }
}

/// A raw pointer that tasks may share; each use says why that is right.
#[derive(Clone, Copy)]
pub(super) struct Shared<T>(pub(super) *mut T);

// SAFETY: tasks use disjoint parts.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    #[inline]
    pub(super) fn add(self, n: usize) -> *mut T {
        self.0.wrapping_add(n)
    }
}

/// One run.
pub(super) struct Exec<'a> {
    pub(super) graph: &'a Graph,
    pub(super) plan: &'a Plan,
    pub(super) device: &'a Device,
    pub(super) rows: &'a [usize],
    pub(super) lengths: &'a [usize],
    pub(super) values: *mut f32,
    pub(super) scratch: *mut u8,
    pub(super) worker_scratch: *mut f32,
    pub(super) states: &'a [State],
    pub(super) bound: &'a [usize],
    pub(super) steps: &'a mut [StepRow],
    pub(super) candidates: &'a mut Vec<(f32, u32)>,
    pub(super) cancel: Option<&'a CancelToken>,
}

impl Exec<'_> {
    /// Asked in front of `work` operations on one thread.
    pub(super) fn cancelled(&self, work: usize) -> bool {
        self.cancel.is_some_and(|cancel| cancel.is_cancelled_before(work))
    }

    pub(super) fn mat(&self, v: Value) -> Mat {
        let place = self.plan.places[v.index()];
        Mat {
            p: self.values.wrapping_add(place.offset),
            rows: self.rows[v.index()],
            cols: self.graph.shape(v).cols,
            stride: place.stride,
        }
    }

    /// A value of integers.
    ///
    /// # Safety
    /// The value holds integers and is not written meanwhile.
    unsafe fn ints(&self, v: Value) -> &[i32] {
        let m = self.mat(v);
        // SAFETY: the caller's promise; integer values are never views.
        unsafe { std::slice::from_raw_parts(m.p.cast(), m.rows * m.cols) }
    }

    pub(super) fn state(&self, s: StateId) -> &State {
        &self.states[self.bound[s.index()]]
    }

    /// Calls `f`, which takes `cost` operations, with each row, over the pool when there is enough to do.
    pub(super) fn each_row(&self, rows: usize, cost: usize, f: impl Fn(usize) + Sync) {
        if rows * cost < SMALL {
            (0..rows).for_each(f);
            return;
        }
        let cost = cost.max(1);
        let chunk = rows.div_ceil(self.device.pool.threads() * 4).max(SMALL.div_ceil(4 * cost));
        let chunk = chunk.min((LARGE / cost).max(1));
        let work = |task: usize, _: usize| {
            if !self.cancelled(chunk * cost) {
                (task * chunk..((task + 1) * chunk).min(rows)).for_each(&f);
            }
        };
        self.device.pool.run(rows.div_ceil(chunk), &work);
    }

    /// Runs one step.
    ///
    /// # Safety
    /// Values, scratch and states are as the plan laid them out for at least these row counts.
    pub(super) unsafe fn step(&mut self, step: &Step) {
        let node = &self.graph.nodes[step.node];
        // SAFETY: the caller's promise, for everything below.
        unsafe {
            match &step.work {
                Work::Nothing => {}
                Work::Linear { members, precision } => self.linear(node, members, *precision),
                Work::Embed { table } => {
                    let out = self.out(node);
                    for (i, &id) in self.ints(node.inputs[0]).iter().enumerate() {
                        table.read(id, out.slice_mut(i));
                    }
                }
                Work::Conv { matrix, bias, shape } => self.conv(node, matrix, bias.as_deref(), shape),
                Work::ConvCarry { matrix, bias, shape } => {
                    self.conv_carry(node, matrix, bias.as_deref(), shape);
                }
                Work::Depthwise { weights, bias, shape } => {
                    let x = self.mat(node.inputs[0]);
                    self.depthwise(x, self.out(node), shape.pad_left, weights, bias.as_deref(), shape);
                }
                Work::DepthwiseCarry { weights, bias, shape } => {
                    let joined = self.joined_with_carry(node, shape);
                    self.depthwise(joined, self.out(node), 0, weights, bias.as_deref(), shape);
                }
                Work::ConvTransposed { phases, bias, shape } => {
                    self.conv_transposed(node, phases, bias.as_ref(), shape);
                }
                Work::DepthwiseTransposed { weights, bias, shape } => {
                    self.depthwise_transposed(node, weights, bias.as_deref(), shape);
                }
                Work::InstanceNorm { then, out } => self.instance_norm(node, then.then(), *out),
                Work::Snake { factors } => self.activate(node, factors.then()),
                Work::Norm { gain, bias } => self.norm(node, &gain.0, bias.as_deref().map(|b| &b.0[..])),
                Work::AddPositions { table } => self.add_positions(node, &table.0),
                Work::Rope { frequencies } => self.rope(node, frequencies),
                Work::Lstm { w_ih, w_hh, bias } => self.lstm(node, w_ih, w_hh, &bias.0),
                Work::Plain => self.plain(node),
            }
        }
    }

    pub(super) fn out(&self, node: &Node) -> Mat {
        // Ops without an output never ask.
        node.output.map_or_else(|| self.mat(node.inputs[0]), |v| self.mat(v))
    }

    /// Runs a kernel on this machine's instruction set.
    ///
    /// # Safety
    /// The kernel's pointers are good.
    #[inline]
    pub(super) unsafe fn kernel<K: Kernel>(&self, kernel: K) -> K::Out {
        // SAFETY: the caller's promise.
        unsafe { dispatch(self.device.set, kernel) }
    }

    unsafe fn plain(&mut self, node: &Node) {
        let arg = |i: usize| node.inputs[i];
        // SAFETY: as `step`.
        unsafe {
            match node.op {
                Op::StepTokens => {
                    let out = self.out(node).p.cast::<i32>();
                    for (i, step) in self.steps.iter().enumerate() {
                        *out.add(i) = step.token;
                    }
                }
                Op::Gather => {
                    let (x, out, ids) = (self.mat(arg(0)), self.out(node), self.ints(arg(1)));
                    self.each_row(ids.len(), x.cols, |i| {
                        match usize::try_from(ids[i]).ok().filter(|&at| at < x.rows) {
                            Some(at) => out.slice_mut(i).copy_from_slice(x.slice(at)),
                            None => out.slice_mut(i).fill(0.0),
                        }
                    });
                }
                Op::Unary(op) => {
                    let (x, y) = (self.mat(arg(0)), self.out(node));
                    self.each_row(x.rows, 4 * x.cols, |i| {
                        self.kernel(Unary { x: x.row(i), y: y.row(i), n: x.cols, op });
                    });
                }
                Op::Binary(op) => {
                    let (a, b, y) = (self.mat(arg(0)), self.mat(arg(1)), self.out(node));
                    let one_row = self.graph.shape(arg(1)).rows.as_constant() == Some(1);
                    let splat = b.cols == 1 && a.cols != 1;
                    self.each_row(a.rows, 2 * a.cols, |i| {
                        let b = b.row(if one_row { 0 } else { i });
                        self.kernel(Binary { a: a.row(i), b, y: y.row(i), n: a.cols, op, splat });
                    });
                }
                Op::CacheWrite { state, start } => self.cache_write(arg(0), state, start),
                Op::Attention { .. } => self.attention(node),
                Op::MeanRows => {
                    let (x, y) = (self.mat(arg(0)), self.out(node));
                    y.slice_mut(0).fill(0.0);
                    for i in 0..x.rows {
                        let factor = if i + 1 == x.rows { 1.0 / x.rows as f32 } else { 1.0 };
                        self.kernel(Accumulate { x: x.row(i), y: y.p, n: x.cols, factor });
                    }
                }
                Op::Softmax => {
                    let (x, y) = (self.mat(arg(0)), self.out(node));
                    self.each_row(x.rows, 8 * x.cols, |i| {
                        y.slice_mut(i).copy_from_slice(x.slice(i));
                        self.kernel(Softmax { x: y.row(i), seen: x.cols, width: x.cols, scale: 1.0 });
                    });
                }
                Op::Magnitude => {
                    let (x, y) = (self.mat(arg(0)), self.out(node));
                    self.each_row(x.rows, x.cols, |i| {
                        self.kernel(Magnitude { x: x.row(i), y: y.row(i), n: y.cols });
                    });
                }
                Op::PadRows { left, mode, .. } => {
                    let (x, y) = (self.mat(arg(0)), self.out(node));
                    self.each_row(y.rows, y.cols, |i| match pad_source(i, left, x.rows, mode) {
                        Some(from) => y.slice_mut(i).copy_from_slice(x.slice(from)),
                        None => y.slice_mut(i).fill(0.0),
                    });
                }
                Op::SliceRows { start, .. } => {
                    let (x, y) = (self.mat(arg(0)), self.out(node));
                    let start = start.eval(self.lengths).unwrap_or(0);
                    self.each_row(y.rows, y.cols, |i| y.slice_mut(i).copy_from_slice(x.slice(start + i)));
                }
                Op::RepeatRows { times } => {
                    let (x, y) = (self.mat(arg(0)), self.out(node));
                    self.each_row(x.rows, times * x.cols, |i| {
                        for copy in 0..times {
                            y.slice_mut(i * times + copy).copy_from_slice(x.slice(i));
                        }
                    });
                }
                Op::ConcatColumns => {
                    let y = self.out(node);
                    let mut at = 0;
                    for &part in &node.inputs {
                        let x = self.mat(part);
                        self.each_row(x.rows, x.cols, |i| {
                            y.slice_mut(i)[at..at + x.cols].copy_from_slice(x.slice(i));
                        });
                        at += x.cols;
                    }
                }
                Op::LastRows => {
                    let (x, y) = (self.mat(arg(0)), self.out(node));
                    let q = x.rows / self.graph.slots;
                    for slot in 0..self.graph.slots {
                        if q == 0 {
                            y.slice_mut(slot).fill(0.0);
                        } else {
                            y.slice_mut(slot).copy_from_slice(x.slice(slot * q + q - 1));
                        }
                    }
                }
                Op::Sample => {
                    let logits = self.mat(arg(0));
                    let bias = node.inputs.get(1).map(|&b| self.mat(b));
                    let out = self.out(node).p.cast::<i32>();
                    for slot in 0..self.graph.slots {
                        let bias = bias.as_ref().map(|b| b.slice(0));
                        draw(&mut self.steps[slot], logits.slice(slot), bias, self.candidates);
                        *out.add(slot) = self.steps[slot].token;
                    }
                }
                Op::Advance => {
                    let q = self.rows[arg(0).index()] / self.graph.slots;
                    for step in self.steps.iter_mut().filter(|s| s.is_live()) {
                        step.position = step.position.wrapping_add(q as u32);
                    }
                }
                // The plan gives every other op its own work.
                _ => {}
            }
        }
    }

    unsafe fn norm(&self, node: &Node, gain: &[f32], bias: Option<&[f32]>) {
        let (x, y) = (self.mat(node.inputs[0]), self.out(node));
        let (gain, bias) = (Shared(gain.as_ptr().cast_mut()), bias.map(|b| Shared(b.as_ptr().cast_mut())));
        let bias = bias.unwrap_or(Shared(std::ptr::null_mut()));
        self.each_row(x.rows, 4 * x.cols, |i| {
            let (gain, bias) = (gain.add(0).cast_const(), bias);
            // SAFETY: rows are inside; gain and bias have the row's or the group's width.
            unsafe {
                match node.op {
                    Op::RmsNorm { eps, group, .. } => {
                        for at in (0..x.cols).step_by(group) {
                            let (x, y) = (x.row(i).add(at), y.row(i).add(at));
                            self.kernel(RmsNorm { x, y, n: group, gain, eps });
                        }
                    }
                    Op::LayerNorm { eps, .. } => {
                        let bias = bias.0.cast_const();
                        self.kernel(LayerNorm { x: x.row(i), y: y.row(i), n: x.cols, gain, bias, eps });
                    }
                    _ => {}
                }
            }
        });
    }

    /// First cache or table row of a slot, or none when its rows are not to be written.
    fn start_of(&self, slot: usize, start: CacheStart) -> Option<usize> {
        match start {
            CacheStart::Zero => Some(0),
            CacheStart::Position => {
                let step = &self.steps[slot];
                step.is_live().then_some(step.position as usize)
            }
        }
    }

    unsafe fn add_positions(&self, node: &Node, table: &[f32]) {
        let Op::AddPositions { start, .. } = node.op else { return };
        let (x, y) = (self.mat(node.inputs[0]), self.out(node));
        let q = (x.rows / self.graph.slots).max(1);
        let rows = table.len() / x.cols.max(1);
        let table = Shared(table.as_ptr().cast_mut());
        self.each_row(x.rows, 2 * x.cols, |i| {
            let first = match start {
                CacheStart::Zero => 0,
                CacheStart::Position => self.steps[i / q].position as usize,
            };
            let at = first + i % q;
            // SAFETY: rows are inside; the table row was checked.
            unsafe {
                if at < rows {
                    let (a, b, n) = (x.row(i), table.add(at * x.cols).cast_const(), x.cols);
                    let op = crate::graph::BinaryOp::Add;
                    self.kernel(Binary { a, b, y: y.row(i), n, op, splat: false });
                } else {
                    y.slice_mut(i).copy_from_slice(x.slice(i));
                }
            }
        });
    }

    unsafe fn rope(&self, node: &Node, frequencies: &[f32]) {
        let Op::Rope { head_dim, style, .. } = node.op else { return };
        let (x, y) = (self.mat(node.inputs[0]), self.out(node));
        let q = (x.rows / self.graph.slots).max(1);
        self.each_row(x.rows, 8 * x.cols, |i| {
            let position = self.steps[i / q].position as usize + i % q;
            // SAFETY: rows are inside.
            let (x, y) = unsafe { (x.slice(i), y.slice_mut(i)) };
            for (p, &frequency) in frequencies.iter().enumerate() {
                // The angle in f64: at position 30,000 an f32 angle is off by 2e-3.
                let (sin, cos) = (position as f64 * f64::from(frequency)).sin_cos();
                let (sin, cos) = (sin as f32, cos as f32);
                let (ia, ib) = match style {
                    RopeStyle::Halves => (p, p + head_dim / 2),
                    RopeStyle::Pairs => (2 * p, 2 * p + 1),
                };
                for head in (0..x.len()).step_by(head_dim) {
                    let (a, b) = (x[head + ia], x[head + ib]);
                    y[head + ia] = a * cos - b * sin;
                    y[head + ib] = a * sin + b * cos;
                }
            }
        });
    }

    unsafe fn cache_write(&self, x: Value, state: StateId, start: CacheStart) {
        let x = self.mat(x);
        let state = self.state(state);
        let q = (x.rows / self.graph.slots).max(1);
        self.each_row(x.rows, 2 * x.cols, |i| {
            let slot = i / q;
            let Some(first) = self.start_of(slot, start) else { return };
            // SAFETY: the context was checked before the run; each row goes to its own place.
            unsafe {
                for (col, &v) in x.slice(i).iter().enumerate() {
                    state.put(state.index(slot, first + i % q, col), v);
                }
            }
        });
    }

    unsafe fn attention(&self, node: &Node) {
        let Op::Attention { heads, kv_heads, head_dim, scale, source } = node.op else { return };
        let (q, out) = (self.mat(node.inputs[0]), self.out(node));
        let slots = self.graph.slots;
        let per_slot = q.rows / slots;
        if q.rows == 0 {
            return;
        }
        // Keys in tiles: the caches have them so; rows of a value are packed first.
        let packed = Shared(self.scratch.cast::<f32>());
        let mut packed_width = 0;
        let mut packed_values = packed;
        if let KeyValues::Rows { .. } = source {
            let (k, v) = (self.mat(node.inputs[1]), self.mat(node.inputs[2]));
            packed_width = k.rows.next_multiple_of(TILE) * head_dim;
            packed_values = Shared(packed.add(kv_heads * packed_width));
            self.each_row(2 * kv_heads, k.rows * head_dim, |task| {
                let (h, n) = (task / 2, k.rows);
                // SAFETY: inside the scratch that was planned for all heads' keys and values.
                unsafe {
                    if task % 2 == 0 {
                        let x = k.row(0).wrapping_add(h * head_dim);
                        let out = packed.add(h * packed_width);
                        self.kernel(PackKeys { x, x_row: k.stride, n, head_dim, out });
                    } else {
                        let x = v.row(0).wrapping_add(h * head_dim);
                        let out = packed_values.add(h * packed_width);
                        self.kernel(PackValues { x, x_row: v.stride, n, head_dim, out });
                    }
                }
            });
        }
        // Query rows that share keys go together: of one head over several positions in prompts and encoders, of
        // one group over its heads when writing.
        let group = heads / kv_heads;
        let by_head = per_slot >= 4 || group == 1;
        let (units, span) = if by_head { (heads, per_slot) } else { (kv_heads, group) };
        let chunks = span.div_ceil(MAX_ROWS);
        let outer = if by_head { slots } else { q.rows };
        let width = self.plan.worker_scratch;
        let scratch = Shared(self.worker_scratch);
        let work = |task: usize, worker: usize| {
            // Scores and values of at most MAX_ROWS rows, whose scores fill the scratch.
            if self.cancelled(2 * width * head_dim) {
                return;
            }
            let (at, chunk) = (task / chunks, task % chunks);
            let (at, unit) = (at / units, at % units);
            let from = chunk * MAX_ROWS;
            let rows = (span - from).min(MAX_ROWS);
            // Row, head and distance between the rows of this task.
            let (row, head, q_row, out_row) = if by_head {
                (at * per_slot + from, unit, q.stride, out.stride)
            } else {
                (at, unit * group + from, head_dim, head_dim)
            };
            let slot = row / per_slot;
            let kv = head / group;
            let mut seen = [0; MAX_ROWS];
            for (i, seen) in seen[..rows].iter_mut().enumerate() {
                let row = if by_head { row + i } else { row };
                *seen = match source {
                    KeyValues::Rows { causal } => {
                        let m = self.rows[node.inputs[1].index()];
                        if causal { (row + 1).min(m) } else { m }
                    }
                    KeyValues::Cache { .. } => self.steps[slot].position as usize + row % per_slot + 1,
                    KeyValues::CacheOfLength { length, .. } => length.eval(self.lengths).unwrap_or(0),
                };
            }
            let (keys, values, ty, value_row) = match source {
                KeyValues::Rows { .. } => {
                    let [keys, values] =
                        [packed, packed_values].map(|p| p.add(kv * packed_width).cast::<u8>());
                    (keys, values, FloatType::F32, head_dim)
                }
                KeyValues::Cache { keys, values } | KeyValues::CacheOfLength { keys, values, .. } => {
                    let (k, v) = (self.state(keys), self.state(values));
                    debug_assert!(k.layout == Layout::KeyTiles && v.layout == Layout::Rows);
                    let context = v.slot_rows;
                    seen[..rows].iter_mut().for_each(|s| *s = (*s).min(context));
                    let at = |s: &State, row: usize| {
                        s.data.as_ptr().wrapping_add(s.index(slot, row, kv * head_dim) * s.ty().bytes())
                    };
                    (at(k, 0), at(v, 0), v.ty(), v.spec.cols)
                }
            };
            let column = head * head_dim;
            // SAFETY: query rows and heads are inside; keys and values hold `seen` positions; every worker has its
            // own scratch; every task has its own part of the output.
            unsafe {
                self.kernel(Attend {
                    q: q.row(row).add(column),
                    q_row,
                    rows,
                    seen: &seen[..rows],
                    keys,
                    values,
                    ty,
                    value_row,
                    head_dim,
                    scale,
                    scores: scratch.add(worker * width),
                    out: out.row(row).add(column),
                    out_row,
                });
            }
        };
        self.device.pool.run(outer * units * chunks, &work);
    }
}

// SAFETY: the pointers lead into the workspace and the session that the run has for itself; tasks read shared parts
// and write disjoint ones.
unsafe impl Sync for Exec<'_> {}
