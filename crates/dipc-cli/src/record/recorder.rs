//! The recorder: it passes a session's stream to its consumer, a file above all, until the user, a limit or
//! the runtime ends it.

use std::fmt;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use clr_conditions::StreamEnd as Cause;
use dipc_client::{Address, Deadline, Error, Session, Target};
use dipc_wire::ProviderConfig;

use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::process::info::timeouts;
use crate::record::absent_events::AbsentEvents;
use crate::record::dump_watch::DumpWatch;
use crate::record::sink::Sink;
use crate::record::stopping_event::StoppingEvent;
use crate::record::stream_stats::{self, StreamStats};
use crate::render::live_line::LiveLine;
use crate::render::messages;

/// The bytes read at once: more than a socket holds, so that one read empties it.
const CHUNK: usize = 256 << 10;
/// The longest read between checks for the other reasons to end.
const TICK: Duration = Duration::from_millis(100);
/// The silence after which the runtime's current batch counts as complete.
const PAUSE: Duration = Duration::from_millis(20);
/// The time limit for a stopped session, however much it still sends.
const LONGEST_DRAIN: Duration = Duration::from_secs(15 * 60);

/// The time for which a stream is still read whose stop has failed: its process may be about to end.
const FAILED_STOP: Duration = Duration::from_secs(5);

/// The time limit for an answer of a process whose stream ended early.
const ANSWER: Duration = Duration::from_secs(1);

/// The limits of a session, one of which ends it.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// The process on this machine, if it is known.
    pub(crate) pid: Option<u32>,
    /// The address of the stream's runtime, for messages.
    pub(crate) address: Address,
    /// Stop after this time; without it the user stops.
    pub(crate) duration: Option<Duration>,
    /// The time limit for the silence of a stopped session.
    pub(crate) silence: Duration,
    pub(crate) interrupts: Interrupts,
}

/// The consumer of a session's stream.
pub(crate) trait Consumer {
    /// Takes the next bytes of the stream.
    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure>;

    /// Called when no byte has come for [`PAUSE`], and then every [`TICK`] until one comes.
    fn pause(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Called at the end of the stream, whatever ended it.
    fn end(&mut self) -> Result<(), Failure>;

    /// Whether it has what it wanted, so that the session is stopped.
    fn is_satisfied(&self) -> bool;

    /// Whether the ended stream has the end that a runtime writes.
    fn is_whole(&self) -> bool;

    /// Shows the progress after `elapsed`.
    fn show(&mut self, elapsed: Duration, is_stopping: bool) {
        let _ = (elapsed, is_stopping);
    }
}

/// The end of a session's stream.
#[derive(Debug)]
pub(crate) struct StreamEnd {
    address: Address,
    ending: Ending,
    pub(crate) elapsed: Duration,
}

/// The way a stream ended.
#[derive(Debug)]
enum Ending {
    /// The runtime sent everything, including the end of the stream.
    Whole { asked: bool },
    /// The stream ended early.
    Cut(Option<Failure>),
    /// The user would not wait for the rest.
    Abandoned,
    /// The stopped session fell silent, or would not end.
    Silent { last_byte: Instant, stop_failed: Option<Error> },
    /// The session could not be stopped, and goes on.
    Unstopped(Error),
}

/// Passes the stream to `consumer` until it ends, the time is over, or the user or the consumer ends it. An
/// error means that the consumer failed; every other ending is a result.
pub(crate) fn run(
    mut session: Session,
    consumer: &mut impl Consumer,
    limits: &Limits,
) -> Result<StreamEnd, Failure> {
    let mut buffer = vec![0; CHUNK];
    let start = Instant::now();
    let mut stop: Option<Stop> = None;
    let mut dump_watch = DumpWatch::new(limits.pid);
    let mut wait = TICK;
    let ending = loop {
        // A session of a few milliseconds ends on time, not at the next check.
        let left = limits
            .duration
            .filter(|_| stop.is_none())
            .map(|duration| duration.saturating_sub(start.elapsed()));
        let read = session.poll_read(&mut buffer, Deadline::after(left.map_or(wait, |left| left.min(wait))));
        wait = if matches!(read, Ok(Some(1..))) { PAUSE } else { TICK };
        match read {
            Ok(Some(0)) => {
                consumer.end()?;
                let asked = stop.is_some();
                break if consumer.is_whole() { Ending::Whole { asked } } else { Ending::Cut(None) };
            }
            Ok(Some(count)) => {
                dump_watch.end_silence();
                consumer.take(&buffer[..count])?;
                if let Some(stop) = &mut stop {
                    stop.last_byte = Instant::now();
                }
            }
            Ok(None) => {
                dump_watch.look();
                consumer.pause()?;
            }
            Err(error) => {
                consumer.end()?;
                break Ending::Cut(Some(error.into()));
            }
        }
        consumer.show(start.elapsed(), stop.is_some());
        let interrupts = limits.interrupts.count();
        let is_over = || limits.duration.is_some_and(|duration| start.elapsed() >= duration);
        match &stop {
            None if interrupts == 0 && !consumer.is_satisfied() && !is_over() => {}
            None => stop = Some(Stop::begin(&session, interrupts)),
            Some(stop) if interrupts > stop.interrupts => break Ending::Abandoned,
            Some(_) => {}
        }
        let Some(stop) = &mut stop else { continue };
        if stop.is_silent(limits.silence) {
            break Ending::Silent { last_byte: stop.last_byte, stop_failed: stop.take_error() };
        }
        if stop.has_failed()
            && let Some(error) = stop.take_error()
        {
            break Ending::Unstopped(error);
        }
    };
    // Ends the session in the target if the stream has not ended.
    drop(session);
    Ok(StreamEnd { address: limits.address.clone(), ending, elapsed: start.elapsed() })
}

/// The outcome of a recording.
#[derive(Debug)]
pub(crate) struct RecordingResult {
    end: StreamEnd,
    stats: StreamStats,
    bytes: u64,
}

/// Writes the stream to the sink, byte for byte. Bytes are in the sink before anything else is done with
/// them.
pub(crate) fn record(
    session: Session,
    sink: &mut Sink,
    limits: &Limits,
    stopping_event: Option<StoppingEvent>,
) -> Result<RecordingResult, Failure> {
    let line = LiveLine::new(limits.duration);
    let mut recording = Recording { sink, stats: StreamStats::new(stopping_event), line };
    let end = run(session, &mut recording, limits)?;
    let Recording { sink, stats, line } = recording;
    line.end();
    if let Some(event) = stats.stopped_by() {
        messages::note(format_args!("Stopping event : {event}"));
    }
    sink.finish()?;
    Ok(RecordingResult { end, stats, bytes: sink.written() })
}

/// A stream that is written to a sink.
struct Recording<'s> {
    sink: &'s mut Sink,
    stats: StreamStats,
    line: LiveLine,
}

