//! Units of measure: their symbols and names, alone and in quotients ("km/h", "m/s²").

use super::scan::{Scan, Spoken};
use super::{Locale, measures};

/// Symbol, name of one, name of many ("" adds an s), and how safely the symbol is read as a unit.
type Unit = (&'static str, &'static str, &'static str, Safety);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Safety {
    /// After a number, with a space between or not.
    Any,
    /// Only glued to the number: "5B" is five billion bytes or people, "5 B" a letter.
    Glued,
    /// A word in its own right: glued, or at the end of a phrase.
    Word,
}

use Safety::{Any, Glued, Word};

#[rustfmt::skip]
const UNITS: &[Unit] = &[
    // length
    ("km", "kilometer", "", Any), ("m", "meter", "", Any), ("cm", "centimeter", "", Any),
    ("mm", "millimeter", "", Any), ("µm", "micrometer", "", Any), ("nm", "nanometer", "", Any),
    ("mi", "mile", "", Any), ("ft", "foot", "feet", Any), ("in", "inch", "inches", Word),
    ("yd", "yard", "", Any), ("yds", "yard", "", Any), ("ly", "light-year", "", Any), ("AU", "astronomical unit", "", Any),
    // area and volume
    ("ha", "hectare", "", Any), ("sqm", "square meter", "", Any), ("sqft", "square foot", "square feet", Any),
    ("L", "liter", "", Any), ("l", "liter", "", Any), ("mL", "milliliter", "", Any), ("ml", "milliliter", "", Any),
    ("dl", "deciliter", "", Any), ("dL", "deciliter", "", Any), ("cl", "centiliter", "", Any), ("µL", "microliter", "", Any),
    ("gal", "gallon", "", Any), ("qt", "quart", "", Any), ("pt", "point", "", Any), ("pts", "point", "", Any), ("tbsp", "tablespoon", "", Any),
    ("Tbsp", "tablespoon", "", Any), ("tsp", "teaspoon", "", Any), ("cc", "cubic centimeter", "", Any),
    // mass
    ("kg", "kilogram", "", Any), ("kgs", "kilogram", "", Any), ("g", "gram", "", Any), ("mg", "milligram", "", Any),
    ("µg", "microgram", "", Any), ("mcg", "microgram", "", Any), ("ng", "nanogram", "", Any), ("t", "ton", "", Glued),
    ("lb", "pound", "", Any), ("lbs", "pound", "", Any), ("oz", "ounce", "", Any),
    // time
    ("s", "second", "", Any), ("sec", "second", "", Any), ("secs", "second", "", Any), ("ms", "millisecond", "", Any),
    ("µs", "microsecond", "", Any), ("ns", "nanosecond", "", Any), ("min", "minute", "", Any), ("mins", "minute", "", Any),
    ("h", "hour", "", Any), ("hr", "hour", "", Any), ("hrs", "hour", "", Any), ("wk", "week", "", Any),
    ("wks", "week", "", Any), ("mo", "month", "", Any), ("yr", "year", "", Any), ("yrs", "year", "", Any),
    ("d", "day", "", Any),
    // speed and rate
    ("mph", "mile per hour", "miles per hour", Any), ("kph", "kilometer per hour", "kilometers per hour", Any),
    ("kmh", "kilometer per hour", "kilometers per hour", Any), ("kn", "knot", "", Any),
    ("rpm", "revolution per minute", "revolutions per minute", Any), ("RPM", "revolution per minute", "revolutions per minute", Any),
    ("bpm", "beat per minute", "beats per minute", Any), ("BPM", "beat per minute", "beats per minute", Any),
    ("fps", "frame per second", "frames per second", Any), ("FPS", "frame per second", "frames per second", Any),
    ("kbps", "kilobit per second", "kilobits per second", Any), ("Kbps", "kilobit per second", "kilobits per second", Any),
    ("Mbps", "megabit per second", "megabits per second", Any), ("Gbps", "gigabit per second", "gigabits per second", Any),
    ("mpg", "mile per gallon", "miles per gallon", Any),
    // electricity, energy, force
    ("V", "volt", "", Any), ("mV", "millivolt", "", Any), ("kV", "kilovolt", "", Any), ("mA", "milliamp", "", Any),
    ("kA", "kiloamp", "", Any), ("mAh", "milliamp hour", "", Any), ("Ah", "amp hour", "", Any), ("W", "watt", "", Any),
    ("mW", "milliwatt", "", Any), ("kW", "kilowatt", "", Any), ("MW", "megawatt", "", Any), ("GW", "gigawatt", "", Any),
    ("Wh", "watt hour", "", Any), ("kWh", "kilowatt hour", "", Any), ("MWh", "megawatt hour", "", Any),
    ("GWh", "gigawatt hour", "", Any), ("TWh", "terawatt hour", "", Any), ("kJ", "kilojoule", "", Any),
    ("MJ", "megajoule", "", Any), ("kcal", "kilocalorie", "", Any), ("cal", "calorie", "", Any), ("eV", "electron volt", "", Any),
    ("keV", "kiloelectron volt", "", Any), ("MeV", "megaelectron volt", "", Any), ("GeV", "gigaelectron volt", "", Any),
    ("hp", "horsepower", "horsepower", Any), ("HP", "horsepower", "horsepower", Any), ("BTU", "B T U", "B T U's", Any),
    ("kN", "kilonewton", "", Any), ("Nm", "newton meter", "", Any), ("\u{2126}", "ohm", "", Any),
    ("k\u{2126}", "kiloohm", "", Any), ("M\u{2126}", "megaohm", "", Any), ("µF", "microfarad", "", Any), ("nF", "nanofarad", "", Any),
    ("pF", "picofarad", "", Any), ("dB", "decibel", "", Any), ("dBA", "decibel", "", Any),
    // pressure
    ("Pa", "pascal", "", Any), ("hPa", "hectopascal", "", Any), ("kPa", "kilopascal", "", Any), ("MPa", "megapascal", "", Any),
    ("psi", "P S I", "P S I", Any), ("PSI", "P S I", "P S I", Any), ("mbar", "millibar", "", Any), ("bar", "bar", "", Any), ("atm", "atmosphere", "", Any),
    ("mmHg", "millimeter of mercury", "millimeters of mercury", Any),
    // frequency, data, pictures
    ("Hz", "hertz", "hertz", Any), ("kHz", "kilohertz", "kilohertz", Any), ("MHz", "megahertz", "megahertz", Any),
    ("GHz", "gigahertz", "gigahertz", Any), ("THz", "terahertz", "terahertz", Any), ("KB", "kilobyte", "", Any), ("kB", "kilobyte", "", Any),
    ("MB", "megabyte", "", Any), ("GB", "gigabyte", "", Any), ("TB", "terabyte", "", Any), ("PB", "petabyte", "", Any),
    ("KiB", "kibibyte", "", Any), ("MiB", "mebibyte", "", Any), ("GiB", "gibibyte", "", Any), ("TiB", "tebibyte", "", Any),
    ("Kb", "kilobit", "", Any), ("kb", "kilobit", "", Any), ("Mb", "megabit", "", Any), ("Gb", "gigabit", "", Any),
    ("MP", "megapixel", "", Any), ("px", "pixel", "", Any), ("dpi", "D P I", "D P I", Any), ("DPI", "D P I", "D P I", Any),
    ("ppi", "P P I", "P P I", Any), ("ppm", "part per million", "parts per million", Any),
    ("ppb", "part per billion", "parts per billion", Any),
    // chemistry, light
    ("mol", "mole", "", Any), ("mmol", "millimole", "", Any), ("lm", "lumen", "", Any), ("lx", "lux", "lux", Any), ("K", "kelvin", "kelvin", Any),
    ("kDa", "kilodalton", "", Any), ("IU", "international unit", "", Any),
    // counts
    ("pp", "percentage point", "", Any), ("kr", "krone", "kroner", Any), ("tok", "token", "", Any), ("doz", "dozen", "dozen", Any),
    ("c", "cup", "", Word), ("MT", "megatransfer", "", Any),
];

