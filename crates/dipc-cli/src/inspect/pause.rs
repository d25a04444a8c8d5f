//! Processes that are stopped while they are read.

use std::collections::BTreeMap;
use std::time::Duration;

use clr_dump::Registers;

use crate::exit::{Exit, Failure};
use crate::inspect::core_source::Source;
use crate::render::{messages, units};

/// A process that is stopped while its memory is read.
pub(crate) struct Pause {
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    stopped: Option<linux_sampler::StoppedProcess>,
    limit: Duration,
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
impl Pause {
    /// Stops a process for at most `limit`.
    pub(crate) fn begin(source: &Source, limit: Duration) -> Result<Self, Failure> {
        let Some(pid) = source.pid() else {
            return Err(Failure::usage("--stop is for a process: a core dump does not run"));
        };
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Exit::Failed, format_args!("--stop: process {pid}: {error}"))
        };
        let number = i32::try_from(pid).map_err(|error| failed(&error))?;
        let stopped = linux_sampler::StoppedProcess::stop(number, limit).map_err(|error| failed(&error))?;
        Ok(Self { stopped: Some(stopped), limit })
    }

    /// The registers of its threads.
    pub(crate) fn registers(&self) -> BTreeMap<u32, Registers> {
        let threads = self.stopped.as_ref().map(linux_sampler::StoppedProcess::threads).unwrap_or_default();
        let of = |thread: &linux_sampler::StoppedThread| {
            let registers = Registers::of_user(clr_dump::Processor::of_this_machine()?, &thread.registers)?;
            Some((thread.tid.try_into().ok()?, registers))
        };
        threads.iter().filter_map(of).collect()
    }

    /// Lets the process run on once its time is over.
    pub(crate) fn look(&mut self) {
        if let Some(stopped) = self.stopped.take_if(|stopped| stopped.elapsed() >= self.limit) {
            let time = stopped.resume();
            messages::warning(format_args!(
                "--stop: after {} the process continues, and what it changes from then on can be missing",
                units::time(time)
            ));
        }
    }

    /// Lets the process run on, and returns the time for which it was stopped.
    pub(crate) fn end(self) {
        if let Some(stopped) = self.stopped {
            let time = stopped.resume();
            messages::note(format_args!("Stopped        : the process, for {}", units::time(time)));
        }
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
impl Pause {
    /// Stops a process for at most `limit`.
    pub(crate) fn begin(_: &Source, _: Duration) -> Result<Self, Failure> {
        Err(Failure::usage("--stop: only on Linux"))
    }

    pub(crate) fn registers(&self) -> BTreeMap<u32, Registers> {
        BTreeMap::new()
    }

    pub(crate) fn look(&mut self) {}

    /// Lets the process run on, and returns the time for which it was stopped.
    pub(crate) fn end(self) {}
}
