//! Amounts of money: "$5.3 billion", "£3.50", "20 USD", "a $5 coffee".

use super::numbers::{self, Numeral};
use super::scan::{Scan, Spoken};
use super::{Locale, units};

/// A currency: names of the unit and its hundredth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Currency {
    one: &'static str,
    many: &'static str,
    cent: &'static str,
    cents: &'static str,
}

const fn currency(
    one: &'static str,
    many: &'static str,
    cent: &'static str,
    cents: &'static str,
) -> Currency {
    Currency { one, many, cent, cents }
}

/// By sign, most specific first.
#[rustfmt::skip]
const SIGNS: &[(&str, Currency)] = &[
    ("US$", currency("U S dollar", "U S dollars", "cent", "cents")),
    ("HK$", currency("Hong Kong dollar", "Hong Kong dollars", "cent", "cents")),
    ("NZ$", currency("New Zealand dollar", "New Zealand dollars", "cent", "cents")),
    ("CA$", currency("Canadian dollar", "Canadian dollars", "cent", "cents")),
    ("AU$", currency("Australian dollar", "Australian dollars", "cent", "cents")),
    ("C$", currency("Canadian dollar", "Canadian dollars", "cent", "cents")),
    ("A$", currency("Australian dollar", "Australian dollars", "cent", "cents")),
    ("S$", currency("Singapore dollar", "Singapore dollars", "cent", "cents")),
    ("R$", currency("real", "reais", "centavo", "centavos")),
    ("$", currency("dollar", "dollars", "cent", "cents")),
    ("€", currency("euro", "euros", "cent", "cents")),
    ("£", currency("pound", "pounds", "penny", "pence")),
    ("¥", currency("yen", "yen", "sen", "sen")),
    ("₹", currency("rupee", "rupees", "paisa", "paise")),
    ("₩", currency("won", "won", "jeon", "jeon")),
    ("₽", currency("ruble", "rubles", "kopeck", "kopecks")),
    ("₺", currency("lira", "lira", "kurush", "kurush")),
    ("₴", currency("hryvnia", "hryvnias", "kopiyka", "kopiykas")),
    ("₦", currency("naira", "naira", "kobo", "kobo")),
    ("₫", currency("dong", "dong", "hao", "hao")),
    ("₪", currency("shekel", "shekels", "agora", "agorot")),
    ("₱", currency("peso", "pesos", "centavo", "centavos")),
    ("฿", currency("baht", "baht", "satang", "satang")),
    ("₿", currency("bitcoin", "bitcoin", "", "")),
    ("¢", currency("cent", "cents", "", "")),
];

/// By ISO 4217 code.
#[rustfmt::skip]
const CODES: &[(&str, Currency)] = &[
    ("USD", currency("U S dollar", "U S dollars", "cent", "cents")),
    ("EUR", currency("euro", "euros", "cent", "cents")),
    ("GBP", currency("pound", "pounds", "penny", "pence")),
    ("JPY", currency("yen", "yen", "sen", "sen")),
    ("CNY", currency("yuan", "yuan", "fen", "fen")),
    ("RMB", currency("yuan", "yuan", "fen", "fen")),
    ("CHF", currency("Swiss franc", "Swiss francs", "centime", "centimes")),
    ("CAD", currency("Canadian dollar", "Canadian dollars", "cent", "cents")),
    ("AUD", currency("Australian dollar", "Australian dollars", "cent", "cents")),
    ("NZD", currency("New Zealand dollar", "New Zealand dollars", "cent", "cents")),
    ("INR", currency("rupee", "rupees", "paisa", "paise")),
    ("SEK", currency("Swedish krona", "Swedish kronor", "ore", "ore")),
    ("NOK", currency("Norwegian krone", "Norwegian kroner", "ore", "ore")),
    ("DKK", currency("Danish krone", "Danish kroner", "ore", "ore")),
    ("PLN", currency("zloty", "zlotys", "grosz", "groszy")),
    ("BRL", currency("real", "reais", "centavo", "centavos")),
    ("MXN", currency("Mexican peso", "Mexican pesos", "centavo", "centavos")),
    ("KRW", currency("won", "won", "jeon", "jeon")),
    ("BTC", currency("bitcoin", "bitcoin", "", "")),
];

