//! Findings about .NET processes that diagnostic tools cannot see or reach.
//!
//! **Use it** to explain to a user why a .NET process cannot be seen or attached to. **Not for** the
//! attachment itself: `dipc-client` does it.
//!
//! Features: none. Rust 1.89 or later.
//!
//! [`find_candidates`] lists the processes that look like .NET, reachable or not. [`examine`] checks one of
//! them and returns a [`Finding`] for each check: its [`Status`], the [`Evidence`] and the [`Fix`].
//! [`check_host`] checks the facts that all processes share. Findings are data: the program that shows them
//! supplies the words.
//!
//! Facts are gathered first and judged afterwards. The process receives one request, ProcessInfo; nothing
//! about it is changed. Linux shows the most; elsewhere much is [`Status::Unknown`].
//!
//! ```no_run
//! use std::path::Path;
//!
//! use dipc_doctor::Status;
//!
//! let tmpdir = Path::new("/tmp");
//! for pid in dipc_doctor::find_candidates(&dipc_transport::discover()) {
//!     let examination = dipc_doctor::examine(pid, tmpdir, dipc_client::Timeouts::default());
//!     for finding in examination.findings.iter().filter(|finding| finding.status == Status::Problem) {
//!         println!("process {pid}: {}: {:?}, fix: {:?}", finding.check, finding.evidence, finding.fix);
//!     }
//! }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod check;
mod evidence;
mod finding;
mod fix;

mod candidates;
mod checks;
mod facts;
mod tracing_rights;

use std::path::Path;

use dipc_client::Timeouts;

use self::facts::Facts;

pub use candidates::{
    candidates, entry_assembly, find_by_name, find_candidates, find_runtimes, has_runtime, runtime_version,
};
pub use check::Check;
pub use checks::{check_host, find_foreign_sockets};
pub use evidence::{
    AnswerEvidence, Evidence, MissingSocketReason, ProcessEvidence, RuntimeEvidence, RuntimeKind,
    SamplingEvidence, SamplingExtent, SamplingObstacle, SettingsEvidence, SocketEvidence,
    StaleSocketsEvidence, StartupEvidence, SuspendReason, TimeoutReason, TmpdirEvidence, UserEvidence,
    VersionSupport,
};
pub use finding::{Examination, Finding, Status};
pub use fix::Fix;
pub use tracing_rights::{TracingAccess, TracingObstacle};

pub use {dipc_client, dipc_transport};

/// Examines one process. Waits for its answer for at most [`Timeouts::connect`] and [`Timeouts::request`].
///
/// `own_tmpdir` is the folder for temporary files of this process, where other tools look by default.
///
/// ```
/// use dipc_doctor::Status;
/// use std::path::Path;
///
/// // This test is a process, and not a .NET one.
/// let timeouts = dipc_client::Timeouts::default();
/// let examination = dipc_doctor::examine(std::process::id(), Path::new("/tmp"), timeouts);
/// assert!(!examination.reachable);
/// let problem = examination.findings.iter().find(|finding| finding.status == Status::Problem);
/// println!("{:?}", problem.map(|finding| (finding.check, &finding.evidence, &finding.fix)));
/// ```
pub fn examine(pid: u32, own_tmpdir: &Path, timeouts: Timeouts) -> Examination {
    checks::judge(&Facts::gather(pid, own_tmpdir, timeouts))
}

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
