//! The op table: every operation a model may use, with its attributes. `reference/` gives each its meaning.
//!
//! Every value is a matrix `[rows, cols]`: rows may be symbolic (tokens, frames, samples), cols are constant
//! (channels). Rows past the actual length do not exist: reductions skip them, convolutions see zeros there.

use super::{Dim, StateId, Weight};

/// Arithmetic that a product uses for its activations. The plain twin models it too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Precision {
    /// 32-bit floats; the weights are widened.
    F32,
    /// Each run of 32 activations becomes 8-bit integers and one scale: `q = round_half_even(x * (127 / max|x|))`,
    /// `scale = max|x| / 127`. Sums of products within a block are exact integers. Both quotients and the product
    /// are correctly rounded f32, so that the integers are the same everywhere; a device that divides loosely
    /// takes a longer way.
    Int8,
}

/// A function of one number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum UnaryOp {
    /// `x / 2 * (1 + erf(x / sqrt 2))` (Hendrycks and Gimpel 2016).
    Gelu,
    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`: the approximation of the same paper, which BERT's
    /// descendants were trained with.
    GeluTanh,
    /// `max(x, 0)`.
    Relu,
    /// `x` or `slope * x` below zero.
    LeakyRelu(f32),
    /// `x / (1 + exp(-x))`.
    Silu,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// `exp(x)`.
    Exp,
    /// `sqrt(max(x, 0))`.
    Sqrt,
    /// `sin(x)`.
    Sin,
    /// `scale * x + offset`.
    Affine {
        /// Factor.
        scale: f32,
        /// Summand.
        offset: f32,
    },
}

/// A function of two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinaryOp {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`.
    Div,
    /// `a * silu(b)`: the gate is the second operand.
    MulSilu,
}

/// What stands before the first and behind the last row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PadMode {
    /// Zeros.
    Zero,
    /// The signal mirrored without repeating the edge row.
    Reflect,
    /// The edge row repeated.
    Edge,
}

/// How rotary embeddings pair the columns of a head.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RopeStyle {
    /// Column `i` turns with column `i + dim / 2` (GPT-NeoX; Qwen2, Qwen3).
    Halves,
    /// Column `2 i` turns with column `2 i + 1` (RoFormer; Llama-architecture GGUF files).
    Pairs,
}

/// Where attention finds its keys and values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyValues {
    /// Inputs 1 and 2 of the node: `[m, kv_heads * head_dim]` each; query row `i` sees all `m` rows,
    /// or with `causal` the rows up to `i`.
    Rows {
        /// Whether later rows are hidden.
        causal: bool,
    },
    /// The session's caches; row `j` of slot `s` sees cache rows `0 ..= position[s] + j`.
    Cache {
        /// Keys.
        keys: StateId,
        /// Values.
        values: StateId,
    },
    /// The session's caches; every row sees cache rows `0 .. length`.
    CacheOfLength {
        /// Keys.
        keys: StateId,
        /// Values.
        values: StateId,
        /// Number of rows that an encoder wrote.
        length: Dim,
    },
}

/// Where a cache is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CacheStart {
    /// Row `j` of slot `s` goes to cache row `position[s] + j`.
    Position,
    /// Row `j` goes to cache row `j`.
    Zero,
}

/// Direction of a recurrence over the rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From row 0 on.
    Forward,
    /// From the last real row back; output row `t` still belongs to input row `t`.
    Backward,
}

/// Geometry of a convolution along the rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConvShape {
    /// Kernel length in rows.
    pub taps: usize,
    /// Rows the window moves for each output row.
    pub stride: usize,
    /// Rows between neighbouring taps.
    pub dilation: usize,
    /// Zero rows in front.
    pub pad_left: usize,
    /// Zero rows behind.
    pub pad_right: usize,
    /// 1, or the number of channels (depth-wise).
    pub groups: usize,
}

impl ConvShape {
    /// A dense convolution with stride and dilation 1 and no padding.
    pub fn new(taps: usize) -> Self {
        Self { taps, stride: 1, dilation: 1, pad_left: 0, pad_right: 0, groups: 1 }
    }

    /// Rows one output row sees.
    pub fn span(&self) -> usize {
        self.taps.saturating_sub(1).saturating_mul(self.dilation).saturating_add(1)
    }

