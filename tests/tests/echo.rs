//! B13: the program does not hear itself. What the output really plays comes back to the microphone, and the real
//! detector listens to what the echo canceller leaves of it. Time is simulated, in blocks of 10 ms.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use repartee_audio::echo::EchoMode;
use repartee_audio::input::InputCallback;
use repartee_audio::microphone::{self, Microphone};
use repartee_audio::output::{self, OutputCallback, OutputConfig, OutputControl, OutputFeeder};
use repartee_audio::{resample, wav};
use repartee_engine::backends::cpu::{Cpu, CpuOptions};
use repartee_engine::formats::safetensors::SafeTensors;
use repartee_engine::models::silero::SileroVad;
use repartee_engine::stages::listen::{Listener, utterances};
use repartee_engine::turn::endpoint::{EndpointConfig, SpeechEvent};

const RATE_HZ: usize = 16_000;
const DEVICE_HZ: usize = 48_000;
const VOICE_HZ: usize = 24_000;
/// 10 ms at the devices' rate.
const BLOCK: usize = 480;
const DELAY_MS: usize = 80;

fn resolve(model: &str, file: &str) -> PathBuf {
    repartee_models::resolve(model, file).expect("the model is fetched")
}

fn listener() -> Listener {
    let file = SafeTensors::open(resolve("silero-vad-v6", "silero_vad_16k.safetensors")).expect("weights");
    let backend = Cpu::new(CpuOptions { threads: Some(1), ..CpuOptions::default() });
    let vad = SileroVad::load(Arc::new(file), &backend).expect("a detector");
    Listener::new(vad, EndpointConfig::default())
}

/// Human speech.
fn speech(file: &str, rate_hz: usize) -> Vec<f32> {
    let audio = wav::read_mono(&resolve("test-speech", file)).expect("a recording");
    resample::resample(&audio.samples, audio.rate_hz, rate_hz as u32).expect("another rate")
}

fn power(samples: &[f32]) -> f32 {
    samples.iter().map(|s| s * s).sum::<f32>() / samples.len().max(1) as f32
}

struct Noise(u32);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as f32 / 8_388_608.0 - 1.0
    }
}

/// A loudspeaker and a microphone on a table.
struct Room {
    control: OutputControl,
    feeder: OutputFeeder,
    speaker: OutputCallback,
    callback: InputCallback,
    microphone: Microphone,
    /// What was played and has not come back yet, behind what the reflection needs of the past.
    air: Vec<f32>,
    low: f32,
    noise: Noise,
    /// The echo alone, as it is at the microphone.
    echo: Vec<f32>,
    events: Vec<(f32, SpeechEvent)>,
    listener: Listener,
    blocks: usize,
}

/// The second way of the sound is 4 ms longer.
const REFLECTION: usize = 192;

impl Room {
    fn new(mode: EchoMode) -> Self {
        let (control, feeder, port) = output::new(OutputConfig::new(VOICE_HZ as u32)).expect("an output");
        let (speaker, tap) = port.connect(DEVICE_HZ as u32).expect("a speaker");
        let (microphone, input) = microphone::new(mode);
        let callback = input.connect(DEVICE_HZ as u32).expect("a microphone");
        input.set_far_end(Some(tap));
        let air = vec![0.0; REFLECTION + DELAY_MS * DEVICE_HZ / 1000];
        control.play(1);
        Self {
            control,
            feeder,
            speaker,
            callback,
            microphone,
            air,
            low: 0.0,
            noise: Noise(5),
            echo: Vec::new(),
            events: Vec::new(),
            listener: listener(),
            blocks: 0,
        }
    }

    fn secs(&self) -> f32 {
        self.blocks as f32 / 100.0
    }

