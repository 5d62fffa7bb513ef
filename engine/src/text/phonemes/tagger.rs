//! Which use of a word is meant: noun, verb, adjective, tense, from the words around it.
//!
//! Only homographs are asked about, so this is no general tagger: evidence from the nearest words on both sides is
//! added up for noun, verb and adjective, and the highest sum wins. The weights are set by hand and held to the
//! sentences in this module's `tests.rs`. A statistical tagger would know more words, but needs a tagged
//! corpus that we may not ship and decides rare readings by habit: spaCy's small model reads "I read it" as the
//! present.

use super::classes::{Classes, classes};
use super::lexicon::{Entry, Tag};

/// What parts two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Break {
    None,
    /// A comma.
    Comma,
    /// Any other mark inside a sentence.
    Clause,
    /// The end of a sentence, or of the text.
    Sentence,
}

/// A word in its sentence.
#[derive(Clone, Debug)]
pub(super) struct Word {
    /// As written, folded.
    pub(super) text: String,
    pub(super) lower: String,
    pub(super) classes: Classes,
    /// What stands before it.
    pub(super) before: Break,
    /// What stands after it.
    pub(super) after: Break,
}

impl Word {
    /// A word between sentence ends; the caller sets what it stands between.
    pub(super) fn new(text: &str) -> Self {
        let lower = text.to_lowercase();
        let classes = classes(&lower);
        Self { text: text.to_owned(), lower, classes, before: Break::Sentence, after: Break::Sentence }
    }

    fn is(&self, class: Classes) -> bool {
        self.classes.any(class)
    }

    /// Written with a capital although no sentence begins.
    fn is_name(&self) -> bool {
        self.before < Break::Clause && self.text.starts_with(char::is_uppercase)
    }

    fn is_possessive(&self) -> bool {
        self.lower.ends_with("'s") && !self.is(Classes::BE | Classes::INVITING) || self.lower.ends_with("s'")
    }

    /// An open-class word in -s: a plural, most often.
    fn is_plural(&self) -> bool {
        self.classes.is_open()
            && self.lower.len() > 3
            && self.lower.ends_with('s')
            && !["ss", "us", "is", "'s"].iter().any(|e| self.lower.ends_with(e))
            || matches!(self.lower.as_str(), "people" | "children" | "men" | "women" | "they" | "police")
    }

    /// May well be a noun.
    fn is_nounish(&self) -> bool {
        self.classes.is_open() && !self.lower.ends_with("ing") || self.lower == "one" || self.is_plural()
    }
}

/// Looking around one word.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) words: &'a [Word],
    pub(super) at: usize,
}

impl<'a> View<'a> {
    pub(super) fn word(&self) -> &'a Word {
        &self.words[self.at]
    }

    /// The word before, unless a mark parts them.
    pub(super) fn left(&self) -> Option<&'a Word> {
        (self.word().before == Break::None).then(|| self.at.checked_sub(1).map(|i| &self.words[i])).flatten()
    }

    /// The word after, unless a mark parts them.
    pub(super) fn right(&self) -> Option<&'a Word> {
        (self.word().after == Break::None).then(|| self.words.get(self.at + 1)).flatten()
    }

    pub(super) fn back(&self) -> Option<Self> {
        self.left().map(|_| Self { at: self.at - 1, ..*self })
    }

    pub(super) fn forth(&self) -> Option<Self> {
        self.right().map(|_| Self { at: self.at + 1, ..*self })
    }

    /// The view from the first word before that is no adverb.
    fn left_of_adverbs(&self) -> Option<Self> {
        let mut view = self.back()?;
        while view.word().is(Classes::ADVERB) && !view.word().is(Classes::DETERMINER) {
            view = view.back()?;
        }
        Some(view)
    }

    pub(super) fn left_is(&self, words: &[&str]) -> bool {
        self.left().is_some_and(|w| words.contains(&w.lower.as_str()))
    }

    pub(super) fn right_is(&self, words: &[&str]) -> bool {
        self.right().is_some_and(|w| words.contains(&w.lower.as_str()))
    }

    /// Whether one of the words stands within `reach` words in the same sentence.
    pub(super) fn near(&self, reach: usize, words: &[&str]) -> bool {
        let hit =
            |w: &Word| words.iter().any(|&cue| w.lower == cue || w.lower.strip_suffix('s') == Some(cue));
        let mut left = self.at;
        while left > 0 && self.at - left < reach && self.words[left].before < Break::Sentence {
            left -= 1;
            if hit(&self.words[left]) {
                return true;
            }
        }
        let mut right = self.at;
        while right + 1 < self.words.len()
            && right - self.at < reach
            && self.words[right].after < Break::Sentence
        {
            right += 1;
            if hit(&self.words[right]) {
                return true;
            }
        }
        false
    }

    /// Whether any word of the sentence, other than this one, has one of the classes.
    fn sentence_has(&self, class: Classes) -> bool {
        let mut from = self.at;
        while from > 0 && self.words[from].before < Break::Sentence {
            from -= 1;
        }
        let mut to = self.at;
        while to + 1 < self.words.len() && self.words[to].after < Break::Sentence {
            to += 1;
        }
        (from..=to).any(|i| i != self.at && self.words[i].is(class))
    }

    fn starts(&self) -> bool {
        self.word().before >= Break::Clause
    }
}

