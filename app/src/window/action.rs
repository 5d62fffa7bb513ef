//! What the user can do, each with the words on its button and its key.

use eframe::egui::{Key, KeyboardShortcut, Modifiers};

/// Something that a button, a key or a menu does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Listen no more, or again.
    ToggleMute,
    /// Stop the reply.
    Stop,
    /// Send the text.
    Send,
    /// Begin a new conversation.
    NewConversation,
    /// Show or hide the list of earlier conversations.
    ToggleEarlier,
    /// Show or hide where the time goes.
    ToggleLatency,
    /// Show or hide the settings.
    ToggleSettings,
    /// Begin to record turns for a report, or stop.
    ToggleRecording,
    /// Write the report.
    SaveReport,
    /// Show which models are not here.
    Fetch,
    /// Take all notices away.
    DismissNotices,
    /// Close the window.
    Quit,
}

impl Action {
    /// All, in the order in which keys are looked at.
    pub(super) const ALL: [Self; 12] = [
        Self::ToggleMute,
        Self::Stop,
        Self::Send,
        Self::NewConversation,
        Self::ToggleEarlier,
        Self::ToggleLatency,
        Self::ToggleSettings,
        Self::ToggleRecording,
        Self::SaveReport,
        Self::Fetch,
        Self::DismissNotices,
        Self::Quit,
    ];

    /// The words on its button.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::ToggleMute => "Mute",
            Self::Stop => "Stop",
            Self::Send => "Send",
            Self::NewConversation => "New",
            Self::ToggleEarlier => "Earlier",
            Self::ToggleLatency => "Latency",
            Self::ToggleSettings => "Settings",
            Self::ToggleRecording => "Record",
            Self::SaveReport => "Save report",
            Self::Fetch => "Fetch",
            Self::DismissNotices => "Dismiss all",
            Self::Quit => "Quit",
        }
    }

    /// What it does, in a sentence.
    pub(super) fn hint(self) -> &'static str {
        match self {
            Self::ToggleMute => "Stop listening, or listen again",
            Self::Stop => "Stop the reply",
            Self::Send => "Send the text",
            Self::NewConversation => "Begin a new conversation",
            Self::ToggleEarlier => "Show what was said before, by date",
            Self::ToggleLatency => "Show where the time goes",
            Self::ToggleSettings => "Models, voice, speed, microphone and speaker",
            Self::ToggleRecording => {
                "Collect turns for the report: only those from now on, until it is pressed again. Without it, a report has all turns"
            }
            Self::SaveReport => "Write the recorded turns, or all of them, to a file",
            Self::Fetch => "Show which models are not here, and fetch them",
            Self::DismissNotices => "Take all these lines away",
            Self::Quit => "Close the window",
        }
    }

    /// Its key. [`Self::Send`] has the Enter of the text field.
    pub(super) fn shortcut(self) -> Option<KeyboardShortcut> {
        let command = |key| Some(KeyboardShortcut::new(Modifiers::COMMAND, key));
        match self {
            Self::ToggleMute => command(Key::M),
            Self::Stop => Some(KeyboardShortcut::new(Modifiers::NONE, Key::Escape)),
            Self::Send | Self::Fetch | Self::DismissNotices => None,
            Self::NewConversation => command(Key::N),
            Self::ToggleEarlier => command(Key::H),
            Self::ToggleLatency => command(Key::L),
            Self::ToggleSettings => command(Key::Comma),
            Self::ToggleRecording => command(Key::R),
            Self::SaveReport => command(Key::S),
            Self::Quit => command(Key::Q),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_actions_share_a_word_or_a_key() {
        let labels: HashSet<_> = Action::ALL.iter().map(|a| a.label()).collect();
        assert_eq!(labels.len(), Action::ALL.len());
        let keys: Vec<_> = Action::ALL.iter().filter_map(|a| a.shortcut()).collect();
        for (i, key) in keys.iter().enumerate() {
            assert!(!keys[..i].contains(key), "{key:?}");
        }
    }
}
