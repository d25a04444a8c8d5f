use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use dipc_transport::{Address, Connection, Deadline, HubWaker};
use uuid::Uuid;

use super::{PortError, lock, wait};

/// Tells the server's thread which runtimes somebody waits for.
#[derive(Debug)]
pub(super) struct Bell {
    wanted: Mutex<Vec<Uuid>>,
    waker: HubWaker,
}

impl Bell {
    pub(super) fn new(waker: HubWaker) -> Self {
        Self { wanted: Mutex::default(), waker }
    }

    fn ring(&self, cookie: Uuid) {
        lock(&self.wanted).push(cookie);
        self.waker.wake();
    }

    /// Those that were rung for since this was last asked.
    pub(super) fn take(&self) -> Vec<Uuid> {
        std::mem::take(&mut lock(&self.wanted))
    }
}

/// What ties a runtime that has connected to the port to those who send it commands.
#[derive(Debug)]
pub(crate) struct PortLink {
    pub(crate) cookie: Uuid,
    pub(crate) namespace_pid: u64,
    pub(crate) pid: Option<u32>,
    pub(crate) address: Address,
    bell: Arc<Bell>,
    exchange: Mutex<Exchange>,
    changed: Condvar,
}

/// The hand-over of connections from the server's thread to those who wait for one.
#[derive(Debug, Default)]
struct Exchange {
    /// How many wait.
    waiting: usize,
    /// What was handed over; never more than wait.
    ready: VecDeque<Connection>,
    reconnects: u64,
    gone: bool,
}

impl PortLink {
    pub(super) fn new(
        cookie: Uuid,
        namespace_pid: u64,
        pid: Option<u32>,
        address: Address,
        bell: Arc<Bell>,
    ) -> Self {
        let (exchange, changed) = (Mutex::default(), Condvar::new());
        Self { cookie, namespace_pid, pid, address, bell, exchange, changed }
    }

    /// Waits for a connection of the runtime on which nothing was sent yet.
    pub(crate) fn connect(&self, deadline: Deadline) -> Result<Connection, PortError> {
        let started = Instant::now();
        let mut exchange = self.exchange();
        exchange.waiting += 1;
        self.bell.ring(self.cookie);
        loop {
            if let Some(connection) = exchange.ready.pop_front() {
                exchange.waiting -= 1;
                return Ok(connection);
            }
            if exchange.gone {
                exchange.waiting -= 1;
                return Err(PortError::Gone { cookie: self.cookie, address: self.address.clone() });
            }
            if deadline.is_over() {
                exchange.waiting -= 1;
                let (cookie, address) = (self.cookie, self.address.clone());
                return Err(PortError::NotConnected { cookie, address, after: started.elapsed() });
            }
            exchange = wait(&self.changed, exchange, deadline);
        }
    }

    /// Whether somebody waits for whom there is no connection yet.
    pub(super) fn is_wanted(&self) -> bool {
        let exchange = self.exchange();
        exchange.waiting > exchange.ready.len()
    }

    /// Hands a connection over, if somebody still waits for it.
    pub(super) fn hand_over(&self, connection: Connection) -> Option<Connection> {
        let mut exchange = self.exchange();
        if exchange.waiting <= exchange.ready.len() {
            return Some(connection);
        }
        exchange.ready.push_back(connection);
        self.changed.notify_one();
        None
    }

    pub(super) fn count_reconnect(&self) {
        self.exchange().reconnects += 1;
    }

    pub(super) fn reconnects(&self) -> u64 {
        self.exchange().reconnects
    }

    /// No connection will come any more.
    pub(super) fn end(&self) {
        self.exchange().gone = true;
        self.changed.notify_all();
    }

    pub(super) fn is_gone(&self) -> bool {
        self.exchange().gone
    }

    fn exchange(&self) -> MutexGuard<'_, Exchange> {
        lock(&self.exchange)
    }
}
