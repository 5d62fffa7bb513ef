//! A room is simulated: what is sent to the loudspeaker comes back delayed, filtered and quieter.

use std::f32::consts::{PI, TAU};

use super::*;
use crate::microphone::{self, Microphone};
use crate::output::{self, OutputCallback, OutputConfig, OutputControl, OutputFeeder};

struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// What is like speech to a canceller: a buzz whose pitch moves, through formants that change with each
/// syllable, with breath in it and gaps between words.
fn babble(seed: u64, rate_hz: u32, secs: usize) -> Vec<f32> {
    let (rate, mut noise) = (rate_hz as f32, Noise(seed));
    let mut out = Vec::with_capacity(secs * rate_hz as usize);
    let mut phase = 0.0f32;
    while out.len() < secs * rate_hz as usize {
        let length = (rate * (0.12 + 0.1 * noise.next().abs())) as usize;
        let pitch_hz = 130.0 + 60.0 * noise.next();
        let formants =
            [500.0 + 250.0 * noise.next(), 1_500.0 + 600.0 * noise.next(), 2_600.0 + 400.0 * noise.next()];
        let is_gap = noise.next() > 0.6;
        let mut states = [(0.0f32, 0.0f32); 3];
        for i in 0..length {
            phase = (phase + pitch_hz * (1.0 + 0.1 * i as f32 / length as f32) / rate).fract();
            let excitation = (1.0 - 2.0 * phase) * 0.3 + noise.next() * 0.1;
            let mut sample = 0.0;
            for (formant_hz, (y1, y2)) in formants.iter().zip(&mut states) {
                let r = 1.0 - 80.0 * PI / rate;
                let y = excitation * 0.1 + 2.0 * r * (TAU * formant_hz / rate).cos() * *y1 - r * r * *y2;
                (*y2, *y1) = (*y1, y);
                sample += y;
            }
            let envelope = (i as f32 / length as f32 * PI).sin();
            out.push(if is_gap { 0.0 } else { (sample * envelope * 0.12).clamp(-0.9, 0.9) });
        }
    }
    out.truncate(secs * rate_hz as usize);
    out
}

fn power(samples: &[f32]) -> f32 {
    samples.iter().map(|s| s * s).sum::<f32>() / samples.len().max(1) as f32
}

fn db(ratio: f32) -> f32 {
    10.0 * ratio.max(1e-12).log10()
}

/// Devices of 48 kHz in a room; time passes in blocks of 10 ms.
struct Room {
    control: OutputControl,
    feeder: OutputFeeder,
    speaker: OutputCallback,
    microphone: Microphone,
    callback: crate::input::InputCallback,
    /// What the loudspeaker plays, the delay's worth of it first.
    air: Vec<f32>,
    low: f32,
    noise: Noise,
    gain: f32,
}

const ROOM_HZ: u32 = 48_000;
const BLOCK: usize = 480;

impl Room {
    /// Echo of `delay_ms` at -12 dB through a low-pass filter and an early reflection, and noise at -60 dB.
    fn new(mode: EchoMode, delay_ms: usize) -> Self {
        let (control, feeder, port) = output::new(OutputConfig::new(24_000)).unwrap();
        let (speaker, tap) = port.connect(ROOM_HZ).unwrap();
        let (microphone, input) = microphone::new(mode);
        let callback = input.connect(ROOM_HZ).unwrap();
        input.set_far_end(Some(tap));
        let air = vec![0.0; delay_ms * ROOM_HZ as usize / 1000];
        control.play(1);
        Self { control, feeder, speaker, microphone, callback, air, low: 0.0, noise: Noise(5), gain: 0.25 }
    }

