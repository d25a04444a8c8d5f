use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use dipc_transport::{Address, Connection, Deadline, HubWaker};
use uuid::Uuid;

use super::{PortError, lock, wait};

/// The runtimes for which a command waits, for the server's thread.
#[derive(Debug)]
pub(super) struct WaiterQueue {
    wanted: Mutex<Vec<Uuid>>,
    waker: HubWaker,
}

impl WaiterQueue {
    pub(super) fn new(waker: HubWaker) -> Self {
        Self { wanted: Mutex::default(), waker }
    }

    fn push(&self, cookie: Uuid) {
        lock(&self.wanted).push(cookie);
        self.waker.wake();
    }

    /// Takes the runtimes that were pushed since the last call.
    pub(super) fn take(&self) -> Vec<Uuid> {
        std::mem::take(&mut lock(&self.wanted))
    }
}

/// A runtime that has connected to the port, as its commands share it with the server's thread.
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

/// The hand-over of connections from the server's thread to the commands that wait for one.
#[derive(Debug, Default)]
struct Handoff {
    /// The number of commands that wait.
    waiting: usize,
    /// The connections that were handed over; never more than wait.
    ready: VecDeque<Connection>,
    reconnects: u64,
    exited: bool,
}

impl PortLink {
    pub(super) fn new(
        cookie: Uuid,
        namespace_pid: u64,
        pid: Option<u32>,
        address: Address,
        waiters: Arc<WaiterQueue>,
    ) -> Self {
        let (handoff, changed) = (Mutex::default(), Condvar::new());
        Self { cookie, namespace_pid, pid, address, waiters, handoff, changed }
    }

    /// Waits for a connection of the runtime on which nothing was sent yet.
    pub(crate) fn connect(&self, deadline: Deadline) -> Result<Connection, PortError> {
        let started = Instant::now();
        let mut handoff = self.handoff();
        handoff.waiting += 1;
        self.waiters.push(self.cookie);
        loop {
            if let Some(connection) = handoff.ready.pop_front() {
                handoff.waiting -= 1;
                return Ok(connection);
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

    /// Whether a command waits that has no connection yet.
    pub(super) fn is_wanted(&self) -> bool {
        let handoff = self.handoff();
        handoff.waiting > handoff.ready.len()
    }

    /// Hands a connection over; returns it if no command waits any more.
    pub(super) fn hand_over(&self, connection: Connection) -> Option<Connection> {
        let mut handoff = self.handoff();
        if handoff.waiting <= handoff.ready.len() {
            return Some(connection);
        }
        handoff.ready.push_back(connection);
        self.changed.notify_one();
        None
    }

    pub(super) fn count_reconnect(&self) {
        self.handoff().reconnects += 1;
    }

    pub(super) fn reconnects(&self) -> u64 {
        self.handoff().reconnects
    }

    /// Marks the runtime as exited: no connection will come any more.
    pub(super) fn end(&self) {
        self.handoff().exited = true;
        self.changed.notify_all();
    }

    pub(super) fn has_exited(&self) -> bool {
        self.handoff().exited
    }

    fn handoff(&self) -> MutexGuard<'_, Handoff> {
        lock(&self.handoff)
    }
}
