//! Abbreviations by what stands around them: "Dr. Lee" and "Elm Dr.", "St. Ives" and "Main St.".

use super::scan::{Scan, Spoken};
use super::{numbers, units};

/// Expanded with or without a full stop.
const ALWAYS: &[(&str, &str)] = &[
    ("Mr", "Mister"),
    ("Mrs", "Missus"),
    ("Ms", "Miz"),
    ("Messrs", "Messieurs"),
    ("vs", "versus"),
    ("Blvd", "Boulevard"),
    ("Hwy", "Highway"),
    ("Pkwy", "Parkway"),
    ("approx", "approximately"),
    ("Approx", "Approximately"),
    ("dept", "department"),
    ("Dept", "Department"),
    ("govt", "government"),
    ("Govt", "Government"),
    ("Intl", "International"),
];

/// Expanded before a full stop.
const DOTTED: &[(&str, &str)] = &[
    ("Prof", "Professor"),
    ("Gen", "General"),
    ("Sen", "Senator"),
    ("Rep", "Representative"),
    ("Gov", "Governor"),
    ("Capt", "Captain"),
    ("Lt", "Lieutenant"),
    ("Col", "Colonel"),
    ("Sgt", "Sergeant"),
    ("Maj", "Major"),
    ("Cmdr", "Commander"),
    ("Adm", "Admiral"),
    ("Rev", "Reverend"),
    ("Hon", "Honorable"),
    ("Pres", "President"),
    ("Supt", "Superintendent"),
    ("Jr", "Junior"),
    ("Sr", "Senior"),
    ("Esq", "Esquire"),
    ("Inc", "Incorporated"),
    ("Ltd", "Limited"),
    ("Co", "Company"),
    ("Corp", "Corporation"),
    ("Bros", "Brothers"),
    ("Univ", "University"),
    ("Assn", "Association"),
    ("Mt", "Mount"),
    ("Ave", "Avenue"),
    ("Rd", "Road"),
    ("Ln", "Lane"),
    ("Ct", "Court"),
    ("Sq", "Square"),
    ("Apt", "Apartment"),
    ("Ste", "Suite"),
    ("etc", "et cetera"),
    ("cf", "compare"),
    ("viz", "namely"),
    ("avg", "average"),
    ("max", "maximum"),
    ("min", "minimum"),
    ("misc", "miscellaneous"),
    ("incl", "including"),
    ("excl", "excluding"),
    ("est", "established"),
    ("Est", "Established"),
    ("ca", "circa"),
    ("tel", "telephone"),
    ("Tel", "Telephone"),
    ("attn", "attention"),
    ("temp", "temperature"),
    ("Temp", "Temperature"),
    ("Ph", "P H"),
    ("intl", "international"),
    ("vol", "volume"),
    ("resp", "respectively"),
    ("pop", "population"),
    ("Bldg", "Building"),
    ("bldg", "building"),
    ("doz", "dozen"),
    ("ea", "each"),
    ("re", "regarding"),
    ("addr", "address"),
    ("avail", "available"),
];

/// Expanded before a number, with a full stop or without one.
const BEFORE_NUMBER: &[(&str, &str)] = &[
    ("No", "number"),
    ("no", "number"),
    ("Nos", "numbers"),
    ("Nr", "number"),
    ("Fig", "Figure"),
    ("fig", "figure"),
    ("Figs", "Figures"),
    ("figs", "figures"),
    ("Eq", "Equation"),
    ("eq", "equation"),
    ("Vol", "Volume"),
    ("vol", "volume"),
    ("Ch", "Chapter"),
    ("ch", "chapter"),
    ("Sec", "Section"),
    ("sec", "section"),
    ("p", "page"),
    ("pp", "pages"),
    ("pg", "page"),
    ("Art", "Article"),
    ("art", "article"),
    ("col", "column"),
    ("para", "paragraph"),
    ("ver", "version"),
    ("b", "born"),
    ("d", "died"),
    ("c", "circa"),
    ("ca", "circa"),
    ("ext", "extension"),
    ("Ext", "Extension"),
    ("Apt", "Apartment"),
    ("Ste", "Suite"),
    ("Rm", "Room"),
    ("FY", "fiscal year"),
    ("n", "note"),
    ("Op", "Opus"),
    ("op", "opus"),
    ("Rte", "Route"),
    ("Elev", "Elevation"),
    ("elev", "elevation"),
    ("avail", "available"),
];

