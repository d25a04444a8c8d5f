//! A stub for systems and processors without kernel samples.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use dipc_client::Target;
use dipc_client::dipc_wire::ProviderConfig;
use nettrace::Event;

use super::{
    ContinuousEvent, ContinuousSettings, ContinuousStatus, KernelRecording, MachineRecording, SampleError,
    SampleScope, SampleSettings, SegmentSinks, ThreadSnapshot,
};
use crate::observer::Observer;
use crate::retention::Retention;

/// A sampler, which cannot exist here.
#[derive(Debug)]
pub struct KernelSampler(Infallible);

#[allow(missing_docs, reason = "as on Linux")]
impl KernelSampler {
    pub fn start(
        _: u32,
        _: SampleSettings,
        _: Option<RuntimeEvents>,
        _: &Path,
        _: &mut dyn Observer,
    ) -> Result<Self, SampleError> {
        Err(SampleError::Unavailable)
    }

    pub fn spawn(
        mut command: Command,
        _: SampleSettings,
        _: &Path,
        _: &mut (dyn Observer + Send),
    ) -> io::Result<(Child, Result<Self, SampleError>)> {
        Ok((command.spawn()?, Err(SampleError::Unavailable)))
    }

    pub fn pid(&self) -> u32 {
        match self.0 {}
    }

    pub fn description(&self) -> &str {
        match self.0 {}
    }

    pub fn probes(&self) -> Option<&str> {
        match self.0 {}
    }

    pub fn is_over(&self) -> bool {
        match self.0 {}
    }

    pub fn finish(self) -> Result<KernelRecording, SampleError> {
        match self.0 {}
    }
}

/// A sampler of many processes, which cannot exist here.
#[derive(Debug)]
pub struct MachineSampler(Infallible);

#[allow(missing_docs, reason = "as on Linux")]
impl MachineSampler {
    pub fn start(
        _: &SampleScope,
        _: SampleSettings,
        _: &Path,
        _: &mut dyn Observer,
    ) -> Result<Self, SampleError> {
        Err(SampleError::Unavailable)
    }

    pub fn description(&self) -> &str {
        match self.0 {}
    }

    pub fn left_out(&self) -> &[u32] {
        match self.0 {}
    }

    pub fn is_over(&self) -> bool {
        match self.0 {}
    }

    pub fn stop(&self) {
        match self.0 {}
    }

    pub fn finish(self) -> Result<MachineRecording, SampleError> {
        match self.0 {}
    }
}

/// A sampler of the machine into a ring, which cannot exist here.
#[derive(Debug)]
pub struct ContinuousSampler(Infallible);

#[allow(missing_docs, reason = "as on Linux")]
impl ContinuousSampler {
    pub fn start(
        _: ContinuousSettings,
        _: SegmentSinks,
        _: &mut dyn Observer,
        _: impl Fn(&ContinuousEvent) + Send + Clone + 'static,
    ) -> Result<Self, SampleError> {
        Err(SampleError::Unavailable)
    }

    pub fn description(&self) -> &str {
        match self.0 {}
    }

    pub fn status(&self) -> ContinuousStatus {
        match self.0 {}
    }

    pub fn set_segment(&self, _: Duration) {
        match self.0 {}
    }

    pub fn set_limits(&self, _: Retention) {
        match self.0 {}
    }

    pub fn complete_now(&self, _: Duration) -> bool {
        match self.0 {}
    }

    pub fn stop(&self) {
        match self.0 {}
    }
}

/// A session whose events the runtime writes to the kernel, which cannot exist here.
#[derive(Debug)]
pub struct RuntimeEvents(Infallible);

#[allow(missing_docs, reason = "as on Linux")]
impl RuntimeEvents {
    pub fn prepare(_: &Target, _: Vec<ProviderConfig>) -> Result<Self, SampleError> {
        Err(SampleError::Unavailable)
    }
}

/// Samples that are read while they are taken, which cannot exist here.
#[derive(Debug)]
pub struct LiveSamples(Infallible);

#[allow(missing_docs, reason = "as on Linux")]
impl LiveSamples {
    pub fn start(
        _: u32,
        _: SampleSettings,
        _: bool,
        _: Box<dyn Observer + Send>,
    ) -> Result<Self, SampleError> {
        Err(SampleError::Unavailable)
    }

    pub fn description(&self) -> &str {
        match self.0 {}
    }

    pub fn is_over(&self) -> bool {
        match self.0 {}
    }

    pub fn read(&mut self, _: impl FnMut(&Event<'_>)) {
        match self.0 {}
    }

    pub fn finish(self, _: impl FnMut(&Event<'_>)) {
        match self.0 {}
    }
}

/// Returns the number of a process in a recording that cannot exist here.
pub fn pid_of_id(id: u64) -> u32 {
    u32::try_from(id).unwrap_or_default()
}

/// Fails here.
pub fn snapshot(
    _: u32,
    _: Duration,
    _: &mut dyn Observer,
    _: impl FnMut(&Event<'_>, bool),
) -> Result<Vec<ThreadSnapshot>, SampleError> {
    Err(SampleError::Unavailable)
}
