//! Conditions, and the session settings that they need.

use std::time::Duration;

use clr_activity::LOGGING_PROVIDER;
use clr_counters::{Comparison, ProviderRequest, Selection, SessionSettings};
use clr_events::{Glob, Provider};

use crate::exception::ExceptionTypes;
use crate::field::FieldCondition;
use crate::system::SystemValue;

/// A condition over the events of a process: see the [language](crate#the-language).
///
/// ```
/// use clr_conditions::Condition;
///
/// let condition = Condition::parse("exception System.TimeoutException or gc pause > 200ms")?;
/// // For the session: the runtime's provider, with keywords for both.
/// let requests = condition.requests();
/// assert_eq!((requests.len(), requests[0].keywords), (1, 0x8001));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub(crate) atoms: Vec<Atom>,
    pub(crate) root: Node,
}

/// A condition without parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Atom {
    Exception(ExceptionTypes),
    Event {
        provider: Glob,
        name: Option<Glob>,
        fields: Vec<FieldCondition>,
    },
    Pause(Comparison, Duration),
    Request {
        duration: Option<(Comparison, Duration)>,
        status: Option<(Comparison, u32)>,
        path: Option<Glob>,
    },
    Counter {
        condition: clr_counters::Condition,
        /// `None` for any counter of the session: its provider is not known.
        selection: Option<Selection>,
    },
    System {
        value: SystemValue,
        comparison: Comparison,
        bound: f64,
        /// The time for which the value has to be beyond its bound.
        lasting: Duration,
    },
    Exit,
    Crash,
    Disconnect,
}

/// Parts, and how they are combined.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    /// The number of an atom.
    Atom(usize),
    /// All of them within a duration.
    All(Vec<Node>, Duration),
    Any(Vec<Node>),
}

const HOSTING: &str = "Microsoft.AspNetCore.Hosting";
/// The filter for the log messages of each request, which have its status and its endpoint.
const LOGGING_ARGUMENTS: &str = "FilterSpecs=\"Microsoft.AspNetCore.Hosting.Diagnostics:Information\"";
/// The start of arguments that leave out log messages: without arguments the messages of all loggers are
/// sent.
///
/// # Source
/// `OnEventCommand` in `LoggingEventSource.cs` of dotnet/runtime.
const FILTER: &str = "FilterSpecs=";
/// The provider that puts the ids of activities on threads, and its keyword for that, which selects no
/// events.
const TASKS: &str = clr_events::ids::tasks::PROVIDER;
const ACTIVITY_IDS: u64 = 0x80;

const INFORMATIONAL: u32 = 4;
const ERROR: u32 = 2;
const VERBOSE: u32 = 5;
const GC_KEYWORD: u64 = 0x1;
const EXCEPTION_KEYWORD: u64 = 0x8000;
/// The keyword by which the logging library writes its messages as JSON.
const JSON_MESSAGES: u64 = 0x8;

impl Condition {
    /// Returns the providers that a session has to enable so that the condition can be met. The keywords of
    /// events outside the runtime are not known here, so all are enabled.
    pub fn requests(&self) -> Vec<ProviderRequest> {
        let mut requests = Vec::new();
        for atom in &self.atoms {
            let of_atom = match atom {
                Atom::Counter { selection: Some(it), .. } => it.requests(&SessionSettings::default()),
                _ => of_events(atom),
            };
            for request in of_atom {
                add(&mut requests, request);
            }
        }
        requests
    }

