//! A stub for systems and processors without kernel samples.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use nettrace::Event;

use super::{KernelRecording, SampleSettings, ThreadSnapshot};
use crate::exit::{Exit, Failure};

/// A sampler, which cannot exist here.
#[derive(Debug)]
pub(crate) struct KernelSampler(Infallible);

impl KernelSampler {
    pub(crate) fn start(_: u32, _: SampleSettings, _: &Path) -> Result<Self, Failure> {
        Err(unavailable())
    }

    pub(crate) fn spawn(
        mut command: Command,
        _: SampleSettings,
        _: &Path,
    ) -> io::Result<(Child, Result<Self, Failure>)> {
        Ok((command.spawn()?, Err(unavailable())))
    }

    pub(crate) fn pid(&self) -> u32 {
        match self.0 {}
    }

    pub(crate) fn description(&self) -> &str {
        match self.0 {}
    }

    pub(crate) fn is_over(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn finish(self) -> Result<KernelRecording, Failure> {
        match self.0 {}
    }
}

/// Samples that are read while they are taken, which cannot exist here.
#[derive(Debug)]
pub(crate) struct LiveSamples(Infallible);

impl LiveSamples {
    pub(crate) fn start(_: u32, _: u32, _: bool) -> Result<Self, Failure> {
        Err(unavailable())
    }

    pub(crate) fn description(&self) -> &str {
        match self.0 {}
    }

    pub(crate) fn is_over(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn read(&mut self, _: impl FnMut(&Event<'_>)) {
        match self.0 {}
    }

    pub(crate) fn finish(self, _: impl FnMut(&Event<'_>)) {
        match self.0 {}
    }
}

pub(crate) fn snapshot(
    _: u32,
    _: Duration,
    _: impl FnMut(&Event<'_>, bool),
) -> Result<Vec<ThreadSnapshot>, Failure> {
    Err(unavailable())
}

fn unavailable() -> Failure {
    Failure::new(Exit::Failed, "kernel's samples: they are available only on Linux, on x86-64 and aarch64")
}

/// Never called: only Linux has such samples.
pub(crate) fn merge_into(_: &Path, _: KernelRecording) -> Result<(), Failure> {
    Ok(())
}
