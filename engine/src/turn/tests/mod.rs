//! The turn machine on a simulated sample clock, with scripted stages that answer at once or late.

mod cases;
mod properties;
pub(super) mod simulation;
