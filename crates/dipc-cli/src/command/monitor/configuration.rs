//! The configuration of `dipc monitor`: its sources, what is refused, and its changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dipc_monitor::configuration::{
    CheckedConfiguration, Configuration, ConfigurationSources, Finding, Severity,
};
use dipc_monitor::{
    EgressQueue, ListenAddress, Metrics, Monitor, Operations, Retention, RuleMessage, Rules, RulesConfig,
    Server, Tokens,
};

use super::MonitorArgs;
use super::file_watch::{FileWatch, states};
use crate::exit::Failure;
use crate::http::host_name;
use crate::render::escape::escape_controls;
use crate::render::messages;

/// The address of the metrics, if none is chosen.
const METRICS: &str = "http://127.0.0.1:52325";

/// The sources of a configuration.
pub(super) struct Source {
    file: Option<PathBuf>,
    has_system: bool,
    /// Limits on the artifacts of egress directories, which are options.
    retention: Retention,
}

impl Source {
    pub(super) fn new(file: Option<&Path>, has_system: bool, retention: Retention) -> Self {
        Self { file: file.map(Path::to_path_buf), has_system, retention }
    }

    fn sources(&self) -> ConfigurationSources {
        let sources = if self.has_system {
            ConfigurationSources::of_system(std::env::vars_os())
        } else {
            ConfigurationSources::new()
        };
        match &self.file {
            Some(file) => sources.with_file(file),
            None => sources,
        }
    }

    /// Reads the configuration. Parts that are not supported are warnings, except in rules.
    ///
    /// # Errors
    /// If it has errors, or rules that cannot be run.
    pub(super) fn read(&self) -> Result<Configuration, Failure> {
        let checked = Configuration::read(&self.sources());
        let refused = refusals(&checked);
        if refused.is_empty() && checked.left_out == 0 {
            for finding in checked.findings.iter().filter(|it| is_said(it)) {
                messages::warning(escape_controls(&finding.to_string()));
            }
            let mut configuration = checked.configuration;
            configuration.set_retention(self.retention);
            return Ok(configuration);
        }
        let lines = refused.iter().map(|finding| {
            let help = finding.help.as_ref().map(|help| format!(" ({help})"));
            format!("{}: {finding}{}", finding.severity.name(), help.unwrap_or_default())
        });
        let file = self.file.as_ref().map_or_else(|| "FILE".to_owned(), |file| file.display().to_string());
        let system = if self.has_system { "--system " } else { "" };
        Err(Failure::usage("monitor: the configuration cannot be used")
            .with_candidates(lines.collect())
            .with_help(format_args!("'dipc monitor check {system}{file}' shows all of it")))
    }
}

/// Whether a monitor that starts warns of a finding: of what is not supported, and of settings of destinations that
/// have no effect on what arrives there.
fn is_said(finding: &Finding) -> bool {
    let keys = finding.key.to_ascii_lowercase();
    let is_of_artifacts = keys.starts_with("egress:") && !keys.ends_with(":copybuffersize");
    finding.severity == Severity::Unsupported || finding.severity == Severity::Ignored && is_of_artifacts
}

/// The findings with which a monitor does not start.
fn refusals(checked: &CheckedConfiguration) -> Vec<&Finding> {
    let is_of_rules = |finding: &Finding| {
        let section = finding.key.split(':').next().unwrap_or_default();
        ["CollectionRules", "CollectionRuleDefaults", "Templates"]
            .iter()
            .any(|name| name.eq_ignore_ascii_case(section))
    };
    let is_refused = |finding: &&Finding| match finding.severity {
        Severity::Error => true,
        Severity::Unsupported => is_of_rules(finding),
        Severity::Ignored => false,
    };
    checked.findings.iter().filter(is_refused).collect()
}

/// Creates the state of the rules, whose messages are printed.
pub(super) fn rules(
    configuration: &Configuration,
    operations: &Operations,
    queue: Option<EgressQueue>,
) -> Arc<Rules> {
    let log = |message: &RuleMessage| {
        messages::note(escape_controls(&message.to_string()));
    };
    let rules = Rules::new(RulesConfig::of(configuration), operations.clone(), host_name(), Arc::new(log));
    Arc::new(rules.with_queue(queue))
}

/// The addresses of the metrics, as the configuration has them.
pub(super) fn metric_addresses(configuration: &Configuration) -> Result<Vec<ListenAddress>, Failure> {
    let endpoints = &configuration.metrics.endpoints;
    let usual = [METRICS.to_owned()];
    let list = if endpoints.is_empty() { &usual[..] } else { endpoints };
    let parse = |address: &String| {
        address.parse::<ListenAddress>().map_err(|error| {
            Failure::usage(format_args!("monitor: Metrics:Endpoints: {}: {error}", escape_controls(address)))
        })
    };
    list.iter().map(parse).collect()
}

