//! The limits of connections.

use std::time::Duration;

/// The limits of a server's connections.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "made by servers, which decide on each limit")]
pub struct ConnectionLimits {
    /// Maximum number of concurrent connections. A further one replaces the oldest idle connection, or else
    /// waits for one to end.
    pub max_connections: usize,
    /// The time for a request's head, and of an idle connection.
    pub head_time: Duration,
    /// The end of a connection.
    pub lifetime: Lifetime,
}

/// The end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "made by servers")]
pub enum Lifetime {
    /// A connection has one request, and this time for all of it. It is not idle once the request has
    /// arrived.
    OneRequest(Duration),
    /// A connection has requests one after another, and ends when its client takes nothing of an answer for
    /// this time.
    KeptAlive(Duration),
}
