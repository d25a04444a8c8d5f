//! The choice of counters, in the syntax of dotnet-counters' `--counters`.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

use clr_events::Glob;

use crate::known;
use crate::meter::{METRICS_PROVIDER, SharedSettings};
use crate::silence::CounterSource;

/// The counters that a list names: `provider`, or `provider[counter,counter]`, separated by commas.
///
/// In addition to dotnet-counters' syntax, `*` matches any characters in both, and `Meter\` before a provider
/// chooses only its Meter, as `EventCounters\` chooses only its EventCounters. A name with `,` `;` `[` or `]`
/// stands in quotes: `"Shop,Berlin"["sold;paid"]`. Providers match without regard to case, counters with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    providers: Vec<ProviderSelection>,
}

/// A provider of a [`Selection`].
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProviderSelection {
    name: String,
    source: Source,
    /// The counters; empty for all.
    counters: Vec<String>,
}

/// The way in which a provider's counters are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Both ways: the Meter takes precedence if it reports.
    Any,
    EventCounters,
    Meter,
}

/// The characters that separate names in the runtime's list of Meters, and the character that ends the
/// argument.
///
/// # Source
/// `s_instrumentSeparators` in `MetricsEventSource.cs` of dotnet/runtime.
const METER_SEPARATORS: [char; 4] = [',', ';', '\r', '\n'];

/// Returns a name without the quotes around it, or around the part after a prefix.
fn unquoted(name: &str) -> Result<String, SelectionError> {
    let (prefix, rest) = match name.split_once('"') {
        None if name.contains(';') => return Err(SelectionError::Quotes(name.into())),
        None => return Ok(name.to_owned()),
        Some(parts) => parts,
    };
    let is_prefix = prefix.is_empty() || prefix.ends_with('\\');
    match rest.strip_suffix('"') {
        Some(inside) if is_prefix && !inside.contains('"') => Ok(format!("{prefix}{inside}")),
        _ => Err(SelectionError::Quotes(name.into())),
    }
}

/// Splits a string at the first of `marks` outside quotes. The second part begins with the mark.
fn split_unquoted<'t>(text: &'t str, marks: &[char]) -> (&'t str, &'t str) {
    let mut is_quoted = false;
    let is_mark = |c: char| {
        is_quoted ^= c == '"';
        !is_quoted && marks.contains(&c)
    };
    text.split_at(text.find(is_mark).unwrap_or(text.len()))
}

/// Parses the counters in the brackets of a provider.
fn parse_counters(provider: &str, mut list: &str) -> Result<Vec<String>, SelectionError> {
    let mut counters = Vec::new();
    loop {
        let (counter, rest) = split_unquoted(list, &[',']);
        counters.push(unquoted(counter.trim())?);
        if counters.last().is_some_and(String::is_empty) {
            return Err(SelectionError::EmptyCounter(provider.into()));
        }
        match rest.strip_prefix(',') {
            Some(rest) => list = rest,
            None => return Ok(counters),
        }
    }
}

impl Source {
    /// Splits the prefix `EventCounters\` or `Meter\` off a provider's name.
    pub(crate) fn split(name: &str) -> (Self, &str) {
        match name.split_once('\\') {
            Some((prefix, name)) if prefix.eq_ignore_ascii_case("EventCounters") => {
                (Self::EventCounters, name)
            }
            Some((prefix, name)) if prefix.eq_ignore_ascii_case("Meter") => (Self::Meter, name),
            _ => (Self::Any, name),
        }
    }
}

