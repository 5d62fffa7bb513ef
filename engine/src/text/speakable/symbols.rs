//! Operators and signs, by what stands on both sides; what has no meaning in speech is dropped.

use super::scan::{Kind, Scan, Spoken};
use super::{calls, numbers, units};

/// What stands beside an operator.
fn is_operand(scan: &Scan, i: usize) -> bool {
    match scan.kind(i) {
        Some(Kind::Digits) => true,
        Some(Kind::Word) => scan.text(i).chars().count() <= 2,
        Some(Kind::Foreign(_)) => scan.text(i).chars().count() <= 2,
        Some(Kind::Mark(c)) => "()√∞°²³⁰ⁿ$€£%½¼¾π".contains(c),
        _ => false,
    }
}

struct Sides {
    /// A space on the left only, as before a sign: "Python ≥3.8".
    prefix: bool,
    /// A space stands on both sides.
    spaced: bool,
    /// Operands on both sides.
    operands: bool,
    /// Anything said on both sides.
    both: bool,
    /// Something said on the left.
    left: bool,
    /// A number on the right.
    number: bool,
    /// A form of "be" on the left, which says half of a comparison.
    be: bool,
}

fn sides(scan: &Scan, i: usize, next: usize) -> Sides {
    let spaced_left = i > 0 && scan.is_space(i - 1);
    let left = i.checked_sub(1 + usize::from(spaced_left));
    let right = scan.skip_space(next);
    let said = |k: usize| matches!(scan.kind(k), Some(Kind::Word | Kind::Digits | Kind::Foreign(_)));
    let left_said = left.is_some_and(|l| {
        said(l)
            || scan.is_mark(l, ")°²³⁰¹⁴⁵⁶⁷⁸⁹ⁿ%'\"½¼¾⅓⅔⅛|….⌘⌥⇧⌃")
            || scan.is_mark(l, "!") && is_factorial(scan, l)
    });
    let sign = usize::from(scan.is_mark(right, "-−+$€£¥₹₩₽₺₪₱₿√~.\"|"));
    let right_said = said(right) || is_operand(scan, right) || said(right + sign);
    Sides {
        prefix: spaced_left && right == next,
        spaced: spaced_left && right > next,
        operands: left.is_some_and(|l| is_operand(scan, l))
            && (is_operand(scan, right) || is_operand(scan, right + sign)),
        both: left_said && right_said,
        left: left_said,
        number: scan.digits(right + sign).is_some() || scan.digits(right).is_some(),
        be: left.and_then(|l| scan.word(l)).is_some_and(|w| BE.contains(&w) || w.ends_with("'s")),
    }
}

const BE: &[&str] = &["is", "are", "be", "been", "was", "were", "stay", "stays", "remain", "remains"];

/// Operators of two and three characters, longest first: the characters and their meaning.
const COMPOUND: &[(&str, &str)] = &[
    ("<=>", "is compared with"),
    ("<->", "↔"),
    ("===", "equals"),
    ("!==", "is not equal to"),
    ("==", "equals"),
    ("!=", "is not equal to"),
    ("<=", "≤"),
    (">=", "≥"),
    ("=>", "→"),
    ("->", "→"),
    ("<-", "←"),
    ("+=", "plus equals"),
    ("-=", "minus equals"),
    ("&&", "and"),
    ("||", "or"),
    ("**", "^"),
    ("+-", "±"),
    ("+/-", "±"),
];

/// Any mark that is neither punctuation nor part of a number.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    let c = scan.mark(i)?;
    for (written, meaning) in COMPOUND {
        if c == written.chars().next().unwrap_or_default()
            && scan.rest(i).starts_with(written)
            && let Some(next) = scan.after_bytes(i, written.len())
        {
            let sides = sides(scan, i, next);
            return match meaning.chars().next().filter(|c| !c.is_alphabetic()) {
                Some(sign) => operator(scan, sign, i, next, &sides).or_else(|| Spoken::new(next, "")),
                // "!= 3" without its left side
                None if sides.number && !sides.both => Spoken::new(next, meaning.trim_start_matches("is ")),
                None => Spoken::new(next, if sides.both { *meaning } else { "" }),
            };
        }
    }
    let next = i + 1;
    operator(scan, c, i, next, &sides(scan, i, next))
}

