//! The op suite: every backend of this machine against the plain meaning of each op.

use repartee_engine::backends::{CompileErrorKind, MemoryTensors};
use repartee_engine::formats::TensorSource;
#[cfg(feature = "wgpu")]
use repartee_engine::graph::Op;
use repartee_tests::case::{Action, Case, hold, run_once};
use repartee_tests::cases;
#[cfg(feature = "wgpu")]
use repartee_tests::subjects::wgpu_subject;
use repartee_tests::subjects::{Subject, subjects};

/// Plays cases on every backend; lists what fails.
fn hold_all(cases: &[Case]) {
    let mut failures = Vec::new();
    for subject in subjects() {
        failures.extend(cases.iter().filter_map(|case| hold_one(&subject, case).err()));
    }
    let shown = failures.iter().take(30).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} failures, the first ones:\n{shown}", failures.len());
}

fn hold_one(subject: &Subject, case: &Case) -> Result<(), String> {
    let name = subject.backend.name();
    let Some(skip) = subject.skip(case) else {
        return hold(case, &*subject.backend, subject.device).map_err(|e| format!("{name}: {e}"));
    };
    match case.compile(&*subject.backend) {
        Err(e) if matches!(e.kind, CompileErrorKind::Unsupported { .. }) => Ok(()),
        Err(e) => Err(format!("{name}: {}: refused, but not as unsupported: {e}", case.name)),
        Ok(_) => Err(format!("{name}: {}: runs, so the skip ({}) can go", case.name, skip.reason)),
    }
}

#[test]
fn rows() {
    hold_all(&cases::rows::cases());
}

#[test]
fn large() {
    hold_all(&cases::large::cases());
}

#[test]
fn together() {
    hold_all(&cases::together::cases());
}

#[test]
fn products() {
    hold_all(&cases::products::cases());
}

/// Matrices that no binding holds are cut into parts; here parts have some rows, or one where a row is larger.
#[cfg(feature = "wgpu")]
#[test]
fn cut_matrices() {
    let Some(subject) = wgpu_subject(Some(300)) else { return };
    let cases =
        [cases::products::cases(), cases::exact::cases(), cases::rows::cases(), cases::together::cases()];
    let cases = cases.concat();
    let cut = |c: &&Case| c.graph.nodes.iter().any(|n| matches!(n.op, Op::Linear { .. } | Op::Embed { .. }));
    let cases: Vec<&Case> = cases.iter().filter(cut).collect();
    assert!(cases.len() > 20);
    let failures: Vec<_> = cases.iter().filter_map(|case| hold_one(&subject, case).err()).collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// 8-bit weights give, bit for bit, what the same weights give in f32.
#[test]
fn eight_bit_weights_are_exact() {
    let all = [cases::products::cases(), cases::recurrent::cases(), cases::rows::cases()].concat();
    let mut compared = 0;
    for case in all {
        let mut wide = MemoryTensors::new();
        let mut any = false;
        for name in case.weights.names() {
            let view = case.weights.tensor(&name).expect("a name of the case");
            any |= view.affine.is_some();
            wide.insert_f32(&name, &view.shape, &view.to_f32_vec().expect("whole")).expect("whole");
        }
        let Some(Action::Run(feed)) = case.script.iter().find(|a| matches!(a, Action::Run(_))) else {
            continue;
        };
        if !any {
            continue;
        }
        compared += 1;
        for subject in subjects().iter().filter(|s| s.device == "cpu") {
            let run = |weights: MemoryTensors| {
                let mut case = case.clone();
                case.weights = weights;
                let program = case.compile(&*subject.backend).expect("compiles");
                let mut session = subject.backend.session(&[&case.graph]).expect("a session");
                run_once(&*program, &mut session, feed, None).expect("runs")
            };
            assert_eq!(
                run(case.weights.clone()),
                run(wide.clone()),
                "{}: {}",
                subject.backend.name(),
                case.name
            );
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn exact() {
    hold_all(&cases::exact::cases());
}

#[test]
fn attention() {
    hold_all(&cases::attention::cases());
}

#[test]
fn recurrent() {
    hold_all(&cases::recurrent::cases());
}

#[test]
fn sample() {
    hold_all(&cases::sample::cases());
}

#[test]
fn synthesis() {
    hold_all(&cases::synthesis::cases());
}

#[test]
fn programs() {
    hold_all(&cases::programs::cases());
}
