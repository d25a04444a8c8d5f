//! Several processes that are watched at once, with a session and a thread for each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::record::recorder::Limits;
use crate::record::source::{Child, Source, SourceFinder, SourcesSelector};
use crate::render::escape::escape_controls;
use crate::render::messages;

/// Maximum wait between two flushes of the view, and between checks for the other reasons to end.
const TICK: Duration = Duration::from_millis(50);
/// The number of events that may wait for the view; beyond it, sessions wait.
const WAITING: usize = 16;

/// A process that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WatchedProcess {
    /// Index among the watched processes, from 0.
    pub(crate) number: usize,
    pub(crate) name: Option<String>,
    pub(crate) pid: Option<u32>,
}

impl WatchedProcess {
    /// Name and pid for people: `web (4711)`.
    pub(crate) fn title(&self) -> String {
        let name = escape_controls(self.name.as_deref().unwrap_or("process"));
        match self.pid {
            Some(pid) => format!("{name} ({pid})"),
            None => name.into_owned(),
        }
    }
}

/// The choice of processes, and their treatment.
#[derive(Debug)]
pub(crate) struct WatchOptions {
    pub(crate) sources: SourcesSelector,
    /// True if several processes may run at once: each is announced, and its failure is only a warning.
    pub(crate) may_be_many: bool,
    /// Maximum number of processes at once.
    pub(crate) most_processes: usize,
    /// True if a process takes the number of an ended one with its name.
    pub(crate) reuses_numbers: bool,
    /// The time to wait for a process to start again after the last one has ended.
    pub(crate) reconnect: Option<Duration>,
    /// True if a process that ends by itself is reported.
    pub(crate) reports_ends: bool,
}

/// The limits that the sessions of a command share.
#[derive(Debug)]
pub(crate) struct SharedLimits<'i> {
    interrupts: &'i Interrupts,
    duration: Option<Duration>,
    /// The time limit for each answer of a runtime, and for its silence after the stop.
    timeout: Duration,
    /// Ends all sessions.
    over: AtomicBool,
    /// The beginning of the first session.
    begun: Mutex<Option<Instant>>,
}

impl<'i> SharedLimits<'i> {
    /// A `duration` of zero sets no limit.
    pub(crate) fn new(interrupts: &'i Interrupts, duration: Option<Duration>, timeout: Duration) -> Self {
        Self {
            interrupts,
            duration: duration.filter(|duration| !duration.is_zero()),
            timeout,
            over: AtomicBool::new(false),
            begun: Mutex::new(None),
        }
    }

    /// Ends all sessions.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Returns true if all sessions have to end.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) || self.interrupts.count() > 0
    }

    /// Returns the limits of a session that begins now. The duration counts from the first session.
    pub(crate) fn of_session(&self, source: &Source) -> Limits {
        self.begun().get_or_insert_with(Instant::now);
        Limits::new(&source.target, source.pid, self.timeout, self.interrupts).with_duration(self.time_left())
    }

    /// The time left; `None` without a limit.
    fn time_left(&self) -> Option<Duration> {
        let limit = self.duration?;
        let begun = *self.begun();
        Some(begun.map_or(limit, |begun| limit.saturating_sub(begun.elapsed())))
    }

    fn begun(&self) -> MutexGuard<'_, Option<Instant>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session of a command. Its threads share it.
pub(crate) trait WatchSession: Sync {
    /// The news of a session for the thread of the view.
    type Event: Send;

    /// Runs the session of a process to its end.
    fn run(
        &self,
        source: &Source,
        process: &WatchedProcess,
        events: &EventSender<Self::Event>,
    ) -> Result<SessionEnd, Failure>;
}

/// The end of a session.
#[derive(Debug)]
pub(crate) struct SessionEnd {
    pub(crate) exit: Exit,
    /// True if the process has ended by itself.
    pub(crate) is_unasked: bool,
}

