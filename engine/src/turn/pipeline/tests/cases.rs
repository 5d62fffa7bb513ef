//! What users meet, through all threads. The machine's own cases are in `turn::tests`.

use super::super::super::history::{History, Trimmed};
use super::super::super::machine::Activity;
use super::super::super::message::{Exchange, Stage};
use super::super::super::tests::simulation::{FADE_MS, Script, TICK_MS, WORD_MS};
use super::super::{Command, Key, Listening, MicrophoneState, NoticeKind, Readiness, Signal};
use super::world::{World, five_sentences, one_sentence};
use crate::latency::Metric;

const LATENCIES_MS: [u64; 4] = [0, 120, 1_000, 3_000];

fn question() -> Script {
    Script::default().say(200, "what time is it")
}

#[test]
fn a_question_is_heard_answered_and_recorded() {
    for latency_ms in LATENCIES_MS {
        let mut world = World::new(latency_ms, question(), one_sentence);
        world.run_until_entries(1);
        let shown = world.snapshot();
        let entry = &shown.entries[0];
        assert_eq!((&*entry.user, &*entry.reply.text), ("what time is it", "You said 4 words."));
        assert_eq!((entry.reply.heard_bytes, entry.is_interrupted), (entry.reply.text.len(), false));
        assert_eq!((shown.activity, &*shown.user, &shown.reply), (Activity::Idle, "", &None));
        let record = &shown.records[0];
        assert_eq!((record.id, &*record.transcript), (entry.turn.0, "what time is it"));
        assert_eq!(record.stages.len(), 11, "{record:?}");
        // The first time, everything that was loaded is cold.
        assert_eq!(record.cold.len(), 5, "{:?}", record.cold);
        assert!(record.voice_to_voice_ms.unwrap() >= 500.0);
        assert!(shown.notices.is_empty(), "{:?}", shown.notices);
        // Work ahead: when the model came, and after the exchange.
        assert_eq!(world.play().prepared, 2);
        let spoken_ms = world.played().len() as u64 * TICK_MS;
        assert_eq!(spoken_ms, 4 * WORD_MS);
    }
}

#[test]
fn work_is_done_in_the_silence() {
    let mut world = World::new(100, question(), one_sentence);
    world.run_until_entries(1);
    let record = world.snapshot().records[0].clone();
    let wait_ms = record.duration_ms(Metric::EndOfTurnWait).unwrap();
    // Three stages of 100 ms lie in the silence; chunk, device and two ticks come on top.
    assert!(record.voice_to_voice_ms.unwrap() < wait_ms + 130.0, "{record:?}");
}

#[test]
fn what_is_shown_follows_the_conversation() {
    let mut world = World::new(350, Script::default().say(200, "tell me a very long story"), five_sentences);
    assert_eq!(world.snapshot().activity, Activity::Idle);
    world.run_to(1_900);
    assert_eq!(world.snapshot().activity, Activity::Listening);
    assert_eq!(&*world.snapshot().user, "tell me a", "words while the user speaks");
    assert!(world.snapshot().input_level.fraction() > 0.5);
    world.run_until("thinking", |world| world.snapshot().activity == Activity::Thinking);
    assert_eq!(&*world.snapshot().user, "tell me a very long story");
    world.run_until("speaking", |world| world.snapshot().activity == Activity::Speaking);
    assert_eq!(
        &*world.snapshot().user,
        "tell me a very long story",
        "and not what was recognised on the way too"
    );
    let mut last = 0;
    for _ in 0..600 {
        world.tick();
        let shown = world.snapshot();
        let reply = shown.reply.as_ref().unwrap();
        assert!(reply.heard_bytes >= last && reply.text.is_char_boundary(reply.heard_bytes));
        last = reply.heard_bytes;
    }
    assert!(last > 40 && world.snapshot().output_level.fraction() > 0.5);
    assert_eq!(&*world.snapshot().user, "tell me a very long story");
    let revision = world.pipeline.revision();
    assert_eq!(world.snapshot().revision, revision);
    world.run_until_entries(1);
    // Nothing happens, nothing changes.
    world.send(Command::Listen(Listening::Never));
    let end_ms = world.now_ms() + 500;
    let revision = world.run_to(end_ms).pipeline.revision();
    world.run_to(end_ms + 5_000);
    assert_eq!(world.pipeline.revision(), revision);
}

