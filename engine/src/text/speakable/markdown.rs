//! Inline markdown to plain text: one pass, with the little state that clauses share.

use std::collections::HashMap;

use super::{code, html, latex};

/// What an earlier clause left open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Open {
    /// Struck text (`~~`), which is not said.
    strike: bool,
    /// An HTML element or comment that is skipped up to this mark.
    skip: Option<&'static str>,
}

impl Open {
    /// A paragraph ends: what is still open was never meant to be.
    pub(super) fn end_paragraph(&mut self) {
        self.strike = false;
    }
}

/// Removes the markup of a clause. Links leave their text, images their description, code its names.
pub(super) fn plain(text: &str, open: &mut Open) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut pass =
        Pass { ticks: matching_ticks(&chars), chars: &chars, at: 0, out: String::new(), open, links: true };
    while pass.at < pass.chars.len() {
        pass.step();
    }
    pass.out
}

struct Pass<'a> {
    chars: &'a [char],
    at: usize,
    out: String,
    open: &'a mut Open,
    /// For each backtick run that is closed: the index of the closing run.
    ticks: HashMap<usize, usize>,
    /// Whether link targets may still be looked for; one that never closes ends the search.
    links: bool,
}

/// Commands of LaTeX of which the arguments are names and measures.
#[rustfmt::skip]
const UNSAID: &[&str] = &[
    "begin", "end", "label", "ref", "eqref", "cite", "citep", "citet", "bibliography", "usepackage", "documentclass",
    "includegraphics", "vspace", "hspace", "input", "include",
];

/// Pairs backtick runs of equal length, from the last to the first.
fn matching_ticks(chars: &[char]) -> HashMap<usize, usize> {
    let mut runs = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let len = chars[i..].iter().take_while(|&&c| c == '`').count();
        if len > 0 {
            runs.push((i, len));
        }
        i += len.max(1);
    }
    let (mut pairs, mut next_of_len) = (HashMap::new(), HashMap::new());
    for &(at, len) in runs.iter().rev() {
        if let Some(next) = next_of_len.insert(len, at) {
            pairs.insert(at, next);
        }
    }
    pairs
}

