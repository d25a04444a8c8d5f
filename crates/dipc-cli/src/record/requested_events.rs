//! Events that a session requested, but that did not occur. Runtimes do not write the request into a
//! recording; this program does where it writes the recording anew.

use clr_activity::Spans;
use clr_events::sets;
use dipc_client::RUNTIME_PROVIDER;
use dipc_wire::{Keywords, Level, ProviderConfig};
use nettrace::{Metadata, TraceInfo};
use nettrace_export::report::EventGroup;
use nettrace_writer::REQUESTED_EVENTS;

/// The groups of the runtime's events, by `src/coreclr/vm/ClrEtwAll.man` of dotnet/runtime.
const CONTENTION: Keywords = Keywords(0x4000);
const THREADING: Keywords = Keywords(0x1_0000);
const ALLOCATION_SAMPLING: Keywords = Keywords(0x80_0000_0000);

/// Returns true if a session with this provider requests events of a group.
fn requests(config: &ProviderConfig, group: EventGroup) -> bool {
    match group {
        EventGroup::Requests => config.name.eq_ignore_ascii_case("Microsoft.AspNetCore.Hosting"),
        EventGroup::Collections => is_asked_for(config, Keywords::GC, Level::INFORMATIONAL),
        EventGroup::Allocations => {
            is_asked_for(config, Keywords::GC, Level::VERBOSE)
                || is_asked_for(config, ALLOCATION_SAMPLING, Level::INFORMATIONAL)
        }
        EventGroup::Exceptions => is_asked_for(config, Keywords::EXCEPTION, Level::ERROR),
        EventGroup::LockWaits => is_asked_for(config, CONTENTION, Level::INFORMATIONAL),
        EventGroup::ThreadPool => is_asked_for(config, THREADING, Level::INFORMATIONAL),
        EventGroup::Compilation => is_asked_for(config, Keywords::JIT, Level::VERBOSE),
        _ => false,
    }
}

/// Returns true if events of a kind belong to a group.
fn is_of(kind: &Metadata, group: EventGroup) -> bool {
    match group {
        EventGroup::Requests => Spans::is_start_or_stop(kind),
        EventGroup::Collections => sets::COLLECTIONS.contains(kind),
        EventGroup::Allocations => sets::ALLOCATION_TICKS.contains(kind),
        EventGroup::Exceptions => sets::EXCEPTIONS.contains(kind),
        EventGroup::LockWaits => sets::CONTENTION.contains(kind),
        EventGroup::ThreadPool => sets::THREAD_POOL.contains(kind),
        EventGroup::Compilation => sets::COMPILATION.contains(kind),
        _ => false,
    }
}

/// Returns the groups of events that a session with these providers requests.
pub(crate) fn requested_groups(providers: &[ProviderConfig]) -> Vec<EventGroup> {
    let is_requested = |group: &EventGroup| providers.iter().any(|config| requests(config, *group));
    EventGroup::ALL.into_iter().filter(is_requested).collect()
}

fn is_asked_for(config: &ProviderConfig, keywords: Keywords, level: Level) -> bool {
    config.name.eq_ignore_ascii_case(RUNTIME_PROVIDER)
        && config.keywords.intersects(keywords)
        && config.level.includes(level)
}

/// Returns the groups of events that a session with these providers requested, but that are missing from its
/// whole stream. A stream describes each kind of event before the first of the kind.
pub(crate) fn absent_groups(providers: &[ProviderConfig], kinds: &[Metadata]) -> Vec<EventGroup> {
    let mut absent = requested_groups(providers);
    absent.retain(|group| !kinds.iter().any(|kind| is_of(kind, *group)));
    absent
}

/// The groups of events in the form of the header of a recording.
pub(crate) fn to_header(groups: &[EventGroup]) -> String {
    let ids: Vec<_> = groups.iter().map(|group| group.id()).collect();
    ids.join(" ")
}

/// Returns the groups of events that a recording is known to have requested.
pub(crate) fn of_header(info: &TraceInfo) -> Vec<EventGroup> {
    let value = info.key_values.iter().find(|(key, _)| key == REQUESTED_EVENTS);
    let Some((_, ids)) = value else { return Vec::new() };
    EventGroup::ALL.into_iter().filter(|group| ids.split(' ').any(|id| id == group.id())).collect()
}

/// Returns groups in words; `None` without any.
pub(crate) fn in_words(groups: &[EventGroup]) -> Option<String> {
    let names: Vec<_> = groups.iter().map(|group| group.name()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use nettrace_synth::nettrace::Trace;
    use nettrace_synth::{Metadata as Kind, TraceHeader};

    use super::*;

    #[test]
    fn a_header_states_the_requested_groups() {
        let info = |value: String| {
            TraceInfo::new_v6(0, nettrace::Ticks(0), vec![(REQUESTED_EVENTS.to_owned(), value)])
        };
        let groups = [EventGroup::Collections, EventGroup::LockWaits];
        assert_eq!(to_header(&groups), "gc contention");
        assert_eq!(of_header(&info(to_header(&groups))), groups);
        assert_eq!(of_header(&info("other gc  gc".to_owned())), [EventGroup::Collections]);
        assert_eq!(of_header(&TraceInfo::new_v6(0, nettrace::Ticks(0), Vec::new())), []);
    }

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
        let absent = |config: ProviderConfig| absent_groups(&[config], events.metadata());
        let of_default = absent(config(Keywords(0x10_0003_801d), Level::INFORMATIONAL));
        assert_eq!(of_default, [EventGroup::Collections, EventGroup::ThreadPool], "exceptions occurred");
        assert_eq!(in_words(&of_default).unwrap(), "garbage collections, the thread pool");
        let of_locks = absent(config(Keywords(0x4000 | 0x8000), Level::INFORMATIONAL));
        assert_eq!(of_locks, [EventGroup::LockWaits]);
        assert_eq!(absent(config(Keywords::EXCEPTION, Level::ERROR)), []);
        let of_allocations = absent(config(Keywords::GC, Level::VERBOSE));
        assert_eq!(of_allocations, [EventGroup::Collections, EventGroup::Allocations]);
        assert_eq!(absent(config(Keywords::GC, Level::ERROR)), []);
    }
}
