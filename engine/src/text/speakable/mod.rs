//! Speakable text: what a language model writes, as the words that a person would say.
//!
//! Replies are full of what nobody reads out: markdown, links, emoji, code, tables; and of what is said
//! otherwise than it is written: `$5.3 billion`, `9:30PM`, `40-60°C`, `Dr. Lee lives on Elm Dr.`.
//! [`Speakable`] takes the clauses of one reply in order and gives the words of each, in letters and
//! basic punctuation only, so that whatever finds the sounds never meets a digit or a sign.
//!
//! A clause passes through
//! 1. `markdown`, `html`, `latex`, `code`: markup out. What spans clauses (struck text, HTML elements)
//!    is remembered; blocks arrive as clauses of their own kind and are announced ("Code omitted.");
//! 2. `scan`: one form for typography, then tokens: letters, digits, spaces, single marks;
//! 3. `rules`: at each token the first rule that knows it. One file per idea: `money`, `dates`, `web`…;
//! 4. `output`: spaces and punctuation put right.
//!
//! Letters that are spelled stand alone as capitals, with the plural as in "U R L's". Text in scripts
//! that the voice cannot say is announced once ("some Japanese text").
//!
//! Everything is hand-written and looks a bounded distance ahead: time is linear in the text, whatever
//! it is. (Regular expressions were considered: the context that tells a date from a fraction or
//! a saint from a street does not fit into them, and backtracking on hostile text is not bounded.)
//!
//! ```
//! use repartee_engine::text::speakable::{Locale, speak};
//!
//! let said = speak("**NASA** paid $5.3 billion on 5/7/2024, see [the report](https://a.example/x).", Locale::EnUs);
//! assert_eq!(
//!     said.join(" "),
//!     "NASA paid five point three billion dollars on May seventh, twenty twenty-four, see the report."
//! );
//! ```

mod abbreviations;
mod acronyms;
mod calls;
mod chemistry;
mod code;
mod dates;
mod flags;
mod fractions;
mod grouping;
mod html;
mod identifiers;
mod idioms;
mod latex;
mod markdown;
mod measures;
mod money;
mod notation;
mod numbers;
mod output;
mod phones;
mod roman;
mod rules;
mod scan;
mod scripts;
mod strings;
mod symbols;
mod terminal;
#[cfg(test)]
mod tests;
mod times;
mod units;
mod verses;
mod versions;
mod web;

use super::clauses::lines::{self, Label};
use super::clauses::{Clause, ClauseEnd, ClauseKind, ClauseSplitter};

/// Whose English: the order of dates, "and" in numbers, the spelling of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locale {
    /// American: "May fifth", "one hundred one".
    #[default]
    EnUs,
    /// British: "the fifth of May", "one hundred and one".
    EnGb,
}

/// Turns the clauses of one reply into words. See the [module](self).
#[derive(Debug, Clone)]
pub struct Speakable {
    locale: Locale,
    open: markdown::Open,
    /// What ends the line that the clause belongs to, if it lacks a stop.
    line: Line,
    /// The announcement that was said last, so that it is not repeated clause after clause.
    announced: String,
    /// Where in the reply the last clause ended, if it did in a run without a space that may go on in the next.
    run: Option<usize>,
}

/// What the current line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Prose,
    /// A heading or a list item: a full stop ends it.
    Marked,
    /// The definition of a footnote or link: not said.
    Definition,
}

/// Longest text given out in one piece, in characters: half of what Kokoro takes at once.
const MAX_PIECE: usize = 400;

impl Speakable {
    /// For the start of a reply.
    pub fn new(locale: Locale) -> Self {
        Self {
            locale,
            open: markdown::Open::default(),
            line: Line::Prose,
            announced: String::new(),
            run: None,
        }
    }

    /// The words of the next clause: nothing if it has none to say, several pieces if it is very long.
    ///
    /// Each piece has Latin letters, spaces and `.,;:!?—…"()'-` only, and at least one letter.
    pub fn push(&mut self, clause: &Clause) -> Vec<String> {
        let goes_on = self.run.take() == Some(clause.chars.start);
        let rest = goes_on.then(|| after_run(clause));
        let clause = rest.as_ref().unwrap_or(clause);
        let cut = clause.end == ClauseEnd::Phrase && strings::ends_in_run(&clause.text);
        if cut || goes_on && clause.text.is_empty() {
            self.run = Some(clause.chars.end);
        }
        let words = match clause.kind {
            ClauseKind::Code => code::omitted(language(&clause.text)),
            ClauseKind::Table => "Table omitted.".to_string(),
            ClauseKind::Math => self.math(&clause.text),
            ClauseKind::Text => self.text(clause),
        };
        if clause.end == ClauseEnd::Paragraph {
            self.open.end_paragraph();
        }
        let bare = words.trim_end_matches(['.', ',', '!', '?', '…', ';', ':']);
        let announcement =
            bare == strings::ANNOUNCEMENT || (bare.starts_with("some ") && bare.ends_with(" text"));
        if announcement && bare == self.announced {
            return Vec::new();
        }
        if !words.is_empty() {
            self.announced = if announcement { bare.to_string() } else { String::new() };
        }
        pieces(words)
    }

