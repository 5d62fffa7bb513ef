//! What real users meet, through the real program and real sound: being interrupted, noise, numbers said in pieces, and an
//! hour of talk. Figures are taken from what the microphone and the speaker recorded.
//!
//! They take minutes and are run by themselves: `cargo test --release --test live_cases -- --ignored --nocapture`.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "figures")]

mod room;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use repartee_room::Recording;
use room::{ANSWER, RATE_HZ, Room, Talker, at_48k, in_room, pause, question, ready, replies};

const STORY: &str = "You are a friendly voice assistant. Answer in ten long sentences.";

/// `text` as our own voice says it, at 48 kHz, without the silence around it.
fn spoken(text: &str) -> Vec<f32> {
    let folder = tempfile::tempdir().expect("a folder for the recording");
    let path = folder.path().join("spoken.wav");
    let status = Command::new(env!("CARGO_BIN_EXE_repartee"))
        .args(["say", text, "--voice", "am_michael", "--output"])
        .arg(&path)
        .stdout(std::process::Stdio::null())
        .status()
        .expect("the program starts");
    assert!(status.success(), "{text:?} can't be said");
    let samples = at_48k(&path);
    let is_loud = |sample: &f32| sample.abs() > 0.01;
    let from = samples.iter().position(is_loud).expect("a voice");
    let to = samples.iter().rposition(is_loud).expect("a voice");
    samples[from..=to].to_vec()
}

fn silence(secs: f32) -> Vec<f32> {
    vec![0.0; (secs * RATE_HZ as f32) as usize]
}

fn noise(secs: f32, level: f32) -> Vec<f32> {
    let mut state = 7u64;
    let samples = (0..(secs * RATE_HZ as f32) as usize).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        level * ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.0)
    });
    samples.collect()
}

/// Asks for a long reply and waits until `secs` of it were heard.
fn into_a_reply(room: &mut Room, talker: &Talker, speaker: &repartee_room::Recorder, secs: f64) {
    ready(talker);
    room.speak(&question("egg.wav"));
    let begun = Instant::now();
    while speaker.heard_secs() < secs {
        assert!(begun.elapsed() < ANSWER, "no reply; it said:\n{}", talker.said());
        pause(Duration::from_millis(5));
    }
}

/// The reply's gain in windows of 10 ms from its first sample on: what was heard beside what is heard when nobody interrupts.
/// Windows in which the undisturbed reply is silent have none.
fn gains(undisturbed: &Recording, heard: &Recording) -> Vec<Option<f32>> {
    let from_first = |recording: &Recording| {
        let first = recording.samples.iter().position(|s| s.abs() > 0.003).expect("a reply");
        recording.samples[first..].to_vec()
    };
    let (whole, cut) = (from_first(undisturbed), from_first(heard));
    let level = |window: &[f32]| (window.iter().map(|s| s * s).sum::<f32>() / window.len() as f32).sqrt();
    whole
        .chunks_exact(RATE_HZ / 100)
        .zip(cut.chunks_exact(RATE_HZ / 100))
        .map(|(whole, cut)| (level(whole) > 0.01).then(|| level(cut) / level(whole)))
        .collect()
}

/// When `words` begin at the microphone, which may hear the speaker too: where they fit best in the half second after
/// `spoke_at`.
fn beginning(microphone: &Recording, words: &[f32], spoke_at: Instant) -> Instant {
    let from = (spoke_at.duration_since(microphone.begun).as_secs_f64() * RATE_HZ as f64) as usize;
    let piece = &words[..words.len().min(RATE_HZ / 5)];
    let likeness = |at: &usize| -> f32 {
        microphone.samples[*at..].iter().zip(piece).map(|(heard, word)| heard * word).sum()
    };
    let best = (from..from + RATE_HZ / 2).max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    microphone.moment(best.unwrap_or(from) as f64 / RATE_HZ as f64)
}

