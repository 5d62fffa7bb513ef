//! Chapters and verses: "Matt. 5:3–12", "1 Cor. 13:4", "John 3:16".

use super::numbers;
use super::scan::{Scan, Spoken};

/// Books by the forms that they are cited in, the full name first.
#[rustfmt::skip]
const BOOKS: &[&[&str]] = &[
    &["Genesis", "Gen", "Gn"], &["Exodus", "Exod", "Ex"], &["Leviticus", "Lev", "Lv"], &["Numbers", "Num", "Nm"],
    &["Deuteronomy", "Deut", "Dt"], &["Joshua", "Josh"], &["Judges", "Judg", "Jdg"], &["Ruth"], &["Samuel", "Sam", "Sm"],
    &["Kings", "Kgs"], &["Chronicles", "Chron", "Chr"], &["Ezra"], &["Nehemiah", "Neh"], &["Esther", "Esth"], &["Job"],
    &["Psalm", "Ps", "Psa"], &["Psalms", "Pss"], &["Proverbs", "Prov", "Prv"], &["Ecclesiastes", "Eccl", "Eccles"],
    &["Isaiah", "Isa"], &["Jeremiah", "Jer"], &["Lamentations", "Lam"], &["Ezekiel", "Ezek"], &["Daniel", "Dan", "Dn"],
    &["Hosea", "Hos"], &["Joel"], &["Amos"], &["Jonah"], &["Micah", "Mic"], &["Habakkuk", "Hab"], &["Zechariah", "Zech"],
    &["Malachi", "Mal"], &["Matthew", "Matt", "Mt"], &["Mark", "Mk"], &["Luke", "Lk"], &["John", "Jn"], &["Acts"],
    &["Romans", "Rom"], &["Corinthians", "Cor"], &["Galatians", "Gal"], &["Ephesians", "Eph"], &["Philippians", "Phil"],
    &["Colossians", "Col"], &["Thessalonians", "Thess"], &["Timothy", "Tim", "Tm"], &["Titus"], &["Hebrews", "Heb"],
    &["James", "Jas"], &["Peter", "Pet", "Pt"], &["Jude"], &["Revelation", "Rev"], &["Quran"], &["Qur'an"], &["Surah"], &["Sura"],
];

/// Books in several parts.
const NUMBERED: &[&str] =
    &["Samuel", "Kings", "Chronicles", "Corinthians", "Thessalonians", "Timothy", "Peter", "John"];

/// A book with chapter and verses, or a shortened book with its chapter; the number of its part before it.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    let part = match scan.text(i) {
        "1" | "I" => Some("First"),
        "2" | "II" => Some("Second"),
        "3" | "III" => Some("Third"),
        _ => None,
    };
    let at = if part.is_some() && scan.is_space(i + 1) { i + 2 } else { i };
    let written = scan.word(at).filter(|_| scan.starts(i))?;
    let book = BOOKS.iter().find(|forms| forms.contains(&written))?[0];
    let part = part.filter(|_| at > i);
    if part.is_some() && !NUMBERED.contains(&book) {
        return None;
    }
    let chapter = scan.skip_space(at + 1 + usize::from(scan.is_mark(at + 1, ".")));
    let number = scan.digits(chapter).filter(|d| d.len() <= 3 && chapter > at + 1)?;
    let said = |digits: &str| numbers::cardinal(digits, scan.locale);
    let mut words = part.map_or(String::new(), |part| format!("{part} "));
    words.push_str(&format!("{book} {}", said(number)));
    let half = |next: usize| matches!(scan.word_after(next), Some("a" | "p" | "am" | "pm" | "AM" | "PM"));
    let Some((verses, next)) = verses(scan, chapter + 1).filter(|(_, next)| !half(*next)) else {
        // "Ps. 104"; "Rev. 2" and "Dan 5" can be others.
        let sure = matches!(book, "Psalm" | "Psalms") || part.is_some();
        return if sure && scan.ends(chapter + 1) && written != book {
            Spoken::new(chapter + 1, words)
        } else {
            None
        };
    };
    Spoken::new(next, format!("{words}{verses}"))
}

/// `:16`, `:3–12`, `:1–2:3` behind a chapter.
fn verses(scan: &Scan, i: usize) -> Option<(String, usize)> {
    let number = |k: usize| scan.digits(k).filter(|d| d.len() <= 3);
    let said = |digits: &str| numbers::cardinal(digits, scan.locale);
    let first = number(i + 1).filter(|_| scan.is_mark(i, ":"))?;
    let mut next = i + 2;
    let mut words = format!(" {}", said(first));
    if scan.is_mark(next, "-–")
        && let Some(last) = number(next + 1)
    {
        words = format!(", {} to {}", said(first), said(last));
        next += 2;
        if let Some(verse) = number(next + 1).filter(|_| scan.is_mark(next, ":")) {
            words.push_str(&format!(", {}", said(verse)));
            next += 2;
        }
    }
    scan.ends(next).then_some((words, next))
}
