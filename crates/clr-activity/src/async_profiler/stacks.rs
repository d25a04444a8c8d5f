//! The `async` methods that waited for a thread's work, at each time.

use clr_events::{StackId, StackTree};
use hashbrown::HashMap;
use nettrace::{Event, Ticks};

use super::buffer::AsyncBuffer;
use super::callstack::{AsyncCallstack, AsyncModel};
use super::event::{AsyncEvent, AsyncEventKind};
use super::layout::AsyncLayout;

/// A thread: its process, and its number in the operating system.
type ThreadKey = (Option<u64>, u64);

/// Bytes of buffers that are kept.
const MAX_BYTES: usize = 256 << 20;
/// Intervals in which threads ran operations: 40 bytes each.
const MAX_RUNS: usize = 4 << 20;
/// Operations within operations of a thread.
const MAX_DEPTH: usize = 256;
/// Frames of an operation that are kept.
const MAX_FRAMES: usize = 4096;
/// Distinct frames of all operations.
const MAX_DISTINCT_FRAMES: u32 = 1 << 22;

/// Collects buffers. They arrive later than they were written, and not in their order.
///
/// # Memory
/// At most 256 MB of buffers; the rest is counted.
///
/// ```no_run
/// use clr_activity::{AsyncStacksBuilder, has_async_buffer};
///
/// let mut builder = AsyncStacksBuilder::default();
/// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
/// events.for_each(|event| {
///     if has_async_buffer(event.metadata()) {
///         builder.add(&event);
///     }
/// })?;
/// let stacks = builder.finish();
/// println!("{} could not be read", stacks.left_out());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct AsyncStacksBuilder {
    buffers: Vec<(Option<u64>, Ticks, Box<[u8]>)>,
    bytes: usize,
    left_out: u64,
}

impl AsyncStacksBuilder {
    /// Adds the buffer of an event [that has one](super::has_async_buffer).
    pub fn add(&mut self, event: &Event<'_>) {
        self.add_payload(event.process_id(), event.payload());
    }

    /// Adds the payload of such an event of a process.
    pub fn add_payload(&mut self, process: Option<u64>, payload: &[u8]) {
        let bytes = self.bytes.saturating_add(payload.len());
        let start = AsyncBuffer::parse(payload).map(|buffer| buffer.start);
        let Ok(start) = start.map_err(|_| self.left_out = self.left_out.saturating_add(1)) else { return };
        if bytes > MAX_BYTES {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        self.bytes = bytes;
        self.buffers.push((process, start, payload.into()));
    }

    /// Returns true if there are no buffers.
    pub const fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// Reads all buffers.
    pub fn finish(mut self) -> AsyncStacks {
        self.buffers.sort_by_key(|(_, start, _)| *start);
        let mut stacks = AsyncStacks { left_out: self.left_out, ..AsyncStacks::default() };
        let mut processes = HashMap::<Option<u64>, Process>::new();
        // Each buffer is dropped once it has been read.
        for (process, _, payload) in self.buffers {
            stacks.read(process, processes.entry(process).or_default(), &payload);
        }
        stacks.end_all();
        stacks
    }
}

/// The state of a process.
#[derive(Debug, Default)]
struct Process {
    layout: AsyncLayout,
    /// The time of the first metadata: earlier events belong to another session.
    begin: Option<Ticks>,
}

/// An interval in which a thread ran an operation.
#[derive(Debug, Clone, Copy)]
struct Run {
    start: Ticks,
    end: Ticks,
    methods: StackId,
    model: AsyncModel,
    /// The run around it: its place in the thread's list.
    around: Option<u32>,
}

/// A run that has not ended.
#[derive(Debug)]
struct OpenRun {
    /// The run's place in the thread's list; `None` beyond the maximum that is kept.
    place: Option<usize>,
    dispatcher: u64,
    model: AsyncModel,
    /// The run's methods, innermost first.
    methods: Vec<u64>,
}

/// The state and the operations of a thread, as its events have them so far.
#[derive(Debug, Default)]
struct Thread {
    /// True if the thread has reported its state since the session began.
    is_known: bool,
    runs: Vec<Run>,
    open: Vec<OpenRun>,
    /// Runs within `open` that are deeper than is kept.
    deeper: usize,
}

/// The methods that waited for the work of each thread, at each time.
///
/// # Memory
/// 40 bytes for each time that a thread ran an operation, up to 4,194,304; 12 to 24 for each distinct frame.
#[derive(Debug)]
pub struct AsyncStacks {
    threads: HashMap<ThreadKey, Thread>,
    methods: StackTree<u64>,
    runs: usize,
    left_out: u64,
}

impl Default for AsyncStacks {
    fn default() -> Self {
        Self {
            threads: HashMap::new(),
            methods: StackTree::with_limit(MAX_DISTINCT_FRAMES),
            runs: 0,
            left_out: 0,
        }
    }
}

impl AsyncStacks {
    /// Returns the operation that a thread ran at a time: its methods as ids for [`methods`](Self::methods),
    /// and their model. Of nested operations, this is the innermost.
    pub fn at(&self, process: Option<u64>, thread: u64, time: Ticks) -> Option<(StackId, AsyncModel)> {
        let runs = &self.threads.get(&(process, thread))?.runs;
        let begun = runs.partition_point(|run| run.start <= time);
        let mut run = runs.get(begun.checked_sub(1)?)?;
        while run.end <= time {
            run = runs.get(usize::try_from(run.around?).ok()?)?;
        }
        Some((run.methods, run.model))
    }

