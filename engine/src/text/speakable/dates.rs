//! Dates, months, weekdays, decades and spans of years.

use super::Locale;
use super::numbers;
use super::scan::{Scan, Spoken};
use super::times;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The month (1 to 12) that a capitalised word names, in full or shortened.
fn month(word: &str) -> Option<u32> {
    let at = MONTHS.iter().position(|m| {
        *m == word || word.len() == 3 && m.starts_with(word) || word == "Sept" && *m == "September"
    });
    at.map(|m| m as u32 + 1)
}

fn is_full_month(word: &str) -> bool {
    MONTHS.contains(&word)
}

fn weekday(word: &str) -> Option<&'static str> {
    Some(match word {
        "Mon" => "Monday",
        "Tue" | "Tues" => "Tuesday",
        "Wed" => "Wednesday",
        "Thu" | "Thur" | "Thurs" => "Thursday",
        "Fri" => "Friday",
        "Sat" => "Saturday",
        "Sun" => "Sunday",
        _ => return None,
    })
}

/// Any date, decade or span of years that starts at token `i`.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    if !scan.starts(i) && !scan.is_mark(i.wrapping_sub(1), "-/") {
        return None;
    }
    let first = date(scan, i)?;
    // "July 26 – August 11", "14 March 1879 – 18 April 1955"
    let dash = scan.skip_space(first.next);
    let end = scan.skip_space(dash + 1);
    if scan.is_mark(dash, "-–")
        && (dash > first.next) == (end > dash + 1)
        && has_month(&first.words)
        && let Some(last) = date(scan, end).filter(|last| has_month(&last.words))
    {
        return Spoken::new(last.next, format!("{} to {}", first.words, last.words));
    }
    Some(first)
}

fn has_month(words: &str) -> bool {
    words.split([' ', ',']).any(is_full_month)
}

fn date(scan: &Scan, i: usize) -> Option<Spoken> {
    if scan.word(i).is_some() {
        return weekdays(scan, i)
            .or_else(|| month_first(scan, i))
            .or_else(|| era_first(scan, i))
            .or_else(|| period(scan, i));
    }
    if scan.is_mark(i, "'") {
        return short_year(scan, i);
    }
    scan.digits(i)?;
    decade(scan, i)
        .or_else(|| compact(scan, i))
        .or_else(|| short_span(scan, i))
        .or_else(|| day_first(scan, i))
        .or_else(|| numeric(scan, i))
        .or_else(|| years(scan, i))
        .or_else(|| era(scan, i))
}

/// A full date in words, in the order of the locale.
fn say(month: u32, day: u32, year: Option<u32>, locale: Locale) -> Option<String> {
    let name = MONTHS.get(month.checked_sub(1)? as usize)?;
    (1..=31).contains(&day).then_some(())?;
    let day = numbers::ordinal(&day.to_string(), locale);
    let mut words = match locale {
        Locale::EnUs => format!("{name} {day}"),
        Locale::EnGb => format!("the {day} of {name}"),
    };
    if let Some(year) = year {
        words.push_str(", ");
        words.push_str(&numbers::year(year, locale));
    }
    Some(words)
}

/// A day of the month at token `i`, with or without its ordinal ending: the day and the index after it.
fn day(scan: &Scan, i: usize) -> Option<(u32, usize)> {
    let day: u32 = scan.digits(i).filter(|d| d.len() <= 2)?.parse().ok()?;
    let ending = scan.word(i + 1).is_some_and(|w| matches!(w, "st" | "nd" | "rd" | "th"));
    let next = i + 1 + usize::from(ending);
    let bounded = scan.ends(next)
        && !scan.is_mark(next, ":/%°")
        && !(scan.is_mark(next, ".,") && scan.digits(next + 1).is_some());
    ((1..=31).contains(&day) && bounded).then_some((day, next))
}

/// A year of four digits at token `i`.
fn full_year(scan: &Scan, i: usize) -> Option<u32> {
    let year = scan.digits(i).filter(|d| d.len() == 4 && !d.starts_with('0'))?.parse().ok()?;
    (scan.ends(i + 1) && (1000..=2999).contains(&year)).then_some(year)
}

