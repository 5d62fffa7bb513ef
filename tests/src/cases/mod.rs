//! The cases of the op suite: every op of the table, with odd, tiny and zero row counts.
//!
//! | module | ops |
//! |---|---|
//! | [`rows`] | what works row by row or moves rows |
//! | [`products`] | linear layers and convolutions, every weight type |
//! | [`exact`] | integer products that must be equal bit for bit |
//! | [`attention`] | caches, rotary embedding, attention |
//! | [`recurrent`] | LSTM, carries, snapshots |
//! | [`sample`] | drawing tokens |
//! | [`synthesis`] | transposed convolutions, norms over rows, snakes |
//! | [`together`] | what a backend may do in one |
//! | [`large`] | shapes for which a backend may have other kernels |
//! | [`programs`] | several ops together: lifetimes, shared states, run-time lengths with a carry |

pub mod attention;
pub mod exact;
pub mod large;
pub mod products;
pub mod programs;
pub mod recurrent;
pub mod rows;
pub mod sample;
pub mod synthesis;
pub mod together;

use crate::case::Case;

/// Every case.
pub fn all() -> Vec<Case> {
    [
        rows::cases(),
        products::cases(),
        exact::cases(),
        attention::cases(),
        recurrent::cases(),
        sample::cases(),
        synthesis::cases(),
        programs::cases(),
        together::cases(),
        large::cases(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use repartee_engine::graph::Op;

    #[test]
    fn every_op_has_a_case() {
        let cases = super::all();
        let seen: BTreeSet<_> = cases.iter().flat_map(|c| &c.graph.nodes).map(|n| n.op.name()).collect();
        assert_eq!(seen, Op::NAMES.into_iter().collect());
    }

    #[test]
    fn names_are_unique_and_scripts_run() {
        let cases = super::all();
        let names: BTreeSet<_> = cases.iter().map(|c| &c.name).collect();
        assert_eq!(names.len(), cases.len());
        assert!(cases.iter().all(|c| !c.script.is_empty()));
    }
}
