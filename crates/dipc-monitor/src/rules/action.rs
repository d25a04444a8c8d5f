//! Actions as data.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use clr_conditions::Condition;
use dipc_client::Uuid;

use crate::artifact::Artifact;

/// An action of a rule.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Action {
    /// The name by which later actions refer to its outputs.
    pub name: Option<String>,
    /// The work.
    pub kind: ActionKind,
    /// True if the next action waits until it is complete.
    pub wait_for_completion: bool,
}

impl Action {
    /// Creates an action that the next one does not wait for.
    pub const fn new(kind: ActionKind) -> Self {
        Self { name: None, kind, wait_for_completion: false }
    }
}

/// The destination of an artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct Destination {
    /// The name of the egress provider.
    pub egress: String,
    /// The name of the artifact; `None` for the usual one.
    pub name: Option<String>,
}

/// The work of an action.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ActionKind {
    /// Collects an artifact.
    Collect {
        /// The artifact.
        artifact: Artifact,
        /// The destination.
        destination: Destination,
        /// The event that ends a trace early.
        stopping_event: Option<StoppingEvent>,
    },
    /// Runs a program.
    Execute {
        /// The program.
        path: String,
        /// The arguments, as one text.
        arguments: Option<String>,
        /// True if a failure of the program does not fail the action.
        ignore_exit_code: bool,
    },
    /// Loads a profiler at the start of the process.
    LoadProfiler {
        /// The path of the library.
        path: String,
        /// The class of the profiler.
        clsid: Uuid,
    },
    /// Sets an environment variable of the process.
    SetEnvironmentVariable {
        /// The name.
        name: String,
        /// The value; `None` removes the variable.
        value: Option<String>,
    },
    /// Returns an environment variable of the process.
    GetEnvironmentVariable {
        /// The name.
        name: String,
    },
}

/// An event that ends a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct StoppingEvent {
    /// The provider.
    pub provider: String,
    /// The name, as `Task/Opcode`.
    pub event: String,
    /// The values that fields have to have.
    pub payload: BTreeMap<String, String>,
}

impl StoppingEvent {
    /// Returns the condition that the event meets.
    ///
    /// # Errors
    /// If the provider's events are known, and do not include this event or field.
    pub fn condition(&self) -> Result<Condition, String> {
        let mut text = format!("event {}", quoted(&format!("{}/{}", self.provider, self.event))?);
        for (number, (field, value)) in self.payload.iter().enumerate() {
            let join = if number == 0 { " where" } else { "," };
            text = format!("{text}{join} {} = {}", quoted(field)?, quoted(value)?);
        }
        Condition::parse(&text).map_err(|error| error.to_string())
    }
}

/// Quotes a string of a condition.
fn quoted(text: &str) -> Result<String, String> {
    let quote = ['"', '\''].into_iter().find(|quote| !text.contains(*quote));
    let quote = quote.ok_or_else(|| format!("{text:?} has both kinds of quotes"))?;
    Ok(format!("{quote}{text}{quote}"))
}

impl fmt::Display for ActionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())?;
        match self {
            Self::Collect { destination, .. } => write!(f, " to {}", destination.egress),
            Self::Execute { path, .. } | Self::LoadProfiler { path, .. } => write!(f, " {path}"),
            Self::SetEnvironmentVariable { name, .. } | Self::GetEnvironmentVariable { name } => {
                write!(f, " {name}")
            }
        }
    }
}

impl ActionKind {
    /// The name of the type, as in the configuration.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Collect { artifact, .. } => match artifact {
                Artifact::Dump(_) => "CollectDump",
                Artifact::GcDump => "CollectGCDump",
                Artifact::Trace(_) => "CollectTrace",
                Artifact::LiveMetrics(_) => "CollectLiveMetrics",
                Artifact::Logs(_) => "CollectLogs",
                Artifact::Snapshot => "CollectSnapshot",
                Artifact::Stacks(_) => "CollectStacks",
                Artifact::Exceptions(_) => "CollectExceptions",
                Artifact::FlameGraph(..) => "CollectFlameGraph",
                Artifact::Top(_) => "CollectTop",
                Artifact::Requests(_) => "CollectRequests",
                Artifact::Why(..) => "CollectWhy",
                Artifact::Memory => "CollectMemory",
            },
            Self::Execute { .. } => "Execute",
            Self::LoadProfiler { .. } => "LoadProfiler",
            Self::SetEnvironmentVariable { .. } => "SetEnvironmentVariable",
            Self::GetEnvironmentVariable { .. } => "GetEnvironmentVariable",
        }
    }

    /// The destination of its artifact, if it writes one.
    pub const fn destination(&self) -> Option<&Destination> {
        match self {
            Self::Collect { destination, .. } => Some(destination),
            _ => None,
        }
    }

    /// The configured collection time: zero for immediate artifacts, and for programs.
    pub fn collection_time(&self) -> Duration {
        match self {
            Self::Collect { artifact, .. } => artifact.duration().unwrap_or_default(),
            _ => Duration::ZERO,
        }
    }

    /// The name of the output that later actions can use.
    pub const fn output(&self) -> Option<&'static str> {
        match self {
            Self::Collect { .. } => Some("EgressPath"),
            Self::Execute { .. } => Some("ExitCode"),
            Self::GetEnvironmentVariable { .. } => Some("Value"),
            Self::LoadProfiler { .. } | Self::SetEnvironmentVariable { .. } => None,
        }
    }

    /// Passes each text that may have placeholders to `each`.
    pub(crate) fn for_each_text(&mut self, mut each: impl FnMut(&mut String)) {
        match self {
            Self::Execute { path, arguments, .. } => {
                each(path);
                arguments.iter_mut().for_each(each);
            }
            Self::LoadProfiler { path, .. } => each(path),
            Self::SetEnvironmentVariable { name, value } => {
                each(name);
                value.iter_mut().for_each(each);
            }
            Self::GetEnvironmentVariable { name } => each(name),
            Self::Collect { destination, stopping_event, .. } => {
                destination.name.iter_mut().for_each(&mut each);
                if let Some(event) = stopping_event {
                    event.payload.values_mut().for_each(each);
                }
            }
        }
    }
}
