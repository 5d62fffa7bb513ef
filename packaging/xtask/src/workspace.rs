//! Where things stand: the workspace, its `cargo`, the program that it builds.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    // Cargo sets this for what it runs; the value at compile time serves a binary that is started by hand.
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&package).ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default()
}

/// Whether this runs where no person is there to ask or to look: `CI=true`.
pub(crate) fn is_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// `cargo WORDS` in the workspace; where no person would see a changed lock file, changing it is an error.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let (subcommand, rest) = words.split_at(words.len().min(1));
    command.args(subcommand);
    // `cargo fmt` looks at no dependency.
    if is_ci() && subcommand != ["fmt"] {
        command.arg("--locked");
    }
    command.args(rest).current_dir(root());
    command
}

/// Downloads the crates that this machine's builds need, with a second try: after this, no build step depends
/// on the network.
///
/// # Errors
/// If they can't be had, or the lock file is old where it may not change.
pub(crate) fn fetch_dependencies() -> Result<()> {
    let advice = "the network or the registry may be down: try again later; if the lock file is said to need an update, \
                  run `cargo fetch` and commit `Cargo.lock`";
    // Without a target, cargo would bring the crates of every platform.
    process::run_twice(&mut cargo(&["fetch", "--target", "host-tuple"]), advice)
}

/// The built program: it stands beside this one, both being built in one profile.
///
/// # Errors
/// If the path of this program can't be found out.
pub(crate) fn program() -> Result<PathBuf> {
    let this = env::current_exe().context("asking for the path of xtask")?;
    Ok(this.with_file_name(format!("repartee{}", env::consts::EXE_SUFFIX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_workspace() {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }
}
