// Writes of caches.

// 7: rows of a slot, 8: rows of a slot's cache, 9: whether to count from the position, 10: whether f16.
// One thread writes one word.
@compute @workgroup_size(64)
fn cache_write(t: Thread) {
    let at = thread_index(t);
    let f16 = p(10u) != 0u;
    let words = select(p(X_COLS), p(X_COLS) / 2u, f16);
    if at >= p(N) * words {
        return;
    }
    let row = at / words;
    let word = at % words;
    let slot = row / p(7u);
    var to = row % p(7u);
    if p(9u) != 0u {
        if !is_live(slot) {
            return;
        }
        to += position(slot);
    }
    if to >= p(8u) {
        return;
    }
    let place = (slot * p(8u) + to) * words + word;
    let x = p(X) + row * p(X_STRIDE);
    if f16 {
        s0[place] = half_bits(load(x + 2u * word)) | (half_bits(load(x + 2u * word + 1u)) << 16u);
    } else {
        s0[place] = arena[x + word];
    }
}
