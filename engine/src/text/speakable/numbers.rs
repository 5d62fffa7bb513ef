//! Integers, decimals, ordinals, years and digit strings in words.

use super::Locale;
use super::scan::{Scan, Spoken};

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const SCALES: [&str; 12] = [
    "",
    " thousand",
    " million",
    " billion",
    " trillion",
    " quadrillion",
    " quintillion",
    " sextillion",
    " septillion",
    " octillion",
    " nonillion",
    " decillion",
];

/// Words that multiply a number, as in "5.3 billion".
pub(super) const SCALE_WORDS: &[&str] =
    &["hundred", "thousand", "million", "billion", "trillion", "quadrillion", "dozen"];

/// 0 to 99.
pub(super) fn two_digits(n: u32) -> String {
    match n {
        0..20 => SMALL[n as usize].to_string(),
        20..100 if n.is_multiple_of(10) => TENS[(n / 10) as usize].to_string(),
        20..100 => format!("{}-{}", TENS[(n / 10) as usize], SMALL[(n % 10) as usize]),
        _ => cardinal(&n.to_string(), Locale::EnUs),
    }
}

fn three_digits(n: u32, locale: Locale) -> String {
    let (hundreds, rest) = (n / 100, n % 100);
    let and = if locale == Locale::EnGb { " and " } else { " " };
    match (hundreds, rest) {
        (0, _) => two_digits(rest),
        (_, 0) => format!("{} hundred", SMALL[hundreds as usize]),
        _ => format!("{} hundred{and}{}", SMALL[hundreds as usize], two_digits(rest)),
    }
}

/// Digits of the longest number that is read, and of the longest that is counted: the splitter cuts longer ones.
const LONGEST: usize = 40;
const LONGEST_COUNTED: usize = 800;

/// Decimals that are read to whoever asks for them, and those that are read of more.
const MOST_DECIMALS: usize = 100;
const FEW_DECIMALS: usize = 20;

/// What is said of a number with more digits than anyone listens to.
fn endless(digits: &str) -> Option<String> {
    match digits.len() {
        0..=LONGEST => None,
        len @ ..=LONGEST_COUNTED => {
            Some(format!("a number of {} digits", cardinal(&len.to_string(), Locale::EnUs)))
        }
        _ => Some("a very long number".into()),
    }
}

/// A string of ASCII digits as a cardinal; without a name for its size, digit by digit.
pub(super) fn cardinal(digits: &str, locale: Locale) -> String {
    if let Some(words) = endless(digits) {
        return words;
    }
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return SMALL[0].to_string();
    }
    if digits.len() > 3 * SCALES.len() {
        return spell(digits);
    }
    let mut words = String::new();
    let groups = digits.len().div_ceil(3);
    for group in (0..groups).rev() {
        let end = digits.len() - 3 * group;
        let value: u32 = digits[end.saturating_sub(3)..end].parse().unwrap_or(0);
        if value == 0 {
            continue;
        }
        if !words.is_empty() {
            let and = group == 0 && value < 100 && locale == Locale::EnGb;
            words.push_str(if and { " and " } else { " " });
        }
        words.push_str(&three_digits(value, locale));
        words.push_str(SCALES[group]);
    }
    words
}

/// The ordinal of a cardinal: "twenty-one" to "twenty-first".
pub(super) fn to_ordinal(cardinal: &str) -> String {
    let at = cardinal.rfind([' ', '-']).map_or(0, |p| p + 1);
    let (head, last) = cardinal.split_at(at);
    let irregular = match last {
        "one" => "first",
        "two" => "second",
        "three" => "third",
        "five" => "fifth",
        "eight" => "eighth",
        "nine" => "ninth",
        "twelve" => "twelfth",
        _ => "",
    };
    if !irregular.is_empty() {
        return format!("{head}{irregular}");
    }
    match last.strip_suffix('y') {
        Some(stem) => format!("{head}{stem}ieth"),
        None => format!("{head}{last}th"),
    }
}

pub(super) fn ordinal(digits: &str, locale: Locale) -> String {
    to_ordinal(&cardinal(digits, locale))
}

/// Plural of a number word: "nineteen ninety" to "nineteen nineties", "six" to "sixes".
pub(super) fn plural(words: &str) -> String {
    match words.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if words.ends_with('x') => format!("{words}es"),
        None => format!("{words}s"),
    }
}

