//! What the environment of a process tells its runtime to do.

use dipc_wire::PortKind;

use crate::facts::{Environment, Facts, ImageKind, Process};
use crate::finding::{Check, Finding};
use dipc_client::Startup;

/// The settings that close the diagnostic port where they are 0. No file has them: `runtimeconfig.json` cannot.
const SWITCHES: [&str; 2] = ["EnableDiagnostics", "EnableDiagnostics_IPC"];

fn kind(process: &Process) -> &ImageKind {
    process.image().map_or(&ImageKind::CoreClr, |image| &image.kind)
}

/// The variable that switches the port off.
pub(super) fn switched_off(process: &Process) -> Option<String> {
    let environment = process.environment.as_ref().ok()?;
    SWITCHES.iter().find_map(|switch| environment.number_is(switch, kind(process), |number| number == 0))
}

pub(super) fn settings(process: &Process) -> Finding {
    if process.environment.is_err() {
        return Finding::unknown(Check::Settings, "its environment cannot be read");
    }
    let Some(variable) = switched_off(process) else {
        return Finding::ok(Check::Settings, "nothing in its environment switches diagnostics off");
    };
    if process.has_answered() {
        return Finding::ok(
            Check::Settings,
            format!("{variable} is set, which this runtime does not follow"),
        );
    }
    let name = variable.split('=').next().unwrap_or_default();
    Finding::problem(Check::Settings, format!("it was started with {variable}"))
        .because("this switches the diagnostic port off, and is read at the start only")
        .fix(format!("start it again without {name}"))
}

/// Whether it waits at its start, and for whom.
pub(super) fn startup(facts: &Facts, process: &Process) -> Option<Finding> {
    let environment = process.environment.as_ref().ok()?;
    let reason = Reason::of(environment, process);
    let resume = format!("dipc resume -p {}", facts.pid);
    match process.startup {
        Startup::Running => None,
        Startup::Suspended => Some(match reason {
            // A runtime of which only the first threads are there may also just be starting.
            None => return None,
            Some(Reason::Default(variable)) => Finding::warning(
                Check::Startup,
                "its program has \
                not begun: the runtime waits to be resumed",
            )
            .because(format!("it was started with {variable}"))
            .fix(format!("{resume}, or dipc trace, which resumes it when the session runs")),
            Some(Reason::Ports { nobody, somebody }) => {
                let finding = Finding::warning(
                    Check::Startup,
                    "its program has not begun: the \
                    runtime waits to be resumed on its diagnostic ports",
                );
                if nobody.is_empty() {
                    finding
                        .because(format!("who listens on {} has not resumed it", somebody.join(" and ")))
                        .fix("resume it from there")
                } else {
                    finding
                        .because(format!(
                            "nobody listens on {} (DOTNET_DiagnosticPorts)",
                            nobody.join(" and ")
                        ))
                        .fix(format!(
                            "start the tool that listens there, such as dipc trace \
                            --diagnostic-port {}; or start the program without the port, or with \
                            the tag nosuspend",
                            nobody.join(" ")
                        ))
                }
            }
        }),
        Startup::Unseen => match reason? {
            Reason::Default(variable) => Some(
                Finding::unknown(
                    Check::Startup,
                    format!(
                        "it was started with {variable}; whether \
                    it still waits to be resumed cannot be seen"
                    ),
                )
                .fix(format!("{resume} does no harm")),
            ),
            Reason::Ports { nobody, .. } if !nobody.is_empty() => Some(
                Finding::unknown(
                    Check::Startup,
                    format!(
                        "nobody listens on {} (DOTNET_DiagnosticPorts); whether it still waits \
                        for somebody cannot be seen",
                        nobody.join(" and ")
                    ),
                )
                .fix("start the tool that listens there, or start the program with the tag nosuspend"),
            ),
            Reason::Ports { .. } => None,
        },
    }
}

/// What makes a runtime wait at its start.
enum Reason {
    /// A variable.
    Default(String),
    /// Ports that others listen on, or do not.
    Ports { nobody: Vec<String>, somebody: Vec<String> },
}

impl Reason {
    fn of(environment: &Environment, process: &Process) -> Option<Self> {
        let ports = environment.ports().into_iter();
        let waited_for = ports.filter(|port| port.suspend && port.kind == PortKind::Connect);
        let (somebody, nobody): (Vec<_>, Vec<_>) = waited_for
            .map(|port| port.address().to_owned())
            .partition(|address| process.is_listened_on(address));
        if !nobody.is_empty() || !somebody.is_empty() {
            return Some(Self::Ports { nobody, somebody });
        }
        environment
            .number_is("DefaultDiagnosticPortSuspend", kind(process), |number| number != 0)
            .map(Self::Default)
    }
}

impl Process {
    /// Whether somebody listens on a socket with that path, or at least of that name: who made it may see its files otherwise.
    fn is_listened_on(&self, address: &str) -> bool {
        let name = std::path::Path::new(address).file_name();
        self.sockets.iter().any(|socket| socket.listens && socket.path.file_name() == name)
    }
}
