//! The thread that listens: microphone, voice detector, and when each chunk was at the microphone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::super::conductor::ChunkTimes;
use super::super::{LISTEN_RATE_HZ, Samples};
use super::conversation::Message;
use super::mail::Post;
use super::stages::{CHUNK_SAMPLES, Detector, Heard, Microphone};
use crate::latency::Clock;

/// How long the thread waits for sound before it looks whether it is still wanted.
const WAIT: Duration = Duration::from_millis(50);

/// A chunk of the microphone's stream.
pub(super) struct Chunk {
    pub(super) samples: [f32; CHUNK_SAMPLES],
    pub(super) probability: f32,
    pub(super) times: ChunkTimes,
}

/// When a sample was at the microphone, from when samples arrive.
///
/// They arrive late by a jitter that is never negative, so the earliest arrival so far tells when the stream's first sample
/// was there. Clocks drift apart by up to 200 millionths: that much the estimate follows upwards. What never arrived (a
/// device that was changed) moves it at once.
#[derive(Default)]
struct SampleClock {
    /// Of the stream's first sample, as the last arrival but one found it, and when that was.
    origin: Option<(u64, u64)>,
}

/// More than any jitter: so late a sample belongs to a stream that was interrupted.
const GAP_NS: u64 = 500_000_000;

impl SampleClock {
    /// `count` samples have arrived by `now_ns`; gives when the last of them was at the microphone.
    fn arrived(&mut self, count: u64, now_ns: u64) -> u64 {
        let length_ns = count * (1_000_000_000 / LISTEN_RATE_HZ);
        let late = now_ns.saturating_sub(length_ns);
        let origin_ns = match self.origin {
            Some((origin_ns, at_ns)) if late < origin_ns + GAP_NS => {
                late.min(origin_ns + now_ns.saturating_sub(at_ns) / 5_000)
            }
            _ => late,
        };
        self.origin = Some((origin_ns, now_ns));
        origin_ns + length_ns
    }
}

/// Listens until the stream ends or `stop` is set.
pub(super) fn listen(
    mut microphone: Box<dyn Microphone>,
    mut detector: Box<dyn Detector>,
    clock: &Arc<dyn Clock>,
    post: &Post<Message>,
    stop: &AtomicBool,
) {
    let (mut sound, mut sample_clock) = (Vec::new(), SampleClock::default());
    let (mut taken, mut has_failed) = (0u64, false);
    while !stop.load(Ordering::Acquire) {
        let heard = microphone.wait(&mut sound, WAIT);
        let captured_ns = clock.now_ns();
        let arrived = taken + sound.len() as u64;
        let by_clock_ns = sample_clock.arrived(arrived, captured_ns);
        let age_ns = microphone.age().and_then(|age| u64::try_from(age.as_nanos()).ok());
        let last_ns = age_ns.map_or(by_clock_ns, |age_ns| captured_ns.saturating_sub(age_ns));
        if heard == Ok(Heard::End) {
            // What fills no chunk is judged with silence behind it.
            sound.resize(sound.len().next_multiple_of(CHUNK_SAMPLES), 0.0);
        }
        let mut chunks = sound.chunks_exact(CHUNK_SAMPLES);
        for chunk in &mut chunks {
            let mut samples = [0.0; CHUNK_SAMPLES];
            samples.copy_from_slice(chunk);
            let probability = detector.score(&samples).unwrap_or_else(|error| {
                if !std::mem::replace(&mut has_failed, true) {
                    tracing::error!(%error, "the voice detector failed");
                }
                detector.restart();
                0.0
            });
            taken += CHUNK_SAMPLES as u64;
            let behind_ns = arrived.saturating_sub(taken) * (1_000_000_000 / LISTEN_RATE_HZ);
            let times = ChunkTimes {
                heard_ns: last_ns.saturating_sub(behind_ns),
                captured_ns,
                scored_ns: clock.now_ns(),
            };
            if !post.send(Message::Chunk(Box::new(Chunk { samples, probability, times }))) {
                return;
            }
        }
        let rest = chunks.remainder().len();
        sound.drain(..sound.len() - rest);
        match heard {
            Ok(Heard::Sound | Heard::Nothing) => {}
            Ok(Heard::End) => {
                post.send(Message::EndOfStream(Samples(arrived)));
                return;
            }
            Err(reason) => {
                post.send(Message::EndOfStream(Samples(arrived)));
                post.send(Message::MicrophoneFailed(reason));
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::mail::{Underway, mail};
    use super::super::stages::StageError;
    use super::*;
    use crate::latency::ManualClock;

    #[test]
    fn arrival_times_lose_their_jitter() {
        let mut clock = SampleClock::default();
        let mut noise = 1u64;
        for block in 1..2_000u64 {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let late_ns = (noise >> 33) % 15_000_000;
            let found = clock.arrived(block * 160, 7_000_000 + block * 10_000_000 + late_ns);
            if block > 100 {
                let error_ns = found.abs_diff(7_000_000 + block * 10_000_000);
                assert!(error_ns < 1_500_000, "{error_ns}");
            }
        }
        // Two seconds without a device.
        let found = clock.arrived(2_000 * 160, 22_007_000_000);
        assert_eq!(found, 22_007_000_000);
    }

    struct Recording(Vec<f32>);

    impl Microphone for Recording {
        fn wait(&mut self, out: &mut Vec<f32>, _: Duration) -> Result<Heard, String> {
            let count = self.0.len().min(700);
            out.extend(self.0.drain(..count));
            Ok(if count == 0 { Heard::End } else { Heard::Sound })
        }
    }

    struct Loud;

    impl Detector for Loud {
        fn score(&mut self, chunk: &[f32; CHUNK_SAMPLES]) -> Result<f32, StageError> {
            match chunk[0] {
                0.5 => Err(StageError::Failed("broken".into())),
                level => Ok(level),
            }
        }

        fn restart(&mut self) {}
    }

    #[test]
    fn a_stream_becomes_chunks_and_its_end() {
        let (post, inbox) = mail(&Underway::default());
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let mut samples = vec![0.25; 512];
        samples.extend([0.5; 512]);
        samples.extend([0.75; 100]);
        listen(Box::new(Recording(samples)), Box::new(Loud), &clock, &post, &AtomicBool::new(false));
        drop(post);
        let mut scores = Vec::new();
        let mut end = None;
        while let Some((message, _)) = inbox.receive() {
            match message {
                Message::Chunk(chunk) => scores.push(chunk.probability),
                Message::EndOfStream(length) => end = Some(length),
                _ => panic!("neither sound nor end"),
            }
        }
        // A detector that fails hears no speech, and goes on.
        assert_eq!((scores, end), (vec![0.25, 0.0, 0.75], Some(Samples(1_124))));
    }
}