/// The error in a list of counters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// A provider's name is missing.
    #[error("a provider has no name: {0:?}")]
    EmptyProvider(String),
    /// A counter's name is missing.
    #[error("a counter of {0:?} has no name")]
    EmptyCounter(String),
    /// The list of a provider's counters is not closed.
    #[error("']' is missing after the counters of {0:?}")]
    Unclosed(String),
    /// Brackets within brackets, or anything except a comma after them.
    #[error("expected a comma after ']' of {0:?}, and no '[' within the brackets")]
    Brackets(String),
    /// The same provider with and without `EventCounters\` or `Meter\`.
    #[error("{0:?} is named both with and without a prefix")]
    TwoWays(String),
    /// A semicolon outside quotes, or quotes that are not around a whole name.
    #[error(
        "{0:?}: a name with a comma, a semicolon or brackets stands in quotes, as in '\"A,B\"', and no name has a quotation mark"
    )]
    Quotes(String),
}

/// The request of a session to one provider.
///
/// With feature `dipc-wire` it converts into `dipc_wire::ProviderConfig`, and the requests of a [`Selection`]
/// are an argument of `dipc_client::SessionConfig::new`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderRequest {
    /// The provider's name.
    pub name: String,
    /// The keywords.
    pub keywords: u64,
    /// The level.
    pub level: u32,
    /// The arguments, `key=value` separated by semicolons.
    pub arguments: String,
}

#[cfg(feature = "dipc-wire")]
#[cfg_attr(docsrs, doc(cfg(feature = "dipc-wire")))]
impl From<ProviderRequest> for dipc_wire::ProviderConfig {
    fn from(request: ProviderRequest) -> Self {
        let ProviderRequest { name, keywords, level, arguments } = request;
        Self { keywords: keywords.into(), level: level.into(), name, arguments }
    }
}

#[cfg(feature = "dipc-wire")]
#[cfg_attr(docsrs, doc(cfg(feature = "dipc-wire")))]
impl From<ProviderRequest> for dipc_wire::FilteredProviderConfig {
    fn from(request: ProviderRequest) -> Self {
        dipc_wire::ProviderConfig::from(request).into()
    }
}

impl ProviderRequest {
    /// Returns the request for a provider's events.
    pub fn new(name: impl Into<String>, keywords: u64, level: u32, arguments: impl Into<String>) -> Self {
        Self { name: name.into(), keywords, level, arguments: arguments.into() }
    }
}

/// The settings of a session for counters.
///
/// ```
/// use std::time::Duration;
/// use clr_counters::{Selection, SessionSettings};
///
/// let settings = SessionSettings::default().with_interval(Duration::from_secs(5));
/// let requests = Selection::parse("MyApp")?.requests(&settings);
/// assert_eq!(requests[0].arguments, "EventCounterIntervalSec=5");
/// # Ok::<(), clr_counters::SelectionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSettings {
    /// The interval between values; at least 0.1 seconds are requested.
    pub interval: Duration,
    /// Maximum number of histograms of Meters.
    pub max_histograms: u32,
    /// Maximum number of time series of Meters.
    pub max_time_series: u32,
    /// The name of the Meters' session: `SHARED` (8.0 and later), or a name of its own.
    pub session: String,
    /// The name of the client; without one the shared session lasts as long as anyone listens.
    pub client: String,
    /// True to request exponential buckets instead of quantiles (10.0 and later).
    pub exponential_histograms: bool,
    /// True to request the list of all instruments of the process instead of their values.
    pub list_instruments: bool,
}

impl Default for SessionSettings {
    /// dotnet-counters' settings: a value per second, 10 histograms and 1000 time series, in the shared
    /// session. The client has a unique name, so that the Meters' session ends with this one.
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            max_histograms: 10,
            max_time_series: 1000,
            session: SHARED_SESSION.to_owned(),
            client: unique_name(),
            exponential_histograms: false,
            list_instruments: false,
        }
    }
}

/// Returns a unique client name: the keys of a new hasher are random.
fn unique_name() -> String {
    let number = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", number(), number())
}

