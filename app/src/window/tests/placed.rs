//! Where things are, and that they stay there: no event comes to put a frame right, and no message pushes a button away.

use eframe::egui::Rect;
use repartee_engine::turn::pipeline::Notice;

use super::*;

/// More than a window holds.
fn long() -> Shown {
    let mut shown = ready();
    let entries = (1..20).map(|turn| entry(turn, "And then?", &format!("Then came number {turn}.")));
    shown.conversation.entries = Arc::new(entries.collect());
    shown
}

fn rect(harness: &Harness<'_, Shown>, label: &str) -> Rect {
    harness.get_by_label(label).rect()
}

fn take(harness: &mut Harness<'_, Shown>) -> Vec<Request> {
    std::mem::take(&mut harness.state_mut().requests)
}

fn tell(shown: &mut Shown, text: &str) {
    let mut notices = shown.conversation.notices.to_vec();
    let number = notices.len() as u64 + 1;
    notices.push(Notice { number, kind: NoticeKind::Sound, text: text.into() });
    shown.conversation.notices = Arc::new(notices);
}

const DEAF: &str = "Plug one in, choose one in the settings, or type below.";

#[test]
fn what_comes_or_goes_is_laid_out_in_the_same_frame() {
    // An empty conversation gives way to one that is held at its end.
    let mut harness = harness(ready(), Theme::Dark);
    harness.run();
    harness.state_mut().conversation = long().conversation;
    harness.run();
    let check = |harness: &mut Harness<'_, Shown>, last: &str, others: &[&str]| {
        // As a wake of the conversation does it: one frame, and no event.
        harness.step();
        let mut all = vec!["Settings", last];
        all.extend(others);
        all.push("Message");
        let rects: Vec<Rect> = all.iter().map(|label| rect(harness, label)).collect();
        for (upper, lower) in rects.iter().zip(&rects[1..]) {
            assert!(upper.bottom() <= lower.top(), "{all:?}: {rects:?}");
        }
        harness.run();
        let later: Vec<Rect> = all.iter().map(|label| rect(harness, label)).collect();
        assert_eq!(rects, later, "{all:?}");
    };
    harness.state_mut().conversation.microphone = MicrophoneState::Missing;
    check(&mut harness, "Then came number 19.", &[DEAF]);
    tell(harness.state_mut(), "no speaker");
    check(&mut harness, "Then came number 19.", &[DEAF, "no speaker"]);
    let mut entries = harness.state().conversation.entries.to_vec();
    entries.push(entry(20, "And then?", &"Then came a long story. ".repeat(20)));
    entries.push(entry(21, "And then?", "Then it ended."));
    harness.state_mut().conversation.entries = Arc::new(entries);
    check(&mut harness, "Then it ended.", &[DEAF, "no speaker"]);
    harness.state_mut().conversation.microphone = MicrophoneState::Open;
    harness.state_mut().conversation.notices = Arc::default();
    check(&mut harness, "Then it ended.", &[]);
}

#[test]
fn a_message_moves_no_button() {
    for size in [tokens::WINDOW, [900.0, 640.0], tokens::SMALLEST_WINDOW] {
        let mut shown = talking();
        shown.view.shows_latency = true;
        let mut harness = harness_of(shown, Theme::Dark, size);
        harness.run();
        let buttons = ["Settings", "New", "Record", "Send", "Stop", "Mute"];
        let places = |harness: &Harness<'_, Shown>| {
            let overlay = harness.get_by_role_and_label(Role::Window, "Latency").rect();
            (overlay.right_top(), buttons.map(|label| rect(harness, label)))
        };
        let before = places(&harness);
        harness.state_mut().conversation.microphone = MicrophoneState::NoSignal;
        harness.state_mut().conversation.activity = Activity::Speaking;
        tell(harness.state_mut(), "the speaker was lost");
        harness.run();
        let after = places(&harness);
        assert_eq!(before.0, after.0, "{size:?}");
        let small = size == tokens::SMALLEST_WINDOW;
        for (i, label) in buttons.iter().enumerate().filter(|(_, label)| !small || **label != "Record") {
            assert_eq!(before.1[i], after.1[i], "{label} at {size:?}");
        }
        // Nor does a second one move the button of the first.
        let first = rect(&harness, "Dismiss");
        tell(harness.state_mut(), "the microphone was lost");
        harness.run();
        let lowest = harness.get_all_by_label("Dismiss").map(|button| button.rect());
        let lowest = lowest.max_by(|a, b| a.top().total_cmp(&b.top()));
        assert_eq!(lowest, Some(first), "{size:?}");
    }
}