#[test]
fn b17_b20_speech_into_a_reply_stops_it_and_history_keeps_what_was_heard() {
    for latency_ms in LATENCIES_MS {
        let mut world = World::new(latency_ms, Script::default().say(200, "tell me a story"), five_sentences);
        world.run_until("sound", |world| world.played().len() > 28 * (WORD_MS / TICK_MS) as usize);
        let spoken_ms = world.now_ms();
        world.say(|script, now_ms| script.say(now_ms, "what about a poem"));
        world.run_until("silence", |world| world.played().last().unwrap().is_fading);
        // 160 ms of speech, a chunk that is half filled, a tick.
        assert!(world.now_ms() <= spoken_ms + 160 + 32 + TICK_MS + FADE_MS, "{latency_ms} ms");
        assert!(world.played().iter().any(|played| played.is_ducked));
        world.run_until("an entry", |world| !world.snapshot().entries.is_empty());
        let first = world.snapshot().entries[0].clone();
        let sentences = five_sentences("");
        let two = format!("{} {}", sentences[0], sentences[1]);
        assert!(first.is_interrupted);
        let heard = &first.reply.text[..first.reply.heard_bytes];
        assert!(heard.starts_with(&two) && heard.len() < two.len() + 15, "{latency_ms} ms: {heard}");
        assert!(first.reply.text.len() > heard.len());
        world.run_until_entries(2);
        assert_eq!(world.turns(), ["tell me a story", "what about a poem"]);
        // The writer saw what was heard and no more.
        assert_eq!(world.play().seen, ["tell me a story".to_owned(), heard.to_owned()]);
        assert!(world.snapshot().records[0].cancelled && !world.snapshot().records[1].cancelled);
    }
}

#[test]
fn b18_speech_before_the_first_sound_joins_what_was_said() {
    for latency_ms in [0, 350, 1_000] {
        for after_ms in (200..1_500 + 3 * latency_ms).step_by(190) {
            let end_ms = 200 + 4 * WORD_MS;
            let mut world =
                World::new(latency_ms, question().say(end_ms + after_ms, "in Tokyo"), one_sentence);
            world.run_until_entries(1);
            world.run_until("quiet", |world| world.snapshot().activity == Activity::Idle);
            match &world.turns()[..] {
                [all] if all == "what time is it in Tokyo" => {
                    let played = world.played();
                    assert!(
                        played.iter().all(|sound| sound.turn == played[0].turn),
                        "{latency_ms}, {after_ms}"
                    );
                }
                [first, second] if first == "what time is it" && second == "in Tokyo" => {}
                other => panic!("{latency_ms} ms, {after_ms} ms: {other:?}"),
            }
        }
    }
}

#[test]
fn b19_each_played_sample_is_of_the_current_turn() {
    for latency_ms in [0, 350] {
        let mut x = 0x9E37_79B9_7F4A_7C15u64;
        let mut random = |below: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x % below
        };
        let (mut script, mut at_ms) = (Script::default(), 200);
        for i in 0..15 {
            let words = 1 + random(4);
            for word in 0..words {
                script = script.say(at_ms + word * WORD_MS, &format!("word{i}x{word}"));
            }
            at_ms += words * WORD_MS + 100 + random(4_000 + latency_ms * 3);
        }
        let words = script.all_words().join(" ");
        let mut world = World::new(latency_ms, script, five_sentences);
        world.run_until_entries(1);
        world.run_until("quiet", |world| world.snapshot().activity == Activity::Idle);
        let mut latest = world.played()[0].turn;
        for played in world.played() {
            assert!(played.turn >= latest, "a stale turn at {} ms", played.at_ms);
            latest = played.turn;
        }
        assert_eq!(world.turns().join(" "), words, "{latency_ms} ms");
    }
}

