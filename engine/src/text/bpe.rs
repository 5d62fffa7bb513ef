//! Byte-pair merges within one piece of text.
//!
//! A piece starts as one symbol per byte; the adjacent pair of the lowest rank is merged, the leftmost of
//! equals first, until no pair has a rank (Sennrich et al. 2016, "Neural Machine Translation of Rare Words
//! with Subword Units"; over bytes since GPT-2). Symbols form a doubly linked list and candidate pairs a
//! heap, so a piece of n bytes costs O(n log n): every merge takes one symbol away and offers at most two
//! new pairs. The plain way, a scan for the best pair before each merge, is O(n²) and stays as the twin
//! in the tests.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::tokenizer::TokenizerError;
use super::vocabulary::{TokenKind, Vocabulary};

/// No token, and no neighbour.
const NONE: u32 = u32::MAX;

/// Longest piece that is merged as one, so that positions fit `u32`; longer ones are cut.
const MAX_PIECE_BYTES: usize = 1 << 30;

/// The merge rules of a tokenizer, resolved to token ids.
#[derive(Debug, Clone)]
pub(crate) struct Merges {
    /// (left, right) to (rank, what they merge to).
    rules: HashMap<(u32, u32), (u32, u32)>,
    /// The token of each single byte, or [`NONE`]: some vocabularies lack bytes that their training text
    /// never had.
    byte_tokens: [u32; 256],
}

impl Merges {
    /// Takes rules of the form `left right` in the order of their rank.
    ///
    /// # Errors
    /// A part or the product of a rule is no token. Rules that touch a control token are left out: text
    /// would become control tokens.
    pub(crate) fn new<'a>(
        vocabulary: &Vocabulary,
        rules: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, TokenizerError> {
        let mut byte_tokens = [NONE; 256];
        for (byte, token) in (0u8..=255).zip(&mut byte_tokens) {
            *token = vocabulary.find(&[byte]).filter(|&id| is_text(vocabulary, id)).unwrap_or(NONE);
        }
        let find = |rank: usize, text: &str| {
            let bytes = super::vocabulary::bytes_of_text(text);
            let id = bytes.and_then(|bytes| vocabulary.find(&bytes));
            id.ok_or_else(|| TokenizerError::UnknownMergeToken { rank, token: text.to_owned() })
        };
        let mut resolved = HashMap::with_capacity(rules.len());
        let mut product = String::new();
        for (rank, (left, right)) in rules.enumerate() {
            product.clear();
            product.push_str(left);
            product.push_str(right);
            let pair = (find(rank, left)?, find(rank, right)?);
            let merged = find(rank, &product)?;
            if ![pair.0, pair.1, merged].into_iter().all(|id| is_text(vocabulary, id)) {
                tracing::debug!(rank, product, "left out a merge rule of a control token");
                continue;
            }
            // The first of two equal rules wins, as it does in the reference implementations' tables.
            resolved.entry(pair).or_insert((rank as u32, merged));
        }
        Ok(Self { rules: resolved, byte_tokens })
    }

    /// Whether every byte has a token, so that any text survives encoding.
    pub(crate) fn covers_all_bytes(&self) -> bool {
        !self.byte_tokens.contains(&NONE)
    }

    /// Appends the tokens of one piece to `out`. Bytes without a token are left out.
    pub(crate) fn merge(&self, piece: &[u8], scratch: &mut Scratch, out: &mut Vec<u32>) {
        for part in piece.chunks(MAX_PIECE_BYTES) {
            self.merge_part(part, scratch, out);
        }
    }

