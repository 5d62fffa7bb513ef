//! `repartee talk`: a conversation with microphone and speaker, or from recordings that are answered in text and, with
//! `--output`, in speech.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use repartee_engine::backends::Backend;
use repartee_engine::latency::{
    Config, Machine, Mark, Marks, Metric, MonotonicClock, Recorder, Report, StageConfig,
};
use repartee_engine::models::Remedy;
use repartee_engine::models::kokoro::SPEEDS;
use repartee_engine::models::llama::Sampling;
use repartee_engine::models::silero::{CHUNK_SAMPLES, RATE_HZ};
use repartee_engine::stages::listen::{Listener, joined};
use repartee_engine::stages::narrate::{NarrateEvent, Narrator};
use repartee_engine::stages::reply::{Replier, ReplyEvent, SYSTEM_PROMPT};
use repartee_engine::stages::speak::{self, SpeechSettings};
use repartee_engine::stages::transcribe::{TranscribeEvent, Transcriber};
use repartee_engine::turn::endpoint::SpeechEvent;
use repartee_engine::turn::history::{History, Trimmed};
use repartee_engine::turn::message::Exchange;

use super::setup::{self, BackendName};
#[cfg(feature = "desktop")]
use crate::live::Settings;
use crate::output::{self, Output};
use crate::printing::{note, out};
use crate::usage::{WrongUsage, within};

/// Talks with you: listens to the microphone and answers aloud. With `--input`, answers recorded questions instead.
#[derive(Debug, Args)]
#[cfg_attr(feature = "desktop", command(after_help = TYPED_HELP))]
pub(crate) struct TalkArgs {
    /// A recorded question; give the option again for the next turn. Several files are one conversation.
    #[arg(long, value_name = "WAV", required = cfg!(not(feature = "desktop")))]
    input: Vec<PathBuf>,
    /// Take the samples in at the speed they were spoken, as from a microphone.
    #[arg(long, requires = "input")]
    realtime: bool,
    #[cfg(feature = "desktop")]
    #[command(flatten)]
    live: LiveArgs,
    /// What computes.
    #[arg(long, value_enum, default_value_t = BackendName::Auto)]
    backend: BackendName,
    /// Write a latency report (JSON).
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Recogniser: whisper-base, whisper-tiny.en or another Whisper of the catalogue.
    #[arg(long, default_value = "whisper-base")]
    stt: String,
    /// Language model: qwen2.5-coder-0.5b, smollm2-135m or another of the catalogue's family `llama`.
    #[arg(long, default_value = "qwen2.5-coder-0.5b")]
    llm: String,
    /// Code of the language spoken.
    #[arg(long, default_value = "en")]
    language: String,
    /// What the assistant is told about itself, in place of the usual words and the time of day.
    #[arg(long)]
    system: Option<String>,
    /// Tokens of memory for the conversation; no more than the model was trained for are used.
    #[arg(long, default_value_t = 4096, value_parser = within(256..=1_usize << 20))]
    context: usize,
    /// 0 always takes the most likely token.
    #[arg(long, default_value_t = 0.0, value_parser = within(0.0..=5.0_f32))]
    temperature: f32,
    /// Equal seeds give equal replies.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Speak the replies to recordings into this file.
    #[arg(long, value_name = "WAV", requires = "input")]
    output: Option<PathBuf>,
    /// Who speaks, as for `repartee say` [default: af_heart]
    #[arg(long)]
    voice: Option<String>,
    /// 1 is the voice's own speed [default: 1]
    #[arg(long, value_parser = within(SPEEDS))]
    speed: Option<f32>,
    /// Most tokens of a reply.
    #[arg(long, default_value_t = 200, value_parser = within(1..=100_000_usize))]
    max_tokens: usize,
}

#[cfg(feature = "desktop")]
const TYPED_HELP: &str = "\
Without --input it talks with you. Lines that you type are answered too; an empty one stops the reply. Lines from a
pipe are questions, each asked when the one before is answered; where no microphone is in use, it ends behind the last:

  printf 'Hello.\\nWhat is two and two?\\n' | repartee talk --microphone off";