#[test]
fn b21_no_gaps_and_no_deadlock() {
    fn hushed(_: &str) -> Vec<String> {
        ["Hush, this makes no sound.", "And now some words.", "Hush, nothing again."]
            .map(String::from)
            .to_vec()
    }
    for latency_ms in LATENCIES_MS {
        let mut world = World::new(latency_ms, question(), five_sentences);
        world.run_until_entries(1);
        let gap_ms = world.played().windows(2).map(|pair| pair[1].at_ms - pair[0].at_ms).max().unwrap();
        assert!(gap_ms < 300, "{latency_ms} ms: {gap_ms}");
        // A reply that rested until the first sound would rest for ever.
        let mut world = World::new(latency_ms, question(), hushed);
        world.run_until_entries(1);
        let entry = world.snapshot().entries[0].clone();
        assert!(entry.reply.text.contains("And now some words.") && !entry.is_interrupted);
        // A reply without words ends too.
        let mut world = World::new(latency_ms, question(), |_| Vec::new());
        world.run_until_entries(1);
    }
}

#[test]
fn a_stage_that_fails_or_panics_costs_its_turn_and_is_told() {
    for (name, stage) in [("transcribe", Stage::Transcribe), ("reply", Stage::Reply), ("speak", Stage::Speak)]
    {
        for panics in [false, true] {
            let mut world = World::new(120, question(), one_sentence);
            world.run_to(1_400);
            match panics {
                true => world.play().panics = Some(name),
                false => world.play().fails = Some(name),
            }
            world.run_to(4_000);
            world.run_until("quiet", |world| world.snapshot().activity == Activity::Idle);
            let notices = world.snapshot().notices.clone();
            assert_eq!(notices.len(), 1, "{name}: {notices:?}");
            assert_eq!(notices[0].kind, NoticeKind::Failed(stage));
            let reason = if panics { format!("{name} is broken") } else { format!("{name} says no") };
            assert!(notices[0].text.contains(&reason), "{}", notices[0].text);
            let before = world.snapshot().entries.len();
            world.say(|script, now_ms| script.say(now_ms, "and now"));
            world.run_until_entries(before + 1);
            assert_eq!(world.turns().last().unwrap(), "and now", "the conversation goes on");
        }
    }
}

#[test]
fn what_is_said_before_the_models_are_there_is_answered_when_they_are() {
    let mut world = World::without_models(120, question(), one_sentence);
    world.run_to(8_000);
    let shown = world.snapshot();
    assert_eq!((shown.activity, shown.readiness(Stage::Reply)), (Activity::Thinking, &Readiness::Loading));
    world.install();
    world.run_until_entries(1);
    assert_eq!(world.turns(), ["what time is it"]);
    assert!(world.snapshot().notices.is_empty(), "{:?}", world.snapshot().notices);
    // One that can't be loaded is told of, and again when it is needed.
    world.send(Command::Await(Stage::Reply));
    world.say(|script, now_ms| script.say(now_ms, "and now"));
    world.send(Command::Refuse(Stage::Reply, "the file is damaged".into()));
    world.run_until("quiet", |world| world.snapshot().notices.len() == 2);
    let notices = world.snapshot().notices.clone();
    assert_eq!((notices[0].kind, notices[1].kind), (NoticeKind::Model, NoticeKind::Failed(Stage::Reply)));
    assert!(notices[1].text.contains("the file is damaged"));
    assert_eq!(world.snapshot().readiness(Stage::Reply), &Readiness::Failed("the file is damaged".into()));
}

#[test]
fn b38_a_lost_device_costs_nothing_but_time() {
    let two = |_: &str| vec!["I know that word.".to_owned(), "Here comes how it goes on.".to_owned()];
    let mut undisturbed = World::new(120, question(), two);
    undisturbed.run_until_entries(1);
    let whole = undisturbed.snapshot().entries[0].reply.clone();
    let spoken = undisturbed.played().len();
    for (name, stage) in [("transcribe", Stage::Transcribe), ("reply", Stage::Reply), ("speak", Stage::Speak)]
    {
        let mut world = World::new(120, question(), two);
        world.run_to(1_400);
        world.play().loses = Some(name);
        world.run_until("loss", |world| matches!(world.snapshot().readiness(stage), Readiness::Lost { .. }));
        let reason = format!("the device of {name} is gone").into();
        assert_eq!(world.snapshot().readiness(stage), &Readiness::Lost { model: 1, reason });
        world.run_to(9_000);
        assert_ne!(world.snapshot().activity, Activity::Idle, "{name}: the question is not forgotten");
        world.send(Command::Await(stage));
        assert_eq!(world.snapshot().readiness(stage), &Readiness::Loading);
        world.install_one(stage);
        world.run_until_entries(1);
        let shown = world.snapshot();
        assert_eq!(world.turns(), ["what time is it"], "{name}");
        assert_eq!(shown.entries[0].reply, whole, "{name}: nothing is missing and nothing is said twice");
        assert_eq!(world.played().len(), spoken, "{name}");
        assert!(shown.notices.is_empty(), "{name}: {:?}", shown.notices);
        assert_eq!(shown.readiness(stage), &Readiness::Ready);
    }
}

