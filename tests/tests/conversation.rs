//! The pipeline on real models: a spoken question in, its transcript, an answer and its sound out.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use repartee_engine::backends::Backend;
use repartee_engine::backends::cpu::{Cpu, CpuOptions};
use repartee_engine::formats::gguf::Gguf;
use repartee_engine::formats::safetensors::SafeTensors;
use repartee_engine::latency::{Metric, MonotonicClock};
use repartee_engine::models::kokoro::{Kokoro, Voice};
use repartee_engine::models::llama::{Llama, LlamaOptions, Sampling};
use repartee_engine::models::silero::SileroVad;
use repartee_engine::models::whisper::Whisper;
use repartee_engine::stages::narrate::Narrator;
use repartee_engine::stages::reply::Replier;
use repartee_engine::stages::speak::{RATE_HZ, Speaker, SpeechSettings};
use repartee_engine::stages::transcribe::Transcriber;
use repartee_engine::text::phonemes::{Accent, Lexicon, Phonemizer};
use repartee_engine::text::speakable::Locale;
use repartee_engine::turn::TurnConfig;
use repartee_engine::turn::conductor::Output;
use repartee_engine::turn::history::History;
use repartee_engine::turn::message::TurnNumber;
use repartee_engine::turn::pipeline::{
    Command, Ends, Heard, Listening, Loudspeaker, Microphone, Model, Pipeline, PipelineConfig, Snapshot,
};

fn resolve(model: &str, file: &str) -> std::path::PathBuf {
    repartee_models::resolve(model, file).expect("the default models are fetched")
}

fn recogniser(backend: &dyn Backend) -> Transcriber {
    let [weights, tokenizer, config] =
        ["model.bin", "tokenizer.json", "config.json"].map(|file| resolve("whisper-tiny.en", file));
    Transcriber::new(Whisper::load(weights, tokenizer, config, backend).expect("a recogniser"), "en")
}

