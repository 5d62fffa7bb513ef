//! States in device memory. The host knows each position's upper bound without asking the device.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytemuck::Zeroable;
use half::f16;

use super::device::{Device, STATES};
use super::staging::Staging;
use crate::backends::{CompileErrorKind, RunError, SessionState};
use crate::graph::{Graph, Op, StateId, StateKind, StateSpec, StateType, StepRow};

/// Caches, recurrences and the step block of one session.
pub(super) struct WgpuSession {
    device: Arc<Device>,
    specs: Vec<StateSpec>,
    buffers: Vec<wgpu::Buffer>,
    steps: wgpu::Buffer,
    /// The step block as the host knows it; positions are upper bounds while `stale`.
    known: Vec<StepRow>,
    /// Whether the device has changed the step block since it was read.
    stale: bool,
    saved: HashMap<usize, Saved>,
    /// Copies of the step block that runs have left, the oldest first, and those that can be used again.
    kept: VecDeque<Staging>,
    unused: Vec<Staging>,
    collected: Vec<StepRow>,
    /// Bindings of each program that ran: the step block and states.
    groups: HashMap<u64, Vec<wgpu::BindGroup>>,
}

struct Saved {
    steps: wgpu::Buffer,
    known: Vec<StepRow>,
    stale: bool,
    /// One for each recurrent state, in the order of the specs.
    states: Vec<wgpu::Buffer>,
}

const STEP_BYTES: usize = size_of::<StepRow>();

fn state_bytes(spec: &StateSpec) -> Option<usize> {
    let width = match spec.ty {
        StateType::F32 => 4,
        StateType::F16 => 2,
    };
    spec.rows.checked_mul(spec.cols)?.checked_mul(width)
}

impl WgpuSession {
    pub(super) fn new(
        device: Arc<Device>,
        specs: Vec<StateSpec>,
        slots: usize,
    ) -> Result<Self, CompileErrorKind> {
        let buffers = specs
            .iter()
            .map(|spec| device.buffer(state_bytes(spec).unwrap_or(usize::MAX)))
            .collect::<Result<Vec<_>, _>>()?;
        let known = vec![StepRow::default(); slots];
        let steps = device.buffer(slots * STEP_BYTES)?;
        device.queue.write_buffer(&steps, 0, bytemuck::cast_slice(&known));
        Ok(Self {
            device,
            specs,
            buffers,
            steps,
            known,
            stale: false,
            saved: HashMap::new(),
            kept: VecDeque::new(),
            unused: Vec::new(),
            collected: Vec::with_capacity(slots),
            groups: HashMap::new(),
        })
    }

    /// The first state of the graph that this session lacks.
    pub(super) fn missing<'a>(&self, graph: &'a Graph) -> Option<&'a StateSpec> {
        graph.states.iter().find(|spec| !self.specs.contains(spec))
    }

    /// Whether this session has room for the run, looked up on the device only when the upper bounds have none.
    ///
    /// # Errors
    /// A full context or a lost device.
    pub(super) fn check_context(&mut self, graph: &Graph, rows: &[usize]) -> Result<(), RunError> {
        let possible = crate::backends::check_context(graph, rows, &self.known);
        if possible.is_err() && self.stale {
            self.refresh()?;
            return crate::backends::check_context(graph, rows, &self.known);
        }
        possible
    }

    /// What a finished submission has done to the step block.
    pub(super) fn ran(&mut self, graph: &Graph, rows: &[usize]) {
        for node in &graph.nodes {
            match node.op {
                Op::Advance => {
                    let q = rows[node.inputs[0].index()] / graph.slots;
                    for row in self.known.iter_mut().filter(|r| r.is_live()) {
                        row.position = row.position.saturating_add(q as u32);
                    }
                    self.stale = true;
                }
                Op::Sample => self.stale = true,
                _ => {}
            }
        }
    }

    /// Copies the step block as the commands so far leave it.
    pub(super) fn copy_steps(&mut self, encoder: &mut wgpu::CommandEncoder) -> Staging {
        let bytes = (self.known.len() * STEP_BYTES) as u64;
        let staging = self.unused.pop().unwrap_or_else(|| Staging::new(&self.device, bytes));
        staging.copy(encoder, &self.steps);
        staging
    }

    /// Puts such a copy in line once it is submitted.
    pub(super) fn keep(&mut self, mut copy: Staging, submission: wgpu::SubmissionIndex) {
        copy.map(submission);
        self.kept.push_back(copy);
    }

    /// Bindings of this session's states for each choice of them that a program's calls have.
    pub(super) fn groups(
        &mut self,
        program: u64,
        graph: &Graph,
        states: &[[Option<StateId>; STATES]],
    ) -> &[wgpu::BindGroup] {
        let Self { device, specs, buffers, steps, groups, .. } = self;
        groups.entry(program).or_insert_with(|| {
            let find = |state: Option<StateId>, i: usize| {
                let name = state.map(|s| &graph.states[s.index()].name);
                let at = name.and_then(|name| specs.iter().position(|s| s.name == *name));
                at.map_or(&device.no_state[i], |at| &buffers[at])
            };
            states
                .iter()
                .map(|ids| {
                    let bound = [&*steps, find(ids[0], 0), find(ids[1], 1)];
                    let entries: Vec<_> = bound
                        .iter()
                        .enumerate()
                        .map(|(i, b)| wgpu::BindGroupEntry {
                            binding: i as u32,
                            resource: b.as_entire_binding(),
                        })
                        .collect();
                    device.device.create_bind_group(&wgpu::BindGroupDescriptor {
                        label: None,
                        layout: &device.group1,
                        entries: &entries,
                    })
                })
                .collect()
        })
    }

    fn refresh(&mut self) -> Result<(), RunError> {
        if self.stale {
            let bytes = self.device.download(&self.steps, self.known.len() * STEP_BYTES)?;
            bytemuck::cast_slice_mut(&mut self.known).copy_from_slice(&bytes);
            self.stale = false;
        }
        Ok(())
    }

    fn recurrent(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.specs.len()).filter(|&i| self.specs[i].kind == StateKind::Recurrent)
    }

    fn copy(&self, pairs: &[(&wgpu::Buffer, &wgpu::Buffer)]) {
        let mut encoder =
            self.device.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for (from, to) in pairs {
            encoder.copy_buffer_to_buffer(from, 0, to, 0, Some(from.size().min(to.size())));
        }
        self.device.queue.submit([encoder.finish()]);
    }

    fn write_steps(&self) {
        self.device.queue.write_buffer(&self.steps, 0, bytemuck::cast_slice(&self.known));
    }
}

