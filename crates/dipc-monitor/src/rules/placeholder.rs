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
        self.expand_with(text, str::to_owned)
    }

    /// Returns the name of a file with values in place of placeholders. A process chooses some of them: they
    /// add no directories.
    pub fn expand_file_name(&self, name: &str) -> String {
        let is_unsafe = |sign: char| matches!(sign, '/' | '\\' | ':') || sign.is_control();
        self.expand_with(name, |value| value.replace(is_unsafe, "_").replace("..", "__"))
    }

    /// Returns the arguments of a program with values in place of placeholders. Arguments are divided as .NET
    /// divides them, but for values, which a process may have chosen: each is within one argument.
    ///
    /// # Source
    /// `ParseArgumentsIntoList` in `Process.Unix.cs` of dotnet/runtime.
    pub fn expand_arguments(&self, text: &str) -> Vec<String> {
        split_arguments(text).iter().map(|argument| self.expand(argument)).collect()
    }

    fn expand_with(&self, text: &str, escape: impl Fn(&str) -> String) -> String {
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("$(") {
            result.push_str(before);
            let found = after.split_once(')').and_then(|(name, after)| {
                let value = self.values.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?.1;
                Some((value, after))
            });
            if let Some((value, after)) = found {
                result.push_str(&escape(value));
                rest = after;
            } else {
                result.push_str("$(");
                rest = after;
            }
        }
        result.push_str(rest);
        result
    }

    /// Returns the action with values in place of placeholders, except in the arguments of a program: see
    /// [`expand_arguments`](Self::expand_arguments).
    pub fn expand_action(&self, kind: &ActionKind) -> ActionKind {
        let mut kind = kind.clone();
        match &mut kind {
            ActionKind::Execute { path, .. } => *path = self.expand(path),
            ActionKind::Collect { destination, stopping_event, .. } => {
                if let Some(name) = &mut destination.name {
                    *name = self.expand_file_name(name);
                }
                for value in stopping_event.iter_mut().flat_map(|event| event.payload.values_mut()) {
                    *value = self.expand(value);
                }
            }
            other => other.for_each_text(|text| *text = self.expand(text)),
        }
        kind
    }
}

/// Divides a string into arguments: at blanks outside of double quotes.
fn split_arguments(text: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut current: Option<String> = None;
    let mut in_quotes = false;
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            ' ' | '\t' if !in_quotes => arguments.extend(current.take()),
            '\\' => {
                let mut count = 1;
                while signs.next_if_eq(&'\\').is_some() {
                    count += 1;
                }
                let argument = current.get_or_insert_default();
                if signs.peek() == Some(&'"') {
                    argument.push_str(&"\\".repeat(count / 2));
                    if count % 2 == 1 {
                        argument.extend(signs.next());
                    }
                } else {
                    argument.push_str(&"\\".repeat(count));
                }
            }
            '"' => {
                let argument = current.get_or_insert_default();
                if in_quotes && signs.next_if_eq(&'"').is_some() {
                    argument.push('"');
                } else {
                    in_quotes = !in_quotes;
                }
            }
            sign => current.get_or_insert_default().push(sign),
        }
    }
    arguments.extend(current);
    arguments
}

/// The names of the placeholders in a string.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split("$(").skip(1).filter_map(|after| Some(after.split_once(')')?.0))
}

/// The names of actions with outputs that an action uses.
pub(crate) fn used_actions(kind: &ActionKind) -> Vec<String> {
    let mut used = Vec::new();
    // Strings are only read; the method serves both uses.
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

/// Explains why a placeholder does not have a value; `None` if it has.
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

    #[test]
    fn values_stay_within_an_argument_and_a_directory() {
        let mut values = Placeholders::default();
        values.set("Process.Name", "a b\" ../../etc/x");
        values.set_output("MyDump", "EgressPath", "/a b");
        let rows: [(&str, &[&str]); 9] = [
            ("one two\tthree", &["one", "two", "three"]),
            ("  \"one two\"  three ", &["one two", "three"]),
            (r#"a"b c"d"#, &["ab cd"]),
            (r#""a ""b"" c""#, &["a \"b\" c"]),
            (r#"\"a\" \\"b c" \d\"#, &["\"a\"", "\\b c", "\\d\\"]),
            (r#""" x"#, &["", "x"]),
            ("", &[]),
            ("-p $(Actions.MyDump.EgressPath) x", &["-p", "/a b", "x"]),
            (r#""--name=$(Process.Name)" y"#, &["--name=a b\" ../../etc/x", "y"]),
        ];
        for (text, expected) in rows {
            assert_eq!(values.expand_arguments(text), expected, "{text}");
        }
        assert_eq!(values.expand_file_name("dumps/$(Process.Name).dmp"), "dumps/a b\" ______etc_x.dmp");
    }
}
