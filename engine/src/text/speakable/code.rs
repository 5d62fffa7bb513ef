//! Inline code as far as it can be said: names are taken apart, the rest is "some code".

use super::identifiers;

/// Longest code that is read out, in characters.
const MAX_CHARS: usize = 60;

/// Signs that are named when they stand alone in a code span, where they are talked about.
#[rustfmt::skip]
const SIGNS: &[(&str, &str)] = &[
    ("=", "equals"), ("==", "double equals"), ("===", "triple equals"), ("!=", "not equal"), ("!==", "strict not equal"),
    ("+", "plus"), ("-", "minus"), ("*", "star"), ("**", "double star"), ("/", "slash"), ("//", "double slash"), ("%", "percent"),
    ("+=", "plus equals"), ("-=", "minus equals"), ("*=", "times equals"), ("/=", "divide equals"), ("++", "plus plus"),
    ("--", "minus minus"), ("<", "less than"), (">", "greater than"), ("<=", "less than or equal"),
    (">=", "greater than or equal"), ("<<", "double less than"), (">>", "double greater than"), ("&", "ampersand"),
    ("&&", "double ampersand"), ("|", "pipe"), ("||", "double pipe"), ("!", "exclamation mark"), ("?", "question mark"),
    ("??", "double question mark"), ("->", "arrow"), ("=>", "arrow"), (":", "colon"), ("::", "double colon"), (":=", "colon equals"),
    (";", "semicolon"), (",", "comma"), (".", "dot"), ("..", "dot dot"), ("...", "dot dot dot"), ("#", "hash"), ("@", "at"),
    ("$", "dollar sign"), ("^", "caret"), ("~", "tilde"), ("_", "underscore"), ("\\", "backslash"), ("\\n", "backslash N"),
    ("\\t", "backslash T"), ("()", "parentheses"), ("[]", "square brackets"), ("{}", "curly braces"), ("<>", "angle brackets"),
    ("(", "open parenthesis"), (")", "close parenthesis"), ("[", "open bracket"), ("]", "close bracket"), ("{", "open brace"),
    ("}", "close brace"), ("\"", "double quote"), ("'", "single quote"), ("/*", "slash star"), ("*/", "star slash"),
    ("#!", "hash bang"),
];

/// Plain text for the content of a code span.
pub(super) fn plain(code: &str) -> String {
    let clean = super::terminal::without_sequences(code);
    let code = clean.trim();
    if let Some((_, name)) = SIGNS.iter().find(|(sign, _)| *sign == code) {
        return (*name).to_string();
    }
    if let Some(tag) = tag(code) {
        return tag;
    }
    let total = code.chars().count();
    let symbols =
        code.chars().filter(|c| !c.is_alphanumeric() && !" _-./:()#+'\",@$\\;".contains(*c)).count();
    // A short name may carry more signs: "&str", "Vec<T>".
    let share = if total > 12 { 5 } else { 3 };
    // Statements are for the eye.
    let statement = code.trim_end_matches(';').contains(';') || code.contains(['{', '}']) && total > 12;
    // A hash or key is announced as such.
    if total > 20
        && code.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=_-".contains(&b))
        && code.bytes().filter(u8::is_ascii_digit).count() > 3
    {
        return "a long code".into();
    }
    if total > MAX_CHARS || symbols * share > total || statement {
        return if code.chars().any(char::is_alphanumeric) { "some code".into() } else { String::new() };
    }
    let mut words: Vec<String> = code.trim_end_matches(';').split_whitespace().map(word).collect();
    for k in 1..words.len() {
        let named = match words[k].as_str() {
            "*" if words[k - 1].eq_ignore_ascii_case("select") => "star",
            "|" => "pipe",
            "." => "dot",
            ".." => "dot dot",
            _ => continue,
        };
        words[k] = named.into();
    }
    words.join(" ")
}

/// `<div>`, `</p>`, `<br/>`: the element's name.
fn tag(code: &str) -> Option<String> {
    let inner = code.strip_prefix('<')?.strip_suffix('>')?;
    let (closing, name) = match inner.strip_prefix('/') {
        Some(name) => ("closing ", name),
        None => ("", inner.trim_end_matches('/').trim_end()),
    };
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric());
    (plain && name.len() <= 12).then(|| format!("{closing}{name}"))
}

