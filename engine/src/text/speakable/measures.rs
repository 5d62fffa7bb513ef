//! Quantities: a number, its multiplier, its unit or percent sign, spans and products of them.

use super::numbers::{self, Numeral, SCALE_WORDS};
use super::scan::{Scan, Spoken};
use super::{Locale, calls, units};

/// A number with sign and multiplier.
struct Quantity {
    number: Numeral,
    sign: &'static str,
    scale: &'static str,
    next: usize,
}

impl Quantity {
    fn read(scan: &Scan, i: usize) -> Option<Self> {
        let sign = numbers::sign(scan, i);
        let number = Numeral::read(scan, i + usize::from(sign.is_some()))?;
        let (scale, next) = scale(scan, number.next).unwrap_or(("", number.next));
        Some(Self { number, sign: sign.unwrap_or(""), scale, next })
    }

    fn words(&self, locale: Locale) -> String {
        let space = if self.scale.is_empty() { "" } else { " " };
        format!("{}{}{space}{}", self.sign, self.number.words(locale), self.scale)
    }

    fn is_one(&self) -> bool {
        self.number.is_one() && self.scale.is_empty()
    }
}

/// "10k", "2.5M", "7B": a multiplier glued to the number; "5 million" after a space.
fn scale(scan: &Scan, i: usize) -> Option<(&'static str, usize)> {
    if let Some(word) = scan.word_after(i) {
        let short = match word {
            "mn" | "mln" => Some("million"),
            "bn" | "bln" => Some("billion"),
            "tn" => Some("trillion"),
            _ => None,
        };
        return SCALE_WORDS.iter().find(|w| **w == word).copied().or(short).map(|w| (w, i + 2));
    }
    let word = scan.word(i)?;
    // "4K video", "5K race", "a 24K ring" keep their letter.
    let noun = scan.word_after(i + 1).unwrap_or_default();
    let named = matches!(
        noun,
        "video"
            | "TV"
            | "display"
            | "monitor"
            | "resolution"
            | "run"
            | "race"
            | "ring"
            | "gold"
            | "screen"
            | "footage"
            | "TVs"
    );
    // "Gate 12B", "Qwen 7B" by its neighbour: a letter, not a multiplier.
    let picture = word == "K" && matches!(scan.text(i.wrapping_sub(1)), "4" | "8") && !noun.ends_with('s');
    // "ran 5K", "a 10K"
    let race = word == "K"
        && matches!(scan.text(i.wrapping_sub(1)), "5" | "10")
        && scan
            .word_before(i - 1)
            .is_some_and(|w| matches!(w, "ran" | "run" | "runs" | "a" | "my" | "first"))
        && !noun.ends_with('s');
    let lettered = picture || race || i > 1 && scan.word_before(i - 1).is_some_and(|w| LETTERED.contains(&w));
    if !scan.ends(i + 1) || named || lettered || scan.is_mark(i + 1, "-") && scan.word(i + 2).is_some() {
        return None;
    }
    let scale = match word {
        "k" | "K" => "thousand",
        "M" | "mn" => "million",
        "B" | "bn" => "billion",
        "T" | "tn" => "trillion",
        _ => return None,
    };
    Some((scale, i + 1))
}

/// Nouns that are numbered with a letter behind.
#[rustfmt::skip]
pub(super) const LETTERED: &[&str] = &[
    "Gate", "gate", "Room", "room", "Seat", "seat", "Row", "Rm", "Apt", "Apartment", "apartment", "Unit", "Suite",
    "Exit", "exit", "Block", "Building", "Platform", "Section", "Figure", "Table", "Grade", "Class",
    "Appendix", "Exhibit", "Flat", "Seats", "seats", "Gates", "size", "Size",
];

