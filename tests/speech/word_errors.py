"""Word errors of both engines from what round_trip wrote: as heard, after Whisper's normaliser of English, and by sound.

usage: word_errors.py HEARD.jsonl LEXICONS    (LEXICONS: the folder of misaki's us_gold.json, us_silver.json, gb_gold.json ...)

By sound, words count as equal that have a pronunciation in common in the lexicon of the voice's accent: a recogniser that
writes "smokey" for "smoky" heard what was said. The rule knows nothing of the sentences and holds for every engine alike.
"""
import collections
import json
import os
import re
import sys
from whisper_normalizer.english import EnglishTextNormalizer

normalise = EnglishTextNormalizer()


def bare(text):
    return re.findall(r"[a-z0-9']+", text.lower())


def lexicon(folder, accent):
    """Each word with the set of its pronunciations, those by part of speech included."""
    sounds = {}
    for rank in ("silver", "gold"):
        with open(os.path.join(folder, f"{accent}_{rank}.json"), encoding="utf-8") as file:
            for word, said in json.load(file).items():
                said = said.values() if isinstance(said, dict) else [said]
                sounds[word.lower()] = {s for s in said if s}
    return sounds


def errors(truth, heard, sounds):
    def differ(a, b):
        return a != b and not sounds.get(a, set()) & sounds.get(b, set())

    row = list(range(len(heard) + 1))
    for i, expected in enumerate(truth):
        diagonal, row[0] = row[0], i + 1
        for j, got in enumerate(heard):
            changed, diagonal = diagonal + differ(expected, got), row[j + 1]
            row[j + 1] = min(changed, row[j] + 1, diagonal + 1)
    return row[-1]


def main():
    lexicons = {accent: lexicon(sys.argv[2], accent) for accent in ("us", "gb")}
    totals = collections.defaultdict(lambda: [0] * 5)
    for line in open(sys.argv[1], encoding="utf-8"):
        row = json.loads(line)
        raw = [bare(row[k]) for k in ("text", "heard")]
        same = [normalise(row[k]).split() for k in ("text", "heard")]
        sounds = lexicons["gb" if row["voice"][0] == "b" else "us"]
        found = [errors(*raw, {}), len(raw[0]), errors(*same, {}), errors(*same, sounds), len(same[0])]
        total = totals[row["engine"], row["voice"]]
        total[:] = [a + b for a, b in zip(total, found)]
        if found[0]:
            print(f"{row['engine']} {row['voice']}: {row['text']} | {row['heard']} | {found[0]}, normalised {found[2]}, "
                  f"by sound {found[3]}")
    for engine in sorted({e for e, _ in totals}):
        rows = {v: t for (e, v), t in totals.items() if e == engine}
        rows["both"] = [sum(t) for t in zip(*rows.values())]
        for voice, (raw, words, same, sound, normal) in rows.items():
            print(f"{engine:5} {voice:10} as heard {raw:3} of {words} = {100 * raw / words:4.1f} %, "
                  f"normalised {same:3} of {normal} = {100 * same / normal:4.1f} %, "
                  f"by sound {sound:3} = {100 * sound / normal:4.1f} %")


main()
