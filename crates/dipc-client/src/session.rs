mod reader;
mod stopper;

pub use reader::SessionReader;
pub use stopper::Stopper;

use std::time::{Duration, Instant};

use dipc_transport::{Canceller, Connection, Deadline};
use dipc_wire::SessionId;

use crate::exchange::Exchange;
use crate::link::PortLease;
use crate::route::RouteConnection;
use crate::{Error, OptionalFeature, Target};

/// Maximum wait of one step of a read: a stop may be requested from another thread meanwhile.
const STEP: Duration = Duration::from_secs(1);

/// A running EventPipe session and its stream.
///
/// Read the stream until it ends. To end it, call [`request_stop`](Self::request_stop) or
/// [`stop_after`](Self::stop_after) *and keep reading*: the runtime ends the stream only after it has written
/// its remaining events and the rundown.
///
/// A session that is dropped before its stream has ended is stopped, within
/// [`Timeouts::abandon`](crate::Timeouts).
///
/// ```no_run
/// use std::time::Duration;
/// use dipc_client::{Providers, SessionConfig, Target};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = SessionConfig::new(Providers::parse("Microsoft-Windows-DotNETRuntime:0x1:4")?);
/// let mut session = Target::from_pid(4711)?.start_session(&config)?;
/// session.stop_after(Duration::from_secs(10));
/// std::io::copy(&mut session.reader(), &mut std::fs::File::create("app.nettrace")?)?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Session {
    stream: Connection,
    /// Returned when the stream has ended.
    lease: Option<PortLease>,
    /// The bytes received with the reply, and the number of them that were read.
    beginning: Vec<u8>,
    beginning_read: usize,
    first_read: Option<Instant>,
    last_byte: Option<Instant>,
    /// The time at which a read requests the stop.
    stop_at: Option<Instant>,
    /// The last check of a requested stop.
    stop_checked: Option<Instant>,
    /// Maximum wait of a reader, if the caller has set a limit.
    silence_limit: Option<Duration>,
    stopper: Stopper,
    command: &'static str,
    dropped_features: Vec<OptionalFeature>,
}

impl Session {
    pub(crate) fn new(
        target: Target,
        id: SessionId,
        command: &'static str,
        dropped_features: Vec<OptionalFeature>,
        exchange: Exchange,
    ) -> Self {
        let (RouteConnection { connection: stream, lease }, beginning) = exchange.into_stream();
        Self {
            stream,
            lease,
            beginning,
            beginning_read: 0,
            first_read: None,
            last_byte: None,
            stop_at: None,
            stop_checked: None,
            silence_limit: None,
            stopper: Stopper::new(target, id),
            command,
            dropped_features,
        }
    }

    /// The runtime's id of the session. It looks like an address, and the next session may have the same.
    pub fn id(&self) -> SessionId {
        self.stopper.id()
    }

