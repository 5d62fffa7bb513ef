//! `settings.toml`: what differs from the defaults, so that better defaults of a later version come into force.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use repartee_engine::turn::Speculation;
use repartee_engine::turn::pipeline::Listening;
use serde::{Deserialize, Serialize};

use super::{Home, set_aside};
use crate::commands::setup::BackendName;
use crate::live::{DeviceChoice, Settings};
use crate::output;

/// How the window looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Look {
    /// As the system.
    #[default]
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

/// Everything that is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Saved {
    /// Of the conversation.
    pub(crate) settings: Settings,
    /// Of the window.
    pub(crate) look: Look,
    /// Whether the latency overlay is there.
    pub(crate) shows_latency: bool,
    /// Where the user has put its upper right corner, in points from the window's upper left.
    pub(crate) latency_at: Option<[i32; 2]>,
}

/// The file. Every value may be missing; what a later version adds is passed over.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, expecting = "settings")]
struct File {
    recogniser: Option<String>,
    language_model: Option<String>,
    voice: Option<String>,
    speed: Option<f32>,
    language: Option<String>,
    instructions: Option<String>,
    context_tokens: Option<usize>,
    reply_tokens: Option<usize>,
    temperature: Option<f32>,
    backends: Option<[String; 3]>,
    end_of_turn_ms: Option<u64>,
    speculation: Option<String>,
    listening: Option<String>,
    microphone: Option<String>,
    speaker: Option<String>,
    headphones: Option<bool>,
    look: Option<Look>,
    shows_latency: Option<bool>,
    latency_at: Option<[i32; 2]>,
}

const SPECULATIONS: [(&str, Speculation); 3] =
    [("off", Speculation::Off), ("transcript", Speculation::Transcript), ("reply", Speculation::Reply)];
const LISTENINGS: [(&str, Listening); 2] =
    [("always", Listening::Always), ("while_key_down", Listening::WhileKeyDown)];

fn name_of<T: PartialEq>(table: &[(&str, T)], value: &T) -> Option<String> {
    table.iter().find(|(_, known)| known == value).map(|(name, _)| (*name).to_owned())
}

fn of_name<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// In place of a device's id: none is to be used.
const OFF: &str = "off";

fn device(id: String) -> DeviceChoice {
    if id == OFF { DeviceChoice::Off } else { DeviceChoice::Device(id) }
}

/// No settings are larger.
const MAX_BYTES: u64 = 1 << 20;

/// The text of the settings. A device or a pipe holds none: it may have no end.
fn text_of(path: &Path) -> std::io::Result<String> {
    let refused = std::io::Error::other;
    if !std::fs::metadata(path)?.is_file() {
        return Err(refused("it is no file"));
    }
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(refused("it is too large"));
    }
    Ok(text)
}

