//! A case: a graph, its weights and a script of runs; and the comparison of a backend with the reference.
//!
//! A script is played on the reference and on the backend side by side. After each action all outputs, step
//! rows and states are compared. What must not be read is poisoned: cache rows that nobody wrote hold NaN, and
//! before each run the same program runs once at its maximum lengths, in another session, on noise or NaN, so
//! that whatever lies past the real lengths in the program's memory is garbage.

use std::sync::Arc;

use repartee_engine::backends::{
    Backend, CancelToken, CompileError, Input, MemoryTensors, Program, Run, RunError, Session, WeightSet,
};
use repartee_engine::formats::testing::quantize;
use repartee_engine::formats::{Affine, TensorType};
use repartee_engine::graph::{
    CacheStart, Dim, ElementType, Graph, GraphBuilder, Op, StateKind, StateSpec, StateType, StepRow, Value,
};
use repartee_engine::reference::Reference;

use crate::compare::{Tolerance, compare};
use crate::random::Random;

/// The data of one input.
#[derive(Clone, Debug)]
pub enum Data {
    /// Floats.
    F32(Vec<f32>),
    /// Integers.
    I32(Vec<i32>),
}

impl Data {
    fn input(&self) -> Input<'_> {
        match self {
            Self::F32(d) => Input::F32(d),
            Self::I32(d) => Input::I32(d),
        }
    }
}

/// Lengths and inputs of one run.
#[derive(Clone, Debug)]
pub struct Feed {
    /// One row count for each symbol.
    pub lengths: Vec<usize>,
    /// One entry for each input.
    pub inputs: Vec<Data>,
}

/// One move of a script.
#[derive(Clone)]
pub enum Action {
    /// Runs and reads every output.
    Run(Feed),
    /// Runs without reading anything back.
    Quiet(Feed),
    /// Runs with a token that is already cancelled: nothing changes.
    Cancelled(Feed),
    /// Runs and is refused, with the reference's error.
    Refused(Feed),
    /// Changes a slot's step row on the host.
    Change(usize, Arc<dyn Fn(&mut StepRow) + Send + Sync>),
    /// Forgets cache rows.
    Truncate(usize, usize),
    /// Copies recurrent states and step rows aside.
    Save(usize),
    /// Brings them back; the flag says whether there is something to bring back.
    Restore(usize, bool),
    /// Starts anew.
    Reset,
}

/// A graph, its weights and a script.
#[derive(Clone)]
pub struct Case {
    /// Op and what is special, for messages and skip lists.
    pub name: String,
    /// The graph.
    pub graph: Graph,
    /// Its weights.
    pub weights: MemoryTensors,
    /// What is done.
    pub script: Vec<Action>,
    /// How near outputs and states must be.
    pub tolerance: Tolerance,
    /// Integer inputs are drawn from `-1 ..= ids`.
    pub ids: usize,
    /// Float inputs are drawn from `-top .. top`.
    pub top: f32,
    random: Random,
}

/// Builds a [`Case`]: a graph builder, weights and random numbers.
pub struct Maker {
    /// The graph builder.
    pub g: GraphBuilder,
    /// Random numbers of this case.
    pub r: Random,
    /// As in [`Case`].
    pub ids: usize,
    /// As in [`Case`].
    pub top: f32,
    name: String,
    weights: MemoryTensors,
    tolerance: Tolerance,
    made: usize,
}

impl Maker {
    /// A case for one slot.
    pub fn new(name: impl Into<String>, tolerance: Tolerance) -> Self {
        Self::with_slots(name, 1, tolerance)
    }

    /// A case for several slots.
    pub fn with_slots(name: impl Into<String>, slots: usize, tolerance: Tolerance) -> Self {
        let name = name.into();
        let g = GraphBuilder::with_slots(&name, slots);
        let r = Random::for_name(&name);
        Self { g, r, ids: 8, top: 2.0, name, weights: MemoryTensors::new(), tolerance, made: 0 }
    }

    /// A symbol for rows of token-wise ops: `q` rows for each of `slots` slots.
    pub fn slot_rows(&mut self, slots: usize, max: usize) -> Dim {
        let q = self.g.symbol("q", max);
        q.affine(slots as i64, 0, 1).unwrap_or(q)
    }

