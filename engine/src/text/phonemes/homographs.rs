//! Words that need more than a part of speech: readings that the lexicon lacks, meanings told apart by the company they
//! keep, and corrections for words that mostly go one way.

use super::alphabet::Accent;
use super::classes::Classes;
use super::lexicon::Tag;
use super::tagger::{Break, Scores, View, Word, scores};

/// A reading beside the lexicon's own.
struct Extra {
    word: &'static str,
    tag: Tag,
    american: &'static str,
    british: &'static str,
}

const EXTRA: &[Extra] = &[
    Extra { word: "lead", tag: Tag::Other, american: "lˈɛd", british: "lˈɛd" },
    Extra { word: "bow", tag: Tag::Other, american: "bˈW", british: "bˈW" },
    Extra { word: "bows", tag: Tag::Other, american: "bˈWz", british: "bˈWz" },
    Extra { word: "row", tag: Tag::Other, american: "ɹˈO", british: "ɹˈW" },
    Extra { word: "tear", tag: Tag::Other, american: "tˈɛɹ", british: "tˈɛː" },
    Extra { word: "tears", tag: Tag::Other, american: "tˈɛɹz", british: "tˈɛːz" },
    Extra { word: "deserts", tag: Tag::Other, american: "dəzˈɜɹts", british: "dɪzˈɜːts" },
    Extra { word: "bass", tag: Tag::Other, american: "bˈAs", british: "bˈAs" },
    Extra { word: "resume", tag: Tag::Noun, american: "ɹˈɛzəmˌA", british: "ɹˈɛzjʊmA" },
    Extra { word: "resumes", tag: Tag::Noun, american: "ɹˈɛzəmˌAz", british: "ɹˈɛzjʊmAz" },
    Extra { word: "protest", tag: Tag::Verb, american: "pɹətˈɛst", british: "pɹətˈɛst" },
    Extra { word: "protests", tag: Tag::Verb, american: "pɹətˈɛsts", british: "pɹətˈɛsts" },
    Extra { word: "export", tag: Tag::Verb, american: "ɛkspˈɔɹt", british: "ɪkspˈɔːt" },
    Extra { word: "exports", tag: Tag::Verb, american: "ɛkspˈɔɹts", british: "ɪkspˈɔːts" },
    Extra { word: "impact", tag: Tag::Verb, american: "ɪmpˈækt", british: "ɪmpˈakt" },
    Extra { word: "impacts", tag: Tag::Verb, american: "ɪmpˈækts", british: "ɪmpˈakts" },
    Extra { word: "blessed", tag: Tag::Adjective, american: "blˈɛsɪd", british: "blˈɛsɪd" },
    Extra { word: "aged", tag: Tag::Adjective, american: "ˈAʤɪd", british: "ˈAʤɪd" },
];

/// Words written with a capital that are read like the lower-case word unless a name is meant.
const COMMON: &[&str] =
    &["mobile", "recollect", "ok", "os", "scone", "fur", "mien", "secession", "portage", "rom", "seth"];

fn extra(word: &str, tag: Tag, accent: Accent) -> Option<String> {
    let found = EXTRA.iter().find(|e| e.word == word && e.tag == tag)?;
    Some(match accent {
        Accent::American => found.american.to_owned(),
        Accent::British => found.british.to_owned(),
    })
}

/// Whether a capitalised word should be looked up in lower case although the lexicon knows its capital form.
pub(super) fn prefers_lower(view: View) -> bool {
    let word = view.word();
    if COMMON.contains(&word.lower.as_str()) {
        let place = view.left_is(&["in", "from", "to", "near"]) || view.right_is(&["alabama", "bay"]);
        return word.before == Break::Sentence || !place;
    }
    // "Polish the silver" is a command, "Polish food" is not.
    word.lower == "polish"
        && word.before >= Break::Clause
        && view.right().is_some_and(|w| w.is_any(Classes::DETERMINER | Classes::POSSESSIVE | Classes::OBJECT))
}

