//! The kernel's accounting of threads next to a recording, which `dipc trace` keeps for a process if it
//! samples its threads.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nettrace::TraceInfo;
use nettrace_export::KernelTimes;

use crate::inspect::names::companion_path;
use crate::inspect::recording::Recording;
use crate::render::messages;

/// Maximum number of seconds between the beginnings of a recording and of its account. Beyond it, the files
/// belong to different runs.
const MAX_START_DIFFERENCE: u64 = 60;

/// Returns the path of a recording's account: `app.threads.nettrace` for `app.nettrace`,
/// `app.1.threads.nettrace` for `app.1`.
pub(crate) fn threads_path(recording: &Path) -> PathBuf {
    companion_path(recording, "threads")
}

/// Returns the account next to a recording; `None` if it is missing, or of another process.
pub(crate) fn kernel_times_beside(recording: &Path) -> Option<KernelTimes> {
    let path = account_beside(recording)?;
    let (mut events, origin) = Recording::open_beside(&path).map_err(messages::warning).ok()?.into_parts();
    let mut times = KernelTimes::default();
    // The part that could be read is valid.
    if let Err(error) = events.for_each(|event| times.add(&event)) {
        messages::warning(origin.failed(&error));
    }
    messages::detail(format_args!(
        "Thread times   : {}, {} readings of the kernel's account",
        path.display(),
        times.rounds()
    ));
    Some(times)
}

/// Returns the path of the account of a recording, if it is of the same process and time.
fn account_beside(recording: &Path) -> Option<PathBuf> {
    let path = threads_path(recording);
    if !path.is_file() || !recording.is_file() {
        return None;
    }
    let info = |recording: Result<Recording, _>| recording.ok()?.events.info().cloned();
    if is_of(&info(Recording::open_beside(&path))?, &info(Recording::open(recording))?) {
        return Some(path);
    }
    messages::warning(format_args!(
        "{} is not used: it is of another process or time than {}",
        path.display(),
        recording.display()
    ));
    None
}

/// Copies the account of a recording for a recording made from it, which has the same clock.
pub(crate) fn carry_over(recording: &Path, made: &Path) {
    let Some(account) = account_beside(recording) else { return };
    let to = threads_path(made);
    match copy_new(&account, &to) {
        Ok(()) => messages::detail(format_args!("Thread times   : {} is a copy", to.display())),
        Err(error) => messages::warning(format_args!(
            "the kernel's account of threads in {} was not copied to {}: {error}",
            account.display(),
            to.display()
        )),
    }
}

/// Copies a file to a newly created one; an existing link is not followed.
fn copy_new(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = dipc_transport::open_regular(from)?;
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut copy = fs::File::create_new(to)?;
    io::copy(&mut source, &mut copy).map(drop)
}

/// Warns that the account of a recording is not copied into one made from it.
pub(crate) fn warn_if_left_behind(recording: &Path) {
    if let Some(path) = account_beside(recording) {
        messages::warning(format_args!(
            "the kernel's account of threads in {} does not go into the new recording: it will distinguish running threads from waiting ones less well",
            path.display()
        ));
    }
}

/// Returns true if an account belongs to the recorded process, judged by the headers.
fn is_of(account: &TraceInfo, recorded: &TraceInfo) -> bool {
    let apart = account.start_ticks.0.abs_diff(recorded.start_ticks.0);
    (account.process_id, account.frequency) == (recorded.process_id, recorded.frequency)
        && apart <= recorded.frequency.saturating_mul(MAX_START_DIFFERENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_times_file_is_next_to_the_recording() {
        for (recording, account) in [
            ("out/a.b.nettrace", "out/a.b.threads.nettrace"),
            ("out/a.1", "out/a.1.threads.nettrace"),
            ("out", "out.threads.nettrace"),
        ] {
            assert_eq!(threads_path(Path::new(recording)), Path::new(account));
        }
    }
}
