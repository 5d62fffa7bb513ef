//! Endings by rule: how -s, -ed, -ing and the like sound after a stem, and which stems a spelling can have.
//!
//! English spelling drops e ("baked"), doubles consonants ("stopped") and turns y into i ("carried"); English sound
//! voices endings after voiced stems, puts a vowel between like consonants, and American English flaps a t between
//! vowels ("waiting" as "wayding").

use super::alphabet::{Accent, is_stressable};

/// Whether an American t after this sound, before an unstressed vowel, is a flap.
fn flaps_after(phoneme: char) -> bool {
    "AIOWYiuæɑəɛɪɹʊʌ".contains(phoneme)
}

/// The vowel between like consonants ("boxes", "wanted").
fn link(accent: Accent) -> char {
    match accent {
        Accent::American => 'ᵻ',
        Accent::British => 'ɪ',
    }
}

/// Plural, possessive or third person.
pub(super) fn s(stem: &str, accent: Accent) -> String {
    match stem.chars().last() {
        Some('p' | 't' | 'k' | 'f' | 'θ' | 'ʔ' | 'T') => format!("{stem}s"),
        Some('s' | 'z' | 'ʃ' | 'ʒ' | 'ʧ' | 'ʤ') => format!("{stem}{}z", link(accent)),
        _ => format!("{stem}z"),
    }
}

/// A stem before a vowel: an American t is flapped, a British r is heard again.
fn before_vowel(stem: &str, spelled_r: bool, accent: Accent) -> String {
    let mut sounds = stem.chars().rev();
    match (accent, sounds.next(), sounds.next()) {
        (Accent::American, Some('t'), Some(before)) if flaps_after(before) => {
            format!("{}ɾ", &stem[..stem.len() - 1])
        }
        (Accent::British, Some('ə' | 'ː'), _) if spelled_r => format!("{stem}ɹ"),
        _ => stem.to_owned(),
    }
}

/// Past tense.
pub(super) fn ed(stem: &str, accent: Accent) -> String {
    match stem.chars().last() {
        Some('p' | 'k' | 'f' | 'θ' | 'ʃ' | 's' | 'ʧ') => format!("{stem}t"),
        Some('d') => format!("{stem}{}d", link(accent)),
        Some('t') => format!("{}{}d", before_vowel(stem, false, accent), link(accent)),
        _ => format!("{stem}d"),
    }
}

/// An ending that a rule can add to a stem.
pub(super) struct Suffix {
    /// Spelling.
    pub(super) text: &'static str,
    american: &'static str,
    british: &'static str,
    /// Whether the spelling of the stem changes before it as before -ed ("baker", "runner", "happier").
    vowel: bool,
}

/// Endings that leave the stress of the stem alone, longest spelling first where one ends another.
pub(super) const SUFFIXES: &[Suffix] = &[
    Suffix { text: "ing", american: "ɪŋ", british: "ɪŋ", vowel: true },
    Suffix { text: "iness", american: "nəs", british: "nəs", vowel: false },
    Suffix { text: "fulness", american: "fᵊlnəs", british: "fʊlnəs", vowel: false },
    Suffix { text: "lessness", american: "ləsnəs", british: "ləsnəs", vowel: false },
    Suffix { text: "ness", american: "nəs", british: "nəs", vowel: false },
    Suffix { text: "less", american: "ləs", british: "ləs", vowel: false },
    Suffix { text: "fully", american: "fəli", british: "fəli", vowel: false },
    Suffix { text: "ful", american: "fᵊl", british: "fʊl", vowel: false },
    Suffix { text: "ically", american: "ɪkli", british: "ɪkli", vowel: false },
    Suffix { text: "ably", american: "əbli", british: "əbli", vowel: true },
    Suffix { text: "able", american: "əbᵊl", british: "əbᵊl", vowel: true },
    Suffix { text: "ly", american: "li", british: "li", vowel: false },
    Suffix { text: "ish", american: "ɪʃ", british: "ɪʃ", vowel: true },
    Suffix { text: "like", american: "lˌIk", british: "lIk", vowel: false },
    Suffix { text: "wise", american: "wˌIz", british: "wIz", vowel: false },
    Suffix { text: "ship", american: "ʃˌɪp", british: "ʃɪp", vowel: false },
    Suffix { text: "est", american: "ᵻst", british: "ɪst", vowel: true },
    Suffix { text: "er", american: "əɹ", british: "ə", vowel: true },
];

