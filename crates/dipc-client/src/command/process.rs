use std::thread;
use std::time::{Duration, Instant};

use dipc_transport::Deadline;
use dipc_wire::{
    Command as _, ProcessInfo1, ProcessInfo2, ProcessInfo3, ResumeRuntime, SessionId, StopTracing,
};

use crate::process_view::ProcessView;
use crate::{Error, ProcessInfo, Target};

/// The interval between checks whether the program has begun.
const STARTUP_POLL: Duration = Duration::from_millis(5);

impl Target {
    /// Returns what the runtime reports about its process, with the newest of ProcessInfo3, 2 and 1 that it
    /// knows. All of them together may take [`Timeouts::request`](crate::Timeouts).
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// let info = target.info()?;
    /// println!("pid {} runs on {} {:?}", info.process_id, info.os, info.clr_version);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownCommand`] from .NET Core 3.1, which knows none of them. [`Error::Refused`] from a
    /// process with a command line of more than about 32,700 characters: the answer does not fit a message,
    /// so that the runtime refuses to give any of it. [`Error::is_answer`] is true of both.
    pub fn info(&self) -> Result<ProcessInfo, Error> {
        let deadline = self.request_deadline();
        if let Some((reply, _)) = self.try_request(&ProcessInfo3, deadline)? {
            return Ok(ProcessInfo::from_3(reply, ProcessInfo3::NAME));
        }
        if let Some((reply, _)) = self.try_request(&ProcessInfo2, deadline)? {
            return Ok(ProcessInfo::from_2(reply, ProcessInfo2::NAME));
        }
        match self.try_request(&ProcessInfo1, deadline)? {
            Some((reply, _)) => Ok(ProcessInfo::from_1(reply, ProcessInfo1::NAME)),
            None => Err(self.unknown_command(ProcessInfo1::NAME)),
        }
    }

    /// Returns true if the runtime answers commands, whether or not it can describe its process
    /// ([`info`](Self::info)).
    pub fn answers(&self) -> bool {
        self.info().map_or_else(|error| error.is_answer(), |_| true)
    }

    /// Waits until the program has begun, and returns [`info`](Self::info) with its complete command line.
    ///
    /// While CoreCLR is suspended, and after [`resume`](Self::resume) for as long as it initialises (44 ms on
    /// an idle machine, 0.4 s on a busy one), the command line is only the path of the executable. It is
    /// complete once it is anything else. NativeAOT always returns only the path and is not waited for: it
    /// has neither CoreCLR's library nor its threads. If the process is not visible from here, and on systems
    /// other than Linux, a command line with a space in it is assumed to be complete.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// use std::time::Duration;
    /// use dipc_client::Deadline;
    ///
    /// let info = target.info_when_started(Deadline::after(Duration::from_secs(60)))?;
    /// assert_eq!(info.command_line, simulated.identity().command_line);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotStarted`] at the deadline; `info` then still returns the known part. Errors of `info`.
    pub fn info_when_started(&self, deadline: Deadline) -> Result<ProcessInfo, Error> {
        let started = Instant::now();
        let view = self.view()?;
        loop {
            let info = self.info()?;
            if has_whole_command_line(&info.command_line, view.as_ref()) {
                return Ok(info);
            }
            if deadline.is_over() {
                let (command, address) = (info.command, self.address().clone());
                return Err(Error::NotStarted { command, address, after: started.elapsed() });
            }
            thread::sleep(deadline.remaining().map_or(STARTUP_POLL, |left| left.min(STARTUP_POLL)));
        }
    }

    /// Resumes a runtime that was started suspended. Without effect on a running one.
    ///
    /// The runtime answers before the program begins: [`info`](Self::info) has the command line without
    /// arguments for a while, [`info_when_started`](Self::info_when_started) waits for the complete one.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().suspended().start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// // Once everything before the program is set up:
    /// target.resume()?;
    /// assert!(!simulated.state().suspended);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resume(&self) -> Result<(), Error> {
        self.send_command(&ResumeRuntime, self.request_deadline())
    }

    /// Stops a session of which only the id is known, such as a session that another program left running.
    ///
    /// The runtime answers when a client has read the stream to its end, within
    /// [`Timeouts::stop`](crate::Timeouts). It does not report whether the session existed, and an ended
    /// session's id may be another session's by now. Without a reader of the stream, .NET Core 3.1 was seen
    /// to end with a segmentation fault. For sessions of this program there is
    /// [`Session::stopper`](crate::Session::stopper).
    pub fn stop(&self, session: SessionId) -> Result<(), Error> {
        let deadline = Deadline::after(self.timeouts().stop);
        match self.try_request(&StopTracing { session }, deadline)? {
            Some(_) => Ok(()),
            None => Err(self.unknown_command(StopTracing::NAME)),
        }
    }
}

/// Returns true if a runtime with this command line has begun its program, or never reports another one.
fn has_whole_command_line(command_line: &str, view: Option<&ProcessView>) -> bool {
    match view.and_then(|view| Some((view, view.executable().ok()?))) {
        Some((view, executable)) => Some(command_line) != executable.to_str() || !view.runs_coreclr(),
        None => command_line.contains(' '),
    }
}