/// The second meaning of a word, or `None` where the lexicon's reading stands.
pub(super) fn second_meaning(view: View, accent: Accent) -> Option<String> {
    let word = view.word().lower.as_str();
    let tag = || scores(view).best();
    match word {
        "lead" => {
            let verb = scores(view);
            let metal = view.near(
                4,
                &[
                    "pipe",
                    "paint",
                    "poisoning",
                    "metal",
                    "zinc",
                    "copper",
                    "tin",
                    "toxic",
                    "mercury",
                    "bullet",
                    "heavy",
                    "pencil",
                    "arsenic",
                    "gasoline",
                    "petrol",
                    "solder",
                    "ore",
                    "alloy",
                    "iron",
                    "exposure",
                    "contaminated",
                    "acid",
                    "drinking",
                    "plumbing",
                    "soil",
                    "trace",
                    "level",
                ],
            ) && !view.left_is(&["the"]);
            // "exposure to lead"
            let exposed = view.left_is(&["to"])
                && view.back().is_some_and(|v| v.left_is(&["exposure", "exposed", "contribute"]));
            (metal && verb.best() != Tag::Verb
                || exposed
                || view.left_is(&["contain", "contains", "contained", "molten", "leaded"]))
            .then(|| extra(word, Tag::Other, accent))
            .flatten()
        }
        "bow" | "bows" => {
            let other = view.near(
                6,
                &[
                    "ship",
                    "boat",
                    "deck",
                    "stern",
                    "actor",
                    "audience",
                    "curtain",
                    "applause",
                    "stage",
                    "anchor",
                    "hull",
                    "vessel",
                    "performer",
                    "cast",
                ],
            ) || view.near(3, &["take", "took", "taking"]) && tag() == Tag::Noun;
            let weapon = view.near(4, &["arrow", "tie", "string", "violin", "cello", "ribbon", "hair"]);
            (other && !weapon).then(|| extra(word, Tag::Other, accent)).flatten()
        }
        "row" => view
            .near(
                5,
                &["argument", "angry", "furious", "blazing", "neighbour", "political", "erupted", "shouting"],
            )
            .then(|| extra(word, Tag::Other, accent))
            .flatten(),
        "tear" | "tears" => {
            let rip = view.near(
                5,
                &[
                    "fabric",
                    "cloth",
                    "shirt",
                    "jacket",
                    "page",
                    "paper",
                    "muscle",
                    "ligament",
                    "wear",
                    "hole",
                    "tendon",
                    "seam",
                    "jeans",
                    "tent",
                    "net",
                    "sail",
                    "meniscus",
                    "rotator",
                    "cartilage",
                    "screen",
                    "dress",
                    "pants",
                    "trousers",
                    "sleeve",
                    "curtain",
                    "acl",
                    "mcl",
                    "knee",
                    "shoulder",
                    "labrum",
                    "hamstring",
                    "calf",
                ],
            );
            // "Tear along the line."
            let rip = rip
                || word == "tear"
                    && view.word().before >= Break::Clause
                    && view.right_is(&["along", "off", "into", "here"]);
            rip.then(|| extra(word, Tag::Other, accent)).flatten()
        }
        "deserts" => view.left_is(&["just"]).then(|| extra(word, Tag::Other, accent)).flatten(),
        "bass" => {
            let fish = view.near(
                6,
                &[
                    "fish",
                    "fishing",
                    "lake",
                    "river",
                    "caught",
                    "catch",
                    "striped",
                    "largemouth",
                    "smallmouth",
                    "sea",
                    "grilled",
                    "fried",
                    "trout",
                    "salmon",
                    "fillet",
                    "pond",
                    "bait",
                    "angler",
                    "cooked",
                    "baked",
                    "chilean",
                ],
            );
            if fish { None } else { extra(word, Tag::Other, accent) }
        }
        "resume" | "resumes" => {
            let mut s = scores(view);
            s.verb += 0.8;
            (s.best() == Tag::Noun).then(|| extra(word, Tag::Noun, accent)).flatten()
        }
        "résumé" | "résumés" | "resumé" | "resumés" => {
            extra(if word.ends_with('s') { "resumes" } else { "resume" }, Tag::Noun, accent)
        }
        // The city in France.
        "nice" => (view.word().text == "Nice"
            && view.left_is(&["in", "to", "from", "near", "of", "visit", "at"]))
        .then(|| if accent == Accent::American { "nˈis" } else { "nˈiːs" }.to_owned()),
        "protest" | "protests" | "export" | "exports" | "impact" | "impacts" => {
            let mut s = scores(view);
            s.noun += 0.5;
            (s.best() == Tag::Verb).then(|| extra(word, Tag::Verb, accent)).flatten()
        }
        "blessed" => view
            .right_is(&[
                "virgin",
                "mother",
                "event",
                "day",
                "relief",
                "silence",
                "thing",
                "trinity",
                "sacrament",
                "memory",
            ])
            .then(|| extra(word, Tag::Adjective, accent))
            .flatten(),
        "aged" => {
            let person = [
                "man", "woman", "men", "women", "parents", "parent", "mother", "father", "couple", "people",
                "relative",
            ];
            (view.right_is(&person)
                || view.left_is(&["the"]) && view.right().is_none_or(|w| !w.is_any(Classes::NUMBER)))
            .then(|| extra(word, Tag::Adjective, accent))
            .flatten()
        }
        _ => None,
    }
}

