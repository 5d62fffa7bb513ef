//! What cpal calls: converts samples and passes them on, nothing else. Public for the test that counts allocations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

use cpal::{ErrorKind, FromSample, InputCallbackInfo, OutputCallbackInfo, Sample, SizedSample};

use crate::input::InputCallback;
use crate::output::OutputCallback;

fn now_ns(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// For an input stream of `T` in `channels` channels.
pub fn input<T>(mut callback: InputCallback, channels: usize) -> impl FnMut(&[T], &InputCallbackInfo) + Send
where
    T: SizedSample,
    f32: FromSample<T>,
{
    let started = callback.started();
    move |frames, info| {
        let timestamp = info.timestamp();
        callback.set_latency(timestamp.callback.saturating_duration_since(timestamp.capture));
        callback.deliver(now_ns(started), frames, channels, f32::from_sample);
    }
}

/// For an output stream of `T` in `channels` channels.
pub fn output<T>(
    mut callback: OutputCallback,
    channels: usize,
) -> impl FnMut(&mut [T], &OutputCallbackInfo) + Send
where
    T: SizedSample + FromSample<f32>,
{
    /// The largest below 1, which is past the end of some integers.
    const MAX: f32 = 1.0 - f32::EPSILON / 2.0;
    let started = Instant::now();
    move |frames, info| {
        let timestamp = info.timestamp();
        callback.set_latency(timestamp.playback.saturating_duration_since(timestamp.callback));
        callback.supply(now_ns(started), frames, channels, |sample| T::from_sample(sample.min(MAX)));
    }
}

/// What the error callback saw; it only sets numbers.
#[derive(Default)]
pub struct Alarm {
    reason: AtomicU8,
    gaps: AtomicU64,
}

/// Reasons for which a stream is over, in order of their numbers in [`Alarm`], from 1.
const REASONS: [&str; 5] = [
    "the device is gone",
    "the system changed the stream",
    "the sound system is gone",
    "access was denied",
    "the driver reports an error",
];

impl Alarm {
    /// For the error callback of a stream.
    pub fn callback(self: &Arc<Self>) -> impl FnMut(cpal::Error) + Send + use<> {
        let alarm = self.clone();
        move |error| {
            let number = match error.kind() {
                ErrorKind::Xrun => {
                    alarm.gaps.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                // The first goes on by itself; the second sounds as before.
                ErrorKind::DeviceChanged | ErrorKind::RealtimeDenied => return,
                ErrorKind::DeviceNotAvailable => 1,
                ErrorKind::StreamInvalidated => 2,
                ErrorKind::HostUnavailable => 3,
                ErrorKind::PermissionDenied => 4,
                _ => 5,
            };
            // The first one is the cause of the others.
            let _ = alarm.reason.compare_exchange(0, number, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Why the stream is over, if it is.
    pub fn reason(&self) -> Option<&'static str> {
        let number = usize::from(self.reason.load(Ordering::Acquire));
        number.checked_sub(1).and_then(|index| REASONS.get(index)).copied()
    }

    /// Gaps that the system told of.
    pub fn gaps(&self) -> u64 {
        self.gaps.load(Ordering::Relaxed)
    }
}
