//! Notations of their own: notes and chords, moves of chess, colours, paragraphs of laws, document and machine addresses.

use super::scan::{Kind, Scan, Spoken};
use super::{abbreviations, calls, numbers};

/// How far around a token the words are looked for that tell a chord or a move from a code.
const REACH: usize = 60;

/// Any notation that starts at token `i`.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    match scan.kind(i)? {
        Kind::Mark('(') => paragraph(scan, i),
        Kind::Mark('#') => colour(scan, i),
        Kind::Word => note(scan, i)
            .or_else(|| castling(scan, i))
            .or_else(|| chess_move(scan, i))
            .or_else(|| party(scan, i))
            .or_else(|| every(scan, i))
            .or_else(|| long_address(scan, i)),
        Kind::Digits => document(scan, i).or_else(|| long_address(scan, i)),
        _ => None,
    }
}

fn near(scan: &Scan, i: usize, found: impl Fn(usize) -> bool) -> bool {
    (i.saturating_sub(REACH)..scan.len().min(i + REACH)).any(|k| k != i && found(k))
}

fn near_word(scan: &Scan, i: usize, words: &[&str]) -> bool {
    near(scan, i, |k| scan.word(k).is_some_and(|w| words.contains(&w.to_lowercase().as_str())))
}

#[rustfmt::skip]
const MUSIC: &[&str] = &[
    "arpeggio", "capo", "chord", "chords", "flats", "guitar", "key", "keys", "major", "melody", "minor", "note", "notes", "piano",
    "progression", "scale", "scales", "sharps", "tuning", "ukulele",
];

/// What follows the root of a chord, and how it is said.
#[rustfmt::skip]
const QUALITIES: &[(&str, &str)] = &[
    ("", ""), ("m", "minor"), ("min", "minor"), ("maj", "major"), ("dim", "diminished"), ("aug", "augmented"), ("sus", "sus"),
    ("add", "add"),
];

/// `C#m`, `G#`, `Bb`, `Am7`: a note or chord; but for sharps only where music is talked about.
fn note(scan: &Scan, i: usize) -> Option<Spoken> {
    let word = scan.word(i).filter(|_| scan.starts(i) || scan.is_mark(i - 1, "/-"))?;
    let mut letters = word.chars();
    let root = letters.next().filter(|c| ('A'..='G').contains(c))?;
    let sharp = letters.as_str().is_empty() && scan.is_mark(i + 1, "#♯♭");
    let flat = letters.as_str().starts_with('b') && !letters.as_str().starts_with("bb")
        || sharp && scan.is_mark(i + 1, "♭");
    let (quality, mut next) = match sharp {
        true => (scan.word(i + 2).unwrap_or_default(), i + 2 + usize::from(scan.word(i + 2).is_some())),
        false => (letters.as_str().strip_prefix('b').unwrap_or(letters.as_str()), i + 1),
    };
    let quality = QUALITIES.iter().find(|(written, _)| *written == quality)?.1;
    let number = scan.digits(next).filter(|d| matches!(*d, "2" | "4" | "5" | "6" | "7" | "9" | "11" | "13"));
    next += usize::from(number.is_some());
    let plain = !sharp && !flat && quality.is_empty();
    let sure = sharp && number.is_none();
    // "Am I hitting the right notes?"
    let plain = plain || word == "Am" && scan.word_after(next).is_some_and(|w| w == "I");
    if plain || !scan.ends(next) || !(sure || near_word(scan, i, MUSIC)) {
        return None;
    }
    let mut words = root.to_string();
    if sharp || flat {
        words.push_str(if flat { " flat" } else { " sharp" });
    }
    let number = number.map(|digits| numbers::cardinal(digits, scan.locale)).unwrap_or_default();
    for part in [quality, &number].into_iter().filter(|part| !part.is_empty()) {
        words.push(' ');
        words.push_str(part);
    }
    Spoken::new(next, words)
}

#[rustfmt::skip]
const CHESS: &[&str] = &[
    "bishop", "black", "castle", "castles", "check", "checkmate", "chess", "gambit", "knight", "mate", "opening", "pawn", "queen",
    "rook", "white",
];

/// `O-O`, `O-O-O`
fn castling(scan: &Scan, i: usize) -> Option<Spoken> {
    let again = |k: usize| scan.is_mark(k, "-") && scan.is_word(k + 1, "O");
    if !scan.is_word(i, "O") || !scan.starts(i) || !again(i + 1) {
        return None;
    }
    let long = again(i + 3);
    let next = i + if long { 5 } else { 3 };
    let words = match scan.word_before(i) {
        Some("castle" | "castles" | "castled" | "castling") if long => "queenside",
        Some("castle" | "castles" | "castled" | "castling") => "kingside",
        _ if long => "castles queenside",
        _ => "castles",
    };
    scan.ends(next).then(|| Spoken { next, words: words.into() })
}

