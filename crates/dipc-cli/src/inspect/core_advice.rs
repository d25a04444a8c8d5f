//! Missing parts of core dumps, and advice for taking a complete one.

use clr_dump::{CopiedContent, CopyNote};

use crate::duration;
use crate::inspect::core_source::Source;
use crate::render::units;

/// The limits that left memory out of a core dump, in words; `None` if none did.
pub(crate) fn limits(source: &Source) -> Option<String> {
    let core = source.core()?;
    let CopyNote { size_reached, time_reached, size_limit, time_limit, omitted_bytes, .. } = *core.copy()?;
    let size = size_limit.filter(|_| size_reached).map(|size| format!("--max-size {}", units::bytes(size)));
    let time = time_limit.filter(|_| time_reached).map(|time| format!("--pause {}", duration::display(time)));
    let limits: Vec<String> = size.into_iter().chain(time).collect();
    if omitted_bytes == 0 || limits.is_empty() {
        return None;
    }
    let (of_files, others) = core.omitted_bytes();
    Some(format!(
        "{} of memory for {}: {} of mapped files, and {} of other memory, such as the heap",
        units::bytes(omitted_bytes),
        limits.join(" and "),
        units::bytes(of_files),
        units::bytes(others)
    ))
}

/// The reason why a core dump does not have all memory: it was truncated, or limits left out memory.
pub(crate) fn shortfall(source: &Source) -> Option<String> {
    let truncated = source.truncation().map(|text| format!("the core dump is truncated: {text}"));
    truncated.or_else(|| limits(source).map(|text| format!("the core dump was limited: it lacks {text}")))
}

/// The way to a core dump or an analysis that has more.
pub(crate) fn better(source: &Source) -> String {
    let Some(core) = source.core() else {
        return "--stop TIME of the view 'heap' stops the process while its heap is read".to_owned();
    };
    if source.truncation().is_some() {
        return "it takes a whole file: is there room on the disk, and no limit (ulimit -c)?".to_owned();
    }
    if limits(source).is_some() {
        return "dipc dump -p PID --stream without --max-size, or with more, writes one that has it"
            .to_owned();
    }
    let is_mini = core.copy().is_some_and(|copy| copy.content == CopiedContent::MINI);
    if (core.signal().is_some() || core.common_signal().is_some()) && !is_mini {
        return next_time();
    }
    "dipc dump -p PID --type heap writes a dump that has it".to_owned()
}

/// The way to a better core dump of a process that has died.
pub(crate) fn next_time() -> String {
    "so that the next one has it: DOTNET_DbgEnableMiniDump=1 with DOTNET_DbgMiniDumpType=2 (4: all memory, which .NET Core \
     3.1 needs, whose variables begin with COMPlus_) for dumps of the runtime, echo 0x3f > /proc/PID/coredump_filter for those of the kernel, or dipc trace -p PID --keep 30s --dump-on crash"
        .to_owned()
}
