// Products and look-ups with weights of one number for each element; the type gives element(index, row);
// 8-bit integers have a scale and a zero point for each row of the whole matrix in w2.

// 7: whether there is a bias, 10, 11: first and number of the outputs that this part of the weight has.
@compute @workgroup_size(64)
fn linear_f32(t: Thread) {
    let at = thread_index(t);
    let outs = p(11u);
    if at >= p(N) * outs {
        return;
    }
    let out = at % outs;
    let x = p(X) + at / outs * p(X_STRIDE);
    let cols = p(X_COLS);
    var sum = 0.0;
    for (var first = 0u; first < cols; first += 32u) {
        var part = 0.0;
        for (var j = first; j < min(first + 32u, cols); j++) {
            part += load(x + j) * element(out * cols + j, p(10u) + out);
        }
        sum += part;
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
    let cols = p(X_COLS);
    let groups = cols / 32u;
    let row = p(10u) + out;
    let q = p(8u) + at / outs * groups * 8u;
    let scale = p(9u) + at / outs * groups;
    var sum = 0.0;
    for (var g = 0u; g < groups; g++) {
        var part = 0.0;
        for (var i = 0u; i < 8u; i++) {
            let a = vec4<f32>(unpack4xI8(arena[q + g * 8u + i]));
            let e = out * cols + g * 32u + i * 4u;
            let w = vec4<f32>(element(e, row), element(e + 1u, row), element(e + 2u, row), element(e + 3u, row));
            part += a.x * w.x + a.y * w.y + a.z * w.z + a.w * w.w;
        }
        sum += load(scale + g) * part;
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
        v = element(own * cols + at % cols, id);
    }
    store(p(Y) + at, v);
}
