// Drawing a token: one workgroup of 256 for each slot. Instead of sorting, each bound (top-k, top-p, the draw) is
// found bit by bit: the order is that of the 32-bit keys (larger logits have larger keys), then of the ids.

const WIDTH: u32 = 256u;
// Weight of the most likely token; others have floor(exp(x - top) * ONE).
const ONE: f32 = 2147483648.0;

var<workgroup> row_live: u32;
var<workgroup> recent: array<i32, 256>;
var<workgroup> numbers: array<f32, 256>;
var<workgroup> counts: array<u32, 256>;
var<workgroup> wide: array<vec2<u32>, 256>;

// 64-bit numbers: low word, high word.
fn add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn subtract64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn less64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn multiply64(a: u32, b: u32) -> vec2<u32> {
    return vec2<u32>(a * b, multiply_high(a, b));
}

// floor(total * fraction / 2^32)
fn share(total: vec2<u32>, fraction: u32) -> vec2<u32> {
    return add64(multiply64(total.y, fraction), vec2<u32>(multiply_high(total.x, fraction), 0u));
}

fn sum_wide(local: u32, v: vec2<u32>) -> vec2<u32> {
    workgroupBarrier();
    wide[local] = v;
    workgroupBarrier();
    for (var step = WIDTH / 2u; step > 0u; step /= 2u) {
        if local < step {
            wide[local] = add64(wide[local], wide[local + step]);
        }
        workgroupBarrier();
    }
    return workgroupUniformLoad(&wide[0]);
}

fn sum_all(local: u32, v: f32) -> f32 {
    workgroupBarrier();
    numbers[local] = v;
    workgroupBarrier();
    for (var step = WIDTH / 2u; step > 0u; step /= 2u) {
        if local < step {
            numbers[local] += numbers[local + step];
        }
        workgroupBarrier();
    }
    return workgroupUniformLoad(&numbers[0]);
}

fn count_all(local: u32, v: u32) -> u32 {
    workgroupBarrier();
    counts[local] = v;
    workgroupBarrier();
    for (var step = WIDTH / 2u; step > 0u; step /= 2u) {
        if local < step {
            counts[local] += counts[local + step];
        }
        workgroupBarrier();
    }
    return workgroupUniformLoad(&counts[0]);
}

fn max_all(local: u32, v: u32) -> u32 {
    workgroupBarrier();
    counts[local] = v;
    workgroupBarrier();
    for (var step = WIDTH / 2u; step > 0u; step /= 2u) {
        if local < step {
            counts[local] = max(counts[local], counts[local + step]);
        }
        workgroupBarrier();
    }
    return workgroupUniformLoad(&counts[0]);
}

fn min_all(local: u32, v: u32) -> u32 {
    return 0xffffffffu - max_all(local, 0xffffffffu - v);
}

// Numbers to integers of the same order.
fn key_of(v: f32) -> u32 {
    let b = bitcast<u32>(v);
    return select(b | 0x80000000u, ~b, (b & 0x80000000u) != 0u);
}

fn value_of(key: u32) -> f32 {
    return bitcast<f32>(select(~key, key & 0x7fffffffu, (key & 0x80000000u) != 0u));
}

fn keys_at() -> u32 {
    return p(8u);
}

fn weights_at() -> u32 {
    return p(8u) + p(X_COLS);
}

// The keys of a slot's words lie behind those of the slots before.
fn area(slot: u32) -> u32 {
    return slot * 2u * p(X_COLS);
}

