// Products and look-ups with block weights, in the planes of repack.rs: VECTORS words of four a block, then, from word 16
// on, the scales, from word 17 on, the fifth bits. The type gives VECTORS, GROUPS (of 32 elements a block), ZERO, quants
// (four integers of group g, packed), scale_min (element = scale * (quant - ZERO) + min), and unit.

fn plane_word(at: u32) -> u32 {
    return w0[at / 4u][at % 4u];
}

// The scale of a block whose plane has nothing else.
fn scale_of(block: u32) -> f32 {
    return half_value((plane_word(p(16u) + block / 2u) >> ((block & 1u) * 16u)) & 0xffffu);
}

fn scale_min_of(block: u32) -> vec2<f32> {
    let both = plane_word(p(16u) + block);
    return vec2<f32>(half_value(both & 0xffffu), half_value(both >> 16u));
}

fn byte_of(words: vec4<u32>, at: u32) -> u32 {
    return (words[at / 4u] >> ((at & 3u) * 8u)) & 0xffu;
}

// The scale and minimum of a K block's group: 6 bits each, packed in 12 bytes behind the block's own two.
fn k_scale_min(block: u32, g: u32) -> vec2<f32> {
    let head = w0[block * VECTORS];
    var s = byte_of(head, 4u + g) & 63u;
    var m = byte_of(head, 8u + g) & 63u;
    if g >= 4u {
        let low = byte_of(head, 8u + g);
        s = (low & 15u) | ((byte_of(head, g) >> 6u) << 4u);
        m = (low >> 4u) | ((byte_of(head, 4u + g) >> 6u) << 4u);
    }
    return vec2<f32>(half_value(head.x & 0xffffu) * f32(s), -half_value(head.x >> 16u) * f32(m));
}

// A signed byte of the 16 that a Q6_K block has.
fn q6_scale(scales: vec4<u32>, at: u32) -> f32 {
    return f32(extractBits(bitcast<i32>(scales[at / 4u]), (at & 3u) * 8u, 8u));
}

// Four fifth bits, each to bit 4 of its byte.
fn fifth_bits(bits: u32) -> u32 {
    return ((bits & 1u) << 4u) | ((bits & 2u) << 11u) | ((bits & 4u) << 18u) | ((bits & 8u) << 25u);
}

// The fifth bits of 16 elements.
fn fifths_16(bits: u32) -> vec4<u32> {
    return vec4<u32>(
        fifth_bits(bits & 15u),
        fifth_bits((bits >> 4u) & 15u),
        fifth_bits((bits >> 8u) & 15u),
        fifth_bits((bits >> 12u) & 15u),
    );
}

// Twice 16 elements of a block that are read together, and where they begin in it: integers, and scale and minimum.
struct Unit {
    a: vec4<u32>,
    b: vec4<u32>,
    of_a: vec2<f32>,
    of_b: vec2<f32>,
}

var<workgroup> shared_rows: array<vec4<f32>, 64>;

fn words_16(at: u32) -> vec4<u32> {
    return vec4<u32>(arena[at], arena[at + 1u], arena[at + 2u], arena[at + 3u]);
}

fn sum_16(words: vec4<u32>) -> i32 {
    return dot4I8Packed(0x01010101u, words.x) + dot4I8Packed(0x01010101u, words.y)
        + dot4I8Packed(0x01010101u, words.z) + dot4I8Packed(0x01010101u, words.w);
}

fn dot_16(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}