/// Evidence for each use; the highest wins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scores {
    pub(super) noun: f32,
    pub(super) verb: f32,
    pub(super) adjective: f32,
}

impl Scores {
    fn add(&mut self, noun: f32, verb: f32, adjective: f32) {
        self.noun += noun;
        self.verb += verb;
        self.adjective += adjective;
    }

    /// The use with the most evidence; a noun when all are equal.
    pub(super) fn best(&self) -> Tag {
        if self.verb > self.noun && self.verb > self.adjective {
            Tag::Verb
        } else if self.adjective > self.noun {
            Tag::Adjective
        } else {
            Tag::Noun
        }
    }
}

/// Words after which "to" is followed by a noun.
const NOUN_TO: &[&str] = &[
    "according",
    "due",
    "thanks",
    "close",
    "next",
    "back",
    "access",
    "addition",
    "attention",
    "listen",
    "listening",
    "listened",
    "respect",
    "similar",
    "related",
    "compared",
    "contrary",
    "prior",
    "subject",
    "forward",
    "key",
    "answer",
    "solution",
    "introduction",
    "object",
    "objected",
    "contribute",
    "contributed",
    "led",
    "leads",
    "up",
    "opposed",
];

/// Adds up what stands around the word.
pub(super) fn scores(view: View) -> Scores {
    let mut s = Scores::default();
    left_evidence(view, &mut s);
    right_evidence(view, &mut s);
    s
}

