//! The table of operations: current and past collections of artifacts.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use dipc_client::Uuid;
use dipc_collect::StopSignal;

use crate::artifact::ArtifactKind;
use crate::process::Watched;

/// Maximum number of ended operations to keep.
const MAX_ENDED: usize = 500;

/// The state of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationState {
    /// The process was not asked so far.
    Starting,
    /// The artifact is collected.
    Running,
    /// The operation was asked to end, so that the artifact is complete.
    Stopping,
    /// The operation was ended before it was complete.
    Cancelled,
    /// The artifact is complete.
    Succeeded,
    /// The operation failed.
    Failed,
}

impl OperationState {
    /// The name, as in dotnet-monitor.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "Starting",
            Self::Running => "Running",
            Self::Stopping => "Stopping",
            Self::Cancelled => "Cancelled",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// Returns true if it has ended.
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Cancelled | Self::Succeeded | Self::Failed)
    }
}

/// An operation at a moment.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The id of the operation.
    pub id: Uuid,
    /// The kind of its artifact.
    pub kind: ArtifactKind,
    /// The time of its beginning.
    pub created: SystemTime,
    /// The state of the operation.
    pub state: OperationState,
    /// The pid of the process.
    pub pid: u32,
    /// The cookie of the process's runtime.
    pub uid: Uuid,
    /// The name of the process.
    pub process_name: String,
    /// The egress provider that gets the artifact; none if it is the answer to a request.
    pub egress_provider: Option<String>,
    /// The tags that the request gave.
    pub tags: BTreeSet<String>,
    /// The place of the complete artifact.
    pub resource_location: Option<String>,
    /// The reason of a failure.
    pub error: Option<String>,
    stop: StopSignal,
    /// True if it counts for the limits.
    is_limited: bool,
    /// True if work for it goes on: a cancelled operation may have to wait for its process.
    is_active: bool,
}

impl Operation {
    /// Returns true if it can be ended early with a complete artifact.
    pub const fn is_stoppable(&self) -> bool {
        self.kind.is_stoppable() && matches!(self.state, OperationState::Running)
    }
}

/// Too many operations of a kind run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} of {} at once is the limit: wait for one to end", kind.limit(), kind.name())]
#[non_exhaustive]
pub struct TooMany {
    /// The kind.
    pub kind: ArtifactKind,
}

/// The operations. Clones share the table.
#[derive(Debug, Clone, Default)]
pub struct Operations {
    table: Arc<Mutex<VecDeque<Operation>>>,
    ended: Arc<EndedOperations>,
}

/// The numbers of operations that have ended, remembered or not.
#[derive(Debug, Default)]
pub(crate) struct EndedOperations {
    pub(crate) succeeded: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) cancelled: AtomicU64,
}

impl EndedOperations {
    fn count(&self, state: OperationState) {
        let number = match state {
            OperationState::Succeeded => &self.succeeded,
            OperationState::Failed => &self.failed,
            OperationState::Cancelled => &self.cancelled,
            OperationState::Starting | OperationState::Running | OperationState::Stopping => return,
        };
        number.fetch_add(1, Ordering::Relaxed);
    }
}

/// An operation that runs. It counts as failed when this is dropped before [`end`](Self::end).
#[derive(Debug)]
pub struct RunningOperation {
    operations: Operations,
    /// The id.
    pub id: Uuid,
    /// The operation's request to end.
    pub stop: StopSignal,
}

impl Operations {
    fn table(&self) -> MutexGuard<'_, VecDeque<Operation>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an operation.
    ///
    /// # Errors
    /// If as many of its kind run as may.
    pub fn begin(
        &self,
        kind: ArtifactKind,
        process: &Watched,
        tags: BTreeSet<String>,
        egress_provider: Option<String>,
    ) -> Result<RunningOperation, TooMany> {
        let mut table = self.table();
        let running = table.iter().filter(|it| it.kind == kind && it.is_active && it.is_limited).count();
        if running >= kind.limit() {
            return Err(TooMany { kind });
        }
        Ok(self.add(&mut table, kind, process, tags, egress_provider, true))
    }

    /// Begins an operation of a rule. Operations of rules have their own limits, and do not count for the
    /// limits of requests.
    pub fn begin_for_rule(
        &self,
        kind: ArtifactKind,
        process: &Watched,
        egress_provider: String,
    ) -> RunningOperation {
        self.add(&mut self.table(), kind, process, BTreeSet::new(), Some(egress_provider), false)
    }

    /// Begins an operation of an earlier run again, with its id. `process` is its pid, cookie and name.
    pub(crate) fn begin_again(
        &self,
        id: Uuid,
        kind: ArtifactKind,
        process: (u32, Uuid, String),
        tags: BTreeSet<String>,
        egress_provider: String,
    ) -> RunningOperation {
        let mut table = self.table();
        self.add_with(&mut table, id, kind, process, tags, Some(egress_provider), false)
    }