    /// Output rows for `rows` input rows.
    pub fn out_rows(&self, rows: Dim) -> Option<Dim> {
        let add = (self.pad_left + self.pad_right) as i64 - self.span() as i64;
        rows.affine(1, add + self.stride as i64, self.stride as i64)
    }
}

/// Geometry of a transposed convolution along the rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TransposedShape {
    /// Kernel length in rows.
    pub taps: usize,
    /// Rows the window moves for each input row.
    pub stride: usize,
    /// Rows cut off in front.
    pub trim_left: usize,
    /// Rows cut off behind; PyTorch's padding less its output padding.
    pub trim_right: usize,
    /// 1, or the number of channels (depth-wise).
    pub groups: usize,
}

impl TransposedShape {
    /// A dense transposed convolution that keeps all rows.
    pub fn new(taps: usize, stride: usize) -> Self {
        Self { taps, stride, trim_left: 0, trim_right: 0, groups: 1 }
    }

    /// Output rows for `rows` input rows: `(rows - 1) * stride + taps`, less what is cut off.
    pub fn out_rows(&self, rows: Dim) -> Option<Dim> {
        let add = self.taps as i64 - self.stride as i64 - (self.trim_left + self.trim_right) as i64;
        rows.affine(self.stride as i64, add, 1)
    }
}

