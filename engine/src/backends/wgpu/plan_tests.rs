//! Plans of random graphs, held to what an interpreter of memory sees: it knows of each word only whose it is, carries out
//! the nodes in their order, and says when one reads a word that is no longer what was written there.

use proptest::prelude::*;

use super::fuse::{Fused, fuse};
use super::plan::{Plan, is_view, plan};
use super::products::scratch_words;
use crate::graph::{BinaryOp, Graph, GraphBuilder, Op, Precision, UnaryOp, Value};

/// Whose a word is.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Owner {
    Nobody,
    Value(Value),
    /// The 8-bit rows, or other scratch memory, of a node.
    Scratch(usize),
}

/// One step of a recipe: an op, and which of the values so far it takes.
type Step = (u8, usize, usize);

/// Values have 64 or 128 columns, so that most ops fit most values.
fn build(recipe: &[Step], outputs: &[usize]) -> Graph {
    let mut g = GraphBuilder::new("random");
    let n = g.symbol("n", 3);
    let mut values: Vec<(Value, usize)> =
        (0..3).map(|i| (g.input_f32(&format!("x{i}"), n, 64), 64)).collect();
    for &(op, a, b) in recipe {
        let (x, cols) = values[a % values.len()];
        // Another of the same shape.
        let like: Vec<Value> = values.iter().filter(|v| v.1 == cols).map(|v| v.0).collect();
        let other = like[b % like.len()];
        let out = if b.is_multiple_of(3) { 128 } else { 64 };
        let weight = format!("w{cols}x{out}");
        let made = match op % 10 {
            0 => (g.linear(x, &weight, None, out, Precision::Int8), out),
            1 => (g.linear(x, &weight, None, out, Precision::F32), out),
            2 => (g.rms_norm(x, &format!("gain{cols}"), 1e-5, cols), cols),
            3 => (g.add(x, other), cols),
            4 => (g.binary(x, other, BinaryOp::MulSilu), cols),
            5 => (g.unary(x, UnaryOp::Relu), cols),
            6 if cols == 128 => (g.columns(x, if b.is_multiple_of(2) { 0 } else { 64 }, 64), 64),
            // A block's end: a product and what went past it.
            6 | 7 => {
                let product = g.linear(x, &format!("w{cols}x{cols}"), None, cols, Precision::Int8);
                let sides = if b.is_multiple_of(2) { [product, other] } else { [other, product] };
                (g.add(sides[0], sides[1]), cols)
            }
            8 => (g.attention_rows([x, other, x], cols / 32, cols / 32, 0.2, b.is_multiple_of(2)), cols),
            // Products of the same rows, as of q, k and v.
            _ => {
                values.push((g.linear(x, &weight, None, out, Precision::Int8), out));
                (g.linear(x, &format!("again{cols}"), None, 64, Precision::Int8), 64)
            }
        };
        values.push(made);
    }
    for (i, at) in outputs.iter().enumerate() {
        g.output(&format!("y{i}"), values[values.len() - 1 - at % values.len()].0);
    }
    g.finish().unwrap()
}

/// Memory as the nodes leave it.
struct Memory<'a> {
    graph: &'a Graph,
    plan: &'a Plan,
    fused: &'a Fused,
    scratch: &'a [usize],
    owners: Vec<Owner>,
}

