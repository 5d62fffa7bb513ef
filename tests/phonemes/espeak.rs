//! espeak-ng's phonemes of single words, in misaki's alphabet.

use std::error::Error;
use std::io::Write;
use std::process::{Command, Stdio};

use repartee_engine::text::phonemes::Accent;

/// Longest first, as misaki's fallback (`espeak.py`, `EspeakFallback`) has them.
const PAIRS: &[(&str, &str)] = &[
    ("ʔˌn\u{329}", "ʔn"),
    ("ʔn\u{329}", "ʔn"),
    ("a^ɪ", "I"),
    ("a^ʊ", "W"),
    ("d^ʒ", "ʤ"),
    ("e^ɪ", "A"),
    ("t^ʃ", "ʧ"),
    ("ɔ^ɪ", "Y"),
    ("ə^l", "ᵊl"),
    ("ʲo", "jo"),
    ("ʲə", "jə"),
    ("ʲ", ""),
    ("e", "A"),
    ("ɚ", "əɹ"),
    ("r", "ɹ"),
    ("x", "k"),
    ("ç", "k"),
    ("ɐ", "ə"),
    ("ɬ", "l"),
    ("\u{303}", ""),
];
const AMERICAN: &[(&str, &str)] =
    &[("o^ʊ", "O"), ("ɜːɹ", "ɜɹ"), ("ɜː", "ɜɹ"), ("ɪə", "iə"), ("ː", ""), ("o", "ɔ"), ("^", "")];
const BRITISH: &[(&str, &str)] = &[("e^ə", "ɛː"), ("iə", "ɪə"), ("ə^ʊ", "Q"), ("o", "ɔ"), ("^", "")];

fn to_misaki(ipa: &str, accent: Accent) -> String {
    let mut out = ipa.trim().replace('\u{361}', "^");
    // "e^ɪ" before "e^ə" would be undone by the plain "e", so the British diphthong goes first.
    if accent == Accent::British {
        out = out.replace("e^ə", "ɛː");
    }
    for (from, to) in PAIRS {
        out = out.replace(from, to);
    }
    // A syllabic consonant gets a small schwa before it.
    let mut chars: Vec<char> = Vec::new();
    for c in out.chars() {
        if c == '\u{329}' {
            let at = chars.len().saturating_sub(1);
            chars.insert(at, 'ᵊ');
        } else {
            chars.push(c);
        }
    }
    let mut out: String = chars.into_iter().collect();
    for (from, to) in if accent == Accent::American { AMERICAN } else { BRITISH } {
        out = out.replace(from, to);
    }
    out.chars().filter(|c| !c.is_whitespace()).collect()
}

/// espeak-ng's reading of each word.
pub(crate) fn read(words: &[&str], accent: Accent) -> Result<Vec<String>, Box<dyn Error>> {
    let voice = if accent == Accent::American { "en-us" } else { "en-gb" };
    let mut out = Vec::new();
    for part in words.chunks(500) {
        // One word a paragraph, so that none leans on its neighbour.
        let mut child = Command::new("espeak-ng")
            .args(["-q", "-v", voice, "--ipa", "--tie=^", "--stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("espeak-ng can't be started ({e}); install the package espeak-ng"))?;
        let mut input = child.stdin.take().ok_or("no input")?;
        input.write_all(part.iter().map(|w| format!("{w}\n\n")).collect::<String>().as_bytes())?;
        drop(input);
        let text = String::from_utf8(child.wait_with_output()?.stdout)?;
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        if lines.len() != part.len() {
            return Err(format!("espeak-ng gave {} lines for {} words", lines.len(), part.len()).into());
        }
        out.extend(lines.iter().map(|l| to_misaki(l, accent)));
    }
    Ok(out)
}
