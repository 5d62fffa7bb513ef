//! The system's sound through cpal: finding devices, agreeing on a format, opening streams.

use std::sync::Arc;
use std::time::Duration;

use cpal::traits::{DeviceTrait, HostTrait, StreamTrait};
use cpal::{
    BufferSize, ErrorKind, FromSample, I24, SampleFormat, SizedSample, StreamConfig, SupportedBufferSize,
    SupportedStreamConfig, SupportedStreamConfigRange, U24,
};

use super::callbacks::{self, Alarm};
use super::keeper::{Found, Make, System};
use super::{Choice, DeviceInfo};
use crate::input::InputCallback;
use crate::output::OutputCallback;
use crate::resample::{MAX_RATE_HZ, MIN_RATE_HZ};
use crate::{AudioError, Direction};

/// Periods to try, in milliseconds; some devices only do longer ones. cpal has two of them in its buffer. Of a microphone, the
/// short one is heard of sooner, and the server keeps what is not fetched in time. A speaker that runs dry is heard to
/// do so; it gets 40 ms, which the program's own load does not use up.
const INPUT_PERIODS_MS: [u32; 3] = [10, 20, 40];
const OUTPUT_PERIODS_MS: [u32; 3] = [20, 10, 40];
/// ALSA may miss that a device is gone unless it looks by itself.
const POLL: Duration = Duration::from_millis(100);

/// While it lives, what ALSA would print on this thread stays unprinted: it prints for each device that
/// is configured and not there.
struct Quiet {
    #[cfg(target_os = "linux")]
    _output: Option<std::rc::Rc<std::cell::RefCell<alsa::Output>>>,
}

impl Quiet {
    fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            _output: alsa::Output::local_error_handler().ok(),
        }
    }
}

pub(super) struct Cpal {
    host: cpal::Host,
    _quiet: Quiet,
}

impl Cpal {
    pub(super) fn new() -> Self {
        let quiet = Quiet::new();
        Self { host: cpal::default_host(), _quiet: quiet }
    }
}

#[derive(Clone)]
pub(super) struct CpalDevice {
    device: cpal::Device,
    config: SupportedStreamConfig,
}

fn info(device: &cpal::Device) -> Option<DeviceInfo> {
    let id = device.id().ok()?.to_string();
    let name = device.description().map_or_else(|_| id.clone(), |description| description.name().to_owned());
    Some(DeviceInfo { id, name })
}

/// ALSA lists each way to the same card, and converters that are no devices. Kept are the sound
/// servers, each card once with conversion (`plughw`), and what the user defined; `default` has its own [`Choice`].
fn is_worth_listing(id: &str) -> bool {
    const NO_DEVICES: [&str; 22] = [
        "default",
        "hw",
        "null",
        "lavrate",
        "samplerate",
        "speexrate",
        "speex",
        "upmix",
        "vdownmix",
        "oss",
        "jack",
        "a52",
        "front",
        "rear",
        "center_lfe",
        "side",
        "iec958",
        "spdif",
        "dmix",
        "dsnoop",
        "sysdefault",
        "usbstream",
    ];
    let Some(name) = id.strip_prefix("alsa:") else { return true };
    let kind = name.split(':').next().unwrap_or(name);
    let is_numbered =
        name.strip_prefix("plughw:CARD=").is_some_and(|c| c.starts_with(|c: char| c.is_ascii_digit()));
    !(NO_DEVICES.contains(&kind) || kind.starts_with("surround") || is_numbered)
}

fn failed(direction: Direction, device: &str, error: &cpal::Error) -> AudioError {
    let device = device.to_owned();
    match error.kind() {
        ErrorKind::DeviceNotAvailable => AudioError::DeviceGone { direction, device },
        ErrorKind::DeviceBusy => AudioError::DeviceBusy { direction, device },
        ErrorKind::PermissionDenied => AudioError::DeviceDenied { direction, device },
        _ => AudioError::DeviceFailed { direction, device, reason: error.to_string() },
    }
}

fn is_usable(format: SampleFormat, rate_hz: u32) -> bool {
    let is_pcm = format.is_int() || format.is_uint() || format.is_float();
    is_pcm && (MIN_RATE_HZ..=MAX_RATE_HZ).contains(&rate_hz)
}