fn writer(backend: &dyn Backend) -> Replier {
    let file = resolve("qwen2.5-coder-0.5b", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    let file = Arc::new(Gguf::open(file).expect("weights"));
    let llama = Llama::load(&file, backend, LlamaOptions { context: 512 }).expect("a language model");
    Replier::new(llama, Sampling::default(), 24)
}

fn voice(backend: &dyn Backend) -> Narrator {
    let weights = resolve("kokoro-82m", "kokoro-v1.0.int8.onnx");
    let kokoro = Kokoro::load(weights, resolve("kokoro-82m", "vocab.json"), backend).expect("a voice model");
    let style = Voice::open(resolve("kokoro-voices", "af_heart.bin")).expect("a voice");
    let read = |file| std::fs::read(resolve("misaki-en", file)).expect("a dictionary");
    let (gold, silver) = (read("us_gold.json"), read("us_silver.json"));
    let lexicon = Lexicon::from_json(Accent::American, &gold, &silver).expect("a dictionary");
    let speaker = Speaker::new(kokoro, style, SpeechSettings::default());
    Narrator::new(speaker, Phonemizer::new(lexicon).expect("phonemes"), Locale::EnUs)
}

/// A recording that comes as fast as it was spoken, with a room's noise around it, and does not end.
struct Recording {
    samples: Vec<f32>,
    given: usize,
    started: Instant,
}

impl Microphone for Recording {
    fn wait(&mut self, out: &mut Vec<f32>, timeout: Duration) -> Result<Heard, String> {
        let begun = Instant::now();
        loop {
            let due = (self.started.elapsed().as_secs_f64() * 100.0) as usize * 160;
            if due > self.given {
                let noise = |i: usize| ((i * 7919 % 1013) as f32 / 1013.0 - 0.5) * 1e-3;
                out.extend((self.given..due).map(|i| self.samples.get(i).copied().unwrap_or(0.0) + noise(i)));
                self.given = due;
                return Ok(Heard::Sound);
            }
            if begun.elapsed() >= timeout {
                return Ok(Heard::Nothing);
            }
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }
}

/// A loudspeaker on which everything is heard as soon as it is queued.
#[derive(Clone, Default)]
struct Tape(Arc<Mutex<(TurnNumber, Vec<f32>)>>);

impl Loudspeaker for Tape {
    fn queue(&mut self, turn: TurnNumber, sound: Arc<[f32]>) {
        let mut tape = self.0.lock().unwrap();
        if tape.0 != turn {
            *tape = (turn, Vec::new());
        }
        tape.1.extend_from_slice(&sound);
    }

    fn set_output(&mut self, _: TurnNumber, _: Output) {}

    fn silence(&mut self, _: TurnNumber) {}

    fn heard(&mut self, turn: TurnNumber) -> u64 {
        let tape = self.0.lock().unwrap();
        if tape.0 == turn { tape.1.len() as u64 } else { 0 }
    }
}

/// Waits for a change until `done`.
fn wait_for(
    pipeline: &Pipeline,
    changed: &(Mutex<()>, Condvar),
    what: &str,
    done: impl Fn(&Snapshot) -> bool,
) {
    let begun = Instant::now();
    let mut guard = changed.0.lock().unwrap();
    while !done(&pipeline.snapshot()) {
        assert!(begun.elapsed() < Duration::from_secs(120), "no {what}: {:?}", pipeline.snapshot());
        guard = changed.1.wait_timeout(guard, Duration::from_millis(100)).unwrap().0;
    }
}

#[test]
fn a_spoken_question_is_understood_answered_and_spoken() {
    let question = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/questions/capital.wav");
    let question = repartee_audio::wav::read_mono(&question).expect("the sample question");
    assert_eq!(question.rate_hz, 16_000);
    let backend = Cpu::new(CpuOptions::default());
    let vad = SafeTensors::open(resolve("silero-vad-v6", "silero_vad_16k.safetensors")).expect("weights");
    let vad_backend = Cpu::new(CpuOptions { threads: Some(1), ..CpuOptions::default() });
    let detector = SileroVad::load(Arc::new(vad), &vad_backend).expect("a detector");
    let models = [
        Model::Recogniser(Box::new(recogniser(&backend))),
        Model::Writer(Box::new(writer(&backend))),
        Model::Voice(Box::new(voice(&backend))),
    ];

    let tape = Tape::default();
    let recording = Recording { samples: question.samples, given: 0, started: Instant::now() };
    let config = PipelineConfig {
        turns: TurnConfig::default(),
        listening: Listening::Always,
        history: History::new("You are a friendly voice assistant. Answer in one short sentence."),
        shows_words_early: true,
    };
    let ends = Ends {
        microphone: Some((Box::new(recording), Box::new(detector))),
        loudspeaker: Box::new(tape.clone()),
    };
    let changed = Arc::new((Mutex::new(()), Condvar::new()));
    let told = changed.clone();
    let on_change = Box::new(move || told.1.notify_all());
    let pipeline =
        Pipeline::start(config, ends, Arc::new(MonotonicClock::new()), on_change).expect("threads");
    models.into_iter().for_each(|model| pipeline.send(Command::Install(model)));

    wait_for(&pipeline, &changed, "answer", |shown| !shown.entries.is_empty());
    let shown = pipeline.snapshot();
    let entry = &shown.entries[0];
    assert_eq!(&*entry.user, "What is the capital of France?");
    assert!(entry.reply.text.contains("Paris") && !entry.is_interrupted, "{entry:?}");
    assert!(shown.notices.is_empty(), "{:?}", shown.notices);
    let sound = tape.0.lock().unwrap().1.clone();
    assert!(sound.len() > RATE_HZ as usize / 2, "{} samples", sound.len());
    let record = &shown.records[0];
    assert_eq!(record.stages.len(), 11, "{record:?}");
    let waited_ms = record.duration_ms(Metric::EndOfTurnWait).expect("it was measured");
    let voice_to_voice_ms = record.voice_to_voice_ms.expect("it was measured");
    // The silence is part of it, and no machine on which tests run takes a minute.
    assert!(waited_ms > 400.0 && voice_to_voice_ms > waited_ms && voice_to_voice_ms < 60_000.0, "{record:?}");

    // The answer is speech that says what was written, and what follows knows what was said.
    let at_16k = repartee_audio::resample::resample(&sound, RATE_HZ, 16_000).expect("16 kHz");
    let heard = recogniser(&backend).transcribe(&at_16k, &mut |_| {}, None).expect("a transcript").text;
    assert!(heard.contains("Paris"), "{heard}");
    pipeline.send(Command::Type("And what did I just ask you about?".into()));
    wait_for(&pipeline, &changed, "second answer", |shown| shown.entries.len() == 2);
    let shown = pipeline.snapshot();
    assert!(shown.entries[1].reply.text.contains("France"), "{:?}", shown.entries[1]);
    assert_eq!(shown.records[1].voice_to_voice_ms, None, "nobody spoke");
}
