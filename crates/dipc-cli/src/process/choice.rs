//! The choice of a process by a user at a terminal.

use std::io::{self, BufRead as _, IsTerminal as _};

use dipc_transport::Endpoint;

use crate::process::candidates;
use crate::render::{messages, width};

/// The number of invalid answers after which the error is printed instead.
const ATTEMPTS: usize = 3;
/// Maximum length of a line of input, in bytes.
const MAX_LENGTH: u64 = 1000;

/// Lists the reachable processes, and reads the user's choice. `None` if input or output is not a terminal,
/// without any process, or without an answer.
pub(crate) fn choose() -> Option<u32> {
    if !io::stdin().is_terminal() || width::of_output().is_none() || width::of_errors().is_none() {
        return None;
    }
    let endpoints = dipc_transport::discover().endpoints;
    if endpoints.is_empty() {
        return None;
    }
    messages::note("Which process?");
    for (number, line) in (1..).zip(candidates::lines(&endpoints)) {
        messages::note(if number <= endpoints.len() { format!("{number:>3}{line}") } else { line });
    }
    for _ in 0..ATTEMPTS {
        messages::prompt("Number or process id: ");
        let answer = read_line()?;
        match chosen(&answer, &endpoints) {
            Some(pid) => return Some(pid),
            None if answer.trim().is_empty() => return None,
            None => messages::note(format_args!("'{}' is not one of them", answer.trim())),
        }
    }
    None
}

/// Reads a line; `None` at the end of the input.
fn read_line() -> Option<String> {
    let mut line = Vec::new();
    let length = io::Read::take(io::stdin().lock(), MAX_LENGTH).read_until(b'\n', &mut line).ok()?;
    (length > 0).then(|| String::from_utf8_lossy(&line).into_owned())
}

/// Returns the process with a number in the list, or with a pid. A pid takes precedence, because users'
/// scripts give pids.
fn chosen(answer: &str, endpoints: &[Endpoint]) -> Option<u32> {
    let number: u32 = answer.trim().parse().ok()?;
    let of_pid = endpoints.iter().find(|endpoint| endpoint.pid == number);
    let of_place = || endpoints.get(usize::try_from(number).ok()?.checked_sub(1)?);
    of_pid.or_else(of_place).map(|endpoint| endpoint.pid)
}
