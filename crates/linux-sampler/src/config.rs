//! The settings of a sampler.

use std::path::PathBuf;

/// The tasks that are sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// All threads of these processes, by an event a thread and processor that new threads inherit.
    ///
    /// A thread is sampled once it has run for a whole period: much of the time of threads that live for less is not seen.
    Processes(Vec<i32>),
    /// All threads of these processes, by an event a processor, whose records of other processes are dropped.
    ///
    /// Sees threads that live for milliseconds, costs a little for each sample of other processes, and needs the right to sample all.
    ProcessesByProcessor(Vec<i32>),
    /// The tasks of a cgroup, by its folder below `/sys/fs/cgroup`. Needs the right to sample all.
    Cgroup(PathBuf),
    /// All tasks of the machine. Needs the right to sample all.
    Machine,
}

/// What is recorded of threads that leave a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OffCpu {
    /// Nothing.
    #[default]
    No,
    /// The times of leaving and coming back.
    Times,
    /// The times, and the stack of each `every`th switch of a thread and processor. Needs the right to see the kernel.
    Stacks {
        /// Switches from one stack to the next, at least 1.
        every: u32,
    },
}

/// The settings of a [`Sampler`](crate::Sampler).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SamplerConfig {
    /// The tasks that are sampled.
    pub scope: Scope,
    /// Samples of a running thread for each second that it runs; 0 for none. 997 by default, 99 costs a target next to nothing.
    pub frequency: u32,
    /// What is recorded of threads that leave a processor.
    pub off_cpu: OffCpu,
    /// Whether time in the kernel is sampled. On by default; where it is not permitted, [`Access::kernel`](crate::Access::kernel)
    /// says so, and samples are of user mode only.
    pub kernel: bool,
    /// Whether samples have the kernel's part of a stack.
    pub kernel_stacks: bool,
    /// Bytes of the stack that samples of running threads have for unwinding: see [`Unwinder`](crate::Unwinder). 512 by default.
    pub stack_bytes: u32,
    /// Bytes of the stack that samples of threads that leave a processor have: most wait in a C library without frame pointers. 8,192
    /// by default.
    pub off_cpu_stack_bytes: u32,
    /// Frames in a chain. 127 by default, the kernel's own limit unless `perf_event_max_stack` is higher.
    pub max_frames: u16,
    /// Whether child processes are sampled as well.
    pub children: bool,
    /// Pages of the buffer of each processor, a power of two. 128 by default, which an unprivileged user may have.
    pub buffer_pages: usize,
}

impl SamplerConfig {
    /// Samples of running threads, 997 a second, with kernel frames where permitted.
    pub const fn new(scope: Scope) -> Self {
        Self {
            scope,
            frequency: 997,
            off_cpu: OffCpu::No,
            kernel: true,
            kernel_stacks: true,
            stack_bytes: 512,
            off_cpu_stack_bytes: 8192,
            max_frames: 127,
            children: false,
            buffer_pages: 128,
        }
    }

    /// Samples of all threads of a process.
    pub fn of_process(pid: i32) -> Self {
        Self::new(Scope::Processes(vec![pid]))
    }
}
