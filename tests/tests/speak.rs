//! The speak stage on the real model, listened to by instrument: lengths around the limit, all voices, levels, joins,
//! what a recogniser understands, cancelling.

use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use repartee_engine::backends::CancelToken;
use repartee_engine::backends::cpu::{Cpu, CpuOptions};
use repartee_engine::models::kokoro::{SpeakOptions, Voice};
use repartee_engine::stages::narrate::{NarrateEvent, Narrator};
use repartee_engine::stages::speak::{RATE_HZ, Speaker, SpeechSettings};
use repartee_engine::text::clauses::ClauseEnd;
use repartee_engine::text::speakable::Locale;
use repartee_tests::speech;

/// The model is loaded once for all tests.
static NARRATOR: LazyLock<Mutex<Narrator>> = LazyLock::new(|| {
    let speaker = speech::speaker(&Cpu::new(CpuOptions::default()));
    Mutex::new(Narrator::new(speaker, speech::phonemizer("af_heart"), Locale::EnUs))
});

fn voice(name: &str) -> Voice {
    Voice::open(speech::voice_file(name)).expect("a voice")
}

/// The shared narrator as new, with these settings.
fn narrator(settings: SpeechSettings) -> MutexGuard<'static, Narrator> {
    let mut narrator = NARRATOR.lock().unwrap_or_else(PoisonError::into_inner);
    narrator.stop();
    narrator.speaker().set_voice(voice("af_heart"));
    narrator.speaker().set_settings(settings);
    narrator
}

/// Root mean square of each 20 ms.
fn loudness(samples: &[f32]) -> Vec<f32> {
    samples.chunks(RATE_HZ as usize / 50).map(rms).collect()
}

fn rms(samples: &[f32]) -> f32 {
    (samples.iter().map(|x| x * x).sum::<f32>() / samples.len().max(1) as f32).sqrt()
}

/// The windows in which something is said, within 20 dB of the loudest.
fn spoken(samples: &[f32]) -> Vec<f32> {
    let windows = loudness(samples);
    let top = windows.iter().copied().fold(0.0, f32::max);
    windows.into_iter().filter(|w| *w > 0.1 * top).collect()
}

fn clause(speaker: &mut Speaker, phonemes: &str) -> Vec<f32> {
    speaker.clause(phonemes, ClauseEnd::Sentence, None).expect("speech")
}

/// B28.
#[test]
fn any_number_of_tokens_is_spoken() {
    let mut narrator = narrator(SpeechSettings { speed: 4.0, seed: 0 });
    let speaker = narrator.speaker();
    let word = "wˈɜɹd ";
    let mut secs = |tokens: usize| {
        let phonemes: String = word.chars().cycle().take(tokens - 1).chain(['.']).collect();
        let sound = clause(speaker, &phonemes);
        assert!(sound.iter().all(|s| s.is_finite() && s.abs() <= 1.0));
        sound.len() as f64 / f64::from(RATE_HZ)
    };
    let (whole, cut) = (secs(510), secs(511));
    // About as long as in one piece: nothing is left out, and the pieces' own silences are all that is added.
    assert!(whole > 4.0 && (cut - whole).abs() < 0.3 * whole, "{whole} {cut}");
    // Symbols that the model has no token for, and a text without any other.
    assert!(clause(speaker, "汉字").is_empty());
    assert!(clause(speaker, "...").is_empty());
}

/// Every English voice says a word of its own sound, and a blend is none of those it is made of.
#[test]
fn all_voices_speak() {
    let catalogue = repartee_models::Catalogue::open().expect("the catalogue");
    let files = &catalogue.model("kokoro-voices").expect("voices").files;
    let names: Vec<&str> = files.iter().filter_map(|f| f.name.strip_suffix(".bin")).collect();
    let english =
        names.iter().copied().filter(|n| n.starts_with(['a', 'b']) && n[1..].starts_with(['f', 'm']));
    let mut narrator = narrator(SpeechSettings { speed: 1.5, seed: 0 });
    let speaker = narrator.speaker();
    let mut sounds = BTreeSet::new();
    let mut say = |name: &str, voice: Voice| {
        speaker.set_voice(voice);
        let sound = clause(speaker, "wˈʌn.");
        let secs = spoken(&sound).len() as f64 / 50.0;
        assert!((0.1..1.0).contains(&secs), "{name}: {secs} s");
        let level = 20.0 * rms(&spoken(&sound)).log10();
        assert!((-29.0..-17.0).contains(&level), "{name}: {level} dB");
        sounds.insert(sound.iter().map(|s| s.to_bits()).collect::<Vec<_>>())
    };
    let mut count = 0;
    for name in english {
        assert!(say(name, voice(name)), "{name} sounds like another");
        count += 1;
    }
    assert_eq!(count, 28);
    let blend = |a, b| Voice::blend(&[(voice("af_heart"), a), (voice("bm_george"), b)]).expect("a blend");
    assert!(say("a blend", blend(1.0, 1.0)), "a blend sounds like a voice");
    assert!(say("another blend", blend(3.0, 1.0)), "weights make no difference");
    assert!(!say("one alone", blend(1.0, 0.0)), "a blend of one is that voice");
}

