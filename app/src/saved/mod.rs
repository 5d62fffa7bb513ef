//! What lasts: settings and conversations, in the user's own folders. Nothing of it leaves the machine.
//!
//! | file | what it holds |
//! |---|---|
//! | `settings.toml` in the folder for configuration | what differs from the program's defaults, and how the window looks |
//! | `conversations/TIME.jsonl` in the folder for data | an exchange a line, written when it is over |
//! | `running.lock` in the folder for state | locked while a program talks, so that a second one does not |
//!
//! With `REPARTEE_HOME` all are in that folder. A file that can't be read is kept beside under another name and said to
//! the user: it may be one of a later version, or worth a look.

mod clerk;
mod conversation;
mod instance;
mod settings;

use std::fs::OpenOptions;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub(crate) use clerk::{Clerk, Kept, News};
pub(crate) use conversation::{Conversation, Earlier};
pub(crate) use instance::{Claim, Front, Instance, taken};
pub(crate) use settings::{Look, Saved};

/// Folder for settings and conversations, in place of the system's.
pub(crate) const HOME_ENV: &str = "REPARTEE_HOME";

/// Where things are kept.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    settings: PathBuf,
    conversations: PathBuf,
    logs: PathBuf,
    lock: PathBuf,
}

/// The name of the locked file.
const LOCK: &str = "running.lock";

impl Home {
    /// The folder that [`HOME_ENV`] names, or the system's. Nothing is created yet.
    ///
    /// # Errors
    /// The system names no folders.
    pub(crate) fn open() -> Result<Self> {
        match std::env::var_os(HOME_ENV).filter(|path| !path.is_empty()) {
            Some(path) => Ok(Self::at(Path::new(&path))),
            None => {
                let folders = directories::ProjectDirs::from("", "", "repartee")
                    .with_context(|| format!("found no folder for settings: set {HOME_ENV} to one"))?;
                let data = folders.data_local_dir();
                let state = folders.state_dir().unwrap_or(data);
                Ok(Self {
                    settings: folders.config_dir().join("settings.toml"),
                    conversations: data.join("conversations"),
                    logs: state.join("logs"),
                    lock: state.join(LOCK),
                })
            }
        }
    }

    /// All in one folder.
    pub(crate) fn at(folder: &Path) -> Self {
        Self {
            settings: folder.join("settings.toml"),
            conversations: folder.join("conversations"),
            logs: folder.join("logs"),
            lock: folder.join(LOCK),
        }
    }

    /// The folder for log files.
    pub(crate) fn logs(&self) -> &Path {
        &self.logs
    }
}

/// Puts a file that can't be used out of the way, without losing it or one that was put there before, and says where it
/// is.
fn set_aside(path: &Path, reason: &dyn std::fmt::Display) -> String {
    match moved_aside(path) {
        Ok(aside) => format!(
            "{} can't be used ({reason}); it is kept as {}, and the defaults are in force",
            path.display(),
            aside.display()
        ),
        Err(error) => format!(
            "{} can't be used ({reason}) and not be moved either ({error}): the defaults are in force",
            path.display()
        ),
    }
}

/// More than anybody has.
const MOST_ASIDE: u32 = 1_000;

fn moved_aside(path: &Path) -> std::io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for number in 1..MOST_ASIDE {
        let end = if number == 1 { String::new() } else { format!(".{number}") };
        let aside = path.with_file_name(format!("{name}.bak{end}"));
        // Takes the name before anything is put there.
        match OpenOptions::new().write(true).create_new(true).open(&aside) {
            Ok(_) => {
                return match std::fs::rename(path, &aside) {
                    Ok(()) => Ok(aside),
                    Err(error) => {
                        let _ = std::fs::remove_file(&aside);
                        Err(error)
                    }
                };
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::other("there are too many copies already"))
}
