use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use dipc_transport::{Address, Canceller, Deadline};
use uuid::Uuid;

use super::{PortEvent, PortRuntime};
use crate::PortError;
use crate::link::{PortLink, lock, wait};

/// Maximum number of errors kept for a caller that takes no events; later errors are dropped.
const MAX_ERRORS: usize = 100;

/// Maximum number of events about exited runtimes kept for a caller that takes no events.
const MAX_EVENTS: usize = 1000;

/// The state shared by the server's thread and its owner.
#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<PortEvent>,
    errors: usize,
    links: BTreeMap<Uuid, Arc<PortLink>>,
    closed: bool,
}

impl Shared {
    pub(super) fn next_event(
        &self,
        deadline: Deadline,
        canceller: &Canceller,
        address: &Address,
    ) -> Result<PortEvent, PortError> {
        let started = Instant::now();
        let mut state = self.state();
        loop {
            if canceller.is_cancelled() {
                return Err(PortError::Cancelled { address: address.clone() });
            }
            if let Some(event) = state.events.pop_front() {
                state.errors -= usize::from(matches!(event, PortEvent::Error(_)));
                return Ok(event);
            }
            if deadline.is_over() {
                return Err(PortError::NothingHappened {
                    address: address.clone(),
                    after: started.elapsed(),
                });
            }
            state = wait(&self.changed, state, deadline);
        }
    }

    /// Wakes the threads that wait for an event.
    pub(super) fn wake(&self) {
        // A thread that has just checked holds the lock until it waits.
        drop(self.state());
        self.changed.notify_all();
    }

    pub(super) fn tell(&self, event: PortEvent) {
        let mut state = self.state();
        if matches!(event, PortEvent::Error(_)) {
            if state.errors >= MAX_ERRORS {
                return;
            }
            state.errors += 1;
        }
        state.events.push_back(event);
        self.changed.notify_all();
    }

    pub(super) fn insert(&self, link: Arc<PortLink>) {
        self.state().links.insert(link.cookie, link);
    }

    /// Removes an exited runtime. If too many events wait for a caller that takes none, a runtime that has
    /// not been reported yet is dropped without a report.
    pub(super) fn remove(&self, runtime: PortRuntime) {
        let cookie = runtime.cookie();
        let mut state = self.state();
        state.links.remove(&cookie);
        let told =
            |event: &PortEvent| matches!(event, PortEvent::Connected(other) if other.cookie() == cookie);
        if state.events.len() >= MAX_EVENTS
            && let Some(index) = state.events.iter().position(told)
        {
            state.events.remove(index);
            return;
        }
        drop(state);
        self.tell(PortEvent::Exited(runtime));
    }

    pub(super) fn links(&self) -> Vec<Arc<PortLink>> {
        self.state().links.values().cloned().collect()
    }

    pub(super) fn close(&self) {
        self.state().closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}
