//! The real threads with scripted stages in simulated time.

mod cases;
mod world;
