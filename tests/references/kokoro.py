"""Kokoro in float64: durations, prosody, pitch, the harmonic source, and samples; and how far float32 is from it.

usage: REPARTEE_REFERENCE_MODELS=FOLDER python kokoro.py    (writes kokoro.json and kokoro.bin beside this script)

The published int8 file quantises activations too; here its weights are turned back to float, `(q - zero) * scale`, and
run in plain Conv, MatMul and LSTM nodes, all in float64 (onnx_double.py). onnxruntime runs the same graph in float32: the
phase of the source adds up the pitch's rounding errors, so the whole of it is much further from float64 than its parts,
and its distance is stored beside the numbers. Two more things differ from the file:

- Its harmonic source has no noise, so the phases of silence are rounding errors. The source is computed here in
  float64 with the noise of the published code, drawn from a seed, and put in where the file has its own.
- Its inverse transform was exported for a text of one frame: nothing behind the first ten samples is divided by the
  windows' sum. The last step is done here in float64 as torch.istft does it.
"""
import json
import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper
from onnx_double import double, in_double
from shared import Arrays, short, stamp, weight, write

FILE, VOCAB = "kokoro/kokoro-int8.onnx", "kokoro/vocab.json"
CASES = {
    "short": ("ʃˈʊɹ, ˌI kæn dˈu ðæt fɔɹ ju.", "af_heart", 1.0, 1),
    "slow": ("jˈɛs, ɪt wɪl ɹˈAn.", "bm_george", 0.8, 2),
    "fast": ("lˈʊk!", "am_michael", 1.5, 3),
}
ROWS, SOURCE_ROWS = 6, 40
GENERATOR = "/decoder/decoder/generator/"
TEXT = {
    "duration": "/encoder/predictor/ReduceSum_output_0",
    "prosody": "/encoder/predictor/text_encoder/Concat_4_output_0",
    "sound": "/encoder/text_encoder/Transpose_2_output_0",
    "pitch": "/encoder/Reshape_output_0",
    "energy": "/encoder/Reshape_1_output_0",
}
SOURCE, POST = GENERATOR + "Concat_3_output_0", GENERATOR + "conv_post/Conv_output_0"


def dequantised():
    """The graph with float weights, and the tensors by name."""
    net = onnx.load(weight(*FILE.split("/")))
    g = net.graph
    init = {t.name: numpy_helper.to_array(t) for t in g.initializer}
    made = {o: n for n in g.node for o in n.output}
    users = {}
    for n in g.node:
        for i in n.input:
            users.setdefault(i, []).append(n)
    nodes, gone = [], set()

    def float_tensor(name, values):
        if name not in init:
            init[name] = np.ascontiguousarray(values, dtype=np.float32)
            g.initializer.append(numpy_helper.from_array(init[name], name))
        return name

    def tail(n):
        """(nodes behind an integer product, its bias, the weight's scale, the last node)."""
        behind, bias, at = [], [], n
        while True:
            (user,) = users[at.output[0]]
            behind.append(user)
            if user.op_type == "Mul":
                scales = made[next(i for i in user.input if i != at.output[0])]
                return behind, bias, init[next(i for i in scales.input if i in init)], user
            if user.op_type == "Add":  # the bias as integers: floor(bias / scale)
                back = made[next(i for i in user.input if i != at.output[0])]
                while back.op_type != "Div":
                    back = made[back.input[0]]
                bias = [back.input[0]]
            at = user

    for n in g.node:
        if n.op_type in ("ConvInteger", "MatMulInteger") and n.input[1] in init:
            behind, bias, scale, last = tail(n)
            gone |= {id(b) for b in behind}
            w = init[n.input[1]].astype(np.float32)
            zero = init[n.input[3]].astype(np.float32) if len(n.input) > 3 and n.input[3] else np.float32(0)
            name = float_tensor(n.input[1] + "/float", (w - zero) * scale)
            op = "Conv" if n.op_type == "ConvInteger" else "MatMul"
            new = helper.make_node(op, [made[n.input[0]].input[0], name, *bias], [last.output[0]], name=n.name)
            new.attribute.extend(n.attribute)
            nodes.append(new)
        elif n.op_type == "DynamicQuantizeLSTM":
            names = []
            for w, s, z in ((1, 8, 9), (2, 10, 11)):
                scale, zero = (init[n.input[i]].astype(np.float32).reshape(-1, 1, 1) for i in (s, z))
                w = (init[n.input[w]].astype(np.float32) - zero) * scale
                names.append(float_tensor(f"{n.name}/float{s}", w.transpose(0, 2, 1)))
            new = helper.make_node("LSTM", [n.input[0], *names, *n.input[3:8]], list(n.output), name=n.name)
            new.attribute.extend(n.attribute)
            nodes.append(new)
        else:
            nodes.append(n)
    nodes = [n for n in nodes if id(n) not in gone]
    ready = {i.name for i in g.input} | set(init) | {""}
    ordered, waiting = [], nodes
    while waiting:
        later = []
        for n in waiting:
            if all(i in ready for i in n.input):
                ordered.append(n)
                ready |= set(n.output)
            else:
                later.append(n)
        assert len(later) < len(waiting), "a cycle"
        waiting = later
    del g.node[:]
    g.node.extend(ordered)
    return net, init


