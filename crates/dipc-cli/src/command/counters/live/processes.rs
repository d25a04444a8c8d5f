//! The processes whose counters are watched at once, with a session and a thread for each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use super::session::{self, SessionEnd, SessionEvent, Shared};
use super::{LiveArgs, Process, SampleConsumer};
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::counters::unselected_help;
use crate::interrupt::Interrupts;
use crate::record::source::{Child, Source, SourceFinder};
use crate::render::messages;

/// The longest wait between two flushes of the consumer, and between checks for the other reasons to end.
const TICK: Duration = Duration::from_millis(100);

/// The largest number of processes with a place of their own. Beyond it, the place of an ended process is
/// reused.
const MOST_PLACES: usize = 1000;

/// Delivers the samples of the processes until the user, a limit or the end of the last process stops it.
pub(in crate::command::counters) fn run<C: SampleConsumer>(args: &LiveArgs, consumer: &mut C) -> Outcome {
    let interrupts = Interrupts::watch()?;
    let selector = args.sources.selector(args.show_child_io)?;
    let (mut finder, sources) = SourceFinder::open(&selector, args.timeout, &interrupts)?;
    let mut child = finder.child.take();
    let shared = Shared::new(args, &interrupts, consumer);
    let mut watch = Watch::new(&shared);
    let result = thread::scope(|scope| {
        let result = watch.run(scope, &mut finder, sources);
        shared.end();
        result
    });
    let finished = shared.delivery().consumer.finish();
    let outcome = result.and_then(|()| watch.outcome()).and_then(|exit| finished.map(|()| exit));
    if outcome.is_err() {
        child.iter_mut().for_each(Child::kill);
    }
    let code = child.map(|child| child.wait(&interrupts)).transpose();
    Ok(outcome?.or_program(code?))
}

/// The state of the processes that are watched.
struct Watch<'w, 's, C> {
    shared: &'w Shared<'s, C>,
    /// The processes by their numbers.
    places: Vec<Place>,
    /// The time until which a process may restart, if none is left.
    deadline: Option<Instant>,
    /// The number of samples of all sessions that have ended.
    count: u64,
    /// The counters that the last session received without being asked for, by provider.
    unselected: BTreeMap<String, BTreeSet<String>>,
    /// Whether the Meters of a process were refused.
    is_refused: bool,
    /// The first exit code other than [`Exit::Done`].
    exit: Exit,
    /// The first session that failed.
    failure: Option<Failure>,
}

/// A process, and whether its session runs.
struct Place {
    process: Process,
    runs: bool,
}

impl<'w, 's, C: SampleConsumer> Watch<'w, 's, C> {
    const fn new(shared: &'w Shared<'s, C>) -> Self {
        Self {
            shared,
            places: Vec::new(),
            deadline: None,
            count: 0,
            unselected: BTreeMap::new(),
            is_refused: false,
            exit: Exit::Done,
            failure: None,
        }
    }

