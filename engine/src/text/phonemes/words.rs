//! One word to phonemes: the lexicon first, then rules, then spelling out, then letter to sound.

use super::alphabet::{Accent, PRIMARY, SECONDARY, demote, emphasize, is_vowel, stress_first_vowel, weight};
use super::inflect::{self, PREFIXES, SUFFIXES};
use super::letters::{LetterModel, fold};
use super::lexicon::{Lexicon, Tag};
use super::{Source, UserWords};

/// Rules that may be applied inside one another ("un-", then "-ed", then "-s"). Every level tries all of them, so
/// that without a bound a word made of endings would take time without end.
const RULES_DEEP: usize = 3;

/// Letters of the longest word that rules take apart: they try every place, which a page without a space has many of.
const LONGEST: usize = 60;

/// What a word is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) tag: Tag,
    /// The sentence is all in capitals, so that they say nothing about the word.
    pub(super) shouted: bool,
    /// Looked up in lower case even if the lexicon knows the capital form.
    pub(super) lower: bool,
}

/// A word's sound and where it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sound {
    pub(super) phonemes: String,
    pub(super) source: Source,
}

fn sound(phonemes: String, source: Source) -> Option<Sound> {
    Some(Sound { phonemes, source })
}

/// Letter names, American and British, for lexicons that lack them.
const LETTER_NAMES: [(&str, &str); 26] = [
    ("ˈA", "ˈA"),
    ("bˈi", "bˈiː"),
    ("sˈi", "sˈiː"),
    ("dˈi", "dˈiː"),
    ("ˈi", "ˈiː"),
    ("ˈɛf", "ˈɛf"),
    ("ʤˈi", "ʤˈiː"),
    ("ˈAʧ", "ˈAʧ"),
    ("ˈI", "ˈI"),
    ("ʤˈA", "ʤˈA"),
    ("kˈA", "kˈA"),
    ("ˈɛl", "ˈɛl"),
    ("ˈɛm", "ˈɛm"),
    ("ˈɛn", "ˈɛn"),
    ("ˈO", "ˈQ"),
    ("pˈi", "pˈiː"),
    ("kjˈu", "kjˈuː"),
    ("ˈɑɹ", "ˈɑː"),
    ("ˈɛs", "ˈɛs"),
    ("tˈi", "tˈiː"),
    ("jˈu", "jˈuː"),
    ("vˈi", "vˈiː"),
    ("dˈʌbᵊlju", "dˈʌbᵊljuː"),
    ("ˈɛks", "ˈɛks"),
    ("wˈI", "wˈI"),
    ("zˈi", "zˈɛd"),
];

/// Digit names, American and British.
const DIGIT_NAMES: [(&str, &str); 10] = [
    ("zˈɪɹO", "zˈɪəɹQ"),
    ("wˈʌn", "wˈʌn"),
    ("tˈu", "tˈuː"),
    ("θɹˈi", "θɹˈiː"),
    ("fˈɔɹ", "fˈɔː"),
    ("fˈIv", "fˈIv"),
    ("sˈɪks", "sˈɪks"),
    ("sˈɛvən", "sˈɛvᵊn"),
    ("ˈAt", "ˈAt"),
    ("nˈIn", "nˈIn"),
];

fn pick(names: (&'static str, &'static str), accent: Accent) -> &'static str {
    match accent {
        Accent::American => names.0,
        Accent::British => names.1,
    }
}

fn is_upper(word: &str) -> bool {
    word.chars().any(char::is_uppercase) && !word.chars().any(char::is_lowercase)
}

fn capitalized(lower: &str) -> String {
    let mut chars = lower.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Spells a run of letters: each letter leans on the last.
pub(super) fn spell(letters: &str, accent: Accent) -> String {
    let names: String = letters
        .bytes()
        .filter(u8::is_ascii_alphabetic)
        .map(|b| demote(pick(LETTER_NAMES[usize::from(b.to_ascii_uppercase() - b'A')], accent)))
        .collect();
    match names.rfind(SECONDARY) {
        Some(at) => format!("{}{PRIMARY}{}", &names[..at], &names[at + SECONDARY.len_utf8()..]),
        None => names,
    }
}

/// The words' owner: one accent's lexicon, the letter model and the user's words.
pub(super) struct Words<'a> {
    pub(super) lexicon: &'a Lexicon,
    pub(super) letters: &'a LetterModel,
    pub(super) user: &'a UserWords,
}