/// Letters joined by full stops that are not simply spelled.
const INITIALS: &[(&str, &str)] = &[
    ("e.g", "for example"),
    ("i.e", "that is"),
    ("a.k.a", "also known as"),
    ("n.b", "note"),
    ("w.r.t", "with respect to"),
    ("b.i.d", "twice a day"),
    ("t.i.d", "three times a day"),
    ("q.i.d", "four times a day"),
];

/// `Dr.`, `St.`, `e.g.`, `Inc.`, `U.S.`, `p. 12`, `Portland, OR`.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    let word = scan.word(i)?;
    if !scan.starts(i) && !scan.is_mark(i.wrapping_sub(1), "/-°′″") {
        return None;
    }
    if scan.span(i, i + 3) == "p.o" {
        // "P.O." is the post office.
        return Spoken::new(i + 3 + usize::from(scan.is_mark(i + 3, ".")), "by mouth");
    }
    if let Some(initials) = initials(scan, i) {
        return Some(initials);
    }
    let dotted = scan.is_mark(i + 1, ".");
    let next = i + 1 + usize::from(dotted);
    if !scan.ends(next) {
        return None;
    }
    if let Some(words) = by_context(scan, i, word, next, dotted) {
        return Spoken::new(next, words);
    }
    let find = |table: &[(&str, &'static str)]| {
        table.iter().find(|(short, _)| *short == word).map(|&(_, long)| long)
    };
    let number_at = scan.skip_space(next);
    let number_at = number_at + usize::from(scan.is_mark(number_at, "("));
    let numbered = scan.digits(number_at).is_some() && (dotted || matches!(word, "No" | "pp" | "Fig" | "FY"));
    if numbered && let Some(long) = find(BEFORE_NUMBER) {
        return Spoken::new(next, long);
    }
    if let Some(long) = find(ALWAYS) {
        return Spoken::new(next, long);
    }
    // "320 pp."
    if word == "pp" && i >= 2 && scan.is_space(i - 1) && scan.digits(i - 2).is_some() {
        return Spoken::new(next, "pages");
    }
    // At the end of a clause the full stop may be just that: "The max." and "Be there at ten min."
    let ends = scan.is_last(next);
    if dotted
        && let Some(long) = find(DOTTED)
        && !(ends
            && matches!(word, "min" | "max" | "est" | "temp" | "Co" | "ca" | "Gen" | "Rep" | "Col" | "vol"))
    {
        return Spoken::new(next, long);
    }
    None
}