impl Suffix {
    /// The stem's sound with this ending.
    pub(super) fn join(&self, stem: &str, spelled_r: bool, accent: Accent) -> String {
        let sound = match accent {
            Accent::American => self.american,
            Accent::British => self.british,
        };
        // "gently": one l of "gentle" is enough.
        let stem = if self.text == "ly" {
            stem.strip_suffix('l').map(|s| s.trim_end_matches('ᵊ')).unwrap_or(stem)
        } else {
            stem
        };
        if sound.starts_with(is_stressable) {
            format!("{}{sound}", before_vowel(stem, spelled_r, accent))
        } else {
            format!("{stem}{sound}")
        }
    }

    /// Spellings of the stem that the ending may have been added to, likeliest first.
    pub(super) fn stems(&self, word: &str) -> Vec<String> {
        let Some(rest) = word.strip_suffix(self.text).filter(|r| r.len() >= 2) else { return Vec::new() };
        match self.text {
            "iness" => vec![format!("{rest}y")],
            "ically" => vec![format!("{rest}ic"), format!("{rest}ical")],
            "ly" => {
                let mut out = vec![rest.to_owned()];
                if let Some(stem) = rest.strip_suffix('i') {
                    out.push(format!("{stem}y"));
                }
                out.push(format!("{rest}le"));
                out.push(format!("{rest}l"));
                out
            }
            _ if self.vowel => vowel_stems(rest),
            _ => match rest.strip_suffix('i') {
                Some(stem) => vec![rest.to_owned(), format!("{stem}y")],
                None => vec![rest.to_owned()],
            },
        }
    }
}

/// Stems before an ending that begins with a vowel: "walk", "bak(e)", "stop(p)", "carr(y)".
fn vowel_stems(rest: &str) -> Vec<String> {
    let mut out = vec![rest.to_owned(), format!("{rest}e")];
    let mut letters = rest.chars().rev();
    if let (Some(a), Some(b)) = (letters.next(), letters.next()) {
        if a == b && "bcdgklmnprstvxz".contains(a) {
            // "stopped" before "stoppe"; "telling" stays "tell".
            out.insert(1, rest[..rest.len() - a.len_utf8()].to_owned());
        }
        if a == 'i' && b != 'i' {
            out.push(format!("{}y", &rest[..rest.len() - 1]));
        }
        if a == 'k' && b == 'c' {
            out.push(rest[..rest.len() - 1].to_owned());
        }
    }
    out
}

/// Stems of a plural or third person: "cat", "box", "cit(y)".
pub(super) fn s_stems(word: &str) -> Vec<String> {
    let Some(rest) = word.strip_suffix('s').filter(|r| r.len() >= 2 && !r.ends_with('s')) else {
        return Vec::new();
    };
    let mut out = vec![rest.to_owned()];
    if let Some(stem) = rest.strip_suffix('e').filter(|s| s.len() >= 2) {
        if let Some(stem) = stem.strip_suffix('i') {
            out.push(format!("{stem}y"));
        } else if stem.ends_with(['s', 'x', 'z', 'h', 'o']) {
            out.push(stem.to_owned());
        }
    }
    out
}

/// Stems of a past tense.
pub(super) fn ed_stems(word: &str) -> Vec<String> {
    match word.strip_suffix("ed").filter(|r| r.len() >= 2 && !r.ends_with('e')) {
        Some(rest) => vowel_stems(rest),
        None => Vec::new(),
    }
}