/// Units written out, as they follow fractions: "1/2 mile", "½ cup".
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "cup", "teaspoon", "tablespoon", "pint", "quart", "gallon", "liter", "litre", "ounce", "pound", "gram", "inch", "foot",
    "yard", "mile", "meter", "metre", "kilometer", "kilometre", "acre", "hour", "minute", "second", "day", "week",
    "month", "year", "century", "dozen", "stick", "slice", "onion", "lemon",
];

/// What rates are given per, and of that what is a time.
#[rustfmt::skip]
const PER: &[&str] = &[
    "second", "minute", "hour", "day", "night", "week", "weekend", "month", "quarter", "year", "season", "person", "capita",
    "guest", "head", "user", "student", "child", "employee", "household", "room", "serving", "dose", "bottle", "container",
    "unit", "item", "piece", "page", "session", "visit", "game", "match", "trip", "set", "side", "mile", "kilometer", "gallon",
    "liter", "acre", "pound", "kilogram",
];
const TIMES: &[&str] = &["second", "minute", "hour", "day", "night", "week", "month", "year"];
const NO_RATES: &[&str] =
    &["time", "date", "morning", "evening", "noon", "weekend", "season", "quarter", "weekday"];

/// Whether the slash between the words `left` and `right` is read "per": "8 glasses of water/day", "miles/hour".
pub(super) fn is_rate(scan: &Scan, left: usize, right: usize) -> bool {
    let small = |k: usize| scan.word(k).filter(|w| w.len() > 2 && w.chars().all(|c| c.is_ascii_lowercase()));
    let (Some(what), Some(per)) = (small(left), small(right).filter(|_| scan.ends(right + 1))) else {
        return false;
    };
    let plural = what.ends_with('s') && !what.ends_with("ss");
    let number = left.checked_sub(2).is_some_and(|k| scan.is_space(k + 1) && scan.digits(k).is_some());
    let single = !per.ends_with('s');
    match PER.contains(&per) {
        true if plural || number => true,
        // "water/day", but "day/night"
        true => TIMES.contains(&per) && !TIMES.contains(&what) && !NO_RATES.contains(&what),
        // "5 users/team"
        false => number && plural && single && !scan.is_mark(right + 1, "/"),
    }
}

