//! The model families.
