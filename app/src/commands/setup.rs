//! Loading what the commands need: recordings, backends, models from the cache.

use std::path::Path;
use std::sync::Arc;
#[cfg(all(feature = "desktop", feature = "wgpu"))]
use std::sync::OnceLock;

use anyhow::{Context, Result};
use clap::ValueEnum;
use repartee_audio::AudioError;
use repartee_engine::backends::Backend;
use repartee_engine::backends::cpu::{Cpu, CpuOptions};
#[cfg(all(feature = "desktop", feature = "wgpu"))]
use repartee_engine::backends::wgpu::WgpuError;
#[cfg(feature = "wgpu")]
use repartee_engine::backends::wgpu::{Wgpu, WgpuOptions};
use repartee_engine::formats::gguf::Gguf;
use repartee_engine::formats::safetensors::SafeTensors;
use repartee_engine::models::kokoro::{Kokoro, Voice};
use repartee_engine::models::llama::{Llama, LlamaOptions};
use repartee_engine::models::silero::{RATE_HZ, SileroVad};
use repartee_engine::models::whisper::Whisper;
use repartee_engine::models::{ModelError, Remedy};
use repartee_engine::stages::listen::Listener;
use repartee_engine::stages::narrate::Narrator;
use repartee_engine::stages::speak::{Speaker, SpeechSettings};
use repartee_engine::stages::transcribe::Transcriber;
use repartee_engine::text::phonemes::{Accent, Lexicon, Phonemizer};
use repartee_engine::text::speakable::Locale;
use repartee_engine::turn::endpoint::EndpointConfig;
use repartee_models::{Format, Model, ModelState, Role};

use crate::usage::WrongUsage;

/// What computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub(crate) enum BackendName {
    /// The best that runs every stage.
    Auto,
    /// The processor.
    Cpu,
    /// A GPU by Vulkan, Metal or Direct3D 12; software that stands in for one where there is none.
    #[cfg(feature = "wgpu")]
    Wgpu,
}

/// What can be done about a model that cannot be loaded or run on a device.
pub(crate) fn remedy(error: &anyhow::Error) -> Option<Remedy> {
    error.downcast_ref().and_then(ModelError::remedy)
}

/// What is said of a model that has no room on a device, when the processor takes it.
pub(crate) fn no_room(model: &str, error: &anyhow::Error) -> String {
    let store = repartee_models::Store::open();
    let size = store.ok().and_then(|store| Some(store.catalogue().model(model).ok()?.size_bytes()));
    let size = size.map_or(String::new(), |bytes| format!(" ({})", super::models::megabytes(bytes)));
    format!("{model}{size} has no room on the GPU and runs on the processor: {}", crate::message(error))
}

/// The chosen backend.
pub(crate) fn backend(name: BackendName) -> Result<Box<dyn Backend>> {
    match name {
        // The kernels for GPUs are young, and compared with the processor on few devices.
        BackendName::Auto | BackendName::Cpu => Ok(Box::new(Cpu::new(CpuOptions::default()))),
        #[cfg(feature = "wgpu")]
        BackendName::Wgpu => {
            // Without a folder the pipelines are compiled at each start.
            let pipelines = repartee_models::Cache::open().ok().map(|cache| cache.root().join("pipelines"));
            let options = WgpuOptions { allow_software: true, pipelines, ..WgpuOptions::default() };
            Ok(Box::new(
                Wgpu::new(options).context("choose `--backend cpu`, or give this machine a GPU driver")?,
            ))
        }
    }
}

/// Why a GPU can't be recommended here; `None` if there is a real one. Takes a moment the first time: drivers are asked.
#[cfg(all(feature = "desktop", feature = "wgpu"))]
pub(crate) fn gpu_problem() -> Option<String> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    FOUND.get_or_init(|| Wgpu::new(WgpuOptions::default()).err().map(|error| gpu_problem_of(&error))).clone()
}

/// This build has no GPU's backend to choose.
#[cfg(all(feature = "desktop", not(feature = "wgpu")))]
pub(crate) fn gpu_problem() -> Option<String> {
    None
}

#[cfg(all(feature = "desktop", feature = "wgpu"))]
fn gpu_problem_of(error: &WgpuError) -> String {
    match error {
        WgpuError::NoAdapter { software: Some(name) } => {
            // Its version is of no interest here.
            let name = name.split(" (").next().unwrap_or(name);
            format!("only a software renderer was found ({name}); the CPU is faster")
        }
        error => error.to_string(),
    }
}

/// The VAD has a thread of its own: it is never to wait for a reply.
pub(crate) fn vad_backend() -> Cpu {
    Cpu::new(CpuOptions { threads: Some(1), ..CpuOptions::default() })
}

/// The voice detector with its usual thresholds.
pub(crate) fn listener() -> Result<Listener> {
    Ok(Listener::new(silero(&vad_backend())?, EndpointConfig::default()))
}

