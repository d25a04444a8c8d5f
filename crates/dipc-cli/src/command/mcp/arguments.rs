//! The arguments of a call as words of a command line, and the schema that says what they may be.

use std::ffi::OsString;

use serde_json::{Map, Value, json};

use crate::command::mcp::folders::Folders;
use crate::command::mcp::tools::{Kind, Parameter, Presence, Tool};

/// Maximum number of bytes of a string.
const MAX_TEXT: usize = 4_096;

/// A command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) words: Vec<OsString>,
    /// The time that was asked for, in seconds.
    pub(super) seconds: u64,
}

/// Returns the JSON schema of a tool's arguments.
pub(super) fn schema(tool: &Tool, control: bool, files: bool) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for parameter in tool.parameters(control, files) {
        properties.insert(parameter.name.to_owned(), property(parameter));
        if parameter.presence == Presence::Required {
            required.push(parameter.name);
        }
    }
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    schema.as_object().cloned().unwrap_or_default()
}

fn property(parameter: &Parameter) -> Value {
    let mut property = match parameter.kind {
        Kind::Integer { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Seconds { max } => json!({"type": "integer", "minimum": 1, "maximum": max}),
        Kind::Text | Kind::File | Kind::NewFile => json!({"type": "string", "maxLength": MAX_TEXT}),
        Kind::Choice(choices) => json!({"type": "string", "enum": choices}),
        Kind::Switch => json!({"type": "boolean"}),
    };
    property["description"] = parameter.about.into();
    property
}

/// Turns the arguments of a call into a command line. Each file is found by `folders` first.
///
/// # Errors
///
/// A sentence for the agent that names the argument.
pub(super) fn words(
    tool: &Tool,
    arguments: &Map<String, Value>,
    control: bool,
    folders: &Folders,
) -> Result<Words, String> {
    let parameters: Vec<_> = tool.parameters(control, !folders.is_empty()).collect();
    if let Some(unknown) = arguments.keys().find(|name| parameters.iter().all(|known| known.name != *name)) {
        let known: Vec<_> = parameters.iter().map(|parameter| parameter.name).collect();
        return Err(format!("{}: no argument '{unknown:.40}'; there are {}", tool.name, known.join(", ")));
    }
    let mut line = Words { words: tool.words.iter().map(Into::into).collect(), seconds: 0 };
    for parameter in parameters {
        match arguments.get(parameter.name) {
            None | Some(Value::Null) if parameter.presence == Presence::Required => {
                return Err(format!("{}: '{}' is missing: {}", tool.name, parameter.name, parameter.about));
            }
            None | Some(Value::Null) => {}
            Some(value) => line
                .add(parameter, value, folders)
                .map_err(|why| format!("{}: '{}': {why}", tool.name, parameter.name))?,
        }
    }
    Ok(line)
}

impl Words {
    fn add(&mut self, parameter: &Parameter, value: &Value, folders: &Folders) -> Result<(), String> {
        let value: OsString = match parameter.kind {
            Kind::Switch => {
                if switch(value)? {
                    self.words.extend(parameter.flag.map(Into::into));
                }
                return Ok(());
            }
            Kind::Integer { min, max } => integer(value, min, max)?.to_string().into(),
            Kind::Seconds { max } => {
                let seconds = integer(value, 1, max)?;
                self.seconds += seconds;
                format!("{seconds}s").into()
            }
            Kind::Text => text(value)?.into(),
            Kind::Choice(choices) => {
                let word = text(value)?;
                let found = choices.iter().find(|choice| **choice == word);
                found.ok_or_else(|| format!("one of {}", choices.join(", ")))?.into()
            }
            Kind::File => folders.file(text(value)?)?.into(),
            Kind::NewFile => folders.new_file(text(value)?)?.into(),
        };
        self.words.push(match parameter.flag {
            // A value that begins with '-' is one nevertheless.
            Some(flag) => {
                let mut word = OsString::from(flag);
                word.push("=");
                word.push(value);
                word
            }
            None if value.to_string_lossy().starts_with('-') => return Err("begins with '-'".to_owned()),
            None => value,
        });
        Ok(())
    }
}

fn switch(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "true or false".to_owned())
}

/// Agents write numbers as texts, too.
pub(super) fn integer(value: &Value, min: u64, max: u64) -> Result<u64, String> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("a whole number from {min} to {max}"))
}

