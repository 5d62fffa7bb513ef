//! The thread that writes: a disk takes its time, and the window's thread has none.
//!
//! What is to be kept is written in the order in which it was handed over, each exchange all the way to the disk. What
//! can't be written stays in memory; it is tried again with the next order and at the end, and the failure is told once
//! until something could be written. Dropping the [`Clerk`] waits until all is written.

use std::collections::VecDeque;
use std::iter::once;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use anyhow::{Context, Result};
use jiff::Timestamp;
use repartee_engine::turn::message::Exchange;

use super::{Conversation, Earlier, Home, Saved};

/// What the front end hands over.
enum Order {
    Begin(Timestamp, Arc<str>),
    Keep(Timestamp, Exchange),
    BeginAnew,
    Settings(Box<Saved>),
    Errand(Box<dyn FnOnce() -> News + Send>),
    List,
    Read(Earlier),
    GoOn(Earlier),
    Delete(Earlier),
}

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// What is said and heard.
    Words,
    /// The settings.
    Settings,
}

/// What the front end has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Something that was asked for could not be done, and why.
    Failed(String),
    /// Something can't be kept, and why. It is tried again.
    NotKept(Kept, String),
    /// All of it is kept again.
    KeptAgain(Kept),
    /// What came of a report.
    Report(String),
    /// All conversations but the one under way, the newest first.
    Earlier(Vec<Earlier>),
    /// What was said in one of them.
    Read(Earlier, Vec<Exchange>),
    /// One of them is the one under way from now on; what was said in it.
    GoesOn(Vec<Exchange>),
}

/// Keeps exchanges and settings on a thread of its own.
pub(crate) struct Clerk {
    /// `None` only while it is dropped.
    orders: Option<Sender<Order>>,
    news: Receiver<News>,
    thread: Option<JoinHandle<()>>,
}

impl Clerk {
    /// Goes on with `conversation`. `wake` is called from the clerk's thread when there is news.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(
        home: Home,
        conversation: Conversation,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Self> {
        let ((orders, inbox), (told, news)) = (channel::<Order>(), channel());
        let tell = move |news| {
            // Nobody may listen any more; what was to be kept is kept all the same.
            if told.send(news).is_ok() {
                wake();
            }
        };
        let desk = Desk {
            home,
            conversation,
            words: VecDeque::new(),
            settings: None,
            has_failed: [false; 2],
            tell: Box::new(tell),
        };
        let thread = Builder::new().name("clerk".into()).spawn(move || desk.run(&inbox));
        let thread = thread.context("the system gives no thread to write with")?;
        Ok(Self { orders: Some(orders), news, thread: Some(thread) })
    }

    /// Keeps what the user said, until [`keep`](Self::keep) tells what was heard of the reply.
    pub(crate) fn begin(&self, user: Arc<str>) {
        self.order(Order::Begin(Timestamp::now(), user));
    }

    /// Keeps what was just said and heard. Does not wait, as nothing here does.
    pub(crate) fn keep(&self, exchange: Exchange) {
        self.order(Order::Keep(Timestamp::now(), exchange));
    }

    /// What comes from now on is another conversation.
    pub(crate) fn begin_anew(&self) {
        self.order(Order::BeginAnew);
    }

    /// Keeps the settings in place of those before.
    pub(crate) fn keep_settings(&self, saved: Saved) {
        self.order(Order::Settings(Box::new(saved)));
    }

    /// Does something else that has to do with the disk, in its turn.
    pub(crate) fn errand(&self, errand: impl FnOnce() -> News + Send + 'static) {
        self.order(Order::Errand(Box::new(errand)));
    }

    /// Asks for [`News::Earlier`].
    pub(crate) fn list(&self) {
        self.order(Order::List);
    }

    /// Asks for [`News::Read`].
    pub(crate) fn read(&self, earlier: Earlier) {
        self.order(Order::Read(earlier));
    }

    /// What comes from now on belongs to this conversation: asks for [`News::GoesOn`].
    pub(crate) fn go_on(&self, earlier: Earlier) {
        self.order(Order::GoOn(earlier));
    }

    /// Deletes a conversation, and asks for [`News::Earlier`].
    pub(crate) fn delete(&self, earlier: Earlier) {
        self.order(Order::Delete(earlier));
    }