fn operator(scan: &Scan, c: char, i: usize, next: usize, sides: &Sides) -> Option<Spoken> {
    let say = |words: &str| Spoken::new(next, words);
    let when = |yes: bool, words: &str| say(if yes { words } else { "" });
    match c {
        c if names_itself(scan, next)
            && let Some(name) = sign_name(c) =>
        {
            say(name)
        }
        '+' if sides.operands || sides.spaced && sides.both => say("plus"),
        // "A+", "O+"
        '+' => when(sides.left && i > 0 && scan.text(i - 1).len() == 1 && scan.ends(next), "plus"),
        '=' => when(sides.both || sides.left && scan.is_last(next), "equals"),
        '-' | '−' if sides.operands && (sides.spaced || scan.equation && !is_hyphen(scan, i)) => {
            say("minus")
        }
        // "an A- grade"
        '-' if i > 0
            && scan.starts_run(i - 1)
            && is_grade(scan.text(i - 1))
            && !scan.is_mark(next, "-")
            && scan.ends(next) =>
        {
            say("minus")
        }
        '−' => say("minus"),
        '×' if sides.left && sides.number && !sides.operands => say(repeated(scan, next)),
        '*' | '×' | '·' | '⋅' | '∙' => when(sides.operands && sides.both, "times"),
        '÷' => when(sides.both, "divided by"),
        '/' => slash(scan, i, sides),
        '^' => power(scan, i, next, sides),
        '²' | '³' | '¹' | '⁰'..='⁻' | 'ⁿ' => superscript(scan, i),
        '±' => say("plus or minus"),
        // "Vec<T>"
        '<' if scan.word(next).is_some() && scan.is_mark(next + 1, ">") => Spoken::new(next, ""),
        '>' if i >= 2 && scan.word(i - 1).is_some() && scan.is_mark(i - 2, "<") => say(""),
        '<' => comparison(next, sides, "less than", "less than"),
        '>' if menu(scan, i, sides) => say("then"),
        '>' => comparison(next, sides, "greater than", "more than"),
        '≤' => comparison(next, sides, "less than or equal to", "at most"),
        '≥' => comparison(next, sides, "greater than or equal to", "at least"),
        '≪' => when(sides.both, "is much less than"),
        '≫' => when(sides.both, "is much greater than"),
        '≈' | '≅' | '≃' | '∼' if sides.left && sides.both && !sides.be => say("is about"),
        '≈' | '≅' | '≃' | '∼' | '~' => when(sides.number, "about"),
        '≠' if sides.both && !sides.be => say("is not equal to"),
        '≠' => when(sides.number || sides.both, "not equal to"),
        '≡' => when(sides.both, "is equivalent to"),
        '∝' => when(sides.both, "is proportional to"),
        '→' | '⇒' | '➜' | '➔' | '⟶' | '⟹' | '➡' if sides.both => {
            say(if is_menu_path(scan, i) { "then" } else { "to" })
        }
        '→' | '⇒' | '➜' | '➔' | '⟶' | '⟹' | '➡' => say(""),
        '←' | '⇐' => when(sides.both, "from"),
        '↔' | '⇔' => when(sides.both, "and"),
        '↑' => when(sides.number, "up"),
        '↓' => when(sides.number, "down"),
        '√' => when(sides.number || is_operand(scan, scan.skip_space(next)), "the square root of"),
        '∞' => say("infinity"),
        '∑' => say("the sum of"),
        '∏' => say("the product of"),
        '∫' => say("the integral of"),
        '∂' => say("partial"),
        '∇' => say("the gradient of"),
        '∈' => say("in"),
        '∉' => say("not in"),
        '⊂' | '⊆' => say("is a subset of"),
        '∪' => say("union"),
        '∩' => say("intersection"),
        '∅' => say("the empty set"),
        '∀' => say("for all"),
        '∃' => say("there exists"),
        '¬' => say("not"),
        '∧' => say("and"),
        '∨' => say("or"),
        '∴' => say("therefore"),
        '∵' => say("because"),
        '!' if is_factorial(scan, i) => say("factorial"),
        '\\' => when(i > 0 && !scan.ends(i - 1) && !scan.ends(next), "backslash"),
        '|' if is_magnitude(scan, i) => say("the absolute value of"),
        '&' => when(sides.both, "and"),
        '@' => when(sides.both || sides.number, "at"),
        '%' => when(sides.left, "percent"),
        '°' if scan.is_word(next, "C") && scan.ends(next + 1) => Spoken::new(next + 1, "degrees Celsius"),
        '°' if scan.is_word(next, "F") && scan.ends(next + 1) => Spoken::new(next + 1, "degrees Fahrenheit"),
        '°' => when(sides.left, "degrees"),
        '§' if scan.is_mark(next, "§") => Spoken::new(next + 1, "sections"),
        '§' => when(sides.number, "section"),
        '#' => number_sign(scan, next),
        '№' => number_sign(scan, scan.skip_space(next)),
        '⌘' => say("Command"),
        '⌥' => say("Option"),
        '⇧' => say("Shift"),
        '⌃' => say("Control"),
        '⏎' | '↵' => say("Enter"),
        '⌫' => say("Backspace"),
        '⎋' => say("Escape"),
        '′' => when(i > 0 && scan.text(i - 1).len() == 1 && scan.word(i - 1).is_some(), "prime"),
        _ => None,
    }
}

