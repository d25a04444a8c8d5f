use dipc_doctor::{ProcessEvidence, UserEvidence};

use super::Words;

pub(super) fn process(evidence: &ProcessEvidence) -> Words {
    match evidence {
        ProcessEvidence::Found { pid, name } => Words::new(format!("process {pid} ({name})")),
        ProcessEvidence::NotFound { pid } => Words::new(format!("process {pid} does not exist")).because(
            "it has ended, or runs in a pid namespace that is not visible from here (another container)",
        ),
        ProcessEvidence::InContainer { pid, outer_pids } => {
            let outer_pids: Vec<_> = outer_pids.iter().map(u32::to_string).collect();
            Words::new(format!("process {pid} does not exist here")).because(format!(
                "{pid} is the number inside a container; from here it is process {}",
                outer_pids.join(" or ")
            ))
        }
        ProcessEvidence::Thread { pid, process } => {
            Words::new(format!("{pid} is a thread of process {process}"))
        }
        ProcessEvidence::Zombie { pid, name } => Words::new(format!("process {pid} ({name}) has ended"))
            .because("its parent has not waited for it yet, so its number is still taken"),
        ProcessEvidence::KernelThread { pid, name } => {
            Words::new(format!("{pid} ({name}) is a thread of the kernel"))
        }
        ProcessEvidence::Unreadable { pid, reason } => {
            Words::new(format!("process {pid} cannot be read: {reason}"))
        }
        other => Words::unknown(other),
    }
}

pub(super) fn user(evidence: &UserEvidence) -> Words {
    let (process, own, unreadable) = match evidence {
        UserEvidence::Known { process_uid, own_uid, unreadable } => (*process_uid, *own_uid, unreadable),
        UserEvidence::Unknown => {
            return Words::new("the users of the process and of dipc are not visible on this system");
        }
        UserEvidence::Unreadable { count } => {
            return Words::new(format!("processes that could not be read: {count}"))
                .because(".NET processes among them are not in the list");
        }
        other => return Words::unknown(other),
    };
    let users = match own {
        0 => format!("the process is of user {process}, and dipc runs as root"),
        _ if own == process => format!("the process and dipc are of user {own}"),
        _ => format!("the process is of user {process}, dipc of user {own}"),
    };
    let Some(reason) = unreadable else { return Words::new(users) };
    Words::new(format!("{users}; {reason}")).because(match own {
        0 => {
            "root may not look into this process: it is of another user namespace, or a container lacks the capability \
             SYS_PTRACE"
        }
        _ if own == process => {
            "the kernel hides a process even from its own user when its program has capabilities (setcap) or changed its \
             user"
        }
        _ => "a diagnostic socket is open to the user of its process and to root only",
    })
}

pub(super) fn container(pid: u32, inner_pid: Option<u32>, has_own_files: bool) -> Words {
    let own_pids = inner_pid.map(|inner| {
        format!("it runs in a pid namespace of its own: process {inner} there is process {pid} here")
    });
    let own_files =
        has_own_files.then(|| format!("it has files of its own, which are /proc/{pid}/root from here"));
    let seen: Vec<_> = own_pids.into_iter().chain(own_files).collect();
    Words::new(seen.join("; ")).because(
        "dipc finds its socket there; tools that look only in their own files do not, unless they run in the container",
    )
}
