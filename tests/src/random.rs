//! Deterministic random numbers for tests: the same on every machine and in every version of a crate.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator for the case called `name`: adding a case elsewhere does not change this one's numbers.
    pub fn for_name(name: &str) -> Self {
        // FNV-1a.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        Self(hash)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n` (0 for 0).
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() >> 33) as usize % n.max(1)
    }

    /// A number in `low ..= high`.
    pub fn between(&mut self, low: i32, high: i32) -> i32 {
        low + self.below((high - low + 1) as usize) as i32
    }

    /// A number in `[low, high)`, a multiple of 2^-24 of the range.
    pub fn uniform(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * ((self.bits() >> 40) as f32 / 16_777_216.0)
    }

    /// `n` numbers in `[-top, top)`.
    pub fn floats(&mut self, n: usize, top: f32) -> Vec<f32> {
        (0..n).map(|_| self.uniform(-top, top)).collect()
    }

    /// `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| (self.bits() >> 56) as u8).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_sequence() {
        // First outputs of SplitMix64 for seed 1234567, from the Rosetta Code task "Pseudo-random numbers/Splitmix64".
        let mut r = Random(1_234_567);
        assert_eq!(r.bits(), 6_457_827_717_110_365_317);
        assert_eq!(r.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn stays_in_range() {
        let mut r = Random::for_name("range");
        for _ in 0..1000 {
            assert!((-3..=4).contains(&r.between(-3, 4)));
            assert!((-2.0..2.0).contains(&r.uniform(-2.0, 2.0)));
            assert!(r.below(7) < 7);
        }
    }
}
