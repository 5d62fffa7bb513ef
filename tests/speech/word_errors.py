"""Word errors of both engines from what round_trip wrote, as heard and after Whisper's normaliser of English.

usage: word_errors.py HEARD.jsonl
"""
import collections
import json
import re
import sys
from whisper_normalizer.english import EnglishTextNormalizer

normalise = EnglishTextNormalizer()


def bare(text):
    return re.findall(r"[a-z0-9']+", text.lower())


def errors(truth, heard):
    row = list(range(len(heard) + 1))
    for i, expected in enumerate(truth):
        diagonal, row[0] = row[0], i + 1
        for j, got in enumerate(heard):
            changed, diagonal = diagonal + (expected != got), row[j + 1]
            row[j + 1] = min(changed, row[j] + 1, diagonal + 1)
    return row[-1]


def main():
    totals = collections.defaultdict(lambda: [0, 0, 0, 0])
    for line in open(sys.argv[1], encoding="utf-8"):
        row = json.loads(line)
        raw = [bare(row[k]) for k in ("text", "heard")]
        same = [normalise(row[k]).split() for k in ("text", "heard")]
        total = totals[row["engine"], row["voice"]]
        found = [errors(*raw), len(raw[0]), errors(*same), len(same[0])]
        total[:] = [a + b for a, b in zip(total, found)]
        if found[0]:
            print(f"{row['engine']} {row['voice']}: {row['text']} | {row['heard']} | {found[0]}, normalised {found[2]}")
    for engine in sorted({e for e, _ in totals}):
        rows = {v: t for (e, v), t in totals.items() if e == engine}
        rows["both"] = [sum(t) for t in zip(*rows.values())]
        for voice, (raw, words, same, normal) in rows.items():
            print(f"{engine:5} {voice:10} as heard {raw:3} of {words} = {100 * raw / words:4.1f} %, "
                  f"normalised {same:3} of {normal} = {100 * same / normal:4.1f} %")


main()
