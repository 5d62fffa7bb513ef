//! The turn machine.
