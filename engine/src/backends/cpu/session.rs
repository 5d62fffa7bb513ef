//! Caches, recurrent states and the step block in host memory.

use std::any::Any;
use std::collections::HashMap;

use half::f16;

use super::memory::Memory;
use super::pack::{FloatType, TILE, out_of_memory, to_f16};
use crate::backends::{CompileErrorKind, KeptSteps, RunError, SessionState};
use crate::graph::{StateKind, StateSpec, StateType, StepRow};

/// Order of a state's numbers in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// Row after row.
    Rows,
    /// For each slot and head `[position / 16][column][16]`: what scores need.
    KeyTiles,
}

/// One state.
pub(crate) struct State {
    pub(crate) spec: StateSpec,
    pub(crate) layout: Layout,
    /// Rows of one slot, padded to whole tiles for keys.
    pub(crate) slot_rows: usize,
    pub(crate) data: Memory,
    /// A recurrent state's new value until the run ends.
    pub(crate) next: Option<Memory>,
}

impl State {
    fn new(spec: &StateSpec, layout: Layout, slots: usize) -> Result<Self, CompileErrorKind> {
        let per_slot = spec.rows / slots.max(1);
        let slot_rows = if layout == Layout::KeyTiles { per_slot.next_multiple_of(TILE) } else { per_slot };
        let rows = if layout == Layout::KeyTiles { slot_rows * slots } else { spec.rows };
        // A vector may read past the last head of the last row.
        let bytes = rows
            .checked_mul(spec.cols)
            .and_then(|n| n.checked_add(TILE)?.checked_mul(float_type(spec.ty).bytes()))
            .ok_or_else(|| out_of_memory(usize::MAX))?;
        let memory = || Memory::zeroed(bytes).ok_or_else(|| out_of_memory(bytes));
        let next = matches!(spec.kind, StateKind::Recurrent).then(memory).transpose()?;
        Ok(Self { spec: spec.clone(), layout, slot_rows, data: memory()?, next })
    }

    pub(crate) fn ty(&self) -> FloatType {
        float_type(self.spec.ty)
    }

    /// Columns of one head of a cache.
    pub(crate) fn head_dim(&self) -> usize {
        match self.spec.kind {
            StateKind::Cache { head_dim } => head_dim,
            StateKind::Recurrent => self.spec.cols,
        }
    }

    /// Element of row `row` of slot `slot`, column `col`.
    pub(crate) fn index(&self, slot: usize, row: usize, col: usize) -> usize {
        match self.layout {
            Layout::Rows => (slot * self.slot_rows + row) * self.spec.cols + col,
            Layout::KeyTiles => {
                let hd = self.head_dim();
                let head = slot * (self.spec.cols / hd) + col / hd;
                (head * self.slot_rows + row / TILE * TILE) * hd + col % hd * TILE + row % TILE
            }
        }
    }

    /// Writes one number.
    ///
    /// # Safety
    /// `index` is one that [`Self::index`] gave for a row and column inside, and nobody else uses that element.
    #[inline]
    pub(crate) unsafe fn put(&self, index: usize, x: f32) {
        // SAFETY: inside the memory, the caller's promise.
        unsafe {
            match self.spec.ty {
                StateType::F32 => *self.data.as_ptr().cast::<f32>().add(index) = x,
                StateType::F16 => *self.data.as_ptr().cast::<u16>().add(index) = to_f16(x),
            }
        }
    }

    fn get(&self, index: usize) -> f32 {
        match self.spec.ty {
            StateType::F32 => bytemuck::cast_slice::<u8, f32>(self.data.bytes())[index],
            StateType::F16 => {
                f16::from_bits(bytemuck::cast_slice::<u8, u16>(self.data.bytes())[index]).to_f32()
            }
        }
    }
}

fn float_type(ty: StateType) -> FloatType {
    match ty {
        StateType::F32 => FloatType::F32,
        StateType::F16 => FloatType::F16,
    }
}