impl Saved {
    /// What was kept, or the defaults; and what has to be said about the file.
    pub(crate) fn load(home: &Home) -> (Self, Option<String>) {
        let text = match text_of(&home.settings) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return (Self::default(), None),
            // The next change of a setting writes the file: what can't be read goes out of its way.
            Err(error) => return (Self::default(), Some(set_aside(&home.settings, &error))),
        };
        match toml::from_str::<File>(&text) {
            Ok(file) => (Self::from_file(file), None),
            Err(error) => {
                // The first line says what and where; the rest draws it.
                let reason = error.message().to_owned();
                (Self::default(), Some(set_aside(&home.settings, &reason)))
            }
        }
    }

    /// How the window is to look, for one that does not talk: it leaves the file alone.
    pub(crate) fn look(home: &Home) -> Look {
        let text = text_of(&home.settings).unwrap_or_default();
        toml::from_str::<File>(&text).ok().and_then(|file| file.look).unwrap_or_default()
    }

    /// Keeps it: the whole file or the old one.
    ///
    /// # Errors
    /// The folder or the file can't be written.
    pub(crate) fn store(&self, home: &Home) -> Result<()> {
        if let Some(folder) = home.settings.parent() {
            std::fs::create_dir_all(folder)?;
        }
        output::write(&home.settings, &toml::to_string_pretty(&self.to_file())?)
    }

    fn from_file(file: File) -> Self {
        let mut saved = Self::default();
        let settings = &mut saved.settings;
        fn put<T>(place: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *place = value;
            }
        }
        put(&mut settings.stt, file.recogniser);
        put(&mut settings.llm, file.language_model);
        put(&mut settings.voice, file.voice);
        put(&mut settings.speed, file.speed);
        put(&mut settings.language, file.language);
        settings.instructions = file.instructions;
        put(&mut settings.context, file.context_tokens);
        put(&mut settings.max_tokens, file.reply_tokens);
        put(&mut settings.temperature, file.temperature.filter(|t| (0.0..=5.0).contains(t)));
        if let Some(names) = file.backends {
            let parse = |name: &String| <BackendName as clap::ValueEnum>::from_str(name, true).ok();
            // One that this build has not is chosen anew.
            settings.backends = names.each_ref().map(|name| parse(name).unwrap_or(BackendName::Auto));
        }
        put(&mut settings.end_of_turn, file.end_of_turn_ms.map(Duration::from_millis));
        put(&mut settings.speculation, file.speculation.and_then(|name| of_name(&SPECULATIONS, &name)));
        put(&mut settings.listening, file.listening.and_then(|name| of_name(&LISTENINGS, &name)));
        put(&mut settings.input, file.microphone.map(device));
        put(&mut settings.output, file.speaker.map(device));
        put(&mut settings.headphones, file.headphones);
        put(&mut saved.look, file.look);
        put(&mut saved.shows_latency, file.shows_latency);
        saved.latency_at = file.latency_at;
        saved
    }

    fn to_file(&self) -> File {
        let (s, default) = (&self.settings, Self::default());
        let d = &default.settings;
        fn differing<T: PartialEq + Clone>(value: &T, default: &T) -> Option<T> {
            (value != default).then(|| value.clone())
        }
        let device = |choice: &DeviceChoice| match choice {
            DeviceChoice::Default => None,
            DeviceChoice::Off => Some(OFF.into()),
            DeviceChoice::Device(id) => Some(id.clone()),
        };
        let backend = |name: &BackendName| {
            clap::ValueEnum::to_possible_value(name)
                .map_or_else(|| "auto".into(), |v| v.get_name().to_owned())
        };
        File {
            recogniser: differing(&s.stt, &d.stt),
            language_model: differing(&s.llm, &d.llm),
            voice: differing(&s.voice, &d.voice),
            speed: differing(&s.speed, &d.speed),
            language: differing(&s.language, &d.language),
            instructions: s.instructions.clone(),
            context_tokens: differing(&s.context, &d.context),
            reply_tokens: differing(&s.max_tokens, &d.max_tokens),
            temperature: differing(&s.temperature, &d.temperature),
            backends: (s.backends != d.backends).then(|| s.backends.each_ref().map(backend)),
            end_of_turn_ms: differing(&s.end_of_turn, &d.end_of_turn)
                .and_then(|silence| u64::try_from(silence.as_millis()).ok()),
            speculation: differing(&s.speculation, &d.speculation).and_then(|v| name_of(&SPECULATIONS, &v)),
            // Muted is not kept: a program that hears nothing when it is started seems broken.
            listening: differing(&s.listening, &d.listening).and_then(|v| name_of(&LISTENINGS, &v)),
            microphone: device(&s.input),
            speaker: device(&s.output),
            headphones: differing(&s.headphones, &d.headphones),
            look: differing(&self.look, &default.look),
            shows_latency: differing(&self.shows_latency, &default.shows_latency),
            latency_at: self.latency_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::at(folder.path());
        (folder, home)
    }

    fn changed() -> Saved {
        let settings = Settings {
            stt: "whisper-tiny.en".into(),
            llm: "smollm2-135m".into(),
            voice: "bm_george:2+bf_emma".into(),
            speed: 1.25,
            language: "de".into(),
            instructions: Some("Speak \"plainly\".\n".into()),
            context: 2048,
            max_tokens: 99,
            temperature: 0.75,
            seed: 0,
            backends: [BackendName::Cpu, BackendName::Auto, BackendName::Cpu],
            end_of_turn: Duration::from_millis(650),
            speculation: Speculation::Transcript,
            listening: Listening::WhileKeyDown,
            input: DeviceChoice::Device("hw:1".into()),
            output: DeviceChoice::Off,
            headphones: true,
        };
        Saved { settings, look: Look::Dark, shows_latency: true, latency_at: Some([700, 60]) }
    }

    #[test]
    fn everything_comes_back_as_it_was() {
        let (_folder, home) = home();
        assert_eq!(Saved::load(&home), (Saved::default(), None));
        changed().store(&home).expect("a file");
        assert_eq!((Saved::load(&home), Saved::look(&home)), ((changed(), None), Look::Dark));
        std::fs::write(&home.settings, "look = 7").expect("a file");
        assert_eq!(Saved::look(&home), Look::System);
        assert!(home.settings.exists(), "the one that talks sets it aside");
    }

    #[test]
    fn only_what_differs_is_written() {
        let (_folder, home) = home();
        Saved::default().store(&home).expect("a file");
        assert_eq!(std::fs::read_to_string(&home.settings).expect("a file"), "");
        let muted = Settings { listening: Listening::Never, ..Settings::default() };
        Saved { settings: muted, ..Saved::default() }.store(&home).expect("a file");
        assert_eq!(std::fs::read_to_string(&home.settings).expect("a file"), "");
    }

    #[test]
    fn a_broken_file_is_kept_beside_and_said() {
        let (folder, home) = home();
        let utf16: Vec<u8> = "speed = 1.5".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let broken: [(&[u8], &str, &str); 3] = [
            (b"speed = \"fast\"", "settings.toml.bak", "f32"),
            (b"language = \"\xff\"", "settings.toml.bak.2", "UTF-8"),
            (&[&b"\xff\xfe"[..], &utf16].concat(), "settings.toml.bak.3", "UTF-8"),
        ];
        for (bytes, aside, reason) in broken {
            std::fs::write(&home.settings, bytes).expect("a file");
            let (saved, said) = Saved::load(&home);
            assert_eq!(saved, Saved::default());
            let said = said.expect("a word about it");
            assert!(said.contains(aside) && said.contains(reason), "{said}");
            assert_eq!(std::fs::read(folder.path().join(aside)).expect("a copy"), bytes);
            assert_eq!(Saved::load(&home), (Saved::default(), None));
            // What is kept from now on leaves the copies alone.
            changed().store(&home).expect("a file");
        }
        for (bytes, aside, _) in broken {
            assert_eq!(std::fs::read(folder.path().join(aside)).expect("a copy"), bytes, "{aside}");
        }
    }

    #[test]
    fn what_has_no_end_is_not_read() {
        let (folder, home) = home();
        std::fs::write(&home.settings, vec![b'\n'; MAX_BYTES as usize + 1]).expect("a file");
        let said = Saved::load(&home).1.expect("a word about it");
        assert!(said.contains("too large") && said.contains("settings.toml.bak"), "{said}");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/dev/zero", &home.settings).expect("a link");
            let said = Saved::load(&home).1.expect("a word about it");
            assert!(said.contains("it is no file"), "{said}");
            assert!(folder.path().join("settings.toml.bak.2").is_symlink(), "the link goes out of the way");
        }
    }

    #[test]
    fn what_a_later_version_adds_is_passed_over() {
        let (_folder, home) = home();
        let text = "voice = \"af_sky\"\nhologram = true\nspeculation = \"clairvoyance\"\ntemperature = -3.0\n\
                    backends = [\"cuda9\", \"cpu\", \"auto\"]\n";
        std::fs::write(&home.settings, text).expect("a file");
        let (saved, said) = Saved::load(&home);
        assert_eq!(said, None);
        assert_eq!(saved.settings.voice, "af_sky");
        assert_eq!(saved.settings.speculation, Speculation::default());
        assert_eq!(saved.settings.temperature, 0.0);
        assert_eq!(saved.settings.backends, [BackendName::Auto, BackendName::Cpu, BackendName::Auto]);
    }
}
