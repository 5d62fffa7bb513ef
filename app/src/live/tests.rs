//! Devices that fail under a conversation, with real models on a real device of wgpu (software, where there is no GPU).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use repartee_engine::backends::Backend;
use repartee_engine::backends::wgpu::{Wgpu, WgpuOptions};
use repartee_engine::turn::message::Stage;
use repartee_engine::turn::pipeline::Readiness;

use super::*;
use crate::commands::setup::BackendName;

/// Models are loaded and software computes, on a machine that has other work too.
const LIMIT: Duration = Duration::from_secs(120);

/// A conversation without sound, and the GPUs that were opened for it.
pub(crate) struct Silent {
    pub(crate) live: Live,
    gpus: Arc<Mutex<Vec<Wgpu>>>,
}

/// Small models with room for a short talk.
pub(crate) fn small() -> Settings {
    Settings {
        stt: "whisper-tiny.en".into(),
        llm: "smollm2-135m".into(),
        instructions: Some("Be brief.".into()),
        context: 256,
        max_tokens: 8,
        backends: [BackendName::Cpu; 3],
        input: DeviceChoice::Off,
        output: DeviceChoice::Off,
        ..Settings::default()
    }
}

impl Silent {
    /// `None` as for [`setup::tests::gpu`].
    pub(crate) fn start(settings: Settings, options: WgpuOptions) -> Option<Self> {
        setup::tests::gpu(options.clone())?;
        let gpus: Arc<Mutex<Vec<Wgpu>>> = Arc::default();
        let opened = gpus.clone();
        let open = move |name| -> Result<Box<dyn Backend>> {
            if name != BackendName::Wgpu {
                return setup::backend(name);
            }
            let gpu = Wgpu::new(WgpuOptions { allow_software: true, ..options.clone() })?;
            opened.lock().unwrap_or_else(PoisonError::into_inner).push(gpu.clone());
            Ok(Box::new(gpu))
        };
        let live = Live::start_on(settings, &[], Box::new(|| {}), Box::new(open)).expect("it starts");
        Some(Self { live, gpus })
    }

    fn gpus(&self) -> Vec<Wgpu> {
        self.gpus.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for what has to come.
    pub(crate) fn wait_for(&self, what: &str, is_so: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let begun = Instant::now();
        loop {
            let snapshot = self.live.snapshot();
            if is_so(&snapshot) {
                return snapshot;
            }
            assert!(begun.elapsed() < LIMIT, "waited in vain for {what}: {snapshot:#?}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    fn ask(&self, question: &str) {
        self.live.send(Command::Type(question.into()));
    }

    /// Waits for answer `count`, and that nothing failed.
    pub(crate) fn answered(&self, count: usize) -> Snapshot {
        let snapshot = self.wait_for("an answer", |s| s.conversation.entries.len() >= count);
        let entries = &snapshot.conversation.entries;
        assert!(entries.iter().all(|entry| !entry.reply.text.is_empty()), "{entries:#?}");
        assert!(snapshot.conversation.notices.is_empty(), "{:?}", snapshot.conversation.notices);
        snapshot
    }
}

/// What computes a stage; empty while its model is loaded.
pub(crate) fn computes(snapshot: &Snapshot, stage: Stage) -> &str {
    &snapshot.setup.stages[stage as usize].backend
}

fn open_troubles(snapshot: &Snapshot) -> Vec<(About, Arc<str>)> {
    let open = snapshot.setup.troubles.iter().filter(|trouble| !trouble.is_over);
    open.map(|trouble| (trouble.about, trouble.text.clone())).collect()
}

/// B38: the first loss costs a moment, the second one the GPU; neither costs a question or the conversation.
#[test]
fn b38_a_lost_gpu_is_opened_again_and_then_given_up() {
    const GPU: BackendName = BackendName::Wgpu;
    // Two stages share it; the voice would take minutes where software computes.
    let settings = Settings { backends: [GPU, GPU, BackendName::Cpu], ..small() };
    let Some(silent) = Silent::start(settings, WgpuOptions::default()) else { return };
    silent.ask("My name is Ada.");
    let before = silent.answered(1);
    let on_gpu = |s: &Snapshot, stage| computes(s, stage).starts_with("wgpu (");
    assert!(on_gpu(&before, Stage::Transcribe) && on_gpu(&before, Stage::Reply), "{:?}", before.setup.stages);
    assert_eq!((silent.gpus().len(), open_troubles(&before)), (1, vec![]));

    silent.gpus()[0].lose();
    silent.ask("What is my name?");
    let after = silent.answered(2);
    assert_eq!(silent.gpus().len(), 2, "one more for both");
    assert!(on_gpu(&after, Stage::Reply));
    let [(About::Reopened, text)] = &open_troubles(&after)[..] else { panic!("{:?}", after.setup.troubles) };
    assert!(text.contains("was lost") && text.contains("opened again") && text.contains("driver"), "{text}");
    // Nobody spoke: that its model was lost too is known all the same.
    silent.wait_for("the recogniser", |s| on_gpu(s, Stage::Transcribe));

    silent.gpus()[1].lose();
    silent.ask("And my name again?");
    let last = silent.answered(3);
    silent.wait_for("the recogniser", |s| computes(s, Stage::Transcribe).starts_with("cpu ("));
    assert!(computes(&last, Stage::Reply).starts_with("cpu ("), "{:?}", last.setup.stages);
    assert_eq!(silent.gpus().len(), 2);
    let [(About::GivenUp, text)] = &open_troubles(&last)[..] else { panic!("{:?}", last.setup.troubles) };
    assert!(text.contains("the processor computes in its place") && text.contains("restart"), "{text}");
    assert_eq!(last.setup.settings.backends, [GPU, GPU, BackendName::Cpu], "the next start tries it again");
    let asked: Vec<&str> = last.conversation.entries.iter().map(|entry| &*entry.user).collect();
    assert_eq!(asked, ["My name is Ada.", "What is my name?", "And my name again?"]);
    assert_eq!(
        last.conversation.entries[..2],
        after.conversation.entries[..],
        "what was said stays as it was"
    );
}

#[test]
fn a_model_without_room_on_the_gpu_runs_on_the_processor() {
    let settings = Settings { backends: [BackendName::Cpu, BackendName::Wgpu, BackendName::Cpu], ..small() };
    let options = WgpuOptions { memory_bytes: Some(64 << 20), ..WgpuOptions::default() };
    let Some(silent) = Silent::start(settings, options) else { return };
    silent.ask("Hello.");
    let snapshot = silent.answered(1);
    assert!(computes(&snapshot, Stage::Reply).starts_with("cpu ("), "{:?}", snapshot.setup.stages);
    let troubles = open_troubles(&snapshot);
    let [(About::Room(Stage::Reply), text)] = &troubles[..] else { panic!("{troubles:?}") };
    assert!(text.starts_with("smollm2-135m (98.4 MB) has no room"), "{text}");
    assert!(text.contains("runs on the processor") && text.contains("needs another"), "{text}");
    // Another choice ends it.
    let settings = Settings { backends: [BackendName::Cpu; 3], ..snapshot.setup.settings.clone() };
    silent.live.send(Command::Set(Box::new(settings)));
    silent.wait_for("the end of it", |s| open_troubles(s).is_empty());
    silent.wait_for("the model", |s| *s.conversation.readiness(Stage::Reply) == Readiness::Ready);
}
