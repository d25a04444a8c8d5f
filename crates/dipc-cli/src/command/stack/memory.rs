//! Locks, deadlocks and chains of awaits by the memory of a process, next to its samples.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use clr_dump::ThreadWaits;
use clr_findings::{AwaitSearch, Evidence, FindingKind, MemoryFacts, diagnose};

use crate::command::dump::awaits;
use crate::command::dump::locks::{self, DeadlockRow};
use crate::inspect::core_dump::Analysis;
use crate::inspect::core_source::Source;
use crate::render::{units, width};

/// Maximum time for reading the heap.
const HEAP_TIME: Duration = Duration::from_secs(2);

/// The waits of the threads of a process.
pub(super) struct MemoryWaits {
    pid: u32,
    /// The number of threads that wait for a lock.
    lock_waits: usize,
    deadlock_text: String,
    pub(super) deadlocks: Vec<Vec<DeadlockRow>>,
    /// The number of chains of awaits, and the sentence about chains that wait for a thread of the pool.
    chains: u64,
    starvation: Option<String>,
    /// The causes of that moment that the other sentences do not have.
    causes: Vec<String>,
    /// True if the whole heap was read.
    is_whole: bool,
}

impl MemoryWaits {
    /// Reads the memory of a process; `None` if that is not permitted, or its runtime is unknown.
    pub(super) fn read(pid: u32) -> Option<Self> {
        let source = Source::attach(pid).ok()?;
        let runtime = source.runtime().ok().filter(|runtime| !runtime.is_native_aot())?;
        let analysis = Analysis::new(&source, &runtime, &[]).ok()?;
        let waits =
            ThreadWaits::find(&analysis.dump, &analysis.snapshots(), &analysis.dump.locks().monitors());
        let chains = analysis.dump.awaits().chains_until(Instant::now() + HEAP_TIME).unwrap_or_default();
        let starvation = awaits::starvation(&chains);
        let threads = analysis.snapshots();
        let found = (&*threads, waits.clone());
        let memory = [MemoryFacts::of_snapshots(None, &analysis.dump, found, AwaitSearch::Done(&chains))];
        let is_shown = |kind| match kind {
            FindingKind::LockConvoy => true,
            // A pool can be busy for a moment; delays that have elapsed show that it was for longer.
            FindingKind::Starvation => starvation.is_some(),
            _ => false,
        };
        let causes = diagnose(&Evidence::default().with_memory(&memory)).into_iter();
        let causes = causes.filter(|cause| is_shown(cause.kind)).map(|cause| cause.cause).collect();
        Some(Self {
            pid,
            lock_waits: waits.lock_waits(),
            deadlock_text: locks::deadlocks(&analysis, &waits, width::of_output()),
            deadlocks: locks::deadlock_rows(&analysis, &waits),
            chains: chains.chains,
            starvation,
            causes,
            is_whole: chains.walk.gaps.is_empty() && !chains.is_truncated,
        })
    }

    /// Sentences about the waits; empty without waits.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let pid = self.pid;
        if self.chains > 0 {
            let chains = units::counted(self.chains, "async chain waits", "async chains wait");
            let least = if self.is_whole { "" } else { "At least " };
            let _ = writeln!(text, "{least}{chains}: dipc async -p {pid}");
        }
        text.extend(self.starvation.iter().map(|line| format!("{line}\n")));
        if self.lock_waits > 0 {
            let waits =
                units::counted(self.lock_waits as u64, "thread waits for a lock", "threads wait for locks");
            let _ = writeln!(text, "{waits}: dipc locks -p {pid}");
        }
        text.extend(self.causes.iter().map(|cause| format!("{cause}\n")));
        let text = width::wrapped(&text, width::of_output());
        text + &self.deadlock_text
    }
}
