//! The live conversation: devices, models and pipeline behind one handle, for the window and for the terminal.
//!
//! A front end holds a [`Live`]: it shows [`Live::snapshot`] when the wake callback says that something changed, and
//! sends [`Command`]s. Everything else (loading in order, devices that come and go, notices) happens behind it.

#![expect(dead_code, unused_imports, reason = "the types stand before what uses them")]

mod state;

pub(crate) use state::{Command, DeviceChoice, Settings, Setup, Snapshot, StageInfo};
