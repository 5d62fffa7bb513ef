// Products and look-ups with block weights, which stay as they stand in the file. The type gives BLOCK_BYTES,
// GROUPS (of 32 elements), ZERO, quants (four of them, packed) and scale_min:
// element = scale * (quant - ZERO) + min.

// A word at any even byte.
fn word_at(byte: u32) -> u32 {
    let at = byte / 4u;
    if (byte & 2u) == 0u {
        return w0[at];
    }
    return (w0[at] >> 16u) | (w0[at + 1u] << 16u);
}

fn half_at(byte: u32) -> f32 {
    return half_value((w0[byte / 4u] >> ((byte & 2u) * 8u)) & 0xffffu);
}

fn byte_at(byte: u32) -> u32 {
    return (w0[byte / 4u] >> ((byte & 3u) * 8u)) & 0xffu;
}

// The scale and minimum of a K block's group: 6 bits each, packed in 12 bytes.
fn k_scale_min(block: u32, g: u32) -> vec2<f32> {
    let packed = block + 4u;
    var s = byte_at(packed + g) & 63u;
    var m = byte_at(packed + g + 4u) & 63u;
    if g >= 4u {
        let low = byte_at(packed + g + 4u);
        s = (low & 15u) | ((byte_at(packed + g - 4u) >> 6u) << 4u);
        m = (low >> 4u) | ((byte_at(packed + g) >> 6u) << 4u);
    }
    return vec2<f32>(half_at(block) * f32(s), -half_at(block + 2u) * f32(m));
}

// Four fifth bits, each to bit 4 of its byte.
fn fifth_bits(bits: u32) -> u32 {
    return ((bits & 1u) << 4u) | ((bits & 2u) << 11u) | ((bits & 4u) << 18u) | ((bits & 8u) << 25u);
}

// 7: whether there is a bias, 10, 11: first and number of the outputs that this part of the weight has.
@compute @workgroup_size(64)
fn linear_f32(t: Thread) {
    let at = thread_index(t);
    let outs = p(11u);
    if at >= p(N) * outs {
        return;
    }
    let out = at % outs;
    var x = p(X) + at / outs * p(X_STRIDE);
    let blocks = p(X_COLS) / (32u * GROUPS);
    var block = out * blocks * BLOCK_BYTES;
    var sum = 0.0;
    for (var b = 0u; b < blocks; b++) {
        for (var g = 0u; g < GROUPS; g++) {
            var part = vec4<f32>(0.0);
            for (var h = 0u; h < 8u; h += 4u) {
                let sm = scale_min(block, g, h);
                for (var i = h; i < h + 4u; i++) {
                    let q = vec4<f32>(unpack4xI8(quants(block, g, i)) - ZERO);
                    part += (sm.x * q + sm.y) * load4(x + 4u * i);
                }
            }
            sum += (part.x + part.y) + (part.z + part.w);
            x += 32u;
        }
        block += BLOCK_BYTES;
    }
    if p(7u) != 0u {
        sum += bitcast<f32>(w1[p(10u) + out]);
    }
    store(p(Y) + at / outs * p(Y_STRIDE) + p(10u) + out, sum);
}

// 7, 10, 11: as above, 8, 9: the activations' integers and scales.
@compute @workgroup_size(64)
fn linear_int8(t: Thread) {
    let at = thread_index(t);
    let outs = p(11u);
    if at >= p(N) * outs {
        return;
    }
    let out = at % outs;
    let groups = p(X_COLS) / 32u;
    var q = p(8u) + at / outs * groups * 8u;
    var scale = p(9u) + at / outs * groups;
    let blocks = groups / GROUPS;
    var block = out * blocks * BLOCK_BYTES;
    var sum = 0.0;
    for (var b = 0u; b < blocks; b++) {
        for (var g = 0u; g < GROUPS; g++) {
            var part = 0.0;
            for (var h = 0u; h < 8u; h += 4u) {
                var product = 0;
                var plain = 0;
                for (var i = h; i < h + 4u; i++) {
                    let a = arena[q + i];
                    product += dot4I8Packed(quants(block, g, i), a);
                    plain += dot4I8Packed(0x01010101u, a);
                }
                let sm = scale_min(block, g, h);
                part += sm.x * f32(product - ZERO * plain) + sm.y * f32(plain);
            }
            sum += load(scale) * part;
            q += 8u;
            scale += 1u;
        }
        block += BLOCK_BYTES;
    }
    if p(7u) != 0u {
        sum += bitcast<f32>(w1[p(10u) + out]);
    }
    store(p(Y) + at / outs * p(Y_STRIDE) + p(10u) + out, sum);
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
        let block = (own * (cols / size) + j / size) * BLOCK_BYTES;
        let g = j % size / 32u;
        let i = j % 32u / 4u;
        let sm = scale_min(block, g, i);
        let q = unpack4xI8(quants(block, g, i)) - ZERO;
        v = sm.x * f32(q[j % 4u]) + sm.y;
    }
    store(p(Y) + at, v);
}
