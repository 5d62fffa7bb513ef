// Products with weights that are plain f32 (convolutions, LSTM), and 8-bit activations.

// 7: first word of the integers (cols / 4 a row), 8: first word of the scales (cols / 32 a row).
@compute @workgroup_size(64)
fn quantize(t: Thread) {
    let at = thread_index(t);
    let blocks = p(X_COLS) / 32u;
    if at >= p(N) * blocks {
        return;
    }
    let x = p(X) + at / blocks * p(X_STRIDE) + at % blocks * 32u;
    var top = 0.0;
    for (var i = 0u; i < 32u; i++) {
        let a = abs(load(x + i));
        top = select(top, a, a > top);
    }
    let factor = select(0.0, divide(127.0, top), top > 0.0);
    for (var i = 0u; i < 8u; i++) {
        let q = vec4<i32>(round(load4(x + 4u * i) * factor));
        arena[p(7u) + at * 8u + i] = pack4xI8(q);
    }
    store(p(8u) + at, divide(top, 127.0));
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

// One workgroup walks over the rows. 7: hidden columns, 8: whether backwards, 9: bits: bias of the input (1), of
// the hidden row (2), state (4), 10: scratch: hidden row, cell row, gates.
@compute @workgroup_size(64)
fn lstm(t: Thread) {
    let hidden = p(7u);
    let h = p(10u);
    let cell = h + hidden;
    let gates = cell + hidden;
    let with_state = (p(9u) & 4u) != 0u;
    for (var j = t.local; j < 2u * hidden; j += 64u) {
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
        let x = p(X) + row * p(X_STRIDE);
        for (var g = t.local; g < 4u * hidden; g += 64u) {
            var sum = 0.0;
            for (var j = 0u; j < p(X_COLS); j++) {
                sum += load(x + j) * bitcast<f32>(w0[g * p(X_COLS) + j]);
            }
            var own = 0.0;
            for (var j = 0u; j < hidden; j++) {
                own += load(h + j) * bitcast<f32>(w1[g * hidden + j]);
            }
            sum += own;
            if (p(9u) & 1u) != 0u {
                sum += bitcast<f32>(w2[g]);
            }
            if (p(9u) & 2u) != 0u {
                sum += bitcast<f32>(w3[g]);
            }
            store(gates + g, sum);
        }
        storageBarrier();
        workgroupBarrier();
        for (var j = t.local; j < hidden; j += 64u) {
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
        for (var j = t.local; j < 2u * hidden; j += 64u) {
            s0[j] = arena[h + j];
        }
    }
}