/// The piece and the squares of a move whose letters are token `i`.
fn moved(scan: &Scan, i: usize) -> Option<(&'static str, &str)> {
    let word = scan.word(i).filter(|w| w.is_ascii() && w.len() <= 4)?;
    scan.digits(i + 1).filter(|d| d.len() == 1 && ("1"..="8").contains(d) && scan.ends(i + 2))?;
    let piece = match word.as_bytes()[0] {
        b'K' => "king",
        b'Q' => "queen",
        b'R' => "rook",
        b'B' => "bishop",
        b'N' => "knight",
        _ => "",
    };
    let squares = if piece.is_empty() { word } else { &word[1..] };
    let file = |c: char| ('a'..='h').contains(&c);
    let shaped =
        squares.ends_with(file) && squares.chars().all(|c| file(c) || c == 'x') && squares.len() <= 3;
    shaped.then_some((piece, squares))
}

/// `Nf3`, `Qxf7+`, `exd5`, `e8=Q#`: pieces by name where chess is talked about.
fn chess_move(scan: &Scan, i: usize) -> Option<Spoken> {
    let (piece, squares) = moved(scan, i).filter(|_| scan.starts(i))?;
    let promoted = scan.is_mark(i + 2, "=") && matches!(scan.text(i + 3), "Q" | "R" | "B" | "N");
    let special = !piece.is_empty() || squares.contains('x') || promoted;
    if !special || !(near_word(scan, i, CHESS) || near(scan, i, |k| moved(scan, k).is_some())) {
        return None;
    }
    let mut words = piece.to_string();
    for c in squares.chars() {
        words.push_str(&if c == 'x' { " takes".into() } else { format!(" {}", c.to_ascii_uppercase()) });
    }
    words.push_str(&format!(" {}", numbers::cardinal(scan.text(i + 1), scan.locale)));
    let mut next = i + 2;
    if promoted {
        let to = match scan.text(i + 3) {
            "Q" => "queen",
            "R" => "rook",
            "B" => "bishop",
            _ => "knight",
        };
        words.push_str(&format!(" promotes to {to}"));
        next += 2;
    }
    match scan.mark(next) {
        Some('+') => words.push_str(" check"),
        Some('#') => words.push_str(" checkmate"),
        _ => return Spoken::new(next, words),
    }
    Spoken::new(next + 1, words)
}

/// `#FF5733`: a colour is spelled; other names behind the sign are topics.
fn colour(scan: &Scan, i: usize) -> Option<Spoken> {
    if !scan.starts_run(i) {
        return None;
    }
    let next = (i + 1..i + 9).find(|&k| scan.ends(k))?;
    let code = scan.span(i + 1, next);
    let told = ["background", "code", "color", "colour", "colors", "colours", "fill", "hex", "shade"];
    let lettered = code.bytes().any(|b| b.is_ascii_alphabetic());
    if !(is_colour(code) || is_hex(code) && lettered && near_word(scan, i, &told)) {
        return None;
    }
    Spoken::new(next, format!("hash {}", spell(code)))
}

/// Whether the characters behind a number sign are a colour whatever stands around them: "FF5733", "fff".
pub(super) fn is_colour(code: &str) -> bool {
    let digits = code.bytes().filter(u8::is_ascii_digit).count();
    let mixed = (1..code.len()).contains(&digits) && code.len() >= 6;
    let even = code.bytes().all(|b| Some(b) == code.bytes().next()) && (digits == 0 || code.len() == 6);
    is_hex(code) && (mixed || even)
}

