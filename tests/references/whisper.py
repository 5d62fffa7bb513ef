"""Whisper in faster-whisper and CTranslate2, float32: log-mel, encoder rows, decoder logits, tokens, transcripts.

usage: REPARTEE_REFERENCE_MODELS=FOLDER python whisper.py [whisper-base|whisper-tiny.en ...]
Writes NAME.json and NAME.bin (little-endian f32; the JSON says where each array starts) beside this script.
"""
import os
import sys
import numpy as np
import ctranslate2
import tokenizers
from faster_whisper import WhisperModel
from faster_whisper.feature_extractor import FeatureExtractor
from shared import Arrays, clip, clip_note, short, stamp, weight, word_errors, write

NAMES = ("whisper-base", "whisper-tiny.en")
RATE, FULL = 16000, 30 * 16000
MEL_SECOND = ("capital", 50, 150)  # clip, first frame, end frame: kept whole
MEL_FRAMES = 12                    # frames kept of every other clip and context
ROWS = 24                          # encoder rows kept
STEPS, TOP, FIXED = 32, 16, 64     # decoder steps at most; best and fixed ids kept of each
# Spread over the text tokens and the same for every model.
FIXED_IDS = sorted((i * 7919 + 13) % 50257 for i in range(FIXED))
TEXTS = {
    "two_cities": "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of "
                  "foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of "
                  "Light, it was the season of Darkness, it was the spring of hope, it was the winter of despair, we "
                  "had everything before us, we had nothing before us, we were all going direct to Heaven, we were "
                  "all going direct the other way - in short, the period was so far like the present period, that "
                  "some of its noisiest authorities insisted on its being received, for good or for evil, in the "
                  "superlative degree of comparison only.",
    "beckett": "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better.",
    "capital": "What is the capital of France?",
    "egg": "How long should I boil an egg?",
}
PLAIN = dict(language="en", beam_size=1, best_of=1, temperature=0.0, vad_filter=False,
             condition_on_previous_text=False, compression_ratio_threshold=None, log_prob_threshold=None,
             no_speech_threshold=None)


def padded(wav, samples):
    """A clip behind which zeros stand up to `samples`."""
    out = np.zeros(samples, np.float32)
    out[:len(wav)] = wav
    return out


def contexts(wav):
    """Samples of the two contexts: 30 s, and the clip with 2 s of silence behind it but at least 10 s."""
    return {"full": FULL, "short": min(FULL, max(10 * RATE, len(wav) + 2 * RATE))}


