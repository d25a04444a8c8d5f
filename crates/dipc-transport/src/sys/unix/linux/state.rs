use std::fs;
use std::io;

use linux_proc_stat::Status;

use super::process::{Process, has_ended, proc_path};
use crate::ProcessState;

/// Reads `/proc/PID/status`, and finds a `createdump` among the children.
pub(crate) fn process_state(pid: u32) -> io::Result<ProcessState> {
    let status = match linux_proc_stat::read(&proc_path(pid, "status")) {
        Ok(status) => status,
        Err(error) if has_ended(&error) => return Ok(ProcessState::Gone),
        Err(error) => return Err(error),
    };
    let status = Status::new(&status);
    if status.is_zombie() {
        return Ok(ProcessState::Zombie);
    }
    // Before the tracer: `createdump` traces the process, too.
    if let Some(createdump) = dumping_child(pid, status.tracer()) {
        return Ok(ProcessState::Dumping { createdump });
    }
    Ok(match status.state() {
        Some('t') => {
            let tracer = status.tracer();
            let name = tracer.and_then(|pid| Process::read(pid).ok()?).map(|process| process.name());
            ProcessState::Traced { tracer, name }
        }
        Some('T') => ProcessState::Stopped,
        _ => ProcessState::Running,
    })
}

/// Returns the child that a runtime started to write a dump, from any of its threads: `createdump` or, in a
/// single file, a copy of the process that traces it.
fn dumping_child(pid: u32, tracer: Option<u32>) -> Option<u32> {
    // More threads than runtimes have; further ones are not searched.
    const THREADS: usize = 4096;
    for task in fs::read_dir(proc_path(pid, "task")).ok()?.take(THREADS).flatten() {
        // Some kernels do not list children (CONFIG_PROC_CHILDREN).
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let children = children.split_ascii_whitespace().filter_map(|child| child.parse().ok());
        let found = children.into_iter().find(|&child: &u32| {
            tracer == Some(child) && is_copy(child, pid)
                || linux_proc_stat::read(&proc_path(child, "comm"))
                    .is_ok_and(|name| name.trim_ascii_end() == b"createdump")
        });
        if found.is_some() {
            return found;
        }
    }
    None
}

fn is_copy(child: u32, parent: u32) -> bool {
    let program = |pid| fs::read_link(proc_path(pid, "exe")).ok();
    program(child).is_some_and(|of_child| program(parent) == Some(of_child))
}
