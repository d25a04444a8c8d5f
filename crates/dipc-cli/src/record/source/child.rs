//! A program that is started to be recorded.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::process::{self, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dipc_client::PortServer;
#[cfg(target_os = "linux")]
use dipc_transport::ProcessState;

use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::render::{messages, units};

/// The time between checks for the end of the child.
const TICK: Duration = Duration::from_millis(20);
/// The wait after which a note tells the user about it.
const PATIENCE: Duration = Duration::from_secs(1);

/// The program. It is killed when this is dropped, unless its end was waited for: nothing else would end it.
#[derive(Debug)]
pub(crate) struct Child {
    process: Arc<Mutex<Process>>,
    errors: Arc<Mutex<Vec<u8>>>,
    name: String,
}

/// Access to the end of the program, for describing it.
#[derive(Debug, Clone)]
pub(crate) struct ChildEnd {
    process: Arc<Mutex<Process>>,
    errors: Arc<Mutex<Vec<u8>>>,
}

/// The number of last bytes kept of its standard error.
const MAX_ERRORS: usize = 16 << 10;

/// The way in which a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndStatus {
    /// The program exited with a code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    Unknown,
}

impl EndStatus {
    fn of(status: ExitStatus) -> Self {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return Self::Signal(signal);
        }
        status.code().map_or(Self::Unknown, Self::Code)
    }

    /// The end of a process of another parent, which has not waited for it yet; `None` if the system does not
    /// say.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_zombie(pid: u32) -> Option<Self> {
        let line = linux_proc_stat::read(&linux_proc_stat::process_folder(pid).join("stat")).ok()?;
        let stat = linux_proc_stat::Stat::parse(&line).filter(|stat| stat.state() == Some('Z'))?;
        // 0 is also that of a process that may not be traced.
        let status = stat.exit_status().filter(|status| *status != 0)?;
        Some(Self::of(std::os::unix::process::ExitStatusExt::from_raw(status)))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) const fn of_zombie(_: u32) -> Option<Self> {
        None
    }
}

impl fmt::Display for EndStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            // On Windows, the code of an exception.
            Self::Code(code) if cfg!(windows) => write!(f, "exit code {code} ({code:#x})"),
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => match units::signal_name(signal) {
                Some(name) => write!(f, "ended by signal {signal}, {name}"),
                None => write!(f, "ended by signal {signal}"),
            },
            Self::Unknown => f.write_str("not known"),
        }
    }
}

#[derive(Debug)]
struct Process {
    child: process::Child,
    /// True if it leads a process group, to which the programs that it starts belong.
    #[cfg(unix)]
    leads_group: bool,
}

impl Child {
    /// Starts it so that its runtime waits at the port. Its output goes to the terminal if `show_io` is set.
    /// Otherwise it is discarded, except for the end of its standard error, so that the program never waits
    /// for a reader. Without the terminal, it does not receive Ctrl-C: that ends the recording, and a program
    /// that ended at the same time would be gone before its runtime could name its methods.
    ///
    /// `spawn` starts the process.
    pub(crate) fn start(
        command: &[OsString],
        show_io: bool,
        port: &PortServer,
        spawn: impl FnOnce(Command) -> io::Result<process::Child>,
    ) -> Result<Self, Failure> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(Failure::usage("a program is needed after --"));
        };
        let name = program.to_string_lossy().into_owned();
        let io = || if show_io { Stdio::inherit() } else { Stdio::null() };
        let mut command = Command::new(program);
        let errors = if show_io { Stdio::inherit() } else { Stdio::piped() };
        command.args(arguments).stdin(io()).stdout(io()).stderr(errors);
        if !show_io {
            leave_terminal(&mut command);
        }
        port.configure(&mut command);
        match spawn(command) {
            Ok(mut child) => {
                let errors = Arc::new(Mutex::new(Vec::new()));
                if let Some(stream) = child.stderr.take() {
                    let errors = Arc::clone(&errors);
                    std::thread::spawn(move || keep_end(stream, &errors));
                }
                let process = Process {
                    child,
                    #[cfg(unix)]
                    leads_group: !show_io,
                };
                Ok(Self { process: Arc::new(Mutex::new(process)), errors, name })
            }
            Err(error) => Err(Failure::new(Exit::Failed, format_args!("start: {name}: {error}"))),
        }
    }

    /// Returns its exit code if it has ended; if a signal ended it, the code that a shell would give.
    pub(crate) fn try_code(&mut self) -> Result<Option<u8>, Failure> {
        let status = lock(&self.process)
            .child
            .try_wait()
            .map_err(|error| Failure::new(Exit::Failed, format_args!("wait for {}: {error}", self.name)))?;
        Ok(status.map(code))
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        lock(&self.process).child.id()
    }

    /// Returns access to its end.
    pub(crate) fn end(&self) -> ChildEnd {
        ChildEnd { process: Arc::clone(&self.process), errors: Arc::clone(&self.errors) }
    }

    /// Returns the failure for a program that ended before a runtime connected to the port.
    pub(crate) fn ended_without_runtime(&self, code: u8) -> Failure {
        Failure::new(
            Exit::Failed,
            format_args!(
                "record {}: it ended with code {code}, and no .NET runtime had connected",
                self.name
            ),
        )
        .with_help("is it a .NET program, of .NET Core 3 or later, and are its diagnostics enabled?")
    }

    /// Ends the program, and the programs that it has started, except those in other process groups.
    pub(crate) fn kill(&mut self) {
        lock(&self.process).kill();
    }

    /// Registers it to be killed if the user ends this program at once: nothing else would end it.
    pub(crate) fn kill_on_exit(&self, interrupts: &Interrupts) {
        let process = Arc::clone(&self.process);
        interrupts.before_exit(move || lock(&process).kill());
    }

    /// Waits for its end. It is killed by an interrupt during the wait, by the second interrupt overall, and
    /// when the terminal is gone.
    pub(crate) fn wait(mut self, interrupts: &Interrupts) -> Result<u8, Failure> {
        let (started, mut told) = (Instant::now(), false);
        // The first request, if any, ended the recording.
        let heeded = interrupts.count().min(1);
        loop {
            if let Some(code) = self.try_code()? {
                return Ok(code);
            }
            if interrupts.count() > heeded || interrupts.hung_up() {
                self.kill();
                continue;
            }
            if !told && started.elapsed() > PATIENCE {
                messages::note(format_args!("Waiting for {} to end; Ctrl-C ends it", self.name));
                told = true;
            }
            std::thread::sleep(TICK);
        }
    }
}