/// What only a live conversation has.
#[cfg(feature = "desktop")]
#[derive(Debug, Args)]
pub(crate) struct LiveArgs {
    /// Microphone, by its name or id (`repartee devices`), or `off`; else the system's default.
    #[arg(long, value_name = "NAME", conflicts_with = "input")]
    pub(super) microphone: Option<String>,
    /// Speaker, by its name or id, or `off`; else the system's default.
    #[arg(long, value_name = "NAME", conflicts_with = "input")]
    pub(super) speaker: Option<String>,
    /// The speaker cannot be heard by the microphone: leave the echo canceller off.
    #[arg(long, conflicts_with = "input")]
    pub(super) headphones: bool,
    /// Milliseconds of silence after which you have finished.
    #[arg(long, conflicts_with = "input", default_value_t = 500, value_parser = within(200..=3_000_u64), value_name = "MS")]
    pub(super) silence: u64,
    /// End after so many answers; else Ctrl-C ends.
    #[arg(long, conflicts_with = "input", value_name = "N")]
    pub(super) turns: Option<usize>,
}

/// Silence fed behind a recording so that the end of the turn is heard: longer than any end-of-turn wait.
const SILENCE_SECS: usize = 3;

/// A conversation and its stages.
struct Agent {
    listener: Listener,
    models: Models,
    history: History,
    /// What was spoken.
    sound: Vec<f32>,
}

/// The models of a conversation, and what the first two compute on.
struct Models {
    transcriber: Transcriber,
    replier: Replier,
    /// What speaks the replies, when somebody wants to hear them.
    narrator: Option<Narrator>,
    backends: [String; 2],
}

impl Models {
    /// Loads them on `backend`; one that cannot be there goes to the processor, which is said.
    fn load(args: &TalkArgs, backend: &dyn Backend) -> Result<Self> {
        let (transcriber, on) =
            placed(&args.stt, backend, |on| setup::transcriber(&args.stt, &args.language, on))?;
        let (replier, replier_on) = placed(&args.llm, backend, |on| {
            let sampling = Sampling { temperature: args.temperature, seed: args.seed, ..Sampling::default() };
            Ok(Replier::new(setup::llama(&args.llm, on, args.context)?, sampling, args.max_tokens))
        })?;
        let narrator = args.output.as_ref().map(|_| {
            let settings = SpeechSettings { speed: args.speed(), seed: args.seed };
            placed("kokoro-82m", backend, |on| setup::narrator(args.voice(), settings, on))
        });
        let narrator = narrator.transpose()?.map(|(narrator, _)| narrator);
        Ok(Self { transcriber, replier, narrator, backends: [on, replier_on] })
    }
}

/// What `load` gives on `backend` or, where that has no room or fails, on the processor; and where that was.
fn placed<T>(
    model: &str,
    backend: &dyn Backend,
    load: impl Fn(&dyn Backend) -> Result<T>,
) -> Result<(T, String)> {
    let error = match load(backend) {
        Ok(loaded) => return Ok((loaded, backend.name())),
        Err(error) => error,
    };
    match setup::remedy(&error) {
        None => return Err(error),
        Some(Remedy::Elsewhere) => note!("warning: {}", setup::no_room(model, &error)),
        Some(Remedy::Reopen) => note!("warning: {}; it runs on the processor", crate::message(&error)),
    }
    let processor = setup::backend(BackendName::Cpu)?;
    Ok((load(processor.as_ref())?, processor.name()))
}

/// A part of the stream and its words.
struct Piece {
    span: Range<usize>,
    text: String,
}

/// Adds a piece; one that starts where the last one does holds its words too and takes its place.
fn settle(pieces: &mut Vec<Piece>, piece: Piece) {
    if pieces.last().is_some_and(|last| last.span.start == piece.span.start) {
        pieces.pop();
    }
    pieces.push(piece);
}

