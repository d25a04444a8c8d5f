//! `dipc monitor check`: a dry run on a configuration.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use dipc_monitor::configuration::{
    CheckedConfiguration, Configuration, ConfigurationSources, ConnectionMode, EgressProvider, Severity,
    format_time_span,
};
use dipc_monitor::rules::Rule;
use dipc_monitor::{Filter, FilterKey, MatchType};
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::{Exit, Outcome};
use crate::render::escape::escape_controls;
use crate::render::output;
use crate::render::table::{Align, Columns};

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The configuration in dotnet-monitor's JSON, or a part of one, such as a rule
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Merge the file with the settings of the system, as dotnet-monitor does
    #[arg(long)]
    system: bool,
    /// Format of the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(args: &CheckArgs) -> Outcome {
    let checked = if args.system {
        Configuration::read(&ConfigurationSources::of_system(std::env::vars_os()).with_file(&args.file))
    } else {
        Configuration::read_part(&ConfigurationSources::new().with_file(&args.file))
    };
    match args.format {
        Format::Json => output::print_json(&Report::of(&checked))?,
        Format::Table => output::print(table(&checked))?,
    }
    let is_fine = checked.findings.iter().all(|finding| finding.severity == Severity::Ignored);
    Ok(if is_fine { Exit::Done } else { Exit::Failed })
}

#[derive(Debug, Serialize)]
struct Report {
    /// The section that the file is a part of; null for a whole configuration.
    part_of: Option<String>,
    rules: Vec<RuleReport>,
    /// The names of the rules with errors.
    unusable_rules: Vec<String>,
    egress: Vec<EgressReport>,
    diagnostic_port: PortReport,
    metrics: MetricsReport,
    default_process: Vec<String>,
    counter_interval_seconds: f64,
    findings: Vec<FindingReport>,
    /// Findings beyond the first thousand.
    findings_left_out: u64,
}

#[derive(Debug, Serialize)]
struct RuleReport {
    name: String,
    filters: Vec<String>,
    trigger: String,
    actions: Vec<ActionReport>,
    action_count: u32,
    action_count_window_seconds: Option<f64>,
    rule_duration_seconds: Option<f64>,
}

#[derive(Debug, Serialize)]
struct ActionReport {
    name: Option<String>,
    r#type: &'static str,
    egress: Option<String>,
    wait_for_completion: bool,
}

#[derive(Debug, Serialize)]
struct EgressReport {
    name: String,
    kind: &'static str,
    supported: bool,
    directory: Option<String>,
}

#[derive(Debug, Serialize)]
struct PortReport {
    mode: &'static str,
    endpoint: Option<String>,
}

#[derive(Debug, Serialize)]
struct MetricsReport {
    enabled: bool,
    endpoints: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FindingReport {
    severity: &'static str,
    source: String,
    line: Option<u32>,
    column: Option<u32>,
    key: String,
    message: String,
    help: Option<String>,
}

impl Report {
    fn of(checked: &CheckedConfiguration) -> Self {
        let configuration = &checked.configuration;
        Self {
            part_of: checked.fragment_of.clone(),
            rules: configuration.rules.iter().map(RuleReport::of).collect(),
            unusable_rules: configuration.unusable_rules.clone(),
            egress: configuration.egress.iter().map(EgressReport::of).collect(),
            diagnostic_port: PortReport {
                mode: mode(configuration.diagnostic_port.mode),
                endpoint: configuration.diagnostic_port.endpoint.clone(),
            },
            metrics: MetricsReport {
                enabled: configuration.metrics.enabled,
                endpoints: configuration.metrics.endpoints.clone(),
            },
            default_process: configuration.default_process.iter().map(filter).collect(),
            counter_interval_seconds: configuration.global_counter.interval.as_secs_f64(),
            findings: checked
                .findings
                .iter()
                .map(|finding| FindingReport {
                    severity: finding.severity.name(),
                    source: finding.source.to_string(),
                    line: Some(finding.location.line).filter(|line| *line > 0),
                    column: Some(finding.location.column).filter(|column| *column > 0),
                    key: finding.key.clone(),
                    message: finding.message.clone(),
                    help: finding.help.clone(),
                })
                .collect(),
            findings_left_out: checked.left_out,
        }
    }
}

impl RuleReport {
    fn of(rule: &Rule) -> Self {
        Self {
            name: rule.name.clone(),
            filters: rule.filters.iter().map(filter).collect(),
            trigger: rule.trigger.to_string(),
            actions: rule
                .actions
                .iter()
                .map(|action| ActionReport {
                    name: action.name.clone(),
                    r#type: action.kind.type_name(),
                    egress: action.kind.destination().map(|destination| destination.egress.clone()),
                    wait_for_completion: action.wait_for_completion,
                })
                .collect(),
            action_count: rule.limits.action_count,
            action_count_window_seconds: rule.limits.action_count_window.map(|window| window.as_secs_f64()),
            rule_duration_seconds: rule.limits.rule_duration.map(|duration| duration.as_secs_f64()),
        }
    }
}

impl EgressReport {
    fn of((name, provider): (&String, &EgressProvider)) -> Self {
        let (kind, directory) = match provider {
            EgressProvider::FileSystem(files) => ("FileSystem", Some(files.directory.display().to_string())),
            EgressProvider::Store(store) => {
                (store.kind(), Some(store.address("").trim_end_matches('/').to_owned()))
            }
            EgressProvider::Unsupported(kind) => (*kind, None),
            _ => ("", None),
        };
        Self { name: name.clone(), kind, supported: directory.is_some(), directory }
    }
}

const fn mode(mode: ConnectionMode) -> &'static str {
    match mode {
        ConnectionMode::Connect => "Connect",
        ConnectionMode::Listen => "Listen",
    }
}

