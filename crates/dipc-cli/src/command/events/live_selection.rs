//! The providers to request from a process, so that it sends little that is not shown.

use dipc_client::{RUNTIME_PROVIDER, clr_keyword};
use dipc_wire::{Keywords, Level, ProviderConfig};
use nettrace_edit::Criteria;

use crate::exit::Failure;
use crate::record::selection::{Selection, SelectionRequest};

/// The runtime's own events that are each worth a line. Compilations and type loads are too frequent for
/// that.
const DEFAULT_KEYWORDS: [&str; 5] = ["gc", "loader", "contention", "exception", "threading"];
/// Keywords that make the runtime collect or walk its heap, which a filter of events does not ask for.
const COSTLY_KEYWORDS: [&str; 2] = ["gcheapcollect", "gcheapdump"];

/// Returns the selection: the requested events that the filters admit, or else the events that the filters
/// name, or else the default.
pub(super) fn selection(request: &SelectionRequest, criteria: &Criteria) -> Result<Selection, Failure> {
    let mut selection = if request.is_some() {
        Selection::new(request)?
    } else {
        Selection::of_providers(defaults(criteria))
    };
    if selection.retain(|name| criteria.admits_provider(name)) {
        Ok(selection)
    } else if request.is_some() {
        Err(Failure::usage("--provider: it matches none of the requested providers"))
    } else {
        Err(Failure::usage(
            "--provider: runtimes take full names, and the pattern does not match the runtime's own provider",
        )
        .with_help("--providers requests others, such as System.Net.Http:FFFFFFFFFFFFFFFF:5"))
    }
}

/// The providers that the filters name; the runtime's own without any.
fn defaults(criteria: &Criteria) -> Vec<(ProviderConfig, &'static str)> {
    let mut providers = vec![(runtime(criteria), "default")];
    for name in criteria.named_providers().filter(|name| !name.eq_ignore_ascii_case(RUNTIME_PROVIDER)) {
        let config = ProviderConfig {
            keywords: Keywords::ALL,
            level: Level::VERBOSE,
            name: name.to_owned(),
            arguments: String::new(),
        };
        providers.push((config, "--provider"));
    }
    providers
}

/// The runtime's own provider, for the events of it that are named, or else for the default.
fn runtime(criteria: &Criteria) -> ProviderConfig {
    let bits = |names: &[&str]| {
        names.iter().filter_map(|name| clr_keyword(name)).fold(Keywords::NONE, |all, bit| all | bit)
    };
    let (default, costly) = (bits(&DEFAULT_KEYWORDS), bits(&COSTLY_KEYWORDS));
    let mut named: Option<(Keywords, Level)> = None;
    for (keywords, level) in criteria.named_runtime_events() {
        // Enabling one keyword of an event suffices.
        let keywords = Keywords(keywords);
        let keywords = keywords & if keywords.intersects(default) { default } else { !costly };
        let (all, highest) = named.unwrap_or_default();
        named = Some((all | keywords, highest.max(Level(level.into()))));
    }
    let (keywords, level) = named.unwrap_or((default, Level::INFORMATIONAL));
    ProviderConfig { keywords, level, name: RUNTIME_PROVIDER.to_owned(), arguments: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(providers: &[&str], events: &[&str]) -> Vec<(String, u64, u32)> {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let criteria = Criteria::of_names(&owned(providers), &owned(events));
        let selection = selection(&SelectionRequest::default(), &criteria).unwrap();
        selection.configs().into_iter().map(|it| (it.name, it.keywords.0, it.level.0)).collect()
    }

    #[test]
    fn requests_only_the_events_to_show() {
        let runtime = |keywords, level| (RUNTIME_PROVIDER.to_owned(), keywords, level);
        assert_eq!(sent(&[], &[]), [runtime(0x1_C009, 4)]);
        assert_eq!(sent(&["X"], &[]), [("X".to_owned(), u64::MAX, 5)]);
        assert_eq!(sent(&["*Runtime"], &[]), [runtime(0x1_C009, 4)]);
        assert_eq!(sent(&[], &["GC/AllocationTick"]), [runtime(0x1, 5)]);
        assert_eq!(sent(&[], &["gcstart", "Exception/Start"]), [runtime(0x8001, 4)]);
        assert_eq!(sent(&[], &["GC/BulkNode"]), [runtime(0, 4)], "would collect the heap");
        assert_eq!(sent(&[], &["Method/LoadVerbose"]), [runtime(0x30, 4)]);
    }

    #[test]
    fn a_pattern_of_other_providers_is_refused() {
        let criteria = Criteria::of_names(&["Microsoft-A*".to_owned()], &[]);
        let failure = selection(&SelectionRequest::default(), &criteria).unwrap_err();
        assert!(failure.message.contains("full names") && failure.help.is_some());
    }
}
