//! Voices: for each length of a text a row of style, of which the first half goes to the decoder and the second half to
//! the predictors of prosody.

use std::path::Path;

use crate::models::ModelError;

/// Rows of a voice: one for each number of tokens, 0 to 509.
pub(super) const ROWS: usize = 510;
/// Numbers of a row.
pub(super) const STYLE: usize = 256;

/// A voice, or a blend of several.
#[derive(Clone, PartialEq, Debug)]
pub struct Voice {
    rows: Vec<f32>,
}

/// Numbers of published voices stay below 4. Far larger ones take the model seconds and end in silence.
const LARGEST: f32 = 50.0;

impl Voice {
    /// Reads the published layout: 510 rows of 256 little-endian f32.
    ///
    /// # Errors
    /// Another size, or numbers that are not finite.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        let wrong = |problem: &str| ModelError::config("voice", format!("{} bytes", bytes.len()), problem);
        if bytes.len() != 4 * ROWS * STYLE {
            return Err(wrong("a voice has 510 rows of 256 f32: the file is damaged or for another model"));
        }
        let rows: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        if rows.iter().any(|x| !x.is_finite() || x.abs() > LARGEST) {
            return Err(wrong("some of its numbers are no style's: fetch the file again"));
        }
        Ok(Self { rows })
    }

    /// Reads a `.bin` file.
    ///
    /// # Errors
    /// As [`Self::from_bytes`], or a file that can't be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let bytes = std::fs::read(path)
            .map_err(|source| ModelError::Io { path: path.display().to_string(), source })?;
        Self::from_bytes(&bytes)
    }

    /// The weighted mean of voices.
    ///
    /// # Errors
    /// No voice, or weights that are negative, not finite or all zero.
    pub fn blend(parts: &[(Self, f32)]) -> Result<Self, ModelError> {
        // In f64 no sum of weights overflows.
        let total: f64 = parts.iter().map(|(_, w)| f64::from(*w)).sum();
        if parts.iter().any(|(_, w)| !w.is_finite() || *w < 0.0) || !total.is_finite() || total <= 0.0 {
            let weights: Vec<f32> = parts.iter().map(|(_, w)| *w).collect();
            let problem = "the weights of a blend are not negative, and at least one is above zero";
            return Err(ModelError::config("voice", format!("{weights:?}"), problem));
        }
        let mut rows = vec![0.0; ROWS * STYLE];
        for (voice, weight) in parts {
            let share = (f64::from(*weight) / total) as f32;
            rows.iter_mut().zip(&voice.rows).for_each(|(sum, x)| *sum += x * share);
        }
        Ok(Self { rows })
    }

    /// The style for a text of `tokens` tokens, pads not counted.
    pub fn style(&self, tokens: usize) -> &[f32] {
        let row = tokens.min(ROWS - 1);
        &self.rows[row * STYLE..(row + 1) * STYLE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voice(f: impl Fn(usize) -> f32) -> Voice {
        let bytes: Vec<u8> = (0..ROWS * STYLE).flat_map(|i| f(i).to_le_bytes()).collect();
        Voice::from_bytes(&bytes).unwrap()
    }

    #[test]
    fn rows_follow_the_length_and_end_at_the_last() {
        let v = voice(|i| (i / STYLE) as f32 / 16.0);
        assert_eq!(
            [v.style(0)[0], v.style(33)[255], v.style(509)[0], v.style(510)[9]],
            [0., 33. / 16., 509. / 16., 509. / 16.]
        );
    }

    #[test]
    fn numbers_that_are_no_styles_are_refused() {
        for number in [f32::NAN, f32::INFINITY, 1e38, -100.0] {
            let bytes: Vec<u8> = (0..ROWS * STYLE).flat_map(|_| number.to_le_bytes()).collect();
            assert!(Voice::from_bytes(&bytes).is_err(), "{number}");
        }
    }

    #[test]
    fn blends_are_means_and_nonsense_is_refused() {
        let (a, b) = (voice(|_| 1.0), voice(|_| 5.0));
        let half = Voice::blend(&[(a.clone(), 3.0), (b, 1.0)]).unwrap();
        assert!((half.style(7)[7] - 2.0).abs() < 1e-6);
        assert_eq!(Voice::blend(&[(a.clone(), 0.3)]).unwrap().style(1)[0], 1.0);
        for weights in [vec![], vec![0.0], vec![-1.0, 3.0], vec![f32::NAN], vec![f32::INFINITY]] {
            let parts: Vec<_> = weights.into_iter().map(|w| (a.clone(), w)).collect();
            assert!(Voice::blend(&parts).is_err());
        }
        assert!(Voice::from_bytes(&[0; 1024]).is_err());
        let nan: Vec<u8> = (0..ROWS * STYLE).flat_map(|_| f32::NAN.to_le_bytes()).collect();
        assert!(Voice::from_bytes(&nan).is_err());
    }
}