    /// The form of CollectTracing that the runtime accepted.
    pub fn command(&self) -> &'static str {
        self.command
    }

    /// Returns the options that the runtime is too old for, dropped as
    /// [`SessionConfig::optional`](crate::SessionConfig) allows.
    pub fn dropped_features(&self) -> &[OptionalFeature] {
        &self.dropped_features
    }

    /// Reads the next bytes of the stream; 0 is its end (or an empty `buffer`).
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().replay(b"Nettrace".to_vec()).start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// use std::time::Duration;
    /// use dipc_client::{Deadline, Providers, SessionConfig};
    ///
    /// let mut session = target.start_session(&SessionConfig::new(Providers::parse("MyApp")?))?;
    /// let mut buffer = [0; 64 << 10];
    /// let count = session.read(&mut buffer, Deadline::after(Duration::from_secs(60)))?;
    /// assert!(buffer[..count].starts_with(b"N"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// With [`Error::is_deadline`] the session continues and the read can be repeated. [`Error::NoStream`] if
    /// no bytes arrived within [`Timeouts::first_bytes`](crate::Timeouts) after the first call. After a
    /// [requested](Self::request_stop) stop, the runtime's refusal of it, and [`Error::NotStopped`] if
    /// neither the answer nor any byte arrived within [`Timeouts::stop`](crate::Timeouts): then the stop can
    /// be requested again.
    pub fn read(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<usize, Error> {
        let started = Instant::now();
        match self.poll_read(buffer, deadline)? {
            Some(count) => Ok(count),
            None => Err(self.stream.read_timed_out(started.elapsed()).into()),
        }
    }

    /// Reads as [`read`](Self::read) does, but returns `None` at the deadline: for callers that wait again
    /// and again. [`read`](Self::read) instead examines each thread of the process at the deadline, to report
    /// why it is silent.
    ///
    /// # Errors
    /// Errors of [`read`](Self::read), except [`Error::is_deadline`].
    pub fn poll_read(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<Option<usize>, Error> {
        if let Some(count) = self.read_beginning(buffer) {
            return Ok(Some(count));
        }
        let started = Instant::now();
        let first_bytes = self.first_bytes_deadline(started);
        let mut quiet = false;
        loop {
            self.advance_stop(quiet)?;
            let step = self.next_step().min(deadline).min(first_bytes);
            if let Some(count) = self.read_stream(buffer, step)? {
                if self.stopper.has_ended() {
                    let request = self.stopper.target().request_deadline();
                    self.stopper.collect_answer(deadline.min(request));
                }
                return Ok(Some(count));
            }
            if first_bytes.is_over() {
                return Err(self.no_stream(started));
            }
            if deadline.is_over() {
                return Ok(None);
            }
            quiet = true;
        }
    }

    /// Reads the bytes received with the reply; `None` once they were read.
    fn read_beginning(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let waiting = self.beginning.get(self.beginning_read..).filter(|waiting| !waiting.is_empty())?;
        let count = waiting.len().min(buffer.len());
        buffer[..count].copy_from_slice(&waiting[..count]);
        self.beginning_read += count;
        self.stopper.count_received(count);
        Some(count)
    }

    /// The deadline of the first byte; [`Deadline::never`] once it has arrived.
    fn first_bytes_deadline(&mut self, now: Instant) -> Deadline {
        if self.bytes_read() > 0 {
            return Deadline::never();
        }
        let started = *self.first_read.get_or_insert(now);
        let limit = started.checked_add(self.stopper.target().timeouts().first_bytes);
        limit.map_or(Deadline::never(), Deadline::at)
    }

    fn no_stream(&self, started: Instant) -> Error {
        let peer = self.stream.peer().pid;
        let peer_state = peer.and_then(|pid| dipc_transport::process_state(pid).ok());
        Error::NoStream {
            command: self.command,
            address: self.stream.address().clone(),
            after: self.first_read.unwrap_or(started).elapsed(),
            peer,
            peer_state: peer_state.filter(dipc_transport::ProcessState::is_unresponsive),
        }
    }

    /// Requests a due stop, and advances a requested stop. `quiet`: the stream just had nothing to read.
    fn advance_stop(&mut self, quiet: bool) -> Result<(), Error> {
        let now = Instant::now();
        if self.stop_at.is_some_and(|at| at <= now) {
            self.stop_at = None;
            self.stopper.begin_request();
        }
        let checked_lately =
            self.stop_checked.is_some_and(|checked| now.duration_since(checked) < stopper::ATTEMPT);
        if !self.stopper.is_stopping() || (checked_lately && !quiet) {
            return Ok(());
        }
        self.stop_checked = Some(now);
        self.stopper.advance(self.last_byte, quiet)
    }

    /// Returns the deadline of one step of a read.
    fn next_step(&self) -> Deadline {
        let step = if self.stopper.is_stopping() { stopper::ATTEMPT } else { STEP };
        Deadline::after(step).min(self.stop_at.map_or(Deadline::never(), Deadline::at))
    }

    /// Reads the stream; `None` at the deadline.
    fn read_stream(
        &mut self,
        buffer: &mut [u8],
        deadline: Deadline,
    ) -> Result<Option<usize>, dipc_transport::Error> {
        let result = self.stream.poll_read(buffer, deadline);
        match &result {
            Ok(Some(0)) if !buffer.is_empty() => self.end(),
            Ok(Some(count)) => {
                self.last_byte = Some(Instant::now());
                self.stopper.count_received(*count);
            }
            Err(error) if error.is_disconnected() => self.end(),
            Ok(None) | Err(_) => {}
        }
        result
    }

    fn end(&mut self) {
        self.stopper.end();
        self.lease = None;
    }

    /// Returns the number of bytes of the stream that were read.
    pub fn bytes_read(&self) -> u64 {
        self.stopper.received()
    }

    /// Asks the runtime to stop the session, over its own connection and without waiting for the answer. Keep
    /// reading until the stream ends: the reads do the rest. Does nothing if a stop is in progress or the
    /// stream has ended.
    ///
    /// If no connection is free (a runtime at a port, a full queue) the next reads send it.
    ///
    /// # Errors
    /// Errors of connecting. After an error the stop can be requested again.
    pub fn request_stop(&mut self) -> Result<(), Error> {
        self.stop_at = None;
        self.stopper.request_stop()
    }

    /// Schedules the stop of the session at `duration` from now: a read in progress at that time, or else the
    /// next one, [requests](Self::request_stop) it and continues reading.
    pub fn stop_after(&mut self, duration: Duration) {
        self.stop_at = Instant::now().checked_add(duration);
    }

    /// Returns the stream as [`std::io::Read`]. [`SessionReader`] documents how long a read waits.
    pub fn reader(&mut self) -> SessionReader<&mut Self> {
        SessionReader::new(self)
    }

    /// Returns the stream as [`std::io::Read`], which owns the session.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().replay(b"Nettrace".to_vec()).start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// use std::io::Read as _;
    /// use dipc_client::{Providers, SessionConfig};
    ///
    /// let mut session = target.start_session(&SessionConfig::new(Providers::parse("MyApp")?))?;
    /// session.request_stop()?;
    /// let mut recording = Vec::new();
    /// session.into_reader().read_to_end(&mut recording)?;
    /// assert_eq!(recording, b"Nettrace");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_reader(self) -> SessionReader<Self> {
        SessionReader::new(self)
    }

    /// Returns the events of the stream as they arrive, with everything that [`nettrace::Reader`] reports
    /// about a recording.
    ///
    /// To stop at an event, take a [`stopper`](Self::stopper) before and call its
    /// [`request_stop`](Stopper::request_stop): the remaining events, and the rundown, are still read.
    ///
    /// A program with nothing to report is silent. [`SessionReader`] documents how long the next event is
    /// waited for; an error with [`is_timeout`](nettrace::Error::is_timeout) can be followed by another call,
    /// and no event is lost. In time order the last events of each thread are held until the next ones show
    /// that nothing older follows. A time-out releases them, so a live view needs a silence limit of about a
    /// second:
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let config = dipc_client::SessionConfig::new(dipc_client::Providers::parse("MyApp")?);
    /// # let mut session = dipc_client::Target::from_pid(4711)?.start_session(&config)?;
    /// session.limit_silence(std::time::Duration::from_secs(1));
    /// let mut events = session.events()?.in_time_order();
    /// loop {
    ///     match events.next() {
    ///         Ok(Some(event)) => println!("{} {}", event.provider(), event.id()),
    ///         Ok(None) => break,
    ///         Err(error) if error.is_timeout() => println!("nothing for a second"),
    ///         Err(error) => return Err(error.into()),
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the first read ([`nettrace::Error::Io`], which carries the [`Error`]), and a stream that is
    /// not a recording.
    #[cfg(feature = "nettrace")]
    pub fn events(&mut self) -> Result<nettrace::Reader<SessionReader<&mut Self>>, nettrace::Error> {
        nettrace::Reader::new(self.reader())
    }

    /// Returns a handle that stops this session from another thread, or while its stream is borrowed.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().replay(b"Nettrace".to_vec()).start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// use dipc_client::{Providers, SessionConfig};
    ///
    /// let session = target.start_session(&SessionConfig::new(Providers::parse("MyApp")?))?;
    /// let stopper = session.stopper();
    /// let mut reader = session.into_reader();
    /// let reading = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    /// // From another thread, such as on Ctrl-C:
    /// stopper.request_stop()?;
    /// assert_eq!(reading.join().expect("no panic")?, 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Returns a handle that ends a pending read, and every later one, wherever the stream is.
    pub fn canceller(&self) -> Canceller {
        self.stream.canceller()
    }

    /// Reads to the end of the stream, so that the runtime can finish.
    fn drain(&mut self, deadline: Deadline) {
        let mut buffer = vec![0; 64 << 10];
        while !self.stopper.has_ended() && !deadline.is_over() {
            if !matches!(self.read_stream(&mut buffer, deadline), Ok(Some(_))) {
                return;
            }
        }
    }
}

