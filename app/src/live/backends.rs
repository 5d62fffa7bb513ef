//! The devices that compute, and what stands in for one that does not work.
//!
//! Each is opened once and shared by the stages on it. A lost one is opened again; the processor stands in for one that is
//! lost again [soon](SOON) or can't be opened, until the user chooses it anew. The settings stay as they are, so that the next
//! start of the program tries it again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use repartee_engine::backends::Backend;

use crate::commands::setup::{self, BackendName};

/// A device that is lost twice within this time is given up: each loss keeps the user waiting for its models.
const SOON: Duration = Duration::from_secs(600);

/// How a device is opened.
pub(super) type Open = Box<dyn FnMut(BackendName) -> Result<Box<dyn Backend>> + Send>;

/// As the program does.
pub(super) fn open() -> Open {
    Box::new(setup::backend)
}

/// A device that was opened.
#[derive(Clone)]
pub(super) struct Device {
    pub(super) backend: Arc<dyn Backend>,
    /// What it was opened as: the processor, where it stands in for another.
    pub(super) name: BackendName,
    /// Different for each, and for one that was opened again.
    pub(super) number: u64,
}

/// What is done about a lost device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It is opened again.
    OpenedAgain,
    /// The processor stands in for it.
    GivenUp,
}

/// What is known of one that may be asked for.
#[derive(Default)]
struct Known {
    device: Option<Device>,
    lost_at: Option<Instant>,
    is_given_up: bool,
}

pub(super) struct Backends {
    open: Open,
    known: HashMap<BackendName, Known>,
    opened: u64,
}

impl Backends {
    pub(super) fn new(open: Open) -> Self {
        Self { open, known: HashMap::new(), opened: 0 }
    }

    /// The device that computes where `name` is asked for.
    ///
    /// # Errors
    /// It can't be opened.
    pub(super) fn get(&mut self, name: BackendName) -> Result<Device> {
        let name = if self.is_given_up(name) { BackendName::Cpu } else { name };
        let known = self.known.entry(name).or_default();
        if let Some(device) = &known.device {
            return Ok(device.clone());
        }
        let backend = (self.open)(name)?.into();
        self.opened += 1;
        Ok(known.device.insert(Device { backend, name, number: self.opened }).clone())
    }

    /// What becomes of device `number`, which is lost at `now`; `None` if that is known.
    pub(super) fn lose(&mut self, number: u64, now: Instant) -> Option<Fate> {
        let is_it = |known: &Known| known.device.as_ref().is_some_and(|device| device.number == number);
        let known = self.known.values_mut().find(|known| is_it(known))?;
        known.device = None;
        let before = known.lost_at.replace(now);
        known.is_given_up = before.is_some_and(|before| now.saturating_duration_since(before) < SOON);
        Some(if known.is_given_up { Fate::GivenUp } else { Fate::OpenedAgain })
    }

    /// The processor stands in for `name` from now on.
    pub(super) fn give_up(&mut self, name: BackendName) {
        *self.known.entry(name).or_default() = Known { is_given_up: true, ..Known::default() };
    }

    /// Whether the processor stands in for `name`. Nothing does for the processor.
    pub(super) fn is_given_up(&self, name: BackendName) -> bool {
        name != BackendName::Cpu && self.known.get(&name).is_some_and(|known| known.is_given_up)
    }

    /// The user has chosen `name`: what was is forgotten.
    pub(super) fn choose(&mut self, name: BackendName) {
        if let Some(known) = self.known.get_mut(&name) {
            (known.is_given_up, known.lost_at) = (false, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use repartee_engine::backends::cpu::{Cpu, CpuOptions};

    use super::*;

    const GPU: BackendName = BackendName::Auto;

    #[test]
    fn a_device_that_is_lost_twice_soon_is_given_up_until_it_is_chosen_anew() {
        let open = |_| -> Result<Box<dyn Backend>> {
            Ok(Box::new(Cpu::new(CpuOptions { threads: Some(1), ..CpuOptions::default() })))
        };
        let mut backends = Backends::new(Box::new(open));
        let start = Instant::now();
        let device = |backends: &mut Backends| {
            let device = backends.get(GPU).expect("it opens");
            (device.name, device.number)
        };
        assert_eq!((device(&mut backends), device(&mut backends)), ((GPU, 1), (GPU, 1)), "opened once");
        assert_eq!(backends.lose(1, start), Some(Fate::OpenedAgain));
        assert_eq!(backends.lose(1, start), None, "two stages tell of one loss");
        assert_eq!(device(&mut backends), (GPU, 2));
        assert_eq!(backends.lose(2, start + SOON), Some(Fate::OpenedAgain), "long ago");
        assert_eq!(device(&mut backends), (GPU, 3));
        assert_eq!(backends.lose(3, start + SOON + SOON / 2), Some(Fate::GivenUp));
        assert_eq!(device(&mut backends), (BackendName::Cpu, 4));
        backends.choose(GPU);
        assert_eq!(device(&mut backends), (GPU, 5));
        assert_eq!(backends.lose(5, start + SOON + SOON / 2), Some(Fate::OpenedAgain));
    }

    #[test]
    fn what_cannot_be_opened_is_asked_for_again_only_when_it_is_chosen_anew() {
        let mut asked = 0;
        let open = move |name| -> Result<Box<dyn Backend>> {
            anyhow::ensure!(name == BackendName::Cpu || std::mem::replace(&mut asked, 1) == 1, "no GPU");
            Ok(Box::new(Cpu::new(CpuOptions { threads: Some(1), ..CpuOptions::default() })))
        };
        let mut backends = Backends::new(Box::new(open));
        assert!(backends.get(GPU).is_err());
        backends.give_up(GPU);
        assert_eq!(backends.get(GPU).expect("the processor").name, BackendName::Cpu);
        backends.choose(GPU);
        assert_eq!(backends.get(GPU).expect("it is there now").name, GPU);
    }
}
