//! A room without a sound card: a PulseAudio server with a virtual microphone and a virtual speaker, both recorded on one
//! clock, and the real program in it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const PROGRAMS: [&str; 4] = ["pulseaudio", "pactl", "pacat", "parec"];
pub(crate) const RATE_HZ: usize = 48_000;

/// `norewinds` keeps the null sinks from running ahead of real time.
const SCRIPT: &str = "load-module module-native-protocol-unix
load-module module-null-sink norewinds=1 sink_name=speaker rate=48000 channels=2
load-module module-null-sink norewinds=1 sink_name=mic_in rate=48000 channels=2
load-module module-remap-source source_name=mic master=mic_in.monitor
set-default-sink speaker
set-default-source mic
";

const ASOUNDRC: &str = "pcm.!default { type pulse }
ctl.!default { type pulse }
";

/// A thread's parking may end early.
pub(crate) fn pause(duration: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < duration {
        std::thread::park_timeout(duration.saturating_sub(begun.elapsed()));
    }
}

/// The room; everything in it ends when it is dropped.
pub(crate) struct Room {
    folder: TempDir,
    server: Child,
    spoken: Vec<Child>,
}

impl Room {
    /// A room, where there is what it needs; else it is said that `name` was not run. Where `CI=true`, it has to be there.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let has =
            |program: &&str| Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
        if let Some(missing) = PROGRAMS.iter().find(|program| !has(program)) {
            let what = format!(
                "{name} was not run: it needs `{missing}` (Debian: pulseaudio, pulseaudio-utils, libasound2-plugins)"
            );
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{what}; `cargo xtask test` installs it");
            eprintln!("{what}");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder for the sound server");
        std::fs::write(folder.path().join("start.pa"), SCRIPT).expect("its start");
        std::fs::write(folder.path().join(".asoundrc"), ASOUNDRC).expect("ALSA's way to it");
        let server = inside(folder.path(), "pulseaudio")
            .args(["-n", "-F"])
            .arg(folder.path().join("start.pa"))
            .args(["--daemonize=no", "--exit-idle-time=-1"])
            .stderr(Stdio::null())
            .spawn()
            .expect("pulseaudio starts");
        let room = Self { folder, server, spoken: Vec::new() };
        let begun = Instant::now();
        while !room.pactl(&["get-default-source"]).trim().eq("mic") {
            assert!(begun.elapsed() < Duration::from_secs(20), "pulseaudio does not start");
            pause(Duration::from_millis(20));
        }
        Some(room)
    }

    pub(crate) fn pactl(&self, words: &[&str]) -> String {
        let output = inside(self.folder.path(), "pactl").args(words).stderr(Stdio::null()).output();
        String::from_utf8_lossy(&output.expect("pactl runs").stdout).into_owned()
    }

    /// Speaks `samples` (mono, 48 kHz) into the microphone. Does not wait.
    pub(crate) fn speak(&mut self, samples: &[f32]) {
        let file = self.folder.path().join(format!("spoken{}", self.spoken.len()));
        let bytes: Vec<u8> =
            samples.iter().flat_map(|s| [(s * 32_767.0) as i16; 2]).flat_map(i16::to_le_bytes).collect();
        std::fs::write(&file, bytes).expect("room for a recording");
        let child = inside(self.folder.path(), "pacat")
            .args(["--playback", "--raw", "--format=s16le", "--rate=48000", "--channels=2"])
            .args(["--latency-msec=200", "--device=mic_in"])
            .arg(file)
            .spawn();
        self.spoken.push(child.expect("pacat starts"));
    }

    /// What the microphone hears of the speaker: 80 ms later and `db` louder (below 0: softer).
    pub(crate) fn echo(&self, db: i32) {
        let words = ["load-module", "module-loopback", "source=speaker.monitor", "sink=mic_in"];
        self.pactl(&[&words[..], &["latency_msec=80", "adjust_time=0"]].concat());
        let list = self.pactl(&["list", "short", "sink-inputs"]);
        let number = list.split_whitespace().next().expect("the loopback plays");
        self.pactl(&["set-sink-input-volume", number, &format!("{db}dB")]);
    }

