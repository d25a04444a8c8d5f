//! The configuration of `dipc monitor`: its sources, what is refused, and its changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dipc_monitor::configuration::{
    CheckedConfiguration, Configuration, ConfigurationSources, Finding, Severity,
};
use dipc_monitor::{
    EgressQueue, ListenAddress, Operations, Retention, RuleMessage, Rules, RulesConfig, Tokens,
};

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
            for finding in checked.findings.iter().filter(|it| it.severity == Severity::Unsupported) {
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

/// Looks for changes of the files.
pub(super) struct Changes {
    source: Source,
    /// The tokens whose API key follows the configuration.
    tokens: Option<Tokens>,
    watch: FileWatch,
}

impl Changes {
    pub(super) fn new(source: Source, tokens: Option<Tokens>) -> Self {
        Self { watch: FileWatch::new(states(source.sources().paths())), source, tokens }
    }

    /// Replaces the rules, the egress providers and the API key when a file has changed, or when it is asked
    /// to. With errors they stay the same.
    pub(super) fn apply(&mut self, rules: &Rules, queue: Option<&EgressQueue>, is_asked: bool) {
        if !self.watch.is_due(|| states(self.source.sources().paths()), is_asked) {
            return;
        }
        match self.source.read() {
            Ok(configuration) => {
                rules.replace(RulesConfig::of(&configuration));
                if let Some(tokens) = &self.tokens {
                    tokens.set_api_key(super::usable_api_key(&configuration));
                }
                if let Some(queue) = queue {
                    queue.set_providers(configuration.egress.clone());
                }
                messages::note(format_args!(
                    "The configuration was read again: {} rules; other settings apply after a restart",
                    configuration.rules.len()
                ));
            }
            Err(failure) => {
                messages::warning(&failure);
                for line in &failure.candidates {
                    messages::note(escape_controls(line));
                }
                messages::help("the rules stay as they were until the configuration can be used");
            }
        }
    }
}
