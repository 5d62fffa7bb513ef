//! A device is simulated: the callback is called for blocks of frames, the feeder in between.

use std::f32::consts::TAU;

use super::*;

fn tone(hz: f32, rate_hz: u32, samples: usize) -> Vec<f32> {
    (0..samples).map(|i| 0.5 * (TAU * hz * i as f32 / rate_hz as f32).sin()).collect()
}

struct Device {
    control: OutputControl,
    feeder: OutputFeeder,
    port: OutputPort,
    callback: OutputCallback,
    tap: OutputTap,
    channels: usize,
}

impl Device {
    fn new(source_hz: u32, device_hz: u32, channels: usize) -> Self {
        let (control, feeder, port) = new(OutputConfig::new(source_hz)).unwrap();
        let (callback, tap) = port.connect(device_hz).unwrap();
        Self { control, feeder, port, callback, tap, channels }
    }

    /// One block of `frames` in floats.
    fn block(&mut self, frames: usize) -> Vec<f32> {
        let mut block = vec![f32::NAN; frames * self.channels];
        self.callback.fill(&mut block, self.channels, |sample| sample);
        block
    }

    /// Plays all of `sound` as `turn` in blocks of 10 ms and gives what the device got until it is over.
    fn play(&mut self, turn: u64, mut sound: &[f32], device_hz: u32) -> Vec<f32> {
        let mut got = Vec::new();
        loop {
            while !sound.is_empty() {
                let taken = self.feeder.offer(turn, sound).unwrap();
                sound = &sound[taken..];
                if taken == 0 {
                    break;
                }
            }
            let done = sound.is_empty() && self.feeder.finish(turn).unwrap();
            let queued = self.callback.queued_samples();
            if done && queued == 0 {
                return got;
            }
            got.extend(self.block((device_hz as usize / 100).min(queued.max(1))));
        }
    }
}

/// Frequency from the zero crossings that go up.
fn frequency_hz(samples: &[f32], rate_hz: u32) -> f32 {
    let crossings: Vec<f32> = samples
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| pair[0] < 0.0 && pair[1] >= 0.0)
        .map(|(i, pair)| i as f32 + pair[0] / (pair[0] - pair[1]))
        .collect();
    let periods = crossings.len() - 1;
    periods as f32 * rate_hz as f32 / (crossings[periods] - crossings[0])
}

#[test]
fn b34_a_tone_at_every_rate_and_channel_count() {
    for device_hz in [8_000, 16_000, 44_100, 48_000, 96_000, 192_000] {
        for channels in [1, 2, 6] {
            let mut device = Device::new(24_000, device_hz, channels);
            device.control.play(1);
            let got = device.play(1, &tone(440.0, 24_000, 12_000), device_hz);
            let first: Vec<f32> = got.iter().copied().step_by(channels).collect();
            assert!(got.chunks(channels).all(|frame| frame.iter().all(|sample| *sample == frame[0])));
            assert_eq!(first.len(), device_hz as usize / 2, "{device_hz} Hz: the right length");
            let hz = frequency_hz(&first, device_hz);
            assert!((hz - 440.0).abs() < 1.0, "{device_hz} Hz: {hz}");
            assert_eq!(device.control.played(1), 12_000);
            assert_eq!(device.control.counters().starved_samples, 0);
            let tapped: Vec<f32> = device.tap.consumer.pop_iter().collect();
            assert!(tapped == first[..tapped.len()] && !tapped.is_empty(), "the tap is what was sent");
        }
    }
}

#[test]
fn integers_are_limited_and_converted() {
    let mut device = Device::new(48_000, 48_000, 2);
    device.control.play(1);
    device.feeder.offer(1, &[4.0; 960]).unwrap();
    let mut block = [0i16; 1920];
    device.callback.fill(&mut block, 2, |sample| (sample * 32_767.0) as i16);
    assert_eq!(block[1919], 32_767);
    assert!(block.windows(2).all(|pair| pair[1] >= pair[0]), "limited, not wrapped");
}