fn biased(slot: u32, i: u32) -> f32 {
    var v = load(p(X) + slot * p(X_STRIDE) + i);
    if p(7u) != 0u {
        v += load(p(9u) + i);
    }
    // Not a number never wins; bits, as infinities may not be written as constants.
    if is_nan(v) {
        return bitcast<f32>(0xff800000u | (i & 0u));
    }
    return v;
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

// Philox 4x32-10, as `graph::step::random_bits`.
fn random_bits(seed_low: u32, seed_high: u32, counter: u32) -> u32 {
    var k0 = seed_low;
    var k1 = seed_high;
    var c = vec4<u32>(counter, 0u, 0u, 0u);
    for (var i = 0u; i < 10u; i++) {
        let h0 = multiply_high(c.x, 0xd2511f53u);
        let l0 = c.x * 0xd2511f53u;
        let h1 = multiply_high(c.z, 0xcd9e8d57u);
        let l1 = c.z * 0xcd9e8d57u;
        c = vec4<u32>(h1 ^ c.y ^ k0, l1, h0 ^ c.w ^ k1, l0);
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return c.x;
}

// Sum of the kept weights with a key of at least `key` (or above it).
fn mass_from(local: u32, slot: u32, key: u32, above: bool) -> vec2<u32> {
    let keys = keys_at() + area(slot);
    let weights = weights_at() + area(slot);
    var sum = vec2<u32>(0u);
    for (var i = local; i < p(X_COLS); i += WIDTH) {
        let k = arena[keys + i];
        if k > key || (k == key && !above) {
            sum = add64(sum, vec2<u32>(arena[weights + i], 0u));
        }
    }
    return sum_wide(local, sum);
}

// The largest key such that the weights from it on reach `goal`, which is not above their sum.
fn key_reaching(local: u32, slot: u32, goal: vec2<u32>) -> u32 {
    var key = 0u;
    for (var bit = 0x80000000u; bit > 0u; bit >>= 1u) {
        if !less64(mass_from(local, slot, key | bit, false), goal) {
            key |= bit;
        }
    }
    return key;
}

// Of the kept tokens with this key, each of which counts `one`, the first with which they reach `goal`: found bit by
// bit from how many stand below an id.
fn id_reaching(local: u32, slot: u32, key: u32, one: u32, goal: vec2<u32>) -> u32 {
    let keys = keys_at() + area(slot);
    let weights = weights_at() + area(slot);
    var id = 0u;
    for (var bit = 0x80000000u; bit > 0u; bit >>= 1u) {
        let bound = id | bit;
        if bound > p(X_COLS) {
            continue;
        }
        var n = 0u;
        for (var i = local; i < bound; i += WIDTH) {
            n += select(0u, 1u, arena[keys + i] == key && arena[weights + i] > 0u);
        }
        if less64(multiply64(count_all(local, n), one), goal) {
            id = bound;
        }
    }
    return min(id, p(X_COLS) - 1u);
}

fn weight_of(key: u32, top: f32) -> u32 {
    return u32(exp_(value_of(key) - top) * ONE);
}

// The first token with which the kept ones, in order, reach `goal`: its key and its id.
fn reaching(local: u32, slot: u32, top: f32, goal: vec2<u32>) -> vec2<u32> {
    let key = key_reaching(local, slot, goal);
    let rest = subtract64(goal, mass_from(local, slot, key, true));
    return vec2<u32>(key, id_reaching(local, slot, key, weight_of(key, top), rest));
}

fn choose(local: u32, slot: u32, row: u32) -> u32 {
    let n = p(X_COLS);
    let keys = keys_at() + area(slot);
    let weights = weights_at() + area(slot);
    let temperature = bitcast<f32>(steps[row + STEP_TEMPERATURE]);
    var best = 0u;
    for (var i = local; i < n; i += WIDTH) {
        let key = key_of(divide(value_of(arena[keys + i]), temperature));
        arena[keys + i] = key;
        best = max(best, key);
    }
    best = max_all(local, best);
    let top = value_of(best);
    if !is_finite(top) {
        return 0u;
    }

    // Top-k: the k-th largest key, and how many of those equal to it are kept.
    let k = steps[row + STEP_TOP_K];
    var bound = 0u;
    var equal = n;
    if k > 0u && k < n {
        for (var bit = 0x80000000u; bit > 0u; bit >>= 1u) {
            var c = 0u;
            for (var i = local; i < n; i += WIDTH) {
                c += select(0u, 1u, arena[keys + i] >= (bound | bit));
            }
            if count_all(local, c) >= k {
                bound |= bit;
            }
        }
        var above = 0u;
        for (var i = local; i < n; i += WIDTH) {
            above += select(0u, 1u, arena[keys + i] > bound);
        }
        equal = k - count_all(local, above);
    }
    for (var i = local; i < n; i += WIDTH) {
        let key = arena[keys + i];
        arena[weights + i] = select(0u, weight_of(key, top), key >= bound);
    }
    storageBarrier();
    workgroupBarrier();
    if k > 0u && k < n {
        drop_after(local, slot, bound, id_reaching(local, slot, bound, 1u, vec2<u32>(equal, 0u)));
    }

    // Top-p: the smallest set that reaches the share.
    let top_p = bitcast<f32>(steps[row + STEP_TOP_P]);
    if top_p < 1.0 {
        let fraction = u32(clamp(top_p * 4294967296.0, 0.0, 4294967040.0));
        let total = mass_from(local, slot, 0u, false);
        var goal = share(total, fraction);
        goal.x = select(goal.x, 1u, goal.x == 0u && goal.y == 0u);
        let last = reaching(local, slot, top, goal);
        drop_after(local, slot, last.x, last.y);
    }
    // Min-p: relative to the most likely token, which always stays.
    let least = bitcast<f32>(steps[row + STEP_MIN_P]) * ONE;
    let first = id_reaching(local, slot, best, 1u, vec2<u32>(1u, 0u));
    storageBarrier();
    workgroupBarrier();
    for (var i = local; i < n; i += WIDTH) {
        if i != first && f32(arena[weights + i]) < least {
            arena[weights + i] = 0u;
        }
    }
    storageBarrier();
    workgroupBarrier();

    let mass = mass_from(local, slot, 0u, false);
    let bits = random_bits(steps[row + STEP_SEED_LOW], steps[row + STEP_SEED_HIGH], steps[row + STEP_OFFSET]);
    return reaching(local, slot, top, add64(share(mass, bits), vec2<u32>(1u, 0u))).y;
}

// Drops what comes behind a key and an id.
fn drop_after(local: u32, slot: u32, key: u32, id: u32) {
    let keys = keys_at() + area(slot);
    let weights = weights_at() + area(slot);
    storageBarrier();
    workgroupBarrier();
    for (var i = local; i < p(X_COLS); i += WIDTH) {
        let k = arena[keys + i];
        if k < key || (k == key && i > id) {
            arena[weights + i] = 0u;
        }
    }
    storageBarrier();
    workgroupBarrier();
}

// 7: whether there is a bias, 8: scratch (a key and a weight for each token and slot), 9: first word of the bias.
@compute @workgroup_size(256)
fn sample(t: Thread) {
    let slot = t.group.x;
    let row = slot * STEP_WORDS;
    let local = t.local;
    if local == 0u {
        row_live = select(0u, 1u, is_live(slot));
    }
    let live = workgroupUniformLoad(&row_live);
    if live == 0u {
        if local == 0u {
            arena[p(Y) + slot] = steps[row + STEP_TOKEN];
        }
        return;
    }
    let n = p(X_COLS);
    let keys = keys_at() + area(slot);
    let written = steps[row + STEP_HISTORY_LEN];
    let penalty = bitcast<f32>(steps[row + STEP_REPETITION_PENALTY]);
    let window = min(min(steps[row + STEP_PENALTY_WINDOW], written), HISTORY);
    if local < window {
        recent[local] = bitcast<i32>(steps[row + STEP_HISTORY + (written - 1u - local) % HISTORY]);
    }

    var best = 0u;
    for (var i = local; i < n; i += WIDTH) {
        best = max(best, key_of(biased(slot, i)));
    }
    let top = value_of(max_all(local, best));
    var mass = 0.0;
    best = 0u;
    for (var i = local; i < n; i += WIDTH) {
        var v = biased(slot, i);
        if is_finite(top) {
            mass += exp_(v - top);
        }
        if penalty != 1.0 {
            var seen = false;
            for (var j = 0u; j < window; j++) {
                seen = seen || recent[j] == i32(i);
            }
            if seen {
                if v > 0.0 {
                    v = divide(v, penalty);
                } else {
                    v = v * penalty;
                }
            }
        }
        let key = key_of(v);
        arena[keys + i] = key;
        best = max(best, key);
    }
    mass = sum_all(local, mass);
    best = max_all(local, best);
    storageBarrier();
    workgroupBarrier();

    var token = 0u;
    if bitcast<f32>(steps[row + STEP_TEMPERATURE]) > 0.0 {
        token = choose(local, slot, row);
    } else {
        var id = n;
        for (var i = local; i < n; i += WIDTH) {
            if arena[keys + i] == best {
                id = min(id, i);
            }
        }
        token = min_all(local, id);
    }
    storageBarrier();
    workgroupBarrier();
    if local == 0u {
        var logprob = bitcast<f32>(0xff800000u | (slot & 0u));
        if mass > 0.0 {
            logprob = biased(slot, token) - top - log(mass);
        }
        steps[row + STEP_LOGPROB] = bitcast<u32>(logprob);
        steps[row + STEP_TOKEN] = token;
        steps[row + STEP_OFFSET] += 1u;
        steps[row + STEP_HISTORY + written % HISTORY] = token;
        steps[row + STEP_HISTORY_LEN] = written + 1u;
        for (var i = 0u; i < min(steps[row + STEP_STOP_COUNT], STOPS); i++) {
            if steps[row + STEP_STOPS + i] == token {
                steps[row + STEP_DONE] = 1u;
            }
        }
        arena[p(Y) + slot] = token;
    }
}