/// One operation. The comment gives its inputs and its output; `n` is the run-time row count.
///
/// Token-wise ops see `slots * q` rows: row `i` belongs to slot `i / q`, the graph's slots being constant; the builder
/// refuses row counts that do not divide. Rows of a slot that is not live have no meaning in any value that depends
/// on positions or caches: they may hold anything, NaN included, and nothing of them reaches another slot or a state.
#[derive(Clone, PartialEq, Debug)]
pub enum Op {
    /// ids `[n, 1]` i32 -> `[n, d]`: rows of the table. An id outside the table gives zeros.
    Embed {
        /// `[vocabulary, d]`.
        table: Weight,
    },
    /// -> `[slots, 1]` i32: the step block's tokens.
    StepTokens,
    /// x `[m, c]`, index `[n, 1]` i32 -> `[n, c]`: rows of x by index; an index outside x gives zeros.
    Gather,
    /// x `[n, k]` -> `[n, m]`: `x W^T + bias`.
    Linear {
        /// `[m, k]`.
        weight: Weight,
        /// `[m]`.
        bias: Option<Weight>,
        /// Arithmetic of the activations.
        precision: Precision,
    },
    /// x `[n, c]` -> `[out_rows, m]`: cross-correlation along the rows, zeros outside.
    Conv1d {
        /// File layout `[m, c / groups, taps]`.
        weight: Weight,
        /// `[m]`.
        bias: Option<Weight>,
        /// Geometry.
        shape: ConvShape,
    },
    /// x `[n, c]` -> `[n, m]`: causal convolution of a stream. The state holds the last `span - 1` input rows,
    /// so that any cutting of the stream into runs gives the same output. Stride 1, no padding.
    Conv1dCarry {
        /// File layout `[m, c / groups, taps]`.
        weight: Weight,
        /// `[m]`.
        bias: Option<Weight>,
        /// Geometry (`pad_left`, `pad_right` are 0, `stride` is 1).
        shape: ConvShape,
        /// `[span - 1, c]`, recurrent, zero at the start.
        state: StateId,
    },
    /// x `[n, c]` -> `[out_rows, m]`: row `t` of x adds `W[tap]^T x[t]` to output row `t * stride + tap - trim_left`
    /// (Zeiler et al. 2010). Output rows that nothing is added to hold the bias.
    ConvTranspose1d {
        /// File layout `[c, m / groups, taps]`; with `groups == c` there is one output for each channel.
        weight: Weight,
        /// `[m]`.
        bias: Option<Weight>,
        /// Geometry.
        shape: TransposedShape,
    },
    /// x `[n, c]` -> `[n, c]`: `(x - mean) / sqrt(var + eps) * gain + bias` for each row (Ba et al. 2016).
    LayerNorm {
        /// `[c]`.
        gain: Weight,
        /// `[c]`.
        bias: Option<Weight>,
        /// Added to the variance.
        eps: f32,
    },
    /// x `[n, c]`, gain `[1, c]`, bias `[1, c]` -> `[n, c]`: `(x - mean) / sqrt(var + eps) * gain + bias` with mean and
    /// variance of each column over the real rows: instance norm (Ulyanov et al. 2016), whose gain and bias are
    /// values so that a style may give them (AdaIN, Huang and Belongie 2017).
    InstanceNorm {
        /// Added to the variance.
        eps: f32,
    },
    /// x `[n, c]` -> `[n, c]`: `x / sqrt(mean(x^2) + eps) * gain` over each group of `group` columns
    /// (Zhang and Sennrich 2019). `group == c` is the usual norm; a head's width gives Qwen3's q/k norm.
    RmsNorm {
        /// `[group]`.
        gain: Weight,
        /// Added to the mean square.
        eps: f32,
        /// Columns normalised together; divides `c`.
        group: usize,
    },
    /// x `[n, c]` -> `[n, c]`.
    Unary(UnaryOp),
    /// x `[n, c]` -> `[n, c]`: `x + sin(alpha x)^2 / alpha` with one alpha for each column (Ziyin et al. 2020).
    Snake {
        /// `[c]`, none of them zero.
        alpha: Weight,
    },
    /// a `[n, c]`, b `[n, c]` or `[1, c]` (for all rows) or `[n, 1]` (for all columns) -> `[n, c]`.
    Binary(BinaryOp),
    /// x `[n, c]` -> `[n, c]`: adds row `start + j` of the table to row `j`; `start` as for a cache.
    /// Rows past the table's end add nothing.
    AddPositions {
        /// `[positions, c]`.
        table: Weight,
        /// First table row.
        start: CacheStart,
    },
    /// x `[slots * q, heads * head_dim]` -> same: rotary embedding at `position[slot] + j` (Su et al. 2021).
    ///
    /// Angles are right to f32 at every position; a product in f32 would be off by 3e-3 at position 32768. There is
    /// no largest position to plan a table for: turns per position as a 64-bit fraction, multiplied by the
    /// position in wrapping integers, give the angle without one.
    Rope {
        /// Columns of one head.
        head_dim: usize,
        /// Pairing.
        style: RopeStyle,
        /// Base of the frequencies (`theta`).
        base: f32,
    },
    /// x `[slots * q, c]` -> nothing: writes the rows into a cache state. The value is x itself.
    CacheWrite {
        /// `[slots * context, c]`.
        state: StateId,
        /// First cache row.
        start: CacheStart,
    },
    /// q `[n, heads * head_dim]` (and keys, values for [`KeyValues::Rows`]) -> `[n, heads * head_dim]`:
    /// `softmax(q k^T * scale) v` for each head; query head `h` uses key-value head `h * kv_heads / heads`
    /// (Vaswani et al. 2017, Ainslie et al. 2023).
    Attention {
        /// Query heads.
        heads: usize,
        /// Key-value heads; divides `heads`.
        kv_heads: usize,
        /// Columns of one head.
        head_dim: usize,
        /// Factor of the scores.
        scale: f32,
        /// Where keys and values are.
        source: KeyValues,
    },
    /// x `[n, c]` -> `[n, hidden]`: long short-term memory over the rows, gates in PyTorch's order i, f, g, o.
    /// With a state the recurrence starts from it and leaves its last hidden and cell rows there.
    Lstm {
        /// `[4 hidden, c]`.
        w_ih: Weight,
        /// `[4 hidden, hidden]`.
        w_hh: Weight,
        /// `[4 hidden]`.
        b_ih: Option<Weight>,
        /// `[4 hidden]`.
        b_hh: Option<Weight>,
        /// Width of the hidden row.
        hidden: usize,
        /// Direction over the rows.
        direction: Direction,
        /// `[2, hidden]` (hidden row, cell row), recurrent; only forward.
        state: Option<StateId>,
    },
    /// x `[n, c]` -> `[1, c]`: mean over the real rows; zeros when there are none.
    MeanRows,
    /// x `[n, c]` -> `[n, c]`: softmax over each row's columns.
    Softmax,
    /// x `[n, 2 c]` -> `[n, c]`: `sqrt(x[j]^2 + x[c + j]^2)`.
    Magnitude,
    /// x `[n, c]` -> `[left + n + right, c]`. With [`PadMode::Reflect`] a position past a short signal's other
    /// end keeps mirroring.
    PadRows {
        /// Rows in front.
        left: usize,
        /// Rows behind.
        right: usize,
        /// What they hold.
        mode: PadMode,
    },
    /// x `[n, c]` -> `[rows, c]`: rows `start .. start + rows`.
    SliceRows {
        /// First row.
        start: Dim,
        /// Number of rows.
        rows: Dim,
    },
    /// x `[n, c]` -> `[times * n, c]`: every row `times` times in turn (nearest-neighbour up-sampling).
    RepeatRows {
        /// How often.
        times: usize,
    },
    /// x `[n, c]` -> `[n, cols]`: columns `start .. start + cols` (a view: nothing is copied).
    Columns {
        /// First column.
        start: usize,
        /// Number of columns.
        cols: usize,
    },
    /// a `[n, c]`, b `[n, d]`, ... -> `[n, c + d + ...]`.
    ConcatColumns,
    /// x `[slots * q, c]` -> `[slots, c]`: each slot's last row.
    LastRows,
    /// logits `[slots, v]` (and a bias `[1, v]` that is added to them) -> `[slots, 1]` i32: draws a token by the
    /// row's settings, writes it to the step block with its log-probability, and sets `done` at a stop token.
    ///
    /// Order: bias, repetition penalty, temperature, top-k, top-p, min-p; ties go to the smaller id. The
    /// log-probability is that of the biased logits before any other setting. A row that is not live keeps
    /// its token.
    ///
    /// Weights are integers, `floor(exp(x - top) * 2^31)`, so that sums do not hang on their order and no device
    /// needs 64-bit floats: with `share(s, f) = floor(s * f / 2^32)`, top-p keeps the first tokens that together
    /// reach `share(sum of all, top_p * 2^32)`, min-p those of at least `min_p * 2^31`, and the draw is the first
    /// token behind which the sum exceeds `share(sum of the kept, random bits)`. Only the last bit of `exp` may
    /// make two devices differ.
    Sample,
    /// Ends a run over token rows: each live slot's `position` grows by its `q` rows.
    Advance,
}