/// `e.g.`, `U.S.`, `J.R.R.`, `Ph.D.`, `a.m.`: one or two letters between full stops.
fn initials(scan: &Scan, i: usize) -> Option<Spoken> {
    let short = |k: usize| scan.word(k).is_some_and(|w| w.chars().count() <= 2);
    let mut next = i;
    let mut letters = 0;
    while short(next)
        && !(letters > 1 && scan.is_word(next, "s"))
        && scan.is_mark(next + 1, ".")
        && letters < 12
    {
        letters += 1;
        next += 2;
    }
    // "e.g" and "U.S" without their last full stop.
    if letters > 0
        && !(letters > 1 && scan.is_word(next, "s"))
        && scan.word(next).is_some_and(|w| w.chars().count() == 1)
    {
        next += 1;
        letters += 1;
    }
    // "Ph.D.s"
    let plural = letters > 1 && scan.is_word(next, "s") && scan.ends(next + 1);
    if letters == 0 || !plural && !scan.ends(next) {
        return None;
    }
    let key = scan.span(i, next).trim_end_matches('.');
    if let Some((_, long)) = INITIALS.iter().find(|(short, _)| short.eq_ignore_ascii_case(key)) {
        return Spoken::new(next, *long);
    }
    // "74.0° W." is a direction, and its full stop the sentence's.
    if letters == 1
        && (scan.is_mark(i.wrapping_sub(2), "°") || scan.is_mark(i.wrapping_sub(1), "°"))
        && "NSEW".contains(key)
    {
        return Spoken::new(i + 1, direction(key));
    }
    // "1200 N. Main St.", "42 W. 5th St."
    let numbered = i >= 2 && scan.is_space(i - 1) && scan.digits(i - 2).is_some();
    let goes_on = scan.word(next + 1).is_some_and(|w| w.starts_with(char::is_uppercase))
        || scan.word(next + 2).is_some_and(is_ordinal_ending);
    if letters == 1 && "NSEW".contains(key) && numbered && scan.is_space(next) && goes_on {
        return Spoken::new(next, direction(key));
    }
    if letters == 1 {
        // An initial: "J. R. Hall". At the end of a clause it is a word.
        let initial = key.len() == 1 && key.starts_with(char::is_uppercase) && !scan.is_last(next);
        return if initial { Spoken::new(next, key) } else { None };
    }
    // A host or file name is not spelled: "a.b.example".
    let single = |w: &str| w.chars().count() == 1 || matches!(w, "Ph" | "Sc" | "Ed" | "Eng");
    (i..next).step_by(2).all(|k| scan.word(k).is_some_and(single)).then_some(())?;
    let possessive = scan.is_mark(next, "'") && scan.is_word(next + 1, "s");
    let words = super::acronyms::spell(key, if possessive || plural { "'s" } else { "" });
    Spoken::new(next + 2 * usize::from(possessive) + usize::from(plural), words)
}

fn by_context(scan: &Scan, i: usize, word: &str, next: usize, dotted: bool) -> Option<String> {
    let capital = |w: Option<&str>| w.is_some_and(|w| w.starts_with(char::is_uppercase));
    let named_next = capital(scan.word_after(next));
    let before = scan.word_before(i);
    let street_before = capital(before) || i >= 2 && has_ordinal_before(scan, i);
    match word {
        "Dr" if scan.is_mark(next + 1, "&") && scan.digits(i.wrapping_sub(2)).is_none() => {
            Some("Doctor".into())
        }
        "c" if dotted && before.is_some_and(is_ordinal_ending) => Some("century".into()),
        "Dr" if named_next && !(street_before && has_house_number(scan, i)) => Some("Doctor".into()),
        "Dr" if street_before => Some("Drive".into()),
        "Dr" => Some("Doctor".into()),
        "St" => {
            let street = street_before && (!named_next || has_house_number(scan, i) || is_street(before));
            Some(if street { "Street" } else { "Saint" }.into())
        }
        "Ft" if named_next => Some("Fort".into()),
        "Pl" if dotted && street_before => Some("Place".into()),
        "Mt" if named_next => Some("Mount".into()),
        "Jr" | "Sr" if capital(before) || scan.is_mark(i.wrapping_sub(2), ",") => {
            Some(if word == "Jr" { "Junior" } else { "Senior" }.into())
        }
        "no" | "No" if dotted && before.is_some_and(|w| COUNTED.contains(&w.to_lowercase().as_str())) => {
            Some("number".into())
        }
        "al" if dotted && before == Some("et") => Some("al".into()),
        "v" if capital(before) && named_next => Some("versus".into()),
        "Ave" | "Rd" | "Ln" | "Ct" if capital(before) && has_house_number(scan, i) => {
            DOTTED.iter().find(|(short, _)| *short == word).map(|&(_, long)| long.to_string())
        }
        "N" | "S" | "E" | "W" | "NE" | "NW" | "SE" | "SW" if is_direction(scan, i, next, named_next) => {
            Some(direction(word).into())
        }
        "min" | "max" if dotted && scan.digits(scan.skip_space(next)).is_some() => {
            Some(if word == "min" { "minimum" } else { "maximum" }.into())
        }
        _ if before == Some("per") => units::singular(word, scan.locale),
        "MD" if (i.saturating_sub(12)..i).any(|k| matches!(scan.text(k), "Dr" | "Doctor")) => {
            Some("M D".into())
        }
        _ if word.len() == 2 && (!dotted || scan.is_last(next)) && in_place_name(scan, i, next) => {
            state(word).map(str::to_string)
        }
        _ => None,
    }
}

