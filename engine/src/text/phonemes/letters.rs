//! Letter to sound: what a word that no lexicon knows most likely sounds like.
//!
//! A two-layer bidirectional gated recurrent network (Cho et al. 2014) reads the letters; a third one writes one
//! chunk of zero to three phonemes per letter, from what was read there and the chunk before. As many steps as
//! letters: it can't loop, skip or run away, which networks with free attention do on odd words. A beam of a few
//! hypotheses keeps exactly one primary stress in the word. One model serves both accents.
//!
//! The weights stand in `letters.bin` beside this file: 1.2 MB, int8 rows with a scale each, trained from the
//! lexicons by `tests/phonemes/train_letters.py`. A joint n-gram model of that size keeps too few of its counts,
//! and training anything at load would cost every start what this costs once.
//!
//! Layout, little-endian: `RPLS`; eight u32: version 1, letters, chunks, letter, accent, reader, chunk and writer
//! widths; the letters; each chunk as length byte and UTF-8; then matrices, each all row scales (f32) before all rows
//! (i8), and biases (f32): letter, accent and chunk embeddings (one chunk row more, for "nothing yet"); for each
//! of layer 1 forward, backward, layer 2 forward, backward, writer: input and recurrent matrix, input and
//! recurrent bias (gates in the order reset, update, new); output matrix and bias.

use std::cmp::Ordering;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::alphabet::{Accent, PRIMARY, code, emphasize, is_stressable};

static BUILT_IN: &[u8] = include_bytes!("letters.bin");
const MAGIC: &[u8] = b"RPLS";
/// Longer words are read in pieces: the model saw none longer.
const MAX_LETTERS: usize = 28;
/// Pieces of a word that are read: what is longer than any word in any language ends there, so that a page without a
/// space takes no more time than a sentence.
const MAX_PIECES: usize = 4;
const BEAM: usize = 4;

