//! Repartee, a native desktop voice agent.

fn main() {}