/// Digit by digit, if they are not too many.
pub(super) fn spell(digits: &str) -> String {
    endless(digits).unwrap_or_else(|| one_by_one(digits))
}

/// What stands after the decimal point, digit by digit.
pub(super) fn decimals(digits: &str) -> String {
    match digits.len() {
        0..=MOST_DECIMALS => one_by_one(digits),
        _ => format!("{}, and so on", one_by_one(&digits[..FEW_DECIMALS])),
    }
}

fn one_by_one(digits: &str) -> String {
    let words: Vec<&str> =
        digits.bytes().filter(u8::is_ascii_digit).map(|b| SMALL[usize::from(b - b'0')]).collect();
    words.join(" ")
}

/// Digit by digit with "oh" for zero, as in room and postal codes.
pub(super) fn spell_oh(digits: &str) -> String {
    spell(digits).replace("zero", "oh")
}

/// A year, or a number read like one: 1999, 1905, 2024, 1500.
pub(super) fn year(n: u32, locale: Locale) -> String {
    let (high, low) = (n / 100, n % 100);
    let long = !(1010..10_000).contains(&n) || n % 1000 < 10;
    match low {
        _ if long => cardinal(&n.to_string(), locale),
        0 => format!("{} hundred", two_digits(high)),
        1..10 => format!("{} oh {}", two_digits(high), SMALL[low as usize]),
        _ => format!("{} {}", two_digits(high), two_digits(low)),
    }
}

/// A number that names a thing (a flight, a model, a house), of which people say the digits in pairs.
pub(super) fn code(digits: &str, locale: Locale) -> String {
    let value: u32 = digits.parse().unwrap_or(0);
    let (high, low) = (value / 100, value % 100);
    match digits.len() {
        _ if digits.starts_with('0') => spell_oh(digits),
        0..=2 => cardinal(digits, locale),
        3 if low == 0 => cardinal(digits, locale),
        3 if low < 10 => format!("{} oh {}", two_digits(high), two_digits(low)),
        3 => format!("{} {}", two_digits(high), two_digits(low)),
        // "ISO 9001", but "flight 2402"
        4 if value.is_multiple_of(1000) || low > 0 && low < 10 && high.is_multiple_of(10) => {
            cardinal(digits, locale)
        }
        4 => year(value, locale),
        // "the i7-13700K"
        5 if low == 0 && !high.is_multiple_of(10) && high < 200 => {
            format!("{} {} hundred", two_digits(high / 10), two_digits(high % 10))
        }
        _ => spell_oh(digits),
    }
}

/// An integer with nothing around it that tells what it counts.
pub(super) fn integer(digits: &str, locale: Locale) -> String {
    match digits.len() {
        1 => cardinal(digits, locale),
        _ if digits.starts_with('0') => spell(digits),
        4 => match digits.parse() {
            Ok(n @ 1010..=2099) => year(n, locale),
            _ => cardinal(digits, locale),
        },
        // A long number without separators is a code unless it is round.
        10.. if !digits.ends_with("000") => spell(digits),
        _ => cardinal(digits, locale),
    }
}

/// A number as written: digits without separators, and the digits after the decimal point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Numeral {
    pub(super) int: String,
    pub(super) frac: Option<String>,
    pub(super) grouped: bool,
    /// Index after the number.
    pub(super) next: usize,
}

impl Numeral {
    /// Reads a number without sign at token `i`.
    pub(super) fn read(scan: &Scan, i: usize) -> Option<Self> {
        if scan.is_mark(i, ".") {
            let frac = scan.digits(i + 1)?.to_string();
            let glued = scan.digits(i.wrapping_sub(1)).is_some() || scan.word(i.wrapping_sub(1)).is_some();
            let version = scan.is_mark(i + 2, ".") && scan.digits(i + 3).is_some();
            let next = i + 2;
            return (!glued && !version).then_some(Self {
                int: String::new(),
                frac: Some(frac),
                grouped: false,
                next,
            });
        }
        let mut int = scan.digits(i)?.to_string();
        let (groups, next) = thousands(scan, i, ",");
        let mut number = Self { int: String::new(), frac: None, grouped: groups > 0, next };
        let (dotted, after) = thousands(scan, i, ".");
        let cents = scan.is_mark(after, ",")
            && scan.digits(after + 1).is_some_and(|d| d.len() <= 2)
            && dotted > 0
            && scan.ends(after + 2);
        if groups > 0 {
            int = scan.span(i, next).replace(',', "");
        } else if cents || dotted == 2 && !scan.is_mark(after, ".") {
            // "1.000,50" and "1.000.000", as written in most of Europe.
            int = scan.span(i, after).replace('.', "");
            number.grouped = true;
            number.next = after;
            if cents {
                number.frac = Some(scan.text(after + 1).to_string());
                number.next = after + 2;
            }
            number.int = int;
            return Some(number);
        }
        if scan.is_mark(number.next, ".")
            && let Some(frac) = scan.digits(number.next + 1)
        {
            if scan.is_mark(number.next + 2, ".") && scan.digits(number.next + 3).is_some() {
                return None; // a version, a date or an address
            }
            number.frac = Some(frac.to_string());
            number.next += 2;
        }
        number.int = int;
        Some(number)
    }

