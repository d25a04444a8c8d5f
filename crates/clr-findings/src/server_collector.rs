//! The collector of a server on few processors.

use linux_proc_stat::ProcessUsage;
use nettrace_export::units::counted;

use crate::memory_counts::MemoryCounts;
use crate::thresholds;

/// Returns the evidence that collections which take much of the time are those of a server's collector on few
/// processors: each of its heaps has a thread, and all of them wait for the slowest.
pub(crate) fn evidence(counts: &[MemoryCounts], usage: &[ProcessUsage]) -> Option<String> {
    let heaps = counts.last()?.server_heaps?;
    let processors = usage.last()?.usable_processors()?;
    if processors > thresholds::SERVER_PROCESSORS && f64::from(heaps) <= processors.ceil() {
        return None;
    }
    Some(format!(
        "the collector is that of a server, with {}, each with a thread, on {} processors: DOTNET_gcServer=0 makes it \
         that of a workstation, and DOTNET_GCHeapCount sets the number",
        counted(u64::from(heaps), "heap", "heaps"),
        in_words(processors),
    ))
}

/// The processors of a quota can be a part of one.
fn in_words(processors: f64) -> String {
    if processors.fract() == 0.0 { format!("{processors:.0}") } else { format!("{processors:.2}") }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_server_s_collector_has_as_many_heaps_as_processors() {
        let evidence = |heaps, processors| {
            let counts = [MemoryCounts { server_heaps: heaps, ..MemoryCounts::at(Instant::now()) }];
            let mut usage = ProcessUsage::read(std::process::id()).unwrap();
            (usage.allowed_processors, usage.group) = (Some(processors), None);
            evidence(&counts, &[usage])
        };
        let few = evidence(Some(2), 2).unwrap();
        assert!(few.starts_with(
            "the collector is that of a server, with 2 heaps, each with a thread, on 2 processors"
        ));
        assert!(evidence(Some(16), 4).is_some());
        for (heaps, processors) in [(None, 2), (Some(4), 4), (Some(2), 8)] {
            assert_eq!(evidence(heaps, processors), None, "{heaps:?}, {processors}");
        }
    }
}
