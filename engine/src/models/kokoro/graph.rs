//! The three programs of Kokoro; names of weights are those of the published checkpoint.
//!
//! | program | rows | from | to |
//! |---|---|---|---|
//! | [`text`] | n tokens | tokens, style | how long each token sounds, and what it means for prosody and for sound |
//! | [`prosody`] | T frames | what tokens mean, which token a frame belongs to | pitch and energy, two values a frame |
//! | [`audio`] | T frames | the same, and the harmonic source | 600 samples a frame |

use crate::blocks::bidirectional_lstm;
use crate::graph::{
    BinaryOp, CacheStart, ConvShape, Dim, Graph, GraphBuilder, GraphError, PadMode, Precision,
    TransposedShape, UnaryOp, Value,
};

use super::source::{BINS, FFT, HOP};
use super::voice::STYLE;

/// Most tokens of a text with its two pads: rows of the table of positions.
pub const MAX_TOKENS: usize = 512;
/// Most frames of one run: 51 s.
pub const MAX_FRAMES: usize = 2048;
/// Samples of a frame: two pitch values of 300 samples.
pub const FRAME_SAMPLES: usize = 600;
/// Symbols of the published vocabulary.
pub(super) const VOCABULARY: usize = 178;
/// Columns of a token's duration: their sum is the token's length in frames.
pub(super) const MAX_DURATION: usize = 50;
/// What each of decoder and predictors gets of a voice's row.
pub(super) const HALF_STYLE: usize = STYLE / 2;
/// Width of what a token means for its sound.
const SOUND: usize = 512;
/// The same for prosody, the style behind it.
const PROSODY: usize = 512 + HALF_STYLE;
/// Variances below this are noise.
const EPS: f32 = 1e-5;

/// Derived weight: positions with the embedding of the first sentence added, which every token has.
pub(super) const POSITIONS: &str = "derived.positions";
/// Derived weight: 512 ones.
pub(super) const ONES: &str = "derived.ones";
/// Derived weight: the inverse Fourier transform with its window and the windows' sum, `[22, 1, 20]`.
pub(super) const INVERSE: &str = "derived.inverse";

/// ALBERT (Lan et al. 2020): one layer, used twelve times.
fn albert(g: &mut GraphBuilder, tokens: Value) -> Value {
    let linear = |g: &mut GraphBuilder, x, name: &str, out| {
        g.linear(x, &format!("{name}.weight"), Some(&format!("{name}.bias")), out, Precision::F32)
    };
    let norm = |g: &mut GraphBuilder, x, name: &str| {
        g.layer_norm(x, &format!("{name}.weight"), Some(&format!("{name}.bias")), 1e-12)
    };
    let words = g.embed(tokens, "bert.embeddings.word_embeddings.weight", VOCABULARY, 128);
    let x = g.add_positions(words, POSITIONS, MAX_TOKENS, CacheStart::Zero);
    let x = norm(g, x, "bert.embeddings.LayerNorm");
    let mut x = linear(g, x, "bert.encoder.embedding_hidden_mapping_in", 768); // [n, 768]
    let layer = "bert.encoder.albert_layer_groups.0.albert_layers.0";
    for _ in 0..12 {
        let [q, k, v] =
            ["query", "key", "value"].map(|p| linear(g, x, &format!("{layer}.attention.{p}"), 768));
        let heard = g.attention_rows([q, k, v], 12, 12, 0.125, false);
        let heard = linear(g, heard, &format!("{layer}.attention.dense"), 768);
        let heard = g.add(x, heard);
        let heard = norm(g, heard, &format!("{layer}.attention.LayerNorm"));
        let up = linear(g, heard, &format!("{layer}.ffn"), 2048);
        let up = g.unary(up, UnaryOp::GeluTanh);
        let down = linear(g, up, &format!("{layer}.ffn_output"), 768);
        let sum = g.add(down, heard);
        x = norm(g, sum, &format!("{layer}.full_layer_layer_norm"));
    }
    linear(g, x, "bert_encoder", 512)
}

