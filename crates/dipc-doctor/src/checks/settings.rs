//! Settings in the environment of a process.

use dipc_client::Startup;
use dipc_wire::PortKind;

use crate::facts::{Environment, Facts, Process};
use crate::{Evidence, Finding, Fix, RuntimeKind, SettingsEvidence, StartupEvidence, Status, SuspendReason};

/// The settings that close the diagnostic port if they are 0, each with the first version that supports it.
/// `runtimeconfig.json` cannot set them.
const SWITCHES: [(&str, u32); 2] = [("EnableDiagnostics", 0), ("EnableDiagnostics_IPC", 8)];

fn kind(process: &Process) -> RuntimeKind {
    process.image().map_or(RuntimeKind::CoreClr, |image| image.kind)
}

/// Returns the setting that disables the port, as `NAME=value`.
pub(super) fn disabling_setting(process: &Process) -> Option<String> {
    switched_off(process, |since| process.major_version().is_none_or(|major| major >= since))
}

/// Returns the first setting that is 0, among the settings with a first version that `is_asked_for` accepts.
fn switched_off(process: &Process, is_asked_for: impl Fn(u32) -> bool) -> Option<String> {
    let environment = process.environment.as_ref().ok()?;
    SWITCHES
        .iter()
        .filter(|(_, since)| is_asked_for(*since))
        .find_map(|(switch, _)| environment.setting_with_number(switch, kind(process), |number| number == 0))
}

pub(super) fn settings(process: &Process) -> Finding {
    let finding = |status, evidence| Finding::new(status, Evidence::Settings(evidence));
    if process.environment.is_err() {
        return finding(Status::Unknown, SettingsEvidence::Unreadable);
    }
    let Some(setting) = disabling_setting(process) else {
        let ignored = switched_off(process, |_| true);
        let evidence =
            ignored.map_or(SettingsEvidence::Enabled, |setting| SettingsEvidence::Ignored { setting });
        return finding(Status::Ok, evidence);
    };
    // A stopped process does not answer, but has its socket.
    if process.has_answered() || process.endpoint.is_ok() {
        return finding(Status::Ok, SettingsEvidence::Ignored { setting });
    }
    let variable = setting.split('=').next().unwrap_or_default().to_owned();
    finding(Status::Problem, SettingsEvidence::Disabled { setting }).with_fix(Fix::UnsetVariable(variable))
}

/// Checks whether the runtime waits at its start, and for which client.
pub(super) fn startup(facts: &Facts, process: &Process) -> Option<Finding> {
    let is_suspended = match process.startup {
        Startup::Running => return None,
        Startup::Suspended => true,
        Startup::Unknown => false,
    };
    // Without a reason, a runtime with only its first threads may just be starting.
    let reason = suspend_reason(process.environment.as_ref().ok()?, process)?;
    let fix = match &reason {
        SuspendReason::Setting { .. } => Fix::Resume { pid: facts.pid, is_suspended },
        SuspendReason::Ports { unserved, .. } if !unserved.is_empty() => {
            Fix::ListenOn { pid: facts.pid, addresses: unserved.clone() }
        }
        SuspendReason::Ports { .. } if is_suspended => Fix::ResumeFromPort,
        SuspendReason::Ports { .. } => return None,
    };
    let status = if is_suspended { Status::Warning } else { Status::Unknown };
    let evidence = Evidence::Startup(StartupEvidence::new(is_suspended, reason));
    Some(Finding::new(status, evidence).with_fix(fix))
}

fn suspend_reason(environment: &Environment, process: &Process) -> Option<SuspendReason> {
    let ports = environment.ports().into_iter();
    let waited_for = ports.filter(|port| port.suspend && port.kind == PortKind::Connect);
    let (served, unserved): (Vec<_>, Vec<_>) =
        waited_for.map(|port| port.address().to_owned()).partition(|address| has_listener(process, address));
    if !unserved.is_empty() || !served.is_empty() {
        return Some(SuspendReason::Ports { unserved, served });
    }
    environment
        .setting_with_number("DefaultDiagnosticPortSuspend", kind(process), |number| number != 0)
        .map(|setting| SuspendReason::Setting { setting })
}

/// Returns true if a listening socket has the file name of `address`. Folders are not compared: the listener
/// may have another mount namespace.
fn has_listener(process: &Process, address: &str) -> bool {
    let name = std::path::Path::new(address).file_name();
    process.sockets.iter().any(|socket| socket.listens && socket.path.file_name() == name)
}