#[test]
fn nothing_sounds_before_it_may() {
    let mut device = Device::new(48_000, 48_000, 1);
    device.feeder.offer(0, &[0.5; 480]).unwrap();
    assert!(device.block(480).iter().all(|sample| *sample == 0.0));
    device.control.play(2);
    device.control.hold(2);
    device.feeder.offer(2, &[0.5; 480]).unwrap();
    assert!(device.block(480).iter().all(|sample| *sample == 0.0));
    assert_eq!(device.control.played(2), 0);
    device.control.resume(2);
    assert!(device.block(480)[470] == 0.5, "nothing of it was lost");
    assert_eq!(device.control.played(2), 480);
}

#[test]
fn silencing_fades_without_a_click_and_drops_the_rest() {
    let mut device = Device::new(48_000, 48_000, 1);
    device.control.play(1);
    let sound = tone(200.0, 48_000, 48_000);
    let mut offered = device.feeder.offer(1, &sound).unwrap();
    offered += device.feeder.offer(1, &sound[offered..]).unwrap();
    let before = device.block(480);
    device.feeder.offer(1, &sound[offered..]).unwrap();
    device.control.silence(1);
    let after = device.block(1_440);
    let joined: Vec<f32> = before.iter().chain(&after).copied().collect();
    // 0.5 * 2 pi * 200 / 48 000 a sample is the tone's own steepest step; the fade adds 0.5 / 960.
    let steepest = joined.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max);
    assert!(steepest < 0.0145, "a click: {steepest}");
    assert!(after[..900].iter().any(|sample| sample.abs() > 0.02));
    assert!(after[1_100..].iter().all(|sample| *sample == 0.0), "silent after 20 ms and the decay");
    assert!(device.control.counters().dropped_samples > 0);
    // It does not come back, and the next turn begins at once.
    device.control.resume(1);
    device.feeder.offer(1, &sound).unwrap();
    assert!(device.block(960).iter().all(|sample| *sample == 0.0));
    device.control.play(2);
    device.feeder.offer(2, &[0.25; 480]).unwrap();
    assert_eq!(device.block(480)[479], 0.25);
    assert_eq!((device.control.played(1), device.control.played(2)), (0, 480));
}

#[test]
fn a_stale_turn_in_the_queue_is_passed_over() {
    let mut device = Device::new(48_000, 48_000, 1);
    device.control.play(1);
    device.feeder.offer(1, &[0.9; 960]).unwrap();
    device.control.play(2);
    device.feeder.offer(2, &[0.1; 960]).unwrap();
    let block = device.block(480);
    assert!(block.iter().all(|sample| *sample <= 0.1), "not one sample of turn 1");
    assert_eq!(device.control.counters().dropped_samples, 960);
}

#[test]
fn ducking_is_a_ramp_down_and_back() {
    let mut device = Device::new(48_000, 48_000, 1);
    device.control.play(1);
    device.feeder.offer(1, &[0.5; 960]).unwrap();
    device.feeder.offer(1, &[0.5; 960]).unwrap();
    device.block(480);
    device.control.duck(1);
    let ducked = device.block(960);
    assert!((ducked[959] - 0.09).abs() < 1e-6);
    device.control.resume(1);
    device.control.duck(7);
    let back = device.block(480);
    assert_eq!(back[479], 0.5);
    let all: Vec<f32> = ducked.into_iter().chain(back).collect();
    assert!(all.windows(2).all(|pair| (pair[1] - pair[0]).abs() < 0.003));
}

#[test]
fn a_gap_is_counted_and_does_not_click() {
    let mut device = Device::new(48_000, 48_000, 1);
    device.control.play(1);
    device.feeder.offer(1, &[0.5; 480]).unwrap();
    let gap = device.block(960);
    assert_eq!(device.control.counters().starved_samples, 480);
    device.feeder.offer(1, &[0.5; 480]).unwrap();
    let all: Vec<f32> = gap.into_iter().chain(device.block(480)).collect();
    let steepest = all.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max);
    assert!(steepest < 0.02, "{steepest}");
    assert!(device.feeder.finish(1).unwrap());
    device.block(480);
    assert_eq!(device.control.counters().starved_samples, 480, "after the end it is no gap");
}