fn word(word: &str) -> String {
    // Signs between words are the rules' business.
    if !word.chars().any(char::is_alphanumeric) {
        return word.to_string();
    }
    for (step, said) in [("++", "plus plus"), ("--", "minus minus")] {
        let stem = word.trim_end_matches([')', ';', ',']).strip_suffix(step);
        if let Some(stem) = stem.filter(|stem| stem.ends_with(char::is_alphanumeric)) {
            return format!("{} {said}", self::word(stem));
        }
    }
    if word.strip_prefix('#').is_some_and(super::notation::is_colour) {
        return word.to_string();
    }
    let bare = word.trim_start_matches(['$', '&', '*', '@', '#']).trim_end_matches([';', ',', ':']);
    let bare = bare.strip_suffix("()").unwrap_or(bare);
    // "feature/login" is no choice.
    let segments: Vec<&str> = bare.split('/').collect();
    let named =
        |s: &&str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if segments.len() > 1
        && segments.iter().all(named)
        && segments[0].starts_with(|c: char| c.is_ascii_alphabetic())
    {
        let words: Vec<String> = segments.iter().map(|s| name_words(s)).collect();
        return words.join(" slash ");
    }
    // Numbers keep their sign, addresses, paths and options are known by their shape.
    if bare.is_empty()
        || word.contains(['/', '\\'])
        || word.contains("@") && word.contains('.')
        || bare.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        || is_call(bare)
    {
        return word.trim_end_matches([';', ',']).to_string();
    }
    let bare = bare.trim_end_matches(['(', ')']);
    // "torch>=2.0"
    let clean = bare.trim_matches('"');
    for (sign, said) in
        [(">=", "at least"), ("<=", "at most"), ("==", ""), ("~=", "about"), (">", "above"), ("<", "below")]
    {
        if let Some((name, version)) = clean.split_once(sign)
            && version.starts_with(|c: char| c.is_ascii_digit())
        {
            return format!("{} {said} {version}", name_words(name));
        }
    }
    let mut out = String::new();
    for (n, name) in bare
        .split([':', '(', ')', '"', ',', '<', '>', '[', ']', '{', '}', '&'])
        .filter(|s| !s.is_empty())
        .enumerate()
    {
        if n > 0 {
            out.push(' ');
        }
        // A file name or method chain keeps its full stops; only names in mixed case are taken apart.
        let dotted: Vec<String> = name.split('.').map(name_words).collect();
        out.push_str(&dotted.join("."));
    }
    out
}

/// `f(x)`, `sqrt(16)`: short names with their arguments, which their own rule reads.
fn is_call(word: &str) -> bool {
    let Some((name, rest)) = word.split_once('(') else { return false };
    let plain = |s: &str| s.bytes().all(|b| b.is_ascii_alphanumeric());
    let simple = rest.strip_suffix(')').is_some_and(|inner| !inner.is_empty() && plain(inner));
    simple && (name.len() == 1 || super::calls::is_function(name))
}

fn name_words(name: &str) -> String {
    let humps = identifiers::parts(name).iter().filter(|p| p.starts_with(char::is_alphabetic)).count();
    let small = name.chars().find(|c| c.is_alphabetic()).is_some_and(char::is_lowercase);
    if humps < 2 || name.chars().any(|c| c.is_ascii_digit()) {
        return name.replace('_', " ").trim().to_string();
    }
    let parts: Vec<String> = identifiers::parts(name)
        .iter()
        .filter(|p| p.starts_with(char::is_alphabetic))
        .map(|p| if small && p.chars().any(char::is_lowercase) { p.to_lowercase() } else { (*p).to_string() })
        .collect();
    parts.join(" ")
}

/// What is said in place of a fenced block in `language`.
pub(super) fn omitted(language: &str) -> String {
    let name = match language.to_lowercase().as_str() {
        "python" | "py" | "python3" => "Python",
        "rust" | "rs" => "Rust",
        "javascript" | "js" | "jsx" | "node" => "JavaScript",
        "typescript" | "ts" | "tsx" => "TypeScript",
        "java" => "Java",
        "go" | "golang" => "Go",
        "ruby" | "rb" => "Ruby",
        "swift" => "Swift",
        "kotlin" => "Kotlin",
        "c" => "C",
        "cpp" | "c++" => "C plus plus",
        "csharp" | "cs" | "c#" => "C sharp",
        "html" => "H T M L",
        "css" => "C S S",
        "sql" => "S Q L",
        "bash" | "sh" | "shell" | "zsh" | "console" => "Shell",
        _ => return "Code omitted.".into(),
    };
    format!("{name} code omitted.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_said_and_the_rest_is_named() {
        assert_eq!(plain("getUserName()"), "get user name");
        assert_eq!(plain("foo_bar()"), "foo bar");
        assert_eq!(plain("--verbose"), "--verbose");
        assert_eq!(plain("=="), "double equals");
        assert_eq!(plain("</p>"), "closing p");
        assert_eq!(plain("count++"), "count plus plus");
        assert_eq!(plain("sqrt(x)"), "sqrt(x)");
        assert_eq!(plain("for (i = 0; i < 9; i++) { f(i); }"), "some code");
        assert_eq!(plain("main.rs"), "main.rs");
        assert_eq!(plain("std::vec::Vec"), "std vec Vec");
        assert_eq!(plain(r#"{"a": [1, 2]}"#), "some code");
        assert_eq!(plain("***"), "");
        assert_eq!(omitted("py"), "Python code omitted.");
        assert_eq!(omitted("mermaid"), "Code omitted.");
    }
}
