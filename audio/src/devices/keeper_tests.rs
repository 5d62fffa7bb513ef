//! The system is played: a table of devices that come, go, stand still and are wrong about their rate.

use std::f32::consts::TAU;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};

use super::*;
use crate::echo::EchoMode;
use crate::microphone::{self, Microphone};
use crate::output::{self, OutputConfig, OutputControl, OutputFeeder};

const INPUT: Direction = Direction::Input;
const OUTPUT: Direction = Direction::Output;

#[derive(Clone)]
struct Device {
    direction: Direction,
    id: &'static str,
    said_hz: u32,
    real_hz: u32,
    /// Streams are open and nothing moves.
    stands_still: bool,
}

enum Callback {
    Input(InputCallback),
    Output(OutputCallback),
}

/// A stream that the test drives as the device would.
struct Running {
    id: &'static str,
    callback: Callback,
    alarm: Arc<Alarm>,
}

/// By number; a stream takes itself out when it is dropped.
#[derive(Default)]
struct Table {
    devices: Vec<Device>,
    defaults: Vec<(Direction, &'static str)>,
    running: HashMap<u64, Running>,
    opened: u64,
}

#[derive(Clone, Default)]
struct Played(Arc<Mutex<Table>>);

struct Stream(Played, u64);

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().running.remove(&self.1);
    }
}

impl Played {
    fn run(&self, found: &Found<&'static str>, callback: Callback, alarm: &Arc<Alarm>) -> Stream {
        let mut table = self.0.lock().unwrap();
        table.opened += 1;
        let number = table.opened;
        table.running.insert(number, Running { id: found.device, callback, alarm: alarm.clone() });
        drop(table);
        Stream(self.clone(), number)
    }
}

impl System for Played {
    type Device = &'static str;
    type Stream = Stream;

    fn list(&self, direction: Direction) -> Result<Vec<DeviceInfo>, AudioError> {
        let table = self.0.lock().unwrap();
        let here = table.devices.iter().filter(|device| device.direction == direction);
        Ok(here.map(|device| DeviceInfo { id: device.id.into(), name: device.id.to_uppercase() }).collect())
    }

    fn default_id(&self, direction: Direction) -> Option<String> {
        let table = self.0.lock().unwrap();
        let here = |id: &str| table.devices.iter().any(|device| device.id == id);
        table.defaults.iter().find(|(d, id)| *d == direction && here(id)).map(|(_, id)| (*id).to_owned())
    }

    fn find(&self, direction: Direction, choice: &Choice) -> Result<Found<&'static str>, AudioError> {
        let id = match choice {
            Choice::Device(id) => id.clone(),
            _ => self.default_id(direction).ok_or(AudioError::NoDevice { direction })?,
        };
        let table = self.0.lock().unwrap();
        let device = table.devices.iter().find(|device| device.direction == direction && device.id == id);
        let device = device.ok_or(AudioError::DeviceGone { direction, device: id })?;
        let info = DeviceInfo { id: device.id.into(), name: device.id.to_uppercase() };
        Ok(Found { device: device.id, info, rate_hz: device.said_hz })
    }

    fn open_input(
        &self,
        found: &Found<&'static str>,
        mut make: Make<InputCallback>,
        alarm: &Arc<Alarm>,
    ) -> Result<Stream, AudioError> {
        Ok(self.run(found, Callback::Input(make()?), alarm))
    }

    fn open_output(
        &self,
        found: &Found<&'static str>,
        mut make: Make<OutputCallback>,
        alarm: &Arc<Alarm>,
    ) -> Result<Stream, AudioError> {
        Ok(self.run(found, Callback::Output(make()?), alarm))
    }
}

struct World {
    system: Played,
    sides: Sides<Played>,
    notices: Receiver<Notice>,
    microphone: Microphone,
    control: OutputControl,
    feeder: OutputFeeder,
    now_ms: u64,
    level: f32,
    /// Microphones hear a tone of so many Hz instead of the level.
    tone_hz: Option<f32>,
    heard: Vec<f32>,
    /// What the speakers got.
    sent: Vec<f32>,
}

fn device(direction: Direction, id: &'static str, said_hz: u32) -> Device {
    Device { direction, id, said_hz, real_hz: said_hz, stands_still: false }
}

