//! The real program in a room with a virtual microphone and a virtual speaker, both recorded on one clock.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

pub(crate) use repartee_room::{RATE_HZ, Recording, pause};
use repartee_room::{Recorder, Server, inside};
use tempfile::TempDir;

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
        for child in &mut self.spoken {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
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