/// What the assistant is told: how to answer, and the time, which a small model would otherwise invent. To the quarter of
/// an hour: each change of these words costs the model a reading of the whole conversation.
pub(crate) fn instructions(now: &jiff::ZonedDateTime) -> String {
    let quarter = jiff::ZonedDateTimeRound::new().smallest(jiff::Unit::Minute).increment(15);
    // Only the end of all time has no next quarter.
    let about = now.round(quarter).unwrap_or_else(|_| now.clone());
    format!("{SYSTEM_PROMPT} It is {}.", about.strftime("%A, %B %-d, %Y, about %-I:%M %p"))
}

pub(crate) fn run(args: TalkArgs) -> Result<()> {
    // Paths and names first: a wrong one should not cost the loading of the models.
    args.check()?;
    #[cfg(feature = "desktop")]
    if args.input.is_empty() {
        return super::converse::run(args.settings(), &args.live, args.report.as_deref());
    }
    let mut recordings = Vec::new();
    for path in &args.input {
        recordings.push(setup::read_16k(path)?);
    }
    let started = Instant::now();
    let backend = setup::backend(args.backend)?;
    let system = args.system.clone();
    let mut agent = Agent {
        listener: setup::listener()?,
        models: Models::load(&args, backend.as_ref())?,
        sound: Vec::new(),
        history: History::new(&system.unwrap_or_else(|| instructions(&jiff::ZonedDateTime::now()))),
    };
    out!("loaded in {:.2} s on {}", started.elapsed().as_secs_f64(), backend.name());

    let mut recorder = Recorder::new(Arc::new(MonotonicClock::new()));
    for (i, samples) in recordings.iter().enumerate() {
        let (heard, answer) = agent.turn_anywhere(&args, samples, &mut recorder, i as u64 + 1)?;
        if heard.is_empty() {
            out!("\n[{}] no speech was heard", args.input[i].display());
            // Nobody asked anything: no turn.
            recorder.discard();
            continue;
        }
        out!("\n  you: {heard}\nreply: {answer}");
        recorder.finish(&heard, &answer);
    }

    let [transcriber_on, replier_on] = agent.models.backends;
    let stage = |model: &str, backend: String| StageConfig { model: model.into(), backend };
    let mut settings = BTreeMap::new();
    settings.insert("realtime".into(), args.realtime.to_string());
    settings.insert("temperature".into(), args.temperature.to_string());
    let config = Config {
        version: env!("CARGO_PKG_VERSION").into(),
        stages: BTreeMap::from([
            ("vad".into(), stage("silero-vad-v6", setup::vad_backend().name())),
            ("transcribe".into(), stage(&args.stt, transcriber_on)),
            ("reply".into(), stage(&args.llm, replier_on)),
        ]),
        settings,
    };
    let report = Report::new(Machine::detect(), config, recorder.turns().cloned().collect());
    out!("\n{}", super::report::show(&report));
    // Neither waits for the other.
    let spoken = args.output.as_ref().map_or(Ok(()), |path| {
        if agent.sound.is_empty() {
            out!("nothing was said: {} is not written", path.display());
            return Ok(());
        }
        let format = repartee_audio::wav::Format::Int16;
        repartee_audio::wav::write(path, &agent.sound, speak::RATE_HZ, format)?;
        let secs = agent.sound.len() as f64 / f64::from(speak::RATE_HZ);
        out!("speech: {secs:.1} s in {}", path.display());
        Ok(())
    });
    if let Some(path) = &args.report {
        output::write(path, &report.to_json()?)?;
        out!("report: {}", path.display());
    }
    spoken
}

