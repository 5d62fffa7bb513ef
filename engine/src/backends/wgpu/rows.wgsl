// Ops that work row by row, number by number, or move rows.

@compute @workgroup_size(64)
fn step_tokens(t: Thread) {
    let slot = thread_index(t);
    if slot < p(Y_ROWS) {
        arena[p(Y) + slot] = steps[slot * STEP_WORDS + STEP_TOKEN];
    }
}

// 7, 8: the index's first word and stride.
@compute @workgroup_size(64)
fn gather(t: Thread) {
    let at = thread_index(t);
    let cols = p(X_COLS);
    if at >= p(Y_ROWS) * cols {
        return;
    }
    let row = at / cols;
    let col = at % cols;
    let origin = arena[p(7u) + row * p(8u)];
    var v = 0u;
    if origin < p(N) {
        v = arena[p(X) + origin * p(X_STRIDE) + col];
    }
    arena[p(Y) + row * p(Y_STRIDE) + col] = v;
}

// 7: whether there is a bias, 8: eps.
@compute @workgroup_size(256)
fn layer_norm(t: Thread) {
    let row = group_index(t);
    if row >= p(N) {
        return;
    }
    let cols = p(X_COLS);
    let x = p(X) + row * p(X_STRIDE);
    var sum = 0.0;
    for (var j = t.local; j < cols; j += 256u) {
        sum += load(x + j);
    }
    let mean = sum_256(t.local, sum) / f32(cols);
    sum = 0.0;
    for (var j = t.local; j < cols; j += 256u) {
        let d = load(x + j) - mean;
        sum += d * d;
    }
    let inv = 1.0 / sqrt(sum_256(t.local, sum) / f32(cols) + pf(8u));
    for (var j = t.local; j < cols; j += 256u) {
        var v = (load(x + j) - mean) * inv * bitcast<f32>(w0[j]);
        if p(7u) != 0u {
            v += bitcast<f32>(w1[j]);
        }
        store(p(Y) + row * p(Y_STRIDE) + j, v);
    }
}

// Four columns a thread. 7: columns of a group, 8: eps, 9: whether to quantise whole rows too, 10, 11: where to, integers
// and scales.
@compute @workgroup_size(256)
fn rms_norm(t: Thread) {
    let part = group_index(t);
    let width = p(7u);
    let parts = p(X_COLS) / width;
    if part >= p(N) * parts {
        return;
    }
    let row = part / parts;
    let first = part % parts * width;
    let x = p(X) + row * p(X_STRIDE) + first;
    let y = p(Y) + row * p(Y_STRIDE) + first;
    var sum = 0.0;
    for (var j = t.local; j < width; j += 256u) {
        let v = load(x + j);
        sum += v * v;
    }
    let inv = 1.0 / sqrt(sum_256(t.local, sum) / f32(width) + pf(8u));
    if p(9u) == 0u {
        for (var j = t.local; j < width; j += 256u) {
            store(y + j, load(x + j) * inv * bitcast<f32>(w0[j]));
        }
        return;
    }
    // Blocks of 32 columns are 8 threads.
    for (var base = 0u; base < width; base += 1024u) {
        let j = base + 4u * t.local;
        var v = vec4<f32>();
        if j < width {
            let gain = vec4<u32>(w0[j], w0[j + 1u], w0[j + 2u], w0[j + 3u]);
            v = load4(x + j) * inv * bitcast<vec4<f32>>(gain);
            store4(y + j, v);
        }
        quantize_4(t.local, v, j < width, row * (width / 4u) + j / 4u, p(10u), p(11u));
    }
}

@compute @workgroup_size(64)
fn softmax(t: Thread) {
    let row = group_index(t);
    if row >= p(N) {
        return;
    }
    let cols = p(X_COLS);
    let x = p(X) + row * p(X_STRIDE);
    let y = p(Y) + row * p(Y_STRIDE);
    var top = load(x);
    for (var j = t.local; j < cols; j += 64u) {
        top = max(top, load(x + j));
    }
    top = group_max(t.local, top);
    var sum = 0.0;
    for (var j = t.local; j < cols; j += 64u) {
        let e = exp_(load(x + j) - top);
        store(y + j, e);
        sum += e;
    }
    let inv = 1.0 / group_sum(t.local, sum);
    for (var j = t.local; j < cols; j += 64u) {
        store(y + j, load(y + j) * inv);
    }
}

// Abramowitz and Stegun 7.1.26: 1.5e-7.
fn erf_(v: f32) -> f32 {
    let a = abs(v);
    let k = 1.0 / fma(0.3275911, a, 1.0);
    let q = k * fma(k, fma(k, fma(k, fma(k, 1.061405429, -1.453152027), 1.421413741), -0.284496736), 0.254829592);
    return sign(v) * (1.0 - q * exp_(-min(a * a, 100.0)));
}

