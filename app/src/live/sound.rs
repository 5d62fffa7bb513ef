//! Microphone and speaker of `repartee-audio`, as the pipeline sees them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use repartee_audio::devices::SoundConfig;
use repartee_audio::echo::EchoMode;
use repartee_audio::microphone::Microphone;
use repartee_audio::speaker::Speaker;
use repartee_engine::stages::speak;
use repartee_engine::turn::conductor::Output;
use repartee_engine::turn::message::TurnNumber;
use repartee_engine::turn::pipeline::{self, Heard, Loudspeaker};

use super::Settings;

/// What to open under these settings.
pub(super) fn config(settings: &Settings) -> SoundConfig {
    SoundConfig {
        input: settings.input.clone(),
        output: settings.output.clone(),
        echo: echo(settings),
        ..SoundConfig::default()
    }
}

/// Whether the echo canceller is needed.
pub(super) fn echo(settings: &Settings) -> EchoMode {
    if settings.headphones { EchoMode::Headphones } else { EchoMode::Cancel }
}

/// What the user is heard with.
pub(super) struct Ear(pub(super) Microphone);

impl pipeline::Microphone for Ear {
    fn wait(&mut self, out: &mut Vec<f32>, timeout: Duration) -> Result<Heard, String> {
        match self.0.wait(out, timeout) {
            Ok(true) => Ok(Heard::Sound),
            Ok(false) => Ok(Heard::Nothing),
            Err(error) => Err(error.to_string()),
        }
    }

    fn age(&self) -> Option<Duration> {
        self.0.heard_at().map(|at| at.elapsed())
    }
}

/// What the replies are played with. While there is no speaker, it keeps the time of one, so that who reads along can
/// go on.
pub(super) struct Mouth {
    speaker: Speaker,
    has_speaker: Arc<AtomicBool>,
    /// What is played on no speaker: since when, and how much was queued.
    silent: Option<(TurnNumber, Instant, u64)>,
}

impl Mouth {
    /// The mouth, and whether there is a speaker, for whoever knows.
    pub(super) fn new(speaker: Speaker) -> (Self, Arc<AtomicBool>) {
        let has_speaker = Arc::new(AtomicBool::new(true));
        (Self { speaker, has_speaker: has_speaker.clone(), silent: None }, has_speaker)
    }

    fn silent_turn(&self) -> Option<TurnNumber> {
        self.silent.map(|(turn, ..)| turn)
    }
}

impl Loudspeaker for Mouth {
    fn queue(&mut self, turn: TurnNumber, sound: Arc<[f32]>) {
        let length = sound.len() as u64;
        // Both: a device that comes while the reply is played plays the rest of what it has.
        self.speaker.queue(turn.0, sound);
        if self.silent_turn() == Some(turn) {
            self.silent = self.silent.map(|(turn, since, queued)| (turn, since, queued + length));
        } else {
            self.silent = (!self.has_speaker.load(Ordering::Acquire)).then(|| (turn, Instant::now(), length));
        }
    }

    fn set_output(&mut self, turn: TurnNumber, output: Output) {
        match output {
            Output::Normal => self.speaker.resume(turn.0),
            Output::Ducked => self.speaker.duck(turn.0),
            Output::Held => self.speaker.hold(turn.0),
        }
    }

    fn silence(&mut self, turn: TurnNumber) {
        self.speaker.silence(turn.0);
        self.silent = self.silent.filter(|(silent, ..)| *silent != turn);
    }

    fn heard(&mut self, turn: TurnNumber) -> u64 {
        let heard = self.speaker.heard(turn.0);
        match self.silent {
            Some((silent, since, queued)) if silent == turn => {
                let passed = (since.elapsed().as_secs_f64() * f64::from(speak::RATE_HZ)) as u64;
                heard.max(passed.min(queued))
            }
            _ => heard,
        }
    }
}
