//! Heaps from recordings and `.gcdump` files, and their missing parts.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use clr_dump::HeapContents;
use dipc_collect::ModuleTypes;
use gcdump::{Completeness, HeapGraph, HeapGraphBuilder, PathStep, file};
use nettrace_export::NameForm;

use crate::exit::{Exit, Failure};
use crate::inspect::core_heap::{self, MemoryHeap};
use crate::inspect::core_source::{Source, is_core};
use crate::inspect::memory_use::MemoryUse;
use crate::inspect::recording::{Recording, is_gcdump};
use crate::render::{messages, units};

/// A heap, and the exit code for its missing parts.
pub(crate) struct Heap {
    pub(crate) graph: HeapGraph,
    /// The memory around it; `None` if the source does not have it.
    pub(crate) memory: Option<MemoryUse>,
    /// Its objects by generation; `None` of events, which do not have their generations.
    pub(crate) contents: Option<HeapContents>,
    pub(crate) exit: Exit,
}

/// The graph that is made of the events of a recording.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GraphOfEvents {
    /// The process with the heap; the process of the first dump if `None`.
    pub(crate) pid: Option<u64>,
    /// True if keys of dependent handles reference their values.
    pub(crate) dependent_edges: bool,
}

impl GraphOfEvents {
    pub(crate) fn builder(self) -> HeapGraphBuilder {
        let builder = self.pid.into_iter().fold(HeapGraphBuilder::new(), HeapGraphBuilder::of_process);
        if self.dependent_edges { builder.with_dependent_references() } else { builder }
    }
}

impl Heap {
    /// Reads a `.gcdump` file, the heap of a core dump, or the heap dump of a recording; `-` is a recording
    /// from standard input.
    pub(crate) fn open(path: &Path, graph: GraphOfEvents) -> Result<Self, Failure> {
        if path.as_os_str() != "-" && is_core(path) {
            return Self::of_memory(&Source::open(path)?, None);
        }
        if path.as_os_str() == "-" || !is_gcdump(path) {
            return Self::from_recording(path, graph);
        }
        if graph.dependent_edges {
            messages::warning(format_args!(
                "--dependent-edges: {} is a .gcdump file, which does not say which object a dependent handle's value depends on",
                path.display()
            ));
        }
        if let Some(pid) = graph.pid {
            messages::warning(format_args!(
                "--pid {pid}: {} is a .gcdump file, which has one heap and does not say of which process",
                path.display()
            ));
        }
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Exit::Failed, format_args!("read: {}: {error}", path.display()))
        };
        let bytes = std::fs::read(path).map_err(|error| failed(&error))?;
        let mut graph = file::read(&bytes).map_err(|error| failed(&error))?;
        let mut modules = ModuleTypes::of_recording();
        graph.find_declaring_types(|path| modules.read(path));
        let exit = warn_of_missing(graph.completeness(), GraphSource::Events);
        Ok(Self { graph, memory: None, contents: None, exit })
    }

    /// Reads the heap of a core dump or of a process's memory. The process is stopped meanwhile, for `stop`
    /// at most; it runs on if that is `None`.
    pub(crate) fn of_memory(source: &Source, stop: Option<Duration>) -> Result<Self, Failure> {
        let MemoryHeap { graph, contents } = core_heap::read(source, stop)?;
        let missing = warn_of_missing(graph.completeness(), GraphSource::Memory);
        let memory = MemoryUse::of_source(source, contents.walk.committed_bytes);
        Ok(Self { graph, memory, contents: Some(contents), exit: missing.join(source.exit()) })
    }

    fn from_recording(path: &Path, graph: GraphOfEvents) -> Result<Self, Failure> {
        let (events, origin) = Recording::open(path)?.into_parts();
        let mut events = events.in_time_order();
        let mut builder = graph.builder();
        let pid = graph.pid;
        while let Some(event) = events.next().map_err(|error| origin.failed(&error))? {
            builder.add(&event);
        }
        let exit = origin.report_damage(events.events());
        let others = pids(builder.other_processes());
        let mut modules = ModuleTypes::of_recording();
        let built = builder.finish_with(events.loss().total(), |path| modules.read(path));
        let graph = built.map_err(|error| match pid {
            Some(pid) if !others.is_empty() => {
                Failure::new(exit.or_failed(), format_args!("{}: --pid {pid}: {error}", path.display()))
                    .with_help(format_args!("the recording has heap dumps of other processes: {others}"))
            }
            _ => Failure::new(exit.or_failed(), format_args!("{}: {error}", path.display()))
                .with_help("dipc gcdump collect -p PID makes a dump; so does dipc trace with the keywords gc+type+gcheapdump+gcheapcollect+gcheapandtypenames"),
        })?;
        if pid.is_none() && !others.is_empty() {
            let of = graph
                .process_id()
                .map_or_else(|| "an unknown process".to_owned(), |pid| format!("process {pid}"));
            messages::warning(format_args!(
                "{}: heap dumps of several processes; this is the dump of {of}, which began first; the others are of: {others}",
                path.display()
            ));
            messages::help("--pid PID reads the dump of another process");
        }
        let missing = warn_of_missing(graph.completeness(), GraphSource::Events);
        Ok(Self { graph, memory: None, contents: None, exit: exit.join(missing) })
    }
}