/// Why a model file was refused.
#[derive(Debug, thiserror::Error)]
pub enum LetterModelError {
    /// The file ends early.
    #[error("the letter-to-sound model ends at byte {at} where {wanted} more were expected; make it again")]
    Truncated {
        /// Offset of the missing data.
        at: usize,
        /// Bytes that should have followed.
        wanted: usize,
    },
    /// A header field or table entry makes no sense.
    #[error("the letter-to-sound model is no file of this version: {0}; make it again")]
    Format(&'static str),
}

/// A matrix of `rows` by `cols`, row after row.
struct Matrix {
    cols: usize,
    data: Vec<f32>,
}

impl Matrix {
    fn row(&self, i: usize) -> &[f32] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// `out[i] += row(i)[skip..][..x.len()] · x`
    fn add_product(&self, skip: usize, x: &[f32], out: &mut [f32]) {
        for (i, o) in out.iter_mut().enumerate() {
            *o += dot(&self.row(i)[skip..skip + x.len()], x);
        }
    }
}

/// Eight running sums, added in one fixed order: the same result on every machine.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    for (x, y) in a8.iter().zip(b8) {
        for k in 0..8 {
            sums[k] += x[k] * y[k];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f32>() + rest
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// One gated recurrent layer in one direction.
struct Gru {
    hidden: usize,
    input: Matrix,
    recurrent: Matrix,
    input_bias: Vec<f32>,
    recurrent_bias: Vec<f32>,
}

impl Gru {
    /// One step. `from_input`: input matrix times input plus its bias, `3 * hidden` values.
    fn step(&self, from_input: &[f32], state: &mut [f32]) {
        let h = self.hidden;
        let mut from_state = self.recurrent_bias.clone();
        self.recurrent.add_product(0, state, &mut from_state);
        for i in 0..h {
            let reset = sigmoid(from_input[i] + from_state[i]);
            let update = sigmoid(from_input[h + i] + from_state[h + i]);
            let new = (from_input[2 * h + i] + reset * from_state[2 * h + i]).tanh();
            state[i] = (1.0 - update) * new + update * state[i];
        }
    }

    /// Runs over all inputs in the given order and puts each state at `offset` in that input's output row.
    fn run(
        &self,
        inputs: &[Vec<f32>],
        order: impl Iterator<Item = usize>,
        offset: usize,
        out: &mut [Vec<f32>],
    ) {
        let mut state = vec![0.0; self.hidden];
        for i in order {
            let mut from_input = self.input_bias.clone();
            self.input.add_product(0, &inputs[i], &mut from_input);
            self.step(&from_input, &mut state);
            out[i][offset..offset + self.hidden].copy_from_slice(&state);
        }
    }
}

/// A trained letter-to-sound model.
pub struct LetterModel {
    letters: Vec<u8>,
    /// Phonemes of each chunk, and whether they hold a primary stress.
    chunks: Vec<(String, bool)>,
    letter: Matrix,
    accent: Matrix,
    chunk: Matrix,
    reader: [[Gru; 2]; 2],
    writer: Gru,
    out: Matrix,
    out_bias: Vec<f32>,
}

impl std::fmt::Debug for LetterModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LetterModel").field("chunks", &self.chunks.len()).finish_non_exhaustive()
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], LetterModelError> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or(LetterModelError::Truncated { at: self.at, wanted: count })?;
        let part = &self.bytes[self.at..end];
        self.at = end;
        Ok(part)
    }

    fn floats(&mut self, count: usize) -> Result<Vec<f32>, LetterModelError> {
        let (words, _) = self.take(count * 4)?.as_chunks::<4>();
        let floats: Vec<f32> = words.iter().map(|w| f32::from_le_bytes(*w)).collect();
        if floats.iter().any(|v| !v.is_finite()) {
            return Err(LetterModelError::Format("a number is not finite"));
        }
        Ok(floats)
    }

    fn matrix(&mut self, rows: usize, cols: usize) -> Result<Matrix, LetterModelError> {
        let scales = self.floats(rows)?;
        let bytes = self.take(rows * cols)?;
        let data = bytes.iter().enumerate().map(|(i, &b)| f32::from(b as i8) * scales[i / cols]).collect();
        Ok(Matrix { cols, data })
    }

    fn gru(&mut self, inputs: usize, hidden: usize) -> Result<Gru, LetterModelError> {
        Ok(Gru {
            hidden,
            input: self.matrix(3 * hidden, inputs)?,
            recurrent: self.matrix(3 * hidden, hidden)?,
            input_bias: self.floats(3 * hidden)?,
            recurrent_bias: self.floats(3 * hidden)?,
        })
    }
}

/// A partly written word.
#[derive(Clone)]
struct Hypothesis {
    score: f32,
    chunks: Vec<usize>,
    state: Vec<f32>,
    stressed: bool,
}

impl LetterModel {
    /// The model that comes with the engine.
    ///
    /// # Errors
    /// Only if the built-in file is damaged.
    pub fn built_in() -> Result<Self, LetterModelError> {
        Self::from_bytes(BUILT_IN)
    }

