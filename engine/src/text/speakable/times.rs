//! Times of day: "9:30PM", "14:05", "9 a.m.", "10:00–11:30 am".

use super::numbers;
use super::scan::{Scan, Spoken};

/// A time that starts at token `i`, or a span of two.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    if !scan.starts(i) {
        return None;
    }
    // "noon–1 p.m."
    if matches!(scan.text(i), "noon" | "midnight") && scan.is_mark(i + 1, "-–") {
        let (last, half) = time(scan, i + 2).filter(|(last, _)| scan.ends(last.next))?;
        return Spoken::new(last.next, format!("{} to {}", scan.text(i), say(&last, half, true)));
    }
    if let Some(duration) = duration(scan, i).or_else(|| military(scan, i)) {
        return Some(duration);
    }
    let (first, first_half) = time(scan, i)?;
    let dash = scan.skip_space(first.next);
    if scan.is_mark(dash, "-–—") {
        let at = scan.skip_space(dash + 1);
        if let Some((last, last_half)) = time(scan, at)
            && scan.ends(last.next)
            && (first.colon || last_half.is_some() || first_half.is_some())
        {
            let from = say(&first, first_half, true);
            let to = say(&last, last_half, true);
            return Spoken::new(last.next, format!("{from} to {to}"));
        }
    }
    // A number alone is no time.
    (first.colon || first_half.is_some()).then_some(())?;
    Spoken::new(first.next, say(&first, first_half, false))
}

/// A clock time with a colon, for dates that end in one.
pub(super) fn clock(scan: &Scan, i: usize) -> Option<Spoken> {
    let (time, half) = time(scan, i).filter(|(time, _)| time.colon)?;
    Spoken::new(time.next, say(&time, half, false))
}

/// `0830 hrs`, `1700 hours`
fn military(scan: &Scan, i: usize) -> Option<Spoken> {
    let digits = scan.digits(i).filter(|d| d.len() == 4)?;
    let named = matches!(scan.word_after(i + 1), Some("hrs" | "hours" | "h"));
    let (hour, minute) = (digits[..2].parse::<u32>().ok()?, digits[2..].parse::<u32>().ok()?);
    if !named || hour > 23 || minute > 59 {
        return None;
    }
    let oh = if hour < 10 { "oh " } else { "" };
    let minutes = match minute {
        0 => "hundred".into(),
        1..10 => format!("oh {}", numbers::two_digits(minute)),
        _ => numbers::two_digits(minute),
    };
    Spoken::new(i + 3, format!("{oh}{} {minutes} hours", numbers::two_digits(hour)))
}

/// `1h 30m`, `1h30`, `2h 5m 10s`.
fn duration(scan: &Scan, i: usize) -> Option<Spoken> {
    let count = |k: usize| scan.digits(k).filter(|d| d.len() <= 3);
    let said = |digits: &str, name: &str| {
        let plural = if digits == "1" { "" } else { "s" };
        format!("{} {name}{plural}", numbers::cardinal(digits, scan.locale))
    };
    let hours = count(i).filter(|_| scan.is_word(i + 1, "h"))?;
    let at = scan.skip_space(i + 2);
    let minutes = count(at)?;
    let named = matches!(scan.text(at + 1), "m" | "min");
    let mut next = at + 1 + usize::from(named);
    if !scan.ends(next) && scan.digits(next).is_none() || !named && at > i + 2 {
        return None;
    }
    let mut words = format!("{} {}", said(hours, "hour"), said(minutes, "minute"));
    let at = scan.skip_space(next);
    if named
        && scan.is_word(at + 1, "s")
        && let Some(seconds) = count(at)
    {
        words.push_str(&format!(" {}", said(seconds, "second")));
        next = at + 2;
    }
    if scan.ends(next) { Spoken::new(next, words) } else { None }
}

struct Time {
    hour: u32,
    minute: u32,
    second: Option<u32>,
    colon: bool,
    next: usize,
}

