//! Tells when the loudspeaker cannot be heard at all, as with headphones that nobody told of.
//!
//! Until the canceller has met an echo it takes one for granted, and holds back what is loud while the loudspeaker plays:
//! the first "stop", too. But where the microphone stayed as quiet as the room while loud sound went out, and for longer
//! than a device delays it, there is no echo to speak of, and what is much louder afterwards is somebody who speaks.

use std::collections::VecDeque;

use super::FRAME_SAMPLES;

/// By then an echo is there, Bluetooth's included: 400 ms.
const LATEST_FRAMES: usize = 40;
/// -40 dB: what an echo would be heard of. So many such frames are waited for: 300 ms.
const LOUD: f32 = 1e-4;
const LOUD_FRAMES: usize = 30;
/// An echo that is 40 dB down, or further, is none.
const ABSENT: f32 = 1e-4;
/// What is 15 dB over the loudest that was heard meanwhile, and over -70 dB, is no echo.
const OVER: f32 = 30.0;
const FLOOR: f32 = 1e-7;
/// Between words, and for the soft end of the last: 300 ms.
const HOLD_FRAMES: usize = 30;
/// After a second of silence all is asked anew: the headphones may be gone.
const SILENT_FRAMES: usize = 100;

/// What is known of the sound that is played now.
#[derive(Default)]
pub(super) struct Absence {
    /// Power of the loudspeaker's last frames, the latest last.
    far: VecDeque<f32>,
    silent_frames: usize,
    /// Of frames that had time to be heard.
    loud_frames: usize,
    loudest_far: f32,
    /// Power of the microphone, smoothed over a few frames, and the most of it since the sound began.
    near: f32,
    loudest_near: f32,
    is_absent: bool,
    hold_frames: usize,
}

impl Absence {
    /// Whether what the microphone hears, `near`, is no echo of what the loudspeaker plays, `far`, or played.
    pub(super) fn is_no_echo(&mut self, far: &[f32; FRAME_SAMPLES], near: &[f32; FRAME_SAMPLES]) -> bool {
        let (far, near) = (power(far), power(near));
        self.near += 0.3 * (near - self.near);
        self.silent_frames = if far > LOUD { 0 } else { self.silent_frames + 1 };
        if self.silent_frames > SILENT_FRAMES {
            *self = Self { near: self.near, silent_frames: self.silent_frames, ..Self::default() };
            return false;
        }
        self.far.push_back(far);
        let old = if self.far.len() > LATEST_FRAMES { self.far.pop_front().unwrap_or(0.0) } else { 0.0 };
        if self.is_absent {
            let louder =
                self.far.iter().fold(self.loudest_far, |most, far| most.max(*far)) / self.loudest_far;
            if self.near > self.loudest_near.max(FLOOR) * OVER * louder {
                self.hold_frames = HOLD_FRAMES;
            }
            self.hold_frames = self.hold_frames.saturating_sub(1);
            return self.hold_frames > 0;
        }
        self.loudest_near = self.loudest_near.max(self.near);
        if old > LOUD {
            self.loud_frames += 1;
            self.loudest_far = self.loudest_far.max(old);
        }
        self.is_absent = self.loud_frames >= LOUD_FRAMES && self.loudest_near < self.loudest_far * ABSENT;
        false
    }
}

/// Mean square; 0 of what is no number.
fn power(frame: &[f32; FRAME_SAMPLES]) -> f32 {
    let power = frame.iter().map(|sample| sample * sample).sum::<f32>() / FRAME_SAMPLES as f32;
    if power.is_finite() { power } else { 0.0 }
}
