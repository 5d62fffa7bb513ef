// Products with weights that are plain f32 (convolutions, LSTM), and 8-bit activations.

// Four numbers a thread. 7: first word of the integers (cols / 4 a row), 8: first word of the scales (cols / 32 a row).
@compute @workgroup_size(256)
fn quantize(t: Thread) {
    let at = group_index(t) * 256u + t.local;
    let words = p(X_COLS) / 4u;
    let is_there = at < p(N) * words;
    var v = vec4<f32>();
    if is_there {
        v = load4(p(X) + at / words * p(X_STRIDE) + at % words * 4u);
    }
    quantize_4(t.local, v, is_there, at, p(7u), p(8u));
}

// 7: whether there is a bias, 8: taps, 9: stride, 10: dilation, 11: rows in front of x (padding or carry),
// 12: groups, 13: rows of the carry in s0.
@compute @workgroup_size(64)
fn conv1d(t: Thread) {
    let at = thread_index(t);
    let outs = p(Y_STRIDE);
    if at >= p(Y_ROWS) * outs {
        return;
    }
    let m = at % outs;
    let channels = p(X_COLS);
    let width = channels / p(12u);
    let first_channel = m * p(12u) / outs * width;
    var w = m * p(8u) * width;
    var sum = 0.0;
    if p(7u) != 0u {
        sum = bitcast<f32>(w1[m]);
    }
    for (var tap = 0u; tap < p(8u); tap++) {
        let row = i32(at / outs * p(9u) + tap * p(10u)) - i32(p(11u));
        var part = 0.0;
        if row >= 0 && row < i32(p(N)) {
            let x = p(X) + u32(row) * p(X_STRIDE) + first_channel;
            for (var c = 0u; c < width; c++) {
                part += load(x + c) * bitcast<f32>(w0[w + c]);
            }
        } else if row < 0 && row + i32(p(13u)) >= 0 {
            let x = u32(row + i32(p(13u))) * channels + first_channel;
            for (var c = 0u; c < width; c++) {
                part += bitcast<f32>(s0[x + c]) * bitcast<f32>(w0[w + c]);
            }
        }
        sum += part;
        w += width;
    }
    store(p(Y) + at, sum);
}

// Weights and inputs of a convolution's tiles: columns are taps of channels.
fn weight4(o: u32, k: u32) -> vec4<f32> {
    let depth = p(8u) * p(X_COLS);
    let at = min(o, p(Y_STRIDE) - 1u) * depth + k;
    if k + 4u <= depth {
        return bitcast<vec4<f32>>(vec4<u32>(w0[at], w0[at + 1u], w0[at + 2u], w0[at + 3u]));
    }
    var v = vec4<f32>(0.0);
    for (var i = 0u; k + i < depth; i++) {
        v[i] = bitcast<f32>(w0[at + i]);
    }
    return v;
}

fn input4(r: u32, k: u32) -> vec4<f32> {
    let channels = p(X_COLS);
    let depth = p(8u) * channels;
    let first = i32(min(r, p(Y_ROWS) - 1u) * p(9u)) - i32(p(11u));
    var v = vec4<f32>(0.0);
    if channels % 4u == 0u {
        let row = first + i32(k / channels * p(10u));
        if k < depth && row >= 0 && row < i32(p(N)) {
            v = load4(p(X) + u32(row) * p(X_STRIDE) + k % channels);
        }
        return v;
    }
    for (var i = 0u; i < 4u && k + i < depth; i++) {
        let row = first + i32((k + i) / channels * p(10u));
        if row >= 0 && row < i32(p(N)) {
            v[i] = load(p(X) + u32(row) * p(X_STRIDE) + (k + i) % channels);
        }
    }
    return v;
}

// The same for many rows, without groups and carry: 13 is 0, or a tile would add something.
@compute @workgroup_size(256)
fn conv1d_tile(t: Thread) {
    let outs = p(Y_STRIDE);
    let origin = tile_origin(t, outs);
    let sum = tile_product(t.local, origin, p(8u) * p(X_COLS));
    tile_store(t.local, origin, sum, vec2<u32>(p(Y_ROWS), outs), 0u, p(7u) != 0u);
}

fn weight1(o: u32, k: u32) -> f32 {
    return bitcast<f32>(w0[o * p(8u) * p(X_COLS) + k]);
}

// The same in large tiles.
@compute @workgroup_size(128)
fn conv1d_large(t: Thread) {
    let outs = p(Y_STRIDE);
    let origin = large_origin(group_index(t), outs);
    let g = Gather(p(8u), i32(p(9u)), i32(p(10u)), -i32(p(11u)), 1u, 0u, outs);
    large_store(t.local, origin, large_product(t.local, origin, g), outs, 0u, 1, 0);
}

// 7: whether there is a bias, 8: taps, 9: stride, 10: output rows cut off in front, 11: groups.
@compute @workgroup_size(64)
fn conv_transpose1d(t: Thread) {
    let at = thread_index(t);
    let outs = p(Y_STRIDE);
    if at >= p(Y_ROWS) * outs {
        return;
    }
    let m = at % outs;
    let width = p(X_COLS) / p(11u);
    let first_channel = select(m, 0u, p(11u) == 1u);
    let w = m * p(8u) * width;
    let place = at / outs + p(10u);
    var sum = 0.0;
    if p(7u) != 0u {
        sum = bitcast<f32>(w1[m]);
    }
    // The taps of this row's phase, from the newest input row back.
    for (var tap = place % p(9u); tap < p(8u) && tap <= place; tap += p(9u)) {
        let row = (place - tap) / p(9u);
        if row < p(N) {
            let x = p(X) + row * p(X_STRIDE) + first_channel;
            var part = 0.0;
            for (var c = 0u; c < width; c++) {
                part += load(x + c) * bitcast<f32>(w0[w + tap * width + c]);
            }
            sum += part;
        }
    }
    store(p(Y) + at, sum);
}

// The same for many rows and without groups (13 is 0), in large tiles: rows of one phase, which the same taps reach.
@compute @workgroup_size(128)
fn conv_transpose1d_large(t: Thread) {
    let outs = p(Y_STRIDE);
    let stride = p(9u);
    let phases = min(stride, p(8u));
    let index = group_index(t);
    let phase = index % stride;
    let origin = large_origin(index / stride, outs);
    // Taps beyond the phases would be none: such rows have the bias only.
    let taps = select(0u, (p(8u) - phase + stride - 1u) / stride, phase < phases);
    let g = Gather(taps, 1, -1, 0, stride, phase, outs);
    let sum = large_product(t.local, origin, g);
    large_store(t.local, origin, sum, outs, 0u, i32(stride), i32(phase) - i32(p(10u)));
}

// One workgroup moves the carry in s0 on: 13: its rows. A number moves towards the front, so that in ascending
// order nothing is overwritten before it is read.
@compute @workgroup_size(64)
fn carry(t: Thread) {
    let channels = p(X_COLS);
    let words = p(13u) * channels;
    let moved = p(N) * channels;
    for (var first = 0u; first < words; first += 64u) {
        let to = first + t.local;
        var v = 0u;
        if to < words {
            let origin = to + moved;
            if origin < words {
                v = s0[origin];
            } else {
                v = arena[p(X) + (origin - words) / channels * p(X_STRIDE) + (origin - words) % channels];
            }
        }
        storageBarrier();
        workgroupBarrier();
        if to < words {
            s0[to] = v;
        }
        storageBarrier();
        workgroupBarrier();
    }
}