    /// A float input; with `view` it is the middle columns of a wider input.
    pub fn input(&mut self, rows: impl Into<Dim>, cols: usize, view: bool) -> Value {
        self.made += 1;
        let name = format!("x{}", self.made);
        if !view {
            return self.g.input_f32(&name, rows, cols);
        }
        let wide = self.g.input_f32(&name, rows, cols + 5);
        let half = self.g.columns(wide, 1, cols + 3);
        self.g.columns(half, 2, cols)
    }

    /// Adds a random weight with elements in about `-top .. top`.
    pub fn weight(&mut self, name: &str, ty: TensorType, shape: &[usize], top: f32) {
        let mut values = self.r.floats(shape.iter().product(), top);
        if matches!(ty, TensorType::I8 | TensorType::U8 | TensorType::I32 | TensorType::I64) {
            values.iter_mut().for_each(|v| *v *= 20.0);
        }
        self.bytes(name, ty, shape, quantize(ty, &values));
    }

    /// Adds random 8-bit weights that stand for numbers in about `-top .. top`, with a scale and a zero point for each
    /// row, or one of each.
    ///
    /// # Panics
    /// As [`Self::bytes`].
    pub fn affine(&mut self, name: &str, ty: TensorType, shape: &[usize], top: f32, by_row: bool) {
        let count = if by_row { shape[0] } else { 1 };
        let scales: Vec<f32> = (0..count).map(|_| self.r.uniform(0.3, 1.0) * top / 128.0).collect();
        let middle = if ty == TensorType::U8 { 128 } else { 0 };
        let zeros: Vec<f32> = (0..count).map(|_| (middle + self.r.between(-9, 9)) as f32).collect();
        let bytes = self.r.bytes(shape.iter().product());
        let affine = Affine { scales: &scales, zeros: &zeros };
        self.weights
            .insert_affine(name, ty, shape, bytes, affine)
            .expect("the suite's weights fit their shapes");
    }

    /// Adds a weight from its bytes.
    ///
    /// # Panics
    /// When the bytes do not fit the shape: a mistake in the suite.
    pub fn bytes(&mut self, name: &str, ty: TensorType, shape: &[usize], bytes: Vec<u8>) {
        self.weights.insert(name, ty, shape, bytes).expect("the suite's weights fit their shapes");
    }

    /// Marks an output.
    pub fn output(&mut self, v: Value) {
        self.made += 1;
        self.g.output(&format!("y{}", self.made), v);
    }

    /// The case, with an empty script.
    ///
    /// # Panics
    /// When the graph has a mistake: a mistake in the suite.
    pub fn build(self) -> Case {
        let graph = self.g.finish().expect("the suite's graphs are right");
        Case {
            name: self.name,
            graph,
            weights: self.weights,
            script: Vec::new(),
            tolerance: self.tolerance,
            ids: self.ids,
            top: self.top,
            random: self.r,
        }
    }

    /// The case, with one run for each list of lengths.
    pub fn runs(self, lengths: &[&[usize]]) -> Case {
        lengths.iter().fold(self.build(), |case, l| case.run(l))
    }
}

impl Case {
    fn feed(&mut self, lengths: &[usize]) -> Feed {
        let inputs = self
            .graph
            .inputs
            .iter()
            .map(|(_, v)| {
                let shape = self.graph.shape(*v);
                let n = shape.rows.eval(lengths).unwrap_or(0) * shape.cols;
                match self.graph.values[v.index()].ty {
                    ElementType::F32 => Data::F32(self.random.floats(n, self.top)),
                    ElementType::I32 => {
                        Data::I32((0..n).map(|_| self.random.between(-1, self.ids as i32)).collect())
                    }
                }
            })
            .collect();
        Feed { lengths: lengths.to_vec(), inputs }
    }

    fn then(mut self, action: Action) -> Self {
        self.script.push(action);
        self
    }

    /// Adds a run on random inputs.
    pub fn run(mut self, lengths: &[usize]) -> Self {
        let feed = self.feed(lengths);
        self.then(Action::Run(feed))
    }

    /// Adds a run on these inputs.
    pub fn run_on(self, lengths: &[usize], inputs: Vec<Data>) -> Self {
        self.then(Action::Run(Feed { lengths: lengths.to_vec(), inputs }))
    }

    /// Adds a run that reads nothing back.
    pub fn quiet(mut self, lengths: &[usize]) -> Self {
        let feed = self.feed(lengths);
        self.then(Action::Quiet(feed))
    }

