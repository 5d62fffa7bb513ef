//! Cutting phonemes that are too many for one run.

/// Pieces of at most `limit` symbols that together are `phonemes`, each cut where a speaker would pause: behind the last
/// mark that ends a sentence, or else a clause, or else a word; a word of more than `limit` symbols is cut anywhere.
pub fn split(phonemes: &[char], limit: usize) -> Vec<&[char]> {
    let mut rest = phonemes;
    let mut out = Vec::new();
    while rest.len() > limit.max(1) {
        let window = &rest[..limit.max(1)];
        // A pause early in the window leaves a short piece: only the later half counts for the better marks.
        let behind = |marks: &[char], from: usize| {
            let at = window.iter().rposition(|c| marks.contains(c)).map(|at| at + 1);
            at.filter(|&at| at > from)
        };
        let half = window.len() / 2;
        let cut = behind(&['.', '!', '?', '…'], half)
            .or_else(|| behind(&[',', ';', ':', '—'], half))
            .or_else(|| behind(&[' '], 0))
            .unwrap_or(window.len());
        let (piece, later) = rest.split_at(cut);
        out.push(piece);
        rest = later;
    }
    if !rest.is_empty() {
        out.push(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str, limit: usize) -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        split(&chars, limit).into_iter().map(|p| p.iter().collect()).collect()
    }

    #[test]
    fn pieces_end_at_pauses() {
        assert_eq!(pieces("aaa bbb. ccc, ddd eee", 12), ["aaa bbb.", " ccc, ddd ", "eee"]);
        assert_eq!(pieces("aaa bbb, ccc ddd", 11), ["aaa bbb,", " ccc ddd"]);
        assert_eq!(pieces("aaaaaaa", 3), ["aaa", "aaa", "a"]);
        assert_eq!(pieces("short.", 510), ["short."]);
        assert!(pieces("", 510).is_empty());
    }

    #[test]
    fn nothing_is_lost_and_no_piece_is_too_long() {
        for length in [1, 509, 510, 511, 1020, 1021, 5000] {
            let text: String = (0..length).map(|i| if i % 7 == 6 { ' ' } else { 'a' }).collect();
            for limit in [1, 2, 510] {
                let pieces = pieces(&text, limit);
                assert_eq!(pieces.concat(), text);
                assert!(pieces.iter().all(|p| (1..=limit).contains(&p.chars().count())));
            }
        }
    }
}