/// The text encoder of StyleTTS 2 (Li et al. 2023): convolutions and an LSTM, `[n, 512]`.
fn text_encoder(g: &mut GraphBuilder, tokens: Value) -> Value {
    let mut x = g.embed(tokens, "text_encoder.embedding.weight", VOCABULARY, SOUND);
    for layer in 0..3 {
        let name = format!("text_encoder.cnn.{layer}");
        let shape = ConvShape { pad_left: 2, pad_right: 2, ..ConvShape::new(5) };
        x = g.conv1d(x, &format!("{name}.0.weight"), Some(&format!("{name}.0.bias")), SOUND, shape);
        x = g.layer_norm(x, &format!("{name}.1.gamma"), Some(&format!("{name}.1.beta")), EPS);
        x = g.unary(x, UnaryOp::LeakyRelu(0.2));
    }
    bidirectional_lstm(g, x, "text_encoder.lstm", SOUND / 2)
}

/// The program over tokens. Inputs `tokens` `[n, 1]`, `style` `[1, 128]` (the second half of a voice's row) and `first`
/// `[n, 1]`, zeros that spread the style over the rows. Outputs `duration` `[n, 50]`, `prosody` `[n, 640]` and `sound`
/// `[n, 512]`.
///
/// # Errors
/// Never for these sizes; the builder reports mistakes that way.
pub fn text() -> Result<Graph, GraphError> {
    let mut g = GraphBuilder::new("kokoro.text");
    let n = g.symbol("tokens", MAX_TOKENS);
    let tokens = g.input_i32("tokens", n, 1);
    let style = g.input_f32("style", 1, HALF_STYLE);
    let first = g.input_i32("first", n, 1);
    let layers = [1, 3, 5].map(|i| format!("predictor.text_encoder.lstms.{i}"));
    let styles = Styles::new(&mut g, style, layers.map(|name| (name, 512)).into());
    let d_en = albert(&mut g, tokens);
    let spread = g.gather(style, first); // [n, 128]
    let mut x = g.concat_columns(&[d_en, spread]); // [n, 640]
    for layer in [0, 2, 4] {
        let y = bidirectional_lstm(&mut g, x, &format!("predictor.text_encoder.lstms.{layer}"), 256);
        let [gain, bias] = styles.of(&format!("predictor.text_encoder.lstms.{}", layer + 1));
        let y = g.layer_norm(y, ONES, None, EPS);
        let y = g.binary(y, gain, BinaryOp::Mul);
        let y = g.add(y, bias);
        x = g.concat_columns(&[y, spread]);
    }
    let y = bidirectional_lstm(&mut g, x, "predictor.lstm", 256);
    let name = "predictor.duration_proj.linear_layer";
    let bias = format!("{name}.bias");
    let y = g.linear(y, &format!("{name}.weight"), Some(&bias), MAX_DURATION, Precision::F32);
    let y = g.unary(y, UnaryOp::Sigmoid);
    g.output("duration", y);
    g.output("prosody", x);
    let sound = text_encoder(&mut g, tokens);
    g.output("sound", sound);
    g.finish()
}

/// Gains and biases that a style gives, by module.
struct Styles(Vec<(String, [Value; 2])>);

impl Styles {
    /// One product for each of `modules` (name, columns), all of them in a row so that a backend may join them.
    fn new(g: &mut GraphBuilder, style: Value, modules: Vec<(String, usize)>) -> Self {
        let products: Vec<Value> = modules
            .iter()
            .map(|(name, cols)| {
                let bias = format!("{name}.fc.bias");
                g.linear(style, &format!("{name}.fc.weight"), Some(&bias), 2 * cols, Precision::F32)
            })
            .collect();
        let split = |((name, cols), product): ((String, usize), Value)| {
            let gain = g.columns(product, 0, cols);
            let gain = g.unary(gain, UnaryOp::Affine { scale: 1.0, offset: 1.0 });
            (name, [gain, g.columns(product, cols, cols)])
        };
        Self(modules.into_iter().zip(products).map(split).collect())
    }

    fn of(&self, module: &str) -> [Value; 2] {
        // The lists of modules and the graphs stand side by side in this file.
        self.0.iter().find(|(name, _)| name == module).map_or_else(|| unreachable!("{module}"), |(_, v)| *v)
    }

    /// Adaptive instance norm of `x` by the module's gain and bias.
    fn norm(&self, g: &mut GraphBuilder, x: Value, module: &str) -> Value {
        let [gain, bias] = self.of(module);
        g.instance_norm(x, gain, bias, EPS)
    }
}

