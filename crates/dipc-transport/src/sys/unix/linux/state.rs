use std::fs;
use std::io;

use super::process::{Process, file_of, has_ended, read};
use crate::ProcessState;

/// Reads `/proc/PID/status`, and looks for a `createdump` among the children.
pub(crate) fn process_state(pid: u32) -> io::Result<ProcessState> {
    let status = match read(&file_of(pid, "status")) {
        Ok(status) => status,
        Err(error) if has_ended(&error) => return Ok(ProcessState::Gone),
        Err(error) => return Err(error),
    };
    let status = String::from_utf8_lossy(&status);
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
    let state = field("State").and_then(|state| state.chars().next());
    if matches!(state, Some('Z' | 'X')) {
        return Ok(ProcessState::Zombie);
    }
    // Before the tracer: `createdump` traces the process, too.
    if let Some(createdump) = dumping_child(pid) {
        return Ok(ProcessState::Dumping { createdump });
    }
    Ok(match state {
        Some('t') => {
            let tracer = field("TracerPid").and_then(|pid| pid.parse().ok()).filter(|&pid: &u32| pid != 0);
            let name = tracer.and_then(|pid| Process::read(pid).ok()?).map(|process| process.name());
            ProcessState::Traced { tracer, name }
        }
        Some('T') => ProcessState::Stopped,
        _ => ProcessState::Running,
    })
}

/// The child that a runtime starts to write a dump, whichever of its threads started it.
fn dumping_child(pid: u32) -> Option<u32> {
    // As many threads as a runtime has in earnest; what has more is looked at no further.
    const THREADS: usize = 4096;
    for task in fs::read_dir(file_of(pid, "task")).ok()?.take(THREADS).flatten() {
        // Where the kernel does not list children (CONFIG_PROC_CHILDREN) it is not known.
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let children = children.split_ascii_whitespace().filter_map(|child| child.parse().ok());
        let found = children.into_iter().find(|&child: &u32| {
            read(&file_of(child, "comm")).is_ok_and(|name| name.trim_ascii_end() == b"createdump")
        });
        if found.is_some() {
            return found;
        }
    }
    None
}