impl Memory<'_> {
    /// Words of a value's rows; a view's are its base's.
    fn words(&self, v: Value) -> Vec<usize> {
        let place = self.plan.places[v.index()];
        let row = |r| (0..place.cols).map(move |c| place.offset + r * place.stride + c);
        (0..self.graph.max_rows(v)).flat_map(row).collect()
    }

    fn write(&mut self, v: Value) {
        for at in self.words(v) {
            self.owners[at] = Owner::Value(self.graph.base_of(v).0);
        }
    }

    fn read(&self, v: Value) -> Result<(), String> {
        let expected = Owner::Value(self.graph.base_of(v).0);
        let wrong = self.words(v).into_iter().find(|&at| self.owners[at] != expected);
        wrong.map_or(Ok(()), |at| Err(format!("word {at} of {expected:?} is of {:?}", self.owners[at])))
    }

    fn scratch_words(&self, node: usize) -> std::ops::Range<usize> {
        let owner = self.fused.owner[node];
        self.plan.scratch[owner]..self.plan.scratch[owner] + self.scratch[owner]
    }

    fn write_scratch(&mut self, node: usize) {
        let words = self.scratch_words(node);
        self.owners[words].fill(Owner::Scratch(self.fused.owner[node]));
    }

    fn read_scratch(&self, node: usize) -> Result<(), String> {
        let expected = Owner::Scratch(self.fused.owner[node]);
        let wrong = self.scratch_words(node).find(|&at| self.owners[at] != expected);
        wrong.map_or(Ok(()), |at| Err(format!("word {at} of {expected:?} is of {:?}", self.owners[at])))
    }

    /// What a node writes comes first, as its threads are not in step: what it reads must be apart from that.
    fn run(&mut self, node: usize) -> Result<(), String> {
        let n = &self.graph.nodes[node];
        if is_view(&n.op) || self.fused.product[node].is_some() {
            return Ok(());
        }
        let is_int8 = matches!(n.op, Op::Linear { precision: Precision::Int8, .. });
        let quantizes_own = is_int8 && self.fused.owner[node] == node && self.fused.quantizer[node].is_none();
        if quantizes_own {
            self.write_scratch(node);
        }
        if let Some(product) = self.fused.quantizes[node] {
            self.write_scratch(product);
        }
        let sum = self.fused.sum[node];
        if let Some(output) = sum.map(|sum| sum.output).or(n.output) {
            self.write(output);
        }
        // Rows that somebody has quantised are not read again.
        if !is_int8 || quantizes_own {
            n.inputs.iter().try_for_each(|&v| self.read(v))?;
        }
        if is_int8 {
            self.read_scratch(node)?;
        }
        sum.map_or(Ok(()), |sum| self.read(sum.other))
    }
}

fn check(graph: &Graph) -> Result<(), String> {
    let words = |n: &crate::graph::Node| {
        let x = n.inputs[0];
        scratch_words(&n.op, graph.max_rows(x), graph.shape(x).cols, graph.slots).unwrap()
    };
    let scratch: Vec<usize> = graph.nodes.iter().map(words).collect();
    let fused = fuse(graph);
    let plan = plan(graph, &scratch, &fused).unwrap();
    let owners = vec![Owner::Nobody; plan.words];
    let mut memory = Memory { graph, plan: &plan, fused: &fused, scratch: &scratch, owners };
    graph.inputs.iter().for_each(|(_, v)| memory.write(*v));
    for node in 0..graph.nodes.len() {
        memory.run(node).map_err(|e| format!("node {node}, {}: {e}", graph.nodes[node].op.name()))?;
    }
    graph.outputs.iter().try_for_each(|(name, v)| memory.read(*v).map_err(|e| format!("output {name}: {e}")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn what_lives_is_never_written_over(
        recipe in prop::collection::vec((0..10_u8, 0..64_usize, 0..64_usize), 1..24),
        outputs in prop::collection::vec(0..64_usize, 1..4),
    ) {
        let graph = build(&recipe, &outputs);
        prop_assert!(check(&graph).is_ok(), "{:?}", check(&graph));
    }
}

/// The recipes have what the plan has to know of.
#[test]
fn recipes_have_all_that_is_done_together() {
    let recipe = [(2, 0, 0), (9, 3, 0), (7, 4, 1), (8, 0, 1), (7, 7, 2), (3, 6, 0)];
    let graph = build(&recipe, &[0]);
    let fused = fuse(&graph);
    assert!(fused.sum.iter().flatten().count() >= 2);
    assert!(fused.quantizes.iter().flatten().count() >= 2);
    assert!((0..graph.nodes.len()).any(|i| fused.owner[i] != i));
    check(&graph).unwrap();
}