/// Corrections for words that mostly go one way, on top of what stands around them.
// One arm a word: a condition that moved into the pattern would send the word on to the arms below.
#[allow(clippy::collapsible_match)]
pub(super) fn adjust(view: View, s: &mut Scores) {
    let word: &Word = view.word();
    let mut add = |noun: f32, verb: f32, adjective: f32| {
        s.noun += noun;
        s.verb += verb;
        s.adjective += adjective;
    };
    let left_be = view.left().is_some_and(|w| w.is_any(Classes::BE | Classes::LINKING | Classes::DEGREE));
    match word.lower.as_str() {
        "close" => {
            add(-1.2, 0.3, 0.6);
            if view.right_is(&["to", "by", "enough", "together", "behind", "friend", "friends"]) {
                add(0.0, -1.5, 2.5);
            }
            if view.right_is(&["of"]) && view.left_is(&["the"]) {
                add(2.0, 0.0, 0.0);
            }
            if view.right_is(&["at", "early", "soon", "for", "on"]) && !left_be {
                add(0.0, 2.0, 0.0);
            }
            // "Keep it close at hand."
            let kept = ["keep", "keeps", "keeping", "kept", "hold", "holds", "held", "bring", "pull"];
            if view.back().is_some_and(|v| v.left_is(&kept)) {
                add(-1.0, -3.0, 3.0);
            }
            if view.left_is(&[
                "so", "too", "very", "how", "as", "really", "pretty", "up", "come", "came", "get", "got",
                "stay", "this", "that",
            ]) {
                add(-1.0, -2.0, 2.0);
            }
        }
        "live" => {
            add(-3.0, 0.6, 0.6);
            if view.right_is(&[
                "in", "with", "on", "near", "alone", "there", "here", "together", "at", "under", "without",
                "by", "up", "long", "longer", "forever", "happily", "their", "his", "her", "our", "my",
                "your", "a", "without", "like", "next", "through",
            ]) {
                add(0.0, 1.6, 0.0);
            }
            if view.left_is(&[
                "go",
                "went",
                "going",
                "goes",
                "broadcast",
                "stream",
                "streamed",
                "streaming",
                "watch",
                "perform",
                "performed",
                "performing",
                "performs",
                "play",
                "played",
                "sing",
                "are",
                "is",
                "were",
                "was",
                "be",
                "played",
                "recorded",
                "shown",
                "aired",
                "now",
                "streams",
                "airs",
                "airing",
                "broadcasts",
                "plays",
                "sings",
                "runs",
            ]) {
                add(0.0, -3.0, 3.0);
            }
            if is_seen(view) {
                add(0.0, -4.0, 4.0);
            }
            if view.left_is(&["long", "who", "people", "and", "where", "we", "they", "i", "you"]) {
                add(0.0, 1.5, 0.0);
            }
        }
        "lives" => {
            if view.right_is(&[
                "in", "with", "on", "near", "alone", "there", "here", "at", "next", "by", "up", "under",
            ]) && !view.left().is_some_and(|w| {
                w.is_any(
                    Classes::DETERMINER
                        | Classes::POSSESSIVE
                        | Classes::NUMBER
                        | Classes::ADJECTIVE
                        | Classes::PREPOSITION,
                )
            }) {
                add(0.0, 2.0, 0.0);
            }
        }
        "minute" | "minutes" => {
            add(2.5, -4.0, -2.5);
            if view.right_is(&[
                "details",
                "detail",
                "amounts",
                "amount",
                "particles",
                "particle",
                "differences",
                "difference",
                "quantities",
                "quantity",
                "traces",
                "changes",
                "cracks",
                "fraction",
                "fractions",
                "creatures",
                "organisms",
                "variations",
            ]) {
                add(-2.0, 0.0, 6.0);
            }
            if view.left().is_some_and(|w| w.is_any(Classes::DEGREE) && !w.is_any(Classes::DETERMINER)) {
                add(0.0, 0.0, 3.0);
            }
            // "The differences are minute."
            let said_of = view.left_is(&["are", "is", "were", "was"]) && view.right().is_none();
            if said_of && word.lower == "minute" {
                add(0.0, 0.0, 4.0);
            }
        }
        "use" | "uses" => {
            // "Use two cups": a command, but "Use of force".
            let begins = view.word().before >= Break::Clause && word.lower == "use";
            if begins
                && view
                    .right()
                    .is_some_and(|w| !w.is_any(Classes::BE | Classes::PREPOSITION | Classes::MODAL))
            {
                add(-1.0, 2.5, 0.0);
            }
            // "the intended use"
            let described = view.left().is_some_and(|w| w.lower.ends_with("ed"));
            if described && view.back().and_then(|v| v.left()).is_some_and(|w| w.is_any(Classes::DETERMINER))
            {
                add(2.5, 0.0, 0.0);
            }
            if view.left_is(&["each", "every", "one", "first", "single", "next", "another"]) {
                add(2.0, -2.0, 0.0);
            }
            if view.left_is(&[
                "no", "any", "of", "in", "into", "make", "makes", "made", "making", "for", "the", "what's",
                "some",
            ]) {
                add(1.0, 0.0, 0.0);
            }
        }
        "content" => {
            add(0.6, -2.0, 0.0);
            if view.right_is(&["with", "to", "just"]) {
                add(-1.0, 0.0, 1.6);
            }
            if view.left().is_some_and(|w| w.is_any(Classes::DETERMINER | Classes::POSSESSIVE)) {
                add(1.5, 0.0, 0.0);
            }
        }
        "wound" | "wounds" => add(0.5, 0.0, 0.0),
        "present" => {
            add(0.0, -0.3, 0.5);
            if view.left_is(&["at"]) {
                add(2.0, -2.0, 0.0);
            }
        }
        "subject" => {
            if view.right_is(&["to"]) {
                add(0.5, -2.5, 1.5);
            }
        }
        "object" => {
            if view.right_is(&["to"]) {
                add(-0.5, 1.6, 0.0);
            }
        }
        "refuse" => add(-1.0, 0.8, 0.0),
        "excuse" => {
            if view.right_is(&["me", "us", "him", "her", "them", "my", "the", "for"]) {
                add(if view.right_is(&["for"]) { 2.0 } else { 0.0 }, 1.0, 0.0);
            }
        }
        "invalid" => add(-2.0, 0.0, 1.5),
        "perfect" => add(-0.5, -0.8, 1.5),
        "alternate"
            if view.word().before >= Break::Clause && view.right_is(&["between", "with", "sides"]) =>
        {
            add(-1.0, 4.0, 0.0);
        }
        "advocate"
            if view.right_is(&["for"]) && view.left_is(&["some", "many", "few", "they", "we", "others"]) =>
        {
            add(-2.0, 4.0, 0.0);
        }
        "separate" | "appropriate" | "elaborate" | "deliberate" | "moderate" | "approximate" | "intimate"
        | "alternate" | "articulate" | "legitimate" | "compact" | "animate" | "absent" | "frequent" => {
            add(-0.8, 0.0, 0.6);
            if left_be && view.right().is_none_or(|w| !w.is_any(Classes::DETERMINER)) {
                add(0.0, -0.5, 1.0);
            }
            if word.lower == "elaborate" && view.right_is(&["on", "further", "more"]) {
                add(0.0, 2.5, 0.0);
            }
        }
        "graduate" | "associate" | "delegate" | "advocate" | "duplicate" | "coordinate" => {
            if view.right_is(&["from", "with", "for"])
                && view.left().is_some_and(|w| w.is_any(Classes::MODAL | Classes::TO | Classes::SUBJECT))
            {
                add(0.0, 2.0, 0.0);
            }
        }
        "learned" => {
            let scholar = [
                "man",
                "woman",
                "men",
                "scholar",
                "scholars",
                "professor",
                "judge",
                "friend",
                "society",
                "society's",
                "journal",
                "people",
                "colleague",
                "counsel",
            ];
            if view.right_is(&scholar) {
                add(0.0, 0.0, 6.0);
            } else {
                add(0.0, 4.0, -6.0);
            }
        }
        "desert" | "deserts" | "entrance" | "buffet" | "essay" | "incense" | "console" | "document"
        | "mouth" | "house" | "mandate" | "regiment" | "segment" | "supplement" | "commune" | "premise"
        | "essays" | "documents" | "escort" | "merchandise" | "moped" | "bow" | "survey" | "surveys"
        | "offset" | "update" | "updates" => add(0.6, -0.8, 0.0),
        "dove" => {
            if view.right_is(&[
                "into",
                "in",
                "off",
                "under",
                "down",
                "deep",
                "right",
                "straight",
                "headfirst",
                "to",
                "for",
            ]) && !view.left_is(&["a", "the", "white"])
            {
                add(-2.0, 4.0, 0.0);
            }
        }
        "wind" | "winds" => {
            add(0.6, 0.0, 0.0);
            if view.right_is(&["up", "down", "through", "around", "along", "its", "back", "the"])
                && !view.left_is(&["the", "a", "this", "strong", "cold"])
            {
                add(0.0, 1.5, 0.0);
            }
        }
        "tear" | "tears" => {
            add(0.5, 0.0, 0.0);
            if view
                .right_is(&["up", "apart", "down", "off", "out", "it", "them", "open", "easily", "through"])
                && !view.left_is(&["the", "a", "in"])
            {
                add(0.0, 1.5, 0.0);
            }
        }
        "upset" | "overhead" => add(-1.0, 0.3, 1.0),
        "underground" => {
            // "they work underground", but "an underground train" and "the Underground".
            let named = view.left().is_some_and(|w| {
                w.is_any(Classes::DETERMINER | Classes::POSSESSIVE | Classes::PREPOSITION)
                    || w.text.starts_with(char::is_uppercase)
            });
            if !named {
                add(-3.0, 0.0, 1.0);
            }
        }
        "overall" => add(-0.5, -1.0, 1.0),
        "produce" => {
            if view.left_is(&["fresh", "local", "organic", "farm"]) {
                add(2.0, 0.0, 0.0);
            }
        }
        "read" => add(0.0, 1.0, 0.0),
        _ => {}
    }
}