impl TalkArgs {
    /// Refuses what cannot be meant or can't be done.
    fn check(&self) -> Result<()> {
        if !self.input.is_empty() && self.output.is_none() {
            let named = [("--voice", self.voice.is_some()), ("--speed", self.speed.is_some())];
            if let Some((option, _)) = named.into_iter().find(|(_, given)| *given) {
                return Err(WrongUsage::error(format!(
                    "{option} changes nothing where recordings are answered in text: speak the answers into a file with \
                     --output FILE.wav, or leave {option} out"
                )));
            }
        }
        let inputs: Vec<&Path> = self.input.iter().map(PathBuf::as_path).collect();
        let named = [("--output", &self.output), ("--report", &self.report)];
        let outputs =
            named.into_iter().filter_map(|(option, path)| Some(Output { option, path: path.as_deref()? }));
        output::check(&inputs, &outputs.collect::<Vec<_>>())?;
        self.output.as_deref().map_or(Ok(()), output::check_sound)?;
        let speaks = self.output.is_some() || self.input.is_empty();
        setup::check_names(&self.stt, &self.llm, speaks.then_some(self.voice()))
    }

    fn voice(&self) -> &str {
        self.voice.as_deref().unwrap_or(setup::VOICE)
    }

    fn speed(&self) -> f32 {
        self.speed.unwrap_or(1.0)
    }

    /// The same for a live conversation.
    #[cfg(feature = "desktop")]
    fn settings(&self) -> Settings {
        Settings {
            stt: self.stt.clone(),
            llm: self.llm.clone(),
            voice: self.voice().to_owned(),
            speed: self.speed(),
            language: self.language.clone(),
            instructions: self.system.clone(),
            context: self.context,
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            seed: self.seed,
            backends: [self.backend; 3],
            end_of_turn: Duration::from_millis(self.live.silence),
            headphones: self.live.headphones,
            ..Settings::default()
        }
    }
}

impl Agent {
    /// One turn. If the device is lost in it, the processor takes its place and hears the recording again.
    fn turn_anywhere(
        &mut self,
        args: &TalkArgs,
        samples: &[f32],
        recorder: &mut Recorder,
        id: u64,
    ) -> Result<(String, String)> {
        let spoken = self.sound.len();
        let error = match self.turn(samples, args.realtime, recorder, id) {
            Err(error) if setup::remedy(&error) == Some(Remedy::Reopen) => error,
            result => return result,
        };
        note!(
            "warning: {}; the processor computes from here on, and hears the recording again",
            crate::message(&error)
        );
        self.sound.truncate(spoken);
        self.listener = setup::listener()?;
        self.models = Models::load(args, setup::backend(BackendName::Cpu)?.as_ref())?;
        self.turn(samples, args.realtime, recorder, id)
    }