struct Saved {
    steps: Vec<StepRow>,
    recurrent: Vec<(usize, Vec<u8>)>,
}

/// The CPU's session.
pub(crate) struct CpuSession {
    pub(crate) states: Vec<State>,
    pub(crate) steps: Vec<StepRow>,
    /// What a run changes, until it ends.
    pub(crate) staged: Vec<StepRow>,
    pub(crate) kept: KeptSteps,
    saved: HashMap<usize, Saved>,
}

impl CpuSession {
    /// States by `specs`; those in `keys` get the layout of keys.
    pub(crate) fn new(specs: &[StateSpec], keys: &[String], slots: usize) -> Result<Self, CompileErrorKind> {
        let one = |spec: &StateSpec| {
            let layout = if keys.contains(&spec.name) { Layout::KeyTiles } else { Layout::Rows };
            State::new(spec, layout, slots)
        };
        Ok(Self {
            states: specs.iter().map(one).collect::<Result<_, _>>()?,
            steps: vec![StepRow::default(); slots],
            staged: vec![StepRow::default(); slots],
            kept: KeptSteps::default(),
            saved: HashMap::new(),
        })
    }

    /// Rows of a state as the graph declares them, with slot and row.
    fn rows(state: &State, slots: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let per_slot = (state.spec.rows / slots.max(1)).max(1);
        (0..state.spec.rows).map(move |r| (r / per_slot, r % per_slot))
    }
}

impl SessionState for CpuSession {
    fn step(&mut self, slot: usize) -> StepRow {
        self.steps[slot]
    }

    fn collect(&mut self) -> Result<Option<&[StepRow]>, RunError> {
        Ok(self.kept.collect(self.steps.len()))
    }

    fn set_step(&mut self, slot: usize, row: &StepRow) {
        self.kept.clear();
        self.steps[slot] = *row;
    }

    fn save(&mut self, mark: usize) {
        let recurrent = |(i, s): (usize, &State)| s.next.is_some().then(|| (i, s.data.bytes().to_vec()));
        let recurrent = self.states.iter().enumerate().filter_map(recurrent).collect();
        self.saved.insert(mark, Saved { steps: self.steps.clone(), recurrent });
    }

    fn restore(&mut self, mark: usize) -> bool {
        let Some(saved) = self.saved.get(&mark) else { return false };
        self.kept.clear();
        self.steps.copy_from_slice(&saved.steps);
        for (i, bytes) in &saved.recurrent {
            self.states[*i].data.bytes_mut().copy_from_slice(bytes);
        }
        true
    }

    fn reset(&mut self) {
        self.kept.clear();
        self.steps.fill(StepRow::default());
        for state in self.states.iter_mut().filter(|s| s.next.is_some()) {
            state.data.bytes_mut().fill(0);
        }
    }

    fn read_state(&mut self, name: &str) -> Option<Vec<f32>> {
        let state = self.states.iter().find(|s| s.spec.name == name)?;
        let cols = state.spec.cols;
        let row = |(slot, row)| (0..cols).map(move |col| state.get(state.index(slot, row, col)));
        Some(Self::rows(state, self.steps.len()).flat_map(row).collect())
    }

    fn write_state(&mut self, name: &str, data: &[f32]) -> bool {
        let slots = self.steps.len();
        let Some(state) = self.states.iter().find(|s| s.spec.name == name) else { return false };
        if data.len() != state.spec.rows * state.spec.cols {
            return false;
        }
        for ((slot, row), numbers) in Self::rows(state, slots).zip(data.chunks_exact(state.spec.cols.max(1)))
        {
            for (col, &x) in numbers.iter().enumerate() {
                // SAFETY: inside; `self` is borrowed mutably, so nobody else uses the state.
                unsafe { state.put(state.index(slot, row, col), x) };
            }
        }
        true
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