// Few rows with 8-bit activations: LANES threads make EACH outputs together, so that activations are read once for them.
// 7: whether there is a bias, 8, 9: the activations' integers and scales, 10, 11: first and number of the outputs that this
// part of the weight has, 13: whether something is added, 14, 15: its first word and stride, 16, 17: first words of planes.
@compute @workgroup_size(64)
fn few_int8(t: Thread) {
    let outs = p(11u);
    let across = (outs + OUTS - 1u) / OUTS;
    let index = group_index(t);
    let row = index / across;
    let lane = t.local % LANES;
    let first = index % across * OUTS + t.local / LANES * EACH;
    var sum = vec4<f32>();
    if row < p(N) && first < outs {
        let groups = p(X_COLS) / 32u;
        let blocks = groups / GROUPS;
        let q = p(8u) + row * groups * 8u;
        let scale = p(9u) + row * groups;
        for (var g = lane; g < groups; g += LANES) {
            let block = g / GROUPS;
            let spans = block * (GROUPS * 32u) + unit_spans(g % GROUPS);
            let xa = words_16(q + spans.x / 4u);
            let xb = words_16(q + spans.y / 4u);
            let pa = sum_16(xa);
            let pb = sum_16(xb);
            let da = load(scale + spans.x / 32u);
            let db = load(scale + spans.y / 32u);
            for (var i = 0u; i < EACH; i++) {
                let u = unit(min(first + i, outs - 1u) * blocks + block, g % GROUPS);
                let a = u.of_a.x * f32(dot_16(u.a, xa) - ZERO * pa) + u.of_a.y * f32(pa);
                let b = u.of_b.x * f32(dot_16(u.b, xb) - ZERO * pb) + u.of_b.y * f32(pb);
                sum[i] += da * a + db * b;
            }
        }
    }
    shared_rows[t.local] = sum;
    workgroupBarrier();
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        if lane < step {
            shared_rows[t.local] += shared_rows[t.local + step];
        }
        workgroupBarrier();
    }
    let out = first + lane;
    if lane < EACH && row < p(N) && out < outs {
        var v = shared_rows[t.local - lane][lane];
        if p(7u) != 0u {
            v += bitcast<f32>(w1[p(10u) + out]);
        }
        if p(13u) != 0u {
            v += load(p(14u) + row * p(15u) + p(10u) + out);
        }
        store(p(Y) + row * p(Y_STRIDE) + p(10u) + out, v);
    }
}

// The same with activations in f32, an output for LANES threads.
@compute @workgroup_size(64)
fn few_f32(t: Thread) {
    let place = lanes_place(t, p(11u));
    var sum = 0.0;
    if place.x < p(N) && place.y < p(11u) {
        let x = p(X) + place.x * p(X_STRIDE);
        let groups = p(X_COLS) / 32u;
        for (var g = t.local % LANES; g < groups; g += LANES) {
            let block = block_of(place.y, g);
            var part = vec4<f32>(0.0);
            for (var i = 0u; i < 8u; i++) {
                let sm = scale_min(block, g % GROUPS, i);
                let q = vec4<f32>(unpack4xI8(quants(block, g % GROUPS, i)) - ZERO);
                part += (sm.x * q + sm.y) * load4(x + 32u * g + 4u * i);
            }
            sum += (part.x + part.y) + (part.z + part.w);
        }
    }
    lanes_store(t.local, place, sum);
}

fn block_of(out: u32, g: u32) -> u32 {
    return min(out, p(11u) - 1u) * (p(X_COLS) / (32u * GROUPS)) + g / GROUPS;
}

fn weight4(out: u32, k: u32) -> vec4<f32> {
    let g = k / 32u;
    let i = k % 32u / 4u;
    let block = block_of(out, g);
    let sm = scale_min(block, g % GROUPS, i);
    return sm.x * vec4<f32>(unpack4xI8(quants(block, g % GROUPS, i)) - ZERO) + sm.y;
}

fn input4(row: u32, k: u32) -> vec4<f32> {
    return load4(p(X) + min(row, p(N) - 1u) * p(X_STRIDE) + k);
}

// Many rows; parameters as above.
@compute @workgroup_size(256)
fn tile_f32(t: Thread) {
    let origin = tile_origin(t, p(11u));
    let sum = tile_product(t.local, origin, p(X_COLS));
    tile_store(t.local, origin, sum, vec2<u32>(p(N), p(11u)), p(10u), p(7u) != 0u);
}

// As the tiles of tile.wgsl, four columns a word; scales, minima and sums of activations for each half group.
var<workgroup> tile_wq: array<vec4<u32>, 64>;
var<workgroup> tile_xq: array<vec4<u32>, 64>;
var<workgroup> tile_scale: array<vec4<f32>, 16>;
var<workgroup> tile_min: array<vec4<f32>, 16>;
var<workgroup> tile_plain: array<vec4<i32>, 16>;
var<workgroup> tile_xs: array<vec4<f32>, 8>;

fn word4(row: u32, i: u32) -> u32 {
    return arena[p(8u) + min(row, p(N) - 1u) * (p(X_COLS) / 4u) + i];
}

fn plain_sum(row: u32, i: u32) -> i32 {
    return dot4I8Packed(0x01010101u, word4(row, i)) + dot4I8Packed(0x01010101u, word4(row, i + 1u))
        + dot4I8Packed(0x01010101u, word4(row, i + 2u)) + dot4I8Packed(0x01010101u, word4(row, i + 3u));
}