/// Whether what is said to be "live" is watched, heard or shown: "watched it live", "catch the show live".
fn is_seen(view: View) -> bool {
    const REACH: usize = 5;
    #[rustfmt::skip]
    const SHOWN: &[&str] = &[
        "broadcast", "catch", "caught", "film", "filmed", "follow", "followed", "following", "hear", "heard", "perform", "performed",
        "performing", "play", "played", "playing", "record", "recorded", "saw", "see", "seeing", "seen", "show", "sing", "sang",
        "stream", "streamed", "streaming", "watch", "watched", "watches", "watching",
    ];
    let object = view.left().is_some_and(|w| {
        w.is_any(Classes::OBJECT) && w.lower != "you" || w.classes.is_open() && !w.is_any(Classes::SUBJECT)
    });
    let mut back = view.back();
    for _ in 0..REACH {
        let Some(at) = back.filter(|_| object) else { return false };
        let word = at.word();
        if SHOWN.contains(&word.lower.as_str()) {
            return true;
        }
        if word.is_any(
            Classes::RELATIVE | Classes::QUESTION | Classes::MODAL | Classes::TO | Classes::CONJUNCTION,
        ) {
            return false;
        }
        back = at.back();
    }
    false
}

impl Word {
    pub(super) fn is_any(&self, class: Classes) -> bool {
        self.classes.any(class)
    }
}