def with_source(net):
    """The graph with the harmonic source as an input."""
    changed = onnx.ModelProto()
    changed.CopyFrom(net)
    changed.graph.input.append(helper.make_tensor_value_info("source", onnx.TensorProto.FLOAT, [1, 22, "t"]))
    for n in changed.graph.node:
        for i, name in enumerate(n.input):
            if name == SOURCE:
                n.input[i] = "source"
    return changed


def session(net, outputs):
    """The part of the graph that the outputs need in float32; onnxruntime drops the rest."""
    cut = onnx.ModelProto()
    cut.CopyFrom(net)
    del cut.graph.output[:]
    cut.graph.output.extend(helper.make_tensor_value_info(o, onnx.TensorProto.FLOAT, None) for o in outputs)
    opts = ort.SessionOptions()
    opts.log_severity_level = 3
    return ort.InferenceSession(cut.SerializeToString(), opts, providers=["CPUExecutionProvider"])


def uniform(seed, counters):
    """First words of Philox 4x32-10 (Salmon et al. 2011) for 32-bit counters, upper 24 bits, in [0, 1)."""
    low = np.uint64(0xFFFFFFFF)
    c0 = counters.astype(np.uint64)
    c1 = c2 = c3 = np.zeros_like(c0)
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = ((p1 >> np.uint64(32)) ^ c1 ^ np.uint64(k0), p1 & low,
                          (p0 >> np.uint64(32)) ^ c3 ^ np.uint64(k1), p0 & low)
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return (c0 >> np.uint64(8)).astype(np.float64) / 16777216


def source(pitch, merge, bias, seed):
    """[120 T + 1, 22]: the merged harmonics' magnitudes and phases, in float64."""
    pitch, t = pitch.astype(np.float64), np.arange(len(pitch) * 300)
    at = np.clip((t + 0.5) / 300 - 0.5, 0, len(pitch) - 1)
    merged = np.zeros(len(t))
    for h, w in enumerate(merge.astype(np.float64)):
        turns = pitch * (h + 1) / 24000
        phase = np.cumsum(turns - np.floor(turns)) * 300
        i = np.minimum(at.astype(int), len(pitch) - 2)
        merged += w * 0.1 * np.sin(2 * np.pi * ((phase[i] + (at - i) * (phase[i + 1] - phase[i])) % 1))
    voiced = pitch.astype(np.float32)[t // 300] > 10
    # Nine independent normals through one linear layer are one normal with the layer's length as deviation.
    pairs = np.arange((len(t) + 1) // 2)
    half = 0.5 / 16777216
    radius = np.sqrt(-2 * np.log(uniform(seed, 2 * pairs) + half))
    angle = 2 * np.pi * (uniform(seed, 2 * pairs + 1) + half)
    normal = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()[:len(t)]
    length = np.sqrt(np.sum(merge.astype(np.float64) ** 2))
    wave = np.tanh(merged * voiced + np.where(voiced, 0.003, 0.1 / 3) * length * normal + float(bias))
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(wave, 10, mode="reflect"), 20)[::5]
    spectrum = np.fft.rfft(frames * hann(), axis=1)
    return np.concatenate([np.abs(spectrum), np.angle(spectrum)], 1)


def hann():
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(20) / 20)


