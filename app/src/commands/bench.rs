//! `repartee bench`: how fast each model, each op and each kernel is here, beside a plain read of memory and a plain multiply.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use repartee_engine::backends::{Backend, CancelToken, Floors, NodeTime};
use repartee_engine::models::kokoro::{Kokoro, SpeakOptions, Voice};
use repartee_engine::models::llama::{Llama, Sampling};
use repartee_engine::models::silero::CHUNK_SAMPLES;
use repartee_engine::models::whisper::{DecodeOptions, FULL_SAMPLES, Whisper, short_context};

use super::setup::{self, BackendName};
use crate::printing::out;
use crate::usage::{WrongUsage, within};

/// Times the models, and with `--ops` and `--kernels` all that they consist of.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Models to time; all that are in the cache when none is named.
    models: Vec<String>,
    /// A language model of your own in place of these.
    #[arg(long, value_name = "GGUF", conflicts_with = "models")]
    model_file: Option<PathBuf>,
    /// What computes.
    #[arg(long, value_enum, default_value_t = BackendName::Auto)]
    backend: BackendName,
    /// How often each is timed; the median is shown.
    #[arg(long, default_value_t = 7, value_parser = within(1..=1_000_usize))]
    repeats: usize,
    /// Also show where the time goes, op by op, and what of the device's best that is.
    #[arg(long)]
    ops: bool,
    /// Also show it kernel by kernel.
    #[arg(long)]
    kernels: bool,
    /// A recording for the recognisers; a synthetic one of six seconds when not given.
    #[arg(long, value_name = "WAV")]
    clip: Option<PathBuf>,
}

const MODELS: [&str; 6] =
    ["silero-vad-v6", "whisper-tiny.en", "whisper-base", "smollm2-135m", "qwen2.5-coder-0.5b", "kokoro-82m"];

/// Median of `repeats` runs after one that is not counted.
fn median(repeats: usize, mut f: impl FnMut() -> Result<()>) -> Result<Duration> {
    f()?;
    let mut times = Vec::new();
    for _ in 0..repeats {
        let start = Instant::now();
        f()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2])
}

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

pub(crate) fn run(args: BenchArgs) -> Result<()> {
    let names = match (&args.model_file, &args.models[..]) {
        (Some(_), _) => Vec::new(),
        (None, []) => MODELS.map(String::from).to_vec(),
        (None, named) => named.to_vec(),
    };
    // A wrong name is said before the first is timed.
    if let Some(wrong) = names.iter().find(|name| !MODELS.contains(&name.as_str())) {
        return Err(WrongUsage::error(format!("{wrong} cannot be timed; choose from {}", MODELS.join(", "))));
    }
    // So is a wrong recording, or a model that is not there.
    let samples = clip(&args)?;
    let speech = names.iter().any(|name| name == "kokoro-82m").then_some(setup::VOICES);
    setup::require(&names.iter().map(String::as_str).chain(speech).collect::<Vec<_>>())?;
    let backend = setup::backend(args.backend)?;
    let Some(floors) = backend.floors() else {
        anyhow::bail!("{}: its memory and arithmetic can't be measured", backend.name());
    };
    out!("{}: {}", backend.name(), at_best(&floors));
    if let Some(path) = &args.model_file {
        let name = path.file_stem().map_or("model".into(), |stem| stem.to_string_lossy());
        let model = setup::llama_file(path, backend.as_ref(), CONTEXT)?;
        llama(&name, model, &args, &floors)?.iter().for_each(|line| out!("{line}"));
    }
    for name in &names {
        let lines = match name.as_str() {
            "silero-vad-v6" => silero(&args, &samples)?,
            "whisper-base" | "whisper-tiny.en" => whisper(name, &args, &samples, backend.as_ref(), &floors)?,
            "qwen2.5-coder-0.5b" | "smollm2-135m" => {
                llama(name, setup::llama(name, backend.as_ref(), CONTEXT)?, &args, &floors)?
            }
            "kokoro-82m" => kokoro(&args, backend.as_ref(), &floors)?,
            other => anyhow::bail!("{other} cannot be timed; known: {}", MODELS.join(", ")),
        };
        lines.iter().for_each(|line| out!("{line}"));
    }
    Ok(())
}

fn clip(args: &BenchArgs) -> Result<Vec<f32>> {
    match &args.clip {
        Some(path) => setup::read_16k(path),
        // A buzz with a moving pitch: costs the encoder what speech costs.
        None => Ok((0..6 * 16_000)
            .map(|i| {
                let t = i as f32 / 16_000.0;
                0.2 * (t * 700.0 + 40.0 * (t * 9.0).sin()).sin()
            })
            .collect()),
    }
}

fn silero(args: &BenchArgs, samples: &[f32]) -> Result<Vec<String>> {
    let mut vad = setup::silero(&setup::vad_backend())?;
    let chunks = samples.as_chunks::<CHUNK_SAMPLES>().0;
    let whole = median(args.repeats, || {
        for chunk in chunks {
            vad.chunk(chunk)?;
        }
        Ok(())
    })?;
    let each = whole.as_secs_f64() * 1e6 / chunks.len().max(1) as f64;
    Ok(vec![format!("silero-vad-v6: {each:.1} us for a chunk of 512 samples, one thread")])
}

