"""Trains the letter-to-sound model from the misaki lexicons.

usage: train_letters.py LEXICON_DIR OUT_DIR [--epochs N] [--seed N]

LEXICON_DIR holds us_gold.json, us_silver.json, gb_gold.json and gb_silver.json (package `misaki` 0.9.4).
Needs `torch` and `numpy` only. Writes OUT_DIR/letters.bin (the model: int8 rows with a scale each) and
OUT_DIR/letters.json (what went in, and the errors on the held-out words).

How it works
1. Words: letters and apostrophes, in lower case. Two words in a hundred are held out, chosen by their SHA-256,
   in both accents, so that no accent leaks the other one's answer.
2. Alignment: each letter gets a chunk of zero to three phonemes ("x" gets "ks"). Expectation maximisation
   over all monotone alignments, one table per accent, stress marks aside; then the best alignment of
   every word. A stress mark travels with the vowel after it.
3. Model: a two-layer bidirectional GRU reads the letters; a GRU writes one chunk per letter from what was
   read there and the chunk before. It can't loop or skip: as many steps as letters. One model serves both
   accents, told apart by one input value.

Everything is seeded and the deterministic kernels are asked for: one machine gives one file. Another kind of
GPU rounds differently and gives a slightly different file, so the file itself is kept in the repository.
About five minutes on one data-centre GPU; some hours on two CPU cores.
"""
import argparse
import hashlib
import json
import math
import os
import struct
import sys
import time
import unicodedata
from collections import Counter, defaultdict
from multiprocessing import Pool

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import numpy as np
import torch
from torch import nn

STRESS = "ˈˌ"
LETTERS = "abcdefghijklmnopqrstuvwxyz'"
MAX_CHUNK = 3
MAX_LETTERS = 28
MIN_CHUNK_COUNT = 6


def is_held_out(word):
    """The first two bytes of the word's SHA-256, big-endian, divide by 50."""
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:2], "big") % 50 == 0


def fold(key):
    return "".join(c for c in unicodedata.normalize("NFD", key) if not unicodedata.combining(c)).lower()


def load(folder, accent):
    """[(word, phonemes, is_gold, is_name)], gold before silver, plain spelling before capitalised."""
    out, seen = [], set()
    for rank in ("gold", "silver"):
        with open(os.path.join(folder, f"{accent}_{rank}.json"), encoding="utf-8") as f:
            data = json.load(f)
        for key in sorted(data, key=lambda k: (k != k.lower(), k)):
            value = data[key]
            if isinstance(value, dict):
                value = value["DEFAULT"]
            word = fold(key)
            if not value or key[1:] != key[1:].lower() or not 2 <= len(word) <= MAX_LETTERS:
                continue
            if any(c not in LETTERS for c in word) or word in seen or word[0] == "'":
                continue
            seen.add(word)
            out.append((word, value, rank == "gold", key != key.lower()))
    return out


def units(phonemes):
    """Phonemes with their stress mark in front, each one string."""
    out, mark = [], ""
    for c in phonemes:
        if c in STRESS:
            mark = c
        elif c == "ː" and out:
            out[-1] += c
        else:
            out.append(mark + c)
            mark = ""
    return out


def plain(unit):
    return unit.strip(STRESS)


def lattice(word, phones, table):
    """Forward scores of all alignments; None when there is none."""
    n, m = len(word), len(phones)
    forward = [[0.0] * (m + 1) for _ in range(n + 1)]
    forward[0][0] = 1.0
    for i, letter in enumerate(word):
        row, nxt, probs = forward[i], forward[i + 1], table[letter]
        for j in range(m + 1):
            score = row[j]
            if score:
                for k in range(min(MAX_CHUNK, m - j) + 1):
                    nxt[j + k] += score * probs.get(phones[j:j + k], 1e-9)
    return forward if forward[n][m] > 0 else None


def expect(args):
    pairs, table = args
    counts = defaultdict(lambda: defaultdict(float))
    for word, phones in pairs:
        forward = lattice(word, phones, table)
        if forward is None:
            continue
        n, m = len(word), len(phones)
        total = forward[n][m]
        back = [0.0] * (m + 1)
        back[m] = 1.0
        for i in range(n - 1, -1, -1):
            letter, probs, nxt = word[i], table[word[i]], [0.0] * (m + 1)
            for j in range(m + 1):
                here = 0.0
                for k in range(min(MAX_CHUNK, m - j) + 1):
                    if back[j + k]:
                        chunk = phones[j:j + k]
                        p = probs.get(chunk, 1e-9) * back[j + k]
                        here += p
                        if forward[i][j]:
                            counts[letter][chunk] += forward[i][j] * p / total
                nxt[j] = here
            back = nxt
    return {a: dict(b) for a, b in counts.items()}


