// Recurrences: a workgroup for each direction walks over the rows. THREADS of it: each adds up what some of the hidden
// row's numbers give to four gates.

const MOST_HIDDEN: u32 = 512u;
const QUADS: u32 = 256u;
const PARTS: u32 = THREADS / QUADS;

var<workgroup> hidden_row: array<f32, MOST_HIDDEN>;
var<workgroup> cell_row: array<f32, MOST_HIDDEN>;
// Input, forget, cell and output gates, hidden numbers each.
var<workgroup> gates: array<f32, 4u * MOST_HIDDEN>;
var<workgroup> sums: array<vec4<f32>, THREADS>;

fn weights_of(is_second: bool, at: u32) -> vec4<f32> {
    if is_second {
        return bitcast<vec4<f32>>(w2[at]);
    }
    return bitcast<vec4<f32>>(w0[at]);
}

fn bias_of(is_second: bool, at: u32) -> vec4<f32> {
    if is_second {
        return bitcast<vec4<f32>>(w3[at]);
    }
    return bitcast<vec4<f32>>(w1[at]);
}

// 7: hidden columns, 8: whether there is a state. 9 to 13, and of the second direction 14 to 18: first word of y and its
// stride, whether backwards, whether there is a bias, first word of what the input gives to the gates of each row. w0, w2:
// the hidden row's weights, for each of its numbers all gates; w1, w3: their bias.
@compute @workgroup_size(THREADS)
fn lstm(t: Thread) {
    let hidden = p(7u);
    let with_state = p(8u) != 0u;
    let is_second = group_index(t) > 0u;
    let own = select(9u, 14u, is_second);
    for (var j = t.local; j < hidden; j += THREADS) {
        hidden_row[j] = 0.0;
        cell_row[j] = 0.0;
        if with_state {
            hidden_row[j] = bitcast<f32>(s0[j]);
            cell_row[j] = bitcast<f32>(s0[hidden + j]);
        }
    }
    workgroupBarrier();
    let n = p(N);
    let quad = t.local % QUADS;
    let part = t.local / QUADS;
    let each = (hidden + PARTS - 1u) / PARTS;
    let first = min(part * each, hidden);
    let end = min(first + each, hidden);
    for (var i = 0u; i < n; i++) {
        let row = select(i, n - 1u - i, p(own + 2u) != 0u);
        // `hidden` quads of gates.
        for (var base = 0u; base < hidden; base += QUADS) {
            let q = base + quad;
            var sum = vec4<f32>();
            if q < hidden {
                if part == 0u {
                    sum = load4(p(own + 4u) + row * 4u * hidden + 4u * q);
                    if p(own + 3u) != 0u {
                        sum += bias_of(is_second, q);
                    }
                }
                var j = first;
                for (; j + 8u <= end; j += 8u) {
                    let at = j * hidden + q;
                    let a = weights_of(is_second, at);
                    let b = weights_of(is_second, at + hidden);
                    let c = weights_of(is_second, at + 2u * hidden);
                    let d = weights_of(is_second, at + 3u * hidden);
                    let e = weights_of(is_second, at + 4u * hidden);
                    let f = weights_of(is_second, at + 5u * hidden);
                    let g = weights_of(is_second, at + 6u * hidden);
                    let h = weights_of(is_second, at + 7u * hidden);
                    sum += hidden_row[j] * a + hidden_row[j + 1u] * b + hidden_row[j + 2u] * c + hidden_row[j + 3u] * d;
                    sum += hidden_row[j + 4u] * e + hidden_row[j + 5u] * f + hidden_row[j + 6u] * g
                        + hidden_row[j + 7u] * h;
                }
                for (; j < end; j++) {
                    sum += hidden_row[j] * weights_of(is_second, j * hidden + q);
                }
            }
            sums[t.local] = sum;
            workgroupBarrier();
            if part == 0u && q < hidden {
                for (var other = 1u; other < PARTS; other++) {
                    sum += sums[other * QUADS + quad];
                }
                gates[4u * q] = sum.x;
                gates[4u * q + 1u] = sum.y;
                gates[4u * q + 2u] = sum.z;
                gates[4u * q + 3u] = sum.w;
            }
            workgroupBarrier();
        }
        for (var j = t.local; j < hidden; j += THREADS) {
            let input = sigmoid_(gates[j]);
            let forget = sigmoid_(gates[hidden + j]);
            let c = forget * cell_row[j] + input * tanh_(gates[2u * hidden + j]);
            let v = sigmoid_(gates[3u * hidden + j]) * tanh_(c);
            cell_row[j] = c;
            hidden_row[j] = v;
            store(p(own) + row * p(own + 1u) + j, v);
        }
        workgroupBarrier();
    }
    if with_state {
        for (var j = t.local; j < hidden; j += THREADS) {
            s0[j] = bitcast<u32>(hidden_row[j]);
            s0[hidden + j] = bitcast<u32>(cell_row[j]);
        }
    }
}
