//! Tables of rules over a simulated clock. Expectations follow dotnet-monitor's documentation and the sources
//! of its triggers and pipeline.

mod limits;
mod recording;
mod simulation;
mod triggers;

use std::sync::Arc;

use super::Rule;
use crate::configuration::{Configuration, ConfigurationSources};

/// Reads a rule of dotnet-monitor's configuration, given its trigger and the other keys.
fn rule(trigger: &str, rest: &str) -> Arc<Rule> {
    let text = format!(r#"{{"CollectionRules": {{"R": {{"Trigger": {trigger} {rest}}}}}}}"#);
    let checked = Configuration::read(&ConfigurationSources::new().with_text("rule", &text));
    let [rule] = &checked.configuration.rules[..] else { panic!("{text}: {checked:?}") };
    Arc::new(rule.clone())
}