/// "the & sign", "the # key"
fn names_itself(scan: &Scan, next: usize) -> bool {
    scan.word_after(next)
        .is_some_and(|w| matches!(w, "sign" | "symbol" | "key" | "character" | "operator" | "button"))
}

fn sign_name(c: char) -> Option<&'static str> {
    Some(match c {
        '&' => "ampersand",
        '#' => "hash",
        '@' => "at",
        '*' => "star",
        '/' => "slash",
        '+' => "plus",
        '^' => "caret",
        '%' => "percent",
        '=' => "equals",
        '<' => "less than",
        '>' => "greater than",
        '≤' => "less than or equal",
        '≥' => "greater than or equal",
        '≠' => "not equal",
        '≈' => "approximately equal",
        '±' => "plus or minus",
        '°' => "degree",
        '§' => "section",
        '$' => "dollar",
        '€' => "euro",
        '£' => "pound",
        '|' => "pipe",
        _ => return None,
    })
}

/// "30 s × 8", but "with food × 7 days"
fn repeated(scan: &Scan, next: usize) -> &'static str {
    let number = scan.skip_space(next);
    let lasting = ["day", "days", "week", "weeks", "month", "months", "night", "nights"];
    if scan.word_after(number + 1).is_some_and(|w| lasting.contains(&w)) { "for" } else { "times" }
}

/// `|x|`, `|-5|`
fn is_magnitude(scan: &Scan, i: usize) -> bool {
    let at = i + 1 + usize::from(scan.is_mark(i + 1, "-−"));
    scan.starts_run(i) && is_operand(scan, at) && scan.is_mark(at + 1, "|")
}

/// "5! = 120", "n!/2"
fn is_factorial(scan: &Scan, i: usize) -> bool {
    let operand = i > 0
        && (scan.digits(i - 1).is_some()
            || scan.word(i - 1).is_some_and(|w| matches!(w, "n" | "k" | "m" | "r" | "x")));
    operand && (scan.is_mark(scan.skip_space(i + 1), "=/×*+−÷") || scan.is_mark(i + 1, "("))
}

fn is_grade(text: &str) -> bool {
    matches!(text, "A" | "B" | "C" | "D")
}

/// "12-month" keeps its hyphen in an equation too.
fn is_hyphen(scan: &Scan, i: usize) -> bool {
    scan.word(i + 1).is_some_and(|w| w.len() > 1) || i > 0 && scan.word(i - 1).is_some_and(|w| w.len() > 1)
}

fn comparison(next: usize, sides: &Sides, between: &str, before: &str) -> Option<Spoken> {
    match () {
        () if sides.both && !sides.be && !(sides.prefix && sides.number) => {
            Spoken::new(next, format!("is {between}"))
        }
        () if sides.number || sides.be => Spoken::new(next, before),
        () => Spoken::new(next, ""),
    }
}

/// "Settings > Privacy"
fn menu(scan: &Scan, i: usize, sides: &Sides) -> bool {
    let capital = |k: usize, len: usize| {
        scan.word(k).is_some_and(|w| w.len() >= len && w.starts_with(char::is_uppercase))
    };
    let named = i >= 2 && scan.word(i - 2).is_some_and(|w| w.len() > 2);
    sides.spaced && named && (capital(i + 2, 3) || capital(i + 2, 2) && capital(i - 2, 3))
}

/// "Settings → Display → Brightness": more than one step.
fn is_menu_path(scan: &Scan, i: usize) -> bool {
    let arrow = |k: usize| scan.is_mark(k, "→⇒➜➔⟶➡");
    (2..8).any(|n| arrow(i + n) || i >= n && arrow(i - n))
}

