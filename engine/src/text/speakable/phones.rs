//! Telephone numbers and other numbers in hyphened groups, said digit by digit.

use super::numbers;
use super::scan::{Scan, Spoken};

/// `+44 20 7946 0000`, `(415) 555-0132`, `555-1234`, `1-800-555-0199`, `123-45-6789`.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    if !scan.starts(i) {
        return None;
    }
    if scan.is_mark(i, "+") && scan.digits(i + 1).is_some_and(|d| d.len() <= 3) {
        return international(scan, i);
    }
    // "1-800-FLOWERS"
    if scan.is_mark(i + 3, "-")
        && scan.span(i, i + 2) == "1-"
        && scan.digits(i + 2).is_some_and(|d| d.len() == 3)
        && let Some(word) = scan.word(i + 4).filter(|w| w.len() > 2)
    {
        return Spoken::new(i + 5, format!("one, {}, {}", group(scan.text(i + 2)), word.to_lowercase()));
    }
    let (groups, next) = groups(scan, i)?;
    if !scan.ends(next) {
        return None;
    }
    // "NY 10001-1234"
    let state = scan.word_before(i).is_some_and(|w| super::abbreviations::state(w).is_some() || w == "ZIP");
    let lens: Vec<usize> = groups.iter().map(|g| g.text.len()).collect();
    let separators: Vec<char> = groups.iter().skip(1).map(|g| g.before).collect();
    let all = |set: &str| separators.iter().all(|c| set.contains(*c));
    let known = match lens[..] {
        // "200-1500 words" is a span.
        [3, 4] => all("-") && !groups[1].text.ends_with('0') && !groups[0].text.starts_with(['0', '1']),
        [5, 4] if state => all("-"),
        [3, 3, 4] => all("-. )") && (!all(" ") || groups[0].bracket),
        // "(020) 7946-0958"
        [_, _, ..] if groups[0].bracket => {
            all(" -.)") && (9..=12).contains(&lens.iter().sum::<usize>()) && groups[0].text.starts_with('0')
        }
        [3..=5, _, ..] if groups[0].text.starts_with('0') => all(" -") && lens.iter().sum::<usize>() >= 9,
        [1, 3, 3, 4] => groups[0].text == "1" && all("-. )"),
        // Account, social security and book numbers: at least three groups.
        [_, _, _, ..] => all("-") && !is_iso_date(&lens),
        _ => false,
    };
    known.then_some(())?;
    Some(with_extension(scan, next, say(&groups)))
}

/// "x204", "ext. 12" behind a number.
fn with_extension(scan: &Scan, next: usize, words: String) -> Spoken {
    let comma = usize::from(scan.is_mark(next, ",") && scan.is_space(next + 1));
    let at = scan.skip_space(next + comma);
    let after = scan.skip_space(at + 1 + usize::from(scan.is_mark(at + 1, ".")));
    match scan.digits(after).filter(|d| matches!(scan.text(at), "x" | "X" | "ext" | "Ext") && d.len() <= 6) {
        Some(digits) if scan.ends(after + 1) => {
            let said = if digits.len() <= 2 {
                numbers::cardinal(digits, scan.locale)
            } else {
                numbers::spell(digits)
            };
            Spoken { next: after + 1, words: format!("{words}, extension {said}") }
        }
        _ => Spoken { next, words },
    }
}

fn is_iso_date(lens: &[usize]) -> bool {
    matches!(lens, [4, 1..=2, 1..=2] | [1..=2, 1..=2, 2 | 4])
}

struct Group<'a> {
    text: &'a str,
    before: char,
    bracket: bool,
}

/// Groups of digits joined by single hyphens, full stops or spaces; the first one may be in brackets.
fn groups(scan: &Scan, i: usize) -> Option<(Vec<Group<'_>>, usize)> {
    let mut groups = Vec::new();
    let mut at = i;
    if scan.is_mark(i, "(") {
        let text = scan.digits(i + 1).filter(|d| (2..=5).contains(&d.len()))?;
        scan.is_mark(i + 2, ")").then_some(())?;
        groups.push(Group { text, before: ' ', bracket: true });
        at = scan.skip_space(i + 3);
        let text = scan.digits(at).filter(|d| (3..=8).contains(&d.len()))?;
        groups.push(Group { text, before: ')', bracket: false });
        at += 1;
    } else {
        let text = scan.digits(i)?;
        groups.push(Group { text, before: ' ', bracket: false });
        at += 1;
    }
    while groups.len() < 8 {
        // "1 (415) 555-0132" and "1-(415) 555-0132"
        let joined = scan.is_mark(at, "-.") || scan.is_space(at);
        let open = joined && scan.is_mark(at + 1, "(");
        let digits_at = at + 1 + usize::from(open);
        let Some(text) = scan.digits(digits_at).filter(|_| joined) else { break };
        let before = scan.mark(at).unwrap_or(' ');
        if before == ' ' && groups.len() > 1 && groups[1].before == '-' {
            break;
        }
        groups.push(Group { text, before, bracket: open });
        at = digits_at + 1;
        if open {
            scan.is_mark(at, ")").then_some(())?;
            at = scan.skip_space(at + 1);
            let text = scan.digits(at)?;
            groups.push(Group { text, before: ')', bracket: false });
            at += 1;
        }
    }
    (groups.len() > 1).then_some((groups, at))
}

fn say(groups: &[Group]) -> String {
    if groups.iter().all(|g| g.text.len() == 1) {
        // "9-1-1", "4-3-3"
        let digits: String = groups.iter().map(|g| g.text).collect();
        return numbers::spell(&digits);
    }
    let words: Vec<String> = groups.iter().map(|g| group(g.text)).collect();
    words.join(", ")
}

fn group(digits: &str) -> String {
    match digits {
        "800" => "eight hundred".into(),
        "900" => "nine hundred".into(),
        _ => numbers::spell(digits),
    }
}

/// `+44 20 7946 0000`, `+1 (415) 555-0132`
fn international(scan: &Scan, i: usize) -> Option<Spoken> {
    let (groups, next) = groups(scan, i + 1)?;
    let digits: usize = groups.iter().map(|g| g.text.len()).sum();
    ((8..=16).contains(&digits) && scan.ends(next)).then_some(())?;
    Some(with_extension(scan, next, format!("plus {}", say(&groups))))
}
