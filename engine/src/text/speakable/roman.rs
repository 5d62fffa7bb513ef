//! Roman numerals, which are letters unless what stands before makes them numbers.

use super::numbers;
use super::scan::{Scan, Spoken};

/// Nouns that are numbered: "Chapter IV", "World War II".
#[rustfmt::skip]
const HEADS: &[&str] = &[
    "Act", "Annex", "Apollo", "Appendix", "Article", "Bowl", "Book", "Chapter", "Class", "Clause", "Division", "Episode",
    "Factor", "Fantasy", "Figure", "Form", "Grade", "Group", "Level", "Mark", "Mk", "Number", "Olympiad", "Part", "Phase",
    "Quarter", "Region", "Rocky", "Saturn", "Scene", "Schedule", "Section", "Series", "Session", "Stage", "Step",
    "Table", "Tier", "Title", "Type", "Unit", "Vatican", "Vol", "Volume", "War", "Wars",
];

/// The same in lower case, for numerals that can't be a word or a letter.
const SMALL_HEADS: &[&str] =
    &["act", "chapter", "class", "grade", "level", "part", "phase", "stage", "type", "vol", "volume"];

/// Given names of which rulers are counted: "Henry VIII".
#[rustfmt::skip]
const REGNAL: &[&str] = &[
    "Albert", "Alexander", "Alfonso", "Benedict", "Boniface", "Carlos", "Catherine", "Charles", "Christian", "Clement",
    "Constantine", "Cyrus", "Darius", "Edward", "Elizabeth", "Felipe", "Ferdinand", "Francis", "Frederick", "George",
    "Gregory", "Gustav", "Haakon", "Harald", "Henry", "Innocent", "Isabella", "Ivan", "James", "John", "Juan", "Julius",
    "Karl", "Leo", "Leopold", "Louis", "Margrethe", "Mary", "Maximilian", "Mehmed", "Napoleon", "Nicholas", "Olav", "Otto",
    "Paul", "Pedro", "Peter", "Philip", "Philippe", "Pius", "Ptolemy", "Ramesses", "Ramses", "Richard", "Robert", "Rudolf",
    "Sixtus", "Suleiman", "Thutmose", "Umberto", "Urban", "Victor", "Wilhelm", "William", "Xerxes",
];

const TITLES: &[&str] =
    &["King", "Queen", "Pope", "Emperor", "Empress", "Tsar", "Czar", "Kaiser", "Prince", "Pharaoh", "Sultan"];

/// What can follow "Elizabeth I" but not "I" the pronoun.
const AFTER_FIRST: &[&str] =
    &["of", "was", "reigned", "ruled", "died", "became", "who", "and", "in", "is", "died"];

/// `Chapter IV`, `Henry VIII`, `World War II`, `XIV`, `MMXXIV`.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    let word = scan.word(i)?;
    let (numeral, possessive) = match word.strip_suffix("'s") {
        Some(stem) => (stem, "'s"),
        None => (word, ""),
    };
    // "Act III, Scene ii"; "i" alone is a number there too, other small letters are not.
    let small = numeral.bytes().all(|b| b"ivx".contains(&b)) && (numeral.len() > 1 || numeral == "i");
    if small && matches!(scan.word_before(i), Some("Scene" | "Act" | "Part" | "Chapter" | "Book" | "Section"))
    {
        let value = value(&numeral.to_uppercase())?;
        return Spoken::new(i + 1, numbers::cardinal(&value.to_string(), scan.locale));
    }
    let value = value(numeral)?;
    if !scan.starts(i) || !scan.ends(i + 1) {
        return None;
    }
    let before = scan.word_before(i).unwrap_or_default();
    let single = numeral.len() == 1;
    let cardinal = || numbers::integer(&value.to_string(), scan.locale);
    let spoken = |words: String| Spoken::new(i + 1, format!("{words}{possessive}"));
    // "Xbox Series X"
    if before == "Series" && numeral == "X" {
        return None;
    }
    if HEADS.contains(&before) || !single && SMALL_HEADS.contains(&before) {
        return spoken(cardinal());
    }
    if REGNAL.contains(&before) && is_regnal(scan, i, numeral) {
        return spoken(format!("the {}", numbers::ordinal(&value.to_string(), scan.locale)));
    }
    if single {
        return None;
    }
    let year = numeral.len() >= 4 && numeral.starts_with('M') && (1500..2100).contains(&value);
    let small = numeral.bytes().all(|b| b"IVX".contains(&b));
    let capital = before.starts_with(char::is_uppercase);
    // "IV drip", "VI editor", "XX" and the like stay letters unless a name stands before.
    let ambiguous = matches!(numeral, "IV" | "VI" | "XX" | "XI" | "II" | "IX");
    if year || small && (!ambiguous || capital && !before.chars().nth(1).is_some_and(char::is_uppercase)) {
        return spoken(cardinal());
    }
    None
}

fn is_regnal(scan: &Scan, i: usize, numeral: &str) -> bool {
    if numeral != "I" {
        return true;
    }
    // "Elizabeth I was" is the queen, "Henry I think" is not.
    let titled = i >= 4 && scan.word_before(i - 2).is_some_and(|w| TITLES.contains(&w));
    titled || scan.is_last(i + 1) || scan.is_mark(i + 1, ",;:)") || {
        scan.word_after(i + 1).is_some_and(|w| AFTER_FIRST.contains(&w))
    }
}

/// The value of a well-formed numeral in capitals, up to 3999.
fn value(numeral: &str) -> Option<u32> {
    const PARTS: [(&str, u32); 13] = [
        ("M", 1000),
        ("CM", 900),
        ("D", 500),
        ("CD", 400),
        ("C", 100),
        ("XC", 90),
        ("L", 50),
        ("XL", 40),
        ("X", 10),
        ("IX", 9),
        ("V", 5),
        ("IV", 4),
        ("I", 1),
    ];
    if numeral.is_empty() || numeral.len() > 15 || !numeral.bytes().all(|b| b"IVXLCDM".contains(&b)) {
        return None;
    }
    let (mut rest, mut value) = (numeral, 0);
    for (part, worth) in PARTS {
        while let Some(tail) = rest.strip_prefix(part) {
            (rest, value) = (tail, value + worth);
        }
    }
    // Well-formed is what writing the value gives again.
    let (mut written, mut left) = (String::new(), value);
    for (part, worth) in PARTS {
        while left >= worth {
            written.push_str(part);
            left -= worth;
        }
    }
    (rest.is_empty() && value < 4000 && written == numeral).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_numerals_count() {
        assert_eq!(value("XIV"), Some(14));
        assert_eq!(value("MCMXCIX"), Some(1999));
        for bad in ["IIII", "VV", "IC", "", "ABC", "XIVI"] {
            assert_eq!(value(bad), None, "{bad}");
        }
    }
}