fn text(value: &Value) -> Result<&str, String> {
    let is_plain =
        |text: &&str| !text.is_empty() && text.len() <= MAX_TEXT && !text.contains(char::is_control);
    value.as_str().filter(is_plain).ok_or_else(|| format!("a text of 1 to {MAX_TEXT} bytes in one line"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Words, schema, words};
    use crate::command::mcp::folders::Folders;
    use crate::command::mcp::tools::{self, Effect, TOOLS};

    fn line(tool: &str, arguments: Value) -> Result<Vec<String>, String> {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        let folders = Folders::new(&[env!("CARGO_MANIFEST_DIR").into()]).unwrap();
        let tool = tools::find(tool).unwrap();
        let Words { words, .. } = words(tool, &arguments, false, &folders)?;
        Ok(words.into_iter().map(|word| word.into_string().unwrap()).collect())
    }

    #[test]
    fn arguments_become_words() {
        let why = line("why", json!({"pid": 17, "seconds": "8", "format": null})).unwrap();
        assert_eq!(why, ["why", "--process-id=17", "--duration=8s"]);
        let manifest = format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
        let paths =
            line("dump_analyze", json!({"type": "-x", "view": "paths", "core": "Cargo.toml"})).unwrap();
        assert_eq!(paths, ["dump", "analyze", &manifest, "paths", "--type=-x"]);
        let exact = line("stack", json!({"pid": 1, "exact": true})).unwrap();
        assert_eq!(exact, ["stack", "--process-id=1", "--exact"]);
        assert_eq!(line("stack", json!({"pid": 1, "exact": false})).unwrap(), ["stack", "--process-id=1"]);
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (tool, arguments, said) in [
            ("stack", json!({}), "stack: 'pid' is missing"),
            ("stack", json!({"pid": -1}), "stack: 'pid': a whole number from 1 to 4294967295"),
            (
                "stack",
                json!({"pid": 1, "stop_seconds": 1}),
                "no argument 'stop_seconds'; there are pid, exact",
            ),
            ("stack", json!({"pid": 1, "exact": "yes"}), "'exact': true or false"),
            ("help", json!({"topic": "--version"}), "'topic': begins with '-'"),
            ("help", json!({"topic": "a\nb"}), "in one line"),
            ("why", json!({"file": "/etc/passwd"}), "outside of the folders"),
            ("report", json!({"file": "Cargo.toml", "report": "all"}), "'report': one of topN, "),
            ("profile", json!({"pid": 1, "seconds": 1, "output": "Cargo.toml"}), "exists already"),
        ] {
            let error = line(tool, arguments).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    /// Each parameter is one that its command has: clap takes an example of each.
    #[test]
    fn commands_have_the_parameters() {
        use clap::CommandFactory as _;

        use crate::cli::Cli;
        use crate::command::mcp::tools::{Kind, Presence};

        for tool in TOOLS {
            let mut command = Cli::command();
            for word in tool.words.iter().filter(|word| !word.starts_with('-')) {
                command = crate::cli::subcommand(&command, word).unwrap();
            }
            let mut flags: Vec<_> = long_flags(&command);
            for view in tool.parameters.iter().filter_map(|parameter| match parameter.kind {
                Kind::Choice(views) if parameter.name == "view" || parameter.name == "report" => Some(views),
                _ => None,
            }) {
                for view in view {
                    let view = crate::cli::subcommand(&command, view).unwrap_or_else(|| panic!("{view}"));
                    flags.extend(long_flags(&view));
                }
            }
            for parameter in tool.parameters {
                let flag = parameter.flag.map(|flag| flag.trim_start_matches('-').to_owned());
                assert!(flag.is_none_or(|flag| flags.contains(&flag)), "{}: {parameter:?}", tool.name);
                assert!(parameter.presence != Presence::Control || tool.effect == Effect::Looks);
            }
        }
    }

    fn long_flags(command: &clap::Command) -> Vec<String> {
        command.get_arguments().filter_map(|argument| Some(argument.get_long()?.to_owned())).collect()
    }

    #[test]
    fn schemas_state_each_argument() {
        let stack = Value::Object(schema(tools::find("stack").unwrap(), true, true));
        assert_eq!(stack["required"], json!(["pid"]));
        assert_eq!(stack["properties"]["pid"]["type"], "integer");
        assert_eq!(stack["properties"]["stop_seconds"]["maximum"], 30);
        assert_eq!(stack["additionalProperties"], false);
        let without_files = Value::Object(schema(tools::find("locks").unwrap(), false, false));
        assert!(without_files["properties"].get("core").is_none());
    }

    #[test]
    fn what_is_offered_depends_on_permissions() {
        let offered = |control, files, privacy| {
            let offered = TOOLS.iter().filter(|tool| tool.is_offered(control, files, privacy));
            offered.map(|tool| tool.name).collect::<Vec<_>>()
        };
        assert_eq!(offered(true, true, false).len(), TOOLS.len());
        assert!(!offered(false, true, false).contains(&"dump"));
        assert!(!offered(true, false, false).contains(&"report"));
        let private = offered(true, true, true);
        for hidden in ["dump_contents", "events", "counters"] {
            assert!(!private.contains(&hidden), "{hidden}");
        }
        assert!(private.contains(&"why"));
    }
}
