//! Formulas in LaTeX as plain text that the rules for symbols can read: `\frac{a}{b}` is "a over b".

/// Deepest nesting, and longest result in words, that is still said.
const MAX_DEPTH: usize = 8;
const MAX_WORDS: usize = 40;
/// The same for a formula of several lines.
const MAX_LINES: usize = 6;
const MAX_WORDS_OF_LINES: usize = 80;

/// Environments of which the lines are said one by one.
#[rustfmt::skip]
const LINES: &[&str] = &[
    "align", "aligned", "displaymath", "eqnarray", "equation", "flalign", "gather", "gathered", "math", "multline", "split",
];

/// Plain text for a formula without its delimiters; `None` if it is too much to be said.
pub(super) fn plain(formula: &str) -> Option<String> {
    lines(formula).map(|lines| lines.join(", "))
}

/// The same line by line.
pub(super) fn lines(formula: &str) -> Option<Vec<String>> {
    if formula.len() > 2000 {
        return None;
    }
    let formula = without_environments(&cases(&without_notes(formula))?)?;
    let rows = formula.split("\\\\").map(|row| row.replace('&', " "));
    let rows: Vec<String> = rows.filter(|row| row.chars().any(char::is_alphanumeric)).collect();
    let lines: Vec<String> = rows.iter().map(|row| line(row)).collect::<Option<_>>()?;
    let words: usize = lines.iter().map(|line| line.split(' ').count()).sum();
    let most = if lines.len() > 1 { MAX_WORDS_OF_LINES } else { MAX_WORDS };
    ((1..=MAX_LINES).contains(&lines.len()) && words <= most).then_some(lines)
}

fn line(formula: &str) -> Option<String> {
    let chars: Vec<char> = formula.chars().collect();
    let mut reader =
        Reader { chars: &chars, at: 0, bars: chars.iter().filter(|c| **c == '|').count(), bar_open: false };
    let text = reader.group(0, None)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    words.iter().any(|w| w.chars().any(char::is_alphanumeric)).then(|| words.join(" "))
}

/// Without the labels and numbers of equations.
fn without_notes(formula: &str) -> String {
    let mut out = formula.replace("\\nonumber", "").replace("\\notag", "").replace("\\hline", "");
    for note in ["\\label{", "\\tag{"] {
        while let Some(start) = out.find(note) {
            let end = out[start..].find('}').map_or(out.len(), |len| start + len + 1);
            out.replace_range(start..end, "");
        }
    }
    out
}

/// Without the marks of environments that only arrange lines; `None` if there are others (a matrix).
fn without_environments(formula: &str) -> Option<String> {
    let mut out = formula.to_string();
    for mark in ["\\begin{", "\\end{"] {
        while let Some(start) = out.find(mark) {
            let name = out[start + mark.len()..].split('}').next()?;
            LINES.contains(&name.trim_end_matches('*')).then_some(())?;
            let end = (start + mark.len() + name.len() + 1).min(out.len());
            out.replace_range(start..end, " ");
        }
    }
    Some(out)
}

