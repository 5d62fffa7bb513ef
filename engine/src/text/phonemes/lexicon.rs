//! The pronunciation lexicon: misaki's JSON files in one compact table.
//!
//! A file is one JSON object: a spelling against a phoneme string, or against an object of phoneme strings by
//! part of speech (`DEFAULT`, `NOUN`, `VERB`, `ADJ`, `ADV`, `VBD`, `VBN`, `VBP`, `DT`, and `None` for the end of
//! a phrase), where null means that the word is spelled out in that use ("US"). Gold files are checked by hand,
//! silver ones are not; gold wins.
//!
//! About 180,000 entries an accent are kept as bytes in one buffer (one byte a phoneme) behind an open-addressing
//! table of offsets: no allocation per entry, 6 MB in all, and a load is one pass over the JSON. A finite-state
//! transducer would be smaller, but must be built offline and shipped as a second copy of the data.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};

use super::alphabet::{ALL, Accent, code};

/// Lexicon files above this size are refused.
const MAX_FILE_BYTES: usize = 64 << 20;
/// Spellings above this length are refused; misaki's longest has 45 bytes.
const MAX_KEY_BYTES: usize = 200;
/// Phoneme strings above this length are refused; misaki's longest has 53 characters.
const MAX_PHONEMES: usize = 200;
/// The marker of a reading that is spelled out.
const SPELLED: u8 = u8::MAX;

/// The grammatical use that a reading belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Tag {
    /// Any use without a reading of its own.
    Default,
    /// Noun.
    Noun,
    /// Verb in its base form or present tense.
    Verb,
    /// Adjective.
    Adjective,
    /// Adverb.
    Adverb,
    /// Past tense.
    Past,
    /// Past participle.
    Participle,
    /// Present tense as misaki's tagger names it; never asked for, since that tagger mistakes it for the past.
    Present,
    /// Determiner.
    Determiner,
    /// Before a pause.
    Final,
    /// A second, rarer meaning ("lead", the metal).
    Other,
}

impl Tag {
    fn from_key(key: &str) -> Option<Self> {
        Some(match key {
            "DEFAULT" => Self::Default,
            "NOUN" => Self::Noun,
            "VERB" => Self::Verb,
            "ADJ" => Self::Adjective,
            "ADV" => Self::Adverb,
            "VBD" => Self::Past,
            "VBN" => Self::Participle,
            "VBP" => Self::Present,
            "DT" => Self::Determiner,
            "None" => Self::Final,
            _ => return None,
        })
    }

    fn from_code(code: u8) -> Self {
        [
            Self::Default,
            Self::Noun,
            Self::Verb,
            Self::Adjective,
            Self::Adverb,
            Self::Past,
            Self::Participle,
            Self::Present,
            Self::Determiner,
            Self::Final,
        ]
        .get(usize::from(code))
        .copied()
        .unwrap_or(Self::Other)
    }
}

/// Why a lexicon could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LexiconError {
    /// The file is larger than any lexicon.
    #[error(
        "the {rank} lexicon has {bytes} bytes, more than the {MAX_FILE_BYTES} allowed; give misaki's JSON file"
    )]
    TooLarge {
        /// "gold" or "silver".
        rank: &'static str,
        /// Its size.
        bytes: usize,
    },
    /// The file is not JSON of the expected shape, or an entry is not made of the accent's phonemes.
    #[error("the {rank} lexicon of the {accent} accent can't be read: {source}; fetch the file again")]
    Format {
        /// "gold" or "silver".
        rank: &'static str,
        /// The accent whose alphabet the entries were held to.
        accent: Accent,
        /// Where and why.
        source: serde_json::Error,
    },
}

/// A word's readings.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// Whether the reading was checked by hand.
    pub gold: bool,
    readings: &'a [u8],
}

