//! Plain text to words: at each token the first rule that knows it decides.

use super::output::Output;
use super::scan::{Kind, Scan, Spoken};
use super::{
    Locale, abbreviations, acronyms, calls, chemistry, dates, flags, fractions, idioms, measures, money,
    notation, numbers, phones, roman, scripts, strings, symbols, times, verses, versions, web,
};

type Rule = fn(&Scan, usize) -> Option<Spoken>;

/// Most specific first: a rule sees only what those before it left.
const RULES: &[Rule] = &[
    strings::unbroken,
    scripts::rule,
    idioms::rule,
    calls::rule,
    flags::rule,
    notation::rule,
    web::rule,
    strings::rule,
    verses::rule,
    phones::rule,
    money::rule,
    dates::rule,
    measures::ratio,
    times::rule,
    versions::rule,
    numbers::scientific,
    numbers::ordinals,
    fractions::rule,
    abbreviations::house_number,
    measures::rule,
    acronyms::mixed,
    chemistry::rule,
    roman::rule,
    abbreviations::rule,
    numbers::number,
    acronyms::rule,
    symbols::rule,
];

/// The words of one clause of plain text, with basic punctuation; "" if there are none.
pub(super) fn speak(text: &str, locale: Locale) -> String {
    let scan = Scan::new(text, locale);
    let mut out = Output::default();
    let mut i = 0;
    while i < scan.len() {
        if let Some(spoken) = RULES.iter().find_map(|rule| rule(&scan, i)) {
            out.words(&spoken.words);
            // A rule that took nothing would never end; each takes a token at least.
            let next = spoken.next.max(i + 1);
            // The full stop of an abbreviation is the sentence's as well.
            if scan.is_mark(next - 1, ".") && !spoken.words.is_empty() && scan.is_last(next) {
                out.stop('.');
            }
            i = next;
            continue;
        }
        match scan.kind(i) {
            Some(Kind::Word) => out.words(scan.text(i)),
            Some(Kind::Digits) => out.words(&numbers::integer(scan.text(i), locale)),
            Some(Kind::Mark(mark)) => punctuation(&scan, i, mark, &mut out),
            _ => {}
        }
        i += 1;
    }
    out.finish()
}

fn punctuation(scan: &Scan, i: usize, mark: char, out: &mut Output) {
    let said = |k: usize| matches!(scan.kind(k), Some(Kind::Word | Kind::Digits));
    let inside = i > 0 && said(i - 1) && said(i + 1);
    let spaced = i > 0 && scan.is_space(i - 1) && scan.is_space(i + 1);
    match mark {
        '.' if scan.is_mark(i + 1, ".") || i > 0 && scan.is_mark(i - 1, ".") => out.stop('…'),
        // An abbreviation's, inside the sentence: "first qtr., full".
        '.' if scan.is_mark(i + 1, ",;") => {}
        // "foo.bar" is a name, "end.Next" a missing space.
        '.' if inside && scan.word(i + 1).is_some_and(|w| w.starts_with(char::is_lowercase)) => {
            out.words("dot")
        }
        ':' if inside || scan.is_mark(i + 1, ":") || i > 0 && scan.is_mark(i - 1, ":") => {}
        '.' | ',' | ';' | ':' | '!' | '?' | '…' => out.stop(mark),
        '¡' | '¿' => {}
        '-' if inside => out.hyphen(),
        '-' if spaced => out.dash(),
        '-' if scan.is_mark(i + 1, "-") && i > 0 && said(i - 1) && said(i + 2) => out.dash(),
        '-' if scan.is_mark(i + 1, "-") && i > 0 && scan.is_space(i - 1) && scan.is_space(i + 2) => {
            out.dash()
        }
        // "10⁻¹–10⁻⁶"
        '–' | '-' if i > 0 && scan.is_mark(i - 1, "⁰¹²³⁴⁵⁶⁷⁸⁹%°") && scan.digits(i + 1).is_some() => {
            out.words("to")
        }
        // "NYK 99–GSW 105", "2019–present"
        '–' if inside
            && scan.digits(i - 1).is_some()
            && matches!(scan.text(i + 1), "present" | "Present" | "now" | "today") =>
        {
            out.words("to")
        }
        '–' if inside && scan.digits(i - 1).is_some() && scan.text(i + 1).chars().all(char::is_uppercase) => {
            out.dash()
        }
        '–' if inside => {
            let capital = |k: usize| scan.word(k).is_some_and(|w| w.starts_with(char::is_uppercase));
            let digits = scan.digits(i - 1).is_some() || scan.digits(i + 1).is_some();
            if capital(i - 1) && (capital(i + 1) || digits) { out.words("to") } else { out.hyphen() }
        }
        '–' if spaced => out.dash(),
        '—' => out.dash(),
        '|' | '•' | '·' if spaced => out.stop(','),
        '"' => out.quote(scan.starts_run(i)),
        '(' => out.open_bracket(),
        ')' => out.close_bracket(),
        '\'' if possessive(scan, i) => out.possessive(),
        '\'' if contraction(scan, i) => out.apostrophe(),
        _ => {}
    }
}

/// "the dogs' toys"
fn possessive(scan: &Scan, i: usize) -> bool {
    let plural = i > 0 && scan.word(i - 1).is_some_and(|w| w.ends_with('s'));
    plural && scan.word_after(i + 1).is_some()
}

/// "'em", "'tis", "'cause"
fn contraction(scan: &Scan, i: usize) -> bool {
    scan.starts_run(i)
        && scan.word(i + 1).is_some_and(|w| {
            matches!(w.to_lowercase().as_str(), "em" | "tis" | "twas" | "cause" | "til" | "bout" | "round")
        })
}