/// Any quantity with a unit, percent sign or multiplier, any span, product or score.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    if let Some(unit) = units::bare_quotient(scan, i) {
        return Some(unit);
    }
    if scan.is_mark(i.wrapping_sub(1), "/") {
        // "180°C/350°F", "7B/13B"
        let quantity = Quantity::read(scan, i)?;
        let scaled = !quantity.scale.is_empty();
        let words = || scaled.then(|| Spoken { next: quantity.next, words: quantity.words(scan.locale) });
        return single(scan, i, &quantity).or_else(words);
    }
    if !scan.starts(i) {
        return None;
    }
    if let Some(spoken) = multiplied(scan, i).or_else(|| models(scan, i)) {
        return Some(spoken);
    }
    if scan.digits(i).is_some()
        && let Some(spoken) = arc(scan, i).or_else(|| feet_and_inches(scan, i)).or_else(|| product(scan, i))
    {
        return Some(spoken);
    }
    let first = Quantity::read(scan, i)?;
    span(scan, i, &first).or_else(|| single(scan, i, &first)).or_else(|| {
        // "5 million", "10k", "18+"
        let plus = scan.is_mark(first.next, "+")
            && scan.ends(first.next + 1)
            && scan.mark(first.next + 1) != Some('+');
        match plus {
            // "30+ min"
            true if let Some(unit) = tail(scan, first.next + 1) => {
                Spoken::new(unit.next, format!("{} plus {}", first.words(scan.locale), unit.many))
            }
            true => Spoken::new(first.next + 1, format!("{} plus", first.words(scan.locale))),
            false if first.scale.is_empty() => None,
            false => Spoken::new(first.next, first.words(scan.locale)),
        }
    })
}

/// `48°51′30″`: degrees, minutes and seconds of arc.
fn arc(scan: &Scan, i: usize) -> Option<Spoken> {
    let said = |number: &Numeral, name: &str| {
        let plural = if number.is_one() { "" } else { "s" };
        format!("{} {name}{plural}", number.words(scan.locale))
    };
    let degrees = Numeral::read(scan, i).filter(|n| scan.is_mark(n.next, "°"))?;
    let minutes =
        Numeral::read(scan, scan.skip_space(degrees.next + 1)).filter(|n| scan.is_mark(n.next, "'′"))?;
    let words = format!("{} {}", said(&degrees, "degree"), said(&minutes, "minute"));
    let seconds =
        Numeral::read(scan, scan.skip_space(minutes.next + 1)).filter(|n| scan.is_mark(n.next, "\"″"));
    match seconds {
        Some(seconds) => Spoken::new(seconds.next + 1, format!("{words} {}", said(&seconds, "second"))),
        None => Spoken::new(minutes.next + 1, words),
    }
}

/// "paper towels x2"
fn multiplied(scan: &Scan, i: usize) -> Option<Spoken> {
    let things = scan.word_before(i).is_some_and(|w| w.ends_with('s') && w.chars().all(char::is_lowercase));
    let digits =
        scan.digits(i + 1).filter(|d| d.len() <= 2 && things && matches!(scan.text(i), "x" | "×"))?;
    let ends = scan.is_last(i + 2) || scan.is_mark(i + 2, ",;)");
    ends.then(|| Spoken { next: i + 2, words: format!("times {}", numbers::cardinal(digits, scan.locale)) })
}

/// "two Boeing 737s": things that are named by their number.
fn models(scan: &Scan, i: usize) -> Option<Spoken> {
    let digits = scan.digits(i).filter(|d| d.len() == 3 && scan.is_word(i + 1, "s") && scan.ends(i + 2))?;
    let named = i > 2 && scan.word_before(i).is_some_and(|w| w.starts_with(char::is_uppercase));
    named.then(|| Spoken { next: i + 2, words: numbers::plural(&numbers::code(digits, scan.locale)) })
}

/// Whether a straight quote at `i` closes one that was opened: else it is the sign of inches.
fn closes_quote(scan: &Scan, i: usize) -> bool {
    const REACH: usize = 120;
    let quotes = (i.saturating_sub(REACH)..i)
        .filter(|&k| scan.is_mark(k, "\"") && scan.digits(k.wrapping_sub(1)).is_none());
    quotes.count() % 2 == 1
}

/// What a quantity is counted in.
struct Tail {
    one: String,
    many: String,
    next: usize,
}

