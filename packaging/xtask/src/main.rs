//! Set-up, tests and checks of the workspace: `cargo xtask talk | test | check | voice-to-voice`.
//!
//! **Why.** One command each for those who want to talk, to test, and to change something, with no set-up
//! before it: what is missing is installed after asking, or named with the command that installs it.
//!
//! **How.** Each command is a list of steps. A step that fails names its command line and what to do about
//! it. `--yes`, and `CI=true` in the environment, answer every question with yes, so that nothing waits for a
//! person. Everything is built in the release profile, the one that the program, the tests and the checks
//! share.
//!
//! **Rejected.** A shell script (no tests, no Windows); asking the crate `repartee-models` for the models
//! instead of the built program (its TLS library would be compiled before the first word is shown, and the
//! program's own command would go untried).
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "steps, questions and results are for a person"
)]

mod check;
mod models;
mod process;
mod system;
mod talk;
mod test;
mod tidy;
mod voice;
mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use system::Consent;

/// Set-up, tests and checks of the Repartee workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build the program, fetch what it needs, and talk with it.
    Talk {
        #[command(flatten)]
        consent: ConsentArgs,
        /// What the program is started with; without it, a spoken sample question is answered.
        #[arg(last = true, value_name = "ARGS")]
        args: Vec<OsString>,
    },
    /// Fetch what the tests need and run all of them.
    Test {
        #[command(flatten)]
        consent: ConsentArgs,
    },
    /// Everything that must hold before a change lands: rules on files, format, lints, documentation, tests.
    Check {
        #[command(flatten)]
        consent: ConsentArgs,
    },
    /// Measure how long a person waits for an answer, with a virtual microphone and a virtual speaker.
    VoiceToVoice {
        #[command(flatten)]
        consent: ConsentArgs,
        /// Folder with recorded questions (WAV); without it, the program speaks twenty.
        #[arg(long, value_name = "FOLDER")]
        questions: Option<PathBuf>,
        /// Where the latency report goes.
        #[arg(long, value_name = "FILE", default_value = "voice-to-voice.json")]
        report: PathBuf,
        /// What the program is started with besides, e.g. `--stt whisper-tiny.en`.
        #[arg(last = true, value_name = "ARGS")]
        args: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct ConsentArgs {
    /// Install what is missing without asking, with `sudo` where that is needed.
    #[arg(short, long)]
    yes: bool,
}

impl ConsentArgs {
    fn consent(&self) -> Consent {
        Consent::new(self.yes, workspace::is_ci())
    }
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<ExitCode> {
    match task {
        Task::Talk { consent, args } => talk::run(consent.consent(), &args),
        Task::Test { consent } => test::run(consent.consent()).map(|()| ExitCode::SUCCESS),
        Task::Check { consent } => check::run(consent.consent()).map(|()| ExitCode::SUCCESS),
        Task::VoiceToVoice { consent, questions, report, args } => {
            voice::run(consent.consent(), questions, &report, &args).map(|()| ExitCode::SUCCESS)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Task, clap::Error> {
        Cli::try_parse_from(std::iter::once(&"xtask").chain(words)).map(|cli| cli.task)
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn what_follows_the_dashes_is_for_the_program() {
        let Task::Talk { consent, args } =
            parse(&["talk", "--yes", "--", "--input", "a b.wav", "--yes"]).unwrap()
        else {
            panic!("not talk");
        };
        assert!(consent.yes);
        assert_eq!(args, ["--input", "a b.wav", "--yes"]);

        let Task::Talk { consent, args } = parse(&["talk"]).unwrap() else { panic!("not talk") };
        assert!(!consent.yes && args.is_empty());
    }

    #[test]
    fn unknown_words_are_refused() {
        for words in [&["talk", "--input", "a.wav"][..], &["test", "--", "x"], &["chek"], &[]] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