    /// Adds a cancelled run.
    pub fn cancelled(mut self, lengths: &[usize]) -> Self {
        let feed = self.feed(lengths);
        self.then(Action::Cancelled(feed))
    }

    /// Adds a run that is refused.
    pub fn refused(mut self, lengths: &[usize]) -> Self {
        let feed = self.feed(lengths);
        self.then(Action::Refused(feed))
    }

    /// Adds a run with these inputs that is refused.
    pub fn refused_on(self, lengths: &[usize], inputs: Vec<Data>) -> Self {
        self.then(Action::Refused(Feed { lengths: lengths.to_vec(), inputs }))
    }

    /// Adds a change of a step row.
    pub fn change(self, slot: usize, change: impl Fn(&mut StepRow) + Send + Sync + 'static) -> Self {
        self.then(Action::Change(slot, Arc::new(change)))
    }

    /// Adds a truncation.
    pub fn truncate(self, slot: usize, position: usize) -> Self {
        self.then(Action::Truncate(slot, position))
    }

    /// Adds a snapshot.
    pub fn save(self, mark: usize) -> Self {
        self.then(Action::Save(mark))
    }

    /// Adds a return to a snapshot.
    pub fn restore(self, mark: usize, known: bool) -> Self {
        self.then(Action::Restore(mark, known))
    }

    /// Adds a reset.
    pub fn reset(self) -> Self {
        self.then(Action::Reset)
    }

    /// A weight set over this case's weights.
    pub fn weight_set(&self, backend: &dyn Backend) -> WeightSet {
        backend.weight_set(Arc::new(self.weights.clone()))
    }

    /// Compiles the case.
    ///
    /// # Errors
    /// What the backend says.
    pub fn compile(&self, backend: &dyn Backend) -> Result<Box<dyn Program>, CompileError> {
        backend.compile(&self.graph, &self.weight_set(backend))
    }
}

/// Runs once and gives every output.
///
/// # Errors
/// What the program says.
pub fn run_once(
    program: &dyn Program,
    session: &mut Session,
    feed: &Feed,
    cancel: Option<&CancelToken>,
) -> Result<Vec<Vec<f32>>, RunError> {
    // Full of stale numbers: a backend has to set the length itself.
    let mut outputs = vec![vec![f32::MAX; 3]; program.graph().outputs.len()];
    let mut places: Vec<_> = outputs.iter_mut().enumerate().collect();
    let inputs: Vec<_> = feed.inputs.iter().map(Data::input).collect();
    let run = Run { lengths: &feed.lengths, inputs: &inputs, outputs: &mut places, cancel, ..Run::default() };
    program.run(session, run)?;
    Ok(outputs)
}

fn run_quiet(program: &dyn Program, session: &mut Session, feed: &Feed) -> Result<(), RunError> {
    let inputs: Vec<_> = feed.inputs.iter().map(Data::input).collect();
    program.run(session, Run { lengths: &feed.lengths, inputs: &inputs, ..Run::default() })
}

/// A program with its session, and a second session for poison.
struct Player {
    program: Box<dyn Program>,
    session: Session,
    waste: Session,
}

impl Player {
    fn new(case: &Case, backend: &dyn Backend) -> Result<Self, String> {
        let program = case.compile(backend).map_err(|e| format!("compile: {e}"))?;
        let mut session = backend.session(&[&case.graph]).map_err(|e| format!("session: {e}"))?;
        let waste = backend.session(&[&case.graph]).map_err(|e| format!("session: {e}"))?;
        for spec in &case.graph.states {
            if matches!(spec.kind, StateKind::Cache { .. }) {
                let poison = vec![f32::NAN; spec.rows * spec.cols];
                if !session.state().write_state(&spec.name, &poison) {
                    return Err(format!("write_state refuses `{}`", spec.name));
                }
            }
        }
        Ok(Self { program, session, waste })
    }

    /// Leaves garbage in all of the program's memory.
    fn poison(&mut self, case: &Case, round: usize) -> Result<(), String> {
        let graph = &case.graph;
        let lengths: Vec<usize> = graph.symbols.iter().map(|s| s.max).collect();
        let mut r = Random::for_name(&format!("{} poison {round}", case.name));
        let inputs = graph
            .inputs
            .iter()
            .map(|(_, v)| {
                let n = graph.max_rows(*v) * graph.shape(*v).cols;
                match graph.values[v.index()].ty {
                    ElementType::F32 if round.is_multiple_of(2) => Data::F32(vec![f32::NAN; n]),
                    ElementType::F32 => Data::F32(r.floats(n, 1e30)),
                    ElementType::I32 => {
                        Data::I32((0..n).map(|_| r.between(0, case.ids.max(1) as i32 - 1)).collect())
                    }
                }
            })
            .collect();
        self.waste.state().reset();
        run_quiet(&*self.program, &mut self.waste, &Feed { lengths, inputs })
            .map_err(|e| format!("poison run: {e}"))
    }
}

