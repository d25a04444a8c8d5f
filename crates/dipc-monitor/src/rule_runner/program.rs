//! Programs that rules run.

use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use dipc_collect::StopSignal;

/// Maximum wait between checks for the end of a program.
const TICK: Duration = Duration::from_millis(50);

/// Runs a program to its end, and returns its exit code. The program does not get input, and its output is
/// dropped. When it is to stop, it is killed.
pub(super) fn run(path: &str, arguments: &[String], stop: &StopSignal) -> Result<i32, String> {
    if !std::path::Path::new(path).is_file() {
        return Err(format!("{path} is not a file"));
    }
    let failed = |error: std::io::Error| format!("{path}: {error}");
    let mut child = Command::new(path)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let mut wait = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(exit_code(status));
        }
        if stop.is_stopped() {
            let killed = child.kill().and_then(|()| child.wait());
            return Err(killed.map_or_else(failed, |_| format!("{path} was killed")));
        }
        thread::sleep(wait);
        wait = (wait * 2).min(TICK);
    }
}

/// The exit code; for a program that a signal ended, as shells and .NET have it, 128 and the signal.
fn exit_code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return signal.saturating_add(128);
    }
    status.code().unwrap_or(-1)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(command: &str) -> Result<i32, String> {
        run("/bin/sh", &["-c".to_owned(), command.to_owned()], &StopSignal::new())
    }

    #[test]
    fn exit_codes_match_dotnet() {
        assert_eq!((shell("exit 0"), shell("exit 7"), shell("kill -9 $$")), (Ok(0), Ok(7), Ok(137)));
        assert!(run("/nowhere/x", &[], &StopSignal::new()).unwrap_err().contains("is not a file"));
    }

    #[test]
    fn a_program_that_has_to_stop_is_killed() {
        let stop = StopSignal::new();
        stop.stop();
        let error = run("/bin/sh", &["-c".to_owned(), "exec sleep 1000".to_owned()], &stop).unwrap_err();
        assert!(error.contains("was killed"), "{error}");
    }
}
