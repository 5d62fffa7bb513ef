//! The op table, dimensions and the graph builder.
