//! What is heard at a device.

use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::{RATE_HZ, Server, inside, pause};

struct Tape {
    samples: Vec<f32>,
    /// When the first sample was there.
    begun: Option<Instant>,
}

/// Records one device until it is told to stop.
pub struct Recorder {
    process: Child,
    thread: Option<JoinHandle<()>>,
    tape: Arc<Mutex<Tape>>,
}

/// What was heard at one place, from a moment on.
pub struct Recording {
    /// Mono, 48 kHz.
    pub samples: Vec<f32>,
    /// When the first sample was there.
    pub begun: Instant,
}

impl Recorder {
    pub(crate) fn start(server: &Server, device: &str) -> Self {
        let mut process = inside(&server.folder, "parec")
            .args(["--raw", "--format=float32le", "--rate=48000", "--channels=1", "--latency-msec=10"])
            .arg(format!("--device={device}"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("parec starts");
        let mut pipe = process.stdout.take().expect("a pipe");
        let tape = Arc::new(Mutex::new(Tape { samples: Vec::new(), begun: None }));
        let writer = tape.clone();
        let thread = std::thread::spawn(move || {
            let (mut bytes, mut rest) = ([0u8; 4_096], Vec::new());
            while let Ok(count @ 1..) = pipe.read(&mut bytes) {
                rest.extend_from_slice(&bytes[..count]);
                let whole = rest.len() / 4 * 4;
                let mut tape = writer.lock().unwrap_or_else(PoisonError::into_inner);
                let samples =
                    rest[..whole].chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                tape.samples.extend(samples);
                rest.drain(..whole);
                // The earliest arrival shows when the first sample was there: others are late.
                let length = Duration::from_secs_f64(tape.samples.len() as f64 / RATE_HZ as f64);
                let begun = Instant::now().checked_sub(length);
                tape.begun = match (tape.begun, begun) {
                    (Some(before), Some(now)) => Some(before.min(now)),
                    (before, now) => before.or(now),
                };
            }
        });
        let recorder = Self { process, thread: Some(thread), tape };
        let begun = Instant::now();
        while recorder.lock().samples.is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(10), "parec records nothing");
            pause(Duration::from_millis(5));
        }
        recorder
    }

    fn lock(&self) -> MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it.
    ///
    /// # Panics
    /// If nothing was recorded.
    pub fn stop(mut self) -> Recording {
        self.end();
        let mut tape = self.lock();
        Recording { samples: std::mem::take(&mut tape.samples), begun: tape.begun.expect("it has begun") }
    }

    /// Seconds of sound so far.
    pub fn heard_secs(&self) -> f64 {
        let tape = self.lock();
        let windows = tape.samples.chunks(WINDOW);
        windows.filter(|window| loudness(window) > SOFT).count() as f64 * 0.01
    }

    /// Waits until it is silent for `silence` after some sound.
    ///
    /// # Panics
    /// If it is not after `limit`.
    pub fn wait_for_silence(&self, silence: Duration, limit: Duration) {
        let begun = Instant::now();
        let windows = (silence.as_secs_f64() / 0.01) as usize;
        loop {
            let sounds: Vec<bool> =
                self.lock().samples.chunks_exact(WINDOW).map(|window| loudness(window) > SOFT).collect();
            let last = sounds.iter().rposition(|is_sound| *is_sound);
            if last.is_some_and(|last| sounds.len() - last > windows) {
                return;
            }
            assert!(begun.elapsed() < limit, "no sound and then silence in {limit:?}");
            pause(Duration::from_millis(50));
        }
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the reader ends");
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ten milliseconds.
const WINDOW: usize = RATE_HZ / 100;
/// -50 dB: softer than any speech.
const SOFT: f32 = 0.003;

fn loudness(window: &[f32]) -> f32 {
    (window.iter().map(|s| s * s).sum::<f32>() / window.len().max(1) as f32).sqrt()
}

impl Recording {
    /// Stretches of sound, in seconds from the beginning, that are at least `gap_secs` apart.
    pub fn sounds(&self, gap_secs: f64) -> Vec<(f64, f64)> {
        let mut sounds: Vec<(f64, f64)> = Vec::new();
        for (i, window) in self.samples.chunks(WINDOW).enumerate() {
            if loudness(window) < SOFT {
                continue;
            }
            // To the sample.
            let first = window.iter().position(|s| s.abs() > SOFT).unwrap_or(0);
            let last = window.iter().rposition(|s| s.abs() > SOFT).unwrap_or(0);
            let secs = |at: usize| (i * WINDOW + at) as f64 / RATE_HZ as f64;
            match sounds.last_mut() {
                Some((_, end)) if secs(first) - *end < gap_secs => *end = secs(last),
                _ => sounds.push((secs(first), secs(last))),
            }
        }
        sounds
    }

    /// When the moment `secs` after the first sample was.
    pub fn moment(&self, secs: f64) -> Instant {
        self.begun + Duration::from_secs_f64(secs)
    }
}
