//! Pre-tokenisers: where a text is cut before byte-level BPE merges within each piece.
//!
//! The published tokenizers give the cuts as a regular expression with a lookahead, `\s+(?!\S)`. A
//! backtracking engine needs quadratic time on long runs of spaces, or gives up. The scanners here mean
//! the same and look at each character a bounded number of times, so a megabyte of anything is linear;
//! the expressions stay beside them in [`PreTokenizer::pattern`], and a test holds the two together.
//!
//! ```
//! use repartee_engine::text::pretokenize::PreTokenizer;
//! let pieces: Vec<&str> = PreTokenizer::Gpt2.split("it's 10  km").collect();
//! assert_eq!(pieces, ["it", "'s", " 10", " ", " km"]);
//! ```
//!
//! Character classes are Unicode's: letters are the categories L*, numbers N*, spaces `White_Space`.
//! Which expression a model wants is a fact of the model: GGUF names it in `tokenizer.ggml.pre`
//! (llama.cpp's `llama-vocab.cpp` maps the names), `tokenizer.json` spells it out.

use unicode_general_category::{GeneralCategory as Category, get_general_category};

/// The rule that cuts text into the pieces that merges never cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreTokenizer {
    /// GPT-2 and Whisper: words, numbers and symbols, each with one space in front.
    Gpt2,
    /// SmolLM and StarCoder: each digit alone, the rest between digits as in GPT-2.
    SmolLm,
    /// Qwen2, Qwen2.5, Qwen3: digits alone, words take one leading symbol, newlines grouped.
    Qwen2,
    /// Llama 3, LFM2, Falcon 3: as Qwen2 with digits in groups of up to three.
    Llama3,
}

impl PreTokenizer {
    /// The pre-tokeniser that GGUF's `tokenizer.ggml.pre` names, with the names that llama.cpp gives the
    /// same rule; `None` for a rule that is not implemented.
    pub fn from_gguf_name(name: &str) -> Option<Self> {
        Some(match name {
            "gpt-2" | "phi-2" | "mpt" | "olmo" | "jais" | "trillion" | "exaone4" | "mellum"
            | "modern-bert" | "gigachat" | "a.x-4.0" | "granite-docling" => Self::Gpt2,
            "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" | "minerva-7b"
            | "mellum2" => Self::SmolLm,
            "qwen2" | "deepseek-r1-qwen" | "stablelm2" | "hunyuan" | "megrez" | "kormo" | "f2llmv2"
            | "solar-open" | "grok-2" => Self::Qwen2,
            "llama-bpe" | "llama3" | "llama-v3" | "lfm2" | "falcon3" | "falcon-h1" | "pixtral"
            | "midm-2.0" | "dbrx" | "smaug-bpe" | "chatglm-bpe" | "glm4" | "glm5" => Self::Llama3,
            _ => return None,
        })
    }

    /// The expressions of the published tokenizer: each cuts what the one before it left whole, and what
    /// no expression matches is a piece of its own.
    pub fn pattern(self) -> &'static [&'static str] {
        const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
        match self {
            Self::Gpt2 => &[GPT2],
            Self::SmolLm => &[r"\p{N}", GPT2],
            Self::Qwen2 => &[
                r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            ],
            Self::Llama3 => &[
                r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            ],
        }
    }

    /// The pieces of `text` in order; joined they are `text` again.
    pub fn split(self, text: &str) -> Pieces<'_> {
        Pieces { rule: self, region: "", rest: text }
    }
}

/// The pieces of a text, from [`PreTokenizer::split`].
#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    rule: PreTokenizer,
    /// What the first expression of a chain left whole: a lookahead ends at its end.
    region: &'a str,
    rest: &'a str,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.region.is_empty() {
            let first = self.rest.chars().next()?;
            let len = match self.rule {
                PreTokenizer::SmolLm if Class::of(first) == Class::Number => first.len_utf8(),
                PreTokenizer::SmolLm => run_end(self.rest, 0, |class, _| class != Class::Number),
                _ => self.rest.len(),
            };
            (self.region, self.rest) = self.rest.split_at(len);
        }
        let len = match self.rule {
            PreTokenizer::Gpt2 | PreTokenizer::SmolLm => gpt2_end(self.region),
            PreTokenizer::Qwen2 => llama3_end(self.region, 1),
            PreTokenizer::Llama3 => llama3_end(self.region, 3),
        };
        let (piece, region) = self.region.split_at(len);
        self.region = region;
        Some(piece)
    }
}

