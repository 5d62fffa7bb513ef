// Products of many rows and outputs: a workgroup of 128 makes 64 rows by 64 outputs, 16 columns at a time; each thread has
// 4 by 8 of them and fetches its part of the next columns while it multiplies. Who includes this gives weight1(out, k).

const LARGE: u32 = 64u;
const DEPTH: u32 = 16u;
// Four rows (outputs) a vector; one more for each column, so that what is written at once lies in different banks.
const LARGE_STRIDE: u32 = 17u;
// Steps whose columns, 256, are added up before they are added to those before: one chain loses twice the digits.
const CHAIN: u32 = 16u;

var<workgroup> large_x: array<vec4<f32>, 272>;
var<workgroup> large_w: array<vec4<f32>, 272>;

// What is multiplied: row r of tap i is row r * stride + i * dilation + shift of x, or zero outside of it; its weights are
// those of tap i * tap_step + tap_first.
struct Gather {
    taps: u32,
    stride: i32,
    dilation: i32,
    shift: i32,
    tap_step: u32,
    tap_first: u32,
    outs: u32,
}

fn gathered(row: i32, col: u32) -> f32 {
    if row < 0 || row >= i32(p(N)) || col >= p(X_COLS) {
        return 0.0;
    }
    return load(p(X) + u32(row) * p(X_STRIDE) + col);
}

fn gathered4(first: u32, tap: u32, g: Gather, col: u32) -> vec4<f32> {
    let row = i32(first) * g.stride + i32(tap) * g.dilation + g.shift;
    if row >= 0 && row + 3 * g.stride < i32(p(N)) && col < p(X_COLS) {
        let at = p(X) + u32(row) * p(X_STRIDE) + col;
        let each = u32(g.stride) * p(X_STRIDE);
        return vec4<f32>(load(at), load(at + each), load(at + 2u * each), load(at + 3u * each));
    }
    return vec4<f32>(
        gathered(row, col),
        gathered(row + g.stride, col),
        gathered(row + 2 * g.stride, col),
        gathered(row + 3 * g.stride, col),
    );
}

fn weights4(first: u32, tap: u32, g: Gather, col: u32) -> vec4<f32> {
    if col >= p(X_COLS) {
        return vec4<f32>();
    }
    let at = (tap * g.tap_step + g.tap_first) * p(X_COLS) + col;
    let last = g.outs - 1u;
    if first + 3u <= last {
        return vec4<f32>(weight1(first, at), weight1(first + 1u, at), weight1(first + 2u, at), weight1(first + 3u, at));
    }
    return vec4<f32>(
        weight1(min(first, last), at),
        weight1(min(first + 1u, last), at),
        weight1(min(first + 2u, last), at),
        weight1(min(first + 3u, last), at),
    );
}

// Of rows from origin.x and outputs from origin.y on: rows 4 * (local / 8) + i, outputs 4 * (local % 8) of vector 2 i and
// 32 more of vector 2 i + 1.
fn large_product(local: u32, origin: vec2<u32>, g: Gather) -> array<vec4<f32>, 8> {
    let k = local % DEPTH;
    let quad = local / DEPTH;
    let rows = local / 8u;
    let outs = local % 8u;
    let row = origin.x + 4u * quad;
    let out = origin.y + 4u * quad;
    let at = k * LARGE_STRIDE + quad;
    let steps = g.taps * ((p(X_COLS) + DEPTH - 1u) / DEPTH);
    var sum = array<vec4<f32>, 8>();
    var part = array<vec4<f32>, 8>();
    var tap = 0u;
    var col = k;
    var x0 = gathered4(row, tap, g, col);
    var x1 = gathered4(row + 32u, tap, g, col);
    var v0 = weights4(out, tap, g, col);
    var v1 = weights4(out + 32u, tap, g, col);
    for (var step = 1u; step <= steps; step++) {
        workgroupBarrier();
        large_x[at] = x0;
        large_x[at + 8u] = x1;
        large_w[at] = v0;
        large_w[at + 8u] = v1;
        workgroupBarrier();
        col += DEPTH;
        if col - k >= p(X_COLS) {
            col = k;
            tap += 1u;
        }
        if step < steps {
            x0 = gathered4(row, tap, g, col);
            x1 = gathered4(row + 32u, tap, g, col);
            v0 = weights4(out, tap, g, col);
            v1 = weights4(out + 32u, tap, g, col);
        }
        for (var i = 0u; i < DEPTH; i++) {
            let a = large_x[i * LARGE_STRIDE + rows];
            let b = large_w[i * LARGE_STRIDE + outs];
            let c = large_w[i * LARGE_STRIDE + outs + 8u];
            part[0] += a.x * b;
            part[1] += a.x * c;
            part[2] += a.y * b;
            part[3] += a.y * c;
            part[4] += a.z * b;
            part[5] += a.z * c;
            part[6] += a.w * b;
            part[7] += a.w * c;
        }
        if step % CHAIN == 0u || step == steps {
            for (var i = 0u; i < 8u; i++) {
                sum[i] += part[i];
                part[i] = vec4<f32>();
            }
        }
    }
    return sum;
}

// Adds the bias of w1 where there is one (7), and what 13 to 15 name, and stores what lies in y, from output `first` on:
// row r is row r * stride + shift of y.
fn large_store(local: u32, origin: vec2<u32>, sum: array<vec4<f32>, 8>, outs: u32, first: u32, stride: i32, shift: i32) {
    var all = sum;
    for (var i = 0u; i < 8u; i++) {
        let row = i32(origin.x + local / 8u * 4u + i / 2u) * stride + shift;
        let out = origin.y + local % 8u * 4u + i % 2u * 32u;
        if row >= 0 && row < i32(p(Y_ROWS)) {
            for (var c = 0u; c < 4u; c++) {
                if out + c < outs {
                    var v = all[i][c];
                    if p(7u) != 0u {
                        v += bitcast<f32>(w1[first + out + c]);
                    }
                    if p(13u) != 0u {
                        v += load(p(14u) + u32(row) * p(15u) + first + out + c);
                    }
                    store(p(Y) + u32(row) * p(Y_STRIDE) + first + out + c, v);
                }
            }
        }
    }
}

fn large_origin(index: u32, outs: u32) -> vec2<u32> {
    let across = (outs + LARGE - 1u) / LARGE;
    return vec2<u32>(index / across * LARGE, index % across * LARGE);
}