impl SessionSettings {
    /// The same settings with another [`interval`](Self::interval).
    #[must_use]
    pub fn with_interval(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    /// The same settings with another [`max_histograms`](Self::max_histograms).
    #[must_use]
    pub fn with_max_histograms(self, max_histograms: u32) -> Self {
        Self { max_histograms, ..self }
    }

    /// The same settings with another [`max_time_series`](Self::max_time_series).
    #[must_use]
    pub fn with_max_time_series(self, max_time_series: u32) -> Self {
        Self { max_time_series, ..self }
    }

    /// The same settings with another [`exponential_histograms`](Self::exponential_histograms).
    #[must_use]
    pub fn with_exponential_histograms(self, exponential_histograms: bool) -> Self {
        Self { exponential_histograms, ..self }
    }

    /// The same settings with another [`list_instruments`](Self::list_instruments).
    #[must_use]
    pub fn with_list_instruments(self, list_instruments: bool) -> Self {
        Self { list_instruments, ..self }
    }

    /// The same settings with another [`session`](Self::session).
    #[must_use]
    pub fn with_session(self, session: impl Into<String>) -> Self {
        Self { session: session.into(), ..self }
    }

    /// The same settings with another [`client`](Self::client).
    #[must_use]
    pub fn with_client(self, client: impl Into<String>) -> Self {
        Self { client: client.into(), ..self }
    }

    /// The same settings with a new, unique [`client`](Self::client). Each session needs its own: the runtime
    /// counts a client of the shared session once and releases it at the end of each of its sessions, so that
    /// the second one ends the Meters of all clients.
    ///
    /// ```
    /// use clr_counters::SessionSettings;
    ///
    /// let settings = || SessionSettings::default().with_unique_client();
    /// assert_ne!(settings().client, settings().client);
    /// ```
    #[must_use]
    pub fn with_unique_client(self) -> Self {
        Self { client: unique_name(), ..self }
    }

    /// Returns the known settings of the shared session, for another client: with them a session that [was
    /// refused](crate::Notice::OtherSettings) is accepted.
    #[must_use]
    pub fn adopt(self, shared: &SharedSettings) -> Self {
        let interval = shared.refresh_interval.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Self {
            interval: interval.unwrap_or(self.interval),
            max_histograms: shared.max_histograms.unwrap_or(self.max_histograms),
            max_time_series: shared.max_time_series.unwrap_or(self.max_time_series),
            ..self.with_unique_client()
        }
    }
}

/// The session of Meters that clients share (8.0 and later).
pub const SHARED_SESSION: &str = "SHARED";

/// Minimum interval to request, which is the minimum of Meters. EventCounters of some runtimes loop forever
/// with an interval of 0 (dotnet/runtime#53564).
const MIN_INTERVAL: Duration = Duration::from_millis(100);

impl Default for Selection {
    /// The default of dotnet-counters: `System.Runtime`.
    fn default() -> Self {
        let all =
            ProviderSelection { name: "System.Runtime".into(), source: Source::Any, counters: Vec::new() };
        Self { providers: vec![all] }
    }
}

impl Selection {
    /// The selection of every counter.
    pub fn everything() -> Self {
        let all = ProviderSelection { name: "*".into(), source: Source::Any, counters: Vec::new() };
        Self { providers: vec![all] }
    }

    /// Returns the union of two selections.
    ///
    /// ```
    /// use clr_counters::Selection;
    ///
    /// let cpu = Selection::of_event_counter("System.Runtime", "cpu-usage");
    /// let orders = Selection::of_instrument("MyApp", "orders");
    /// let both = cpu.and(orders);
    /// assert!(both.has_event_counter("System.Runtime", "cpu-usage"));
    /// assert!(both.has_instrument("MyApp", "orders"));
    /// assert!(!both.has_instrument("MyApp", "returns"));
    /// ```
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.providers.extend(other.providers);
        self
    }