#[test]
fn a_loss_is_told_once_and_not_of_a_model_that_another_takes_the_place_of() {
    let mut world = World::new(120, question(), one_sentence);
    world.run_until_entries(1);
    world.play().loses = Some("reply");
    world.send(Command::Type("and now".into()));
    // It is at work when another model is ordered, on the same device as one that was lost before.
    assert_eq!(world.snapshot().readiness(Stage::Reply), &Readiness::Ready);
    world.send(Command::Await(Stage::Reply));
    world.run_to(8_000);
    assert_eq!(world.play().loses, None, "it was lost");
    assert_eq!(world.snapshot().readiness(Stage::Reply), &Readiness::Loading);
    world.install_one(Stage::Reply);
    world.run_until_entries(2);
    assert_eq!(world.turns(), ["what time is it", "and now"]);
    // What is cancelled meanwhile is not done by the next one.
    world.play().loses = Some("reply");
    world.send(Command::Type("once more".into()));
    world.run_until("loss", |world| world.play().loses.is_none());
    let asked = world.play().asked.len();
    world.send(Command::Stop).install_one(Stage::Reply);
    let now_ms = world.now_ms();
    world.run_to(now_ms + 2_000);
    assert_eq!(world.play().asked.len(), asked);
}

#[test]
fn texts_stop_and_a_new_conversation() {
    let mut world = World::new(120, Script::default(), five_sentences);
    world.send(Command::Type("tell me a story".into()));
    world.run_until("sound", |world| world.played().len() > 100);
    world.send(Command::Stop);
    let end_ms = world.now_ms() + FADE_MS + TICK_MS;
    let played = world.run_to(end_ms).played().len();
    world.run_to(end_ms + 3_000);
    assert_eq!(world.played().len(), played);
    assert!(world.snapshot().entries[0].is_interrupted);
    let mut history = History::new("Be long.");
    let exchange =
        Exchange { user: "an old question".into(), heard: "an old answer".into(), interrupted: true };
    history.remember(&exchange);
    world.send(Command::SetHistory(history));
    assert_eq!(world.turns(), ["an old question"]);
    let old = world.snapshot().entries[0].clone();
    assert_eq!((&*old.reply.text, old.is_interrupted), ("an old answer", true));
    world.send(Command::Type("a new one".into()));
    world.run_until("a reply", |world| world.play().asked.len() == 2);
    assert_eq!(world.play().seen, ["an old question", "an old answer"]);
    world.play().trimmed = Some(Trimmed { messages: 2, words: 0 });
    world.run_until_entries(2);
    assert_eq!(world.snapshot().notices[0].kind, NoticeKind::Forgotten);
}