fn filter(filter: &Filter) -> String {
    let key = match filter.key {
        FilterKey::ProcessId => "ProcessId",
        FilterKey::ProcessName => "ProcessName",
        FilterKey::CommandLine => "CommandLine",
        FilterKey::ManagedEntryPointAssemblyName => "ManagedEntryPointAssemblyName",
    };
    let sign = if filter.match_type == MatchType::Exact { "=" } else { "~=" };
    format!("{key}{sign}{}", filter.value)
}

fn table(checked: &CheckedConfiguration) -> String {
    let configuration = &checked.configuration;
    let mut lines = Vec::new();
    if let Some(part) = &checked.fragment_of {
        lines.push(format!("Read as a part of {}", escape_controls(part)));
    }
    if !configuration.rules.is_empty() {
        let mut columns = Columns::new([
            ("RULE", Align::Left),
            ("PROCESSES", Align::Left),
            ("TRIGGER", Align::Left),
            ("ACTIONS", Align::Left),
            ("LIMITS", Align::Left),
        ]);
        for rule in &configuration.rules {
            let filters: Vec<_> = rule.filters.iter().map(filter).collect();
            let actions: Vec<_> = rule.actions.iter().map(|action| action.kind.to_string()).collect();
            let filters = if filters.is_empty() { "all".to_owned() } else { filters.join(" and ") };
            let texts = [
                &rule.name,
                &filters,
                &rule.trigger.to_string(),
                &actions.join(", "),
                &rule.limits.to_string(),
            ];
            columns.row(texts.map(|text| escape_controls(text).into_owned()));
        }
        lines.push(columns.fitted(&[]).trim_end().to_owned());
    }
    if !configuration.egress.is_empty() {
        let mut columns =
            Columns::new([("EGRESS", Align::Left), ("KIND", Align::Left), ("DIRECTORY", Align::Left)]);
        for provider in &configuration.egress {
            let EgressReport { name, kind, directory, .. } = EgressReport::of(provider);
            let directory = directory.unwrap_or_else(|| "not supported".to_owned());
            let texts = [&*name, kind, &directory];
            columns.row(texts.map(|text| escape_controls(text).into_owned()));
        }
        lines.push(columns.fitted(&[]).trim_end().to_owned());
    }
    if checked.fragment_of.is_none() {
        let port = &configuration.diagnostic_port;
        let endpoint = port.endpoint.as_deref().map(|endpoint| format!(" at {}", escape_controls(endpoint)));
        lines.push(format!(
            "Runtimes: {}{}; counters every {}",
            mode(port.mode),
            endpoint.unwrap_or_default(),
            format_time_span(configuration.global_counter.interval)
        ));
    }
    // Writing into a `String` does not fail.
    let mut findings = String::new();
    for finding in &checked.findings {
        let text = finding.to_string();
        let _ = writeln!(findings, "{}: {}", finding.severity.name(), escape_controls(&text));
        if let Some(help) = &finding.help {
            let _ = writeln!(findings, "help: {}", escape_controls(help));
        }
    }
    if checked.left_out > 0 {
        let _ = writeln!(findings, "{} more findings", checked.left_out);
    }
    let count = |severity| checked.findings.iter().filter(|finding| finding.severity == severity).count();
    let _ = writeln!(
        findings,
        "{} rules usable, {} not; {} errors, {} parts unsupported, {} ignored",
        configuration.rules.len(),
        configuration.unusable_rules.len(),
        count(Severity::Error),
        count(Severity::Unsupported),
        count(Severity::Ignored)
    );
    lines.push(findings);
    lines.join("\n\n")
}
