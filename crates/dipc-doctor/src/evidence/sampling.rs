//! Evidence about the kernel's samples of a process.

/// Evidence about the kernel's permission to sample the threads of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SamplingEvidence {
    /// The samples that are permitted.
    pub extent: SamplingExtent,
    /// The reason why not all of them are.
    pub obstacle: Option<SamplingObstacle>,
    /// The kernel's error, if samples were refused.
    pub error: Option<String>,
    /// `kernel.perf_event_paranoid`; `None` if it cannot be read.
    pub paranoid: Option<i32>,
    /// True if this process has `CAP_SYS_ADMIN`, as root has, or at levels of at most 2 `CAP_PERFMON`.
    pub has_capability: bool,
    /// True if functions of the kernel have names.
    pub has_kernel_names: bool,
    /// True if whole processors can be sampled, and with them threads that live for milliseconds.
    pub sees_short_threads: bool,
    /// The effective user of the examined process.
    pub process_uid: Option<u32>,
    /// True if it can be seen which runtime the process has.
    pub sees_runtime: bool,
    /// True if the runtime can sample its threads itself, which the kernel's refusal does not affect.
    pub has_runtime_sampler: bool,
}

/// The extent of the samples that the kernel permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SamplingExtent {
    /// None.
    Nothing,
    /// Samples while threads are in user mode, without the time in the kernel and the stacks of waits.
    UserMode,
    /// Samples with the time in the kernel and the stacks of waits.
    Everything,
}

/// The reason why the kernel does not permit all samples.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SamplingObstacle {
    /// `kernel.perf_event_paranoid` has this value, and this process lacks `CAP_PERFMON`; at values above 2,
    /// `CAP_SYS_ADMIN`.
    Paranoid(i32),
    /// The process belongs to another user, and this one lacks `CAP_PERFMON`.
    OtherUser,
    /// A seccomp filter refuses the call, as the filters of containers do.
    Seccomp,
    /// The kernel does not have the call.
    NotBuilt,
    /// None of these.
    Unknown,
}

impl SamplingEvidence {
    /// Returns evidence of samples of this extent, and of a kernel with unknown settings.
    pub fn new(extent: SamplingExtent) -> Self {
        Self {
            extent,
            obstacle: None,
            error: None,
            paranoid: None,
            has_capability: false,
            has_kernel_names: false,
            sees_short_threads: false,
            process_uid: None,
            sees_runtime: true,
            has_runtime_sampler: true,
        }
    }
}
