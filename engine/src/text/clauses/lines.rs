//! Lines of markdown: the marks at a line's start, and the blocks that are not prose.

use super::ClauseKind;

/// The label of a list item, as far as it is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::text) enum Label {
    Bullet,
    /// `12.` or `12)`
    Number(u16),
    /// `b.` or `b)`
    Letter(char),
}

/// The marks found at the start of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::text) struct Marks {
    pub(in crate::text) heading: bool,
    pub(in crate::text) item: Option<Label>,
    /// Bytes to skip to reach the text.
    pub(in crate::text) len: usize,
}

/// Reads quote marks, a heading mark or an item label with its tick box, from the start of a line.
pub(in crate::text) fn marks(line: &str) -> Marks {
    let mut found = Marks::default();
    let mut rest = skip_quotes(line);
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    if (1..=6).contains(&hashes) && rest[hashes..].starts_with([' ', '\t']) {
        found.heading = true;
        rest = rest[hashes..].trim_start();
    } else if let Some((label, len)) = label(rest) {
        found.item = Some(label);
        rest = rest[len..].trim_start();
        for tick in ["[ ]", "[x]", "[X]"] {
            if let Some(after) = rest.strip_prefix(tick) {
                rest = after.trim_start();
                break;
            }
        }
    }
    found.len = line.len() - rest.len();
    found
}

fn skip_quotes(line: &str) -> &str {
    let trimmed = line.trim_start();
    let rest = trimmed.trim_start_matches(['>', ' ', '\t']);
    // ">5" and ">= 5" are comparisons, "> text" a quotation.
    let compared = rest.starts_with(|c: char| c.is_ascii_digit()) && !trimmed.contains("> ");
    if trimmed.starts_with('>') && (compared || trimmed.starts_with(">=")) {
        return trimmed;
    }
    rest
}

fn label(rest: &str) -> Option<(Label, usize)> {
    let spaced = |len: usize| rest[len..].starts_with([' ', '\t']);
    let first = rest.chars().next()?;
    if "-*+•◦▪‣●○–·".contains(first) {
        let len = first.len_utf8();
        return spaced(len).then_some((Label::Bullet, len));
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let close = |len: usize| rest[len..].starts_with(['.', ')']) && spaced(len + 1);
    if (1..=3).contains(&digits) && close(digits) {
        return Some((Label::Number(rest[..digits].parse().ok()?), digits + 1));
    }
    let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    if let Some(n) = rest.get(..letters).and_then(roman).filter(|_| close(letters)) {
        return Some((Label::Number(n), letters + 1));
    }
    // "ii. second"; of single letters "i" is one as well, the others are letters.
    let small = rest.get(..letters).filter(|l| l.bytes().all(|b| b.is_ascii_lowercase()));
    if let Some(n) = small.and_then(|l| roman(&l.to_uppercase())).filter(|_| close(letters)) {
        return Some((Label::Number(n), letters + 1));
    }
    // "I." and "A." can be words or initials; a bracket makes it a label, or a small letter: "a) first", "b. second".
    // "p. 12" and "c. 1450" are abbreviations.
    let listed = first.is_ascii_lowercase()
        && rest[1..].starts_with('.')
        && !rest[2..].trim_start().starts_with(|c: char| c.is_ascii_digit());
    (first.is_ascii_alphabetic() && (rest[1..].starts_with(')') || listed) && spaced(2))
        .then_some((Label::Letter(first), 2))
}

/// The value of a label in capital Roman numerals up to XXXIX. Of single letters only "I" is one: the others are initials.
pub(super) fn roman(label: &str) -> Option<u16> {
    const TENS: [&str; 4] = ["", "X", "XX", "XXX"];
    const ONES: [&str; 10] = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"];
    let tens = label.bytes().take_while(|b| *b == b'X').count();
    let ones = ONES.iter().position(|ones| label.get(tens..) == Some(ones))?;
    let known = tens < TENS.len() && (label.len() > 1 || label == "I");
    known.then(|| (10 * tens + ones) as u16)
}

/// What kind of block a line opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opener {
    /// Too few characters to tell.
    Unknown,
    Prose,
    Fence,
    /// A row of a table, if the line turns out to have a second bar.
    Bar,
    Math,
}

