//! Calls into the system that can't hold up whoever looks after the devices.
//!
//! Sound systems lock up for good. PulseAudio's client library was seen to in two ways when its server dies at the wrong
//! moment: it waits for a block of shared memory that the reader of a microphone holds and never gives back, and it
//! spins for ever when the two were just agreeing on a shared ring. So calls are made by a thread
//! of their own; one that does not come back in time is left to itself, and another thread takes its place.

use std::cell::RefCell;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::callbacks::Alarm;
use super::keeper::{Found, Make, System};
use super::{Choice, DeviceInfo};
use crate::input::InputCallback;
use crate::output::OutputCallback;
use crate::{AudioError, Direction};

/// How long a call may take. Headsets without a wire take two seconds to open.
const PATIENCE: Duration = Duration::from_secs(4);
/// Threads that did not come back. One may use up a core, so it is not tried for ever.
const MOST_STUCK: usize = 3;

type Job<S> = Box<dyn FnOnce(&S) + Send>;

/// A [`System`] that answers in time, maybe that the one behind it does not answer.
pub(super) struct Patient<S> {
    /// Makes the system behind it, on the thread that calls it.
    make: fn() -> S,
    patience: Duration,
    worker: RefCell<Option<Sender<Job<S>>>>,
    /// Each thread holds one more.
    threads: Arc<()>,
}

impl<S: System + 'static> Patient<S> {
    pub(super) fn new(make: fn() -> S) -> Self {
        Self { make, patience: PATIENCE, worker: RefCell::default(), threads: Arc::default() }
    }

    /// The result of `work`; `None` if it does not come in time. One that comes later is dropped.
    fn call<T: Send + 'static>(&self, work: impl FnOnce(&S) -> T + Send + 'static) -> Option<T> {
        let (done, result) = mpsc::channel();
        let job: Job<S> = Box::new(move |system| drop(done.send(work(system))));
        let mut worker = self.worker.borrow_mut();
        if worker.is_none() {
            *worker = self.start();
        }
        worker.as_ref()?.send(job).ok()?;
        let result = result.recv_timeout(self.patience).ok();
        if result.is_none() {
            tracing::warn!("the sound system does not answer");
            *worker = None;
        }
        result
    }

    fn start(&self) -> Option<Sender<Job<S>>> {
        if Arc::strong_count(&self.threads) > MOST_STUCK {
            return None;
        }
        let (worker, jobs) = mpsc::channel::<Job<S>>();
        let (make, alive) = (self.make, self.threads.clone());
        let run = move || {
            let _alive = alive;
            let system = make();
            for job in jobs {
                job(&system);
            }
        };
        std::thread::Builder::new().name("sound-system".into()).spawn(run).ok()?;
        Some(worker)
    }

    /// Opens a stream. A callback that is asked for after it was given up is not made: it would take the place of
    /// the next one's.
    fn open<C: 'static>(
        &self,
        direction: Direction,
        found: &Found<S::Device>,
        mut make: Make<C>,
        open: impl FnOnce(&S, &Found<S::Device>, Make<C>) -> Result<S::Stream, AudioError> + Send + 'static,
    ) -> Result<S::Stream, AudioError> {
        let is_given_up = Arc::new(Mutex::new(false));
        let asked = is_given_up.clone();
        let device = found.info.name.clone();
        let name = device.clone();
        let make: Make<C> = Box::new(move || {
            let is_given_up = asked.lock().unwrap_or_else(PoisonError::into_inner);
            if *is_given_up { Err(no_answer(direction, &name)) } else { make() }
        });
        let found = found.clone();
        self.call(move |system| open(system, &found, make)).unwrap_or_else(|| {
            *is_given_up.lock().unwrap_or_else(PoisonError::into_inner) = true;
            Err(no_answer(direction, &device))
        })
    }
}

fn no_answer(direction: Direction, device: &str) -> AudioError {
    let reason = "the sound system does not answer".into();
    AudioError::DeviceFailed { direction, device: device.into(), reason }
}

