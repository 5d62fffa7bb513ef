//! The registries' own clients, run as the user would run them: his mirrors, proxies and certificates hold.
//!
//! Both commands only download; nothing of a package is run: `pip download` takes wheels only (a source
//! package would run its set-up), `npm pack` packs what the registry has, with scripts off.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{FetchOptions, Unreachable};
use crate::{CancelToken, Error, Package, Registry, Result};

/// How often a running client is looked at.
const CHILD_POLL: Duration = Duration::from_millis(50);
/// As much of what a client wrote is shown when it fails.
const SHOWN_BYTES: usize = 1500;

/// Downloads `package` into the empty folder `folder` and returns the archive's path.
pub(super) fn download(
    package: &Package,
    folder: &Path,
    options: &FetchOptions,
    unreachable: &Unreachable,
    cancel: &CancelToken,
) -> Result<PathBuf> {
    let registry = package.registry.to_string();
    unreachable.check(&registry)?;
    let mut command = match package.registry {
        Registry::Pypi => pip(package, folder, options)?,
        Registry::Npm => npm(package, options)?,
    };
    let log = folder.join("client.log");
    run(command.current_dir(folder), &log, options.client_timeout, cancel).map_err(|error| match error {
        Error::ClientFailed { reason, .. } if is_offline(&reason) => {
            unreachable.remember(&registry, last_line(&reason))
        }
        error => error,
    })?;
    let extension = match package.registry {
        Registry::Pypi => "whl",
        Registry::Npm => "tgz",
    };
    let entries = fs::read_dir(folder).map_err(|e| Error::reading("list", folder, e))?;
    let mut archives = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension() == Some(OsStr::new(extension)));
    match (archives.next(), archives.next()) {
        (Some(archive), None) => Ok(archive),
        (first, _) => Err(Error::Archive {
            package: package.to_string(),
            reason: format!(
                "the client left {} .{extension} file in its folder",
                if first.is_some() { "more than one" } else { "no" }
            ),
        }),
    }
}

fn pip(package: &Package, folder: &Path, options: &FetchOptions) -> Result<Command> {
    const INSTALL: &str = "install Python 3 with pip (Debian and Ubuntu: `apt install python3-pip`; Fedora: `dnf install python3-pip`; \
                           others: python.org)";
    let missing = || Error::ClientMissing { client: "python3 -m pip", install: INSTALL };
    // `python3` is the name on Unix, `python` on Windows; either may lack pip, and pip may be there under its
    // own name.
    let mut candidates =
        ["python3", "python"].into_iter().filter_map(|name| find(name, options)).map(|python| {
            let mut command = Command::new(python);
            command.args(["-m", "pip"]);
            command
        });
    let works = |command: &mut Command| {
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let mut command = candidates
        .find_map(|mut command| {
            let program = command.get_program().to_owned();
            works(&mut command).then(|| {
                let mut command = Command::new(program);
                command.args(["-m", "pip"]);
                command
            })
        })
        .or_else(|| ["pip3", "pip"].into_iter().find_map(|name| find(name, options)).map(Command::new))
        .ok_or_else(missing)?;
    command.args([
        "download",
        "--only-binary",
        ":all:",
        "--no-deps",
        "--no-input",
        "--disable-pip-version-check",
    ]);
    command.args(["--progress-bar", "off", "--retries", "2", "-d"]).arg(folder);
    command.arg(format!("{}=={}", package.name, package.version));
    Ok(command)
}

fn npm(package: &Package, options: &FetchOptions) -> Result<Command> {
    const INSTALL: &str = "install Node.js with npm (Debian and Ubuntu: `apt install npm`; Fedora: `dnf install nodejs-npm`; others: nodejs.org)";
    let name = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let mut command =
        Command::new(find(name, options).ok_or(Error::ClientMissing { client: "npm", install: INSTALL })?);
    command
        .args(["pack", "--silent", "--ignore-scripts"])
        .arg(format!("{}@{}", package.name, package.version));
    Ok(command)
}

/// The program `name` in the search path.
fn find(name: &str, options: &FetchOptions) -> Option<PathBuf> {
    let path = options.search_path.clone().or_else(|| std::env::var_os("PATH"))?;
    let file = if cfg!(windows) && !name.contains('.') { format!("{name}.exe") } else { name.into() };
    std::env::split_paths(&path).map(|folder| folder.join(&file)).find(|program| program.is_file())
}

/// Runs the command to its end, with what it writes in `log`.
fn run(command: &mut Command, log: &Path, timeout: Duration, cancel: &CancelToken) -> Result<()> {
    let shown = shown(command);
    let output = File::create(log).map_err(|e| Error::writing("create", log, e))?;
    let errors = output.try_clone().map_err(|e| Error::writing("open", log, e))?;
    let fail = |reason: String| Error::ClientFailed { command: shown.clone(), reason };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .map_err(|e| fail(e.to_string()))?;
    let started = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|e| fail(e.to_string()))? {
            Some(status) => break status,
            None => {
                let is_cancelled = cancel.wait(CHILD_POLL);
                if is_cancelled || started.elapsed() > timeout {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(match is_cancelled {
                        true => Error::Interrupted { what: shown },
                        false => Error::Stalled { what: format!("`{shown}`"), secs: timeout.as_secs() },
                    });
                }
            }
        }
    };
    if status.success() {
        return Ok(());
    }
    let written = fs::read(log).unwrap_or_default();
    let end =
        String::from_utf8_lossy(&written[written.len().saturating_sub(SHOWN_BYTES)..]).trim().to_owned();
    if end.to_ascii_lowercase().contains("no space left on device") {
        return Err(Error::DiskFull {
            path: log.into(),
            needed_bytes: None,
            free_bytes: log.parent().and_then(crate::disk::free_bytes),
        });
    }
    Err(fail(if end.is_empty() { status.to_string() } else { end }))
}

/// The command line for messages, the program by its name only.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program()).to_owned();
    let words: Vec<OsString> =
        std::iter::once(program).chain(command.get_args().map(OsStr::to_owned)).collect();
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Whether a client's words mean that it could not reach its registry.
fn is_offline(reason: &str) -> bool {
    const SIGNS: [&str; 12] = [
        "failed to establish a new connection",
        "name or service not known",
        "temporary failure in name resolution",
        "nodename nor servname",
        "getaddrinfo failed",
        "network is unreachable",
        "connection refused",
        "connecttimeouterror",
        "enotfound",
        "eai_again",
        "econnrefused",
        "etimedout",
    ];
    let reason = reason.to_ascii_lowercase();
    SIGNS.iter().any(|sign| reason.contains(sign))
}

fn last_line(text: &str) -> String {
    text.lines().next_back().unwrap_or_default().trim().to_owned()
}
