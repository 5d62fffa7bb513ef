"""What the reference generators share: where the weights lie, how clips are read, the stamp."""
import hashlib
import json
import os
import sys
from importlib.metadata import version

# These two slow numpy's OpenBLAS down and change its sums; they go before numpy is imported.
for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_name, None)

import numpy as np
import soundfile as sf

HERE = os.path.dirname(os.path.abspath(__file__))
QUESTIONS = os.path.join(HERE, "..", "..", "assets", "questions")
VARIABLE = "REPARTEE_REFERENCE_MODELS"


def models():
    """The folder of weights, laid out as README.md says."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        sys.exit(f"set {VARIABLE} to the folder that holds the weights (layout: tests/references/README.md)")
    if not os.path.isdir(folder):
        sys.exit(f"{VARIABLE}={folder}: no such folder")
    return folder


def weight(*parts):
    """A file below the folder of weights; ends the program with its name when it is missing."""
    path = os.path.join(models(), *parts)
    if not os.path.isfile(path):
        sys.exit(f"{path} is missing (layout: tests/references/README.md)")
    return path


def sha256(path):
    """Hexadecimal SHA-256 of a file."""
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def clip(name):
    """A clip as float32 mono at 16 kHz, made so that any program can make the very same samples.

    16 kHz files: sample / 32768. The 48 kHz file `two_cities`: (a + b + c) / 98304 over groups of three samples,
    summed as integers; a plain mean, so that no resampler's filter is part of the reference.
    """
    path = clip_path(name)
    pcm, rate = sf.read(path, dtype="int16")
    if pcm.ndim != 1:
        sys.exit(f"{path}: {pcm.shape[1]} channels, one expected")
    if rate == 16000:
        return pcm.astype(np.float32) / np.float32(32768)
    if rate == 48000:
        whole = pcm[: len(pcm) // 3 * 3].astype(np.int32).reshape(-1, 3).sum(axis=1)
        return whole.astype(np.float32) / np.float32(98304)
    sys.exit(f"{path}: {rate} Hz, 16000 or 48000 expected")


def clip_path(name):
    """Where a clip lies: the product's own sample questions, or the recordings beside the weights."""
    if name in ("capital", "egg"):
        return os.path.join(QUESTIONS, name + ".wav")
    return weight("speech", name + ".wav")


def clip_note(name):
    """How a clip was read, for the written file."""
    rate = sf.info(clip_path(name)).samplerate
    where = "assets/questions/" if name in ("capital", "egg") else "speech/"
    return {"file": where + name + ".wav", "sha256": sha256(clip_path(name)), "file_rate_hz": rate,
            "read": "sample / 32768" if rate == 16000 else "(a + b + c) / 98304 over groups of three, in f32"}


def short(values):
    """float32 values as the shortest decimals that read back to the same float32."""
    return [float(str(v)) for v in np.asarray(values, dtype=np.float32).ravel()]


class Arrays:
    """Named f32 arrays for one little-endian file."""

    def __init__(self):
        self.parts, self.where, self.size = [], {}, 0

    def add(self, name, values):
        values = np.ascontiguousarray(values, dtype="<f4")
        self.where[name] = {"offset": self.size, "shape": list(values.shape)}
        self.parts.append(values.tobytes())
        self.size += values.size

    def index(self):
        """Of each array the offset, counted in f32 values, and the shape, last axis innermost."""
        return self.where

    def sha256(self):
        return hashlib.sha256(b"".join(self.parts)).hexdigest()

    def write(self, name):
        with open(os.path.join(HERE, name), "wb") as f:
            f.write(b"".join(self.parts))
        print(f"{name}: {self.size * 4} bytes")


def words(text):
    """Lower-case words without punctuation, hyphens taken as spaces."""
    out = ("".join(c for c in w if c.isalnum() or c == "'") for w in
           text.lower().replace("-", " ").replace("\u2014", " ").replace("\u2019", "'").split())
    return [w for w in out if w]


def word_errors(published, heard):
    """(edit distance in words, words of the published text)."""
    r, h = words(published), words(heard)
    row = list(range(len(h) + 1))
    for i, a in enumerate(r, 1):
        prev, row[0] = row[0], i
        for j, b in enumerate(h, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (a != b))
    return row[-1], len(r)


def stamp(script, packages, weights, beside=()):
    """What a file was made with: a test that finds another script or weight says to run `renew`."""
    name = os.path.basename(script)
    return {
        "renew": f"{VARIABLE}=FOLDER python tests/references/{name}",
        "scripts": {n: sha256(os.path.join(HERE, n)) for n in (name, *beside, "shared.py")},
        "weights": {w: sha256(weight(*w.split("/"))) for w in weights},
        "packages": {p: version(p) for p in packages},
    }


def write(name, content):
    """Writes one reference: a key of the top level to a line, long lists not spread over lines."""
    path = os.path.join(HERE, name)
    lines = [f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in content.items()]
    with open(path, "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{name}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    sys.exit("a module, not a program")