impl Entry<'_> {
    fn find(&self, tag: Tag) -> Option<Option<String>> {
        let mut rest = self.readings;
        while let [code, len, tail @ ..] = rest {
            let count = if *len == SPELLED { 0 } else { usize::from(*len) };
            let phones = tail.get(..count)?;
            if *code == tag as u8 {
                return Some(
                    (*len != SPELLED)
                        .then(|| phones.iter().filter_map(|&p| ALL.get(usize::from(p))).collect()),
                );
            }
            rest = &tail[count..];
        }
        None
    }

    /// The reading for a use, falling back from tense to verb to the default one. `None` says: spell it out.
    pub fn reading(&self, tag: Tag) -> Option<String> {
        let chain: &[Tag] = match tag {
            Tag::Past => &[Tag::Past, Tag::Verb],
            Tag::Participle => &[Tag::Participle, Tag::Verb],
            _ => &[],
        };
        chain.iter().copied().chain([tag, Tag::Default]).find_map(|t| self.find(t)).flatten()
    }

    /// Whether the word has a reading of its own for this use.
    pub fn has(&self, tag: Tag) -> bool {
        self.find(tag).is_some()
    }

    /// Whether more than one reading stands in the entry.
    pub fn is_homograph(&self) -> bool {
        let mut rest = self.readings;
        let mut count = 0;
        while let [_, len, tail @ ..] = rest {
            count += 1;
            rest = tail.get(if *len == SPELLED { 0 } else { usize::from(*len) }..).unwrap_or(&[]);
        }
        count > 1
    }

    /// All uses that the entry names, with their readings.
    pub fn all(&self) -> Vec<(Tag, Option<String>)> {
        let mut out = Vec::new();
        let mut rest = self.readings;
        while let [code, len, tail @ ..] = rest {
            let tag = Tag::from_code(*code);
            out.push((tag, self.find(tag).flatten()));
            rest = tail.get(if *len == SPELLED { 0 } else { usize::from(*len) }..).unwrap_or(&[]);
        }
        out
    }
}

/// One accent's words.
pub struct Lexicon {
    accent: Accent,
    /// `key length, key, gold flag, readings length (2 bytes), readings` for each entry.
    data: Vec<u8>,
    /// Offset + 1 into `data`, 0 where free; a power of two long.
    slots: Vec<u32>,
    count: usize,
    // Seeded afresh in each process, so that a made file can't aim at one slot.
    hasher: RandomState,
}

impl fmt::Debug for Lexicon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lexicon")
            .field("accent", &self.accent)
            .field("words", &self.count)
            .finish_non_exhaustive()
    }
}

impl Lexicon {
    /// Reads one accent's two files, given as their bytes.
    ///
    /// # Errors
    /// A file that is too large, is not such JSON, or uses phonemes outside the accent's alphabet.
    pub fn from_json(accent: Accent, gold: &[u8], silver: &[u8]) -> Result<Self, LexiconError> {
        let bytes = gold.len().saturating_add(silver.len()).min(2 * MAX_FILE_BYTES);
        let mut lexicon = Self {
            accent,
            data: Vec::with_capacity(bytes),
            slots: vec![0; (bytes / 16).next_power_of_two().max(16)],
            count: 0,
            hasher: RandomState::new(),
        };
        for (rank, file) in [("gold", gold), ("silver", silver)] {
            if file.len() > MAX_FILE_BYTES {
                return Err(LexiconError::TooLarge { rank, bytes: file.len() });
            }
            let mut json = serde_json::Deserializer::from_slice(file);
            (&mut json)
                .deserialize_map(Filler { lexicon: &mut lexicon, gold: rank == "gold" })
                .and_then(|()| json.end())
                .map_err(|source| LexiconError::Format { rank, accent, source })?;
        }
        lexicon.data.shrink_to_fit();
        Ok(lexicon)
    }

    /// The accent of the readings.
    pub fn accent(&self) -> Accent {
        self.accent
    }

