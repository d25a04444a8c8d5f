//! The work of threads: its task, the cause of that, and its request.

mod requests;

use std::sync::Arc;

use clr_activity::{Cause, CauseId, Causes, Step, Steps, Tasks, Worker, has_activity, is_of_work};
use clr_events::StackId;
use clr_events::ids::tasks;
use hashbrown::{DefaultHashBuilder, HashMap};
use indexmap::IndexSet;
use nettrace::{Event, Metadata, ThreadId, Ticks};

use crate::profile::address_stacks::AddressStacks;
use crate::profile::async_callers::{AsyncCallerStacks, AsyncCallers};
use crate::profile::options::CausalGrouping;
use requests::Requests;

/// The index of a [`Context`]; 0 for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct ContextId(u32);

/// The cause and request of a piece of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Context {
    /// The stack that created the task.
    pub(super) cause: CauseId,
    /// The request, as frames: see [`Contexts::request`].
    pub(super) request: StackId,
}

/// The number of distinct contexts.
const MAX_CONTEXTS: usize = 1 << 20;

/// Returns true if a kind of event may show what its thread works on.
pub(super) fn states_context(metadata: &Metadata, grouping: CausalGrouping) -> bool {
    if is_of_work(metadata) { grouping.any() } else { grouping.requests && has_activity(metadata) }
}

/// Follows tasks and requests from thread to thread.
///
/// # Memory
/// The numbers of pending tasks, begun requests, causes and contexts are bounded. Beyond that, the oldest are
/// dropped, or samples get no context.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    grouping: CausalGrouping,
    steps: Steps,
    workers: HashMap<(Option<u64>, ThreadId), Worker>,
    tasks: Tasks,
    causes: Causes,
    requests: Requests,
    async_callers: Option<Arc<AsyncCallers>>,
    async_caller_stacks: AsyncCallerStacks,
    all: IndexSet<Context, DefaultHashBuilder>,
    left_out: u64,
    /// True if a continuation after an `await` was seen to begin.
    has_continuations: bool,
}

impl Contexts {
    pub(super) fn new(grouping: CausalGrouping) -> Self {
        Self { grouping, ..Self::default() }
    }

    /// Adds an event that may show what its thread works on.
    pub(super) fn add(&mut self, event: &Event<'_>, addresses: &mut AddressStacks, generation: u32) {
        let process = event.process_id();
        let worker = self.workers.entry((process, event.thread_id())).or_default();
        let step = self.steps.of(event);
        if self.grouping.awaits && !self.has_continuations {
            let metadata = event.metadata();
            self.has_continuations = metadata.event_id() == tasks::TASK_WAIT_CONTINUATION_STARTED
                && metadata.provider() == tasks::PROVIDER;
        }
        if self.grouping.requests {
            self.requests.add(event, step, worker);
        }
        let caused = |worker: &Worker| {
            let is_operation = matches!(step, Step::OperationStart(_));
            if !(self.grouping.awaits || self.grouping.tasks && !is_operation) {
                return CauseId::NONE;
            }
            let stack = addresses.of(event);
            self.causes.of(Cause { by: worker.cause, stack, generation }, event.time())
        };
        self.tasks.add(process, step, worker, caused);
    }

    /// Uses what an earlier reading has found of asynchronous operations.
    pub(super) fn with_async_callers(self, async_callers: Option<Arc<AsyncCallers>>) -> Self {
        Self { async_callers, ..self }
    }

    /// Returns the context of the work that the event's thread does.
    pub(super) fn of(
        &mut self,
        event: &Event<'_>,
        addresses: &mut AddressStacks,
        generation: u32,
    ) -> ContextId {
        let process = event.process_id();
        let cause = self.async_cause(event, addresses, generation);
        let worker = self.workers.get(&(process, event.thread_id()));
        let request = worker.and_then(|worker| self.requests.frames(process, worker.request?));
        let cause = cause.or_else(|| worker.map(|worker| worker.cause)).unwrap_or(CauseId::NONE);
        self.intern(Context { cause, request: request.unwrap_or(StackId::EMPTY) })
    }

    /// The methods that await the work of the event's thread, as the runtime says.
    fn async_cause(
        &mut self,
        event: &Event<'_>,
        addresses: &mut AddressStacks,
        generation: u32,
    ) -> Option<CauseId> {
        if !self.grouping.awaits {
            return None;
        }
        let callers = self.async_callers.as_ref()?;
        let stack = callers.of(event, &mut self.async_caller_stacks, addresses)?;
        Some(self.causes.of(Cause { by: CauseId::NONE, stack, generation }, event.time()))
    }

    fn intern(&mut self, context: Context) -> ContextId {
        if context == Context::default() {
            return ContextId::default();
        }
        let place = match self.all.get_index_of(&context) {
            None if self.all.len() < MAX_CONTEXTS => self.all.insert_full(context).0,
            Some(place) => place,
            None => {
                self.left_out = self.left_out.saturating_add(1);
                return ContextId::default();
            }
        };
        debug_assert!(place < MAX_CONTEXTS, "more contexts than are kept");
        u32::try_from(place + 1).map_or_else(|_| ContextId::default(), ContextId)
    }

    pub(super) fn get(&self, id: ContextId) -> Context {
        let place = (id.0 as usize).checked_sub(1);
        place.and_then(|place| self.all.get_index(place)).copied().unwrap_or_default()
    }

    pub(super) fn cause(&self, id: CauseId) -> Option<(&Cause, Ticks)> {
        self.causes.get(id)
    }

    /// The frames of a request, root first.
    pub(super) fn request(&self, request: StackId) -> Vec<&str> {
        self.requests.names(request)
    }

    /// Returns the number of causes and contexts above the limits.
    pub(super) fn left_out(&self) -> u64 {
        let async_callers = match &self.async_callers {
            Some(callers) => callers.left_out(),
            None => 0,
        };
        self.left_out.saturating_add(self.causes.left_out()).saturating_add(async_callers)
    }

    /// Returns true if events say who awaits whom. .NET Core 3.1 lacks asynchronous operations and has only
    /// continuations.
    pub(super) const fn links_awaits(&self) -> bool {
        self.has_continuations || self.tasks.had_operations() || self.async_callers.is_some()
    }

    /// Returns true for each of tasks, requests and awaits that was found.
    pub(super) const fn found(&self) -> CausalGrouping {
        CausalGrouping {
            tasks: self.tasks.were_met(),
            requests: self.requests.were_met(),
            awaits: self.tasks.were_met() || self.tasks.had_operations() || self.async_callers.is_some(),
        }
    }
}