/// Whether "that" points ("that book", "about that") rather than joins ("I know that it rains").
pub(super) fn that_points(view: View) -> bool {
    let Some(right) = view.right() else { return true };
    let Some(left) = view.left() else {
        // "That is", "That book": a clause that begins with "that" points, unless a new subject follows.
        return !right.is_any(Classes::SUBJECT) || right.is_any(Classes::DETERMINER);
    };
    if left.is_any(Classes::PREPOSITION) && !matches!(left.lower.as_str(), "in" | "except" | "so" | "now") {
        return true;
    }
    if right.is_any(Classes::BE | Classes::HAVE | Classes::MODAL | Classes::PAST)
        && !right.is_any(Classes::SUBJECT)
    {
        // "the one that is" joins; "and that is", "is that a" points.
        return left.lower == "that"
            || left.is_any(Classes::CONJUNCTION | Classes::BE | Classes::MODAL | Classes::INVITING)
            || left.is_any(Classes::VERB | Classes::PAST)
                && !left.is_any(Classes::LINKING)
                && right.is_any(Classes::BE);
    }
    if right.is_any(Classes::SUBJECT | Classes::DETERMINER | Classes::POSSESSIVE) {
        return left.is_any(Classes::CONJUNCTION) && !right.is_any(Classes::SUBJECT);
    }
    if left.is_any(Classes::BE | Classes::MODAL | Classes::TO | Classes::CONJUNCTION | Classes::HAVE) {
        return true;
    }
    // "close that door.": a joined clause would go on after its subject.
    let ends = view.forth().is_some_and(|v| v.right().is_none());
    let says = right.lower.ends_with('s') || right.is_any(Classes::VERB | Classes::PAST);
    if ends && right.classes.is_open() && !says {
        return true;
    }
    let verb = left.is_any(Classes::VERB | Classes::PAST | Classes::INVITING);
    let singular =
        right.classes.is_open() && !right.lower.ends_with('s') && !right.text.starts_with(char::is_uppercase);
    verb && (singular
        || right.is_any(Classes::ADJECTIVE | Classes::PARTICLE | Classes::PREPOSITION | Classes::TO))
        || left.is_any(Classes::DETERMINER)
}

/// Whether "used" before "to" is the habit ("used to go", "I'm used to it") and not the tool ("is used to cut").
pub(super) fn used_is_habit(view: View) -> bool {
    if !view.right_is(&["to"]) {
        return false;
    }
    let Some(left) = view.left() else { return true };
    if !left.is_any(Classes::BE) {
        return !matches!(left.lower.as_str(), "commonly" | "often" | "widely" | "mainly" | "being");
    }
    // After a form of "be": used to a thing, or used to do something. The word after "to" decides.
    let after = view.forth().and_then(|v| v.forth());
    match after {
        Some(v) => {
            let w = v.word();
            w.lower.ends_with("ing")
                || w.is_any(Classes::DETERMINER | Classes::POSSESSIVE | Classes::OBJECT)
                || w.lower.ends_with('s') && !w.lower.ends_with("ss") && w.classes.is_open()
        }
        None => true,
    }
}
