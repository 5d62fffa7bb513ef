//! HTML in markdown: tags, comments and character references.

/// What a tag does to the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Formatting: the tag is dropped.
    None,
    /// A line or cell ends.
    Break,
    /// `<sup>`
    Raise,
    /// Struck text begins or ends.
    Strike(bool),
    /// Everything up to the closing mark is skipped, and this is said.
    Skip { until: &'static str, say: &'static str },
}

/// A tag or comment that starts at `chars[at]` (`<`): its effect, and the index after it.
pub(super) fn tag(chars: &[char], at: usize) -> Option<(Effect, usize)> {
    if chars[at..].starts_with(&['<', '!', '-', '-']) {
        return Some((Effect::Skip { until: "-->", say: "" }, at + 4));
    }
    let closes = chars.get(at + 1) == Some(&'/');
    let from = at + 1 + usize::from(closes);
    let name: String = chars[from..]
        .iter()
        .take(12)
        .take_while(|c| c.is_ascii_alphanumeric() || **c == '-')
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let after = from + name.len();
    let end = end(chars, after).or_else(|| unclosed(chars, &name, after))?;
    let effect = match (name.as_str(), closes) {
        (block, _) if BLOCKS.contains(&block) => Effect::Break,
        ("sup", false) => Effect::Raise,
        ("del" | "s" | "strike", _) => Effect::Strike(!closes),
        ("think", false) => Effect::Skip { until: "</think>", say: "" },
        ("script", false) => Effect::Skip { until: "</script>", say: "" },
        ("style", false) => Effect::Skip { until: "</style>", say: "" },
        ("svg", false) => Effect::Skip { until: "</svg>", say: "" },
        ("pre", false) => Effect::Skip { until: "</pre>", say: "code omitted" },
        ("table", false) => Effect::Skip { until: "</table>", say: "table omitted" },
        ("math", false) => Effect::Skip { until: "</math>", say: "formula omitted" },
        _ if INLINE.contains(&name.as_str()) => Effect::None,
        // A made-up element: "<answer>".
        _ if name.len() >= 2 && end == from + name.len() + 1 && chars[from].is_ascii_lowercase() => {
            Effect::None
        }
        _ => return None,
    };
    Some((effect, end))
}

/// Elements that end a line or cell.
#[rustfmt::skip]
const BLOCKS: &[&str] = &[
    "br", "p", "div", "li", "ul", "ol", "tr", "td", "th", "hr", "summary", "details", "h1", "h2", "h3", "h4", "h5", "h6",
    "blockquote", "dl", "dt", "dd", "section", "article",
];

/// Formatting elements.
#[rustfmt::skip]
const INLINE: &[&str] = &[
    "a", "abbr", "audio", "b", "big", "body", "button", "center", "cite", "code", "em", "figcaption", "figure", "font",
    "footer", "form", "head", "header", "html", "i", "iframe", "img", "input", "ins", "kbd", "label", "link", "main", "mark",
    "meta", "nav", "option", "picture", "pre", "q", "samp", "script", "select", "small", "source", "span", "strong", "style",
    "sub", "sup", "svg", "table", "tbody", "textarea", "tfoot", "thead", "title", "tt", "u", "var", "video", "wbr", "math",
    // Speech Synthesis Markup Language.
    "break", "desc", "emphasis", "lang", "phoneme", "prosody", "say-as", "speak", "voice",
];

/// Characters of attributes that are looked over.
const MAX_ATTRIBUTES: usize = 400;

/// The index after the `>` of a tag whose name ends at `at`, if what stands between can be attributes.
fn end(chars: &[char], at: usize) -> Option<usize> {
    let body = &chars[at..chars.len().min(at + MAX_ATTRIBUTES)];
    let len = body.iter().position(|c| matches!(c, '>' | '<'))?;
    if body[len] == '<' {
        return None;
    }
    let attributes: String = body[..len].iter().collect();
    let attributes = attributes.trim_end_matches('/');
    // "a <b and c> d" is a comparison.
    let fine = attributes.trim().is_empty() || attributes.starts_with(' ') && attributes.contains('=');
    (fine || attributes.trim() == "open").then_some(at + len + 1)
}

/// The index after a tag that lacks its `>`, cut off or forgotten: `<br`, `<p class="x`, `<a href="x" text`.
fn unclosed(chars: &[char], name: &str, at: usize) -> Option<usize> {
    // These are no English words, and a name of one letter may be a variable: "5 <b".
    const SURE: &[&str] = &["br", "hr", "div", "img", "li", "td", "th", "tr", "ul", "ol", "tbody", "thead"];
    if !BLOCKS.contains(&name) && !INLINE.contains(&name) {
        return None;
    }
    let rest = &chars[at..chars.len().min(at + MAX_ATTRIBUTES)];
    let given = attributes(rest);
    let mut end = at + given;
    if given == 0 {
        let blank = rest.iter().all(|c| c.is_whitespace());
        let alone =
            name.len() >= 2 && blank || SURE.contains(&name) && matches!(rest.first(), Some(' ' | '/'));
        alone.then_some(())?;
    }
    while chars.get(end).is_some_and(|c| matches!(c, ' ' | '/' | '>')) {
        end += 1;
        if chars[end - 1] == '>' {
            break;
        }
    }
    Some(end)
}

