//! Trials of the kernel's samples.

/// The kernel's answers to trial events, and the rights of this process.
#[derive(Debug, Clone)]
pub(crate) struct Sampling {
    /// Samples in user mode and in the kernel; in user mode only; of whole processors.
    pub(crate) kernel: Trial,
    pub(crate) user: Trial,
    pub(crate) processors: Trial,
    pub(crate) paranoid: Option<i32>,
    pub(crate) has_capability: bool,
    pub(crate) has_kernel_names: bool,
}

/// The outcome of a trial, or its error and the obstacle.
pub(crate) type Trial = Result<(), (String, crate::SamplingObstacle)>;

impl Sampling {
    /// Tries the events of a process; `None` on systems without them, and if the process has ended.
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(crate) fn try_on(pid: u32) -> Option<Self> {
        use crate::SamplingObstacle;
        use linux_sampler::{Obstacle, Refusal};

        let refused = |Refusal { error, obstacle, .. }| {
            let obstacle = match obstacle {
                Obstacle::Paranoid(level) => SamplingObstacle::Paranoid(level),
                Obstacle::OtherUser => SamplingObstacle::OtherUser,
                Obstacle::Seccomp => SamplingObstacle::Seccomp,
                Obstacle::NotBuilt => SamplingObstacle::NotBuilt,
                _ => SamplingObstacle::Unknown,
            };
            (error, obstacle)
        };
        let trial = linux_sampler::Trial::of_process(i32::try_from(pid).ok()?).ok()?;
        let rights = linux_sampler::Rights::of_self();
        Some(Self {
            kernel: trial.kernel.map_err(refused),
            user: trial.user.map_err(refused),
            processors: trial.processors.map_err(refused),
            paranoid: rights.paranoid,
            has_capability: rights.has_capability,
            has_kernel_names: rights.has_kernel_names,
        })
    }

    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    pub(crate) fn try_on(_: u32) -> Option<Self> {
        None
    }
}
