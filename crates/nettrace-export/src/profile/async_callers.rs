//! The `async` methods that await the work of a thread, by the runtime's asynchronous profiler.
//!
//! These events arrive later than the samples that they are about, so a recording is read twice: once to
//! collect them, and once to use them.

use clr_activity::{AsyncModel, AsyncStacks, AsyncStacksBuilder};
use clr_events::{ClrEvent, StackId};
use hashbrown::HashMap;
use nettrace::Event;

use crate::profile::address_stacks::AddressStacks;

/// Maximum number of methods with addresses that are kept: some 50 MB.
const MAX_METHODS: usize = 1 << 20;

/// The id of a method in a process.
type MethodId = (Option<u64>, u64);

/// The buffers and the methods of a first reading.
#[derive(Debug, Default)]
pub(super) struct AsyncCallersBuilder {
    buffers: AsyncStacksBuilder,
    /// The address at which the code of each method begins.
    methods: HashMap<MethodId, u64>,
}

impl AsyncCallersBuilder {
    /// Adds an event with a buffer of the asynchronous profiler.
    pub(super) fn add_buffer(&mut self, event: &Event<'_>) {
        self.buffers.add(event);
    }

    /// Adds a method that is loaded.
    pub(super) fn add_method(&mut self, process: Option<u64>, view: &ClrEvent<'_>) {
        let (id, start) = match view {
            ClrEvent::MethodLoadVerbose(method)
            | ClrEvent::MethodDcStartVerbose(method)
            | ClrEvent::MethodDcStopVerbose(method) => (method.method_id, method.method_start_address),
            ClrEvent::MethodLoad(method)
            | ClrEvent::MethodDcStart(method)
            | ClrEvent::MethodDcStop(method) => (method.method_id, method.method_start_address),
            _ => return,
        };
        if self.methods.len() < MAX_METHODS {
            // Code that is compiled again has the same name.
            self.methods.entry((process, id)).or_insert(start);
        }
    }

    /// Returns the callers, if there are any.
    pub(super) fn finish(self) -> Option<AsyncCallers> {
        if self.buffers.is_empty() {
            return None;
        }
        let stacks = self.buffers.finish();
        (!stacks.is_empty()).then_some(AsyncCallers { stacks, methods: self.methods })
    }
}

/// The methods that await the work of each thread, at each time.
#[derive(Debug)]
pub(super) struct AsyncCallers {
    stacks: AsyncStacks,
    methods: HashMap<MethodId, u64>,
}

/// The same methods as stacks of addresses.
#[derive(Debug, Default)]
pub(super) struct AsyncCallerStacks(HashMap<(Option<u64>, StackId, AsyncModel), StackId>);

impl AsyncCallers {
    /// Returns the operation that the event's thread ran, as a stack of addresses: a method's caller is the
    /// method that awaits it. Unknown methods are left out.
    pub(super) fn of(
        &self,
        event: &Event<'_>,
        known: &mut AsyncCallerStacks,
        addresses: &mut AddressStacks,
    ) -> Option<StackId> {
        let process = event.process_id();
        let (methods, model) = self.stacks.at(process, event.thread_id().0, event.time())?;
        let stack = known.0.entry((process, methods, model)).or_insert_with(|| {
            let frames = self.stacks.methods(methods).filter_map(|method| match model {
                AsyncModel::Runtime => Some(method),
                AsyncModel::StateMachine => self.methods.get(&(process, method)).copied(),
            });
            let leaf_first: Vec<_> = frames.collect();
            addresses.add(leaf_first.into_iter().rev())
        });
        Some(*stack)
    }

    /// Returns the number of operations that are missing.
    pub(super) const fn left_out(&self) -> u64 {
        self.stacks.left_out()
    }
}
