//! Row counts: constants, or affine functions of a symbol that is known only at run time.

use std::fmt;

/// A row count known only at run time, with the maximum that memory is planned for.
///
/// Made by [`GraphBuilder::symbol`](super::GraphBuilder::symbol); an index into that graph's symbols.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Symbol(pub(crate) u16);

impl Symbol {
    /// Position among the graph's symbols, and so in the `lengths` of a run.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// `floor((mul * symbol + add) / div)`, or a constant (`symbol` is `None`: then the value is `add`).
///
/// Affine forms are what convolutions, up-sampling and windows need, and they stay comparable:
/// two dimensions are the same exactly when they are equal as values of this type.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dim {
    symbol: Option<Symbol>,
    mul: i64,
    add: i64,
    div: i64,
}

impl Dim {
    /// The constant `n`.
    pub const fn constant(n: usize) -> Self {
        Self { symbol: None, mul: 0, add: n as i64, div: 1 }
    }

    /// The value of `symbol` itself.
    pub const fn symbol(symbol: Symbol) -> Self {
        Self { symbol: Some(symbol), mul: 1, add: 0, div: 1 }
    }

    /// The symbol this dimension depends on.
    pub fn depends_on(self) -> Option<Symbol> {
        self.symbol
    }

    /// The value when it is a constant.
    pub fn as_constant(self) -> Option<usize> {
        if self.symbol.is_none() { usize::try_from(self.add).ok() } else { None }
    }

    /// One form for each function: a division that leaves no remainder for any symbol is carried out.
    fn reduced(self) -> Self {
        if self.mul % self.div != 0 {
            return self;
        }
        Self { symbol: self.symbol, mul: self.mul / self.div, add: self.add.div_euclid(self.div), div: 1 }
    }

    /// `floor((mul * self + add) / div)`; `None` when that is not affine (a multiple of a floored division)
    /// or overflows.
    pub fn affine(self, mul: i64, add: i64, div: i64) -> Option<Self> {
        if div <= 0 {
            return None;
        }
        if self.symbol.is_none() {
            let value = self.add.checked_mul(mul)?.checked_add(add)?.div_euclid(div);
            return Some(Self { symbol: None, mul: 0, add: value, div: 1 });
        }
        if self.div == 1 {
            let (mul, add) = (self.mul.checked_mul(mul)?, self.add.checked_mul(mul)?.checked_add(add)?);
            return Some(Self { symbol: self.symbol, mul, add, div }.reduced());
        }
        // floor((floor(x / d) + a) / e) = floor((x + a d) / (d e)), which needs a factor of one.
        (mul == 1).then_some(())?;
        let (add, div) = (self.add.checked_add(add.checked_mul(self.div)?)?, self.div.checked_mul(div)?);
        Some(Self { symbol: self.symbol, mul: self.mul, add, div }.reduced())
    }

    /// Whether the value divides by `n` whatever the symbol is.
    pub fn is_multiple_of(self, n: usize) -> bool {
        let Ok(n) = i64::try_from(n) else { return false };
        n > 0 && self.div == 1 && self.mul % n == 0 && self.add % n == 0
    }

    /// The largest value when no symbol exceeds its entry in `maxima`; 0 when there is none.
    pub fn most(self, maxima: &[usize]) -> usize {
        // Affine and floored is monotone, falling where the factor is negative: the largest is at an end.
        let at_zero = self.eval(&vec![0; maxima.len()]);
        at_zero.max(self.eval(maxima)).unwrap_or(0)
    }

    /// The value for the given lengths, one for each symbol; `None` when negative, out of range or unknown.
    pub fn eval(self, lengths: &[usize]) -> Option<usize> {
        let value = match self.symbol {
            None => self.add,
            Some(s) => {
                let n = i64::try_from(*lengths.get(s.index())?).ok()?;
                self.mul.checked_mul(n)?.checked_add(self.add)?.div_euclid(self.div)
            }
        };
        usize::try_from(value).ok()
    }
}

impl From<usize> for Dim {
    fn from(n: usize) -> Self {
        Self::constant(n)
    }
}

impl From<Symbol> for Dim {
    fn from(s: Symbol) -> Self {
        Self::symbol(s)
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbol {
            None => write!(f, "{}", self.add),
            Some(s) if self.mul == 1 && self.add == 0 && self.div == 1 => write!(f, "s{}", s.0),
            Some(s) if self.div == 1 => write!(f, "{}*s{}{:+}", self.mul, s.0, self.add),
            Some(s) => write!(f, "({}*s{}{:+})/{}", self.mul, s.0, self.add, self.div),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composed_floors_equal_nested_floors() {
        let s = Dim::symbol(Symbol(0));
        for (a1, d1, a2, d2) in [(1, 2, 0, 1), (1, 2, 1, 2), (-3, 4, 5, 3), (7, 5, -1, 2)] {
            let composed = s.affine(1, a1, d1).and_then(|d| d.affine(1, a2, d2)).unwrap();
            for n in 8..200_i64 {
                let nested = ((n + a1).div_euclid(d1) + a2).div_euclid(d2);
                assert_eq!(composed.eval(&[n as usize]), usize::try_from(nested).ok());
            }
        }
    }

    #[test]
    fn multiples_hold_for_every_length() {
        let s = Dim::symbol(Symbol(0));
        assert!(s.affine(4, 8, 1).unwrap().is_multiple_of(4) && Dim::constant(12).is_multiple_of(4));
        assert!(!s.is_multiple_of(2) && !s.affine(4, 2, 1).unwrap().is_multiple_of(4));
        assert!(!s.affine(8, 0, 3).unwrap().is_multiple_of(4) && !s.is_multiple_of(0));
        assert!(s.affine(8, 0, 2).unwrap().is_multiple_of(4));
    }

    #[test]
    fn a_falling_dimension_is_largest_at_zero() {
        let s = Dim::symbol(Symbol(0));
        assert_eq!(s.affine(-1, 9, 1).unwrap().most(&[7]), 9);
        assert_eq!(s.affine(1, -3, 1).unwrap().most(&[7]), 4);
        assert_eq!(s.affine(1, -8, 1).unwrap().most(&[7]), 0);
    }

    #[test]
    fn halving_what_was_doubled_gives_the_symbol() {
        let s = Dim::symbol(Symbol(0));
        let doubled = s.affine(2, 0, 1).unwrap();
        assert_eq!(doubled.affine(1, 1, 2), Some(s));
        assert_eq!(doubled.affine(1, -1, 2), s.affine(1, -1, 1));
    }

    #[test]
    fn what_is_not_affine_is_refused() {
        let half = Dim::symbol(Symbol(0)).affine(1, 0, 2).unwrap();
        assert_eq!(half.affine(2, 0, 1), None);
        assert_eq!(half.affine(1, 0, 0), None);
        assert_eq!(Dim::constant(3).affine(2, -7, 1).unwrap().eval(&[]), None);
    }
}