/// The parts of a running monitor that follow its configuration.
pub(super) struct Running<'r> {
    pub(super) args: &'r MonitorArgs,
    pub(super) rules: &'r Rules,
    pub(super) queue: Option<&'r EgressQueue>,
    pub(super) metrics: Option<&'r Metrics>,
    pub(super) server: &'r Server,
    pub(super) monitor: &'r Monitor,
    /// Whether black boxes, or the export, have counters of their own.
    pub(super) has_bundles: bool,
    pub(super) has_export: bool,
}

impl Running<'_> {
    /// Applies a configuration. Returns the parts of it that differ from `started`, and need a restart.
    ///
    /// # Errors
    /// If a counter's name cannot be requested. Then nothing has changed.
    fn apply(
        &self,
        configuration: &Configuration,
        started: &Configuration,
    ) -> Result<Vec<&'static str>, Failure> {
        let counters = super::metrics(self.args, configuration)?;
        let mut later = later_sections(self.args, configuration, started);
        match (self.metrics, counters) {
            (Some(metrics), Some(counters)) => {
                if super::metrics(self.args, started)?.as_ref() != Some(&counters) {
                    later.extend(self.has_bundles.then_some("the counters of bundles"));
                    later.extend(self.has_export.then_some("the counters of --otlp"));
                }
                metrics.set_config(counters, &self.monitor.processes());
            }
            (None, None) => {}
            _ => later.push("Metrics"),
        }
        self.rules.replace(RulesConfig::of(configuration));
        self.server.set_default_process(super::default_process(self.args, configuration));
        self.server.set_counter_interval(super::counter_interval(self.args, configuration));
        match self.queue {
            Some(queue) => queue.set_providers(configuration.egress.clone()),
            None if configuration.egress.is_empty() => {}
            None => later.push("Egress"),
        }
        Ok(later)
    }
}

/// The sections that differ, and apply to a monitor from its start on.
fn later_sections(args: &MonitorArgs, new: &Configuration, started: &Configuration) -> Vec<&'static str> {
    let differences = [
        ("DiagnosticPort", args.diagnostic_port.is_none() && new.diagnostic_port != started.diagnostic_port),
        ("Storage", new.storage != started.storage),
        (
            "Metrics:Endpoints",
            args.metric_urls.is_empty() && new.metrics.endpoints != started.metrics.endpoints,
        ),
    ];
    differences.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}

/// Looks for changes of the files.
pub(super) struct Changes {
    source: Source,
    /// The tokens whose API key follows the configuration.
    tokens: Option<Tokens>,
    /// The configuration that the monitor was started with.
    started: Configuration,
    watch: FileWatch,
}

impl Changes {
    pub(super) fn new(source: Source, tokens: Option<Tokens>, started: Configuration) -> Self {
        Self { watch: FileWatch::new(states(source.sources().paths())), source, tokens, started }
    }

    /// Applies the configuration when a file has changed, or when it is asked to. With errors everything stays
    /// the same.
    pub(super) fn apply(&mut self, running: &Running<'_>, is_asked: bool) {
        if !self.watch.is_due(|| states(self.source.sources().paths()), is_asked) {
            return;
        }
        let applied = self.source.read().and_then(|configuration| {
            let later = running.apply(&configuration, &self.started)?;
            Ok((configuration, later))
        });
        match applied {
            Ok((configuration, later)) => {
                if let Some(tokens) = &self.tokens {
                    tokens.set_api_key(super::usable_api_key(&configuration));
                }
                messages::note(format_args!(
                    "The configuration was read again: {} rules; {}",
                    configuration.rules.len(),
                    if later.is_empty() {
                        "all of it applies".to_owned()
                    } else {
                        format!("after a restart: {}", later.join(", "))
                    }
                ));
            }
            Err(failure) => {
                messages::warning(&failure);
                for line in &failure.candidates {
                    messages::note(escape_controls(line));
                }
                messages::help("everything stays as it was until the configuration can be used");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_destinations_without_effect_are_said_at_the_start() {
        let said = |text: &str| {
            let checked = Configuration::read(&ConfigurationSources::new().with_text("test", text));
            checked.findings.iter().any(is_said)
        };
        let files = |key: &str| {
            format!(r#"{{"Egress": {{"FileSystem": {{"a": {{"DirectoryPath": "/a", {key}}}}}}}}}"#)
        };
        let s3 = |key: &str| {
            format!(
                r#"{{"Egress": {{"S3Storage": {{"a": {{"BucketName": "b", "RegionName": "c", {key}}}}}}}}}"#
            )
        };
        assert!(!said(&files(r#""CopyBufferSize": 7"#)) && !said(r#"{"Metrics": {"MetricCount": 3}}"#));
        for key in [r#""AwsProfileName": "p""#, r#""PreSignedUrlExpiry": "01:00:00""#] {
            assert!(said(&s3(key)), "{key}");
        }
        let plain = said(&s3(r#""ForcePathStyle": false"#));
        assert_eq!(plain, !cfg!(feature = "cloud"), "without stores, all of it is not supported");
    }
}