    /// Plays `far` (24 kHz) with `near` (48 kHz) spoken into the room; gives the echo and the rest as the
    /// microphone has it at 48 kHz, and what the program gets.
    fn play(&mut self, far: &[f32], near: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let (mut rest, mut heard, mut got) = (far, Vec::new(), Vec::new());
        for block in 0..far.len() / (BLOCK / 2) {
            while let taken @ 1.. = self.feeder.offer(1, rest).unwrap() {
                rest = &rest[taken..];
            }
            let mut played = [0.0f32; BLOCK];
            self.speaker.fill(&mut played, 1, |sample| sample);
            self.air.extend_from_slice(&played);
            let mut frame = [0.0f32; BLOCK];
            for (i, sample) in frame.iter_mut().enumerate() {
                let reflection = self.air[i] + 0.4 * self.air[i.saturating_sub(150)];
                self.low += 0.35 * (reflection - self.low);
                let echo = self.low * self.gain;
                heard.push(echo);
                let spoken = near.get(block * BLOCK + i).copied().unwrap_or(0.0);
                *sample = echo + spoken + self.noise.next() * 0.001;
            }
            self.air.drain(..BLOCK);
            self.callback.take(&frame, 1, |sample| sample);
            // The program looks every 20 ms.
            if block % 2 == 1 {
                self.microphone.read(&mut got).unwrap();
            }
        }
        (heard, got)
    }

    fn restarts(&self) -> u64 {
        self.microphone.echo.canceller.restarts()
    }
}

/// Decibels by which the echo is down in the last `secs` seconds.
fn removed_db(heard: &[f32], got: &[f32], secs: usize) -> f32 {
    let heard = power(&heard[heard.len() - secs * ROOM_HZ as usize..]);
    db(heard / power(&got[got.len() - secs * RATE_HZ as usize..]))
}

#[test]
fn b13_two_minutes_of_ones_own_voice_leave_next_to_nothing() {
    let mut room = Room::new(EchoMode::Cancel, 80);
    // The first second it adapts.
    let (heard, got) = room.play(&babble(1, 24_000, 3), &[]);
    assert!(removed_db(&heard, &got, 2) > 30.0, "{}", removed_db(&heard, &got, 2));
    let restarts = room.restarts();
    for part in 2..14 {
        let (heard, got) = room.play(&babble(part, 24_000, 10), &[]);
        assert!(removed_db(&heard, &got, 10) > 30.0, "{part}: {}", removed_db(&heard, &got, 10));
        // Nothing that a detector of speech would take for a word: no 100 ms above -46 dB.
        let loudest = got.chunks(1_600).map(power).fold(0.0, f32::max);
        assert!(db(loudest) < -50.0, "{part}: {}", db(loudest));
    }
    assert!(room.control.played(1) > 100 * 24_000);
    assert_eq!(room.restarts(), restarts, "nothing has moved");
}

#[test]
fn b13_speech_over_the_echo_comes_through() {
    let mut room = Room::new(EchoMode::Cancel, 80);
    room.play(&babble(1, 24_000, 5), &[]);
    let far = babble(2, 24_000, 3);
    let (echo, _) = room.play(&far, &[]);
    // The user speaks 6 dB over the echo.
    let near = babble(77, ROOM_HZ, 3);
    let gain = (power(&echo) * 4.0 / power(&near)).sqrt();
    let near: Vec<f32> = near.iter().map(|s| s * gain).collect();
    let restarts = room.restarts();
    let (_, got) = room.play(&far, &near);
    assert_eq!(room.restarts(), restarts, "nothing has moved");
    let kept_db = db(power(&got) / power(&near));
    assert!((-6.0..3.0).contains(&kept_db), "{kept_db}");
    // It is the user's voice: 100 ms in which the user speaks are loud, the others are not.
    let levels: Vec<(f32, f32)> =
        near.chunks(4_800).map(power).zip(got[..].chunks(1_600).map(power)).collect();
    let loud = levels.iter().filter(|(near, _)| db(*near / power(&got)) > 0.0);
    let found = loud.clone().filter(|(_, got)| db(*got) > -46.0).count();
    assert!(found * 10 > loud.count() * 7, "most of what is said is heard");
}

#[test]
fn headphones_leave_the_sound_as_it_is() {
    let mut room = Room::new(EchoMode::Headphones, 80);
    let (heard, got) = room.play(&babble(1, 24_000, 4), &[]);
    assert!(removed_db(&heard, &got, 2).abs() < 1.0);
}

