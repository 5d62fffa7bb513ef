//! The one table of moments and metrics.

use serde::{Deserialize, Serialize};

/// A moment in a turn that some stage marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Mark {
    /// The last voiced sample of the user's speech at the microphone, by the sample clock.
    SpeechEnd,
    /// That sample left the ring and the resampler.
    SpeechEndCaptured,
    /// The VAD's score for the chunk with that sample was there.
    SpeechEndScored,
    /// The turn machine decided that the user has finished, or the text was sent.
    EndOfTurn,
    /// The recogniser took up the audio.
    EncoderStart,
    /// The audio encoder's output was there.
    EncoderEnd,
    /// The whole transcript was there.
    TranscriptReady,
    /// The language model took up the prompt.
    PrefillStart,
    /// The prompt's last token was processed.
    PrefillEnd,
    /// The first token of the reply was sampled.
    FirstToken,
    /// The first clause of the reply was handed to the synthesiser.
    FirstClause,
    /// The synthesiser's first chunk of sound was there.
    FirstChunk,
    /// The first chunk was released to the output (after the end of turn).
    Released,
    /// The first sample of the reply was at the output device.
    FirstSample,
}

impl Mark {
    /// Number of marks.
    pub const COUNT: usize = Self::FirstSample as usize + 1;
}

/// A stage of a turn, or the whole: the time from one [`Mark`] to another.
///
/// If the end lies before the start (a transcript that was ready before the turn ended), the metric
/// is 0: nobody waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(usize)]
#[allow(missing_docs)] // `info` says it all
pub enum Metric {
    Capture,
    Vad,
    EndOfTurnWait,
    Encoder,
    TextDecoder,
    TranscriptWait,
    Prefill,
    FirstToken,
    FirstClause,
    FirstChunk,
    OutputBuffer,
    VoiceToVoice,
}

/// What a [`Metric`] means. The unit of every metric is milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricInfo {
    /// Name in JSON and CSV.
    pub name: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// Where it starts.
    pub start: Mark,
    /// Where it ends.
    pub end: Mark,
    /// What the time contains.
    pub contains: &'static str,
    /// What it leaves out.
    pub excludes: &'static str,
}

impl Metric {
    /// All metrics in the order of a turn.
    pub const ALL: [Self; 12] = [
        Self::Capture,
        Self::Vad,
        Self::EndOfTurnWait,
        Self::Encoder,
        Self::TextDecoder,
        Self::TranscriptWait,
        Self::Prefill,
        Self::FirstToken,
        Self::FirstClause,
        Self::FirstChunk,
        Self::OutputBuffer,
        Self::VoiceToVoice,
    ];

    /// The stages: all metrics but the whole.
    pub fn stages() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|metric| *metric != Self::VoiceToVoice)
    }

    /// The table entry of this metric.
    pub fn info(self) -> &'static MetricInfo {
        &TABLE[self as usize]
    }
}

const TABLE: [MetricInfo; 12] = [
    MetricInfo {
        name: "capture",
        label: "Capture",
        start: Mark::SpeechEnd,
        end: Mark::SpeechEndCaptured,
        contains: "microphone buffer, ring, resampling to 16 kHz, echo canceller",
        excludes: "the sound's way to the microphone and the converter's own delay",
    },
    MetricInfo {
        name: "vad",
        label: "Voice activity",
        start: Mark::SpeechEndCaptured,
        end: Mark::SpeechEndScored,
        contains: "filling the 32 ms chunk that holds the last voiced sample, and its score",
        excludes: "the silence that is waited for",
    },
    MetricInfo {
        name: "end_of_turn_wait",
        label: "End-of-turn wait",
        start: Mark::SpeechEndScored,
        end: Mark::EndOfTurn,
        contains: "the silence after which the user counts as finished, longer after unfinished words",
        excludes: "nothing; transcription and reply run meanwhile",
    },
    MetricInfo {
        name: "encoder",
        label: "Audio encoder",
        start: Mark::EncoderStart,
        end: Mark::EncoderEnd,
        contains: "mel spectrogram and audio encoder of the attempt that was used",
        excludes: "attempts thrown away when speech went on",
    },
    MetricInfo {
        name: "text_decoder",
        label: "Text decoder",
        start: Mark::EncoderEnd,
        end: Mark::TranscriptReady,
        contains: "all tokens of the transcript, repeated passes included",
        excludes: "the encoder",
    },
    MetricInfo {
        name: "transcript_wait",
        label: "Transcript wait",
        start: Mark::EndOfTurn,
        end: Mark::TranscriptReady,
        contains: "time after the end of turn until the transcript was there; 0 if it was",
        excludes: "transcription that ran in the silence",
    },
    MetricInfo {
        name: "prefill",
        label: "Prompt",
        start: Mark::PrefillStart,
        end: Mark::PrefillEnd,
        contains: "the language model reading what was new in the prompt",
        excludes: "the part of the prompt that was already in the cache",
    },
    MetricInfo {
        name: "first_token",
        label: "First token",
        start: Mark::PrefillEnd,
        end: Mark::FirstToken,
        contains: "sampling the first token of the reply",
        excludes: "the prompt",
    },
    MetricInfo {
        name: "first_clause",
        label: "First clause",
        start: Mark::FirstToken,
        end: Mark::FirstClause,
        contains: "the tokens up to the end of the first clause",
        excludes: "the first token itself",
    },
    MetricInfo {
        name: "first_chunk",
        label: "First speech",
        start: Mark::FirstClause,
        end: Mark::FirstChunk,
        contains: "phonemes and synthesis of the first chunk of sound",
        excludes: "later chunks",
    },
    MetricInfo {
        name: "output_buffer",
        label: "Output buffer",
        start: Mark::Released,
        end: Mark::FirstSample,
        contains: "resampling, the output ring, the device's buffer as far as the system tells it",
        excludes: "the converter, the loudspeaker and the air; the hold until the end of turn",
    },
    MetricInfo {
        name: "voice_to_voice",
        label: "Voice to voice",
        start: Mark::SpeechEnd,
        end: Mark::FirstSample,
        contains: "last voiced sample at the microphone to first reply sample at the device, wait included",
        excludes: "the converters' own delay, the air",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_and_enum_agree() {
        for (index, metric) in Metric::ALL.into_iter().enumerate() {
            assert_eq!(metric as usize, index);
            let json = serde_json::to_string(&metric).unwrap();
            assert_eq!(json.trim_matches('"'), metric.info().name);
            assert!(metric.info().start < metric.info().end || metric == Metric::TranscriptWait);
            assert!(!metric.info().contains.is_empty() && !metric.info().excludes.is_empty());
        }
        assert_eq!(Metric::stages().count(), 11);
    }
}
