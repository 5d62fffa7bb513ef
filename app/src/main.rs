//! Repartee, a native desktop voice agent.

mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Talk with your computer: speech recognition, replies and speech on your own machine.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List, fetch, import, check and remove model files.
    #[command(subcommand)]
    Models(commands::models::ModelsCommand),
    /// Show, convert and compare latency reports.
    #[command(subcommand)]
    Report(commands::report::ReportCommand),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Models(command) => commands::models::run(command),
        Command::Report(command) => commands::report::run(command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

/// Says what went wrong and why; traces are for panics.
#[expect(clippy::print_stderr, reason = "this is where the commands' errors end")]
fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}
