//! Fractions and what is written like them: "3/4", "1 1/2 cups", "½", "7/10", "120/80".

use super::numbers;
use super::scan::{Scan, Spoken};
use super::{Locale, units};

/// Numerator and denominator of the one-character fractions.
fn vulgar(c: char) -> Option<(u32, u32)> {
    Some(match c {
        '½' => (1, 2),
        '⅓' => (1, 3),
        '⅔' => (2, 3),
        '¼' => (1, 4),
        '¾' => (3, 4),
        '⅕' => (1, 5),
        '⅖' => (2, 5),
        '⅗' => (3, 5),
        '⅘' => (4, 5),
        '⅙' => (1, 6),
        '⅚' => (5, 6),
        '⅐' => (1, 7),
        '⅛' => (1, 8),
        '⅜' => (3, 8),
        '⅝' => (5, 8),
        '⅞' => (7, 8),
        '⅑' => (1, 9),
        '⅒' => (1, 10),
        _ => return None,
    })
}

/// A fraction at token `i`: numerator, denominator and the index after it.
fn read(scan: &Scan, i: usize) -> Option<(u32, u32, usize)> {
    if let Some((over, under)) = scan.mark(i).and_then(vulgar) {
        return Some((over, under, i + 1));
    }
    let over = scan.digits(i).filter(|d| d.len() <= 4)?;
    if !scan.is_mark(i + 1, "/⁄") {
        return None;
    }
    let under = scan.digits(i + 2).filter(|d| d.len() <= 4)?;
    let more = scan.is_mark(i + 3, "/.-–") && scan.digits(i + 4).is_some();
    // "2/3rds"
    let ordinal = matches!(scan.text(i + 3), "rd" | "rds" | "th" | "ths" | "nd") && scan.ends(i + 4);
    if ordinal && !more {
        return Some((over.parse().ok()?, under.parse().ok()?, i + 4));
    }
    if more || !scan.ends(i + 3) && units::read(scan, i + 3).is_none() {
        return None;
    }
    Some((over.parse().ok()?, under.parse().ok()?, i + 3))
}

/// `1/2`, `3/4 of`, `1 1/2 cups`, `1½`, `½ cup`, `7/10`, `4/5 stars`, `120/80`, `50/50`.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    if !scan.starts(i) {
        return None;
    }
    if let Some(mixed) = mixed(scan, i) {
        return Some(mixed);
    }
    if let Some(rated) = rated(scan, i) {
        return Some(rated);
    }
    let (over, under, next) = read(scan, i)?;
    if let Some(measured) = of_a_unit(scan, over, under, next) {
        return Some(measured);
    }
    let cardinal = |n: u32| numbers::cardinal(&n.to_string(), scan.locale);
    let counted = matches!(scan.word_after(next), Some("stars" | "star" | "points" | "rating" | "score"))
        || scan.is_mark(scan.skip_space(next), "⭐★☆🌟")
        || is_rating(scan, i);
    let coded = over >= 100
        && under >= 100
        && over < 600
        && under < 600
        && (i.saturating_sub(12)..scan.len().min(i + 12))
            .any(|k| matches!(scan.text(k), "HTTP" | "Error" | "error" | "errors" | "status" | "Status"));
    let of = matches!(scan.word_after(next), Some("of"));
    let words = match (over, under) {
        _ if coded => {
            let code = |n: u32| numbers::code(&n.to_string(), scan.locale);
            format!("{} or {}", code(over), code(under))
        }
        _ if over > under && scan.digits(i).is_some() && scan.is_mark(scan.skip_space(next), "=≈≠") => {
            format!("{} over {}", cardinal(over), cardinal(under))
        }
        (50, 50) => "fifty-fifty".into(),
        (20, 20) => "twenty twenty".into(),
        (4, 4) | (6, 8) | (3, 4) | (2, 4) if scan.word_after(next) == Some("time") => {
            format!("{}-{}", cardinal(over), cardinal(under))
        }
        (over, under) if over + under == 100 && over >= 50 && under % 5 == 0 => {
            format!("{} {}", cardinal(over), cardinal(under))
        }
        (1, 2) if matches!(scan.word_after(next), Some("price" | "off" | "full" | "empty" | "time")) => {
            "half".into()
        }
        _ if counted => format!("{} out of {}", cardinal(over), cardinal(under)),
        (90..=220, 50..=130) if over > under => {
            let pressure =
                format!("{} over {}", numbers::code(&over.to_string(), scan.locale), cardinal(under));
            return match units::read(scan, next) {
                Some(unit) => Spoken::new(unit.next, format!("{pressure} {}", unit.many)),
                None => Spoken::new(next, pressure),
            };
        }
        (2.., 10 | 100) if !of => format!("{} out of {}", cardinal(over), cardinal(under)),
        (2.., _) if over == under => format!("{} out of {}", cardinal(over), cardinal(under)),
        (_, 0 | 1) => format!("{} over {}", cardinal(over), cardinal(under)),
        _ if over > under && under > 10 || under > 100 && under != 1000 => {
            format!("{} over {}", cardinal(over), cardinal(under))
        }
        _ => say(over, under, scan.locale),
    };
    Spoken::new(next, words)
}

/// "Rating: 4/5"
fn is_rating(scan: &Scan, i: usize) -> bool {
    let before = i >= 3 && scan.is_space(i - 1) && scan.is_mark(i - 2, ":");
    before
        && scan.word(i - 3).is_some_and(|w| {
            matches!(
                w.to_lowercase().as_str(),
                "rating" | "score" | "verdict" | "overall" | "grade" | "review"
            )
        })
}