impl<S: System + 'static> System for Patient<S> {
    type Device = S::Device;
    type Stream = S::Stream;

    fn list(&self, direction: Direction) -> Result<Vec<DeviceInfo>, AudioError> {
        self.call(move |system| system.list(direction)).unwrap_or_else(|| Err(no_answer(direction, "any")))
    }

    fn default_id(&self, direction: Direction) -> Option<String> {
        self.call(move |system| system.default_id(direction)).flatten()
    }

    fn find(&self, direction: Direction, choice: &Choice) -> Result<Found<S::Device>, AudioError> {
        let wanted = choice.clone();
        self.call(move |system| system.find(direction, &wanted)).unwrap_or_else(|| {
            let device = if let Choice::Device(id) = choice { id } else { "default" };
            Err(no_answer(direction, device))
        })
    }

    fn open_input(
        &self,
        found: &Found<S::Device>,
        make: Make<InputCallback>,
        alarm: &Arc<Alarm>,
    ) -> Result<S::Stream, AudioError> {
        let alarm = alarm.clone();
        let open = move |system: &S, found: &Found<S::Device>, make| system.open_input(found, make, &alarm);
        self.open(Direction::Input, found, make, open)
    }

    fn open_output(
        &self,
        found: &Found<S::Device>,
        make: Make<OutputCallback>,
        alarm: &Arc<Alarm>,
    ) -> Result<S::Stream, AudioError> {
        let alarm = alarm.clone();
        let open = move |system: &S, found: &Found<S::Device>, make| system.open_output(found, make, &alarm);
        self.open(Direction::Output, found, make, open)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::microphone;

    /// Calls that lock up until the gate opens, by what is asked for.
    struct Sticky;

    static GATE: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
    static OPENED: AtomicUsize = AtomicUsize::new(0);

    fn lock_up() {
        let mut is_open = GATE.0.lock().unwrap();
        while !*is_open {
            is_open = GATE.1.wait(is_open).unwrap();
        }
    }

    impl System for Sticky {
        type Device = ();
        type Stream = InputCallback;

        fn list(&self, _: Direction) -> Result<Vec<DeviceInfo>, AudioError> {
            Ok(Vec::new())
        }

        fn default_id(&self, _: Direction) -> Option<String> {
            lock_up();
            None
        }

        fn find(&self, _: Direction, _: &Choice) -> Result<Found<()>, AudioError> {
            let info = DeviceInfo { id: "mic".into(), name: "MIC".into() };
            Ok(Found { device: (), info, rate_hz: 48_000 })
        }

        fn open_input(
            &self,
            _: &Found<()>,
            mut make: Make<InputCallback>,
            _: &Arc<Alarm>,
        ) -> Result<InputCallback, AudioError> {
            lock_up();
            let stream = make();
            OPENED.fetch_add(1 + usize::from(stream.is_ok()), Ordering::SeqCst);
            stream
        }

        fn open_output(
            &self,
            _: &Found<()>,
            _: Make<OutputCallback>,
            _: &Arc<Alarm>,
        ) -> Result<InputCallback, AudioError> {
            unreachable!("only the microphone is opened")
        }
    }

    #[test]
    fn a_system_that_locks_up_is_left_to_itself() {
        let mut system = Patient::new(|| Sticky);
        system.patience = Duration::from_millis(300);
        let (_microphone, port) = microphone::new(crate::echo::EchoMode::Headphones);
        let found = system.find(Direction::Input, &Choice::Default).unwrap();
        let (alarm, connects) = (Arc::new(Alarm::default()), port.clone());
        let make: Make<InputCallback> = Box::new(move || connects.connect(48_000));
        let error = system.open_input(&found, make, &alarm).map(|_| ()).unwrap_err();
        assert!(
            error.to_string().contains("\"MIC\" does not work: the sound system does not answer"),
            "{error}"
        );
        // The next call has another thread.
        assert!(system.list(Direction::Input).is_ok());
        assert_eq!(system.default_id(Direction::Input), None);
        assert_eq!(system.default_id(Direction::Input), None);
        // Three are stuck: it is not tried any more.
        assert!(system.list(Direction::Input).is_err());
        *GATE.0.lock().unwrap() = true;
        GATE.1.notify_all();
        let begun = std::time::Instant::now();
        while system.list(Direction::Input).is_err() || OPENED.load(Ordering::SeqCst) == 0 {
            assert!(begun.elapsed() < Duration::from_secs(20), "it works again when one comes back");
            std::thread::yield_now();
        }
        // The stream that nobody waits for any more has not taken the place of another.
        assert_eq!(OPENED.load(Ordering::SeqCst), 1);
        assert!(port.watch().is_none());
    }
}