/// What is numbered: "tel. no. is", "account no."
#[rustfmt::skip]
const COUNTED: &[&str] = &[
    "account", "acct", "flight", "invoice", "item", "model", "order", "part", "phone", "registration", "room", "serial", "tel",
    "telephone",
];

/// "Wall St. Journal": a street although a name follows.
fn is_street(before: Option<&str>) -> bool {
    matches!(
        before,
        Some("Wall" | "Main" | "Elm" | "Oak" | "High" | "Bourbon" | "State" | "Baker" | "Downing" | "Broad")
    )
}

/// "123 Old Elm": a number within the four words before.
fn has_house_number(scan: &Scan, i: usize) -> bool {
    let mut j = i;
    for _ in 0..4 {
        let Some(k) = j.checked_sub(2) else { return false };
        if !scan.is_space(j - 1) {
            return false;
        }
        if scan.digits(k).is_some() {
            return true;
        }
        if scan.word(k).is_none_or(|w| w.starts_with(char::is_lowercase) && !is_ordinal_ending(w)) {
            return false;
        }
        if k > 0 && scan.digits(k - 1).is_some() {
            return true;
        }
        j = k;
    }
    false
}

fn is_ordinal_ending(word: &str) -> bool {
    matches!(word, "st" | "nd" | "rd" | "th")
}

/// "42nd St.": an ordinal right before.
fn has_ordinal_before(scan: &Scan, i: usize) -> bool {
    scan.is_space(i - 1) && scan.word(i - 2).is_some_and(is_ordinal_ending)
}

fn is_direction(scan: &Scan, i: usize, next: usize, named_next: bool) -> bool {
    if scan.is_mark(i.wrapping_sub(2), "°′″") || scan.is_mark(i.wrapping_sub(1), "°′″") {
        return true;
    }
    // "winds NW 10 mph", "SW 5th"
    let number_next = scan.is_space(next) && scan.digits(next + 1).is_some();
    let blown = matches!(scan.word_before(i), Some("wind" | "winds" | "Wind" | "Winds" | "heading"));
    if number_next && (blown || scan.word(next + 2).is_some_and(is_ordinal_ending)) {
        return true;
    }
    let number_before = i >= 2 && scan.is_space(i - 1) && scan.digits(i - 2).is_some();
    let street_before = matches!(
        scan.word_before(i),
        Some("St" | "Ave" | "Blvd" | "Rd" | "Street" | "Avenue" | "Road" | "Boulevard" | "Drive" | "Lane")
    );
    number_before && named_next || street_before && scan.ends(next)
}

fn direction(word: &str) -> &'static str {
    match word {
        "N" => "North",
        "S" => "South",
        "E" => "East",
        "W" => "West",
        "NE" => "Northeast",
        "NW" => "Northwest",
        "SE" => "Southeast",
        _ => "Southwest",
    }
}

/// "Portland, OR": a capitalised word and a comma before, the end or a postal code after.
fn in_place_name(scan: &Scan, i: usize, next: usize) -> bool {
    let comma = i >= 3 && scan.is_space(i - 1) && scan.is_mark(i - 2, ",");
    let place = comma
        && scan
            .word(i - 3)
            .is_some_and(|w| w.starts_with(char::is_uppercase) && w.chars().any(char::is_lowercase));
    let zip = scan.is_space(next) && scan.digits(next + 1).is_some_and(|d| d.len() == 5);
    zip || place && !scan.word_after(next).is_some_and(|w| w.starts_with(char::is_uppercase))
}