    /// Whether the value is exactly 1, which takes the singular.
    pub(super) fn is_one(&self) -> bool {
        self.int == "1" && self.frac.is_none()
    }

    pub(super) fn value(&self) -> Option<u64> {
        if self.frac.is_some() { None } else { self.int.parse().ok() }
    }

    /// As a quantity: "one thousand nine hundred ninety-nine", "three point one four".
    pub(super) fn words(&self, locale: Locale) -> String {
        let mut words = match self.int.as_str() {
            "" => String::new(),
            int if !self.grouped && self.frac.is_none() && int.len() > 1 && int.starts_with('0') => {
                spell(int)
            }
            int => cardinal(int, locale),
        };
        if let Some(frac) = &self.frac {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str("point ");
            words.push_str(&decimals(frac));
        }
        words
    }
}

/// Groups of three digits after the token `i`, each behind a separator: how many, and the index after.
fn thousands(scan: &Scan, i: usize, separator: &str) -> (usize, usize) {
    let (mut groups, mut next) = (0, i + 1);
    if scan.digits(i).is_none_or(|d| d.len() > 3 || d.starts_with('0')) {
        return (0, next);
    }
    while groups < LONGEST_COUNTED / 3
        && scan.is_mark(next, separator)
        && scan.digits(next + 1).is_some_and(|d| d.len() == 3)
    {
        groups += 1;
        next += 2;
    }
    (groups, next)
}

/// Whether the mark at `i` is a sign of the number after it.
pub(super) fn sign(scan: &Scan, i: usize) -> Option<&'static str> {
    let number = scan.digits(i + 1).is_some() || scan.is_mark(i + 1, ".") && scan.digits(i + 2).is_some();
    if !number || !scan.starts(i) {
        return None;
    }
    match scan.mark(i)? {
        '-' | '−' | '–' => Some("minus "),
        '+' => Some("plus "),
        '±' => Some("plus or minus "),
        _ => None,
    }
}

/// `1e6`, `-6.02E23`, `1.5e-3`.
pub(super) fn scientific(scan: &Scan, i: usize) -> Option<Spoken> {
    let sign = sign(scan, i);
    if sign.is_none() && !scan.starts(i) {
        return None;
    }
    let number = Numeral::read(scan, i + usize::from(sign.is_some())).filter(|n| !n.grouped)?;
    let at = number.next;
    if !matches!(scan.text(at), "e" | "E") {
        return None;
    }
    let signed = scan.is_mark(at + 1, "-−+");
    let minus = if scan.is_mark(at + 1, "-−") { "minus " } else { "" };
    let next = at + 1 + usize::from(signed);
    let power = ordinal(scan.digits(next).filter(|d| d.len() <= 3)?, scan.locale);
    let words =
        format!("{}{} times ten to the {minus}{power}", sign.unwrap_or(""), number.words(scan.locale));
    if scan.ends(next + 1) { Spoken::new(next + 1, words) } else { None }
}