/// What the rate behind a number is given per: "5:43/mi", "60/min".
pub(super) fn per(scan: &Scan, i: usize) -> Option<&str> {
    let word = scan.word(i).filter(|w| w.len() >= 2 && scan.ends(i + 1))?;
    if PER.contains(&word) { Some(word) } else { find(word).filter(|unit| unit.3 == Any).map(|unit| unit.1) }
}

/// The unit words for a count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) one: String,
    pub(super) many: String,
    pub(super) next: usize,
}

fn find(symbol: &str) -> Option<&'static Unit> {
    UNITS.iter().find(|unit| unit.0 == symbol)
}

fn plural(unit: &Unit) -> String {
    if unit.2.is_empty() { format!("{}s", unit.1) } else { unit.2.to_string() }
}

/// British spelling of metre and litre.
fn localise(words: String, locale: Locale) -> String {
    match locale {
        Locale::EnUs => words,
        Locale::EnGb if matches!(words.as_str(), "ton" | "tons") => words.replace("ton", "tonne"),
        Locale::EnGb => words.replace("meter", "metre").replace("liter", "litre"),
    }
}

/// The name of one of a unit given by symbol: "hr" is "hour".
pub(super) fn singular(symbol: &str, locale: Locale) -> Option<String> {
    find(symbol).map(|unit| localise(unit.1.to_string(), locale))
}

/// Whether a written-out word names a measure.
pub(super) fn is_name(word: &str) -> bool {
    NAMES.contains(&word)
}

/// A unit at token `i`, right after a number or a space behind it.
pub(super) fn read(scan: &Scan, i: usize) -> Option<Named> {
    let glued = !scan.is_space(i);
    let at = scan.skip_space(i);
    let mut unit = temperature(scan, at, glued).or_else(|| powers(scan, at, glued)).or_else(|| {
        let symbol = scan.word(at)?;
        let unit = find(symbol)?;
        is_unit(scan, unit, at, glued).then_some(())?;
        let mut next = at + 1;
        // A full stop belongs to "in.", "ft." and "lbs." but ends the sentence after "kg".
        let dotted = matches!(
            symbol,
            "in" | "ft"
                | "pts"
                | "lb"
                | "lbs"
                | "oz"
                | "hr"
                | "hrs"
                | "min"
                | "mins"
                | "sec"
                | "yd"
                | "mi"
                | "gal"
                | "doz"
        );
        let goes_on = scan.word_after(next + 1).is_some_and(|w| w.starts_with(char::is_lowercase));
        if (dotted || goes_on) && scan.is_mark(next, ".") {
            next += 1;
        }
        Some(Named { one: unit.1.to_string(), many: plural(unit), next })
    })?;
    while let Some((words, next)) = quotient(scan, unit.next) {
        unit.one.push_str(&words);
        unit.many.push_str(&words);
        unit.next = next;
        if unit.one.len() > 120 {
            break;
        }
    }
    unit.one = localise(unit.one, scan.locale);
    unit.many = localise(unit.many, scan.locale);
    Some(unit)
}

