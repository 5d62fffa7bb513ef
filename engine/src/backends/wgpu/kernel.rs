//! A dispatch: which kernel, the words it is given (some depend on the lengths), how much work, which bindings.

use std::mem::offset_of;

use super::device::{Device, Kernel, STATES, WEIGHTS};
use super::plan::Place;
use crate::backends::CompileErrorKind;
use crate::graph::step::{HISTORY, MAX_STOPS};
use crate::graph::{Dim, StateId, StepRow};

/// Words of parameters that a kernel is given.
pub(super) const WORDS: usize = 32;

/// One word of a kernel's parameters.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    /// Always the same.
    Is(u32),
    /// A row count of this run.
    Rows(Dim),
    /// A row count over a number of slots, at least 1 where the kernel divides by it.
    PerSlot(Dim, usize),
}

impl Word {
    /// A size or an offset.
    pub(super) fn size(n: usize) -> Self {
        // Everything lies within a binding, whose words fit u32.
        Self::Is(u32::try_from(n).unwrap_or(u32::MAX))
    }

    /// A float's bits.
    pub(super) fn float(v: f32) -> Self {
        Self::Is(v.to_bits())
    }

    /// A truth value.
    pub(super) fn flag(v: bool) -> Self {
        Self::Is(u32::from(v))
    }

    /// The word for the lengths of a run.
    pub(super) fn eval(self, lengths: &[usize]) -> u32 {
        let rows = |d: Dim| u32::try_from(d.eval(lengths).unwrap_or(0)).unwrap_or(u32::MAX);
        match self {
            Self::Is(n) => n,
            Self::Rows(d) => rows(d),
            Self::PerSlot(d, slots) => rows(d) / slots.max(1) as u32,
        }
    }
}

/// How many workgroups a kernel needs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// 64 threads a group, `each` threads for each row.
    Threads(Dim, usize),
    /// `each` groups for each row.
    Groups(Dim, usize),
    /// The same while there are at most [`FEW_ROWS`]: no group for more of them.
    Few(Dim, usize),
    /// `each` groups for each [`TILE_ROWS`] rows when there are more than [`FEW_ROWS`]: no group for fewer.
    Tiles(Dim, usize),
}

/// So many rows are multiplied one by one, weights read for each: what writes text has one. From there on tiles of rows
/// share what they read.
pub(super) const FEW_ROWS: usize = 4;
/// Rows and columns of a tile: those in the WGSL.
pub(super) const TILE_ROWS: usize = 32;

impl Work {
    /// Groups for the lengths of a run, as two factors within the device's limit.
    pub(super) fn groups(self, lengths: &[usize], most: u32) -> Option<(u32, u32)> {
        let n = match self {
            Self::Threads(rows, each) => rows.eval(lengths)?.checked_mul(each)?.div_ceil(64),
            Self::Groups(rows, each) => rows.eval(lengths)?.checked_mul(each)?,
            Self::Few(rows, each) => {
                let rows = rows.eval(lengths)?;
                if rows > FEW_ROWS { 0 } else { rows.checked_mul(each)? }
            }
            Self::Tiles(rows, each) => {
                let rows = rows.eval(lengths)?;
                if rows > FEW_ROWS { rows.div_ceil(TILE_ROWS).checked_mul(each)? } else { 0 }
            }
        };
        if n == 0 {
            return None;
        }
        let y = n.div_ceil(most as usize);
        let x = n.div_ceil(y);
        Some((u32::try_from(x).ok()?, u32::try_from(y).ok()?))
    }
}

/// One dispatch of a node.
pub(super) struct Call {
    pub(super) kernel: Kernel,
    pub(super) words: Vec<Word>,
    pub(super) work: Work,
    pub(super) weights: [Option<wgpu::Buffer>; WEIGHTS],
    pub(super) states: [Option<StateId>; STATES],
}

impl Call {
    /// A call without weights and states.
    pub(super) fn new(kernel: Kernel, words: Vec<Word>, work: Work) -> Self {
        debug_assert!(words.len() <= WORDS);
        Self { kernel, words, work, weights: [None, None, None, None], states: [None; STATES] }
    }

    /// With these weights, in order.
    pub(super) fn weights<const N: usize>(mut self, weights: [Option<wgpu::Buffer>; N]) -> Self {
        for (place, weight) in self.weights.iter_mut().zip(weights) {
            *place = weight;
        }
        self
    }