impl World {
    fn new(devices: Vec<Device>, choices: [Choice; 2]) -> Self {
        let system = Played::default();
        {
            let mut table = system.0.lock().unwrap();
            for device in &devices {
                if !table.defaults.iter().any(|(direction, _)| *direction == device.direction) {
                    table.defaults.push((device.direction, device.id));
                }
            }
            table.devices = devices;
        }
        let (microphone, input) = microphone::new(EchoMode::Headphones);
        let (control, feeder, output) = output::new(OutputConfig::new(24_000)).unwrap();
        let (told, notices) = mpsc::channel();
        let sides = Sides::new(system.clone(), Ports { input, output }, told, choices);
        Self {
            system,
            sides,
            notices,
            microphone,
            control,
            feeder,
            now_ms: 0,
            level: 0.1,
            tone_hz: None,
            heard: Vec::new(),
            sent: Vec::new(),
        }
    }

    fn change(&self, change: impl FnOnce(&mut Table)) {
        change(&mut self.system.0.lock().unwrap());
    }

    /// The device is pulled out, and the system tells its streams.
    fn pull(&self, id: &str) {
        self.change(|table| {
            table.devices.retain(|device| device.id != id);
            for stream in table.running.values().filter(|stream| stream.id == id) {
                stream.alarm.callback()(cpal::ErrorKind::DeviceNotAvailable.into());
            }
        });
    }

    /// Real time passes: devices deliver and ask every 10 ms, the keeper ticks every 50.
    fn pass(&mut self, ms: u64) -> Vec<Notice> {
        for _ in 0..ms / 10 {
            if self.now_ms.is_multiple_of(50) {
                self.sides.tick(Duration::from_millis(self.now_ms));
            }
            let mut table = self.system.0.lock().unwrap();
            let Table { devices, running, .. } = &mut *table;
            for stream in running.values_mut() {
                let Some(device) = devices.iter().find(|d| d.id == stream.id && !d.stands_still) else {
                    continue;
                };
                let (now_ns, frames) = (self.now_ms * 1_000_000, device.real_hz as usize / 100);
                let mut block = vec![self.level; frames];
                match &mut stream.callback {
                    Callback::Input(callback) => {
                        if let Some(hz) = self.tone_hz {
                            // Of whole periods in a second, so that the time of day is phase enough.
                            let from = self.now_ms as usize % 1_000 * device.real_hz as usize / 1_000;
                            for (i, sample) in block.iter_mut().enumerate() {
                                *sample = (TAU * hz * (from + i) as f32 / device.real_hz as f32).sin();
                            }
                        }
                        callback.deliver(now_ns, &block, 1, |sample| sample);
                    }
                    Callback::Output(callback) => {
                        callback.supply(now_ns, &mut block, 1, |sample: f32| sample);
                        self.sent.extend(block);
                    }
                }
            }
            drop(table);
            self.microphone.read(&mut self.heard).unwrap();
            self.now_ms += 10;
        }
        self.notices.try_iter().collect()
    }

    fn name(&self, direction: Direction) -> Option<String> {
        let status = self.sides.status();
        let side = if direction == INPUT { status.input } else { status.output };
        side.device.map(|info| info.id)
    }
}

fn started(direction: Direction, device: &str, rate_hz: u32) -> Notice {
    Notice::Started { direction, device: device.into(), rate_hz }
}

#[test]
fn b32_a_microphone_that_vanishes_gives_way_to_the_default_and_comes_back() {
    let devices =
        vec![device(INPUT, "builtin", 44_100), device(INPUT, "usb", 48_000), device(OUTPUT, "out", 48_000)];
    let mut world = World::new(devices, [Choice::Device("usb".into()), Choice::Default]);
    assert_eq!(world.pass(2_000), [started(INPUT, "USB", 48_000), started(OUTPUT, "OUT", 48_000)]);
    world.pull("usb");
    world.heard.clear();
    let notices = world.pass(1_000);
    assert_eq!(notices.len(), 3, "{notices:?}");
    assert!(matches!(&notices[0], Notice::Lost { direction: INPUT, device, .. } if device == "USB"));
    assert_eq!(notices[1], Notice::FellBack { direction: INPUT, wanted: "usb".into() });
    assert_eq!(notices[2], started(INPUT, "BUILTIN", 44_100));
    assert!(world.heard.len() > 13_000, "sound in far less than a second: {}", world.heard.len());
    assert!(world.sides.status().input.is_fallback);
    // It is plugged in again.
    world.change(|table| table.devices.push(device(INPUT, "usb", 48_000)));
    assert_eq!(world.pass(2_000), [started(INPUT, "USB", 48_000)]);
    assert!(!world.sides.status().input.is_fallback);
    assert_eq!(world.sides.status().lost_ms, 0);
}

