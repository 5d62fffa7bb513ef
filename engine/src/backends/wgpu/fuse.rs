//! What is done together: products of the same rows quantise them once, what makes the rows does it where it can, and a
//! sum behind a product is its last step.

use crate::graph::{BinaryOp, Graph, Node, Op, Precision, Value};

/// For each node of a graph, what it has in common with others.
pub(super) struct Fused {
    /// Whose scratch memory it uses: of an earlier product that quantises the same rows, or its own.
    pub(super) owner: Vec<usize>,
    /// The product whose rows a node quantises when it makes them.
    pub(super) quantizes: Vec<Option<usize>>,
    /// The node that has quantised a product's rows.
    pub(super) quantizer: Vec<Option<usize>>,
    /// The sum that a product does as its last step.
    pub(super) sum: Vec<Option<Sum>>,
    /// The product that does this sum.
    pub(super) product: Vec<Option<usize>>,
    /// The recurrence in front of one that walks the same rows the other way: they walk side by side.
    pub(super) first_direction: Vec<Option<usize>>,
}

impl Fused {
    /// The node that does the work of this one.
    pub(super) fn elsewhere(&self, node: usize) -> Option<usize> {
        let next = self.first_direction.get(node + 1).copied().flatten();
        self.product[node].or_else(|| next.filter(|&first| first == node).map(|_| node + 1))
    }
}

/// A sum of a product and something that was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    /// What is added.
    pub(super) other: Value,
    pub(super) output: Value,
}

/// Finds what can be done together.
pub(super) fn fuse(graph: &Graph) -> Fused {
    let count = graph.nodes.len();
    let mut fused = Fused {
        owner: (0..count).collect(),
        quantizes: vec![None; count],
        quantizer: vec![None; count],
        sum: vec![None; count],
        product: vec![None; count],
        first_direction: vec![None; count],
    };
    for (i, node) in graph.nodes.iter().enumerate() {
        if i > 0 && fused.first_direction[i - 1].is_none() && is_other_direction(&graph.nodes[i - 1], node) {
            fused.first_direction[i] = Some(i - 1);
        }
        let Op::Linear { precision, .. } = node.op else { continue };
        if precision == Precision::Int8 {
            let same = |n: &Node| {
                matches!(n.op, Op::Linear { precision: Precision::Int8, .. }) && n.inputs == node.inputs
            };
            fused.owner[i] = graph.nodes[..i].iter().position(same).unwrap_or(i);
            if fused.owner[i] == i
                && let Some(maker) = maker(graph, node.inputs[0])
            {
                fused.quantizes[maker] = Some(i);
                fused.quantizer[i] = Some(maker);
            }
        }
        if let Some((at, sum)) = sum_behind(graph, i)
            && fused.product[at].is_none()
        {
            fused.sum[i] = Some(sum);
            fused.product[at] = Some(i);
        }
    }
    fused
}

/// Whether two recurrences without states walk over the same rows, each its way.
fn is_other_direction(first: &Node, second: &Node) -> bool {
    let (
        Op::Lstm { hidden: a, direction: from, state: None, .. },
        Op::Lstm { hidden: b, direction: to, state: None, .. },
    ) = (&first.op, &second.op)
    else {
        return false;
    };
    a == b && from != to && first.inputs == second.inputs && first.output.is_some()
}

/// The node that makes `rows`, if it can quantise them.
fn maker(graph: &Graph, rows: Value) -> Option<usize> {
    let at = graph.nodes.iter().position(|node| node.output == Some(rows))?;
    let can = match graph.nodes[at].op {
        Op::RmsNorm { group, .. } => group == graph.shape(rows).cols,
        Op::Attention { head_dim, .. } => head_dim.is_multiple_of(32),
        // A sum may be its product's.
        Op::Binary(op) => op != BinaryOp::Add,
        _ => false,
    };
    can.then_some(at)
}

