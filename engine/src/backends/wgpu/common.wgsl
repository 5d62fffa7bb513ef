// What every kernel shares: bindings, parameters, and functions that WGSL leaves to the driver.

@group(0) @binding(0) var<storage, read_write> arena: array<u32>;
@group(0) @binding(1) var<uniform> params: array<vec4<u32>, 8>;
@group(1) @binding(0) var<storage, read_write> steps: array<u32>;

struct Thread {
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
}

// The first seven parameters are the same for all kernels: input x and output y.
const N: u32 = 0u;         // rows of x
const X: u32 = 1u;         // first word of x
const X_STRIDE: u32 = 2u;  // words from row to row
const X_COLS: u32 = 3u;
const Y: u32 = 4u;
const Y_ROWS: u32 = 5u;
const Y_STRIDE: u32 = 6u;

fn p(i: u32) -> u32 {
    return params[i / 4u][i % 4u];
}

fn pf(i: u32) -> f32 {
    return bitcast<f32>(p(i));
}

fn group_index(t: Thread) -> u32 {
    return t.group.y * t.groups.x + t.group.x;
}

fn thread_index(t: Thread) -> u32 {
    return group_index(t) * 64u + t.local;
}

fn load(at: u32) -> f32 {
    return bitcast<f32>(arena[at]);
}

fn store(at: u32, v: f32) {
    arena[at] = bitcast<u32>(v);
}

fn load4(at: u32) -> vec4<f32> {
    return vec4<f32>(load(at), load(at + 1u), load(at + 2u), load(at + 3u));
}

fn store4(at: u32, v: vec4<f32>) {
    store(at, v.x);
    store(at + 1u, v.y);
    store(at + 2u, v.z);
    store(at + 3u, v.w);
}

// Comparisons with NaN may be optimised away; its bits may not.
fn is_nan(v: f32) -> bool {
    return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u;
}

fn is_finite(v: f32) -> bool {
    return (bitcast<u32>(v) & 0x7fffffffu) < 0x7f800000u;
}

// A quotient rounded as IEEE 754 has it: WGSL allows 2.5 ulp, but quantised activations and draws have to be the
// same everywhere. The device's quotient of the 24-bit significands is mended until the rest is one; what is not
// normal is left to the device.
fn divide(a: f32, b: f32) -> f32 {
    let ba = bitcast<u32>(a);
    let bb = bitcast<u32>(b);
    let ea = i32((ba >> 23u) & 255u);
    let eb = i32((bb >> 23u) & 255u);
    let top = (ba & 0x7fffffu) | 0x800000u;
    let by = (bb & 0x7fffffu) | 0x800000u;
    let shift = select(23u, 24u, top < by);
    let exponent = ea - eb + 127 - i32(shift - 23u);
    if ea == 0 || eb == 0 || ea == 255 || eb == 255 || exponent <= 0 || exponent >= 254 {
        return a / b;
    }
    // The rest of a guess that is wrong by a few units fits 32 bits, whatever was carried out of them.
    var q = u32(f32(top) / f32(by) * f32(1u << shift));
    var rest = i32((top << shift) - q * by);
    for (var i = 0; i < 16; i++) {
        if rest < 0 {
            rest += i32(by);
            q -= 1u;
        } else if rest >= i32(by) {
            rest -= i32(by);
            q += 1u;
        }
    }
    let twice = 2u * u32(rest);
    if twice > by || (twice == by && (q & 1u) == 1u) {
        q += 1u;
    }
    return bitcast<f32>(((ba ^ bb) & 0x80000000u) | ((u32(exponent) << 23u) + (q - 0x800000u)));
}

fn half_value(h: u32) -> f32 {
    let sign = (h & 0x8000u) << 16u;
    let exponent = (h >> 10u) & 31u;
    let mantissa = h & 1023u;
    if exponent == 0u {
        return bitcast<f32>(sign | bitcast<u32>(f32(mantissa) * 5.9604644775390625e-8));
    }
    let biased = select(exponent + 112u, 255u, exponent == 31u);
    return bitcast<f32>(sign | (biased << 23u) | (mantissa << 13u));
}

fn shift_to_even(v: u32, by: u32) -> u32 {
    let rest = v & ((1u << by) - 1u);
    let middle = 1u << (by - 1u);
    let q = v >> by;
    return q + select(0u, 1u, rest > middle || (rest == middle && (q & 1u) == 1u));
}