#[test]
fn a_slider_is_sent_when_it_is_let_go_while_a_text_has_the_focus() {
    let mut shown = ready();
    (shown.view.shows_settings, shown.view.draft) = (true, "Not sent".into());
    let mut harness = harness_of(shown, Theme::Dark, [1120.0, 1100.0]);
    harness.run();
    harness.get_by_role_and_label(Role::TextInput, "Message").focus();
    harness.run();
    let slider = harness.get_by_role_and_label(Role::Slider, "Speed").rect();
    harness.drag_at(slider.center());
    harness.run();
    harness.hover_at(slider.center() + Vec2::new(20.0, 0.0));
    harness.run();
    assert!(harness.get_by_role_and_label(Role::TextInput, "Message").is_focused());
    assert_eq!(take(&mut harness), [], "it is under way");
    harness.drop_at(slider.center() + Vec2::new(20.0, 0.0));
    harness.run();
    let sent = |requests: &[Request]| match requests {
        [Request::Tell(Command::Set(settings))] => Settings::clone(settings),
        other => panic!("{other:?}"),
    };
    assert!(sent(&take(&mut harness)).speed > 1.05);
    // By the keyboard.
    harness.get_by_role_and_label(Role::Slider, "Silence that ends a turn").focus();
    harness.run();
    harness.key_press(Key::ArrowRight);
    harness.run();
    assert!(sent(&take(&mut harness)).end_of_turn > Settings::default().end_of_turn);
    // What is typed is sent when the settings are closed too.
    harness.get_by_role_and_label(Role::MultilineTextInput, "Instructions").focus();
    harness.run();
    harness.get_by_role_and_label(Role::MultilineTextInput, "Instructions").type_text("Rhyme.");
    harness.run();
    assert_eq!(take(&mut harness), [], "it is under way");
    harness.get_by_role_and_label(Role::Button, "Settings").click();
    harness.run();
    assert_eq!(sent(&take(&mut harness)).instructions.as_deref(), Some("Rhyme."));
}

#[test]
fn a_microphone_that_comes_or_goes_takes_no_focus() {
    let mut harness = harness(ready(), Theme::Dark);
    harness.run();
    harness.get_by_role_and_label(Role::TextInput, "Message").focus();
    harness.run();
    for microphone in [MicrophoneState::Missing, MicrophoneState::Open] {
        harness.state_mut().conversation.microphone = microphone;
        harness.run();
        assert!(harness.get_by_role_and_label(Role::TextInput, "Message").is_focused(), "{microphone:?}");
        harness.get_by_role_and_label(Role::TextInput, "Message").type_text("a");
        harness.run();
    }
    assert_eq!(harness.state().view.draft, "aa");
}

#[test]
fn where_the_report_went_is_in_sight() {
    for size in [tokens::WINDOW, tokens::SMALLEST_WINDOW] {
        let mut shown = talking();
        shown.view.shows_latency = true;
        let mut harness = harness_of(shown, Theme::Dark, size);
        harness.run();
        let said = "Saved: 24 turns in C:/a-folder-with-a-rather-long-name/repartee-latency-2026-11-30.html";
        harness.state_mut().view.report_said = said.into();
        harness.step();
        let overlay = harness.get_by_role_and_label(Role::Window, "Latency").rect();
        let (text, button) = (rect(&harness, said), rect(&harness, "Save report"));
        assert!(
            overlay.contains_rect(text) && overlay.contains_rect(button),
            "{text:?} {button:?} {overlay:?}"
        );
        assert!(text.bottom() <= button.top(), "{text:?} {button:?}");
        assert!(button.bottom() < rect(&harness, "Message").top(), "{size:?}");
    }
}

#[test]
fn without_a_language_model_the_window_says_so_once_and_fetches_it() {
    let mut shown = ready();
    let reason = "`qwen2.5-coder-0.5b` is not here";
    shown.conversation.readiness[1] = Readiness::Failed(reason.into());
    shown.conversation.readiness[2] = Readiness::Failed("no voice".into());
    shown.setup.stages[1].readiness = Readiness::Failed(reason.into());
    shown.setup.stages[2].readiness = Readiness::Failed("no voice".into());
    shown.conversation.notices =
        Arc::new(vec![Notice { number: 1, kind: NoticeKind::Model, text: reason.into() }]);
    let mut harness = harness(shown, Theme::Dark);
    harness.run();
    harness.get_by_label("It cannot answer until the language model is here.");
    for wrong in ["Listening", "Say something.", "Answers come in writing."] {
        assert!(harness.query_by_label(wrong).is_none(), "{wrong}");
    }
    assert_eq!(harness.get_all_by_label_contains(reason).count(), 1);
    harness.get_by_role_and_label(Role::Button, "Fetch").click();
    harness.run();
    assert_eq!(take(&mut harness), [Request::Fetch]);
    // The same when something was said.
    harness.state_mut().conversation.entries = Arc::new(vec![entry(1, "Hello?", "")]);
    harness.run();
    harness.get_by_label("It cannot answer until the language model is here.");
    assert_eq!(harness.get_all_by_label_contains(reason).count(), 1);
    harness.get_by_role_and_label(Role::Button, "Fetch").click();
    harness.run();
    assert_eq!(take(&mut harness), [Request::Fetch]);
}

