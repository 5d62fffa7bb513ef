//! Functions and their arguments, as they are read out: "f(x)" is "f of x", "sqrt(16)" the square root of sixteen.

use super::numbers;
use super::scan::{Kind, Scan, Spoken};

/// Functions with a name in words, and those that are said as written.
#[rustfmt::skip]
const FUNCTIONS: &[(&str, &str)] = &[
    ("sqrt", "the square root"), ("cbrt", "the cube root"), ("sin", "sine"), ("cos", "cosine"), ("tan", "tangent"),
    ("sinh", "hyperbolic sine"), ("cosh", "hyperbolic cosine"), ("tanh", "hyperbolic tangent"), ("arcsin", "arc sine"),
    ("arccos", "arc cosine"), ("arctan", "arc tangent"), ("asin", "arc sine"), ("acos", "arc cosine"), ("atan", "arc tangent"),
    ("log", "log"), ("ln", "the natural log"), ("lg", "log"), ("exp", "the exponential"), ("abs", "the absolute value"),
    ("max", "the maximum"), ("min", "the minimum"), ("sum", "the sum"), ("gcd", "the G C D"), ("lcm", "the L C M"), ("GCD", "the G C D"), ("LCM", "the L C M"),
    ("floor", "the floor"), ("ceil", "the ceiling"), ("det", "the determinant"), ("len", "the length"), ("avg", "the average"),
    ("mean", "the mean"), ("var", "the variance"), ("Var", "the variance"),
];

/// Letters that stand for functions more often than for anything else.
const LETTERS: &str = "fghpqtuvwxysFGHLOPQTVE";

/// Longest argument list that is looked over, in tokens.
const LONGEST: usize = 40;

/// The name of a function, the bracket behind it and the bracket that closes.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    if scan.word(i).is_some() {
        if let Some(bare) = bare(scan, i) {
            return Some(bare);
        }
        let open = name_end(scan, i)?;
        if !opens_call(scan, open) {
            return None;
        }
        let name = match FUNCTIONS.iter().find(|(name, _)| *name == scan.text(i)) {
            Some((_, said)) => *said,
            None => scan.text(i),
        };
        if scan.is_mark(i + 1, "'′") {
            return Spoken::new(open, format!("{name} prime"));
        }
        if open > i + 1 {
            let base = numbers::cardinal(scan.text(i + 1), scan.locale);
            return Spoken::new(open, format!("{name} base {base}"));
        }
        return Spoken::new(open, name);
    }
    if opens_call(scan, i) {
        return Spoken::new(i + 1, "of");
    }
    if scan.is_mark(i, ")") && opening(scan, i).is_some_and(|open| opens_call(scan, open)) {
        return Spoken::new(i + 1, "");
    }
    // "P(A|B)"
    let given = scan.is_mark(i, "|") && i >= 3 && scan.is_mark(i - 2, "(") && scan.is_word(i - 3, "P");
    if given && opens_call(scan, i - 2) {
        return Spoken::new(i + 1, "given");
    }
    None
}

/// `sin 30°`, `cos²x`, `ln e`: a function and its argument without brackets.
fn bare(scan: &Scan, i: usize) -> Option<Spoken> {
    let name = scan.word(i).filter(|w| matches!(*w, "sin" | "cos" | "tan" | "ln"))?;
    let said = FUNCTIONS.iter().find(|(known, _)| *known == name)?.1;
    if scan.is_mark(i + 1, "²³⁻") {
        return Spoken::new(i + 1, said);
    }
    let at = i + 2;
    let letter = scan.word(at).is_some_and(|w| matches!(w, "x" | "y" | "z" | "t" | "e" | "n"));
    let symbol = matches!(scan.kind(at), Some(Kind::Foreign(_))) && scan.text(at).chars().count() == 1;
    let argument = scan.digits(at).is_some() || letter && scan.ends(at + 1) || symbol;
    (scan.is_space(i + 1) && argument).then(|| Spoken { next: i + 1, words: format!("{said} of") })
}

/// Whether `name` is a function that is read as one.
pub(super) fn is_function(name: &str) -> bool {
    FUNCTIONS.iter().any(|(function, _)| *function == name)
}

/// The index of the bracket behind a name that starts at token `i`: "f(", "log2(".
fn name_end(scan: &Scan, i: usize) -> Option<usize> {
    if scan.is_mark(i + 1, "(") {
        return Some(i + 1);
    }
    // "f'(x)"
    if scan.text(i).len() == 1 && scan.is_mark(i + 1, "'′") && scan.is_mark(i + 2, "(") {
        return Some(i + 2);
    }
    let based = scan.is_word(i, "log") && scan.digits(i + 1).is_some_and(|d| d.len() <= 2);
    (based && scan.is_mark(i + 2, "(")).then_some(i + 2)
}

/// Whether the bracket at `i` holds the arguments of a function.
pub(super) fn opens_call(scan: &Scan, i: usize) -> bool {
    if !scan.is_mark(i, "(") || i == 0 || scan.is_mark(i + 1, ")") {
        return false;
    }
    let between = scan.digits(i - 1).is_some() || scan.is_mark(i - 1, "'′");
    let from = if between && i > 1 { i - 2 } else { i - 1 };
    let Some(name) = scan.word(from).filter(|_| name_end(scan, from) == Some(i)) else { return false };
    // "2f(x)" and "f(g(x))" are fine, "sub-f(x)" is none.
    let joined =
        from > 0 && (scan.word(from - 1).is_some() || scan.is_mark(from - 1, "-_'.") && !scan.equation);
    let known = is_function(name) || name.chars().count() == 1 && LETTERS.contains(name);
    // "question(s)"
    !joined
        && known
        && !(!is_function(name) && scan.is_word(i + 1, "s") && scan.is_mark(i + 2, ")"))
        && closing(scan, i).is_some()
}

fn closing(scan: &Scan, open: usize) -> Option<usize> {
    let mut depth = 0;
    (open..scan.len().min(open + LONGEST)).find(|&k| {
        depth += i32::from(scan.is_mark(k, "(")) - i32::from(scan.is_mark(k, ")"));
        depth == 0
    })
}

fn opening(scan: &Scan, close: usize) -> Option<usize> {
    let mut depth = 0;
    (close.saturating_sub(LONGEST)..=close).rev().find(|&k| {
        depth += i32::from(scan.is_mark(k, ")")) - i32::from(scan.is_mark(k, "("));
        depth == 0
    })
}