// The angle less whole quarter turns, pi / 2 in three parts (Cody and Waite 1980).
fn sin_(v: f32) -> f32 {
    let k = round(v * 0.636619772);
    let r = fma(k, -7.54978995e-8, fma(k, -4.83751297e-4, fma(k, -1.5703125, v)));
    switch u32(i32(k)) & 3u {
        case 0u: { return sin_small(r); }
        case 1u: { return cos_small(r); }
        case 2u: { return -sin_small(r); }
        default: { return -cos_small(r); }
    }
}

// 7: which function, 8, 9: its numbers.
@compute @workgroup_size(64)
fn unary(t: Thread) {
    let at = thread_index(t);
    let cols = p(X_COLS);
    if at >= p(N) * cols {
        return;
    }
    let v = load(p(X) + at / cols * p(X_STRIDE) + at % cols);
    var y = 0.0;
    switch p(7u) {
        case 0u: { y = 0.5 * v * (1.0 + erf_(v * 0.707106781)); }
        case 1u: { y = max(v, 0.0); }
        case 2u: { y = select(v, v * pf(8u), v < 0.0); }
        case 3u: { y = v * sigmoid_(v); }
        case 4u: { y = sigmoid_(v); }
        case 5u: { y = tanh_(v); }
        case 6u: { y = exp_(v); }
        case 7u: { y = sqrt(max(v, 0.0)); }
        case 8u: { y = sin_(v); }
        // (1 + tanh y) / 2 is the sigmoid of 2 y.
        case 10u: { y = v * sigmoid_(clamp(1.595769 * v * (1.0 + 0.044715 * v * v), -80.0, 80.0)); }
        default: { y = pf(8u) * v + pf(9u); }
    }
    store(p(Y) + at, y);
}

// w0: alpha of each column.
@compute @workgroup_size(64)
fn snake(t: Thread) {
    let at = thread_index(t);
    let cols = p(X_COLS);
    if at >= p(N) * cols {
        return;
    }
    let v = load(p(X) + at / cols * p(X_STRIDE) + at % cols);
    let alpha = bitcast<f32>(w0[at % cols]);
    let s = sin_(alpha * v);
    store(p(Y) + at, v + s * s / alpha);
}

// 7: which function, 8, 9, 10: first word, row stride and column stride of b.
fn binary_of(at: u32) -> f32 {
    let cols = p(X_COLS);
    let a = load(p(X) + at / cols * p(X_STRIDE) + at % cols);
    let b = load(p(8u) + at / cols * p(9u) + at % cols * p(10u));
    switch p(7u) {
        case 0u: { return a + b; }
        case 1u: { return a - b; }
        case 2u: { return a * b; }
        case 3u: { return a / b; }
        default: { return a * (b * sigmoid_(b)); }
    }
}

@compute @workgroup_size(64)
fn binary(t: Thread) {
    let at = thread_index(t);
    if at < p(N) * p(X_COLS) {
        store(p(Y) + at, binary_of(at));
    }
}

// The same for whole blocks of 32, four numbers a thread, quantised too: 11, 12: where to, integers and scales.
@compute @workgroup_size(256)
fn binary_quantized(t: Thread) {
    let word = group_index(t) * 256u + t.local;
    let at = 4u * word;
    let is_there = at < p(N) * p(X_COLS);
    var v = vec4<f32>();
    if is_there {
        v = vec4<f32>(binary_of(at), binary_of(at + 1u), binary_of(at + 2u), binary_of(at + 3u));
        store4(p(Y) + at, v);
    }
    quantize_4(t.local, v, is_there, word, p(11u), p(12u));
}

// 7: rows of the table, 8: rows of a slot, 9: whether to count from the position.
@compute @workgroup_size(64)
fn add_positions(t: Thread) {
    let at = thread_index(t);
    let cols = p(X_COLS);
    if at >= p(N) * cols {
        return;
    }
    let row = at / cols;
    let col = at % cols;
    var origin = row % p(8u);
    if p(9u) != 0u {
        origin += position(row / p(8u));
    }
    var v = load(p(X) + row * p(X_STRIDE) + col);
    if origin < p(7u) {
        v += bitcast<f32>(w0[origin * cols + col]);
    }
    store(p(Y) + at, v);
}

fn multiply_high(a: u32, b: u32) -> u32 {
    let al = a & 0xffffu;
    let ah = a >> 16u;
    let bl = b & 0xffffu;
    let bh = b >> 16u;
    let middle = ah * bl + ((al * bl) >> 16u);
    let low = al * bh + (middle & 0xffffu);
    return ah * bh + (middle >> 16u) + (low >> 16u);
}

