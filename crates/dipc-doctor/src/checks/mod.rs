//! What the facts mean. Every check is a function of the facts alone; one that has nothing to say for a process says nothing.

mod answer;
mod identity;
mod runtime;
mod settings;
mod socket;
#[cfg(test)]
mod tests;

use crate::facts::{Facts, Presence, Process};
use crate::finding::{Check, Examination, Finding};

/// Judges what was gathered.
pub(super) fn judge(facts: &Facts) -> Examination {
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
        runtime::runtime(process),
        runtime::version(process),
        runtime::platform(process),
        Some(settings::settings(process)),
        settings::startup(facts, process),
        Some(socket::tmpdir(facts, process)),
        socket::socket(facts, process),
        socket::leftovers(process),
        answer::state(facts, process),
        answer::answer(process),
        runtime::createdump(process),
    ];
    Examination {
        pid: facts.pid,
        name: Some(process.name.clone()),
        runtime: process.version(),
        reachable: process.has_answered(),
        findings: findings.into_iter().flatten().collect(),
    }
}

/// What there is to say of a pid that is no process.
fn absence(facts: &Facts) -> Finding {
    let pid = facts.pid;
    let problem = |seen: String| Finding::problem(Check::Process, seen);
    match &facts.presence {
        Presence::Absent { inside } if !inside.is_empty() => {
            let pids: Vec<_> = inside.iter().map(u32::to_string).collect();
            problem(format!("there is no process {pid} here"))
                .because(format!(
                    "{pid} is the number inside a container; from here it is process \
                    {}",
                    pids.join(" or ")
                ))
                .fix(format!("use -p {}", pids.join(" or -p ")))
        }
        Presence::Absent { .. } => problem(format!("there is no process {pid}"))
            .because(
                "it has ended, or runs in a pid namespace that is not visible from here \
                (another container)",
            )
            .fix(
                "dipc doctor without -p lists what is visible; a sidecar has to share the pid \
                namespace, or be given the socket (--endpoint)",
            ),
        Presence::Thread { of } => {
            problem(format!("{pid} is a thread of process {of}")).fix(format!("use -p {of}"))
        }
        Presence::NoMemory { name, zombie: true } => problem(format!("process {pid} ({name}) has ended"))
            .because("its parent has not waited for it yet, so its number is still taken"),
        Presence::NoMemory { name, zombie: false } => {
            problem(format!("{pid} ({name}) is a thread of the kernel"))
        }
        Presence::Hidden(why) => problem(format!("process {pid} may not be looked at: {why}"))
            .fix("run this as the user of the process, or as root"),
        Presence::Here(_) => Finding::ok(Check::Process, format!("process {pid}")),
    }
}

/// What keeps the process from being reached is a problem; where it is reached all the same, it is not.
fn unless_reached(process: &Process, problem: Finding) -> Finding {
    if process.has_answered() {
        return Finding { status: super::Status::Ok, fix: None, ..problem };
    }
    problem
}
