//! Initialisms are spelled, acronyms are words, and capitals can be mere emphasis.
//!
//! A spelled letter stands by itself as a capital, the plural of the last one with an apostrophe:
//! "URLs" is "U R L's". No lexicon reads that wrongly, and a run of single capitals can still be
//! joined again by whoever has a better sound for the whole.

use super::numbers;
use super::scan::{Scan, Spoken};

/// Said as words although they are written in capitals.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "AIDS", "ALGOL", "ANOVA", "ANSI", "APEC", "ASCII", "ASEAN", "AWOL", "BASIC", "BERT", "BIOS", "BRICS", "CAD",
    "CAM", "CAPTCHA", "CERN", "CES", "COBOL", "COVID", "CRISPR", "CRUD", "DARPA", "DRAM", "DREAM", "EPROM", "EULA",
    "FEMA", "FIFA", "FIFO", "FOMO", "FORTRAN", "GAAP", "GAN", "GIF", "GIMP", "GUI", "HIPAA", "HUD", "ICE",
    "IKEA", "IMAX", "ISIS", "JPEG", "JSON", "LAN", "LAPACK", "LASER", "LASIK", "LED", "LEED", "LEGO", "LIDAR", "LIFO",
    "LLAMA", "LOL", "MADD", "MERS", "MIDI", "MIPS", "MOOC", "MOSFET", "MPEG", "NAFTA", "NASA", "NASCAR", "NASDAQ",
    "NATO", "NIMBY", "NOAA", "NORAD", "NVIDIA", "OPEC", "OSHA", "PETA", "PIN", "POTUS", "PAC", "QWERTY", "RADAR",
    "RAID", "RAM", "REPL", "REST", "RISC", "ROM", "SALT", "SARS", "SAT", "SCOTUS", "SCUBA", "SEAL", "SIM", "SNAP",
    "SOAP", "SONAR", "SRAM", "SWAT", "SWOT", "TASER", "TED", "TIFF", "UEFA", "UNESCO", "UNICEF", "VRAM", "WAN",
    "WASP", "WHO", "WYSIWYG", "YAML", "YOLO", "ZIP",
];

/// Spelled although they could be said.
#[rustfmt::skip]
const SPELLED: &[&str] = &[
    "AARP", "ACLU", "ADHD", "AKA", "API", "ARIA", "ASAP", "ASMR", "AWACS", "BIPOC", "BYOB", "CEO", "CFO", "CIA", "COO",
    "CSIRO", "CTO", "ISBN", "ISSN", "DIY", "DNA", "DOA", "DUI", "ECMA", "EPA", "ESPN", "ETA", "FAQ", "FAA", "FBI", "FDA", "FOIA",
    "FYI", "GDPR", "HIV", "HOA", "IBM", "ICU", "IMDB", "INTJ", "IOU", "IPO", "IRA", "IRS", "IVF", "LGBT", "MBA",
    "MIT", "MOMA", "NBA", "NCAA", "NGO", "NIH", "NPR", "NSA", "OCD", "OECD", "OEM", "OLED", "OMG", "OS", "PTA", "RIP", "ROI",
    "RSVP", "SDK", "SUV", "TSA", "UAE", "UCLA", "UFO", "UI", "URI", "USA", "USAF", "USDA", "USPS", "USSR", "UV", "VIP",
    "VAT", "VOIP",
];

/// With a reading of their own.
const READINGS: &[(&str, &str)] = &[
    ("AAA", "triple A"),
    ("IEEE", "I triple E"),
    ("JSON", "Jason"),
    ("NAACP", "N double A C P"),
    ("NCAA", "N C double A"),
    ("AAAS", "triple A S"),
    ("AFAIK", "as far as I know"),
    ("EOD", "end of day"),
    ("FWIW", "for what it's worth"),
    ("HIIT", "hit"),
    ("ICYMI", "in case you missed it"),
    ("IDK", "I don't know"),
    ("IMHO", "in my humble opinion"),
    ("IMO", "in my opinion"),
    ("TBD", "to be determined"),
    ("TBH", "to be honest"),
    ("YMMV", "your mileage may vary"),
    ("pls", "please"),
    ("plz", "please"),
    ("thx", "thanks"),
    ("Thx", "Thanks"),
    ("tok", "token"),
    ("WWW", "triple W"),
    ("WWI", "World War one"),
    ("WWII", "World War two"),
    ("AKA", "also known as"),
    ("BTW", "by the way"),
    ("OK", "okay"),
    ("PhD", "P H D"),
    ("PhDs", "P H D's"),
    ("pH", "P H"),
    ("YoY", "year over year"),
    ("QoQ", "quarter over quarter"),
    ("mRNA", "M R N A"),
    ("tRNA", "T R N A"),
    ("iOS", "I O S"),
    ("macOS", "mac O S"),
    ("iPadOS", "iPad O S"),
    ("README", "read me"),
    ("SCSI", "scuzzy"),
    ("LaTeX", "lay tech"),
    ("aka", "also known as"),
    ("ok", "okay"),
    ("Ok", "Okay"),
    ("btw", "by the way"),
    ("idk", "I don't know"),
    ("tbh", "to be honest"),
    ("imo", "in my opinion"),
    ("imho", "in my humble opinion"),
    ("brb", "be right back"),
    ("ttyl", "talk to you later"),
    ("tldr", "T L D R"),
    ("IPv", "I P V"),
    ("dB", "decibels"),
    ("Hz", "hertz"),
    ("kHz", "kilohertz"),
    ("MHz", "megahertz"),
    ("GHz", "gigahertz"),
    ("Inc", "Incorporated"),
    ("Ltd", "Limited"),
];

