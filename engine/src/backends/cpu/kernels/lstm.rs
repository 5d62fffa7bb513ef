//! The element-wise half of a long short-term memory step.

use crate::backends::cpu::simd::{Kernel, LANES, Simd, sigmoid, tanh};

/// From gates `[i, f, g, o]` of `hidden` numbers each to new cell and hidden rows; `out` gets the hidden row too.
pub(crate) struct LstmCell {
    pub(crate) gates: *const f32,
    pub(crate) cell: *mut f32,
    pub(crate) hidden_row: *mut f32,
    pub(crate) out: *mut f32,
    pub(crate) hidden: usize,
}

impl Kernel for LstmCell {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let mut j = 0;
        while j < self.hidden {
            let n = (self.hidden - j).min(LANES);
            // SAFETY: `hidden` numbers for each gate and row, the caller's promise.
            unsafe {
                let gate = |k: usize| S::load_n(self.gates.add(k * self.hidden + j), n);
                let kept = S::mul(sigmoid::<S>(gate(1)), S::load_n(self.cell.add(j), n));
                let cell = S::fma(sigmoid::<S>(gate(0)), tanh::<S>(gate(2)), kept);
                let h = S::mul(sigmoid::<S>(gate(3)), tanh::<S>(cell));
                S::store_n(self.cell.add(j), cell, n);
                S::store_n(self.hidden_row.add(j), h, n);
                S::store_n(self.out.add(j), h, n);
            }
            j += LANES;
        }
    }
}