impl Pass<'_> {
    fn char(&self, i: usize) -> char {
        self.chars.get(i).copied().unwrap_or(' ')
    }

    fn previous(&self) -> char {
        self.at.checked_sub(1).map_or(' ', |p| self.chars[p])
    }

    fn push(&mut self, c: char) {
        if !self.open.strike {
            self.out.push(c);
        }
    }

    fn push_str(&mut self, text: &str) {
        if !self.open.strike {
            self.out.push_str(text);
        }
    }

    fn run(&self, c: char) -> usize {
        self.chars[self.at..].iter().take_while(|&&k| k == c).count()
    }

    fn step(&mut self) {
        if let Some(until) = self.open.skip {
            return self.skip(until);
        }
        let c = self.chars[self.at];
        match c {
            '\\' => self.backslash(),
            '`' => self.code(),
            '!' if self.char(self.at + 1) == '[' => self.at += 1,
            '[' => self.bracket(),
            ']' => self.close_bracket(),
            '<' => self.angle(),
            '&' => match html::entity(self.chars, self.at) {
                Some((text, next)) => {
                    self.push_str(&text);
                    self.at = next;
                }
                None => self.keep(c),
            },
            '*' | '_' => self.emphasis(c),
            '~' if self.run('~') >= 2 => self.strike(),
            '=' if self.run('=') == 2 => self.highlight(),
            '$' => self.dollar(),
            // "#[derive]" is an attribute.
            '#' if self.char(self.at + 1) == '[' => self.at += 1,
            '\n' => self.newline(),
            'h' | 'w' | 'f' if self.is_url() => self.url(),
            _ => self.keep(c),
        }
    }

    fn keep(&mut self, c: char) {
        self.push(c);
        self.at += 1;
    }

    fn skip(&mut self, until: &'static str) {
        let mark: Vec<char> = until.chars().collect();
        while self.at < self.chars.len() {
            let here = &self.chars[self.at..];
            if here.len() >= mark.len() && here.iter().zip(&mark).all(|(a, b)| a.eq_ignore_ascii_case(b)) {
                self.at += mark.len();
                self.open.skip = None;
                return;
            }
            self.at += 1;
        }
    }

    fn backslash(&mut self) {
        let next = self.char(self.at + 1);
        let after = self.char(self.at + 2);
        match next {
            // `C:\\Users` and `\\server\share`: a path with its backslashes doubled, or one of the network.
            '\\' if after.is_ascii_alphanumeric()
                && (self.previous().is_alphanumeric() || self.previous() == ':') =>
            {
                self.push('\\');
                self.at += 2;
            }
            '\\' if after.is_ascii_alphanumeric() && self.is_share() => {
                self.push_str("\\\\");
                self.at += 2;
            }
            '(' | '[' => self.formula(self.at + 2, &['\\', if next == '(' { ')' } else { ']' }]),
            // A path ("C:\Users") keeps it; a command of LaTeX in prose goes.
            c if c.is_ascii_alphabetic()
                && !(self.previous().is_alphanumeric() || ":\\.".contains(self.previous())) =>
            {
                let len = self.chars[self.at + 1..].iter().take_while(|c| c.is_ascii_alphabetic()).count();
                let name: String = self.chars[self.at + 1..self.at + 1 + len].iter().collect();
                self.at += 1 + len;
                if UNSAID.contains(&name.as_str()) {
                    self.arguments();
                }
                self.push(' ');
            }
            c if c.is_ascii_punctuation() => {
                // Escaped: never markup again, but "\$5" is still money.
                let number = c == '#' && self.char(self.at + 2).is_ascii_digit();
                if number || !"*_~`[]<>|\\#=".contains(c) {
                    self.push(c);
                }
                self.at += 2;
            }
            _ => self.keep('\\'),
        }
    }

    /// Passes the arguments of a LaTeX command.
    fn arguments(&mut self) {
        const LONGEST: usize = 120;
        for (open, close) in [('[', ']'), ('{', '}'), ('{', '}')] {
            if self.char(self.at) == open {
                let rest = &self.chars[self.at..self.chars.len().min(self.at + LONGEST)];
                self.at += rest.iter().position(|c| *c == close).map_or(1, |len| len + 1);
            }
        }
    }

    /// Whether two backslashes start the name of a shared folder, which has another inside.
    fn is_share(&self) -> bool {
        let name = self.chars[self.at + 2..].iter().take(64).take_while(|c| !c.is_whitespace());
        !self.previous().is_alphanumeric() && name.clone().any(|c| *c == '\\')
    }

    fn code(&mut self) {
        let len = self.run('`');
        let Some(&close) = self.ticks.get(&self.at) else {
            self.at += len;
            return;
        };
        let content: String = self.chars[self.at + len..close].iter().collect();
        self.push_str(&code::plain(&content));
        self.at = close + len;
    }

    /// `[text](target)`, `[^note]`, `[12]`: only the text of links stays.
    fn bracket(&mut self) {
        let inner = &self.chars[self.at + 1..self.chars.len().min(self.at + 24)];
        let len = inner.iter().position(|&c| c == ']');
        if let Some(len) = len {
            let content = &inner[..len];
            let cited = content.iter().all(|c| c.is_ascii_digit() || ", -–".contains(*c));
            let note = content.first() == Some(&'^');
            let link = matches!(self.char(self.at + 2 + len), '(' | '[');
            let index = self.previous().is_alphanumeric()
                && !self.previous().is_ascii_digit()
                && len <= 2
                && cited
                && len > 0;
            let assigned = self.chars[self.at + 2 + len..].iter().find(|c| **c != ' ') == Some(&'=');
            let listed = content.contains(&',') && self.is_list();
            let kept = link || listed || index && assigned;
            if note || cited && !kept {
                self.at += len + 2;
                return;
            }
            if index {
                self.push(' ');
            }
        }
        self.at += 1;
    }

    /// Whether what stands before a bracket makes it a list of values: "= [1, 2]", "the array [1, 2]".
    fn is_list(&self) -> bool {
        let before = self.out.trim_end();
        let word = before.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
        before.ends_with(['=', ':', '('])
            || matches!(
                word.as_str(),
                "array"
                    | "list"
                    | "vector"
                    | "is"
                    | "becomes"
                    | "gives"
                    | "returns"
                    | "numbers"
                    | "values"
                    | "interval"
                    | "range"
            )
    }

    fn close_bracket(&mut self) {
        self.at += 1;
        let close = match self.char(self.at) {
            '(' if self.links => ')',
            '[' if self.links => ']',
            _ => return,
        };
        let open = self.char(self.at);
        // A reply that was cut off within the target ends with the link's text.
        let rest = &self.chars[self.at..];
        if open == '(' && rest.len() < 2000 && rest.iter().all(|c| *c != ')' && !c.is_whitespace()) {
            self.at = self.chars.len();
            return;
        }
        // "a[0](x)" aside, a target has no line break and is not long.
        let mut depth = 0;
        for (n, &c) in self.chars[self.at..].iter().enumerate().take(2000) {
            if c == open {
                depth += 1;
            } else if c == close {
                depth -= 1;
                if depth == 0 {
                    self.at += n + 1;
                    return;
                }
            } else if c == '\n' {
                break;
            }
        }
        self.links = false;
    }

    fn angle(&mut self) {
        if let Some((effect, next)) = html::tag(self.chars, self.at) {
            self.at = next;
            match effect {
                html::Effect::None => {}
                html::Effect::Break => self.push_str(", "),
                html::Effect::Raise => self.push('^'),
                html::Effect::Strike(on) => self.open.strike = on,
                html::Effect::Skip { until, say } => {
                    self.push_str(&format!(" {say} "));
                    self.open.skip = Some(until);
                }
            }
            return;
        }
        // `<https://…>` loses its brackets.
        let link = self.chars[self.at + 1..].starts_with(&['h', 't', 't', 'p']) || self.is_autolink();
        if link {
            self.at += 1;
            self.push(' ');
        } else {
            self.keep('<');
        }
    }

    fn is_autolink(&self) -> bool {
        let inner = &self.chars[self.at + 1..self.chars.len().min(self.at + 80)];
        let end = inner.iter().position(|c| c.is_whitespace() || matches!(c, '>' | '<'));
        end.is_some_and(|end| inner[end] == '>' && inner[..end].contains(&'@'))
    }

    /// Runs of `*` and `_`: markup, a power, a product, or part of a name.
    fn emphasis(&mut self, c: char) {
        let len = self.run(c);
        let (before, after) = (self.previous(), self.char(self.at + len));
        let digits = before.is_ascii_digit() && after.is_ascii_digit();
        let inside = before.is_alphanumeric() && after.is_alphanumeric();
        let spaced = before.is_whitespace() && after.is_whitespace();
        match (c, len) {
            ('*', 2) if digits => self.push('^'),
            ('*', 1) if digits || spaced => self.push('*'),
            ('_', _) if inside || before == '@' || before == '#' => self.push('_'),
            _ => {}
        }
        self.at += len;
    }

    fn strike(&mut self) {
        let len = self.run('~');
        let after = self.char(self.at + len);
        if self.open.strike {
            self.open.strike = false;
        } else if len == 2 && !after.is_whitespace() {
            self.open.strike = true;
        }
        self.at += len;
    }

    /// `==marked==`, but not `a == b`.
    fn highlight(&mut self) {
        let (before, after) = (self.previous(), self.char(self.at + 2));
        let operator = before.is_whitespace() == after.is_whitespace();
        if operator {
            self.push_str("==");
        }
        self.at += 2;
    }

    fn dollar(&mut self) {
        if self.char(self.at + 1) == '$' {
            return self.formula(self.at + 2, &['$', '$']);
        }
        let inner = &self.chars[self.at + 1..self.chars.len().min(self.at + 320)];
        if let Some(len) = inner.iter().position(|&c| c == '$') {
            let body: String = inner[..len].iter().collect();
            let priced = inner.get(len + 1).is_some_and(char::is_ascii_digit);
            if !priced && latex::is_formula(&body) {
                self.push_str(&said(&body));
                self.at += len + 2;
                return;
            }
        }
        self.keep('$');
    }

    /// A delimited formula whose body starts at `from`.
    fn formula(&mut self, from: usize, close: &[char; 2]) {
        let rest = &self.chars[from.min(self.chars.len())..self.chars.len().min(from + 1000)];
        match rest.windows(2).position(|pair| pair == close) {
            Some(len) => {
                let body: String = rest[..len].iter().collect();
                self.push_str(&said(&body));
                self.at = from + len + 2;
            }
            None => self.at = from.min(self.chars.len()),
        }
    }

    fn newline(&mut self) {
        self.at += 1;
        self.push(' ');
        while matches!(self.char(self.at), '>' | '\t') && self.at < self.chars.len() {
            self.at += 1;
        }
    }

    fn is_url(&self) -> bool {
        let rest = &self.chars[self.at..];
        let starts = |scheme: &str| rest.iter().take(scheme.len()).copied().eq(scheme.chars());
        !self.previous().is_alphanumeric()
            && ["https://", "http://", "www.", "ftp://"].iter().any(|s| starts(s))
    }

    /// An address is kept as it stands: its underscores are no markup.
    fn url(&mut self) {
        let mut depth = 0usize;
        while self.at < self.chars.len() {
            let c = self.chars[self.at];
            match c {
                '(' => depth += 1,
                ')' if depth > 0 => depth -= 1,
                c if c.is_whitespace() || "<>)]*\"`|".contains(c) => break,
                _ => {}
            }
            self.keep(c);
        }
    }
}

/// The words of a formula, or that there is one.
fn said(body: &str) -> String {
    match latex::plain(body) {
        Some(words) => format!(" {words} "),
        None => " a formula ".into(),
    }
}
