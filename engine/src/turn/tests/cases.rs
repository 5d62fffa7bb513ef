//! The cases of conversation that users meet, at both extremes of speed and between.

use super::super::machine::Activity;
use super::super::message::{Event, Stage, TurnNumber};
use super::super::{Processors, Speculation, TurnConfig};
use super::simulation::{FADE_MS, Script, Simulation, TICK_MS, WORD_MS};

/// Latencies of every stage: at once, in three seconds, and what real machines have.
const LATENCIES_MS: [u64; 5] = [0, 120, 350, 1_000, 3_000];

fn five_sentences(_: &str) -> Vec<String> {
    let sentence = "this is one of five quite long sentences that are all spoken";
    (1..=5).map(|i| format!("{i} {sentence}.")).collect()
}

/// From the first voiced sample until the endpoint is sure: 160 ms, a chunk that is half filled, a tick.
const CONFIRM_MS: u64 = 160 + 32 + TICK_MS;

#[test]
fn b01_without_speech_there_is_no_turn() {
    for script in [Script::default(), Script::default().noise(500, 30).noise(900, 60)] {
        let mut simulation = Simulation::new(0, script);
        simulation.run_to(5_000);
        assert_eq!(simulation.turns(), [""; 0]);
        assert!(simulation.stages().asked.is_empty() && simulation.stages().heard.is_empty());
        assert_eq!(simulation.conductor.state().activity(), Activity::Idle);
    }
}

#[test]
fn a_long_noise_is_recognised_and_not_answered() {
    for latency_ms in LATENCIES_MS {
        let mut simulation = Simulation::new(latency_ms, Script::default().noise(500, 900));
        simulation.run();
        assert!(simulation.stages().asked.is_empty());
        assert_eq!(simulation.conductor.state().activity(), Activity::Idle);
        assert_eq!(simulation.conductor.records().len(), 0);
    }
}

#[test]
fn b07_a_number_said_in_parts_is_one_turn() {
    for latency_ms in LATENCIES_MS {
        let script = Script::default().say(200, "My number is").say(2_000, "five five").say(3_400, "two");
        let mut simulation = Simulation::new(latency_ms, script);
        simulation.run();
        assert_eq!(simulation.turns(), ["My number is five five two"], "{latency_ms} ms");
    }
}

#[test]
fn b08_ten_digits_are_one_turn_and_the_wait_is_under_a_second() {
    for latency_ms in LATENCIES_MS {
        let digits = ["three", "one", "four", "one", "five", "nine", "two", "six", "five", "four"];
        let script =
            (0..).zip(digits).fold(Script::default(), |script, (i, digit)| script.say(200 + i * 800, digit));
        let mut simulation = Simulation::new(latency_ms, script);
        simulation.run();
        assert_eq!(simulation.turns(), [digits.join(" ")], "{latency_ms} ms");
        let wait_ms = simulation.conductor.waits().last().unwrap().as_ms();
        assert!((900.0..1_000.0).contains(&wait_ms), "{wait_ms}");
    }
}

#[test]
fn a_plain_question_waits_half_a_second() {
    let mut simulation = Simulation::new(0, Script::default().say(200, "what time is it"));
    simulation.run();
    let wait_ms = simulation.conductor.waits()[0].as_ms();
    assert!((500.0..=532.0).contains(&wait_ms), "{wait_ms}");
    let record = simulation.conductor.records().next().unwrap();
    // The reply was made in the wait: nothing but wait, chunk and output remains.
    let voice_to_voice_ms = record.voice_to_voice_ms.unwrap();
    assert!((wait_ms..wait_ms + 90.0).contains(&voice_to_voice_ms), "{voice_to_voice_ms}");
    assert_eq!((&*record.transcript, record.cancelled), ("what time is it", false));
    assert_eq!(record.stages.len(), 11);
}

