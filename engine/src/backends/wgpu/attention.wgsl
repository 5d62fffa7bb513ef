// Attention: a workgroup of 256 for each row and head, 256 keys at a time (Milakov and Gimelshein 2018). Eight threads
// read a key or a value together, eight columns each.

struct Eight {
    a: vec4<f32>,
    b: vec4<f32>,
}

fn halves(words: vec4<u32>) -> Eight {
    return Eight(
        vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y)),
        vec4<f32>(unpack2x16float(words.z), unpack2x16float(words.w)),
    );
}

// Numbers of the arena from word `at` on, `count` of them.
fn eight_of_rows(at: u32, count: u32) -> Eight {
    if count >= 8u {
        return Eight(load4(at), load4(at + 4u));
    }
    var e = Eight();
    for (var i = 0u; i < count; i++) {
        let v = load(at + i);
        if i < 4u {
            e.a[i] = v;
        } else {
            e.b[i - 4u] = v;
        }
    }
    return e;
}

// Eight columns of a key from column `col` of its row on, or the `count` that there are.
fn key_eight(r: u32, base: u32, cols: u32, col: u32, count: u32) -> Eight {
    if p(11u) < 2u {
        return eight_of_rows(p(12u) + r * p(13u) + col, min(count, 8u));
    }
    let at = (base + r) * cols + col;
    let f16 = p(19u) != 0u;
    if at % 8u == 0u && count >= 8u {
        if f16 {
            return halves(s0[at / 8u]);
        }
        return Eight(bitcast<vec4<f32>>(s0[at / 4u]), bitcast<vec4<f32>>(s0[at / 4u + 1u]));
    }
    var e = Eight();
    for (var i = 0u; i < min(count, 8u); i++) {
        var v = 0.0;
        if f16 {
            let word = s0[(at + i) / 8u][(at + i) / 2u % 4u];
            v = unpack2x16float(word)[(at + i) % 2u];
        } else {
            v = bitcast<f32>(s0[(at + i) / 4u][(at + i) % 4u]);
        }
        if i < 4u {
            e.a[i] = v;
        } else {
            e.b[i - 4u] = v;
        }
    }
    return e;
}

// Eight columns of a value from column `col` of its row on, or the `count` that there are.
fn value_eight(r: u32, base: u32, cols: u32, col: u32, count: u32) -> Eight {
    if p(11u) < 2u {
        return eight_of_rows(p(14u) + r * p(15u) + col, min(count, 8u));
    }
    let at = (base + r) * cols + col;
    let f16 = p(20u) != 0u;
    if at % 8u == 0u && count >= 8u {
        if f16 {
            return halves(s1[at / 8u]);
        }
        return Eight(bitcast<vec4<f32>>(s1[at / 4u]), bitcast<vec4<f32>>(s1[at / 4u + 1u]));
    }
    var e = Eight();
    for (var i = 0u; i < min(count, 8u); i++) {
        var v = 0.0;
        if f16 {
            let word = s1[(at + i) / 8u][(at + i) / 2u % 4u];
            v = unpack2x16float(word)[(at + i) % 2u];
        } else {
            v = bitcast<f32>(s1[(at + i) / 4u][(at + i) % 4u]);
        }
        if i < 4u {
            e.a[i] = v;
        } else {
            e.b[i - 4u] = v;
        }
    }
    return e;
}

const MOST_KEYS: u32 = 256u;
// Threads of a key lie in different banks.
const PART_STRIDE: u32 = 260u;

var<workgroup> seen_rows: u32;
var<workgroup> query: array<f32, 256>;
var<workgroup> weights: array<f32, 256>;
var<workgroup> output: array<f32, 256>;
var<workgroup> parts: array<f32, 2080>;

fn query4(d: u32) -> vec4<f32> {
    return vec4<f32>(query[d], query[d + 1u], query[d + 2u], query[d + 3u]);
}

