//! What the program does, in a word and a colour: told apart from how it is painted.

use eframe::egui::{Color32, Theme};
use repartee_engine::turn::machine::Activity;
use repartee_engine::turn::message::Stage;
use repartee_engine::turn::pipeline::{MicrophoneState, Readiness, Snapshot};

use super::tokens::palette;

/// What the lamp shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Models are being loaded; speech is heard already.
    Loading,
    /// It waits for the user to speak.
    Listening,
    /// The user speaks.
    Hearing,
    /// It understands or writes.
    Thinking,
    /// The reply is heard.
    Speaking,
    /// The user has switched the microphone off.
    Muted,
    /// Push to talk, and the key is up.
    KeyUp,
    /// There is no language model.
    CannotAnswer,
    /// The microphone gives zeros.
    NoSignal,
    /// There is no microphone.
    NoMicrophone,
}

impl Status {
    /// The status of a conversation.
    pub(super) fn of(conversation: &Snapshot) -> Self {
        match (conversation.activity, conversation.microphone) {
            (Activity::Speaking, _) => Self::Speaking,
            (Activity::Thinking, _) => Self::Thinking,
            // Whatever is heard or typed: nothing comes of it.
            _ if matches!(conversation.readiness(Stage::Reply), Readiness::Failed(_)) => Self::CannotAnswer,
            (_, MicrophoneState::Muted) => Self::Muted,
            (_, MicrophoneState::KeyUp) => Self::KeyUp,
            (_, MicrophoneState::NoSignal) => Self::NoSignal,
            (_, MicrophoneState::Missing) => Self::NoMicrophone,
            (Activity::Listening, MicrophoneState::Open) => Self::Hearing,
            (Activity::Idle, MicrophoneState::Open) => {
                let comes =
                    |readiness: &Readiness| matches!(readiness, Readiness::Loading | Readiness::Lost { .. });
                let loading = conversation.readiness.iter().any(comes);
                if loading { Self::Loading } else { Self::Listening }
            }
        }
    }

    /// In a word or two.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Loading => "Getting ready",
            Self::Listening => "Listening",
            Self::Hearing => "Hearing you",
            Self::Thinking => "Thinking",
            Self::Speaking => "Speaking",
            Self::Muted => "Muted",
            Self::KeyUp => "Hold to talk",
            Self::CannotAnswer => "No answers",
            Self::NoSignal => "No signal",
            Self::NoMicrophone => "No microphone",
        }
    }

    /// What the user may do about it, where there is something.
    pub(super) fn hint(self) -> Option<&'static str> {
        match self {
            Self::NoSignal => Some(
                "The microphone gives no sound at all: is it switched off, or is another one meant? Choose it in the settings.",
            ),
            Self::CannotAnswer => Some("It cannot answer until the language model is here."),
            Self::NoMicrophone => Some("Plug one in, choose one in the settings, or type below."),
            Self::KeyUp => Some("Hold the button, or the space bar, while you speak."),
            Self::Muted => Some("Nothing is heard until you switch the microphone on again."),
            _ => None,
        }
    }

    /// What it means, in a sentence.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Loading => {
                "Models are being loaded. You are heard already, and answered when they are there."
            }
            Self::Listening => "You are heard: just speak.",
            Self::Hearing => "You speak. The answer comes when you have been silent for a moment.",
            Self::Thinking => "An answer is being made.",
            Self::Speaking => "Speak into the answer, or press Stop, to interrupt it.",
            Self::Muted | Self::KeyUp | Self::CannotAnswer | Self::NoSignal | Self::NoMicrophone => {
                self.hint().unwrap_or_default()
            }
        }
    }

    /// The lamp's colour.
    pub(super) fn colour(self, theme: Theme) -> Color32 {
        let palette = palette(theme);
        match self {
            Self::Loading | Self::Thinking => palette.thinking,
            Self::Listening => palette.listening,
            Self::Hearing => palette.hearing,
            Self::Speaking => palette.speaking,
            Self::Muted | Self::KeyUp => palette.deaf,
            Self::CannotAnswer | Self::NoSignal | Self::NoMicrophone => palette.error,
        }
    }
}

/// What a stage does, for people.
pub(super) fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Transcribe => "Speech recognition",
        Stage::Reply => "Language model",
        Stage::Speak => "Voice",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_hear_is_said_unless_a_reply_is_under_way() {
        let ready = [const { Readiness::Ready }; 3];
        let of = |activity, microphone| {
            Status::of(&Snapshot { activity, microphone, readiness: ready.clone(), ..Snapshot::default() })
        };
        assert_eq!(of(Activity::Idle, MicrophoneState::Open), Status::Listening);
        assert_eq!(of(Activity::Listening, MicrophoneState::Open), Status::Hearing);
        assert_eq!(of(Activity::Listening, MicrophoneState::NoSignal), Status::NoSignal);
        assert_eq!(of(Activity::Idle, MicrophoneState::Missing), Status::NoMicrophone);
        assert_eq!(of(Activity::Thinking, MicrophoneState::Muted), Status::Thinking);
        assert_eq!(of(Activity::Speaking, MicrophoneState::KeyUp), Status::Speaking);
        assert_eq!(Status::of(&Snapshot::default()), Status::Loading);
        let mut mute = ready;
        mute[1] = Readiness::Failed("not here".into());
        assert_eq!(Status::of(&Snapshot { readiness: mute, ..Snapshot::default() }), Status::CannotAnswer);
    }
}
