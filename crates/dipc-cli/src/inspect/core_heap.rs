//! The heap of a core dump or of a process's memory as a graph, with its roots.

use std::time::Duration;

use clr_dump::{Dump, HeapContents, HeapStatistics, HeapWalk, Runtime};
use gcdump::HeapGraph;

use crate::exit::{Exit, Failure};
use crate::inspect::core_source::Source;
use crate::inspect::pause::Pause;
use crate::inspect::{core_advice, core_dump};
use crate::render::units;

/// The number of times that the heap of a running process is read, if a collection changes it meanwhile, and
/// the time between.
const ATTEMPTS: usize = 8;
const WAIT: Duration = Duration::from_millis(20);

/// The heap of a core dump or a process.
pub(crate) struct MemoryHeap {
    pub(crate) graph: HeapGraph,
    /// Its objects by generation.
    pub(crate) contents: HeapContents,
}

/// Reads the heap; a failure if the dump does not have it. A process is stopped meanwhile, for `stop` at
/// most.
pub(crate) fn read(source: &Source, stop: Option<Duration>) -> Result<MemoryHeap, Failure> {
    let runtime = source.runtime()?;
    let mut attempts = if source.pid().is_some() && stop.is_none() { ATTEMPTS } else { 1 };
    let mut best: Option<MemoryHeap> = None;
    loop {
        attempts -= 1;
        let pause = stop.map(|limit| Pause::begin(source, limit)).transpose()?;
        match read_once(source, &runtime, pause) {
            Ok(heap) if heap.graph.completeness().is_complete() => return Ok(heap),
            Ok(heap) => {
                let is_better = |best: &MemoryHeap| heap.graph.object_count() > best.graph.object_count();
                if best.as_ref().is_none_or(is_better) {
                    best = Some(heap);
                }
            }
            Err(failure) if attempts == 0 && best.is_none() => return Err(failure),
            Err(_) => {}
        }
        match best {
            Some(heap) if attempts == 0 => return Ok(heap),
            _ => std::thread::sleep(WAIT),
        }
    }
}

fn read_once(source: &Source, runtime: &Runtime, mut pause: Option<Pause>) -> Result<MemoryHeap, Failure> {
    let dump = source.dump(runtime);
    let stacks = core_dump::stacks(source, &dump)?;
    let process_id = match source.core() {
        Some(core) => core.process().map(|process| process.pid.into()),
        None => source.pid().map(Into::into),
    };
    let mut progress = || pause.iter_mut().for_each(Pause::look);
    let heap = dump.heap().graph(process_id, &stacks, &mut progress);
    let heap = heap.map_err(|missing| lacks(source, &missing.to_string()))?;
    check(source, heap.walk())?;
    let contents = heap.contents().clone();
    let builder = heap.into_builder();
    if let Some(pause) = pause {
        pause.end();
    }
    let failed = |error| Failure::new(Exit::Failed, format_args!("read the heap: {error}"));
    Ok(MemoryHeap { graph: builder.finish().map_err(failed)?, contents })
}

/// Counts the objects of the heap by generation; a failure if the dump does not have it. The heap of a
/// running process is read until no collection has changed it meanwhile.
pub(crate) fn contents(source: &Source, dump: &Dump<'_>) -> Result<HeapContents, Failure> {
    let mut attempts = if source.pid().is_some() { ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        match dump.heap().contents() {
            Ok(contents) if attempts == 0 || is_whole(&contents.walk) => {
                check(source, &contents.walk)?;
                return Ok(contents);
            }
            Err(missing) if attempts == 0 => return Err(lacks(source, &missing.to_string())),
            _ => std::thread::sleep(WAIT),
        }
    }
}

/// Returns true if all objects of a heap were read, and none of them moved.
pub(crate) fn is_whole(walk: &HeapWalk) -> bool {
    walk.gaps.is_empty() && !walk.is_moving
}

/// Counts the objects of the heap by type; a failure if the dump does not have it.
pub(crate) fn statistics(source: &Source, dump: &Dump<'_>) -> Result<HeapStatistics, Failure> {
    let heap = dump.heap().statistics().map_err(|missing| lacks(source, &missing.to_string()))?;
    check(source, &heap.walk)?;
    Ok(heap)
}

/// A failure for a heap that is not there.
pub(crate) fn lacks(source: &Source, why: &str) -> Failure {
    let what = match core_advice::shortfall(source) {
        Some(reason) => format!("the heap is not in the dump: {reason}"),
        None if source.pid().is_some() => {
            format!("the heap was not read: it changed in each of {ATTEMPTS} attempts ({why})")
        }
        None => format!("the heap is not in the dump: {why}"),
    };
    let help = core_advice::better(source);
    Failure::new(Exit::Incomplete, format_args!("{}: {what}", source.subject())).with_help(help)
}

/// Fails if less than half of the heap was read, unless a collection was moving it.
pub(crate) fn check(source: &Source, walk: &HeapWalk) -> Result<(), Failure> {
    let is_moving = walk.is_moving && source.pid().is_none();
    if walk.is_mostly_missing() && !is_moving {
        return Err(lacks(source, &format!("{} of it cannot be read", units::bytes(walk.missing_bytes()))));
    }
    Ok(())
}

/// The sentence about a heap that was dumped during a collection that moved objects.
pub(crate) fn moving(source: &Source, missing: u64) -> String {
    let when = if source.pid().is_some() {
        "A collection moves objects at this moment"
    } else {
        "A collection was moving objects when the dump was taken"
    };
    let missing = match missing {
        0 => String::new(),
        missing => {
            format!("; {} of the heap are between two states, and are left out", units::bytes(missing))
        }
    };
    format!("{when}: some can be missing or counted twice{missing}")
}
