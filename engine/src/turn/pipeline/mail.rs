//! Messages between the threads, counted while they are under way.
//!
//! The count is for simulated clocks: time may pass only when no message is under way and nobody works on one. In the real
//! program nobody reads it.

#[cfg(test)]
use std::sync::Condvar;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Messages that are posted and not dealt with.
#[derive(Clone, Default)]
pub(super) struct Underway(Arc<Count>);

#[derive(Default)]
struct Count {
    count: AtomicUsize,
    /// Somebody may wait for it to fall.
    #[cfg(test)]
    fell: (Mutex<()>, Condvar),
}

impl Underway {
    pub(super) fn begin(&self) -> Busy {
        self.0.count.fetch_add(1, Ordering::SeqCst);
        Busy(self.clone())
    }
}

#[cfg(test)]
impl Underway {
    pub(super) fn count(&self) -> usize {
        self.0.count.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.0.fell.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The count, or what makes `done` true, has changed.
    pub(super) fn changed(&self) {
        drop(self.lock());
        self.0.fell.1.notify_all();
    }

    /// Waits until `done`, which has to follow from the count or be told of by [`Self::changed`].
    pub(super) fn wait_until(&self, done: impl Fn(usize) -> bool) {
        let mut guard = self.lock();
        while !done(self.count()) {
            guard = self.0.fell.1.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Something under way, until it is dropped.
pub(super) struct Busy(Underway);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.0.count.fetch_sub(1, Ordering::SeqCst);
        #[cfg(test)]
        self.0.changed();
    }
}

/// Whether one receiver has something to do: however much is posted to it, it counts once, for what waits behind a piece
/// of work waits with it.
pub(super) struct Load {
    underway: Underway,
    state: Mutex<(usize, Option<Busy>)>,
}

impl Load {
    fn lock(&self) -> MutexGuard<'_, (usize, Option<Busy>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One message more.
    pub(super) fn add(self: &Arc<Self>) -> Weight {
        let mut state = self.lock();
        state.0 += 1;
        if state.1.is_none() {
            state.1 = Some(self.underway.begin());
        }
        Weight(self.clone())
    }
}

/// A message that is posted and not dealt with, until it is dropped.
pub(super) struct Weight(Arc<Load>);

impl Weight {
    pub(super) fn load(&self) -> Arc<Load> {
        self.0.clone()
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.0 -= 1;
        let busy = if state.0 == 0 { state.1.take() } else { None };
        drop(state);
        drop(busy);
    }
}

/// Where messages are posted. Clones lead to the same receiver.
pub(super) struct Post<T> {
    sender: Sender<(T, Weight)>,
    load: Arc<Load>,
}

impl<T> Clone for Post<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), load: self.load.clone() }
    }
}

impl<T> Post<T> {
    /// Whether somebody will receive it.
    pub(super) fn send(&self, message: T) -> bool {
        self.sender.send((message, self.load.add())).is_ok()
    }
}

/// Where messages arrive. A message counts as under way until its [`Weight`] is dropped.
pub(super) struct Inbox<T>(Receiver<(T, Weight)>);

impl<T> Inbox<T> {
    /// The next message; `None` when nobody can send one any more.
    pub(super) fn receive(&self) -> Option<(T, Weight)> {
        self.0.recv().ok()
    }

    /// The next message, if it comes in time.
    ///
    /// # Errors
    /// It does not, or nobody can send one any more.
    pub(super) fn receive_within(&self, timeout: Duration) -> Result<(T, Weight), RecvTimeoutError> {
        self.0.recv_timeout(timeout)
    }

    pub(super) fn try_receive(&self) -> Option<(T, Weight)> {
        self.0.try_recv().ok()
    }
}

pub(super) fn mail<T>(underway: &Underway) -> (Post<T>, Inbox<T>) {
    let (sender, receiver) = channel();
    let load = Arc::new(Load { underway: underway.clone(), state: Mutex::default() });
    (Post { sender, load }, Inbox(receiver))
}
