//! Bodies of requests.

use std::collections::BTreeMap;
use std::time::Duration;

use clr_counters::{CounterSource, Selection};
use dipc_client::dipc_wire::{Keywords, Level, ProviderConfig};
use dipc_collect::logs::{LogLevel, LogSelection};
use serde_json::{Map, Value};

use super::RequestError;
use crate::artifact::{
    ExceptionFilter, ExceptionsRequest, LiveMetricsRequest, LogFormat, LogsRequest, TraceRequest,
    default_counters,
};

/// The default of `bufferSizeInMB`, and its limit.
const BUFFER_MB: (u32, u32) = (256, 1024);
/// Maximum number of providers of a session.
const MAX_PROVIDERS: usize = 1000;

/// An object of a body. Names of members match in any case, as in dotnet-monitor.
struct Members {
    path: String,
    members: Map<String, Value>,
}

impl Members {
    fn parse(body: &[u8]) -> Result<Self, RequestError> {
        match serde_json::from_slice(body) {
            Ok(value) => Self::of(value, ""),
            Err(error) => Err(RequestError::invalid("$", format!("not valid JSON: {error}"))),
        }
    }

    fn of(value: Value, path: &str) -> Result<Self, RequestError> {
        match value {
            Value::Object(members) => Ok(Self { path: path.to_owned(), members }),
            _ => {
                Err(RequestError::invalid(if path.is_empty() { "$" } else { path }, "an object is expected"))
            }
        }
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Removes a member; null counts as missing.
    fn take(&mut self, name: &str) -> Option<Value> {
        let key = self.members.keys().find(|key| key.eq_ignore_ascii_case(name))?.clone();
        self.members.remove(&key).filter(|value| !value.is_null())
    }

    fn invalid(&self, name: &str, what: &str) -> RequestError {
        RequestError::invalid(&self.path_of(name), what)
    }

    fn string(&mut self, name: &str) -> Result<Option<String>, RequestError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid(name, "a string is expected")),
        }
    }

    fn required_string(&mut self, name: &str) -> Result<String, RequestError> {
        let text = self.string(name)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| self.invalid(name, "it is required and must not be empty"))
    }

    fn bool(&mut self, name: &str, default: bool) -> Result<bool, RequestError> {
        match self.take(name) {
            None => Ok(default),
            Some(Value::Bool(value)) => Ok(value),
            Some(_) => Err(self.invalid(name, "true or false is expected")),
        }
    }

    fn list(&mut self, name: &str) -> Result<Vec<Value>, RequestError> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) if values.len() <= MAX_PROVIDERS => Ok(values),
            Some(_) => Err(self.invalid(name, "a list of at most 1000 is expected")),
        }
    }

    fn strings(&mut self, name: &str) -> Result<Vec<String>, RequestError> {
        let path = self.path_of(name);
        let strings = self.list(name)?.into_iter().map(|value| match value {
            Value::String(string) => Ok(string),
            _ => Err(RequestError::invalid(&path, "a list of strings is expected")),
        });
        strings.collect()
    }

    fn objects(&mut self, name: &str) -> Result<Vec<Self>, RequestError> {
        let path = self.path_of(name);
        let values = self.list(name)?.into_iter().enumerate();
        values.map(|(place, value)| Self::of(value, &format!("{path}[{place}]"))).collect()
    }

    fn map(&mut self, name: &str) -> Result<Map<String, Value>, RequestError> {
        match self.take(name) {
            None => Ok(Map::new()),
            Some(Value::Object(map)) if map.len() <= MAX_PROVIDERS => Ok(map),
            Some(_) => Err(self.invalid(name, "an object of at most 1000 members is expected")),
        }
    }

    /// Checks that no other members are left.
    fn end(self) -> Result<(), RequestError> {
        match self.members.keys().next() {
            Some(name) => Err(RequestError::invalid(&self.path_of(name), "there is no such member")),
            None => Ok(()),
        }
    }
}