#[test]
fn b09_a_second_sentence_is_never_swallowed() {
    for latency_ms in LATENCIES_MS {
        // 2.1 s is the case; around it, every other moment of the reply's making and playing.
        for gap_ms in (2_100..=2_100).chain((60..9_000).step_by(170)) {
            let first_end = 200 + 4 * WORD_MS;
            let script =
                Script::default().say(200, "tell me a story").say(first_end + gap_ms, "make it short please");
            let words = script.all_words();
            let mut simulation = Simulation::with(TurnConfig::default(), latency_ms, script, five_sentences);
            simulation.run();
            let said = simulation.turns().join(" ");
            assert_eq!(said, words.join(" "), "{latency_ms} ms, gap {gap_ms} ms");
            assert!(simulation.turns().len() <= 2);
        }
    }
}

#[test]
fn b12_the_first_stop_stops() {
    for latency_ms in LATENCIES_MS {
        let script = Script::default().say(200, "tell me a story");
        let mut simulation = Simulation::with(TurnConfig::default(), latency_ms, script, five_sentences);
        simulation.run_until_heard(150);
        let stop_ms = simulation.now_ms() + 5;
        let script = &mut simulation.conductor.stages.script;
        *script = std::mem::take(script).word(stop_ms, "stop", 200);
        simulation.run();
        let last = simulation.stages().heard.last().unwrap();
        assert!(
            last.at_ms <= stop_ms + CONFIRM_MS + FADE_MS,
            "{latency_ms} ms: {} after {stop_ms}",
            last.at_ms
        );
        // It was a command: nothing is said about it.
        assert_eq!(simulation.stages().asked, ["tell me a story"]);
        assert_eq!(simulation.turns(), ["tell me a story"]);
        assert!(simulation.stages().history[0].interrupted);
    }
}

#[test]
fn b14_bangs_duck_and_the_reply_goes_on() {
    for latency_ms in LATENCIES_MS {
        let mut script = Script::default().say(200, "tell me a story");
        let start = 1_400 + 500 + 3 * latency_ms;
        for at_ms in [start + 2_000, start + 3_000, start + 3_500] {
            script = script.noise(at_ms, 80);
        }
        let mut simulation = Simulation::with(TurnConfig::default(), latency_ms, script, five_sentences);
        simulation.run();
        let history = &simulation.stages().history;
        assert_eq!((history.len(), history[0].interrupted), (1, false));
        let heard = &simulation.stages().heard;
        let ducked_ms = heard.iter().filter(|heard| heard.ducked).count() as u64 * TICK_MS;
        assert!((1..=3 * 300).contains(&ducked_ms), "{latency_ms} ms: ducked for {ducked_ms} ms");
        assert!(!heard.last().unwrap().ducked && simulation.longest_gap_ms() < 300);
    }
}

#[test]
fn b15_speech_from_the_first_to_the_last_sample() {
    for latency_ms in LATENCIES_MS {
        let mut simulation = Simulation::new(latency_ms, Script::default().say(0, "what time is it"));
        let end_ms = 4 * WORD_MS;
        simulation.run_to(end_ms);
        simulation.conductor.finish(super::super::Samples::from_ms(end_ms));
        while simulation.turns().is_empty() {
            simulation.tick();
            assert!(simulation.now_ms() < 60_000);
        }
        assert_eq!(simulation.turns(), ["what time is it"]);
    }
}

