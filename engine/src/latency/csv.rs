//! CSV after RFC 4180: one line per turn, one column per metric.

use std::fmt::Write;

use super::{Metric, Report};

impl Report {
    /// The turns as CSV: `id,cancelled,cold,<metric>_ms...,transcript,reply`, CRLF lines, empty where
    /// nothing was measured.
    ///
    /// A text that a spreadsheet would run as a formula is preceded by an apostrophe.
    pub fn to_csv(&self) -> String {
        let mut csv = String::from("id,cancelled,cold");
        for metric in Metric::ALL {
            let _ = write!(csv, ",{}_ms", metric.info().name);
        }
        csv.push_str(",transcript,reply\r\n");
        for turn in &self.turns {
            let cold: Vec<_> = turn.cold.iter().map(|metric| metric.info().name).collect();
            let _ = write!(csv, "{},{},{}", turn.id, turn.cancelled, cold.join(" "));
            for metric in Metric::ALL {
                csv.push(',');
                if let Some(ms) = turn.duration_ms(metric) {
                    let _ = write!(csv, "{ms:.3}");
                }
            }
            let _ = write!(csv, ",{},{}\r\n", quoted(&turn.transcript), quoted(&turn.reply));
        }
        csv
    }
}

fn quoted(text: &str) -> String {
    // Some programs look behind white space and zero-width characters, and take full-width signs for plain ones.
    let shown = text.trim_start_matches(|c: char| {
        c == ' ' || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
    });
    let guard = if shown.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']) {
        "'"
    } else {
        ""
    };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report_with;

    #[test]
    fn one_line_per_turn_with_texts_quoted() {
        let mut report = report_with([120.0], &[]);
        report.turns.truncate(1);
        report.turns[0].transcript = "say \"hi\",\nplease".into();
        report.turns[0].reply = "=HYPERLINK(1)".into();
        let csv = report.to_csv();
        let (head, line) = csv.split_once("\r\n").unwrap();
        assert_eq!(head.split(',').count(), 3 + 12 + 2);
        assert!(head.starts_with("id,cancelled,cold,capture_ms,vad_ms,"), "{head}");
        assert!(line.starts_with("0,false,,10.000,,"), "{line}");
        assert!(line.ends_with(",120.000,\"say \"\"hi\"\",\nplease\",\"'=HYPERLINK(1)\"\r\n"), "{line}");
    }
    #[test]
    fn no_text_is_a_formula() {
        for text in ["=1", "+1", "-1", "@a", "\t=1", " =1", "\u{200b}=1", "＝1", "  ＋1"] {
            assert_eq!(super::quoted(text), format!("\"'{text}\""));
        }
        assert_eq!(super::quoted("a = b"), "\"a = b\"");
    }
}
