use std::time::Duration;

/// How long each phase may take before it is given up.
///
/// A runtime answers from one thread: another client that says nothing, a dump in progress or a debugger make it as
/// silent as a dead one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Being let in: 5 s.
    pub connect: Duration,
    /// Sending a command and getting the whole answer: 10 s.
    pub request: Duration,
    /// Writing a dump, in which the whole process may have to go to a slow disk: 10 min.
    pub dump: Duration,
    /// From the first read of a session's stream to its first byte: 10 s.
    pub first_bytes: Duration,
    /// Between two signs of life of a session that is being stopped, the bytes of its stream among them: 30 s.
    pub stop: Duration,
    /// Stopping a session that is dropped, with what it still has to say: 5 s.
    pub abandon: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            request: Duration::from_secs(10),
            dump: Duration::from_secs(600),
            first_bytes: Duration::from_secs(10),
            stop: Duration::from_secs(30),
            abandon: Duration::from_secs(5),
        }
    }
}