#[test]
fn b17_speech_into_a_reply_silences_it_with_a_fade() {
    for latency_ms in LATENCIES_MS {
        let script = Script::default().say(200, "tell me a story");
        let mut simulation = Simulation::with(TurnConfig::default(), latency_ms, script, five_sentences);
        simulation.run_until_heard(150);
        let spoken_ms = simulation.now_ms();
        let script = &mut simulation.conductor.stages.script;
        *script = std::mem::take(script).say(spoken_ms, "what about a poem instead");
        simulation.run();
        let heard = &simulation.stages().heard;
        let first_turn = heard[0].turn;
        let last = heard.iter().rfind(|heard| heard.turn == first_turn).unwrap();
        assert!(last.fading, "no click: the last that is heard is the fade");
        let confirmed_ms = simulation.stages().silenced_at_ms[0];
        assert!(confirmed_ms <= spoken_ms + CONFIRM_MS);
        assert!(last.at_ms <= confirmed_ms + 100, "{latency_ms} ms");
        assert!(heard.iter().any(|heard| heard.ducked), "it ducked before it stopped");
        assert_eq!(simulation.turns(), ["tell me a story", "what about a poem instead"]);
    }
}

#[test]
fn b18_a_reply_cancelled_before_its_first_sound_is_not_heard() {
    for latency_ms in LATENCIES_MS {
        // Every moment between the start of transcription and well into the reply.
        for after_ms in (180..3 * latency_ms + 1_500).step_by(if latency_ms > 500 { 130 } else { 20 }) {
            let end_ms = 200 + 4 * WORD_MS;
            let script = Script::default().say(200, "what time is it").say(end_ms + after_ms, "in Tokyo");
            let mut simulation = Simulation::new(latency_ms, script);
            simulation.run();
            let heard = &simulation.stages().heard;
            match simulation.turns()[..] {
                ["what time is it in Tokyo"] => {
                    let turns: Vec<_> = heard.iter().map(|heard| heard.turn).collect();
                    assert!(turns.iter().all(|turn| *turn == turns[0]), "{latency_ms} ms, {after_ms} ms");
                }
                // The first reply was audible: two turns.
                ["what time is it", "in Tokyo"] => {}
                ref other => panic!("{latency_ms} ms, {after_ms} ms: {other:?}"),
            }
        }
    }
}

#[test]
fn b19_fifty_interruptions_and_no_stale_sample() {
    for latency_ms in LATENCIES_MS {
        let mut x = 0x9E37_79B9_7F4A_7C15u64;
        let mut random = |below: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x % below
        };
        let (mut script, mut at_ms) = (Script::default(), 200);
        for i in 0..50 {
            let words = 1 + random(4);
            script =
                (0..words).fold(script, |script, w| script.say(at_ms + w * WORD_MS, &format!("word{i}x{w}")));
            at_ms += words * WORD_MS + 100 + random(4_000 + latency_ms * 3);
        }
        let words = script.all_words();
        let mut simulation = Simulation::with(TurnConfig::default(), latency_ms, script, five_sentences);
        // Each tick asserts the number of what is played.
        simulation.run();
        assert_eq!(simulation.turns().join(" "), words.join(" "), "{latency_ms} ms");
        let interrupted = simulation.stages().history.iter().filter(|exchange| exchange.interrupted).count();
        assert!(interrupted >= 10, "{latency_ms} ms: {interrupted}");
    }
}

#[test]
fn b20_history_holds_the_heard_words_only() {
    for latency_ms in LATENCIES_MS {
        let script = Script::default().say(200, "tell me a story");
        let mut simulation = Simulation::with(TurnConfig::default(), latency_ms, script, five_sentences);
        // Two sentences of 13 words and two words of the third.
        simulation.run_until_heard((28 * WORD_MS / TICK_MS) as usize);
        let now_ms = simulation.now_ms();
        let script = &mut simulation.conductor.stages.script;
        *script = std::mem::take(script).say(now_ms, "go on");
        simulation.run();
        let first = &simulation.stages().history[0];
        let sentences = five_sentences("");
        let two = format!("{} {}", sentences[0], sentences[1]);
        assert!(first.interrupted && first.heard.starts_with(&two), "{}", first.heard);
        let rest = first.heard[two.len()..].trim();
        assert!(sentences[2].starts_with(rest) && rest.split(' ').count() <= 3, "{latency_ms} ms: {rest:?}");
        assert!(rest.is_empty() || sentences[2][rest.len()..].starts_with(' '), "whole words: {rest:?}");
        assert_eq!(simulation.turns(), ["tell me a story", "go on"]);
    }
}