    /// Returns the providers that a session of `counters` has to enable so that the condition can be met as
    /// well. Its counters are requested with the others, in the same `settings`.
    ///
    /// ```
    /// use clr_conditions::Condition;
    /// use clr_counters::{Selection, SessionSettings};
    ///
    /// // A session that shows counters, and acts on one of them.
    /// let condition = Condition::parse_for_counters("cpu-usage > 80")?;
    /// let shown = Selection::parse("System.Runtime")?;
    /// let requests = condition.requests_with(&shown, &SessionSettings::default());
    /// assert!(requests.iter().any(|request| request.name == "System.Runtime"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn requests_with(&self, counters: &Selection, settings: &SessionSettings) -> Vec<ProviderRequest> {
        let own = self.atoms.iter().filter_map(|atom| match atom {
            Atom::Counter { selection, .. } => selection.clone(),
            _ => None,
        });
        let mut requests = own.fold(counters.clone(), Selection::and).requests(settings);
        self.atoms.iter().flat_map(of_events).for_each(|request| add(&mut requests, request));
        requests
    }

    /// Returns the providers that a recording needs to meet a part of the condition, if it has no events of
    /// them. For a counter that may be an EventCounter or belong to a Meter, either provider suffices.
    ///
    /// ```
    /// use clr_conditions::Condition;
    ///
    /// let condition = Condition::parse("request > 2s or exception")?;
    /// let recorded = ["Microsoft-Windows-DotNETRuntime"];
    /// let missing = condition.missing_providers(|provider| recorded.contains(&provider));
    /// assert_eq!(missing, ["Microsoft.AspNetCore.Hosting"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn missing_providers(&self, is_recorded: impl Fn(&str) -> bool) -> Vec<String> {
        let mut missing = Vec::new();
        for atom in &self.atoms {
            let alternatives = match atom {
                Atom::Exception(_) | Atom::Pause(..) => vec![Provider::Runtime.name().to_owned()],
                Atom::Event { provider, name, .. } => {
                    of_event(provider, name.as_ref()).into_iter().map(|request| request.name).collect()
                }
                Atom::Request { .. } => vec![HOSTING.to_owned()],
                Atom::Counter { selection: Some(selection), .. } => selection
                    .requests(&SessionSettings::default())
                    .into_iter()
                    .map(|request| request.name)
                    .collect(),
                Atom::Counter { selection: None, .. }
                | Atom::System { .. }
                | Atom::Exit
                | Atom::Crash
                | Atom::Disconnect => continue,
            };
            if alternatives.iter().any(|name| is_recorded(name)) {
                continue;
            }
            if let Some(name) = alternatives.into_iter().next().filter(|name| !missing.contains(name)) {
                missing.push(name);
            }
        }
        missing
    }

    /// Returns the values of the system that it compares: [`Evaluator::usage`](crate::Evaluator::usage) has
    /// to be given them.
    ///
    /// ```
    /// use clr_conditions::{Condition, SystemValue};
    ///
    /// let condition = Condition::parse_for_rules("process cpu > 150% or exception")?;
    /// assert!(condition.system_values().eq([SystemValue::ProcessCpu]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn system_values(&self) -> impl Iterator<Item = SystemValue> + '_ {
        self.atoms.iter().filter_map(|atom| match atom {
            Atom::System { value, .. } => Some(*value),
            _ => None,
        })
    }

    /// Returns true if a part of it is about requests.
    pub fn has_requests(&self) -> bool {
        self.atoms.iter().any(|atom| matches!(atom, Atom::Request { .. }))
    }

    /// Returns the providers of events, as written, that [`requests`](Self::requests) cannot enable: names
    /// with `*`, since runtimes take whole names. Names that match a provider of the runtime or in
    /// `recorded`, which is enabled anyway, are left out.
    ///
    /// ```
    /// use clr_conditions::Condition;
    ///
    /// let condition = Condition::parse("event MyCompany*/Failed")?;
    /// assert_eq!(condition.unrequested_providers(&[]), ["MyCompany*"]);
    /// assert!(condition.unrequested_providers(&["MyCompany-Shop"]).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unrequested_providers<'c>(&'c self, recorded: &[&str]) -> Vec<&'c str> {
        let is_known = |provider: &Glob| {
            let mut names = Provider::ALL.iter().map(|known| known.name()).chain(recorded.iter().copied());
            names.any(|name| provider.matches(name))
        };
        self.atoms
            .iter()
            .filter_map(|atom| match atom {
                Atom::Event { provider, .. } if provider.is_pattern() && !is_known(provider) => {
                    Some(provider.text())
                }
                _ => None,
            })
            .collect()
    }
}

