//! The window's views by role and label, and their pictures.

mod placed;
#[cfg(feature = "wgpu")]
mod switched;

use std::sync::Arc;

use eframe::egui::{Key, Modifiers, Role, Theme, Vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use repartee_engine::latency::{Metric, Reading};
use repartee_engine::turn::machine::Activity;
use repartee_engine::turn::message::{Exchange, Stage, TurnNumber};
use repartee_engine::turn::pipeline::{
    self, Entry, Level, Listening, MicrophoneState, Notice, NoticeKind, Readiness, ReplyText,
};

use super::choices::{Choice, Choices};
use super::earlier::Open;
use super::overlay::tests::record;
use super::tokens;
use super::view::{Request, View};
use crate::live::{About, Command, Settings, Setup, Snapshot, StageInfo, Trouble};
use crate::saved::Earlier;

/// A view, what it shows, and what it asked for.
#[derive(Default)]
struct Shown {
    view: View,
    conversation: pipeline::Snapshot,
    setup: Setup,
    requests: Vec<Request>,
    painted: usize,
}

fn harness(shown: Shown, theme: Theme) -> Harness<'static, Shown> {
    harness_of(shown, theme, [900.0, 640.0])
}

fn harness_of(shown: Shown, theme: Theme, size: [f32; 2]) -> Harness<'static, Shown> {
    let mut is_set_up = false;
    Harness::builder().with_size(Vec2::from(size)).with_theme(theme).build_ui_state(
        move |ui, shown: &mut Shown| {
            if !std::mem::replace(&mut is_set_up, true) {
                tokens::apply(ui.ctx());
            }
            let snapshot = Snapshot {
                revision: 0,
                conversation: Arc::new(shown.conversation.clone()),
                setup: Arc::new(shown.setup.clone()),
            };
            shown.painted += 1;
            let requests = shown.view.show(ui, &snapshot);
            shown.requests.extend(requests);
        },
        shown,
    )
}

fn ready() -> Shown {
    let stages = [
        (Stage::Transcribe, "whisper-base"),
        (Stage::Reply, "qwen2.5-coder-0.5b"),
        (Stage::Speak, "kokoro-82m"),
    ];
    let stages = stages.map(|(stage, model)| StageInfo {
        stage,
        model: model.into(),
        backend: "cpu (avx512-vnni)".into(),
        computes: "cpu (avx512-vnni)".into(),
        readiness: Readiness::Ready,
    });
    Shown {
        conversation: pipeline::Snapshot { readiness: [const { Readiness::Ready }; 3], ..Default::default() },
        setup: Setup {
            stages: stages.into(),
            input: Some("Microphone".into()),
            output: Some("Speaker".into()),
            ..Setup::default()
        },
        ..Shown::default()
    }
}

fn entry(turn: u64, user: &str, reply: &str) -> Arc<Entry> {
    let reply = ReplyText { text: reply.into(), heard_bytes: reply.len() };
    Arc::new(Entry { turn: TurnNumber(turn), user: user.into(), reply, is_interrupted: false })
}

fn talking() -> Shown {
    let mut shown = ready();
    let text = "It has been since the tenth century, with a few pauses.";
    shown.conversation = pipeline::Snapshot {
        activity: Activity::Speaking,
        entries: Arc::new(vec![entry(
            1,
            "What is the capital of France?",
            "The capital of France is Paris.",
        )]),
        user: "Was it always?".into(),
        reply: Some(ReplyText { text: text.into(), heard_bytes: "It has been since the".len() }),
        records: Arc::new((0..24).map(|i| record(i, 650.0 + 17.0 * (i % 7) as f64)).collect()),
        input_level: Level::of(&[0.01; 64]),
        output_level: Level::of(&[0.2; 64]),
        ..shown.conversation
    };
    shown
}

#[test]
fn an_empty_conversation_says_what_to_do() {
    let mut harness = harness(ready(), Theme::Dark);
    harness.run();
    harness.get_by_label("Listening");
    harness.get_by_label("Say something.");
    harness.snapshot("empty");
}