/// A LaTeX environment that is a block of its own: its name, what closes it, and what it is.
pub(super) type Environment = (&'static str, &'static str, ClauseKind);

#[rustfmt::skip]
const ENVIRONMENTS: &[Environment] = &[
    ("equation", "\\end{equation}", ClauseKind::Math), ("equation*", "\\end{equation*}", ClauseKind::Math),
    ("align", "\\end{align}", ClauseKind::Math), ("align*", "\\end{align*}", ClauseKind::Math),
    ("aligned", "\\end{aligned}", ClauseKind::Math), ("gather", "\\end{gather}", ClauseKind::Math),
    ("gather*", "\\end{gather*}", ClauseKind::Math), ("multline", "\\end{multline}", ClauseKind::Math),
    ("multline*", "\\end{multline*}", ClauseKind::Math), ("eqnarray", "\\end{eqnarray}", ClauseKind::Math),
    ("eqnarray*", "\\end{eqnarray*}", ClauseKind::Math), ("displaymath", "\\end{displaymath}", ClauseKind::Math),
    ("math", "\\end{math}", ClauseKind::Math), ("split", "\\end{split}", ClauseKind::Math),
    ("array", "\\end{array}", ClauseKind::Math), ("matrix", "\\end{matrix}", ClauseKind::Math),
    ("pmatrix", "\\end{pmatrix}", ClauseKind::Math), ("bmatrix", "\\end{bmatrix}", ClauseKind::Math),
    ("vmatrix", "\\end{vmatrix}", ClauseKind::Math), ("cases", "\\end{cases}", ClauseKind::Math),
    ("tabular", "\\end{tabular}", ClauseKind::Table), ("table", "\\end{table}", ClauseKind::Table),
    ("verbatim", "\\end{verbatim}", ClauseKind::Code), ("lstlisting", "\\end{lstlisting}", ClauseKind::Code),
    ("minted", "\\end{minted}", ClauseKind::Code), ("tikzpicture", "\\end{tikzpicture}", ClauseKind::Code),
];

const BEGIN: &str = "\\begin{";
const LONGEST_NAME: usize = 16;

/// The environment that `text` opens and ends with the name of; how many characters before its end that starts.
pub(super) fn environment(text: &[char]) -> Option<(Environment, usize)> {
    let name = text.strip_suffix(&['}'])?;
    let start = name[name.len().saturating_sub(LONGEST_NAME)..].iter().rev().position(|c| *c == '{')?;
    let (head, name) = name.split_at(name.len() - start);
    let begins =
        head.len() >= BEGIN.len() && head[head.len() - BEGIN.len()..].iter().copied().eq(BEGIN.chars());
    let name: String = name.iter().collect();
    let known = ENVIRONMENTS.iter().find(|(known, _, _)| begins && *known == name)?;
    Some((*known, BEGIN.len() + name.len() + 1))
}

/// Whether `start` can still become the opening of an environment.
fn may_open_environment(start: &[char]) -> bool {
    let text: String = start.iter().collect();
    match text.strip_prefix(BEGIN) {
        Some(name) => ENVIRONMENTS.iter().any(|(known, _, _)| known.starts_with(name)),
        None => BEGIN.starts_with(&text),
    }
}

/// What closes the displayed formula or environment that a line opens, and what it is.
pub(super) fn closing(line: &[char]) -> (&'static str, ClauseKind) {
    match (environment(line), line.last()) {
        (Some(((_, close, kind), _)), _) => (close, kind),
        (None, Some('$')) => ("$$", ClauseKind::Math),
        (None, _) => ("\\]", ClauseKind::Math),
    }
}