fn dot4(a: vec4<u32>, b: u32) -> vec4<i32> {
    return vec4<i32>(dot4I8Packed(a.x, b), dot4I8Packed(a.y, b), dot4I8Packed(a.z, b), dot4I8Packed(a.w, b));
}

@compute @workgroup_size(64)
fn tile_int8(t: Thread) {
    let origin = tile_origin(t, p(11u));
    let quad = t.local % 8u;
    let word = t.local / 8u;
    let row = origin.x + 4u * quad;
    let out = origin.y + 4u * quad;
    let groups = p(X_COLS) / 32u;
    var sum = array<vec4<f32>, 4>();
    for (var g = 0u; g < groups; g++) {
        workgroupBarrier();
        let inner = g % GROUPS;
        tile_wq[t.local] = vec4<u32>(
            quants(block_of(out, g), inner, word),
            quants(block_of(out + 1u, g), inner, word),
            quants(block_of(out + 2u, g), inner, word),
            quants(block_of(out + 3u, g), inner, word),
        );
        let at = 8u * g + word;
        tile_xq[t.local] = vec4<u32>(word4(row, at), word4(row + 1u, at), word4(row + 2u, at), word4(row + 3u, at));
        if t.local < 16u {
            let h = word * 4u;
            let a = scale_min(block_of(out, g), inner, h);
            let b = scale_min(block_of(out + 1u, g), inner, h);
            let c = scale_min(block_of(out + 2u, g), inner, h);
            let d = scale_min(block_of(out + 3u, g), inner, h);
            tile_scale[t.local] = vec4<f32>(a.x, b.x, c.x, d.x);
            tile_min[t.local] = vec4<f32>(a.y, b.y, c.y, d.y);
        } else if t.local < 32u {
            let i = 8u * g + (word - 2u) * 4u;
            tile_plain[t.local - 16u] =
                vec4<i32>(plain_sum(row, i), plain_sum(row + 1u, i), plain_sum(row + 2u, i), plain_sum(row + 3u, i));
        } else if t.local < 40u {
            var scales = vec4<f32>(0.0);
            for (var r = 0u; r < 4u; r++) {
                scales[r] = load(p(9u) + min(row + r, p(N) - 1u) * groups + g);
            }
            tile_xs[quad] = scales;
        }
        workgroupBarrier();
        var part = array<vec4<f32>, 4>();
        for (var h = 0u; h < 2u; h++) {
            var product = array<vec4<i32>, 4>();
            for (var i = 4u * h; i < 4u * h + 4u; i++) {
                let a = tile_xq[8u * i + word];
                let b = tile_wq[8u * i + quad];
                product[0] += dot4(b, a.x);
                product[1] += dot4(b, a.y);
                product[2] += dot4(b, a.z);
                product[3] += dot4(b, a.w);
            }
            let scale = tile_scale[8u * h + quad];
            let low = tile_min[8u * h + quad];
            let plain = tile_plain[8u * h + word];
            for (var r = 0u; r < 4u; r++) {
                part[r] += scale * vec4<f32>(product[r] - ZERO * plain[r]) + low * f32(plain[r]);
            }
        }
        let xs = tile_xs[word];
        for (var r = 0u; r < 4u; r++) {
            sum[r] += xs[r] * part[r];
        }
    }
    tile_store(t.local, origin, sum, vec2<u32>(p(N), p(11u)), p(10u), p(7u) != 0u);
}

// 7: rows of the table, 8, 9: first and number of those that this part has. An id outside the table gives zeros,
// which the first part writes.
@compute @workgroup_size(64)
fn embed(t: Thread) {
    let at = thread_index(t);
    let cols = p(Y_STRIDE);
    if at >= p(N) * cols {
        return;
    }
    let id = arena[p(X) + at / cols * p(X_STRIDE)];
    let own = id - p(8u);
    let outside = id >= p(7u);
    if (outside && p(8u) > 0u) || (!outside && own >= p(9u)) {
        return;
    }
    var v = 0.0;
    if !outside {
        let j = at % cols;
        let size = 32u * GROUPS;
        let block = own * (cols / size) + j / size;
        let g = j % size / 32u;
        let i = j % 32u / 4u;
        let sm = scale_min(block, g, i);
        let q = unpack4xI8(quants(block, g, i)) - ZERO;
        v = sm.x * f32(q[j % 4u]) + sm.y;
    }
    store(p(Y) + at, v);
}