    /// Records what is heard at `device` until it is told to stop.
    pub(crate) fn record(&self, device: &str) -> Recorder {
        let mut process = inside(self.folder.path(), "parec")
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
        let recorder = Recorder { process, thread: Some(thread), tape };
        let begun = Instant::now();
        while recorder.lock().samples.is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(10), "parec records nothing");
            pause(Duration::from_millis(5));
        }
        recorder
    }

    /// Starts the program.
    pub(crate) fn run(&self, args: &[&str]) -> Talker {
        let mut process = inside(self.folder.path(), env!("CARGO_BIN_EXE_repartee"))
            .args(args)
            .env("REPARTEE_CACHE", cache())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the program starts");
        let stdout = process.stdout.take().expect("a pipe");
        let said = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let writer = said.clone();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            loop {
                let count = {
                    let Ok(bytes @ [_, ..]) = reader.fill_buf() else { break };
                    writer.0.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
                    bytes.len()
                };
                reader.consume(count);
                writer.1.notify_all();
            }
        });
        Talker { process, said }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        for child in self.spoken.iter_mut().chain([&mut self.server]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A command that finds the room's sound and no other.
fn inside(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env("HOME", folder)
        .env("XDG_RUNTIME_DIR", folder)
        .env("PULSE_SERVER", format!("unix:{}", folder.join("pulse/native").display()))
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("PULSE_RUNTIME_PATH")
        .stdin(Stdio::null());
    command
}

/// The cache of model files, which is below the home folder, and the room has another one.
fn cache() -> PathBuf {
    let set = std::env::var_os("REPARTEE_CACHE").map(PathBuf::from);
    set.unwrap_or_else(|| {
        let caches = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let caches = caches.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
        caches.expect("a home").join("repartee")
    })
}

struct Tape {
    samples: Vec<f32>,
    /// When the first sample was there.
    begun: Option<Instant>,
}

pub(crate) struct Recorder {
    process: Child,
    thread: Option<JoinHandle<()>>,
    tape: Arc<Mutex<Tape>>,
}

/// What was heard at one place, from a moment on.
pub(crate) struct Recording {
    pub(crate) samples: Vec<f32>,
    pub(crate) begun: Instant,
}

impl Recorder {
    fn lock(&self) -> std::sync::MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop(mut self) -> Recording {
        self.end();
        let mut tape = self.lock();
        Recording { samples: std::mem::take(&mut tape.samples), begun: tape.begun.expect("it has begun") }
    }

    /// Seconds of sound so far.
    pub(crate) fn heard_secs(&self) -> f64 {
        let tape = self.lock();
        let windows = tape.samples.chunks(WINDOW);
        windows.filter(|window| loudness(window) > SOFT).count() as f64 * 0.01
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
    pub(crate) fn sounds(&self, gap_secs: f64) -> Vec<(f64, f64)> {
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

    pub(crate) fn moment(&self, secs: f64) -> Instant {
        self.begun + Duration::from_secs_f64(secs)
    }
}

/// The program at work.
pub(crate) struct Talker {
    process: Child,
    said: Arc<(Mutex<String>, Condvar)>,
}

impl Talker {
    pub(crate) fn said(&self) -> String {
        self.said.0.lock().unwrap().clone()
    }

    /// Waits until what it said makes `done` true.
    pub(crate) fn wait_for(&self, what: &str, limit: Duration, done: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        let mut said = self.said.0.lock().unwrap();
        while !done(&said) {
            assert!(begun.elapsed() < limit, "no {what} in {limit:?}; it said:\n{said}");
            said = self.said.1.wait_timeout(said, Duration::from_millis(200)).unwrap().0;
        }
    }

    /// Ends it as Ctrl-C does, and waits for its end.
    pub(crate) fn interrupt(&mut self) {
        let pid = self.process.id().to_string();
        let status = Command::new("kill").args(["-INT", &pid]).status().expect("kill runs");
        assert!(status.success());
        self.wait();
    }

    /// Waits for its end; it has to succeed.
    pub(crate) fn wait(&mut self) {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().expect("a child") {
                assert!(status.success(), "it ended with {status}:\n{}", self.said());
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "it does not end:\n{}", self.said());
            pause(Duration::from_millis(20));
        }
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
