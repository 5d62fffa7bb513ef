//! How much work a node is: what a measured time is held against.

use super::{ConvShape, Graph, KeyValues, Node, Op, Weight};

/// Weights that a run reads whole; tables, of which it reads some rows, are none of them.
pub fn weights_read(op: &Op) -> Vec<Weight> {
    let (first, rest) = match *op {
        Op::Linear { weight, bias, .. }
        | Op::Conv1d { weight, bias, .. }
        | Op::Conv1dCarry { weight, bias, .. }
        | Op::ConvTranspose1d { weight, bias, .. } => (weight, [bias, None, None]),
        Op::LayerNorm { gain, bias, .. } => (gain, [bias, None, None]),
        Op::RmsNorm { gain, .. } => (gain, [None; 3]),
        Op::Snake { alpha } => (alpha, [None; 3]),
        Op::Lstm { w_ih, w_hh, b_ih, b_hh, .. } => (w_ih, [Some(w_hh), b_ih, b_hh]),
        _ => return Vec::new(),
    };
    std::iter::once(first).chain(rest.into_iter().flatten()).collect()
}

/// Floating-point operations of a node, a multiply-add being two, when values have so many `rows`; of ops that are no
/// products, one for each number that they give. What attention reads of a cache is not known here and not counted.
pub fn operations(graph: &Graph, node: &Node, rows: &[usize]) -> u64 {
    let size = |v: super::Value| (rows[v.index()] as u64, graph.shape(v).cols as u64);
    let (n, cols) = node.inputs.first().map_or((0, 0), |&x| size(x));
    let (out_rows, outs) = node.output.map_or((0, 0), size);
    let taps = |shape: &ConvShape| shape.taps as u64 * cols / shape.groups.max(1) as u64;
    match &node.op {
        Op::Linear { .. } => 2 * n * cols * outs,
        Op::Conv1d { shape, .. } | Op::Conv1dCarry { shape, .. } => 2 * out_rows * outs * taps(shape),
        Op::ConvTranspose1d { shape, .. } => {
            2 * n * cols * shape.taps as u64 * outs / shape.groups.max(1) as u64
        }
        Op::Lstm { hidden, .. } => 8 * n * *hidden as u64 * (cols + *hidden as u64),
        Op::Attention { heads, head_dim, source: KeyValues::Rows { causal }, .. } => {
            let keys = node.inputs.get(1).map_or(0, |&k| size(k).0);
            let pairs = if *causal { n * keys / 2 } else { n * keys };
            4 * pairs * (heads * head_dim) as u64
        }
        _ => out_rows * outs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{GraphBuilder, Precision};

    #[test]
    fn products_count_multiply_adds_twice_and_read_their_weights() {
        let mut g = GraphBuilder::new("g");
        let n = g.symbol("n", 8);
        let x = g.input_f32("x", n, 64);
        let y = g.linear(x, "w", Some("b"), 32, Precision::F32);
        let z = g.add(y, y);
        g.output("z", z);
        let graph = g.finish().unwrap();
        let count = |at: usize| operations(&graph, &graph.nodes[at], &[5; 3]);
        assert_eq!((count(0), count(1)), (2 * 5 * 64 * 32, 5 * 32));
        let read = |at: usize| weights_read(&graph.nodes[at].op).len();
        assert_eq!((read(0), read(1)), (2, 0));
    }
}