/// What the expressions tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Number,
    Space,
    Other,
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' => Self::Letter,
            '0'..='9' => Self::Number,
            ' ' | '\t'..='\r' => Self::Space,
            '\0'..='\x7f' => Self::Other,
            _ if c.is_whitespace() => Self::Space,
            _ if c.is_numeric() => Self::Number, // Rust's `is_numeric` is exactly Nd, Nl and No
            // Rust's `is_alphabetic` also has marks and circled letters, which `\p{L}` has not.
            _ => match get_general_category(c) {
                Category::UppercaseLetter
                | Category::LowercaseLetter
                | Category::TitlecaseLetter
                | Category::ModifierLetter
                | Category::OtherLetter => Self::Letter,
                _ => Self::Other,
            },
        }
    }
}

fn is_newline(c: char) -> bool {
    matches!(c, '\r' | '\n')
}

/// The byte offset behind the run of characters from `start` that `belongs` accepts.
fn run_end(text: &str, start: usize, belongs: impl Fn(Class, char) -> bool) -> usize {
    text[start..]
        .char_indices()
        .find(|&(_, c)| !belongs(Class::of(c), c))
        .map_or(text.len(), |(i, _)| start + i)
}

/// The class of the character at byte offset `at`, if there is one.
fn class_at(text: &str, at: usize) -> Option<Class> {
    text[at..].chars().next().map(Class::of)
}

/// The length of an English contraction (`'s`, `'re` ...) at the start of `text`.
fn contraction_end(text: &str, any_case: bool) -> Option<usize> {
    let fold = |b: u8| if any_case { b.to_ascii_lowercase() } else { b };
    match text.as_bytes() {
        [b'\'', a, ..] if matches!(fold(*a), b's' | b't' | b'm' | b'd') => Some(2),
        [b'\'', a, b, ..] if matches!(&[fold(*a), fold(*b)], b"re" | b"ve" | b"ll") => Some(3),
        _ => None,
    }
}

/// `\s+(?!\S)|\s+` at a space: the whole run at the end of the text, else all but its last character,
/// which goes with the word behind it; a run of one stays.
fn spaces_end(text: &str) -> usize {
    let end = run_end(text, 0, |class, _| class == Class::Space);
    if end == text.len() {
        return end;
    }
    match text[..end].char_indices().next_back() {
        Some((last, _)) if last > 0 => last,
        _ => end,
    }
}

/// The end of the first GPT-2 piece of `text`, which is not empty.
fn gpt2_end(text: &str) -> usize {
    if let Some(end) = contraction_end(text, false) {
        return end;
    }
    let start = usize::from(text.starts_with(' '));
    match class_at(text, start) {
        Some(class) if class != Class::Space => run_end(text, start, |next, _| next == class),
        _ => spaces_end(text),
    }
}

