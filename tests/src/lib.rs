//! Helpers shared by the tests that span the workspace.
//!
//! | module | what it holds |
//! |---|---|
//! | [`compare`] | the one compare helper: tolerance is data with a reason |
//! | [`random`] | deterministic random numbers |
//! | [`random_model`] | language models of random weights, with the shapes and types of published ones |
//! | [`broken`] | backends that are wrong on purpose, to see the suite fail |
//! | [`case`] | a graph with its weights and a script of runs; holding a backend to the reference |
//! | [`cases`] | the cases of the op suite, for every op of the table |
//! | [`references`] | stored references of other engines, held to their stamps |
//! | [`speech`] | the speaker and the recogniser of the product, for tests that listen |
//! | [`subjects`] | the backends that this machine offers, with what they do not claim |

pub mod broken;
pub mod case;
pub mod cases;
pub mod compare;
pub mod random;
pub mod random_model;
pub mod references;
pub mod speech;
pub mod subjects;