/// Tells from the first characters of a line (white space before it removed) what it opens.
pub(super) fn opener(start: &[char]) -> Opener {
    let mut rest = start;
    while let ['>' | ' ' | '\t', tail @ ..] = rest {
        rest = tail;
    }
    match rest {
        // Nested quotations are a few deep; a flood of marks must not be kept for long.
        [] if start.len() > 32 => Opener::Prose,
        [] | ['`'] | ['`', '`'] | ['~'] | ['~', '~'] | ['$'] | ['\\'] => Opener::Unknown,
        ['`', '`', '`', ..] | ['~', '~', '~', ..] => Opener::Fence,
        ['$', '$', ..] | ['\\', '[', ..] => Opener::Math,
        ['|', ..] => Opener::Bar,
        ['\\', ..] if environment(rest).is_some() => Opener::Math,
        ['\\', ..] if rest.len() <= BEGIN.len() + LONGEST_NAME && may_open_environment(rest) => {
            Opener::Unknown
        }
        _ => Opener::Prose,
    }
}

/// Whether a line opens a fence: the fence's character and length.
pub(super) fn fence(line: &[char]) -> Option<(char, usize)> {
    let start = line.iter().position(|c| !matches!(c, '>' | ' ' | '\t'))?;
    let mark = line[start];
    let len = line[start..].iter().take_while(|&&c| c == mark).count();
    // Inline code may start with three marks as well, but closes on its line.
    let info = &line[start + len..];
    (len >= 3 && (mark == '~' || mark == '`' && !info.contains(&'`'))).then_some((mark, len))
}

/// Whether a line that starts with a bar is a row of a table.
pub(super) fn is_row(line: &[char]) -> bool {
    line.iter().filter(|&&c| c == '|').count() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_at_line_starts() {
        let of = |line: &str| {
            let m = marks(line);
            (m.heading, m.item, line[m.len..].to_string())
        };
        assert_eq!(of("## Plan"), (true, None, "Plan".into()));
        assert_eq!(of("#4 is"), (false, None, "#4 is".into()));
        assert_eq!(of("- [x] Done"), (false, Some(Label::Bullet), "Done".into()));
        assert_eq!(of("> > 12) Twelve"), (false, Some(Label::Number(12)), "Twelve".into()));
        assert_eq!(of("b) Rome"), (false, Some(Label::Letter('b')), "Rome".into()));
        assert_eq!(of("b. Rome"), (false, Some(Label::Letter('b')), "Rome".into()));
        assert_eq!(of("iv. Rome"), (false, Some(Label::Number(4)), "Rome".into()));
        assert_eq!(of("p. 12"), (false, None, "p. 12".into()));
        assert_eq!(of("B. Rome"), (false, None, "B. Rome".into()));
        assert_eq!(of(">= 5 items"), (false, None, ">= 5 items".into()));
        assert_eq!(of("-5 degrees"), (false, None, "-5 degrees".into()));
        assert_eq!(of("1980. It"), (false, None, "1980. It".into()));
        assert_eq!(of(">5 items"), (false, None, ">5 items".into()));
    }

    #[test]
    fn openers_wait_for_enough() {
        let of = |line: &str| opener(&line.chars().collect::<Vec<_>>());
        assert_eq!(of("``"), Opener::Unknown);
        assert_eq!(of("`a"), Opener::Prose);
        assert_eq!(of("> ```py"), Opener::Fence);
        assert_eq!(of("$5"), Opener::Prose);
        assert_eq!(of("\\["), Opener::Math);
        assert_eq!(of("\\begin{ali"), Opener::Unknown);
        assert_eq!(of("\\begin{align*"), Opener::Unknown);
        assert_eq!(of("\\begin{align*}"), Opener::Math);
        assert_eq!(of("\\begin{item"), Opener::Prose);
        assert_eq!(of("\\beta"), Opener::Prose);
    }
}
