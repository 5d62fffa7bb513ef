//! Phonemes of whole sentences beside misaki's, each difference judged.
//!
//! `references/misaki_judged.tsv` lists every word that differs: accent, word, ours, misaki's, who is right (`ours`,
//! `misaki`, `either` where both are said, or `neither`), and why. A difference that is not listed fails, as does a listed one
//! that is no longer there.

use std::collections::BTreeMap;

use repartee_engine::text::phonemes::{Accent, Lexicon, Phonemizer};
use repartee_tests::references::Reference;

/// Words of which misaki's reading is right and ours is not, in a hundred words of the sentences.
const MOST_WRONG_PERCENT: f64 = 0.1;

const SENTENCES: &str = include_str!("../references/misaki_sentences.txt");
const JUDGED: &str = include_str!("../references/misaki_judged.tsv");

fn phonemizer(reference: &Reference, name: &str, accent: Accent) -> Phonemizer {
    let [gold, silver] = ["gold", "silver"].map(|rank| {
        let file = format!("{name}_{rank}.json");
        std::fs::read(reference.model_file(&format!("misaki-en/{file}"), "misaki-en", &file)).unwrap()
    });
    Phonemizer::new(Lexicon::from_json(accent, &gold, &silver).unwrap()).unwrap()
}

/// A word without the marks around it.
fn bare(word: &str) -> &str {
    word.trim_matches([';', ':', ',', '.', '!', '?', '—', '…', '(', ')', '“', '”', '"'])
}

/// Words that differ, as (word, ours, misaki's); the whole sentence where the words do not pair up.
fn differences<'a>(sentence: &'a str, ours: &'a str, theirs: &'a str) -> Vec<[&'a str; 3]> {
    let words = |text: &'a str| text.split_whitespace().collect::<Vec<_>>();
    let (spelled, said, wanted) = (words(sentence), words(ours), words(theirs));
    if said.len() != wanted.len() || spelled.len() != wanted.len() {
        return if ours == theirs { Vec::new() } else { vec![[sentence, ours, theirs]] };
    }
    let mut out = Vec::new();
    for ((word, ours), theirs) in spelled.into_iter().zip(said).zip(wanted) {
        // For words that no lexicon has.
        if ours == theirs || theirs.contains('❓') {
            continue;
        }
        let parts =
            if bare(ours) == bare(theirs) { [word, ours, theirs] } else { [word, ours, theirs].map(bare) };
        out.push(parts);
    }
    out
}

#[test]
fn sentences_sound_as_misaki_says_but_for_judged_differences() {
    let reference = Reference::load("misaki.json");
    let mut judged: BTreeMap<[String; 4], (&str, usize)> = BTreeMap::new();
    for line in JUDGED.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [accent, word, ours, theirs, verdict, why] = fields[..] else { panic!("six fields: {line}") };
        assert!(["ours", "misaki", "either", "neither"].contains(&verdict) && !why.is_empty(), "{line}");
        assert!(
            judged.insert([accent, word, ours, theirs].map(String::from), (verdict, 0)).is_none(),
            "twice: {line}"
        );
    }
    let sentences: Vec<&str> = SENTENCES.lines().collect();
    assert!(sentences.len() >= 300);
    let (mut words, mut unlisted) = (0, Vec::new());
    for (name, accent) in [("us", Accent::American), ("gb", Accent::British)] {
        let phonemizer = phonemizer(&reference, name, accent);
        let theirs = reference.content[name].as_array().unwrap();
        assert_eq!(theirs.len(), sentences.len());
        for (sentence, theirs) in sentences.iter().zip(theirs) {
            // misaki writes Kokoro's letters by default.
            let ours = phonemizer.phonemize(sentence).to_kokoro_string();
            words += sentence.split_whitespace().count();
            for [word, ours, theirs] in differences(sentence, &ours, theirs.as_str().unwrap()) {
                match judged.get_mut(&[name, word, ours, theirs].map(String::from)) {
                    Some((_, count)) => *count += 1,
                    None => unlisted.push(format!("{name}\t{word}\t{ours}\t{theirs}\t\t{sentence}")),
                }
            }
        }
    }
    assert!(unlisted.is_empty(), "differences that are not judged:\n{}", unlisted.join("\n"));
    let gone: Vec<_> = judged.iter().filter(|(_, (_, count))| *count == 0).map(|(key, _)| key).collect();
    assert!(gone.is_empty(), "differences that are there no more: {gone:?}");
    let wrong: usize =
        judged.values().filter(|(verdict, _)| *verdict == "misaki").map(|(_, count)| count).sum();
    let percent = 100.0 * wrong as f64 / words as f64;
    assert!(percent <= MOST_WRONG_PERCENT, "{wrong} of {words} words are wrong where misaki is right");
}
