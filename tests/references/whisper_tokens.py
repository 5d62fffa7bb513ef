"""Whisper's tokenizers in Hugging Face's `tokenizers`: ids and decoded text of fixed strings, suppressed ids.

The strings are those of `llama.py`, with some of Whisper's own control tokens.

The published multilingual file lacks the first of its merge rules, `Ġ t`, without which " the" is two tokens. The
rule is put back here as it is in the product; openai's own encoder (tiktoken with the same ranks) then agrees on all
strings, and on nine it does not without.
"""
import json
import sys

from tokenizers import Tokenizer

from llama_texts import STRINGS
from shared import stamp, weight, write

MODELS = ("whisper-base", "whisper-tiny.en")

OWN = ["<|startoftranscript|><|en|><|transcribe|><|notimestamps|> Hello.", "<|0.00|> Hi.<|1.00|>", "<|nospeech|>",
       " It was <|endoftext|> the best", "♪ la la ♪", "♪♪♪", "(laughs) [music] -- \"quoted\"", " -", " '", " #"]


def one(name):
    with open(weight(name, "tokenizer.json"), encoding="utf-8") as f:
        file = json.load(f)
    merges = file["model"]["merges"]
    if "Ġt" in file["model"]["vocab"] and "Ġ t" not in merges:
        merges.insert(0, "Ġ t")
    parse, plain = (Tokenizer.from_str(json.dumps(file)) for _ in range(2))
    plain.encode_special_tokens = True
    strings = []
    for text in STRINGS + OWN:
        ids, special = (t.encode(text, add_special_tokens=False).ids for t in (plain, parse))
        strings.append({"text": text, "plain": ids, "special": special,
                        "decoded": parse.decode(special, skip_special_tokens=True)})
    with open(weight(name, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    files = [f"{name}/tokenizer.json", f"{name}/config.json"]
    write(f"{name}-tokens.json", {
        "stamp": stamp(__file__, ["tokenizers"], files, ["llama_texts.py"]),
        "suppress_ids": config["suppress_ids"], "suppress_ids_begin": config["suppress_ids_begin"],
        "lang_ids": config["lang_ids"], "tokenizer": strings,
    })


if __name__ == "__main__":
    for model in sys.argv[1:] or MODELS:
        one(model)
