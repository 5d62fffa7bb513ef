//! The detector and the recogniser on real weights, with the inputs on which recognisers invent things.

use std::path::PathBuf;
use std::sync::Arc;

use repartee_engine::backends::cpu::{Cpu, CpuOptions};
use repartee_engine::formats::safetensors::SafeTensors;
use repartee_engine::models::silero::SileroVad;
use repartee_engine::models::whisper::Whisper;
use repartee_engine::stages::listen::{Listener, utterances};
use repartee_engine::stages::transcribe::Transcriber;
use repartee_engine::turn::endpoint::EndpointConfig;

const RATE_HZ: u32 = 16_000;
const SECOND: usize = RATE_HZ as usize;

fn resolve(model: &str, file: &str) -> PathBuf {
    repartee_models::resolve(model, file).expect("the model is fetched")
}

fn listener() -> Listener {
    let file = SafeTensors::open(resolve("silero-vad-v6", "silero_vad_16k.safetensors")).expect("weights");
    let backend = Cpu::new(CpuOptions { threads: Some(1), ..CpuOptions::default() });
    let vad = SileroVad::load(Arc::new(file), &backend).expect("a detector");
    Listener::new(vad, EndpointConfig::default())
}

fn transcriber(model: &str) -> Transcriber {
    let [weights, tokenizer, config] =
        ["model.bin", "tokenizer.json", "config.json"].map(|f| resolve(model, f));
    let backend = Cpu::new(CpuOptions::default());
    let whisper = Whisper::load(weights, tokenizer, config, &backend).expect("a recogniser");
    Transcriber::new(whisper, "en")
}

/// Human speech of some ten seconds.
fn beckett() -> Vec<f32> {
    let audio = repartee_audio::wav::read_mono(&resolve("test-speech", "beckett.wav")).expect("a recording");
    assert_eq!(audio.rate_hz, RATE_HZ);
    audio.samples
}

/// Human speech of most of a minute.
fn two_cities() -> Vec<f32> {
    let audio =
        repartee_audio::wav::read_mono(&resolve("test-speech", "two_cities.wav")).expect("a recording");
    repartee_audio::resample::resample(&audio.samples, audio.rate_hz, RATE_HZ).expect("16 kHz")
}

fn hear(transcriber: &mut Transcriber, samples: &[f32]) -> String {
    transcriber.transcribe(samples, &mut |_| {}, None).expect("a transcript").text
}

/// Every utterance of a stream, as `talk` hears it.
fn hear_stream(transcriber: &mut Transcriber, samples: &[f32]) -> Vec<String> {
    let found = utterances(&mut listener(), samples).expect("utterances");
    found.into_iter().map(|span| hear(transcriber, &samples[span])).collect()
}

/// White noise of a root mean square of `10^(dbfs / 20)`.
fn white(dbfs: f32, samples: usize) -> Vec<f32> {
    let scale = 10_f32.powf(dbfs / 20.0) * 3_f32.sqrt();
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        scale * ((state >> 8) as f32 / 8_388_608.0 - 1.0)
    };
    (0..samples).map(|_| next()).collect()
}

/// Pink noise: three first-order filters over white noise (Kellet's economy method), brought to its level.
fn pink(dbfs: f32, samples: usize) -> Vec<f32> {
    let mut b = [0.0_f32; 3];
    let mut out: Vec<f32> = white(0.0, samples)
        .into_iter()
        .map(|w| {
            b[0] = 0.997_65 * b[0] + 0.099_046 * w;
            b[1] = 0.963_00 * b[1] + 0.296_516_4 * w;
            b[2] = 0.570_00 * b[2] + 1.052_691_3 * w;
            b.iter().sum::<f32>() + 0.184_8 * w
        })
        .collect();
    let power = out.iter().map(|x| x * x).sum::<f32>() / samples as f32;
    let gain = 10_f32.powf(dbfs / 20.0) / power.sqrt();
    out.iter_mut().for_each(|x| *x *= gain);
    out
}

