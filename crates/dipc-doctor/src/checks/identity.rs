//! Which process, whose, and where.

use crate::facts::{Facts, Process};
use crate::finding::{Check, Finding};

pub(super) fn process(facts: &Facts, process: &Process) -> Finding {
    Finding::ok(Check::Process, format!("process {} ({})", facts.pid, process.name))
}

pub(super) fn user(facts: &Facts, process: &Process) -> Finding {
    let (Some(theirs), Some(ours)) = (process.status.uid, facts.our_uid) else {
        return Finding::unknown(Check::User, "whose the process is, or dipc, cannot be seen on this system");
    };
    let seen = match ours {
        0 => format!("the process is of user {theirs}, and dipc runs as root"),
        _ if ours == theirs => format!("the process and dipc are of user {ours}"),
        _ => format!("the process is of user {theirs}, dipc of user {ours}"),
    };
    let Err(why) = &process.environment else { return Finding::ok(Check::User, seen) };
    let hidden = Finding::problem(Check::User, format!("{seen}; {why}"));
    let hidden = match ours {
        0 => hidden
            .because(
                "root may not look into this process: it is of another user namespace, or a container lacks the \
                 capability SYS_PTRACE",
            )
            .fix(
                "run dipc on the host, or with the capability SYS_PTRACE (--cap-add SYS_PTRACE), or name the socket \
                 (--endpoint)",
            ),
        _ if ours == theirs => hidden
            .because(
                "the kernel hides a process even from its own user when its program has capabilities (setcap) or \
                 changed its user",
            )
            .fix("run dipc as root (sudo dipc …)"),
        _ => hidden
            .because("a diagnostic socket is open to the user of its process and to root only")
            .fix(format!("run dipc as that user (sudo -u '#{theirs}' dipc …), or as root")),
    };
    super::unless_reached(process, hidden)
}

pub(super) fn container(facts: &Facts, process: &Process) -> Option<Finding> {
    let (outer, inner) = (facts.pid, process.status.inner_pid);
    let own_pids = (outer != inner).then(|| {
        format!("it runs in a pid namespace of its own: process {inner} there is process {outer} here")
    });
    let own_files = process
        .has_own_files
        .unwrap_or(false)
        .then(|| format!("it has files of its own, which are /proc/{outer}/root from here"));
    let seen: Vec<_> = own_pids.into_iter().chain(own_files).collect();
    if seen.is_empty() {
        return None;
    }
    Some(Finding::warning(Check::Container, seen.join("; ")).because(
        "dipc finds its socket there; tools that look only in their own files do not, \
                unless they run in the container",
    ))
}
