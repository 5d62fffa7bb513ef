//! The threads of the stages: each takes its work in order, with whatever model it has by then.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::history::History;
use super::super::message::{Event, Exchange, Stage, TurnNumber};
use super::conversation::Message;
use super::gate::Gate;
use super::mail::{Inbox, Post, Weight};
use super::stages::{Recogniser, StageError, Voice, Writer};
use crate::backends::CancelToken;
use crate::latency::{Mark, Marks, Metric};
use crate::stages::reply::ReplyEvent;
use crate::stages::transcribe::TranscribeEvent;
use crate::text::clauses::{Clause, ClauseSplitter};

/// What a stage's thread is told.
pub(super) enum Order<S: ?Sized, J> {
    /// A model, and which of those that were installed it is.
    Install(Box<S>, u64),
    Await,
    Refuse(Arc<str>),
    Do(J),
}

/// The work of one stage; `S` is its model.
pub(super) trait Work {
    type Model: ?Sized;
    type Job;
    const STAGE: Stage;

    /// Whose work it is, unless it is nobody's.
    fn turn(job: &Self::Job) -> Option<(TurnNumber, &CancelToken)>;
    /// When the model is lost, `job` remembers what of it is done: another model goes on there.
    fn work(
        &mut self,
        model: &mut Self::Model,
        job: &mut Self::Job,
        weight: &mut Option<Weight>,
    ) -> Result<(), StageError>;
    /// What can be done without a model; work of a turn fails by itself.
    fn without_model(&mut self, _job: &Self::Job) {}
    /// Nothing is left to do; more than `received` orders mean that something is.
    fn rest(&mut self, _model: &mut Self::Model, _received: u64) -> Result<(), StageError> {
        Ok(())
    }
    /// A model was installed.
    fn installed(&mut self) {}
    /// The model was torn out of its work.
    fn restart(_model: &mut Self::Model) {}
}

enum Place<S: ?Sized> {
    Loading,
    /// With its number.
    Here(Box<S>, u64),
    Refused(Arc<str>),
}

impl<S: ?Sized> Place<S> {
    /// The device is gone: what is asked waits for another model.
    fn lose(&mut self, stage: Stage, reason: String, post: &Post<Message>) {
        if let Self::Here(_, model) = *self {
            // Its memory is free before the next one is loaded.
            *self = Self::Loading;
            post.send(Message::Lost { stage, model, reason: reason.into() });
        }
    }
}

/// Works until nobody can send orders any more.
pub(super) fn serve<W: Work>(mut work: W, orders: &Inbox<Order<W::Model, W::Job>>, post: &Post<Message>) {
    let mut place: Place<W::Model> = Place::Loading;
    let mut waiting: VecDeque<W::Job> = VecDeque::new();
    let mut received = 0u64;
    while let Some((order, weight)) = orders.receive() {
        let mut weight = Some(weight);
        let mut next = Some(order);
        while let Some(order) = next {
            received += 1;
            match order {
                Order::Install(model, number) => {
                    place = Place::Here(model, number);
                    work.installed();
                }
                Order::Await => place = Place::Loading,
                Order::Refuse(reason) => place = Place::Refused(reason),
                Order::Do(job) => waiting.push_back(job),
            }
            next = None;
            // Orders that came meanwhile are looked at between two pieces of work.
            while !matches!(place, Place::Loading) {
                let Some(job) = waiting.pop_front() else { break };
                if let Some(job) = do_job(&mut work, &mut place, job, &mut weight, post) {
                    waiting.push_front(job);
                }
                if let Some((order, more)) = orders.try_receive() {
                    (next, weight) = (Some(order), Some(more));
                    break;
                }
            }
        }
        if let Place::Here(model, _) = &mut place {
            let result = catch_unwind(AssertUnwindSafe(|| work.rest(model, received)));
            match result {
                Ok(Ok(()) | Err(StageError::Cancelled)) => {}
                // Only work ahead: the reply will say what is wrong.
                Ok(Err(StageError::Failed(reason))) => tracing::debug!(%reason, "work ahead failed"),
                Ok(Err(StageError::Lost(reason))) => place.lose(W::STAGE, reason, post),
                Err(_) => W::restart(model),
            }
        }
        drop(weight);
    }
}

/// Does a piece of work, and gives it back if the model was lost: it is to be done by the next one.
fn do_job<W: Work>(
    work: &mut W,
    place: &mut Place<W::Model>,
    mut job: W::Job,
    weight: &mut Option<Weight>,
    post: &Post<Message>,
) -> Option<W::Job> {
    let turn = W::turn(&job).map(|(turn, token)| (turn, token.clone()));
    if turn.as_ref().is_some_and(|(_, token)| token.is_cancelled()) {
        return None;
    }
    let reason = match place {
        Place::Loading => return Some(job),
        Place::Refused(reason) => {
            work.without_model(&job);
            reason.to_string()
        }
        Place::Here(model, _) => {
            let result = catch_unwind(AssertUnwindSafe(|| work.work(model, &mut job, weight)));
            match result {
                Ok(Ok(()) | Err(StageError::Cancelled)) => return None,
                Ok(Err(StageError::Failed(reason))) => reason,
                Ok(Err(StageError::Lost(reason))) => {
                    place.lose(W::STAGE, reason, post);
                    return Some(job);
                }
                Err(panic) => {
                    W::restart(model);
                    format!("a defect of this program: {}", panic_text(panic.as_ref()))
                }
            }
        }
    };
    if let Some((turn, _)) = turn {
        post.send(Message::Event(Event::Failed { turn, stage: W::STAGE, reason: reason.into() }));
    }
    None
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason")
}