fn is_unit(scan: &Scan, unit: &Unit, at: usize, glued: bool) -> bool {
    // "5m" and "5 m2" are units; "5km2" is handled by its power, "5mB" is nothing.
    if !scan.ends(at + 1) {
        return false;
    }
    let dashed = scan.is_mark(at + 1, "-") && scan.word(at + 2).is_some();
    match unit.3 {
        // "4K" is a picture or four thousand, "300 K" a temperature.
        Any if glued => !matches!(unit.0, "K" | "d" | "pp"),
        // "(320 pp.)" are pages.
        Any if unit.0 == "pp" => !scan.is_mark(at + 1, ".)"),
        Any => {
            // "5 W Elm St", "42 W. 5th St.", "3 L's", "10 K-pop songs"
            let named = scan.word_after(at + 1).is_some_and(|w| w.starts_with(char::is_uppercase));
            let street = scan.is_mark(at + 1, ".") && scan.is_space(at + 2) && scan.digits(at + 3).is_some();
            !(unit.0.len() == 1 && (named || dashed || street)) && unit.0 != "bar" && unit.0 != "mo"
        }
        Glued => glued,
        // "2 c. flour"
        Word if unit.0 == "c" => {
            !glued
                && scan.is_mark(at + 1, ".")
                && scan.word_after(at + 2).is_some_and(|w| w.starts_with(char::is_lowercase))
        }
        Word => {
            let closes = scan.is_mark(at + 1, ".;)") || at + 1 >= scan.len() || scan.is_mark(at + 2, "=");
            let measure = scan.word_after(at + 1).is_some_and(|w| {
                matches!(
                    w,
                    "long" | "wide" | "tall" | "high" | "thick" | "deep" | "diameter" | "x" | "by" | "across"
                )
            });
            // "5 in. long", "12in"; not "3-in-1" and not "5 in total".
            !dashed && (glued || measure || closes || scan.is_mark(at + 1, "×,"))
        }
    }
}

/// `°C`, `°F`, `°`, and `F` or `C` glued to a number of two digits or more.
fn temperature(scan: &Scan, at: usize, glued: bool) -> Option<Named> {
    let named = |scale: &str, next: usize| {
        let scale = if scale.is_empty() { String::new() } else { format!(" {scale}") };
        Some(Named { one: format!("degree{scale}"), many: format!("degrees{scale}"), next })
    };
    if scan.is_mark(at, "°º˚") {
        let letter = scan.skip_space(at + 1);
        return match scan.word(letter) {
            Some("C") if scan.ends(letter + 1) => named("Celsius", letter + 1),
            Some("F") if scan.ends(letter + 1) => named("Fahrenheit", letter + 1),
            _ => named("", at + 1),
        };
    }
    let wide = at > 0 && scan.digits(at - 1).is_some_and(|d| d.len() >= 2);
    if !glued || !wide || !scan.ends(at + 1) || scan.is_mark(at + 1, "-") {
        return None;
    }
    // "Seat 14C", "a 36C bra"
    let lettered = scan.word_before(at - 1).is_some_and(|w| measures::LETTERED.contains(&w));
    if lettered || matches!(scan.word_after(at + 1), Some("bra" | "cup" | "bus" | "seat")) {
        return None;
    }
    match scan.word(at)? {
        "F" => named("Fahrenheit", at + 1),
        "C" => named("Celsius", at + 1),
        _ => None,
    }
}

