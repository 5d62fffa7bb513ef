//! Printing that never costs a result: a full disk or a closed pipe behind stdout must not keep a file from being
//! written, and does not panic as `println!` would. What is printed is text, whoever wrote it: see [`Visible`].

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

use crate::terminal::Visible;

/// The first failure; nothing is printed after it.
static FAILED: OnceLock<ErrorKind> = OnceLock::new();

/// Prints a line of a command's results to stdout.
macro_rules! out {
    ($($format:tt)*) => { $crate::printing::print(format_args!($($format)*)) };
}

/// Prints a line about the work to stderr; where that can't be, nobody reads it.
macro_rules! note {
    ($($format:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "{}", $crate::terminal::Visible(format_args!($($format)*)));
    }};
}

pub(crate) use {note, out};

/// As [`out`].
pub(crate) fn print(line: Arguments<'_>) {
    if FAILED.get().is_none()
        && let Err(error) = writeln!(io::stdout(), "{}", Visible(line))
    {
        let _ = FAILED.set(error.kind());
    }
}

/// Prints a part of a line that is to be seen at once; whether it could be. It goes out as it is, for it may clear a line:
/// the caller has made the words in it [`Visible`].
#[cfg(feature = "desktop")]
pub(crate) fn part(text: &str) -> bool {
    if FAILED.get().is_none() {
        let mut stdout = io::stdout();
        if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            let _ = FAILED.set(error.kind());
        }
    }
    FAILED.get().is_none()
}

/// Ends the printing.
///
/// # Errors
/// Something could not be printed, for another reason than that nobody reads it (`repartee models list | head`).
pub(crate) fn finish() -> io::Result<()> {
    let kind = match io::stdout().flush() {
        Ok(()) => FAILED.get().copied(),
        Err(error) => Some(error.kind()),
    };
    match kind {
        None | Some(ErrorKind::BrokenPipe) => Ok(()),
        Some(kind) => Err(kind.into()),
    }
}
