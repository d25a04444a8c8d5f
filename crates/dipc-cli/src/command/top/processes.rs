//! The processes watched at once, with a session and a thread for each.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, Scope};
use std::time::Duration;

use crate::command::top::session::{self, SessionEvent};
use crate::command::top::{Display, Process, Shared, TopArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::record::source::{Child, Source, SourceFinder};
use crate::render::messages;

/// The longest wait between checks for keys and for the other reasons to end.
const TICK: Duration = Duration::from_millis(50);
/// The number of intervals that may wait to be shown; beyond it, sessions wait.
const WAITING: usize = 16;
/// The largest number of processes watched at once.
const MOST_PROCESSES: usize = 100;

/// Shows the processes until the user, a limit or the end of the last process ends it.
pub(super) fn run(args: &TopArgs, display: &mut impl Display) -> Outcome {
    let interrupts = Interrupts::watch()?;
    let selector = args.sources.selector(args.show_child_io)?;
    let (mut finder, sources) = SourceFinder::open(&selector, args.timeout, &interrupts)?;
    let mut child = finder.child.take();
    let shared =
        Shared { args, interrupts: &interrupts, over: AtomicBool::new(false), begun: Mutex::new(None) };
    let mut watch =
        Watch { shared: &shared, processes: Vec::new(), running: 0, exit: Exit::Done, failure: None };
    let result = thread::scope(|scope| {
        // The receiver is dropped before the scope waits for the sessions, which ends a session blocked in a
        // send.
        let (sender, events) = mpsc::sync_channel(WAITING);
        let result = watch.run(scope, &mut finder, sources, display, &sender, &events);
        shared.end();
        result
    });
    let outcome = result.and_then(|()| display.finish()).map(|()| watch.exit());
    if outcome.is_err() {
        child.iter_mut().for_each(Child::kill);
    }
    let code = child.map(|child| child.wait(&interrupts)).transpose();
    Ok(outcome?.or_program(code?))
}

/// The state of the processes that are watched.
struct Watch<'w, 's> {
    shared: &'w Shared<'s>,
    processes: Vec<Process>,
    running: usize,
    /// The first exit code other than [`Exit::Done`].
    exit: Exit,
    /// The first session that failed.
    failure: Option<Failure>,
}

impl<'w> Watch<'w, '_> {
    fn run<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        finder: &mut SourceFinder,
        mut sources: Vec<Source>,
        display: &mut impl Display,
        sender: &SyncSender<SessionEvent>,
        events: &Receiver<SessionEvent>,
    ) -> Result<(), Failure>
    where
        'w: 'scope,
    {
        loop {
            for source in sources.drain(..) {
                self.start(scope, source, sender);
            }
            match events.recv_timeout(TICK) {
                Ok(SessionEvent::Begun(process, features)) => display.begin(&process, features)?,
                Ok(SessionEvent::Interval(number, interval)) => display.interval(number, *interval)?,
                Ok(SessionEvent::Ended(number, result)) => {
                    display.end(number);
                    self.end(number, result)?;
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            display.flush()?;
            if display.is_done() {
                self.shared.end();
            }
            if self.running == 0 {
                return Ok(());
            }
            if !self.shared.is_over() {
                sources = finder.poll(false)?;
            }
        }
    }

    /// Starts the session of a process, in a thread of its own.
    fn start<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        source: Source,
        events: &SyncSender<SessionEvent>,
    ) where
        'w: 'scope,
    {
        let process = Process { number: self.processes.len(), name: source.name.clone(), pid: source.pid };
        if self.running >= MOST_PROCESSES {
            let title = process.title();
            messages::warning(format_args!("{title}: no more than {MOST_PROCESSES} are watched at once"));
            return;
        }
        if self.shared.args.sources.may_be_many() {
            messages::note(format_args!("Process        : {}", process.title()));
        }
        self.processes.push(process.clone());
        let (shared, events) = (self.shared, events.clone());
        let session = move || {
            let result = session::watch(shared, &source, &process, &events);
            // After a failure of the command, the receiver is gone.
            let _ = events.send(SessionEvent::Ended(process.number, result));
        };
        match thread::Builder::new().spawn_scoped(scope, session) {
            Ok(_) => self.running += 1,
            Err(error) => messages::warning(format_args!("start a thread: {error}")),
        }
    }

    /// Records the end of a session.
    fn end(&mut self, number: usize, result: Result<session::SessionEnd, Failure>) -> Result<(), Failure> {
        self.running -= 1;
        let title = self.processes.get(number).map(Process::title).unwrap_or_default();
        match result {
            Ok(end) => {
                self.exit = self.exit.join(end.exit);
                if end.is_unasked {
                    messages::note(format_args!("Process ended  : {title}"));
                }
            }
            Err(failure) if self.shared.args.sources.may_be_many() => {
                messages::warning(format_args!("{title}: {failure}"));
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
