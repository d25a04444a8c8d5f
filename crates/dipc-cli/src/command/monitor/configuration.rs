//! The configuration of `dipc monitor`: its sources, rejected settings, and changes.

use std::path::PathBuf;
use std::sync::Arc;

use dipc_monitor::configuration::{
    CheckedConfiguration, Configuration, ConfigurationSources, Finding, Severity,
};
use dipc_monitor::{
    ContinuousProfile, EgressQueue, ListenAddress, Metrics, Monitor, Operations, Retention, RuleMessage,
    Rules, RulesConfig, Server, Tokens,
};

use super::MonitorArgs;
use super::file_watch::{FileWatch, states};
use crate::exit::Failure;
use crate::http::host_name;
use crate::render::escape::escape_controls;
use crate::render::messages;

/// The default address of the metrics.
const METRICS: &str = "http://127.0.0.1:52325";

/// The sources of a configuration.
pub(super) struct Source {
    file: Option<PathBuf>,
    has_system: bool,
    /// Limits on the artifacts of egress directories, which are options.
    retention: Retention,
    /// True if options say who has access: tokens, or everyone.
    has_access_option: bool,
}

impl Source {
    /// Returns the sources that the options name; `None` without such options.
    pub(super) fn new(args: &MonitorArgs) -> Option<Self> {
        let file = args.configuration_file_path.clone();
        (args.system || file.is_some()).then(|| Self {
            file,
            has_system: args.system,
            retention: args.artifacts.retention(),
            has_access_option: args.token_file.is_some() || args.temp_api_key || args.no_auth,
        })
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

    /// Reads the configuration. Parts that are not supported are warnings, except in rules and where they
    /// limit access.
    ///
    /// # Errors
    /// If it has errors, rules that cannot be run, or limits of access that would not hold.
    pub(super) fn read(&self) -> Result<Configuration, Failure> {
        let checked = Configuration::read(&self.sources());
        let refused = refusals(&checked, self.has_access_option);
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
        let failure =
            Failure::usage("monitor: the configuration cannot be used").with_candidates(lines.collect());
        Err(if refused.iter().any(|finding| is_unsupported_access(finding)) {
            failure.with_help(
                "--token-file names a file of tokens to use instead, --temp-api-key makes one, --no-auth lets \
                 everyone in",
            )
        } else {
            failure.with_help(format_args!("'dipc monitor check {system}{file}' shows all of it"))
        })
    }
}

/// Returns true if a starting monitor warns of a finding. It does so for unsupported settings, and for
/// ignored settings of destinations, except `copyBufferSize`, which does not change artifacts.
fn is_said(finding: &Finding) -> bool {
    let keys = finding.key.to_ascii_lowercase();
    let is_of_artifacts = keys.starts_with("egress:") && !keys.ends_with(":copybuffersize");
    finding.severity == Severity::Unsupported || finding.severity == Severity::Ignored && is_of_artifacts
}

/// Returns true if a finding belongs to any of the sections.
fn is_of(finding: &Finding, sections: &[&str]) -> bool {
    let section = finding.key.split(':').next().unwrap_or_default();
    sections.iter().any(|name| name.eq_ignore_ascii_case(section))
}

/// Returns true if the configuration limits access in a way that this program does not have: without it,
/// everyone who can connect would have dumps.
fn is_unsupported_access(finding: &Finding) -> bool {
    finding.severity == Severity::Unsupported && is_of(finding, &["Authentication"])
}

/// The findings that keep a monitor from starting. `has_access_option` is true if options say who has access,
/// whatever the configuration asks for.
fn refusals(checked: &CheckedConfiguration, has_access_option: bool) -> Vec<&Finding> {
    let is_refused = |finding: &&Finding| match finding.severity {
        Severity::Error => true,
        Severity::Unsupported => {
            is_of(finding, &["CollectionRules", "CollectionRuleDefaults", "Templates"])
                || !has_access_option && is_unsupported_access(finding)
        }
        Severity::Ignored => false,
    };
    checked.findings.iter().filter(is_refused).collect()
}

/// Creates the state of the rules, and prints their messages.
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
    pub(super) profile: Option<&'r ContinuousProfile>,
    /// True if black boxes, or the export, have counters of their own.
    pub(super) has_bundles: bool,
    pub(super) has_export: bool,
}

impl Running<'_> {
    /// Applies a configuration. Returns the parts of it that differ from `started`, and need a restart.
    ///
    /// # Errors
    /// If a counter's name cannot be requested, or the directory of samples not be used. Then nothing has
    /// changed.
    fn apply(
        &self,
        configuration: &Configuration,
        started: &Configuration,
    ) -> Result<Vec<&'static str>, Failure> {
        let counters = super::metrics(self.args, configuration)?;
        if let Some(profile) = self.profile {
            let configured = &configuration.continuous_profiling;
            super::profile::apply(profile, &self.args.profile, configured, &self.args.filters)?;
        }
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
    /// The tokens; their API key follows the configuration.
    tokens: Option<Tokens>,
    /// The configuration that the monitor was started with.
    started: Configuration,
    watch: FileWatch,
}

impl Changes {
    pub(super) fn new(source: Source, tokens: Option<Tokens>, started: Configuration) -> Self {
        Self { watch: FileWatch::new(states(source.sources().paths())), source, tokens, started }
    }

    /// Applies the configuration when a file has changed, or when it is asked to. With errors everything
    /// stays the same.
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
    fn rejects_unsupported_access_control_without_an_explicit_option() {
        let azure =
            r#"{"Authentication": {"AzureAd": {"TenantId": "t", "ClientId": "c", "RequiredRole": "r"}}}"#;
        let key = r#"{"authentication": {"monitorapikey": {"Subject": "s", "PublicKey":
            "eyJrdHkiOiJFQyIsImNydiI6IlAtMjU2IiwieCI6IkFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUEiLCJ5IjoiQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQSJ9"}}}"#;
        let cors = r#"{"CorsConfiguration": {"AllowedOrigins": "https://a"}}"#;
        let refused = |text: &str, has_access_option| {
            let checked = Configuration::read(&ConfigurationSources::new().with_text("test", text));
            let refused: Vec<_> =
                refusals(&checked, has_access_option).iter().map(|finding| finding.key.clone()).collect();
            refused.join(" ")
        };
        assert_eq!(refused(azure, false), "Authentication:AzureAd");
        assert_eq!(refused(azure, true), "");
        // The program with ciphers checks its tokens.
        let refused_key = if cfg!(feature = "cloud") { "" } else { "authentication:monitorapikey" };
        assert_eq!((&*refused(key, false), &*refused(key, true)), (refused_key, ""));
        // Other origins have less access than they ask for.
        assert_eq!(refused(cors, false), "");
    }

    #[test]
    fn reports_ignored_destination_settings_at_the_start() {
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
