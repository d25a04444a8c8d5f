//! Recording: from a session's stream to the sink, byte for byte, until somebody or something ends it.

use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use dipc_client::{Deadline, Error, Session};

use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::live_line::LiveLine;
use crate::report;
use crate::sink::Sink;
use crate::tally::Tally;

/// Bytes that are read at once: more than a socket holds, so that one read empties it.
const CHUNK: usize = 256 << 10;
/// How long a read waits before the other reasons to end are looked at.
const TICK: Duration = Duration::from_millis(100);
/// However much a stopped session still sends, this is the end of it.
const LONGEST_DRAIN: Duration = Duration::from_secs(15 * 60);

/// When a recording ends.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Stop after this time; none: when the user says so.
    pub(crate) duration: Option<Duration>,
    /// How long a stopped session may be silent.
    pub(crate) silence: Duration,
    pub(crate) interrupts: Interrupts,
}

/// What came of a recording.
#[derive(Debug)]
pub(crate) struct Recorded {
    ending: Ending,
    tally: Tally,
    bytes: u64,
    elapsed: Duration,
}

/// How a stream ended.
#[derive(Debug)]
enum Ending {
    /// The runtime sent everything, and said so.
    Whole { asked: bool },
    /// The stream ended in the middle.
    Cut(Option<Error>),
    /// The user would not wait for the rest.
    Abandoned,
    /// The stopped session fell silent, or would not end.
    Silent { after: Duration, stop_failed: Option<Error> },
}

/// Records until the stream ends, the time is over or the user asks for an end. Bytes are in the sink before anything else is
/// done with them. An error means that the sink failed; whatever else happens is a result.
pub(crate) fn record(mut session: Session, sink: &mut Sink, limits: &Limits) -> Result<Recorded, Failure> {
    let mut line = LiveLine::new();
    let mut tally = Tally::default();
    let mut buffer = vec![0; CHUNK];
    let start = Instant::now();
    let mut stop: Option<Stop> = None;
    let ending = loop {
        let tick = Deadline::after(TICK);
        match session.read(&mut buffer, tick) {
            Ok(0) => {
                tally.end();
                let asked = stop.is_some();
                break if tally.is_whole() { Ending::Whole { asked } } else { Ending::Cut(None) };
            }
            Ok(count) => {
                sink.write(&buffer[..count])?;
                tally.feed(&buffer[..count]);
                if let Some(stop) = &mut stop {
                    stop.last_byte = Instant::now();
                }
            }
            Err(error) if error.is_deadline() => {}
            Err(error) => {
                tally.end();
                break Ending::Cut(Some(error));
            }
        }
        line.show(start.elapsed(), sink.written(), tally.events(), tally.lost(), stop.is_some());
        match (&mut stop, limits.interrupts.count()) {
            (None, 0) if limits.duration.is_none_or(|duration| start.elapsed() < duration) => {}
            (None, _) => stop = Some(Stop::begin(&session)),
            (Some(stop), 0 | 1) => {
                if let Some(after) = stop.silent(limits.silence) {
                    break Ending::Silent { after, stop_failed: stop.error() };
                }
            }
            (Some(_), _) => break Ending::Abandoned,
        }
        // A single Ctrl-C after the time is over asks to wait no longer, too.
    };
    line.end();
    // Ends the session in the target if the stream has not ended.
    drop(session);
    Ok(Recorded { ending, tally, bytes: sink.written(), elapsed: start.elapsed() })
}

/// A session that was asked to stop: on another connection, while the stream goes on being read.
struct Stop {
    since: Instant,
    last_byte: Instant,
    answer: Receiver<Result<(), Error>>,
}

impl Stop {
    fn begin(session: &Session) -> Self {
        let stopper = session.stopper();
        let (sender, answer) = mpsc::channel();
        thread::spawn(move || {
            // Nobody listens any more if the stream ended first.
            let _ = sender.send(stopper.stop());
        });
        let now = Instant::now();
        Self { since: now, last_byte: now, answer }
    }

    /// How long the session has been silent, if that is too long.
    fn silent(&self, limit: Duration) -> Option<Duration> {
        let silence = self.last_byte.elapsed();
        (silence > limit || self.since.elapsed() > LONGEST_DRAIN).then_some(silence)
    }

    /// Why the request to stop failed, if it has.
    fn error(&self) -> Option<Error> {
        match self.answer.try_recv() {
            Ok(Err(error)) => Some(error),
            Ok(Ok(())) | Err(TryRecvError::Empty | TryRecvError::Disconnected) => None,
        }
    }
}

impl Recorded {
    /// One line on what was recorded.
    pub(crate) fn summary(&self, sink: &Sink) -> String {
        format!(
            "Recorded {} bytes, {} events, {} lost, in {}: {sink}",
            self.bytes,
            self.tally.events(),
            self.tally.lost(),
            crate::duration::display(self.elapsed),
        )
    }

    /// What the exit code says, after whatever there is to explain.
    pub(crate) fn verdict(&self, fail_on_loss: bool) -> Outcome {
        let inside = self.tally.verdict();
        match &self.ending {
            Ending::Whole { asked: true } => {}
            Ending::Whole { asked: false } => {
                report::note("The runtime ended the session by itself; the recording is whole.");
            }
            Ending::Cut(error) => {
                let why = error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
                report::warning(format_args!(
                    "the stream ended in the middle{why}: the process has probably ended; what came before was kept"
                ));
                return Ok(Exit::Incomplete);
            }
            Ending::Abandoned => {
                report::warning(
                    "stopped without waiting for the end of the stream; what came before was kept",
                );
                return Ok(Exit::Incomplete);
            }
            Ending::Silent { after, stop_failed } => return Err(self.timed_out(*after, stop_failed.as_ref())),
        }
        if inside != Exit::Done {
            return Ok(inside);
        }
        let lost = self.tally.lost();
        if fail_on_loss && lost > 0 {
            report::warning(format_args!("the runtime lost {lost} events"));
            report::help("a larger --buffersize, or fewer providers and keywords, lose less");
            return Ok(Exit::EventsLost);
        }
        Ok(Exit::Done)
    }

    fn timed_out(&self, after: Duration, stop_failed: Option<&Error>) -> Failure {
        let why = stop_failed.map_or_else(
            || {
                format!(
                    "the runtime did not end the stream, and was silent for {}",
                    crate::duration::display(after)
                )
            },
            ToString::to_string,
        );
        Failure::new(Exit::TimedOut, format_args!("stop the session: {why}; {} bytes were kept", self.bytes))
            .with_help(
                "the process may be stopped in a debugger, or be writing a dump; --timeout waits longer",
            )
    }
}