/// B12, B17: the reply ducks when somebody speaks and is silent soon after, whether the microphone hears the speaker or not.
/// Prints after how much of the speech.
#[test]
#[ignore = "takes three minutes"]
fn b12_b17_speech_stops_the_reply() {
    const WORDS: [(&str, f64); 3] =
        [("Stop.", 1.0), ("Please stop talking now.", 1.5), ("No, wait, listen to me.", 2.5)];
    let mut missed = Vec::new();
    for (place, echo_db, extra) in [
        ("loudspeaker", Some(-12), None),
        ("headphones that nobody told of", None, None),
        ("headphones", None, Some("--headphones")),
    ] {
        let mut args = vec!["talk", "--max-tokens", "200", "--system", STORY];
        args.extend(extra);
        let heard = |words: &str, secs: f64| {
            let mut measured = None;
            in_room("b12_b17_speech_stops_the_reply", |mut room| {
                if let Some(db) = echo_db {
                    room.echo(db);
                }
                let words = spoken(words);
                let (microphone, speaker) = (room.record("mic_in.monitor"), room.record("speaker.monitor"));
                let mut talker = room.run(&args);
                into_a_reply(&mut room, &talker, &speaker, secs);
                let spoke_at = Instant::now();
                room.speak(&words);
                pause(Duration::from_secs_f32(2.5));
                let (microphone, speaker) = (microphone.stop(), speaker.stop());
                let said = talker.said();
                talker.interrupt();
                measured = Some((beginning(&microphone, &words, spoke_at), speaker, said));
            });
            measured
        };
        // Nobody speaks.
        let Some((_, undisturbed, _)) = heard("Hm.", 8.0) else { return };
        for (words, secs) in WORDS {
            let Some((began, speaker, said)) = heard(words, secs) else { return };
            let reply = speaker.sounds(9.0)[0].0;
            let gains = gains(&undisturbed, &speaker);
            let after = |at: usize| {
                let at = speaker.moment(reply + at as f64 * 0.01);
                at.checked_duration_since(began).map_or(-1.0, |after| after.as_secs_f64() * 1e3)
            };
            let ducked = gains.iter().position(|gain| gain.is_some_and(|gain| gain < 0.7));
            let last = gains.iter().rposition(|gain| gain.is_some_and(|gain| gain > 0.02)).unwrap_or(0);
            match ducked.map(|ducked| (after(ducked), after(last + 1))) {
                Some((ducked, silent)) if silent < 1_000.0 => {
                    println!("{place}, {words:?}: ducked after {ducked:.0} ms, silent after {silent:.0} ms");
                }
                _ => missed.push(format!("{place}, {words:?}: {said}")),
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// B14: three bursts of noise during a reply, and it goes on.
#[test]
#[ignore = "takes half a minute"]
fn b14_bursts_of_noise_do_not_stop_the_reply() {
    in_room("b14_bursts_of_noise_do_not_stop_the_reply", |mut room| {
        let speaker = room.record("speaker.monitor");
        let mut talker = room.run(&["talk", "--max-tokens", "80", "--system", STORY]);
        into_a_reply(&mut room, &talker, &speaker, 1.0);
        let burst = [noise(0.08, 0.3), silence(0.6)].concat();
        room.speak(&burst.repeat(3));
        talker.wait_for("the reply's end", ANSWER, |said| replies(said) == 1);
        pause(Duration::from_secs(4));
        let said = talker.said();
        talker.interrupt();
        assert!(!said.contains('…'), "it was interrupted: {said}");
        assert_eq!(said.matches("you: ").count(), 1, "{said}");
    });
}

/// B07, B08: what is said in pieces is one turn.
#[test]
#[ignore = "takes a minute"]
fn b07_b08_a_number_in_pieces_is_one_turn() {
    let digits: Vec<Vec<f32>> =
        ["One.", "Two.", "Three.", "Four.", "Five."].iter().map(|text| spoken(text)).collect();
    let pieces =
        [spoken("My number is"), silence(0.9), spoken("five five"), silence(0.8), spoken("two.")].concat();
    let ten: Vec<f32> =
        digits.iter().chain(&digits).flat_map(|digit| [digit.clone(), silence(0.5)].concat()).collect();
    in_room_with("b07", &[pieces], |said| {
        assert_eq!(said.matches("you: ").count(), 1, "{said}");
        assert!(said.contains("number"), "{said}");
    });
    in_room_with("b08", &[ten], |said| assert_eq!(said.matches("you: ").count(), 1, "{said}"));
}

/// Says each of `inputs`, waits for its answer, and gives `check` what the program wrote.
fn in_room_with(name: &str, inputs: &[Vec<f32>], check: impl Fn(&str)) {
    in_room(name, |mut room| {
        let mut talker = room.run(&["talk", "--max-tokens", "20"]);
        ready(&talker);
        for (i, input) in inputs.iter().enumerate() {
            room.speak(input);
            talker.wait_for("answer", ANSWER, |said| replies(said) > i);
            pause(Duration::from_secs(2));
        }
        println!("{name}: {}", talker.said());
        check(&talker.said());
        talker.interrupt();
    });
}

/// An hour of talk (`REPARTEE_MINUTES` says how many minutes): each question is answered once, no sound is lost, memory stays
/// flat. `REPARTEE_LOAD=0.3` takes 30 % of a processor meanwhile.
#[test]
#[ignore = "takes an hour"]
fn an_hour_of_talk() {
    let number = |name: &str, default: f64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let (minutes, load) = (number("REPARTEE_MINUTES", 60.0), number("REPARTEE_LOAD", 0.0));
    if !repartee_room::is_possible("an_hour_of_talk") {
        return;
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let busy = {
        let is_over = is_over.clone();
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_secs_f64(0.02 * load) {
                    std::hint::spin_loop();
                }
                pause(Duration::from_millis(20).saturating_sub(begun.elapsed()));
            }
        })
    };
    let mut room = Room::new();
    let mut talker = room.run(&["talk", "--max-tokens", "60"]);
    ready(&talker);
    let questions = [question("capital.wav"), question("egg.wav")];
    let (begun, mut asked, mut told_at) = (Instant::now(), 0, f64::MIN);
    let mut memory = Vec::new();
    while begun.elapsed().as_secs_f64() < minutes * 60.0 {
        room.speak(&questions[asked % 2]);
        asked += 1;
        talker.wait_for("answer", ANSWER, |said| replies(said) == asked);
        pause(Duration::from_secs(2));
        let (all, own) = talker.memory();
        memory.push(own);
        let minute = begun.elapsed().as_secs_f64() / 60.0;
        if minute >= told_at + 1.0 {
            told_at = minute;
            println!(
                "{minute:5.1} min: {asked} turns, resident {:.1} MB, of its own {:.1} MB",
                all as f64 / 1e6,
                own as f64 / 1e6
            );
        }
    }
    let said = talker.said();
    talker.interrupt();
    is_over.store(true, Ordering::Relaxed);
    busy.join().expect("the load ends");
    let notices: Vec<&str> = said
        .lines()
        .filter(|line| !["you: ", "reply: "].iter().any(|s| line.trim_start().starts_with(s)))
        .collect();
    println!("what else it said: {notices:#?}");
    assert_eq!(said.matches("you: ").count(), asked, "a turn for each question:\n{said}");
    assert!(!said.contains('…'), "it was interrupted:\n{said}");
    // The second half beside the first, without the first minutes, in which everything is used for the first time.
    let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len() as f64;
    let settled = &memory[memory.len() / 10..];
    let (early, late) = settled.split_at(settled.len() / 2);
    println!(
        "of its own: {:.2} MB in the first half, {:.2} MB in the second",
        mean(early) / 1e6,
        mean(late) / 1e6
    );
    assert!(mean(late) < mean(early) * 1.02, "memory grows");
    assert!(!notices.iter().any(|line| line.contains("lost")), "sound was lost: {notices:?}");
}