/// A residual block whose norms a style moves.
struct StyledBlock {
    name: String,
    from: usize,
    to: usize,
    /// Doubles the rows.
    upsample: bool,
}

impl StyledBlock {
    fn new(name: impl Into<String>, from: usize, to: usize) -> Self {
        Self { name: name.into(), from, to, upsample: false }
    }

    fn upsampling(self) -> Self {
        Self { upsample: true, ..self }
    }

    fn styles(&self) -> [(String, usize); 2] {
        [(format!("{}.norm1", self.name), self.from), (format!("{}.norm2", self.name), self.to)]
    }

    fn apply(&self, g: &mut GraphBuilder, styles: &Styles, x: Value) -> Value {
        let Self { name, from, to, upsample } = self;
        let conv = |g: &mut GraphBuilder, x, part: &str| {
            let shape = ConvShape { pad_left: 1, pad_right: 1, ..ConvShape::new(3) };
            g.conv1d(x, &format!("{name}.{part}.weight"), Some(&format!("{name}.{part}.bias")), *to, shape)
        };
        let mut y = styles.norm(g, x, &format!("{name}.norm1"));
        y = g.unary(y, UnaryOp::LeakyRelu(0.2));
        if *upsample {
            let shape = TransposedShape { trim_left: 1, groups: *from, ..TransposedShape::new(3, 2) };
            let bias = format!("{name}.pool.bias");
            y = g.conv_transpose1d(y, &format!("{name}.pool.weight"), Some(&bias), *from, shape);
        }
        y = conv(g, y, "conv1");
        y = styles.norm(g, y, &format!("{name}.norm2"));
        y = g.unary(y, UnaryOp::LeakyRelu(0.2));
        y = conv(g, y, "conv2");
        // Repeating rows behind the product gives the same numbers as in front of it, for half the work.
        let mut short = x;
        if from != to {
            short = g.conv1d(short, &format!("{name}.conv1x1.weight"), None, *to, ConvShape::new(1));
        }
        if *upsample {
            short = g.repeat_rows(short, 2);
        }
        let sum = g.add(y, short);
        g.unary(sum, UnaryOp::Affine { scale: std::f32::consts::FRAC_1_SQRT_2, offset: 0.0 })
    }
}

/// The program over frames that finds pitch and energy. Inputs `prosody` `[n, 640]`, `token` `[T, 1]` (the token of each
/// frame) and `style` `[1, 128]`. Outputs `pitch` in Hz and `energy`, `[2 T, 1]`.
///
/// # Errors
/// As [`text`].
pub fn prosody() -> Result<Graph, GraphError> {
    let mut g = GraphBuilder::new("kokoro.prosody");
    let n = g.symbol("tokens", MAX_TOKENS);
    let frames = g.symbol("frames", MAX_FRAMES);
    let tokens = g.input_f32("prosody", n, PROSODY);
    let token = g.input_i32("token", frames, 1);
    let style = g.input_f32("style", 1, HALF_STYLE);
    let blocks = ["F0", "N"].map(|part| {
        let name = |i| format!("predictor.{part}.{i}");
        [
            StyledBlock::new(name(0), 512, 512),
            StyledBlock::new(name(1), 512, 256).upsampling(),
            StyledBlock::new(name(2), 256, 256),
        ]
    });
    let modules = blocks.iter().flatten().flat_map(StyledBlock::styles).collect();
    let styles = Styles::new(&mut g, style, modules);
    let x = g.gather(tokens, token); // [T, 640]
    let x = bidirectional_lstm(&mut g, x, "predictor.shared", 256);
    for (part, blocks) in ["F0", "N"].into_iter().zip(&blocks) {
        let y = blocks.iter().fold(x, |y, block| block.apply(&mut g, &styles, y));
        let name = format!("predictor.{part}_proj");
        let bias = format!("{name}.bias");
        let y = g.conv1d(y, &format!("{name}.weight"), Some(&bias), 1, ConvShape::new(1));
        g.output(if part == "F0" { "pitch" } else { "energy" }, y);
    }
    g.finish()
}

