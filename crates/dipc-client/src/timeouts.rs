use std::time::Duration;

/// Maximum duration of each phase. A phase that takes longer is an error.
///
/// A runtime answers from one thread: a silent client, a dump in progress or a debugger makes it as silent as
/// a dead one.
///
/// ```
/// use std::time::Duration;
/// use dipc_client::Timeouts;
///
/// let patient = Timeouts::each(Duration::from_secs(60)).with_dump(Duration::from_secs(3600));
/// assert_eq!((patient.connect.as_secs(), patient.dump.as_secs()), (60, 3600));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// Connecting: 5 s.
    pub connect: Duration,
    /// Sending a command and receiving the whole answer: 10 s.
    pub request: Duration,
    /// Writing a dump, for which the whole process may have to go to a slow disk: 10 min.
    pub dump: Duration,
    /// From the first read of a session's stream to its first byte: 10 s.
    pub first_bytes: Duration,
    /// The time without a byte of a running session, for its reader and its events: 30 s.
    /// [`SessionReader`](crate::SessionReader) documents when it applies. A program with nothing to report
    /// sends nothing: raise it for sessions of rare events that are stopped by hand.
    pub silence: Duration,
    /// Between two signs of life of a session that is being stopped, including the bytes of its stream: 30 s.
    pub stop: Duration,
    /// Stopping a session that is dropped, and reading the rest of its stream: 5 s.
    pub abandon: Duration,
}

impl Timeouts {
    /// The same time-out for every phase.
    pub const fn each(timeout: Duration) -> Self {
        Self {
            connect: timeout,
            request: timeout,
            dump: timeout,
            first_bytes: timeout,
            silence: timeout,
            stop: timeout,
            abandon: timeout,
        }
    }

    /// The same time-outs with another [`connect`](Self::connect).
    #[must_use]
    pub const fn with_connect(self, connect: Duration) -> Self {
        Self { connect, ..self }
    }

    /// The same time-outs with another [`request`](Self::request).
    #[must_use]
    pub const fn with_request(self, request: Duration) -> Self {
        Self { request, ..self }
    }

    /// The same time-outs with another [`dump`](Self::dump).
    #[must_use]
    pub const fn with_dump(self, dump: Duration) -> Self {
        Self { dump, ..self }
    }

    /// The same time-outs with another [`first_bytes`](Self::first_bytes).
    #[must_use]
    pub const fn with_first_bytes(self, first_bytes: Duration) -> Self {
        Self { first_bytes, ..self }
    }

    /// The same time-outs with another [`silence`](Self::silence).
    #[must_use]
    pub const fn with_silence(self, silence: Duration) -> Self {
        Self { silence, ..self }
    }

    /// The same time-outs with another [`stop`](Self::stop).
    #[must_use]
    pub const fn with_stop(self, stop: Duration) -> Self {
        Self { stop, ..self }
    }

    /// The same time-outs with another [`abandon`](Self::abandon).
    #[must_use]
    pub const fn with_abandon(self, abandon: Duration) -> Self {
        Self { abandon, ..self }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            request: Duration::from_secs(10),
            dump: Duration::from_secs(600),
            first_bytes: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            stop: Duration::from_secs(30),
            abandon: Duration::from_secs(5),
        }
    }
}