    /// Reads a model file.
    ///
    /// # Errors
    /// A file of another kind or version, or one that ends early.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LetterModelError> {
        let mut r = Reader { bytes, at: 0 };
        if r.take(MAGIC.len())? != MAGIC {
            return Err(LetterModelError::Format("it does not begin with RPLS"));
        }
        let mut header = [0usize; 8];
        for field in &mut header {
            let (words, _) = r.take(4)?.as_chunks::<4>();
            *field = u32::from_le_bytes(words[0]) as usize;
        }
        let [version, letter_count, chunk_count, letter_dim, accent_dim, hidden, chunk_dim, written] = header;
        if version != 1 {
            return Err(LetterModelError::Format("its version is not 1"));
        }
        if header[1..].iter().any(|&v| v == 0 || v > 2048) {
            return Err(LetterModelError::Format("a width is not between 1 and 2048"));
        }
        let letters = r.take(letter_count)?.to_vec();
        let mut chunks = Vec::with_capacity(chunk_count);
        for _ in 0..chunk_count {
            let len = usize::from(r.take(1)?[0]);
            let text = std::str::from_utf8(r.take(len)?);
            let text = text.map_err(|_| LetterModelError::Format("a chunk is not UTF-8"))?;
            if text.chars().any(|c| code(c).is_none()) {
                return Err(LetterModelError::Format("a chunk has a character that is no phoneme"));
            }
            chunks.push((text.to_owned(), text.contains(PRIMARY)));
        }
        let model = Self {
            letters,
            chunks,
            letter: r.matrix(letter_count, letter_dim)?,
            accent: r.matrix(2, accent_dim)?,
            chunk: r.matrix(chunk_count + 1, chunk_dim)?,
            reader: [
                [r.gru(letter_dim + accent_dim, hidden)?, r.gru(letter_dim + accent_dim, hidden)?],
                [r.gru(2 * hidden, hidden)?, r.gru(2 * hidden, hidden)?],
            ],
            writer: r.gru(2 * hidden + chunk_dim, written)?,
            out: r.matrix(chunk_count, written)?,
            out_bias: r.floats(chunk_count)?,
        };
        if r.at != bytes.len() {
            return Err(LetterModelError::Format("bytes follow its end"));
        }
        Ok(model)
    }

    /// The most likely phonemes of a word, or `None` if no letter of it is known. Case and diacritics do not
    /// matter; characters that are no letters are passed over; a word of more than 28 letters is read in pieces, and what is behind its 112th not at all.
    pub fn phonemes(&self, word: &str, accent: Accent) -> Option<String> {
        let known = |b| self.letters.iter().position(|&l| l == b);
        let start: String = word.chars().take(2 * MAX_PIECES * MAX_LETTERS).collect();
        let letters: Vec<usize> =
            fold(&start).bytes().filter_map(known).take(MAX_PIECES * MAX_LETTERS).collect();
        let pieces = letters.len().div_ceil(MAX_LETTERS);
        let mut out = String::new();
        for piece in letters.chunks(letters.len().div_ceil(pieces.max(1)).max(1)) {
            out += &self.piece(piece, accent);
        }
        (!out.is_empty()).then_some(out)
    }

    fn read(&self, letters: &[usize], accent: Accent) -> Vec<Vec<f32>> {
        let accent = self.accent.row(match accent {
            Accent::American => 0,
            Accent::British => 1,
        });
        let mut rows: Vec<Vec<f32>> =
            letters.iter().map(|&l| [self.letter.row(l), accent].concat()).collect();
        for [forward, backward] in &self.reader {
            let mut next = vec![vec![0.0; 2 * forward.hidden]; rows.len()];
            forward.run(&rows, 0..rows.len(), 0, &mut next);
            backward.run(&rows, (0..rows.len()).rev(), forward.hidden, &mut next);
            rows = next;
        }
        rows
    }

    fn piece(&self, letters: &[usize], accent: Accent) -> String {
        let start = vec![0.0; self.writer.hidden];
        // The model wrote both accents' letters; those of the other one are no choice.
        let own: Vec<bool> =
            self.chunks.iter().map(|(text, _)| text.chars().all(|c| accent.has(c))).collect();
        let mut beam = vec![Hypothesis { score: 0.0, chunks: Vec::new(), state: start, stressed: false }];
        for row in self.read(letters, accent) {
            let mut from_row = self.writer.input_bias.clone();
            self.writer.input.add_product(0, &row, &mut from_row);
            // (score, parent, chunk); a second primary stress is not written.
            let mut next: Vec<(f32, usize, usize)> = Vec::with_capacity(beam.len() * self.chunks.len());
            for (parent, h) in beam.iter_mut().enumerate() {
                let before = self.chunk.row(h.chunks.last().copied().unwrap_or(self.chunks.len()));
                let mut from_input = from_row.clone();
                self.writer.input.add_product(row.len(), before, &mut from_input);
                self.writer.step(&from_input, &mut h.state);
                let mut logits = self.out_bias.clone();
                self.out.add_product(0, &h.state, &mut logits);
                let top = logits.iter().copied().fold(f32::MIN, f32::max);
                let norm = top + logits.iter().map(|l| (l - top).exp()).sum::<f32>().ln();
                for (chunk, logit) in logits.iter().enumerate() {
                    if own[chunk] && !(h.stressed && self.chunks[chunk].1) {
                        next.push((h.score + logit - norm, parent, chunk));
                    }
                }
            }
            let better = |a: &(f32, usize, usize), b: &(f32, usize, usize)| {
                b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal).then((a.1, a.2).cmp(&(b.1, b.2)))
            };
            if next.len() > BEAM {
                next.select_nth_unstable_by(BEAM, better);
                next.truncate(BEAM);
            }
            next.sort_by(better);
            beam = next
                .into_iter()
                .map(|(score, parent, chunk)| {
                    let mut h = beam[parent].clone();
                    h.score = score;
                    h.stressed |= self.chunks[chunk].1;
                    h.chunks.push(chunk);
                    h
                })
                .collect();
        }
        let best = beam.iter().find(|h| h.stressed).or(beam.first());
        let text: String = best.iter().flat_map(|h| &h.chunks).map(|&c| self.chunks[c].0.as_str()).collect();
        if text.contains(PRIMARY) || !text.contains(is_stressable) { text } else { emphasize(&text) }
    }
}

