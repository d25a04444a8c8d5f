//! Parts of configurations, as documentation shows them: a rule, a trigger, the settings of an action.

use super::finding::Findings;
use super::model::CheckedConfiguration;
use super::schema;
use super::shape::{self, Object, Shape};
use super::tree::Node;

/// Reads a whole configuration, or the part that it looks like.
pub(crate) fn read(root: Node, mut findings: Findings) -> CheckedConfiguration {
    match part_of(&root) {
        None => super::check(&root, findings),
        Some(Part::Rules) => {
            findings.is_part = true;
            let whole = below(root, &["CollectionRules"]);
            CheckedConfiguration {
                fragment_of: Some("CollectionRules".to_owned()),
                ..super::check(&whole, findings)
            }
        }
        Some(Part::Rule) => {
            findings.is_part = true;
            let whole = below(root, &["CollectionRules", "Rule"]);
            CheckedConfiguration {
                fragment_of: Some("CollectionRules:Rule".to_owned()),
                ..super::check(&whole, findings)
            }
        }
        Some(Part::Settings(name, settings)) => {
            shape::check(&root, &Shape::Object(settings), "", &mut findings);
            let Findings { list, left_out, .. } = findings;
            let fragment_of = Some(format!("CollectionRules:Rule:Actions:0:Settings ({name})"));
            CheckedConfiguration { findings: list, left_out, fragment_of, ..CheckedConfiguration::default() }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Part {
    /// Rules by name.
    Rules,
    /// A rule without its name.
    Rule,
    /// The settings of an action.
    Settings(&'static str, &'static Object),
}

/// Returns the part that a tree looks like; `None` for a whole configuration.
fn part_of(root: &Node) -> Option<Part> {
    let is_rule = |node: &Node| node.get("Trigger").is_some();
    if is_rule(root) {
        return Some(Part::Rule);
    }
    if root.has_children() && root.children().all(is_rule) {
        return Some(Part::Rules);
    }
    // A section of a configuration is an object, but for the diagnostic port.
    let is_section = |node: &Node| {
        let known = schema::ROOT.get(&node.name);
        known.is_some_and(|known| node.value.is_none() || matches!(known.shape, Shape::TextOr(_)))
    };
    if root.children().any(is_section) {
        return None;
    }
    let score = |settings: &Object| root.children().filter(|node| settings.get(&node.name).is_some()).count();
    let actions =
        schema::COLLECTION_RULE_ACTIONS.iter().filter_map(|action| Some((action.name, action.settings?)));
    // Among equal scores the first action in schema order wins.
    let (name, settings) = actions.rev().max_by_key(|(_, settings)| score(settings))?;
    (score(settings) > 0).then_some(Part::Settings(name, settings))
}

/// Returns a tree with `node` at a path.
fn below(mut node: Node, path: &[&str]) -> Node {
    let location = node.location;
    for name in path.iter().rev() {
        let mut parent = Node::new("", location);
        (*name).clone_into(&mut node.name);
        parent.set(node);
        node = parent;
    }
    node
}
