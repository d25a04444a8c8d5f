//! Processes and threads in Linux's `/proc`.
//!
//! **Use it** to read the state, times and memory of processes, threads and control groups, whatever their
//! names are. **Not for** lists of processes with names, users and sockets (`procfs` and `sysinfo` have
//! those), and other systems.
//!
//! Features: `serde` (readings as its data). Rust 1.89 or later.
//!
//! [`Stat`], [`SchedStat`] and [`Status`] parse the files of these names. A process chooses its own name,
//! which may have parentheses, spaces, line feeds and bytes that are not UTF-8: none of them moves or hides
//! another field. A field that a kernel lacks is `None`, and fields that are not requested are not parsed.
//!
//! ```
//! use linux_proc_stat::Stat;
//!
//! let stat = Stat::parse(b"4711 (a) R (b) S 1 4711 4711 0").expect("a line of stat");
//! assert_eq!((stat.name(), stat.state()), (&b"a) R (b"[..], Some('S')));
//! ```
//!
//! [`read`] reads any file of `/proc`. The parsers work on all systems, and read nothing.
//!
//! [`Mapping`] parses a line of `maps`, [`Smaps`] has the memory of each mapping of a process, and
//! [`ThreadStackPointer`] the stack pointers of its threads.
//!
//! [`ControlGroup`] finds the control groups of a process, and reads their memory and processor time, the
//! effects of their limits, and pressure.
//!
//! [`Container`] is the container and the pod of a process, by the names of its control groups.
//!
//! [`ProcessUsage`] is one reading of all of that: the threads, memory, descriptors and sockets of a process,
//! its control group, and the machine. [`UsageChange`] compares two readings: processor time in cores, time
//! without a processor, throttling, faults, growth, and what other processes used.
//!
//! # Source
//! `proc_pid_stat(5)`, `proc_pid_status(5)`, `proc_pid_maps(5)`, `proc_pid_smaps(5)`, `proc_pid_syscall(5)`,
//! `cgroups(7)`, and `Documentation/scheduler/sched-stats.rst`, `scheduler/sched-bwc.rst`,
//! `accounting/psi.rst`, `networking/proc_net_tcp.rst`, `admin-guide/cgroup-v2.rst` and
//! `admin-guide/cgroup-v1/memory.rst` of Linux.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::arithmetic_side_effects,
        clippy::as_conversions
    )
)]

mod cgroup;
mod container;
mod file;
mod limits;
mod mapping;
mod mount;
mod pressure;
mod schedstat;
mod smaps;
mod stack_pointer;
mod stat;
mod status;
#[cfg(test)]
mod test_tree;
mod usage;

pub use cgroup::{ControlGroup, GroupCpu, GroupMemory, MemoryEvents, Throttling};
pub use container::{Container, control_groups};
pub use file::{process_folder, process_ids, read, thread_folder};
pub use limits::Limits;
pub use mapping::{FileId, Mapping};
pub use mount::Mount;
pub use pressure::{Pressure, ResourcePressure};
pub use schedstat::SchedStat;
pub use smaps::{MappingSizes, Smaps, SmapsMapping};
pub use stack_pointer::{ThreadStackPointer, WaitingThread};
pub use stat::{Stat, TICK_NS};
pub use status::Status;
pub use usage::{
    DescriptorKind, Descriptors, GroupChange, GroupUsage, MachineChange, MachineCpu, MachineMemory,
    MachineUsage, MappedMemory, MemoryChange, OtherProcess, Peer, PressureChange, ProcessCpu, ProcessIo,
    ProcessMemory, ProcessUsage, Sockets, TcpState, ThreadChange, ThreadUsage, ThrottlingChange, UnreadFile,
    UsageChange, UsageReader,
};
