//! The op suite: every backend of this machine against the plain meaning of each op.

use repartee_engine::backends::CompileErrorKind;
#[cfg(feature = "wgpu")]
use repartee_engine::graph::Op;
use repartee_tests::case::{Case, hold};
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
fn products() {
    hold_all(&cases::products::cases());
}

/// Matrices that no binding holds are cut into parts; here parts have some rows, or one where a row is larger.
#[cfg(feature = "wgpu")]
#[test]
fn cut_matrices() {
    let Some(subject) = wgpu_subject(Some(300)) else { return };
    let cases = [cases::products::cases(), cases::exact::cases(), cases::rows::cases()].concat();
    let cut = |c: &&Case| c.graph.nodes.iter().any(|n| matches!(n.op, Op::Linear { .. } | Op::Embed { .. }));
    let cases: Vec<&Case> = cases.iter().filter(cut).collect();
    assert!(cases.len() > 20);
    let failures: Vec<_> = cases.iter().filter_map(|case| hold_one(&subject, case).err()).collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
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
