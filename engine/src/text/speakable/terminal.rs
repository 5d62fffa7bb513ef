//! Control sequences of terminals (ECMA-48), which colour text and are never said.

use std::borrow::Cow;

/// The text without its control sequences: as they are sent (ESC), as they are written in code (`\x1b[31m`, `\033[0m`),
/// and the bare `[0m` that is left where something swallowed the escape character.
pub(super) fn without_sequences(text: &str) -> Cow<'_, str> {
    if !text.contains(['\u{1b}', '\u{9b}', '\\', '[']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let (mut kept, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        match sequence(rest) {
            Some(len) => {
                out.push_str(&text[kept..at]);
                at += len;
                kept = at;
            }
            None => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// How long the sequence is that `rest` starts with.
fn sequence(rest: &str) -> Option<usize> {
    if let Some(body) = rest.strip_prefix('\u{9b}') {
        return Some(rest.len() - body.len() + parameters(body).unwrap_or(0));
    }
    if let Some(body) = rest.strip_prefix('[') {
        // Only what sets colours is known without its escape character, and only with a number.
        let len = parameters(body).filter(|len| *len > 1 && body[..*len].ends_with('m'))?;
        return Some(1 + len);
    }
    let written = ["\\x1b", "\\x1B", "\\u001b", "\\u001B", "\\033", "\\e"];
    let (start, real) = match rest.strip_prefix('\u{1b}') {
        Some(_) => (1, true),
        None => (written.iter().find(|w| rest.starts_with(**w))?.len(), false),
    };
    let body = &rest[start..];
    if let Some(body) = body.strip_prefix('[') {
        return match parameters(body) {
            Some(len) => Some(start + 1 + len),
            None => real.then_some(start + 1),
        };
    }
    if !real {
        return None;
    }
    // A title or link: up to BEL or the string terminator, on its line.
    if body.starts_with([']', 'P', '^', '_']) {
        const LONGEST: usize = 500;
        let line = body.find('\n').unwrap_or(body.len());
        let end = [("\u{7}", 1), ("\u{1b}\\", 2)]
            .into_iter()
            .filter_map(|(mark, len)| Some(body[..line].find(mark)? + len))
            .min();
        return Some(start + end.filter(|end| *end <= LONGEST).unwrap_or(1));
    }
    // ESC and one character ("\x1bM"), or ESC alone.
    let one = body.chars().next().filter(char::is_ascii_graphic);
    Some(start + one.map_or(0, char::len_utf8))
}

/// The parameters and the final character of a control sequence.
fn parameters(body: &str) -> Option<usize> {
    const LONGEST: usize = 32;
    let len = body.bytes().take(LONGEST).take_while(|b| (0x20..=0x3f).contains(b)).count();
    let digits_only = body.bytes().take(len).all(|b| b.is_ascii_digit() || b"; :?<=>!".contains(&b));
    let last = body.as_bytes().get(len).is_some_and(|b| (0x40..=0x7e).contains(b));
    (last && digits_only).then_some(len + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_vanish_and_text_stays() {
        for (text, left) in [
            ("\u{1b}[1;31mred\u{1b}[0m.", "red."),
            ("\u{1b}[38;5;208morange\u{1b}[m", "orange"),
            ("\u{1b}[2J\u{1b}[?25lclear", "clear"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]8;;https://a.example\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{9b}31mred", "red"),
            (r"\x1b[31mred\033[0m \e[1mbold\u001b[0m", "red bold"),
            ("[32mgreen[0m", "green"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("see [1] and [m] and a[12]", "see [1] and [m] and a[12]"),
            (r"\emph and \x1b", r"\emph and \x1b"),
            ("hamster", "hamster"),
        ] {
            assert_eq!(without_sequences(text), left, "{text:?}");
        }
    }
}