impl Consumer for Recording<'_> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.sink.write(bytes)?;
        self.stats.feed(bytes);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.stats.end();
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.stats.stopped_by().is_some()
    }

    fn is_whole(&self) -> bool {
        self.stats.is_whole()
    }

    fn show(&mut self, elapsed: Duration, is_stopping: bool) {
        self.line.show(elapsed, self.sink.written(), self.stats.events(), self.stats.lost(), is_stopping);
    }
}

/// A stop requested on another connection, while the stream is still read.
struct Stop {
    /// 1 if an interrupt requested the stop, 0 if a limit did. Further interrupts abandon the rest of the
    /// stream.
    interrupts: usize,
    since: Instant,
    last_byte: Instant,
    answer: Receiver<Result<(), Error>>,
    /// The error of the request, and the time at which it was seen.
    error: Option<(Instant, Error)>,
}

impl Stop {
    fn begin(session: &Session, interrupts: usize) -> Self {
        let stopper = session.stopper();
        let (sender, answer) = mpsc::channel();
        thread::spawn(move || {
            // The receiver is gone if the stream ended first.
            let _ = sender.send(stopper.stop());
        });
        let now = Instant::now();
        Self { interrupts: interrupts.min(1), since: now, last_byte: now, answer, error: None }
    }

    /// Whether the session has been silent for too long.
    fn is_silent(&self, limit: Duration) -> bool {
        self.last_byte.elapsed() > limit || self.since.elapsed() > LONGEST_DRAIN
    }

    /// Whether the request has failed, and the stream has not ended since.
    fn has_failed(&mut self) -> bool {
        self.look();
        self.error.as_ref().is_some_and(|(seen, _)| seen.elapsed() > FAILED_STOP)
    }

    /// Takes the error of a failed request to stop.
    fn take_error(&mut self) -> Option<Error> {
        self.look();
        self.error.take().map(|(_, error)| error)
    }

    fn look(&mut self) {
        if let Ok(Err(error)) = self.answer.try_recv() {
            self.error = Some((Instant::now(), error));
        }
    }
}

impl RecordingResult {
    /// One line on what was recorded. `bytes` is the size of the file if more than the stream is in it.
    pub(crate) fn summary(&self, output: &dyn fmt::Display, bytes: Option<u64>) -> String {
        let events = self.stats.events();
        format!(
            "Recorded {} bytes, {events} event{}, {} lost, in {}: {output}",
            bytes.unwrap_or(self.bytes),
            if events == 1 { "" } else { "s" },
            self.stats.lost_in_words(),
            crate::duration::display(self.end.elapsed),
        )
    }

    /// Whether the runtime sent everything, including the end of the stream.
    pub(crate) const fn is_whole(&self) -> bool {
        self.end.is_whole()
    }

    /// Returns the events that a session with these providers asked for, and of which it has none. They are not
    /// known if the stream is not whole, or events were lost.
    pub(crate) fn absent_events(&self, providers: &[ProviderConfig]) -> AbsentEvents {
        if !self.is_whole() || !self.stats.is_whole() || self.stats.lost() > 0 {
            return AbsentEvents::default();
        }
        AbsentEvents::new(providers, self.stats.kinds())
    }