/// The view of all sessions. All calls are made from one thread.
pub(crate) trait WatchView<E> {
    /// Takes an event of a session.
    fn receive(&mut self, event: E) -> Result<(), Failure>;

    /// Called when the session of a process has ended.
    fn end(&mut self, process: &WatchedProcess) -> Result<(), Failure>;

    /// Called after each event, and about twenty times a second.
    fn flush(&mut self) -> Result<(), Failure>;

    /// Returns true if the user has seen enough.
    fn is_done(&self) -> bool;

    /// Called once after the last session, even if one failed. A program that dipc started may still run.
    fn finish(&mut self, outcome: Outcome) -> Outcome;
}

/// The way of a session's events to the view.
pub(crate) struct EventSender<E>(SyncSender<Message<E>>);

impl<E> EventSender<E> {
    /// Sends an event, once the view has taken earlier ones. After a failure of the command, it is dropped.
    pub(crate) fn send(&self, event: E) {
        let _ = self.0.send(Message::Event(event));
    }
}

/// A message of a session's thread.
enum Message<E> {
    Event(E),
    /// The session of the process with this number has ended.
    Ended(usize, Result<SessionEnd, Failure>),
}

/// Watches processes until the user, a limit or the end of the last process ends it.
pub(crate) fn watch<S: WatchSession>(
    options: &WatchOptions,
    limits: &SharedLimits<'_>,
    session: &S,
    view: &mut impl WatchView<S::Event>,
) -> Outcome {
    let (mut finder, sources) = SourceFinder::open(&options.sources, limits.timeout, limits.interrupts)?;
    let mut child = finder.child.take();
    let mut watch = Watch {
        options,
        limits,
        session,
        places: Vec::new(),
        deadline: None,
        exit: Exit::Done,
        failure: None,
    };
    let result = thread::scope(|scope| {
        // The receiver is dropped before the scope waits for the sessions, which ends a session blocked in a
        // send.
        let (sender, messages) = mpsc::sync_channel(WAITING);
        let result = watch.run(scope, &mut finder, sources, view, &sender, &messages);
        limits.end();
        result
    });
    let outcome = view.finish(result.map(|()| watch.exit()));
    if outcome.is_err() {
        child.iter_mut().for_each(Child::kill);
    }
    let code = child.map(|child| child.wait(limits.interrupts)).transpose();
    Ok(outcome?.or_program(code?))
}

/// The state of the processes that are watched.
struct Watch<'w, 'i, S> {
    options: &'w WatchOptions,
    limits: &'w SharedLimits<'i>,
    session: &'w S,
    /// The processes, indexed by their numbers.
    places: Vec<Place>,
    /// The time until which a process may restart, if none is left.
    deadline: Option<Instant>,
    /// The first exit code other than [`Exit::Done`].
    exit: Exit,
    /// The first session that failed.
    failure: Option<Failure>,
}

/// A process, and whether its session runs.
struct Place {
    process: WatchedProcess,
    runs: bool,
}

