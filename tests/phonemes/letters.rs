//! Errors of the letter-to-sound model and of espeak-ng on the words held out from training.

use std::error::Error;
use std::time::Instant;

use repartee_engine::text::phonemes::{Accent, LetterModel, Lexicon, Tag};
use sha2::{Digest, Sha256};

/// One held-out word.
pub(crate) struct HeldOut {
    /// Lower-case spelling.
    pub(crate) word: String,
    /// The lexicon's phonemes.
    pub(crate) phonemes: String,
    gold: bool,
    name: bool,
}

/// The same choice as in `train_letters.py`: the first two bytes of the spelling's SHA-256 divide by 50.
pub(crate) fn is_held_out(word: &str) -> bool {
    let hash = Sha256::digest(word.as_bytes());
    (u16::from(hash[0]) * 256 + u16::from(hash[1])).is_multiple_of(50)
}

/// The held-out words of a lexicon, one per lower-case spelling, plain spelling before capitalised.
pub(crate) fn held_out(lexicon: &Lexicon) -> Vec<HeldOut> {
    let mut entries: Vec<_> = lexicon.iter().collect();
    entries.sort_by_key(|(key, entry)| (!entry.gold, *key != key.to_lowercase(), *key));
    let mut seen = std::collections::HashSet::new();
    let mut out = Vec::new();
    for (key, entry) in entries {
        let word = key.to_lowercase();
        let Some(phonemes) = entry.reading(Tag::Default) else { continue };
        let plain = word.bytes().all(|b| b.is_ascii_lowercase() || b == b'\'') && !word.starts_with('\'');
        if !plain || key[1..] != word[1..] || !(2..=28).contains(&word.len()) || !seen.insert(word.clone()) {
            continue;
        }
        if is_held_out(&word) {
            out.push(HeldOut { name: key != word, word, phonemes, gold: entry.gold });
        }
    }
    out
}

/// Levenshtein distance.
pub(crate) fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let cost = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

fn unstressed(phonemes: &str) -> Vec<char> {
    phonemes.chars().filter(|c| !"ˈˌ".contains(*c)).collect()
}

/// Spellings of one sound that a speaker would not tell apart, made one: what is left is a different sound.
fn merged(phonemes: &str) -> Vec<char> {
    unstressed(phonemes)
        .into_iter()
        .filter(|c| *c != 'ː')
        .map(|c| match c {
            'ɾ' | 'T' | 'ʔ' => 't',
            'ᵻ' | 'ᵊ' | 'ɪ' | 'ɐ' => 'ə',
            'ɑ' | 'ɒ' => 'ɔ',
            other => other,
        })
        .collect()
}

fn row(name: &str, words: &[&HeldOut], got: &dyn Fn(usize) -> String) {
    let forms: [&dyn Fn(&str) -> Vec<char>; 3] = [&|p| p.chars().collect(), &unstressed, &merged];
    let mut line = format!("{name:<28}{:>6}", words.len());
    for form in forms {
        let (mut wrong, mut errors, mut total) = (0, 0, 0);
        for (i, w) in words.iter().enumerate() {
            let (want, got) = (form(&w.phonemes), form(&got(i)));
            wrong += usize::from(want != got);
            errors += distance(&got, &want);
            total += want.len();
        }
        line += &format!(
            "{:>10.1}{:>7.1}",
            100.0 * wrong as f64 / words.len().max(1) as f64,
            100.0 * errors as f64 / total.max(1) as f64
        );
    }
    println!("{line}");
}

/// Prints the table.
pub(crate) fn report(lexicon: &Lexicon) -> Result<(), Box<dyn Error>> {
    let accent: Accent = lexicon.accent();
    let words = held_out(lexicon);
    let model = LetterModel::built_in()?;
    let start = Instant::now();
    let ours: Vec<String> =
        words.iter().map(|w| model.phonemes(&w.word, accent).unwrap_or_default()).collect();
    let ms = start.elapsed().as_secs_f64() * 1e3 / words.len().max(1) as f64;
    let spellings: Vec<&str> = words.iter().map(|w| w.word.as_str()).collect();
    let espeak = super::espeak::read(&spellings, accent)?;
    println!("{accent} accent; per cent of words wrong, per cent of phonemes wrong; {ms:.2} ms a word");
    println!("{:<28}{:>6}{:>17}{:>17}{:>17}", "", "words", "all marks", "no stress", "sounds merged");
    for (group, keep) in
        [("all", (|_| true) as fn(&HeldOut) -> bool), ("gold", |w| w.gold), ("names", |w| w.name)]
    {
        let chosen: Vec<usize> = (0..words.len()).filter(|&i| keep(&words[i])).collect();
        let part: Vec<&HeldOut> = chosen.iter().map(|&i| &words[i]).collect();
        row(&format!("{group}: letter-to-sound"), &part, &|i| ours[chosen[i]].clone());
        row(&format!("{group}: espeak-ng"), &part, &|i| espeak[chosen[i]].clone());
    }
    Ok(())
}
