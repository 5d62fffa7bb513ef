//! The report as one HTML page: inline SVG, inline style, no script, nothing fetched.

use std::fmt::{Display, Formatter, Result as FmtResult, Write};

use super::{Metric, Report, Span, Stats, TurnRecord};

/// Turns listed one by one; the plots and the summary cover all.
const LISTED_TURNS: usize = 200;
const PLOT_WIDTH: f64 = 760.0;
const LABEL_WIDTH: f64 = 150.0;
const ROW_HEIGHT: f64 = 22.0;

/// Text that came from outside, escaped for element content and quoted attributes.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // Control characters are not allowed in HTML at all.
                c if c.is_control() && c != '\n' => f.write_char('\u{FFFD}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

const HEAD: &str = "<!doctype html>
<html lang=\"en\"><head><meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>Latency report</title>
<style>
:root{color-scheme:light dark;--bar:#3b76c4;--tail:#a9c6ec;--whole:#c2571a;--line:#8888;--ink:CanvasText}
body{font:15px/1.45 system-ui,sans-serif;max-width:960px;margin:2em auto;padding:0 1em}
table{border-collapse:collapse}th,td{padding:.2em .7em;text-align:right;border-bottom:1px solid var(--line)}
th:first-child,td.text{text-align:left}td.text{white-space:pre-wrap;max-width:26em}
svg{max-width:100%;height:auto}svg text{font-size:12px;fill:var(--ink)}
.bar{fill:var(--bar)}.tail{fill:var(--tail)}.whole{fill:var(--whole)}.axis{stroke:var(--line)}
.note{color:GrayText}
</style></head><body>
<h1>Latency report</h1>
";

impl Report {
    /// The report as a self-contained page: what ran where, the waterfall of the last answered turn,
    /// bars per stage, the distribution of voice to voice, all statistics, and the turns.
    pub fn to_html(&self) -> String {
        let mut page = String::from(HEAD);
        // Writing to a string cannot fail.
        let _ = self.write_page(&mut page);
        page
    }

    fn write_page(&self, page: &mut String) -> FmtResult {
        self.facts(page)?;
        let answered = || self.turns.iter().filter(|turn| !turn.cancelled);
        if let Some(last) = answered().next_back() {
            waterfall(page, last)?;
        }
        self.bars(page)?;
        distribution(page, &self.warm_values(Metric::VoiceToVoice))?;
        self.statistics(page)?;
        self.listing(page)?;
        page.write_str("</body></html>\n")
    }

    fn facts(&self, page: &mut String) -> FmtResult {
        let machine = &self.machine;
        let gib = machine.memory_bytes as f64 / f64::from(1u32 << 30);
        writeln!(
            page,
            "<p>{} &middot; {} cores &middot; {gib:.1} GiB &middot; {} &middot; {} &middot; version {}</p>",
            Escaped(&machine.cpu),
            machine.cores,
            Escaped(&machine.os),
            Escaped(&machine.arch),
            Escaped(&self.config.version),
        )?;
        let summary = &self.summary;
        writeln!(page, "<p>{} turns, {} of them cancelled</p>", summary.turns, summary.cancelled)?;
        if !self.config.stages.is_empty() {
            page.write_str("<table><tr><th>Stage</th><th>Model</th><th>Backend</th></tr>\n")?;
            for (stage, config) in &self.config.stages {
                writeln!(
                    page,
                    "<tr><td class=\"text\">{}</td><td>{}</td><td>{}</td></tr>",
                    Escaped(stage),
                    Escaped(&config.model),
                    Escaped(&config.backend)
                )?;
            }
            page.write_str("</table>\n")?;
        }
        if !self.config.settings.is_empty() {
            page.write_str("<p class=\"note\">")?;
            for (name, value) in &self.config.settings {
                write!(page, "{} = {}; ", Escaped(name), Escaped(value))?;
            }
            page.write_str("</p>\n")?;
        }
        Ok(())
    }

    /// Median and 95th percentile of each metric in warm turns.
    fn bars(&self, page: &mut String) -> FmtResult {
        let rows: Vec<(Metric, Stats)> = self
            .summary
            .metrics
            .iter()
            .filter_map(|(metric, summary)| Some((*metric, summary.warm?)))
            .collect();
        let Some(largest) = rows.iter().map(|(_, stats)| stats.p95_ms).reduce(f64::max) else {
            return Ok(());
        };
        let scale = Scale::new(0.0, largest);
        page.write_str("<h2>Stages, warm turns</h2>\n<p class=\"note\">dark: median, light: up to the 95th percentile</p>\n")?;
        open_svg(page, rows.len(), "median and 95th percentile of each stage")?;
        scale.axis(page, rows.len())?;
        for (row, (metric, stats)) in rows.iter().enumerate() {
            let hover = format!("{} to {:.1} ms", Ms(stats.median_ms), stats.p95_ms);
            scale.bar(page, row, "tail", 0.0, stats.p95_ms, &hover)?;
            scale.bar(page, row, class(*metric), 0.0, stats.median_ms, &hover)?;
            scale.label(page, row, *metric, stats.p95_ms, stats.median_ms)?;
        }
        page.write_str("</svg>\n")
    }

    fn statistics(&self, page: &mut String) -> FmtResult {
        page.write_str(
            "<h2>Statistics</h2>\n<table><tr><th>Metric</th><th></th><th>Count</th><th>Median</th>\
             <th>95 %</th><th>99 %</th></tr>\n",
        )?;
        for (metric, summary) in &self.summary.metrics {
            for (name, stats) in [("warm", summary.warm), ("cold", summary.cold)] {
                let Some(stats) = stats else { continue };
                let info = metric.info();
                writeln!(
                    page,
                    "<tr title=\"{}; without {}\"><td class=\"text\">{}</td><td>{name}</td><td>{}</td>\
                     <td>{}</td><td>{}</td><td>{}</td></tr>",
                    Escaped(info.contains),
                    Escaped(info.excludes),
                    Escaped(info.label),
                    stats.count,
                    Ms(stats.median_ms),
                    Ms(stats.p95_ms),
                    Ms(stats.p99_ms)
                )?;
            }
        }
        page.write_str("</table>\n<h2>What each metric contains</h2>\n<dl>\n")?;
        for metric in Metric::ALL {
            let info = metric.info();
            writeln!(
                page,
                "<dt>{}</dt><dd>{}. <span class=\"note\">Not contained: {}.</span></dd>",
                Escaped(info.label),
                Escaped(info.contains),
                Escaped(info.excludes)
            )?;
        }
        page.write_str("</dl>\n")
    }

    fn listing(&self, page: &mut String) -> FmtResult {
        let first = self.turns.len().saturating_sub(LISTED_TURNS);
        page.write_str("<h2>Turns</h2>\n")?;
        if first > 0 {
            writeln!(page, "<p class=\"note\">the last {LISTED_TURNS} of {}</p>", self.turns.len())?;
        }
        page.write_str(
            "<table><tr><th>Turn</th><th>Voice to voice</th><th></th><th>Heard</th><th>Said</th></tr>\n",
        )?;
        for turn in &self.turns[first..] {
            let state = match (turn.cancelled, turn.is_warm()) {
                (true, _) => "cancelled",
                (false, true) => "",
                (false, false) => "cold",
            };
            write!(page, "<tr><td>{}</td><td>", turn.id)?;
            if let Some(ms) = turn.voice_to_voice_ms {
                write!(page, "{}", Ms(ms))?;
            }
            writeln!(
                page,
                "</td><td>{state}</td><td class=\"text\">{}</td><td class=\"text\">{}</td></tr>",
                Escaped(&turn.transcript),
                Escaped(&turn.reply)
            )?;
        }
        page.write_str("</table>\n")
    }
}

/// Milliseconds for people.
struct Ms(f64);

impl Display for Ms {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        if self.0.abs() < 10.0 { write!(f, "{:.2} ms", self.0) } else { write!(f, "{:.0} ms", self.0) }
    }
}

fn class(metric: Metric) -> &'static str {
    if metric == Metric::VoiceToVoice { "whole" } else { "bar" }
}