/// The voice detector.
pub(crate) fn silero(backend: &dyn Backend) -> Result<SileroVad> {
    let file = repartee_models::resolve(DETECTOR, "silero_vad_16k.safetensors")?;
    Ok(SileroVad::load(Arc::new(SafeTensors::open(file)?), backend)?)
}

/// The catalogue's entry of a model, which must do what `role` says and be of a family that this version runs.
///
/// # Errors
/// [`WrongUsage`] with the names that fit.
pub(crate) fn entry(model: &str, role: Role, family: &str) -> Result<Model> {
    let store = repartee_models::Store::open()?;
    let models = store.catalogue().models();
    let fits = |m: &&Model| m.role == role && m.family == family;
    let Some(found) = models.iter().filter(fits).find(|m| m.name == model) else {
        let names: Vec<&str> = models.iter().filter(fits).map(|m| m.name.as_str()).collect();
        return Err(WrongUsage::error(format!(
            "{model} is no model that this version can use here; choose one of {}",
            names.join(", ")
        )));
    };
    Ok(found.clone())
}

/// Refuses the names of models and voices that there are not, and models that are not in the cache: before anything is
/// loaded.
///
/// # Errors
/// [`WrongUsage`] for a name, else what the cache says.
pub(crate) fn check_names(stt: &str, llm: &str, voices: Option<&str>) -> Result<()> {
    let named = [entry(stt, Role::Stt, "whisper")?, entry(llm, Role::Llm, "llama")?];
    let mut wanted = vec![DETECTOR, &named[0].name, &named[1].name];
    if voices.is_some() {
        wanted.extend(SPEECH);
    }
    require(&wanted)?;
    voices.map_or(Ok(()), |names| voice(names).map(drop))
}

/// What tells speech from other sound.
pub(crate) const DETECTOR: &str = "silero-vad-v6";

/// What speaking needs.
pub(crate) const SPEECH: [&str; 3] = ["kokoro-82m", VOICES, "misaki-en"];

