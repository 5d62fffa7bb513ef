//! The report: what was measured, with what, on which machine. Written and read as JSON.
//!
//! A report that comes from a file is hostile: its size, its number of turns, its texts and its numbers
//! are checked, and its summary is made anew from its turns rather than believed.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Machine, Metric, Stats, TurnRecord};

/// Name and version of the JSON layout. The number goes up when a field changes its meaning or a
/// metric its name.
pub const SCHEMA: &str = "repartee-latency/1";

const MAX_FILE_BYTES: u64 = 64 << 20;
const MAX_TURNS: usize = 100_000;
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Eleven days: beyond it a time is damage.
const MAX_MS: f64 = 1e9;

/// Why a report cannot be read or made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Larger than any real report.
    #[error("the report is larger than {} MiB", MAX_FILE_BYTES >> 20)]
    TooLarge,
    /// Not JSON, or JSON of another shape.
    #[error("not a latency report: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A report of another version. Use the program version that wrote it.
    #[error("the report has schema \"{found}\", this program reads \"{SCHEMA}\"")]
    Schema {
        /// The schema in the file, shortened.
        found: String,
    },
    /// A value that no measurement gives.
    #[error("turn {turn}: {reason}")]
    Implausible {
        /// Position of the turn in the file, from 0.
        turn: usize,
        /// Which value, and what it may be.
        reason: String,
    },
}

/// Which model on which backend serves a stage of the pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(expecting = "a model and its backend")]
pub struct StageConfig {
    /// Model and quantisation.
    pub model: String,
    /// What really runs it, for example `cpu (avx512-vnni)`.
    pub backend: String,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, expecting = "models and settings")]
pub struct Config {
    /// Version of the program.
    pub version: String,
    /// By stage: vad, transcribe, reply, speak.
    pub stages: BTreeMap<String, StageConfig>,
    /// Settings that the figures depend on, for example `end_of_turn_silence_ms`.
    pub settings: BTreeMap<String, String>,
}

/// Statistics of one metric over the turns that were not cancelled.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MetricSummary {
    /// Turns in which every stage had run before.
    pub warm: Option<Stats>,
    /// Turns in which some stage ran for the first time.
    pub cold: Option<Stats>,
}

/// Statistics of all turns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// All turns.
    pub turns: usize,
    /// Of these, how many were cancelled; they count in nothing below.
    pub cancelled: usize,
    /// By metric; without those that were never measured.
    pub metrics: BTreeMap<Metric, MetricSummary>,
}

/// Statistics of `turns`: warm and cold apart, cancelled turns only counted.
pub fn summarise(turns: &[TurnRecord]) -> Summary {
    let answered = || turns.iter().filter(|turn| !turn.cancelled);
    let mut metrics = BTreeMap::new();
    for metric in Metric::ALL {
        let of = |warm: bool| {
            let values: Vec<f64> = answered()
                .filter(|turn| turn.is_warm() == warm)
                .filter_map(|turn| turn.duration_ms(metric))
                .collect();
            Stats::of(&values)
        };
        let summary = MetricSummary { warm: of(true), cold: of(false) };
        if summary != MetricSummary::default() {
            metrics.insert(metric, summary);
        }
    }
    Summary { turns: turns.len(), cancelled: turns.len() - answered().count(), metrics }
}

/// A whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "a report")]
pub struct Report {
    schema: String,
    /// Where it was measured.
    pub machine: Machine,
    /// What was measured.
    pub config: Config,
    /// Every turn, in order.
    pub turns: Vec<TurnRecord>,
    /// Made from `turns`.
    #[serde(skip_deserializing)]
    pub summary: Summary,
}

impl Report {
    /// A report of `turns`, with its summary.
    pub fn new(machine: Machine, config: Config, turns: Vec<TurnRecord>) -> Self {
        let summary = summarise(&turns);
        Self { schema: SCHEMA.into(), machine, config, turns, summary }
    }

    /// Durations of `metric` in warm turns that were not cancelled, in order.
    pub fn warm_values(&self, metric: Metric) -> Vec<f64> {
        self.turns
            .iter()
            .filter(|turn| !turn.cancelled && turn.is_warm())
            .filter_map(|turn| turn.duration_ms(metric))
            .collect()
    }

    /// The report as JSON, indented, with a final newline.
    ///
    /// # Errors
    /// [`ReportError::Malformed`] if a time in `turns` is no number.
    pub fn to_json(&self) -> Result<String, ReportError> {
        let mut json = serde_json::to_string_pretty(self)?;
        json.push('\n');
        Ok(json)
    }

    /// Reads a report from JSON.
    ///
    /// # Errors
    /// [`ReportError::TooLarge`], [`ReportError::Malformed`], [`ReportError::Schema`] or
    /// [`ReportError::Implausible`].
    pub fn from_json(json: &[u8]) -> Result<Self, ReportError> {
        #[derive(Deserialize)]
        #[serde(expecting = "an object with a schema")]
        struct Head {
            schema: String,
        }
        if json.len() as u64 > MAX_FILE_BYTES {
            return Err(ReportError::TooLarge);
        }
        // A text editor may have put a byte order mark in front.
        let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
        // The version first: a later layout need not parse as this one.
        let head: Head = serde_json::from_slice(json)?;
        if head.schema != SCHEMA {
            return Err(ReportError::Schema { found: head.schema.chars().take(80).collect() });
        }
        let mut report: Self = serde_json::from_slice(json)?;
        check(&report.turns)?;
        report.summary = summarise(&report.turns);
        Ok(report)
    }

    /// Reads the report at `path`.
    ///
    /// # Errors
    /// [`ReportError::File`], else as [`from_json`](Self::from_json).
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let failed = |source| ReportError::File { path: path.to_path_buf(), source };
        let mut json = Vec::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut json).map_err(failed)?;
        Self::from_json(&json)
    }
}

fn check(turns: &[TurnRecord]) -> Result<(), ReportError> {
    if turns.len() > MAX_TURNS {
        return Err(ReportError::TooLarge);
    }
    for (position, turn) in turns.iter().enumerate() {
        let implausible = |reason: String| Err(ReportError::Implausible { turn: position, reason });
        if turn.transcript.len().max(turn.reply.len()) > MAX_TEXT_BYTES {
            return implausible(format!("a text longer than {MAX_TEXT_BYTES} bytes"));
        }
        for (metric, span) in &turn.stages {
            let name = metric.info().name;
            if *metric == Metric::VoiceToVoice {
                return implausible(format!("\"{name}\" is no stage"));
            }
            // Written so that no number fails too.
            if !(span.start_ms.abs() <= MAX_MS && span.end_ms.abs() <= MAX_MS && span.start_ms <= span.end_ms)
            {
                return implausible(format!("{name} from {} to {} ms", span.start_ms, span.end_ms));
            }
        }
        if let Some(ms) = turn.voice_to_voice_ms.filter(|ms| !(0.0..=MAX_MS).contains(ms)) {
            return implausible(format!("voice to voice of {ms} ms"));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "report_tests.rs"]
pub(super) mod tests;