/// A residual block of the generator: three pairs of convolutions with snakes in front, dilated by 1, 3 and 5.
struct SnakeBlock {
    name: String,
    channels: usize,
    taps: usize,
}

impl SnakeBlock {
    fn new(name: impl Into<String>, channels: usize, taps: usize) -> Self {
        Self { name: name.into(), channels, taps }
    }

    fn styles(&self) -> impl Iterator<Item = (String, usize)> + '_ {
        (0..3).flat_map(|i| [1, 2].map(|j| (format!("{}.adain{j}.{i}", self.name), self.channels)))
    }

    fn apply(&self, g: &mut GraphBuilder, styles: &Styles, mut x: Value) -> Value {
        let Self { name, channels, taps } = self;
        for (i, dilation) in [1, 3, 5].into_iter().enumerate() {
            let mut y = x;
            for (j, dilation) in [(1, dilation), (2, 1)] {
                y = styles.norm(g, y, &format!("{name}.adain{j}.{i}"));
                y = g.snake(y, &format!("{name}.alpha{j}.{i}"));
                let pad = (taps - 1) / 2 * dilation;
                let shape = ConvShape { dilation, pad_left: pad, pad_right: pad, ..ConvShape::new(*taps) };
                let conv = format!("{name}.convs{j}.{i}");
                let bias = format!("{conv}.bias");
                y = g.conv1d(y, &format!("{conv}.weight"), Some(&bias), *channels, shape);
            }
            x = g.add(y, x);
        }
        x
    }
}

