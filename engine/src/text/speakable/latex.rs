//! Formulas in LaTeX as plain text that the rules for symbols can read: `\frac{a}{b}` is "a over b".

/// Deepest nesting, and longest result in words, that is still said.
const MAX_DEPTH: usize = 8;
const MAX_WORDS: usize = 40;

/// Plain text for a formula without its delimiters; `None` if it is too much to be said.
pub(super) fn plain(formula: &str) -> Option<String> {
    if formula.len() > 1000 || formula.contains("\\begin") || formula.contains("\\\\") {
        return None;
    }
    let chars: Vec<char> = formula.chars().collect();
    let mut reader = Reader { chars: &chars, at: 0 };
    let text = reader.group(0, None)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let said = words.iter().any(|w| w.chars().any(char::is_alphanumeric));
    (said && words.len() <= MAX_WORDS).then(|| words.join(" "))
}

/// Whether text between single dollar signs is a formula and not two prices.
pub(super) fn is_formula(body: &str) -> bool {
    let first_last = (body.chars().next(), body.chars().next_back());
    let (Some(first), Some(last)) = first_last else { return false };
    if first.is_whitespace() || last.is_whitespace() || body.len() > 300 {
        return false;
    }
    let marked = body.contains(['\\', '^', '_', '=', '<', '>']);
    let longest = body.split(|c: char| !c.is_alphabetic()).map(str::len).max().unwrap_or(0);
    let simple = longest <= 2 && !body.contains("  ") && body.chars().any(char::is_alphabetic);
    marked && (body.contains('\\') || longest <= 4) || simple
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
}

impl Reader<'_> {
    /// Reads up to the closing brace or bracket.
    fn group(&mut self, depth: usize, close: Option<char>) -> Option<String> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut out = String::new();
        while let Some(&c) = self.chars.get(self.at) {
            self.at += 1;
            if Some(c) == close {
                return Some(out);
            }
            match c {
                '\\' => self.command(depth, &mut out)?,
                '{' => out.push_str(&self.group(depth + 1, Some('}'))?),
                '}' | '~' => out.push(' '),
                '&' => return None,
                '^' => {
                    let power = self.argument(depth)?.replace('−', "-");
                    match power.trim() {
                        "2" => out.push_str(" squared "),
                        "3" => out.push_str(" cubed "),
                        "T" | "\u{22a4}" => out.push_str(" transpose "),
                        "'" | "\u{2032}" => out.push_str(" prime "),
                        "\u{2218}" => out.push('°'),
                        n if n.trim_start_matches('-').chars().all(|c| c.is_ascii_digit()) => {
                            out.push_str(&format!("^{n} "))
                        }
                        power => out.push_str(&format!(" to the {power} ")),
                    }
                }
                '_' => {
                    let index = self.argument(depth)?;
                    out.push_str(&format!(" sub {index} "));
                }
                '\'' => out.push_str(" prime "),
                '=' | '+' | '<' | '>' => out.push_str(&format!(" {c} ")),
                // A sign clings to what follows, a minus stands between.
                '-' if out.trim_end().ends_with(|c: char| c.is_alphanumeric() || c == ')') => {
                    out.push_str(" − ")
                }
                '-' => out.push_str(" −"),
                '/' => out.push_str(" over "),
                '*' => out.push_str(" times "),
                '|' => out.push(' '),
                c if c.is_alphabetic() => {
                    // Letters side by side are a product: "mc" is m, c.
                    if out.ends_with(|last: char| last.is_alphanumeric()) {
                        out.push(' ');
                    }
                    out.push(c);
                }
                c if c.is_ascii_digit() && out.ends_with(char::is_alphabetic) => {
                    out.push(' ');
                    out.push(c);
                }
                c => out.push(c),
            }
        }
        if close.is_some() { None } else { Some(out) }
    }

    /// One argument: a group, a command or a character.
    fn argument(&mut self, depth: usize) -> Option<String> {
        while self.chars.get(self.at) == Some(&' ') {
            self.at += 1;
        }
        let c = *self.chars.get(self.at)?;
        self.at += 1;
        match c {
            '{' => self.group(depth + 1, Some('}')),
            '\\' => {
                let mut out = String::new();
                self.command(depth + 1, &mut out)?;
                Some(out)
            }
            '-' => Some("-".into()),
            c => Some(c.to_string()),
        }
    }

    /// The text of an argument as it stands, without mathematical spacing.
    fn text(&mut self) -> Option<String> {
        if self.chars.get(self.at) != Some(&'{') {
            return None;
        }
        let len = self.chars[self.at..].iter().position(|&c| c == '}')?;
        let text = self.chars[self.at + 1..self.at + len].iter().collect();
        self.at += len + 1;
        Some(text)
    }

    fn command(&mut self, depth: usize, out: &mut String) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let start = self.at;
        while self.chars.get(self.at).is_some_and(char::is_ascii_alphabetic) {
            self.at += 1;
        }
        if self.at == start {
            // `\,`, `\{`, `\%`
            let c = self.chars.get(self.at).copied().unwrap_or(' ');
            self.at += 1;
            out.push_str(if c == '%' { "%" } else { " " });
            return Some(());
        }
        let name: String = self.chars[start..self.at].iter().collect();
        match name.as_str() {
            "frac" | "dfrac" | "tfrac" => {
                let (over, under) = (self.argument(depth)?, self.argument(depth)?);
                let digits = |s: &str| !s.is_empty() && s.len() <= 3 && s.bytes().all(|b| b.is_ascii_digit());
                if digits(&over) && digits(&under) {
                    out.push_str(&format!(" {over}/{under} "));
                } else {
                    out.push_str(&format!(" {over} over {under} "));
                }
            }
            "sqrt" => {
                let mut root = "square".to_string();
                if self.chars.get(self.at) == Some(&'[') {
                    self.at += 1;
                    root = match self.group(depth + 1, Some(']'))?.trim() {
                        "3" => "cube".into(),
                        n if n.bytes().all(|b| b.is_ascii_digit()) => format!("{n}th"),
                        n => format!("{n}-th"),
                    };
                }
                let body = self.argument(depth)?;
                out.push_str(&format!(" the {root} root of {body} "));
            }
            "text" | "mathrm" | "operatorname" | "textbf" | "textit" | "mathbf" | "mathit" | "mathsf"
            | "texttt" => {
                out.push(' ');
                out.push_str(&self.text()?);
                out.push(' ');
            }
            "mathbb" | "mathcal" | "vec" | "hat" | "bar" | "overline" | "tilde" | "boxed" | "dot"
            | "underline" => {
                out.push_str(&format!(" {} ", self.argument(depth)?));
            }
            "left" | "right" | "big" | "Big" | "bigl" | "bigr" | "displaystyle" | "quad" | "qquad"
            | "limits" | "hspace" => {
                out.push(' ');
            }
            "sum" | "prod" | "int" | "lim" => self.series(&name, depth, out)?,
            _ => {
                let words = COMMANDS
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map_or(name.as_str(), |(_, words)| words);
                out.push_str(&format!(" {words} "));
            }
        }
        Some(())
    }

    /// `\sum_{i=1}^{n}`: with its limits in words.
    fn series(&mut self, name: &str, depth: usize, out: &mut String) -> Option<()> {
        let (mut from, mut to) = (None, None);
        for _ in 0..2 {
            match self.chars.get(self.at) {
                Some('_') => {
                    self.at += 1;
                    from = Some(self.argument(depth)?);
                }
                Some('^') => {
                    self.at += 1;
                    to = Some(self.argument(depth)?);
                }
                _ => break,
            }
        }
        out.push_str(match name {
            "sum" => " the sum",
            "prod" => " the product",
            "int" => " the integral",
            _ => " the limit",
        });
        match (name, from, to) {
            ("lim", Some(from), _) => out.push_str(&format!(" as {} of ", from.replace(" to ", " goes to "))),
            (_, Some(from), Some(to)) => out.push_str(&format!(" from {from} to {to} of ")),
            (_, Some(from), None) => out.push_str(&format!(" over {from} of ")),
            _ => out.push_str(" of "),
        }
        Some(())
    }
}