/// Prefixes that leave the word after them as it is: spelling, American, British.
pub(super) const PREFIXES: &[(&str, &str, &str)] = &[
    ("counter", "kˌWntəɹ", "kˌWntə"),
    ("pseudo", "sˌudO", "sjˌuːdQ"),
    ("hyper", "hˌIpəɹ", "hˌIpə"),
    ("inter", "ˌɪntəɹ", "ˌɪntə"),
    ("micro", "mˌIkɹO", "mˌIkɹQ"),
    ("multi", "mˌʌlti", "mˌʌlti"),
    ("super", "sˌupəɹ", "sˌuːpə"),
    ("ultra", "ˌʌltɹə", "ˌʌltɹə"),
    ("under", "ˌʌndəɹ", "ˌʌndə"),
    ("cyber", "sˌIbəɹ", "sˌIbə"),
    ("anti", "ˌænti", "ˌanti"),
    ("auto", "ˌɔɾO", "ˌɔːtQ"),
    ("fore", "fˌɔɹ", "fˌɔː"),
    ("mega", "mˌɛɡə", "mˌɛɡə"),
    ("meta", "mˌɛɾə", "mˌɛtə"),
    ("mini", "mˌɪni", "mˌɪni"),
    ("over", "ˌOvəɹ", "ˌQvə"),
    ("post", "pˌOst", "pˌQst"),
    ("semi", "sˌɛmi", "sˌɛmi"),
    ("dis", "dɪs", "dɪs"),
    ("geo", "ʤˌiO", "ʤˌiːQ"),
    ("mid", "mˌɪd", "mˌɪd"),
    ("mis", "mˌɪs", "mɪs"),
    ("non", "nˌɑn", "nˌɒn"),
    ("out", "ˌWt", "ˌWt"),
    ("pre", "pɹˌi", "pɹˌiː"),
    ("sub", "sˌʌb", "sˌʌb"),
    ("bio", "bˌIO", "bˌIQ"),
    ("neo", "nˌiO", "nˌiːQ"),
    ("co", "kˌO", "kˌQ"),
    ("de", "dˌi", "dˌiː"),
    ("re", "ɹˌi", "ɹˌiː"),
    ("un", "ˌʌn", "ˌʌn"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use Accent::{American, British};

    #[test]
    fn endings_follow_the_stem() {
        assert_eq!(s("kˈæt", American), "kˈæts");
        assert_eq!(s("dˈɔɡ", American), "dˈɔɡz");
        assert_eq!(s("bˈɑks", American), "bˈɑksᵻz");
        assert_eq!(s("bˈɒks", British), "bˈɒksɪz");
        assert_eq!(ed("wˈɔk", American), "wˈɔkt");
        assert_eq!(ed("wˈAt", American), "wˈAɾᵻd");
        assert_eq!(ed("wˈAt", British), "wˈAtɪd");
        assert_eq!(ed("wˈɑnt", American), "wˈɑntᵻd");
        assert_eq!(ed("plˈA", American), "plˈAd");
    }

    fn suffix(text: &str) -> &'static Suffix {
        SUFFIXES.iter().find(|s| s.text == text).unwrap()
    }

    #[test]
    fn suffixes_flap_link_and_merge() {
        assert_eq!(suffix("ing").join("wˈAt", false, American), "wˈAɾɪŋ");
        assert_eq!(suffix("ing").join("stˈɜː", true, British), "stˈɜːɹɪŋ");
        assert_eq!(suffix("er").join("hˈɑt", false, American), "hˈɑɾəɹ");
        assert_eq!(suffix("ly").join("ʤˈɛntᵊl", false, American), "ʤˈɛntli");
        assert_eq!(suffix("ly").join("kwˈɪk", false, American), "kwˈɪkli");
    }

    #[test]
    fn stems_undo_the_spelling() {
        assert!(ed_stems("stopped").contains(&"stop".to_owned()));
        assert!(ed_stems("baked").contains(&"bake".to_owned()));
        assert!(ed_stems("carried").contains(&"carry".to_owned()));
        assert_eq!(ed_stems("need"), Vec::<String>::new());
        assert!(suffix("ing").stems("panicking").contains(&"panic".to_owned()));
        assert_eq!(s_stems("boxes"), ["boxe", "box"]);
        assert_eq!(s_stems("cities"), ["citie", "city"]);
        assert_eq!(s_stems("glass"), Vec::<String>::new());
        assert!(suffix("ly").stems("gently").contains(&"gentle".to_owned()));
    }
}
