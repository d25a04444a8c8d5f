//! The last sampled stack of each thread, with the code of its frames.

use std::collections::BTreeMap;

use clr_events::CodeMap;
use clr_events::code::{Code, Symbolizer};
use dipc_client::SAMPLE_PROFILER;
use nettrace::{Event, Ticks, TraceInfo};

use super::StackReader;

/// Maximum number of frames of a stack.
const MAX_FRAMES: usize = 1000;
/// Maximum number of threads.
const MAX_THREADS: usize = 10_000;

/// A stack before its frames have names. A session sends the stacks as addresses, and the names with the
/// rundown at its end.
#[derive(Debug, Clone)]
pub struct AddressStack {
    process: Option<u64>,
    thread: u64,
    time: Ticks,
    /// Innermost first.
    addresses: Vec<u64>,
}

impl AddressStack {
    /// Returns the stack of an event, at most 1,000 frames of it.
    pub fn of(event: &Event<'_>) -> Self {
        Self {
            process: event.process_id(),
            thread: event.thread_id().0,
            time: event.time(),
            addresses: event.stack().into_iter().take(MAX_FRAMES).collect(),
        }
    }

    /// The operating system's id of the thread.
    pub const fn thread(&self) -> u64 {
        self.thread
    }

    /// Returns the address and the code of each frame, innermost first.
    pub fn frames<'c>(
        &self,
        symbolizer: Symbolizer<'c>,
    ) -> impl Iterator<Item = (u64, Code<'c>)> + use<'_, 'c> {
        // A return address may be the first of the next method's.
        let code = move |address: &u64| (*address, symbolizer.resolve(self.process, *address, self.time));
        self.addresses.iter().map(code)
    }
}

/// The last sampled stack of each thread of a process, with the code that the rundown names.
#[derive(Debug, Default)]
pub struct CodeStacks {
    code: CodeMap,
    threads: BTreeMap<u64, AddressStack>,
}

impl CodeStacks {
    /// Returns the stacks, in the order of their threads' ids, and the names of their frames.
    pub fn resolve(&mut self) -> (impl Iterator<Item = &AddressStack>, Symbolizer<'_>) {
        (self.threads.values(), self.code.symbolizer())
    }
}

impl StackReader for CodeStacks {
    type Stacks = Self;

    fn add(&mut self, event: &Event<'_>) {
        self.code.add(event);
        let thread = event.thread_id().0;
        if event.provider() != SAMPLE_PROFILER
            || self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&thread)
        {
            return;
        }
        let stack = AddressStack::of(event);
        if !stack.addresses.is_empty() {
            self.threads.insert(thread, stack);
        }
    }

    fn finish(self, _: Option<&TraceInfo>) -> Option<Self> {
        (!self.threads.is_empty()).then_some(self)
    }
}