impl Op {
    /// The op's name in tables, logs and errors.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Embed { .. } => "embed",
            Self::StepTokens => "step_tokens",
            Self::Gather => "gather",
            Self::Linear { .. } => "linear",
            Self::Conv1d { .. } => "conv1d",
            Self::Conv1dCarry { .. } => "conv1d_carry",
            Self::ConvTranspose1d { .. } => "conv_transpose1d",
            Self::LayerNorm { .. } => "layer_norm",
            Self::InstanceNorm { .. } => "instance_norm",
            Self::RmsNorm { .. } => "rms_norm",
            Self::Unary(_) => "unary",
            Self::Snake { .. } => "snake",
            Self::Binary(_) => "binary",
            Self::AddPositions { .. } => "add_positions",
            Self::Rope { .. } => "rope",
            Self::CacheWrite { .. } => "cache_write",
            Self::Attention { .. } => "attention",
            Self::Lstm { .. } => "lstm",
            Self::MeanRows => "mean_rows",
            Self::Softmax => "softmax",
            Self::Magnitude => "magnitude",
            Self::PadRows { .. } => "pad_rows",
            Self::SliceRows { .. } => "slice_rows",
            Self::RepeatRows { .. } => "repeat_rows",
            Self::Columns { .. } => "columns",
            Self::ConcatColumns => "concat_columns",
            Self::LastRows => "last_rows",
            Self::Sample => "sample",
            Self::Advance => "advance",
        }
    }

    /// Every name of the table; the op suite checks that it has a case for each.
    pub const NAMES: [&'static str; 29] = [
        "embed",
        "step_tokens",
        "gather",
        "linear",
        "conv1d",
        "conv1d_carry",
        "conv_transpose1d",
        "layer_norm",
        "instance_norm",
        "rms_norm",
        "unary",
        "snake",
        "binary",
        "add_positions",
        "rope",
        "cache_write",
        "attention",
        "lstm",
        "mean_rows",
        "softmax",
        "magnitude",
        "pad_rows",
        "slice_rows",
        "repeat_rows",
        "columns",
        "concat_columns",
        "last_rows",
        "sample",
        "advance",
    ];
}
