//! dotnet-monitor's configuration: JSON files, directories with a file per key, and environment variables,
//! merged in order of precedence, checked against its schema, and typed.
//!
//! There are a trigger (`Condition`) and an action (`CollectSnapshot`) that dotnet-monitor does not have.
//!
//! Keys ignore case. Unknown keys, wrong values and unsupported parts are [findings](Finding) with a place.

mod build;
mod filter;
mod finding;
mod fragment;
mod generated;
mod json;
mod model;
mod rule;
mod shape;
mod source;
mod store;
#[cfg(test)]
mod tests;
mod tree;
mod value;
mod view;

pub use finding::{Finding, Location, Severity};
pub use model::{
    CheckedConfiguration, Configuration, ConnectionMode, ContinuousProfiling, CounterGroup, DiagnosticPort,
    DirectoryEgress, EgressProvider, GlobalCounter, Metrics, SEGMENTS, Storage,
};
pub use source::ConfigurationSources;
pub use store::{AzureEgress, DataSetEgress, GoogleEgress, S3Egress, Secret, StoreEgress};
pub use value::format_time_span;

use finding::Findings;
use generated::schema;
use shape::Shape;
use tree::Node;

impl Configuration {
    /// Reads a configuration from its sources. Parts with errors are left out and reported.
    ///
    /// ```
    /// use dipc_monitor::configuration::{Configuration, ConfigurationSources, Severity};
    ///
    /// let text = r#"{ "Storage": { "DumpTempFolder": "/dumps" }, "Colour": 1 }"#;
    /// let checked = Configuration::read(&ConfigurationSources::new().with_text("settings.json", text));
    /// assert_eq!(checked.configuration.dump_folder(), Some("/dumps".into()));
    /// for finding in &checked.findings {
    ///     eprintln!("{}: {finding}", finding.severity.name());
    /// }
    /// assert!(checked.findings.iter().any(|finding| finding.key == "Colour"));
    /// ```
    pub fn read(sources: &ConfigurationSources) -> CheckedConfiguration {
        let mut findings = Findings::default();
        let root = sources.read(&mut findings);
        check(&root, findings)
    }

    /// Reads a configuration for a check: a file that is only a part of one, such as a single rule or the
    /// settings of an action, is read as that part.
    pub fn read_part(sources: &ConfigurationSources) -> CheckedConfiguration {
        let mut findings = Findings::default();
        let root = sources.read(&mut findings);
        fragment::read(root, findings)
    }
}

fn check(root: &Node, mut findings: Findings) -> CheckedConfiguration {
    shape::check(root, &Shape::Object(&schema::ROOT), "", &mut findings);
    let configuration = build::build(root, &mut findings);
    let Findings { mut list, left_out, .. } = findings;
    list.sort_by_key(|finding| (finding.location.source, finding.location.line, finding.location.column));
    list.dedup();
    CheckedConfiguration { configuration, findings: list, left_out, fragment_of: None }
}