    /// With these states.
    pub(super) fn states(mut self, states: [Option<StateId>; STATES]) -> Self {
        self.states = states;
        self
    }
}

/// The seven words that all kernels share, followed by the kernel's own.
pub(super) fn words(x: Place, y: Place, own: &[Word]) -> Vec<Word> {
    let mut all = vec![
        Word::Rows(x.rows),
        Word::size(x.offset),
        Word::size(x.stride),
        Word::size(x.cols),
        Word::size(y.offset),
        Word::Rows(y.rows),
        Word::size(y.stride),
    ];
    all.extend_from_slice(own);
    all
}

/// A module's source: the shared part before its own.
pub(super) fn source(parts: &[&str]) -> String {
    let mut all = step_constants();
    all.push_str(include_str!("common.wgsl"));
    parts.iter().for_each(|part| all.push_str(part));
    all
}

/// Where a step row's fields are, in words.
fn step_constants() -> String {
    let fields = [
        ("POSITION", offset_of!(StepRow, position)),
        ("ACTIVE", offset_of!(StepRow, active)),
        ("DONE", offset_of!(StepRow, done)),
        ("TOKEN", offset_of!(StepRow, token)),
        ("LOGPROB", offset_of!(StepRow, logprob)),
        ("SEED_LOW", offset_of!(StepRow, seed_low)),
        ("SEED_HIGH", offset_of!(StepRow, seed_high)),
        ("OFFSET", offset_of!(StepRow, offset)),
        ("TEMPERATURE", offset_of!(StepRow, temperature)),
        ("TOP_K", offset_of!(StepRow, top_k)),
        ("TOP_P", offset_of!(StepRow, top_p)),
        ("MIN_P", offset_of!(StepRow, min_p)),
        ("REPETITION_PENALTY", offset_of!(StepRow, repetition_penalty)),
        ("PENALTY_WINDOW", offset_of!(StepRow, penalty_window)),
        ("STOP_COUNT", offset_of!(StepRow, stop_count)),
        ("HISTORY_LEN", offset_of!(StepRow, history_len)),
        ("STOPS", offset_of!(StepRow, stops)),
        ("HISTORY", offset_of!(StepRow, history)),
        ("WORDS", size_of::<StepRow>()),
    ];
    let mut out: String =
        fields.iter().map(|(n, at)| format!("const STEP_{n}: u32 = {}u;\n", at / 4)).collect();
    out.push_str(&format!("const HISTORY: u32 = {HISTORY}u;\nconst STOPS: u32 = {MAX_STOPS}u;\n"));
    out
}

/// A kernel of a module that has no variants.
///
/// # Errors
/// What the compiler says.
pub(super) fn plain(
    device: &Device,
    family: &'static str,
    entry: &'static str,
) -> Result<Kernel, CompileErrorKind> {
    device.kernel(family, entry, || family_source(family))
}

/// Products in tiles, for modules that say what is multiplied.
pub(super) const TILE: &str = include_str!("tile.wgsl");

/// The source of a module that has no variants.
pub(super) fn family_source(family: &str) -> String {
    match family {
        "rows" => source(&[include_str!("rows.wgsl")]),
        "products" => source(&[TILE, include_str!("products.wgsl")]),
        "attention" => source(&[include_str!("attention.wgsl")]),
        _ => source(&[include_str!("sample.wgsl")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_split_within_the_limit_and_empty_work_is_none() {
        let rows = Dim::constant(70_000);
        assert_eq!(Work::Threads(rows, 64).groups(&[], 65_535), Some((35_000, 2)));
        assert_eq!(Work::Groups(rows, 0).groups(&[], 65_535), None);
        assert_eq!(Work::Threads(1.into(), 65).groups(&[], 65_535), Some((2, 1)));
        for rows in [1, FEW_ROWS, FEW_ROWS + 1, 2 * TILE_ROWS + 1] {
            let each = |work: Work| work.groups(&[], 65_535).map_or(0, |(x, y)| x * y);
            let (few, tiles) = (each(Work::Few(rows.into(), 7)), each(Work::Tiles(rows.into(), 7)));
            assert_eq!(
                (few, tiles),
                if rows <= FEW_ROWS {
                    (7 * rows as u32, 0)
                } else {
                    (0, 7 * rows.div_ceil(TILE_ROWS) as u32)
                }
            );
        }
    }
}
