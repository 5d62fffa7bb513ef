//! Words that join clauses, and those that hold on to their neighbours.

/// Words before which a long sentence may be cut.
#[rustfmt::skip]
pub(super) const CONJUNCTIONS: &[&str] = &[
    "after", "although", "and", "as", "because", "before", "but", "for", "if", "nor", "or", "since", "so",
    "that", "then", "though", "unless", "until", "when", "where", "whereas", "which", "while", "who", "with",
    "yet",
];

/// Words that cling to what stands before the comma.
#[rustfmt::skip]
pub(super) const CLINGING: &[&str] = &[
    "e.g", "i.e", "etc", "jr", "sr", "inc", "ltd", "llc", "esq", "ph.d", "too", "though", "please", "right", "okay", "either", "respectively",
];

/// Whether the conjunction that `after` begins with starts a clause of its own, as a speaker takes breath before it.
pub(super) fn starts_clause(before: &[char], after: &[char]) -> bool {
    let words = |text: &[char]| text.iter().collect::<String>().to_lowercase();
    let (before, after) = (words(before), words(after));
    let last = before.split_whitespace().next_back().unwrap_or_default();
    let mut next = after.split_whitespace();
    let (conjunction, follower) = (next.next().unwrap_or_default(), next.next().unwrap_or_default());
    let clinging = TIED.contains(&last);
    match conjunction {
        // "you and I"
        "and" | "but" | "so" | "or" if !matches!(last, "he" | "i" | "she" | "they" | "we" | "you") => {
            CLAUSE_STARTERS.contains(&follower.trim_end_matches(','))
        }
        "that" => !clinging && !matches!(last, "so" | "such" | "all" | "on" | "like"),
        "after" | "although" | "because" | "before" | "if" | "since" | "though" | "unless" | "until"
        | "when" | "where" | "whereas" | "which" | "while" | "who" => !clinging,
        _ => false,
    }
}

/// Words that hold on to the conjunction behind them: "even if", "in which", "is that".
#[rustfmt::skip]
const TIED: &[&str] = &[
    "about", "and", "are", "as", "at", "be", "but", "by", "even", "ever", "exactly", "except", "for", "from", "in", "is", "just",
    "know", "knows", "like", "long", "not", "of", "on", "only", "or", "right", "see", "shortly", "soon", "than", "the", "to",
    "was", "were", "with",
];

/// Words that begin a clause behind "and", "but", "or" and "so". An article there is as often one of a pair of nouns.
#[rustfmt::skip]
const CLAUSE_STARTERS: &[&str] = &[
    "are", "can", "could", "did", "do", "does", "had", "has", "have", "he", "he's", "how", "i", "i'll", "i'm", "is", "it", "it's",
    "may", "she", "she's", "should", "then", "there", "there's", "they", "they're", "was", "we", "we'll", "we're", "were", "will",
    "would", "you", "you'll", "you're",
];
