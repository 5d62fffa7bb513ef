//! The speaker, the recogniser and the phonemes of the product's own models, for tests that listen.

use std::path::PathBuf;

use repartee_engine::backends::Backend;
use repartee_engine::models::kokoro::{Kokoro, Voice};
use repartee_engine::models::whisper::Whisper;
use repartee_engine::stages::speak::{Speaker, SpeechSettings};
use repartee_engine::stages::transcribe::Transcriber;
use repartee_engine::text::phonemes::{Accent, Lexicon, Phonemizer};

use crate::references::model_file;

/// The file of a voice.
///
/// # Panics
/// If it is not in the cache, as all of this module.
pub fn voice_file(name: &str) -> PathBuf {
    model_file("kokoro-voices", &format!("{name}.bin"))
}

/// A speaker with the default voice.
///
/// # Panics
/// As [`voice_file`].
pub fn speaker(backend: &dyn Backend) -> Speaker {
    let file = |name| model_file("kokoro-82m", name);
    let kokoro = Kokoro::load(file("kokoro-v1.0.int8.onnx"), file("vocab.json"), backend);
    let voice = Voice::open(voice_file("af_heart")).expect("a voice");
    Speaker::new(kokoro.expect("the model loads"), voice, SpeechSettings::default())
}

/// Whisper base, English.
///
/// # Panics
/// As [`voice_file`].
pub fn recogniser(backend: &dyn Backend) -> Transcriber {
    let [weights, tokenizer, config] =
        ["model.bin", "tokenizer.json", "config.json"].map(|f| model_file("whisper-base", f));
    Transcriber::new(Whisper::load(weights, tokenizer, config, backend).expect("a recogniser"), "en")
}

/// The phonemes of a voice's accent.
///
/// # Panics
/// As [`voice_file`].
pub fn phonemizer(voice: &str) -> Phonemizer {
    let (accent, name) =
        if voice.starts_with('b') { (Accent::British, "gb") } else { (Accent::American, "us") };
    let [gold, silver] = ["gold", "silver"].map(|rank| {
        let path = model_file("misaki-en", &format!("{name}_{rank}.json"));
        std::fs::read(path).expect("a lexicon")
    });
    Phonemizer::new(Lexicon::from_json(accent, &gold, &silver).expect("a lexicon")).expect("a phonemizer")
}