/// Times that the most repeated phrase (of up to eight words) follows itself, the first one included.
fn repeats(text: &str) -> usize {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let mut most = 1;
    for length in 1..=8 {
        for start in 0..words.len() {
            let phrase = &words[start..(start + length).min(words.len())];
            let same = words[start..].chunks_exact(length).take_while(|next| *next == phrase).count();
            most = most.max(same);
        }
    }
    most
}

/// B01: silence and noise are no speech, and the recogniser alone hears nothing in them either.
#[test]
fn silence_and_noise_hold_no_words() {
    let mut base = transcriber("whisper-base");
    let mut tiny = transcriber("whisper-tiny.en");
    let inputs = [
        ("zeros", vec![0.0; 3 * SECOND]),
        ("white noise at -60 dBFS", white(-60.0, 3 * SECOND)),
        ("pink noise at -45 dBFS", pink(-45.0, 3 * SECOND)),
    ];
    for (name, samples) in inputs {
        assert!(utterances(&mut listener(), &samples).expect("no utterances").is_empty(), "{name}");
        assert_eq!(hear(&mut base, &samples), "", "{name}, whisper-base");
        assert_eq!(hear(&mut tiny, &samples), "", "{name}, whisper-tiny.en");
    }
}

/// B02: a sentence and 12 s of zeros: the text once, nothing after it, from the stream and from one utterance alike.
#[test]
fn nothing_is_invented_after_a_sentence() {
    let speech = beckett();
    let mut samples = speech.clone();
    samples.resize(speech.len() + 12 * SECOND, 0.0);
    for model in ["whisper-base", "whisper-tiny.en"] {
        let mut transcriber = transcriber(model);
        let expected = hear(&mut transcriber, &speech);
        assert!(expected.ends_with("ail better."), "{model}: {expected}");
        let padded = hear(&mut transcriber, &samples);
        let stream = hear_stream(&mut transcriber, &samples).join(" ");
        for text in [&padded, &stream] {
            assert!(text.ends_with("ail better."), "{model}: {text}");
            let words = text.split_whitespace().count();
            assert_eq!(words, expected.split_whitespace().count(), "{model}: {text}");
        }
    }
}

/// B04: four minutes of speech with gaps of 20 s: no phrase more than three times in a row, and no words in the gaps.
#[test]
fn long_gaps_do_not_make_loops() {
    let speech = two_cities();
    let mut transcriber = transcriber("whisper-base");
    let mut stream = Vec::new();
    for piece in speech.chunks(8 * SECOND).cycle() {
        if stream.len() >= 240 * SECOND {
            break;
        }
        stream.extend_from_slice(piece);
        stream.extend(white(-65.0, 20 * SECOND));
    }
    let texts = hear_stream(&mut transcriber, &stream);
    assert!(texts.len() >= 8, "{texts:?}");
    for text in &texts {
        assert!(!text.is_empty() && repeats(text) <= 3, "{text}");
    }
    // The same without the detector: windows of 30 s that are mostly gap.
    for window in stream.chunks(30 * SECOND).take(3) {
        let text = hear(&mut transcriber, window);
        assert!(repeats(&text) <= 3, "{text}");
    }
}

/// B05: one word of 0.6 s with the language fixed to English is Latin text.
#[test]
fn one_short_word_stays_in_its_language() {
    let speech = beckett();
    let mut transcriber = transcriber("whisper-base");
    let spans = utterances(&mut listener(), &speech).expect("utterances");
    let mut words = 0;
    for span in spans {
        for piece in speech[span].chunks_exact(6 * SECOND / 10) {
            let text = hear(&mut transcriber, piece);
            assert!(text.chars().all(|c| c.is_ascii() || "’“”—…".contains(c)), "{text}");
            words += usize::from(text.chars().any(char::is_alphabetic));
        }
    }
    assert!(words > 0, "no word was understood");
}

#[test]
fn repeats_are_counted() {
    assert_eq!(repeats("a b c"), 1);
    assert_eq!(repeats("so so so so"), 4);
    assert_eq!(repeats("x no way no way no way y"), 3);
    assert_eq!(repeats(""), 1);
}
