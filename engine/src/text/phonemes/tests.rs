//! The whole way from text to phonemes, over a small made lexicon.

use super::*;

const GOLD: &str = r#"{
 "hello": "həlˈO", "world": "wˈɜɹld", "cat": "kˈæt", "dog": "dˈɔɡ", "box": "bˈɑks", "apple": "ˈæpᵊl", "wait": "wˈAt",
 "stop": "stˈɑp", "carry": "kˈɛɹi", "happy": "hˈæpi", "star": "stˈɑɹ", "ship": "ʃˈɪp", "open": "ˈOpᵊn", "well": "wˈɛl",
 "known": "nˈOn", "NASA": "nˈæsə", "US": {"DEFAULT": "ˌʌs", "NOUN": null}, "us": "ˌʌs", "never": "nˈɛvəɹ", "book": "bˈʊk",
 "that": {"DEFAULT": "ðæt", "DT": "ðˈæt"}, "have": {"DEFAULT": "hæv", "None": "hˈæv"}, "it": "ɪt", "we": "wi",
 "read": {"DEFAULT": "ɹˈid", "VBD": "ɹˈɛd", "VBN": "ɹˈɛd", "ADJ": "ɹˈɛd"}, "record": {"DEFAULT": "ɹˈɛkəɹd", "VERB": "ɹəkˈɔɹd"},
 "i'm": "ˌIm", "'cause": "kˈʌz", "Monday": "mˈʌndˌA", "will": "wɪl", "go": "ɡˈO", "and": "ænd", "percent": "pəɹsˈɛnt", "five": "fˈIv",
 "at": "æt", "Mr.": "mˈɪstəɹ", "bass": {"DEFAULT": "bˈæs", "ADJ": "bˈAs"}, "lead": "lˈid", "pipe": "pˈIp", "they": "ðA", "is": "ɪz",
 "live": {"DEFAULT": "lˈIv", "VERB": "lˈɪv"}, "close": {"DEFAULT": "klˈOs", "NOUN": "klˈOz", "VERB": "klˈOz"}, "resume": "ɹəzˈum",
 "use": {"DEFAULT": "jˈuz", "NOUN": "jˈus"}, "present": {"DEFAULT": "pɹˈɛzᵊnt", "VERB": "pɹizˈɛnt"},
 "tear": {"DEFAULT": "tˈɪɹ", "VERB": "tˈɛɹ"}, "minute": {"ADJ": "mInˈut", "DEFAULT": "mˈɪnət"},
 "presents": {"DEFAULT": "pɹˈɛzᵊnts", "VERB": "pɹizˈɛnts"}, "alternate": {"DEFAULT": "ˈɔltəɹnət", "VERB": "ˈɔltəɹnˌAt"}
}"#;

fn phonemizer() -> Phonemizer {
    let silver = r#"{"zap": "zˈæp", "cat": "kˈɑt"}"#;
    let lexicon = Lexicon::from_json(Accent::American, GOLD.as_bytes(), silver.as_bytes()).unwrap();
    Phonemizer::new(lexicon).unwrap()
}

#[track_caller]
fn says(text: &str, want: &str) {
    assert_eq!(phonemizer().phonemize(text).to_misaki_string(), want, "{text}");
}

#[test]
fn weak_words_hear_the_next_sound() {
    says("the cat, the apple", "ðə kˈæt, ði ˈæpᵊl");
    says("to go to open it to", "tə ɡˈO tʊ ˈOpᵊn ɪt tu");
    says("a cat. A dog. an apple", "ɐ kˈæt. ɐ dˈɔɡ. ɐn ˈæpᵊl");
    says("go to a cat", "ɡˈO tʊ ɐ kˈæt");
    says("we have it, we have", "wi hæv ɪt, wi hˈæv");
    says("that cat is that", "ðˈæt kˈæt ɪz ðˈæt");
}

#[test]
fn capitals_and_initialisms() {
    says("NASA and US", "nˈæsə ænd jˌuˈɛs");
    says("FBI, CPUs, U.S. dogs", "ˌɛfbˌiˈI, sˌipˌijˈuz, jˌuˈɛs dˈɔɡz");
    says("It will STOP", "ˌɪt wɪl stˈɑp");
    says("WE WILL STOP US", "wˌi wˌɪl stˈɑp ˌʌs");
    says("monday OpenStar", "mˈʌndˌA ˈOpᵊnstˌɑɹ");
    says("Mr. Cat's", "mˈɪstəɹ kˈæts");
}

#[test]
fn endings_compounds_and_prefixes() {
    says("boxes waited waiting stopped carried happiness", "bˈɑksᵻz wˈAɾᵻd wˈAɾɪŋ stˈɑpt kˈɛɹid hˈæpinəs");
    says("starship reopen unhappily", "stˈɑɹʃˌɪp ɹˌiˈOpᵊn ˌʌnhˈæpili");
    says("well-known dogs' cat's", "wˌɛlnˈOn dˈɔɡz kˈæts");
    says("stoooop 'cause", "stˈɑp kˈʌz");
}

#[test]
fn digits_are_never_lost() {
    says("5 42 3.5", "fˈIv fˈɔɹ tˈu θɹˈi pˌYnt fˈIv");
    says("B2B", "bˈi tˈu bˈi");
    says("5%", "fˈIv pəɹsˈɛnt");
}