fn tail(scan: &Scan, i: usize) -> Option<Tail> {
    let at = scan.skip_space(i);
    if scan.is_mark(at, "%") {
        return Some(Tail { one: "percent".into(), many: "percent".into(), next: at + 1 });
    }
    if scan.is_mark(at, "‰") {
        return Some(Tail { one: "per mille".into(), many: "per mille".into(), next: at + 1 });
    }
    // `13.4" screen`
    if scan.is_mark(i, "\"")
        && scan.digits(i.wrapping_sub(1)).is_some()
        && scan.ends(i + 1)
        && !closes_quote(scan, i)
    {
        return Some(Tail { one: "inch".into(), many: "inches".into(), next: i + 1 });
    }
    // "2x/day"
    let rate = scan.word(i + 2).filter(|w| scan.is_mark(i + 1, "/") && units::is_name(w) && scan.ends(i + 3));
    if let Some(rate) = rate
        && at == i
        && (scan.is_mark(i, "×") || scan.is_word(i, "x"))
    {
        return Some(Tail {
            one: format!("time per {rate}"),
            many: format!("times per {rate}"),
            next: i + 3,
        });
    }
    // "2x + 1" and "cos(2x)" are algebra.
    let algebra = scan.equation
        || scan.is_mark(scan.skip_space(i + 1), "+-−*/^=")
        || i > 1 && calls::opens_call(scan, i - 2);
    if at == i && !algebra && (scan.is_mark(i, "×") || scan.is_word(i, "x")) && scan.ends(i + 1) {
        return Some(Tail { one: "time".into(), many: "times".into(), next: i + 1 });
    }
    // "5-km run": the hyphen makes it an adjective.
    if scan.is_mark(i, "-") && scan.word(i + 1).is_some() {
        let unit = units::read(scan, i + 1).filter(|u| {
            let closed = scan.is_space(u.next) || scan.is_mark(u.next, ",;)");
            closed && !matches!(scan.text(i + 1), "in" | "h" | "m")
        })?;
        return Some(Tail { many: unit.one.clone(), one: unit.one, next: unit.next });
    }
    let unit = units::read(scan, i)?;
    Some(Tail { one: unit.one, many: unit.many, next: unit.next })
}

/// `16GB`, `5 km/h`, `0.5%`, `-5°C`, `3x`.
fn single(scan: &Scan, i: usize, quantity: &Quantity) -> Option<Spoken> {
    let tail = tail(scan, quantity.next)?;
    let singular = quantity.is_one() || units::adjectival(scan, i, tail.next);
    let unit = if singular { tail.one } else { tail.many };
    Spoken::new(tail.next, format!("{} {unit}", quantity.words(scan.locale)))
}

/// `40-60°C`, `5–10 min`, `5%-10%`, `2-3x`, `10–12`, `3-2`, `5 - 10`.
fn span(scan: &Scan, i: usize, first: &Quantity) -> Option<Spoken> {
    let own = tail(scan, first.next).filter(|t| scan.is_mark(scan.skip_space(t.next), "-–"));
    let from = own.as_ref().map_or(first.next, |t| t.next);
    let dash = scan.skip_space(from);
    let spaced = dash > from;
    if !scan.is_mark(dash, "-–") || spaced != scan.is_space(dash + 1) {
        return None;
    }
    // "7 - 3 = 4" is a subtraction.
    if spaced && scan.equation {
        return None;
    }
    let last = Quantity::read(scan, dash + 1 + usize::from(spaced))?;
    if !last.sign.is_empty() && last.sign != "minus " {
        return None;
    }
    if let (Some(low), Some(high)) = (first.number.value(), last.number.value())
        && spaced
        && high <= low
    {
        return None;
    }
    let (from_words, to_words) = (first.words(scan.locale), last.words(scan.locale));
    if let Some(unit) = tail(scan, last.next) {
        // "5km–10mi" says both.
        let both = own.filter(|own| own.many != unit.many);
        let middle = both.map_or(String::new(), |own| format!(" {}", own.many));
        let name = if units::adjectival(scan, i, unit.next) { unit.one } else { unit.many };
        return Spoken::new(unit.next, format!("{from_words}{middle} to {to_words} {name}"));
    }
    if own.is_some()
        || !scan.ends(last.next)
        || scan.is_mark(last.next, "-–/") && scan.digits(last.next + 1).is_some()
    {
        return None;
    }
    let padded = |q: &Quantity| q.number.int.len() > 1 && q.number.int.starts_with('0');
    if padded(first) || padded(&last) {
        return None;
    }
    // "5-3=2" is a subtraction.
    if scan.is_mark(scan.skip_space(last.next), "=") || scan.is_mark(last.next, "+*/^×") {
        return None;
    }
    match scan.span(i, last.next) {
        "10-4" => return Spoken::new(last.next, "ten four"),
        "50-50" => return Spoken::new(last.next, "fifty-fifty"),
        _ => {}
    }
    if matches!(scan.word_before(i), Some("Boeing" | "Airbus" | "Embraer")) {
        let code = |q: &Quantity| numbers::code(&q.number.int, scan.locale);
        return Spoken::new(last.next, format!("{} {}", code(first), code(&last)));
    }
    let plain = |q: &Quantity| {
        let bare = q.number.frac.is_none() && !q.number.grouped && q.scale.is_empty() && q.sign.is_empty();
        if bare { numbers::integer(&q.number.int, scan.locale) } else { q.words(scan.locale) }
    };
    Spoken::new(last.next, format!("{} to {}", plain(first), plain(&last)))
}

