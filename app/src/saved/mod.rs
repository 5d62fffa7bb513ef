//! What lasts: settings and conversations, in the user's own folders. Nothing of it leaves the machine.
//!
//! | file | what it holds |
//! |---|---|
//! | `settings.toml` in the folder for configuration | what differs from the program's defaults, and how the window looks |
//! | `conversations/TIME.jsonl` in the folder for data | an exchange a line, written when it is over |
//!
//! With `REPARTEE_HOME` both are in that folder. A file that can't be read is set aside under another name and said to
//! the user: it may be one of a later version, or worth a look.

mod clerk;
mod conversation;
mod settings;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub(crate) use clerk::{Clerk, News};
pub(crate) use conversation::{Conversation, Earlier};
pub(crate) use settings::{Look, Saved};

/// Folder for settings and conversations, in place of the system's.
pub(crate) const HOME_ENV: &str = "REPARTEE_HOME";

/// Where things are kept.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    settings: PathBuf,
    conversations: PathBuf,
    logs: PathBuf,
}

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
                Ok(Self {
                    settings: folders.config_dir().join("settings.toml"),
                    conversations: data.join("conversations"),
                    logs: folders.state_dir().unwrap_or(data).join("logs"),
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
        }
    }

    /// The folder for log files.
    pub(crate) fn logs(&self) -> &Path {
        &self.logs
    }
}

/// Puts a file that can't be used out of the way, without losing it, and says where it is.
fn set_aside(path: &Path, reason: &dyn std::fmt::Display) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let aside = path.with_file_name(format!("{name}.broken"));
    match std::fs::rename(path, &aside) {
        Ok(()) => format!("{} can't be used ({reason}); it is kept as {}", path.display(), aside.display()),
        Err(_) => format!("{} can't be used: {reason}", path.display()),
    }
}
