//! The real program with a microphone and a speaker, both virtual: what is said into the one, and what comes out of the
//! other.
//!
//! The long tests are ignored where every test is run: `cargo test --release --test live_sound -- --ignored --nocapture`.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests that were not run, and figures")]

mod room;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use repartee_room::Recording;
use room::{ANSWER, at_48k, in_room, judged_in_room, pause, question, ready, recognised, replies};

const SYSTEM: &str = "You are a friendly voice assistant. Answer in one short sentence.";

/// For each question the time from its last voiced sample at the microphone to the first sample of the reply, in
/// milliseconds, on the recordings alone.
fn voice_to_voice_ms(microphone: &Recording, speaker: &Recording) -> Vec<f64> {
    let replies = speaker.sounds(1.5);
    microphone
        .sounds(1.5)
        .iter()
        .filter_map(|(_, end)| {
            let asked = microphone.moment(*end);
            let answer =
                replies.iter().map(|(start, _)| speaker.moment(*start)).find(|start| *start > asked)?;
            Some((answer - asked).as_secs_f64() * 1e3)
        })
        .collect()
}

/// Voice to voice as the program reports it, in milliseconds.
fn reported_ms(report: &Path) -> Vec<f64> {
    let bytes = std::fs::read(report).expect("a report");
    let json: serde_json::Value = serde_json::from_slice(&bytes).expect("valid JSON");
    let turns = json["turns"].as_array().expect("turns");
    turns.iter().filter_map(|turn| turn["voice_to_voice_ms"].as_f64()).collect()
}

#[test]
fn two_questions_into_the_microphone_are_answered_from_the_speaker() {
    judged_in_room("two_questions_into_the_microphone_are_answered_from_the_speaker", |mut room| {
        let folder = tempfile::tempdir().expect("a folder for the report");
        let report = folder.path().join("report.json");
        let report_arg = report.to_str().expect("a readable path");
        let mut talker = room.run(&[
            "talk",
            "--turns",
            "2",
            "--max-tokens",
            "30",
            "--system",
            SYSTEM,
            "--report",
            report_arg,
        ]);
        ready(&talker);
        let (microphone, speaker) = (room.record("mic_in.monitor"), room.record("speaker.monitor"));
        room.speak(&question("capital.wav"));
        talker.wait_for("first answer", ANSWER, |said| replies(said) == 1);
        pause(Duration::from_millis(700));
        room.speak(&question("egg.wav"));
        talker.wait_for("second answer", ANSWER, |said| replies(said) == 2);
        talker.wait();
        let (microphone, speaker) = (microphone.stop(), speaker.stop());
        let said = talker.said();
        assert!(said.contains("you: What is the capital of France?") && said.contains("Paris"), "{said}");
        assert!(said.contains("you: How long should I boil an egg?"), "{said}");
        assert!(said.contains("report: "), "{said}");

        let heard = recognised(&speaker.samples);
        assert!(
            heard.contains("Paris") && heard.to_lowercase().contains("egg"),
            "heard {heard:?} of:\n{said}"
        );
        let (measured, reported) = (voice_to_voice_ms(&microphone, &speaker), reported_ms(&report));
        println!("voice to voice: measured {measured:.0?} ms, reported {reported:.0?} ms");
        assert_eq!((measured.len(), reported.len()), (2, 2), "{said}");
        for (measured, reported) in measured.iter().zip(&reported) {
            // The detector's last voiced chunk and the last loud sample are not the same.
            assert!(
                (measured - reported).abs() < 250.0,
                "measured {measured:.0} ms, reported {reported:.0} ms"
            );
        }
    });
}

#[test]
fn it_does_not_answer_itself() {
    judged_in_room("it_does_not_answer_itself", |mut room| {
        room.echo(-12);
        let mut talker = room.run(&["talk", "--max-tokens", "60"]);
        ready(&talker);
        room.speak(&question("capital.wav"));
        talker.wait_for("answer", ANSWER, |said| replies(said) == 1);
        // Any turn that its own voice had begun would be answered in this time.
        pause(Duration::from_secs(5));
        let said = talker.said();
        talker.interrupt();
        assert_eq!(said.matches("you: ").count(), 1, "{said}");
        assert!(!said.contains('…'), "it interrupted itself: {said}");
    });
}

/// B13: two minutes of talk with its own voice in the microphone, 12 dB softer and 80 ms later, and no turn of its own.
#[test]
#[ignore = "takes three minutes"]
fn b13_it_does_not_answer_itself_in_two_minutes() {
    in_room("b13_it_does_not_answer_itself_in_two_minutes", |mut room| {
        room.echo(-12);
        let mut talker = room.run(&["talk", "--max-tokens", "200", "--system", "Tell long stories."]);
        ready(&talker);
        let (begun, mut asked) = (Instant::now(), 0);
        while begun.elapsed() < Duration::from_secs(120) {
            room.speak(&question(["capital.wav", "egg.wav"][asked % 2]));
            asked += 1;
            talker.wait_for("answer", Duration::from_secs(180), |said| replies(said) == asked);
            pause(Duration::from_secs(3));
        }
        let said = talker.said();
        talker.interrupt();
        assert_eq!(said.matches("you: ").count(), asked, "{said}");
        assert!(!said.contains('…'), "it interrupted itself: {said}");
    });
}

/// The figure that the program is for: questions from a folder (`REPARTEE_QUESTIONS`), or made by the program itself.
#[test]
#[ignore = "a measurement: takes minutes; `cargo xtask voice-to-voice` runs it"]
fn voice_to_voice() {
    in_room("voice_to_voice", |mut room| {
        let folder =
            PathBuf::from(std::env::var_os("REPARTEE_QUESTIONS").expect("REPARTEE_QUESTIONS names a folder"));
        let mut questions: Vec<PathBuf> = std::fs::read_dir(&folder)
            .expect("the folder can be read")
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "wav"))
            .collect();
        questions.sort();
        assert!(!questions.is_empty(), "there are no recordings in {}", folder.display());
        let report =
            PathBuf::from(std::env::var_os("REPARTEE_REPORT").expect("REPARTEE_REPORT names a file"));
        let extra = std::env::var("REPARTEE_ARGS").unwrap_or_default();
        let mut args = vec!["talk", "--report", report.to_str().expect("a readable path")];
        args.extend(extra.split_whitespace());
        let mut talker = room.run(&args);
        ready(&talker);
        let (microphone, speaker) = (room.record("mic_in.monitor"), room.record("speaker.monitor"));
        for (i, path) in questions.iter().enumerate() {
            room.speak(&at_48k(path));
            talker.wait_for("answer", ANSWER, |said| replies(said) > i);
            pause(Duration::from_secs(2));
        }
        talker.interrupt();
        let (microphone, speaker) = (microphone.stop(), speaker.stop());
        println!("{}", talker.said());
        let mut measured = voice_to_voice_ms(&microphone, &speaker);
        println!("voice to voice on the recordings, in ms: {measured:.0?}");
        assert_eq!(measured.len(), questions.len(), "an answer to each question");
        measured.sort_by(f64::total_cmp);
        let at = |share: f64| measured[((measured.len() - 1) as f64 * share).round() as usize];
        println!("{} questions: median {:.0} ms, p95 {:.0} ms", measured.len(), at(0.5), at(0.95));
    });
}