/// A time at token `i` and its half of the day.
fn time(scan: &Scan, i: usize) -> Option<(Time, Option<&'static str>)> {
    let hour_digits = scan.digits(i).filter(|d| d.len() <= 2)?;
    let hour: u32 = hour_digits.parse().ok()?;
    let mut time = Time { hour, minute: 0, second: None, colon: false, next: i + 1 };
    let sixty = |k: usize| {
        scan.digits(k).filter(|d| d.len() == 2).and_then(|d| d.parse().ok()).filter(|n| *n < 60u32)
    };
    if scan.is_mark(i + 1, ":")
        && let Some(minute) = sixty(i + 2)
    {
        time.minute = minute;
        time.colon = true;
        time.next = i + 3;
        if scan.is_mark(i + 3, ":")
            && let Some(second) = sixty(i + 4)
        {
            time.second = Some(second);
            time.next = i + 5;
            // "14:05:00.123"
            if scan.is_mark(i + 5, ".") && scan.digits(i + 6).is_some() {
                time.next = i + 7;
            }
        }
        if scan.is_mark(time.next, ":") {
            return None;
        }
    } else if scan.is_mark(i + 1, ".")
        && let Some(minute) = sixty(i + 2)
        && half(scan, i + 3, false).is_some()
    {
        // "7.45pm"
        time.minute = minute;
        time.colon = true;
        time.next = i + 3;
    } else if scan.is_mark(i + 1, ":.,/") && scan.digits(i + 2).is_some() {
        return None;
    }
    let half = half(scan, time.next, time.colon);
    let limit = if half.is_some() { 12 } else { 24 };
    if time.hour > limit || half.is_some() && time.hour == 0 {
        return None;
    }
    if let Some((_, next)) = half {
        time.next = next;
    } else if !scan.ends(time.next) && !scan.is_word(time.next, "Z") {
        return None;
    }
    Some((time, half.map(|(half, _)| half)))
}

/// `PM`, `p.m.`, ` am`: the letters and the index after them.
fn half(scan: &Scan, i: usize, colon: bool) -> Option<(&'static str, usize)> {
    let at = scan.skip_space(i);
    let word = scan.word(at)?;
    let spaced = at > i;
    if scan.is_mark(at + 1, ".")
        && scan.word(at + 2).is_some_and(|w| matches!(w, "m" | "M"))
        && word.len() == 1
    {
        let next = at + 3 + usize::from(scan.is_mark(at + 3, "."));
        return match word {
            "a" | "A" => Some(("A M", next)),
            "p" | "P" => Some(("P M", next)),
            _ => None,
        };
    }
    if !scan.ends(at + 1) {
        return None;
    }
    match word {
        "am" | "AM" | "Am" => Some(("A M", at + 1)),
        "pm" | "PM" | "Pm" => Some(("P M", at + 1)),
        "a" if !spaced && colon => Some(("A M", at + 1)),
        "p" if !spaced && colon => Some(("P M", at + 1)),
        _ => None,
    }
}

/// `bare`: an end of a span, without "o'clock".
fn say(time: &Time, half: Option<&str>, bare: bool) -> String {
    let hour = numbers::two_digits(time.hour);
    let mut words = match (time.hour, time.minute) {
        (0 | 24, 0) if half.is_none() && time.second.is_none() => return "midnight".into(),
        (_, 0) if half.is_some() || !time.colon || bare && time.hour <= 12 => hour,
        (13..=23, 0) => format!("{hour} hundred"),
        (_, 0) => format!("{hour} o'clock"),
        (_, minute @ 1..10) => format!("{hour} oh {}", numbers::two_digits(minute)),
        (_, minute) => format!("{hour} {}", numbers::two_digits(minute)),
    };
    match time.second {
        Some(0) | None => {}
        Some(1) => words.push_str(" and one second"),
        Some(second) => words.push_str(&format!(" and {} seconds", numbers::two_digits(second))),
    }
    if let Some(half) = half {
        words.push(' ');
        words.push_str(half);
    }
    words
}