    /// Returns the methods of an operation, the innermost first: each is awaited by the next one.
    pub fn methods(&self, methods: StackId) -> impl Iterator<Item = u64> {
        self.methods.frames(methods)
    }

    /// Returns true if no thread ran an operation.
    pub const fn is_empty(&self) -> bool {
        self.runs == 0
    }

    /// Returns the number of buffers and operations that could not be read, or were more than are kept.
    pub const fn left_out(&self) -> u64 {
        self.left_out.saturating_add(self.methods.cut())
    }

    fn read(&mut self, process: Option<u64>, state: &mut Process, payload: &[u8]) {
        let Ok(buffer) = AsyncBuffer::parse(payload) else { return };
        let Self { threads, methods, runs, left_out } = self;
        let thread = threads.entry((process, buffer.thread)).or_default();
        for event in buffer.events(&mut state.layout) {
            let Ok(event) = event else {
                *left_out = left_out.saturating_add(1);
                return;
            };
            if matches!(event.kind, AsyncEventKind::Metadata { .. }) {
                state.begin = Some(state.begin.map_or(event.time, |begin| begin.min(event.time)));
            }
            thread.add(&event, state.begin, methods, runs, left_out);
        }
    }

    fn end_all(&mut self) {
        let Self { threads, methods, .. } = self;
        for thread in threads.values_mut() {
            thread.end_all(Ticks(u64::MAX), methods);
            thread.open = Vec::new();
        }
    }
}

impl Thread {
    fn add(
        &mut self,
        event: &AsyncEvent<'_>,
        begin: Option<Ticks>,
        methods: &mut StackTree<u64>,
        runs: &mut usize,
        left_out: &mut u64,
    ) {
        match &event.kind {
            // The operations that a thread runs at that time follow.
            AsyncEventKind::ThreadReset if begin.is_some_and(|begin| begin <= event.time) => {
                self.end_all(event.time, methods);
                self.is_known = true;
            }
            _ if !self.is_known => {}
            AsyncEventKind::ResumedCallstack(callstack) => {
                let is_kept = self.begin(callstack, event.time, runs);
                *left_out = left_out.saturating_add(u64::from(!is_kept));
            }
            AsyncEventKind::AppendedCallstack(callstack) => {
                let top = self.open.last_mut();
                let same = |run: &&mut OpenRun| {
                    (run.dispatcher, run.model) == (callstack.dispatcher, callstack.model)
                        && run.place.is_some()
                };
                if let Some(run) = top.filter(same) {
                    run.extend(callstack);
                }
            }
            AsyncEventKind::ContextSuspended | AsyncEventKind::ContextCompleted => {
                self.end(event.time, methods);
            }
            _ => {}
        }
    }