/// Lower case without diacritics: "Café" gives "cafe".
pub(super) fn fold(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for c in word.nfkd().filter(|&c| !is_combining_mark(c)).flat_map(char::to_lowercase) {
        match c {
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'ø' => out.push('o'),
            'ł' => out.push('l'),
            'đ' | 'ð' => out.push('d'),
            'þ' => out.push_str("th"),
            'ı' => out.push('i'),
            '’' | '‘' | 'ʼ' => out.push('\''),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_come_out_as_they_sound() {
        let model = LetterModel::built_in().unwrap();
        for (word, us, gb) in [
            ("tramble", "tɹˈæmbᵊl", "tɹˈambᵊl"),
            ("flindering", "flˈɪndəɹɪŋ", "flˈɪndəɹɪŋ"),
            ("Glorking", "ɡlˈɔɹkɪŋ", "ɡlˈɔːkɪŋ"),
            ("splane", "splˈAn", "splˈAn"),
        ] {
            assert_eq!(model.phonemes(word, Accent::American).as_deref(), Some(us), "{word}");
            assert_eq!(model.phonemes(word, Accent::British).as_deref(), Some(gb), "{word}");
        }
    }

    #[test]
    fn any_input_gives_one_primary_stress_or_nothing() {
        let model = LetterModel::built_in().unwrap();
        for word in
            ["", "123", "你好", "zzz", "é", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "Nguyễn", "straße", "x", "'"]
        {
            for accent in [Accent::American, Accent::British] {
                if let Some(p) = model.phonemes(word, accent) {
                    assert!(p.chars().all(|c| accent.has(c)), "{word}: {p}");
                    if fold(word).len() <= MAX_LETTERS {
                        assert!(p.matches(PRIMARY).count() <= 1, "{word}: {p}");
                    }
                }
            }
        }
        assert_eq!(model.phonemes("42", Accent::American), None);
        let long = "supercalifragilistic".repeat(40);
        let said = model.phonemes(&long, Accent::American).unwrap();
        assert!((80..300).contains(&said.chars().count()), "{said}");
        assert_eq!(model.phonemes(&long.repeat(100), Accent::American).unwrap(), said);
    }

    #[test]
    fn diacritics_fold() {
        assert_eq!(fold("Čapek’s Æther"), "capek's aether");
    }

    #[test]
    fn damaged_models_are_refused() {
        for len in [0, 3, 4, 20, 36, 70, 500, 5000, BUILT_IN.len() - 1] {
            assert!(LetterModel::from_bytes(&BUILT_IN[..len]).is_err(), "{len}");
        }
        let mut longer = BUILT_IN.to_vec();
        longer.push(0);
        assert!(LetterModel::from_bytes(&longer).is_err());
        for (at, value) in [(0, b'X'), (4, 2), (8, 0), (15, 255)] {
            let mut damaged = BUILT_IN.to_vec();
            damaged[at] = value;
            assert!(LetterModel::from_bytes(&damaged).is_err(), "{at}");
        }
    }
}
