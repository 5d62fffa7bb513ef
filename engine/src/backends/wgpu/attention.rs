//! Caches and attention.

use super::kernel::{Call, Word, Work, plain, words};
use super::program::Compiler;
use crate::backends::CompileErrorKind;
use crate::graph::{CacheStart, KeyValues, Node, Op, StateId, StateType, Value};

/// Columns of a head that the kernel's memory holds.
const MOST_COLUMNS: usize = 256;

impl Compiler<'_> {
    pub(super) fn cache_write(
        &self,
        x: Value,
        state: StateId,
        start: CacheStart,
    ) -> Result<Call, CompileErrorKind> {
        let spec = &self.graph.states[state.index()];
        let f16 = spec.ty == StateType::F16;
        let place = self.place(x);
        if f16 && !place.cols.is_multiple_of(2) {
            return Err(self.unsupported(&Op::CacheWrite { state, start }, "an f16 cache of odd columns"));
        }
        let own = [
            Word::PerSlot(place.rows, self.graph.slots),
            Word::size(spec.rows / self.graph.slots),
            Word::flag(start == CacheStart::Position),
            Word::flag(f16),
        ];
        let work = Work::Threads(place.rows, if f16 { place.cols / 2 } else { place.cols });
        let kernel = plain(self.device, "cache", "cache_write")?;
        Ok(Call::new(kernel, words(place, place, &own), work).states([Some(state), None]))
    }

    pub(super) fn attention(&self, node: &Node, y: Value) -> Result<Call, CompileErrorKind> {
        let Op::Attention { heads, kv_heads, head_dim, scale, source } = node.op else {
            return Err(self.unsupported(&node.op, "is no attention"));
        };
        if head_dim > MOST_COLUMNS {
            return Err(self.unsupported(&node.op, &format!("heads of more than {MOST_COLUMNS} columns")));
        }
        let q = self.place(node.inputs[0]);
        let kind;
        let mut parts = [Word::Is(0); 4];
        let mut seen = Word::Is(0);
        let mut context = 0;
        let mut f16 = [false; 2];
        let mut states = [None; 2];
        match source {
            KeyValues::Rows { causal } => {
                kind = u32::from(causal);
                let (k, v) = (self.place(node.inputs[1]), self.place(node.inputs[2]));
                parts = [k.offset, k.stride, v.offset, v.stride].map(Word::size);
                seen = Word::Rows(k.rows);
            }
            KeyValues::Cache { keys, values } | KeyValues::CacheOfLength { keys, values, .. } => {
                if keys == values {
                    return Err(self.unsupported(&node.op, "one cache as keys and as values"));
                }
                let specs = [keys, values].map(|s| &self.graph.states[s.index()]);
                context = specs[0].rows.min(specs[1].rows) / self.graph.slots;
                if specs[0].rows != specs[1].rows {
                    return Err(self.unsupported(&node.op, "caches of different contexts"));
                }
                f16 = specs.map(|s| s.ty == StateType::F16);
                states = [Some(keys), Some(values)];
                if let KeyValues::CacheOfLength { length, .. } = source {
                    kind = 3;
                    seen = Word::Rows(length);
                } else {
                    kind = 2;
                }
            }
        }
        let mut own = vec![
            Word::size(heads),
            Word::size(kv_heads),
            Word::size(head_dim),
            Word::float(scale),
            Word::Is(kind),
            parts[0],
            parts[1],
            parts[2],
            parts[3],
            seen,
            Word::size(context),
            Word::PerSlot(q.rows, self.graph.slots),
            Word::flag(f16[0]),
            Word::flag(f16[1]),
        ];
        if let Some(quantized) = self.quantized(y) {
            own.push(Word::flag(true));
            own.extend(quantized);
        }
        let kernel = plain(self.device, "attention", "attention")?;
        let work = Work::Groups(q.rows, heads);
        Ok(Call::new(kernel, words(q, self.place(y), &own), work).states(states))
    }
}
