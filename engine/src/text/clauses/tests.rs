//! Clauses of whole replies, and the laws that hold for any text.

use proptest::prelude::*;

use super::*;

fn split(text: &str) -> Vec<Clause> {
    let mut splitter = ClauseSplitter::default();
    let mut clauses = splitter.push(text);
    clauses.extend(splitter.flush());
    clauses
}

fn by_char(text: &str) -> Vec<Clause> {
    let mut splitter = ClauseSplitter::default();
    let mut clauses = Vec::new();
    let mut buffer = [0; 4];
    for c in text.chars() {
        clauses.extend(splitter.push(c.encode_utf8(&mut buffer)));
    }
    clauses.extend(splitter.flush());
    clauses
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    for clauses in [split(text), by_char(text)] {
        let texts: Vec<&str> = clauses.iter().map(|c| c.text.as_str()).collect();
        assert_eq!(texts, expected, "{text:?}");
    }
}

#[test]
fn abbreviations_and_numbers_do_not_end_sentences() {
    check(
        "Dr. Lee, J. R. Hall and the U.S. team meet at 9 a.m. in St. Ives, e.g. room 3.5 of v2.0.1. Bring tea.",
        &[
            "Dr. Lee, J. R. Hall and the U.S. team meet at 9 a.m. in St. Ives, e.g. room 3.5 of v2.0.1.",
            "Bring tea.",
        ],
    );
    check("See fig. 3 and No. 5. No. I won't.", &["See fig. 3 and No. 5.", "No.", "I won't."]);
    check("Read 1 Cor. 13:4 and Matt. 5:3. Yes.", &["Read 1 Cor. 13:4 and Matt. 5:3.", "Yes."]);
    check("We met J. C. Penney and George P. Bush.", &["We met J. C. Penney and George P. Bush."]);
    check("Fat (of which sat. 5.1 g) is bad.", &["Fat (of which sat. 5.1 g) is bad."]);
    check(
        "It is at 42 W. 5th St. and 1200 N. Main St. now.",
        &["It is at 42 W. 5th St. and 1200 N. Main St. now."],
    );
    check("Ask Matt. He knows.", &["Ask Matt.", "He knows."]);
    check("It goes 1. e4 e5 2. Nf3. Fine.", &["It goes 1. e4 e5 2. Nf3.", "Fine."]);
    check("Take max. 1,200 mg of it.", &["Take max. 1,200 mg of it."]);
    check("See 18 U.S.C. § 1030 and H.R. 3684.", &["See 18 U.S.C. § 1030 and H.R. 3684."]);
    check("Mr. and Mrs. Smith vs. Prof. Jones.", &["Mr. and Mrs. Smith vs. Prof. Jones."]);
    check("It grew 3.5 percent, i.e. a lot.", &["It grew 3.5 percent, i.e. a lot."]);
    check(
        "The U.S. Senate met. It was in the U.S. The end.",
        &["The U.S. Senate met.", "It was in the U.S.", "The end."],
    );
    check("Open example.com or main.rs. Then go.", &["Open example.com or main.rs.", "Then go."]);
}

#[test]
fn abbreviations_can_end_sentences() {
    check("We met at 9 a.m. Then we left.", &["We met at 9 a.m.", "Then we left."]);
    check("We met at 9 a.m. Monday. Good.", &["We met at 9 a.m. Monday.", "Good."]);
    check("Tea, milk, etc. Bring some.", &["Tea, milk, etc.", "Bring some."]);
    check("I work at Acme Inc. It is old.", &["I work at Acme Inc.", "It is old."]);
    check("They live on Elm St. It is quiet.", &["They live on Elm St.", "It is quiet."]);
    check("Vitamin C. It helps.", &["Vitamin C.", "It helps."]);
    check("So do I. But not now.", &["So do I.", "But not now."]);
    check("Come in. He came on Jan. 5. Good.", &["Come in.", "He came on Jan. 5.", "Good."]);
}

