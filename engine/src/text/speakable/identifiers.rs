//! Names from code, files and the web, taken apart into words: "getUserName", "foo_bar2", "rust-lang".

use super::{Locale, acronyms, numbers};

/// The words of a name made of letters, digits, hyphens and underscores.
pub(super) fn words(name: &str, locale: Locale) -> String {
    let small = name.chars().find(|c| c.is_alphabetic()).is_some_and(char::is_lowercase);
    let mut out = String::new();
    let mut hyphen = false;
    for part in parts(name) {
        let said = match part.chars().next() {
            Some(c) if c.is_ascii_digit() => numbers::code(part, locale),
            Some(c) if c.is_alphabetic() => letters(part, small),
            Some('-') => {
                hyphen = true;
                continue;
            }
            _ => continue,
        };
        if !out.is_empty() {
            let joined = hyphen && out.ends_with(char::is_lowercase) && said.starts_with(char::is_lowercase);
            out.push(if joined { '-' } else { ' ' });
        }
        out.push_str(&said);
        hyphen = false;
    }
    out
}

fn letters(part: &str, small: bool) -> String {
    let said = acronyms::say(part, false, None);
    match said {
        Some(said) => said,
        None if small => part.to_lowercase(),
        None => part.to_string(),
    }
}

/// Cuts at changes between lower and upper case, letters and digits, and at every other character.
pub(super) fn parts(name: &str) -> Vec<&str> {
    #[derive(PartialEq, Clone, Copy)]
    enum Class {
        Lower,
        Upper,
        Digit,
        Other,
    }
    let class = |c: char| match c {
        c if c.is_ascii_digit() => Class::Digit,
        c if c.is_uppercase() => Class::Upper,
        c if c.is_alphabetic() => Class::Lower,
        _ => Class::Other,
    };
    let chars: Vec<(usize, char)> = name.char_indices().collect();
    let mut cuts = Vec::new();
    for (k, pair) in chars.windows(2).enumerate() {
        let (a, b) = (class(pair[0].1), class(pair[1].1));
        let cut = match (a, b) {
            (Class::Upper, Class::Lower) => false,
            // "HTTPServer": the last capital begins the next word; "URLs" is one.
            (Class::Upper, Class::Upper) => {
                chars.get(k + 2).is_some_and(|&(_, c)| class(c) == Class::Lower)
                    && chars.get(k + 3).is_some_and(|&(_, c)| class(c) == Class::Lower)
            }
            (Class::Other, _) => true,
            _ => a != b,
        };
        if cut {
            cuts.push(pair[1].0);
        }
    }
    let mut parts = Vec::with_capacity(cuts.len() + 1);
    let mut from = 0;
    for cut in cuts {
        parts.push(&name[from..cut]);
        from = cut;
    }
    if from < name.len() {
        parts.push(&name[from..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        let of = |name| words(name, Locale::EnUs);
        assert_eq!(of("getUserName"), "get user name");
        assert_eq!(of("HTTPServer"), "H T T P Server");
        assert_eq!(of("foo_bar2"), "foo bar two");
        assert_eq!(of("__init__"), "init");
        assert_eq!(of("rust-lang"), "rust-lang");
        assert_eq!(of("RustLang"), "Rust Lang");
        assert_eq!(of("usr"), "U S R");
    }
}