fn open_svg(page: &mut String, rows: usize, description: &str) -> FmtResult {
    let height = (rows as f64 + 1.0) * ROW_HEIGHT;
    writeln!(
        page,
        "<svg viewBox=\"0 0 {PLOT_WIDTH} {height}\" width=\"{PLOT_WIDTH}\" role=\"img\" aria-label=\"{description}\">"
    )
}

/// Milliseconds to pixels.
struct Scale {
    from_ms: f64,
    to_ms: f64,
}

impl Scale {
    fn new(from_ms: f64, to_ms: f64) -> Self {
        Self { from_ms, to_ms: to_ms.max(from_ms + 1e-3) }
    }

    fn x(&self, ms: f64) -> f64 {
        // Room for the figure behind the longest bar.
        let room = PLOT_WIDTH - LABEL_WIDTH - 110.0;
        LABEL_WIDTH + (ms - self.from_ms) / (self.to_ms - self.from_ms) * room
    }

    fn axis(&self, page: &mut String, rows: usize) -> FmtResult {
        let bottom = rows as f64 * ROW_HEIGHT;
        let step = round_step((self.to_ms - self.from_ms) / 6.0);
        let mut tick = (self.from_ms / step).ceil() * step;
        while tick <= self.to_ms {
            let x = self.x(tick);
            writeln!(
                page,
                "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{bottom}\"/>\
                 <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{tick}</text>",
                bottom + 16.0
            )?;
            tick += step;
        }
        Ok(())
    }

