//! Markdown inside a line that a clause must not be cut in: inline code, link text, link targets, formulas.

/// The span that the splitter is in. Indices are into its pending characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    None,
    /// Backticks being counted that open inline code.
    Ticks {
        ticks: usize,
        from: usize,
    },
    /// Inline code opened by so many backticks; `run` counts the current ones.
    Code {
        ticks: usize,
        run: usize,
        from: usize,
    },
    /// `[link text`
    Bracket {
        from: usize,
    },
    /// Just after `]`.
    Closed {
        from: usize,
    },
    /// `](target`
    Target {
        from: usize,
    },
    /// `$x + y`, `\(x + y`, `\[x + y`, up to `close`. A price has a digit behind the sign.
    Formula {
        from: usize,
        close: char,
    },
    /// After `\` in `\(x + y`.
    Escape {
        from: usize,
        close: char,
    },
    /// After the escape character.
    Control,
    /// After `$` or `\`, which may open a formula.
    Sign {
        from: usize,
        paren: bool,
    },
}

/// Longest span that is kept whole: an unclosed backtick must not hold a reply back.
const MAX_SPAN: usize = 200;

impl Span {
    /// Takes the character at index `i`.
    pub(super) fn track(&mut self, c: char, i: usize) {
        *self = self.after(c, i);
        if self.from().is_some_and(|from| i.saturating_sub(from) > MAX_SPAN) {
            *self = Span::None;
        }
    }

    fn after(self, c: char, i: usize) -> Span {
        let open = match c {
            '`' => Span::Ticks { ticks: 1, from: i },
            '[' => Span::Bracket { from: i },
            '$' | '\\' => Span::Sign { from: i, paren: c == '\\' },
            _ => Span::None,
        };
        match (self, c) {
            (_, '\n') => Span::None,
            // A terminal's control sequence: its bracket never closes.
            (_, '\u{1b}') => Span::Control,
            (Span::Control, '[' | ']') => Span::None,
            (Span::Control, _) => open,
            (Span::None, _) => open,
            (Span::Ticks { ticks, from }, '`') => Span::Ticks { ticks: ticks + 1, from },
            (Span::Ticks { ticks, from }, _) => Span::Code { ticks, run: 0, from },
            (Span::Code { ticks, run, from }, '`') => Span::Code { ticks, run: run + 1, from },
            (Span::Code { ticks, run, .. }, _) if run == ticks => open,
            (Span::Code { ticks, from, .. }, _) => Span::Code { ticks, run: 0, from },
            (Span::Bracket { from }, ']') => Span::Closed { from },
            (Span::Bracket { .. }, _) => self,
            (Span::Closed { from }, '(') => Span::Target { from },
            (Span::Closed { .. }, _) => open,
            (Span::Target { .. }, ')') => Span::None,
            (Span::Target { .. }, _) => self,
            (Span::Sign { from, paren: true }, '(') => Span::Formula { from, close: ')' },
            (Span::Sign { from, paren: true }, '[') => Span::Formula { from, close: ']' },
            (Span::Sign { from, paren: false }, c) if c.is_alphabetic() || c == '\\' => {
                Span::Formula { from, close: '$' }
            }
            (Span::Sign { .. }, _) => open,
            (Span::Formula { close: '$', .. }, '$') => Span::None,
            (Span::Formula { from, close: close @ (')' | ']') }, '\\') => Span::Escape { from, close },
            (Span::Formula { .. }, _) => self,
            (Span::Escape { close, .. }, c) if c == close => Span::None,
            (Span::Escape { from, close }, _) => Span::Formula { from, close },
        }
    }

    /// The first `gone` pending characters were handed out.
    pub(super) fn shift(&mut self, gone: usize) {
        if let Span::Ticks { from, .. }
        | Span::Code { from, .. }
        | Span::Bracket { from }
        | Span::Closed { from }
        | Span::Target { from }
        | Span::Escape { from, .. }
        | Span::Formula { from, .. }
        | Span::Sign { from, .. } = self
        {
            *from = from.saturating_sub(gone);
        }
    }

    fn from(self) -> Option<usize> {
        match self {
            Span::None | Span::Control => None,
            Span::Ticks { from, .. }
            | Span::Code { from, .. }
            | Span::Bracket { from }
            | Span::Closed { from }
            | Span::Target { from }
            | Span::Escape { from, .. }
            | Span::Formula { from, .. }
            | Span::Sign { from, .. } => Some(from),
        }
    }
}