#[test]
fn b32_a_host_without_devices_says_so_once_and_goes_on_when_there_is_one() {
    let mut world = World::new(vec![], [Choice::Default, Choice::Default]);
    let notices = world.pass(10_000);
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(notices[0].to_string().contains("no microphone was found; plug one in"), "{}", notices[0]);
    assert!(notices[1].to_string().contains("no speaker was found"), "{}", notices[1]);
    assert_eq!(world.sides.status(), SoundStatus::default());
    assert!(world.heard.is_empty());
    world.change(|table| {
        table.devices.push(device(INPUT, "mic", 16_000));
        table.defaults.push((INPUT, "mic"));
    });
    assert_eq!(world.pass(1_000), [started(INPUT, "MIC", 16_000)]);
    assert!(!world.heard.is_empty());
}

#[test]
fn b33_a_device_that_is_wrong_about_its_rate_is_rebuilt_once() {
    for direction in [INPUT, OUTPUT] {
        let mut wrong = device(direction, "headset", 48_000);
        wrong.real_hz = 24_000;
        let other = if direction == INPUT { OUTPUT } else { INPUT };
        let mut world =
            World::new(vec![wrong, device(other, "other", 48_000)], [Choice::Default, Choice::Default]);
        world.pass(100);
        let notices = world.pass(10_000);
        let device = "HEADSET".to_owned();
        let wrong_rate = Notice::WrongRate { direction, device, said_hz: 48_000, real_hz: 24_000 };
        assert_eq!(notices, [wrong_rate, started(direction, "HEADSET", 24_000)]);
        assert_eq!(world.sides.status().lost_ms, 0, "another rate is no loss");
        world.heard.clear();
        world.pass(1_000);
        assert!(world.heard.len().abs_diff(16_000) < 400, "{}", world.heard.len());
        // A tone keeps its pitch, recorded and played: the speaker takes what it gets at its real rate.
        (world.tone_hz, world.heard, world.sent) = (Some(440.0), Vec::new(), Vec::new());
        world.control.play(1);
        let tone: Vec<f32> = (0..36_000).map(|i| (TAU * 440.0 * i as f32 / 24_000.0).sin()).collect();
        let mut rest = &tone[..];
        for _ in 0..100 {
            while let taken @ 1.. = world.feeder.offer(1, rest).unwrap() {
                rest = &rest[taken..];
            }
            world.pass(10);
        }
        let output_hz = if direction == OUTPUT { 24_000.0 } else { 48_000.0 };
        for (sound, rate_hz) in [(&world.heard, 16_000.0), (&world.sent, output_hz)] {
            let middle = &sound[sound.len() / 4..];
            let periods = middle.windows(2).filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0).count();
            let hz = periods as f32 * rate_hz / middle.len() as f32;
            assert!((hz - 440.0).abs() < 4.4, "{direction}: {hz} Hz");
        }
    }
}

#[test]
fn a_default_that_changes_is_followed_and_a_choice_is_not_led_away() {
    let devices = vec![device(INPUT, "a", 48_000), device(INPUT, "b", 48_000), device(OUTPUT, "o", 48_000)];
    let mut world = World::new(devices.clone(), [Choice::Default, Choice::Off]);
    assert_eq!(world.pass(500), [started(INPUT, "A", 48_000)]);
    world.change(|table| table.defaults[0].1 = "b");
    assert_eq!(world.pass(1_500), [started(INPUT, "B", 48_000)]);
    world.sides.choose(INPUT, Choice::Device("a".into()));
    assert_eq!(world.pass(1_500), [started(INPUT, "A", 48_000)]);
    world.change(|table| table.defaults[0].1 = "a");
    world.change(|table| table.defaults[0].1 = "b");
    assert_eq!(world.pass(3_000), []);
    assert_eq!((world.name(INPUT).as_deref(), world.name(OUTPUT)), (Some("a"), None));
    world.sides.choose(INPUT, Choice::Off);
    world.heard.clear();
    world.pass(1_000);
    assert_eq!(world.name(INPUT), None);
    assert!(world.heard.len() < 800, "off is off: {}", world.heard.len());
}

