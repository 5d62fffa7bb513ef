//! Running commands: each says what it is, how long it took, and on failure what to do.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The named parts of a task, with the time that each took.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: Vec<(&'static str, Duration)>,
}

impl Steps {
    /// Runs one part under a heading.
    ///
    /// # Errors
    /// That of `run`, with the part's name before it.
    pub(crate) fn step<T>(&mut self, name: &'static str, run: impl FnOnce() -> Result<T>) -> Result<T> {
        eprintln!("\n==> {name}");
        let started = Instant::now();
        let result = run().with_context(|| format!("step `{name}`"));
        self.done.push((name, started.elapsed()));
        result
    }

    /// One line per part: seconds and name.
    pub(crate) fn summary(&self) -> String {
        let total: Duration = self.done.iter().map(|(_, time)| *time).sum();
        let line = |name: &str, time: Duration| format!("{:8.1} s  {name}\n", time.as_secs_f64());
        self.done.iter().map(|(name, time)| line(name, *time)).chain([line("in all", total)]).collect()
    }
}

/// Runs `command` to its end, showing its command line first.
///
/// # Errors
/// If it can't be started or fails; the text names the command line and `advice`, which says what to do.
pub(crate) fn run(command: &mut Command, advice: &str) -> Result<()> {
    eprintln!("$ {}", shown(command));
    let status = command.status();
    finish(command, status, advice)
}

/// Like [`run`], with one more try: for steps that fail when a server far away has a bad moment.
///
/// # Errors
/// Those of the second [`run`].
pub(crate) fn run_twice(command: &mut Command, advice: &str) -> Result<()> {
    run(command, advice).or_else(|error| {
        eprintln!("{error:#}\ntrying once more");
        run(command, advice)
    })
}

/// Like [`run`], handing each line of the standard output to `line` after showing it.
///
/// # Errors
/// Those of [`run`], or if the output can't be read.
pub(crate) fn run_reading(command: &mut Command, advice: &str, mut line: impl FnMut(&str)) -> Result<()> {
    eprintln!("$ {}", shown(command));
    let spawned = command.stdout(Stdio::piped()).spawn();
    let status = match spawned {
        Ok(mut child) => {
            let output = child.stdout.take().context("the command has no output")?;
            let mut output = BufReader::new(output);
            let mut bytes = Vec::new();
            // Read by bytes: what a test prints need not be UTF-8.
            while output.read_until(b'\n', &mut bytes).context("reading the command's output")? > 0 {
                std::io::stdout().write_all(&bytes).context("showing the command's output")?;
                line(String::from_utf8_lossy(&bytes).trim_end());
                bytes.clear();
            }
            child.wait()
        }
        Err(error) => Err(error),
    };
    finish(command, status, advice)
}

/// Whether `program` can be run with `args` and succeeds; its output is not shown.
pub(crate) fn works(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn finish(command: &Command, status: std::io::Result<ExitStatus>, advice: &str) -> Result<()> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("`{}` failed ({status}): {advice}", shown(command)),
        Err(error) => bail!("`{}` can't be started ({error}): {advice}", shown(command)),
    }
}

/// The command line as a person would type it: programs by their names, words with spaces quoted.
pub(crate) fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let program = program.file_stem().unwrap_or(command.get_program());
    let quoted = |word: &std::ffi::OsStr| {
        let word = word.to_string_lossy();
        if word.is_empty() || word.contains(char::is_whitespace) { format!("'{word}'") } else { word.into() }
    };
    let words: Vec<String> = std::iter::once(program).chain(command.get_args()).map(quoted).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_typed() {
        let mut command = Command::new(std::path::Path::new("bin").join("cargo"));
        command.args(["test", "--package", "a b", ""]);
        assert_eq!(shown(&command), "cargo test --package 'a b' ''");
    }

    #[test]
    fn a_missing_program_is_named_with_advice() {
        let error = run(&mut Command::new("no-such-program-here"), "install it").unwrap_err().to_string();
        assert!(error.starts_with("`no-such-program-here` can't be started"), "{error}");
        assert!(error.ends_with(": install it"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_failing_command_is_named_with_its_status_and_advice() {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 3"]);
        let error = run(&mut command, "do better").unwrap_err().to_string();
        assert_eq!(error, "`sh -c 'exit 3'` failed (exit status: 3): do better");
    }

    #[cfg(unix)]
    #[test]
    fn a_second_try_may_succeed() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "test -e seen || { touch seen; exit 1; }"]).current_dir(folder.path());
        run_twice(&mut command, "").unwrap();

        command = Command::new("sh");
        command.args(["-c", "echo x >> tries; exit 1"]).current_dir(folder.path());
        run_twice(&mut command, "").unwrap_err();
        assert_eq!(std::fs::read_to_string(folder.path().join("tries")).unwrap(), "x\nx\n");
    }

    #[cfg(unix)]
    #[test]
    fn output_is_read_line_by_line_and_failure_is_still_seen() {
        let mut command = Command::new("sh");
        command.args(["-c", r"printf 'one\ntwo \377\nthree'; exit 1"]);
        let mut lines = Vec::new();
        let error = run_reading(&mut command, "", |line| lines.push(line.to_owned())).unwrap_err();
        assert_eq!(lines, ["one", "two \u{fffd}", "three"]);
        assert!(error.to_string().contains("exit status: 1"), "{error}");
    }

    #[test]
    fn the_summary_has_each_step_and_the_sum() {
        let steps =
            Steps { done: vec![("format", Duration::from_millis(1500)), ("test", Duration::from_secs(100))] };
        assert_eq!(steps.summary(), "     1.5 s  format\n   100.0 s  test\n   101.5 s  in all\n");
    }

    #[test]
    fn a_failing_step_is_named() {
        let error = Steps::default().step("docs", || bail!("broken link") as Result<()>).unwrap_err();
        assert_eq!(format!("{error:#}"), "step `docs`: broken link");
    }
}