/// Formats a list of process ids.
fn pids(pids: impl Iterator<Item = u64>) -> String {
    pids.map(|pid| pid.to_string()).collect::<Vec<_>>().join(", ")
}

/// The origin of a graph.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GraphSource {
    /// Events of the runtime.
    Events,
    /// The memory of the process.
    Memory,
}

/// Reports the missing parts of a graph. Returns the exit code for them.
pub(crate) fn warn_of_missing(of: &Completeness, source: GraphSource) -> Exit {
    let say = |count: u64, what: &str| {
        if count > 0 {
            messages::warning(format_args!("{} {what}", units::count(count)));
        }
    };
    if of.is_cut {
        messages::warning("the recording ends before the dump does: the graph is a part of the heap");
    }
    let gaps = [of.object_gaps, of.reference_gaps, of.root_gaps];
    if of.lost_events > 0 || gaps.iter().any(|gap| *gap > 0) {
        messages::warning(format_args!(
            "the runtime lost {} events; of the dump, {} with objects, {} with references and {} with roots are missing",
            units::count(of.lost_events),
            units::count(of.object_gaps),
            units::count(of.reference_gaps),
            units::count(of.root_gaps),
        ));
        messages::help(
            "the dump has to fit into the buffer: --buffersize makes it larger, 48 bytes an object are needed",
        );
    }
    say(of.objects_without_references, "objects are shown without their references, which are unknown");
    say(of.unused_references, "references are of unknown objects, and were left out");
    say(of.repeated_objects, "objects arrived twice; the second was left out");
    say(of.invalid_addresses, "addresses are not possible for objects");
    say(of.over_limit, "objects and references are more than a graph can hold, and were left out");
    say(of.invalid_events, "events end before their fields do");
    if of.objects_of_unknown_types > 0 {
        let (why, help) = match source {
            GraphSource::Events => (
                "the runtime describes a type once, and did so to a session that still runs",
                "end other sessions of the process (dipc trace, dotnet-trace, monitors) that record types, and collect again",
            ),
            GraphSource::Memory => (
                "the metadata of their modules is not in this memory",
                "a full dump (dipc dump --type full) has it",
            ),
        };
        messages::warning(format_args!(
            "objects without a type name: {}, of types: {}; {why}",
            units::count(of.objects_of_unknown_types),
            units::count(of.unknown_types),
        ));
        messages::help(help);
    }
    if of.com_wrappers > 0 {
        messages::note(format_args!(
            "{} wrappers of COM objects are not in the graph.",
            units::count(of.com_wrappers)
        ));
    }
    if of.missing_bytes > 0 {
        messages::warning(format_args!("{} of the heap cannot be read", units::bytes(of.missing_bytes)));
    }
    if of.is_moving {
        messages::warning("a collection was moving objects: some can be missing or counted twice");
    }
    say(of.missing_roots, "kinds of roots cannot be read: objects can appear to be unreferenced");
    if of.conservative_roots > 0 {
        messages::note(format_args!(
            "Local variables: {} objects that words on stacks point into; not each is in use",
            units::count(of.conservative_roots)
        ));
    }
    if of.stacks_without_roots > 0 {
        messages::note(format_args!(
            "Local variables of {} are unknown: their registers were not read",
            units::counted(
                of.stacks_without_roots,
                "thread that runs managed code",
                "threads that run managed code"
            )
        ));
    }
    if of.truncated_stacks > 0 {
        messages::warning(format_args!(
            "{} more references on the stack than are read: objects can appear to be unreferenced",
            units::counted(of.truncated_stacks, "thread has", "threads have")
        ));
    }
    if of.dangling_references > 0 {
        messages::detail(format_args!(
            "{} references are to objects that are not in the dump.",
            units::count(of.dangling_references)
        ));
    }
    if of.is_complete() { Exit::Done } else { Exit::Incomplete }
}

/// Returns the name of a step from a root to an object.
pub(crate) fn step_name(graph: &HeapGraph, step: PathStep, form: NameForm) -> Cow<'_, str> {
    if form == NameForm::Full { step.name(graph).into() } else { step.csharp(graph) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_with_a_truncated_stack_is_incomplete() {
        let mut of = Completeness::default();
        of.conservative_roots = 7;
        assert_eq!(warn_of_missing(&of, GraphSource::Memory), Exit::Done);
        of.truncated_stacks = 1;
        assert!(!of.is_complete());
        assert_eq!(warn_of_missing(&of, GraphSource::Memory), Exit::Incomplete);
    }
}
