//! The stream of one session, passed to a consumer until a limit, the caller, the consumer or the runtime
//! ends it.

use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use dipc_client::{Deadline, Error, Session};

use crate::dump_watch::DumpWatch;
use crate::observer::Observer;
use crate::stop::StopSignal;

/// The bytes read at once: more than a socket holds, so that one read empties it.
const CHUNK: usize = 256 << 10;
/// Maximum duration of a read between two checks of the other reasons to end.
const TICK: Duration = Duration::from_millis(100);
/// The silence after which the runtime's current batch counts as complete.
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum time for the rest of a stopped session, however much it still sends.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(15 * 60);
/// The time for which a stream is still read after a failed stop: its process may be about to end.
const FAILED_STOP: Duration = Duration::from_secs(5);
/// Maximum time for the answer to a stop after the end of the stream.
const STOP_ANSWER: Duration = Duration::from_secs(1);
/// The default of [`Limits::with_silence`].
const SILENCE: Duration = Duration::from_secs(30);

/// The limits of a session. Any of them ends it.
#[derive(Debug, Clone)]
pub struct Limits {
    stop: StopSignal,
    pid: Option<u32>,
    duration: Option<Duration>,
    silence: Duration,
    is_stop_final: bool,
    chunk: usize,
    tick: Duration,
}

impl Limits {
    /// Creates limits of a session that goes on until `stop` is given: without a duration, and with 30 s for
    /// the silence of a stopped session.
    pub const fn new(stop: StopSignal) -> Self {
        Self {
            stop,
            pid: None,
            duration: None,
            silence: SILENCE,
            is_stop_final: false,
            chunk: CHUNK,
            tick: TICK,
        }
    }

    /// Sets the process on this machine, which is looked at while its stream is silent.
    #[must_use]
    pub const fn with_pid(mut self, pid: Option<u32>) -> Self {
        self.pid = pid;
        self
    }

    /// Sets the time after which the session is stopped.
    #[must_use]
    pub const fn with_duration(mut self, duration: Option<Duration>) -> Self {
        self.duration = duration;
        self
    }

    /// Sets the maximum silence of a stopped session.
    #[must_use]
    pub const fn with_silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// Abandons the rest of the stream at a stop after another limit has ended the session: a user who
    /// interrupts then does not want to wait.
    #[must_use]
    pub const fn with_final_stop(mut self) -> Self {
        self.is_stop_final = true;
        self
    }

    /// Sets the bytes that are read at once, 256 KiB by default, and the maximum wait for them, after which
    /// the other limits are checked, 100 ms by default. Sessions with few events, of many processes, do with
    /// less.
    #[must_use]
    pub const fn with_reads(mut self, chunk: usize, tick: Duration) -> Self {
        (self.chunk, self.tick) = (chunk, tick);
        self
    }

    /// The signal that stops the session.
    pub const fn stop_signal(&self) -> &StopSignal {
        &self.stop
    }

    /// The time after which the session is stopped.
    pub const fn duration(&self) -> Option<Duration> {
        self.duration
    }

    fn is_over(&self, start: Instant) -> bool {
        self.duration.is_some_and(|duration| start.elapsed() >= duration)
    }
}

/// The consumer of a session's stream.
pub trait Consumer {
    /// The error of a consumer that cannot go on.
    type Error;

