//! Pieces of graph that models share.