#[test]
fn what_is_loaded_and_what_failed_is_said() {
    let mut shown = ready();
    shown.conversation.readiness = [Readiness::Ready, Readiness::Loading, Readiness::Failed("".into())];
    shown.setup.stages[1].readiness = Readiness::Loading;
    shown.setup.stages[2].readiness = Readiness::Failed("run `repartee models fetch kokoro-82m`".into());
    let mut harness = harness(shown, Theme::Dark);
    harness.run();
    harness.get_by_label("Getting ready");
    harness.get_by_label("Language model: qwen2.5-coder-0.5b is being loaded");
    harness.get_by_label("Voice: run `repartee models fetch kokoro-82m`");
    harness.snapshot("loading");
}

#[test]
fn a_reply_lights_up_as_it_is_heard_and_can_be_stopped() {
    let mut harness = harness(talking(), Theme::Dark);
    harness.run();
    harness.get_by_label("Speaking");
    harness.get_by_label("What is the capital of France?");
    harness.get_by_label("It has been since the tenth century, with a few pauses.");
    harness.snapshot("talking");
    harness.get_by_role_and_label(Role::Button, "Stop").click();
    harness.run();
    assert_eq!(harness.state().requests, [Request::Tell(Command::Stop)]);
    harness.state_mut().requests.clear();
    harness.key_press(Key::Escape);
    harness.run();
    assert_eq!(harness.state().requests, [Request::Tell(Command::Stop)]);
}

#[test]
fn a_text_is_sent_with_enter_or_the_button_and_never_empty() {
    let mut harness = harness(ready(), Theme::Dark);
    harness.run();
    assert!(harness.get_by_role_and_label(Role::Button, "Send").accesskit_node().is_disabled());
    let field = harness.get_by_role_and_label(Role::TextInput, "Message");
    field.focus();
    harness.run();
    harness.get_by_role_and_label(Role::TextInput, "Message").type_text("  Hello, you. ");
    harness.run();
    harness.key_press(Key::Enter);
    harness.run();
    assert_eq!(harness.state().requests, [Request::Tell(Command::Type("Hello, you.".into()))]);
    assert_eq!(harness.state().view.draft, "");
    harness.key_press(Key::Enter);
    harness.run();
    assert_eq!(harness.state().requests.len(), 1);
}

#[test]
fn mute_changes_only_when_it_listens() {
    let mut harness = harness(ready(), Theme::Dark);
    harness.run();
    harness.get_by_label("Mute").click();
    harness.run();
    let muted = Settings { listening: Listening::Never, ..Settings::default() };
    assert_eq!(harness.state().requests, [Request::Tell(Command::Set(Box::new(muted.clone())))]);
    harness.state_mut().setup.settings = muted;
    harness.state_mut().conversation.microphone = MicrophoneState::Muted;
    harness.state_mut().requests.clear();
    harness.run();
    harness.get_by_label("Muted");
    harness.key_press_modifiers(Modifiers::COMMAND, Key::M);
    harness.run();
    assert_eq!(harness.state().requests, [Request::Tell(Command::Set(Box::default()))]);
}

#[test]
fn a_deaf_microphone_is_said_while_it_is_deaf() {
    let mut shown = ready();
    shown.conversation.microphone = MicrophoneState::NoSignal;
    let mut harness = harness(shown, Theme::Light);
    harness.run();
    harness.get_by_label("No signal");
    harness.get_by_label_contains("The microphone gives no sound at all");
    harness.snapshot("no_signal");
    harness.state_mut().conversation.microphone = MicrophoneState::Open;
    harness.run();
    assert!(harness.query_by_label_contains("The microphone gives no sound").is_none());
}

#[test]
fn a_notice_stays_until_it_is_dismissed() {
    let mut shown = ready();
    let text = "the microphone \"USB\" was lost; opening another";
    shown.conversation.notices =
        Arc::new(vec![Notice { number: 7, kind: NoticeKind::Sound, text: text.into() }]);
    let mut harness = harness(shown, Theme::Light);
    harness.run();
    harness.get_by_label(text);
    harness.get_by_label("Dismiss").click();
    harness.run();
    assert!(harness.query_by_label(text).is_none());
}