/// Parses the body of `POST /trace`.
pub(super) fn trace(body: &[u8], duration: Option<Duration>) -> Result<TraceRequest, RequestError> {
    let mut members = Members::parse(body)?;
    let mut providers = Vec::new();
    for mut provider in members.objects("providers")? {
        let name = provider.required_string("name")?;
        let keywords = match provider.string("keywords")? {
            None => Keywords::ALL,
            Some(text) => crate::artifact::parse_keywords(&text)
                .ok_or_else(|| provider.invalid("keywords", "a number is expected, decimal or 0x…"))?,
        };
        let level = match provider.string("eventLevel")? {
            None => Level::VERBOSE,
            Some(text) => crate::artifact::parse_event_level(&text)
                .ok_or_else(|| provider.invalid("eventLevel", "it is not one of its values"))?,
        };
        let mut arguments = Vec::new();
        for (key, value) in provider.map("arguments")? {
            let value = value.as_str().unwrap_or_default();
            // Both signs end a value in the text that the runtime gets.
            let value = if value.contains(';') { format!("\"{value}\"") } else { value.to_owned() };
            arguments.push(format!("{key}={value}"));
        }
        provider.end()?;
        providers.push(ProviderConfig { keywords, level, name, arguments: arguments.join(";") });
    }
    if providers.is_empty() {
        return Err(members.invalid("providers", "at least one is required"));
    }
    let request_rundown = members.bool("requestRundown", true)?;
    let (default, most) = BUFFER_MB;
    let buffer_mb = match members.take("bufferSizeInMB") {
        None => default,
        Some(value) => {
            let size = value.as_u64().and_then(|size| u32::try_from(size).ok());
            size.filter(|size| (1..=most).contains(size))
                .ok_or_else(|| members.invalid("bufferSizeInMB", "a number from 1 to 1024 is expected"))?
        }
    };
    members.end()?;
    Ok(TraceRequest { providers, request_rundown, buffer_mb, duration })
}

/// Parses the body of `POST /livemetrics`.
pub(super) fn live_metrics(
    body: &[u8],
    interval: Duration,
    duration: Option<Duration>,
) -> Result<LiveMetricsRequest, RequestError> {
    let mut members = Members::parse(body)?;
    let mut named = None::<Selection>;
    for (list, name_of, counters_of, source) in [
        ("providers", "providerName", "counterNames", CounterSource::EventCounters),
        ("meters", "meterName", "instrumentNames", CounterSource::Meters),
    ] {
        for mut provider in members.objects(list)? {
            let name = provider.required_string(name_of)?;
            let counters = provider.strings(counters_of)?;
            let selection = Selection::of_provider(source, &name, &counters)
                .map_err(|error| provider.invalid(name_of, &error.to_string()))?;
            provider.end()?;
            named = Some(match named {
                Some(others) => others.and(selection),
                None => selection,
            });
        }
    }
    // Named ones alone are collected unless the defaults are asked for.
    let has_defaults = members.bool("includeDefaultProviders", named.is_none())?;
    members.end()?;
    let selection = match (has_defaults.then(default_counters), named) {
        (Some(defaults), Some(named)) => Some(defaults.and(named)),
        (defaults, named) => defaults.or(named),
    };
    let Some(selection) = selection else {
        return Err(RequestError::invalid("providers", "no counters are asked for"));
    };
    Ok(LiveMetricsRequest { selection, interval, duration })
}

/// The counters of `GET /livemetrics`.
pub(super) fn default_live_metrics(interval: Duration, duration: Option<Duration>) -> LiveMetricsRequest {
    LiveMetricsRequest { selection: default_counters(), interval, duration }
}

/// Parses the filters in the body of `POST /exceptions`.
pub(super) fn exceptions(body: &[u8]) -> Result<ExceptionsRequest, RequestError> {
    let mut members = Members::parse(body)?;
    let filters = |members: &mut Members, name: &str| {
        let filters = members.objects(name)?.into_iter().map(|mut filter| {
            let parsed = ExceptionFilter {
                exception_type: filter.string("exceptionType")?,
                module_name: filter.string("moduleName")?,
                type_name: filter.string("typeName")?,
                method_name: filter.string("methodName")?,
            };
            filter.end().map(|()| parsed)
        });
        filters.collect::<Result<Vec<_>, RequestError>>()
    };
    let (include, exclude) = (filters(&mut members, "include")?, filters(&mut members, "exclude")?);
    members.end()?;
    Ok(ExceptionsRequest { include, exclude, ..ExceptionsRequest::default() })
}