/// The currency that starts at token `i`, and the index after it.
fn sign(scan: &Scan, i: usize) -> Option<(Currency, usize)> {
    // "US$": a word and a mark; "$": a mark alone.
    let tokens = if scan.word(i).is_some() && scan.is_mark(i + 1, "$") { 2 } else { 1 };
    let text = scan.span(i, i + tokens);
    let found = SIGNS.iter().find(|(sign, _)| *sign == text)?;
    Some((found.1, i + tokens))
}

fn code(scan: &Scan, i: usize) -> Option<(Currency, usize)> {
    let word = scan.word(i)?;
    CODES.iter().find(|(code, _)| *code == word).map(|&(_, c)| (c, i + 1))
}

/// A number with its multiplier.
struct Amount {
    number: Numeral,
    scale: &'static str,
    next: usize,
}

impl Amount {
    fn read(scan: &Scan, i: usize) -> Option<Self> {
        let mut number = Numeral::read(scan, i)?;
        // "12,50 €": the comma of most of Europe.
        let decimals =
            scan.digits(number.next + 1).filter(|d| d.len() <= 2 && scan.is_mark(number.next, ","));
        if let Some(decimals) = decimals.filter(|_| !number.grouped && number.frac.is_none()) {
            let sign = |k: usize| scan.is_mark(k, "€");
            if sign(scan.skip_space(number.next + 2)) || sign(i.wrapping_sub(1)) && decimals.len() == 2 {
                number.frac = Some(decimals.to_string());
                number.next += 2;
            }
        }
        let (scale, next) = scale(scan, number.next).unwrap_or(("", number.next));
        Some(Self { number, scale, next })
    }

    fn words(&self, locale: Locale) -> String {
        let words = self.number.words(locale);
        if self.scale.is_empty() { words } else { format!("{words} {}", self.scale) }
    }
}

/// "billion", or "B" glued to the number.
fn scale(scan: &Scan, i: usize) -> Option<(&'static str, usize)> {
    if let Some(word) = scan.word_after(i) {
        let known = numbers::SCALE_WORDS.iter().find(|w| **w == word).copied();
        let short = match word {
            "bn" | "B" => Some("billion"),
            "mn" | "mln" | "m" | "M" => Some("million"),
            "tn" => Some("trillion"),
            "k" | "K" => Some("thousand"),
            _ => None,
        };
        return known.filter(|w| *w != "dozen").or(short).map(|w| (w, i + 2));
    }
    let scale = match scan.word(i)? {
        "k" | "K" => "thousand",
        "m" | "M" | "mn" | "MM" => "million",
        "b" | "B" | "bn" => "billion",
        "t" | "T" | "tn" => "trillion",
        _ => return None,
    };
    Some((scale, i + 1))
}

/// Any amount of money that starts at token `i`.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    if !scan.starts(i) && !scan.is_mark(i.wrapping_sub(1), "/-") {
        return None;
    }
    // "EBITDA –$0.3M" has a dash for a minus.
    let spaced = scan.is_mark(i, "–") && (i == 0 || scan.is_space(i - 1));
    let minus = (spaced || scan.is_mark(i, "-−")) && scan.starts(i) && sign(scan, i + 1).is_some();
    let start = i + usize::from(minus);
    let mut spoken =
        signed(scan, i, start).or_else(|| coded(scan, start)).or_else(|| trailing(scan, start))?;
    if minus {
        spoken.words.insert_str(0, "minus ");
    }
    // "€40–50 pp"
    if scan.word_after(spoken.next) == Some("pp") && scan.ends(spoken.next + 2) {
        spoken.words.push_str(" per person");
        spoken.next += 2;
    }
    // "$20/month"
    if scan.is_mark(spoken.next, "/")
        && let Some(unit) = scan.word(spoken.next + 1)
        && scan.ends(spoken.next + 2)
    {
        let per = units::singular(unit, scan.locale).unwrap_or_else(|| unit.to_string());
        spoken.words.push_str(&format!(" per {per}"));
        spoken.next += 2;
        // "$9.99/mo. or"
        let goes_on = !scan.is_last(spoken.next);
        spoken.next += usize::from(goes_on && scan.is_mark(spoken.next, "."));
    }
    Some(spoken)
}

