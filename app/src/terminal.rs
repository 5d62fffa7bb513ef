//! What people read in a terminal. Words of models, of recordings, files and their names are text there: what would
//! steer the terminal (recolour it, set its title, turn lines round) is shown instead, as `\u{1b}`.

use std::borrow::Cow;
use std::fmt::{self, Debug, Display, Write};

use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{self, Writer};

/// Characters of an error that are shown, and of a value in the log.
const MOST_CHARS: usize = 2_000;

/// Of these the last ones: what to do stands at the end.
const END_CHARS: usize = 500;

/// Displays something so that no character of it steers the terminal; lines and tabs stay.
pub(crate) struct Visible<T>(pub(crate) T);

impl<T: Display> Display for Visible<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaper(f), "{}", self.0)
    }
}

struct Escaper<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaper<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut done = 0;
        for (at, steering) in text.match_indices(steers) {
            write!(self.0, "{}{}", &text[done..at], steering.escape_unicode())?;
            done = at + steering.len();
        }
        self.0.write_str(&text[done..])
    }
}

/// Whether a terminal does something at this character: controls of both sets, DEL, and those that change the direction
/// of what follows.
fn steers(c: char) -> bool {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// The text of an error, without its middle where it is too long to be read: it may quote a file.
pub(crate) fn brief(text: &str) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= MOST_CHARS {
        return text.into();
    }
    let at = |nth| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
    let (start, end) = (&text[..at(MOST_CHARS - END_CHARS)], &text[at(count - END_CHARS)..]);
    format!("{start}… ({} characters left out) …{end}", count - MOST_CHARS).into()
}

/// How the log shows what it is told: brief, and as text.
pub(crate) fn log_fields() -> impl for<'w> FormatFields<'w> + Send + Sync + 'static {
    format::debug_fn(write_field).delimited(" ")
}

fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    let value = format!("{value:?}");
    let value = Visible(brief(&value));
    match field.name() {
        "message" => write!(writer, "{value}"),
        // Where a library's line stands in its source.
        name if name.starts_with("log.") => Ok(()),
        name => write!(writer, "{name}={value}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        let shown = |text: &str| Visible(text).to_string();
        assert_eq!(shown("\x1b]0;title\x07red\x1b[31m"), r"\u{1b}]0;title\u{7}red\u{1b}[31m");
        assert_eq!(shown("a\rb\u{9b}2J\x7f\0"), r"a\u{d}b\u{9b}2J\u{7f}\u{0}");
        assert_eq!(shown("\u{202e}txt\u{2066}\u{2069}"), r"\u{202e}txt\u{2066}\u{2069}");
        for c in (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| steers(*c)) {
            assert_eq!(shown(&c.to_string()), c.escape_unicode().to_string());
        }
    }

    #[test]
    fn text_stays_text() {
        for text in ["", "two\nlines\tand more", "naïve 東京 עברית \u{200f}👩‍👩‍👧 …", r"\u{1b}"]
        {
            assert_eq!(Visible(text).to_string(), text);
        }
        // Also in pieces, as `format_args!` gives them.
        let pieces = Visible(format_args!("{}|{:>4}", "é\x1b", "x")).to_string();
        assert_eq!(pieces, "é\\u{1b}|   x");
    }

    #[test]
    fn a_long_error_keeps_both_ends() {
        let fits = "é".repeat(MOST_CHARS);
        assert_eq!(brief(&fits), fits);
        let long = format!("cannot read it: {} Fetch it again.", "é".repeat(10_000));
        let cut = brief(&long);
        assert!(cut.starts_with("cannot read it: é") && cut.ends_with("é Fetch it again."));
        let left_out = long.chars().count() - MOST_CHARS;
        assert!(cut.contains(&format!("é… ({left_out} characters left out) …é")), "{cut}");
        assert!(cut.chars().count() < MOST_CHARS + 50);
    }

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_log_shows_text_too() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .fmt_fields(log_fields())
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let _span = tracing::error_span!("turn", model = %"\u{202e}m").entered();
            tracing::error!(error = %"bad \x1b[2J", bytes = 3, "reading \x1b]0;x\x07 failed");
        });
        let text = String::from_utf8(log.0.lock().expect("no panic").clone()).expect("text");
        assert!(text.contains(r"reading \u{1b}]0;x\u{7} failed error=bad \u{1b}[2J bytes=3"), "{text}");
        assert!(text.contains(r"turn{model=\u{202e}m}") && !text.contains('\x1b'), "{text}");
    }
}