/// Alternatives in a sentence: "x if x > 0, minus x otherwise".
fn cases(formula: &str) -> Option<String> {
    const OPEN: &str = "\\begin{cases}";
    const CLOSE: &str = "\\end{cases}";
    let Some((before, rest)) = formula.split_once(OPEN) else { return Some(formula.to_string()) };
    let (body, after) = rest.split_once(CLOSE)?;
    let rows = body.split("\\\\").filter(|row| row.chars().any(char::is_alphanumeric));
    let rows: Vec<String> = rows
        .map(|row| match row.split_once('&') {
            Some((value, condition)) if condition.trim_start().starts_with("\\text") => {
                format!("{value} {condition}")
            }
            Some((value, condition)) => {
                let value = value.trim_end().trim_end_matches(',');
                format!("{value} \\text{{ if }} {condition}")
            }
            None => row.to_string(),
        })
        .collect();
    // Several of them are for the eye.
    (!after.contains(OPEN)).then(|| format!("{before} {} {after}", rows.join(" \\text{,} ")))
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
    // "$.75, 5¢ and US$" are prices.
    let listed = body.contains(", ") && !body.contains('\\');
    let simple = !listed && longest <= 2 && !body.contains("  ") && body.chars().any(char::is_alphabetic);
    marked && (body.contains('\\') || longest <= 4) || simple
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
    /// Vertical bars in all, and whether the next one closes.
    bars: usize,
    bar_open: bool,
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
                        power => out.push_str(&format!(" to the {} ", power.replacen('-', "minus ", 1))),
                    }
                }
                '_' => {
                    let index = self.argument(depth)?;
                    out.push_str(&format!(" sub {index} "));
                }
                // "f'(x)" is a function still.
                '\'' if self.chars.get(self.at) == Some(&'(') => out.push('′'),
                '\'' => out.push_str(" prime "),
                '!' if out.ends_with(|c: char| c.is_alphanumeric() || c == ')') => {
                    out.push_str(" factorial ")
                }
                '=' | '+' | '<' | '>' => out.push_str(&format!(" {c} ")),
                // A sign clings to what follows, a minus stands between.
                '-' if out.trim_end().ends_with(|c: char| c.is_alphanumeric() || c == ')') => {
                    out.push_str(" − ")
                }
                '-' => out.push_str(" −"),
                '/' => out.push_str(" over "),
                '*' => out.push_str(" times "),
                '|' if self.bars.is_multiple_of(2) => {
                    self.bar_open = !self.bar_open;
                    out.push_str(if self.bar_open { " the absolute value of " } else { " " });
                }
                '|' => out.push_str(" given "),
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
            out.push_str(match c {
                '%' => "%",
                '$' => " $",
                _ => " ",
            });
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
            "binom" | "dbinom" | "tbinom" => {
                let (n, k) = (self.argument(depth)?, self.argument(depth)?);
                out.push_str(&format!(" {n} choose {k} "));
            }
            "log" if self.chars.get(self.at) == Some(&'_') => {
                self.at += 1;
                out.push_str(&format!(" log base {} of ", self.argument(depth)?));
            }
            "color" | "textcolor" => {
                self.argument(depth)?;
            }
            "mathbb" | "mathcal" | "mathfrak" | "mathscr" | "vec" | "hat" | "widehat" | "bar"
            | "overline" | "tilde" | "boxed" | "dot" | "underline" | "underbrace" | "overbrace"
            | "cancel" | "pmb" | "bm" | "boldsymbol" | "overrightarrow" => {
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
        for (formula, expected) in [
            (r"\begin{equation} E = m \label{eq:1} \end{equation}", "E = m"),
            (r"\begin{align*} a &= b \\ c &= d \nonumber \end{align*}", "a = b, c = d"),
            (
                r"f = \begin{cases} x, & x > 0 \\ 0 & \text{otherwise} \end{cases}",
                "f = x if x > 0 , 0 otherwise",
            ),
            (r"\binom{n}{k} = n!", "n choose k = n factorial"),
            (r"\log_2 8", "log base 2 of 8"),
            (r"|x| < 5", "the absolute value of x < 5"),
            (r"P(A|B)", "P(A given B)"),
            (r"e^{-x^2}", "e to the minus x squared"),
            (r"f'(x)", "f′(x)"),
        ] {
            assert_eq!(plain(formula).as_deref(), Some(expected), "{formula}");
        }
        assert_eq!(plain(r"\begin{matrix} a & b \end{matrix}"), None);
        assert_eq!(plain(r"\begin{align"), None);
        assert_eq!(plain(&r"a \\ ".repeat(100)), None);
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
        assert!(!is_formula(".75, 5¢, US"));
        assert!(!is_formula("20 per person, or"));
    }
}
