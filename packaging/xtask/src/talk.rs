//! `cargo xtask talk`: from a clone to a conversation.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::process::{self, Steps};
use crate::system::{self, Consent, Need};
use crate::{models, workspace};

/// What the program needs at run time. The headless commands need nothing of the system; a window and a
/// microphone will have their libraries here.
const NEEDS: [Need; 0] = [];

/// Builds the program, fetches the default models and starts it.
///
/// # Errors
/// If a step fails; the text names the command and what to do.
pub(crate) fn run(consent: Consent, args: &[OsString]) -> Result<ExitCode> {
    let mut steps = Steps::default();
    let missing = system::provide(&NEEDS, "The program needs more of the system", consent)?;
    anyhow::ensure!(missing.is_empty(), "the program can't run without what is named above");
    steps.step("dependencies", workspace::fetch_dependencies)?;
    steps.step("build", || {
        let mut build = workspace::cargo(&["build", "--release", "--package", "repartee"]);
        process::run(&mut build, "see the compiler's errors above")
    })?;
    steps.step("models", || models::fetch(&[], consent))?;
    eprintln!("\n==> talk");
    let mut command = Command::new(workspace::program()?);
    command.args(arguments(args, &sample()));
    eprintln!("$ {}", process::shown(&command));
    let status = command.status().with_context(|| format!("starting `{}`", process::shown(&command)))?;
    // A program ended by a signal has no code.
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// The spoken sample question, by a path that holds in the current folder.
fn sample() -> PathBuf {
    let sample = Path::new("assets").join("questions").join("capital.wav");
    if sample.exists() { sample } else { workspace::root().join(sample) }
}

/// How the program is started: headless, answering `sample` unless `args` bring their own question.
fn arguments(args: &[OsString], sample: &Path) -> Vec<OsString> {
    let is_input = |arg: &OsString| arg == "--input" || arg.as_encoded_bytes().starts_with(b"--input=");
    let mut words: Vec<&OsStr> = vec![OsStr::new("talk")];
    if !args.iter().any(is_input) {
        words.extend([OsStr::new("--input"), sample.as_os_str()]);
    }
    words.into_iter().map(OsStr::to_owned).chain(args.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments_of(args: &[&str]) -> Vec<OsString> {
        let args: Vec<OsString> = args.iter().map(Into::into).collect();
        arguments(&args, Path::new("q.wav"))
    }

    #[test]
    fn without_a_question_the_sample_is_asked() {
        assert_eq!(arguments_of(&[]), ["talk", "--input", "q.wav"]);
        assert_eq!(arguments_of(&["--backend", "cpu"]), ["talk", "--input", "q.wav", "--backend", "cpu"]);
    }

    #[test]
    fn a_question_of_ones_own_takes_its_place() {
        assert_eq!(arguments_of(&["--input", "a.wav"]), ["talk", "--input", "a.wav"]);
        assert_eq!(arguments_of(&["--input=a.wav"]), ["talk", "--input=a.wav"]);
    }

    #[test]
    fn the_sample_question_is_there() {
        assert!(sample().is_file());
    }
}