/// Marks `metrics` as cold once after each installation.
#[derive(Default)]
struct Cold(bool);

impl Cold {
    fn mark(&mut self, marks: Option<&Marks>, metrics: &[Metric]) {
        // What is nobody's turn is no first time that counts.
        if let Some(marks) = marks
            && std::mem::take(&mut self.0)
        {
            metrics.iter().for_each(|metric| marks.mark_cold(*metric));
        }
    }
}

/// A piece of the user's speech.
pub(super) struct TranscribeJob {
    pub(super) turn: TurnNumber,
    /// Only for display while the user speaks.
    pub(super) is_partial: bool,
    pub(super) samples: Vec<f32>,
    pub(super) cancel: CancelToken,
    pub(super) marks: Option<Marks>,
}

pub(super) struct Transcribing {
    pub(super) post: Post<Message>,
    cold: Cold,
}

impl Transcribing {
    pub(super) fn new(post: Post<Message>) -> Self {
        Self { post, cold: Cold::default() }
    }
}

impl Work for Transcribing {
    type Model = dyn Recogniser;
    type Job = TranscribeJob;
    const STAGE: Stage = Stage::Transcribe;

    fn turn(job: &TranscribeJob) -> Option<(TurnNumber, &CancelToken)> {
        Some((job.turn, &job.cancel))
    }

    fn work(
        &mut self,
        model: &mut Self::Model,
        job: &mut TranscribeJob,
        _: &mut Option<Weight>,
    ) -> Result<(), StageError> {
        let marks = job.marks.as_ref();
        self.cold.mark(marks, &[Metric::Encoder, Metric::TextDecoder]);
        let mut on_event = |event| {
            if let Some(marks) = marks {
                marks.mark(match event {
                    TranscribeEvent::EncoderStart => Mark::EncoderStart,
                    TranscribeEvent::EncoderEnd => Mark::EncoderEnd,
                });
            }
        };
        let text = model.recognise(&job.samples, &mut on_event, &job.cancel);
        if job.is_partial && !matches!(text, Err(StageError::Lost(_))) {
            // The real transcript will say what is wrong.
            self.post.send(Message::Partial { turn: job.turn, text: text.unwrap_or_default().into() });
            return Ok(());
        }
        self.post.send(Message::Event(Event::Transcript { turn: job.turn, text: text?.into() }));
        Ok(())
    }

    fn installed(&mut self) {
        self.cold.0 = true;
    }
}

/// What the writer's thread is asked for.
pub(super) enum WriteJob {
    Reply {
        turn: TurnNumber,
        user: Arc<str>,
        cancel: CancelToken,
        gate: Gate,
        marks: Option<Marks>,
        draft: Box<Draft>,
    },
    Remember(Exchange),
    SetHistory(History),
    SetInstructions(Arc<str>),
}

/// What is written of a reply, and what of it is not handed over.
#[derive(Default)]
pub(super) struct Draft {
    text: String,
    splitter: ClauseSplitter,
}

/// Stops work ahead as soon as there is other work.
#[derive(Default)]
pub(super) struct Ahead {
    cancel: Mutex<CancelToken>,
    /// Orders that were sent.
    sent: AtomicU64,
}

impl Ahead {
    /// An order is about to be sent.
    pub(super) fn interrupt(&self) {
        self.sent.fetch_add(1, Ordering::AcqRel);
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    /// A token for work ahead, unless there is other work already.
    fn begin(&self, received: u64) -> Option<CancelToken> {
        let token = CancelToken::new();
        *self.cancel.lock().unwrap_or_else(PoisonError::into_inner) = token.clone();
        (self.sent.load(Ordering::Acquire) <= received).then_some(token)
    }
}

pub(super) struct Writing {
    post: Post<Message>,
    history: History,
    ahead: Arc<Ahead>,
    cold: Cold,
    /// The history has changed since the last work ahead.
    has_news: bool,
}

impl Writing {
    pub(super) fn new(post: Post<Message>, history: History, ahead: Arc<Ahead>) -> Self {
        Self { post, history, ahead, cold: Cold::default(), has_news: true }
    }

