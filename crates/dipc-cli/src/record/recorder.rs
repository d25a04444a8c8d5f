//! The recorder: it passes a session's stream to its consumer, a file above all, and words how it ended.

use std::fmt;
use std::time::Duration;

use clr_conditions::StreamEnd as Cause;
use dipc_client::{Address, Error, ErrorKind, Session, Target};
use dipc_collect::StopSignal;
use dipc_collect::stream::{self, Ending};
use dipc_wire::ProviderConfig;
use nettrace_export::report::EventGroup;

use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::process::info::timeouts;
use crate::record::notes::Messages;
use crate::record::requested_events::absent_groups;
use crate::record::sink::Sink;
use crate::record::stopping_event::StoppingEvent;
use crate::record::stream_stats::{self, StreamStats};
use crate::render::live_line::LiveLine;
use crate::render::messages;

pub(crate) use dipc_collect::stream::Consumer;

/// Time limit for a process to answer after its stream ended early.
const ANSWER: Duration = Duration::from_secs(1);

/// The limits of a session; reaching any of them ends it.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// The address of the stream's runtime, for messages.
    address: Address,
    pub(crate) stream: stream::Limits,
}

/// The end of a session's stream.
#[derive(Debug)]
pub(crate) struct StreamEnd {
    address: Address,
    ending: Ending,
    elapsed: Duration,
}

/// Passes the stream to `consumer` until it ends, the time is over, or the user or the consumer ends it. An
/// error means that the consumer failed; every other ending is a result.
pub(crate) fn run<C: Consumer<Error = Failure>>(
    session: Session,
    consumer: &mut C,
    limits: &Limits,
) -> Result<StreamEnd, Failure> {
    let end = stream::run(session, consumer, &limits.stream, &mut Messages)?;
    Ok(limits.end(end))
}

impl Limits {
    /// Creates limits of a session of the target, without a duration: the user stops it. `pid` is its process
    /// on this machine, if it is known, and `silence` the time limit for the silence of the stopped session.
    pub(crate) fn new(target: &Target, pid: Option<u32>, silence: Duration, interrupts: &Interrupts) -> Self {
        let stream = stream::Limits::new(interrupts.stop_signal());
        Self {
            address: target.address().clone(),
            stream: stream.with_pid(pid).with_silence(silence).with_final_stop(),
        }
    }

    /// Creates limits of a session that goes on until `stop` is given.
    pub(crate) fn until(stop: &StopSignal, target: &Target, pid: u32, silence: Duration) -> Self {
        let stream = stream::Limits::new(stop.clone());
        Self { address: target.address().clone(), stream: stream.with_pid(Some(pid)).with_silence(silence) }
    }

    /// Sets the time after which the session is stopped.
    pub(crate) fn with_duration(self, duration: Option<Duration>) -> Self {
        Self { stream: self.stream.with_duration(duration), ..self }
    }

    /// Adds to the end of a stream what messages need.
    pub(crate) fn end(&self, end: stream::StreamEnd) -> StreamEnd {
        StreamEnd::new(self.address.clone(), end)
    }
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
    let line = LiveLine::new(limits.stream.duration());
    let mut recording = Recording { sink, stats: StreamStats::new(stopping_event), line };
    let end = run(session, &mut recording, limits)?;
    let Recording { sink, stats, line } = recording;
    line.end();
    stats.stopping_event().report();
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
    type Error = Failure;

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
        self.stats.stopping_event().found().is_some()
    }

    fn is_whole(&self) -> bool {
        self.stats.is_whole()
    }

    fn show(&mut self, elapsed: Duration, is_stopping: bool) {
        self.line.show(elapsed, self.sink.written(), self.stats.events(), self.stats.lost(), is_stopping);
    }
}

impl RecordingResult {
    /// One line on the recording. `bytes` is the size of the file if it has more than the stream.
    pub(crate) fn summary(&self, output: &dyn fmt::Display, more_events: u64, bytes: Option<u64>) -> String {
        let events = self.stats.events().saturating_add(more_events);
        format!(
            "Recorded {} bytes, {events} event{}, {} lost, in {}: {output}",
            bytes.unwrap_or(self.bytes),
            if events == 1 { "" } else { "s" },
            self.stats.lost_in_words(),
            crate::duration::display(self.end.elapsed()),
        )
    }