/// `Mon, Jan 5`, `Mon–Fri`: a shortened weekday beside a date or in a span.
fn weekdays(scan: &Scan, i: usize) -> Option<Spoken> {
    let first = weekday(scan.word(i)?)?;
    let dotted = usize::from(scan.is_mark(i + 1, "."));
    let next = i + 1 + dotted;
    if scan.is_mark(next, "-–")
        && let Some(last) = scan.word(next + 1).and_then(weekday)
    {
        let end = next + 2;
        let stop = usize::from(scan.is_mark(end, ".") && !scan.is_last(end + 1));
        return Spoken::new(end + stop, format!("{first} to {last}"));
    }
    let comma = usize::from(scan.is_mark(next, ","));
    let after = scan.skip_space(next + comma);
    let dated = scan.digits(after).is_some() || scan.word(after).is_some_and(|w| month(w).is_some());
    let alone = dotted == 1 && !scan.is_last(next);
    // "Mon/Wed/Fri", "Tue & Thu"
    let mark = scan.skip_space(next);
    let names = |k: Option<usize>| k.and_then(|k| scan.word(k)).is_some_and(|w| weekday(w).is_some());
    let before = i.checked_sub(1 + usize::from(i > 0 && scan.is_space(i - 1)));
    let joined = before.is_some_and(|k| scan.is_mark(k, "/&"));
    let other = before.and_then(|k| k.checked_sub(1 + usize::from(k > 0 && scan.is_space(k - 1))));
    let listed = scan.is_mark(mark, "/&") && names(Some(scan.skip_space(mark + 1))) || joined && names(other);
    // "Sat night"
    let part = scan.word_after(next).is_some_and(|w| {
        matches!(w, "morning" | "afternoon" | "evening" | "night")
            || matches!(w, "high" | "low") && !matches!(first, "Saturday" | "Sunday")
    });
    (after > next && dated || alone || listed || part).then_some(())?;
    Spoken::new(next, first)
}

/// `Jan 5th, 2024`, `June 5–7`, `March 2024`, `Jan–Mar 2024`, `Sept. 11, 2001`.
fn month_first(scan: &Scan, i: usize) -> Option<Spoken> {
    let word = scan.word(i)?;
    let number = month(word)?;
    let name = MONTHS[number as usize - 1];
    let dotted = scan.is_mark(i + 1, ".");
    let next = i + 1 + usize::from(dotted);
    if scan.is_mark(next, "-–")
        && let Some(last) = scan.word(next + 1).and_then(month)
        && scan.ends(next + 2)
    {
        let mut words = format!("{name} to {}", MONTHS[last as usize - 1]);
        let mut after = next + 2;
        if scan.is_space(after)
            && let Some(year) = full_year(scan, after + 1)
        {
            words.push_str(&format!(" {}", numbers::year(year, scan.locale)));
            after += 2;
        }
        return Spoken::new(after, words);
    }
    // "Dec." and the like before anything but a date.
    let plain =
        || (dotted && !is_full_month(word) && word != "May").then(|| Spoken { next, words: name.into() });
    if !scan.is_space(next) {
        return plain().filter(|_| !scan.is_last(next) || word == "Sept");
    }
    let at = next + 1;
    if let Some(year) = full_year(scan, at) {
        return Spoken::new(at + 1, format!("{name} {}", numbers::year(year, scan.locale)));
    }
    let Some((first, mut after)) = day(scan, at) else { return plain() };
    let ordinal = |day: u32| numbers::ordinal(&day.to_string(), scan.locale);
    let mut words = match scan.locale {
        Locale::EnUs => format!("{name} {}", ordinal(first)),
        Locale::EnGb => format!("{name} the {}", ordinal(first)),
    };
    if scan.is_mark(after, "-–")
        && let Some((last, end)) = day(scan, after + 1)
        && last > first
    {
        words.push_str(&format!(" to {}", ordinal(last)));
        after = end;
    }
    let (year, end) = year_after(scan, after);
    if let Some(year) = year {
        words.push_str(&format!(", {}", numbers::year(year, scan.locale)));
        after = end;
    }
    Spoken::new(after, words)
}

/// A year behind a space or comma.
fn year_after(scan: &Scan, i: usize) -> (Option<u32>, usize) {
    let at = scan.skip_space(i + usize::from(scan.is_mark(i, ",")));
    match full_year(scan, at) {
        Some(year) if at > i => (Some(year), at + 1),
        _ => (None, i),
    }
}

