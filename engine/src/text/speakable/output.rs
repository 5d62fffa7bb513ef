//! The spoken text under construction: words and punctuation, and nothing else.

/// Collects words and punctuation with the right spaces between them.
#[derive(Debug, Default)]
pub(super) struct Output {
    text: String,
    /// Nothing goes between this and the next word: an opening quote, a hyphen.
    glued: bool,
    quote_open: bool,
    brackets: usize,
}

impl Output {
    /// Adds words; characters that are neither letters nor basic punctuation are left out.
    pub(super) fn words(&mut self, words: &str) {
        for word in words.split(' ') {
            let kept = |c: char| super::scan::is_latin(c) && c.is_alphabetic() || ",.;:!?'-".contains(c);
            let word: String = word.chars().filter(|&c| kept(c)).collect();
            if !word.chars().any(char::is_alphabetic) {
                continue;
            }
            self.space();
            self.text.push_str(&word);
        }
    }

    fn space(&mut self) {
        if !self.glued && !self.text.is_empty() && !self.text.ends_with(' ') {
            self.text.push(' ');
        }
        self.glued = false;
    }

    /// Adds a hyphen between two parts of a word.
    pub(super) fn hyphen(&mut self) {
        if self.text.ends_with(char::is_alphabetic) {
            self.text.push('-');
            self.glued = true;
        }
    }

    /// Adds one of `, . ; : ! ? …`. Of several in a row the strongest stays.
    pub(super) fn stop(&mut self, stop: char) {
        self.unglue();
        let strength = |c: char| ".,;:…!?".find(c).map(|at| if c == '.' { 5 } else { at });
        let tail = self.text.trim_end_matches([' ', '—']);
        let Some(last) = tail.chars().next_back() else { return };
        let dash = tail.len() < self.text.len();
        match (strength(last), strength(stop)) {
            // A dash before a stop is dropped.
            _ if dash && !matches!(stop, ',') => {
                self.text.truncate(tail.len());
                self.stop(stop);
            }
            _ if dash || last == '(' => {}
            (Some(old), Some(new)) if new > old || stop == '…' && last == '.' => {
                self.text.pop();
                self.text.push(stop);
            }
            (Some(_), _) => {}
            (None, _) => self.text.push(stop),
        }
    }

    /// Adds a dash with spaces around it.
    pub(super) fn dash(&mut self) {
        self.unglue();
        let inside = self.text.chars().next_back().is_some_and(|c| !"—(.!?…".contains(c));
        if inside {
            self.text.push_str(" —");
        }
    }

    /// Adds a straight quote, opening or closing by what was before.
    pub(super) fn quote(&mut self, opens: bool) {
        if self.quote_open && (!opens || self.text.ends_with('"')) {
            self.close('"');
            self.quote_open = false;
        } else if !self.quote_open && opens {
            self.space();
            self.text.push('"');
            self.glued = true;
            self.quote_open = true;
        }
    }

    pub(super) fn open_bracket(&mut self) {
        self.space();
        self.text.push('(');
        self.glued = true;
        self.brackets += 1;
    }

    pub(super) fn close_bracket(&mut self) {
        if self.brackets > 0 {
            self.brackets -= 1;
            self.close(')');
        }
    }

    /// Closes a quote or bracket; an empty pair disappears.
    fn close(&mut self, mark: char) {
        let open = if mark == ')' { '(' } else { mark };
        self.unglue();
        let trimmed = self.text.trim_end_matches(|c| matches!(c, ' ' | '—') || mark == ')' && c == ',');
        self.text.truncate(trimmed.len());
        if self.text.ends_with(open) {
            self.text.pop();
            let trimmed = self.text.trim_end();
            self.text.truncate(trimmed.len());
            self.glued = self.text.ends_with('(') || self.quote_open && self.text.ends_with('"');
        } else {
            self.text.push(mark);
        }
    }

    fn unglue(&mut self) {
        if self.glued && self.text.ends_with('-') {
            self.text.pop();
        }
        self.glued = self.glued && self.text.ends_with(['"', '(', '\'']);
    }

    /// An apostrophe after a plural: "the dogs' toys".
    pub(super) fn possessive(&mut self) {
        if self.text.ends_with('s') {
            self.text.push('\'');
        }
    }

    /// An apostrophe before a shortened word: "'em".
    pub(super) fn apostrophe(&mut self) {
        self.space();
        self.text.push('\'');
        self.glued = true;
    }

    /// The text, or "" if it has no letter.
    pub(super) fn finish(mut self) -> String {
        self.unglue();
        let trimmed = self.text.trim_end_matches([' ', '—', '(', '-']).len();
        self.text.truncate(trimmed);
        if self.text.chars().any(char::is_alphabetic) { self.text } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_stop_stays() {
        for (stops, expected) in
            [("?!", "a?"), ("!!!", "a!"), (",.", "a."), (":,", "a:"), ("..", "a."), (".…", "a…")]
        {
            let mut out = Output::default();
            out.words("a");
            stops.chars().for_each(|c| out.stop(c));
            assert_eq!(out.finish(), expected, "{stops}");
        }
    }

    #[test]
    fn empty_pairs_and_symbols_disappear() {
        let mut out = Output::default();
        out.words("a");
        out.open_bracket();
        out.words("#*");
        out.close_bracket();
        out.quote(true);
        out.quote(false);
        out.stop('.');
        assert_eq!(out.finish(), "a.");
        let mut out = Output::default();
        out.stop('.');
        out.dash();
        out.open_bracket();
        assert_eq!(out.finish(), "");
    }
}
