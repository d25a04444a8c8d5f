//! Filters of processes.

use crate::filter::{Filter, FilterKey, MatchType};

use super::finding::Findings;
use super::view::View;

/// Builds a filter from `{Key, Value, MatchType}` or from `{ProcessName}` and the like.
pub(crate) fn filter(item: View<'_>, path: &str, findings: &mut Findings) -> Option<Filter> {
    const KEYS: [(&str, FilterKey); 4] = [
        ("ProcessId", FilterKey::ProcessId),
        ("ProcessName", FilterKey::ProcessName),
        ("CommandLine", FilterKey::CommandLine),
        ("ManagedEntryPointAssemblyName", FilterKey::ManagedEntryPointAssemblyName),
    ];
    let match_type = match item.one_of("MatchType", &["Exact", "Contains"]) {
        Some("Contains") => MatchType::Contains,
        _ => MatchType::Exact,
    };
    if let Some((key, value)) = KEYS.iter().find_map(|(name, key)| Some((*key, item.owned(name)?))) {
        return Some(Filter { key, value, match_type });
    }
    let names = KEYS.map(|(name, _)| name);
    let key = item.one_of("Key", &names);
    let key = KEYS.iter().find(|(name, _)| Some(*name) == key).map(|(_, key)| *key);
    let (Some(key), Some(value)) = (key, item.owned("Value")) else {
        // The check of the shape reports a wrong key.
        if item.text("Key").is_none() || item.text("Value").is_none() {
            findings.error(
                item.location(),
                path,
                "the filter has no key with a value".to_owned(),
                Some("write {\"Key\": \"ProcessName\", \"Value\": \"MyApp\"}".to_owned()),
            );
        }
        return None;
    };
    if key == FilterKey::ProcessId && value.trim().parse::<u32>().is_err() {
        let message = format!("{value:?} is not a process id");
        findings.error(item.get("Value").location(), &format!("{path}:Value"), message, None);
        return None;
    }
    Some(Filter { key, value, match_type })
}
