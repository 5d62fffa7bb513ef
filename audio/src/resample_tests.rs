//! A tone stays the tone, a click stays where it is, lengths are exact.

use std::f64::consts::TAU;

use super::*;

const RATES_HZ: [u32; 8] = [8_000, 16_000, 22_050, 24_000, 44_100, 48_000, 96_000, 192_000];

fn tone(rate_hz: u32, duration_secs: f64) -> Vec<f32> {
    let count = (f64::from(rate_hz) * duration_secs) as usize;
    (0..count).map(|i| (0.5 * (TAU * 440.0 * i as f64 / f64::from(rate_hz)).sin()) as f32).collect()
}

/// Amplitude and phase of the 440 Hz part of `samples`, which cover whole periods.
fn at_440(samples: &[f32], rate_hz: u32) -> (f64, f64) {
    let (mut re, mut im) = (0.0, 0.0);
    for (i, s) in samples.iter().enumerate() {
        let angle = TAU * 440.0 * i as f64 / f64::from(rate_hz);
        re += f64::from(*s) * angle.sin();
        im += f64::from(*s) * angle.cos();
    }
    let scale = 2.0 / samples.len() as f64;
    ((re * scale).hypot(im * scale), im.atan2(re))
}

/// Asserts a 440 Hz tone of amplitude 0.5 in the second that starts at `start` samples.
fn assert_tone(samples: &[f32], start: usize, rate_hz: u32, what: &str) {
    let quarter = rate_hz as usize / 4;
    let early = &samples[start..start + quarter];
    let late = &samples[start + 2 * quarter..start + 3 * quarter];
    let ((level, phase), (level_late, phase_late)) = (at_440(early, rate_hz), at_440(late, rate_hz));
    let db = 20.0 * (level / 0.5).log10();
    assert!(db.abs() < 0.1, "{what}: {db} dB");
    assert!((20.0 * (level_late / 0.5).log10()).abs() < 0.1, "{what}");
    // Half a second of drift between the two windows; a quarter second holds 110 whole periods.
    let start_phase = TAU * (440.0 * (2 * quarter) as f64 / f64::from(rate_hz)).fract();
    let drift = (phase_late - phase - start_phase + 3.0 * std::f64::consts::PI).rem_euclid(TAU)
        - std::f64::consts::PI;
    let hz = 440.0 + drift / TAU / 0.5;
    assert!((hz - 440.0).abs() < 0.44, "{what}: {hz} Hz");
    // All energy is in the tone: nothing was added.
    let power: f64 = early.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>() / early.len() as f64;
    assert!(power - level * level / 2.0 < 1e-6, "{what}: {power}");
}

#[test]
fn a_tone_stays_the_tone_between_all_rates() {
    for from_hz in RATES_HZ {
        let input = tone(from_hz, 1.5);
        for to_hz in RATES_HZ {
            let out = resample(&input, from_hz, to_hz).unwrap();
            assert_eq!(out.len(), to_hz as usize * 3 / 2);
            assert_tone(&out, to_hz as usize / 5, to_hz, &format!("{from_hz} to {to_hz}"));
        }
    }
}

#[test]
fn streams_keep_the_tone_whatever_the_pieces() {
    for (from_hz, to_hz) in [
        (48_000, 16_000),
        (44_100, 16_000),
        (16_000, 48_000),
        (24_000, 44_100),
        (44_100, 48_000),
        (8_000, 16_000),
        (11_025, 16_000),
        (44_101, 48_000),
    ] {
        let input = tone(from_hz, 1.5);
        let mut stream = StreamResampler::new(from_hz, to_hz).unwrap();
        let mut whole = Vec::new();
        stream.push(&input, &mut whole).unwrap();
        stream.finish(&mut whole).unwrap();
        let delay = stream.delay_samples();
        assert_eq!(whole.len(), scaled(input.len(), from_hz, to_hz) + delay);
        assert_tone(&whole, delay + to_hz as usize / 5, to_hz, &format!("{from_hz} to {to_hz}"));
        assert!(stream.block_samples() as u64 * 1000 <= MAX_STREAM_BLOCK_MS * u64::from(from_hz));

        let mut pieces = Vec::new();
        let mut rest = &input[..];
        for len in [1usize, 0, 7, 160, 441, 5_000].into_iter().cycle() {
            let (piece, tail) = rest.split_at(len.min(rest.len()));
            stream.push(piece, &mut pieces).unwrap();
            rest = tail;
            if rest.is_empty() {
                break;
            }
        }
        stream.finish(&mut pieces).unwrap();
        assert!(whole == pieces, "{from_hz} to {to_hz}");
    }
}

