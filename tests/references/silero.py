"""Silero VAD in onnxruntime: the probability of speech for every 32 ms of some clips.

usage: REPARTEE_REFERENCE_MODELS=FOLDER python silero.py    (writes silero.json beside this script)

The package's safetensors and ONNX files are two trainings of one network, so each has its own numbers:
`silero_vad_16k.safetensors` runs in the graph of `silero_vad_16k_op15.onnx` with its weights put in.
Each step sees 64 old samples before 512 new ones; the state is carried; what is left behind the last whole 512
is not used. `no_context` is the same with zeros for the 64 old samples, the usual mistake.
"""
import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper
from safetensors.numpy import load_file
from shared import clip, clip_note, short, stamp, weight, write

CLIPS = ("beckett", "two_cities", "capital", "egg", "zeros")
CHUNK, CONTEXT = 512, 64
FILES = ("silero_vad_16k.safetensors", "silero_vad.onnx", "silero_vad_16k_op15.onnx")
# Where each tensor of the safetensors file belongs in the graph.
NAMES = {
    "stft_conv.weight": "model.stft.forward_basis_buffer",
    **{f"conv{i + 1}.{p}": f"model.encoder.{i}.reparam_conv.{p}" for i in range(4) for p in ("weight", "bias")},
    **{f"lstm_cell.{p}": f"model.decoder.rnn.{p}" for p in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")},
    **{f"final_conv.{p}": f"model.decoder.decoder.2.{p}" for p in ("weight", "bias")},
}


def session(source):
    opts = ort.SessionOptions()
    opts.intra_op_num_threads = opts.inter_op_num_threads = 1
    opts.log_severity_level = 3
    return ort.InferenceSession(source, opts, providers=["CPUExecutionProvider"])


def with_weights(graph_file, tensors):
    """The graph of an ONNX file with every one of its weights replaced."""
    net, left = onnx.load(graph_file), dict(tensors)
    by_graph_name = {v: k for k, v in NAMES.items()}
    for init in net.graph.initializer:
        if init.name in by_graph_name:
            old, new = numpy_helper.to_array(init), left.pop(by_graph_name[init.name])
            assert old.shape == new.shape and old.dtype == new.dtype, init.name
            init.CopyFrom(numpy_helper.from_array(new, init.name))
    assert not left, f"no place for {sorted(left)}"
    return net.SerializeToString()


def scores(net, wav, with_context):
    """(probability of each chunk, state [2, 1, 128] after the last: hidden, cell)."""
    state, old, out = np.zeros((2, 1, 128), np.float32), np.zeros(CONTEXT, np.float32), []
    for i in range(len(wav) // CHUNK):
        new = wav[i * CHUNK:(i + 1) * CHUNK]
        p, state = net.run(None, {"input": np.concatenate([old, new])[None], "state": state,
                                  "sr": np.array(16000, np.int64)})
        if with_context:
            old = new[-CONTEXT:]
        out.append(p[0, 0])
    return np.array(out, np.float32), state


def main():
    wavs = {name: np.zeros(CHUNK * 32, np.float32) if name == "zeros" else clip(name) for name in CLIPS}
    op15 = weight("silero", "silero_vad_16k_op15.onnx")
    nets = {
        "silero_vad_16k.safetensors": session(with_weights(op15, load_file(weight("silero", FILES[0])))),
        "silero_vad.onnx": session(weight("silero", "silero_vad.onnx")),
    }
    check, spread, models = session(op15), 0.0, {}
    for file, net in nets.items():
        models[file] = {}
        for name, wav in wavs.items():
            probs, state = scores(net, wav, True)
            wrong, _ = scores(net, wav, False)
            if file == "silero_vad.onnx":
                spread = max(spread, float(np.abs(probs - scores(check, wav, True)[0]).max()))
            models[file][name] = {"probs": short(probs), "no_context": short(wrong), "final_state": short(state)}
            print(file, name, len(probs), "chunks,", int((probs > 0.5).sum()), "speech; without context: largest",
                  "difference", float(np.abs(probs - wrong).max()), "mean", float(np.abs(probs - wrong).mean()))
    print("the two ONNX files differ by at most", spread)
    notes = {n: {**({} if n == "zeros" else clip_note(n)), "samples": len(w), "chunks": len(w) // CHUNK}
             for n, w in wavs.items()}
    write("silero.json", {
        "stamp": stamp(__file__, ("numpy", "onnx", "onnxruntime", "safetensors", "soundfile"),
                       [f"silero/{f}" for f in FILES]),
        "rate_hz": 16000, "chunk_samples": CHUNK, "context_samples": CONTEXT,
        "largest_difference_of_the_two_onnx_files": spread,
        "clips": notes,
        **{file: clips for file, clips in models.items()},
    })


main()
