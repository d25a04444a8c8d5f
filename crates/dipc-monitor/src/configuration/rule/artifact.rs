//! The artifacts that actions collect.

use std::collections::BTreeMap;
use std::time::Duration;

use clr_counters::{CounterSource, Selection};
use dipc_client::{Keywords, Level, ProviderConfig};
use dipc_collect::logs::{LogLevel, LogSelection};

use super::Section;
use crate::artifact::{
    ExceptionFilter, ExceptionsRequest, LogFormat, LogsRequest, TraceProfile, TraceRequest, default_counters,
    parse_event_level, parse_keywords,
};
use crate::configuration::finding::Findings;
use crate::configuration::view::View;
use crate::rules::StoppingEvent;

pub(super) fn logs(
    section: &Section<'_>,
    duration: Option<Duration>,
    findings: &mut Findings,
) -> LogsRequest {
    let settings = section.view;
    let level = settings.text("DefaultLevel").and_then(LogLevel::parse).unwrap_or(LogLevel::Warning);
    let mut filters = BTreeMap::new();
    for (category, of_category) in settings.get("FilterSpecs").entries() {
        if !LogSelection::is_valid_category(category) {
            let message = format!("{category:?} has quotes, colons or semicolons, which no category has");
            section.get("FilterSpecs").error(findings, message, None);
        }
        let of_category = of_category.own_text().and_then(LogLevel::parse).unwrap_or(level);
        filters.insert(category.to_owned(), of_category);
    }
    let use_app_filters = settings.boolean("UseAppFilters").unwrap_or(true);
    let selection = LogSelection { level, filters, use_app_filters };
    LogsRequest { selection, format: log_format(settings), duration }
}

fn log_format(settings: View<'_>) -> LogFormat {
    match settings.one_of("Format", &["NewlineDelimitedJson", "JsonSequence"]) {
        Some("NewlineDelimitedJson") => LogFormat::NewlineDelimitedJson,
        Some(_) => LogFormat::JsonSequence,
        None => LogFormat::PlainText,
    }
}

pub(super) fn exceptions(section: &Section<'_>, duration: Option<Duration>) -> ExceptionsRequest {
    let filters = |list: &str| {
        let items = section.view.get("Filters").items(list).into_iter();
        let filter = |item: View<'_>| ExceptionFilter {
            exception_type: item.owned("ExceptionType"),
            module_name: item.owned("ModuleName"),
            type_name: item.owned("TypeName"),
            method_name: item.owned("MethodName"),
        };
        items.map(filter).collect()
    };
    let (include, exclude) = (filters("Include"), filters("Exclude"));
    ExceptionsRequest { include, exclude, format: log_format(section.view), duration, past: false }
}

/// The counters of `CollectLiveMetrics`.
pub(super) fn selection(
    section: &Section<'_>,
    action: &Section<'_>,
    findings: &mut Findings,
) -> Option<Selection> {
    let mut selection =
        section.view.boolean("IncludeDefaultProviders").unwrap_or(true).then(default_counters);
    for (list, name, counters, source) in [
        ("Providers", "ProviderName", "CounterNames", CounterSource::EventCounters),
        ("Meters", "MeterName", "InstrumentNames", CounterSource::Meters),
    ] {
        for item in section.items(list) {
            let Some(name) = item.view.text(name) else { continue };
            match Selection::of_provider(source, name, &item.view.texts(counters)) {
                Ok(named) => {
                    selection = Some(match selection {
                        Some(known) => known.and(named),
                        None => named,
                    });
                }
                Err(error) => item.error(findings, error.to_string(), None),
            }
        }
    }
    if selection.is_none() {
        let place = if section.view.0.is_some() { section } else { action };
        let help = Some("add Providers or Meters, or IncludeDefaultProviders".to_owned());
        place.error(findings, "no counters are collected", help);
    }
    selection
}

/// A trace, and the event that ends it early.
pub(super) fn trace(
    section: &Section<'_>,
    action: &Section<'_>,
    duration: Option<Duration>,
    findings: &mut Findings,
) -> (TraceRequest, Option<StoppingEvent>) {
    let settings = section.view;
    let profiles: Vec<_> = settings
        .text("Profile")
        .map(|text| text.split(',').filter_map(|name| TraceProfile::parse(name.trim())).collect())
        .unwrap_or_default();
    let mut providers = Vec::new();
    for item in section.items("Providers") {
        let Some(name) = item.view.owned("Name") else { continue };
        let keywords = item.view.text("Keywords").map(|text| {
            parse_keywords(text).unwrap_or_else(|| {
                let help = Some("write a decimal number, or hexadecimal digits after 0x".to_owned());
                item.get("Keywords").error(findings, format!("{text:?} is not a number of keywords"), help);
                Keywords::NONE
            })
        });
        let arguments = texts(item.view.get("Arguments")).into_iter().map(|(key, value)| {
            // A semicolon ends a value in the text that the runtime gets.
            if value.contains(';') { format!("{key}=\"{value}\"") } else { format!("{key}={value}") }
        });
        providers.push(ProviderConfig {
            name,
            keywords: keywords.unwrap_or(Keywords::ALL),
            level: item.view.text("EventLevel").and_then(parse_event_level).unwrap_or(Level::VERBOSE),
            arguments: arguments.collect::<Vec<_>>().join(";"),
        });
    }
    let place = if settings.0.is_some() { section } else { action };
    match (profiles.is_empty(), providers.is_empty()) {
        (true, true) if settings.text("Profile").is_none() => {
            let help = Some("add \"Profile\": \"Cpu\", or \"Providers\"".to_owned());
            place.error(findings, "the trace has neither Profile nor Providers", help);
        }
        (false, false) => {
            let help = Some("remove one of them".to_owned());
            place.error(findings, "the trace has Profile and Providers", help);
        }
        (false, true) => providers = TraceProfile::providers(&profiles),
        _ => {}
    }
    let event = settings.get("StoppingEvent");
    let names = event.owned("ProviderName").zip(event.owned("EventName"));
    let stopping_event = names.map(|(provider, event_name)| StoppingEvent {
        provider,
        event: event_name,
        payload: texts(event.get("PayloadFilter")),
    });
    if let Some(Err(error)) = stopping_event.as_ref().map(StoppingEvent::condition) {
        section.get("StoppingEvent").error(findings, error, None);
    }
    if let Some(event) = &stopping_event
        && !providers.iter().any(|provider| provider.name.eq_ignore_ascii_case(&event.provider))
    {
        let message = format!("the provider {} of the event is not traced", event.provider);
        let help = Some("add it to Providers".to_owned());
        section.get("StoppingEvent").error(findings, message, help);
    }
    let trace = TraceRequest {
        providers,
        request_rundown: settings.boolean("RequestRundown").unwrap_or(true),
        buffer_mb: settings.integer("BufferSizeMegabytes").unwrap_or(256),
        duration,
    };
    (trace, stopping_event)
}

fn texts(view: View<'_>) -> BTreeMap<String, String> {
    let texts =
        view.entries().map(|(key, value)| (key.to_owned(), value.own_text().unwrap_or_default().to_owned()));
    texts.collect()
}
