//! The recorder: it writes a session's stream to the sink, byte for byte, until the user, a limit or the runtime ends it.

use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use dipc_client::{Address, Deadline, Error, Session};

use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::record::sink::Sink;
use crate::record::stopping_event::StoppingEvent;
use crate::record::stream_stats::StreamStats;
use crate::render::live_line::LiveLine;
use crate::render::messages;

/// Bytes that are read at once: more than a socket holds, so that one read empties it.
const CHUNK: usize = 256 << 10;
/// The longest read between checks for the other reasons to end.
const TICK: Duration = Duration::from_millis(100);
/// However much a stopped session still sends, this is the end of it.
const LONGEST_DRAIN: Duration = Duration::from_secs(15 * 60);

/// When a recording ends.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// The address of the stream's runtime, for messages.
    pub(crate) address: Address,
    /// Stop after this time; without it the user stops.
    pub(crate) duration: Option<Duration>,
    /// The time limit for the silence of a stopped session.
    pub(crate) silence: Duration,
    pub(crate) interrupts: Interrupts,
    /// Stop at this event.
    pub(crate) stopping_event: Option<StoppingEvent>,
}

impl Limits {
    /// Whether something other than the user ends the recording.
    fn are_reached(&self, start: Instant, stats: &StreamStats) -> bool {
        stats.stopped_by().is_some() || self.duration.is_some_and(|duration| start.elapsed() >= duration)
    }
}

/// The outcome of a recording.
#[derive(Debug)]
pub(crate) struct RecordingResult {
    address: Address,
    ending: Ending,
    stats: StreamStats,
    bytes: u64,
    elapsed: Duration,
}

/// The end of a stream.
#[derive(Debug)]
enum Ending {
    /// The runtime sent everything, including the end of the stream.
    Whole { asked: bool },
    /// The stream ended in the middle.
    Cut(Option<Failure>),
    /// The user would not wait for the rest.
    Abandoned,
    /// The stopped session fell silent, or would not end.
    Silent { last_byte: Instant, stop_failed: Option<Error> },
}

/// Records until the stream ends, the time is over or the user asks for an end. Bytes are in the sink before anything else is
/// done with them. An error means that the sink failed; every other ending is a result.
pub(crate) fn record(
    mut session: Session,
    sink: &mut Sink,
    limits: &Limits,
) -> Result<RecordingResult, Failure> {
    let mut line = LiveLine::new(limits.duration);
    let mut stats = StreamStats::new(limits.stopping_event.clone());
    let mut buffer = vec![0; CHUNK];
    let start = Instant::now();
    let mut stop: Option<Stop> = None;
    let ending = loop {
        let tick = Deadline::after(TICK);
        match session.read(&mut buffer, tick) {
            Ok(0) => {
                stats.end();
                let asked = stop.is_some();
                break if stats.is_whole() { Ending::Whole { asked } } else { Ending::Cut(None) };
            }
            Ok(count) => {
                sink.write(&buffer[..count])?;
                stats.feed(&buffer[..count]);
                if let Some(stop) = &mut stop {
                    stop.last_byte = Instant::now();
                }
            }
            Err(error) if error.is_deadline() => {}
            Err(error) => {
                stats.end();
                break Ending::Cut(Some(error.into()));
            }
        }
        line.show(start.elapsed(), sink.written(), stats.events(), stats.lost(), stop.is_some());
        let interrupts = limits.interrupts.count();
        match &stop {
            None if interrupts == 0 && !limits.are_reached(start, &stats) => {}
            None => stop = Some(Stop::begin(&session, interrupts)),
            Some(stop) if interrupts > stop.interrupts => break Ending::Abandoned,
            Some(stop) => {
                if stop.is_silent(limits.silence) {
                    break Ending::Silent { last_byte: stop.last_byte, stop_failed: stop.error() };
                }
            }
        }
    };
    line.end();
    if let Some(event) = stats.stopped_by() {
        messages::note(format_args!("Stopping event : {event}"));
    }
    // Ends the session in the target if the stream has not ended.
    drop(session);
    sink.finish()?;
    Ok(RecordingResult {
        address: limits.address.clone(),
        ending,
        stats,
        bytes: sink.written(),
        elapsed: start.elapsed(),
    })
}

