// Caches and attention.

// The number at `index` of a cache.
fn cached0(index: u32, f16: bool) -> f32 {
    if f16 {
        return half_value((s0[index / 2u] >> ((index & 1u) * 16u)) & 0xffffu);
    }
    return bitcast<f32>(s0[index]);
}

fn cached1(index: u32, f16: bool) -> f32 {
    if f16 {
        return half_value((s1[index / 2u] >> ((index & 1u) * 16u)) & 0xffffu);
    }
    return bitcast<f32>(s1[index]);
}

// 7: rows of a slot, 8: rows of a slot's cache, 9: whether to count from the position, 10: whether f16.
// One thread writes one word.
@compute @workgroup_size(64)
fn cache_write(t: Thread) {
    let at = thread_index(t);
    let f16 = p(10u) != 0u;
    let words = select(p(X_COLS), p(X_COLS) / 2u, f16);
    if at >= p(N) * words {
        return;
    }
    let row = at / words;
    let word = at % words;
    let slot = row / p(7u);
    var to = row % p(7u);
    if p(9u) != 0u {
        if !is_live(slot) {
            return;
        }
        to += position(slot);
    }
    if to >= p(8u) {
        return;
    }
    let place = (slot * p(8u) + to) * words + word;
    let x = p(X) + row * p(X_STRIDE);
    if f16 {
        s0[place] = half_bits(load(x + 2u * word)) | (half_bits(load(x + 2u * word + 1u)) << 16u);
    } else {
        s0[place] = arena[x + word];
    }
}

var<workgroup> seen_rows: u32;
var<workgroup> weights: array<f32, 64>;

// One workgroup for each row and head, 64 keys at a time (Milakov and Gimelshein 2018).
// 7: heads, 8: key-value heads, 9: columns of a head, 10: scale, 11: rows (0), causal rows (1), cache (2), cache
// of a length (3), 12, 13: first word and stride of the keys, 14, 15: of the values, 16: rows of the keys or the
// length, 17: rows of a slot's cache, 18: rows of a slot, 19, 20: whether keys, values are f16,
// 21: whether to quantise the output too, 22, 23: where to, integers and scales.
@compute @workgroup_size(64)
fn attention(t: Thread) {
    let at = group_index(t);
    let heads = p(7u);
    let width = p(9u);
    let row = at / heads;
    let head = at % heads;
    let slot = row / max(p(18u), 1u);
    let kv = head * p(8u) / heads * width;
    if t.local == 0u {
        var seen = p(16u);
        switch p(11u) {
            case 1u: { seen = min(row + 1u, seen); }
            case 2u: { seen = min(position(slot) + row % p(18u) + 1u, p(17u)); }
            case 3u: { seen = min(seen, p(17u)); }
            default: {}
        }
        seen_rows = select(0u, seen, row < p(N));
    }
    let seen = workgroupUniformLoad(&seen_rows);
    let rows = p(11u) < 2u;
    let cols = p(8u) * width;
    let base = slot * p(17u);
    let f16_keys = p(19u) != 0u;
    let f16_values = p(20u) != 0u;
    let q = p(X) + row * p(X_STRIDE) + head * width;

    var acc = array<f32, 4>(0.0, 0.0, 0.0, 0.0);
    var top = -3.0e38;
    var sum = 0.0;
    for (var first = 0u; first < seen; first += 64u) {
        let r = first + t.local;
        var score = -3.0e38;
        if r < seen {
            score = 0.0;
            for (var d = 0u; d < width; d++) {
                var k = 0.0;
                if rows {
                    k = load(p(12u) + r * p(13u) + kv + d);
                } else {
                    k = cached0((base + r) * cols + kv + d, f16_keys);
                }
                score += load(q + d) * k;
            }
            score *= pf(10u);
        }
        let new_top = max(top, group_max(t.local, score));
        let keep = exp_(top - new_top);
        let weight = select(0.0, exp_(score - new_top), r < seen);
        weights[t.local] = weight;
        sum = sum * keep + group_sum(t.local, weight);
        top = new_top;
        let count = min(64u, seen - first);
        for (var part = 0u; part < 4u; part++) {
            let d = part * 64u + t.local;
            if d < width {
                var a = acc[part] * keep;
                for (var i = 0u; i < count; i++) {
                    var v = 0.0;
                    if rows {
                        v = load(p(14u) + (first + i) * p(15u) + kv + d);
                    } else {
                        v = cached1((base + first + i) * cols + kv + d, f16_values);
                    }
                    a += weights[i] * v;
                }
                acc[part] = a;
            }
        }
        workgroupBarrier();
    }
    if row < p(N) {
        for (var part = 0u; part < 4u; part++) {
            let d = part * 64u + t.local;
            if d < width {
                store(p(Y) + row * p(Y_STRIDE) + head * width + d, select(0.0, acc[part] / sum, seen > 0u));
            }
        }
        if p(21u) != 0u {
            let blocks = width / 32u;
            let y = p(Y) + row * p(Y_STRIDE) + head * width;
            quantize_written(t.local, y, (row * heads + head) * blocks, blocks, p(22u), p(23u));
        }
    }
}