/// `5'11"`, `6′ 2″`, `6'2`, `12″`.
fn feet_and_inches(scan: &Scan, i: usize) -> Option<Spoken> {
    let feet = scan.digits(i)?;
    let words = |digits: &str| numbers::cardinal(digits, scan.locale);
    let inch_mark = |k: usize| scan.is_mark(k, "\"″");
    if scan.is_mark(i + 1, "″") {
        let name = if feet == "1" || units::adjectival(scan, i, i + 2) { "inch" } else { "inches" };
        return Spoken::new(i + 2, format!("{} {name}", words(feet)));
    }
    if !scan.is_mark(i + 1, "'′") {
        return None;
    }
    let at = scan.skip_space(i + 2);
    if let Some(inches) = scan.digits(at).filter(|d| d.len() <= 2)
        && (at == i + 2 || inch_mark(at + 1))
        && scan.ends(at + 1)
    {
        let next = at + 1 + usize::from(inch_mark(at + 1));
        let height = format!("{} foot {}", words(feet), words(inches));
        // `5'4"–5'8"`
        let last = scan.digits(next + 1).filter(|_| scan.is_mark(next, "-–") && scan.is_mark(next + 2, "'′"));
        return match last.and_then(|_| feet_and_inches(scan, next + 1)) {
            Some(last) => Spoken::new(last.next, format!("{height} to {}", last.words)),
            None => Spoken::new(next, height),
        };
    }
    // "an 8' ceiling"
    if scan.ends(i + 2) && units::adjectival(scan, i, i + 2) {
        return Spoken::new(i + 2, format!("{} foot", words(feet)));
    }
    // "heat for 5′"
    if scan.is_mark(i + 1, "′") && matches!(scan.word_before(i), Some("for" | "after" | "every" | "within"))
    {
        let name = if feet == "1" { "minute" } else { "minutes" };
        return Spoken::new(i + 2, format!("{} {name}", words(feet)));
    }
    if scan.is_mark(i + 1, "′") && scan.ends(i + 2) {
        let name = if feet == "1" { "foot" } else { "feet" };
        return Spoken::new(i + 2, format!("{} {name}", words(feet)));
    }
    None
}

