//! The log of the window: in files, a week of them.

use std::path::Path;

use anyhow::{Context, Result};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::EnvFilter;

use crate::terminal;

/// Days that are kept.
const DAYS: usize = 7;

/// Sends the log to files in `folder`, a new one each day. It holds no word of a conversation: what is said stays in the
/// conversation's own file.
///
/// # Errors
/// The folder can't be written.
pub(crate) fn to_files(folder: &Path, filter: EnvFilter) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let appender = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("repartee")
        .filename_suffix("log")
        .max_log_files(DAYS)
        .build(folder)
        .with_context(|| format!("cannot log to {}", folder.display()))?;
    tracing_subscriber::fmt()
        .fmt_fields(terminal::log_fields())
        .with_env_filter(filter)
        .with_writer(appender)
        .with_ansi(false)
        .init();
    Ok(())
}
