//! The step block: what changes from step to step, kept in device memory with one row for each sequence.
//!
//! Ops read it (positions, lengths, sampler settings) and update it (the sampled token, `done`), so the
//! sampled token never has to visit the host before the next step uses it, and the host may run some steps
//! ahead: a row that is `done` or not `active` does not change any more.

use bytemuck::{Pod, Zeroable};

/// Most stop tokens a row can hold.
pub const MAX_STOPS: usize = 8;
/// How many of the newest tokens a row remembers for the repetition penalty and for reading back.
pub const HISTORY: usize = 256;

/// One sequence's row of the step block. Plain data with the layout that every device shares
/// (32-bit words only, no padding).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
pub struct StepRow {
    /// Tokens already in the caches; the first row of this run stands at this position.
    pub position: u32,
    /// 1 while the sequence takes part in runs.
    pub active: u32,
    /// 1 once a stop token was drawn; the row then no longer changes.
    pub done: u32,
    /// The newest token: drawn by the sampler, or set by the host.
    pub token: i32,
    /// Natural logarithm of the drawn token's probability under the unmodified distribution.
    pub logprob: f32,
    /// Seed of the counter-based random numbers, low half.
    pub seed_low: u32,
    /// Seed of the counter-based random numbers, high half.
    pub seed_high: u32,
    /// How many tokens were drawn since the row was set up: the counter of the random numbers.
    pub offset: u32,
    /// 0 is greedy.
    pub temperature: f32,
    /// Keep the k most likely tokens; 0 keeps all.
    pub top_k: u32,
    /// Keep the smallest set whose probability reaches this; 1 keeps all.
    pub top_p: f32,
    /// Drop tokens less likely than this fraction of the most likely one; 0 keeps all.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens in the window; 1 does nothing.
    pub repetition_penalty: f32,
    /// How many of the newest tokens the penalty looks at, at most [`HISTORY`].
    pub penalty_window: u32,
    /// How many of `stops` are set.
    pub stop_count: u32,
    /// How many tokens were ever written to `history`; the newest is at `(history_len - 1) % HISTORY`.
    pub history_len: u32,
    /// Tokens that end the sequence.
    pub stops: [i32; MAX_STOPS],
    /// Ring of the newest tokens.
    pub history: [i32; HISTORY],
}

impl Default for StepRow {
    /// An active greedy row at position 0.
    fn default() -> Self {
        let mut row = Self::zeroed();
        row.active = 1;
        row.top_p = 1.0;
        row.repetition_penalty = 1.0;
        row.penalty_window = 64;
        row
    }
}

impl StepRow {
    /// Whether the row still changes.
    pub fn is_live(&self) -> bool {
        self.active != 0 && self.done == 0
    }

    /// Appends a token to the history ring.
    pub fn remember(&mut self, token: i32) {
        self.history[self.history_len as usize % HISTORY] = token;
        self.history_len = self.history_len.wrapping_add(1);
    }

    /// The newest `n` tokens, newest first (fewer if fewer were written).
    pub fn recent(&self, n: usize) -> impl Iterator<Item = i32> + '_ {
        let len = self.history_len as usize;
        (0..n.min(len).min(HISTORY)).map(move |i| self.history[(len - 1 - i) % HISTORY])
    }

    /// Sets the tokens that end the sequence; those beyond [`MAX_STOPS`] are ignored.
    pub fn set_stops(&mut self, stops: &[i32]) {
        let n = stops.len().min(MAX_STOPS);
        self.stops[..n].copy_from_slice(&stops[..n]);
        self.stop_count = n as u32;
    }

    /// Whether `token` is one of the stop tokens.
    pub fn is_stop(&self, token: i32) -> bool {
        self.stops[..(self.stop_count as usize).min(MAX_STOPS)].contains(&token)
    }
}

/// 32 random bits from seed and counter, equal on every device.
///
/// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), first word.
pub fn random_bits(seed_low: u32, seed_high: u32, counter: u32) -> u32 {
    let (mut k0, mut k1) = (seed_low, seed_high);
    let mut c = [counter, 0, 0, 0];
    for _ in 0..10 {
        let p0 = u64::from(c[0]) * 0xD251_1F53;
        let p1 = u64::from(c[2]) * 0xCD9E_8D57;
        c = [(p1 >> 32) as u32 ^ c[1] ^ k0, p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k1, p0 as u32];
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
    }
    c[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_matches_the_published_test_vector() {
        // Random123 known-answer test: zero counter and zero key give 6627e8d5 as the first word.
        assert_eq!(random_bits(0, 0, 0), 0x6627_e8d5);
    }

    #[test]
    fn history_is_a_ring() {
        let mut row = StepRow::default();
        for t in 0..(HISTORY as i32 + 3) {
            row.remember(t);
        }
        assert_eq!(row.recent(3).collect::<Vec<_>>(), [258, 257, 256]);
        assert_eq!(row.recent(10_000).count(), HISTORY);
    }
}