fn left_evidence(view: View, s: &mut Scores) {
    let form_s = view.word().lower.ends_with('s');
    let right_nounish = view.right().is_some_and(Word::is_nounish);
    let modified = if right_nounish { 1.5 } else { 0.0 };
    let Some(near) = view.left() else {
        // A command begins a sentence; after a comma it is rarer.
        let object = view.right().is_some_and(|w| {
            w.is(Classes::DETERMINER | Classes::POSSESSIVE | Classes::OBJECT) && !w.is(Classes::PREPOSITION)
        });
        let begins = if view.starts() { 2.2 } else { 1.2 };
        if object && !form_s {
            s.add(0.0, begins, 0.0);
        } else {
            s.add(0.8, 0.0, 0.4);
        }
        return;
    };
    if near.is(Classes::DEGREE) && !near.is(Classes::DETERMINER) {
        s.add(-1.0, 0.0, 2.0);
    }
    let Some(left_view) = view.left_of_adverbs() else {
        // Only adverbs stand before: "Always record the call."
        s.add(0.0, 1.5, 0.5);
        return;
    };
    let left = left_view.word();
    let before = left_view.left();
    let skipped = left_view.at + 1 < view.at;
    if left.is(Classes::TO) {
        let noun_to = before.is_some_and(|w| NOUN_TO.contains(&w.lower.as_str()));
        if form_s {
            s.add(4.0, -2.0, 0.0);
        } else if noun_to {
            s.add(2.0, 0.8, modified);
        } else {
            s.add(-0.5, 3.5, 0.0);
        }
    } else if left.is(Classes::POSSESSIVE) && left.is(Classes::OBJECT) {
        // "her": "let her record", "saw her record".
        let causative = before.is_some_and(|w| w.is(Classes::CAUSATIVE));
        s.add(2.2, if causative && !form_s { 2.0 } else { -1.5 }, 1.0 + modified);
    } else if left.is(Classes::RELATIVE)
        && (left.lower == "that" && !super::homographs::that_points(left_view)
            || !left.is(Classes::DETERMINER))
    {
        s.add(0.3, 2.0, 0.3 + modified);
    } else if left.is(Classes::MODAL) {
        s.add(-1.0, 4.0, 0.0);
    } else if form_s && matches!(left.lower.as_str(), "this" | "that" | "it" | "which" | "what") {
        // "This presents a problem": one thing is no plural's determiner.
        s.add(0.0, 3.0, 0.0);
    } else if left.is(Classes::DETERMINER | Classes::POSSESSIVE | Classes::NUMBER) {
        s.add(3.0, -3.0, 1.6 + modified);
    } else if left.is(Classes::BE) {
        if left.is(Classes::MODAL | Classes::HAVE) {
            s.add(0.0, 1.0, 1.0);
        } else {
            s.add(0.3, -1.5, 2.5);
        }
    } else if left.is(Classes::HAVE) {
        s.add(1.2, 0.2, 0.6 + modified);
    } else if left.is(Classes::SUBJECT) {
        let inverted = before.is_some_and(|w| w.is(Classes::BE));
        let weak = left.is(Classes::OBJECT)
            && !skipped
            && before.is_some_and(|w| w.is(Classes::VERB | Classes::PAST | Classes::PREPOSITION));
        let causative = before.is_some_and(|w| w.is(Classes::CAUSATIVE | Classes::INVITING));
        if inverted {
            s.add(0.3, 0.0, 4.0);
        } else if weak && !causative {
            s.add(0.6, 0.6, 0.8);
        } else {
            s.add(-1.0, 3.0, 0.0);
        }
    } else if left.is(Classes::OBJECT) {
        let causative = before.is_some_and(|w| w.is(Classes::CAUSATIVE));
        s.add(0.6, if causative { 3.0 } else { 0.4 }, 0.6);
    } else if left.is(Classes::INVITING) {
        s.add(-0.5, 4.0, 0.0);
    } else if left.is(Classes::QUESTION) && !left.is(Classes::DETERMINER | Classes::SUBJECT) {
        let object = view.right().is_some_and(|w| w.is(Classes::DETERMINER | Classes::POSSESSIVE));
        s.add(0.8, if object { 1.0 } else { 0.0 }, 0.5 + modified);
    } else if left.is(Classes::CONJUNCTION) {
        let verb_before = before.is_some_and(|w| w.is(Classes::VERB | Classes::PAST));
        let object =
            view.right().is_some_and(|w| w.is(Classes::DETERMINER | Classes::POSSESSIVE | Classes::OBJECT));
        let verbs = f32::from(u8::from(verb_before)) + 1.6 * f32::from(u8::from(object && !form_s));
        s.add(0.7, verbs, 0.4);
    } else if left.is(Classes::PREPOSITION) && !left.is(Classes::VERB) {
        s.add(2.5, -3.0, 0.8 + modified);
    } else if left.is_possessive() {
        s.add(2.5, -0.5, 1.0 + modified);
    } else if left.is(Classes::ADJECTIVE) {
        s.add(2.0, -0.5, 0.4 + modified * 0.6);
    } else if left.is(Classes::LINKING) {
        s.add(0.3, -0.5, 2.0);
    } else if left.is(Classes::VERB | Classes::PAST) {
        s.add(1.2, -0.3, 0.9 + modified);
    } else if left.is_name() {
        s.add(0.8, if form_s { 2.2 } else { 0.6 }, 0.2);
    } else if left.is_plural() {
        s.add(0.6, if form_s { -1.0 } else { 2.0 }, 0.3);
    } else if left.lower.ends_with("ing") {
        s.add(1.4, -0.5, 0.8);
    } else {
        // One thing "records", it does not "record".
        s.add(1.0, if form_s { 1.3 } else { -0.3 }, 0.2);
    }
    if skipped && !left.is(Classes::BE | Classes::LINKING) {
        // "they always record": an adverb comes before a verb.
        s.add(-0.3, 0.8, 0.0);
    }
}