/// The end of the first Llama 3 piece of `text`, which is not empty, with numbers of up to `max_digits`.
fn llama3_end(text: &str, max_digits: usize) -> usize {
    if let Some(end) = contraction_end(text, true) {
        return end;
    }
    let Some(first) = text.chars().next() else { return 0 };
    let class = Class::of(first);
    let is_letter = |class: Class, _: char| class == Class::Letter;
    match class {
        Class::Letter => return run_end(text, 0, is_letter),
        Class::Number => {
            return text
                .char_indices()
                .enumerate()
                .find(|&(i, (_, c))| i == max_digits || Class::of(c) != Class::Number)
                .map_or(text.len(), |(_, (at, _))| at);
        }
        Class::Space | Class::Other => {}
    }
    if !is_newline(first) && class_at(text, first.len_utf8()) == Some(Class::Letter) {
        return run_end(text, first.len_utf8(), is_letter);
    }
    let start = usize::from(first == ' ');
    if class_at(text, start) == Some(Class::Other) {
        let end = run_end(text, start, |class, _| class == Class::Other);
        return run_end(text, end, |_, c| is_newline(c));
    }
    let spaces = run_end(text, 0, |class, _| class == Class::Space);
    match text[..spaces].rfind(is_newline) {
        Some(last) => last + 1,
        None => spaces_end(text),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::OnceLock;

    use proptest::prelude::*;

    use super::*;

    const ALL: [PreTokenizer; 4] =
        [PreTokenizer::Gpt2, PreTokenizer::SmolLm, PreTokenizer::Qwen2, PreTokenizer::Llama3];

    /// The published expressions, compiled once for all tests.
    fn twins() -> &'static [(PreTokenizer, Vec<fancy_regex::Regex>)] {
        static TWINS: OnceLock<Vec<(PreTokenizer, Vec<fancy_regex::Regex>)>> = OnceLock::new();
        TWINS.get_or_init(|| {
            let compile = |pattern: &&str| fancy_regex::Regex::new(pattern).unwrap();
            ALL.map(|rule| (rule, rule.pattern().iter().map(compile).collect())).to_vec()
        })
    }

    /// The published expressions, applied as written.
    fn split_by_pattern(regexes: &[fancy_regex::Regex], text: &str) -> Vec<String> {
        let mut pieces = vec![text.to_owned()];
        for regex in regexes {
            pieces = pieces
                .iter()
                .flat_map(|piece| {
                    let mut cut = Vec::new();
                    let mut done = 0;
                    for found in regex.find_iter(piece).map(Result::unwrap) {
                        cut.push(piece[done..found.start()].to_owned());
                        cut.push(found.as_str().to_owned());
                        done = found.end();
                    }
                    cut.push(piece[done..].to_owned());
                    cut
                })
                .filter(|piece| !piece.is_empty())
                .collect();
        }
        pieces
    }

    fn check(text: &str) {
        for (rule, regexes) in twins() {
            let ours: Vec<&str> = rule.split(text).collect();
            assert_eq!(ours, split_by_pattern(regexes, text), "{rule:?} on {text:?}");
        }
    }

    #[test]
    fn scanners_cut_as_the_patterns_do() {
        let texts = [
            "",
            " ",
            "  ",
            "\n",
            "\r\n\r\n",
            "a",
            " a",
            "  a",
            "a  ",
            "a \n b",
            "a\n\n  b\n",
            "  \n  \n x",
            "\tx \t y",
            "it's IT'S they'RE we'll 'tis 'llama 'r 'v",
            "''s '",
            "x=1; y=22; z=333; w=4444; v=55555",
            "1 2  3   4",
            "a1b2 3c",
            "٣٤٥ Ⅷ ½ x²",
            "!!! ??\n\n...\n x",
            "-- --  --\n\n",
            "naïve café e\u{301}tude",
            "日本語のテキスト、です。",
            "한국어 문장",
            "हिन्दी में पाठ",
            "👩\u{200d}👩\u{200d}👧\u{1f3fd} ok",
            "a\u{a0}b\u{3000}c\u{2028}d\u{85}e",
            "<|im_end|> <tool_call>\n{\"a\": 1}",
            "fn main() {\n    println!(\"{}\", 1_000);\n}\n",
            "K\u{17f} '\u{17f} ſ",
        ];
        texts.into_iter().for_each(check);
    }

    #[test]
    fn classes_are_unicode_s() {
        // The twin's tables may be of another Unicode version: only code points that either calls
        // unassigned may differ.
        let all: String = ('\0'..=char::MAX).collect();
        let members = |class: &str| -> HashSet<char> {
            let regex = fancy_regex::Regex::new(&format!(r"\p{{{class}}}+")).unwrap();
            regex.find_iter(&all).flat_map(|found| found.unwrap().as_str().chars()).collect()
        };
        let (letters, numbers, unassigned) = (members("L"), members("N"), members("Cn"));
        assert!(letters.len() > 130_000 && numbers.len() > 1_800);
        for c in all.chars() {
            let expected = match c {
                _ if letters.contains(&c) => Class::Letter,
                _ if numbers.contains(&c) => Class::Number,
                _ if c.is_whitespace() => Class::Space,
                _ => Class::Other,
            };
            let newer = get_general_category(c) == Category::Unassigned || unassigned.contains(&c);
            assert!(Class::of(c) == expected || newer, "U+{:04X}", c as u32);
        }
    }

    #[test]
    fn long_runs_are_cut_in_a_few_pieces() {
        let n = 1 << 20;
        for rule in ALL {
            for c in [' ', '\n', 'a', '\u{3000}', '!'] {
                let run: String = std::iter::repeat_n(c, n).collect();
                assert_eq!(rule.split(&run).count(), 1, "{rule:?} on a run of {c:?}");
                let then_word = format!("{run}x");
                assert!(rule.split(&then_word).count() <= 3, "{rule:?} on a run of {c:?} and a word");
            }
        }
        let digits = "7".repeat(n);
        assert_eq!(PreTokenizer::Gpt2.split(&digits).count(), 1);
        assert_eq!(PreTokenizer::SmolLm.split(&digits).count(), n);
        assert_eq!(PreTokenizer::Qwen2.split(&digits).count(), n);
        assert_eq!(PreTokenizer::Llama3.split(&digits).count(), n.div_ceil(3));
    }

    proptest! {
        #[test]
        fn random_text_is_cut_as_the_patterns_do(text in r"[ab'sStTlLreEmd019²\. !\-<|> \t\n\r\x{a0}\x{3000}é日\x{301}🙂]{0,40}") {
            check(&text);
        }

        #[test]
        fn pieces_join_to_the_text(text in any::<String>()) {
            for rule in ALL {
                prop_assert_eq!(rule.split(&text).collect::<String>(), text.as_str());
                prop_assert!(rule.split(&text).all(|piece| !piece.is_empty()));
            }
        }
    }
}
