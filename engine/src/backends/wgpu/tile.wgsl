// Products of many rows: a workgroup of 256 makes 32 rows by 32 outputs through shared memory. Four parts of it take 16
// columns each at a time, every fourth sixteen; each thread of a part has 4 by 4 sums and fetches the next columns while it
// multiplies. Who includes this gives weight4(out, k) and input4(row, k), four columns from k on, zero behind the last;
// outputs and rows behind the last are the last once more.

const TILE: u32 = 32u;
const TILE_PARTS: u32 = 4u;
const TILE_DEPTH: u32 = 16u;

// For each part columns in front, then four outputs (rows) a vector.
var<workgroup> tile_w: array<vec4<f32>, 512>;
var<workgroup> tile_x: array<vec4<f32>, 512>;

// First row and first output of the workgroup's tile.
fn tile_origin(t: Thread, outs: u32) -> vec2<u32> {
    let across = (outs + TILE - 1u) / TILE;
    let index = group_index(t);
    return vec2<u32>(index / across * TILE, index % across * TILE);
}

// Four columns of four rows (of outputs behind the fourth word), column by column.
fn tile_fetch(word: u32, first: vec2<u32>, k: u32, depth: u32) -> mat4x4<f32> {
    let col = k + 4u * (word % 4u);
    if col >= depth {
        return mat4x4<f32>();
    }
    if word < 4u {
        return transpose(mat4x4<f32>(
            input4(first.x, col),
            input4(first.x + 1u, col),
            input4(first.x + 2u, col),
            input4(first.x + 3u, col),
        ));
    }
    return transpose(mat4x4<f32>(
        weight4(first.y, col),
        weight4(first.y + 1u, col),
        weight4(first.y + 2u, col),
        weight4(first.y + 3u, col),
    ));
}

// Sums for the first 64 threads.
fn tile_product(local: u32, origin: vec2<u32>, depth: u32) -> array<vec4<f32>, 4> {
    let part = local / 64u;
    let quad = local % 8u;
    let word = local % 64u / 8u;
    let first = origin + 4u * quad;
    let base = part * 128u;
    let at = base + 32u * (word % 4u) + quad;
    var sum = array<vec4<f32>, 4>();
    var next = tile_fetch(word, first, part * TILE_DEPTH, depth);
    for (var k = 0u; k < depth; k += TILE_PARTS * TILE_DEPTH) {
        workgroupBarrier();
        for (var i = 0u; i < 4u; i++) {
            if word < 4u {
                tile_x[at + 8u * i] = next[i];
            } else {
                tile_w[at + 8u * i] = next[i];
            }
        }
        workgroupBarrier();
        next = tile_fetch(word, first, k + (TILE_PARTS + part) * TILE_DEPTH, depth);
        for (var i = 0u; i < TILE_DEPTH; i++) {
            let a = tile_x[base + 8u * i + word];
            let b = tile_w[base + 8u * i + quad];
            sum[0] += a.x * b;
            sum[1] += a.y * b;
            sum[2] += a.z * b;
            sum[3] += a.w * b;
        }
    }
    // The parts, one row of sums after the other.
    for (var r = 0u; r < 4u; r++) {
        workgroupBarrier();
        tile_x[local] = sum[r];
        workgroupBarrier();
        if part == 0u {
            sum[r] += (tile_x[local + 64u] + tile_x[local + 128u]) + tile_x[local + 192u];
        }
    }
    return sum;
}

// Adds the bias of w1 where there is one (has_bias), and what 13 to 15 name, and stores what lies in y.
fn tile_store(local: u32, origin: vec2<u32>, sum: array<vec4<f32>, 4>, bounds: vec2<u32>, first: u32, has_bias: bool) {
    if local >= 64u {
        return;
    }
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