fn right_evidence(view: View, s: &mut Scores) {
    let Some(right) = view.right() else {
        s.add(0.6, 0.0, 0.0);
        return;
    };
    if right.lower == "of" {
        s.add(2.5, -1.0, -0.5);
    } else if right.is(Classes::BE | Classes::HAVE | Classes::MODAL) && !right.is(Classes::SUBJECT) {
        s.add(2.0, -1.5, -1.0);
    } else if right.is(Classes::TO) {
        s.add(0.3, 0.0, 0.2);
    } else if right.is(Classes::POSSESSIVE | Classes::OBJECT) && !right.is(Classes::PREPOSITION)
        || right.is(Classes::DETERMINER) && !right.is(Classes::RELATIVE)
    {
        s.add(0.0, 2.0, 0.0);
    } else if right.is(Classes::RELATIVE) {
        s.add(0.8, 0.6, 0.0);
    } else if right.is(Classes::PARTICLE) {
        s.add(0.3, 1.0, 0.0);
    } else if right.is(Classes::PREPOSITION) {
        s.add(0.6, 0.3, 0.2);
    } else if right.is(Classes::SUBJECT) {
        s.add(0.3, 0.2, 0.0);
    } else if right.is(Classes::ADVERB) {
        s.add(0.0, 0.9, 0.0);
    } else if right.is(Classes::CONJUNCTION) {
        s.add(0.4, 0.0, 0.1);
    } else if right.is_nounish() {
        s.add(0.3, if right.is_plural() { 0.6 } else { 0.3 }, 0.9);
    } else if right.is(Classes::ADJECTIVE) {
        s.add(0.0, 0.8, 0.2);
    }
}

