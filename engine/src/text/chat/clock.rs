//! The calendar that `strftime_now` needs: a date and time of day, written by a Python format.

use std::fmt::Write;

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
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Writes the time that is `secs` after 1970-01-01 00:00 as Python's `strftime` would in the C locale.
/// `%-d` and the like leave out leading zeros; directives that are not known stay as they are.
pub(super) fn strftime(format: &str, secs: i64) -> String {
    // Far beyond any calendar: keeps the arithmetic below from overflowing.
    let secs = secs.clamp(-1 << 40, 1 << 40);
    let (days, second) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let (year, month, day) = civil(days);
    let weekday = (days + 4).rem_euclid(7); // 1970-01-01 was a Thursday
    let year_day = days - days_before_year(year) + 1;
    let hour12 = (hour + 11) % 12 + 1;
    let (month_name, day_name) = (MONTHS[month as usize - 1], DAYS[weekday as usize]);

    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let after = chars.clone();
        let mut directive = chars.next();
        let bare = directive == Some('-');
        if bare {
            directive = chars.next();
        }
        let mut number = |value: i64, width: usize| {
            let width = if bare { 0 } else { width };
            let _ = write!(out, "{value:0width$}"); // writing to a String does not fail
        };
        match directive {
            Some('Y') => number(year, 4),
            Some('y') => number(year.rem_euclid(100), 2),
            Some('m') => number(month, 2),
            Some('d') => number(day, 2),
            Some('H') => number(hour, 2),
            Some('I') => number(hour12, 2),
            Some('M') => number(minute, 2),
            Some('S') => number(second, 2),
            Some('j') => number(year_day, 3),
            Some('w') => number(weekday, 1),
            Some('e') => out.push_str(&format!("{day:2}")),
            Some('B') => out.push_str(month_name),
            Some('b' | 'h') => out.push_str(&month_name[..3]),
            Some('A') => out.push_str(day_name),
            Some('a') => out.push_str(&day_name[..3]),
            Some('p') => out.push_str(if hour < 12 { "AM" } else { "PM" }),
            Some('F') => out.push_str(&format!("{year:04}-{month:02}-{day:02}")),
            Some('T') => out.push_str(&format!("{hour:02}:{minute:02}:{second:02}")),
            Some('R') => out.push_str(&format!("{hour:02}:{minute:02}")),
            Some('%') => out.push('%'),
            _ => {
                out.push('%');
                chars = after;
            }
        }
    }
    out
}

/// Days from 1970-01-01 to the first day of `year` in the Gregorian calendar.
fn days_before_year(year: i64) -> i64 {
    let before = year - 1;
    365 * (year - 1970) + (before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400)) - 477
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// (year, month from 1, day from 1) of the day `days` after 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    // An estimate by the mean length of a year is at most one off.
    let mut year = 1970 + (days * 400).div_euclid(146_097);
    while days_before_year(year) > days {
        year -= 1;
    }
    while days_before_year(year + 1) <= days {
        year += 1;
    }
    let mut day = days - days_before_year(year);
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    (year, month, day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // Seconds as `date --utc +%s` gives them.
        for (secs, expected) in [
            (0, "1970-01-01 00:00:00 Thu 001"),
            (951_782_400, "2000-02-29 00:00:00 Tue 060"),
            (1_709_164_800, "2024-02-29 00:00:00 Thu 060"),
            (1_735_689_599, "2024-12-31 23:59:59 Tue 366"),
            (1_735_689_600, "2025-01-01 00:00:00 Wed 001"),
            (4_107_542_399, "2100-02-28 23:59:59 Sun 059"),
            (4_107_542_400, "2100-03-01 00:00:00 Mon 060"),
            (-1, "1969-12-31 23:59:59 Wed 365"),
        ] {
            assert_eq!(strftime("%Y-%m-%d %H:%M:%S %a %j", secs), expected);
        }
    }

    #[test]
    fn formats_of_published_templates_are_known() {
        let secs = 1_722_002_645; // 2024-07-26 14:04:05
        assert_eq!(strftime("%d %b %Y", secs), "26 Jul 2024");
        assert_eq!(strftime("%A, %B %-d, %-I:%M %p", secs), "Friday, July 26, 2:04 PM");
        assert_eq!(strftime("%F %T %R %y %e %%", secs), "2024-07-26 14:04:05 14:04 24 26 %");
        assert_eq!(strftime("%Q %", secs), "%Q %");
        assert_eq!(strftime("%I %p", 0), "12 AM");
    }

    #[test]
    fn absurd_times_do_not_overflow() {
        for secs in [i64::MIN, i64::MAX] {
            assert!(!strftime("%F", secs).is_empty());
        }
    }
}