#[rustfmt::skip]
const COMMANDS: &[(&str, &str)] = &[
    ("times", "times"), ("cdot", "times"), ("ast", "times"), ("div", "divided by"), ("pm", "plus or minus"),
    ("mp", "minus or plus"), ("le", "≤"), ("leq", "≤"), ("ge", "≥"), ("geq", "≥"), ("ne", "≠"), ("neq", "≠"), ("approx", "≈"),
    ("equiv", "≡"), ("sim", "is similar to"), ("propto", "∝"), ("to", "to"), ("rightarrow", "to"), ("Rightarrow", "implies"),
    ("implies", "implies"), ("iff", "if and only if"), ("infty", "infinity"), ("partial", "partial"), ("nabla", "the gradient of"),
    ("in", "in"), ("notin", "not in"), ("subset", "is a subset of"), ("subseteq", "is a subset of"), ("cup", "union"),
    ("cap", "intersection"), ("emptyset", "the empty set"), ("forall", "for all"), ("exists", "there exists"), ("neg", "not"),
    ("land", "and"), ("lor", "or"), ("sin", "sine"), ("cos", "cosine"), ("tan", "tangent"), ("log", "log"), ("ln", "natural log"),
    ("exp", "the exponential of"), ("min", "the minimum of"), ("max", "the maximum of"), ("ldots", ", and so on,"),
    ("dots", ", and so on,"), ("cdots", ", and so on,"), ("circ", "\u{2218}"), ("degree", "°"), ("prime", "prime"), ("hbar", "h bar"),
    ("ell", "l"), ("angle", "angle"), ("perp", "is perpendicular to"), ("parallel", "is parallel to"), ("mid", "given"),
    ("because", "because"), ("therefore", "therefore"), ("varepsilon", "epsilon"), ("vartheta", "theta"), ("varphi", "phi"),
    ("LaTeX", "lay tech"), ("TeX", "tech"), ("gg", "is much greater than"), ("ll", "is much less than"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_words() {
        for (formula, expected) in [
            ("E = mc^2", "E = m c squared"),
            (r"\frac{a}{b}", "a over b"),
            (r"\frac{1}{2}", "1/2"),
            (r"\sqrt{x}", "the square root of x"),
            (r"\alpha + \beta", "alpha + beta"),
            (r"\sum_{i=1}^{n} i", "the sum from i = 1 to n of i"),
            (r"10^{-3}", "10^-3"),
        ] {
            assert_eq!(plain(formula).as_deref(), Some(expected), "{formula}");
        }
        assert_eq!(plain(r"\begin{matrix} a & b \end{matrix}"), None);
        assert_eq!(plain(&"{".repeat(900)), None);
        assert_eq!(plain(""), None);
    }

    #[test]
    fn prices_are_no_formulas() {
        assert!(is_formula("x"));
        assert!(is_formula("x^2 + y^2 = z^2"));
        assert!(is_formula(r"\alpha"));
        assert!(!is_formula("5 and "));
        assert!(!is_formula("5-"));
        assert!(!is_formula("20 per person, or"));
    }
}