#[test]
fn who_speaks_or_types_sees_the_conversation_under_way() {
    let mut harness = harness(talking(), Theme::Dark);
    harness.run();
    let open = |harness: &mut Harness<'_, Shown>| {
        let which = Earlier {
            path: "a".into(),
            day: "Monday, November 30, 2026".into(),
            time: "3:27 PM".into(),
            first: "Hello".into(),
        };
        harness.state_mut().view.earlier.open = Some(Open { which, exchanges: Vec::new() });
        harness.run();
        assert!(harness.query_by_label("Was it always?").is_none());
    };
    open(&mut harness);
    harness.state_mut().conversation.user = "Was it always? And".into();
    harness.run();
    harness.get_by_label("Was it always? And");
    harness.state_mut().conversation.user = "Was it always?".into();
    harness.run();
    open(&mut harness);
    harness.get_by_role_and_label(Role::TextInput, "Message").focus();
    harness.run();
    harness.get_by_role_and_label(Role::TextInput, "Message").type_text("W");
    harness.run();
    harness.get_by_label("Was it always?");
}

#[test]
fn escape_closes_a_list_and_stops_no_reply() {
    let mut shown = talking();
    shown.view.shows_settings = true;
    let mut harness = harness(shown, Theme::Dark);
    harness.run();
    harness.get_by_role_and_label(Role::ComboBox, "Language model runs on").click();
    harness.run();
    harness.get_by_label("Processor");
    harness.key_press(Key::Escape);
    harness.run();
    assert!(harness.query_by_label("Processor").is_none());
    assert_eq!(take(&mut harness), []);
    harness.key_press(Key::Escape);
    harness.run();
    assert_eq!(take(&mut harness), [Request::Tell(Command::Stop)]);
}

#[test]
fn a_reply_that_was_stopped_keeps_its_words() {
    let mut shown = ready();
    let stopped = |turn, heard_bytes| {
        let mut entry = Entry::clone(&entry(turn, "Tell me more", "It began long ago."));
        (entry.reply.heard_bytes, entry.is_interrupted) = (heard_bytes, true);
        Arc::new(entry)
    };
    shown.conversation.entries = Arc::new(vec![stopped(1, 8), stopped(2, 0)]);
    let mut harness = harness(shown, Theme::Dark);
    harness.run();
    harness.get_by_label("You interrupted here.");
    harness.get_by_label("Stopped before it spoke.");
    assert_eq!(harness.get_all_by_label("It began long ago.").count(), 2);
}

#[test]
fn a_new_voice_says_when_it_speaks() {
    let mut shown = talking();
    shown.conversation.activity = Activity::Idle;
    shown.view.shows_settings = true;
    let mut harness = harness_of(shown, Theme::Dark, [1120.0, 1100.0]);
    harness.run();
    let later = "From the next reply on.";
    harness.state_mut().conversation.activity = Activity::Speaking;
    harness.run();
    assert!(harness.query_by_label(later).is_none());
    harness.state_mut().setup.settings.voice = "bm_george".into();
    harness.run();
    harness.get_by_label(later);
    harness.state_mut().conversation.activity = Activity::Idle;
    harness.run();
    assert!(harness.query_by_label(later).is_none());
}

#[test]
fn the_overlay_mixes_no_turns() {
    let mut shown = ready();
    shown.view.shows_latency = true;
    shown.conversation.records = Arc::new(vec![record(1, 1100.0)]);
    shown.conversation.readings[Metric::FirstToken as usize] = Reading::Final { ms: 0.2 };
    shown.conversation.readings[Metric::Encoder as usize] = Reading::Stale { ms: 777.0, turn: 1 };
    let mut harness = harness(shown, Theme::Dark);
    harness.run();
    harness.get_by_label("<1");
    assert!(harness.query_by_label("777").is_none());
}
