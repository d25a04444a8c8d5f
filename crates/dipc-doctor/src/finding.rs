use std::fmt;

/// What [`examine`](crate::examine) found out about one process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Examination {
    /// The process.
    pub pid: u32,
    /// Its name, if there is such a process.
    pub name: Option<String>,
    /// The version of its runtime, if it says it or its files do.
    pub runtime: Option<String>,
    /// Whether its runtime answered.
    pub reachable: bool,
    /// What was looked at, in the order in which one thing leads to the next.
    pub findings: Vec<Finding>,
}

/// The outcome of one check, in words for people.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What was looked at.
    pub check: Check,
    /// Whether it is as it should be.
    pub status: Status,
    /// What was seen.
    pub seen: String,
    /// Why it is so, or what follows from it.
    pub cause: Option<String>,
    /// What can be done about it.
    pub fix: Option<String>,
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// As it should be.
    Ok,
    /// It could not be seen.
    Unknown,
    /// The process can be reached all the same, but something will not work, or not with other tools.
    Warning,
    /// This keeps the process from being reached.
    Problem,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// Whether there is such a process.
    Process,
    /// Whose it is, and whether we may look into it.
    User,
    /// Whether it has pids or files of its own: a container.
    Container,
    /// Whether it is .NET, and which kind.
    Runtime,
    /// What runtimes of this version know.
    Version,
    /// For which C library it was built.
    Platform,
    /// Whether its environment switches diagnostics off.
    Settings,
    /// Whether it waits at its start, and for whom.
    Startup,
    /// Where it puts temporary files, and where we do.
    Tmpdir,
    /// Its diagnostic socket.
    Socket,
    /// Sockets that others left behind or planted.
    StaleSockets,
    /// What keeps it from answering.
    State,
    /// Whether it answers.
    Answer,
    /// Whether it can write dumps.
    Createdump,
}

impl Status {
    /// The word for it.
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

impl Check {
    /// The word for it, which scripts may rely on.
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::User => "user",
            Self::Container => "container",
            Self::Runtime => "runtime",
            Self::Version => "version",
            Self::Platform => "platform",
            Self::Settings => "settings",
            Self::Startup => "startup",
            Self::Tmpdir => "tmpdir",
            Self::Socket => "socket",
            Self::StaleSockets => "stale-sockets",
            Self::State => "state",
            Self::Answer => "answer",
            Self::Createdump => "createdump",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Finding {
    fn new(check: Check, status: Status, seen: impl Into<String>) -> Self {
        Self { check, status, seen: seen.into(), cause: None, fix: None }
    }

    pub(crate) fn ok(check: Check, seen: impl Into<String>) -> Self {
        Self::new(check, Status::Ok, seen)
    }

    pub(crate) fn unknown(check: Check, seen: impl Into<String>) -> Self {
        Self::new(check, Status::Unknown, seen)
    }

    pub(crate) fn warning(check: Check, seen: impl Into<String>) -> Self {
        Self::new(check, Status::Warning, seen)
    }

    pub(crate) fn problem(check: Check, seen: impl Into<String>) -> Self {
        Self::new(check, Status::Problem, seen)
    }

    pub(crate) fn because(self, cause: impl Into<String>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    pub(crate) fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}
