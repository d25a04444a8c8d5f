//! The overview as JSON: rows as the views have them.

use clr_dump::CoreFile;
use clr_findings::Finding;
use serde::Serialize;

use super::{death, facts};
use crate::command::dump::analyze::awaits::elapsed_delays;
use crate::command::dump::analyze::exceptions::{self, Row};
use crate::command::dump::analyze::heap::{HeapRow, HolderRow, heap_row, holder_rows};
use crate::command::dump::analyze::locks::{DeadlockRow, deadlock_rows};
use crate::command::dump::analyze::stacks::{
    self, FrameReport, GapReport, NativeReport, Shape, Shown, ThreadReport,
};
use crate::inspect::core_dump::{Analysis, NativeThread};

/// The facts of the file.
#[derive(Debug, Serialize)]
struct Facts {
    program: Option<String>,
    pid: Option<u32>,
    written: Option<String>,
    signal: Option<i32>,
    /// The thread that the signal was for.
    signalled_tid: Option<u64>,
    memory_bytes: Option<u64>,
    /// Bytes of memory that the headers promise and the file lacks.
    missing_bytes: Option<u64>,
    file_bytes: Option<u64>,
    /// The length that the headers promise. If it exceeds the file's, the file is truncated.
    promised_bytes: Option<u64>,
    /// Bytes of memory that limits of `dump --stream` left out.
    omitted_bytes: Option<u64>,
    /// True if dump strip removed strings and buffers.
    stripped: bool,
}

impl Facts {
    fn new(core: Option<&CoreFile>, written: Option<String>) -> Self {
        let program = core.and_then(facts::program);
        Self {
            program: program.map(|(program, _)| program.to_owned()),
            pid: program.map(|(_, pid)| pid),
            written,
            signal: core
                .and_then(|core| core.signal().map(|signal| signal.number).or_else(|| core.common_signal())),
            signalled_tid: core.and_then(CoreFile::signalled_thread),
            memory_bytes: core.map(CoreFile::memory_bytes),
            missing_bytes: core.map(CoreFile::missing_bytes),
            file_bytes: core.map(CoreFile::file_bytes),
            promised_bytes: core.map(CoreFile::promised_bytes),
            omitted_bytes: core.and_then(CoreFile::copy).map(|copy| copy.omitted_bytes),
            stripped: core.is_some_and(CoreFile::is_stripped),
        }
    }
}

/// The overview of a core dump or a process.
#[derive(Debug, Serialize)]
pub(super) struct Report<'r> {
    #[serde(flatten)]
    facts: Facts,
    runtime: String,
    runtime_path: String,
    build_id: String,
    /// True if the structures were measured with this build of the runtime.
    measured: bool,
    /// The number of managed threads.
    threads: usize,
    /// The causes, as `dipc why` has them.
    findings: &'r [Finding],
    /// The end of the process, if it died and the dump says how.
    died: Option<Died<'r>>,
    /// The threads that throw or handle an exception.
    throwing_tids: Vec<u64>,
    exceptions: Vec<Row<'r>>,
    /// Threads with managed frames or gaps, by equal stacks.
    stacks: Vec<Group<'r>>,
    /// The threads that wait for one another, each cycle once.
    deadlocks: Vec<Vec<DeadlockRow>>,
    /// The async methods that have not ended; null of a large heap.
    awaits: Option<Awaits>,
    /// True if the dump has the heap.
    has_heap: bool,
    heap: Option<HeapRow>,
    /// The types that retain the most bytes; null if that was not computed.
    holders: Option<Vec<HolderRow>>,
    /// Missing parts, in words.
    missing: &'r [String],
}

#[derive(Debug, Serialize)]
struct Awaits {
    methods: u64,
    chains: u64,
    /// Chains that begin with a delay that has elapsed: each waits for a thread of the pool.
    elapsed_delays: u64,
}

#[derive(Debug, Serialize)]
struct Died<'r> {
    /// `unhandled-exception`, `probably-unhandled-exception`, `fail-fast`, `stack-overflow` or `signal`.
    cause: &'static str,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<ThreadReport<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    native_thread: Option<NativeReport<'r>>,
}

#[derive(Debug, Serialize)]
struct Group<'r> {
    threads: Vec<GroupThread>,
    /// Innermost first.
    frames: Vec<FrameReport<'r>>,
    /// Places where frames may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<GapReport>,
}

#[derive(Debug, Serialize)]
struct GroupThread {
    tid: Option<u64>,
    managed_id: Option<u32>,
    label: String,
}

impl<'r> Group<'r> {
    fn new(group: &[Shape<'r>]) -> Self {
        let thread = |of: &Shape<'_>| GroupThread {
            tid: Some(of.tid).filter(|tid| *tid != 0),
            managed_id: of.managed_id,
            label: of.label.clone(),
        };
        let gaps =
            group.first().map_or_else(Vec::new, |of| stacks::gaps(of.stack, of.frames, Shown::Managed));
        let frames = group.first().map_or(&[][..], |first| first.frames);
        let frames = frames.iter().filter(|frame| frame.is_managed()).map(FrameReport::new);
        Self { threads: group.iter().map(thread).collect(), frames: frames.collect(), gaps }
    }
}

impl<'r> Report<'r> {
    pub(super) fn new(
        analysis: &'r Analysis<'_>,
        facts: &'r super::Facts<'r>,
        written: Option<String>,
    ) -> Self {
        let throwing = analysis.threads.iter().filter(|thread| thread.throws());
        let died = facts.death.as_ref().map(|death| Died {
            cause: death::name(&death.cause),
            text: death::text(&death.cause),
            thread: death.thread.map(|thread| ThreadReport::new(thread, Shown::All)),
            native_thread: death.native.map(NativeReport::new),
        });
        Self {
            facts: Facts::new(analysis.source.core(), written),
            runtime: analysis.dump.runtime().version().to_owned(),
            runtime_path: analysis.dump.runtime().path().to_owned(),
            build_id: analysis.dump.runtime().build_id().to_owned(),
            measured: analysis.dump.runtime().is_measured(),
            threads: analysis.threads.len(),
            findings: &facts.causes,
            died,
            throwing_tids: throwing.map(|thread| thread.thread.os_id).collect(),
            exceptions: exceptions::rows(analysis),
            stacks: stacks::groups(analysis, Shown::Managed).iter().map(|group| Group::new(group)).collect(),
            deadlocks: deadlock_rows(analysis, &facts.waits),
            awaits: facts.chains.as_ref().map(|chains| Awaits {
                methods: chains.methods,
                chains: chains.chains,
                elapsed_delays: elapsed_delays(chains),
            }),
            has_heap: facts.heap.is_ok(),
            heap: facts.heap.as_ref().ok().map(heap_row),
            holders: facts.holders.as_ref().and_then(holder_rows),
            missing: &facts.missing,
        }
    }
}

/// The rest of a core dump that lacks the runtime's data.
#[derive(Debug, Serialize)]
pub(super) struct Remains<'r> {
    #[serde(flatten)]
    facts: Facts,
    runtime: Option<String>,
    native_threads: Vec<NativeReport<'r>>,
    missing: [&'r str; 1],
}

impl<'r> Remains<'r> {
    pub(super) fn new(
        core: &CoreFile,
        written: Option<&str>,
        threads: &'r [NativeThread],
        reason: &'r str,
    ) -> Self {
        Self {
            facts: Facts::new(Some(core), written.map(ToOwned::to_owned)),
            runtime: None,
            native_threads: threads.iter().map(NativeReport::new).collect(),
            missing: [reason],
        }
    }
}