/// A stop requested on another connection, while the stream is still read.
struct Stop {
    /// 1 if an interrupt requested the stop, 0 if a limit did. Further interrupts abandon the rest of the stream.
    interrupts: usize,
    since: Instant,
    last_byte: Instant,
    answer: Receiver<Result<(), Error>>,
}

impl Stop {
    fn begin(session: &Session, interrupts: usize) -> Self {
        let stopper = session.stopper();
        let (sender, answer) = mpsc::channel();
        thread::spawn(move || {
            // Nobody listens any more if the stream ended first.
            let _ = sender.send(stopper.stop());
        });
        let now = Instant::now();
        Self { interrupts: interrupts.min(1), since: now, last_byte: now, answer }
    }

    /// Whether the session has been silent for too long.
    fn is_silent(&self, limit: Duration) -> bool {
        self.last_byte.elapsed() > limit || self.since.elapsed() > LONGEST_DRAIN
    }

    /// Returns the error of a failed request to stop.
    fn error(&self) -> Option<Error> {
        match self.answer.try_recv() {
            Ok(Err(error)) => Some(error),
            Ok(Ok(())) | Err(TryRecvError::Empty | TryRecvError::Disconnected) => None,
        }
    }
}

impl RecordingResult {
    /// One line on what was recorded.
    pub(crate) fn summary(&self, sink: &Sink) -> String {
        let events = self.stats.events();
        format!(
            "Recorded {} bytes, {events} event{}, {} lost, in {}: {sink}",
            self.bytes,
            if events == 1 { "" } else { "s" },
            self.stats.lost_in_words(),
            crate::duration::display(self.elapsed),
        )
    }

    /// Prints the explanations, and returns the exit code.
    pub(crate) fn report(self, fail_on_loss: bool) -> Outcome {
        let inside = self.stats.report_damage();
        match self.ending {
            Ending::Whole { asked: true } => {}
            Ending::Whole { asked: false } => {
                messages::note("The runtime ended the session by itself; the recording is whole.");
            }
            Ending::Cut(Some(failure)) if failure.exit == Exit::TimedOut => return Err(failure),
            Ending::Cut(error) => {
                let why = error.map(|error| format!(" ({error})")).unwrap_or_default();
                messages::warning(format_args!(
                    "the stream ended in the middle{why}: the process has probably ended; what came before was kept"
                ));
                return Ok(Exit::Incomplete);
            }
            Ending::Abandoned => {
                messages::warning(
                    "stopped without waiting for the end of the stream; what came before was kept",
                );
                return Ok(Exit::Incomplete);
            }
            Ending::Silent { last_byte, stop_failed } => {
                // With the time that the last attempt to stop the session took.
                let after = last_byte.elapsed();
                return Err(timed_out(&self.address, self.bytes, after, stop_failed));
            }
        }
        if inside != Exit::Done {
            return Ok(inside);
        }
        if fail_on_loss && self.stats.lost() > 0 {
            messages::warning(format_args!("the runtime lost {} events", self.stats.lost_in_words()));
            messages::help("a larger --buffersize, or fewer providers and keywords, lose less");
            return Ok(Exit::EventsLost);
        }
        Ok(Exit::Done)
    }
}

fn timed_out(address: &Address, bytes: u64, after: Duration, stop_failed: Option<Error>) -> Failure {
    let why = stop_failed.map_or_else(
        || {
            let after = crate::duration::display(after);
            format!("stop the session: {address}: the stream did not end, and was silent for {after}")
        },
        |error| error.to_string(),
    );
    Failure::new(Exit::TimedOut, format_args!("{why}; {bytes} bytes were kept"))
        .with_help("the process may be stopped in a debugger, or be writing a dump; --timeout waits longer")
}
