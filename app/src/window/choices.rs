//! What there is to choose from: models, voices, devices. Looked up beside the window's thread.

use repartee_audio::Direction;
use repartee_audio::devices;
use repartee_models::{ModelState, Role, Store};

use crate::commands::setup;

/// Something that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// What the settings keep.
    pub(super) id: String,
    /// What is shown.
    pub(super) name: String,
    /// Why it can't be chosen, where it can't.
    pub(super) problem: Option<String>,
}

/// All there is to choose from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choices {
    /// Recognisers.
    pub(super) stt: Vec<Choice>,
    /// Language models.
    pub(super) llm: Vec<Choice>,
    /// Voices.
    pub(super) voices: Vec<Choice>,
    /// Microphones, without the system's default.
    pub(super) inputs: Vec<Choice>,
    /// Speakers, without the system's default.
    pub(super) outputs: Vec<Choice>,
    /// Why the GPU can't be chosen, where it can't; `None` also where nobody has looked.
    pub(super) gpu_problem: Option<String>,
}

impl Choices {
    /// What the catalogue has, and whether it is here. Takes a moment: it asks the disk, the sound system and, where
    /// `asks_gpu`, the graphics drivers.
    pub(super) fn look_up(asks_gpu: bool) -> Self {
        let Ok(store) = Store::open() else { return Self::default() };
        let models = |role: Role, family: &str| -> Vec<Choice> {
            let of = store.catalogue().models().iter().filter(|m| m.role == role && m.family == family);
            of.map(|model| {
                let problem = (store.state(model) != ModelState::Present)
                    .then(|| format!("not here yet: run `repartee models fetch {}`", model.name));
                Choice { id: model.name.clone(), name: model.name.clone(), problem }
            })
            .collect()
        };
        let mut voices: Vec<Choice> = store
            .catalogue()
            .model("kokoro-voices")
            .map(|model| model.files.iter().filter_map(|file| voice(&file.name)).collect())
            .unwrap_or_default();
        voices.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            stt: models(Role::Stt, "whisper"),
            llm: models(Role::Llm, "llama"),
            voices,
            inputs: sound(Direction::Input),
            outputs: sound(Direction::Output),
            gpu_problem: asks_gpu.then(setup::gpu_problem).flatten(),
        }
    }
}

/// The devices for one direction.
fn sound(direction: Direction) -> Vec<Choice> {
    match devices::list(direction) {
        Ok(list) => list.into_iter().map(|d| Choice { id: d.id, name: d.name, problem: None }).collect(),
        Err(error) => {
            tracing::warn!(%error, "the system's sound can't be asked");
            Vec::new()
        }
    }
}

/// A voice's file as a choice: `bm_george.bin` is George, a British man.
fn voice(file: &str) -> Option<Choice> {
    let id = file.strip_suffix(".bin")?;
    let (kind, name) = id.split_once('_')?;
    let kind = match kind {
        "af" => "American woman",
        "am" => "American man",
        "bf" => "British woman",
        "bm" => "British man",
        _ => return None,
    };
    let mut letters = name.chars();
    let name: String = letters.next()?.to_uppercase().chain(letters).collect();
    Some(Choice { id: id.into(), name: format!("{name}, {kind}"), problem: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voices_are_named_as_people_would() {
        assert_eq!(voice("bm_george.bin").map(|c| c.name).as_deref(), Some("George, British man"));
        assert_eq!(voice("af_heart.bin").map(|c| c.id).as_deref(), Some("af_heart"));
        for other in ["jf_alpha.bin", "readme.md", "af_.bin", "x.bin"] {
            assert_eq!(voice(other), None, "{other}");
        }
    }

    #[test]
    fn the_default_models_and_all_english_voices_are_offered() {
        let choices = Choices::look_up(true);
        assert!(choices.stt.iter().any(|c| c.id == "whisper-base"));
        assert!(choices.llm.iter().any(|c| c.id == "qwen2.5-coder-0.5b"));
        assert_eq!(choices.voices.len(), 28);
        // Software that stands in for a GPU is none.
        if let Some(problem) = choices.gpu_problem {
            assert!(problem.contains("CPU") || problem.contains("GPU"), "{problem}");
        }
    }
}