    /// Whether the stream ended because its process crashed or was killed.
    pub(crate) fn has_crashed(&self, target: &Target) -> bool {
        self.end.is_unasked() && self.end.cause(target) == Cause::Crash
    }

    /// Prints the explanations, and returns the exit code.
    pub(crate) fn report(self, fail_on_loss: bool) -> Outcome {
        let inside = self.stats.report_damage();
        let exit = self.end.report(&format!("{} bytes were kept", self.bytes), "kept")?.join(inside);
        Ok(or_lost(exit, &self.stats, fail_on_loss))
    }

    /// Prints what is wrong inside the stream, and returns the exit code: its end was explained.
    pub(crate) fn report_inside(self, fail_on_loss: bool) -> Exit {
        or_lost(self.stats.report_damage(), &self.stats, fail_on_loss)
    }
}

/// Returns the exit code for lost events, if it is asked for and nothing else is wrong.
fn or_lost(exit: Exit, stats: &StreamStats, fail_on_loss: bool) -> Exit {
    if exit == Exit::Done && fail_on_loss && stats.lost() > 0 {
        stream_stats::warn_of_loss(&stats.lost_in_words());
        return Exit::EventsLost;
    }
    exit
}

impl StreamEnd {
    /// Whether the runtime sent everything, including the end of the stream.
    pub(crate) const fn is_whole(&self) -> bool {
        matches!(self.ending, Ending::Whole { .. })
    }

    /// Whether the stream ended by itself, most likely with its process.
    pub(crate) fn is_unasked(&self) -> bool {
        match &self.ending {
            Ending::Whole { asked } => !asked,
            Ending::Cut(error) => error.as_ref().is_none_or(|error| error.exit != Exit::TimedOut),
            Ending::Abandoned | Ending::Silent { .. } | Ending::Unstopped(_) => false,
        }
    }

    /// Returns the cause of an end that was not asked for, by the state of the process.
    pub(crate) fn cause(&self, target: &Target) -> Cause {
        let is_local = target.pid().is_some();
        if self.is_whole() {
            return Cause::Exit;
        }
        match target.clone().with_timeouts(timeouts(ANSWER)).answers() {
            true => Cause::Disconnect,
            false if is_local => Cause::Crash,
            // It may be unreachable.
            false => Cause::Unknown,
        }
    }

    /// Prints why the stream ended, unless it was asked to, and returns the exit code. `what` is the amount
    /// received before, such as "9 bytes were kept", and `done` what happened to it, such as "kept".
    pub(crate) fn report(self, what: &str, done: &str) -> Outcome {
        match self.ending {
            Ending::Whole { asked: true } => Ok(Exit::Done),
            Ending::Whole { asked: false } => {
                messages::note("The runtime ended the session by itself; the recording is whole.");
                Ok(Exit::Done)
            }
            Ending::Cut(Some(failure)) if failure.exit == Exit::TimedOut => Err(failure),
            Ending::Cut(error) => {
                let why = error.map(|error| format!(" ({error})")).unwrap_or_default();
                messages::warning(format_args!(
                    "the stream ended in the middle{why}: the process has probably ended; what came before was {done}"
                ));
                Ok(Exit::Incomplete)
            }
            Ending::Abandoned => {
                messages::warning(format_args!(
                    "stopped without waiting for the end of the stream; what came before was {done}"
                ));
                Ok(Exit::Incomplete)
            }
            Ending::Unstopped(error) => {
                messages::warning(format_args!(
                    "the session could not be stopped ({error}), and was left; what came before was {done}"
                ));
                Ok(Exit::Incomplete)
            }
            Ending::Silent { last_byte, stop_failed } => {
                // Includes the time that the last attempt to stop the session took.
                let after = last_byte.elapsed();
                Err(timed_out(&self.address, what, after, stop_failed))
            }
        }
    }
}

fn timed_out(address: &Address, what: &str, after: Duration, stop_failed: Option<Error>) -> Failure {
    let why = stop_failed.map_or_else(
        || {
            let after = crate::duration::display(after);
            format!("stop the session: {address}: the stream did not end, and was silent for {after}")
        },
        |error| error.to_string(),
    );
    Failure::new(Exit::TimedOut, format_args!("{why}; {what}"))
        .with_help("the process may be stopped in a debugger, or be writing a dump; --timeout waits longer")
}

#[cfg(test)]
impl StreamEnd {
    /// The end of a stream that the user abandoned.
    pub(crate) fn abandoned(address: Address) -> Self {
        Self { address, ending: Ending::Abandoned, elapsed: Duration::ZERO }
    }

    /// The end of a stream that the runtime has ended.
    pub(crate) fn whole(address: Address) -> Self {
        Self { address, ending: Ending::Whole { asked: true }, elapsed: Duration::ZERO }
    }
}