    fn merge_part(&self, piece: &[u8], scratch: &mut Scratch, out: &mut Vec<u32>) {
        let Scratch { symbols, candidates, steps } = scratch;
        let count = piece.len() as u32; // at most MAX_PIECE_BYTES
        symbols.clear();
        symbols.extend((0..count).zip(piece).map(|(i, &byte)| Symbol {
            token: self.byte_tokens[byte as usize],
            previous: i.wrapping_sub(1), // NONE for the first
            next: if i + 1 == count { NONE } else { i + 1 },
        }));
        candidates.clear();
        for left in 1..count {
            self.offer(symbols, candidates, left - 1);
        }
        while let Some(Reverse(candidate)) = candidates.pop() {
            *steps += 1;
            let Candidate { left, pair, merged, .. } = candidate;
            let right = symbols[left as usize].next;
            // A candidate is stale once either side was merged away or grew.
            if right == NONE || (symbols[left as usize].token, symbols[right as usize].token) != pair {
                continue;
            }
            let next = symbols[right as usize].next;
            let symbol = &mut symbols[left as usize];
            symbol.token = merged;
            symbol.next = next;
            let previous = symbol.previous;
            // A symbol that was merged away matches no pair: its own next is cut and its token is none.
            symbols[right as usize] = Symbol { token: NONE, previous: NONE, next: NONE };
            if next != NONE {
                symbols[next as usize].previous = left;
                self.offer(symbols, candidates, left);
            }
            if previous != NONE {
                self.offer(symbols, candidates, previous);
            }
        }
        // What was merged away has no token either.
        out.extend(symbols.iter().map(|symbol| symbol.token).filter(|&token| token != NONE));
    }

    /// Puts the pair that begins at `left` among the candidates if it has a rule.
    fn offer(&self, symbols: &[Symbol], candidates: &mut BinaryHeap<Reverse<Candidate>>, left: u32) {
        let pair = (symbols[left as usize].token, symbols[symbols[left as usize].next as usize].token);
        if let Some(&(rank, merged)) = self.rules.get(&pair) {
            candidates.push(Reverse(Candidate { rank, left, pair, merged }));
        }
    }
}

/// Whether a token may be made out of plain text.
fn is_text(vocabulary: &Vocabulary, id: u32) -> bool {
    !matches!(vocabulary.kind(id), None | Some(TokenKind::Control | TokenKind::Unknown))
}

/// Buffers that one call of [`Merges::merge`] leaves to the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    symbols: Vec<Symbol>,
    candidates: BinaryHeap<Reverse<Candidate>>,
    /// Candidates looked at so far: the measure of work that tests bound.
    pub(crate) steps: u64,
}

/// One symbol of the piece, at the position of its first byte.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    token: u32,
    previous: u32,
    next: u32,
}