    /// One turn: listens to the recording, understands it in the silence behind it, and answers.
    fn turn(
        &mut self,
        samples: &[f32],
        realtime: bool,
        recorder: &mut Recorder,
        id: u64,
    ) -> Result<(String, String)> {
        // Each attempt at understanding starts its marks anew: what was begun in a pause that was none is forgotten.
        let mut attempt = || {
            let marks = recorder.begin(id);
            if id == 1 {
                let cold = [Metric::Encoder, Metric::TextDecoder, Metric::Prefill];
                cold.into_iter().for_each(|m| marks.mark_cold(m));
            }
            marks
        };
        let mut marks = attempt();
        let mut stream = samples.to_vec();
        stream.resize(samples.len() + SILENCE_SECS * RATE_HZ as usize, 0.0);
        self.models.replier.prepare(&self.history, None)?;
        let began = Instant::now();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut from = None;
        let mut guess: Option<Piece> = None;
        for (i, chunk) in stream.chunks(CHUNK_SAMPLES).enumerate() {
            let end = (i * CHUNK_SAMPLES + chunk.len()) as f64 / f64::from(RATE_HZ);
            if realtime {
                wait_until(began + Duration::from_secs_f64(end));
            }
            let mut events = Vec::new();
            self.listener.push(chunk, &mut |event| events.push(event))?;
            let now = (i * CHUNK_SAMPLES + chunk.len()).min(stream.len());
            for event in events {
                match event {
                    SpeechEvent::Start { from: at, .. } => from = Some(at.0 as usize),
                    SpeechEvent::Dropped => (from, guess) = (None, None),
                    SpeechEvent::Resumed => guess = None,
                    SpeechEvent::Confirmed => {}
                    SpeechEvent::Split { at } => {
                        if let Some(start) = from.replace(at.0 as usize) {
                            let piece = self.understand(&stream, &pieces, start..at.0 as usize, &marks)?;
                            settle(&mut pieces, piece);
                        }
                    }
                    SpeechEvent::MaybeEnd { voiced_end } => {
                        // The wait for the end of the turn is used: most pauses are the end.
                        let Some(start) = from else { continue };
                        marks = attempt();
                        if realtime {
                            let last =
                                began + Duration::from_secs_f64(voiced_end.0 as f64 / f64::from(RATE_HZ));
                            let ago = last.elapsed().as_nanos() as u64;
                            let now_ns = marks.now_ns();
                            marks.mark_at(Mark::SpeechEnd, now_ns.saturating_sub(ago));
                        } else {
                            marks.mark(Mark::SpeechEnd);
                        }
                        guess = Some(self.understand(&stream, &pieces, start..now, &marks)?);
                    }
                    SpeechEvent::End { .. } => {
                        marks.mark(Mark::EndOfTurn);
                        let piece = match (guess.take(), from.take()) {
                            (Some(piece), _) => piece,
                            (None, Some(start)) => self.understand(&stream, &pieces, start..now, &marks)?,
                            (None, None) => continue,
                        };
                        settle(&mut pieces, piece);
                    }
                }
            }
            // The turn is over once the speech and the silence behind it are in.
            if now >= samples.len() && from.is_none() && !pieces.is_empty() {
                break;
            }
        }
        self.listener.finish(&mut |_| {})?;
        let texts = pieces.into_iter().map(|piece| piece.text).filter(|text| !text.is_empty());
        let heard = texts.collect::<Vec<_>>().join(" ");
        if heard.is_empty() {
            return Ok((heard, String::new()));
        }
        marks.mark(Mark::TranscriptReady);
        let (narrator, sound) = (&mut self.models.narrator, &mut self.sound);
        let (mut silent, mut spoken) = ([true; 2], Ok(()));
        let mut on_sound = |event: NarrateEvent<'_>| match event {
            NarrateEvent::Clause { .. } => {
                if std::mem::take(&mut silent[0]) {
                    marks.mark(Mark::FirstClause);
                }
            }
            NarrateEvent::Sound(samples) => {
                if std::mem::take(&mut silent[1]) {
                    marks.mark(Mark::FirstChunk);
                }
                sound.extend_from_slice(samples);
            }
        };
        let reply = self.models.replier.reply(
            &mut self.history,
            &heard,
            &mut |event| match event {
                ReplyEvent::PrefillStart { .. } => marks.mark(Mark::PrefillStart),
                ReplyEvent::FirstToken => {
                    marks.mark(Mark::PrefillEnd);
                    marks.mark(Mark::FirstToken);
                }
                // On one processor the reply waits while a clause is spoken: the first sound comes first.
                ReplyEvent::Text(text) => {
                    if let (Some(narrator), Ok(())) = (narrator.as_mut(), &spoken) {
                        spoken = narrator.push(text, &mut on_sound, None);
                    }
                }
            },
            None,
        )?;
        spoken?;
        if let Some(narrator) = narrator {
            narrator.finish(&mut on_sound, None)?;
        }
        let text = reply.text.trim().to_owned();
        let exchange =
            Exchange { user: heard.as_str().into(), heard: text.as_str().into(), interrupted: false };
        self.history.remember(&exchange);
        if let Some(Trimmed { messages, words }) = reply.trimmed {
            tracing::warn!(messages, words, "the memory was full: the oldest messages were left out");
        }
        Ok((heard, text))
    }

    /// Understands `span` of the stream, together with the piece before it if they belong together.
    fn understand(
        &mut self,
        stream: &[f32],
        pieces: &[Piece],
        span: Range<usize>,
        marks: &Marks,
    ) -> Result<Piece> {
        let span = pieces.last().and_then(|last| joined(&last.span, &span)).unwrap_or(span);
        let mut on_event = |event| match event {
            TranscribeEvent::EncoderStart => marks.mark(Mark::EncoderStart),
            TranscribeEvent::EncoderEnd => marks.mark(Mark::EncoderEnd),
        };
        let transcript = self.models.transcriber.transcribe(&stream[span.clone()], &mut on_event, None)?;
        marks.mark(Mark::TranscriptReady);
        Ok(Piece { span, text: transcript.text })
    }
}

