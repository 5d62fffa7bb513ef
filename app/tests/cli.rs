//! The program from outside: exit status, what goes to which stream, pipes.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The program with an empty cache of its own and no settings of the caller.
fn repartee(cache: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_repartee"));
    command.args(words).env("REPARTEE_CACHE", cache).env_remove("REPARTEE_CATALOGUE").env_remove("RUST_LOG");
    command.stdin(Stdio::null());
    command
}

fn run(words: &[&str]) -> (Option<i32>, String, String) {
    let cache = tempfile::tempdir().unwrap();
    let Output { status, stdout, stderr } = repartee(cache.path(), words).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn help_and_version_are_results() {
    let (code, out, err) = run(&["--version"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(out, format!("repartee {}\n", env!("CARGO_PKG_VERSION")));

    let (code, out, err) = run(&["--help"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    for word in ["talk", "models", "report", "check", "bench", "--verbose", "REPARTEE_CACHE", "Exit status"] {
        assert!(out.contains(word), "{word} is not in {out}");
    }
}

#[test]
fn devices_say_what_computes_and_software_only_as_such() {
    let (code, out, err) = run(&["devices"]);
    assert_eq!(code, Some(0), "{err}");
    let (_, computes) = out.split_once("computes:\n").expect("what computes");
    let mut lines = computes.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("  cpu (")), "{out}");
    for line in lines.filter(|line| line.contains("llvmpipe")) {
        assert!(line.contains("; driver: ") && line.contains("; Vulkan"), "{line}");
        assert!(line.ends_with(": software, used only when asked for"), "{line}");
    }
}

#[test]
fn wrong_usage_ends_with_2() {
    for words in [&["modls"][..], &["models", "fetch", "--everything"], &["models", "remove"]] {
        let (code, out, err) = run(words);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{words:?}");
        assert!(err.contains("Usage"), "{err}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn without_a_display_the_terminal_is_named() {
    let home = tempfile::tempdir().unwrap();
    let mut command = repartee(home.path(), &[]);
    for display in ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"] {
        command.env_remove(display);
    }
    let out = command.env("REPARTEE_HOME", home.path()).output().unwrap();
    let err = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(err.starts_with("error: there is no display") && err.contains("`repartee talk`"), "{err}");
}

#[test]
fn names_and_files_do_not_steer_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let no_file = path("\x1b]0;x\x07\u{202e}none.json");
    let (code, out, err) = run(&["report", "show", &no_file]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains(r"\u{1b}]0;x\u{7}\u{202e}none.json"), "{err}");
    for words in
        [&["models", "remove", "\x1b[2J\u{9b}2J"][..], &["talk", "--\x1b[2J\u{9b}2J"], &["\x1b[2J\u{9b}2J"]]
    {
        let (code, out, err) = run(words);
        assert_eq!((code, out.as_str()), (Some(2), ""));
        assert!(!err.contains(['\x1b', '\u{9b}']) && err.contains("2J"), "{err:?}");
    }
    // What a file says, and not all of it.
    let catalogue = path("catalogue.toml");
    std::fs::write(&catalogue, format!("schema = 1\n\"\\u001b[2J{}\" = 1\n", "x".repeat(100_000))).unwrap();
    let out =
        repartee(folder.path(), &["models", "list"]).env("REPARTEE_CATALOGUE", &catalogue).output().unwrap();
    let err = String::from_utf8(out.stderr).unwrap();
    assert!(
        out.status.code() == Some(1) && !err.contains('\x1b') && err.contains("characters left out"),
        "{err}"
    );
    assert!(err.chars().count() < 2_200, "{}", err.len());
}

#[cfg(unix)]
#[test]
fn a_catalogue_without_an_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = repartee(folder.path(), &["models", "list"]);
    let out = command.env("REPARTEE_CATALOGUE", "/dev/zero").output().unwrap();
    let err = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.code() == Some(1) && err.contains("it is no file"), "{err}");
}

#[test]
fn a_recording_is_looked_at_before_anything_is_timed() {
    let (code, out, err) = run(&["bench", "--clip", "none.wav"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("none.wav"), "{err}");
    let (code, out, err) = run(&["bench"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("models are missing") && err.contains("kokoro-voices"), "{err}");
}

#[test]
fn a_text_without_an_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut command, text) = (repartee(folder.path(), &["say", "-"]), folder.path().join("text"));
    std::fs::write(&text, vec![b'x'; (4 << 20) + 1]).unwrap();
    let out = command.stdin(std::fs::File::open(&text).unwrap()).output().unwrap();
    let err = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.code() == Some(2) && err.contains("more than 4 MiB"), "{err}");
}

#[test]
fn a_failure_ends_with_its_status_and_one_paragraph() {
    let (code, out, err) = run(&["models", "remove", "no-such-model"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.starts_with("error: "), "{err}");
    assert_eq!(err.trim_end().lines().count(), 1, "{err}");
    assert!(err.contains("no-such-model"), "{err}");
}

#[test]
fn an_empty_cache_is_listed_and_the_log_keeps_quiet() {
    let (code, out, err) = run(&["models", "list"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.lines().any(|line| line.starts_with("whisper-base ") && line.contains("absent")), "{out}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let cache = tempfile::tempdir().unwrap();
    let mut child = repartee(cache.path(), &["models", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    // By the signal, as other tools, or quietly.
    assert!(matches!(output.status.code(), None | Some(0)), "{}", output.status);
}