/// `8.5/10`, `4.5/5`, `3.9/4.0`
fn rated(scan: &Scan, i: usize) -> Option<Spoken> {
    let number = numbers::Numeral::read(scan, i).filter(|n| n.frac.is_some())?;
    let under = scan.digits(number.next + 1).filter(|d| matches!(*d, "4" | "5" | "10" | "20" | "100"))?;
    let mut next = number.next + 2;
    if scan.is_mark(next, ".") && scan.digits(next + 1).is_some_and(|d| d.bytes().all(|b| b == b'0')) {
        next += 2;
    }
    if !scan.is_mark(number.next, "/") || !scan.ends(next) || scan.is_mark(next, "/") {
        return None;
    }
    Spoken::new(
        next,
        format!("{} out of {}", number.words(scan.locale), numbers::cardinal(under, scan.locale)),
    )
}

/// "three quarters", "one third", "one hundredth".
fn say(over: u32, under: u32, locale: Locale) -> String {
    let part = match under {
        2 if over == 1 => "half".into(),
        2 => "halves".into(),
        4 if over == 1 => "quarter".into(),
        4 => "quarters".into(),
        10 | 100 | 1000 => {
            // "one hundredth", not "one one hundredth".
            let words = numbers::ordinal(&under.to_string(), locale).replace("one ", "");
            if over == 1 { words } else { format!("{words}s") }
        }
        _ => {
            let words = numbers::ordinal(&under.to_string(), locale);
            if over == 1 { words } else { format!("{words}s") }
        }
    };
    format!("{} {part}", numbers::cardinal(&over.to_string(), locale))
}

/// `1 1/2`, `2¾`: a whole number and a proper fraction.
fn mixed(scan: &Scan, i: usize) -> Option<Spoken> {
    let whole = scan.digits(i).filter(|d| d.len() <= 3 && !d.starts_with('0'))?;
    let at = scan.skip_space(i + 1);
    if at == i + 1 && scan.digits(at).is_some() {
        return None;
    }
    let glued_mark = at == i + 1 && scan.mark(at).and_then(vulgar).is_some();
    // "3½–4 hours": the last number is read by itself.
    let last = at + 1;
    if glued_mark
        && scan.is_mark(last, "-–")
        && (scan.digits(last + 1).is_some() || scan.mark(last + 1).and_then(vulgar).is_some())
    {
        let (over, under, _) = read(scan, at)?;
        let part = if (over, under) == (1, 2) {
            "a half".into()
        } else {
            say(over, under, scan.locale).replacen("one ", "a ", 1)
        };
        return Spoken::new(last + 1, format!("{} and {part} to", numbers::cardinal(whole, scan.locale)));
    }
    let (over, under, mut next) = read(scan, at).filter(|(over, under, _)| over < under && *under <= 64)?;
    if at == i + 1 && !glued_mark {
        return None;
    }
    let unit = units::read(scan, next);
    let name = unit.map(|unit| {
        next = unit.next;
        unit.many
    });
    let counted = name.is_some() || scan.word_after(next).is_some_and(|w| w.starts_with(char::is_lowercase));
    let part = match (over, under) {
        (1, 2) => "a half".into(),
        (1, 8) => "an eighth".into(),
        (1, _) => format!("a {}", say(1, under, scan.locale).trim_start_matches("one ")),
        (3, 4) if counted => "three quarter".into(),
        _ => say(over, under, scan.locale),
    };
    let name = name.map_or(String::new(), |name| format!(" {name}"));
    Spoken::new(next, format!("{} and {part}{name}", numbers::cardinal(whole, scan.locale)))
}

/// `½ cup` and `1/2 mile`: "half a cup", "three quarters of a mile".
fn of_a_unit(scan: &Scan, over: u32, under: u32, next: usize) -> Option<Spoken> {
    // "1/250 s" is a time of exposure.
    let exposure = over == 1 && units::read(scan, next).is_some_and(|unit| unit.one == "second");
    if over >= under || under > 64 && !exposure {
        return None;
    }
    // `1/4" drill`
    let one_mark = scan.mark(next.wrapping_sub(1)).and_then(vulgar).is_some() && scan.ends(next + 1);
    if scan.is_mark(next, "\"″") && (scan.digits(next.wrapping_sub(1)).is_some() || one_mark) {
        let part = say(over, under, scan.locale);
        return Spoken::new(next + 1, format!("{} inch", part.trim_end_matches('s')));
    }
    let (name, end) = match units::read(scan, next) {
        Some(unit) => (unit.one, unit.next),
        None => {
            let dash = scan.is_mark(next, "-") && scan.word(next + 1).is_some_and(units::is_name);
            let word = if dash { scan.word(next + 1)? } else { scan.word_after(next)? };
            units::is_name(word).then_some(())?;
            (word.to_string(), next + 2)
        }
    };
    // "1/2-inch pipe"
    if scan.is_mark(next, "-") {
        let part = if (over, under) == (1, 2) { "half".into() } else { say(over, under, scan.locale) };
        return Spoken::new(end, format!("{} {name}", part.trim_end_matches('s')));
    }
    let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) || name == "hour" { "an" } else { "a" };
    let words = match (over, under) {
        (1, 2) => format!("half {article} {name}"),
        _ => format!("{} of {article} {name}", say(over, under, scan.locale)),
    };
    Spoken::new(end, words)
}
