//! The real program with its window on a virtual display, in a room with a virtual microphone and a virtual speaker.
//!
//! What it costs while nothing is said: `cargo test --release --test live_window -- --ignored --nocapture`.

#![cfg(target_os = "linux")]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that was not run has to say so; figures"
)]

mod room;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use room::{ANSWER, Room, START, Talker, in_room, judged_in_room, pause, question, recognised};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConnectionExt, CreateWindowAux, EventMask, ImageFormat, Window, WindowClass,
};
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
        // One that is not on the screen yet has no image.
        let Ok(image) = image.expect("a question").reply() else { return 0 };
        let mut pixels: Vec<u32> =
            image.data.chunks_exact(4).map(|p| u32::from_ne_bytes([p[0], p[1], p[2], p[3]])).collect();
        pixels.sort_unstable();
        pixels.dedup();
        pixels.len()
    }

    /// Covers all windows with another.
    fn cover(&self) -> Window {
        let (window, screen) =
            (self.connection.generate_id().expect("an id"), &self.connection.setup().roots[0]);
        let (width, height) = (screen.width_in_pixels, screen.height_in_pixels);
        let look = CreateWindowAux::new().background_pixel(screen.white_pixel).override_redirect(1);
        let class = WindowClass::INPUT_OUTPUT;
        let created =
            self.connection.create_window(0, window, screen.root, 0, 0, width, height, 0, class, 0, &look);
        created.expect("a message").check().expect("a window");
        self.connection.map_window(window).expect("a message").check().expect("it is shown");
        window
    }

    /// Shows a window, or takes it from the screen as minimising does.
    fn show(&self, window: Window, is_shown: bool) {
        let connection = &self.connection;
        let sent = if is_shown { connection.map_window(window) } else { connection.unmap_window(window) };
        sent.expect("a message").check().expect("the window is there");
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

/// Starts the program and gives its window.
fn open(room: &Room, display: &Display, home: &Path) -> (Talker, Window) {
    let program = room.start(|command| {
        let command = command.env("DISPLAY", &display.name).env_remove("WAYLAND_DISPLAY");
        command.env("REPARTEE_HOME", home).env("RUST_LOG", "repartee=trace")
    });
    (program, wait_for("window", START, || display.window("Repartee")))
}

/// The program without microphone and speaker; it is killed when this is dropped, as by a crash.
struct Silent(Child);

impl Silent {
    fn open(display: &Display, home: &Path, cache: &Path) -> Self {
        let settings = "microphone = \"off\"\nspeaker = \"off\"\n";
        std::fs::write(home.join("settings.toml"), settings).expect("settings");
        let mut command = Command::new(env!("CARGO_BIN_EXE_repartee"));
        command.env("DISPLAY", &display.name).env_remove("WAYLAND_DISPLAY").env("REPARTEE_CACHE", cache);
        command.env("REPARTEE_HOME", home).env("RUST_LOG", "repartee=info").stdin(Stdio::null());
        Self(command.spawn().expect("the program starts"))
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A second window neither listens nor writes; it is one again after a crash of the first.
#[test]
fn a_second_window_leaves_the_conversation_alone() {
    if !Display::is_possible("a_second_window_leaves_the_conversation_alone") {
        return;
    }
    let (display, home) = (Display::start(), tempfile::tempdir().expect("a folder"));
    let home = home.path();
    let loaded = |count| wait_for("models", START, || (logged(home, "loaded stage=") == count).then_some(()));
    let first = Silent::open(&display, home, &room::cache());
    loaded(3);
    let mut second = Silent::open(&display, home, &room::cache());
    wait_for("word of the second", START, || (logged(home, "another Repartee talks") == 1).then_some(()));
    drop(first);
    assert!(second.0.try_wait().expect("a child").is_none(), "it has its window");
    let _third = Silent::open(&display, home, &room::cache());
    // The first three, and three more: the second one has none.
    loaded(6);
    assert_eq!(logged(home, "another Repartee talks"), 1);
}

/// Without models there is a window, and it goes on when they are there.
#[test]
fn missing_models_do_not_keep_the_window_from_opening() {
    if !Display::is_possible("missing_models_do_not_keep_the_window_from_opening") {
        return;
    }
    let (display, home) = (Display::start(), tempfile::tempdir().expect("a folder"));
    let cache = home.path().join("cache");
    let mut program = Silent::open(&display, home.path(), &cache);
    let window = wait_for("window", START, || display.window("Repartee"));
    wait_for("word", START, || (logged(home.path(), "models are not here") == 1).then_some(()));
    wait_for("page", END, || (display.colours(window) > 20).then_some(()));
    assert!(!cache.exists(), "nothing is fetched before somebody asks for it");
    assert_eq!(logged(home.path(), "loaded stage="), 0);
    // As if they were fetched from a terminal.
    std::os::unix::fs::symlink(room::cache(), &cache).expect("a link");
    wait_for("models", START, || (logged(home.path(), "loaded stage=") == 3).then_some(()));
    display.close(window);
    let status = wait_for("end", END, || program.0.try_wait().expect("a child"));
    assert!(status.success(), "{status}");
}

/// How often the program's log says `words`.
fn logged(home: &Path, words: &str) -> usize {
    let files = std::fs::read_dir(home.join("logs")).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    texts.map(|text| text.matches(words).count()).sum()
}

/// Seconds of a processor that each thread of a program has used, by the threads' names.
fn cpu_secs(pid: u32) -> BTreeMap<String, f64> {
    let mut used = BTreeMap::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten() {
        // Threads that have just ended have no file any more.
        let Ok(stat) = std::fs::read_to_string(task.path().join("stat")) else { continue };
        let (Some(start), Some(end)) = (stat.find('('), stat.rfind(')')) else { continue };
        // After the name: state is field 3 of proc(5), the times in user and system mode are 14 and 15, in 10 ms.
        let ticks: Vec<f64> =
            stat[end + 1..].split_whitespace().skip(11).take(2).filter_map(|t| t.parse().ok()).collect();
        *used.entry(stat[start + 1..end].to_owned()).or_default() += ticks.iter().sum::<f64>() / 100.0;
    }
    used
}

/// B37: what the program costs while nothing is said. The window's own threads stay under 1 % of a core and the window
/// is painted less than twice a second, in sight or not.
#[test]
#[ignore = "a measurement: takes four minutes"]
fn b37_nothing_costs_next_to_nothing() {
    const NAME: &str = "b37_nothing_costs_next_to_nothing";
    const WHILE: Duration = Duration::from_secs(30);
    if !Display::is_possible(NAME) {
        return;
    }
    let measure = |what: &str, program: &Talker, home: &Path| {
        pause(Duration::from_secs(2));
        let (begun, before, painted) = (Instant::now(), cpu_secs(program.id()), logged(home, "painted"));
        pause(WHILE);
        let (after, painted) = (cpu_secs(program.id()), logged(home, "painted") - painted);
        let secs = begun.elapsed().as_secs_f64();
        let share = |(name, used): (&String, &f64)| (used - before.get(name).unwrap_or(&0.0)) * 100.0 / secs;
        let total: f64 = after.iter().map(share).sum();
        let is_window = |name: &str| name == "repartee" || name == "clerk" || name.starts_with("llvmpipe");
        let window: f64 = after.iter().filter(|(name, _)| is_window(name)).map(share).sum();
        let frames = painted as f64 / secs;
        println!("{what}: {total:.2} % of a core, the window {window:.2} %, {frames:.2} frames a second");
        let shares = after.iter().map(|used| (used.0, share(used))).filter(|(_, share)| *share >= 0.05);
        println!("  {:.2?}", shares.collect::<Vec<_>>());
        assert!(window < 1.0 && frames < 2.0, "{what}: {window:.2} %, {frames:.2} frames a second");
    };
    for (what, settings) in [("no devices", "microphone = \"off\"\nspeaker = \"off\"\n"), ("listening", "")] {
        in_room(NAME, |mut room| {
            let (display, home) = (Display::start(), tempfile::tempdir().expect("a folder"));
            std::fs::write(home.path().join("settings.toml"), settings).expect("settings");
            // Noise of a quiet room, at about -66 dB.
            let mut state = 1u32;
            let noise = (0..room::RATE_HZ * 200).map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ((state >> 8) as f32 / 8_388_608.0 - 1.0) * 0.000_8
            });
            room.speak(&noise.collect::<Vec<_>>());
            let (mut program, window) = open(&room, &display, home.path());
            wait_for("models", START, || (logged(home.path(), "loaded stage=") == 3).then_some(()));
            measure(&format!("{what}, in sight"), &program, home.path());
            display.show(window, false);
            measure(&format!("{what}, minimised"), &program, home.path());
            display.show(window, true);
            display.cover();
            measure(&format!("{what}, covered"), &program, home.path());
            display.close(window);
            program.wait();
        });
    }
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