/// `$5`, `$5–10 million`, `$-5`; `from` is where the amount starts, sign included.
fn signed(scan: &Scan, from: usize, i: usize) -> Option<Spoken> {
    let (currency, mut at) = sign(scan, i)?;
    let minus = scan.is_mark(at, "-−");
    at += usize::from(minus);
    // "US$ 40"
    if scan.digits(at + 1).is_some() {
        at = scan.skip_space(at);
    }
    let amount = Amount::read(scan, at)?;
    let mut spoken = range(scan, currency, &amount).or_else(|| {
        let plus = scan.is_mark(amount.next, "+") && scan.ends(amount.next + 1);
        if plus {
            let words = format!("{} plus {}", amount.words(scan.locale), currency.many);
            return Spoken::new(amount.next + 1, words);
        }
        if units::adjectival(scan, from, amount.next) && amount.number.frac.is_none() {
            return Spoken::new(amount.next, format!("{} {}", amount.words(scan.locale), currency.one));
        }
        Spoken::new(amount.next, say(currency, &amount, scan.locale))
    })?;
    if minus {
        spoken.words.insert_str(0, "minus ");
    }
    Some(spoken)
}

/// `$5-10`, `$5–$10`, `$1.5–2 million`.
fn range(scan: &Scan, currency: Currency, first: &Amount) -> Option<Spoken> {
    if !scan.is_mark(first.next, "-–—") {
        return None;
    }
    let mut at = first.next + 1;
    if let Some((again, next)) = sign(scan, at) {
        (again == currency).then_some(())?;
        at = next;
    }
    let last = Amount::read(scan, at)?;
    if !scan.ends(last.next) {
        return None;
    }
    let words = if last.number.frac.is_some() && last.scale.is_empty() {
        format!("{} to {}", say(currency, first, scan.locale), say(currency, &last, scan.locale))
    } else {
        format!("{} to {} {}", first.words(scan.locale), last.words(scan.locale), currency.many)
    };
    Spoken::new(last.next, words)
}

/// `CHF 20`, `USD 1.5 million`.
fn coded(scan: &Scan, i: usize) -> Option<Spoken> {
    let (currency, at) = code(scan, i)?;
    let amount = Amount::read(scan, scan.skip_space(at))?;
    Spoken::new(amount.next, say(currency, &amount, scan.locale))
}

/// `20€`, `20 €`, `50¢`, `20 USD`.
fn trailing(scan: &Scan, i: usize) -> Option<Spoken> {
    let amount = Amount::read(scan, i)?;
    let at = scan.skip_space(amount.next);
    // "5 $10 bills": the sign belongs to the next number.
    let (currency, next) = sign(scan, at)
        .filter(|(_, next)| {
            scan.digits(*next).is_none() && scan.kind(at).is_some() && scan.word(at).is_none()
        })
        .or_else(|| code(scan, at))?;
    scan.ends(next).then_some(())?;
    Spoken::new(next, say(currency, &amount, scan.locale))
}

fn say(currency: Currency, amount: &Amount, locale: Locale) -> String {
    let number = &amount.number;
    let words = amount.words(locale);
    if !amount.scale.is_empty() {
        return format!("{words} {}", currency.many);
    }
    let Some(frac) = number.frac.as_deref().filter(|f| !f.bytes().all(|b| b == b'0')) else {
        let name = if number.int == "1" { currency.one } else { currency.many };
        return format!("{} {name}", numbers::cardinal(&number.int, locale));
    };
    if currency.cent.is_empty() || frac.len() > 2 {
        return format!("{words} {}", currency.many);
    }
    let cents: u32 = format!("{frac:0<2}").parse().unwrap_or(0);
    let small = numbers::two_digits(cents);
    let small_name = if cents == 1 { currency.cent } else { currency.cents };
    if number.int.bytes().all(|b| b == b'0') {
        return format!("{small} {small_name}");
    }
    let name = if number.int == "1" { currency.one } else { currency.many };
    let whole = numbers::cardinal(&number.int, locale);
    if currency.one == "pound" && cents >= 10 {
        format!("{whole} {name} {small}")
    } else {
        format!("{whole} {name} and {small} {small_name}")
    }
}
