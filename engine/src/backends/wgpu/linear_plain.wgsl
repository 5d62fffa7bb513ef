// Products and look-ups with weights of one number for each element; the type gives element(index, row);
// 8-bit integers have a scale and a zero point for each row of the whole matrix in w2.

fn weight4(o: u32, k: u32) -> vec4<f32> {
    let out = min(o, p(11u) - 1u);
    let row = p(10u) + out;
    let cols = p(X_COLS);
    let at = out * cols + k;
    if k + 4u <= cols {
        return vec4<f32>(element(at, row), element(at + 1u, row), element(at + 2u, row), element(at + 3u, row));
    }
    var v = vec4<f32>(0.0);
    for (var i = 0u; k + i < cols; i++) {
        v[i] = element(at + i, row);
    }
    return v;
}

// A module has one kind of input: which one is in 12.
fn input4(r: u32, k: u32) -> vec4<f32> {
    let row = min(r, p(N) - 1u);
    let cols = p(X_COLS);
    if p(12u) != 0u {
        let groups = cols / 32u;
        let q = unpack4xI8(arena[p(8u) + row * (cols / 4u) + k / 4u]);
        return load(p(9u) + row * groups + k / 32u) * vec4<f32>(q);
    }
    let x = p(X) + row * p(X_STRIDE) + k;
    if k + 4u <= cols {
        return load4(x);
    }
    var v = vec4<f32>(0.0);
    for (var i = 0u; k + i < cols; i++) {
        v[i] = load(x + i);
    }
    return v;
}

// Few rows, LANES threads an output. 7: whether there is a bias, 8, 9: the activations' integers and scales, if there are
// such (12), 10, 11: first and number of the outputs that this part of the weight has,
// 13: whether something is added, 14, 15: its first word and stride.
@compute @workgroup_size(64)
fn few(t: Thread) {
    let place = lanes_place(t, p(11u));
    var sum = 0.0;
    if place.x < p(N) && place.y < p(11u) {
        for (var k = t.local % LANES * 4u; k < p(X_COLS); k += 4u * LANES) {
            let part = weight4(place.y, k) * input4(place.x, k);
            sum += (part.x + part.y) + (part.z + part.w);
        }
    }
    lanes_store(t.local, place, sum);
}

// Many rows; parameters as above.
@compute @workgroup_size(256)
fn tile(t: Thread) {
    let origin = tile_origin(t, p(11u));
    let sum = tile_product(t.local, origin, p(X_COLS));
    tile_store(t.local, origin, sum, vec2<u32>(p(N), p(11u)), p(10u), p(7u) != 0u);
}

fn weight1(o: u32, k: u32) -> f32 {
    return element(o * p(X_COLS) + k, p(10u) + o);
}

// The same in large tiles, for activations that are f32 (12 is 0).
@compute @workgroup_size(128)
fn large(t: Thread) {
    let origin = large_origin(group_index(t), p(11u));
    let g = Gather(1u, 1, 0, 0, 1u, 0u, p(11u));
    large_store(t.local, origin, large_product(t.local, origin, g), p(11u), p(10u), 1, 0);
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