// 7: columns of a head, 8: rows of a slot, 9: whether pairs are neighbours. w0: for each pair the turns of one
// position in 2^-64 turns (high word, low word): a product of integers, exact at any position.
@compute @workgroup_size(64)
fn rope(t: Thread) {
    let at = thread_index(t);
    let cols = p(X_COLS);
    let pairs = cols / 2u;
    if at >= p(N) * pairs {
        return;
    }
    let row = at / pairs;
    let half = p(7u) / 2u;
    let head = at % pairs / half * p(7u);
    let pair = at % pairs % half;
    let place = position(row / p(8u)) + row % p(8u);
    let angle = turn(place * w0[2u * pair] + multiply_high(place, w0[2u * pair + 1u]));
    let neighbours = p(9u) != 0u;
    let ia = head + select(pair, 2u * pair, neighbours);
    let ib = head + select(pair + half, 2u * pair + 1u, neighbours);
    let x = p(X) + row * p(X_STRIDE);
    let y = p(Y) + row * p(Y_STRIDE);
    let a = load(x + ia);
    let b = load(x + ib);
    store(y + ia, a * angle.y - b * angle.x);
    store(y + ib, a * angle.x + b * angle.y);
}

@compute @workgroup_size(64)
fn mean_rows(t: Thread) {
    let col = thread_index(t);
    if col >= p(X_COLS) {
        return;
    }
    let n = p(N);
    var sum = 0.0;
    for (var first = 0u; first < n; first += 32u) {
        var part = 0.0;
        for (var row = first; row < min(first + 32u, n); row++) {
            part += load(p(X) + row * p(X_STRIDE) + col);
        }
        sum += part;
    }
    store(p(Y) + col, select(0.0, sum / f32(max(n, 1u)), n > 0u));
}

@compute @workgroup_size(64)
fn magnitude(t: Thread) {
    let at = thread_index(t);
    let cols = p(Y_STRIDE);
    if at >= p(N) * cols {
        return;
    }
    let x = p(X) + at / cols * p(X_STRIDE) + at % cols;
    let a = abs(load(x));
    let b = abs(load(x + cols));
    // The larger one taken out, so that no square overflows.
    let top = max(a, b);
    let r = select(min(a, b) / top, 0.0, top == 0.0);
    store(p(Y) + at, top * sqrt(fma(r, r, 1.0)));
}

// 7: rows in front, 8: mode.
@compute @workgroup_size(64)
fn pad_rows(t: Thread) {
    let at = thread_index(t);
    let cols = p(X_COLS);
    if at >= p(Y_ROWS) * cols {
        return;
    }
    let n = i32(p(N));
    let row = i32(at / cols) - i32(p(7u));
    var origin = row;
    if row < 0 || row >= n {
        switch p(8u) {
            case 0u: { origin = -1; }
            case 1u: {
                let period = max(2 * (n - 1), 1);
                let m = ((row % period) + period) % period;
                origin = min(m, max(2 * (n - 1), 0) - m);
                origin = max(origin, 0);
            }
            default: { origin = clamp(row, 0, n - 1); }
        }
    }
    var v = 0u;
    if n > 0 && origin >= 0 {
        v = arena[p(X) + u32(origin) * p(X_STRIDE) + at % cols];
    }
    arena[p(Y) + at] = v;
}

// Rows from 7 on, into rows of Y_STRIDE words.
@compute @workgroup_size(64)
fn copy_rows(t: Thread) {
    let at = thread_index(t);
    let cols = p(X_COLS);
    if at >= p(Y_ROWS) * cols {
        return;
    }
    let row = at / cols;
    let col = at % cols;
    arena[p(Y) + row * p(Y_STRIDE) + col] = arena[p(X) + (row + p(7u)) * p(X_STRIDE) + col];
}

// 7: how often each row stands in y.
@compute @workgroup_size(64)
fn repeat_rows(t: Thread) {
    let at = thread_index(t);
    let cols = p(X_COLS);
    if at >= p(Y_ROWS) * cols {
        return;
    }
    arena[p(Y) + at] = arena[p(X) + at / cols / p(7u) * p(X_STRIDE) + at % cols];
}

// 7: rows of a slot.
@compute @workgroup_size(64)
fn last_rows(t: Thread) {
    let at = thread_index(t);
    let cols = p(X_COLS);
    if at >= p(Y_ROWS) * cols {
        return;
    }
    let q = p(7u);
    var v = 0u;
    if q > 0u {
        v = arena[p(X) + (at / cols * q + q - 1u) * p(X_STRIDE) + at % cols];
    }
    arena[p(Y) + at] = v;
}

// 7: rows of a slot, 8: slots.
@compute @workgroup_size(64)
fn advance(t: Thread) {
    let slot = thread_index(t);
    if slot < p(8u) && is_live(slot) {
        steps[slot * STEP_WORDS + STEP_POSITION] += p(7u);
    }
}

// The whole arena is poisoned, 7 words of it.
@compute @workgroup_size(64)
fn poison(t: Thread) {
    let stride = t.groups.x * t.groups.y * 64u;
    for (var at = thread_index(t); at < p(7u); at += stride) {
        arena[at] = 0x7fc00000u;
    }
}
