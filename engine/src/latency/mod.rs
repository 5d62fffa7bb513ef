//! Where the time of a turn goes: marks, the per-turn record, percentiles and reports.
//!
//! The pipeline marks moments ([`Mark`]) on a monotonic clock; a [`Metric`] is the time between two of
//! them, and its table entry says which, what that contains and what it leaves out. One struct, the
//! [`TurnRecord`], feeds overlay, log and report, so that they cannot disagree.
//!
//! ```
//! use repartee_engine::latency::{ManualClock, Mark, Metric, Recorder, Reading};
//! let clock = std::sync::Arc::new(ManualClock::default());
//! let mut recorder = Recorder::new(clock.clone());
//! let marks = recorder.begin(1);                       // clone it into each thread of the pipeline
//! marks.mark(Mark::SpeechEnd);
//! clock.advance_ms(640.0);
//! marks.mark(Mark::FirstSample);
//! let record = recorder.finish("What time is it?", "Noon.").unwrap();
//! assert_eq!(record.duration_ms(Metric::VoiceToVoice), Some(640.0));
//! ```
//!
//! - Marking is one atomic instruction: no lock, no allocation, from any thread.
//! - A speculative attempt that is thrown away takes its marks with it: each attempt has its own
//!   [`Marks`], so a late stage marks an object nobody reads any more.
//! - Warm and cold turns are summarised apart, cancelled turns are only counted.
//! - Reports: JSON ([`Report`], schema [`SCHEMA`]), CSV ([`Report::to_csv`]) and one HTML page that
//!   needs nothing else ([`Report::to_html`]); [`compare`] puts two reports side by side.
//!
//! Rejected: `tracing` spans as the source. They nest by thread, while a turn crosses threads and
//! overlaps with itself (the reply is made during the end-of-turn wait).

mod clock;
mod compare;
mod csv;
mod html;
mod machine;
mod metric;
mod record;
mod report;
mod stats;

pub use clock::{Clock, ManualClock, MonotonicClock};
pub use compare::{Comparison, ComparisonRow, Verdict, compare};
pub use machine::Machine;
pub use metric::{Mark, Metric, MetricInfo};
pub use record::{Marks, Reading, Recorder, Span, TurnRecord};
pub use report::{Config, MetricSummary, Report, ReportError, SCHEMA, StageConfig, Summary, summarise};
pub use stats::{Stats, percentile, rank_test};