/// Waits for a moment of the recording to come.
fn wait_until(moment: Instant) {
    while let Some(left) = moment.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assistant_knows_the_time() {
        let at = |hour, minute| {
            let now = jiff::civil::date(2026, 11, 3).at(hour, minute, 0, 0).in_tz("UTC").expect("a moment");
            instructions(&now)
        };
        assert!(at(15, 7).starts_with(SYSTEM_PROMPT), "{}", at(15, 7));
        assert!(at(15, 7).ends_with(" It is Tuesday, November 3, 2026, about 3:00 PM."), "{}", at(15, 7));
        assert!(
            at(23, 55).ends_with(" It is Wednesday, November 4, 2026, about 12:00 AM."),
            "{}",
            at(23, 55)
        );
        assert_eq!(at(15, 8), at(15, 22), "the model keeps what it has read");
    }

    /// B38, for recordings.
    #[cfg(feature = "wgpu")]
    #[test]
    fn b38_a_lost_gpu_costs_no_question() {
        use clap::Parser;
        use repartee_engine::backends::wgpu::WgpuOptions;

        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            args: TalkArgs,
        }
        let Some(gpu) = setup::tests::gpu(WgpuOptions::default()) else { return };
        let words =
            "talk --input a.wav --stt whisper-tiny.en --llm smollm2-135m --max-tokens 4 --context 256";
        let args = Line::try_parse_from(words.split(' ')).expect("a command line").args;
        let question = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/questions/capital.wav");
        let samples = setup::read_16k(&question).expect("a recording");
        let mut agent = Agent {
            listener: setup::listener().expect("the detector"),
            models: Models::load(&args, &gpu).expect("small models"),
            history: History::new("Be brief."),
            sound: Vec::new(),
        };
        let is_on = |agent: &Agent, what| agent.models.backends.iter().all(|on| on.starts_with(what));
        assert!(is_on(&agent, "wgpu ("), "{:?}", agent.models.backends);
        gpu.lose();
        let mut recorder = Recorder::new(Arc::new(MonotonicClock::new()));
        let answered = agent.turn_anywhere(&args, &samples, &mut recorder, 1);
        let (heard, reply) = answered.expect("the processor goes on");
        assert_eq!(heard, "What is the capital of France?");
        assert!(!reply.is_empty() && is_on(&agent, "cpu ("), "{reply}: {:?}", agent.models.backends);

        // What has no room begins there.
        let options = WgpuOptions { memory_bytes: Some(16 << 20), ..WgpuOptions::default() };
        agent.models =
            Models::load(&args, &setup::tests::gpu(options).expect("as before")).expect("small models");
        assert!(is_on(&agent, "cpu ("), "{:?}", agent.models.backends);
    }

    #[test]
    fn a_piece_that_holds_the_last_one_takes_its_place() {
        let piece = |span: Range<usize>, text: &str| Piece { span, text: text.into() };
        let mut pieces = Vec::new();
        settle(&mut pieces, piece(0..10, "Ever tried."));
        settle(&mut pieces, piece(0..20, "Ever tried. Ever failed."));
        settle(&mut pieces, piece(90..99, "No matter."));
        let texts: Vec<&str> = pieces.iter().map(|p| p.text.as_str()).collect();
        assert_eq!(texts, ["Ever tried. Ever failed.", "No matter."]);
    }
}