/// Small words that capitals only stress.
#[rustfmt::skip]
const STRESSED: &[&str] = &[
    "ALL", "ALSO", "AN", "AND", "ANY", "ARE", "AS", "AT", "BE", "BEFORE", "BEST", "BIG", "BOTH", "BUT", "BY", "CAN", "DID",
    "DO", "DOES", "DON", "EACH", "END", "FIRST", "FOR", "FREE", "FROM", "GET", "GO", "GOOD", "GREAT", "HAS", "HAVE",
    "HE", "HER", "HERE", "HIM", "HIS", "HOT", "HOW", "IF", "IN", "INTO", "IS", "ITS", "JUST", "LAST", "LESS",
    "LIKE", "LIVE", "LOVE", "MANY", "MAY", "ME", "MORE", "MOST", "MUST", "MY", "NEED", "NEVER", "NEW", "NEXT", "NO", "NOT",
    "NOW", "OF", "OFF", "OLD", "ON", "ONE", "ONLY", "OR", "OUR", "OUT", "OVER", "READ", "REAL", "SALE", "SAME", "SAY",
    "SEE", "SHE", "SO", "SOME", "STOP", "THAN", "THAT", "THE", "THEM", "THEN", "THEY", "THIS", "TO", "TOO", "TWO",
    "UP", "USE", "VERY", "WANT", "WAS", "WAY", "WE", "WERE", "WHAT", "WHEN", "WHERE", "WHY", "WILL", "WITH", "WON",
    "WORK", "YES", "YOU", "YOUR", "TIP", "TIPS", "NOTE", "STEP", "TODO", "PROS", "CONS",
    "ACT", "AGE", "AGO", "AIR", "ARM", "ART", "ASK", "BAD", "BAG", "BAR", "BED", "BET", "BIT", "BOX", "BOY", "BUS", "BUY",
    "CAR", "CAT", "CUT", "DAD", "DAY", "DIE", "DOG", "DRY", "EAT", "EGG", "EYE", "FAR", "FAT", "FEW", "FIT", "FIX", "FLY", "FUN",
    "GAS", "GUN", "GUY", "HEY", "HI", "HIT", "JOB", "JOY", "KEY", "KID", "LAW", "LAY", "LEG", "LET", "LIE", "LOT", "LOW", "MAD",
    "MAN", "MAP", "MEN", "MIX", "MOM", "NOR", "NUT", "OH", "OIL", "OWN", "PAY", "PEN", "PET", "POT", "PUT", "RAW", "RED", "RUN",
    "SAD", "SET", "SHY", "SIT", "SIX", "SKY", "SON", "SUN", "TAX", "TEA", "TEN", "TOP", "TOY", "TRY", "VAN", "WAR", "WIN", "WOW",
    "YAY", "YEP", "YET", "ZOO",
];

/// Spelled in lower case too, although they have a vowel.
#[rustfmt::skip]
const SMALL: &[&str] = &["api", "apis", "aws", "cpu", "cpus", "gpu", "gpus", "rgba", "ui", "uri", "url", "urls", "usb", "usr", "uuid", "ux"];

/// Words without a vowel that are said as they are.
#[rustfmt::skip]
const MURMURS: &[&str] = &[
    "hm", "hmm", "hmmm", "mm", "mmm", "shh", "shhh", "psst", "pst", "tsk", "brr", "grr", "pfft", "zzz", "nth", "tv", "th",
    "st", "nd", "rd", "ll", "vs", "mr", "mrs", "dr", "ms", "Mr", "Mrs", "Dr", "Ms", "St", "crwth", "cwm",
];

