//! The Linux kernel's samples of running and waiting threads, without a tracer: for any process, not only
//! .NET.
//!
//! **Use it** to sample any process by the Linux kernel, on and off the processors, with native stacks.
//! **Not for** managed code by name: the events of the runtime (`clr-events`) or its memory (`clr-dump`)
//! have that.
//!
//! Features: `nettrace` (samples as a recording). Rust 1.89 or later.
//!
//! 1. [`Sampler::open`] has the kernel sample a process, a cgroup or the machine by `perf_event_open`: on-CPU
//!    by a timer that counts only the time that a thread runs, off-CPU by the times at which threads leave a
//!    processor and return. [`Sampler::access`] has the granted permissions; [`Obstacle`] has the reason for
//!    a refusal.
//! 2. [`Sampler::read`] returns [`Record`]s of all processors in time order: [samples](Sample), switches,
//!    mappings, starts and ends of threads, losses. One thread suffices, and memory is bounded by the
//!    kernel's buffers.
//! 3. [`Processes`] follows the mappings, [`Unwinder`] completes the kernel's chains for code without frame
//!    pointers, [`OffCpuTracker`] turns switches into intervals, [`Image`] and [`kernel_symbols`] have the
//!    names.
//! 4. [`SamplerConfig::tracepoints`] adds the events of tracepoints, among them those that programs write to
//!    the kernel's user_events: [`open_user_events_data`], [`Tracepoint`].
//! 5. [`SamplerConfig::native_allocations`] has probes follow what `malloc` and others return until it is
//!    freed.
//! 6. [`RecordingWriter`] (feature `nettrace`) does all of that, and writes the events of `Universal.System`
//!    and `Universal.Events` that PerfView, TraceEvent and `dipc` read.
//!
//! ```no_run
//! use std::time::Duration;
//! use linux_sampler::{Processes, RecordKind, Sampler, SamplerConfig, Unwinder};
//!
//! # fn main() -> Result<(), linux_sampler::Error> {
//! let mut sampler = Sampler::open(&SamplerConfig::of_process(4711))?;
//! let (mut processes, mut unwinder, mut stack) = (Processes::new(), Unwinder::new(), Vec::new());
//! processes.of(4711); // The mappings that there are now; records have those that come.
//! while sampler.running() > 0 {
//!     for record in sampler.read(Duration::from_millis(100))? {
//!         processes.handle(&record);
//!         if let RecordKind::Sample(sample) = record.kind {
//!             unwinder.user_stack(record.thread, &sample, &mut processes, &mut stack);
//!             println!("thread {} ran {} ns at {stack:x?}", record.thread.tid, sample.period);
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Platforms
//!
//! Linux 4.8 and later on x86-64 and aarch64; the crate is empty elsewhere. Child processes are excluded
//! since Linux 5.13.
//!
//! # Permissions
//!
//! `kernel.perf_event_paranoid` is 2 on most systems: a user can sample their own processes in user mode,
//! without time in the kernel and without the stacks of waits. `CAP_PERFMON`, root, or a level of at most 1
//! permits all of it.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![cfg_attr(not(feature = "nettrace"), allow(dead_code, reason = "recordings alone use these parts"))]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod access;
mod allocation_function;
mod attributes;
mod config;
mod crash;
mod decoder;
mod error;
mod image;
mod kernel;
mod maps;
mod native_allocations;
mod native_unwind;
mod nearest_symbols;
mod obstacle;
mod off_cpu;
mod record;
#[cfg(feature = "nettrace")]
mod recording;
mod runtime_code;
mod sampler;
mod stack_base;
mod start;
mod stopped;
mod sys;
mod thinning;
mod threads;
mod tracepoint;
mod tracer;
mod tracing;
mod unwind;
mod waiting;

pub use access::{Access, Refusal, Rights, Trial};
pub use config::{OffCpu, SamplerConfig, Scope};
pub use crash::{CrashWatch, WatchEnd};
pub use decoder::{RecordBatch, RecordDecoder, Records};
pub use error::Error;
pub use image::{Image, Symbol, SymbolTable};
pub use kernel::{kernel_symbols, kernel_symbols_at};
pub use linux_proc_stat::FileId;
pub use maps::{Mapping, ProcessMaps, Processes};
pub use native_allocations::{AllocationCounts, NativeAllocations};
pub use obstacle::{AllocationObstacle, Obstacle, paranoid_level};
pub use off_cpu::{OffCpuInterval, OffCpuTracker};
pub use record::{
    AllocationChange, AllocationRecord, MapRecord, Record, RecordKind, Registers, Sample, SampleEvent,
    ThreadKey, TracepointEvent,
};
#[cfg(feature = "nettrace")]
pub use recording::{
    MACHINE_PROVIDER, ProgramEvent, RecordingCounts, RecordingWriter, SAMPLING_KEY, SampledProcess, pid_of_id,
};
pub use runtime_code::{FramePosition, RuntimeUnwinder, SampledFrame};
pub use sampler::{RecordReader, Sampler};
pub use start::spawn_prepared;
pub use stopped::StoppedProcess;
pub use threads::{innermost_id, processors, threads};
pub use tracepoint::{FieldPlace, Tracepoint, USER_EVENTS, UserEvent, open_user_events_data};
pub use tracing::StoppedThread;
pub use unwind::Unwinder;
pub use waiting::{ThreadActivity, ThreadWait, thread_activity};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// A compile-time check: types that hold data are `Send`, so a server can use them in any thread.
#[cfg(test)]
mod send {
    use super::*;

    const fn is_send<T: Send>() {}

    const _: () = {
        is_send::<(
            CrashWatch,
            Image,
            OffCpuTracker<u8>,
            Processes,
            Sampler,
            StoppedProcess,
            SymbolTable,
            Unwinder,
        )>();
    };
}
