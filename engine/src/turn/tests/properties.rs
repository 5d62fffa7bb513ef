//! What holds for any order of events.

use proptest::prelude::*;

use super::super::Samples;
use super::super::endpoint::SpeechEvent;
use super::super::machine::{TurnState, step};
use super::super::message::{Effect, Event, Stage, TurnNumber};

fn event() -> impl Strategy<Value = Event> {
    let turn = || (0u64..8).prop_map(TurnNumber);
    let text = || prop_oneof![Just("what time is it"), Just("my number is"), Just(""), Just("stop")];
    let stage = prop_oneof![Just(Stage::Transcribe), Just(Stage::Reply), Just(Stage::Speak)];
    let at = || (0u64..400_000).prop_map(Samples);
    prop_oneof![
        3 => at().prop_map(|from| Event::Speech(SpeechEvent::Start { from, voiced: from })),
        3 => Just(Event::Speech(SpeechEvent::Confirmed)),
        1 => Just(Event::Speech(SpeechEvent::Dropped)),
        3 => at().prop_map(|voiced_end| Event::Speech(SpeechEvent::MaybeEnd { voiced_end })),
        1 => Just(Event::Speech(SpeechEvent::Resumed)),
        1 => at().prop_map(|at| Event::Speech(SpeechEvent::Split { at })),
        3 => at().prop_map(|voiced_end| Event::Speech(SpeechEvent::End { voiced_end })),
        1 => text().prop_map(|text| Event::Typed(text.into())),
        1 => Just(Event::Stop),
        5 => (turn(), text()).prop_map(|(turn, text)| Event::Transcript { turn, text: text.into() }),
        5 => (turn(), text()).prop_map(|(turn, text)| Event::Clause { turn, text: text.into() }),
        2 => turn().prop_map(|turn| Event::ReplyDone { turn }),
        5 => (turn(), 0usize..3, 0u64..30_000, 0usize..20).prop_map(|(turn, clause, samples, spoken_bytes)| {
            Event::Chunk { turn, clause, samples, spoken_bytes }
        }),
        3 => (turn(), 0usize..3).prop_map(|(turn, clause)| Event::ClauseSpoken { turn, clause }),
        5 => (turn(), 0u64..60_000).prop_map(|(turn, samples)| Event::Played { turn, samples }),
        1 => (turn(), stage).prop_map(|(turn, stage)| Event::Failed { turn, stage, reason: "no".into() }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn effects_are_in_order_for_any_events(events in prop::collection::vec(event(), 0..120)) {
        let mut state = TurnState::default();
        let mut now = Samples::ZERO;
        let mut open: Option<TurnNumber> = None;
        let mut newest = TurnNumber(0);
        let mut gone: Vec<TurnNumber> = Vec::new();
        let mut next_chunk = 0;
        for event in events {
            now += Samples(512);
            let (next, effects) = step(&state, now, event);
            for effect in effects {
                match effect {
                    Effect::Begin { turn, .. } => {
                        prop_assert_eq!(open, None);
                        prop_assert!(turn > newest, "numbers only go up");
                        (open, newest) = (Some(turn), turn);
                    }
                    Effect::Closed { turn, .. } => {
                        prop_assert_eq!(open, Some(turn));
                        open = None;
                    }
                    Effect::Reply { turn, text } => {
                        prop_assert!(!gone.contains(&turn) && !text.trim().is_empty());
                        next_chunk = 0;
                    }
                    Effect::Play { turn, chunk } => {
                        prop_assert_eq!(next.current_turn().or(Some(turn)), Some(turn));
                        prop_assert!(!gone.contains(&turn), "a cancelled turn is never played");
                        prop_assert_eq!(chunk, next_chunk, "chunks in order, each once");
                        next_chunk += 1;
                    }
                    Effect::Speak { turn, .. } => prop_assert!(!gone.contains(&turn)),
                    Effect::Transcribe { turn, from, to } => {
                        prop_assert!(!gone.contains(&turn));
                        prop_assert!(to >= from);
                        newest = newest.max(turn);
                    }
                    Effect::Cancel { turn } | Effect::Silence { turn } => gone.push(turn),
                    _ => {}
                }
            }
            state = next;
        }
    }

    #[test]
    fn messages_of_a_cancelled_turn_change_nothing(late in event(), stop_first in any::<bool>()) {
        // A turn that is being spoken, then interrupted: its number is 1.
        let turn = TurnNumber(1);
        let mut state = TurnState::default();
        let start = SpeechEvent::Start { from: Samples(0), voiced: Samples(0) };
        let mut events = vec![
            Event::Speech(start),
            Event::Speech(SpeechEvent::Confirmed),
            Event::Speech(SpeechEvent::MaybeEnd { voiced_end: Samples(8_000) }),
            Event::Speech(SpeechEvent::End { voiced_end: Samples(8_000) }),
            Event::Transcript { turn, text: "what time is it".into() },
            Event::Clause { turn, text: "Noon.".into() },
            Event::Chunk { turn, clause: 0, samples: 9_000, spoken_bytes: 5 },
            Event::Played { turn, samples: 100 },
        ];
        events.push(if stop_first { Event::Stop } else { Event::Speech(start) });
        events.push(Event::Speech(SpeechEvent::Confirmed));
        for (i, event) in (1..).zip(events) {
            state = step(&state, Samples(i * 4_000), event).0;
        }
        prop_assert_eq!(state.current_turn(), None);
        let late = match late {
            Event::Transcript { text, .. } => Event::Transcript { turn, text },
            Event::Clause { text, .. } => Event::Clause { turn, text },
            Event::ReplyDone { .. } => Event::ReplyDone { turn },
            Event::Chunk { clause, samples, spoken_bytes, .. } => Event::Chunk { turn, clause, samples, spoken_bytes },
            Event::ClauseSpoken { clause, .. } => Event::ClauseSpoken { turn, clause },
            Event::Played { samples, .. } => Event::Played { turn, samples },
            Event::Failed { stage, reason, .. } => Event::Failed { turn, stage, reason },
            Event::Speech(_) | Event::Typed(_) | Event::Stop => return Ok(()),
        };
        let (after, effects) = step(&state, Samples(90_000), late);
        prop_assert_eq!(after, state);
        prop_assert_eq!(effects, []);
    }
}
