//! Abbreviations that a full stop belongs to, by whether a sentence can end with them.

/// What the full stop after a known abbreviation can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Abbreviation {
    /// Something always follows: "e.g.", "Mr.".
    Inner,
    /// A name follows, unless a name stood before ("Dr. Lee", "Elm Dr. It is"): an end only there.
    TitleOrStreet,
    /// A number follows, or the sentence ends: "No. 5", "fig. 3".
    BeforeNumber,
    /// Can end a sentence, but a name often follows: "the U.S. Senate", "Acme Inc. Then".
    MayEnd,
    /// A capital after it starts a sentence: "etc."
    EndsAtCapital,
    /// A time of day: the end unless a weekday, month or time zone follows.
    DayHalf,
    /// A month or weekday: a number follows, or a name, or the end.
    Calendar,
}

/// Looks a word up, given without its last full stop, in any case ("E.G", "dr").
pub(super) fn classify(word: &str) -> Option<Abbreviation> {
    use Abbreviation::*;
    if word.is_empty() || word.len() > 10 {
        return None;
    }
    let lower = word.to_lowercase();
    let is = |list: &[&str]| list.contains(&lower.as_str());
    if is(INNER) {
        Some(Inner)
    } else if is(&["dr", "st", "ste", "pl", "ct"]) && word.starts_with(char::is_uppercase) {
        Some(TitleOrStreet)
    } else if is(BEFORE_NUMBER) && (word.len() > 1 || word == lower) {
        // "p. 12", but "J. P. Hall"
        Some(BeforeNumber)
    } else if is(&["etc", "et al", "al"]) {
        Some(EndsAtCapital)
    } else if is(&["a.m", "p.m", "am", "pm"]) && (word.contains('.') || lower == word) {
        // "am." alone ends "I am."; only with an inner full stop is it surely a time.
        word.contains('.').then_some(DayHalf)
    } else if is(CALENDAR) && word.starts_with(char::is_uppercase) {
        Some(Calendar)
    } else if is(MAY_END) {
        Some(MayEnd)
    } else {
        None
    }
}

const INNER: &[&str] = &[
    "e.g", "eg", "i.e", "ie", "viz", "vs", "v", "cf", "mr", "mrs", "ms", "mx", "messrs", "prof", "gen",
    "sen", "rep", "gov", "capt", "cpt", "lt", "col", "sgt", "maj", "cmdr", "adm", "rev", "hon", "pres",
    "supt", "fr", "mt", "approx", "ca", "est", "op", "n.b", "tel", "attn", "mme", "mlle", "resp", "incl",
    "excl",
];

const BEFORE_NUMBER: &[&str] = &[
    "no", "nos", "nr", "fig", "figs", "eq", "eqs", "vol", "vols", "ch", "chap", "sec", "p", "pp", "pg",
    "art", "para", "pop", "b", "d", "bldg", "hwy", "rte", "ver", "c", "ext", "ex", "apt", "rm", "avail",
    "elev", "addr", "n",
];

const CALENDAR: &[&str] = &[
    "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "mon", "tue",
    "tues", "wed", "thu", "thur", "thurs", "fri", "sat",
];

const MAY_END: &[&str] = &[
    "jr", "sr", "esq", "inc", "ltd", "co", "corp", "llc", "plc", "bros", "dept", "univ", "assn", "govt",
    "intl", "ave", "blvd", "rd", "ln", "pkwy", "sq", "ft", "in", "yd", "lb", "lbs", "oz", "hr", "hrs", "min",
    "mins", "sec", "secs", "max", "avg", "ph.d", "phd", "b.c", "a.d", "b.c.e", "c.e", "d.c", "u.s", "u.k",
    "u.n", "e.u", "u.s.a", "r.i.p", "p.s", "a.k.a", "misc", "temp", "gal", "tbsp", "tsp", "mi", "doz",
];
// "in." and "sec." and "co." end sentences as words do; the next word decides.

/// Whether an abbreviation is a unit, of which a smaller one may follow.
pub(super) fn is_measure(word: &str) -> bool {
    #[rustfmt::skip]
    const MEASURES: &[&str] = &[
        "ft", "yd", "mi", "lb", "lbs", "hr", "hrs", "min", "mins", "gal", "tbsp",
    ];
    MEASURES.contains(&word.to_lowercase().as_str())
}

