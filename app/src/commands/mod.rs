//! The headless commands, one module each.

pub(crate) mod check;
pub(crate) mod models;
pub(crate) mod report;