/// What a device can do at best, in words.
fn at_best(floors: &Floors) -> String {
    let read = floors.read_per_sec / 1e9;
    let multiply = floors.operations_per_sec / 1e9;
    let mut words = format!("plain read {read:.1} GB/s, plain multiply {multiply:.0} GFLOP/s (f32)");
    if let Some(copy) = floors.copy_per_sec {
        words += &format!(", plain copy {:.1} GB/s", copy / 1e9);
    }
    if let Some(dispatch) = floors.dispatch_secs {
        words += &format!(", a dispatch of nothing {:.2} us", dispatch * 1e6);
    }
    words
}

fn whisper(
    name: &str,
    args: &BenchArgs,
    samples: &[f32],
    backend: &dyn Backend,
    floors: &Floors,
) -> Result<Vec<String>> {
    let mut whisper: Whisper = setup::whisper(name, backend)?;
    let mut lines = Vec::new();
    let secs = samples.len() as f64 / 16_000.0;
    for (what, context) in [("short", short_context(samples.len())), ("30 s", FULL_SAMPLES)] {
        let mel_time = median(args.repeats, || {
            whisper.log_mel(samples, context);
            Ok(())
        })?;
        let mel = whisper.log_mel(samples, context);
        let encoder = median(args.repeats, || {
            whisper.encode(&mel, None, None)?;
            backend.finish();
            Ok(())
        })?;
        let mut tokens = 0;
        let decoder = median(args.repeats, || {
            tokens = whisper.decode(&DecodeOptions { max_tokens: 64, ..Default::default() }, None)?.ids.len();
            Ok(())
        })?;
        lines.push(format!(
            "{name}, {secs:.2} s clip, {what} context: mel {:.1} + encoder {:.1} + decoder {:.1} ms ({tokens} tokens) = {:.1} ms",
            ms(mel_time),
            ms(encoder),
            ms(decoder),
            ms(mel_time + encoder + decoder)
        ));
    }
    if args.ops || args.kernels {
        lines.extend(tables(args, &whisper.profile(samples)?, floors));
    }
    Ok(lines)
}

/// Tokens that a language model's caches hold.
const CONTEXT: usize = 2048;

fn llama(name: &str, mut llama: Llama, args: &BenchArgs, floors: &Floors) -> Result<Vec<String>> {
    let text = "The quick brown fox jumps over the lazy dog near the quiet river bank. ".repeat(40);
    let tokens = llama.tokenizer().encode(&text, repartee_engine::text::tokenizer::Special::AsText);
    anyhow::ensure!(tokens.len() >= 256, "{name}: its vocabulary has no tokens for plain English");
    let greedy = Sampling::default();
    let mut lines = Vec::new();
    for n in [18, 64, 256] {
        let time = median(args.repeats, || {
            llama.forget();
            llama.begin(&tokens[..n], &greedy, &[], None)?;
            Ok(())
        })?;
        lines.push(format!("{name}, prompt of {n} tokens: {:.1} tok/s", n as f64 / time.as_secs_f64()));
    }
    // As a voice turn: 52 tokens cached, 17 new.
    let time = median(2 * args.repeats, || {
        llama.prefill(&tokens[..52], Default::default(), None)?;
        let start_over: Vec<u32> = tokens[..52].iter().chain(&tokens[100..117]).copied().collect();
        llama.begin(&start_over, &greedy, &[], None)?;
        Ok(())
    })?;
    lines.push(format!("{name}, 52 cached and 17 new tokens to the first token: {:.1} ms", ms(time)));
    const STEPS: usize = 128;
    let mut runs = Vec::new();
    for _ in 0..args.repeats.clamp(1, 5) {
        llama.forget();
        llama.begin(&tokens[..50], &greedy, &[], None)?;
        let start = Instant::now();
        for _ in 0..STEPS {
            llama.next(None)?;
        }
        runs.push(start.elapsed());
    }
    runs.sort();
    let each = runs[runs.len() / 2].as_secs_f64() / STEPS as f64;
    let bytes = llama.step_bytes() as f64;
    lines.push(format!(
        "{name}, writing: {:.1} tok/s; {:.0} MB a token = {:.1} GB/s, {:.0} % of a plain read",
        1.0 / each,
        bytes / 1e6,
        bytes / each / 1e9,
        bytes / each / floors.read_per_sec * 100.0
    ));
    if args.ops || args.kernels {
        lines.push("  one step:".into());
        lines.extend(tables(args, &llama.profile()?, floors));
    }
    Ok(lines)
}

/// Phonemes of 2.15 s and of 4.1 s of speech.
const SENTENCES: [(&str, &str); 2] = [
    ("short", "ʃˈʊɹ, ˌI kæn dˈu ðæt fɔɹ ju."),
    ("medium", "ðə wˈɛðəɹ lˈʊks klˈɪɹ tədˈA, wɪð ɐ hˈI ʌv əɹˈWnd twˈɛnti dəɡɹˈiz."),
];