impl Words<'_> {
    fn accent(&self) -> Accent {
        self.lexicon.accent()
    }

    /// The sound of any word. Never empty for a word with a letter or a digit in it.
    pub(super) fn say(&self, word: &str, asked: Use) -> Sound {
        let found = self.whole(word, asked).or_else(|| self.parts(word, asked));
        let Some(mut found) = found.or_else(|| self.guess(word)) else {
            return Sound { phonemes: String::new(), source: Source::Skipped };
        };
        // A capital or a shout stresses words that are otherwise weak, as in the speech that Kokoro learned from.
        if found.source != Source::Spelled && word.chars().any(char::is_uppercase) {
            let shout = is_upper(word) && word.chars().count() > 1 && !asked.shouted;
            found.phonemes = if shout {
                emphasize(&found.phonemes)
            } else {
                stress_first_vowel(&found.phonemes, SECONDARY)
            };
        }
        found
    }

    /// A word as one unit: as written, then with its case changed, then taken apart by rule.
    fn whole(&self, word: &str, asked: Use) -> Option<Sound> {
        let lower = word.to_lowercase();
        if let Some(found) = self.acronym(word, &lower, asked) {
            return Some(found);
        }
        self.known(word, &lower, asked)
            .or_else(|| self.possessive(word, asked))
            .or_else(|| self.inflected(&lower, asked))
            .or_else(|| self.folded(&lower, asked))
            .or_else(|| lower.strip_prefix('\'').filter(|w| w.len() > 1).and_then(|w| self.whole(w, asked)))
    }

    /// Straight from the lexicon.
    fn known(&self, word: &str, lower: &str, asked: Use) -> Option<Sound> {
        let capital = capitalized(lower);
        let forms = [if asked.lower { lower } else { word }, lower, &capital];
        for form in forms {
            if let Some(entry) = self.lexicon.get(form) {
                let source = if entry.gold { Source::Gold } else { Source::Silver };
                return match entry.reading(asked.tag) {
                    Some(phonemes) => sound(phonemes, source),
                    None => sound(spell(word, self.accent()), Source::Spelled),
                };
            }
        }
        None
    }

    /// Capitals: an initialism, or a word written large.
    fn acronym(&self, word: &str, lower: &str, asked: Use) -> Option<Sound> {
        let letters: String = word.chars().filter(|c| c.is_alphanumeric()).collect();
        let dotted = word.trim_end_matches('.').contains('.') && letters.chars().all(char::is_alphabetic);
        if dotted && letters.len() <= 6 {
            return sound(spell(&letters, self.accent()), Source::Spelled);
        }
        // "CPUs", "PCs'": capitals with a plural ending.
        if let Some(stem) = word
            .strip_suffix('s')
            .filter(|s| s.len() >= 2 && is_upper(s) && s.chars().all(char::is_alphabetic))
        {
            let base = self.acronym(stem, &stem.to_lowercase(), asked)?;
            return sound(inflect::s(&base.phonemes, self.accent()), base.source);
        }
        if asked.shouted || !is_upper(word) || letters.chars().count() < 2 || word.contains(['-', '\'']) {
            return None;
        }
        if let Some(entry) = self.lexicon.get(word) {
            // "US" and "IT" beside "us" and "it": in capitals among small letters they are names.
            return match entry.reading(Tag::Noun) {
                Some(phonemes) => sound(phonemes, Source::Gold),
                None => sound(spell(word, self.accent()), Source::Spelled),
            };
        }
        if !word.chars().all(char::is_alphabetic) {
            return None;
        }
        let gold_word = self.lexicon.get(lower).filter(|e| e.gold);
        if let Some(entry) = gold_word {
            return sound(entry.reading(asked.tag)?, Source::Gold);
        }
        let vowels = lower.chars().filter(|c| "aeiouy".contains(*c)).count();
        let long = lower.chars().count() >= 6 && vowels >= 2;
        if long && (self.known(lower, lower, asked).is_some() || self.inflected(lower, asked).is_some()) {
            return None;
        }
        if long && lower.chars().count() > 6 {
            return None;
        }
        let spelled = spell(&fold(word), self.accent());
        if spelled.is_empty() { None } else { sound(spelled, Source::Spelled) }
    }

    /// "dog's", "dogs'", "that'll", "who've", "what's".
    fn possessive(&self, word: &str, asked: Use) -> Option<Sound> {
        let (stem, ending) = word.rsplit_once('\'')?;
        if stem.is_empty() {
            return None;
        }
        if ending.is_empty() {
            // "goin'" is "going"; "dogs'" sounds like "dogs".
            if stem.ends_with("in") {
                let going = self.whole(&format!("{stem}g"), asked)?;
                return sound(going.phonemes.replace('ŋ', "n"), Source::Rule);
            }
            return self.whole(stem, asked);
        }
        let accent = self.accent();
        let schwa = |p: &str, c: &str| {
            let vowel = p.ends_with(|c: char| "iuAIOQWYəɹː".contains(c));
            if vowel { format!("{p}{c}") } else { format!("{p}ə{c}") }
        };
        let base =
            || self.whole(stem, asked).or_else(|| self.parts(stem, asked)).or_else(|| self.guess(stem));
        let phonemes = match ending.to_lowercase().as_str() {
            "s" => inflect::s(&base()?.phonemes, accent),
            "ll" => format!("{}{}", base()?.phonemes, if accent == Accent::American { "əl" } else { "ᵊl" }),
            "ve" => schwa(&base()?.phonemes, "v"),
            "d" => {
                let base = base()?.phonemes;
                if base.ends_with(['t', 'd']) { format!("{base}əd") } else { format!("{base}d") }
            }
            "re" => format!("{}{}", base()?.phonemes, if accent == Accent::American { "əɹ" } else { "ə" }),
            "m" => format!("{}m", base()?.phonemes),
            "t" => format!("{}ᵊnt", self.whole(stem.strip_suffix('n')?, asked)?.phonemes),
            _ => return None,
        };
        sound(phonemes, Source::Rule)
    }

    /// A stem's sound if the lexicon or the user has it.
    fn stem(&self, stem: &str, tag: Tag) -> Option<String> {
        if let Some(user) = self.user_phonemes(stem) {
            return Some(user);
        }
        let entry = self.lexicon.get(stem).or_else(|| self.lexicon.get(&capitalized(stem)))?;
        entry.reading(tag)
    }

    fn user_phonemes(&self, word: &str) -> Option<String> {
        match self.user.get(word)? {
            super::user::UserWord::Phonemes(p) => Some(p.clone()),
            super::user::UserWord::SoundsLike(_) => None,
        }
    }

    /// A lower-case word by its ending or prefix.
    fn inflected(&self, lower: &str, asked: Use) -> Option<Sound> {
        self.inflected_within(lower, asked, RULES_DEEP)
    }

    /// The same with at most `deeper` further rules inside the word.
    fn inflected_within(&self, lower: &str, asked: Use, deeper: usize) -> Option<Sound> {
        if !lower.is_ascii()
            || !(4..=LONGEST).contains(&lower.len())
            || !lower.bytes().all(|b| b.is_ascii_lowercase())
        {
            return None;
        }
        let accent = self.accent();
        let inner = |rest: &str| self.inflected_within(rest, asked, deeper.checked_sub(1)?);
        let first =
            |stems: Vec<String>, tag: Tag| stems.into_iter().find_map(|s| Some((self.stem(&s, tag)?, s)));
        if let Some((stem, _)) = first(inflect::s_stems(lower), asked.tag) {
            return sound(inflect::s(&stem, accent), Source::Rule);
        }
        if let Some((stem, _)) = first(inflect::ed_stems(lower), Tag::Verb) {
            return sound(inflect::ed(&stem, accent), Source::Rule);
        }
        for suffix in SUFFIXES {
            let tag = if suffix.text == "ing" || suffix.text == "er" || suffix.text == "able" {
                Tag::Verb
            } else {
                Tag::Adjective
            };
            if let Some((stem, spelling)) = first(suffix.stems(lower), tag) {
                let r = spelling.ends_with('r') || spelling.ends_with("re");
                return sound(suffix.join(&stem, r, accent), Source::Rule);
            }
        }
        for &(prefix, american, british) in PREFIXES {
            let Some(rest) = lower.strip_prefix(prefix).filter(|r| r.len() >= 4) else { continue };
            let found = self.stem(rest, asked.tag).or_else(|| inner(rest).map(|s| s.phonemes));
            if let Some(stem) = found {
                return sound(format!("{}{stem}", pick((american, british), accent)), Source::Rule);
            }
        }
        self.compound(lower).or_else(|| {
            // A plural or past of something that only the rules know: "starfishes", "unbolted".
            let stems = inflect::s_stems(lower);
            let plural = stems.iter().find_map(|s| inner(s)).map(|s| inflect::s(&s.phonemes, accent));
            let past = || {
                inflect::ed_stems(lower)
                    .iter()
                    .find_map(|s| inner(s))
                    .map(|s| inflect::ed(&s.phonemes, accent))
            };
            sound(plural.or_else(past)?, Source::Rule)
        })
    }

    /// "starship": two words of the gold lexicon written as one, the first with the stress.
    fn compound(&self, lower: &str) -> Option<Sound> {
        let gold = |part: &str| {
            let entry = self.lexicon.get(part).filter(|e| e.gold)?;
            let heard = part.chars().any(|c| "aeiouy".contains(c));
            heard.then(|| entry.reading(Tag::Noun)).flatten().filter(|p| p.contains(PRIMARY))
        };
        let mut best: Option<(usize, String)> = None;
        for cut in 3..lower.len().saturating_sub(2) {
            let (a, b) = (&lower[..cut], &lower[cut..]);
            let short = a.len().min(b.len());
            // Two short parts are chance more often than not.
            if short + lower.len() < 11 || best.as_ref().is_some_and(|(s, _)| *s >= short) {
                continue;
            }
            if let (Some(x), Some(y)) = (gold(a), gold(b)) {
                best = Some((short, format!("{x}{}", demote(&y))));
            }
        }
        sound(best?.1, Source::Rule)
    }

    /// Diacritics and drawn-out letters removed: "café", "sooo".
    fn folded(&self, lower: &str, asked: Use) -> Option<Sound> {
        let plain = fold(lower);
        if plain != lower
            && let Some(found) = self.known(&plain, &plain, asked).or_else(|| self.inflected(&plain, asked))
        {
            return Some(found);
        }
        let mut runs: Vec<(char, usize)> = Vec::new();
        for c in plain.chars() {
            match runs.last_mut() {
                Some((last, n)) if *last == c => *n += 1,
                _ => runs.push((c, 1)),
            }
        }
        if !runs.iter().any(|&(c, n)| n > 2 && c.is_alphabetic()) {
            return None;
        }
        [1usize, 2].into_iter().find_map(|keep| {
            let short: String = runs
                .iter()
                .flat_map(|&(c, n)| std::iter::repeat_n(c, if n > 2 { keep } else { n }))
                .collect();
            let found = self.known(&short, &short, asked)?;
            sound(found.phonemes, Source::Rule)
        })
    }

    /// A word of several parts: hyphens, digits and letters, inner capitals.
    fn parts(&self, word: &str, asked: Use) -> Option<Sound> {
        let parts = split_parts(word);
        if parts.len() < 2 {
            return match parts.first() {
                Some(part) if *part != word => Some(self.whole(part, asked)?),
                _ => None,
            };
        }
        let digits = parts.iter().any(|p| p.bytes().any(|b| b.is_ascii_digit()));
        let mut sounds: Vec<Sound> = Vec::new();
        for part in &parts {
            let part_use = Use { lower: false, ..asked };
            if let Some(s) = self.whole(part, part_use).or_else(|| self.guess(part)) {
                sounds.push(s);
            }
        }
        if sounds.is_empty() {
            return None;
        }
        let source =
            sounds.iter().map(|s| s.source).max_by_key(|s| s.trust()).filter(|s| *s > Source::Silver);
        let mut phones: Vec<String> = sounds.into_iter().map(|s| s.phonemes).collect();
        // "state-of-the-art": inside a compound too, "the" hears what follows.
        for i in 1..phones.len() {
            let vowel = phones[i].trim_start_matches([PRIMARY, SECONDARY]).starts_with(is_vowel);
            if vowel && phones[i - 1] == "ðə" {
                phones[i - 1] = "ði".to_owned();
            }
        }
        if !digits {
            share_stress(&mut phones, &parts);
        }
        sound(phones.join(if digits { " " } else { "" }), source.unwrap_or(Source::Rule))
    }

    /// What is left: digits by name, letters without a vowel spelled, the rest by the letter model.
    fn guess(&self, word: &str) -> Option<Sound> {
        let accent = self.accent();
        if word.bytes().any(|b| b.is_ascii_digit()) {
            let mut names: Vec<String> = Vec::new();
            let mut chars = word.chars().peekable();
            while let Some(c) = chars.next() {
                match c.to_digit(10) {
                    Some(d) => names.push(pick(DIGIT_NAMES[d as usize], accent).to_owned()),
                    None if c == '.' && chars.peek().is_some_and(char::is_ascii_digit) => {
                        names.push("pˌYnt".to_owned());
                    }
                    None => {
                        names.extend(Some(spell(&fold(&c.to_string()), accent)).filter(|s| !s.is_empty()))
                    }
                }
            }
            return sound(names.join(" "), Source::Spelled).filter(|s| !s.phonemes.is_empty());
        }
        let plain: String = fold(word).chars().filter(char::is_ascii_alphabetic).collect();
        if plain.is_empty() {
            return None;
        }
        if plain.len() == 1 || plain.len() <= 6 && !plain.contains(['a', 'e', 'i', 'o', 'u', 'y']) {
            return sound(spell(&plain, accent), Source::Spelled);
        }
        let phonemes = self.letters.phonemes(word, accent)?;
        sound(phonemes, Source::LetterToSound)
    }
}

