// Norms over the rows: a workgroup of THREADS for 8 columns.

const LANES: u32 = THREADS / 8u;

var<workgroup> sums: array<f32, THREADS>;

// Sums over a workgroup's rows of each of its columns, for all of them.
fn sum_rows(local: u32, v: f32) -> f32 {
    workgroupBarrier();
    sums[local] = v;
    workgroupBarrier();
    for (var step = THREADS / 2u; step >= 8u; step /= 2u) {
        if local < step {
            sums[local] += sums[local + step];
        }
        workgroupBarrier();
    }
    return sums[local % 8u];
}

// 7, 8: first words of gain and bias, 9: eps.
@compute @workgroup_size(THREADS)
fn instance_norm(t: Thread) {
    let col = group_index(t) * 8u + t.local % 8u;
    let is_there = col < p(X_COLS);
    let n = select(0u, p(N), is_there);
    let x = p(X) + col;
    let count = f32(max(p(N), 1u));
    var sum = 0.0;
    for (var row = t.local / 8u; row < n; row += LANES) {
        sum += load(x + row * p(X_STRIDE));
    }
    let mean = sum_rows(t.local, sum) / count;
    sum = 0.0;
    for (var row = t.local / 8u; row < n; row += LANES) {
        let d = load(x + row * p(X_STRIDE)) - mean;
        sum += d * d;
    }
    let inv = 1.0 / sqrt(sum_rows(t.local, sum) / count + pf(9u));
    if !is_there {
        return;
    }
    let gain = load(p(7u) + col);
    let bias = load(p(8u) + col);
    for (var row = t.local / 8u; row < n; row += LANES) {
        store(p(Y) + row * p(Y_STRIDE) + col, (load(x + row * p(X_STRIDE)) - mean) * inv * gain + bias);
    }
}
