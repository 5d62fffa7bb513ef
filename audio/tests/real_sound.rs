//! The devices module against a real sound server: PulseAudio with virtual devices, one for each test.
//!
//! A test starts its own binary again with an environment in which the server is the only sound there is (ALSA and
//! PulseAudio read it at their own times, so it has to be there from the start), and that one starts the
//! server. One test runs at a time.

#![cfg(all(feature = "devices", target_os = "linux"))]

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use repartee_audio::Direction;
use repartee_audio::devices::{self, Choice, Notice, Sound, SoundConfig};
use repartee_audio::echo::EchoMode;
use repartee_audio::resample::StreamResampler;
use repartee_room::{RATE_HZ, Server, pause};

const FOLDER: &str = "REPARTEE_TEST_SOUND";

/// Runs `body` with a server of its own.
fn with_server(name: &str, body: fn(&mut Server)) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return body(&mut Server::start(Path::new(&folder)));
    }
    if repartee_room::is_possible(name) {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        repartee_room::judge(name, || in_own_process(name));
    }
}

static ALONE: Mutex<()> = Mutex::new(());
/// For one try: the longest test takes nine seconds.
const LIMIT: Duration = Duration::from_secs(40);

/// Runs the test `name` where the sound server of its folder is all that there is; what it printed, if it failed.
fn in_own_process(name: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    // Into a file: a pipe would stay open as long as anything that the test left behind.
    let printed = folder.path().join("printed");
    let file = std::fs::File::create(&printed).unwrap();
    let mut process = repartee_room::inside(folder.path(), std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(FOLDER, folder.path())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .process_group(0)
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = process.try_wait().unwrap() {
            break Some(status);
        }
        if begun.elapsed() > LIMIT {
            break None;
        }
        pause(Duration::from_millis(20));
    };
    // With all that it started; there may be nothing left.
    let group = format!("kill -KILL -{}", process.id());
    let _ = Command::new("sh").args(["-c", &group]).stderr(Stdio::null()).status();
    process.wait().unwrap();
    let text = String::from_utf8_lossy(&std::fs::read(&printed).unwrap()).into_owned();
    // Libraries do not print, ALSA's included.
    let has_passed = text.contains("1 passed") && !text.contains("ALSA lib");
    match status {
        Some(status) if status.success() && has_passed => Ok(()),
        Some(status) => Err(format!("{status}: {text}")),
        None => Err(format!("not over after {} s: {text}", LIMIT.as_secs())),
    }
}

fn open(input: Choice, output: Choice, echo: EchoMode) -> Sound {
    devices::open(SoundConfig { input, output, echo, ..SoundConfig::default() }).unwrap()
}

/// The next notice for which `wanted` holds; the test fails after ten seconds.
fn expect(sound: &Sound, what: &str, wanted: impl Fn(&Notice) -> bool) {
    let (begun, mut seen) = (Instant::now(), Vec::new());
    while begun.elapsed() < Duration::from_secs(10) {
        if let Some(notice) = sound.keeper.next_notice(Duration::from_millis(100)) {
            if wanted(&notice) {
                return;
            }
            seen.push(notice);
        }
    }
    panic!("no notice of {what}; there were {seen:?}");
}

fn expect_started(sound: &Sound, side: Direction) {
    expect(sound, "a start", |n| matches!(n, Notice::Started { direction, .. } if *direction == side));
}

/// Reads the microphone for `secs`.
fn listen(sound: &mut Sound, secs: f32) -> Vec<f32> {
    let (begun, mut heard) = (Instant::now(), Vec::new());
    while begun.elapsed().as_secs_f32() < secs {
        sound.microphone.wait(&mut heard, Duration::from_millis(20)).unwrap();
    }
    heard
}