/// `5 January 2024`, `4th July`.
fn day_first(scan: &Scan, i: usize) -> Option<Spoken> {
    let (first, at) = day(scan, i)?;
    let word = scan.word_after(at)?;
    let number = month(word)?;
    let mut after = at + 2;
    if !is_full_month(word) && scan.is_mark(after, ".") {
        after += 1;
    }
    let (year, end) = year_after(scan, after);
    // "2 March" is a date, "2 May" as well, "3 Mar" only with a year.
    if year.is_none() && !is_full_month(word) {
        return None;
    }
    Spoken::new(end, say(number, first, year, scan.locale)?)
}

/// `2024-05-07` (with a time or without), `5/7/2024`, `07.05.2024`, `12/25`.
fn numeric(scan: &Scan, i: usize) -> Option<Spoken> {
    let separator = scan.mark(i + 1).filter(|c| "-/.".contains(*c))?;
    let part = |k: usize| {
        scan.digits(k).filter(|d| d.len() <= 4).and_then(|d| d.parse::<u32>().ok().map(|n| (n, d.len())))
    };
    let (first, first_len) = part(i)?;
    let (second, second_len) = part(i + 2)?;
    let same = scan.mark(i + 3) == Some(separator);
    let (Some((third, third_len)), true) = (part(i + 4), same) else {
        return short_date(scan, i, separator, (first, first_len), (second, second_len));
    };
    if second_len > 2 || !scan.ends(i + 5) && !scan.is_word(i + 5, "T") || scan.is_mark(i + 5, "-/") {
        return None;
    }
    if first_len == 4 && third_len <= 2 && (1000..3000).contains(&first) {
        let words = say(second, third, Some(first), scan.locale).filter(|_| second <= 12)?;
        return with_time(scan, i + 5, words);
    }
    let year = match third_len {
        4 if (1000..3000).contains(&third) => third,
        2 if separator == '/' && first_len <= 2 => third + if third < 70 { 2000 } else { 1900 },
        _ => return None,
    };
    if first_len > 2 || !scan.ends(i + 5) {
        return None;
    }
    let day_leads = separator == '.' || scan.locale == Locale::EnGb;
    let (month, day) = match day_leads {
        true if second <= 12 => (second, first),
        false if first <= 12 => (first, second),
        true => (first, second),
        false => (second, first),
    };
    (month <= 12).then_some(())?;
    Spoken::new(i + 5, say(month, day, Some(year), scan.locale)?)
}

/// `2024-05-07T14:05:00Z` and `2024-05-07 14:05`.
fn with_time(scan: &Scan, i: usize, date: String) -> Option<Spoken> {
    let at = if scan.is_word(i, "T") { i + 1 } else { scan.skip_space(i) };
    let time = if at > i { times::clock(scan, at) } else { None };
    let Some(time) = time else {
        return if scan.ends(i) { Spoken::new(i, date) } else { None };
    };
    if scan.is_word(time.next, "Z") {
        return Spoken::new(time.next + 1, format!("{date}, at {} U T C", time.words));
    }
    Spoken::new(time.next, format!("{date}, at {}", time.words))
}

/// `12/25`, `05/07`: a day of the year, where it can't be a fraction.
fn short_date(
    scan: &Scan,
    i: usize,
    separator: char,
    first: (u32, usize),
    second: (u32, usize),
) -> Option<Spoken> {
    if separator != '/' || !scan.ends(i + 3) || scan.is_mark(i + 3, "/-") && scan.digits(i + 4).is_some() {
        return None;
    }
    // "03/2026"
    if second.1 == 4 && (1..=12).contains(&first.0) && (1900..2100).contains(&second.0) && first.1 == 2 {
        let year = numbers::year(second.0, scan.locale);
        return Spoken::new(i + 3, format!("{} {year}", MONTHS[first.0 as usize - 1]));
    }
    let (month, day) = match scan.locale {
        Locale::EnUs => (first.0, second.0),
        Locale::EnGb => (second.0, first.0),
    };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || first.1 > 2 || second.1 > 2 {
        return None;
    }
    let padded = first.1 == 2 && first.0 < 10 || second.1 == 2 && second.0 < 10;
    let before = scan.word_before(i).unwrap_or_default().to_lowercase();
    let product =
        scan.word_before(i.saturating_sub(2)).is_some_and(|w| w.contains("ultipl") || w.contains("ivide"));
    let told = !scan.equation
        && !product
        && matches!(
            before.as_str(),
            "on" | "by"
                | "until"
                | "til"
                | "till"
                | "since"
                | "before"
                | "after"
                | "dated"
                | "due"
                | "through"
                | "thru"
                | "starting"
                | "ending"
                | "expires"
                | "avail"
                | "available"
        );
    let is_day = |w: &str| weekday(w).is_some() || w.ends_with("day");
    let comma =
        i >= 3 && scan.is_space(i - 1) && scan.is_mark(i - 2, ",") && scan.word(i - 3).is_some_and(is_day);
    let day_before = comma || scan.word_before(i).is_some_and(is_day);
    let told = told || day_before && !scan.equation;
    let odd = matches!(second.0, 13 | 14 | 15 | 17..=19 | 21..=24 | 25..=29 | 31) && first.0 != second.0;
    let fraction = matches!(second.0, 2 | 3 | 4 | 8) && first.0 < second.0;
    (padded || odd && first.0 <= 12 || told && !fraction).then_some(())?;
    Spoken::new(i + 3, say(month, day, None, scan.locale)?)
}

