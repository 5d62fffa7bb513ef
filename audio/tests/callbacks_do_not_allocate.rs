//! What runs in a device's callback, or once a millisecond beside it, allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use repartee_audio::input;
use repartee_audio::output::{self, OutputConfig};
use repartee_audio::resample::StreamResampler;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no counter any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and releases during `work`, on this thread.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1u8; 100]))), 2);
}

#[test]
fn output_callback() {
    let (control, mut feeder, port) = output::new(OutputConfig::new(24_000)).unwrap();
    let (mut callback, _tap) = port.connect(48_000).unwrap();
    let sound = vec![0.5; 24_000];
    let mut frames = vec![0i16; 2 * 480];
    // Fresh, playing, ducked, silenced with a stale rest, the next turn, run dry, a full tap.
    for turn in 1..7 {
        control.play(turn);
        for block in 0..40u64 {
            feeder.offer(turn, &sound).unwrap();
            match block {
                10 => control.duck(turn),
                20 => control.silence(turn),
                _ => {}
            }
            let now_ns = (turn * 40 + block) * 10_000_000;
            let count = allocations(|| {
                callback.supply(now_ns, &mut frames, 2, |sample| (sample * 32_767.0) as i16);
            });
            assert_eq!(count, 0, "turn {turn}, block {block}");
        }
    }
    assert!(control.counters().dropped_samples > 0 && control.counters().tap_lost_samples > 0);
}

#[test]
fn input_callback() {
    let (mut callback, mut reader) = input::new(44_100, 16_000).unwrap();
    let frames = vec![1i16; 2 * 441];
    let mut out = Vec::with_capacity(160 * 500);
    for block in 0..900u64 {
        // Past 200 blocks the ring overflows; at 220 something is lost; from 400 on the device is wrong about its rate.
        let now_ns =
            block * if block < 400 { 10_000_000 } else { 20_000_000 } + u64::from(block > 220) * 50_000_000;
        let convert = |sample| f32::from(sample) / 32_768.0;
        assert_eq!(allocations(|| callback.deliver(now_ns, &frames, 2, convert)), 0, "{block}");
    }
    let watch = reader.watch();
    assert!(watch.counters().overflowed_samples > 0 && watch.counters().lost_samples > 0);
    assert_ne!(watch.real_hz(), 44_100);
    reader.read(&mut out).unwrap();
    assert!(!out.is_empty());
}

#[test]
fn stream_resampling_into_room() {
    for (from_hz, to_hz) in [(48_000, 16_000), (44_100, 48_000), (44_101, 48_000), (16_000, 16_000)] {
        let mut stream = StreamResampler::new(from_hz, to_hz).unwrap();
        let piece = vec![0.1; 441];
        let mut out = Vec::with_capacity(192_000);
        let count = allocations(|| {
            for _ in 0..50 {
                stream.push(&piece, &mut out).unwrap();
            }
        });
        assert_eq!(count, 0, "{from_hz} to {to_hz}");
        assert!(!out.is_empty());
    }
}

#[cfg(feature = "devices")]
#[test]
fn what_the_system_calls() {
    use std::sync::Arc;

    use cpal::{
        InputCallbackInfo, InputStreamTimestamp, OutputCallbackInfo, OutputStreamTimestamp, StreamInstant,
    };
    use repartee_audio::devices::callbacks::{self, Alarm};

    let (callback, ms) = (StreamInstant::from_millis(100), StreamInstant::from_millis);
    let heard = InputCallbackInfo::new(InputStreamTimestamp { callback, capture: ms(90) });
    let asked = OutputCallbackInfo::new(OutputStreamTimestamp { callback, playback: ms(120) });

    let (input, mut reader) = input::new(48_000, 16_000).unwrap();
    let mut record = callbacks::input::<u16>(input, 2);
    let frames = [40_000u16; 960];
    assert_eq!(allocations(|| (0..300).for_each(|_| record(&frames, &heard))), 0);
    let mut out = Vec::new();
    reader.read(&mut out).unwrap();
    assert!(reader.heard_at().is_some());
    assert!((out[8_000] - 0.22).abs() < 0.01, "{}", out[8_000]);

    let (control, mut feeder, port) = output::new(OutputConfig::new(24_000)).unwrap();
    let (output, _tap) = port.connect(48_000).unwrap();
    let mut play = callbacks::output::<cpal::I24>(output, 2);
    let mut frames = [cpal::I24::new(0).unwrap(); 960];
    control.play(1);
    for _ in 0..300 {
        feeder.offer(1, &[2.0; 240]).unwrap();
        assert_eq!(allocations(|| play(&mut frames, &asked)), 0);
    }
    assert_eq!(frames[959].inner(), (1 << 23) - 1, "limited, not wrapped");
    assert_eq!(control.latency(), std::time::Duration::from_millis(20));

    let alarm = Arc::new(Alarm::default());
    let mut report = alarm.callback();
    let count = allocations(|| {
        report(cpal::ErrorKind::Xrun.into());
        report(cpal::ErrorKind::DeviceChanged.into());
    });
    assert_eq!((count, alarm.gaps(), alarm.reason()), (0, 1, None));
    assert_eq!(allocations(|| report(cpal::ErrorKind::DeviceNotAvailable.into())), 0);
    report(cpal::ErrorKind::BackendError.into());
    assert_eq!(alarm.reason(), Some("the device is gone"));
}