// The nearest f16, ties to even.
fn half_bits(v: f32) -> u32 {
    let b = bitcast<u32>(v);
    let sign = (b >> 16u) & 0x8000u;
    let a = b & 0x7fffffffu;
    if a > 0x7f800000u {
        return sign | 0x7e00u;
    }
    if a >= 0x477ff000u {
        return sign | 0x7c00u;
    }
    if a < 0x38800000u {
        let exponent = a >> 23u;
        if exponent < 102u {
            return sign;
        }
        return sign | shift_to_even((a & 0x7fffffu) | 0x800000u, 126u - exponent);
    }
    return sign | shift_to_even(a - 0x38000000u, 13u);
}

// exp by powers of two and a polynomial on +- ln 2 / 2 (degree 7).
fn exp_(v: f32) -> f32 {
    if is_nan(v) {
        return v;
    }
    if v > 88.8 {
        return bitcast<f32>(0x7f800000u + (p(31u) & 0u));
    }
    if v < -103.0 {
        return 0.0;
    }
    let k = round(v * 1.44269504);
    let r = fma(k, -1.42860677e-6, fma(k, -0.693145752, v));
    var e = fma(r, 1.984126984e-4, 1.388888889e-3);
    e = fma(r, e, 8.333333333e-3);
    e = fma(r, e, 4.166666667e-2);
    e = fma(r, e, 1.666666667e-1);
    e = fma(r, e, 0.5);
    e = fma(r, e, 1.0);
    e = fma(r, e, 1.0);
    // Two factors, as 2^k alone may lie outside of the normal numbers.
    let first = i32(k) / 2;
    let second = i32(k) - first;
    return e * bitcast<f32>(u32(first + 127) << 23u) * bitcast<f32>(u32(second + 127) << 23u);
}

// sin and cos of r in +- pi / 4 (Taylor; the first term left out is below 3e-8).
fn sin_small(r: f32) -> f32 {
    let s = r * r;
    return fma(r * s, fma(s, fma(s, fma(s, 2.7557319e-6, -1.98412698e-4), 8.33333333e-3), -1.66666667e-1), r);
}

fn cos_small(r: f32) -> f32 {
    let s = r * r;
    let c = fma(s, fma(s, fma(s, fma(s, -2.75573192e-7, 2.48015873e-5), -1.38888889e-3), 4.16666667e-2), -0.5);
    return fma(s, c, 1.0);
}

// (sin, cos) of `turns` / 2^32 turns.
fn turn(turns: u32) -> vec2<f32> {
    let quarter = (turns + 0x20000000u) >> 30u;
    let r = f32(bitcast<i32>(turns - (quarter << 30u))) * 1.46291808e-9;
    let s = sin_small(r);
    let c = cos_small(r);
    switch quarter & 3u {
        case 0u: { return vec2<f32>(s, c); }
        case 1u: { return vec2<f32>(c, -s); }
        case 2u: { return vec2<f32>(-s, -c); }
        default: { return vec2<f32>(-c, s); }
    }
}

fn is_live(slot: u32) -> bool {
    let row = slot * STEP_WORDS;
    return steps[row + STEP_ACTIVE] != 0u && steps[row + STEP_DONE] == 0u;
}

fn position(slot: u32) -> u32 {
    return steps[slot * STEP_WORDS + STEP_POSITION];
}

// Sums and maxima over a workgroup of 64.
var<workgroup> shared_sum: array<f32, 64>;

fn group_sum(local: u32, v: f32) -> f32 {
    workgroupBarrier();
    shared_sum[local] = v;
    workgroupBarrier();
    for (var step = 32u; step > 0u; step /= 2u) {
        if local < step {
            shared_sum[local] += shared_sum[local + step];
        }
        workgroupBarrier();
    }
    return shared_sum[0];
}

fn group_max(local: u32, v: f32) -> f32 {
    workgroupBarrier();
    shared_sum[local] = v;
    workgroupBarrier();
    for (var step = 32u; step > 0u; step /= 2u) {
        if local < step {
            shared_sum[local] = max(shared_sum[local], shared_sum[local + step]);
        }
        workgroupBarrier();
    }
    return shared_sum[0];
}