#[test]
fn notices_merge_and_all_can_be_dismissed() {
    let mut shown = ready();
    let notice = |number, text: &str| Notice { number, kind: NoticeKind::Forgotten, text: text.into() };
    let texts = ["full", "b", "full", "c", "d", "full"];
    shown.conversation.notices =
        Arc::new(texts.into_iter().zip(1..).map(|(text, number)| notice(number, text)).collect());
    let mut harness = harness(shown, Theme::Light);
    harness.run();
    // The three newest of four, and how many more there are.
    for text in ["b", "c", "d", "and 1 more"] {
        harness.get_by_label(text);
    }
    assert!(harness.query_by_label("full (3 times)").is_none());
    harness.get_by_role_and_label(Role::Button, "Dismiss all").click();
    harness.run();
    assert!(harness.query_by_label("Dismiss").is_none() && harness.query_by_label("Dismiss all").is_none());
    let mut notices = harness.state().conversation.notices.to_vec();
    notices.extend([notice(7, "full"), notice(8, "full")]);
    harness.state_mut().conversation.notices = Arc::new(notices);
    harness.run();
    harness.get_by_label("full (2 times)");
    assert!(harness.query_by_label("Dismiss all").is_none(), "there is one");
}

#[test]
fn a_device_that_is_back_is_no_trouble_any_more() {
    let mut shown = ready();
    let about = About::Device(repartee_audio::Direction::Output);
    let trouble = Trouble { number: 1, about, text: "no speaker".into(), times: 1, is_over: false };
    shown.setup.troubles = vec![trouble];
    let mut harness = harness(shown, Theme::Dark);
    harness.run();
    harness.get_by_label("no speaker");
    harness.state_mut().setup.troubles[0].is_over = true;
    harness.run();
    assert!(harness.query_by_label("no speaker").is_none());
}

#[test]
fn an_earlier_conversation_is_read_and_deleted_after_a_question() {
    let earlier = |day: &str, time: &str, first: &str| Earlier {
        path: first.into(),
        day: day.into(),
        time: time.into(),
        first: first.into(),
    };
    let list = vec![
        earlier("Monday, November 30, 2026", "3:27 PM", "What is the capital of France?"),
        earlier("Monday, November 30, 2026", "9:05 AM", "How long should I boil an egg?"),
        earlier("Sunday, November 29, 2026", "8:41 PM", &"Tell me a story. ".repeat(9)),
    ];
    let mut harness = harness(talking(), Theme::Dark);
    harness.run();
    harness.get_by_label("Earlier").click();
    harness.run();
    let take = |harness: &mut Harness<'_, Shown>| std::mem::take(&mut harness.state_mut().requests);
    assert_eq!(take(&mut harness), [Request::ListEarlier]);
    harness.state_mut().view.earlier.list = Some(list.clone());
    harness.run();
    harness.get_by_label("Sunday, November 29, 2026");
    harness.get_by_role_and_label(Role::Button, "9:05 AM  How long should I boil an egg?").click();
    harness.run();
    assert_eq!(take(&mut harness), [Request::ReadEarlier(list[1].clone())]);
    let open = |which: &Earlier| {
        let (user, heard) = (which.first.as_str().into(), "About eight minutes.".into());
        Some(Open { which: which.clone(), exchanges: vec![Exchange { user, heard, interrupted: true }] })
    };
    harness.state_mut().view.earlier.open = open(&list[1]);
    harness.run();
    harness.get_by_label("Monday, November 30, 2026, 9:05 AM");
    harness.get_by_label("About eight minutes.");
    assert!(harness.query_by_label("Was it always?").is_none(), "not both at once");
    harness.snapshot("earlier");
    harness.get_by_role_and_label(Role::Button, "Back to now").click();
    harness.run();
    harness.get_by_label("Was it always?");
    // It can be gone on with.
    harness.state_mut().view.earlier.open = open(&list[1]);
    harness.run();
    harness.get_by_role_and_label(Role::Button, "Continue").click();
    harness.run();
    assert_eq!(take(&mut harness), [Request::GoOn(list[1].clone())]);
    harness.get_by_label("Was it always?");
    // Deleting asks first, and can be taken back.
    harness.state_mut().view.earlier.open = open(&list[1]);
    harness.run();
    harness.get_by_role_and_label(Role::Button, "Delete").click();
    harness.run();
    harness.get_by_role_and_label(Role::Button, "Keep it").click();
    harness.run();
    harness.get_by_role_and_label(Role::Button, "Delete").click();
    harness.run();
    harness.get_by_label("Delete it");
    harness.key_press(Key::Escape);
    harness.run();
    assert!(take(&mut harness).is_empty() && harness.query_by_label("Delete it").is_none());
    harness.get_by_role_and_label(Role::Button, "Delete").click();
    harness.run();
    harness.get_by_role_and_label(Role::Button, "Delete it").click();
    harness.run();
    assert_eq!(take(&mut harness), [Request::DeleteEarlier(list[1].clone())]);
    harness.get_by_label("Was it always?");
    // What is typed belongs to the conversation under way.
    harness.state_mut().view.earlier.open = open(&list[0]);
    harness.state_mut().view.draft = "Go on".into();
    harness.run();
    harness.get_by_role_and_label(Role::Button, "Send").click();
    harness.run();
    harness.get_by_label("Was it always?");
}

