// Products of few rows: LANES threads of a workgroup of 64 make an output together.

fn lanes_sum(local: u32, v: f32) -> f32 {
    workgroupBarrier();
    shared_sum[local] = v;
    workgroupBarrier();
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        if local % LANES < step {
            shared_sum[local] += shared_sum[local + step];
        }
        workgroupBarrier();
    }
    return shared_sum[local];
}

// Row and output of a thread: rows one by one.
fn lanes_place(t: Thread, outs: u32) -> vec2<u32> {
    let each = 64u / LANES;
    let across = (outs + each - 1u) / each;
    let index = group_index(t);
    return vec2<u32>(index / across, index % across * each + t.local / LANES);
}

// Adds up what the threads of an output have, its bias where there is one (7), and what 13 to 15 name.
fn lanes_store(local: u32, place: vec2<u32>, v: f32) {
    var sum = lanes_sum(local, v);
    if local % LANES == 0u && place.x < p(N) && place.y < p(11u) {
        let out = p(10u) + place.y;
        if p(7u) != 0u {
            sum += bitcast<f32>(w1[out]);
        }
        if p(13u) != 0u {
            sum += load(p(14u) + place.x * p(15u) + out);
        }
        store(p(Y) + place.x * p(Y_STRIDE) + out, sum);
    }
}