/// Whether a word in capitals is an ordinary word that is only stressed.
pub(super) fn is_stressed(word: &str) -> bool {
    STRESSED.contains(&word) || word.chars().count() >= 4 && is_sayable(word) && !is_known(word)
}

/// Whether `word` is known to be an acronym or initialism.
fn is_known(word: &str) -> bool {
    WORDS.contains(&word) || SPELLED.contains(&word) || READINGS.iter().any(|(w, _)| *w == word)
}

/// Letters one by one, with a possessive or plural ending: "C P U's".
pub(super) fn spell(letters: &str, ending: &str) -> String {
    let mut words = String::new();
    for c in letters.chars().filter(|c| c.is_alphabetic()) {
        if !words.is_empty() {
            words.push(' ');
        }
        words.extend(c.to_uppercase());
    }
    if !ending.is_empty() {
        words.push_str("'s");
    }
    words
}

/// A word in capitals, with its plural or possessive ending; or a word that can't be said.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    let word = scan.word(i)?;
    word.chars().nth(1)?; // a single letter stays as it is
    // A ticker: "Apple (AAPL)".
    let bracketed = scan.is_mark(i.wrapping_sub(1), "(") && scan.is_mark(i + 1, ")");
    if bracketed
        && (2..=5).contains(&word.len())
        && word.chars().all(|c| c.is_ascii_uppercase())
        && !is_known(word)
    {
        return Spoken::new(i + 1, spell(word, ""));
    }
    // "UNICEF, WHO, IMF": among its like it is the organisation.
    let like = |k: usize| scan.word(k).is_some_and(|w| w.len() >= 2 && w.chars().all(char::is_uppercase));
    let listed = i >= 3 && scan.is_mark(i - 2, ",") && like(i - 3) || scan.is_mark(i + 1, ",") && like(i + 3);
    if word == "WHO" && listed && !scan.shouting {
        return Spoken::new(i + 1, spell(word, ""));
    }
    Spoken::new(i + 1, say(word, scan.shouting, scan.word_before(i))?)
}

/// How a word is said that is not said as written.
pub(super) fn say(word: &str, shouting: bool, before: Option<&str>) -> Option<String> {
    if let Some((_, reading)) = READINGS.iter().find(|(w, _)| *w == word) {
        return Some((*reading).to_string());
    }
    let (stem, ending) = match (word.strip_suffix("'s"), word.strip_suffix('s')) {
        (Some(stem), _) => (stem, "'s"),
        (None, Some(stem)) => (stem, "s"),
        _ => (word, ""),
    };
    if stem != word
        && let Some((_, reading)) = READINGS.iter().find(|(w, _)| *w == stem)
        && stem.chars().all(char::is_uppercase)
    {
        return Some(format!("{reading}{}", if ending == "s" && reading.len() == 1 { "'s" } else { ending }));
    }
    let letters = stem.chars().count();
    let capital = letters >= 2 && stem.chars().all(char::is_uppercase);
    if !capital {
        return unspeakable(word).or_else(|| tail(word));
    }
    if WORDS.contains(&stem) && !(stem == "WHO" && before == Some("the")) && !(stem == "WHO" && shouting) {
        // "WHO" without its article is a stressed word.
        let said = if stem == "WHO" { "who" } else { stem };
        return Some(format!("{said}{ending}"));
    }
    if word == "AM" && before == Some("I") {
        return Some("am".into());
    }
    let stressed = STRESSED.contains(&stem) || shouting && !SPELLED.contains(&stem) && is_sayable(stem);
    if stressed && !(stem == "US" || stem == "IT") {
        return Some(word.to_lowercase());
    }
    if SPELLED.contains(&stem) || letters <= 3 || !is_sayable(stem) {
        return Some(spell(stem, ending));
    }
    Some(word.to_lowercase())
}

/// A lower-case word without a vowel ("html", "mc") is an initialism in disguise.
fn unspeakable(word: &str) -> Option<String> {
    if SMALL.contains(&word) {
        let stem = word.trim_end_matches('s');
        let stem = if stem.len() == 2 || word == "aws" { word } else { stem };
        return Some(spell(stem, if stem == word { "" } else { "s" }));
    }
    let lower = word.to_lowercase();
    let letters = word.chars().count();
    let vowel = |c: char| !c.is_ascii_alphabetic() || "aeiouy".contains(c);
    if !(2..=6).contains(&letters) || lower.chars().any(vowel) || MURMURS.contains(&lower.as_str()) {
        return None;
    }
    let plural = letters > 2 && word.ends_with('s') && word[..word.len() - 1].chars().all(char::is_uppercase);
    let stem = if plural { &word[..word.len() - 1] } else { word };
    Some(spell(stem, if plural { "s" } else { "" }))
}