/// Somebody says a word 1.2 s into a reply; the part of its power that comes through, in dB.
fn first_word_db(echo_gain: f32) -> f32 {
    let mut room = Room::new(EchoMode::Cancel, 80);
    room.gain = echo_gain;
    let word = &babble(77, ROOM_HZ, 1)[..ROOM_HZ as usize / 4];
    let near = [vec![0.0; ROOM_HZ as usize * 6 / 5], word.to_vec()].concat();
    let (_, got) = room.play(&babble(1, 24_000, 3), &near);
    let from = RATE_HZ as usize * 6 / 5;
    db(power(&got[from..from + RATE_HZ as usize / 4]) / power(word))
}

#[test]
fn b12_the_first_word_comes_through_where_the_speaker_is_not_heard() {
    assert!(first_word_db(0.0) > -1.0, "{}", first_word_db(0.0));
    // 40 dB down; what the room hears of it is its own noise.
    assert!(first_word_db(0.01) > -1.0, "{}", first_word_db(0.01));
}

#[test]
fn a_soft_echo_is_no_absence() {
    for gain in [0.02, 0.05, 0.1] {
        let mut room = Room::new(EchoMode::Cancel, 80);
        room.gain = gain;
        let (_, got) = room.play(&babble(1, 24_000, 10), &[]);
        let loudest = got.chunks(1_600).map(power).fold(0.0, f32::max);
        assert!(db(loudest) < -54.0, "{gain}: {}", db(loudest));
    }
}

#[test]
fn headphones_that_are_taken_off_are_noticed_at_the_next_reply() {
    let mut room = Room::new(EchoMode::Cancel, 80);
    room.gain = 0.0;
    room.play(&babble(1, 24_000, 3), &[]);
    room.play(&vec![0.0; 24_000 * 3 / 2], &[]);
    room.gain = 0.25;
    let (heard, got) = room.play(&babble(2, 24_000, 4), &[]);
    assert!(removed_db(&heard, &got, 2) > 30.0, "{}", removed_db(&heard, &got, 2));
}

#[test]
fn a_changed_delay_is_found_again() {
    let mut room = Room::new(EchoMode::Cancel, 80);
    room.play(&babble(1, 24_000, 5), &[]);
    room.air.splice(0..0, vec![0.0; 4_800]);
    let (heard, got) = room.play(&babble(2, 24_000, 5), &[]);
    assert!(removed_db(&heard, &got, 3) > 30.0, "{}", removed_db(&heard, &got, 3));
}

/// What is spoken 12 dB over an echo that has moved by as much as the microphone lost just now: a canceller that is new holds
/// some of it back, and more than half comes through.
#[test]
fn speech_over_an_echo_that_has_moved_comes_through() {
    let mut room = Room::new(EchoMode::Cancel, 80);
    room.play(&babble(1, 24_000, 5), &[]);
    let far = babble(2, 24_000, 3);
    let (echo, _) = room.play(&far, &[]);
    let near = babble(77, ROOM_HZ, 3);
    let gain = (power(&echo) * 16.0 / power(&near)).sqrt();
    let near: Vec<f32> = near.iter().map(|s| s * gain).collect();
    room.air.drain(..5 * ROOM_HZ as usize / 1000);
    let (_, got) = room.play(&far, &near);
    let levels = near.chunks(4_800).map(power).zip(got.chunks(1_600).map(power));
    let all = power(&near);
    let loud: Vec<_> = levels.filter(|(near, _)| *near > all).collect();
    let found = loud.iter().filter(|(near, got)| db(got / near) > -6.0).count();
    assert!(found * 2 > loud.len(), "{found} of {}", loud.len());
}