/// What the device prefers, if it can be used; else the best of what it offers.
fn agree(direction: Direction, device: &cpal::Device) -> Result<Option<SupportedStreamConfig>, cpal::Error> {
    let preferred = match direction {
        Direction::Input => device.default_input_config(),
        Direction::Output => device.default_output_config(),
    };
    match preferred {
        Ok(config) if is_usable(config.sample_format(), config.sample_rate()) => return Ok(Some(config)),
        Err(error) if error.kind() != ErrorKind::UnsupportedConfig => return Err(error),
        _ => {}
    }
    let mut offers: Vec<SupportedStreamConfigRange> = match direction {
        Direction::Input => device.supported_input_configs()?.collect(),
        Direction::Output => device.supported_output_configs()?.collect(),
    };
    offers.sort_by(|a, b| b.cmp_default_heuristics(a));
    Ok(offers
        .into_iter()
        .map(|offer| offer.try_with_standard_sample_rate().unwrap_or_else(|| offer.with_max_sample_rate()))
        .find(|config| is_usable(config.sample_format(), config.sample_rate())))
}

/// Builds a stream with the first period that the device takes.
fn with_period<S>(
    config: &SupportedStreamConfig,
    periods_ms: [u32; 3],
    mut build: impl FnMut(StreamConfig) -> Result<S, cpal::Error>,
) -> Result<S, cpal::Error> {
    let mut last = cpal::Error::new(ErrorKind::UnsupportedConfig);
    for period_ms in periods_ms {
        let wanted = (config.sample_rate() / 1000).max(1) * period_ms;
        let frames = match *config.buffer_size() {
            SupportedBufferSize::Range { min, max } if min <= max => wanted.clamp(min.max(1), max.max(1)),
            _ => wanted,
        };
        match build(StreamConfig { buffer_size: BufferSize::Fixed(frames), ..config.config() }) {
            Err(error) if error.kind() == ErrorKind::UnsupportedConfig => last = error,
            result => return result,
        }
    }
    Err(last)
}

/// Calls `$function::<T>($arguments)` with the type of `$format`.
macro_rules! by_format {
    ($format:expr, $function:ident $arguments:tt) => {
        match $format {
            SampleFormat::I8 => $function::<i8> $arguments,
            SampleFormat::I16 => $function::<i16> $arguments,
            SampleFormat::I24 => $function::<I24> $arguments,
            SampleFormat::I32 => $function::<i32> $arguments,
            SampleFormat::I64 => $function::<i64> $arguments,
            SampleFormat::U8 => $function::<u8> $arguments,
            SampleFormat::U16 => $function::<u16> $arguments,
            SampleFormat::U24 => $function::<U24> $arguments,
            SampleFormat::U32 => $function::<u32> $arguments,
            SampleFormat::U64 => $function::<u64> $arguments,
            SampleFormat::F32 => $function::<f32> $arguments,
            SampleFormat::F64 => $function::<f64> $arguments,
            _ => Err(cpal::Error::new(ErrorKind::UnsupportedConfig)),
        }
    };
}

fn made<C>(make: &mut Make<C>) -> Result<C, cpal::Error> {
    make().map_err(|error| cpal::Error::with_message(ErrorKind::InvalidInput, error.to_string()))
}

fn input_of<T>(
    found: &CpalDevice,
    mut make: Make<InputCallback>,
    alarm: &Arc<Alarm>,
) -> Result<cpal::Stream, cpal::Error>
where
    T: SizedSample + Send + 'static,
    f32: FromSample<T>,
{
    with_period(&found.config, INPUT_PERIODS_MS, |config| {
        let callback = callbacks::input::<T>(made(&mut make)?, usize::from(config.channels));
        found.device.build_input_stream(config, callback, alarm.callback(), Some(POLL))
    })
}

fn output_of<T>(
    found: &CpalDevice,
    mut make: Make<OutputCallback>,
    alarm: &Arc<Alarm>,
) -> Result<cpal::Stream, cpal::Error>
where
    T: SizedSample + FromSample<f32> + Send + 'static,
{
    with_period(&found.config, OUTPUT_PERIODS_MS, |config| {
        let callback = callbacks::output::<T>(made(&mut make)?, usize::from(config.channels));
        found.device.build_output_stream(config, callback, alarm.callback(), Some(POLL))
    })
}

impl System for Cpal {
    type Device = CpalDevice;
    type Stream = cpal::Stream;