fn is_hex(code: &str) -> bool {
    matches!(code.len(), 3 | 6 | 8) && code.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Letters and digits one by one.
fn spell(code: &str) -> String {
    let words = code.chars().map(|c| match c.is_ascii_digit() {
        true => numbers::spell(c.encode_utf8(&mut [0; 4])),
        false => c.to_uppercase().to_string(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `(1)(f)` behind a number: "Art. 6(1)(f)", "§ 230(c)".
fn paragraph(scan: &Scan, i: usize) -> Option<Spoken> {
    let glued = i > 0
        && (scan.digits(i - 1).is_some() || i > 2 && scan.is_mark(i - 1, ")") && scan.is_mark(i - 3, "("));
    if !glued || !scan.is_mark(i + 2, ")") || calls::opens_call(scan, i) {
        return None;
    }
    // "3(5) + 7 = 22", but "Fig. 2(b) shows x = 3"
    if scan.equation
        && scan.digits(i - 1).is_some()
        && let Some(digits) = scan.digits(i + 1)
    {
        return Spoken::new(i + 3, format!("times {}", numbers::cardinal(digits, scan.locale)));
    }
    let variable = scan.equation && !matches!(scan.text(i + 1), "a" | "b" | "c" | "d" | "e");
    if variable {
        return None;
    }
    let cited = (i.saturating_sub(12)..i).any(|k| {
        let words =
            ["Article", "Art", "Articles", "Rule", "Section", "Sec", "section", "Sections", "Title", "C"];
        scan.is_mark(k, "§") || scan.word(k).is_some_and(|w| words.contains(&w))
    });
    match (scan.word(i + 1), scan.digits(i + 1)) {
        (Some(letter), _) if letter.chars().count() == 1 && letter.chars().all(char::is_lowercase) => {
            Spoken::new(i + 3, letter.to_uppercase())
        }
        (_, Some(digits)) if cited && digits.len() <= 3 => {
            Spoken::new(i + 3, numbers::cardinal(digits, scan.locale))
        }
        _ => None,
    }
}

/// `(D-MN)`, `(R-TX)`: the party and state of a member of Congress.
fn party(scan: &Scan, i: usize) -> Option<Spoken> {
    let party = match scan.text(i) {
        "D" => "Democrat",
        "R" => "Republican",
        "I" => "Independent",
        _ => return None,
    };
    let state =
        scan.word(i + 2).filter(|_| scan.is_mark(i.wrapping_sub(1), "(") && scan.is_mark(i + 1, "-–"))?;
    Spoken::new(i + 3, format!("{party} from {}", abbreviations::state(state)?))
}

/// `q8h`: how often a medicine is taken.
fn every(scan: &Scan, i: usize) -> Option<Spoken> {
    let hours = scan.digits(i + 1).filter(|d| d.len() <= 2)?;
    let written = scan.is_word(i, "q") && scan.is_word(i + 2, "h") && scan.starts(i) && scan.ends(i + 3);
    written.then(|| Spoken {
        next: i + 3,
        words: format!("every {} hours", numbers::cardinal(hours, scan.locale)),
    })
}

/// `10.1000/182`: the identifier of a document.
fn document(scan: &Scan, i: usize) -> Option<Spoken> {
    let registrant = scan.digits(i + 2).filter(|d| (4..=6).contains(&d.len()))?;
    let shaped =
        scan.text(i) == "10" && scan.starts(i) && scan.is_mark(i + 1, ".") && scan.is_mark(i + 3, "/");
    let mut end = i + 4;
    while !matches!(scan.kind(end), None | Some(Kind::Space | Kind::Foreign(_))) && end < i + REACH {
        end += 1;
    }
    while end > i + 4 && scan.is_mark(end - 1, ".,;:)]\"") {
        end -= 1;
    }
    if !shaped || end == i + 4 {
        return None;
    }
    let rest = scan.span(i + 4, end);
    let short = rest.len() <= 8 && rest.bytes().all(|b| b.is_ascii_alphanumeric());
    let rest = if short { spell(rest) } else { "a long code".into() };
    Spoken::new(end, format!("ten dot {} slash {rest}", numbers::spell(registrant)))
}

/// `2001:db8::1`: the address of a machine in groups of hexadecimal digits.
fn long_address(scan: &Scan, i: usize) -> Option<Spoken> {
    if !scan.starts(i) {
        return None;
    }
    let (mut words, mut groups, mut double, mut next) = (Vec::new(), 0, false, i);
    loop {
        let from = next;
        while !scan.ends(next) && next < from + 5 {
            next += 1;
        }
        let group = scan.span(from, next);
        if group.is_empty() || group.len() > 4 || !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        words.push(spell(group));
        groups += 1;
        let colons = (next..next + 2).take_while(|&k| scan.is_mark(k, ":")).count();
        if colons == 0 || scan.ends(next + colons) || groups > 8 {
            break;
        }
        double |= colons == 2;
        words.extend((0..colons).map(|_| "colon".to_string()));
        next += colons;
    }
    let digits = scan.span(i, next).bytes().any(|b| b.is_ascii_digit());
    let address = digits && (double || groups == 8);
    match address {
        true if groups > 4 => Spoken::new(next, "a long code"),
        true => Spoken::new(next, words.join(" ")),
        false => None,
    }
}

/// Whether letters and digits in one are encoded data: capitals where no word begins.
pub(super) fn is_encoded(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    let strange =
        chars.windows(3).filter(|w| w[0].is_lowercase() && w[1].is_uppercase() && !w[2].is_lowercase());
    let (strange, digits) = (strange.count(), chars.iter().filter(|c| c.is_ascii_digit()).count());
    chars.len() >= 12 && (strange >= 3 && digits >= 1 || strange >= 2 && digits >= 2)
        || chars.len() >= 24 && strange >= 4
}
