"""ggml's block types in the `gguf` package: random blocks and the f32 values that they stand for.

usage: python blocks.py    (writes blocks.json beside this script; needs no weights)

Every byte of a block is random but for its f16 scales, which are drawn from the finite ones; the last three blocks of
each type have the scales subnormal, infinite and NaN. Values are compared bit by bit (NaN with NaN), so both sides
are stored as hexadecimal bytes, little-endian.
"""
import hashlib
import json
import os
from importlib.metadata import version

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = 20_25
# For each type, where its f16 scales stand in a block.
SCALES = {"F16": [0], "BF16": [], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
SUBNORMAL, INFINITE, NAN = 0x0155, 0xFC00, 0x7E01


def random_blocks(rng, name, count, size):
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at in SCALES[name]:
        # Magnitudes below 2^15: a scale times 63 times 31 stays finite in f32 whatever it is.
        scales = rng.integers(0, 0x7800, count, dtype=np.uint16) | rng.integers(0, 2, count, dtype=np.uint16) << 15
        scales[-3:] = SUBNORMAL, INFINITE, NAN
        blocks[:, at:at + 2] = scales.astype("<u2").view(np.uint8).reshape(-1, 2)
    return blocks


def main():
    rng, types = np.random.default_rng(SEED), {}
    for name in SCALES:
        kind = GGMLQuantizationType[name]
        length, size = GGML_QUANT_SIZES[kind]
        blocks = random_blocks(rng, name, {1: 96, 32: 24, 256: 9}[length], size)
        with np.errstate(all="ignore"):
            values = np.ascontiguousarray(dequantize(blocks, kind), dtype="<f4")
        assert values.size == blocks.shape[0] * length
        types[name] = {"block_len": length, "block_bytes": size, "blocks": blocks.tobytes().hex(),
                       "values": values.tobytes().hex()}
    with open(__file__, "rb") as f:
        script = hashlib.sha256(f.read()).hexdigest()
    stamp = {"renew": "python tests/references/blocks.py", "scripts": {"blocks.py": script},
             "packages": {p: version(p) for p in ("gguf", "numpy")}}
    path = os.path.join(HERE, "blocks.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f'{{\n"stamp": {json.dumps(stamp)},\n"types": {{\n')
        f.write(",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in types.items()))
        f.write("\n}\n}\n")
    print(f"blocks.json: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
