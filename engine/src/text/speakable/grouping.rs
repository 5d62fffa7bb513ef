//! Groups of three digits that are one number: "1 000 000", "1'000'000", "1_000_000".

/// Marks that group digits as commas do; a plain space does so only where nothing else can be meant.
fn separates(c: char) -> bool {
    matches!(c, ' ' | '\u{A0}' | '\u{202F}' | '\u{2009}' | '\'' | '’' | '_')
}

/// Words before numbers that are dialled or listed and not counted.
const NAMED: &[&str] = &[
    "call",
    "calling",
    "code",
    "dial",
    "fax",
    "mobile",
    "no",
    "number",
    "numbers",
    "phone",
    "tel",
    "telephone",
    "text",
    "whatsapp",
];

/// Puts commas in place of other marks between groups of three digits.
pub(super) fn join(chars: &mut [char]) {
    let mut at = 0;
    while at < chars.len() {
        let len = digits(chars, at);
        if len == 0 {
            at += 1;
            continue;
        }
        let starts =
            at == 0 || !"+-−–/.,:'’_()#$\\".contains(chars[at - 1]) && !chars[at - 1].is_alphabetic();
        let priced = at > 0 && chars[at - 1] == '$';
        let lone =
            at < 2 || !(chars[at - 1] == ' ' && (chars[at - 2].is_ascii_digit() || chars[at - 2] == ')'));
        let end = groups(chars, at + len);
        let whole = digits(chars, end + 1) == 0 || end >= chars.len() || !separates(chars[end]);
        if (starts || priced)
            && lone
            && len <= 3
            && chars[at] != '0'
            && whole
            && is_number(chars, at, at + len, end)
        {
            for k in (at + len..end).step_by(4) {
                chars[k] = ',';
            }
        }
        at = end;
    }
}

/// How many digits stand at `at`.
fn digits(chars: &[char], at: usize) -> usize {
    chars.get(at..).map_or(0, |rest| rest.iter().take_while(|c| c.is_ascii_digit()).count())
}

/// The index after the groups of three that follow, all behind the same mark.
fn groups(chars: &[char], from: usize) -> usize {
    let mut end = from;
    while chars.get(end).is_some_and(|c| separates(*c) && *c == chars[from]) && digits(chars, end + 1) == 3 {
        end += 4;
    }
    end
}

fn is_number(chars: &[char], start: usize, first: usize, end: usize) -> bool {
    let count = (end - first) / 4;
    if count == 0 {
        return false;
    }
    if chars[first] != ' ' {
        return true;
    }
    let before: String = chars[start.saturating_sub(12)..start].iter().collect();
    let word = before
        .trim_end_matches([' ', ':', '.'])
        .rsplit(|c: char| !c.is_alphabetic())
        .next()
        .unwrap_or_default();
    let named = NAMED.contains(&word.to_lowercase().as_str());
    // "10 000" and "299 792 458", but "in 12 500 people".
    !named && (count >= 2 || chars[end - 3..end] == ['0'; 3])
}

#[cfg(test)]
mod tests {
    fn joined(text: &str) -> String {
        let mut chars: Vec<char> = text.chars().collect();
        super::join(&mut chars);
        chars.into_iter().collect()
    }

    #[test]
    fn only_numbers_are_joined() {
        for (text, expected) in [
            ("1 000 000 people", "1,000,000 people"),
            ("299 792 458 m/s", "299,792,458 m/s"),
            ("10 000", "10,000"),
            ("12\u{A0}500", "12,500"),
            ("1'000'000", "1,000,000"),
            ("1_000_000", "1,000,000"),
            ("12 500", "12 500"),
            ("1 800 273 8255", "1 800 273 8255"),
            ("0800 123 456", "0800 123 456"),
            ("call 612 345 678", "call 612 345 678"),
            ("+33 142 685 300", "+33 142 685 300"),
            ("(020) 794 609", "(020) 794 609"),
            ("1 000 00", "1 000 00"),
            ("2024 100 000", "2024 100 000"),
        ] {
            assert_eq!(joined(text), expected, "{text}");
        }
    }
}