/// The node that adds the output of `product` to something, if nothing else needs this output.
fn sum_behind(graph: &Graph, product: usize) -> Option<(usize, Sum)> {
    let v = graph.nodes[product].output?;
    if graph.outputs.iter().any(|(_, output)| *output == v) {
        return None;
    }
    let mut users = graph.nodes.iter().enumerate().filter(|(_, node)| node.inputs.contains(&v));
    let (at, node) = users.next().filter(|_| users.next().is_none())?;
    let (Op::Binary(BinaryOp::Add), &[a, b], Some(output)) = (&node.op, &node.inputs[..], node.output) else {
        return None;
    };
    let other = if a == v { b } else { a };
    // Nothing is repeated along rows or columns, and the other one is there before the product.
    let is_plain = other != v && [other, output].iter().all(|&x| graph.shape(x) == graph.shape(v));
    let made = graph.nodes.iter().position(|node| node.output == Some(graph.base_of(other).0));
    let is_before = made.is_none_or(|made| made < product);
    (is_plain && is_before).then_some((at, Sum { other, output }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Direction, GraphBuilder};

    #[test]
    fn sums_behind_products_are_theirs_and_rows_are_quantised_once() {
        let mut g = GraphBuilder::new("block");
        let n = g.symbol("n", 8);
        let x = g.input_f32("x", n, 64);
        let a = g.linear(x, "a", None, 64, Precision::Int8);
        let b = g.linear(x, "b", None, 64, Precision::Int8);
        // Both operands are products: the later one has the sum.
        let both = g.add(a, b);
        let c = g.linear(both, "c", None, 64, Precision::F32);
        let twice = g.add(c, x);
        // It is needed twice.
        let d = g.linear(twice, "d", None, 64, Precision::F32);
        let e = g.add(d, d);
        g.output("e", e);
        let graph = g.finish().unwrap();
        let fused = fuse(&graph);
        assert!(fused.quantizer.iter().chain(&fused.quantizes).all(Option::is_none));
        assert_eq!(fused.owner, [0, 0, 2, 3, 4, 5, 6]);
        assert_eq!(fused.product, [None, None, Some(1), None, Some(3), None, None]);
        assert_eq!(fused.sum[1], Some(Sum { other: a, output: both }));
        assert_eq!(fused.sum[3], Some(Sum { other: x, output: twice }));
        assert_eq!(fused.sum[5], None);
    }

    #[test]
    fn what_makes_rows_quantises_them_for_the_first_product() {
        let mut g = GraphBuilder::new("block");
        let n = g.symbol("n", 8);
        let x = g.input_f32("x", n, 64);
        let normed = g.rms_norm(x, "gain", 1e-5, 64);
        let a = g.linear(normed, "a", None, 64, Precision::Int8);
        let b = g.linear(normed, "b", None, 64, Precision::Int8);
        let both = g.binary(a, b, BinaryOp::MulSilu);
        let c = g.linear(both, "c", None, 64, Precision::Int8);
        g.output("c", c);
        let fused = fuse(&g.finish().unwrap());
        assert_eq!(fused.quantizes, [Some(1), None, None, Some(4), None]);
        assert_eq!(fused.quantizer, [None, Some(0), None, None, Some(3)]);
        assert_eq!(fused.owner, [0, 1, 1, 3, 4]);
    }

    #[test]
    fn two_directions_of_one_sequence_walk_side_by_side() {
        let mut g = GraphBuilder::new("both");
        let n = g.symbol("n", 8);
        let x = g.input_f32("x", n, 6);
        let mut lstm = |x, direction, state| g.lstm(x, ["ih", "hh", "bi", "bh"], 4, direction, state);
        let forward = lstm(x, Direction::Forward, None);
        lstm(x, Direction::Backward, None);
        // It has its own sequence; then both walk the same way; then one goes on from the last run.
        lstm(forward, Direction::Forward, None);
        lstm(forward, Direction::Forward, None);
        lstm(forward, Direction::Forward, Some("h"));
        let last = lstm(forward, Direction::Backward, None);
        g.output("y", last);
        let fused = fuse(&g.finish().unwrap());
        assert_eq!(fused.first_direction, [None, Some(0), None, None, None, None]);
        assert_eq!([0, 1, 2].map(|node| fused.elsewhere(node)), [Some(1), None, None]);
    }
}
