//! The connections of a server, which are bounded: clients that connect and stay silent do not keep others
//! out.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::{Body, Frame, SizeHint};
use tokio::task::AbortHandle;

/// Maximum number of concurrent connections. A further one replaces the oldest idle connection, or else waits
/// for one to end.
pub(super) const MAX_CONNECTIONS: usize = 128;
/// The time that a connection has for its request while others wait.
const SHORT_HEAD_TIME: Duration = Duration::from_millis(50);
/// The time between checks for a free place.
const TICK: Duration = Duration::from_millis(10);

/// The connections of all sockets, oldest first.
#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Mutex<VecDeque<Connection>>>);

struct Connection {
    activity: Activity,
    task: AbortHandle,
}

impl Connections {
    /// Waits until there is room for another connection.
    pub(super) async fn make_room(&self) {
        while !self.try_make_room() {
            tokio::time::sleep(TICK).await;
        }
    }

    /// Returns true if there is room for another connection. May end a silent one to make room.
    fn try_make_room(&self) -> bool {
        let mut list = lock(&self.0);
        list.retain(|connection| !connection.task.is_finished());
        if list.len() < MAX_CONNECTIONS {
            return true;
        }
        let silent = list.iter().position(|connection| connection.activity.is_silent());
        let Some(silent) = silent.and_then(|silent| list.remove(silent)) else { return false };
        silent.task.abort();
        true
    }

    pub(super) fn add(&self, activity: Activity, task: AbortHandle) {
        lock(&self.0).push_back(Connection { activity, task });
    }
}

/// The time since which a connection is idle; `None` while a request is answered.
#[derive(Clone)]
pub(super) struct Activity(Arc<Mutex<Option<Instant>>>);

impl Activity {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Some(Instant::now()))))
    }

    fn is_silent(&self) -> bool {
        lock(&self.0).is_some_and(|since| since.elapsed() >= SHORT_HEAD_TIME)
    }

    /// Notes a request, until the result is dropped.
    pub(super) fn begin(&self) -> Answering {
        *lock(&self.0) = None;
        Answering(self.clone())
    }
}

/// A request that is answered.
pub(super) struct Answering(Activity);

impl Drop for Answering {
    fn drop(&mut self) {
        *lock(&self.0.0) = Some(Instant::now());
    }
}

/// The body of an answer. The request lasts until it is sent.
pub(super) struct AnsweringBody<B> {
    pub(super) body: B,
    pub(super) _answering: Answering,
}

impl<B: Body + Unpin> Body for AnsweringBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_further_connection_replaces_the_oldest_silent_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let connections = Connections::default();
            let long_ago = Instant::now().checked_sub(SHORT_HEAD_TIME).unwrap();
            let mut tasks = Vec::new();
            let mut answering = Vec::new();
            for number in 0..MAX_CONNECTIONS {
                assert!(connections.try_make_room(), "{number}");
                let activity = Activity(Arc::new(Mutex::new(Some(long_ago))));
                // Two of them wait for a request.
                if ![7, 9].contains(&number) {
                    answering.push(activity.begin());
                }
                let task = tokio::spawn(std::future::pending::<()>());
                connections.add(activity, task.abort_handle());
                tasks.push(task);
            }
            assert!(connections.try_make_room());
            assert!((&mut tasks[7]).await.unwrap_err().is_cancelled());
            // A new one has its time.
            let task = tokio::spawn(std::future::pending::<()>());
            let activity = Activity::new();
            *lock(&activity.0) = Some(Instant::now() + Duration::from_secs(3600));
            connections.add(activity, task.abort_handle());
            assert!(connections.try_make_room());
            assert!((&mut tasks[9]).await.unwrap_err().is_cancelled());
            let last = tokio::spawn(std::future::pending::<()>());
            let activity = Activity::new();
            let its_request = activity.begin();
            connections.add(activity, last.abort_handle());
            assert!(!connections.try_make_room());
            // A connection with a sent answer is silent, too, after its time.
            drop(its_request);
            connections.make_room().await;
            assert!(last.await.unwrap_err().is_cancelled());
        });
    }
}