/// Plays `samples` (24 kHz) as `turn` until they were heard, reading the microphone meanwhile.
fn play(sound: &mut Sound, turn: u64, samples: &[f32]) -> Vec<f32> {
    let (begun, mut heard) = (Instant::now(), Vec::new());
    let limit_secs = samples.len() as f32 / 24_000.0 + 10.0;
    // In pieces, as a synthesiser gives them.
    samples.chunks(4_800).for_each(|piece| sound.speaker.queue(turn, piece.into()));
    while sound.speaker.heard(turn) < samples.len() as u64 {
        assert!(begun.elapsed().as_secs_f32() < limit_secs, "the reply stands still");
        sound.microphone.wait(&mut heard, Duration::from_millis(10)).unwrap();
    }
    heard
}

fn noise(seed: u64, samples: usize, step: usize) -> Vec<f32> {
    let (mut state, mut low) = (seed, 0.0f32);
    (0..samples)
        .map(|i| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            low += 0.3 * (((state >> 40) as f32 / (1 << 23) as f32 - 1.0) - low);
            // In syllables, as speech comes.
            low * if step > 0 && (i / step) % 3 == 2 { 0.0 } else { 0.5 }
        })
        .collect()
}

fn power(samples: &[f32]) -> f32 {
    samples.iter().map(|s| s * s).sum::<f32>() / samples.len().max(1) as f32
}

