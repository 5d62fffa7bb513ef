//! `repartee say`: a text as speech.

use std::io::Read;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use repartee_audio::wav::{self, Format};
use repartee_engine::models::kokoro::SPEEDS;
use repartee_engine::stages::narrate::NarrateEvent;
use repartee_engine::stages::speak::{RATE_HZ, SpeechSettings};

use super::setup::{self, BackendName};
use crate::output::{self, Output};
use crate::printing::out;
use crate::usage::{WrongUsage, within};

/// Speaks a text into a WAV file.
#[derive(Debug, Args)]
pub(crate) struct SayArgs {
    /// The text, markdown and all; `-` reads it from standard input.
    text: String,
    /// Who speaks, as `repartee models list` names the files of kokoro-voices; `af_heart:2+bm_george` is a blend.
    #[arg(long, default_value = setup::VOICE)]
    voice: String,
    /// 1 is the voice's own speed.
    #[arg(long, default_value_t = 1.0, value_parser = within(SPEEDS))]
    speed: f32,
    /// Where the sound goes.
    #[arg(long, value_name = "WAV", default_value = "speech.wav")]
    output: PathBuf,
    /// Equal seeds give equal sound.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// What computes.
    #[arg(long, value_enum, default_value_t = BackendName::Auto)]
    backend: BackendName,
}

/// A text that takes days to speak.
const MOST_BYTES: u64 = 4 << 20;

pub(crate) fn run(args: SayArgs) -> Result<()> {
    let mut text = args.text;
    if text == "-" {
        text.clear();
        let mut input = std::io::stdin().take(MOST_BYTES + 1);
        input.read_to_string(&mut text).context("cannot read the text from standard input")?;
        if text.len() as u64 > MOST_BYTES {
            return Err(WrongUsage::error(format!(
                "the text on standard input has more than {} MiB; speak it in parts",
                MOST_BYTES >> 20
            )));
        }
    }
    if text.trim().is_empty() {
        return Err(WrongUsage::error("there is nothing to say: the text is empty"));
    }
    output::check(&[], &[Output { option: "--output", path: &args.output }])?;
    output::check_sound(&args.output)?;
    setup::require(&setup::SPEECH)?;
    setup::voice(&args.voice)?;
    let backend = setup::backend(args.backend)?;
    let settings = SpeechSettings { speed: args.speed, seed: args.seed };
    let mut narrator = setup::narrator(&args.voice, settings, backend.as_ref())?;
    let started = Instant::now();
    let (mut sound, mut first) = (Vec::new(), None);
    let mut on_event = |event: NarrateEvent<'_>| match event {
        NarrateEvent::Clause { words, .. } => out!("{words}"),
        NarrateEvent::Sound(samples) => {
            first.get_or_insert_with(|| started.elapsed());
            sound.extend_from_slice(samples);
        }
    };
    narrator.push(&text, &mut on_event, None)?;
    narrator.finish(&mut on_event, None)?;
    if sound.is_empty() {
        return Err(WrongUsage::error("there is nothing to say in this text"));
    }
    let whole = started.elapsed().as_secs_f64();
    wav::write(&args.output, &sound, RATE_HZ, Format::Int16)?;
    out!(
        "{}: {:.2} s of speech in {whole:.2} s, the first clause after {:.2} s",
        args.output.display(),
        sound.len() as f64 / f64::from(RATE_HZ),
        first.unwrap_or_default().as_secs_f64()
    );
    Ok(())
}
