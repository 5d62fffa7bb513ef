//! The phoneme alphabet: what each accent may contain, vowels and consonants, and stress.
//!
//! The alphabet is misaki's (`EN_PHONES.md` of that project): IPA with one letter per diphthong (`A` as in
//! "hey", `I` "high", `W` "how", `Y` "soy", `O` American and `Q` British "oh") and per affricate (`ʤ`, `ʧ`).
//! A stress mark stands directly before its vowel, not before the syllable.

use std::fmt;

/// Which English is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accent {
    /// General American.
    American,
    /// Southern British.
    British,
}

impl fmt::Display for Accent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::American => "American",
            Self::British => "British",
        })
    }
}

/// The mark before a vowel with primary stress.
pub(super) const PRIMARY: char = 'ˈ';
/// The mark before a vowel with secondary stress.
pub(super) const SECONDARY: char = 'ˌ';

/// Every phoneme that a lexicon may hold; the position is the code that the lexicon stores.
pub(super) const ALL: &[char] = &[
    'A', 'I', 'O', 'Q', 'W', 'Y', 'T', 'a', 'b', 'd', 'f', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'p', 's', 't',
    'u', 'v', 'w', 'z', 'æ', 'ð', 'ŋ', 'ɐ', 'ɑ', 'ɒ', 'ɔ', 'ə', 'ɛ', 'ɜ', 'ɡ', 'ɪ', 'ɹ', 'ɾ', 'ʃ', 'ʊ', 'ʌ',
    'ʒ', 'ʔ', 'ʤ', 'ʧ', 'ˈ', 'ˌ', 'ː', 'θ', 'ᵊ', 'ᵻ',
];

/// The code of each phoneme by its low 10 bits (no two share them), 255 elsewhere.
const CODES: [u8; 1024] = {
    let mut codes = [u8::MAX; 1024];
    let mut i = 0;
    while i < ALL.len() {
        let at = ALL[i] as usize % 1024;
        assert!(codes[at] == u8::MAX, "two phonemes share their low bits");
        codes[at] = i as u8;
        i += 1;
    }
    codes
};

/// A phoneme's position in [`ALL`].
pub(super) fn code(phoneme: char) -> Option<u8> {
    let code = CODES[phoneme as usize % 1024];
    (ALL.get(usize::from(code)) == Some(&phoneme)).then_some(code)
}

const AMERICAN_ONLY: &str = "Oæɾᵻʔ";
const BRITISH_ONLY: &str = "Qaɒː";

impl Accent {
    /// Whether `phoneme` is part of this accent's alphabet. `T` and `t` may be written for `ɾ` and `ʔ`.
    pub fn has(self, phoneme: char) -> bool {
        let foreign = match self {
            Self::American => BRITISH_ONLY,
            Self::British => AMERICAN_ONLY,
        };
        code(phoneme).is_some() && !foreign.contains(phoneme)
    }

    /// This accent's alphabet in one string, for messages.
    pub fn alphabet(self) -> String {
        ALL.iter().filter(|&&c| self.has(c)).collect()
    }
}

/// Whether a phoneme is a vowel that can carry stress.
pub(super) fn is_stressable(phoneme: char) -> bool {
    "AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻ".contains(phoneme)
}

/// Whether a word that begins with this phoneme takes "an" and "thee".
pub(super) fn is_vowel(phoneme: char) -> bool {
    is_stressable(phoneme) || "ɐᵊ".contains(phoneme)
}

/// Whether a phoneme is a consonant.
pub(super) fn is_consonant(phoneme: char) -> bool {
    "bdfhjklmnpstvwzðŋɡɹɾʃʒʤʧθTʔ".contains(phoneme)
}

/// The letter that Kokoro was trained with: misaki's flap is written `T`, its glottal stop `t`.
pub fn kokoro_letter(phoneme: char) -> char {
    match phoneme {
        'ɾ' => 'T',
        'ʔ' => 't',
        other => other,
    }
}

/// Removes secondary stress and turns primary into secondary: a word that leans on its neighbour.
pub(super) fn demote(phonemes: &str) -> String {
    if !phonemes.contains(PRIMARY) {
        return phonemes.to_owned();
    }
    phonemes.chars().filter(|&c| c != SECONDARY).map(|c| if c == PRIMARY { SECONDARY } else { c }).collect()
}

/// Puts `mark` before the first vowel if no vowel is stressed yet.
pub(super) fn stress_first_vowel(phonemes: &str, mark: char) -> String {
    if phonemes.contains([PRIMARY, SECONDARY]) {
        return phonemes.to_owned();
    }
    match phonemes.char_indices().find(|&(_, c)| is_stressable(c)) {
        Some((at, _)) => format!("{}{mark}{}", &phonemes[..at], &phonemes[at..]),
        None => phonemes.to_owned(),
    }
}

/// Gives primary stress to a word that has none.
pub(super) fn emphasize(phonemes: &str) -> String {
    if phonemes.contains(PRIMARY) {
        phonemes.to_owned()
    } else if phonemes.contains(SECONDARY) {
        phonemes.replace(SECONDARY, "ˈ")
    } else {
        stress_first_vowel(phonemes, PRIMARY)
    }
}

/// How heavy a word is when stress is shared out inside a compound: long vowels and affricates count twice.
pub(super) fn weight(phonemes: &str) -> usize {
    phonemes.chars().map(|c| if "AIOQWYʤʧ".contains(c) { 2 } else { 1 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alphabets_differ_where_the_accents_do() {
        assert!(Accent::American.has('æ') && !Accent::American.has('ɒ'));
        assert!(Accent::British.has('ɒ') && !Accent::British.has('æ'));
        assert!(!Accent::American.has('r') && !Accent::British.has('g'));
        assert_eq!(kokoro_letter('ɾ'), 'T');
    }

    #[test]
    fn stress_moves_as_told() {
        assert_eq!(demote("ˌOkˈA"), "OkˌA");
        assert_eq!(demote("ɪts"), "ɪts");
        assert_eq!(stress_first_vowel("wɪð", SECONDARY), "wˌɪð");
        assert_eq!(stress_first_vowel("hmm", SECONDARY), "hmm");
        assert_eq!(emphasize("ˌI"), "ˈI");
        assert_eq!(emphasize("nɑt"), "nˈɑt");
    }
}