#[test]
fn a_muted_microphone_and_a_key_to_talk() {
    let mut world = World::new(120, Script::default().say(1_000, "secret words"), one_sentence);
    world.send(Command::Listen(Listening::Never));
    world.run_to(4_000);
    assert_eq!(
        (world.snapshot().activity, world.snapshot().microphone),
        (Activity::Idle, MicrophoneState::Muted)
    );
    assert_eq!(world.snapshot().input_level.fraction(), 0.0);
    world.send(Command::Listen(Listening::WhileKeyDown));
    assert_eq!(world.snapshot().microphone, MicrophoneState::KeyUp);
    world.say(|script, now_ms| script.say(now_ms + 200, "secret again").say(now_ms + 2_000, "open words"));
    world.run_to(6_000).send(Command::TalkKey(Key::Down));
    assert_eq!(world.snapshot().microphone, MicrophoneState::Open);
    world.run_to(4_000 + 2_000 + 2 * WORD_MS).send(Command::TalkKey(Key::Up));
    world.run_until_entries(1);
    assert_eq!(world.turns(), ["open words"]);
    // The key ends the turn: no silence is waited for.
    let record = world.snapshot().records[0].clone();
    assert!(record.duration_ms(Metric::EndOfTurnWait).unwrap() < 250.0, "{record:?}");
    for (signal, state) in [
        (Signal::NoDevice, MicrophoneState::Missing),
        (Signal::Zeros, MicrophoneState::NoSignal),
        (Signal::Present, MicrophoneState::Open),
    ] {
        world.send(Command::Listen(Listening::Always)).send(Command::Signal(signal));
        assert_eq!(world.snapshot().microphone, state);
    }
}

#[test]
fn a_held_key_keeps_the_turn_open_through_every_pause() {
    for latency_ms in [0, 120, 1_500] {
        let script = Script::default().say(1_000, "where is the").say(6_000, "nearest station");
        let mut world = World::new(latency_ms, script, one_sentence);
        world.send(Command::Listen(Listening::WhileKeyDown)).send(Command::TalkKey(Key::Down));
        world.run_to(5_500);
        assert_eq!(world.snapshot().activity, Activity::Listening, "{latency_ms} ms");
        assert_eq!(world.snapshot().microphone, MicrophoneState::Open);
        world.run_to(9_000);
        assert!(world.played().is_empty(), "{latency_ms} ms: answered before the key was let go");
        world.send(Command::TalkKey(Key::Up));
        world.run_until_entries(1);
        assert_eq!(world.turns(), ["where is the nearest station"], "{latency_ms} ms");
        // Without a key the silence ends turns again.
        world.send(Command::TalkKey(Key::Down)).send(Command::Listen(Listening::Always));
        world.say(|script, now_ms| script.say(now_ms + 200, "and now"));
        world.run_until_entries(2);
    }
}

#[test]
fn what_is_stopped_before_its_first_sound_stays_in_the_conversation() {
    let mut world = World::new(1_500, Script::default(), five_sentences);
    world.send(Command::Type("tell me a story".into()));
    world.run_until("words of a reply", |world| {
        world.snapshot().reply.as_ref().is_some_and(|r| !r.text.is_empty())
    });
    assert_eq!(world.snapshot().activity, Activity::Thinking);
    world.send(Command::Stop);
    world.run_until_entries(1);
    let entry = world.snapshot().entries[0].clone();
    assert_eq!((&*entry.user, entry.is_interrupted, entry.reply.heard_bytes), ("tell me a story", true, 0));
    assert!(!entry.reply.text.is_empty(), "what was shown stays");
    assert!(world.snapshot().user.is_empty() && world.snapshot().reply.is_none());
    assert!(world.played().is_empty());
    // It is not answered with the next words.
    world.send(Command::Type("something else".into()));
    world.run_until("a reply", |world| world.play().asked.len() == 2);
    assert_eq!(world.play().asked[1], "something else");
    assert_eq!(world.play().seen, ["tell me a story", "…"]);
}

#[test]
fn b16_a_recogniser_slower_than_speech_is_told_once() {
    let mut world = World::new(4_000, question(), one_sentence);
    world.run_until_entries(1);
    world.say(|script, now_ms| script.say(now_ms, "and now"));
    world.run_until_entries(2);
    let slow = world.snapshot().notices.iter().filter(|notice| notice.kind == NoticeKind::Slow).count();
    assert_eq!(slow, 1);
    assert_eq!(world.turns(), ["what time is it", "and now"]);
}

#[test]
fn it_ends_whatever_is_under_way() {
    for at_ms in (0..6_000).step_by(330) {
        let mut world = World::new(1_000, question(), five_sentences);
        world.run_to(at_ms);
        let begun = std::time::Instant::now();
        drop(world);
        assert!(begun.elapsed() < super::super::END, "a thread hangs at {at_ms} ms");
    }
}