    /// Number of spellings.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no word is in it.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The entry of a spelling, exactly as written.
    pub fn get(&self, word: &str) -> Option<Entry<'_>> {
        match self.slot(word.as_bytes()) {
            Ok(offset) => {
                let (_, gold, readings) = self.entry(offset)?;
                Some(Entry { gold, readings })
            }
            Err(_) => None,
        }
    }

    /// Every spelling with its entry, in file order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Entry<'_>)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (key, gold, readings) = self.entry(at)?;
            at += 1 + key.len() + 3 + readings.len();
            Some((std::str::from_utf8(key).ok()?, Entry { gold, readings }))
        })
    }

    fn entry(&self, offset: usize) -> Option<(&[u8], bool, &[u8])> {
        let (&len, rest) = self.data.get(offset..)?.split_first()?;
        let (key, rest) = rest.split_at_checked(usize::from(len))?;
        let (&[gold, low, high], rest) = rest.split_first_chunk::<3>()?;
        Some((key, gold == 1, rest.get(..usize::from(u16::from_le_bytes([low, high])))?))
    }

    /// The offset of a key, or the free slot where it belongs.
    fn slot(&self, key: &[u8]) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut at = self.hasher.hash_one(key) as usize & mask;
        loop {
            match self.slots[at] {
                0 => return Err(at),
                stored => {
                    let offset = stored as usize - 1;
                    if self.entry(offset).is_some_and(|(k, ..)| k == key) {
                        return Ok(offset);
                    }
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds an entry unless its key is there; `readings` is already encoded.
    fn insert(&mut self, key: &str, gold: bool, readings: &[u8]) {
        let Err(mut free) = self.slot(key.as_bytes()) else { return };
        if (self.count + 1) * 10 > self.slots.len() * 7 {
            self.grow();
            let Err(again) = self.slot(key.as_bytes()) else { return };
            free = again;
        }
        let offset = self.data.len();
        // Keys and readings were held to their limits, so both lengths fit.
        self.data.push(key.len() as u8);
        self.data.extend_from_slice(key.as_bytes());
        self.data.push(u8::from(gold));
        self.data.extend_from_slice(&(readings.len() as u16).to_le_bytes());
        self.data.extend_from_slice(readings);
        self.slots[free] = offset as u32 + 1;
        self.count += 1;
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![0; old.len() * 2];
        let mask = self.slots.len() - 1;
        for stored in old.into_iter().filter(|&s| s != 0) {
            let Some((key, ..)) = self.entry(stored as usize - 1) else { continue };
            let mut at = self.hasher.hash_one(key) as usize & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = stored;
        }
    }
}

/// Walks the outer object and fills the lexicon.
struct Filler<'a> {
    lexicon: &'a mut Lexicon,
    gold: bool,
}

impl<'de> Visitor<'de> for Filler<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of spellings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut readings = Vec::new();
        while let Some(key) = map.next_key_seed(Text)? {
            if key.is_empty() || key.len() > MAX_KEY_BYTES {
                return Err(A::Error::custom(format_args!("a spelling of {} bytes", key.len())));
            }
            readings.clear();
            let accent = self.lexicon.accent;
            map.next_value_seed(Readings { key: &key, accent, out: &mut readings })?;
            self.lexicon.insert(&key, self.gold, &readings);
        }
        Ok(())
    }
}

/// A string, borrowed from the file where it holds no escape.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(v.to_owned()))
    }
}

/// One entry's value: a phoneme string, or an object of them.
struct Readings<'a> {
    key: &'a str,
    accent: Accent,
    out: &'a mut Vec<u8>,
}

impl Readings<'_> {
    fn push<E: serde::de::Error>(&mut self, tag: Tag, phonemes: Option<&str>) -> Result<(), E> {
        if self.out.len() > usize::from(u16::MAX) - MAX_PHONEMES - 2 {
            return Err(E::custom(format_args!("too many readings of {:?}", self.key)));
        }
        self.out.push(tag as u8);
        let at = self.out.len();
        self.out.push(SPELLED);
        let Some(phonemes) = phonemes else { return Ok(()) };
        for phoneme in phonemes.chars() {
            match code(phoneme) {
                Some(code) if self.accent.has(phoneme) => self.out.push(code),
                _ => return Err(E::custom(format_args!("{phoneme:?} in {:?} is no phoneme", self.key))),
            }
        }
        let len = self.out.len() - at - 1;
        if len == 0 || len > MAX_PHONEMES {
            return Err(E::custom(format_args!("{:?} has {len} phonemes", self.key)));
        }
        self.out[at] = len as u8;
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Readings<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Readings<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a phoneme string or an object of them")
    }

    fn visit_str<E: serde::de::Error>(mut self, v: &str) -> Result<(), E> {
        self.push(Tag::Default, Some(v))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Text)? {
            let Some(tag) = Tag::from_key(&key) else {
                return Err(A::Error::custom(format_args!("{key:?} of {:?} is no part of speech", self.key)));
            };
            let value: Option<Cow<'de, str>> = map.next_value_seed(Nullable)?;
            self.push(tag, value.as_deref())?;
        }
        if self.out.is_empty() {
            return Err(A::Error::custom(format_args!("{:?} has no reading", self.key)));
        }
        Ok(())
    }
}

