//! `repartee report`: latency reports shown, converted and compared.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use repartee_engine::latency::{Comparison, Report, Verdict, compare};

use crate::output::{self, Output};
use crate::printing::out;

/// What to do with reports written by `repartee talk --report`.
#[derive(Debug, Subcommand)]
pub(crate) enum ReportCommand {
    /// Print the statistics of a report; optionally write it as HTML or CSV
    Show {
        /// Report in JSON
        file: PathBuf,
        /// Also write a self-contained HTML page with plots
        #[arg(long, value_name = "OUT")]
        html: Option<PathBuf>,
        /// Also write the turns as CSV
        #[arg(long, value_name = "OUT")]
        csv: Option<PathBuf>,
    },
    /// Compare the second report with the first, stage by stage
    Compare {
        /// Report to compare with
        a: PathBuf,
        /// Report to judge
        b: PathBuf,
    },
}

/// Runs a report command and prints its tables to standard output.
///
/// # Errors
/// If a report cannot be read or an output cannot be written; the message names the file.
pub(crate) fn run(command: ReportCommand) -> anyhow::Result<()> {
    let read = |path: &PathBuf| Report::read(path).with_context(|| format!("report {}", path.display()));
    let mut written = Ok(());
    let text = match command {
        ReportCommand::Show { file, html, csv } => {
            let named = [("--html", &html), ("--csv", &csv)];
            let outputs: Vec<Output<'_>> = named
                .into_iter()
                .filter_map(|(option, path)| Some(Output { option, path: path.as_deref()? }))
                .collect();
            output::check(&[&file], &outputs)?;
            let report = read(&file)?;
            // Neither waits for the other, nor the table for both.
            let html = html.map(|path| output::write(&path, &report.to_html()));
            let csv = csv.map(|path| output::write(&path, &report.to_csv()));
            written = html.into_iter().chain(csv).collect();
            show(&report)
        }
        ReportCommand::Compare { a, b } => {
            let comparison = compare(&read(&a)?, &read(&b)?);
            anyhow::ensure!(
                !comparison.rows.is_empty(),
                "there is nothing to compare: {} and {} have no stage in common that was measured in a turn that was \
                 warm and not cancelled; record more turns",
                a.display(),
                b.display()
            );
            compared(&comparison)
        }
    };
    out!("{}", text.trim_end());
    written
}

/// Text from a file, fit for a terminal: an escape sequence in it stays harmless.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect()
}

/// The facts and statistics of `report` as aligned text.
pub(crate) fn show(report: &Report) -> String {
    let machine = &report.machine;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}, {} cores, {:.1} GiB, {} ({})",
        plain(&machine.cpu),
        machine.cores,
        machine.memory_bytes as f64 / f64::from(1u32 << 30),
        plain(&machine.os),
        plain(&machine.arch)
    );
    for (stage, config) in &report.config.stages {
        let _ = writeln!(text, "{}: {} on {}", plain(stage), plain(&config.model), plain(&config.backend));
    }
    for (name, value) in &report.config.settings {
        let _ = writeln!(text, "{} = {}", plain(name), plain(value));
    }
    let _ = writeln!(text, "{}, {} cancelled\n", turns(report.summary.turns), report.summary.cancelled);
    let mut table = Table::new(["", "", "count", "median ms", "p95 ms", "p99 ms"]);
    for (metric, summary) in &report.summary.metrics {
        for (state, stats) in [("warm", summary.warm), ("cold", summary.cold)] {
            if let Some(stats) = stats {
                table.row([
                    metric.info().label.into(),
                    state.into(),
                    stats.count.to_string(),
                    format!("{:.1}", stats.median_ms),
                    format!("{:.1}", stats.p95_ms),
                    format!("{:.1}", stats.p99_ms),
                ]);
            }
        }
    }
    text + &table.to_string()
}

fn turns(count: usize) -> String {
    if count == 1 { "1 turn".into() } else { format!("{count} turns") }
}

