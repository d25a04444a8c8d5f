//! Advice on the right to look into a process: the right that is missing here, and the way to get it.

use std::path::{Component, Path};

use dipc_doctor::{TracingAccess, TracingObstacle};

/// Returns the advice after the kernel refused to let this process stop another or read its memory.
pub(crate) fn to_attach(pid: u32) -> String {
    advice(&TracingObstacle::of(pid, TracingAccess::Attach))
}

/// Returns the advice after the kernel refused to open a file of a process in `/proc`; `None` for other
/// files, and if the reason is not known.
pub(crate) fn to_read(path: &Path) -> Option<String> {
    let obstacle = TracingObstacle::of(process_of(path)?, TracingAccess::Read);
    (obstacle != TracingObstacle::Unknown).then(|| advice(&obstacle))
}

/// Returns the process that a file in `/proc` belongs to.
pub(crate) fn process_of(path: &Path) -> Option<u32> {
    let mut parts = path.components();
    let begins = [Component::RootDir, Component::Normal("proc".as_ref())];
    if begins.into_iter().any(|begin| parts.next() != Some(begin)) {
        return None;
    }
    let Component::Normal(name) = parts.next()? else { return None };
    name.to_str()?.parse().ok()
}

/// Returns the words for the reason and its remedy.
pub(crate) fn advice(obstacle: &TracingObstacle) -> String {
    match obstacle {
        TracingObstacle::Traced { tracer } => {
            format!("process {tracer} traces it, a debugger or another tracer, and only one may: end that first")
        }
        TracingObstacle::Yama(level) if *level > 2 => format!(
            "kernel.yama.ptrace_scope is {level}: no process may trace another until the machine starts again without it"
        ),
        TracingObstacle::Yama(level) => format!(
            "kernel.yama.ptrace_scope is {level}: sysctl kernel.yama.ptrace_scope=0, or run dipc as root, or its container with --cap-add SYS_PTRACE"
        ),
        TracingObstacle::OtherUser { uid, own_uid: 0 } => format!(
            "the process is of user {uid}, and root lacks SYS_PTRACE here: run the container of dipc with --cap-add SYS_PTRACE or with --user {uid}, or dipc on the host"
        ),
        TracingObstacle::OtherUser { uid, own_uid } => format!(
            "the process is of user {uid}, dipc of user {own_uid}: run dipc as the user of the process, or as root (in a container with --user {uid}, or as root with --cap-add SYS_PTRACE)"
        ),
        TracingObstacle::OtherUserNamespace => {
            "the process is in another user namespace: run dipc in its container, or as root on the host".to_owned()
        }
        TracingObstacle::MissingCapabilities(names) => format!(
            "the process has capabilities that dipc lacks ({}): run the container of dipc with the same, or with --cap-add SYS_PTRACE, or dipc as root on the host",
            shortened(names)
        ),
        TracingObstacle::NotDumpable => {
            "the process permits it to root only, as programs do that change their user: run dipc as root, with SYS_PTRACE".to_owned()
        }
        TracingObstacle::AppArmor { own, other } => format!(
            "AppArmor's profile {own}, with which dipc runs, does not permit it for processes of the profile {other}: run the container of dipc with --security-opt apparmor={other}, or dipc on the host"
        ),
        TracingObstacle::SeLinux { own, other } => format!(
            "SELinux's label {own}, with which dipc runs, may not permit it for processes of {}: run the container of dipc with --security-opt label=disable, or dipc on the host",
            other.as_deref().unwrap_or("another label")
        ),
        TracingObstacle::Seccomp => {
            "a seccomp filter may refuse it, as containers have one: run the container of dipc with --cap-add SYS_PTRACE or another filter, or dipc on the host".to_owned()
        }
        _ => {
            "this takes the permission to trace the process: be its user, or root with SYS_PTRACE; dipc doctor looks for the reason"
                .to_owned()
        }
    }
}

/// Returns the first names of a list.
fn shortened(names: &[&str]) -> String {
    const SHOWN: usize = 3;
    let more = if names.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_processes_are_known() {
        let process = |path: &str| process_of(Path::new(path));
        assert_eq!(process("/proc/1/environ"), Some(1));
        assert_eq!(process("/proc/4711/root/tmp/dotnet-diagnostic-1-2-socket"), Some(4711));
        for other in ["/proc/self/environ", "/proc", "/tmp/1/environ", "proc/1/environ", "/"] {
            assert_eq!(process(other), None, "{other}");
        }
    }

    #[test]
    fn advice_names_what_helps() {
        let missing = TracingObstacle::MissingCapabilities(vec!["CHOWN", "KILL", "SETUID", "NET_RAW"]);
        for (obstacle, words) in [
            (missing, &["(CHOWN, KILL, SETUID, …)", "--cap-add SYS_PTRACE"][..]),
            (TracingObstacle::OtherUser { uid: 1654, own_uid: 0 }, &["--user 1654", "SYS_PTRACE"]),
            (TracingObstacle::OtherUser { uid: 1654, own_uid: 7 }, &["user 7", "as root"]),
            (TracingObstacle::Yama(1), &["ptrace_scope=0"]),
            (TracingObstacle::Yama(3), &["starts again"]),
            (
                TracingObstacle::AppArmor { own: "docker-default".into(), other: "unconfined".into() },
                &["docker-default", "--security-opt apparmor=unconfined"],
            ),
            (
                TracingObstacle::SeLinux { own: "u:r:container_t:s0".into(), other: None },
                &["u:r:container_t:s0", "another label", "--security-opt label=disable"],
            ),
        ] {
            let advice = advice(&obstacle);
            for word in words {
                assert!(advice.contains(word), "{advice}");
            }
        }
    }
}