/// Whatever panels are open, what stands above an earlier conversation is beside or below each other.
#[test]
fn the_title_of_an_earlier_conversation_covers_no_button() {
    for (size, both) in [([800.0, 600.0], false), ([1280.0, 800.0], true)] {
        let mut shown = talking();
        shown.view.earlier.is_shown = true;
        let (day, time) = ("Wednesday, September 30, 2026".to_owned(), "10:27 PM".to_owned());
        let which = Earlier { path: "a".into(), day, time, first: "Hello".into() };
        shown.view.earlier.list = Some(vec![which.clone()]);
        shown.view.earlier.open = Some(Open { which, exchanges: Vec::new() });
        let mut harness = harness_of(shown, Theme::Dark, size);
        harness.run();
        harness.key_press_modifiers(Modifiers::COMMAND, Key::Comma);
        harness.run();
        let state = &harness.state().view;
        assert!(state.shows_settings && state.earlier.is_shown == both, "{size:?}");
        if !both {
            // There is no room for both: the other one is back with its key.
            harness.key_press_modifiers(Modifiers::COMMAND, Key::H);
            harness.run();
            assert!(!harness.state().view.shows_settings);
            continue;
        }
        let rects: Vec<_> = ["Wednesday, September 30, 2026, 10:27 PM", "Continue", "Back to now", "Delete"]
            .into_iter()
            .map(|label| harness.get_by_label(label).rect())
            .collect();
        for (i, a) in rects.iter().enumerate() {
            assert!(rects[..i].iter().all(|b| !a.shrink(1.0).intersects(*b)), "{rects:?}");
        }
    }
}

#[test]
fn the_overlay_shows_where_the_time_went_and_saves_it() {
    let mut shown = talking();
    shown.conversation.readings[Metric::VoiceToVoice as usize] = Reading::Live { ms: 412.0 };
    shown.conversation.readings[Metric::EndOfTurnWait as usize] = Reading::Final { ms: 58.0 };
    shown.conversation.readings[Metric::Encoder as usize] = Reading::Final { ms: 61.0 };
    shown.conversation.readings[Metric::Prefill as usize] = Reading::Stale { ms: 88.0, turn: 23 };
    shown.view.report_path = "turns.json".into();
    let mut harness = harness_of(shown, Theme::Dark, tokens::WINDOW);
    harness.run();
    harness.get_by_label("Latency").click();
    harness.run();
    harness.get_by_label("Text decoder: 62 ms");
    harness.get_by_label("412 …");
    // It stands below the header, beside what is said.
    let overlay = harness.get_by_role_and_label(Role::Window, "Latency").rect();
    for said in ["What is the capital of France?", "The capital of France is Paris.", "Settings", "Message"] {
        assert!(!overlay.intersects(harness.get_by_label(said).rect()), "{said} is covered");
    }
    harness.remove_cursor();
    harness.run();
    harness.snapshot("latency");
    harness.get_by_label("Save report").click();
    harness.run();
    let saved = |from| Request::SaveReport { from, path: "turns.json".into() };
    assert_eq!(harness.state().requests, [saved(0)]);
    // A recording takes what comes after it began.
    harness.get_by_label("Record").click();
    harness.run();
    harness.get_by_label("0 turns recorded");
    let mut records = harness.state().conversation.records.to_vec();
    records.push(record(24, 700.0));
    harness.state_mut().conversation.records = Arc::new(records);
    harness.run();
    harness.get_by_label("1 turn recorded");
    harness.get_by_label("Save report").click();
    harness.run();
    assert_eq!(harness.state().requests[1], saved(24));
}