    /// Starts sessions and waits for their ends.
    fn run<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        finder: &mut SourceFinder,
        mut sources: Vec<Source>,
    ) -> Result<(), Failure>
    where
        'w: 'scope,
    {
        let (sender, events) = mpsc::channel();
        loop {
            for source in sources.drain(..) {
                self.start(scope, source, &sender);
            }
            match events.recv_timeout(TICK) {
                Ok(SessionEvent::Samples)
                | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
                Ok(SessionEvent::Ended(number, result)) => self.end(number, result)?,
            }
            self.flush()?;
            let is_idle = self.places.iter().all(|place| !place.runs);
            if self.shared.is_over() {
                if is_idle {
                    return Ok(());
                }
                continue;
            }
            if is_idle && !self.may_go_on(finder) {
                // One may have arrived as the last one ended.
                sources = finder.poll(false)?;
                if sources.is_empty() {
                    return Ok(());
                }
                continue;
            }
            sources = finder.poll(is_idle)?;
        }
    }

    /// Passes what has arrived on to its reader.
    fn flush(&self) -> Result<(), Failure> {
        let mut delivery = self.shared.delivery();
        if let Some(failure) = delivery.failure.take() {
            return Err(failure);
        }
        delivery.consumer.flush()?;
        if delivery.consumer.is_satisfied() {
            self.shared.end();
        }
        Ok(())
    }

    /// Whether to keep waiting for a process although none is left.
    fn may_go_on(&mut self, finder: &SourceFinder) -> bool {
        let Some(patience) = self.shared.args.reconnect.filter(|_| finder.may_find_more()) else {
            return false;
        };
        let deadline = *self.deadline.get_or_insert_with(|| {
            let time = duration::display(patience);
            messages::note(format_args!("No process is left; waiting for {time} for one to start"));
            Instant::now() + patience
        });
        Instant::now() < deadline && self.shared.time_left().is_none_or(|left| !left.is_zero())
    }

    /// Starts the session of a process, in a thread of its own.
    fn start<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        source: Source,
        events: &Sender<SessionEvent>,
    ) where
        'w: 'scope,
    {
        let process = self.place(&source);
        if self.shared.args.may_be_many() || self.deadline.is_some() {
            messages::note(format_args!("Process        : {}", process.title()));
        }
        let (shared, events, number) = (self.shared, events.clone(), process.number);
        let session = move || {
            let result = session::watch(shared, &source, &process, &events);
            // After a failure of the command, the receiver is gone.
            let _ = events.send(SessionEvent::Ended(process.number, result));
        };
        if let Err(error) = thread::Builder::new().spawn_scoped(scope, session) {
            messages::warning(format_args!("start a thread: {error}"));
            self.places[number].runs = false;
        }
    }

    /// Assigns a number to a process: that of an ended process with the same name, or else the next.
    fn place(&mut self, source: &Source) -> Process {
        let is_full = self.places.len() >= MOST_PLACES;
        let free = self.places.iter().position(|place| !place.runs && place.process.name == source.name);
        let free = free.or_else(|| self.places.iter().position(|place| !place.runs && is_full));
        let number = free.unwrap_or(self.places.len());
        let process = Process { number, name: source.name.clone(), pid: source.pid };
        let place = Place { process: process.clone(), runs: true };
        match self.places.get_mut(number) {
            Some(free) => *free = place,
            None => self.places.push(place),
        }
        process
    }

    /// Records the end of a session.
    fn end(&mut self, number: usize, result: Result<SessionEnd, Failure>) -> Result<(), Failure> {
        let is_waited_for = self.deadline.is_some();
        let Some(place) = self.places.get_mut(number) else { return Ok(()) };
        place.runs = false;
        let process = place.process.clone();
        self.shared.delivery().consumer.end(&process)?;
        let args = self.shared.args;
        match result {
            Ok(end) => {
                self.deadline = None;
                self.count += end.count;
                self.unselected = end.unselected;
                self.is_refused |= end.is_refused;
                self.exit = self.exit.join(end.exit);
                if end.is_unasked && (args.may_be_many() || args.reconnect.is_some()) {
                    messages::note(format_args!("Process ended  : {}", process.title()));
                }
            }
            // A process that has just started, or is about to end, is searched for again.
            Err(failure) if is_waited_for && failure.exit == Exit::NotReachable => messages::detail(failure),
            Err(failure) if args.may_be_many() => {
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
    fn outcome(&self) -> Outcome {
        let mut delivery = self.shared.delivery();
        if let Some(failure) = delivery.failure.take() {
            return Err(failure);
        }
        if let Some(met) = &delivery.met {
            messages::note(format_args!("Met            : {met}"));
            return Ok(self.exit);
        }
        if self.shared.args.until.is_some() {
            return Err(Failure::new(Exit::TimedOut, "counters: --until: it has not been met"));
        }
        let exit = self.failure.as_ref().map_or(self.exit, |failure| failure.exit);
        if self.count == 0 && matches!(exit, Exit::Done) {
            let exit = if self.is_refused { Exit::Refused } else { Exit::Failed };
            let help = unselected_help(&self.unselected);
            return Err(Failure::new(exit, "counters: no value came").with_help(help.as_deref().unwrap_or(
                "values come once every --refresh-interval; dipc counters list names what .NET has, --counters asks for more",
            )));
        }
        Ok(exit)
    }
}
