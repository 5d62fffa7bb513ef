//! `cargo xtask test`: all tests, with everything that they read.

use std::fmt;

use anyhow::{Result, ensure};

use crate::process::{self, Steps};
use crate::system::{self, Consent, Need};
use crate::{models, workspace};

/// Fetches what the tests need, runs them and prints the sum.
///
/// # Errors
/// If a step or a test fails; the text names the command and what to do.
pub(crate) fn run(consent: Consent) -> Result<()> {
    let mut steps = Steps::default();
    steps.step("dependencies", workspace::fetch_dependencies)?;
    run_steps(&mut steps, consent)?;
    eprintln!("\n{}", steps.summary());
    Ok(())
}

/// The steps of [`run`], for a task that has others before them.
///
/// # Errors
/// As for [`run`].
pub(crate) fn run_steps(steps: &mut Steps, consent: Consent) -> Result<()> {
    steps.step("system", || {
        system::provide_for_build(consent)?;
        let missing = system::provide(&[Need::Vulkan], "The GPU backend is tested with Vulkan", consent)?;
        if !missing.is_empty() {
            eprintln!("going on without: tests of the GPU backend have no adapter to run on");
        }
        let why = "Sound devices are tested on virtual ones";
        if !system::provide(&[Need::PulseAudio], why, consent)?.is_empty() {
            eprintln!("going on without: tests with real sound say that they were not run");
        }
        let why = "The window is tested on a virtual display";
        if !system::provide(&[Need::Window, Need::Display], why, consent)?.is_empty() {
            eprintln!("going on without: the test of the window says that it was not run");
        }
        Ok(())
    })?;
    steps.step("build the tests", || {
        process::run(
            &mut workspace::cargo(&["test", "--release", "--workspace", "--no-run"]),
            "see the compiler's errors above",
        )
    })?;
    steps.step("models", || models::fetch(&models::FOR_TESTS, consent))?;
    steps.step("tests", || {
        let mut count = Count::default();
        let result = process::run_reading(
            &mut workspace::cargo(&["test", "--release", "--workspace", "--no-fail-fast"]),
            "the names of the failed tests stand above; `cargo test --release NAME` runs one of them",
            |line| count.add(line),
        );
        println!("\n{count}");
        result?;
        ensure!(count.passed > 0, "no test was run: has the form of the test runner's summary changed?");
        Ok(())
    })
}

/// The sum of the test runner's summaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Count {
    /// Adds a line of output if it is a summary:
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`.
    fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for part in counts.split("; ") {
            let Some((number, what)) = part.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_add_up() {
        let mut count = Count::default();
        for line in [
            "running 3 tests",
            "test a ... ok",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 5 filtered out; finished in 1.00s",
            "a test printed test result: ok. 7 passed; 0 failed",
            "test result: nonsense",
        ] {
            count.add(line);
        }
        assert_eq!(count, Count { passed: 13, failed: 2, skipped: 1 });
        assert_eq!(count.to_string(), "13 passed, 2 failed, 1 skipped");
    }
}
