//! TOML settings, which become the same tree as JSON ones.

use toml::de::{DeTable, DeValue};

use super::finding::Findings;
use super::json::{DEEPEST, Lines, join};
use super::tree::Node;

/// Merges a TOML text into a tree. Faults are added to the findings; a text that is not TOML adds nothing to
/// the tree.
pub(crate) fn merge(text: &str, source: u32, root: &mut Node, findings: &mut Findings) {
    let lines = Lines::new(text, source);
    match DeTable::parse(text) {
        Ok(table) => add_table(table.get_ref(), "", root, &lines, findings),
        Err(error) => {
            let location = lines.location(error.span().map_or(0, |span| span.start));
            findings.error(location, "", format!("not TOML: {}", error.message()), None);
        }
    }
}

fn add_table(table: &DeTable<'_>, path: &str, node: &mut Node, lines: &Lines<'_>, findings: &mut Findings) {
    // In the order of the file, so that messages and rules are, too.
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    let mut seen = std::collections::HashSet::new();
    for (name, value) in entries {
        let location = lines.location(name.span().start);
        let path = join(path, name.get_ref());
        if !seen.insert(name.get_ref().to_lowercase()) {
            let help = "remove one of them; keys are compared without regard to case".to_owned();
            findings.error(location, &path, "the key is written twice in one table".to_owned(), Some(help));
            continue;
        }
        add(
            value.get_ref(),
            value.span().start,
            &path,
            node.child(name.get_ref(), location),
            lines,
            findings,
        );
    }
}

/// Adds a value below a node. The parser bounds the depth of values, and [`DEEPEST`] that of keys.
fn add(
    value: &DeValue<'_>,
    start: usize,
    path: &str,
    node: &mut Node,
    lines: &Lines<'_>,
    findings: &mut Findings,
) {
    if path.split(':').count() > DEEPEST {
        let message = format!("nested deeper than {DEEPEST} levels");
        findings.error(lines.location(start), "", message, None);
        return;
    }
    match value {
        DeValue::Table(table) => add_table(table, path, node, lines, findings),
        DeValue::Array(values) => {
            node.is_list = true;
            for (number, value) in values.iter().enumerate() {
                let (name, start) = (number.to_string(), value.span().start);
                let child = node.child(&name, lines.location(start));
                add(value.get_ref(), start, &join(path, &name), child, lines, findings);
            }
        }
        DeValue::String(text) => node.value = Some(text.clone().into_owned()),
        DeValue::Integer(number) => {
            let decimal = i64::from_str_radix(number.as_str(), number.radix());
            node.value =
                Some(decimal.map_or_else(|_| number.as_str().to_owned(), |number| number.to_string()));
        }
        DeValue::Float(number) => node.value = Some(number.as_str().to_owned()),
        DeValue::Boolean(value) => node.value = Some(value.to_string()),
        DeValue::Datetime(_) => {
            let help = Some("write it as text".to_owned());
            findings.error(lines.location(start), path, "no setting is a time".to_owned(), help);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::configuration::{Configuration, ConfigurationSources};
    use crate::rules::Trigger;

    const RULES: &str = r#"
# Destinations of artifacts.
[Egress.FileSystem.files]
DirectoryPath = "/var/dipc"

[CollectionRules.Crash]
Filters = [{ Key = "ProcessName", Value = "shop" }]
Trigger = { Type = "Condition", Settings = { Condition = "crash or exception OutOfMemoryException" } }
Actions = [{ Type = "CollectSnapshot", Settings = { Egress = "files" } }]
Limits.ActionCount = 0x2
"#;

    fn findings(text: &str) -> Vec<String> {
        let checked = Configuration::read(&ConfigurationSources::new().with_toml("f.toml", text));
        checked.findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_have_the_same_keys_as_in_json() {
        let checked = Configuration::read(&ConfigurationSources::new().with_toml("f.toml", RULES));
        assert_eq!(checked.findings, []);
        let rule = &checked.configuration.rules[0];
        assert_eq!((&*rule.name, rule.limits.action_count), ("Crash", 2));
        assert_eq!(rule.filters[0].value, "shop");
        let text = "crash or exception OutOfMemoryException";
        assert!(matches!(&rule.trigger, Trigger::Condition { text: found, .. } if found == text));
        assert_eq!(rule.actions[0].kind.type_name(), "CollectSnapshot");
    }

    #[test]
    fn faults_have_their_places() {
        let broken = RULES.replace("crash or", "crash of");
        let place = "f.toml:8:";
        let message = &findings(&broken)[0];
        assert!(message.starts_with(place) && message.contains("Condition"), "{message}");
        for (text, start) in [
            ("a = ", "f.toml:1:"),
            ("\n[Egres]\n", "f.toml:2:2: Egres: "),
            ("Metrics.Enabled = 2026-01-01\n", "f.toml:1:19: Metrics:Enabled: no setting is a time"),
            (
                "[Metrics]\nEnabled = true\nenabled = false\n",
                "f.toml:3:1: Metrics:enabled: the key is written",
            ),
        ] {
            let found = findings(text);
            assert!(found.iter().any(|message| message.starts_with(start)), "{text}: {found:?}");
        }
        let deep = format!("a = {}", "[".repeat(100_000));
        assert!(!findings(&deep).is_empty());
    }
}
