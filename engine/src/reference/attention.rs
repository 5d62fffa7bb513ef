//! Caches and attention.

use super::rows::softmax;
use super::{Context, Data, stored};
use crate::graph::{CacheStart, KeyValues, Node, Op, StateId, Value};

pub(super) fn cache_write(c: &mut Context<'_>, x: Value, state: StateId, start: CacheStart) {
    let spec = c.spec(state).clone();
    let context = c.context_rows(state);
    let q = c.rows(x) / c.graph.slots;
    let data = c.f(x).to_vec();
    for (i, row) in data.chunks_exact(spec.cols).enumerate() {
        let (slot, j) = (i / q, i % q);
        let at = match start {
            CacheStart::Zero => j,
            CacheStart::Position if c.steps[slot].is_live() => c.position(slot) + j,
            CacheStart::Position => continue,
        };
        let at = (slot * context + at) * spec.cols;
        if let Some(held) = c.states.get_mut(&spec.name) {
            for (h, &v) in held[at..at + spec.cols].iter_mut().zip(row) {
                *h = stored(spec.ty, v);
            }
        }
    }
}

pub(super) fn attention(c: &Context<'_>, node: &Node) -> Data {
    let Op::Attention { heads, kv_heads, head_dim, scale, source } = node.op else {
        return Data::F(Vec::new());
    };
    let queries = c.f(node.inputs[0]);
    let rows = c.rows(node.inputs[0]);
    let per_slot = (rows / c.graph.slots).max(1);
    let width = kv_heads * head_dim;
    let mut out = vec![0.0; queries.len()];
    for i in 0..rows {
        let (slot, j) = (i / per_slot, i % per_slot);
        let (keys, values, seen) = match source {
            KeyValues::Rows { causal } => {
                let m = c.rows(node.inputs[1]);
                (c.f(node.inputs[1]), c.f(node.inputs[2]), if causal { (i + 1).min(m) } else { m })
            }
            KeyValues::Cache { keys, values } => {
                let at = slot * c.context_rows(keys);
                let seen = (c.position(slot) + j + 1).min(c.context_rows(keys));
                (&c.state(keys)[at * width..], &c.state(values)[at * width..], seen)
            }
            KeyValues::CacheOfLength { keys, values, length } => {
                let at = slot * c.context_rows(keys);
                let seen = length.eval(c.lengths).unwrap_or(0).min(c.context_rows(keys));
                (&c.state(keys)[at * width..], &c.state(values)[at * width..], seen)
            }
        };
        if seen == 0 {
            continue;
        }
        for h in 0..heads {
            let kv = h * kv_heads / heads * head_dim;
            let q = &queries[(i * heads + h) * head_dim..][..head_dim];
            let score = |r: usize| -> f64 {
                let k = &keys[r * width + kv..][..head_dim];
                q.iter().zip(k).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>() * f64::from(scale)
            };
            let p = softmax(&(0..seen).map(score).collect::<Vec<_>>());
            for d in 0..head_dim {
                let sum: f64 = (0..seen).map(|r| p[r] * f64::from(values[r * width + kv + d])).sum();
                out[(i * heads + h) * head_dim + d] = sum as f32;
            }
        }
    }
    Data::F(out)
}
