use std::thread;
use std::time::{Duration, Instant};

use dipc_transport::Deadline;
use dipc_wire::{
    Command as _, ProcessInfo1, ProcessInfo2, ProcessInfo3, ResumeRuntime, SessionId, StopTracing,
};

use crate::process_view::ProcessView;
use crate::{Error, ProcessInfo, Target};

/// Between two questions whether the program has begun.
const STARTUP_POLL: Duration = Duration::from_millis(5);

impl Target {
    /// Returns what the runtime says about its process: by ProcessInfo3, or 2, or 1, whichever it knows. All of them together may take
    /// [`Timeouts::request`](crate::Timeouts).
    ///
    /// # Errors
    /// [`Error::UnknownCommand`] from .NET Core 3.1, which knows none of them.
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

    /// Waits until the program has begun, and returns [`info`](Self::info) with its whole command line.
    ///
    /// While CoreCLR is suspended, and after [`resume`](Self::resume) for as long as it initialises (44 ms on an idle machine, 0.4 s on a
    /// busy one), the command line is the path of the executable alone. It is whole once it is anything else. NativeAOT gives the
    /// path alone for good and is not waited for; it has neither CoreCLR's library nor its threads. Where the
    /// process cannot be seen from here, and away from Linux, a command line with a space in it is taken for whole.
    ///
    /// # Errors
    /// [`Error::NotStarted`] at the deadline; `info` then still gives what is known. Those of `info`.
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

    /// Resumes a runtime that was started suspended. Without effect on one that runs already.
    ///
    /// The runtime answers before the program begins: [`info`](Self::info) has the command line without arguments for a while,
    /// [`info_when_started`](Self::info_when_started) waits for the whole one.
    pub fn resume(&self) -> Result<(), Error> {
        self.send_command(&ResumeRuntime, self.request_deadline())
    }

    /// Stops a session of which only the id is known, such as one that another program left running.
    ///
    /// The runtime answers when a client has read the stream to its end, within [`Timeouts::stop`](crate::Timeouts). It
    /// does not say whether there was such a session, and an id that has ended may be another session's by now. With
    /// no reader of the stream left, .NET Core 3.1 was seen to end with a segmentation fault. For sessions of one's own
    /// there is [`Session::stopper`](crate::Session::stopper).
    pub fn stop(&self, session: SessionId) -> Result<(), Error> {
        let deadline = Deadline::after(self.timeouts().stop);
        match self.try_request(&StopTracing { session }, deadline)? {
            Some(_) => Ok(()),
            None => Err(self.unknown_command(StopTracing::NAME)),
        }
    }
}

/// Whether a runtime that gives this command line has begun its program, or gives no other.
fn has_whole_command_line(command_line: &str, view: Option<&ProcessView>) -> bool {
    match view.and_then(|view| Some((view, view.executable().ok()?))) {
        Some((view, executable)) => Some(command_line) != executable.to_str() || !view.runs_coreclr(),
        None => command_line.contains(' '),
    }
}
