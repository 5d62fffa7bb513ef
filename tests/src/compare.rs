//! The one compare helper. A tolerance is data with a reason, and a number passes only if it is within: NaN,
//! infinity and wrong shapes fail, on either side and at zero too.
//!
//! ```
//! use repartee_tests::compare::{Tolerance, compare};
//! let t = Tolerance::new(1e-6, 1e-5, "sums of 64 products in f32");
//! compare(&[1.0, 2.0], &[1.0, 2.000_01], 2, t).unwrap();
//! assert!(compare(&[1.0, 2.0], &[1.0, f32::NAN], 2, t).is_err());
//! ```

use std::fmt;

/// How far a number may be from what is expected: `absolute + relative * |expected|`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// Part that holds at zero, in the unit of the numbers.
    pub absolute: f32,
    /// Part that grows with the expected number.
    pub relative: f32,
    /// Why that much and not less.
    pub reason: &'static str,
}

impl Tolerance {
    /// A tolerance and its reason.
    pub const fn new(absolute: f32, relative: f32, reason: &'static str) -> Self {
        Self { absolute, relative, reason }
    }

    /// Equal numbers only.
    pub const EXACT: Self = Self::new(0.0, 0.0, "must be equal");

    /// The largest difference allowed beside `expected`.
    pub fn allowed(&self, expected: f32) -> f32 {
        self.absolute + self.relative * expected.abs()
    }

    /// Whether `got` is within the tolerance of `expected`. False whenever one of them is not finite.
    pub fn holds(&self, expected: f32, got: f32) -> bool {
        expected.is_finite() && got.is_finite() && (expected - got).abs() <= self.allowed(expected)
    }
}

/// What differs, and by how much.
#[derive(Clone, PartialEq, Debug)]
pub enum Mismatch {
    /// Another number of elements.
    Shape {
        /// Elements expected.
        expected: usize,
        /// Elements found.
        got: usize,
        /// Columns of a row.
        cols: usize,
    },
    /// At least one element is not within the tolerance.
    Element {
        /// Row of the worst element.
        row: usize,
        /// Column of the worst element.
        col: usize,
        /// What was expected there.
        expected: f32,
        /// What was found there.
        got: f32,
        /// How many elements are not within.
        wrong: usize,
        /// Out of how many.
        of: usize,
        /// The tolerance.
        tolerance: Tolerance,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shape { expected, got, cols } => {
                let rows = |n: usize| n as f64 / cols.max(1) as f64;
                write!(
                    f,
                    "{got} numbers ({} rows) instead of {expected} ({} rows)",
                    rows(got),
                    rows(expected)
                )
            }
            Self::Element { row, col, expected, got, wrong, of, tolerance } => write!(
                f,
                "{wrong} of {of} numbers are off; worst at row {row}, column {col}: {got:e} instead of {expected:e} \
                 (off by {:e}, allowed {:e}: {})",
                (got - expected).abs(),
                tolerance.allowed(expected),
                tolerance.reason
            ),
        }
    }
}

/// Compares rows of `cols` numbers.
///
/// # Errors
/// The shape, or the worst element and how many are wrong.
pub fn compare(expected: &[f32], got: &[f32], cols: usize, tolerance: Tolerance) -> Result<(), Mismatch> {
    if expected.len() != got.len() {
        return Err(Mismatch::Shape { expected: expected.len(), got: got.len(), cols });
    }
    let mut wrong = 0;
    let mut worst: Option<(f32, usize)> = None;
    for (i, (&e, &g)) in expected.iter().zip(got).enumerate() {
        if tolerance.holds(e, g) {
            continue;
        }
        wrong += 1;
        let excess = (e - g).abs() - tolerance.allowed(e);
        let excess = if excess.is_nan() { f32::INFINITY } else { excess };
        if worst.is_none_or(|(w, _)| excess > w) {
            worst = Some((excess, i));
        }
    }
    let Some((_, at)) = worst else { return Ok(()) };
    let (row, col) = (at / cols.max(1), at % cols.max(1));
    let of = expected.len();
    Err(Mismatch::Element { row, col, expected: expected[at], got: got[at], wrong, of, tolerance })
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Tolerance = Tolerance::new(1e-6, 1e-5, "test");

    fn rows() -> Vec<f32> {
        (0..12).map(|i| i as f32 * 0.75 - 3.0).collect()
    }

    #[test]
    fn accepts_equal_and_near() {
        compare(&rows(), &rows(), 4, Tolerance::EXACT).unwrap();
        let near: Vec<f32> = rows().iter().map(|x| x * 1.000_005 + 5e-7).collect();
        compare(&rows(), &near, 4, T).unwrap();
        compare(&[], &[], 4, Tolerance::EXACT).unwrap();
        compare(&[0.0], &[-0.0], 1, Tolerance::EXACT).unwrap();
    }

    #[test]
    fn rejects_what_is_not_finite_wherever_it_stands() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for at in 0..12 {
                let mut got = rows();
                got[at] = bad;
                assert!(compare(&rows(), &got, 4, T).is_err(), "{bad} at {at}");
                assert!(compare(&got, &rows(), 4, T).is_err(), "expected {bad} at {at}");
                assert!(compare(&got, &got, 4, T).is_err(), "both {bad} at {at}");
            }
        }
        let endless = Tolerance::new(f32::INFINITY, 0.0, "none");
        assert!(compare(&[1.0], &[f32::NAN], 1, endless).is_err());
        let broken = Tolerance::new(f32::NAN, 0.0, "none");
        assert!(compare(&[1.0], &[1.0], 1, broken).is_err());
    }

    #[test]
    fn rejects_wrong_shapes() {
        let e = compare(&rows(), &rows()[..8], 4, T).unwrap_err();
        assert_eq!(e, Mismatch::Shape { expected: 12, got: 8, cols: 4 });
        assert!(compare(&rows()[..8], &rows(), 4, T).is_err());
        assert!(compare(&rows(), &[], 4, T).is_err());
        assert!(compare(&[], &rows(), 4, T).is_err());
    }

    #[test]
    fn rejects_rows_moved_by_one() {
        let mut got = rows();
        got.rotate_left(4);
        assert!(compare(&rows(), &got, 4, T).is_err());
        got.rotate_right(5);
        assert!(compare(&rows(), &got, 4, T).is_err());
    }

    #[test]
    fn rejects_one_wrong_element_and_names_it() {
        let mut got = rows();
        got[6] += 1e-3;
        got[9] += 1e-4;
        let Err(Mismatch::Element { row, col, wrong, .. }) = compare(&rows(), &got, 4, T) else { panic!() };
        assert_eq!((row, col, wrong), (1, 2, 2));
    }

    #[test]
    fn rejects_at_zero() {
        // A tolerance measured only relative to the expected number would let nothing, or everything, pass here.
        compare(&[0.0], &[1e-6], 1, T).unwrap();
        assert!(compare(&[0.0], &[1.1e-6], 1, T).is_err());
        assert!(compare(&[0.0], &[-1.1e-6], 1, T).is_err());
        assert!(compare(&[0.0], &[f32::MIN_POSITIVE], 1, Tolerance::EXACT).is_err());
    }

    #[test]
    fn rejects_just_outside_on_both_sides() {
        for e in [-8.0_f32, 8.0] {
            assert!(T.holds(e, e + 8.0e-5) && T.holds(e, e - 8.0e-5));
            assert!(!T.holds(e, e + 8.3e-5) && !T.holds(e, e - 8.3e-5));
        }
    }
}
