//! Pieces that fit a model's limit.
//!
//! Kokoro takes at most 510 tokens at a time. A longer text is cut into as few pieces as can be, of near lengths,
//! at the best boundary in reach: the end of a sentence, then of a clause, then any space between words, and only
//! inside a word that is itself too long.

use std::ops::Range;

use super::alphabet::kokoro_letter;
use super::{Phonemes, Source};

/// A stretch of phonemes that fits the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// What the model is given: one token a character.
    pub phonemes: String,
    /// The bytes of the text that it speaks.
    pub text: Range<usize>,
}

/// How good a place after a character is to cut, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cut {
    Sentence,
    Clause,
    Word,
    Inside,
}

impl Phonemes {
    /// The phonemes in pieces of at most `max_tokens` characters each; white space at the cuts is left out.
    /// No piece is empty. `max_tokens` of zero is taken as one.
    pub fn chunks(&self, max_tokens: usize) -> Vec<Chunk> {
        let max = max_tokens.max(1);
        // Each character with the cut after it and the text that it stands for.
        let mut chars: Vec<(char, Cut, Range<usize>)> = Vec::new();
        for token in &self.tokens {
            for c in token.phonemes.chars().map(kokoro_letter) {
                let inner = if c == ' ' { Cut::Word } else { Cut::Inside };
                chars.push((c, inner, token.text.clone()));
            }
            let cut = match (&token.source, token.phonemes.as_str()) {
                (Source::Mark, "." | "!" | "?" | "…") => Cut::Sentence,
                (Source::Mark, "“" | "(") => Cut::Inside,
                (Source::Mark, _) => Cut::Clause,
                _ => Cut::Word,
            };
            let spaced = token.space_after;
            if let Some(last) = chars.last_mut() {
                // A dash may have no space around it and still part two clauses.
                last.1 = if spaced || token.phonemes == "—" { cut } else { Cut::Inside };
                if spaced && last.0 != ' ' {
                    // The space carries the cut: a piece that ends before it does not count it.
                    let text = last.2.clone();
                    chars.push((' ', cut, text));
                }
            }
        }
        while chars.last().is_some_and(|c| c.0 == ' ') {
            chars.pop();
        }
        let mut out = Vec::new();
        let mut rest = chars.as_slice();
        while !rest.is_empty() {
            let end = cut_at(rest, max);
            push(&mut out, &rest[..end]);
            rest = &rest[end..];
            while rest.first().is_some_and(|c| c.0 == ' ') {
                rest = &rest[1..];
            }
        }
        out
    }
}

fn push(out: &mut Vec<Chunk>, part: &[(char, Cut, Range<usize>)]) {
    let phonemes: String = part.iter().map(|c| c.0).collect::<String>().trim().to_owned();
    if let (Some(first), Some(last)) = (part.first(), part.last())
        && !phonemes.is_empty()
    {
        out.push(Chunk { phonemes, text: first.2.start..last.2.end });
    }
}

/// Length of the next piece: at most `max` characters, not counting a space at its end.
fn cut_at(rest: &[(char, Cut, Range<usize>)], max: usize) -> usize {
    let len = rest.len();
    if len <= max {
        return len;
    }
    let pieces = len.div_ceil(max);
    let target = len.div_ceil(pieces);
    // Ending earlier than this would need one piece more.
    let least = len.saturating_sub((pieces - 1) * max).max(1);
    let size = |end: usize| if rest[end - 1].0 == ' ' { end - 1 } else { end };
    let fits = |end: &usize| size(*end) >= 1 && size(*end) <= max;
    let best = |from: usize| {
        (from..=(max + 1).min(len))
            .filter(fits)
            .filter(|&end| rest[end - 1].1 < Cut::Inside)
            .min_by_key(|&end| (rest[end - 1].1, end.abs_diff(target)))
    };
    // A good boundary is worth one more piece only when no boundary at all keeps the count.
    best(least).or_else(|| best(1)).unwrap_or(max)
}

