//! Cutting phonemes that are too many for one run.
//!
//! Into as few pieces as can be, of near lengths (a word left over would be spoken like a sentence of its own), at the best
//! boundary in reach: the end of a sentence, then of a clause, then any space between words, and only inside a word that is
//! itself too long.

/// How good a place behind a symbol is to cut, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cut {
    Sentence,
    Clause,
    Word,
    Inside,
}

/// The place behind symbol `at`. White space carries the cut of the mark in front of it.
fn cut(phonemes: &[char], at: usize) -> Cut {
    let spaced = phonemes[at] == ' ';
    let mark = if spaced { at.checked_sub(1).map(|before| phonemes[before]) } else { Some(phonemes[at]) };
    match mark {
        Some('.' | '!' | '?' | '…') => Cut::Sentence,
        Some(',' | ';' | ':' | '—') => Cut::Clause,
        _ if spaced => Cut::Word,
        _ => Cut::Inside,
    }
}

/// Pieces of at most `limit` symbols (zero is taken as one) that together are `phonemes` but for white space at the cuts.
/// No piece is empty.
pub fn split(phonemes: &[char], limit: usize) -> Vec<&[char]> {
    let mut rest = phonemes.trim_end();
    let mut out = Vec::new();
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(end_of_piece(rest, limit.max(1)));
        let piece = piece.trim_end();
        if !piece.is_empty() {
            out.push(piece);
        }
        rest = later.trim_start();
    }
    out
}

/// Length of the next piece: at most `max` symbols, not counting a space at its end.
fn end_of_piece(rest: &[char], max: usize) -> usize {
    let len = rest.len();
    if len <= max {
        return len;
    }
    let pieces = len.div_ceil(max);
    let target = len.div_ceil(pieces);
    // Ending earlier than this would need one piece more.
    let least = len.saturating_sub((pieces - 1) * max).max(1);
    let size = |end: usize| if rest[end - 1] == ' ' { end - 1 } else { end };
    let best = |from: usize| {
        (from..=(max + 1).min(len))
            .filter(|&end| (1..=max).contains(&size(end)) && cut(rest, end - 1) < Cut::Inside)
            .min_by_key(|&end| (cut(rest, end - 1), end.abs_diff(target)))
    };
    // A good boundary is worth one more piece only when no boundary at all keeps the count.
    best(least).or_else(|| best(1)).unwrap_or(max)
}

/// Slices without the spaces at an end.
trait Trim {
    fn trim_start(&self) -> &Self;
    fn trim_end(&self) -> &Self;
}

impl Trim for [char] {
    fn trim_start(&self) -> &Self {
        &self[self.iter().take_while(|&&c| c == ' ').count()..]
    }

    fn trim_end(&self) -> &Self {
        &self[..self.len() - self.iter().rev().take_while(|&&c| c == ' ').count()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str, limit: usize) -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        split(&chars, limit).into_iter().map(|p| p.iter().collect()).collect()
    }

    #[test]
    fn sentences_come_before_clauses_and_clauses_before_words() {
        assert_eq!(pieces("aaa bbb. ccc, ddd eee", 12), ["aaa bbb.", "ccc, ddd eee"]);
        assert_eq!(pieces("aaa bbb, ccc ddd", 11), ["aaa bbb,", "ccc ddd"]);
        assert_eq!(pieces("aa bb cc dd", 6), ["aa bb", "cc dd"]);
        assert_eq!(pieces("aaaaaaa", 3), ["aaa", "aaa", "a"]);
        assert_eq!(pieces("short.", 510), ["short."]);
        assert!(pieces("", 510).is_empty() && pieces("   ", 2).is_empty());
    }

    #[test]
    fn the_limit_itself_is_one_piece() {
        let words =
            |length: usize| "wˈɜɹd ".chars().cycle().take(length - 1).chain(['.']).collect::<String>();
        for (length, count) in [(1, 1), (509, 1), (510, 1), (511, 2), (1020, 2)] {
            let pieces = pieces(&words(length), 510);
            assert_eq!(pieces.len(), count, "{length}");
            // Near lengths, each cut between words.
            let lengths: Vec<_> = pieces.iter().map(|p| p.chars().count()).collect();
            assert!(
                lengths.iter().max().zip(lengths.iter().min()).is_some_and(|(a, b)| a - b < 20),
                "{lengths:?}"
            );
            assert!(pieces.iter().rev().skip(1).all(|p| p.ends_with('d')), "{pieces:?}");
        }
    }

    #[test]
    fn nothing_is_lost_and_no_piece_is_too_long() {
        for length in [1, 509, 510, 511, 1020, 1021, 5000] {
            let text: String = (0..length).map(|i| if i % 7 == 6 { ' ' } else { 'a' }).collect();
            for limit in [0, 1, 2, 510] {
                let pieces = pieces(&text, limit);
                assert_eq!(pieces.concat().replace(' ', ""), text.replace(' ', ""));
                assert!(pieces.iter().all(|p| (1..=limit.max(1)).contains(&p.chars().count())));
            }
        }
        // 130 words without punctuation.
        let words = vec!["həlˈO"; 130].join(" ");
        let pieces = pieces(&words, 510);
        assert_eq!((pieces.len(), pieces.join(" ")), (2, words));
    }
}