// 7: heads, 8: key-value heads, 9: columns of a head, 10: scale, 11: rows (0), causal rows (1), cache (2), cache
// of a length (3), 12, 13: first word and stride of the keys, 14, 15: of the values, 16: rows of the keys or the
// length, 17: rows of a slot's cache, 18: rows of a slot, 19, 20: whether keys, values are f16,
// 21: whether to quantise the output too, 22, 23: where to, integers and scales.
@compute @workgroup_size(256)
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
    if t.local < width {
        query[t.local] = load(p(X) + row * p(X_STRIDE) + head * width + t.local);
    } else {
        query[t.local] = 0.0;
    }
    output[t.local] = 0.0;
    let seen = workgroupUniformLoad(&seen_rows);
    let cols = p(8u) * width;
    let base = slot * p(17u);
    let lane = t.local % 8u;

    var top = -3.0e38;
    var sum = 0.0;
    for (var first = 0u; first < seen; first += MOST_KEYS) {
        let count = min(MOST_KEYS, seen - first);
        for (var key = t.local / 8u; key < count; key += 32u) {
            var products = vec4<f32>();
            for (var d = 8u * lane; d < width; d += 64u) {
                let k = key_eight(first + key, base, cols, kv + d, width - d);
                products += query4(d) * k.a + query4(d + 4u) * k.b;
            }
            parts[lane * PART_STRIDE + key] = (products.x + products.y) + (products.z + products.w);
        }
        workgroupBarrier();
        var score = -3.0e38;
        if t.local < count {
            score = 0.0;
            for (var i = 0u; i < 8u; i++) {
                score += parts[i * PART_STRIDE + t.local];
            }
            score *= pf(10u);
        }
        let new_top = max(top, max_256(t.local, score));
        let keep = exp_(top - new_top);
        let weight = select(0.0, exp_(score - new_top), t.local < count);
        weights[t.local] = weight;
        sum = sum * keep + sum_256(t.local, weight);
        top = new_top;
        for (var d0 = 0u; d0 < width; d0 += 64u) {
            let d = d0 + 8u * lane;
            var acc = Eight();
            if d < width {
                for (var key = t.local / 8u; key < count; key += 32u) {
                    let v = value_eight(first + key, base, cols, kv + d, width - d);
                    acc.a += weights[key] * v.a;
                    acc.b += weights[key] * v.b;
                }
            }
            let part = t.local / 8u * 65u + 8u * lane;
            for (var i = 0u; i < 4u; i++) {
                parts[part + i] = acc.a[i];
                parts[part + 4u + i] = acc.b[i];
            }
            workgroupBarrier();
            // A quarter of the parts each, then the quarters.
            var column = 0.0;
            for (var i = 0u; i < 8u; i++) {
                column += parts[(t.local / 64u * 8u + i) * 65u + t.local % 64u];
            }
            shared_256[t.local] = column;
            workgroupBarrier();
            if t.local < 64u && d0 + t.local < width {
                let all = (shared_256[t.local] + shared_256[t.local + 64u])
                    + (shared_256[t.local + 128u] + shared_256[t.local + 192u]);
                output[d0 + t.local] = output[d0 + t.local] * keep + all;
            }
            workgroupBarrier();
        }
    }
    let is_there = row < p(N) && t.local < width;
    let y = p(Y) + row * p(Y_STRIDE) + head * width;
    var v = 0.0;
    if is_there {
        v = select(0.0, output[t.local] / sum, seen > 0u);
        store(y + t.local, v);
    }
    if p(21u) != 0u {
        workgroupBarrier();
        output[t.local] = v;
        workgroupBarrier();
        var four = vec4<f32>();
        let d = 4u * t.local;
        let has_four = row < p(N) && d < width;
        if has_four {
            four = vec4<f32>(output[d], output[d + 1u], output[d + 2u], output[d + 3u]);
        }
        quantize_4(t.local, four, has_four, (row * heads + head) * (width / 4u) + t.local, p(22u), p(23u));
    }
}
