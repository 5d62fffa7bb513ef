//! `cargo xtask talk`: from a clone to a conversation.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::process::{self, Steps};
use crate::system::{self, Consent, Need};
use crate::{models, workspace};

/// Builds the program, fetches the default models and starts it: the window where there is a display, else the
/// answer to a spoken sample question. With `args`, `repartee talk` with them.
///
/// # Errors
/// If a step fails; the text names the command and what to do.
pub(crate) fn run(consent: Consent, args: &[OsString]) -> Result<ExitCode> {
    let mut steps = Steps::default();
    let opens_window = args.is_empty() && has_display();
    if opens_window {
        let missing = system::provide(&[Need::Window], "The window needs more of the system", consent)?;
        anyhow::ensure!(missing.is_empty(), "the window can't be opened without what is named above");
    }
    system::provide_for_build(consent)?;
    steps.step("dependencies", workspace::fetch_dependencies)?;
    steps.step("build", || {
        let mut build = workspace::cargo(&["build", "--release", "--package", "repartee"]);
        process::run(&mut build, "see the compiler's errors above")
    })?;
    steps.step("models", || models::fetch(&[], consent))?;
    eprintln!("\n==> talk");
    let mut command = Command::new(workspace::program()?);
    if !opens_window {
        command.args(arguments(args, &sample()));
    }
    eprintln!("$ {}", process::shown(&command));
    let status = command.status().with_context(|| format!("starting `{}`", process::shown(&command)))?;
    // A program ended by a signal has no code.
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Whether a window can be shown: anywhere but on a Linux without X11 and Wayland, as through a plain remote shell.
fn has_display() -> bool {
    let is_set = |key| std::env::var_os(key).is_some_and(|value| !value.is_empty());
    !cfg!(target_os = "linux") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Where the spoken answer goes.
const ANSWER: &str = "answer.wav";

/// The spoken sample question, by a path that holds in the current folder.
fn sample() -> PathBuf {
    let sample = Path::new("assets").join("questions").join("capital.wav");
    if sample.exists() { sample } else { workspace::root().join(sample) }
}

/// How the program is started: headless, answering `sample` into [`ANSWER`] unless `args` say otherwise.
fn arguments(args: &[OsString], sample: &Path) -> Vec<OsString> {
    let has = |name: &str| {
        let is =
            |word: &str| word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('='));
        args.iter().any(|arg| is(&arg.to_string_lossy()))
    };
    let mut words: Vec<&OsStr> = vec![OsStr::new("talk")];
    if !has("--input") {
        words.extend([OsStr::new("--input"), sample.as_os_str()]);
    }
    if !has("--output") {
        words.extend([OsStr::new("--output"), OsStr::new(ANSWER)]);
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
        let usual = ["talk", "--input", "q.wav", "--output", "answer.wav"];
        assert_eq!(arguments_of(&[]), usual);
        assert_eq!(arguments_of(&["--backend", "cpu"]), [&usual[..], &["--backend", "cpu"]].concat());
    }

    #[test]
    fn what_is_given_takes_its_place() {
        let output = ["talk", "--output", "answer.wav"];
        assert_eq!(arguments_of(&["--input", "a.wav"]), [&output[..], &["--input", "a.wav"]].concat());
        assert_eq!(arguments_of(&["--input=a.wav"]), [&output[..], &["--input=a.wav"]].concat());
        let both = ["--input", "a.wav", "--output=b.wav"];
        assert_eq!(arguments_of(&both), [&["talk"][..], &both].concat());
    }

    #[test]
    fn the_sample_question_is_there() {
        assert!(sample().is_file());
    }
}
