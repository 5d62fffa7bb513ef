//! Positions and lengths on the microphone's sample clock.

use std::ops::{Add, AddAssign, Sub};

/// Samples per second of everything that listens: echo canceller, VAD, recogniser.
pub const LISTEN_RATE_HZ: u64 = 16_000;

/// A position (samples since the microphone stream began) or a length, at 16 kHz.
///
/// Arithmetic saturates: a position is never before the beginning of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Samples(pub u64);

impl Samples {
    /// The beginning of the stream, or nothing.
    pub const ZERO: Self = Self(0);

    /// This many milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(LISTEN_RATE_HZ / 1000))
    }

    /// As milliseconds.
    pub fn as_ms(self) -> f64 {
        self.0 as f64 * 1000.0 / LISTEN_RATE_HZ as f64
    }
}

impl Add for Samples {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Samples {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Samples {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