    /// Plays `reply` (24 kHz) while the user says `spoken` (48 kHz) from the start on.
    fn pass(&mut self, reply: &[f32], spoken: &[f32]) {
        let (mut rest, mut heard) = (reply, Vec::new());
        let mut spoken = spoken.iter();
        for _ in 0..reply.len() / (VOICE_HZ / 100) {
            while let taken @ 1.. = self.feeder.offer(1, rest).expect("room or none") {
                rest = &rest[taken..];
            }
            // Every ten seconds it ducks for one, as for somebody who coughs.
            match self.blocks % 1_000 {
                800 => self.control.duck(1),
                900 => self.control.resume(1),
                _ => {}
            }
            let (mut played, mut frame) = ([0.0f32; 2 * BLOCK], [0.0f32; BLOCK]);
            self.speaker.fill(&mut played, 2, |sample| sample);
            self.air.extend(played.iter().step_by(2));
            for (i, sample) in frame.iter_mut().enumerate() {
                let way = self.air[i + REFLECTION] + 0.4 * self.air[i];
                self.low += 0.35 * (way - self.low);
                // -12 dB, and a room at -60 dBFS.
                let echo = 0.25 * self.low;
                self.echo.push(echo);
                *sample =
                    echo + spoken.next().copied().unwrap_or(0.0) + 0.001 * 3f32.sqrt() * self.noise.next();
            }
            self.air.drain(..BLOCK);
            self.callback.take(&frame, 1, |sample| sample);
            self.blocks += 1;
            // The program looks every 20 ms.
            if self.blocks.is_multiple_of(2) {
                heard.clear();
                self.microphone.read(&mut heard).expect("sound");
                let secs = self.secs();
                let events = &mut self.events;
                self.listener.push(&heard, &mut |event| events.push((secs, event))).expect("scores");
            }
        }
    }

    fn starts(&self) -> usize {
        self.events.iter().filter(|(_, event)| matches!(event, SpeechEvent::Start { .. })).count()
    }
}

/// A reply of so many seconds: a story, again from the start when it is over.
fn reply(secs: usize) -> Vec<f32> {
    speech("two_cities.wav", VOICE_HZ).into_iter().cycle().take(secs * VOICE_HZ).collect()
}

#[test]
fn b13_two_minutes_of_its_own_voice_are_no_speech() {
    let mut room = Room::new(EchoMode::Cancel);
    room.pass(&reply(120), &[]);
    assert!(room.control.played(1) > 119 * VOICE_HZ as u64);
    assert_eq!(room.events, [], "it heard itself");
}

#[test]
fn without_the_canceller_it_would_hear_itself() {
    let mut room = Room::new(EchoMode::Headphones);
    room.pass(&reply(30), &[]);
    assert!(room.starts() > 3, "{:?}", room.events);
}

/// Where the user's words are in a recording of 16 kHz.
fn words(samples: &[f32]) -> Range<usize> {
    let found = utterances(&mut listener(), samples).expect("utterances");
    let first = found.first().expect("somebody speaks");
    // The pre-roll is not spoken yet.
    first.start + RATE_HZ * 3 / 10..first.end
}

#[test]
fn b13_speech_over_the_echo_interrupts() {
    let said = words(&speech("beckett.wav", RATE_HZ));
    let beckett = speech("beckett.wav", DEVICE_HZ);
    let said = &beckett[said.start * 3..(said.end * 3).min(beckett.len())];
    // Two seconds of it, each time others.
    let pieces: Vec<&[f32]> = said.chunks_exact(2 * DEVICE_HZ).take(4).collect();
    assert!(pieces.len() >= 2);
    let mut room = Room::new(EchoMode::Cancel);
    let reply = reply(60);
    let mut rest = reply.chunks(5 * VOICE_HZ);
    room.pass(rest.next().expect("a beginning"), &[]);
    assert_eq!(room.starts(), 0, "nobody has spoken yet");
    for (number, piece) in pieces.iter().enumerate() {
        // 6 dB over the echo of the last five seconds.
        let echo = power(&room.echo[room.echo.len() - 5 * DEVICE_HZ..]);
        let gain = (4.0 * echo / power(piece)).sqrt();
        let spoken: Vec<f32> = piece.iter().map(|s| s * gain).collect();
        let (before, from) = (room.events.len(), room.secs());
        room.pass(rest.next().expect("more of it"), &spoken);
        let found = &room.events[before..];
        let sure = found.iter().find(|(_, event)| *event == SpeechEvent::Confirmed);
        let after = sure.map_or(f32::INFINITY, |(secs, _)| secs - from);
        assert!(after < 1.0, "interruption {number} is sure after {after} s: {found:?}");
        // And it ends, in spite of the reply that goes on.
        let end = found.iter().find(|(_, event)| matches!(event, SpeechEvent::End { .. }));
        let after = end.map_or(f32::INFINITY, |(secs, _)| secs - from);
        assert!(after < 4.0, "interruption {number} ends after {after} s: {found:?}");
    }
}
