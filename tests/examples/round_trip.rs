//! Speaks the Harvard sentences and writes what our recogniser understands, of ours and of another engine's recordings.
//!
//! `round_trip FOLDER VOICE...` writes `FOLDER/ours-VOICE-NN.wav`, reads `FOLDER/peer-VOICE-NN.wav` where it is there, and
//! prints one line of JSON for each: `tests/speech/README.md` says what becomes of them.

#![expect(clippy::print_stdout, reason = "the output of a tool for the terminal")]

use std::path::Path;

use repartee_audio::wav::{self, Format};
use repartee_engine::backends::cpu::{Cpu, CpuOptions};
use repartee_engine::models::kokoro::Voice;
use repartee_engine::stages::speak::RATE_HZ;
use repartee_engine::text::clauses::ClauseEnd;
use repartee_tests::speech;

const SENTENCES: usize = 20;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, voices @ ..] = &args[..] else { panic!("usage: round_trip FOLDER VOICE...") };
    let texts = include_str!("../references/misaki_sentences.txt").lines().take(SENTENCES);
    let texts: Vec<&str> = texts.collect();
    let backend = Cpu::new(CpuOptions::default());
    let mut speaker = speech::speaker(&backend);
    let mut recogniser = speech::recogniser(&backend);
    for name in voices {
        let phonemizer = speech::phonemizer(name);
        speaker.set_voice(Voice::open(speech::voice_file(name)).unwrap());
        for (i, text) in texts.iter().enumerate() {
            let phonemes = phonemizer.phonemize(text).to_kokoro_string();
            let sound = speaker.clause(&phonemes, ClauseEnd::Sentence, None).unwrap();
            let file = |engine: &str| Path::new(folder).join(format!("{engine}-{name}-{:02}.wav", i + 1));
            wav::write(&file("ours"), &sound, RATE_HZ, Format::Int16).unwrap();
            for engine in ["ours", "peer"] {
                if !file(engine).exists() {
                    continue;
                }
                let audio = wav::read_mono(&file(engine)).unwrap();
                let samples =
                    repartee_audio::resample::resample(&audio.samples, audio.rate_hz, 16_000).unwrap();
                let heard = recogniser.transcribe(&samples, &mut |_| {}, None).unwrap().text;
                let row = serde_json::json!({"engine": engine, "voice": name, "text": text, "heard": heard});
                println!("{row}");
            }
        }
    }
}
