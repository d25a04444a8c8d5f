//! The connections of a server, which are bounded: clients that connect and stay silent do not keep others
//! out.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::connection::Connection;
use crate::limits::ConnectionLimits;
use crate::listen::Listen;

/// The time between checks for a free place.
const TICK: Duration = Duration::from_millis(10);
/// The wait after a failed accept: there may be too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The connections of a server, at all its sockets. Clones share them.
#[derive(Debug, Clone)]
pub struct Connections {
    limits: ConnectionLimits,
    /// Oldest first.
    list: Arc<Mutex<VecDeque<Accepted>>>,
}

#[derive(Debug)]
struct Accepted {
    connection: Connection,
    task: JoinHandle<()>,
}

impl Connections {
    /// No connections yet.
    pub fn new(limits: ConnectionLimits) -> Self {
        Self { limits, list: Arc::default() }
    }

    /// Accepts connections forever, and serves each in a task of its own. To be awaited in a tokio runtime,
    /// whose tasks end with it.
    pub async fn accept<L, F>(&self, listener: &L, serve: impl Fn(L::Stream, Connection) -> F)
    where
        L: Listen,
        F: Future<Output = ()> + Send + 'static,
    {
        loop {
            let Ok(stream) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            self.make_room().await;
            let connection = Connection::new(&self.limits);
            let task = tokio::spawn(serve(stream, connection.clone()));
            self.list().push_back(Accepted { connection, task });
        }
    }

    /// Waits until all connections have ended.
    pub async fn finish(&self) {
        let accepted = std::mem::take(&mut *self.list());
        for Accepted { task, .. } in accepted {
            // A panic of that task was already printed.
            let _ = task.await;
        }
    }

    /// Waits until there is room for another connection.
    async fn make_room(&self) {
        while !self.try_make_room() {
            tokio::time::sleep(TICK).await;
        }
    }

    /// Returns true if there is room for another connection. May end a silent one to make room.
    fn try_make_room(&self) -> bool {
        let mut list = self.list();
        list.retain(|accepted| !accepted.task.is_finished());
        if list.len() < self.limits.max_connections {
            return true;
        }
        let silent = list.iter().position(|accepted| accepted.connection.is_silent());
        let Some(silent) = silent.and_then(|silent| list.remove(silent)) else { return false };
        silent.task.abort();
        true
    }

    fn list(&self) -> MutexGuard<'_, VecDeque<Accepted>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::task::AbortHandle;

    use super::*;
    use crate::limits::Lifetime;

    const LIMITS: ConnectionLimits = ConnectionLimits {
        max_connections: 8,
        head_time: Duration::from_secs(60),
        lifetime: Lifetime::KeptAlive(Duration::from_secs(60)),
    };

    /// Adds a connection of a task that never ends.
    fn add(connections: &Connections, idle_since: Option<Instant>) -> (Connection, AbortHandle) {
        let connection = Connection::idle_since(&connections.limits, idle_since);
        let task = tokio::spawn(std::future::pending::<()>());
        let handle = task.abort_handle();
        connections.list().push_back(Accepted { connection: connection.clone(), task });
        (connection, handle)
    }

    async fn await_end(task: &AbortHandle) {
        while !task.is_finished() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_further_connection_replaces_the_oldest_silent_one() {
        let connections = Connections::new(LIMITS);
        let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        let mut tasks = Vec::new();
        for number in 0..LIMITS.max_connections {
            assert!(connections.try_make_room(), "{number}");
            // Two of them wait for a request.
            let (_, task) = add(&connections, [3, 5].contains(&number).then_some(long_ago));
            tasks.push(task);
        }
        assert!(connections.try_make_room());
        await_end(&tasks[3]).await;
        // A new one has its time.
        add(&connections, Some(Instant::now() + Duration::from_secs(3600)));
        assert!(connections.try_make_room());
        await_end(&tasks[5]).await;
        let (connection, last) = add(&connections, Some(long_ago));
        let request = connection.begin();
        assert!(!connections.try_make_room());
        // A connection with a sent answer is silent, too, after its time.
        drop(request);
        connections.make_room().await;
        await_end(&last).await;
    }

    #[tokio::test]
    async fn a_connection_with_one_request_is_not_replaced_once_it_has_arrived() {
        let lifetime = Lifetime::OneRequest(Duration::from_secs(60));
        let connections = Connections::new(ConnectionLimits { max_connections: 1, lifetime, ..LIMITS });
        let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        let (connection, task) = add(&connections, Some(long_ago));
        drop(connection.begin());
        assert!(!connections.try_make_room());
        task.abort();
        connections.make_room().await;
    }
}
