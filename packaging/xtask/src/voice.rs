//! `cargo xtask voice-to-voice`: how long a person waits for an answer, measured on recordings of microphone and speaker.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process::{self, Steps};
use crate::system::{self, Consent, Need};
use crate::{models, workspace};

/// Who asks what, when no recordings are given.
const QUESTIONS: [(&str, &str); 20] = [
    ("af_bella", "What is the capital of France?"),
    ("am_michael", "How long should I boil an egg?"),
    ("bf_emma", "What is the weather like today?"),
    ("bm_george", "Who wrote Romeo and Juliet?"),
    ("af_sarah", "How many days are in a year?"),
    ("am_adam", "What is the tallest mountain?"),
    ("af_nicole", "Can you recommend a good book to read?"),
    ("am_puck", "How do I get a red wine stain out of a shirt?"),
    ("bf_alice", "What should I cook for dinner?"),
    ("bm_daniel", "Why is the sky blue during the day?"),
    ("af_bella", "Tell me a fact about whales."),
    ("am_michael", "How far away is the moon from the earth?"),
    ("bf_emma", "What is a good name for a small dog?"),
    ("bm_george", "How do you say thank you in Spanish?"),
    ("af_sarah", "What can I do on a rainy afternoon with two children?"),
    ("am_adam", "Is it healthy to drink coffee?"),
    ("af_nicole", "What is the difference between a frog and a toad, in one sentence?"),
    ("am_puck", "How can I fall asleep faster at night?"),
    ("bf_alice", "What language do people speak in Brazil?"),
    ("bm_daniel", "When is the best time of the year to plant tomatoes?"),
];

/// Plays questions into a virtual microphone and says the median and the 95th percentile of the time from their last voiced
/// sample to the reply's first sample at the virtual speaker.
///
/// # Errors
/// If a step fails; the text names the command and what to do.
pub(crate) fn run(
    consent: Consent,
    questions: Option<PathBuf>,
    report: &Path,
    args: &[String],
) -> Result<()> {
    ensure!(cfg!(target_os = "linux"), "virtual sound devices are made on Linux only");
    // The tests run in their package's folder.
    let absolute =
        |path: &Path| env::current_dir().map(|folder| folder.join(path)).context("asking for the folder");
    let report = absolute(report)?;
    let mut steps = Steps::default();
    steps.step("system", || {
        system::provide_for_build(consent)?;
        let missing = system::provide(&[Need::PulseAudio], "Sound is measured on virtual devices", consent)?;
        ensure!(missing.is_empty(), "nothing can be measured without what is named above");
        Ok(())
    })?;
    steps.step("dependencies", workspace::fetch_dependencies)?;
    steps.step("build", || {
        let words = ["test", "--release", "--workspace", "--no-run", "--test", "live_sound"];
        process::run(&mut workspace::cargo(&words), "see the compiler's errors above")
    })?;
    steps.step("models", || models::fetch(&[], consent))?;
    let folder = match questions {
        Some(folder) => absolute(&folder)?,
        None => steps.step("questions", make_questions)?,
    };
    steps.step("voice to voice", || {
        let words = ["test", "--release", "--workspace", "--test", "live_sound"];
        let mut command = workspace::cargo(&words);
        command.args(["voice_to_voice", "--", "--exact", "--ignored", "--nocapture"]);
        command.env("REPARTEE_QUESTIONS", &folder).env("REPARTEE_REPORT", &report);
        command.env("REPARTEE_ARGS", args.join(" "));
        process::run(&mut command, "what the program said stands above")
    })
}

/// Has the program speak the questions, once: they are kept in the build's folder.
fn make_questions() -> Result<PathBuf> {
    let program = workspace::program()?;
    let folder = program.with_file_name("questions");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (i, (voice, text)) in QUESTIONS.iter().enumerate() {
        let path = folder.join(format!("q{:02}.wav", i + 1));
        if !path.exists() {
            let mut command = Command::new(&program);
            command.args(["say", text, "--voice", voice, "--output"]).arg(&path);
            process::run(&mut command, "see the error above")?;
        }
    }
    Ok(folder)
}