/// A pair that may be merged; ordered by rank, then from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: u32,
    left: u32,
    pair: (u32, u32),
    merged: u32,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::vocabulary::char_of;
    use super::*;

    /// All bytes, then the products of `rules`.
    fn vocabulary(rules: &[(&str, &str)]) -> Vocabulary {
        let mut tokens: Vec<String> = (0..=255).map(|byte| char_of(byte).to_string()).collect();
        for (left, right) in rules {
            let product = format!("{left}{right}");
            if !tokens.contains(&product) {
                tokens.push(product);
            }
        }
        let kinds = vec![TokenKind::Normal; tokens.len()];
        Vocabulary::new(&tokens, kinds).unwrap()
    }

    fn merges(vocabulary: &Vocabulary, rules: &[(&str, &str)]) -> Merges {
        Merges::new(vocabulary, rules.iter().copied()).unwrap()
    }

    /// The definition: find the best pair by a scan, merge it, repeat.
    fn merge_by_scan(merges: &Merges, piece: &[u8]) -> Vec<u32> {
        let mut symbols: Vec<u32> = piece.iter().map(|&byte| merges.byte_tokens[byte as usize]).collect();
        loop {
            let best = (1..symbols.len())
                .filter_map(|i| {
                    merges.rules.get(&(symbols[i - 1], symbols[i])).map(|&(rank, to)| (rank, i, to))
                })
                .min();
            let Some((_, i, merged)) = best else { return symbols };
            symbols[i - 1] = merged;
            symbols.remove(i);
        }
    }

    const RULES: [(&str, &str); 12] = [
        ("a", "b"),
        ("b", "a"),
        ("a", "a"),
        ("aa", "aa"),
        ("ab", "ab"),
        ("Ġ", "a"),
        ("Ġa", "b"),
        ("c", "aa"),
        ("caa", "aa"),
        ("b", "c"),
        ("aab", "c"),
        ("aa", "b"),
    ];

    #[test]
    fn lower_ranks_go_first_and_equals_from_the_left() {
        let vocabulary = vocabulary(&RULES);
        let merges = merges(&vocabulary, &RULES);
        let tokens = |text: &str| {
            let mut out = Vec::new();
            merges.merge(text.as_bytes(), &mut Scratch::default(), &mut out);
            out.iter()
                .map(|&id| String::from_utf8(vocabulary.get(id).unwrap().to_vec()).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(tokens(""), [""; 0]);
        assert_eq!(tokens("z"), ["z"]);
        assert_eq!(tokens("aba"), ["ab", "a"]);
        assert_eq!(tokens("aaa"), ["aa", "a"]);
        assert_eq!(tokens("abab"), ["abab"]);
        assert_eq!(tokens(" ab"), [" ", "ab"]);
    }

    #[test]
    fn work_grows_linearly_on_hostile_runs() {
        let rules: Vec<(String, String)> =
            (0..10).map(|i| ("a".repeat(1 << i), "a".repeat(1 << i))).collect();
        let rules: Vec<(&str, &str)> = rules.iter().map(|(l, r)| (l.as_str(), r.as_str())).collect();
        let vocabulary = vocabulary(&rules);
        let merges = merges(&vocabulary, &rules);
        for n in [1usize << 10, 1 << 14, 1 << 18] {
            let mut scratch = Scratch::default();
            let mut out = Vec::new();
            merges.merge("a".repeat(n).as_bytes(), &mut scratch, &mut out);
            assert_eq!(out.len(), n / 1024);
            assert!(scratch.steps <= 3 * n as u64, "{} steps for {n} bytes", scratch.steps);
        }
    }

    #[test]
    fn bytes_without_a_token_are_left_out_and_part_their_neighbours() {
        let tokens: Vec<String> = ["a", "b", "ab"].map(String::from).to_vec();
        let vocabulary = Vocabulary::new(&tokens, vec![TokenKind::Normal; 3]).unwrap();
        let merges = merges(&vocabulary, &[("a", "b")]);
        assert!(!merges.covers_all_bytes());
        let mut out = Vec::new();
        merges.merge(b"ab?a?b", &mut Scratch::default(), &mut out);
        assert_eq!(out, [2, 0, 1]);
    }

    #[test]
    fn rules_outside_the_vocabulary_are_refused() {
        let tokens: Vec<String> = ["a", "b", "ab", "<|x|>"].map(String::from).to_vec();
        let kinds = vec![TokenKind::Normal, TokenKind::Normal, TokenKind::Normal, TokenKind::Control];
        let vocabulary = Vocabulary::new(&tokens, kinds).unwrap();
        let refuse =
            |rule: (&str, &str)| Merges::new(&vocabulary, [("a", "b"), rule].into_iter()).unwrap_err();
        for rule in [("a", "c"), ("c", "a"), ("a", "a"), ("", "a"), ("a", ""), ("日", "a")] {
            assert!(matches!(refuse(rule), TokenizerError::UnknownMergeToken { rank: 1, .. }), "{rule:?}");
        }
    }

    proptest! {
        #[test]
        fn the_heap_merges_as_the_scan_does(text in "[abc z\\x00é]{0,60}") {
            let vocabulary = vocabulary(&RULES);
            let merges = merges(&vocabulary, &RULES);
            let mut out = Vec::new();
            merges.merge(text.as_bytes(), &mut Scratch::default(), &mut out);
            prop_assert_eq!(out, merge_by_scan(&merges, text.as_bytes()));
        }

        #[test]
        fn random_rules_merge_as_the_scan_does(
            picks in prop::collection::vec((0usize..40, 0usize..40), 0..60),
            text in "[abc]{0,80}",
        ) {
            let mut tokens: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
            let mut rules: Vec<(String, String)> = Vec::new();
            for (left, right) in picks {
                let (left, right) = (tokens[left % tokens.len()].clone(), tokens[right % tokens.len()].clone());
                let product = format!("{left}{right}");
                if product.len() <= 16 {
                    rules.push((left, right));
                    if !tokens.contains(&product) {
                        tokens.push(product);
                    }
                }
            }
            let kinds = vec![TokenKind::Normal; tokens.len()];
            let vocabulary = Vocabulary::new(&tokens, kinds).unwrap();
            let merges = Merges::new(&vocabulary, rules.iter().map(|(l, r)| (l.as_str(), r.as_str()))).unwrap();
            let mut out = Vec::new();
            merges.merge(text.as_bytes(), &mut Scratch::default(), &mut out);
            prop_assert_eq!(out, merge_by_scan(&merges, text.as_bytes()));
        }
    }
}