/// `20240105`: year, month and day without marks.
fn compact(scan: &Scan, i: usize) -> Option<Spoken> {
    let digits = scan.digits(i).filter(|d| d.len() == 8 && scan.starts(i) && scan.ends(i + 1))?;
    let (year, rest) = digits.split_at(4);
    let (month, day) = rest.split_at(2);
    let year: u32 = year.parse().ok().filter(|y| (1900..2100).contains(y))?;
    let month = month.parse().ok().filter(|m| (1..=12).contains(m))?;
    Spoken::new(i + 1, say(month, day.parse().ok()?, Some(year), scan.locale)?)
}

/// `3/1-3/15`: two days where at least one can't be a fraction.
fn short_span(scan: &Scan, i: usize) -> Option<Spoken> {
    let day = |k: usize| {
        let part = |k: usize| scan.digits(k).filter(|d| d.len() <= 2)?.parse::<u32>().ok();
        let (first, second) = (part(k)?, part(k + 2).filter(|_| scan.is_mark(k + 1, "/"))?);
        let (month, day) = if scan.locale == Locale::EnGb { (second, first) } else { (first, second) };
        (month <= 12 && (day == 1 || day > 10)).then_some(())?;
        say(month, day, None, scan.locale)
    };
    let dash = scan.skip_space(i + 3);
    let at = scan.skip_space(dash + 1);
    if !scan.is_mark(dash, "-–") || !scan.ends(at + 3) || scan.is_mark(at + 3, "/") {
        return None;
    }
    Spoken::new(at + 3, format!("{} to {}", day(i)?, day(at)?))
}

/// `1980s`, `1900s`, `the 20s`, `his 30s`.
fn decade(scan: &Scan, i: usize) -> Option<Spoken> {
    let digits = scan.digits(i)?;
    let suffix = if scan.is_mark(i + 1, "'") { 2 } else { 1 };
    if !scan.is_word(i + suffix, "s") || !scan.ends(i + suffix + 1) {
        return None;
    }
    let value: u32 = digits.parse().ok()?;
    let next = i + suffix + 1;
    match digits.len() {
        4 if value.is_multiple_of(10) && (1000..=2990).contains(&value) => {
            let words = numbers::plural(&numbers::year(value, scan.locale));
            // "1960s–70s"
            let last = scan.digits(next + 1).filter(|d| d.len() == 2).and_then(|d| d.parse().ok());
            let whole = scan.digits(next + 1).filter(|d| d.len() == 4).and_then(|d| d.parse().ok());
            if let Some(last) =
                whole.filter(|y| scan.is_mark(next, "-–") && scan.is_word(next + 2, "s") && y % 10 == 0)
            {
                let last = numbers::plural(&numbers::year(last, scan.locale));
                return Spoken::new(next + 3, format!("{words} to {last}"));
            }
            if let Some(last) = last.filter(|_| scan.is_mark(next, "-–") && scan.is_word(next + 2, "s")) {
                return Spoken::new(
                    next + 3,
                    format!("{words} to {}", numbers::plural(&numbers::two_digits(last))),
                );
            }
            Spoken::new(next, words)
        }
        2 if value.is_multiple_of(10) && value >= 20 => {
            let before = scan.word_before(i).unwrap_or_default().to_lowercase();
            let joined = scan.is_mark(i.wrapping_sub(1), "-");
            let aged = joined
                || matches!(
                    before.as_str(),
                    "the"
                        | "his"
                        | "her"
                        | "their"
                        | "my"
                        | "your"
                        | "our"
                        | "early"
                        | "late"
                        | "mid"
                        | "its"
                )
                || scan.word_after(next).is_some_and(|w| {
                    matches!(
                        w,
                        "music"
                            | "style"
                            | "fashion"
                            | "rock"
                            | "pop"
                            | "disco"
                            | "show"
                            | "movie"
                            | "hits"
                            | "vibe"
                    )
                });
            aged.then_some(())?;
            Spoken::new(next, numbers::plural(&numbers::two_digits(value)))
        }
        _ => None,
    }
}