/// The rows of `comparison` as aligned text, with what to mind when reading them.
fn compared(comparison: &Comparison) -> String {
    let mut table = Table::new(["", "a ms", "b ms", "b - a", "b / a", "n", "p", ""]);
    for row in &comparison.rows {
        table.row([
            row.metric.info().label.into(),
            format!("{:.1}", row.a_ms),
            format!("{:.1}", row.b_ms),
            format!("{:+.1}", row.difference_ms()),
            row.ratio().map_or("-".into(), |ratio| format!("{ratio:.3}")),
            format!("{}/{}", row.counts.0, row.counts.1),
            format!("{:.3}", row.p),
            row.verdict.label().into(),
        ]);
    }
    let mut text = table.to_string();
    text.push_str("\nMedians of warm turns; p: how often equal runs differ as much (rank test).\n");
    if comparison.rows.iter().any(|row| row.verdict == Verdict::TooFew) {
        text.push_str("Fewer than five turns on a side tell nothing.\n");
    }
    for metric in &comparison.unmatched {
        let _ = writeln!(text, "{}: in one report only.", metric.info().label);
    }
    if comparison.other_machine {
        text.push_str("The reports come from different machines.\n");
    }
    text
}

/// Rows of cells, printed with the first column left-aligned and the others right-aligned.
struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    fn new(head: [&str; N]) -> Self {
        Self { rows: vec![head.map(String::from)] }
    }

    fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }
}

impl<const N: usize> std::fmt::Display for Table<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let widths: [usize; N] = std::array::from_fn(|column| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        });
        for row in &self.rows {
            let mut line = format!("{:<width$}", row[0], width = widths[0]);
            for (cell, width) in row.iter().zip(widths).skip(1) {
                let _ = write!(line, "  {cell:>width$}");
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use repartee_engine::latency::{Config, Machine, TurnRecord};

    use super::*;

    fn report(base_ms: f64) -> Report {
        let turns = (0..8u8).map(|i| TurnRecord {
            id: i.into(),
            cancelled: i == 7,
            cold: BTreeSet::new(),
            transcript: String::new(),
            reply: String::new(),
            stages: BTreeMap::new(),
            voice_to_voice_ms: Some(base_ms + f64::from(i)),
        });
        let machine = Machine { cpu: "bell\u{7}".into(), ..Machine::default() };
        Report::new(machine, Config::default(), turns.collect())
    }

    #[test]
    fn tables_are_aligned_and_free_of_control_characters() {
        let text = show(&report(700.0));
        assert!(!text.contains('\u{7}'));
        assert!(text.contains("8 turns, 1 cancelled"));
        let table: Vec<_> = text.lines().skip_while(|line| !line.contains("median")).collect();
        assert_eq!(table[1], "Voice to voice  warm      7      703.0   705.7   705.9");
        assert_eq!(table[0].len(), table[1].len());
    }

    #[test]
    fn comparison_names_what_changed() {
        let text = compared(&compare(&report(700.0), &report(650.0)));
        let row = text.lines().nth(1).unwrap();
        assert!(row.starts_with("Voice to voice  703.0  653.0  -50.0  0.929  7/7"), "{row}");
        assert!(row.ends_with("faster"), "{row}");
    }

    #[test]
    fn commands_read_and_write_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        output::write(&path("a.json"), &report(700.0).to_json().unwrap()).unwrap();
        let show = |file: &str| {
            run(ReportCommand::Show {
                file: path(file),
                html: Some(path("a.html")),
                csv: Some(path("a.csv")),
            })
        };
        show("a.json").unwrap();
        assert!(path("a.html").exists() && path("a.csv").exists());
        run(ReportCommand::Compare { a: path("a.json"), b: path("a.json") }).unwrap();
        let mut empty = report(1.0);
        empty.turns.clear();
        output::write(&path("none.json"), &empty.to_json().unwrap()).unwrap();
        let nothing = run(ReportCommand::Compare { a: path("a.json"), b: path("none.json") }).unwrap_err();
        assert!(nothing.to_string().contains("nothing to compare"), "{nothing}");
        let error = show("b.json").unwrap_err();
        assert!(format!("{error:#}").contains("b.json"));
    }
}
