// What a workgroup of 256 does together.

var<workgroup> shared_256: array<f32, 256>;

fn sum_256(local: u32, v: f32) -> f32 {
    workgroupBarrier();
    shared_256[local] = v;
    workgroupBarrier();
    for (var step = 128u; step > 0u; step /= 2u) {
        if local < step {
            shared_256[local] += shared_256[local + step];
        }
        workgroupBarrier();
    }
    return shared_256[0];
}

fn max_256(local: u32, v: f32) -> f32 {
    workgroupBarrier();
    shared_256[local] = v;
    workgroupBarrier();
    for (var step = 128u; step > 0u; step /= 2u) {
        if local < step {
            shared_256[local] = max(shared_256[local], shared_256[local + step]);
        }
        workgroupBarrier();
    }
    return shared_256[0];
}

fn top_4(v: vec4<f32>) -> f32 {
    var top = 0.0;
    for (var i = 0u; i < 4u; i++) {
        let a = abs(v[i]);
        top = select(top, a, a > top);
    }
    return top;
}

// 32 numbers as 8-bit integers and a scale: four numbers a thread, so that 8 threads have a block. Word `at` of those that
// begin at `integers`, and its block's of those that begin at `scales`.
fn quantize_4(local: u32, v: vec4<f32>, is_there: bool, at: u32, integers: u32, scales: u32) {
    workgroupBarrier();
    shared_256[local] = top_4(v);
    workgroupBarrier();
    for (var step = 4u; step > 0u; step /= 2u) {
        if local % 8u < step {
            shared_256[local] = max(shared_256[local], shared_256[local + step]);
        }
        workgroupBarrier();
    }
    let top = shared_256[local / 8u * 8u];
    if is_there {
        let factor = select(0.0, divide(127.0, top), top > 0.0);
        arena[integers + at] = pack4xI8(vec4<i32>(round(v * factor)));
        if local % 8u == 0u {
            store(scales + at / 8u, divide(top, 127.0));
        }
    }
}
