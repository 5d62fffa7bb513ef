//! The settings of the window on a real conversation with real models.

use eframe::egui::{Theme, Vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use repartee_engine::backends::wgpu::WgpuOptions;
use repartee_engine::models::llama::Sampling;
use repartee_engine::stages::reply::Replier;
use repartee_engine::turn::history::History;
use repartee_engine::turn::message::{Exchange, Stage};

use super::super::view::{Request, View};
use super::*;
use crate::commands::setup::{self, BackendName};
use crate::live::tests::{Silent, computes, small};

/// A window with a conversation behind it.
struct Talking {
    view: View,
    silent: Silent,
}

fn window(silent: Silent) -> Harness<'static, Talking> {
    let show = |ui: &mut eframe::egui::Ui, talking: &mut Talking| {
        let snapshot = talking.silent.live.snapshot();
        for request in talking.view.show(ui, &snapshot) {
            match request {
                Request::Tell(command) => talking.silent.live.send(command),
                other => panic!("nobody asked for {other:?}"),
            }
        }
    };
    let builder = Harness::builder().with_size(Vec2::from(tokens::WINDOW)).with_theme(Theme::Dark);
    builder.build_ui_state(show, Talking { view: View::default(), silent })
}

/// A few frames: it may go on painting while something is under way.
fn paint(harness: &mut Harness<'static, Talking>) {
    harness.run_steps(4);
}

fn ask(harness: &mut Harness<'static, Talking>, question: &str) {
    harness.get_by_role_and_label(Role::TextInput, "Message").focus();
    paint(harness);
    harness.get_by_role_and_label(Role::TextInput, "Message").type_text(question);
    paint(harness);
    harness.key_press(Key::Enter);
    paint(harness);
}

/// Chooses what the language model runs on, and waits until it does.
fn run_on(harness: &mut Harness<'static, Talking>, shown: &str, device: &str) {
    harness.get_by_role_and_label(Role::ComboBox, "Language model runs on").click();
    paint(harness);
    harness.get_by_role_and_label(Role::Button, shown).click();
    paint(harness);
    harness.state().silent.wait_for(device, |s| computes(s, Stage::Reply).starts_with(device));
    paint(harness);
}

/// What a model that knows all of `entries` but the last one answers to that.
fn answer(replier: &mut Replier, entries: &[Arc<Entry>]) -> String {
    let mut history = History::new("Be brief.");
    let (last, before) = entries.split_last().expect("an entry");
    for entry in before {
        let (user, heard) = (entry.user.clone(), entry.reply.text.clone());
        history.remember(&Exchange { user, heard, interrupted: entry.is_interrupted });
    }
    // As in the pipeline: how many rows are computed at once may decide between two words that are equally likely.
    replier.forget();
    replier.prepare(&history, None).expect("room");
    let reply = replier.reply(&mut history, &last.user, &mut |_| {}, None);
    reply.expect("an answer").text.trim().to_owned()
}

fn replier(backend: BackendName) -> Replier {
    let (settings, backend) = (small(), setup::backend(backend).expect("a device"));
    let llama = setup::llama(&settings.llm, backend.as_ref(), settings.context).expect("a small model");
    Replier::new(llama, Sampling::default(), settings.max_tokens)
}

/// The reply moves to the GPU and back in the midst of a conversation, and each time the model knows what was said.
#[test]
fn a_conversation_goes_on_when_its_backend_is_changed_in_the_window() {
    let Some(silent) = Silent::start(small(), WgpuOptions::default()) else { return };
    let mut harness = window(silent);
    paint(&mut harness);
    ask(&mut harness, "My name is Ada.");
    harness.state().silent.answered(1);
    harness.get_by_label("Settings").click();
    paint(&mut harness);

    run_on(&mut harness, "GPU (wgpu)", "wgpu (");
    ask(&mut harness, "What is my name?");
    let snapshot = harness.state().silent.answered(2);
    assert!(computes(&snapshot, Stage::Reply).starts_with("wgpu ("), "{:?}", snapshot.setup.stages);

    // Asked while the model is still on its way.
    harness.get_by_role_and_label(Role::ComboBox, "Language model runs on").click();
    paint(&mut harness);
    harness.get_by_role_and_label(Role::Button, "Processor").click();
    paint(&mut harness);
    ask(&mut harness, "Say my name again.");
    let snapshot = harness.state().silent.answered(3);
    assert!(computes(&snapshot, Stage::Reply).starts_with("cpu ("), "{:?}", snapshot.setup.stages);

    let entries = &snapshot.conversation.entries;
    let asked: Vec<&str> = entries.iter().map(|entry| &*entry.user).collect();
    assert_eq!(asked, ["My name is Ada.", "What is my name?", "Say my name again."]);
    paint(&mut harness);
    for entry in entries.iter() {
        harness.get_by_label(&entry.user);
    }
    for (end, backend) in [(2, BackendName::Wgpu), (3, BackendName::Cpu)] {
        let (mut replier, said) = (replier(backend), &*entries[end - 1].reply.text);
        assert_eq!(answer(&mut replier, &entries[..end]), said, "answer {end}");
        assert_ne!(
            answer(&mut replier, &entries[end - 1..end]),
            said,
            "it shows whether the model knows the others"
        );
    }
}