/// House numbers: "221B Baker Street", "1600 Pennsylvania Ave." are said in pairs.
pub(super) fn house_number(scan: &Scan, i: usize) -> Option<Spoken> {
    let number = scan.digits(i).filter(|d| d.len() <= 5)?;
    if !scan.starts(i) {
        return None;
    }
    let letter = scan.word(i + 1).filter(|w| w.len() == 1 && w.starts_with(|c: char| c.is_ascii_uppercase()));
    let mut j = i + 1 + usize::from(letter.is_some());
    let next = j;
    for _ in 0..4 {
        if !scan.is_space(j) {
            return None;
        }
        j += 1;
        if scan.digits(j).is_some() {
            // "350 5th Ave"
            j += 1;
            scan.word(j).filter(|w| is_ordinal_ending(w))?;
        } else {
            let word = scan.word(j)?;
            if !word.starts_with(char::is_uppercase) {
                return None;
            }
            if j > next + 1 && STREETS.contains(&word) {
                let mut words = numbers::code(number, scan.locale);
                if let Some(letter) = letter {
                    words = format!("{words} {letter}");
                }
                return Spoken::new(next, words);
            }
        }
        j += 1;
        j += usize::from(scan.is_mark(j, "."));
    }
    None
}

#[rustfmt::skip]
const STREETS: &[&str] = &[
    "Street", "St", "Avenue", "Ave", "Road", "Rd", "Drive", "Dr", "Lane", "Ln", "Boulevard", "Blvd", "Court",
    "Ct", "Place", "Pl", "Square", "Sq", "Way", "Parkway", "Pkwy", "Terrace", "Circle", "Highway", "Hwy",
    "Row",
];

/// The US state behind a postal abbreviation.
pub(super) fn state(code: &str) -> Option<&'static str> {
    STATES.iter().find(|(short, _)| *short == code).map(|&(_, name)| name)
}

#[rustfmt::skip]
const STATES: &[(&str, &str)] = &[
    ("AL", "Alabama"), ("AK", "Alaska"), ("AZ", "Arizona"), ("AR", "Arkansas"), ("CA", "California"),
    ("CO", "Colorado"), ("CT", "Connecticut"), ("DE", "Delaware"), ("DC", "D C"), ("FL", "Florida"),
    ("GA", "Georgia"), ("HI", "Hawaii"), ("ID", "Idaho"), ("IL", "Illinois"), ("IN", "Indiana"), ("IA", "Iowa"),
    ("KS", "Kansas"), ("KY", "Kentucky"), ("LA", "Louisiana"), ("ME", "Maine"), ("MD", "Maryland"),
    ("MA", "Massachusetts"), ("MI", "Michigan"), ("MN", "Minnesota"), ("MS", "Mississippi"), ("MO", "Missouri"),
    ("MT", "Montana"), ("NE", "Nebraska"), ("NV", "Nevada"), ("NH", "New Hampshire"), ("NJ", "New Jersey"),
    ("NM", "New Mexico"), ("NY", "New York"), ("NC", "North Carolina"), ("ND", "North Dakota"), ("OH", "Ohio"),
    ("OK", "Oklahoma"), ("OR", "Oregon"), ("PA", "Pennsylvania"), ("RI", "Rhode Island"), ("SC", "South Carolina"),
    ("SD", "South Dakota"), ("TN", "Tennessee"), ("TX", "Texas"), ("UT", "Utah"), ("VT", "Vermont"),
    ("VA", "Virginia"), ("WA", "Washington"), ("WV", "West Virginia"), ("WI", "Wisconsin"), ("WY", "Wyoming"),
];