fn kokoro(args: &BenchArgs, backend: &dyn Backend, floors: &Floors) -> Result<Vec<String>> {
    let mut kokoro = setup::kokoro(backend)?;
    let voice = setup::voice("af_heart")?;
    let options = SpeakOptions::default();
    let mut lines = Vec::new();
    for (name, phonemes) in SENTENCES {
        let tokens = kokoro.tokens(phonemes);
        let style = voice.style(tokens.len());
        let mut samples = 0;
        let time = median(args.repeats, || {
            samples = kokoro.speak(&tokens, style, &options)?.len();
            Ok(())
        })?;
        let secs = samples as f64 / 24_000.0;
        let factor = secs / time.as_secs_f64();
        lines.push(format!(
            "kokoro-82m, {name}, {} tokens, {secs:.2} s of speech: {:.1} ms, {factor:.2} times real time",
            tokens.len(),
            ms(time)
        ));
    }
    lines.push(cancelling(&mut kokoro, &voice)?);
    if args.ops || args.kernels {
        kokoro.set_profiling(true);
        let tokens = kokoro.tokens(SENTENCES[0].1);
        kokoro.speak(&tokens, voice.style(tokens.len()), &options)?;
        lines.extend(tables(args, &kokoro.trace().times, floors));
    }
    Ok(lines)
}

/// Moments of a synthesis, evenly spread, at which it is cancelled.
const MOMENTS: u32 = 50;

/// How long a synthesis goes on after it was cancelled.
fn cancelling(kokoro: &mut Kokoro, voice: &Voice) -> Result<String> {
    let tokens = kokoro.tokens(SENTENCES[0].1);
    let style = voice.style(tokens.len());
    let whole = median(3, || Ok(kokoro.speak(&tokens, style, &SpeakOptions::default()).map(|_| ())?))?;
    let mut times = Vec::new();
    for moment in 0..MOMENTS {
        let cancel = CancelToken::new();
        let after = whole * (2 * moment + 1) / (2 * MOMENTS + 4);
        let options = SpeakOptions { cancel: Some(&cancel), ..SpeakOptions::default() };
        let asked = std::thread::scope(|scope| {
            let (done, wait) = std::sync::mpsc::channel::<()>();
            let asker = scope.spawn({
                let cancel = cancel.clone();
                move || {
                    let _ = wait.recv_timeout(after);
                    cancel.cancel();
                    Instant::now()
                }
            });
            let result = kokoro.speak(&tokens, style, &options).map(|_| ());
            let returned = Instant::now();
            drop(done);
            let asked = asker.join().unwrap_or(returned);
            result.is_err_and(|e| e.is_cancelled()).then(|| returned.saturating_duration_since(asked))
        });
        times.extend(asked);
    }
    times.sort();
    anyhow::ensure!(!times.is_empty(), "no synthesis was cancelled before its end");
    let at = |share: usize| ms(times[(times.len() - 1) * share / 100]);
    Ok(format!(
        "kokoro-82m, cancelled at {} moments: back after {:.2} ms (median), {:.2} (p95), {:.2} (max)",
        times.len(),
        at(50),
        at(95),
        at(100)
    ))
}

/// The tables that were asked for.
fn tables(args: &BenchArgs, times: &[NodeTime], floors: &Floors) -> Vec<String> {
    if times.is_empty() {
        return vec!["  the device can't say what each op takes".into()];
    }
    let mut lines = Vec::new();
    if args.ops {
        lines.extend(table(times, floors, |time| time.op.into()));
    }
    if args.kernels {
        lines.extend(table(times, floors, |time| format!("{}: {}", time.op, time.kernel)));
    }
    lines
}

/// Sums by `name`, the largest first: time, its share, nodes, and what of the floors that is.
fn table(times: &[NodeTime], floors: &Floors, name: impl Fn(&NodeTime) -> String) -> Vec<String> {
    #[derive(Default)]
    struct Sum {
        ns: u64,
        bytes: u64,
        operations: u64,
        count: usize,
    }
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    // Others do the work of nodes that take no time.
    for time in times.iter().filter(|time| time.ns > 0) {
        let sum = sums.entry(name(time)).or_default();
        sum.ns += time.ns;
        sum.bytes += time.bytes;
        sum.operations += time.operations;
        sum.count += 1;
    }
    let total: u64 = sums.values().map(|sum| sum.ns).sum();
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.ns));
    let row = |(name, sum): (String, Sum)| {
        let secs = sum.ns as f64 / 1e9;
        let (bytes, operations) = (sum.bytes as f64 / secs, sum.operations as f64 / secs);
        format!(
            "  {name:40} {:9.3} ms {:5.1} % {:5} nodes {:8.1} GB/s ({:3.0} %) {:9.1} GFLOP/s ({:3.0} %)",
            secs * 1e3,
            sum.ns as f64 * 100.0 / total.max(1) as f64,
            sum.count,
            bytes / 1e9,
            bytes / floors.read_per_sec * 100.0,
            operations / 1e9,
            operations / floors.operations_per_sec * 100.0
        )
    };
    rows.into_iter().map(row).collect()
}