/// Closing the stream is not enough: a runtime with nothing to write does not notice, and keeps the session
/// until the next event. A stop alone is not enough either: with the stream full and no reader, the runtime
/// waits in the middle of the stop and answers no command. And closing the stream during a stop is worse: the
/// runtime's writing thread then stops the session a second time, by an id that may be another client's by
/// now. So the stop is sent and the stream drained, also after a cancel. It is closed early only when the
/// deadline passes: the runtime's remaining writes fail, which ends the session.
impl Drop for Session {
    fn drop(&mut self) {
        let deadline = Deadline::after(self.stopper.target().timeouts().abandon);
        if self.stopper.has_ended() {
            return self.stopper.collect_answer(deadline);
        }
        self.stream.renew_canceller();
        self.stopper.withdraw_unsent();
        if self.stopper.begin() {
            // A stop is in progress. It may still fail, so it is repeated unless the stream ends.
            self.drain(deadline);
            if self.stopper.has_ended() {
                return self.stopper.collect_answer(deadline);
            }
        }
        let stop = self.stopper.send(deadline);
        self.drain(deadline);
        if let Ok(mut exchange) = stop
            && self.stopper.has_ended()
        {
            // The session is gone when this arrives.
            let _ = exchange.poll_message(deadline);
        }
    }
}