impl SessionState for WgpuSession {
    fn step(&mut self, slot: usize) -> StepRow {
        // A lost device is reported by the next run; until then the host's view is all there is.
        if let Err(e) = self.refresh() {
            tracing::warn!(error = %e, "the step block cannot be read");
        }
        self.known.get(slot).copied().unwrap_or_else(StepRow::zeroed)
    }

    fn collect(&mut self) -> Result<Option<&[StepRow]>, RunError> {
        let Some(mut copy) = self.kept.pop_front() else { return Ok(None) };
        let (collected, count) = (&mut self.collected, self.known.len());
        collected.clear();
        copy.read(&self.device, |bytes| {
            let rows = bytes.chunks_exact(STEP_BYTES).take(count);
            collected.extend(rows.map(bytemuck::pod_read_unaligned::<StepRow>));
        })?;
        self.unused.push(copy);
        Ok(Some(&self.collected))
    }

    fn set_step(&mut self, slot: usize, row: &StepRow) {
        self.kept.clear();
        if let Some(place) = self.known.get_mut(slot) {
            *place = *row;
            let at = (slot * STEP_BYTES) as u64;
            self.device.queue.write_buffer(&self.steps, at, bytemuck::bytes_of(row));
        }
    }

    fn save(&mut self, mark: usize) {
        let at: Vec<usize> = self.recurrent().collect();
        if !self.saved.contains_key(&mark) {
            let like = |b: &wgpu::Buffer| self.device.buffer(usize::try_from(b.size()).unwrap_or(usize::MAX));
            let made = like(&self.steps).and_then(|steps| {
                let states = at.iter().map(|&i| like(&self.buffers[i])).collect::<Result<Vec<_>, _>>()?;
                Ok(Saved { steps, known: Vec::new(), stale: false, states })
            });
            match made {
                Ok(saved) => drop(self.saved.insert(mark, saved)),
                Err(e) => return tracing::warn!(error = %e, "no memory for a snapshot"),
            }
        }
        if let Some(saved) = self.saved.get(&mark) {
            let states = at.iter().map(|&i| &self.buffers[i]).zip(&saved.states);
            self.copy(&states.chain([(&self.steps, &saved.steps)]).collect::<Vec<_>>());
        }
        if let Some(saved) = self.saved.get_mut(&mark) {
            (saved.known, saved.stale) = (self.known.clone(), self.stale);
        }
    }

    fn restore(&mut self, mark: usize) -> bool {
        let Some(saved) = self.saved.get(&mark) else { return false };
        let states = saved.states.iter().zip(self.recurrent().map(|i| &self.buffers[i]));
        self.copy(&states.chain([(&saved.steps, &self.steps)]).collect::<Vec<_>>());
        (self.known, self.stale) = (saved.known.clone(), saved.stale);
        self.kept.clear();
        true
    }

    fn reset(&mut self) {
        self.kept.clear();
        let mut encoder =
            self.device.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for i in self.recurrent() {
            encoder.clear_buffer(&self.buffers[i], 0, None);
        }
        self.device.queue.submit([encoder.finish()]);
        self.known.fill(StepRow::default());
        self.stale = false;
        self.write_steps();
    }

    fn read_state(&mut self, name: &str) -> Option<Vec<f32>> {
        let at = self.specs.iter().position(|s| s.name == name)?;
        let spec = &self.specs[at];
        let bytes = self.device.download(&self.buffers[at], state_bytes(spec)?).ok()?;
        Some(match spec.ty {
            StateType::F32 => bytemuck::pod_collect_to_vec(&bytes),
            StateType::F16 => bytes.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b).to_f32()).collect(),
        })
    }

    fn write_state(&mut self, name: &str, data: &[f32]) -> bool {
        let Some(at) = self.specs.iter().position(|s| s.name == name) else { return false };
        let spec = &self.specs[at];
        if data.len() != spec.rows * spec.cols {
            return false;
        }
        let mut bytes: Vec<u8> = match spec.ty {
            StateType::F32 => bytemuck::cast_slice(data).to_vec(),
            StateType::F16 => data.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect(),
        };
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self.device.queue.write_buffer(&self.buffers[at], 0, &bytes);
        true
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