/// Holds a backend to the reference on one case; `device` is what every placement must name.
///
/// # Errors
/// The first difference, with the action's place in the script.
pub fn hold(case: &Case, backend: &dyn Backend, device: &str) -> Result<(), String> {
    let mut plain = Player::new(case, &Reference).map_err(|e| format!("{}: reference: {e}", case.name))?;
    let mut tested = Player::new(case, backend).map_err(|e| format!("{}: {e}", case.name))?;
    check_placement(case, &*tested.program, device).map_err(|e| format!("{}: {e}", case.name))?;
    for (at, action) in case.script.iter().enumerate() {
        play(case, action, at, &mut plain, &mut tested)
            .and_then(|()| same_state(case, &mut plain.session, &mut tested.session))
            .map_err(|e| format!("{}: action {at} ({}): {e}", case.name, action.label()))?;
    }
    Ok(())
}

impl Action {
    fn label(&self) -> String {
        match self {
            Self::Run(f) => format!("run {:?}", f.lengths),
            Self::Quiet(f) => format!("quiet run {:?}", f.lengths),
            Self::Cancelled(f) => format!("cancelled run {:?}", f.lengths),
            Self::Refused(f) => format!("refused run {:?}", f.lengths),
            Self::Change(slot, _) => format!("change slot {slot}"),
            Self::Truncate(slot, position) => format!("truncate slot {slot} to {position}"),
            Self::Save(mark) => format!("save {mark}"),
            Self::Restore(mark, _) => format!("restore {mark}"),
            Self::Reset => "reset".into(),
        }
    }
}

fn check_placement(case: &Case, program: &dyn Program, device: &str) -> Result<(), String> {
    let placed = program.placement();
    let nodes = &case.graph.nodes;
    if placed.len() != nodes.len() {
        return Err(format!("placement names {} of {} nodes", placed.len(), nodes.len()));
    }
    for (i, (p, node)) in placed.iter().zip(nodes).enumerate() {
        if p.node != i || p.op != node.op.name() || p.device != device {
            return Err(format!("node {i} ({}) should run on {device}, but: {p:?}", node.op.name()));
        }
    }
    Ok(())
}

fn play(
    case: &Case,
    action: &Action,
    round: usize,
    plain: &mut Player,
    tested: &mut Player,
) -> Result<(), String> {
    match action {
        Action::Run(feed) => {
            let expected = run_once(&*plain.program, &mut plain.session, feed, None)
                .map_err(|e| format!("the reference refuses: {e}"))?;
            tested.poison(case, round)?;
            let got =
                run_once(&*tested.program, &mut tested.session, feed, None).map_err(|e| e.to_string())?;
            same_outputs(case, &expected, &got)
        }
        Action::Quiet(feed) => {
            run_quiet(&*plain.program, &mut plain.session, feed)
                .map_err(|e| format!("the reference refuses: {e}"))?;
            tested.poison(case, round)?;
            run_quiet(&*tested.program, &mut tested.session, feed).map_err(|e| e.to_string())
        }
        Action::Cancelled(feed) => {
            let cancel = CancelToken::new();
            cancel.cancel();
            match run_once(&*tested.program, &mut tested.session, feed, Some(&cancel)) {
                Err(RunError::Cancelled) => Ok(()),
                other => Err(format!("a cancelled run gives {:?}", other.map(|_| "outputs"))),
            }
        }
        Action::Refused(feed) => {
            let expected = run_once(&*plain.program, &mut plain.session, feed, None).err();
            let got = run_once(&*tested.program, &mut tested.session, feed, None).err();
            match expected {
                None => Err("the reference accepts what should be refused".into()),
                same if same == got => Ok(()),
                expected => Err(format!("error {got:?} instead of {expected:?}")),
            }
        }
        Action::Change(slot, change) => {
            plain.session.update_step(*slot, |row| change(row));
            tested.session.update_step(*slot, |row| change(row));
            Ok(())
        }
        Action::Truncate(slot, position) => {
            plain.session.truncate(*slot, *position);
            tested.session.truncate(*slot, *position);
            Ok(())
        }
        Action::Save(mark) => {
            plain.session.state().save(*mark);
            tested.session.state().save(*mark);
            Ok(())
        }
        Action::Restore(mark, known) => {
            let found = (plain.session.state().restore(*mark), tested.session.state().restore(*mark));
            if found == (*known, *known) { Ok(()) } else { Err(format!("restore gives {found:?}")) }
        }
        Action::Reset => {
            plain.session.state().reset();
            tested.session.state().reset();
            Ok(())
        }
    }
}