/// `-3`, `+5`, `±0.5`, `3.14`, `1,234`, and integers by what stands before them.
pub(super) fn number(scan: &Scan, i: usize) -> Option<Spoken> {
    if let Some(sign) = sign(scan, i) {
        let number = Numeral::read(scan, i + 1)?;
        return Spoken::new(number.next, format!("{sign}{}", number.words(scan.locale)));
    }
    let number = Numeral::read(scan, i)?;
    let joined = scan.is_mark(i.wrapping_sub(1), "-/");
    if number.grouped || number.frac.is_some() || !scan.starts(i) && !joined {
        return Spoken::new(number.next, number.words(scan.locale));
    }
    let digits = number.int.as_str();
    let words = famous(scan, i, digits).unwrap_or_else(|| {
        let before = scan.word_before(i).unwrap_or_default();
        let future = digits.len() == 4 && (2100..3000).contains(&number.value().unwrap_or(0));
        if future && matches!(before, "year" | "in" | "In" | "by" | "By" | "since" | "until" | "of" | "is") {
            return year(digits.parse().unwrap_or(0), scan.locale);
        }
        if NAMED_BY_CODE.contains(&before) || is_series(before) && digits.len() > 2 {
            code(digits, scan.locale)
        } else {
            integer(digits, scan.locale)
        }
    });
    Spoken::new(number.next, words)
}

/// "RTX 4090", "RFC 2616": an initialism or a model name and its number.
fn is_series(word: &str) -> bool {
    word.len() >= 2
        && word.bytes().all(|b| b.is_ascii_uppercase())
        && !matches!(word, "AD" | "CE" | "BC" | "US" | "UK" | "EU" | "ISO" | "AND" | "OR" | "THE")
}

/// Nouns whose numbers are said in pairs.
#[rustfmt::skip]
const NAMED_BY_CODE: &[&str] = &[
    "Route", "Highway", "Interstate", "Flight", "flight", "Room", "room", "Boeing", "Airbus", "Apt",
    "Apartment", "Suite", "Error", "error", "Channel", "channel", "Bus", "Area", "Studio", "Form", "HTTP",
    "status", "Unit", "port", "Port",
];

/// Numbers that are called for help, digit by digit.
const EMERGENCY: &[&str] = &[
    "000", "110", "111", "112", "117", "118", "119", "211", "311", "411", "811", "911", "988", "997", "999",
];

/// Where the numbers are called that stand alone before a bracket.
#[rustfmt::skip]
const COUNTRIES: &[&str] = &[
    "Australia", "Canada", "China", "EU", "Europe", "France", "Germany", "India", "Ireland", "Japan", "Mexico", "NZ", "UK", "US", "USA",
];

/// Words that tell such a number from a count.
#[rustfmt::skip]
const CALLS: &[&str] = &[
    "ambulance", "call", "calling", "called", "calls", "crisis", "dial", "dialing", "dialling", "dispatcher", "emergency",
    "emergencies", "hotline", "lifeline", "operator", "phone", "police", "responders", "rescue", "text",
];

/// "Call 911 or 112", "the 911 operator"; but "112 people were called".
fn is_call(scan: &Scan, i: usize, digits: &str) -> bool {
    const REACH: usize = 40;
    if !EMERGENCY.contains(&digits) || !scan.ends(i + 1) {
        return false;
    }
    let told = |k: usize| scan.word(k).is_some_and(|w| CALLS.contains(&w.to_lowercase().as_str()));
    let near = (i.saturating_sub(REACH)..scan.len().min(i + REACH)).any(told);
    let counted = scan.word_after(i + 1).is_some_and(|w| {
        w.ends_with('s') && w.len() > 3 && !matches!(w, "calls" | "operators" | "dispatchers")
            || w == "people"
    });
    // "999 (UK)"
    let country = scan.is_mark(i + 2, "(") && scan.word(i + 3).is_some_and(|w| COUNTRIES.contains(&w));
    let near = near || country;
    // The others are numbers of calls only where somebody calls.
    let known = matches!(digits, "000" | "112" | "911" | "988" | "999");
    let dialled = scan.word_before(i).is_some_and(|w| {
        let verbs = ["call", "dial", "text", "phone", "calling", "dialing", "dialling"];
        verbs.contains(&w.to_lowercase().as_str()) || matches!(w, "or" | "and") && near
    });
    let near = near && (known || dialled || country);
    let counted = counted || scan.word_after(i + 1) == Some("of");
    let named = scan.word_before(i).is_some_and(|w| w.starts_with(char::is_uppercase) && !told(i - 2));
    !counted && (near || digits == "911" && !named)
}