impl ChildEnd {
    /// Waits for the end; `None` if the program does not end within `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> Option<EndStatus> {
        let started = Instant::now();
        loop {
            match lock(&self.process).child.try_wait() {
                Ok(Some(status)) => return Some(EndStatus::of(status)),
                Ok(None) if started.elapsed() < limit => {}
                Ok(None) | Err(_) => return None,
            }
            std::thread::sleep(TICK);
        }
    }

    /// Returns the last bytes that it wrote to its standard error, if that is not the terminal.
    pub(crate) fn standard_error(&self) -> String {
        String::from_utf8_lossy(&self.errors.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

/// Reads a stream to its end, and keeps the last bytes.
fn keep_end(mut stream: impl Read, end: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let mut end = end.lock().unwrap_or_else(PoisonError::into_inner);
        end.extend_from_slice(&buffer[..count]);
        let excess = end.len().saturating_sub(MAX_ERRORS);
        end.drain(..excess);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Process {
    fn kill(&mut self) {
        // After the wait, its pid may belong to another process.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        #[cfg(unix)]
        if self.leads_group {
            let leader = rustix::process::Pid::from_child(&self.child);
            // The group may already have ended.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
        // A createdump outlives the process that it dumps. That of our own program may not be in its group.
        #[cfg(target_os = "linux")]
        if let Ok(ProcessState::Dumping { createdump }) = dipc_transport::process_state(self.child.id())
            && let Ok(createdump) = i32::try_from(createdump)
            && let Some(createdump) = rustix::process::Pid::from_raw(createdump)
        {
            let _ = rustix::process::kill_process(createdump, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A thread that panicked leaves no inconsistent state here.
fn lock(process: &Mutex<Process>) -> MutexGuard<'_, Process> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
fn leave_terminal(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    command.process_group(0);
}

#[cfg(windows)]
fn leave_terminal(command: &mut Command) {
    use std::os::windows::process::CommandExt as _;
    const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
    command.creation_flags(CREATE_NEW_PROCESS_GROUP);
}

#[cfg(unix)]
fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

#[cfg(not(unix))]
fn code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Such a program may hang, and is not in a group of its own if the program uses the terminal.
    #[test]
    fn a_createdump_of_a_program_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let createdump = folder.path().join("createdump");
        let cat = ["/bin/cat", "/usr/bin/cat"].into_iter().find(|cat| std::path::Path::new(cat).is_file());
        std::os::unix::fs::symlink(cat.unwrap(), &createdump).unwrap();
        let mut command = Command::new("sh");
        command.arg("-c").arg("\"$0\"; exit").arg(&createdump).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The program would end at the end of its input.
        let input = child.stdin.take();
        let state = |pid| dipc_transport::process_state(pid).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let createdump = loop {
            if let ProcessState::Dumping { createdump } = state(child.id()) {
                break createdump;
            }
            assert!(Instant::now() < deadline, "{:?}", state(child.id()));
            std::thread::sleep(TICK);
        };
        Process { child, leads_group: false }.kill();
        while !matches!(state(createdump), ProcessState::Gone | ProcessState::Zombie) {
            assert!(Instant::now() < deadline, "{:?}", state(createdump));
            std::thread::sleep(TICK);
        }
        drop(input);
    }
}
