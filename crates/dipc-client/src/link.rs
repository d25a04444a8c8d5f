//! Runtimes that have connected to a port, and the hand-over of their connections to commands.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dipc_transport::{Address, Connection, Deadline, HubWaker};
use uuid::Uuid;

use crate::PortError;

/// The runtimes for which a command waits, passed to the server's thread.
#[derive(Debug)]
pub(crate) struct WaiterQueue {
    wanted: Mutex<Vec<Uuid>>,
    waker: HubWaker,
}

impl WaiterQueue {
    pub(crate) fn new(waker: HubWaker) -> Self {
        Self { wanted: Mutex::default(), waker }
    }

    fn push(&self, cookie: Uuid) {
        lock(&self.wanted).push(cookie);
        self.waker.wake();
    }

    /// Takes the runtimes that were pushed since the last call.
    pub(crate) fn take(&self) -> Vec<Uuid> {
        std::mem::take(&mut lock(&self.wanted))
    }
}

/// A runtime that has connected to the port, shared between its commands and the server's thread.
#[derive(Debug)]
pub(crate) struct PortLink {
    pub(crate) cookie: Uuid,
    pub(crate) namespace_pid: u64,
    pub(crate) pid: Option<u32>,
    pub(crate) address: Address,
    waiters: Arc<WaiterQueue>,
    handoff: Mutex<Handoff>,
    changed: Condvar,
}

/// The hand-over of connections from the server's thread to the waiting commands.
#[derive(Debug, Default)]
struct Handoff {
    /// The number of commands that wait.
    waiting: usize,
    /// The connections that were handed over; never more than the waiting commands.
    ready: VecDeque<Connection>,
    /// The connections that were handed over and are not closed.
    in_use: usize,
    /// The time at which the last of them was closed.
    last_closed: Option<Instant>,
    reconnects: u64,
    exited: bool,
}

/// The use of a handed-over connection. It is dropped when the connection is closed.
#[derive(Debug)]
pub(crate) struct PortLease(Arc<PortLink>);

impl Drop for PortLease {
    fn drop(&mut self) {
        let mut handoff = self.0.handoff();
        handoff.in_use -= 1;
        handoff.last_closed = Some(Instant::now());
    }
}

impl PortLink {
    pub(crate) fn new(
        cookie: Uuid,
        namespace_pid: u64,
        pid: Option<u32>,
        address: Address,
        waiters: Arc<WaiterQueue>,
    ) -> Self {
        let (handoff, changed) = (Mutex::default(), Condvar::new());
        Self { cookie, namespace_pid, pid, address, waiters, handoff, changed }
    }

    /// Waits for an unused connection of the runtime.
    pub(crate) fn connect(
        self: &Arc<Self>,
        deadline: Deadline,
    ) -> Result<(Connection, PortLease), PortError> {
        let started = Instant::now();
        let mut handoff = self.handoff();
        handoff.waiting += 1;
        self.waiters.push(self.cookie);
        loop {
            if let Some(connection) = handoff.ready.pop_front() {
                handoff.waiting -= 1;
                return Ok((connection, PortLease(Arc::clone(self))));
            }
            if handoff.exited {
                handoff.waiting -= 1;
                return Err(PortError::Exited { cookie: self.cookie, address: self.address.clone() });
            }
            if deadline.is_over() {
                handoff.waiting -= 1;
                let (cookie, address) = (self.cookie, self.address.clone());
                return Err(PortError::NotConnected { cookie, address, after: started.elapsed() });
            }
            handoff = wait(&self.changed, handoff, deadline);
        }
    }

    /// Returns true if a command is still waiting for a connection.
    pub(crate) fn is_wanted(&self) -> bool {
        let handoff = self.handoff();
        handoff.waiting > handoff.ready.len()
    }

    /// Hands a connection over; returns it if no command is waiting.
    pub(crate) fn hand_over(&self, connection: Connection) -> Option<Connection> {
        let mut handoff = self.handoff();
        if handoff.waiting <= handoff.ready.len() {
            return Some(connection);
        }
        handoff.ready.push_back(connection);
        handoff.in_use += 1;
        self.changed.notify_one();
        None
    }

    pub(crate) fn count_reconnect(&self) {
        self.handoff().reconnects += 1;
    }

    pub(crate) fn reconnects(&self) -> u64 {
        self.handoff().reconnects
    }

    /// Returns whether a command has a connection of the runtime.
    pub(crate) fn is_in_use(&self) -> bool {
        self.handoff().in_use > 0
    }

    /// Returns how long the runtime, without a connection at the port since `since`, has also been without a
    /// connection with a command.
    pub(crate) fn absence(&self, since: Instant, now: Instant) -> Duration {
        let handoff = self.handoff();
        if handoff.in_use > 0 {
            return Duration::ZERO;
        }
        now.saturating_duration_since(handoff.last_closed.map_or(since, |closed| closed.max(since)))
    }

    /// Marks the runtime as exited: it will not connect again.
    pub(crate) fn end(&self) {
        self.handoff().exited = true;
        self.changed.notify_all();
    }

    pub(crate) fn has_exited(&self) -> bool {
        self.handoff().exited
    }

    fn handoff(&self) -> MutexGuard<'_, Handoff> {
        lock(&self.handoff)
    }
}

/// Locks a mutex. A thread that panicked leaves the state consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a change, at most until the deadline. It may return early.
pub(crate) fn wait<'m, T>(
    changed: &Condvar,
    guard: MutexGuard<'m, T>,
    deadline: Deadline,
) -> MutexGuard<'m, T> {
    match deadline.remaining() {
        None => changed.wait(guard).unwrap_or_else(PoisonError::into_inner),
        Some(time) => changed.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0,
    }
}