/// `#4`, and the number of an order in groups: `#20-4417`.
fn number_sign(scan: &Scan, at: usize) -> Option<Spoken> {
    let mut end = at + 1;
    while scan.is_mark(end, "-") && scan.digits(end + 1).is_some_and(|d| d.len() >= 3) {
        end += 2;
    }
    if scan.digits(at).is_some() && end > at + 1 && scan.ends(end) {
        let groups: Vec<String> = scan.span(at, end).split('-').map(numbers::spell).collect();
        return Spoken::new(end, format!("number {}", groups.join(", ")));
    }
    let Some(digits) = scan.digits(at).filter(|_| scan.ends(at + 1)) else { return Spoken::new(at, "") };
    Spoken::new(at + 1, format!("number {}", numbers::cardinal(digits, scan.locale)))
}

/// Between numbers a division, between words a choice or a rate, between letters nothing.
fn slash(scan: &Scan, i: usize, sides: &Sides) -> Option<Spoken> {
    let next = i + 1;
    // "a /24 network"
    if scan.starts_run(i) && scan.digits(next).is_some_and(|d| d.len() <= 2) && scan.ends(next + 1) {
        return Spoken::new(next, "slash");
    }
    if i == 0 || !sides.both {
        return Spoken::new(next, "");
    }
    let (mut left, right) = if sides.spaced { (i.saturating_sub(2), i + 2) } else { (i - 1, i + 1) };
    // "Mr./Ms. Smith"
    if left > 0 && scan.is_mark(left, ".") && scan.word(left - 1).is_some() {
        left -= 1;
    }
    // Of letters only single ones are calculated with: "x/y", but "ET / 11 AM".
    let plain = |k: usize| scan.word(k).is_none_or(|w| w.chars().count() == 1);
    if sides.spaced && (scan.equation || sides.operands && plain(left) && plain(right)) {
        return Spoken::new(next, "divided by");
    }
    // "2/$5"
    if scan.digits(left).is_some() && scan.is_mark(right, "$€£") {
        return Spoken::new(next, "for");
    }
    // "5:43/mi"
    if let Some(per) = units::per(scan, right).filter(|_| !sides.spaced && scan.digits(left).is_some()) {
        return Spoken::new(right + 1, format!("per {per}"));
    }
    // "f/1.8", "212/646/917"
    let listed = scan.digits(left).is_some()
        && scan.digits(right).is_some()
        && (scan.is_mark(right + 1, "/") && scan.digits(right + 2).is_some()
            || left >= 2 && scan.is_mark(left - 1, "/") && scan.digits(left - 2).is_some());
    if !sides.spaced && (listed || scan.is_word(left, "f") && !scan.equation) {
        return Spoken::new(next, "");
    }
    if scan.is_word(right, "capita") || !sides.spaced && units::is_rate(scan, left, right) {
        return Spoken::new(next, "per");
    }
    let lower = |k: usize| scan.word(k).is_some_and(|w| w.len() > 1 && w.chars().all(char::is_lowercase));
    let name = |k: usize| scan.word(k).is_some_and(|w| w.len() > 1 && w.chars().any(char::is_lowercase));
    let measures =
        sides.spaced && scan.digits(right).is_some() && name(left) || scan.is_mark(left.wrapping_sub(1), "°");
    // "70kg/154lb", "7B/13B"
    let number = left.checked_sub(1).and_then(|k| k.checked_sub(usize::from(scan.is_space(k))));
    let counted = scan.word(left).is_some() && number.is_some_and(|k| scan.digits(k).is_some());
    let again = scan.word(right + 1).is_some_and(|w| Some(w) == scan.word(left));
    let measures = measures
        || counted && scan.digits(right).is_some() && (again || units::read(scan, right + 1).is_some());
    // "speed = distance/time"
    if scan.equation && !sides.spaced && lower(left) && lower(right) {
        return Spoken::new(next, "over");
    }
    let choice = lower(left) && lower(right) || name(left) && name(right) || measures;
    if choice {
        return Spoken::new(next, "or");
    }
    // "x/y", "(a+b)/2"
    let over = sides.operands
        && !sides.spaced
        && plain(left)
        && plain(right)
        && (scan.equation || scan.is_mark(left, ")") || scan.digits(right).is_some());
    Spoken::new(next, if over { "over" } else { "" })
}

