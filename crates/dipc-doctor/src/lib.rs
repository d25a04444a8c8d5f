//! Why a process cannot be seen or reached: what is known of it from outside, and what follows from that.
//!
//! [`candidates`] lists the processes that look like .NET, whether they can be reached or not; [`examine`] looks at one of
//! them and says of each thing that could be wrong whether it is, with the cause and what can be done. [`check_host`]
//! looks at what concerns all of them. Only Linux shows enough; elsewhere much is [`Status::Unknown`].
//!
//! Facts are gathered first and judged afterwards (`checks`, which touch nothing). The process is asked one question,
//! ProcessInfo; nothing about it is changed.

#![forbid(unsafe_code)]

mod checks;
mod facts;
mod finding;
mod survey;

use std::path::Path;

use dipc_client::Timeouts;

use self::facts::Facts;

pub use finding::{Check, Examination, Finding, Status};
pub use survey::{candidates, check_host, named};

/// Looks at one process. It is waited for its answer at most for [`Timeouts::connect`] and [`Timeouts::request`].
///
/// `our_tmpdir` is the folder for temporary files in our own environment, where other tools would look.
pub fn examine(pid: u32, our_tmpdir: &Path, timeouts: Timeouts) -> Examination {
    checks::judge(&Facts::gather(pid, our_tmpdir, timeouts))
}
