//! Where values lie in the arena: at their maximum sizes, sharing memory once they are no longer used.

use super::fuse::Fused;
use crate::graph::{Dim, Graph, Op, Value};

/// A value's place: words from the arena's start, words from row to row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) offset: usize,
    pub(super) stride: usize,
    pub(super) cols: usize,
    pub(super) rows: Dim,
}

/// The plan of one graph.
pub(super) struct Plan {
    /// One place for each value.
    pub(super) places: Vec<Place>,
    /// For each node the first word of its scratch memory.
    pub(super) scratch: Vec<usize>,
    /// Words in all.
    pub(super) words: usize,
}

/// Words of the finest granularity.
const GRAIN: usize = 16;

/// What takes memory from one node to another.
struct Block {
    words: usize,
    first: usize,
    last: usize,
}

/// Plans a graph; `scratch_words` gives what each node needs beside its output. `None` when sizes overflow.
pub(super) fn plan(graph: &Graph, scratch_words: &[usize], fused: &Fused) -> Option<Plan> {
    let end = graph.nodes.len();
    // Views use their base's memory. Node `i` runs at time `i + 1`; inputs are there at time 0.
    let bases: Vec<(Value, usize)> =
        (0..graph.values.len()).map(|i| graph.base_of(Value(i as u32))).collect();
    let mut blocks: Vec<Block> = Vec::with_capacity(graph.values.len() + end);
    for i in 0..graph.values.len() {
        let v = Value(i as u32);
        let words = graph.max_rows(v).checked_mul(graph.shape(v).cols)?;
        let node = graph.nodes.iter().position(|n| n.output == Some(v));
        // A sum is written by its product, whose own output is nowhere.
        let made = node.map_or(0, |n| fused.product[n].unwrap_or(n) + 1);
        let is_written = bases[i].0 == v && node.is_none_or(|n| fused.sum[n].is_none());
        let words = if is_written { words } else { 0 };
        blocks.push(Block { words, first: made, last: made });
    }
    for (time, node) in graph.nodes.iter().enumerate() {
        for v in &node.inputs {
            let block = &mut blocks[bases[v.index()].0.index()];
            block.last = block.last.max(time + 1);
        }
    }
    for (_, v) in &graph.outputs {
        blocks[bases[v.index()].0.index()].last = end + 1;
    }
    let first_scratch = blocks.len();
    blocks.extend(scratch_words.iter().enumerate().map(|(i, &words)| Block {
        words: if fused.owner[i] == i { words } else { 0 },
        first: fused.quantizer[i].unwrap_or(i) + 1,
        last: fused.elsewhere(i).unwrap_or(i).max(i) + 1,
    }));
    for (i, &owner) in fused.owner.iter().enumerate() {
        let block = &mut blocks[first_scratch + owner];
        block.last = block.last.max(i + 1);
    }
    let (offsets, words) = pack(&blocks)?;
    let scratch = fused.owner.iter().map(|&owner| offsets[first_scratch + owner]).collect();
    let places = (0..graph.values.len())
        .map(|i| {
            let (base, column) = bases[i];
            let shape = graph.shape(Value(i as u32));
            Place {
                offset: offsets[base.index()] + column,
                stride: graph.shape(base).cols,
                cols: shape.cols,
                rows: shape.rows,
            }
        })
        .collect();
    Some(Plan { places, scratch, words })
}

/// First fit in order of birth: an offset for each block, and the sum.
fn pack(blocks: &[Block]) -> Option<(Vec<usize>, usize)> {
    let mut order: Vec<usize> = (0..blocks.len()).filter(|&i| blocks[i].words > 0).collect();
    order.sort_by_key(|&i| (blocks[i].first, usize::MAX - blocks[i].words));
    let mut offsets = vec![0; blocks.len()];
    let mut alive: Vec<usize> = Vec::new();
    let mut top = 0;
    for &i in &order {
        let block = &blocks[i];
        alive.retain(|&other| blocks[other].last >= block.first);
        alive.sort_by_key(|&other| offsets[other]);
        let words = block.words.checked_next_multiple_of(GRAIN)?;
        let mut at: usize = 0;
        for &other in &alive {
            if at.checked_add(words)? <= offsets[other] {
                break;
            }
            at = at.max(offsets[other] + blocks[other].words.next_multiple_of(GRAIN));
        }
        offsets[i] = at;
        top = top.max(at.checked_add(words)?);
        alive.push(i);
    }
    Some((offsets, top))
}

/// Whether an op only names a part of its input.
pub(super) fn is_view(op: &Op) -> bool {
    matches!(op, Op::Columns { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn living_blocks_never_overlap_and_dead_ones_are_used_again() {
        let blocks: Vec<Block> =
            (0..40).map(|i| Block { words: 1 + i * 37 % 90, first: i, last: i + 1 + i * 7 % 5 }).collect();
        let (offsets, top) = pack(&blocks).unwrap();
        for i in 0..40 {
            for j in 0..i {
                let (a, b) = (&blocks[i], &blocks[j]);
                let apart = a.last < b.first || b.last < a.first;
                let beside = offsets[i] + a.words <= offsets[j] || offsets[j] + b.words <= offsets[i];
                assert!(apart || beside, "{i} and {j}");
            }
        }
        assert!(top < blocks.iter().map(|b| b.words).sum::<usize>() / 2);
    }
}