#[test]
fn a_stream_that_stands_still_is_rebuilt_without_haste() {
    let mut world = World::new(vec![device(INPUT, "mic", 48_000)], [Choice::Default, Choice::Off]);
    world.pass(2_000);
    world.change(|table| table.devices[0].stands_still = true);
    let notices = world.pass(1_500);
    assert!(
        matches!(&notices[..], [Notice::Lost { reason, .. }, Notice::Started { .. }] if reason == "it stands still")
    );
    // One that never begins is given more time each try.
    let opened = world.system.0.lock().unwrap().opened;
    world.pass(20_000);
    assert!(world.system.0.lock().unwrap().opened - opened <= 5);
    world.change(|table| table.devices[0].stands_still = false);
    world.heard.clear();
    world.pass(1_000);
    assert!(world.heard.len() > 5_000);
}

#[test]
fn a_stream_that_reports_errors_is_given_up_when_nothing_moves() {
    let mut world = World::new(vec![device(OUTPUT, "out", 48_000)], [Choice::Off, Choice::Default]);
    world.pass(50);
    let fault = |world: &World| {
        world.change(|table| {
            for stream in table.running.values() {
                stream.alarm.callback()(cpal::ErrorKind::BackendError.into());
            }
        });
    };
    // Some at the start, and from time to time: it plays on.
    for _ in 0..40 {
        fault(&world);
        assert_eq!(world.pass(100).iter().filter(|notice| matches!(notice, Notice::Lost { .. })).count(), 0);
    }
    assert_eq!(world.system.0.lock().unwrap().opened, 1);
    world.change(|table| table.devices[0].stands_still = true);
    world.pass(100);
    fault(&world);
    let notices = world.pass(1_000);
    assert!(
        matches!(&notices[..], [Notice::Lost { reason, .. }, Notice::Started { .. }] if reason == "the driver reports an error"),
        "{notices:?}"
    );
    // A new one that only has errors is given up earlier than one that is silent.
    let opened = world.system.0.lock().unwrap().opened;
    for _ in 0..110 {
        fault(&world);
        world.pass(100);
    }
    assert!((3..=6).contains(&(world.system.0.lock().unwrap().opened - opened)));
}

#[test]
fn a_reply_goes_on_at_the_speaker_that_takes_the_place_of_a_lost_one() {
    let devices = vec![device(OUTPUT, "headset", 48_000), device(OUTPUT, "builtin", 44_100)];
    let mut world = World::new(devices, [Choice::Off, Choice::Default]);
    world.control.play(1);
    let reply = vec![0.5f32; 48_000];
    let mut rest = &reply[..];
    for round in 0..400 {
        while let taken @ 1.. = world.feeder.offer(1, rest).unwrap() {
            rest = &rest[taken..];
        }
        if rest.is_empty() {
            world.feeder.finish(1).unwrap();
        }
        if round == 50 {
            world.pull("headset");
            world.change(|table| table.defaults[0].1 = "builtin");
        }
        world.pass(10);
    }
    assert!(world.control.played(1).abs_diff(48_000) <= 1, "{}", world.control.played(1));
    assert_eq!(world.name(OUTPUT).as_deref(), Some("builtin"));
}

#[test]
fn b03_no_signal_is_told_once_and_taken_back() {
    let mut world = World::new(vec![device(INPUT, "mic", 48_000)], [Choice::Default, Choice::Off]);
    world.pass(1_000);
    world.level = 0.0;
    assert_eq!(world.pass(300_000), [Notice::NoSignal { device: "MIC".into() }]);
    world.level = 1e-4;
    assert_eq!(world.pass(1_000), [Notice::SignalBack]);
}

#[test]
fn lost_sound_is_told_and_stays_counted_over_a_rebuild() {
    let mut world = World::new(vec![device(INPUT, "mic", 48_000)], [Choice::Default, Choice::Off]);
    world.pass(3_000);
    // The machine is busy for 300 ms: the callback is not called.
    world.change(|table| table.devices[0].stands_still = true);
    world.pass(300);
    world.change(|table| table.devices[0].stands_still = false);
    let notices = world.pass(4_000);
    assert!(matches!(notices[..], [Notice::SoundLost { lost_ms: 290..=310 }]), "{notices:?}");
    world.pull("mic");
    world.change(|table| table.devices.push(device(INPUT, "mic", 48_000)));
    world.pass(3_000);
    assert!((290..=310).contains(&world.sides.status().lost_ms));
}