    fn list(&self, direction: Direction) -> Result<Vec<DeviceInfo>, AudioError> {
        let devices = match direction {
            Direction::Input => self.host.input_devices(),
            Direction::Output => self.host.output_devices(),
        };
        let devices = devices.map_err(|error| failed(direction, "any", &error))?;
        let mut list: Vec<DeviceInfo> = Vec::new();
        for info in devices.filter_map(|device| info(&device)) {
            if is_worth_listing(&info.id) && !list.iter().any(|known| known.id == info.id) {
                list.push(info);
            }
        }
        Ok(list)
    }

    fn default_id(&self, direction: Direction) -> Option<String> {
        let device = match direction {
            Direction::Input => self.host.default_input_device(),
            Direction::Output => self.host.default_output_device(),
        };
        Some(device?.id().ok()?.to_string())
    }

    fn find(&self, direction: Direction, choice: &Choice) -> Result<Found<CpalDevice>, AudioError> {
        let device = match (choice, direction) {
            (Choice::Device(id), _) => {
                let gone = || AudioError::DeviceGone { direction, device: id.clone() };
                let id = id.parse().map_err(|_| gone())?;
                self.host.device_by_id(&id).ok_or_else(gone)?
            }
            (_, Direction::Input) => {
                self.host.default_input_device().ok_or(AudioError::NoDevice { direction })?
            }
            (_, Direction::Output) => {
                self.host.default_output_device().ok_or(AudioError::NoDevice { direction })?
            }
        };
        let info = info(&device).ok_or(AudioError::NoDevice { direction })?;
        let config = agree(direction, &device).map_err(|error| {
            let failed = failed(direction, &info.name, &error);
            match failed {
                AudioError::DeviceBusy { .. } | AudioError::DeviceDenied { .. } => failed,
                // ALSA has a default even where it leads nowhere.
                _ if *choice == Choice::Default => {
                    tracing::debug!(%error, %direction, "the default can't be opened");
                    AudioError::NoDevice { direction }
                }
                _ => failed,
            }
        })?;
        let config = config.ok_or_else(|| AudioError::DeviceFailed {
            direction,
            device: info.name.clone(),
            reason: "it offers no format that can be converted".into(),
        })?;
        let rate_hz = config.sample_rate();
        Ok(Found { device: CpalDevice { device, config }, info, rate_hz })
    }

    fn open_input(
        &self,
        found: &Found<CpalDevice>,
        make: Make<InputCallback>,
        alarm: &Arc<Alarm>,
    ) -> Result<cpal::Stream, AudioError> {
        let device = &found.device;
        let stream = by_format!(device.config.sample_format(), input_of(device, make, alarm));
        stream
            .and_then(|stream| stream.play().map(|()| stream))
            .map_err(|error| failed(Direction::Input, &found.info.name, &error))
    }

    fn open_output(
        &self,
        found: &Found<CpalDevice>,
        make: Make<OutputCallback>,
        alarm: &Arc<Alarm>,
    ) -> Result<cpal::Stream, AudioError> {
        let device = &found.device;
        let stream = by_format!(device.config.sample_format(), output_of(device, make, alarm));
        stream
            .and_then(|stream| stream.play().map(|()| stream))
            .map_err(|error| failed(Direction::Output, &found.info.name, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_of_alsa_is_listed_once() {
        for id in [
            "alsa:pulse",
            "alsa:pipewire",
            "alsa:plughw:CARD=Device,DEV=0",
            "alsa:my_headset",
            "wasapi:hw",
            "coreaudio:null",
        ] {
            assert!(is_worth_listing(id), "{id}");
        }
        for id in [
            "alsa:default",
            "alsa:null",
            "alsa:hw:CARD=PCH,DEV=0",
            "alsa:plughw:CARD=0,DEV=0",
            "alsa:surround51:CARD=PCH,DEV=0",
            "alsa:front:CARD=PCH,DEV=0",
            "alsa:sysdefault:CARD=PCH",
            "alsa:samplerate",
        ] {
            assert!(!is_worth_listing(id), "{id}");
        }
    }

    #[test]
    fn what_cannot_be_converted_is_not_usable() {
        assert!(is_usable(SampleFormat::F32, 48_000) && is_usable(SampleFormat::U8, 8_000));
        assert!(!is_usable(SampleFormat::DsdU8, 48_000) && !is_usable(SampleFormat::F32, 1_411_200));
    }
}
