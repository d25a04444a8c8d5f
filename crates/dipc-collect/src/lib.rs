//! Collection of artifacts from running .NET processes.
//!
//! **Use it** to record, or to take heaps, in an agent with messages of its own. **Not for** single commands
//! of the protocol (`dipc-client`), nor for reading the collected files (`nettrace`, `gcdump`).
//!
//! - [`session`]: the start of a session, which can be given up.
//! - [`stream`]: its stream, until a limit, the caller or the runtime ends it.
//! - [`live_stream`]: the events of the stream while they arrive.
//! - [`stacks`]: the current stacks of all threads. [`thread_times`]: the kernel's account of threads.
//! - [`live`]: the activity of a process, interval by interval.
//! - `core`: core dumps of processes that run on (Linux on x86-64 and aarch64).
//! - [`kernel_samples`]: samples by the Linux kernel, with native frames. [`profiles`]: a profile of an
//!   interval.
//! - [`profile_ring`]: the samples of a machine in a ring on disk, for questions afterwards.
//! - [`exceptions`]: exceptions while they are thrown, with their stacks.
//! - [`names`]: names of methods for a recording that may end without them.
//! - [`heap`]: the heap, from a session that makes the runtime collect.
//! - [`memory`]: the memory of a process by its owners, and growth from one reading to the next.
//! - [`readings`]: the threads in memory and the kernel's account of a process while something else records
//!   it.
//! - [`RingRecorder`]: the last part of a stream. [`RecordStream`]: its records while they arrive.
//! - [`logs`]: log records of Microsoft.Extensions.Logging.
//! - [`counters`]: counters, from a session with the settings of other clients.
//! - [`silence`]: events that another session's end has stopped, requested again.
//! - [`ModuleTypes`]: the types that a process's modules define.
//! - [`staged`]: files that get their names when they are complete.
//! - [`Retention`]: limits on the files that are kept. [`RetryWait`]: waits between attempts.
//!
//! Collections block. They end by a [`StopSignal`], and their remarks go to an [`Observer`]: this crate
//! prints nothing.
//!
//! Features: none. Rust 1.89 or later.
//!
//! # Examples
//!
//! ```no_run
//! use dipc_client::Target;
//! use dipc_collect::heap::{self, HeapRequest};
//! use dipc_collect::stream::Limits;
//! use dipc_collect::{ModuleTypes, StopSignal};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let target = Target::from_pid(1234)?;
//!     let limits = Limits::new(StopSignal::new()).with_pid(target.pid());
//!     let mut modules = ModuleTypes::of(target.pid());
//!     let heap = heap::collect(&target, &HeapRequest::new(1024), &mut modules, &limits, &mut ())?;
//!     let graph = heap.graph?;
//!     println!("{} objects", graph.object_count());
//!     Ok(())
//! }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod bundle;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod core;
pub mod counters;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod crash_handler;
mod dump_watch;
pub mod exceptions;
pub mod heap;
pub mod kernel_samples;
pub mod live;
pub mod live_stream;
pub mod logs;
pub mod memory;
mod module_types;
pub mod names;
mod observer;
pub mod profile_ring;
pub mod profiles;
pub mod readings;
mod record_stream;
mod retention;
mod retry_wait;
mod ring;
pub mod session;
pub mod silence;
pub mod stacks;
pub mod staged;
mod stop;
pub mod stream;
pub mod thread_times;

pub use dump_watch::CREATEDUMP_LIMIT;
pub use module_types::ModuleTypes;
pub use observer::{Note, Observer};
pub use record_stream::RecordStream;
pub use retention::{Kept, KeptFiles, Retention};
pub use retry_wait::RetryWait;
pub use ring::RingRecorder;
pub use stop::StopSignal;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
