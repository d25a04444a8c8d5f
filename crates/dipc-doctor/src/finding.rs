use std::fmt;

use crate::{Check, Evidence, Fix};

/// The findings of [`examine`](crate::examine) about one process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Examination {
    /// The process.
    pub pid: u32,
    /// The name of the process, if it exists.
    pub name: Option<String>,
    /// The version of its runtime: the reported one, otherwise the one in its files.
    pub runtime: Option<String>,
    /// True if its runtime answered.
    pub reachable: bool,
    /// The findings, causes before effects.
    pub findings: Vec<Finding>,
}

/// The outcome of one check.
///
/// ```
/// use dipc_doctor::{Check, Evidence, Finding, Fix, Status};
///
/// // For a test of a program that shows findings.
/// let musl = Evidence::Musl { runtime_identifier: "linux-musl-x64".to_owned() };
/// let finding = Finding::new(Status::Warning, musl).with_fix(Fix::ListProcesses);
/// assert_eq!((finding.check, finding.status.name()), (Check::Platform, "warning"));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// The result of the check.
    pub status: Status,
    /// The facts that the result rests on.
    pub evidence: Evidence,
    /// The action that fixes it, if any.
    pub fix: Option<Fix>,
}

/// The result of a check, ordered from good to bad.
///
/// ```
/// use dipc_doctor::Status;
///
/// // An exit code by the worst finding.
/// let worst = [Status::Ok, Status::Warning, Status::Unknown].into_iter().max();
/// assert_eq!(worst, Some(Status::Warning));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums, reason = "a caller handles each, as exit codes do")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Not visible from here.
    Unknown,
    /// The process can be reached, but a command or another tool will fail.
    Warning,
    /// This keeps the process from being reached.
    Problem,
}

impl Status {
    /// Returns the status as a word: `ok`, `unknown`, `warning` or `problem`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Finding {
    /// Returns a finding of the check that `evidence` belongs to.
    pub fn new(status: Status, evidence: Evidence) -> Self {
        Self { check: evidence.check(), status, evidence, fix: None }
    }

    pub(crate) fn ok(evidence: Evidence) -> Self {
        Self::new(Status::Ok, evidence)
    }

    pub(crate) fn unknown(evidence: Evidence) -> Self {
        Self::new(Status::Unknown, evidence)
    }

    pub(crate) fn warning(evidence: Evidence) -> Self {
        Self::new(Status::Warning, evidence)
    }

    pub(crate) fn problem(evidence: Evidence) -> Self {
        Self::new(Status::Problem, evidence)
    }

    /// Returns the finding with an action that fixes it.
    #[must_use]
    pub fn with_fix(self, fix: Fix) -> Self {
        Self { fix: Some(fix), ..self }
    }
}