    /// Takes the next bytes of the stream.
    ///
    /// # Errors
    /// The consumer's own, which end the session.
    fn take(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Called when no byte has arrived for 20 ms, and then after each wait for one, of 100 ms by default.
    ///
    /// # Errors
    /// The consumer's own, which end the session.
    fn pause(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Called at the end of the stream, unless the rest of it is abandoned.
    ///
    /// # Errors
    /// The consumer's own.
    fn end(&mut self) -> Result<(), Self::Error>;

    /// Returns true once the consumer is satisfied, which stops the session.
    fn is_satisfied(&self) -> bool;

    /// Returns true if the stream ended as runtimes end it.
    fn is_whole(&self) -> bool;

    /// Shows the progress after `elapsed`.
    fn show(&mut self, elapsed: Duration, is_stopping: bool) {
        let _ = (elapsed, is_stopping);
    }
}

/// The end of a session's stream.
#[derive(Debug)]
#[non_exhaustive]
pub struct StreamEnd {
    /// The way it ended.
    pub ending: Ending,
    /// The time from the first read to the end.
    pub elapsed: Duration,
}

/// The way a stream ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ending {
    /// The runtime sent everything, including the end of the stream.
    Whole {
        /// True if the session was stopped; false if the runtime ended it.
        asked: bool,
    },
    /// The stream ended early, with the error of the last read if it failed.
    Cut(Option<Error>),
    /// The rest of the stream was abandoned.
    Abandoned,
    /// The stopped session fell silent, or did not end.
    Silent {
        /// The time since its last byte.
        silence: Duration,
        /// The error of the request to stop it.
        stop_error: Option<Error>,
    },
    /// The session could not be stopped, and was left.
    Unstopped(Error),
}

impl StreamEnd {
    /// Returns true if the runtime sent everything, including the end of the stream.
    pub const fn is_whole(&self) -> bool {
        matches!(self.ending, Ending::Whole { .. })
    }
}

/// Passes the stream of a session to `consumer` until it ends, and returns how it ended. Blocks.
///
/// The session is stopped when one of the limits is reached, or when the consumer is satisfied; the rest that
/// the runtime sends then is read as well. In every case the session no longer runs in the process
/// afterwards, unless the process is unreachable.
///
/// # Errors
/// Errors of the consumer. Every other ending is a result.
pub fn run<C: Consumer>(
    mut session: Session,
    consumer: &mut C,
    limits: &Limits,
    observer: &mut dyn Observer,
) -> Result<StreamEnd, C::Error> {
    let mut buffer = vec![0; limits.chunk];
    let start = Instant::now();
    let mut stop: Option<Stop> = None;
    let mut dump_watch = DumpWatch::new(limits.pid);
    let mut wait = limits.tick;
    let ending = loop {
        // A session of a few milliseconds ends on time, not at the next check.
        let left = limits
            .duration
            .filter(|_| stop.is_none())
            .map(|duration| duration.saturating_sub(start.elapsed()));
        let read = session.poll_read(&mut buffer, Deadline::after(left.map_or(wait, |left| left.min(wait))));
        wait = if matches!(read, Ok(Some(1..))) { PAUSE } else { limits.tick };
        match read {
            Ok(Some(0)) => {
                consumer.end()?;
                let asked = stop.is_some();
                break if consumer.is_whole() { Ending::Whole { asked } } else { Ending::Cut(None) };
            }
            Ok(Some(count)) => {
                dump_watch.end_silence();
                consumer.take(buffer.get(..count).unwrap_or_default())?;
                if let Some(stop) = &mut stop {
                    stop.last_byte = Instant::now();
                }
            }
            Ok(None) => {
                if let Some(note) = dump_watch.look() {
                    observer.note(note);
                }
                consumer.pause()?;
            }
            Err(error) => {
                consumer.end()?;
                break Ending::Cut(Some(error));
            }
        }
        consumer.show(start.elapsed(), stop.is_some());
        match &stop {
            _ if limits.stop.is_cancelled() => break Ending::Abandoned,
            None if limits.stop.is_stopped() || consumer.is_satisfied() || limits.is_over(start) => {
                stop = Some(Stop::begin(&session, limits.stop.is_stopped()));
            }
            Some(stop) if stop.is_abandoned(limits) => break Ending::Abandoned,
            _ => {}
        }
        let Some(stop) = &mut stop else { continue };
        if stop.is_silent(limits.silence) {
            break Ending::Silent { silence: stop.last_byte.elapsed(), stop_error: stop.take_error() };
        }
        if stop.has_failed()
            && let Some(error) = stop.take_error()
        {
            break Ending::Unstopped(error);
        }
    };
    if let (Ending::Whole { .. }, Some(stop)) = (&ending, &stop) {
        stop.await_answer();
    }
    // Ends the session in the process if the stream has not ended.
    drop(session);
    Ok(StreamEnd { ending, elapsed: start.elapsed() })
}

/// A stop requested on another connection, while the stream is still read.
struct Stop {
    /// True if the caller gave the signal, false if another limit was reached.
    is_by_signal: bool,
    since: Instant,
    last_byte: Instant,
    answer: Receiver<Result<(), Error>>,
    /// The error of the request, and the time of its arrival.
    error: Option<(Instant, Error)>,
}

impl Stop {
    fn begin(session: &Session, is_by_signal: bool) -> Self {
        let stopper = session.stopper();
        let (sender, answer) = mpsc::channel();
        thread::spawn(move || {
            // The receiver is gone if the stream ended first.
            let _ = sender.send(stopper.stop());
        });
        let now = Instant::now();
        Self { is_by_signal, since: now, last_byte: now, answer, error: None }
    }