/// "OpenAI", "FreeBSD": a word with an initialism at its end.
fn tail(word: &str) -> Option<String> {
    let stem = word.strip_suffix('s').unwrap_or(word);
    let at = stem.rfind(|c: char| !c.is_ascii_uppercase()).map_or(0, |p| p + 1);
    if !stem.is_char_boundary(at) {
        return None;
    }
    let (head, caps) = stem.split_at(at);
    let good = (2..=4).contains(&caps.len()) && head.len() >= 2 && head.is_ascii() && !head.ends_with('\'');
    let ending = if stem.len() < word.len() { "s" } else { "" };
    good.then(|| format!("{head} {}", spell(caps, ending)))
}

/// Whether a word in capitals reads like a word: vowels and consonants in turn.
fn is_sayable(word: &str) -> bool {
    const ONSETS: &[&str] = &[
        "BL", "BR", "CH", "CL", "CR", "DR", "FL", "FR", "GL", "GR", "KN", "PH", "PL", "PR", "QU", "SC",
        "SCH", "SCR", "SH", "SK", "SL", "SM", "SN", "SP", "SPL", "SPR", "ST", "STR", "SW", "TH", "THR", "TR",
        "TW", "WH", "WR",
    ];
    let vowel = |c: char| "AEIOUYÄÖÜÉÈÁ".contains(c);
    let onset: String = word.chars().take_while(|&c| !vowel(c)).collect();
    let (mut run, mut longest, mut vowels, mut longest_vowels) = (0, 0, 0, 0);
    for c in word.chars() {
        (run, vowels) = if vowel(c) { (0, vowels + 1) } else { (run + 1, 0) };
        longest = longest.max(run);
        longest_vowels = longest_vowels.max(vowels);
    }
    // "AAPL"
    let doubled = word.chars().next() == word.chars().nth(1);
    let onset_fine = onset.len() <= 1 || ONSETS.contains(&onset.as_str());
    onset.len() < word.len() && onset_fine && !doubled && longest <= 3 && longest_vowels <= 2 && run <= 3
}

/// Letters and digits in one: "B2B", "COVID-19", "H2O", "GPT-4o", "MH370", "1080p", "iPhone 15".
pub(super) fn mixed(scan: &Scan, i: usize) -> Option<Spoken> {
    if !scan.starts(i) && !scan.is_mark(i.wrapping_sub(1), "/-#") {
        return None;
    }
    // "GMT-5"
    if matches!(scan.text(i), "GMT" | "UTC") && scan.is_mark(i + 1, "-−+") && scan.digits(i + 2).is_some() {
        let sign = if scan.is_mark(i + 1, "+") { "plus" } else { "minus" };
        return Spoken::new(i + 2, format!("{} {sign}", spell(scan.text(i), "")));
    }
    if let Some(code) = long_code(scan, i) {
        return Some(code);
    }
    let (mut words, mut letters, mut digits) = (Vec::new(), 0, 0);
    let mut j = i;
    loop {
        if let Some(word) = scan.word(j) {
            letters += 1;
            words.push(letters_part(word, j == i, scan));
        } else if let Some(number) = scan.digits(j) {
            digits += 1;
            // "GPT-3.5"
            let decimal = scan.digits(j + 2).filter(|_| scan.is_mark(j + 1, ".") && letters > 0);
            if let Some(decimal) = decimal {
                let whole = numbers::cardinal(number, scan.locale);
                words.push(format!("{whole} point {}", numbers::spell(decimal)));
                j += 3;
                continue;
            }
            words.push(digits_part(number, scan, digits == 1 && letters == 0));
        } else if !(scan.is_mark(j, "-") && j > i && joins(scan, j)) {
            break;
        }
        j += 1;
        if j - i > 16 {
            return None;
        }
    }
    if letters == 0 || digits == 0 {
        return None;
    }
    let first = scan.word(i);
    // "mid-1990s", "five-year-old" and "pre-2000" are words joined to numbers.
    let hyphenated = (i..j).any(|k| scan.is_mark(k, "-"));
    let plain = |k: usize| {
        scan.word(k).is_some_and(|w| {
            let long = w.chars().count() >= 3 && w.chars().all(char::is_lowercase);
            long || JOINED.contains(&w.to_lowercase().as_str())
        })
    };
    // A name may have words behind: "gpt-4o-mini"; not so "top-10" and "pre-2000".
    let after_hyphen = scan.is_mark(i.wrapping_sub(1), "-") && first.is_some();
    let prefix = after_hyphen || first.is_some_and(|w| JOINED.contains(&w.to_lowercase().as_str()));
    if (hyphenated || after_hyphen) && (first.is_none() || prefix) && (i..j).any(plain) {
        return None;
    }
    // "Best-of-5"
    let linking = |k: usize| {
        let words = ["of", "on", "to", "in", "and", "by", "for", "or", "a", "up", "off", "at"];
        scan.is_mark(k.wrapping_sub(1), "-") && scan.word(k).is_some_and(|w| words.contains(&w))
    };
    if (i + usize::from(!after_hyphen)..j).any(linking) {
        return None;
    }
    if first.is_none()
        && letters == 1
        && scan.word(j - 1).is_some_and(|w| matches!(w, "st" | "nd" | "rd" | "th"))
    {
        return None;
    }
    Spoken::new(j, words.join(" "))
}