#[test]
fn the_feeder_takes_no_more_than_the_queue_holds() {
    let mut device = Device::new(24_000, 48_000, 1);
    device.control.play(1);
    let mut taken = 0;
    while let part @ 1.. = device.feeder.offer(1, &[0.1; 24_000]).unwrap() {
        taken += part;
    }
    assert!(taken <= 24 * (40 + 40 + 20), "{taken} samples of 24 kHz are far more than 40 ms");
    assert!(device.feeder.is_full());
    assert!(!device.feeder.finish(1).unwrap());
}

/// Plays `sound` on a device of 48 kHz until `lost_at` blocks of 10 ms, then on one of `second_hz`; gives what the
/// second one got.
fn move_over(sound: &[f32], lost_at: usize, second_hz: u32) -> (Device, Vec<f32>) {
    let mut device = Device::new(24_000, 48_000, 1);
    device.control.play(1);
    let mut rest = sound;
    for _ in 0..lost_at {
        while let taken @ 1.. = device.feeder.offer(1, rest).unwrap() {
            rest = &rest[taken..];
        }
        if rest.is_empty() {
            device.feeder.finish(1).unwrap();
        }
        device.block(480);
    }
    // The device is gone: its queue fills, then nothing is taken any more.
    while let taken @ 1.. = device.feeder.offer(1, rest).unwrap() {
        rest = &rest[taken..];
    }
    (device.callback, device.tap) = device.port.connect(second_hz).unwrap();
    let got = device.play(1, rest, second_hz);
    (device, got)
}

#[test]
fn b32_another_device_goes_on_where_the_lost_one_stopped() {
    // A ramp says where in the sound a sample comes from.
    let sound: Vec<f32> = (0..24_000).map(|i| i as f32 / 24_000.0).collect();
    for (lost_at, second_hz) in [(7, 48_000), (30, 44_100), (50, 16_000), (97, 48_000), (99, 44_100)] {
        let (device, got) = move_over(&sound, lost_at, second_hz);
        let heard_before = lost_at as f32 * 0.01;
        let at = second_hz as usize / 1000 * 8;
        let expected = heard_before + 0.008;
        if expected < 0.99 {
            assert!((got[at] - expected).abs() < 1e-3, "{lost_at} {second_hz}: {} {expected}", got[at]);
        }
        assert!(
            (got.len() as f32 / second_hz as f32 - (1.0 - heard_before)).abs() < 1e-3,
            "{lost_at}: all of the rest"
        );
        assert!(device.control.played(1).abs_diff(24_000) <= 1, "{}", device.control.played(1));
    }
}

#[test]
fn without_a_device_nothing_is_taken() {
    let (control, mut feeder, port) = new(OutputConfig::new(24_000)).unwrap();
    control.play(1);
    assert!(feeder.is_full());
    assert_eq!(feeder.offer(1, &[0.5; 480]).unwrap(), 0);
    let (mut callback, _tap) = port.connect(24_000).unwrap();
    assert_eq!(feeder.offer(1, &[0.5; 480]).unwrap(), 480);
    let mut block = [0.0f32; 480];
    callback.fill(&mut block, 1, |sample| sample);
    assert_eq!(block[479], 0.5);
    assert!(port.connect(0).is_err());
}

#[test]
fn what_is_no_number_is_silence() {
    let mut device = Device::new(24_000, 48_000, 1);
    device.control.play(1);
    device.feeder.offer(1, &[f32::NAN; 240]).unwrap();
    device.feeder.offer(1, &[f32::INFINITY, 0.5]).unwrap();
    assert!(device.block(960).iter().all(|sample| sample.is_finite()));
}

#[test]
fn b33_a_device_that_plays_at_another_rate_is_found() {
    let mut device = Device::new(24_000, 48_000, 1);
    let mut block = [0.0f32; 240];
    for tick in 0..400 {
        device.callback.supply(tick * 10_000_000, &mut block, 1, |sample| sample);
    }
    assert_eq!((device.port.real_hz(), device.port.asked_samples()), (24_000, 400 * 240));
}
