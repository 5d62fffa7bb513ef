//! Inline code as far as it can be said: names are taken apart, the rest is "some code".

use super::identifiers;

/// Longest code that is read out, in characters.
const MAX_CHARS: usize = 60;

/// Plain text for the content of a code span.
pub(super) fn plain(code: &str) -> String {
    let code = code.trim();
    let total = code.chars().count();
    let symbols = code.chars().filter(|c| !c.is_alphanumeric() && !" _-./:()#+'\",@$".contains(*c)).count();
    // A short name may carry more signs: "&str", "Vec<T>".
    let share = if total > 12 { 5 } else { 3 };
    if total > MAX_CHARS || symbols * share > total {
        return if code.chars().any(char::is_alphanumeric) { "some code".into() } else { String::new() };
    }
    let words: Vec<String> = code.split_whitespace().map(word).collect();
    words.join(" ")
}

fn word(word: &str) -> String {
    let bare =
        word.trim_start_matches(['-', '$', '&', '*', '@', '#']).trim_end_matches(['(', ')', ';', ',', ':']);
    // Numbers keep their sign, addresses and paths are known by their shape.
    if bare.is_empty()
        || word.contains('/')
        || word.contains("@") && word.contains('.')
        || bare.starts_with(|c: char| c.is_ascii_digit())
    {
        return word.to_string();
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
        assert_eq!(plain("--verbose"), "verbose");
        assert_eq!(plain("main.rs"), "main.rs");
        assert_eq!(plain("std::vec::Vec"), "std vec Vec");
        assert_eq!(plain(r#"{"a": [1, 2]}"#), "some code");
        assert_eq!(plain("***"), "");
        assert_eq!(omitted("py"), "Python code omitted.");
        assert_eq!(omitted("mermaid"), "Code omitted.");
    }
}