#[test]
fn the_overlay_stays_where_it_is_put() {
    let mut shown = talking();
    shown.view.shows_latency = true;
    let mut harness = harness_of(shown, Theme::Dark, tokens::WINDOW);
    harness.run();
    let place = |harness: &Harness<'_, Shown>| harness.get_by_role_and_label(Role::Window, "Latency").rect();
    let before = place(&harness);
    assert_eq!(harness.state().view.latency_at, None);
    // Where nobody has put it, it keeps to the corner.
    harness.set_size(Vec2::new(1280.0, 800.0));
    harness.run();
    assert_eq!(place(&harness).right() - before.right(), 1280.0 - tokens::WINDOW[0]);
    let before = place(&harness);
    let grip = before.center_top() + Vec2::new(0.0, 16.0);
    harness.drag_at(grip);
    harness.run();
    harness.hover_at(grip - Vec2::new(200.0, -40.0));
    harness.run();
    harness.drop_at(grip - Vec2::new(200.0, -40.0));
    harness.run();
    let after = place(&harness);
    assert!((before.right() - after.right() - 200.0).abs() < 3.0, "{after:?}");
    let put = harness.state().view.latency_at.expect("it was put there");
    assert!((put[0] as f32 - after.right()).abs() < 2.0 && (put[1] as f32 - after.top()).abs() < 2.0);
    // It opens there the next time.
    let mut shown = talking();
    (shown.view.shows_latency, shown.view.latency_at) = (true, Some(put));
    let mut harness = harness_of(shown, Theme::Dark, [1280.0, 800.0]);
    harness.run();
    assert!((place(&harness).right() - after.right()).abs() < 2.0);
}

#[test]
fn a_typed_turn_has_no_rows_of_speech() {
    let mut shown = ready();
    shown.view.shows_latency = true;
    shown.conversation.activity = Activity::Thinking;
    shown.conversation.readings[Metric::TranscriptWait as usize] = Reading::Live { ms: 5000.0 };
    shown.conversation.readings[Metric::Prefill as usize] = Reading::Final { ms: 40.0 };
    shown.conversation.readings[Metric::FirstToken as usize] = Reading::Live { ms: 20.0 };
    let mut harness = harness(shown, Theme::Dark);
    harness.run();
    harness.get_by_label("First token");
    harness.get_by_label("20 …");
    assert!(harness.query_by_label("Transcript wait").is_none());
    assert!(harness.query_by_label("5000 …").is_none());
}

/// B36: what really runs, which need not be what was asked for.
#[test]
fn the_overlay_shows_what_computes() {
    let mut shown = talking();
    shown.view.shows_latency = true;
    let gpu = "A GPU; driver: Maker 550.1; Vulkan; kernels: plain f32";
    shown.setup.stages[1].computes = gpu.into();
    shown.setup.stages[2].computes = String::new();
    let mut harness = harness_of(shown, Theme::Dark, tokens::WINDOW);
    harness.run();
    harness.get_by_label("Speech recognition: cpu (avx512-vnni)");
    harness.get_by_label(&format!("Language model: {gpu}"));
    assert!(harness.query_by_label_contains("Voice: ").is_none(), "it is still being loaded");
}

#[test]
fn software_is_not_offered_as_a_gpu() {
    let mut shown = ready();
    let problem = "only a software renderer was found (llvmpipe); the CPU is faster";
    shown.view.choices.gpu_problem = Some(problem.into());
    shown.view.shows_settings = true;
    let mut harness = harness(shown, Theme::Dark);
    harness.run();
    harness.get_by_role_and_label(Role::ComboBox, "Language model runs on").click();
    harness.run();
    assert!(!harness.get_by_role_and_label(Role::Button, "Processor").accesskit_node().is_disabled());
    assert!(harness.get_by_label("GPU (wgpu)").accesskit_node().is_disabled());
    harness.get_by_label(problem);
    harness.get_by_label("GPU (wgpu)").click();
    harness.run();
    assert!(harness.state().requests.is_empty());
}

