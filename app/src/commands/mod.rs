//! The headless commands, one module each.

pub(crate) mod bench;
pub(crate) mod check;
#[cfg(feature = "desktop")]
pub(crate) mod converse;
pub(crate) mod devices;
#[cfg(feature = "desktop")]
mod lines;
pub(crate) mod models;
pub(crate) mod report;
pub(crate) mod say;
pub(crate) mod setup;
pub(crate) mod talk;
