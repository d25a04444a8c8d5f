//! Events that a session requested, but that did not occur. Recordings do not show the request; only the
//! program that recorded them knows it.

use clr_activity::Spans;
use clr_events::{EventSet, sets};
use dipc_client::RUNTIME_PROVIDER;
use dipc_wire::{Keywords, Level, ProviderConfig};
use nettrace::Metadata;

/// Events that a report is of, and the session that has them.
struct ReportedEvents {
    /// The name of the report.
    report: &'static str,
    what: &'static str,
    /// Returns true if a session with this provider requests them.
    are_asked_for: fn(&ProviderConfig) -> bool,
    contain: fn(&Metadata) -> bool,
}

/// The groups of the runtime's events, by `src/coreclr/vm/ClrEtwAll.man` of dotnet/runtime.
const CONTENTION: Keywords = Keywords(0x4000);
const THREADING: Keywords = Keywords(0x1_0000);
const ALLOCATION_SAMPLING: Keywords = Keywords(0x80_0000_0000);

const REPORTED: [ReportedEvents; 7] = [
    ReportedEvents {
        report: "requests",
        what: "requests or other activities",
        are_asked_for: |config| config.name.eq_ignore_ascii_case("Microsoft.AspNetCore.Hosting"),
        contain: Spans::is_start_or_stop,
    },
    ReportedEvents {
        report: "gc",
        what: "garbage collections",
        are_asked_for: |config| is_asked_for(config, Keywords::GC, Level::INFORMATIONAL),
        contain: |kind| has(&sets::COLLECTIONS, kind),
    },
    ReportedEvents {
        report: "alloc",
        what: "allocation events",
        are_asked_for: |config| {
            is_asked_for(config, Keywords::GC, Level::VERBOSE)
                || is_asked_for(config, ALLOCATION_SAMPLING, Level::INFORMATIONAL)
        },
        contain: |kind| has(&sets::ALLOCATION_TICKS, kind),
    },
    ReportedEvents {
        report: "exceptions",
        what: "exceptions",
        are_asked_for: |config| is_asked_for(config, Keywords::EXCEPTION, Level::ERROR),
        contain: |kind| has(&sets::EXCEPTIONS, kind),
    },
    ReportedEvents {
        report: "contention",
        what: "waits for locks",
        are_asked_for: |config| is_asked_for(config, CONTENTION, Level::INFORMATIONAL),
        contain: |kind| has(&sets::CONTENTION, kind),
    },
    ReportedEvents {
        report: "threadpool",
        what: "events of the thread pool",
        are_asked_for: |config| is_asked_for(config, THREADING, Level::INFORMATIONAL),
        contain: |kind| has(&sets::THREAD_POOL, kind),
    },
    ReportedEvents {
        report: "jit",
        what: "compiled methods",
        are_asked_for: |config| is_asked_for(config, Keywords::JIT, Level::VERBOSE),
        contain: |kind| has(&sets::COMPILATION, kind),
    },
];

fn is_asked_for(config: &ProviderConfig, keywords: Keywords, level: Level) -> bool {
    config.name.eq_ignore_ascii_case(RUNTIME_PROVIDER)
        && config.keywords.intersects(keywords)
        && config.level.includes(level)
}

fn has(set: &EventSet, kind: &Metadata) -> bool {
    set.contains(kind)
}

/// Events that a session requested, but that are missing from its whole stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AbsentEvents {
    /// The names of the reports of them.
    pub(crate) reports: Vec<&'static str>,
    what: Vec<&'static str>,
}

impl AbsentEvents {
    /// Returns the absent events of a session with these providers. A stream describes each kind of event
    /// before the first of the kind.
    pub(crate) fn new(providers: &[ProviderConfig], kinds: &[Metadata]) -> Self {
        let is_absent = |events: &&ReportedEvents| {
            providers.iter().any(events.are_asked_for) && !kinds.iter().any(events.contain)
        };
        let absent: Vec<_> = REPORTED.iter().filter(is_absent).collect();
        Self {
            reports: absent.iter().map(|events| events.report).collect(),
            what: absent.iter().map(|events| events.what).collect(),
        }
    }

    /// Returns the absent events in words; `None` if nothing is absent.
    pub(crate) fn in_words(&self) -> Option<String> {
        (!self.what.is_empty()).then(|| self.what.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use nettrace_synth::nettrace::Trace;
    use nettrace_synth::{Metadata as Kind, TraceHeader};

    use super::*;

    #[test]
    fn names_requested_events_that_did_not_occur() {
        let exception =
            Kind { id: 1, provider: RUNTIME_PROVIDER.into(), event_id: 80, version: 1, ..Kind::default() };
        let mut trace = Trace::new(&TraceHeader::default());
        trace.metadata_block(&[exception]);
        let bytes = trace.finish();
        let mut events = nettrace::Reader::new(&*bytes).unwrap();
        events.for_each(|_| {}).unwrap();
        let config = |keywords, level| ProviderConfig {
            name: RUNTIME_PROVIDER.to_owned(),
            keywords,
            level,
            arguments: String::new(),
        };
        let absent = |config: ProviderConfig| AbsentEvents::new(&[config], events.metadata());
        let of_default = absent(config(Keywords(0x10_0003_801d), Level::INFORMATIONAL));
        assert_eq!(of_default.reports, ["gc", "threadpool"], "exceptions occurred");
        assert_eq!(of_default.in_words().unwrap(), "garbage collections, events of the thread pool");
        let of_locks = absent(config(Keywords(0x4000 | 0x8000), Level::INFORMATIONAL));
        assert_eq!(of_locks.reports, ["contention"]);
        assert_eq!(absent(config(Keywords::EXCEPTION, Level::ERROR)), AbsentEvents::default());
        assert_eq!(absent(config(Keywords::GC, Level::VERBOSE)).reports, ["gc", "alloc"]);
        assert_eq!(absent(config(Keywords::GC, Level::ERROR)), AbsentEvents::default());
    }
}
