//! One method for each op, with shape inference.

use super::op::{
    BinaryOp, CacheStart, ConvShape, Direction, KeyValues, Op, PadMode, Precision, RopeStyle,
    TransposedShape, UnaryOp,
};
use super::{
    Dim, ElementType, Graph, GraphError, Node, Shape, StateId, StateKind, StateSpec, StateType, Symbol,
    SymbolInfo, Value, ValueInfo, Weight, WeightLayout, WeightSpec,
};

/// Builds a [`Graph`]. Methods never fail: the first mistake is kept and returned by [`Self::finish`].
pub struct GraphBuilder {
    graph: Graph,
    error: Option<GraphError>,
}

impl GraphBuilder {
    /// An empty graph with one slot.
    pub fn new(name: impl Into<String>) -> Self {
        Self::with_slots(name, 1)
    }

    /// An empty graph for `slots` sequences that run side by side.
    pub fn with_slots(name: impl Into<String>, slots: usize) -> Self {
        let graph = Graph {
            name: name.into(),
            slots: slots.max(1),
            symbols: Vec::new(),
            values: Vec::new(),
            weights: Vec::new(),
            states: Vec::new(),
            nodes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        Self { graph, error: None }
    }

    /// The finished graph.
    ///
    /// # Errors
    /// The first shape mistake made on the way.
    pub fn finish(self) -> Result<Graph, GraphError> {
        match self.error {
            Some(e) => Err(e),
            None => Ok(self.graph),
        }
    }

    fn fail(&mut self, op: &str, problem: String) {
        let place = self.graph.nodes.len();
        let graph = &self.graph.name;
        self.error.get_or_insert_with(|| GraphError {
            graph: graph.clone(),
            op: format!("{op} (node {place})"),
            problem,
        });
    }

    fn check(&mut self, holds: bool, op: &str, problem: impl FnOnce() -> String) {
        if !holds {
            self.fail(op, problem());
        }
    }

    fn value(&mut self, rows: Dim, cols: usize, ty: ElementType) -> Value {
        self.graph.values.push(ValueInfo { shape: Shape { rows, cols }, ty });
        Value((self.graph.values.len() - 1) as u32)
    }

    fn push(&mut self, op: Op, inputs: &[Value], rows: Dim, cols: usize) -> Value {
        self.push_typed(op, inputs, rows, cols, ElementType::F32)
    }

    fn push_typed(&mut self, op: Op, inputs: &[Value], rows: Dim, cols: usize, ty: ElementType) -> Value {
        self.check(cols > 0, op.name(), || "a value without columns".into());
        let out = self.value(rows, cols, ty);
        self.graph.nodes.push(Node { op, inputs: inputs.to_vec(), output: Some(out) });
        out
    }

    fn effect(&mut self, op: Op, inputs: &[Value]) {
        self.graph.nodes.push(Node { op, inputs: inputs.to_vec(), output: None });
    }

    fn float(&mut self, op: &str, v: Value) -> Shape {
        let info = self.graph.values[v.index()].clone();
        self.check(info.ty == ElementType::F32, op, || "needs float input".into());
        info.shape
    }

    fn weight(&mut self, name: &str, layout: WeightLayout, rows: usize, cols: usize) -> Weight {
        let spec = WeightSpec { name: name.into(), layout, rows, cols };
        let at = self.graph.weights.iter().position(|w| *w == spec).unwrap_or_else(|| {
            self.graph.weights.push(spec);
            self.graph.weights.len() - 1
        });
        Weight(at as u32)
    }

    fn vector(&mut self, name: &str, cols: usize) -> Weight {
        self.weight(name, WeightLayout::Vector, 1, cols)
    }

    fn slot_rows(&mut self, op: &str, rows: Dim) {
        let slots = self.graph.slots;
        if slots > 1 {
            self.check(rows.is_multiple_of(slots), op, || {
                format!("{rows:?} rows do not divide over {slots} slots; take `q.affine({slots}, 0, 1)` of a symbol")
            });
        }
    }

    /// A run-time row count of at most `max`.
    pub fn symbol(&mut self, name: &str, max: usize) -> Dim {
        self.graph.symbols.push(SymbolInfo { name: name.into(), max });
        Dim::symbol(Symbol((self.graph.symbols.len() - 1) as u16))
    }

    /// An input `[rows, cols]` of floats.
    pub fn input_f32(&mut self, name: &str, rows: impl Into<Dim>, cols: usize) -> Value {
        self.input(name, rows.into(), cols, ElementType::F32)
    }

    /// An input `[rows, cols]` of integers.
    pub fn input_i32(&mut self, name: &str, rows: impl Into<Dim>, cols: usize) -> Value {
        self.input(name, rows.into(), cols, ElementType::I32)
    }

    fn input(&mut self, name: &str, rows: Dim, cols: usize, ty: ElementType) -> Value {
        self.check(cols > 0, "input", || format!("`{name}` has no columns"));
        let v = self.value(rows, cols, ty);
        self.graph.inputs.push((name.into(), v));
        v
    }

    /// Marks a value as an output that the host can read.
    pub fn output(&mut self, name: &str, v: Value) {
        self.graph.outputs.push((name.into(), v));
    }

    /// A key-value cache for `context` rows of each slot.
    pub fn cache(
        &mut self,
        name: &str,
        context: usize,
        kv_heads: usize,
        head_dim: usize,
        ty: StateType,
    ) -> StateId {
        let (rows, cols) = (self.graph.slots * context, kv_heads * head_dim);
        self.state(StateSpec { name: name.into(), rows, cols, ty, kind: StateKind::Cache { head_dim } })
    }

    /// A recurrent state `[rows, cols]`, zero at the start.
    pub fn recurrent(&mut self, name: &str, rows: usize, cols: usize) -> StateId {
        self.state(StateSpec {
            name: name.into(),
            rows,
            cols,
            ty: StateType::F32,
            kind: StateKind::Recurrent,
        })
    }

    fn state(&mut self, spec: StateSpec) -> StateId {
        if let Some(at) = self.graph.states.iter().position(|s| s.name == spec.name) {
            let same = self.graph.states[at] == spec;
            self.check(same, "state", || format!("{} is declared twice, differently", spec.name));
            return StateId(at as u32);
        }
        self.graph.states.push(spec);
        StateId((self.graph.states.len() - 1) as u32)
    }

    /// [`Op::Embed`].
    pub fn embed(&mut self, ids: Value, table: &str, vocabulary: usize, cols: usize) -> Value {
        let info = self.graph.values[ids.index()].clone();
        self.check(info.ty == ElementType::I32 && info.shape.cols == 1, "embed", || {
            "needs ids [n, 1]".into()
        });
        let table = self.weight(table, WeightLayout::Matrix, vocabulary, cols);
        self.push(Op::Embed { table }, &[ids], info.shape.rows, cols)
    }

    /// [`Op::StepTokens`].
    pub fn step_tokens(&mut self) -> Value {
        let slots = self.graph.slots;
        self.push_typed(Op::StepTokens, &[], slots.into(), 1, ElementType::I32)
    }

    /// [`Op::Gather`].
    pub fn gather(&mut self, x: Value, index: Value) -> Value {
        let shape = self.float("gather", x);
        let info = self.graph.values[index.index()].clone();
        let fits = info.ty == ElementType::I32 && info.shape.cols == 1;
        self.check(fits, "gather", || "needs an index [n, 1]".into());
        self.push(Op::Gather, &[x, index], info.shape.rows, shape.cols)
    }

    /// [`Op::Linear`].
    pub fn linear(
        &mut self,
        x: Value,
        weight: &str,
        bias: Option<&str>,
        out: usize,
        precision: Precision,
    ) -> Value {
        let shape = self.float("linear", x);
        if precision == Precision::Int8 {
            self.check(shape.cols.is_multiple_of(32), "linear", || {
                format!("int8 activations need columns in blocks of 32, got {}", shape.cols)
            });
        }
        let weight = self.weight(weight, WeightLayout::Matrix, out, shape.cols);
        let bias = bias.map(|b| self.vector(b, out));
        self.push(Op::Linear { weight, bias, precision }, &[x], shape.rows, out)
    }

    fn conv_weights(
        &mut self,
        op: &str,
        x: Value,
        weight: &str,
        bias: Option<&str>,
        out: usize,
        shape: ConvShape,
    ) -> (Shape, Weight, Option<Weight>) {
        let x = self.float(op, x);
        let groups_fit = shape.groups == 1 || (shape.groups == x.cols && out.is_multiple_of(x.cols));
        self.check(groups_fit && shape.taps > 0 && shape.stride > 0 && shape.dilation > 0, op, || {
            format!("{shape:?} does not fit {} channels", x.cols)
        });
        let per_group = x.cols / shape.groups.max(1);
        let layout = WeightLayout::Conv { taps: shape.taps };
        let weight = self.weight(weight, layout, out, per_group * shape.taps);
        let bias = bias.map(|b| self.vector(b, out));
        (x, weight, bias)
    }

    /// [`Op::Conv1d`].
    pub fn conv1d(
        &mut self,
        x: Value,
        weight: &str,
        bias: Option<&str>,
        out: usize,
        shape: ConvShape,
    ) -> Value {
        let (x_shape, weight, bias) = self.conv_weights("conv1d", x, weight, bias, out, shape);
        let rows = shape.out_rows(x_shape.rows).unwrap_or_else(|| {
            self.fail("conv1d", format!("{shape:?} over {:?} rows is not affine", x_shape.rows));
            Dim::constant(0)
        });
        self.push(Op::Conv1d { weight, bias, shape }, &[x], rows, out)
    }

    /// [`Op::Conv1dCarry`]; the state is named after the weight.
    pub fn conv1d_carry(
        &mut self,
        x: Value,
        weight: &str,
        bias: Option<&str>,
        out: usize,
        shape: ConvShape,
    ) -> Value {
        let plain = shape.stride == 1 && shape.pad_left == 0 && shape.pad_right == 0;
        self.check(plain, "conv1d_carry", || "needs stride 1 and no padding".into());
        let state_name = format!("{weight}.carry");
        let (x_shape, weight, bias) = self.conv_weights("conv1d_carry", x, weight, bias, out, shape);
        let state = self.recurrent(&state_name, shape.span() - 1, x_shape.cols);
        self.push(Op::Conv1dCarry { weight, bias, shape, state }, &[x], x_shape.rows, out)
    }

    /// [`Op::ConvTranspose1d`].
    pub fn conv_transpose1d(
        &mut self,
        x: Value,
        weight: &str,
        bias: Option<&str>,
        out: usize,
        shape: TransposedShape,
    ) -> Value {
        let x_shape = self.float("conv_transpose1d", x);
        let TransposedShape { taps, stride, groups, .. } = shape;
        let groups_fit = groups == 1 || (groups == x_shape.cols && out == x_shape.cols);
        self.check(groups_fit && taps > 0 && stride > 0, "conv_transpose1d", || {
            format!("{shape:?} does not fit {} to {out} channels", x_shape.cols)
        });
        let weight = if groups == 1 {
            let layout = WeightLayout::ConvTransposed { taps, stride };
            self.weight(weight, layout, out, x_shape.cols * taps)
        } else {
            self.weight(weight, WeightLayout::Conv { taps }, out, taps)
        };
        let bias = bias.map(|b| self.vector(b, out));
        let rows = shape.out_rows(x_shape.rows).unwrap_or_else(|| {
            self.fail("conv_transpose1d", format!("{shape:?} over {:?} rows is not affine", x_shape.rows));
            Dim::constant(0)
        });
        self.push(Op::ConvTranspose1d { weight, bias, shape }, &[x], rows, out)
    }

    /// [`Op::InstanceNorm`].
    pub fn instance_norm(&mut self, x: Value, gain: Value, bias: Value, eps: f32) -> Value {
        let shape = self.float("instance_norm", x);
        let row = Shape { rows: Dim::constant(1), cols: shape.cols };
        let (g, b) = (self.float("instance_norm", gain), self.float("instance_norm", bias));
        self.check(g == row && b == row, "instance_norm", || {
            format!("gain {g:?} and bias {b:?} for {} columns", shape.cols)
        });
        self.push(Op::InstanceNorm { eps }, &[x, gain, bias], shape.rows, shape.cols)
    }

    /// [`Op::LayerNorm`].
    pub fn layer_norm(&mut self, x: Value, gain: &str, bias: Option<&str>, eps: f32) -> Value {
        let shape = self.float("layer_norm", x);
        let gain = self.vector(gain, shape.cols);
        let bias = bias.map(|b| self.vector(b, shape.cols));
        self.push(Op::LayerNorm { gain, bias, eps }, &[x], shape.rows, shape.cols)
    }

    /// [`Op::RmsNorm`] over groups of `group` columns.
    pub fn rms_norm(&mut self, x: Value, gain: &str, eps: f32, group: usize) -> Value {
        let shape = self.float("rms_norm", x);
        self.check(group > 0 && shape.cols.is_multiple_of(group), "rms_norm", || {
            format!("group {group} does not divide {} columns", shape.cols)
        });
        let gain = self.vector(gain, group);
        self.push(Op::RmsNorm { gain, eps, group }, &[x], shape.rows, shape.cols)
    }

    /// [`Op::Unary`].
    pub fn unary(&mut self, x: Value, op: UnaryOp) -> Value {
        let shape = self.float("unary", x);
        self.push(Op::Unary(op), &[x], shape.rows, shape.cols)
    }

    /// [`Op::Snake`].
    pub fn snake(&mut self, x: Value, alpha: &str) -> Value {
        let shape = self.float("snake", x);
        let alpha = self.vector(alpha, shape.cols);
        self.push(Op::Snake { alpha }, &[x], shape.rows, shape.cols)
    }

    /// [`Op::Binary`].
    pub fn binary(&mut self, a: Value, b: Value, op: BinaryOp) -> Value {
        let (sa, sb) = (self.float("binary", a), self.float("binary", b));
        let rows_fit = sb.rows == sa.rows || sb.rows == Dim::constant(1);
        let cols_fit = sb.cols == sa.cols || (sb.cols == 1 && sb.rows == sa.rows);
        self.check(rows_fit && cols_fit, "binary", || format!("{sb:?} does not spread over {sa:?}"));
        self.push(Op::Binary(op), &[a, b], sa.rows, sa.cols)
    }

    /// `a + b`.
    pub fn add(&mut self, a: Value, b: Value) -> Value {
        self.binary(a, b, BinaryOp::Add)
    }

    /// [`Op::AddPositions`] with a table of `positions` rows.
    pub fn add_positions(&mut self, x: Value, table: &str, positions: usize, start: CacheStart) -> Value {
        let shape = self.float("add_positions", x);
        self.slot_rows("add_positions", shape.rows);
        let table = self.weight(table, WeightLayout::Matrix, positions, shape.cols);
        self.push(Op::AddPositions { table, start }, &[x], shape.rows, shape.cols)
    }

    /// [`Op::Rope`].
    pub fn rope(&mut self, x: Value, head_dim: usize, style: RopeStyle, base: f32) -> Value {
        let shape = self.float("rope", x);
        self.slot_rows("rope", shape.rows);
        let fits = head_dim > 0 && head_dim.is_multiple_of(2) && shape.cols.is_multiple_of(head_dim);
        self.check(fits, "rope", || format!("heads of {head_dim} do not divide {} columns", shape.cols));
        self.push(Op::Rope { head_dim, style, base }, &[x], shape.rows, shape.cols)
    }

    /// [`Op::CacheWrite`].
    pub fn cache_write(&mut self, x: Value, state: StateId, start: CacheStart) {
        let shape = self.float("cache_write", x);
        self.slot_rows("cache_write", shape.rows);
        let spec = self.graph.states[state.index()].clone();
        let fits = spec.cols == shape.cols && matches!(spec.kind, StateKind::Cache { .. });
        self.check(fits, "cache_write", || format!("{} columns into {spec:?}", shape.cols));
        self.effect(Op::CacheWrite { state, start }, &[x]);
    }

    /// [`Op::Attention`] of `q` over the session's caches.
    pub fn attention_cached(
        &mut self,
        q: Value,
        heads: usize,
        kv_heads: usize,
        scale: f32,
        source: KeyValues,
    ) -> Value {
        let shape = self.float("attention", q);
        self.slot_rows("attention", shape.rows);
        let (KeyValues::Cache { keys, values } | KeyValues::CacheOfLength { keys, values, .. }) = source
        else {
            self.fail("attention", "needs caches".into());
            return q;
        };
        let head_dim = shape.cols / heads.max(1);
        for state in [keys, values] {
            let spec = self.graph.states[state.index()].clone();
            let fits = spec.cols == kv_heads * head_dim && spec.kind == StateKind::Cache { head_dim };
            self.check(fits, "attention", || format!("{kv_heads} heads of {head_dim} in {spec:?}"));
        }
        self.attention_op(&[q], shape, heads, kv_heads, scale, source)
    }

    /// [`Op::Attention`] of `q` over the rows of `k` and `v`.
    pub fn attention_rows(
        &mut self,
        [q, k, v]: [Value; 3],
        heads: usize,
        kv_heads: usize,
        scale: f32,
        causal: bool,
    ) -> Value {
        let shape = self.float("attention", q);
        let (ks, vs) = (self.float("attention", k), self.float("attention", v));
        let width = kv_heads * (shape.cols / heads.max(1));
        self.check(ks == vs && ks.cols == width, "attention", || {
            format!("keys {ks:?} and values {vs:?} should have {width} columns")
        });
        self.attention_op(&[q, k, v], shape, heads, kv_heads, scale, KeyValues::Rows { causal })
    }

    fn attention_op(
        &mut self,
        inputs: &[Value],
        shape: Shape,
        heads: usize,
        kv_heads: usize,
        scale: f32,
        source: KeyValues,
    ) -> Value {
        let fits = heads > 0
            && kv_heads > 0
            && heads.is_multiple_of(kv_heads.max(1))
            && shape.cols.is_multiple_of(heads.max(1));
        self.check(fits, "attention", || format!("{heads} over {kv_heads} heads in {} columns", shape.cols));
        let head_dim = shape.cols / heads.max(1);
        let op = Op::Attention { heads, kv_heads, head_dim, scale, source };
        self.push(op, inputs, shape.rows, shape.cols)
    }

    /// [`Op::Lstm`] with weights `names` = w_ih, w_hh, b_ih, b_hh.
    pub fn lstm(
        &mut self,
        x: Value,
        names: [&str; 4],
        hidden: usize,
        direction: Direction,
        state: Option<&str>,
    ) -> Value {
        let shape = self.float("lstm", x);
        self.check(state.is_none() || direction == Direction::Forward, "lstm", || {
            "a state needs the forward direction".into()
        });
        let op = Op::Lstm {
            w_ih: self.weight(names[0], WeightLayout::Matrix, 4 * hidden, shape.cols),
            w_hh: self.weight(names[1], WeightLayout::Matrix, 4 * hidden, hidden),
            b_ih: Some(self.vector(names[2], 4 * hidden)),
            b_hh: Some(self.vector(names[3], 4 * hidden)),
            hidden,
            direction,
            state: state.map(|s| self.recurrent(s, 2, hidden)),
        };
        self.push(op, &[x], shape.rows, hidden)
    }

    /// [`Op::MeanRows`].
    pub fn mean_rows(&mut self, x: Value) -> Value {
        let shape = self.float("mean_rows", x);
        self.push(Op::MeanRows, &[x], 1.into(), shape.cols)
    }

    /// [`Op::Softmax`].
    pub fn softmax(&mut self, x: Value) -> Value {
        let shape = self.float("softmax", x);
        self.push(Op::Softmax, &[x], shape.rows, shape.cols)
    }

    /// [`Op::Magnitude`].
    pub fn magnitude(&mut self, x: Value) -> Value {
        let shape = self.float("magnitude", x);
        self.check(shape.cols.is_multiple_of(2), "magnitude", || format!("odd columns: {}", shape.cols));
        self.push(Op::Magnitude, &[x], shape.rows, shape.cols / 2)
    }

    /// [`Op::PadRows`].
    pub fn pad_rows(&mut self, x: Value, left: usize, right: usize, mode: PadMode) -> Value {
        let shape = self.float("pad_rows", x);
        let rows = shape.rows.affine(1, (left + right) as i64, 1).unwrap_or_else(|| {
            self.fail("pad_rows", "row count overflows".into());
            Dim::constant(0)
        });
        self.push(Op::PadRows { left, right, mode }, &[x], rows, shape.cols)
    }

    /// [`Op::SliceRows`].
    pub fn slice_rows(&mut self, x: Value, start: impl Into<Dim>, rows: impl Into<Dim>) -> Value {
        let shape = self.float("slice_rows", x);
        let (start, rows) = (start.into(), rows.into());
        self.push(Op::SliceRows { start, rows }, &[x], rows, shape.cols)
    }

    /// [`Op::RepeatRows`].
    pub fn repeat_rows(&mut self, x: Value, times: usize) -> Value {
        let shape = self.float("repeat_rows", x);
        let rows = shape.rows.affine(times as i64, 0, 1).unwrap_or_else(|| {
            self.fail("repeat_rows", format!("{times} times {:?} rows is not affine", shape.rows));
            Dim::constant(0)
        });
        self.push(Op::RepeatRows { times }, &[x], rows, shape.cols)
    }

    /// [`Op::Columns`].
    pub fn columns(&mut self, x: Value, start: usize, cols: usize) -> Value {
        let shape = self.float("columns", x);
        let fits = start.checked_add(cols).is_some_and(|end| end <= shape.cols);
        self.check(fits, "columns", || format!("{start}+{cols} of {}", shape.cols));
        self.push(Op::Columns { start, cols }, &[x], shape.rows, cols)
    }

    /// [`Op::ConcatColumns`].
    pub fn concat_columns(&mut self, parts: &[Value]) -> Value {
        let shapes: Vec<Shape> = parts.iter().map(|&p| self.float("concat_columns", p)).collect();
        let Some(first) = shapes.first().copied() else {
            self.fail("concat_columns", "needs at least one input".into());
            return self.value(0.into(), 0, ElementType::F32);
        };
        self.check(shapes.iter().all(|s| s.rows == first.rows), "concat_columns", || {
            format!("rows differ: {shapes:?}")
        });
        let cols = shapes.iter().map(|s| s.cols).sum();
        self.push(Op::ConcatColumns, parts, first.rows, cols)
    }

    /// [`Op::LastRows`].
    pub fn last_rows(&mut self, x: Value) -> Value {
        let shape = self.float("last_rows", x);
        self.slot_rows("last_rows", shape.rows);
        let slots = self.graph.slots;
        self.push(Op::LastRows, &[x], slots.into(), shape.cols)
    }

    /// [`Op::Sample`].
    pub fn sample(&mut self, logits: Value, bias: Option<Value>) -> Value {
        let shape = self.float("sample", logits);
        let slots = self.graph.slots;
        self.check(shape.rows == Dim::constant(slots) && shape.cols > 0, "sample", || {
            format!("needs one row of logits for each of {slots} slots, got {shape:?}")
        });
        let mut inputs = vec![logits];
        if let Some(b) = bias {
            let sb = self.float("sample", b);
            let fits = sb.rows == Dim::constant(1) && sb.cols == shape.cols;
            self.check(fits, "sample", || format!("bias {sb:?} for logits {shape:?}"));
            inputs.push(b);
        }
        self.push_typed(Op::Sample, &inputs, slots.into(), 1, ElementType::I32)
    }

    /// [`Op::Advance`] by the rows of `x`.
    pub fn advance(&mut self, x: Value) {
        self.slot_rows("advance", self.graph.values[x.index()].shape.rows);
        self.effect(Op::Advance, &[x]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_mistake_is_reported_with_its_place() {
        let mut g = GraphBuilder::new("bad");
        let x = g.input_f32("x", 4, 8);
        let y = g.input_f32("y", 3, 8);
        let _ = g.add(x, y);
        let _ = g.columns(x, 7, 2);
        let e = g.finish().unwrap_err();
        assert_eq!((e.graph.as_str(), e.op.as_str()), ("bad", "binary (node 0)"));
    }

    #[test]
    fn rows_must_divide_over_slots_for_every_length() {
        let build = |rows: fn(Dim) -> Dim| {
            let mut g = GraphBuilder::with_slots("slots", 2);
            let q = g.symbol("q", 8);
            let x = g.input_f32("x", rows(q), 4);
            let y = g.rope(x, 4, RopeStyle::Halves, 1e4);
            g.output("y", y);
            g.finish()
        };
        build(|q| q.affine(2, 4, 1).unwrap()).unwrap();
        build(|_| 6.into()).unwrap();
        for rows in [|q| q, |q: Dim| q.affine(2, 1, 1).unwrap(), |_| 3.into()] {
            assert_eq!(build(rows).unwrap_err().op, "rope (node 0)");
        }
    }

    #[test]
    fn values_without_columns_are_refused() {
        let mut g = GraphBuilder::new("empty");
        let x = g.input_f32("x", 4, 8);
        g.columns(x, 3, 0);
        assert!(g.finish().is_err());
        let mut g = GraphBuilder::new("empty");
        g.input_f32("x", 4, 0);
        assert!(g.finish().is_err());
    }

    #[test]
    fn strided_convolutions_give_affine_rows() {
        let mut g = GraphBuilder::new("conv");
        let n = g.symbol("frames", 3000);
        let x = g.input_f32("mel", n, 80);
        let shape = ConvShape { stride: 2, pad_left: 1, pad_right: 1, ..ConvShape::new(3) };
        let y = g.conv1d(x, "w", None, 512, shape);
        g.output("y", y);
        let g = g.finish().unwrap();
        for rows in [1, 2, 3, 999, 3000] {
            assert_eq!(g.shape(y).rows.eval(&[rows]), Some(rows.div_ceil(2)));
        }
    }

    #[test]
    fn states_are_shared_by_name_and_must_agree() {
        let mut g = GraphBuilder::new("s");
        let a = g.recurrent("h", 2, 8);
        assert_eq!(a, g.recurrent("h", 2, 8));
        g.recurrent("h", 2, 9);
        assert!(g.finish().is_err());
    }
}