def log_mel(extractor, wav):
    """faster-whisper's log-mel, [frames, bins]; an even number of frames."""
    f = extractor(wav, padding=0)
    return np.ascontiguousarray(f[:, :f.shape[1] // 2 * 2].T, dtype=np.float32)


def log_mel_f64(extractor, wav):
    """The same by definition, every step in float64: what the float32 FFT above is worth."""
    x = np.pad(wav.astype(np.float64), 200, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    frames = np.lib.stride_tricks.sliding_window_view(x, 400)[::160][:-1] * window
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    filters = extractor.get_mel_filters(RATE, 400, extractor.mel_filters.shape[0])
    out = np.log10(np.maximum(power @ filters.T, 1e-10))
    out = (np.maximum(out, out.max() - 8) + 4) / 4
    return out[:len(out) // 2 * 2]


def spread(n, count, dense_until):
    """`count` row numbers below n: the ends, most of them evenly where the speech is, the rest in the silence."""
    dense_until = min(n, max(dense_until, 1))
    a = np.linspace(0, dense_until - 1, count * 3 // 4)
    b = np.linspace(min(dense_until, n - 1), n - 1, count - len(a))
    return sorted({int(v) for v in np.concatenate([a, b])})


def encode(model, mel):
    return model.encode(ctranslate2.StorageView.from_array(np.ascontiguousarray(mel.T[None])))


def decode(model, enc, prompt, tok, **more):
    r = model.generate(enc, [prompt], beam_size=1, max_length=224, return_scores=True, return_no_speech_prob=True,
                       **more)[0]
    ids = r.sequences_ids[0]
    found = {"ids": ids, "text": tok.decode(ids).strip(), "score": short([r.scores[0]])[0],
             "no_speech_prob": short([r.no_speech_prob])[0]}
    return found, r


def one(name):
    folder = os.path.dirname(weight(name, "model.bin"))
    model = ctranslate2.models.Whisper(folder, compute_type="float32", intra_threads=2)
    whole = WhisperModel(folder, device="cpu", compute_type="float32", cpu_threads=2)
    tok, extractor, arrays = tokenizers.Tokenizer.from_file(weight(name, "tokenizer.json")), FeatureExtractor(), Arrays()
    special = ["<|startoftranscript|>"] + ([] if name.endswith(".en") else ["<|en|>", "<|transcribe|>"])
    prompt = [tok.token_to_id(t) for t in special + ["<|notimestamps|>"]]

    wavs = {"two_cities_6s": clip("two_cities")[:6 * RATE], "beckett": clip("beckett"), "capital": clip("capital"),
            "egg": clip("egg"), "zeros_3s": np.zeros(3 * RATE, np.float32)}
    out, mel_error = {}, 0.0
    for cname, wav in wavs.items():
        note = {} if cname == "zeros_3s" else clip_note(cname.removesuffix("_6s"))
        out[cname] = {**note, "samples": len(wav)}
        for context, samples in contexts(wav).items():
            x = padded(wav, samples)
            mel, key = log_mel(extractor, x), f"{cname}/{context}"
            mel_error = max(mel_error, float(np.abs(mel - log_mel_f64(extractor, x)).max()))
            speech = len(wav) // 160
            if (cname, context) == (MEL_SECOND[0], "full"):
                frames = list(range(*MEL_SECOND[1:]))
            else:
                frames = spread(len(mel), MEL_FRAMES, speech)
            arrays.add(f"mel/{key}", mel[frames])
            enc = encode(model, mel)
            states = np.array(enc, dtype=np.float32)[0]
            rows = spread(len(states), ROWS, speech // 2)
            arrays.add(f"encoder/{key}", states[rows])
            found, _ = decode(model, enc, prompt, tok)
            free, r = decode(model, enc, prompt, tok, suppress_tokens=[], suppress_blank=False,
                             return_logits_vocab=True)
            logits = [np.array(v, dtype=np.float32) for v in r.logits[0][:STEPS]]
            best = [np.argsort(-v, kind="stable")[:TOP] for v in logits]
            arrays.add(f"logits_top/{key}", np.stack([v[b] for v, b in zip(logits, best)]))
            arrays.add(f"logits_fixed/{key}", np.stack([v[FIXED_IDS] for v in logits]))
            out[cname][context] = {
                "samples": samples, "frames": len(mel), "mel_frames": frames, "encoder_rows": rows,
                "greedy": found, "unsuppressed": {**free, "top_ids": [[int(i) for i in b] for b in best],
                                                  "smallest_margin": short([min(v[b[0]] - v[b[1]] for v, b
                                                                                in zip(logits, best))])[0]},
            }
            print(name, key, len(mel), repr(found["text"]), round(found["score"], 3),
                  round(found["no_speech_prob"], 3), flush=True)
        segs, _ = whole.transcribe(wav, without_timestamps=True, **PLAIN)
        out[cname]["faster_whisper_text"] = "".join(s.text for s in segs).strip()
        if not name.endswith(".en"):
            scores = model.detect_language(encode(model, log_mel(extractor, padded(wav, FULL))))[0][:5]
            out[cname]["languages"] = [[t, short([p])[0]] for t, p in scores]

    files = {}
    for fname, text in TEXTS.items():
        files[fname] = {"published": text}
        for key, without in (("without_timestamps", True), ("with_timestamps", False)):
            segs, _ = whole.transcribe(clip(fname), without_timestamps=without, **PLAIN)
            got = "".join(s.text for s in segs).strip()
            wrong, n = word_errors(text, got)
            files[fname][key] = {"text": got, "wrong_words": wrong, "words": n, "wer": round(wrong / n, 4)}
            print(name, fname, key, wrong, "of", n, "words wrong:", got, flush=True)

    arrays.write(name + ".bin")
    write(name + ".json", {
        "stamp": stamp(__file__, ("ctranslate2", "faster-whisper", "numpy", "soundfile", "tokenizers"),
                       [f"{name}/{f}" for f in ("model.bin", "config.json", "tokenizer.json", "vocabulary.txt")]),
        "compute_type": "float32", "prompt": prompt, "fixed_ids": FIXED_IDS,
        "largest_mel_difference_from_f64": mel_error,
        "bin": {"file": name + ".bin", "sha256": arrays.sha256(), "arrays": arrays.index()},
        "clips": out, "files": files,
    })


for n in sys.argv[1:] or NAMES:
    one(n)
