"""Qwen2.5 and SmolLM2 in llama.cpp: token ids, chat prompts, float32 logits and replies, the error of quantised runs.

usage: REPARTEE_REFERENCE_MODELS=FOLDER python llama.py [NAME ...]    (THREADS=N, default 2)
Writes NAME.json and NAME.bin (little-endian f32; the JSON says where each array starts) beside this script.
Every tensor is dequantised into a float32 GGUF in a temporary folder (2.5 GB for Qwen2.5; TMPDIR chooses where); with
float32 keys and values and without flash attention llama.cpp then computes in float32 throughout, which a float64
forward pass in numpy checks.
"""
import ctypes
import os
import re
import sys
import tempfile
import numpy as np
import gguf
import llama_cpp as L
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from jinja2.sandbox import ImmutableSandboxedEnvironment
from llama_texts import CONVERSATIONS, PROMPTS, REPLIES, STRINGS
from shared import Arrays, short, stamp, weight, write

MODELS = {"qwen2.5-coder-0.5b": "qwen2.5-coder-0.5b-instruct.gguf", "smollm2-135m": "smollm2-135m-instruct.q4_1.gguf"}
THREADS = int(os.environ.get("THREADS", "2"))
LAST, TOP, FIXED, REPLY_LIMIT, CHECKED = 4, 16, 128, 96, (0, 11, 44)


def float32_gguf(reader, path, tied):
    """Every tensor of a GGUF as float32; `tied` puts the output matrix in the embedding's place and drops it."""
    arch = reader.fields["general.architecture"].contents()
    w = GGUFWriter(path, arch)
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in ("general.architecture", "general.file_type"):
            continue
        sub = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
        w.add_key_value(key, field.contents(), field.types[0], sub)
    w.add_file_type(0)
    tensors = {t.name: t for t in reader.tensors}
    for name, t in tensors.items():
        if tied and name == "output.weight":
            continue
        source = tensors["output.weight"] if tied and name == "token_embd.weight" else t
        w.add_tensor(name, dequantised(source))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def dequantised(tensor):
    """[out, in] float32 (vectors stay vectors)."""
    x = gguf.dequantize(tensor.data, tensor.tensor_type)
    return np.ascontiguousarray(x.reshape(tuple(int(n) for n in reversed(tensor.shape))), dtype=np.float32)


