//! Round trips and hostile reports.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::Span;
use super::*;

/// Warm turns with the given voice to voice and a capture of 10 ms, then cold ones, then a cancelled one.
pub(in super::super) fn report_with(warm_ms: impl IntoIterator<Item = f64>, cold_ms: &[f64]) -> Report {
    let turn = |id: usize, ms: f64| TurnRecord {
        id: id as u64,
        cancelled: false,
        cold: BTreeSet::new(),
        transcript: "What is <b>this</b>?".into(),
        reply: "It's \"that\" & more.".into(),
        stages: BTreeMap::from([(Metric::Capture, Span { start_ms: 0.0, end_ms: 10.0 })]),
        voice_to_voice_ms: Some(ms),
    };
    let mut turns: Vec<_> = warm_ms.into_iter().enumerate().map(|(i, ms)| turn(i, ms)).collect();
    for ms in cold_ms {
        let mut cold = turn(turns.len(), *ms);
        cold.cold.insert(Metric::Encoder);
        turns.push(cold);
    }
    let mut cancelled = turn(turns.len(), 1e6);
    cancelled.cancelled = true;
    turns.push(cancelled);
    let config = Config {
        version: "0.1.0".into(),
        stages: BTreeMap::from([(
            "reply".into(),
            StageConfig { model: "smollm2".into(), backend: "cpu".into() },
        )]),
        settings: BTreeMap::from([("end_of_turn_silence_ms".into(), "500".into())]),
    };
    Report::new(Machine { cores: 2, ..Machine::default() }, config, turns)
}

#[test]
fn a_report_reads_back_as_it_was() {
    let report = report_with([700.0, 710.25, 690.0], &[2_000.0]);
    let json = report.to_json().unwrap();
    assert_eq!(Report::from_json(json.as_bytes()).unwrap(), report);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["schema"], SCHEMA);
    assert_eq!(value["turns"][0]["stages"]["capture"]["end_ms"], 10.0);
    assert_eq!(value["turns"][0]["voice_to_voice_ms"], 700.0);
    assert_eq!(value["turns"][3]["cold"][0], "encoder");
    assert_eq!(value["summary"]["metrics"]["voice_to_voice"]["warm"]["median_ms"], 700.0);
}

#[test]
fn warm_cold_and_cancelled_are_kept_apart() {
    let summary = report_with([100.0, 200.0], &[5_000.0]).summary;
    assert_eq!((summary.turns, summary.cancelled), (4, 1));
    let whole = &summary.metrics[&Metric::VoiceToVoice];
    let warm = whole.warm.unwrap();
    assert_eq!((warm.count, warm.median_ms), (2, 150.0));
    assert_eq!(whole.cold.unwrap().median_ms, 5_000.0);
    assert!(!summary.metrics.contains_key(&Metric::Prefill));
}

#[test]
fn a_report_is_read_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let report = report_with([1.0], &[]);
    let path = folder.path().join("r.json");
    std::fs::write(&path, report.to_json().unwrap()).unwrap();
    assert_eq!(Report::read(&path).unwrap(), report);
    let missing = folder.path().join("none").join("r.json");
    assert!(matches!(Report::read(&missing), Err(ReportError::File { .. })));
}

/// The JSON of a small report with one edit.
fn edited(from: &str, to: &str) -> Result<Report, ReportError> {
    let json = report_with([1.0], &[]).to_json().unwrap();
    assert!(json.contains(from), "{from}");
    Report::from_json(json.replacen(from, to, 1).as_bytes())
}

#[test]
fn hostile_reports_are_refused_with_the_reason() {
    let reason = |from: &str, to: &str| edited(from, to).unwrap_err().to_string();
    assert!(reason(SCHEMA, "repartee-latency/99").contains("latency/99\", this program reads"));
    assert!(reason("\"start_ms\": 0.0", "\"start_ms\": 11.0").contains("turn 0: capture from 11 to 10"));
    assert!(reason("\"end_ms\": 10.0", "\"end_ms\": 1e300").contains("turn 0: capture"));
    assert!(reason("\"end_ms\": 10.0", "\"end_ms\": 1e999").contains("number out of range"));
    assert!(reason("\"voice_to_voice_ms\": 1.0", "\"voice_to_voice_ms\": -1.0").contains("-1 ms"));
    assert!(reason("\"capture\"", "\"voice_to_voice\"").contains("is no stage"));
    assert!(reason("\"capture\"", "\"catpure\"").contains("unknown variant"));
    assert!(reason("\"turns\"", "\"tuns\"").contains("missing field"));
    for (json, words) in
        [("[]", "expected an object with a schema"), ("7", "expected an object with a schema")]
    {
        let text = Report::from_json(json.as_bytes()).unwrap_err().to_string();
        assert!(text.contains(words) && !text.contains("struct"), "{text}");
    }
    assert!(
        reason("\"capture\": {", "\"capture\": 3, \"x\": {")
            .contains("expected the start and end of a stage")
    );
    let long = format!("\"transcript\": \"{}", "x".repeat(MAX_TEXT_BYTES + 1));
    assert!(reason("\"transcript\": \"", &long).contains("text longer"));
    assert!(matches!(Report::from_json(b"[1, 2"), Err(ReportError::Malformed(_))));
    assert!(matches!(Report::from_json(b""), Err(ReportError::Malformed(_))));
    assert!(matches!(Report::from_json(&[b'['; 100_000]), Err(ReportError::Malformed(_))));
    let large = vec![b' '; MAX_FILE_BYTES as usize + 1];
    assert!(matches!(Report::from_json(&large), Err(ReportError::TooLarge)));
}

#[test]
fn a_summary_in_a_file_is_not_believed() {
    let report = edited("\"turns\": 2", "\"turns\": 77").unwrap();
    assert_eq!(report.summary.turns, 2);
}

proptest! {
    #[test]
    fn no_damage_panics(at in 0usize..600, byte in any::<u8>()) {
        let mut json = report_with([1.0], &[2.0]).to_json().unwrap().into_bytes();
        let at = at % json.len();
        json[at] = byte;
        if let Ok(report) = Report::from_json(&json) {
            report.to_html();
            report.to_csv();
        }
    }
}

#[test]
fn a_byte_order_mark_is_no_error() {
    let report = report_with([700.0], &[]);
    let json = [b"\xef\xbb\xbf".as_slice(), report.to_json().unwrap().as_bytes()].concat();
    assert_eq!(Report::from_json(&json).unwrap().turns.len(), report.turns.len());
}