    fn add(
        &self,
        table: &mut VecDeque<Operation>,
        kind: ArtifactKind,
        process: &Watched,
        tags: BTreeSet<String>,
        egress_provider: Option<String>,
        is_limited: bool,
    ) -> RunningOperation {
        let process = (process.facts.pid, process.uid, process.title().to_owned());
        self.add_with(table, Uuid::new_v4(), kind, process, tags, egress_provider, is_limited)
    }

    #[allow(clippy::too_many_arguments, reason = "they are the members of an operation")]
    fn add_with(
        &self,
        table: &mut VecDeque<Operation>,
        id: Uuid,
        kind: ArtifactKind,
        (pid, uid, process_name): (u32, Uuid, String),
        tags: BTreeSet<String>,
        egress_provider: Option<String>,
        is_limited: bool,
    ) -> RunningOperation {
        let ended = table.iter().filter(|it| !it.is_active).count();
        if ended >= MAX_ENDED
            && let Some(oldest) = table.iter().position(|it| !it.is_active)
        {
            table.remove(oldest);
        }
        let operation = Operation {
            id,
            kind,
            created: SystemTime::now(),
            state: OperationState::Starting,
            pid,
            uid,
            process_name,
            egress_provider,
            tags,
            resource_location: None,
            error: None,
            stop: StopSignal::new(),
            is_limited,
            is_active: true,
        };
        let running =
            RunningOperation { operations: self.clone(), id: operation.id, stop: operation.stop.clone() };
        table.push_back(operation);
        running
    }

    /// The numbers of operations that have ended.
    pub(crate) fn ended(&self) -> &EndedOperations {
        &self.ended
    }

    /// Returns all operations, oldest first.
    pub fn list(&self) -> Vec<Operation> {
        self.table().iter().cloned().collect()
    }

    /// Returns an operation.
    pub fn get(&self, id: Uuid) -> Option<Operation> {
        self.table().iter().find(|operation| operation.id == id).cloned()
    }

    /// Asks an operation to end with a complete artifact. Returns it as it was; `None` if it is not known.
    pub fn stop(&self, id: Uuid) -> Option<Operation> {
        let mut table = self.table();
        let operation = table.iter_mut().find(|operation| operation.id == id)?;
        let before = operation.clone();
        if operation.is_stoppable() {
            operation.state = OperationState::Stopping;
            operation.stop.stop();
        }
        Some(before)
    }

    /// Ends an operation at once. Returns it as it was; `None` if it is not known.
    pub fn cancel(&self, id: Uuid) -> Option<Operation> {
        let mut table = self.table();
        let operation = table.iter_mut().find(|operation| operation.id == id)?;
        let before = operation.clone();
        if !operation.state.has_ended() {
            operation.state = OperationState::Cancelled;
            operation.stop.cancel();
            self.ended.count(operation.state);
        }
        Some(before)
    }

    /// Ends all operations at once.
    pub fn cancel_all(&self) {
        let running: Vec<Uuid> = self.table().iter().map(|operation| operation.id).collect();
        for id in running {
            self.cancel(id);
        }
    }

    fn update(&self, id: Uuid, change: impl FnOnce(&mut Operation)) {
        if let Some(operation) = self.table().iter_mut().find(|operation| operation.id == id) {
            change(operation);
        }
    }
}

impl RunningOperation {
    /// Records that the process has accepted the request.
    pub fn begun(&self) {
        self.operations.update(self.id, |operation| {
            if operation.state == OperationState::Starting {
                operation.state = OperationState::Running;
            }
        });
    }

    /// Records that the destination has failed, and is tried again.
    pub(crate) fn retrying(&self, error: &str) {
        self.operations.update(self.id, |operation| {
            if !operation.state.has_ended() {
                operation.error = Some(format!("it is tried again: {error}"));
            }
        });
    }

    /// Returns true if it was ended before it was complete.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.operations.get(self.id).is_some_and(|operation| operation.state == OperationState::Cancelled)
    }

    /// Records the end: the place of the artifact, or the reason of the failure.
    pub fn end(self, result: Result<Option<String>, String>) {
        self.operations.update(self.id, |operation| {
            if operation.state.has_ended() {
                return;
            }
            match result {
                Ok(location) => {
                    operation.state = OperationState::Succeeded;
                    operation.error = None;
                    operation.resource_location = location;
                }
                Err(error) => {
                    operation.state = OperationState::Failed;
                    operation.error = Some(error);
                }
            }
            self.operations.ended.count(operation.state);
        });
    }
}

impl Drop for RunningOperation {
    fn drop(&mut self) {
        self.operations.update(self.id, |operation| {
            operation.is_active = false;
            if !operation.state.has_ended() {
                operation.state = OperationState::Failed;
                operation.error = Some("it was abandoned".to_owned());
                self.operations.ended.count(operation.state);
            }
        });
    }
}