#[test]
fn b21_no_gaps_between_sentences() {
    for processors in [Processors::Shared, Processors::Separate] {
        for latency_ms in LATENCIES_MS {
            let config = TurnConfig { processors, ..TurnConfig::default() };
            let script = Script::default().say(200, "tell me a story");
            let mut simulation = Simulation::with(config, latency_ms, script, five_sentences);
            simulation.run();
            assert!(simulation.longest_gap_ms() < 300, "{latency_ms} ms: {}", simulation.longest_gap_ms());
            let history = &simulation.stages().history;
            assert_eq!((history.len(), &*history[0].heard), (1, &*five_sentences("").join(" ")));
        }
    }
}

#[test]
fn reply_and_speech_do_not_wait_for_each_other() {
    // The first clause has no sound: a reply that rested until the first sound would rest for ever.
    fn answer(_: &str) -> Vec<String> {
        ["***", "And now some words.", "***"].map(String::from).to_vec()
    }
    fn nothing(_: &str) -> Vec<String> {
        Vec::new()
    }
    for latency_ms in LATENCIES_MS {
        let script = Script::default().say(200, "what time is it");
        let mut simulation = Simulation::with(TurnConfig::default(), latency_ms, script.clone(), answer);
        simulation.conductor.stages.mute_clause = "***";
        simulation.run();
        assert!(simulation.stages().history[0].heard.contains("And now some words."));
        // A reply without any clause ends too.
        let mut simulation = Simulation::with(TurnConfig::default(), latency_ms, script, nothing);
        simulation.run();
        assert_eq!(simulation.turns(), ["what time is it"]);
    }
}

#[test]
fn failures_end_turns_and_are_told() {
    for stage in [Stage::Transcribe, Stage::Reply, Stage::Speak] {
        let mut simulation = Simulation::new(1_000, Script::default().say(200, "what time is it"));
        // Each stage works on turn 1 in the second after the one before.
        let at_ms = match stage {
            Stage::Transcribe => 1_800,
            Stage::Reply => 2_800,
            Stage::Speak => 3_800,
        };
        simulation.run_to(at_ms);
        simulation.send(Event::Failed { turn: TurnNumber(1), stage, reason: "broken".into() });
        simulation.send(Event::Failed { turn: TurnNumber(9), stage, reason: "stale".into() });
        simulation.run();
        assert_eq!(simulation.stages().notices, [(stage, "broken".into())]);
        assert_eq!(simulation.conductor.state().activity(), Activity::Idle);
    }
}

#[test]
fn speculation_saves_the_waits_it_should() {
    let voice_to_voice_ms = |speculation, latency_ms| {
        let config = TurnConfig { speculation, ..TurnConfig::default() };
        let script = Script::default().say(200, "what time is it");
        let mut simulation = Simulation::with(config, latency_ms, script, |_| vec!["Noon.".into()]);
        simulation.run();
        simulation.conductor.records().next().unwrap().voice_to_voice_ms.unwrap()
    };
    let reply = voice_to_voice_ms(Speculation::Reply, 100);
    let transcript = voice_to_voice_ms(Speculation::Transcript, 100);
    let off = voice_to_voice_ms(Speculation::Off, 100);
    assert!(reply < 620.0, "three stages of 100 ms lie in the silence: {reply}");
    assert!((transcript - reply - 200.0).abs() <= 40.0, "{transcript}");
    assert!((off - reply - 300.0).abs() <= 40.0, "{off}");
}