fn peak(samples: &[f32]) -> usize {
    (0..samples.len()).max_by(|a, b| samples[*a].abs().total_cmp(&samples[*b].abs())).unwrap()
}

#[test]
fn a_click_stays_at_its_time() {
    for (from_hz, to_hz) in
        [(48_000, 16_000), (16_000, 48_000), (44_100, 16_000), (24_000, 44_100), (44_101, 48_000)]
    {
        // One common period of both rates into the signal, so that the click falls on a sample.
        let divisor = gcd(from_hz, to_hz);
        let (at_in, at_out) = if divisor > 1 {
            let periods = 1 + 8_000 / (from_hz / divisor);
            ((from_hz / divisor * periods) as usize, (to_hz / divisor * periods) as usize)
        } else {
            (8_000, scaled(8_000, from_hz, to_hz))
        };
        let mut input = vec![0.0; at_in * 2];
        input[at_in] = 1.0;
        let out = resample(&input, from_hz, to_hz).unwrap();
        assert_eq!(peak(&out), at_out, "{from_hz} to {to_hz}");

        let mut stream = StreamResampler::new(from_hz, to_hz).unwrap();
        let mut out = Vec::new();
        stream.push(&input, &mut out).unwrap();
        stream.finish(&mut out).unwrap();
        assert!(
            peak(&out).abs_diff(at_out + stream.delay_samples()) <= 1,
            "stream {from_hz} to {to_hz}: {} {at_out} {}",
            peak(&out),
            stream.delay_samples()
        );
    }
}

#[test]
fn what_lies_above_the_new_nyquist_is_gone() {
    let rate = 48_000;
    let input: Vec<f32> =
        (0..rate).map(|i| (TAU * 11_000.0 * f64::from(i) / 48_000.0).sin() as f32).collect();
    let out = resample(&input, 48_000, 16_000).unwrap();
    let loudest = out[2_000..14_000].iter().fold(0.0f32, |m, s| m.max(s.abs()));
    assert!(loudest < 1e-4, "{loudest}");
}

#[test]
fn tiny_empty_and_refused() {
    assert!(resample(&[], 48_000, 16_000).unwrap().is_empty());
    assert_eq!(resample(&[0.25], 16_000, 16_000).unwrap(), [0.25]);
    for count in 1..10 {
        let out = resample(&vec![0.1; count], 48_000, 16_000).unwrap();
        assert_eq!(out.len(), (count as f64 / 3.0).round() as usize);
    }
    for rate_hz in [0, 1, 999, 768_001, u32::MAX] {
        assert!(matches!(resample(&[0.0], rate_hz, 16_000), Err(AudioError::UnsupportedRate { .. })));
        assert!(matches!(resample(&[0.0], 16_000, rate_hz), Err(AudioError::UnsupportedRate { .. })));
        assert!(StreamResampler::new(rate_hz, 16_000).is_err());
    }
    // 1 GiB of output is refused before anything is allocated.
    let long = vec![0.0; MAX_SAMPLES / 768 + 1];
    assert!(matches!(resample(&long, 1_000, 768_000), Err(AudioError::TooLong { .. })));
}
