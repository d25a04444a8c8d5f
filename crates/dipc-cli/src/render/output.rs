//! Standard output, which carries results and nothing else.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};

use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::render::escape::escape_output;

/// Writes text to standard output, with colours only if they can be shown, and nothing that controls a
/// terminal.
pub(crate) fn print(text: impl fmt::Display) -> Result<(), Failure> {
    if interrupt::is_cancelled() {
        return Err(Failure::new(Exit::Failed, "interrupted"));
    }
    let text = text.to_string();
    #[allow(clippy::disallowed_methods, reason = "escaped on this line")]
    let mut out = anstream::stdout().lock();
    write!(out, "{}", escape_output(&text)).and_then(|()| out.flush()).map_err(|error| failed(&error))
}

/// Returns standard output for bytes written piece by piece, which their writers have escaped: lines of
/// events, profiles.
#[allow(clippy::disallowed_methods, reason = "the one place")]
pub(crate) fn stream() -> io::StdoutLock<'static> {
    io::stdout().lock()
}

/// Returns true if the reader of standard output has closed it, which a program with nothing to write would
/// not notice.
#[cfg(unix)]
pub(crate) fn is_closed() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let out = stream();
    let mut watched = [PollFd::new(&out, PollFlags::empty())];
    let gone = PollFlags::ERR | PollFlags::HUP;
    poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
        .is_ok_and(|_| watched[0].revents().intersects(gone))
}

/// The next write notices it.
#[cfg(not(unix))]
pub(crate) const fn is_closed() -> bool {
    false
}

/// Refuses to write machine-readable output to a terminal.
pub(crate) fn refuse_terminal(what: &str) -> Result<(), Failure> {
    if stream().is_terminal() {
        return Err(Failure::usage(format_args!(
            "write: standard output: {what} is not shown on a terminal"
        ))
        .with_help("redirect it, or name a file with -o"));
    }
    Ok(())
}

/// Writes a value as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(Exit::Failed, format_args!("write: standard output: {error}")))?;
    print(format_args!("{text}\n"))
}

/// Converts an error of writing to standard output. A reader that has seen enough (`| head`) is not a
/// failure, and ends the program without a message.
pub(crate) fn failed(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::closed_output();
    }
    Failure::new(Exit::Failed, format_args!("write: standard output: {error}"))
}
