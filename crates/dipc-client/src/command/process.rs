use dipc_wire::{
    Command as _, ProcessInfo1, ProcessInfo2, ProcessInfo3, ResumeRuntime, SessionId, StopTracing,
};

use crate::{Error, ProcessInfo, Target};

impl Target {
    /// What the process is: ProcessInfo3, or 2, or 1, whichever the runtime knows.
    ///
    /// # Errors
    /// [`Error::Unknown`] from .NET Core 3.1, which knows none of them.
    pub fn info(&self) -> Result<ProcessInfo, Error> {
        if let Some((reply, _)) = self.ask_if_known(&ProcessInfo3, self.request_deadline())? {
            return Ok(ProcessInfo::from_3(reply, ProcessInfo3::NAME));
        }
        if let Some((reply, _)) = self.ask_if_known(&ProcessInfo2, self.request_deadline())? {
            return Ok(ProcessInfo::from_2(reply, ProcessInfo2::NAME));
        }
        match self.ask_if_known(&ProcessInfo1, self.request_deadline())? {
            Some((reply, _)) => Ok(ProcessInfo::from_1(reply, ProcessInfo1::NAME)),
            None => Err(self.unknown(ProcessInfo1::NAME)),
        }
    }

    /// Lets a runtime run that was started suspended. One that runs already is not concerned.
    pub fn resume(&self) -> Result<(), Error> {
        self.order(&ResumeRuntime, self.request_deadline())
    }

    /// Stops a session of which only the id is known, such as one that another program left running.
    ///
    /// The runtime answers when somebody has read the stream to its end, within [`Timeouts::stop`](crate::Timeouts). It
    /// does not say whether there was such a session, and an id that has ended may be another session's by now. With
    /// nobody left to read the stream, .NET Core 3.1 was seen to end with a segmentation fault. For sessions of one's own
    /// there is [`Session::stopper`](crate::Session::stopper).
    pub fn stop(&self, session: SessionId) -> Result<(), Error> {
        let deadline = dipc_transport::Deadline::after(self.timeouts().stop);
        match self.ask_if_known(&StopTracing { session }, deadline)? {
            Some(_) => Ok(()),
            None => Err(self.unknown(StopTracing::NAME)),
        }
    }
}
