//! A .NET process as `ps` and `info` show it.

use std::time::Duration;

use dipc_client::{Error, ProcessInfo, Target, Timeouts};
use dipc_transport::Endpoint;
use serde::Serialize;

use crate::process::candidates::command_line;

/// The known facts of a process. The JSON form is the struct: an unknown fact is null, and `error` gives the
/// reason.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Process {
    pub(crate) pid: Option<u32>,
    pub(crate) namespace_pid: Option<u32>,
    pub(crate) name: Option<String>,
    pub(crate) command_line: Option<String>,
    pub(crate) entry_assembly: Option<String>,
    pub(crate) clr_version: Option<String>,
    pub(crate) os: Option<String>,
    pub(crate) arch: Option<String>,
    pub(crate) runtime_identifier: Option<String>,
    pub(crate) cookie: Option<String>,
    pub(crate) endpoint: String,
    pub(crate) uid: Option<u32>,
    pub(crate) error: Option<String>,
    /// True if the runtime answered; "unknown command" counts as an answer.
    #[serde(skip)]
    pub(crate) reached: bool,
}

impl Process {
    /// Queries the runtime at an endpoint. Facts that it does not report are taken from the system.
    pub(crate) fn ask(endpoint: &Endpoint, timeout: Duration) -> Self {
        let target = Target::from_endpoint(endpoint).with_timeouts(timeouts(timeout));
        let mut process = Self {
            pid: Some(endpoint.pid),
            namespace_pid: Some(endpoint.namespace_pid),
            name: Some(endpoint.name.clone()),
            endpoint: endpoint.path.display().to_string(),
            uid: endpoint.uid,
            ..Self::default()
        };
        match target.info() {
            Ok(info) => process.fill(info),
            Err(error) => {
                process.reached = error.is_answer();
                process.error = Some(error.to_string());
            }
        }
        process.fill_from_system(endpoint.pid);
        process
    }

    /// Asks the runtime at an address that the user named. `pid` is the runtime's process, if it is on this
    /// machine: a runtime with a command line too long for a message is described by the system.
    pub(crate) fn ask_target(target: &Target, pid: Option<u32>) -> Result<Self, Error> {
        let mut process = Self { endpoint: target.address().to_string(), ..Self::default() };
        match (target.info(), pid) {
            (Ok(info), _) => process.fill(info),
            (Err(error @ Error::Refused { .. }), Some(pid)) => {
                process.reached = true;
                process.error = Some(error.to_string());
                process.fill_from_system(pid);
            }
            (Err(error), _) => return Err(error),
        }
        Ok(process)
    }

    /// Fills in the facts that the runtime has not reported: .NET Core 3.1 reports none, .NET 5 no version,
    /// and a hung runtime, or a runtime with a command line too long for a message, nothing.
    fn fill_from_system(&mut self, pid: u32) {
        if self.error.is_some() {
            self.command_line = Some(command_line(pid)).filter(|line| !line.is_empty());
        }
        self.clr_version = self.clr_version.take().or_else(|| dipc_doctor::runtime_version(pid));
        self.entry_assembly = self.entry_assembly.take().or_else(|| dipc_doctor::entry_assembly(pid));
    }

    /// Fills in the facts that the runtime reports.
    fn fill(&mut self, info: ProcessInfo) {
        // Runtimes send an empty text for an unknown fact.
        let known = |text: String| Some(text).filter(|text| !text.is_empty());
        self.namespace_pid = self.namespace_pid.or_else(|| u32::try_from(info.process_id).ok());
        self.command_line = known(info.command_line);
        self.entry_assembly = info.managed_entrypoint_assembly.and_then(known);
        self.clr_version = info.clr_version.and_then(known);
        self.os = known(info.os);
        self.arch = known(info.arch);
        self.runtime_identifier = info.runtime_identifier.and_then(known);
        self.cookie = Some(info.runtime_cookie.to_string());
        self.reached = true;
    }
}

/// Returns timeouts with the same limit for every step.
pub(crate) fn timeouts(timeout: Duration) -> Timeouts {
    let defaults = Timeouts::default();
    defaults
        .with_connect(timeout.min(defaults.connect))
        .with_request(timeout)
        .with_first_bytes(timeout)
        .with_stop(timeout)
        .with_abandon(timeout.min(defaults.abandon))
}
