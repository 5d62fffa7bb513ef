//! The plain f32 meaning of each op: short, slow, used by tests.