#[test]
fn sentences_are_out_before_the_reply_ends() {
    let mut splitter = ClauseSplitter::default();
    let mut seen = Vec::new();
    for (i, token) in ["It was built", " in", " 1980", ".", " It", " cost $3", ".", "14", ".", " Fine", "."]
        .iter()
        .enumerate()
    {
        seen.extend(splitter.push(token).into_iter().map(|c| (i, c.text)));
    }
    seen.extend(splitter.flush().map(|c| (99, c.text)));
    let expected = [(4, "It was built in 1980."), (9, "It cost $3.14."), (99, "Fine.")];
    assert_eq!(seen, expected.map(|(i, t)| (i, t.to_string())));
}

#[test]
fn quotes_and_brackets_close_with_their_sentence() {
    check(
        r#"(Try it first.) She said, "Stop here." Then left."#,
        &["(Try it first.)", r#"She said, "Stop here.""#, "Then left."],
    );
    check(r#""Why?" she asked. “Because!” he said."#, &[r#""Why?" she asked."#, "“Because!” he said."]);
    check("**Bold end.** Next one.[^1] Third.", &["**Bold end.**", "Next one.[^1]", "Third."]);
    check("He won (see below). Good!", &["He won (see below).", "Good!"]);
}

#[test]
fn marks_ellipses_and_emoji() {
    check(
        "Really?! Yes!!! Wait... what? Well… I know.",
        &["Really?!", "Yes!!!", "Wait... what?", "Well…", "I know."],
    );
    check("Great! 🎉 Next one. 🙂", &["Great! 🎉", "Next one. 🙂"]);
    check("I really love it 🎉 Let's go", &["I really love it 🎉", "Let's go"]);
    check("I so ❤️ New York.", &["I so ❤️ New York."]);
    check("🙂 Hello there. 🎉\n\n🎉🎉", &["🙂 Hello there. 🎉"]);
    check("...", &[]);
    check("!!! Hey. --- ok", &["!!! Hey.", "--- ok"]);
    check("sure. that works. bye", &["sure.", "that works.", "bye"]);
    check("approx. five of the ft. long. ok", &["approx. five of the ft. long.", "ok"]);
}

#[test]
fn other_scripts() {
    check("你好。今天天气很好！再见", &["你好。", "今天天气很好！", "再见"]);
    check("「はい。」と言った。", &["「はい。」", "と言った。"]);
    check("هل أنت بخير؟ نعم.", &["هل أنت بخير؟", "نعم."]);
    check("यह अच्छा है। धन्यवाद।", &["यह अच्छा है।", "धन्यवाद।"]);
}

#[test]
fn the_first_clause_may_end_at_a_comma() {
    check(
        "Well, that is a good question, and I will try, as best I can, to answer.",
        &["Well, that is a good question,", "and I will try, as best I can, to answer."],
    );
    check("I can help with that, too. Just ask.", &["I can help with that, too.", "Just ask."]);
    check(
        "Sure! I can help you with that, but first eat.",
        &["Sure!", "I can help you with that,", "but first eat."],
    );
    check("It was on January 5, 2024, that we met.", &["It was on January 5, 2024,", "that we met."]);
    check("The answer to it is simple — just wait.", &["The answer to it is simple —", "just wait."]);
    check("There were 10,000 people in 1,200 cars.", &["There were 10,000 people in 1,200 cars."]);
    let patient = SplitterConfig { first_min_words: usize::MAX, ..SplitterConfig::default() };
    let mut splitter = ClauseSplitter::new(patient);
    assert!(
        splitter.push("Well, that is a good question, and I will try, as best I can, to answer").is_empty()
    );
}

#[test]
fn a_long_first_clause_ends_before_a_conjunction() {
    check(
        "You should always wash your hands before you eat because germs make you sick.",
        &["You should always wash your hands", "before you eat because germs make you sick."],
    );
    check(
        "The moon is about 384,400 kilometers away from Earth and it is our only satellite.",
        &["The moon is about 384,400 kilometers away from Earth", "and it is our only satellite."],
    );
    // Where the sentence is short, where the words belong together, and after the first clause.
    for whole in [
        "You should wash your hands before you eat your lunch.",
        "The bread and the butter and the jam are in the kitchen next door.",
        "He told us all that he knew of the old man next door.",
        "I will certainly be there at noon even if it rains all day long.",
        "The meeting (it is the one that we planned because of you) is on Friday.",
        "We sat in the house in which she had lived for a very long time.",
    ] {
        check(whole, &[whole]);
        check(&format!("That is easily said. {whole}"), &["That is easily said.", whole]);
    }
    check(
        "That is easily said. You should always wash your hands before you eat because germs make you sick.",
        &[
            "That is easily said.",
            "You should always wash your hands before you eat because germs make you sick.",
        ],
    );
    let patient = SplitterConfig { first_max_words: usize::MAX, ..SplitterConfig::default() };
    let text = "You should always wash your hands before you eat because germs make you sick";
    assert!(ClauseSplitter::new(patient).push(text).is_empty());
    // A place and its state stay together.
    check("She lives in Pasadena, CA, with two dogs.", &["She lives in Pasadena, CA,", "with two dogs."]);
}

#[test]
fn measures_labels_and_control_sequences_do_not_end_sentences() {
    check("He is 5 ft. 11 in. tall. Yes.", &["He is 5 ft. 11 in. tall.", "Yes."]);
    check("1) Boil 8 min.\n2) Fry 5 mins.\n3) Mix", &["1) Boil 8 min.", "2) Fry 5 mins.", "3) Mix"]);
    check("He weighs 200 lb. She's tall.", &["He weighs 200 lb.", "She's tall."]);
    check("5! = 120. Yes.", &["5! = 120.", "Yes."]);
    check("I. Intro\nII. End", &["I. Intro", "II. End"]);
    check("A poet (b. 1950). Yes.", &["A poet (b. 1950).", "Yes."]);
    check("It is \u{1b}[31mred. It is\u{1b}[0m good.", &["It is \u{1b}[31mred.", "It is\u{1b}[0m good."]);
    check("Jane Doe, Ph.D.\nVice President", &["Jane Doe, Ph.D.", "Vice President"]);
}

#[test]
fn long_sentences_are_cut_at_commas_and_conjunctions() {
    let config = SplitterConfig { first_min_words: usize::MAX, max_chars: 60, ..SplitterConfig::default() };
    let mut splitter = ClauseSplitter::new(config);
    let mut out = splitter.push(
        "When the morning sun came up over the hills, we all went down to the river because it was \
         hot and then we swam for many long and happy hours until the evening came.",
    );
    out.extend(splitter.flush());
    let texts: Vec<&str> = out.iter().map(|c| c.text.as_str()).collect();
    let expected = [
        "When the morning sun came up over the hills,",
        "we all went down to the river because it was hot",
        "and then we swam for many long and happy hours",
        "until the evening came.",
    ];
    assert_eq!(texts, expected);
    assert_eq!(out[0].end, ClauseEnd::Phrase);
    assert_eq!(out[3].end, ClauseEnd::Sentence);
}

#[test]
fn a_sentence_without_any_stop_is_still_spoken() {
    let words = vec!["word"; 130].join(" ");
    let clauses = split(&words);
    assert!(clauses.len() >= 3);
    assert!(clauses.iter().all(|c| c.text.chars().count() <= 260));
    let joined: Vec<&str> = clauses.iter().map(|c| c.text.as_str()).collect();
    assert_eq!(joined.join(" "), words);
    let endless = "x".repeat(3000);
    let clauses = split(&endless);
    assert_eq!(clauses.iter().map(|c| c.text.len()).sum::<usize>(), 3000);
}

#[test]
fn lists_headings_and_paragraphs() {
    let text = "## Plan\nDo this:\n\n1. Boil water.\n2. Add tea\n- [ ] wait\n* drink\n\n---\n\nThe end";
    check(text, &["## Plan", "Do this:", "1. Boil water.", "2. Add tea", "- [ ] wait", "* drink", "The end"]);
    let clauses = split(text);
    let ends: Vec<ClauseEnd> = clauses.iter().map(|c| c.end).collect();
    use ClauseEnd::*;
    assert_eq!(ends, [Sentence, Paragraph, Sentence, Sentence, Sentence, Paragraph, Phrase]);
    assert!(clauses.iter().all(|c| c.starts_line));
    check(
        "This is one line of text somebody wrapped by hand\nthen it goes on here.\nBut this is new",
        &["This is one line of text somebody wrapped by hand\nthen it goes on here.", "But this is new"],
    );
    check(
        "- An item of a list somebody has wrapped by hand\n  goes on here\n- Two",
        &["- An item of a list somebody has wrapped by hand\n  goes on here", "- Two"],
    );
    check("Roses are red\nviolets are blue", &["Roses are red", "violets are blue"]);
    check("a) Paris b) Rome", &["a) Paris b) Rome"]);
    check("First.\r\n\r\nSecond.\r\n", &["First.", "Second."]);
}

#[test]
fn blocks_become_one_clause_each() {
    let text = "Look:\n```rust\nfn main() {}\n// A. B. C.\n```\nThen:\n\n| a | b |\n|---|---|\n| 1. x | 2 |\n\nAnd\n$$\nE = mc^2. X\n$$\nDone.";
    check(text, &["Look:", "```rust", "Then:", "| a | b |", "And", "$$\nE = mc^2. X\n$$", "Done."]);
    use ClauseKind::*;
    let kinds: Vec<ClauseKind> = split(text).iter().map(|c| c.kind).collect();
    assert_eq!(kinds, [Text, Code, Text, Table, Text, Math, Text]);
    check(
        "See\n\\begin{align*}\na &= b. C \\\\\nd &= e\n\\end{align*}\nThen. And \\begin{equation} x = 1 \\end{equation} holds.",
        &[
            "See",
            "\\begin{align*}\na &= b. C \\\\\nd &= e\n\\end{align*}",
            "Then.",
            "And",
            "\\begin{equation} x = 1 \\end{equation}",
            "holds.",
        ],
    );
    check(
        "\\begin{itemize}\n\\item One\n\\end{itemize}\nSo.",
        &["\\begin{itemize}", "\\item One", "\\end{itemize}", "So."],
    );
    check("We get \\[ a = b. C = d \\] here. Then", &["We get \\[ a = b. C = d \\] here.", "Then"]);
    check("\\begin{align}\na = b\n\nIt goes on. Yes", &["\\begin{align}\na = b", "It goes on.", "Yes"]);
    check("```\n{\nlet x = 1;\n}\n```\nok", &["let x = 1;", "ok"]);
    check("```\n```\nok", &["ok"]);
    check("Use `a. B` and [a. B](c. D). Then", &["Use `a. B` and [a. B](c. D).", "Then"]);
    check("```inline code``` is fine. Yes", &["```inline code``` is fine.", "Yes"]);
    check(
        "$5 is fine. |x| is too. $$$ is dear.\n\nYes.",
        &["$5 is fine.", "|x| is too.", "$$$ is dear.", "Yes."],
    );
    check("~~~~\n~~~\nA\n~~~~\nB", &["A", "B"]);
    check("> ```py\n> x = 1\n> ```\n> ok then", &["> ```py", "> ok then"]);
}

#[test]
fn a_block_is_announced_as_it_opens() {
    let mut splitter = ClauseSplitter::default();
    assert_eq!(splitter.push("```python\n").len(), 1);
    assert!(splitter.push("print('Hi. There.')\n\nA. B\n").is_empty());
    assert_eq!(splitter.flush(), None);
    assert_eq!(splitter.push("```\nOk. G")[0].text, "Ok.");
}

#[test]
fn flush_gives_what_is_there_and_goes_on() {
    let mut splitter = ClauseSplitter::default();
    assert!(splitter.push("Hello the").is_empty());
    let clause = splitter.flush().expect("text is pending");
    assert_eq!((clause.text.as_str(), clause.end, clause.chars), ("Hello the", ClauseEnd::Phrase, 0..9));
    assert_eq!(splitter.flush(), None);
    let clauses = splitter.push("re. Yes. ");
    assert!(clauses.iter().map(|c| (c.text.as_str(), c.chars.clone())).eq([("re.", 9..12)]));
    let clause = splitter.flush().expect("text is pending");
    assert_eq!((clause.text.as_str(), clause.end), ("Yes.", ClauseEnd::Sentence));
}

/// Texts full of what splitters trip over.
fn replies() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "a",
        "The",
        "word",
        "I",
        "Dr",
        "e.g",
        "etc",
        "a.m",
        "U.S",
        "3",
        "14",
        ".",
        ".",
        ",",
        "!",
        "?",
        "…",
        "...",
        " ",
        " ",
        " ",
        "\n",
        "\n\n",
        "\"",
        "(",
        ")",
        "[",
        "](",
        "]",
        "`",
        "```",
        "~~~",
        "|",
        "$$",
        "\\[",
        "\\]",
        "\\(",
        "\\begin{align}",
        "\\end{align}",
        "}",
        "*",
        "**",
        "_",
        "#",
        "# ",
        "- ",
        "1. ",
        "> ",
        "—",
        "–",
        ";",
        ":",
        "🙂",
        "❤️",
        "。",
        "，",
        "你",
        "é",
        "ß",
        "\r\n",
        "\t",
        "'",
        "’",
        "”",
        "[^1]",
        "http://a.b/c",
        "\u{200d}",
        "\u{2028}",
    ];
    prop_oneof![
        prop::collection::vec(prop::sample::select(PIECES), 0..60).prop_map(|v| v.concat()),
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn cutting_into_fragments_changes_nothing(text in replies(), sizes in prop::collection::vec(1usize..9, 1..20)) {
        let whole = split(&text);
        let mut splitter = ClauseSplitter::default();
        let mut clauses = Vec::new();
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        for size in sizes.iter().cycle() {
            if at >= chars.len() {
                break;
            }
            let end = (at + size).min(chars.len());
            clauses.extend(splitter.push(&chars[at..end].iter().collect::<String>()));
            at = end;
        }
        clauses.extend(splitter.flush());
        prop_assert_eq!(clauses, whole);
    }

    #[test]
    fn clauses_are_where_they_say_and_never_without_a_word(text in replies()) {
        let mut end = 0;
        for clause in split(&text) {
            prop_assert!(clause.text.chars().any(char::is_alphanumeric));
            prop_assert!(clause.bytes.start >= end);
            end = clause.bytes.end;
            prop_assert_eq!(&text[clause.bytes.clone()], clause.text.as_str());
            let start = text[..clause.bytes.start].chars().count();
            prop_assert_eq!(clause.chars.clone(), start..start + clause.text.chars().count());
        }
    }

    #[test]
    fn no_word_outside_blocks_is_lost(text in "[a-zA-Z .,!?\n\"()—;:]{0,300}", max in 40usize..80) {
        let mut splitter = ClauseSplitter::new(SplitterConfig { first_min_words: 3, max_chars: max, ..SplitterConfig::default() });
        let mut clauses = splitter.push(&text);
        clauses.extend(splitter.flush());
        let letters = |s: &str| s.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        let spoken: String = clauses.iter().map(|c| letters(&c.text)).collect();
        prop_assert_eq!(spoken, letters(&text));
    }
}

#[test]
fn hostile_floods_take_linear_time_and_memory() {
    for unit in
        ["*", "[", "(", "`", "1", ".", " ", "\n", "~", "|", "$", "a.", "🙂", "](", ", ", "\"", "$$ ", "> "]
    {
        let text = unit.repeat(1_000_000 / unit.len());
        let start = std::time::Instant::now();
        let mut splitter = ClauseSplitter::default();
        for piece in text.as_bytes().chunks(1 << 12) {
            splitter.push(&String::from_utf8_lossy(piece));
        }
        splitter.flush();
        // Quadratic time would be minutes.
        assert!(start.elapsed().as_secs() < 10, "{unit:?} took {:?}", start.elapsed());
    }
}
