//! The kernel's samples of a process, first kept beside its recording and then merged into it.

use std::fmt;
use std::fs::File;
use std::io::{self, Seek as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::exit::{Exit, Failure};
use crate::inspect::recording::Recording;
use crate::render::messages;
use crate::render::output_file::{NameOrigin, OutputFile};
use crate::render::staged_file::StagedFile;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) use linux::{KernelSampler, merge_into};

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod elsewhere;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) use elsewhere::{KernelSampler, merge_into};

/// The weaknesses of the runtime's own sampler, in words.
pub(crate) const RUNTIME_SAMPLER: &str =
    "it stops all threads for each sample, sees managed code only, and cannot tell running from waiting";

/// The requested samples.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleSettings {
    /// Samples per second of a running thread; 0 for none.
    pub(crate) frequency: u32,
    /// Whether to record threads leaving a processor.
    pub(crate) off_cpu: bool,
}

/// A file without a name, with the samples of a process: it disappears however the program ends.
#[derive(Debug)]
pub(crate) struct KernelRecording {
    file: File,
    staged: StagedFile,
    summary: SampleSummary,
}

/// The numbers of samples taken and missing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SampleSummary {
    samples: u64,
    cpu: Duration,
    off_cpu: Duration,
    waits: u64,
    lost: u64,
    throttled: u64,
    cut_stacks: u64,
}

impl KernelRecording {
    /// Opens the samples as a recording.
    pub(crate) fn open(&self) -> Result<Recording, Failure> {
        let file = self.file.try_clone().map_err(|error| unwritten(Path::new(NAME), &error))?;
        Recording::of_file(file, NAME)
    }

    /// Names the file `path`, or a similar name if that is taken and the user did not choose it.
    pub(crate) fn save(mut self, path: &Path, is_chosen: bool) -> Result<PathBuf, Failure> {
        messages::note(format_args!("CPU samples    : {}", self.summary));
        let origin = if is_chosen { NameOrigin::User } else { NameOrigin::Chosen };
        let mut out = OutputFile::beside(path, origin)?;
        let written = self.file.rewind().and_then(|()| io::copy(&mut self.file, &mut out));
        written.map_err(|error| unwritten(path, &error))?;
        out.close()?;
        messages::note(format_args!("Output File    : {out}"));
        Ok(out.path().to_owned())
    }

    /// Keeps the file under a name of its own, in case it cannot be merged into the recording.
    fn keep(mut self, recording: &Path) -> Result<PathBuf, Failure> {
        let path = recording.with_extension("kernel.nettrace");
        self.staged.name_new(&path).map_err(|error| unwritten(&path, &error))?;
        Ok(path)
    }
}

/// The name of the samples in messages.
const NAME: &str = "kernel's samples";

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("write: {}: {error}", path.display()))
}

impl fmt::Display for SampleSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} samples of {:.2?} on CPU", self.samples, self.cpu)?;
        if self.waits > 0 {
            write!(f, ", {} times off CPU of {:.2?}", self.waits, self.off_cpu)?;
        }
        write!(f, ", {} lost", self.lost)?;
        if self.throttled > 0 {
            write!(f, ", throttled {} times", self.throttled)?;
        }
        if self.cut_stacks > 0 {
            write!(f, ", {} stacks cut at the kernel's limit of frames", self.cut_stacks)?;
        }
        Ok(())
    }
}