/// Whether an abbreviation tells what the number behind it is: "max. 1,200 mg".
pub(super) fn precedes_number(word: &str) -> bool {
    matches!(word.to_lowercase().as_str(), "max" | "avg" | "temp" | "dept")
}

/// Whether a word is a shortened book of which chapters are cited: "1 Cor. 13:4". Many are names as well.
pub(super) fn is_book(word: &str) -> bool {
    #[rustfmt::skip]
    const BOOKS: &[&str] = &[
        "Chron", "Col", "Cor", "Dan", "Deut", "Eccl", "Eph", "Ex", "Exod", "Ezek", "Gal", "Gen", "Heb", "Hos", "Isa", "Jas", "Jer",
        "Jn", "Josh", "Judg", "Lev", "Lk", "Mal", "Matt", "Mk", "Mt", "Neh", "Pet", "Phil", "Prov", "Ps", "Rev", "Rom", "Sam",
        "Thess", "Tim", "Zech",
    ];
    BOOKS.contains(&word)
}

/// Words that start sentences and are hardly ever part of a name.
#[rustfmt::skip] // a list, not a column
const STARTERS: &[&str] = &[
    "a", "about", "after", "all", "also", "although", "an", "and", "another", "any", "are", "as", "at", "be",
    "because", "before", "both", "but", "by", "can", "could", "did", "do", "does", "don't", "during", "each",
    "even", "every", "everyone", "everything", "few", "finally", "first", "for", "from", "had", "has", "have",
    "he", "her", "here", "his", "how", "however", "i", "i'd", "i'll", "i'm", "i've", "if", "in", "instead",
    "is", "it", "it's", "its", "just", "let", "let's", "many", "maybe", "meanwhile", "more", "most", "my",
    "never", "next", "no", "nobody", "not", "nothing", "now", "of", "often", "on", "once", "one", "only",
    "or", "other", "our", "perhaps", "please", "several", "she", "should", "since", "so", "some", "sometimes",
    "soon", "still", "such", "that", "that's", "the", "their", "then", "there", "there's", "therefore",
    "these", "they", "they're", "this", "those", "though", "three", "thus", "to", "today", "tomorrow", "two",
    "under", "unless", "unlike", "until", "was", "we", "we'll", "we're", "were", "what", "what's", "when",
    "where", "which", "while", "who", "why", "will", "with", "without", "would", "yes", "yesterday", "yet",
    "you", "you'll", "you're", "your",
];

/// Whether `word` (any case) is a common first word of a sentence.
pub(super) fn starts_sentences(word: &str) -> bool {
    let word = word.to_lowercase();
    let known = |word: &str| STARTERS.binary_search(&word).is_ok();
    // "She's", "There'll"
    known(&word) || word.split_once('\'').is_some_and(|(stem, _)| known(stem))
}

/// What may follow "9 a.m." inside the sentence although it has a capital.
#[rustfmt::skip] // a list, not a column
const AFTER_TIME: &[&str] = &[
    "april", "august", "bst", "cdt", "central", "cest", "cet", "cst", "december", "eastern", "edt", "est",
    "et", "february", "friday", "gmt", "ist", "january", "jst", "july", "june", "march", "may", "mdt",
    "monday", "mountain", "mst", "november", "october", "pacific", "pdt", "pst", "pt", "saturday",
    "september", "sunday", "thursday", "tuesday", "utc", "wednesday",
];

/// Whether `word` (any case) names a day, month or time zone.
pub(super) fn follows_time(word: &str) -> bool {
    AFTER_TIME.binary_search(&word.to_lowercase().as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_for_the_search() {
        assert!(STARTERS.is_sorted());
        assert!(AFTER_TIME.is_sorted());
    }

    #[test]
    fn classifies_by_spelling() {
        assert_eq!(classify("e.g"), Some(Abbreviation::Inner));
        assert_eq!(classify("Dr"), Some(Abbreviation::TitleOrStreet));
        assert_eq!(classify("A.M"), Some(Abbreviation::DayHalf));
        assert_eq!(classify("am"), None);
        assert_eq!(classify("dr"), None);
        assert_eq!(classify("sat"), None);
        assert_eq!(classify("fine"), None);
    }
}
