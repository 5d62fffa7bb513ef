//! Spans, the per-turn record, percentiles and reports.
