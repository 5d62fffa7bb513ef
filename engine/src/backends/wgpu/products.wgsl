// Products with weights that are plain f32 (convolutions, LSTM), and 8-bit activations.

// 7: first word of the integers (cols / 4 a row), 8: first word of the scales (cols / 32 a row).
@compute @workgroup_size(64)
fn quantize(t: Thread) {
    let at = thread_index(t);
    let blocks = p(X_COLS) / 32u;
    if at >= p(N) * blocks {
        return;
    }
    quantize_block(p(X) + at / blocks * p(X_STRIDE) + at % blocks * 32u, at, p(7u), p(8u));
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
@compute @workgroup_size(64)
fn conv1d_tile(t: Thread) {
    let outs = p(Y_STRIDE);
    let origin = tile_origin(t, outs);
    let sum = tile_product(t.local, origin, p(8u) * p(X_COLS));
    tile_store(t.local, origin, sum, vec2<u32>(p(Y_ROWS), outs), 0u, p(7u) != 0u);
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

fn sigmoid_(v: f32) -> f32 {
    return 1.0 / (1.0 + exp_(-v));
}

fn tanh_(v: f32) -> f32 {
    let a = abs(v);
    if a < 0.25 {
        let s = v * v;
        return v * fma(s, fma(s, fma(s, fma(s, 2.1869489e-2, -5.3968254e-2), 1.33333333e-1), -3.33333333e-1), 1.0);
    }
    return sign(v) * (1.0 - 2.0 / (exp_(2.0 * min(a, 40.0)) + 1.0));
}

var<workgroup> lstm_row: array<f32, 256>;

// One workgroup walks over the rows. 7: hidden columns, 8: whether backwards, 9: bits: bias of the hidden row (2), state
// (4), 10: scratch: hidden row, cell row, gates, then for each row what the input gives to its gates. w0: the
// hidden row's weights, for each of its numbers all gates; w1: their bias.
@compute @workgroup_size(256)
fn lstm(t: Thread) {
    let hidden = p(7u);
    let all = 4u * hidden;
    let h = p(10u);
    let cell = h + hidden;
    let gates = cell + hidden;
    let inputs = gates + all;
    let with_state = (p(9u) & 4u) != 0u;
    for (var j = t.local; j < 2u * hidden; j += 256u) {
        var v = 0u;
        if with_state {
            v = s0[j];
        }
        arena[h + j] = v;
    }
    storageBarrier();
    workgroupBarrier();
    let n = p(N);
    for (var i = 0u; i < n; i++) {
        let row = select(i, n - 1u - i, p(8u) != 0u);
        for (var base = 0u; base < all; base += 256u) {
            let g = base + t.local;
            var sum = 0.0;
            for (var first = 0u; first < hidden; first += 256u) {
                let count = min(256u, hidden - first);
                workgroupBarrier();
                if t.local < count {
                    lstm_row[t.local] = load(h + first + t.local);
                }
                workgroupBarrier();
                if g < all {
                    for (var j = 0u; j < count; j++) {
                        sum += lstm_row[j] * bitcast<f32>(w0[(first + j) * all + g]);
                    }
                }
            }
            if g < all {
                sum += load(inputs + row * all + g);
                if (p(9u) & 2u) != 0u {
                    sum += bitcast<f32>(w1[g]);
                }
                store(gates + g, sum);
            }
        }
        storageBarrier();
        workgroupBarrier();
        for (var j = t.local; j < hidden; j += 256u) {
            let input = sigmoid_(load(gates + j));
            let forget = sigmoid_(load(gates + hidden + j));
            let c = forget * load(cell + j) + input * tanh_(load(gates + 2u * hidden + j));
            let v = sigmoid_(load(gates + 3u * hidden + j)) * tanh_(c);
            store(cell + j, c);
            store(h + j, v);
            store(p(Y) + row * p(Y_STRIDE) + j, v);
        }
        storageBarrier();
        workgroupBarrier();
    }
    if with_state {
        for (var j = t.local; j < 2u * hidden; j += 256u) {
            s0[j] = arena[h + j];
        }
    }
}
