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
    let end = end(chars, from + name.len())?;
    let effect = match (name.as_str(), closes) {
        ("br" | "p" | "div" | "li" | "ul" | "ol" | "tr" | "td" | "th" | "hr" | "summary" | "details", _)
        | ("h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "blockquote" | "dt" | "dd" | "section" | "article", _) => {
            Effect::Break
        }
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

#[rustfmt::skip]
const INLINE: &[&str] = &[
    "a", "abbr", "audio", "b", "big", "body", "button", "center", "cite", "code", "em", "figcaption", "figure", "font",
    "footer", "form", "head", "header", "html", "i", "iframe", "img", "input", "ins", "kbd", "label", "link", "main", "mark",
    "meta", "nav", "option", "picture", "pre", "q", "samp", "script", "select", "small", "source", "span", "strong", "style",
    "sub", "sup", "svg", "table", "tbody", "textarea", "tfoot", "thead", "title", "tt", "u", "var", "video", "wbr", "math",
    // Speech Synthesis Markup Language.
    "break", "desc", "emphasis", "lang", "phoneme", "prosody", "say-as", "speak", "voice",
];

/// The index after the `>` of a tag whose name ends at `at`, if what stands between can be attributes.
fn end(chars: &[char], at: usize) -> Option<usize> {
    const MAX_ATTRIBUTES: usize = 400;
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