/// `x^2`, `2^10`, `10^-3`, `x^n`, `x^{n}`.
fn power(scan: &Scan, i: usize, next: usize, sides: &Sides) -> Option<Spoken> {
    let base = sides.left || i > 0 && is_operand(scan, i - 1);
    if !base {
        return Spoken::new(next, "");
    }
    let open = usize::from(scan.is_mark(next, "({"));
    let minus = scan.is_mark(next + open, "-−");
    let at = next + open + usize::from(minus);
    let close =
        |k: usize| if open == 1 && scan.is_mark(k, ")}") { Some(k + 1) } else { (open == 0).then_some(k) };
    let sign = if minus { "minus " } else { "" };
    if let (Some(digits), Some(end)) = (scan.digits(at).filter(|d| d.len() <= 6), close(at + 1)) {
        // "SO4^2−"
        let charged =
            !minus && scan.digits(i.wrapping_sub(1)).is_some() && scan.word(i.wrapping_sub(2)).is_some();
        if charged && scan.is_mark(end, "-−+") && scan.ends(end + 1) {
            let charge = if scan.is_mark(end, "+") { "plus" } else { "minus" };
            return Spoken::new(end + 1, format!("{} {charge}", numbers::cardinal(digits, scan.locale)));
        }
        let mut spoken = Spoken { next: end, words: exponent(digits, sign, scan) };
        // "3×10^8 m/s"
        if scan.digits(i.wrapping_sub(1)).is_some()
            && let Some(unit) = units::read(scan, end)
        {
            spoken = Spoken { next: unit.next, words: format!("{} {}", spoken.words, unit.many) };
        }
        return Some(spoken);
    }
    if let (Some(word), Some(end)) = (scan.word(at).filter(|w| w.len() <= 2), close(at + 1)) {
        return Spoken::new(end, format!("to the {sign}{word}"));
    }
    Spoken::new(next, if sides.both { "to the" } else { "" })
}

fn exponent(digits: &str, sign: &str, scan: &Scan) -> String {
    match (sign, digits) {
        ("", "2") => "squared".into(),
        ("", "3") => "cubed".into(),
        ("minus ", "1") => "to the minus one".into(),
        _ => format!("to the {sign}{}", numbers::ordinal(digits, scan.locale)),
    }
}

/// `x²`, `10⁻³`; after a word it is the mark of a footnote.
fn superscript(scan: &Scan, i: usize) -> Option<Spoken> {
    let (mut digits, mut minus, mut n, mut next) = (String::new(), false, false, i);
    while let Some(c) = scan.mark(next) {
        match c {
            '¹' => digits.push('1'),
            '²' => digits.push('2'),
            '³' => digits.push('3'),
            '⁰' | '⁴'..='⁹' => digits.extend(char::from_digit(c as u32 - 0x2070, 10)),
            '⁻' if digits.is_empty() => minus = true,
            'ⁿ' => n = true,
            '⁺' | '⁻' => {}
            _ => break,
        }
        next += 1;
        // "Fe³⁺", "SO₄²⁻": a charge.
        if "⁺⁻".contains(c) && !digits.is_empty() {
            let charge = if c == '⁺' { "plus" } else { "minus" };
            return Spoken::new(next, format!("{} {charge}", numbers::cardinal(&digits, scan.locale)));
        }
        if next - i > 6 {
            break;
        }
    }
    let next = next.max(i + 1);
    // "height²" in an equation; elsewhere the mark of a footnote.
    let named = i > 0
        && scan.word(i - 1).is_some_and(|w| scan.equation || calls::is_function(w))
        && matches!(digits.as_str(), "2" | "3");
    if i == 0 || !(is_operand(scan, i - 1) || scan.is_mark(i - 1, ")") || named) {
        return Spoken::new(next, "");
    }
    if scan.digits(i - 1).is_some()
        && !digits.is_empty()
        && let Some(unit) = units::read(scan, next)
    {
        let power = exponent(&digits, if minus { "minus " } else { "" }, scan);
        return Spoken::new(unit.next, format!("{power} {}", unit.many));
    }
    let sign = if minus { "minus " } else { "" };
    match () {
        () if !digits.is_empty() => Spoken::new(next, exponent(&digits, sign, scan)),
        () if n => Spoken::new(next, "to the n"),
        () => Spoken::new(next, ""),
    }
}
