//! Rules of a tree.

mod artifact;

use std::collections::BTreeMap;
use std::time::Duration;

use clr_conditions::Condition;
use clr_events::Glob;
use dipc_client::{DumpType, Uuid};

use crate::artifact::{Artifact, LiveMetricsRequest, StackFormat};
use crate::filter::Filter;
use crate::rules::placeholder;
use crate::rules::{
    Action, ActionKind, CounterSource, CounterTrigger, Destination, Limits, PathFilter, Rule, Trigger,
};

use self::artifact::{exceptions, logs, selection, trace};
use super::filter::filter;
use super::finding::{Findings, Severity};
use super::model::EgressProvider;
use super::shape::nearest;
use super::value::{format_time_span, parse_status_codes};
use super::view::View;

/// The window of triggers without one.
const WINDOW: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);
/// Minimum duration of a slow request, if not configured.
const REQUEST_DURATION: Duration = Duration::from_secs(5);
/// The time of artifacts that take time, if none is given.
const ARTIFACT_DURATION: Duration = Duration::from_secs(30);

/// Builds rules.
pub(crate) struct RuleBuilder<'c> {
    root: View<'c>,
    defaults: View<'c>,
    egress: &'c BTreeMap<String, EgressProvider>,
    /// The interval of counters.
    interval: Duration,
}

/// A section with its path, for messages.
#[derive(Clone)]
struct Section<'c> {
    view: View<'c>,
    path: String,
}

impl Section<'_> {
    fn get(&self, name: &str) -> Self {
        Self { view: self.view.get(name), path: format!("{}:{name}", self.path) }
    }

    fn items(&self, name: &str) -> Vec<Self> {
        let items = self.view.items(name).into_iter().enumerate();
        items.map(|(at, view)| Self { view, path: format!("{}:{name}:{at}", self.path) }).collect()
    }

    fn error(&self, findings: &mut Findings, message: impl Into<String>, help: Option<String>) {
        findings.error(self.view.location(), &self.path, message.into(), help);
    }

    /// Returns the duration of a key, or the default, and reports one out of range.
    fn duration(
        &self,
        name: &str,
        default: Duration,
        range: (Duration, Duration),
        findings: &mut Findings,
    ) -> Duration {
        let Some(duration) = self.view.duration(name) else { return default };
        if duration < range.0 || duration > range.1 {
            let (least, most) = (format_time_span(range.0), format_time_span(range.1));
            let help = Some(format!("choose a duration from {least} to {most}"));
            self.get(name).error(findings, format!("{} is out of range", format_time_span(duration)), help);
        }
        duration
    }
}

impl<'c> RuleBuilder<'c> {
    pub(crate) fn new(
        root: View<'c>,
        egress: &'c BTreeMap<String, EgressProvider>,
        interval: Duration,
    ) -> Self {
        Self { root, defaults: root.get("CollectionRuleDefaults"), egress, interval }
    }

    /// Builds a rule; `None` if it has an error.
    pub(crate) fn build(&self, name: &str, view: View<'c>, findings: &mut Findings) -> Option<Rule> {
        let rule = Section { view, path: format!("CollectionRules:{name}") };
        let prefix = format!("{}:", rule.path);
        let before = errors_of(findings, &rule.path, &prefix);
        let known = findings.list.len();
        let filters = self.filters(&rule, findings);
        let trigger = self.trigger(&rule, findings);
        let actions = self.actions(&rule, trigger.as_ref(), findings);
        let limits = self.limits(&rule, findings);
        let is_wrong = before
            || findings.list.iter().skip(known).any(|finding| finding.severity == Severity::Error)
            || findings.left_out > 0;
        let rule = Rule { name: name.to_owned(), filters, trigger: trigger?, actions, limits };
        (!is_wrong).then_some(rule)
    }