/// B30: level to the last word, no hole at the joins of clauses, every word understood.
#[test]
fn speech_is_even_and_understood_to_the_last_word() {
    const LONG: &str = "When the long train from the north finally arrived at the small station by the lake, the old \
        farmer who had waited there since early morning picked up his heavy bag, said goodbye to the friendly woman \
        behind the counter, walked slowly across the wet platform, and asked the young driver whether there was \
        a free seat beside the window.";
    assert_eq!(LONG.split_whitespace().count(), 60);
    let mut narrator = narrator(SpeechSettings::default());
    let mut recogniser = speech::recogniser(&Cpu::new(CpuOptions::default()));
    let mut levels = Vec::new();
    for text in ["Yes.", "Six short words are said here.", LONG] {
        let (mut sound, mut joins) = (Vec::new(), Vec::new());
        let mut on_event = |event: NarrateEvent<'_>| {
            if let NarrateEvent::Sound(samples) = event {
                // Cut out of silence and followed by it: no click at either end.
                assert!(samples[0].abs() < 1e-3 && samples.last().is_some_and(|s| *s == 0.0));
                sound.extend_from_slice(samples);
                joins.push(sound.len());
            }
        };
        narrator.push(text, &mut on_event, None).expect("speech");
        narrator.finish(&mut on_event, None).expect("speech");
        let words = spoken(&sound);
        let off = 20.0 * (rms(&words[words.len().saturating_sub(12)..]) / rms(&words)).log10();
        assert!(off.abs() < 6.0, "{text}: the last word is {off} dB off");
        levels.push(20.0 * rms(&words).log10());

        // No hole at a join, which a listener would take for the end. Within a clause the model pauses as it likes, by
        // half a second at a comma.
        let windows = loudness(&sound);
        let top = windows.iter().copied().fold(0.0, f32::max);
        let loud = |w: &f32| *w >= 0.01 * top;
        for join in joins.iter().rev().skip(1).map(|at| at / (RATE_HZ as usize / 50)) {
            let before = windows[..join].iter().rev().take_while(|w| !loud(w)).count();
            let quiet = before + windows[join..].iter().take_while(|w| !loud(w)).count();
            assert!((2..15).contains(&quiet), "{text}: {} ms of silence at a join", 20 * quiet);
        }
        let last = windows.iter().rposition(loud).expect("speech");
        let longest = windows[..last].split(loud).map(<[f32]>::len).max().unwrap_or(0);
        assert!(longest <= 30, "{text}: {} ms of silence", 20 * longest);

        let samples = repartee_audio::resample::resample(&sound, RATE_HZ, 16_000).expect("16 kHz");
        let heard = recogniser.transcribe(&samples, &mut |_| {}, None).expect("a transcript").text;
        let bare = |text: &str| {
            text.to_lowercase().replace([',', '.'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
        };
        // "six" may be written as a digit.
        assert_eq!(bare(&heard).replace("6 ", "six "), bare(text));
    }
    let (low, high) = levels.iter().fold((0.0_f32, -99.0_f32), |(a, b), l| (a.min(*l), b.max(*l)));
    assert!(high - low < 3.0, "{levels:?}");
}

/// Every thread asks in front of each piece of work: 2^25 multiply-adds are less than 5 ms on any core that makes 14 GFLOP/s.
#[test]
fn no_piece_of_work_is_long() {
    let mut narrator = narrator(SpeechSettings::default());
    let style = voice("af_heart");
    let cancel = CancelToken::new();
    let kokoro = narrator.speaker().model();
    let tokens = kokoro.tokens("wˈʌn tˈu θɹˈi.");
    // Slow speech, for many frames.
    let options = SpeakOptions { speed: 0.25, cancel: Some(&cancel), ..SpeakOptions::default() };
    let samples = kokoro.speak(&tokens, style.style(tokens.len()), &options).expect("speech").len();
    assert!(samples > 3 * RATE_HZ as usize, "{samples}");
    let largest = cancel.largest_work();
    assert!((1 << 20..=1 << 25).contains(&largest), "{largest}");
}

#[test]
fn cancelling_leaves_the_speaker_usable_and_seeds_repeat() {
    let mut narrator = narrator(SpeechSettings::default());
    let speaker = narrator.speaker();
    let cancel = CancelToken::new();
    cancel.cancel();
    let refused = speaker.clause("jˈɛs.", ClauseEnd::Sentence, Some(&cancel)).expect_err("cancelled");
    assert!(refused.is_cancelled());
    let first = clause(speaker, "jˈɛs.");
    assert_eq!(first, clause(speaker, "jˈɛs."));
    speaker.set_settings(SpeechSettings { speed: 2.0, seed: 1 });
    assert!(clause(speaker, "jˈɛs.").len() < first.len());
}
