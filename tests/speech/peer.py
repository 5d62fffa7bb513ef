"""The Harvard sentences by onnxruntime, from misaki's phonemes.

usage: peer.py MODEL.onnx VOCAB.json VOICES OUT VOICE...    (VOICES: a folder of NAME.bin; writes OUT/peer-VOICE-NN.wav)
"""
import json
import os
import sys
import numpy as np
import onnxruntime as ort
import soundfile as sf

HERE = os.path.dirname(os.path.abspath(__file__))
SENTENCES = 20


def main():
    model, vocab, voices, out, *names = sys.argv[1:]
    opts = ort.SessionOptions()
    opts.intra_op_num_threads = int(os.environ.get("THREADS", "2"))
    net = ort.InferenceSession(model, opts, providers=["CPUExecutionProvider"])
    vocab = json.load(open(vocab, encoding="utf-8"))["vocab"]
    said = json.load(open(os.path.join(HERE, "../references/misaki.json"), encoding="utf-8"))
    os.makedirs(out, exist_ok=True)
    for voice in names:
        style = np.fromfile(os.path.join(voices, voice + ".bin"), "<f4").reshape(510, 1, 256)
        for i, phonemes in enumerate(said["gb" if voice[0] == "b" else "us"][:SENTENCES]):
            ids = [vocab[c] for c in phonemes if c in vocab]
            feed = {"tokens": np.array([[0, *ids, 0]], np.int64), "style": style[len(ids)],
                    "speed": np.ones(1, np.float32)}
            audio = net.run(None, feed)[0].ravel()
            # The export's last transform leaves out a division: everything is 1.5 times as loud as it should be.
            sf.write(os.path.join(out, f"peer-{voice}-{i + 1:02}.wav"), np.clip(audio / 1.5, -1, 1), 24000)


main()