#[test]
fn settings_are_changed_by_choosing() {
    let mut shown = ready();
    let choice = |id: &str, problem: Option<&str>| Choice {
        id: id.into(),
        name: id.into(),
        problem: problem.map(str::to_owned),
    };
    shown.view.choices = Choices {
        stt: vec![
            choice("whisper-base", None),
            choice("whisper-tiny.en", None),
            choice("whisper-small", Some("not here yet")),
        ],
        llm: vec![choice("qwen2.5-coder-0.5b", None)],
        voices: vec![choice("af_heart", None), choice("bm_george", None)],
        inputs: vec![choice("headset", None)],
        outputs: vec![],
        gpu_problem: None,
    };
    let mut harness = harness(shown, Theme::Dark);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Comma);
    harness.run();
    harness.snapshot("settings");
    harness.get_by_label("Headphones").click();
    harness.run();
    let with = Settings { headphones: true, ..Settings::default() };
    assert_eq!(harness.state().requests, [Request::Tell(Command::Set(Box::new(with)))]);
    harness.state_mut().requests.clear();
    harness.get_by_role_and_label(Role::ComboBox, "Speech recognition").click();
    harness.run();
    assert!(harness.get_by_label("whisper-small").accesskit_node().is_disabled());
    harness.get_by_label("whisper-tiny.en").click();
    harness.run();
    let with = Settings { stt: "whisper-tiny.en".into(), ..Settings::default() };
    assert_eq!(harness.state().requests, [Request::Tell(Command::Set(Box::new(with)))]);
}

#[test]
fn push_to_talk_follows_button_and_space_bar() {
    let mut shown = ready();
    shown.setup.settings.listening = Listening::WhileKeyDown;
    shown.conversation.microphone = MicrophoneState::KeyUp;
    let mut harness = harness(shown, Theme::Dark);
    harness.run();
    harness.key_down(Key::Space);
    harness.run();
    harness.key_up(Key::Space);
    harness.run();
    use repartee_engine::turn::pipeline::Key::{Down, Up};
    let told = [Down, Up].map(|key| Request::Tell(Command::TalkKey(key)));
    assert_eq!(harness.state().requests, told);
    // Held over several frames, the button is pressed once.
    harness.state_mut().requests.clear();
    let button = harness.get_by_role_and_label(Role::Button, "Hold to talk").rect().center();
    harness.drag_at(button);
    harness.run_steps(4);
    assert_eq!(harness.state().requests, told[..1]);
    // What the press brings about, and a hand that is not still, do not let it go.
    harness.state_mut().conversation.microphone = MicrophoneState::Open;
    harness.state_mut().conversation.activity = Activity::Listening;
    harness.run_steps(2);
    harness.hover_at(button + Vec2::new(300.0, -40.0));
    harness.run_steps(100);
    assert_eq!(harness.state().requests, told[..1]);
    harness.drop_at(button);
    harness.run_steps(2);
    assert_eq!(harness.state().requests, told);
}

#[test]
fn nothing_is_painted_again_while_nothing_changes() {
    let mut shown = talking();
    (shown.view.shows_settings, shown.view.shows_latency) = (true, true);
    shown.view.earlier.is_shown = true;
    for (what, shown) in [("idle", ready()), ("talking", talking()), ("all panels", shown)] {
        let mut harness = harness(shown, Theme::Dark);
        harness.run();
        let painted = harness.state().painted;
        // Time passes, and nothing is asked for.
        harness.step();
        let delay = harness.output().viewport_output.values().map(|v| v.repaint_delay).min();
        assert!(delay.is_none_or(|delay| delay > std::time::Duration::from_secs(60)), "{what}: {delay:?}");
        let steps = harness.run();
        assert!(steps <= 1, "{what}: {steps} frames");
        assert!(harness.state().painted - painted <= 2, "{what}");
    }
}