    /// Parses a list.
    ///
    /// ```
    /// use clr_counters::Selection;
    ///
    /// let selection = Selection::parse("System.Runtime[cpu-usage,gc-heap-size],MyApp*")?;
    /// assert!(selection.has_event_counter("System.Runtime", "cpu-usage"));
    /// assert!(!selection.has_event_counter("System.Runtime", "exception-count"));
    /// assert!(selection.has_instrument("MyApp.Orders", "placed"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(list: &str) -> Result<Self, SelectionError> {
        let mut providers = Vec::<ProviderSelection>::new();
        let mut rest = list;
        loop {
            let (name, after) = split_unquoted(rest, &[',', '[']);
            let name = &*unquoted(name.trim())?;
            if name.is_empty() {
                return Err(SelectionError::EmptyProvider(list.into()));
            }
            let mut counters = Vec::new();
            rest = after;
            if let Some(inside) = after.strip_prefix('[') {
                let (inside, after) = split_unquoted(inside, &['[', ']']);
                let after = match after.strip_prefix(']') {
                    Some(after) => after,
                    None if after.is_empty() => return Err(SelectionError::Unclosed(name.into())),
                    None => return Err(SelectionError::Brackets(name.into())),
                };
                counters = parse_counters(name, inside)?;
                rest = after.trim_start();
            }
            add(&mut providers, name, counters)?;
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None if rest.is_empty() => return Ok(Self { providers }),
                None => return Err(SelectionError::Brackets(name.into())),
            }
        }
    }

    /// The selection of a provider by its unquoted name, and of all its counters if `counters` is empty. `*`
    /// matches any characters in both.
    ///
    /// # Errors
    /// [`SelectionError::Quotes`] if a name has a quotation mark, and the errors of empty names.
    ///
    /// ```
    /// use clr_counters::{CounterSource, Selection};
    ///
    /// let selection = Selection::of_provider(CounterSource::Meters, "Shop,Berlin", &["sold"])?;
    /// assert_eq!(selection, Selection::parse(r#"Meter\"Shop,Berlin"[sold]"#)?);
    /// # Ok::<(), clr_counters::SelectionError>(())
    /// ```
    pub fn of_provider(
        source: CounterSource,
        name: &str,
        counters: &[impl AsRef<str>],
    ) -> Result<Self, SelectionError> {
        let counters: Vec<_> = counters.iter().map(|counter| counter.as_ref().to_owned()).collect();
        if let Some(name) =
            counters.iter().map(|counter| &**counter).chain([name]).find(|it| it.contains('"'))
        {
            return Err(SelectionError::Quotes(name.into()));
        }
        if name.is_empty() {
            return Err(SelectionError::EmptyProvider(name.into()));
        }
        if counters.iter().any(String::is_empty) {
            return Err(SelectionError::EmptyCounter(name.into()));
        }
        let source = match source {
            CounterSource::EventCounters => Source::EventCounters,
            CounterSource::Meters => Source::Meter,
        };
        Ok(Self { providers: vec![ProviderSelection { name: name.to_owned(), source, counters }] })
    }

    /// The selection of one EventCounter.
    pub fn of_event_counter(provider: &str, counter: &str) -> Self {
        Self::of_counters(std::iter::once((Source::EventCounters, provider, counter)))
    }

    /// The selection of one instrument of a Meter.
    pub fn of_instrument(meter: &str, instrument: &str) -> Self {
        Self::of_counters(std::iter::once((Source::Meter, meter, instrument)))
    }

    /// The selection of single counters, with one provider each.
    pub(crate) fn of_counters<'n>(counters: impl Iterator<Item = (Source, &'n str, &'n str)>) -> Self {
        let providers = counters.map(|(source, provider, counter)| ProviderSelection {
            name: provider.to_owned(),
            source,
            counters: vec![counter.to_owned()],
        });
        Self { providers: providers.collect() }
    }

    /// Returns true if an instrument of this Meter may be chosen.
    pub(crate) fn may_have_instruments(&self, meter: &str) -> bool {
        self.providers.iter().any(|chosen| {
            chosen.source != Source::EventCounters
                && Glob::is_match(&chosen.name.to_lowercase(), &meter.to_lowercase())
        })
    }

    /// Returns true if a counter of an EventSource is chosen.
    pub fn has_event_counter(&self, provider: &str, counter: &str) -> bool {
        self.has(provider, counter, Source::EventCounters)
    }

    /// Returns true if an instrument of a Meter is chosen.
    pub fn has_instrument(&self, meter: &str, instrument: &str) -> bool {
        self.has(meter, instrument, Source::Meter)
    }

    fn has(&self, provider: &str, counter: &str, source: Source) -> bool {
        self.providers.iter().any(|chosen| {
            (chosen.source == Source::Any || chosen.source == source)
                && Glob::is_match(&chosen.name.to_lowercase(), &provider.to_lowercase())
                && (chosen.counters.is_empty()
                    || chosen.counters.iter().any(|name| Glob::is_match(name, counter)))
        })
    }

    /// Returns the requests of a session for the counters, as in dotnet-counters: each provider for its
    /// EventCounters, and the provider of Meters for the Meters with these names.
    ///
    /// For providers with `*`, the matching providers that this crate knows are requested: EventSources can
    /// only be requested by name.
    ///
    /// ```
    /// use clr_counters::{Selection, SessionSettings};
    ///
    /// let requests = Selection::parse("System.Runtime")?.requests(&SessionSettings::default());
    /// let names: Vec<_> = requests.iter().map(|request| request.name.as_str()).collect();
    /// // EventCounters are of the EventSource of their name, all Meters of one.
    /// assert_eq!(names, ["System.Runtime", "System.Diagnostics.Metrics"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn requests(&self, settings: &SessionSettings) -> Vec<ProviderRequest> {
        let interval = settings.interval.max(MIN_INTERVAL).as_secs_f64();
        let mut requests = Vec::<ProviderRequest>::new();
        for chosen in self.providers.iter().filter(|chosen| chosen.source != Source::Meter) {
            let names: Vec<&str> = if chosen.name.contains('*') {
                let pattern = chosen.name.to_lowercase();
                known::event_sources().filter(|name| Glob::is_match(&pattern, &name.to_lowercase())).collect()
            } else {
                vec![&chosen.name]
            };
            for name in names {
                if requests.iter().all(|request| !request.name.eq_ignore_ascii_case(name)) {
                    requests.push(ProviderRequest {
                        name: name.to_owned(),
                        keywords: 0,
                        level: 4,
                        arguments: format!("EventCounterIntervalSec={interval}"),
                    });
                }
            }
        }
        let mut meters = Vec::<Cow<'_, str>>::new();
        for chosen in self.providers.iter().filter(|chosen| chosen.source != Source::EventCounters) {
            let name = meter_name(&chosen.name);
            if !meters.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
                meters.push(name);
            }
        }
        if meters.is_empty() && !settings.list_instruments {
            return requests;
        }
        let mut arguments = format!(
            "SessionId={};Metrics={};RefreshInterval={interval};MaxTimeSeries={};MaxHistograms={};ClientId={}",
            settings.session,
            if settings.list_instruments { String::new() } else { meters.join(",") },
            settings.max_time_series,
            settings.max_histograms,
            settings.client
        );
        if settings.exponential_histograms {
            arguments.push_str(";Base2ExponentialHistogram=\"scale=20;maxBuckets=160;reportDeltas=false\"");
        }
        requests.push(ProviderRequest {
            name: METRICS_PROVIDER.to_owned(),
            keywords: if settings.list_instruments { 4 } else { 2 },
            level: 4,
            arguments,
        });
        requests
    }
}

