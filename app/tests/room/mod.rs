//! The real program in a room with a virtual microphone and a virtual speaker, both recorded on one clock.

#![allow(dead_code, reason = "each test uses its part")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use repartee_room::{RATE_HZ, pause};
use repartee_room::{Recorder, Server, inside};
use tempfile::TempDir;

/// Real time suffers when two tests share the processors.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs `test` in a room of its own.
pub(crate) fn in_room(name: &str, test: impl FnOnce(Room)) {
    if repartee_room::is_possible(name) {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        test(Room::new());
    }
}

/// As [`in_room`], in a new room if the machine stalled the first.
pub(crate) fn judged_in_room(name: &str, test: fn(Room)) {
    if repartee_room::is_possible(name) {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        repartee_room::judge(name, || {
            std::panic::catch_unwind(|| test(Room::new())).map_err(|panic| match panic.downcast::<String>() {
                Ok(text) => *text,
                Err(_) => "it panicked".to_owned(),
            })
        });
    }
}

pub(crate) const START: Duration = Duration::from_secs(60);
pub(crate) const ANSWER: Duration = Duration::from_secs(60);

/// A question of the program's own, at 48 kHz.
pub(crate) fn question(name: &str) -> Vec<f32> {
    at_48k(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/questions").join(name))
}

/// A recording, at 48 kHz.
pub(crate) fn at_48k(path: &Path) -> Vec<f32> {
    let audio = repartee_audio::wav::read_mono(path).expect("a recording");
    repartee_audio::resample::resample(&audio.samples, audio.rate_hz, RATE_HZ as u32).expect("48 kHz")
}

/// What our own recogniser makes of a recording.
pub(crate) fn recognised(samples: &[f32]) -> String {
    let folder = tempfile::tempdir().expect("a folder for the recording");
    let path = folder.path().join("recorded.wav");
    let format = repartee_audio::wav::Format::Int16;
    repartee_audio::wav::write(&path, samples, RATE_HZ as u32, format).expect("a recording");
    let out = Command::new(env!("CARGO_BIN_EXE_repartee"))
        .args(["talk", "--llm", "smollm2-135m", "--max-tokens", "1", "--input"])
        .arg(&path)
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines().filter_map(|line| line.trim().strip_prefix("you: ")).collect::<Vec<_>>().join(" ")
}

/// How many replies the program has finished, by its lines.
pub(crate) fn replies(said: &str) -> usize {
    let lines = said.lines().filter(|line| line.starts_with("reply: ")).count();
    // The last one is finished when its line is.
    let is_open =
        said.lines().last().is_some_and(|line| line.starts_with("reply: ")) && !said.ends_with('\n');
    lines - usize::from(is_open)
}

pub(crate) fn ready(talker: &Talker) {
    talker.wait_for("start", START, |said| said.contains("\nready: ") || said.starts_with("ready: "));
}

/// The room; everything in it ends when it is dropped.
pub(crate) struct Room {
    spoken: Vec<Child>,
    server: Server,
    folder: TempDir,
}

impl Room {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the sound server");
        Self { spoken: Vec::new(), server: Server::start(folder.path()), folder }
    }

    /// Speaks `samples` (mono, 48 kHz) into the microphone. Does not wait.
    pub(crate) fn speak(&mut self, samples: &[f32]) {
        self.spoken.push(self.server.speak(samples, 200));
    }

    /// Whether something listens to the microphone.
    pub(crate) fn is_listened_to(&self) -> bool {
        !self.server.pactl(&["list", "short", "source-outputs"]).trim().is_empty()
    }

    /// What the microphone hears of the speaker: 80 ms later and `db` louder (below 0: softer).
    pub(crate) fn echo(&self, db: i32) {
        let words = ["load-module", "module-loopback", "source=speaker.monitor", "sink=mic_in"];
        self.server.pactl(&[&words[..], &["latency_msec=80", "adjust_time=0"]].concat());
        let list = self.server.pactl(&["list", "short", "sink-inputs"]);
        let number = list.split_whitespace().next().expect("the loopback plays");
        self.server.pactl(&["set-sink-input-volume", number, &format!("{db}dB")]);
    }

    /// Records what is heard at `device` until it is told to stop.
    pub(crate) fn record(&self, device: &str) -> Recorder {
        self.server.record(device)
    }

    /// Starts the program.
    pub(crate) fn run(&self, args: &[&str]) -> Talker {
        self.start(|command| command.args(args))
    }

    /// Starts the program after `prepare`.
    pub(crate) fn start(&self, prepare: impl FnOnce(&mut Command) -> &mut Command) -> Talker {
        let mut command = inside(self.folder.path(), env!("CARGO_BIN_EXE_repartee"));
        let mut process = prepare(command.env("REPARTEE_CACHE", cache()))
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
        for child in &mut self.spoken {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The cache of model files, which is below the home folder, and the room has another one.
pub(crate) fn cache() -> PathBuf {
    let set = std::env::var_os("REPARTEE_CACHE").map(PathBuf::from);
    set.unwrap_or_else(|| {
        let caches = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let caches = caches.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
        caches.expect("a home").join("repartee")
    })
}

/// The program at work.
pub(crate) struct Talker {
    process: Child,
    said: Arc<(Mutex<String>, Condvar)>,
}

impl Talker {
    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

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

    /// Bytes of memory that are its own or shared (the resident set), and of these what no file stands behind.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("it runs");
        let kib = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line for it");
            line.trim_start_matches(':').split_whitespace().next().and_then(|n| n.parse().ok()).expect("KiB")
        };
        (kib("VmRSS") * 1024, kib("RssAnon") * 1024)
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