/// Parses the body of `POST /logs`.
pub(super) fn logs(
    body: &[u8],
    format: LogFormat,
    duration: Option<Duration>,
) -> Result<LogsRequest, RequestError> {
    let mut members = Members::parse(body)?;
    let parse = |text: &str, path: &str| {
        LogLevel::parse(text).ok_or_else(|| RequestError::invalid(path, "it is not one of its values"))
    };
    let level = match members.string("logLevel")? {
        None => LogLevel::Warning,
        Some(text) => parse(&text, "logLevel")?,
    };
    let mut filters = BTreeMap::new();
    for (category, value) in members.map("filterSpecs")? {
        let path = format!("filterSpecs.{category}");
        if !LogSelection::is_valid_category(&category) {
            return Err(RequestError::invalid(&path, "a category has no quotes, colons or semicolons"));
        }
        let category_level = match value {
            Value::Null => level,
            Value::String(text) => parse(&text, &path)?,
            _ => return Err(RequestError::invalid(&path, "a level or null is expected")),
        };
        filters.insert(category, category_level);
    }
    let use_app_filters = members.bool("useAppFilters", true)?;
    members.end()?;
    Ok(LogsRequest { selection: LogSelection { level, filters, use_app_filters }, format, duration })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_SECONDS: Duration = Duration::from_secs(2);

    #[test]
    fn a_trace_has_the_defaults_of_the_contract() {
        let body = br#"{"Providers":[{"Name":"A","Keywords":"0x10","EventLevel":"warning",
            "Arguments":{"k":"v;w","n":"1"}},{"name":"B","keywords":"17"}]}"#;
        let request = trace(body, None).unwrap();
        let [a, b] = &request.providers[..] else { panic!("{request:?}") };
        assert_eq!((a.keywords.0, a.level.0, &*a.arguments), (0x10, 3, "k=\"v;w\";n=1"));
        assert_eq!((b.keywords.0, b.level.0, &*b.arguments), (17, 5, ""));
        assert_eq!((request.request_rundown, request.buffer_mb), (true, 256));
    }

    #[test]
    fn invalid_bodies_name_the_member() {
        let detail = |result: Result<TraceRequest, RequestError>| result.unwrap_err().to_string();
        for (body, what) in [
            ("{", "not valid JSON"),
            ("[]", "an object is expected"),
            ("{}", "providers: at least one"),
            (r#"{"providers":[{}]}"#, "providers[0].name: it is required"),
            (r#"{"providers":[{"name":"A","keywords":"x"}]}"#, "providers[0].keywords"),
            (r#"{"providers":[{"name":"A","eventLevel":"Loud"}]}"#, "providers[0].eventLevel"),
            (r#"{"providers":[{"name":"A"}],"bufferSizeInMB":1025}"#, "1 to 1024"),
            (r#"{"providers":[{"name":"A"}],"bufferSizeInMB":0}"#, "1 to 1024"),
            (r#"{"providers":[{"name":"A"}],"other":1}"#, "other: there is no such member"),
        ] {
            let problem = detail(trace(body.as_bytes(), None));
            assert!(problem.contains(what), "{body}: {problem}");
        }
    }

    #[test]
    fn counters_and_categories_are_the_named_ones() {
        let body =
            br#"{"providers":[{"providerName":"P","counterNames":["a","b"]}],"meters":[{"meterName":"M"}]}"#;
        let request = live_metrics(body, TWO_SECONDS, None).unwrap();
        assert_eq!(request.interval, TWO_SECONDS);
        assert!(request.selection.has_event_counter("P", "a") && request.selection.has_instrument("M", "x"));
        assert!(!request.selection.has_event_counter("P", "c"));
        let odd = br#"{"meters":[{"meterName":"Shop,Berlin","instrumentNames":["sold;paid"]}]}"#;
        let odd = live_metrics(odd, TWO_SECONDS, None).unwrap().selection;
        assert!(odd.has_instrument("Shop,Berlin", "sold;paid") && !odd.has_instrument("Shop", "sold;paid"));
        assert!(live_metrics(br#"{"meters":[{"meterName":"a\"b"}]}"#, TWO_SECONDS, None).is_err());
        assert!(!request.selection.has_event_counter("System.Runtime", "cpu-usage"));
        assert!(
            live_metrics(b"{}", TWO_SECONDS, None)
                .unwrap()
                .selection
                .has_event_counter("System.Runtime", "cpu-usage")
        );
        assert!(live_metrics(br#"{"includeDefaultProviders":false}"#, TWO_SECONDS, None).is_err());
        let request =
            logs(br#"{"logLevel":"Error","filterSpecs":{"A":null,"B":"Trace"}}"#, LogFormat::default(), None);
        let request = request.unwrap();
        assert_eq!(
            (request.selection.filters["A"], request.selection.filters["B"]),
            (LogLevel::Error, LogLevel::Trace)
        );
        assert!(logs(br#"{"filterSpecs":{"A;B":null}}"#, LogFormat::default(), None).is_err());
    }
}