/// `4x4`, `1920×1080`, `5 x 10 cm`, `2 × 3 × 4 m`.
fn product(scan: &Scan, i: usize) -> Option<Spoken> {
    let first = Numeral::read(scan, i)?;
    let mut sides = vec![first.clone()];
    let mut length = "";
    let mut next = after_length_mark(scan, first.next, &mut length);
    let mut spaced = false;
    while sides.len() < 4 {
        let at = scan.skip_space(next);
        let by = scan.is_mark(at, "×") || matches!(scan.text(at), "x" | "X");
        let after = scan.skip_space(at + 1);
        let Some(side) = Numeral::read(scan, after).filter(|_| by && (at > next) == (after > at + 1)) else {
            break;
        };
        spaced |= at > next;
        next = after_length_mark(scan, side.next, &mut length);
        sides.push(side);
    }
    if sides.len() < 2 {
        return None;
    }
    if scan.is_mark(next, "^²³⁰¹⁴⁵⁶⁷⁸⁹⁻") {
        // "3 x 10^8": the last side is a power, which the sign's own rule finds.
        let at = scan.skip_space(first.next);
        let letter = sides.len() == 2 && !scan.is_mark(at, "×");
        return if letter {
            Spoken::new(scan.skip_space(at + 1), format!("{} times", first.words(scan.locale)))
        } else {
            None
        };
    }
    // "2x4s"
    let small = sides.iter().all(|s| s.int.len() <= 2 && s.frac.is_none());
    if !spaced && small && length.is_empty() && scan.is_word(next, "s") && scan.ends(next + 1) {
        let words: Vec<String> = sides.iter().map(|side| side.words(scan.locale)).collect();
        return Spoken::new(next + 1, numbers::plural(&words.join(" by ")));
    }
    let unit = units::read(scan, next);
    // With spaces and no unit it is a multiplication, unless it is written with a letter.
    let letter = !scan.is_mark(scan.skip_space(first.next), "×");
    let measured = unit.is_some() || !length.is_empty();
    if !measured && spaced && letter && scan.equation && sides.len() == 2 {
        // "7 x 8 = 56"
        let at = scan.skip_space(first.next);
        return Spoken::new(scan.skip_space(at + 1), format!("{} times", first.words(scan.locale)));
    }
    if !measured && (spaced && (scan.equation || !letter) || !scan.ends(next)) {
        return None;
    }
    let big = sides.iter().any(|s| s.int.len() >= 3 && s.frac.is_none());
    let words: Vec<String> = sides
        .iter()
        .map(|side| match unit.is_none() && big && !side.grouped && side.frac.is_none() {
            true => numbers::code(&side.int, scan.locale),
            false => side.words(scan.locale),
        })
        .collect();
    let mut words = words.join(" by ");
    if let Some(unit) = unit {
        next = unit.next;
        let name = if units::adjectival(scan, i, next) { unit.one } else { unit.many };
        words = format!("{words} {name}");
    } else if !length.is_empty() {
        let one = if length == "feet" { "foot" } else { "inch" };
        words = format!("{words} {}", if units::adjectival(scan, i, next) { one } else { length });
    }
    Spoken::new(next, words)
}

/// The index after the sign of feet or inches behind a side: `8.5" x 11"`.
fn after_length_mark(scan: &Scan, i: usize, length: &mut &str) -> usize {
    match scan.mark(i) {
        Some('"' | '″') => *length = "inches",
        Some('\'' | '′') => *length = "feet",
        _ => return i,
    }
    i + 1
}

/// `16:9`, `5:1`, `1:1`, `3:4:5`: what is not a time.
pub(super) fn ratio(scan: &Scan, i: usize) -> Option<Spoken> {
    let first = scan.digits(i).filter(|_| scan.starts(i))?;
    let words = |digits: &str| numbers::cardinal(digits, scan.locale);
    if !scan.is_mark(i + 1, ":") || !scan.ends(i + 3) {
        return None;
    }
    let last = scan.digits(i + 2)?;
    if scan.is_mark(i + 3, ":") {
        let third = scan.digits(i + 4).filter(|d| d.len() == 1 && first.len() == 1 && last.len() == 1)?;
        let words = format!("{} to {} to {}", words(first), words(last), words(third));
        return if scan.is_mark(i + 5, ":") { None } else { Spoken::new(i + 5, words) };
    }
    let told = matches!(
        scan.word_after(i + 3),
        Some("ratio" | "scale" | "odds" | "split" | "dilution" | "mix" | "mixture")
    );
    let shape = matches!(scan.span(i, i + 3), "16:9" | "4:3" | "21:9" | "16:10" | "9:16");
    let middle = if shape { "by" } else { "to" };
    // "8080:80" is a pair of ports.
    let words =
        |digits: &str| if first.len() >= 4 { numbers::code(digits, scan.locale) } else { words(digits) };
    if last.len() == 2 && first.len() <= 2 && !shape && !told {
        return None; // a time, which comes later
    }
    Spoken::new(i + 3, format!("{} {middle} {}", words(first), words(last)))
}
