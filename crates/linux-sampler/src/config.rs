//! The settings of a sampler.

use std::path::PathBuf;

use crate::native_allocations::NativeAllocations;
use crate::tracepoint::Tracepoint;

/// The tasks that are sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// All threads of these processes, by an event for each thread and processor that new threads inherit.
    ///
    /// A thread is sampled once it has run for a whole period: much of the time of threads with shorter lives
    /// is missed.
    Processes(Vec<i32>),
    /// The same, but sampled by a timer of each processor; samples of other processes are dropped.
    ///
    /// Sees threads that live for milliseconds. All processes of the machine pay for their samples, and it
    /// needs permission to sample them. Times off the processors are recorded as for
    /// [`Processes`](Self::Processes).
    ProcessesByProcessor(Vec<i32>),
    /// The tasks of a cgroup, by folder below `/sys/fs/cgroup`. Needs permission to sample all processes.
    Cgroup(PathBuf),
    /// All tasks of the machine. Needs permission to sample all processes.
    Machine,
}

/// The recorded data about threads that leave a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OffCpu {
    /// Nothing.
    #[default]
    No,
    /// The times of leaving and coming back.
    Times,
    /// The times, and the stack of each `every`th switch of a thread. Needs permission to
    /// sample the kernel.
    Stacks {
        /// Switches from one stack to the next, at least 1.
        every: u32,
    },
}

/// The settings of a [`Sampler`](crate::Sampler).
///
/// ```
/// use linux_sampler::{OffCpu, Scope, SamplerConfig};
///
/// let config = SamplerConfig::new(Scope::Processes(vec![4711, 4712]))
///     .with_frequency(99)
///     .with_off_cpu(OffCpu::Stacks { every: 10 });
/// assert!(config.kernel && !config.children);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SamplerConfig {
    /// The tasks that are sampled.
    pub scope: Scope,
    /// Samples for each second that a thread runs; 0 for no samples. The default is 997; 99 costs a target
    /// next to nothing. Frequencies in step with the kernel's ticks, such as 1,000 and 250, give wrong shares
    /// where processors are sampled and several threads want them.
    pub frequency: u32,
    /// The recorded data about threads that leave a processor.
    pub off_cpu: OffCpu,
    /// True if time in the kernel is sampled. On by default; if it is not permitted,
    /// [`Access::kernel`](crate::Access::kernel) is false, and samples only show user mode.
    pub kernel: bool,
    /// True if samples have the kernel's part of a stack.
    pub kernel_stacks: bool,
    /// Bytes of the stack in samples of running threads, for unwinding: see [`Unwinder`](crate::Unwinder).
    /// 4,096 by default: the runtime's collector calls the C library with large buffers on the stack.
    pub stack_bytes: u32,
    /// Bytes of the stack in samples of threads that leave a processor: most wait in a C library without
    /// frame pointers. 8,192 by default.
    pub off_cpu_stack_bytes: u32,
    /// Maximum number of switch stacks per second, of all threads together; 0 for no limit. 2,000 by default.
    ///
    /// Above it, of the threads with the most switches only every n-th switch has a stack, with the weight n
    /// in [`Sample::period`](crate::Sample::period). The times of all switches are kept.
    pub switch_stacks_per_second: u32,
    /// Maximum number of frames in a chain. 127 by default, the kernel's own limit unless
    /// `perf_event_max_stack` is higher.
    pub max_frames: u16,
    /// True if child processes are sampled as well.
    pub children: bool,
    /// Tracepoints with events to record, for the processes of the scope. Needs permission to sample all
    /// processes, and to read tracefs: root has both.
    pub tracepoints: Vec<Tracepoint>,
    /// Native allocations to follow, of the only process of the scope: what `malloc` and others return, until
    /// it is freed. Needs `CAP_PERFMON` and `CAP_BPF`, or root.
    pub native_allocations: Option<NativeAllocations>,
    /// Pages of each processor's buffer, a power of two. 512 by default, which have space for the samples of
    /// a third of a second. Halved down to 128, which are allowed for unprivileged users, where more is not
    /// permitted, or would be more than 64 MiB for all processors.
    pub buffer_pages: usize,
}

impl SamplerConfig {
    /// Samples running threads, 997 times a second, with kernel frames if permitted.
    pub const fn new(scope: Scope) -> Self {
        Self {
            scope,
            frequency: 997,
            off_cpu: OffCpu::No,
            kernel: true,
            kernel_stacks: true,
            stack_bytes: 4096,
            off_cpu_stack_bytes: 8192,
            switch_stacks_per_second: 2_000,
            max_frames: 127,
            children: false,
            tracepoints: Vec::new(),
            native_allocations: None,
            buffer_pages: 512,
        }
    }

    /// Samples all threads of a process.
    pub fn of_process(pid: i32) -> Self {
        Self::new(Scope::Processes(vec![pid]))
    }

    /// With this [`scope`](Self::scope).
    #[must_use]
    pub fn with_scope(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// With this [`frequency`](Self::frequency).
    #[must_use]
    pub fn with_frequency(self, frequency: u32) -> Self {
        Self { frequency, ..self }
    }

    /// With this [`off_cpu`](Self::off_cpu).
    #[must_use]
    pub fn with_off_cpu(self, off_cpu: OffCpu) -> Self {
        Self { off_cpu, ..self }
    }

    /// With or without [`kernel`](Self::kernel).
    #[must_use]
    pub fn with_kernel(self, kernel: bool) -> Self {
        Self { kernel, ..self }
    }

    /// With or without [`kernel_stacks`](Self::kernel_stacks).
    #[must_use]
    pub fn with_kernel_stacks(self, kernel_stacks: bool) -> Self {
        Self { kernel_stacks, ..self }
    }

    /// With these [`stack_bytes`](Self::stack_bytes).
    #[must_use]
    pub fn with_stack_bytes(self, stack_bytes: u32) -> Self {
        Self { stack_bytes, ..self }
    }

    /// With these [`off_cpu_stack_bytes`](Self::off_cpu_stack_bytes).
    #[must_use]
    pub fn with_off_cpu_stack_bytes(self, off_cpu_stack_bytes: u32) -> Self {
        Self { off_cpu_stack_bytes, ..self }
    }

    /// With these [`switch_stacks_per_second`](Self::switch_stacks_per_second).
    #[must_use]
    pub fn with_switch_stacks_per_second(self, switch_stacks_per_second: u32) -> Self {
        Self { switch_stacks_per_second, ..self }
    }

    /// With this [`max_frames`](Self::max_frames).
    #[must_use]
    pub fn with_max_frames(self, max_frames: u16) -> Self {
        Self { max_frames, ..self }
    }

    /// With or without [`children`](Self::children).
    #[must_use]
    pub fn with_children(self, children: bool) -> Self {
        Self { children, ..self }
    }

    /// With these [`tracepoints`](Self::tracepoints).
    #[must_use]
    pub fn with_tracepoints(self, tracepoints: Vec<Tracepoint>) -> Self {
        Self { tracepoints, ..self }
    }

    /// With or without [`native_allocations`](Self::native_allocations).
    #[must_use]
    pub fn with_native_allocations(self, native_allocations: Option<NativeAllocations>) -> Self {
        Self { native_allocations, ..self }
    }

    /// With these [`buffer_pages`](Self::buffer_pages).
    #[must_use]
    pub fn with_buffer_pages(self, buffer_pages: usize) -> Self {
        Self { buffer_pages, ..self }
    }
}
