// Products of many rows: a workgroup makes 32 rows by 32 outputs, 32 columns at a time, through shared memory. Each
// thread has 4 by 4 of them. Who includes this gives weight4(out, k) and input4(row, k), four columns from k on, zero
// behind the last; outputs and rows behind the last are the last once more.

const TILE: u32 = 32u;

// Columns in front, then four outputs (rows) a vector.
var<workgroup> tile_w: array<vec4<f32>, 256>;
var<workgroup> tile_x: array<vec4<f32>, 256>;

// First row and first output of the workgroup's tile.
fn tile_origin(t: Thread, outs: u32) -> vec2<u32> {
    let across = (outs + TILE - 1u) / TILE;
    let index = group_index(t);
    return vec2<u32>(index / across * TILE, index % across * TILE);
}

fn tile_product(local: u32, origin: vec2<u32>, depth: u32) -> array<vec4<f32>, 4> {
    let quad = local % 8u;
    let word = local / 8u;
    var sum = array<vec4<f32>, 4>();
    for (var k = 0u; k < depth; k += TILE) {
        let col = k + 4u * word;
        let row = origin.x + 4u * quad;
        let out = origin.y + 4u * quad;
        let x0 = input4(row, col);
        let x1 = input4(row + 1u, col);
        let x2 = input4(row + 2u, col);
        let x3 = input4(row + 3u, col);
        let v0 = weight4(out, col);
        let v1 = weight4(out + 1u, col);
        let v2 = weight4(out + 2u, col);
        let v3 = weight4(out + 3u, col);
        let at = 32u * word + quad;
        workgroupBarrier();
        tile_x[at] = vec4<f32>(x0.x, x1.x, x2.x, x3.x);
        tile_x[at + 8u] = vec4<f32>(x0.y, x1.y, x2.y, x3.y);
        tile_x[at + 16u] = vec4<f32>(x0.z, x1.z, x2.z, x3.z);
        tile_x[at + 24u] = vec4<f32>(x0.w, x1.w, x2.w, x3.w);
        tile_w[at] = vec4<f32>(v0.x, v1.x, v2.x, v3.x);
        tile_w[at + 8u] = vec4<f32>(v0.y, v1.y, v2.y, v3.y);
        tile_w[at + 16u] = vec4<f32>(v0.z, v1.z, v2.z, v3.z);
        tile_w[at + 24u] = vec4<f32>(v0.w, v1.w, v2.w, v3.w);
        workgroupBarrier();
        for (var i = 0u; i < TILE; i++) {
            let a = tile_x[8u * i + word];
            let b = tile_w[8u * i + quad];
            sum[0] += a.x * b;
            sum[1] += a.y * b;
            sum[2] += a.z * b;
            sum[3] += a.w * b;
        }
    }
    return sum;
}

// Adds the bias of w1 where there is one (has_bias), and what 13 to 15 name, and stores what lies in y.
fn tile_store(local: u32, origin: vec2<u32>, sum: array<vec4<f32>, 4>, bounds: vec2<u32>, first: u32, has_bias: bool) {
    var all = sum;
    for (var r = 0u; r < 4u; r++) {
        let row = origin.x + local / 8u * 4u + r;
        for (var c = 0u; c < 4u; c++) {
            let out = origin.y + local % 8u * 4u + c;
            if row < bounds.x && out < bounds.y {
                var v = all[r][c];
                if has_bias {
                    v += bitcast<f32>(w1[first + out]);
                }
                if p(13u) != 0u {
                    v += load(p(14u) + row * p(15u) + first + out);
                }
                store(p(Y) + row * p(Y_STRIDE) + first + out, v);
            }
        }
    }
}