    /// Follows the name of a template, or returns the section itself.
    fn resolve(&self, section: Section<'c>, kind: &str, findings: &mut Findings) -> Option<Section<'c>> {
        let Some(name) = section.view.own_text() else { return Some(section) };
        let templates = self.root.get("Templates").get(kind);
        let view = templates.get(name);
        if view.is_set() {
            let path = format!("Templates:{kind}:{name}");
            // Faults of the template make the rule unusable.
            if errors_of(findings, &path, &format!("{path}:")) {
                section.error(findings, format!("the template {name:?} has errors"), None);
                return None;
            }
            return Some(Section { view, path });
        }
        let help = nearest(name, templates.entries().map(|(name, _)| name))
            .map(|name| format!("did you mean {name}?"))
            .or_else(|| Some(format!("add it to Templates:{kind}, or write an object")));
        section.error(findings, format!("no template is called {name:?}"), help);
        None
    }

    fn filters(&self, rule: &Section<'c>, findings: &mut Findings) -> Vec<Filter> {
        rule.items("Filters")
            .into_iter()
            .filter_map(|item| {
                let item = self.resolve(item, "CollectionRuleFilters", findings)?;
                filter(item.view, &item.path, findings)
            })
            .collect()
    }

    fn limits(&self, rule: &Section<'c>, findings: &mut Findings) -> Limits {
        let usual = Limits::default();
        let defaults = self.defaults.get("Limits");
        let section = rule.get("Limits");
        let Some(section) = self.resolve(section, "CollectionRuleLimits", findings) else { return usual };
        let duration = |name: &str, findings: &mut Findings| {
            let section = if section.view.text(name).is_some() {
                section.clone()
            } else {
                Section { view: defaults, path: "CollectionRuleDefaults:Limits".to_owned() }
            };
            section.view.text(name)?;
            let found = section.duration(name, Duration::ZERO, (SECOND, Duration::MAX), findings);
            (!found.is_zero()).then_some(found)
        };
        Limits {
            action_count: section
                .view
                .integer("ActionCount")
                .or_else(|| defaults.integer("ActionCount"))
                .unwrap_or(usual.action_count),
            action_count_window: duration("ActionCountSlidingWindowDuration", findings),
            rule_duration: duration("RuleDuration", findings),
        }
    }

    fn trigger(&self, rule: &Section<'c>, findings: &mut Findings) -> Option<Trigger> {
        let section = self.resolve(rule.get("Trigger"), "CollectionRuleTriggers", findings)?;
        let kind = section.view.text("Type")?.to_lowercase();
        let settings = section.get("Settings");
        let window = |findings: &mut Findings| {
            let default = self.defaults.get("Triggers").duration("SlidingWindowDuration").unwrap_or(WINDOW);
            settings.duration("SlidingWindowDuration", default, (SECOND, DAY), findings)
        };
        let paths = || {
            let patterns = |name| settings.view.texts(name).iter().map(|text| Glob::path(text)).collect();
            PathFilter { include: patterns("IncludePaths"), exclude: patterns("ExcludePaths") }
        };
        let count = |name: &str, findings: &mut Findings| {
            let count = settings
                .view
                .integer(name)
                .or_else(|| self.defaults.get("Triggers").integer(name))
                .filter(|count: &u32| *count > 0);
            if count.is_none() && settings.view.text(name).is_none() {
                let help = Some(format!("add {name:?}, or set CollectionRuleDefaults:Triggers:{name}"));
                let place = if settings.view.0.is_some() { &settings } else { &section };
                place.error(findings, format!("{name} is missing"), help);
            }
            count
        };
        Some(match kind.as_str() {
            "startup" => Trigger::Startup,
            "aspnetrequestcount" => Trigger::RequestCount {
                count: count("RequestCount", findings)?,
                window: window(findings),
                paths: paths(),
            },
            "aspnetrequestduration" => Trigger::RequestDuration {
                count: count("RequestCount", findings)?,
                duration: settings.duration(
                    "RequestDuration",
                    REQUEST_DURATION,
                    (Duration::ZERO, Duration::from_secs(3600)),
                    findings,
                ),
                window: window(findings),
                paths: paths(),
            },
            "aspnetresponsestatus" => Trigger::ResponseStatus {
                codes: status_codes(&settings, findings),
                count: match settings.view.integer("RequestCount") {
                    // The documentation of dotnet-monitor calls it so.
                    Some(documented @ 1..) if settings.view.text("ResponseCount").is_none() => documented,
                    _ => count("ResponseCount", findings)?,
                },
                window: window(findings),
                paths: paths(),
            },
            "eventcounter" | "eventmeter" => {
                let is_meter = kind == "eventmeter";
                let names =
                    if is_meter { ("MeterName", "InstrumentName") } else { ("ProviderName", "CounterName") };
                let percentile = percentile(&settings, findings);
                let (greater_than, less_than) = bounds(&settings, None, findings);
                Trigger::Counter(CounterTrigger {
                    source: if is_meter { CounterSource::Meter } else { CounterSource::EventCounters },
                    provider: settings.view.owned(names.0)?,
                    counter: settings.view.owned(names.1)?,
                    greater_than,
                    less_than,
                    percentile,
                    window: window(findings),
                })
            }
            "cpuusage" | "gcheapsize" | "threadpoolqueuelength" => {
                let (counter, usual) = match kind.as_str() {
                    "cpuusage" => ("cpu-usage", 50.0),
                    "gcheapsize" => ("gc-heap-size", 10.0),
                    _ => ("threadpool-queue-length", 200.0),
                };
                let (greater_than, less_than) = bounds(&settings, Some(usual), findings);
                Trigger::Counter(CounterTrigger {
                    source: CounterSource::EventCounters,
                    provider: "System.Runtime".to_owned(),
                    counter: counter.to_owned(),
                    greater_than,
                    less_than,
                    percentile: None,
                    window: window(findings),
                })
            }
            "condition" => condition(&settings, findings)?,
            // Reported by the check of the shape.
            _ => return None,
        })
    }

    fn actions(&self, rule: &Section<'c>, trigger: Option<&Trigger>, findings: &mut Findings) -> Vec<Action> {
        let mut actions: Vec<Action> = Vec::new();
        for item in rule.items("Actions") {
            let Some(item) = self.resolve(item, "CollectionRuleActions", findings) else { continue };
            let name = item.view.owned("Name");
            if let Some(name) = &name
                && actions.iter().any(|action| action.name.as_ref() == Some(name))
            {
                let message = format!("another action of the rule is called {name:?}");
                item.get("Name").error(findings, message, None);
            }
            let Some(mut kind) = self.action_kind(&item, findings) else { continue };
            if matches!(kind, ActionKind::LoadProfiler { .. })
                && trigger.is_some_and(|trigger| *trigger != Trigger::Startup)
            {
                let message = "a profiler is loaded at the start of a process only";
                item.error(findings, message, Some("use the trigger Startup".to_owned()));
            }
            check_placeholders(&mut kind, &item, &actions, findings);
            let wait_for_completion = item.view.boolean("WaitForCompletion").unwrap_or(false);
            actions.push(Action { name, kind, wait_for_completion });
        }
        actions
    }

    fn destination(
        &self,
        settings: &Section<'c>,
        action: &Section<'c>,
        findings: &mut Findings,
    ) -> Destination {
        let default = self.defaults.get("Actions");
        let name = settings.view.owned("ArtifactName");
        let (egress, place) = match (settings.view.owned("Egress"), default.owned("Egress")) {
            (Some(egress), _) => (egress, settings.get("Egress")),
            (None, Some(egress)) => {
                let path = "CollectionRuleDefaults:Actions:Egress".to_owned();
                (egress, Section { view: default.get("Egress"), path })
            }
            (None, None) => {
                let place = if settings.view.0.is_some() { settings } else { action };
                let help =
                    "add \"Egress\": the name of a provider, or set CollectionRuleDefaults:Actions:Egress";
                place.error(findings, "Egress is missing", Some(help.to_owned()));
                return Destination { egress: String::new(), name };
            }
        };
        match self.egress.get(&egress) {
            Some(EgressProvider::FileSystem(_) | EgressProvider::Store(_)) => {}
            Some(EgressProvider::Unsupported(kind)) => findings.add(
                Severity::Unsupported,
                place.view.location(),
                &place.path,
                format!("{egress:?} is of {kind}, which is not supported: the rule is not run"),
                Some("use a provider of Egress:FileSystem, or dipc-fleet monitor".to_owned()),
            ),
            // The providers of the whole configuration are not known.
            None if findings.is_part => {}
            None => {
                let help = nearest(&egress, self.egress.keys().map(String::as_str)).map_or_else(
                    || format!("add Egress:FileSystem:{egress} with a DirectoryPath"),
                    |name| format!("did you mean {name}?"),
                );
                place.error(findings, format!("no egress provider is called {egress:?}"), Some(help));
            }
        }
        Destination { egress, name }
    }

    fn action_kind(&self, action: &Section<'c>, findings: &mut Findings) -> Option<ActionKind> {
        let kind = action.view.text("Type")?.to_lowercase();
        let section = action.get("Settings");
        let settings = section.view;
        let duration = |findings: &mut Findings| {
            Some(section.duration("Duration", ARTIFACT_DURATION, (SECOND, DAY), findings))
        };
        let mut stopping_event = None;
        let artifact = match kind.as_str() {
            "collectdump" => Artifact::Dump(match settings.one_of("Type", &["Full", "Mini", "Triage"]) {
                Some("Full") => DumpType::FULL,
                Some("Mini") => DumpType::NORMAL,
                Some("Triage") => DumpType::TRIAGE,
                _ => DumpType::WITH_HEAP,
            }),
            "collectgcdump" => Artifact::GcDump,
            "collectsnapshot" => Artifact::Snapshot,
            "collecttrace" => {
                let duration = duration(findings);
                let (trace, event) = trace(&section, action, duration, findings);
                stopping_event = event;
                Artifact::Trace(trace)
            }
            "collectlivemetrics" => Artifact::LiveMetrics(LiveMetricsRequest {
                selection: selection(&section, action, findings)?,
                interval: self.interval,
                duration: duration(findings),
            }),
            "collectlogs" => Artifact::Logs(logs(&section, duration(findings), findings)),
            "execute" => {
                return Some(ActionKind::Execute {
                    path: settings.owned("Path")?,
                    arguments: settings.owned("Arguments"),
                    ignore_exit_code: settings.boolean("IgnoreExitCode").unwrap_or(false),
                });
            }
            "loadprofiler" => {
                let clsid = settings.text("Clsid")?.trim().trim_matches(['{', '}']);
                return Some(ActionKind::LoadProfiler {
                    path: settings.owned("Path")?,
                    clsid: Uuid::try_parse(clsid).ok()?,
                });
            }
            "setenvironmentvariable" => {
                return Some(ActionKind::SetEnvironmentVariable {
                    name: settings.owned("Name")?,
                    value: settings.owned("Value"),
                });
            }
            "getenvironmentvariable" => {
                return Some(ActionKind::GetEnvironmentVariable { name: settings.owned("Name")? });
            }
            "collectstacks" => {
                Artifact::Stacks(match settings.one_of("Format", &["PlainText", "Speedscope"]) {
                    Some("PlainText") => StackFormat::PlainText,
                    Some(_) => StackFormat::Speedscope,
                    None => StackFormat::Json,
                })
            }
            "collectexceptions" => Artifact::Exceptions(exceptions(&section, duration(findings))),
            // Reported by the check of the shape.
            _ => return None,
        };
        let destination = self.destination(&section, action, findings);
        if let Some(EgressProvider::Store(store)) = self.egress.get(&destination.egress)
            && !store.takes(artifact.kind())
        {
            let message = format!("{:?} is a data set, which takes recordings only", destination.egress);
            let help = Some("use it for CollectTrace and CollectSnapshot".to_owned());
            action.error(findings, message, help);
        }
        Some(ActionKind::Collect { artifact, destination, stopping_event })
    }
}

/// Returns true if a path has errors below it.
fn errors_of(findings: &Findings, path: &str, prefix: &str) -> bool {
    let is_of = |key: &str| {
        key.eq_ignore_ascii_case(path)
            || key.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    findings.list.iter().any(|finding| finding.severity == Severity::Error && is_of(&finding.key))
}

/// A condition of the language of events and of values of the system.
fn condition(settings: &Section<'_>, findings: &mut Findings) -> Option<Trigger> {
    let text = settings.view.owned("Condition")?;
    let section = settings.get("Condition");
    match Condition::parse_for_rules(&text) {
        Ok(condition) => {
            if !cfg!(target_os = "linux") && condition.system_values().next().is_some() {
                let message = "memory and processor time of the system are read on Linux only".to_owned();
                let location = section.view.location();
                findings.add(Severity::Unsupported, location, &section.path, message, None);
            }
            Some(Trigger::Condition { text, condition })
        }
        Err(error) => {
            let help = "'dipc help attach' and 'dipc help dotnet-trace' show the language";
            section.error(findings, format!("not a condition: {error}"), Some(help.to_owned()));
            None
        }
    }
}

/// The bounds of a counter. `usual` is the default of the upper one.
fn bounds(settings: &Section<'_>, usual: Option<f64>, findings: &mut Findings) -> (Option<f64>, Option<f64>) {
    let less = settings.view.number("LessThan");
    let greater = settings.view.number("GreaterThan").or_else(|| usual.filter(|_| less.is_none()));
    match (greater, less) {
        (None, None) => {
            let help = Some("add \"GreaterThan\", \"LessThan\", or both".to_owned());
            settings.error(findings, "the counter has no bound", help);
        }
        (Some(greater), Some(less)) if greater >= less => {
            let message = format!("no value is greater than {greater} and less than {less}");
            settings.error(findings, message, Some("exchange GreaterThan and LessThan".to_owned()));
        }
        _ => {}
    }
    (greater, less)
}

fn percentile(settings: &Section<'_>, findings: &mut Findings) -> Option<u16> {
    let percentile = settings.view.integer("HistogramPercentile")?;
    if ![50, 95, 99].contains(&percentile) {
        let message = format!("runtimes report no percentile {percentile}");
        settings.get("HistogramPercentile").error(findings, message, Some("choose 50, 95 or 99".to_owned()));
    }
    Some(percentile)
}

fn status_codes(settings: &Section<'_>, findings: &mut Findings) -> Vec<(u16, u16)> {
    let mut codes = Vec::new();
    for item in settings.items("StatusCodes") {
        let text = item.view.own_text().unwrap_or_default();
        if let Some(range) = parse_status_codes(text) {
            codes.push(range);
        } else {
            let help = Some("write \"500\", or \"400-499\"".to_owned());
            item.error(findings, format!("{text:?} is not a range of status codes"), help);
        }
    }
    codes
}

/// Reports placeholders without a value.
fn check_placeholders(
    kind: &mut ActionKind,
    action: &Section<'_>,
    earlier: &[Action],
    findings: &mut Findings,
) {
    let is_execute = matches!(kind, ActionKind::Execute { .. });
    let settings = action.get("Settings");
    let mut faults = Vec::new();
    kind.for_each_text(|text| {
        for name in placeholder::names(text) {
            if let Some(fault) = placeholder::fault(name, earlier, is_execute) {
                faults.push((name.to_owned(), fault));
            }
        }
    });
    for (name, help) in faults {
        settings.error(findings, format!("$({name}) is not a placeholder"), Some(help));
    }
}
