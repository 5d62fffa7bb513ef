//! Word error rate of the listening stages on whole recordings, against the published texts.
//!
//! Detector, cutting into utterances and recogniser are those of `talk`; only the waiting is left out.

use anyhow::Result;
use repartee_engine::models::whisper::Whisper;
use repartee_engine::stages::listen;
use repartee_engine::stages::transcribe::Transcriber;
use serde_json::Value;

use super::Row;
use super::clips::clip;
use crate::commands::setup;

/// One row for each recording: words wrong, at most as many as the other engine gets wrong in its worse mode.
pub(super) fn check(model: &str, files: &Value, whisper: Whisper) -> Result<Vec<Row>> {
    let mut transcriber = Transcriber::new(whisper, "en");
    let mut rows = Vec::new();
    for name in ["two_cities", "beckett", "capital", "egg"] {
        let published = files[name]["published"].as_str().unwrap_or_default();
        let peer = ["without_timestamps", "with_timestamps"].map(|mode| &files[name][mode]["wrong_words"]);
        let peer = peer.map(|wrong| wrong.as_u64().unwrap_or(0));
        let samples = clip(name)?;
        let mut heard = Vec::new();
        for span in listen::utterances(&mut setup::listener()?, &samples)? {
            heard.push(transcriber.transcribe(&samples[span], &mut |_| {}, None)?.text);
        }
        let (wrong, total) = errors(published, &heard.join(" "));
        let limit = peer.into_iter().max().unwrap_or(0);
        let note =
            format!("{:.1} % of {total}; faster-whisper {} or {}", rate(wrong, total), peer[0], peer[1]);
        rows.push(Row::new(model, format!("{name}: words wrong"), wrong as f64, limit as f64).note(note));
    }
    Ok(rows)
}

fn rate(wrong: usize, total: usize) -> f64 {
    100.0 * wrong as f64 / total.max(1) as f64
}

/// Words that must be changed, added or taken out (Levenshtein distance over words without case and punctuation),
/// and how many words the true text has.
fn errors(truth: &str, heard: &str) -> (usize, usize) {
    let (truth, heard) = (words(truth), words(heard));
    let mut row: Vec<usize> = (0..=heard.len()).collect();
    for (i, expected) in truth.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, got) in heard.iter().enumerate() {
            let changed = diagonal + usize::from(expected != got);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    (row[heard.len()], truth.len())
}

fn words(text: &str) -> Vec<String> {
    let letters = |c: char| c.is_alphanumeric() || c == '\'';
    text.to_lowercase().split(|c| !letters(c)).filter(|w| !w.is_empty()).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_changed_missing_and_added_words() {
        assert_eq!(errors("Ever tried. Ever failed.", "ever tried, ever failed"), (0, 4));
        assert_eq!(errors("Ever tried. Ever failed.", "Never tried, ever failed."), (1, 4));
        assert_eq!(errors("one two three", "two three"), (1, 3));
        assert_eq!(errors("one two three", "one two and three"), (1, 3));
        assert_eq!(errors("one two three", ""), (3, 3));
        assert_eq!(errors("", "you"), (1, 0));
        assert_eq!(errors("a b c d", "b a d c"), (3, 4));
    }
}