    fn note(&mut self, job: &WriteJob) {
        match job {
            WriteJob::Reply { .. } => return,
            WriteJob::Remember(exchange) => self.history.remember(exchange),
            WriteJob::SetHistory(history) => self.history.clone_from(history),
            WriteJob::SetInstructions(text) => self.history.set_system(text),
        }
        self.has_news = true;
    }
}

impl Work for Writing {
    type Model = dyn Writer;
    type Job = WriteJob;
    const STAGE: Stage = Stage::Reply;

    fn turn(job: &WriteJob) -> Option<(TurnNumber, &CancelToken)> {
        match job {
            WriteJob::Reply { turn, cancel, .. } => Some((*turn, cancel)),
            _ => None,
        }
    }

    fn work(
        &mut self,
        model: &mut Self::Model,
        job: &mut WriteJob,
        weight: &mut Option<Weight>,
    ) -> Result<(), StageError> {
        let WriteJob::Reply { turn, user, cancel, gate, marks, draft } = job else {
            self.note(job);
            return Ok(());
        };
        let (turn, Draft { text: draft, splitter }) = (*turn, draft.as_mut());
        let written = draft.clone();
        let mark = |mark| {
            // What another model began was marked then.
            if let Some(marks) = marks.as_ref().filter(|_| written.is_empty()) {
                marks.mark(mark);
            }
        };
        self.cold.mark(marks.as_ref(), &[Metric::Prefill, Metric::FirstToken]);
        let post = &self.post;
        let hand_over = |clause: Clause| {
            post.send(Message::Clause { turn, clause });
        };
        let mut on_event = |event: ReplyEvent<'_>| match event {
            ReplyEvent::PrefillStart { .. } => mark(Mark::PrefillStart),
            ReplyEvent::FirstToken => {
                mark(Mark::PrefillEnd);
                mark(Mark::FirstToken);
            }
            ReplyEvent::Text(text) => {
                draft.push_str(text);
                splitter.push(text).into_iter().for_each(hand_over);
                // Only behind what was handed over: else reply and speech could wait for each other.
                gate.pass(weight, cancel);
            }
        };
        let reply = model.write(&mut self.history, user, &written, &mut on_event, cancel)?;
        splitter.flush().into_iter().for_each(hand_over);
        if let Some(trimmed) = reply.trimmed {
            self.has_news = true;
            self.post.send(Message::Trimmed(trimmed));
        }
        self.post.send(Message::Event(Event::ReplyDone { turn }));
        Ok(())
    }

    fn without_model(&mut self, job: &WriteJob) {
        self.note(job);
    }

    fn rest(&mut self, model: &mut Self::Model, received: u64) -> Result<(), StageError> {
        if !self.has_news {
            return Ok(());
        }
        let Some(token) = self.ahead.begin(received) else { return Ok(()) };
        model.prepare(&self.history, &token)?;
        self.has_news = false;
        Ok(())
    }

    fn installed(&mut self) {
        (self.cold.0, self.has_news) = (true, true);
    }

    fn restart(model: &mut Self::Model) {
        model.restart();
    }
}

/// A clause to speak.
pub(super) struct SpeakJob {
    pub(super) turn: TurnNumber,
    pub(super) index: usize,
    pub(super) clause: Clause,
    pub(super) cancel: CancelToken,
    pub(super) marks: Option<Marks>,
    /// Samples of it that were handed over.
    pub(super) spoken: usize,
}

pub(super) struct Speaking {
    post: Post<Message>,
    turn: Option<TurnNumber>,
    cold: Cold,
}

impl Speaking {
    pub(super) fn new(post: Post<Message>) -> Self {
        Self { post, turn: None, cold: Cold::default() }
    }
}

impl Work for Speaking {
    type Model = dyn Voice;
    type Job = SpeakJob;
    const STAGE: Stage = Stage::Speak;

    fn turn(job: &SpeakJob) -> Option<(TurnNumber, &CancelToken)> {
        Some((job.turn, &job.cancel))
    }

    fn work(
        &mut self,
        model: &mut Self::Model,
        job: &mut SpeakJob,
        _: &mut Option<Weight>,
    ) -> Result<(), StageError> {
        let SpeakJob { turn, index, clause, cancel, marks, spoken } = job;
        let (turn, index) = (*turn, *index);
        self.cold.mark(marks.as_ref(), &[Metric::FirstChunk]);
        if self.turn.replace(turn) != Some(turn) {
            model.begin();
        }
        let post = &self.post;
        // What another model has said is not said again.
        let mut known = *spoken;
        let mut on_sound = |samples: &[f32], spoken_bytes| {
            let (said, samples) = samples.split_at(known.min(samples.len()));
            known -= said.len();
            if !samples.is_empty() {
                *spoken += samples.len();
                post.send(Message::Sound { turn, clause: index, samples: samples.into(), spoken_bytes });
            }
        };
        model.speak(clause, &mut on_sound, cancel)?;
        self.post.send(Message::Event(Event::ClauseSpoken { turn, clause: index }));
        Ok(())
    }

    fn installed(&mut self) {
        (self.cold.0, self.turn) = (true, None);
    }

    fn restart(model: &mut Self::Model) {
        model.begin();
    }
}