/// Refuses to begin without `models`, and names all that are missing: nobody wants to be told of one at a time.
pub(crate) fn require(models: &[&str]) -> Result<()> {
    let store = repartee_models::Store::open()?;
    let mut missing = Vec::new();
    for name in models {
        let model = store.catalogue().model(name)?;
        if store.state(model) != ModelState::Present {
            missing.push(model);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|model| model.name.as_str()).collect();
    let size_bytes = missing.iter().map(|model| model.size_bytes()).sum();
    anyhow::bail!(
        "models are missing in the cache: run `{}` ({})",
        fetch_command(&names, missing.iter().any(|model| model.hub)),
        super::models::megabytes(size_bytes)
    )
}

/// What brings models, from a terminal.
pub(crate) fn fetch_command(names: &[&str], has_hub: bool) -> String {
    format!("repartee models fetch {}{}", names.join(" "), if has_hub { " --hub" } else { "" })
}

/// A recogniser of speech in `language`.
pub(crate) fn transcriber(model: &str, language: &str, backend: &dyn Backend) -> Result<Transcriber> {
    let whisper = whisper(model, backend)?;
    let known = &whisper.special().languages;
    let codes: Vec<&str> = match known.as_slice() {
        [] => vec!["en"],
        known => known.iter().map(|(code, _)| code.as_str()).collect(),
    };
    if !codes.contains(&language) {
        return Err(WrongUsage::error(format!(
            "{model} does not know the language {language:?}; it knows {}",
            codes.join(", ")
        )));
    }
    Ok(Transcriber::new(whisper, language))
}

/// A recogniser.
pub(crate) fn whisper(model: &str, backend: &dyn Backend) -> Result<Whisper> {
    let (weights, config) = match entry(model, Role::Stt, "whisper")?.format {
        Format::Safetensors => ("model.safetensors", "generation_config.json"),
        _ => ("model.bin", "config.json"),
    };
    let file = |name| repartee_models::resolve(model, name);
    let loaded = Whisper::load(file(weights)?, file("tokenizer.json")?, file(config)?, backend);
    loaded.with_context(|| format!("cannot load {model}"))
}

/// A language model.
pub(crate) fn llama(model: &str, backend: &dyn Backend, context: usize) -> Result<Llama> {
    let entry = entry(model, Role::Llm, "llama")?;
    let weights = entry.files.first().context("the catalogue names no file")?;
    llama_file(&repartee_models::resolve(model, &weights.name)?, backend, context)
        .with_context(|| format!("cannot load {model}"))
}

/// A language model in a file of the user's.
pub(crate) fn llama_file(path: &Path, backend: &dyn Backend, context: usize) -> Result<Llama> {
    let file = Gguf::open(path)?;
    let loaded = Llama::load(&Arc::new(file), backend, LlamaOptions { context });
    loaded.with_context(|| format!("cannot use {}", path.display()))
}

/// The speech model.
pub(crate) fn kokoro(backend: &dyn Backend) -> Result<Kokoro> {
    let file = |name| repartee_models::resolve("kokoro-82m", name);
    let loaded = Kokoro::load(file("kokoro-v1.0.int8.onnx")?, file("vocab.json")?, backend);
    loaded.context("cannot load kokoro-82m")
}

/// A voice by name, or a blend: `af_heart:2+bm_george`.
pub(crate) fn voice(names: &str) -> Result<Voice> {
    let mut parts = Vec::new();
    for part in names.split('+') {
        let (name, weight) = part.split_once(':').unwrap_or((part, "1"));
        let Some(weight) = weight.trim().parse::<f32>().ok().filter(|w| w.is_finite() && *w >= 0.0) else {
            return Err(WrongUsage::error(format!(
                "{weight:?} is no weight of a blend; take a number from 0 on"
            )));
        };
        let file = match repartee_models::resolve(VOICES, &format!("{}.bin", name.trim())) {
            Err(repartee_models::Error::UnknownFile { .. }) => return Err(no_voice(name.trim())?),
            file => file?,
        };
        parts.push((Voice::open(file)?, weight));
    }
    if parts.iter().all(|(_, weight)| *weight == 0.0) {
        return Err(WrongUsage::error("a blend needs a weight above 0"));
    }
    Ok(Voice::blend(&parts)?)
}

/// The catalogue's entry with the voices.
pub(crate) const VOICES: &str = "kokoro-voices";

/// What is said about a voice that there is not.
fn no_voice(name: &str) -> Result<anyhow::Error> {
    let store = repartee_models::Store::open()?;
    let files = &store.catalogue().model(VOICES)?.files;
    let names: Vec<&str> = files.iter().filter_map(|file| file.name.strip_suffix(".bin")).collect();
    Ok(WrongUsage::error(format!("there is no voice {name:?}; choose one of {}", names.join(", "))))
}

/// The voice that speaks when none is named.
pub(crate) const VOICE: &str = "af_heart";

/// What finds the sounds of words, in the accent of the (first) voice: names of British ones start with `b`.
pub(crate) fn phonemizer(voices: &str) -> Result<(Phonemizer, Locale)> {
    let (accent, locale, files) = if voices.starts_with('b') {
        (Accent::British, Locale::EnGb, ["gb_gold.json", "gb_silver.json"])
    } else {
        (Accent::American, Locale::EnUs, ["us_gold.json", "us_silver.json"])
    };
    let read = |name: &str| {
        let path = repartee_models::resolve("misaki-en", name)?;
        std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let lexicon = Lexicon::from_json(accent, &read(files[0])?, &read(files[1])?)?;
    Ok((Phonemizer::new(lexicon)?, locale))
}

/// What reads replies aloud.
pub(crate) fn narrator(voices: &str, settings: SpeechSettings, backend: &dyn Backend) -> Result<Narrator> {
    let (phonemizer, locale) = phonemizer(voices)?;
    let speaker = Speaker::new(kokoro(backend)?, voice(voices)?, settings);
    Ok(Narrator::new(speaker, phonemizer, locale))
}

/// A recording as mono samples at 16 kHz.
pub(crate) fn read_16k(path: &Path) -> Result<Vec<f32>> {
    let unusable = || format!("cannot use {}", path.display());
    let audio = match repartee_audio::wav::read_mono(path) {
        // Names the file itself.
        Err(error @ AudioError::Read { .. }) => return Err(error.into()),
        audio => audio.with_context(unusable)?,
    };
    for warning in &audio.warnings {
        tracing::warn!("{}: {warning}", path.display());
    }
    if audio.rate_hz == RATE_HZ {
        return Ok(audio.samples);
    }
    repartee_audio::resample::resample(&audio.samples, audio.rate_hz, RATE_HZ).with_context(unusable)
}

#[cfg(all(test, feature = "wgpu"))]
pub(crate) mod tests {
    use std::io::Write;

    use super::*;

    /// A GPU or what stands in for one. `None` where there is neither, which is told; in CI there has to be.
    pub(crate) fn gpu(options: WgpuOptions) -> Option<Wgpu> {
        let gpu = Wgpu::new(WgpuOptions { allow_software: true, ..options });
        gpu.inspect_err(|error| {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "not tested: {error}");
            let _ = writeln!(std::io::stderr(), "not tested: {error}");
        })
        .ok()
    }

    #[cfg(feature = "desktop")]
    #[test]
    fn software_is_no_gpu() {
        let software = WgpuError::NoAdapter { software: Some("llvmpipe (LLVM 15.0.6, 256 bits)".into()) };
        assert_eq!(
            gpu_problem_of(&software),
            "only a software renderer was found (llvmpipe); the CPU is faster"
        );
        assert!(gpu_problem_of(&WgpuError::NoAdapter { software: None }).contains("driver"));
    }
}