    /// Begins a run; `false` if it is not kept.
    fn begin(&mut self, callstack: &AsyncCallstack<'_>, time: Ticks, runs: &mut usize) -> bool {
        if self.open.len() >= MAX_DEPTH {
            self.deeper = self.deeper.saturating_add(1);
            return false;
        }
        let (model, dispatcher) = (callstack.model, callstack.dispatcher);
        let mut open = OpenRun { place: None, dispatcher, model, methods: Vec::new() };
        let is_kept = *runs < MAX_RUNS;
        if is_kept {
            // Times of a thread increase, unless they are made up.
            let start = self.runs.last().map_or(time, |last| time.max(last.start));
            let around = self.open.last().and_then(|run| u32::try_from(run.place?).ok());
            open.place = Some(self.runs.len());
            open.extend(callstack);
            self.runs.push(Run { start, end: Ticks(u64::MAX), methods: StackId::EMPTY, model, around });
            *runs = runs.saturating_add(1);
        }
        self.open.push(open);
        is_kept
    }

    /// Ends the innermost run.
    fn end(&mut self, time: Ticks, methods: &mut StackTree<u64>) {
        if let Some(deeper) = self.deeper.checked_sub(1) {
            self.deeper = deeper;
            return;
        }
        let Some(open) = self.open.pop() else { return };
        if let Some(run) = open.place.and_then(|place| self.runs.get_mut(place)) {
            run.end = time.max(run.start);
            run.methods = methods.add(open.methods.into_iter().rev());
        }
    }

    fn end_all(&mut self, time: Ticks, methods: &mut StackTree<u64>) {
        self.deeper = 0;
        while !self.open.is_empty() {
            self.end(time, methods);
        }
    }
}

impl OpenRun {
    fn extend(&mut self, callstack: &AsyncCallstack<'_>) {
        let missing = MAX_FRAMES.saturating_sub(self.methods.len());
        self.methods.extend(callstack.frames().into_iter().take(missing).map(|frame| frame.method));
    }
}

#[cfg(test)]
mod tests {
    use super::super::written::{Buffer, METADATA};
    use super::*;

    const PROCESS: Option<u64> = Some(7);

    fn read(buffers: &[Buffer]) -> AsyncStacks {
        let mut builder = AsyncStacksBuilder::default();
        for buffer in buffers {
            builder.add_payload(PROCESS, &buffer.payload());
        }
        builder.finish()
    }

    fn at(stacks: &AsyncStacks, thread: u64, time: u64) -> Option<Vec<u64>> {
        let (methods, _) = stacks.at(PROCESS, thread, Ticks(time))?;
        Some(stacks.methods(methods).collect())
    }

    #[test]
    fn a_thread_runs_an_operation_from_its_resumption_until_it_waits_again() {
        let buffer = Buffer::new(11, 100)
            .event(22, 0, METADATA)
            .event(20, 1, &[])
            .state_machine_callstack(16, 9, 5, &[0x30, 0x20, 0x10])
            .event(13, 20, &[])
            .state_machine_callstack(16, 10, 6, &[0x40])
            .event(14, 5, &[]);
        let stacks = read(&[buffer]);
        assert_eq!(at(&stacks, 11, 109), None);
        assert_eq!(at(&stacks, 11, 110), Some(vec![0x30, 0x20, 0x10]));
        assert_eq!(at(&stacks, 11, 129), Some(vec![0x30, 0x20, 0x10]));
        assert_eq!(at(&stacks, 11, 130), None);
        assert_eq!(at(&stacks, 11, 142), Some(vec![0x40]));
        assert_eq!((at(&stacks, 11, 145), at(&stacks, 12, 142)), (None, None));
        assert_eq!(stacks.left_out(), 0);
    }

