//! The headless commands as a person runs them, on the real models.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn repartee(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_repartee")).args(args).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Output of a run that must succeed; what failed is shown with the program's own words.
fn succeeds(args: &[&str]) -> String {
    let out = repartee(args);
    assert!(out.status.success(), "{args:?}\n{}{}", text(&out.stdout), text(&out.stderr));
    text(&out.stdout)
}

fn question(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/questions").join(name)
}

fn check(model: &str) {
    let table = succeeds(&["check", model]);
    assert!(table.lines().count() >= 5 && !table.contains("MISS"), "{table}");
}

#[test]
fn silero_equals_its_reference() {
    check("silero-vad-v6");
}

#[test]
fn whisper_base_equals_its_reference() {
    check("whisper-base");
}

#[test]
fn whisper_tiny_equals_its_reference() {
    check("whisper-tiny.en");
}

#[test]
fn qwen_equals_its_reference() {
    check("qwen2.5-coder-0.5b");
}

#[test]
fn smollm_equals_its_reference() {
    check("smollm2-135m");
}

#[test]
fn kokoro_equals_its_reference() {
    check("kokoro-82m");
}

#[test]
fn two_spoken_questions_are_one_conversation_with_a_report() {
    let folder = tempfile::tempdir().expect("a folder for the report");
    let report = folder.path().join("report.json");
    let (first, second) = (question("capital.wav"), question("egg.wav"));
    let paths = [&first, &second, &report].map(|p| p.to_str().expect("a readable path"));
    // Without the time of day, so that every run has the same prompt.
    let system = "You are a friendly voice assistant. Answer in one short sentence.";
    let files = ["--input", paths[0], "--input", paths[1], "--report", paths[2]];
    let out = succeeds(&[&["talk", "--system", system][..], &files].concat());
    assert!(out.contains("you: What is the capital of France?"), "{out}");
    assert!(out.contains("Paris"), "{out}");
    assert!(out.contains("you: How long should I boil an egg?"), "{out}");
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&report).expect("a report")).expect("valid JSON");
    let turns = json["turns"].as_array().expect("turns");
    assert_eq!(turns.len(), 2);
    for turn in turns {
        for stage in ["encoder", "text_decoder", "prefill"] {
            let span = &turn["stages"][stage];
            assert!(span["end_ms"].as_f64() > span["start_ms"].as_f64(), "{stage} in {turn}");
        }
    }
    let shown = succeeds(&["report", "show", paths[2]]);
    assert!(shown.contains("2 turns"), "{shown}");
}

#[test]
fn a_text_is_spoken_and_understood() {
    let folder = tempfile::tempdir().expect("a folder for the speech");
    let path = folder.path().join("said.wav");
    let path = path.to_str().expect("a readable path");
    let words = "**Hello there.** The answer is 42, and it costs $5.";
    let out = succeeds(&["say", words, "--voice", "bm_george:3+bf_emma", "--speed", "1.1", "--output", path]);
    assert!(out.contains("forty-two") && out.contains("five dollars"), "{out}");
    let heard = succeeds(&["talk", "--llm", "smollm2-135m", "--max-tokens", "4", "--input", path]);
    let heard = heard.to_lowercase();
    assert!(heard.contains("hello there") && heard.contains("the answer is"), "{heard}");
    assert!(heard.contains("42") || heard.contains("forty"), "{heard}");
    // Nobody reads what is printed: the sound is written all the same.
    let unread = folder.path().join("unread.wav");
    let mut child = Command::new(env!("CARGO_BIN_EXE_repartee"))
        .args(["say", "Hi.", "--output", unread.to_str().expect("a readable path")])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    assert!(child.wait().expect("it ends").success() && unread.exists());
    let wrong = repartee(&["say", "Hi.", "--voice", "no_such_voice", "--output", path]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("no_such_voice"), "{}", text(&wrong.stderr));
    assert!(text(&wrong.stderr).contains("af_heart"), "{}", text(&wrong.stderr));
}

#[test]
fn silence_is_no_turn() {
    let folder = tempfile::tempdir().expect("a folder for the recording");
    let path = folder.path().join("silence.wav");
    // Zeros, then noise at -60 dBFS.
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    let samples: Vec<f32> = (0..96_000).map(|i| if i < 48_000 { 0.0 } else { 0.001 * noise() }).collect();
    let format = repartee_audio::wav::Format::Int16;
    repartee_audio::wav::write(&path, &samples, 16_000, format).expect("a recording");
    let path = path.to_str().expect("a readable path");
    let out = succeeds(&["talk", "--stt", "whisper-tiny.en", "--llm", "smollm2-135m", "--input", path]);
    assert!(out.contains("no speech was heard") && !out.contains("you:"), "{out}");
    assert!(out.contains("0 turns, 0 cancelled"), "{out}");
}

