//! Core dumps and memory of .NET processes on Linux, on x86-64 and arm64, read without .NET.
//!
//! **Use it** to read threads, stacks, objects and locks of .NET from a core dump or a live process, or
//! unwind managed code in a profiler. **Not for** other processors and systems, and dumps of programs
//! without .NET: debuggers read those.
//!
//! Features: `analysis` (conclusions, and requests), `awaits` (with the thread pool), `copy` (core dumps
//! that are written), all by default; `heap-graph` (the heap as a graph of `gcdump`), `linux-sampler`
//! (unwinding of its samples, and names of native functions), `serde` (some facts as its data). Rust 1.89
//! or later.
//!
//! Everything is read from a [`Memory`], "bytes at an address": a [`CoreFile`], a live process
//! ([`ProcessMemory`]), or the caller's own. A [`Dump`] is such memory with the [`Runtime`] in it, whose
//! structures are checked to be where they are expected. Its views have the data by subject: [`Threads`] with
//! their managed stacks, [`Exceptions`], [`Locks`], [`Types`], [`Statics`], the [`Heap`], [`Awaits`], the
//! [`ThreadPool`] and [`Requests`].
//! [`ThreadSnapshot`], [`ThreadWaits`] and [`Death`] are conclusions from them, and a [`MemoryAccount`] has
//! the memory of the process by its owners. Addresses in their results and parameters are [`Address`], types
//! [`TypeHandle`] and methods [`MethodDesc`]; a [`Memory`] is read by number.
//!
//! ```no_run
//! use clr_dump::{CoreFile, Dump};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let core = CoreFile::open(std::fs::File::open("core")?)?;
//! let dump = Dump::open(&core)?;
//! for thread in dump.threads().list()? {
//!     let stack = dump.threads().stack(&thread, core.registers(thread.os_id));
//!     println!("thread {} has {} managed frames", thread.os_id, stack.frames.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A profiler that has the registers and the stack of a sample unwinds managed code without frame pointers:
//!
//! ```no_run
//! # #[cfg(target_os = "linux")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use clr_dump::{FramePosition, ProcessMemory, Registers, Runtime, WithCopy};
//!
//! # let (ip, sp, bp, stack) = (0, 0, 0, [0_u8; 0]);
//! let memory = ProcessMemory::open(4711)?;
//! let runtime = Runtime::find(&memory, &memory.files()?)?;
//! let sample = WithCopy::new(&memory, sp, &stack);
//! let registers = Registers::new(ip, sp, bp);
//! // `None`: the code is not managed.
//! let caller = runtime.code().unwind(&sample, &registers, FramePosition::Innermost)?;
//! # Ok(())
//! # }
//! # #[cfg(not(target_os = "linux"))]
//! # fn main() {}
//! ```
//!
//! # Untrusted input
//!
//! Every word of a core dump can be wrong. Lists have limits and end where they repeat, addresses are only
//! passed to [`Memory::read`], nothing is allocated before its bytes are there, and nothing panics. A
//! structure that cannot be read is an error or a gap in the result, never a guess: an address without a name
//! stays an address.
//!
//! # Versions
//!
//! .NET 8, 9 and 10, and .NET Core 3.1.23. The offsets were measured on 8.0.28, 9.0.1, 10.0.5 and 3.1.23
//! (`layout`); other builds of .NET 8, 9 and 10 are read with the same offsets if they pass the checks. Other
//! builds of .NET Core 3.1 export nothing that leads to their data. What a runtime states of its data itself
//! ([`contracts`], .NET 9 and later) is taken from it, and other versions are read by their description alone
//! ([`Runtime::is_described`]): without the heap and waits for monitors, which it does not state. Static
//! fields of types that can be unloaded are not read there and in .NET 8.
//!
//! The runtime of NativeAOT describes itself, and its programs have the names of types and methods, also
//! where symbols were removed: threads, stacks, exceptions and the heap are read. Names were measured with
//! .NET 8 to 11 and are not read for other versions ([`Runtime::is_measured`]). .NET 11 describes itself by
//! data contracts. Neither describes fields, static fields and monitors. A library need not export its
//! description: it is found in its variables.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
// Code that is never used is found with all features.
#![cfg_attr(not(all(feature = "analysis", feature = "copy")), allow(dead_code))]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap
    )
)]

#[cfg(feature = "analysis")]
mod analysis;
mod aot;
#[cfg(feature = "awaits")]
mod awaits;
mod code;
pub mod contracts;
#[cfg(feature = "copy")]
mod copy;
mod dump;
mod error;
mod heap;
mod memory;
mod native_heap;
mod owners;
#[cfg(feature = "awaits")]
mod pool;
mod processor;
#[cfg(feature = "analysis")]
mod requests;
mod runtime;
mod statics;
mod threads;
mod types;
mod unwind;