/// Returns the name by which a Meter is requested. The runtime would read a name with a separator as several:
/// all Meters are requested that begin like it.
fn meter_name(name: &str) -> Cow<'_, str> {
    match name.split_once(METER_SEPARATORS) {
        Some((begin, _)) => Cow::Owned(format!("{}*", begin.trim_end_matches('*'))),
        None => Cow::Borrowed(name),
    }
}

/// Adds a provider to the parsed providers; the same provider given twice is merged.
fn add(
    providers: &mut Vec<ProviderSelection>,
    name: &str,
    counters: Vec<String>,
) -> Result<(), SelectionError> {
    let (source, name) = Source::split(name);
    if name.is_empty() {
        return Err(SelectionError::EmptyProvider(name.into()));
    }
    match providers.iter_mut().find(|known| known.name.eq_ignore_ascii_case(name)) {
        Some(known) if known.source != source => return Err(SelectionError::TwoWays(name.into())),
        Some(known) if known.counters.is_empty() || counters.is_empty() => known.counters.clear(),
        Some(known) => known.counters.extend(counters),
        None => providers.push(ProviderSelection { name: name.to_owned(), source, counters }),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_dotnet_counters_reads_them() {
        let selection = Selection::parse(r"System.Runtime, App[a,b],EventCounters\Old,Meter\M*[x*]").unwrap();
        let rows = [
            ("system.runtime", "anything", true, true),
            ("App", "a", true, true),
            ("App", "A", false, false),
            ("Old", "x", true, false),
            ("M.Sub", "xyz", false, true),
            ("M.Sub", "y", false, false),
            ("Other", "x", false, false),
        ];
        for (provider, counter, is_counter, is_instrument) in rows {
            assert_eq!(selection.has_event_counter(provider, counter), is_counter, "{provider} {counter}");
            assert_eq!(selection.has_instrument(provider, counter), is_instrument, "{provider} {counter}");
        }
        // The same provider given twice is merged, and "all" wins.
        let united = Selection::parse("A[x],A[y],B[x],b").unwrap();
        assert!(united.has_instrument("A", "x") && united.has_instrument("A", "y"));
        assert!(!united.has_instrument("A", "z") && united.has_instrument("B", "z"));
    }

    #[test]
    fn names_with_separators_stand_in_quotes() {
        let list = r#""Shop, Berlin"["sold;paid",x], EventCounters\"a;b[1]",Meter\"M,1",Plain"#;
        let selection = Selection::parse(list).unwrap();
        let rows = [
            ("shop, berlin", "sold;paid", true, true),
            ("Shop, Berlin", "sold", false, false),
            ("Shop", "x", false, false),
            ("a;b[1]", "any", true, false),
            ("M,1", "any", false, true),
            ("M,2", "any", false, false),
            ("Plain", "any", true, true),
        ];
        for (provider, counter, is_counter, is_instrument) in rows {
            assert_eq!(selection.has_event_counter(provider, counter), is_counter, "{provider} {counter}");
            assert_eq!(selection.has_instrument(provider, counter), is_instrument, "{provider} {counter}");
        }
        let requests = selection.requests(&SessionSettings::default());
        let names: Vec<_> = requests.iter().map(|request| &*request.name).collect();
        assert_eq!(names, ["Shop, Berlin", "a;b[1]", "Plain", METRICS_PROVIDER]);
        // The runtime reads a comma as the end of a Meter's name.
        assert!(requests[3].arguments.contains(";Metrics=Shop*,M*,Plain;"), "{}", requests[3].arguments);
    }

    #[test]
    fn names_of_configurations_are_taken_as_they_are() {
        let of =
            |name: &str, counters: &[&str]| Selection::of_provider(CounterSource::Meters, name, counters);
        let selection = of("A,B[c]", &["d;e"]).unwrap();
        assert!(selection.has_instrument("A,B[c]", "d;e") && !selection.has_instrument("A", "d;e"));
        assert!(!selection.has_event_counter("A,B[c]", "d;e"));
        assert_eq!(of("", &[]), Err(SelectionError::EmptyProvider(String::new())));
        assert_eq!(of("A", &[""]), Err(SelectionError::EmptyCounter("A".into())));
        assert_eq!(of("A", &["b\"c"]), Err(SelectionError::Quotes("b\"c".into())));
    }

    #[test]
    fn faults_of_lists_are_named() {
        let rows = [
            ("", SelectionError::EmptyProvider(String::new())),
            ("\"A,B", SelectionError::Quotes("\"A,B".into())),
            ("A\"B,C\"", SelectionError::Quotes("A\"B,C\"".into())),
            ("\"A\"\"B\"", SelectionError::Quotes("\"A\"\"B\"".into())),
            ("A;B", SelectionError::Quotes("A;B".into())),
            ("\"\"", SelectionError::EmptyProvider("\"\"".into())),
            ("A[b;c]", SelectionError::Quotes("b;c".into())),
            ("A[\"\"]", SelectionError::EmptyCounter("A".into())),
            ("A,,B", SelectionError::EmptyProvider("A,,B".into())),
            ("A[x", SelectionError::Unclosed("A".into())),
            ("A[x][y]", SelectionError::Brackets("A".into())),
            ("A[x[y]]", SelectionError::Brackets("A".into())),
            ("A[x]y", SelectionError::Brackets("A".into())),
            ("A[x,]", SelectionError::EmptyCounter("A".into())),
            (r"A,EventCounters\A", SelectionError::TwoWays("A".into())),
        ];
        for (list, error) in rows {
            assert_eq!(Selection::parse(list), Err(error), "{list}");
        }
    }

    #[test]
    fn requests_the_providers_of_dotnet_counters() {
        let settings = SessionSettings::default().with_session("S").with_client("C");
        let selection = Selection::parse(r"System.Runtime,EventCounters\Old,Workload.Meter").unwrap();
        let requests = selection.requests(&settings);
        let names: Vec<_> =
            requests.iter().map(|request| (&*request.name, request.keywords, request.level)).collect();
        let expected =
            [("System.Runtime", 0, 4), ("Old", 0, 4), ("Workload.Meter", 0, 4), (METRICS_PROVIDER, 2, 4)];
        assert_eq!(names, expected);
        assert_eq!(requests[0].arguments, "EventCounterIntervalSec=1");
        assert_eq!(
            requests[3].arguments,
            "SessionId=S;Metrics=System.Runtime,Workload.Meter;RefreshInterval=1;MaxTimeSeries=1000;MaxHistograms=10;ClientId=C"
        );
        // Known and named providers, each once.
        let all = Selection::everything().and(selection.clone()).requests(&settings);
        let count = |name: &str| all.iter().filter(|request| request.name == name).count();
        assert_eq!(["System.Runtime", "Old", "System.Net.Http", METRICS_PROVIDER].map(count), [1; 4]);
        // A list does not include values.
        let list = SessionSettings { list_instruments: true, ..settings.clone() };
        let meters = &selection.requests(&list)[3];
        assert_eq!((meters.keywords, meters.arguments.contains(";Metrics=;")), (4, true), "{meters:?}");
        // An interval of zero ends some runtimes: it is never requested.
        let none = SessionSettings { interval: Duration::ZERO, ..settings };
        assert_eq!(selection.requests(&none)[0].arguments, "EventCounterIntervalSec=0.1");
    }

    #[test]
    fn no_two_clients_have_one_name() {
        let [one, other] = [(); 2].map(|()| SessionSettings::default());
        assert_ne!(one.client, other.client);
        assert_eq!(one, other.with_client(&*one.client));
    }

    #[cfg(feature = "dipc-wire")]
    #[test]
    fn requests_are_providers_of_a_session() {
        let request = ProviderRequest::new("P", 3, 4, "a=b");
        let config: dipc_wire::FilteredProviderConfig = request.into();
        assert_eq!(config.filter, dipc_wire::EventFilter::default());
        let dipc_wire::ProviderConfig { keywords, level, name, arguments } = config.provider;
        assert_eq!((&*name, keywords.0, level.0, &*arguments), ("P", 3, 4, "a=b"));
    }
}