/// The requests for an atom that is not a counter.
fn of_events(atom: &Atom) -> Vec<ProviderRequest> {
    match atom {
        Atom::Exception(_) => vec![runtime(EXCEPTION_KEYWORD, ERROR)],
        Atom::Pause(..) => vec![runtime(GC_KEYWORD, INFORMATIONAL)],
        Atom::Event { provider, name, .. } => of_event(provider, name.as_ref()),
        Atom::Request { .. } => vec![
            source(HOSTING, u64::MAX, INFORMATIONAL, ""),
            source(TASKS, ACTIVITY_IDS, INFORMATIONAL, ""),
            source(LOGGING_PROVIDER, JSON_MESSAGES, INFORMATIONAL, LOGGING_ARGUMENTS),
        ],
        Atom::Counter { .. } | Atom::System { .. } | Atom::Exit | Atom::Crash | Atom::Disconnect => {
            Vec::new()
        }
    }
}

/// The request for an event: for the runtime's events, with their keywords and levels.
fn of_event(provider: &Glob, name: Option<&Glob>) -> Vec<ProviderRequest> {
    let known: Vec<Provider> =
        Provider::ALL.iter().copied().filter(|known| provider.matches(known.name())).collect();
    if known.is_empty() {
        // Runtimes take only whole names.
        let name = provider.text();
        return if provider.is_pattern() { Vec::new() } else { vec![source(name, u64::MAX, VERBOSE, "")] };
    }
    let is_dynamic = name.is_some_and(|name| {
        let mut schemas = known.iter().flat_map(|known| clr_events::Schema::all(*known));
        name.lower().starts_with("gc/")
            && (name.is_pattern() || !schemas.any(|it| name.matches_event(it.name)))
    });
    let schemas = known.into_iter().flat_map(clr_events::Schema::all);
    let wanted = schemas.filter(|schema| name.is_none_or(|name| name.matches_event(schema.name)));
    let mut requests = Vec::new();
    for schema in wanted {
        add(
            &mut requests,
            source(schema.provider.name(), schema.keywords, u32::from(schema.level).max(1), ""),
        );
    }
    if is_dynamic {
        // An event that the collector defines at run time.
        add(&mut requests, runtime(GC_KEYWORD, INFORMATIONAL));
    }
    requests
}

fn runtime(keywords: u64, level: u32) -> ProviderRequest {
    source(Provider::Runtime.name(), keywords, level, "")
}

fn source(name: &str, keywords: u64, level: u32, arguments: &str) -> ProviderRequest {
    ProviderRequest::new(name, keywords, level, arguments)
}

/// Adds a request, or merges it into the request for the same provider.
fn add(requests: &mut Vec<ProviderRequest>, request: ProviderRequest) {
    match requests.iter_mut().find(|known| known.name.eq_ignore_ascii_case(&request.name)) {
        Some(known) => {
            known.keywords |= request.keywords;
            known.level = known.level.max(request.level);
            let texts = [&known.arguments, &request.arguments];
            if texts.iter().any(|it| it.is_empty()) && texts.iter().any(|it| it.starts_with(FILTER)) {
                // Without a filter the provider sends everything, which includes the requested messages.
                known.arguments.clear();
            } else if known.arguments.is_empty() {
                known.arguments = request.arguments;
            } else {
                join_meters(&mut known.arguments, &request.arguments);
            }
        }
        None => requests.push(request),
    }
}

/// Merges the requested Meters, `…;Metrics=A;…`, with the Meters of another request.
fn join_meters(arguments: &mut String, other: &str) {
    let meters = |text: &str| {
        let list = text.split(';').find_map(|part| part.strip_prefix("Metrics="))?;
        Some(list.to_owned())
    };
    let (Some(own), Some(more)) = (meters(arguments), meters(other)) else { return };
    if !own.split(',').any(|meter| meter == more) {
        *arguments = arguments.replacen(&format!("Metrics={own}"), &format!("Metrics={own},{more}"), 1);
    }
}