/// Words that are joined to numbers without making a name of both.
#[rustfmt::skip]
const JOINED: &[&str] = &[
    "a", "by", "co", "day", "double", "in", "less", "mid", "non", "of", "over", "plus", "post", "pre", "single", "sub", "super",
    "than", "to", "top", "under", "up", "early", "late", "half", "one", "two", "three", "twenty",
];

/// Hashes, keys and identifiers that nobody reads out.
fn long_code(scan: &Scan, i: usize) -> Option<Spoken> {
    let (mut letters, mut digits, mut chars, mut hex) = (0, 0, 0, true);
    let mut j = i;
    while j - i < 100 {
        let text = scan.text(j);
        match (scan.word(j), scan.digits(j)) {
            (Some(_), _) => letters += 1,
            (_, Some(_)) => digits += 1,
            _ if scan.is_mark(j, "-:") && !scan.ends(j + 1) => {
                j += 1;
                continue;
            }
            _ => break,
        }
        chars += text.chars().count();
        hex &= text.bytes().all(|b| b.is_ascii_hexdigit());
        j += 1;
    }
    let mixed = letters >= 2 && digits >= 2;
    let long = hex && chars >= 12 && letters + digits >= 5 || chars >= 20 && letters + digits >= 7;
    if mixed && long || super::notation::is_encoded(scan.span(i, j)) {
        // "aGVsbG8gd29ybGQ="
        let padding = (j..j + 2).take_while(|&k| scan.is_mark(k, "=") && scan.ends(k + 1)).count();
        return Spoken::new(j + padding, "a long code");
    }
    None
}

/// Whether the token at `k` goes on with a name of letters and digits.
fn joins(scan: &Scan, k: usize) -> bool {
    let part = |k: usize| scan.word(k).is_some() || scan.digits(k).is_some();
    part(k) || scan.is_mark(k, "-") && part(k + 1)
}

fn letters_part(word: &str, first: bool, scan: &Scan) -> String {
    let count = word.chars().count();
    let lower = word.chars().all(char::is_lowercase);
    match () {
        () if count == 1 => word.to_uppercase(),
        () if super::chemistry::is_compound(word) => spell(word, ""),
        // "CH3COOH"
        () if count >= 3 && word.chars().all(|c| "CHONS".contains(c)) => spell(word, ""),
        () if count <= 2 && !(lower && first) => spell(word.trim_end_matches("'s"), ""),
        () => say(word, scan.shouting, None).unwrap_or_else(|| word.to_string()),
    }
}

fn digits_part(digits: &str, scan: &Scan, leads: bool) -> String {
    if leads && digits.len() == 1 {
        numbers::cardinal(digits, scan.locale)
    } else {
        numbers::code(digits, scan.locale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(word: &str) -> String {
        say(word, false, None).unwrap_or_else(|| word.to_string())
    }

    #[test]
    fn spelled_or_said() {
        for (word, expected) in [
            ("NASA", "NASA"),
            ("URLs", "U R L's"),
            ("IBM's", "I B M's"),
            ("NOT", "not"),
            ("html", "H T M L"),
            ("hmm", "hmm"),
            ("OpenAI", "Open A I"),
            ("iPhone", "iPhone"),
            ("IMPORTANT", "important"),
            ("HTTPS", "H T T P S"),
            ("rhythm", "rhythm"),
        ] {
            assert_eq!(said(word), expected);
        }
    }
}