/// How long the attributes with a value are that `rest` starts with; a quote that is not closed takes all.
fn attributes(rest: &[char]) -> usize {
    let mut end = 0;
    loop {
        let blank = rest[end..].iter().take_while(|c| c.is_whitespace()).count();
        let from = end + blank;
        let name =
            rest[from..].iter().take_while(|c| c.is_ascii_alphanumeric() || "-_:".contains(**c)).count();
        let equals = from + name;
        if blank == 0 || name == 0 || rest.get(equals) != Some(&'=') {
            return end;
        }
        let value = &rest[equals + 1..];
        let len = match value.first() {
            Some(quote @ ('"' | '\'')) => {
                value[1..].iter().position(|c| c == quote).map_or(value.len(), |len| len + 2)
            }
            _ => value.iter().take_while(|c| !c.is_whitespace() && **c != '>').count(),
        };
        end = equals + 1 + len;
    }
}

/// A character reference that starts at `chars[at]` (`&`): its text, and the index after it.
pub(super) fn entity(chars: &[char], at: usize) -> Option<(String, usize)> {
    let name: String =
        chars[at + 1..].iter().take(10).take_while(|c| c.is_ascii_alphanumeric() || **c == '#').collect();
    let end = at + 1 + name.len();
    if chars.get(end) != Some(&';') {
        return None;
    }
    let c = match name.strip_prefix('#') {
        Some(code) => {
            let value = match code.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => code.parse(),
            };
            char::from_u32(value.ok()?)?
        }
        None => ENTITIES.iter().find(|(known, _)| *known == name)?.1,
    };
    Some((c.to_string(), end + 1))
}

#[rustfmt::skip]
const ENTITIES: &[(&str, char)] = &[
    ("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("apos", '\''), ("nbsp", '\u{A0}'), ("mdash", '—'),
    ("ndash", '–'), ("hellip", '…'), ("copy", '©'), ("reg", '®'), ("trade", '™'), ("deg", '°'), ("times", '×'),
    ("divide", '÷'), ("plusmn", '±'), ("frac12", '½'), ("frac14", '¼'), ("frac34", '¾'), ("ldquo", '“'), ("rdquo", '”'),
    ("lsquo", '‘'), ("rsquo", '’'), ("laquo", '«'), ("raquo", '»'), ("bull", '•'), ("middot", '·'), ("euro", '€'),
    ("pound", '£'), ("yen", '¥'), ("cent", '¢'), ("sect", '§'), ("para", '¶'), ("rarr", '→'), ("larr", '←'), ("harr", '↔'),
    ("le", '≤'), ("ge", '≥'), ("ne", '≠'), ("asymp", '≈'), ("infin", '∞'), ("minus", '−'), ("sup2", '²'), ("sup3", '³'),
    ("micro", 'µ'), ("alpha", 'α'), ("beta", 'β'), ("gamma", 'γ'), ("delta", 'δ'), ("lambda", 'λ'), ("mu", 'μ'), ("pi", 'π'),
    ("sigma", 'σ'), ("omega", 'ω'), ("Omega", 'Ω'), ("Delta", 'Δ'), ("eacute", 'é'), ("egrave", 'è'), ("agrave", 'à'),
    ("ccedil", 'ç'), ("ntilde", 'ñ'), ("ouml", 'ö'), ("uuml", 'ü'), ("auml", 'ä'), ("szlig", 'ß'), ("shy", '\u{AD}'),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn next(text: &str) -> Option<usize> {
        tag(&text.chars().collect::<Vec<_>>(), 0).map(|(_, next)| next)
    }

    #[test]
    fn tags_that_are_not_closed_are_tags() {
        for (text, len) in [
            ("<br", 3),
            ("<br next", 4),
            ("<br/", 4),
            ("<p class=\"x", 11),
            ("<p class=\"x\">text", 13),
            ("<a href='x' text", 12),
            ("<img src=a.png alt=\"b\" / text", 25),
            ("</div", 5),
        ] {
            assert_eq!(next(text), Some(len), "{text}");
        }
        for text in ["<b and c> d", "<y", "<b", "<p 5", "<code x", "<5", "<-"] {
            assert_eq!(next(text), None, "{text}");
        }
    }
}