#[test]
fn questions_from_a_pipe_are_answered_in_order() {
    let home = tempfile::tempdir().expect("a folder");
    let args =
        ["talk", "--microphone", "off", "--speaker", "off", "--llm", "smollm2-135m", "--max-tokens", "6"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_repartee"))
        .args(args)
        .env("REPARTEE_HOME", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = child.stdin.take().expect("a pipe");
    lines.write_all(b"What is one?\n\n  What is two?  \r\nWhat is three?").expect("it reads");
    drop(lines);
    let out = child.wait_with_output().expect("it ends by itself");
    let (said, errors) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{said}{errors}");
    let spoken: Vec<&str> = said.lines().map(str::trim).filter(|line| line.contains(": ")).collect();
    let places =
        ["one", "two", "three"].map(|n| spoken.iter().position(|l| *l == format!("you: What is {n}?")));
    let [Some(one), Some(two), Some(three)] = places else { panic!("three questions: {said}") };
    assert!(one < two && two < three, "{said}");
    for question in [one, two, three] {
        let reply = spoken.get(question + 1).and_then(|line| line.strip_prefix("reply: "));
        assert!(reply.is_some_and(|words| !words.is_empty()), "{said}");
    }
    assert!(said.contains("3 turns, 0 cancelled"), "none was interrupted: {said}");
}

#[test]
fn a_second_conversation_says_that_one_is_open() {
    let home = tempfile::tempdir().expect("a folder");
    let lock = std::fs::File::create(home.path().join("running.lock")).expect("a file");
    lock.try_lock().expect("nobody has it");
    let talk = || {
        Command::new(env!("CARGO_BIN_EXE_repartee"))
            .arg("talk")
            .env("REPARTEE_HOME", home.path())
            .stdin(Stdio::null())
            .output()
            .expect("the program starts")
    };
    let out = talk();
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    assert!(said.starts_with("error: Repartee is already open in another window"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn wrong_paths_and_models_say_what_to_do() {
    let out = repartee(&["talk", "--input", "no-such-file.wav"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("no-such-file.wav"), "{}", text(&out.stderr));
    let question = question("egg.wav");
    let question = question.to_str().expect("a readable path");
    let talk = |options: &[&str]| {
        let out = repartee(&[&["talk", "--input", question][..], options].concat());
        (out.status.code(), text(&out.stderr))
    };
    // What can be known before the work is said before it, as wrong usage.
    for (options, words) in [
        (&["--llm", "no-such-model"][..], "qwen2.5-coder-0.5b"),
        (&["--stt", "kokoro-82m"], "whisper-base"),
        (&["--output", question], "the same file as"),
        (&["--output", "a.wav", "--report", "./a.wav"], "the same file as"),
        (&["--report", "no-such-folder/r.json"], "no-such-folder"),
        (&["--report", env!("CARGO_MANIFEST_DIR")], "folder"),
        (&["--report", "-"], "standard output"),
        (&["--output", "a.wav", "--voice", ""], "af_heart"),
        (&["--output", "a.mp3"], ".wav"),
        (&["--output", "a.wav", "--voice", "af_heart:x"], "weight"),
        (&["--output", "a.wav", "--voice", "af_heart:0"], "above 0"),
        (&["--speed", "9"], "from 0.25"),
        (&["--speed", "1.2"], "--output"),
        (&["--voice", "bm_george"], "--output"),
        (&["--silence", "700"], "--input"),
        (&["--temperature", "NaN"], "from 0 to 5"),
        (&["--temperature=-1"], "from 0 to 5"),
        (&["--context", "0"], "from 256"),
        (&["--context", "99999999999"], "from 256"),
        (&["--max-tokens", "0"], "from 1"),
        (&["--stt", "whisper-tiny.en", "--language", "de"], "language"),
        (&["--language", "klingon"], "language"),
    ] {
        let (code, said) = talk(options);
        assert_eq!(code, Some(2), "{options:?}: {said}");
        assert!(said.contains(words), "{options:?}: {said}");
    }
    assert!(!Path::new("a.wav").exists());
    // Live, without recordings.
    for (args, words) in [
        (&["talk", "--microphone", "no such microphone"][..], "there is no microphone"),
        (&["talk", "--output", "a.wav"], "--input"),
        (&["talk", "--silence", "50"], "from 200"),
    ] {
        let out = repartee(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(text(&out.stderr).contains(words), "{args:?}: {}", text(&out.stderr));
    }
    for args in [
        &["bench", "--repeats", "0"][..],
        &["bench", "gpt"],
        &["check", "gpt"],
        &["say", " "],
        &["say", "🙂", "--output", "a.wav"],
    ] {
        assert_eq!(repartee(args).status.code(), Some(2), "{args:?}");
    }
    assert_eq!(repartee(&["models", "remove", "gpt"]).status.code(), Some(2));
    let empty = tempfile::tempdir().expect("a folder");
    let out = Command::new(env!("CARGO_BIN_EXE_repartee"))
        .args(["say", "Hi.", "--output", "a.wav"])
        .env("REPARTEE_CACHE", empty.path())
        .output()
        .expect("the program starts");
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    assert!(said.contains("models fetch kokoro-82m kokoro-voices misaki-en"), "{said}");
    assert!(succeeds(&["talk", "--help"]).contains("Lines from a\npipe are questions"));
    // All of a conversation's at once.
    let out = Command::new(env!("CARGO_BIN_EXE_repartee"))
        .arg("talk")
        .env("REPARTEE_CACHE", empty.path())
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    let all = "silero-vad-v6 whisper-base qwen2.5-coder-0.5b kokoro-82m kokoro-voices misaki-en";
    assert!(said.contains(&format!("`repartee models fetch {all}`")) && said.contains(" MB"), "{said}");
    #[cfg(target_os = "linux")]
    {
        let full =
            std::fs::File::options().write(true).open("/dev/full").expect("the device that is always full");
        let out = Command::new(env!("CARGO_BIN_EXE_repartee"))
            .args(["models", "verify", "silero-vad-v6"])
            .stdout(full)
            .output()
            .expect("the program starts");
        assert_eq!(out.status.code(), Some(1));
        assert!(text(&out.stderr).contains("standard output"), "{}", text(&out.stderr));
    }
}
