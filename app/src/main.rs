//! Repartee, a native desktop voice agent.
//!
//! Each subcommand is a module of [`commands`]: a type of arguments for clap, and a `run` that takes it.
//! Results go to stdout, what is said about the work to stderr. The program ends with 0, with 1 and a line
//! that says what went wrong and what to do, or with 2 if it was called wrongly.

mod check;
mod commands;
#[cfg(feature = "desktop")]
mod live;
#[cfg(feature = "desktop")]
mod logging;
#[cfg(feature = "desktop")]
mod missing;
mod output;
mod printing;
#[cfg(feature = "desktop")]
mod saved;
mod terminal;
mod usage;
#[cfg(feature = "desktop")]
mod window;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{ArgAction, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::printing::note;

/// Talk with your computer: it listens, understands and answers on your own machine.
///
/// The inference engine is Repartee's own; it runs published weights, which `repartee models fetch` brings.
#[cfg_attr(feature = "desktop", doc = " Without a command it opens its window.")]
/// Nothing leaves the machine: the network is used only to download models, and only when you ask for it.
#[derive(Debug, Parser)]
#[command(version, verbatim_doc_comment, after_help = AFTER_HELP)]
#[cfg_attr(not(feature = "desktop"), command(arg_required_else_help = true))]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Say more about what happens, on stderr; twice for more, three times for everything.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
}

const AFTER_HELP: &str = "\
Environment:
  REPARTEE_CACHE      folder for model files, in place of the system's folder for caches
  REPARTEE_CATALOGUE  catalogue of models to use in place of the built-in one
  REPARTEE_HOME       folder for settings, conversations and logs, in place of the system's folders
  RUST_LOG            what is logged, e.g. `repartee_engine=debug`; `--verbose` goes before it

Exit status:
  0 success   1 failure, the reason is on stderr   2 wrong usage";

#[derive(Debug, Subcommand)]
enum Command {
    /// Talk, or have recorded questions answered.
    Talk(Box<commands::talk::TalkArgs>),
    /// List microphones, speakers and what computes.
    Devices,
    /// Speak a text.
    Say(commands::say::SayArgs),
    /// List, fetch, import, check and remove model files.
    #[command(subcommand)]
    Models(commands::models::ModelsCommand),
    /// Show, convert and compare latency reports.
    #[command(subcommand)]
    Report(commands::report::ReportCommand),
    /// Compare each model with its stored reference.
    Check(commands::check::CheckArgs),
    /// Time the models and their ops on this machine.
    Bench(commands::bench::BenchArgs),
}

impl Command {
    fn run(self) -> Result<()> {
        match self {
            Self::Talk(args) => commands::talk::run(*args),
            Self::Devices => commands::devices::run(),
            Self::Say(args) => commands::say::run(args),
            Self::Models(command) => commands::models::run(command),
            Self::Report(command) => commands::report::run(command),
            Self::Check(args) => commands::check::run(args),
            Self::Bench(args) => commands::bench::run(args),
        }
    }
}