impl<'w, S: WatchSession> Watch<'w, '_, S> {
    /// Starts sessions and waits for their ends.
    fn run<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        finder: &mut SourceFinder,
        mut sources: Vec<Source>,
        view: &mut impl WatchView<S::Event>,
        sender: &SyncSender<Message<S::Event>>,
        messages: &Receiver<Message<S::Event>>,
    ) -> Result<(), Failure>
    where
        'w: 'scope,
    {
        loop {
            for source in sources.drain(..) {
                self.start(scope, source, sender.clone());
            }
            match messages.recv_timeout(TICK) {
                Ok(Message::Event(event)) => view.receive(event)?,
                Ok(Message::Ended(number, result)) => {
                    if let Some(place) = self.places.get_mut(number) {
                        place.runs = false;
                        let process = place.process.clone();
                        view.end(&process)?;
                        self.end(&process, result)?;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            view.flush()?;
            if view.is_done() {
                self.limits.end();
            }
            let is_idle = self.running() == 0;
            if self.limits.is_over() {
                if is_idle {
                    return Ok(());
                }
            } else if is_idle && !self.may_restart(finder) {
                // A process may have arrived as the last one ended.
                sources = finder.poll(false)?;
                if sources.is_empty() {
                    return Ok(());
                }
            } else {
                sources = finder.poll(is_idle)?;
            }
        }
    }

    /// The number of processes with running sessions.
    fn running(&self) -> usize {
        self.places.iter().filter(|place| place.runs).count()
    }

    /// Returns true to keep waiting for a process although none is left.
    fn may_restart(&mut self, finder: &SourceFinder) -> bool {
        let Some(patience) = self.options.reconnect.filter(|_| finder.may_find_more()) else {
            return false;
        };
        let deadline = *self.deadline.get_or_insert_with(|| {
            let time = duration::display(patience);
            messages::note(format_args!("No process is left; waiting for {time} for one to start"));
            Instant::now() + patience
        });
        Instant::now() < deadline && self.limits.time_left().is_none_or(|left| !left.is_zero())
    }

    /// Starts the session of a process, in a thread of its own.
    fn start<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        source: Source,
        sender: SyncSender<Message<S::Event>>,
    ) where
        'w: 'scope,
    {
        let number = self.free_number(&source);
        let process = WatchedProcess { number, name: source.name.clone(), pid: source.pid };
        let most = self.options.most_processes;
        if self.running() >= most {
            let title = process.title();
            messages::warning(format_args!("{title}: no more than {most} are watched at once"));
            return;
        }
        if self.options.may_be_many || self.deadline.is_some() {
            messages::note(format_args!("Process        : {}", process.title()));
        }
        let place = Place { process: process.clone(), runs: true };
        match self.places.get_mut(number) {
            Some(free) => *free = place,
            None => self.places.push(place),
        }
        let session = self.session;
        let run = move || {
            let events = EventSender(sender);
            let result = session.run(&source, &process, &events);
            // After a failure of the command, the receiver is gone.
            let _ = events.0.send(Message::Ended(number, result));
        };
        if let Err(error) = thread::Builder::new().spawn_scoped(scope, run) {
            messages::warning(format_args!("start a thread: {error}"));
            self.places[number].runs = false;
        }
    }

    /// Returns the number of a process that starts.
    fn free_number(&self, source: &Source) -> usize {
        let next = self.places.len();
        if !self.options.reuses_numbers {
            return next;
        }
        let ended = || self.places.iter().enumerate().filter(|(_, place)| !place.runs);
        let predecessor = ended().find(|(_, place)| place.process.name == source.name);
        let is_full = next >= self.options.most_processes;
        predecessor.or_else(|| ended().next().filter(|_| is_full)).map_or(next, |(number, _)| number)
    }

    /// Records the end of a session.
    fn end(&mut self, process: &WatchedProcess, result: Result<SessionEnd, Failure>) -> Result<(), Failure> {
        let is_waited_for = self.deadline.is_some();
        match result {
            Ok(end) => {
                self.deadline = None;
                self.exit = self.exit.join(end.exit);
                if end.is_unasked && self.options.reports_ends {
                    messages::note(format_args!("Process ended  : {}", process.title()));
                }
            }
            // A process that has just started, or is about to end, is searched for again.
            Err(failure) if is_waited_for && failure.exit == Exit::NotReachable => messages::detail(failure),
            Err(failure) if self.options.may_be_many => {
                messages::warning(format_args!("{}: {failure}", process.title()));
                if let Some(help) = failure.help.as_ref().filter(|_| !messages::is_quiet()) {
                    messages::help(help);
                }
                self.failure.get_or_insert(failure);
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// The exit code of all sessions together.
    fn exit(&self) -> Exit {
        self.failure.as_ref().map_or(self.exit, |failure| failure.exit)
    }
}