    /// Returns true if the runtime sent everything, including the end of the stream.
    pub(crate) const fn is_whole(&self) -> bool {
        self.end.is_whole()
    }

    /// Returns the events that a session with these providers requested, but that its stream lacks. They are
    /// unknown if the stream is not whole, or events were lost.
    pub(crate) fn absent_events(&self, providers: &[ProviderConfig]) -> Vec<EventGroup> {
        if !self.is_whole() || !self.stats.is_whole() || self.stats.lost() > 0 {
            return Vec::new();
        }
        absent_groups(providers, self.stats.kinds())
    }

    /// Returns true if the stream ended by itself, most likely with its process.
    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_unasked()
    }

    /// Returns true if the stream ended because its process crashed or was killed.
    pub(crate) fn has_crashed(&self, target: &Target) -> bool {
        self.end.is_unasked() && self.end.cause(target) == Cause::Crash
    }

    /// Prints the explanations, and returns the exit code.
    pub(crate) fn report(self, fail_on_loss: bool) -> Outcome {
        let inside = self.stats.report_damage();
        let exit = self.end.report(&format!("{} bytes were kept", self.bytes), "kept")?.join(inside);
        Ok(or_lost(exit, &self.stats, fail_on_loss))
    }

    /// Prints the damage inside the stream, and returns the exit code: its end was explained.
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
    /// Creates the end of a stream of the runtime at this address.
    pub(crate) fn new(address: Address, end: stream::StreamEnd) -> Self {
        Self { address, ending: end.ending, elapsed: end.elapsed }
    }

    /// The time from the first read to the end.
    pub(crate) const fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Returns true if the runtime sent everything, including the end of the stream.
    pub(crate) const fn is_whole(&self) -> bool {
        matches!(self.ending, Ending::Whole { .. })
    }

    /// Returns true if the stream ended by itself, most likely with its process.
    pub(crate) fn is_unasked(&self) -> bool {
        match &self.ending {
            Ending::Whole { asked } => !asked,
            Ending::Cut(error) => error.as_ref().is_none_or(|error| error.kind() != ErrorKind::TimedOut),
            _ => false,
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
            // The process may be unreachable.
            false => Cause::Unknown,
        }
    }

    /// Prints why the stream ended, unless it was asked to, and returns the exit code. `what` is the amount
    /// received before, such as "9 bytes were kept", and `done` what happened to it, such as "kept".
    pub(crate) fn report(self, what: &str, done: &str) -> Outcome {
        match self.ending {
            Ending::Whole { asked: true } => Ok(Exit::Done),
            Ending::Whole { asked: false } => {
                messages::note("The runtime ended the session by itself; the recording is complete.");
                Ok(Exit::Done)
            }
            Ending::Cut(Some(error)) if error.kind() == ErrorKind::TimedOut => Err(error.into()),
            Ending::Cut(error) => {
                let why = error.map(|error| format!(" ({})", Failure::from(error))).unwrap_or_default();
                messages::warning(format_args!(
                    "the stream ended in the middle{why}: the process has probably ended; everything received before was {done}"
                ));
                Ok(Exit::Incomplete)
            }
            Ending::Abandoned => {
                messages::warning(format_args!(
                    "stopped without waiting for the end of the stream; everything received before was {done}"
                ));
                Ok(Exit::Incomplete)
            }
            Ending::Unstopped(error) => {
                messages::warning(format_args!(
                    "the session could not be stopped ({error}), and was left; everything received before was {done}"
                ));
                Ok(Exit::Incomplete)
            }
            Ending::Silent { silence, stop_error } => {
                Err(timed_out(&self.address, what, silence, stop_error))
            }
            _ => Ok(Exit::Incomplete),
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
    /// The end of a target's stream that the user abandoned.
    pub(crate) fn abandoned(target: &Target) -> Self {
        Self { address: target.address().clone(), ending: Ending::Abandoned, elapsed: Duration::ZERO }
    }

    /// The end of a target's stream that the runtime has ended.
    pub(crate) fn whole(target: &Target) -> Self {
        Self { ending: Ending::Whole { asked: true }, ..Self::abandoned(target) }
    }
}