/// A string or null.
struct Nullable;

impl<'de> DeserializeSeed<'de> for Nullable {
    type Value = Option<Cow<'de, str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Nullable {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or null")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        Text.deserialize(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(gold: &str, silver: &str) -> Result<Lexicon, LexiconError> {
        Lexicon::from_json(Accent::American, gold.as_bytes(), silver.as_bytes())
    }

    #[test]
    fn gold_beats_silver_and_tags_fall_back() {
        let lexicon = load(
            r#"{"read": {"DEFAULT": "ɹˈid", "VBD": "ɹˈɛd"}, "US": {"DEFAULT": "ˌʌs", "NOUN": null}, "a\u0062": "ˈæb"}"#,
            r#"{"read": "ɹˈɑd", "zap": "zˈæp"}"#,
        )
        .unwrap();
        assert_eq!(lexicon.len(), 4);
        let read = lexicon.get("read").unwrap();
        assert!(read.gold && read.is_homograph() && read.has(Tag::Past));
        assert_eq!(read.reading(Tag::Past).as_deref(), Some("ɹˈɛd"));
        assert_eq!(read.reading(Tag::Noun).as_deref(), Some("ɹˈid"));
        assert_eq!(lexicon.get("US").unwrap().reading(Tag::Noun), None);
        assert_eq!(lexicon.get("ab").unwrap().reading(Tag::Default).as_deref(), Some("ˈæb"));
        assert!(!lexicon.get("zap").unwrap().gold);
        assert!(lexicon.get("nope").is_none());
        assert_eq!(lexicon.iter().map(|(k, _)| k).collect::<Vec<_>>(), ["read", "US", "ab", "zap"]);
    }

    #[test]
    fn a_growing_table_keeps_every_word() {
        let word = |i: usize| format!("w{i}");
        let entries: Vec<_> =
            (0..5000).map(|i| format!("\"{}\":\"{}\"", word(i), "t".repeat(i % 7 + 1))).collect();
        let lexicon = load(&format!("{{{}}}", entries.join(",")), "{}").unwrap();
        for i in 0..5000 {
            let reading = lexicon.get(&word(i)).unwrap().reading(Tag::Default).unwrap();
            assert_eq!(reading.len(), i % 7 + 1, "{i}");
        }
    }

    #[test]
    fn broken_files_are_refused_with_the_reason() {
        for (file, why) in [
            ("", "EOF"),
            ("[]", "object of spellings"),
            (r#"{"a": 3}"#, "phoneme string"),
            (r#"{"a": "rat"}"#, "'r' in \"a\""),
            (r#"{"a": "ɒ"}"#, "is no phoneme"),
            (r#"{"a": ""}"#, "0 phonemes"),
            (r#"{"": "t"}"#, "spelling of 0 bytes"),
            (r#"{"a": {"X": "t"}}"#, "part of speech"),
            (r#"{"a": {}}"#, "no reading"),
            (r#"{"a": "t"} x"#, "trailing"),
            (r#"{"a": "t", "b"#, "EOF"),
            (r#"{"a": [[[[["t"]]]]]}"#, "invalid type"),
        ] {
            let message = format!("{}", load(file, "{}").unwrap_err());
            assert!(message.contains(why) && message.contains("gold"), "{file}: {message}");
        }
        let long = format!("{{\"{}\": \"t\"}}", "k".repeat(300));
        assert!(load(&long, "{}").is_err());
        let long = format!("{{\"k\": \"{}\"}}", "t".repeat(300));
        assert!(load("{}", &long).unwrap_err().to_string().contains("silver"));
    }
}