    /// What there is to know since the last call.
    pub(crate) fn news(&self) -> impl Iterator<Item = News> + '_ {
        self.news.try_iter()
    }

    fn order(&self, order: Order) {
        let sent = self.orders.as_ref().is_some_and(|orders| orders.send(order).is_ok());
        if !sent {
            tracing::error!("the clerk's thread has ended");
        }
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic in it was told when it happened.
            let _ = thread.join();
        }
    }
}

/// What goes into the conversations' files.
enum Words {
    Begun(Timestamp, Arc<str>),
    Said(Timestamp, Exchange),
    BeginAnew,
}

/// The clerk's side.
struct Desk {
    home: Home,
    conversation: Conversation,
    /// What is not written yet.
    words: VecDeque<Words>,
    settings: Option<Box<Saved>>,
    /// Whether the last try failed, for words and for settings.
    has_failed: [bool; 2],
    tell: Box<dyn Fn(News) + Send>,
}

impl Desk {
    fn run(mut self, orders: &Receiver<Order>) {
        while let Ok(order) = orders.recv() {
            // Of several changes of the settings, the last one is written.
            for order in once(order).chain(orders.try_iter()) {
                match order {
                    Order::Begin(at, user) => self.words.push_back(Words::Begun(at, user)),
                    Order::Keep(at, exchange) => self.words.push_back(Words::Said(at, exchange)),
                    Order::BeginAnew => self.words.push_back(Words::BeginAnew),
                    Order::Settings(saved) => self.settings = Some(saved),
                    Order::Errand(errand) => {
                        self.write();
                        (self.tell)(errand());
                    }
                    Order::List => self.list(),
                    Order::Read(earlier) => (self.tell)(match earlier.read() {
                        Ok(exchanges) => News::Read(earlier, exchanges),
                        Err(error) => News::Failed(format!("{error:#}")),
                    }),
                    Order::GoOn(earlier) => self.go_on(&earlier),
                    Order::Delete(earlier) => {
                        if let Err(error) = earlier.delete() {
                            (self.tell)(News::Failed(format!("{error:#}")));
                        }
                        self.list();
                    }
                }
            }
            self.write();
        }
        self.write();
    }

    fn list(&mut self) {
        // Which one is under way may stand among what is not written.
        self.write();
        (self.tell)(News::Earlier(self.conversation.earlier()));
    }

    fn go_on(&mut self, earlier: &Earlier) {
        // What was said before belongs to the conversation before.
        self.write();
        if !self.words.is_empty() {
            return (self.tell)(News::Failed(
                "The conversation stays: what was said in it is not kept yet".into(),
            ));
        }
        (self.tell)(match Conversation::resume(&self.home, &earlier.path) {
            Ok((conversation, exchanges)) => {
                self.conversation = conversation;
                News::GoesOn(exchanges)
            }
            Err(error) => News::Failed(format!("{error:#}")),
        });
    }

    /// Writes all that is not written.
    fn write(&mut self) {
        if !self.words.is_empty() {
            let written = self.write_words();
            self.note(Kept::Words, written, "What was said is not kept; it is tried again");
        }
        if let Some(saved) = &self.settings {
            let written = saved.store(&self.home);
            if written.is_ok() {
                self.settings = None;
            }
            self.note(Kept::Settings, written, "The settings are not kept; it is tried again");
        }
    }

    fn write_words(&mut self) -> Result<()> {
        while let Some(words) = self.words.front() {
            match words {
                Words::Begun(at, user) => self.conversation.begin(*at, user)?,
                Words::Said(at, exchange) => self.conversation.add(*at, exchange)?,
                Words::BeginAnew => self.conversation = Conversation::new(&self.home),
            }
            self.words.pop_front();
        }
        Ok(())
    }