def samples(post):
    """torch.istft of what the last convolution gives, in float64."""
    post = post.astype(np.float64)
    spectrum = np.exp(post[:, :11]) * np.exp(1j * np.sin(post[:, 11:]))
    frames = np.fft.irfft(spectrum, 20, axis=1) * hann()
    out, weight_sum = np.zeros(5 * len(post) + 15), np.zeros(5 * len(post) + 15)
    for i, frame in enumerate(frames):
        out[5 * i:5 * i + 20] += frame
        weight_sum[5 * i:5 * i + 20] += hann() ** 2
    return out[10:-10] / weight_sum[10:-10]


def spread(n, count):
    return sorted({int(v) for v in np.linspace(0, n - 1, min(n, count))})


def whole(text, audio, feed, merge, bias, seed):
    """What the text gives, the source and the samples."""
    got = dict(zip(TEXT, text.run(None, feed)))
    har = source(got["pitch"].ravel(), merge, bias, seed)
    inputs = feed | {"source": har.T[None].astype(feed["style"].dtype)}
    return got, har, samples(audio.run(None, inputs)[0][0].T)


def noise_db(ours, expected):
    return 10 * np.log10(np.sum((ours - expected) ** 2) / np.sum(expected ** 2))


def main():
    net, init = dequantised()
    given = with_source(net)
    exact = in_double(net, TEXT.values()), in_double(given, [POST])
    single = session(net, TEXT.values()), session(given, [POST])
    vocab = json.load(open(weight(*VOCAB.split("/")), encoding="utf-8"))["vocab"]
    merge, bias = init["onnx::MatMul_6993"][:, 0], init["decoder.decoder.generator.m_source.l_linear.bias"][0]
    arrays, cases = Arrays(), {}
    for name, (phonemes, voice, speed, seed) in CASES.items():
        ids = [vocab[c] for c in phonemes]
        style = np.fromfile(weight("kokoro", "voices", voice + ".bin"), "<f4").reshape(510, 1, 256)[len(ids)]
        feed = {"tokens": np.array([[0, *ids, 0]], np.int64), "style": style, "speed": np.array([speed], np.float32)}
        rest = merge, bias, seed
        got, har, wave = whole(*exact, {k: double(v) for k, v in feed.items()}, *rest)
        rough = whole(*single, feed, *rest)
        duration = got["duration"].ravel()
        frames = np.maximum(np.round(duration / np.float32(speed)), 1).astype(int)
        assert np.array_equal(frames, np.maximum(np.round(rough[0]["duration"].ravel() / np.float32(speed)), 1))
        prosody, sound = got["prosody"].reshape(-1, 640), got["sound"][0].T
        pitch, energy = got["pitch"].ravel(), got["energy"].ravel()
        assert len(pitch) == 2 * frames.sum()
        rows, source_rows = spread(len(ids) + 2, ROWS), spread(len(har), SOURCE_ROWS)
        arrays.add(f"{name}/duration", duration)
        arrays.add(f"{name}/prosody", prosody[rows])
        arrays.add(f"{name}/sound", sound[rows])
        arrays.add(f"{name}/pitch", pitch)
        arrays.add(f"{name}/energy", energy)
        # Of the pitch as it is stored: a test that starts there is not to be charged with its rounding.
        arrays.add(f"{name}/source", source(pitch.astype(np.float32), *rest)[source_rows])
        arrays.add(f"{name}/audio", wave)
        cases[name] = {"phonemes": phonemes, "voice": voice, "speed": short([speed])[0], "seed": seed, "ids": ids,
                       "frames": frames.tolist(), "rows": rows, "source_rows": source_rows, "samples": len(wave),
                       "nearest_to_a_half_frame": short([np.abs(duration / speed % 1 - 0.5).min()])[0],
                       "peak": short([np.abs(wave).max()])[0],
                       "float32": {"whole_db": round(float(noise_db(rough[2], wave)), 1),
                                   "pitch_hz": short([np.abs(rough[0]["pitch"].ravel() - pitch).max()])[0]}}
        print(name, len(ids), "tokens,", len(wave) / 24000, "s,", cases[name]["float32"])
    arrays.write("kokoro.bin")
    voices = [f"kokoro/voices/{v}.bin" for _, v, _, _ in CASES.values()]
    write("kokoro.json", {
        "stamp": stamp(__file__, ("numpy", "onnx", "onnxruntime"), [FILE, VOCAB, *voices],
                       ["onnx_double.py"]),
        "rate_hz": 24000,
        "bin": {"file": "kokoro.bin", "sha256": arrays.sha256(), "arrays": arrays.index()},
        "cases": cases,
    })


main()
