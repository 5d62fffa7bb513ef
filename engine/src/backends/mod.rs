//! The implementations of the op table.
