//! Version numbers and internet addresses: "v1.2", "1.2.3", "Python 3.10", "192.168.1.1".

use super::numbers;
use super::scan::{Scan, Spoken};

/// Names whose decimals are versions: "Python 3.10" is three point ten.
#[rustfmt::skip]
const VERSIONED: &[&str] = &[
    "version", "Version", "versions", "release", "Release", "Python", "Java", "Rust", "Node", "Ruby", "PHP", "Perl", "Swift",
    "Kotlin", "Scala", "Go", "Android", "Ubuntu", "Debian", "Fedora", "Windows", "macOS", "iOS", "Linux", "kernel", "Django",
    "Rails", "React", "Angular", "Vue", "Web", "USB", "Bluetooth", "HTTP", "HTML", "CSS", "Unicode", "PyTorch", "TensorFlow",
    "CUDA", "OpenGL", "DirectX", "Vulkan", "Qwen", "Llama", "Gemini", "Claude", "GPT", "TLS", "SSL", "PCIe", "HDMI",
];

/// Any version or address that starts at token `i`.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    if !scan.starts(i) && !scan.is_mark(i.wrapping_sub(1), "-/@") {
        return None;
    }
    // "V8" is an engine, "V2.1" a version.
    if matches!(scan.text(i), "v" | "V") {
        let (parts, next) =
            parts(scan, i + 1).filter(|(parts, _)| scan.is_word(i, "v") || parts.len() > 1)?;
        return with_stage(scan, next, format!("version {}", say(scan, &parts)));
    }
    let (parts, next) = parts(scan, i)?;
    if parts.len() == 4 && parts.iter().all(|p| p.parse::<u16>().is_ok_and(|n| n < 256)) {
        return address(scan, &parts, next);
    }
    // "1.000.000" is a million.
    if parts.len() == 3 && parts[1..].iter().all(|p| p.len() == 3) {
        return None;
    }
    let named = scan.word_before(i).is_some_and(|w| VERSIONED.contains(&w));
    (parts.len() > 2 || parts.len() == 2 && named).then_some(())?;
    with_stage(scan, next, say(scan, &parts))
}

/// The version in `words`, which ends before `next`, with the name of its pre-release.
fn with_stage(scan: &Scan, next: usize, words: String) -> Option<Spoken> {
    // "3.12.1-rc2", "2.0.0-beta.1"
    let stage = scan.word(next + 1).filter(|w| scan.is_mark(next, "-") && STAGES.contains(w));
    let Some(stage) = stage else { return Spoken::new(next, words) };
    let stage = super::acronyms::say(stage, false, None).unwrap_or_else(|| stage.to_string());
    let at = next + 2 + usize::from(scan.is_mark(next + 2, ".") && scan.digits(next + 3).is_some());
    match scan.digits(at).filter(|d| d.len() <= 3 && scan.ends(at + 1)) {
        Some(digits) => {
            Spoken::new(at + 1, format!("{words} {stage} {}", numbers::cardinal(digits, scan.locale)))
        }
        None if scan.ends(next + 2) => Spoken::new(next + 2, format!("{words} {stage}")),
        None => Spoken::new(next, words),
    }
}

/// What a pre-release is called.
const STAGES: &[&str] =
    &["rc", "RC", "alpha", "beta", "dev", "pre", "preview", "nightly", "snapshot", "SNAPSHOT"];

/// Numbers joined by full stops, with the ending of a pre-release glued on.
fn parts(scan: &Scan, i: usize) -> Option<(Vec<&str>, usize)> {
    let mut parts = vec![scan.digits(i)?];
    let mut next = i + 1;
    while scan.is_mark(next, ".") && parts.len() < 8 {
        // "3.x" and the full stop at the end of a sentence.
        match scan.digits(next + 1).or_else(|| scan.word(next + 1).filter(|w| *w == "x")) {
            Some(part) => parts.push(part),
            None => break,
        }
        next += 2;
    }
    let suffix = scan.word(next).is_some_and(|w| w.len() > 2);
    (scan.ends(next) || suffix).then_some((parts, next))
}

fn say(scan: &Scan, parts: &[&str]) -> String {
    let mut words = String::new();
    for (n, part) in parts.iter().enumerate() {
        if n > 0 {
            words.push_str(" point ");
        }
        let said = match *part {
            "0" if n > 0 => "oh".into(),
            "x" => "x".into(),
            part if part.len() > 1 && part.starts_with('0') => numbers::spell_oh(part),
            part if part.len() >= 3 => numbers::code(part, scan.locale),
            part => numbers::cardinal(part, scan.locale),
        };
        words.push_str(&said);
    }
    words
}

/// `192.168.1.1`, with a port or without.
fn address(scan: &Scan, parts: &[&str], next: usize) -> Option<Spoken> {
    let words: Vec<String> = parts.iter().map(|p| numbers::code(p, scan.locale)).collect();
    let mut words = words.join(" dot ");
    let mut end = next;
    if scan.is_mark(next, ":")
        && let Some(port) = scan.digits(next + 1)
    {
        words.push_str(&format!(" port {}", numbers::code(port, scan.locale)));
        end += 2;
    }
    // "10.0.0.0/8"
    if let Some(bits) = scan.digits(end + 1).filter(|bits| bits.len() <= 2 && scan.is_mark(end, "/")) {
        words.push_str(&format!(" slash {}", numbers::cardinal(bits, scan.locale)));
        end += 2;
    }
    Spoken::new(end, words)
}