class Float64:
    """The forward pass by definition, for arch llama (rotary pairs 2i, 2i+1) and qwen2 (pairs i, i + 32)."""

    def __init__(self, reader):
        self.tensors = {t.name: t for t in reader.tensors}
        self.arch = reader.fields["general.architecture"].contents()
        self.get = lambda k: reader.fields[f"{self.arch}.{k}"].contents()

    def w(self, name):
        return dequantised(self.tensors[name]).astype(np.float64)

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.get("attention.layer_norm_rms_epsilon")) * self.w(name)

    def linear(self, x, name):
        y = x @ self.w(name + ".weight").T
        return y + self.w(name + ".bias") if name + ".bias" in self.tensors else y

    def rotate(self, x):
        n, _, d = x.shape
        angle = np.arange(n)[:, None] * self.get("rope.freq_base") ** (-np.arange(0, d, 2) / d)
        c, s = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
        if self.arch == "llama":
            a, b = x[..., 0::2], x[..., 1::2]
            return np.stack([a * c - b * s, a * s + b * c], axis=-1).reshape(x.shape)
        a, b = x[..., :d // 2], x[..., d // 2:]
        return np.concatenate([a * c - b * s, a * s + b * c], axis=-1)

    def logits(self, ids):
        """[len(ids), vocabulary]"""
        x = self.w("token_embd.weight")[ids]
        n, heads, kv = len(ids), self.get("attention.head_count"), self.get("attention.head_count_kv")
        mask = np.triu(np.full((n, n), -np.inf), 1)
        for i in range(self.get("block_count")):
            b = f"blk.{i}."
            h = self.norm(x, b + "attn_norm.weight")
            q, k, v = (self.linear(h, b + "attn_" + t).reshape(n, m, -1) for t, m in (("q", heads), ("k", kv), ("v", kv)))
            q, k = self.rotate(q), np.repeat(self.rotate(k), heads // kv, axis=1)
            s = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[-1]) + mask
            p = np.exp(s - s.max(axis=-1, keepdims=True))
            p /= p.sum(axis=-1, keepdims=True)
            a = np.einsum("hqk,khd->qhd", p, np.repeat(v, heads // kv, axis=1)).reshape(n, -1)
            x = x + self.linear(a, b + "attn_output")
            h = self.norm(x, b + "ffn_norm.weight")
            g = self.linear(h, b + "ffn_gate")
            x = x + self.linear(g / (1 + np.exp(-g)) * self.linear(h, b + "ffn_up"), b + "ffn_down")
        x = self.norm(x, "output_norm.weight")
        return x @ self.w("output.weight" if "output.weight" in self.tensors else "token_embd.weight").T


class Engine:
    """llama.cpp with its defaults, or in float32 throughout."""

    def __init__(self, path, exact):
        self.model = L.llama_model_load_from_file(path.encode(), L.llama_model_default_params())
        assert self.model, f"llama.cpp refuses {path}"
        p = L.llama_context_default_params()
        p.n_ctx, p.n_batch, p.n_ubatch = 1024, 512, 512
        p.n_threads = p.n_threads_batch = THREADS
        if exact:
            p.type_k = p.type_v = L.GGML_TYPE_F32
            p.flash_attn_type = L.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.ctx = L.llama_init_from_model(self.model, p)
        self.vocab = L.llama_model_get_vocab(self.model)
        self.size = L.llama_vocab_n_tokens(self.vocab)

    def close(self):
        L.llama_free(self.ctx)
        L.llama_model_free(self.model)

    def tokens(self, text, special):
        b = text.encode()
        buf = (L.llama_token * (len(b) + 8))()
        n = L.llama_tokenize(self.vocab, b, len(b), buf, len(buf), False, special)
        assert n >= 0
        return list(buf[:n])

    def text(self, ids):
        out = b""
        for i in ids:
            buf = ctypes.create_string_buffer(256)
            n = L.llama_token_to_piece(self.vocab, i, buf, 256, 0, False)
            out += buf.raw[:max(n, 0)]
        return out.decode("utf-8", "replace")

    def run(self, ids, start, keep):
        """Logits [keep, vocabulary] of the last `keep` positions of one batch that begins at position `start`."""
        if start == 0:
            L.llama_memory_clear(L.llama_get_memory(self.ctx), True)
        n, batch = len(ids), L.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = n
        for i, t in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = t, start + i, 1, 0
            batch.logits[i] = 1 if i >= n - keep else 0
        assert L.llama_decode(self.ctx, batch) == 0
        rows = [np.ctypeslib.as_array(L.llama_get_logits_ith(self.ctx, i), (self.size,)).copy() for i in range(n - keep, n)]
        L.llama_batch_free(batch)
        return np.stack(rows)

    def reply(self, prompt):
        """(greedy ids, why it ended, distance of the best from the second best logit at every step, end included)."""
        ids, margins, row = [], [], self.run(prompt, 0, 1)[0]
        while True:
            two = np.partition(row, -2)[-2:]
            margins.append(two[1] - two[0])
            best = int(row.argmax())
            if L.llama_vocab_is_eog(self.vocab, best):
                return ids, "end", margins
            ids.append(best)
            if len(ids) == REPLY_LIMIT:
                return ids, "limit", margins
            row = self.run([best], len(prompt) + len(ids) - 1, 1)[0]


def render(reader, conversation):
    """The chat template of the file as transformers renders it."""
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    template = env.from_string(reader.fields["tokenizer.chat_template"].contents())
    return template.render(messages=[{"role": r, "content": c} for r, c in conversation], add_generation_prompt=True)


def plain_content_ids(engine, reader, conversation):
    """Token ids in which only the template's own control tokens count; what people said stays text."""
    marks = [(r, f"\ue100{i}\ue101") for i, (r, _) in enumerate(conversation)]
    out = []
    for part in re.split(r"(<\|im_start\|>|<\|im_end\|>)", render(reader, marks)):
        if part in ("<|im_start|>", "<|im_end|>"):
            out += engine.tokens(part, True)
        else:
            text = re.sub("\ue100(\\d+)\ue101", lambda m: conversation[int(m[1])][1], part)
            out += engine.tokens(text, False) if text else []
    return out


def forced(engine, prompts):
    """Logits [prompts * LAST, vocabulary] of the last positions of every prompt."""
    return np.concatenate([engine.run(p, 0, LAST) for p in prompts])


def error(got, want):
    d = got.astype(np.float64) - want
    return {"rms": float(np.sqrt((d * d).mean())), "max": float(np.abs(d).max())}


def one(name, scratch):
    path = weight(MODELS[name])
    reader, arrays, result = GGUFReader(path), Arrays(), {}
    quantised = Engine(path, False)
    fixed = sorted((i * 7919 + 13) % 48900 for i in range(FIXED))
    strings = [{"text": s, "plain": quantised.tokens(s, False), "special": quantised.tokens(s, True)} for s in STRINGS]
    chats = {}
    for cname, conv in CONVERSATIONS.items():
        prompt = render(reader, conv)
        chats[cname] = {"messages": [{"role": r, "content": c} for r, c in conv], "prompt": prompt,
                        "ids": quantised.tokens(prompt, True), "plain_content_ids": plain_content_ids(quantised, reader, conv)}
        same = chats[cname]["ids"] == chats[cname]["plain_content_ids"]
        assert same == (cname != "control_tokens"), cname
    prompts = [quantised.tokens(p, True) for p in PROMPTS]
    for p, text in zip(prompts, PROMPTS):
        assert 8 <= len(p) <= 40, (len(p), text)
    turns = [(n, [("system", s), ("user", q)]) for n, s, q in REPLIES]
    got = forced(quantised, prompts)

    ties = (False, True) if any(t.name == "output.weight" for t in reader.tensors) else (False,)
    for tied in ties:
        key, file = "f32_tied" if tied else "f32", os.path.join(scratch, f"{name}.gguf")
        float32_gguf(reader, file, tied)
        exact = Engine(file, True)
        want = forced(exact, prompts)
        best = np.argsort(-want, axis=1, kind="stable")[:, :TOP]
        arrays.add(f"{key}/logits_top", np.take_along_axis(want, best, axis=1))
        arrays.add(f"{key}/logits_fixed", want[:, fixed])
        replies = {}
        for rname, conv in turns:
            prompt = exact.tokens(render(reader, conv), True)
            ids, ended, margins = exact.reply(prompt)
            replies[rname] = {"system": conv[0][1], "user": conv[1][1], "prompt_ids": prompt, "ids": ids, "ended": ended,
                              "text": exact.text(ids), "margins": short(margins), "smallest_margin": short([min(margins)])[0]}
            print(name, key, rname, ended, len(ids), "ids, smallest margin", min(margins), repr(replies[rname]["text"]), flush=True)
        check = None
        if not tied:
            by_definition = Float64(reader)
            check = [error(want[i * LAST:(i + 1) * LAST], by_definition.logits(prompts[i])[-LAST:]) for i in CHECKED]
            print(name, "against float64:", check, flush=True)
        both = [np.concatenate([best[i], fixed]) for i in range(len(best))]
        rows = [(got[i][both[i]], want[i][both[i]]) for i in range(len(best))]
        q = [error(np.stack([rows[i + j][0] for j in range(LAST)]), np.stack([rows[i + j][1] for j in range(LAST)]))
             for i in range(0, len(rows), LAST)]
        total = error(np.stack([r[0] for r in rows]), np.stack([r[1] for r in rows]))
        agree = int((got.argmax(axis=1) == want.argmax(axis=1)).sum())
        print(name, key, "quantised llama.cpp: ", total, "same best token at", agree, "of", len(rows), flush=True)
        result[key] = {
            "replies": replies,
            "forced": {"top_ids": best.tolist(), "margin": short([want[i][b[0]] - want[i][b[1]] for i, b in enumerate(best)])},
            "quantised_llama_cpp": {"total": total, "same_best": agree, "positions": len(rows), "per_prompt": q},
            **({"against_float64": {"prompts": list(CHECKED), "errors": check}} if check else {}),
        }
        exact.close()
        os.remove(file)
    q_replies = {}
    for rname, conv in turns:
        ids, ended, margins = quantised.reply(quantised.tokens(render(reader, conv), True))
        q_replies[rname] = {"ids": ids, "ended": ended, "text": quantised.text(ids), "smallest_margin": short([min(margins)])[0]}
    quantised.close()
    arrays.write(name + ".bin")
    made = stamp(__file__, ("gguf", "Jinja2", "llama-cpp-python", "numpy"), [MODELS[name]], ("llama_texts.py",))
    made["system"] = L.llama_print_system_info().decode()
    write(name + ".json", {
        "stamp": made, "fixed_ids": fixed, "last_positions": LAST, "reply_limit": REPLY_LIMIT,
        "bin": {"file": name + ".bin", "sha256": arrays.sha256(), "arrays": arrays.index()},
        "tokenizer": strings, "chat": chats,
        "prompts": [{"text": t, "ids": p} for t, p in zip(PROMPTS, prompts)],
        **result, "quantised_replies": q_replies,
    })


def main():
    quiet = L.llama_log_callback(lambda *_: None)
    L.llama_log_set(quiet, ctypes.c_void_p(0))
    L.llama_backend_init()
    with tempfile.TemporaryDirectory() as scratch:
        for name in sys.argv[1:] or MODELS:
            one(name, scratch)


main()
