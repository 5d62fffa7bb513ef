//! Scripted probabilities in, events out.

use super::SpeechEvent::*;
use super::*;

/// Runs `probabilities` and returns each event with the position after its chunk.
fn run(config: &EndpointConfig, probabilities: impl IntoIterator<Item = f32>) -> Vec<(Samples, SpeechEvent)> {
    let mut state = EndpointState::default();
    let mut all = Vec::new();
    for probability in probabilities {
        let (next, events) = step(config, &state, probability);
        state = next;
        all.extend(events.into_iter().map(|event| (state.position(), event)));
    }
    all
}

fn events(probabilities: &[f32]) -> Vec<SpeechEvent> {
    run(&EndpointConfig::default(), probabilities.iter().copied())
        .into_iter()
        .map(|(_, event)| event)
        .collect()
}

/// `(probability, chunks)` runs, one after the other.
fn script(runs: &[(f32, usize)]) -> Vec<f32> {
    runs.iter().flat_map(|(probability, chunks)| std::iter::repeat_n(*probability, *chunks)).collect()
}

fn at(chunk: u64) -> Samples {
    Samples(chunk * CHUNK.0)
}

#[test]
fn tables() {
    let pre_roll = Samples::from_ms(300);
    for (name, runs, expected) in [
        ("silence and steady noise (B01)", &[(0.0, 100), (0.3, 100), (0.45, 100)][..], vec![]),
        ("one click", &[(0.0, 20), (0.9, 1), (0.0, 20)], vec![]),
        ("clicks apart", &[(0.0, 20), (0.9, 1), (0.0, 1), (0.9, 1), (0.4, 3), (0.9, 1), (0.0, 20)], vec![]),
        (
            "an 80 ms bang over four chunks (B14)",
            &[(0.0, 20), (0.9, 4), (0.0, 20)],
            vec![Start { from: at(20) - pre_roll, voiced: at(20) }, Dropped],
        ),
        (
            "a 0.2 s word (B12)",
            &[(0.0, 20), (0.9, 6), (0.0, 20)],
            vec![
                Start { from: at(20) - pre_roll, voiced: at(20) },
                Confirmed,
                MaybeEnd { voiced_end: at(26) },
                End { voiced_end: at(26) },
            ],
        ),
        (
            "a short closure inside a short word",
            &[(0.0, 20), (0.9, 3), (0.1, 1), (0.9, 3), (0.0, 20)],
            vec![
                Start { from: at(20) - pre_roll, voiced: at(20) },
                Confirmed,
                MaybeEnd { voiced_end: at(27) },
                End { voiced_end: at(27) },
            ],
        ),
        (
            "a pause",
            &[(0.9, 10), (0.0, 8), (0.9, 10), (0.0, 16)],
            vec![
                Start { from: at(0), voiced: at(0) },
                Confirmed,
                MaybeEnd { voiced_end: at(10) },
                Resumed,
                MaybeEnd { voiced_end: at(28) },
                End { voiced_end: at(28) },
            ],
        ),
        (
            "a click in the pause does not put off the end",
            &[(0.9, 10), (0.0, 8), (0.9, 1), (0.0, 8)],
            vec![
                Start { from: at(0), voiced: at(0) },
                Confirmed,
                MaybeEnd { voiced_end: at(10) },
                End { voiced_end: at(10) },
            ],
        ),
        (
            "between the thresholds speech goes on, and quiet too",
            &[(0.9, 10), (0.4, 40), (0.3, 1), (0.4, 15)],
            vec![
                Start { from: at(0), voiced: at(0) },
                Confirmed,
                MaybeEnd { voiced_end: at(50) },
                End { voiced_end: at(50) },
            ],
        ),
        (
            "what is no number is quiet",
            &[(0.9, 10), (f32::NAN, 16)],
            vec![
                Start { from: at(0), voiced: at(0) },
                Confirmed,
                MaybeEnd { voiced_end: at(10) },
                End { voiced_end: at(10) },
            ],
        ),
    ] {
        assert_eq!(events(&script(runs)), expected, "{name}");
    }
}

#[test]
fn events_come_when_they_are_due() {
    let due = run(&EndpointConfig::default(), script(&[(0.9, 10), (0.0, 20)]));
    let positions: Vec<_> = due.iter().map(|(position, _)| position.0 / CHUNK.0).collect();
    // Start after 64 ms, sure after 160 ms; pause at 160 ms of quiet, end at the first chunk at or
    // beyond 500 ms: 512 ms.
    assert_eq!(positions, [2, 5, 15, 26]);
}

#[test]
fn pre_roll_does_not_reach_into_earlier_speech_but_over_noises() {
    let second = |gap: &[(f32, usize)]| {
        let runs = [&[(0.9, 10)], gap, &[(0.9, 10)]].concat();
        let starts: Vec<_> = events(&script(&runs))
            .into_iter()
            .filter_map(|e| if let Start { from, .. } = e { Some(from) } else { None })
            .collect();
        *starts.last().unwrap()
    };
    let mut config = EndpointConfig::default();
    assert_eq!(second(&[(0.0, 16)]), at(26) - config.pre_roll);
    assert_eq!(second(&[(0.0, 16), (0.9, 2), (0.0, 6)]), at(34) - config.pre_roll);
    config.pre_roll = Samples::from_ms(2_000);
    let due = run(&config, script(&[(0.9, 10), (0.0, 16), (0.9, 10)]));
    assert!(due.iter().any(|(_, e)| matches!(e, Start { from, .. } if *from == at(10))));
}