def best(args):
    pairs, table = args
    out = []
    logs = {a: {c: math.log(p) for c, p in b.items() if p > 0} for a, b in table.items()}
    for word, phones in pairs:
        n, m = len(word), len(phones)
        score = [[-1e30] * (m + 1) for _ in range(n + 1)]
        came = [[0] * (m + 1) for _ in range(n + 1)]
        score[0][0] = 0.0
        for i, letter in enumerate(word):
            probs = logs[letter]
            for j in range(m + 1):
                if score[i][j] > -1e29:
                    for k in range(min(MAX_CHUNK, m - j) + 1):
                        p = probs.get(phones[j:j + k])
                        if p is not None and score[i][j] + p > score[i + 1][j + k]:
                            score[i + 1][j + k] = score[i][j] + p
                            came[i + 1][j + k] = k
        if score[n][m] < -1e29:
            out.append(None)
            continue
        cuts, j = [], m
        for i in range(n, 0, -1):
            cuts.append(came[i][j])
            j -= came[i][j]
        out.append(cuts[::-1])
    return out


def align(words, pool, workers):
    """Chunk lengths per letter for every word, or None."""
    pairs = [(w, tuple(plain(u) for u in units(p))) for w, p, _, _ in words]
    sample = [pairs[i] for i in range(0, len(pairs), max(1, len(pairs) // 15000))]
    table = {a: {} for a in LETTERS}
    for w, p in sample:  # the start: every chunk that could stand there, short ones first
        for letter in set(w):
            for j in range(len(p) + 1):
                for k in range(min(MAX_CHUNK, len(p) - j) + 1):
                    table[letter].setdefault(p[j:j + k], (0.1, 1.0, 0.02, 0.001)[k])
    for _ in range(8):
        parts = pool.map(expect, [(sample[i::workers], table) for i in range(workers)])
        total = {a: defaultdict(float) for a in LETTERS}
        for part in parts:
            for a, b in part.items():
                for c, v in b.items():
                    total[a][c] += v
        table = {}
        for a, b in total.items():
            s = sum(b.values()) or 1.0
            table[a] = {c: v / s for c, v in b.items() if v / s > 1e-6}
    cuts = [None] * len(pairs)
    for r, part in zip(range(workers), pool.map(best, [(pairs[i::workers], table) for i in range(workers)])):
        for k, value in enumerate(part):
            cuts[r + k * workers] = value
    return cuts


class Model(nn.Module):
    def __init__(self, letters, chunks, letter_dim=32, accent_dim=8, hidden=160, chunk_dim=48, writer=256, drop=0.25):
        super().__init__()
        self.letter = nn.Embedding(letters + 1, letter_dim)
        self.accent = nn.Embedding(2, accent_dim)
        self.reader = nn.GRU(letter_dim + accent_dim, hidden, num_layers=2, bidirectional=True, batch_first=True, dropout=drop)
        self.chunk = nn.Embedding(chunks + 1, chunk_dim)  # the last row: nothing written yet
        self.writer = nn.GRU(2 * hidden + chunk_dim, writer, batch_first=True)
        self.out = nn.Linear(writer, chunks)
        self.drop = nn.Dropout(drop)

    def read(self, x, lengths, accent):
        e = torch.cat([self.letter(x), self.accent(accent)[:, None].expand(-1, x.shape[1], -1)], -1)
        packed = nn.utils.rnn.pack_padded_sequence(self.drop(e) * (1 - self.drop.p if self.training else 1), lengths, batch_first=True, enforce_sorted=False)
        h, _ = self.reader(packed)
        return nn.utils.rnn.pad_packed_sequence(h, batch_first=True, total_length=x.shape[1])[0]

    def forward(self, x, lengths, accent, before):
        h = self.drop(self.read(x, lengths, accent))
        y, _ = self.writer(torch.cat([h, self.drop(self.chunk(before))], -1))
        return self.out(self.drop(y))

    @torch.no_grad()
    def decode(self, x, lengths, accent):
        h = self.read(x, lengths, accent)
        prev = torch.full((x.shape[0],), self.chunk.num_embeddings - 1, device=x.device)
        state, out = None, []
        for i in range(x.shape[1]):
            y, state = self.writer(torch.cat([h[:, i:i + 1], self.chunk(prev)[:, None]], -1), state)
            prev = self.out(y[:, 0]).argmax(-1)
            out.append(prev)
        return torch.stack(out, 1)


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (x != y))
    return row[-1]


def measure(model, words, accent, chunks, device):
    """(word error, word error without stress, phoneme error, phoneme error without stress, count)"""
    wrong = loose = errors = errors_loose = total = total_loose = 0
    for start in range(0, len(words), 2048):
        part = words[start:start + 2048]
        x, lengths = encode([w for w, *_ in part], device)
        a = torch.full((len(part),), accent, device=device)
        y = model.decode(x, lengths, a).cpu().tolist()
        for (w, p, *_), row in zip(part, y):
            got = "".join(chunks[c] for c in row[:len(w)])
            want_units, got_units = list(p), list(got)
            want_plain, got_plain = [c for c in p if c not in STRESS], [c for c in got if c not in STRESS]
            wrong += got != p
            loose += got_plain != want_plain
            errors += distance(got_units, want_units)
            errors_loose += distance(got_plain, want_plain)
            total += len(want_units)
            total_loose += len(want_plain)
    n = max(1, len(words))
    return [round(v, 4) for v in (wrong / n, loose / n, errors / max(1, total), errors_loose / max(1, total_loose))] + [len(words)]


def encode(words, device):
    width = max(len(w) for w in words)
    x = np.full((len(words), width), len(LETTERS), dtype=np.int64)
    for i, w in enumerate(words):
        x[i, :len(w)] = [LETTERS.index(c) for c in w]
    return torch.from_numpy(x).to(device), torch.tensor([len(w) for w in words])


def export(model, chunks, path):
    """The file that the engine reads; the layout is told in letters.rs."""
    def rows(t):
        t = t.detach().float().cpu().numpy()
        scale = np.maximum(np.abs(t).max(1), 1e-12) / 127.0
        q = np.clip(np.rint(t / scale[:, None]), -127, 127).astype(np.int8)
        return scale.astype("<f4").tobytes() + q.tobytes()

    r, w = model.reader, model.writer
    out = [b"RPLS", struct.pack("<8I", 1, len(LETTERS), len(chunks), model.letter.embedding_dim, model.accent.embedding_dim,
                               r.hidden_size, model.chunk.embedding_dim, w.hidden_size)]
    out.append(LETTERS.encode())
    for c in chunks:
        out.append(struct.pack("B", len(c.encode())) + c.encode())
    out += [rows(model.letter.weight[:len(LETTERS)]), rows(model.accent.weight), rows(model.chunk.weight)]
    for gru, names in ((r, ("l0", "l0_reverse", "l1", "l1_reverse")), (w, ("l0",))):
        for name in names:
            for kind in ("weight_ih", "weight_hh"):
                out.append(rows(getattr(gru, f"{kind}_{name}")))
            for kind in ("bias_ih", "bias_hh"):
                out.append(getattr(gru, f"{kind}_{name}").detach().float().cpu().numpy().astype("<f4").tobytes())
    out.append(rows(model.out.weight))
    out.append(model.out.bias.detach().float().cpu().numpy().astype("<f4").tobytes())
    data = b"".join(out)
    with open(path, "wb") as f:
        f.write(data)
    return len(data), hashlib.sha256(data).hexdigest()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("lexicons")
    ap.add_argument("out")
    ap.add_argument("--epochs", type=int, default=60)
    ap.add_argument("--batch", type=int, default=1024)
    ap.add_argument("--rate", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=7)
    ap.add_argument("--limit-secs", type=float, default=1e9, help="shortens the schedule if the epochs would not fit")
    args = ap.parse_args()
    os.makedirs(args.out, exist_ok=True)
    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True

    started = time.time()
    workers = os.cpu_count() or 1
    sets, examples, counts = [], [], Counter()
    with Pool(workers) as pool:
        for accent, name in enumerate(("us", "gb")):
            words = load(args.lexicons, name)
            cuts = align(words, pool, workers)
            kept = 0
            for (w, p, gold, is_name), cut in zip(words, cuts):
                if cut is None or is_held_out(w):
                    continue
                u, at, labels = units(p), 0, []
                for k in cut:
                    labels.append("".join(u[at:at + k]))
                    at += k
                counts.update(labels)
                examples.append((w, labels, accent))
                kept += 1
            test = [x for x in words if is_held_out(x[0])]
            sets.append(test)
            print(f"{name}: {len(words)} words, {kept} to train on, {len(test)} held out, "
                  f"{sum(c is None for c in cuts)} not aligned, {time.time() - started:.0f} s", flush=True)
    chunks = sorted(c for c, n in counts.items() if n >= MIN_CHUNK_COUNT)
    index = {c: i for i, c in enumerate(chunks)}
    examples = [(w, [index[c] for c in ls], a) for w, ls, a in examples if all(c in index for c in ls)]
    print(f"{len(chunks)} chunks, {len(examples)} examples", flush=True)

    n, width = len(examples), max(len(w) for w, *_ in examples)
    x = np.full((n, width), len(LETTERS), dtype=np.int64)
    y = np.full((n, width), -100, dtype=np.int64)
    lengths = np.zeros(n, dtype=np.int64)
    accents = np.zeros(n, dtype=np.int64)
    for i, (w, ls, a) in enumerate(examples):
        x[i, :len(w)] = [LETTERS.index(c) for c in w]
        y[i, :len(w)] = ls
        lengths[i], accents[i] = len(w), a
    x, y, accents = (torch.from_numpy(t).to(device) for t in (x, y, accents))
    lengths = torch.from_numpy(lengths)

    model = Model(len(LETTERS), len(chunks)).to(device)
    size = sum(p.numel() for p in model.parameters())
    print(f"{size} parameters on {device}", flush=True)
    opt = torch.optim.AdamW(model.parameters(), lr=args.rate, weight_decay=0.01, betas=(0.9, 0.98))
    average = {k: v.detach().clone() for k, v in model.state_dict().items()}
    rng = np.random.default_rng(args.seed)
    per_epoch = n // args.batch
    total, step = args.epochs * per_epoch, 0
    begun = time.time()
    epoch = 0
    while step < total:
        # Batches of near lengths, in random order: little padding.
        order = rng.permutation(n)
        groups = [order[i:i + 32 * args.batch] for i in range(0, n, 32 * args.batch)]
        batches = []
        for g in groups:
            g = g[np.argsort(lengths.numpy()[g], kind="stable")]
            batches += [g[i:i + args.batch] for i in range(0, len(g), args.batch)]
        rng.shuffle(batches)
        model.train()
        seen = 0.0
        for b in batches:
            if step >= total:
                break
            ids = torch.from_numpy(b)
            width = int(lengths[ids].max())
            ids_d = ids.to(device)
            bx, by, ba = x[ids_d, :width], y[ids_d, :width], accents[ids_d]
            before = torch.cat([torch.full_like(by[:, :1], len(chunks)), by[:, :-1].clamp(min=0)], 1)
            # One in twenty of the chunks before is hidden, so that the letters are not ignored.
            hide = torch.rand(before.shape, device=device) < 0.05
            before = torch.where(hide, torch.full_like(before, len(chunks)), before)
            logits = model(bx, lengths[ids], ba, before)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), by.flatten(), ignore_index=-100, label_smoothing=0.05)
            progress = step / total
            for group in opt.param_groups:
                group["lr"] = args.rate * min(1.0, step / 500) * (0.5 + 0.5 * math.cos(math.pi * progress)) + 1e-5
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            with torch.no_grad():
                for k, v in model.state_dict().items():
                    average[k].lerp_(v, 0.002 if step > 1000 else 1.0)
            step += 1
            seen += float(loss.detach()) if step % 50 == 0 else 0.0
        epoch += 1
        used = time.time() - begun
        if epoch == 2:
            fits = int(args.limit_secs / (used / 2)) * per_epoch
            if fits < total:
                total = fits
                print(f"schedule shortened to {total // per_epoch} epochs", flush=True)
        if epoch % 5 == 0 or epoch < 3:
            model.eval()
            print(epoch, f"{used:.0f} s", "us", measure(model, sets[0], 0, chunks, device), flush=True)

    model.load_state_dict(average)
    model.eval()
    report = {"torch": torch.__version__, "device": torch.cuda.get_device_name(0) if device == "cuda" else "cpu", "seed": args.seed,
              "epochs": epoch, "batch": args.batch, "rate": args.rate, "parameters": size, "chunks": len(chunks), "examples": n,
              "columns": ["word error", "word error without stress", "phoneme error", "phoneme error without stress", "words"]}
    for accent, name in enumerate(("us", "gb")):
        report[name] = measure(model, sets[accent], accent, chunks, device)
        report[name + " gold"] = measure(model, [w for w in sets[accent] if w[2]], accent, chunks, device)
        report[name + " names"] = measure(model, [w for w in sets[accent] if w[3]], accent, chunks, device)
    report["bytes"], report["sha256"] = export(model, chunks, os.path.join(args.out, "letters.bin"))
    report["lexicons"] = {f: hashlib.sha256(open(os.path.join(args.lexicons, f), "rb").read()).hexdigest()
                          for f in ("us_gold.json", "us_silver.json", "gb_gold.json", "gb_silver.json")}
    report["secs"] = round(time.time() - started)
    with open(os.path.join(args.out, "letters.json"), "w") as f:
        json.dump(report, f, indent=1)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    sys.exit(main())