fn same_outputs(case: &Case, expected: &[Vec<f32>], got: &[Vec<f32>]) -> Result<(), String> {
    for ((name, v), (e, g)) in case.graph.outputs.iter().zip(expected.iter().zip(got)) {
        let info = &case.graph.values[v.index()];
        let tolerance = if info.ty == ElementType::I32 { Tolerance::EXACT } else { case.tolerance };
        compare(e, g, info.shape.cols, tolerance).map_err(|e| format!("output {name}: {e}"))?;
    }
    Ok(())
}

fn same_state(case: &Case, plain: &mut Session, tested: &mut Session) -> Result<(), String> {
    for slot in 0..case.graph.slots {
        same_step(&plain.step(slot), &tested.step(slot)).map_err(|e| format!("slot {slot}: {e}"))?;
    }
    for spec in &case.graph.states {
        let expected = plain.state().read_state(&spec.name).unwrap_or_default();
        let Some(mut got) = tested.state().read_state(&spec.name) else {
            return Err(format!("state {} is missing", spec.name));
        };
        let mut tolerance = case.tolerance;
        if spec.ty == StateType::F16 && tolerance != Tolerance::EXACT {
            tolerance.relative += 1.0 / 1024.0; // where the number itself is a little off, f16 rounds another way
        }
        let mut real = expected;
        if matches!(spec.kind, StateKind::Cache { .. }) && got.len() == real.len() {
            // What a backend leaves in rows that do not exist is its own.
            let exists = existing_rows(case, spec, plain);
            let keep = |i: usize, e: f32| !e.is_nan() && exists[i / spec.cols];
            (real, got) = real
                .iter()
                .zip(&got)
                .enumerate()
                .filter(|(i, (e, _))| keep(*i, **e))
                .map(|(_, (e, g))| (*e, *g))
                .unzip();
        }
        compare(&real, &got, spec.cols, tolerance).map_err(|e| format!("state {}: {e}", spec.name))?;
    }
    Ok(())
}

/// The rows of a cache that count: those before the slot's position, or all that were ever written (no poison)
/// where an encoder writes from row 0.
fn existing_rows(case: &Case, spec: &StateSpec, session: &mut Session) -> Vec<bool> {
    let from_zero = case.graph.nodes.iter().any(|n| {
        matches!(n.op, Op::CacheWrite { state, start: CacheStart::Zero } if case.graph.states[state.index()] == *spec)
    });
    let context = spec.rows / case.graph.slots;
    let positions: Vec<usize> =
        (0..case.graph.slots).map(|slot| session.step(slot).position as usize).collect();
    (0..spec.rows).map(|row| from_zero || row % context < positions[row / context]).collect()
}

/// Step rows must be equal, but for the log-probability: `exp` and `ln` differ in the last bits.
fn same_step(expected: &StepRow, got: &StepRow) -> Result<(), String> {
    let t = Tolerance::new(2e-5, 1e-5, "exp and ln in f32 over the vocabulary");
    let near = expected.logprob == got.logprob || t.holds(expected.logprob, got.logprob);
    let same_but_logprob = StepRow { logprob: 0.0, ..*expected } == StepRow { logprob: 0.0, ..*got };
    if near && same_but_logprob {
        return Ok(());
    }
    let show = |s: &StepRow| {
        format!(
            "position {} active {} done {} token {} logprob {} offset {} history {:?} of {}",
            s.position,
            s.active,
            s.done,
            s.token,
            s.logprob,
            s.offset,
            s.recent(4).collect::<Vec<_>>(),
            s.history_len
        )
    };
    Err(format!("step row is [{}] instead of [{}]", show(got), show(expected)))
}