#[cfg(feature = "analysis")]
pub use analysis::{
    ThreadSnapshot,
    death::{Death, DeathCause},
    named_frame::{FileCode, NamedFrame},
    native_frames::NativeFrames,
    waits::{HeldLock, SignaledObject, ThreadWait, ThreadWaits, WaitedFor, held_locks},
};
#[cfg(feature = "awaits")]
pub use awaits::{
    Awaits,
    async_type::TaskState,
    chain::ChainEnd,
    channels::{Channel, ChannelWaiter, Channels},
    graph::{AwaitChains, AwaitGroup, AwaitKind, AwaitNode, AwaitedOperation, Delay},
    tasks::{TaskGroup, TaskGroups, TaskStatus, TaskWork},
};
pub use code::gc_info::{GcInfo, GcInfoError, GcInfoFormat, GcSlot, LiveSlots, SlotPlace, StackBase};
pub use code::map::{Code, CodeMap, CodeOrigin};
#[cfg(feature = "copy")]
pub use copy::{
    core_writer::{ProcessNote, ThreadNote},
    strip::{Contents, StrippedCore, WrittenCopy},
};
#[cfg(all(feature = "copy", target_os = "linux"))]
pub use copy::{
    pieces::CoreContent,
    process::{CopiedCore, CopyLimits, CopySettings, TimeLimit, copy_process},
    thread_pages::thread_pages,
};
pub use dump::Dump;
pub use error::Error;
pub use heap::contents::{FreeBlock, GenerationContents, HeapContents};
pub use heap::finalizers::{FinalizableType, FinalizerQueue};
pub use heap::generations::{Generation, HeapRegion, HeapRegions, generation_name};
#[cfg(feature = "heap-graph")]
pub use heap::graph::HeapGraphReader;
pub use heap::handle::{Handle, HandleKind, Handles};
pub use heap::known_object::KnownContent;
pub use heap::object::{FieldValue, ObjectContent, Value};
pub use heap::selection::ObjectSelection;
pub use heap::semaphore::Semaphore;
pub use heap::strings::{DistinctString, HeapStrings};
pub use heap::{Amount, Heap, HeapGap, HeapObject, HeapStatistics, HeapVisitor, HeapWalk, TypeStatistics};
pub use memory::address::{Address, MethodDesc, TypeHandle};
pub use memory::copy_note::{CopiedContent, CopyNote};
pub use memory::core_file::{CoreFile, CoreProcess, CoreThread, SignalInfo};
pub use memory::mapping::{MappedFile, Mapping, parse_mappings, parse_maps};
#[cfg(target_os = "linux")]
pub use memory::page_map::PageMap;
#[cfg(target_os = "linux")]
pub use memory::process::ProcessMemory;
pub use memory::resident::ResidentPages;
pub use memory::touched::TouchedMemory;
pub use memory::unpack::{CoreUnpacker, UnpackEnd, UnpackedCore};
pub use memory::{Memory, MemoryResult, Missing, WithCopy};
pub use native_heap::{NativeArena, NativeHeap, NativeHeapError};
pub use nettrace::ReadAt;
pub use owners::account::{AccountSources, MemoryAccount};
pub use owners::owner::{GenerationUse, MemoryOwner, OwnedMemory, OwnedPart};
#[cfg(feature = "awaits")]
pub use pool::{
    ThreadPool,
    change::PoolChange,
    queue::{PoolQueues, QueuedWork, WorkQueue},
    work::Work,
    workers::PoolWorkers,
};
pub use processor::{Machine, Processor};
#[cfg(feature = "analysis")]
pub use requests::{
    OpenRequests, Requests,
    activity::{RequestStart, TraceIds},
    commands::{CommandState, DatabaseCommand},
    incoming::{IncomingRequest, IncomingState},
    outgoing::{OutgoingRequest, OutgoingState},
    work::RequestWork,
};
pub use runtime::Runtime;
pub use runtime::module::{DebugEntry, Module};
pub use statics::Statics;
pub use statics::collections::HeldCollection;
pub use statics::timers::{ActiveTimers, LateTimers, TickTime, Timer};
pub use threads::Threads;
pub use threads::all_stacks::{ManagedStack, NativeStack, ThreadStacks};
pub use threads::exception::{
    Exception, ExceptionFrame, ExceptionState, Exceptions, Identity, ThreadExceptions,
};
pub use threads::lock::{Locks, Monitor, MonitorWait, Monitors, Owner, WaitKind, deadlocks};
pub use threads::roots::{RootPlace, StackRoot, StackRoots};
pub use threads::stack::{Frame, Gap, Stack};
pub use threads::thread::{Thread, ThreadState};
pub use threads::variables::{FrameVariables, StackVariables, Variable, VariableRole};
pub use types::Types;
pub use types::field::{Field, StaticField, ValueKind};
pub use types::method::{Method, MethodName};
pub use unwind::native::{NativeImage, NativeImages};
pub use unwind::registers::{Register, Registers};
#[cfg(feature = "linux-sampler")]
pub use unwind::symbols::NativeSymbols;
pub use unwind::{FramePosition, FunctionEntry, UnwindError, unwind};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
