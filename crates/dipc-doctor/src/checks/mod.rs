//! Checks: functions of the facts alone. A check that does not apply to a process returns `None`.

mod answer;
mod host;
mod identity;
mod runtime;
mod sampling;
mod settings;
mod socket;
#[cfg(test)]
mod tests;

use crate::facts::{Facts, Presence, Process};
use crate::{Evidence, Examination, Finding, Fix, ProcessEvidence, Status};

pub use host::{check_host, find_foreign_sockets};

/// Returns the findings that follow from the facts.
pub(crate) fn judge(facts: &Facts) -> Examination {
    let Presence::Here(process) = &facts.presence else {
        let name = match &facts.presence {
            Presence::NoMemory { name, .. } => Some(name.clone()),
            _ => None,
        };
        let findings = vec![absence(facts)];
        return Examination { pid: facts.pid, name, runtime: None, reachable: false, findings };
    };
    let findings = [
        Some(identity::process(facts, process)),
        Some(identity::user(facts, process)),
        identity::container(facts, process),
        Some(runtime::runtime(process)),
        runtime::version(process),
        runtime::platform(process),
        Some(settings::settings(process)),
        settings::startup(facts, process),
        Some(socket::tmpdir(facts, process)),
        socket::socket(facts, process),
        socket::stale_sockets(process),
        answer::state(facts, process),
        answer::answer(process),
        runtime::createdump(process),
        sampling::sampling(process),
        runtime::memory(process),
    ];
    Examination {
        pid: facts.pid,
        name: Some(process.name.clone()),
        runtime: process.version(),
        reachable: process.has_answered(),
        findings: findings.into_iter().flatten().collect(),
    }
}

/// Returns the finding about a pid without a process.
fn absence(facts: &Facts) -> Finding {
    let pid = facts.pid;
    let problem = |evidence: ProcessEvidence| Finding::problem(Evidence::Process(evidence));
    match &facts.presence {
        Presence::Absent { inside } if !inside.is_empty() => {
            problem(ProcessEvidence::InContainer { pid, outer_pids: inside.clone() })
                .with_fix(Fix::UsePid(inside.clone()))
        }
        Presence::Absent { .. } => {
            problem(ProcessEvidence::NotFound { pid }).with_fix(Fix::SharePidNamespace)
        }
        Presence::Thread { of } => {
            problem(ProcessEvidence::Thread { pid, process: *of }).with_fix(Fix::UsePid(vec![*of]))
        }
        Presence::NoMemory { name, zombie: true } => {
            problem(ProcessEvidence::Zombie { pid, name: name.clone() })
        }
        Presence::NoMemory { name, zombie: false } => {
            problem(ProcessEvidence::KernelThread { pid, name: name.clone() })
        }
        Presence::Hidden(reason) => problem(ProcessEvidence::Unreadable { pid, reason: reason.clone() })
            .with_fix(permission_fix(facts.own_uid)),
        Presence::Here(process) => identity::process(facts, process),
    }
}

/// Returns the action that gives `user` permission to read about processes. Root has it, unless root lacks a
/// capability.
fn permission_fix(user: Option<u32>) -> Fix {
    if user == Some(0) { Fix::GrantPtrace } else { Fix::RunAsUser { uid: None } }
}

/// Turns a problem into a note if the process was reached anyway.
fn unless_reached(process: &Process, problem: Finding) -> Finding {
    if process.has_answered() {
        return Finding { status: Status::Ok, fix: None, ..problem };
    }
    problem
}