/// `'90s`, `'68`, `'05`.
fn short_year(scan: &Scan, i: usize) -> Option<Spoken> {
    let digits = scan.digits(i + 1).filter(|d| d.len() == 2)?;
    let value: u32 = digits.parse().ok()?;
    if scan.is_word(i + 2, "s") && scan.ends(i + 3) && value.is_multiple_of(10) {
        let words =
            if value == 0 { "two thousands".into() } else { numbers::plural(&numbers::two_digits(value)) };
        return Spoken::new(i + 3, words);
    }
    let quoted = scan.is_mark(i + 2, "'");
    (scan.ends(i + 2) && !quoted).then_some(())?;
    Spoken::new(i + 2, numbers::code(digits, scan.locale))
}

/// `1990–2000`, `1914-18`, `2020/21`: years where a number of four digits can be one.
fn years(scan: &Scan, i: usize) -> Option<Spoken> {
    let first: u32 =
        scan.digits(i).filter(|d| d.len() == 4)?.parse().ok().filter(|y| (1010..=2100).contains(y))?;
    if !scan.is_mark(i + 1, "-–/") || !scan.ends(i + 3) || scan.is_mark(i + 3, "-–/") {
        return None;
    }
    let last = scan.digits(i + 2)?;
    if scan.is_mark(i + 1, "/") && last.parse::<u32>().ok()? != (first + 1) % 100 {
        return None;
    }
    let said = match last.len() {
        4 => {
            let year: u32 = last.parse().ok().filter(|y| (first..=2100).contains(y))?;
            numbers::year(year, scan.locale)
        }
        2 if last.parse::<u32>().ok()? > first % 100 => numbers::code(last, scan.locale),
        _ => return None,
    };
    Spoken::new(i + 3, format!("{} to {said}", numbers::year(first, scan.locale)))
}

const ERAS: &[&str] = &["BC", "AD", "BCE", "CE"];

/// `44 BC`, `500 B.C.E.`: the era is left to the rules for initials, the number is a year.
fn era(scan: &Scan, i: usize) -> Option<Spoken> {
    let year: u32 = scan.digits(i).filter(|d| d.len() <= 4 && !d.starts_with('0'))?.parse().ok()?;
    let word = scan.word_after(i + 1)?;
    let dotted = word == "B" && scan.is_mark(i + 3, ".") && scan.is_word(i + 4, "C");
    (ERAS.contains(&word) || dotted).then_some(())?;
    Spoken::new(i + 1, numbers::year(year, scan.locale))
}

/// `AD 79`
fn era_first(scan: &Scan, i: usize) -> Option<Spoken> {
    (scan.is_word(i, "AD") && scan.is_space(i + 1)).then_some(())?;
    let year = scan.digits(i + 2).filter(|d| d.len() <= 4)?.parse().ok()?;
    Spoken::new(i + 3, format!("A D {}", numbers::year(year, scan.locale)))
}

/// `Q3`, `H1`, `FY2024`, with a year behind or not.
fn period(scan: &Scan, i: usize) -> Option<Spoken> {
    let word = scan.word(i)?;
    let digits = scan.digits(i + 1)?;
    if !scan.ends(i + 2) {
        return None;
    }
    match (word, digits.len()) {
        ("FY", 2 | 4) => Spoken::new(i + 2, format!("fiscal year {}", numbers::code(digits, scan.locale))),
        ("Q", 1) if matches!(digits, "1" | "2" | "3" | "4") => {
            let words = format!("Q {}", numbers::cardinal(digits, scan.locale));
            let last = scan.digits(i + 4).filter(|_| scan.is_mark(i + 2, "-–") && scan.is_word(i + 3, "Q"));
            match last.filter(|d| d.len() == 1) {
                Some(last) => {
                    Spoken::new(i + 5, format!("{words} to Q {}", numbers::cardinal(last, scan.locale)))
                }
                None => Spoken::new(i + 2, words),
            }
        }
        _ => None,
    }
}