    fn bar(
        &self,
        page: &mut String,
        row: usize,
        class: &str,
        start_ms: f64,
        end_ms: f64,
        hover: &str,
    ) -> FmtResult {
        let (x, end) = (self.x(start_ms), self.x(end_ms));
        writeln!(
            page,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.0}\" width=\"{:.1}\" height=\"16\"><title>{}</title></rect>",
            row as f64 * ROW_HEIGHT + 3.0,
            // A stage of no time is still visible.
            (end - x).max(1.0),
            Escaped(hover)
        )
    }

    /// The metric's name before its row, and `value_ms` behind the bar that ends at `end_ms`.
    fn label(&self, page: &mut String, row: usize, metric: Metric, end_ms: f64, value_ms: f64) -> FmtResult {
        let y = row as f64 * ROW_HEIGHT + 15.0;
        writeln!(
            page,
            "<text x=\"{:.0}\" y=\"{y}\" text-anchor=\"end\">{}</text><text x=\"{:.1}\" y=\"{y}\">{}</text>",
            LABEL_WIDTH - 8.0,
            Escaped(metric.info().label),
            self.x(end_ms) + 5.0,
            Ms(value_ms)
        )
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|m| m * power).find(|s| *s >= step).unwrap_or(10.0 * power)
}

fn waterfall(page: &mut String, turn: &TurnRecord) -> FmtResult {
    let mut rows: Vec<(Metric, Span)> = turn.stages.iter().map(|(metric, span)| (*metric, *span)).collect();
    if let Some(end_ms) = turn.voice_to_voice_ms {
        rows.push((Metric::VoiceToVoice, Span { start_ms: 0.0, end_ms }));
    }
    let Some(end) = rows.iter().map(|(_, span)| span.end_ms).reduce(f64::max) else {
        return Ok(());
    };
    let start = rows.iter().map(|(_, span)| span.start_ms).fold(0.0, f64::min);
    writeln!(
        page,
        "<h2>Turn {}</h2>\n<p class=\"note\">milliseconds after the last voiced sample</p>",
        turn.id
    )?;
    open_svg(page, rows.len(), "waterfall of the last turn")?;
    let scale = Scale::new(start, end);
    scale.axis(page, rows.len())?;
    for (row, (metric, span)) in rows.iter().enumerate() {
        let info = metric.info();
        let hover = format!("{}: {}; without {}", Ms(span.duration_ms()), info.contains, info.excludes);
        scale.bar(page, row, class(*metric), span.start_ms, span.end_ms, &hover)?;
        scale.label(page, row, *metric, span.end_ms, span.duration_ms())?;
    }
    page.write_str("</svg>\n")
}

/// Histogram of voice to voice in warm turns.
fn distribution(page: &mut String, values_ms: &[f64]) -> FmtResult {
    let (Some(low), Some(high)) =
        (values_ms.iter().copied().reduce(f64::min), values_ms.iter().copied().reduce(f64::max))
    else {
        return Ok(());
    };
    let width = round_step(((high - low) / 24.0).max(1.0));
    let first = (low / width).floor() * width;
    let mut counts = vec![0usize; ((high - first) / width) as usize + 1];
    let last = counts.len() - 1;
    for ms in values_ms {
        counts[(((ms - first) / width) as usize).min(last)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1) as f64;
    let scale = Scale::new(first, first + width * counts.len() as f64);
    let rows = 6;
    let bottom = rows as f64 * ROW_HEIGHT;
    page.write_str(
        "<h2>Voice to voice, warm turns</h2>\n<p class=\"note\">turns per bin, by milliseconds</p>\n",
    )?;
    open_svg(page, rows, "distribution of voice to voice")?;
    scale.axis(page, rows)?;
    for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let from = first + bin as f64 * width;
        let (x, end) = (scale.x(from), scale.x(from + width));
        let height = *count as f64 / most * (bottom - 4.0);
        writeln!(
            page,
            "<rect class=\"whole\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\">\
             <title>{count} between {from:.0} and {:.0} ms</title></rect>",
            bottom - height,
            (end - x - 1.0).max(1.0),
            from + width
        )?;
    }
    page.write_str("</svg>\n")
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report_with;
    use super::*;

    #[test]
    fn the_page_needs_nothing_else_and_escapes_what_it_shows() {
        let mut report = report_with((0..40).map(|i| 600.0 + f64::from(i % 13) * 9.0), &[3_000.0]);
        report.machine.cpu = "<script>alert(1)</script>".into();
        report.turns[0].transcript = "</td><img src=x onerror=alert(1)>\u{0}".into();
        let page = report.to_html();
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        for forbidden in ["<script", "<img", "<link", "http:", "https:", "url(", "\u{0}", "NaN", "inf"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        assert!(page.contains("&lt;script&gt;alert(1)") && page.contains("&lt;img src=x"));
        assert_eq!(page.matches("<svg").count(), 3);
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
        assert!(page.contains("42 turns, 1 of them cancelled"));
    }

    #[test]
    fn empty_and_extreme_reports_have_a_page() {
        assert!(!report_with([], &[]).to_html().contains("<svg"));
        for ms in [0.0, 1e9] {
            let page = report_with([ms, ms], &[]).to_html();
            assert!(!page.contains("NaN") && page.len() < 100_000, "{}", page.len());
        }
        let wide = report_with([0.0, 1e9], &[]).to_html();
        assert!(wide.len() < 100_000);
    }

    #[test]
    fn steps_are_round() {
        for (step, rounded) in [(1.0, 1.0), (1.1, 2.0), (30.0, 50.0), (0.06, 0.1), (700.0, 1000.0)] {
            assert!((round_step(step) / rounded - 1.0).abs() < 1e-9, "{step}");
        }
    }
}