fn main() -> ExitCode {
    let Cli { command, verbose } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let done = match command {
        Some(command) => {
            start_log(verbose);
            command.run()
        }
        None => open_window(verbose),
    };
    let printed = printing::finish().context("cannot write to standard output");
    match done.and(printed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_reader_gone(&error) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

/// Says what is wrong with the command line; or prints the help that it asks for.
fn refuse(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    match error.kind() {
        // Nothing in these is the caller's text.
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
        _ => note!("{}", terminal::brief(error.render().to_string().trim_end())),
    }
    ExitCode::from(2)
}

/// Opens the window; what happens is logged to files, for nobody may be looking at stderr.
#[cfg(feature = "desktop")]
fn open_window(verbose: u8) -> Result<()> {
    let home = saved::Home::open()?;
    match logging::to_files(home.logs(), filter(verbose)) {
        Ok(()) => {}
        // A log that can't be kept is no reason not to talk.
        Err(error) => {
            start_log(verbose);
            tracing::warn!("{error:#}");
        }
    }
    window::run(home)
}

/// This build has none.
#[cfg(not(feature = "desktop"))]
fn open_window(_: u8) -> Result<()> {
    Err(usage::WrongUsage::error("this build has no window; `repartee --help` lists its commands"))
}

/// Says what went wrong and why; traces are for panics.
fn report(error: &anyhow::Error) -> ExitCode {
    note!("error: {}", terminal::brief(&message(error)));
    if is_wrong_usage(error) { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// The error and its causes, each said once: some errors of libraries hold their cause's words already.
fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text += if text.is_empty() { "" } else { ": " };
            text += &cause;
        }
    }
    text
}

/// Whether the command line is at fault, be it a name that nothing has.
fn is_wrong_usage(error: &anyhow::Error) -> bool {
    error.is::<usage::WrongUsage>()
        || matches!(error.downcast_ref(), Some(repartee_models::Error::UnknownModel { .. }))
}

/// Sends the log to stderr.
fn start_log(verbose: u8) {
    tracing_subscriber::fmt()
        .fmt_fields(terminal::log_fields())
        .with_env_filter(filter(verbose))
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        // Where the log can't be written, that can't be said either.
        .log_internal_errors(false)
        .init();
}

/// `RUST_LOG` counts unless the command line says otherwise.
fn filter(verbose: u8) -> EnvFilter {
    match verbose {
        0 => match std::env::var(EnvFilter::DEFAULT_ENV).map(EnvFilter::try_new) {
            Ok(Ok(filter)) => filter,
            Ok(Err(error)) => {
                note!("warning: {} is not used: {error}", EnvFilter::DEFAULT_ENV);
                EnvFilter::new(directives(0))
            }
            Err(_) => EnvFilter::new(directives(0)),
        },
        verbose => EnvFilter::new(directives(verbose)),
    }
}

/// What is logged when `--verbose` was given so many times: of Repartee's crates first, of all others last.
fn directives(verbose: u8) -> &'static str {
    match verbose {
        0 => "warn",
        1 => "warn,repartee=info",
        2 => "warn,repartee=debug",
        _ => "info,repartee=trace",
    }
}

/// Whether the failure is only that nobody reads the output any more, where that is no signal.
fn is_reader_gone(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
        // Only a parse shows whether each option's parser gives the field's type.
        for words in [
            ["repartee", "talk", "--input=a.wav"],
            ["repartee", "bench", "--repeats=3"],
            ["repartee", "say", "Hi."],
        ] {
            assert!(Cli::try_parse_from(words).is_ok(), "{words:?}");
        }
    }

    #[test]
    fn verbose_counts_before_and_behind_the_subcommand() {
        for words in [["repartee", "-vv", "models", "list"], ["repartee", "models", "list", "-vv"]] {
            assert_eq!(Cli::try_parse_from(words).unwrap().verbose, 2);
        }
    }

    #[test]
    fn causes_are_said_once() {
        let cause = io::Error::from(io::ErrorKind::NotFound);
        let source = repartee_audio::AudioError::Read { path: "a.wav".into(), source: cause };
        let error = Err::<(), _>(source).context("the question").unwrap_err();
        assert_eq!(message(&error), "the question: cannot read a.wav: entity not found");
        assert!(!is_wrong_usage(&error));
        assert!(is_wrong_usage(&usage::WrongUsage::error("twice").context("talk")));
    }

    #[test]
    fn only_a_missing_reader_is_no_failure() {
        let error = |kind: io::ErrorKind| {
            Err::<(), _>(io::Error::from(kind)).context("writing the table").unwrap_err()
        };
        assert!(is_reader_gone(&error(io::ErrorKind::BrokenPipe)));
        assert!(!is_reader_gone(&error(io::ErrorKind::NotFound)));
        assert!(!is_reader_gone(&anyhow::anyhow!("broken pipe")));
    }
}