/// Numbers that have a reading of their own.
fn famous(scan: &Scan, i: usize, digits: &str) -> Option<String> {
    let before = scan.word_before(i).unwrap_or_default();
    let capital = before.starts_with(|c: char| c.is_uppercase());
    match digits {
        "007" => Some("double oh seven".into()),
        "90210" => Some(spell_oh(digits)),
        _ if is_call(scan, i, digits) => Some(spell(digits)),
        // "a Porsche 911"
        "911" if capital => Some("nine eleven".into()),
        "101" if capital && scan.ends(i + 1) && scan.word_after(i + 1).is_none() => Some("one oh one".into()),
        "8080" => Some("eighty eighty".into()),
        "404" if scan.word_after(i + 1).is_some_and(|w| matches!(w, "error" | "page" | "errors" | "Not")) => {
            Some("four oh four".into())
        }
        "365" if matches!(before, "Office" | "Microsoft") => Some("three sixty-five".into()),
        "360" if before == "Xbox" => Some("three sixty".into()),
        _ if digits.len() == 5 && is_zip_context(scan, i, before) => Some(spell_oh(digits)),
        _ if digits.len() == 3
            && before == "code"
            && scan.word_before(i.saturating_sub(2)) == Some("area") =>
        {
            Some(spell(digits))
        }
        _ => None,
    }
}

fn is_zip_context(scan: &Scan, i: usize, before: &str) -> bool {
    let state = before.len() == 2 && super::abbreviations::state(before).is_some();
    let zip = matches!(before, "ZIP" | "zip" | "Zip") || before == "code" && i >= 4;
    state || zip && scan.starts(i)
}

/// `2nd`, `21st`, `1,000th`, and `1st–3rd`.
pub(super) fn ordinals(scan: &Scan, i: usize) -> Option<Spoken> {
    let one = |i: usize| -> Option<Spoken> {
        let number = Numeral::read(scan, i).filter(|n| n.frac.is_none() && !n.int.starts_with('0'))?;
        let suffix = scan.word(number.next)?;
        let known = ["st", "nd", "rd", "th"].iter().any(|s| suffix.eq_ignore_ascii_case(s));
        (known && scan.ends(number.next + 1)).then_some(())?;
        Spoken::new(number.next + 1, ordinal(&number.int, scan.locale))
    };
    if !scan.starts(i) && !scan.is_mark(i.wrapping_sub(1), "-/") {
        return None;
    }
    let first = one(i)?;
    if scan.is_mark(first.next, "-–")
        && let Some(last) = one(first.next + 1)
    {
        return Spoken::new(last.next, format!("{} to {}", first.words, last.words));
    }
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cardinals() {
        let us = |d: &str| cardinal(d, Locale::EnUs);
        let gb = |d: &str| cardinal(d, Locale::EnGb);
        assert_eq!(us("0"), "zero");
        assert_eq!(us("1000000"), "one million");
        assert_eq!(us("1002003"), "one million two thousand three");
        assert_eq!(gb("1002003"), "one million two thousand and three");
        assert_eq!(gb("3497"), "three thousand four hundred and ninety-seven");
        assert_eq!(us(&"9".repeat(40)).split(' ').count(), 40);
        assert!(us(&"9".repeat(36)).starts_with("nine hundred ninety-nine decillion"));
    }

    #[test]
    fn ordinals_of_every_ending() {
        let words: Vec<String> = ["1", "2", "3", "5", "8", "9", "12", "20", "21", "100", "1000"]
            .iter()
            .map(|d| ordinal(d, Locale::EnUs))
            .collect();
        let expected = [
            "first",
            "second",
            "third",
            "fifth",
            "eighth",
            "ninth",
            "twelfth",
            "twentieth",
            "twenty-first",
            "one hundredth",
            "one thousandth",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn years_and_codes() {
        let y = |n| year(n, Locale::EnUs);
        assert_eq!(
            [y(1066), y(1900), y(1905), y(1999), y(2000), y(2005), y(2010), y(800)],
            [
                "ten sixty-six",
                "nineteen hundred",
                "nineteen oh five",
                "nineteen ninety-nine",
                "two thousand",
                "two thousand five",
                "twenty ten",
                "eight hundred"
            ]
        );
        let c = |d| code(d, Locale::EnUs);
        assert_eq!(
            [c("101"), c("370"), c("4090"), c("9001"), c("16")],
            ["one oh one", "three seventy", "forty ninety", "nine thousand one", "sixteen"]
        );
    }
}