#[test]
fn typed_text_is_a_turn_and_interrupts() {
    let script = Script::default().say(200, "tell me a story");
    let mut simulation = Simulation::with(TurnConfig::default(), 350, script, five_sentences);
    simulation.run_until_heard(100);
    simulation.send(Event::Typed("shorter please".into()));
    simulation.run();
    assert_eq!(simulation.turns(), ["tell me a story", "shorter please"]);
    let history = &simulation.stages().history;
    assert!(history[0].interrupted && !history[1].interrupted);
    // What is typed while the user speaks, and before the answer sounds, joins what is said.
    let mut simulation = Simulation::new(1_000, Script::default().say(200, "what time is it"));
    simulation.run_to(800).send(Event::Typed("quick question".into()));
    simulation.run_to(2_500).send(Event::Typed("in Tokyo".into()));
    simulation.run();
    assert_eq!(simulation.turns(), ["quick question what time is it in Tokyo"]);
}

#[test]
fn the_stop_key_stops_whatever_is_under_way() {
    // From the moment the first words are sure.
    for at_ms in (420..12_000).step_by(370) {
        let script = Script::default().say(200, "tell me a story");
        let mut simulation = Simulation::with(TurnConfig::default(), 1_000, script, five_sentences);
        simulation.run_to(at_ms).send(Event::Stop);
        simulation.run_to(at_ms + FADE_MS + TICK_MS);
        let heard = simulation.stages().heard.len();
        simulation.run();
        assert_eq!(simulation.stages().heard.len(), heard, "{at_ms} ms");
    }
}

#[test]
fn a_turn_longer_than_the_recogniser_takes_is_joined_from_pieces() {
    let words: Vec<String> = (0..250).map(|i| format!("w{i}")).collect();
    for latency_ms in LATENCIES_MS {
        let mut simulation = Simulation::new(latency_ms, Script::default().say(0, &words.join(" ")));
        simulation.run();
        let turns = simulation.turns();
        assert_eq!(turns.len(), 1);
        let said: Vec<_> = turns[0].split(' ').collect();
        assert_eq!(said.len(), words.len(), "{latency_ms} ms");
    }
}

#[test]
fn a_late_answer_is_merged_however_often_the_user_goes_on() {
    // Stages of 3 s, a sentence every 2 s: one long turn, answered once.
    let parts = ["I want to tell", "you something", "about my dog", "who is old"];
    let script =
        (0..).zip(parts).fold(Script::default(), |script, (i, part)| script.say(200 + i * 3_200, part));
    let mut simulation = Simulation::new(3_000, script);
    simulation.run();
    assert_eq!(simulation.turns(), [parts.join(" ")]);
    assert_eq!(simulation.conductor.records().len(), 1);
}

#[test]
fn what_follows_a_long_pause_is_recognised_on_its_own() {
    use super::super::machine::{TurnState, step};
    use super::super::message::Effect;
    use super::super::{Samples, endpoint::SpeechEvent};
    for (resumed_at, is_apart) in [(24_000, false), (64_000, true)] {
        let mut state = TurnState::default();
        state.hold(true);
        let mut pieces = Vec::new();
        for (at, event) in [
            (4_000, SpeechEvent::Start { from: Samples(100), voiced: Samples(2_000) }),
            (6_000, SpeechEvent::Confirmed),
            (18_000, SpeechEvent::MaybeEnd { voiced_end: Samples(16_000) }),
            (resumed_at, SpeechEvent::Resumed),
            (84_000, SpeechEvent::MaybeEnd { voiced_end: Samples(82_000) }),
        ] {
            let (next, effects) = step(&state, Samples(at), Event::Speech(event));
            state = next;
            pieces.extend(effects.into_iter().filter_map(|effect| match effect {
                Effect::Transcribe { from, to, .. } => Some((from.0, to.0)),
                _ => None,
            }));
        }
        let [(100, _), (second, 82_000..)] = pieces[..] else { panic!("{pieces:?}") };
        assert_eq!(second > 50_000, is_apart, "{pieces:?}");
        assert!(second < resumed_at, "its first sound is in it: {pieces:?}");
    }
}
