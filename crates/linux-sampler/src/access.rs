//! The kernel's permissions for sampling.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::OwnedFd;

use crate::attributes::{Counter, EventAttributes, EventSettings, Inherit};
use crate::error::Error;
use crate::obstacle::{Obstacle, has_capability, has_filter, paranoid_level};
use crate::sys::{self, Tasks};
use crate::threads::processors;

/// The permissions that a sampler got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// True if time in the kernel is sampled, with its stacks if these were requested. Otherwise samples are
    /// only taken while threads are in user mode, and the time in the kernel is missing.
    pub kernel: bool,
    /// True if threads that leave a processor are sampled with their stacks.
    pub off_cpu_stacks: bool,
    /// True if new threads are sampled and child processes are not. Otherwise (before Linux 5.13) children of
    /// the process are sampled, too.
    pub children_excluded: bool,
}

/// The rights of this process, as far as sampling depends on them.
///
/// ```
/// use linux_sampler::Rights;
///
/// let rights = Rights::of_self();
/// if !rights.has_capability && rights.paranoid.is_none_or(|level| level > 1) {
///     eprintln!("only time outside the kernel is sampled, if any");
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rights {
    /// `kernel.perf_event_paranoid`; `None` if it cannot be read.
    pub paranoid: Option<i32>,
    /// True if this process has `CAP_SYS_ADMIN`, as root has outside containers, or `CAP_PERFMON`, which is
    /// not enough at levels above 2. Both count in the machine's own user namespace only.
    pub has_capability: bool,
    /// True if a seccomp filter looks at the calls of this process.
    pub has_filter: bool,
    /// True if `/proc/kallsyms` has addresses, by which frames in the kernel get names.
    pub has_kernel_names: bool,
}

impl Rights {
    /// Reads the rights of this process.
    pub fn of_self() -> Self {
        let paranoid = paranoid_level();
        Self {
            paranoid,
            has_capability: has_capability(paranoid),
            has_filter: has_filter(),
            has_kernel_names: has_kernel_names(),
        }
    }
}

/// The kernel's refusal of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The kernel's error.
    pub error: String,
    /// The reason, if known.
    pub obstacle: Obstacle,
}

/// The kernel's answers to trial events of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trial {
    /// Samples with the time in the kernel, and of threads that leave a processor.
    pub kernel: Result<(), Refusal>,
    /// Samples in user mode.
    pub user: Result<(), Refusal>,
    /// Samples of whole processors, which also see threads that live for milliseconds.
    pub processors: Result<(), Refusal>,
}

impl Trial {
    /// Opens each kind of event for a process, and closes it at once: none of them takes a sample.
    ///
    /// ```
    /// use linux_sampler::Trial;
    ///
    /// let trial = Trial::of_process(i32::try_from(std::process::id())?)?;
    /// if let Err(refusal) = &trial.kernel {
    ///     eprintln!("without the kernel: {}: {}", refusal.error, refusal.obstacle);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoProcess`], or if the list of processors cannot be read.
    pub fn of_process(pid: i32) -> Result<Self, Error> {
        let first = processors()?.first().copied().unwrap_or(0);
        let trial = |tasks, kernel| match try_event(tasks, first, kernel) {
            Ok(event) => {
                drop(event);
                Ok(Ok(()))
            }
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Err(Error::NoProcess { pid }),
            Err(error) => {
                let obstacle = Obstacle::of(&error, Some(pid));
                Ok(Err(Refusal { error: error.to_string(), obstacle }))
            }
        };
        Ok(Self {
            kernel: trial(Tasks::Thread(pid), true)?,
            user: trial(Tasks::Thread(pid), false)?,
            processors: trial(Tasks::All, true)?,
        })
    }
}

/// Opens an event that is never enabled.
fn try_event(tasks: Tasks<'_>, processor: i32, kernel: bool) -> io::Result<OwnedFd> {
    let settings = EventSettings {
        counter: Counter::CpuClock,
        rate: 1,
        stack_bytes: 512,
        max_frames: 127,
        kernel,
        kernel_stacks: kernel,
        inherit: Inherit::No,
        side_band: true,
        switches: false,
        watermark: 4096,
    };
    sys::open_event(&EventAttributes::new(&settings), tasks, processor)
}

/// Returns true if the first function of the kernel has an address other than zero.
fn has_kernel_names() -> bool {
    let Ok(file) = fs::File::open("/proc/kallsyms") else { return false };
    let mut line = Vec::new();
    let read = BufReader::with_capacity(256, file).read_until(b' ', &mut line);
    read.is_ok() && line.iter().any(|byte| !matches!(byte, b'0' | b' '))
}
