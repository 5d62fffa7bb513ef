//! What cpal calls: converts samples and passes them on, nothing else. Public for the test that counts allocations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

/// What the error callback saw. It only sets numbers, and waits a moment after an error that may pass.
#[derive(Default)]
pub struct Alarm {
    reason: AtomicU8,
    gaps: AtomicU64,
    faults: AtomicU64,
}

const FAULT_PAUSE: Duration = Duration::from_millis(1);

/// Reasons for which a stream is over, in order of their numbers in [`Alarm`], from 1.
const REASONS: [&str; 4] =
    ["the device is gone", "the system changed the stream", "the sound system is gone", "access was denied"];

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
                // It may pass: ALSA's way to PulseAudio gives "I/O error" until the server has told the time. cpal
                // tries again at once, over and over.
                _ => {
                    alarm.faults.fetch_add(1, Ordering::Relaxed);
                    std::thread::park_timeout(FAULT_PAUSE);
                    return;
                }
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

    /// Errors that are no reason to give the stream up while it goes on.
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    /// Gaps that the system told of.
    pub fn gaps(&self) -> u64 {
        self.gaps.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::f32::consts::TAU;
    use std::fmt::Debug;

    use cpal::{I24, InputStreamTimestamp, OutputStreamTimestamp, StreamInstant, U24};

    use super::*;
    use crate::input;
    use crate::output::{self, OutputConfig};

    const ANY: StreamInstant = StreamInstant::ZERO;

    /// Of a tone.
    fn pitch_hz(samples: &[f32], rate_hz: u32) -> f32 {
        let rising: Vec<usize> =
            (1..samples.len()).filter(|i| samples[i - 1] < 0.0 && samples[*i] >= 0.0).collect();
        let (first, last) = (rising[0], rising[rising.len() - 1]);
        (rising.len() - 1) as f32 * rate_hz as f32 / (last - first) as f32
    }

    /// A tone of half the full level and half a second goes out to a device of samples `T`, and what that got comes
    /// back in from it.
    fn out_and_in<T>(device_hz: u32, channels: usize)
    where
        T: SizedSample + FromSample<f32> + Debug,
        f32: FromSample<T>,
    {
        let case = format!("{} at {device_hz} Hz, {channels} channels", std::any::type_name::<T>());
        let (control, mut feeder, port) = output::new(OutputConfig::new(24_000)).unwrap();
        let (callback, _tap) = port.connect(device_hz).unwrap();
        let (recorder, mut reader) = input::new(device_hz, 16_000).unwrap();
        let mut play = output::<T>(callback, channels);
        let mut record = input::<T>(recorder, channels);
        let asked = OutputCallbackInfo::new(OutputStreamTimestamp { callback: ANY, playback: ANY });
        let heard = InputCallbackInfo::new(InputStreamTimestamp { callback: ANY, capture: ANY });
        let tone: Vec<f32> = (0..12_000).map(|i| 0.5 * (TAU * 440.0 * i as f32 / 24_000.0).sin()).collect();
        let (mut rest, mut sent, mut got) = (&tone[..], Vec::new(), Vec::new());
        control.play(1);
        for _ in 0..49 {
            while let taken @ 1.. = feeder.offer(1, rest).unwrap() {
                rest = &rest[taken..];
            }
            if rest.is_empty() {
                feeder.finish(1).unwrap();
            }
            let mut block = vec![T::EQUILIBRIUM; device_hz as usize / 100 * channels];
            play(&mut block, &asked);
            for frame in block.chunks(channels) {
                assert!(frame.iter().all(|sample| *sample == frame[0]), "{case}: {frame:?}");
                sent.push(f32::from_sample(frame[0]));
            }
            record(&block, &heard);
            reader.read(&mut got).unwrap();
        }
        assert_eq!(control.played(1), 49 * 240, "{case}");
        for (sound, rate_hz) in [(&sent, device_hz), (&got, 16_000)] {
            let middle = &sound[sound.len() / 4..];
            assert!((pitch_hz(middle, rate_hz) - 440.0).abs() < 2.2, "{case}: {}", pitch_hz(middle, rate_hz));
            let loudest = middle.iter().fold(0.0f32, |most, sample| most.max(sample.abs()));
            assert!((0.48..0.52).contains(&loudest), "{case}: {loudest}");
        }
    }

    #[test]
    fn b34_a_tone_through_every_format_rate_and_channel_count() {
        for device_hz in [8_000, 16_000, 44_100, 48_000, 96_000, 192_000] {
            for channels in [1, 2, 6] {
                out_and_in::<i16>(device_hz, channels);
                out_and_in::<f32>(device_hz, channels);
            }
        }
        out_and_in::<i8>(48_000, 2);
        out_and_in::<u8>(48_000, 2);
        out_and_in::<u16>(48_000, 2);
        out_and_in::<I24>(48_000, 2);
        out_and_in::<U24>(48_000, 2);
        out_and_in::<i32>(48_000, 2);
        out_and_in::<u32>(48_000, 2);
        out_and_in::<i64>(48_000, 2);
        out_and_in::<u64>(48_000, 2);
        out_and_in::<f64>(48_000, 2);
    }
}