    /// Tells of a failure, unless the try before failed too, and of its end.
    fn note(&mut self, what: Kept, written: Result<()>, words: &str) {
        let had_failed = std::mem::replace(&mut self.has_failed[what as usize], written.is_err());
        match written {
            Ok(()) if had_failed => (self.tell)(News::KeptAgain(what)),
            Ok(()) => {}
            Err(error) => {
                tracing::error!("{words}: {error:#}");
                if !had_failed {
                    (self.tell)(News::NotKept(what, format!("{words}: {error:#}")));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn exchange(user: &str) -> Exchange {
        Exchange { user: user.into(), heard: "Yes.".into(), interrupted: false }
    }

    fn clerk(home: &Home) -> Clerk {
        Clerk::start(home.clone(), Conversation::new(home), || {}).expect("a thread")
    }

    /// What the clerk has told once everything before is done.
    fn told(clerk: &Clerk) -> Vec<News> {
        clerk.errand(|| News::Report("done".into()));
        let mut all = Vec::new();
        while !matches!(all.last(), Some(News::Report(_))) {
            all.push(clerk.news.recv().expect("news"));
        }
        all.pop();
        all
    }

    #[test]
    fn all_is_on_disk_in_order_when_the_clerk_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::at(folder.path());
        let all: Vec<_> = (0..20).map(|i| exchange(&format!("Question {i}"))).collect();
        let mut saved = Saved::default();
        let clerk = clerk(&home);
        clerk.keep(exchange("Of another conversation"));
        clerk.begin_anew();
        for (i, exchange) in all.iter().enumerate() {
            clerk.begin("Questio".into());
            clerk.keep(exchange.clone());
            saved.settings.speed = 1.0 + i as f32 * 0.01;
            clerk.keep_settings(saved.clone());
        }
        drop(clerk);
        assert_eq!(Conversation::last(&home).expect("a file").1, all);
        assert_eq!(Saved::load(&home), (saved, None));
        let files = fs::read_dir(folder.path().join("conversations")).expect("a folder").count();
        assert_eq!(files, 2, "one file for each conversation");
    }

    #[test]
    fn a_failure_is_told_once_and_what_was_said_is_written_later() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::at(&folder.path().join("home"));
        // A file where the folder should be: nothing can be written.
        fs::write(folder.path().join("home"), "").expect("a file");
        let clerk = clerk(&home);
        clerk.keep(exchange("One"));
        clerk.keep_settings(Saved { shows_latency: true, ..Saved::default() });
        let failures = told(&clerk);
        assert!(
            matches!(&failures[..], [News::NotKept(Kept::Words, words), News::NotKept(Kept::Settings, settings)]
                if words.contains("conversations") && settings.contains("settings")),
            "{failures:?}"
        );
        clerk.keep(exchange("Two"));
        assert_eq!(told(&clerk), [], "it was told");
        fs::remove_file(folder.path().join("home")).expect("the file is gone");
        clerk.keep(exchange("Three"));
        let recovered = told(&clerk);
        // The file may have gone between the two.
        let both = [Kept::Words, Kept::Settings].map(News::KeptAgain);
        assert!(recovered.len() == 2 && both.iter().all(|news| recovered.contains(news)), "{recovered:?}");
        let written = Conversation::last(&home).expect("a file").1;
        assert_eq!(written, ["One", "Two", "Three"].map(exchange));
        assert!(Saved::load(&home).0.shows_latency);
        // What fails anew is told anew.
        fs::remove_dir_all(folder.path().join("home")).expect("all is gone");
        fs::write(folder.path().join("home"), "").expect("a file");
        clerk.begin_anew();
        clerk.keep(exchange("Four"));
        assert_eq!(told(&clerk).len(), 1);
    }

    #[test]
    fn an_earlier_conversation_goes_on_in_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::at(folder.path());
        let clerk = clerk(&home);
        clerk.keep(exchange("One"));
        clerk.begin_anew();
        clerk.keep(exchange("Two"));
        clerk.list();
        let [News::Earlier(list)] = &told(&clerk)[..] else { panic!("the list") };
        let [one] = &list[..] else { panic!("one of two: {list:?}") };
        clerk.go_on(one.clone());
        assert_eq!(told(&clerk), [News::GoesOn(vec![exchange("One")])]);
        clerk.keep(exchange("One and a half"));
        clerk.list();
        let [News::Earlier(list)] = &told(&clerk)[..] else { panic!("the list") };
        assert_eq!(list.iter().map(|e| e.first.as_str()).collect::<Vec<_>>(), ["Two"]);
        // One that is gone leaves the present one as it is.
        let two = list[0].clone();
        two.delete().expect("it is there");
        clerk.go_on(two);
        assert!(matches!(&told(&clerk)[..], [News::Failed(_)]));
        clerk.keep(exchange("One and three quarters"));
        drop(clerk);
        let all = ["One", "One and a half", "One and three quarters"].map(exchange);
        assert_eq!(Conversation::last(&home).expect("a file").1, all);
    }
}