#[test]
fn homographs_hear_their_neighbours() {
    says("we will record that record", "wi wɪl ɹəkˈɔɹd ðˈæt ɹˈɛkəɹd");
    says("we have read it and will read", "wi hæv ɹˈɛd ɪt ænd wɪl ɹˈid");
    says("a lead pipe and a bass", "ɐ lˈɛd pˈIp ænd ɐ bˈAs");
}

#[test]
fn homographs_in_sentences_of_an_assistant() {
    let phonemizer = phonemizer();
    for (sentence, want) in [
        ("I watched it [live] on TV.", "lˈIv"),
        ("We saw the band [live] last summer.", "lˈIv"),
        ("She streams [live] every Friday.", "lˈIv"),
        ("Is the show [live]?", "lˈIv"),
        ("I saw how people [live].", "lˈɪv"),
        ("I watched people who [live] there.", "lˈɪv"),
        ("They [live] in Berlin.", "lˈɪv"),
        ("I'd like to [live] near the sea.", "lˈɪv"),
        ("It's a great [read].", "ɹˈid"),
        ("If you [read] the docs, you'll see.", "ɹˈid"),
        ("Make sure you [read] the label.", "ɹˈid"),
        ("Have you [read] the book?", "ɹˈɛd"),
        ("According to what I [read], yes.", "ɹˈɛd"),
        ("Exposure to [lead] is harmful.", "lˈɛd"),
        ("Avoid [lead] in drinking water.", "lˈɛd"),
        ("This could [lead] to problems.", "lˈid"),
        ("She took the [lead].", "lˈid"),
        ("Each [use] costs a dollar.", "jˈus"),
        ("The intended [use] matters.", "jˈus"),
        ("[Use] two cups of flour.", "jˈuz"),
        ("Keep it [close] at hand.", "klˈOs"),
        ("[Close] all other programs.", "klˈOz"),
        ("[Tear] along the line.", "tˈɛɹ"),
        ("An ACL [tear] takes months.", "tˈɛɹ"),
        ("A [tear] ran down her cheek.", "tˈɪɹ"),
        ("The differences are [minute].", "mInˈut"),
        ("Wait a [minute].", "mˈɪnət"),
        ("This [presents] a problem.", "pɹizˈɛnts"),
        ("The [presents] are wrapped.", "pɹˈɛzᵊnts"),
        ("[Alternate] between the two.", "ˈɔltəɹnˌAt"),
        ("An [alternate] route is open.", "ˈɔltəɹnət"),
        ("Attach your [résumé] here.", "ɹˈɛzəmˌA"),
        ("Let's [resume] the meeting.", "ɹəzˈum"),
        ("We flew to [Nice] in May.", "nˈis"),
    ] {
        let at = sentence.find('[').unwrap();
        let said = phonemizer.phonemize(&sentence.replace(['[', ']'], ""));
        let token = said.tokens.iter().find(|t| t.text.start == at).unwrap();
        // A capital is stressed in its own way.
        let phonemes = token.phonemes.replace('ˌ', "ˈ");
        assert_eq!(phonemes, want.replace('ˌ', "ˈ"), "{sentence}");
    }
}

#[test]
fn marks_and_spaces_survive() {
    says("\"Hello\" (world)… go — go!", "“həlˈO” (wˈɜɹld)… ɡˈO — ɡˈO!");
    says("你好 hello", "həlˈO");
    says("", "");
    says("🙂 ☃ *", "");
}

#[test]
fn endless_words_end() {
    let phonemizer = phonemizer();
    for (part, count) in
        [("re", 30), ("es", 30), ("'s", 2_000), ("-a", 1_000), ("a.", 2_000), ("1a", 1_000), ("x", 1_000)]
    {
        let word = format!("un{}{}", part.repeat(count), "ed".repeat(15));
        let said = phonemizer.phonemize(&format!("{word} cat"));
        assert!(said.to_misaki_string().ends_with("kˈæt"), "{part}");
    }
    let mixed = format!("{}{}", "re".repeat(15), "ses".repeat(15));
    assert!(phonemizer.phonemize(&mixed).to_misaki_string().contains('ˈ'));
}

#[test]
fn sources_say_where_phonemes_are_from() {
    let mut phonemizer = phonemizer();
    phonemizer.set_user_words(UserWords::parse("blorp: cat dog\nFoo = fˈu", Accent::American).unwrap());
    let text = "blorp Foo's cat zap boxes FBI flimmer, 你";
    let sources: Vec<Source> = phonemizer.phonemize(text).tokens.iter().map(|t| t.source).collect();
    use Source::*;
    assert_eq!(sources, [User, User, Gold, Silver, Rule, Spelled, LetterToSound, Mark, Skipped]);
    let said = phonemizer.phonemize(text).to_kokoro_string();
    assert!(said.starts_with("kˈæt dˈɔɡ fˈuz kˈæt zˈæp"), "{said}");
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

        #[test]
        fn any_text_is_spoken_in_kokoro_letters(text in "[a-zA-Z0-9 ,.'’\"\\-/—éß你🙂\n]{0,80}") {
            static PHONEMIZER: std::sync::LazyLock<Phonemizer> = std::sync::LazyLock::new(phonemizer);
            let said = PHONEMIZER.phonemize(&text);
            for token in &said.tokens {
                prop_assert!(text.get(token.text.clone()).is_some());
            }
            let allowed = |c: char| Accent::American.has(c) || " ;:,.!?—…()“”".contains(c);
            prop_assert!(said.to_kokoro_string().chars().all(allowed), "{}", said.to_kokoro_string());
        }
    }
}
