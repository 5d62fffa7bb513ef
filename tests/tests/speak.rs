//! The speak stage on the real model: lengths around the limit, levels, cancelling.

use repartee_engine::backends::CancelToken;
use repartee_engine::backends::cpu::{Cpu, CpuOptions};
use repartee_engine::models::kokoro::{Kokoro, Voice};
use repartee_engine::stages::speak::{RATE_HZ, Speaker, SpeechSettings};
use repartee_engine::text::clauses::ClauseEnd;

fn speaker(settings: SpeechSettings) -> Speaker {
    let file = |model, name| repartee_models::resolve(model, name).expect("the default models are fetched");
    let backend = Cpu::new(CpuOptions::default());
    let weights = file("kokoro-82m", "kokoro-v1.0.int8.onnx");
    let kokoro = Kokoro::load(weights, file("kokoro-82m", "vocab.json"), &backend).expect("the model loads");
    let voice = Voice::open(file("kokoro-voices", "af_heart.bin")).expect("the voice loads");
    Speaker::new(kokoro, voice, settings)
}

/// Root mean square of each 20 ms.
fn loudness(samples: &[f32]) -> Vec<f32> {
    let rms = |w: &[f32]| (w.iter().map(|x| x * x).sum::<f32>() / w.len() as f32).sqrt();
    samples.chunks(RATE_HZ as usize / 50).map(rms).collect()
}

#[test]
fn any_number_of_tokens_is_spoken() {
    let mut speaker = speaker(SpeechSettings { speed: 4.0, seed: 0 });
    let word = "wˈɜɹd ";
    let secs = |speaker: &mut Speaker, tokens: usize| {
        let phonemes: String = word.chars().cycle().take(tokens - 1).chain(['.']).collect();
        let sound = speaker.clause(&phonemes, ClauseEnd::Sentence, None).expect("no error at any length");
        assert!(sound.iter().all(|s| s.is_finite() && s.abs() <= 1.0));
        sound.len() as f64 / f64::from(RATE_HZ)
    };
    let whole = secs(&mut speaker, 510);
    let cut = secs(&mut speaker, 511);
    // About as long as in one piece: nothing is left out, and the pieces' own silences are all that is added.
    assert!(whole > 4.0 && (cut - whole).abs() < 0.3 * whole, "{whole} {cut}");
    // Symbols that the model has no token for, and a text without any other.
    assert!(speaker.clause("汉字", ClauseEnd::Sentence, None).expect("skipped").is_empty());
    assert!(speaker.clause("...", ClauseEnd::Sentence, None).expect("nothing to say").is_empty());
}

#[test]
fn clauses_are_even_to_the_last_word() {
    let mut speaker = speaker(SpeechSettings::default());
    let mut levels = Vec::new();
    // "Yes." and "Six short words are said here."
    for phonemes in ["jˈɛs.", "sˈɪks ʃˈɔɹt wˈɜɹdz ɑɹ sˈɛd hˈɪɹ."] {
        let sound = speaker.clause(phonemes, ClauseEnd::Sentence, None).expect("speech");
        let windows = loudness(&sound);
        let top = windows.iter().copied().fold(0.0, f32::max);
        let spoken: Vec<f32> = windows.into_iter().filter(|w| *w > 0.1 * top).collect();
        let mean = |w: &[f32]| (w.iter().map(|x| x * x).sum::<f32>() / w.len() as f32).sqrt();
        let last = &spoken[spoken.len().saturating_sub(12)..];
        let off = 20.0 * (mean(last) / mean(&spoken)).log10();
        assert!(off.abs() < 6.0, "{phonemes}: the end is {off} dB off");
        levels.push(20.0 * mean(&spoken).log10());
        // Cut out of silence and followed by it: no click at either end.
        assert!(sound[0].abs() < 1e-3 && sound.last().is_some_and(|s| *s == 0.0));
    }
    assert!((levels[0] - levels[1]).abs() < 3.0, "{levels:?}");
}

#[test]
fn cancelling_leaves_the_speaker_usable_and_seeds_repeat() {
    let mut speaker = speaker(SpeechSettings::default());
    let cancel = CancelToken::new();
    cancel.cancel();
    let refused = speaker.clause("jˈɛs.", ClauseEnd::Sentence, Some(&cancel)).expect_err("cancelled");
    assert!(refused.is_cancelled());
    let first = speaker.clause("jˈɛs.", ClauseEnd::Sentence, None).expect("speech");
    assert_eq!(first, speaker.clause("jˈɛs.", ClauseEnd::Sentence, None).expect("speech"));
    speaker.set_settings(SpeechSettings { speed: 2.0, seed: 1 });
    let fast = speaker.clause("jˈɛs.", ClauseEnd::Sentence, None).expect("speech");
    assert!(fast.len() < first.len());
}