#[test]
fn capture_is_sample_exact() {
    with_server("capture_is_sample_exact", |server| {
        let mut sound = open(Choice::Default, Choice::Off, EchoMode::Headphones);
        expect_started(&sound, Direction::Input);
        let spoken = noise(1, 3 * RATE_HZ, 0);
        let mut speaker = server.speak(&spoken, 1_000);
        let heard = listen(&mut sound, 5.5);
        speaker.wait().unwrap();
        // Three samples of 48 kHz are one of 16 kHz: the same sound is expected at one of three phases.
        let best = (0..3)
            .map(|phase| {
                let mut signal = vec![0.0f32; phase];
                // As the 16 bits of the microphone give it.
                signal.extend(spoken.iter().map(|s| f32::from((s * 32_768.0) as i16) / 32_768.0));
                let (mut stream, mut expected) = (StreamResampler::new(48_000, 16_000).unwrap(), Vec::new());
                stream.push(&signal, &mut expected).unwrap();
                stream.finish(&mut expected).unwrap();
                // Where a piece of it stands in what was heard; then all of it has to stand there.
                let piece = &expected[20_000..20_256];
                let distance = |at: usize| {
                    heard[at..at + 256].iter().zip(piece).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
                };
                let at = (20_000..heard.len() - 40_000.min(heard.len() - 20_256))
                    .min_by(|a, b| distance(*a).total_cmp(&distance(*b)))
                    .unwrap();
                let start = at - 20_000;
                let worst = (0..expected.len().min(heard.len() - start))
                    .map(|i| (heard[start + i] - expected[i]).abs())
                    .fold(0.0, f32::max);
                (worst, start)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap();
        assert!(best.0 < 1e-3, "largest difference {} over three seconds", best.0);
        let status = sound.keeper.status();
        assert_eq!((status.lost_ms, status.input.rate_hz), (0, 48_000));
    });
}

#[test]
fn a_tone_is_played_without_a_gap() {
    with_server("a_tone_is_played_without_a_gap", |server| {
        let mut sound = open(Choice::Off, Choice::Default, EchoMode::Cancel);
        expect_started(&sound, Direction::Output);
        let recorder = server.record("speaker.monitor");
        let tone: Vec<f32> =
            (0..48_000).map(|i| 0.5 * (std::f32::consts::TAU * 440.0 * i as f32 / 24_000.0).sin()).collect();
        play(&mut sound, 1, &tone);
        recorder.wait_for_silence(Duration::from_millis(300), Duration::from_secs(10));
        let recorded = recorder.stop().samples;
        let rising: Vec<usize> = (1..recorded.len())
            .filter(|i| recorded[i - 1] < 0.0 && recorded[*i] >= 0.0 && i + 40 < recorded.len())
            .filter(|i| recorded[i + 27].abs() > 0.3)
            .collect();
        let (status, counters) = (sound.keeper.status().output, sound.speaker.control().counters());
        // Every period is there and as long as it should be: 48 000 / 440 = 109.1 samples.
        let count = rising.len();
        let odd: Vec<(usize, usize)> = rising
            .windows(2)
            .map(|pair| (pair[0] - rising[0], pair[1] - pair[0]))
            .filter(|(_, length)| !(108..=110).contains(length))
            .collect();
        assert!(
            (870..=882).contains(&count) && odd.is_empty(),
            "{count} periods of 880, odd ones (at, length) {odd:?}; {status:?}; {counters:?}"
        );
        let hz = (rising.len() - 1) as f32 * 48_000.0 / (rising[rising.len() - 1] - rising[0]) as f32;
        assert!((hz - 440.0).abs() < 4.4, "{hz}");
        assert!(sound.speaker.control().latency() > Duration::ZERO);
    });
}

#[test]
fn a_device_vanishes_and_comes_back() {
    with_server("a_device_vanishes_and_comes_back", |server| {
        let mut sound = open(Choice::Default, Choice::Default, EchoMode::Cancel);
        expect_started(&sound, Direction::Input);
        expect_started(&sound, Direction::Output);
        assert!(listen(&mut sound, 0.5).len() > 4_000);
        server.stop();
        expect(&sound, "a loss", |notice| matches!(notice, Notice::Lost { .. }));
        for side in [Direction::Input, Direction::Output] {
            let begun = Instant::now();
            expect(&sound, "no device", |notice| matches!(notice, Notice::Missing { .. }));
            assert!(begun.elapsed() < Duration::from_secs(5), "{side}");
        }
        // The status is shown a moment after the notices.
        let begun = Instant::now();
        while sound.keeper.status().input.device.is_some() || sound.keeper.status().output.device.is_some() {
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", sound.keeper.status());
            pause(Duration::from_millis(10));
        }
        server.restart();
        expect(&sound, "a start", |notice| matches!(notice, Notice::Started { .. }));
        expect(&sound, "a start", |notice| matches!(notice, Notice::Started { .. }));
        assert!(listen(&mut sound, 0.5).len() > 4_000);
        let reply = noise(3, 12_000, 0);
        play(&mut sound, 1, &reply);
        assert_eq!(sound.speaker.heard(1), 12_000);
    });
}

#[test]
fn b13_its_own_voice_does_not_come_back() {
    with_server("b13_its_own_voice_does_not_come_back", |server| {
        let module = "module-loopback";
        server.pactl(&[
            "load-module",
            module,
            "source=speaker.monitor",
            "sink=mic_in",
            "latency_msec=80",
            "adjust_time=0",
        ]);
        let far = noise(9, 4 * 24_000, 4_000);
        let mut heard = Vec::new();
        for echo in [EchoMode::Headphones, EchoMode::Cancel] {
            let mut sound = open(Choice::Default, Choice::Default, echo);
            expect_started(&sound, Direction::Input);
            expect_started(&sound, Direction::Output);
            listen(&mut sound, 0.3);
            let got = play(&mut sound, 1, &far);
            // The last two seconds: by then it has adapted.
            heard.push(power(&got[got.len().saturating_sub(32_000)..]));
        }
        let removed_db = 10.0 * (heard[0] / heard[1].max(1e-12)).log10();
        assert!(heard[0] > 1e-4, "there is an echo: {}", heard[0]);
        assert!(removed_db > 15.0, "{removed_db}");
    });
}

#[test]
fn the_devices_are_listed() {
    with_server("the_devices_are_listed", |_| {
        for direction in [Direction::Input, Direction::Output] {
            let list = devices::list(direction).unwrap();
            assert!(
                list.iter().all(|device| !device.id.contains("null") && !device.name.is_empty()),
                "{list:?}"
            );
        }
    });
}