#[test]
fn hums_and_held_vowels_are_no_echo() {
    for pitch_hz in [90.0, 118.0, 150.0, 210.0, 330.0] {
        let mut room = Room::new(EchoMode::Cancel, 80);
        room.gain = 0.0;
        room.play(&babble(1, 24_000, 2), &[]);
        let hum: Vec<f32> = (0..3 * ROOM_HZ as usize)
            .map(|i| {
                let phase = i as f32 / ROOM_HZ as f32 * pitch_hz * TAU;
                0.05 * (phase.sin() + 0.5 * (2.0 * phase).sin() + 0.3 * (5.0 * phase).sin())
            })
            .collect();
        let (_, got) = room.play(&babble(2, 24_000, 3), &hum);
        let kept_db = db(power(&got) / power(&hum));
        assert!(kept_db > -1.0, "{pitch_hz} Hz: {kept_db}");
    }
}

#[test]
fn what_the_microphone_loses_does_not_let_the_voice_through() {
    for lost_ms in [5, 12, 40] {
        let mut room = Room::new(EchoMode::Cancel, 80);
        room.play(&babble(1, 24_000, 5), &[]);
        for part in 2..8 {
            // A reply begins, the machine is busy.
            room.play(&vec![0.0; 24_000], &[]);
            room.air.drain(..lost_ms * ROOM_HZ as usize / 1000);
            let (_, got) = room.play(&babble(part, 24_000, 2), &[]);
            // A detector needs 160 ms to be sure of speech.
            let loud = got.chunks(1_600).filter(|chunk| db(power(chunk)) > -46.0).count();
            assert!(loud <= 1, "{lost_ms} ms, {part}: {loud}");
            room.air.splice(0..0, vec![0.0; lost_ms * ROOM_HZ as usize / 1000]);
        }
    }
}

#[test]
fn what_is_no_number_costs_a_frame_and_no_more() {
    let mut canceller = EchoCanceller::new();
    for value in [f32::NAN, f32::INFINITY, 1e30, 0.1] {
        let mut near = [value; FRAME_SAMPLES];
        canceller.process(&[value; FRAME_SAMPLES], &mut near);
        assert!(near.iter().all(|sample| sample.is_finite()), "{value}");
    }
    let mut near = [0.1; FRAME_SAMPLES];
    canceller.process(&[0.0; FRAME_SAMPLES], &mut near);
    assert!(near.iter().all(|sample| sample.is_finite()));
}

/// Loudspeaker and microphone whose clocks run apart by `ppm`; gives the removed decibels of the last five of 60 s.
fn with_drift(ppm: f64) -> f32 {
    let mut room = Room::new(EchoMode::Cancel, 80);
    let far = babble(3, 24_000, 60);
    let (mut rest, mut got, mut heard) = (&far[..], Vec::new(), Vec::new());
    let (mut played, mut at) = (Vec::new(), 0.0f64);
    let mut frame = [0.0f32; BLOCK];
    for _ in 0..6_000 {
        while let taken @ 1.. = room.feeder.offer(1, rest).unwrap() {
            rest = &rest[taken..];
        }
        let mut block = [0.0f32; BLOCK];
        // The loudspeaker asks when it has played the last block, by its own clock.
        while (played.len() as f64) < at + 2.0 * BLOCK as f64 {
            room.speaker.fill(&mut block, 1, |sample| sample);
            played.extend_from_slice(&block);
        }
        for sample in &mut frame {
            let (whole, part) = (at as usize, at.fract() as f32);
            let delayed = |i: usize| i.checked_sub(3_000).map_or(0.0, |i| played[i]);
            *sample = 0.25 * (delayed(whole) * (1.0 - part) + delayed(whole + 1) * part);
            heard.push(*sample);
            at += 1.0 + ppm * 1e-6;
        }
        room.callback.take(&frame, 1, |sample| sample);
        room.microphone.read(&mut got).unwrap();
    }
    removed_db(&heard, &got, 5)
}

#[test]
fn clocks_that_drift_apart_stay_paired() {
    for ppm in [-200.0, 0.0, 200.0] {
        let removed = with_drift(ppm);
        assert!(removed > 35.0, "{ppm}: {removed}");
    }
}