    /// Returns true if the caller does not wait for the rest of the stream.
    fn is_abandoned(&self, limits: &Limits) -> bool {
        limits.is_stop_final && !self.is_by_signal && limits.stop.is_stopped()
    }

    /// Returns true if the session has been silent for too long.
    fn is_silent(&self, limit: Duration) -> bool {
        self.last_byte.elapsed() > limit || self.since.elapsed() > MAX_DRAIN_TIME
    }

    /// Returns true if the request has failed, and the stream has not ended since.
    fn has_failed(&mut self) -> bool {
        self.look();
        self.error.as_ref().is_some_and(|(seen, _)| seen.elapsed() > FAILED_STOP)
    }

    /// Takes the error of a failed request to stop.
    fn take_error(&mut self) -> Option<Error> {
        self.look();
        self.error.take().map(|(_, error)| error)
    }

    /// Waits for the answer. Only then the runtime has told its EventSources that the session is over, and
    /// only then filters that they lose so can be sent again.
    fn await_answer(&self) {
        let _ = self.answer.recv_timeout(STOP_ANSWER);
    }

    fn look(&mut self) {
        if let Ok(Err(error)) = self.answer.try_recv() {
            self.error = Some((Instant::now(), error));
        }
    }
}

/// A piece of a stream.
#[derive(Debug)]
#[allow(clippy::exhaustive_enums, reason = "callers handle each kind of piece")]
pub enum Piece<'b> {
    /// Bytes that have arrived.
    Bytes(&'b [u8]),
    /// No byte has arrived for a moment.
    Pause,
}

/// Passes the stream of a session to a closure, which returns true once it has enough. It is [`run`] for
/// callers that neither show progress nor tell whole streams from cut ones: a stream that ends is
/// [`Ending::Whole`].
///
/// # Errors
/// Returns the errors of `take`.
pub fn read<E>(
    session: Session,
    limits: &Limits,
    take: impl FnMut(Piece<'_>) -> Result<bool, E>,
) -> Result<StreamEnd, E> {
    run(session, &mut Taker { take, has_enough: false }, limits, &mut ())
}

/// A closure as the consumer of a stream.
struct Taker<F> {
    take: F,
    has_enough: bool,
}

impl<E, F: FnMut(Piece<'_>) -> Result<bool, E>> Consumer for Taker<F> {
    type Error = E;

    fn take(&mut self, bytes: &[u8]) -> Result<(), E> {
        self.has_enough |= (self.take)(Piece::Bytes(bytes))?;
        Ok(())
    }

    fn pause(&mut self) -> Result<(), E> {
        self.has_enough |= (self.take)(Piece::Pause)?;
        Ok(())
    }

    fn end(&mut self) -> Result<(), E> {
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.has_enough
    }

    fn is_whole(&self) -> bool {
        true
    }
}