#[test]
fn speech_from_the_first_to_the_last_sample() {
    // B15: the last chunk is filled up beyond the recording.
    let config = EndpointConfig::default();
    let length = at(30) - Samples(100);
    let mut state = EndpointState::default();
    let mut all = Vec::new();
    for _ in 0..30 {
        let (next, events) = step(&config, &state, 0.9);
        state = next;
        all.extend(events);
    }
    let (after, last) = finish(&state, length);
    all.extend(last);
    assert_eq!(
        all,
        [Start { from: Samples::ZERO, voiced: Samples::ZERO }, Confirmed, End { voiced_end: length }]
    );
    assert_eq!(after, EndpointState::default());
}

#[test]
fn finishing_ends_what_is_open() {
    for (runs, expected) in [
        (&[(0.0, 9)][..], None),
        (&[(0.9, 1)], None),
        (&[(0.9, 3)], Some(Dropped)),
        (&[(0.9, 9), (0.0, 3)], Some(End { voiced_end: at(9) })),
        (&[(0.9, 9), (0.0, 9)], Some(End { voiced_end: at(9) })),
        (&[(0.9, 9), (0.0, 19)], None),
    ] {
        let config = EndpointConfig::default();
        let state = script(runs).into_iter().fold(EndpointState::default(), |s, p| step(&config, &s, p).0);
        assert_eq!(finish(&state, at(1_000)).1, expected, "{runs:?}");
    }
}

#[test]
fn a_short_hangover_ends_with_the_pause() {
    let config = EndpointConfig { hangover: Samples::from_ms(100), ..EndpointConfig::default() };
    let due = run(&config, script(&[(0.9, 10), (0.0, 10)]));
    let last: Vec<_> = due.iter().rev().take(2).map(|(p, _)| p.0 / CHUNK.0).collect();
    assert_eq!(last, [15, 15]);
}

#[test]
fn long_speech_is_split_at_its_longest_pause() {
    let config = EndpointConfig { max_speech: at(100), ..EndpointConfig::default() };
    let splits = |runs: &[(f32, usize)]| -> Vec<_> {
        run(&config, script(runs))
            .into_iter()
            .filter_map(|(_, e)| if let Split { at } = e { Some(at.0 / CHUNK.0) } else { None })
            .collect()
    };
    // Pauses at 20 (4 chunks) and 50 (8 chunks): the middle of the longer one.
    assert_eq!(splits(&[(0.9, 20), (0.0, 4), (0.9, 26), (0.0, 8), (0.9, 60)]), [54]);
    // Without a pause, at the limit, again and again.
    assert_eq!(splits(&[(0.9, 250)]), [100, 200]);
    assert_eq!(splits(&[(0.9, 99), (0.0, 30)]), [0u64; 0]);
}

/// Pseudo-random numbers between 0 and 1 (xorshift64*), the same every time.
fn random(seed: u64) -> impl Iterator<Item = f32> {
    let mut x = seed;
    std::iter::repeat_with(move || {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        (x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 40) as f32 / (1u64 << 24) as f32
    })
}

#[test]
fn two_hours_of_noise_with_a_word_each_five_minutes() {
    // B11, from the VAD on: noise scores up to 0.45 with a spike above `on` each 3 s or so; words of
    // 0.3 to 0.6 s that do not begin on a chunk boundary.
    let chunks = 2 * 3_600 * 16_000 / CHUNK.0;
    let mut numbers = random(11);
    let words: Vec<(u64, u64)> = (1..24)
        .map(|i| {
            let start = i * 300 * 16_000 + (numbers.next().unwrap() * 16_000.0) as u64;
            (start, start + 4_800 + (numbers.next().unwrap() * 4_800.0) as u64)
        })
        .collect();
    let probabilities = (0..chunks).map(|chunk| {
        let (from, to) = (chunk * CHUNK.0, (chunk + 1) * CHUNK.0);
        let covered = words.iter().map(|(a, b)| to.min(*b).saturating_sub(from.max(*a))).sum::<u64>();
        let noise = numbers.next().unwrap();
        let noise = if noise > 0.99 { 0.6 } else { noise * 0.45 };
        noise.max(covered as f32 / CHUNK.0 as f32 * 0.95)
    });
    let config = EndpointConfig::default();
    let due = run(&config, probabilities);
    let confirmed: Vec<Samples> = due
        .windows(2)
        .filter_map(|pair| match (pair[0].1, pair[1].1) {
            (Start { voiced, .. }, Confirmed) => Some(voiced),
            _ => None,
        })
        .collect();
    let ends: Vec<Samples> = due
        .iter()
        .filter_map(|(_, e)| if let End { voiced_end } = e { Some(*voiced_end) } else { None })
        .collect();
    assert_eq!((confirmed.len(), ends.len()), (words.len(), words.len()), "every word, and nothing else");
    for ((start, end), (onset, voiced_end)) in words.iter().zip(confirmed.iter().zip(&ends)) {
        assert!(onset.0.abs_diff(*start) < Samples::from_ms(100).0);
        assert!(voiced_end.0.abs_diff(*end) < Samples::from_ms(200).0);
    }
}