#[cfg(test)]
mod tests {
    use super::super::PhonemeToken;
    use super::*;

    /// Words of the given lengths; a mark follows where one is given.
    fn phonemes(words: &[(usize, &str)]) -> Phonemes {
        let mut tokens = Vec::new();
        let mut at = 0;
        for (i, (len, mark)) in words.iter().enumerate() {
            let last = i + 1 == words.len();
            let token = |phonemes: String, source, start: usize, space_after| {
                let end = start + phonemes.len();
                PhonemeToken { text: start..end, phonemes, source, space_after }
            };
            tokens.push(token("t".repeat(*len), Source::Gold, at, mark.is_empty() && !last));
            at += len;
            if !mark.is_empty() {
                tokens.push(token((*mark).to_owned(), Source::Mark, at, !last));
                at += mark.len();
            }
            at += 1;
        }
        Phonemes { tokens }
    }

    fn lengths(phonemes: &Phonemes) -> Vec<usize> {
        phonemes.chunks(510).iter().map(|c| c.phonemes.chars().count()).collect()
    }

    #[test]
    fn the_limit_itself_is_one_piece() {
        for total in [1, 509, 510] {
            assert_eq!(lengths(&phonemes(&[(total, "")])), [total]);
            assert_eq!(
                lengths(&phonemes(&[(total.saturating_sub(3).max(1), ""), (2, "")]))[0].max(1),
                total.max(4)
            );
        }
        let one_over = phonemes(&[(255, ""), (255, "")]);
        assert_eq!(lengths(&one_over), [255, 255]);
        assert_eq!(lengths(&phonemes(&[(511, "")])).iter().sum::<usize>(), 511);
        assert_eq!(lengths(&phonemes(&[(2000, "")])).len(), 4);
    }

    #[test]
    fn every_phoneme_is_kept_in_order_and_pieces_are_near_in_length() {
        for count in [100, 129, 130, 131, 400] {
            let words: Vec<(usize, &str)> = (0..count).map(|i| (1 + i * 7 % 11, "")).collect();
            let all = phonemes(&words);
            let chunks = all.chunks(510);
            let total: usize = all.to_kokoro_string().chars().count();
            assert!(chunks.iter().all(|c| c.phonemes.chars().count() <= 510 && !c.phonemes.is_empty()));
            assert_eq!(chunks.len(), total.div_ceil(510), "{count} words");
            let joined: Vec<String> = chunks.iter().map(|c| c.phonemes.clone()).collect();
            assert_eq!(joined.join(" "), all.to_kokoro_string());
            let shortest = chunks.iter().map(|c| c.phonemes.len()).min().unwrap();
            assert!(chunks.len() == 1 || shortest > 200, "{count} words: {shortest}");
        }
    }

    #[test]
    fn sentences_come_before_clauses_and_clauses_before_words() {
        let text = phonemes(&[(150, ","), (100, "."), (50, ""), (150, ","), (200, "")]);
        assert_eq!(lengths(&text), [253, 403]);
        let text = phonemes(&[(150, ","), (100, ""), (50, ""), (150, ","), (200, "")]);
        assert_eq!(text.chunks(510)[0].phonemes.chars().last(), Some(','));
        assert_eq!(text.chunks(510)[1].text.start, 456);
    }

    #[test]
    fn empty_and_tiny_limits_hold() {
        assert!(Phonemes::default().chunks(510).is_empty());
        let text = phonemes(&[(3, ","), (2, ".")]);
        for max in 0..12 {
            let chunks = text.chunks(max);
            assert!(chunks.iter().all(|c| (1..=max.max(1)).contains(&c.phonemes.chars().count())), "{max}");
            let kept: String = chunks.iter().flat_map(|c| c.phonemes.chars()).filter(|&c| c != ' ').collect();
            assert_eq!(kept, "ttt,tt.");
        }
    }
}