/// Cuts at hyphens, between letters and digits, and where a small letter meets a capital ("OpenAI", "HTTPServer").
fn split_parts(word: &str) -> Vec<&str> {
    let mut cuts = vec![0];
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    for k in 1..chars.len() {
        let (at, c) = chars[k];
        let before = chars[k - 1].1;
        let after = chars.get(k + 1).map_or(' ', |x| x.1);
        let decimal = |a: char, b: char| {
            a.is_ascii_digit() && matches!(b, '.' | ',') || matches!(a, '.' | ',') && b.is_ascii_digit()
        };
        let hyphen = c == '-' || before == '-';
        let kind = before.is_ascii_digit() != c.is_ascii_digit()
            && !decimal(before, c)
            && c != '\''
            && before != '\'';
        let hump = before.is_lowercase() && c.is_uppercase();
        let run = before.is_uppercase() && c.is_uppercase() && after.is_lowercase() && after != 's';
        if hyphen || kind || hump || run {
            cuts.push(at);
        }
    }
    cuts.push(word.len());
    let parts = cuts.windows(2).map(|w| &word[w[0]..w[1]]);
    parts.filter(|p| p.chars().any(char::is_alphanumeric)).collect()
}

/// A compound has about half as many main stresses as parts: the lightest parts lean on the others.
fn share_stress(phones: &mut [String], parts: &[&str]) {
    let mut order: Vec<(bool, usize, usize)> = phones
        .iter()
        .enumerate()
        .filter(|(_, p)| !p.is_empty())
        .map(|(i, p)| (p.contains(PRIMARY), weight(p), i))
        .collect();
    if order.len() == 2 && parts.first().is_some_and(|p| p.chars().count() == 1) {
        let last = order[1].2;
        phones[last] = demote(&phones[last]);
        return;
    }
    let stressed = order.iter().filter(|o| o.0).count();
    if order.len() < 2 || stressed <= order.len().div_ceil(2) {
        return;
    }
    order.sort_unstable();
    for &(_, _, i) in &order[..order.len() / 2] {
        phones[i] = demote(&phones[i]);
    }
}
