//! Placeholders in the settings of actions: `$(Process.Name)`.

use std::collections::BTreeMap;

use super::action::{Action, ActionKind};

/// The placeholders that are the same for all actions of an execution.
pub(crate) const KNOWN: &[&str] = &[
    "Process.RuntimeId",
    "Process.ProcessId",
    "Process.Name",
    "Process.CommandLine",
    "Monitor.HostName",
    "Monitor.UnixTime",
];

/// Values of placeholders, by name.
#[derive(Debug, Clone, Default)]
pub struct Placeholders {
    values: BTreeMap<String, String>,
}

impl Placeholders {
    /// Sets the value of a placeholder.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.values.insert(name.into(), value.into());
    }

    /// Sets an output of an action: `$(Actions.NAME.OUTPUT)`.
    pub fn set_output(&mut self, action: &str, output: &str, value: &str) {
        self.set(format!("Actions.{action}.{output}"), value);
    }

    /// Returns the text with values in place of placeholders. Unknown ones stay. Values are not searched.
    pub fn expand(&self, text: &str) -> String {
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("$(") {
            result.push_str(before);
            let found = after.split_once(')').and_then(|(name, after)| {
                let value = self.values.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?.1;
                Some((value, after))
            });
            if let Some((value, after)) = found {
                result.push_str(value);
                rest = after;
            } else {
                result.push_str("$(");
                rest = after;
            }
        }
        result.push_str(rest);
        result
    }

    /// Returns the action with values in place of placeholders.
    pub fn expand_action(&self, kind: &ActionKind) -> ActionKind {
        let mut kind = kind.clone();
        kind.for_each_text(|text| *text = self.expand(text));
        kind
    }
}

/// The names of the placeholders in a text.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split("$(").skip(1).filter_map(|after| Some(after.split_once(')')?.0))
}

/// The names of actions whose outputs an action uses.
#[allow(dead_code, reason = "the executor of actions, which follows")]
pub(crate) fn used_actions(kind: &ActionKind) -> Vec<String> {
    let mut used = Vec::new();
    // Texts are only read: the method is for both.
    kind.clone().for_each_text(|text| {
        used.extend(names(text).filter_map(|name| Some(action_output(name)?.0.to_owned())));
    });
    used
}

/// Splits `Actions.NAME.OUTPUT`.
fn action_output(name: &str) -> Option<(&str, &str)> {
    const PREFIX: &str = "Actions.";
    let (prefix, rest) = name.split_at_checked(PREFIX.len())?;
    prefix.eq_ignore_ascii_case(PREFIX).then(|| rest.rsplit_once('.'))?
}

/// Explains why a placeholder has no value; `None` if it has one.
pub(crate) fn fault(name: &str, earlier: &[Action], is_execute: bool) -> Option<String> {
    if KNOWN.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return None;
    }
    let Some((action, output)) = action_output(name) else {
        return Some(format!("known here: {}", KNOWN.join(", ")));
    };
    if !is_execute {
        return Some("outputs of actions can be used in the Arguments of Execute only".to_owned());
    }
    let Some(found) = earlier.iter().find(|it| it.name.as_deref() == Some(action)) else {
        return Some(format!("no earlier action of the rule is called {action:?}"));
    };
    match found.kind.output() {
        Some(known) if known.eq_ignore_ascii_case(output) => None,
        Some(known) => Some(format!("the output of {action} is called {known}")),
        None => Some(format!("{} has no output", found.kind.type_name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_place_of_names() {
        let mut values = Placeholders::default();
        values.set("Process.Name", "shop $(Process.ProcessId)");
        values.set("Process.ProcessId", "7");
        values.set_output("MyDump", "EgressPath", "/a b");
        let rows = [
            ("$(Process.ProcessId)-$(process.processid)", "7-7"),
            ("$(Process.Name)", "shop $(Process.ProcessId)"),
            ("\"$(Actions.MyDump.EgressPath)\"", "\"/a b\""),
            ("$(Unknown) $(", "$(Unknown) $("),
            ("$($(Process.ProcessId))", "$(7)"),
            ("", ""),
        ];
        for (text, expected) in rows {
            assert_eq!(values.expand(text), expected, "{text}");
        }
    }
}