/// The program over frames that makes sound. Inputs `sound` `[n, 512]`, `token` `[T, 1]`, `pitch` and `energy`
/// `[2 T, 1]`, `source` `[120 T + 1, 22]` (magnitudes, then phases), `style` `[1, 128]` (the first half of a voice's
/// row). Output `audio` `[600 T + 20, 1]`: the first and last ten samples are for the caller to cut off.
///
/// # Errors
/// As [`text`].
pub fn audio() -> Result<Graph, GraphError> {
    let mut g = GraphBuilder::new("kokoro.audio");
    let n = g.symbol("tokens", MAX_TOKENS);
    let frames = g.symbol("frames", MAX_FRAMES);
    let times = |k: i64, add: i64| frames.affine(k, add, 1).unwrap_or(Dim::constant(0));
    let tokens = g.input_f32("sound", n, SOUND);
    let token = g.input_i32("token", frames, 1);
    let pitch = g.input_f32("pitch", times(2, 0), 1);
    let energy = g.input_f32("energy", times(2, 0), 1);
    let source = g.input_f32("source", times((FRAME_SAMPLES / HOP) as i64, 1), 2 * BINS);
    let style = g.input_f32("style", 1, HALF_STYLE);

    let encode = StyledBlock::new("decoder.encode", SOUND + 2, 1024);
    let decode = [0, 1, 2].map(|i| StyledBlock::new(format!("decoder.decode.{i}"), 1024 + 66, 1024));
    let last = StyledBlock::new("decoder.decode.3", 1024 + 66, 512).upsampling();
    let generator = |part: &str, i| format!("decoder.generator.{part}.{i}");
    let noise = [(256, 7), (128, 11)].into_iter().enumerate();
    let noise: Vec<_> = noise
        .map(|(i, (channels, taps))| SnakeBlock::new(generator("noise_res", i), channels, taps))
        .collect();
    let block = |i: usize| SnakeBlock::new(generator("resblocks", i), [256, 128][i / 3], [3, 7, 11][i % 3]);
    let blocks: Vec<_> = (0..6).map(block).collect();
    let styled = [&encode].into_iter().chain(&decode).chain([&last]).flat_map(StyledBlock::styles);
    let snakes = noise.iter().chain(&blocks).flat_map(SnakeBlock::styles);
    let styles = Styles::new(&mut g, style, styled.chain(snakes).collect());

    // The decoder: what tokens sound like, pitch and energy, [T, 512 + 2].
    let sound = g.gather(tokens, token);
    let halve = ConvShape { stride: 2, pad_left: 1, pad_right: 1, ..ConvShape::new(3) };
    let pitch = g.conv1d(pitch, "decoder.F0_conv.weight", Some("decoder.F0_conv.bias"), 1, halve);
    let energy = g.conv1d(energy, "decoder.N_conv.weight", Some("decoder.N_conv.bias"), 1, halve);
    let x = g.concat_columns(&[sound, pitch, energy]);
    let mut x = encode.apply(&mut g, &styles, x); // [T, 1024]
    let residue = ConvShape::new(1);
    let residue = g.conv1d(sound, "decoder.asr_res.0.weight", Some("decoder.asr_res.0.bias"), 64, residue);
    for block in decode.iter().chain([&last]) {
        let joined = g.concat_columns(&[x, residue, pitch, energy]);
        x = block.apply(&mut g, &styles, joined);
    }

    // The generator: [2 T, 512] to [20 T, 256] to [120 T + 1, 128].
    let windows =
        [ConvShape { stride: 6, pad_left: 3, pad_right: 3, ..ConvShape::new(12) }, ConvShape::new(1)];
    for (i, (channels, stride)) in [(256, 10), (128, 6)].into_iter().enumerate() {
        x = g.unary(x, UnaryOp::LeakyRelu(0.1));
        let [name, bias] = ["weight", "bias"].map(|p| format!("{}.{p}", generator("noise_convs", i)));
        let from_source = g.conv1d(source, &name, Some(&bias), channels, windows[i]);
        let from_source = noise[i].apply(&mut g, &styles, from_source);
        let trim = stride / 2;
        let up =
            TransposedShape { trim_left: trim, trim_right: trim, ..TransposedShape::new(2 * stride, stride) };
        let [name, bias] = ["weight", "bias"].map(|p| format!("{}.{p}", generator("ups", i)));
        x = g.conv_transpose1d(x, &name, Some(&bias), channels, up);
        if i == 1 {
            x = g.pad_rows(x, 1, 0, PadMode::Reflect);
        }
        x = g.add(x, from_source);
        let mut sum = blocks[3 * i].apply(&mut g, &styles, x);
        for block in &blocks[3 * i + 1..3 * i + 3] {
            let y = block.apply(&mut g, &styles, x);
            sum = g.add(sum, y);
        }
        x = g.unary(sum, UnaryOp::Affine { scale: 1.0 / 3.0, offset: 0.0 });
    }
    x = g.unary(x, UnaryOp::LeakyRelu(0.01));
    let post = ConvShape { pad_left: 3, pad_right: 3, ..ConvShape::new(7) };
    let bias = "decoder.generator.conv_post.bias";
    x = g.conv1d(x, "decoder.generator.conv_post.weight", Some(bias), 2 * BINS, post);

    // Magnitude and phase to real and imaginary parts, and back to samples.
    let magnitude = g.columns(x, 0, BINS);
    let magnitude = g.unary(magnitude, UnaryOp::Exp);
    let phase = g.columns(x, BINS, BINS);
    let phase = g.unary(phase, UnaryOp::Sin);
    let quarter = g.unary(phase, UnaryOp::Affine { scale: 1.0, offset: std::f32::consts::FRAC_PI_2 });
    let cos = g.unary(quarter, UnaryOp::Sin);
    let sin = g.unary(phase, UnaryOp::Sin);
    let real = g.binary(magnitude, cos, BinaryOp::Mul);
    let imaginary = g.binary(magnitude, sin, BinaryOp::Mul);
    let spectrum = g.concat_columns(&[real, imaginary]);
    let audio = g.conv_transpose1d(spectrum, INVERSE, None, 1, TransposedShape::new(FFT, HOP));
    g.output("audio", audio);
    g.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_follow_tokens_and_frames() {
        let text = text().unwrap();
        let shapes: Vec<_> = text.outputs.iter().map(|(_, v)| text.shape(*v)).collect();
        assert_eq!(shapes.iter().map(|s| s.cols).collect::<Vec<_>>(), [50, 640, 512]);
        assert!(shapes.iter().all(|s| s.rows.eval(&[33]) == Some(33)));
        let prosody = prosody().unwrap();
        assert!(prosody.outputs.iter().all(|(_, v)| prosody.shape(*v).rows.eval(&[33, 86]) == Some(172)));
        let audio = audio().unwrap();
        assert_eq!(audio.shape(audio.outputs[0].1).rows.eval(&[33, 86]), Some(86 * 600 + 20));
    }
}
