// What the adapter can do at best. Bindings as everywhere, in vectors.

@group(0) @binding(0) var<storage, read_write> goal: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> origin: array<vec4<u32>>;

// A workgroup takes 16 * 256 neighbours.
@compute @workgroup_size(256)
fn read_all(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    var sum = vec4<u32>(0u);
    for (var i = 0u; i < 16u; i++) {
        let at = group.x * 4096u + i * 256u + local;
        if at < arrayLength(&origin) {
            sum |= origin[at];
        }
    }
    // Never, as no number is this large, but the compiler does not know.
    if (sum.x | sum.y | sum.z | sum.w) == 0xffffffffu {
        goal[0] = sum;
    }
}

@compute @workgroup_size(256)
fn copy_all(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    for (var i = 0u; i < 16u; i++) {
        let at = group.x * 4096u + i * 256u + local;
        if at < arrayLength(&origin) {
            goal[at] = origin[at];
        }
    }
}

// 256 times 8 multiply-adds of vectors in each thread.
@compute @workgroup_size(256)
fn multiply(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let x = bitcast<vec4<f32>>(origin[0]) + 0.5;
    var a = array<vec4<f32>, 8>();
    for (var i = 0u; i < 8u; i++) {
        a[i] = x * f32(i + local);
    }
    for (var round = 0u; round < 256u; round++) {
        a[0] = fma(a[0], x, x);
        a[1] = fma(a[1], x, x);
        a[2] = fma(a[2], x, x);
        a[3] = fma(a[3], x, x);
        a[4] = fma(a[4], x, x);
        a[5] = fma(a[5], x, x);
        a[6] = fma(a[6], x, x);
        a[7] = fma(a[7], x, x);
    }
    let sum = a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];
    if sum.x + sum.y + sum.z + sum.w < 0.0 {
        goal[0] = bitcast<vec4<u32>>(sum);
    }
}

// Nothing, behind what was before: the second one waits for the first, as both may write.
@compute @workgroup_size(64)
fn nothing(@builtin(workgroup_id) group: vec3<u32>) {
    if group.x > 0u {
        goal[0] = origin[0];
    }
}