    fn math(&self, text: &str) -> String {
        let body = text.trim_matches('$');
        let body = body.strip_prefix("\\[").map_or(body, |b| b.strip_suffix("\\]").unwrap_or(b));
        let Some(lines) = latex::lines(body) else { return "Formula omitted.".into() };
        let said = lines.iter().map(|line| {
            let mut words = rules::speak(line, self.locale);
            end_with_stop(&mut words);
            words
        });
        said.collect::<Vec<_>>().join(" ")
    }

    fn text(&mut self, clause: &Clause) -> String {
        let clean = terminal::without_sequences(&clause.text);
        let mut text = clean.as_ref();
        let mut label = None;
        if clause.starts_line {
            let marks = lines::marks(text);
            text = &text[marks.len..];
            label = marks.item;
            self.line = match () {
                () if is_definition(text) => Line::Definition,
                () if marks.heading || marks.item.is_some() => Line::Marked,
                () => Line::Prose,
            };
        }
        if self.line == Line::Definition {
            return String::new();
        }
        let plain = markdown::plain(text, &mut self.open);
        let mut words = rules::speak(&plain, self.locale);
        if words.is_empty() {
            return words;
        }
        if self.line == Line::Marked && clause.end != ClauseEnd::Phrase {
            end_with_stop(&mut words);
        }
        match label {
            Some(Label::Number(n)) => format!("{}, {words}", numbers::cardinal(&n.to_string(), self.locale)),
            Some(Label::Letter(c)) => format!("{}, {words}", c.to_ascii_uppercase()),
            Some(Label::Bullet) | None => words,
        }
    }
}

/// The words of a whole text, clause by clause.
pub fn speak(text: &str, locale: Locale) -> Vec<String> {
    let mut splitter = ClauseSplitter::default();
    let mut speakable = Speakable::new(locale);
    let mut clauses = splitter.push(text);
    clauses.extend(splitter.flush());
    clauses.iter().flat_map(|clause| speakable.push(clause)).collect()
}

/// What is left of a clause that goes on with the run of characters which the last one was cut in.
fn after_run(clause: &Clause) -> Clause {
    let run = clause.text.find(char::is_whitespace).unwrap_or(clause.text.len());
    let text = clause.text[run..].trim_start().to_string();
    Clause { text, starts_line: false, ..clause.clone() }
}

/// The language on the opening line of a fence.
fn language(text: &str) -> &str {
    let line = text.trim_start_matches(['>', ' ', '\t']);
    if !line.starts_with("```") && !line.starts_with("~~~") {
        return "";
    }
    let info = line.lines().next().unwrap_or_default().trim_start_matches(['`', '~']).trim();
    info.split([' ', ',', '{', ':']).next().unwrap_or_default()
}

/// `[^1]: …` and `[name]: https://…`
fn is_definition(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('[') else { return false };
    let Some((name, rest)) = rest.split_once("]:") else { return false };
    let target = rest.trim_start();
    name.len() <= 60
        && !name.contains(['\n', ']', '['])
        && (name.starts_with('^') || target.starts_with("http") || target.starts_with(['/', '#', '<']))
}

fn end_with_stop(words: &mut String) {
    let bare = words.trim_end_matches(['"', ')', '\'']);
    if !words.is_empty() && !bare.ends_with(['.', '!', '?', '…', ':', ';', ',']) {
        words.push('.');
    }
}

/// Cuts a text that is longer than a piece, after punctuation if there is any, at a space otherwise.
fn pieces(words: String) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = words.as_str();
    while rest.chars().nth(MAX_PIECE).is_some() {
        let limit = rest.char_indices().nth(MAX_PIECE).map_or(rest.len(), |(at, _)| at);
        let head = &rest[..limit];
        let stop = head.rmatch_indices(", ").next().map(|(at, _)| at + 1).filter(|at| *at > limit / 3);
        let at = stop.or_else(|| head.rfind(' ')).filter(|at| *at > 0).unwrap_or(limit);
        pieces.push(rest[..at].trim().to_string());
        rest = rest[at..].trim_start();
    }
    pieces.push(rest.to_string());
    pieces.retain(|piece| piece.chars().any(char::is_alphabetic));
    pieces
}
