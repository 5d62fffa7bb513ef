//! The real program with its window on a virtual display, in a room with a virtual microphone and a virtual speaker.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "a test that was not run has to say so")]

mod room;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use room::{ANSWER, START, judged_in_room, pause, question, recognised};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ClientMessageEvent, ConnectionExt, EventMask, ImageFormat, Window};
use x11rb::rust_connection::RustConnection;

const END: Duration = Duration::from_secs(20);

/// Waits until `done` gives something.
fn wait_for<T>(what: &str, limit: Duration, mut done: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = done() {
            return found;
        }
        assert!(begun.elapsed() < limit, "no {what} in {limit:?}");
        pause(Duration::from_millis(50));
    }
}

/// A display that nobody sees; it ends when this is dropped.
struct Display {
    process: Child,
    name: String,
    connection: RustConnection,
}

impl Display {
    /// Whether there is what a display needs; else it is said that the test `name` was not run. Where `CI=true`, it has to
    /// be there.
    fn is_possible(name: &str) -> bool {
        let is_there = Command::new("Xvfb").arg("-help").stderr(Stdio::null()).status().is_ok();
        if !is_there {
            let what = format!("{name} was not run: it needs `Xvfb` (Debian: xvfb)");
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{what}; `cargo xtask test` installs it");
            eprintln!("{what}");
        }
        is_there
    }

    fn start() -> Self {
        let mut process = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb is there");
        let mut number = String::new();
        let stdout = process.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut number).expect("the display's number");
        let name = format!(":{}", number.trim());
        let (connection, _) = x11rb::connect(Some(&name)).expect("the display answers");
        Self { process, name, connection }
    }

    fn atom(&self, name: &str) -> u32 {
        let cookie = self.connection.intern_atom(false, name.as_bytes()).expect("a question");
        cookie.reply().expect("an answer").atom
    }

    /// The window with this title. There is no window manager: windows are children of the root.
    fn window(&self, title: &str) -> Option<Window> {
        let root = self.connection.setup().roots[0].root;
        let tree = self.connection.query_tree(root).ok()?.reply().ok()?;
        tree.children.into_iter().find(|window| {
            let name =
                self.connection.get_property(false, *window, AtomEnum::WM_NAME, AtomEnum::STRING, 0, 64);
            name.ok().and_then(|name| name.reply().ok()).is_some_and(|name| name.value == title.as_bytes())
        })
    }

    /// How many colours are in the window.
    fn colours(&self, window: Window) -> usize {
        let size = self.connection.get_geometry(window).expect("a question").reply().expect("an answer");
        let (width, height) = (size.width, size.height);
        let image = self.connection.get_image(ImageFormat::Z_PIXMAP, window, 0, 0, width, height, !0);
        let mut pixels: Vec<u32> = image
            .expect("a question")
            .reply()
            .expect("an image")
            .data
            .chunks_exact(4)
            .map(|p| u32::from_ne_bytes([p[0], p[1], p[2], p[3]]))
            .collect();
        pixels.sort_unstable();
        pixels.dedup();
        pixels.len()
    }

    /// Closes a window as its frame's button does.
    fn close(&self, window: Window) {
        let (protocols, delete) = (self.atom("WM_PROTOCOLS"), self.atom("WM_DELETE_WINDOW"));
        let event = ClientMessageEvent::new(32, window, protocols, [delete, 0, 0, 0, 0]);
        let sent = self.connection.send_event(false, window, EventMask::NO_EVENT, event);
        sent.expect("a message").check().expect("the window is there");
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What was said and what was heard, as it stands on disk.
fn exchanges(home: &Path) -> Vec<[String; 2]> {
    let files = std::fs::read_dir(home.join("conversations")).into_iter().flatten().flatten();
    let texts = files.map(|file| std::fs::read_to_string(file.path()).expect("a conversation"));
    let of = |line: &str| -> [String; 2] {
        let json: serde_json::Value = serde_json::from_str(line).expect("a whole line");
        ["user", "heard"].map(|key| json[key].as_str().expect("a text").to_owned())
    };
    texts.flat_map(|text| text.lines().map(of).collect::<Vec<_>>()).collect()
}

#[test]
fn two_questions_are_answered_through_the_window() {
    const NAME: &str = "two_questions_are_answered_through_the_window";
    if !Display::is_possible(NAME) {
        return;
    }
    judged_in_room(NAME, |mut room| {
        let display = Display::start();
        let home = tempfile::tempdir().expect("a folder for what is kept");
        let settings = "instructions = \"You are a friendly voice assistant. Answer in one short sentence.\"\n\
                        reply_tokens = 30\n";
        std::fs::write(home.path().join("settings.toml"), settings).expect("settings");
        let mut program = room.start(|command| {
            command
                .env("DISPLAY", &display.name)
                .env("REPARTEE_HOME", home.path())
                .env_remove("WAYLAND_DISPLAY")
        });
        let window = wait_for("window", START, || display.window("Repartee"));
        wait_for("listening", START, || room.is_listened_to().then_some(()));
        let speaker = room.record("speaker.monitor");
        let asked = [question("capital.wav"), question("egg.wav")];
        for (i, question) in asked.iter().enumerate() {
            room.speak(question);
            wait_for("answer", ANSWER, || (exchanges(home.path()).len() > i).then_some(()));
            pause(Duration::from_millis(700));
        }
        let heard = recognised(&speaker.stop().samples);
        let colours = display.colours(window);
        assert!(colours > 50, "the window has {colours} colours: is anything painted?");
        let begun = Instant::now();
        display.close(window);
        program.wait();
        assert!(begun.elapsed() < END, "it took {:?} to end", begun.elapsed());
        assert_eq!(program.said(), "", "a window prints nothing");

        let said = exchanges(home.path());
        let [[capital, paris], [egg, boiled]] = &said[..] else { panic!("two exchanges: {said:?}") };
        assert!(capital.contains("capital of France") && paris.contains("Paris"), "{said:?}");
        assert!(egg.contains("boil an egg") && boiled.to_lowercase().contains("egg"), "{said:?}");
        assert!(
            heard.contains("Paris") && heard.to_lowercase().contains("egg"),
            "heard {heard:?} of {said:?}"
        );
    });
}