    #[test]
    fn operations_are_within_each_other() {
        let buffer = Buffer::new(11, 0)
            .event(22, 0, METADATA)
            .event(20, 0, &[])
            .state_machine_callstack(16, 10, 1, &[1])
            .runtime_callstack(7, 10, 2, &[0x2000, 0x1000])
            .event(3, 10, &[])
            .runtime_callstack(7, 10, 3, &[0x3000])
            .event(4, 10, &[])
            .event(13, 10, &[]);
        let stacks = read(&[buffer]);
        let seen: Vec<_> = [10, 20, 30, 40, 50, 60].map(|time| at(&stacks, 11, time)).into();
        let (outer, first, second) = (Some(vec![1]), Some(vec![0x2000, 0x1000]), Some(vec![0x3000]));
        assert_eq!(seen, [outer.clone(), first, outer.clone(), second, outer, None]);
        assert_eq!(stacks.at(PROCESS, 11, Ticks(20)).unwrap().1, AsyncModel::Runtime);
        assert_eq!(stacks.at(PROCESS, 11, Ticks(10)).unwrap().1, AsyncModel::StateMachine);
    }

    #[test]
    fn methods_that_begin_to_wait_later_are_appended() {
        let buffer = Buffer::new(11, 0)
            .event(22, 0, METADATA)
            .event(20, 0, &[])
            .state_machine_callstack(16, 10, 1, &[1])
            .state_machine_callstack(19, 1, 1, &[2, 3])
            // Of another operation.
            .state_machine_callstack(19, 1, 9, &[4]);
        assert_eq!(at(&read(&[buffer]), 11, u64::MAX - 1), Some(vec![1, 2, 3]));
    }

    #[test]
    fn buffers_come_in_any_order_and_a_thread_counts_from_its_first_report() {
        let before = Buffer::new(11, 0).state_machine_callstack(16, 1, 1, &[9]);
        let first = Buffer::new(11, 10).event(22, 0, METADATA).event(20, 0, &[]);
        let second = Buffer::new(11, 20).state_machine_callstack(16, 0, 1, &[1]);
        let third = Buffer::new(11, 30).event(13, 0, &[]);
        let stacks = read(&[third, second, before, first]);
        assert_eq!([5, 15, 25, 35].map(|time| at(&stacks, 11, time)), [None, None, Some(vec![1]), None]);
        // Events of the thread before the session's metadata belong to another session.
        let old = Buffer::new(11, 0).event(20, 0, &[]).state_machine_callstack(16, 1, 1, &[9]);
        let metadata = Buffer::new(12, 10).event(22, 0, METADATA);
        assert_eq!(at(&read(&[old, metadata]), 11, 5), None);
        // A second report ends open runs.
        let again = Buffer::new(11, 0).event(22, 0, METADATA).event(20, 0, &[]);
        let again = again.state_machine_callstack(16, 1, 1, &[9]).event(20, 4, &[]);
        let stacks = read(&[again]);
        assert_eq!((at(&stacks, 11, 4), at(&stacks, 11, 5)), (Some(vec![9]), None));
    }

    #[test]
    fn operations_deeper_than_is_kept_end_in_pairs() {
        let mut buffer = Buffer::new(11, 0).event(22, 0, METADATA).event(20, 0, &[]);
        for method in 0..MAX_DEPTH as u64 + 10 {
            buffer = buffer.state_machine_callstack(16, 1, 1, &[method + 1]);
        }
        for _ in 0..11 {
            buffer = buffer.event(13, 1, &[]);
        }
        let stacks = read(&[buffer]);
        assert_eq!(at(&stacks, 11, u64::MAX - 1), Some(vec![MAX_DEPTH as u64 - 1]));
        assert_eq!(stacks.left_out(), 10);
    }

    #[test]
    fn counts_unreadable_events() {
        let mut builder = AsyncStacksBuilder::default();
        builder.add_payload(PROCESS, &[1, 2, 3]);
        let good = Buffer::new(11, 0).event(22, 0, METADATA).event(20, 0, &[]);
        let cut = good.state_machine_callstack(16, 1, 1, &[5]).event(99, 0, &[]).event(13, 0, &[]);
        builder.add_payload(PROCESS, &cut.payload());
        let stacks = builder.finish();
        assert_eq!(stacks.left_out(), 2);
        assert_eq!(at(&stacks, 11, 10), Some(vec![5]));
    }
}
