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
    /// `each` groups for each `tile` rows while their number is in `only`: of several kernels for one product, one runs.
    Tiles {
        /// Rows.
        rows: Dim,
        /// Of them in a group.
        tile: usize,
        /// Groups for each.
        each: usize,
        /// First and last number of rows for which there is any work.
        only: [usize; 2],
    },
    /// `each` groups for each `tile` rows, of which there are `more` than in `rows`.
    MoreTiles {
        /// Rows.
        rows: Dim,
        /// Behind them.
        more: usize,
        /// Rows in a group.
        tile: usize,
        /// Groups for each.
        each: usize,
    },
}

/// So many rows are multiplied one by one, weights read for each: what writes text has one. From there on tiles of rows
/// share what they read.
pub(super) const FEW_ROWS: usize = 4;
/// From so many rows on, tiles are large.
pub(super) const MANY_ROWS: usize = 48;

impl Work {
    /// Groups for the lengths of a run, as two factors within the device's limit.
    pub(super) fn groups(self, lengths: &[usize], most: u32) -> Option<(u32, u32)> {
        let n = match self {
            Self::Threads(rows, each) => rows.eval(lengths)?.checked_mul(each)?.div_ceil(64),
            Self::Groups(rows, each) => rows.eval(lengths)?.checked_mul(each)?,
            Self::Tiles { rows, tile, each, only: [least, most] } => {
                let rows = rows.eval(lengths)?;
                if (least..=most).contains(&rows) { rows.div_ceil(tile).checked_mul(each)? } else { 0 }
            }
            Self::MoreTiles { rows, more, tile, each } => {
                rows.eval(lengths)?.checked_add(more)?.div_ceil(tile).checked_mul(each)?
            }
        };
        if n == 0 {
            return None;
        }
        let y = n.div_ceil(most as usize);
        let x = n.div_ceil(y);
        Some((u32::try_from(x).ok()?, u32::try_from(y).ok()?))
    }

    /// Whether there may be any for up to `most` rows.
    pub(super) fn is_possible(self, most: usize) -> bool {
        !matches!(self, Self::Tiles { only: [least, _], .. } if least > most)
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

/// How many words a module reads at a time.
#[derive(Clone, Copy)]
pub(super) enum Reads {
    One,
    /// Of the first weight four, of the others one.
    FirstFour,
    Four,
}

/// A module's source: the shared part before its own.
pub(super) fn source(weights: Reads, states: Reads, parts: &[&str]) -> String {
    let mut all = step_constants();
    all.push_str(include_str!("common.wgsl"));
    let words = |reads, i| match (reads, i) {
        (Reads::Four, _) | (Reads::FirstFour, 0) => "vec4<u32>",
        _ => "u32",
    };
    for i in 0..WEIGHTS {
        let (at, words) = (i + 2, words(weights, i));
        all.push_str(&format!("@group(0) @binding({at}) var<storage, read> w{i}: array<{words}>;\n"));
    }
    for i in 0..STATES {
        let (at, words) = (i + 1, words(states, i));
        all.push_str(&format!("@group(1) @binding({at}) var<storage, read_write> s{i}: array<{words}>;\n"));
    }
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
/// The same in large tiles.
pub(super) const TILE_LARGE: &str = include_str!("tile_large.wgsl");
/// What workgroups of 256 share.
const WIDE: &str = include_str!("wide.wgsl");
/// Functions of gates and activations.
const SIGMOID: &str = include_str!("sigmoid.wgsl");

/// The source of a module that has no variants.
pub(super) fn family_source(family: &str) -> String {
    use Reads::{Four, One};
    let threads = |threads: &str| format!("const THREADS: u32 = {threads};\n");
    let lstm = |count| source(Four, One, &[&threads(count), SIGMOID, include_str!("lstm.wgsl")]);
    let norm = |count| source(One, One, &[&threads(count), include_str!("instance_norm.wgsl")]);
    match family {
        "rows" => source(One, One, &[WIDE, SIGMOID, include_str!("rows.wgsl")]),
        "products" => source(One, One, &[WIDE, TILE, TILE_LARGE, include_str!("products.wgsl")]),
        "cache" => source(One, One, &[include_str!("cache.wgsl")]),
        "attention" => source(One, Four, &[WIDE, include_str!("attention.wgsl")]),
        "instance_norm" => norm("256u"),
        "instance_norm.1024" => norm("1024u"),
        "lstm" => lstm("256u"),
        "lstm.1024" => lstm("1024u"),
        _ => source(One, One, &[include_str!("sample.wgsl")]),
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
        let both = |rows: usize| {
            let few = Work::Tiles { rows: rows.into(), tile: 1, each: 7, only: [0, FEW_ROWS] };
            let tiles =
                Work::Tiles { rows: rows.into(), tile: 32, each: 7, only: [FEW_ROWS + 1, usize::MAX] };
            [few, tiles].map(|work| work.groups(&[], 65_535).map_or(0, |(x, y)| x * y))
        };
        assert_eq!(both(0), [0, 0]);
        assert_eq!(both(FEW_ROWS), [7 * FEW_ROWS as u32, 0]);
        assert_eq!(both(FEW_ROWS + 1), [0, 7]);
        assert_eq!(both(65), [0, 21]);
    }
}
