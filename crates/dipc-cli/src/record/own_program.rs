//! This program in a process of its own: reading an untrusted file may fail there in any way.

use std::env;
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The time between looks at the process.
const TICK: Duration = Duration::from_millis(10);

/// Returns a command that starts this program, without input.
///
/// # Errors
/// If the file of this program is not known.
pub(crate) fn command() -> io::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.stdin(Stdio::null());
    Ok(command)
}

/// Runs a command to its end. Returns its status; `None` if it took longer than `limit`, and was killed.
///
/// # Errors
/// If the program cannot be started or waited for.
pub(crate) fn run(command: &mut Command, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            // It may have ended by itself in between.
            let _ = child.kill();
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(TICK);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Option<i32> {
        run(Command::new("/bin/sh").args(["-c", script]), limit).unwrap().map(|status| status.code().unwrap())
    }

    #[test]
    fn kills_a_program_at_the_end_of_its_time() {
        assert_eq!(shell("exit 7", Duration::from_secs(60)), Some(7));
        assert_eq!(shell("exec sleep 1000", Duration::ZERO), None);
    }
}
