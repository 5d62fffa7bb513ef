//! Settings of the turn machine, each with its reason.

use super::Samples;
use super::endpoint::EndpointConfig;

/// What is made before the user has surely finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Speculation {
    /// Nothing: saves power, adds waiting, and every turn ends after the same silence, since its words are not known.
    Off,
    /// The transcript.
    Transcript,
    /// The transcript, and if that sounds finished the reply and its first clause's sound.
    #[default]
    Reply,
}

/// Whether reply and synthesis share a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Processors {
    /// They do: the reply rests until the first sound is out.
    #[default]
    Shared,
    /// They do not.
    Separate,
}

/// Settings of the turn machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TurnConfig {
    /// Thresholds of [`endpoint`](super::endpoint); its `hangover` is the silence after which a turn
    /// ends, by default 500 ms.
    pub endpoint: EndpointConfig,
    /// Silence after which a turn ends while a number is said or spelled, and while the transcript is not there yet.
    /// 950 ms: people leave up to 0.9 s between groups of digits, and the wait stays under a second.
    pub spelling_silence: Samples,
    /// Silence after which a turn ends though the words are clearly unfinished. 1.6 s: time to look up a word.
    pub unfinished_silence: Samples,
    /// Longest stretch of sound that is recognised in one piece; longer turns are joined from pieces. 28 s, as
    /// [`EndpointConfig::max_speech`].
    pub max_piece: Samples,
    /// What is said behind a longer pause in a turn is recognised on its own: of two sentences with two seconds between
    /// them, Whisper was seen to leave out the one or the other. 1 s: within less, the words before help with those behind.
    pub longest_pause: Samples,
    /// What is made before the user has finished.
    pub speculation: Speculation,
    /// Whether the reply yields to speech.
    pub processors: Processors,
    /// How far synthesis may be ahead of the loudspeaker, in samples of its rate. 240 000: 10 s at
    /// 24 kHz. More would be thrown away when interrupted.
    pub ahead_samples: u64,
}

impl Default for TurnConfig {
    fn default() -> Self {
        Self {
            endpoint: EndpointConfig::default(),
            spelling_silence: Samples::from_ms(950),
            unfinished_silence: Samples::from_ms(1_600),
            max_piece: Samples::from_ms(28_000),
            longest_pause: Samples::from_ms(1_000),
            speculation: Speculation::default(),
            processors: Processors::default(),
            ahead_samples: 240_000,
        }
    }
}
