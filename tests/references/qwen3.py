"""A small Qwen3 file in the published layout, and what llama.cpp makes of it in float32.

usage: python qwen3.py    (writes qwen3-small.gguf and qwen3-small.json beside this script; needs no weights)

The file has what sets Qwen3 apart from its relatives: heads wider than width / heads, a norm on each head of q and k,
no biases, a tied embedding, a template that thinks aloud unless told otherwise. Its weights are random; the vocabulary
is the 256 bytes, some merges and the control tokens. Names, shapes and keys are those of Qwen/Qwen3-0.6B-GGUF.
"""
import ctypes
import hashlib
import json
import os
from importlib.metadata import version

import gguf
import llama_cpp as L
import numpy as np
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "qwen3-small"
LAYERS, WIDTH, FEED_FORWARD, HEADS, KV_HEADS, HEAD_DIM, CONTEXT = 2, 48, 96, 4, 2, 32, 128
MERGES = ["t h", "Ġ t", "e r", "i n", "Ġt h", "Ġth e"]
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
# Not control tokens in Qwen3's vocabulary, but single tokens all the same.
USER_DEFINED = ["<think>", "</think>"]
REPLY_TOKENS = 24
TEMPLATE = """{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role == 'assistant' and '</think>' in content %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""
MESSAGES = [("system", "Be brief."), ("user", "Hi there"), ("assistant", "Hello."),
            ("user", "In the end?")]


def byte_letters():
    """GPT-2's letter for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(other)) for b in range(256)]


def write_model(path):
    rng = np.random.default_rng(3)
    tokens = byte_letters() + [m.replace(" ", "") for m in MERGES] + CONTROL + USER_DEFINED
    kinds = [gguf.TokenType.NORMAL] * (256 + len(MERGES)) + [gguf.TokenType.CONTROL] * len(CONTROL)
    kinds += [gguf.TokenType.USER_DEFINED] * len(USER_DEFINED)
    w = gguf.GGUFWriter(path, "qwen3")
    w.add_name("Qwen3 small")
    w.add_block_count(LAYERS)
    w.add_context_length(CONTEXT)
    w.add_embedding_length(WIDTH)
    w.add_feed_forward_length(FEED_FORWARD)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_key_length(HEAD_DIM)
    w.add_value_length(HEAD_DIM)
    w.add_rope_freq_base(1e6)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_file_type(0)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list(tokens)
    w.add_token_types(kinds)
    w.add_token_merges(MERGES)
    w.add_eos_token_id(tokens.index("<|im_end|>"))
    w.add_pad_token_id(tokens.index("<|endoftext|>"))
    w.add_bos_token_id(tokens.index("<|endoftext|>"))
    w.add_add_bos_token(False)
    w.add_chat_template(TEMPLATE)

    def random(name, *shape, scale=None, around=0.0):
        scale = scale if scale is not None else shape[-1] ** -0.5
        w.add_tensor(name, (around + scale * rng.standard_normal(shape)).astype(np.float32))

    # Small embeddings leave the layers the say in what comes next (else a token only ever follows itself); the wide last
    # norm puts some units between logits.
    random("token_embd.weight", len(tokens), WIDTH, scale=0.2)
    random("output_norm.weight", WIDTH, scale=1.0, around=4.0)
    for i in range(LAYERS):
        for name, *shape in [("attn_q", HEADS * HEAD_DIM, WIDTH), ("attn_k", KV_HEADS * HEAD_DIM, WIDTH),
                             ("attn_v", KV_HEADS * HEAD_DIM, WIDTH), ("attn_output", WIDTH, HEADS * HEAD_DIM),
                             ("ffn_gate", FEED_FORWARD, WIDTH), ("ffn_up", FEED_FORWARD, WIDTH),
                             ("ffn_down", WIDTH, FEED_FORWARD)]:
            random(f"blk.{i}.{name}.weight", *shape)
        for name, size in [("attn_norm", WIDTH), ("attn_q_norm", HEAD_DIM), ("attn_k_norm", HEAD_DIM), ("ffn_norm", WIDTH)]:
            random(f"blk.{i}.{name}.weight", size, scale=0.4, around=1.0)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return len(tokens)


class Engine:
    """llama.cpp in float32 throughout."""

    def __init__(self, path):
        self.model = L.llama_model_load_from_file(path.encode(), L.llama_model_default_params())
        assert self.model, f"llama.cpp refuses {path}"
        p = L.llama_context_default_params()
        p.n_ctx = p.n_batch = p.n_ubatch = CONTEXT
        p.n_threads = p.n_threads_batch = 1
        p.type_k = p.type_v = L.GGML_TYPE_F32
        p.flash_attn_type = L.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.context = L.llama_init_from_model(self.model, p)
        self.vocab = L.llama_model_get_vocab(self.model)
        self.size = L.llama_vocab_n_tokens(self.vocab)

    def tokens(self, text):
        b = text.encode()
        buf = (L.llama_token * (len(b) + 8))()
        n = L.llama_tokenize(self.vocab, b, len(b), buf, len(buf), False, True)
        assert n >= 0
        return list(buf[:n])

    def logits(self, ids):
        """[len(ids), vocabulary], from an empty cache."""
        L.llama_memory_clear(L.llama_get_memory(self.context), True)
        batch = L.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, t in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = t, i, 1, 0, 1
        assert L.llama_decode(self.context, batch) == 0
        rows = [np.ctypeslib.as_array(L.llama_get_logits_ith(self.context, i), (self.size,)).copy() for i in range(len(ids))]
        L.llama_batch_free(batch)
        return np.stack(rows)


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def short(values):
    """The shortest decimals that read back to the same f32."""
    return [float(np.format_float_positional(np.float32(v), unique=True)) for v in values]


def main():
    quiet = L.llama_log_callback(lambda *_: None)
    L.llama_log_set(quiet, ctypes.c_void_p(0))
    L.llama_backend_init()
    path = os.path.join(HERE, NAME + ".gguf")
    size = write_model(path)
    engine = Engine(path)
    assert engine.size == size
    template = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(TEMPLATE)
    messages = [{"role": r, "content": c} for r, c in MESSAGES]
    prompt = template.render(messages=messages, add_generation_prompt=True, enable_thinking=False)
    ids = engine.tokens(prompt)
    logits = engine.logits(ids)
    reply, margins = [], []
    while len(reply) < REPLY_TOKENS:
        row = engine.logits(ids + reply)[-1]
        second, best = np.partition(row, -2)[-2:]
        reply.append(int(row.argmax()))
        margins.append(best - second)
    kept = sorted({0, 1, len(ids) // 2, len(ids) - 2, len(ids) - 1})
    content = {
        "stamp": {"renew": "python tests/references/qwen3.py", "scripts": {"qwen3.py": sha256(os.path.abspath(__file__))},
                  "packages": {p: version(p) for p in ("gguf", "Jinja2", "llama-cpp-python", "numpy")}},
        "sha256": sha256(path), "messages": messages, "prompt": prompt, "ids": ids,
        "positions": {str(i): short(logits[i]) for i in kept}, "reply": reply, "margins": short(margins),
    }
    lines = [f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in content.items()]
    with open(os.path.join(HERE, NAME + ".json"), "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(lines) + "\n}\n")
    print(os.path.getsize(path), "bytes;", len(ids), "ids; smallest margin", min(margins), "largest logit", logits.max())


if __name__ == "__main__":
    main()
