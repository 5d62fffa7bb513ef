//! A room for tests of real sound, without a sound card: a PulseAudio server of its own with a virtual microphone and
//! a virtual speaker.
//!
//! Sound is real time, and a machine that does other things stalls it for longer than any buffer lasts. [`judge`]
//! therefore watches the machine during a test: a failure counts where the machine kept time.

#![allow(clippy::print_stderr, reason = "a test that was not run has to say so")]

mod record;
mod watch;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub use record::{Recorder, Recording};
pub use watch::judge;

/// Samples per second of the microphone and of the speaker.
pub const RATE_HZ: usize = 48_000;

const PROGRAMS: [&str; 4] = ["pulseaudio", "pactl", "pacat", "parec"];

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

/// Waits; a thread's parking may end early.
pub fn pause(duration: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < duration {
        std::thread::park_timeout(duration.saturating_sub(begun.elapsed()));
    }
}

/// Whether there is what a room needs; else it is said that the test `name` was not run.
///
/// # Panics
/// Where `CI=true`: there it has to be installed.
pub fn is_possible(name: &str) -> bool {
    let has = |program: &&str| Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    let Some(missing) = PROGRAMS.iter().find(|program| !has(program)) else { return true };
    let what = format!(
        "{name} was not run: it needs `{missing}` (Debian: pulseaudio, pulseaudio-utils, libasound2-plugins)"
    );
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{what}; `cargo xtask test` installs it");
    eprintln!("{what}");
    false
}

/// A command that finds the sound of the server in `folder` and no other.
pub fn inside(folder: &Path, program: impl AsRef<std::ffi::OsStr>) -> Command {
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

/// The sound server; it ends when this is dropped.
pub struct Server {
    folder: PathBuf,
    process: Option<Child>,
}

impl Server {
    /// Starts a server that has its files in `folder`, the home of all that [`inside`] starts.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(folder: &Path) -> Self {
        std::fs::write(folder.join("start.pa"), SCRIPT).expect("the server's start");
        std::fs::write(folder.join(".asoundrc"), ASOUNDRC).expect("ALSA's way to it");
        let mut server = Self { folder: folder.to_owned(), process: None };
        server.restart();
        server
    }

    /// Starts it again after [`Server::stop`].
    ///
    /// # Panics
    /// If it does not start.
    pub fn restart(&mut self) {
        let process = inside(&self.folder, "pulseaudio")
            .args(["-n", "-F"])
            .arg(self.folder.join("start.pa"))
            .args(["--daemonize=no", "--exit-idle-time=-1"])
            .stderr(Stdio::null())
            .spawn();
        self.process = Some(process.expect("pulseaudio is there"));
        let begun = Instant::now();
        while !self.pactl(&["get-default-source"]).trim().eq("mic") {
            assert!(begun.elapsed() < Duration::from_secs(20), "pulseaudio does not start");
            pause(Duration::from_millis(20));
        }
    }

    /// Ends it as a crash does: every device is gone.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// What `pactl` answers.
    pub fn pactl(&self, words: &[&str]) -> String {
        let output = inside(&self.folder, "pactl").args(words).stderr(Stdio::null()).output();
        String::from_utf8_lossy(&output.expect("pactl runs").stdout).into_owned()
    }

    /// Speaks `samples` (mono, 48 kHz, -1 to 1) into the microphone and returns at once. What speaks is `latency_ms`
    /// ahead, so that only what listens can lose something.
    pub fn speak(&self, samples: &[f32], latency_ms: u32) -> Child {
        let (mut file, path) =
            tempfile::NamedTempFile::new_in(&self.folder).expect("room for it").keep().expect("a file");
        let bytes: Vec<u8> =
            samples.iter().flat_map(|s| [(s * 32_768.0) as i16; 2]).flat_map(i16::to_le_bytes).collect();
        std::io::Write::write_all(&mut file, &bytes).expect("room for a recording");
        inside(&self.folder, "pacat")
            .args(["--playback", "--raw", "--format=s16le", "--rate=48000", "--channels=2"])
            .arg(format!("--latency-msec={latency_ms}"))
            .arg("--device=mic_in")
            .arg(path)
            .spawn()
            .expect("pacat starts")
    }

    /// Records `device` (`speaker.monitor`, `mic_in.monitor`) from now on.
    ///
    /// # Panics
    /// If nothing can be recorded.
    pub fn record(&self, device: &str) -> Recorder {
        Recorder::start(self, device)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
