//! `cargo xtask check`: everything that must hold before a change lands. `.ci/run` is this and nothing else.

use anyhow::Result;

use crate::process::{self, Steps};
use crate::system::{self, Consent};
use crate::{test, tidy, workspace};

/// Runs the checks, the quick ones first, and stops at the first that fails.
///
/// # Errors
/// If a check fails; the text names the command and what to do.
pub(crate) fn run(consent: Consent) -> Result<()> {
    let mut steps = Steps::default();
    steps.step("rules on files", || tidy::run(&workspace::root()))?;
    system::provide_components(consent)?;
    steps.step("format", || {
        process::run(&mut workspace::cargo(&["fmt", "--all", "--check"]), "`cargo fmt --all` mends it")
    })?;
    steps.step("dependencies", workspace::fetch_dependencies)?;
    system::provide_for_build(consent)?;
    steps.step("lints", || {
        let words = ["clippy", "--release", "--workspace", "--all-targets", "--", "--deny", "warnings"];
        let advice = "mend what is named above; `cargo clippy --fix --release --workspace --all-targets` mends the simple ones";
        process::run(&mut workspace::cargo(&words), advice)?;
        // Nobody else here builds the program for machines without sound and display.
        let program = ["clippy", "--release", "-p", "repartee", "--no-default-features", "--features", "wgpu"];
        let words = [&program[..], &["--", "--deny", "warnings"]].concat();
        let advice = "mend what is named above: the build without `desktop` lacks it or has no use for it";
        process::run(&mut workspace::cargo(&words), advice)
    })?;
    steps.step("documentation", || {
        // What the caller has set stays in force.
        let flags = std::env::var("RUSTDOCFLAGS").unwrap_or_default() + " --deny warnings";
        let mut command = workspace::cargo(&["doc", "--release", "--workspace", "--no-deps"]);
        process::run(command.env("RUSTDOCFLAGS", flags.trim()), "mend the links and code blocks named above")
    })?;
    test::run_steps(&mut steps, consent)?;
    eprintln!("\n{}", steps.summary());
    Ok(())
}