/// `m²`, `m2`, `m^2`, `sq ft`, `cu. ft.`, `fl oz`.
fn powers(scan: &Scan, at: usize, glued: bool) -> Option<Named> {
    let word = scan.word(at)?;
    let prefix = match word {
        "sq" | "Sq" => "square",
        "cu" => "cubic",
        "fl" => "fluid",
        _ => "",
    };
    if !prefix.is_empty() {
        let dot = usize::from(scan.is_mark(at + 1, "."));
        let symbol = at + 1 + dot + 1;
        let unit = find(scan.word_after(symbol - 1)?)?;
        let next = symbol + 1 + usize::from(dot == 1 && scan.is_mark(symbol + 1, "."));
        return Some(Named {
            one: format!("{prefix} {}", unit.1),
            many: format!("{prefix} {}", plural(unit)),
            next,
        });
    }
    let unit = find(word)?;
    let (power, next) = power(scan, at + 1)?;
    let prefix = match power {
        "2" => "square",
        "3" => "cubic",
        _ => return None,
    };
    // "5 m2" but not "an s3 bucket", "5 in 2024".
    let length = matches!(word, "km" | "m" | "cm" | "mm" | "µm" | "nm" | "mi" | "ft" | "in" | "yd");
    (length && (glued || word != "in") && scan.ends(next)).then_some(())?;
    Some(Named { one: format!("{prefix} {}", unit.1), many: format!("{prefix} {}", plural(unit)), next })
}

/// An exponent glued to the token before: the digit and the index after it.
fn power(scan: &Scan, i: usize) -> Option<(&'static str, usize)> {
    let digit = |text: &str| match text {
        "2" => Some("2"),
        "3" => Some("3"),
        _ => None,
    };
    match scan.mark(i) {
        Some('²') => Some(("2", i + 1)),
        Some('³') => Some(("3", i + 1)),
        Some('^') => digit(scan.text(i + 1)).map(|d| (d, i + 2)),
        _ => scan.digits(i).and_then(digit).map(|d| (d, i + 1)),
    }
}

/// `/h`, `/s²`, `/m³`, `/min`, and `/day` after a unit.
fn quotient(scan: &Scan, i: usize) -> Option<(String, usize)> {
    if !scan.is_mark(i, "/") {
        return None;
    }
    let word = scan.word(i + 1)?;
    let name = match find(word) {
        Some(unit) => unit.1.to_string(),
        None if is_name(word) || matches!(word, "person" | "user" | "kWh" | "capita") => word.to_string(),
        // "2 min/side": one of whatever it is.
        None if word.len() > 3 && !word.ends_with('s') && word.chars().all(|c| c.is_ascii_lowercase()) => {
            word.to_string()
        }
        None => return None,
    };
    if let Some((power, next)) = power(scan, i + 2) {
        let words = match (word, power) {
            ("s" | "min" | "h", "2") => format!(" per {name} squared"),
            (_, "2") => format!(" per square {name}"),
            _ => format!(" per cubic {name}"),
        };
        return scan.ends(next).then_some((words, next));
    }
    scan.ends(i + 2).then(|| (format!(" per {name}"), i + 2))
}

/// `km/h`, `m/s` and `km²` without a number.
pub(super) fn bare_quotient(scan: &Scan, i: usize) -> Option<Spoken> {
    let unit = find(scan.word(i)?)?;
    if !scan.starts(i) {
        return None;
    }
    // In an equation "m²" is a square.
    if scan.is_mark(i + 1, "²³")
        && !scan.equation
        && let Some(unit) = powers(scan, i, true)
        && (scan.text(i).len() > 1 || scan.word_before(i).is_some_and(|w| matches!(w, "per" | "in" | "of")))
    {
        let one = matches!(scan.word_before(i), Some("per" | "a" | "each" | "every"));
        return Spoken::new(unit.next, localise(if one { unit.one } else { unit.many }, scan.locale));
    }
    let (words, next) = quotient(scan, i + 1)?;
    Spoken::new(next, localise(format!("{}{words}", plural(unit)), scan.locale))
}

/// Whether the quantity in the tokens `from..next` describes the noun after it: "a 5 km run".
pub(super) fn adjectival(scan: &Scan, from: usize, next: usize) -> bool {
    const ENDS: &[&str] = &[
        "a", "after", "and", "are", "as", "at", "away", "before", "but", "by", "can", "each", "every", "for",
        "from", "if", "in", "into", "is", "less", "more", "of", "off", "on", "or", "over", "per", "so",
        "than", "that", "the", "then", "to", "was", "were", "when", "while", "will", "with", "would",
    ];
    let article =
        scan.word_before(from).is_some_and(|w| matches!(w, "a" | "an" | "A" | "An" | "another" | "every"));
    article && scan.word_after(next).is_some_and(|w| w.starts_with(char::is_lowercase) && !ENDS.contains(&w))
}