/// Past or present, for verbs written alike in both ("read").
pub(super) fn tense(view: View) -> Tag {
    let Some(left_view) = view.left_of_adverbs() else {
        // A command, unless only an adverb of time stands there.
        return if view.right().is_some_and(|w| w.is(Classes::PREPOSITION) && w.lower == "by") {
            Tag::Participle
        } else {
            Tag::Verb
        };
    };
    let left = left_view.word();
    let before = left_view.left();
    let auxiliary = |w: &Word| {
        w.is(Classes::MODAL | Classes::TO | Classes::INVITING | Classes::CAUSATIVE) && !w.is(Classes::HAVE)
    };
    if left.lower.ends_with("'d") || left.lower.ends_with("'s") && !left.is_possessive() {
        // "I'd read it if", "she's read it": only "better", "rather" and "like to" make it the base form.
        return if left.lower.ends_with("'s") || view.sentence_has(Classes::LONG_AGO) {
            Tag::Participle
        } else {
            Tag::Verb
        };
    }
    if left.is(Classes::HAVE | Classes::BE) {
        return Tag::Participle;
    }
    // "It's a great read."
    let article = before.is_some_and(|w| w.is(Classes::DETERMINER) && !w.is(Classes::SUBJECT));
    if article && left.is(Classes::ADJECTIVE) && !view.right().is_some_and(Word::is_nounish) {
        return Tag::Verb;
    }
    if auxiliary(left) {
        return Tag::Verb;
    }
    if left.is(Classes::SUBJECT | Classes::OBJECT) || left.is_nounish() {
        // The auxiliary may stand before the subject: "did you read", "have you read", "help me read".
        let mut search = left_view.back();
        for _ in 0..3 {
            let Some(view) = search else { break };
            let word = view.word();
            if word.is(Classes::HAVE) && !word.is(Classes::CAUSATIVE)
                || matches!(word.lower.as_str(), "have" | "has" | "had")
            {
                return Tag::Participle;
            }
            if auxiliary(word) && (before.is_some_and(|b| b.lower == word.lower) || word.is(Classes::MODAL)) {
                return Tag::Verb;
            }
            if word.is(Classes::VERB | Classes::PAST | Classes::CONJUNCTION | Classes::RELATIVE) {
                break;
            }
            search = view.back();
        }
    }
    if left.is(Classes::PREPOSITION | Classes::DETERMINER | Classes::POSSESSIVE)
        && !left.is(Classes::SUBJECT | Classes::OBJECT)
    {
        // "a good read", "a widely read book".
        let adverb = view.left().is_some_and(|w| w.is(Classes::ADVERB | Classes::DEGREE));
        return if adverb && view.right().is_some_and(Word::is_nounish) {
            Tag::Participle
        } else {
            Tag::Verb
        };
    }
    // "If you read the docs" tells what to do.
    let told = |w: &Word| {
        w.is(Classes::QUESTION | Classes::CONJUNCTION)
            || matches!(w.lower.as_str(), "sure" | "before" | "until" | "as" | "once")
    };
    if left.lower == "you" && before.is_some_and(told) {
        return Tag::Verb;
    }
    let plural_subject =
        matches!(left.lower.as_str(), "i" | "you" | "we" | "they" | "who" | "people") || left.is_plural();
    if view.sentence_has(Classes::LONG_AGO) {
        return Tag::Past;
    }
    if view.sentence_has(Classes::HABIT) {
        // "He never read it" is past, "they always read" present: a singular subject would have "reads".
        return if plural_subject { Tag::Verb } else { Tag::Past };
    }
    if left.is(Classes::CONJUNCTION) {
        let past = before.is_some_and(|w| w.is(Classes::PAST)) || view.sentence_has(Classes::PAST);
        return if past && !view.sentence_has(Classes::MODAL | Classes::TO) { Tag::Past } else { Tag::Verb };
    }
    if !plural_subject {
        // "She read": the present would have an s. After an open word it may be a command's list.
        return if left.is(Classes::VERB) { Tag::Verb } else { Tag::Past };
    }
    if view.sentence_has(Classes::PAST) {
        return Tag::Past;
    }
    if view.right().is_some_and(|w| matches!(w.lower.as_str(), "somewhere" | "recently" | "about")) {
        return Tag::Past;
    }
    // "According to what I read, yes."
    if before.is_some_and(|w| w.lower == "what") && view.right().is_none() {
        return Tag::Past;
    }
    // "I read the letter" tells what happened, "I read books" what is done.
    let definite =
        view.right().is_some_and(|w| w.is(Classes::DETERMINER | Classes::POSSESSIVE) || w.lower == "it");
    if definite { Tag::Past } else { Tag::Verb }
}

/// The use of a homograph.
pub(super) fn tag(view: View, entry: &Entry) -> Tag {
    if entry.has(Tag::Past) && entry.has(Tag::Participle) {
        return tense(view);
    }
    let mut s = scores(view);
    super::homographs::adjust(view, &mut s);
    let best = s.best();
    if entry.has(Tag::Adverb) && best != Tag::Noun {
        let modifies = view.right().is_some_and(Word::is_nounish);
        return if modifies { Tag::Adjective } else { Tag::Adverb };
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scores' choice for the word in brackets.
    fn best(sentence: &str) -> Tag {
        let mut at = 0;
        let mut words: Vec<Word> = sentence
            .split(' ')
            .enumerate()
            .map(|(i, w)| {
                if w.starts_with('[') {
                    at = i;
                }
                let mut word = Word::new(w.trim_matches(['[', ']']));
                word.before = Break::None;
                word.after = Break::None;
                word
            })
            .collect();
        words.first_mut().unwrap().before = Break::Sentence;
        words.last_mut().unwrap().after = Break::Sentence;
        scores(View { words: &words, at }).best()
    }

    #[test]
    fn neighbours_decide() {
        for (sentence, want) in [
            ("They [record] the song", Tag::Verb),
            ("I want to [record] a song", Tag::Verb),
            ("The [record] is old", Tag::Noun),
            ("a new [record] of it", Tag::Noun),
            ("[Record] the meeting", Tag::Verb),
            ("they were [absent] today", Tag::Adjective),
            ("in [separate] rooms", Tag::Adjective),
            ("Please [separate] the eggs", Tag::Verb),
            ("She never [objects] to it", Tag::Verb),
            ("These [objects] fall", Tag::Noun),
        ] {
            assert_eq!(best(sentence), want, "{sentence}");
        }
    }
}
